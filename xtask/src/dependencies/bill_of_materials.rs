//! What the program is built of, as a software bill of materials in CycloneDX's JSON.
//!
//! Invariant: it names no time, machine or serial number, so that it is the same for the same lock file.

use super::{Dependency, Graph};
use crate::top;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The bill, as text.
///
/// # Errors
/// The lock file cannot be read.
pub(crate) fn bill_of_materials(graph: &Graph) -> anyhow::Result<String> {
    let path = top().join("Cargo.lock");
    let lock_file: toml::Table = std::fs::read_to_string(path)?.parse()?;
    let bill = write(&graph.of_program(), &checksums(&lock_file).context("Cargo.lock has no packages")?);
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

fn write(linked: &[&Dependency], checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let reference = |dependency: &Dependency| format!("pkg:cargo/{}@{}", dependency.name, dependency.version);
    let component = |dependency: &&Dependency| {
        let version = dependency.version.to_string();
        let hash = checksums.get(&(dependency.name.as_str(), version.as_str()));
        let hashes = hash.map(|hash| json!({"alg": "SHA-256", "content": hash}));
        json!({
            "type": if dependency.is_ours() { "application" } else { "library" },
            "bom-ref": reference(dependency),
            "name": dependency.name,
            "version": version,
            "hashes": hashes.into_iter().collect::<Vec<_>>(),
            "licenses": [{"expression": dependency.licence}],
            "purl": reference(dependency),
        })
    };
    let edges = |dependency: &&Dependency| {
        let is_linked = |other: &&&Dependency| dependency.links.contains(&other.id);
        let on: Vec<String> = linked.iter().filter(is_linked).map(|other| reference(other)).collect();
        json!({"ref": reference(dependency), "dependsOn": on})
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(&linked[0])},
        "components": linked[1..].iter().map(component).collect::<Vec<_>>(),
        "dependencies": linked.iter().map(edges).collect::<Vec<_>>(),
    })
}
