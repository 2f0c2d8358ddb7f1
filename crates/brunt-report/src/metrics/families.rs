//! The layout of OpenMetrics text: families with their head lines, samples with their labels, the end.
//!
//! Not what they mean. Invariants: samples of a family follow its head; counters end with `_total`; a family whose name
//! ends with a unit says so.

use std::fmt::{Display, Write};

/// What every name begins with.
const PREFIX: &str = "brunt_";
/// Names end with these where what they count has a unit.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
    StateSet,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
            Self::StateSet => "stateset",
        }
    }
}

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Families {
    text: String,
    /// The family that samples belong to.
    name: String,
    /// What is to be written before its first sample.
    head: String,
}

impl Families {
    /// Begins a family. One without a sample is left out.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        self.name = format!("{PREFIX}{name}");
        let (name, kind) = (&self.name, kind.name());
        let unit = UNITS.iter().find(|unit| name.ends_with(&format!("_{unit}")));
        let unit = unit.map(|unit| format!("# UNIT {name} {unit}\n")).unwrap_or_default();
        self.head = format!("# TYPE {name} {kind}\n{unit}# HELP {name} {}\n", Escaped(help));
    }

    /// Adds a sample to the family.
    pub(super) fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(&std::mem::take(&mut self.head));
        let mut text = String::new();
        for (index, (label, value)) in labels.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            put(&mut text, format_args!("{comma}{label}=\"{}\"", Escaped(value)));
        }
        let labels = if text.is_empty() { text } else { format!("{{{text}}}") };
        put(&mut self.text, format_args!("{}{suffix}{labels} {value}\n", self.name));
    }

    /// A family of states, of which each holds or does not.
    pub(super) fn states(&mut self, name: &str, help: &str, states: &[(&str, bool)]) {
        self.family(name, Kind::StateSet, help);
        let label = self.name.clone();
        for (state, holds) in states {
            self.sample("", &[(&label, state)], u8::from(*holds));
        }
    }

    /// All of it.
    pub(super) fn end(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// A string takes everything.
fn put(text: &mut String, piece: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(piece);
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
pub(super) fn seconds(ns: u128) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let digits = text.trim_end_matches('0');
    if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() }
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
        families.family("x_seconds", Kind::Gauge, "A \"b\" \\ c.");
        families.sample("", &[("a", "1"), ("b", "\"\\\n")], 7);
        families.sample("", &[], 1);
        let expected = "# TYPE brunt_x_seconds gauge\n# UNIT brunt_x_seconds seconds\n\
                        # HELP brunt_x_seconds A \\\"b\\\" \\\\ c.\nbrunt_x_seconds{a=\"1\",b=\"\\\"\\\\\\n\"} 7\n\
                        brunt_x_seconds 1\n# EOF\n";
        assert_eq!(families.end(), expected);
    }
}
