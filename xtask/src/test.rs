//! `cargo xtask test`: THE test command, the same for a person and for continuous integration.
//!
//! Steps run in order and say their name and time; the first that fails ends it. The count at the end is the sum of what
//! the test programs themselves reported, and is not printed when one of them ended without a report. A test that fails
//! fails; only where the hypervisor kept the processors from the tests is it made again, by itself, and named at the end.

mod stolen;

use crate::{instructions, programs, tidy, top};
use anyhow::{Context, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// How long building and running the tests may take: several times what a slow machine needs.
const TESTS_MAX_S: u64 = 2_400;
/// Continuous integration has fifteen minutes; what is counted last takes three to five with its build, and begins within this time.
const COUNT_BEFORE_S: u64 = 540;
/// Where the hypervisor took more than this share of the processors while tests ran, those that failed are made again: some
/// measure what the host did to a server or to a client, and a tenth of a processor is a tenth of a second now and then.
const STOLEN_MAX: f64 = 0.02;
/// More failures than these are not the host's.
const AGAIN_MAX: usize = 8;
/// What `timeout` ends with when it had to end its command.
const TIMED_OUT: i32 = 124;

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
    let tally = step("tests", count_tests)?;
    // What it takes a slow machine does not have left.
    let uncounted = match start.elapsed().as_secs() {
        passed_s if programs::in_continuous_integration() && passed_s > COUNT_BEFORE_S => {
            Some(format!("the steps before took {passed_s} s"))
        }
        _ => step("instructions", instructions::gate)?,
    };
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
    for name in &tally.again {
        println!("MADE AGAIN: {name} failed while the hypervisor had the processors, and passed by itself");
    }
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

/// Runs all tests, passes their output on as it comes, and counts.
fn count_tests() -> anyhow::Result<Tally> {
    let before = stolen::read();
    // Without --no-fail-fast the count would end at the first program with a failure.
    let (mut tally, status) = run_tests(&[])?;
    if status.success() {
        ensure!(tally.programs > 0, "no test program reported a result");
        ensure!(tally.failed == 0, "cargo was content, but {tally}");
        return Ok(tally);
    }
    if status.code() == Some(TIMED_OUT) {
        println!(
            "no count: a test was still running after {TESTS_MAX_S} s; the last one named above is among them"
        );
    } else if tally.failed == 0 {
        println!("no count: a test program did not build, or ended without a report");
    } else {
        println!("{tally}");
        let share = stolen::share(before, stolen::read());
        if share > STOLEN_MAX && tally.names_all_failures() && tally.failures.len() <= AGAIN_MAX {
            println!(
                "the hypervisor took {:.1} % of the processors: those that failed are made again",
                share * 100.0
            );
            return make_again(&mut tally);
        }
    }
    bail!("the tests ended with {status}")
}

/// Makes the tests that failed once more, one after the other.
fn make_again(tally: &mut Tally) -> anyhow::Result<Tally> {
    let names = std::mem::take(&mut tally.failures);
    let filter: Vec<&str> =
        ["--exact", "--test-threads", "1"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let (again, status) = run_tests(&filter)?;
    let (wanted, passed) = (names.len() as u64, again.passed);
    ensure!(
        status.success() && passed == wanted,
        "{passed} of {wanted} tests that failed passed by themselves"
    );
    Ok(Tally { passed: tally.passed + passed, failed: 0, again: names, ..std::mem::take(tally) })
}

/// Runs the tests; `filter` is for the test programs.
fn run_tests(filter: &[&str]) -> anyhow::Result<(Tally, ExitStatus)> {
    let arguments = [&["test", "--workspace", "--no-fail-fast", "--"], filter].concat();
    let mut command = if programs::in_continuous_integration() {
        // A test that waits for ever would otherwise end with the patience of whoever waits for it, and name nobody.
        // `timeout` is of the coreutils, and ends the test programs together with cargo. A person has Ctrl-C, which would
        // not reach them behind it.
        let mut command = in_tree("timeout");
        command.args(["--kill-after=10", &TESTS_MAX_S.to_string()]).arg(cargo_path()).args(arguments);
        command
    } else {
        cargo_command(&arguments)
    };
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().expect("stdout is piped");
    let tally =
        count(BufReader::new(output), &mut std::io::stdout()).context("cannot pass on the tests' output")?;
    Ok((tally, child.wait().context("cannot wait for cargo")?))
}

fn count(mut output: impl BufRead, shown: &mut impl Write) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        shown.write_all(&line)?;
        shown.flush()?;
        tally.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(tally)
}

/// The sum of the "test result" lines, and the names of the tests that failed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    programs: u64,
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    /// Those that failed first, and passed when they were made again.
    again: Vec<String>,
}

impl Tally {
    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["test", name, "...", "FAILED"] = words[..] {
            self.failures.push(name.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let number_before = |word: &str| -> Option<u64> {
            let (before, _) = result.split_once(word)?;
            before.trim_end().rsplit(' ').next()?.parse().ok()
        };
        if let (Some(passed), Some(failed)) = (number_before("passed;"), number_before("failed;")) {
            self.programs += 1;
            self.passed += passed;
            self.failed += failed;
        }
    }

    fn names_all_failures(&self) -> bool {
        self.failures.len() as u64 == self.failed
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up_and_output_passes_through() {
        let output = "\
running 2 tests
test a ... ok
test b::c ... FAILED
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests brunt
test d ... FAILED
test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
a line about a test result: 7 passed; 7 failed;
a line about a test ... FAILED
test result: of some other shape
";
        let mut shown = Vec::new();
        let tally = count(output.as_bytes(), &mut shown).unwrap();
        let failures = vec!["b::c".to_owned(), "d".to_owned()];
        assert_eq!(tally, Tally { programs: 2, passed: 15, failed: 2, failures, again: Vec::new() });
        assert!(tally.names_all_failures());
        assert_eq!(tally.to_string(), "15 passed, 2 failed");
        assert_eq!(shown, output.as_bytes());
    }
}
