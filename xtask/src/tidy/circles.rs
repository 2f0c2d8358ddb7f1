//! No circles of files: within a crate, files that import each other, directly or by others, cannot be read one by one.
//!
//! A file imports another by a path that begins with `crate`, `super` or `self`, in a `use` or in the code; tests are left out. A file
//! and the files of its own folder are nesting, not an import: a parent wires its children, and they use what it holds.

use super::{File, Finding};
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// The names from the root of the crate to a module; empty for the root.
type Module = Vec<String>;

/// The imports of a file: the modules, each with the line that names it first.
type Imports = BTreeMap<Module, usize>;

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &File>> = BTreeMap::new();
    for file in files {
        let inside = file
            .path
            .split_once("/src/")
            .and_then(|(folder, path)| Some((folder, path.strip_suffix(".rs")?)));
        if let Some((folder, path)) = inside {
            let mut names: Module = path.split('/').map(str::to_owned).collect();
            names.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
            crates.entry(folder).or_default().insert(names, file);
        }
    }
    crates.values().flat_map(check_crate).collect()
}

fn check_crate(modules: &BTreeMap<Module, &File>) -> Vec<Finding> {
    let (mut named, mut tests) = (BTreeMap::new(), BTreeSet::new());
    for (module, file) in modules {
        let mut paths = Vec::new();
        let names = read_paths(file.text().parse().unwrap_or_default(), &[], &mut paths);
        tests.extend(names.into_iter().map(|name| [module.as_slice(), &[name]].concat()));
        named.insert(module, paths);
    }
    let is_test = |module: &Module| (1..=module.len()).any(|count| tests.contains(&module[..count]));
    let product = named.iter().filter(|(module, _)| !is_test(module));
    let imports: BTreeMap<&Module, Imports> =
        product.map(|(module, paths)| (*module, imports_of(module, paths, modules))).collect();
    let (mut findings, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, of_file) in &imports {
        let is_in_circle = |other: &&Module| *other != *path && reached(other, &imports).contains(path);
        let circle: Vec<&Module> = reached(path, &imports).into_iter().filter(is_in_circle).collect();
        let line = circle.iter().filter_map(|other| of_file.get(*other)).min();
        if let Some(line) = line.filter(|_| !seen.contains(path)) {
            let names: Vec<String> = circle.iter().map(|other| other.join("/")).collect();
            let (names, remedy) = (names.join(", "), "move what they share to a file of its own noun");
            let message = format!("this file and others import each other: {names}; {remedy}");
            findings.push(Finding::new(modules[*path], *line, "circles", message));
            seen.extend(circle);
        }
    }
    findings
}

/// Everything that a module imports, directly or by others.
fn reached<'a>(from: &Module, imports: &'a BTreeMap<&Module, Imports>) -> BTreeSet<&'a Module> {
    let of = |module: &Module| imports.get(module).into_iter().flat_map(BTreeMap::keys);
    let (mut found, mut open) = (BTreeSet::new(), of(from).collect::<Vec<_>>());
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(of(next));
        }
    }
    found
}

/// Adds the paths outside of items for tests, each with its line; `prefix` is what is before the braces of a tree such as `a::{b, c::d}`.
/// Returns the names of files that are modules for tests.
fn read_paths(tokens: TokenStream, prefix: &[String], paths: &mut Vec<(Module, usize)>) -> Vec<String> {
    let (mut tests, mut trees) = (Vec::new(), tokens.into_iter().peekable());
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) if is_test_attribute(&group) => {
                let is_end = |tree: &TokenTree| is_brace(tree) || tree.to_string() == ";";
                let item: Vec<TokenTree> = trees.by_ref().take_while(|tree| !is_end(tree)).collect();
                if let [.., TokenTree::Ident(word), TokenTree::Ident(name)] = &item[..]
                    && word == "mod"
                {
                    tests.push(name.to_string());
                }
            }
            TokenTree::Group(group) => tests.extend(read_paths(group.stream(), &[], paths)),
            // In a tree of imports, a new name follows.
            TokenTree::Ident(word) if word == "as" && !prefix.is_empty() => drop(trees.next()),
            TokenTree::Ident(first) => {
                let mut path = [prefix, &[first.to_string()]].concat();
                while is_colon(trees.peek()) {
                    trees.nth(1);
                    match trees.peek() {
                        Some(TokenTree::Ident(name)) => path.push(name.to_string()),
                        Some(TokenTree::Group(group)) => {
                            read_paths(group.stream(), &std::mem::take(&mut path), paths);
                        }
                        _ => break,
                    }
                    trees.next();
                }
                paths.extend((!path.is_empty()).then_some((path, line)));
            }
            _ => {}
        }
    }
    tests
}

fn is_brace(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Is it the first colon of two?
fn is_colon(tree: Option<&TokenTree>) -> bool {
    matches!(tree, Some(TokenTree::Punct(colon)) if colon.as_char() == ':' && colon.spacing() == Spacing::Joint)
}

fn is_test_attribute(group: &Group) -> bool {
    group.delimiter() == Delimiter::Bracket && group.stream().to_string().replace(' ', "") == "cfg(test)"
}

fn imports_of(own: &Module, paths: &[(Module, usize)], modules: &BTreeMap<Module, &File>) -> Imports {
    let mut imports = Imports::new();
    let is_inside = |path: &Module| path.len() > 1 && ["crate", "super", "self"].contains(&path[0].as_str());
    for (path, line) in paths.iter().filter(|(path, _)| is_inside(path)) {
        let full = resolved(own, path);
        let module =
            (1..=full.len()).rev().map(|count| &full[..count]).find(|part| modules.contains_key(*part));
        // A parent's own items, and a parent that wires its children, are nesting.
        let is_nesting = |module: &[String]| own.starts_with(module) || module.starts_with(own);
        if let Some(module) = module.filter(|module| !is_nesting(module)) {
            imports.entry(module.to_vec()).or_insert(*line);
        }
    }
    imports
}

/// The path from the root of the crate that a path in this module means.
fn resolved(own: &Module, path: &Module) -> Module {
    let mut full = if path.first().is_some_and(|first| first == "crate") { Vec::new() } else { own.clone() };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(name.clone()),
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use crate::tidy::check_rule;

    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/brunt/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let expected: Vec<String> =
            expected.iter().map(|place| format!("crates/brunt/src/{place}")).collect();
        check_rule("circles", &files, &expected.iter().map(String::as_str).collect::<Vec<_>>());
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
        // By the type of a cast.
        check_files(&[("a.rs", "fn f() { 0 as crate::b::B; }\n"), ("b.rs", "use crate::a;\n")], &["a.rs:1"]);
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
        // What an import is renamed to names no file.
        check_files(
            &[
                ("a.rs", "use crate::{c::C as b, d::{D as b}};\n"),
                ("b.rs", "use crate::a;\n"),
                ("c.rs", ""),
                ("d.rs", ""),
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
