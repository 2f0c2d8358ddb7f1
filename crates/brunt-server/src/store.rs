//! The store: keys to items, bounded in bytes.
//!
//! Not a slab allocator: key and value are boxed slices, charged with their lengths and [`ITEM_OVERHEAD_BYTES`]. When the bound is reached the oldest items go, with a second chance for those read since the
//! hand came by (the CLOCK approximation of LRU: a read costs one flag instead of moving links). An item that takes the
//! place of a deleted one also takes its turn. Expiry is lazy.
//!
//! Invariant: `bytes` is the sum of the charges of all live items and never exceeds the limit.

use indexmap::IndexMap;
use rapidhash::fast::GlobalState;

/// What an item costs besides its key and value: its place in the table (64 bytes, checked in a test) and its share of the index, whose
/// places take 9 bytes and are between 7/16 and 7/8 full: 15 bytes in the mean.
pub const ITEM_OVERHEAD_BYTES: u64 = 80;

/// The expiry of an item that does not expire.
pub const NEVER_NS: u64 = u64::MAX;

/// The item would not fit even into an empty store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// An item as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The value.
    pub value: &'a [u8],
    /// Client flags.
    pub flags: u32,
    /// The cas unique: the number of the write that made this item, from 1.
    pub unique: u64,
    /// The item is gone at this time and later.
    pub expires_ns: u64,
    /// Its value is the fields of a hash, and not a string.
    pub is_hash: bool,
}

/// To which end of a value a piece is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// prepend
    Front,
    /// append
    Back,
}

/// What is held of a key.
#[derive(Debug)]
struct Slot {
    value: Box<[u8]>,
    is_hash: bool,
    /// Read since the hand came by.
    referenced: bool,
    flags: u32,
    unique: u64,
    /// The item is gone at this time and later.
    expires_ns: u64,
}

impl Slot {
    fn item(&self) -> Item<'_> {
        let &Self { is_hash, flags, unique, expires_ns, .. } = self;
        Item { value: &self.value, flags, unique, expires_ns, is_hash }
    }
}

/// The store. Times are nanoseconds of any clock that does not go back.
#[derive(Debug, Default)]
pub struct Store {
    /// It keeps the hashes: a table that grows reads no key, which would take long, in a server with known timing.
    slots: IndexMap<Box<[u8]>, Slot, GlobalState>,
    /// Bytes charged.
    pub bytes: u64,
    /// The bound on `bytes`.
    pub bytes_max: u64,
    hand: usize,
    /// The unique of the last write.
    pub unique_last: u64,
    /// Items removed to make room, before their time.
    pub evictions: u64,
    /// Items removed because their time was over: when a request read them, or their room was needed.
    pub expirations: u64,
    /// Items ever stored.
    pub items_total: u64,
}

impl Store {
    /// An empty store for at most `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Items held, those among them that have expired unseen included.
    pub fn items(&self) -> usize {
        self.slots.len()
    }

    /// Reads an item.
    pub fn get(&mut self, key: &[u8], now_ns: u64) -> Option<Item<'_>> {
        let index = self.find_live(key, now_ns)?;
        self.slots[index].referenced = true;
        Some(self.slots[index].item())
    }

    /// Reads an item without a trace: its place in the eviction order stays.
    pub fn peek(&mut self, key: &[u8], now_ns: u64) -> Option<Item<'_>> {
        let index = self.find_live(key, now_ns)?;
        Some(self.slots[index].item())
    }

    /// Says of the item that was written last that it is a hash.
    pub fn mark_as_hash(&mut self, key: &[u8]) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.is_hash = true;
        }
    }

    /// Writes an item, whatever was there. On failure the key is gone.
    pub fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expires_ns: u64,
        now_ns: u64,
    ) -> Result<(), OutOfMemory> {
        if let Some(index) = self.slots.get_index_of(key) {
            if self.slots[index].value.len() == value.len() {
                self.items_total += 1;
                self.overwrite(index, value, flags, expires_ns);
                self.slots[index].is_hash = false;
                return Ok(());
            }
            self.remove_at(index);
        }
        self.insert(key, [value, &[]], flags, expires_ns, now_ns)
    }

    /// Adds a piece to the value of a live item, which keeps its flags and its expiry. `Ok(false)`: no such item. On
    /// failure the item is as it was.
    pub fn extend(&mut self, key: &[u8], piece: &[u8], end: End, now_ns: u64) -> Result<bool, OutOfMemory> {
        let Some(index) = self.find_live(key, now_ns) else { return Ok(false) };
        let value_bytes = self.slots[index].value.len() + piece.len();
        if (key.len() + value_bytes) as u64 + ITEM_OVERHEAD_BYTES > self.bytes_max {
            return Err(OutOfMemory);
        }
        let Slot { value, flags, expires_ns, .. } = self.remove_at(index);
        let pieces = if end == End::Back { [&value, piece] } else { [piece, &value] };
        self.insert(key, pieces, flags, expires_ns, now_ns)?;
        Ok(true)
    }

    /// Writes a new value into a live item, which keeps its flags and expiry (if the length stays, its marks too) and gets a
    /// new unique.
    pub fn rewrite(&mut self, key: &[u8], value: &[u8], now_ns: u64) {
        let index = self.find_live(key, now_ns).expect("the caller has just read this item");
        let slot = &mut self.slots[index];
        slot.referenced = true;
        let (flags, expires_ns) = (slot.flags, slot.expires_ns);
        if slot.value.len() == value.len() {
            self.overwrite(index, value, flags, expires_ns);
        } else {
            self.remove_at(index);
            // Out of memory only if the whole store is smaller than this one item; then the item is gone.
            let _ = self.insert(key, [value, &[]], flags, expires_ns, now_ns);
        }
    }

    /// Gives a live item a new expiry. False: no such item.
    pub fn touch(&mut self, key: &[u8], expires_ns: u64, now_ns: u64) -> bool {
        let index = self.find_live(key, now_ns);
        if let Some(index) = index {
            let slot = &mut self.slots[index];
            (slot.expires_ns, slot.referenced) = (expires_ns, true);
        }
        index.is_some()
    }

    /// Removes a live item. False: no such item.
    pub fn remove(&mut self, key: &[u8], now_ns: u64) -> bool {
        self.find_live(key, now_ns).map(|index| self.remove_at(index)).is_some()
    }

    /// Removes everything; uniques and counts go on.
    pub fn clear(&mut self) {
        let emptied = Self::new(self.bytes_max);
        *self = Self {
            unique_last: self.unique_last,
            evictions: self.evictions,
            expirations: self.expirations,
            items_total: self.items_total,
            ..emptied
        };
    }

    fn overwrite(&mut self, index: usize, value: &[u8], flags: u32, expires_ns: u64) {
        self.unique_last += 1;
        let slot = &mut self.slots[index];
        slot.value.copy_from_slice(value);
        (slot.flags, slot.expires_ns, slot.unique) = (flags, expires_ns, self.unique_last);
    }

    fn insert(
        &mut self,
        key: &[u8],
        value: [&[u8]; 2],
        flags: u32,
        expires_ns: u64,
        now_ns: u64,
    ) -> Result<(), OutOfMemory> {
        let value = value.concat().into_boxed_slice();
        let charge = charge(key, &value);
        if charge > self.bytes_max {
            return Err(OutOfMemory);
        }
        while self.bytes + charge > self.bytes_max {
            self.evict_one(now_ns);
        }
        self.unique_last += 1;
        self.items_total += 1;
        self.bytes += charge;
        let unique = self.unique_last;
        let slot = Slot { value, is_hash: false, referenced: false, flags, unique, expires_ns };
        self.slots.insert(key.into(), slot);
        // The hand stands at the newest, and comes to the oldest next.
        let newest = self.slots.len() - 1;
        self.hand = self.hand.min(newest);
        self.slots.swap_indices(self.hand, newest);
        Ok(())
    }

    /// Moves the hand to the next item that has expired or was not read since the hand's last round, and removes it.
    /// Two rounds always find one, because the first clears every flag.
    fn evict_one(&mut self, now_ns: u64) {
        assert!(self.items() > 0, "bytes are charged but nothing is held");
        loop {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let slot = &mut self.slots[self.hand];
            let expired = slot.expires_ns <= now_ns;
            if expired || !slot.referenced {
                self.evictions += u64::from(!expired);
                self.expirations += u64::from(expired);
                self.remove_at(self.hand);
                return;
            }
            slot.referenced = false;
        }
    }

    /// Removes an item; the last one takes its place.
    fn remove_at(&mut self, index: usize) -> Slot {
        let (key, slot) = self.slots.swap_remove_index(index).expect("the item has just been found");
        self.bytes -= charge(&key, &slot.value);
        slot
    }

    /// The place of a key that has not expired; one that has is removed.
    fn find_live(&mut self, key: &[u8], now_ns: u64) -> Option<usize> {
        let index = self.slots.get_index_of(key)?;
        if self.slots[index].expires_ns <= now_ns {
            self.remove_at(index);
            self.expirations += 1;
            return None;
        }
        Some(index)
    }
}

/// What an item is charged with.
fn charge(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + ITEM_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn value_of(store: &mut Store, key: &[u8], now_ns: u64) -> Option<Vec<u8>> {
        store.get(key, now_ns).map(|item| item.value.to_vec())
    }

    #[test]
    fn the_bound_holds_and_evictions_are_counted() {
        // 4-byte keys and 16-byte values: 100 bytes an item, ten items in all.
        let mut store = Store::new(1000);
        for number in 0..25 {
            store.set(format!("{number:04}").as_bytes(), &[b'x'; 16], 0, NEVER_NS, 0).unwrap();
            assert!(store.bytes <= store.bytes_max);
        }
        assert_eq!((store.items(), store.bytes, store.evictions, store.items_total), (10, 1000, 15, 25));
        let alive: Vec<_> =
            (0..25).filter(|n| store.get(format!("{n:04}").as_bytes(), 0).is_some()).collect();
        assert_eq!(alive, Vec::from_iter(15..25), "the oldest go");
        // Everything is referenced now; one more item must still find room.
        store.set(b"last", &[b'x'; 16], 0, NEVER_NS, 0).unwrap();
        assert_eq!((store.items(), store.evictions), (10, 16));
    }

    #[test]
    fn read_items_outlive_unread_ones() {
        let mut store = Store::new(1000);
        store.set(b"kept", &[b'x'; 16], 0, NEVER_NS, 0).unwrap();
        for number in 0..1000 {
            store.get(b"kept", 0).unwrap();
            store.set(format!("{number:04}").as_bytes(), &[b'x'; 16], 0, NEVER_NS, 0).unwrap();
        }
        assert!(store.get(b"kept", 0).is_some());
    }

    #[test]
    fn expired_items_make_room_without_being_evictions() {
        let mut store = Store::new(1000);
        for number in 0..10 {
            store.set(format!("{number:04}").as_bytes(), &[b'x'; 16], 0, 50, 0).unwrap();
        }
        assert!(store.get(b"0003", 49).is_some());
        for number in 10..20 {
            store.set(format!("{number:04}").as_bytes(), &[b'x'; 16], 0, NEVER_NS, 60).unwrap();
        }
        assert_eq!((store.items(), store.evictions), (10, 0));
        assert!(store.get(b"0003", 60).is_none());
    }

    #[test]
    fn too_large_for_the_whole_store() {
        let mut store = Store::new(1000);
        store.set(b"a", b"old", 0, NEVER_NS, 0).unwrap();
        assert_eq!(store.set(b"a", &[0; 920], 0, NEVER_NS, 0), Err(OutOfMemory));
        assert_eq!((value_of(&mut store, b"a", 0), store.bytes, store.items()), (None, 0, 0));
        store.set(b"a", &[0; 919], 0, NEVER_NS, 0).unwrap();
        assert_eq!(store.bytes, 1000);
    }

    #[test]
    fn slot_size_matches_the_charged_overhead() {
        // With its key and the hash of that.
        let place = size_of::<(Box<[u8]>, u64, Slot)>() as u64;
        assert!(place + 16 <= ITEM_OVERHEAD_BYTES, "{place}");
    }

    proptest! {
        /// Against a plain map: sets, removals and extensions of few keys, so that slots are used again.
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0u8..4, 0u16..3000, 0usize..5), 1..3000)) {
            let (mut store, mut map) = (Store::new(u64::MAX), HashMap::<Vec<u8>, Vec<u8>>::new());
            for (what, key, len) in steps {
                let (key, value) = (key.to_string().into_bytes(), vec![b'v'; len]);
                match what {
                    0 | 1 => {
                        store.set(&key, &value, 0, NEVER_NS, 0).unwrap();
                        map.insert(key, value);
                    }
                    2 => prop_assert_eq!(store.remove(&key, 0), map.remove(&key).is_some()),
                    _ => {
                        let known = map.get_mut(&key).map(|old| old.extend_from_slice(&value)).is_some();
                        prop_assert_eq!(store.extend(&key, &value, End::Back, 0), Ok(known));
                    }
                }
            }
            prop_assert_eq!(store.items(), map.len());
            let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
            prop_assert_eq!(store.bytes, bytes as u64 + map.len() as u64 * ITEM_OVERHEAD_BYTES);
            for (key, value) in map {
                prop_assert_eq!(value_of(&mut store, &key, 0), Some(value));
            }
        }
    }
}
