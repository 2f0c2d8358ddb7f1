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
        (&["LAG"], "LAG, a check of the verdict\n"),
        (&["ci-thin"], "CI-THIN, a check of the verdict\n"),
        (&["checks"], "Checks of the verdict"),
        (&["exit-codes"], "\n  3            no assertion fails, but one is undecided or the verdict is NOT"),
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
    let (exit, text, error) = help(&["lagg"]);
    assert_eq!((exit, text.as_str()), (2, ""));
    let error = error.replace('\n', " ");
    for named in [
        "unknown topic 'lagg': expected checks, causes, exit-codes, formats; ",
        " (run, ",
        " LAG, ",
        "REPEAT)",
    ] {
        assert!(error.contains(named), "{error}");
    }
}
