//! What is typed with another tool's habits: `memtier_benchmark`, `redis-benchmark`, `valkey-benchmark`, `mutilate` and YCSB at `brunt run`.
//!
//! Speaks only where our own command line was refused and an option of another tool is why. Invariant: a command line that is
//! offered is one that we take: its plan is resolved and checked as that of the command itself, before anything is opened.

mod line;
mod table;
mod translation;
mod value;
mod ycsb;

use crate::cli::{self, Arguments};
use crate::terminal::columns_of;
use crate::{campaign, compare, invalid_value, run};
use clap::{Command, FromArgMatches};
use line::{Answer, Line, OptionOwner, Row, Tool, Translation, TypedOption};
use std::fmt::Write;
use std::io;
use std::path::Path;
use table::OPTIONS;
use translation::quoted;

/// Commands of ours that take the options of a plan.
const COMMANDS: [&str; 6] = ["run", "scan", "search", "load", "compare", "doctor"];

/// Lines of an answer are no longer, where a note can begin one of its own.
const WIDTH: usize = 100;

/// The largest number of options that a heading names.
const NAMES_SHOWN: usize = 4;

/// What the words come to, if they are meant for another tool: `words` as typed, with the name of the program.
pub(crate) fn answer(words: &[String]) -> Option<String> {
    let name = words.get(1).filter(|name| COMMANDS.contains(&name.as_str()))?;
    let mut program = cli::command();
    program.build();
    if let Some((rows, pieces)) = ycsb::read(name, &words[2..]) {
        return Some(written_for_ycsb(name, &program, &rows, &pieces));
    }
    let ours = program.find_subcommand(name)?.clone();
    let read = |tool| Line::read(OPTIONS, tool, &ours, &words[2..]);
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
    // A plan file is there; another word belongs to an option before it.
    let missing = line.rest.iter().filter(|word| !Path::new(word).exists()).count() as i64;
    line.given.iter().map(of).sum::<i64>() + positional - 2 * missing
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
    /// Its tool does not take this value.
    is_wrong: bool,
}

fn entry<'a>(line: &Line, given: &'a TypedOption, is_mixed: bool) -> OptionAnswer<'a> {
    let kept = |row| {
        let typed = given.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let pieces = if given.is_secret() { translation::without_password(given) } else { vec![typed] };
        OptionAnswer {
            given,
            row,
            answer: Answer { pieces, note: String::new() },
            is_kept: true,
            is_wrong: false,
        }
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
                is_wrong: false,
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
        _ if !fits => {
            let wanted = row.takes.wanted(given.value.as_deref());
            Answer { note: format!("{} takes {wanted}", row.of.name()), ..Answer::default() }
        }
        _ if line.has("--agentmode") && !translation::is_of_agent(given) => {
            Answer { note: "an agent is told by its controller".to_owned(), ..Answer::default() }
        }
        Translation::As(text) => {
            Answer { pieces: vec![text.replace("{}", &quoted(value))], note: String::new() }
        }
        Translation::Made(translate) => translate(value, line),
        Translation::Nothing => Answer::default(),
    };
    let note = if answer.note.is_empty() { row.note.to_owned() } else { answer.note };
    OptionAnswer { given, row: Some(row), answer: Answer { note, ..answer }, is_kept: false, is_wrong: !fits }
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
            let answer = translation::command(line);
            (line.command.join(" "), ours_of(&answer), String::new())
        }))
        .collect();
    table_of(&mut text, &rows);
    let name = name_of(line, name);
    match whole(line, name, program, &entries, is_mixed) {
        Ok(whole) => {
            let _ = write!(text, "The whole command line:\n  {whole}\n");
            add_what_was_not_typed(&mut text, line, name, &entries, is_mixed);
        }
        Err(reason) => {
            let _ = writeln!(text, "No whole command line: {reason}");
        }
    }
    if line.tool == Tool::Mutilate && !is_mixed {
        text.push_str("Or as it is, with that tool's report: brunt mutilate OPTIONS\n");
    }
    text
}

/// The whole answer to a command line of YCSB.
fn written_for_ycsb(
    name: &str,
    program: &Command,
    rows: &[(String, String, String)],
    pieces: &[String],
) -> String {
    let mut text = format!("error: this is a command line of YCSB; brunt {name} has other names:\n");
    let shown = |ours: &str| if ours.is_empty() { "-".to_owned() } else { ours.to_owned() };
    let rows: Vec<_> =
        rows.iter().map(|(theirs, ours, note)| (theirs.clone(), shown(ours), note.clone())).collect();
    table_of(&mut text, &rows);
    let whole = format!("brunt {name} {}", pieces.join(" "));
    let _ = match check(program, whole.trim_end()) {
        Ok(()) => write!(text, "The whole command line:\n  {}\n", whole.trim_end()),
        Err(reason) => writeln!(text, "No whole command line: {reason}"),
    };
    text
}

/// The command of ours that does it.
fn name_of<'a>(line: &Line, typed: &'a str) -> &'a str {
    let of_mutilate =
        [("--agentmode", "agent"), ("--loadonly", "load"), ("--search", "search"), ("--scan", "scan")];
    let of_mutilate = of_mutilate.iter().filter(|_| line.tool == Tool::Mutilate);
    of_mutilate.into_iter().find(|(option, _)| line.has(option)).map_or(typed, |(_, name)| name)
}

/// Where the line is silent each tool has its own defaults.
fn add_what_was_not_typed(
    text: &mut String,
    line: &Line,
    name: &str,
    entries: &[OptionAnswer<'_>],
    is_mixed: bool,
) {
    if name != "run" {
        return;
    }
    let defaults = translation::defaults(line);
    if !is_mixed && !defaults.is_empty() {
        let (tool, defaults) = (line.tool.name(), defaults.join(" "));
        let _ = writeln!(text, "The rest has brunt's defaults; those of {tool} are {defaults}");
    }
    let asks_for_server = is_mixed || line.tool == Tool::Mutilate;
    if asks_for_server && line.rest.is_empty() && !has_server(entries) {
        text.push_str("Without --server it loads a server that brunt starts for it.\n");
    }
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
    let columns = columns_of(io::stderr()).map_or(WIDTH, |columns| columns.min(WIDTH));
    let (theirs_width, ours_width) = (width(|row| &row.0).min(34), width(|row| &row.1).min(44));
    for (theirs, ours, note) in rows {
        let line = format!("  {theirs:<theirs_width$}  {ours:<ours_width$}");
        if note.is_empty() {
            let _ = writeln!(text, "{}", line.trim_end());
        } else if line.chars().count() + 2 + note.chars().count() <= columns {
            let _ = writeln!(text, "{line}  {note}");
        } else {
            let _ = writeln!(text, "{}\n  {:theirs_width$}    {note}", line.trim_end(), "");
        }
    }
}

/// The line in our words, if we take it; else why we do not.
fn whole(
    line: &Line,
    name: &str,
    program: &Command,
    entries: &[OptionAnswer<'_>],
    is_mixed: bool,
) -> Result<String, String> {
    let wrong: Vec<&str> =
        entries.iter().filter(|entry| entry.is_wrong).map(|entry| entry.given.name.as_str()).collect();
    if !wrong.is_empty() {
        return Err(format!("the value of {} is none that it takes", wrong.join(" and ")));
    }
    let mut pieces: Vec<String> = Vec::new();
    let mut add = |piece: &String| {
        if !pieces.contains(piece) {
            pieces.push(piece.clone());
        }
    };
    if !has_server(entries) && !is_mixed && line.tool != Tool::Mutilate && name != "compare" {
        translation::server("", line).pieces.iter().for_each(&mut add);
    }
    for entry in entries {
        if !matches!(entry.given.reading, OptionOwner::Unknown) {
            entry.answer.pieces.iter().for_each(&mut add);
        }
    }
    if !line.command.is_empty() {
        translation::command(line).pieces.iter().for_each(&mut add);
    }
    let rest: Vec<String> = line.rest.iter().map(|word| quoted(word)).collect();
    let whole = format!("brunt {name} {}", [rest, pieces].concat().join(" "));
    let whole = whole.trim_end().to_owned();
    check(program, &whole).map(|()| whole).map_err(|reason| {
        let is_unknown = |given: &&TypedOption| matches!(given.reading, OptionOwner::Unknown);
        let unknown: Vec<&str> =
            line.given.iter().filter(is_unknown).map(|given| given.name.as_str()).collect();
        // What stands behind an unknown option may be its value, and is no plan file.
        match unknown.is_empty() || line.rest.is_empty() {
            true => reason,
            false => format!("neither brunt nor the other tools have {}", unknown.join(" and ")),
        }
    })
}

/// Refuses what brunt would refuse before it opens anything. Files of passwords are still to be written.
fn check(program: &Command, line: &str) -> Result<(), String> {
    let words = shell_words(line).map(|word| match translation::PASSWORD_FILES.contains(&word.as_str()) {
        true => "password".to_owned(),
        false => word,
    });
    let matches = program.clone().try_get_matches_from(words).map_err(|error| reason_of(&error))?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(|error| reason_of(&error))?;
    let checked = match &arguments.command {
        cli::Command::Run(flags) | cli::Command::Doctor(flags) => campaign::plan_of_run(flags).map(drop),
        cli::Command::Scan(flags) => campaign::check_scan(flags),
        cli::Command::Search(flags) => campaign::check_search(flags),
        cli::Command::Load(flags) => run::load_plan(flags).map(drop),
        cli::Command::Compare(flags) => compare::check(flags),
        // Without a plan.
        cli::Command::Report(_)
        | cli::Command::Calibrate(_)
        | cli::Command::Agent(_)
        | cli::Command::Serve(_)
        | cli::Command::Man(_)
        | cli::Command::Completions(_) => Ok(()),
    };
    checked.map_err(|failure| format!("{:#}", failure.error))
}

/// The parser's reason, without its advice.
fn reason_of(error: &clap::Error) -> String {
    invalid_value::message(error).unwrap_or_else(|| {
        let text = error.to_string();
        let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
        lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
    })
}

fn has_server(entries: &[OptionAnswer<'_>]) -> bool {
    entries.iter().any(|entry| entry.answer.pieces.iter().any(|piece| is_server(piece)))
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
    use super::value::ValueShape;
    use super::*;

    /// A value that goes with an option.
    fn sample(takes: ValueShape) -> Option<&'static str> {
        Some(match takes {
            ValueShape::Nothing => return None,
            ValueShape::Number | ValueShape::Requests | ValueShape::Text => "5",
            ValueShape::Decimal | ValueShape::Part | ValueShape::Percent => "0.5",
            ValueShape::Pair => "1:9",
            ValueShape::Range => "1-9",
            ValueShape::Steps => "10:30:10",
            ValueShape::Sizes => "10:1,20:3",
            ValueShape::Pattern => "G",
            ValueShape::Patterns => "S:Z",
            ValueShape::Host => "h",
            ValueShape::Path => "/tmp/x.sock",
            ValueShape::Uri => "redis://h:1",
            ValueShape::Protocol => "redis",
            ValueShape::Tests => "get,set",
            ValueShape::Secret => "hunter2",
        })
    }

    fn offered(answer: &str) -> Option<&str> {
        answer.split_once("The whole command line:\n  ").and_then(|(_, rest)| rest.lines().next())
    }

    /// Every option of every tool, alone, with a server, and with two others of its tool.
    #[test]
    fn what_is_offered_is_taken_and_what_is_not_has_its_reason() {
        let line_of = |row: &Row, name: &str| {
            [Some(name), sample(row.takes)].into_iter().flatten().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut program = cli::command();
        program.build();
        let (mut taken, mut refused) = (0, 0);
        for (at, row) in OPTIONS.iter().enumerate() {
            let server = match row.of {
                Tool::Redis | Tool::Valkey => ["-h", "cache"],
                Tool::Memtier | Tool::Mutilate => ["--server", "cache"],
            };
            let mut others = OPTIONS.iter().cycle().skip(at + 1).filter(|other| other.of == row.of);
            let others: Vec<&Row> = [others.nth(6), others.nth(16)].into_iter().flatten().collect();
            let others: Vec<String> = others.iter().flat_map(|row| line_of(row, row.names[0])).collect();
            for name in row.names {
                let alone = line_of(row, name);
                for beside in [Vec::new(), server.map(str::to_owned).to_vec(), others.clone()] {
                    let words = [vec!["brunt".to_owned(), "run".to_owned()], alone.clone(), beside].concat();
                    let Some(answer) = answer(&words) else { continue };
                    match offered(&answer) {
                        Some(line) => {
                            assert_eq!(check(&program, line), Ok(()), "{words:?}: {answer}");
                            taken += 1;
                        }
                        None => {
                            assert!(answer.contains("\nNo whole command line: "), "{words:?}: {answer}");
                            refused += 1;
                        }
                    }
                    assert!(!answer.contains("hunter2"), "{words:?}: {answer}");
                }
            }
        }
        // What needs another option beside it is refused: TLS files without TLS, a user without a password.
        assert!(taken > 400 && refused < taken / 4, "{taken} taken, {refused} refused");
    }

    #[test]
    fn quoted_words_are_read_back() {
        for word in ["plain", "two words", "it's", "p99 < 1ms", "SET {key} {value}", "a\\b"] {
            let read: Vec<String> = shell_words(&format!("x {}", quoted(word))).collect();
            assert_eq!(read, ["x", word]);
        }
    }
}
