//! Which operations a class sends, with their weights: a description; the sampler lives in `brunt-workload`.

use crate::op::OpKind;
use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// The operations of a class with their weights. Text form `get=9,set=1`; a kind without a weight weighs 1. Raw commands
/// have a weight for each command of the plan, in their order: `raw=3+1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Kinds in the order given, each once, with a weight of at least 1 (and their sum below 2³²).
    pub weights: Vec<(OpKind, u32)>,
    /// What the weight of raw commands is the sum of; empty where there are none.
    pub commands: Vec<u32>,
}

impl Mix {
    /// What a class sends that does not say.
    pub fn usual() -> Self {
        Self { weights: vec![(OpKind::Get, 9), (OpKind::Set, 1)], commands: Vec::new() }
    }

    /// Adds raw commands with these weights to a mix without any; `None` where the sum is too large.
    pub fn with_commands(mut self, commands: Vec<u32>) -> Option<Self> {
        let sum = commands.iter().try_fold(0_u32, |sum, weight| sum.checked_add(*weight))?;
        self.weights.iter().try_fold(sum, |sum, (_, weight)| sum.checked_add(*weight))?;
        self.weights.push((OpKind::Raw, sum));
        Some(Self { commands, ..self })
    }

    /// Does the mix count, so that its data set needs counters?
    pub fn has_counters(&self) -> bool {
        self.contains(OpKind::Incr) || self.contains(OpKind::Decr)
    }

    /// Does the mix make values longer?
    pub fn extends(&self) -> bool {
        self.contains(OpKind::Append) || self.contains(OpKind::Prepend)
    }

    /// Does the mix hold this kind?
    pub fn contains(&self, kind: OpKind) -> bool {
        self.weights.iter().any(|(held, _)| *held == kind)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut weights: Vec<(OpKind, u32)> = Vec::new();
        let mut of_commands: Vec<u32> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (name, weight) = item.split_once('=').unwrap_or((item, "1"));
            let kind = name.trim().parse::<OpKind>().ok();
            let weight = match kind {
                Some(OpKind::Raw) => {
                    of_commands = weight.split('+').filter_map(|weight| weight.trim().parse().ok()).collect();
                    let is_read = of_commands.len() == weight.split('+').count();
                    of_commands
                        .iter()
                        .try_fold(0_u32, |sum, weight| sum.checked_add(*weight))
                        .filter(|_| is_read)
                }
                _ => weight.trim().parse::<u32>().ok(),
            };
            match kind.zip(weight) {
                Some((kind, _)) if weights.iter().any(|(held, _)| *held == kind) => {
                    return Err(format!("'{kind}' is named twice"));
                }
                Some(pair) => weights.push(pair),
                None => {
                    let names = OpKind::ALL.map(OpKind::name).join(", ");
                    return Err(format!(
                        "'{item}' is not an operation with its weight; expected a list such as get=9,set=1 of {names}"
                    ));
                }
            }
        }
        weights.retain(|(_, weight)| *weight > 0);
        if !weights.iter().any(|(kind, _)| *kind == OpKind::Raw) {
            of_commands.clear();
        }
        let sum: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if sum == 0 || sum > u64::from(u32::MAX) {
            return Err("expected at least one weight above 0, and a sum below 4294967296".to_owned());
        }
        Ok(Self { weights, commands: of_commands })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.weights.iter().map(|(kind, weight)| match kind {
            OpKind::Raw if !self.commands.is_empty() => {
                let commands: Vec<String> = self.commands.iter().map(u32::to_string).collect();
                format!("{kind}={}", commands.join("+"))
            }
            _ => format!("{kind}={weight}"),
        });
        formatter.write_str(&kinds.collect::<Vec<_>>().join(","))
    }
}
serde_as_text!(Mix);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::check_texts;

    #[test]
    fn mixes() {
        check_texts::<Mix>(&[
            ("get=9,set=1", Some("get=9,set=1")),
            ("get", Some("get=1")),
            ("mget=2, set=0", Some("mget=2")),
            ("gets=3,cas=1,incr=1,touch=2", Some("gets=3,cas=1,incr=1,touch=2")),
            ("get=1,get=2", None),
            ("get=0,get=2", None),
            ("get=2,get=0", None),
            ("get=0", None),
            ("get=-1", None),
            ("fetch=1", None),
            ("raw", Some("raw=1")),
            ("get=2,raw=3+0+1", Some("get=2,raw=3+0+1")),
            ("get=2,raw=0+0", Some("get=2")),
            ("raw=0+0", None),
            ("raw=1+", None),
            ("raw=1+x", None),
            ("get=1+2", None),
            ("raw=4294967295+1", None),
            ("", None),
        ]);
    }
}
