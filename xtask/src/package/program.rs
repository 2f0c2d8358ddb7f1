//! The program that is in all packages, and what is installed beside it.
//!
//! Zig's compiler links it against an old C library, on behalf of maturin, which puts it into a wheel, too. Invariant: paths of the machine
//! that builds it are replaced in it.

use super::Workshop;
use crate::dependencies::{Graph, System, bill_of_materials, notices};
use crate::{cargo, programs, top};
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The wheels' name of systems from glibc 2.17 on.
const SYSTEMS: &str = "manylinux2014";
/// Python packages, in versions that were tried together.
const BUILDERS: [&str; 2] = ["ziglang==0.17.1", "maturin==1.16.0"];
/// Shells, and where each looks for what it completes, below a prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/brunt"),
    ("zsh", "share/zsh/site-functions/_brunt"),
    ("fish", "share/fish/vendor_completions.d/brunt.fish"),
];

fn builder_folder() -> anyhow::Result<PathBuf> {
    Ok(cargo::target_folder()?.join("package-tools"))
}

/// Installs what builds the program, below the target folder.
///
/// # Errors
/// Python has no pip, or no registry has the packages.
pub(super) fn ensure_builder() -> anyhow::Result<()> {
    programs::install_python(&builder_folder()?, &BUILDERS)
}

/// Builds the wheel, and lays out what is installed below a prefix such as /usr/local.
///
/// # Errors
/// It cannot be built, or does not run here.
pub(super) fn make_tree(workshop: &Workshop) -> anyhow::Result<PathBuf> {
    // Those of a wheel lie below the folder of its pyproject.toml.
    let of_wheel = top().join("target/notices");
    fs::create_dir_all(&of_wheel)?;
    write_notices(&of_wheel, None)?;
    let program = build(workshop)?;

    let tree = workshop.scratch("tree");
    let documents = tree.join("share/doc/brunt");
    let pages = tree.join("share/man/man1");
    for folder in [&tree.join("bin"), &documents, &pages] {
        fs::create_dir_all(folder)?;
    }
    fs::copy(&program, tree.join("bin/brunt"))?;
    for name in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(top().join(name), documents.join(name))?;
    }
    write_notices(&documents, None)?;
    programs::run(Command::new(&program).args(["man", "--dir"]).arg(&pages))?;
    programs::run(Command::new("gzip").args(["--recursive", "--no-name", "--best"]).arg(&pages))?;
    for (shell, path) in COMPLETIONS {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().expect("the path has folders"))?;
        fs::write(path, programs::output(Command::new(&program).args(["completions", shell]))?)?;
    }
    workshop.settle(&tree)?;
    Ok(tree)
}

/// Writes the licences and the bill of materials of the program, and of what is in its package beside it.
///
/// # Errors
/// A crate or the standard library has no licence, or a file cannot be written.
pub(super) fn write_notices(folder: &Path, beside: Option<System>) -> anyhow::Result<()> {
    let graph = Graph::read()?;
    let systems: Vec<_> = std::iter::once(System::rust()?).chain(beside).collect();
    fs::write(folder.join("THIRD-PARTY.txt"), notices(&graph, &systems)?)?;
    Ok(fs::write(folder.join("brunt.cdx.json"), bill_of_materials(&graph, &systems)?)?)
}

fn build(workshop: &Workshop) -> anyhow::Result<PathBuf> {
    let target = cargo::target_folder()?;
    let builders = builder_folder()?.join("bin");
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let renamed = [(top(), "brunt"), (&target, "target"), (&home, "cargo")];
    let flags = renamed.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    let mut maturin = Command::new(builders.join("maturin"));
    maturin.args("build --release --locked --quiet --zig".split(' '));
    maturin.args(["--target", TARGET, "--compatibility", SYSTEMS, "--out"]);
    maturin.arg(wheel_folder(workshop)).current_dir(top()).env("PATH", programs::path_with(&builders)?);
    maturin
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CARGO_INCREMENTAL", "0");
    maturin
        .env("SOURCE_DATE_EPOCH", &workshop.epoch_s)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS");
    programs::run(&mut maturin)?;
    Ok(target.join(TARGET).join("release/brunt"))
}

fn wheel_folder(workshop: &Workshop) -> PathBuf {
    workshop.scratch("wheel")
}

/// Puts the wheel among the packages.
///
/// # Errors
/// It cannot be copied.
pub(super) fn keep_wheel(workshop: &Workshop) -> anyhow::Result<()> {
    for entry in fs::read_dir(wheel_folder(workshop))? {
        let entry = entry?;
        fs::copy(entry.path(), workshop.folder.join(entry.file_name()))?;
    }
    Ok(())
}
