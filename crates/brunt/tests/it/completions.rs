//! What bash completes behind `brunt`: its own shell runs the script.

use crate::server::{Directory, Ended, plain};
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = "brunt.bash";

/// What is offered for the last of these words, which may be empty.
fn offered(directory: &Path, line: &str) -> Vec<String> {
    let words: Vec<&str> = ["brunt"].into_iter().chain(line.split(' ')).collect();
    let [.., before, last] = words.as_slice() else { unreachable!("there are two words at least") };
    let call = format!(
        "source ./{SCRIPT}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_brunt brunt '{last}' '{before}' 2>/dev/null\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let output = Ended::from(Command::new("bash").args(["--norc", "-c", &call]).current_dir(directory));
    let text = &output.out;
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('-')).map(str::to_owned).collect()
}

/// Words that a value is one of, names of commands and topics, files where a value is a file, and nothing where it is a number.
#[test]
fn values_are_completed() {
    let directory = Directory::new();
    for name in ["plan.toml", "result.json"] {
        directory.with(name, "");
    }
    directory.with(SCRIPT, &Ended::from(plain("completions bash")).out);
    for (line, expected) in [
        ("run --wait ", "hybrid spin sleep"),
        ("run --wait s", "spin sleep"),
        ("scan --io ", "auto epoll uring"),
        ("search --wait ", "hybrid spin sleep"),
        ("load --protocol resp", "resp2 resp3 resp-inline"),
        ("compare --placement ke", "ketama ketama-weighted"),
        ("doctor --warmup ", "auto"),
        ("run --unit ", "ns us ms s"),
        ("run --color a", "auto always"),
        ("run --annotate ", "github"),
        ("run --allow LO", "LOAD"),
        ("report result.json --figure-width ", "column page"),
        ("serve --protocol e", "echo"),
        ("serve --udp-trains ", "reply key"),
        ("help LO", "LOAD"),
        ("help ex", "exit-codes"),
        ("help ru", "run"),
        ("man r", "report rpc-perf run"),
        ("completions ", "bash zsh fish"),
        ("run -c ", ""),
        ("run --rate ", ""),
        ("run -s ", ""),
        ("run -o res", "result.json"),
        ("run --tls-ca p", "plan.toml"),
        ("agent --target-ca p", "plan.toml"),
    ] {
        let mut expected: Vec<&str> = expected.split(' ').filter(|word| !word.is_empty()).collect();
        let mut offered = offered(&directory, line);
        expected.sort_unstable();
        offered.sort();
        assert_eq!(offered, expected, "brunt {line}");
    }
}

/// The examples of a person's own folders work where these do not exist.
#[test]
fn examples_of_help_make_their_folders() {
    let directory = Directory::new();
    let help = &Ended::from(plain("completions --help")).out;
    let examples = help.split("Examples:").nth(1).expect("help has examples").lines().map(str::trim);
    let own: Vec<&str> = examples.filter(|line| line.contains("~/")).collect();
    let call =
        own.join("\n").replace("brunt completions", concat!(env!("CARGO_BIN_EXE_brunt"), " completions"));
    let ended = Ended::from(Command::new("sh").args(["-ec", &call]).env("HOME", &*directory));
    assert_eq!((ended.out.as_str(), ended.said.as_str()), ("", ""), "{call}");
    for path in [".local/share/bash-completion/completions/brunt", ".config/fish/completions/brunt.fish"] {
        let script = std::fs::read_to_string(directory.join(path)).expect(path);
        assert!(script.contains("brunt"), "{path}");
    }
}
