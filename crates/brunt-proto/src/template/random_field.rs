//! Random bytes of a command: functions of the operation's own number and of the place of the draw.
//!
//! Not decimals ([`super::number`]), which take one draw each. Nothing here holds state.

/// What random bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RandomField {
    /// Letters and digits, each as often as the others.
    Letters,
    /// Any bytes.
    Bytes,
    /// 0 or 1.
    Bool,
    /// The eight bytes of a floating-point number from 0 to 1, the highest first.
    UnitDouble,
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl RandomField {
    /// The bytes from `at` on of an operation's draws, as many as `to` has room for.
    pub(super) fn write(self, number: u64, at: u64, to: &mut [u8]) {
        match self {
            Self::UnitDouble => {
                let double = (mixed(number, at) >> 11) as f64 / (1_u64 << 53) as f64;
                to.copy_from_slice(&double.to_be_bytes());
            }
            _ => to.iter_mut().zip(at..).for_each(|(byte, at)| *byte = self.byte(mixed(number, at))),
        }
    }

    fn byte(self, draw: u64) -> u8 {
        match self {
            Self::Letters => LETTERS[(((draw >> 32) * LETTERS.len() as u64) >> 32) as usize],
            Self::Bytes | Self::UnitDouble => (draw >> 56) as u8,
            Self::Bool => (draw >> 63) as u8,
        }
    }
}

/// The output of SplitMix64 (Steele, Lea and Flood 2014) at this step from a state.
pub(super) fn mixed(state: u64, step: u64) -> u64 {
    let mut word = state.wrapping_add((step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
