//! Which operations a class sends, with their weights (`--mix`), and commands of the user's own (`--command`): descriptions; the sampler
//! lives in `brunt-workload`.
//!
//! Invariant: the names of commands are each their own within a plan.

use crate::op::{OpId, OpKind, OpName};
use crate::units::{joined, text_form};
use std::fmt;

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
        Self::of([(OpKind::Get, 9), (OpKind::Set, 1)])
    }

    /// These kinds, but for those that weigh nothing.
    pub fn of(weights: impl IntoIterator<Item = (OpKind, u32)>) -> Self {
        let weights = weights.into_iter().filter(|(_, weight)| *weight > 0).collect();
        Self { weights, commands: Vec::new() }
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

    fn of_text(text: &str) -> Result<Self, String> {
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

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.weights.iter().map(|(kind, weight)| match kind {
            OpKind::Raw if !self.commands.is_empty() => {
                format!("{kind}={}", joined(&self.commands).replace(',', "+"))
            }
            _ => format!("{kind}={weight}"),
        });
        formatter.write_str(&joined(kinds))
    }
}

text_form!(Mix);

/// A command as the user gives it. Text form `[NAME][@WEIGHT]=TEMPLATE`, or the template alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// What its row is called; none: by its first word.
    pub name: Option<OpName>,
    /// Its part of the mix.
    pub weight: Option<u32>,
    /// The command, with placeholders.
    pub template: String,
}

/// A command of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What its row is called.
    pub name: OpName,
    /// The command, with placeholders.
    pub template: String,
}

impl CommandSpec {
    /// A command without a name or a weight of its own.
    pub fn of(template: &str) -> Self {
        Self { name: None, weight: None, template: template.to_owned() }
    }

    /// The name that its row would have if there were no other: what it is called, or its first word, or `raw` where that is no
    /// name.
    fn own_name(&self) -> OpName {
        let first = || self.template.split_ascii_whitespace().next()?.trim_matches(['"', '\'']).parse().ok();
        self.name.or_else(first).unwrap_or_else(|| OpKind::Raw.into())
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let Some((head, template)) = head(text.trim_start()) else { return Ok(Self::of(text)) };
        let accepted = "NAME=COMMAND, NAME@WEIGHT=COMMAND or @WEIGHT=COMMAND, e.g. 'HGET@7=HGET h {key}'; a command \
                        with '=' in its first word must be quoted";
        let (name, weight) = match head.split_once('@') {
            Some((name, weight)) => (name, Some(weight)),
            None => (head, None),
        };
        let read = |weight: &str| weight.parse::<u32>().ok().filter(|weight| *weight > 0);
        let weight = match weight.map(|weight| (weight, read(weight))) {
            Some((given, None)) => {
                return Err(format!("invalid weight '@{given}', an integer above 0: expected {accepted}"));
            }
            known => known.and_then(|(_, weight)| weight),
        };
        let name = match name {
            "" if weight.is_some() => None,
            name => Some(name.parse::<OpName>().map_err(|what| format!("{what}; in {accepted}"))?),
        };
        Ok(Self { name, weight, template: template.to_owned() })
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name {
            write!(formatter, "{name}")?;
        }
        if let Some(weight) = self.weight {
            write!(formatter, "@{weight}")?;
        }
        let is_headed = self.name.is_some() || self.weight.is_some();
        write!(formatter, "{}{}", if is_headed { "=" } else { "" }, self.template)
    }
}

/// The commands with names that differ from each other and from those of these operations: a second of the same name is
/// numbered.
pub fn named(specs: &[CommandSpec], taken: &[OpName]) -> Vec<Command> {
    let mut held = taken.to_vec();
    let mut commands = Vec::with_capacity(specs.len());
    for spec in specs {
        let own = spec.own_name();
        let numbered = |number: usize| if number == 1 { own } else { own.numbered(number) };
        // One number is free: each of the other commands takes one at most.
        let most = held.len() + 1;
        let name = (1..=most).map(numbered).find(|name| !held.contains(name)).unwrap_or(own);
        held.push(name);
        commands.push(Command { name, template: spec.template.clone() });
    }
    commands
}

/// What an op of a plan with these commands is called in results.
pub fn name_of(commands: &[Command], op: OpId) -> OpName {
    let command = op.command().and_then(|index| commands.get(index));
    command.map_or_else(|| op.kind().into(), |command| command.name)
}

impl From<&Command> for CommandSpec {
    fn from(command: &Command) -> Self {
        // As short as it says the same.
        let bare = Self::of(&command.template);
        let is_same = bare.own_name() == command.name && command.template.parse().as_ref() == Ok(&bare);
        if is_same { bare } else { Self { name: Some(command.name), ..bare } }
    }
}

/// What is before the first `=`: a word without blanks, quotes and braces. No protocol's command begins so; the payload of an echo may,
/// and is put in quotes then. None, if it cannot be a name and a weight.
fn head(text: &str) -> Option<(&str, &str)> {
    let (head, template) = text.split_once('=')?;
    let is_template = |byte: u8| byte.is_ascii_whitespace() || b"\"'{}".contains(&byte);
    (!head.bytes().any(is_template)).then_some((head, template))
}

text_form!(CommandSpec);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], expected: &[&str]) {
        let specs: Vec<CommandSpec> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let names = |specs: &[CommandSpec]| {
            let commands = named(specs, &[OpKind::Get.into()]);
            commands.into_iter().map(|command| command.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&specs), expected, "{texts:?}");
        // What a plan writes down names them so again.
        let again: Vec<CommandSpec> =
            named(&specs, &[OpKind::Get.into()]).iter().map(CommandSpec::from).collect();
        let again: Vec<CommandSpec> = again.iter().map(|spec| spec.to_string().parse().unwrap()).collect();
        assert_eq!(names(&again), expected, "{texts:?}");
    }

    #[test]
    fn rows_have_names_of_their_own() {
        check(&["HSET a b c", "HGET a b", "HSET x y z", "HSET 1 2 3"], &["HSET", "HGET", "HSET#2", "HSET#3"]);
        check(&["HSET#2=PING", "HSET a b c", "HSET x y z"], &["HSET#2", "HSET", "HSET#3"]);
        check(&["get {key}", "set {key}"], &["get#2", "set"]);
        check(&["{key} a", "\"{value}\"", "\"PING\""], &["raw", "raw#2", "PING"]);
        check(&["write=SET a b", "write=SET c d"], &["write", "write#2"]);
        check(&["raw=x=y", "raw=\"x=y\""], &["raw", "raw#2"]);
    }
}
