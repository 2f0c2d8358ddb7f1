//! The source of a session's operations: kind, key and value of the next one.
//!
//! A source names the key of an op by a [`KeyRef`], and is told what became of each op before the slot of that is free
//! again: what it sends next may depend on it. One more source is a variant of [`Source`], what it answers as
//! [`Operations`], and the case in [`Source::of_class`] in which a plan has it.

use crate::alias::AliasTable;
use crate::client_window::ClientWindow;
use crate::popularity::{Cursor, Ids, KeyChooser};
use crate::rng::{Draw, Rng};
use crate::size::{SizeOf, Sizes};
use crate::trace::TraceCursor;
use brunt_plan::mix::Mix;
use brunt_plan::op::{KeyRef, Op, OpKind, ValueRef};
use brunt_plan::outcome::{ErrorPersistence, Outcome, OutcomeClass};
use brunt_plan::plan::Class;
use brunt_plan::popularity;
use brunt_plan::shard::{StreamPart, share};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// How often a preload session tries again what had no reply, or was declined without an error, over all of its keys, before it gives up:
/// enough for a server that restarts, an end for one that never takes the keys. A session with more slots than this may
/// fail once in each of them: one lost connection decides nothing.
pub(crate) const PRELOAD_RETRIES_MAX: u64 = 1_000;

/// How long a preload waits after an error before it tries one key alone: at first, and at most after as many errors in a row.
const PRELOAD_PAUSE_MIN_NS: u64 = 10_000_000;
const PRELOAD_PAUSE_MAX_NS: u64 = 1_000_000_000;

/// The rate of a preload is caught up with for so long: enough for the loop's looks at it, and no burst after a stall.
const PRELOAD_LATENESS_MAX_NS: f64 = 10e6;

/// How many keys in a row a server that evicts may not have made room for, each alone and over 0.3 s: it makes room for one with the store
/// itself.
const OUT_OF_MEMORY_MAX: u32 = 5;

/// What drawn ops are chosen by, beside the session's own random numbers.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Which keys; of the class's popularity and keyspace, shared by all its sessions.
    pub chooser: Arc<KeyChooser>,
    /// Where the session is in a popularity that moves: that of a walk may be shared.
    pub cursor: Cursor,
    /// By how much incr and decr change the counter of an id; of the class, shared by all its sessions.
    pub deltas: Arc<Sizes>,
}

impl Choices {
    /// Those of a session of `class` that shares nothing with others.
    pub fn of_session(class: &Class, part: StreamPart, data_seed: u64) -> Self {
        let keys = class.keyspace.keys;
        Self {
            chooser: Arc::new(KeyChooser::new(&class.popularity, class.drift, keys, data_seed)),
            cursor: Cursor::new(part),
            deltas: Arc::new(Sizes::new(class.delta.clone(), SizeOf::Delta, data_seed)),
        }
    }

    #[inline]
    fn next_id(&mut self, rng: &mut Rng, since_ns: u64, inserts: bool) -> u64 {
        self.chooser.next_id(&mut self.cursor, rng, since_ns, inserts)
    }
}

/// Every source there is. The usual one is told apart where each instruction counts.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Drawn(Drawn),
    Recorded(Recorded),
    Purge(Purge),
    Preload(Preload),
    Window(Box<ClientWindow>),
}

impl Source {
    /// The source of a class's session, with `slots` slots in closed loop, and of a trace with room for so many records that are in flight or
    /// wait. `verify` is the share of reads that are checked.
    pub(crate) fn of_class(
        class: &Class,
        part: StreamPart,
        choices: Choices,
        rng: Rng,
        (slots, records): (usize, usize),
        verify: f64,
    ) -> Self {
        if let Some(window) = ClientWindow::new(class, part, rng.clone(), slots, verify) {
            return Self::Window(Box::new(window));
        }
        let uniques = Uniques { held: VecDeque::with_capacity(Uniques::COUNT_MAX) };
        if class.trace.is_some() {
            let (cursor, ttl_s) = (TraceCursor::new(records), class.ttl_s);
            return Self::Recorded(Recorded { cursor, ttl_s, uniques });
        }
        Self::Drawn(Drawn {
            counters: if class.has_counters() { choices.chooser.keys() } else { 0 },
            unread: u64::from(!class.mix.contains(OpKind::Gets)),
            choices,
            kinds: KindChooser::new(&class.mix),
            rng,
            multiget: class.multiget,
            ttl_s: class.ttl_s,
            uniques,
        })
    }

    pub(crate) fn operations(&self) -> &dyn Operations {
        match self {
            Self::Drawn(drawn) => drawn,
            Self::Recorded(recorded) => recorded,
            Self::Purge(purge) => purge,
            Self::Preload(preload) => preload,
            Self::Window(window) => window.as_ref(),
        }
    }

    pub(crate) fn operations_mut(&mut self) -> &mut dyn Operations {
        match self {
            Self::Drawn(drawn) => drawn,
            Self::Recorded(recorded) => recorded,
            Self::Purge(purge) => purge,
            Self::Preload(preload) => preload,
            Self::Window(window) => window.as_mut(),
        }
    }
}

/// What a session asks of its source, and what it tells it.
pub(crate) trait Operations {
    /// The next op, whose class and session are the caller's to fill in. There is one. `since_ns` is its intended time, from the start
    /// of the schedule.
    fn next(&mut self, since_ns: u64) -> Op;

    /// Is there a next op now?
    fn has_next(&self) -> bool {
        true
    }

    /// May there be one when those in flight have ended, whatever becomes of them?
    fn may_have_more(&self) -> bool {
        true
    }

    /// Will there be one although none is in flight?
    fn is_paused(&self) -> bool {
        false
    }

    /// An op with this key has ended, in whatever way. Drawn ops depend on nothing that happens, and are not told.
    fn record_outcome(&mut self, _key: KeyRef, _outcome: Outcome) {}

    /// A gets has read a key with this unique.
    fn record_unique(&mut self, _id: u64, _unique: u64) {}

    /// Time to live of a store that follows a miss, in seconds.
    fn ttl_s(&self) -> u32;
}

/// Ops by the class's mix and popularity.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    choices: Choices,
    /// How far the id of a counter is above that of its key.
    counters: u64,
    /// The unique of a cas where none was read: 0, which no value has, and where nothing reads any, mcperf's 1.
    unread: u64,
    kinds: KindChooser,
    rng: Rng,
    multiget: u16,
    ttl_s: u32,
    uniques: Uniques,
}

impl Drawn {
    /// What kind of op comes next.
    #[inline]
    pub(crate) fn next_kind(&mut self) -> OpKind {
        self.kinds.choose(&mut self.rng)
    }

    /// The key of the next op, which is no insertion.
    #[inline]
    pub(crate) fn next_id(&mut self, since_ns: u64) -> u64 {
        self.choices.next_id(&mut self.rng, since_ns, false)
    }

    /// The keys of an op, in the order of the request.
    #[inline]
    pub(crate) fn ids(&self, op: &Op) -> Ids<'_> {
        self.choices.chooser.ids(op)
    }

    /// The next op, which is of this kind.
    #[inline(never)]
    pub(crate) fn next_of_kind(&mut self, kind: OpKind, since_ns: u64) -> Op {
        if kind == OpKind::Mget {
            let Choices { chooser, cursor, .. } = &mut self.choices;
            let (key, operand) = chooser.next_keys(cursor, &mut self.rng, since_ns, self.multiget);
            return Op { count: self.multiget, operand, ..Op::of(kind, key) };
        }
        let inserts = matches!(kind, OpKind::Set | OpKind::Add);
        let id = self.choices.next_id(&mut self.rng, since_ns, inserts);
        let op = Op::of(kind, KeyRef::Id(id));
        match kind {
            OpKind::Set | OpKind::Add | OpKind::Replace => {
                Op { value: ValueRef::Version(0), ttl_s: self.ttl_s, ..op }
            }
            // Another version, so that a value which has grown can be told apart. The time to live stays as it is, whatever
            // is in the place that some protocols have for one.
            OpKind::Append | OpKind::Prepend => Op { value: ValueRef::Version(1), ttl_s: self.ttl_s, ..op },
            OpKind::Cas => {
                // Before anything was read there is no unique: the server will say so.
                let (id, operand) = self.uniques.held.pop_back().unwrap_or((id, self.unread));
                Op { key: KeyRef::Id(id), value: ValueRef::Version(0), ttl_s: self.ttl_s, operand, ..op }
            }
            OpKind::Incr | OpKind::Decr => {
                let operand = u64::from(self.choices.deltas.len(id));
                Op { key: KeyRef::Id(self.counters + id), operand, ..op }
            }
            OpKind::Touch => Op { ttl_s: self.ttl_s, ..op },
            // Whether the command has a place for it is the codec's to know.
            OpKind::Raw => {
                let command = self.kinds.choose_command(&mut self.rng);
                Op { value: ValueRef::Version(0), operand: self.rng.next_u64(), command, ..op }
            }
            OpKind::Get | OpKind::Gets | OpKind::Mget | OpKind::Delete => op,
        }
    }
}

impl Operations for Drawn {
    fn next(&mut self, since_ns: u64) -> Op {
        let kind = self.next_kind();
        self.next_of_kind(kind, since_ns)
    }

    fn record_unique(&mut self, id: u64, unique: u64) {
        self.uniques.push(id, unique);
    }

    fn ttl_s(&self) -> u32 {
        self.ttl_s
    }
}

/// Ops by the records of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) cursor: TraceCursor,
    ttl_s: u32,
    uniques: Uniques,
}

impl Recorded {
    /// The set that follows the miss of the record in this place, if it is known how long its value is. The place is held until that has
    /// ended, too.
    pub(crate) fn store_of(&mut self, place: u32) -> Option<Op> {
        if !self.cursor.has_len(place) {
            return None;
        }
        self.cursor.hold(place);
        let op = Op { ttl_s: self.cursor.ttl_s(place), ..Op::of(OpKind::Set, KeyRef::Offset(place)) };
        Some(Op { value: ValueRef::Offset(place), ..op })
    }
}

impl Operations for Recorded {
    fn next(&mut self, _since_ns: u64) -> Op {
        let taken = self.cursor.take();
        let op = Op::of(taken.kind, KeyRef::Offset(taken.place));
        let ttl_s = self.cursor.ttl_s(taken.place);
        let stored = Op { value: ValueRef::Offset(taken.place), ttl_s, ..op };
        match taken.kind {
            OpKind::Set | OpKind::Add | OpKind::Replace => stored,
            // The time to live stays.
            OpKind::Append | OpKind::Prepend => Op { ttl_s: 0, ..stored },
            OpKind::Cas => {
                let (id, _) = self.cursor.value(taken.place);
                // Of a key that this session has not read there is no unique: the server will say so.
                Op { operand: self.uniques.take(id).unwrap_or(0), ..stored }
            }
            // A trace does not say by how much.
            OpKind::Incr | OpKind::Decr => Op { operand: 1, ..op },
            _ => op,
        }
    }

    fn has_next(&self) -> bool {
        self.cursor.has_next()
    }

    fn may_have_more(&self) -> bool {
        !self.cursor.is_over()
    }

    fn record_outcome(&mut self, key: KeyRef, _outcome: Outcome) {
        let KeyRef::Offset(place) = key else { panic!("{key:?} is no key of a trace") };
        self.cursor.release_record(place);
    }

    fn record_unique(&mut self, id: u64, unique: u64) {
        self.uniques.push(id, unique);
    }

    fn ttl_s(&self) -> u32 {
        self.ttl_s
    }
}

impl Operations for Purge {
    fn next(&mut self, _since_ns: u64) -> Op {
        Op::of(OpKind::Delete, KeyRef::Id(self.next_id()))
    }

    /// Stores that follow what was asked before it are kept for ever: a class that purges has no time to live.
    fn ttl_s(&self) -> u32 {
        0
    }
}

impl Operations for ClientWindow {
    fn next(&mut self, since_ns: u64) -> Op {
        self.next_of(since_ns, u64::MAX)
    }

    fn has_next(&self) -> bool {
        self.has_next()
    }

    fn record_outcome(&mut self, key: KeyRef, outcome: Outcome) {
        self.record_outcome(key, outcome);
    }

    fn ttl_s(&self) -> u32 {
        self.ttl_s()
    }
}

/// What a preload stores, or deletes, and how.
#[derive(Clone, Debug)]
pub struct PreloadSpec {
    /// The keys.
    pub ids: Range<u64>,
    /// Time to live, in seconds.
    pub ttl_s: u32,
    /// Whose first objects they are, where they are that: each has the time to live of its place there.
    pub window: Option<popularity::ObjectWindow>,
    /// The time per key at least, on average, where there is a rate: [`crate::session::Session::resume_preload`] tells the time.
    pub gap_ns: Option<f64>,
    /// Keys are deleted; one that is not there is done, too.
    pub deletes: bool,
}

/// A SET, or a DELETE, for every id of a range, each until it is done.
#[derive(Clone, Debug)]
pub(crate) struct Preload {
    spec: PreloadSpec,
    /// Ids that failed and wait for another try; never more than there are slots.
    again: Vec<u64>,
    retries: u64,
    /// Ops whose outcome is not known.
    in_flight: u64,
    /// After an error, until a key is confirmed.
    hold: Option<Hold>,
    /// Where it keeps to a rate.
    pace: Option<Pace>,
    pub(crate) confirmed: u64,
    pub(crate) failed: bool,
}

/// A preload that sends one key at a time, since the server answers with errors: what is sent to it meanwhile would be sent in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    /// The next key is sent from then on.
    until_ns: u64,
    pause_ns: u64,
    /// The next key may be sent.
    is_over: bool,
    /// Keys in a row, each alone, that the server had no memory for.
    out_of_memory: u32,
}

impl Hold {
    /// Before the first error.
    const FIRST: Self =
        Self { until_ns: 0, pause_ns: PRELOAD_PAUSE_MIN_NS, is_over: false, out_of_memory: 0 };
}

/// The rate of a preload: an op is permitted every `gap_ns`, from the first look at it.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Time per op.
    gap_ns: f64,
    /// The last look.
    now_ns: f64,
    /// The next op may be sent from then on; infinity before the first look.
    next_ns: f64,
}

impl Pace {
    fn is_spent(&self) -> bool {
        self.next_ns > self.now_ns
    }

    /// Returns whether more may be sent than before, where nothing might.
    fn advance(&mut self, now_ns: u64) -> bool {
        let was_spent = self.is_spent();
        self.now_ns = now_ns as f64;
        let is_first = self.next_ns.is_infinite();
        self.next_ns =
            if is_first { self.now_ns } else { self.next_ns.max(self.now_ns - PRELOAD_LATENESS_MAX_NS) };
        was_spent && !self.is_spent()
    }
}

impl Preload {
    pub(crate) fn new(spec: PreloadSpec, slots: usize) -> Self {
        Self {
            pace: spec.gap_ns.map(|gap_ns| Pace { gap_ns, now_ns: 0.0, next_ns: f64::INFINITY }),
            spec,
            again: Vec::with_capacity(slots),
            retries: 0,
            in_flight: 0,
            hold: None,
            confirmed: 0,
            failed: false,
        }
    }

    fn has_more(&self) -> bool {
        !self.again.is_empty() || !self.spec.ids.is_empty()
    }

    /// Does it wait for its rate, and for nothing else?
    pub(crate) fn awaits_pace(&self) -> bool {
        let is_spent = self.pace.is_some_and(|pace| pace.is_spent());
        is_spent && self.has_more() && self.in_flight == 0 && self.hold.is_none()
    }

    /// An op has this error, and its outcome follows. Returns whether the preload has failed with it.
    pub(crate) fn refuse(&mut self, persistence: ErrorPersistence, at_ns: u64) -> bool {
        let Hold { pause_ns, out_of_memory, .. } =
            self.hold.filter(|_| self.in_flight == 1).unwrap_or(Hold::FIRST);
        let out_of_memory = match persistence {
            ErrorPersistence::OutOfMemory => out_of_memory + 1,
            ErrorPersistence::Permanent | ErrorPersistence::Transient => 0,
        };
        self.hold = Some(Hold {
            until_ns: at_ns + pause_ns,
            pause_ns: (2 * pause_ns).min(PRELOAD_PAUSE_MAX_NS),
            is_over: false,
            out_of_memory,
        });
        self.failed |= persistence == ErrorPersistence::Permanent || out_of_memory > OUT_OF_MEMORY_MAX;
        self.failed
    }

    /// Goes on with the rate, and ends the pause after an error, if it is over and everything has been answered. Returns whether the next
    /// key may be sent now, and might not before.
    pub(crate) fn resume(&mut self, now_ns: u64) -> bool {
        let is_permitted = self.pace.as_mut().is_some_and(|pace| pace.advance(now_ns));
        let is_alone = self.in_flight == 0;
        match &mut self.hold {
            Some(hold) if is_alone && !hold.is_over && now_ns >= hold.until_ns => {
                hold.is_over = true;
                true
            }
            _ => is_permitted,
        }
    }

    /// The op that stores the first object of a window with this number.
    fn op_of(&self, window: &popularity::ObjectWindow, number: u64) -> Op {
        let place = (number % u64::from(window.objects)) as u32;
        let lives_on = window.expire > 0.0 && !window.expires(place);
        let key = KeyRef::Id(popularity::ObjectWindow::id(place, number));
        Op {
            value: ValueRef::Version(0),
            ttl_s: if lives_on { 0 } else { self.spec.ttl_s },
            ..Op::of(OpKind::Set, key)
        }
    }
}

impl Operations for Preload {
    fn next(&mut self, _since_ns: u64) -> Op {
        let next = self.again.pop().or_else(|| self.spec.ids.next());
        let id = next.expect("taken only while has_next says so");
        self.in_flight += 1;
        if let Some(hold) = &mut self.hold {
            hold.is_over = false;
        }
        if let Some(pace) = &mut self.pace {
            pace.next_ns += pace.gap_ns;
        }
        if self.spec.deletes {
            return Op::of(OpKind::Delete, KeyRef::Id(id));
        }
        if let Some(window) = &self.spec.window {
            return self.op_of(window, id);
        }
        Op { value: ValueRef::Version(0), ttl_s: self.spec.ttl_s, ..Op::of(OpKind::Set, KeyRef::Id(id)) }
    }

    fn has_next(&self) -> bool {
        let may_send =
            self.hold.is_none_or(|hold| hold.is_over) && self.pace.is_none_or(|pace| !pace.is_spent());
        !self.failed && may_send && self.has_more()
    }

    /// An op in flight that fails is retried, until the preload gives up.
    fn may_have_more(&self) -> bool {
        !self.failed
    }

    fn is_paused(&self) -> bool {
        let is_held = !self.again.is_empty() && self.hold.is_some_and(|hold| !hold.is_over);
        !self.failed && (is_held || self.has_more() && self.pace.is_some_and(|pace| pace.is_spent()))
    }

    fn record_outcome(&mut self, key: KeyRef, outcome: Outcome) {
        let KeyRef::Id(id) = key else { panic!("{key:?} is no key of a preload") };
        let id = if self.spec.window.is_some() { popularity::ObjectWindow::number_of(id) } else { id };
        self.in_flight -= 1;
        let is_absent = self.spec.deletes && outcome.class == OutcomeClass::Rejected;
        if outcome.class == OutcomeClass::Done || is_absent {
            self.confirmed += 1;
            self.hold = None;
        } else if self.hold.is_some() && outcome.reply.is_error() {
            // `refuse` has decided whether it goes on.
            self.again.push(id);
        } else if self.retries >= PRELOAD_RETRIES_MAX.max(self.again.capacity() as u64) {
            self.failed = true;
        } else {
            self.retries += 1;
            self.again.push(id);
        }
    }

    fn ttl_s(&self) -> u32 {
        self.spec.ttl_s
    }
}

/// What gets has read and no cas has used: key ids with their uniques. Bounded; the oldest give way, for they are the
/// most likely to be out of date.
#[derive(Clone, Debug)]
struct Uniques {
    held: VecDeque<(u64, u64)>,
}

impl Uniques {
    const COUNT_MAX: usize = 64;

    fn push(&mut self, id: u64, unique: u64) {
        if self.held.len() == Self::COUNT_MAX {
            self.held.pop_front();
        }
        self.held.push_back((id, unique));
    }

    /// That of this key, the last one.
    fn take(&mut self, id: u64) -> Option<u64> {
        let place = self.held.iter().rposition(|(held, _)| *held == id)?;
        self.held.remove(place).map(|(_, unique)| unique)
    }
}

/// The deletes of one stream that are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Purge {
    ids: Range<u64>,
    keep_every: u64,
    copies: u32,
    /// How often the first of `ids` was deleted.
    deleted: u32,
}

impl Purge {
    /// Of `keys` keys, all whose ids are no multiples of `keep_every`.
    pub(crate) fn new(keys: u64, keep_every: u64, part: StreamPart, copies: u32) -> Self {
        Self { ids: share(keys, part.index, part.of), keep_every, copies, deleted: 0 }
    }

    /// How many deletes there are from the first on.
    pub(crate) fn count(&self) -> u64 {
        let kept_below = |id: u64| id.div_ceil(self.keep_every);
        let kept = kept_below(self.ids.end) - kept_below(self.ids.start);
        (self.ids.end - self.ids.start - kept) * u64::from(self.copies)
    }

    /// The next key. There must be one.
    pub(crate) fn next_id(&mut self) -> u64 {
        if self.deleted == self.copies {
            self.ids.start += 1;
            self.deleted = 0;
        }
        if self.ids.start.is_multiple_of(self.keep_every) {
            self.ids.start += 1;
        }
        self.deleted += 1;
        debug_assert!(self.ids.start < self.ids.end, "more deletes than were counted");
        self.ids.start
    }
}

/// Draws kinds of operation by weight: one draw each, none where there is only one kind.
#[derive(Clone, Debug)]
pub(crate) struct KindChooser {
    /// The kind, where there is only one.
    only: Option<OpKind>,
    kinds: Vec<OpKind>,
    table: AliasTable,
    /// Which raw command; `None` where there is at most one.
    commands: Option<AliasTable>,
}

impl KindChooser {
    /// The sampler of this mix.
    pub(crate) fn new(mix: &Mix) -> Self {
        let weights: Vec<f64> = mix.weights.iter().map(|(_, weight)| f64::from(*weight)).collect();
        let kinds: Vec<OpKind> = mix.weights.iter().map(|(kind, _)| *kind).collect();
        let only = if let [only] = kinds[..] { Some(only) } else { None };
        let of_commands: Vec<f64> = mix.commands.iter().map(|weight| f64::from(*weight)).collect();
        let commands = (of_commands.len() > 1).then(|| AliasTable::new(&of_commands));
        Self { only, kinds, table: AliasTable::new(&weights), commands }
    }

    /// The kind of the next operation.
    #[inline]
    pub(crate) fn choose(&self, draw: &mut impl Draw) -> OpKind {
        match self.only {
            Some(only) => only,
            None => self.kinds[self.table.pick(draw.next_u64())],
        }
    }

    /// The number of the plan's command that the next raw operation is, counted from 1: one draw, none where there is only one.
    pub(crate) fn choose_command(&self, draw: &mut impl Draw) -> u16 {
        self.commands.as_ref().map_or(1, |table| table.pick(draw.next_u64()) as u16 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Rng};

    #[test]
    fn every_key_but_those_that_are_kept_is_deleted_on_every_server() {
        for (keys, keep_every, of, copies) in [(100, 10, 1, 1), (101, 10, 3, 2), (7, 2, 4, 1), (5, 10, 9, 3)]
        {
            let mut deleted = Vec::new();
            for index in 0..of {
                let mut purge = Purge::new(keys, keep_every, StreamPart { index, of }, copies);
                deleted.extend((0..purge.count()).map(|_| purge.next_id()));
            }
            let expected: Vec<u64> = (0..keys)
                .filter(|id| !id.is_multiple_of(keep_every))
                .flat_map(|id| std::iter::repeat_n(id, copies as usize))
                .collect();
            assert_eq!(deleted, expected, "{keys} {keep_every} {of} {copies}");
        }
    }

    #[test]
    fn kinds_come_by_weight() {
        // Counts of 100 000 draws within 4 standard deviations of a binomial count.
        let table: [(&str, &[(OpKind, f64)]); 4] = [
            ("get", &[(OpKind::Get, 1.0)]),
            ("get=9,set=1", &[(OpKind::Get, 0.9), (OpKind::Set, 0.1)]),
            ("set=1,get=1", &[(OpKind::Get, 0.5), (OpKind::Set, 0.5)]),
            ("get=7,mget=2,set=1", &[(OpKind::Get, 0.7), (OpKind::Mget, 0.2), (OpKind::Set, 0.1)]),
        ];
        for (text, shares) in table {
            let chooser = KindChooser::new(&text.parse().unwrap());
            let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
            let mut counts = [0f64; OpKind::COUNT];
            (0..100_000).for_each(|_| counts[chooser.choose(&mut rng) as usize] += 1.0);
            for (kind, share) in shares {
                let bar = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
                let off = (counts[*kind as usize] - share * 100_000.0).abs();
                assert!(off <= bar, "{text}: {kind} is off by {off}");
            }
        }
    }

    #[test]
    fn commands_come_by_weight() {
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        let chooser = KindChooser::new(&"raw=3+0+1".parse().unwrap());
        let mut counts = [0_i32; 4];
        (0..40_000).for_each(|_| counts[usize::from(chooser.choose_command(&mut rng))] += 1);
        // Four standard deviations.
        assert!((counts[1] - 30_000).abs() < 350 && counts[0] + counts[2] == 0, "{counts:?}");
        for text in ["get=1", "get=1,raw=5"] {
            assert_eq!(KindChooser::new(&text.parse().unwrap()).choose_command(&mut rng), 1);
        }
    }
}
