//! How many completions a wait is for, and how long they may take: `8`, `50us` or `8,50us`.
//!
//! Not a schedule: a wait ends in time for whatever is due, whatever this says. What lies until the others have come is part of
//! what is measured, and of the client's error bar.

use crate::units::{Count, DurationNs, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// How long a number of completions is waited for where nothing else is said: what a server takes for some hundred requests.
const MOST: DurationNs = DurationNs(1_000_000);
/// Replies may not lie for longer.
const MOST_MAX: DurationNs = DurationNs(1_000_000_000);

/// What ends a wait that has something to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// This many completions, at least 1; `u32::MAX`: as many as there can be.
    pub completions: u32,
    /// Or this time, after which one is enough; 0 where one is in any case.
    pub most: DurationNs,
}

impl Gather {
    /// The first completion ends a wait.
    pub const NOTHING: Self = Self { completions: 1, most: DurationNs(0) };
    /// What halves the cost of a request on io_uring with deep pipelines; more gains little.
    pub const PEAK: Self = Self { completions: 8, most: MOST };

    /// Is anything waited for but the first?
    pub fn is_on(self) -> bool {
        self.completions > 1
    }
}

impl FromStr for Gather {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let count = text.parse::<Count>().ok()?.0;
            u32::try_from(count).ok().filter(|count| (1..u32::MAX).contains(count))
        };
        let duration = |text: &str| {
            text.parse::<DurationNs>().ok().filter(|most| (1_000..=MOST_MAX.0).contains(&most.0))
        };
        let parsed = match text.split_once(',') {
            Some((count, most)) => number(count).zip(duration(most)),
            None => number(text).map(|count| (count, MOST)).or(duration(text).map(|most| (u32::MAX, most))),
        };
        match parsed {
            Some((1, _)) => Ok(Self::NOTHING),
            Some((completions, most)) => Ok(Self { completions, most }),
            None => Err("expected a number of completions from 1, a duration from 1us to 1s, or both: 8, 50us, 8,50us"
                .to_owned()),
        }
    }
}

impl fmt::Display for Gather {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { completions: 1, .. } => formatter.write_str("1"),
            Self { completions: u32::MAX, most } => write!(formatter, "{most}"),
            Self { completions, most: MOST } => write!(formatter, "{completions}"),
            Self { completions, most } => write!(formatter, "{completions},{most}"),
        }
    }
}

serde_as_text!(Gather);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        let table = [
            ("1", Some((1, 0)), "1"),
            ("8", Some((8, 1_000_000)), "8"),
            ("8,1ms", Some((8, 1_000_000)), "8"),
            ("8,50us", Some((8, 50_000)), "8,50us"),
            ("50us", Some((u32::MAX, 50_000)), "50us"),
            ("1,50us", Some((1, 0)), "1"),
            ("0", None, ""),
            ("8,", None, ""),
            ("8,2s", None, ""),
            ("100ns", None, ""),
            ("many", None, ""),
        ];
        for (text, expected, printed) in table {
            let parsed = text.parse::<Gather>().ok();
            assert_eq!(parsed.map(|gather| (gather.completions, gather.most.0)), expected, "{text}");
            if let Some(gather) = parsed {
                assert_eq!((gather.to_string().as_str(), gather.to_string().parse()), (printed, Ok(gather)));
            }
        }
    }
}
