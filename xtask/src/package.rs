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

/// Options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these [default: all]
    #[arg(long, value_name = "KIND,...", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
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

/// Makes packages, and a list of their SHA-256 sums.
///
/// # Errors
/// A package cannot be made, or was skipped since a program is missing.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let kinds = if options.only.is_empty() { Kind::value_variants() } else { &options.only };
    let workshop = Workshop::open()?;
    let mut skipped = Vec::new();
    let mut tree = None;
    for kind in kinds {
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

impl Workshop {
    fn open() -> anyhow::Result<Self> {
        let folder = cargo::target_folder()?.join("packages");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
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
        fs::write(self.folder.join("SHA256SUMS"), &sums)?;
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
