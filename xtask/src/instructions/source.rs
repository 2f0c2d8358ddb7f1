//! What the count depends on in this tree, as one number: while it is that of the baseline, there is nothing to count.
//!
//! Of contents and not of commits, so that it says the same in a shallow clone, in a tree with changes that are not committed, and
//! behind a rebase. Not of the compiler and the machine: these change the count, but not the program. Invariant: any byte of any
//! of these files changes it.

use crate::top;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// The crates that a request goes through, and the one that counts.
const CRATES: [&str; 6] =
    ["brunt-bench", "brunt-engine", "brunt-plan", "brunt-proto", "brunt-stats", "brunt-workload"];

/// The key of the digest in the baseline's text.
pub(super) const KEY: &str = "source";
/// The file of the baseline, which lies in one of these crates.
pub(super) const BASELINE: &str = "crates/brunt-bench/baseline.toml";

/// The digest of these crates and of the baseline's numbers.
///
/// # Errors
/// A file cannot be read.
pub(super) fn digest(baseline: &str) -> anyhow::Result<String> {
    let mut paths = Vec::new();
    for name in CRATES {
        collect(&top().join("crates").join(name), &mut paths)?;
    }
    paths.retain(|path| *path != top().join(BASELINE));
    paths.sort();
    let mut digest = Digest::new();
    for path in paths {
        let content = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(top())?.to_string_lossy().into_owned();
        digest.add(name.as_bytes()).add(&content);
    }
    for line in baseline.lines().filter(|line| !line.starts_with(KEY)) {
        digest.add(line.as_bytes());
    }
    Ok(digest.text())
}

/// All files below a folder.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// FNV-1a of 64 bits (draft-eastlake-fnv): no file is made to collide. Each piece is followed by its length, so that no byte moves
/// from one to the next unseen.
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, piece: &[u8]) -> &mut Self {
        for byte in piece.iter().chain(&(piece.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        self
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_depend_on_bytes_and_boundaries() {
        let of = |pieces: &[&str]| {
            let mut digest = Digest::new();
            pieces.iter().for_each(|piece| {
                digest.add(piece.as_bytes());
            });
            digest.text()
        };
        let all = [of(&["ab", "c"]), of(&["a", "bc"]), of(&["ab", "d"]), of(&["abc"]), of(&[])];
        for (index, digest) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|other| other == digest), Some(index), "{all:?}");
        }
    }

    #[test]
    fn digests_cover_baseline_numbers_but_not_the_digest() {
        let text =
            |source: &str, total: &str| format!("source = \"{source}\"\n[\"16x1\"]\ntotal = {total}\n");
        assert_eq!(digest(&text("1", "7.0")).unwrap(), digest(&text("2", "7.0")).unwrap());
        assert_ne!(digest(&text("1", "7.0")).unwrap(), digest(&text("1", "8.0")).unwrap());
    }
}
