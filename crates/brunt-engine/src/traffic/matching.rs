//! Finds the operation that a reply answers, and handles unmatched replies.
//!
//! With FIFO matching it is the oldest operation of the connection, and an unmatched reply means that requests and
//! replies are out of step. With request ids an unmatched reply is discarded, and an operation times out alone. Whole replies of plain hits
//! are matched in `fast_path.rs`, in order or by the same ids (`state/in_flight.rs`).
//! Invariant: with request ids, a reply to a timed-out operation never reaches another one.

use super::Traffic;
use crate::state::{EntryId, NO_ENTRY};
use brunt_plan::outcome::OutcomeClass;
use brunt_proto::{Codec, Event, KeyNames, Malformed, Matching, NO_TOKEN};
use brunt_stats::connection::FaultKind;
use brunt_stats::worker_counts::StampLoss;
use brunt_workload::keys::KeyGenerator;

impl<C: Codec> Traffic<C> {
    /// The operation of an event; [`NO_ENTRY`] if there is none, or none known yet.
    #[inline(always)]
    pub(super) fn answered(&mut self, index: u32, event: &Event<'_>) -> EntryId {
        let connection = &self.connections[index];
        match (C::MATCHING, event) {
            (Matching::Fifo, _) => connection.chain.head,
            (
                Matching::Token,
                Event::Key { token, .. }
                | Event::Found(brunt_proto::Found { token, .. })
                | Event::End { token, .. },
            ) => {
                let id = if *token == NO_TOKEN && self.may_be_unmatched(index) {
                    NO_ENTRY
                } else {
                    self.in_flight.answered(index, &connection.chain, *token)
                };
                if id != NO_ENTRY {
                    let rest = &mut self.in_flight.get_mut(id).details;
                    if rest.first_byte_ns == 0 {
                        rest.first_byte_ns = connection.begun_ns;
                    }
                }
                id
            }
            (Matching::Token, _) => NO_ENTRY,
        }
    }

    /// May a reply without a request id be unmatched: after a timeout on this connection without received bytes
    /// since, or with writes that request no reply? If it was for the oldest operation, that one times out.
    fn may_be_unmatched(&self, index: u32) -> bool {
        let connection = &self.connections[index];
        let is_silent = |lane: u32| self.dispatch.lanes[lane as usize].noreply;
        let has_given_up = connection.given_up_ns != 0
            || self.dispatch.routes[connection.route as usize].lanes().any(is_silent);
        has_given_up && !connection.codec.is_in_order()
    }

    /// Handles an event without an operation: of the connection setup or, with request ids, of an unmatched reply.
    /// An error means that requests and replies are out of step.
    pub(super) fn handle_unmatched(
        &mut self,
        index: u32,
        event: Event<'_>,
        at_ns: u64,
    ) -> Result<(), Malformed> {
        if C::MATCHING == Matching::Fifo || self.connections.is_in_setup(index) {
            return self.receive_setup_reply(index, event);
        }
        let connection = &mut self.connections[index];
        match event {
            Event::Begin => connection.begun_ns = at_ns,
            Event::Value(piece) => {
                if let Some(verifier) = &mut connection.verifier {
                    self.wrong_bytes.feed(index, verifier, &self.payload, piece);
                }
            }
            // The value of an unmatched reply is not verified.
            Event::Key { .. } => connection.verifier = None,
            Event::Found(_) => self.discard_unmatched(index, &[]),
            Event::End { text, .. } => self.discard_unmatched(index, text),
            Event::Control(_) | Event::Push { .. } | Event::Bad(_) => {}
        }
        Ok(())
    }

    /// Ends an unmatched reply: a duplicate, a late one, or the error of a write that was to have no reply.
    fn discard_unmatched(&mut self, index: u32, text: &[u8]) {
        self.connections[index].verifier = None;
        self.recording.counts.unmatched_replies += 1;
        if !text.is_empty() {
            self.recording.note_error(text);
        }
        // The timestamps of this read may belong to the unmatched reply.
        self.stamper.discard(index, StampLoss::SharedRead);
    }

    /// Times out overdue operations one by one. If nothing was received for a whole timeout after the last one, the
    /// rest stays: the peer is down, and the connection fails as a whole. Replies that came until `seen_ns` were read.
    pub(super) fn time_out_overdue(&mut self, index: u32, seen_ns: u64, now_ns: u64) {
        loop {
            let is_by_datagram = self.connections.is_by_datagram(index);
            let connection = &mut self.connections[index];
            // A lost datagram says nothing about the peer.
            let is_dead = !is_by_datagram
                && connection.given_up_ns != 0
                && seen_ns >= connection.given_up_ns + self.timeout_ns;
            let head = connection.chain.head;
            let is_overdue = head != NO_ENTRY && {
                let sent_ns = self.in_flight.get(head).sent_ns;
                sent_ns != 0 && sent_ns + self.timeout_ns <= seen_ns
            };
            if is_dead || !is_overdue {
                return;
            }
            if connection.given_up_ns == 0 {
                connection.given_up_ns = now_ns;
            }
            let token = self.in_flight.waiting_token(head);
            let Some(entry) = self.in_flight.pop(index, &mut connection.chain) else { return };
            let (route, outstanding) = (connection.route, connection.outstanding());
            if connection.is_usable() {
                self.dispatch.routes[route as usize].ready.set(index, outstanding);
            }
            if is_by_datagram {
                self.forget_datagrams(index, token);
            }
            self.reply_ids_of = NO_ENTRY;
            if self.stamper.awaited(index) == Some(entry.stream_end) {
                self.stamper.discard(index, StampLoss::Unanswered);
            }
            self.fail_request(index, &entry, now_ns, FaultKind::TimedOut, OutcomeClass::Timeout);
            self.leave_idle(index);
            self.connections.check_retired(index);
        }
    }
}

/// Is a key in a reply the requested one with this id? An unnamed key is. Keys of a plan are printable ASCII, which
/// no protocol encodes, so bytes are compared.
#[inline(always)]
pub(super) fn is_requested<C: Codec>(keyspace: &KeyGenerator, id: u64, key: &[u8]) -> bool {
    match C::KEY_NAMES {
        KeyNames::Always => keyspace.is_key_of(id, key),
        KeyNames::OfSeveral => key.is_empty() || keyspace.is_key_of(id, key),
        KeyNames::Never => true,
    }
}
