//! The help of `brunt memaslap`: memaslap's layout and order, our own words.
//!
//! What is honoured, repaired or refused in detail is in docs/compat.md. Invariant: every option of the table is there.

use super::VERSION;
use super::command_line::OPTIONS;
use std::fmt::Write as _;

/// What each option does, in the order of [`OPTIONS`].
const TEXTS: [&str; OPTIONS.len()] = [
    "Servers to load, with commas between them: HOST[:PORT], [IPV6]:PORT, the path\n\
     of a socket. Else those of MEMCACHED_SERVERS. Thread i loads server i mod N.",
    "Threads. [1]",
    "Clients in all, each with one operation under way; a multiple of --threads. [16]",
    "TCP connections of each client, which take turns. [1]",
    "End after so many operations of all clients together.",
    "End after so long; s, m, h or d behind the number. [600s]",
    "File with the sizes of keys and values and the shares of set and get.\n\
     [~/.memslap.cnf where there is one]",
    "Objects that a client keeps in its window; k (1024), m or g behind the\n\
     number. [10k]",
    "Every value has so many bytes.",
    "Compare this share of the values that are read, such as 0.01.",
    "Keys in a get. [1]",
    "Print statistics so often, and at the end; s, m, h or d behind the number.",
    "This share of the objects expires after 60 s, which is checked.",
    "This share of the sets gives an object of the window a new value; the others\n\
     put new objects there.",
    "Connect again when a connection is lost.",
    "UDP instead of TCP, to the same ports.",
    "Set over TCP and get over UDP; with --division of at least 2.",
    "Binary protocol.",
    "Operations per second of all clients together; k (1024), m or g behind the\n\
     number.",
    "Each set goes to the first N servers, and gets take turns over them.",
    "Say what was wrong with each value that is not as it should be.",
    "Print this.",
    "Print the version.",
    "Number that all random choices follow from. Else keys and values follow from\n\
     the second of the start, and what else is drawn from no number.",
    "Keys of printable characters, as proxies want them.",
    "Print percentiles of the latencies behind the run.",
    "Exit with 0 whatever became of the run, as memaslap does.",
    "No lines that begin with note: or warning:.",
];

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
    for (rule, lines) in OPTIONS.iter().zip(TEXTS) {
        let letter = rule.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let end = if rule.takes_value { '=' } else { ' ' };
        let _ = writeln!(text, "    {letter}--{}{end}", rule.long);
        for line in lines.lines() {
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
