//! Key text in the forms that are not decimal, as functions of data seed and number: what is behind the prefix.
//!
//! A head stands for the number, and letters and digits fill the key to its length. Heads of distinct numbers differ: `hex8` has the number's
//! digits there, the lowest eight, `random` another number that a bijection gives it, in base 62. All heads of a data set are equally long, so
//! that keys of distinct numbers differ whatever their lengths are.

use super::memaslap::Layout;
use crate::hash::{HashPurpose, IdHash, Permutation};
use brunt_plan::plan::KeyForm;
use std::sync::Arc;

/// The digits of base 62, in the order of ASCII.
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Letters from one hash of 64 bits: with eight, none is more frequent than another by more than 62⁸/2⁶⁴, a hundred-thousandth.
const LETTERS_PER_HASH: usize = 8;

const HEX8_LEN: usize = 8;

/// The text of the keys of one data set.
#[derive(Clone, Debug)]
pub(super) struct Text {
    head: Head,
    /// Of the letters behind the head.
    fill: IdHash,
}

#[derive(Clone, Debug)]
enum Head {
    Hex8,
    Random {
        /// From ids to numbers below 62 to the power of `len`.
        codes: Permutation,
        len: usize,
    },
    /// Objects of windows, as memaslap lays them out: there is no other text.
    Laid {
        layout: Arc<Layout>,
        is_printable: bool,
    },
}

impl Text {
    /// The text in this form, at least `len_min` bytes behind the prefix for each key; `None` where it is decimal.
    pub(super) fn new(
        form: KeyForm,
        len_min: u32,
        data_seed: u64,
        layout: Option<&Arc<Layout>>,
    ) -> Option<Self> {
        let fill = IdHash::new(data_seed, HashPurpose::KeyText);
        let head = match (layout, form) {
            (Some(layout), _) => {
                Head::Laid { layout: layout.clone(), is_printable: form == KeyForm::MemaslapPrintable }
            }
            (None, KeyForm::Decimal | KeyForm::Memaslap | KeyForm::MemaslapPrintable) => return None,
            (None, KeyForm::Hex8) => Head::Hex8,
            (None, KeyForm::Random) => {
                let len = len_min.min(KeyForm::CODE_BYTES_MAX);
                Head::Random { codes: Permutation::by_hash(62u64.pow(len), &fill), len: len as usize }
            }
        };
        Some(Self { head, fill })
    }

    /// Writes what is behind the prefix in the key of this number, as long as `place` is; where it is laid out, of this id.
    pub(super) fn write(&self, number: u64, place: &mut [u8]) {
        let rest = match &self.head {
            Head::Hex8 => {
                let (head, rest) = place.split_at_mut(HEX8_LEN);
                for (shift, digit) in (0..).step_by(4).zip(head.iter_mut().rev()) {
                    *digit = b"0123456789abcdef"[(number >> shift) as usize & 0xF];
                }
                rest
            }
            Head::Random { codes, len } => {
                let (head, rest) = place.split_at_mut(*len);
                let mut code = codes.apply(number);
                for letter in head.iter_mut().rev() {
                    *letter = LETTERS[(code % 62) as usize];
                    code /= 62;
                }
                rest
            }
            Head::Laid { layout, is_printable } => return layout.write(number, *is_printable, place),
        };
        for (word, letters) in (0..).zip(rest.chunks_mut(LETTERS_PER_HASH)) {
            let mut fraction = self.fill.hash(number, word);
            for letter in letters {
                let product = u128::from(fraction) * 62;
                *letter = LETTERS[(product >> 64) as usize];
                fraction = product as u64;
            }
        }
    }
}
