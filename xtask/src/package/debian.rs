//! Packages of Debian: the program, and the names of the tools whose command lines it takes.
//!
//! dpkg-deb packs them. Invariant: no maintainer script runs, so removal leaves nothing.

use super::{MACHINE, Workshop};
use crate::programs;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const LEGACY_TOOLS: [&str; 4] = ["mutilate", "memaslap", "mcperf", "rpc-perf"];
/// Where zsh looks on Debian for what packages bring.
const ZSH: [&str; 2] = ["usr/share/zsh/site-functions", "usr/share/zsh/vendor-completions"];

/// Makes both.
///
/// # Errors
/// dpkg-deb cannot pack them.
pub(super) fn make(workshop: &Workshop, tree: &Path) -> anyhow::Result<()> {
    let program = workshop.scratch("deb");
    fs::create_dir_all(&program)?;
    programs::run(Command::new("cp").args(["--archive"]).arg(tree).arg(program.join("usr")))?;
    fs::rename(program.join(ZSH[0]), program.join(ZSH[1]))?;
    let licence = "Copyright (c) 2026 The brunt authors\n\nLicensed under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0)\n\
        or the MIT License, as you like. The program links the libraries of\n/usr/share/doc/brunt/THIRD-PARTY.txt.\n";
    fs::write(program.join("usr/share/doc/brunt/copyright"), licence)?;
    let of_program = "Depends: libc6 (>= 2.17)\nSuggests: brunt-legacy-tools\n\
        Description: load generator and measuring instrument for cache servers\n \
        brunt loads memcached, Redis and Valkey, measures latency from the intended\n \
        send time, and says what is wrong with its own numbers.\n";
    pack(workshop, &program, "brunt", MACHINE, of_program)?;

    let links = workshop.scratch("legacy-deb");
    for folder in ["usr/bin", "usr/share/doc", "usr/share/man/man1"] {
        fs::create_dir_all(links.join(folder))?;
    }
    symlink("brunt", links.join("usr/share/doc/brunt-legacy-tools"))?;
    for name in LEGACY_TOOLS {
        symlink("brunt", links.join("usr/bin").join(name))?;
        let page = links.join(format!("usr/share/man/man1/{name}.1.gz"));
        symlink(format!("brunt-{name}.1.gz"), page)?;
    }
    let of_links = format!(
        "Depends: brunt (= {})\nDescription: brunt under the names of four older load generators\n \
        mutilate, memaslap, mcperf and rpc-perf as links to brunt, which takes their\n \
        command lines and prints what scripts expect of them.\n",
        workshop.version
    );
    pack(workshop, &links, "brunt-legacy-tools", "all", &of_links)
}

fn pack(workshop: &Workshop, folder: &Path, name: &str, machine: &str, more: &str) -> anyhow::Result<()> {
    let mut find = Command::new("find");
    let sizes = programs::output(find.args(["usr", "-type", "f", "-printf", "%s\n"]).current_dir(folder))?;
    let bytes: u64 = sizes.lines().filter_map(|size| size.parse::<u64>().ok()).sum();
    let mut sums = Command::new("find");
    let sums =
        programs::output(sums.args(["usr", "-type", "f", "-exec", "md5sum", "{}", "+"]).current_dir(folder))?;
    let mut sums: Vec<&str> = sums.lines().collect();
    sums.sort_unstable_by_key(|line| line.split_once("  "));
    let version = &workshop.version;
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {machine}\nMaintainer: The brunt authors\nSection: utils\nPriority: optional\n\
        Installed-Size: {}\n{more}",
        bytes.div_ceil(1024)
    );
    fs::create_dir_all(folder.join("DEBIAN"))?;
    fs::write(folder.join("DEBIAN/md5sums"), sums.iter().flat_map(|sum| [*sum, "\n"]).collect::<String>())?;
    fs::write(folder.join("DEBIAN/control"), control)?;
    workshop.settle(folder)?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(folder);
    build
        .arg(workshop.folder.join(format!("{name}_{version}_{machine}.deb")))
        .env("SOURCE_DATE_EPOCH", &workshop.epoch_s);
    programs::run(&mut build)
}
