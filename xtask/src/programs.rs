//! Programs that are not ours: real servers and tcpdump for the tests, a profiler, a browser.
//!
//! Finds them on the PATH, installs the missing ones if that takes no password, else tells what to install. Whether tests may run
//! without servers is decided here; a test that finds a program missing looks at the same variable.

use anyhow::{Context, bail, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Lets a person skip tests against real servers. The tests themselves look for it, too.
const WITHOUT_SERVERS: &str = "BRUNT_TEST_WITHOUT_SERVERS";

/// What must be on the PATH, the Debian package that has it, and what is not tested without it.
pub(crate) type Program = (&'static str, &'static str, &'static str);

const SERVERS: [Program; 5] = [
    ("memcached", "memcached", "tests against a real memcached"),
    ("redis-server", "redis-server", "tests against a real Redis"),
    ("tcpdump", "tcpdump", "tests that compare our times with the wire's"),
    ("openssl", "openssl", "tests of TLS with certificates that it makes"),
    ("python3", "python3", "comparison with recorded cases of other load generators"),
];

/// What instructions are counted with.
pub(crate) const PROFILER: &[Program] = &[("valgrind", "valgrind", "instructions per operation")];

/// What pages are looked at with.
pub(crate) const BROWSER: &[Program] = &[("chromium", "chromium", "HTML pages in a browser")];

/// Who reads what `brunt fleet` prints.
pub(crate) const FLEET: &[Program] = &[
    ("shellcheck", "shellcheck", "the script for Slurm"),
    ("sbatch", "slurm-wlm", "a job of Slurm"),
    ("munged", "munge", "a job of Slurm"),
];

/// What a screen of a terminal is taken from.
pub(crate) const TERMINAL: &[Program] = &[("tmux", "tmux", "pictures of a terminal")];

/// Do others rely on the outcome, so that nothing may be left out?
pub(crate) fn in_continuous_integration() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

/// Installs servers that are missing. Returns what will not be tested: nothing, unless a person asked for that.
///
/// # Errors
/// Programs are missing and cannot be installed, or tests are to be skipped where they must not be.
pub(crate) fn ensure_servers() -> anyhow::Result<Vec<String>> {
    let is_allowed = std::env::var_os(WITHOUT_SERVERS).is_some_and(|value| value == "1");
    match skipped(&missing_of(&SERVERS), is_allowed, in_continuous_integration())? {
        Some(skipped) => Ok(skipped),
        None => ensure_all(&SERVERS).map(|()| Vec::new()).with_context(|| {
            format!("to leave out the tests that need them: {WITHOUT_SERVERS}=1 cargo xtask test")
        }),
    }
}

/// What is skipped without these programs; `None` if they are to be there.
fn skipped(missing: &[Program], is_allowed: bool, in_ci: bool) -> anyhow::Result<Option<Vec<String>>> {
    ensure!(
        !(is_allowed && in_ci),
        "{WITHOUT_SERVERS}=1 cannot be used with CI: tests against real servers may not be left out there"
    );
    let lines = missing
        .iter()
        .map(|(command, _, part)| format!("NOT TESTED: {part} ({command} is missing, {WITHOUT_SERVERS}=1)"));
    Ok(is_allowed.then(|| lines.collect()))
}

/// Installs what is missing.
///
/// # Errors
/// Something is missing and cannot be installed.
pub(crate) fn ensure_all(programs: &[Program]) -> anyhow::Result<()> {
    let missing = missing_of(programs);
    if missing.is_empty() {
        return Ok(());
    }
    let Some(installer) = installer() else { bail!(remedy(&missing)) };
    install(installer, &packages(&missing))?;
    let missing = missing_of(programs);
    ensure!(missing.is_empty(), "installed, but still not on the PATH: {}", commands(&missing));
    Ok(())
}

fn remedy(missing: &[Program]) -> String {
    format!(
        "not on the PATH: {}\n  install: sudo apt-get install {}",
        commands(missing),
        packages(missing).join(" ")
    )
}

fn commands(programs: &[Program]) -> String {
    programs.iter().map(|(command, ..)| *command).collect::<Vec<_>>().join(", ")
}

fn packages(programs: &[Program]) -> Vec<&'static str> {
    programs.iter().map(|(_, package, _)| *package).collect()
}

fn missing_of(programs: &[Program]) -> Vec<Program> {
    programs.iter().filter(|(command, ..)| on_path(command).is_none()).copied().collect()
}

/// The path of a program that is on the PATH.
pub(crate) fn on_path(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(command)).find(|path| path.is_file())
}

/// What a command begins with that may install packages without a password. `env` behind `sudo`, which drops our variables.
fn installer() -> Option<&'static [&'static str]> {
    on_path("apt-get")?;
    let is_root =
        Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if is_root {
        return Some(&["env"]);
    }
    succeeds(Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()))
        .then_some(&["sudo", "-n", "env"])
}

fn install(installer: &[&str], packages: &[&str]) -> anyhow::Result<()> {
    println!("installing with apt-get: {}", packages.join(" "));
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new(installer[0]);
        command.args(&installer[1..]).args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
        // The lock may be held for a while by a timer's update.
        succeeds(command.args(["-o", "DPkg::Lock::Timeout=120"]).args(arguments).current_dir("/"))
    };
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    // A fresh container has no package lists at all; elsewhere the lists there are usually do, and are quicker.
    let is_installed = apt_get(&install) || (apt_get(&["update"]) && apt_get(&install));
    ensure!(is_installed, "apt-get cannot install {}: see above", packages.join(" "));
    Ok(())
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be run, or fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// What a command prints.
///
/// # Errors
/// It cannot be run, fails, or prints no text.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let printed = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{command:?} ended with {}\n{printed}", output.status);
    Ok(printed)
}

/// The PATH with a folder before all others.
///
/// # Errors
/// The folder's name has a colon.
pub(crate) fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)))?)
}

/// Installs packages of Python in a virtual environment of their own. Debian has what makes one apart from Python, without a program.
pub(crate) fn install_python(folder: &Path, packages: &[&str]) -> anyhow::Result<()> {
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip"]).stderr(Stdio::null())) {
        let Some(installer) = installer() else { bail!(remedy(&[("python3", "python3-venv", "Python")])) };
        install(installer, &["python3", "python3-venv"])?;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(packages))
        .with_context(|| format!("cannot install {}", packages.join(" and ")))
}

/// The first line that a program prints.
pub(crate) fn first_line(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

/// What the CPUs of this machine are called.
pub(crate) fn cpu_model() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    model.trim_start_matches([' ', '\t', ':']).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_left_out_only_where_a_person_asks() {
        let one = &SERVERS[..1];
        let line =
            "NOT TESTED: tests against a real memcached (memcached is missing, BRUNT_TEST_WITHOUT_SERVERS=1)";
        let table = [
            (&[][..], false, true, Some(None)),
            (&[], true, false, Some(Some(vec![]))),
            (&[], true, true, None),
            (one, true, false, Some(Some(vec![line.to_owned()]))),
            (one, true, true, None),
            (one, false, true, Some(None)),
        ];
        for (missing, is_allowed, in_ci, expected) in table {
            assert_eq!(
                skipped(missing, is_allowed, in_ci).ok(),
                expected,
                "{missing:?} {is_allowed} {in_ci}"
            );
        }
    }

    #[test]
    fn errors_name_the_packages_to_install() {
        let expected = "not on the PATH: memcached, redis-server\n  install: sudo apt-get install memcached redis-server";
        assert_eq!(remedy(&SERVERS[..2]), expected);
    }
}
