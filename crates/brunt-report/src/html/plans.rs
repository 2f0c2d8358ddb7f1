//! Plans side by side: every key that differs, then those that are equal.

use super::markup::{Heading, Markup};
use crate::result::shortened;
use serde_json::{Map, Value};

/// The key of the classes.
const CLASSES: &str = "class";

/// A section with the plans of several results, which have the keys of a plan file.
pub(crate) fn section(markup: &mut Markup, names: &[String], plans: &[&Map<String, Value>]) {
    let plans: Vec<Vec<(String, String)>> = plans.iter().map(|plan| rows(plan)).collect();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in plans.iter().flatten() {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let value = |plan: &Vec<(String, String)>, key: &str| {
        plan.iter().find(|(held, _)| held == key).map_or("-".to_owned(), |(_, value)| value.clone())
    };
    let row = |key: &str| {
        let mut row = vec![key.to_owned()];
        row.extend(plans.iter().map(|plan| value(plan, key)));
        row
    };
    let (equal, differing): (Vec<_>, Vec<_>) =
        keys.into_iter().map(row).partition(|row| row[1..].windows(2).all(|pair| pair[0] == pair[1]));
    let mut headings = vec![Heading::Words("key")];
    headings.extend(names.iter().map(|name| Heading::Words(name)));
    markup.raw("<section id=\"plans\">\n<h2>Plans side by side</h2>\n");
    if differing.is_empty() {
        markup.element("p", "The plans are equal.");
    }
    markup.table("What differs", &headings, &differing);
    markup.raw("<details><summary>What is equal</summary>\n");
    let equal: Vec<Vec<String>> = equal.into_iter().map(|mut row| row.drain(..2).collect()).collect();
    markup.table(
        "Keys with one value in all plans",
        &[Heading::Words("key"), Heading::Words("value")],
        &equal,
    );
    markup.raw("</details>\n</section>\n");
}

/// The keys of a plan with their values; those of a class of several begin with its name.
fn rows(plan: &Map<String, Value>) -> Vec<(String, String)> {
    let classes = plan.get(CLASSES).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let own = plan.iter().filter(|(key, _)| *key != CLASSES);
    let mut rows: Vec<(String, String)> = own.map(|(key, value)| (key.clone(), shortened(value))).collect();
    for class in classes.iter().filter_map(Value::as_object) {
        let name = class.get("name").and_then(Value::as_str).unwrap_or("");
        let prefix = if classes.len() > 1 { format!("{name} ") } else { String::new() };
        rows.extend(class.iter().map(|(key, value)| (format!("{prefix}{key}"), shortened(value))));
    }
    rows
}
