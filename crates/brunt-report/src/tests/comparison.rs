//! Results that are read back and compared: whole reports, and what is wrong with a result by name.

use super::html::BYTES_MAX;
use super::schema::reader::errors;
use super::{json_of, output, run};
use crate::comparison::{AssertionRow, Comparison, EarlyEnd};
use crate::document::Level;
use crate::file_type::FileType;
use crate::layout::Layout;
use crate::result::{self, RunResult};
use crate::stored::StoredResult;
use crate::subject::Subject;
use brunt_plan::objective::Requirement;
use brunt_stats::change::Design;
use brunt_stats::usage::AgentRecord;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::LazyLock;

/// The run of an open loop as it is written, with this seed, and response times and cost so many times as high. No worker slept.
fn written(seed: u64, factor: f64) -> Value {
    static MEASURED: LazyLock<Value> = LazyLock::new(|| json_of(&run::open_loop()));
    let mut value = MEASURED.clone();
    value["plan"]["seed"] = json!(seed);
    value["plan"]["server"] = json!(["cache-1.example"]);
    value["host"]["server"] = json!("cache-1.example:11211");
    value["client"]["wait"] = json!("spin");
    let mut scale = |path: &str| {
        if let Some(held) = value.pointer_mut(path)
            && let Some(number) = held.as_f64()
        {
            *held = json!((number * factor).round() as u64);
        }
    };
    ["p50", "p99", "p99.9", "mean", "max"]
        .iter()
        .for_each(|key| scale(&format!("/latency/response_ns/{key}")));
    scale("/ops/get/latency/response_ns/p99");
    for key in ["p50", "p99", "p99.9"] {
        ["0", "1"].iter().for_each(|end| scale(&format!("/latency/response_ns/interval/{key}/{end}")));
    }
    scale("/client/cpu_ns_per_request");
    for row in ["", "/ops/get"] {
        let latency = value.pointer_mut(&format!("{row}/latency")).unwrap();
        latency["including_failures_ns"] = latency["response_ns"].clone();
        latency["least_ns"] = latency["response_ns"].clone();
        for key in ["including_failures_ns", "least_ns"] {
            let held = latency[key].as_object_mut().unwrap();
            held.retain(|_, value| !value.is_object());
        }
        for least_ns in latency["least_ns"].as_object_mut().unwrap().values_mut() {
            *least_ns = json!(least_ns.as_f64().map(|ns| (ns * 0.999).round() as u64));
        }
    }
    value
}

/// Makes LOAD say INVALID, and no other check anything.
fn invalidate(value: &mut Value) {
    value["status"]["value"] = json!("INVALID");
    for check in value["status"]["checks"].as_array_mut().unwrap() {
        check["status"] = json!(if check["id"] == "LOAD" { "invalid" } else { "ok" });
    }
}

fn read(name: &str, value: &Value) -> Vec<RunResult> {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove("record");
    value["intervals"] = json!([]);
    vec![RunResult { source: name.to_owned(), result: serde_json::from_value(value).unwrap() }]
}

/// A side of these runs.
fn made(name: &str, runs: Range<u64>, of: impl Fn(u64) -> Value) -> Vec<RunResult> {
    runs.flat_map(|index| read(&format!("{name}{index}.json"), &of(index))).collect()
}

/// So many runs that differ by 2 % and less among themselves.
fn side(name: &str, runs: u64, factor: f64) -> Vec<RunResult> {
    made(name, 1..runs + 1, |index| {
        let jitter = 1.0 + ((index - 1) * 7 % 5) as f64 * 0.004 + (index - 1) as f64 * 0.000_1;
        written(99 + index, factor * jitter)
    })
}

fn text_of(comparison: &Comparison) -> String {
    let text = output(|out| Subject::Comparison(comparison).write_text(&Layout::default(), Level::Long, out));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line:?} is too long");
        assert!(line == line.trim_end() && !line.contains(char::is_control), "{line:?}");
    }
    text
}

fn file_of(comparison: &Comparison, file_type: FileType) -> String {
    output(|out| Subject::Comparison(comparison).write(file_type.into(), out))
}

fn junit_of(comparison: &Comparison) -> String {
    file_of(comparison, FileType::Junit)
}

/// The JSON, and what it says of the p99.
fn json_and_p99(comparison: &Comparison) -> (Value, Value) {
    let value: Value = serde_json::from_str(&file_of(comparison, FileType::Json)).unwrap();
    let is_p99 = |held: &&Value| held["quantity"] == "p99";
    let p99 = value["quantities"].as_array().unwrap().iter().find(is_p99).unwrap().clone();
    (value, p99)
}

fn compared(a: Vec<RunResult>, b: Vec<RunResult>, required: &[&str]) -> Comparison {
    compared_as(Design::Apart, a, b, required)
}

fn compared_as(design: Design, a: Vec<RunResult>, b: Vec<RunResult>, required: &[&str]) -> Comparison {
    let required: Vec<_> = required.iter().map(|text| text.parse().unwrap()).collect();
    Comparison::of(design, a, b, &required).unwrap()
}

#[test]
fn b_is_slower() {
    let expected = [
        ("p99 <= +5%", "fails"),
        ("get.p99 <= +12%", "undecided"),
        ("mean <= +50%", "holds"),
        ("hit >= -1%", "holds"),
        ("set.p99.9 <= +5%", "undecided"),
        ("p99 < 1ms", "holds"),
        ("p99 < 206us", "undecided"),
        ("mean < 152us", "undecided"),
        ("p50 < 1us", "fails"),
        ("hit >= 90%", "holds"),
        ("set.p99.9 < 1s", "undecided"),
    ];
    let required = expected.map(|(requirement, _)| requirement);
    let comparison = compared(side("a", 6, 1.0), side("b", 6, 1.12), &required);
    insta::assert_snapshot!("compare_slower", text_of(&comparison));
    insta::assert_snapshot!("compare_slower_junit", junit_of(&comparison));
    assert!(comparison.is_missed() && comparison.is_undecided());
    let (value, p99) = json_and_p99(&comparison);
    let assertions = value["assertions"].as_array().unwrap().iter();
    let text = |held: &Value, key: &str| held[key].as_str().map(str::to_owned);
    for (held, (requirement, status)) in assertions.zip(expected) {
        assert_eq!(text(held, "requirement").as_deref(), Some(requirement));
        assert_eq!(text(held, "status").as_deref(), Some(status), "{held}");
        assert_eq!(held["reason"].is_null(), status != "undecided", "{held}");
    }
    assert_eq!((&p99["finding"], &p99["message"]), (&json!("SLOWER"), &json!("SLOWER")));
    assert!((p99["change"].as_f64().unwrap() - 0.12).abs() < 0.001, "{p99}");
}

/// From what it wrote, a comparison is made again to the byte; what is no number of a run is refused.
#[test]
fn comparisons_are_reported_again() {
    let again =
        |text: &str| StoredResult::parse(text, "c.json").and_then(|stored| Comparison::of_stored(&stored));
    let written = |comparison: &Comparison| file_of(comparison, FileType::Json);
    let required = ["p99 <= +5%", "get.p99 <= +12%", "p50 < 1us", "set.p99.9 < 1s"];
    let table = [
        compared(side("a", 6, 1.0), side("b", 6, 1.12), &required),
        compared(side("a", 1, 1.0), side("b", 2, 1.12), &[]),
        compared(side("a", 4, 1.0), side("b", 3, 1.12), &required).ended_early(EarlyEnd::Interrupted),
        compared(side("a", 2, 1.0), side("b", 1, 1.12), &[])
            .ended_early(EarlyEnd::Failed("gone: refused".to_owned())),
    ];
    for comparison in table {
        let json = written(&comparison);
        let read = again(&json).unwrap();
        assert_eq!(text_of(&read), text_of(&comparison));
        assert_eq!(junit_of(&read), junit_of(&comparison));
        assert_eq!(written(&read), json);
        assert_eq!(errors(&serde_json::from_str(&json).unwrap()), Vec::<String>::new());
    }
    let whole = written(&compared(side("a", 1, 1.0), side("b", 1, 1.12), &["p99 < 1ms"]));
    for (from, to, expected) in [
        ("\"a\": [", "\"a\": 1, \"more\": [", "c.json: invalid type: integer `1`"),
        ("\"hit\":", "\"hit\": -1, \"more\":", "c.json: result: -1 is no number of a run"),
        ("\"lag_fraction\":", "\"lag_fraction\": 1e300, \"more\":", "c.json: result: 1e+300 is no number"),
        (
            "\"duration_ns\":",
            "\"duration_ns\": 18446744073709551615, \"more\":",
            "c.json: result: 18446744073709551615 is no number",
        ),
        ("\"lag_fraction\":", "\"lag\":", "c.json: missing field `lag_fraction`"),
        ("\"design\": \"", "\"design\": \"no", "c.json: unknown variant `noapart`"),
        ("\"requirement\": \"p99", "\"requirement\": \"p", "c.json: assertions: "),
    ] {
        assert!(whole.contains(from), "{from}");
        let error = again(&whole.replacen(from, to, 1)).unwrap_err();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
}

/// The page of many runs leaves their results to the JSON.
#[test]
fn the_page_of_many_runs_is_bounded() {
    let page = file_of(&compared(side("a", 50, 1.0), side("b", 50, 1.12), &[]), FileType::Html);
    assert!(page.len() <= BYTES_MAX, "{} bytes", page.len());
}

/// Those of the snapshots, by name.
pub(super) fn all() -> [(&'static str, Comparison); 5] {
    [
        ("slower", compared(side("a", 6, 1.0), side("b", 6, 1.12), &["p99 <= +5%", "p99 < 1ms"])),
        ("equal", compared(side("a", 6, 1.0), side("b", 6, 1.001), &["p99 <= +5%"])),
        ("single", compared(side("a", 1, 1.0), side("b", 1, 2.0), &["p99 <= +5%"])),
        ("pairs", compared_as(Design::Pairs, side("a", 8, 1.0), scattered(8), &["p99 <= +5%"])),
        ("client", compared(shared("a", 1, 1.0, 0.001), shared("b", 11, 1.1, 0.12), &[])),
    ]
}

/// Runs of each side and how much slower B is, what is asserted, and whether that is missed or undecided.
#[test]
fn what_sides_show_depends_on_their_runs() {
    const REQUIRED: [&str; 3] = ["p99 <= +5%", "p99 < 1ms", "rate > 9k"];
    for (name, [a, b], factor, required, is_open) in [
        ("equal", [6, 6], 1.001, &REQUIRED[..1], false),
        ("single", [1, 1], 2.0, &REQUIRED[..], true),
        ("few", [1, 3], 2.0, &REQUIRED[..2], true),
    ] {
        let comparison = compared(side("a", a, 1.0), side("b", b, factor), required);
        insta::assert_snapshot!(format!("compare_{name}"), text_of(&comparison));
        assert_eq!((comparison.is_missed(), comparison.is_undecided()), (false, is_open), "{name}");
        assert!(comparison.has_conclusion(), "{name}");
    }
}

/// How requirements came out, with the reason where they did not.
fn outcomes(comparison: &Comparison) -> Vec<String> {
    let outcome = |asserted: &AssertionRow| {
        let word = asserted.text().word();
        asserted.reason.as_ref().map_or(word.to_owned(), |reason| format!("{word}: {reason}"))
    };
    comparison.asserted.iter().map(outcome).collect()
}

/// The range of five runs holds the median with less than 95 %; the interval of a change has its 95 % from four runs each on, or from six
/// pairs.
#[test]
fn a_requirement_is_decided_with_enough_runs() {
    let required = ["p99 <= +5%", "p99 <= +150%", "p99 < 1us", "p99 < 1s"];
    const FEW: [&str; 2] = ["undecided: too few runs"; 2];
    const FEW_OF_B: [&str; 2] = ["undecided: needs 6 runs of B"; 2];
    const DECIDED: [&str; 2] = ["FAILS", "holds"];
    let table = [
        (Design::Apart, 3, FEW, FEW_OF_B),
        (Design::Apart, 4, DECIDED, FEW_OF_B),
        (Design::Apart, 5, DECIDED, FEW_OF_B),
        (Design::Apart, 6, DECIDED, DECIDED),
        (Design::Pairs, 5, FEW, FEW_OF_B),
        (Design::Pairs, 6, DECIDED, DECIDED),
    ];
    for (design, runs, changes, values) in table {
        let comparison = compared_as(design, side("a", runs, 1.0), side("b", runs, 2.0), &required);
        assert_eq!(outcomes(&comparison), [changes, values].concat(), "{design:?} {runs} runs");
    }
}

/// Six runs that differ by at most 0.05 %, with this part of their response times as client error.
fn shared(name: &str, first_seed: u64, factor: f64, part: f64) -> Vec<RunResult> {
    made(name, 0..6, |index| {
        let mut value = written(first_seed + index, factor * (1.0 + index as f64 * 0.000_1));
        for key in ["p50", "p99", "p99.9", "mean", "max"] {
            let response_ns = value["latency"]["response_ns"][key].as_f64().unwrap();
            value["latency"]["least_ns"][key] = json!((response_ns * (1.0 - part)).round() as u64);
        }
        value
    })
}

/// What the client may have added is in the bounds: a requirement is decided only where both ends of them say the same. Both
/// sides of each threshold; the p99 of A is 182 us, of B so many times as much.
#[test]
fn a_requirement_is_decided_by_bounds() {
    const CLIENT: &str = "undecided: the client's part would decide";
    let p99_us = shared("a", 1, 1.0, 0.0)[0].number(&"p99 < 1s".parse::<Requirement>().unwrap().subject());
    let p99_us = p99_us.unwrap() / 1e3;
    let below = |factor: f64| format!("p99 < {:.0}us", p99_us * factor);
    let table = [
        // B is 10 % slower. This part of A and of B is client error.
        (1.1, 0.00, 0.00, "p99 <= +9%".to_owned(), "FAILS"),
        (1.1, 0.00, 0.00, "p99 <= +11%".to_owned(), "holds"),
        // Without B's client, B is 1.1 times 0.99 or 1.1 times 0.95.
        (1.1, 0.00, 0.01, "p99 <= +8%".to_owned(), "FAILS"),
        (1.1, 0.00, 0.05, "p99 <= +8%".to_owned(), CLIENT),
        // Without A's, it is 1.1 / 0.99 or 1.1 / 0.95.
        (1.1, 0.01, 0.00, "p99 <= +12%".to_owned(), "holds"),
        (1.1, 0.05, 0.00, "p99 <= +12%".to_owned(), CLIENT),
        // B is 10 % faster, by the same reckoning the other way round.
        (0.9, 0.00, 0.00, "p99 >= -11%".to_owned(), "holds"),
        (0.9, 0.00, 0.05, "p99 >= -11%".to_owned(), CLIENT),
        (0.9, 0.00, 0.00, "p99 >= -9%".to_owned(), "FAILS"),
        (0.9, 0.05, 0.00, "p99 >= -9%".to_owned(), CLIENT),
        // Of B alone: what its client added makes it fail no less, and what it may have added not hold any more.
        (1.0, 0.00, 0.90, below(1.02), "holds"),
        (1.0, 0.00, 0.01, below(0.98), "FAILS"),
        (1.0, 0.00, 0.03, below(0.98), CLIENT),
        (1.0, 0.90, 0.00, below(0.98), "FAILS"),
        // What is open by what was measured is the runs' own.
        (1.0, 0.00, 0.00, "p99 <= +0.01%".to_owned(), "undecided: the interval holds the bound"),
    ];
    for (factor, part_a, part_b, requirement, expected) in table {
        let (a, b) = (shared("a", 1, 1.0, part_a), shared("b", 11, factor, part_b));
        let comparison = compared(a, b, &[&requirement]);
        assert_eq!(outcomes(&comparison), [expected], "{factor} {part_a} {part_b} {requirement}");
        let (is_missed, is_undecided) = (expected == "FAILS", expected.starts_with("undecided"));
        assert_eq!((comparison.is_missed(), comparison.is_undecided()), (is_missed, is_undecided));
    }
    let all = shared("b", 11, 1.0, 0.0);
    // So many runs of B of whose latencies nothing is known: of a change the median decides, of a value each run.
    let late = |runs: u64, lag_fraction: f64| {
        let late = made("late", 0..runs, |index| {
            let mut value = written(20 + index, 1.0);
            value["latency"]["lag_fraction"] = json!(lag_fraction);
            value
        });
        [&all[runs as usize..], &late].concat()
    };
    let closed_loop = |runs, lag_fraction| {
        let required = ["p99 <= +5%", &below(1.02), "rate > 1"];
        outcomes(&compared(shared("a", 1, 1.0, 0.0), late(runs, lag_fraction), &required))
    };
    assert_eq!(closed_loop(4, 0.05), ["holds"; 3]);
    assert_eq!(closed_loop(1, 0.051), ["holds", CLIENT, "holds"]);
    assert_eq!(closed_loop(4, 0.051), [CLIENT, CLIENT, "holds"]);
    // Three in a hundred had no answer, and the p99 of the others is what it was.
    let mut value = written(30, 1.0);
    let scheduled = value["counts"]["requests"]["scheduled"].as_f64().unwrap();
    value["counts"]["requests"]["lost"] = json!((scheduled * 0.03) as u64);
    let losing = [&all[..5], &read("losing.json", &value)].concat();
    let comparison = compared(shared("a", 1, 1.0, 0.0), losing, &[&below(1.02), "p50 < 1s"]);
    assert_eq!(
        outcomes(&comparison),
        ["undecided: requests without an answer count as above every bound", "holds"]
    );
    let on_both_sides = compared(side("a", 6, 1.0), side("b", 6, 1.000_05), &[&below(1.008)]);
    assert_eq!(outcomes(&on_both_sides), ["undecided: B's runs lie on both sides of it"]);
}

/// The p99 that was measured is a tenth higher in every run of B, and its client error is larger than that.
#[test]
fn differences_within_client_error_are_not_shown() {
    let comparison = compared(
        shared("a", 1, 1.0, 0.001),
        shared("b", 11, 1.1, 0.12),
        &["p99 <= +5%", "p99 <= +15%", "p99 < 1ms", "p99 < 190us"],
    );
    insta::assert_snapshot!("compare_client", text_of(&comparison));
    assert!(comparison.is_undecided() && !comparison.is_missed());
    let (_, p99) = json_and_p99(&comparison);
    assert_eq!(
        (&p99["finding"], &p99["message"]),
        (&json!("UNDECIDED"), &json!("UNDECIDED (client's part)"))
    );
    assert!(p99["interval"][0].as_f64().unwrap() > 0.09, "{p99}");
    assert!(p99["change_without_client"].as_f64().unwrap() < 0.0, "{p99}");
}

/// What a result says of its client's part, in every form that one has it.
#[test]
fn the_bounds_of_a_run() {
    const P99: &str = "p99 < 1s";
    let plain = || {
        let mut value = written(1, 1.0);
        value["latency"]["response_ns"]["p99"] = json!(200_000);
        value["latency"]["response_ns"]["mean"] = json!(100_000);
        value["latency"]["service_ns"]["p99"] = json!(150_000);
        value["latency"]["including_failures_ns"] = value["latency"]["response_ns"].clone();
        value["latency"]["least_ns"]["p99"] = json!(170_000);
        value["latency"]["least_ns"]["mean"] = json!(90_000);
        value["latency"]["response_ns"]["client"]["p99"] = json!(20_000);
        value["latency"]["send_lag_ns"]["max"] = json!(60_000);
        value
    };
    let led = |value: &mut Value| {
        value["client"]["agents"] = json!([AgentRecord {
            name: "one".into(),
            host: "one".into(),
            workers: 1,
            weight: 1,
            ..AgentRecord::default()
        }])
    };
    let all_of_it = |value: &mut Value| {
        value["latency"]["least_ns"]["p99"] = json!(0);
    };
    // With failed requests the p99 is a time-out, and its client error is as large.
    let failing = |value: &mut Value| {
        value["latency"]["including_failures_ns"]["p99"] = json!(1_000_000_000);
        value["latency"]["least_ns"]["p99"] = json!(999_975_000);
    };
    // 51 of 1 000 are more than lie above a p95, and fewer than lie above a p90.
    let unanswered = |value: &mut Value| {
        value["counts"]["requests"]["scheduled"] = json!(1_000);
        for (key, count) in [("error", 1), ("timeout", 2), ("lost", 3), ("unsent", 45), ("abandoned", 5)] {
            value["counts"]["requests"][key] = json!(count);
        }
        for key in ["p90", "p95", "mean", "max"] {
            value["latency"]["response_ns"][key] = json!(150_000);
            value["latency"]["including_failures_ns"][key] = json!(150_000);
            value["latency"]["least_ns"][key] = json!(0);
        }
    };
    let missing = |value: &mut Value| value["latency"]["response_ns"]["p99"] = Value::Null;
    // A closed loop whose load is the client's own says nothing of latencies, and of rates what it did.
    let slowed = |value: &mut Value| value["latency"]["lag_fraction"] = json!(0.051);
    type Change<'a> = &'a dyn Fn(&mut Value);
    let table: [(&str, Change<'_>, Option<[f64; 2]>); 14] = [
        (P99, &|_| {}, Some([170_000.0, 200_000.0])),
        (P99, &led, Some([110_000.0, 200_000.0])),
        (P99, &all_of_it, Some([0.0, 200_000.0])),
        (P99, &failing, Some([175_000.0, 1e9])),
        (P99, &missing, None),
        ("mean < 1s", &|_| {}, Some([90_000.0, 100_000.0])),
        ("service.p99 < 1s", &|_| {}, Some([130_000.0, 150_000.0])),
        ("service.p99 < 1s", &slowed, Some([0.0, f64::INFINITY])),
        ("p99 < 1s", &slowed, Some([0.0, f64::INFINITY])),
        ("p95 < 1s", &unanswered, Some([0.0, f64::INFINITY])),
        ("mean < 1s", &unanswered, Some([0.0, f64::INFINITY])),
        ("max < 1s", &unanswered, Some([0.0, f64::INFINITY])),
        ("p90 < 1s", &unanswered, Some([0.0, 150_000.0])),
        ("unsent < 1%", &|_| {}, Some([0.0, 0.0])),
    ];
    for (index, (text, change, expected)) in table.into_iter().enumerate() {
        let mut value = plain();
        change(&mut value);
        let subject = text.parse::<Requirement>().unwrap().subject();
        let bounds = read("r.json", &value)[0].bounds(&subject);
        assert_eq!(bounds.map(|bounds| [bounds.low, bounds.high]), expected, "{index}: {text}");
    }
}

/// Plans and hosts that differ, a server that was not answering, a value that one run does not have.
#[test]
fn unequal_sides() {
    let b = made("b", 0..4, |index| {
        let mut value = written(200 + index, 1.0 + 0.3 * index as f64);
        value["plan"]["class"][0]["connections"] = json!(32);
        value["plan"]["class"][0]["depth"] = Value::Null;
        value["host"]["facts"]["kernel"] = json!("6.2.0 \u{1b}[2J");
        if index == 2 {
            value["latency"]["response_ns"]["p99.9"] = Value::Null;
            invalidate(&mut value);
        }
        value
    });
    let comparison = compared(side("a", 4, 1.0), b, &[]).ended_early(EarlyEnd::Interrupted);
    insta::assert_snapshot!("compare_unequal", text_of(&comparison));
    assert_eq!(junit_of(&comparison).matches("<error ").count(), 0);
    assert!(comparison.has_conclusion() && comparison.is_interrupted() && !comparison.is_missed());
}

/// Up to a third of the runs may be INVALID. With more of them nothing is concluded, nor decided, and JUnit has an error for each.
#[test]
fn a_third_of_the_runs_may_be_invalid() {
    let invalid = |runs: u64| {
        made("b", 0..6, |index| {
            let mut value = written(200 + index, 1.5 + 0.001 * index as f64);
            if index < runs {
                invalidate(&mut value);
            }
            value
        })
    };
    for (runs, expected) in
        [(0, "FAILS"), (4, "FAILS"), (5, "undecided: more than a third of the runs are INVALID")]
    {
        let comparison = compared(side("a", 6, 1.0), invalid(runs), &["p99 <= +5%"]);
        assert_eq!(outcomes(&comparison), [expected], "{runs}");
        assert_eq!(comparison.has_conclusion(), runs < 5);
        let errors = junit_of(&comparison).matches("<error ").count();
        assert_eq!(errors, if runs == 5 { 6 } else { 0 }, "five runs, and the assertion");
        let text = text_of(&comparison);
        let is_named = |finding: &str| text.contains(&format!("+50.4  {finding}"));
        assert_eq!(is_named("SLOWER"), runs < 5, "{text}");
        let last = last_line(&comparison);
        let start = if runs < 5 {
            "B IS SLOWER: "
        } else {
            "INVALID: 5 of 12 runs are INVALID, so nothing is concluded"
        };
        assert!(last.contains(start), "{last}");
    }
}

/// What a person is left with: the last line, without its breaks.
fn last_line(comparison: &Comparison) -> String {
    let text = text_of(comparison);
    text.rsplit("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs whose times go up by a fifth from run to run, whose other numbers are those of every run.
fn scattered(runs: u64) -> Vec<RunResult> {
    changed(runs, |_, _| {})
}

fn changed(runs: u64, change: impl Fn(&mut Value, u64)) -> Vec<RunResult> {
    made("c", 0..runs, |index| {
        let mut value = written(300 + index, 1.0 + 0.2 * index as f64);
        change(&mut value, index);
        value
    })
}

/// The answer is that of the rows that decide, and no other row changes it.
#[test]
fn the_last_line_agrees_with_the_rows() {
    let of = |b: Vec<RunResult>| last_line(&compared(side("a", b.len() as u64, 1.0), b, &[]));
    let close = |index: u64, factor: f64| written(300 + index, factor + index as f64 * 0.001);
    assert_eq!(
        of(scattered(5)),
        "UNDECIDED: p50 (would find 76 % or more), p99 (would find 76 % or more); 5 runs each -> --repeat 10"
    );
    // Only what does not decide: the cost of a request.
    let like_a = |value: &mut Value, index: u64| {
        let cost = value["client"]["cpu_ns_per_request"].clone();
        *value = close(index, 1.0);
        value["client"]["cpu_ns_per_request"] = cost;
    };
    assert_eq!(of(changed(5, like_a)), "A AND B ARE THE SAME WITHIN 5 % (5 runs each)");
    // A p99 that one run is too short for.
    let too_short = |value: &mut Value, index: u64| {
        *value = close(index, 1.0);
        if index == 1 {
            value["latency"]["response_ns"]["p99"] = Value::Null;
        }
    };
    assert_eq!(of(changed(5, too_short)), "UNDECIDED: p99 (missing); 5 runs each -> longer runs (--time)");
    // One in five had no answer.
    let losing = |value: &mut Value, index: u64| {
        *value = close(index, 1.0);
        let scheduled = value["counts"]["requests"]["scheduled"].as_f64().unwrap();
        value["counts"]["requests"]["lost"] = json!((scheduled * 0.2) as u64);
    };
    assert_eq!(of(changed(5, losing)), "B IS SLOWER: answered -20.0 % (5 runs each)");
    let mixed = |value: &mut Value, index: u64| {
        *value = close(index, 0.5);
        value["latency"]["response_ns"]["p99"] = json!(400_000 + index);
        value["latency"]["least_ns"]["p99"] = json!(400_000 + index);
    };
    let mixed = of(changed(5, mixed));
    assert!(mixed.starts_with("B IS SLOWER: p99 +") && mixed.contains("; FASTER: p50 -5"), "{mixed}");
    assert_eq!(of(side("b", 8, 1.001)), "A AND B ARE THE SAME WITHIN 5 % (8 runs each)");
    assert_eq!(of(side("b", 5, 0.5)), "B IS FASTER: p50 -50.0 %, p99 -50.0 % (5 runs each)");
    let few = last_line(&compared(side("a", 4, 1.0), side("b", 3, 1.5), &[]));
    assert_eq!(
        few,
        "UNDECIDED: p50 (too few runs), p99 (too few runs), answered (too few runs); 4 runs of A, 3 of B -> --repeat 8 (at least 5 of each \
         side)"
    );
}

/// Pairs are compared as pairs: what differs from pair to pair is in both runs of each.
#[test]
fn pairs_are_compared() {
    let twice = |factor: f64| {
        changed(8, |value, index| *value = written(300 + index, factor * 1.2_f64.powi(index as i32)))
    };
    let of = |design| last_line(&compared_as(design, twice(1.0), twice(1.1), &[]));
    assert_eq!(of(Design::Pairs), "B IS SLOWER: p50 +10.0 %, p99 +10.0 % (8 pairs of runs)");
    assert!(of(Design::Apart).starts_with("UNDECIDED: p50 (would find "));
    // A run without its partner is left out.
    let odd = compared_as(Design::Pairs, twice(1.0), twice(1.1).split_off(1), &[]);
    assert!(last_line(&odd).contains("(7 pairs of runs)"), "{}", last_line(&odd));
}

/// A percentile has a row if any run gives it, on whichever side: that it cannot be told is said, not left out.
#[test]
fn a_number_of_some_runs_has_a_row() {
    let without = |name: &str, factor: f64, path: &str, missing: &[u64], put: Value| {
        made(name, 0..4, |index| {
            let mut value = written(100 + index, factor);
            if missing.contains(&index) {
                *value.pointer_mut(path).unwrap() = put.clone();
            }
            value
        })
    };
    let of = |path: &str, missing: [&[u64]; 2], put: Value| {
        let a = without("a", 1.0, path, missing[0], put.clone());
        compared(a, without("b", 1.001, path, missing[1], put), &[])
    };
    let row = |comparison: &Comparison| {
        let text = text_of(comparison);
        let row = text.lines().find(|line| line.starts_with("p99,")).map(str::to_owned);
        row.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    const P99: &str = "/latency/response_ns/p99";
    let some = of(P99, [&[0], &[1, 2, 3]], Value::Null);
    assert_eq!(row(&some).as_deref(), Some("p99,us - - - - - UNDECIDED (missing)"));
    let none = of(P99, [&[0, 1, 2, 3]; 2], Value::Null);
    assert_eq!(row(&none), row(&some));
    let text = text_of(&of("/client/cpu_ns_per_request", [&[0, 1, 2, 3]; 2], json!(0)));
    assert!(
        text.lines().any(|line| line.split_whitespace().eq(["client-CPU,s", "0", "0", "-", "-", "-"])),
        "{text}"
    );
}

#[test]
fn a_run_counts_once() {
    let twice = [side("a", 3, 1.0), read("again.json", &written(100, 1.0))].concat();
    let error = Comparison::of(Design::Apart, twice, side("b", 1, 1.0), &[]).unwrap_err();
    assert!(error.starts_with("'a1.json' and 'again.json' hold the same run; accepted:"), "{error}");
    let error = Comparison::of(Design::Apart, side("a", 1, 1.0), side("b", 1, 1.0), &[]).unwrap_err();
    assert!(error.starts_with("'a1.json' and 'b1.json' hold the same run; accepted:"), "{error}");
    let error = Comparison::of(Design::Apart, side("a", 51, 1.0), side("b", 1, 1.0), &[]).unwrap_err();
    assert_eq!(error, "A has 51 runs; accepted: up to 50");
}

#[test]
fn an_assertion_of_an_operation_that_no_run_has_is_refused() {
    let of = |text: &str| {
        let (a, b) = (side("a", 1, 1.0), read("other.json", &written(7, 1.0)));
        Comparison::of(Design::Apart, a, b, &[text.parse().unwrap()]).map(|_| ())
    };
    assert_eq!(
        of("mget.p99 < 1ms").unwrap_err(),
        "--assert 'mget.p99 < 1ms': no run has the operation 'mget'; accepted: get, set, or no operation for all of them"
    );
    assert_eq!([of("get.p99 < 1ms"), of("p99 <= +5%")], [Ok(()), Ok(())]);
}

#[test]
fn every_run_of_a_campaign_is_read() {
    let campaign = |kind: &str, runs: &[Value]| {
        let runs: Vec<Value> = runs.iter().map(|run| json!({ "result": run })).collect();
        json!({ "schema": "brunt.campaign.v1", "kind": kind, "runs": runs }).to_string()
    };
    let whole = json_of(&run::open_loop());
    let runs = result::read(&campaign("repeat", &[whole.clone(), whole.clone()]), "r.json").unwrap();
    assert_eq!(
        runs.iter().map(|run| run.source.as_str()).collect::<Vec<_>>(),
        ["r.json, run 1", "r.json, run 2"]
    );
    for (text, expected) in [
        (campaign("scan", &[whole]), "r.json: kind: 'scan' was found; accepted:"),
        (campaign("repeat", &[]), "r.json: runs: there is none; accepted:"),
        (campaign("repeat", &[json!({})]), "r.json, run 1: schema: 'nothing' was found; accepted:"),
        (String::new(), "r.json: no JSON: EOF"),
        ("{\"schema\": ".to_owned(), "r.json: no JSON: EOF"),
        ("[]".to_owned(), "r.json: schema: 'nothing' was found; accepted: 'brunt.result.v1'"),
        (
            json!({ "schema": "brunt.result.v2\u{1b}[2J" }).to_string(),
            "r.json: schema: 'brunt.result.v2\\u{1b}[2J' was",
        ),
    ] {
        let error = result::read(&text, "r.json").unwrap_err();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
}

/// What a run says of itself is what is read back from its file.
#[test]
fn numbers_are_those_of_the_summary() {
    for (name, run) in super::all_runs() {
        let direct = RunResult::of(&run.summary, "here").unwrap();
        let read = result::read(&super::json_text_of(&run), "here").unwrap();
        assert_eq!(read, std::slice::from_ref(&direct), "{name}");
        for text in
            "p50 < 1s,p99 < 1s,mean < 1s,service.max < 1s,rate > 1,hit > 0,errors < 1,unsent < 1".split(',')
        {
            let objective: brunt_plan::objective::Objective = text.parse().unwrap();
            let expected = run.summary.clone().with_assertions(&[objective]).assertions[0].measured;
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
