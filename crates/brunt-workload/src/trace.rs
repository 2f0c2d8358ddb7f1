//! Traces as blocks of records, and the position of a session in them.
//!
//! The reader of the file fills blocks and hands them over, so that nothing here waits or allocates after the start. A
//! record may have a time, which is ignored: the schedule says when it is sent. Invariant: records are taken in
//! the order in which they lie in the blocks, and each lies in a place of its own from then until all ops that came of it have
//! ended, because a key that is sent again, or compared with a reply, is read once more.

use brunt_plan::mix::Mix;
use brunt_plan::op::OpKind;
use brunt_plan::plan::{Trace, TraceLayout};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};
use std::ops::Range;

/// The highest bit of the number that the values of a trace bear: it comes from the key's text, where those of a data set count its
/// keys, and no data set has so many. So a value names which of the two has stored it.
pub const NAMED_BY_TEXT: u64 = 1 << 63;

/// What a line of a trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What is asked.
    pub kind: OpKind,
    /// Of which key, the prefix not included.
    pub key: &'a [u8],
    /// How long the value is that it stores, or that is stored where it misses, in bytes.
    pub value_len: u32,
}

/// The kind that is sent for one that a mix may lack: another retrieval for gets, another way to add bytes for prepend, and
/// a plain store for everything else.
pub fn kind_in_mix(kind: OpKind, mix: &Mix) -> OpKind {
    match kind {
        kind if mix.contains(kind) => kind,
        OpKind::Gets => OpKind::Get,
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
    value_len: u32,
}

impl Block {
    /// Records of a block at most…
    pub const RECORDS: usize = 1024;
    /// …and bytes of their keys.
    pub const KEY_BYTES: usize = 64 << 10;

    /// An empty one with all of its memory.
    pub fn new() -> Self {
        Self {
            entries: Vec::with_capacity(Self::RECORDS),
            keys: Vec::with_capacity(Self::KEY_BYTES),
            is_last: false,
        }
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
        self.entries.capacity() >= Self::RECORDS
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a record whose key is `prefix` and its own, together at most [`KEY_LEN_MAX`] bytes. False where there is no room.
    pub fn push(&mut self, prefix: &[u8], record: &Record<'_>) -> bool {
        let start = self.keys.len();
        let end = start + prefix.len() + record.key.len();
        if self.entries.len() == Self::RECORDS || end > Self::KEY_BYTES {
            return false;
        }
        self.keys.extend_from_slice(prefix);
        self.keys.extend_from_slice(record.key);
        let Record { kind, value_len, .. } = *record;
        self.entries.push(Entry { kind, key: start as u32..end as u32, value_len });
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
    value_len: u32,
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
pub struct Replay {
    block: Block,
    /// The next record of the block.
    next: usize,
    held: Vec<HeldRecord>,
    free: Vec<u32>,
    secrets: RapidSecrets,
}

impl Replay {
    /// A replay without a block, with room for `places` records in flight.
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
        (held.id, held.value_len)
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

brunt_plan::named! {
    /// Why a line is no record.
    pub enum LineError {
        /// It has fewer columns than its layout.
        Columns = "fewer columns than the layout has",
        /// A length that is no whole number.
        Length = "a length that is no whole number",
        /// A key of no bytes, or of too many with its prefix, or of others than printable ASCII without spaces.
        Key = "a key that is empty, too long or not printable",
        /// An operation that the layout does not know.
        Operation = "an unknown operation",
    }
}

/// A line that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// What it says.
    pub record: Record<'a>,
    /// Its value is longer than any that is sent: the record has the longest.
    pub is_cut: bool,
}

/// Reads a line without its end: words between commas. Nothing is quoted, and no line is a comment: a head, if there is one, is a line
/// that is no record.
///
/// # Errors
/// It is no record of this layout.
pub fn read_line(line: &[u8], layout: TraceLayout, key_len_max: usize) -> Result<Line<'_>, LineError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut columns = [&line[..0]; 6];
    let mut count = 0;
    // What is behind the last column of the layout (a time to live, say) is ignored.
    for (place, word) in columns.iter_mut().zip(line.split(|byte| *byte == b',')) {
        *place = word.trim_ascii();
        count += 1;
    }
    // The time in the first column is not kept: a schedule says when requests are sent.
    let [_, second, third, fourth, fifth, sixth] = columns;
    let (key, length, needed) = match layout {
        TraceLayout::Twitter => (second, fourth, 6),
        TraceLayout::Reads | TraceLayout::Words | TraceLayout::Numbers => (fourth, fifth, 5),
    };
    if count < needed {
        return Err(LineError::Columns);
    }
    let length = whole(length).ok_or(LineError::Length)?;
    if key.is_empty() || key.len() > key_len_max || !key.iter().all(u8::is_ascii_graphic) {
        return Err(LineError::Key);
    }
    let kind = match (layout, third) {
        (TraceLayout::Reads, _) => OpKind::Get,
        (TraceLayout::Words, b"read") | (TraceLayout::Numbers, b"1") => OpKind::Get,
        (TraceLayout::Words, b"write") | (TraceLayout::Numbers, b"2") => OpKind::Set,
        (TraceLayout::Words | TraceLayout::Numbers, _) => return Err(LineError::Operation),
        (TraceLayout::Twitter, _) => {
            *layout.kinds().iter().find(|kind| kind.name().as_bytes() == sixth).ok_or(LineError::Operation)?
        }
    };
    let longest = u64::from(Trace::VALUE_BYTES_MAX);
    let value_len = length.min(longest) as u32;
    Ok(Line { record: Record { kind, key, value_len }, is_cut: length > longest })
}

fn whole(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: OpKind, key: &[u8]) -> Record<'_> {
        Record { kind, key, value_len: key.len() as u32 * 10 }
    }

    #[test]
    fn records_come_in_order_and_places_are_used_again() {
        let mut replay = Replay::new(4);
        assert!(replay.needs_block() && !replay.has_next());
        let mut first = Block::new();
        assert!(
            first.push(b"p:", &record(OpKind::Get, b"a")) && first.push(b"p:", &record(OpKind::Set, b"bb"))
        );
        assert_eq!(first.len(), 2);
        replay.supply_block(first);
        let (one, two) = (replay.take(), replay.take());
        assert_eq!(
            (one, two),
            (TakenRecord { kind: OpKind::Get, place: 0 }, TakenRecord { kind: OpKind::Set, place: 1 })
        );
        assert!(replay.needs_block());
        assert_eq!([replay.key(0), replay.key(1)], [&b"p:a"[..], b"p:bb"]);
        assert_eq!((replay.value(0).1, replay.value(1).1), (10, 20));
        // A store follows the get, so that its place is free when both have ended.
        replay.hold(0);
        replay.release_record(0);
        let mut last = Block { is_last: true, ..Block::new() };
        for key in [b"p:a" as &[u8], b"d", b"e"] {
            assert!(last.push(b"", &record(OpKind::Get, key)));
        }
        let spent = replay.supply_block(last);
        assert_eq!(spent.len(), 2);
        assert_eq!(replay.take().place, 2);
        assert_eq!(replay.value(2).0, replay.value(0).0, "values belong to keys");
        assert_ne!(replay.value(2).0, replay.value(1).0);
        replay.release_record(0);
        assert_eq!(replay.take().place, 0);
        replay.take();
        assert!(replay.is_over() && !replay.needs_block());
    }

    #[test]
    fn a_block_has_bounds() {
        let mut block = Block::new();
        let longest = [b'k'; KEY_LEN_MAX];
        let pushed = (0..2000).take_while(|_| block.push(b"", &record(OpKind::Get, &longest))).count();
        assert_eq!(pushed, Block::KEY_BYTES / KEY_LEN_MAX);
        block.clear();
        let pushed = (0..2000).take_while(|_| block.push(b"", &record(OpKind::Get, b"k"))).count();
        assert_eq!((pushed, block.is_empty()), (Block::RECORDS, false));
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
        ];
        for (mix, kind, expected) in table {
            assert_eq!(kind_in_mix(kind, &mix.parse().unwrap()), expected, "{mix} {kind}");
        }
    }

    #[test]
    fn lines_of_every_layout() {
        use OpKind::{Cas, Delete, Get, Gets, Set};
        use TraceLayout::{Numbers, Reads, Twitter, Words};
        // (layout, line, kind, key, length, cut)
        let table = [
            (Reads, "0,1,1,key0,10", Get, "key0", 10, false),
            (Reads, "5,app,whatever,k,0\r", Get, "k", 0, false),
            (Reads, "today,1,1,k,3", Get, "k", 3, false),
            (Words, "1,1,read,a,20", Get, "a", 20, false),
            (Words, "1,1,write,a,20", Set, "a", 20, false),
            (Numbers, "1,1,1,a,20", Get, "a", 20, false),
            (Numbers, "1,1,2,a,20,beyond", Set, "a", 20, false),
            (Twitter, "300,q-r:7,5,212,33,get,0", Get, "q-r:7", 212, false),
            (Twitter, "300,q,1,212,33,gets,0", Gets, "q", 212, false),
            (Twitter, "300,q,1,7,33,set,86400", Set, "q", 7, false),
            (Twitter, "300,q,1,7,33,cas", Cas, "q", 7, false),
            (Twitter, "300, q ,1,0,33, delete ,0", Delete, "q", 0, false),
            (Twitter, "300,q,1,1000001,33,set,0", Set, "q", 1_000_000, true),
        ];
        for (layout, text, kind, key, value_len, is_cut) in table {
            let record = Record { kind, key: key.as_bytes(), value_len };
            assert_eq!(read_line(text.as_bytes(), layout, 250), Ok(Line { record, is_cut }), "{text}");
        }
        for kind in Twitter.kinds() {
            let text = format!("1,k,1,5,1,{kind},0");
            assert_eq!(read_line(text.as_bytes(), Twitter, 250).unwrap().record.kind, *kind);
        }
    }

    #[test]
    fn lines_that_are_no_records() {
        use TraceLayout::{Numbers, Reads, Twitter, Words};
        let table = [
            (Reads, "T,App,Req,Key,ValueLen", LineError::Length),
            (Reads, "", LineError::Columns),
            (Reads, "0,1,1,key0", LineError::Columns),
            (Reads, "0,1,1,key0,-5", LineError::Length),
            (Reads, "0,1,1,,5", LineError::Key),
            (Reads, "0,1,1,a b,5", LineError::Key),
            (Reads, "0,1,1,12345678901,5", LineError::Key),
            (Words, "0,1,delete,k,5", LineError::Operation),
            (Words, "0,1,1,k,5", LineError::Operation),
            (Numbers, "0,1,read,k,5", LineError::Operation),
            (Twitter, "1,k,1,5,1", LineError::Columns),
            (Twitter, "1,k,1,5,1,touch", LineError::Operation),
        ];
        for (layout, text, expected) in table {
            assert_eq!(read_line(text.as_bytes(), layout, 10), Err(expected), "{text}");
        }
        assert_eq!(read_line(b"1,k\xff,1,5,1,get", Twitter, 10), Err(LineError::Key));
    }
}
