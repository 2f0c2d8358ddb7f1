//! Commands applied to the store, in every protocol alike, with their counters.
//!
//! Values and times in, outcomes out: nothing here knows how a protocol asks or answers, a connection, a queue or a fault.
//! Invariant: an outcome and what is counted of it are memcached's; where Redis means something else by a command, there
//! is an option for it here, and the counters say it in memcached's words.

use crate::grammar::Verb;
use crate::options::{CoreOptions, Epoch};
use crate::stats::StatsSnapshot;
pub use crate::stats::{Counters, Process};
use crate::store::{End, Item, NEVER_NS, Store};
use crate::text::unsigned;
use std::num::NonZeroU64;

/// Expiry times above this many seconds (30 days) are Unix time; memcached's protocol says so.
const EXPTIME_RELATIVE_MAX_S: i64 = 60 * 60 * 24 * 30;

/// Are the values of a reply as stored?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueContent {
    /// Yes.
    AsStored,
    /// Every byte of every value differs; lengths stay.
    Wrong,
}

/// On what condition a value is stored, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Set,
    /// Only if nothing is there.
    Add,
    /// Only if something is there.
    Replace,
    /// To the back of what is there.
    Append,
    /// To the front of what is there.
    Prepend,
}

/// A value to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) mode: Mode,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Client flags; what is appended or prepended has none of its own.
    pub(crate) flags: u32,
    /// As the store has it; what is appended or prepended has none of its own.
    pub(crate) expires_ns: u64,
    /// Only over an item with this unique. Add does not look at it.
    pub(crate) compare: Option<u64>,
}

impl<'a> Write<'a> {
    /// One without conditions, flags and end.
    pub(crate) const fn of(mode: Mode, key: &'a [u8], value: &'a [u8]) -> Self {
        Self { mode, key, value, flags: 0, expires_ns: NEVER_NS, compare: None }
    }
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Stored {
        unique: u64,
        /// Length of the whole value that is there now.
        value_bytes: usize,
    },
    NotStored,
    Exists,
    NotFound,
    OutOfMemory,
}

/// A change of a stored number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delta<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) amount: u64,
    pub(crate) is_increment: bool,
    /// Only of an item with this unique.
    pub(crate) compare: Option<u64>,
    /// A new expiry, if it is to have one.
    pub(crate) expires_ns: Option<u64>,
    /// The number and the expiry that a missing item is made with.
    pub(crate) creates: Option<(u64, u64)>,
}

/// The result of a change of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Number { number: u64, unique: u64 },
    NotFound,
    Exists,
    NotANumber,
    OutOfMemory,
}

/// Why a number did not change as Redis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeError {
    /// What is stored is no integer of 64 bits with a sign.
    NotAnInteger,
    /// The result would be none.
    Overflow,
    /// What is stored is a hash.
    WrongType,
    OutOfMemory,
}

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    Gone,
    NotFound,
    Exists,
}

/// The store with its commands.
#[derive(Debug)]
pub struct Cache {
    /// Counters; the socket loop counts connections and bytes.
    pub counters: Counters,
    pub(crate) store: Store,
    value_bytes_max: u64,
    /// Retrievals of keys that end in a multiple of this number find nothing, whatever was stored.
    miss_ids: Option<NonZeroU64>,
    epoch: Epoch,
    /// The source of process data, which the socket loop has; called for statistics only.
    pub(crate) process: fn() -> Process,
    /// A flush_all with a delay that is still to come.
    flush_at_ns: Option<u64>,
}

impl Cache {
    /// An empty cache.
    pub fn new(options: &CoreOptions) -> Self {
        Self {
            counters: Counters::default(),
            store: Store::new(options.memory_bytes),
            value_bytes_max: options.value_bytes_max,
            miss_ids: options.miss_ids,
            epoch: options.epoch,
            process: Process::default,
            flush_at_ns: None,
        }
    }

    /// Forgets all items, and a flush_all that is still to come, as a server that is started anew. What was counted
    /// stays: an experiment with an outage compares it with its own counts.
    pub fn forget(&mut self) {
        self.store.clear();
        self.flush_at_ns = None;
    }

    /// To be called before every command: what was to happen by now, happens.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        if self.flush_at_ns.is_some_and(|flush_at_ns| flush_at_ns <= now_ns) {
            self.flush_at_ns = None;
            self.store.clear();
        }
    }

    /// Counts a data command of `keys` keys that was refused by script, as memcached counts commands that fail: asked,
    /// but neither hit nor miss. So what a client sent and what the counters say agree to the last request.
    pub(crate) fn count_refused(&mut self, verb: Verb, keys: u64) {
        match verb {
            Verb::Get | Verb::Gets => self.counters.cmd_get += keys,
            Verb::Touch => self.counters.cmd_touch += 1,
            Verb::Incr | Verb::Decr | Verb::Delete => {}
            _ => self.counters.cmd_set += 1,
        }
    }

    /// Retrieves a key.
    pub(crate) fn find(&mut self, key: &[u8], now_ns: u64) -> Option<Item<'_>> {
        self.counters.cmd_get += 1;
        let item = if self.is_hidden(key) { None } else { self.store.get(key, now_ns) };
        let outcome =
            if item.is_some() { &mut self.counters.get_hits } else { &mut self.counters.get_misses };
        *outcome += 1;
        item
    }

    /// Is this a key that retrievals never find?
    fn is_hidden(&self, key: &[u8]) -> bool {
        self.miss_ids.is_some_and(|of| trailing_number(key).is_some_and(|id| id.is_multiple_of(of.get())))
    }

    /// Stores a value.
    pub(crate) fn write(&mut self, write: &Write<'_>, now_ns: u64) -> Written {
        self.counters.cmd_set += 1;
        let &Write { mode, key, value, flags, expires_ns, compare } = write;
        // A plain set need not look: what was there does not matter.
        let held = if mode == Mode::Set && compare.is_none() {
            None
        } else {
            self.store.peek(key, now_ns).map(|item| (item.unique, item.value.len()))
        };
        match (mode, held, compare) {
            (Mode::Add, Some(_), _) | (Mode::Replace, None, None) => return Written::NotStored,
            (Mode::Append | Mode::Prepend, None, _) => return Written::NotStored,
            (Mode::Append | Mode::Prepend, Some((unique, _)), Some(compare)) if unique != compare => {
                return Written::Exists;
            }
            (Mode::Append | Mode::Prepend, Some((_, held_bytes)), _) => {
                return self.extend(write, held_bytes, now_ns);
            }
            (Mode::Set | Mode::Replace, None, Some(_)) => {
                self.counters.cas_misses += 1;
                return Written::NotFound;
            }
            (Mode::Set | Mode::Replace, Some((unique, _)), Some(compare)) if unique != compare => {
                self.counters.cas_badval += 1;
                return Written::Exists;
            }
            (Mode::Set | Mode::Replace, _, Some(_)) => self.counters.cas_hits += 1,
            _ => {}
        }
        if self.store.set(key, value, flags, expires_ns, now_ns).is_err() {
            return Written::OutOfMemory;
        }
        Written::Stored { unique: self.store.unique_last, value_bytes: value.len() }
    }

    /// Appends or prepends to an item of this length.
    fn extend(&mut self, write: &Write<'_>, held_bytes: usize, now_ns: u64) -> Written {
        let value_bytes = held_bytes + write.value.len();
        // memcached says that it is not stored also where the sum is too long for it.
        if value_bytes as u64 > self.value_bytes_max {
            return Written::NotStored;
        }
        let end = if write.mode == Mode::Append { End::Back } else { End::Front };
        match self.store.extend(write.key, write.value, end, now_ns) {
            Ok(true) => Written::Stored { unique: self.store.unique_last, value_bytes },
            Ok(false) | Err(_) => Written::NotStored,
        }
    }

    /// Changes a number as memcached counts: without a sign, wrapping upwards and stopping at 0 downwards.
    pub(crate) fn change(&mut self, delta: &Delta<'_>, now_ns: u64) -> Changed {
        let &Delta { key, amount, is_increment, compare, expires_ns, creates } = delta;
        let Some(item) = self.store.peek(key, now_ns) else {
            return self.change_missing(delta, creates, now_ns);
        };
        if compare.is_some_and(|compare| compare != item.unique) {
            return Changed::Exists;
        }
        let old_len = item.value.len();
        let Some(old) = unsigned(item.value).filter(|_| !item.is_hash) else { return Changed::NotANumber };
        let number = if is_increment { old.wrapping_add(amount) } else { old.saturating_sub(amount) };
        self.counters.count_change(is_increment, true);
        // A number that has become shorter keeps its length, with blanks behind it; the protocol says so for decr and
        // memcached does it for both.
        let mut text = number.to_string().into_bytes();
        text.resize(text.len().max(old_len), b' ');
        self.store.rewrite(key, &text, now_ns);
        let unique = self.store.unique_last;
        if let Some(expires_ns) = expires_ns {
            self.store.touch(key, expires_ns, now_ns);
        }
        Changed::Number { number, unique }
    }

    fn change_missing(&mut self, delta: &Delta<'_>, creates: Option<(u64, u64)>, now_ns: u64) -> Changed {
        let Some((number, expires_ns)) = creates else {
            self.counters.count_change(delta.is_increment, false);
            return Changed::NotFound;
        };
        match self.store.set(delta.key, number.to_string().as_bytes(), 0, expires_ns, now_ns) {
            Ok(()) => Changed::Number { number, unique: self.store.unique_last },
            Err(_) => Changed::OutOfMemory,
        }
    }

    /// Changes a number as Redis counts: with a sign, no further than it goes, and from 0 where nothing is. What is not
    /// there is a miss to the counters, though it is there then.
    pub(crate) fn add_signed(
        &mut self,
        key: &[u8],
        amount: i64,
        is_increment: bool,
        now_ns: u64,
    ) -> Result<i64, ChangeError> {
        let held = match self.store.peek(key, now_ns) {
            Some(Item { is_hash: true, .. }) => return Err(ChangeError::WrongType),
            Some(item) => Some(integer(item.value).ok_or(ChangeError::NotAnInteger)?),
            None => None,
        };
        let old = held.unwrap_or(0);
        let new = if is_increment { old.checked_add(amount) } else { old.checked_sub(amount) };
        let new = new.ok_or(ChangeError::Overflow)?;
        self.counters.count_change(is_increment, held.is_some());
        let text = new.to_string();
        if held.is_some() {
            self.store.rewrite(key, text.as_bytes(), now_ns);
        } else {
            self.store
                .set(key, text.as_bytes(), 0, NEVER_NS, now_ns)
                .map_err(|_| ChangeError::OutOfMemory)?;
        }
        Ok(new)
    }

    /// Removes an item; with a condition, only one of this unique (another one is a miss to memcached's counters).
    pub(crate) fn delete(&mut self, key: &[u8], compare: Option<u64>, now_ns: u64) -> Deleted {
        let deleted = match self.store.peek(key, now_ns) {
            None => Deleted::NotFound,
            Some(item) if compare.is_some_and(|compare| compare != item.unique) => Deleted::Exists,
            Some(_) => Deleted::Gone,
        };
        if deleted == Deleted::Gone {
            self.store.remove(key, now_ns);
            self.counters.delete_hits += 1;
        } else {
            self.counters.delete_misses += 1;
        }
        deleted
    }

    /// Gives an item a new expiry. False: there is none.
    pub(crate) fn touch(&mut self, key: &[u8], expires_ns: u64, now_ns: u64) -> bool {
        self.counters.cmd_touch += 1;
        let is_there = self.store.touch(key, expires_ns, now_ns);
        let outcome = if is_there { &mut self.counters.touch_hits } else { &mut self.counters.touch_misses };
        *outcome += 1;
        is_there
    }

    /// Empties the store after `delay_s` seconds, as memcached's flush_all does.
    pub(crate) fn flush(&mut self, delay_s: i64, now_ns: u64) {
        self.counters.cmd_flush += 1;
        let flush_at_ns = if delay_s > 0 { self.expires_ns(delay_s, now_ns) } else { now_ns };
        // memcached tells items from before and after a flush of the same second by a unique of its own.
        if flush_at_ns <= now_ns {
            self.store.unique_last += 1;
        }
        self.flush_at_ns = Some(flush_at_ns);
        self.advance(now_ns);
    }

    /// memcached's expiry as a time of the given clock. memcached counts whole seconds of a coarse clock, so its items
    /// live up to a second less; ours live exactly as long as asked.
    pub(crate) fn expires_ns(&self, exptime_s: i64, now_ns: u64) -> u64 {
        let after = |base_ns: u64, seconds: i64| {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            base_ns.saturating_add(seconds.saturating_mul(1_000_000_000))
        };
        match exptime_s {
            0 => NEVER_NS,
            ..0 => now_ns,
            1..=EXPTIME_RELATIVE_MAX_S => after(now_ns, exptime_s),
            _ => {
                let start_unix_s = i64::try_from(self.epoch.start_unix_s).unwrap_or(i64::MAX);
                after(self.epoch.start_ns, exptime_s.saturating_sub(start_unix_s))
            }
        }
    }

    /// Forgets what was counted, but for the connections.
    pub(crate) fn reset_counters(&mut self) {
        let Counters { curr_connections, total_connections, .. } = self.counters;
        self.counters = Counters { curr_connections, total_connections, ..Counters::default() };
    }

    /// Everything that statistics tell, as it is now.
    pub(crate) fn stats_snapshot(&self, now_ns: u64) -> StatsSnapshot<'_> {
        let uptime_s = now_ns.saturating_sub(self.epoch.start_ns) / 1_000_000_000;
        StatsSnapshot {
            counters: &self.counters,
            store: &self.store,
            process: (self.process)(),
            uptime_s,
            time_s: self.epoch.start_unix_s + uptime_s,
        }
    }
}

/// The number in the digits that a key ends in; `None` where there are none, or too many.
fn trailing_number(key: &[u8]) -> Option<u64> {
    let digits = key.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    unsigned(&key[key.len() - digits..])
}

/// A number as Redis reads one: its shortest text and nothing else.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_shortest = digits[0].is_ascii_digit() && (digits[0] != b'0' || text == b"0");
    is_shortest.then_some(number)
}
