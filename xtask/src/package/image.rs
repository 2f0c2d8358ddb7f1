//! An OCI image: the program, the C library that it is linked to, and nothing else.
//!
//! buildah makes it, without a daemon and without privileges. Invariant: no shell or package manager is in it, and its user has no privileges.

use super::{MACHINE, Workshop, program};
use crate::dependencies::System;
use crate::programs;
use anyhow::Context;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Neither root nor a user of a host.
const USER: &str = "65532:65532";
/// What the program links, and what it opens to look up names.
const LIBRARIES: [&str; 5] = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"];
const LIBRARY_FOLDER: &str = "lib/x86_64-linux-gnu";
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Makes it as an archive that podman, docker and skopeo load.
///
/// # Errors
/// The C library's package cannot be had, or buildah fails.
pub(super) fn make(workshop: &Workshop, tree: &Path) -> anyhow::Result<()> {
    let root = workshop.scratch("root");
    lay_out(workshop, tree, &root)?;
    let buildah = |words: &[&str]| {
        let mut buildah = Command::new("buildah");
        let storage = [("--root", "storage"), ("--runroot", "storage-run")];
        for (option, name) in storage {
            buildah.arg(option).arg(workshop.scratch(name));
        }
        programs::output(
            buildah.args(["--storage-driver", "vfs"]).args(words).env("BUILDAH_ISOLATION", "chroot"),
        )
    };
    let container = buildah(&["from", "scratch"])?;
    let container = container.trim();
    let root = root.to_str().context("the temporary folder's name is no text")?;
    buildah(&["copy", "--quiet", container, root, "/"])?;
    let version = format!("org.opencontainers.image.version={}", workshop.version);
    let labels = ["--label", &version, "--label", "org.opencontainers.image.licenses=Apache-2.0 OR MIT"];
    let entry = ["--entrypoint", r#"["/usr/bin/brunt"]"#, "--cmd", "", "--user", USER, "--workingdir", "/"];
    buildah(&[&["config"], &labels[..], &entry[..], &[container]].concat())?;
    let tag = format!("brunt:{}", workshop.version);
    buildah(&["commit", "--quiet", "--format=oci", "--timestamp", &workshop.epoch_s, container, &tag])?;
    let layout = workshop.scratch("image");
    buildah(&["push", "--quiet", &tag, &format!("oci:{}:{tag}", layout.display())])?;
    buildah(&["rm", container])?;
    workshop.settle(&layout)?;
    workshop.pack(&layout, ".", &format!("brunt-{}-x86_64.oci.tar", workshop.version), &[])
}

fn lay_out(workshop: &Workshop, tree: &Path, root: &Path) -> anyhow::Result<()> {
    let library = workshop.scratch("libc");
    fs::create_dir_all(&library)?;
    programs::run(Command::new("apt-get").args(["-qq", "download", "libc6"]).current_dir(&library))?;
    let package = fs::read_dir(&library)?.next().context("apt-get downloaded nothing")??.path();
    programs::run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&library))?;
    for folder in ["usr/bin", "usr/share/doc/libc6", "lib64", LIBRARY_FOLDER, "etc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for name in LIBRARIES {
        fs::copy(library.join(LIBRARY_FOLDER).join(name), root.join(LIBRARY_FOLDER).join(name))?;
    }
    fs::copy(library.join(LIBRARY_FOLDER).join(LOADER), root.join("lib64").join(LOADER))?;
    let copyright = "usr/share/doc/libc6/copyright";
    fs::copy(library.join(copyright), root.join(copyright))?;
    fs::copy(tree.join("bin/brunt"), root.join("usr/bin/brunt"))?;
    programs::run(
        Command::new("cp")
            .arg("--recursive")
            .arg(tree.join("share/doc/brunt"))
            .arg(root.join("usr/share/doc")),
    )?;
    program::write_notices(&root.join("usr/share/doc/brunt"), Some(glibc(&package, &root.join(copyright))?))?;
    // Names of /etc/hosts come before those of a name server, as everywhere.
    fs::write(root.join("etc/nsswitch.conf"), "hosts: files dns\n")?;
    workshop.settle(root)
}

/// What bills and licences say of the C library's package.
fn glibc(package: &Path, copyright: &Path) -> anyhow::Result<System> {
    let field = |name| programs::output(Command::new("dpkg-deb").arg("--field").arg(package).arg(name));
    let version = field("Version")?.trim().to_owned();
    let release = fs::read_to_string("/etc/os-release")?;
    let vendor = release.lines().find_map(|line| line.strip_prefix("ID=")).unwrap_or("debian");
    let address = format!("pkg:deb/{vendor}/libc6@{version}?arch={MACHINE}");
    let notice = fs::read_to_string(copyright)?.trim_end().to_owned();
    Ok(System { name: "glibc", version, licence: "LGPL-2.1-or-later", address, notice })
}
