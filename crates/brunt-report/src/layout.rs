//! How a text report is laid out: the unit of its times, its width, colour, which characters it may use, and how high a bar stands for a time.
//!
//! No option of a plan and no part of a result. Invariant: without colour a report has the same bytes as with it, but for the escape
//! sequences.

use crate::quantity;
use std::fmt;
use std::str::FromStr;

/// Columns of a table, on every terminal that has as many, and in pipes.
pub(crate) const TABLE_WIDTH: usize = 78;
/// Prose in a pipe.
const PROSE_WIDTH: usize = 80;
/// Prose on terminals: lines of less are broken too often, longer ones are hard to read.
const PROSE_WIDTHS: [usize; 2] = [60, 100];

brunt_plan::named! {
    /// A unit of the times in a table, as it is printed; ASCII, ascending.
    pub enum TimeUnit {
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
        /// Milliseconds.
        Ms = "ms",
        /// Seconds.
        S = "s",
    }
}

impl TimeUnit {
    /// Its length in nanoseconds.
    pub const fn ns(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| "expected ns, us, ms or s".to_owned())
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How a report is laid out. The default is that of a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Of all times in tables; `None` is the one whose widest cell is narrowest.
    pub unit: Option<TimeUnit>,
    /// Columns of the terminal; `None` for what is no terminal.
    pub columns: Option<usize>,
    /// Colours and bold type are wanted.
    pub is_coloured: bool,
    /// The reader takes nothing but ASCII.
    pub is_ascii: bool,
}

impl Layout {
    pub(crate) fn prose_width(&self) -> usize {
        let [least, most] = PROSE_WIDTHS;
        self.columns.map_or(PROSE_WIDTH, |columns| columns.clamp(least, most))
    }

    /// More than this a table has not; a terminal that is narrower loses columns.
    pub(crate) fn table_width(&self) -> usize {
        self.columns.map_or(TABLE_WIDTH, |columns| columns.min(TABLE_WIDTH))
    }

    /// The text in characters that the reader takes. Each is replaced by one, so that nothing moves, but `±` in prose.
    pub fn in_characters(&self, text: &str) -> String {
        if !self.is_ascii {
            return text.to_owned();
        }
        let mut ascii = String::with_capacity(text.len());
        for character in text.chars() {
            match (character, BARS.iter().position(|bar| *bar == character)) {
                (_, Some(height)) => ascii.push(ASCII_BARS[height]),
                ('·', _) => ascii.push('|'),
                ('×', _) => ascii.push('x'),
                ('±', _) => ascii.push_str("+-"),
                ('…', _) => ascii.push('~'),
                (other, _) if other.is_ascii() => ascii.push(other),
                _ => ascii.push('?'),
            }
        }
        ascii
    }
}

/// Bars of a line of them, ascending.
pub(crate) const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As other text.
    #[default]
    Plain,
    /// What is read first.
    Bold,
    /// What qualifies something else.
    Dim,
    /// In green.
    Good,
    /// In yellow.
    Doubt,
    /// In red.
    Bad,
}

/// A piece of a line in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Without control characters.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

impl Span {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::Plain)
    }
}

/// A line of a report.
pub type Line = Vec<Span>;

/// A line with its escape sequences, where colours are wanted, and without blanks at its end.
pub fn painted(line: &[Span], is_coloured: bool) -> String {
    let text: String = line.iter().map(|span| span.style.paint(&span.text, is_coloured)).collect();
    text.trim_end().to_owned()
}

impl Style {
    /// The text in this style, where colours are wanted. Escape sequences of the first sixteen colours, so that a terminal's theme holds.
    pub(crate) fn paint(self, text: &str, is_coloured: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Doubt => "33",
            Self::Bad => "31",
        };
        if is_coloured && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A scale from the least time to the most.
#[derive(Clone, Copy, Debug)]
pub struct BarScale {
    least_ns: u64,
    most_ns: u64,
}

impl BarScale {
    /// The scale of these times; `None` without any.
    pub fn of(values: &[Option<u64>]) -> Option<Self> {
        let given = || values.iter().flatten().copied();
        Some(Self { least_ns: given().min()?.max(1), most_ns: given().max()?.max(1) })
    }

    /// Widens the scale to a decade, so that times that are nearly equal have bars of nearly equal length.
    pub fn with_a_decade(self) -> Self {
        Self { most_ns: self.most_ns.max(self.least_ns.saturating_mul(10)), ..self }
    }

    /// The bar of a time; a blank for none.
    pub fn bar(&self, time_ns: Option<u64>) -> char {
        let Some(ns) = time_ns else { return ' ' };
        let height = self.part(ns) * (BARS.len() - 1) as f64;
        BARS[(height.round() as usize).min(BARS.len() - 1)]
    }

    /// Where a time stands from the least, 0, to the most, 1.
    pub(crate) fn part(&self, ns: u64) -> f64 {
        let span = (self.most_ns as f64 / self.least_ns as f64).ln();
        if span > 0.0 { (ns.max(1) as f64 / self.least_ns as f64).ln() / span } else { 0.0 }
    }
}

impl std::fmt::Display for BarScale {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = quantity::time(self.most_ns);
        match self.least_ns == self.most_ns {
            true => formatter.write_str(&most),
            false => write!(formatter, "{} to {most}, log", quantity::time_as(self.most_ns, self.least_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_names() {
        assert_eq!(TimeUnit::ALL.map(|unit| unit.name().parse()), TimeUnit::ALL.map(Ok));
        assert_eq!("min".parse::<TimeUnit>(), Err("expected ns, us, ms or s".to_owned()));
    }

    #[test]
    fn without_utf8_nothing_moves() {
        let ascii = Layout { is_ascii: true, ..Layout::default() };
        assert_eq!(ascii.in_characters("a · b × c ▁▂█ é d…"), "a | b x c  .# ? d~");
        assert_eq!(Layout::default().in_characters("a · b"), "a · b");
    }

    fn bars(times_ns: &[Option<u64>], scale: BarScale) -> String {
        times_ns.iter().map(|time_ns| scale.bar(*time_ns)).collect()
    }

    #[test]
    fn bars_are_logarithmic() {
        let times_ns = [Some(100), Some(1_000), None, Some(10_000)];
        assert_eq!(bars(&times_ns, BarScale::of(&times_ns).unwrap()), "▁▅ █");
        let alike = [Some(100), Some(120)];
        assert_eq!(bars(&alike, BarScale::of(&alike).unwrap()), "▁█");
        assert_eq!(bars(&alike, BarScale::of(&alike).unwrap().with_a_decade()), "▁▂");
        assert!(BarScale::of(&[None]).is_none());
    }
}
