//! UDP: one datagram per request, and replies assembled from theirs.
//!
//! The codec knows the headers. Kept here until a reply is complete: datagrams that came before earlier ones, the
//! front of an incomplete event, the value being verified. Invariant: nothing here outlives its request.

use super::Traffic;
use super::matching::is_requested;
use super::receiving::ReadTimes;
use crate::io::{ConnectionIndex, Io, SendResult};
use crate::state::connection::Leftovers;
use crate::state::{EntryId, NO_ENTRY};
use brunt_plan::op::KeyRef;
use brunt_proto::memcached::udp::DATAGRAM_ROOM;
use brunt_proto::{Codec, DatagramAction, DiscardReason, Malformed, TimedOut};
use brunt_workload::verify::Verifier;
use std::io::IoSlice;

/// State of an incomplete reply.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Verifies the value being received.
    verifier: Option<Verifier>,
    /// As in a connection.
    reply_bytes: u64,
    /// Bytes of an incomplete event that are kept.
    leftover: usize,
    /// Bit set of a multi-get's keys that were reported.
    reported: u128,
}

/// Memory of a worker for datagrams; empty without them.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// Slots per connection.
    places: usize,
    /// By connection and slot.
    waiting: Vec<Waiting>,
    /// Bit set of the keys that the current reply has reported.
    reported: u128,
    leftovers: Leftovers,
    /// Maximum datagrams held per slot, and their lengths and bytes. One allocation: untouched parts cost no
    /// memory.
    ahead_max: usize,
    held_lens: Vec<u16>,
    held: Box<[u8]>,
    /// A held datagram that is being read.
    taken: Box<[u8]>,
    /// An incomplete event with the datagram that continues it.
    joined: Box<[u8]>,
    /// Ends of the requests to send.
    ends: Vec<u32>,
}

impl Datagrams {
    /// For this many connections with this codec.
    pub(super) fn new<C: Codec>(connections: usize, codec: &C) -> Self {
        let (places, ahead_max) = (codec.places(), usize::from(codec.ahead_max()));
        let count = connections * places;
        let room = if C::DATAGRAMS { DATAGRAM_ROOM } else { 0 };
        let joined = if C::DATAGRAMS { C::UNIT_BYTES_MAX + DATAGRAM_ROOM } else { 0 };
        Self {
            places,
            waiting: vec![Waiting::default(); count],
            reported: 0,
            leftovers: Leftovers::new(count, C::UNIT_BYTES_MAX),
            ahead_max,
            held_lens: vec![0; count * ahead_max],
            held: vec![0; count * ahead_max * room].into_boxed_slice(),
            taken: vec![0; room].into_boxed_slice(),
            joined: vec![0; joined].into_boxed_slice(),
            ends: Vec::with_capacity(places),
        }
    }

    /// Index of a connection's slot among all.
    fn at(&self, index: u32, place: usize) -> usize {
        index as usize * self.places + place
    }

    /// Index of a held datagram: numbers held at a time differ by less than the capacity.
    fn hold_at(&self, at: usize, sequence: u16) -> usize {
        at * self.ahead_max + usize::from(sequence) % self.ahead_max
    }

    /// Holds a datagram until earlier ones come.
    fn hold(&mut self, at: usize, sequence: u16, payload: &[u8]) {
        let hold_at = self.hold_at(at, sequence);
        self.held_lens[hold_at] = payload.len() as u16;
        self.held[hold_at * DATAGRAM_ROOM..][..payload.len()].copy_from_slice(payload);
    }

    /// Copies a held datagram to be read. Returns its length.
    fn take_held(&mut self, at: usize, sequence: u16) -> usize {
        let hold_at = self.hold_at(at, sequence);
        let len = usize::from(self.held_lens[hold_at]);
        self.taken[..len].copy_from_slice(&self.held[hold_at * DATAGRAM_ROOM..][..len]);
        len
    }

    /// Drops everything kept for a connection.
    pub(super) fn forget(&mut self, index: u32) {
        let first = self.at(index, 0);
        self.waiting[first..first + self.places].fill(Waiting::default());
    }
}

impl<C: Codec> Traffic<C> {
    /// Handles a datagram. Faults affect only the datagram itself.
    pub(super) fn take_datagram(&mut self, read: ReadTimes, datagram: &[u8]) {
        let index = read.index;
        match self.connections[index].codec.receive_datagram(datagram) {
            DatagramAction::Nothing => {}
            DatagramAction::Discarded(reason) => {
                if reason == DiscardReason::Malformed {
                    self.recording.note_malformed(datagram, read.at_ns, Malformed::UnknownReply.name());
                }
                self.recording.note_discarded(reason);
            }
            DatagramAction::Held { place, payload, sequence } => {
                let at = self.datagrams.at(index, place);
                self.datagrams.hold(at, sequence, payload);
                self.recording.counts.datagrams.packet_disorder += 1;
            }
            DatagramAction::Reply { place, payload, sequence, held } => {
                let at = self.datagrams.at(index, place);
                self.read_payload(read, at, payload);
                for behind in 1..=held {
                    if !self.connections[index].codec.is_reading() {
                        break;
                    }
                    let len = self.datagrams.take_held(at, sequence + behind);
                    let taken = std::mem::take(&mut self.datagrams.taken);
                    self.read_payload(read, at, &taken[..len]);
                    self.datagrams.taken = taken;
                }
            }
        }
    }

    /// Decodes a datagram's part of a reply, after what was left over.
    fn read_payload(&mut self, read: ReadTimes, at: usize, payload: &[u8]) {
        let before = self.datagrams.waiting[at];
        let connection = &mut self.connections[read.index];
        (connection.verifier, connection.reply_bytes) = (before.verifier, before.reply_bytes);
        self.datagrams.reported = before.reported;
        let mut joined = std::mem::take(&mut self.datagrams.joined);
        let input = match before.leftover {
            0 => payload,
            leftover => {
                joined[..leftover].copy_from_slice(&self.datagrams.leftovers.bytes_of(at as u32)[..leftover]);
                joined[leftover..leftover + payload.len()].copy_from_slice(payload);
                &joined[..leftover + payload.len()]
            }
        };
        let decoded = self.decode(read.index, input, read.at_ns, read.polled_ns);
        let connection = &mut self.connections[read.index];
        let (verifier, reply_bytes) = (connection.verifier.take(), connection.reply_bytes);
        self.datagrams.waiting[at] = match decoded {
            Ok(used) if connection.codec.is_reading() => {
                let rest = &input[used..];
                self.datagrams.leftovers.bytes_of(at as u32)[..rest.len()].copy_from_slice(rest);
                Waiting { verifier, reply_bytes, leftover: rest.len(), reported: self.datagrams.reported }
            }
            Ok(_) => Waiting::default(),
            // Discarded as if it had not come.
            Err(()) => before,
        };
        self.datagrams.joined = joined;
    }

    /// Discards bytes of a reply that are malformed or duplicate; the request waits on.
    #[cold]
    pub(super) fn discard_bytes(&mut self, index: u32, bytes: &[u8], at_ns: u64, malformed: Malformed) {
        self.connections[index].codec.skip();
        let is_repeated = malformed == Malformed::Repeated;
        let reason = if is_repeated { DiscardReason::Duplicate } else { DiscardReason::Malformed };
        if !is_repeated {
            self.recording.note_malformed(bytes, at_ns, malformed.name());
        }
        self.recording.note_discarded(reason);
        self.reply_ids_of = NO_ENTRY;
    }

    /// A key of a multi-get is reported, found or missing; in datagrams they come in any order. Yields its id, if it is one of those that
    /// were not reported of yet.
    pub(super) fn pass_key_in_any_order(&mut self, index: u32, head: EntryId, key: &[u8]) -> Option<u64> {
        self.fetch_reply_ids(index, head);
        let keyspace = &self.lane_at(head).keyspace;
        let reported = self.datagrams.reported;
        let is_it =
            |(at, id): &(usize, &u64)| reported & 1 << at == 0 && is_requested::<C>(keyspace, **id, key);
        let (at, id) = self.reply_ids.iter().enumerate().find(is_it)?;
        self.datagrams.reported |= 1 << at;
        Some(*id)
    }

    /// Has the reply that is being read reported of this one of a multi-get's keys?
    pub(super) fn has_reported(&self, at: usize) -> bool {
        self.datagrams.reported & 1 << at != 0
    }

    /// Was this key reported before? A multi-get's reply comes in several trains, and only the key tells
    /// duplicates. The value is discarded, the rest is not: it may be the end of the reply.
    pub(super) fn is_repeated(&mut self, index: u32, head: EntryId, key: &[u8]) -> bool {
        let entry = self.in_flight.get(head);
        let is_repeated = if let (KeyRef::Id(_) | KeyRef::Offset(_), 1) = (entry.key(), entry.details.count) {
            entry.details.hits > 0
        } else {
            self.fetch_reply_ids(index, head);
            let keyspace = &self.lane_at(head).keyspace;
            let reported = self.datagrams.reported;
            let is_it = |id: &u64| is_requested::<C>(keyspace, *id, key);
            let mut places = (0..).zip(&self.reply_ids).filter(|(_, id)| is_it(id)).map(|(at, _)| at);
            let has_requests = places.clone().next().is_some();
            has_requests && places.all(|at: u32| reported & 1 << at != 0)
        };
        if is_repeated {
            self.recording.note_discarded(DiscardReason::Duplicate);
        }
        is_repeated
    }

    /// Drops what is kept for a timed-out request.
    pub(super) fn forget_datagrams(&mut self, index: u32, token: u32) {
        if let Some(TimedOut { place, missing }) = self.connections[index].codec.time_out(token) {
            let at = self.datagrams.at(index, place);
            self.datagrams.waiting[at] = Waiting::default();
            self.recording.note_udp_timeout(missing);
        }
    }

    /// Sends queued requests, one datagram each. `None`: deferred, the result follows.
    #[expect(unsafe_code, reason = "a promise to the Io that the bytes stay")]
    pub(super) fn send_datagrams<I: Io>(&mut self, io: &mut I, index: ConnectionIndex) -> Option<SendResult> {
        let connection = &self.connections[index];
        let bytes = connection.out.contiguous().expect("a value that fits into a datagram is copied");
        let (sent_total, ends) = (connection.out.sent_total(), &mut self.datagrams.ends);
        let (mut replied, mut silent) = (connection.unsent, connection.unacknowledged.head);
        ends.clear();
        loop {
            let [of_replied, of_silent] = [replied, silent].map(|id| match id {
                NO_ENTRY => u64::MAX,
                id => self.in_flight.get(id).stream_end,
            });
            let end = of_replied.min(of_silent);
            if end == u64::MAX {
                break;
            }
            let next = if of_replied < of_silent { &mut replied } else { &mut silent };
            *next = self.in_flight.get(*next).next();
            ends.push((end - sent_total) as u32);
        }
        match ends.len() {
            // SAFETY: as in `hand_over`, beside which this is called.
            1 => unsafe { io.send(index, &[IoSlice::new(bytes)]) },
            _ => Some(io.send_datagrams(index, bytes, ends)),
        }
    }
}
