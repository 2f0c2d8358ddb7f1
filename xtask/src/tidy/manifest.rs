//! Rules about manifests: where versions are given, why a dependency is there, what every crate inherits.
//!
//! Also the one place that reads manifests for other rules. A manifest that is no TOML is cargo's to complain about and
//! counts as empty here.

use super::layers::LAYERS;
use super::{File, Finding};

/// The tables of dependencies.
const SECTIONS: [&str; 3] = ["dependencies", DEV, "build-dependencies"];
/// The table of what only tests need.
pub(super) const DEV: &str = "dev-dependencies";

/// A dependency as one manifest has it.
#[derive(Debug)]
pub(super) struct Dependency {
    /// The real name, also where the manifest gives it another.
    pub(super) package: String,
    pub(super) section: &'static str,
    /// Line of its name, counted from 1.
    pub(super) line: usize,
    from_workspace: bool,
}

/// The manifests of the workspace's members, each with the name of its folder.
pub(super) fn of_members(files: &[File]) -> impl Iterator<Item = (&File, &str)> {
    files.iter().filter_map(|file| match file.path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", folder, "Cargo.toml"] | [folder @ "xtask", "Cargo.toml"] => Some((file, *folder)),
        _ => None,
    })
}

/// All dependencies of a manifest, those of single platforms too.
pub(super) fn dependencies(file: &File) -> Vec<Dependency> {
    let root: toml::Table = file.text().parse().unwrap_or_default();
    let platforms = root.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = platforms.filter_map(|(_, platform)| platform.as_table()).chain([&root]);
    let mut found = Vec::new();
    for table in tables {
        for section in SECTIONS {
            let entries = table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(name, value)| Dependency {
                package: value.get("package").and_then(toml::Value::as_str).unwrap_or(name).to_owned(),
                section,
                line: line_of(file.text(), section, name),
                from_workspace: value.get("workspace").and_then(toml::Value::as_bool) == Some(true),
            }));
        }
    }
    found
}

/// Where `name` stands in a section, as well as lines can tell: a manifest's parsed form has no places.
fn line_of(text: &str, section: &str, name: &str) -> usize {
    let mut inside = false;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, last) = header.rsplit_once('.').unwrap_or(("", header));
            let is_section = |header: &str| header == section || header.ends_with(&format!(".{section}"));
            if is_section(table) && last.trim_matches('"') == name {
                return index + 1;
            }
            inside = is_section(header);
        } else if inside && entry_name(line) == Some(name) {
            return index + 1;
        }
    }
    1
}

/// The name that a line of a table of dependencies begins with.
fn entry_name(line: &str) -> Option<&str> {
    let name = line.split(['=', '.', ' ']).next()?.trim_matches('"');
    (!name.is_empty() && !line.starts_with('#')).then_some(name)
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(root) = files.iter().find(|file| file.path == "Cargo.toml") {
        findings.extend(reasons(root));
    }
    for (file, folder) in of_members(files) {
        findings.extend(member(file, folder));
        findings.extend(bans(files, file, folder));
    }
    findings
}

/// Every foreign dependency has its reason on its line in the root manifest.
fn reasons(root: &File) -> Vec<Finding> {
    let mut inside = false;
    let mut findings = Vec::new();
    for (index, line) in root.text().lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim_end() == "[workspace.dependencies]";
            continue;
        }
        let is_ours = line.contains("path = \"crates/");
        let Some(name) = entry_name(line).filter(|_| inside && line.contains('=') && !is_ours) else {
            continue;
        };
        let reason = line.split_once('#').map_or("", |(_, reason)| reason.trim());
        if reason.is_empty() {
            let message = format!("'{name}' is there without a reason");
            let remedy = "say behind a `#` on its line what it saves us, or do without it";
            findings.push(Finding::new(root, index + 1, "dependency", message, remedy));
        }
    }
    findings
}

/// What every member inherits: lints, and versions from the one table with reasons.
fn member(file: &File, folder: &str) -> Vec<Finding> {
    let root: toml::Table = file.text().parse().unwrap_or_default();
    let finding = |line, message, remedy| Finding::new(file, line, "manifest", message, remedy);
    let mut findings = Vec::new();
    let get = |table: &str, key: &str| root.get(table).and_then(|table| table.get(key));
    if get("package", "name").and_then(toml::Value::as_str) != Some(folder) {
        let message = format!("the folder is '{folder}', the package is not");
        findings.push(finding(1, message, "give folder and package the same name"));
    }
    if get("lints", "workspace").and_then(toml::Value::as_bool) != Some(true) {
        let message = "the workspace's lints do not apply".to_owned();
        findings.push(finding(1, message, "add `[lints]` with `workspace = true`"));
    }
    for dependency in dependencies(file).into_iter().filter(|dependency| !dependency.from_workspace) {
        let message = format!("'{}' has a version of its own", dependency.package);
        let remedy = "write `NAME.workspace = true`; version and reason stand once, in the root manifest";
        findings.push(finding(dependency.line, message, remedy));
    }
    findings
}

/// A pure crate carries the bans of pure crates, word for word: clippy reads the nearest file only.
fn bans(files: &[File], manifest: &File, folder: &str) -> Option<Finding> {
    let is_pure = LAYERS.iter().any(|layer| layer.name == folder && layer.is_pure);
    let text_of = |path: &str| files.iter().find(|file| file.path == path).map(File::text);
    let bans = text_of("clippy-pure.toml");
    let holds = bans.is_some() && text_of(&format!("crates/{folder}/clippy.toml")) == bans;
    (is_pure && !holds).then(|| {
        let message = format!("{folder} may read clocks and files, start threads and print");
        let remedy = "link it: `ln -s ../../clippy-pure.toml clippy.toml` in the folder of the crate";
        Finding::new(manifest, 1, "pure crate", message, remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::check_rule;

    const MEMBER: &str = "[package]\nname = \"brunt\"\n[lints]\nworkspace = true\n";

    #[test]
    fn a_dependency_has_a_reason() {
        let root = "\
[workspace.dependencies]
# A heading is no reason.
brunt-plan = { path = \"crates/brunt-plan\" }
serde = \"1\" # plans
toml = \"1\"
memchr = \"2\" #
[profile.dev]
opt-level = 1
";
        check_rule(check, &[("Cargo.toml", root)], &["dependency Cargo.toml:5", "dependency Cargo.toml:6"]);
    }

    #[test]
    fn a_member_inherits() {
        let check_member = |text: &str, expected: &[&str]| {
            check_rule(check, &[("crates/brunt/Cargo.toml", text)], expected);
        };
        check_member(MEMBER, &[]);
        check_member("[package]\nname = \"brunt\"\n", &["manifest crates/brunt/Cargo.toml:1"]);
        check_member(&MEMBER.replace("brunt", "burnt"), &["manifest crates/brunt/Cargo.toml:1"]);
        let own_version = format!("{MEMBER}[dev-dependencies]\nserde.workspace = true\ntoml = \"1\"\n");
        check_member(&own_version, &["manifest crates/brunt/Cargo.toml:7"]);
        let own_table = format!("{MEMBER}[dependencies.toml]\nversion = \"1\"\n");
        check_member(&own_table, &["manifest crates/brunt/Cargo.toml:5"]);
    }

    #[test]
    fn a_pure_crate_has_its_bans() {
        let manifest = MEMBER.replace("brunt", "brunt-plan");
        let manifest = ("crates/brunt-plan/Cargo.toml", manifest.as_str());
        let bans = ("clippy-pure.toml", "disallowed-methods = []");
        let linked = ("crates/brunt-plan/clippy.toml", bans.1);
        let other = ("crates/brunt-plan/clippy.toml", "");
        let missing = ["pure crate crates/brunt-plan/Cargo.toml:1"];
        check_rule(check, &[manifest, bans, linked], &[]);
        check_rule(check, &[manifest, bans, other], &missing);
        check_rule(check, &[manifest, bans], &missing);
        check_rule(check, &[manifest, other], &missing);
    }
}
