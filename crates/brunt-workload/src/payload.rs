//! The bytes of values, as functions of (data seed, key id, version): any agent can write them, and check what it reads.
//!
//! A value is a head that names its key and version, and a range of one block of noise that all values share, so that a
//! value of a megabyte costs no more to make than one of ten bytes. The noise is any byte, line ends and zeros included:
//! values are opaque to every protocol, incompressible, and a server or codec that looks inside them gets caught.

use crate::hash::{HashPurpose, IdHash};
use crate::rng::{Draw, DrawRng};

/// Bytes of a whole head: id (8), version (4), check (4), each little-endian, so that a value cut shorter still holds the
/// digits in which ids differ.
pub const HEAD_LEN: usize = 16;

/// How many places of the block a value may begin at: two values share one with a probability of 2⁻¹⁶, and differ in their
/// heads even so. Each value is compared with the block when it comes back, at a random place of it: this many bytes stay
/// in a CPU's second cache beside all else; a megabyte does not, and costs as much as the rest of the check.
const OFFSETS: usize = 1 << 16;

/// A value as its pieces: the first `head_len` bytes of `head`, then `len` bytes of [`Payload::block`] from `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueParts {
    /// The head; only the first `head_len` bytes belong to the value.
    pub head: [u8; HEAD_LEN],
    /// At most [`HEAD_LEN`].
    pub head_len: usize,
    /// Where the rest begins in the block.
    pub offset: usize,
    /// How long the rest is in bytes.
    pub len: usize,
}

impl ValueParts {
    /// A value without bytes.
    pub const EMPTY: Self = Self { head: [0; HEAD_LEN], head_len: 0, offset: 0, len: 0 };

    /// The part of the head that belongs to the value.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }

    /// Length of the whole value in bytes.
    #[inline]
    pub fn total_len(&self) -> usize {
        self.head_len + self.len
    }
}

/// The values of a data set; one serves all workers.
#[derive(Clone, Debug)]
pub struct Payload {
    block: Vec<u8>,
    /// Where the table of characters begins, and where the zeros do, where there are any: behind the noise.
    table: usize,
    zeros: usize,
    hash: IdHash,
}

impl Payload {
    /// The values that belong to `data_seed`, none longer than `value_len_max` bytes. Takes 64 KiB + `value_len_max`
    /// bytes.
    pub fn new(data_seed: u64, value_len_max: u32) -> Self {
        let len = OFFSETS + value_len_max as usize;
        let mut noise = DrawRng::from_draw(IdHash::new(data_seed, HashPurpose::Block).hash(0, 0));
        let mut block = Vec::with_capacity(len + 8);
        while block.len() < len {
            block.extend_from_slice(&noise.next_u64().to_le_bytes());
        }
        block.truncate(len);
        Self { block, table: len, zeros: len, hash: IdHash::new(data_seed, HashPurpose::Value) }
    }

    /// Adds this table, from which values are cut.
    pub fn with_table(mut self, table: &[u8]) -> Self {
        self.table = self.block.len();
        self.block.reserve_exact(table.len());
        self.block.extend_from_slice(table);
        self
    }

    /// Adds zeros for values of zeros, none longer than this.
    pub fn with_zeros(mut self, value_len_max: u32) -> Self {
        self.zeros = self.block.len();
        self.block.resize(self.zeros + value_len_max as usize, b'0');
        self
    }

    /// A value of `len` zero digits.
    #[inline]
    pub fn zeros(&self, len: u32) -> ValueParts {
        ValueParts { offset: self.zeros, len: len as usize, ..ValueParts::EMPTY }
    }

    /// A value that is `len` bytes of the table from `offset` on, and has no head.
    #[inline]
    pub fn laid(&self, offset: usize, len: u32) -> ValueParts {
        ValueParts { offset: self.table + offset, len: len as usize, ..ValueParts::EMPTY }
    }

    /// The block that values are cut from. A longer payload of the same data seed begins with the same bytes.
    #[inline]
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// The value of this version of the key `id`, `len` bytes long (at most the `value_len_max` of construction).
    #[inline(always)] // In a check of a value most of it is not needed.
    pub fn value(&self, id: u64, version: u32, len: u32) -> ValueParts {
        let len = len as usize;
        assert!(len <= self.block.len() - OFFSETS, "a value of {len} bytes was not provided for");
        let hash = self.hash.hash(id, u64::from(version));
        // As one number, so that it need not be put together in memory to be compared.
        let head = u128::from(id) | u128::from(version) << 64 | u128::from(hash as u32) << 96;
        let head = head.to_le_bytes();
        let head_len = len.min(HEAD_LEN);
        // Low bits are the check, high bits the place: the two are unrelated.
        let offset = (hash >> (u64::BITS - OFFSETS.ilog2())) as usize;
        ValueParts { head, head_len, offset, len: len - head_len }
    }

    /// Which key and version a whole head names; `None` where its check is not theirs, so that it never was a head of
    /// this data set.
    pub fn read_head(&self, head: &[u8; HEAD_LEN]) -> Option<(u64, u32)> {
        let id = u64::from_le_bytes(std::array::from_fn(|index| head[index]));
        let version = u32::from_le_bytes(std::array::from_fn(|index| head[8 + index]));
        let check = u32::from_le_bytes(std::array::from_fn(|index| head[12 + index]));
        (self.hash.hash(id, u64::from(version)) as u32 == check).then_some((id, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(payload: &Payload, id: u64, version: u32, len: u32) -> Vec<u8> {
        let parts = payload.value(id, version, len);
        let rest = &payload.block()[parts.offset..parts.offset + parts.len];
        [parts.head(), rest].concat()
    }

    #[test]
    fn values_are_functions_of_seed_id_and_version() {
        let (here, there) = (Payload::new(1, 1_000), Payload::new(1, 70_000));
        for len in [0, 1, 7, 15, 16, 17, 200, 1_000] {
            let value = bytes(&here, 5, 0, len);
            assert_eq!(value.len(), len as usize);
            assert_eq!(value, bytes(&there, 5, 0, len), "another agent with longer values regenerates them");
            assert!(bytes(&here, 5, 0, 1_000).starts_with(&value));
        }
        let base = bytes(&here, 5, 0, 200);
        assert_ne!(base, bytes(&here, 6, 0, 200));
        assert_ne!(base[16..], bytes(&here, 5, 1, 200)[16..]);
        assert_ne!(base[16..], bytes(&Payload::new(2, 1_000), 5, 0, 200)[16..]);
    }

    #[test]
    fn zeros_follow_the_rest_of_the_block() {
        for payload in [Payload::new(1, 50), Payload::new(1, 50).with_table(b"table")] {
            let before = payload.block().to_vec();
            let payload = payload.with_zeros(50);
            for len in [0, 1, 50] {
                let parts = payload.zeros(len);
                assert_eq!((parts.head(), parts.total_len()), (&[][..], len as usize));
                assert!(
                    payload.block()[parts.offset..parts.offset + parts.len].iter().all(|byte| *byte == b'0')
                );
            }
            assert!(payload.block().starts_with(&before), "nothing else has moved");
            assert_eq!(
                payload.laid(0, 5).offset,
                before.len() - if before.ends_with(b"table") { 5 } else { 0 }
            );
        }
    }

    #[test]
    fn heads_read_back_and_forged_heads_do_not() {
        let payload = Payload::new(1, 100);
        for (id, version) in [(0, 0), (1, 0), (u64::MAX, u32::MAX), (99_999, 3)] {
            let mut head = payload.value(id, version, 100).head;
            assert_eq!(payload.read_head(&head), Some((id, version)));
            assert_eq!(Payload::new(2, 100).read_head(&head), None);
            for byte in 0..HEAD_LEN {
                head[byte] ^= 0x10;
                assert_eq!(payload.read_head(&head), None, "byte {byte}");
                head[byte] ^= 0x10;
            }
        }
    }

    #[test]
    fn the_block_is_noise_and_every_value_lies_inside() {
        let payload = Payload::new(1, 4_096);
        let mut counts = [0f64; 256];
        payload.block().iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
        let expected = payload.block().len() as f64 / 256.0;
        let chi_square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // 255 degrees of freedom: 0.1 to 99.9 % is 190 to 331.
        assert!((190.0..331.0).contains(&chi_square), "{chi_square}");
        let ends = (0..10_000).map(|id| payload.value(id, 0, 4_096)).map(|parts| parts.offset + parts.len);
        assert!(ends.max() <= Some(payload.block().len()));
    }
}
