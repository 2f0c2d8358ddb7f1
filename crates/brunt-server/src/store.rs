//! The store: keys to items, bounded in bytes.
//!
//! Not a slab allocator: an item is one boxed slice with its key in front, charged with its length and
//! [`ITEM_OVERHEAD_BYTES`]. When the bound is reached the oldest items go, with a second chance for those read since the
//! hand came by (the CLOCK approximation of LRU: a read costs one flag instead of moving links). An item that takes the
//! place of a deleted one also takes its turn. Expiry is lazy.
//!
//! Invariant: `bytes` is the sum of the charges of all live items and never exceeds the limit.

use hashbrown::HashTable;
use rapidhash::v3::rapidhash_v3;

/// What an item costs besides its key and value: its slot (64 bytes, checked in a test) and its share of the index, whose
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
    /// When it was read or written before.
    pub accessed_ns: u64,
    /// What was known of it before it was read.
    pub marks: Marks,
}

/// What is known of an item beside its value. A new value has no marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It has been read.
    pub fetched: bool,
    /// Its value is out of date and may be handed out all the same.
    pub stale: bool,
    /// A client was told to renew it.
    pub won: bool,
    /// Its value is the fields of a hash, and not a string.
    pub hash: bool,
}

/// To which end of a value a piece is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// prepend
    Front,
    /// append
    Back,
}

/// A place for an item; empty places have an empty `data` and are listed in `free`.
#[derive(Debug)]
struct Slot {
    /// The key, then the value.
    data: Box<[u8]>,
    key_len: u16,
    live: bool,
    /// Read since the hand came by.
    referenced: bool,
    flags: u32,
    unique: u64,
    /// The item is gone at this time and later.
    expires_ns: u64,
    accessed_ns: u64,
    marks: Marks,
}

impl Slot {
    fn key(&self) -> &[u8] {
        &self.data[..usize::from(self.key_len)]
    }

    fn item(&self) -> Item<'_> {
        let &Self { flags, unique, expires_ns, accessed_ns, marks, .. } = self;
        Item { value: &self.data[usize::from(self.key_len)..], flags, unique, expires_ns, accessed_ns, marks }
    }
}

/// The store. Times are nanoseconds of any clock that does not go back.
#[derive(Debug, Default)]
pub struct Store {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The hash of a key and its slot. A table that grows reads no key: that would take long, in a server with known timing.
    index: HashTable<(u32, u32)>,
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
        self.index.len()
    }

    /// Reads an item.
    pub fn get(&mut self, key: &[u8], now_ns: u64) -> Option<Item<'_>> {
        let slot = self.find_live(key, now_ns)?;
        let slot = &mut self.slots[slot];
        let (accessed_ns, marks) = (slot.accessed_ns, slot.marks);
        slot.referenced = true;
        slot.accessed_ns = now_ns;
        slot.marks.fetched = true;
        Some(Item { accessed_ns, marks, ..slot.item() })
    }

    /// Reads an item without a trace: its place in the eviction order stays.
    pub fn peek(&mut self, key: &[u8], now_ns: u64) -> Option<Item<'_>> {
        let slot = self.find_live(key, now_ns)?;
        Some(self.slots[slot].item())
    }

    /// Changes what is known of a live item; nothing where there is none.
    pub fn mark(&mut self, key: &[u8], now_ns: u64, change: impl FnOnce(&mut Marks)) {
        if let Some(slot) = self.find_live(key, now_ns) {
            change(&mut self.slots[slot].marks);
        }
    }

    /// Gives a live item a new unique, as if it had been written; nothing where there is none.
    pub fn renew_unique(&mut self, key: &[u8], now_ns: u64) {
        if let Some(slot) = self.find_live(key, now_ns) {
            self.unique_last += 1;
            self.slots[slot].unique = self.unique_last;
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
        if let Some(slot) = self.find(key) {
            if self.slots[slot].data.len() == key.len() + value.len() {
                self.items_total += 1;
                self.overwrite(slot, value, flags, expires_ns);
                self.slots[slot].accessed_ns = now_ns;
                self.slots[slot].marks = Marks::default();
                return Ok(());
            }
            self.remove_slot(slot);
        }
        self.insert(key, [value, &[]], flags, expires_ns, now_ns)
    }

    /// Adds a piece to the value of a live item, which keeps its flags and its expiry. `Ok(false)`: no such item. On
    /// failure the item is as it was.
    pub fn extend(&mut self, key: &[u8], piece: &[u8], end: End, now_ns: u64) -> Result<bool, OutOfMemory> {
        let Some(slot) = self.find_live(key, now_ns) else { return Ok(false) };
        let Slot { flags, expires_ns, .. } = self.slots[slot];
        if (self.slots[slot].data.len() + piece.len()) as u64 + ITEM_OVERHEAD_BYTES > self.bytes_max {
            return Err(OutOfMemory);
        }
        let old = self.remove_slot(slot);
        let value = &old[key.len()..];
        let pieces = if end == End::Back { [value, piece] } else { [piece, value] };
        self.insert(key, pieces, flags, expires_ns, now_ns)?;
        Ok(true)
    }

    /// Writes a new value into a live item, which keeps its flags and expiry (if the length stays, its marks too) and gets a
    /// new unique.
    pub fn rewrite(&mut self, key: &[u8], value: &[u8], now_ns: u64) {
        let slot = self.find_live(key, now_ns).expect("the caller has just read this item");
        self.slots[slot].referenced = true;
        let (flags, expires_ns) = (self.slots[slot].flags, self.slots[slot].expires_ns);
        if self.slots[slot].data.len() == key.len() + value.len() {
            self.overwrite(slot, value, flags, expires_ns);
        } else {
            self.remove_slot(slot);
            // Out of memory only if the whole store is smaller than this one item; then the item is gone.
            let _ = self.insert(key, [value, &[]], flags, expires_ns, now_ns);
        }
    }

    /// Gives a live item a new expiry. False: no such item.
    pub fn touch(&mut self, key: &[u8], expires_ns: u64, now_ns: u64) -> bool {
        match self.find_live(key, now_ns) {
            Some(slot) => {
                self.slots[slot].expires_ns = expires_ns;
                self.slots[slot].referenced = true;
                self.slots[slot].accessed_ns = now_ns;
                true
            }
            None => false,
        }
    }

    /// Removes a live item. False: no such item.
    pub fn remove(&mut self, key: &[u8], now_ns: u64) -> bool {
        self.find_live(key, now_ns).map(|slot| self.remove_slot(slot)).is_some()
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

    fn overwrite(&mut self, slot: usize, value: &[u8], flags: u32, expires_ns: u64) {
        self.unique_last += 1;
        let slot = &mut self.slots[slot];
        slot.data[usize::from(slot.key_len)..].copy_from_slice(value);
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
        let data_len = key.len() + value[0].len() + value[1].len();
        let charge = data_len as u64 + ITEM_OVERHEAD_BYTES;
        if charge > self.bytes_max {
            return Err(OutOfMemory);
        }
        while self.bytes + charge > self.bytes_max {
            self.evict_one(now_ns);
        }
        self.unique_last += 1;
        self.items_total += 1;
        self.bytes += charge;
        let item = Slot {
            data: [key, value[0], value[1]].concat().into_boxed_slice(),
            key_len: key.len() as u16,
            live: true,
            referenced: false,
            flags,
            unique: self.unique_last,
            expires_ns,
            accessed_ns: now_ns,
            marks: Marks::default(),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = item;
                slot
            }
            None => {
                self.slots.push(item);
                u32::try_from(self.slots.len() - 1)
                    .expect("four thousand million items exceed any bound in bytes")
            }
        };
        let hash = hash_of(key);
        self.index.insert_unique(spread(hash), (hash, slot), |(hash, _)| spread(*hash));
        Ok(())
    }

    /// Moves the hand to the next item that has expired or was not read since the hand's last round, and removes it.
    /// Two rounds always find one, because the first clears every flag.
    fn evict_one(&mut self, now_ns: u64) {
        assert!(self.items() > 0, "bytes are charged but nothing is held");
        loop {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let slot = &mut self.slots[self.hand];
            if !slot.live {
                continue;
            }
            let expired = slot.expires_ns <= now_ns;
            if expired || !slot.referenced {
                self.evictions += u64::from(!expired);
                self.expirations += u64::from(expired);
                self.remove_slot(self.hand);
                return;
            }
            slot.referenced = false;
        }
    }

    fn remove_slot(&mut self, slot: usize) -> Box<[u8]> {
        let hash = hash_of(self.slots[slot].key());
        let entry = self.index.find_entry(spread(hash), |(_, held)| *held as usize == slot);
        entry.expect("a live item is in the index").remove();
        let data = std::mem::take(&mut self.slots[slot].data);
        self.slots[slot].live = false;
        self.free.push(slot as u32);
        self.bytes -= data.len() as u64 + ITEM_OVERHEAD_BYTES;
        data
    }

    /// The slot of a key that has not expired; one that has is removed.
    fn find_live(&mut self, key: &[u8], now_ns: u64) -> Option<usize> {
        let slot = self.find(key)?;
        if self.slots[slot].expires_ns <= now_ns {
            self.remove_slot(slot);
            self.expirations += 1;
            return None;
        }
        Some(slot)
    }

    fn find(&self, key: &[u8]) -> Option<usize> {
        let hash = hash_of(key);
        let is_it = |(held, slot): &(u32, u32)| *held == hash && self.slots[*slot as usize].key() == key;
        self.index.find(spread(hash), is_it).map(|(_, slot)| *slot as usize)
    }
}

fn hash_of(key: &[u8]) -> u32 {
    rapidhash_v3(key) as u32
}

/// For the table, which takes a place from the low bits and a tag from the highest seven.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
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
        assert_eq!(alive.len(), 10);
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

    /// Of 300 000 keys about ten pairs share their 32 bits.
    #[test]
    fn keys_of_the_same_hash_are_two() {
        let mut seen = HashMap::new();
        let pair = (0..300_000).find_map(|number| {
            let key = number.to_string().into_bytes();
            seen.insert(hash_of(&key), key.clone()).map(|other| [other, key])
        });
        let [one, other] = pair.unwrap();
        let mut store = Store::new(u64::MAX);
        store.set(&one, b"1", 0, NEVER_NS, 0).unwrap();
        assert_eq!(value_of(&mut store, &other, 0), None);
        store.set(&other, b"2", 0, NEVER_NS, 0).unwrap();
        assert!(store.remove(&one, 0));
        assert_eq!(
            (value_of(&mut store, &one, 0), value_of(&mut store, &other, 0)),
            (None, Some(b"2".to_vec()))
        );
    }

    #[test]
    fn slot_size_matches_the_charged_overhead() {
        assert!(size_of::<Slot>() as u64 + 16 <= ITEM_OVERHEAD_BYTES, "{}", size_of::<Slot>());
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
