//! Lines of JSON while runs go on: they are there before the end, and what they say adds up to the result.

use crate::server::{Directory, Ended, Server, begin, brunt, ended};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};

const RUN: &str = "-r 1k --keys 50 --wait sleep --allow=BROKEN,LOAD,CLIENT,DATA --mix get=1";

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
    let (server, directory) = (Server::reference(""), Directory::new());
    let (json, again) = (directory.path("x.json"), directory.path("again.ndjson"));
    let run = format!("run -s {server} -t 2500ms --warmup 1s -o ndjson:- {RUN} -o {json}");
    let mut child = begin(brunt(&run));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    let is_early = child.try_wait().unwrap().is_none() && !directory.join("x.json").exists();
    out.read_to_string(&mut text).unwrap();
    let output = Ended::from(child);
    output.is(0, &["response, "]);
    assert!(is_early);

    let lines = values(&text);
    let second = 1_000_000_000;
    let expected = [
        ("warmup", -second, 0),
        ("measure", 0, second),
        ("measure", second, 2 * second),
        ("measure", 2 * second, 5 * second / 2),
    ];
    assert_eq!(pieces(&lines), expected);
    let result: Value = serde_json::from_str(&directory.text("x.json")).unwrap();
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
    ended(&format!("report {json} -o {again}")).is(0, &[]);
    assert_eq!(pieces(&values(&directory.text("again.ndjson"))), expected);
}

/// A reader that takes nothing does not hold the end of a run; its lines are named as lost.
#[test]
fn readers_that_stop_reading_are_named() {
    let server = Server::reference("");
    // Full before the run begins.
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    (&writer).write_all(&[b' '; 4096]).unwrap();
    let run = format!("run -s {server} -t 200ms -q -o ndjson:- --warmup 0s {RUN}");
    let output = Ended::from(brunt(&run).stdout(writer));
    drop(reader);
    assert_eq!(output.exit, 1);
    let expected = "error: -o ndjson: cannot write standard output: nothing could be written for 10 s\n";
    assert!(output.said.ends_with(expected));
}

/// A file is replaced by the first line, and so is not where there is none.
#[test]
fn failed_runs_keep_the_lines_of_earlier_ones() {
    let directory = Directory::new();
    let server = Server::reference("");
    for (address, expected) in [("unix:/no/such/socket", 5), (server.address.as_str(), 0)] {
        let path = directory.with("x.ndjson", "old\n");
        ended(&format!("run -s {address} -n 100 --warmup 1s -q -o {path} {RUN}")).is(expected, &[]);
        let text = directory.text("x.ndjson");
        match expected {
            0 => assert_eq!(values(&text).last().unwrap()["phase"], "measure"),
            _ => assert_eq!(text, "old\n"),
        }
    }
}

#[test]
fn lines_of_several_runs_have_their_number() {
    let server = Server::reference("");
    let run = format!("run -s {server} --repeat 2 -t 300ms -q --interval 100ms");
    let output = ended(&format!("{run} -o ndjson:- --warmup 0s {RUN}"));
    let numbers: Vec<u64> = values(&output.out).iter().map(|line| line["run"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 1, 1, 2, 2, 2]);
}
