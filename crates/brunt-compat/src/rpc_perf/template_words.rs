//! Parameters of a workload as words of a command template.
//!
//! Not methods: which words a request has is theirs. Invariant: what is drawn once, when a workload is read, follows from the seed and the place of
//! the parameter.

use super::config::{Parameter, Style};
use brunt_plan::split_mix::{mix, output};

/// Numbers that are drawn for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// How many there are, from 0.
    pub count: u64,
    /// How many digits each has.
    pub digits: u32,
}

/// Parameters that become words of a template.
pub(super) struct TemplateWords {
    seed: u64,
    /// The number that is drawn for each request, where one is.
    pub(super) numbers: Option<Numbers>,
    /// What has no effect.
    pub(super) warnings: Vec<String>,
}

impl TemplateWords {
    /// None yet; what is drawn once follows from this seed.
    pub(super) const fn of(seed: u64) -> Self {
        Self { seed, numbers: None, warnings: Vec::new() }
    }

    /// A parameter as a word of the template. Without a `seed` its place among the parameters is its seed.
    pub(super) fn word(&mut self, index: usize, parameter: &Parameter) -> Result<String, String> {
        let size = size_of(parameter);
        self.note_unused(index, parameter);
        match (parameter.style, parameter.num) {
            (Style::Static, Some(_)) => Err(format!("parameter {index}: num requires style = \"random\"")),
            (Style::Static, None) => {
                let digits = parameter.seed.unwrap_or(index as u64).to_string();
                let kept = digits.len().min(size as usize);
                Ok(quoted(format!("{:0>1$}", &digits[..kept], size as usize)))
            }
            (Style::Random, Some(num)) => self.drawn_number(index, parameter.regenerate, num.get(), size),
            (Style::Random, None) if parameter.regenerate && size > 0 => Ok(format!("{{random:{size}}}")),
            (Style::Random, None) => Ok(quoted(letters(self.seed, index, size))),
        }
    }

    /// Warns of keys that have no effect with the style.
    pub(super) fn note_unused(&mut self, index: usize, parameter: &Parameter) {
        let unused = match parameter.style {
            Style::Static if parameter.regenerate => "regenerate has no effect with style = \"static\"",
            Style::Random if parameter.seed.is_some() => {
                "seed has no effect with style = \"random\"; --seed sets all random choices"
            }
            _ => return,
        };
        self.warn(index, unused);
    }

    pub(super) fn warn(&mut self, index: usize, what: &str) {
        self.warnings.push(format!("parameter {index}: {what}"));
    }

    fn drawn_number(
        &mut self,
        index: usize,
        regenerates: bool,
        count: u64,
        size: u32,
    ) -> Result<String, String> {
        let digits = size.max((count - 1).checked_ilog10().unwrap_or(0) + 1);
        if !regenerates {
            let number = draws(self.seed, index).next().map_or(0, |drawn| below(drawn, count));
            return Ok(format!("{number:00$}", size as usize));
        }
        if self.numbers.is_some() {
            return Err(format!(
                "parameter {index}: num was given; expected one parameter with num and regenerate in a workload"
            ));
        }
        self.numbers = Some(Numbers { count, digits });
        Ok("{key}".to_owned())
    }

    /// A number from 0 that is drawn once, for places that take no letters.
    pub(super) fn drawn(&self, index: usize) -> u64 {
        draws(self.seed, index).next().unwrap_or(0)
    }
}

/// Bytes; 1 where none are given.
pub(super) fn size_of(parameter: &Parameter) -> u32 {
    parameter.size.unwrap_or(1)
}

/// A word of a template: an empty one takes quotes.
fn quoted(text: String) -> String {
    if text.is_empty() { "''".to_owned() } else { text }
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Letters and digits, each as likely as any other.
fn letters(seed: u64, index: usize, size: u32) -> String {
    let drawn = draws(seed, index).take(size as usize);
    drawn.map(|drawn| char::from(LETTERS[below(drawn, 62) as usize])).collect()
}

/// Scales 64 random bits to a number below `count`; the bias is below 2⁻⁵⁸ for letters.
fn below(drawn: u64, count: u64) -> u64 {
    ((u128::from(drawn) * u128::from(count)) >> 64) as u64
}

/// The random numbers of a parameter.
fn draws(seed: u64, index: usize) -> impl Iterator<Item = u64> {
    // Parameters have streams of their own.
    let begin = mix(seed ^ mix(index as u64 + 1));
    (0..).map(move |number| output(begin, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters of a parameter that is drawn once: all 62 about equally often, and others for another parameter or seed.
    #[test]
    fn letters_are_spread_evenly() {
        let drawn = letters(1, 0, 62_000);
        let mut counts = std::collections::BTreeMap::new();
        drawn.bytes().for_each(|byte| *counts.entry(byte).or_insert(0_u32) += 1);
        assert_eq!(counts.len(), 62);
        let chi_square: f64 =
            counts.values().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
        // 0.999 of a chi-square distribution with 61 degrees of freedom lies below 100.9.
        assert!(chi_square < 100.9, "{chi_square}");
        assert_ne!(letters(1, 0, 20), letters(1, 1, 20));
        assert_ne!(letters(1, 0, 20), letters(2, 0, 20));
    }
}
