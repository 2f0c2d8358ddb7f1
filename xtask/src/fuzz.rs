//! `cargo xtask fuzz [SECONDS [TARGET …]]`: looks for bytes that break a decoder, SECONDS for each target.
//!
//! Not what must hold (that is in crates/brunt-fuzz) and no part of the test command, which shows the decoders the
//! committed corpus again. The installed stable compiler does it: coverage is LLVM's, libFuzzer is linked in, and decoders
//! have no unsafe code that an address sanitizer could watch. Invariant: bytes that break something are left behind, and named.

use crate::{release_build, top};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const DEFAULT_S: u64 = 60;
/// Longer inputs find nothing that these do not: the longest unit of a decoder has 2 KiB.
const INPUT_BYTES_MAX: u32 = 8192;
/// Of one input; a decoder takes microseconds.
const INPUT_MAX_S: u32 = 5;
/// What libFuzzer needs to see of a program: which edges it took, and what it compared.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 -Coverflow-checks=yes -Cdebug-assertions=yes";

/// Fuzzes what `words` name: seconds, then targets; all targets where none is named.
///
/// # Errors
/// A word that is neither; a target that was broken, with the file that did it.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let all = targets()?;
    let (seconds, wanted) = match words.split_first() {
        Some((first, rest)) if first.bytes().all(|byte| byte.is_ascii_digit()) => (first.parse()?, rest),
        _ => (DEFAULT_S, words),
    };
    ensure!(seconds > 0, "invalid value '0' for SECONDS: expected at least 1");
    if let Some(unknown) = wanted.iter().find(|word| !all.iter().any(|target| target == *word)) {
        bail!("invalid value '{unknown}' for TARGET: expected {}", all.join(", "));
    }
    let target = release_build::target_folder()?.join("fuzz");
    let folder = build(&target)?;
    let found = target.join("found");
    let chosen = all.iter().filter(|target| wanted.is_empty() || wanted.contains(&target.as_str()));
    let mut broken = Vec::new();
    for target in chosen {
        println!("==> {target}, {seconds} s");
        if !fuzz(&folder, &found.join(target), target, seconds)? {
            broken.push(target.as_str());
        }
    }
    ensure!(
        broken.is_empty(),
        "broken: {} (what did it is named above, and lies in {})",
        broken.join(", "),
        found.display()
    );
    Ok(())
}

/// The names of all targets, from the files that define them.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = package().join("targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn package() -> PathBuf {
    top().join("crates/brunt-fuzz")
}

/// The compiler's own platform.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV does not name its host")
}

/// Builds all targets with coverage; where they lie. Apart, because the flags would else build everything anew each time.
fn build(target: &Path) -> anyhow::Result<PathBuf> {
    // For a named target, so that the flags are for the programs and not for what builds them.
    let host = host()?;
    let arguments = ["--package", "brunt-fuzz", "--features", "targets", "--bins", "--target", &host];
    let variables = [("RUSTFLAGS", COVERAGE), ("CARGO_PROFILE_RELEASE_LTO", "off")];
    release_build::build(target, &arguments, &variables).context("a C++ compiler is needed")?;
    Ok(target.join(host).join("release"))
}

/// False if something broke. What widens the coverage, and what broke something, is written to `grown`.
fn fuzz(folder: &Path, grown: &Path, target: &str, seconds: u64) -> anyhow::Result<bool> {
    std::fs::create_dir_all(grown).with_context(|| format!("cannot make {}", grown.display()))?;
    let status = Command::new(folder.join(target))
        .arg(grown)
        .arg(package().join("corpus").join(target))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_MAX_S}"))
        .arg(format!("-artifact_prefix={}/broken-", grown.display()))
        .args(["-print_final_stats=1", "-verbosity=0"])
        .status()
        .with_context(|| format!("cannot run {target}"))?;
    Ok(status.success())
}
