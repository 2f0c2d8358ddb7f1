//! Which keys are requested how often, and how that moves with time: descriptions only.
//!
//! The samplers that draw from them live in `brunt-workload`.

use crate::units::{Count, DurationNs, name_and_arguments, text_form};
use std::fmt;

/// Which keys are requested how often.
///
/// A rank is a place in the order of popularity, 0 being the hottest. Where ranks are scattered, a bijection that depends
/// on the data seed alone spreads them over the ids, so that hot keys are no neighbours.
#[derive(Clone, Debug, PartialEq)]
pub enum Popularity {
    /// Every key equally often. Text form `uniform`.
    Uniform,
    /// Key of rank `r`, from 1, with probability proportional to `r^−exponent`; ranks are scattered over the ids.
    /// Text form `zipf:0.99`; `zipf` alone means 0.99. `zipf:0.99,10000000000` draws a rank of ten billion and hashes it onto a key, as
    /// YCSB does.
    Zipf {
        /// Above 0, finite.
        exponent: f64,
        /// How many ranks are hashed onto the keys, at least 1; none: there is a rank for each key.
        ranks: Option<u64>,
    },
    /// The hottest keys get a part of the ops, as [`HotShare`]s say; those between two of them are requested equally often. The hot keys
    /// are scattered over the ids. Text form `hotspot:0.2,0.8`: a fifth of the keys gets four fifths of the ops. Several pairs, in rising
    /// order: `hotspot:0.01,0.55,0.5,0.99`.
    Hotspot(Vec<HotShare>),
    /// All sessions together walk through the ids in order, from 0 again behind the last. Text form `sequential`.
    Sequential,
    /// Zipf's law counted back from the key that was stored last; set and add store the key behind that one, in place of
    /// the oldest. Text form `latest:0.99`; `latest` alone means 0.99.
    Latest {
        /// As for zipf.
        exponent: f64,
    },
    /// A normal distribution over the ids around the middle one, cut at the first and the last; not scattered: neighbours are
    /// equally hot. Text form `gaussian:0.1`; `gaussian` alone means a sixth, so that the ends are three deviations away.
    Gaussian {
        /// Standard deviation as a fraction of the number of keys, above 0, at most 1.
        deviation: f64,
    },
    /// Every client has a window of objects of its own, as in memaslap: sets fill it, and then put a new object in the place of the
    /// oldest one; gets ask for any object of it. Text form `window:10k,overwrite=0.2,expire=0.05`; the fractions may be left out.
    Window(ObjectWindow),
}

impl Popularity {
    /// The window, where it is one.
    pub const fn window(&self) -> Option<&ObjectWindow> {
        match self {
            Self::Window(window) => Some(window),
            _ => None,
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let (name, arguments) = name_and_arguments(text);
        match (name, arguments.as_slice()) {
            ("uniform", []) => Ok(Self::Uniform),
            ("sequential", []) => Ok(Self::Sequential),
            ("zipf", []) => Ok(Self::Zipf { exponent: EXPONENT_DEFAULT, ranks: None }),
            ("zipf", [exponent]) => {
                Ok(Self::Zipf { exponent: above_0("EXPONENT", exponent, f64::MAX)?, ranks: None })
            }
            ("zipf", [exponent, ranks]) => {
                let exponent = above_0("EXPONENT", exponent, f64::MAX)?;
                let count = ranks.parse::<Count>().ok().filter(|count| count.0 > 0);
                let count = count.ok_or_else(|| format!("RANKS is '{ranks}'; expected a number above 0"))?;
                Ok(Self::Zipf { exponent, ranks: Some(count.0) })
            }
            ("latest", []) => Ok(Self::Latest { exponent: EXPONENT_DEFAULT }),
            ("latest", [exponent]) => Ok(Self::Latest { exponent: above_0("EXPONENT", exponent, f64::MAX)? }),
            ("hotspot", numbers) if !numbers.is_empty() && numbers.len().is_multiple_of(2) => {
                HotShare::parse(numbers).map(Self::Hotspot)
            }
            ("gaussian", []) => Ok(Self::Gaussian { deviation: DEVIATION_DEFAULT }),
            ("gaussian", [deviation]) => {
                Ok(Self::Gaussian { deviation: above_0("DEVIATION", deviation, 1.0)? })
            }
            ("window", arguments) => ObjectWindow::parse(arguments).map(Self::Window),
            _ => Err("expected uniform, zipf:EXPONENT[,RANKS], hotspot:KEYS,OPS[,KEYS,OPS...] (fractions), \
                      sequential, latest:EXPONENT, gaussian:DEVIATION (a fraction of the keys) or window:OBJECTS"
                .to_owned()),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            Self::Zipf { exponent, ranks: None } => write!(formatter, "zipf:{exponent}"),
            Self::Zipf { exponent, ranks: Some(ranks) } => write!(formatter, "zipf:{exponent},{ranks}"),
            Self::Hotspot(shares) => {
                let shares: Vec<String> =
                    shares.iter().map(|HotShare { keys, ops }| format!("{keys},{ops}")).collect();
                write!(formatter, "hotspot:{}", shares.join(","))
            }
            Self::Sequential => formatter.write_str("sequential"),
            Self::Latest { exponent } => write!(formatter, "latest:{exponent}"),
            Self::Gaussian { deviation } => write!(formatter, "gaussian:{deviation}"),
            Self::Window(window) => write!(formatter, "{window}"),
        }
    }
}

/// The hottest keys and what goes to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotShare {
    /// These keys as a fraction of all, above 0, at most 1.
    pub keys: f64,
    /// The fraction of ops that goes to them, above 0, at most 1.
    pub ops: f64,
}

impl HotShare {
    /// Pairs of both fractions.
    fn parse(numbers: &[&str]) -> Result<Vec<Self>, String> {
        let share = |pair: &[&str]| {
            Ok(Self { keys: above_0("KEYS", pair[0], 1.0)?, ops: above_0("OPS", pair[1], 1.0)? })
        };
        let shares = numbers.chunks_exact(2).map(share).collect::<Result<Vec<_>, String>>()?;
        let rises = |pair: &[Self]| pair[0].keys < pair[1].keys && pair[0].ops <= pair[1].ops;
        if !shares.windows(2).all(rises) {
            return Err(
                "KEYS and OPS count from the hottest key: expected each pair to be above the one before"
                    .to_owned(),
            );
        }
        Ok(shares)
    }
}

/// The objects that a client works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectWindow {
    /// How many, from 1 to [`ObjectWindow::OBJECTS_MAX`].
    pub objects: u32,
    /// The fraction of sets that write an object anew, from 0 to 1; the others put a new one in its place.
    pub overwrite: f64,
    /// The fraction of objects that are stored with the class's time to live, from 0 to 1. Where it is 0 all are.
    pub expire: f64,
}

impl ObjectWindow {
    /// Bits of an id for the place of an object in its window.
    pub const PLACE_BITS: u32 = 24;
    /// The number of an object, over all windows of a class, takes the others.
    pub const NUMBER_BITS: u32 = u64::BITS - Self::PLACE_BITS;
    /// How many objects a window has at most.
    pub const OBJECTS_MAX: u32 = 1 << Self::PLACE_BITS;
    /// How many objects there may be one after the other, over all windows of a class; behind the last one numbers begin anew.
    pub const NUMBERS_MAX: u64 = 1 << Self::NUMBER_BITS;

    /// The id of the object with this number in this place of its window.
    pub const fn id(place: u32, number: u64) -> u64 {
        (place as u64) << Self::NUMBER_BITS | number
    }

    /// The place of the object with this id.
    pub const fn place_of(id: u64) -> u32 {
        (id >> Self::NUMBER_BITS) as u32
    }

    /// The number of the object with this id.
    pub const fn number_of(id: u64) -> u64 {
        id & (Self::NUMBERS_MAX - 1)
    }

    /// How many of the places below this have objects that expire.
    pub fn expiring_below(&self, place: u32) -> u32 {
        // Place i is one where fewer than `expire` times i places before it are.
        (self.expire * f64::from(place.saturating_sub(1))).ceil() as u32
    }

    /// Do objects in this place expire?
    pub fn expires(&self, place: u32) -> bool {
        self.expiring_below(place + 1) > self.expiring_below(place)
    }

    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected window:OBJECTS[,overwrite=FRACTION][,expire=FRACTION] with 1 to {} objects",
                Self::OBJECTS_MAX
            )
        };
        let (objects, fractions) = arguments.split_first().ok_or_else(expected)?;
        let objects = objects.parse::<Count>().map_err(|_| expected())?.0;
        let objects = u32::try_from(objects).ok().filter(|count| (1..=Self::OBJECTS_MAX).contains(count));
        let mut window = Self { objects: objects.ok_or_else(expected)?, overwrite: 0.0, expire: 0.0 };
        let mut named = Vec::new();
        for fraction in fractions {
            let (name, number) = fraction.split_once('=').ok_or_else(expected)?;
            if named.contains(&name) {
                return Err(format!("'{name}' is named twice"));
            }
            named.push(name);
            match name {
                "overwrite" => window.overwrite = above_0(name, number, 1.0)?,
                "expire" => window.expire = above_0(name, number, 1.0)?,
                _ => return Err(expected()),
            }
        }
        Ok(window)
    }
}

impl fmt::Display for ObjectWindow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "window:{}", self.objects)?;
        for (name, fraction) in [("overwrite", self.overwrite), ("expire", self.expire)] {
            if fraction > 0.0 {
                write!(formatter, ",{name}={fraction}")?;
            }
        }
        Ok(())
    }
}

/// The exponent that is meant where none is given.
const EXPONENT_DEFAULT: f64 = 0.99;
/// The deviation that is meant where none is given.
const DEVIATION_DEFAULT: f64 = 1.0 / 6.0;

text_form!(Popularity);

/// The argument called `name`, which lies above 0 and is at most `max`.
fn above_0(name: &str, text: &str, max: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= max);
    number.ok_or_else(|| {
        let bound = if max == f64::MAX { String::new() } else { format!(" and at most {max}") };
        format!("{name} is '{text}'; expected a number above 0{bound}")
    })
}

/// The ranks of a popularity distribution move over the keys: every `every` of the schedule, by `step` keys. Of the hottest `h` keys,
/// whatever that number, `step` are others after each period, or all if `step` exceeds `h`. Text form `1000/10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Keys, at least 1.
    pub step: u64,
    /// Above 0.
    pub every: DurationNs,
}

impl Drift {
    fn of_text(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(step, every)| {
            let (step, every) =
                (step.trim().parse::<Count>().ok()?, every.trim().parse::<DurationNs>().ok()?);
            (step.0 > 0 && every.0 > 0).then_some(Self { step: step.0, every })
        });
        parsed.ok_or_else(|| "expected KEYS/DURATION, both above 0, such as 1000/10s".to_owned())
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.step, self.every)
    }
}
text_form!(Drift);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiring_objects_are_spread_evenly() {
        // By the rule that goes from place to place.
        for expire in [0.05, 0.1, 0.25, 1.0 / 3.0, 0.9, 1.0] {
            let window = ObjectWindow { objects: 1, overwrite: 0.0, expire };
            let mut expiring = 0;
            for place in 0..5_000 {
                let expires = f64::from(expiring) < expire * f64::from(place);
                assert_eq!(
                    (window.expiring_below(place), window.expires(place)),
                    (expiring, expires),
                    "{expire} {place}"
                );
                expiring += u32::from(expires);
            }
        }
        let window = ObjectWindow { objects: 1, overwrite: 0.0, expire: 0.1 };
        assert!((0..30).filter(|place| window.expires(*place)).eq([1, 11, 21]));
    }
}
