//! Scripted faults: the affected requests, and the fault of each.
//!
//! Only the decision, by the number of the request; `core` carries it out. Numbers count data commands over all
//! connections in order of arrival, so with N given, exactly every N-th request is hit, on any connection.

use std::num::NonZeroU64;
use std::str::FromStr;

/// Which requests: every N-th, beginning with the N-th or with one of the user's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    period: NonZeroU64,
    /// The first one, counted from 1.
    first: NonZeroU64,
}

impl Every {
    /// Every `period`-th request; `None` for 0.
    pub const fn new(period: u64) -> Option<Self> {
        match NonZeroU64::new(period) {
            Some(period) => Some(Self { period, first: period }),
            None => None,
        }
    }

    /// Is request `number` one of them, counted from 0?
    pub(crate) const fn hits(self, number: u64) -> bool {
        match (number + 1).checked_sub(self.first.get()) {
            Some(behind) => behind.is_multiple_of(self.period.get()),
            None => false,
        }
    }
}

/// `N`, or `N:FIRST`.
impl FromStr for Every {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<NonZeroU64>();
        let (period, first) = text.split_once(':').unwrap_or((text, text));
        match (number(period), number(first)) {
            (Ok(period), Ok(first)) => Ok(Self { period, first }),
            _ => Err("expected N or N:FIRST, whole numbers above 0, such as 1000 or 1000:37".to_owned()),
        }
    }
}

/// What to do wrong and how often; nothing by default. Of several faults due at the same request the first in the order
/// of these fields happens, and only that one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Every N-th request is carried out but never answered, and its connection is dead from then on: bytes are read
    /// and thrown away, unparsed and unnumbered, until the client closes. (Text replies carry no token, so a reply to
    /// a later request would be taken for the missing one.)
    pub drop_every: Option<Every>,
    /// Every N-th request is carried out but never answered, and its connection is reset at the departure of the reply
    /// that it does not get. What comes behind it on the connection is thrown away, unparsed and unnumbered. A request
    /// that wants no reply is hit like any other.
    pub reset_every: Option<Every>,
    /// Every N-th request, if it wants a reply, gets the first half of its bytes (rounded down; replies have at least
    /// three), then the connection is closed in good order: mid-value, if the value is long. What comes behind it is
    /// thrown away, unparsed and unnumbered.
    pub cut_every: Option<Every>,
    /// Every N-th request is refused and not carried out: with `SERVER_ERROR`, Redis's `ERR`, or the status of an internal
    /// error.
    pub error_every: Option<Every>,
    /// Every N-th request, if it returns values, returns values of the right length in which every byte is wrong.
    pub wrong_every: Option<Every>,
}

/// The fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Carried out, never answered, connection dead.
    Drop,
    /// Carried out, never answered, connection reset.
    Reset,
    /// Half answered, connection closed.
    Cut,
    /// Refused.
    Error,
    /// Answered with wrong values.
    Wrong,
}

impl Faults {
    /// The fault of request `number`, counted from 0: N hits the numbers N − 1, 2N − 1, …, and N:F the numbers F − 1,
    /// F + N − 1, …
    pub fn fault_of(&self, number: u64) -> Option<Fault> {
        let of_every = [
            (self.drop_every, Fault::Drop),
            (self.reset_every, Fault::Reset),
            (self.cut_every, Fault::Cut),
            (self.error_every, Fault::Error),
            (self.wrong_every, Fault::Wrong),
        ];
        let due = of_every.into_iter().find(|(every, _)| every.is_some_and(|every| every.hits(number)));
        due.map(|(_, fault)| fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_and_the_first_fault_wins() {
        let faults = Faults {
            drop_every: Every::new(1000),
            reset_every: Every::new(600),
            cut_every: Every::new(250),
            error_every: Every::new(100),
            wrong_every: Every::new(30),
        };
        let count = |fault| (0..30_000).filter(|number| faults.fault_of(*number) == Some(fault)).count();
        assert_eq!(count(Fault::Drop), 30);
        // 50 multiples of 600, less those of lcm(600, 1000) = 3000.
        assert_eq!(count(Fault::Reset), 50 - 10);
        // 120 multiples of 250, less 30 of 1000 and 10 of lcm(250, 600) = 3000, which are among the 30.
        assert_eq!(count(Fault::Cut), 120 - 30);
        // 300 multiples of 100, less 30 of 1000, 50 of 600 and 60 of lcm(100, 250) = 500, where 500 holds the 30 and 10
        // of the 50 (those of 3000).
        assert_eq!(count(Fault::Error), 300 - 60 - 40);
        // 1000 multiples of 30, less 100 of lcm(30, 100) = 300, which holds 600, and lcm(30, 250) = 750 (40, of which
        // 20 are multiples of 300); multiples of 3000 are among them.
        assert_eq!(count(Fault::Wrong), 1000 - 100 - 20);
        assert_eq!((0..30_000).filter(|number| Faults::default().fault_of(*number).is_some()).count(), 0);
        let first = (0..).find(|number| faults.fault_of(*number).is_some());
        assert_eq!(first, Some(29), "the N-th request has number N - 1");
    }
    #[test]
    fn the_first_faulty_request_can_be_chosen() {
        let hits = |text: &str| -> Vec<u64> {
            let every: Every = text.parse().unwrap();
            (0..40).filter(|number| every.hits(*number)).map(|number| number + 1).collect()
        };
        assert_eq!(hits("10"), [10, 20, 30, 40]);
        assert_eq!(hits("10:10"), [10, 20, 30, 40]);
        assert_eq!(hits("10:3"), [3, 13, 23, 33]);
        assert_eq!(hits("10:37"), [37]);
        assert_eq!("10".parse(), Ok(Every::new(10).unwrap()));
        for text in ["", "0", "10:0", ":3", "10:", "-1", "1.5", "1k"] {
            assert!(text.parse::<Every>().is_err(), "{text}");
        }
        assert_eq!(Every::new(0), None);
    }
}
