//! `cargo xtask test`: THE test command, the same for a person and for continuous integration.
//!
//! Steps run in order and print their name and time; the first that fails ends it. With the name of a crate only its tests run.
//! Invariant: what is not tested is named at the end, and a step that is skipped fails if CI is set; a test has passed
//! only if it did beside the others or, run once more, alone: then it is named.

mod runner;

use crate::{browser, cargo, instructions, programs, tidy, top, web_test};
use anyhow::{Context, ensure};
use runner::EndedTest;
use std::process::Command;
use std::time::Instant;

/// Tests that start servers and measure them share the CPUs with others, and some run out of time on a busy host. More failures than
/// these have another cause.
const RERUN_MAX: usize = 8;
/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// Runs every step, or the tests of one crate.
///
/// # Errors
/// The first step that failed, by name.
pub(crate) fn run(package: Option<&str>) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut notes = step("programs", programs::ensure_servers)?;
    if package.is_some() {
        notes.extend(step("tests", || run_tests(package))?);
    } else {
        step("lock file", lock_file)?;
        step("format", || programs::run(&mut cargo::command(&["fmt", "--all", "--check"])))?;
        if !is_clippy_the_compiler() {
            let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
            step("clippy", || programs::run(&mut cargo::command(&clippy)))?;
        }
        step("tidy", tidy::run)?;
        notes.extend(step("tests", || run_tests(None))?);
        // The others wait, or take one CPU.
        notes.extend(std::thread::scope(|scope| {
            let documentation = scope.spawn(|| step("documentation", document));
            let instructions = match instructions::is_unchanged()? {
                true => None,
                false => step_if("instructions", instructions::ready, instructions::gate)?,
            };
            let page = step_if("page in a browser", browser::ready, web_test::short)?;
            documentation.join().expect("its errors are returned")?;
            anyhow::Ok([instructions, page].into_iter().flatten())
        })?);
    }
    println!("==> all steps passed in {:.1} s", start.elapsed().as_secs_f64());
    notes.sort();
    notes.dedup();
    notes.iter().for_each(|note| println!("{note}"));
    Ok(())
}

fn step<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    println!("==> {name}");
    let start = Instant::now();
    let value = work().with_context(|| format!("step '{name}' FAILED"))?;
    println!("    {name}: ok, {:.1} s", start.elapsed().as_secs_f64());
    Ok(value)
}

/// A step that some hosts cannot make: it is skipped there, with a note, unless others rely on the outcome.
fn step_if(
    name: &str,
    ready: impl FnOnce() -> anyhow::Result<()>,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    match ready() {
        Err(reason) if programs::in_continuous_integration() => {
            Err(reason.context(format!("step '{name}' may not be skipped if CI is set")))
        }
        Err(reason) => Ok(Some(format!("NOT TESTED: {name} ({})", format!("{reason:#}").replace('\n', ";")))),
        Ok(()) => step(name, work).map(|()| None),
    }
}

/// Are our crates checked as they are built, with warnings as errors? So they are in continuous integration, which spares it a pass over
/// them.
fn is_clippy_the_compiler() -> bool {
    let is = |variable: &str, value: &str| std::env::var_os(variable).is_some_and(|found| found == value);
    is("RUSTC_WORKSPACE_WRAPPER", "clippy-driver") && is("RUSTFLAGS", "-D warnings")
}

/// Building this program has already brought the lock file up to date, so a change means that the committed one is stale.
/// A person in the middle of adding a dependency is not bothered.
fn lock_file() -> anyhow::Result<()> {
    if !programs::in_continuous_integration() {
        return Ok(());
    }
    let mut git = Command::new("git");
    let status = git.args(["diff", "--exit-code", "--stat", "--", "Cargo.lock"]).current_dir(top()).status();
    let is_same = status.context("cannot run git")?.success();
    ensure!(is_same, "Cargo.lock does not fit the manifests: build once and commit it");
    Ok(())
}

/// With private items: the source is there to be read, and a broken link misleads inside as it does outside.
fn document() -> anyhow::Result<()> {
    let document = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    let mut document = cargo::command(&document);
    programs::run(document.env("RUSTDOCFLAGS", "-D warnings").env_remove("RUSTC_WORKSPACE_WRAPPER"))
}

/// Builds and runs the tests of one crate or of all. Returns what must be known of those that passed. The folder for the files
/// that they make is removed.
fn run_tests(package: Option<&str>) -> anyhow::Result<Vec<String>> {
    let start = Instant::now();
    let tests = runner::tests(package)?;
    let count = tests.len();
    println!("    built in {:.1} s; {count} tests", start.elapsed().as_secs_f64());
    let scratch = tempfile::Builder::new().prefix("brunt-test-").tempdir()?;
    let ended = runner::run(tests, scratch.path());
    print_slowest(&ended);
    let (passed, failed): (Vec<EndedTest>, Vec<EndedTest>) =
        ended.into_iter().partition(|ended| ended.passed);
    println!("{} passed, {} failed", passed.len(), failed.len());
    let mut notes: Vec<String> = passed.into_iter().flat_map(|ended| ended.skipped).collect();
    if !failed.is_empty() {
        failed.iter().for_each(|ended| println!("FAILED: {}", ended.test));
        ensure!(failed.len() <= RERUN_MAX, "tests failed");
        println!("those that failed are run once more, alone");
        let failed = failed.into_iter().map(|ended| ended.test).collect();
        for ended in runner::run_at_once(failed, 1, scratch.path()) {
            let EndedTest { test, passed, .. } = ended;
            ensure!(passed, "failed alone, too: {test}");
            notes.push(format!("RERUN: {test} failed beside others and passed alone"));
        }
    }
    notes.push(format!("{count} passed, 0 failed"));
    scratch.close().context("the folder of the tests cannot be removed")?;
    Ok(notes)
}

fn print_slowest(ended: &[EndedTest]) {
    let mut slowest: Vec<_> = ended.iter().map(|ended| (ended.took, &ended.test)).collect();
    slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    println!("the slowest tests:");
    for (took, test) in slowest.iter().take(SLOWEST) {
        println!("  {:6.2} s  {test}", took.as_secs_f64());
    }
}
