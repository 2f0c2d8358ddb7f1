//! Receives replies: bytes become events, events end operations, operations become samples.
//!
//! The codec parses, [`super::matching`] finds the operation. Invariant: a reply ends the operation that it
//! answers, once.

use super::Traffic;
use super::abandoning::unsent_times;
use super::matching::is_requested;
use super::redirecting::ReplyEnd;
use crate::state::group::Group;
use crate::state::in_flight::Entry;
use crate::state::lane::{Checking, Lane, Picked, Route};
use crate::state::{EntryId, NO_ENTRY, NO_GROUP, NO_REDIRECT};
use brunt_plan::op::{KeyRef, OpKind};
use brunt_plan::outcome::{ErrorPersistence, Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::detection::DetectedProtocol;
use brunt_proto::resp::slot::slot_of;
use brunt_proto::{Codec, Event, Form, Found, KeyNames, Malformed, Matching, Recache};
use brunt_stats::connection::{FaultKind, FirstError};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::server::OutageKind;
use brunt_workload::verify::{Expected, Verifier};

/// Of a value that is not selected only the head is verified, if it has one.
pub(super) const UNCHECKED: Expected = Expected::Grown { len_min: 0 };

/// One read of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTimes {
    /// The connection.
    pub index: u32,
    /// When it returned.
    pub at_ns: u64,
    /// When the connection was last polled without a result.
    pub polled_ns: u64,
}

/// A key of a reply with a value.
#[derive(Clone, Copy)]
struct FoundKey<'a> {
    /// Empty if it is not named.
    key: &'a [u8],
    /// Of the value.
    bytes: u32,
    /// Its unique number; 0 without one.
    unique: u64,
}

impl<C: Codec> Traffic<C> {
    /// Handles received bytes. An error means that the connection has failed and is to be closed.
    #[inline(always)]
    pub(crate) fn receive(&mut self, index: u32, input: &[u8], at_ns: u64, polled_ns: u64) -> Result<(), ()> {
        let phase = self.phase_now(at_ns);
        self.recording.set.received(phase, input.len() as u64);
        if C::MATCHING == Matching::Token {
            self.connections[index].given_up_ns = 0;
        }
        if self.connections.is_by_datagram(index) {
            self.take_datagram(ReadTimes { index, at_ns, polled_ns }, input);
            return Ok(());
        }
        let mut input = input;
        if self.connections[index].leftover > 0 {
            let mut leftovers = self.connections.leftovers.lend();
            let read = ReadTimes { index, at_ns, polled_ns };
            let rest = self.complete(read, leftovers.bytes_of(index), input);
            self.connections.leftovers = leftovers;
            input = rest?;
        }
        let used = self.decode(index, input, at_ns, polled_ns)?;
        if used < input.len() {
            let rest = &input[used..];
            self.connections.leftovers.bytes_of(index)[..rest.len()].copy_from_slice(rest);
            self.connections[index].leftover = rest.len();
        }
        Ok(())
    }

    /// Completes an incomplete event, whose front is in `joined`. Returns the rest of the input.
    fn complete<'a>(
        &mut self,
        read: ReadTimes,
        joined: &mut [u8],
        mut input: &'a [u8],
    ) -> Result<&'a [u8], ()> {
        let ReadTimes { index, at_ns, polled_ns } = read;
        let mut carried = self.connections[index].leftover;
        while carried > 0 && !input.is_empty() {
            let added = input.len().min(joined.len() - carried);
            joined[carried..carried + added].copy_from_slice(&input[..added]);
            let used = self.decode(index, &joined[..carried + added], at_ns, polled_ns)?;
            if used >= carried {
                input = &input[used - carried..];
                carried = 0;
            } else {
                input = &input[added..];
                joined.copy_within(used..carried + added, 0);
                // More may be used than was added, if events waited for a later one.
                carried = carried + added - used;
            }
        }
        self.connections[index].leftover = carried;
        Ok(input)
    }

    /// Decodes all complete events. Returns the number of bytes used.
    #[inline]
    pub(super) fn decode(
        &mut self,
        index: u32,
        input: &[u8],
        at_ns: u64,
        polled_ns: u64,
    ) -> Result<usize, ()> {
        let mut used = 0;
        let is_metered = self.recording.meters(MeterKind::ResponseSize);
        loop {
            let read = ReadTimes { index, at_ns, polled_ns };
            // Fast hits first, unless replies are metered, then one other reply.
            let found = match is_metered {
                true => None,
                false => self.receive_fast_hits(read, input, &mut used),
            };
            if found.is_none() && used == input.len() {
                return Ok(used);
            }
            let (step, is_over) = self.take_reply(read, &input[used..], found, is_metered)?;
            used += step;
            if !is_over {
                return Ok(used);
            }
        }
    }

    /// Takes the reply that `input` begins with, and that was decoded as `found` or not yet. Returns the number of bytes used,
    /// and whether the end was there.
    #[inline(never)]
    fn take_reply<'a>(
        &mut self,
        read: ReadTimes,
        input: &'a [u8],
        found: Option<(usize, Found<'a>)>,
        is_metered: bool,
    ) -> Result<(usize, bool), ()> {
        let (index, mut used) = (read.index, 0);
        let mut next = match found {
            Some((step, found)) => (step, Some(Event::Found(found))),
            None => self.connections[index].codec.decode_any(input),
        };
        while let (step, Some(event)) = next {
            let is_over = matches!(event, Event::Found(_) | Event::End { .. });
            if is_metered {
                self.meter_reply(index, &event, step as u64);
            }
            if let Err(reason) = self.take_in(read, event) {
                // A valid reply that does not fit its operation is shown whole.
                let from = if matches!(event, Event::Bad(_)) { used } else { 0 };
                let id = self.answered(index, &event);
                self.handle_malformed(index, id, &input[from..], read.at_ns, reason);
                return Err(());
            }
            used += step;
            if is_over {
                return Ok((used, true));
            }
            next = self.connections[index].codec.decode(&input[used..]);
        }
        Ok((used, false))
    }

    /// Adds the bytes of an event to its reply, and meters the size at its end.
    fn meter_reply(&mut self, index: u32, event: &Event<'_>, bytes: u64) {
        if matches!(event, Event::Push { .. } | Event::Bad(_)) {
            return;
        }
        let connection = &mut self.connections[index];
        connection.reply_bytes += bytes;
        if matches!(event, Event::Found(_) | Event::End { .. }) {
            let reply_bytes = std::mem::take(&mut connection.reply_bytes);
            let id = self.answered(index, event);
            if id != NO_ENTRY && self.in_flight.get(id).phase == Phase::Measure {
                self.recording.meter(MeterKind::ResponseSize, reply_bytes);
            }
        }
    }

    /// Handles one event. An error means that requests and replies are out of step.
    fn take_in(&mut self, read: ReadTimes, event: Event<'_>) -> Result<(), Malformed> {
        let ReadTimes { index, at_ns, polled_ns } = read;
        let id = self.answered(index, &event);
        match event {
            Event::Bad(reason) => return Err(reason),
            // A push belongs to no request.
            Event::Push { is_over } => self.recording.counts.pushes += u64::from(is_over),
            _ if id == NO_ENTRY => return self.handle_unmatched(index, event, at_ns),
            Event::Begin => self.in_flight.get_mut(id).details.first_byte_ns = at_ns,
            Event::Found(brunt_proto::Found { key, value, .. }) => {
                let reply = self.meaning(index, id, ReplyKind::Value, C::FOUND)?;
                if !self.receive_found(read, id, key, value) {
                    return Err(Malformed::UnknownReply);
                }
                let outcome = self.end_reply(index, id, reply, &[], at_ns);
                self.finish(read, id, outcome);
            }
            // Replies to user-defined commands are not checked.
            Event::Key { .. } if self.in_flight.get(id).kind == OpKind::Raw => {}
            Event::Key { .. } if !self.in_flight.get(id).kind.is_retrieval() => {
                return Err(Malformed::OutOfStep);
            }
            Event::Key { hit: true, key, .. }
                if self.connections.is_by_datagram(index) && self.is_repeated(index, id, key) =>
            {
                self.end_value(index, id, at_ns);
            }
            Event::Key { hit: true, key, bytes, unique, recache, .. } => {
                if recache != Recache::NONE {
                    self.recording.note_recache(recache);
                }
                let is_requested =
                    self.count_hit(id, bytes) && self.begin_value(read, id, FoundKey { key, bytes, unique });
                if !is_requested {
                    return Err(Malformed::UnknownReply);
                }
            }
            Event::Key { hit: false, key, .. } => {
                self.end_value(index, id, at_ns);
                if !self.pass_missing(index, id, key, at_ns) {
                    return Err(Malformed::UnknownReply);
                }
            }
            Event::Value(piece) => {
                if let Some(verifier) = &mut self.connections[index].verifier {
                    self.wrong_bytes.feed(index, verifier, &self.payload, piece);
                }
            }
            Event::End { reply, form, text, .. } => {
                self.end_value(index, id, at_ns);
                if C::REDIRECTS && self.is_redirected(index, id, ReplyEnd { reply, text, at_ns, polled_ns }) {
                    return Ok(());
                }
                let reply = self.meaning(index, id, reply, form)?;
                let outcome = self.end_reply(index, id, reply, text, at_ns);
                self.finish(read, id, outcome);
            }
            // Only replies to user-defined commands have such lines.
            Event::Control(_) => {}
        }
        Ok(())
    }

    /// The meaning of a reply to its operation. An error if the operation cannot have it: requests and replies are
    /// out of step.
    #[inline]
    fn meaning(&self, index: u32, id: EntryId, reply: ReplyKind, form: Form) -> Result<ReplyKind, Malformed> {
        let Entry { kind, details, .. } = self.in_flight.get(id);
        let meaning = self.connections[index].codec.meaning(*kind, reply, form);
        let meaning = meaning.ok_or(Malformed::OutOfStep)?;
        // Unnamed keys are reported by position.
        if C::KEY_NAMES == KeyNames::Never && *kind == OpKind::Mget && !meaning.is_error() {
            let is_single = details.count == 1 && matches!(self.in_flight.get(id).key(), KeyRef::Id(_));
            let reported = u32::from(details.key_cursor) + if is_single { details.hits } else { 0 };
            if reported != u32::from(details.count) {
                return Err(Malformed::OutOfStep);
            }
        }
        Ok(meaning)
    }

    /// The lane that has issued an operation in flight.
    #[inline]
    pub(super) fn lane_at(&self, id: EntryId) -> &Lane {
        &self.dispatch.lanes[self.in_flight.get(id).lane() as usize]
    }

    /// The outcome of a complete reply for its operation, which is to be finished with it.
    #[inline]
    fn end_reply(&mut self, index: u32, id: EntryId, reply: ReplyKind, text: &[u8], at_ns: u64) -> Outcome {
        let kind = self.in_flight.get(id).kind;
        let outcome = Outcome::of_reply(kind, reply);
        if outcome.class == OutcomeClass::Error {
            self.recording.note_error(text);
            if reply.is_error() {
                self.recording.count_error(C::error_prefix(text));
                if self.in_flight.get(id).phase == Phase::Preload {
                    self.refuse_store(id, reply, text, at_ns);
                }
            }
        } else if kind.is_retrieval() {
            self.handle_missing_keys(index, id, at_ns);
        }
        outcome
    }

    /// A store of the preload has an error, with which that pauses or ends.
    #[cold]
    fn refuse_store(&mut self, id: EntryId, reply: ReplyKind, text: &[u8], at_ns: u64) {
        let index = self.in_flight.get(id).lane();
        // In a cluster the next try may be at the right node.
        let persistence = match reply {
            ReplyKind::Redirect if self.slots.is_some() => ErrorPersistence::Transient,
            _ => C::error_persistence(reply, text),
        };
        let lane = &mut self.dispatch.lanes[index as usize];
        if lane.session.refuse_store(persistence, at_ns) {
            self.rejection.get_or_insert_with(|| FirstError::new(text));
            // For the timers, which end it at once.
            self.any_lost = true;
        }
        self.dispatch.deadlines.set(index, lane.due_ns());
    }

    /// Goes on with preloads whose pause after an error is over.
    pub(crate) fn resume_preloads(&mut self, now_ns: u64) {
        for (index, lane) in (0..).zip(&mut self.dispatch.lanes) {
            if lane.session.resume_preload(now_ns) {
                self.dispatch.deadlines.set(index, lane.due_ns());
            }
        }
    }

    /// Counts a found key of an operation. False if its request had fewer keys: requests and replies are out of step.
    #[inline]
    fn count_hit(&mut self, id: EntryId, bytes: u32) -> bool {
        let entry = self.in_flight.get_mut(id);
        if entry.details.hits == u32::from(entry.details.count) {
            return false;
        }
        entry.details.hits += 1;
        if entry.phase == Phase::Measure {
            self.recording.meter(MeterKind::ValueReceived, u64::from(bytes));
        }
        true
    }

    /// Handles a whole reply of one key and its value. False if no further key was requested.
    #[inline]
    fn receive_found(&mut self, read: ReadTimes, id: EntryId, key: &[u8], value: &[u8]) -> bool {
        let ReadTimes { index, at_ns, .. } = read;
        let entry = self.in_flight.get_mut(id);
        entry.details.first_byte_ns = at_ns;
        if entry.kind == OpKind::Raw {
            return true;
        }
        let bytes = value.len() as u32;
        if !self.count_hit(id, bytes) {
            return false;
        }
        if let Some(mut verifier) = self.verifier_of(read, id, FoundKey { key, bytes, unique: 0 }) {
            self.wrong_bytes.feed(index, &mut verifier, &self.payload, value);
            self.judge(index, id, &verifier, at_ns);
        }
        true
    }

    /// Begins a value: its bytes are compared with those stored under the requested key. False if requests and
    /// replies are out of step: there are more keys than requested, and they have no names to match by.
    #[inline]
    fn begin_value(&mut self, read: ReadTimes, id: EntryId, found: FoundKey<'_>) -> bool {
        self.end_value(read.index, id, read.at_ns);
        let verifier = self.verifier_of(read, id, found);
        let is_requested = verifier.is_some();
        if is_requested {
            self.connections[read.index].verifier = verifier;
        }
        is_requested || C::KEY_NAMES != KeyNames::Never
    }

    /// Verifies the value of a key of a reply. A key that was not requested is noted and has none.
    #[inline]
    fn verifier_of(&mut self, read: ReadTimes, id: EntryId, found: FoundKey<'_>) -> Option<Verifier> {
        let expected = self.expect_value(read, id, found);
        if expected.is_none() {
            self.note_unrequested(id, found.key, read.at_ns);
        }
        expected.map(|(key_id, expected)| Verifier::new(key_id, expected))
    }

    /// The value expected under a key of a reply, and its id; `None` if that key was not requested.
    #[inline]
    fn expect_value(
        &mut self,
        read: ReadTimes,
        head: EntryId,
        found: FoundKey<'_>,
    ) -> Option<(u64, Expected)> {
        let FoundKey { key, bytes, unique } = found;
        let entry = self.in_flight.get(head);
        let lane_index = entry.lane();
        let entry_class = entry.class;
        if let KeyRef::Offset(place) = entry.key() {
            return self.expect_recorded(lane_index, place, found);
        }
        let id = match entry.key() {
            KeyRef::Id(id) if entry.details.count == 1 => {
                let keyspace = &self.dispatch.lanes[lane_index as usize].keyspace;
                Some(id).filter(|id| is_requested::<C>(keyspace, *id, key))
            }
            _ => self.pass_keys(read.index, head, key, read.at_ns),
        }?;
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        if unique != 0 {
            lane.session.record_unique(id, unique);
        }
        let own_len = lane.keyspace.value_len(id);
        let is_ours = lane.checking == Checking::Ours;
        let is_audited = lane.is_audited && !lane.extends;
        if lane.is_windowed && !lane.is_preload {
            return Some((id, self.expect_of_window(head, id, read.at_ns)));
        }
        let expected = match lane.checking {
            _ if is_audited && !self.audits[usize::from(entry_class)].selects() => UNCHECKED,
            _ if is_audited => {
                self.recording.counts.verification.checked += 1;
                Expected::Written { len: own_len, is_ours, whole: true }
            }
            Checking::Ours if lane.extends => Expected::Grown { len_min: own_len },
            Checking::Ours => Expected::Version { version: 0, len: own_len },
            Checking::Named => Expected::Named { len: bytes, own_len },
            Checking::Nothing => UNCHECKED,
        };
        Some((id, expected))
    }

    /// As `expect_value`, of a key in a trace: stored by anyone, in any length.
    fn expect_recorded(
        &mut self,
        lane_index: u32,
        place: u32,
        found: FoundKey<'_>,
    ) -> Option<(u64, Expected)> {
        let FoundKey { key, bytes, unique } = found;
        let lane = &mut self.dispatch.lanes[lane_index as usize];
        let records = lane.session.records();
        let is_named = match C::KEY_NAMES {
            KeyNames::Always => true,
            KeyNames::OfSeveral => !key.is_empty(),
            KeyNames::Never => false,
        };
        if is_named && records.key(place) != key {
            return None;
        }
        let (id, _) = records.value(place);
        if unique != 0 {
            lane.session.record_unique(id, unique);
        }
        // Of extended values only the head is known.
        let own_len = if lane.extends { u32::MAX } else { bytes };
        Some((id, Expected::Named { len: bytes, own_len }))
    }

    /// Advances the reply to a multi-get to this key; keys come in request order, skipped ones are missing. Returns
    /// the key's id if it was requested.
    fn pass_keys(&mut self, index: u32, head: EntryId, key: &[u8], at_ns: u64) -> Option<u64> {
        if self.connections.is_by_datagram(index) {
            return self.pass_key_in_any_order(index, head, key);
        }
        self.fetch_reply_ids(index, head);
        let cursor = usize::from(self.in_flight.get(head).details.key_cursor);
        let keyspace = &self.lane_at(head).keyspace;
        // An unnamed key is the next one.
        let is_it = |id: &u64| is_requested::<C>(keyspace, *id, key);
        let place = self.reply_ids.get(cursor..)?.iter().position(is_it)?;
        self.in_flight.get_mut(head).details.key_cursor += place as u16 + 1;
        if self.lane_at(head).tracks_misses {
            for at in cursor..cursor + place {
                self.missed(index, head, self.reply_ids[at], at_ns);
            }
        }
        Some(self.reply_ids[cursor + place])
    }

    /// Handles a reported missing key. False if all keys were reported: requests and replies are out of step.
    fn pass_missing(&mut self, index: u32, head: EntryId, key: &[u8], at_ns: u64) -> bool {
        let entry = self.in_flight.get_mut(head);
        if let (KeyRef::Id(_) | KeyRef::Offset(_), 1) = (entry.key(), entry.details.count) {
            entry.details.key_cursor += 1;
            // The fill of a single key is due when the reply is over.
            return u32::from(entry.details.key_cursor) + entry.details.hits == 1;
        }
        let Some(id) = self.pass_keys(index, head, key, at_ns) else { return false };
        if self.lane_at(head).tracks_misses {
            self.missed(index, head, id, at_ns);
        }
        true
    }

    /// Loads the ids of this multi-get (of a part, those of its server).
    pub(super) fn fetch_reply_ids(&mut self, index: u32, head: EntryId) {
        if self.reply_ids_of == head {
            return;
        }
        self.reply_ids_of = head;
        self.reply_ids.clear();
        let route = self.connections[index].route;
        let entry = self.in_flight.get(head);
        let lane = &self.dispatch.lanes[entry.lane() as usize];
        if entry.details.group == NO_GROUP {
            self.reply_ids.extend(lane.session.ids(&entry.op()));
            return;
        }
        let operand = entry.op().operand;
        let spread = lane.spread(entry.kind);
        for id in lane.session.ids(&self.groups.get(entry.details.group).whole.op) {
            self.key_bytes.clear();
            lane.keyspace.write_key(id, &mut self.key_bytes);
            let is_own = match &spread {
                Some(spread) => spread.route(&self.key_bytes, operand as u32) == route,
                // In a cluster.
                None => u64::from(slot_of(&self.key_bytes)) == operand,
            };
            if is_own {
                self.reply_ids.push(id);
            }
        }
    }

    /// Handles the unreported keys of a finished retrieval as missing.
    #[inline]
    fn handle_missing_keys(&mut self, index: u32, head: EntryId, at_ns: u64) {
        if !self.lane_at(head).tracks_misses {
            return;
        }
        let entry = self.in_flight.get(head);
        let single = match entry.key() {
            KeyRef::Id(id) if entry.details.count == 1 => Some(id),
            KeyRef::Offset(place) => Some(u64::from(place)),
            _ => None,
        };
        match single {
            Some(_) if entry.details.hits > 0 => {}
            Some(id) => self.missed(index, head, id, at_ns),
            None => {
                self.fetch_reply_ids(index, head);
                for at in self.in_flight.get(head).details.key_cursor as usize..self.reply_ids.len() {
                    if self.connections.is_by_datagram(index) && self.has_reported(at) {
                        continue;
                    }
                    self.missed(index, head, self.reply_ids[at], at_ns);
                }
            }
        }
    }

    /// Ends the value being verified, if any.
    #[inline]
    fn end_value(&mut self, index: u32, id: EntryId, at_ns: u64) {
        if let Some(verifier) = self.connections[index].verifier.take() {
            self.judge(index, id, &verifier, at_ns);
        }
    }

    /// Ends an operation of a connection and records it.
    #[inline]
    fn finish(&mut self, read: ReadTimes, id: EntryId, outcome: Outcome) {
        let ReadTimes { index, at_ns, polled_ns } = read;
        let Some(entry) = self.take_answered(index, id, at_ns) else { return };
        if outcome.reply != ReplyKind::None {
            // Only a reply shows that the connection works.
            self.connections[index].failures = 0;
        }
        let class = if entry.details.mismatched && outcome.class == OutcomeClass::Hit {
            OutcomeClass::Mismatch
        } else {
            outcome.class
        };
        self.note_health(index, entry.sent_ns, class, polled_ns, at_ns);
        self.record_end(index, &entry, Outcome { class, ..outcome }, at_ns, polled_ns);
        self.leave_idle(index);
        self.note_unread(index, entry.sent_ns, at_ns, polled_ns);
        self.connections.check_retired(index);
    }

    /// Removes a replied operation from its connection.
    #[inline(always)]
    pub(super) fn take_answered(&mut self, index: u32, id: EntryId, at_ns: u64) -> Option<Entry> {
        let connection = &mut self.connections[index];
        let after = self.in_flight.get(id).next();
        let mut entry = self.in_flight.remove(index, &mut connection.chain, id)?;
        self.reply_ids_of = NO_ENTRY;
        if entry.sent_ns == 0 {
            // A reply to a partly sent request: the server rejected it early.
            if connection.unsent == id {
                connection.unsent = after;
            }
            entry.sent_ns = at_ns;
            self.recording.sent(&entry);
        }
        let (route, outstanding) = (connection.route, connection.outstanding());
        if connection.is_usable() {
            self.dispatch.routes[route as usize].ready.set(index, outstanding);
        }
        Some(entry)
    }

    /// Notes a reply at its server's health.
    #[inline]
    fn note_health(&mut self, index: u32, sent_ns: u64, class: OutcomeClass, polled_ns: u64, at_ns: u64) {
        let server = self.connections[index].server;
        let health = &mut self.servers[usize::from(server)];
        match class {
            OutcomeClass::Error => {
                health.request_failed(OutageKind::Error, sent_ns);
                health.note_activity(at_ns);
                self.recording.set.server(server).failed += 1;
            }
            class => {
                self.note_success(server, sent_ns, polled_ns, at_ns);
                if class.is_completed() {
                    self.recording.set.server(server).answered += 1;
                } else {
                    self.recording.set.server(server).failed += 1;
                }
            }
        }
    }

    /// Notes at a server's health that it has answered a request.
    #[inline]
    pub(super) fn note_success(&mut self, server: u16, sent_ns: u64, polled_ns: u64, at_ns: u64) {
        let health = &mut self.servers[usize::from(server)];
        let was_silent = !health.answers;
        if let Some(span) = health.success(sent_ns, polled_ns, at_ns) {
            self.recording.set.outage(span);
        }
        if was_silent {
            self.retry_now(server, at_ns);
        }
    }

    /// Records the end of a sent operation, or of a part, and frees its slot.
    #[inline]
    pub(super) fn record_end(
        &mut self,
        index: u32,
        entry: &Entry,
        outcome: Outcome,
        done_ns: u64,
        polled_ns: u64,
    ) {
        if C::REDIRECTS && entry.details.redirect_state != NO_REDIRECT {
            let entry = self.without_redirect(entry);
            return self.record_end(index, &entry, outcome, done_ns, polled_ns);
        }
        if entry.kind == OpKind::Set && self.dispatch.fills.is_some() {
            self.note_set(entry.class, entry.lane(), entry.key());
        }
        self.end_write(entry, outcome.class, done_ns);
        let server = self.connections[index].server;
        let busy_lag_ns = self.busy.lag_ns(server);
        let read = (entry.details.first_byte_ns, polled_ns, done_ns);
        let times = reply_times((entry.intended_ns, entry.picked_ns, entry.sent_ns), read);
        if outcome.class.is_completed() {
            self.recording.set.responded(server, entry.row, times.response_ns(), 1);
        }
        if entry.details.group != NO_GROUP {
            self.groups.note_lag(entry.details.group, busy_lag_ns);
            match self.groups.end_sent(entry.details.group, entry, outcome) {
                Some(group) => self.record_group_end(index, &group, done_ns, polled_ns),
                None => self.refill_idle(index),
            }
            return;
        }
        let sample = Sample { op: entry.op_id(), class: entry.class, outcome, busy_lag_ns, times };
        let requested = if entry.kind.is_retrieval() { u32::from(entry.details.count) } else { 0 };
        self.recording.record(entry.row, &sample, requested, entry.details.hits);
        self.release(index, entry.details.shared_slot, entry.lane(), entry.key(), outcome, done_ns);
    }

    /// Notes an unread reply, which delayed the operations that wait for its connection.
    #[inline]
    fn note_unread(&mut self, index: u32, sent_ns: u64, read_ns: u64, polled_ns: u64) {
        let connection = &self.connections[index];
        let is_waited_for = |route: &Route| !route.waiting.is_empty();
        if self.dispatch.routes.get(connection.route as usize).is_some_and(is_waited_for) {
            self.busy.note_unread(connection.server, polled_ns.max(sent_ns), read_ns);
        }
    }

    /// Ends the busy period if the last operation of a connection has ended.
    #[inline]
    pub(super) fn leave_idle(&mut self, index: u32) {
        let connection = &self.connections[index];
        if connection.outstanding() == 0 {
            self.busy.leave(connection.server);
        }
    }

    /// Records the end of an operation in parts, after its last part, and frees its slot.
    pub(super) fn record_group_end(&mut self, index: u32, group: &Group, done_ns: u64, polled_ns: u64) {
        self.record_group(group, done_ns, polled_ns);
        self.release(
            index,
            group.shared_slot,
            group.whole.op.session,
            group.whole.op.key,
            group.outcome(),
            done_ns,
        );
    }

    /// As `record_group_end` without the slot.
    pub(super) fn record_group(&mut self, group: &Group, done_ns: u64, polled_ns: u64) {
        let Picked { op, phase, row, intended_ns, picked_ns, .. } = group.whole;
        self.recording.counts.replicas_missed += u64::from(group.missed);
        if group.sent_ns == 0 {
            // No part was sent.
            let times = unsent_times(intended_ns, picked_ns, done_ns);
            return self.recording.abandoned(phase, &op, &times);
        }
        self.recording.sent_in_parts(group, group.sent_ns);
        let first_byte_ns = if group.first_byte_ns == 0 { 0 } else { group.first_byte_ns.max(group.sent_ns) };
        let times = reply_times((intended_ns, picked_ns, group.sent_ns), (first_byte_ns, polled_ns, done_ns));
        let (outcome, busy_lag_ns) = (group.outcome(), group.busy_lag_ns);
        let sample = Sample { op: op.id(), class: op.class, outcome, busy_lag_ns, times };
        let requested = if op.kind.is_retrieval() { u32::from(op.count) } else { 0 };
        self.recording.record(row, &sample, requested, group.hits);
    }

    /// Handles malformed bytes: the operation that they name, or else the oldest, ends in an error, and the
    /// connection fails. Malformed datagrams are discarded.
    fn handle_malformed(&mut self, index: u32, named: EntryId, bytes: &[u8], at_ns: u64, reason: Malformed) {
        if self.connections.is_by_datagram(index) {
            self.discard_bytes(index, bytes, at_ns, reason);
            return;
        }
        let words = match DetectedProtocol::of(bytes) {
            Some(DetectedProtocol::Tls) => "a TLS record (--set transport=tls)",
            _ => reason.name(),
        };
        self.recording.note_malformed(bytes, at_ns, words);
        let id = if named == NO_ENTRY { self.connections[index].chain.head } else { named };
        if id != NO_ENTRY {
            let read = ReadTimes { index, at_ns, polled_ns: at_ns };
            self.finish(read, id, Outcome::without_reply(OutcomeClass::Error));
        }
        self.fail_connection(index, at_ns, FaultKind::Malformed, OutcomeClass::Lost);
    }
}

/// The times of a reply: when its request was intended, picked and sent, when its first byte was read (0: with the last), and when its
/// connection was polled before that.
fn reply_times(request: (u64, u64, u64), read: (u64, u64, u64)) -> Times {
    let ((intended_ns, picked_ns, sent_ns), (first_byte_ns, polled_ns, done_ns)) = (request, read);
    let first_byte_ns = if first_byte_ns == 0 { done_ns } else { first_byte_ns };
    let polled_ns = polled_ns.min(done_ns);
    Times { intended_ns, picked_ns, sent_ns, polled_ns, first_byte_ns, done_ns }
}
