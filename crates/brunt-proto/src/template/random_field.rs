//! Random bytes of a command: functions of the operation's own number and of the place of the draw.
//!
//! Nothing here holds state.

use brunt_plan::split_mix::output;

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
                let double = (output(number, at) >> 11) as f64 / (1_u64 << 53) as f64;
                to.copy_from_slice(&double.to_be_bytes());
            }
            _ => to.iter_mut().zip(at..).for_each(|(byte, at)| *byte = self.byte(output(number, at))),
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
