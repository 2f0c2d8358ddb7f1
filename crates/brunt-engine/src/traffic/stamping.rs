//! Stamping: which write carries a request whose kernel timestamps say something, and which read ends its reply.
//!
//! Not what becomes of the stamps (that is [`crate::state::stamper`]). Invariant: a stamp that may belong to another request
//! or reply is never used. One stamp stands for all bytes of a write and of a read, so the write must hold one request
//! and nothing else, and the read must end with the last byte of its reply.

use super::Traffic;
use crate::clock::WallReading;
use crate::io::Io;
use crate::state::ids::NO_ENTRY;
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::Codec;
use brunt_stats::stamps::StampLoss;

impl<C: Codec> Traffic<C> {
    /// Is what a connection has queued to be stamped: one whole measured request, and nothing else out?
    #[inline]
    pub(super) fn wants_stamp(&self, index: u32, now_ns: u64) -> bool {
        self.stamper.wants(now_ns) && self.has_one_request(index)
    }

    fn has_one_request(&self, index: u32) -> bool {
        let connection = &self.connections[index as usize];
        let head = connection.chain.head;
        let is_simple = connection.outstanding() == 1 && head != NO_ENTRY;
        // What is stuck has been sent in part.
        is_simple && !connection.stuck && self.in_flight.get(head).phase == Phase::Measure
    }

    /// Sends what one connection has queued, and asks for stamps of it where they would say something.
    #[inline(never)]
    pub(super) fn send_stamped<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        let connection = &self.connections[index as usize];
        let mut unsent = connection.unsent;
        let has_requests = self.wants_stamp(index, before_ns) && !connection.out.is_empty();
        let sent_ns = if has_requests {
            self.stamper.request_stamp(index, connection.out.queued_total(), io.now_ns());
            self.send_with(io, index, before_ns, |io, index, parts| Some(io.send_stamped(index, parts)))
        } else {
            self.send(io, index, before_ns)
        };
        let connection = &self.connections[index as usize];
        if has_requests && connection.stuck {
            self.stamper.discard(index, StampLoss::SentInPieces);
        }
        while unsent != connection.unsent {
            self.stamper.sent();
            unsent = self.in_flight.get(unsent).next();
        }
        sent_ns
    }

    /// How many requests wait for replies on a connection, if the stamps of one of them are awaited.
    #[inline]
    pub(crate) fn awaits_stamps(&self, index: u32) -> Option<u32> {
        self.stamper.awaited(index).map(|_| self.connections[index as usize].chain.len)
    }

    /// After a read on a connection with this many requests before it: do the stamps of the read belong to the reply that
    /// is awaited there?
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

    /// Takes a reading of the clock that the stamps are on.
    pub(crate) fn end_stamp_window(&mut self, reading: WallReading) {
        let recording = &mut self.recording;
        self.stamper.end_window(reading, |spans| recording.meter_each(MeterKind::OF_TIMESTAMPS, spans));
    }

    /// The run is over.
    pub(crate) fn end_stamps(&mut self, reading: WallReading) {
        let recording = &mut self.recording;
        self.stamper.end(reading, |spans| recording.meter_each(MeterKind::OF_TIMESTAMPS, spans));
    }
}
