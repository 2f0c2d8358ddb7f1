//! The schemas of docs/*.schema.json, and a reader of JSON Schema for the keywords that are there.
//!
//! Not a validator of any schema. Invariant: a keyword that it does not know is a panic, so that none is passed over.

use serde_json::Value;
use std::sync::LazyLock;

/// By the names of their files.
static SCHEMAS: LazyLock<[(&str, Value); 4]> = LazyLock::new(|| {
    ["result.schema.json", "campaign.schema.json", "live.schema.json", "compare.schema.json"]
        .map(|file| (file, serde_json::from_str(&document(file)).expect("a schema is JSON")))
});

/// Where a document is.
pub(crate) fn path(file: &str) -> String {
    format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// The text of a document.
#[allow(clippy::disallowed_methods, reason = "documents are held against what generates them")]
pub(crate) fn document(file: &str) -> String {
    std::fs::read_to_string(path(file)).expect("the document is there")
}

/// What of a result is not as its schema says, each with the way to it.
pub(crate) fn errors(result: &Value) -> Vec<String> {
    let is_its = |(_, schema): &&(&str, Value)| schema["title"] == result["schema"];
    let Some((_, schema)) = SCHEMAS.iter().find(is_its) else {
        return vec![format!("schema: {} is none of them", result["schema"])];
    };
    let mut found = Vec::new();
    check(schema, schema, result, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if *schema == Value::Bool(true) {
        return;
    }
    let keywords = schema.as_object().expect("a schema is an object, or anything fits");
    let (keys, list) = (value.as_object(), value.as_array());
    let is_any = |wanted: &Value, of: &dyn Fn(&Value) -> bool| wanted.as_array().unwrap().iter().any(of);
    let places = keywords.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
    for (keyword, wanted) in keywords {
        let is_met = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
            "$ref" => {
                let wanted = wanted.as_str().unwrap();
                let (file, pointer) = wanted.split_once('#').unwrap_or((wanted, ""));
                let other = SCHEMAS.iter().find(|(name, _)| *name == file).map(|(_, schema)| schema);
                let root = if file.is_empty() { Some(root) } else { other };
                let definition = root.and_then(|root| Some((root, root.pointer(pointer)?)));
                let (root, definition) = definition.unwrap_or_else(|| panic!("{wanted} is not there"));
                check(root, definition, value, path, found);
                true
            }
            "type" if wanted.is_string() => is_of_type(value, wanted),
            "type" => is_any(wanted, &|name| is_of_type(value, name)),
            "const" => value == wanted,
            "enum" => is_any(wanted, &|held| value == held),
            "anyOf" | "oneOf" => is_any(wanted, &|schema| {
                let mut found = Vec::new();
                check(root, schema, value, path, &mut found);
                found.is_empty()
            }),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minItems" => list.is_none_or(|list| list.len() as u64 >= wanted.as_u64().unwrap()),
            "maxItems" => list.is_none_or(|list| list.len() as u64 <= wanted.as_u64().unwrap()),
            "required" => keys.is_none_or(|keys| {
                !is_any(wanted, &|key| !keys.contains_key(key.as_str().expect("a key is text")))
            }),
            "properties" => {
                for (key, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = keys.and_then(|keys| keys.get(key)) {
                        check(root, schema, value, &format!("{path}.{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let named = &schema["properties"];
                let others = keys.into_iter().flatten().filter(|(key, _)| named.get(key.as_str()).is_none());
                for (key, value) in others {
                    let path = format!("{path}.{key}");
                    match wanted {
                        Value::Bool(false) => found.push(format!("{path}: not in the schema")),
                        schema => check(root, schema, value, &path, found),
                    }
                }
                true
            }
            "prefixItems" => {
                for (index, (schema, value)) in
                    wanted.as_array().unwrap().iter().zip(list.into_iter().flatten()).enumerate()
                {
                    check(root, schema, value, &format!("{path}[{index}]"), found);
                }
                true
            }
            "items" => {
                for (index, value) in list.into_iter().flatten().enumerate().skip(places) {
                    check(root, wanted, value, &format!("{path}[{index}]"), found);
                }
                true
            }
            other => panic!("{other} is a keyword that this reader does not know"),
        };
        if !is_met {
            let mut text = value.to_string();
            text.truncate(text.floor_char_boundary(200));
            found.push(format!("{path}: {text} is against {keyword}: {wanted}"));
        }
    }
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a type has a name") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("{other} is no type"),
    }
}
