//! Runs for tests of comparisons, from the keys of a result, which say a number more shortly than a run that comes to it.
//!
//! Not how results are read: files have a record. Keys that are missing end the test.

use super::{Latency, Row, RunResult};
use brunt_plan::quantile::Quantile;
use brunt_stats::status::Status;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The run that keys say there was.
pub(crate) fn run(value: &Value, source: &str) -> RunResult {
    let status: String = of(&value["status"]["value"]);
    let all = Status::ALL;
    RunResult {
        source: source.to_owned(),
        version: of(&value["version"]),
        seed: of(&value["seed"]),
        server: of(&value["server"]),
        duration_ns: of(&value["duration_ns"]),
        interrupted: of(&value["interrupted"]),
        status: all.into_iter().find(|known| known.name() == status).unwrap(),
        found: found(&value["status"]),
        plan: of(&value["plan"]),
        environment: of(&value["environment"]),
        client_cpu_ns: of(&value["client"]["cpu_ns_per_request"]),
        server_cpu_ns: of(&value["server_stats"]["window"]["cpu_ns_per_request"]),
        has_others: value["agents"] != Value::Array(Vec::new()),
        is_open_loop: of::<Vec<Map<_, _>>>(&value["plan"]["class"]).iter().any(is_open_loop),
        total: row(value),
        ops: of::<Map<_, _>>(&value["ops"])
            .iter()
            .map(|(name, op)| (name.parse().unwrap(), row(op)))
            .collect(),
    }
}

/// Does the class have one of the keys of an open loop?
fn is_open_loop(class: &Map<String, Value>) -> bool {
    ["rate", "rate-profile", "call-rate"].iter().any(|key| class.contains_key(*key))
}

/// The value of a key.
fn of<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// The checks that call for care or are invalid.
fn found(status: &Value) -> Vec<String> {
    let is_found = |held: &&Value| held["status"] == "caution" || held["status"] == "invalid";
    status["checks"].as_array().unwrap().iter().filter(is_found).map(|check| of(&check["id"])).collect()
}

fn row(value: &Value) -> Row {
    let (requests, keys, latency) = (&value["requests"], &value["keys"], &value["latency"]);
    let count = |key: &str| of::<u64>(&requests[key]);
    let unanswered = count("error") + count("timeout") + count("lost");
    Row {
        response: read_latency(&latency["response_ns"]),
        service: read_latency(&latency["service_ns"]),
        all_and_least: ["including_failures_ns", "least_ns"].map(|key| read_latency(&latency[key])),
        client_error: percentiles(&latency["client_error_ns"]),
        send_lag_max: of(&latency["send_lag_ns"]["max"]),
        lag_fraction: of(&latency["lag_fraction"]),
        completed_per_s: of(&value["rate"]["completed"]),
        requested: of(&keys["requested"]),
        hit: of(&keys["hit"]),
        scheduled: count("scheduled"),
        unsent: count("unsent"),
        judged: count("sent") + count("abandoned"),
        failed: unanswered + count("abandoned"),
        // What was given up was never sent.
        unanswered: unanswered + count("unsent") + count("in_flight"),
    }
}

fn read_latency(value: &Value) -> Latency {
    Latency { mean: of(&value["mean"]), max: of(&value["max"]), percentiles: percentiles(value) }
}

fn percentiles(value: &Value) -> [Option<f64>; Quantile::PRINTED.len()] {
    Quantile::PRINTED.map(|quantile| of(&value[quantile.key()]))
}
