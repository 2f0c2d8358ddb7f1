//! Calibrating, and what later runs make of it.
//!
//! Short steps on a host that may be busy: what the numbers are is not asserted, only that they are there, agree with each
//! other, and arrive where they belong.

use crate::measured::Measured;
use crate::server::{Server, alone, brunt, unique};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Output, Stdio};

/// A state directory of its own, gone with the test.
struct State(PathBuf);

impl State {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("brunt-state-{}-{}", std::process::id(), unique())))
    }

    fn file(&self) -> PathBuf {
        self.0.join("brunt/calibration.json")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        brunt(arguments).env("XDG_STATE_HOME", &self.0).output().unwrap()
    }

    /// A short run of so many connections and threads.
    fn measure(&self, server: &Server, threads: &str, connections: &str) -> Measured {
        let flags = [
            "-n",
            "2000",
            "--warmup",
            "0s",
            "--keys",
            "100",
            "--allow=BROKEN,LOAD,CLIENT,DATA",
            "-o",
            "json:-",
        ];
        let shape = ["run", "-s", &server.address, "-T", threads, "-c", connections];
        Measured::of(&self.run(&[&shape[..], &flags].concat()))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        let _ = std::fs::remove_file(&self.0);
    }
}

fn check_calibration(calibration: &Value) {
    assert_eq!(calibration["schema"], "brunt.calibration.v1");
    for floor in ["in_process", "loopback"] {
        let [p50, p99] = ["p50_ns", "p99_ns"].map(|key| calibration[floor][key].as_u64().unwrap());
        assert!(0 < p50 && p50 <= p99, "{floor}: {calibration:#}");
    }
    assert!(calibration["in_process_cpu_ns"].as_u64().unwrap() > 0);
    let probes = calibration["probes"].as_array().unwrap();
    let rates: Vec<u64> = probes.iter().map(|probe| probe["rate"].as_u64().unwrap()).collect();
    assert_eq!(
        rates.first(),
        calibration["floor_rate"].as_u64().as_ref(),
        "the search begins with the lowest"
    );
    let waits = calibration["waits"].as_array().unwrap();
    assert_eq!(waits.len(), 12, "three ways of waiting at four rates: {calibration:#}");
    assert!(waits.iter().all(|cost| cost["cpu_ns"].as_u64().unwrap() > 0), "{calibration:#}");
    let [rate, limit_rate] = ["rate", "limit_rate"].map(|key| calibration["headroom"][key].as_u64());
    assert!(rate.or(limit_rate).is_some_and(|rate| rates.contains(&rate)), "{calibration:#}");
    if let (Some(rate), Some(limit_rate)) = (rate, limit_rate) {
        assert!(rate < limit_rate && limit_rate <= rate * 2, "{calibration:#}");
    }
}

#[test]
fn later_runs_use_the_calibration() {
    let _alone = alone();
    let (state, server) = (State::new(), Server::reference(&[]));
    let before = state.measure(&server, "1", "4");
    assert_eq!(before.json["client"]["calibration"], Value::Null);
    assert!(!before.text.contains("\nfloor "), "{}", before.text);

    let output = state.run(&["calibrate", "-T", "1", "-c", "4", "--time", "600ms", "-o", "json:-"]);
    let calibrated = Measured::of(&output);
    assert_eq!(calibrated.exit, 0, "{}", calibrated.text);
    check_calibration(&calibrated.json);
    for words in ["calibrating for up to", "in process", "loopback", "oversleep", "headroom", "kept in"] {
        assert!(calibrated.text.contains(words), "{words}: {}", calibrated.text);
    }
    assert!(calibrated.text.contains(state.file().to_str().unwrap()), "{}", calibrated.text);
    let kept: Value = serde_json::from_slice(&std::fs::read(state.file()).unwrap()).unwrap();
    assert_eq!(kept["calibrations"], Value::Array(vec![calibrated.json.clone()]));

    let same = state.measure(&server, "1", "4");
    assert_eq!(same.json["client"]["calibration"]["ignored"], Value::Null, "{}", same.text);
    // A host on which tests run is not left alone.
    let disturbed = calibrated.json["disturbed"].as_str();
    assert_eq!(calibrated.text.contains("\ndisturbed   "), disturbed.is_some(), "{}", calibrated.text);
    let differences: Vec<&str> = disturbed.map(|_| "on a host that was disturbed").into_iter().collect();
    assert_eq!(same.json["client"]["calibration"]["differences"], serde_json::json!(differences));
    for key in ["headroom", "made_at_s"] {
        assert_eq!(same.json["client"]["calibration"][key], calibrated.json[key]);
    }
    assert_eq!(
        same.json["client"]["calibration"]["loopback_ns"]["p99"],
        calibrated.json["loopback"]["p99_ns"]
    );
    assert!(same.text.contains("\nfloor         of this client over loopback: p50 "), "{}", same.text);

    let wider = state.measure(&server, "1", "8");
    assert_eq!(wider.json["client"]["calibration"]["differences"][0], "with 4 connections × depth 1");
    let more = state.measure(&server, "2", "4");
    let reason = "calibrated for 1 thread, this run has 2";
    assert_eq!(more.json["client"]["calibration"]["ignored"], reason);
    assert!(more.text.contains(&format!("floor         not known: {reason}")), "{}", more.text);
}

#[test]
fn unusable_state_files_are_reported() {
    let _alone = alone();
    let (state, server) = (State::new(), Server::reference(&[]));
    std::fs::create_dir_all(state.file().parent().unwrap()).unwrap();
    std::fs::write(state.file(), "{}").unwrap();
    let measured = state.measure(&server, "1", "4");
    let ignored = measured.json["client"]["calibration"]["ignored"].as_str().unwrap();
    let expected = "has no schema, which should be 'brunt.calibrations.v1'; it is ignored";
    assert_eq!(ignored, format!("{} {expected}", state.file().display()));
    assert!(measured.text.contains("\nfloor         not known:"), "{}", measured.text);

    // A file where the directory should be.
    let blocked = State::new();
    std::fs::write(&blocked.0, "").unwrap();
    let output = blocked.run(&["calibrate", "--quick", "-T", "1", "--time", "250ms"]);
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(text.contains("headroom"), "the result is printed: {text}");
    assert!(error.contains("cannot keep") && error.contains(blocked.file().to_str().unwrap()), "{error}");

    // Neither variable: nothing is known, and nothing goes wrong.
    let run = [
        "run",
        "-s",
        &server.address,
        "-n",
        "100",
        "-c",
        "1",
        "--keys",
        "10",
        "--warmup",
        "0s",
        "-o",
        "json:-",
    ];
    let output = brunt(&run).env_remove("XDG_STATE_HOME").env_remove("HOME").output().unwrap();
    assert_eq!(Measured::of(&output).json["calibration"], Value::Null);
}

#[test]
fn an_interrupted_calibration_is_not_kept() {
    let _alone = alone();
    let state = State::new();
    let mut child = brunt(&["calibrate", "-T", "1", "--time", "60s"])
        .env("XDG_STATE_HOME", &state.0)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert!(said.starts_with("calibrating for up to"), "{said}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("nothing was kept"), "{said}");
    assert!(!state.file().exists());
}
