//! The file that keeps calibrations: where it lies, what it says about a run on this host, how a new one gets in.
//!
//! Not the measuring: that is a search. Invariants: the file is replaced as a whole or not at all; one that cannot be read prevents no
//! measurement, and is never overwritten.

use crate::destination::write_whole;
use crate::exit::Failure;
use crate::host;
use brunt_engine::host::first_line;
use brunt_engine::input_file;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_report::campaign::{Campaign, RunRow};
use brunt_stats::bottleneck::Bottleneck;
use brunt_stats::calibration::{
    Calibration, CalibrationFile, HostIdentity, LatencyFloor, Lookup, Shape, find,
};
use brunt_stats::run_record::RunRecord;
use brunt_stats::usage::ClientUsage;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
        Ok(kept) => find(&kept, &this_host(), &Shape::of(plan, usage), env!("CARGO_PKG_VERSION")),
        Err(reason) => Lookup::Unfit(format!("{} {reason}; it is ignored", path.display())),
    }
}

/// Everything that is kept; nothing where there is no file. The error is in words that follow the file's name.
fn read(path: &Path) -> Result<Vec<Calibration>, String> {
    match input_file::read_text(path, input_file::BYTES_MAX) {
        Ok(text) => match serde_json::from_str::<CalibrationFile>(&text) {
            Ok(file) if file.schema == CalibrationFile::SCHEMA => Ok(file.calibrations),
            _ => Err(format!("is not of the schema '{}'", CalibrationFile::SCHEMA)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Keeps what a calibration has found, and says where.
pub(crate) fn keep_found(campaign: &Campaign) -> Result<String, Failure> {
    let Some(calibration) = found(campaign) else {
        let reason = if campaign.interrupted { "interrupted" } else { "without a result" };
        return Ok(format!("{reason}: nothing was kept"));
    };
    let path = path().ok_or_else(|| {
        Failure::failed("cannot keep the calibration: neither XDG_STATE_HOME nor HOME names a directory")
    })?;
    let note = keep(&path, calibration).map_err(|error| {
        Failure::failed(format!("cannot keep the calibration in {}: {error}", path.display()))
    })?;
    let note = note.map_or(String::new(), |note| format!("; {note}"));
    Ok(format!("kept in {}: later runs show it{note}", path.display()))
}

/// What later runs need of a search for what the client can do; `None` where it ended without an answer.
fn found(campaign: &Campaign) -> Option<Calibration> {
    let headroom =
        campaign.question.capacity().filter(|found| !campaign.interrupted && found.is_decided())?;
    let RunRecord { plan, run, .. } = &campaign.first.record;
    let floor = |run: &RunRow| {
        let ns = |quantile| Some(run.percentile(quantile)?.value_ns);
        Some(LatencyFloor { p50_ns: ns(Quantile::P50)?, p99_ns: ns(Quantile::P99)? })
    };
    Some(Calibration {
        made_at_s: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: this_host(),
        shape: Shape::of(plan, &run.usage),
        loopback: LatencyFloor::least(campaign.runs.iter().filter_map(floor))?,
        headroom,
        is_limited: campaign.limit.as_ref().is_some_and(|met| met.limit.bottleneck != Bottleneck::Client),
    })
}

/// Keeps a calibration instead of an earlier one of the same host and shape. A file that could not be read is put aside: what is said of that.
fn keep(path: &Path, calibration: Calibration) -> io::Result<Option<String>> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    let (mut calibrations, note) = match read(path) {
        Ok(kept) => (kept, None),
        Err(reason) => {
            let aside = path.with_extension("json.unreadable");
            fs::rename(path, &aside)?;
            (Vec::new(), Some(format!("the file there {reason}, and is now {}", aside.display())))
        }
    };
    calibrations.retain(|held| (&held.host, &held.shape) != (&calibration.host, &calibration.shape));
    calibrations.push(calibration);
    let file = CalibrationFile { schema: CalibrationFile::SCHEMA.to_owned(), calibrations };
    // A process that reads meanwhile sees the old file or the new one.
    write_whole(path, |out| Ok(serde_json::to_writer_pretty(out, &file)?))?;
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_stats::capacity::Capacity;

    fn file(directory: &tempfile::TempDir) -> PathBuf {
        directory.path().join("brunt/calibration.json")
    }

    fn calibration(threads: u32, made_at_s: u64) -> Calibration {
        Calibration {
            made_at_s,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: this_host(),
            shape: Shape { threads, ..Shape::default() },
            loopback: LatencyFloor { p50_ns: 2, p99_ns: 3 },
            headroom: Capacity::Between { passed: 5.0, failed: 6.5, is_confirmed: true },
            is_limited: false,
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
            assert_eq!(keep(&path, kept).unwrap(), None);
        }
        let mut foreign = calibration(1, 400);
        foreign.host.machine = "another".to_owned();
        keep(&path, foreign.clone()).unwrap();
        assert_eq!(read(&path), Ok(vec![calibration(2, 200), calibration(1, 300), foreign]));
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn unreadable_files_are_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = file(&directory);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{ half of").unwrap();
        assert_eq!(read(&path).unwrap_err(), "is not of the schema 'brunt.calibrations.v2'");
        let note = keep(&path, calibration(1, 100)).unwrap().unwrap();
        assert!(note.contains("is not of") && note.contains(".unreadable"), "{note}");
        assert_eq!(read(&path), Ok(vec![calibration(1, 100)]));
        assert_eq!(fs::read_to_string(path.with_extension("json.unreadable")).unwrap(), "{ half of");
    }
}
