//! Troubles of one kind each, made by the test: the first line of the verdict names the cause.
//!
//! Runs are plain: no check is accepted, no option follows from what the test makes. A busy host adds causes of its own, and may take the
//! first line: if its counters say so the run is made again, and on a host that is never quiet the order is left unjudged.

use crate::cluster::{Cluster, wait_until};
use crate::experiments::is_full;
use crate::measured::{HOST_DISTURBED, Measured};
use crate::server::{Server, beside_others, brunt, plain};
use crate::verdicts::two_processors;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

/// What a host can add to what a test made. The outages among these are silences of servers that got no processor.
const OF_HOST: [&str; 8] = [
    "outage",
    "busy_neighbour",
    "shared_processor",
    "cpu_quota",
    "client_stop",
    "busy_client",
    "saturated_server",
    "wake_ups",
];
/// How often a run is made while the host is busy with something else.
const ATTEMPTS: u32 = 4;
/// CPUs that others may use in a run whose first cause is judged.
const OTHERS_MAX: f64 = 0.1;

fn causes(measured: &Measured) -> &[Value] {
    measured.at("verdict.causes").as_array().unwrap()
}

fn of_kind<'a>(measured: &'a Measured, kind: &str) -> Option<&'a Value> {
    causes(measured).iter().find(|cause| cause["kind"] == kind)
}

fn has(cause: &Value, list: &str, id: &str) -> bool {
    cause[list].as_array().unwrap().contains(&id.into())
}

/// Does this check, where it finds something, follow from what the test made, or from what the host added to it?
fn check_follows(measured: &Measured, kind: &str, id: &str) {
    let mut of =
        causes(measured).iter().filter(|cause| has(cause, "follows", id) || has(cause, "checks", id));
    let is_told =
        |cause: &Value| cause["kind"] == kind || OF_HOST.iter().any(|of_host| cause["kind"] == *of_host);
    assert!(of.all(is_told), "{id}: {:#?}\n{}", causes(measured), measured.text);
}

/// Does the first line of the verdict begin with this cause, in JSON and in text?
fn check_first_line(measured: &Measured, cause: &Value) {
    let text = &measured.text;
    let sentence = cause["sentence"].as_str().unwrap();
    assert!(measured.at("verdict.sentence").as_str().unwrap().starts_with(sentence), "{text}");
    // The verdict is the last paragraph, and its first line may be too long for the whole sentence.
    let paragraph = text.trim_end().rsplit("\n\n").next().unwrap();
    let first = paragraph.lines().next().unwrap();
    assert!(first.starts_with(sentence) || sentence.starts_with(first), "{first}\n{text}");
}

/// A run as a user types it, with nothing accepted and the short report.
fn run(server: &str, flags: &[&str]) -> Measured {
    Measured::of(&plain(&["run", "--server", server, "--json", "-"]).args(flags).output().unwrap())
}

/// CPUs of the workers that neither they nor the servers used, from the counters that the result has.
fn others(measured: &Measured) -> f64 {
    let count = |path: &str| measured.count_or_0(path);
    let ours_ns =
        count("client.cpu_user_ns") + count("client.cpu_system_ns") + count("server_stats.window.cpu_ns");
    let used_ns = count("client.host.busy_ns") + count("client.host.stolen_ns");
    let wall_ns = measured.at("client.workers")[0]["wall_ns"].as_f64().unwrap();
    used_ns.saturating_sub(ours_ns) as f64 / wall_ns
}

/// Makes a run whose first cause is this one. Only others that used more than `made` CPUs, which the test took, excuse another first cause:
/// then the run is made again. A cause of the server's or the client's own is no excuse.
fn check_named(kind: &str, made: f64, check: impl Fn(&Measured, &Value), attempt: impl Fn() -> Measured) {
    for _ in 0..ATTEMPTS {
        let measured = attempt();
        let text = &measured.text;
        eprintln!("{text}");
        let first = &causes(&measured)[0];
        let named = of_kind(&measured, kind);
        named.iter().for_each(|cause| check(&measured, cause));
        if first["kind"] == kind {
            return check_first_line(&measured, first);
        }
        let others = others(&measured);
        assert!(others > made + OTHERS_MAX, "{others:.2} CPUs: {:#?}\n{text}", causes(&measured));
        let is_of_host = |cause: &Value| {
            let kind = cause["kind"].as_str().unwrap();
            // What changes while the host is busy, or a check that has several reasons, stands for itself.
            OF_HOST.contains(&kind) || kind == "finding"
        };
        let before = causes(&measured).iter().take_while(|cause| cause["kind"] != kind);
        assert!(before.clone().all(is_of_host), "{:#?}\n{text}", causes(&measured));
    }
    assert!(!is_full(), "{HOST_DISTURBED}: it had another cause in front each time");
    eprintln!("NOT JUDGED: other programs used this host in each of {ATTEMPTS} runs");
}

fn wait(length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        park_timeout(end.saturating_duration_since(Instant::now()));
    }
}

/// A node of a cluster that stands still for 1.5 s: the longest outage of the run, which begins with it.
#[test]
fn stopped_nodes_are_named() {
    let _beside = beside_others();
    let Some(cluster) = Cluster::start() else { return };
    let gone = &cluster.nodes[2];
    let flags = [
        "--protocol",
        "resp3",
        "-t",
        "5s",
        "--warmup",
        "0s",
        "-c",
        "6",
        "-T",
        "1",
        "-r",
        "2000",
        "--keys",
        "5000",
    ];
    let run = cluster.run(&[&flags[..], &["--mix", "get", "--wait", "sleep", "--timeout", "500ms"]].concat());
    cluster.await_keys(5_000);
    wait(Duration::from_secs(2));
    kill_process(gone.pid(), Signal::STOP).unwrap();
    wait(Duration::from_millis(1_500));
    kill_process(gone.pid(), Signal::CONT).unwrap();
    let measured = Measured::of(&run.wait_with_output().unwrap());
    let text = &measured.text;
    eprintln!("{text}");
    let cause = &causes(&measured)[0];
    assert_eq!(cause["kind"], "outage", "{text}");
    check_first_line(&measured, cause);
    let sentence = cause["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("outage of 1.") || sentence.starts_with("outage of 2."),
        "{sentence}\n{text}"
    );
    assert!(sentence.contains(&format!(" s at {}", gone.address)), "{sentence}\n{text}");
    // It took the failures with it, all but what a busy host adds.
    let failed = |key: &str| measured.count(&format!("requests.{key}"));
    assert!(failed("timeout") + failed("lost") + failed("abandoned") > 0, "{text}");
    let outages = measured.at("outages").as_array().unwrap();
    let of_outages: u64 = outages.iter().map(|outage| outage["failed"].as_u64().unwrap()).sum();
    let faulty = failed("timeout") + failed("lost") + failed("error");
    assert!(has(cause, "follows", "ERR") || of_outages < faulty, "{cause:#}\n{text}");
}

/// A cache that is filled by its misses: hit ratio and times move because of it.
#[test]
fn a_filling_cache_is_named() {
    let _beside = beside_others();
    let check = |measured: &Measured, cause: &Value| {
        assert!(has(cause, "checks", "CACHE"), "{cause:#}\n{}", measured.text);
        check_follows(measured, "cache", "DRIFT");
        assert!(cause["sentence"].as_str().unwrap().starts_with("filling cache: "), "{cause:#}");
    };
    let attempt = || {
        let server = Server::memcached(&[])?;
        // It does not sleep through replies: the scheduler would put server and client on one processor.
        let load = ["-r", "2000", "-t", "4s", "--warmup", "0s", "--keys", "20000", "-c", "4"];
        let fills = ["--no-preload", "--on-miss", "set", "--mix", "get"];
        Some(run(&server.address, &[&load[..], &fills].concat()))
    };
    if Server::memcached(&[]).is_some() {
        check_named("cache", 0.0, check, || attempt().unwrap());
    }
}

/// A program that never leaves a processor to others; ends with the test.
struct Neighbour(Child);

impl Neighbour {
    /// A generator that polls all the time.
    fn on(cpu: &str, server: &str) -> Self {
        let idle = ["--wait", "spin", "-c", "1", "-r", "10", "-t", "60s", "--warmup", "0s", "--keys", "10"];
        let mut command = brunt(&["run", "--no-progress", "--server", server, "--cpus", cpu]);
        let child = command.args(idle).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let neighbour = Self(child);
        wait_until("a neighbour is busy", || neighbour.cpu_ticks() >= 30);
        neighbour
    }

    /// Processor time in user space and in the kernel, in ticks of 10 ms (fields 14 and 15 of proc(5)'s `stat`).
    fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two other programs on the processor of a worker: each has a third of it, and a closed loop the load that is left.
#[test]
fn a_busy_neighbour_is_named() {
    let _beside = beside_others();
    let [cpu, other] = two_processors();
    if cpu == other {
        return eprintln!("one processor: a neighbour cannot be told from the server");
    }
    let server = Server::reference(&["--cpus", &other]);
    let beside = Server::reference(&["--cpus", &other]);
    let _neighbours = [Neighbour::on(&cpu, &beside.address), Neighbour::on(&cpu, &beside.address)];
    let check = |measured: &Measured, cause: &Value| {
        let text = &measured.text;
        assert!(has(cause, "checks", "STEAL"), "{cause:#}\n{text}");
        assert_eq!(
            cause["sets_load"].as_bool().unwrap(),
            measured.at("plan.class")[0]["rate"].is_null(),
            "{cause:#}\n{text}"
        );
        assert!(cause["sentence"].as_str().unwrap().starts_with("busy neighbour: "), "{cause:#}");
        check_no_threads(measured);
    };
    let load = ["-t", "2s", "--warmup", "0s", "--keys", "1000", "-c", "4", "-T", "1", "--cpus", &cpu];
    for loop_of in [&[][..], &["-r", "2k"]] {
        check_named("busy_neighbour", 1.0, check, || run(&server.address, &[&load[..], loop_of].concat()));
    }
}

/// Client and server on one processor, where the server's work keeps the client from it in either loop.
#[test]
fn a_shared_processor_is_named() {
    let _beside = beside_others();
    let [_, cpu] = two_processors();
    let server = Server::reference(&["--cpus", &cpu]);
    let load = ["-t", "2s", "--warmup", "0s", "--keys", "1000", "-c", "16", "-T", "1", "--cpus", &cpu];
    for rate in [&[][..], &["-r", "10k"]] {
        let check = |measured: &Measured, cause: &Value| {
            let text = &measured.text;
            assert!(has(cause, "checks", "COLO"), "{cause:#}\n{text}");
            let sentence = cause["sentence"].as_str().unwrap();
            assert!(sentence.starts_with("client and server on one processor"), "{text}");
            assert!(cause["fix"].as_str().unwrap().starts_with("put them on different processors"), "{text}");
            check_no_threads(measured);
        };
        check_named("shared_processor", 0.0, check, || run(&server.address, &[&load[..], rate].concat()));
    }
}

/// A worker that is not busy gains nothing from another thread.
fn check_no_threads(measured: &Measured) {
    let worker = &measured.at("client.workers")[0];
    let busy = worker["busy_ns"].as_f64().unwrap() / worker["wall_ns"].as_f64().unwrap();
    let is_advised = measured.text.contains("more --threads");
    assert!(!is_advised || busy > 0.8, "{}", measured.text);
}
