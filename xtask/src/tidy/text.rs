//! Rules about any file: size, unfinished marks, and words that tie the tree to one machine.

use super::{File, Finding};

/// Large files stay out of history; what is needed and large is generated.
const FILE_BYTES_MAX: u64 = 512 * 1024;

/// Marks of unfinished work. Put together here, so that this file does not break its own rule.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Folders that exist on one machine only.
const PRIVATE_FOLDERS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Hosts that packages come from. Which one a build asks is the business of the machine that builds.
const REGISTRY_HOSTS: [&str; 4] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("npmjs", ".org"),
    concat!("deb.debian", ".org"),
];

/// The only source that the lock file may name, with the word that opens the line.
const LOCK_SOURCE: &str = concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\"");

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(size(file));
        for (index, line) in file.text().lines().enumerate() {
            let found = if file.name() == "Cargo.lock" { lock_line(line) } else { text_line(file, line) };
            findings.extend(
                found.map(|(rule, message, remedy)| Finding::new(file, index + 1, rule, message, remedy)),
            );
        }
    }
    findings
}

type Found = (&'static str, String, &'static str);

fn size(file: &File) -> Option<Finding> {
    (file.size > FILE_BYTES_MAX).then(|| {
        let message = format!("{} KiB, at most {} KiB", file.size / 1024, FILE_BYTES_MAX / 1024);
        Finding::new(file, 1, "size", message, "generate it, or cut it down to what the test needs")
    })
}

fn lock_line(line: &str) -> Option<Found> {
    let foreign = line.starts_with("source = ") && line != LOCK_SOURCE;
    foreign.then(|| {
        let remedy =
            "take the dependency from the public registry; keep mirrors in your own cargo configuration";
        ("registry", format!("the lock file names another registry: {line}"), remedy)
    })
}

fn text_line(file: &File, line: &str) -> Option<Found> {
    let unfinished = ["rs", "toml", "yml", "sh"].iter().any(|end| file.path.ends_with(&format!(".{end}")));
    if let Some(mark) = MARKS.iter().find(|mark| unfinished && has_word(line, mark)) {
        let remedy = "do it now, or write an issue; a comment says why the code is as it is";
        return Some(("left-over", format!("{mark} is left over"), remedy));
    }
    if let Some(folder) = PRIVATE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
        let remedy = "use a path from the top of the tree, or a temporary directory";
        return Some(("machine", format!("a path below {folder} exists on one machine only"), remedy));
    }
    if let Some(host) = REGISTRY_HOSTS.iter().find(|host| has_word(line, host)) {
        let remedy =
            "name the package, not the host; where packages come from is configured outside the tree";
        return Some(("registry", format!("{host} is named"), remedy));
    }
    None
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Does the word occur with no letter, digit or underscore on either side?
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word))
}

/// Does an absolute path begin here? `docs/home/` and `https://host/home/` do not.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        !line[..at].ends_with(|before| is_word(before) || matches!(before, '.' | '-' | '/' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::check_rule;

    /// Checks one line in one file; `~` marks where the made-up text is cut for this file's own sake.
    fn check_line(path: &str, line: &str, expected: &[&str]) {
        check_rule(check, &[(path, &line.replace('~', ""))], expected);
    }

    #[test]
    fn unfinished_marks_are_rejected() {
        check_line("a.rs", "// TO~DO: later", &["left-over a.rs:1"]);
        check_line("a.toml", "x = 1 # FIX~ME", &["left-over a.toml:1"]);
        check_line("a.rs", "const TO~DOS: u8 = 1;", &[]);
    }

    #[test]
    fn private_folders_are_rejected() {
        check_line("a.md", "see /ho~me/someone/x", &["machine a.md:1"]);
        check_line("a.rs", "let path = \"/wo~rk/x\";", &["machine a.rs:1"]);
        check_line("a.md", "https://example.org/ho~me/x and docs/wo~rk/x", &[]);
    }

    #[test]
    fn other_registries_are_rejected() {
        check_line("README.md", "from https://index.crates~.io/", &["registry README.md:1"]);
        let lock = |host: &str| format!("[[package]]\nsource = \"registry+https://{host}\"\n");
        check_line("Cargo.lock", &lock("github.com/rust-lang/crates~.io-index"), &[]);
        check_line("Cargo.lock", &lock("mirror.example/index"), &["registry Cargo.lock:2"]);
    }

    #[test]
    fn large_files_are_rejected() {
        let sized = |size| [File { path: "a.bin".to_owned(), size, text: None }];
        assert_eq!(check(&sized(FILE_BYTES_MAX)), []);
        assert_eq!(check(&sized(FILE_BYTES_MAX + 1))[0].rule, "size");
    }
}
