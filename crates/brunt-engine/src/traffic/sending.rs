//! Handing out: queued bytes go to the Io, and operations get their sent time.
//!
//! Not encoding. Invariant: an operation is stamped by the call that took its last byte, and one that wants no reply
//! ends there.

use super::Traffic;
use crate::connection::fault_of_errno;
use crate::in_flight::NO_ENTRY;
use crate::io::{CloseHow, Io, LinkId, SendResult};
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::Codec;
use brunt_proto::out::PARTS_MAX;
use brunt_stats::stamps::StampLoss;
use std::io::IoSlice;

impl<C: Codec> Traffic<C> {
    /// Sends what is queued, one call per connection. Returns the clock after the last call.
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, mut now_ns: u64) -> u64 {
        for at in 0..self.dirty.len() {
            let index = self.dirty[at];
            self.connections[index as usize].dirty = false;
            now_ns = self.send(io, index, now_ns);
        }
        self.dirty.clear();
        now_ns
    }

    /// Sends what one connection has queued and stamps what went out.
    #[inline]
    fn send<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        if self.connections[index as usize].out.is_empty() {
            return before_ns;
        }
        let is_stamped = I::STAMPS && self.wants_stamp(index, before_ns);
        let connection = &mut self.connections[index as usize];
        if is_stamped {
            self.stamper.ask(index, connection.out.queued_total(), io.now_ns());
        }
        let result = match connection.out.contiguous() {
            Some(bytes) => hand_over(io, index, &[IoSlice::new(bytes)], is_stamped),
            None => {
                let mut parts = [IoSlice::new(&[]); PARTS_MAX];
                let count = connection.out.gather(self.payload.block(), &mut parts);
                hand_over(io, index, &parts[..count], is_stamped)
            }
        };
        match result.taken {
            Ok(taken) => {
                connection.out.advance(taken);
                let was_stuck = connection.stuck;
                connection.stuck = !connection.out.is_empty();
                if !was_stuck {
                    connection.stuck_ns = result.at_ns;
                }
                let (is_stuck, route) = (connection.stuck, connection.route);
                self.stamp_sent::<I>(index, result.at_ns, taken as u64, result.at_ns - before_ns);
                if is_stamped && is_stuck {
                    self.stamper.discard(index, StampLoss::SentInPieces);
                }
                if is_stuck {
                    self.routes[route as usize].ready.remove(index);
                } else if was_stuck {
                    self.became_usable(index);
                }
                self.check_retired(index);
            }
            Err(errno) => {
                self.lose(index, result.at_ns, fault_of_errno(errno), OutcomeClass::Lost);
                io.close(index, CloseHow::Orderly);
            }
        }
        result.at_ns
    }

    /// Stamps the operations of a connection whose last byte has been handed over.
    fn stamp_sent<I: Io>(&mut self, index: u32, at_ns: u64, bytes: u64, cost_ns: u64) {
        let connection = &mut self.connections[index as usize];
        let sent_total = connection.out.sent_total();
        while connection.unsent != NO_ENTRY {
            let entry = self.in_flight.get_mut(connection.unsent);
            if entry.stream_end > sent_total {
                break;
            }
            entry.sent_ns = at_ns;
            self.recording.sent(entry);
            if I::STAMPS {
                self.stamper.sent();
            }
            connection.unsent = self.in_flight.next(connection.unsent);
        }
        let phase = self.phase_now(at_ns);
        self.recording.bytes_sent(phase, bytes);
        if phase == Phase::Measure {
            self.recording.meter(MeterKind::SendCost, cost_ns);
        }
        if self.connections[index as usize].unacknowledged.len > 0 {
            self.end_unacknowledged(index, sent_total, at_ns);
        }
    }

    /// Ends the operations without a reply whose last byte has been handed over.
    fn end_unacknowledged(&mut self, index: u32, sent_total: u64, at_ns: u64) {
        loop {
            let connection = &mut self.connections[index as usize];
            let head = connection.unacknowledged.head;
            if head == NO_ENTRY || self.in_flight.get(head).stream_end > sent_total {
                break;
            }
            let Some(mut entry) = self.in_flight.pop(&mut connection.unacknowledged) else { break };
            entry.sent_ns = at_ns;
            self.recording.sent(&entry);
            self.book(index, &entry, Outcome::without_reply(OutcomeClass::Unacknowledged), at_ns, at_ns);
        }
        self.mark_ready(index);
    }

    /// A socket takes bytes again.
    pub(crate) fn writable<I: Io>(&mut self, io: &mut I, index: u32, at_ns: u64) {
        if self.connections[index as usize].stuck {
            self.send(io, index, at_ns);
        }
    }
}

/// One call that sends; with a question for the kernel where it is to be stamped.
#[inline]
fn hand_over<I: Io>(io: &mut I, index: LinkId, parts: &[IoSlice<'_>], is_stamped: bool) -> SendResult {
    if I::STAMPS && is_stamped { io.send_stamped(index, parts) } else { io.send(index, parts) }
}
