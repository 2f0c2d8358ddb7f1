//! `cargo xtask tidy`: the house rules that a program can check, each with its place and its remedy.
//!
//! It changes nothing. What clippy, rustfmt or the compiler can check is left to them: length of functions, unsafe code,
//! sleeps, unfinished macros. Invariant: a rule about single lines is a row of [`LINE_RULES`].

mod circles;
mod documents;
mod manifests;
pub(crate) mod tree;

use crate::dependencies;
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;
use tree::File;

/// Large files stay out of history; what is needed and large is generated.
const FILE_BYTES_MAX: usize = 512 * 1024;

/// Names that do not tell what is inside.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "misc"];

/// A pattern that no line of some files may match, as `git grep --extended-regexp` reads them.
struct LineRule {
    name: &'static str,
    pattern: &'static str,
    /// Lines that match this one, too, are allowed.
    except: Option<&'static str>,
    paths: &'static [&'static str],
    remedy: &'static str,
}

/// Brackets within words keep this file from breaking its own rules.
const LINE_RULES: [LineRule; 6] = [
    LineRule {
        name: "left-over",
        pattern: r"\b(TO[D]O|FIX[M]E)\b",
        except: None,
        paths: &["*.rs", "*.toml", "*.yml", "*.sh"],
        remedy: "do it now, or write an issue; a comment says why the code is as it is",
    },
    LineRule {
        name: "machine",
        pattern: r"(^|[^[:alnum:]_./}-])/(ho[m]e|ro[o]t|wo[r]k|Us[e]rs)/",
        except: None,
        paths: &["."],
        remedy: "the path exists on one machine: use one from the top of the tree, or a temporary directory",
    },
    LineRule {
        name: "registry",
        pattern: r"\b(crates[.]io|pypi[.]org|npmjs[.]org|deb[.]debian[.]org)\b",
        except: None,
        paths: &[".", ":!Cargo.lock"],
        remedy: "name the package, not the host; where packages come from is configured outside the tree",
    },
    LineRule {
        name: "registry",
        pattern: "^source = ",
        except: Some(r#"= "registry\+https://github.com/rust-lang/crates[.]io-index"$"#),
        paths: &["Cargo.lock"],
        remedy: "take the dependency from the public registry; keep mirrors in your own cargo configuration",
    },
    LineRule {
        name: "example",
        pattern: "^ *//[/!] *```",
        except: None,
        paths: &["*.rs"],
        remedy: "no test runs an example in documentation: make a test of it, or words",
    },
    LineRule {
        name: "sample time",
        pattern: r"\b(intended|picked|sent|polled|first_byte|done)_ns( as [iu]64)?\)* *(-|\.([a-z]+_sub|abs_diff)\() *[&(*]*([a-z_]+[.])*(intended|picked|sent|polled|first_byte|done)_ns\b",
        except: None,
        paths: &[
            "crates/*.rs",
            ":!crates/brunt-stats/src/sample.rs",
            ":!crates/brunt-engine/src/simulated",
            ":!*/tests/*",
            ":!*/tests.rs",
        ],
        remedy: "call the method of `Times` in brunt-stats/src/sample.rs, or add one there with its formula",
    },
];

/// A rule broken at a place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    rule: &'static str,
    /// What is wrong and what to do.
    message: String,
}

impl Finding {
    fn new(file: &File, line: usize, rule: &'static str, message: String) -> Self {
        Self { path: file.path.clone(), line, rule, message }
    }
}

/// Checks every file that git tracks, or would.
///
/// # Errors
/// Rules are broken; what and where is printed before.
pub(crate) fn run() -> anyhow::Result<()> {
    let findings = check(crate::top())?;
    for Finding { path, line, rule, message } in &findings {
        println!("{path}:{line}: [{rule}] {message}");
    }
    ensure!(findings.is_empty(), "places that are not tidy: {}", findings.len());
    dependencies::check()
}

fn check(top: &Path) -> anyhow::Result<Vec<Finding>> {
    let files = tree::read(top)?;
    let mut findings: Vec<Finding> = files.iter().flat_map(check_file).collect();
    for rule in [circles::check, documents::check, manifests::check] {
        findings.extend(rule(&files));
    }
    for rule in &LINE_RULES {
        findings.extend(rule.check(top)?);
    }
    findings.sort();
    Ok(findings)
}

fn check_file(file: &File) -> Vec<Finding> {
    let is_rust = file.path.ends_with(".rs");
    let stem = |part: &str| part.trim_end_matches(".rs").to_owned();
    let has_empty_name = file.path.split('/').any(|part| EMPTY_NAMES.contains(&stem(part).as_str()));
    let [name, opening, size] = [
        (is_rust && has_empty_name, "name", "a name for everything: name the file for the one noun it holds"),
        (
            is_rust && !file.text().trim_start().starts_with("//!"),
            "opening",
            "no header: open with a `//!` paragraph, what the file does and the invariant it keeps",
        ),
        (
            file.bytes.len() > FILE_BYTES_MAX,
            "size",
            "more than 512 KiB: generate it, or cut it down to what the test needs",
        ),
    ];
    let found = [name, opening, size].into_iter().filter(|(is_broken, ..)| *is_broken);
    found.map(|(_, rule, message)| Finding::new(file, 1, rule, message.to_owned())).collect()
}

impl LineRule {
    fn check(&self, top: &Path) -> anyhow::Result<Vec<Finding>> {
        let mut git = Command::new("git");
        git.args(["grep", "-nIE", "--no-color", "--untracked", "-e", self.pattern]).current_dir(top);
        git.args(self.except.iter().flat_map(|except| ["--and", "--not", "-e", *except]));
        let output = git.arg("--").args(self.paths).output().context("cannot run git")?;
        // 1: no line matches.
        let is_searched = matches!(output.status.code(), Some(0 | 1));
        ensure!(is_searched, "git grep: {}", String::from_utf8_lossy(&output.stderr).trim());
        let finding = |found: &str| {
            let mut parts = found.splitn(3, ':');
            let (path, line, text) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
            let message = format!("{}\n    {}", self.remedy, text.trim());
            Some(Finding { path: path.to_owned(), line, rule: self.name, message })
        };
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(finding).collect())
    }
}

/// Checks that `rule` finds in a tree of `files` (path, text) just the `expected` places, each as `path:line`.
#[cfg(test)]
fn check_rule(rule: &str, files: &[(&str, &str)], expected: &[&str]) {
    let top = tempfile::tempdir().unwrap();
    assert!(Command::new("git").args(["init", "--quiet"]).current_dir(&top).status().unwrap().success());
    for (path, text) in files {
        let path = top.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let found = check(top.path()).unwrap();
    let found = found.iter().filter(|finding| finding.rule == rule);
    let places: Vec<String> = found.map(|finding| format!("{}:{}", finding.path, finding.line)).collect();
    assert_eq!(places, expected, "{rule}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a made-up file; `! ` is before those that break the rule, `~` where a text is cut for this file's own sake.
    fn check_lines(rule: &str, path: &str, lines: &str) {
        let lines: Vec<&str> = lines.lines().collect();
        let text: Vec<String> =
            lines.iter().map(|line| line.strip_prefix("! ").unwrap_or(line).replace('~', "")).collect();
        let broken = lines.iter().enumerate().filter(|(_, line)| line.starts_with("! "));
        let places: Vec<String> = broken.map(|(index, _)| format!("{path}:{}", index + 1)).collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        check_rule(rule, &[(path, &text.join("\n"))], &places);
    }

    #[test]
    fn lines_that_break_a_rule_are_found() {
        check_lines("left-over", "a.rs", "! // TO~DO: later\n! x = 1 # FIX~ME\nconst TO~DOS: u8 = 1;");
        let folders = "! see /ho~me/someone/x\n! let path = \"/wo~rk/x\";\nhttps://example.org/ho~me/x and docs/wo~rk/x";
        check_lines("machine", "a.md", folders);
        check_lines("registry", "README.md", "! from https://index.crates~.io/");
        let sources = "source = \"registry+https://github.com/rust-lang/crates~.io-index\"\n\
                       ! source = \"registry+https://mirror.example/index\"";
        check_lines("registry", "Cargo.lock", sources);
        check_lines("example", "a.rs", "//! A.\n! //! ~```\n!     /// ~```ignore\n/// `f` and \"```\"");
        let times = "\
! times.done_ns - times.sent_ns
! (self.done_ns as i64) - (entry.intended_ns as i64)
! times.sent_ns.saturating_sub(times.intended_ns)
! a.sent_ns.abs_diff(b.polled_ns)
now_ns - times.sent_ns
times.done_ns - window.start_ns
times.sent_ns + plan.timeout_ns
|sent_ns: u64| -> u64 { done_ns }
f(done_ns, -1)";
        check_lines("sample time", "crates/brunt-engine/src/a.rs", times);
        check_lines("sample time", "crates/brunt-stats/src/sample.rs", "a.done_ns - a.sent_ns");
    }

    #[test]
    fn files_open_with_a_header() {
        let files =
            [("a.rs", "\n//! Runs.\nfn f() {}"), ("b.rs", "\n// Runs.\n"), ("c.rs", ""), ("d.md", "# brunt")];
        check_rule("opening", &files, &["b.rs:1", "c.rs:1"]);
    }

    #[test]
    fn empty_names_are_rejected() {
        let paths = ["commonwealth.rs", "src/utils.rs", "tests/common/server.rs"];
        check_rule(
            "name",
            &paths.map(|path| (path, "//! A.")),
            &["src/utils.rs:1", "tests/common/server.rs:1"],
        );
    }

    #[test]
    fn large_files_are_rejected() {
        let texts = [FILE_BYTES_MAX, FILE_BYTES_MAX + 1].map(|size| " ".repeat(size));
        check_rule("size", &[("a.txt", &texts[0]), ("b.txt", &texts[1])], &["b.txt:1"]);
    }
}
