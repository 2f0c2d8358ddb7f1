//! The lines of Python in docs/formats.md, run on a result and on a server's log of the same time.
//!
//! The server is stopped for a known time, and the log says when.

use crate::server::{Server, beside_others, brunt, is_installed, own_directory};
use jiff::Timestamp;
use rustix::process::{Signal, kill_process};
use std::process::{Command, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant, SystemTime};

const GONE: Duration = Duration::from_millis(400);

fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_microsecond(since_1970.as_micros() as i64).unwrap()
}

/// The first block of Python in a document.
fn python_of(document: &str) -> &str {
    let (_, behind) = document.split_once("```python\n").expect("a block of Python");
    behind.split_once("```").expect("its end").0
}

#[test]
fn stalls_line_up_with_the_servers_log() {
    check("1s", 4);
}

/// Where an interval has too few requests for a p99.
#[test]
fn stalls_line_up_in_short_intervals() {
    check("100ms", 40);
}

fn check(interval: &str, intervals: usize) {
    if !is_installed("python3", "--version") {
        return;
    }
    let _beside = beside_others();
    let (server, directory) = (Server::reference(&[]), own_directory());
    let mut run = brunt(&["run", "--server", &server.address, "-r", "4k", "-t", "4s", "--warmup", "0s"]);
    run.args([
        "--arrival",
        "uniform",
        "-d",
        "64",
        "--wait",
        "sleep",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
        "--interval",
        interval,
    ])
    .args(["--mix", "get=1,set=1", "--label", "commit=3f2a", "--label", "why=a stall"])
    .args(["--json", directory.join("result.json").to_str().unwrap()]);
    let before = now();
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    server.await_gets(2_000);
    let stopped = now();
    kill_process(server.pid(), Signal::STOP).unwrap();
    let since = Instant::now();
    while since.elapsed() < GONE {
        park_timeout(GONE.saturating_sub(since.elapsed()));
    }
    kill_process(server.pid(), Signal::CONT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0));
    std::fs::write(directory.join("server.log"), format!("{stopped:.6} the server stopped\n")).unwrap();

    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(directory.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["labels"], serde_json::json!({ "commit": "3f2a", "why": "a stall" }));
    let started: Timestamp = result["started_at"].as_str().unwrap().parse().unwrap();
    assert!(before <= started && started <= stopped, "{before} {started} {stopped}");

    let document = include_str!("../../../../docs/formats.md");
    let output =
        Command::new("python3").args(["-c", python_of(document)]).current_dir(&directory).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
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
    std::fs::remove_dir_all(&directory).unwrap();
}
