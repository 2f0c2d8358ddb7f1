//! Release builds of packages of the workspace, by the cargo that runs us.

use crate::top;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top().join("target"), PathBuf::from);
    Ok(std::path::absolute(target)?)
}

/// Builds what these arguments of `cargo build` select, with these environment variables, below a target folder. Never
/// incrementally, whatever the environment says: crates in pieces are inlined otherwise, and take 3 % more instructions.
pub(crate) fn build(target: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--target-dir"])
        .arg(target)
        .args(arguments)
        .env("CARGO_INCREMENTAL", "0")
        .envs(variables.iter().copied())
        .current_dir(top())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "`cargo build --release {}` ended with {status}", arguments.join(" "));
    Ok(())
}
