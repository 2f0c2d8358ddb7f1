//! Words of our own that an error offers for one that we do not have.
//!
//! The parser offers what shares letters; here only misspellings stay, and the commands that have the option.

use brunt_compat::spelling;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Takes suggestions out of the error of a command line that are no misspelling of what was typed, and names the other commands of
/// `program` that have the option.
pub(crate) fn without_far_ones(mut error: Error, mut program: Command, words: &[String]) -> Error {
    // "to pass '--x' as a value, use '-- --x'": no plan file begins with dashes.
    error.remove(ContextKind::Suggested);
    let pairs = [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ];
    for (typed, suggested) in pairs {
        let Some(ContextValue::String(typed)) = error.get(typed).cloned() else { continue };
        let offered: Vec<String> = match error.get(suggested) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        let word =
            |text: &str| text.split([' ', '=']).next().unwrap_or_default().trim_start_matches('-').to_owned();
        let near: Vec<String> =
            offered.into_iter().filter(|text| is_misspelling(&word(&typed), &word(text))).collect();
        error.remove(suggested);
        if let [one] = &near[..] {
            error.insert(suggested, ContextValue::String(one.clone()));
        } else if !near.is_empty() {
            error.insert(suggested, ContextValue::Strings(near));
        }
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // The parser's has whatever option resembles the unknown one.
        program.build();
        let command = words.get(1).and_then(|name| program.find_subcommand_mut(name));
        if let Some(usage) = command.map(Command::render_usage) {
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
        if let Some(tip) = other_commands(&error, &program) {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
    }
    error
}

/// Which commands have the option that one of them does not have.
fn other_commands(error: &Error, program: &Command) -> Option<StyledStr> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let long = typed.strip_prefix("--")?.split([' ', '=']).next()?;
    let has = |command: &&Command| command.get_arguments().any(|arg| arg.get_long() == Some(long));
    let names: Vec<String> = program
        .get_subcommands()
        .filter(has)
        .map(|command| format!("brunt {}", command.get_name()))
        .collect();
    (!names.is_empty()).then(|| format!("--{long} is an option of {}", names.join(", ")).into())
}

/// Can one be had from the other by one change of a letter, or two in a word of ten letters and more?
fn is_misspelling(typed: &str, meant: &str) -> bool {
    let most = if typed.chars().count().min(meant.chars().count()) >= 10 { 2 } else { 1 };
    spelling::distance(typed, meant) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_names_are_misspellings() {
        let table = [
            ("rato", "rate", true),
            ("raet", "rate", true),
            ("rat", "rate", true),
            ("ratio", "rate", false),
            ("connectoins", "connections", true),
            ("conections", "connections", true),
            ("clients", "client-name", false),
            ("data-size", "data-seed", false),
            ("valuesize", "value-size", true),
            ("data-siez", "data-seed", false),
            ("conectoins", "connections", true),
        ];
        for (typed, meant, expected) in table {
            assert_eq!(is_misspelling(typed, meant), expected, "{typed} {meant}");
        }
    }
}
