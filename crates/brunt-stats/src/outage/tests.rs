//! Made-up spans and made-up intervals; what they come to follows by looking at them.
//!
//! Not how an engine notes spans.

use super::*;
use crate::interval::{Interval, SLICE_NS};
use crate::recorder::{Layout, RecorderSet};
use crate::server::OutageKind::{self, Refused, Reset, Stalled};

const MS: u64 = 1_000_000;
/// Not over when the run ended.
const NEVER: u64 = u64::MAX;

fn span(server: u16, start_ns: u64, end_ns: u64, failed: u64, kind: OutageKind) -> OutageSpan {
    OutageSpan { server, start_ns, end_ns, failed, kinds: OutageKinds::NONE.with(kind) }
}

/// Every order of the spans gives these outages: start, end, failed.
fn check_merged(spans: &[(u64, u64, u64)], expected: &[(u64, Option<u64>, u64)]) {
    let mut spans: Vec<OutageSpan> =
        spans.iter().map(|(start_ns, end_ns, failed)| span(0, *start_ns, *end_ns, *failed, Reset)).collect();
    for _ in 0..spans.len() {
        spans.rotate_left(1);
        let outages = merged(&spans);
        let found: Vec<_> =
            outages.iter().map(|outage| (outage.start_ns, outage.end_ns, outage.failed)).collect();
        assert_eq!(found, expected, "{spans:?}");
        let (before, after): (u64, u64) =
            (spans.iter().map(|span| span.failed).sum(), outages.iter().map(|outage| outage.failed).sum());
        assert_eq!(before, after, "every failure is told once");
    }
}

#[test]
fn spans_that_overlap_are_one_outage() {
    check_merged(&[], &[]);
    check_merged(&[(10, 20, 3)], &[(10, Some(20), 3)]);
    // One worker, twice; and one that ends as another begins.
    check_merged(&[(10, 20, 3), (30, 40, 4)], &[(10, Some(20), 3), (30, Some(40), 4)]);
    check_merged(&[(10, 20, 3), (20, 40, 4)], &[(10, Some(20), 3), (20, Some(40), 4)]);
    // Three workers: from the last success of any to the first success of any.
    check_merged(&[(10, 50, 1), (12, 48, 2), (11, 60, 4)], &[(12, Some(48), 7)]);
    // The second worker had two troubles while the first had one; it proves the server well between them.
    check_merged(&[(0, 100, 5), (10, 20, 1), (50, 60, 2)], &[(10, Some(20), 6), (50, Some(60), 2)]);
    // A chain: no instant is common to all three.
    check_merged(&[(0, 10, 1), (8, 20, 2), (18, 30, 4)], &[(8, Some(10), 3), (18, Some(20), 4)]);
    // Not over at the end of the run: for one of them, for all.
    check_merged(&[(10, NEVER, 1), (12, 48, 2)], &[(12, Some(48), 3)]);
    check_merged(&[(10, NEVER, 1), (12, NEVER, 2)], &[(12, None, 3)]);
    check_merged(&[(10, 48, 1), (12, 48, 2)], &[(12, Some(48), 3)]);
    // An outage without length is one.
    check_merged(&[(7, 7, 1)], &[(7, Some(7), 1)]);
}

#[test]
fn servers_are_apart_and_kinds_add_up() {
    let spans = [span(1, 10, 30, 1, Reset), span(0, 12, 20, 2, Stalled), span(1, 11, 40, 4, Refused)];
    let outages = merged(&spans);
    let found: Vec<_> = outages
        .iter()
        .map(|outage| (outage.server, outage.start_ns, outage.length_ns(), outage.kinds.names().collect()))
        .collect::<Vec<(u16, u64, Option<u64>, Vec<&str>)>>();
    assert_eq!(found, [(1, 11, Some(19), vec!["refused", "reset"]), (0, 12, Some(8), vec!["stalled"])]);
}

/// Workers that hand over every 100 ms, `answers` in each slice by each, on server 1 of two.
fn timeline(workers: u32, origin_ns: u64, answers: &[u64]) -> Timeline {
    let layout = Layout { servers: 2, ..Layout::default() };
    let mut timeline = Timeline::default();
    timeline.align(origin_ns);
    for worker in 0..workers {
        let mut set = RecorderSet::new(&layout);
        let mut take = |answers: u64, start_ns: u64, end_ns: u64| -> Interval {
            set.server(1).answered += answers;
            set.take_interval(worker, start_ns, end_ns)
        };
        // The second worker is late by 2 ms, always.
        let late_ns = u64::from(worker) * 2 * MS;
        for (index, answers) in answers.iter().enumerate() {
            let start_ns = origin_ns + late_ns + index as u64 * SLICE_NS;
            timeline.push(&take(*answers, start_ns, start_ns + SLICE_NS));
        }
    }
    timeline
}

/// A run from `ORIGIN` on, slices by their answers, an outage in milliseconds from there, and the expected recovery.
fn check_recovery(answers: &[u64], outage_ms: (u64, u64), expected_ms: Option<u64>) {
    const ORIGIN: u64 = 57 * MS;
    let (start_ns, end_ns) = (ORIGIN + outage_ms.0 * MS, ORIGIN + outage_ms.1 * MS);
    let spans = [span(1, start_ns, end_ns, 1, Reset)];
    let schedule = ORIGIN..ORIGIN + answers.len() as u64 * SLICE_NS;
    for (workers, late_ms) in [(1, 0), (2, 2)] {
        let timeline = timeline(workers, ORIGIN, answers);
        let outages = outages(&spans, &timeline, &schedule);
        let found = outages[0].recovered_ns.map(|at_ns| (at_ns - ORIGIN) / MS);
        assert_eq!(found, expected_ms.map(|at_ms| at_ms + late_ms), "{answers:?}, {workers} workers");
    }
}

#[test]
fn recovery_is_the_first_slice_at_the_former_rate() {
    // 1000/s; down from 0.5 s to 0.75 s; the slice of the first success is not whole.
    check_recovery(&[100, 100, 100, 100, 100, 0, 0, 40, 94, 95, 100], (500, 750), Some(1_000));
    check_recovery(&[100, 100, 100, 100, 100, 0, 0, 40, 95, 95, 100], (500, 750), Some(900));
    // The backlog comes at once.
    check_recovery(&[100, 100, 100, 0, 0, 50, 350, 100], (300, 550), Some(700));
    // Only the last second before counts: 50 per slice, then 100.
    let mut answers = [[50; 10], [100; 10]].concat();
    answers.extend([0, 0, 90, 95]);
    check_recovery(&answers, (2_000, 2_200), Some(2_400));
    // Former rates of 10 and of 190 have the mean of 100; without the last slice, which ends too late with two workers,
    // of 90.
    let mut answers = [[10; 5], [190; 5]].concat();
    answers.extend([0, 0, 84, 96, 190]);
    check_recovery(&answers, (1_000, 1_200), Some(1_400));
}

/// Of 100 s, which slices of 200 ms hold, and of 300 s with slices of 800 ms.
#[test]
fn recovery_is_known_to_a_slice() {
    for (slices, slice_ms) in [(1_000, 200), (3_000, 800)] {
        for from in [0, 3, 301, 777] {
            let answers: Vec<u64> =
                (0..slices).map(|slice| if (from..from + 5).contains(&slice) { 0 } else { 100 }).collect();
            let spans = [span(1, from * 100 * MS + MS, (from + 5) * 100 * MS, 1, Reset)];
            let timeline = timeline(1, 0, &answers);
            assert_eq!(timeline.slice_ns(), slice_ms * MS);
            let found = outages(&spans, &timeline, &(0..slices * SLICE_NS))[0].recovered_ns;
            // The first slice behind the end, where there was one wholly before the beginning.
            let expected_ms = ((from + 5) * 100).next_multiple_of(slice_ms) + slice_ms;
            assert_eq!(found, (from * 100 >= slice_ms).then_some(expected_ms * MS), "{slice_ms} {from}");
        }
    }
}

#[test]
fn recovery_is_unknown_without_former_rate_or_reply() {
    // Never again as before.
    check_recovery(&[100, 100, 100, 0, 0, 94, 94, 94], (300, 500), None);
    // The run ended with it.
    check_recovery(&[100, 100, 100, 0, 0], (300, 500), None);
    // It began before there was a slice to compare with.
    check_recovery(&[20, 0, 0, 100, 100], (20, 300), None);
    // There was no rate before.
    check_recovery(&[0, 0, 0, 0, 100, 100], (200, 400), None);
    // What was answered before the schedule began does not count: preload has another rate.
    let timeline = timeline(1, 0, &[900, 900, 900, 100, 100, 0, 0, 96, 100]);
    let spans = [span(1, 500 * MS, 700 * MS, 1, Reset), span(1, 300 * MS, 310 * MS, 1, Reset)];
    let found: Vec<_> =
        outages(&spans, &timeline, &(300 * MS..900 * MS)).iter().map(|outage| outage.recovered_ns).collect();
    assert_eq!(found, [None, Some(800 * MS)]);
    // And an outage that is not over has none.
    assert_eq!(
        outages(&[span(1, 500 * MS, NEVER, 1, Reset)], &timeline, &(0..900 * MS))[0].recovered_ns,
        None
    );
}
