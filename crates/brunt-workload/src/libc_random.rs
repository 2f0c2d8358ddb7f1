//! The C library's `random()`: the numbers that `srandom(seed)` begins in glibc, by the same additive feedback.
//!
//! No generator of ours (that is `rng.rs`): for data sets that are to look as another program would have made them. Invariant: the
//! numbers are those of the C library, which golden vectors hold.

/// How many words feed back.
const DEGREE: usize = 31;
/// How far the two words that are added lie apart.
const SEPARATION: usize = 3;
/// Numbers that the C library throws away when it has been seeded.
const DISCARDED: usize = 10 * DEGREE;

/// The state of the generator, the polynomial x³¹ + x³ + 1 (Knuth, TAOCP 2, section 3.2.2).
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
