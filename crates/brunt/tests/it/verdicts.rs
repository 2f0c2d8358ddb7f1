//! The tool convicts itself: a generator that is stopped or crowded says so, and exits accordingly. A test that a check
//! convicts judges with `--strict`; otherwise most checks only tell which percentiles are in doubt, and why.
//!
//! A busy host makes each of these worse, not better, so they hold there, too. What wants a host to itself is in
//! `experiments/client.rs`.

use crate::experiments::is_full;
use crate::measured::{HOST_DISTURBED, Measured};
use crate::server::{Server, beside_others, brunt};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A run that is under way, to be meddled with.
struct Running {
    child: Child,
}

impl Running {
    fn start(server: &str, flags: &[&str]) -> Self {
        let mut command = brunt(&["run", "--server", server, "--json", "-", "--progress", "200ms"]);
        Self { child: command.args(flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Does this when a line of progress says so, and waits for the end.
    fn when(mut self, is_time: impl Fn(&str) -> bool, act: impl FnOnce(Pid)) -> Measured {
        let pid = self.pid();
        let mut out = self.child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let mut act = Some(act);
        let mut text = String::new();
        for line in BufReader::new(self.child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(act) = act.take_if(|_| is_time(&line)) {
                act(pid);
            }
            text += &line;
            text.push('\n');
        }
        assert!(act.is_none(), "the time never came:\n{text}");
        let status = self.child.wait().unwrap();
        let stdout = reader.join().unwrap();
        Measured::of(&std::process::Output { status, stdout, stderr: text.into_bytes() })
    }
}

pub(crate) fn status<'a>(measured: &'a Measured, id: &str) -> &'a str {
    let checks = measured.at("verdict.checks").as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap()["status"].as_str().unwrap()
}

/// How often a run is tried that the host disturbs, before what only holds on a quiet one is left out.
pub(crate) const ATTEMPTS: u32 = 4;
/// A worker that loses less than this share of its time to others is left in peace, and so is a host.
pub(crate) const QUIET: f64 = 0.02;

/// The share of the window for which the first worker was ready to run and did not.
pub(crate) fn delayed(measured: &Measured) -> f64 {
    let worker = &measured.at("client.workers")[0];
    worker["run_delay_ns"].as_f64().unwrap() / worker["wall_ns"].as_f64().unwrap()
}

/// The share of the processors' time that the hypervisor gave to others.
pub(crate) fn stolen(measured: &Measured) -> f64 {
    let host = measured.at("client.host");
    let window_ns = measured.at("duration_ns").as_f64().unwrap() * host["cpus"].as_f64().unwrap();
    host["stolen_ns"].as_f64().unwrap_or(0.0) / window_ns
}

/// Stops the generator for so long; says how long it really was.
fn stop_for(pid: Pid, length: Duration) -> Duration {
    let began = Instant::now();
    kill_process(pid, Signal::STOP).unwrap();
    while began.elapsed() < length {
        std::thread::park_timeout(length.saturating_sub(began.elapsed()));
    }
    kill_process(pid, Signal::CONT).unwrap();
    began.elapsed()
}

/// In a closed loop no request is late: the rate falls and one response time of each slot is long, as if the server had stood
/// still. The client says that it was itself, for how long and when, whatever share of the time others had its processor. A reply that
/// came meanwhile is late, and no timeout.
#[test]
fn stopped_closed_loops_fail_their_checks() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let flags = ["-c", "4", "-t", "3s", "--warmup", "0s", "--keys", "1000", "-T", "1", "--timeout", "600ms"];
    let mut stopped = Duration::ZERO;
    let measured = Running::start(&server.address, &flags).when(
        |line| measured_seconds(line).is_some_and(|measured| measured >= 1.0),
        |pid| stopped = stop_for(pid, Duration::from_millis(700)),
    );
    measured.check_books();
    let text = &measured.text;
    assert_eq!(status(&measured, "STALL"), "caution", "{text}");
    let stalls = &measured.at("client.workers")[0]["stalls"];
    let ms = |key: &str| stalls[key].as_f64().unwrap() / 1e6;
    // Where nothing was due the first 20 ms may have been sleep.
    let stopped_ms = stopped.as_secs_f64() * 1e3;
    assert!(
        ms("longest_ns") >= 700.0 - 25.0 && ms("longest_ns") <= stopped_ms + 300.0,
        "{stopped_ms}\n{text}"
    );
    assert!(ms("longest_at_ns") >= 900.0 && ms("longest_at_ns") <= 2_300.0, "{text}");
    assert!(
        text.contains("\nstood still ") && text.contains("STALL      caution: the client stood still"),
        "{text}"
    );
    let leading = &measured.at("verdict.causes")[0];
    assert_eq!(leading["kind"], "client_stop", "{text}");
    assert!(leading["sentence"].as_str().unwrap().starts_with("the client was stopped for "), "{leading}");
    assert!(ms("longest_ns") - ms("longest_run_delay_ns") >= 500.0, "{stalls}");
    assert_eq!(measured.at("faults").as_array().map(Vec::len), Some(0), "{text}");
}

/// The same with what makes it a failure: a publication's severity, or a percentile that the stop decides being asserted.
#[test]
fn stopped_generators_fail_affected_percentiles() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let strict = stopped(&server, 300, 3.0, &["--strict", "--wait", "sleep"]).0;
    assert_eq!((strict.exit, status(&strict, "LAG")), (3, "not_trusted"), "{}", strict.text);
    assert!(strict.text.contains("NOT TRUSTED:"), "{}", strict.text);
    let asserted =
        ["--wait", "sleep", "--assert", "p99.9 < 100ms", "--assert", "p50 < 10s", "--assert", "p99.9 < 10s"];
    let asserted = stopped(&server, 300, 3.0, &asserted).0;
    let outcomes: Vec<_> = asserted
        .at("assertions")
        .as_array()
        .unwrap()
        .iter()
        .map(|held| held["outcome"].as_str().unwrap())
        .collect();
    assert_eq!((asserted.exit, outcomes), (3, vec!["undecided", "holds", "holds"]), "{}", asserted.text);
}

/// How long a run has measured, by a line of its progress.
fn measured_seconds(line: &str) -> Option<f64> {
    line.split_once("measure ")?.1.split_once("s/")?.0.parse().ok()
}

/// A run of so many seconds against a server, stopped for so long a third of the way through; and for how long that was, in ms.
pub(crate) fn stopped(server: &Server, stop_ms: u64, seconds: f64, flags: &[&str]) -> (Measured, f64) {
    let time = format!("{seconds}s");
    let usual =
        ["-r", "10k", "--arrival", "uniform", "-c", "16", "-d", "64", "--warmup", "0s", "--keys", "1000"];
    let running = Running::start(&server.address, &[&usual[..], &["-t", &time], flags].concat());
    let mut stopped = Duration::ZERO;
    let measured = running.when(
        // Not early in the window: what lies there may be taken for a warm-up, and be told as such.
        |line| measured_seconds(line).is_some_and(|measured| measured >= seconds / 3.0),
        |pid| stopped = stop_for(pid, Duration::from_millis(stop_ms)),
    );
    measured.check_books();
    (measured, stopped.as_secs_f64() * 1e3)
}

/// One request in ten is refused, which a publication may not have and an ordinary run says. What others do to the host is accepted in
/// each case.
#[test]
fn check_levels_can_be_changed() {
    let _beside = beside_others();
    let server = Server::reference(&["--error-every", "10", "--script-after", "1000"]);
    let flags = ["-c", "4", "-n", "10k", "--warmup", "0s", "--keys", "1000", "--mix", "get"];
    const HOST: &str = "LAG,CPU,STEAL,CLOCK,COLO,NET,CI-THIN,WARM,DRIFT,SHIFT,LITTLE,SERVER";
    let with_errors = format!("{HOST},err");
    let table: [(&[&str], i32, &str, &str); 4] = [
        (&["--allow", HOST], 0, "caution", "\n  ERR        caution: 1000 of 10000 requests failed"),
        (&["--allow", HOST, "--strict"], 3, "not_trusted", "NOT TRUSTED: ERR\n"),
        (&["--allow", &with_errors, "--strict"], 0, "not_trusted", "\n  ERR        allowed: 1000 of 10000"),
        (
            &["--allow", HOST, "--strict", "--allow=BROKEN,LOAD,CLIENT,DATA"],
            0,
            "not_trusted",
            "NOT TRUSTED: ERR\n",
        ),
    ];
    for (judging, exit, found, words) in table {
        let measured = Measured::run(&server.address, &[&flags[..], judging].concat());
        let text = &measured.text;
        assert_eq!((measured.exit, status(&measured, "ERR")), (exit, found), "{judging:?}\n{text}");
        assert!(text.contains(words), "{judging:?}\n{text}");
        assert_eq!(measured.at("verdict.strict").as_bool(), Some(judging.contains(&"--strict")), "{text}");
        let allowed = measured.at("verdict.allowed").as_array().unwrap();
        let is_allowed = judging.contains(&with_errors.as_str());
        assert_eq!(allowed.contains(&"ERR".into()), is_allowed, "{judging:?}: {allowed:?}");
    }
}

/// A hundred requests say nothing, however well they went.
#[test]
fn short_runs_are_not_trusted() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let flags = ["-c", "1", "--warmup", "0s", "--keys", "100", "--mix", "get", "--allow", "LAG"];
    for (requests, exit, found) in [("999", 3, "not_trusted"), ("1000", 0, "ok")] {
        let measured = Measured::run(&server.address, &[&flags[..], &["-n", requests]].concat());
        let text = &measured.text;
        assert_eq!((measured.exit, status(&measured, "SAMPLES")), (exit, found), "{requests}\n{text}");
    }
}

/// Three times as much is offered as the server can do, which is known. Nothing that is due in the window is sent in it: what
/// waits from the warm-up takes all of it. The rates are the server's pace all the same.
#[test]
fn overloaded_servers_are_measured_at_their_rate() {
    let _beside = beside_others();
    // A preload is not served by the law.
    let server = Server::reference(&["--service", "fixed:500", "--script-after", "1000"]);
    let flags = [
        "-r", "6k", "-c", "4", "-d", "4", "--warmup", "1500ms", "-t", "1s", "--keys", "1000", "--drain",
        "100ms", "--wait", "sleep",
    ];
    let measured = Measured::run(&server.address, &flags);
    measured.check_books();
    let text = &measured.text;
    assert_eq!((measured.exit, status(&measured, "SAT")), (3, "not_trusted"), "{text}");
    assert_eq!(measured.count("requests.completed"), 0, "{text}");
    let completed = measured.count("in_window.completed");
    // As many as were in flight may be answered at once, where the client comes late to them.
    assert!(completed <= 2_000 + 16, "{text}");
    assert!(completed >= 1_800 || measured.is_disturbed(), "{text}");
    assert_eq!(measured.at("rate.completed").as_f64(), Some(completed as f64), "{text}");
    assert!(measured.count("in_window.waiting_at_start") >= 5_000, "{text}");
    assert!(text.contains("\nin window "), "{text}");
}

/// Two processors of this host that one may be bound to; the same twice where there is only one.
pub(crate) fn two_processors() -> [String; 2] {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let allowed: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    [allowed[0], allowed[allowed.len() - 1]].map(|cpu| cpu.to_string())
}

/// The server on the worker's own processor.
#[test]
fn servers_sharing_a_worker_cpu_are_detected() {
    let _beside = beside_others();
    let [_, cpu] = two_processors();
    let server = Server::reference(&["--cpus", &cpu]);
    let flags = ["-r", "2k", "-t", "1s", "--warmup", "200ms", "--keys", "1000", "-c", "4", "--cpus", &cpu];
    // It says why the times are what they are; in a publication it speaks against them.
    for (judging, word) in [(&[][..], "note"), (&["--strict"], "caution")] {
        let measured = Measured::run(&server.address, &[&flags[..], judging].concat());
        let text = &measured.text;
        eprintln!("shared processor:\n{text}");
        assert_eq!(status(&measured, "COLO"), "caution", "{text}");
        assert!(text.contains(&format!("\n  COLO       {word}: ")), "{text}");
        let sentence = measured.at("verdict.sentence").as_str().unwrap();
        assert!(word == "caution" || !sentence.contains("COLO"), "{text}");
        assert!(word == "note" || measured.at("verdict.status") != "TRUSTED", "{text}");
    }
}

/// Two generators on one processor, each of which has more to do than half of one: keys of a law that takes work, and two
/// meters. Both are NOT TRUSTED, and CPU says why of each that lacked its processor. The server has one of its own, but on a busy
/// host others have it, too, and a worker that waits for a server lacks nothing: then it is tried again.
#[test]
fn generators_sharing_a_cpu_are_detected() {
    let _beside = beside_others();
    for _ in 0..ATTEMPTS {
        let both = two_on_one_processor();
        let is_named = both.each_ref().map(|measured| {
            let is_named = ["caution", "not_trusted"].contains(&status(measured, "CPU"));
            assert!(is_named || wanted(measured) < 0.85, "{}", measured.text);
            is_named
        });
        if is_named == [true, true] {
            return;
        }
    }
    assert!(!is_full(), "{HOST_DISTURBED}: another program had the server's processor each time");
}

/// For which part of the window its worker had its processor or wanted it.
fn wanted(measured: &Measured) -> f64 {
    let worker = &measured.at("client.workers")[0];
    let ns = |key: &str| worker[key].as_f64().unwrap();
    (ns("busy_ns") + ns("run_delay_ns")) / ns("wall_ns")
}

fn two_on_one_processor() -> [Measured; 2] {
    let [other, cpu] = two_processors();
    let server = Server::reference(&["--cpus", &other]);
    let flags =
        ["-r", "2M", "-t", "1s", "--warmup", "0s", "--drain", "100ms", "--no-preload", "--mix", "get"];
    let law = ["--key-size", "lognormal:3.6,0.3", "--popularity", "zipf:0.99"];
    let more = ["--meter", "outstanding", "--meter", "request-size", "-c", "64", "-d", "64", "--cpus", &cpu];
    let both = std::thread::scope(|scope| {
        let run = || Measured::run(&server.address, &[&flags[..], &law[..], &more[..]].concat());
        let other = scope.spawn(run);
        [run(), other.join().unwrap()]
    });
    for measured in &both {
        eprintln!("two on one processor:\n{}", measured.text);
        assert_eq!(measured.exit, 3, "{}", measured.text);
        assert!(delayed(measured) > 0.1, "{}", measured.at("client.workers"));
    }
    both
}
