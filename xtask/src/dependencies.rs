//! Crates of others: which are built into brunt, under which licences, with which known advisories, and what a package says of them.
//!
//! Cargo's metadata are the only source; nothing is asked of a network. Invariant: every crate of the lock file that Linux
//! builds is judged by `xtask/dependencies.toml`, and an exception there that nothing needs is an error too.

mod bill_of_materials;
mod notices;

pub(crate) use bill_of_materials::bill_of_materials;
pub(crate) use notices::notices;

use crate::{cargo, top};
use anyhow::{Context, ensure};
use semver::{Version, VersionReq};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;

/// What is accepted of crates of others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rules {
    /// Licences that every crate may have, as SPDX names them.
    licences: BTreeSet<String>,
    /// Licences that single crates may have, by name.
    licence_exceptions: BTreeMap<String, String>,
    /// Crates that may be there in several versions, and why.
    duplicates: BTreeMap<String, String>,
    /// Known advisories about crates of the lock file, whatever their version.
    #[serde(default, rename = "advisory")]
    advisories: Vec<Advisory>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisory {
    #[serde(rename = "crate")]
    package: String,
    id: String,
    kind: String,
    patched: Vec<VersionReq>,
    unaffected: Vec<VersionReq>,
    /// Why it does not matter to brunt.
    accepted: Option<String>,
}

/// One version of a crate.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    id: String,
    name: String,
    version: Version,
    /// An SPDX expression.
    licence: String,
    folder: PathBuf,
    /// IDs of the crates that it links, without those of builds and tests.
    links: Vec<String>,
}

/// Crates of the lock file that Linux builds, ours included, by ID.
#[derive(Debug)]
pub(crate) struct Graph(BTreeMap<String, Dependency>);

impl Graph {
    /// Asks cargo.
    ///
    /// # Errors
    /// Cargo cannot be run, or its answer has another form.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let mut metadata = cargo::command(&["metadata", "--format-version=1", "--locked"]);
        metadata.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).stderr(Stdio::inherit());
        let output = metadata.output().context("cannot run cargo metadata")?;
        ensure!(output.status.success(), "cargo metadata ended with {}", output.status);
        Self::of(&serde_json::from_slice(&output.stdout)?).context("cargo's metadata have another form")
    }

    fn of(metadata: &Value) -> Option<Self> {
        let nodes = metadata["resolve"]["nodes"].as_array()?;
        let links_of = |node: &Value| -> Option<(String, Vec<String>)> {
            let is_linked = |edge: &&Value| {
                edge["dep_kinds"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
            };
            let links = node["deps"].as_array()?.iter().filter(is_linked);
            Some((
                node["id"].as_str()?.to_owned(),
                links.filter_map(|edge| Some(edge["pkg"].as_str()?.to_owned())).collect(),
            ))
        };
        let mut links: BTreeMap<String, Vec<String>> = nodes.iter().filter_map(links_of).collect();
        let packages = metadata["packages"].as_array()?.iter();
        let dependency = |package: &Value| {
            let text = |key: &str| package[key].as_str();
            let id = text("id")?.to_owned();
            let links = links.remove(&id)?;
            let folder = PathBuf::from(text("manifest_path")?).parent()?.to_owned();
            let (name, version) = (text("name")?.to_owned(), text("version")?.parse().ok()?);
            let licence = text("license").unwrap_or_default().replace('/', " OR ");
            Some((id.clone(), Dependency { id, name, version, licence, folder, links }))
        };
        Some(Self(packages.filter_map(dependency).collect()))
    }

    /// Crates of others.
    fn foreign(&self) -> impl Iterator<Item = &Dependency> {
        self.0.values().filter(|dependency| !dependency.is_ours())
    }

    /// What is linked into the program, by name and version: the program first, then crates of others.
    pub(crate) fn of_program(&self) -> Vec<&Dependency> {
        let program = self
            .0
            .values()
            .find(|dependency| dependency.name == "brunt")
            .expect("it is a member of the workspace");
        let (mut seen, mut next) = (BTreeSet::new(), vec![program]);
        while let Some(dependency) = next.pop() {
            if seen.insert(&dependency.id) {
                next.extend(dependency.links.iter().filter_map(|id| self.0.get(id)));
            }
        }
        let mut linked: Vec<_> = self.foreign().filter(|dependency| seen.contains(&dependency.id)).collect();
        linked.sort_by_key(|dependency| (&dependency.name, &dependency.version));
        [vec![program], linked].concat()
    }
}

impl Dependency {
    fn is_ours(&self) -> bool {
        self.id.starts_with("path+")
    }
}

/// Judges all crates of others.
///
/// # Errors
/// Names each crate that the rules do not accept, and each rule that nothing needs.
pub(crate) fn check() -> anyhow::Result<()> {
    let path = "xtask/dependencies.toml";
    let rules = std::fs::read_to_string(top().join(path))?;
    let findings = toml::from_str::<Rules>(&rules).context(path)?.judge(&Graph::read()?);
    ensure!(findings.is_empty(), "{}\n  rules: {path}", findings.join("\n"));
    Ok(())
}

impl Rules {
    fn judge(&self, graph: &Graph) -> Vec<String> {
        let mut versions: BTreeMap<&str, Vec<&Dependency>> = BTreeMap::new();
        for dependency in graph.foreign() {
            versions.entry(&dependency.name).or_default().push(dependency);
        }
        let licences = graph.foreign().filter_map(|dependency| self.judge_licence(dependency));
        let advisories = self.advisories.iter().flat_map(|advisory| {
            let of_name = versions.get(advisory.package.as_str()).into_iter().flatten();
            of_name.filter_map(|dependency| advisory.judge(dependency))
        });
        let several =
            versions.iter().filter(|(name, found)| found.len() > 1 && !self.duplicates.contains_key(**name));
        let several = several.map(|(name, found)| {
            let found: Vec<String> = found.iter().map(|dependency| dependency.version.to_string()).collect();
            format!("{name} is locked in several versions: {} (`cargo tree --invert`)", found.join(", "))
        });
        let unneeded_duplicates = self
            .duplicates
            .keys()
            .filter(|name| versions.get(name.as_str()).is_none_or(|found| found.len() < 2));
        let unneeded_exceptions =
            self.licence_exceptions.keys().filter(|name| !versions.contains_key(name.as_str()));
        let unneeded = unneeded_duplicates
            .chain(unneeded_exceptions)
            .map(|name| format!("nothing needs the exception of {name}"));
        licences.chain(advisories).chain(several).chain(unneeded).collect()
    }

    fn judge_licence(&self, dependency: &Dependency) -> Option<String> {
        let Dependency { name, version, licence, .. } = dependency;
        let Ok(expression) = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) else {
            return Some(format!("{name} {version} has no licence that SPDX knows: '{licence}'"));
        };
        let is_accepted = |required: &spdx::LicenseReq| {
            let licence = required.to_string();
            self.licences.contains(&licence) || self.licence_exceptions.get(name) == Some(&licence)
        };
        (!expression.evaluate(is_accepted))
            .then(|| format!("{name} {version} has the licence '{licence}', which is not accepted"))
    }
}

impl Advisory {
    fn judge(&self, dependency: &Dependency) -> Option<String> {
        let Dependency { name, version, .. } = dependency;
        let is_safe = self.patched.iter().chain(&self.unaffected).any(|versions| versions.matches(version));
        (!is_safe && self.accepted.is_none())
            .then(|| format!("{name} {version} has the advisory {} ({})", self.id, self.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Name, version and licence.
    type Package = (&'static str, &'static str, &'static str);

    /// Each package links the next one.
    fn graph(packages: &[Package]) -> Graph {
        let id = |index: usize| {
            let (name, version, _) = packages[index];
            format!("{}+x#{name}@{version}", if index == 0 { "path" } else { "registry" })
        };
        let package = |index: usize| {
            let (name, version, licence) = packages[index];
            json!({"id": id(index), "name": name, "version": version, "license": licence, "manifest_path": format!("/x/{name}/Cargo.toml")})
        };
        let node = |index: usize| {
            let kind = |to: usize, kind| json!({"pkg": id(to), "dep_kinds": [{"kind": kind}]});
            let mut edges = Vec::new();
            if index + 1 < packages.len() {
                edges.push(kind(
                    index + 1,
                    if packages[index + 1].0 == "builder" { Some("build") } else { None },
                ));
            }
            json!({"id": id(index), "deps": edges})
        };
        let all = 0..packages.len();
        let metadata = json!({"packages": all.clone().map(package).collect::<Vec<_>>(), "resolve": {"nodes": all.map(node).collect::<Vec<_>>()}});
        Graph::of(&metadata).unwrap()
    }

    const RULES: &str = r#"
        licences = ["MIT", "Apache-2.0"]
        licence-exceptions = { copyleft = "LGPL-3.0" }
        duplicates = { twice = "of two others" }
        [[advisory]]
        crate = "old"
        id = "RUSTSEC-2000-0001"
        kind = "vulnerability"
        patched = [">=1.2.0"]
        unaffected = ["<0.5.0"]
    "#;

    #[test]
    fn crates_are_judged_by_licence_version_and_advisory() {
        let rows: [(&[Package], &[&str]); 7] = [
            (
                &[
                    ("old", "1.2.0", "MIT/Zlib"),
                    ("copyleft", "1.0.0", "LGPL-3.0"),
                    ("twice", "1.0.0", "MIT"),
                    ("twice", "2.0.0", "MIT"),
                ],
                &[],
            ),
            (&[("old", "1.1.0", "MIT")], &["old 1.1.0 has the advisory RUSTSEC-2000-0001 (vulnerability)"]),
            (&[("old", "0.4.9", "MIT")], &[]),
            (&[("a", "1.0.0", "GPL-3.0")], &["a 1.0.0 has the licence 'GPL-3.0', which is not accepted"]),
            (
                &[("a", "1.0.0", "MIT AND Zlib")],
                &["a 1.0.0 has the licence 'MIT AND Zlib', which is not accepted"],
            ),
            (&[("a", "1.0.0", "")], &["a 1.0.0 has no licence that SPDX knows: ''"]),
            (
                &[("a", "1.0.0", "MIT"), ("a", "2.0.0", "MIT")],
                &["a is locked in several versions: 1.0.0, 2.0.0 (`cargo tree --invert`)"],
            ),
        ];
        let rules: Rules = toml::from_str(RULES).unwrap();
        for (packages, expected) in rows {
            let findings = rules.judge(&graph(&[&[("brunt", "0.2.0", "MIT")], packages].concat()));
            let unneeded = |finding: &&String| !finding.starts_with("nothing needs");
            assert_eq!(findings.iter().filter(unneeded).collect::<Vec<_>>(), expected, "{packages:?}");
        }
        let unneeded = rules.judge(&graph(&[("brunt", "0.2.0", "MIT")]));
        assert_eq!(
            unneeded,
            ["twice", "copyleft"].map(|name| format!("nothing needs the exception of {name}"))
        );
    }

    #[test]
    fn programs_have_what_they_link() {
        let graph = graph(&[
            ("brunt", "0.2.0", "MIT"),
            ("b", "1.0.0", "MIT"),
            ("a", "1.0.0", "MIT"),
            ("builder", "1.0.0", "MIT"),
            ("c", "1.0.0", "MIT"),
        ]);
        let names: Vec<_> = graph.of_program().iter().map(|dependency| dependency.name.clone()).collect();
        assert_eq!(names, ["brunt", "a", "b"]);
    }
}
