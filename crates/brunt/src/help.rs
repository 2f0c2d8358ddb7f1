//! What users are told of commands before they use them: `brunt help TOPIC` of what is no command, such as a check, exit codes and the forms of
//! values; manual pages, as troff with the macros of man(7); and what shells complete.
//!
//! The parser has the help of commands, and what options mean is said where they are declared. Invariants: every name that a report prints and a
//! user may ask about is a topic; every command and every option of the help is on a page, with the same words, and in the script of each shell,
//! with the words that a value is one of.

use crate::cli;
use crate::destination::write_whole;
use crate::exit::{Exit, Failure};
use crate::plan_flags;
use crate::terminal::{show, wrapped};
use crate::usage_error::example;
use brunt_compat::tools;
use brunt_plan::plan::TraceLayout;
use brunt_plan::spec::{OPTIONS, OptionForm, PlanOption};
use brunt_report::file_type::FileType;
use brunt_stats::check::{CheckId, RULES, Rule};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::aot::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::iter;

/// No line is longer, in characters.
const WIDTH: usize = 80;

/// A name, what it is about, and its text.
type Topic = (&'static str, &'static str, fn() -> String);

/// Topics that are no checks.
const TOPICS: [Topic; 4] = [
    ("keys", "every key of a plan file, for --set; brunt help KEY says more of one", keys),
    ("checks", "the six checks of a run, in a line each", checks),
    ("exit-codes", "what a command ends with", exit_codes),
    ("formats", "how values, plan files and results are written", formats),
];

/// How values and files are written: a label and its text in each line, or a line as it is.
const FORMATS: &str = "\
How values are written:

duration|a number with its unit: 10s, 500us, 1.5ms, 2m, 100ns, 1h
count|a whole number: 1000, 100k, 2M, 1G (powers of 1000)
bytes|200, 4k, 1M, 1G (powers of 1000), 4KiB, 1MiB, 1GiB (powers of 1024)
rate|per second: 1000, 200k, 1.5M/s, 0.5/s
share|2% or 0.02
server|HOST[:PORT], unix:PATH, or memcached://, memcacheds://, memcached+udp://, redis://, rediss:// and [USER:PASSWORD@]HOST[:PORT][/DATABASE]; without a scheme the server is asked what it speaks
mix|operations with weights: get=9,set=1
distribution|of sizes, gaps and keys: uniform:10,1000, zipf:0.99 and others, below brunt help run; @FILE is a file of one
objective|[OP.]METRIC COMPARISON BOUND: 'get.p99 < 1ms', 'rate > 50k', 'hit >= 95%', 'errors < 0.1%'
list|'rate=10k,20k,40k' or 'rate=10k..100k:10k' for --over
secret|@FILE is its first line: --password @redis.pw

Files, all described in docs/results.md:

PLAN.toml|keys (brunt help keys), each also an option or set by --set, and [[class]] tables; --print-plan writes one
--http|the run as it goes on: its page at /, /metrics in OpenMetrics text, /summary.json

Types of -o [TYPE:]PATH; without TYPE the ending of PATH decides:

";

/// The keys of a plan, by the headings of the help, then those of files alone.
fn keys() -> String {
    let mut text =
        "Keys of a plan, for files and --set KEY=VALUE; brunt help KEY says more of one:\n".to_owned();
    let mut heading = "";
    for option in OPTIONS {
        if option.heading != heading {
            heading = option.heading;
            let _ = writeln!(text, "\n{heading}");
        }
        let says = meaning(option);
        let first = says.split(" [default").next().unwrap_or_default().trim();
        entry_beside(&mut text, 22, &option.key(), first);
    }
    let has_option = |key: &String| OPTIONS.iter().any(|option| option.key() == *key);
    let others: Vec<String> = plan_flags::keys().into_iter().filter(|key| !has_option(key)).collect();
    text.push_str("\nOf [[class]] tables; see docs/plan-files.md\n");
    entry_beside(&mut text, 0, "", &others.join(", "));
    text
}

/// What a key means; the help of a flag that switches it off says what `false` does.
fn meaning(option: &PlanOption) -> String {
    let off = if option.form == OptionForm::Switch(false) { "if false: " } else { "" };
    format!("{off}{}", option.help)
}

/// What is known of a key.
fn key(option: &PlanOption) -> String {
    let mut text = format!("{}, a key of a plan\n\n", option.key());
    entry(&mut text, "value", if option.value_name.is_empty() { "true or false" } else { option.value_name });
    entry(&mut text, "means", &meaning(option));
    let key = option.key();
    let flag = if option.has_flag {
        format!("--{}", option.flag())
    } else {
        format!("--set {key}={}", example(option))
    };
    entry(&mut text, "option", &flag);
    let tells_layouts = matches!(option.field, "trace" | "trace_layout");
    for layout in TraceLayout::ALL.into_iter().filter(|_| tells_layouts) {
        let _ = write!(text, "\n{layout}\n  {}\n", layout.describe().replace('\n', "\n  "));
    }
    text
}

/// What stands behind the help of all commands.
pub(crate) fn behind_all() -> String {
    format!("{}\n\n{}", cli::AFTER_HELP, topics())
}

/// What can be asked about beside commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, ..)| *name).chain(CheckId::NAMES)
}

/// What there is to ask about.
fn topics() -> String {
    let mut text = "Topics (brunt help TOPIC):\n".to_owned();
    for (name, about, _) in TOPICS {
        let _ = writeln!(text, "  {name:<12}{about}");
    }
    let checks = format!("or a check, such as LOAD: {}", CheckId::NAMES.join(" "));
    wrapped(&checks, WIDTH - 2).iter().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    text.trim_end().to_owned()
}

/// The text of a key of a plan.
pub(crate) fn of_key(name: &str) -> Option<String> {
    OPTIONS.iter().find(|option| [option.key(), option.flag()].iter().any(|held| held == name)).map(key)
}

/// The text of a topic, in capitals or not.
pub(crate) fn topic(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    // `exit` and `format` will do.
    let is_meant = |topic: &str| [topic, &topic.replace('-', "")].iter().any(|word| word.starts_with(&name));
    if let Some((.., text)) = TOPICS.iter().find(|(topic, ..)| name.len() > 3 && is_meant(topic)) {
        return Some(text());
    }
    if let Some(text) = of_key(&name) {
        return Some(text);
    }
    if name == "class" || plan_flags::keys().contains(&name) {
        return Some(format!(
            "{name}: of the [[class]] tables of a plan file, one for each kind of traffic;\ndocs/plan-files.md describes it\n"
        ));
    }
    CheckId::from_name(&name.to_ascii_uppercase()).map(|id| explained(id.rule())).or_else(|| option_of(&name))
}

/// What is known of an option that is no key of a plan, with the commands that have it.
fn option_of(name: &str) -> Option<String> {
    let program = cli::command();
    let of = |command| Command::get_arguments(command).find(|held| held.get_long() == Some(name));
    let owners: Vec<(&str, &Arg)> =
        program.get_subcommands().filter_map(|command| Some((command.get_name(), of(command)?))).collect();
    let (_, option) = owners.first()?;
    let mut text = format!("{name}, an option\n\n");
    let value =
        option.get_value_names().and_then(<[_]>::first).filter(|_| option.get_action().takes_values());
    entry(&mut text, "value", value.map_or("none", |value| value.as_str()));
    entry(&mut text, "means", &option.get_help().map(ToString::to_string).unwrap_or_default());
    let owners: Vec<&str> = owners.iter().map(|(owner, _)| *owner).collect();
    entry(&mut text, "commands", &owners.join(", "));
    Some(text)
}

/// What is said of a topic that there is not.
pub(crate) fn unknown(name: &str) -> String {
    let commands = cli::command();
    let commands: Vec<&str> = commands.get_subcommands().map(Command::get_name).collect();
    let topics: Vec<&str> = TOPICS.iter().map(|(name, ..)| *name).collect();
    let text = format!(
        "error: unknown topic '{name}': expected {}; a command ({}); a check ({}); a key of a plan (brunt help keys) or an option; \
         words of reports are in docs/reading-a-report.md",
        topics.join(", "),
        commands.join(", "),
        CheckId::NAMES.join(", ")
    );
    wrapped(&text, WIDTH).join("\n")
}

/// A label and its text, with further lines below its beginning.
fn entry(text: &mut String, label: &str, says: &str) {
    entry_beside(text, 13, label, says);
}

/// The same with this width of the label.
fn entry_beside(text: &mut String, width: usize, label: &str, says: &str) {
    for (number, line) in wrapped(says, WIDTH - width - 2).iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(text, "  {label:<width$}{line}");
    }
}

fn explained(rule: &Rule) -> String {
    let Rule { id, measures, caution, invalid, means, fix } = rule;
    let mut text = format!("{}, a check of every run\n\n", id.name());
    let rows = [
        ("measures", measures),
        ("CAUTION", caution),
        ("INVALID", invalid),
        ("means", means),
        ("helps", fix),
    ];
    rows.iter().for_each(|(label, says)| entry(&mut text, label, if **says == "-" { "never" } else { says }));
    entry(&mut text, "accept it", &format!("--allow {}: what would be INVALID is a CAUTION", id.name()));
    text.push_str("\nThe definition: docs/method.md\n");
    text
}

fn checks() -> String {
    let mut text = "Checks of a run; brunt help NAME says more of one:\n\n".to_owned();
    RULES.iter().for_each(|rule| entry(&mut text, rule.id.name(), rule.measures));
    text
}

fn exit_codes() -> String {
    let mut text = "Exit codes of brunt's own commands:\n\n".to_owned();
    Exit::MEANINGS.iter().for_each(|(exit, means)| entry(&mut text, &(*exit as u8).to_string(), means));
    text += "\nWhere several apply: 2, 5, 1, 130, 4, 3, 0, the first of these.\n\
             Other tools' command lines (brunt mutilate ...) end as those do: docs/compat.md\n";
    text
}

fn formats() -> String {
    let mut text = String::new();
    for line in FORMATS.lines() {
        match line.split_once('|') {
            Some((label, says)) => entry(&mut text, label, says),
            None => text.extend([line, "\n"]),
        }
    }
    FileType::ALL.into_iter().for_each(|held| entry(&mut text, held.name(), held.describe()));
    entry(&mut text, "svg, png", "the chart of the result: spectrum, curve or changes");
    text
}

/// Commands that users give.
const SECTION: &str = "1";

/// Prints the page of a command, or writes all pages into a directory.
pub(crate) fn man(flags: &cli::Man) -> Result<Exit, Failure> {
    let pages = pages();
    let Some(directory) = &flags.dir else {
        let name = flags.command.as_ref().map_or("brunt".to_owned(), |name| format!("brunt-{name}"));
        let (_, text) =
            pages.into_iter().find(|(known, _)| *known == name).ok_or_else(|| unknown_command(&name))?;
        show(text, false);
        return Ok(Exit::Done);
    };
    let refused = |error: io::Error| {
        let directory = directory.display();
        Failure::usage(format!(
            "invalid value '{directory}' for --dir ({error}): expected a directory where files can be made, such as ~/.local/share/man/man1"
        ))
    };
    fs::create_dir_all(directory).map_err(refused)?;
    for (name, text) in pages {
        let path = directory.join(format!("{name}.{SECTION}"));
        write_whole(&path, |out| out.write_all(&text)).map_err(refused)?;
    }
    Ok(Exit::Done)
}

fn unknown_command(name: &str) -> Failure {
    let name = name.strip_prefix("brunt-").unwrap_or(name);
    let command = cli::command();
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    Failure::usage(format!("invalid value '{name}' for COMMAND: expected {}", known.join(", ")))
}

/// That of all commands first, then that of each, by their names: `brunt`, `brunt-run`.
fn pages() -> Vec<(String, Vec<u8>)> {
    let shown = |argument: Arg| argument.hide_short_help(false).hide_long_help(false);
    let mut program = cli::command().after_help(behind_all()).disable_help_subcommand(true);
    program = program.mut_subcommands(|command| command.mut_args(shown));
    program.build();
    let page = |command: &Command| {
        let mut text = Vec::new();
        // Memory takes everything.
        let _ = write_page(command, &mut text);
        (command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned(), text)
    };
    iter::once(&program).chain(program.get_subcommands()).map(page).collect()
}

fn write_page(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    // A hundred options are a list, and no line that tells how a command is called.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let page = Man::new(command.clone().override_usage(usage)).section(SECTION);
    let page = page.source(concat!("brunt ", env!("CARGO_PKG_VERSION"))).manual("brunt");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    let mut rest = Roff::new();
    if let Some(notes) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        rest.control("SH", ["NOTES"]);
        notes.to_string().split("\n\n").for_each(|block| write_block(&mut rest, block));
    }
    // Other tools' command lines end as those do.
    if tools::find(command.get_name()).is_none() {
        rest.control("SH", ["EXIT STATUS"]);
        for (exit, means) in Exit::MEANINGS {
            rest.control("TP", []);
            rest.text([bold((exit as u8).to_string())]);
            rest.text([roman(means)]);
        }
    }
    rest.to_writer(out)
}

/// A paragraph, or lines that stay as they are where some of them are indented.
fn write_block(page: &mut Roff, block: &str) {
    page.control("PP", []);
    let is_table = block.lines().any(|line| line.starts_with(' '));
    if is_table {
        page.control("nf", []);
    }
    block.lines().for_each(|line| {
        page.text([roman(line)]);
    });
    if is_table {
        page.control("fi", []);
    }
}

/// Prints the script of a shell.
pub(crate) fn completions(flags: &cli::Completions) -> Exit {
    show(script(flags.shell), false);
    Exit::Done
}

fn script(shell: Shell) -> Vec<u8> {
    // The generator for bash would complete the names of files for a host.
    let host = if shell == Shell::Bash { ValueHint::Other } else { ValueHint::Hostname };
    let (mut program, mut text) = (completed(cli::command(), host), Vec::new());
    generate(shell, &mut program, "brunt", &mut text);
    if shell == Shell::Fish {
        text.extend(fish_arguments(&program).bytes());
    }
    text
}

/// The program as shells complete it.
fn completed(program: Command, host: ValueHint) -> Command {
    let commands: Vec<String> =
        program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let topics = commands.iter().cloned().chain(names().map(str::to_owned));
    let topic = Arg::new("TOPIC").value_parser(PossibleValuesParser::new(topics));
    let help = Command::new("help").about("Print the help of a command, or what a topic is");
    let commands = PossibleValuesParser::new(commands);
    program
        .disable_help_subcommand(true)
        .mut_subcommand("man", |man| man.mut_arg("command", |argument| argument.value_parser(commands)))
        .mut_subcommands(|command| command.mut_args(|argument| hinted(argument, host)))
        .subcommand(help.disable_help_flag(true).arg(topic))
}

/// The words of arguments, which the generator for fish leaves out.
fn fish_arguments(program: &Command) -> String {
    let line = |command: &Command| {
        let values = command.get_positionals().flat_map(Arg::get_possible_values);
        let words: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        let (name, words) = (command.get_name(), words.join(" "));
        let condition = format!("__fish_brunt_using_subcommand {name}");
        (!words.is_empty()).then(|| format!("complete -c brunt -n \"{condition}\" -f -a \"{words}\"\n"))
    };
    program.get_subcommands().filter_map(line).collect()
}

/// An option with what its value is, by its name, where neither its parser nor its row says it.
fn hinted(argument: Arg, host: ValueHint) -> Arg {
    let has_words = !argument.get_possible_values().is_empty();
    let hint = match (argument.get_value_hint(), argument.get_value_names()) {
        // With what a shell knows of files: a directory is gone on with.
        (ValueHint::AnyPath, _) => ValueHint::FilePath,
        (ValueHint::Unknown, Some([name, ..])) if !argument.is_positional() && !has_words => {
            match name.as_str() {
                "FILE" => ValueHint::FilePath,
                "ADDRESS" | "HOST[:PORT]" | "A" => host,
                "COMMAND" => ValueHint::CommandString,
                _ => ValueHint::Other,
            }
        }
        _ => return argument,
    };
    argument.value_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is named has a text that fits a terminal of 80 columns.
    #[test]
    fn every_topic_has_its_text() {
        for name in names() {
            let text = topic(name).unwrap();
            assert!(text.lines().count() > 4, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= WIDTH && line == line.trim_end()),
                "{text}"
            );
            assert!(topics().contains(name), "{name} is not listed");
        }
        assert!(topic("run").is_none() && topic("").is_none());
    }

    #[test]
    fn every_exit_code_is_listed() {
        let codes: Vec<u8> = Exit::MEANINGS.iter().map(|(exit, _)| *exit as u8).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 130]);
    }

    #[test]
    fn checks_are_explained() {
        let text = topic("steady").unwrap();
        assert!(
            text.starts_with("STEADY, a check of every run\n\n  measures     One change of the median"),
            "{text}"
        );
        for line in ["  INVALID      never\n", "  accept it    --allow STEADY: what would"] {
            assert!(text.contains(line), "{text}");
        }
    }

    /// A page as `man` shows it, but for fonts and lines.
    fn words(text: &[u8]) -> String {
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.replace("\\-", "-")
            .replace("\\*(Aq", "'")
            .replace("\\fB", "")
            .replace("\\fI", "")
            .replace("\\fR", "")
            .replace("\\\\", "\\")
    }

    #[test]
    fn every_command_and_option_of_the_help_has_its_place() {
        let pages = pages();
        let mut program = cli::command();
        program.build();
        let mut options = 0;
        let page_of = |name: &str| pages.iter().find(|(known, _)| known == name).map(|(_, text)| words(text));
        let all = page_of("brunt").unwrap();
        for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = format!("brunt-{}", command.get_name());
            assert!(all.contains(&format!("{name}(1)")), "{name}");
            let page = page_of(&name).unwrap_or_else(|| panic!("{name} has no page"));
            assert!(page.contains(&format!("{name} - {}", command.get_about().unwrap())), "{name}");
            let has_own_text = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
            for argument in command.get_arguments().filter(has_own_text) {
                let Some(long) = argument.get_long() else { continue };
                let help = argument.get_help().unwrap().to_string();
                assert!(
                    page.contains(&format!("--{long}")) && page.contains(&help),
                    "{name} --{long}: {help}"
                );
                options += 1;
            }
        }
        assert!(options > 400, "{options}");
        assert_eq!(pages.len(), 1 + program.get_subcommands().count() - 1);
    }

    #[test]
    fn every_command_and_option_of_the_help_is_completed() {
        let mut program = cli::command();
        program.build();
        for (shell, prefix) in [(Shell::Bash, "--"), (Shell::Zsh, "--"), (Shell::Fish, "-l ")] {
            let text = String::from_utf8(script(shell)).unwrap();
            let words: Vec<&str> =
                text.split([' ', '\n', '"', '\'', '[', '=', '{', '}', '(', ')', ',', '|', '*']).collect();
            for command in program.get_subcommands() {
                let name = command.get_name();
                assert!(words.contains(&name), "{shell:?}: {name}");
                let has_own_text = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
                for argument in command.get_arguments().filter(has_own_text) {
                    let Some(long) = argument.get_long() else { continue };
                    let is_there = match prefix {
                        "--" => words.contains(&format!("--{long}").as_str()),
                        prefix => text.contains(&format!("{prefix}{long} ")),
                    };
                    assert!(is_there, "{shell:?}: {name} --{long}");
                }
            }
        }
    }
}
