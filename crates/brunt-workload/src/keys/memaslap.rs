//! Keys and values as memaslap lays them out: a table of characters, and a place in it for every object of a window.
//!
//! All windows of a class have the same lengths and places. A key is the number of its object in eight bytes and characters from the
//! place of the object on; a value is characters from there on, one further for every time that it has been written anew. Invariant:
//! both are functions of the data seed, the id and the version; nothing lies outside the table.

use brunt_plan::plan::{Keyspace, ObjectWindows};
use brunt_plan::popularity::ObjectWindow;
use brunt_plan::size::{SizeDistribution, SizeRange};

/// How long the table is.
const TABLE_LEN: usize = 10 << 20;
/// What it consists of.
const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-";
/// Objects per unit of the layout.
const UNIT: usize = 1024;
/// Their places in the table lie this far apart.
const PLACE_STEP: usize = 8192;
/// Keys and values of an object begin at one of this many bytes from its place on, in turn. (In the original they go on without end.)
const TURNS: u64 = 1 << 20;
/// Each unit is shuffled so often.
const SHUFFLES: usize = 4;

/// The bytes of a key that tell the number of the object.
pub(super) const NUMBER_LEN: usize = 8;
/// Each of them has this bit, so that none is a blank or ends a line, and tells seven bits of the number.
const NUMBER_MARK: u8 = 0x10;

/// Where the objects of windows lie.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    table: Box<[u8]>,
    objects: u64,
    /// Objects of all windows, whose first numbers are those below this.
    all: u64,
    keys: Box<[u32]>,
    values: Box<[u32]>,
    /// In steps.
    places: Box<[u16]>,
}

impl Layout {
    /// The layout of windows whose keys and values have these sizes: fixed, uniform or ranges.
    pub(super) fn new(keyspace: &Keyspace, windows: &ObjectWindows, data_seed: u64) -> Self {
        // The C library's seed has 32 bits.
        let mut random = LibcRandom::new(data_seed as u32);
        // First, so that it is the same for all layouts of a data seed.
        let table = (0..TABLE_LEN).map(|_| ALPHABET[random.next() as usize % ALPHABET.len()]).collect();
        let objects = windows.window.objects as usize;
        let units = objects.div_ceil(UNIT);
        let mut keys = lengths(&keyspace.key_size, units, &mut random);
        let mut values = lengths(&keyspace.value_size, units, &mut random);
        let mut places: Vec<u16> = (0..units * UNIT).map(|place| (place % UNIT) as u16).collect();
        for unit in (0..units * UNIT).step_by(UNIT) {
            for _ in 0..SHUFFLES {
                for one in 0..UNIT {
                    let number = random.next() as usize;
                    let (one, other) = (unit + one, unit + one + number % (UNIT - one));
                    match number % 3 {
                        0 => keys.swap(one, other),
                        1 => places.swap(one, other),
                        _ => values.swap(one, other),
                    }
                }
            }
        }
        keys.truncate(objects);
        values.truncate(objects);
        places.truncate(objects);
        Self {
            objects: objects as u64,
            all: windows.objects(),
            keys: keys.into(),
            values: values.into(),
            places: places.into(),
            table,
        }
    }

    /// The table of characters.
    pub(super) fn table(&self) -> &[u8] {
        &self.table
    }

    /// The place of an object in its window. Its first object has the number alone for an id, too.
    fn place(&self, id: u64) -> usize {
        let number = ObjectWindow::number_of(id);
        (if number < self.all { number % self.objects } else { u64::from(ObjectWindow::place_of(id)) })
            as usize
    }

    pub(crate) fn key_len(&self, id: u64) -> u32 {
        self.keys[self.place(id)]
    }

    pub(crate) fn value_len(&self, id: u64) -> u32 {
        self.values[self.place(id)]
    }

    /// Where in the table an object begins that is written for the `version`th time, from 0. Every object that takes a place begins a byte
    /// behind the one before it, as long as all places are taken in turn.
    pub(super) fn offset(&self, id: u64, version: u32) -> usize {
        let turn = (ObjectWindow::number_of(id) / self.all + u64::from(version)) % TURNS;
        usize::from(self.places[self.place(id)]) * PLACE_STEP + turn as usize
    }

    /// Writes what is behind the prefix in the key of an object.
    pub(super) fn write(&self, id: u64, is_printable: bool, place: &mut [u8]) {
        let (number, suffix) = place.split_at_mut(NUMBER_LEN);
        number.copy_from_slice(&number_bytes(ObjectWindow::number_of(id), is_printable));
        let offset = self.offset(id, 0);
        suffix.copy_from_slice(&self.table[offset..offset + suffix.len()]);
    }
}

/// A number in eight bytes: as memaslap has it, the lowest seven bits first; or printable, as a number is written.
fn number_bytes(number: u64, is_printable: bool) -> [u8; NUMBER_LEN] {
    let digits = std::array::from_fn::<u8, NUMBER_LEN, _>(|digit| {
        let bits = if is_printable { 6 * (NUMBER_LEN - 1 - digit) } else { 7 * digit };
        (number >> bits) as u8
    });
    digits.map(|digit| match is_printable {
        true => ALPHABET[usize::from(digit & 0x3F)],
        // The mark lies in the middle of the seven bits.
        false => digit & 0xF | NUMBER_MARK | (digit & 0x70) << 1,
    })
}

/// The lengths of `units` units, before they are shuffled.
fn lengths(sizes: &SizeDistribution, units: usize, random: &mut LibcRandom) -> Vec<u32> {
    let ranges = match sizes {
        SizeDistribution::Ranges(ranges) => ranges.clone(),
        sizes => vec![SizeRange { min: sizes.min(), max: sizes.max(), share: 1.0 }],
    };
    let mean = ranges.iter().map(|range| range.share * f64::from(range.middle())).sum::<f64>() as u32;
    let mut lengths = Vec::with_capacity(units * UNIT);
    for unit in 1..=units {
        for range in &ranges {
            let (middle, half) = (range.middle(), (range.max - range.min) / 2);
            for nth in 0..(UNIT as f64 * range.share) as usize {
                if lengths.len() == unit * UNIT {
                    break;
                }
                lengths.push(match (half, nth % 2) {
                    (0, _) => middle,
                    (half, 0) => middle + random.next() % half,
                    (half, _) => middle - random.next() % half,
                });
            }
        }
        lengths.resize(unit * UNIT, mean);
    }
    lengths
}

/// How many words feed back.
const DEGREE: usize = 31;
/// How far the two words that are added lie apart.
const SEPARATION: usize = 3;
/// Numbers that the C library throws away when it has been seeded.
const DISCARDED: usize = 10 * DEGREE;

/// The C library's `random()`: the numbers that `srandom(seed)` begins in glibc, by the same additive feedback, the polynomial x³¹ + x³ + 1
/// (Knuth, TAOCP 2, section 3.2.2). No generator of ours: for data sets that are to look as another program would have made them.
#[derive(Clone, Debug)]
pub(crate) struct LibcRandom {
    words: [u32; DEGREE],
    front: usize,
    rear: usize,
}

impl LibcRandom {
    /// As `srandom(seed)` leaves it, which takes 0 for 1.
    pub(crate) fn new(seed: u32) -> Self {
        const MODULUS: i64 = 0x7FFF_FFFF;
        let mut words = [0; DEGREE];
        // Park and Miller's generator, on a seed that counts as signed.
        let mut word = i64::from(seed.max(1) as i32);
        for place in &mut words {
            *place = word as u32;
            word = (word * 16_807) % MODULUS;
            word += if word < 0 { MODULUS } else { 0 };
        }
        let mut random = Self { words, front: SEPARATION, rear: 0 };
        (0..DISCARDED).for_each(|_| _ = random.next());
        random
    }

    /// The next number, from 0 to 2³¹ − 1.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        let sum = self.words[self.front].wrapping_add(self.words[self.rear]);
        self.words[self.front] = sum;
        self.front = (self.front + 1) % DEGREE;
        self.rear = (self.rear + 1) % DEGREE;
        sum >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::plan::{KeyForm, ValueForm};

    fn layout(key_size: &str, value_size: &str, objects: u32, clients: u32) -> Layout {
        let keyspace = Keyspace {
            keys: ObjectWindow::NUMBERS_MAX,
            prefix: String::new(),
            key_form: KeyForm::Memaslap,
            first_key: 0,
            value_form: ValueForm::Random,
            key_size: key_size.parse().unwrap(),
            value_size: value_size.parse().unwrap(),
        };
        let window = ObjectWindow { objects, overwrite: 0.0, expire: 0.0 };
        Layout::new(&keyspace, &ObjectWindows { window, clients, are_prefilled: false }, 1)
    }

    #[test]
    fn numbers_follow_memaslap() {
        // By its rule: a word that always has the marks, counted on.
        let mut word = 0u64;
        for number in 0..3_000_000 {
            word |= 0x1010_1010_1010_1010;
            assert_eq!(number_bytes(number, false), word.to_le_bytes(), "{number}");
            word += 1;
        }
        for (number, binary, printable) in [
            (0, "1010101010101010", "00000000"),
            (1, "1110101010101010", "00000001"),
            (15, "1f10101010101010", "0000000F"),
            (16, "3010101010101010", "0000000G"),
            (127, "ff10101010101010", "0000001-"),
            (128, "1011101010101010", "00000020"),
            (1024, "1018101010101010", "000000G0"),
            (ObjectWindow::NUMBERS_MAX - 1, "ffffffffff3f1010", "0F------"),
        ] {
            let hex: String = number_bytes(number, false).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, binary, "{number}");
            assert_eq!(number_bytes(number, true), *printable.as_bytes(), "{number}");
        }
    }

    #[test]
    fn lengths_keep_their_ranges_and_shares() {
        let layout = layout("ranges:16-100@0.2,101-249@0.8", "ranges:5-5@0.25,100-300@0.75", 2_048, 1);
        let within = |lens: &[u32], min, max| lens.iter().filter(|len| (min..=max).contains(*len)).count();
        for unit in [0..1_024, 1_024..2_048] {
            let (keys, values) = (&layout.keys[unit.clone()], &layout.values[unit.clone()]);
            // A fifth, four fifths and the one that is left of 1 024, which has the mean: 0.2 * 58 + 0.8 * 175.
            assert_eq!((within(keys, 17, 99), within(keys, 102, 248)), (204, 820), "{unit:?}");
            assert!(within(keys, 151, 151) >= 1);
            assert_eq!((within(values, 5, 5), within(values, 101, 299)), (256, 768), "{unit:?}");
            let mut places = layout.places[unit].to_vec();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..1_024), "every place once");
        }
        assert_ne!(layout.places[..1_024], layout.places[1_024..]);
    }

    #[test]
    fn keys_and_values_move_on_with_every_object_and_version() {
        let layout = layout("64", "1024", 1_024, 3);
        // The place of object 5 of client 2, as it is at first and as its third object has it.
        let first = 2 * 1_024 + 5;
        let later = ObjectWindow::id(5, 3 * 1_024 * 2 + 77);
        let place = layout.offset(first, 0);
        assert_eq!(place % PLACE_STEP, 0);
        assert_eq!(layout.offset(ObjectWindow::id(5, first), 0), place);
        assert_eq!((layout.offset(first, 4), layout.offset(later, 0)), (place + 4, place + 2));
        let mut key = [0; 64];
        layout.write(later, false, &mut key);
        assert_eq!(key[8..], layout.table[place + 2..place + 58]);
        // Golden: printed by a C program that seeds the library with 1.
        assert_eq!(&layout.table[..16], GOLDEN_TABLE);
        assert!(
            layout.offset(ObjectWindow::id(5, ObjectWindow::NUMBERS_MAX - 1), u32::MAX) + (1 << 20)
                <= TABLE_LEN
        );
    }

    const GOLDEN_TABLE: &[u8; 16] = b"d6fpH-AifDwhoxZ6";

    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        // Printed by a C program: the first eight of each seed, and the one behind 10 485 760 others.
        for (seed, first, late) in [
            (
                1,
                [1804289383, 846930886, 1681692777, 1714636915, 1957747793, 424238335, 719885386, 1649760492],
                3859091,
            ),
            (
                0,
                [1804289383, 846930886, 1681692777, 1714636915, 1957747793, 424238335, 719885386, 1649760492],
                3859091,
            ),
            (
                42,
                [71876166, 708592740, 1483128881, 907283241, 442951012, 537146758, 1366999021, 1854614940],
                1995680351,
            ),
            (
                1732336852,
                [1771248470, 1693342216, 600369072, 1107487686, 407484196, 563290382, 2029047999, 2033549701],
                1867450916,
            ),
            (
                u32::MAX,
                [254925627, 1205188300, 366127624, 1401405153, 76053476, 1604170158, 1302235366, 362229243],
                462621303,
            ),
        ] {
            let mut random = LibcRandom::new(seed);
            let numbers: Vec<u32> = (0..8).map(|_| random.next()).collect();
            assert_eq!(numbers, first, "seed {seed}");
            (8..10_485_760).for_each(|_| _ = random.next());
            assert_eq!(random.next(), late, "seed {seed}");
        }
    }
}
