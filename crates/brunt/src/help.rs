//! `brunt help TOPIC`: what is no command, such as a check, exit codes and the forms of values.
//!
//! The parser has the help of commands. Invariant: every name that a report prints and a user may ask about is a topic.

use crate::cli;
use crate::exit::Exit;
use crate::terminal::wrapped;
use brunt_stats::check::{CheckId, RULES, Rule};
use std::fmt::Write;

/// No line is longer, in characters.
const WIDTH: usize = 80;

/// Topics that are no checks.
const TOPICS: [(&str, &str); 3] = [
    ("checks", "the six checks of a run, in a line each"),
    ("exit-codes", "what a command ends with"),
    ("formats", "how values, plan files and results are written"),
];

/// What stands behind the help of all commands.
pub(crate) fn behind_all() -> String {
    format!("{}\n\n{}", cli::AFTER_HELP, topics())
}

/// What can be asked about beside commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, _)| *name).chain(CheckId::NAMES)
}

/// What there is to ask about.
fn topics() -> String {
    let mut text = "Topics (brunt help TOPIC):\n".to_owned();
    for (name, about) in TOPICS {
        let _ = writeln!(text, "  {name:<12}{about}");
    }
    let checks = format!("or a check, such as LOAD: {}", CheckId::NAMES.join(" "));
    wrapped(&checks, WIDTH - 2).iter().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    text.trim_end().to_owned()
}

/// The text of a topic, in capitals or not.
pub(crate) fn topic(name: &str) -> Option<String> {
    match name.to_ascii_lowercase().as_str() {
        "checks" => Some(checks()),
        "exit-codes" | "exit-code" | "exitcodes" | "exit" => Some(exit_codes()),
        "formats" | "format" => Some(formats()),
        _ => CheckId::from_name(&name.to_ascii_uppercase()).map(|id| explained(id.rule())),
    }
}

/// What is said of a topic that there is not.
pub(crate) fn unknown(name: &str) -> String {
    let commands = cli::command();
    let commands: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
    let topics: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
    let text = format!(
        "error: unknown topic '{name}': expected {}; a command ({}); or a check ({})",
        topics.join(", "),
        commands.join(", "),
        CheckId::NAMES.join(", ")
    );
    wrapped(&text, WIDTH).join("\n")
}

/// A label and its text, with further lines below its beginning.
fn entry(text: &mut String, label: &str, says: &str) {
    const LABEL: usize = 13;
    for (number, line) in wrapped(says, WIDTH - LABEL - 2).iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(text, "  {label:<LABEL$}{line}");
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
    let mut text = "How values are written:\n\n".to_owned();
    for (label, says) in [
        ("duration", "a number with its unit: 10s, 500us, 1.5ms, 2m, 100ns, 1h"),
        ("count", "a whole number: 1000, 100k, 2M, 1G (powers of 1000)"),
        ("bytes", "200, 4KiB, 1MiB, 1GiB (powers of 1024)"),
        ("rate", "per second: 1000, 200k, 1.5M/s, 0.5/s"),
        ("share", "2% or 0.02"),
        (
            "server",
            "HOST[:PORT], unix:PATH, or memcached://, memcacheds://, memcached+udp://, redis://, rediss:// and [USER:PASSWORD@]HOST[:PORT][/DATABASE]; port 6379 without a scheme is Redis",
        ),
        ("mix", "operations with weights: get=9,set=1"),
        (
            "distribution",
            "of sizes, gaps and keys: uniform:10,1000, zipf:0.99 and others, below brunt help run; @FILE is a file of one",
        ),
        (
            "objective",
            "[OP.]METRIC COMPARISON BOUND: 'get.p99 < 1ms', 'rate > 50k', 'hit >= 95%', 'errors < 0.1%'",
        ),
        ("list", "'rate=10k,20k,40k' or 'rate=10k..100k:10k' for --over"),
        ("secret", "@FILE is its first line: --password @redis.pw"),
    ] {
        entry(&mut text, label, says);
    }
    text += "\nFiles, all described in docs/results.md:\n\n";
    for (label, says) in [
        (
            "PLAN.toml",
            "options of brunt run by their names without dashes, and [[class]] tables; --print-plan writes one",
        ),
        (
            "--json",
            "the result, schema brunt.result.v1 (docs/result.schema.json); brunt report and compare read it",
        ),
        (
            "--html",
            "the result as a page with charts, one file that needs no network; of report up to six results",
        ),
        (
            "--figure",
            "of report: a chart for a paper, TYPE=PATH: curve, spectrum, timeline or changes, .svg or .png",
        ),
        ("--csv", "the run over time, a line for each interval"),
        ("--ndjson", "the same while the run goes on, a JSON object on each line"),
        (
            "--hlog",
            "the histograms of each second, as HdrHistogram logs them; --spectrum: the percentiles of all",
        ),
        ("--samples", "single requests with their six times, CSV"),
        ("--junit", "assertions and checks as JUnit XML"),
        ("--summary", "status, numbers and assertions as Markdown, added to a file"),
        (
            "--http",
            "the run as it goes on: its page at /, /metrics in OpenMetrics text, /summary.json (docs/results.md)",
        ),
    ] {
        entry(&mut text, label, says);
    }
    text
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
}
