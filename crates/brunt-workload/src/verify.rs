//! Checks received values against the stored ones, piece by piece as they arrive.
//!
//! Holds no bytes but a head: body bytes are compared with the block where they lie and forgotten. A value that lies
//! there whole is compared at once; that short way only ever says that all is well, or that the value is foreign, and
//! leaves every doubt to the long one.

use crate::payload::{HEAD_LEN, Payload, ValueParts};
use crate::trace::NAMED_BY_TEXT;
use std::ops::Range;

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
    /// Bytes that name no value of ours, where others may have stored some.
    Foreign,
}

/// What is known of a value before it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This version of the key's value, with this length.
    Version {
        /// The version.
        version: u32,
        /// In bytes.
        len: u32,
    },
    /// This version, of which every byte is compared.
    Exact {
        /// The version.
        version: u32,
        /// In bytes.
        len: u32,
    },
    /// These bytes of the payload's block, all of which are compared: a value without a head.
    Laid {
        /// Where it begins.
        offset: u32,
        /// In bytes.
        len: u32,
    },
    /// Values of the key, one behind the other: appended and prepended ones grow. It begins with a head of any version.
    Grown {
        /// The shortest that it can be, in bytes.
        len_min: u32,
    },
    /// A value of a window that should have expired: nothing of it is compared.
    Expired {
        /// How long ago it was stored.
        age_ms: u64,
    },
    /// Any version of the key's value, which has this length: it is compared with the version that it names, and
    /// [`Verifier::version`] says which that was.
    Written {
        /// In bytes.
        len: u32,
        /// Only brunt has stored values: a value without a known head is torn, not foreign.
        is_ours: bool,
        /// Every byte is compared.
        whole: bool,
    },
    /// A version of the key's value, if it names itself as one of ours: version 0, or one that another run of ours wrote. In
    /// another length than we would have stored it has grown since, or is another run's, and only its head is compared.
    Named {
        /// As the server announces it, in bytes.
        len: u32,
        /// As we would have stored it, in bytes.
        own_len: u32,
    },
}

impl Expected {
    /// The one version and length that the value may have; `None` where only its head is known.
    #[inline]
    fn exact(&self) -> Option<(u32, u32)> {
        match *self {
            Self::Version { version, len } | Self::Exact { version, len } => Some((version, len)),
            Self::Named { len, own_len } if len == own_len => Some((0, len)),
            _ => None,
        }
    }
}

/// Bytes of a long value that are compared at the front, besides [`TAIL_LEN`] at the end: what was cut, spliced or mixed up
/// differs there, and comparing a megabyte would cost more than receiving it.
const FRONT_LEN: usize = 1024;
const TAIL_LEN: usize = 16;

/// Checks one value. Feed it every piece in order, then ask [`Verifier::finish`].
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    id: u64,
    expected: Expected,
    /// Bytes seen so far.
    received: usize,
    head: [u8; HEAD_LEN],
    /// Where the first byte behind the head lies that differs; behind every value where none does.
    differs_at: usize,
}

impl Verifier {
    /// Expects a value of the key `id`.
    #[inline]
    pub fn new(id: u64, expected: Expected) -> Self {
        // Another run of ours may have written it, with versions of its own.
        let expected = match expected {
            Expected::Named { len, own_len } if len == own_len => {
                Expected::Written { len, is_ours: false, whole: false }
            }
            expected => expected,
        };
        Self { id, expected, received: 0, head: [0; HEAD_LEN], differs_at: usize::MAX }
    }

    /// The integrity on a value of the key `id` that lies there whole: the same as feeding it in pieces and asking.
    #[inline(always)]
    pub fn verify(payload: &Payload, id: u64, expected: Expected, value: &[u8]) -> Integrity {
        match expected.exact() {
            Some((version, len)) if is_intact(payload, id, version, len, value) => Integrity::Intact,
            _ if matches!(expected, Expected::Named { .. }) && is_foreign(payload, value) => {
                Integrity::Foreign
            }
            _ => Self::verify_in_doubt(payload, id, expected, value),
        }
    }

    #[cold]
    fn verify_in_doubt(payload: &Payload, id: u64, expected: Expected, value: &[u8]) -> Integrity {
        let mut verifier = Self::new(id, expected);
        verifier.feed(payload, value);
        verifier.finish(payload)
    }

    /// Takes the next piece of the value; `payload` is that of the data set, the same every time.
    pub fn feed(&mut self, payload: &Payload, piece: &[u8]) {
        if let Expected::Laid { offset, len } = self.expected {
            let expected = &payload.block()[offset as usize..][..len as usize];
            self.compare(expected.get(self.received..).unwrap_or_default(), piece, self.received);
            self.received += piece.len();
            return;
        }
        let to_head = piece.len().min(HEAD_LEN.saturating_sub(self.received));
        let (head, body) = piece.split_at(to_head);
        self.head[self.received.min(HEAD_LEN)..][..to_head].copy_from_slice(head);
        self.received += to_head;
        if body.is_empty() {
            return;
        }
        let wanted = match self.expected {
            Expected::Written { len, .. } => self.version(payload).map(|version| (version, len)),
            expected => expected.exact(),
        };
        if let Some((version, len)) = wanted {
            let parts = payload.value(self.id, version, len);
            let expected = &payload.block()[parts.offset..parts.offset + parts.len];
            let from = self.received - HEAD_LEN;
            for span in self.compared(expected.len()) {
                let (start, end) =
                    (span.start.max(from), span.end.min(expected.len()).min(from + body.len()));
                if start < end {
                    self.compare(&expected[start..end], &body[start - from..end - from], HEAD_LEN + start);
                }
            }
        }
        self.received += body.len();
    }

    /// Compares bytes, the first of which lies there in the value, as far as both go.
    #[inline]
    fn compare(&mut self, expected: &[u8], received: &[u8], at: usize) {
        let len = expected.len().min(received.len());
        if expected[..len] != received[..len] {
            let same = expected.iter().zip(received).take_while(|(own, other)| own == other).count();
            self.differs_at = self.differs_at.min(at + same);
        }
    }

    /// The key whose value is expected.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// May it be a value of any version, so that [`Verifier::version`] is still to be judged?
    pub fn is_of_any_version(&self) -> bool {
        matches!(self.expected, Expected::Written { .. })
    }

    /// The value that a window expects, if that is whose it is.
    pub fn of_window(&self, payload: &Payload) -> Option<ValueParts> {
        match self.expected {
            Expected::Exact { version, len } => Some(payload.value(self.id, version, len)),
            Expected::Laid { offset, len } => {
                Some(ValueParts { offset: offset as usize, len: len as usize, ..ValueParts::EMPTY })
            }
            Expected::Expired { .. } => Some(ValueParts::EMPTY),
            _ => None,
        }
    }

    /// How long ago it was stored, if it should have expired.
    pub fn expired_ms(&self) -> Option<u64> {
        match self.expected {
            Expected::Expired { age_ms } => Some(age_ms),
            _ => None,
        }
    }

    /// How many bytes at the front of what came are those of a value with these parts, the one that a window expects.
    pub fn right_len(&self, parts: &ValueParts) -> usize {
        let head = &self.head[..self.received.min(parts.head_len)];
        let same = head.iter().zip(parts.head()).take_while(|(own, other)| own == other).count();
        if same < head.len() { same } else { self.differs_at.min(parts.total_len()).min(self.received) }
    }

    /// How long the value was that came.
    pub fn received_len(&self) -> u32 {
        self.received as u32
    }

    /// What of a body of this length is compared.
    fn compared(&self, len: usize) -> [Range<usize>; 2] {
        match self.expected {
            Expected::Written { whole: true, .. } | Expected::Exact { .. } => [0..len, len..len],
            _ => [0..FRONT_LEN, len.saturating_sub(TAIL_LEN).max(FRONT_LEN)..len],
        }
    }

    /// The version that the value names, if its head is whole and is one of the key's.
    pub fn version(&self, payload: &Payload) -> Option<u32> {
        let is_whole = self.received >= HEAD_LEN;
        let (id, version) = is_whole.then(|| payload.read_head(&self.head)).flatten()?;
        (id == self.id).then_some(version)
    }

    /// The integrity, once all pieces are in.
    pub fn finish(&self, payload: &Payload) -> Integrity {
        if let Expected::Written { len, is_ours, .. } = self.expected {
            return self.finish_written(payload, len, is_ours);
        }
        if let Expected::Laid { len, .. } = self.expected {
            return self.finish_body(len);
        }
        if let Expected::Expired { .. } = self.expected {
            return Integrity::Intact;
        }
        let Some((version, expected_len)) = self.expected.exact() else { return self.finish_head(payload) };
        let parts = payload.value(self.id, version, expected_len);
        let received_head = &self.head[..self.received.min(HEAD_LEN)];
        // Bytes beyond the expected length are no part of the comparison: that is the length's business.
        let comparable = received_head.len().min(parts.head_len);
        if received_head[..comparable] != parts.head[..comparable] {
            let named = (self.received >= HEAD_LEN).then(|| payload.read_head(&self.head)).flatten();
            return match named {
                Some((id, _)) if id != self.id => self.of_another_key(id),
                Some((_, version)) => Integrity::WrongVersion { version },
                None => Integrity::Torn,
            };
        }
        self.finish_body(expected_len)
    }

    /// The integrity where the head is what it should be, or there is none.
    fn finish_body(&self, expected_len: u32) -> Integrity {
        match (self.differs_at != usize::MAX, self.received.cmp(&(expected_len as usize))) {
            (true, _) => Integrity::Torn,
            (false, std::cmp::Ordering::Less) => Integrity::Truncated,
            (false, std::cmp::Ordering::Equal) => Integrity::Intact,
            (false, std::cmp::Ordering::Greater) => Integrity::Overlong,
        }
    }

    /// The integrity where every version may be there.
    fn finish_written(&self, payload: &Payload, len: u32, is_ours: bool) -> Integrity {
        let unknown = if is_ours { Integrity::Torn } else { Integrity::Foreign };
        let head = &self.head[..self.received.min(HEAD_LEN)];
        if head.len() < HEAD_LEN {
            // Of a value that is less than a head, what every version begins with: the key.
            let parts = payload.value(self.id, 0, len);
            let comparable = head.len().min(parts.head_len).min(size_of::<u64>());
            if head[..comparable] != parts.head[..comparable] {
                return unknown;
            }
        } else {
            match payload.read_head(&self.head) {
                None => return unknown,
                Some((id, _)) if id != self.id => return self.of_another_key(id),
                Some(_) => {}
            }
        }
        self.finish_body(len)
    }

    /// The integrity on a value that names another key. One that a trace has stored and one of a data set do not name the same key
    /// alike: a value stored by the other is no fault.
    fn of_another_key(&self, id: u64) -> Integrity {
        let is_of_other_kind = (id ^ self.id) & NAMED_BY_TEXT != 0;
        if is_of_other_kind { Integrity::Foreign } else { Integrity::WrongKey { id } }
    }

    /// The integrity where nothing but the head and the shortest length is known.
    fn finish_head(&self, payload: &Payload) -> Integrity {
        let (len_min, is_ours) = match self.expected {
            Expected::Grown { len_min } => (len_min, true),
            _ => (0, false),
        };
        let named = (self.received >= HEAD_LEN).then(|| payload.read_head(&self.head)).flatten();
        match named {
            _ if self.received < len_min as usize => Integrity::Truncated,
            Some((id, _)) if id != self.id => self.of_another_key(id),
            Some(_) => Integrity::Intact,
            // Too short to hold a head, then and now.
            None if is_ours && (len_min as usize) < HEAD_LEN => Integrity::Intact,
            None if is_ours => Integrity::Torn,
            None => Integrity::Foreign,
        }
    }
}

/// Is this, as far as values are compared, what this version of the key has?
#[inline(always)]
fn is_intact(payload: &Payload, id: u64, version: u32, len: u32, value: &[u8]) -> bool {
    let Some((head, body)) = value.split_first_chunk::<HEAD_LEN>() else {
        return is_short_intact(payload, id, version, len, value);
    };
    let parts = payload.value(id, version, len);
    if body.len() != parts.len || u128::from_le_bytes(*head) != u128::from_le_bytes(parts.head) {
        return false;
    }
    let expected = &payload.block()[parts.offset..parts.offset + parts.len];
    if body.len() <= FRONT_LEN {
        return body == expected;
    }
    let tail = (body.len() - TAIL_LEN).max(FRONT_LEN);
    body[..FRONT_LEN] == expected[..FRONT_LEN] && body[tail..] == expected[tail..]
}

/// Does the value begin with a whole head that is none of ours? Then nothing else of it is looked at.
#[inline(never)]
fn is_foreign(payload: &Payload, value: &[u8]) -> bool {
    value.first_chunk::<HEAD_LEN>().is_some_and(|head| payload.read_head(head).is_none())
}

/// [`is_intact`] for a value that is less than a head.
#[inline(never)]
fn is_short_intact(payload: &Payload, id: u64, version: u32, len: u32, value: &[u8]) -> bool {
    value == payload.value(id, version, len).head()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(payload: &Payload, id: u64, version: u32, len: u32) -> Vec<u8> {
        let parts = payload.value(id, version, len);
        [parts.head(), &payload.block()[parts.offset..parts.offset + parts.len]].concat()
    }

    /// Whole, byte by byte, and cut in two at every place: the integrity must be the same.
    fn check(payload: &Payload, expected_len: u32, bytes: &[u8], expected: Integrity) {
        let wanted = Expected::Version { version: 1, len: expected_len };
        assert_eq!(Verifier::verify(payload, 7, wanted, bytes), expected, "whole");
        let integrity = |pieces: &[&[u8]]| {
            let mut verifier = Verifier::new(7, Expected::Version { version: 1, len: expected_len });
            pieces.iter().for_each(|piece| verifier.feed(payload, piece));
            verifier.finish(payload)
        };
        assert_eq!(integrity(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(integrity(&[first, second]), expected, "cut at {cut} of {}", bytes.len());
        }
    }

    #[test]
    fn grown_and_foreign_values() {
        let payload = Payload::new(1, 300);
        let integrity = |expected, bytes: &[u8]| {
            let mut verifier = Verifier::new(7, expected);
            bytes.chunks(7).for_each(|piece| verifier.feed(&payload, piece));
            let integrity = verifier.finish(&payload);
            assert_eq!(Verifier::verify(&payload, 7, expected, bytes), integrity, "whole");
            integrity
        };
        let (own, other) = (value(&payload, 7, 0, 100), value(&payload, 8, 0, 100));
        let prepended = [value(&payload, 7, 1, 100), own.clone()].concat();
        let spliced = [&own[..50], &other[50..]].concat();
        let grown = Expected::Grown { len_min: 100 };
        assert_eq!(integrity(grown, &own), Integrity::Intact);
        assert_eq!(integrity(grown, &prepended), Integrity::Intact);
        assert_eq!(integrity(grown, &own[..60]), Integrity::Truncated);
        assert_eq!(integrity(grown, &other), Integrity::WrongKey { id: 8 });
        assert_eq!(integrity(grown, &[b'x'; 100]), Integrity::Torn);
        assert_eq!(integrity(Expected::Grown { len_min: 5 }, b"abcde"), Integrity::Intact);
        let named = |len| Expected::Named { len, own_len: 100 };
        assert_eq!(integrity(named(100), &own), Integrity::Intact);
        assert_eq!(
            integrity(named(40), &own[..40]),
            Integrity::Intact,
            "another length is another run's data set"
        );
        assert_eq!(integrity(named(200), &prepended), Integrity::Intact, "it has grown since");
        assert_eq!(integrity(named(100), &spliced), Integrity::Torn);
        assert_eq!(integrity(named(100), &other), Integrity::WrongKey { id: 8 });
        assert_eq!(integrity(named(40), &other[..40]), Integrity::WrongKey { id: 8 });
        assert_eq!(integrity(named(100), &[b'x'; 100]), Integrity::Foreign);
        assert_eq!(integrity(named(400), &[b'x'; 400]), Integrity::Foreign);
        assert_eq!(integrity(named(5), b"abcde"), Integrity::Foreign);
    }

    #[test]
    fn values_of_any_version() {
        let payload = Payload::new(1, 5_000);
        let judged = |len: u32, is_ours: bool, bytes: &[u8]| {
            let integrity = |piece: usize| {
                let mut verifier = Verifier::new(7, Expected::Written { len, is_ours, whole: true });
                bytes.chunks(piece).for_each(|piece| verifier.feed(&payload, piece));
                (verifier.finish(&payload), verifier.version(&payload))
            };
            let whole = integrity(bytes.len().max(1));
            for piece in [1, 7, 15, 16, 17] {
                assert_eq!(integrity(piece), whole, "pieces of {piece}");
            }
            assert_eq!(
                Verifier::verify(&payload, 7, Expected::Written { len, is_ours, whole: true }, bytes),
                whole.0
            );
            whole
        };
        let own = |version, len| value(&payload, 7, version, len);
        for version in [0, 1, u32::MAX] {
            for len in [16, 17, 100, 5_000] {
                assert_eq!(judged(len, true, &own(version, len)), (Integrity::Intact, Some(version)));
            }
            for len in [0, 3, 15] {
                assert_eq!(judged(len, true, &own(version, len)), (Integrity::Intact, None));
            }
        }
        // Every byte counts, those in the middle too.
        for at in [16, 100, 2_500, 4_999] {
            let mut torn = own(2, 5_000);
            torn[at] ^= 1;
            assert_eq!(judged(5_000, true, &torn), (Integrity::Torn, Some(2)), "{at}");
        }
        let spliced = [&own(1, 100)[..60], &own(2, 100)[60..]].concat();
        let other = value(&payload, 8, 1, 100);
        for (len, is_ours, bytes, expected) in [
            (100, true, &spliced, Integrity::Torn),
            (100, true, &other, Integrity::WrongKey { id: 8 }),
            (100, false, &other, Integrity::WrongKey { id: 8 }),
            (100, true, &own(1, 99), Integrity::Truncated),
            (100, true, &own(1, 5), Integrity::Truncated),
            (100, true, &own(1, 101), Integrity::Overlong),
            (10, true, &own(1, 30), Integrity::Overlong),
            (100, true, &vec![b'x'; 100], Integrity::Torn),
            (100, false, &vec![b'x'; 100], Integrity::Foreign),
            (5, false, &b"abcde".to_vec(), Integrity::Foreign),
        ] {
            assert_eq!(judged(len, is_ours, bytes).0, expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn exact_and_laid_values_are_compared_whole() {
        let payload = Payload::new(1, 5_000).with_table(&[7; 3_000]);
        let laid = payload.laid(1_000, 2_000);
        let laid_value = payload.block()[laid.offset..][..laid.len].to_vec();
        assert_eq!(laid_value, [7; 2_000]);
        let (offset, len) = (laid.offset as u32, 2_000);
        for (expected, own) in [
            (Expected::Laid { offset, len }, laid_value),
            (Expected::Exact { version: 3, len }, value(&payload, 7, 3, len)),
        ] {
            let integrity = |bytes: &[u8]| {
                let mut verifier = Verifier::new(7, expected);
                bytes.chunks(97).for_each(|piece| verifier.feed(&payload, piece));
                let integrity = verifier.finish(&payload);
                assert_eq!(Verifier::verify(&payload, 7, expected, bytes), integrity, "whole");
                integrity
            };
            assert_eq!(integrity(&own), Integrity::Intact);
            assert_eq!(integrity(&own[..1_999]), Integrity::Truncated);
            assert_eq!(integrity(&[&own[..], &[7]].concat()), Integrity::Overlong);
            for at in [0, 500, 1_000, 1_999] {
                let mut torn = own.clone();
                torn[at] ^= 1;
                assert_eq!(integrity(&torn), Integrity::Torn, "{expected:?} {at}");
            }
        }
    }

    /// Where a value goes wrong is known to the byte, from the piece on in which it does.
    #[test]
    fn the_first_wrong_byte_is_reported() {
        let payload = Payload::new(1, 5_000).with_table(&[7; 3_000]);
        let laid = payload.laid(1_000, 40);
        let laid_value = payload.block()[laid.offset..][..laid.len].to_vec();
        for (expected, own) in [
            (Expected::Laid { offset: laid.offset as u32, len: 40 }, laid_value),
            (Expected::Exact { version: 3, len: 40 }, value(&payload, 7, 3, 40)),
            (Expected::Exact { version: 3, len: 5 }, value(&payload, 7, 3, 5)),
        ] {
            let longer = [&own[..], &[7; 30]].concat();
            let torn = (0..own.len()).map(|at| {
                let mut torn = own.clone();
                torn[at..].iter_mut().for_each(|byte| *byte ^= 1);
                (torn, at)
            });
            let cut = (0..=own.len()).map(|len| (own[..len].to_vec(), len));
            for (bytes, right) in torn.chain(cut).chain([(longer, own.len())]) {
                for piece in [1, 7, 100] {
                    let mut verifier = Verifier::new(7, expected);
                    let parts = verifier.of_window(&payload).unwrap();
                    for piece in bytes.chunks(piece) {
                        verifier.feed(&payload, piece);
                        let received = verifier.received_len() as usize;
                        assert_eq!(verifier.right_len(&parts), right.min(received), "{expected:?} {right}");
                    }
                }
            }
        }
        let mut expired = Verifier::new(7, Expected::Expired { age_ms: 70_000 });
        expired.feed(&payload, b"anything");
        assert_eq!((expired.finish(&payload), expired.expired_ms()), (Integrity::Intact, Some(70_000)));
        assert_eq!(expired.right_len(&expired.of_window(&payload).unwrap()), 0);
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
        check(&payload, 100, &value(&payload, NAMED_BY_TEXT | 7, 1, 100), Integrity::Foreign);
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
        // Of long values the front and the end are compared.
        let long = Payload::new(1, 5_000);
        check(&long, 5_000, &value(&long, 7, 1, 5_000), Integrity::Intact);
        for (at, integrity) in [(500, Integrity::Torn), (3_000, Integrity::Intact), (4_990, Integrity::Torn)]
        {
            let mut torn = value(&long, 7, 1, 5_000);
            torn[at] ^= 1;
            check(&long, 5_000, &torn, integrity);
        }
        let spliced = [&own(100)[..50], &value(&payload, 8, 1, 100)[50..]].concat();
        check(&payload, 100, &spliced, Integrity::Torn);
    }
}
