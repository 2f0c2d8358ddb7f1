//! The options of mutilate that are numbers, read before any of them is checked.

use crate::options::{ParsedOptions, Rule, integer, number};

/// The options that are numbers.
pub(super) struct Numbers {
    given: Vec<(&'static str, i32)>,
    pub(super) update: f64,
}

impl Numbers {
    pub(super) fn read(rules: &[Rule], parsed: &ParsedOptions) -> Result<Self, String> {
        let mut given = Vec::new();
        for Rule { long, .. } in rules.iter().filter(|rule| rule.is_integer) {
            if let Some(text) = parsed.value(long) {
                let read = integer(text);
                let accepted = || {
                    format!("invalid value '{text}' for --{long}: expected a whole number up to {}", i32::MAX)
                };
                let value = read.ok_or_else(accepted)?;
                given.push((*long, value));
            }
        }
        let update = match parsed.value("update") {
            None => 0.0,
            Some(text) => number(text)
                .ok_or_else(|| format!("invalid value '{text}' for --update: expected a number"))?,
        };
        Ok(Self { given, update })
    }

    pub(super) fn get(&self, long: &str) -> Option<i32> {
        self.given.iter().find(|(held, _)| *held == long).map(|(_, value)| *value)
    }

    /// The option or its default, as a count.
    pub(super) fn count(&self, long: &str, default: u64) -> u64 {
        self.get(long).map_or(default, |value| u64::try_from(value).unwrap_or(0))
    }
}
