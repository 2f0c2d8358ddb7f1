//! A percentile as an exact fraction, with its names.
//!
//! The fraction is a whole number of millionths, so that ranks and sample gates are integer arithmetic: in floating
//! point `0.07 × 100` is above 7 and its ceiling is 8.

use crate::units::{decimal, joined, text_form};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Millionths in a whole.
const MILLION: u128 = 1_000_000;

/// Raw samples that must lie above a percentile before it is given. Fewer make it the story of a handful of requests.
pub const SAMPLES_ABOVE_MIN: u64 = 10;

/// A fraction of the samples, in millionths: `Quantile::P99` is 990 000 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Quantile {
    per_million: u32,
}

impl TryFrom<u32> for Quantile {
    type Error = &'static str;

    fn try_from(per_million: u32) -> Result<Self, Self::Error> {
        Self::from_millionths(per_million).ok_or("a percentile above all")
    }
}

impl From<Quantile> for u32 {
    fn from(quantile: Quantile) -> Self {
        quantile.per_million
    }
}

impl Quantile {
    /// The median.
    pub const P50: Self = Self { per_million: 500_000 };
    /// Three of four are not slower.
    pub const P75: Self = Self { per_million: 750_000 };
    /// Nine of ten are not slower.
    pub const P90: Self = Self { per_million: 900_000 };
    /// 19 of 20 are not slower.
    pub const P95: Self = Self { per_million: 950_000 };
    /// 99 of 100 are not slower.
    pub const P99: Self = Self { per_million: 990_000 };
    /// 999 of 1000 are not slower.
    pub const P999: Self = Self { per_million: 999_000 };
    /// 9999 of 10 000 are not slower.
    pub const P9999: Self = Self { per_million: 999_900 };

    /// The percentiles of a table where no others are requested, ascending: as many as a line has room for.
    pub const SHOWN: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P999, Self::P9999];

    /// The percentiles of every summary, ascending.
    pub const PRINTED: [Self; 6] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P999, Self::P9999];

    /// A fraction in millionths, from 0 to 1 000 000; `None` above that.
    pub const fn from_millionths(per_million: u32) -> Option<Self> {
        if per_million as u128 <= MILLION { Some(Self { per_million }) } else { None }
    }

    /// The fraction in millionths.
    pub const fn millionths(self) -> u32 {
        self.per_million
    }

    /// The share of samples that lie above it: 1 − p.
    pub fn share_above(self) -> f64 {
        f64::from(MILLION as u32 - self.per_million) / 1e6
    }

    /// The rank, from 1, of the sample that is this quantile of `count` samples in ascending order:
    /// `ceil(p · count)`, at least 1. `count` must be above 0.
    pub const fn rank(self, count: u64) -> u64 {
        let rank = (count as u128 * self.per_million as u128).div_ceil(MILLION) as u64;
        if rank == 0 { 1 } else { rank }
    }

    /// Do `count` samples support this quantile: `count · (1 − p) ≥ 10`?
    pub const fn is_supported_by(self, count: u64) -> bool {
        count as u128 * (MILLION - self.per_million as u128) >= SAMPLES_ABOVE_MIN as u128 * MILLION
    }

    /// How many samples support this quantile; `None` for the maximum, which no number supports.
    pub const fn samples_needed(self) -> Option<u64> {
        self.samples_with_above(SAMPLES_ABOVE_MIN)
    }

    /// How many samples have this number of them above it; `None` for the maximum.
    pub const fn samples_with_above(self, above: u64) -> Option<u64> {
        let share = MILLION - self.per_million as u128;
        if share == 0 { None } else { Some((above as u128 * MILLION).div_ceil(share) as u64) }
    }

    /// A percentile by name, between the minimum and the maximum: `p50`, `p99.9`.
    fn of_text(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| "expected a percentile such as p50, p99, p99.9, p99.99".to_owned())
    }

    /// The name in text, and as a key of JSON: `p50`, `p99.9`.
    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "p{}", decimal(self.per_million.into(), 10_000))
    }
}

text_form!(Quantile, without serde);

fn parse(text: &str) -> Option<Quantile> {
    let number = text.strip_prefix('p')?;
    let (percent, rest) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    let is_number = percent.bytes().chain(rest.bytes()).all(|byte| byte.is_ascii_digit());
    if percent.is_empty() || percent.len() > 2 || rest.len() > 4 || !is_number {
        return None;
    }
    let per_million: u32 = format!("{percent}{rest:0<4}").parse().ok()?;
    (per_million > 0).then_some(Quantile { per_million })
}

/// Percentiles to give, ascending, each once. Text form: `50,75,90,99.9`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Percentiles(pub Vec<Quantile>);

impl Percentiles {
    /// What its text may be.
    pub const ACCEPTED: &str =
        "expected up to 12 numbers above 0 and below 100, each once, such as 50,75,90,99.9";
    /// The most columns that fit a line.
    const COUNT_MAX: usize = 12;

    fn of_text(text: &str) -> Result<Self, String> {
        let one = |item: &str| {
            let name = item.trim();
            parse(&format!("p{}", name.strip_prefix('p').unwrap_or(name)))
        };
        let read: Option<Vec<Quantile>> = text.split(',').map(one).collect();
        let mut list = read.filter(|list| list.len() <= Self::COUNT_MAX).ok_or(Self::ACCEPTED)?;
        list.sort_unstable();
        let has_twins = list.windows(2).any(|pair| pair[0] == pair[1]);
        if has_twins { Err(Self::ACCEPTED.to_owned()) } else { Ok(Self(list)) }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|quantile| quantile.to_string()[1..].to_owned());
        formatter.write_str(&joined(names))
    }
}

text_form!(Percentiles);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact() {
        let table = [
            (70_000, 100, 7), // 0.07 × 100 is 7.000000000000001 in floating point.
            (0, 5, 1),
            (500_000, 1, 1),
            (500_000, 2, 1),
            (500_000, 3, 2),
            (990_000, 100, 99),
            (990_000, 101, 100),
            (999_900, 10_000, 9_999),
            (1_000_000, 77, 77),
            (500_000, u64::MAX, u64::MAX / 2 + 1),
        ];
        for (per_million, count, rank) in table {
            assert_eq!(Quantile { per_million }.rank(count), rank, "{per_million} of {count}");
        }
    }

    #[test]
    fn ten_samples_must_lie_above() {
        let table = [
            (Quantile::P50, 20),
            (Quantile::P90, 100),
            (Quantile::P95, 200),
            (Quantile::P99, 1_000),
            (Quantile::P999, 10_000),
            (Quantile::P9999, 100_000),
        ];
        for (quantile, needed) in table {
            assert!(quantile.is_supported_by(needed), "{quantile}");
            assert!(!quantile.is_supported_by(needed - 1), "{quantile}");
            assert_eq!(quantile.samples_needed(), Some(needed), "{quantile}");
        }
    }

    #[test]
    fn names() {
        let texts = Quantile::PRINTED.map(|quantile| quantile.to_string());
        assert_eq!(texts, ["p50", "p90", "p95", "p99", "p99.9", "p99.99"]);
    }
}
