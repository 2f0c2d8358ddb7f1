//! Selects requests for kernel timestamps, and the reads that end their replies.
//!
//! [`crate::state::stamper`] evaluates the timestamps. Invariant: a timestamp that may belong to another request or
//! reply is never used. A timestamp covers all bytes of a write or read, so the write must hold one request, and
//! the read must end with its reply.

use super::Traffic;
use crate::clock::WallReading;
use crate::io::Io;
use crate::state::ids::NO_ENTRY;
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::Codec;
use brunt_stats::stamps::StampLoss;

impl<C: Codec> Traffic<C> {
    /// Is the queue of a connection to be stamped: one whole measured request, and nothing else in flight?
    #[inline]
    pub(super) fn wants_stamp(&self, index: u32, now_ns: u64) -> bool {
        self.stamper.wants(index, now_ns) && self.has_one_request(index)
    }

    fn has_one_request(&self, index: u32) -> bool {
        let connection = &self.connections[index as usize];
        let head = connection.chain.head;
        let is_simple = connection.outstanding() == 1 && head != NO_ENTRY;
        // A blocked request was sent in part.
        is_simple && !connection.stuck && self.in_flight.get(head).phase == Phase::Measure
    }

    /// Sends the queue of one connection, with a timestamp if it is to be stamped.
    #[inline(never)]
    pub(super) fn send_stamped<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        let out = &self.connections[index as usize].out;
        if out.is_empty() || !self.wants_stamp(index, before_ns) {
            return self.send(io, index, before_ns);
        }
        self.stamper.request_stamp(index, out.queued_total(), self.queued_ns, io.now_ns());
        let sent_ns =
            self.send_with(io, index, before_ns, |io, index, parts| Some(io.send_stamped(index, parts)));
        self.stamper.sent(index, sent_ns);
        if self.connections[index as usize].stuck {
            self.stamper.discard(index, StampLoss::SentInPieces);
        }
        sent_ns
    }

    /// Requests in flight on a connection with a pending stamp.
    #[inline]
    pub(crate) fn awaits_stamps(&self, index: u32) -> Option<u32> {
        self.stamper.awaited(index).map(|_| self.connections[index as usize].chain.len)
    }

    /// Does the read that just ended, with this many requests in flight before, hold the timestamp of the stamped
    /// reply?
    pub(crate) fn ends_stamped(&mut self, index: u32, requests_before: u32) -> bool {
        let Some(stream_end) = self.stamper.awaited(index) else { return false };
        let connection = &self.connections[index as usize];
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
