//! Rules about documents: links and the source files that they name exist.
//!
//! Invariant: a link is checked with its heading, a file in backquotes by the end of its path. Addresses of the web are not checked.

use super::{File, Finding};

/// Lists files as they were called when it was written.
const HISTORY: &str = "CHANGELOG.md";
/// A placeholder for the folder of a tool in recipes.
const PLACEHOLDER: &str = "/TOOL/";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    documents.flat_map(|file| check_document(file, files)).collect()
}

fn check_document(file: &File, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text().lines().enumerate() {
        let mut find = |rule, message| findings.push(Finding::new(file, index + 1, rule, message));
        for link in links(line).filter(|link| !is_reached(file, link, files)) {
            find("link", format!("'{link}' leads nowhere: name a file of the tree and a heading in it"));
        }
        for name in source_names(line).filter(|_| file.name() != HISTORY) {
            if !files.iter().any(|other| is_called(&other.path, name)) {
                find("path", format!("there is no '{name}': name the file as it is called now"));
            }
        }
    }
    findings
}

/// Targets of links within the tree.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|behind| Some(behind.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.contains(' '))
}

/// Names of Rust files in backquotes.
fn source_names(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| name.ends_with(".rs") && !name.contains(' ') && !name.contains(PLACEHOLDER);
    line.split('`').skip(1).step_by(2).filter(is_name)
}

fn is_called(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Does the target of a link in this file exist, with its heading?
fn is_reached(file: &File, target: &str, files: &[File]) -> bool {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.path.clone() } else { resolved(&file.path, path) };
    match files.iter().find(|other| other.path == path) {
        Some(_) if heading.is_empty() => true,
        Some(other) => headings(other.text()).any(|other| other == heading),
        // A folder.
        None => heading.is_empty() && files.iter().any(|other| other.path.starts_with(&format!("{path}/"))),
    }
}

/// A path as seen from the folder of `from`.
fn resolved(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The headings of a document as links write them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(move |line| anchor(line.trim_start_matches('#').trim()))
}

#[cfg(test)]
mod tests {
    use crate::tidy::check_rule;

    #[test]
    fn links_lead_to_files_and_headings() {
        let pages = ("docs/b.md", "# B\n\n## Two words: `x`, and more\n");
        let text = "[b](docs/b.md) [top](#a-b)\n[web](https://x.org/#y)\n[folder](docs)\n# A b\n[c](docs/c.md)\n\
                    [x](docs/b.md#two-words-x-and-more)\n[y](docs/b.md#three)\n";
        check_rule("link", &[("README.md", text), pages], &["README.md:5", "README.md:7"]);
        check_rule("link", &[("docs/a.md", "[r](../README.md) [b](b.md)\n"), ("README.md", ""), pages], &[]);
    }

    #[test]
    fn source_files_in_documents_exist() {
        let source = ("crates/a/src/one/two.rs", "");
        let text =
            "`two.rs`, `one/two.rs`, `a/src/one/two.rs`\n`wo.rs`\n`one/TOOL/x.rs` in `two.rs one.rs`\n";
        check_rule("path", &[("ARCHITECTURE.md", text), source], &["ARCHITECTURE.md:2"]);
        check_rule("path", &[("CHANGELOG.md", "`gone.rs`"), source], &[]);
    }
}
