//! A server that wrongs its clients by script, live: whatever it does, the counts are exact.

use crate::measured::Measured;
use crate::server::{Server, rows};

/// How often a run is tried that the host disturbs.
const ATTEMPTS: u32 = 4;

/// The faults of a script, of which the first happens where several are due, and which of its outcomes each is.
const FAULTS: [(&str, usize); 5] = [("drop", 0), ("reset", 1), ("cut", 1), ("error", 2), ("wrong", 3)];

/// Every how many requests this fault is due in words such as `drop 900 reset 150`.
fn every(script: &str, fault: &str) -> Option<u64> {
    script.split(' ').skip_while(|word| *word != fault).nth(1).map(|every| every.parse().unwrap())
}

/// What retrievals that are alone on their connections come to: (timed out, lost, in error, wrong).
fn outcomes(script: &str, requests: u64) -> [u64; 4] {
    let mut outcomes = [0; 4];
    for number in 1..=requests {
        let is_due = |fault: &str| every(script, fault).is_some_and(|every| number.is_multiple_of(every));
        if let Some((_, outcome)) = FAULTS.into_iter().find(|(fault, _)| is_due(fault)) {
            outcomes[outcome] += 1;
        }
    }
    outcomes
}

/// One run against one server, whose script begins after so many stores.
fn run(seed: usize, stores: &str, script: &str, serve: &str, flags: &str) -> Measured {
    let due = FAULTS.map(|(fault, _)| every(script, fault).map(|every| format!(" --{fault}-every {every}")));
    let due: String = due.into_iter().flatten().collect();
    let server = Server::reference(&format!("--script-after {stores}{due} {serve}"));
    // A server that drips writes each byte by itself.
    let base = "--warmup 0s --keys 1000 --timeout 300ms --set drain=1s --allow=BROKEN,LOAD,CLIENT,DATA --value-size 40";
    let measured = Measured::run(&server, &format!("{base} --seed {seed} {flags}"));
    assert_eq!(measured.exit, 0);
    // Nothing but what the script made wrong: values that it changed.
    let (status, message) = measured.check("BROKEN");
    let is_wrong =
        script.contains("wrong") && message.contains(" values read are not those that were stored");
    assert!(status == "ok" || is_wrong && !message.contains("; "), "{message}");
    measured.check_faults();
    measured
}

/// With one request at a time on each connection nothing is lost but what is hit, and that is known by its number.
#[test]
fn injected_faults_are_the_only_failures() {
    let table = "
        reset 100 =>  => -n 2000 -c 4
        cut 100 =>  => -n 2000 -c 4 -T 2
        error 70 wrong 30 => --drip 1:0 => -n 2000 -c 16
        drop 900 => --drip 3:20 => -n 2000 -c 4
        error 90 => --stall 100ms:150ms => -r 8k -n 2000 -c 4
        drop 900 reset 150 cut 250 error 70 wrong 30 =>  => -r 8k -n 2000 -c 16";
    for (seed, [script, serve, flags]) in (1..).zip(rows(table)) {
        let flags = format!("--mix get {flags}");
        // Some are asked before the load.
        let over_phases = |measured: &Measured, keys: [&str; 4]| {
            keys.map(|key| measured.over_phases(&format!("requests.{key}")))
        };
        let failed_of = |measured: &Measured| over_phases(measured, ["timeout", "lost", "error", "mismatch"]);
        let gets_of = |measured: &Measured| measured.over_phases("ops.get");
        let mut measured = run(seed, "1000", script, serve, &flags);
        for _ in 1..ATTEMPTS {
            // A client that is kept from a processor for longer than a time-out makes more of them.
            let has_more = failed_of(&measured)[0] > outcomes(script, gets_of(&measured))[0];
            if !(has_more && measured.is_disturbed()) {
                break;
            }
            measured = run(seed, "1000", script, serve, &flags);
        }
        let failed = failed_of(&measured);
        let gets = gets_of(&measured);
        assert_eq!(failed, outcomes(script, gets), "{seed}: {flags:?}");
        let completed = measured.over_phases("requests.completed") - 1_000;
        assert_eq!(completed, gets - failed.iter().sum::<u64>(), "{seed}");
        assert_eq!(measured.connections("lost"), failed[0] + failed[1], "{seed}");
    }
}

/// In pipelines, with operations of every kind, with ends by plan between those by accident: only the request counts are known.
#[test]
fn counts_are_exact_under_any_fault() {
    let mixed = "get=4,gets=1,mget=2,set=2,add=1,append=1,cas=1,incr=1,delete=1,touch=1";
    let table = "
        reset 150 wrong 40 => --drip 1:0 => -n 3000 -c 4 --depth 16 -T 2 --calls-per-connection 50
        cut 200 => --outage 100ms:100ms --stall 300ms:50ms => -r 6k -t 600ms -c 8 --depth 8 --on-miss set --noreply
        drop 800 error 60 => --drip 3:20 --outage 200ms:50ms --outage-forgets => -t 600ms -c 8 --depth 4 --on-miss set --reconnect-every 30ms
        reset 90 cut 70 wrong 11 => --stall 50ms:120ms => -r 6k -t 600ms -c 1 --depth 64 --noreply";
    for (seed, [script, serve, flags]) in (1..).zip(rows(table)) {
        // A key and a counter of each id.
        let measured = run(seed, "2000", script, serve, &format!("--mix {mixed} {flags}"));
        assert!(measured.requests("lost") > 0, "{seed}");
        assert!(measured.requests("completed") > 500, "{seed}");
    }
}
