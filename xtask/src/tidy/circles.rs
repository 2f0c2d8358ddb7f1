//! No circles of files: within a crate, files that import each other, directly or by others, cannot be read one by one.
//!
//! A file imports another by a path that begins with `crate`, `super` or `self`, in a `use` or in the code; tests are left out. A file
//! and the files of its own folder are nesting, not an import: a parent wires its children, and they use what it holds.

use super::rust::{Token, reads, test_lines, tokens};
use super::{File, Finding};
use std::collections::{BTreeMap, BTreeSet};

/// The names from the root of the crate to a module; empty for the root.
type ModulePath<'a> = Vec<&'a str>;

/// The imports of a file: the modules, each with the line that names it first.
type Imports<'a> = BTreeMap<ModulePath<'a>, usize>;

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<ModulePath<'_>, &File>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if let Some((folder, path)) = module_of(&file.path) {
            crates.entry(folder).or_default().insert(path, file);
        }
    }
    crates.values().flat_map(check_crate).collect()
}

/// The folder of a crate's sources, and the module that a file in it is.
fn module_of(path: &str) -> Option<(&str, ModulePath<'_>)> {
    let (folder, inside) = path.split_once("/src/")?;
    let mut names: ModulePath<'_> = inside.strip_suffix(".rs")?.split('/').collect();
    if matches!(names.last(), Some(&"mod" | &"lib" | &"main")) {
        names.pop();
    }
    Some((folder, names))
}

fn check_crate(modules: &BTreeMap<ModulePath<'_>, &File>) -> Vec<Finding> {
    let tests: BTreeSet<ModulePath<'_>> =
        modules.iter().flat_map(|(path, file)| test_modules(path, file)).collect();
    let is_test = |path: &ModulePath<'_>| (1..=path.len()).any(|count| tests.contains(&path[..count]));
    let imports: BTreeMap<&ModulePath<'_>, Imports<'_>> = modules
        .iter()
        .filter(|(path, _)| !is_test(path))
        .map(|(path, file)| (path, imports_of(path, file, modules)))
        .collect();
    let mut findings = Vec::new();
    let mut seen: BTreeSet<&ModulePath<'_>> = BTreeSet::new();
    for path in imports.keys() {
        if seen.contains(*path) {
            continue;
        }
        let circle: Vec<&ModulePath<'_>> = reached(path, &imports)
            .into_iter()
            .filter(|other| other != path && reached(other, &imports).contains(*path))
            .collect();
        let Some(line) = circle.iter().filter_map(|other| imports[*path].get(*other)).min() else {
            continue;
        };
        seen.extend(circle.iter().copied());
        let names: Vec<String> = circle.iter().map(|other| other.join("/")).collect();
        let message = format!("this file and others import each other: {}", names.join(", "));
        let remedy = "move what they share to a file of its own noun";
        findings.push(Finding::new(modules[*path], *line, "circles", message, remedy));
    }
    findings
}

/// Everything that a module imports, directly or by others.
fn reached<'a, 'b>(
    from: &ModulePath<'a>,
    imports: &'b BTreeMap<&'b ModulePath<'a>, Imports<'a>>,
) -> BTreeSet<&'b ModulePath<'a>> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&'b ModulePath<'a>> = imports.get(from).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(imports.get(next).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

/// The modules that a file declares for its tests.
fn test_modules<'a>(path: &ModulePath<'a>, file: &'a File) -> Vec<ModulePath<'a>> {
    let tokens = tokens(file.text());
    let lines = test_lines(&tokens);
    (0..tokens.len())
        .filter(|at| lines.iter().any(|lines| lines.contains(&tokens[*at].line)))
        .filter(|at| reads(&tokens, *at, &["mod"]) && reads(&tokens, at + 2, &[";"]))
        .map(|at| [path.as_slice(), &[tokens[at + 1].text]].concat())
        .collect()
}

fn imports_of<'a>(
    own: &ModulePath<'a>,
    file: &'a File,
    modules: &BTreeMap<ModulePath<'a>, &'a File>,
) -> Imports<'a> {
    let tokens = tokens(file.text());
    let tests = test_lines(&tokens);
    let mut imports = Imports::new();
    for at in 0..tokens.len() {
        let begins_path = matches!(tokens[at].text, "crate" | "super" | "self")
            && reads(&tokens, at + 1, &["::"])
            && !(at > 0 && reads(&tokens, at - 1, &["::"]));
        let line = tokens[at].line;
        if !begins_path || tests.iter().any(|lines| lines.contains(&line)) {
            continue;
        }
        let mut paths = Vec::new();
        read_paths(&tokens, at, &[], &mut paths);
        for path in paths {
            let full = resolved(own, &path);
            let module =
                (1..=full.len()).rev().map(|count| &full[..count]).find(|part| modules.contains_key(*part));
            // A parent's own items, and a parent that wires its children, are nesting.
            let is_nesting = |module: &[&str]| own.starts_with(module) || module.starts_with(own);
            if let Some(module) = module.filter(|module| !is_nesting(module)) {
                imports.entry(module.to_vec()).or_insert(line);
            }
        }
    }
    imports
}

/// Reads a path, or the paths of a tree such as `a::{b, c::d}`, from `at` on, behind `before`. Returns where it ends.
fn read_paths<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    before: &[&'a str],
    paths: &mut Vec<ModulePath<'a>>,
) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        if token.text == "{" {
            at += 1;
            while tokens.get(at).is_some_and(|token| token.text != "}") {
                let end = read_paths(tokens, at, &path, paths);
                // Behind an `as`, a `*` or a comma.
                at = (end.max(at + 1)..tokens.len())
                    .find(|at| matches!(tokens[*at - 1].text, ",") || tokens[*at].text == "}")
                    .unwrap_or(tokens.len());
            }
            return at + 1;
        }
        path.push(token.text);
        at += 1;
        if !reads(tokens, at, &["::"]) {
            break;
        }
        at += 1;
    }
    paths.push(path);
    at
}

/// The path from the root of the crate that a path in this module means.
fn resolved<'a>(own: &ModulePath<'a>, path: &ModulePath<'a>) -> ModulePath<'a> {
    let mut full = if path.first() == Some(&"crate") { Vec::new() } else { own.clone() };
    for name in path {
        match *name {
            "crate" | "self" => {}
            "super" => drop(full.pop()),
            name => full.push(name),
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::check_rule;

    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/brunt/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let expected: Vec<String> =
            expected.iter().map(|place| format!("circles crates/brunt/src/{place}")).collect();
        check_rule(check, &files, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        check_files(&[("a.rs", "use crate::b::B;\n"), ("b.rs", "fn f() { crate::a::f(); }\n")], &["a.rs:1"]);
        // By a third, and by the inside of a tree.
        check_files(
            &[
                ("a.rs", "\nuse crate::{d, b::{B, self}};\n"),
                ("b.rs", "use super::c::{C as D, e::*};\n"),
                ("c.rs", "use super::{x::X, a::A};\n"),
                ("d.rs", "use crate::a;\n"),
            ],
            &["a.rs:2"],
        );
        // Two circles of one crate.
        check_files(
            &[
                ("a.rs", "use crate::b;\n"),
                ("b.rs", "use crate::a;\n"),
                ("c/mod.rs", "mod d;\n"),
                ("c/d.rs", "use super::e;\n"),
                ("c/e.rs", "use super::d;\n"),
            ],
            &["a.rs:1", "c/d.rs:1"],
        );
    }

    #[test]
    fn other_imports_are_allowed() {
        // In one direction only; a parent and its children; tests, in the file and in their own.
        check_files(&[("a.rs", "use crate::b;\n"), ("b.rs", "use crate::c;\n"), ("c.rs", "")], &[]);
        check_files(
            &[("a.rs", "mod b;\nuse self::b::B;\n"), ("a/b.rs", "use super::A;\nuse crate::a;\n")],
            &[],
        );
        check_files(
            &[
                ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod world;\n"),
                ("a.rs", "use crate::b;\n"),
                ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
                ("world.rs", "use crate::c;\n"),
                ("c.rs", "use crate::world;\n"),
            ],
            &[],
        );
        // A comment and a string name no file.
        check_files(
            &[("a.rs", "use crate::b;\n"), ("b.rs", "// use crate::a;\nconst A: &str = \"crate::a\";\n")],
            &[],
        );
    }
}
