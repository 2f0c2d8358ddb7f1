//! Which operations a class sends, with their weights: a description; the sampler lives in `brunt-workload`.

use crate::op::OpKind;
use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// The operations of a class with their weights. Text form `get=9,set=1`; a kind without a weight weighs 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Kinds in the order given, each once, with a weight of at least 1 (and their sum below 2³²).
    pub weights: Vec<(OpKind, u32)>,
}

impl Mix {
    /// The kinds a plan may name: all but raw commands, which need a protocol that has them.
    pub const ACCEPTED: &'static [OpKind] = &[
        OpKind::Get,
        OpKind::Gets,
        OpKind::Mget,
        OpKind::Set,
        OpKind::Add,
        OpKind::Replace,
        OpKind::Append,
        OpKind::Prepend,
        OpKind::Cas,
        OpKind::Incr,
        OpKind::Decr,
        OpKind::Delete,
        OpKind::Touch,
    ];

    /// Does the mix count, so that its data set needs counters?
    pub fn counts(&self) -> bool {
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
        for item in text.split(',').map(str::trim) {
            let (name, weight) = item.split_once('=').unwrap_or((item, "1"));
            let kind = name.trim().parse::<OpKind>().ok().filter(|kind| Self::ACCEPTED.contains(kind));
            let weight = weight.trim().parse::<u32>().ok();
            match kind.zip(weight) {
                Some((kind, _)) if weights.iter().any(|(held, _)| *held == kind) => {
                    return Err(format!("'{kind}' is named twice"));
                }
                Some((_, 0)) => {}
                Some(pair) => weights.push(pair),
                None => {
                    let names = Self::ACCEPTED.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
                    return Err(format!(
                        "'{item}' is not an operation with its weight; expected a list such as get=9,set=1 of {names}"
                    ));
                }
            }
        }
        let sum: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if sum == 0 || sum > u64::from(u32::MAX) {
            return Err("expected at least one weight above 0, and a sum below 4294967296".to_owned());
        }
        Ok(Self { weights })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, weight)) in self.weights.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{kind}={weight}")?;
        }
        Ok(())
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
            ("get=0", None),
            ("get=-1", None),
            ("fetch=1", None),
            ("raw=1", None),
            ("", None),
        ]);
    }
}
