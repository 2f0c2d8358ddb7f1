//! The forms of a report, as a user asks for them: short, brief, quiet, in colour, in ASCII, again from a file.

use crate::server::{Directory, Ended, plain};

const SHORT_RUN: &str =
    "run --progress=none --allow=BROKEN,LOAD,CLIENT,DATA -n 3000 --keys 100 --warmup 0s --seed 7";

/// One measurement, reported in every form.
#[test]
fn a_result_has_several_forms() {
    let directory = Directory::new();
    let path = directory.path("out.json");
    let run = Ended::from(plain(&format!("{SHORT_RUN} -o {path}")).env("LC_ALL", "C.UTF-8"));
    let short = &run.out;
    assert_eq!(run.exit, 0);
    assert!(short.starts_with("closed loop   16 connections x depth 1 · get=9,set=1"));
    assert!(short.lines().count() <= 24);
    assert!(short.lines().all(|line| line.chars().count() <= 80));
    let report = |flags: &str, locale: &str| {
        let mut report = plain(&format!("report {path} {flags}"));
        Ended::from(report.env("LC_ALL", locale).env_remove("NO_COLOR")).out.clone()
    };
    assert_eq!(report("", "C.UTF-8"), *short);
    assert_eq!(report("--color never", "C.UTF-8"), *short);
    let coloured = report("--color always", "C.UTF-8");
    let mut parts = coloured.split("\x1b[");
    let first = parts.next().unwrap().to_owned();
    let stripped = parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1);
    assert_eq!((coloured.contains("\x1b[1m"), stripped), (true, short.clone()));
    assert!(report("", "C").is_ascii() && report("", "C").contains(" | get=9,set=1"));
    assert!(report("--unit ns", "C").contains("response, ns "));
    assert_eq!(report("--quiet", "C"), "");
    let brief = report("--report=brief", "C");
    assert_eq!((brief.lines().count(), brief.starts_with("status=")), (1, true), "{brief}");
    let details = report("--report=full", "C");
    assert!(details.starts_with(&report("", "C")[..80]) && details.contains("\n  service "), "{details}");
    let refused = Ended::from(plain(&format!("report {path} --report=brief --report=full")));
    assert_eq!(refused.exit, 2);
}

/// Cut as docs/results.md says: the fourth field of an operation is its p99.
#[test]
fn tables_can_be_cut_by_columns() {
    let output = Ended::from(plain(&format!("{SHORT_RUN} --unit us")));
    let row = |name: &str| -> Vec<String> {
        let row = output.out.lines().map(str::split_whitespace).find(|row| row.clone().next() == Some(name));
        row.unwrap_or_else(|| panic!("no {name}")).map(str::to_owned).collect()
    };
    assert_eq!(row("response,")[4], "p99");
    let (all, get) = (row("all"), row("get"));
    assert_eq!((all.len(), get.len()), (10, 10));
    assert!(get[3].trim_start_matches("<=").parse::<f64>().unwrap() > 1.0);
}
