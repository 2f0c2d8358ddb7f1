//! The file that keeps calibrations: where it lies, what it says about a run on this host, how a new one gets in.
//!
//! Not the measuring (that is [`crate::calibrate`]) and not the format (`brunt-report` writes and reads it). Invariants: the
//! file is replaced as a whole or not at all; one that cannot be read prevents no measurement, and is never
//! overwritten.

use crate::destination::write_whole;
use crate::host;
use crate::input;
use brunt_engine::host::first_line;
use brunt_plan::plan::{Plan, Protocol, Transport};
use brunt_report::calibration::{read_all, write_all};
use brunt_stats::calibration::{Calibration, HostIdentity, Lookup, Shape, find};
use brunt_stats::usage::ClientUsage;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where calibrations are kept; `None` where the user has no home.
pub(crate) fn path() -> Option<PathBuf> {
    path_within(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
}

/// By the XDG base directory specification a path that is not absolute counts as none.
fn path_within(state_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let state_home = absolute(state_home).or_else(|| Some(absolute(home)?.join(".local/state")))?;
    Some(state_home.join("brunt/calibration.json"))
}

/// This host.
pub(crate) fn this_host() -> HostIdentity {
    let system = rustix::system::uname();
    HostIdentity {
        machine: machine(first_line("/etc/machine-id"), &system.nodename().to_string_lossy()),
        cpu_model: host::processor().unwrap_or_default(),
        allowed_cpus: host::allowed_cpus(),
        kernel: system.release().to_string_lossy().into_owned(),
    }
}

/// The id itself is confidential (machine-id(5)), and results are passed on.
fn machine(id: Option<String>, name: &str) -> String {
    match id.filter(|id| !id.is_empty()) {
        Some(id) => format!("{:016x}", rapidhash::v3::rapidhash_v3(id.as_bytes())),
        None => name.to_owned(),
    }
}

/// What is known about a run that is over.
pub(crate) fn lookup(plan: &Plan, usage: &ClientUsage) -> Lookup {
    let Some(path) = path() else { return Lookup::Absent };
    match read(&path) {
        Ok(kept) => {
            let found = find(&kept, &this_host(), &Shape::of(plan, usage), env!("CARGO_PKG_VERSION"));
            with_warning(found, plan)
        }
        Err(reason) => Lookup::Unfit(format!("{} {reason}; it is ignored", path.display())),
    }
}

/// A calibration is of the text protocol over TCP, whatever the run speaks and by what.
fn with_warning(found: Lookup, plan: &Plan) -> Lookup {
    let Lookup::Fit(mut fit) = found else { return found };
    let servers = plan.servers();
    if servers.iter().any(|server| server.protocol != Protocol::MemcachedText) {
        fit.differences.push(format!("with {}", Protocol::MemcachedText));
    }
    if servers.iter().any(|server| server.transport != Transport::Tcp) {
        fit.differences.push(format!("over {}", Transport::Tcp));
    }
    Lookup::Fit(fit)
}

/// Everything that is kept; nothing where there is no file. The error is in words that follow the file's name.
fn read(path: &Path) -> Result<Vec<Calibration>, String> {
    match input::read_text(path, input::BYTES_MAX) {
        Ok(text) => read_all(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// What became of a calibration that was to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreResult {
    /// Later runs go by it. A file that could not be read is put aside, and the note says so.
    Kept(Option<String>),
    /// It was disturbed and there is one of the same host and shape that was not, made at that second: that one stays.
    /// Where there is none, one that was disturbed, and says so, is better than nothing: on a host that is shared all
    /// are.
    EarlierStays(u64),
}

/// Keeps a calibration instead of an earlier one of the same host and shape.
pub(crate) fn keep(path: &Path, calibration: &Calibration) -> io::Result<StoreResult> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    let (mut kept, note) = match read(path) {
        Ok(kept) => (kept, None),
        Err(reason) => {
            let aside = path.with_extension("json.unreadable");
            fs::rename(path, &aside)?;
            (Vec::new(), Some(format!("{} {reason}; it is now {}", path.display(), aside.display())))
        }
    };
    let is_same = |held: &Calibration| (&held.host, &held.shape) == (&calibration.host, &calibration.shape);
    let is_better = |held: &&Calibration| is_same(held) && held.disturbed.is_none();
    if let Some(held) = kept.iter().find(is_better).filter(|_| calibration.disturbed.is_some()) {
        return Ok(StoreResult::EarlierStays(held.made_at_s));
    }
    kept.retain(|held| !is_same(held));
    kept.push(calibration.clone());
    // A process that reads meanwhile sees the old file or the new one.
    write_whole(path, |out| write_all(&kept, out))?;
    Ok(StoreResult::Kept(note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_stats::calibration::LatencyFloor;
    use brunt_stats::headroom::{Headroom, HeadroomLimit};

    fn file(directory: &tempfile::TempDir) -> PathBuf {
        directory.path().join("brunt/calibration.json")
    }

    fn calibration(threads: u32, made_at_s: u64) -> Calibration {
        Calibration {
            made_at_s,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: this_host(),
            shape: Shape { threads, ..Shape::default() },
            in_process: LatencyFloor::default(),
            in_process_cpu_ns: 1,
            loopback: LatencyFloor { p50_ns: 2, p99_ns: 3 },
            floor_rate: 4,
            oversleep: None,
            headroom: Headroom { rate: Some(5), limit: HeadroomLimit::Search, limit_rate: None },
            probes: Vec::new(),
            waits: Vec::new(),
            disturbed: None,
        }
    }

    #[test]
    fn state_directory_follows_the_environment() {
        let path = |state_home: Option<&str>, home: Option<&str>| {
            path_within(state_home.map(OsString::from), home.map(OsString::from))
        };
        let table = [
            (Some("/state"), Some("/me"), Some("/state/brunt/calibration.json")),
            (None, Some("/me"), Some("/me/.local/state/brunt/calibration.json")),
            (Some(""), Some("/me"), Some("/me/.local/state/brunt/calibration.json")),
            (Some("relative"), Some("/me"), Some("/me/.local/state/brunt/calibration.json")),
            (None, None, None),
            (Some("relative"), Some(""), None),
        ];
        for (state_home, home, expected) in table {
            assert_eq!(path(state_home, home), expected.map(PathBuf::from), "{state_home:?} {home:?}");
        }
    }

    #[test]
    fn machines_are_identified_by_id_or_name() {
        let id = "0123456789abcdef0123456789abcdef";
        let fingerprint = machine(Some(id.to_owned()), "name");
        assert_eq!(fingerprint.len(), 16);
        assert!(!id.contains(&fingerprint));
        assert_ne!(fingerprint, machine(Some(id.replace('0', "1")), "name"));
        assert_eq!(machine(None, "name"), "name");
        assert_eq!(machine(Some(String::new()), "name"), "name");
    }

    #[test]
    fn shapes_are_kept_side_by_side() {
        let directory = tempfile::tempdir().unwrap();
        let path = file(&directory);
        assert_eq!(read(&path), Ok(Vec::new()));
        for kept in [calibration(1, 100), calibration(2, 200), calibration(1, 300)] {
            assert_eq!(keep(&path, &kept).unwrap(), StoreResult::Kept(None));
        }
        let mut foreign = calibration(1, 400);
        foreign.host.machine = "another".to_owned();
        keep(&path, &foreign).unwrap();
        assert_eq!(read(&path), Ok(vec![calibration(2, 200), calibration(1, 300), foreign]));
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn disturbed_calibrations_do_not_replace_undisturbed_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = file(&directory);
        let disturbed =
            |made_at_s| Calibration { disturbed: Some("STEAL".to_owned()), ..calibration(1, made_at_s) };
        let steps = [
            (disturbed(100), StoreResult::Kept(None), disturbed(100)),
            (disturbed(200), StoreResult::Kept(None), disturbed(200)),
            (calibration(1, 300), StoreResult::Kept(None), calibration(1, 300)),
            (disturbed(400), StoreResult::EarlierStays(300), calibration(1, 300)),
            (calibration(1, 500), StoreResult::Kept(None), calibration(1, 500)),
        ];
        for (made, keeping, held) in steps {
            assert_eq!(keep(&path, &made).unwrap(), keeping);
            assert_eq!(read(&path), Ok(vec![held]));
        }
        // Of another shape there is none that was not.
        let other = Calibration { shape: calibration(2, 0).shape, ..disturbed(600) };
        assert_eq!(keep(&path, &other).unwrap(), StoreResult::Kept(None));
        assert_eq!(read(&path), Ok(vec![calibration(1, 500), other]));
    }

    #[test]
    fn unreadable_files_are_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = file(&directory);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{ half of").unwrap();
        assert!(read(&path).unwrap_err().contains("is not JSON"));
        let StoreResult::Kept(Some(note)) = keep(&path, &calibration(1, 100)).unwrap() else {
            panic!("nothing is said");
        };
        assert!(note.contains("calibration.json is not JSON") && note.contains(".unreadable"), "{note}");
        assert_eq!(read(&path), Ok(vec![calibration(1, 100)]));
        assert_eq!(fs::read_to_string(path.with_extension("json.unreadable")).unwrap(), "{ half of");
    }
}
