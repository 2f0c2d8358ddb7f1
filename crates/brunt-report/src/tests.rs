//! Whole reports of made-up runs as snapshots, and every number of the JSON computed another way.

mod campaign;
mod client_basis;
mod comparison;
mod hdr_histogram;
mod hostile;
mod hosts;
mod html;
mod integration;
mod laws;
mod live;
mod long_run;
mod metrics;
mod ndjson;
mod publication;
mod run;
mod schema;
mod size;
mod text;

use crate::document::Level;
use crate::file_type::FileType;
use crate::stored::StoredResult;
use crate::subject::Subject;
use crate::{csv, json};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::{Percentiles, Quantile};
use brunt_plan::resolve::resolve;
use brunt_plan::spec::{ClassSpec, PlanSpec, RunSpec};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::server_stats::ServerRecord;
use run::{Run, S};
use serde_json::Value;
use std::io;
use std::ops::Range;

/// What is written.
fn output(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn text_of(run: &Run) -> String {
    text::report_of(&run.summary, &text::PIPE, Level::Long)
}

fn json_text_of(run: &Run) -> String {
    output(|out| json::write(&run.summary, out))
}

/// The result without its record, which is for programs.
fn keys_of(run: &Run) -> String {
    let mut value = json_of(run);
    assert!(value.as_object_mut().unwrap().remove("record").is_some_and(|record| record.is_string()));
    format!("{value:#}\n")
}

/// Every output is that of the run, to the byte.
#[test]
fn results_are_reported_again() {
    for (name, run) in all_runs() {
        let outputs = |run: &Run| [text_of(run), json_text_of(run), csv_of(run)];
        let (first, plan) = (outputs(&run), run.summary.record.plan.clone());
        let again = Run { summary: StoredResult::parse(&first[1], name).unwrap().summary().unwrap(), ..run };
        assert!(outputs(&again) == first, "{name}: {:#?}", outputs(&again));
        assert_eq!(again.summary.record.plan, plan, "{name}");
        assert!(first[1].len() < 2_000_000, "{name}");
    }
}

fn json_of(run: &Run) -> Value {
    serde_json::from_str(&json_text_of(run)).unwrap()
}

fn all_runs() -> [(&'static str, Run); 7] {
    [
        ("open_loop", run::open_loop()),
        ("closed_loop", run::closed_loop()),
        ("overload", run::overload()),
        ("empty", run::empty()),
        ("churn", run::churn()),
        ("noreply", run::noreply()),
        ("datagrams", run::datagrams()),
    ]
}

#[test]
fn json_of_an_empty_run() {
    insta::assert_snapshot!(keys_of(&run::empty()));
}

#[test]
fn the_stable_core_is_complete() {
    let core = "schema version labels plan.seed plan.data-seed host.name host.facts status.value status.message status.checks.0.id \
        status.checks.0.status status.checks.0.message status.checks.0.value status.checks.0.threshold status.assertions \
        window.start_unix_ns window.duration_ns window.warmup_ns counts.requests.scheduled counts.requests.sent \
        counts.requests.unsent counts.requests.completed counts.requests.error counts.requests.timeout counts.requests.mismatch \
        counts.requests.lost counts.requests.unacknowledged counts.requests.in_flight counts.requests.wire_requests \
        counts.keys.requested counts.keys.hit counts.keys.miss counts.keys.failed counts.phases.preload counts.phases.warmup \
        counts.phases.measure.bytes.tx counts.phases.drain counts.rate.offered counts.rate.sent counts.rate.completed \
        latency.response_ns.mean latency.response_ns.stddev latency.response_ns.min latency.response_ns.p50 \
        latency.response_ns.p90 latency.response_ns.p95 latency.response_ns.p99 latency.response_ns.p99*9 \
        latency.response_ns.p99*99 latency.response_ns.max latency.response_ns.client.p50 latency.response_ns.interval \
        latency.service_ns.p50 latency.send_lag_ns.p50 latency.slowest.client ops.get.counts.requests.sent \
        ops.get.latency.response_ns.p50 client.cpu_user_ns client.cpu_system_ns client.syscalls client.io client.wait \
        servers.0.server events.outages events.faults intervals.0.start_ns intervals.0.end_ns intervals.0.sent \
        intervals.0.completed intervals.0.p50_ns intervals.0.p99_ns intervals.0.max_ns record";
    let value = json_of(&run::open_loop());
    assert!(value.as_object().unwrap().len() <= 15, "a reader sees the whole");
    for path in core.split_whitespace() {
        assert!(
            value.pointer(&format!("/{}", path.replace('.', "/").replace('*', "."))).is_some(),
            "{path} is missing"
        );
    }
}

#[test]
fn the_plan_reads_back() {
    for (name, run) in all_runs() {
        let spec: PlanSpec = serde_json::from_value(json_of(&run)["plan"].clone()).unwrap();
        assert_eq!(resolve(&spec, &run::host()).unwrap(), run.summary.record.plan, "{name}");
    }
    assert_eq!(json_of(&run::overload())["plan"]["seed"], u64::MAX.to_string());
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number at {path}"))
}

/// A distribution against the sorted values it was made from.
fn check_distribution(name: &str, value: &Value, mut exact: Vec<u64>) {
    exact.sort_unstable();
    let count = exact.len() as u64;
    assert_eq!(number(value, "/count"), count, "{name}");
    assert_eq!(value["min"].as_u64(), exact.first().copied(), "{name}");
    assert_eq!(value["max"].as_u64(), exact.last().copied(), "{name}");
    let mean = exact.iter().sum::<u64>() as f64 / count as f64;
    let variance = exact.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / count as f64;
    if count > 0 {
        assert!((number(value, "/mean") as f64 - mean).abs() <= 0.5, "{name}: mean {mean}");
        assert!((number(value, "/stddev") as f64 - variance.sqrt()).abs() <= 1.0, "{name}: {variance}");
    }
    for (key, share) in
        [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)]
    {
        let above = count as f64 * (1.0 - share);
        if above < 9.99 {
            assert!(value[key].is_null(), "{name}: {key} of {count} samples");
        } else {
            let rank = (count as f64 * share - 1e-6).ceil() as usize;
            let (exact_ns, printed_ns) = (exact[rank - 1], number(value, &format!("/{key}")));
            let ceiling_ns = exact_ns as f64 * 1.001;
            assert!(
                printed_ns >= exact_ns && printed_ns as f64 <= ceiling_ns,
                "{name}: {key} {printed_ns} {exact_ns}"
            );
        }
    }
}

/// The `requests`, `keys` and `latency` of one row against the raw samples of the row.
fn check_row(name: &str, value: &Value, samples: &[&Sample]) {
    let count_of = |class| samples.iter().filter(|sample| sample.outcome.class == class).count() as u64;
    for class in OutcomeClass::ALL {
        let key = class.name();
        assert_eq!(number(value, &format!("/counts/requests/{key}")), count_of(class), "{name}: {key}");
    }
    let completed: Vec<&&Sample> =
        samples.iter().filter(|sample| sample.outcome.class.is_completed()).collect();
    let of =
        |derive: fn(&Times) -> u64| completed.iter().map(|sample| derive(&sample.times)).collect::<Vec<_>>();
    let latency = &value["latency"];
    check_distribution(name, &latency["response_ns"], of(Times::response_ns));
    check_distribution(name, &latency["service_ns"], of(Times::service_ns));
    check_distribution(name, &latency["send_lag_ns"], of(Times::send_lag_ns));
    let ended = samples.iter().filter(|sample| sample.outcome.class != OutcomeClass::Unacknowledged);
    let ended_ns = ended.map(|sample| sample.times.response_ns()).collect();
    check_distribution(name, &latency["including_failures_ns"], ended_ns);
    // The timestamps of one run say that every request was 8 us longer in the client than its clock readings do, and 1 us is
    // allowed for their own error.
    let delay_ns = if name.starts_with("open_loop") { 9_000 } else { 0 };
    let without = of(Times::response_without_client_ns);
    check_client_errors(name, latency, of(Times::response_ns), without, delay_ns);
}

/// What happened in the window against the raw samples of warm-up and window, and both balances.
fn check_window(name: &str, value: &Value, samples: &[&Sample], window: &Range<u64>) {
    let counts = |key: &str| number(value, &format!("/counts/in_window/{key}"));
    let at = |of: &dyn Fn(&Sample) -> bool| samples.iter().filter(|sample| of(sample)).count() as u64;
    let ended = |class: &dyn Fn(OutcomeClass) -> bool| {
        at(&|sample| window.contains(&sample.times.done_ns) && class(sample.outcome.class))
    };
    assert_eq!(counts("completed"), ended(&OutcomeClass::is_completed), "{name}");
    let is_failed = |class| brunt_stats::request_counts::is_failed(class);
    assert_eq!(counts("failed"), ended(&is_failed), "{name}");
    assert_eq!(counts("unacknowledged"), ended(&|class| class == OutcomeClass::Unacknowledged), "{name}");
    let in_flight = number(value, "/counts/requests/in_flight");
    assert_eq!(counts("sent"), at(&|sample| window.contains(&sample.times.sent_ns)) + in_flight, "{name}");
    let edge = |at_ns: u64| at(&|sample| sample.times.sent_ns < at_ns && sample.times.done_ns >= at_ns);
    assert_eq!(counts("in_flight_at_start"), edge(window.start), "{name}");
    assert_eq!(counts("in_flight_at_end"), edge(window.end) + in_flight, "{name}");
    assert_eq!(
        counts("in_flight_at_start") + counts("sent"),
        counts("completed") + counts("failed") + counts("unacknowledged") + counts("in_flight_at_end"),
        "{name}"
    );
    assert_eq!(
        counts("waiting_at_start") + number(value, "/counts/requests/scheduled"),
        counts("sent") + counts("abandoned") + counts("waiting_at_end"),
        "{name}"
    );
}

fn check_client_errors(
    name: &str,
    latency: &Value,
    mut full: Vec<u64>,
    mut without: Vec<u64>,
    delay_ns: u64,
) {
    full.sort_unstable();
    without.sort_unstable();
    for quantile in Quantile::PRINTED {
        let [response, error] = ["/response_ns", "/response_ns/client"]
            .map(|path| &latency.pointer(path).unwrap()[quantile.to_string()]);
        assert_eq!(error.is_null(), response.is_null(), "{name} {quantile}");
        if let Some(error_ns) = error.as_u64() {
            let rank = quantile.rank(full.len() as u64) as usize - 1;
            let tolerance_ns = full[rank] / 500; // A bucket at either end.
            let exact_ns = full[rank] - without[rank].saturating_sub(delay_ns);
            assert!(
                error_ns.abs_diff(exact_ns) <= tolerance_ns,
                "{name} {quantile}: {error_ns} for {exact_ns}"
            );
        }
    }
}

#[test]
fn rows_agree_with_the_raw_samples() {
    for (name, run) in all_runs() {
        let (value, window) = (json_of(&run), run.summary.window.measure_ns..run.summary.window.end_ns);
        let check = |path: &str, row: &Value, of: &dyn Fn(&Sample) -> bool| {
            let samples: Vec<&Sample> = run.measured.iter().filter(|sample| of(sample)).collect();
            check_row(&format!("{name}{path}"), row, &samples);
            let all = run.warm_up.iter().chain(&run.measured);
            let all: Vec<&Sample> = all.filter(|sample| of(sample)).collect();
            check_window(&format!("{name}{path}"), row, &all, &window);
        };
        check("", &value, &|_| true);
        for op in value["ops"].as_object().unwrap().keys() {
            let kind: OpKind = op.parse().unwrap();
            check(op, &value["ops"][op], &|sample| sample.op.kind() == kind);
        }
        for (index, class) in run.summary.record.plan.classes.iter().enumerate() {
            let row = &value["client"]["classes"][&class.name];
            check(&class.name, row, &|sample| usize::from(sample.class) == index);
            for (op, row) in row["ops"].as_object().unwrap() {
                let kind: OpKind = op.parse().unwrap();
                check(op, row, &|sample| usize::from(sample.class) == index && sample.op.kind() == kind);
            }
        }
    }
}

#[test]
fn a_cold_start_is_reported_and_kept_in_every_number() {
    let run = run::cold_start();
    insta::assert_snapshot!("cold_start", text_of(&run));
    let value = json_of(&run);
    assert_eq!(value["window"]["change"]["series"], "median");
    let completed = run.measured.iter().filter(|sample| sample.outcome.class.is_completed());
    let all: Vec<u64> = completed.map(|sample| sample.times.response_ns()).collect();
    for row in [&value, &value["ops"]["get"], &value["client"]["classes"]["main"]] {
        check_distribution("all", &row["latency"]["response_ns"], all.clone());
        for key in ["service_ns", "send_lag_ns"] {
            assert_eq!(number(&row["latency"][key], "/count"), all.len() as u64, "{key}");
        }
        let failed = (
            number(&row["latency"]["including_failures_ns"], "/count"),
            number(row, "/counts/requests/lost"),
        );
        assert_eq!(failed, (all.len() as u64 + 25, 25));
        assert_eq!(number(row, "/counts/requests/completed"), 9_975);
        assert_eq!(row["counts"]["rate"]["offered"], 1_000.0);
    }
    assert_eq!(value["intervals"][0]["p50_ns"].as_u64().map(|ns| ns > 300_000), Some(true));
}

#[test]
fn rates_bytes_and_costs_are_quotients_of_known_numbers() {
    let value = json_of(&run::open_loop());
    // 10 000 measured requests in 10 s: 9000 gets of 36 bytes and 1000 sets of 250, answered with 245 and 8.
    assert_eq!(number(&value, "/window/duration_ns"), 10 * S);
    assert_eq!(
        value["counts"]["rate"],
        serde_json::json!({ "offered": 1000.0, "sent": 1000.0, "completed": 1000.0 })
    );
    assert_eq!(
        value["counts"]["phases"]["measure"]["bytes"],
        serde_json::json!({ "tx": 9_000 * 36 + 1_000 * 250, "rx": 9_000 * 245 + 1_000 * 8 })
    );
    assert_eq!(
        value["counts"]["keys"],
        serde_json::json!({ "requested": 9_000, "hit": 8_500, "miss": 500, "failed": 0 })
    );
    let sent = |phase: &str, op: &str| number(&value, &format!("/counts/phases/{phase}/ops/{op}"));
    assert_eq!([sent("preload", "set"), sent("warmup", "get"), sent("measure", "set")], [1_000, 900, 1_000]);
    assert_eq!(number(&value, "/counts/phases/preload/stored/confirmed"), 1_000);
    assert_eq!(number(&value, "/counts/phases/drain/duration_ns"), 150_000);
    // 32 ms, 2 ms of it spent waiting, and 20 100 system calls for 10 000 requests.
    assert_eq!(number(&value, "/client/cpu_ns_per_request"), 3_000);
    assert_eq!(value["client"]["syscalls_per_request"], 2.01);
    // 1000 values of 2000 in preload, then 110 of each of 2000..2100; (6000 − 1000) / 110 is 45.45.
    assert_eq!(number(&value, "/client/send_cost_ns/p50"), 2_045);
    let intervals = value["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 10);
    let total: u64 = intervals.iter().map(|interval| number(interval, "/completed")).sum();
    assert_eq!(total, 10_000);
    assert_eq!((number(&intervals[9], "/start_ns"), number(&intervals[9], "/end_ns")), (9 * S, 10 * S));
}

#[test]
fn the_sum_over_phases_is_what_a_server_counts() {
    for (name, run) in all_runs() {
        let value = json_of(&run);
        for phase in value["counts"]["phases"].as_object().unwrap().values() {
            let ops: u64 = phase["ops"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
            assert_eq!(ops, number(phase, "/requests/sent"), "{name}");
        }
        assert_eq!(value["counts"]["phases"]["measure"]["requests"], value["counts"]["requests"], "{name}");
    }
}

#[test]
fn faults_are_reported_in_full() {
    let value = json_of(&run::overload());
    let faults = value["events"]["faults"].as_array().unwrap().iter();
    let kinds: Vec<&str> = faults.filter_map(|fault| fault["kind"].as_str()).collect();
    assert_eq!(kinds, ["refused", "reset", "other"]);
    assert_eq!(value["events"]["faults"][0]["first_ns"], -1_500_000_000);
    assert_eq!(value["events"]["faults"][2]["errno"], 113);
    assert_eq!(value["events"]["first_malformed"]["class"], "main");
    let text = value["events"]["first_malformed"]["text"].as_str().unwrap();
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\\r\\n") && text.ends_with("\\x00\\xff"), "{text}");
    assert_eq!(value["events"]["first_error"], "SERVER_ERROR out of memory \\x1b[2J");
    assert_eq!(value["events"]["error_replies"].to_string(), r#"{"OOM":1040,"WRONGTYPE":7}"#);
    assert_eq!(value["events"]["pushes"], 3);
    assert_eq!(value["events"]["unmatched_replies"], 12);
    assert_eq!(value["events"]["recache"], serde_json::json!({ "won": 2, "stale": 5, "taken": 3 }));
    assert_eq!(value["window"]["interrupted"], true);
    assert_eq!(value["client"]["samples"], serde_json::json!({ "kept": 3, "overflow": 4_000 }));
    assert_eq!(value["status"]["value"], "INVALID");
}

#[test]
fn percentiles_that_were_asked_for_are_given_beside_the_usual_ones() {
    let run = run::open_loop();
    let mut record = run.summary.record.clone();
    let percentiles: Percentiles = "75,99.5,99.99".parse().unwrap();
    record.plan = record.plan.changed(|spec| spec.run.percentiles = Some(percentiles)).unwrap();
    let summary = brunt_stats::summary::Summary::build(record);
    let asked = serde_json::to_value(super::json::ResultTree::of(&summary).unwrap()).unwrap();
    let usual = json_of(&run);
    let mut times_ns: Vec<u64> = run.measured.iter().map(|sample| sample.times.response_ns()).collect();
    times_ns.sort_unstable();
    let latency = &asked["latency"];
    for (key, rank) in [("p75", 7_500), ("p99.5", 9_950)] {
        let (exact_ns, ns) = (times_ns[rank - 1], number(latency, &format!("/response_ns/{key}")));
        assert!(ns >= exact_ns && ns as f64 <= exact_ns as f64 * 1.001, "{key}: {ns} for {exact_ns}");
        let interval = &latency["response_ns"]["interval"][key];
        assert!(
            number(interval, "/0") <= ns && interval[1].as_u64().is_none_or(|high| ns <= high),
            "{interval}"
        );
        assert!(latency["response_ns"]["client"][key].is_u64(), "{latency}");
        assert_eq!(usual["latency"]["response_ns"][key], Value::Null);
    }
    assert_eq!(latency["response_ns"]["p99"], usual["latency"]["response_ns"]["p99"]);
    assert_eq!(asked["plan"]["percentiles"], "75,99.5,99.99");
    // Text has those that were asked for.
    let text = text::text_of(&summary, &text::PIPE);
    let heading = text.lines().find(|line| line.contains("p75")).unwrap();
    let columns: Vec<&str> = heading.split_whitespace().filter(|word| word.starts_with('p')).collect();
    assert_eq!(columns, ["p75", "p99.5", "p99.99"], "{text}");
    assert!(!text.contains("p90"), "{text}");
}

#[test]
fn every_plan_key_is_documented() {
    let plan_files = include_str!("../../../docs/plan-files.md");
    let keys: Vec<&str> = plan_files
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, [RunSpec::names(), ClassSpec::names()].concat(), "in the order of the options");
    assert!(plan_files.contains("`[[class]]`"));
}

#[test]
fn connections_servers_and_outages_are_reported() {
    let value = json_of(&run::churn());
    // 4 at first, one for each 100 of 5500 requests, one for each lost request, and one that was not over.
    let lost = 1_004 + 5;
    let connections = &value["client"]["connections"];
    let counts = ["begun", "established", "failed", "retired", "lost", "pending", "open"]
        .map(|key| connections[key].as_u64().unwrap());
    assert_eq!(counts, [4 + 55 + lost + 1, 4 + 55, lost, 55, 1, 1, 3]);
    for key in ["begun", "established", "failed", "retired", "lost"] {
        let phases = connections["phases"].as_object().unwrap().values();
        let sum: u64 = phases.map(|phase| phase[key].as_u64().unwrap()).sum();
        assert_eq!(sum, connections[key].as_u64().unwrap(), "{key}");
    }
    let connect_ns = (0..4).map(|_| 60_000).chain((0..55).map(|index| 60_000 + (index * 100 + 99) * 10));
    check_distribution("connect", &value["client"]["connections"]["connect_ns"], connect_ns.collect());
    // Every second get; 275 sets follow misses, which the first server has.
    let servers = serde_json::json!([
        { "server": "cache-1.example:11211", "answered": 2_750 + 275, "failed": 0, "unsent": 0, "abandoned": 0, "redirected": 0,
          "slots": 8_192 },
        { "server": "10.0.0.2:11212", "answered": 2_750 - lost, "failed": lost, "unsent": 0, "abandoned": 0, "redirected": 0,
          "slots": 8_000 },
    ]);
    let mut told = value["servers"].clone();
    let told_apart = told.as_array_mut().unwrap().iter_mut();
    let times: Vec<_> =
        told_apart.map(|server| server.as_object_mut().unwrap().remove("response_ns").unwrap()).collect();
    assert_eq!(told, servers);
    let timed: u64 = times.iter().map(|times| times["count"].as_u64().unwrap()).sum();
    assert_eq!(Some(timed), value["counts"]["requests"]["completed"].as_u64());
    let outages = value["events"]["outages"].as_array().unwrap();
    assert_eq!((outages.len(), value["events"]["outages_overflow"].as_u64()), (22 + 1 + 1 + 1, Some(5)));
    let gone = serde_json::json!({
        "server": "10.0.0.2:11212", "start_ns": 1_013_000_000, "end_ns": 3_020_000_000u64, "length_ns": 2_007_000_000,
        "recovered_ns": 3_200_000_000u64, "failed": 1_004, "kinds": ["refused", "reset"],
    });
    assert_eq!(outages.iter().filter(|outage| **outage == gone).count(), 1, "{outages:?}");
    let last = serde_json::json!({
        "server": "10.0.0.2:11212", "start_ns": 3_990_000_000u64, "end_ns": null, "length_ns": null,
        "recovered_ns": null, "failed": 5, "kinds": ["stalled"],
    });
    assert_eq!(outages.last(), Some(&last));
    assert_eq!(value["events"]["values_foreign"], 4_321);
}

#[test]
fn follow_ups_are_not_offered() {
    let value = json_of(&run::churn());
    assert_eq!(
        (&value["counts"]["rate"]["offered"], number(&value, "/counts/requests/followup")),
        (&Value::from(1_000.0), 200)
    );
    assert_eq!(number(&value, "/counts/requests/scheduled"), 4_200);
    assert_eq!(value["ops"]["set"]["counts"]["rate"]["offered"], 0.0);
}

fn csv_of(run: &Run) -> String {
    output(|out| csv::write(&run.summary, out))
}

#[test]
fn csv_has_a_line_per_second() {
    insta::assert_snapshot!(csv_of(&run::churn()));
}

/// Lengths of the lines, in milliseconds, with how many follow each other: of the warm-up, and of the window.
#[test]
fn lines_of_a_long_run_are_as_wide_as_its_slices() {
    type Lines<'a> = &'a [(i64, usize)];
    let table: [(u64, &str, Lines<'_>, Lines<'_>); 7] = [
        (60, "", &[(1_000, 2), (500, 1)], &[(1_000, 60)]),
        (120, "", &[(1_000, 2), (500, 1)], &[(1_000, 120)]),
        (121, "", &[(1_000, 2), (500, 1)], &[(1_200, 100), (1_000, 1)]),
        (250, "", &[(1_000, 2), (500, 1)], &[(1_600, 156), (400, 1)]),
        (250, "interval = '1s'", &[(1_000, 2), (500, 1)], &[(1_000, 250)]),
        (61, "interval = '300ms'", &[(300, 8), (100, 1)], &[(300, 203), (100, 1)]),
        (10, "interval = '1500ms'", &[(1_500, 1), (1_000, 1)], &[(1_500, 6), (1_000, 1)]),
    ];
    for (seconds, options, warmup, window) in table {
        let run = run::long(seconds, options);
        let text = csv_of(&run);
        let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
        for (phase, expected) in [("warmup", warmup), ("measure", window)] {
            let of_phase: Vec<&Vec<&str>> = lines.iter().filter(|cells| cells[2] == phase).collect();
            let number = |cell: &str| cell.parse::<i64>().unwrap();
            let lengths: Vec<i64> =
                of_phase.iter().map(|cells| (number(cells[1]) - number(cells[0])) / 1_000_000).collect();
            let found: Vec<(i64, usize)> =
                lengths.chunk_by(|one, other| one == other).map(|same| (same[0], same.len())).collect();
            assert_eq!(found, expected, "{seconds} {options} {phase}");
            for (cells, length_ms) in of_phase.iter().zip(lengths) {
                assert_eq!(number(cells[5]), length_ms / 20, "{seconds} {options} {cells:?}");
            }
        }
        assert_eq!(
            json_of(&run)["intervals"].as_array().unwrap().len(),
            window.iter().map(|(_, count)| count).sum::<usize>()
        );
    }
}

/// The columns of servers are of those that are there.
#[test]
fn a_server_that_is_down_leaves_the_others() {
    let mut run = run::open_loop();
    let cells = |run: &Run, second: usize| {
        let text = csv_of(run);
        let line = text.lines().nth(1 + second).unwrap();
        let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        [&cells[11], &cells[14], &cells[17]].map(|cell| cell.parse::<u64>().unwrap())
    };
    assert_eq!([2, 8].map(|second| cells(&run, second)), [[1_000, 1_000, 1]; 2]);
    // Another one, which says nothing any more from the fifth second on.
    let mut gone = ServerRecord::default();
    run.summary.record.run.server_records[0]
        .snapshots()
        .iter()
        .take(6)
        .for_each(|said| gone.push(said.clone()));
    run.summary.record.run.server_records.push(gone);
    assert_eq!(cells(&run, 2), [2_000, 2_000, 2]);
    assert_eq!(cells(&run, 8), [1_000, 1_000, 1]);
}

#[test]
fn lines_are_the_intervals_of_the_json() {
    for (name, run) in all_runs() {
        let (text, value) = (csv_of(&run), json_of(&run));
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let heading = lines.next().unwrap();
        let (warmup, measured): (Vec<_>, Vec<_>) = lines.partition(|line| line[2] == "warmup");
        let intervals = value["intervals"].as_array().unwrap();
        assert_eq!(measured.len(), intervals.len(), "{name}");
        for (line, interval) in measured.iter().zip(intervals) {
            let columns =
                heading.iter().zip(line).filter(|(key, _)| !matches!(**key, "phase" | "completed_per_s"));
            for (key, cell) in columns {
                let expected = match key.split_once('_') {
                    Some((part @ ("server" | "client"), of_part)) => &interval[part][of_part],
                    _ => &interval[*key],
                };
                let found = if cell.is_empty() { Value::Null } else { serde_json::from_str(cell).unwrap() };
                if let (Some(found), Some(expected)) = (found.as_f64(), expected.as_f64()) {
                    assert!((found - expected).abs() <= 5e-7, "{name}: {key} {found}, {expected}");
                    continue;
                }
                assert_eq!(&found, expected, "{name}: {key}");
            }
        }
        // Every request of these runs is sent at once and completed within a slice of time, or the server is too slow.
        let sum = |column: usize| warmup.iter().map(|line| line[column].parse::<u64>().unwrap()).sum::<u64>();
        let requests = &value["counts"]["phases"]["warmup"]["requests"];
        if name != "overload" {
            assert_eq!(
                (sum(4), sum(5)),
                (number(requests, "/sent"), number(requests, "/completed")),
                "{name}"
            );
        }
        let lines: Vec<[i64; 2]> = warmup
            .iter()
            .chain(&measured)
            .map(|line| [line[0], line[1]].map(|ns| ns.parse().unwrap()))
            .collect();
        assert!(lines.iter().all(|line| line.is_sorted()), "{name}");
        assert!(lines.windows(2).all(|pair| pair[0][1] == pair[1][0]), "{name}");
    }
}

/// Two runs of which something is asserted.
fn asserted() -> [Run; 2] {
    let assert_of = |run: Run, objectives: &[&str]| {
        let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
        Run { summary: run.summary.with_assertions(&objectives), ..run }
    };
    [
        assert_of(
            run::open_loop(),
            &[
                "get.p99 < 1ms",
                "p99.9 <= 1ms",
                "p99.99 < 5ms",
                "p99.9 < 1020us",
                "p99.9 < 900us",
                "hit >= 95%",
                "rate > 900",
                "mget.p50 < 1s",
            ],
        ),
        assert_of(run::overload(), &["errors < 0.1%", "unsent <= 0", "service.max < 1s"]),
    ]
}

#[test]
fn assertions_have_their_numbers() {
    let [open_loop, _] = asserted();
    let assertions = json_of(&open_loop)["status"]["assertions"].clone();
    let outcomes: Vec<_> = assertions.as_array().unwrap().iter().map(|held| &held["outcome"]).collect();
    let expected = ["holds", "undecided", "undecided", "holds", "fails", "fails", "holds", "undecided"];
    assert_eq!(outcomes, expected);
    let first = serde_json::json!({
        "text": "get.p99 < 1ms", "outcome": "holds", "value": json_of(&open_loop)["ops"]["get"]["latency"]["response_ns"]["p99"].as_f64(),
        "bound": 1e6, "requests": 9_000, "reached": 20, "reached_without_client": 10, "allowed": 90, "message": "182 us",
        "at_rate": null, "needs_requests": 0, "needs_ns": null,
    });
    assert_eq!(assertions[0], first);
    assert_eq!(assertions[2]["needs_requests"], 20_000);
}

fn junit_of(run: &Run) -> String {
    output(|out| Subject::Run(&run.summary).write(FileType::Junit.into(), out))
}

/// The percentiles of the table, as JUnit names them.
fn percentiles(run: &Run) -> Vec<String> {
    let shown = run.summary.record.plan.shown_quantiles();
    let rows = crate::run_document::latency::rows(&run.summary).into_iter();
    rows.flat_map(|row| {
        shown.iter().map(move |quantile| format!("{}.{quantile}", row.name('.'))).collect::<Vec<_>>()
    })
    .collect()
}

/// A percentile is an error exactly where the exit code is that of an INVALID run.
#[test]
fn junit_has_every_percentile() {
    let [open_loop, overload] = asserted();
    let errors = |run: &Run| {
        let text = junit_of(run);
        let cases = text.lines().filter(|line| line.contains("classname=\"brunt.percentiles\""));
        cases.filter(|line| line.contains("<error type=\"invalid\"")).count()
    };
    let names = percentiles(&overload);
    assert!(names.contains(&"get.p99".to_owned()), "{names:?}");
    assert_eq!((errors(&open_loop), errors(&overload)), (0, 3), "p50, p90 and p99");
}

#[test]
fn junit_of_assertions() {
    let [open_loop, overload] = asserted();
    insta::assert_snapshot!("junit_open_loop", junit_of(&open_loop));
    insta::assert_snapshot!("junit_overload", junit_of(&overload));
}

/// What an XML parser reads: every case once, the numbers of each kind, texts as they were.
#[test]
fn junit_is_xml() {
    for run in asserted().into_iter().chain(all_runs().map(|(_, run)| run)) {
        let text = junit_of(&run);
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let all = |tag: &'static str| document.descendants().filter(move |node| node.has_tag_name(tag));
        let names: Vec<&str> = all("testcase").map(|case| case.attribute("name").unwrap()).collect();
        let asserted = run.summary.assertions.iter().map(|held| held.objective.to_string());
        let status = &run.summary.status;
        let checked = status.checks.iter().map(|check| check.id.name().to_owned());
        assert_eq!(names, asserted.chain(checked).chain(percentiles(&run)).collect::<Vec<_>>());
        let root = document.root_element();
        for (attribute, tag) in
            [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
        {
            let sum =
                |node: roxmltree::Node<'_, '_>| node.attribute(attribute).unwrap().parse::<usize>().unwrap();
            assert_eq!(sum(root), all(tag).count(), "{attribute}");
            assert_eq!(sum(root), all("testsuite").map(sum).sum::<usize>(), "{attribute}");
        }
        for check in &status.checks {
            let case = all("testcase").find(|case| case.attribute("name") == Some(check.id.name())).unwrap();
            let body = case.first_element_child().unwrap();
            let said = body.text().or(body.attribute("message")).unwrap();
            // Control characters cannot be in XML.
            assert!(said.contains(&check.message.replace('\u{1b}', "\\u{1b}")), "{said}");
        }
        let has_errors = all("error").any(|error| error.attribute("type") == Some("invalid"));
        assert_eq!(has_errors, status.is_invalid());
    }
}
