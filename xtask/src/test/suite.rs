//! The test programs of the workspace, and the tests in each of them.
//!
//! Not how tests are run (`runner.rs`). Examples in documentation are no tests: no crate has any, and every crate that had
//! would be one more program to build.

use super::cargo_command;
use crate::top;
use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What the names of our crates begin with, and what may be left out of them.
const PREFIX: &str = "brunt-";

/// One test program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The crate that it is of.
    pub(super) package: String,
    pub(super) executable: PathBuf,
    /// The crate's folder, in which a test is run.
    pub(super) directory: PathBuf,
    /// It is no part of the crate but uses it: its tests start programs and wait for them, where the others compute.
    pub(super) is_integration: bool,
}

/// One test.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) program: Arc<Program>,
    pub(super) name: String,
}

impl std::fmt::Display for Test {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.program.package, self.name)
    }
}

/// The crate of this name, with or without what all of them begin with.
///
/// # Errors
/// There is none; which there are.
pub(super) fn package(given: &str) -> anyhow::Result<String> {
    let mut names = vec!["xtask".to_owned()];
    for entry in std::fs::read_dir(top().join("crates"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    find_package(given, &names)
}

fn find_package(given: &str, names: &[String]) -> anyhow::Result<String> {
    let found = names.iter().find(|name| *name == given || name.strip_prefix(PREFIX) == Some(given));
    let Some(found) = found else {
        bail!("invalid value '{given}' for CRATE: expected {}, with or without '{PREFIX}'", names.join(", "))
    };
    Ok(found.clone())
}

/// Builds the test programs of one crate, or of all.
///
/// # Errors
/// They do not build.
pub(super) fn build(package: Option<&str>) -> anyhow::Result<Vec<Program>> {
    let selected = package.map_or(vec!["--workspace"], |name| vec!["--package", name]);
    let output = cargo_command(&["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(selected)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let mut programs: Vec<Program> = String::from_utf8(output.stdout)?.lines().filter_map(program).collect();
    programs.sort_by(|a, b| a.executable.cmp(&b.executable));
    ensure!(!programs.is_empty(), "cargo named no test program");
    Ok(programs)
}

/// The program that a message of cargo's speaks of, if it is a test program.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = message["executable"].as_str()?;
    let directory = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    message["profile"]["test"].as_bool()?.then(|| Program {
        package: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        executable: executable.into(),
        is_integration: message["target"]["kind"][0] == "test",
        directory,
    })
}

/// The tests of a program, in the order of their names.
///
/// # Errors
/// It does not say.
pub(super) fn tests(program: Program) -> anyhow::Result<Vec<Test>> {
    let program = Arc::new(program);
    let output = Command::new(&program.executable)
        .args(["--list", "--format", "terse"])
        .output()
        .with_context(|| format!("cannot run {}", program.executable.display()))?;
    ensure!(output.status.success(), "{} does not list its tests", program.executable.display());
    let names = String::from_utf8(output.stdout)?;
    let test =
        |line: &str| Some(Test { program: program.clone(), name: line.strip_suffix(": test")?.to_owned() });
    Ok(names.lines().filter_map(test).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_have_a_name_and_a_short_one() {
        let names = ["brunt", "brunt-stats", "xtask"].map(str::to_owned);
        for (given, found) in [("brunt", "brunt"), ("stats", "brunt-stats"), ("brunt-stats", "brunt-stats")] {
            assert_eq!(find_package(given, &names).unwrap(), found);
        }
        let error = find_package("stat", &names).unwrap_err().to_string();
        let expected =
            "invalid value 'stat' for CRATE: expected brunt, brunt-stats, xtask, with or without 'brunt-'";
        assert_eq!(error, expected);
    }

    #[test]
    fn messages_name_test_programs() {
        let message = |kind: &str, is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/t/crates/brunt-plan/Cargo.toml","target":{{"kind":["{kind}"]}},
                "profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let expected = |is_integration| Program {
            package: "brunt-plan".to_owned(),
            executable: "/x/plan-1".into(),
            directory: "/t/crates/brunt-plan".into(),
            is_integration,
        };
        assert_eq!(program(&message("lib", true, r#""/x/plan-1""#)), Some(expected(false)));
        assert_eq!(program(&message("test", true, r#""/x/plan-1""#)), Some(expected(true)));
        assert_eq!(program(&message("bin", false, r#""/x/brunt""#)), None);
        assert_eq!(program(&message("lib", false, "null")), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
