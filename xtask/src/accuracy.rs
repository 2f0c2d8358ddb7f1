//! `cargo xtask accuracy`: the accuracy experiments at full length.
//!
//! Not part of the test command: it takes ten minutes and wants an otherwise idle machine. The live experiments are tests of
//! the binary (`crates/brunt/tests/it/{accounting,accuracy,convictions,wire}.rs`), replications without a clock are tests
//! of the statistics; here they only get their length and print what they found.

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
    experiments(&["--package", "brunt-stats", "--lib", "--", "--nocapture", "replications"])?;
    let live = ["--package", "brunt", "--test", "it", "--"];
    experiments(
        &[
            &live[..],
            &["--nocapture", "--test-threads", "1", "accounting::", "accuracy::", "convictions::", "wire::"],
        ]
        .concat(),
    )
}

fn experiments(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--release"])
        .args(arguments)
        .env("BRUNT_ACCURACY", "full")
        .current_dir(top())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "an experiment is off; an idle machine is the first thing to try");
    Ok(())
}
