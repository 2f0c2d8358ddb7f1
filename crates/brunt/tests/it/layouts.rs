//! The forms of a report, as a user asks for them: short, brief, quiet, in colour, in ASCII, again from a file.

use crate::server::{Directory, plain};
use std::process::Output;

const SHORT_RUN: [&str; 11] = [
    "run",
    "--progress=none",
    "--allow=BROKEN,LOAD,CLIENT,DATA",
    "-n",
    "3000",
    "--keys",
    "100",
    "--warmup",
    "0s",
    "--seed",
    "7",
];

fn shown(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// One measurement, reported in every form.
#[test]
fn a_result_has_several_forms() {
    let directory = Directory::new();
    let path = directory.join("out.json");
    let path = path.to_str().unwrap();
    let mut command = plain(&SHORT_RUN);
    let run = command.args(["-o", path]).env("LC_ALL", "C.UTF-8").output().unwrap();
    let short = shown(&run);
    assert_eq!(run.status.code(), Some(0), "{short}{}", String::from_utf8_lossy(&run.stderr));
    assert!(short.starts_with("closed loop   16 connections x depth 1 · get=9,set=1"), "{short}");
    assert!(short.lines().count() <= 24, "{short}");
    assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
    let report = |flags: &[&str], locale: &str| {
        let mut command = plain(&["report", path]);
        shown(&command.args(flags).env("LC_ALL", locale).env_remove("NO_COLOR").output().unwrap())
    };
    assert_eq!(report(&[], "C.UTF-8"), short);
    assert_eq!(report(&["--color", "never"], "C.UTF-8"), short);
    let coloured = report(&["--color", "always"], "C.UTF-8");
    let mut parts = coloured.split("\x1b[");
    let first = parts.next().unwrap().to_owned();
    let stripped = parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1);
    assert_eq!((coloured.contains("\x1b[1m"), stripped), (true, short.clone()));
    assert!(report(&[], "C").is_ascii() && report(&[], "C").contains(" | get=9,set=1"));
    assert!(report(&["--unit", "ns"], "C").contains("response, ns "));
    assert_eq!(report(&["--quiet"], "C"), "");
    let brief = report(&["--report=brief"], "C");
    assert_eq!((brief.lines().count(), brief.starts_with("status=")), (1, true), "{brief}");
    let details = report(&["--report=full"], "C");
    assert!(details.starts_with(&report(&[], "C")[..80]) && details.contains("\n  service "), "{details}");
    let refused = plain(&["report", path, "--report=brief", "--report=full"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// Cut as docs/results.md says: the fourth field of an operation is its p99.
#[test]
fn tables_can_be_cut_by_columns() {
    let output = plain(&SHORT_RUN).args(["--unit", "us"]).output().unwrap();
    let text = shown(&output);
    let row = |name: &str| -> Vec<String> {
        let row = text.lines().map(str::split_whitespace).find(|row| row.clone().next() == Some(name));
        row.unwrap_or_else(|| panic!("no {name} in {text}")).map(str::to_owned).collect()
    };
    assert_eq!(row("response,")[4], "p99");
    let (all, get) = (row("all"), row("get"));
    assert_eq!((all.len(), get.len()), (10, 10), "{text}");
    assert!(get[3].trim_start_matches("<=").parse::<f64>().unwrap() > 1.0, "{text}");
}
