//! Troubles of one kind each, made by the test: the status says which of the six checks found it, what it was and what follows.
//!
//! Runs are plain: nothing is allowed, no option follows from what the test makes. A busy host adds troubles of its own and makes those
//! of the client worse: where its counters say that others took more than the test did, the run is made again, and on a host that is
//! never quiet the largest part of the client's time is left unjudged. What wants a host to itself is in `experiments/client.rs`.

use crate::cluster::{Cluster, wait_until};
use crate::experiments::is_full;
use crate::fleet::Agent;
use crate::measured::{HOST_DISTURBED, Measured, QUIET};
use crate::server::{Ended, Process, Server, begin, brunt, listening, plain, stop_for, wait};
use rustix::process::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

/// How often a run is tried that the host disturbs, before what only holds on a quiet one is left out.
pub(crate) const ATTEMPTS: u32 = 4;
/// CPUs that others may use in a run whose largest part of the client's time is judged.
pub(crate) const OTHERS_MAX: f64 = 0.1;

/// A run that is under way, to be meddled with.
struct Running {
    child: Child,
}

impl Running {
    fn start(server: &str, flags: &str) -> Self {
        Self { child: begin(brunt(&format!("run --server {server} -o json:- --progress 200ms {flags}"))) }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Does this when a line of progress says so, and waits for the end.
    fn when(mut self, is_time: impl Fn(&str) -> bool, act: impl FnOnce(Pid)) -> Measured {
        let pid = self.pid();
        let mut out = self.child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).unwrap();
            text
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
        let exit = self.child.wait().unwrap().code().unwrap();
        Measured::of(Ended { exit, out: reader.join().unwrap(), said: text })
    }
}

/// How long a run has measured, by a line of its progress.
fn measured_seconds(line: &str) -> Option<f64> {
    line.split_once("measure ")?.1.split_once("s/")?.0.parse().ok()
}

/// A run of so many seconds against a server, stopped for so long a third of the way through; and for how long that was, in ms.
pub(crate) fn stopped(
    server: &Server,
    rate: &str,
    stop_ms: u64,
    seconds: f64,
    flags: &str,
) -> (Measured, f64) {
    let usual = format!("-r {rate} --arrival uniform -c 16 --depth 64 --warmup 0s --keys 1000");
    let running = Running::start(server, &format!("{usual} -t {seconds}s {flags}"));
    let mut stopped = Duration::ZERO;
    let measured = running.when(
        |line| measured_seconds(line).is_some_and(|measured| measured >= seconds / 3.0),
        |pid| stopped = stop_for(pid, Duration::from_millis(stop_ms)),
    );
    (measured, stopped.as_secs_f64() * 1e3)
}

/// A client that is stopped for a second of four: a third of the requests are late by its part, which is named with its length. The p50 of
/// 1 ms is the server's, and stays a number.
#[test]
fn stopped_clients_are_named() {
    let server = Server::reference("--service fixed:1000 --script-after 1000");
    let (measured, _) = stopped(&server, "300", 1_000, 4.0, "-T 1");
    let (status, message) = measured.check("CLIENT");
    assert!(matches!(status, "caution" | "invalid"));
    let stalls = &measured.at("client.workers")[0]["stalls"];
    assert!(stalls["longest_ns"].as_u64() >= Some(975_000_000), "{stalls}");
    assert_ne!(measured.check("LOAD").0, "invalid");
    assert_eq!(measured.check("BROKEN").0, "ok");
    if measured.delayed() <= QUIET && measured.stolen() <= QUIET {
        assert_eq!((status, measured.exit), ("caution", 0));
        let largest = "the client's worker was stopped for ";
        assert!(message.starts_with(largest) && message.contains(", longest for 1."), "{message}");
        assert!(measured.fix("CLIENT").starts_with("find what stopped it"));
        assert!(measured.at("status.message").as_str().unwrap().starts_with("p50 may be quoted; "));
    }
}

/// In a closed loop no request is late: the rate falls and one response time of each slot is long, as if the server had stood
/// still. The client says that it was itself, for how long and when, whatever share of the time others had its processor. A reply that
/// came meanwhile is late, and no timeout.
#[test]
fn stopped_closed_loops_are_named() {
    let server = Server::reference("");
    let flags = "-c 4 -t 3s --warmup 0s --keys 1000 -T 1 --timeout 600ms";
    let mut stopped = Duration::ZERO;
    let measured = Running::start(&server, flags).when(
        |line| measured_seconds(line).is_some_and(|measured| measured >= 1.0),
        |pid| stopped = stop_for(pid, Duration::from_millis(700)),
    );
    let (status, message) = measured.check("CLIENT");
    assert_eq!((status, measured.exit), ("caution", 0));
    assert!(message.contains("it stood still for "), "{message}");
    let stalls = &measured.at("client.workers")[0]["stalls"];
    let ms = |key: &str| stalls[key].as_f64().unwrap() / 1e6;
    // Where nothing was due the first 20 ms may have been sleep.
    let stopped_ms = stopped.as_secs_f64() * 1e3;
    assert!(ms("longest_ns") >= 700.0 - 25.0 && ms("longest_ns") <= stopped_ms + 300.0, "{stopped_ms}");
    assert!(ms("longest_at_ns") >= 900.0 && ms("longest_at_ns") <= 2_300.0);
    assert!(ms("longest_ns") - ms("longest_run_delay_ns") >= 500.0, "{stalls}");
    assert_eq!(measured.faults(None), 0);
}

/// A publication takes no stop, and what an assertion cannot tell from the server's time is undecided.
#[test]
fn stops_decide_strict_runs_and_assertions() {
    let server = Server::reference("");
    let strict = stopped(&server, "10k", 300, 3.0, "--strict --wait sleep").0;
    assert_eq!((strict.exit, strict.check("CLIENT").0), (3, "invalid"));
    assert_eq!(
        (strict.at("status.value"), strict.at("status.judgement.is_strict")),
        (&"INVALID".into(), &true.into())
    );
    let asserted = "--wait sleep --assert 'p99.9 < 100ms' --assert 'p50 < 10s' --assert 'p99.9 < 10s'";
    let asserted = stopped(&server, "10k", 300, 3.0, asserted).0;
    assert_eq!((asserted.exit, outcomes(&asserted)), (3, vec!["undecided", "holds", "holds"]));
}

fn outcomes(measured: &Measured) -> Vec<&str> {
    let assertions = measured.at("status.assertions").as_array().unwrap();
    assertions.iter().map(|held| held["outcome"].as_str().unwrap()).collect()
}

/// A run as a user types it, with nothing allowed and the short report.
fn run(server: &str, flags: &str) -> Measured {
    Measured::of(plain(&format!("run --server {server} -o json:- {flags}")))
}

/// CPUs of the workers that neither they nor the servers used, from the counters that the result has.
pub(crate) fn others(measured: &Measured) -> f64 {
    let count = |path: &str| measured.count_or_0(path);
    let ours_ns =
        count("client.cpu_user_ns") + count("client.cpu_system_ns") + count("server_stats.window.cpu_ns");
    let used_ns = count("client.host.busy_ns") + count("client.host.stolen_ns");
    let wall_ns = measured.at("client.workers")[0]["wall_ns"].as_f64().unwrap();
    used_ns.saturating_sub(ours_ns) as f64 / wall_ns
}

/// Makes a run of which CLIENT says this first, and to do one of these. Only others that used more than `made` CPUs, which the test took,
/// excuse another answer: then the run is made again.
fn check_client(named: &str, fixes: &[&str], made: f64, attempt: impl Fn() -> Measured) {
    for _ in 0..ATTEMPTS {
        let measured = attempt();
        let (status, message) = measured.check("CLIENT");
        let first = message.split("; ").next().unwrap();
        if matches!(status, "caution" | "invalid") && first.contains(named) {
            let fix = measured.fix("CLIENT");
            assert!(fixes.iter().any(|told| fix.starts_with(told)), "{fix}");
            return;
        }
        let others = others(&measured);
        assert!(others > made + OTHERS_MAX, "{others:.2} CPUs of others: {message}");
    }
    assert!(!is_full(), "{HOST_DISTURBED}: others took more of the client's time each time");
    eprintln!("NOT JUDGED: other programs used this host in each of {ATTEMPTS} runs");
}

/// Two processors of this host that one may be bound to; the same twice where there is only one.
pub(crate) fn two_processors() -> [String; 2] {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let allowed: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    [allowed[0], allowed[allowed.len() - 1]].map(|cpu| cpu.to_string())
}

/// A program that never leaves a processor to others; ends with the test.
struct Neighbour(Process);

impl Neighbour {
    /// A generator that polls all the time.
    fn on(cpu: &str, server: &str) -> Self {
        let idle = "--wait spin -c 1 -r 10 -t 60s --warmup 0s --keys 10";
        let mut command = brunt(&format!("run --progress=none --server {server} --cpus {cpu} {idle}"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let neighbour = Self(Process(child));
        wait_until("a neighbour is busy", || neighbour.cpu_ticks() >= 30);
        neighbour
    }

    /// Processor time in user space and in the kernel, in ticks of 10 ms (fields 14 and 15 of proc(5)'s `stat`).
    fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.0.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

/// Another program on the processor of a worker: a closed loop has half of it, and an open one sends its requests late. There are slots for
/// all of these, so that none waits for a connection.
#[test]
fn neighbours_on_the_processor_are_named() {
    let [cpu, other] = two_processors();
    if cpu == other {
        return eprintln!("one processor: a neighbour cannot be told from the server");
    }
    let server = Server::reference(&format!("--cpus {other}"));
    let beside = Server::reference(&format!("--cpus {other}"));
    let mut neighbours = Vec::new();
    for loop_of in ["", "-r 2k --depth 64"] {
        // A worker that sleeps gets its processor back from one of them at once.
        neighbours.push(Neighbour::on(&cpu, &beside.address));
        check_client(" waited for a processor for ", &["stop what else runs on "], 1.0, || {
            run(&server, &format!("-t 1s --warmup 0s --keys 1000 -c 4 -T 1 --cpus {cpu} {loop_of}"))
        });
    }
}

/// Client and server on one processor, which the server never leaves: each time slice of the server keeps the client from it in either loop.
#[test]
fn servers_on_the_processor_are_named() {
    let [_, cpu] = two_processors();
    let server = Server::reference(&format!("--cpus {cpu} --busy-poll"));
    let load = format!("-t 1s --warmup 0s --keys 1000 -c 16 -T 1 --cpus {cpu}");
    for rate in ["", "-r 500"] {
        let fixes = ["put them on different processors", "use a client host of its own"];
        check_client(", which the server had", &fixes, 0.0, || run(&server, &format!("{load} {rate}")));
    }
}

/// One worker that has more to do than a processor can: keys of a law that takes work, and two meters. Its slots are full because it does
/// not read, so that requests wait for a slot, and yet it is the limit.
#[test]
fn too_few_threads_are_the_limit() {
    let [other, cpu] = two_processors();
    let server = Server::reference(&format!("--cpus {other}"));
    let flags = "-r 2M -t 1s --warmup 0s --set drain=100ms --no-preload --mix get";
    let law = "--key-size lognormal:3.6,0.3 --popularity zipf:0.99 -T 1";
    let more = format!("--set \"meter=['outstanding', 'request-size']\" -c 64 --depth 64 --cpus {cpu}");
    for _ in 0..ATTEMPTS {
        let measured = run(&server, &format!("{flags} {law} {more}"));
        let (status, message) = measured.check("LOAD");
        assert_eq!((measured.exit, status), (3, "invalid"));
        if measured.at("status.limit.bottleneck") == "client" {
            assert!(
                message
                    .starts_with("the client is the limit: worker 0 worked or waited for a processor for ")
            );
            let fixes = ["one more of --threads", "a second host for more (--agent)"];
            assert!(fixes.contains(&measured.fix("LOAD")));
            return;
        }
        // A worker whose server has no processor waits for it.
        assert!(wanted(&measured) < 0.95, "{message}");
    }
    assert!(!is_full(), "{HOST_DISTURBED}: another program had the server's processor each time");
}

/// For which part of the window the worker had its processor or wanted it.
fn wanted(measured: &Measured) -> f64 {
    let worker = &measured.at("client.workers")[0];
    let ns = |key: &str| worker[key].as_f64().unwrap();
    (ns("busy_ns") + ns("run_delay_ns")) / ns("wall_ns")
}

/// Of two agents the one that has least of a processor is named.
#[test]
fn starved_agents_are_named() {
    let [cpu, other] = two_processors();
    if cpu == other {
        return eprintln!("one processor: both agents are starved");
    }
    let server = Server::reference(&format!("--cpus {other}"));
    let beside = Server::reference(&format!("--cpus {other}"));
    let _neighbours = [0; 3].map(|_| Neighbour::on(&cpu, &beside.address));
    let agents = [&cpu, &other].map(|cpu| Agent::wait(&format!("-T 1 --cpus {cpu}")));
    let led = agents.each_ref().map(|agent| format!(" --agent {agent}")).concat();
    for _ in 0..ATTEMPTS {
        let measured = run(&server, &format!("-t 2s --warmup 0s --keys 1000 -c 8{led}"));
        let ns = |index: usize, key: &str| measured.at("client.workers")[index][key].as_f64().unwrap();
        let delayed = [0, 1].map(|index| ns(index, "run_delay_ns") / ns(index, "wall_ns"));
        // Others may have taken more of the second, or nearly as much: then late wake-ups, which the delay leaves out, decide.
        let [most, least] = if delayed[0] >= delayed[1] { [0, 1] } else { [1, 0] };
        if delayed[least] > 0.67 * delayed[most] {
            continue;
        }
        let (status, message) = measured.check("CLIENT");
        let named = format!("the worker of agent {} ", agents[most].address);
        assert!(status == "caution" && message.starts_with(&named), "{delayed:?}: {message}");
        // Either is a time without a processor.
        let causes = ["waited for a processor for ", "woke late from sleep, for "];
        assert!(causes.iter().any(|cause| message[named.len()..].starts_with(cause)), "{message}");
        return;
    }
    assert!(!is_full(), "{HOST_DISTURBED}: both agents waited as long for a processor each time");
    eprintln!("NOT JUDGED: both agents waited as long for a processor in each of {ATTEMPTS} runs");
}

/// A server that is gone for 1.02 s of 1.8 s: whatever the client's part, more than half of the requests waited for it. Both assertions
/// fail, which is printed with `--quiet`, too.
#[test]
fn outages_fail_assertions() {
    let server = Server::reference("--outage 300ms:1020ms --script-after 1000");
    let load = "-r 1000 -t 1800ms --warmup 0s --keys 1000 -c 8 --quiet";
    let measured = run(&server, &format!("{load} --assert 'p99 < 10ms' --assert 'p50 < 1ns'"));
    assert_eq!((measured.exit, outcomes(&measured)), (4, vec!["fails"; 2]));
    let lines: Vec<&str> = measured.text.lines().collect();
    for asserted in ["FAILS p99 < 10ms: ", "FAILS p50 < 1ns: "] {
        assert!(lines.iter().any(|line| line.starts_with(asserted)), "{asserted}");
    }
    assert_ne!(measured.check("LOAD").0, "invalid");
    let (status, message) = measured.check("DATA");
    assert!(status == "caution" && message.contains(&format!("{server} gave no answer for 1.")), "{message}");
    let sentence = measured.at("status.message").as_str().unwrap();
    assert!(sentence.contains(&format!("an outage of {server}")), "{sentence}");
}

/// A node of a cluster that stands still for 1.5 s is named, and its failures are an outage's.
#[test]
fn stopped_nodes_are_named() {
    let Some(cluster) = Cluster::start() else { return };
    let gone = &cluster.nodes[2];
    let more = "--keys 5000 --mix get --wait sleep --timeout 500ms";
    let run = cluster.run(&format!("--protocol resp3 -t 5s --warmup 0s -c 6 -T 1 -r 2000 {more}"));
    cluster.await_keys(5_000);
    wait(Duration::from_secs(2));
    stop_for(gone.pid(), Duration::from_millis(1_500));
    let measured = Measured::of(run);
    let (status, message) = measured.check("DATA");
    assert_eq!(status, "caution");
    let named = ["1", "2"].map(|seconds| format!("{gone} gave no answer for {seconds}."));
    assert!(named.iter().any(|named| message.contains(named)), "{message}");
    let failed = |key| measured.requests(key);
    assert!(failed("timeout") + failed("lost") + failed("abandoned") > 0);
    assert!(measured.fix("DATA").starts_with("see what the server did "));
}

/// Values that were not stored make no number of the run worth anything, and their number is told. Who knows may allow it.
#[test]
fn wrong_values_break_the_run() {
    let server = Server::reference("--wrong-every 50 --script-after 1000");
    let table: [(&str, i32, &str, &str); 3] = [
        ("--quiet", 3, "invalid", "INVALID"),
        ("--allow load,client,data", 3, "invalid", "INVALID"),
        ("--allow BROKEN", 0, "caution", "CAUTION"),
    ];
    for (judging, exit, found, status) in table {
        let measured = run(&server, &format!("-c 4 -n 5000 --warmup 0s --keys 1000 --mix get {judging}"));
        let text = &measured.text;
        let (of_check, message) = measured.check("BROKEN");
        assert_eq!((measured.exit, of_check), (exit, found), "{judging:?}");
        assert_eq!(measured.at("status.value"), status, "{judging:?}");
        assert_eq!(measured.requests("mismatch"), 100);
        let counted = "100 values read are not those that were stored (100 ";
        assert!(message.starts_with(counted), "{judging:?}: {message}");
        // With `--quiet`, too.
        assert!(text.contains(status) && text.contains("BROKEN"), "{judging:?}");
        let allowed = measured.at("status.judgement.allowed").as_array().unwrap();
        assert_eq!(allowed.contains(&"BROKEN".into()), found == "caution", "{judging:?}: {allowed:?}");
    }
}

/// A p99 has its number when ten requests lie above it.
#[test]
fn a_p99_needs_a_thousand_requests() {
    let server = Server::reference("");
    for (requests, is_few) in [("999", true), ("1000", false)] {
        let measured = run(&server, &format!("-c 1 --warmup 0s --keys 100 --mix get -n {requests}"));
        let (status, message) = measured.check("DATA");
        assert_eq!(message.contains("p99 has too few requests: "), is_few, "{requests}: {message}");
        assert!(!is_few || status == "caution");
        measured.check_exit();
    }
}

/// Three times as much is offered as the server can do, which is known. Nothing that is due in the window is sent in it: what
/// waits from the warm-up takes all of it. The rates are the server's pace all the same.
#[test]
fn overloaded_servers_are_measured_at_their_rate() {
    // A preload is not served by the law.
    let server = Server::reference("--service fixed:500 --script-after 1000");
    let flags = "-r 6k -c 4 --depth 4 --warmup 1500ms -t 1s --keys 1000 --set drain=100ms --wait sleep";
    let measured = Measured::run(&server, flags);
    assert_eq!((measured.exit, measured.check("LOAD").0), (3, "invalid"));
    assert_eq!(measured.requests("completed"), 0);
    let completed = measured.count("counts.in_window.completed");
    // As many as were in flight may be answered at once, where the client comes late to them.
    assert!(completed <= 2_000 + 16);
    let is_disturbed = measured.is_disturbed();
    assert!(completed >= 1_800 || is_disturbed);
    assert!(measured.at("status.limit.bottleneck") == "server" || is_disturbed);
    assert!(!measured.check("LOAD").1.contains(" 0 % of the slots"));
    assert_eq!(measured.at("counts.rate.completed").as_f64(), Some(completed as f64));
    assert!(measured.count("counts.in_window.waiting_at_start") >= 5_000);
    assert!(measured.text.contains("\nin window "));
}

/// A server that answers each get after so long, whatever else waits: a thread for each connection.
fn parallel_server(service: Duration) -> String {
    listening(move |stream, _| {
        stream.set_nodelay(true).unwrap();
        for _ in BufReader::new(&stream).lines().map_while(Result::ok) {
            wait(service);
            if (&stream).write_all(b"END\r\n").is_err() {
                return;
            }
        }
    })
}

/// Eight connections to a server that takes 10 ms for a request, and any number at a time, carry 800/s of 2 000/s, for which it takes
/// 20 of them and a quarter more. With as many as are advised the rate is met.
#[test]
fn connections_that_are_the_limit_are_named() {
    let address = parallel_server(Duration::from_millis(10));
    let load = "-r 2k -t 1s --warmup 0s --no-preload --mix get --keys 100";
    let load = format!("{load} -T 1 --set server-stats=false -c");
    for _ in 0..ATTEMPTS {
        let few = Measured::run_undisturbed(&address, &format!("{load} 8"));
        assert_eq!((few.exit, few.check("LOAD").0), (3, "invalid"));
        if few.at("status.limit.bottleneck") != "connections" {
            // Threads of the server, or the worker, that wait for a processor are slower than without load.
            assert!(few.is_disturbed());
            continue;
        }
        let needed = few.count("status.limit.connections_needed");
        assert!((18..=33).contains(&needed), "{needed}");
        assert!(few.check("LOAD").1.starts_with("the connections are the limit: 8 of 8 "));
        assert_eq!(few.fix("LOAD"), format!("-c {needed}"));
        let enough = Measured::run_undisturbed(&address, &format!("{load} {needed}"));
        assert!(enough.check("LOAD").0 == "ok" || enough.is_disturbed());
        return;
    }
    assert!(!is_full(), "{HOST_DISTURBED}: threads waited for a processor each time");
}
