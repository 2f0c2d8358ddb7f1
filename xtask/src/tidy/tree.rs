//! The files under judgement: all that git tracks, and all that it would track.
//!
//! Ignored files (build output, captures) are left out. Untracked ones are included, so that a file is
//! judged before it is committed and not after.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// A file of the tree.
pub(super) struct File {
    /// From the top of the tree, with `/`.
    pub(super) path: String,
    /// In bytes.
    pub(super) size: u64,
    /// `None` where the bytes are not UTF-8.
    pub(super) text: Option<String>,
}

impl File {
    #[cfg(test)]
    pub(super) fn from_text(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), size: text.len() as u64, text: Some(text.to_owned()) }
    }

    /// The text, empty where the file is binary.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("")
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The crate that a path in `crates/` belongs to.
    pub(super) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

/// Reads the tree below `top`.
///
/// # Errors
/// When git does not run there, or a file cannot be read.
pub(super) fn read(top: &Path) -> anyhow::Result<Vec<File>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(top)
        .output()
        .context("cannot run git, which says what belongs to the tree")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in listing.split_terminator('\0') {
        let full = top.join(path);
        // Tracked but deleted, or a link to a folder: nothing to judge.
        if !full.is_file() {
            continue;
        }
        let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        files.push(File {
            path: path.to_owned(),
            size: bytes.len() as u64,
            text: String::from_utf8(bytes).ok(),
        });
    }
    Ok(files)
}
