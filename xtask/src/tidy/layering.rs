//! Who may import whom: every manifest is checked against the table of layers.
//!
//! Cargo enforces an edge once it is written down; this says which may be written down. Arrows point down only, and
//! within a layer no crate imports a neighbour.

use super::layers::{LAYERS, Layer};
use super::manifest::{self, DEV};
use super::{File, Finding};

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    manifest::of_members(files)
        .flat_map(|(file, folder)| match LAYERS.iter().find(|layer| layer.name == folder) {
            Some(layer) => edges(file, layer),
            None => {
                let remedy = "give it a row in xtask/src/tidy/layers.rs and in ARCHITECTURE.md";
                vec![Finding::new(file, 1, "layering", format!("'{folder}' has no layer"), remedy)]
            }
        })
        .collect()
}

fn edges(file: &File, layer: &Layer) -> Vec<Finding> {
    manifest::dependencies(file)
        .into_iter()
        .filter(|dependency| dependency.package.starts_with("brunt"))
        .filter(|dependency| {
            let package = dependency.package.as_str();
            let for_tests = dependency.section == DEV && layer.may_test_with.contains(&package);
            !layer.may_use.contains(&package) && !for_tests
        })
        .map(|dependency| {
            let message = format!("{} may not depend on {}", layer.name, dependency.package);
            let remedy = "pass plain data from above, or move the shared noun down to brunt-plan";
            Finding::new(file, dependency.line, "layering", message, remedy)
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
