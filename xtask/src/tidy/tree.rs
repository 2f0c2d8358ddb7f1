//! The files of the source tree: all that git tracks, and all that it would track.
//!
//! Ignored files (build output, captures) are left out. Untracked ones are read: a file is judged before it is committed.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// A file of the tree.
pub(crate) struct File {
    /// From the top of the tree, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// The text, empty if the file is binary.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or("")
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Reads the tree below `top`.
///
/// # Errors
/// Git does not run there, or a file cannot be read.
pub(crate) fn read(top: &Path) -> anyhow::Result<Vec<File>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(top);
    let output = git.output().context("cannot run git, which lists the files of the tree")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    // Git lists untracked files first; a file has its place whether it is tracked or not.
    let mut paths: Vec<&str> = listing.split_terminator('\0').collect();
    paths.sort_unstable();
    // A file that is tracked but deleted and a link to a folder have no content.
    paths
        .into_iter()
        .filter(|path| top.join(path).is_file())
        .map(|path| {
            let bytes = std::fs::read(top.join(path)).with_context(|| format!("cannot read {path}"))?;
            Ok(File { path: path.to_owned(), bytes })
        })
        .collect()
}
