//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), for draws that are functions of a seed and a number.
//!
//! The reference server has its own, because it shares no code with what it tests.

/// The golden ratio as a 64-bit fraction: the step from one state to the next.
pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A bijection of 64 bits in which every input bit flips half of the output bits.
#[inline]
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The output number `index`, from 0, of the sequence that begins in this state.
#[inline]
pub const fn output(state: u64, index: u64) -> u64 {
    mix(state.wrapping_add(STEP.wrapping_mul(index.wrapping_add(1))))
}
