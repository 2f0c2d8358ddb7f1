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
/// Where the package has them since /lib is a link to /usr/lib: Debian 13, Ubuntu 24.04.
const MERGED_FOLDER: &str = "usr/lib/x86_64-linux-gnu";
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
    for folder in ["usr/bin", "usr/share/doc/libc6", "etc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    copy_libraries(&library, root)?;
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

/// Copies what the program links from the C library's unpacked package: files, where that has links.
fn copy_libraries(package: &Path, root: &Path) -> anyhow::Result<()> {
    let copies = LIBRARIES.map(|name| (name, LIBRARY_FOLDER)).into_iter().chain([(LOADER, "lib64")]);
    for (name, to) in copies {
        let mut paths = [LIBRARY_FOLDER, MERGED_FOLDER].map(|from| package.join(from).join(name)).into_iter();
        let from = paths.find(|path| path.is_file()).with_context(|| format!("libc6 has no {name}"))?;
        fs::create_dir_all(root.join(to))?;
        fs::copy(from, root.join(to).join(name))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn libraries_are_found_wherever_their_package_has_them() {
        // Where files are, which link leads to them, and whether a library is a link to a file that has its version.
        let rows = [
            (LIBRARY_FOLDER, None, false),
            (LIBRARY_FOLDER, None, true),
            (MERGED_FOLDER, None, false),
            (MERGED_FOLDER, Some(("usr/lib", "lib")), false),
            (MERGED_FOLDER, Some(("usr/lib", "lib")), true),
        ];
        for row @ (folder, link, is_versioned) in rows {
            let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
            let [package, root] = [&folders[0], &folders[1]].map(tempfile::TempDir::path);
            fs::create_dir_all(package.join(folder)).unwrap();
            for name in LIBRARIES.iter().chain([&LOADER]) {
                let file = if is_versioned { format!("{name}-2.31") } else { (*name).to_owned() };
                fs::write(package.join(folder).join(&file), name).unwrap();
                if is_versioned {
                    symlink(file, package.join(folder).join(name)).unwrap();
                }
            }
            if let Some((to, from)) = link {
                symlink(to, package.join(from)).unwrap();
            }
            copy_libraries(package, root).unwrap();
            for path in LIBRARIES
                .map(|name| format!("{LIBRARY_FOLDER}/{name}"))
                .iter()
                .chain([&format!("lib64/{LOADER}")])
            {
                let copy = root.join(path);
                assert!(fs::symlink_metadata(&copy).unwrap().is_file(), "{row:?}: {path}");
                assert!(path.ends_with(&fs::read_to_string(copy).unwrap()), "{row:?}: {path}");
            }
        }
        let [package, root] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let error = copy_libraries(package.path(), root.path()).unwrap_err();
        assert_eq!(error.to_string(), "libc6 has no libc.so.6");
    }
}
