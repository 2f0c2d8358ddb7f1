//! The layout of OpenMetrics text: families with their head lines, samples with their labels, the end; and the bounds that times are counted up
//! to, the same in every run, so that histograms of many runs can be added.
//!
//! Not what they mean. Invariants: bounds ascend, and what is counted up to one is what a percentile would be printed for that is no larger; samples of a family follow its head; counters end with `_total`; a family whose name
//! ends with a unit says so.

use brunt_plan::objective::{Bound, Objective};
use brunt_stats::histogram::{Moments, bucket_of};
use std::fmt::{Display, Write};

/// What every name begins with.
const PREFIX: &str = "brunt_";
/// Names end with these where what they count has a unit.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

brunt_plan::named! {
    /// The type of a family.
    pub enum Kind {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
        Info = "info",
        StateSet = "stateset",
    }
}

impl Kind {
    /// What the names of its samples end with.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram | Self::StateSet => "",
        }
    }
}

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Families {
    text: String,
    /// The family that samples belong to.
    name: String,
    suffix: &'static str,
    /// What is to be written before its first sample.
    head: String,
}

impl Families {
    /// Begins a family. One without a sample is left out.
    pub(super) fn begin(&mut self, name: &str, kind: Kind, help: &str) {
        self.name = format!("{PREFIX}{name}");
        self.suffix = kind.suffix();
        let (name, kind) = (&self.name, kind.name());
        let unit = UNITS.iter().find(|unit| name.ends_with(&format!("_{unit}")));
        let unit = unit.map(|unit| format!("# UNIT {name} {unit}\n")).unwrap_or_default();
        self.head = format!("# TYPE {name} {kind}\n{unit}# HELP {name} {}\n", Escaped(help));
    }

    /// Adds a number to the family; of a family in seconds it is in nanoseconds.
    pub(super) fn add(&mut self, labels: &[(&str, &str)], number: u64) {
        let text = if self.name.ends_with("_seconds") { seconds(number.into()) } else { number.to_string() };
        self.sample(self.suffix, labels, text);
    }

    /// Adds a number for each value of one more label.
    pub(super) fn add_each(&mut self, labels: &[(&str, &str)], label: &str, numbers: &[(&str, u64)]) {
        numbers.iter().for_each(|(name, number)| self.add(&[labels, &[(label, name)]].concat(), *number));
    }

    pub(super) fn add_ratio(&mut self, labels: &[(&str, &str)], ratio: f64) {
        self.sample(self.suffix, labels, ratio);
    }

    /// States of the family, of which each holds or does not.
    pub(super) fn add_states<'b>(&mut self, states: impl IntoIterator<Item = (&'b str, bool)>) {
        let label = self.name.clone();
        states.into_iter().for_each(|(state, holds)| self.add(&[(&label, state)], holds.into()));
    }

    pub(super) fn add_histogram(&mut self, labels: &[(&str, &str)], held: &Buckets, bounds: &Bounds) {
        let bounds = bounds.iter_ns().map(|bound_ns| seconds(bound_ns.into()));
        for (bound, count) in bounds.zip(&held.cumulative) {
            self.sample("_bucket", &[labels, &[("le", &bound)]].concat(), count);
        }
        self.sample("_bucket", &[labels, &[("le", "+Inf")]].concat(), held.count);
        self.sample("_count", labels, held.count);
        self.sample("_sum", labels, seconds(held.sum_ns));
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(&std::mem::take(&mut self.head));
        let texts: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", Escaped(value))).collect();
        let labels = if texts.is_empty() { String::new() } else { format!("{{{}}}", texts.join(",")) };
        self.text += &format!("{}{suffix}{labels} {value}\n", self.name);
    }

    /// All of it.
    pub(super) fn end(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// Text within quotes, or of a help line.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Nanoseconds in seconds, exact, with one decimal at least.
fn seconds(ns: u128) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let digits = text.trim_end_matches('0');
    if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() }
}

/// In every decade from 10 us on.
const STEPS: [u64; 5] = [10, 16, 25, 40, 63];
const FIRST_NS: u64 = 10_000;
const LAST_NS: u64 = 10_000_000_000;
/// Largest number of bounds from objectives.
const OF_OBJECTIVES_MAX: usize = 64;

/// The bounds of a run's histograms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Nanoseconds, ascending.
    bounds_ns: Vec<u64>,
    /// Of each bound the first bucket of a histogram that holds anything above it.
    ends: Vec<usize>,
}

impl Bounds {
    /// Those of every run, and those of these objectives.
    pub fn of<'a>(objectives: impl IntoIterator<Item = &'a Objective>) -> Self {
        let decades =
            (0..).map(|power| FIRST_NS / 10 * 10u64.pow(power)).take_while(|first| first * 10 < LAST_NS);
        let fixed = decades.flat_map(|first| STEPS.map(|step| first * step));
        let time = |objective: &Objective| match objective.bound {
            Bound::Time(time) => Some(time.0),
            Bound::Rate(_) | Bound::Fraction(_) => None,
        };
        let own = objectives.into_iter().filter_map(time).take(OF_OBJECTIVES_MAX);
        let mut bounds_ns: Vec<u64> = fixed.chain([LAST_NS]).chain(own).collect();
        bounds_ns.sort_unstable();
        bounds_ns.dedup();
        let ends = bounds_ns.iter().map(|bound_ns| bucket_of(bound_ns.saturating_add(1))).collect();
        Self { bounds_ns, ends }
    }

    /// In nanoseconds, ascending.
    pub fn iter_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.bounds_ns.iter().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.bounds_ns.len()
    }
}

/// How many values lie up to each bound, and what all come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Buckets {
    /// Of each bound those up to it, smaller bounds' among them.
    pub cumulative: Vec<u64>,
    /// All, larger ones too.
    pub count: u64,
    /// Σ in nanoseconds, exact.
    pub sum_ns: u128,
}

impl Buckets {
    /// Of a histogram's buckets, ascending.
    pub(super) fn of(
        buckets: impl Iterator<Item = (usize, u64)>,
        moments: &Moments,
        bounds: &Bounds,
    ) -> Self {
        let mut buckets = buckets.peekable();
        let mut below = 0;
        let up_to = |(bound_ns, end): (&u64, &usize)| {
            while let Some((_, count)) = buckets.next_if(|(bucket, _)| bucket < end) {
                below += count;
            }
            // No percentile is above the largest value, whatever else its bucket stands for.
            if moments.max <= *bound_ns { moments.count } else { below }
        };
        let cumulative = bounds.bounds_ns.iter().zip(&bounds.ends).map(up_to).collect();
        Self { cumulative, count: moments.count, sum_ns: moments.sum }
    }

    /// Adds others, of the same bounds.
    pub(super) fn merge(&mut self, other: &Self) {
        self.cumulative.iter_mut().zip(&other.cumulative).for_each(|(ours, theirs)| *ours += theirs);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let table = [
            (0, "0.0"),
            (1, "0.000000001"),
            (10_000, "0.00001"),
            (1_600_000, "0.0016"),
            (1_000_000_000, "1.0"),
            (10_000_000_000, "10.0"),
            (100_000_000_000_000_000_000_000, "100000000000000.0"),
        ];
        for (ns, expected) in table {
            assert_eq!(seconds(ns), expected);
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let mut families = Families::default();
        families.begin("x_seconds", Kind::Gauge, "A \"b\" \\ c.");
        families.sample("", &[("a", "1"), ("b", "\"\\\n")], 7);
        families.sample("", &[], 1);
        let expected = "# TYPE brunt_x_seconds gauge\n# UNIT brunt_x_seconds seconds\n\
                        # HELP brunt_x_seconds A \\\"b\\\" \\\\ c.\nbrunt_x_seconds{a=\"1\",b=\"\\\"\\\\\\n\"} 7\n\
                        brunt_x_seconds 1\n# EOF\n";
        assert_eq!(families.end(), expected);
    }
}
