//! The files of a run: all are there, and each reads as what it is.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// An option that writes a file, and what reads that.
type Output = (&'static str, fn(&str) -> anyhow::Result<()>);

pub(super) const OUTPUTS: [Output; 5] =
    [("--json", json), ("--html", html), ("--csv", rows), ("--ndjson", ndjson), ("--hlog", hlog)];

/// Reads every file.
///
/// # Errors
/// The first that is missing or wrong, by name.
pub(super) fn check(folder: &Path) -> anyhow::Result<()> {
    for (option, read) in OUTPUTS {
        let path = path(folder, option);
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        read(&text).with_context(|| path)?;
    }
    Ok(())
}

/// The path of an option's file.
pub(super) fn path(folder: &Path, option: &str) -> String {
    folder.join(format!("soak.{}", &option[2..])).display().to_string()
}

fn json(text: &str) -> anyhow::Result<()> {
    Ok(serde_json::from_str::<Value>(text).map(drop)?)
}

fn ndjson(text: &str) -> anyhow::Result<()> {
    ensure!(!text.is_empty(), "it is empty");
    text.lines().try_for_each(json)
}

fn html(text: &str) -> anyhow::Result<()> {
    let is_whole = text.to_lowercase().starts_with("<!doctype html") && text.trim_end().ends_with("</html>");
    ensure!(is_whole, "it does not begin and end as a page");
    Ok(())
}

fn hlog(text: &str) -> anyhow::Result<()> {
    ensure!(text.starts_with("#["), "it does not begin as a log of histograms");
    rows(text)
}

/// A head below notes, then rows of as many columns, beside the tag that logs of histograms give the rows of a kind.
fn rows(text: &str) -> anyhow::Result<()> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut columns = lines.map(|line| line.split(',').filter(|cell| !cell.starts_with("Tag=")).count());
    let head = columns.next().context("it has no head")?;
    let rows: Vec<usize> = columns.collect();
    ensure!(!rows.is_empty(), "it has no row");
    ensure!(rows.iter().all(|count| *count == head), "a row has other columns than the head: {rows:?}");
    Ok(())
}
