//! A run of more pieces than its result keeps, fed without time: the lines that are written while it goes on have all of them.

use super::run::{self, MS, S};
use crate::ndjson;
use brunt_stats::observer::Periods;
use brunt_stats::recorder::Layout;
use brunt_stats::window::RunTimes;
use serde_json::Value;

const PIECE_MS: u64 = 100;
const SECONDS: u64 = 400;

#[test]
fn every_piece_of_a_long_run_has_its_line() {
    let run = run::long(SECONDS, &format!("interval = '{PIECE_MS}ms'"));
    let summary = &run.summary;
    let plan = &summary.record.plan;
    let (pieces, warmup) = (SECONDS * 1_000 / PIECE_MS, 2_500 / PIECE_MS);
    // The result has longer ones, and so has what is written from it.
    let kept = summary.intervals(S);
    assert_eq!(kept.len() as u64, pieces / 2);
    let completed: u64 = kept.iter().map(|point| point.activity.completed).sum();
    assert_eq!(completed, SECONDS * 50);

    // The end of the window is foreseen, or not.
    for end_ns in [summary.window.end_ns, u64::MAX] {
        let times = RunTimes { end_ns, ..summary.record.run.times };
        let mut lines = ndjson::LiveLines::new(plan, 1);
        let mut written = Vec::new();
        let mut periods = Periods::new(Layout::of(plan), PIECE_MS * MS);
        periods.start(times);
        lines.start(&times);
        let mut write = |period| lines.write_period(&period, &mut written).unwrap();
        for interval in &run.intervals {
            periods.push(interval);
            std::iter::from_fn(|| periods.take(interval.end_ns + 150 * MS)).for_each(&mut write);
        }
        std::iter::from_fn(|| periods.take_first()).for_each(&mut write);
        lines.write_rest(summary, &mut written).unwrap();

        let written = String::from_utf8(written).unwrap();
        let objects: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects.len() as u64, pieces + warmup);
        let (mut start_ns, mut sum) = (-(2_500 * MS as i64), 0);
        for object in &objects {
            let end_ns = start_ns + (PIECE_MS * MS) as i64;
            assert_eq!(
                (object["start_ns"].as_i64(), object["end_ns"].as_i64()),
                (Some(start_ns), Some(end_ns))
            );
            if start_ns >= 0 {
                sum += object["completed"].as_u64().unwrap();
            }
            start_ns = end_ns;
        }
        assert_eq!(sum, completed);
    }
}
