//! The bytes that a connection still has to send: copied pieces and references into the value block, in order.
//!
//! Not a socket buffer: it only remembers what was encoded and how far it has been handed over. It never grows beyond
//! the room it was made with, so that encoding allocates nothing: a request is written in place.

use crate::Value;
use std::io::IoSlice;

/// A part of the block, to be sent before the copied byte at `at`.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Position in `bytes` that this part is before.
    at: usize,
    offset: usize,
    len: usize,
}

/// Encoded and not yet sent.
#[derive(Clone, Debug, Default)]
pub struct Out {
    /// As many as there is room for; the first `filled` of them are queued.
    bytes: Box<[u8]>,
    filled: usize,
    references: Vec<Reference>,
    /// Bytes of the block that the references stand for, together.
    referenced: usize,
    /// Bytes of the front, copied and referenced, that have been handed over.
    skip: usize,
    /// Bytes that were queued since the connection began and are no longer here, because all had been handed over.
    gone_total: u64,
}

/// The most parts that one [`Out::gather`] yields: enough for every reference of a full queue.
pub const PARTS_MAX: usize = 2 * Out::REFERENCES_MAX + 1;

impl Out {
    /// Values with at least this much behind their head are referenced. Below, a copy costs less than two more entries of
    /// the vector that the kernel walks.
    pub const REFERENCE_FROM: usize = 4096;

    /// How many values may be referenced at a time; further ones are the caller's signal to send first.
    pub const REFERENCES_MAX: usize = 15;

    /// A queue with room for this many copied bytes.
    pub fn with_room(room: usize) -> Self {
        Self {
            bytes: vec![0; room].into_boxed_slice(),
            references: Vec::with_capacity(Self::REFERENCES_MAX),
            ..Self::default()
        }
    }

    /// Is there room for a request of at most this many bytes (of its value, those that are copied)?
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.filled + bytes <= self.bytes.len() && self.references.len() < Self::REFERENCES_MAX
    }

    /// How many bytes are copied of a value whose range of the block is this long ([`Value::len`]); its head, which
    /// is always copied, comes on top.
    #[inline]
    pub const fn copied_len(block_bytes: usize) -> usize {
        if block_bytes >= Self::REFERENCE_FROM { 0 } else { block_bytes }
    }

    /// Appends bytes for the caller to write: they hold bytes of an earlier request.
    ///
    /// # Panics
    ///
    /// If there is no room: the caller asks [`Out::has_room`] first.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> &mut [u8] {
        let from = self.filled;
        self.filled += bytes;
        &mut self.bytes[from..from + bytes]
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        copy(bytes, self.grow(bytes.len()));
    }

    /// Appends bytes with others around them.
    #[inline]
    pub fn put_around(&mut self, before: &[u8], bytes: &[u8], behind: &[u8]) {
        let (first, rest) = self.grow(before.len() + bytes.len() + behind.len()).split_at_mut(before.len());
        let (middle, last) = rest.split_at_mut(bytes.len());
        first.copy_from_slice(before);
        copy(bytes, middle);
        last.copy_from_slice(behind);
    }

    /// Appends `len` bytes that `write` writes, with others around them.
    #[inline]
    pub fn put_in_place(&mut self, before: &[u8], len: usize, write: impl FnOnce(&mut [u8]), behind: &[u8]) {
        let (first, rest) = self.grow(before.len() + len + behind.len()).split_at_mut(before.len());
        let (middle, last) = rest.split_at_mut(len);
        first.copy_from_slice(before);
        write(middle);
        last.copy_from_slice(behind);
    }

    /// Appends a number in decimal.
    #[inline]
    pub fn put_decimal(&mut self, number: u64) {
        let mut rest = number;
        let digits = self.grow(number.checked_ilog10().unwrap_or(0) as usize + 1);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Appends a value: its head is copied, its body too when it is short.
    #[inline]
    pub fn put_value(&mut self, value: &Value<'_>) {
        self.put(value.head);
        if value.len >= Self::REFERENCE_FROM {
            debug_assert!(self.references.len() < Self::REFERENCES_MAX, "the caller asks has_room first");
            self.references.push(Reference { at: self.filled, offset: value.offset, len: value.len });
            self.referenced += value.len;
        } else {
            self.put(&value.block[value.offset..value.offset + value.len]);
        }
    }

    /// Bytes here, those handed over included.
    #[inline]
    fn queued(&self) -> usize {
        self.filled + self.referenced
    }

    /// Nothing left to send?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.skip == self.queued()
    }

    /// Bytes left to send.
    #[inline]
    pub fn len(&self) -> usize {
        self.queued() - self.skip
    }

    /// Position in the connection's stream just behind what has been queued.
    #[inline]
    pub fn queued_total(&self) -> u64 {
        self.gone_total + self.queued() as u64
    }

    /// Position in the connection's stream just behind what has been handed over.
    #[inline]
    pub fn sent_total(&self) -> u64 {
        self.gone_total + self.skip as u64
    }

    /// What is left to send, if it is all in one piece: the usual case, without the vector of [`Out::gather`].
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        self.references.is_empty().then(|| &self.bytes[self.skip..self.filled])
    }

    /// What is left to send, in order, as slices of our bytes and of the block that values are cut from. Returns how
    /// many entries of `parts` are filled.
    pub fn gather<'s>(&'s self, block: &'s [u8], parts: &mut [IoSlice<'s>; PARTS_MAX]) -> usize {
        let mut count = 0;
        let mut skip = self.skip;
        let mut push = |part: &'s [u8]| {
            let skipped = skip.min(part.len());
            skip -= skipped;
            if skipped < part.len() {
                parts[count] = IoSlice::new(&part[skipped..]);
                count += 1;
            }
        };
        let mut from = 0;
        for reference in &self.references {
            push(&self.bytes[from..reference.at]);
            push(&block[reference.offset..reference.offset + reference.len]);
            from = reference.at;
        }
        push(&self.bytes[from..self.filled]);
        count
    }

    /// Notes that this many bytes have been handed over.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.skip += bytes;
        assert!(self.skip <= self.queued(), "more was sent than queued");
        if self.is_empty() {
            self.gone_total += self.skip as u64;
            self.clear();
        }
    }

    /// Forgets everything queued, for a connection that begins anew.
    pub fn reset(&mut self) {
        self.clear();
        self.gone_total = 0;
    }

    #[inline]
    fn clear(&mut self) {
        self.filled = 0;
        self.references.clear();
        self.referenced = 0;
        self.skip = 0;
    }
}

/// Copies what is as long as a word or a key without a call: two blocks that overlap, however long it is between.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    match from.len() {
        17..=32 => copy_blocks::<16>(from, to),
        8..=16 => copy_blocks::<8>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes, which are all there are: between `N` and `2 N`.
#[inline]
fn copy_blocks<const N: usize>(from: &[u8], to: &mut [u8]) {
    let (Some(front), Some(back)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else { return };
    let (front, back) = (*front, *back);
    if let Some(first) = to.first_chunk_mut() {
        *first = front;
    }
    if let Some(last) = to.last_chunk_mut() {
        *last = back;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &Out, block: &[u8]) -> Vec<u8> {
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let count = out.gather(block, &mut parts);
        parts[..count].iter().flat_map(|part| part.to_vec()).collect()
    }

    #[test]
    fn partial_sends_yield_the_same_stream() {
        let block: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
        let mut out = Out::with_room(1000);
        let mut expected = Vec::new();
        for (offset, len) in [(0, 10), (100, 5000), (7, 4096), (0, 0), (3, 4095 - 3600)] {
            out.put(b"set ");
            out.put_decimal(len as u64);
            out.put_value(&Value { head: b"<>", block: &block, offset, len });
            expected.extend_from_slice(format!("set {len}<>").as_bytes());
            expected.extend_from_slice(&block[offset..offset + len]);
        }
        assert_eq!(text(&out, &block), expected);
        assert_eq!(out.contiguous(), None);
        assert_eq!(out.queued_total(), expected.len() as u64);
        for sent in 0..expected.len() {
            assert_eq!(text(&out, &block), expected[sent..]);
            assert_eq!(out.sent_total(), sent as u64);
            out.advance(1);
        }
        assert!(out.is_empty());
        assert_eq!(out.sent_total(), out.queued_total());
    }

    #[test]
    fn parts_of_every_length_are_copied() {
        let block: Vec<u8> = (1..=100).collect();
        for len in 0..=block.len() {
            let mut out = Out::with_room(len + 2);
            out.put(b"<");
            out.put(&block[..len]);
            out.put(b">");
            assert_eq!(out.contiguous(), Some(&[b"<", &block[..len], b">"].concat()[..]), "{len}");
        }
    }

    #[test]
    fn decimals_match_the_standard_library() {
        let powers = (0..20).map(|exponent| 10u64.pow(exponent));
        for number in powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX]) {
            let mut out = Out::with_room(20);
            out.put_decimal(number);
            assert_eq!(out.contiguous(), Some(number.to_string().as_bytes()));
        }
    }

    #[test]
    fn a_large_value_is_referenced_and_not_copied() {
        let block = vec![7; 2 << 20];
        for len in [Out::REFERENCE_FROM, 1 << 20] {
            let mut out = Out::with_room(100);
            out.put_value(&Value { head: b"head", block: &block, offset: 5, len });
            out.put(b"\r\n");
            let mut parts = [IoSlice::new(&[]); PARTS_MAX];
            let count = out.gather(&block, &mut parts);
            let places: Vec<(*const u8, usize)> =
                parts[..count].iter().map(|part| (part.as_ptr(), part.len())).collect();
            assert_eq!(places[1], (block[5..].as_ptr(), len), "the block itself is what is sent");
            assert_eq!((places.len(), places[0].1 + places[2].1), (3, 6), "all else is six bytes");
            assert_eq!(out.filled, 6);
        }
    }

    #[test]
    fn room_is_reused() {
        let mut out = Out::with_room(10);
        assert!(out.has_room(10));
        out.put_decimal(u64::from(u32::MAX));
        assert_eq!(out.contiguous(), Some(&b"4294967295"[..]));
        assert!(!out.has_room(1));
        out.advance(10);
        assert!(out.has_room(10));
    }
}
