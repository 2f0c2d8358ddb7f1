//! Crates of others: which are built into brunt, under which licences, with which known advisories, and what a package says of them.
//!
//! Cargo's metadata and its tree say which; the network is asked by cargo-deny alone, for advisories of today. Invariant: every crate of the
//! lock file that Linux builds is judged by `xtask/dependencies.toml`, and a line there that nothing needs is an error too.

mod bill_of_materials;
mod notices;

pub(crate) use bill_of_materials::bill_of_materials;
pub(crate) use notices::notices;

use crate::{cargo, programs, top};
use anyhow::{Context, ensure};
use semver::{Version, VersionReq};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What is linked into the program, as `cargo tree` selects it: without crates that only run while it is built, with features as they are
/// built for it. Cargo's metadata have the features of all members and of their tests in one.
const LINKED: [&str; 9] = [
    "tree",
    "--locked",
    "--quiet",
    "--package",
    "brunt",
    "--target",
    "x86_64-unknown-linux-gnu",
    "--edges",
    "normal,no-proc-macro",
];

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
    reviewed: Reviewed,
    /// Known advisories about crates of the lock file, whatever their version.
    #[serde(default, rename = "advisory")]
    advisories: Vec<Advisory>,
}

/// What was looked up in the database of advisories, and when: a crate that is new has not passed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reviewed {
    /// Of the database, as 2026-10-06.
    date: String,
    /// Names and versions.
    crates: BTreeSet<String>,
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
    /// IDs of the crates that it links, if the program links it.
    links: BTreeSet<String>,
}

/// What is in a package and is no crate.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) licence: &'static str,
    /// A package URL.
    pub(crate) address: String,
    /// Its copyrights and licences.
    pub(crate) notice: String,
}

impl System {
    /// The standard library of the compiler that builds the program.
    ///
    /// # Errors
    /// The compiler cannot be run, or comes without its copyrights.
    pub(crate) fn rust() -> anyhow::Result<Self> {
        let printed = |option| programs::output(Command::new("rustc").args(option).current_dir(top()));
        let version = printed(["--version", "--verbose"].as_slice())?;
        let version = version.lines().find_map(|line| line.strip_prefix("release: "));
        let version = version.context("rustc has no release")?.to_owned();
        let path = PathBuf::from(printed(&["--print", "sysroot"])?.trim())
            .join("share/doc/rust/COPYRIGHT-library.html");
        let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let address = format!("pkg:generic/rust-std@{version}");
        let licence = "Apache-2.0 OR MIT";
        Ok(Self { name: "rust-std", version, licence, address, notice: notices::text_of_page(&page) })
    }
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
        let tree = [&LINKED[..], &["--prefix", "depth", "--format", " {p}"]].concat();
        Self::of(&serde_json::from_slice(&output.stdout)?, &programs::output(&mut cargo::command(&tree))?)
            .context("cargo's metadata or tree have another form")
    }

    /// A line of the tree has its level, name and version, such as `2 rustix v1.1.2 (*)`, and stands below the crate that links it.
    fn of(metadata: &Value, tree: &str) -> Option<Self> {
        let nodes = metadata["resolve"]["nodes"].as_array()?;
        let locked: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
        let dependency = |package: &Value| {
            let text = |key: &str| package[key].as_str();
            let id = text("id").filter(|id| locked.contains(id))?.to_owned();
            let folder = PathBuf::from(text("manifest_path")?).parent()?.to_owned();
            let (name, version) = (text("name")?.to_owned(), text("version")?.parse().ok()?);
            let licence = text("license").unwrap_or_default().replace('/', " OR ");
            Some((id.clone(), Dependency { id, name, version, licence, folder, links: BTreeSet::new() }))
        };
        let mut all: BTreeMap<String, Dependency> =
            metadata["packages"].as_array()?.iter().filter_map(dependency).collect();
        let ids: BTreeMap<String, String> =
            all.values().map(|dependency| (dependency.to_string(), dependency.id.clone())).collect();
        let mut above: Vec<&String> = Vec::new();
        for line in tree.lines() {
            let mut words = line.split(' ');
            let level = words.next()?.parse().ok()?;
            let id = ids.get(&format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))?;
            above.truncate(level);
            if let Some(parent) = above.last() {
                all.get_mut(*parent)?.links.insert(id.clone());
            }
            above.push(id);
        }
        Some(Self(all))
    }

    /// Crates of others.
    fn foreign(&self) -> impl Iterator<Item = &Dependency> {
        self.0.values().filter(|dependency| !dependency.is_ours())
    }

    /// What is linked into the program: the program first, then all other crates by name and version.
    pub(crate) fn of_program(&self) -> Vec<&Dependency> {
        let linked: BTreeSet<&String> = self.0.values().flat_map(|dependency| &dependency.links).collect();
        let is_program = |dependency: &&Dependency| dependency.name == "brunt";
        let is_listed = |dependency: &&Dependency| is_program(dependency) || linked.contains(&dependency.id);
        let mut listed: Vec<_> = self.0.values().filter(is_listed).collect();
        listed.sort_by_key(|dependency| (!is_program(dependency), &dependency.name, &dependency.version));
        listed
    }
}

/// Name and version.
impl std::fmt::Display for Dependency {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
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
    let rules: Rules = toml::from_str(&rules).context(path)?;
    let findings = rules.judge(&Graph::read()?);
    ensure!(findings.is_empty(), "{}\n  rules: {path}", findings.join("\n"));
    match rules.check_today()? {
        None => println!("    advisories: those of today"),
        Some(reason) => println!("    advisories: those of {} ({path}): {reason}", rules.reviewed.date),
    }
    Ok(())
}

impl Rules {
    /// Judges by the database as it is today, or returns why it cannot be had.
    fn check_today(&self) -> anyhow::Result<Option<&'static str>> {
        if programs::on_path("cargo-deny").is_none() {
            return Ok(Some("cargo-deny is not on the PATH"));
        }
        let accepted = self.advisories.iter().filter(|advisory| advisory.accepted.is_some());
        let accepted: Vec<&str> = accepted.map(|advisory| advisory.id.as_str()).collect();
        let settings = tempfile::NamedTempFile::new()?;
        let targets = r#"graph.targets = ["x86_64-unknown-linux-gnu"]"#;
        std::fs::write(
            &settings,
            format!("{targets}\n[advisories]\nunsound = \"all\"\nignore = {accepted:?}\n"),
        )?;
        let deny = |words: &[&str]| {
            let mut deny = Command::new("timeout");
            deny.args(["8", "cargo-deny", "--log-level", "error", "--workspace", "--locked", "--config"]);
            deny.arg(settings.path()).args(words).current_dir(top()).stdin(Stdio::null());
            deny
        };
        if !deny(&["fetch", "db"]).output()?.status.success() {
            return Ok(Some("cargo-deny cannot fetch those of today"));
        }
        let check = deny(&["--offline", "check", "--hide-inclusion-graph", "advisories"]).output()?;
        ensure!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
        Ok(None)
    }

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
        let locked: BTreeSet<String> = graph.foreign().map(Dependency::to_string).collect();
        let not_reviewed = locked.difference(&self.reviewed.crates).map(|named| {
            format!("{named} is not reviewed: look it up in the RustSec database, and list what that has and the crate")
        });
        let unneeded_reviews = self.reviewed.crates.difference(&locked).map(String::as_str);
        let unneeded_duplicates = self
            .duplicates
            .keys()
            .filter(|name| versions.get(name.as_str()).is_none_or(|found| found.len() < 2));
        let unneeded_exceptions =
            self.licence_exceptions.keys().filter(|name| !versions.contains_key(name.as_str()));
        let unneeded = unneeded_duplicates.chain(unneeded_exceptions).map(String::as_str);
        let unneeded =
            unneeded.chain(unneeded_reviews).map(|name| format!("nothing needs the line of {name}"));
        licences.chain(advisories).chain(several).chain(not_reviewed).chain(unneeded).collect()
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

    /// The first of the packages is ours.
    pub(super) fn graph(packages: &[Package], tree: &str) -> Graph {
        let id = |index: usize| {
            let (name, version, _) = packages[index];
            format!("{}+x#{name}@{version}", if index == 0 { "path" } else { "registry" })
        };
        let package = |index: usize| {
            let (name, version, licence) = packages[index];
            json!({"id": id(index), "name": name, "version": version, "license": licence, "manifest_path": format!("/x/{name}/Cargo.toml")})
        };
        let node = |index: usize| json!({"id": id(index)});
        let all = 0..packages.len();
        let metadata = json!({"packages": all.clone().map(package).collect::<Vec<_>>(), "resolve": {"nodes": all.map(node).collect::<Vec<_>>()}});
        Graph::of(&metadata, tree).unwrap()
    }

    const RULES: &str = r#"
        licences = ["MIT", "Apache-2.0"]
        licence-exceptions = { copyleft = "LGPL-3.0" }
        duplicates = { twice = "of two others" }
        reviewed = { date = "2000-01-01", crates = [
            "old 1.2.0", "old 1.1.0", "old 0.4.9", "copyleft 1.0.0", "twice 1.0.0", "twice 2.0.0", "a 1.0.0", "a 2.0.0",
        ] }
        [[advisory]]
        crate = "old"
        id = "RUSTSEC-2000-0001"
        kind = "vulnerability"
        patched = [">=1.2.0"]
        unaffected = ["<0.5.0"]
    "#;

    #[test]
    fn crates_are_judged_by_licence_version_and_advisory() {
        let rows: [(&[Package], &[&str]); 9] = [
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
                &[("a", "1.0.1", "MIT")],
                &[
                    "a 1.0.1 is not reviewed: look it up in the RustSec database, and list what that has and the crate",
                ],
            ),
            (
                &[("b", "1.0.0", "MIT")],
                &[
                    "b 1.0.0 is not reviewed: look it up in the RustSec database, and list what that has and the crate",
                ],
            ),
            (
                &[("a", "1.0.0", "MIT"), ("a", "2.0.0", "MIT")],
                &["a is locked in several versions: 1.0.0, 2.0.0 (`cargo tree --invert`)"],
            ),
        ];
        let rules: Rules = toml::from_str(RULES).unwrap();
        for (packages, expected) in rows {
            let findings = rules.judge(&graph(&[&[("brunt", "0.2.0", "MIT")], packages].concat(), ""));
            let unneeded = |finding: &&String| !finding.starts_with("nothing needs");
            assert_eq!(findings.iter().filter(unneeded).collect::<Vec<_>>(), expected, "{packages:?}");
        }
        let unneeded = rules.judge(&graph(&[("brunt", "0.2.0", "MIT")], ""));
        let names = ["twice", "copyleft"].into_iter().chain(rules.reviewed.crates.iter().map(String::as_str));
        assert_eq!(
            unneeded,
            names.map(|name| format!("nothing needs the line of {name}")).collect::<Vec<_>>()
        );
    }

    /// `twice` is linked by two others, and by one of them in an older version.
    pub(super) const PACKAGES: [Package; 7] = [
        ("brunt", "0.2.0", "MIT"),
        ("brunt-plan", "0.2.0", "MIT"),
        ("b", "1.0.0", "Zlib"),
        ("a", "1.0.0", "MIT"),
        ("twice", "1.0.0", "MIT"),
        ("twice", "2.0.0", "MIT"),
        ("builder", "1.0.0", "MIT"),
    ];
    pub(super) const TREE: &str = "0 brunt v0.2.0 (/x)\n1 b v1.0.0\n2 twice v1.0.0\n1 brunt-plan v0.2.0 (/x)\n2 a v1.0.0\n\
        3 twice v2.0.0\n1 a v1.0.0 (*)\n";

    #[test]
    fn programs_have_what_the_tree_has() {
        let graph = graph(&PACKAGES, TREE);
        let listed: Vec<_> = graph.of_program().into_iter().map(row).collect();
        let expected = [
            "brunt 0.2.0: a 1.0.0, b 1.0.0, brunt-plan 0.2.0",
            "a 1.0.0: twice 2.0.0",
            "b 1.0.0: twice 1.0.0",
            "brunt-plan 0.2.0: a 1.0.0",
            "twice 1.0.0: ",
            "twice 2.0.0: ",
        ];
        assert_eq!(listed, expected);
    }

    /// A crate, and what it links.
    fn row(dependency: &Dependency) -> String {
        let name = |id: &String| id.rsplit('#').next().unwrap().replace('@', " ");
        let links: Vec<_> = dependency.links.iter().map(name).collect();
        format!("{} {}: {}", dependency.name, dependency.version, links.join(", "))
    }

    /// Both lists of a package against the flat list that cargo prints; by its edges each component of the bill is reached from the program.
    #[test]
    fn lists_of_a_package_are_what_cargo_links() {
        let flat = [&LINKED[..], &["--prefix", "none", "--no-dedupe"]].concat();
        let flat = programs::output(&mut cargo::command(&flat)).unwrap();
        let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ").replace(" v", " ");
        let linked: BTreeSet<String> = flat.lines().map(words).collect();

        let graph = Graph::read().unwrap();
        let rust = System::rust().unwrap();
        let bill: Value =
            serde_json::from_str(&bill_of_materials(&graph, std::slice::from_ref(&rust)).unwrap()).unwrap();
        let mut edges = BTreeMap::new();
        for edge in bill["dependencies"].as_array().unwrap() {
            let on: Vec<&str> =
                edge["dependsOn"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            edges.insert(edge["ref"].as_str().unwrap(), on);
        }
        let (mut reached, mut next) =
            (BTreeSet::new(), vec![bill["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
        while let Some(reference) = next.pop() {
            if reached.insert(reference) {
                next.extend(&edges[reference]);
            }
        }
        let of_crate = |reference: &str| Some(reference.strip_prefix("pkg:cargo/")?.replace('@', " "));
        assert_eq!(
            reached.iter().filter_map(|reference| of_crate(reference)).collect::<BTreeSet<_>>(),
            linked
        );
        let components = bill["components"].as_array().unwrap().iter();
        let mut listed: BTreeSet<_> =
            components.map(|component| component["purl"].as_str().unwrap()).collect();
        assert!(listed.contains(rust.address.as_str()));
        listed.insert(concat!("pkg:cargo/brunt@", env!("CARGO_PKG_VERSION")));
        assert_eq!(listed, reached);

        let text = notices(&graph, std::slice::from_ref(&rust)).unwrap();
        let list = text.split("\n\n").nth(1).unwrap().lines();
        let noticed: BTreeSet<String> =
            list.map(|line| line.trim().split(':').next().unwrap().to_owned()).collect();
        let is_ours = |name: &&String| name.starts_with("brunt");
        let foreign = linked.iter().filter(|name| !is_ours(name)).cloned();
        let others = [
            concat!("brunt-picture ", env!("CARGO_PKG_VERSION")).to_owned(),
            format!("rust-std {}", rust.version),
        ];
        assert_eq!(noticed, foreign.chain(others).collect());
        // Of what ring has of others in folders of its own, of the typeface of pictures, and of what the standard library is built of.
        for part in ["the fiat-crypto authors", "Bitstream Vera", "gimli-0."] {
            assert!(text.contains(part), "{part}");
        }
    }
}
