//! `cargo xtask tidy`: the house rules that a program can check, each with its place and its remedy.
//!
//! Reads files and judges them; it changes nothing. A rule is a pure function from files to findings, so that its tests
//! are small made-up files. What clippy, rustfmt or the compiler can check is left to them.

mod circles;
mod documents;
mod layering;
mod layers;
mod manifest;
mod rust;
mod source;
mod text;
mod tree;

use anyhow::bail;
use std::fmt;
use tree::File;

/// A rule broken at a place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    rule: &'static str,
    message: String,
    remedy: &'static str,
}

impl Finding {
    fn new(file: &File, line: usize, rule: &'static str, message: String, remedy: &'static str) -> Self {
        Self { path: file.path.clone(), line, rule, message, remedy }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, message, remedy } = self;
        write!(formatter, "{path}:{line}: [{rule}] {message}\n    {remedy}")
    }
}

/// Checks every file that git tracks, or would.
///
/// # Errors
/// When rules are broken; what and where is printed before.
pub(crate) fn run() -> anyhow::Result<()> {
    let files = tree::read(crate::top())?;
    let findings = check(&files);
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("1 place is not tidy"),
        count => bail!("{count} places are not tidy"),
    }
}

fn check(files: &[File]) -> Vec<Finding> {
    let rules =
        [circles::check, documents::check, layering::check, manifest::check, source::check, text::check];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(files)).collect();
    findings.sort();
    findings
}

/// Checks that `rule` finds in `files` (path, text) just the `expected` places, each as `rule path:line`.
#[cfg(test)]
fn check_rule(rule: fn(&[File]) -> Vec<Finding>, files: &[(&str, &str)], expected: &[&str]) {
    let files: Vec<File> = files.iter().map(|(path, text)| File::from_text(path, text)).collect();
    let mut found = rule(&files);
    found.sort();
    let places: Vec<String> =
        found.iter().map(|finding| format!("{} {}:{}", finding.rule, finding.path, finding.line)).collect();
    assert_eq!(places, expected, "{found:#?}");
}
