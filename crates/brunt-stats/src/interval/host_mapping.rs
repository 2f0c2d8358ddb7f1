//! What one host recorded becomes part of a run of several: its times move to another clock, its workers and classes get the
//! numbers that they have in the whole.
//!
//! Not a merging (that is the store's) and no judgement. Invariant: nothing that is counted changes.

use super::Interval;
use crate::fault::{FaultTable, FirstMalformed};
use crate::outage_span::OutageSpans;
use crate::recorder::Layout;
use crate::sample::{Sample, Times};
use crate::verification::Verification;
use brunt_plan::op::ClassId;

/// From a host's own numbers to those of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMapping {
    /// Added to every time, in nanoseconds.
    pub clock_shift_ns: i64,
    /// The number of its first worker.
    pub first_worker: u32,
    /// What its classes are in the whole; empty where they are the same.
    pub classes: Vec<ClassId>,
}

impl HostMapping {
    /// An instant of the host on the clock of the whole. The end of time stays where it is.
    pub fn time(&self, at_ns: u64) -> u64 {
        if at_ns == u64::MAX { at_ns } else { at_ns.saturating_add_signed(self.clock_shift_ns) }
    }

    /// A class of the host in the whole.
    pub fn class(&self, class: ClassId) -> ClassId {
        self.classes.get(usize::from(class)).copied().unwrap_or(class)
    }

    /// The interval as the whole run has it.
    pub fn interval(&self, mut interval: Interval) -> Interval {
        interval.worker = interval.worker.saturating_add(self.first_worker);
        interval.start_ns = self.time(interval.start_ns);
        interval.end_ns = self.time(interval.end_ns);
        interval.books.iter_mut().for_each(|entry| entry.class = self.class(entry.class));
        interval.rows.iter_mut().for_each(|row| row.class = self.class(row.class));
        self.faults(&mut interval.faults);
        self.outages(&mut interval.outages);
        interval
    }

    pub(crate) fn faults(&self, table: &mut FaultTable) {
        table.rows_mut().iter_mut().for_each(|fault| fault.first_ns = self.time(fault.first_ns));
    }

    pub(crate) fn outages(&self, outages: &mut OutageSpans) {
        for span in &mut outages.spans {
            (span.start_ns, span.end_ns) = (self.time(span.start_ns), self.time(span.end_ns));
        }
    }

    /// A raw sample as the whole run has it.
    pub fn sample(&self, sample: Sample) -> Sample {
        let Times { intended_ns, picked_ns, sent_ns, polled_ns, first_byte_ns, done_ns } = sample.times;
        let times = Times {
            intended_ns: self.time(intended_ns),
            picked_ns: self.time(picked_ns),
            sent_ns: self.time(sent_ns),
            polled_ns: self.time(polled_ns),
            first_byte_ns: self.time(first_byte_ns),
            done_ns: self.time(done_ns),
        };
        Sample { class: self.class(sample.class), times, ..sample }
    }

    /// The first bytes that were no reply, as the whole run has them.
    pub fn first_malformed(&self, mut first: FirstMalformed) -> FirstMalformed {
        (first.at_ns, first.class) = (self.time(first.at_ns), self.class(first.class));
        first
    }

    /// What was wrong with values, as the whole run has it.
    pub fn verification(&self, verification: &mut Verification) {
        verification.examples_mut().for_each(|example| example.at_ns = self.time(example.at_ns));
    }
}

impl Interval {
    /// Could a recorder of this layout have made it? What comes from another host is asked before it is added up.
    ///
    /// # Errors
    /// What it has that the layout does not.
    pub fn check(&self, layout: &Layout) -> Result<(), &'static str> {
        if self.start_ns > self.end_ns {
            return Err("an interval that ends before it begins");
        }
        if !self.rows.iter().all(|row| layout.rows().any(|known| known == (row.class, row.op))) {
            return Err("latencies of an operation that is not measured");
        }
        let meters = self.meters.iter().map(|meter| meter.kind);
        layout.check(&self.books, &self.servers, &self.outages, self.server_responses.len(), meters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use crate::outage_span::{OutageKinds, OutageSpan};
    use crate::recorder::RecorderSet;
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_plan::phase::Phase;
    use brunt_plan::plan::MeterKind;

    fn layout(classes: usize) -> Layout {
        Layout {
            ops: vec![vec![OpKind::Get.into()]; classes],
            meters: vec![MeterKind::SendCost],
            servers: 1,
            ..Layout::default()
        }
    }

    fn sample(class: ClassId, from_ns: u64) -> Sample {
        let times = Times {
            intended_ns: from_ns,
            picked_ns: from_ns + 1,
            sent_ns: from_ns + 2,
            polled_ns: from_ns + 3,
            first_byte_ns: from_ns + 4,
            done_ns: from_ns + 5,
        };
        Sample {
            op: OpKind::Get.into(),
            class,
            outcome: Outcome::of_reply(OpKind::Get, ReplyKind::Value),
            busy_lag_ns: None,
            times,
        }
    }

    fn interval(layout: &Layout, class: ClassId, worker: u32, from_ns: u64) -> Interval {
        let mut set = RecorderSet::new(layout);
        set.record(Phase::Measure, &sample(class, from_ns), 1, 1);
        let mut interval = set.take_interval(worker, from_ns - 100, from_ns + 100);
        interval.faults.record(Phase::Measure, FaultKind::Reset, from_ns);
        let span = OutageSpan {
            server: 0,
            start_ns: from_ns,
            end_ns: u64::MAX,
            failed: 1,
            kinds: OutageKinds::NONE,
        };
        interval.outages.spans.push(span);
        interval
    }

    /// It is as if it had been recorded there: with these numbers, at these times.
    #[test]
    fn mapped_intervals_equal_those_recorded_on_the_run_clock() {
        let there = HostMapping { clock_shift_ns: -4_000, first_worker: 7, classes: vec![2] };
        let mut expected = interval(&layout(3), 2, 8, 1_000);
        // A recorder of one class has the books of one.
        expected.books.retain(|entry| entry.class == 2);
        assert_eq!(there.interval(interval(&layout(1), 0, 1, 5_000)), expected);
        assert_eq!(there.sample(sample(0, 5_000)), sample(2, 1_000));
        let nowhere = HostMapping::default();
        assert_eq!(nowhere.interval(interval(&layout(1), 0, 1, 5_000)), interval(&layout(1), 0, 1, 5_000));
    }

    #[test]
    fn intervals_of_another_layout_are_rejected() {
        let layout = layout(1);
        let changed = |change: fn(&mut Interval)| {
            let mut interval = interval(&layout, 0, 0, 5_000);
            change(&mut interval);
            interval.check(&layout).err()
        };
        assert_eq!(changed(|_| ()), None);
        type Change = fn(&mut Interval);
        let table: [(Change, &str); 6] = [
            (|interval| interval.start_ns = u64::MAX, "an interval that ends before it begins"),
            (|interval| interval.books[0].class = 1, "a book of a class or a command that there is not"),
            (|interval| interval.rows[0].class = 1, "latencies of an operation that is not measured"),
            (
                |interval| interval.rows[0].op = OpKind::Set.into(),
                "latencies of an operation that is not measured",
            ),
            (|interval| interval.outages.spans[0].server = 1, "counts of servers that there are not"),
            (|interval| interval.meters.clear(), "other meters than those of the plan"),
        ];
        for (change, reason) in table {
            assert_eq!(changed(change), Some(reason));
        }
    }
}
