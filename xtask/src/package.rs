//! `cargo xtask package`: brunt for those who do not build it, as an archive, Debian packages, a wheel, an image and crates.
//!
//! One program, built against an old C library, is in all of them but the crates. Invariant: two clones of a commit give the same
//! bytes: no path, date, user or order of a folder is in a package.

mod debian;
mod image;
mod program;
mod trial;

use crate::programs::{self, Program};
use crate::{cargo, top};
use anyhow::{Context, ensure};
use clap::ValueEnum;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use trial::run as try_out;

/// As Debian names it.
const MACHINE: &str = "amd64";
const SUMS: &str = "SHA256SUMS";

/// Options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these; those of other kinds stay as they are [default: all]
    #[arg(long, value_name = "KIND,...", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Only if this is the tag of the version, e.g. v0.2.0
    #[arg(long)]
    tag: Option<String>,
}

/// A form in which brunt is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The program with manual pages and completions, to be unpacked anywhere
    Archive,
    /// Packages of Debian: brunt, and brunt-legacy-tools with the names of the four tools
    Deb,
    /// A Python wheel, brunt-load
    Wheel,
    /// An OCI image
    Image,
    /// Crates, as a registry takes them
    Crates,
}

impl Kind {
    fn programs(self) -> &'static [Program] {
        match self {
            Self::Archive => &[("zstd", "zstd", "archives")],
            Self::Deb => &[("dpkg-deb", "dpkg", "Debian packages")],
            Self::Image => {
                &[("buildah", "buildah", "images"), ("dpkg-deb", "dpkg", "the C library of images")]
            }
            Self::Wheel | Self::Crates => &[],
        }
    }

    /// How names of its packages end.
    fn ending(self) -> &'static str {
        match self {
            Self::Archive => ".tar.zst",
            Self::Deb => ".deb",
            Self::Wheel => ".whl",
            Self::Image => ".oci.tar",
            Self::Crates => ".crate",
        }
    }
}

/// Where packages are made, and what is in all of them.
struct Workshop {
    /// What others get.
    folder: PathBuf,
    /// Removed at the end.
    scratch: tempfile::TempDir,
    version: String,
    /// Date of the commit, and of every file: seconds since 1970.
    epoch_s: String,
}

/// Makes packages instead of earlier ones of their kinds, and a list of the SHA-256 sums of all that are there.
///
/// # Errors
/// A package cannot be made, or was skipped since a program is missing.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    options.tag.as_deref().map_or(Ok(()), check_tag)?;
    let kinds = if options.only.is_empty() { Kind::value_variants() } else { &options.only };
    let workshop = Workshop::open()?;
    let mut skipped = Vec::new();
    let mut tree = None;
    for kind in kinds {
        workshop.remove(*kind)?;
        let name = kind.to_possible_value().expect("no kind is hidden").get_name().to_owned();
        let is_ready = programs::ensure_all(kind.programs()).and_then(|()| match (kind, &tree) {
            (Kind::Crates, _) | (_, Some(_)) => Ok(()),
            (_, None) => program::ensure_builder(),
        });
        if let Err(reason) = is_ready {
            println!("SKIPPED: {name}: {}", format!("{reason:#}").replace('\n', ";"));
            skipped.push(name);
            continue;
        }
        println!("==> {name}");
        if *kind != Kind::Crates && tree.is_none() {
            tree = Some(program::make_tree(&workshop)?);
        }
        match (kind, &tree) {
            (Kind::Archive, Some(tree)) => workshop.make_archive(tree)?,
            (Kind::Deb, Some(tree)) => debian::make(&workshop, tree)?,
            (Kind::Image, Some(tree)) => image::make(&workshop, tree)?,
            (Kind::Wheel, _) => program::keep_wheel(&workshop)?,
            _ => workshop.make_crates()?,
        }
    }
    workshop.write_sums()?;
    ensure!(skipped.is_empty(), "skipped: {} (--only KIND,... leaves them out)", skipped.join(", "));
    Ok(())
}

/// A release is named for the version that its programs print.
fn check_tag(tag: &str) -> anyhow::Result<()> {
    let expected = concat!("v", env!("CARGO_PKG_VERSION"));
    ensure!(
        tag == expected,
        "invalid value '{tag}' for --tag: expected {expected}, the version in Cargo.toml"
    );
    Ok(())
}

impl Workshop {
    fn open() -> anyhow::Result<Self> {
        let folder = cargo::target_folder()?.join("packages");
        fs::create_dir_all(&folder)?;
        let mut git = Command::new("git");
        let epoch_s = programs::output(git.args(["log", "-1", "--format=%ct"]).current_dir(top()))?;
        let scratch = tempfile::Builder::new().prefix("brunt-package-").tempdir()?;
        Ok(Self {
            folder,
            scratch,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch_s: epoch_s.trim().to_owned(),
        })
    }

    /// Packages of a kind that were made earlier, and sums that will not fit.
    fn remove(&self, kind: Kind) -> anyhow::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.to_string_lossy();
            if name.ends_with(kind.ending()) || name.ends_with(SUMS) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn scratch(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Gives files and folders the modes and the date that all packages have.
    fn settle(&self, folder: &Path) -> anyhow::Result<()> {
        programs::run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(folder))?;
        let date = format!("--date=@{}", self.epoch_s);
        let mut find = Command::new("find");
        programs::run(find.arg(folder).args(["-exec", "touch", "--no-dereference", &date, "{}", "+"]))
    }

    /// Packs a folder that is settled as a tar file whose paths begin with `name`.
    fn pack(&self, folder: &Path, name: &str, file: &str, more: &[&str]) -> anyhow::Result<()> {
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
            .args(more);
        tar.arg(format!("--transform=s,^\\.,{name},")).arg("--file").arg(self.folder.join(file));
        programs::run(tar.arg("--directory").arg(folder).arg("."))
    }

    fn make_archive(&self, tree: &Path) -> anyhow::Result<()> {
        let name = format!("brunt-{}-x86_64-linux", self.version);
        self.pack(tree, &name, &format!("{name}.tar.zst"), &["--use-compress-program=zstd -19 --threads=1"])
    }

    /// The crates in the order in which a registry takes them, each built from what is in its package.
    fn make_crates(&self) -> anyhow::Result<()> {
        let own = ["xtask", "brunt-bench", "brunt-fuzz"].map(|name| format!("--exclude={name}"));
        let target = self.scratch("crates");
        let mut package = cargo::command(&["package", "--workspace", "--locked", "--target-dir"]);
        programs::run(package.arg(&target).args(own))?;
        for entry in fs::read_dir(target.join("package"))? {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new("crate")) {
                fs::copy(&path, self.folder.join(path.file_name().context("a file")?))?;
            }
        }
        Ok(())
    }

    fn write_sums(&self) -> anyhow::Result<()> {
        let mut names: Vec<_> = fs::read_dir(&self.folder)?
            .map(|entry| anyhow::Ok(entry?.file_name()))
            .collect::<Result<_, _>>()?;
        names.sort();
        if names.is_empty() {
            return Ok(());
        }
        let sums = programs::output(Command::new("sha256sum").args(&names).current_dir(&self.folder))?;
        fs::write(self.folder.join(SUMS), &sums)?;
        println!("{}:\n{sums}", self.folder.display());
        for name in names {
            println!(
                "{:9.2} MB  {}",
                fs::metadata(self.folder.join(&name))?.len() as f64 / 1e6,
                name.display()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verb;
    use clap::Parser;

    #[test]
    fn only_the_tag_of_the_version_is_released() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("expected v{version}, the version in Cargo.toml");
        for (tag, is_accepted) in [
            (format!("v{version}"), true),
            (version.to_owned(), false),
            (format!("v{version}-rc1"), false),
            ("v9.9.9".to_owned(), false),
            (String::new(), false),
        ] {
            let message = check_tag(&tag).err().map(|error| error.to_string());
            let rejected = format!("invalid value '{tag}' for --tag: {expected}");
            assert_eq!(message, (!is_accepted).then_some(rejected), "{tag}");
        }
    }

    /// Registries show it where our other documents are not.
    #[test]
    fn readme_of_packages_has_no_links() {
        let readme = |manifest: &str| {
            let path = top().join(manifest);
            let text = fs::read_to_string(&path).unwrap();
            let named = text
                .lines()
                .find_map(|line| line.strip_prefix("readme = "))
                .unwrap()
                .trim_matches('"')
                .to_owned();
            fs::read_to_string(path.parent().unwrap().join(named)).unwrap()
        };
        let text = readme("pyproject.toml");
        assert_eq!(text, readme("crates/brunt/Cargo.toml"));
        for link in ["](", "<a", "<img", "<picture"] {
            assert!(!text.contains(link), "{link}");
        }
    }

    #[test]
    fn packages_of_other_kinds_stay_and_are_in_the_sums() {
        let all = ["a.tar.zst", "a.oci.tar", "a.deb", "b.deb", "a.whl", "a.crate", SUMS];
        for kind in Kind::value_variants() {
            let [folder, scratch] = [(); 2].map(|()| tempfile::tempdir().unwrap());
            all.iter().for_each(|name| fs::write(folder.path().join(name), name).unwrap());
            let workshop = Workshop {
                folder: folder.path().to_owned(),
                scratch,
                version: String::new(),
                epoch_s: String::new(),
            };
            workshop.remove(*kind).unwrap();
            workshop.write_sums().unwrap();
            let mut expected: Vec<_> =
                all[..6].iter().filter(|name| !name.ends_with(kind.ending())).collect();
            expected.sort();
            let sums = fs::read_to_string(folder.path().join(SUMS)).unwrap();
            let names: Vec<_> = sums.lines().map(|line| line.split("  ").nth(1).unwrap()).collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), expected, "{kind:?}");
        }
    }

    /// What runs for a tag: tests first, then what makes, tries and publishes, all of one compiler.
    #[test]
    fn releases_run_the_same_commands_wherever_the_source_is() {
        let files = [
            (".github/workflows/release.yml", "GITHUB_REF_NAME", "gh release create"),
            (".gitlab-ci.yml", "CI_COMMIT_TAG", "  release:"),
        ];
        let manifest: toml::Table = fs::read_to_string(top().join("Cargo.toml")).unwrap().parse().unwrap();
        let compiler = format!("{}.0", manifest["workspace"]["package"]["rust-version"].as_str().unwrap());
        for (path, tag, publish) in files {
            let text = fs::read_to_string(top().join(path)).unwrap();
            assert!(text.contains(&compiler), "{path}");
            let package = format!("cargo xtask package --tag \"${tag}\"");
            let mut rest = text.as_str();
            for step in [".ci/run", &package, "cargo xtask try-packages", publish] {
                rest = rest.split_once(step).unwrap_or_else(|| panic!("{path}: '{step}' in this order")).1;
            }
            let commands = text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(|line| line.split_once("cargo xtask "));
            for (_, words) in commands {
                Verb::try_parse_from(std::iter::once("xtask").chain(words.split(' '))).unwrap();
            }
        }
    }
}
