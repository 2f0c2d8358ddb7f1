//! Kernel timestamps of sampled requests: when to request one, and the spans that result.
//!
//! The Io requests timestamps, `traffic/sending.rs` chooses the requests. Timestamps are wall-clock instants: they
//! wait until a later reading of that clock shows that it was not set meanwhile. Invariant: a stamped request is
//! always in exactly one place: pending, answered and waiting for the reading, matched, or discarded for one
//! reason.

use crate::clock::{Conversion, WallReading};
use crate::io::{Stamps, Transmitted};
use brunt_stats::sample::Times;
use brunt_stats::stamps::{StampCounts, StampLoss, StampedTimes};

/// Time from one stamped request to the next. In 5 s this suffices for a p99 of a worker; 5 us per stamp (a longer
/// call, two reads of the error queue) are 0.1 % of a CPU.
const EVERY_NS: u64 = 5_000_000;
/// Time until the next look where no request could be stamped.
const AGAIN_NS: u64 = 100_000;
/// Period of the wall-clock readings.
const WINDOW_NS: u64 = 100_000_000;
/// Maximum stamped requests between two readings, which come every 20 stamps.
const ROOM: usize = 64;

/// A request whose timestamps are pending.
#[derive(Clone, Copy, Debug, Default)]
struct PendingStamp {
    /// Stream position after its last byte; 0 for none.
    stream_end: u64,
    /// When the worker began to send what it had queued.
    queued_ns: u64,
    /// The clock before its send.
    before_ns: u64,
    /// The time of its send as the request itself has it.
    sent_ns: u64,
}

/// A request with its timestamps, on the wall clock.
#[derive(Clone, Copy, Debug)]
struct AnsweredStamp {
    pending: PendingStamp,
    transmitted_wall_ns: u64,
    received_wall_ns: u64,
    polled_ns: u64,
    done_ns: u64,
}

/// The stamped requests of a worker.
#[derive(Debug)]
pub(crate) struct Stamper {
    /// When the next is stamped; never without timestamps.
    next_ns: u64,
    /// By connection: may its requests be stamped? Empty without timestamps.
    stamped: Vec<bool>,
    /// By connection, at most one each.
    pending: Vec<PendingStamp>,
    out: usize,
    answered: Vec<AnsweredStamp>,
    /// The last reading of the wall clock.
    window_start: Option<WallReading>,
    counts: StampCounts,
}

impl Stamper {
    /// For these connections, of which some may be stamped; for none without timestamps.
    pub(crate) fn new(stamped: Vec<bool>) -> Self {
        let is_on = !stamped.is_empty();
        Self {
            next_ns: if is_on { 0 } else { u64::MAX },
            pending: vec![PendingStamp::default(); stamped.len()],
            stamped,
            out: 0,
            answered: Vec::with_capacity(if is_on { ROOM } else { 0 }),
            window_start: None,
            counts: StampCounts::default(),
        }
    }

    /// Counts of stamped requests.
    pub(crate) fn counts(&self) -> StampCounts {
        self.counts
    }

    /// Does the plan want timestamps?
    pub(crate) fn is_on(&self) -> bool {
        !self.stamped.is_empty()
    }

    /// May requests of this connection be stamped?
    pub(crate) fn is_stamped(&self, connection: u32) -> bool {
        self.stamped.get(connection as usize).is_some_and(|is_stamped| *is_stamped)
    }

    /// Is the next stamp due?
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Is the next stamp due, on this connection?
    pub(crate) fn wants(&self, connection: u32, now_ns: u64) -> bool {
        self.is_due(now_ns)
            && self.is_stamped(connection)
            && self.window_start.is_some()
            && self.out + self.answered.len() < ROOM
    }

    /// Nothing that was sent until now could be stamped.
    pub(crate) fn postpone(&mut self, now_ns: u64) {
        self.next_ns = now_ns + AGAIN_NS;
    }

    /// Requests a timestamp of the next send on a connection, which has no other request.
    pub(crate) fn request_stamp(&mut self, connection: u32, stream_end: u64, queued_ns: u64, before_ns: u64) {
        self.pending[connection as usize] =
            PendingStamp { stream_end, queued_ns, before_ns, sent_ns: before_ns };
        self.counts.requested += 1;
        self.out += 1;
        self.next_ns = before_ns + EVERY_NS;
    }

    /// The stamped request of a connection was sent.
    pub(crate) fn sent(&mut self, connection: u32, sent_ns: u64) {
        self.pending[connection as usize].sent_ns = sent_ns;
    }

    /// Stream position after the stamped request of a connection.
    pub(crate) fn awaited(&self, connection: u32) -> Option<u64> {
        self.pending.get(connection as usize).map(|pending| pending.stream_end).filter(|end| *end > 0)
    }

    fn take(&mut self, connection: u32) -> Option<PendingStamp> {
        let pending = self.pending.get_mut(connection as usize).filter(|pending| pending.stream_end > 0)?;
        self.out -= 1;
        Some(std::mem::take(pending))
    }

    /// Discards the pending stamp of a connection, if there is one.
    pub(crate) fn discard(&mut self, connection: u32, loss: StampLoss) {
        if self.take(connection).is_some() {
            self.counts.discard(loss);
        }
    }

    /// Takes the timestamps of the stamped request of a connection and its reply.
    pub(crate) fn answer(&mut self, connection: u32, stamps: Stamps, polled_ns: u64, done_ns: u64) {
        let Some(pending) = self.take(connection) else { return };
        match (stamps.transmitted, stamps.received_ns) {
            (Transmitted::At(transmitted_wall_ns), Some(received_wall_ns)) => {
                self.answered.push(AnsweredStamp {
                    pending,
                    transmitted_wall_ns,
                    received_wall_ns,
                    polled_ns,
                    done_ns,
                });
            }
            (Transmitted::Unknown, _) => self.counts.discard(StampLoss::NoTransmitStamp),
            (Transmitted::OtherByte, _) => self.counts.discard(StampLoss::OtherByte),
            (Transmitted::At(_), None) => self.counts.discard(StampLoss::NoReceiveStamp),
        }
    }

    /// Is a wall-clock reading due?
    pub(crate) fn is_window_over(&self, now_ns: u64) -> bool {
        self.is_on() && self.window_start.is_none_or(|start| now_ns >= start.after_ns + WINDOW_NS)
    }

    /// Takes a wall-clock reading: answered stamps since the last one yield spans, unless the clock was set. Each yields one value of
    /// every [`brunt_plan::plan::MeterKind::OF_TIMESTAMPS`].
    pub(crate) fn end_window(&mut self, reading: WallReading, mut record: impl FnMut([u64; 4])) {
        let start = self.window_start.replace(reading);
        match start.and_then(|start| Conversion::between(&start, &reading)) {
            Some(conversion) => {
                for answered in self.answered.drain(..) {
                    match answered.spans(&conversion) {
                        Some(spans) => {
                            self.counts.matched += 1;
                            record(spans);
                        }
                        None => self.counts.discard(StampLoss::OutOfOrder),
                    }
                }
            }
            None => {
                // Pending requests may have been sent before the step.
                (0..self.pending.len() as u32).for_each(|index| self.discard(index, StampLoss::ClockStep));
                self.answered.drain(..).for_each(|_| self.counts.discard(StampLoss::ClockStep));
            }
        }
    }

    /// Ends the run: pending stamps get no reply, answered ones their spans.
    pub(crate) fn end(&mut self, reading: WallReading, record: impl FnMut([u64; 4])) {
        (0..self.pending.len() as u32).for_each(|index| self.discard(index, StampLoss::Unanswered));
        self.end_window(reading, record);
        self.window_start = None;
        debug_assert!(self.counts.adds_up(), "{:?}", self.counts);
    }
}

impl AnsweredStamp {
    fn spans(&self, conversion: &Conversion) -> Option<[u64; 4]> {
        if self.transmitted_wall_ns > self.received_wall_ns {
            return None;
        }
        let times = StampedTimes {
            before_ns: self.pending.before_ns,
            transmitted_ns: conversion.worker_ns(self.transmitted_wall_ns),
            received_ns: conversion.worker_ns(self.received_wall_ns),
            done_ns: self.done_ns,
        };
        let [out_ns, wire_ns, in_ns] = times.spans(conversion.error_ns)?;
        Some([out_ns, wire_ns, in_ns, self.without_client_ns()])
    }

    /// What the worker's own clock readings leave of the time from queueing the request to the end of its reply, as it is for
    /// all requests.
    fn without_client_ns(&self) -> u64 {
        let PendingStamp { queued_ns, sent_ns, .. } = self.pending;
        let times = Times {
            intended_ns: queued_ns,
            picked_ns: queued_ns,
            sent_ns,
            polled_ns: self.polled_ns,
            first_byte_ns: self.done_ns,
            done_ns: self.done_ns,
        };
        times.response_without_client_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD: u64 = 1_700_000_000_000_000_000;

    /// The wall clock this far ahead, with an error of 10 ns.
    fn wall(before_ns: u64, lead_ns: u64) -> WallReading {
        WallReading { before_ns, wall_ns: before_ns + 10 + lead_ns, after_ns: before_ns + 20 }
    }

    fn stamps(transmitted_ns: u64, received_ns: u64) -> Stamps {
        Stamps { transmitted: Transmitted::At(LEAD + transmitted_ns), received_ns: Some(LEAD + received_ns) }
    }

    /// A stamper of four connections with an open window.
    fn opened() -> Stamper {
        let mut stamper = Stamper::new(vec![true; 4]);
        assert!(!stamper.wants(0, 1_000), "no reading yet");
        assert!(stamper.is_window_over(1_000));
        stamper.end_window(wall(1_000, LEAD), |_| panic!("nothing was asked for"));
        stamper
    }

    /// What the kernel noted of a request sent at 5 000 and done at 9 000; the spans or the loss that come of it.
    #[test]
    fn every_stamp_becomes_spans_or_a_loss() {
        let good = stamps(5_400, 8_000);
        let without = |transmitted| Stamps { transmitted, ..good };
        let table = [
            (good, Ok([400, 2_600, 1_000, 3_700])),
            // Within the error of the conversion: as if it were at the edge.
            (stamps(4_990, 9_010), Ok([0, 4_000, 0, 3_700])),
            (stamps(5_000, 5_000), Ok([0, 0, 4_000, 3_700])),
            (stamps(4_989, 8_000), Err(StampLoss::OutOfOrder)),
            (stamps(5_400, 9_011), Err(StampLoss::OutOfOrder)),
            (stamps(6_001, 6_000), Err(StampLoss::OutOfOrder)),
            (without(Transmitted::Unknown), Err(StampLoss::NoTransmitStamp)),
            (without(Transmitted::OtherByte), Err(StampLoss::OtherByte)),
            (Stamps { received_ns: None, ..good }, Err(StampLoss::NoReceiveStamp)),
        ];
        for (noted, expected) in table {
            let mut stamper = opened();
            stamper.request_stamp(3, 77, 4_900, 5_000);
            stamper.sent(3, 5_500);
            assert_eq!((stamper.awaited(3), stamper.awaited(2)), (Some(77), None));
            stamper.answer(3, noted, 8_600, 9_000);
            assert_eq!(stamper.awaited(3), None);
            let mut found = Vec::new();
            stamper.end_window(wall(100_000_000, LEAD), |spans| found.push(spans));
            let counts = stamper.counts();
            assert_eq!(found, Vec::from_iter(expected.ok()), "{noted:?}");
            assert!(counts.adds_up(), "{counts:?}");
            if let Err(loss) = expected {
                assert_eq!(counts.discarded(loss), 1, "{noted:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_costs_what_was_out_and_what_was_answered() {
        let mut stamper = opened();
        stamper.request_stamp(0, 10, 5_000, 5_000);
        stamper.request_stamp(1, 10, 6_000, 6_000);
        stamper.answer(0, stamps(5_400, 8_000), 8_600, 9_000);
        stamper.end_window(wall(100_000_000, LEAD + 1_000_000), |_| panic!("the clock was set"));
        assert_eq!(stamper.counts().discarded(StampLoss::ClockStep), 2);
        // The reply comes to a request that is not awaited any more; the next window is as good as any.
        stamper.answer(1, stamps(6_400, 100_000_500), 100_001_000, 100_001_000);
        stamper.request_stamp(1, 20, 100_002_000, 100_002_000);
        let moved = |ns: u64| ns + 1_000_000;
        stamper.answer(1, stamps(moved(100_002_100), moved(100_002_300)), 100_002_400, 100_002_600);
        let mut found = Vec::new();
        stamper.end(wall(200_000_000, LEAD + 1_000_000), |spans| found.push(spans));
        assert_eq!(found, [[100, 200, 300, 400]]);
        let counts = stamper.counts();
        assert_eq!((counts.requested, counts.matched), (3, 1));
        assert!(counts.adds_up(), "{counts:?}");
    }

    #[test]
    fn one_in_5_ms() {
        let mut stamper = opened();
        assert!(stamper.wants(0, 1_020), "the first one");
        stamper.request_stamp(0, 10, 9_900, 10_000);
        assert!(!stamper.wants(0, 10_000 + EVERY_NS - 1));
        assert!(stamper.wants(0, 10_000 + EVERY_NS));
        stamper.postpone(10_000 + EVERY_NS);
        assert!(!stamper.wants(0, 10_000 + EVERY_NS + AGAIN_NS - 1));
        assert!(stamper.wants(0, 10_000 + EVERY_NS + AGAIN_NS));
        let some = Stamper::new(vec![true, false]);
        assert_eq!([0, 1, 2].map(|connection| some.is_stamped(connection)), [true, false, false]);
        let off = Stamper::new(Vec::new());
        assert!(!off.is_due(u64::MAX - 1) && !off.is_window_over(u64::MAX) && off.awaited(0).is_none());
    }

    #[test]
    fn unanswered_stamps_are_counted_and_full_windows_request_none() {
        let mut stamper = opened();
        stamper.request_stamp(2, 10, 5_000, 5_000);
        stamper.discard(1, StampLoss::Unanswered);
        assert_eq!(stamper.counts().discarded(StampLoss::Unanswered), 0, "nothing was out there");
        for request in 1..ROOM as u64 {
            let at_ns = 5_000 + request * EVERY_NS;
            assert!(stamper.wants(0, at_ns));
            stamper.request_stamp(0, request, at_ns, at_ns);
            stamper.answer(0, stamps(0, 0), at_ns, at_ns);
        }
        assert!(!stamper.wants(0, u64::MAX));
        stamper.end(wall(100_000_000, LEAD), |_| {});
        let counts = stamper.counts();
        assert_eq!((counts.requested, counts.discarded(StampLoss::Unanswered)), (ROOM as u64, 1));
        assert!(counts.adds_up(), "{counts:?}");
    }
}
