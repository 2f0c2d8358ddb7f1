//! Is the value that came back the one that was stored? Checked piece by piece, however the network cut it.
//!
//! Holds no bytes but a head: body bytes are compared with the block where they lie and forgotten.

use crate::payload::{HEAD_LEN, Payload};

/// What a checked value turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// Every byte is right.
    Intact,
    /// A value of this data set, but of another key.
    WrongKey {
        /// The key it belongs to.
        id: u64,
    },
    /// A value of this key, but of another version.
    WrongVersion {
        /// The version it is.
        version: u32,
    },
    /// Right as far as it goes, but it ends early.
    Truncated,
    /// Right as far as it should go, but it goes on.
    Overlong,
    /// Bytes that belong to no value, or to several.
    Torn,
}

/// Checks one value. Feed it every piece in order, then ask [`Verifier::finish`].
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    id: u64,
    version: u32,
    expected_len: u32,
    /// Bytes seen so far.
    received: usize,
    head: [u8; HEAD_LEN],
    body_differs: bool,
}

impl Verifier {
    /// Expects this version of the value of key `id` with `expected_len` bytes.
    #[inline]
    pub fn new(id: u64, version: u32, expected_len: u32) -> Self {
        Self { id, version, expected_len, received: 0, head: [0; HEAD_LEN], body_differs: false }
    }

    /// Takes the next piece of the value; `payload` is that of the data set, the same every time.
    pub fn feed(&mut self, payload: &Payload, piece: &[u8]) {
        let to_head = piece.len().min(HEAD_LEN.saturating_sub(self.received));
        let (head, body) = piece.split_at(to_head);
        self.head[self.received.min(HEAD_LEN)..][..to_head].copy_from_slice(head);
        self.received += to_head;
        if body.is_empty() {
            return;
        }
        let parts = payload.value(self.id, self.version, self.expected_len);
        let expected = &payload.block()[parts.offset..parts.offset + parts.len];
        let rest = expected.get(self.received - HEAD_LEN..).unwrap_or(&[]);
        let comparable = body.len().min(rest.len());
        self.body_differs |= body[..comparable] != rest[..comparable];
        self.received += body.len();
    }

    /// The verdict, once all pieces are in.
    pub fn finish(&self, payload: &Payload) -> Integrity {
        let parts = payload.value(self.id, self.version, self.expected_len);
        let received_head = &self.head[..self.received.min(HEAD_LEN)];
        // Bytes beyond the expected length are no part of the comparison: that is the length's business.
        let comparable = received_head.len().min(parts.head_len);
        if received_head[..comparable] != parts.head[..comparable] {
            let named = (self.received >= HEAD_LEN).then(|| payload.read_head(&self.head)).flatten();
            return match named {
                Some((id, _)) if id != self.id => Integrity::WrongKey { id },
                Some((_, version)) => Integrity::WrongVersion { version },
                None => Integrity::Torn,
            };
        }
        match (self.body_differs, self.received.cmp(&(self.expected_len as usize))) {
            (true, _) => Integrity::Torn,
            (false, std::cmp::Ordering::Less) => Integrity::Truncated,
            (false, std::cmp::Ordering::Equal) => Integrity::Intact,
            (false, std::cmp::Ordering::Greater) => Integrity::Overlong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(payload: &Payload, id: u64, version: u32, len: u32) -> Vec<u8> {
        let parts = payload.value(id, version, len);
        [parts.head(), &payload.block()[parts.offset..parts.offset + parts.len]].concat()
    }

    /// Whole, byte by byte, and cut in two at every place: the verdict must be the same.
    fn check(payload: &Payload, expected_len: u32, bytes: &[u8], expected: Integrity) {
        let verdict = |pieces: &[&[u8]]| {
            let mut verifier = Verifier::new(7, 1, expected_len);
            pieces.iter().for_each(|piece| verifier.feed(payload, piece));
            verifier.finish(payload)
        };
        assert_eq!(verdict(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(verdict(&[first, second]), expected, "cut at {cut} of {}", bytes.len());
        }
    }

    #[test]
    fn verdicts() {
        let payload = Payload::new(1, 300);
        let own = |len| value(&payload, 7, 1, len);
        for len in [0, 1, 8, 15, 16, 17, 100, 300] {
            check(&payload, len, &own(len), Integrity::Intact);
        }
        check(&payload, 100, &value(&payload, 8, 1, 100), Integrity::WrongKey { id: 8 });
        check(&payload, 100, &value(&payload, 8, 1, 30), Integrity::WrongKey { id: 8 });
        check(&payload, 100, &value(&payload, 7, 2, 100), Integrity::WrongVersion { version: 2 });
        check(&payload, 100, &own(99), Integrity::Truncated);
        check(&payload, 100, &own(3), Integrity::Truncated);
        check(&payload, 100, &own(101), Integrity::Overlong);
        check(&payload, 10, &own(30), Integrity::Overlong);
        check(&payload, 0, b"x", Integrity::Overlong);
        check(&payload, 4, &value(&payload, 8, 1, 4), Integrity::Torn);
        check(&payload, 100, &[b'x'; 100], Integrity::Torn);
        for at in [0, 8, 12, 16, 50, 99] {
            let mut torn = own(100);
            torn[at] ^= 1;
            check(&payload, 100, &torn, Integrity::Torn);
        }
        let spliced = [&own(100)[..50], &value(&payload, 8, 1, 100)[50..]].concat();
        check(&payload, 100, &spliced, Integrity::Torn);
    }
}
