//! `brunt help TOPIC`: checks, exit codes and formats beside the commands.

use crate::server::{beside_others, brunt};

/// Exit code, standard output and standard error of `brunt help` of these words.
fn help(words: &[&str]) -> (i32, String, String) {
    let output = brunt(&[&["help"], words].concat()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn topics_are_explained_and_listed() {
    let _beside = beside_others();
    let table: &[(&[&str], &str)] = &[
        (&["LOAD"], "LOAD, a check of every run\n"),
        (&["client"], "CLIENT, a check of every run\n"),
        (&["checks"], "Checks of a run"),
        (
            &["exit-codes"],
            "\n  3            no assertion fails, but one is undecided or the status is INVALID",
        ),
        (&["exit-codes"], "\nWhere several apply: 2, 5, 1, 130, 4, 3, 0, the first of these.\n"),
        (&["exit"], "\n  3            no assertion fails"),
        (&["exitcodes"], "\n  3            no assertion fails"),
        (&["formats"], "\n  duration     "),
        (&["run"], "Usage: brunt run [OPTIONS] [PLAN.toml]"),
        (&[], "\n  exit-codes  "),
    ];
    for (words, expected) in table {
        let (exit, text, error) = help(words);
        assert_eq!((exit, error.as_str()), (0, ""), "{words:?}");
        assert!(text.contains(expected), "{words:?}: {text}");
    }
    let (exit, text, error) = help(&["lode"]);
    assert_eq!((exit, text.as_str()), (2, ""));
    let error = error.replace('\n', " ");
    for named in [
        "unknown topic 'lode': expected keys, checks, exit-codes, formats; ",
        " (run, ",
        " LOAD, ",
        "REPEAT)",
    ] {
        assert!(error.contains(named), "{error}");
    }
}
