//! Copyrights and licences of the crates that are linked into the program, as one text.
//!
//! Their own files are quoted, each text once. Invariant: a crate without such a file has the text that SPDX has of one of its licences.

use super::{Dependency, Graph};
use anyhow::Context;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// How names of files with copyrights and licences begin, in upper case.
const BEGINNINGS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
const RULE: &str = "--------------------------------------------------------------------------------";

/// The text.
///
/// # Errors
/// A file cannot be read, or a crate has neither a file nor a licence that SPDX has a text of.
pub(crate) fn notices(graph: &Graph) -> anyhow::Result<String> {
    let linked = graph.of_program();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut written = "brunt is built of these libraries:\n\n".to_owned();
    for dependency in &linked[1..] {
        let name = format!("{} {}", dependency.name, dependency.version);
        writeln!(written, "  {name}: {}", dependency.licence)?;
        for text in texts_of(dependency).with_context(|| name.clone())? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut texts: Vec<_> = texts.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    for (names, text) in texts {
        write!(written, "\n{RULE}\n{}\n{RULE}\n\n{text}\n", names.join(", "))?;
    }
    Ok(written)
}

fn texts_of(dependency: &Dependency) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(&dependency.folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
            texts.push(fs::read_to_string(entry.path())?.replace('\r', "").trim_end().to_owned());
        }
    }
    if texts.is_empty() {
        let expression = spdx::Expression::parse(&dependency.licence)?;
        let mut licences = expression.requirements().filter_map(|licence| licence.req.license.id());
        texts.push(
            licences.next().context("neither a file of its licence nor an SPDX licence")?.text().to_owned(),
        );
    }
    Ok(texts)
}
