//! Calibrating, and what later runs make of it.
//!
//! A short step on a host that may be busy: what the numbers are is not asserted, only that they are there, agree with each
//! other, and arrive where they belong.

use crate::measured::Measured;
use crate::server::{Ended, Server, TempFile, alone, brunt, temporary};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A state directory of its own, gone with the test.
struct State(TempFile);

impl State {
    fn new() -> Self {
        Self(temporary("state"))
    }

    fn file(&self) -> PathBuf {
        Path::new(&*self.0).join("brunt/calibration.json")
    }

    fn run(&self, arguments: &str) -> Ended {
        Ended::from(brunt(arguments).env("XDG_STATE_HOME", &*self.0))
    }

    /// A short run of so many connections and threads.
    fn measure(&self, server: &Server, threads: &str, connections: &str) -> Measured {
        let flags = "-n 2000 --warmup 0s --keys 100 --allow=BROKEN,LOAD,CLIENT,DATA -o json:-";
        let shape = format!("run -s {server} -T {threads} -c {connections}");
        Measured::of(self.run(&format!("{shape} {flags}")))
    }
}

/// The shortest calibration: one step.
const CALIBRATE: &str = "calibrate -T 1 -c 4 --from 2k --to 2k --time 500ms";

#[test]
fn later_runs_use_the_calibration() {
    alone();
    let (state, server) = (State::new(), Server::reference(""));
    let before = state.measure(&server, "1", "4");
    assert_eq!(before.json["client"]["calibration"], Value::Null);
    assert!(!before.text.contains("\nfloor "));

    let calibrated = Measured::of(state.run(&format!("{CALIBRATE} -o json:-")));
    // Where the host is not left alone, no rate holds.
    assert!([0, 4].contains(&calibrated.exit));
    assert_eq!(calibrated.json["schema"], "brunt.campaign.v1");
    assert_eq!(calibrated.json["kind"], "search");
    let finding = &calibrated.json["finding"];
    assert_eq!(finding["objectives"], json!(["client.p99 <= 10us"]));
    for words in ["search  ", "client.p99 <= 10us", "capacity  ", "kept in", state.file().to_str().unwrap()] {
        assert!(calibrated.text.contains(words), "{words}");
    }

    let same = state.measure(&server, "1", "4");
    assert_eq!(same.json["client"]["calibration"]["ignored"], Value::Null);
    let known = &same.json["client"]["calibration"];
    assert_eq!([&known["differences"], &known["headroom"]], [&json!([]), &finding["capacity"]]);
    let [p50, p99] = ["p50", "p99"].map(|key| known["loopback_ns"][key].as_u64().unwrap());
    assert!(0 < p50 && p50 <= p99, "{known:#}");
    assert!(same.text.contains("\nfloor         of this client over loopback: p50 "));

    let wider = state.measure(&server, "1", "8");
    assert_eq!(wider.json["client"]["calibration"]["differences"][0], "with 4 connections × depth 1");
    let more = state.measure(&server, "2", "4");
    let reason = "calibrated for 1 thread, this run has 2";
    assert_eq!(more.json["client"]["calibration"]["ignored"], reason);
    assert!(more.text.contains(&format!("floor         not known: {reason}")));
}

#[test]
fn unusable_state_files_are_reported() {
    alone();
    let (state, server) = (State::new(), Server::reference(""));
    std::fs::create_dir_all(state.file().parent().unwrap()).unwrap();
    std::fs::write(state.file(), "{}").unwrap();
    let measured = state.measure(&server, "1", "4");
    let ignored = measured.json["client"]["calibration"]["ignored"].as_str().unwrap();
    let expected = "is not of the schema 'brunt.calibrations.v2'; it is ignored";
    assert_eq!(ignored, format!("{} {expected}", state.file().display()));
    assert!(measured.text.contains("\nfloor         not known:"));

    // A file where the directory should be.
    let blocked = State::new();
    std::fs::write(&*blocked.0, "").unwrap();
    let output = blocked.run(CALIBRATE);
    output.is(1, &["cannot keep", blocked.file().to_str().unwrap()]);
    assert!(output.out.contains("capacity"), "the result is printed");

    // Neither variable: nothing is known, and nothing goes wrong.
    let run = format!("run -s {server} -n 100 -c 1 --keys 10 --warmup 0s -o json:-");
    let output = Ended::from(brunt(&run).env_remove("XDG_STATE_HOME").env_remove("HOME"));
    assert_eq!(Measured::of(output).json["calibration"], Value::Null);
}

#[test]
fn an_interrupted_calibration_is_not_kept() {
    alone();
    let state = State::new();
    let mut child = brunt("calibrate -T 1 --from 1k --time 60s --progress 100ms")
        .env("XDG_STATE_HOME", &*state.0)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert!(!said.is_empty(), "a run has begun");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert!(!state.file().exists());
}
