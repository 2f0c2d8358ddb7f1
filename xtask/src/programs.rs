//! The programs that are not ours: real servers and a witness on the wire for the tests, and a profiler.
//!
//! Finds them on the PATH, installs the missing ones where that is allowed, else says what to do. Whether tests may run
//! without them is decided here and nowhere else; a test that finds a program missing asks for the same variable.

use anyhow::{bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Lets a person skip what needs real programs. The tests themselves look for it too.
pub(crate) const WITHOUT_SERVERS: &str = "BRUNT_TEST_WITHOUT_SERVERS";

/// A program that tests start, and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// What must be on the PATH.
    command: &'static str,
    /// The Debian package that has it.
    package: &'static str,
    /// What is not tested without it.
    needed_for: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program { command: "memcached", package: "memcached", needed_for: "tests against a real memcached" },
    Program { command: "redis-server", package: "redis-server", needed_for: "tests against a real Redis" },
    Program {
        command: "tcpdump",
        package: "tcpdump",
        needed_for: "tests that compare our times with the wire's",
    },
    Program {
        command: "python3",
        package: "python3",
        needed_for: "comparison with recorded cases of other load generators",
    },
];

/// What instructions are counted with.
const PROFILER: [Program; 2] = [
    Program { command: "valgrind", package: "valgrind", needed_for: "instructions per operation" },
    Program { command: "addr2line", package: "binutils", needed_for: "the names of inlined functions" },
];

/// What pages are looked at with.
const BROWSER: [Program; 1] =
    [Program { command: "chromium", package: "chromium", needed_for: "HTML pages in a browser" }];

/// How packages can be installed without a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installer {
    Root,
    Sudo,
}

/// What to do about missing programs.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Ready,
    Skip,
    Install(Installer),
    Refuse(String),
}

/// Sees to it that the programs are there. Returns what will not be tested: nothing, unless a person asked for that.
///
/// # Errors
/// When programs are missing and cannot be installed, or when tests are to be skipped where they must not be.
pub(crate) fn ensure() -> anyhow::Result<Vec<&'static Program>> {
    let without_servers = variable_is(WITHOUT_SERVERS, "1");
    let missing = missing_of(&PROGRAMS);
    let installer = if missing.is_empty() || without_servers { None } else { installer() };
    match decide(&missing, without_servers, in_continuous_integration(), installer) {
        Decision::Ready => Ok(Vec::new()),
        Decision::Skip => Ok(missing),
        Decision::Refuse(message) => bail!(message),
        Decision::Install(installer) => install(installer, &missing).map(|()| Vec::new()),
    }
}

/// Sees to it that a profiler is there.
///
/// # Errors
/// When it is missing and cannot be installed.
pub(crate) fn ensure_profiler() -> anyhow::Result<()> {
    ensure_all(&PROFILER)
}

/// Sees to it that a browser is there.
///
/// # Errors
/// When it is missing and cannot be installed.
pub(crate) fn ensure_browser() -> anyhow::Result<()> {
    ensure_all(&BROWSER)
}

fn ensure_all(programs: &'static [Program]) -> anyhow::Result<()> {
    let missing = missing_of(programs);
    match (missing.is_empty(), installer()) {
        (true, _) => Ok(()),
        (false, Some(installer)) => install(installer, &missing),
        (false, None) => bail!(remedy(&missing)),
    }
}

/// Do others rely on the outcome, so that nothing may be left out?
pub(crate) fn in_continuous_integration() -> bool {
    variable_is("CI", "true")
}

/// Says what was not tested, in a way that is not overlooked.
pub(crate) fn announce_skipped(skipped: &[&Program]) {
    for program in skipped {
        println!("NOT TESTED: {} ({} is missing, {WITHOUT_SERVERS}=1)", program.needed_for, program.command);
    }
}

fn decide(
    missing: &[&Program],
    without_servers: bool,
    in_continuous_integration: bool,
    installer: Option<Installer>,
) -> Decision {
    match (missing.is_empty(), without_servers, installer) {
        (_, true, _) if in_continuous_integration => Decision::Refuse(format!(
            "{WITHOUT_SERVERS}=1 is not accepted where CI=true: tests against real servers may not be left out there"
        )),
        (true, _, _) => Decision::Ready,
        (false, true, _) => Decision::Skip,
        (false, false, Some(installer)) => Decision::Install(installer),
        (false, false, None) => Decision::Refuse(format!(
            "{}\n  or leave out the tests that need them: {WITHOUT_SERVERS}=1 cargo xtask test",
            remedy(missing)
        )),
    }
}

fn remedy(missing: &[&Program]) -> String {
    let (commands, packages) = (commands(missing), packages(missing).join(" "));
    format!("not on the PATH: {commands}\n  install: sudo apt-get install {packages}")
}

fn commands(programs: &[&Program]) -> String {
    programs.iter().map(|program| program.command).collect::<Vec<_>>().join(", ")
}

fn packages(programs: &[&Program]) -> Vec<&'static str> {
    programs.iter().map(|program| program.package).collect()
}

fn variable_is(name: &str, value: &str) -> bool {
    std::env::var_os(name).is_some_and(|given| given == value)
}

fn missing_of(programs: &'static [Program]) -> Vec<&'static Program> {
    programs.iter().filter(|program| on_path(program.command).is_none()).collect()
}

/// Where a program lies, if it is there.
pub(crate) fn on_path(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(command)).find(|path| path.is_file())
}

fn installer() -> Option<Installer> {
    if on_path("apt-get").is_none() {
        None
    } else if Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
        Some(Installer::Root)
    } else if succeeds(Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null())) {
        Some(Installer::Sudo)
    } else {
        None
    }
}

fn install(installer: Installer, missing: &[&'static Program]) -> anyhow::Result<()> {
    apt_get_install(installer, missing)?;
    let mut missing = missing.to_vec();
    missing.retain(|program| on_path(program.command).is_none());
    ensure!(missing.is_empty(), "installed, but still not on the PATH: {}", commands(&missing));
    Ok(())
}

fn apt_get_install(installer: Installer, missing: &[&Program]) -> anyhow::Result<()> {
    let packages = packages(missing);
    println!("installing with apt-get: {}", packages.join(" "));
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(&packages);
    // A fresh container has no package lists at all; elsewhere the lists there are usually do, and are quicker.
    if succeeds(&mut apt_get(installer, &install)) {
        return Ok(());
    }
    println!("that failed: fetching package lists, then trying once more");
    let updated = succeeds(&mut apt_get(installer, &["update"]));
    if updated && succeeds(&mut apt_get(installer, &install)) {
        return Ok(());
    }
    bail!(
        "apt-get cannot install {} and said why, above; install what is missing by hand",
        packages.join(" ")
    )
}

fn apt_get(installer: Installer, arguments: &[&str]) -> Command {
    let mut command = match installer {
        Installer::Root => Command::new("env"),
        Installer::Sudo => Command::new("sudo"),
    };
    if installer == Installer::Sudo {
        command.args(["-n", "env"]);
    }
    // `env` behind `sudo`, because sudo drops variables of ours. The lock may be held for a while by a timer's update.
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=120"]);
    command.args(arguments).current_dir(Path::new("/"));
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_decided_upon() {
        let one: &[&Program] = &[&PROGRAMS[0]];
        let root = Some(Installer::Root);
        let table = [
            (&[] as &[&Program], false, true, None, "Ready"),
            (&[], true, false, None, "Ready"),
            (&[], true, true, None, "Refuse"),
            (one, true, false, root, "Skip"),
            (one, true, true, root, "Refuse"),
            (one, false, true, root, "Install(Root)"),
            (one, false, false, Some(Installer::Sudo), "Install(Sudo)"),
            (one, false, true, None, "Refuse"),
        ];
        for (missing, without_servers, ci, installer, expected) in table {
            let decision = format!("{:?}", decide(missing, without_servers, ci, installer));
            assert!(
                decision.starts_with(expected),
                "{missing:?} {without_servers} {ci} {installer:?}: {decision}"
            );
        }
    }

    #[test]
    fn errors_name_the_packages_to_install() {
        let Decision::Refuse(message) = decide(&[&PROGRAMS[0], &PROGRAMS[1]], false, false, None) else {
            panic!("two programs are missing and cannot be installed")
        };
        assert!(message.contains("memcached, redis-server"), "{message}");
        assert!(message.contains("apt-get install memcached redis-server"), "{message}");
    }
}
