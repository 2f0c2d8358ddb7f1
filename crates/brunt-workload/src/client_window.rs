//! Ops on a window of objects, as memaslap chooses them: sets fill the window and then put new objects in the place of old ones, gets
//! ask for any object that is there.
//!
//! The order of sets and gets follows from their shares alone. Invariants: what was not stored is not there, whatever
//! was sent; and of an object whose last write may or may not have happened nothing is checked.

use crate::rng::{Draw, Rng};
use brunt_plan::op::{Expectation, KeyRef, Op, OpKind, ValueRef};
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_plan::plan::{Class, SessionScope};
use brunt_plan::popularity;
use brunt_plan::shard::StreamPart;
use std::cmp::Ordering;
use std::ops::Range;

/// Shares of sets up to this are none.
const SHARE_MIN: f64 = 0.001;
/// By how much sets or gets may be ahead of their share.
const AHEAD: f64 = 1.03;
/// Sets and gets together that are counted down in one portion.
const PORTION: f64 = 1000.0;

/// What is in one place of a window: the number of an object, the version of its value and how things are with it, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObjectState(u64);

impl ObjectState {
    /// It has been stored.
    const STORED: u64 = 1 << 63;
    /// A write of it is in flight.
    const WRITING: u64 = 1 << 62;
    /// A write of it may or may not have happened.
    const DOUBTFUL: u64 = 1 << 61;
    const VERSION_BITS: u32 = 61 - popularity::ObjectWindow::NUMBER_BITS;

    const fn new(number: u64) -> Self {
        Self(number)
    }

    const fn number(self) -> u64 {
        popularity::ObjectWindow::number_of(self.0)
    }

    const fn version(self) -> u32 {
        ((self.0 & (Self::DOUBTFUL - 1)) >> popularity::ObjectWindow::NUMBER_BITS) as u32
    }

    /// The version that the next write of this object has, from 0 again behind the last one.
    const fn next_version(self) -> u32 {
        if self.is(Self::STORED) { (self.version() + 1) & ((1 << Self::VERSION_BITS) - 1) } else { 0 }
    }

    const fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    const fn with(self, flag: u64) -> Self {
        Self(self.0 | flag)
    }

    /// Stored in this version, and no write of it in flight.
    const fn stored(self, version: u32) -> Self {
        Self(self.number() | (version as u64) << popularity::ObjectWindow::NUMBER_BITS | Self::STORED)
    }
}

/// What the reply to a get is to be checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The value is this version's.
    Value {
        /// The version.
        version: u32,
    },
    /// The object expires: it was stored at this time of the schedule.
    Life {
        /// The time, in ms from the start of the schedule.
        stored_ms: u32,
    },
}

/// A key that a get asks for.
#[derive(Clone, Copy, Debug)]
struct CheckedKey {
    id: u64,
    check: Option<Check>,
}

/// The keys of multi-gets: of those in flight, each with a place, and of the one that is being put together.
#[derive(Clone, Debug)]
struct Multigets {
    keys: usize,
    ids: Vec<u64>,
    checks: Vec<Option<Check>>,
    counts: Vec<u16>,
    /// Places that nothing is in. The last one is the next to be used.
    free: Vec<u32>,
    next: Vec<CheckedKey>,
}

impl Multigets {
    fn new(keys: u16, places: usize) -> Self {
        let keys = usize::from(keys);
        Self {
            keys,
            ids: vec![0; keys * places],
            checks: vec![None; keys * places],
            counts: vec![0; places],
            free: (0..places as u32).collect(),
            next: Vec::with_capacity(keys),
        }
    }

    /// Gives what has been put together a place.
    fn send(&mut self) -> Op {
        let place = self.free.pop().expect("taken only while has_next says so");
        let at = place as usize * self.keys;
        let count = self.next.len();
        for (at, asked) in (at..).zip(&self.next) {
            (self.ids[at], self.checks[at]) = (asked.id, asked.check);
        }
        self.counts[place as usize] = count as u16;
        let is_checked = self.next.iter().any(|asked| asked.check.is_some());
        self.next.clear();
        let op = Op::of(OpKind::Mget, KeyRef::Drawn(u64::from(place)));
        let expectation = if is_checked { Expectation::Present } else { Expectation::Any };
        Op { count: count as u16, expectation, ..op }
    }

    fn span(&self, place: u64) -> Range<usize> {
        let at = place as usize * self.keys;
        at..at + usize::from(self.counts[place as usize])
    }

    /// What is to be checked of the next of the keys in a place that is this one.
    fn take_check(&mut self, place: u64, id: u64) -> Option<Check> {
        let span = self.span(place);
        let checks = self.checks[span.clone()].iter_mut().zip(&self.ids[span]);
        checks.filter(|(_, own)| **own == id).find_map(|(check, _)| check.take())
    }
}

/// The window of one client, and what it does with it.
#[derive(Clone, Debug)]
pub(crate) struct ClientWindow {
    distribution: popularity::ObjectWindow,
    /// The shares of sets and gets, and their weights.
    sets: f64,
    gets: f64,
    set_weight: u64,
    get_weight: u64,
    verify: f64,
    ttl_s: u32,
    slots: Box<[ObjectState]>,
    /// When the objects that expire were stored, in ms from the start of the schedule.
    stored_ms: Box<[u32]>,
    /// When the write that is in flight was taken.
    taken_ms: u32,
    rng: Rng,
    /// The number of the next new object.
    next_number: u64,
    /// How many numbers there are; the one behind the last is the first.
    numbers: u64,
    /// How many clients take numbers in turn.
    clients: u64,
    /// Writes of places in turn that have been stored.
    cursor: u64,
    /// Writes in flight, and those of them behind which the cursor stays where it is.
    writing: u64,
    holding: u64,
    get_count: u64,
    set_count: u64,
    gets_left: u64,
    sets_left: u64,
    verified: u64,
    overwritten: u64,
    multigets: Option<Multigets>,
    /// Operations in flight, and how many there may be: a client does one after the other also where a schedule says when.
    under_way: u32,
    under_way_max: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Get(u32),
    /// Write the object in this place, as it is.
    Set(u32),
    /// Put a new object there, and write that.
    Replace(u32),
}

impl ClientWindow {
    /// The window of this client among all of its class, with up to `slots` operations in flight; a share of its gets is checked.
    pub(crate) fn new(class: &Class, part: StreamPart, rng: Rng, slots: usize, verify: f64) -> Option<Self> {
        let distribution = *class.popularity.window()?;
        let weight = |kinds: &[OpKind]| {
            let held = class.mix.weights.iter().filter(|(kind, _)| kinds.contains(kind));
            held.map(|(_, weight)| u64::from(*weight)).sum::<u64>()
        };
        let (sets, gets) = (weight(&[OpKind::Set]), weight(&[OpKind::Get, OpKind::Mget]));
        let share = |weight: u64| weight as f64 / (sets + gets) as f64;
        let (objects, clients) = (u64::from(distribution.objects), u64::from(part.of));
        let first = u64::from(part.index) * objects;
        // Without sets all was stored before.
        let flags = if sets == 0 { ObjectState::STORED } else { 0 };
        Some(Self {
            distribution,
            sets: share(sets),
            gets: share(gets),
            set_weight: sets,
            get_weight: gets,
            verify,
            ttl_s: class.ttl_s,
            slots: (0..objects).map(|place| ObjectState::new(first + place).with(flags)).collect(),
            stored_ms: vec![0; distribution.expiring_below(distribution.objects) as usize].into(),
            taken_ms: 0,
            rng,
            next_number: objects * clients + u64::from(part.index),
            numbers: class.keyspace.keys,
            clients,
            cursor: if sets == 0 { objects } else { 0 },
            writing: 0,
            holding: 0,
            get_count: 0,
            set_count: 0,
            gets_left: 0,
            sets_left: 0,
            verified: 0,
            overwritten: 0,
            multigets: class.mix.contains(OpKind::Mget).then(|| Multigets::new(class.multiget, slots)),
            under_way: 0,
            under_way_max: match class.sessions {
                SessionScope::Client { .. } => class.depth,
                SessionScope::Worker | SessionScope::Connection => u32::MAX,
            },
        })
    }

    /// Are sets behind their share, or just at it, or ahead of it?
    fn sets_behind(&self) -> Ordering {
        let product = |count: u64, weight: u64| u128::from(count) * u128::from(weight);
        product(self.get_count, self.set_weight).cmp(&product(self.set_count, self.get_weight))
    }

    /// A random one of the first `filled` places; the first one while there is none.
    fn filled_place(&mut self, filled: u64) -> u32 {
        match filled {
            0 => 0,
            filled => self.rng.below(filled.min(u64::from(self.distribution.objects))) as u32,
        }
    }

    fn slot(&self, place: u32) -> ObjectState {
        self.slots[place as usize]
    }

    fn choose(&mut self) -> Choice {
        if self.gets_left == 0 || self.sets_left == 0 {
            self.gets_left += (PORTION * self.gets) as u64;
            self.sets_left += (PORTION * self.sets) as u64;
        }
        if self.sets > SHARE_MIN && self.sets_behind() != Ordering::Less {
            let place = (self.cursor + self.writing) % u64::from(self.distribution.objects);
            self.choose_set(place as u32)
        } else {
            let place = self.filled_place(self.cursor);
            self.choose_get(place)
        }
    }

    fn choose_set(&mut self, place: u32) -> Choice {
        let is_overwrite = (self.overwritten as f64) < self.set_count as f64 * self.distribution.overwrite;
        match (self.slot(place).is(ObjectState::STORED), is_overwrite) {
            (true, false) => Choice::Replace(place),
            (true, true) => {
                self.overwritten += 1;
                Choice::Set(place)
            }
            (false, false) => Choice::Set(place),
            (false, true) => {
                // The turn of this place comes after it.
                let other = self.filled_place(self.cursor - 1);
                self.holding += 1;
                self.overwritten += u64::from(self.slot(other).is(ObjectState::STORED));
                Choice::Set(other)
            }
        }
    }

    fn choose_get(&mut self, place: u32) -> Choice {
        let gets_are_ahead = self.sets_behind() == Ordering::Greater;
        let bound = (self.sets / self.gets * AHEAD) as u64 * self.gets_left;
        match self.slot(place).is(ObjectState::STORED) {
            false => Choice::Set(place),
            true if gets_are_ahead && self.sets_left > bound => Choice::Replace(place),
            true => Choice::Get(place),
        }
    }

    /// The op that writes what is in this place; where that is being written, what is in the next one.
    fn set(&mut self, place: u32, since_ns: u64) -> Op {
        let mut place = place;
        while self.slot(place).is(ObjectState::WRITING) {
            place = (place + 1) % self.distribution.objects;
        }
        let slot = self.slot(place);
        self.slots[place as usize] = slot.with(ObjectState::WRITING);
        self.writing += 1;
        let ttl_s =
            if self.distribution.expire == 0.0 || self.distribution.expires(place) { self.ttl_s } else { 0 };
        self.taken_ms = milliseconds(since_ns);
        let id = popularity::ObjectWindow::id(place, slot.number());
        Op { value: ValueRef::Version(slot.next_version()), ttl_s, ..Op::of(OpKind::Set, KeyRef::Id(id)) }
    }

    fn replace(&mut self, place: u32) {
        self.slots[place as usize] = ObjectState::new(self.next_number % self.numbers);
        self.next_number += self.clients;
    }

    /// Counts a get of this place. Yields the key, and what is to be checked of the reply.
    fn count_get(&mut self, place: u32) -> CheckedKey {
        self.get_count += 1;
        self.gets_left = self.gets_left.saturating_sub(1);
        let slot = self.slot(place);
        let id = popularity::ObjectWindow::id(place, slot.number());
        let check = self.check(place, slot);
        let is_verified = matches!(check, Some(Check::Value { .. }));
        let is_chosen = (self.verified as f64) < self.get_count as f64 * self.verify;
        if is_verified && !is_chosen {
            return CheckedKey { id, check: None };
        }
        self.verified += u64::from(is_verified);
        CheckedKey { id, check }
    }

    /// What can be checked of an object that is there.
    fn check(&self, place: u32, slot: ObjectState) -> Option<Check> {
        if slot.is(ObjectState::DOUBTFUL) {
            None
        } else if self.distribution.expires(place) {
            Some(Check::Life { stored_ms: self.stored_ms[self.distribution.expiring_below(place) as usize] })
        } else {
            Some(Check::Value { version: slot.version() })
        }
    }

    /// The next op, with at most `keys_max` keys.
    pub(crate) fn next_of(&mut self, since_ns: u64, keys_max: u64) -> Op {
        self.under_way += 1;
        loop {
            if let Some(multigets) = &mut self.multigets
                && !multigets.next.is_empty()
                && multigets.next.len() as u64 >= keys_max.min(multigets.keys as u64)
            {
                return multigets.send();
            }
            match self.choose() {
                Choice::Set(place) => return self.set(place, since_ns),
                Choice::Replace(place) => {
                    // What is being written stays, until that has ended.
                    if !self.slot(place).is(ObjectState::WRITING) {
                        self.replace(place);
                    }
                    return self.set(place, since_ns);
                }
                Choice::Get(place) => {
                    let asked = self.count_get(place);
                    let Some(multigets) = &mut self.multigets else {
                        let is_checked = asked.check.is_some();
                        let expectation = if is_checked { Expectation::Present } else { Expectation::Any };
                        return Op { expectation, ..Op::of(OpKind::Get, KeyRef::Id(asked.id)) };
                    };
                    multigets.next.push(asked);
                }
            }
        }
    }

    /// The keys of a multi-get in flight.
    pub(crate) fn ids(&self, place: u64) -> &[u64] {
        self.multigets.as_ref().map_or(&[], |multigets| &multigets.ids[multigets.span(place)])
    }

    /// What is to be checked of the reply for this key to a get that was sent with an expectation; of a key that a multi-get asks for
    /// several times, one after the other.
    pub(crate) fn take_check(&mut self, key: KeyRef, id: u64) -> Option<Check> {
        if let (KeyRef::Drawn(place), Some(multigets)) = (key, &mut self.multigets) {
            return multigets.take_check(place, id);
        }
        let place = popularity::ObjectWindow::place_of(id);
        let slot = self.slot(place);
        let is_there =
            slot.number() == popularity::ObjectWindow::number_of(id) && slot.is(ObjectState::STORED);
        self.check(place, slot).filter(|_| is_there)
    }

    /// A write of this object has ended.
    fn record_set_outcome(&mut self, id: u64, is_stored: bool, is_refused: bool) {
        let place = popularity::ObjectWindow::place_of(id);
        let slot = self.slot(place);
        if slot.number() != popularity::ObjectWindow::number_of(id) || !slot.is(ObjectState::WRITING) {
            return;
        }
        self.writing -= 1;
        let is_holding = self.holding > 0;
        self.holding -= u64::from(is_holding);
        let settled = ObjectState(slot.0 & !ObjectState::WRITING);
        if !is_stored {
            // It is as if it had never been chosen.
            self.overwritten = self.overwritten.saturating_sub(u64::from(slot.is(ObjectState::STORED)));
            let doubt = if is_refused || !slot.is(ObjectState::STORED) { 0 } else { ObjectState::DOUBTFUL };
            self.slots[place as usize] = settled.with(doubt);
            return;
        }
        let version = slot.next_version();
        self.slots[place as usize] = settled.stored(version);
        if self.distribution.expires(place) {
            self.stored_ms[self.distribution.expiring_below(place) as usize] = self.taken_ms;
        }
        self.cursor += u64::from(!is_holding);
        self.set_count += 1;
        self.sets_left = self.sets_left.saturating_sub(1);
        // A multi-get that has yet to be sent will find the value that is there now.
        let check = self.check(place, self.slot(place));
        let waiting = self.multigets.iter_mut().flat_map(|multigets| &mut multigets.next);
        for asked in waiting.filter(|asked| asked.id == id && asked.check.is_some()) {
            asked.check = check;
        }
    }

    /// Not while every object is being written, every place of a multi-get is taken, or a client has as much in flight as it may.
    pub(crate) fn has_next(&self) -> bool {
        self.under_way < self.under_way_max
            && self.writing < u64::from(self.distribution.objects)
            && self.multigets.as_ref().is_none_or(|multigets| !multigets.free.is_empty())
    }

    /// An op with this key has ended.
    pub(crate) fn record_outcome(&mut self, key: KeyRef, outcome: Outcome) {
        self.under_way = self.under_way.saturating_sub(1);
        match key {
            // That of a get says nothing of what is there.
            KeyRef::Id(_)
                if matches!(
                    outcome.class,
                    OutcomeClass::Hit | OutcomeClass::Miss | OutcomeClass::Mismatch
                ) => {}
            KeyRef::Id(id) => {
                let is_refused = matches!(outcome.class, OutcomeClass::Rejected | OutcomeClass::Error);
                self.record_set_outcome(id, outcome.class == OutcomeClass::Done, is_refused);
            }
            KeyRef::Drawn(place) => {
                if let Some(multigets) = &mut self.multigets {
                    multigets.free.push(place as u32);
                }
            }
            KeyRef::Offset(_) => unreachable!("no key of a window lies in a trace"),
        }
    }

    pub(crate) fn ttl_s(&self) -> u32 {
        self.ttl_s
    }
}

/// Since the start, which lies 49 days back at most.
fn milliseconds(since_ns: u64) -> u32 {
    (since_ns / 1_000_000) as u32
}

#[cfg(test)]
mod tests;
