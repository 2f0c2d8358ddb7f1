//! Live results against docs/*.schema.json: every key is there, with a value that it may have.
//!
//! Not what the keys mean, and not made-up runs, which have everything (`brunt-report/src/tests/schema.rs`).

#[path = "../../../brunt-report/src/tests/schema/reader.rs"]
pub(crate) mod reader;

use serde_json::Value;

/// Holds a result against its schema; how many runs it has.
pub(crate) fn check_result(name: &str, text: &str) -> usize {
    let result: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(reader::errors(&result), Vec::<String>::new(), "{name}");
    result["runs"].as_array().map_or(1, Vec::len)
}
