//! A worker's recording: the set it writes to, and the hand-over to the control thread.
//!
//! Histograms and counts are in `brunt-stats`. A worker has two sets; it hands the full one over through a
//! single-producer ring and continues with the other, which the control thread has read and cleared. Invariant: a
//! hand-over never waits; without the other set, the interval continues.

use crate::state::group::Group;
use crate::state::in_flight::Entry;
use crate::state::{NO_GROUP, NO_REDIRECT};
use brunt_plan::op::Op;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::resp::error::ErrorPrefix;
use brunt_proto::{DiscardReason, Recache};
use brunt_stats::connection::{FirstError, FirstMalformed};
use brunt_stats::interval::{Interval, WorkerTime};
use brunt_stats::occupancy::Occupancy;
use brunt_stats::recorder::{Layout, RecorderSet, RowHandle};
use brunt_stats::sample::{Sample, SampleBuffer, Times};
use brunt_stats::worker_counts::WorkerCounts;
use std::borrow::Cow;

/// Quantities that are derived from samples.
const OF_SAMPLES: [MeterKind; 3] = [MeterKind::FirstByte, MeterKind::HitTime, MeterKind::MissTime];

/// A set with the slice of time it covers.
#[derive(Debug)]
pub(crate) struct Filled {
    pub set: Box<RecorderSet>,
    pub start_ns: u64,
    pub end_ns: u64,
    /// What the worker did in it, where its clocks were read.
    pub worker_time: Option<WorkerTime>,
}

impl Filled {
    /// Empties the set.
    pub(crate) fn take_interval(&mut self, worker: u32) -> Interval {
        let interval = self.set.take_interval(worker, self.start_ns, self.end_ns);
        Interval { worker_time: self.worker_time.take(), ..interval }
    }
}

/// The two rings between a worker and the control thread, worker's ends.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub filled: rtrb::Producer<Filled>,
    pub spares: rtrb::Consumer<Box<RecorderSet>>,
}

impl Exchange {
    /// A new hand-over with a spare set, and the control thread's ends of its rings.
    pub(crate) fn new(layout: &Layout) -> (Self, rtrb::Consumer<Filled>, rtrb::Producer<Box<RecorderSet>>) {
        let (filled, filled_out) = rtrb::RingBuffer::new(2);
        let (mut spares_in, spares) = rtrb::RingBuffer::new(2);
        // The ring is new and has room for two.
        let _ = spares_in.push(RecorderSet::new(layout));
        (Self { filled, spares }, filled_out, spares_in)
    }
}

/// The operation that ended last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub sent_ns: u64,
    pub done_ns: u64,
}

/// A worker's recording.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Counts and histograms of the current interval.
    pub set: Box<RecorderSet>,
    exchange: Exchange,
    interval_start_ns: u64,
    metered: [bool; MeterKind::COUNT],
    meters_requests: bool,
    samples: SampleBuffer,
    /// Raw samples are wanted.
    keeps_raw_samples: bool,
    /// Raw samples, or a quantity derived from samples, are wanted.
    needs_each_sample: bool,
    /// Start and end of the measured window, for both sets.
    window: (u64, u64),
    /// Counts outside the sets, over all phases.
    pub counts: WorkerCounts,
    /// Operations that were picked, until they are recorded or leave unrecorded: not sent, or not answered before the end.
    pub occupancy: Occupancy,
    pub last: Ended,
}

impl Recording {
    pub(crate) fn new(
        set: Box<RecorderSet>,
        exchange: Exchange,
        meters: &[MeterKind],
        samples_max: usize,
        now_ns: u64,
    ) -> Self {
        let mut metered = [false; MeterKind::COUNT];
        meters.iter().for_each(|kind| metered[*kind as usize] = true);
        Self {
            set,
            exchange,
            interval_start_ns: now_ns,
            metered,
            meters_requests: [MeterKind::Outstanding, MeterKind::RequestSize]
                .iter()
                .any(|kind| metered[*kind as usize]),
            samples: SampleBuffer::new(samples_max),
            keeps_raw_samples: samples_max > 0,
            needs_each_sample: samples_max > 0 || OF_SAMPLES.iter().any(|kind| metered[*kind as usize]),
            window: (u64::MAX, u64::MAX),
            counts: WorkerCounts::default(),
            occupancy: Occupancy::default(),
            last: Ended::default(),
        }
    }

    /// Sets the measured window.
    pub(crate) fn set_window(&mut self, measure_ns: u64, end_ns: u64) {
        self.occupancy.set_window(measure_ns, end_ns);
        self.window = (measure_ns, end_ns);
        self.set.set_window(measure_ns, end_ns);
    }

    /// Moves the measured window to an earlier start. What has happened so far was counted as before it: a worker
    /// that learns of it late counts from now on.
    pub(crate) fn open_window(&mut self, measure_ns: u64, end_ns: u64, now_ns: u64) {
        let begin_ns = if measure_ns <= now_ns { now_ns + 1 } else { measure_ns };
        self.counts.window_late_ns = begin_ns - measure_ns;
        self.set_window(begin_ns, end_ns);
    }

    /// Ends the measured window early. Events of this very instant count as inside.
    pub(crate) fn end_window(&mut self, now_ns: u64) {
        self.occupancy.end_at(now_ns);
        self.window.1 = self.window.1.min(now_ns + 1);
        self.set.set_window(self.window.0, self.window.1);
    }

    /// The row of an operation of this phase.
    #[inline]
    pub(crate) fn row(&self, phase: Phase, op: &Op) -> RowHandle {
        self.set.row_handle(phase, op.class, op.id())
    }

    /// Counts a sent operation. Parts count with the whole.
    #[inline]
    pub(crate) fn sent(&mut self, entry: &Entry) {
        if entry.details.group == NO_GROUP {
            // A redirected one is sent again, but counts as sent already.
            let count = u32::from(entry.details.redirect_state == NO_REDIRECT);
            self.set.sent_many(entry.row, count, entry.details.wire_requests, entry.sent_ns);
        }
    }

    /// Counts several sent operations of one row, each one command.
    #[inline]
    pub(crate) fn sent_many(&mut self, row: RowHandle, count: u32, at_ns: u64) {
        self.set.sent_many(row, count, count, at_ns);
    }

    /// Counts a picked operation that is abandoned because its server is down.
    pub(crate) fn abandoned(&mut self, phase: Phase, op: &Op, times: &Times) {
        self.set.abandoned(phase, op, times);
        self.occupancy.leave(times.picked_ns, times.done_ns, 1);
    }

    /// Counts a sent operation in parts; called at its end, when all its commands are known.
    pub(crate) fn sent_in_parts(&mut self, group: &Group, sent_ns: u64) {
        self.set.sent(group.whole.phase, &group.whole.op, group.wire_requests, sent_ns);
    }

    /// Counts a discarded datagram.
    #[cold]
    pub(crate) fn note_discarded(&mut self, reason: DiscardReason) {
        let counts = &mut self.counts.datagrams;
        *match reason {
            DiscardReason::Late => &mut counts.late,
            DiscardReason::Duplicate => &mut counts.duplicate,
            DiscardReason::Stray => &mut counts.unmatched,
            DiscardReason::Disordered => &mut counts.disordered,
            DiscardReason::Malformed => &mut counts.malformed,
        } += 1;
        counts.packet_disorder += u64::from(reason != DiscardReason::Malformed);
    }

    /// Counts a timed-out UDP request with this many missing reply datagrams.
    #[cold]
    pub(crate) fn note_udp_timeout(&mut self, missing: u16) {
        let counts = &mut self.counts.datagrams;
        counts.udp_timeout += 1;
        counts.packet_drop += u64::from(missing);
    }

    /// Counts a recache mark of a value.
    pub(crate) fn note_recache(&mut self, recache: Recache) {
        let counts = &mut self.counts.recache;
        counts.won += u64::from(recache.won);
        counts.stale += u64::from(recache.stale);
        counts.taken += u64::from(recache.taken);
    }

    /// Counts an error reply by its prefix.
    pub(crate) fn count_error(&mut self, prefix: Option<ErrorPrefix>) {
        if let Some(prefix) = prefix {
            self.counts.error_replies.count(Cow::Borrowed(prefix.name), 1);
        }
    }

    /// Records the end of an operation.
    #[inline(never)]
    pub(crate) fn record(&mut self, row: RowHandle, sample: &Sample, requested: u32, hits: u32) {
        self.record_many(row, sample, requested, hits, 1);
    }

    /// Records the end of several operations of one row that share a sample.
    #[inline(always)]
    pub(crate) fn record_many(
        &mut self,
        row: RowHandle,
        sample: &Sample,
        requested: u32,
        hits: u32,
        count: u32,
    ) {
        self.set.record_many(row, sample, requested, hits, count);
        self.last = Ended { sent_ns: sample.times.sent_ns, done_ns: sample.times.done_ns };
        self.occupancy.leave(sample.times.picked_ns, sample.times.done_ns, count);
        if self.needs_each_sample && row.is_measured() {
            (0..count).for_each(|_| self.keep_sample(sample));
        }
    }

    /// Keeps a raw sample, and meters the quantities derived from it.
    #[inline(never)]
    fn keep_sample(&mut self, sample: &Sample) {
        if sample.outcome.reply != ReplyKind::None {
            self.meter(MeterKind::FirstByte, sample.times.first_byte_ns());
        }
        match sample.outcome.reply {
            _ if !sample.outcome.class.is_completed() => {}
            ReplyKind::Value => self.meter(MeterKind::HitTime, sample.times.response_ns()),
            ReplyKind::NotFound => self.meter(MeterKind::MissTime, sample.times.response_ns()),
            _ => {}
        }
        if self.keeps_raw_samples {
            self.samples.offer(sample);
        }
    }

    /// Does the plan meter a quantity of every request?
    #[inline]
    pub(crate) fn meters_requests(&self) -> bool {
        self.meters_requests
    }

    /// Does the plan meter this quantity?
    #[inline]
    pub(crate) fn meters(&self, kind: MeterKind) -> bool {
        self.metered[kind as usize]
    }

    /// Records a metered quantity, if the plan wants it.
    #[inline]
    pub(crate) fn meter(&mut self, kind: MeterKind, value: u64) {
        if self.metered[kind as usize] {
            self.set.meter(kind, value);
        }
    }

    /// Records several quantities of one request.
    pub(crate) fn meter_each<const N: usize>(&mut self, kinds: [MeterKind; N], values: [u64; N]) {
        kinds.into_iter().zip(values).for_each(|(kind, value)| self.meter(kind, value));
    }

    /// Keeps the first malformed bytes.
    pub(crate) fn note_malformed(&mut self, bytes: &[u8], at_ns: u64, reason: &'static str) {
        self.counts.first_malformed.get_or_insert_with(|| FirstMalformed::new(at_ns, 0, reason, bytes));
    }

    /// Keeps the text of the first error reply.
    pub(crate) fn note_error(&mut self, text: &[u8]) {
        self.counts.first_error.get_or_insert_with(|| FirstError::new(text));
    }

    /// Hands the set over, with what the worker did meanwhile, and continues with the other one. False if that is not back yet.
    pub(crate) fn hand_over(
        &mut self,
        now_ns: u64,
        worker_time: impl FnOnce() -> Option<WorkerTime>,
    ) -> bool {
        let Ok(spare) = self.exchange.spares.pop() else { return false };
        let set = std::mem::replace(&mut self.set, spare);
        self.set.set_window(self.window.0, self.window.1);
        let filled =
            Filled { set, start_ns: self.interval_start_ns, end_ns: now_ns, worker_time: worker_time() };
        self.interval_start_ns = now_ns;
        // The ring has room for every set.
        let pushed = self.exchange.filled.push(filled);
        debug_assert!(pushed.is_ok(), "two sets, two places");
        true
    }

    /// The last set, the counts and the raw samples.
    pub(crate) fn end(
        mut self,
        now_ns: u64,
        worker_time: Option<WorkerTime>,
    ) -> (Filled, WorkerCounts, Vec<Sample>) {
        let last = Filled { set: self.set, start_ns: self.interval_start_ns, end_ns: now_ns, worker_time };
        let (samples, overflow) = self.samples.end();
        self.counts.occupancy = self.occupancy.total();
        (self.counts.samples_kept, self.counts.samples_overflow) = (samples.len() as u64, overflow);
        (last, self.counts, samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{KeyRef, OpKind};
    use brunt_plan::outcome::Outcome;

    /// A request of the warm-up was sent before its worker knew of the window's start. It counts as sent before the
    /// window, later ones as sent in it.
    #[test]
    fn windows_learned_late_balance() {
        for (measure_ns, expected) in [(500, [2, 0, 1, 1]), (601, [2, 0, 1, 1]), (800, [0, 0, 1, 1])] {
            let ops = vec![vec![OpKind::Get.into()]];
            let layout = Layout { ops, servers: 1, ..Layout::default() };
            let (exchange, _filled, _spares) = Exchange::new(&layout);
            let mut recording = Recording::new(RecorderSet::new(&layout), exchange, &[], 0, 0);
            recording.set_window(10_000, 11_000);
            let (op, hit) =
                (Op::of(OpKind::Get, KeyRef::Id(0)), Outcome::of_reply(OpKind::Get, ReplyKind::Value));
            let send = |recording: &mut Recording, phase, sent_ns| {
                let row = recording.row(phase, &op);
                recording.set.scheduled_many(row, 1);
                recording.occupancy.enter(sent_ns, 1);
                recording.sent_many(row, 1, sent_ns);
                (row, sent_ns)
            };
            let mut sent =
                vec![send(&mut recording, Phase::Warmup, 400), send(&mut recording, Phase::Warmup, 600)];
            recording.open_window(measure_ns, 1_500, 700);
            sent.push(send(&mut recording, Phase::Measure, 900));
            for ((row, sent_ns), done_ns) in sent.into_iter().zip([710, 720, 1_600]) {
                let times = Times {
                    intended_ns: sent_ns,
                    picked_ns: sent_ns,
                    sent_ns,
                    polled_ns: done_ns,
                    first_byte_ns: done_ns,
                    done_ns,
                };
                let sample =
                    Sample { op: OpKind::Get.into(), class: 0, outcome: hit, times, busy_lag_ns: None };
                recording.record(row, &sample, 1, 1);
            }
            let (mut last, counts, _) = recording.end(2_000, None);
            assert_eq!(counts.window_late_ns, 701_u64.saturating_sub(measure_ns));
            let interval = last.take_interval(0);
            assert!(
                interval.request_counts.iter().all(|entry| entry.adds_up_in_window()),
                "{:?}",
                interval.request_counts
            );
            let mut sum = brunt_stats::window::WindowCounts::default();
            interval.request_counts.iter().for_each(|entry| sum.merge(&entry.in_window()));
            let found = [sum.in_flight_at_start, sum.waiting_at_start, sum.sent, sum.in_flight_at_end];
            assert_eq!(found, expected, "{measure_ns}");
        }
    }

    /// One request is always in the system; that the first one ended inside the window was not known yet.
    #[test]
    fn windows_learned_late_are_counted_from_then_on() {
        let layout = Layout { ops: vec![vec![OpKind::Get.into()]], servers: 1, ..Layout::default() };
        let (exchange, _filled, _spares) = Exchange::new(&layout);
        let mut recording = Recording::new(RecorderSet::new(&layout), exchange, &[], 0, 0);
        recording.set_window(10_000, 11_000);
        recording.occupancy.enter(400, 1);
        recording.occupancy.leave(400, 600, 1);
        recording.occupancy.enter(600, 1);
        recording.open_window(500, 1_500, 700);
        recording.occupancy.leave(600, 1_600, 1);
        let (_, counts, _) = recording.end(2_000, None);
        assert_eq!((counts.occupancy.integral, counts.occupancy.sum), (799, 799));
    }
}
