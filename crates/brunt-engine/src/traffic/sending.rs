//! Sending: queued bytes go to the Io, and operations get their sent time.
//!
//! Some requests are sent for kernel timestamps, which [`crate::state::stamper`] evaluates: a timestamp covers all bytes of a
//! write or read, so the write must hold one request, and the read must end with its reply. Invariants: an operation's
//! sent time is that of the call that took its last byte; one without a reply ends there; a timestamp that may belong to
//! another request or reply is never used.

use crate::clock::WallReading;
use crate::io::{CloseMode, ConnectionIndex, Io, SendResult};
use crate::state::NO_ENTRY;
use crate::state::connection::fault_of_errno;
use crate::traffic::Traffic;
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::Codec;
use brunt_proto::out::PARTS_MAX;
use brunt_stats::recorder::RowHandle;
use brunt_stats::worker_counts::StampLoss;
use std::io::IoSlice;

/// Result of sending on all connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed {
    /// The clock after the last send with a result.
    pub now_ns: u64,
    /// An operation ends with a pending send result, which must not wait for the next poll.
    pub awaits_results: bool,
}

impl<C: Codec> Traffic<C> {
    /// Sends what is queued, one call per connection.
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, now_ns: u64) -> Flushed {
        if self.stamper.is_due(now_ns) && !self.connections.dirty.is_empty() {
            return self.flush_stamped(io, now_ns);
        }
        self.flush_by(io, now_ns, Self::send)
    }

    /// As `flush`, with kernel timestamps of a request.
    #[inline(never)]
    fn flush_stamped<I: Io>(&mut self, io: &mut I, now_ns: u64) -> Flushed {
        let flushed = self.flush_by(io, now_ns, Self::send_stamped);
        if self.stamper.is_due(flushed.now_ns) {
            self.stamper.postpone(flushed.now_ns);
        }
        flushed
    }

    /// As `flush`; `send` sends the queue of one connection.
    #[inline(always)]
    fn flush_by<I: Io>(
        &mut self,
        io: &mut I,
        mut now_ns: u64,
        send: impl Fn(&mut Self, &mut I, u32, u64) -> u64,
    ) -> Flushed {
        if !self.connections.dirty.is_empty() {
            self.connections.queued_ns = now_ns;
        }
        let mut awaits_results = false;
        for at in 0..self.connections.dirty.len() {
            let index = self.connections.dirty[at];
            now_ns = send(self, io, index, now_ns);
            let connection = &mut self.connections[index];
            connection.dirty = false;
            // An operation without a reply ends with its send.
            awaits_results |= connection.unacknowledged.len > 0;
        }
        self.connections.dirty.clear();
        Flushed { now_ns, awaits_results }
    }

    /// Sends the queue of one connection and sets sent times.
    #[inline(always)]
    pub(super) fn send<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        self.send_with(io, index, before_ns, hand_over)
    }

    /// As `send`, by this call.
    #[inline(always)]
    pub(super) fn send_with<I: Io>(
        &mut self,
        io: &mut I,
        index: u32,
        before_ns: u64,
        hand_over: impl Fn(&mut I, ConnectionIndex, &[IoSlice<'_>]) -> Option<SendResult>,
    ) -> u64 {
        let connection = &self.connections[index];
        if connection.out.is_empty() {
            return before_ns;
        }
        let result = match connection.out.contiguous() {
            _ if C::DATAGRAMS && connection.codec.is_by_datagram() => self.send_datagrams(io, index),
            Some(bytes) => hand_over(io, index, &[IoSlice::new(bytes)]),
            None => {
                let mut parts = [IoSlice::new(&[]); PARTS_MAX];
                let count = connection.out.gather(self.payload.block(), &mut parts);
                hand_over(io, index, &parts[..count])
            }
        };
        let Some(result) = result else { return before_ns };
        let phase = self.phase_now(result.at_ns);
        if phase == Phase::Measure {
            self.recording.meter(MeterKind::SendCost, result.at_ns - before_ns);
        }
        self.settle(io, index, result, phase);
        result.at_ns
    }

    /// Handles the result of a deferred send.
    pub(crate) fn handed_over<I: Io>(&mut self, io: &mut I, index: u32, result: SendResult) {
        let phase = self.phase_now(result.at_ns);
        self.settle(io, index, result, phase);
    }

    /// Handles the result of a send.
    #[inline(always)]
    fn settle<I: Io>(&mut self, io: &mut I, index: u32, result: SendResult, phase: Phase) {
        let connection = &mut self.connections.all[index as usize];
        let taken = match result.taken {
            Ok(taken) => taken,
            Err(errno) => return self.break_off(io, index, result.at_ns, errno),
        };
        connection.out.advance(taken);
        self.busy.note_handed_over(connection.server, self.connections.queued_ns, result.at_ns);
        let was_stuck = connection.stuck;
        connection.stuck = !connection.out.is_empty();
        if !was_stuck {
            connection.stuck_ns = result.at_ns;
        }
        self.recording.set.transmitted(phase, taken as u64);
        let sent_total = connection.out.sent_total();
        let mut alike: Option<(RowHandle, u32)> = None;
        while let Some(entry) = self.in_flight.entry_mut(connection.unsent)
            && entry.stream_end <= sent_total
        {
            entry.sent_ns = result.at_ns;
            match &mut alike {
                Some((row, count)) if entry.is_simple && *row == entry.row => *count += 1,
                _ if entry.is_simple => {
                    if let Some((row, count)) = alike.replace((entry.row, 1)) {
                        self.recording.sent_many(row, count, result.at_ns);
                    }
                }
                _ => self.recording.sent(entry),
            }
            connection.unsent = entry.next();
        }
        if let Some((row, count)) = alike {
            self.recording.sent_many(row, count, result.at_ns);
        }
        // Rare cases.
        if connection.stuck || was_stuck || connection.retiring || connection.unacknowledged.len > 0 {
            self.settle_rest(index, result.at_ns, was_stuck);
        }
    }

    /// Handles a failed send: the connection fails, or its attempt if it is in setup.
    #[cold]
    fn break_off<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64, errno: i32) {
        if self.connections.is_in_setup(index) {
            self.connections.setup_send_error = Some(errno);
        } else {
            self.fail_connection(index, at_ns, fault_of_errno(errno), OutcomeClass::Lost);
        }
        io.close(index, CloseMode::Orderly);
    }

    /// Handles partial sends, writes without a reply and retiring connections.
    #[inline(never)]
    fn settle_rest(&mut self, index: u32, at_ns: u64, was_stuck: bool) {
        let connection = &self.connections[index];
        let (is_stuck, sent_total) = (connection.stuck, connection.out.sent_total());
        if connection.unacknowledged.len > 0 {
            self.end_unacknowledged(index, sent_total, at_ns);
        }
        if is_stuck {
            self.take_off(index);
        } else if was_stuck {
            self.became_usable(index);
        }
        self.connections.check_retired(index);
    }

    /// Ends sent operations without a reply.
    fn end_unacknowledged(&mut self, index: u32, sent_total: u64, at_ns: u64) {
        let server = self.connections[index].server;
        let mut any = false;
        loop {
            let connection = &mut self.connections[index];
            let head = connection.unacknowledged.head;
            if head == NO_ENTRY || self.in_flight.get(head).stream_end > sent_total {
                break;
            }
            let Some(mut entry) = self.in_flight.pop(index, &mut connection.unacknowledged) else { break };
            entry.sent_ns = at_ns;
            any = true;
            self.recording.sent(&entry);
            self.servers[usize::from(server)].note_activity(at_ns);
            self.record_end(
                index,
                &entry,
                Outcome::without_reply(OutcomeClass::Unacknowledged),
                at_ns,
                at_ns,
            );
        }
        if any {
            self.leave_idle(index);
        }
        self.mark_ready(index);
    }

    /// Continues a partial send when the socket is writable.
    pub(crate) fn writable<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) {
        if self.connections[index].stuck {
            // The bytes could not be sent before.
            self.connections.queued_ns = at_ns;
            self.send(io, index, at_ns);
        }
    }
}

/// Sends these parts.
#[inline]
#[expect(unsafe_code, reason = "a promise to the Io that the bytes stay")]
fn hand_over<I: Io>(io: &mut I, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
    // SAFETY: the parts lie in the connection's queue and in the block of values. The block is never written. A queue has all its
    // memory from the start; it is appended to only by `encode`, which the worker calls when every result is in (`Worker::run_once`),
    // and by `begin_setup`, before which nothing was handed over on its connection; it is cleared only with a result or with the connection, and dropped after the Io.
    unsafe { io.send(index, parts) }
}

impl<C: Codec> Traffic<C> {
    /// Is the queue of a connection to be stamped: one whole measured request, and nothing else in flight?
    fn wants_stamp(&self, index: u32, now_ns: u64) -> bool {
        let connection = &self.connections[index];
        let head = connection.chain.head;
        // A blocked request was sent in part.
        self.stamper.wants(index, now_ns)
            && connection.outstanding() == 1
            && head != NO_ENTRY
            && !connection.stuck
            && self.in_flight.get(head).phase == Phase::Measure
    }

    /// Sends the queue of one connection, with a timestamp if it is to be stamped.
    #[inline(never)]
    pub(super) fn send_stamped<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        let out = &self.connections[index].out;
        if out.is_empty() || !self.wants_stamp(index, before_ns) {
            return self.send(io, index, before_ns);
        }
        self.stamper.request_stamp(index, out.queued_total(), self.connections.queued_ns, io.now_ns());
        let sent_ns =
            self.send_with(io, index, before_ns, |io, index, parts| Some(io.send_stamped(index, parts)));
        self.stamper.sent(index, sent_ns);
        if self.connections[index].stuck {
            self.stamper.discard(index, StampLoss::SentInPieces);
        }
        sent_ns
    }

    /// Requests in flight on a connection with a pending stamp.
    #[inline]
    pub(crate) fn awaits_stamps(&self, index: u32) -> Option<u32> {
        self.stamper.awaited(index).map(|_| self.connections[index].chain.len)
    }

    /// Does the read that just ended, with this many requests in flight before, hold the timestamp of the stamped
    /// reply?
    pub(crate) fn ends_stamped(&mut self, index: u32, requests_before: u32) -> bool {
        let Some(stream_end) = self.stamper.awaited(index) else { return false };
        let connection = &self.connections[index];
        let head = connection.chain.head;
        let next = (head != NO_ENTRY).then(|| self.in_flight.get(head));
        if next.is_some_and(|entry| entry.stream_end <= stream_end) {
            return false;
        }
        let is_last = requests_before == connection.chain.len + 1
            && connection.leftover == 0
            && next.is_none_or(|entry| entry.details.first_byte_ns == 0);
        if !is_last {
            self.stamper.discard(index, StampLoss::SharedRead);
        }
        is_last
    }

    /// Takes a reading of the timestamps' clock.
    pub(crate) fn end_stamp_window(&mut self, reading: WallReading) {
        let recording = &mut self.recording;
        self.stamper.end_window(reading, |spans| recording.meter_each(MeterKind::OF_TIMESTAMPS, spans));
    }

    /// Ends stamping with the run.
    pub(crate) fn end_stamps(&mut self, reading: WallReading) {
        let recording = &mut self.recording;
        self.stamper.end(reading, |spans| recording.meter_each(MeterKind::OF_TIMESTAMPS, spans));
    }
}
