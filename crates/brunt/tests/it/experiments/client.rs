//! The client's own part in what is measured: it is stopped, starved or left in peace, and says so as exactly as it can be known.
//!
//! What a status says on any host is in `status.rs`.

use super::is_full;
use crate::measured::{HOST_DISTURBED, Measured, QUIET};
use crate::server::{Server, alone, by_shell, unique};
use crate::status::{ATTEMPTS, OTHERS_MAX, others, stopped, two_processors};
use std::path::PathBuf;

/// T9: 10 000 requests/s, and the generator stopped for S. Those due in the stop are late by up to S, and all of
/// it is the client's: of a window of D, `client <=` at quantile p is S − (1 − p) · D, and nothing where that is below 0. With S = 300 ms
/// and D = 30 s the p99.9 is 270 ms; with 150 ms and 4 s the p95 has none of it, and the p99 110 ms. With a service of 50 us those that
/// come late queue in the server, which the bounds see and this one on the client does not; the status is the same.
#[test]
fn stopped_generators_mark_affected_percentiles() {
    alone();
    let services: &[&str] = if is_full() { &["none", "fixed:50"] } else { &["none"] };
    for service in services {
        let is_done = (0..if is_full() { ATTEMPTS } else { 1 }).any(|_| stop(service));
        assert!(is_done || !is_full(), "{HOST_DISTURBED}: it is never quiet");
    }
}

/// One run, whose status must hold in any case; false where the host took part in it, so that the formula is not that of this run.
fn stop(service: &str) -> bool {
    let server = Server::reference(&format!("--service {service}"));
    let (stop_ms, seconds) = if is_full() { (300, 30.0) } else { (150, 4.0) };
    let asserting = "--assert 'p50 < 10s' --assert 'p99.9 < 10s'";
    let (measured, stopped_ms) = stopped(&server, "10k", stop_ms, seconds, asserting);
    let expected_ms = stopped_ms - 0.001 * seconds * 1e3;
    let client_ms = measured.ms("latency.response_ns.client.p99.9");
    eprintln!(
        "stopped for {stopped_ms:.1} ms, service {service}: client <= {client_ms:.1} ms at p99.9, expected {expected_ms:.1} ms"
    );
    // The first of those due in the stop, whatever the host does beside.
    assert!(measured.ms("latency.send_lag_ns.max") > stop_ms as f64 - 5.0);
    assert!(["caution", "invalid"].contains(&measured.check("CLIENT").0));
    let is_quiet = is_left_in_peace(&measured);
    if is_full() && !is_quiet {
        return false;
    }
    measured.check_exit();
    for assertion in measured.at("status.assertions").as_array().unwrap() {
        assert_eq!(assertion["outcome"], "holds");
    }
    // It was not the server that was silent. (It may be, on a host that takes its processor away, but for less long.)
    let outages = measured.at("events.outages").as_array().unwrap();
    let blamed_ns = (stop_ms - 50) as f64 * 1e6;
    assert!(!outages.iter().any(|outage| outage["length_ns"].as_f64() > Some(blamed_ns)));
    if !is_quiet {
        return false;
    }
    // What is left without the client is what the burst takes to be served: below 10 ms.
    let is_told = service != "none" || (client_ms - expected_ms).abs() <= 15.0;
    assert!(is_told);
    assert_eq!((measured.exit, measured.check("CLIENT").0), (0, "caution"));
    let sentence = measured.at("status.message").as_str().unwrap();
    let limits = sentence.split("; ").find(|part| part.contains("upper limit")).unwrap_or_default();
    assert!(limits.contains("p99.9 "), "{sentence}");
    if !is_full() {
        // Wake-ups and the client's kernel may be above 10 us without the stop, and are far below it.
        for quantile in ["p50", "p90"] {
            let share_ms = measured.ms(&format!("latency.response_ns.client.{quantile}"));
            assert!(!limits.contains(quantile) || share_ms < 0.1, "{quantile}: {sentence}");
        }
        assert!(limits.contains("p99 and p99.9 ") || limits.contains(" to p99.9 "), "{sentence}");
    }
    true
}

/// A control group with a quota of a fifth of a processor, of whichever version this host has; `None` (and a word on
/// stderr) where none can be made.
struct StarvedGroup {
    path: PathBuf,
}

impl StarvedGroup {
    fn make() -> Option<Self> {
        let name = format!("brunt-test-{}-{}", std::process::id(), unique());
        let of_version_2 = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .map(|root| (PathBuf::from(root).join(&name), vec![("cpu.max", "20000 100000")]));
        let of_version_1 = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].map(|root| {
            let settings = vec![("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
            (PathBuf::from(root).join(&name), settings)
        });
        for (path, settings) in of_version_1.into_iter().chain(of_version_2) {
            if !path.parent().unwrap().join("cgroup.procs").exists() || std::fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self { path };
            let is_set = |(file, text): &(&str, &str)| {
                let file = group.path.join(file);
                file.exists() && std::fs::write(file, text).is_ok()
            };
            if settings.iter().all(is_set) {
                return Some(group);
            }
        }
        eprintln!("SKIPPED: no control group with a quota can be made here");
        None
    }
}

impl Drop for StarvedGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// A fifth of a processor for a generator whose schedule needs more: it is out of quota for 80 ms of every 100, and late. Twice as
/// many requests may be in flight as are due from one such spell to the next, or it would wait for replies; where the hypervisor
/// keeps the server from its processor, it does all the same: it is tried again, and in the end only asked for a CLIENT that is not ok.
#[test]
fn a_used_up_quota_is_named() {
    alone();
    let Some(group) = StarvedGroup::make() else { return };
    let server = Server::reference("");
    for _ in 0..ATTEMPTS {
        let measured = starved(&group, &server);
        eprintln!("starved:\n{}", measured.text);
        let (status, message) = measured.check("CLIENT");
        assert!(matches!(status, "caution" | "invalid"));
        measured.check_exit();
        if message.contains(", as the CPU quota was used up") {
            assert!(measured.fix("CLIENT").contains("a larger CPU quota"));
            return;
        }
        // Others take more of its time than the quota does.
        assert!(measured.stolen() > 0.1 || others(&measured) > OTHERS_MAX);
    }
    assert!(!is_full(), "{HOST_DISTURBED}: others had the processors each time");
}

/// One run within the group's quota.
fn starved(group: &StarvedGroup, server: &Server) -> Measured {
    let script = format!("echo $$ > {} && exec \"$@\"", group.path.join("cgroup.procs").display());
    let load = "-r 150k -t 2s --warmup 500ms --keys 1000 -c 64 --depth 512 --set drain=1s";
    let run = format!("run --report=full --server {server} -o json:- {load}");
    Measured::of(by_shell(&script, &run))
}

/// What a check of an undisturbed run may go by: a counter of the kernel's that says the host did it after all.
fn is_backed(measured: &Measured, id: &str) -> bool {
    match id {
        // It is the length of the run that it speaks against: twelve of 1 200 requests are slower than the p99.
        "DATA" => measured.requests("completed") == measured.requests("scheduled"),
        // The worker had its processor taken away, or the host had its own.
        "LOAD" | "CLIENT" | "STEADY" => measured.delayed() > 0.001 || measured.stolen() > 0.001,
        _ => false,
    }
}

/// Is everything that speaks against a run backed so?
fn is_all_backed(run: u32, measured: &Measured) -> bool {
    let (status, waited) = (measured.at("status.value"), measured.delayed() * 100.0);
    eprintln!("run {run}: {status}, kept waiting for {waited:.2} %");
    let checks = measured.at("status.checks").as_array().unwrap();
    let raised = checks.iter().filter(|check| check["status"] != "ok" && check["status"] != "skipped");
    let mut is_all = true;
    for check in raised {
        let is_backed = is_backed(measured, check["id"].as_str().unwrap());
        eprintln!("  {} {}, backed {is_backed}: {}", check["id"], check["status"], check["message"]);
        is_all &= is_backed;
    }
    is_all
}

/// Left in peace by the programs beside it and by the hypervisor?
fn is_left_in_peace(measured: &Measured) -> bool {
    measured.delayed() <= QUIET && measured.stolen() <= QUIET
}

/// The other half of T9: an undisturbed run is not INVALID, however strict the check. 200 requests/s of 2 ms each, so that what a
/// host takes now and then is small beside them, each program on a processor of its own; what speaks against a run all the same has a counter of the host behind it.
#[test]
fn undisturbed_runs_are_valid() {
    alone();
    let [other, cpu] = two_processors();
    let server = Server::reference(&format!("--service exp:2000 --script-after 1000 --cpus {other}"));
    let flags = "-r 200 -c 8 --depth 16 -t 6s --warmup 500ms --keys 1000";
    let flags = format!("{flags} --mix get --cpus {cpu} --strict");
    let mut invalid = 0;
    for run in 1..=if is_full() { 20 } else { 1 } {
        let mut tried = (0..ATTEMPTS).map(|_| Measured::run_undisturbed(&server, &flags));
        // How long a hypervisor takes to wake a processor that sleeps is not counted. It does not take long every time.
        let Some(measured) = tried.find(|measured| is_all_backed(run, measured)) else {
            panic!("run {run}: {ATTEMPTS} times something spoke against it that no counter of the host backs")
        };
        assert!(is_left_in_peace(&measured) || !is_full(), "{HOST_DISTURBED}: run {run}");
        invalid += u32::from(measured.exit == 3);
    }
    assert!(invalid == 0 || !is_full(), "{invalid} runs are INVALID");
}
