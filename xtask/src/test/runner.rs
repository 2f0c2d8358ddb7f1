//! Runs the tests of the workspace, each as a process of its own, and tells how long each took.
//!
//! A process for each, because the standard test harness tells no times on a stable compiler, and because programs then share the
//! CPUs: while one waits, another computes. Starting one takes three milliseconds. Examples in documentation are no tests: no
//! crate has any. Invariant: a test has passed only if its program reports one that has.

use crate::{cargo, parallel, programs, top};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one test may take in continuous integration: many times what the longest needs on a slow machine.
const TEST_MAX_S: u64 = 600;
/// The module of an integration program whose tests measure time: nothing runs beside one of them.
const ALONE: &str = "experiments::";
/// Tests that start programs and run at once, for each CPU: they wait most of the time.
const WAITING_PER_CPU: usize = 4;
/// Other tests that run at once beyond the number of CPUs: a few of them wait for sockets as well.
const COMPUTING_BESIDE: usize = 1;
/// How the names of the slowest tests begin, slowest first. They start before the others, so that none is left over at the end while
/// CPUs are idle.
const SLOWEST: [&str; 8] = [
    "recipes::",
    "report::",
    "recorded_cases::",
    "command_line::silent_servers",
    "accounting::every_request_is_counted",
    "connection_limits::ten_thousand",
    "campaigns::scans_name",
    "cluster::",
];
/// How a line begins in which a test that passed tells what it could not test on this host.
const SKIPPED: [&str; 2] = ["SKIPPED: ", "NOT TESTED: "];

/// One test program.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// The crate that it is of.
    package: String,
    executable: PathBuf,
    /// The crate's folder, in which a test is run.
    directory: PathBuf,
    /// It is no part of the crate but uses it: its tests start programs and wait for them, while the others compute.
    is_integration: bool,
}

/// One test.
#[derive(Clone, Debug)]
pub(super) struct Test {
    program: Arc<Program>,
    name: String,
}

/// A test that has ended.
#[derive(Debug)]
pub(super) struct EndedTest {
    pub(super) test: Test,
    pub(super) took: Duration,
    pub(super) passed: bool,
    /// What it could not test on this host.
    pub(super) skipped: Vec<String>,
}

impl std::fmt::Display for Test {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.program.package, self.name)
    }
}

/// Builds the test programs of one crate, with or without its `brunt-`, or of all, and lists their tests.
///
/// # Errors
/// They do not build, or there is no such crate.
pub(super) fn tests(package: Option<&str>) -> anyhow::Result<Vec<Test>> {
    let mut build = cargo::command(&["test", "--no-run", "--message-format=json-render-diagnostics"]);
    match package {
        Some(name) if top().join(format!("crates/brunt-{name}")).exists() => {
            build.args(["--package", &format!("brunt-{name}")])
        }
        Some(name) => build.args(["--package", name]),
        None => build.arg("--workspace"),
    };
    let output = build.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let mut programs: Vec<Program> = String::from_utf8(output.stdout)?.lines().filter_map(program).collect();
    programs.sort_by(|a, b| a.executable.cmp(&b.executable));
    ensure!(!programs.is_empty(), "cargo named no test program");
    let mut tests = Vec::new();
    for program in programs.into_iter().map(Arc::new) {
        let executable = &program.executable;
        let mut list = Command::new(executable);
        let output = list.args(["--list", "--format", "terse"]).output();
        let output = output.with_context(|| format!("cannot run {}", executable.display()))?;
        ensure!(output.status.success(), "{} does not list its tests", executable.display());
        let names = String::from_utf8(output.stdout)?;
        let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
        tests.extend(names.map(|name| Test { program: program.clone(), name: name.to_owned() }));
    }
    Ok(tests)
}

/// The program that a message of cargo's describes, if it is a test program.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = message["executable"].as_str()?;
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    message["profile"]["test"].as_bool()?.then(|| Program {
        package: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        executable: executable.into(),
        is_integration: message["target"]["kind"][0] == "test",
        directory,
    })
}

/// Runs all of them, with files they make in `scratch`, and prints each as it ends: those that compute, those that wait, those that
/// measure.
pub(super) fn run(tests: Vec<Test>, scratch: &Path) -> Vec<EndedTest> {
    let cpus = parallel::cpus();
    let (mut integration, computing): (Vec<Test>, Vec<Test>) =
        tests.into_iter().partition(|test| test.program.is_integration);
    let place = |test: &Test| SLOWEST.iter().position(|name| test.name.starts_with(name));
    integration.sort_by_key(|test| place(test).unwrap_or(SLOWEST.len()));
    let (alone, waiting) = integration.into_iter().partition(|test| test.name.starts_with(ALONE));
    let stages = [(computing, cpus + COMPUTING_BESIDE), (waiting, WAITING_PER_CPU * cpus), (alone, 1)];
    stages.into_iter().flat_map(|(tests, at_once)| run_at_once(tests, at_once, scratch)).collect()
}

/// Runs them, `at_once` at a time.
pub(super) fn run_at_once(tests: Vec<Test>, at_once: usize, scratch: &Path) -> Vec<EndedTest> {
    parallel::map(tests, at_once, |test| run_one(test, scratch))
}

/// Runs one, and prints what became of it.
fn run_one(test: Test, scratch: &Path) -> EndedTest {
    let Program { executable, directory, .. } = &*test.program;
    let mut command = if programs::in_continuous_integration() {
        // A test that waits for ever would else end only when the run is given up, and not be named. `timeout` is of the
        // coreutils, and ends what the test has started, too. A person has Ctrl-C, which would not reach a test behind it.
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", &TEST_MAX_S.to_string()]).arg(executable);
        command
    } else {
        Command::new(executable)
    };
    command.args(["--show-output", "--exact", &test.name]).current_dir(directory).stdin(Stdio::null());
    command.env("CARGO_MANIFEST_DIR", directory).env("TMPDIR", scratch);
    // Else every snapshot test asks cargo for it.
    command.env("INSTA_WORKSPACE_ROOT", top());
    let start = Instant::now();
    let output = command.output();
    let took = start.elapsed();
    let (is_success, printed) = match output {
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            let end = format!("    ended with {}\n", output.status);
            (output.status.success(), String::from_utf8_lossy(&printed).into_owned() + &end)
        }
        Err(error) => (false, format!("cannot run it: {error}\n")),
    };
    let passed = is_success && printed.contains("\ntest result: ok. 1 passed; 0 failed;");
    let is_skipped = |line: &&str| SKIPPED.iter().any(|head| line.starts_with(head));
    let skipped = printed.lines().filter(is_skipped).map(str::to_owned).collect();
    let (word, output) = if passed { ("ok", "") } else { ("FAILED", printed.as_str()) };
    print!("{word:6} {:6.2} s  {test}\n{output}", took.as_secs_f64());
    EndedTest { test, took, passed, skipped }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// This one lists and runs the next one, which is a test like any other.
    #[test]
    fn tests_are_run_and_what_they_skip_is_found() {
        let program = Program {
            package: "xtask".to_owned(),
            executable: std::env::current_exe().unwrap(),
            directory: top().to_owned(),
            is_integration: false,
        };
        let name = format!("{}::a_test_that_skips", module_path!().trim_start_matches("xtask::"));
        let program = Arc::new(program);
        let tests = [name.clone(), format!("{name}_not")].map(|name| Test { program: program.clone(), name });
        let ended = run_at_once(tests.to_vec(), 1, Path::new("/made-up"));
        assert_eq!(ended.iter().map(|ended| ended.passed).collect::<Vec<_>>(), [true, false]);
        assert_eq!(ended[0].skipped, ["SKIPPED: /made-up is no folder"]);
        assert_eq!(ended[0].test.to_string(), format!("xtask {name}"));
    }

    #[test]
    fn a_test_that_skips() {
        if std::env::temp_dir() == Path::new("/made-up") {
            println!("SKIPPED: /made-up is no folder");
        }
    }
}
