//! `cargo xtask try-packages`: each package installed where it would be used, tried there, and removed.
//!
//! Root file systems without a compiler are made by debootstrap and thrown away; it takes root. Invariant: what is there behind the removal
//! is what was there before the installation.

use crate::{cargo, programs};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A root file system, and how each kind of package is installed in it and removed.
struct Root {
    suite: &'static str,
    more: &'static [&'static str],
    packages: &'static [Package],
}

/// Its name, and shell commands that run in the root file system; `/packages` has all packages.
struct Package {
    name: &'static str,
    install: &'static str,
    remove: &'static str,
    try_out: &'static [&'static str],
}

const MEASURE: &str = "brunt run -t 2s --warmup 500ms --progress none --allow BROKEN,LOAD,CLIENT,DATA";
const PAGES: &str = "brunt man run | grep -q 'TH.*brunt.run'";
const ARCHIVE: Package = Package {
    name: "archive",
    install: "tar -C /usr/local --strip-components=1 -xf /packages/archive.tar",
    remove: "cd /usr/local && tar -tf /packages/archive.tar | sed 's,^[^/]*/,,' | grep -v '/$' | xargs rm && find share -type d -name '*brunt*' -delete",
    try_out: &[MEASURE, PAGES, "test -s /usr/local/share/bash-completion/completions/brunt"],
};
const DEB: Package = Package {
    name: "deb",
    install: "dpkg --install /packages/*.deb",
    remove: "dpkg --purge brunt-legacy-tools brunt",
    try_out: &[
        MEASURE,
        PAGES,
        "test -s /usr/share/zsh/vendor-completions/_brunt -a -s /usr/share/man/man1/brunt-run.1.gz",
        "mutilate --version && rpc-perf --version && memaslap --version && mcperf --version",
    ],
};
const WHEEL: Package = Package {
    name: "wheel",
    install: "python3 -m venv /opt/brunt && /opt/brunt/bin/pip install --quiet --no-index /packages/*.whl && ln -s /opt/brunt/bin/brunt /usr/bin/",
    remove: "/opt/brunt/bin/pip uninstall --quiet --yes brunt-load && ! test -e /opt/brunt/bin/brunt && rm -r /opt/brunt /usr/bin/brunt",
    try_out: &[MEASURE, PAGES],
};

/// The Debian that is stable, and the oldest C library that registries have.
const ROOTS: [Root; 2] = [
    Root { suite: "bookworm", more: &["--include=python3-venv"], packages: &[ARCHIVE, DEB, WHEEL] },
    Root { suite: "xenial", more: &["--no-check-gpg"], packages: &[ARCHIVE, DEB] },
];

/// Tries the packages that `cargo xtask package` has made.
///
/// # Errors
/// A package is not there, cannot be installed, does not run, or leaves something.
pub(crate) fn run() -> anyhow::Result<()> {
    programs::ensure_all(&[
        ("debootstrap", "debootstrap", "trials of packages"),
        ("unshare", "util-linux", "trials of packages"),
    ])?;
    let packages = cargo::target_folder()?.join("packages");
    ensure!(packages.join("SHA256SUMS").exists(), "no packages: run `cargo xtask package` first");
    let scratch = tempfile::Builder::new().prefix("brunt-roots-").tempdir()?;
    for Root { suite, more, packages: tried } in ROOTS {
        let root = scratch.path().join(suite);
        println!("==> {suite}");
        let mut debootstrap = Command::new("debootstrap");
        programs::output(debootstrap.arg("--variant=minbase").args(more).arg(suite).arg(&root))?;
        bring(&packages, &root)?;
        println!(
            "{}",
            enter(&root, "ldd --version | head -1; ! command -v cc && ! command -v cargo")?.trim()
        );
        for package in tried {
            try_out(package, &root).with_context(|| format!("{} in {suite}", package.name))?;
        }
    }
    try_image(&packages, &scratch.path().join("image"))
}

fn bring(packages: &Path, root: &Path) -> anyhow::Result<()> {
    let folder = root.join("packages");
    fs::create_dir(&folder)?;
    for entry in fs::read_dir(packages)? {
        let path = entry?.path();
        let name = path.file_name().context("a file")?;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("deb" | "whl") => drop(fs::copy(&path, folder.join(name))?),
            Some("zst") => programs::run(
                Command::new("zstd").args(["-qd", "-o"]).arg(folder.join("archive.tar")).arg(&path),
            )?,
            _ => {}
        }
    }
    Ok(())
}

/// Runs a shell command in a root file system, with /proc, and returns what it prints.
fn enter(root: &Path, command: &str) -> anyhow::Result<String> {
    let inside = r#"mount -t proc proc "$0/proc" && exec chroot "$0" sh -ec "$1""#;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--fork", "sh", "-c", inside])
        .arg(root)
        .arg(command)
        .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    programs::output(&mut unshare)
}

fn try_out(package: &Package, root: &Path) -> anyhow::Result<()> {
    let before = files(root)?;
    let start = Instant::now();
    enter(root, package.install)?;
    println!("{}: installed in {:.2} s", package.name, start.elapsed().as_secs_f64());
    for command in package.try_out {
        println!("# {command}\n{}", enter(root, command)?);
    }
    enter(root, package.remove)?;
    ensure!(
        files(root)? == before,
        "the removal leaves files: {:?}",
        files(root)?.difference(&before).collect::<Vec<_>>()
    );
    println!("{}: removed, nothing is left", package.name);
    Ok(())
}

/// Files and folders of a root file system, but of what packages are installed with.
fn files(root: &Path) -> anyhow::Result<std::collections::BTreeSet<String>> {
    let mut find = Command::new("find");
    find.arg(".");
    for path in ["./var/lib/dpkg", "./var/log", "./var/cache", "./proc", "*/__pycache__"] {
        find.args(["-path", path, "-prune", "-o"]);
    }
    find.args(["-print"]);
    Ok(programs::output(find.current_dir(root))?.lines().map(str::to_owned).collect())
}

/// Unpacks the layers of the image, and runs its entry point as its user, with nothing else to see.
fn try_image(packages: &Path, folder: &Path) -> anyhow::Result<()> {
    println!("==> image");
    let [layout, root] = ["layout", "root"].map(|name| folder.join(name));
    fs::create_dir_all(&layout)?;
    for mount_point in ["proc", "dev"] {
        fs::create_dir_all(root.join(mount_point))?;
    }
    let archive = fs::read_dir(packages)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with(".oci.tar"));
    programs::run(Command::new("tar").arg("-xf").arg(archive.context("no image")?).arg("-C").arg(&layout))?;
    let blob = |descriptor: &Value| -> anyhow::Result<PathBuf> {
        Ok(layout
            .join("blobs")
            .join(descriptor["digest"].as_str().context("a descriptor without a digest")?.replace(':', "/")))
    };
    let json = |path: PathBuf| -> anyhow::Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    let manifest = json(blob(&json(layout.join("index.json"))?["manifests"][0])?)?;
    for layer in manifest["layers"].as_array().context("no layers")? {
        programs::run(Command::new("tar").arg("-xzf").arg(blob(layer)?).arg("-C").arg(&root))?;
    }
    let settings = &json(blob(&manifest["config"])?)?["config"];
    let (entry, user) = (
        settings["Entrypoint"][0].as_str().context("no entry point")?,
        settings["User"].as_str().context("no user")?,
    );
    let inside = format!(
        r#"mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot --userspec={user} "$0" {entry} run -t 2s --warmup 500ms --progress none --allow BROKEN,LOAD,CLIENT,DATA"#
    );
    println!(
        "{user}: {entry}\n{}",
        programs::output(
            Command::new("unshare").args(["--mount", "--fork", "sh", "-c", &inside]).arg(&root)
        )?
    );
    Ok(())
}
