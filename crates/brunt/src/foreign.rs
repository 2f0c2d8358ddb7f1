//! What is typed with another tool's habits: `memtier_benchmark`, `redis-benchmark`, `valkey-benchmark` and `mutilate` at `brunt run`.
//!
//! Speaks only where our own command line was refused and an option of another tool is why. Invariant: a command line that is
//! offered is one that we take.

mod line;
mod table;
mod translation;
mod value;

use crate::cli;
use clap::Command;
use line::{Line, OptionOwner, TypedOption};
use std::fmt::Write;
use std::path::Path;
use table::{Row, Tool, Translation};
use translation::{Answer, quoted};

/// Commands of ours that take the options of a plan.
const COMMANDS: [&str; 6] = ["run", "scan", "search", "load", "compare", "doctor"];

/// Lines of an answer are no longer, where a note can begin one of its own.
const WIDTH: usize = 100;

/// A heading names so many options.
const NAMES_SHOWN: usize = 4;

/// What the words come to, if they are meant for another tool: `words` as typed, with the name of the program.
pub(crate) fn answer(words: &[String]) -> Option<String> {
    let name = words.get(1).filter(|name| COMMANDS.contains(&name.as_str()))?;
    let mut program = cli::command();
    program.build();
    let ours = program.find_subcommand(name)?.clone();
    let read = |tool| Line::read(tool, &ours, &words[2..]);
    // Where two explain as much, the more common one is meant.
    let lines = [Tool::Redis, Tool::Memtier, Tool::Mutilate].map(read);
    let line =
        lines.into_iter().reduce(|best, next| if score(&next) > score(&best) { next } else { best })?;
    if !line.is_evidence() {
        return None;
    }
    Some(written(&line, name, &program))
}

/// How well a line goes with its tool.
fn score(line: &Line) -> i64 {
    let of = |given: &TypedOption| match given.reading {
        OptionOwner::Foreign(row) if line.tool.takes_those_of(row.of) => {
            let fits = row.takes.fits(given.value.as_deref());
            match (fits, given.is_accepted) {
                (true, false) => 4,
                (true, true) => 1,
                (false, false) => 1,
                (false, true) => -1,
            }
        }
        OptionOwner::Foreign(_) | OptionOwner::Unknown => -4,
        OptionOwner::Brunt => 0,
    };
    let positional = [0, -2, 2][line.command.len().min(2)];
    line.given.iter().map(of).sum::<i64>() + positional
}

/// Is some of it ours beyond doubt? Then options that both have are ours.
fn is_mixed(line: &Line) -> bool {
    line.given.iter().any(|given| match given.reading {
        OptionOwner::Brunt => true,
        OptionOwner::Foreign(row) => {
            // A server is written in our way wherever one is.
            let is_server = matches!(given.name.as_str(), "-s" | "--server");
            given.is_accepted && !is_server && !row.takes.fits(given.value.as_deref())
        }
        OptionOwner::Unknown => false,
    })
}

/// One option of the line and what is said of it.
struct OptionAnswer<'a> {
    given: &'a TypedOption,
    row: Option<&'static Row>,
    answer: Answer,
    is_kept: bool,
}

fn entry<'a>(line: &Line, given: &'a TypedOption, is_mixed: bool) -> OptionAnswer<'a> {
    let kept = |row| {
        let typed = given.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let pieces = if given.is_secret() { translation::without_password(given) } else { vec![typed] };
        OptionAnswer { given, row, answer: Answer { pieces, note: String::new() }, is_kept: true }
    };
    let OptionOwner::Foreign(row) = given.reading else {
        let is_known = matches!(given.reading, OptionOwner::Brunt);
        let note = if is_known { "" } else { "neither brunt nor the other tools have it" };
        return match is_known {
            true => kept(None),
            false => OptionAnswer {
                given,
                row: None,
                answer: Answer { note: note.to_owned(), ..Answer::default() },
                is_kept: false,
            },
        };
    };
    let value = given.value.as_deref().unwrap_or_default();
    let fits = row.takes.fits(given.value.as_deref());
    // A server that other options say more of is written with these.
    let is_part = row.names.contains(&"-s") && ["-p", "-P", "--tls"].iter().any(|name| line.has(name));
    if given.is_accepted && (is_mixed && !is_part || !fits) {
        return kept(Some(row));
    }
    let answer = match row.ours {
        _ if !fits && row.takes != value::ValueShape::Text => {
            Answer { note: format!("{} does not take this value", row.of.name()), ..Answer::default() }
        }
        Translation::As(text) => {
            Answer { pieces: vec![text.replace("{}", &quoted(value))], note: String::new() }
        }
        Translation::Made(meaning) => translation::answer(meaning, value, line),
        Translation::Nothing => Answer::default(),
    };
    let note = if answer.note.is_empty() { row.note.to_owned() } else { answer.note };
    OptionAnswer { given, row: Some(row), answer: Answer { note, ..answer }, is_kept: false }
}

/// The whole answer.
fn written(line: &Line, name: &str, program: &Command) -> String {
    let is_mixed = is_mixed(line);
    let mut entries: Vec<OptionAnswer<'_>> =
        line.given.iter().map(|given| entry(line, given, is_mixed)).collect();
    entries.iter_mut().for_each(say_what_differs);
    let mut text = format!("error: {}; brunt {name} has other names:\n", heading(line, &entries));
    let rows: Vec<(String, String, String)> = entries
        .iter()
        .filter(|entry| !entry.is_kept || !entry.answer.note.is_empty())
        .map(|entry| (shown(entry), ours_of(&entry.answer), entry.answer.note.clone()))
        .chain((!line.command.is_empty()).then(|| {
            let answer = translation::command(&line.command);
            (line.command.join(" "), ours_of(&answer), String::new())
        }))
        .collect();
    table_of(&mut text, &rows);
    if let Some(whole) = whole(line, name, program, &entries, is_mixed) {
        let _ = write!(text, "The whole command line:\n  {whole}\n");
    }
    if line.tool == Tool::Mutilate && !is_mixed {
        text.push_str("Or as it is, with that tool's report: brunt mutilate OPTIONS\n");
    }
    text
}

/// An option that both have, with another meaning.
fn say_what_differs(entry: &mut OptionAnswer<'_>) {
    let (Some(row), Some(arg)) = (entry.row, &entry.given.ours) else { return };
    let Some(long) = arg.get_long().filter(|_| !entry.given.name.starts_with("--")) else { return };
    let is_same = |piece: &String| piece.split(' ').next() == Some(&format!("--{long}"));
    if entry.is_kept {
        let theirs = match row.ours {
            Translation::As(text) => text.split(' ').next().unwrap_or_default(),
            Translation::Made(_) | Translation::Nothing => return,
        };
        if theirs != format!("--{long}") {
            entry.answer.note = format!("taken as --{long}; {}'s is {theirs}", row.of.name());
        }
    } else if !entry.answer.pieces.iter().any(is_same) && !entry.answer.note.contains("here ") {
        let says = std::mem::take(&mut entry.answer.note);
        let gap = if says.is_empty() { "" } else { "; " };
        entry.answer.note = format!("here {} is --{long}{gap}{says}", entry.given.name);
    }
}

fn heading(line: &Line, entries: &[OptionAnswer<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.given.is_evidence()) {
        if !names.contains(&entry.given.name.as_str()) {
            names.push(&entry.given.name);
        }
    }
    let is_of_valkey = entries.iter().any(|entry| entry.row.is_some_and(|row| row.of == Tool::Valkey));
    let tool = if is_of_valkey && line.tool == Tool::Redis { Tool::Valkey } else { line.tool };
    let (verb, noun) = if names.len() == 1 { ("is", "an option") } else { ("are", "options") };
    if names.is_empty() {
        return format!("a command behind the options is of {}", tool.name());
    }
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let more_text = format!("{more} more");
    if more > 1 {
        names.truncate(NAMES_SHOWN);
        names.push(&more_text);
    }
    let list = match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    };
    format!("{list} {verb} {noun} of {}", tool.name())
}

/// An option as typed; passwords are not shown.
fn shown(entry: &OptionAnswer<'_>) -> String {
    match entry.given.is_secret() {
        true => format!("{} (secret)", entry.given.name),
        false => entry.given.words.join(" "),
    }
}

fn ours_of(answer: &Answer) -> String {
    if answer.pieces.is_empty() { "-".to_owned() } else { answer.pieces.join(" ") }
}

fn table_of(text: &mut String, rows: &[(String, String, String)]) {
    let width = |column: fn(&(String, String, String)) -> &String| {
        rows.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
    };
    let (theirs_width, ours_width) = (width(|row| &row.0).min(34), width(|row| &row.1).min(44));
    for (theirs, ours, note) in rows {
        let line = format!("  {theirs:<theirs_width$}  {ours:<ours_width$}");
        if note.is_empty() {
            let _ = writeln!(text, "{}", line.trim_end());
        } else if line.chars().count() + 2 + note.chars().count() <= WIDTH {
            let _ = writeln!(text, "{line}  {note}");
        } else {
            let _ = writeln!(text, "{}\n  {:theirs_width$}    {note}", line.trim_end(), "");
        }
    }
}

/// The line in our words, if we take it.
fn whole(
    line: &Line,
    name: &str,
    program: &Command,
    entries: &[OptionAnswer<'_>],
    is_mixed: bool,
) -> Option<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut add = |piece: &String| {
        if !pieces.contains(piece) {
            pieces.push(piece.clone());
        }
    };
    let has_server = entries.iter().any(|entry| entry.answer.pieces.iter().any(|piece| is_server(piece)));
    if !has_server && !is_mixed && line.tool != Tool::Mutilate && name != "compare" {
        translation::server("", line).pieces.iter().for_each(&mut add);
    }
    for entry in entries {
        if !matches!(entry.given.reading, OptionOwner::Unknown) {
            entry.answer.pieces.iter().for_each(&mut add);
        }
    }
    if !line.command.is_empty() {
        translation::command(&line.command).pieces.iter().for_each(&mut add);
    }
    let name = match () {
        () if line.tool == Tool::Mutilate && line.has("--loadonly") => "load",
        () if line.tool == Tool::Mutilate && line.has("--search") => "search",
        () if line.tool == Tool::Mutilate && line.has("--scan") => "scan",
        () => name,
    };
    let rest: Vec<String> = line.rest.iter().map(|word| quoted(word)).collect();
    let whole = format!("brunt {name} {}", [rest, pieces].concat().join(" "));
    let is_taken = program.clone().try_get_matches_from(shell_words(whole.trim_end())).is_ok();
    is_taken.then(|| whole.trim_end().to_owned())
}

fn is_server(piece: &str) -> bool {
    ["--server", "-s ", "--live"].iter().any(|option| piece.starts_with(option))
}

/// The words of a line that was quoted by [`quoted`].
fn shell_words(line: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = words.last_mut().expect("there is one from the start");
        match letter {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => last.extend(letters.next()),
            ' ' if !is_quoted => words.push(String::new()),
            other => last.push(other),
        }
    }
    words.into_iter()
}

/// The words that may have been meant for another tool though we take them: the plan file that they name does not exist.
pub(crate) fn answer_to_missing_plan(words: &[String], matches: &clap::ArgMatches) -> Option<String> {
    let (_, matches) = matches.subcommand()?;
    let plan = matches.try_get_one::<std::path::PathBuf>("plan").ok().flatten()?;
    if Path::exists(plan) { None } else { answer(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_are_read_back() {
        for word in ["plain", "two words", "it's", "p99 < 1ms", "SET {key} {value}", "a\\b"] {
            let read: Vec<String> = shell_words(&format!("x {}", quoted(word))).collect();
            assert_eq!(read, ["x", word]);
        }
    }
}
