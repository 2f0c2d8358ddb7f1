//! Rules about Rust source: how a file opens, what it is called, what may be in it.

use super::rust::{self, Token, reads};
use super::{File, Finding};

/// A function fits a screen, with some room for long matches.
const FUNCTION_LINES_MAX: usize = 90;

/// The six times of a sample.
const SAMPLE_TIMES: [&str; 6] =
    ["intended_ns", "picked_ns", "sent_ns", "polled_ns", "first_byte_ns", "done_ns"];

/// The one file that may subtract them.
const SUBTRACTING_FILE: &str = "crates/brunt-stats/src/sample.rs";

/// The one crate with unsafe code.
const UNSAFE_CRATE: &str = "brunt-engine";

/// The one other place for it: the floor makes the system calls of the engine, and shares nothing with it. Its crate
/// denies unsafe code where the others forbid it, and that folder's files take the lint back one by one.
const UNSAFE_FOLDER: &str = "crates/brunt-bench/src/syscall_client/";

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "misc"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.is_rust()).flat_map(check_file).collect()
}

/// A source file, taken apart once for all rules.
struct Source<'a> {
    file: &'a File,
    tokens: Vec<Token<'a>>,
    test_lines: Vec<std::ops::RangeInclusive<usize>>,
    is_test_file: bool,
}

impl<'a> Source<'a> {
    fn new(file: &'a File) -> Self {
        let tokens = rust::tokens(file.text());
        let test_lines = rust::test_lines(&tokens);
        let folders = ["/tests/", "/benches/"];
        let is_test_file =
            folders.iter().any(|folder| file.path.contains(folder)) || file.name() == "tests.rs";
        Self { file, tokens, test_lines, is_test_file }
    }

    fn is_test(&self, line: usize) -> bool {
        self.is_test_file || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    fn finding(&self, rule: &'static str, line: usize, message: String, remedy: &'static str) -> Finding {
        Finding::new(self.file, line, rule, message, remedy)
    }
}

fn check_file(file: &File) -> Vec<Finding> {
    let source = Source::new(file);
    let mut findings = Vec::new();
    findings.extend(file_name(&source));
    findings.extend(opening(&source));
    findings.extend(forbidden_unsafe(&source));
    for at in 0..source.tokens.len() {
        findings.extend(forbidden_tokens(&source, at));
        findings.extend(subtraction(&source, at));
    }
    findings.extend(long_functions(&source));
    findings.extend(examples(&source));
    findings
}

/// Code in documentation, which nothing runs: each crate with such code would be one more program to build.
fn examples(source: &Source<'_>) -> Vec<Finding> {
    let is_fence = |line: &str| {
        let text = line.trim_start();
        let text = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        text.is_some_and(|text| text.trim_start().starts_with("```"))
    };
    let lines = source.file.text().lines().enumerate().filter(|(_, line)| is_fence(line));
    let finding = |(index, _)| {
        let remedy = "make a test of it, or words";
        source.finding("example", index + 1, "no test runs an example in documentation".to_owned(), remedy)
    };
    lines.step_by(2).map(finding).collect()
}

fn file_name(source: &Source<'_>) -> Option<Finding> {
    let stem = |part: &str| part.strip_suffix(".rs").unwrap_or(part).to_owned();
    let name = source.file.path.split('/').map(stem).find(|part| EMPTY_NAMES.contains(&part.as_str()))?;
    let remedy = "name it for the one noun it holds, or move each piece to the file whose noun it serves";
    Some(source.finding("name", 1, format!("'{name}' says nothing about what is inside"), remedy))
}

fn opening(source: &Source<'_>) -> Option<Finding> {
    let mut lines = source.file.text().lines().enumerate();
    let first = lines.find(|(_, line)| !line.trim().is_empty());
    let (index, text) = first.unwrap_or_default();
    let remedy = "open with a `//!` paragraph: what this is, what it is not, the invariant it keeps";
    let message = "the file does not say what it is".to_owned();
    (!text.starts_with("//!")).then(|| source.finding("opening", index + 1, message, remedy))
}

/// The root file of every crate but one forbids unsafe code.
fn forbidden_unsafe(source: &Source<'_>) -> Option<Finding> {
    let has_unsafe_folder = UNSAFE_FOLDER.starts_with(source.file.path.trim_end_matches("main.rs"));
    let word = if has_unsafe_folder { "deny" } else { "forbid" };
    let attribute = ["#", "!", "[", word, "(", "unsafe_code", ")", "]"];
    let is_root = source.file.path.ends_with("/src/lib.rs") || source.file.path.ends_with("/src/main.rs");
    if !is_root || source.file.crate_name() == Some(UNSAFE_CRATE) {
        return None;
    }
    let forbids = (0..source.tokens.len()).any(|at| reads(&source.tokens, at, &attribute));
    let remedy = "add `#![forbid(unsafe_code)]` below the opening paragraph";
    (!forbids)
        .then(|| source.finding("unsafe", 1, "the crate does not forbid unsafe code".to_owned(), remedy))
}

fn forbidden_tokens(source: &Source<'_>, at: usize) -> Option<Finding> {
    let tokens = &source.tokens;
    let token = tokens[at];
    let found =
        |rule, message: &str, remedy| Some(source.finding(rule, token.line, message.to_owned(), remedy));
    match token.text {
        "todo" | "unimplemented" | "dbg" if is_macro_call(tokens, at) => {
            found("left-over", &format!("`{}!` is left over", token.text), "finish it, or leave it out")
        }
        "ignore" if reads(tokens, at.saturating_sub(2), &["#", "["]) => {
            found("ignored test", "the test is ignored", "mend it, or delete it: a test passes or is fixed")
        }
        "sleep" if source.is_test(token.line) && at >= 2 && reads(tokens, at - 2, &["thread", "::"]) => {
            found("sleep", "a test sleeps", "wait for the event itself, or pass the time as an argument")
        }
        "unsafe"
            if source.file.crate_name() != Some(UNSAFE_CRATE)
                && !source.file.path.starts_with(UNSAFE_FOLDER) =>
        {
            found("unsafe", "unsafe code outside brunt-engine", "use a safe call, or move it to brunt-engine")
        }
        _ => None,
    }
}

/// `name!(` and its like, but not `name != …`.
fn is_macro_call(tokens: &[Token<'_>], at: usize) -> bool {
    reads(tokens, at + 1, &["!"])
        && tokens.get(at + 2).is_some_and(|token| matches!(token.text, "(" | "[" | "{"))
}

/// Finds `a.sent_ns - b.intended_ns` and its like with `saturating_sub`: both sides must be times of a sample, so that
/// due times, windows and deadlines are left alone.
fn subtraction(source: &Source<'_>, at: usize) -> Option<Finding> {
    let tokens = &source.tokens;
    let line = tokens[at].line;
    let (left, right) = match tokens[at].text {
        "-" => (at.checked_sub(1)?, at + 1),
        "saturating_sub" | "wrapping_sub" | "checked_sub" | "overflowing_sub" | "abs_diff"
            if at >= 2 && tokens[at - 1].text == "." =>
        {
            (at - 2, at + 1)
        }
        _ => return None,
    };
    if source.file.path == SUBTRACTING_FILE || source.is_test(line) {
        return None;
    }
    let (left, right) = (operand_before(tokens, left)?, operand_after(tokens, right)?);
    let both = SAMPLE_TIMES.contains(&left) && SAMPLE_TIMES.contains(&right);
    let remedy = "call the method of `Times` in brunt-stats/src/sample.rs, or add one there with its formula";
    both.then(|| {
        source.finding("sample time", line, format!("{left} minus {right} is computed here"), remedy)
    })
}

/// The last word of the operand that ends at `at`, seen through casts and closing brackets.
fn operand_before<'a>(tokens: &[Token<'a>], mut at: usize) -> Option<&'a str> {
    loop {
        match tokens[at].text {
            ")" => at = at.checked_sub(1)?,
            _ if at >= 2 && tokens[at - 1].text == "as" => at -= 2,
            word => return Some(word),
        }
    }
}

/// The last word of the path that begins at `at`, seen through opening brackets and references.
fn operand_after<'a>(tokens: &[Token<'a>], mut at: usize) -> Option<&'a str> {
    while matches!(tokens.get(at)?.text, "(" | "&" | "*") {
        at += 1;
    }
    while matches!(tokens.get(at + 1).map(|token| token.text), Some("." | "::")) {
        at += 2;
    }
    tokens.get(at).map(|token| token.text)
}

/// Tests are data and may be long tables; product functions may not.
fn long_functions(source: &Source<'_>) -> Vec<Finding> {
    let remedy = "keep the decisions here and move straight-line work into functions of its own";
    rust::functions(&source.tokens)
        .into_iter()
        .filter(|function| !source.is_test(*function.lines.start()))
        .map(|function| (function.lines.clone().count(), function))
        .filter(|(lines, _)| *lines > FUNCTION_LINES_MAX)
        .map(|(lines, function)| {
            let message = format!("'{}' has {lines} lines, at most {FUNCTION_LINES_MAX}", function.name);
            source.finding("long function", *function.lines.start(), message, remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::check_rule;

    fn check_source(path: &str, text: &str, expected: &[&str]) {
        check_rule(check, &[(path, text)], expected);
    }

    #[test]
    fn files_open_with_a_header() {
        check_source("crates/brunt/src/run.rs", "\n//! Runs.\nfn f() {}", &[]);
        check_source("crates/brunt/src/run.rs", "\n// Runs.\n", &["opening crates/brunt/src/run.rs:2"]);
        check_source("crates/brunt/src/run.rs", "", &["opening crates/brunt/src/run.rs:1"]);
        check_source("README.md", "# brunt", &[]);
    }

    #[test]
    fn empty_file_names_are_rejected() {
        for path in ["crates/brunt/src/utils.rs", "crates/brunt/tests/common/server.rs"] {
            check_source(path, "//! Things.", &[&format!("name {path}:1")]);
        }
        check_source("crates/brunt/src/commonwealth.rs", "//! Things.", &[]);
    }

    #[test]
    fn debugging_leftovers_are_rejected() {
        let path = "crates/brunt-proto/src/out.rs";
        check_source(path, "//! A.\nfn f() { todo!() }", &["left-over crates/brunt-proto/src/out.rs:2"]);
        check_source(path, "//! A.\nfn f() {\n dbg!(1); }", &["left-over crates/brunt-proto/src/out.rs:3"]);
        check_source(path, "//! A.\nfn todo() -> bool { x.dbg != \"todo!()\" } // dbg!", &[]);
    }

    #[test]
    fn tests_neither_sleep_nor_are_ignored() {
        let sleep = "//! A.\n#[cfg(test)]\nmod tests {\n fn f() { std::thread::sleep(x); }\n}";
        check_source("crates/brunt/src/a.rs", sleep, &["sleep crates/brunt/src/a.rs:4"]);
        let sleep = "//! A.\nuse std::thread::sleep;";
        check_source("crates/brunt/tests/it/a.rs", sleep, &["sleep crates/brunt/tests/it/a.rs:2"]);
        // Elsewhere clippy forbids it, and an exception there carries its reason.
        check_source("crates/brunt/src/a.rs", sleep, &[]);
        let ignored = "//! A.\n#[test]\n#[ignore = \"slow\"]\nfn f() {}";
        check_source("crates/brunt/tests/it/a.rs", ignored, &["ignored test crates/brunt/tests/it/a.rs:3"]);
    }

    #[test]
    fn documentation_has_no_examples() {
        let text = "//! A.\n//!\n//! ```\n//! f();\n//! ```\nfn f() {\n    /// ```ignore\n    /// ```\n}";
        let path = "crates/brunt/src/a.rs";
        let expected = ["example crates/brunt/src/a.rs:3", "example crates/brunt/src/a.rs:7"];
        check_source(path, text, &expected);
        check_source(path, "//! A.\n/// `f` and \"```\"\nfn f() {}", &[]);
    }

    #[test]
    fn unsafe_code_is_confined() {
        let text = "//! A.\nfn f() { unsafe { g() } }";
        check_source("crates/brunt-engine/src/a.rs", text, &[]);
        check_source("crates/brunt-stats/src/a.rs", text, &["unsafe crates/brunt-stats/src/a.rs:2"]);
        check_source("crates/brunt-stats/src/lib.rs", "//! A.", &["unsafe crates/brunt-stats/src/lib.rs:1"]);
        check_source("crates/brunt-stats/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]", &[]);
        check_source("crates/brunt-engine/src/lib.rs", "//! A.", &[]);
        check_source("crates/brunt-bench/src/syscall_client/a.rs", text, &[]);
        check_source(
            "crates/brunt-bench/src/syscall_client.rs",
            text,
            &["unsafe crates/brunt-bench/src/syscall_client.rs:2"],
        );
        check_source(
            "crates/brunt-bench/src/main.rs",
            "//! A.",
            &["unsafe crates/brunt-bench/src/main.rs:1"],
        );
        check_source("crates/brunt-bench/src/main.rs", "//! A.\n#![deny(unsafe_code)]", &[]);
        check_source(
            "crates/brunt/src/main.rs",
            "//! A.\n#![deny(unsafe_code)]",
            &["unsafe crates/brunt/src/main.rs:1"],
        );
    }

    #[test]
    fn sample_times_are_subtracted_in_one_file() {
        let table = [
            ("times.done_ns - times.sent_ns", true),
            ("(self.done_ns as i64) - (entry.intended_ns as i64)", true),
            ("times.sent_ns.saturating_sub(times.intended_ns)", true),
            ("a.sent_ns\n.abs_diff(b.polled_ns)", true),
            ("now_ns - times.sent_ns", false),
            ("times.done_ns - window.start_ns", false),
            ("times.sent_ns + plan.timeout_ns", false),
            ("|sent_ns: u64| -> u64 { done_ns }", false),
            ("f(done_ns, -1)", false),
        ];
        for (expression, found) in table {
            let text = format!("//! A.\nfn f() {{ {expression}; }}");
            let files = [File::from_text("crates/brunt-engine/src/a.rs", &text)];
            assert_eq!(!check(&files).is_empty(), found, "{expression}");
            check_source(SUBTRACTING_FILE, &text, &[]);
        }
        let in_tests = "//! A.\n#[cfg(test)]\nmod tests { fn f() { done_ns - sent_ns } }";
        check_source("crates/brunt-engine/src/a.rs", in_tests, &[]);
    }

    #[test]
    fn functions_fit_a_screen() {
        let function = |lines: usize| format!("//! A.\nfn f() {{\n{}}}\n", "g();\n".repeat(lines - 2));
        check_source("crates/brunt/src/a.rs", &function(FUNCTION_LINES_MAX), &[]);
        let long = function(FUNCTION_LINES_MAX + 1);
        check_source("crates/brunt/src/a.rs", &long, &["long function crates/brunt/src/a.rs:2"]);
        check_source("crates/brunt/tests/a.rs", &long, &[]);
    }
}
