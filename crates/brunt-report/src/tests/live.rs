//! Runs that go on: what is known of them at an instant.

use super::run::{self, Run, S};
use super::schema::reader::errors;
use crate::live::{State, write_json};
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::{RunData, RunRecord};
use brunt_stats::store::IntervalStore;
use brunt_stats::window::RunTimes;
use serde_json::Value;

/// A run as it was at an instant, though with all that it recorded.
pub(super) fn so_far(run: &Run, at_ns: u64) -> RunSoFar {
    let record = run.summary.record.clone();
    let times = record.run.times;
    RunSoFar::new(record, Some(times), at_ns, Vec::new())
}

/// A run of this plan that has begun.
pub(super) fn begun(plan: &Plan) -> RunSoFar {
    let intervals = IntervalStore::new(&Layout::of(plan));
    let run = RunData { intervals, ..RunData::default() };
    let record = RunRecord { plan: plan.clone(), run, ..run::open_loop().summary.record };
    RunSoFar::new(record, None, 0, Vec::new())
}

fn object_of(state: State<'_>) -> Value {
    let mut text = Vec::new();
    write_json(state, &Default::default(), &mut text).unwrap();
    let value = serde_json::from_slice(&text).unwrap();
    assert_eq!(errors(&value), Vec::<String>::new());
    value
}

/// The counts are those of the result of the same run, by the same names; the state is that of the instant.
#[test]
fn a_live_run_has_the_keys_of_its_result() {
    let run = run::open_loop();
    let result = super::json_of(&run);
    let plan = &run.summary.record.plan;
    assert_eq!(object_of(State::Running(&begun(plan)))["state"], "connect");
    let found = object_of(State::Running(&so_far(&run, run.summary.window.end_ns)));
    for (path, of_result) in [
        ("/seed", "/plan/seed"),
        ("/plan", "/plan"),
        ("/duration_ns", "/window/duration_ns"),
        ("/requests", "/counts/requests"),
        ("/keys", "/counts/keys"),
        ("/rate", "/counts/rate"),
        ("/latency/service_ns", "/latency/service_ns"),
        ("/phases/warmup/requests", "/counts/phases/warmup/requests"),
        ("/phases/preload/bytes", "/counts/phases/preload/bytes"),
        ("/connections/open", "/client/connections/open"),
    ] {
        assert_eq!(found.pointer(path), result.pointer(of_result), "{path}");
        assert!(found.pointer(path).is_some(), "{path}");
    }
    for (key, value) in found["latency"]["response_ns"].as_object().unwrap() {
        assert_eq!(Some(value), result["latency"]["response_ns"].get(key), "{key}");
    }
    let nothing = serde_json::json!({ "schema": "brunt.live.v1", "state": "starting" });
    assert_eq!(object_of(State::Starting), nothing);
}

#[test]
fn the_state_is_that_of_the_instant() {
    let run = run::open_loop();
    let (plan, store) = (&run.summary.record.plan, &run.summary.record.run.intervals);
    let nothing = IntervalStore::new(&Layout::of(plan));
    let times = run.summary.record.run.times;
    let RunTimes { start_ns, measure_ns, end_ns, .. } = times;
    let open = RunTimes { end_ns: u64::MAX, ..times };
    // When, what was recorded, the times as far as they are known → state, length of the window so far, time to its end.
    let table = [
        (S, &nothing, None, Phase::Connect, 0, None),
        (S, store, None, Phase::Preload, 0, None),
        (start_ns - 1, store, Some(times), Phase::Preload, 0, Some(end_ns - start_ns + 1)),
        (start_ns, store, Some(times), Phase::Warmup, 0, Some(end_ns - start_ns)),
        (measure_ns - 1, store, Some(times), Phase::Warmup, 0, Some(end_ns - measure_ns + 1)),
        (measure_ns, store, Some(times), Phase::Measure, 0, Some(end_ns - measure_ns)),
        (measure_ns + 100, store, Some(times), Phase::Measure, 100, Some(end_ns - measure_ns - 100)),
        (measure_ns + 100, store, Some(open), Phase::Measure, 100, None),
        (end_ns + S, store, Some(times), Phase::Drain, end_ns - measure_ns, Some(0)),
    ];
    for (at_ns, store, times, phase, duration_ns, to_go_ns) in table {
        let mut record = run.summary.record.clone();
        record.run.intervals = store.clone();
        let so_far = RunSoFar::new(record, times, at_ns, Vec::new());
        let found = object_of(State::Running(&so_far));
        assert_eq!(found["state"], phase.name(), "{at_ns}");
        assert_eq!(found["duration_ns"], duration_ns, "{at_ns}");
        assert_eq!(found["to_go_ns"].as_u64(), to_go_ns, "{at_ns}");
    }
}
