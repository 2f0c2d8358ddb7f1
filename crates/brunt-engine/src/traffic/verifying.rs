//! Verification of values, misses and writes.
//!
//! The workload's verifier compares bytes. Beyond that, `--verify` audits the keys of a class: a worker's sessions of a class share
//! one audit, which sees all of their writes. Invariants: every wrong value counts under one fault and makes its operation a mismatch; a
//! miss stays a miss; a finding of an audit is certain, whatever other workers and classes
//! of the plan do to the same keys and whatever foreign clients store; doubtful cases are not judged. Another brunt
//! run on the same data set at the same time writes versions of its own, and is detected.

use super::Traffic;
use super::receiving::UNCHECKED;
use crate::state::EntryId;
use crate::state::connection::Leftovers;
use crate::state::in_flight::Entry;
use crate::state::lane::Picked;
use brunt_plan::op::{Op, OpKind, ValueRef};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;
use brunt_plan::shard::StreamPart;
use brunt_plan::version::Version;
use brunt_proto::Codec;
use brunt_stats::object_fault::{ObjectFault, ObjectFaultKind, SHOWN_MAX};
use brunt_stats::verification::{FaultExample, ValueFault};
use brunt_workload::payload::{Payload, ValueParts};
use brunt_workload::rng::{Draw, DrawRng};
use brunt_workload::session::Check;
use brunt_workload::verify::{Expected, Integrity, Verifier};
use brunt_workload::version_tracker::{Freshness, VersionTracker};
use std::ops::Range;

/// Tolerance for clocks and network delays: the five seconds of memaslap.
const LIFE_TOLERANCE_MS: u64 = 5_000;

/// A wrong object: where and when it was seen.
struct ObservedObject {
    index: u32,
    head: EntryId,
    id: u64,
    at_ns: u64,
}

/// Bytes of wrong values from the first wrong one on. One allocation: connections without wrong values use no
/// memory.
#[derive(Debug)]
pub(super) struct WrongBytes {
    room: Leftovers,
    /// Key ids of the values. If several wrong values are received over one socket at a time, that of the last.
    owners: Box<[u64]>,
}

impl WrongBytes {
    /// For this many connections.
    pub(super) fn new(connections: usize) -> Self {
        Self { room: Leftovers::new(connections, SHOWN_MAX), owners: vec![0; connections].into() }
    }

    /// Feeds the next piece of a value to its verifier.
    pub(super) fn feed(&mut self, index: u32, verifier: &mut Verifier, payload: &Payload, piece: &[u8]) {
        let received = verifier.received_len() as usize;
        verifier.feed(payload, piece);
        let Some(parts) = verifier.of_window(payload) else { return };
        let right = verifier.right_len(&parts);
        if right < received + piece.len() {
            self.keep(index, verifier.id(), piece, received, right);
        }
    }

    /// Keeps a piece of a wrong value, as far as there is room: `received` bytes came before it, of which `right`
    /// are right.
    #[cold]
    fn keep(&mut self, index: u32, owner: u64, piece: &[u8], received: usize, right: usize) {
        if received <= right {
            self.owners[index as usize] = owner;
        } else if self.owners[index as usize] != owner {
            return;
        }
        let wrong = &piece[right.saturating_sub(received)..];
        let room = self.room.bytes_of(index).get_mut(received.saturating_sub(right)..).unwrap_or_default();
        let len = wrong.len().min(room.len());
        room[..len].copy_from_slice(&wrong[..len]);
    }

    /// The kept bytes of a value with `count` wrong ones; `None` if they belong to another value.
    fn kept(&mut self, index: u32, owner: u64, count: usize) -> Option<&[u8]> {
        match count {
            0 => Some(&[]),
            _ if self.owners[index as usize] != owner => None,
            count => Some(&self.room.bytes_of(index)[..count.min(SHOWN_MAX)]),
        }
    }
}

impl<C: Codec> Traffic<C> {
    /// Begins the audits with the schedule.
    pub(crate) fn begin_audits(&mut self, start_ns: u64) {
        self.audits.iter_mut().for_each(|audit| audit.begin(start_ns));
    }

    /// A write with its version, if writes are versioned; otherwise `None`.
    pub(super) fn with_version(&self, picked: &Picked, id: u64) -> Option<Picked> {
        let is_audited = || self.dispatch.lanes[picked.op.session as usize].is_audited;
        if self.audits.is_empty() || !is_versioned(picked.op.kind) || !is_audited() {
            return None;
        }
        let version = self.audits[usize::from(picked.op.class)].tracker.next(id);
        let mut versioned = *picked;
        versioned.op.value = ValueRef::Version(version);
        Some(versioned)
    }

    /// Reports the end of a versioned write to the audit.
    pub(super) fn end_write(&mut self, entry: &Entry, class: OutcomeClass, at_ns: u64) {
        if self.audits.is_empty() || !is_versioned(entry.kind) {
            return;
        }
        if !self.dispatch.lanes[entry.lane() as usize].is_audited {
            return;
        }
        // Version 0 is that of the preload.
        if let (Some(id), ValueRef::Version(version @ 1..)) = (entry.op().only_id(), entry.op().value) {
            self.audits[usize::from(entry.class)].tracker.end(id, version, class, at_ns);
        }
    }

    /// Prepares an operation to be sent again: a versioned write loses its version.
    pub(super) fn prepare_resend(&mut self, entry: &Entry) -> Op {
        self.end_write(entry, OutcomeClass::Rejected, entry.picked_ns);
        // Other writes have the version of their source.
        if is_versioned(entry.kind) && self.dispatch.lanes[entry.lane() as usize].is_audited {
            entry.without_version().op()
        } else {
            entry.op()
        }
    }

    /// The value expected under a key of a window. An expiring object is judged at once.
    pub(super) fn expect_of_window(&mut self, head: EntryId, id: u64, at_ns: u64) -> Expected {
        match self.take_check(head, id) {
            None => UNCHECKED,
            Some(Check::Value { version }) => {
                self.recording.counts.verification.checked += 1;
                self.lane_at(head).keyspace.expected(&self.payload, id, version)
            }
            Some(Check::Life { stored_ms }) => {
                let ([age_ms, _], ttl_ms) = self.ages_and_ttl_ms(head, stored_ms, at_ns);
                if age_ms > ttl_ms + LIFE_TOLERANCE_MS {
                    self.recording.counts.windows.expired_get += 1;
                    return Expected::Expired { age_ms };
                }
                UNCHECKED
            }
        }
    }

    /// Checks a missing key of a window.
    fn check_miss_of_window(&mut self, index: u32, head: EntryId, id: u64, at_ns: u64) {
        match self.take_check(head, id) {
            None => {}
            Some(Check::Value { version }) => {
                self.recording.counts.verification.misses += 1;
                self.recording.counts.windows.verify_misses += 1;
                let parts = self.lane_at(head).keyspace.value(&self.payload, id, version);
                let observed = ObservedObject { index, head, id, at_ns };
                self.note_object(ObjectFaultKind::Missing, &observed, &parts, None);
            }
            Some(Check::Life { stored_ms }) => {
                let ([_, age_ms], ttl_ms) = self.ages_and_ttl_ms(head, stored_ms, at_ns);
                if age_ms + LIFE_TOLERANCE_MS < ttl_ms {
                    self.recording.counts.windows.unexpired_unget += 1;
                    let observed = ObservedObject { index, head, id, at_ns };
                    self.note_object(ObjectFaultKind::Gone { age_ms }, &observed, &ValueParts::EMPTY, None);
                }
            }
        }
    }

    /// Records a wrong object: the expected value, empty if unknown, and the received one.
    #[cold]
    fn note_object(
        &mut self,
        kind: ObjectFaultKind,
        observed: &ObservedObject,
        parts: &ValueParts,
        received: Option<&Verifier>,
    ) {
        let lane = &self.dispatch.lanes[self.in_flight.get(observed.head).lane() as usize];
        self.key_bytes.clear();
        lane.keyspace.write_key(observed.id, &mut self.key_bytes);
        let value = [parts.head(), &self.payload.block()[parts.offset..][..parts.len]];
        let (received_len, right) =
            received.map_or((0, 0), |verifier| (verifier.received_len() as usize, verifier.right_len(parts)));
        let from = if parts.total_len().max(received_len) > SHOWN_MAX { right } else { 0 };
        let wrong = received
            .and_then(|verifier| self.wrong_bytes.kept(observed.index, verifier.id(), received_len - right));
        let received = wrong.map_or([&[][..]; 3], |wrong| {
            let [head, rest] = span(value, from..right);
            [head, rest, wrong]
        });
        let mut fault = ObjectFault::new(kind, observed.at_ns, observed.index);
        fault.ttl_s = lane.session.ttl_s();
        fault.expected_len = parts.total_len() as u32;
        fault.received_len = received_len as u32;
        fault.from = from as u32;
        let expected = span(value, from..from + SHOWN_MAX);
        self.recording.set.object_fault(&fault, [&[&self.key_bytes], &expected, &received]);
    }

    /// The window's check for this key.
    fn take_check(&mut self, head: EntryId, id: u64) -> Option<Check> {
        let entry = self.in_flight.get(head);
        if !entry.is_checked() {
            return None;
        }
        self.dispatch.lanes[entry.lane() as usize].session.take_check(entry.key(), id)
    }

    /// Minimum and maximum age of an object, and its time to live. An initial object was stored by the preload,
    /// some time before the schedule began.
    fn ages_and_ttl_ms(&self, head: EntryId, stored_ms: u32, at_ns: u64) -> ([u64; 2], u64) {
        let session = &self.lane_at(head).session;
        let least_ms = session.since_start_ms(at_ns).saturating_sub(u64::from(stored_ms));
        let most_ms = if stored_ms == 0 { at_ns / 1_000_000 } else { least_ms };
        ([least_ms, most_ms], u64::from(session.ttl_s()) * 1000)
    }

    /// Checks a miss.
    pub(super) fn check_miss(&mut self, index: u32, head: EntryId, id: u64, at_ns: u64) {
        if self.lane_at(head).is_windowed {
            return self.check_miss_of_window(index, head, id, at_ns);
        }
        let entry = self.in_flight.get(head);
        let read = CheckedRead { id, began_ns: entry.picked_ns, done_ns: at_ns };
        let Some(audit) = self.audits.get_mut(usize::from(entry.class)) else { return };
        if !audit.selects() {
            return;
        }
        self.recording.counts.verification.misses += 1;
        if let Some((fault, example)) = audit.judge_miss(read) {
            self.recording.counts.verification.note(fault, example);
        }
    }

    /// Notes a reply with a key that was not requested.
    #[cold]
    pub(super) fn note_unrequested(&mut self, head: EntryId, key: &[u8], at_ns: u64) {
        let keyspace = &self.lane_at(head).keyspace;
        let other_key = keyspace.id_of_key(key);
        let entry = self.in_flight.get_mut(head);
        entry.details.mismatched = true;
        // Of several keys the intended one is unknown.
        let requested = entry.op().only_id().or(other_key).unwrap_or(0);
        self.recording
            .counts
            .verification
            .note(ValueFault::WrongKey, FaultExample { other_key, ..FaultExample::of(requested, at_ns) });
    }

    /// Notes the integrity on a value.
    pub(super) fn judge(&mut self, index: u32, head: EntryId, verifier: &Verifier, at_ns: u64) {
        let integrity = verifier.finish(&self.payload);
        if let Some(age_ms) = verifier.expired_ms() {
            let kind = ObjectFaultKind::Expired { age_ms };
            let observed = ObservedObject { index, head, id: verifier.id(), at_ns };
            self.note_object(kind, &observed, &ValueParts::EMPTY, Some(verifier));
        } else if integrity != Integrity::Intact
            && let Some(parts) = verifier.of_window(&self.payload)
        {
            self.recording.counts.windows.verify_failed += 1;
            let observed = ObservedObject { index, head, id: verifier.id(), at_ns };
            self.note_object(ObjectFaultKind::Value, &observed, &parts, Some(verifier));
        }
        match integrity {
            Integrity::Intact if !verifier.is_of_any_version() => {}
            Integrity::Foreign => self.recording.counts.values_foreign += 1,
            integrity => self.judge_in_doubt(head, verifier, integrity, at_ns),
        }
    }

    /// As `judge`, of a wrong value or one whose version must be judged.
    fn judge_in_doubt(&mut self, head: EntryId, verifier: &Verifier, integrity: Integrity, at_ns: u64) {
        let entry = self.in_flight.get_mut(head);
        let (id, version) = (verifier.id(), verifier.version(&self.payload));
        let example = FaultExample { version: version.map(Version), ..FaultExample::of(id, at_ns) };
        let fault = match integrity {
            Integrity::Intact | Integrity::Foreign => {
                let read = CheckedRead { id, began_ns: entry.picked_ns, done_ns: at_ns };
                let audit = self.audits.get(usize::from(entry.class));
                audit.zip(version).and_then(|(audit, version)| audit.judge_value(read, version))
            }
            Integrity::WrongKey { id } => {
                Some((ValueFault::WrongKey, FaultExample { other_key: Some(id), ..example }))
            }
            // Unversioned writes have version 0.
            Integrity::WrongVersion { version } => {
                Some((ValueFault::NeverWritten, FaultExample { version: Some(Version(version)), ..example }))
            }
            Integrity::Torn => Some((ValueFault::Torn, example)),
            Integrity::Truncated => Some((ValueFault::Truncated, example)),
            Integrity::Overlong => Some((ValueFault::Overlong, example)),
        };
        if let Some((fault, example)) = fault {
            entry.details.mismatched = true;
            self.recording.counts.verification.note(fault, example);
        }
    }
}

/// The bytes of a value in two pieces that are in this range.
fn span(pieces: [&[u8]; 2], range: Range<usize>) -> [&[u8]; 2] {
    let mut begin = 0;
    pieces.map(|piece| {
        let [from, to] = [range.start, range.end].map(|at| at.saturating_sub(begin).min(piece.len()));
        begin += piece.len();
        &piece[from..to]
    })
}

/// Does an operation of this kind write a whole value?
fn is_versioned(kind: OpKind) -> bool {
    matches!(kind, OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Cas)
}

/// The audit of one class on one worker.
#[derive(Debug)]
pub(crate) struct Audit {
    /// The writes of each key.
    pub tracker: VersionTracker,
    /// Every key was stored before the schedule began.
    is_preloaded: bool,
    /// A read is checked if its draw is at most this.
    chosen_max: u64,
    draws: DrawRng,
    /// No operation deletes keys of the plan, and no write of them can fail unseen.
    judges_presence: bool,
    /// No operation extends a value's lifetime.
    judges_expiry: bool,
}

/// A finished read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedRead {
    /// The key.
    pub id: u64,
    /// When it was picked, which is before any byte reached the server.
    pub began_ns: u64,
    pub done_ns: u64,
}

impl Audit {
    /// The audits of all classes for a worker; empty if the plan verifies nothing. Writes down all keys, which
    /// takes time with many.
    pub(crate) fn all(plan: &Plan, part: StreamPart) -> Vec<Self> {
        let Some(share) = plan.verify else { return Vec::new() };
        let sends = |kind: OpKind| plan.classes.iter().any(|class| class.mix.contains(kind));
        let classes = plan.classes.len() as u32;
        // User-defined commands may do anything, and classes may share their keys.
        let live_alike =
            !sends(OpKind::Raw) && plan.classes.windows(2).all(|pair| pair[0].ttl_s == pair[1].ttl_s);
        // A failed store may destroy the previous value, and only its sender knows.
        let knows_all_writes = part.of * classes == 1 || !plan.writes();
        let audit = |(index, class): (u32, &brunt_plan::plan::Class)| Self {
            tracker: VersionTracker::new(
                part.index * classes + index + 1,
                // Windows know their own writes.
                if class.popularity.window().is_some() { 0 } else { class.keyspace.keys },
                u64::from(class.ttl_s) * 1_000_000_000,
            ),
            is_preloaded: plan.preload,
            chosen_max: (share.as_f64() * u64::MAX as f64) as u64,
            draws: DrawRng::from_draw(plan.seed ^ u64::from(part.index) << 32 ^ u64::from(index)),
            judges_presence: live_alike && knows_all_writes && !sends(OpKind::Delete),
            judges_expiry: live_alike && !sends(OpKind::Touch),
        };
        (0..).zip(&plan.classes).map(audit).collect()
    }

    /// Begins the schedule; the preload stored its keys before `start_ns`.
    pub(crate) fn begin(&mut self, start_ns: u64) {
        if self.is_preloaded {
            self.tracker.preloaded(0..start_ns);
        }
    }

    /// Is the next read to be checked?
    pub(crate) fn selects(&mut self) -> bool {
        self.draws.next_u64() <= self.chosen_max
    }

    /// The fault of a value of this key and version, if any.
    pub(crate) fn judge_value(&self, read: CheckedRead, version: u32) -> Option<(ValueFault, FaultExample)> {
        let CheckedRead { id, began_ns, done_ns } = read;
        let (fault, wanted) = match self.tracker.judge(id, version, began_ns) {
            Freshness::Stale { newest } => (ValueFault::Stale, Some(Version(newest))),
            Freshness::NeverWritten => (ValueFault::NeverWritten, None),
            Freshness::Possible if self.judges_expiry && self.tracker.is_expired(id, version, began_ns) => {
                (ValueFault::Expired, None)
            }
            Freshness::Possible => return None,
        };
        Some((
            fault,
            FaultExample { version: Some(Version(version)), wanted, ..FaultExample::of(id, done_ns) },
        ))
    }

    /// The fault of a miss, if any.
    pub(crate) fn judge_miss(&self, read: CheckedRead) -> Option<(ValueFault, FaultExample)> {
        let CheckedRead { id, began_ns, done_ns } = read;
        let is_wrong = self.judges_presence && self.tracker.is_expected_present(id, began_ns, done_ns);
        is_wrong.then_some((ValueFault::Missing, FaultExample::of(id, done_ns)))
    }
}
