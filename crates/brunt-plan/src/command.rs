//! A command of the user's own with the name of its row and its weight, as `--command` takes it: `HGET@7=HGET h {key}`.
//!
//! What is before the command is a word without blanks, quotes and braces that ends with the first `=`. No
//! protocol's command begins so; the payload of an echo may, and is put in quotes then. Invariant: names are each their
//! own within a plan.

use crate::op::{OpId, OpKind};
use crate::op_name::OpName;
use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;

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

/// What is before the first `=`, if that may be a name and a weight.
fn head(text: &str) -> Option<(&str, &str)> {
    let (head, template) = text.split_once('=')?;
    let is_template = |byte: u8| byte.is_ascii_whitespace() || b"\"'{}".contains(&byte);
    (!head.bytes().any(is_template)).then_some((head, template))
}

impl FromStr for CommandSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
}

impl fmt::Display for CommandSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
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
serde_as_text!(CommandSpec);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::check_texts;

    #[test]
    fn heads() {
        check_texts::<CommandSpec>(&[
            ("HSET {key} f=1 {value}", Some("HSET {key} f=1 {value}")),
            ("put=HSET {key} f=1 {value}", Some("put=HSET {key} f=1 {value}")),
            ("put@3=HSET {key} f {value}", Some("put@3=HSET {key} f {value}")),
            ("@3=PING", Some("@3=PING")),
            ("add 1:i32=15", Some("add 1:i32=15")),
            ("{key}={value}", Some("{key}={value}")),
            ("\"a=b\"", Some("\"a=b\"")),
            ("SET mail a@7", Some("SET mail a@7")),
            ("@0=PING", None),
            ("a@=PING", None),
            ("a@x=PING", None),
            ("=PING", None),
            ("2x=PING", None),
            (&format!("{}=PING", "a".repeat(33)), None),
        ]);
    }

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
