//! The lines of Python and of jq in docs/results.md, run on results, and on a server's log of the same time.
//!
//! The server is stopped for a known time, and the log says when.

use crate::measured::ALL;
use crate::server::{
    Directory, Ended, Server, begin, brunt, ended, is_installed, side_by_side, stop_for, words,
};
use jiff::Timestamp;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

const GONE: Duration = Duration::from_millis(400);

fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_microsecond(since_1970.as_micros() as i64).unwrap()
}

const DOCUMENT: &str = include_str!("../../../../docs/results.md");

/// The block of Python that has this word.
fn python_with(word: &str) -> &'static str {
    let blocks = DOCUMENT.split("```python\n").skip(1).map(|block| block.split_once("```").unwrap().0);
    blocks.into_iter().find(|block| block.contains(word)).expect("a block of Python")
}

#[test]
fn lines_for_scripts_run() {
    let (server, directory) = (Server::reference(""), Directory::new());
    for (line, file) in
        [("run --mix get=1,set=1", "result.json"), ("scan --over connections=1,2", "scan.json")]
    {
        let flags = "-n 20000 --keys 300 --warmup 0s -q --allow=BROKEN,LOAD,CLIENT,DATA";
        let (place, file) = (&server.address, directory.path(file));
        ended(&format!("{line} -s {place} {flags} -o {file}")).is(0, &[]);
    }
    let check = |program: &str, arguments: &[&str]| {
        let mut output = Ended::from(Command::new(program).args(arguments).current_dir(&directory));
        assert!(output.exit == 0 && !output.out.trim().is_empty());
        std::mem::take(&mut output.out)
    };
    let has = |program: &str, arguments: &str| {
        let tried = Command::new(program).args(words(arguments)).stderr(Stdio::null()).output();
        let is_there = tried.is_ok_and(|output| output.status.success());
        is_there || {
            eprintln!("SKIPPED: {program} {arguments:?} is not there");
            false
        }
    };
    if has("jq", "--version") {
        let lines = || DOCUMENT.lines().filter(|line| line.starts_with("jq ") && line.ends_with(".json"));
        assert_eq!(lines().count(), 3);
        for line in lines() {
            let text = check("sh", &["-c", line]);
            assert!(text.contains(|character: char| character.is_ascii_digit()), "{line}: {text}");
        }
    }
    if has("python3", "-c 'import pandas'") {
        check("python3", &["-c", python_with("pandas")]);
    }
}

#[test]
fn stalls_line_up_with_the_servers_log() {
    // The second where an interval has too few requests for a p99.
    side_by_side([("1s", 4), ("100ms", 40)], |(interval, intervals)| check(interval, intervals));
}

fn check(interval: &str, intervals: usize) {
    if !is_installed("python3", "--version") {
        return;
    }
    let (server, directory) = (Server::reference(""), Directory::new());
    let load =
        format!("-r 4k -t 4s --warmup 0s --arrival uniform --depth 64 --wait sleep --interval {interval}");
    let shown = format!("--allow={ALL} --mix get=1,set=1 --label commit=3f2a --label 'why=a stall'");
    let (place, result) = (&server.address, directory.path("result.json"));
    let before = now();
    let run = begin(brunt(&format!("run --server {place} {load} {shown} -o {result}")));
    server.await_gets(2_000);
    let stopped = now();
    stop_for(server.pid(), GONE);
    Ended::from(run).is(0, &[]);
    directory.with("server.log", &format!("{stopped:.6} the server stopped\n"));

    let result: serde_json::Value = serde_json::from_str(&directory.text("result.json")).unwrap();
    assert_eq!(result["labels"], serde_json::json!({ "commit": "3f2a", "why": "a stall" }));
    let start_ns = result["window"]["start_unix_ns"].as_u64().unwrap();
    let started = Timestamp::from_nanosecond(start_ns.into()).unwrap();
    assert!(before <= started && started <= stopped, "{before} {started} {stopped}");

    let output =
        Ended::from(Command::new("python3").args(["-c", python_with("server.log")]).current_dir(&directory));
    let text = format!("{}{}", output.out, output.said);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), intervals, "{text}");
    assert!(!text.contains("None"), "{text}");
    let marked = rows.iter().position(|row| row.contains("the server stopped")).expect(&text);
    // Requests that wait for a stopped server complete when it goes on: in the same interval, or in one up to then.
    let until = marked + intervals * GONE.as_millis() as usize / 4_000 + 1;
    let p99_us = |row: &str, op: &str| -> f64 {
        // While the server was stopped, nothing completed.
        let Some((_, behind)) = row.split_once(&format!("'{op}': ")) else { return 0.0 };
        // `('p99', 1234.5)`, or `max` in place of `p99`.
        behind.split_once(", ").unwrap().1.split(')').next().unwrap().parse().unwrap()
    };
    for op in ["get", "set"] {
        let worst = (0..rows.len()).max_by(|a, b| p99_us(rows[*a], op).total_cmp(&p99_us(rows[*b], op)));
        assert!(worst.is_some_and(|worst| (marked..=until).contains(&worst)), "{text}");
        assert!(p99_us(rows[worst.unwrap()], op) > GONE.as_micros() as f64 * 0.5, "{text}");
    }
}
