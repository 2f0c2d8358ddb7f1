//! Traces as blocks of records, and the position of a session in them.
//!
//! The reader of the file fills blocks and hands them over, so that nothing here waits or allocates after the start. Invariant: records are taken in
//! the order in which they lie in the blocks, and each lies in a place of its own from then until all ops that came of it have
//! ended, because a key that is sent again, or compared with a reply, is read once more.

use brunt_plan::mix::Mix;
use brunt_plan::op::OpKind;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};
use std::ops::Range;

/// The highest bit of the number that the values of a trace bear: it comes from the key's text, where those of a data set count its
/// keys, and no data set has so many. So a value names which of the two has stored it.
pub const NAMED_BY_TEXT: u64 = 1 << 63;

/// A request of a trace as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What is asked.
    pub kind: OpKind,
    /// Of which key, the prefix not included.
    pub key: &'a [u8],
    /// How long the value is that it stores, or that is stored where it misses, in bytes; `None` where nothing says it.
    pub value_len: Option<u32>,
    /// The time to live of that value, as it is sent; 0 is none.
    pub ttl_s: u32,
    /// When it is due, from the start of the schedule; 0 where the session says it.
    pub due_ns: u64,
}

impl<'a> Record<'a> {
    /// One of which nothing else is known.
    pub const fn of(kind: OpKind, key: &'a [u8], value_len: u32) -> Self {
        Self { kind, key, value_len: Some(value_len), ttl_s: 0, due_ns: 0 }
    }
}

/// The kind that is sent for one that a mix may lack: another retrieval for gets, another way to add bytes for prepend, and
/// a plain store for everything else.
pub fn kind_in_mix(kind: OpKind, mix: &Mix) -> OpKind {
    match kind {
        kind if mix.contains(kind) => kind,
        OpKind::Gets if mix.contains(OpKind::Get) => OpKind::Get,
        OpKind::Prepend if mix.contains(OpKind::Append) => OpKind::Append,
        _ => OpKind::Set,
    }
}

/// A run of records, large enough that the cost of handing it over does not matter.
#[derive(Clone, Debug, Default)]
pub struct Block {
    entries: Vec<Entry>,
    keys: Vec<u8>,
    /// No block follows it.
    pub is_last: bool,
}

/// A record, whose key is a range of the block's bytes.
#[derive(Clone, Debug)]
struct Entry {
    kind: OpKind,
    key: Range<u32>,
    value_len: Option<u32>,
    ttl_s: u32,
    due_ns: u64,
}

impl Block {
    /// Bytes of keys for each record that a block has room for.
    const KEY_BYTES: usize = 64;

    /// An empty one with all of its memory: that of so many records.
    pub fn new(records: usize) -> Self {
        let key_bytes = (records * Self::KEY_BYTES).max(KEY_LEN_MAX);
        Self { entries: Vec::with_capacity(records), keys: Vec::with_capacity(key_bytes), is_last: false }
    }

    /// Forgets what is in it.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
        self.is_last = false;
    }

    /// How many records it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Has it the memory of a new one? The one that a session begins with has not.
    pub fn has_memory(&self) -> bool {
        self.entries.capacity() > 0
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a record whose key is `prefix` and its own, together at most [`KEY_LEN_MAX`] bytes. False where there is no room.
    pub fn push(&mut self, prefix: &[u8], record: &Record<'_>) -> bool {
        let start = self.keys.len();
        let end = start + prefix.len() + record.key.len();
        if self.entries.len() == self.entries.capacity() || end > self.keys.capacity() {
            return false;
        }
        self.keys.extend_from_slice(prefix);
        self.keys.extend_from_slice(record.key);
        let Record { kind, value_len, ttl_s, due_ns, .. } = *record;
        self.entries.push(Entry { kind, key: start as u32..end as u32, value_len, ttl_s, due_ns });
        true
    }
}

/// The longest key with its prefix.
pub const KEY_LEN_MAX: usize = brunt_plan::plan::KEY_BYTES_MAX as usize;

/// A record of which ops are in flight.
#[derive(Clone, Debug)]
struct HeldRecord {
    key: [u8; KEY_LEN_MAX],
    key_len: u8,
    /// Ops that have not ended.
    holders: u8,
    value_len: Option<u32>,
    ttl_s: u32,
    /// What the values of its key are functions of.
    id: u64,
}

/// A record that was taken: what its op asks, and the place where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenRecord {
    /// What is asked.
    pub kind: OpKind,
    /// Where it lies.
    pub place: u32,
}

/// A session's way through a trace.
#[derive(Clone, Debug)]
pub struct TraceCursor {
    block: Block,
    /// The next record of the block.
    next: usize,
    held: Vec<HeldRecord>,
    free: Vec<u32>,
    secrets: RapidSecrets,
}

impl TraceCursor {
    /// A cursor without a block, with room for `places` records in flight.
    pub fn new(places: usize) -> Self {
        Self {
            block: Block::default(),
            next: 0,
            held: Vec::with_capacity(places),
            free: Vec::with_capacity(places),
            // The same for everybody: who has stored a value does not matter to who reads it.
            secrets: RapidSecrets::seed(0),
        }
    }

    /// Is there a record at hand?
    #[inline]
    pub fn has_next(&self) -> bool {
        self.next < self.block.len()
    }

    /// When the record at hand is due, from the start of the schedule; `u64::MAX` without one.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        self.block.entries.get(self.next).map_or(u64::MAX, |entry| entry.due_ns)
    }

    /// Has the last record of all been taken?
    pub fn is_over(&self) -> bool {
        !self.has_next() && self.block.is_last
    }

    /// Does it need a block to go on?
    #[inline]
    pub fn needs_block(&self) -> bool {
        !self.has_next() && !self.block.is_last
    }

    /// Goes on with this block. Yields the one before, whose records were all taken.
    pub fn supply_block(&mut self, block: Block) -> Block {
        debug_assert!(self.needs_block(), "a block that was not asked for");
        self.next = 0;
        std::mem::replace(&mut self.block, block)
    }

    /// Takes the next record, which there must be. Its place is held for one op.
    pub fn take(&mut self) -> TakenRecord {
        let entry = &self.block.entries[self.next];
        self.next += 1;
        let key = &self.block.keys[entry.key.start as usize..entry.key.end as usize];
        let mut held = HeldRecord {
            key: [0; KEY_LEN_MAX],
            key_len: key.len() as u8,
            holders: 1,
            value_len: entry.value_len,
            ttl_s: entry.ttl_s,
            id: rapidhash_v3_nano_inline::<true, false>(key, &self.secrets) | NAMED_BY_TEXT,
        };
        held.key[..key.len()].copy_from_slice(key);
        let place = match self.free.pop() {
            Some(place) => {
                self.held[place as usize] = held;
                place
            }
            None => {
                self.held.push(held);
                self.held.len() as u32 - 1
            }
        };
        TakenRecord { kind: entry.kind, place }
    }

    /// The key of a record in flight.
    #[inline]
    pub fn key(&self, place: u32) -> &[u8] {
        let held = &self.held[place as usize];
        &held.key[..usize::from(held.key_len)]
    }

    /// What the values of its key are functions of, and the length of the one that it stores.
    #[inline]
    pub fn value(&self, place: u32) -> (u64, u32) {
        let held = &self.held[place as usize];
        (held.id, held.value_len.unwrap_or(0))
    }

    /// Is it known how long a value is to be stored where it misses?
    pub fn has_len(&self, place: u32) -> bool {
        self.held[place as usize].value_len.is_some()
    }

    /// The time to live of what it stores, in seconds.
    #[inline]
    pub fn ttl_s(&self, place: u32) -> u32 {
        self.held[place as usize].ttl_s
    }

    /// One more op has come of a record in flight.
    pub fn hold(&mut self, place: u32) {
        self.held[place as usize].holders += 1;
    }

    /// An op that came of a record has ended.
    #[inline]
    pub fn release_record(&mut self, place: u32) {
        let held = &mut self.held[place as usize];
        held.holders -= 1;
        if held.holders == 0 {
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: OpKind, key: &[u8]) -> Record<'_> {
        Record::of(kind, key, key.len() as u32 * 10)
    }

    #[test]
    fn records_come_in_order_and_places_are_used_again() {
        let mut cursor = TraceCursor::new(4);
        assert!(cursor.needs_block() && !cursor.has_next());
        let mut first = Block::new(8);
        assert!(
            first.push(b"p:", &record(OpKind::Get, b"a")) && first.push(b"p:", &record(OpKind::Set, b"bb"))
        );
        assert_eq!(first.len(), 2);
        cursor.supply_block(first);
        let (one, two) = (cursor.take(), cursor.take());
        assert_eq!(
            (one, two),
            (TakenRecord { kind: OpKind::Get, place: 0 }, TakenRecord { kind: OpKind::Set, place: 1 })
        );
        assert!(cursor.needs_block());
        assert_eq!([cursor.key(0), cursor.key(1)], [&b"p:a"[..], b"p:bb"]);
        assert_eq!((cursor.value(0).1, cursor.value(1).1), (10, 20));
        // A store follows the get, so that its place is free when both have ended.
        cursor.hold(0);
        cursor.release_record(0);
        let mut last = Block { is_last: true, ..Block::new(8) };
        for key in [b"p:a" as &[u8], b"d", b"e"] {
            assert!(last.push(b"", &record(OpKind::Get, key)));
        }
        let spent = cursor.supply_block(last);
        assert_eq!(spent.len(), 2);
        assert_eq!(cursor.take().place, 2);
        assert_eq!(cursor.value(2).0, cursor.value(0).0, "values belong to keys");
        assert_ne!(cursor.value(2).0, cursor.value(1).0);
        cursor.release_record(0);
        assert_eq!(cursor.take().place, 0);
        cursor.take();
        assert!(cursor.is_over() && !cursor.needs_block());
    }

    #[test]
    fn a_block_has_bounds() {
        let mut block = Block::new(1024);
        let longest = [b'k'; KEY_LEN_MAX];
        let pushed = (0..2000).take_while(|_| block.push(b"", &record(OpKind::Get, &longest))).count();
        assert_eq!(pushed, 1024 * Block::KEY_BYTES / KEY_LEN_MAX);
        block.clear();
        let pushed = (0..2000).take_while(|_| block.push(b"", &record(OpKind::Get, b"k"))).count();
        assert_eq!((pushed, block.is_empty()), (1024, false));
    }

    #[test]
    fn missing_kinds_are_substituted() {
        let table = [
            ("get,gets,set", OpKind::Gets, OpKind::Gets),
            ("get,set", OpKind::Gets, OpKind::Get),
            ("get,set,append", OpKind::Prepend, OpKind::Append),
            ("get,set", OpKind::Prepend, OpKind::Set),
            ("get,set,append", OpKind::Cas, OpKind::Set),
            ("get,set", OpKind::Incr, OpKind::Set),
            ("set", OpKind::Gets, OpKind::Set),
        ];
        for (mix, kind, expected) in table {
            assert_eq!(kind_in_mix(kind, &mix.parse().unwrap()), expected, "{mix} {kind}");
        }
    }
}
