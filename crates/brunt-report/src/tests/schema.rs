//! Results against docs/*.schema.json: every key is there, and no other.
//!
//! Not what the keys mean. Those of live runs are held against it in `crates/brunt/tests/it/schema.rs`.

pub(super) mod reader;

use super::{all_runs, asserted, json_of, run};
use reader::errors;
use serde_json::json;

#[test]
fn results_are_as_the_schema_says() {
    let asserted = asserted().into_iter().map(|run| ("asserted", run));
    let others = [("cold start", run::cold_start())];
    for (name, run) in all_runs().into_iter().chain(asserted).chain(others) {
        assert_eq!(errors(&json_of(&run)), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn keys_missing_from_the_schema_are_found() {
    let whole = json_of(&run::open_loop());
    // A key more, and a key less.
    for object in [
        "",
        "/status/checks/0",
        "/requests",
        "/latency",
        "/ops/get/in_window",
        "/classes/main/ops/get",
        "/client/workers/0/stalls",
        "/record",
        "/record/run/counts",
        "/record/run/host/clock",
        "/record/intervals/request_counts/0/counts/requests",
        "/record/intervals/timeline/grid",
    ] {
        let mut more = whole.clone();
        more.pointer_mut(object).unwrap()["unheard_of"] = json!(0);
        let path = format!("{}.unheard_of: not in the schema", object.replace('/', "."));
        let found = errors(&more);
        let is_it = |error: &String| *error == path.replace(".0.", "[0].");
        assert!(found.iter().any(is_it) && found.len() == 1, "{object}: {found:?}");
        let mut less = whole.clone();
        let keys = less.pointer_mut(object).unwrap().as_object_mut().unwrap();
        let key = keys.keys().next().unwrap().clone();
        keys.remove(&key);
        assert_eq!(errors(&less).len(), 1, "{object} without {key}");
    }
    for (value, other) in [
        ("/duration_ns", json!(1.5)),
        ("/duration_ns", json!(-1)),
        ("/interrupted", json!(null)),
        ("/status/value", json!("PERHAPS")),
        ("/latency/response_ns/p50", json!("1 ms")),
        ("/latency/response_ns/p75", json!("1 ms")),
        ("/latency/interval_ns/p50", json!([1])),
        ("/environment/kernel", json!(6)),
        ("/record/calibration", json!("Present")),
        ("/record/intervals/timeline/slices/0/1/0", json!([1, 2, 3, 4])),
        ("/record/intervals/timeline/slices/0/0", json!("0")),
    ] {
        let mut changed = whole.clone();
        let (object, key) = value.rsplit_once('/').unwrap();
        let held = changed.pointer_mut(object).unwrap();
        match key.parse::<usize>() {
            Ok(index) => held[index] = other.clone(),
            Err(_) => held[key] = other.clone(),
        }
        assert_ne!(errors(&changed), Vec::<String>::new(), "{value}: {other}");
    }
}
