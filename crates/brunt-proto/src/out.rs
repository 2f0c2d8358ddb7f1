//! The bytes that a connection still has to send: copied pieces and references into the value block, in order.
//!
//! Not a socket buffer: it only remembers what was encoded and how far it has been handed over. It never grows beyond
//! the room it was made with, so that encoding allocates nothing.

use crate::Value;
use std::io::IoSlice;

/// A part of the block, to be sent before the copied byte at `at`.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Position in `bytes` that this part stands before.
    at: usize,
    offset: usize,
    len: usize,
}

/// Encoded and not yet sent.
#[derive(Clone, Debug)]
pub struct Out {
    bytes: Vec<u8>,
    references: Vec<Reference>,
    room: usize,
    /// Bytes of the front, copied and referenced, that have been handed over.
    skip: usize,
    /// Bytes now queued, those handed over included.
    queued: usize,
    /// Bytes queued since the connection began.
    queued_total: u64,
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
            bytes: Vec::with_capacity(room),
            references: Vec::with_capacity(Self::REFERENCES_MAX),
            room,
            skip: 0,
            queued: 0,
            queued_total: 0,
        }
    }

    /// Is there room for a request of at most this many bytes (of its value, those that are copied)?
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= self.room && self.references.len() < Self::REFERENCES_MAX
    }

    /// How many bytes are copied of a value whose range of the block is this long ([`Value::len`]); its head, which
    /// is always copied, comes on top.
    pub const fn copied_len(block_bytes: usize) -> usize {
        if block_bytes >= Self::REFERENCE_FROM { 0 } else { block_bytes }
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        debug_assert!(self.bytes.len() + bytes.len() <= self.room, "the caller asks has_room first");
        self.bytes.extend_from_slice(bytes);
        self.count(bytes.len());
    }

    /// Appends a number in decimal.
    #[inline]
    pub fn put_decimal(&mut self, mut number: u64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.put(&digits[at..]);
    }

    /// Appends a value: its head is copied, its body too when it is short.
    #[inline]
    pub fn put_value(&mut self, value: &Value<'_>) {
        self.put(value.head);
        if value.len >= Self::REFERENCE_FROM {
            debug_assert!(self.references.len() < Self::REFERENCES_MAX, "the caller asks has_room first");
            self.references.push(Reference { at: self.bytes.len(), offset: value.offset, len: value.len });
            self.count(value.len);
        } else {
            self.put(&value.block[value.offset..value.offset + value.len]);
        }
    }

    fn count(&mut self, bytes: usize) {
        self.queued += bytes;
        self.queued_total += bytes as u64;
    }

    /// Nothing left to send?
    pub fn is_empty(&self) -> bool {
        self.skip == self.queued
    }

    /// Bytes left to send.
    pub fn len(&self) -> usize {
        self.queued - self.skip
    }

    /// Position in the connection's stream just behind what has been queued.
    pub fn queued_total(&self) -> u64 {
        self.queued_total
    }

    /// Position in the connection's stream just behind what has been handed over.
    pub fn sent_total(&self) -> u64 {
        self.queued_total - self.len() as u64
    }

    /// What is left to send, if it is all in one piece: the usual case, without the vector of [`Out::gather`].
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        self.references.is_empty().then(|| &self.bytes[self.skip..])
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
        push(&self.bytes[from..]);
        count
    }

    /// Notes that this many bytes have been handed over.
    pub fn advance(&mut self, bytes: usize) {
        self.skip += bytes;
        assert!(self.skip <= self.queued, "more was sent than queued");
        if self.is_empty() {
            self.bytes.clear();
            self.references.clear();
            self.skip = 0;
            self.queued = 0;
        }
    }

    /// Forgets everything queued, for a connection that begins anew.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.references.clear();
        self.skip = 0;
        self.queued = 0;
        self.queued_total = 0;
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
    fn sent_byte_by_byte_yields_the_same_stream() {
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
    fn room_is_kept() {
        let mut out = Out::with_room(10);
        assert!(out.has_room(10));
        out.put_decimal(u64::from(u32::MAX));
        assert_eq!(out.contiguous(), Some(&b"4294967295"[..]));
        assert!(!out.has_room(1));
        out.advance(10);
        assert!(out.has_room(10));
    }
}
