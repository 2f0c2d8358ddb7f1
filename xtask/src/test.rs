//! `cargo xtask test`: THE test command, the same for a person and for continuous integration.
//!
//! Steps run in order and say their name and time; the first that fails ends it. With the name of a crate only its tests run. The
//! count at the end is of the tests that were listed, each of which has passed or not. A test that fails fails; only where the
//! hypervisor kept the processors from the tests is it made again, by itself, and named at the end.

mod runner;
mod stolen;
mod suite;
mod tally;

use crate::{instructions, programs, soak, tidy, top, web_test};
use anyhow::{Context, ensure};
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::Instant;
use tally::Tally;

/// Continuous integration has fifteen minutes; what is counted last takes three to five with its build, and begins within this time.
const COUNT_BEFORE_S: u64 = 540;
/// Where the hypervisor took more than this share of the processors while tests ran, those that failed are made again: some
/// measure what the host did to a server or to a client, and a tenth of a processor is a tenth of a second now and then.
const STOLEN_MAX: f64 = 0.02;
/// More failures than these are not the host's.
const AGAIN_MAX: usize = 8;

/// Runs every step.
///
/// # Errors
/// The first step that failed, by name.
pub(crate) fn run() -> anyhow::Result<()> {
    let start = Instant::now();
    let skipped = step("programs", programs::ensure)?;
    programs::announce_skipped(&skipped);
    step("lock file", lock_file)?;
    step("format", || cargo(&["fmt", "--all", "--check"], &[]))?;
    step("clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], &[])
    })?;
    step("tidy", tidy::run)?;
    let tally = step("tests", || run_tests(None))?;
    step("soak", soak::short)?;
    // What it takes a slow machine does not have left.
    let uncounted = match start.elapsed().as_secs() {
        passed_s if programs::in_continuous_integration() && passed_s > COUNT_BEFORE_S => {
            Some(format!("the steps before took {passed_s} s"))
        }
        _ => step("instructions", instructions::gate_if_changed)?,
    };
    let unseen = step("page in a browser", web_test::one_if_possible)?;
    // With private items: the source is there to be read, and a broken link misleads inside as it does outside.
    step("documentation", || {
        cargo(
            &["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        )
    })?;
    println!("==> all steps passed in {:.1} s", start.elapsed().as_secs_f64());
    programs::announce_skipped(&skipped);
    if let Some(reason) = uncounted {
        println!("NOT COUNTED: instructions per get ({reason})");
    }
    if let Some(reason) = unseen {
        println!("NOT TESTED: HTML pages in a browser ({reason})");
    }
    println!("{tally}");
    Ok(())
}

/// Runs the tests of one crate.
///
/// # Errors
/// There is no such crate, or a test failed.
pub(crate) fn run_crate(given: &str) -> anyhow::Result<()> {
    let package = suite::package(given)?;
    let skipped = step("programs", programs::ensure)?;
    let tally = step("tests", || run_tests(Some(&package)))?;
    programs::announce_skipped(&skipped);
    println!("{tally}");
    Ok(())
}

fn step<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    println!("==> {name}");
    let start = Instant::now();
    let value = work().with_context(|| format!("step '{name}' FAILED"))?;
    println!("    {name}: ok, {:.1} s", start.elapsed().as_secs_f64());
    Ok(value)
}

/// Building this program has already brought the lock file up to date, so a change means that the committed one is stale.
/// A person in the middle of adding a dependency is not bothered.
fn lock_file() -> anyhow::Result<()> {
    if !programs::in_continuous_integration() {
        return Ok(());
    }
    let status = Command::new("git")
        .args(["diff", "--exit-code", "--stat", "--", "Cargo.lock"])
        .current_dir(top())
        .status()
        .context("cannot run git")?;
    ensure!(status.success(), "Cargo.lock does not fit the manifests: build once and commit it");
    Ok(())
}

/// The cargo that runs us, so that a chosen toolchain stays chosen.
fn cargo_path() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn in_tree(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(top()).stdin(Stdio::null());
    if programs::in_continuous_integration() {
        // Nothing is built twice there, and a panic names its line without what a debugger wants to know.
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "none");
    }
    command
}

fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = in_tree(cargo_path());
    command.args(arguments);
    command
}

fn cargo(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let status =
        cargo_command(arguments).envs(variables.iter().copied()).status().context("cannot run cargo")?;
    ensure!(status.success(), "`cargo {}` ended with {status}", arguments.join(" "));
    Ok(())
}

/// Builds and runs the tests of one crate or of all, and counts.
fn run_tests(package: Option<&str>) -> anyhow::Result<Tally> {
    let start = Instant::now();
    let mut tests = Vec::new();
    for program in suite::build(package)? {
        tests.extend(suite::tests(program)?);
    }
    println!("    built in {:.1} s; {} tests", start.elapsed().as_secs_f64(), tests.len());
    let before = stolen::read();
    let mut tally = Tally::of(runner::run(tests));
    if tally.failed.is_empty() {
        return Ok(tally);
    }
    println!("{tally}");
    let share = stolen::share(before, stolen::read());
    ensure!(share > STOLEN_MAX && tally.failed.len() <= AGAIN_MAX, "tests failed");
    println!(
        "the hypervisor took {:.1} % of the processors: those that failed are made again",
        share * 100.0
    );
    let names = tally.failed_names();
    let again = Tally::of(runner::run_at_once(std::mem::take(&mut tally.failed), 1));
    ensure!(again.failed.is_empty(), "failed by themselves, too: {}", again.failed_names().join(", "));
    tally.add_made_again(names);
    Ok(tally)
}
