//! `cargo xtask accuracy`: the live accuracy experiments at full length.
//!
//! Not part of the test command: it takes eight minutes and wants an otherwise idle machine. The experiments are tests of
//! the binary (`crates/brunt/tests/it/{accounting,accuracy,convictions,wire}.rs`); here they only get their length and print
//! what they measured.

use crate::{programs, top};
use anyhow::{Context, ensure};
use std::process::Command;

/// Runs the experiments one after another with the release build.
///
/// # Errors
/// A program is missing, or an experiment failed; what it measured stands above.
pub(crate) fn run() -> anyhow::Result<()> {
    let skipped = programs::ensure()?;
    programs::announce_skipped(&skipped);
    let status = Command::new(env!("CARGO"))
        .args(["test", "--release", "--package", "brunt", "--test", "it", "--"])
        .args(["--nocapture", "--test-threads", "1", "accounting::", "accuracy::", "convictions::", "wire::"])
        .env("BRUNT_ACCURACY", "full")
        .current_dir(top())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "an experiment is off; an idle machine is the first thing to try");
    Ok(())
}
