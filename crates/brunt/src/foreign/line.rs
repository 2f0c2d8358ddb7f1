//! A command line read as another tool reads it, with our own options wherever that tool has none: by rows that say what each option
//! takes and how it is translated.
//!
//! Not the rows themselves (`table.rs`). Invariant: every word is in exactly one option, in the command or in
//! what is left.

use super::value::ValueShape;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use std::path::Path;

/// Whose option a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// redis-benchmark; valkey-benchmark takes its options, too.
    Redis,
    /// valkey-benchmark alone.
    Valkey,
    Memtier,
    Mutilate,
}

impl Tool {
    /// The name of the program.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-benchmark",
            Self::Valkey => "valkey-benchmark",
            Self::Memtier => "memtier_benchmark",
            Self::Mutilate => "mutilate",
        }
    }

    /// Does this tool understand the options of that one?
    pub(super) fn takes_those_of(self, other: Self) -> bool {
        self == other || (self == Self::Redis && other == Self::Valkey)
    }
}

/// What brunt has for an option.
#[derive(Clone, Copy)]
pub(super) enum Translation {
    /// These words, with the value in place of `{}`.
    As(&'static str),
    /// What this function makes of the value and the line.
    Made(fn(&str, &Line) -> Answer),
    /// Nothing; the note says why.
    Nothing,
}

/// What an option comes to.
#[derive(Default)]
pub(super) struct Answer {
    /// Our options, each with its value.
    pub pieces: Vec<String>,
    /// What else is to be said.
    pub note: String,
}

/// An option of another tool.
pub(super) struct Row {
    pub of: Tool,
    /// As the tool spells it.
    pub names: &'static [&'static str],
    pub takes: ValueShape,
    pub ours: Translation,
    /// What else is to be said.
    pub note: &'static str,
}

pub(super) const fn row(
    of: Tool,
    names: &'static [&'static str],
    takes: ValueShape,
    ours: Translation,
    note: &'static str,
) -> Row {
    Row { of, names, takes, ours, note }
}

/// Whose option it is.
#[derive(Clone, Copy)]
pub(super) enum OptionOwner {
    /// Of the tool of the line, or where that has none of another one.
    Foreign(&'static Row),
    Brunt,
    /// Of neither.
    Unknown,
}

/// An option as it was given.
pub(super) struct TypedOption {
    /// With its dashes, without its value.
    pub name: String,
    pub value: Option<String>,
    /// Its words as they were typed.
    pub words: Vec<String>,
    pub reading: OptionOwner,
    /// Does brunt have an option of this name, and how does that take values?
    pub ours: Option<Arg>,
    /// Would brunt take name and value?
    pub is_accepted: bool,
}

impl TypedOption {
    /// Is it a word behind one dash, whose first letter is an option of some tool by chance?
    fn is_word(&self) -> bool {
        let is_alone = self.words.len() == 1 && !self.name.starts_with("--");
        let value = self.value.as_deref().filter(|_| is_alone);
        value.is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_alphabetic()))
    }

    /// Shows that another tool was meant: brunt has no such option, or none that takes such a value.
    pub(super) fn is_evidence(&self) -> bool {
        let OptionOwner::Foreign(row) = self.reading else { return false };
        if self.is_word() {
            return false;
        }
        let Some(ours) = &self.ours else { return true };
        let fits = row.takes.fits(self.value.as_deref());
        // A flag of one tool is an option with a value of the other.
        let is_flag = !ours.get_action().takes_values();
        let is_file = self.value.as_deref().is_some_and(|value| Path::new(value).exists());
        let is_other = is_flag != self.value.is_none() && !is_file;
        !self.is_accepted && fits && (row.takes.is_telling() || is_other)
    }
}

/// A command line behind the name of our command.
pub(super) struct Line {
    table: &'static [Row],
    pub tool: Tool,
    pub given: Vec<TypedOption>,
    /// The command to send, which is behind the options of redis-benchmark.
    pub command: Vec<String>,
    /// What is neither, such as our plan file.
    pub rest: Vec<String>,
}

impl Line {
    /// Reads the words as those of `tool`, whose options are in the table, for our command.
    pub(super) fn read(table: &'static [Row], tool: Tool, ours: &Command, words: &[String]) -> Self {
        let mut line = Self { table, tool, given: Vec::new(), command: Vec::new(), rest: Vec::new() };
        // Several words are files of a command that takes several.
        let takes_files = ours.get_positionals().any(|arg| matches!(arg.get_action(), ArgAction::Append));
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += if is_option(word) || line.find(tool, word).is_some() {
                line.read_option(ours, word, &words[at + 1..])
            } else if tool == Tool::Redis && !takes_files && is_command(word) {
                line.command = words[at..].to_vec();
                words.len()
            } else {
                line.rest.push(word.clone());
                1
            };
        }
        line
    }

    /// The row of an option of this tool.
    fn find(&self, tool: Tool, name: &str) -> Option<&'static Row> {
        self.table.iter().find(|row| tool.takes_those_of(row.of) && row.names.contains(&name))
    }

    /// Shows that another tool was meant: an option does, or a command of several words where we take one plan file.
    pub(super) fn is_evidence(&self) -> bool {
        self.given.iter().any(TypedOption::is_evidence) || self.command.len() > 1
    }

    /// Reads one word of options and what they take of the next ones: how many words that is.
    fn read_option(&mut self, ours: &Command, word: &str, next: &[String]) -> usize {
        if word.starts_with("--") {
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            return 1 + self.take(ours, name, value, next);
        }
        // redis-benchmark has no letters together.
        if self.tool == Tool::Redis && self.find(Tool::Redis, word).is_some() {
            return 1 + self.take(ours, word, None, next);
        }
        let mut letters = word[1..].chars();
        // The parser of none of them gets beyond a letter that it does not have.
        let first: String = word.chars().take(2).collect();
        if matches!(self.reading_of(ours, &first).0, OptionOwner::Unknown) {
            return 1 + self.take(ours, word, None, next);
        }
        while let Some(letter) = letters.next() {
            let name = format!("-{letter}");
            let behind = Some(letters.as_str()).filter(|behind| !behind.is_empty());
            if self.takes_value(ours, &name) {
                return 1 + self.take(ours, &name, behind, next);
            }
            self.take(ours, &name, None, &[]);
        }
        1
    }

    fn takes_value(&self, ours: &Command, name: &str) -> bool {
        match self.reading_of(ours, name) {
            (OptionOwner::Foreign(row), _) => row.takes != ValueShape::Nothing,
            (_, Some(arg)) => arg.get_action().takes_values(),
            (_, None) => false,
        }
    }

    fn reading_of(&self, ours: &Command, name: &str) -> (OptionOwner, Option<Arg>) {
        let arg = ours.get_arguments().find(|arg| is_named(arg, name)).cloned();
        let arg = arg
            .or_else(|| (name == "-h" || name == "--help").then(|| Arg::new("help").action(ArgAction::Help)));
        let others = [Tool::Memtier, Tool::Redis, Tool::Mutilate];
        let row = self
            .find(self.tool, name)
            .or_else(|| others.iter().filter(|_| arg.is_none()).find_map(|other| self.find(*other, name)));
        let reading = match row {
            Some(row) => OptionOwner::Foreign(row),
            None if arg.is_some() => OptionOwner::Brunt,
            None => OptionOwner::Unknown,
        };
        (reading, arg)
    }

    /// Takes one option with its value: how many of the next words that is.
    fn take(&mut self, ours: &Command, name: &str, inside: Option<&str>, next: &[String]) -> usize {
        let (reading, arg) = self.reading_of(ours, name);
        let counted = |count: usize| next.iter().take(count).take_while(|word| !is_option(word)).count();
        let count = match (inside, reading, &arg) {
            (Some(_), ..) => 0,
            // Anything may be a password, and none is shown.
            (None, OptionOwner::Foreign(row), _) if row.takes == ValueShape::Secret => next.len().min(1),
            (None, OptionOwner::Foreign(row), _) if row.takes != ValueShape::Nothing => counted(1),
            (None, OptionOwner::Foreign(_) | OptionOwner::Unknown, _) | (None, _, None) => 0,
            (None, OptionOwner::Brunt, Some(arg))
                if arg.get_action().takes_values() && !arg.is_require_equals_set() =>
            {
                counted(arg.get_num_args().map_or(1, |range| range.max_values()))
            }
            (None, OptionOwner::Brunt, Some(_)) => 0,
        };
        let behind = &next[..count];
        let value = inside.map(str::to_owned).or_else(|| behind.first().cloned());
        let typed = match inside {
            Some(value) if name.starts_with("--") => format!("{name}={value}"),
            Some(value) => format!("{name}{value}"),
            None => name.to_owned(),
        };
        let words = std::iter::once(typed).chain(behind.iter().cloned()).collect();
        let is_accepted = arg.is_some() && accepts(ours, name, value.as_deref());
        self.given.push(TypedOption { name: name.to_owned(), value, words, reading, ours: arg, is_accepted });
        count
    }

    /// The value of an option of the tool, by the first of its names; the last one given holds.
    pub(super) fn value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.values(name).last()
    }

    /// All values of an option of the tool.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.given.iter().filter(move |given| given.is_of(name));
        given.filter_map(|given| given.value.as_deref())
    }

    /// Is this option of the tool given?
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.is_of(name))
    }

    /// The number behind an option of the tool, or what the tool takes where it is not given.
    pub(super) fn number(&self, name: &str, default: u64) -> u64 {
        self.value(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }
}

impl TypedOption {
    /// Is there a password in the value?
    pub(super) fn is_secret(&self) -> bool {
        let is_one = match self.reading {
            OptionOwner::Foreign(row) => row.takes == ValueShape::Secret,
            OptionOwner::Brunt | OptionOwner::Unknown => self.name == "--password",
        };
        let value = self.value.as_deref().unwrap_or_default();
        (is_one && !value.is_empty() && !value.starts_with('@'))
            || (value.contains("://") && value.contains('@'))
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        matches!(self.reading, OptionOwner::Foreign(row) if row.names.contains(&name))
    }
}

/// Could this be the name of a Redis command, and no file?
fn is_command(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic()) && !Path::new(word).exists()
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word.parse::<f64>().is_err()
}

fn is_named(arg: &Arg, name: &str) -> bool {
    match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| name.chars().skip(1).eq([short])),
    }
}

/// Does our command take this option with this value? What else it requires is another matter.
fn accepts(ours: &Command, name: &str, value: Option<&str>) -> bool {
    let word = match value {
        Some(value) if name.starts_with("--") => format!("{name}={value}"),
        Some(value) => format!("{name}{value}"),
        None => name.to_owned(),
    };
    match ours.clone().try_get_matches_from(["brunt".to_owned(), word]) {
        Ok(_) => true,
        Err(error) => {
            matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict | ErrorKind::DisplayHelp
            ) && value.is_none_or(|_| error.kind() != ErrorKind::DisplayHelp)
        }
    }
}
