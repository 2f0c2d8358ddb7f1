//! Results of other versions: with keys that are not there yet, and with keys that this version does not know.
//!
//! Not damaged results, which are refused. Every key below `record` is taken away once, and its object given one more.

use super::{all_runs, json_of};
use crate::record::run_record;
use brunt_stats::server_stats::{ServerRecord, Snapshot};
use brunt_stats::summary::Summary;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The objects below `record`, in the words of a path whose indices are left out, each with its place; of a list the first.
fn objects(value: &Value, path: &str, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(keys) => {
            found.push((path.to_owned(), place.to_owned()));
            for (key, value) in keys {
                objects(value, &format!("{path}.{key}"), &format!("{place}/{key}"), found);
            }
        }
        Value::Array(values) => {
            if let Some(first) = values.first() {
                objects(first, &format!("{path}[]"), &format!("{place}/0"), found);
            }
        }
        _ => {}
    }
}

fn object_at<'a>(result: &'a mut Value, place: &str) -> &'a mut Map<String, Value> {
    result.pointer_mut(place).and_then(Value::as_object_mut).expect("an object is there")
}

/// What the result is refused without, and where it is refused with a key more.
fn refused() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut seen, mut without, mut with_more) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (name, run) in all_runs() {
        let mut result = json_of(&run);
        run_record(&result).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut found = Vec::new();
        objects(&result["record"], "record", "/record", &mut found);
        for (path, place) in found {
            for key in object_at(&mut result, &place).keys().cloned().collect::<Vec<_>>() {
                if !seen.insert(format!("{path}.{key}")) {
                    continue;
                }
                let whole = object_at(&mut result, &place).clone();
                object_at(&mut result, &place).remove(&key);
                if run_record(&result).is_err() {
                    without.insert(format!("{path}.{key}"));
                }
                *object_at(&mut result, &place) = whole;
            }
            object_at(&mut result, &place).insert("of_a_newer_version".to_owned(), Value::from(1));
            if run_record(&result).is_err() {
                with_more.insert(path);
            }
            object_at(&mut result, &place).remove("of_a_newer_version");
        }
    }
    assert!(seen.len() > 150, "{}", seen.len());
    (without, with_more)
}

/// What an older version did not count, it has none of. What there is nothing to put in the place of, is refused: what a run is, whose
/// its numbers are, and lists that the plan says the length of.
#[test]
fn results_of_other_versions_are_read() {
    let (without, with_more) = refused();
    let list = |paths: BTreeSet<String>| paths.into_iter().collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("keys_that_a_record_needs", list(without));
    // A calibration is one of several things, told apart by the one key that there is; the keys of sums are numbers.
    assert_eq!(list(with_more), "record\nrecord.calibration\nrecord.intervals.part_sums");
}

/// A file holds what has changed; a statistic that is gone is not the one before.
#[test]
fn a_record_is_read_back_as_it_was() {
    let mut record = ServerRecord::default();
    record.trouble = Some("gone".to_owned());
    for (second, rows) in [
        (1, &[("cmd_get", "1"), ("pid", "7")][..]),
        (2, &[("cmd_get", "1")]),
        (3, &[("cmd_get", "5"), ("pid", "7")]),
    ] {
        record.push(Snapshot::new(second, second, rows.iter().copied()));
        record.prepared = Some(Snapshot::new(second, second, rows.iter().copied()));
    }
    let mut value = serde_json::to_value(&record).unwrap();
    let values = |value: &Value, index: usize| value["snapshots"][index]["values"].to_string();
    assert_eq!(
        (values(&value, 1), values(&value, 2)),
        (r#"{"pid":null}"#.into(), r#"{"cmd_get":5,"pid":7}"#.into())
    );
    assert_eq!(serde_json::from_value::<ServerRecord>(value.clone()).unwrap(), record);
    // Of a newer version.
    value["snapshots"][1]["values"]["cmd_unheard_of"] = 4.into();
    assert_eq!(serde_json::from_value::<ServerRecord>(value).unwrap(), record);
}

/// Says `to` for `from` wherever that is a whole text.
fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, from, to)),
        Value::Object(keys) => keys.values_mut().for_each(|value| rename(value, from, to)),
        _ => {}
    }
}

/// A run of gets and commands, as a version wrote it that booked each command by itself, and as one that booked all together.
#[test]
fn commands_are_read_together_and_apart() {
    let table: [(&str, &[&str], &str, &str); 3] = [
        ("raw.1", &["HSET {key} f {value}"], "raw=1", "HSET"),
        ("raw", &["HSET {key} f {value}"], "raw=1", "raw"),
        ("raw", &["HSET {key} f {value}", "HGET {key} f"], "raw=1+3", "raw"),
    ];
    for (op, commands, mix, expected) in table {
        let mut result = json_of(&super::run::closed_loop());
        rename(&mut result["record"], "set", op);
        result["plan"]["command"] = commands.into();
        let class = &mut result["plan"]["class"][0];
        let held = class["mix"].as_str().unwrap().to_owned();
        let (gets, _) = held.split_once(",set=").expect("gets, and sets behind them");
        class["mix"] = format!("{gets},{mix}").into();
        let names = run_record(&result).map(|record| {
            let summary = Summary::build(record);
            summary
                .ops
                .iter()
                .map(|row| (row.name.to_string(), row.summary.requests.sent))
                .collect::<Vec<_>>()
        });
        let sets = super::run::closed_loop().summary.ops[1].summary.requests.sent;
        assert_eq!(names.unwrap()[1], (expected.to_owned(), sets), "{op} of {commands:?}");
    }
}
