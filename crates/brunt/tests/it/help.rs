//! `brunt help TOPIC`: checks, exit codes and formats beside the commands.

use crate::server::ended;

#[test]
fn topics_are_explained_and_listed() {
    let table = [
        ("LOAD", "LOAD, a check of every run\n"),
        ("client", "CLIENT, a check of every run\n"),
        ("checks", "Checks of a run"),
        ("exit-codes", "\n  3            an assertion is undecided, or the status is INVALID"),
        ("exit-codes", "\nWhere several apply: 2, 5, 1, 130, 4, 3, 0, the first of these.\n"),
        ("exit", "\n  3            an assertion is undecided"),
        ("exitcodes", "\n  3            an assertion is undecided"),
        ("formats", "\n  duration     "),
        (
            "trace-layout",
            "\ntwitter\n  Twitter's cache-trace: TIME,KEY,KEYBYTES,BYTES,CLIENT,OPERATION[,TTL]\n  0,q:a:1:",
        ),
        ("linger", "\n  option       --set linger=5s\n"),
        ("no-preload", "preload, a key of a plan"),
        ("output", "output, an option\n\n  value        [TYPE:]PATH\n  means        "),
        ("class", "class: of the [[class]] tables"),
        ("run", "Usage: brunt run [OPTIONS] [PLAN.toml]"),
        ("", "\n  exit-codes  "),
    ];
    for (words, expected) in table {
        let help = ended(&format!("help {words}"));
        assert_eq!((help.exit, help.said.as_str()), (0, ""));
        assert!(help.out.contains(expected), "{words}");
    }
    let mut help = ended("help lode");
    help.said = help.said.replace('\n', " ");
    let known = "unknown topic 'lode': expected keys, checks, exit-codes, formats; ";
    help.is(2, &[known, " (run, ", " LOAD, ", "REPEAT);", " (brunt help keys) "]);
    assert_eq!(help.out, "");
}
