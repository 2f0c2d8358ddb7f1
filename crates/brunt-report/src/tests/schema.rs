//! docs/*.schema.json and the keys in docs/results.md, which are generated from the types of results; and results against them.
//!
//! `UPDATE_DOCS=1 cargo test -p brunt-report schema` writes both anew. Those of live runs are held against the schemas in
//! `crates/brunt/tests/it/schema.rs`.

pub(super) mod reader;

use super::{all_runs, asserted, json_of, run};
use crate::json::ResultTree;
use crate::{campaign, comparison, json};
use brunt_plan::quantity::each_once;
use reader::{document, errors, path};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// End of what is generated.
const END: &str = "<!-- end of keys -->\n";

/// The schema of a type; what is `None` in it is `null` in JSON.
fn schema_of<T: JsonSchema>(title: &str) -> Value {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let text = schema.to_value().to_string().replace("`None`", "`null`");
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    schema["title"] = json!(title);
    schema["properties"]["schema"]["const"] = json!(title);
    schema
}

/// Holds a document against what is generated, or writes it.
#[allow(clippy::disallowed_methods, reason = "a developer asks for it")]
fn check_document(file: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(file), expected).unwrap();
    } else {
        assert!(document(file) == expected, "docs/{file}: UPDATE_DOCS=1 cargo test -p brunt-report schema");
    }
}

/// Every schema by its file.
fn schemas() -> [(&'static str, Value); 3] {
    [
        ("result.schema.json", schema_of::<ResultTree>(json::SCHEMA)),
        ("campaign.schema.json", schema_of::<campaign::CampaignTree<'static>>(campaign::SCHEMA)),
        ("compare.schema.json", schema_of::<comparison::ComparisonTree>(comparison::SCHEMA)),
    ]
}

#[test]
fn schemas_are_those_of_the_types() {
    for (file, schema) in schemas() {
        check_document(file, &format!("{schema:#}\n"));
    }
}

/// Names of the objects that a value holds; empty where there are none.
fn object_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap().to_owned();
    }
    let others = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let inner = [&schema["items"], &schema["additionalProperties"]];
    others.chain(inner.into_iter().filter(|held| held.is_object())).map(object_of).collect()
}

/// The objects that a schema refers to, in the order in which they come.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value.as_str().and_then(|text| text.strip_prefix("#/$defs/")) {
                    Some(name) if key == "$ref" && !found.iter().any(|held| held == name) => {
                        found.push(name.to_owned());
                    }
                    _ if key != "$defs" => references(value, found),
                    _ => {}
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// A key with the object that it holds.
fn key_of(key: &str, value: &Value) -> String {
    let object = object_of(value);
    if object.is_empty() { format!("`{key}`") } else { format!("`{key}` ({object})") }
}

/// The keys of an object, in each of its forms, or the words that it may be.
fn names(object: &Value) -> Vec<String> {
    let keys = object["properties"].as_object().into_iter().flatten();
    let words = object["const"].as_str().map(|word| format!("`\"{word}\"`"));
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|form| object[form].as_array()).flatten();
    keys.map(|(key, value)| key_of(key, value)).chain(words).chain(forms.flat_map(names)).collect()
}

/// The keys of each object, but for objects that others have told of: a line for each key of the whole and of the objects in it, the names
/// of those below.
fn keys(schema: &Value, told: &mut Vec<String>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let properties = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
    let lines = |schema: &Value| {
        let line = |(key, value): (String, Value)| {
            format!("- {}: {}\n", key_of(&key, &value), text(&value["description"]))
        };
        properties(schema).into_iter().map(line).collect::<String>()
    };
    let mut out = format!("\n{}", lines(schema));
    let mut next = told.len();
    references(&schema["properties"], told);
    let explained = told.len();
    while let Some(name) = told.get(next).cloned() {
        let object = &schema["$defs"][&name];
        references(object, told);
        out += &format!("\n**{name}**: {}", text(&object["description"]));
        if next < explained && object["properties"].is_object() {
            out += &format!("\n\n{}", lines(object));
        } else {
            out += &format!(" {}\n", each_once(names(object)).join(", "));
        }
        next += 1;
    }
    format!("{out}\n")
}

#[test]
fn every_key_is_documented() {
    let (mut expected, mut told) = (document("results.md"), Vec::new());
    for (file, schema) in schemas() {
        let begin = format!("<!-- keys of {file} -->\n");
        let (before, rest) = expected.split_once(&begin).unwrap();
        let (_, behind) = rest.split_once(END).unwrap();
        let keys = keys(&schema, &mut told);
        assert!(!keys.contains(": \n"), "every key says what it means: {keys}");
        expected = format!("{before}{begin}{keys}{END}{behind}");
    }
    check_document("results.md", &expected);
}

/// What is written is what is read back: no key more, and none less.
#[test]
fn results_are_as_the_schema_says() {
    let asserted = asserted().into_iter().map(|run| ("asserted", run));
    let others = [("cold start", run::cold_start())];
    for (name, run) in all_runs().into_iter().chain(asserted).chain(others) {
        let value = json_of(&run);
        assert_eq!(errors(&value), Vec::<String>::new(), "{name}");
        let read: ResultTree = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), value, "{name}");
    }
}

#[test]
fn keys_missing_from_a_result_are_found() {
    let whole = json_of(&run::open_loop());
    for object in [
        "",
        "/status/checks/0",
        "/counts/requests",
        "/latency",
        "/ops/get/counts/in_window",
        "/client/classes/main/ops/get",
        "/client/workers/0/stalls",
    ] {
        let mut less = whole.clone();
        let keys = less.pointer_mut(object).unwrap().as_object_mut().unwrap();
        let key = keys.keys().next().unwrap().clone();
        keys.remove(&key);
        assert_eq!(errors(&less).len(), 1, "{object} without {key}");
    }
    for (value, other) in [
        ("/window/duration_ns", json!(1.5)),
        ("/window/duration_ns", json!(-1)),
        ("/window/interrupted", json!(null)),
        ("/status/value", json!("PERHAPS")),
        ("/latency/response_ns/p50", json!("1 ms")),
        ("/latency/response_ns/p75", json!("1 ms")),
        ("/latency/response_ns/interval/p50", json!([1])),
        ("/host/facts/kernel", json!(6)),
    ] {
        let mut changed = whole.clone();
        let (object, key) = value.rsplit_once('/').unwrap();
        changed.pointer_mut(object).unwrap()[key] = other.clone();
        assert_ne!(errors(&changed), Vec::<String>::new(), "{value}: {other}");
    }
}
