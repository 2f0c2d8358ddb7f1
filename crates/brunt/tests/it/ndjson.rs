//! Lines of JSON while runs go on: they are there before the end, and what they say adds up to the result.

use crate::server::{Directory, Server, beside_others, brunt};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

const RUN: [&str; 11] = [
    "-r",
    "1k",
    "--keys",
    "50",
    "--warmup",
    "1s",
    "--wait",
    "sleep",
    "--allow=BROKEN,LOAD,CLIENT,DATA",
    "--mix",
    "get=1",
];

fn values(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Phase, beginning and end of lines.
fn pieces(lines: &[Value]) -> Vec<(&str, i64, i64)> {
    let of = |line: &'_ Value, key: &str| line[key].as_i64().unwrap();
    lines
        .iter()
        .map(|line| (line["phase"].as_str().unwrap(), of(line, "start_ns"), of(line, "end_ns")))
        .collect()
}

/// The first line on standard output comes while the run goes on, and the report goes to standard error.
#[test]
fn lines_come_while_the_run_goes_on() {
    let _beside = beside_others();
    let (server, directory) = (Server::reference(&[]), Directory::new());
    let (json, again) = (directory.join("x.json"), directory.join("again.ndjson"));
    let mut run = brunt(&["run", "-s", &server.address, "-t", "2500ms", "-o", "ndjson:-"]);
    run.args(RUN).arg("-o").arg(&json).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    let is_early = child.try_wait().unwrap().is_none() && !json.exists();
    out.read_to_string(&mut text).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(is_early && said.contains("response, "), "{said}");

    let lines = values(&text);
    let second = 1_000_000_000;
    let expected = [
        ("warmup", -second, 0),
        ("measure", 0, second),
        ("measure", second, 2 * second),
        ("measure", 2 * second, 5 * second / 2),
    ];
    assert_eq!(pieces(&lines), expected);
    let result: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let time_ns = |line: &Value| {
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        time.as_nanosecond() as u64
    };
    let window_ns = |key: &str| result["window"][key].as_u64().unwrap();
    assert_eq!(time_ns(&lines[0]).abs_diff(window_ns("start_unix_ns") - window_ns("warmup_ns")) / 1_000, 0);
    assert_eq!(time_ns(&lines[1]), window_ns("start_unix_ns"));
    let sum = |key: &str| lines[1..].iter().map(|line| line[key].as_u64().unwrap()).sum::<u64>();
    let in_window = |key: &str| result["counts"]["in_window"][key].as_u64().unwrap();
    // A worker that the host stopped hands over later than lines wait, and what it sends before it does is in the line that ends.
    let sent = in_window("sent");
    assert!((sent / 2..=sent + sent / 50).contains(&sum("sent")), "{sent} sent in the window: {text}");
    let reported = brunt(&["report"]).arg(&json).arg("-o").arg(&again).output().unwrap();
    assert_eq!(reported.status.code(), Some(0), "{reported:?}");
    assert_eq!(pieces(&values(&fs::read_to_string(&again).unwrap())), expected);
}

/// A reader that takes nothing does not hold the end of a run; its lines are named as lost.
#[test]
fn readers_that_stop_reading_are_named() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    // Full before the run begins.
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    (&writer).write_all(&[b' '; 4096]).unwrap();
    let mut run = brunt(&["run", "-s", &server.address, "-t", "200ms", "-q", "-o", "ndjson:-"]);
    let warmup = ["--warmup", "0s"];
    let output = run.args(&RUN[..4]).args(warmup).args(&RUN[6..]).stdout(writer).output().unwrap();
    drop(reader);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = "error: -o ndjson: cannot write standard output: nothing could be written for 10 s\n";
    assert!(said.ends_with(expected), "{said}");
}

/// A file is replaced by the first line, and so is not where there is none.
#[test]
fn failed_runs_keep_the_lines_of_earlier_ones() {
    let _beside = beside_others();
    let directory = Directory::new();
    let path = directory.join("x.ndjson");
    let server = Server::reference(&[]);
    for (address, expected) in [("unix:/no/such/socket", 5), (server.address.as_str(), 0)] {
        fs::write(&path, "old\n").unwrap();
        let mut run = brunt(&["run", "-s", address, "-n", "100", "-q", "-o"]);
        let output = run.arg(&path).args(RUN).output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{output:?}");
        let text = fs::read_to_string(&path).unwrap();
        match expected {
            0 => assert_eq!(values(&text).last().unwrap()["phase"], "measure"),
            _ => assert_eq!(text, "old\n"),
        }
    }
}

#[test]
fn lines_of_several_runs_have_their_number() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let run = ["run", "-s", &server.address, "--repeat", "2", "-t", "300ms", "-q", "--interval", "100ms"];
    let output = brunt(&run)
        .args(["-o", "ndjson:-"])
        .args(&RUN[..4])
        .args(["--warmup", "0s", "--allow=BROKEN,LOAD,CLIENT,DATA"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = values(&text).iter().map(|line| line["run"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 1, 1, 2, 2, 2], "{text}");
}
