//! The help of `brunt rpc-perf`: the layout of rpc-perf's, in our own words.
//!
//! What is honoured, repaired or refused in detail is in docs/compat.md. Invariant: every option of the table is there.

use super::command_line::OPTIONS;
use std::fmt::Write as _;

/// Where texts begin.
const COLUMN: usize = 28;

/// Text of `--help` for this name of the program.
pub fn help(program: &str) -> String {
    let mut text = format!("Usage: {program} [options]\n\nOptions:\n");
    // Writing into a string cannot fail.
    for rule in OPTIONS {
        let letter = rule.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let option = format!("    {letter}--{} {}", rule.long, rule.value);
        let _ = match option.trim_end().len() < COLUMN {
            true => writeln!(text, "{option:COLUMN$}{}", rule.about),
            false => writeln!(text, "{}\n{:COLUMN$}{}", option.trim_end(), "", rule.about),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_its_line() {
        let text = help("rpc-perf");
        assert!(
            text.starts_with("Usage: rpc-perf [options]\n\nOptions:\n    -s, --server HOST:PORT  a server;"),
            "{text}"
        );
        assert!(
            text.contains(
                "\n        --request-timeout INTEGER\n                            give a request up"
            ),
            "{text}"
        );
        assert!(text.contains("\n        --flush             delete everything"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 110), "{text}");
    }
}
