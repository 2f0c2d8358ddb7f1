//! Rules about manifests: which crate may use which, where versions are given, what every crate inherits.
//!
//! Cargo enforces an edge once it is written down; [`LAYERS`] tells which may be written down. A manifest that is no TOML
//! is cargo's to reject and counts as empty. Invariant: a crate uses crates of lower layers only, and no neighbour.

use super::{File, Finding};

/// A crate takes bytes and numbers only: clippy forbids it clocks, files, sockets, threads and printing.
const PURE: bool = true;
const EFFECTFUL: bool = false;

/// Every crate from the ground up (without `brunt-`), the crates that it may use, and those that its tests may use, too.
const LAYERS: [(&str, bool, &str, &str); 14] = [
    ("plan", PURE, "", ""),
    ("workload", PURE, "plan", ""),
    ("proto", PURE, "plan", ""),
    ("stats", PURE, "plan", ""),
    ("picture", PURE, "plan", ""),
    ("server", EFFECTFUL, "plan", ""),
    // The server is the peer in tests: it shares no code with the codecs that it tests.
    ("engine", EFFECTFUL, "plan workload proto stats", "server"),
    ("report", PURE, "plan stats picture", ""),
    ("compat", PURE, "plan stats picture", ""),
    ("fleet", EFFECTFUL, "plan stats engine", ""),
    ("brunt", EFFECTFUL, "plan workload proto stats picture server engine fleet report compat", ""),
    // Beside the layers.
    ("bench", EFFECTFUL, "plan workload proto stats server engine", ""),
    ("fuzz", EFFECTFUL, "plan workload proto stats server report compat fleet", ""),
    ("xtask", EFFECTFUL, "", ""),
];

const DEV: &str = "dev-dependencies";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        files.iter().filter(|file| file.path == "Cargo.toml").flat_map(check_reasons).collect();
    for file in files {
        if let ["crates", folder, "Cargo.toml"] | [folder @ "xtask", "Cargo.toml"] =
            file.path.split('/').collect::<Vec<_>>()[..]
        {
            findings.extend(check_member(files, file, folder));
        }
    }
    findings
}

/// Every foreign dependency has its reason on its line in the root manifest.
fn check_reasons(root: &File) -> Vec<Finding> {
    let lines = root.text().lines().enumerate().skip_while(|(_, line)| *line != "[workspace.dependencies]");
    let lines = lines.skip(1).take_while(|(_, line)| !line.starts_with('['));
    let lacks_reason = |line: &str| {
        let (entry, reason) = line.split_once('#').unwrap_or((line, ""));
        entry.contains('=') && !entry.contains("path = \"crates/") && reason.trim().is_empty()
    };
    let message = "the dependency has no reason: say behind a `#` on its line what it saves us";
    lines
        .filter(|(_, line)| lacks_reason(line))
        .map(|(index, _)| Finding::new(root, index + 1, "dependency", message.to_owned()))
        .collect()
}

fn check_member(files: &[File], file: &File, folder: &str) -> Vec<Finding> {
    let root: toml::Table = file.text().parse().unwrap_or_default();
    let mut findings = Vec::new();
    let mut find = |line, rule, message: String| findings.push(Finding::new(file, line, rule, message));
    let short = folder.trim_start_matches("brunt-");
    let Some((_, is_pure, may_use, may_test_with)) = LAYERS.iter().find(|(name, ..)| *name == short) else {
        find(1, "layering", format!("'{folder}' has no row in xtask/src/tidy/manifests.rs: add one"));
        return findings;
    };
    if root.get("lints").and_then(|lints| lints.get("workspace")).is_none() {
        find(
            1,
            "manifest",
            "the workspace's lints do not apply: add `[lints]` with `workspace = true`".to_owned(),
        );
    }
    let platforms = root.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    for table in platforms.filter_map(|(_, platform)| platform.as_table()).chain([&root]) {
        for section in ["dependencies", DEV, "build-dependencies"] {
            let entries = table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            for (name, value) in entries {
                let begins =
                    |line: &str| line.starts_with(name.as_str()) || line.ends_with(&format!(".{name}]"));
                let line = file.text().lines().position(begins).map_or(1, |index| index + 1);
                if value.get("workspace").is_none() {
                    find(
                        line,
                        "manifest",
                        format!("'{name}' has a version of its own: write `{name}.workspace = true`"),
                    );
                }
                let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
                let is_in = |names: &str| names.split(' ').any(|name| package == format!("brunt-{name}"));
                let is_allowed = is_in(may_use) || (section == DEV && is_in(may_test_with));
                if package.starts_with("brunt") && !is_allowed {
                    let remedy = "pass plain data from above, or move the shared noun down to brunt-plan";
                    find(line, "layering", format!("{folder} may not depend on {package}: {remedy}"));
                }
            }
        }
    }
    // Clippy reads the nearest file only.
    let text_of = |path: &str| files.iter().find(|file| file.path == path).map(File::text);
    let bans = text_of("clippy-pure.toml");
    if *is_pure && (bans.is_none() || text_of(&format!("crates/{folder}/clippy.toml")) != bans) {
        let remedy = "`ln -s ../../clippy-pure.toml clippy.toml` in its folder";
        find(
            1,
            "pure crate",
            format!("{folder} may read clocks and files, start threads and print: {remedy}"),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::check_rule;

    fn check_manifest(rule: &str, folder: &str, text: &str, expected_lines: &[usize]) {
        let path = format!("crates/{folder}/Cargo.toml");
        let expected: Vec<String> = expected_lines.iter().map(|line| format!("{path}:{line}")).collect();
        check_rule(rule, &[(&path, text)], &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn arrows_point_down() {
        let check = |folder, text, lines: &[usize]| check_manifest("layering", folder, text, lines);
        check("brunt-plan", "[dependencies]\nserde.workspace = true", &[]);
        check("brunt-plan", "[dependencies]\nbrunt-proto.workspace = true", &[2]);
        check("brunt-proto", "[dependencies]\nbrunt-plan.workspace = true", &[]);
        check("brunt-report", "[dependencies]\nbrunt-engine = { workspace = true }", &[2]);
        check("brunt", "[dependencies]\nbrunt-engine.workspace = true", &[]);
        check("brunt-new", "[dependencies]\n", &[1]);
        // Tests may use what a row names for them, and no other neighbour.
        let dev =
            "[dependencies]\nbrunt-plan.workspace = true\n[dev-dependencies]\nbrunt-server.workspace = true";
        check("brunt-engine", dev, &[]);
        check("brunt-proto", dev, &[4]);
        check("brunt-engine", "[dependencies]\nbrunt-server.workspace = true", &[2]);
        let renamed =
            "[target.'cfg(unix)'.dependencies]\nserver = { package = \"brunt-server\", path = \"x\" }";
        check("brunt-stats", renamed, &[2]);
    }

    #[test]
    fn every_edge_of_the_table_points_down() {
        for (index, (name, _, may_use, may_test_with)) in LAYERS.iter().enumerate() {
            for used in may_use.split(' ').chain(may_test_with.split(' ')).filter(|used| !used.is_empty()) {
                let at = LAYERS.iter().position(|(other, ..)| other == &used);
                assert!(at.is_some_and(|at| at < index), "{name} -> {used}");
            }
        }
    }

    #[test]
    fn dependencies_have_reasons() {
        let root = "[workspace.dependencies]\n# A heading is no reason.\nbrunt-plan = { path = \"crates/brunt-plan\" }\n\
                    serde = \"1\" # plans\ntoml = \"1\"\nmemchr = \"2\" #\n[profile.dev]\nopt-level = 1\n";
        check_rule("dependency", &[("Cargo.toml", root)], &["Cargo.toml:5", "Cargo.toml:6"]);
    }

    #[test]
    fn members_inherit_lints_and_versions() {
        let check = |text: &str, lines: &[usize]| check_manifest("manifest", "brunt", text, lines);
        let lints = "[lints]\nworkspace = true\n";
        check(lints, &[]);
        check("[package]\nname = \"brunt\"\n", &[1]);
        check(&format!("{lints}[dev-dependencies]\nserde.workspace = true\ntoml = \"1\"\n"), &[5]);
        check(&format!("{lints}[dependencies.toml]\nversion = \"1\"\n"), &[3]);
    }

    #[test]
    fn pure_crates_have_their_bans() {
        let (path, manifest) = ("crates/brunt-plan/Cargo.toml", "[lints]\nworkspace = true\n");
        let bans = ("clippy-pure.toml", "disallowed-methods = []");
        let (same, other) =
            (("crates/brunt-plan/clippy.toml", bans.1), ("crates/brunt-plan/clippy.toml", ""));
        let missing: &[&str] = &["crates/brunt-plan/Cargo.toml:1"];
        check_rule("pure crate", &[(path, manifest), bans, same], &[]);
        check_rule("pure crate", &[(path, manifest), bans, other], missing);
        check_rule("pure crate", &[(path, manifest), bans], missing);
        check_rule("pure crate", &[(path, manifest), other], missing);
    }
}
