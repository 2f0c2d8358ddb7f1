//! The data set of a class as functions of ids: key text and lengths.
//!
//! Nothing is stored per key. Key text is the prefix and the number of the key in decimal, zero-padded to the key's length; numbers are
//! ids, counted from that of the first key. Two ids share a text only if they share length and digits, so no two do. Of other forms the text behind the prefix is `keys/text.rs`'s.
//! Where a data set has counters, there is a counter beside every key: an id of its own, `keys` above that of the key.

pub(crate) mod memaslap;
mod text;

use self::memaslap::Layout;
use self::text::Text;
use crate::payload::{Payload, ValueParts};
use crate::size::{SizeOf, Sizes};
use crate::verify::Expected;
use brunt_plan::plan::{DataSet, KEY_BYTES_MAX, KeyForm, Keyspace, ValueForm};
use brunt_plan::popularity::ObjectWindow;
use brunt_plan::size::SizeDistribution;
use std::sync::Arc;

/// What a counter holds after preload: far enough above 0, where decr stops, and as far below 2⁶⁴, where incr wraps, that
/// no run gets there by steps of 1.
pub const COUNTER_START: &[u8] = b"1000000000";

/// Keys that are no longer are written as a whole block, and cut to their length.
const BLOCK_LEN: usize = 32;

/// The most digits of ids that are written all at once.
const DIGITS: usize = 10;

/// The numbers from 0 to 99 in two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// A number below 10⁸ in eight digits, the first one in the lowest place: halved into fours, twos and ones, all parts of
/// a step in one multiplication.
#[inline]
const fn eight_digits(number: u64) -> u64 {
    // Each step puts the quotient of every part into its lower half and the rest into its upper half: with q = x / d, that
    // is q + (x - q d) << half, or x << half less q times (d << half) - 1. The factors are 1/d in fixed point, exact over the
    // ranges (Lemire, Kaser, Kurz, SPE 2019); a test goes through all of them.
    let fours = (number * 109_951_163) >> 40;
    let number = (number << 32) - fours * ((10_000 << 32) - 1);
    let twos = ((number * 5_243) >> 19) & 0x0000_007F_0000_007F;
    let number = (number << 16) - twos * ((100 << 16) - 1);
    let ones = ((number * 103) >> 10) & 0x000F_000F_000F_000F;
    ((number << 8) - ones * ((10 << 8) - 1)) | 0x3030_3030_3030_3030
}

/// An id of at most ten digits in ten digits, at the same price whatever it is.
#[inline]
fn last_digits(id: u64) -> Option<[u8; DIGITS]> {
    let eights = id / 100_000_000;
    let pair = PAIRS.get(eights as usize)?;
    let mut digits = [0; DIGITS];
    digits[..2].copy_from_slice(pair);
    digits[2..].copy_from_slice(&eight_digits(id - eights * 100_000_000).to_le_bytes());
    Some(digits)
}

/// The length of keys that can be written as a block and [`DIGITS`]; 0 where they cannot.
fn plain_len(keyspace: &Keyspace) -> usize {
    let lens = keyspace.prefix.len() + DIGITS..=BLOCK_LEN;
    match (keyspace.key_form, &keyspace.key_size) {
        _ if keyspace.first_key > 0 => 0,
        (KeyForm::Decimal, SizeDistribution::Fixed(len)) if lens.contains(&(*len as usize)) => *len as usize,
        _ => 0,
    }
}

/// Bytes that are compared and copied at once: keys of between one and two of these are done as two that overlap.
const HALF: usize = BLOCK_LEN / 2;

/// Are these the same, of which both have the same length? Without a call where they are two halves that overlap.
#[inline(always)]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    match (left.first_chunk::<HALF>(), left.last_chunk::<HALF>(), right.first_chunk(), right.last_chunk()) {
        (Some(front), Some(back), Some(right_front), Some(right_back)) if left.len() <= 2 * HALF => {
            (front == right_front) & (back == right_back)
        }
        _ => left == right,
    }
}

/// Keys and lengths of values of one [`DataSet`] under one data seed.
#[derive(Clone, Debug)]
pub struct KeyGenerator {
    keys: u64,
    /// Keys and counters: ids are below this.
    ids: u64,
    key_sizes: Sizes,
    value_sizes: Sizes,
    /// The prefix and as many zeros as the longest key has room for, and a block at least: every key but for its digits.
    template: Vec<u8>,
    prefix_len: usize,
    /// What is behind the prefix, where that is not decimal.
    text: Option<Text>,
    /// How the objects of windows are laid out, where that is memaslap's way.
    layout: Option<Arc<Layout>>,
    /// The number of id 0, from which those of the others count on.
    first_key: u64,
    /// Values are zeros throughout.
    has_zeros: bool,
    /// The bits of an id that are in its key: in windows the others are the place there.
    number_mask: u64,
    /// How long every key is, where all are decimal and equally long, have room for [`DIGITS`] behind the prefix and are no longer than
    /// a block; else 0, which no key is.
    plain_len: usize,
}

impl KeyGenerator {
    /// The data set as resolved (every id fits behind the prefix) under `data_seed`.
    pub fn new(set: &DataSet<'_>, data_seed: u64) -> Self {
        let keyspace = set.keyspace;
        let is_laid = keyspace.key_form.is_memaslap();
        let layout = set.windows.filter(|_| is_laid);
        let layout = layout.map(|windows| Arc::new(Layout::new(keyspace, &windows, data_seed)));
        let sizes = |size: &SizeDistribution, of| match &layout {
            Some(layout) => Sizes::laid(size, of, layout.clone()),
            None => Sizes::new(size.clone(), of, data_seed),
        };
        let key_sizes = sizes(&keyspace.key_size, SizeOf::Key);
        let prefix_len = keyspace.prefix.len();
        let first_key = keyspace.first_key;
        let numbers = if keyspace.key_form == KeyForm::Hex8 { set.ids() } else { first_key + set.ids() };
        let digits = keyspace.key_form.bytes_needed(numbers) as usize;
        assert!(
            prefix_len + digits <= keyspace.key_size.min() as usize,
            "{digits} digits do not fit behind '{}'",
            keyspace.prefix
        );
        let text_len_min = keyspace.key_size.min() - prefix_len as u32;
        let mut template = keyspace.prefix.as_bytes().to_vec();
        template.resize((key_sizes.max() as usize).max(BLOCK_LEN), b'0');
        // The ids of windows have the place there above the number.
        let has_windows = set.windows.is_some();
        let (keys, ids) = if has_windows { (u64::MAX, u64::MAX) } else { (keyspace.keys, set.ids()) };
        Self {
            keys,
            ids,
            value_sizes: sizes(&keyspace.value_size, SizeOf::Value),
            key_sizes,
            template,
            prefix_len,
            text: Text::new(keyspace.key_form, text_len_min, data_seed, layout.as_ref()),
            layout,
            first_key,
            has_zeros: keyspace.value_form == ValueForm::Zeros,
            number_mask: if has_windows { ObjectWindow::NUMBERS_MAX - 1 } else { u64::MAX },
            plain_len: if has_windows { 0 } else { plain_len(keyspace) },
        }
    }

    /// How many keys there are; their ids are below this.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Is this the id of a counter: `keys <= id < 2 · keys`, in a data set that counts?
    #[inline]
    pub fn is_counter(&self, id: u64) -> bool {
        (self.keys..self.ids).contains(&id)
    }

    /// Length of the key of `id` in bytes, prefix included.
    #[inline]
    pub fn key_len(&self, id: u64) -> usize {
        self.key_sizes.len(id) as usize
    }

    /// The value of `id` in this version, out of a payload that has the table where there is one.
    pub fn value(&self, payload: &Payload, id: u64, version: u32) -> ValueParts {
        let len = self.value_len(id);
        match &self.layout {
            Some(layout) => payload.laid(layout.offset(id, version), len),
            None if self.has_zeros => payload.zeros(len),
            None => payload.value(id, version, len),
        }
    }

    /// Do values consist of anything but a head and noise?
    pub fn has_laid_values(&self) -> bool {
        self.layout.is_some() || self.has_zeros
    }

    /// Are they zeros throughout?
    pub fn has_zeros(&self) -> bool {
        self.has_zeros
    }

    /// The number that the key of `id` shows.
    #[inline]
    fn number_of(&self, id: u64) -> u64 {
        (id & self.number_mask) + self.first_key
    }

    /// What is to be found where this version of a window's object was stored, every byte of it.
    pub fn expected(&self, payload: &Payload, id: u64, version: u32) -> Expected {
        let len = self.value_len(id);
        match &self.layout {
            // The block is no longer than the longest value and the table.
            Some(_) => Expected::Laid { offset: self.value(payload, id, version).offset as u32, len },
            None => Expected::Exact { version, len },
        }
    }

    /// The table that values are cut from, where they are laid out as memaslap does it.
    pub fn table(&self) -> Option<&[u8]> {
        self.layout.as_ref().map(|layout| layout.table())
    }

    /// The longest key in bytes.
    pub fn key_len_max(&self) -> usize {
        self.key_sizes.max() as usize
    }

    /// Length of the value of `id` in bytes, the same for all versions; of a counter, what preload stores.
    #[inline]
    pub fn value_len(&self, id: u64) -> u32 {
        if id < self.keys { self.value_sizes.len(id) } else { COUNTER_START.len() as u32 }
    }

    /// The longest value in bytes.
    pub fn value_len_max(&self) -> u32 {
        let counter = if self.ids > self.keys { COUNTER_START.len() as u32 } else { 0 };
        self.value_sizes.max().max(counter)
    }

    /// Appends the key of `id`, that of a key or a counter.
    #[inline]
    pub fn write_key(&self, id: u64, out: &mut Vec<u8>) {
        debug_assert!(id < self.ids, "{id} is not below {}", self.ids);
        let start = out.len();
        out.resize(start + self.key_len(id), 0);
        self.write_key_to(id, &mut out[start..]);
    }

    /// Writes the key of `id` into its place, which is as long as [`KeyGenerator::key_len`] says: one that need not be
    /// copied need not be read again either.
    #[inline]
    pub fn write_key_to(&self, id: u64, place: &mut [u8]) {
        let template = &self.template[..place.len().min(self.template.len())];
        match (last_digits(id), template.first_chunk::<HALF>(), template.last_chunk::<HALF>()) {
            (Some(digits), Some(front), Some(back)) if place.len() == self.plain_len => {
                // Each in one piece, the later ones over what the earlier ones have too much.
                place.first_chunk_mut().into_iter().for_each(|place| *place = *front);
                place.last_chunk_mut().into_iter().for_each(|place| *place = *back);
                place.last_chunk_mut().into_iter().for_each(|place| *place = digits);
            }
            _ => self.write_key_bytewise(id, place),
        }
    }

    /// [`KeyGenerator::write_key_to`] byte by byte.
    #[inline(never)]
    fn write_key_bytewise(&self, id: u64, place: &mut [u8]) {
        place.copy_from_slice(&self.template[..place.len()]);
        if let Some(text) = &self.text {
            let is_laid = self.layout.is_some();
            return text.write(if is_laid { id } else { self.number_of(id) }, &mut place[self.prefix_len..]);
        }
        let mut rest = self.number_of(id);
        let mut at = place.len();
        // From the last digit: the zeros above the first one are there already.
        while rest > 0 {
            at -= 1;
            place[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Is this the key of `id`? The same as writing it and comparing, without the writing.
    #[inline(always)]
    pub fn is_key_of(&self, id: u64, key: &[u8]) -> bool {
        if key.len() == self.plain_len
            && let Some((front, last)) = key.split_last_chunk()
            && let Some(digits) = last_digits(id)
        {
            *last == digits && is_same(front, &self.template[..front.len()])
        } else {
            self.is_key_of_bytewise(id, key)
        }
    }

    /// [`KeyGenerator::is_key_of`] for a key of any length and form, byte by byte.
    #[inline(never)]
    fn is_key_of_bytewise(&self, id: u64, key: &[u8]) -> bool {
        if key.len() != self.key_len(id) {
            return false;
        }
        if self.text.is_some() {
            let mut own = [0; KEY_BYTES_MAX as usize];
            let own = &mut own[..key.len()];
            self.write_key_bytewise(id, own);
            return key == own;
        }
        let mut rest = self.number_of(id);
        let mut at = key.len();
        while rest > 0 {
            at -= 1;
            if key[at] != b'0' + (rest % 10) as u8 {
                return false;
            }
            rest /= 10;
        }
        key[..at] == self.template[..at]
    }

    /// The id whose key this is, if it is a decimal one of ours: then the inverse of [`KeyGenerator::write_key`].
    #[inline]
    pub fn id_of_key(&self, key: &[u8]) -> Option<u64> {
        // No key tells the place of its object, nor is text that is not decimal looked up.
        if self.number_mask != u64::MAX || self.text.is_some() {
            return None;
        }
        let digits = key.strip_prefix(&self.template[..self.prefix_len])?;
        let number = digits.iter().try_fold(0u64, |number, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| number.checked_mul(10)?.checked_add(u64::from(digit))).flatten()
        })?;
        let id = number.checked_sub(self.first_key)?;
        (id < self.ids && self.key_len(id) == key.len()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;
    use brunt_plan::shard::share;
    use proptest::prelude::*;

    /// What tests say nothing else of.
    fn of_keys(keys: u64) -> Keyspace {
        Keyspace {
            keys,
            prefix: String::new(),
            key_form: KeyForm::Decimal,
            first_key: 0,
            key_size: SizeDistribution::Fixed(30),
            value_size: SizeDistribution::Fixed(1),
            value_form: ValueForm::Random,
        }
    }

    fn of_data_set(keyspace: &Keyspace, has_counters: bool, data_seed: u64) -> KeyGenerator {
        let set = DataSet {
            keyspace,
            classes: vec![0],
            home: vec![None],
            copies: 1,
            replicas: 1,
            has_counters,
            extends: false,
            ttl_s: 0,
            windows: None,
        };
        KeyGenerator::new(&set, data_seed)
    }

    fn keyspace(keys: u64, prefix: &str, key_size: SizeDistribution) -> KeyGenerator {
        let value_size = SizeDistribution::Uniform { min: 0, max: 9 };
        of_data_set(&Keyspace { prefix: prefix.to_owned(), key_size, value_size, ..of_keys(keys) }, false, 1)
    }

    fn key(space: &KeyGenerator, id: u64) -> String {
        let mut out = b"> ".to_vec();
        space.write_key(id, &mut out);
        String::from_utf8(out[2..].to_vec()).unwrap()
    }

    #[test]
    fn keys_are_prefix_and_padded_id() {
        let table = [
            (100_000, "", 30, 0, "000000000000000000000000000000"),
            (100_000, "", 30, 99_999, "000000000000000000000000099999"),
            (100, "k-", 4, 7, "k-07"),
            (10, "", 1, 9, "9"),
            (u64::MAX, "p:", 22, u64::MAX - 1, "p:18446744073709551614"),
        ];
        for (keys, prefix, size, id, expected) in table {
            let space = keyspace(keys, prefix, SizeDistribution::Fixed(size));
            assert_eq!(key(&space, id), expected);
            assert_eq!(space.id_of_key(expected.as_bytes()), Some(id));
        }
    }

    proptest! {
        #[test]
        fn keys_agree_with_the_formatter(
            keys in 1..=u64::MAX, id in any::<u64>(), prefix in "[a-z:]{0,8}", spread in 0..30u32,
        ) {
            let id = id % keys;
            let min = prefix.len() as u32 + 20;
            let space = keyspace(keys, &prefix, SizeDistribution::Uniform { min, max: min + spread });
            let text = key(&space, id);
            let width = space.key_len(id) - prefix.len();
            prop_assert_eq!(&text, &format!("{prefix}{id:0width$}"));
            prop_assert!(space.is_key_of(id, text.as_bytes()));
            let mut other = text.into_bytes();
            let at = (id % other.len() as u64) as usize;
            other[at] ^= 1;
            prop_assert!(!space.is_key_of(id, &other));
            prop_assert!(!space.is_key_of(id, &other[1..]));
        }

        #[test]
        fn distinct_ids_never_collide(first in 0..10_000u64, second in 0..10_000u64, seed in any::<u64>()) {
            let size = SizeDistribution::Uniform { min: 5, max: 8 };
            let value_size = SizeDistribution::Fixed(1);
            let keyspace = Keyspace { prefix: "0".to_owned(), key_size: size, value_size, ..of_keys(10_000) };
            let space = of_data_set(&keyspace, false, seed);
            prop_assert_eq!(key(&space, first) == key(&space, second), first == second);
        }
    }

    #[test]
    fn each_form_has_its_text() {
        // (form, size, data seed, id, text): golden, for a data set that one release has stored another one reads.
        let table = [
            (KeyForm::Decimal, 14, 1, 42, "mcp:0000000042"),
            (KeyForm::Hex8, 12, 1, 42, "mcp:0000002a"),
            (KeyForm::Hex8, 12, 2, 0xFFFF_FFFF, "mcp:ffffffff"),
            (KeyForm::Hex8, 20, 1, 42, "mcp:0000002ar8NwisJf"),
            (KeyForm::Random, 7, 1, 42, "mcp:hV8"),
            (KeyForm::Random, 7, 2, 42, "mcp:c1T"),
            (KeyForm::Random, 24, 1, 42, "mcp:Jic7zO6aOer8NwisJfY5"),
        ];
        for (key_form, size, seed, id, expected) in table {
            let keyspace = Keyspace {
                prefix: "mcp:".to_owned(),
                key_form,
                key_size: SizeDistribution::Fixed(size),
                ..of_keys(if key_form == KeyForm::Random { 62 * 62 * 62 } else { 1 << 32 })
            };
            let space = of_data_set(&keyspace, false, seed);
            assert_eq!(key(&space, id), expected, "{key_form} of {size}");
        }
    }

    #[test]
    fn numbers_count_on_from_the_first_key() {
        // (form, size, first, keys, id, text)
        let table = [
            (KeyForm::Decimal, 30, 1, 100, 0, "000000000000000000000000000001"),
            (KeyForm::Decimal, 4, 9_900, 100, 99, "9999"),
            (KeyForm::Decimal, 20, u64::MAX - 7, 7, 6, "18446744073709551614"),
            (KeyForm::Hex8, 8, 1, 1 << 32, 0, "00000001"),
            (KeyForm::Hex8, 8, 1, 1 << 32, 0xFFFF_FFFF, "00000000"),
            (KeyForm::Hex8, 8, 0xFFFF_FFFF, 3, 2, "00000001"),
            (KeyForm::Random, 3, 42, 1, 0, "hV8"),
        ];
        for (key_form, size, first_key, keys, id, expected) in table {
            let key_size = SizeDistribution::Fixed(size);
            let keyspace = Keyspace { key_form, first_key, key_size, ..of_keys(keys) };
            let space = of_data_set(&keyspace, false, 1);
            assert_eq!(key(&space, id), expected, "{key_form} {first_key}");
            let is_decimal = key_form == KeyForm::Decimal;
            assert_eq!(
                space.id_of_key(expected.as_bytes()),
                is_decimal.then_some(id),
                "{key_form} {first_key}"
            );
            assert!(space.is_key_of(id, expected.as_bytes()));
            // The keys before and behind them are not theirs.
            let before = of_data_set(&Keyspace { first_key: first_key - 1, ..keyspace.clone() }, false, 1);
            let stranger = key(&before, 0);
            assert!(!space.is_key_of(0, stranger.as_bytes()));
            assert_eq!(space.id_of_key(stranger.as_bytes()), None, "{stranger}");
        }
    }

    /// Keys of all lengths from the shortest that can be on, and of as many ids as that has room for.
    #[test]
    fn keys_are_distinct() {
        for (key_form, keys, min, max) in [
            (KeyForm::Decimal, 10_000, 4, 7),
            (KeyForm::Hex8, 20_000, 8, 30),
            (KeyForm::Random, 62, 1, 1),
            (KeyForm::Random, 62 * 62, 2, 5),
            (KeyForm::Random, 62 * 62 * 62, 3, 3),
            (KeyForm::Random, 200_000, 30, 30),
            (KeyForm::Random, 20_000, 9, 250),
        ] {
            for has_counters in [false, true] {
                let keyspace = Keyspace {
                    key_form,
                    key_size: SizeDistribution::Uniform { min, max },
                    ..of_keys(if has_counters { keys / 2 } else { keys })
                };
                let space = of_data_set(&keyspace, has_counters, 9);
                let mut texts = std::collections::HashSet::new();
                for id in 0..keys {
                    let text = key(&space, id);
                    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{text}");
                    assert!(
                        space.is_key_of(id, text.as_bytes()) && !space.is_key_of(id ^ 1, text.as_bytes())
                    );
                    let is_decimal = key_form == KeyForm::Decimal;
                    assert_eq!(
                        space.id_of_key(text.as_bytes()),
                        is_decimal.then_some(id),
                        "{key_form} {text}"
                    );
                    texts.insert(text);
                }
                assert_eq!(texts.len() as u64, keys, "{key_form} of {min} to {max} bytes");
            }
        }
    }

    #[test]
    fn foreign_keys_have_no_id() {
        for key_form in [KeyForm::Decimal, KeyForm::Hex8, KeyForm::Random] {
            let keyspace = Keyspace {
                prefix: "p:".to_owned(),
                key_form,
                key_size: SizeDistribution::Fixed(16),
                ..of_keys(1_000)
            };
            let space = of_data_set(&keyspace, false, 1);
            let text = key(&space, 700).into_bytes();
            for at in 0..text.len() {
                for byte in [b'A', b'g', b'-', 0xFF] {
                    let mut other = text.clone();
                    other[at] = byte;
                    let id = space.id_of_key(&other);
                    assert!(
                        other == text || id.is_none_or(|id| id != 700 && key(&space, id).as_bytes() == other)
                    );
                    assert_eq!(space.is_key_of(700, &other), other == text);
                }
            }
            assert_eq!(
                (space.id_of_key(&text[..15]), space.id_of_key(b"p:"), space.id_of_key(b"")),
                (None, None, None)
            );
        }
    }

    #[test]
    fn letters_are_evenly_frequent() {
        // 62 letters at every place: chi-square with 61 degrees of freedom is below 106.5 in all but 1 of 3 500 samples.
        let keyspace = Keyspace {
            key_form: KeyForm::Random,
            key_size: SizeDistribution::Fixed(20),
            ..of_keys(1_000_000)
        };
        let space = of_data_set(&keyspace, false, 1);
        let texts: Vec<String> = (0..12_400).map(|id| key(&space, id)).collect();
        for place in 0..20 {
            let mut has_counters = std::collections::BTreeMap::<u8, f64>::new();
            texts.iter().for_each(|text| *has_counters.entry(text.as_bytes()[place]).or_default() += 1.0);
            let chi_square: f64 = has_counters.values().map(|count| (count - 200.0).powi(2) / 200.0).sum();
            assert!(has_counters.len() == 62 && chi_square < 106.5, "place {place}: {chi_square}");
        }
    }

    #[test]
    fn counters_are_ids_beside_the_keys() {
        let sizes = (SizeDistribution::Fixed(8), SizeDistribution::Fixed(200));
        let keyspace =
            Keyspace { prefix: "k-".to_owned(), key_size: sizes.0, value_size: sizes.1, ..of_keys(50) };
        let (counting, plain) = (of_data_set(&keyspace, true, 1), of_data_set(&keyspace, false, 1));
        for (id, text, is_counter, value_len) in [
            (0, "k-000000", false, 200),
            (49, "k-000049", false, 200),
            (50, "k-000050", true, 10),
            (99, "k-000099", true, 10),
        ] {
            assert_eq!(key(&counting, id), text);
            assert_eq!(counting.id_of_key(text.as_bytes()), Some(id));
            assert_eq!((counting.is_counter(id), counting.value_len(id)), (is_counter, value_len), "{text}");
            assert_eq!(plain.id_of_key(text.as_bytes()), (!is_counter).then_some(id));
            assert!(!plain.is_counter(id));
        }
        assert!(!counting.is_counter(100) && counting.id_of_key(b"k-000100").is_none());
        assert!((0..50).all(|id| counting.is_counter(counting.keys() + id)));
        assert_eq!((counting.keys(), counting.value_len_max(), plain.value_len_max()), (50, 200, 200));
        assert_eq!(std::str::from_utf8(COUNTER_START).unwrap().parse(), Ok(1_000_000_000u64));
    }

    #[test]
    fn a_counter_may_be_the_longest_value_and_need_the_last_digit() {
        let key_size = SizeDistribution::Fixed(20);
        let value_size = SizeDistribution::Fixed(3);
        let keyspace = Keyspace { key_size, value_size, ..of_keys(u64::MAX / 2) };
        let space = of_data_set(&keyspace, true, 1);
        assert_eq!(key(&space, 2 * space.keys() - 1), "18446744073709551613");
        assert_eq!(space.value_len_max(), 10);
    }

    #[test]
    #[should_panic(expected = "3 digits do not fit behind 'k'")]
    fn the_digits_of_the_last_counter_must_fit() {
        let (key_size, value_size) = (SizeDistribution::Fixed(3), SizeDistribution::Fixed(1));
        of_data_set(&Keyspace { prefix: "k".to_owned(), key_size, value_size, ..of_keys(51) }, true, 1);
    }

    #[test]
    fn values_depend_on_the_data_seed_alone() {
        // One process writes keys and values of the whole data set; agents that know the plan alone write a share each.
        let keyspace = || Keyspace {
            prefix: "a:".to_owned(),
            key_size: SizeDistribution::Uniform { min: 12, max: 40 },
            value_size: SizeDistribution::Uniform { min: 0, max: 300 },
            ..of_keys(1_000)
        };
        let agent = |ids: std::ops::Range<u64>| {
            let (space, payload) = (of_data_set(&keyspace(), true, 7), Payload::new(7, 300));
            let mut bytes = Vec::new();
            for id in ids {
                space.write_key(id, &mut bytes);
                let parts = payload.value(id, 0, space.value_len(id));
                bytes.extend_from_slice(parts.head());
                bytes.extend_from_slice(&payload.block()[parts.offset..parts.offset + parts.len]);
            }
            bytes
        };
        let whole = agent(0..2_000);
        for agents in [2, 3, 7] {
            let shares: Vec<u8> = (0..agents).flat_map(|index| agent(share(2_000, index, agents))).collect();
            assert!(shares == whole, "{agents} agents");
        }
        // Golden, by FNV-1a: nor may another release or another machine write anything else.
        let hash = whole.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!((whole.len(), hash), (212_569, 5_864_391_150_001_014_573));
    }

    #[test]
    fn eight_digits_are_those_of_the_library() {
        // A division that is exact on both sides of every multiple is exact between them too.
        for four in 0..10_000u64 {
            for number in [four * 10_000, four * 10_000 + 9_999, four * 10_000 + four, four] {
                assert_eq!(&eight_digits(number).to_le_bytes(), format!("{number:08}").as_bytes());
            }
        }
    }

    #[test]
    fn all_ways_to_write_and_to_compare_a_key_agree() {
        let powers = (0..20).map(|exponent| 10u64.pow(exponent));
        let ids: Vec<u64> = powers.flat_map(|power| [power - 1, power, power + 7]).collect();
        for (prefix, len) in [
            ("", 20),
            ("", 25),
            ("four", 26),
            ("", 30),
            ("p", 30),
            ("key-", 24),
            ("twelve-bytes", 32),
            ("twelve-bytes", 33),
            ("p", 250),
        ] {
            let space = keyspace(u64::MAX, prefix, SizeDistribution::Fixed(len));
            for id in &ids {
                let mut text = b"before".to_vec();
                space.write_key(*id, &mut text);
                let mut by_digits = b"before".to_vec();
                by_digits.resize(text.len(), b'?');
                space.write_key_bytewise(*id, &mut by_digits[6..]);
                let digits = len as usize - prefix.len();
                assert_eq!(text, format!("before{prefix}{id:0digits$}").as_bytes());
                assert_eq!(text, by_digits);
                let mut in_place = vec![b'?'; len as usize];
                space.write_key_to(*id, &mut in_place);
                assert_eq!(in_place, text[6..]);
                let key = &mut text[6..];
                assert!(space.is_key_of(*id, key) && space.is_key_of_bytewise(*id, key));
                assert!(!space.is_key_of(*id, &key[1..]) && !space.is_key_of(id ^ 1, key));
                assert!(!space.is_key_of_bytewise(*id, &key[1..]) && !space.is_key_of_bytewise(id ^ 1, key));
                for at in 0..key.len() {
                    key[at] ^= 1;
                    assert!(
                        !space.is_key_of(*id, key) && !space.is_key_of_bytewise(*id, key),
                        "{prefix} {id} {at}"
                    );
                    key[at] ^= 1;
                }
            }
        }
    }

    #[test]
    fn keys_of_one_request_are_contiguous() {
        let space = keyspace(100_000, "k", SizeDistribution::Uniform { min: 6, max: 40 });
        let mut bytes = Vec::with_capacity(100 * 40);
        let (mut expected, room) = (String::new(), bytes.capacity());
        for id in (0..100).map(|number| number * 997) {
            space.write_key(id, &mut bytes);
            expected.push_str(&key(&space, id));
        }
        assert_eq!((bytes, room), (expected.into_bytes(), 100 * 40));
    }

    #[test]
    fn all_keys_of_a_small_space_are_distinct() {
        let space = keyspace(20_000, "", SizeDistribution::Uniform { min: 5, max: 9 });
        let texts: std::collections::HashSet<String> = (0..20_000).map(|id| key(&space, id)).collect();
        assert_eq!(texts.len(), 20_000);
    }
}
