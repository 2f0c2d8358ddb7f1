//! The help of `brunt memaslap`: memaslap's layout and order, our own words.
//!
//! What is honoured, repaired or refused in detail is in docs/compat.md. Invariant: every option of the table is there.

use super::VERSION;
use super::command_line::OPTIONS;
use std::fmt::Write as _;

const EXAMPLES: [&str; 7] = [
    "-s 127.0.0.1:11211 -S 5s",
    "-s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b",
    "-s 127.0.0.1:11211 -F config -t 2m -w 40k -S 20s -o 0.2",
    "-s 127.0.0.1:11211 -F config -t 2m -T 4 -c 128 -d 20 -P 40k",
    "-s 127.0.0.1:11211 -F config -t 2m -d 50 -a -n 40",
    "-s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m",
    "-s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m -p 2",
];

/// Text of `--help`.
pub fn help() -> String {
    let mut text =
        format!("{VERSION}\n    Loads memcached servers and prints what came of it (brunt memaslap).\n\n");
    text.push_str(
        "Usage:\n    memaslap -hV | -s servers [-F config_file] [-t time | -x exe_num] [...]\n\nOptions:\n",
    );
    // Writing into a string cannot fail.
    for rule in OPTIONS {
        let letter = rule.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let end = if rule.takes_value { '=' } else { ' ' };
        let _ = writeln!(text, "    {letter}--{}{end}", rule.long);
        for line in rule.about.lines() {
            let _ = writeln!(text, "        {line}");
        }
    }
    text.push_str("\nExamples:\n");
    for example in EXAMPLES {
        let _ = writeln!(text, "    memaslap {example}");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_memaslaps_layout() {
        let text = help();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..8],
            [
                "memaslap v1.0",
                "    Loads memcached servers and prints what came of it (brunt memaslap).",
                "",
                "Usage:",
                "    memaslap -hV | -s servers [-F config_file] [-t time | -x exe_num] [...]",
                "",
                "Options:",
                "    -s, --servers=",
            ]
        );
        assert!(text.contains("\n    -R, --reconnect \n        Connect again"), "{text}");
        assert!(text.contains("\n        --seed=\n        Number that"), "{text}");
        assert!(text.ends_with("-t 2m -p 2\n\n"));
        assert!(lines.iter().all(|line| line.len() <= 88), "{text}");
        assert_eq!(lines.iter().filter(|line| line.contains(", --")).count(), 23);
    }
}
