//! `cargo xtask accuracy`: the accuracy experiments at full length.
//!
//! Not part of the test command: once built it takes up to eight minutes, and it wants an otherwise idle machine. The live
//! experiments are tests of the binary (`crates/brunt/tests/it/{accounting,accuracy,convictions,wire}.rs`), those in
//! virtual time tests of the engine, replications without a clock tests of the statistics; here they only get their length
//! and print what they found. One that fails does not keep the others from being made.

use crate::{programs, top};
use anyhow::{Context, ensure};
use std::process::Command;
use std::time::Instant;

/// Arguments of `cargo test` and of the test program, by what they are the experiments of.
const EXPERIMENTS: [(&[&str], &[&str]); 3] = [
    (&["--package", "brunt-stats", "--lib"], &["replications"]),
    (&["--package", "brunt-engine", "--lib"], &["simulated::queues"]),
    (
        &["--package", "brunt", "--test", "it"],
        &["--test-threads", "1", "accounting::", "accuracy::", "convictions::", "wire::"],
    ),
];

/// Builds all programs, then runs the experiments one after another, with the release build.
///
/// # Errors
/// A program is missing, or an experiment failed; what it measured stands above.
pub(crate) fn run() -> anyhow::Result<()> {
    let skipped = programs::ensure()?;
    programs::announce_skipped(&skipped);
    for (of, _) in EXPERIMENTS {
        ensure!(test(&[of, &["--no-run"]].concat())?, "the experiments do not build");
    }
    let start = Instant::now();
    let mut are_passed = true;
    for (of, names) in EXPERIMENTS {
        are_passed &= test(&[of, &["--", "--nocapture"], names].concat())?;
        println!("==> {:.0} s so far", start.elapsed().as_secs_f64());
    }
    ensure!(are_passed, "an experiment is off; an idle machine is the first thing to try");
    Ok(())
}

/// Runs `cargo test` with these arguments. Yields whether it passed.
fn test(arguments: &[&str]) -> anyhow::Result<bool> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--release"])
        .args(arguments)
        .env("BRUNT_ACCURACY", "full")
        .current_dir(top())
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}
