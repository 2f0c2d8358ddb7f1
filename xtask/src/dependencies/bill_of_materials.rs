//! What the program is built of, as a software bill of materials in CycloneDX's JSON.
//!
//! Invariant: it names no time, machine or serial number, so that it is the same for the same lock file.

use super::{Dependency, Graph, System};
use crate::top;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The bill of the program and of what is in its package beside it, as text.
///
/// # Errors
/// The lock file cannot be read.
pub(crate) fn bill_of_materials(graph: &Graph, systems: &[System]) -> anyhow::Result<String> {
    let path = top().join("Cargo.lock");
    let lock_file: toml::Table = std::fs::read_to_string(path)?.parse()?;
    let checksums = checksums(&lock_file).context("Cargo.lock has no packages")?;
    let bill = write(&graph.of_program(), systems, &checksums);
    Ok(format!("{bill:#}\n"))
}

/// SHA-256 of the crates of a registry, by name and version.
fn checksums<'a>(lock_file: &'a toml::Table) -> Option<BTreeMap<(&'a str, &'a str), &'a str>> {
    let row = |package: &'a toml::Value| {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Some(lock_file.get("package")?.as_array()?.iter().filter_map(row).collect())
}

fn write(linked: &[&Dependency], systems: &[System], checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let reference = |dependency: &Dependency| format!("pkg:cargo/{}@{}", dependency.name, dependency.version);
    let component = |dependency: &&Dependency| {
        let version = dependency.version.to_string();
        let hash = checksums.get(&(dependency.name.as_str(), version.as_str()));
        let hashes = hash.map(|hash| json!({"alg": "SHA-256", "content": hash}));
        json!({
            "type": if dependency.name == "brunt" { "application" } else { "library" },
            "bom-ref": reference(dependency),
            "name": dependency.name,
            "version": version,
            "hashes": hashes.into_iter().collect::<Vec<_>>(),
            "licenses": [{"expression": dependency.licence}],
            "purl": reference(dependency),
        })
    };
    let system = |System { name, version, licence, address, .. }: &System| {
        json!({
            "type": "library",
            "bom-ref": address,
            "name": name,
            "version": version,
            "licenses": [{"expression": licence}],
            "purl": address,
        })
    };
    let edges = |dependency: &&Dependency| {
        let is_linked = |other: &&&Dependency| dependency.links.contains(&other.id);
        let crates = linked.iter().filter(is_linked).map(|other| reference(other));
        let systems = systems.iter().filter(|_| dependency.name == "brunt");
        let on: Vec<String> = crates.chain(systems.map(|system| system.address.clone())).collect();
        json!({"ref": reference(dependency), "dependsOn": on})
    };
    let leaves = systems.iter().map(|system| json!({"ref": system.address, "dependsOn": []}));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(&linked[0])},
        "components": linked[1..].iter().map(component).chain(systems.iter().map(system)).collect::<Vec<_>>(),
        "dependencies": linked.iter().map(edges).chain(leaves).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PACKAGES, TREE, graph};
    use super::*;

    #[test]
    fn bills_have_versions_sums_and_edges() {
        let lock_file = "[[package]]\nname = 'b'\nversion = '1.0.0'\nchecksum = 'abc'\n[[package]]\nname = 'brunt'\nversion = '0.2.0'\n";
        let lock_file: toml::Table = lock_file.parse().unwrap();
        let graph = graph(&PACKAGES[..3], &TREE[..31]);
        let libc = System {
            name: "glibc",
            version: "2.36".to_owned(),
            licence: "LGPL-2.1-or-later",
            address: "pkg:deb/debian/libc6@2.36".to_owned(),
            notice: String::new(),
        };
        let expected = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": {
                "type": "application", "bom-ref": "pkg:cargo/brunt@0.2.0", "name": "brunt", "version": "0.2.0", "hashes": [],
                "licenses": [{"expression": "MIT"}], "purl": "pkg:cargo/brunt@0.2.0",
            }},
            "components": [
                {
                    "type": "library", "bom-ref": "pkg:cargo/b@1.0.0", "name": "b", "version": "1.0.0",
                    "hashes": [{"alg": "SHA-256", "content": "abc"}],
                    "licenses": [{"expression": "Zlib"}], "purl": "pkg:cargo/b@1.0.0",
                },
                {
                    "type": "library", "bom-ref": "pkg:deb/debian/libc6@2.36", "name": "glibc", "version": "2.36",
                    "licenses": [{"expression": "LGPL-2.1-or-later"}], "purl": "pkg:deb/debian/libc6@2.36",
                },
            ],
            "dependencies": [
                {"ref": "pkg:cargo/brunt@0.2.0", "dependsOn": ["pkg:cargo/b@1.0.0", "pkg:deb/debian/libc6@2.36"]},
                {"ref": "pkg:cargo/b@1.0.0", "dependsOn": []},
                {"ref": "pkg:deb/debian/libc6@2.36", "dependsOn": []},
            ],
        });
        assert_eq!(write(&graph.of_program(), &[libc], &checksums(&lock_file).unwrap()), expected);
    }
}
