//! Runs that go on: what is known of them at an instant.

use super::metrics::header;
use super::run::{self, MS, S};
use super::schema::reader::errors;
use crate::live::{LiveRun, State, json};
use brunt_plan::phase::Phase;
use brunt_stats::measured_window::MeasuredWindow;
use brunt_stats::outage_span::{OutageKind, OutageKinds, OutageSpan};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::store::IntervalStore;
use serde_json::Value;

fn object_of(run: Option<&LiveRun>) -> Value {
    let mut text = Vec::new();
    json::write(run, &mut text).unwrap();
    let value = serde_json::from_slice(&text).unwrap();
    assert_eq!(errors(&value), Vec::<String>::new());
    value
}

/// The counts are those of the result of the same run, by the same names; the state is that of the instant.
#[test]
fn a_live_run_has_the_keys_of_its_result() {
    let run = run::open_loop();
    let result = super::json_of(&run);
    let mut live = header(&run.summary.record.plan, &[]);
    assert_eq!(object_of(Some(&live))["state"], "connect");
    live.start(run.summary.window);
    live.look(run.summary.window.end_ns, &run.summary.record.run.intervals);
    let found = object_of(Some(&live));
    for path in [
        "/seed",
        "/plan",
        "/duration_ns",
        "/requests",
        "/keys",
        "/rate",
        "/latency/response_ns",
        "/latency/service_ns",
        "/phases/warmup/requests",
        "/phases/preload/bytes",
        "/connections/open",
    ] {
        assert_eq!(found.pointer(path), result.pointer(path), "{path}");
        assert!(found.pointer(path).is_some(), "{path}");
    }
    assert_eq!(object_of(None), serde_json::json!({ "schema": "brunt.live.v1", "state": "starting" }));
}

#[test]
fn the_state_is_that_of_the_instant() {
    let run = run::open_loop();
    let (plan, store) = (&run.summary.record.plan, &run.summary.record.run.intervals);
    let nothing = IntervalStore::new(&Layout::of(plan));
    let window = run.summary.window;
    let MeasuredWindow { start_ns, measure_ns, end_ns, .. } = window;
    let open = MeasuredWindow { end_ns: u64::MAX, ..window };
    // When, what was recorded, the times as far as they are known → state, length of the window so far, time to its end.
    let table = [
        (S, &nothing, None, Phase::Connect, 0, None),
        (S, store, None, Phase::Preload, 0, None),
        (start_ns - 1, store, Some(window), Phase::Preload, 0, Some(end_ns - start_ns + 1)),
        (start_ns, store, Some(window), Phase::Warmup, 0, Some(end_ns - start_ns)),
        (measure_ns - 1, store, Some(window), Phase::Warmup, 0, Some(end_ns - measure_ns + 1)),
        (measure_ns, store, Some(window), Phase::Measure, 0, Some(end_ns - measure_ns)),
        (measure_ns + 100, store, Some(window), Phase::Measure, 100, Some(end_ns - measure_ns - 100)),
        (measure_ns + 100, store, Some(open), Phase::Measure, 100, None),
        (end_ns + S, store, Some(window), Phase::Drain, end_ns - measure_ns, Some(0)),
    ];
    for (at_ns, store, window, phase, duration_ns, to_go_ns) in table {
        let mut live = header(plan, &[]);
        window.into_iter().for_each(|window| live.start(window));
        live.look(at_ns, store);
        assert_eq!(live.state, State::Running(phase), "{at_ns}");
        let found = object_of(Some(&live));
        assert_eq!(found["state"], phase.name());
        assert_eq!(found["duration_ns"], duration_ns, "{at_ns}");
        assert_eq!(found["to_go_ns"].as_u64(), to_go_ns, "{at_ns}");
    }
}

/// A worker that tells later of the same trouble shows that it was shorter: until the run has ended nothing is taken back.
#[test]
fn outages_never_fall() {
    let run = run::open_loop();
    let plan = &run.summary.record.plan;
    let mut store = IntervalStore::new(&Layout::of(plan));
    let mut set = RecorderSet::new(&Layout::of(plan));
    let mut live = header(plan, &[]);
    let mut seen = Vec::new();
    for (start_ms, end_ms) in [(0, 1_000), (600, 1_200), (5_000, 5_500)] {
        let kinds = OutageKinds::NONE.with(OutageKind::Refused);
        set.outage(OutageSpan { server: 0, start_ns: start_ms * MS, end_ns: end_ms * MS, failed: 1, kinds });
        store.push(&set.take_interval(0, start_ms * MS, end_ms * MS));
        live.look(end_ms * MS, &store);
        seen.push((live.outages[0].count, live.outages[0].length_ns / MS));
    }
    // The first two are one of 400 ms.
    assert_eq!(seen, [(1, 1_000), (1, 1_000), (2, 1_000)]);
}
