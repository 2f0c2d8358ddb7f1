//! One direction of a connection: its bytes in their order, each with the time when it was first seen.
//!
//! Invariant: a byte keeps its first time; what is sent again adds only bytes that were not seen before.

use std::collections::BTreeMap;

/// Bytes that came in one packet, at their place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) end: u64,
    pub(super) time_ns: u64,
    /// Those that were captured: all, or the first ones.
    pub(super) bytes: &'a [u8],
}

/// Pieces by the place of their first byte, without overlap.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    /// The sequence number of the first byte.
    base: u32,
    /// Behind the last byte that was added; sequence numbers are taken as the nearest to it.
    end: u64,
    pieces: BTreeMap<u64, Piece<'a>>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(base: u32) -> Self {
        Self { base, end: 0, pieces: BTreeMap::new() }
    }

    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Adds what of a segment was not seen before.
    pub(super) fn add(&mut self, sequence: u32, length: usize, time_ns: u64, bytes: &'a [u8]) {
        // Sequence numbers wrap around at 2^32.
        let from_end = sequence.wrapping_sub(self.base).wrapping_sub(self.end as u32) as i32;
        let Some(start) = self.end.checked_add_signed(i64::from(from_end)) else { return };
        let end = start + length as u64;
        let mut at = start;
        while at < end {
            let before = self.pieces.range(..=at).next_back();
            if let Some((_, piece)) = before.filter(|(_, piece)| piece.end > at) {
                at = piece.end;
                continue;
            }
            let next = self.pieces.range(at..end).next().map_or(end, |(&next, _)| next);
            let captured = bytes.len().min((next - start) as usize);
            let bytes = bytes.get((at - start) as usize..captured).unwrap_or_default();
            self.pieces.insert(at, Piece { end: next, time_ns, bytes });
            at = next;
        }
        self.end = self.end.max(end);
    }

    /// The pieces from the first byte to the first one that is missing.
    pub(super) fn contiguous(&self) -> impl Iterator<Item = (u64, Piece<'a>)> {
        let mut at = 0;
        self.pieces.iter().map(|(&start, &piece)| (start, piece)).take_while(move |(start, piece)| {
            let follows = *start == at;
            at = piece.end;
            follows
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequence number, data, captured bytes of it; time is the index.
    type Sent = (u32, &'static [u8], usize);

    fn check(base: u32, sent: &[Sent], expected: &[(u64, u64, u64, &[u8])]) {
        let mut stream = Stream::new(base);
        for (time_ns, &(sequence, data, captured)) in sent.iter().enumerate() {
            stream.add(sequence, data.len(), time_ns as u64, &data[..captured]);
        }
        let found: Vec<_> = stream
            .contiguous()
            .map(|(start, piece)| (start, piece.end, piece.time_ns, piece.bytes))
            .collect();
        assert_eq!(found, expected, "{sent:?}");
    }

    #[test]
    fn streams_are_put_together() {
        // In order, and across the end of the sequence numbers.
        check(5, &[(5, b"abc", 3), (8, b"de", 2)], &[(0, 3, 0, b"abc"), (3, 5, 1, b"de")]);
        check(u32::MAX, &[(u32::MAX, b"abc", 3), (2, b"de", 2)], &[(0, 3, 0, b"abc"), (3, 5, 1, b"de")]);
        // Out of order.
        check(0, &[(3, b"de", 2), (0, b"abc", 3)], &[(0, 3, 1, b"abc"), (3, 5, 0, b"de")]);
        // Sent again, alone and with more: the first time counts.
        check(0, &[(0, b"abc", 3), (0, b"abc", 3), (1, b"bcde", 4)], &[(0, 3, 0, b"abc"), (3, 5, 2, b"de")]);
        // Around what was there already.
        check(0, &[(2, b"c", 1), (0, b"abcde", 5)], &[(0, 2, 1, b"ab"), (2, 3, 0, b"c"), (3, 5, 1, b"de")]);
        // A part was captured.
        check(0, &[(0, b"abcde", 2), (5, b"fg", 1)], &[(0, 5, 0, b"ab"), (5, 7, 1, b"f")]);
        check(0, &[(1, b"b", 1), (0, b"abcd", 1)], &[(0, 1, 1, b"a"), (1, 2, 0, b"b"), (2, 4, 1, b"")]);
        // Something is missing, or lies before the first byte.
        check(0, &[(0, b"abc", 3), (4, b"e", 1)], &[(0, 3, 0, b"abc")]);
        check(0, &[(1, b"abc", 3)], &[]);
        check(9, &[(8, b"z", 1), (9, b"abc", 3)], &[(0, 3, 1, b"abc")]);
    }
}
