//! The files of a run: all are there, and each reads as what it is.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// An option that writes a file, and what reads that.
type Output = (&'static str, fn(&str) -> anyhow::Result<()>);

pub(super) const OUTPUTS: [Output; 5] =
    [("--json", json), ("--html", html), ("--csv", csv), ("--ndjson", ndjson), ("--hlog", hlog)];

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

/// Where an option's file lies.
pub(super) fn path(folder: &Path, option: &str) -> String {
    folder.join(format!("soak.{}", &option[2..])).display().to_string()
}

fn json(text: &str) -> anyhow::Result<()> {
    Ok(serde_json::from_str::<Value>(text).map(drop)?)
}

fn html(text: &str) -> anyhow::Result<()> {
    let is_whole = text.to_lowercase().starts_with("<!doctype html") && text.trim_end().ends_with("</html>");
    ensure!(is_whole, "it does not begin and end as a page");
    Ok(())
}

/// A head, then rows of as many columns.
fn csv(text: &str) -> anyhow::Result<()> {
    check_rows(text.lines().filter(|line| !line.starts_with('#')))
}

fn ndjson(text: &str) -> anyhow::Result<()> {
    ensure!(!text.is_empty(), "it is empty");
    text.lines().try_for_each(json)
}

/// Lines of four columns below the notes, beside the tag of a kind.
fn hlog(text: &str) -> anyhow::Result<()> {
    ensure!(text.starts_with("#["), "it does not begin as a log of histograms");
    check_rows(text.lines().filter(|line| !line.starts_with('#')).map(without_tag))
}

fn without_tag(line: &str) -> &str {
    line.strip_prefix("Tag=").and_then(|rest| rest.split_once(',')).map_or(line, |(_, rest)| rest)
}

fn check_rows<'a>(mut lines: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    let columns = |line: &str| line.split(',').count();
    let head = columns(lines.next().context("it is empty")?);
    let rows: Vec<&str> = lines.collect();
    ensure!(!rows.is_empty(), "it has no row");
    let odd = rows.iter().find(|row| columns(row) != head);
    ensure!(odd.is_none(), "a row has other columns than the head: {odd:?}");
    Ok(())
}
