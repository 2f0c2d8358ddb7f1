//! The lines of a run while it goes on are those of its result, and those are the intervals of the JSON.

use super::run::{self, MS, S};
use super::{Run, all_runs, json_of, output};
use crate::ndjson::{self, LiveLines};
use brunt_plan::warmup::Warmup;
use brunt_stats::observer::Periods;
use brunt_stats::recorder::Layout;
use brunt_stats::summary::Summary;
use brunt_stats::window::RunTimes;
use serde_json::Value;

fn text_of(run: &Run) -> String {
    output(|out| ndjson::write(&run.summary, out))
}

fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What is written of a run that was told these times at first, 150 ms after what is recorded; and how much of it before the run has ended.
fn live(run: &Run, first: RunTimes) -> (String, usize) {
    let Summary { record, .. } = &run.summary;
    let mut lines = LiveLines::new(&record.plan, 1);
    let mut periods = Periods::new(Layout::of(&record.plan), LiveLines::period_ns(&record.plan));
    let mut out = Vec::new();
    lines.start(&first);
    periods.start(first);
    for interval in &run.intervals {
        if first.measure_ns != record.run.times.measure_ns
            && interval.start_ns + 200 * MS >= record.run.times.measure_ns
        {
            lines.start(&record.run.times);
            periods.start(record.run.times);
        }
        periods.push(interval);
        while let Some(period) = periods.take(interval.end_ns + 150 * MS) {
            lines.write_period(&period, &mut out).unwrap();
        }
    }
    while let Some(period) = periods.take_first() {
        lines.write_period(&period, &mut out).unwrap();
    }
    let before = out.iter().filter(|byte| **byte == b'\n').count();
    lines.write_rest(&run.summary, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), before)
}

#[test]
fn lines_of_a_run_that_goes_on_are_those_of_its_result() {
    let interval = |text: &str| (format!("interval {text}"), run::long(5, &format!("interval = '{text}'")));
    let named = all_runs().map(|(name, run)| (name.to_owned(), run));
    for (name, run) in named.into_iter().chain(["300ms", "1500ms", "2s"].map(interval)) {
        let times = run.summary.record.run.times;
        let expected = text_of(&run);
        let (found, before) = live(&run, times);
        assert_eq!(found, expected, "{name}");
        assert_eq!(before, expected.lines().count(), "{name}");
    }
}

/// Bounded by a number of requests, so that the end of the window is not foreseen: its last line comes with the result.
#[test]
fn what_was_not_foreseen_is_written_at_the_end() {
    let run = run::long(5, "interval = '2s'");
    let times = RunTimes { end_ns: u64::MAX, ..run.summary.record.run.times };
    let (found, before) = live(&run, times);
    let expected = text_of(&run);
    assert_eq!(found.replace("null", "0"), expected.replace("null", "0"));
    assert!(before < expected.lines().count(), "{before}");
}

/// Of a window whose beginning is open, lines of the warm-up do not know how far off it is.
#[test]
fn an_open_window_has_no_instants_before_it_is_known() {
    let mut run = run::long(5, "");
    run.summary.record.plan.warmup = Warmup::Auto;
    let times = run.summary.record.run.times;
    let first = RunTimes { measure_ns: times.start_ns + 60 * S, end_ns: times.start_ns + 65 * S, ..times };
    let (found, expected) = (values(&live(&run, first).0), values(&text_of(&run)));
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let mut expected = expected.clone();
        if index < 2 {
            (expected["start_ns"], expected["end_ns"]) = (Value::Null, Value::Null);
        }
        assert_eq!(*found, expected);
    }
}

#[test]
fn lines_are_the_intervals_of_the_json_behind_those_of_the_warm_up() {
    for (name, run) in all_runs() {
        let (lines, json) = (values(&text_of(&run)), json_of(&run));
        let (warmup, measured): (Vec<&Value>, Vec<&Value>) =
            lines.iter().partition(|line| line["phase"] == "warmup");
        let intervals = json["intervals"].as_array().unwrap();
        assert_eq!(measured.len(), intervals.len(), "{name}");
        for (line, interval) in measured.iter().zip(intervals) {
            for (key, value) in interval.as_object().unwrap().iter().filter(|(key, _)| *key != "server") {
                assert_eq!(line[key], *value, "{name} {key}");
            }
        }
        let first_ns = run.summary.window.start_ns as i64 - run.summary.window.measure_ns as i64;
        let mut next_ns = first_ns;
        for line in warmup {
            assert_eq!(line["start_ns"], next_ns, "{name}");
            next_ns = line["end_ns"].as_i64().unwrap();
        }
        assert!(next_ns == 0 || first_ns == 0, "{name}");
        let time_us = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_microsecond();
        let first_us = lines.first().and_then(|line| line["time"].as_str()).map(time_us);
        let started_us = json["window"]["start_unix_ns"].as_i64().map(|ns| (ns + first_ns) / 1_000);
        assert!(lines.is_empty() || first_us == started_us, "{name}");
    }
}

#[test]
fn a_line_is_an_object_with_these_keys() {
    let text = text_of(&run::long(1, ""));
    insta::assert_snapshot!(text);
}
