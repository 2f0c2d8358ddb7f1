//! A run of more pieces than its result keeps, fed without time: what is written while it goes on has all of them.

use super::run::{self, MS, S};
use crate::hdr_histogram::LiveLog;
use crate::live::Lines;
use crate::{csv, ndjson};
use brunt_stats::observer::Periods;
use brunt_stats::recorder::Layout;
use brunt_stats::window::{MeasuredWindow, RunTimes};
use serde_json::Value;

const PIECE_MS: u64 = 100;
const SECONDS: u64 = 400;

#[test]
fn every_piece_of_a_long_run_has_its_line() {
    let run = run::long(SECONDS, &format!("interval = '{PIECE_MS}ms'"));
    let summary = &run.summary;
    let plan = &summary.record.plan;
    let (pieces, warmup) = (SECONDS * 1_000 / PIECE_MS, 2_500 / PIECE_MS);
    // The result has longer ones.
    let kept = summary.intervals(S);
    assert_eq!(kept.len() as u64, pieces / 2);
    let completed: u64 = kept.iter().map(|point| point.activity.completed).sum();
    assert_eq!(completed, SECONDS * 50);

    // The end of the window is foreseen, or not.
    for end_ns in [summary.window.end_ns, u64::MAX] {
        let times = RunTimes { end_ns, ..summary.record.run.times };
        let mut lines = ndjson::LiveLines::new(plan, 1);
        let mut rows = csv::LiveLines::new(plan, PIECE_MS * MS);
        let mut log = LiveLog::new(plan, "0.1.0");
        let [mut ndjson, mut csv, mut hlog] = [const { Vec::new() }; 3];
        let mut periods = Periods::new(Layout::of(plan), PIECE_MS * MS);
        periods.start(MeasuredWindow::of(&times));
        lines.start(&times);
        rows.start(&times);
        log.start(&times);
        let mut write = |period| {
            lines.write_period(&period, &mut ndjson).unwrap();
            rows.write_period(&period, &mut csv).unwrap();
            log.write_period(&period, &mut hlog).unwrap();
        };
        for interval in &run.intervals {
            periods.push(interval);
            std::iter::from_fn(|| periods.take(interval.end_ns + 150 * MS)).for_each(&mut write);
        }
        std::iter::from_fn(|| periods.take_first()).for_each(&mut write);
        lines.write_rest(summary, &mut ndjson).unwrap();
        rows.write_rest(summary, &mut csv).unwrap();
        let [ndjson, csv, hlog] = [ndjson, csv, hlog].map(|text| String::from_utf8(text).unwrap());

        let objects: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!((objects.len() as u64, rows.len() as u64), (pieces + warmup, pieces + warmup));
        let mut start_ns = -(2_500 * MS as i64);
        let mut sums = [0; 2];
        for (object, row) in objects.iter().zip(&rows) {
            let end_ns = start_ns + (PIECE_MS * MS) as i64;
            assert_eq!(
                (object["start_ns"].as_i64(), object["end_ns"].as_i64()),
                (Some(start_ns), Some(end_ns))
            );
            assert_eq!((row[0], row[1]), (start_ns.to_string().as_str(), end_ns.to_string().as_str()));
            if start_ns >= 0 {
                sums[0] += object["completed"].as_u64().unwrap();
                sums[1] += row[5].parse::<u64>().unwrap();
            }
            start_ns = end_ns;
        }
        assert_eq!(sums, [completed; 2]);
        let measured = hlog.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
        assert_eq!(measured.count() as u64, pieces);
    }
}
