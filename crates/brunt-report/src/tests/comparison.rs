//! Results that are read back and compared: whole reports, and what is wrong with a result by name.

use super::{json_of, run};
use crate::comparison::Comparison;
use crate::junit;
use crate::result::{self, RunResult};
use serde_json::{Value, json};

/// The run of an open loop as it is written, with this seed, and response times and cost so many times as high.
fn written(seed: u64, factor: f64) -> Value {
    let mut value = json_of(&run::open_loop());
    value["seed"] = json!(seed);
    value["plan"]["seed"] = json!(seed);
    value["plan"]["server"] = json!(["cache-1.example"]);
    value["server"] = json!("cache-1.example:11211");
    let mut scale = |path: &str| {
        if let Some(held) = value.pointer_mut(path)
            && let Some(number) = held.as_f64()
        {
            *held = json!((number * factor).round() as u64);
        }
    };
    ["p50", "p99", "p999", "mean", "max"]
        .iter()
        .for_each(|key| scale(&format!("/latency/response_ns/{key}")));
    for key in ["p50", "p99", "p999"] {
        ["0", "1"].iter().for_each(|end| scale(&format!("/latency/interval_ns/{key}/{end}")));
    }
    scale("/ops/get/latency/response_ns/p99");
    scale("/client/cpu_ns_per_request");
    value
}

fn read(name: &str, value: &Value) -> Vec<RunResult> {
    result::read(&value.to_string(), name).unwrap()
}

/// So many runs that differ by 2 % and less among themselves.
fn side(name: &str, runs: u64, factor: f64) -> Vec<RunResult> {
    let run = |index: u64| {
        let jitter = 1.0 + (index * 7 % 5) as f64 * 0.004 + index as f64 * 0.000_1;
        read(&format!("{name}{}.json", index + 1), &written(100 + index, factor * jitter))
    };
    (0..runs).flat_map(run).collect()
}

fn text_of(comparison: &Comparison) -> String {
    let mut out = Vec::new();
    comparison.write_text(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 110, "{line:?} is too long");
        assert!(line == line.trim_end() && !line.contains(char::is_control), "{line:?}");
    }
    text
}

fn junit_of(comparison: &Comparison, allow_untrusted: bool) -> String {
    let mut out = Vec::new();
    junit::write_comparison(comparison, allow_untrusted, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn compared(a: Vec<RunResult>, b: Vec<RunResult>, required: &[&str]) -> Comparison {
    let required: Vec<_> = required.iter().map(|text| text.parse().unwrap()).collect();
    Comparison::of(a, b, &required).unwrap()
}

#[test]
fn b_is_slower() {
    let required = [
        "p99 <= +5%",
        "get.p99 <= +12%",
        "mean <= +50%",
        "hit >= -1%",
        "set.p99.9 <= +5%",
        "p99 < 1ms",
        "p99 < 206us",
        "mean < 152us",
        "p50 < 1us",
        "hit >= 90%",
        "set.p99.9 < 1s",
    ];
    let comparison = compared(side("a", 6, 1.0), side("b", 6, 1.12), &required);
    insta::assert_snapshot!("compare_slower", text_of(&comparison));
    insta::assert_snapshot!("compare_slower_junit", junit_of(&comparison, false));
    assert!(comparison.is_missed());
    let mut out = Vec::new();
    comparison.write_json(&mut out).unwrap();
    let value: Value = serde_json::from_slice(&out).unwrap();
    let assertions = value["assertions"].as_array().unwrap().iter();
    let statuses: Vec<_> = assertions
        .map(|held| (held["status"].as_str().unwrap(), held["beyond_doubt"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        statuses,
        [
            ("fails", true),
            ("holds", false),
            ("holds", true),
            ("holds", true),
            ("unknown", false),
            ("holds", true),
            ("holds", false),
            ("fails", false),
            ("fails", true),
            ("holds", true),
            ("unknown", false)
        ]
    );
    let p99 = value["quantities"].as_array().unwrap().iter().find(|held| held["quantity"] == "p99").unwrap();
    assert_eq!(p99["finding"], "above");
    assert!((p99["change"].as_f64().unwrap() - 0.12).abs() < 0.001, "{p99}");
    assert!((p99["p"].as_f64().unwrap() - 2.0 / 924.0).abs() < 1e-12, "{p99}");
}

/// Every path of a comparison with something in each, but for the plans and the quantities, which have names of their own.
pub(super) fn key_paths() -> Vec<String> {
    let mut b = side("b", 4, 1.001);
    b.iter_mut().for_each(|run| {
        run.version = "0.2.0".to_owned();
        run.plan.remove("timeout");
    });
    let mut out = Vec::new();
    compared(side("a", 4, 1.0), b, &["p99 <= +5%"]).write_json(&mut out).unwrap();
    let mut found = Vec::new();
    super::paths(&serde_json::from_slice(&out).unwrap(), "", &mut found);
    found.retain(|path| {
        !path.contains(".plan.") && !path.contains(".numbers.") && !path.contains(".intervals.")
    });
    found
}

#[test]
fn json_keys() {
    insta::assert_snapshot!("compare_json_keys", key_paths().join("\n"));
}

#[test]
fn equal_sides() {
    let comparison = compared(side("a", 6, 1.0), side("b", 6, 1.001), &["p99 <= +5%"]);
    insta::assert_snapshot!("compare_equal", text_of(&comparison));
    assert!(!comparison.is_missed() && !comparison.has_untrusted());
}

#[test]
fn single_runs_show_nothing() {
    let comparison =
        compared(side("a", 1, 1.0), side("b", 1, 2.0), &["p99 <= +5%", "p99 < 1ms", "rate > 9k"]);
    insta::assert_snapshot!("compare_single", text_of(&comparison));
    assert!(comparison.is_missed());
    assert!(!compared(side("a", 1, 1.0), side("b", 1, 2.0), &["p99 < 1ms"]).is_missed());
}

#[test]
fn few_runs_show_nothing() {
    let comparison = compared(side("a", 1, 1.0), side("b", 3, 2.0), &["p99 <= +5%", "p99 < 1ms"]);
    insta::assert_snapshot!("compare_few", text_of(&comparison));
    // Two each: no run's own interval is shown. Shorter than a second: no run has one.
    let two = text_of(&compared(side("a", 2, 1.0), side("b", 2, 2.0), &[]));
    assert!(
        two.contains("2 runs against 2: [..] of several runs is the lowest and the highest of a time; no"),
        "{two}"
    );
    let bare = |name: &str, factor: f64| {
        let mut value = written(100, factor);
        value["latency"]["interval_ns"] = json!({});
        read(name, &value)
    };
    let bare = text_of(&compared(bare("a.json", 1.0), bare("b.json", 2.0), &[]));
    assert!(
        bare.contains("runs differ among themselves is unknown; no claim") && !bare.contains('['),
        "{bare}"
    );
}

/// The range of five runs holds the median with less than 95 %; the interval of a change has its 95 % from four runs on.
#[test]
fn a_range_is_beyond_doubt_from_six_runs_on() {
    for (runs, expected) in [(4, [true, false, false]), (5, [true, false, false]), (6, [true, true, true])] {
        let required = ["p99 <= +5%", "p99 < 1us", "p99 < 1s"];
        let comparison = compared(side("a", runs, 1.0), side("b", runs, 2.0), &required);
        let beyond_doubt: Vec<bool> =
            comparison.asserted().iter().map(|asserted| asserted.is_beyond_doubt).collect();
        assert_eq!(beyond_doubt, expected, "{runs} runs");
    }
}

/// Plans and hosts that differ, a server that was not answering, a value that one run does not have.
#[test]
fn unequal_sides() {
    let b = (0..4).flat_map(|index| {
        let mut value = written(200 + index, 1.0 + 0.3 * index as f64);
        value["plan"]["class"][0]["connections"] = json!(32);
        value["plan"]["class"][0]["depth"] = Value::Null;
        value["environment"]["kernel"] = json!("6.2.0 \u{1b}[2J");
        if index == 2 {
            value["latency"]["response_ns"]["p999"] = Value::Null;
            value["verdict"] =
                json!({ "status": "NOT TRUSTED", "checks": [{ "id": "LAG", "status": "not_trusted" }] });
        }
        read(&format!("b{index}.json"), &value)
    });
    let comparison = compared(side("a", 4, 1.0), b.collect(), &[]).interrupted();
    insta::assert_snapshot!("compare_unequal", text_of(&comparison));
    let errors = |allow_untrusted| junit_of(&comparison, allow_untrusted).matches("<error ").count();
    assert_eq!((errors(false), errors(true)), (1, 0));
    assert!(comparison.has_untrusted() && comparison.is_interrupted() && !comparison.is_missed());
}

/// What a person is left with: the last line, without its breaks.
fn last_line(comparison: &Comparison) -> String {
    let text = text_of(comparison);
    text.rsplit("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Four runs whose times go up by a fifth from run to run, whose other numbers are those of every run.
fn scattered(change: impl Fn(&mut Value, u64)) -> Vec<RunResult> {
    let run = |index: u64| {
        let mut value = written(300 + index, 1.0 + 0.2 * index as f64);
        change(&mut value, index);
        read(&format!("c{index}.json"), &value)
    };
    (0..4).flat_map(run).collect()
}

/// The answer is that of the rows: no difference is shown of a whole comparison only where its main rows show none.
#[test]
fn the_last_line_is_what_the_rows_say() {
    let all_undecided = compared(side("a", 4, 1.0), scattered(|_, _| {}), &[]);
    assert_eq!(
        last_line(&all_undecided),
        "CANNOT TELL whether A and B differ · undecided: p50, p99, p99.9, mean, client CPU more runs narrow it: --repeat 8"
    );
    // Only what is beside the main rows: the cost of a request.
    let like_a = |value: &mut Value, index: u64| {
        let cost = value["client"]["cpu_ns_per_request"].clone();
        *value = written(300 + index, 1.0 + index as f64 * 0.001);
        value["client"]["cpu_ns_per_request"] = cost;
    };
    let cost_undecided = compared(side("a", 4, 1.0), scattered(like_a), &[]);
    assert_eq!(last_line(&cost_undecided), "NO DIFFERENCE SHOWN · undecided: client CPU");
    // A p99 that one run is too short for.
    let too_short = |value: &mut Value, index: u64| {
        *value = written(300 + index, 1.0 + index as f64 * 0.001);
        if index == 1 {
            value["latency"]["response_ns"]["p99"] = Value::Null;
        }
    };
    let missing = compared(side("a", 4, 1.0), scattered(too_short), &[]);
    assert_eq!(
        last_line(&missing),
        "CANNOT TELL whether A and B differ · undecided: p99 · longer runs have the percentiles that are missing"
    );
    assert_eq!(last_line(&compared(side("a", 4, 1.0), side("b", 4, 1.001), &[])), "NO DIFFERENCE SHOWN");
    let slower = last_line(&compared(side("a", 4, 1.0), side("b", 4, 1.5), &[]));
    assert!(slower.starts_with("B DIFFERS: p50 +50.0 %"), "{slower}");
    let few = last_line(&compared(side("a", 4, 1.0), side("b", 3, 1.5), &[]));
    assert_eq!(few, "CANNOT TELL whether A and B differ: fewer than 4 runs on a side");
}

/// A percentile has a row if any run gives it, on whichever side: that it cannot be told is said, not left out.
#[test]
fn a_number_of_some_runs_has_a_row() {
    let without = |name: &str, factor: f64, missing: &[u64]| -> Vec<RunResult> {
        let run = |index: u64| {
            let mut value = written(100 + index, factor);
            if missing.contains(&index) {
                value["latency"]["response_ns"]["p99"] = Value::Null;
            }
            read(&format!("{name}{index}.json"), &value)
        };
        (0..4).flat_map(run).collect()
    };
    let row = |comparison: &Comparison| {
        let text = text_of(comparison);
        let row = text.lines().find(|line| line.starts_with("p99 ")).map(str::to_owned);
        row.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let some = compared(without("a", 1.0, &[0]), without("b", 1.001, &[1, 2, 3]), &[]);
    assert_eq!(row(&some).as_deref(), Some("p99 - - - cannot tell: not in every run"));
    let none = compared(without("a", 1.0, &[0, 1, 2, 3]), without("b", 1.001, &[0, 1, 2, 3]), &[]);
    assert_eq!(row(&none), None);
    let nothing = |name: &str, factor: f64| -> Vec<RunResult> {
        let run = |index: u64| {
            let mut value = written(100 + index, factor);
            value["client"]["cpu_ns_per_request"] = json!(0);
            read(&format!("{name}{index}.json"), &value)
        };
        (0..4).flat_map(run).collect()
    };
    let text = text_of(&compared(nothing("a", 1.0), nothing("b", 1.001), &[]));
    assert!(text.contains("cannot tell: 0 in a run"), "{text}");
}

#[test]
fn a_run_counts_once() {
    let twice = [side("a", 3, 1.0), read("again.json", &written(100, 1.0))].concat();
    let error = Comparison::of(twice, side("b", 1, 1.0), &[]).unwrap_err();
    assert!(error.starts_with("'a1.json' and 'again.json' hold the same run; accepted:"), "{error}");
    let error = Comparison::of(side("a", 1, 1.0), side("b", 1, 1.0), &[]).unwrap_err();
    assert!(error.starts_with("'a1.json' and 'b1.json' hold the same run; accepted:"), "{error}");
    let error = Comparison::of(side("a", 51, 1.0), side("b", 1, 1.0), &[]).unwrap_err();
    assert_eq!(error, "A has 51 runs; accepted: up to 50");
}

#[test]
fn every_run_of_a_campaign_is_read() {
    let campaign =
        |kind: &str, runs: &[Value]| json!({ "schema": "brunt.campaign.v1", "kind": kind, "runs": runs });
    let runs = read("r.json", &campaign("repeat", &[written(1, 1.0), written(2, 1.0)]));
    assert_eq!(
        runs.iter().map(|run| run.source.as_str()).collect::<Vec<_>>(),
        ["r.json, run 1", "r.json, run 2"]
    );
    assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2]);
    for (value, expected) in [
        (campaign("scan", &[written(1, 1.0)]), "r.json: kind: 'scan' was found; accepted:"),
        (campaign("repeat", &[]), "r.json: runs: there is none; accepted:"),
        (campaign("repeat", &[json!({})]), "r.json, run 1: schema: missing"),
    ] {
        let error = result::read(&value.to_string(), "r.json").unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// What a run says of itself is what is read back from its JSON.
#[test]
fn numbers_are_those_of_the_summary() {
    for (name, run) in super::all_runs() {
        let direct = RunResult::of(&run.summary, "here").unwrap();
        let read = result::read(&super::json_text_of(&run), "here").unwrap();
        assert_eq!(read, std::slice::from_ref(&direct), "{name}");
        for text in [
            "p50 < 1s",
            "p99 < 1s",
            "mean < 1s",
            "service.max < 1s",
            "rate > 1",
            "hit > 0",
            "errors < 1",
            "unsent < 1",
        ] {
            let objective: brunt_plan::objective::Objective = text.parse().unwrap();
            let expected = brunt_stats::assertion::Assertion::of(objective, &run.summary).measured;
            let found = direct.number(&objective.subject);
            // JSON has a mean to the nanosecond.
            let is_same = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() <= 0.5,
                (found, expected) => found == expected,
            };
            assert!(is_same, "{name}: {text}: {found:?}, {expected:?}");
        }
    }
}

#[test]
fn broken_results_name_the_key() {
    let without = |path: &str, key: &str| {
        let mut value = written(1, 1.0);
        value.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(key);
        value.to_string()
    };
    let with = |path: &str, broken: Value| {
        let mut value = written(1, 1.0);
        *value.pointer_mut(path).unwrap() = broken;
        value.to_string()
    };
    let table = [
        (String::new(), "no JSON: EOF"),
        ("{\"schema\": ".to_owned(), "no JSON: EOF"),
        ("[]".to_owned(), "schema: 'nothing' was found; accepted: 'brunt.summary.v1'"),
        (with("/schema", json!("brunt.summary.v2")), "schema: 'brunt.summary.v2' was found; accepted:"),
        (without("", "latency"), "latency: missing"),
        (without("/latency/response_ns", "p99"), "latency.response_ns.p99: missing"),
        (with("/latency/response_ns/p99", json!("slow")), "latency.response_ns.p99: slow is no number"),
        (with("/ops/get/requests/sent", json!(-1)), "ops.get.requests.sent: -1 is no count"),
        (with("/ops", json!({ "fetch": {} })), "ops.fetch: no operation is called 'fetch'"),
        (with("/seed", json!(1.5)), "seed: 1.5 is no count"),
        (with("/plan", Value::Null), "plan: null is no object"),
        (with("/verdict/status", json!("FINE")), "verdict.status: 'FINE' is no status"),
        (
            with("/verdict/checks", json!([{ "status": "caution", "id": 7 }])),
            "verdict.checks[0].id: 7 is no text",
        ),
        (with("/verdict/checks", json!("\u{1b}[2J")), "verdict.checks: \\u{1b}[2J is no list"),
        (with("/latency/interval_ns/p50", json!([1])), "latency.interval_ns.p50: [1] is no interval"),
        (with("/latency/interval_basis", json!({})), "latency.interval_basis.p50: missing"),
        (with("/interrupted", json!("no")), "interrupted: no is no true or false"),
    ];
    for (text, expected) in table {
        let error = result::read(&text, "out.json").unwrap_err();
        assert!(error.starts_with(&format!("out.json: {expected}")), "{expected}: {error}");
    }
}
