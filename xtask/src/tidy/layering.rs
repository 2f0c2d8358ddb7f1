//! Who may import whom: the layers of the workspace as a table, checked against every manifest.
//!
//! Cargo enforces an edge once it is written down; this says which may be written down. Arrows point down only, and
//! within a layer nobody imports a neighbour.

use super::manifest::{self, Section};
use super::{File, Finding};

/// A crate of ours and the crates of ours that it may see.
pub(super) struct Layer {
    pub(super) name: &'static str,
    /// Takes bytes and numbers only: clippy forbids it clocks, files, sockets, threads and printing.
    pub(super) is_pure: bool,
    may_use: &'static [&'static str],
    /// Allowed in addition for its tests.
    may_test_with: &'static [&'static str],
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, is_pure: true, may_use, may_test_with: &[] }
}

const fn effectful(
    name: &'static str,
    may_use: &'static [&'static str],
    may_test_with: &'static [&'static str],
) -> Layer {
    Layer { name, is_pure: false, may_use, may_test_with }
}

/// Every crate, from the ground up.
pub(super) const LAYERS: [Layer; 14] = [
    // 0: vocabulary.
    pure("brunt-plan", &[]),
    // 1: each sees the vocabulary and nothing else.
    pure("brunt-workload", &["brunt-plan"]),
    pure("brunt-proto", &["brunt-plan"]),
    pure("brunt-stats", &["brunt-plan"]),
    pure("brunt-picture", &["brunt-plan"]),
    effectful("brunt-server", &["brunt-plan"], &[]),
    // 2: the loop, and what is written about it. They do not know one another.
    effectful(
        "brunt-engine",
        &["brunt-plan", "brunt-workload", "brunt-proto", "brunt-stats"],
        // As the peer: it shares no code with the codecs that it tests.
        &["brunt-server"],
    ),
    pure("brunt-report", &["brunt-plan", "brunt-stats", "brunt-picture"]),
    pure("brunt-compat", &["brunt-plan", "brunt-stats", "brunt-picture"]),
    // 3: several engines as one.
    effectful("brunt-fleet", &["brunt-plan", "brunt-stats", "brunt-engine"], &["brunt-server"]),
    // 4: wiring.
    effectful(
        "brunt",
        &[
            "brunt-plan",
            "brunt-workload",
            "brunt-proto",
            "brunt-stats",
            "brunt-picture",
            "brunt-server",
            "brunt-engine",
            "brunt-fleet",
            "brunt-report",
            "brunt-compat",
        ],
        &[],
    ),
    // Beside the layers.
    effectful(
        "brunt-bench",
        &["brunt-plan", "brunt-workload", "brunt-proto", "brunt-stats", "brunt-server", "brunt-engine"],
        &[],
    ),
    effectful(
        "brunt-fuzz",
        &["brunt-plan", "brunt-proto", "brunt-stats", "brunt-report", "brunt-fleet"],
        &[],
    ),
    effectful("xtask", &[], &[]),
];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    manifest::of_members(files)
        .flat_map(|(file, folder)| match LAYERS.iter().find(|layer| layer.name == folder) {
            Some(layer) => edges(file, layer),
            None => vec![Finding {
                path: file.path.clone(),
                line: 1,
                rule: "layering",
                message: format!("'{folder}' has no layer"),
                remedy: "give it a row in xtask/src/tidy/layering.rs and in ARCHITECTURE.md",
            }],
        })
        .collect()
}

fn edges(file: &File, layer: &Layer) -> Vec<Finding> {
    manifest::dependencies(file)
        .into_iter()
        .filter(|dependency| dependency.package.starts_with("brunt"))
        .filter(|dependency| {
            let package = dependency.package.as_str();
            let for_tests = dependency.section == Section::Dev && layer.may_test_with.contains(&package);
            !layer.may_use.contains(&package) && !for_tests
        })
        .map(|dependency| Finding {
            path: file.path.clone(),
            line: dependency.line,
            rule: "layering",
            message: format!("{} may not depend on {}", layer.name, dependency.package),
            remedy: "pass plain data from above, or move the shared noun down to brunt-plan",
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::check_rule;

    fn check_manifest(folder: &str, text: &str, expected_lines: &[usize]) {
        let path = format!("crates/{folder}/Cargo.toml");
        let expected: Vec<String> =
            expected_lines.iter().map(|line| format!("layering {path}:{line}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_rule(check, &[(&path, text)], &expected);
    }

    #[test]
    fn arrows_point_down() {
        check_manifest("brunt-plan", "[dependencies]\nserde.workspace = true", &[]);
        check_manifest("brunt-plan", "[dependencies]\nbrunt-proto.workspace = true", &[2]);
        check_manifest("brunt-proto", "[dependencies]\nbrunt-plan.workspace = true", &[]);
        check_manifest("brunt-report", "[dependencies]\nbrunt-engine = { workspace = true }", &[2]);
        check_manifest("brunt", "[dependencies]\nbrunt-engine.workspace = true", &[]);
        check_manifest("brunt-new", "[dependencies]\n", &[1]);
    }

    #[test]
    fn neighbours_do_not_meet_in_tests_either() {
        let dev =
            "[dependencies]\nbrunt-plan.workspace = true\n[dev-dependencies]\nbrunt-server.workspace = true";
        check_manifest("brunt-engine", dev, &[]);
        check_manifest("brunt-proto", dev, &[4]);
        check_manifest("brunt-engine", "[dependencies]\nbrunt-server.workspace = true", &[2]);
        let renamed =
            "[target.'cfg(unix)'.dependencies]\nserver = { package = \"brunt-server\", path = \"x\" }";
        check_manifest("brunt-stats", renamed, &[2]);
    }

    #[test]
    fn every_edge_of_the_table_points_down() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.may_use.iter().chain(layer.may_test_with) {
                let at = LAYERS.iter().position(|other| other.name == *used);
                assert!(at.is_some_and(|at| at < index), "{} -> {used}", layer.name);
            }
        }
    }
}
