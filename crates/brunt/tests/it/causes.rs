//! Troubles of one kind each, made by the test: the first line of the verdict names the cause.
//!
//! What the test made must be among the causes, with what shows it. A busy host adds causes of its own, and may take the first line:
//! then the run is made again, and on a host that is never quiet the order is left unjudged. Others never hide a cause.

use crate::cluster::Cluster;
use crate::experiments::is_full;
use crate::measured::{HOST_DISTURBED, Measured};
use crate::server::{Server, beside_others, brunt};
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
/// What a host does to the client is accepted where it is no matter of the test, so that it stands behind what is.
const ACCEPTED: &str = "RATE,SAT,STALL,CLOCK,NET,CI-THIN,WARM,ERR,LITTLE";
/// How often a run is made before the order of causes is left unjudged.
const ATTEMPTS: u32 = 3;

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
    assert!(text.lines().any(|line| line.starts_with(sentence)), "{text}");
}

/// Makes a run until this is its first cause, which must be among them every time.
fn check_named(kind: &str, check: impl Fn(&Measured, &Value), attempt: impl Fn() -> Measured) {
    for _ in 0..ATTEMPTS {
        let measured = attempt();
        let text = &measured.text;
        eprintln!("{text}");
        let Some(made) = of_kind(&measured, kind) else {
            // A server that got no processor is told as one that was gone or fell behind, and what else was found may follow from that.
            let is_starved =
                ["outage", "saturated_server"].iter().any(|kind| of_kind(&measured, kind).is_some());
            assert!(is_starved, "{kind}: {:#?}\n{text}", causes(&measured));
            continue;
        };
        check(&measured, made);
        if causes(&measured)[0] == *made {
            return check_first_line(&measured, made);
        }
        let is_of_host = |cause: &Value| {
            let kind = cause["kind"].as_str().unwrap();
            // What changes while the host is busy, or a check that has several reasons, stands for itself.
            OF_HOST.contains(&kind) || kind == "finding"
        };
        let before = causes(&measured).iter().take_while(|cause| *cause != made);
        assert!(before.clone().all(is_of_host), "{:#?}\n{text}", causes(&measured));
    }
    assert!(!is_full(), "{HOST_DISTURBED}: it had another cause in front each time");
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
        let load =
            ["-r", "2000", "-t", "4s", "--warmup", "0s", "--keys", "20000", "--wait", "sleep", "-c", "4"];
        let host = format!("LAG,CPU,STEAL,COLO,{ACCEPTED}");
        let fills = ["--no-preload", "--on-miss", "set", "--mix", "get", "--allow", &host];
        Some(Measured::run(&server.address, &[&load[..], &fills].concat()))
    };
    if Server::memcached(&[]).is_some() {
        check_named("cache", check, || attempt().unwrap());
    }
}

/// A program that never leaves a processor to others; ends with the test.
struct Neighbour(Child);

impl Neighbour {
    /// A generator that looks for replies all the time.
    fn on(cpu: &str, server: &str) -> Self {
        let idle =
            ["--wait", "spin", "-c", "1", "--think", "100ms", "-t", "60s", "--warmup", "0s", "--keys", "10"];
        let mut command = brunt(&["run", "--no-progress", "--server", server, "--cpus", cpu]);
        Self(command.args(idle).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two other programs on the processor of a worker that never sleeps: each has a third of it, and the closed loop the load that is left.
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
        assert!(cause["sets_load"].as_bool().unwrap(), "{cause:#}\n{text}");
        assert!(cause["sentence"].as_str().unwrap().starts_with("busy neighbour: "), "{cause:#}");
        check_no_threads(measured);
    };
    let allowed = format!("{ACCEPTED},DRIFT,SHIFT");
    let load = ["-t", "2s", "--warmup", "0s", "--keys", "1000", "-c", "4", "-T", "1", "--cpus", &cpu];
    let load = [&load[..], &["--wait", "spin", "--allow", &allowed]].concat();
    check_named("busy_neighbour", check, || Measured::run(&server.address, &load));
}

/// Client and server on one processor, where the server's work keeps the client from it in either loop.
#[test]
fn a_shared_processor_is_named() {
    let _beside = beside_others();
    let [_, cpu] = two_processors();
    let server = Server::reference(&["--cpus", &cpu]);
    let allowed = format!("{ACCEPTED},DRIFT,SHIFT");
    let load = [
        "-t", "2s", "--warmup", "0s", "--keys", "1000", "-c", "16", "-T", "1", "--cpus", &cpu, "--allow",
        &allowed,
    ];
    for rate in [&[][..], &["-r", "10k"]] {
        let check = |measured: &Measured, cause: &Value| {
            let text = &measured.text;
            assert!(has(cause, "checks", "COLO"), "{cause:#}\n{text}");
            let sentence = cause["sentence"].as_str().unwrap();
            assert!(sentence.starts_with("client and server on one processor"), "{text}");
            assert!(cause["fix"].as_str().unwrap().starts_with("put them on different processors"), "{text}");
            check_no_threads(measured);
        };
        check_named("shared_processor", check, || {
            Measured::run(&server.address, &[&load[..], rate].concat())
        });
    }
}

/// A worker that is not busy gains nothing from another thread.
fn check_no_threads(measured: &Measured) {
    let worker = &measured.at("client.workers")[0];
    let busy = worker["busy_ns"].as_f64().unwrap() / worker["wall_ns"].as_f64().unwrap();
    let is_advised = measured.text.contains("more --threads");
    assert!(!is_advised || busy > 0.8, "{}", measured.text);
}
