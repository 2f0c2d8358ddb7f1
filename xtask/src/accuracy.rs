//! `cargo xtask accuracy` and `cargo xtask replications`: the experiments at full length, live and without a clock.
//!
//! Not part of the test command, which makes one short form of each. Those of the first are tests of the binary
//! (`crates/brunt/tests/it/{experiments,accounting,operations,outages,servers,status}.rs`): once built they take about twenty minutes and want
//! an otherwise idle machine; one that the machine disturbs fails and says so. Those of the second are tests of the statistics and of the engine in virtual time: they take
//! five minutes of any machine. Here they only get their length and print what they found; one that fails does not keep
//! the others from being made.

use crate::{cargo, programs};
use anyhow::ensure;
use std::time::Instant;

/// Arguments of `cargo test`, and of the test program.
type Experiments = (&'static [&'static str], &'static [&'static str]);

const LIVE: [Experiments; 1] = [(
    &["--package", "brunt", "--test", "it"],
    &[
        "--test-threads",
        "1",
        "experiments::",
        "accounting::",
        "operations::mixed",
        "outages::",
        "servers::",
        "status::",
    ],
)];

const VIRTUAL: [Experiments; 2] = [
    (&["--package", "brunt-stats", "--lib"], &["replications"]),
    (
        &["--package", "brunt-engine", "--lib"],
        &["simulated::queues", "simulated::capacity", "simulated::faults"],
    ),
];

/// Makes the live experiments; all on `io` where that is given, else by turns on each interface to the kernel.
///
/// # Errors
/// A program is missing, or an experiment failed; what it measured is above.
pub(crate) fn live(io: Option<&str>) -> anyhow::Result<()> {
    programs::ensure_servers()?.iter().for_each(|skipped| println!("{skipped}"));
    make(&LIVE, io, "; an idle machine is the first thing to try")
}

/// Makes those without a clock.
///
/// # Errors
/// An experiment failed; what it found is above.
pub(crate) fn replications() -> anyhow::Result<()> {
    make(&VIRTUAL, None, "")
}

/// Builds all programs, then runs the experiments one after another, with the release build. `advice` follows a failure.
fn make(experiments: &[Experiments], io: Option<&str>, advice: &str) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let test = |of: &[&str], more: &[&str]| {
        let mut test = cargo::command(&[&["test", "--release"], of, more].concat());
        test.env("BRUNT_ACCURACY", "full").envs(io.map(|io| ("BRUNT_ACCURACY_IO", io)));
        programs::run(test.env("TMPDIR", scratch.path()))
    };
    for (of, _) in experiments {
        test(of, &["--no-run"])?;
    }
    let start = Instant::now();
    let mut are_passed = true;
    for (of, names) in experiments {
        are_passed &= test(of, &[&["--", "--nocapture"], *names].concat()).is_ok();
        println!("==> {:.0} s so far", start.elapsed().as_secs_f64());
    }
    ensure!(are_passed, "an experiment is off{advice}");
    Ok(())
}
