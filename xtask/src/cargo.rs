//! The cargo that runs this program, so that a chosen toolchain stays chosen, and what it builds.

use crate::{programs, top};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command of cargo's in the source tree.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(top()).stdin(Stdio::null());
    command
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top().join("target"), PathBuf::from);
    Ok(std::path::absolute(target)?)
}

/// The brunt that the tests have built, or that `cargo build` builds.
pub(crate) fn debug_brunt() -> anyhow::Result<PathBuf> {
    Ok(target_folder()?.join("debug/brunt"))
}

/// Builds what these arguments of `cargo build` select by a profile, with these environment variables, below a target folder. Never
/// incrementally nor by clippy, whatever the environment says: crates in pieces are inlined otherwise, and take 3 % more instructions.
pub(crate) fn build(
    target: &Path,
    profile: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> anyhow::Result<()> {
    let mut build = command(&["build", "--quiet", "--profile", profile, "--target-dir"]);
    build.arg(target).args(arguments).env("CARGO_INCREMENTAL", "0");
    build.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTFLAGS").envs(variables.iter().copied());
    programs::run(&mut build)
}

/// Builds brunt and brunt-bench as released. Returns their paths.
pub(crate) fn release_programs() -> anyhow::Result<[PathBuf; 2]> {
    let target = target_folder()?;
    build(&target, "release", &["--package", "brunt", "--package", "brunt-bench"], &[])?;
    Ok(["brunt", "brunt-bench"].map(|name| target.join("release").join(name)))
}
