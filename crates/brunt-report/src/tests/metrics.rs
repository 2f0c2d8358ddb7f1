//! OpenMetrics text, read by a reader that is not ours: every number of it is that of the result of the same run.

pub(super) mod reader;

use super::live::{begun, so_far};
use super::run::{self, MS, S};
use super::{Run, all_runs, json_of};
use crate::live::State;
use crate::metrics::{self, Bounds, HostCounters, OutageTotals, Scrape};
use brunt_plan::objective::Objective;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_stats::interval::Interval;
use brunt_stats::live_run::{LiveRun, RunSoFar};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::run_record::{RunData, RunRecord};
use brunt_stats::server::{OutageKind, OutageKinds, OutageSpan};
use brunt_stats::store::IntervalStore;
use reader::{Exposition, Sample, read};
use serde_json::Value;

fn text_of(state: State<'_>, objectives: &[&str], outages: &mut OutageTotals) -> String {
    let objectives: Vec<Objective> = objectives.iter().map(|text| text.parse().unwrap()).collect();
    let host = HostCounters { cpu_user_ns: 1_500_000_000, cpu_system_ns: 20_000_000, stolen_ns: None };
    let (plan_id, bounds) = ("0123456789abcdef", &Bounds::of(&objectives));
    metrics::text(state, &mut Scrape { plan_id, bounds, host, outages })
}

fn plan(text: &str) -> Plan {
    resolve(&PlanSpec::from_toml(text).unwrap(), &Host::of(vec![0], 1)).unwrap()
}

fn shown(state: State<'_>, objectives: &[&str]) -> Exposition {
    let text = text_of(state, objectives, &mut OutageTotals::default());
    read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What the text says of a run that has ended.
fn ended(run: &Run) -> Exposition {
    shown(State::Ended(&run.summary), &["p99 < 1234us"])
}

fn count(value: &Value) -> f64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count")) as f64
}

/// A count of all phases of a result.
fn of_phases(json: &Value, path: &str) -> f64 {
    json["counts"]["phases"]
        .as_object()
        .unwrap()
        .values()
        .map(|phase| count(phase.pointer(path).unwrap()))
        .sum()
}

#[test]
fn every_number_is_that_of_the_result() {
    let mut sides = [0, 0];
    for (name, run) in all_runs() {
        let (text, json) = (ended(&run), json_of(&run));
        check_counts(name, &text, &json);
        check_status(name, &text, &json);
        check_histograms(name, &text, &json, &mut sides);
    }
    assert!(sides.iter().all(|side| *side > 500), "{sides:?}");
}

fn check_counts(name: &str, text: &Exposition, json: &Value) {
    for (metric, key) in
        [("brunt_requests_scheduled_total", "scheduled"), ("brunt_requests_sent_total", "sent")]
    {
        assert_eq!(text.sum(metric, &[]), of_phases(json, &format!("/requests/{key}")), "{name} {key}");
    }
    for outcome in OutcomeClass::ALL.map(OutcomeClass::name) {
        let found = text.sum("brunt_requests_total", &[("outcome", outcome)]);
        assert_eq!(found, of_phases(json, &format!("/requests/{outcome}")), "{name} {outcome}");
    }
    for outcome in ["hit", "miss", "failed"] {
        let found = text.sum("brunt_keys_total", &[("outcome", outcome)]);
        assert_eq!(found, of_phases(json, &format!("/keys/{outcome}")), "{name} {outcome}");
    }
    for direction in ["tx", "rx"] {
        let found = text.sum("brunt_wire_bytes_total", &[("direction", direction)]);
        assert_eq!(found, of_phases(json, &format!("/bytes/{direction}")), "{name} {direction}");
    }
    let connections = &json["client"]["connections"];
    for event in ["begun", "established", "failed", "retired", "lost"] {
        let found = text.sum("brunt_connection_events_total", &[("event", event)]);
        assert_eq!(found, count(&connections[event]), "{name} {event}");
    }
    assert_eq!(text.sum("brunt_connections_open", &[]), count(&connections["open"]), "{name}");
    assert_eq!(
        text.sum("brunt_connect_seconds_count", &[]),
        count(&json["client"]["connections"]["connect_ns"]["count"]),
        "{name}"
    );
    let outages = json["events"]["outages"].as_array().unwrap();
    assert_eq!(text.sum("brunt_outages_total", &[]), outages.len() as f64, "{name}");
    let length_ns: u64 = outages.iter().filter_map(|outage| outage["length_ns"].as_u64()).sum();
    let found_ns = text.sum("brunt_outage_seconds_total", &[]) * 1e9;
    assert!((found_ns - length_ns as f64).abs() < 1.0, "{name}: {found_ns} of {length_ns}");
}

fn check_status(name: &str, text: &Exposition, json: &Value) {
    let status = json["status"]["value"].as_str().unwrap().to_lowercase();
    let holds = text.all("brunt_status").filter(|sample| sample.value == 1.0);
    assert!(holds.map(|sample| &sample.labels["brunt_status"]).eq([&status]), "{name}: {status}");
    assert_eq!(text.sum("brunt_phase", &[("brunt_phase", "ended")]), 1.0, "{name}");
    assert_eq!(text.sum("brunt_phase", &[]), 1.0, "{name}");
    let levels = ["ok", "caution", "invalid"];
    for check in json["status"]["checks"].as_array().unwrap() {
        let id = check["id"].as_str().unwrap();
        let found: Vec<f64> = text
            .all("brunt_check")
            .filter(|sample| sample.has("check", id))
            .map(|sample| sample.value)
            .collect();
        let level = levels.iter().position(|level| check["status"] == *level).map(|level| level as f64);
        assert_eq!(found, Vec::from_iter(level), "{name} {id}");
    }
    for worker in json["client"]["workers"].as_array().unwrap() {
        let label = worker["worker"].to_string();
        let busy = count(&worker["busy_ns"]) / count(&worker["wall_ns"]).max(1.0);
        let found = text.sum("brunt_worker_busy_ratio", &[("worker", &label)]);
        assert!((found - busy).abs() < 1e-9, "{name}: {found}, not {busy}");
    }
}

/// Counts and sums of histograms, and on which side of every bound each printed percentile lies.
fn check_histograms(name: &str, text: &Exposition, json: &Value, sides: &mut [u64; 2]) {
    let histograms = [("brunt_response_seconds", "response_ns"), ("brunt_service_seconds", "service_ns")];
    for (class, of_class) in json["client"]["classes"].as_object().unwrap() {
        for (op, of_op) in of_class["ops"].as_object().unwrap() {
            let labels = [("class", class.as_str()), ("op", op.as_str())];
            for (metric, key) in histograms {
                let held = &of_op["latency"][key];
                let values = count(&held["count"]);
                assert_eq!(text.sum(&format!("{metric}_count"), &labels), values, "{name} {labels:?}");
                let sum_ns = text.sum(&format!("{metric}_sum"), &labels) * 1e9;
                // The mean is printed to the nanosecond.
                let expected_ns = held["mean"].as_f64().unwrap_or(0.0) * values;
                assert!((sum_ns - expected_ns).abs() <= values / 2.0 + 1.0, "{name} {sum_ns} {expected_ns}");
                let is_its = |sample: &&Sample| labels.iter().all(|(label, value)| sample.has(label, value));
                for bucket in text.all(&format!("{metric}_bucket")).filter(is_its) {
                    check_bucket(bucket, held, values, sides);
                }
            }
        }
    }
}

fn check_bucket(bucket: &Sample, held: &Value, values: f64, sides: &mut [u64; 2]) {
    let Ok(bound) = bucket.labels["le"].parse::<f64>() else { return };
    for (key, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        let Some(percentile_ns) = held[key].as_f64() else { continue };
        let is_within = percentile_ns <= (bound * 1e9).round();
        sides[usize::from(is_within)] += 1;
        let rank = (share * values - 1e-6).ceil();
        assert_eq!(
            bucket.value >= rank,
            is_within,
            "{bucket:?}, and {key} is {percentile_ns} ns of {values}"
        );
    }
}

#[test]
fn bounds_are_the_same_in_every_run_but_for_objectives() {
    let bounds = |objectives: &[&str]| {
        let run = begun(&plan("rate = 1000"));
        let found = shown(State::Running(&run), objectives);
        let of_gets = found.all("brunt_response_seconds_bucket").filter(|sample| sample.has("op", "get"));
        of_gets.map(|sample| sample.labels["le"].clone()).collect::<Vec<_>>().join(" ")
    };
    let fixed = "0.00001 0.000016 0.000025 0.00004 0.000063 0.0001 0.00016 0.00025 0.0004 0.00063 0.001 0.0016 0.0025 \
                 0.004 0.0063 0.01 0.016 0.025 0.04 0.063 0.1 0.16 0.25 0.4 0.63 1 1.6 2.5 4 6.3 10 +Inf";
    assert_eq!(bounds(&[]), fixed);
    assert_eq!(bounds(&["p99 < 1ms", "hit > 90%", "rate > 1k"]), fixed);
    let own = fixed.replace("0.0016 ", "0.001234 0.0016 ").replace("10 ", "10 70 ");
    assert_eq!(bounds(&["p99 < 1234us", "service.p50 <= 70s", "get.p99.9 < 1234us"]), own);
}

/// However large a plan is, its series are bounded, no two are the same, and nothing is lost in what they share.
#[test]
fn series_are_bounded() {
    let classes = |count: usize, mix: &str| {
        let class = |index: usize| format!("[[class]]\nname = 'c{index}'\nkeys = 10\nmix = '{mix}'\n");
        (0..count).map(class).collect::<String>()
    };
    let all =
        "get=1,gets=1,mget=1,set=1,add=1,replace=1,append=1,prepend=1,cas=1,incr=1,decr=1,delete=1,touch=1";
    let servers = |count: usize| {
        let names: Vec<String> =
            (0..count).map(|index| format!("'10.0.{}.{}:11211'", index / 200, index % 200)).collect();
        format!("connections = {count}\nserver = [{}]\n", names.join(","))
    };
    // Plan, bounds of objectives → how many rows have a name of their own, and whether the rest is one.
    let table = [
        (classes(1, "get=9,set=1"), 0, 2, false),
        (classes(16, "get=9,set=1"), 0, 32, false),
        (classes(17, "get=9,set=1"), 0, 30, true),
        (classes(3, all), 0, 39, false),
        (classes(16, all), 0, 40, true),
        (classes(16, all), 60, 15, true),
        (servers(64) + "mix = 'get=9,set=1'", 0, 2, false),
        (servers(200) + "mix = 'get=9,set=1'", 0, 2, false),
    ];
    for (text, objectives, named, has_rest) in table {
        let objectives: Vec<String> =
            (0..objectives).map(|index| format!("p99 < {}us", 1_000 + index * 7)).collect();
        let objectives: Vec<&str> = objectives.iter().map(String::as_str).collect();
        let run = begun(&plan(&text));
        let found = shown(State::Running(&run), &objectives);
        let samples: usize = found.0.len();
        let start: String = text.chars().take(60).collect();
        assert!(samples <= 5_000, "{start}: {}", samples);
        let rows = || found.all("brunt_requests_sent_total");
        let own = rows().filter(|sample| !sample.has("op", "other")).count();
        assert_eq!((own, rows().count() > own), (named, has_rest), "{start} {}", samples);
        let has_merged = found.sum("brunt_merged_series", &[]) > 0.0;
        assert_eq!(has_merged, has_rest || text.matches("10.0.").count() > 64, "{start}");
        assert!(found.all("brunt_outages_total").count() <= 64);
    }
}

#[test]
fn before_the_first_run_there_is_a_phase() {
    let found = shown(State::Starting, &[]);
    assert_eq!(found.sum("brunt_phase", &[("brunt_phase", "starting")]), 1.0);
    assert!(found.0.iter().all(|sample| sample.name == "brunt_phase"), "{found:?}");
}

#[test]
fn a_live_run_has_no_status() {
    let (_, run) = all_runs().into_iter().next().unwrap();
    let live = so_far(&run, run.summary.window.measure_ns + S);
    let found = shown(State::Running(&live), &[]);
    assert_eq!(found.sum("brunt_status", &[("brunt_status", "pending")]), 1.0);
    assert_eq!(found.sum("brunt_status", &[]), 1.0);
    assert_eq!(found.sum("brunt_phase", &[("brunt_phase", "measure")]), 1.0);
    for absent in ["brunt_worker_busy_ratio", "brunt_host_stolen_seconds"] {
        assert!(found.0.iter().all(|sample| !sample.name.starts_with(absent)), "{absent}");
    }
    assert_eq!(found.sum("brunt_client_cpu_seconds_total", &[("mode", "user")]), 1.5);
    let info = found.all("brunt_run_info").next().unwrap();
    assert!(
        info.has("loop", "open")
            && info.has("protocol", "memcached-text")
            && info.has("plan", "0123456789abcdef")
    );
    assert_eq!(shown(State::Failed(&live), &[]).sum("brunt_phase", &[("brunt_phase", "failed")]), 1.0);
}

/// Each second the shares of the last one, of workers that told, at the end those of the window; checks as far as they are known.
#[test]
fn a_live_run_tells_how_busy_workers_are_and_its_checks_so_far() {
    let (_, run) = all_runs().into_iter().next().unwrap();
    let (summary, intervals) = (&run.summary, &run.intervals);
    let mut live = LiveRun::new(RunRecord { run: RunData::default(), ..summary.record.clone() });
    live.start(&summary.record.run);
    let mut busy = Vec::new();
    for second in intervals[..20].chunks(10) {
        second.iter().for_each(|interval| live.push(interval));
        live.push(&Interval { worker: 1, worker_time: None, ..second[9].clone() });
        let at_ns = live.tick(second[9].end_ns).unwrap();
        let so_far = live.so_far(at_ns, &summary.record.run.intervals);
        let found = shown(State::Running(&so_far), &[]);
        let time = |interval: &Interval| interval.worker_time.unwrap().busy_ns;
        let expected = second.iter().map(time).sum::<u64>() as f64
            / second.iter().map(|interval| interval.end_ns - interval.start_ns).sum::<u64>() as f64;
        let share = found.sum("brunt_worker_busy_ratio", &[("worker", "0")]);
        assert!((share - expected).abs() < 1e-9, "{share}, not {expected}");
        busy.push(share);
        let workers: Vec<_> =
            found.all("brunt_worker_busy_ratio").map(|sample| sample.labels["worker"].as_str()).collect();
        assert_eq!(workers, ["0"], "nothing is known of the other");
        // So short a window is not judged for being steady.
        assert_eq!(checks_in(&found), ["BROKEN", "LOAD", "CLIENT", "DATA"]);
        assert_eq!(found.sum("brunt_status", &[("brunt_status", "pending")]), 1.0);
    }
    assert_ne!(busy[0], busy[1]);
    let found = shown(State::Running(&so_far(&run, summary.window.end_ns)), &[]);
    assert_eq!(checks_in(&found), ["BROKEN", "LOAD", "CLIENT", "DATA", "STEADY"]);
}

fn checks_in(found: &Exposition) -> Vec<&str> {
    found.all("brunt_check").map(|sample| sample.labels["check"].as_str()).collect()
}

/// A worker that tells later of the same trouble shows that it was shorter: until the run has ended nothing is taken back.
#[test]
fn outages_never_fall() {
    let run = run::open_loop();
    let layout = Layout::of(&run.summary.record.plan);
    let (mut store, mut set) = (IntervalStore::new(&layout), RecorderSet::new(&layout));
    let (mut outages, mut seen) = (OutageTotals::default(), Vec::new());
    for (start_ms, end_ms) in [(0, 1_000), (600, 1_200), (5_000, 5_500)] {
        let kinds = OutageKinds::NONE.with(OutageKind::Refused);
        set.outage(OutageSpan { server: 0, start_ns: start_ms * MS, end_ns: end_ms * MS, failed: 1, kinds });
        store.push(&set.take_interval(0, start_ms * MS, end_ms * MS));
        let data = RunData { intervals: store.clone(), ..RunData::default() };
        let record = RunRecord { run: data, ..run.summary.record.clone() };
        let so_far = RunSoFar::new(record, None, end_ms * MS, Vec::new());
        let found = read(&text_of(State::Running(&so_far), &[], &mut outages)).unwrap();
        seen.push(["brunt_outages_total", "brunt_outage_seconds_total"].map(|name| found.sum(name, &[])));
    }
    // The first two are one of 400 ms.
    assert_eq!(seen, [[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]]);
}

/// Whatever the texts of labels are.
#[test]
fn hostile_labels_are_read() {
    let plan = plan(r#"server = ['unix:/a "b\c"=,{} d', 'unix:/é €']"#);
    let found = shown(State::Running(&begun(&plan)), &[]);
    for server in [0, 1].map(|index| plan.server_name(index).unwrap()) {
        assert!(found.all("brunt_outages_total").any(|sample| sample.has("server", &server)), "{server}");
    }
}
