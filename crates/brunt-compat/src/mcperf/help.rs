//! The help of `brunt mcperf`: mcperf's layout and order, our own words.
//!
//! What is honoured, repaired or refused in detail is in docs/compat.md. Invariant: every option of the table is there.

use super::command_line::{METHODS, OPTIONS};
use brunt_plan::op::OpKind;
use std::fmt::Write as _;

/// Lines end so on a terminal of mcperf's, and scripts that cut them know it.
const END: &str = "\r\n";

const USAGE: [&str; 7] = [
    "Usage: mcperf [-hV] [-v verbosity] [-o output] [-s server] [-p port] [-H]",
    "              [-t timeout] [-l linger] [-b send-buffer] [-B recv-buffer] [-D]",
    "              [-m method] [-e expiry] [-q] [-P prefix] [-c client]",
    "              [-n num-conns] [-N num-calls] [-r conn-rate] [-R call-rate]",
    "              [-z sizes] [--fine] [--wait=W] [--legacy-latency] [--legacy-exit]",
    "",
    "Options:",
];

const DISTRIBUTIONS: [&str; 7] = [
    "  R says what is drawn:",
    "    dR1      always R1",
    "    uR1,R2   evenly from R1 to R2",
    "    eR1      exponentially, with mean R1",
    "    sR1      R1, R1+1, R1+2 and so on",
    "    R1       a rate: always 1/R1 (of sizes, too); 0: each when the one before has ended",
    "  seconds between connections or calls, and bytes of sizes",
];

/// Text of `--help` behind the version, and what follows a mistake.
pub fn usage() -> String {
    let mut text = USAGE.join(END) + END;
    // Writing into a string cannot fail.
    for rule in OPTIONS {
        let letter = rule.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let equals = if rule.takes_value { "=" } else { "" };
        let option = format!("{letter}--{}{equals}{}", rule.long, rule.value);
        let _ = write!(text, "  {option:<22}: {}{END}", rule.about);
    }
    let methods = METHODS.map(OpKind::name).join(", ");
    let _ = write!(
        text,
        "{END}Where:{END}  N is a whole number, X a real one, S a text{END}  M is one of {methods}{END}"
    );
    text + &DISTRIBUTIONS.join(END) + END
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_has_mcperfs_layout() {
        let text = usage();
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("Usage: mcperf [-hV] "), "{text}");
        assert!(text.contains("\r\n\r\nOptions:\r\n  -h, --help            : print this\r\n"), "{text}");
        assert!(text.contains("\r\n  -H, --print-histogram : print a histogram"), "{text}");
        assert!(text.contains("\r\n      --fine            : histogram"), "{text}");
        assert!(lines.iter().all(|line| line.len() <= 112), "{text}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("  -") && line.contains(", --")).count(), 22);
    }
}
