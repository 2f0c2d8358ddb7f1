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

/// What became of a round of sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed {
    /// The clock after the last of those that were taken at once.
    pub now_ns: u64,
    /// Something ends with the result of a send, which must not lie until the next wait is over.
    pub awaits_results: bool,
}

impl<C: Codec> Traffic<C> {
    /// Sends what is queued, one call per connection.
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, mut now_ns: u64) -> Flushed {
        let mut awaits_results = false;
        for at in 0..self.dirty.len() {
            let index = self.dirty[at];
            self.connections[index as usize].dirty = false;
            now_ns = self.send(io, index, now_ns);
            // What wants no reply ends with the send, and nothing else would tell.
            awaits_results |= self.connections[index as usize].unacknowledged.len > 0;
        }
        self.dirty.clear();
        Flushed { now_ns, awaits_results }
    }

    /// Sends what one connection has queued and stamps what went out.
    #[inline]
    fn send<I: Io>(&mut self, io: &mut I, index: u32, before_ns: u64) -> u64 {
        if self.connections[index as usize].out.is_empty() {
            return before_ns;
        }
        let is_stamped = I::STAMPS && self.wants_stamp(index, before_ns);
        let connection = &self.connections[index as usize];
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
        let Some(result) = result else { return before_ns };
        if self.phase_now(result.at_ns) == Phase::Measure {
            self.recording.meter(MeterKind::SendCost, result.at_ns - before_ns);
        }
        self.handed_over(io, index, result, is_stamped);
        result.at_ns
    }

    /// Books what a send came to.
    #[inline]
    pub(crate) fn handed_over<I: Io>(
        &mut self,
        io: &mut I,
        index: u32,
        result: SendResult,
        is_stamped: bool,
    ) {
        let connection = &mut self.connections[index as usize];
        match result.taken {
            Ok(taken) => {
                connection.out.advance(taken);
                let was_stuck = connection.stuck;
                connection.stuck = !connection.out.is_empty();
                if !was_stuck {
                    connection.stuck_ns = result.at_ns;
                }
                let (is_stuck, route) = (connection.stuck, connection.route);
                self.stamp_sent::<I>(index, result.at_ns, taken as u64);
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
    }

    /// Stamps the operations of a connection whose last byte has been handed over.
    fn stamp_sent<I: Io>(&mut self, index: u32, at_ns: u64, bytes: u64) {
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

/// One send; with a question for the kernel where it is to be stamped.
#[inline]
#[expect(unsafe_code, reason = "a promise to the Io that the bytes stay")]
fn hand_over<I: Io>(
    io: &mut I,
    index: LinkId,
    parts: &[IoSlice<'_>],
    is_stamped: bool,
) -> Option<SendResult> {
    if I::STAMPS && is_stamped {
        return Some(io.send_stamped(index, parts));
    }
    // SAFETY: the parts lie in the connection's queue and in the block of values. The block is never written. A queue has all its
    // memory from the start; it is appended to only by `encode`, which the worker calls when every result is in (`Worker::turn`),
    // cleared only with a result or with the connection, and dropped after the Io.
    unsafe { io.send(index, parts) }
}
