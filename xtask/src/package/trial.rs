//! `cargo xtask try-packages`: each package installed where it would be used, tried there, and removed.
//!
//! Root file systems without a compiler are made by debootstrap and thrown away; it takes root. Invariant: what is there behind the removal
//! is what was there before the installation.

use crate::{cargo, programs, top};
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

/// Its name, and shell commands that run in the root file system, in the folder of all packages.
struct Package {
    name: &'static str,
    /// How the commands that install and remove it begin in docs/install.md.
    documented: [&'static str; 2],
    /// What a person does before and behind them.
    around: [&'static str; 2],
    try_out: &'static [&'static str],
}

const MEASURE: &str = "brunt run -t 2s --warmup 500ms --progress none --allow BROKEN,LOAD,CLIENT,DATA";
const PAGES: &str = "brunt man run | grep -q 'TH.*brunt.run'";
const ARCHIVE: Package = Package {
    name: "archive",
    documented: ["zstd -dc", "cd /usr/local"],
    around: [":", ":"],
    try_out: &[MEASURE, PAGES, "test -s /usr/local/share/bash-completion/completions/brunt"],
};
const DEB: Package = Package {
    name: "deb",
    documented: ["dpkg --install", "dpkg --purge"],
    around: [":", ":"],
    try_out: &[
        MEASURE,
        PAGES,
        "test -s /usr/share/zsh/vendor-completions/_brunt -a -s /usr/share/man/man1/brunt-run.1.gz",
        "test -s /usr/share/man/man1/mcperf.1.gz && mutilate --version && rpc-perf --version && memaslap --version && mcperf --version",
    ],
};
const WHEEL: Package = Package {
    name: "wheel",
    documented: ["pip install ./", "pip uninstall"],
    around: ["python3 -m venv /opt/brunt", "! command -v brunt && rm -r /opt/brunt"],
    try_out: &[MEASURE, PAGES],
};

/// The Debian that is stable, and the oldest C library that registries have.
const ROOTS: [Root; 2] = [
    Root { suite: "bookworm", more: &["--include=python3-venv,zstd"], packages: &[ARCHIVE, DEB, WHEEL] },
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

/// Copies packages into a root file system. One without a zstd gets a stand-in, which prints the archive as the host unpacks it.
fn bring(packages: &Path, root: &Path) -> anyhow::Result<()> {
    let folder = root.join("packages");
    programs::run(Command::new("cp").arg("--recursive").args([packages, &folder]))?;
    if enter(root, "command -v zstd").is_err() {
        let stand_in = "#!/bin/sh\nexec cat /packages/unpacked\n";
        let unpack = r#"cd "$0" && zstd -qd -o unpacked *.tar.zst && printf '%s' "$1" > ../usr/bin/zstd && chmod +x ../usr/bin/zstd"#;
        programs::run(Command::new("sh").args(["-ec", unpack]).arg(&folder).arg(stand_in))?;
        println!("no zstd: the archive is unpacked by the host's");
    }
    Ok(())
}

/// A command of a document that begins so, as root types it: with its further lines, without its comment.
fn documented(text: &str, start: &str) -> Option<String> {
    let text = text.replace("sudo ", "").replace("\\\n", "");
    let line = text.lines().find(|line| line.starts_with(start))?;
    Some(line.split("  #").next()?.trim_end().to_owned())
}

/// Runs a shell command in a root file system, with /proc, and returns what it prints.
fn enter(root: &Path, command: &str) -> anyhow::Result<String> {
    let inside = r#"mount -t proc proc "$0/proc" && exec chroot "$0" sh -ec "cd /packages; $1""#;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--fork", "sh", "-c", inside])
        .arg(root)
        .arg(command)
        .env("PATH", "/opt/brunt/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    programs::output(&mut unshare)
}

fn try_out(package: &Package, root: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(top().join("docs/install.md"))?;
    let [install, remove] = package.documented.map(|start| {
        documented(&text, start).with_context(|| format!("docs/install.md has no command '{start}'"))
    });
    let ([before_it, behind_it], before) = (package.around, files(root)?);
    let start = Instant::now();
    enter(root, &format!("{before_it}; {}", install?))?;
    println!("{}: installed in {:.2} s", package.name, start.elapsed().as_secs_f64());
    for command in package.try_out {
        println!("# {command}\n{}", enter(root, command)?);
    }
    enter(root, &format!("{}; {behind_it}", remove?))?;
    ensure!(
        files(root)? == before,
        "the removal leaves: {:?}",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_document() {
        let text = fs::read_to_string(top().join("docs/install.md")).unwrap();
        let rows = [
            (
                ARCHIVE,
                "zstd -dc brunt-0.2.0-x86_64-linux.tar.zst |   tar -C /usr/local --keep-directory-symlink --no-overwrite-dir --strip-components=1 -xf -",
                "cd /usr/local && find bin share \\( -name 'brunt*' -o -name _brunt \\) -prune -exec rm -r {} + &&   \
                    find share/bash-completion share/doc share/fish share/man/man1 share/zsh -type d -empty -delete",
            ),
            (
                DEB,
                "dpkg --install brunt_0.2.0_amd64.deb brunt-legacy-tools_0.2.0_all.deb",
                "dpkg --purge brunt-legacy-tools brunt",
            ),
            (WHEEL, "pip install ./brunt_load-0.2.0-*.whl", "pip uninstall --yes brunt-load"),
        ];
        for (package, install, remove) in rows {
            let found = package.documented.map(|start| documented(&text, start).unwrap());
            assert_eq!(found, [install, remove], "{}", package.name);
        }
        assert_eq!(documented(&text, "zst -dc"), None);
    }
}
