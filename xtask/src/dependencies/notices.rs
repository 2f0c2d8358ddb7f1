//! Copyrights and licences of the crates that are linked into the program, as one text.
//!
//! Their own files are quoted, each text once, and of our crates what they have of others in folders. Invariant: a crate of others
//! without such a file has the text that SPDX has of one of its licences.

use super::{Dependency, Graph, System};
use anyhow::Context;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// How names of files with copyrights and licences begin, in upper case.
const BEGINNINGS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
const RULE: &str = "--------------------------------------------------------------------------------";

/// The text about the program and about what is in its package beside it.
///
/// # Errors
/// A file cannot be read, or a crate has neither a file nor a licence that SPDX has a text of.
pub(crate) fn notices(graph: &Graph, systems: &[System]) -> anyhow::Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut written = "brunt is built of these libraries:\n\n".to_owned();
    for dependency in graph.of_program() {
        let name = dependency.to_string();
        let found = texts_of(dependency).with_context(|| name.clone())?;
        if dependency.is_ours() && !found.is_empty() {
            writeln!(written, "  {name}: files of others")?;
        } else if !dependency.is_ours() {
            writeln!(written, "  {name}: {}", dependency.licence)?;
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for System { name, version, licence, notice, .. } in systems {
        writeln!(written, "  {name} {version}: {licence}")?;
        texts.entry(notice.clone()).or_default().push(format!("{name} {version}"));
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
        let path = entry?.path();
        if path.is_dir() || !dependency.is_ours() {
            read_texts(&path, &mut texts)?;
        }
    }
    if texts.is_empty() && !dependency.is_ours() {
        let expression = spdx::Expression::parse(&dependency.licence)?;
        let mut licences = expression.requirements().filter_map(|licence| licence.req.license.id());
        texts.push(
            licences.next().context("neither a file of its licence nor an SPDX licence")?.text().to_owned(),
        );
    }
    Ok(texts)
}

/// Reads a file that has copyrights or licences by its name, or all those below a folder.
fn read_texts(path: &Path, texts: &mut Vec<String>) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            read_texts(&entry?.path(), texts)?;
        }
    } else if BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !name.ends_with(".RS") {
        texts.push(fs::read_to_string(path)?.replace('\r', "").trim_end().to_owned());
    }
    Ok(())
}

/// What a page of copyrights says, without its markup.
pub(super) fn text_of_page(page: &str) -> String {
    let mut text = String::new();
    for (index, piece) in page.split('<').enumerate() {
        text.push_str(if index == 0 { piece } else { piece.split_once('>').map_or("", |(_, words)| words) });
    }
    for (entity, sign) in [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&amp;", "&")] {
        text = text.replace(entity, sign);
    }
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::graph;
    use super::*;

    #[test]
    fn texts_are_those_of_files_in_all_folders() {
        let rows: [(&[&str], &str, &[&str]); 4] = [
            (&["LICENSE-MIT", "src/lib.rs"], "MIT", &["LICENSE-MIT"]),
            (
                &["LICENSE", "third_party/fiat/COPYING", "src/a/notice.txt", "src/license.rs"],
                "MIT",
                &["LICENSE", "src/a/notice.txt", "third_party/fiat/COPYING"],
            ),
            (&["src/lib.rs"], "ISC", &["<text of SPDX>"]),
            (&["README.md"], "Zlib OR MIT", &["<text of SPDX>"]),
        ];
        for (files, licence, expected) in rows {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, file).unwrap();
            }
            let graph =
                graph(&[("brunt", "0.2.0", "MIT"), ("a", "1.0.0", licence)], "0 brunt v0.2.0\n1 a v1.0.0\n");
            let dependency = Dependency { folder: folder.path().to_owned(), ..graph.of_program()[1].clone() };
            let mut texts = texts_of(&dependency).unwrap();
            texts.sort();
            for text in &mut texts {
                if text.contains("Permission") || text.contains("warranty") {
                    "<text of SPDX>".clone_into(text);
                }
            }
            assert_eq!(texts, expected, "{files:?}");
        }
    }

    #[test]
    fn pages_are_read_without_markup() {
        let page =
            "<html>\n<h1>Notices</h1>\n\n  <p><b>Authors:</b> A &#60;a@b&#62;</p>\n<pre>one\n two</pre>";
        assert_eq!(text_of_page(page), "Notices\n  Authors: A <a@b>\none\n two");
    }
}
