//! A worker's side of recording: the set it writes to, and the hand-over to the control thread.
//!
//! Not statistics: histograms and books are `brunt-stats`'s. A worker owns two sets; it hands the full one over through
//! a single-producer ring and goes on with the other, which the control thread has read and cleared. Invariant: no
//! hand-over waits. When the other set is not back yet, the interval simply goes on.

use crate::state::group::Group;
use crate::state::ids::{NO_GROUP, NO_REDIRECT};
use crate::state::in_flight::Entry;
use brunt_plan::op::Op;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::resp::error::ErrorPrefix;
use brunt_proto::{DiscardReason, Recache};
use brunt_stats::connection::ConnectionEvent;
use brunt_stats::fault::{FaultKind, FirstError, FirstGarbage};
use brunt_stats::object_fault::ObjectFaultNote;
use brunt_stats::occupancy::Occupancy;
use brunt_stats::outage_span::OutageSpan;
use brunt_stats::recorder::{RecorderSet, RowHandle};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::sample_buffer::SampleBuffer;
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
}

/// The two rings between a worker and the control thread, worker's ends.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub filled: rtrb::Producer<Filled>,
    pub spares: rtrb::Consumer<Box<RecorderSet>>,
}

/// Where a worker records.
#[derive(Debug)]
pub(crate) struct Recording {
    set: Box<RecorderSet>,
    exchange: Exchange,
    interval_start_ns: u64,
    metered: [bool; MeterKind::COUNT],
    meters_requests: bool,
    tap: SampleBuffer,
    /// Raw samples are wanted.
    keeps_raw_samples: bool,
    /// They are, or a quantity that is derived from each.
    needs_each_sample: bool,
    /// When the measured window begins and when it ends; both sets must know.
    window: (u64, u64),
    /// What is counted and noted beside the sets, over all phases.
    pub counts: WorkerCounts,
    presence: Occupancy,
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
            tap: SampleBuffer::new(samples_max),
            keeps_raw_samples: samples_max > 0,
            needs_each_sample: samples_max > 0 || OF_SAMPLES.iter().any(|kind| metered[*kind as usize]),
            window: (u64::MAX, u64::MAX),
            counts: WorkerCounts::default(),
            presence: Occupancy::default(),
        }
    }

    /// The measured window is known.
    pub(crate) fn set_window(&mut self, measure_ns: u64, end_ns: u64) {
        self.presence.set_window(measure_ns, end_ns);
        self.window = (measure_ns, end_ns);
        self.set.set_window(measure_ns, end_ns);
    }

    /// The measured window has these times in place of the ones known before, which lay later. What has happened until now was
    /// counted as before it: a worker that heard of it late counts what happens in it from now on.
    pub(crate) fn open_window(&mut self, measure_ns: u64, end_ns: u64, now_ns: u64) {
        self.presence.set_window(measure_ns, end_ns);
        let begin_ns = if measure_ns <= now_ns { now_ns + 1 } else { measure_ns };
        self.window = (begin_ns, end_ns);
        self.set.set_window(begin_ns, end_ns);
    }

    /// The measured window ends now, before its time. What has happened at this very instant is counted as inside already,
    /// so that whatever still happens at it is, too.
    pub(crate) fn end_window(&mut self, now_ns: u64) {
        self.presence.end_at(now_ns);
        let (measure_ns, end_ns) = self.window;
        self.window = (measure_ns, end_ns.min(now_ns + 1));
        self.set.set_window(self.window.0, self.window.1);
    }

    /// Where an operation of this phase is booked.
    #[inline]
    pub(crate) fn account(&self, phase: Phase, op: &Op) -> RowHandle {
        self.set.row_handle(phase, op.class, op.id())
    }

    /// An operation became due.
    #[inline]
    pub(crate) fn scheduled(&mut self, phase: Phase, op: &Op) {
        self.set.scheduled(phase, op);
    }

    /// Several of one account became due.
    #[inline]
    pub(crate) fn scheduled_many(&mut self, account: RowHandle, count: u32) {
        self.set.scheduled_many(account, count);
    }

    /// So many operations are in the system from here until they are recorded or abandoned.
    #[inline]
    pub(crate) fn picked(&mut self, at_ns: u64, count: u32) {
        self.presence.enter(at_ns, count);
    }

    /// An operation that was picked will never be recorded: it could not be sent, or was not answered before the end.
    pub(crate) fn left_unrecorded(&mut self, picked_ns: u64, at_ns: u64) {
        self.presence.leave(picked_ns, at_ns, 1);
    }

    /// The last byte of an operation was handed over. A part of one is noted with the whole.
    #[inline]
    pub(crate) fn sent(&mut self, entry: &Entry) {
        if entry.details.group == NO_GROUP {
            // One that was sent on is sent once more, but booked as sent already.
            let count = u32::from(entry.details.redirect_state == NO_REDIRECT);
            self.set.sent_many(entry.account, count, entry.details.wire_requests, entry.sent_ns);
        }
    }

    /// The last bytes of so many operations of one account, each of them one command, were handed over.
    #[inline]
    pub(crate) fn sent_many(&mut self, account: RowHandle, count: u32, at_ns: u64) {
        self.set.sent_many(account, count, count, at_ns);
    }

    /// An operation that was due will never be sent.
    pub(crate) fn unsent(&mut self, phase: Phase, op: &Op) {
        self.set.unsent(phase, op);
    }

    /// An operation that was picked is given up before it was sent, because its server does not answer.
    pub(crate) fn abandoned(&mut self, phase: Phase, op: &Op, times: &Times) {
        self.set.abandoned(phase, op, times);
        self.left_unrecorded(times.picked_ns, times.done_ns);
    }

    /// An operation, or a part of one, will never be sent to this server.
    pub(crate) fn unsent_to(&mut self, server: u16) {
        self.set.unsent_to(server);
    }

    /// Of these, one is given up because the server answers nobody.
    pub(crate) fn abandoned_at(&mut self, server: u16) {
        self.set.abandoned_at(server);
    }

    /// An operation in parts was handed over; noted when it is over, for only then all its commands are known.
    pub(crate) fn sent_in_parts(&mut self, group: &Group, sent_ns: u64) {
        self.set.sent(group.phase, &group.op, group.wire_requests, sent_ns);
    }

    /// An operation follows another and is due.
    pub(crate) fn followup(&mut self, phase: Phase, op: &Op) {
        self.set.followup(phase, op);
    }

    /// An operation has no reply when the run ends.
    pub(crate) fn in_flight(&mut self, phase: Phase, op: &Op, sent_ns: u64) {
        self.set.in_flight(phase, op, sent_ns);
    }

    /// Something happened to a connection.
    pub(crate) fn connection(&mut self, phase: Phase, event: ConnectionEvent) {
        self.set.connection(phase, event);
    }

    /// A server answered as its protocol provides, so many times.
    #[inline]
    pub(crate) fn answered(&mut self, server: u16, times: u32) {
        self.set.answered(server, times);
    }

    /// Requests to a server, or parts of some, were answered so long after they were due.
    #[inline]
    pub(crate) fn responded(&mut self, server: u16, account: RowHandle, response_ns: u64, times: u32) {
        self.set.responded(server, account, response_ns, times);
    }

    /// A request to a server failed.
    pub(crate) fn failed_at(&mut self, server: u16) {
        self.set.failed_at(server);
    }

    /// A server sent a request on to another node.
    pub(crate) fn redirected(&mut self, server: u16) {
        self.set.redirected(server);
    }

    /// An object of a window is not as it was to be.
    pub(crate) fn object_fault(&mut self, note: &ObjectFaultNote<'_>) {
        self.set.object_fault(note);
    }

    /// A server was gone for a while.
    pub(crate) fn outage(&mut self, span: OutageSpan) {
        self.set.outage(span);
    }

    /// A datagram is of no use.
    #[cold]
    pub(crate) fn note_discarded(&mut self, astray: DiscardReason) {
        let counts = &mut self.counts.datagrams;
        *match astray {
            DiscardReason::Late => &mut counts.late,
            DiscardReason::Duplicate => &mut counts.duplicate,
            DiscardReason::Stray => &mut counts.stray,
            DiscardReason::Disordered => &mut counts.disordered,
            DiscardReason::Malformed => &mut counts.malformed,
        } += 1;
        counts.packet_disorder += u64::from(astray != DiscardReason::Malformed);
    }

    /// A datagram is held for others before it.
    #[cold]
    pub(crate) fn note_held(&mut self) {
        self.counts.datagrams.packet_disorder += 1;
    }

    /// A request over UDP has timed out, of whose reply so many datagrams are missing.
    #[cold]
    pub(crate) fn note_udp_timeout(&mut self, missing: u16) {
        let counts = &mut self.counts.datagrams;
        counts.udp_timeout += 1;
        counts.packet_drop += u64::from(missing);
    }

    /// A value was marked.
    pub(crate) fn note_recache(&mut self, recache: Recache) {
        let counts = &mut self.counts.renewals;
        counts.won += u64::from(recache.won);
        counts.stale += u64::from(recache.stale);
        counts.taken += u64::from(recache.taken);
    }

    /// An error reply, by what it begins with.
    pub(crate) fn count_error(&mut self, prefix: Option<ErrorPrefix>) {
        if let Some(prefix) = prefix {
            self.counts.error_replies.count(Cow::Borrowed(prefix.name()), 1);
        }
    }

    /// Bytes were handed over.
    #[inline]
    pub(crate) fn bytes_sent(&mut self, phase: Phase, bytes: u64) {
        self.set.transmitted(phase, bytes);
    }

    /// Bytes came in.
    #[inline]
    pub(crate) fn bytes_received(&mut self, phase: Phase, bytes: u64) {
        self.set.received(phase, bytes);
    }

    /// Records the end of an operation.
    #[inline(never)]
    pub(crate) fn record(&mut self, account: RowHandle, sample: &Sample, asked: u32, hits: u32) {
        self.record_many(account, sample, asked, hits, 1);
    }

    /// Records the end of several operations of one account, each as `sample` says.
    #[inline(always)]
    pub(crate) fn record_many(
        &mut self,
        account: RowHandle,
        sample: &Sample,
        asked: u32,
        hits: u32,
        count: u32,
    ) {
        self.set.record_many(account, sample, asked, hits, count);
        self.presence.leave(sample.times.picked_ns, sample.times.done_ns, count);
        if self.needs_each_sample && account.is_measured() {
            (0..count).for_each(|_| self.keep_sample(sample));
        }
    }

    /// Keeps a sample, and meters what is derived from it.
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
            self.tap.offer(sample);
        }
    }

    /// Does the plan ask for a quantity that every request has?
    #[inline]
    pub(crate) fn meters_requests(&self) -> bool {
        self.meters_requests
    }

    /// Is this quantity recorded at all?
    #[inline]
    pub(crate) fn meters(&self, kind: MeterKind) -> bool {
        self.metered[kind as usize]
    }

    /// Records a named quantity, if the plan asks for it.
    #[inline]
    pub(crate) fn meter(&mut self, kind: MeterKind, value: u64) {
        if self.metered[kind as usize] {
            self.set.meter(kind, value);
        }
    }

    /// Records several of them, of one request.
    pub(crate) fn meter_each<const N: usize>(&mut self, kinds: [MeterKind; N], values: [u64; N]) {
        kinds.into_iter().zip(values).for_each(|(kind, value)| self.meter(kind, value));
    }

    /// Counts a fault of a connection.
    pub(crate) fn fault(&mut self, phase: Phase, kind: FaultKind, at_ns: u64) {
        self.set.fault(phase, kind, at_ns);
    }

    /// Keeps the first bytes that were no reply.
    pub(crate) fn note_garbage(&mut self, bytes: &[u8], at_ns: u64, reason: &'static str) {
        self.counts.first_garbage.get_or_insert_with(|| FirstGarbage::new(at_ns, 0, reason, bytes));
    }

    /// Keeps the text of the first error reply.
    pub(crate) fn note_error(&mut self, text: &[u8]) {
        self.counts.first_error.get_or_insert_with(|| FirstError::new(text));
    }

    /// Hands the set over and goes on with the other one. False when that is not back yet.
    pub(crate) fn hand_over(&mut self, now_ns: u64) -> bool {
        let Ok(spare) = self.exchange.spares.pop() else { return false };
        let set = std::mem::replace(&mut self.set, spare);
        self.set.set_window(self.window.0, self.window.1);
        let filled = Filled { set, start_ns: self.interval_start_ns, end_ns: now_ns };
        self.interval_start_ns = now_ns;
        // The ring has a place for every set there is.
        let pushed = self.exchange.filled.push(filled);
        debug_assert!(pushed.is_ok(), "two sets, two places");
        true
    }

    /// The last set, what was counted beside, and the raw samples.
    pub(crate) fn end(mut self, now_ns: u64) -> (Filled, WorkerCounts, Vec<Sample>) {
        let last = Filled { set: self.set, start_ns: self.interval_start_ns, end_ns: now_ns };
        let (samples, overflow) = self.tap.end();
        self.counts.presence = self.presence.total();
        (self.counts.samples_kept, self.counts.samples_overflow) = (samples.len() as u64, overflow);
        (last, self.counts, samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{KeyRef, OpKind};
    use brunt_plan::outcome::Outcome;
    use brunt_stats::recorder::Layout;

    /// A request of the warm-up was sent before its worker heard that the window had begun. It counts as sent before, and
    /// what is sent from then on as sent in it.
    #[test]
    fn windows_learned_late_balance() {
        for (measure_ns, expected) in [(500, [2, 0, 1, 1]), (601, [2, 0, 1, 1]), (800, [0, 0, 1, 1])] {
            let ops = vec![vec![OpKind::Get.into()]];
            let layout = Layout { ops, servers: 1, ..Layout::default() };
            let (filled, _filled) = rtrb::RingBuffer::new(2);
            let (_spares, spares) = rtrb::RingBuffer::new(2);
            let exchange = Exchange { filled, spares };
            let mut recording = Recording::new(RecorderSet::new(&layout), exchange, &[], 0, 0);
            recording.set_window(10_000, 11_000);
            let (op, hit) =
                (Op::of(OpKind::Get, KeyRef::Id(0)), Outcome::of_reply(OpKind::Get, ReplyKind::Value));
            let send = |recording: &mut Recording, phase, sent_ns| {
                let account = recording.account(phase, &op);
                recording.scheduled_many(account, 1);
                recording.picked(sent_ns, 1);
                recording.sent_many(account, 1, sent_ns);
                (account, sent_ns)
            };
            let mut sent =
                vec![send(&mut recording, Phase::Warmup, 400), send(&mut recording, Phase::Warmup, 600)];
            recording.open_window(measure_ns, 1_500, 700);
            sent.push(send(&mut recording, Phase::Measure, 900));
            for ((account, sent_ns), done_ns) in sent.into_iter().zip([710, 720, 1_600]) {
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
                recording.record(account, &sample, 1, 1);
            }
            let (mut last, ..) = recording.end(2_000);
            let interval = last.set.take_interval(0, 0, 2_000);
            assert!(interval.books.iter().all(|entry| entry.adds_up_in_window()), "{:?}", interval.books);
            let mut sum = brunt_stats::window::WindowCounts::default();
            interval.books.iter().for_each(|entry| sum.merge(&entry.in_window()));
            let found = [sum.in_flight_at_start, sum.waiting_at_start, sum.sent, sum.in_flight_at_end];
            assert_eq!(found, expected, "{measure_ns}");
        }
    }
}
