//! The measured window in batches of equal length: what confidence intervals and tests of stationarity are made of.
//!
//! Not single requests: successive response times of a server depend on each other, because they wait in
//! the same queue. Batches much longer than a queue lives are nearly independent, and few enough that a test on them
//! finds only what matters. Invariant: from the beginning of the window every completed request of the chosen rows is in
//! exactly one batch.

use crate::histogram::{Histogram, SparseHistogram};
use crate::measured_window::MeasuredWindow;
use crate::timeline::Timeline;
use brunt_plan::op::{ClassId, OpId};

/// How many batches there are: enough to estimate a variance (Student's t is within 4 % of the normal's quantile), few
/// enough that each is long.
pub const BATCHES: u64 = 30;
/// With fewer slices than this there are no batches: a variance of nine numbers is no estimate.
pub const SLICES_MIN: u64 = 10;

/// A part of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends. Requests that were answered after the window are in the last batch all the same.
    pub end_ns: u64,
    /// Requests completed in it before the window closed, whenever they were due.
    pub completed: u64,
    /// Requests that failed in it, or were given up unsent.
    pub faulty: u64,
    /// Response times of measured requests that completed in it, in nanoseconds.
    pub response: SparseHistogram,
}

/// The window from `start_ns` on in batches, of the rows that `of` selects: [`BATCHES`] of them, with as nearly as can be
/// the same number of slices, or as many as there are slices where those are fewer; none at all below
/// [`SLICES_MIN`]. `start_ns` is the beginning of the window, or that of a later slice where only its rest is looked at.
pub fn batches(
    timeline: &Timeline,
    window: &MeasuredWindow,
    start_ns: u64,
    of: impl Fn(ClassId, OpId) -> bool,
) -> Vec<Batch> {
    let start_ns = start_ns.max(window.measure_ns);
    let slice_ns = timeline.slice_ns();
    let slices = window.end_ns.saturating_sub(start_ns) / slice_ns;
    if slices < SLICES_MIN {
        return Vec::new();
    }
    let count = slices.min(BATCHES);
    let begins = |index: u64| start_ns + index * slices / count * slice_ns;
    let mut sums: Vec<Batch> = Vec::with_capacity(count as usize);
    let mut held = timeline.slices_by_cell().peekable();
    // Workers are a little late in ending an interval, so the slice before the window may hold the first of its requests.
    // Requests of the window that lie before a later start are in no batch.
    while start_ns > window.measure_ns && held.next_if(|(cell_ns, _)| *cell_ns < start_ns).is_some() {}
    let mut sum = Histogram::new();
    for index in 0..count {
        let is_last = index + 1 == count;
        let mut batch = Batch { start_ns: begins(index), ..Batch::default() };
        batch.end_ns = if is_last { window.end_ns } else { begins(index + 1) };
        let mut parts = Vec::new();
        while let Some((_, slice)) = held.next_if(|(cell_ns, _)| is_last || *cell_ns < batch.end_ns) {
            for row in slice.rows.iter().filter(|row| of(row.class, row.op)) {
                batch.completed += row.completed;
                batch.faulty += row.faulty;
                parts.push(&row.response);
            }
        }
        batch.response = SparseHistogram::merge_all(parts, &mut sum).into_owned();
        sums.push(batch);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::SLICE_NS;
    use crate::recorder::{Layout, RecorderSet};
    use crate::sample::{Sample, Times};
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_plan::phase::Phase;

    const MS: u64 = 1_000_000;
    const MEASURE_NS: u64 = 5_057 * MS;

    /// A window of `length_ns` in which a get and a set complete every millisecond, 7 ms after they were intended, up to
    /// the last one in the drain. The get whose turn it is takes 7 ms and that many nanoseconds.
    fn timeline(length_ns: u64) -> (Timeline, MeasuredWindow) {
        let ops = vec![vec![OpKind::Get.into(), OpKind::Set.into()]];
        let layout = Layout { ops, servers: 1, ..Layout::default() };
        let end_ns = MEASURE_NS + length_ns;
        let window = MeasuredWindow { start_ns: 0, measure_ns: MEASURE_NS, end_ns, drained_ns: end_ns };
        let mut timeline = Timeline::default();
        timeline.align(MEASURE_NS);
        let mut set = RecorderSet::new(&layout);
        set.set_window(MEASURE_NS, end_ns);
        // Intervals end 3 ms late, so that one that belongs to the slice before the window holds the first requests.
        let mut taken_ns = MEASURE_NS - 97 * MS;
        for turn in 0..length_ns / MS {
            let intended_ns = MEASURE_NS + turn * MS;
            let done_ns = intended_ns + if turn < 2 { 0 } else { 7 * MS } + turn;
            if done_ns >= taken_ns + 100 * MS {
                timeline.push(&set.take_interval(0, taken_ns, taken_ns + 100 * MS));
                taken_ns += 100 * MS;
            }
            let times = Times {
                intended_ns,
                picked_ns: intended_ns,
                sent_ns: intended_ns,
                polled_ns: done_ns,
                first_byte_ns: done_ns,
                done_ns,
            };
            for (op, reply) in [(OpKind::Get, ReplyKind::Value), (OpKind::Set, ReplyKind::Stored)] {
                let outcome = Outcome::of_reply(op, reply);
                set.record(
                    Phase::Measure,
                    &Sample { op: op.into(), class: 0, outcome, busy_lag_ns: None, times },
                    1,
                    1,
                );
            }
        }
        timeline.push(&set.take_interval(0, taken_ns, end_ns + 20 * MS));
        (timeline, window)
    }

    #[test]
    fn batches_have_equally_many_slices_as_nearly_as_can_be() {
        // Length in slices → batches, and the shortest and the longest of them but the last, in slices.
        let table = [
            (9, 0, 0, 0),
            (10, 10, 1, 1),
            (29, 29, 1, 1),
            (30, 30, 1, 1),
            (31, 30, 1, 1),
            (47, 30, 1, 2),
            (100, 30, 3, 4),
            (300, 30, 10, 10),
        ];
        for (slices, count, shortest, longest) in table {
            let (timeline, window) = timeline(slices * SLICE_NS + 40 * MS);
            let batches = batches(&timeline, &window, window.measure_ns, |_, _| true);
            assert_eq!(batches.len(), count, "{slices} slices");
            let Some((last, others)) = batches.split_last() else { continue };
            let lengths = others.iter().map(|batch| (batch.end_ns - batch.start_ns) / SLICE_NS);
            assert_eq!((lengths.clone().min(), lengths.max()), (Some(shortest), Some(longest)));
            assert_eq!((batches[0].start_ns, last.end_ns), (window.measure_ns, window.end_ns));
            assert!(batches.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
            // Every request is in one of them, those of the drain included.
            let requests = 2 * (window.duration_ns() / MS);
            assert_eq!(batches.iter().map(|batch| batch.response.count()).sum::<u64>(), requests);
            assert_eq!(batches.iter().map(|batch| batch.completed).sum::<u64>(), requests - 2 * 7);
        }
    }

    #[test]
    fn batches_hold_the_selected_rows_from_the_start_on() {
        let (timeline, window) = timeline(60 * SLICE_NS);
        let gets = |_: ClassId, op: OpId| op == OpKind::Get.into();
        let all = batches(&timeline, &window, window.measure_ns, gets);
        assert_eq!(all.iter().map(|batch| batch.response.count()).sum::<u64>(), 6_000);
        // The first holds what completed before the first slice of the window began for the workers, and two slices.
        let first = all[0].response.moments();
        assert_eq!((first.count, first.min, first.max), (196, 0, 7 * MS + 195));
        let cut = batches(&timeline, &window, window.measure_ns + 20 * SLICE_NS, gets);
        assert_eq!(cut.len(), 30);
        assert_eq!(cut[0].start_ns, window.measure_ns + 2_000 * MS);
        let first = cut[0].response.moments();
        // Of 100 ms that begin with what completes 3 ms late.
        assert_eq!((first.count, first.min), (100, 7 * MS + 1_996));
        assert_eq!(cut.iter().map(|batch| batch.response.count()).sum::<u64>(), 4_004);
    }
}
