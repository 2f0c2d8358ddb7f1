//! Verifying: what a value that was read, a key that was missed and a write that ended come to.
//!
//! Not the comparison of bytes (the workload's verifier) and not the knowledge that a verdict rests on ([`crate::audit`]).
//! Invariant: every wrong value is counted under one fault, and makes its operation a mismatch; a miss stays a miss.

use super::Traffic;
use super::receiving::UNCHECKED;
use crate::audit::Read;
use crate::in_flight::{Entry, EntryId};
use crate::lane::Picked;
use brunt_plan::op::{Op, OpKind, ValueRef};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::version::Version;
use brunt_proto::Codec;
use brunt_stats::object_fault::{ObjectFaultKind, ObjectFaultNote};
use brunt_stats::verification::{Example, ValueFault};
use brunt_workload::payload::ValueParts;
use brunt_workload::session::Check;
use brunt_workload::verify::{Expected, Integrity, Verifier};

/// By so much a server's clock and ours may differ, and what is on the way takes time: memaslap's five seconds.
const LIFE_TOLERANCE_MS: u64 = 5_000;

/// An object that is not as it was to be: where and when that was seen.
struct Seen {
    index: u32,
    head: EntryId,
    id: u64,
    at_ns: u64,
    received_len: u32,
}

impl<C: Codec> Traffic<C> {
    /// The schedule begins: what a preload stored was stored before.
    pub(crate) fn begin_audits(&mut self, start_ns: u64) {
        self.audits.iter_mut().for_each(|audit| audit.begin(start_ns));
    }

    /// A write as it is to be sent where writes have versions; `None` where it has none of its own.
    #[inline]
    pub(super) fn with_version(&self, picked: &Picked, id: u64) -> Option<Picked> {
        let is_audited = || self.lanes[picked.op.session as usize].is_audited;
        if self.audits.is_empty() || !is_versioned(picked.op.kind) || !is_audited() {
            return None;
        }
        let version = self.audits[usize::from(picked.op.class)].next_version(id);
        let mut versioned = *picked;
        versioned.op.value = ValueRef::Version(version);
        Some(versioned)
    }

    /// An operation has ended: of a write that has a version, the audit gets to know.
    #[inline]
    pub(super) fn end_write(&mut self, entry: &Entry, class: OutcomeClass, at_ns: u64) {
        if self.audits.is_empty() || !is_versioned(entry.kind) {
            return;
        }
        if !self.lanes[entry.lane() as usize].is_audited {
            return;
        }
        // Version 0 is the preload's, which is nobody's write.
        if let (Some(id), ValueRef::Version(version @ 1..)) = (entry.op().only_id(), entry.op().value) {
            self.audits[usize::from(entry.class)].write_ends(id, version, class, at_ns);
        }
    }

    /// An operation will be begun anew, and with it what it was to write. Yields it as it was before it had a version.
    pub(super) fn begin_anew(&mut self, entry: &Entry) -> Op {
        self.end_write(entry, OutcomeClass::Refused, entry.picked_ns);
        // Other writes have the version that their source has given them.
        if is_versioned(entry.kind) && self.lanes[entry.lane() as usize].is_audited {
            entry.without_version().op()
        } else {
            entry.op()
        }
    }

    /// Which value must follow under a key of a window. An object that expires is judged at once.
    pub(super) fn expect_of_window(
        &mut self,
        index: u32,
        head: EntryId,
        id: u64,
        bytes: u32,
        at_ns: u64,
    ) -> Expected {
        match self.take_check(head, id) {
            None => UNCHECKED,
            Some(Check::Value { version }) => {
                self.recording.counts.verification.checked += 1;
                self.lane_at(head).keyspace.expected(&self.payload, id, version)
            }
            Some(Check::Life { stored_ms }) => {
                let (age_ms, ttl_ms) = self.age_and_ttl_ms(head, stored_ms, at_ns);
                if age_ms > ttl_ms + LIFE_TOLERANCE_MS {
                    self.recording.counts.windows.expired_get += 1;
                    let seen = Seen { index, head, id, at_ns, received_len: bytes };
                    self.note_object(ObjectFaultKind::Expired { age_ms }, &seen, None, &[]);
                }
                UNCHECKED
            }
        }
    }

    /// A key of a window that was asked for is not there.
    fn check_miss_of_window(&mut self, index: u32, head: EntryId, id: u64, at_ns: u64) {
        match self.take_check(head, id) {
            None => {}
            Some(Check::Value { version }) => {
                self.recording.counts.verification.misses += 1;
                self.recording.counts.windows.verify_misses += 1;
                let parts = self.lane_at(head).keyspace.value(&self.payload, id, version);
                let seen = Seen { index, head, id, at_ns, received_len: 0 };
                self.note_object(ObjectFaultKind::Missing, &seen, Some(parts), &[]);
            }
            Some(Check::Life { stored_ms }) => {
                let (age_ms, ttl_ms) = self.age_and_ttl_ms(head, stored_ms, at_ns);
                if age_ms + LIFE_TOLERANCE_MS < ttl_ms {
                    self.recording.counts.windows.unexpired_unget += 1;
                    let seen = Seen { index, head, id, at_ns, received_len: 0 };
                    self.note_object(ObjectFaultKind::Gone { age_ms }, &seen, None, &[]);
                }
            }
        }
    }

    /// Hands on what was wrong with an object, with the value that was expected where that is known.
    #[cold]
    fn note_object(
        &mut self,
        kind: ObjectFaultKind,
        seen: &Seen,
        expected: Option<ValueParts>,
        received: &[u8],
    ) {
        let lane = &self.lanes[self.in_flight.get(seen.head).lane() as usize];
        self.key_bytes.clear();
        lane.keyspace.write_key(seen.id, &mut self.key_bytes);
        let (head, rest) = match &expected {
            Some(parts) => (parts.head(), &self.payload.block()[parts.offset..][..parts.len]),
            None => (&[][..], &[][..]),
        };
        self.recording.object_fault(&ObjectFaultNote {
            kind,
            at_ns: seen.at_ns,
            connection: seen.index,
            ttl_s: lane.session.ttl_s(),
            received_len: seen.received_len,
            bytes: [&self.key_bytes, head, rest, received],
        });
    }

    /// What a window wants to know of the reply for this key.
    fn take_check(&mut self, head: EntryId, id: u64) -> Option<Check> {
        let entry = self.in_flight.get(head);
        if !entry.is_checked() {
            return None;
        }
        self.lanes[entry.lane() as usize].session.take_check(entry.key(), id)
    }

    /// How long ago an object was stored, and how long it was to live.
    fn age_and_ttl_ms(&self, head: EntryId, stored_ms: u32, at_ns: u64) -> (u64, u64) {
        let session = &self.lane_at(head).session;
        let age_ms = session.since_start_ms(at_ns).saturating_sub(u64::from(stored_ms));
        (age_ms, u64::from(session.ttl_s()) * 1000)
    }

    /// A key that was asked for is not there: is that as it should be?
    pub(super) fn check_miss(&mut self, index: u32, head: EntryId, id: u64, at_ns: u64) {
        if self.lane_at(head).is_windowed {
            return self.check_miss_of_window(index, head, id, at_ns);
        }
        let entry = self.in_flight.get(head);
        let read = Read { id, began_ns: entry.picked_ns, done_ns: at_ns };
        let Some(audit) = self.audits.get_mut(usize::from(entry.class)) else { return };
        if !audit.chooses() {
            return;
        }
        self.recording.counts.verification.misses += 1;
        if let Some((fault, example)) = audit.judge_miss(read) {
            self.recording.counts.verification.note(fault, example);
        }
    }

    /// The server names a key that was not asked for.
    #[cold]
    pub(super) fn note_unasked(&mut self, head: EntryId, key: &[u8], at_ns: u64) {
        let keyspace = &self.lane_at(head).keyspace;
        let other_key = keyspace.id_of_key(key);
        let entry = self.in_flight.get_mut(head);
        entry.rest.mismatched = true;
        // Of several keys nobody knows which it stands for.
        let asked = entry.op().only_id().or(other_key).unwrap_or(0);
        self.recording
            .counts
            .verification
            .note(ValueFault::WrongKey, Example { other_key, ..Example::of(asked, at_ns) });
    }

    /// Notes what a value has turned out to be.
    #[inline]
    pub(super) fn judge(
        &mut self,
        index: u32,
        head: EntryId,
        verifier: &Verifier,
        received: &[u8],
        at_ns: u64,
    ) {
        let verdict = verifier.finish(&self.payload);
        if verdict != Integrity::Intact
            && let Some(parts) = verifier.of_window(&self.payload)
        {
            self.recording.counts.windows.verify_failed += 1;
            let seen = Seen { index, head, id: verifier.id(), at_ns, received_len: verifier.received_len() };
            self.note_object(ObjectFaultKind::Value, &seen, Some(parts), received);
        }
        match verdict {
            Integrity::Intact if !verifier.is_of_any_version() => {}
            Integrity::Foreign => self.recording.counts.values_foreign += 1,
            verdict => self.judge_in_doubt(head, verifier, verdict, at_ns),
        }
    }

    /// The same of a value whose version is still to be judged, or that is wrong.
    fn judge_in_doubt(&mut self, head: EntryId, verifier: &Verifier, verdict: Integrity, at_ns: u64) {
        let entry = self.in_flight.get_mut(head);
        let (id, version) = (verifier.id(), verifier.version(&self.payload));
        let example = Example { version: version.map(Version), ..Example::of(id, at_ns) };
        let fault = match verdict {
            Integrity::Intact | Integrity::Foreign => {
                let read = Read { id, began_ns: entry.picked_ns, done_ns: at_ns };
                let audit = self.audits.get(usize::from(entry.class));
                audit.zip(version).and_then(|(audit, version)| audit.judge_value(read, version))
            }
            Integrity::WrongKey { id } => {
                Some((ValueFault::WrongKey, Example { other_key: Some(id), ..example }))
            }
            // Where writes have no versions, there is one.
            Integrity::WrongVersion { version } => {
                Some((ValueFault::NeverWritten, Example { version: Some(Version(version)), ..example }))
            }
            Integrity::Torn => Some((ValueFault::Torn, example)),
            Integrity::Truncated => Some((ValueFault::Truncated, example)),
            Integrity::Overlong => Some((ValueFault::Overlong, example)),
        };
        if let Some((fault, example)) = fault {
            entry.rest.mismatched = true;
            self.recording.counts.verification.note(fault, example);
        }
    }
}

/// Does an operation of this kind write a whole value?
fn is_versioned(kind: OpKind) -> bool {
    matches!(kind, OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Cas)
}
