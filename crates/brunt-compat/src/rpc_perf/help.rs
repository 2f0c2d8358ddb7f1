//! The help of `brunt rpc-perf`: the layout of rpc-perf's, in our own words.
//!
//! What is honoured, repaired or refused in detail is in docs/compat.md. Invariant: every option of the table is there.

use super::command_line::OPTIONS;
use std::fmt::Write as _;

/// The value of each option, and what it does, in the order of [`OPTIONS`].
const TEXTS: [(&str, &str); OPTIONS.len()] = [
    ("HOST:PORT", "a server; may be given several times"),
    ("INTEGER", "threads that send requests [1]"),
    ("INTEGER", "connections of each thread to each server [1]"),
    ("INTEGER", "seconds of each window [60]"),
    ("INTEGER", "measured windows; one before them is the warm-up [5]"),
    ("INTEGER", "give a request up after this many milliseconds [1 hour]"),
    ("INTEGER", "give an attempt to connect up after this many milliseconds [10000]"),
    ("STRING", "memcache, redis, redis-inline, echo, ping or thrift [memcache]"),
    ("FILE", "TOML file with the workloads, and with any of these options under [general]"),
    ("HOST:PORT", "show the numbers of the last window there by HTTP: /vars, /metrics, JSON elsewhere"),
    ("FILE", "write histograms of latency, second by second, as text"),
    ("FILE", "draw latency over time as a PNG file"),
    ("", "disable Nagle's algorithm (TCP_NODELAY)"),
    ("", "delete everything on every server before the warm-up"),
    ("", "use IPv4 addresses only"),
    ("", "use IPv6 addresses only"),
    ("", "run until interrupted; write the files each time all windows are over"),
    ("", "print the version and exit"),
    ("", "log more: -v the plan and faults, -vv a line a second, too"),
    ("", "print this help and exit"),
    ("INTEGER", "printed only: replies of any size are read [4096]"),
    ("INTEGER", "printed only: requests of any size are sent [4096]"),
    ("INTEGER", "database of Redis servers [0]"),
    ("YEAR", "format of the log: 2017, or 2016 as in rpc-perf's README [2017]"),
    ("INTEGER", "seed of all random choices [another one for each run]"),
    ("", "print no notes and warnings on standard error"),
    ("", "exit with 0 after every run, as rpc-perf does"),
];
/// Where texts begin.
const COLUMN: usize = 28;

/// Text of `--help` for this name of the program.
pub fn help(program: &str) -> String {
    let mut text = format!("Usage: {program} [options]\n\nOptions:\n");
    // Writing into a string cannot fail.
    for (rule, (value, about)) in OPTIONS.iter().zip(TEXTS) {
        let letter = rule.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let option = format!("    {letter}--{} {value}", rule.long);
        let _ = match option.trim_end().len() < COLUMN {
            true => writeln!(text, "{option:COLUMN$}{about}"),
            false => writeln!(text, "{}\n{:COLUMN$}{about}", option.trim_end(), ""),
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
