//! In what two results differ before anything is measured: keys of the plan, facts of the hosts.
//!
//! Not in what they came to. Seeds differ by design, and servers are what is compared.

use crate::quantity;
use crate::result::{RunResult, shortened};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Something that is one way in A and another in B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The key; of a class of several, with the name of the class in front.
    pub key: String,
    /// What A has; `None` where it has no such key.
    pub a: Option<String>,
    /// What B has.
    pub b: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |held: &Option<String>| held.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(formatter, "{}: A has {}, B has {}", self.key, text(&self.a), text(&self.b))
    }
}

/// Keys of a plan in which runs may differ and still be of one plan.
const NOT_THE_PLAN: [&str; 2] = ["seed", "server"];
/// The key of the classes.
const CLASSES: &str = "class";

/// The keys in which two plans differ, but for seeds and servers.
pub fn plan_differences(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let mut found =
        differences("", &a.result.plan, &b.result.plan, &[&NOT_THE_PLAN[..], &[CLASSES]].concat());
    let classes = |run: &RunResult| -> Vec<Map<String, Value>> {
        let listed =
            run.result.plan.get(CLASSES).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        listed.iter().filter_map(Value::as_object).cloned().collect()
    };
    let (classes_a, classes_b) = (classes(a), classes(b));
    if classes_a.len() != classes_b.len() {
        let count = |classes: &[_]| Some(quantity::things(classes.len() as u64, "class"));
        found.push(Difference { key: CLASSES.to_owned(), a: count(&classes_a), b: count(&classes_b) });
        return found;
    }
    for (class_a, class_b) in classes_a.iter().zip(&classes_b) {
        let name = class_a.get("name").and_then(Value::as_str).unwrap_or("");
        let prefix = if classes_a.len() > 1 { format!("{name} ") } else { String::new() };
        found.extend(differences(&prefix, class_a, class_b, &[]));
    }
    found
}

/// The keys in which two runs of one side differ: there, the server counts, too.
pub fn side_differences(one: &RunResult, other: &RunResult) -> Vec<Difference> {
    let (server_a, server_b) = (one.result.plan.get("server"), other.result.plan.get("server"));
    let mut found = plan_differences(one, other);
    if server_a != server_b {
        let (a, b) = (server_a.map(shortened), server_b.map(shortened));
        found.push(Difference { key: "server".to_owned(), a, b });
    }
    found
}

/// What of the hosts and the tool differs.
pub(super) fn environment(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let brunt = "brunt".to_owned();
    let with_version = |run: &RunResult| {
        let facts = run.result.host.facts.iter().chain([(&brunt, &run.result.version)]);
        facts.map(|(name, fact)| (name.clone(), Value::from(fact.as_str()))).collect::<Map<_, _>>()
    };
    differences("", &with_version(a), &with_version(b), &[])
}

fn differences(
    prefix: &str,
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    exempt: &[&str],
) -> Vec<Difference> {
    let only_in_b = b.keys().filter(|key| !a.contains_key(*key));
    let keys = a.keys().chain(only_in_b).filter(|key| !exempt.contains(&key.as_str()));
    keys.filter(|key| a.get(*key) != b.get(*key))
        .map(|key| Difference {
            key: format!("{prefix}{key}"),
            a: a.get(key).map(shortened),
            b: b.get(key).map(shortened),
        })
        .collect()
}
