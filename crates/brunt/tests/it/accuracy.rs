//! Live accuracy: known stalls and known queues, measured over loopback.
//!
//! Each experiment's expected numbers come from its definition. In the usual test run each is short and its tolerance
//! leaves room for a busy machine; `BRUNT_ACCURACY=full` (`cargo xtask accuracy`) runs them at full length with the
//! tolerances of docs/accuracy.md.
//!
//! These tests have the machine to themselves: the others of this program wait.

use crate::measured::Measured;
use crate::server::{Server, alone, brunt, temporary, undisturbed};
use brunt_server::{Service, law};
use rustix::process::{Signal, kill_process};

pub(crate) fn is_full() -> bool {
    std::env::var("BRUNT_ACCURACY").is_ok_and(|value| value == "full")
}

/// The interface to the kernel to try something on: the one that was asked for (`cargo xtask accuracy --io`), or one by turns,
/// so that both are tried and none takes twice the time.
pub(crate) fn interface(turn: usize) -> String {
    if let Ok(io) = std::env::var("BRUNT_ACCURACY_IO") {
        return io;
    }
    match io_uring_works() {
        Ok(()) => ["epoll", "uring"][turn % 2].to_owned(),
        Err(why) => {
            eprintln!("SKIPPED: io_uring: {why}");
            "epoll".to_owned()
        }
    }
}

fn io_uring_works() -> Result<(), String> {
    let output = brunt(&["doctor"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("io_uring")).unwrap();
    if line.starts_with("ok") { Ok(()) } else { Err(line.to_owned()) }
}

/// T2 live: 1 000 requests/s, evenly spaced, for D = 10 s (in the usual test run 4 s); the server is frozen for S = 1 s.
/// Q_p = S − (1 − p)·D: at length p95 = 500 ms, p99 = 900 ms, whatever the number of connections.
#[test]
fn a_stall_of_the_reference_server_is_told_truly() {
    let _alone = alone();
    for (turn, (connections, depth)) in [("4", "1"), ("16", "64")].into_iter().enumerate() {
        let io = interface(turn);
        judge(|| {
            let server = Server::reference(&["--stall", "1500ms:1s", "--script-after", "1000"]);
            let measured = stall_run(&server.address, connections, depth, &io);
            check_stall(measured, &format!("{io}, {connections} × {depth}"), 20.0)
        });
    }
}

/// The same with a real memcached, stopped by a signal for one second.
#[test]
fn a_stopped_memcached_is_told_truly() {
    let _alone = alone();
    let shapes: &[(&str, &str)] = if is_full() { &[("4", "1"), ("16", "64")] } else { &[("4", "1")] };
    let io = interface(1);
    shapes.iter().for_each(|(connections, depth)| judge(|| stop_memcached(connections, depth, &io)));
}

/// One run against a memcached that is stopped; nothing where there is no memcached.
fn stop_memcached(connections: &str, depth: &str, io: &str) -> Result<(), Late> {
    let Some(server) = Server::memcached(&[]) else { return Ok(()) };
    let (pid, sets_before_stop) = (server.pid(), 1_000 + 300);
    let address = server.address.clone();
    // Stop it once 300 requests of the schedule have been served, for one second by the clock.
    let stopper = std::thread::spawn(move || {
        loop {
            let statistics = server.statistics();
            if statistics["cmd_get"] + statistics["cmd_set"] >= sets_before_stop {
                break;
            }
            std::thread::yield_now();
        }
        let began = std::time::Instant::now();
        kill_process(pid, Signal::STOP).unwrap();
        while began.elapsed() < std::time::Duration::from_secs(1) {
            std::thread::park_timeout(std::time::Duration::from_secs(1).saturating_sub(began.elapsed()));
        }
        kill_process(pid, Signal::CONT).unwrap();
        (server, began.elapsed().as_secs_f64() * 1e3)
    });
    let measured = stall_run(&address, connections, depth, io);
    let (_server, stalled_ms) = stopper.join().unwrap();
    eprintln!("memcached stood still for {stalled_ms:.1} ms");
    check_stall(
        measured,
        &format!("memcached, {io}, {connections} × {depth}"),
        20.0 + (stalled_ms - 1_000.0).abs(),
    )
}

/// T10 live: twice what a server can do, for D seconds, and room for all of it to wait. Request k is intended at k · 0.5 ms
/// and done at (k + 1) · 1 ms, so R_k = k · 0.5 ms + 1 ms: p50 = D/2, p99 = 0.99 · D, where a tool that stops asking shows what
/// its connections hold. The server falls behind at 1 000/s, and the verdict is SAT.
#[test]
fn an_overloaded_server_is_told_truly() {
    let _alone = alone();
    let io = interface(1);
    judge(|| overload(&io));
}

fn overload(io: &str) -> Result<(), Late> {
    let seconds = if is_full() { 10.0 } else { 3.0 };
    let server = Server::reference_undisturbed(&["--service", "fixed:1000"]);
    let flags =
        ["-r", "2k", "--arrival", "uniform", "-c", "4", "-d", "8192", "--warmup", "0s", "--no-preload"];
    let time = format!("{seconds}s");
    let more =
        ["--io", io, "-t", &time, "--timeout", "1m", "--drain", "30s", "--keys", "1000", "--mix", "get"];
    let measured = Measured::run_undisturbed(&server.address, &[&flags[..], &more].concat());
    measured.check_books();
    assert_eq!(measured.count("requests.completed"), (seconds * 2e3) as u64, "{}", measured.text);
    let mut late = None;
    for (percentile, p) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let (ms, expected_ms) =
            (measured.ms(&format!("latency.response_ns.{percentile}")), p * seconds * 1e3 + 1.0);
        eprintln!("T10 overload: {percentile} {ms:.1} ms, expected {expected_ms:.1} ms");
        // What the host takes from the server makes it slower than it should be, never faster.
        assert!(ms >= expected_ms * 0.998, "{percentile}\n{}", measured.text);
        if ms > expected_ms * if is_full() { 1.01 } else { 1.1 } {
            late.get_or_insert(format!("T10 {percentile}: {ms:.1} ms"));
        }
    }
    assert!(measured.convicting().contains(&"SAT"), "{}", measured.text);
    assert_eq!(measured.exit, 3, "{}", measured.text);
    late.map_or(Ok(()), |what| Err(Late::gross(what, measured)))
}

/// How often a short run is tried that the host has made late.
const ATTEMPTS: u32 = 4;

/// A run that came out too late, and at what.
struct Late {
    what: String,
    /// By so much that no host does it unseen: the run itself has to say that it was disturbed.
    is_gross: bool,
    run: Box<Measured>,
}

impl Late {
    fn gross(what: String, run: Measured) -> Self {
        Self { what, is_gross: true, run: Box::new(run) }
    }
}

/// Judges an experiment by a run that the host left in peace. What a host does makes a request later, never earlier: so a
/// short run, which one stop of the host's processors can spoil, may be tried again where it came out late, and never where it
/// came out early or miscounted. Where the host never leaves it in peace, each of the late runs has to say so itself; a bare
/// loop may say it of those that are late by less than a run must notice.
fn judge(run: impl Fn() -> Result<(), Late>) {
    let mut late = Vec::new();
    for _ in 0..if is_full() { 1 } else { ATTEMPTS } {
        match run() {
            Ok(()) => return,
            Err(run) => late.push(run),
        }
    }
    let is_noisy = late.iter().any(|run| !run.is_gross) && is_host_noisy();
    for Late { what, is_gross, run } in late {
        assert!(run.is_disturbed() || is_noisy && !is_gross, "{what}\n{}", run.text);
    }
}

/// How long the run is that the stall happens in.
fn stall_run_seconds() -> u64 {
    if is_full() { 10 } else { 4 }
}

/// The run that the stall happens in.
fn stall_run(server: &str, connections: &str, depth: &str, io: &str) -> Measured {
    let time = format!("{}s", stall_run_seconds());
    let schedule = ["-r", "1000", "--arrival", "uniform", "-t", &time, "--warmup", "0s", "--keys", "1000"];
    Measured::run(
        server,
        &[&schedule[..], &["-c", connections, "-d", depth, "--io", io, "--allow-untrusted"]].concat(),
    )
}

fn check_stall(measured: Measured, name: &str, tolerance_ms: f64) -> Result<(), Late> {
    measured.check_books();
    let requests = stall_run_seconds() * 1_000;
    assert_eq!(measured.count("requests.completed"), requests, "{}", measured.text);
    for (percentile, p) in [("p95", 0.95), ("p99", 0.99)] {
        // A request a millisecond.
        let expected_ms = 1_000.0 - (1.0 - p) * requests as f64;
        let ms = measured.ms(&format!("latency.response_ns.{percentile}"));
        eprintln!("stall, {name}: {percentile} {ms:.1} ms, expected {expected_ms} ms");
        assert!(ms >= expected_ms - tolerance_ms, "{name}: {percentile} {ms} ms\n{}", measured.text);
        if ms > expected_ms + tolerance_ms {
            return Err(Late::gross(format!("{name}: {percentile} {ms:.1} ms"), measured));
        }
    }
    Ok(())
}

/// T3, T4, T5: a queue with one server at ρ = 0.5, mean service time 1 ms; 500 requests/s over one connection, so that the
/// order of arrival is the order of the schedule. Three comparisons, from exact to analytic:
///
/// 1. Service time against what the server did: Lindley's recursion over its own log of arrivals.
/// 2. Response time against the path: the same recursion over the intended times, which no server has seen.
/// 3. Response time against the law of the queue.
///
/// The second differs from the first by what the host's processors do to both programs: a stop of some milliseconds makes a
/// bunch of arrivals, and that a real queue.
fn check_queue(name: &str, arrival: &str, service: Service, analytic_ms: [f64; 3]) {
    let _alone = alone();
    let io = interface(usize::from(arrival == "poisson"));
    judge(|| run_queue(name, arrival, service, analytic_ms, &io));
}

/// One run.
fn run_queue(
    name: &str,
    arrival: &str,
    service: Service,
    analytic_ms: [f64; 3],
    io: &str,
) -> Result<(), Late> {
    let name = format!("{name}, {io}");
    let seed = 7;
    let log = temporary("log");
    let server = Server::reference_undisturbed(&[
        "--service",
        &service.to_string(),
        "--seed",
        &seed.to_string(),
        "--log",
        log.to_str().unwrap(),
    ]);
    let csv = temporary("csv");
    let flags =
        ["-r", "500", "--arrival", arrival, "-c", "1", "-d", "4096", "--warmup", "0s", "--no-preload"];
    let more = ["--keys", "1000", "--seed", "11", "--wait", "spin", "--allow-untrusted", "--samples"];
    let time = if is_full() { "25s" } else { "4s" };
    let measured = Measured::run_undisturbed(
        &server.address,
        &[&flags[..], &more[..], &[csv.to_str().unwrap(), "-t", time, "--io", io]].concat(),
    );
    measured.check_books();
    let samples = read_samples(&csv);
    assert_eq!(samples.len() as u64, measured.count("requests.scheduled"));
    // The connection's end brings the log up to date; the server is done with it when the last record is there.
    let records = loop {
        let read = brunt_server::log::read(&std::fs::read(&log).unwrap());
        let records = read.map(|(_, records)| records).unwrap_or_default();
        if records.len() == samples.len() {
            break records;
        }
        std::thread::yield_now();
    };
    let service_ns = |number: usize| service.service_ns(seed, number as u64) as i64;
    let arrivals: Vec<i64> = records.iter().map(|record| record.arrival_ns as i64).collect();
    let intended: Vec<i64> = samples.iter().map(|sample| sample.intended_ns).collect();
    let of = |time: fn(&Times) -> i64| samples.iter().map(time).collect::<Vec<i64>>();
    let comparisons = [
        ("service", of(|times| times.done_ns - times.sent_ns), sojourns(&arrivals, service_ns)),
        ("response", of(|times| times.done_ns - times.intended_ns), sojourns(&intended, service_ns)),
    ];
    for (what, got, expected) in comparisons {
        let least_ns = got.iter().zip(&expected).map(|(got, expected)| got - expected).min().unwrap();
        assert!(what == "service" || least_ns >= 0, "{name}: a reply came {least_ns} ns before it could");
        for (p, analytic) in [0.5, 0.9, 0.99].into_iter().zip(analytic_ms) {
            let (got_ms, path_ms) = (quantile_ms(&got, p), quantile_ms(&expected, p));
            let over_us = (got_ms - path_ms) * 1e3;
            eprintln!(
                "{name}: {what} p{}: {got_ms:.3} ms, path {path_ms:.3} ms, over {over_us:.0} us, law {analytic:.3} ms",
                p * 100.0
            );
            // 100 us; the p99 has the tolerance of the law itself, 8 %, where that is more. A host takes its processors away
            // for milliseconds now and then (docs/accuracy.md): what meets such a stop is one request in a hundred.
            let most_us = if p == 0.99 { f64::max(100.0, path_ms * 80.0) } else { 100.0 };
            // `sent` is stamped behind the write, in which loopback has already delivered: up to a send cost too late.
            let least_us = if what == "service" { -50.0 } else { 0.0 };
            let (least_us, most_us) = match is_full() {
                true => (least_us, most_us),
                // A short run has twenty requests above its p99: one stop of the host moves it anywhere.
                false if p == 0.99 => (f64::MIN, f64::MAX),
                false => (-50.0, 1_000.0),
            };
            assert!(over_us >= least_us, "{name}: {what}\n{}", measured.text);
            if over_us > most_us {
                let is_gross = p != 0.99 && over_us > 1_000.0;
                let what = format!("{name}: {what} p{}", p * 100.0);
                return Err(Late { what, is_gross, run: Box::new(measured) });
            }
            // The law only checks that the path is one of this queue; at length it is judged in virtual time
            // (`brunt-engine/src/simulated/queues.rs`).
            if is_full() && what == "response" {
                assert!((path_ms / analytic - 1.0).abs() <= 0.08, "{name}: {path_ms} ms, law {analytic} ms");
            }
        }
    }
    std::fs::remove_file(&csv).unwrap();
    std::fs::remove_file(&log).unwrap();
    Ok(())
}

/// Does this host take so much of its processors away that times below a millisecond say more of the host than of anybody
/// else? What a bare loop on each of them misses, in pieces over 100 us, of two seconds: more than 0.2 %, or one in a hundred
/// requests comes late whatever a load generator does.
fn is_host_noisy() -> bool {
    const LOOK: std::time::Duration = std::time::Duration::from_secs(2);
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    let missed = |cpu: usize| {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        rustix::thread::sched_setaffinity(None, &only).unwrap();
        let begin = std::time::Instant::now();
        let (mut last, mut missed) = (begin, std::time::Duration::ZERO);
        while last - begin < LOOK {
            let now = std::time::Instant::now();
            missed += if (now - last).as_micros() > 100 { now - last } else { std::time::Duration::ZERO };
            last = now;
        }
        missed.as_secs_f64() / LOOK.as_secs_f64()
    };
    let missed = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|cpu| scope.spawn(move || missed(*cpu))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(0.0, f64::max)
    });
    eprintln!(
        "this host: a bare loop misses up to {:.2} % of its time in pieces over 100 us",
        missed * 100.0
    );
    missed > 0.002
}

/// Lindley's recursion: how long each customer is in the system.
fn sojourns(arrivals: &[i64], service_ns: impl Fn(usize) -> i64) -> Vec<i64> {
    let mut departure_ns = i64::MIN;
    let sojourn = |(number, arrival_ns): (usize, &i64)| {
        departure_ns = departure_ns.max(*arrival_ns) + service_ns(number);
        departure_ns - arrival_ns
    };
    arrivals.iter().enumerate().map(sojourn).collect()
}

fn quantile_ms(values: &[i64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[((p * sorted.len() as f64).ceil() as usize).max(1) - 1] as f64 / 1e6
}

/// Three of a sample's times, relative to the measured window.
struct Times {
    intended_ns: i64,
    sent_ns: i64,
    done_ns: i64,
}

/// Every sample, in the order of the schedule.
fn read_samples(path: &std::path::Path) -> Vec<Times> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let headings: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| headings.iter().position(|heading| *heading == name).unwrap();
    let (intended, sent, done) = (column("intended_ns"), column("sent_ns"), column("done_ns"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |column: usize| cells[column].parse().unwrap();
        Times { intended_ns: cell(intended), sent_ns: cell(sent), done_ns: cell(done) }
    };
    lines.map(row).collect()
}

/// R is exponential with rate μ − λ = 500/s: Q_p = −ln(1 − p)·2 ms.
#[test]
fn t3_poisson_arrivals_exponential_service() {
    check_queue("T3 M/M/1", "poisson", Service::Exponential(1_000_000), [1.386, 4.605, 9.210]);
}

/// Erlang's series for deterministic service.
#[test]
fn t4_poisson_arrivals_fixed_service() {
    check_queue("T4 M/D/1", "poisson", Service::Fixed(1_000_000), [1.000, 2.516, 4.336]);
}

/// R is exponential with rate μ(1 − σ), σ = e^−(1−σ)/ρ.
#[test]
fn t5_uniform_arrivals_exponential_service() {
    check_queue("T5 D/M/1", "uniform", Service::Exponential(1_000_000), [0.870, 2.890, 5.779]);
}

/// T4 the other way round: a server that takes 100 us for each request, and the highest rate with a p99 below 1 ms. By its
/// law that is 7 735/s (ρ = 0.7735); what this client and this host add at a low load makes the bound narrower by as much. What
/// a busy host does only lowers the capacity, so a search that ends too low is judged where a bare loop finds the host quiet;
/// one that ends too high is wrong anywhere. In virtual time it is always judged (`brunt-engine/src/simulated/capacity.rs`).
#[test]
fn the_capacity_of_a_known_queue_is_found() {
    let _alone = alone();
    let (service_us, bound_us) = (100.0, 1_000.0);
    let serve = ["--service", "fixed:100", "--script-after", "1000"];
    let shape =
        ["-c", "4", "-d", "256", "--mix", "get", "--keys", "1000", "--wait", "spin", "--allow-untrusted"];
    let steps: &[&str] = match is_full() {
        true => &["-t", "5s", "--max-time", "20s", "--resolution", "2%"],
        false => &["-t", "3s", "--max-time", "3s", "--resolution", "25%", "--warmup", "200ms"],
    };
    let mut low = String::new();
    for _ in 0..if is_full() { 2 } else { 1 } {
        let server = Server::reference_undisturbed(&serve);
        let idle =
            Measured::run_undisturbed(&server.address, &[&shape[..], &["-r", "200", "-t", "3s"]].concat());
        let floor_us = (idle.ms("latency.response_ns.p50") * 1e3 - service_us).max(0.0);
        let law = 1e6 / service_us * law::utilisation_at_p99((bound_us - floor_us) / service_us);
        let search = ["search", "-s", &server.address, "--slo", "p99 < 1ms", "--from", "4k", "--json", "-"];
        let output = undisturbed(&[&search[..], &shape[..], steps].concat()).output().unwrap();
        let found = Measured::of(&output);
        let capacity = found.at("finding.capacity.passed_per_s").as_f64().unwrap_or(0.0);
        eprintln!("capacity: {capacity}/s, law {law:.0}/s with a floor of {floor_us:.0} us\n{}", found.text);
        assert!(capacity <= law * 1.05, "{}", found.text);
        if !is_full() || capacity >= law * 0.95 {
            return;
        }
        if is_host_noisy() {
            eprintln!("NOT JUDGED: this host is too noisy for a bound of 1 ms");
            return;
        }
        low = found.text;
    }
    panic!("{low}");
}
