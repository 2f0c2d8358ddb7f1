//! The 48-bit generator of the C library (`drand48`), and the numbers that mcperf draws from it.
//!
//! Not for our own random numbers, which are `rng.rs`'s: this one is for request streams that are to be mcperf's. A step is
//! X ← (A·X + C) mod 2⁴⁸, so that any number of steps is a step of the same form, and the number drawn in any place can be told
//! without those before it.

use brunt_plan::distribution::{McperfDraw, McperfShape};

const BITS: u32 = 48;
const MASK: u64 = (1 << BITS) - 1;

/// Several steps as one: X ← factor·X + term. Modulo 2⁶⁴ here; the lower 48 bits are the same.
#[derive(Clone, Copy, Debug)]
struct Leap {
    factor: u64,
    term: u64,
}

impl Leap {
    const NOTHING: Self = Self { factor: 1, term: 0 };
    /// The constants of POSIX's `drand48`.
    const STEP: Self = Self { factor: 0x0005_DEEC_E66D, term: 0xB };

    const fn from(self, state: u64) -> u64 {
        self.factor.wrapping_mul(state).wrapping_add(self.term)
    }

    /// These steps, then those.
    const fn then(self, other: Self) -> Self {
        Self { factor: other.factor.wrapping_mul(self.factor), term: other.from(self.term) }
    }
}

/// A count of steps has a digit for each of these bits.
const DIGIT_BITS: u32 = 4;
const DIGIT_COUNT: usize = 1 << DIGIT_BITS;

/// The period is 2⁴⁸, so that no count needs more digits.
const DIGITS: usize = (BITS / DIGIT_BITS) as usize;

/// `LEAPS[place][digit]`: digit · 16^place steps as one.
static LEAPS: [[Leap; DIGIT_COUNT]; DIGITS] = {
    let mut leaps = [[Leap::NOTHING; DIGIT_COUNT]; DIGITS];
    let mut unit = Leap::STEP;
    let mut place = 0;
    while place < DIGITS {
        let mut digit = 1;
        while digit < DIGIT_COUNT {
            leaps[place][digit] = leaps[place][digit - 1].then(unit);
            digit += 1;
        }
        unit = leaps[place][DIGIT_COUNT - 1].then(unit);
        place += 1;
    }
    leaps
};

/// The generator; its state is the number that was made last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rand48 {
    state: u64,
}

impl Rand48 {
    /// The generator of an mcperf with this `--client`.
    pub fn of_client(client: u32) -> Self {
        // Three words of 16 bits, the lowest first.
        let words = [0x1234 ^ client, 0x5678 ^ (client << 8), 0x9ABC ^ !client];
        let word = |index: usize| u64::from(words[index] & 0xFFFF) << (16 * index);
        Self { state: word(0) | word(1) | word(2) }
    }

    /// The generator `count` numbers later. One multiplication and addition for each hexadecimal digit of the count that is not leading.
    #[must_use]
    pub fn after(self, count: u64) -> Self {
        let mut state = self.state;
        let mut rest = count & MASK;
        for leaps in &LEAPS {
            if rest == 0 {
                break;
            }
            state = leaps[(rest as usize) % DIGIT_COUNT].from(state);
            rest >>= DIGIT_BITS;
        }
        Self { state: state & MASK }
    }

    /// The next number from the unit interval, 1 excluded: C's `erand48`.
    pub fn next_unit(&mut self) -> f64 {
        self.state = Leap::STEP.from(self.state) & MASK;
        self.state as f64 / (MASK + 1) as f64
    }
}

/// The numbers of a draw, in their order.
#[derive(Clone, Debug)]
pub struct Draws {
    draw: McperfDraw,
    first: Rand48,
    /// The generator of the next number, after `taken` numbers.
    rand: Rand48,
    taken: u64,
}

impl Draws {
    /// From the first one on.
    pub fn new(draw: McperfDraw) -> Self {
        let first = Rand48::of_client(draw.client);
        Self { draw, first, rand: first, taken: 0 }
    }

    /// The mean of all of them; `None` where they grow without end.
    pub fn mean(&self) -> Option<f64> {
        self.draw.mean()
    }

    /// Goes on with the number in this place, from 0.
    pub fn go_to(&mut self, place: u64) {
        (self.rand, self.taken) = (self.first.after(place), place);
    }

    /// The next number.
    pub fn next_number(&mut self) -> f64 {
        let number = number_at(self.draw.shape, self.taken, &mut self.rand);
        self.taken = self.taken.wrapping_add(1);
        number
    }

    /// The number in this place, from 0.
    pub fn at(&self, place: u64) -> f64 {
        number_at(self.draw.shape, place, &mut self.first.after(place))
    }
}

/// The number in this place, where the generator is before it.
fn number_at(shape: McperfShape, place: u64, rand: &mut Rand48) -> f64 {
    match shape {
        McperfShape::Fixed(number) => number,
        McperfShape::Uniform(min, max) => min + (max - min) * rand.next_unit(),
        McperfShape::Exponential(mean) => -mean * libm::log(1.0 - rand.next_unit()),
        McperfShape::Sequential(first) => first + place as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::size::SizeDistribution;

    fn draws(text: &str) -> Draws {
        match text.parse() {
            Ok(SizeDistribution::Mcperf(draw)) => Draws::new(draw),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// As mcperf 0.1.1 sent them.
    #[test]
    fn numbers_are_mcperfs() {
        let table: [(&str, &[i64]); 6] = [
            ("mcperf:u1,100", &[81, 28, 10, 44, 64]),
            ("mcperf:u1,100@3", &[19, 97, 24]),
            ("mcperf:u5,10", &[9, 6]),
            ("mcperf:e50", &[83, 16, 5]),
            ("mcperf:s5", &[5, 6, 7, 8]),
            ("mcperf:d2.5", &[2, 2]),
        ];
        for (text, expected) in table {
            let mut numbers = draws(text);
            let drawn: Vec<i64> =
                expected.iter().map(|_| numbers.next_number().round_ties_even() as i64).collect();
            assert_eq!(drawn, expected, "{text}");
        }
    }

    /// The definition, step by step, in numbers of 128 bits.
    #[test]
    fn any_place_is_reached_as_by_single_steps() {
        for client in [0, 3, 255, 65_535, u32::MAX] {
            let first = Rand48::of_client(client);
            let mut state = u128::from(first.state);
            let mut steps = first;
            for count in 0..10_000_u64 {
                assert_eq!(u128::from(first.after(count).state), state, "client {client}, {count} steps");
                state = (0x5_DEEC_E66D * state + 11) % (1 << 48);
                let unit = steps.next_unit();
                assert_eq!(unit, state as f64 / 2f64.powi(48));
            }
        }
    }

    #[test]
    fn leaps_add_up() {
        let first = Rand48::of_client(7);
        for (one, other) in [(1 << 47, 1 << 47), (0xF0F0_F0F0_F0F0, 0x0F0F), (1, MASK), (12_345_678_901, 1)] {
            assert_eq!(
                first.after(one).after(other),
                first.after(one.wrapping_add(other)),
                "{one} + {other}"
            );
        }
        assert_eq!(first.after(1 << 48), first, "the period is over");
    }

    #[test]
    fn numbers_by_place_are_those_in_order() {
        for text in ["mcperf:d7", "mcperf:u0.001,0.003@9", "mcperf:e50@1", "mcperf:s5"] {
            let (mut in_order, by_place) = (draws(text), draws(text));
            for place in 0..2_000 {
                assert_eq!(in_order.next_number(), by_place.at(place), "{text} {place}");
            }
            in_order.go_to(17);
            assert_eq!(in_order.next_number(), by_place.at(17), "{text}");
        }
    }
}
