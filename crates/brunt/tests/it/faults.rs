//! A server that wrongs its clients by script, live: whatever it does, the counts are exact.

use crate::measured::Measured;
use crate::server::{Server, beside_others};

/// How often a run is tried that the host disturbs.
const ATTEMPTS: u32 = 4;

/// Faults of every Nth request; 0 is never.
#[derive(Clone, Copy)]
struct Every {
    drop: u64,
    reset: u64,
    cut: u64,
    error: u64,
    wrong: u64,
}

impl Every {
    const NONE: Self = Self { drop: 0, reset: 0, cut: 0, error: 0, wrong: 0 };

    fn flags(self) -> Vec<String> {
        let Self { drop, reset, cut, error, wrong } = self;
        [("drop", drop), ("reset", reset), ("cut", cut), ("error", error), ("wrong", wrong)]
            .into_iter()
            .filter(|(_, every)| *every > 0)
            .flat_map(|(fault, every)| [format!("--{fault}-every"), every.to_string()])
            .collect()
    }

    /// What retrievals that are alone on their connections come to: (timed out, lost, in error, wrong). Of several faults
    /// the first happens.
    fn outcomes(self, requests: u64) -> [u64; 4] {
        let mut outcomes = [0; 4];
        for number in 1..=requests {
            let is_due = |every: &u64| *every > 0 && number.is_multiple_of(*every);
            let faults = [self.drop, self.reset, self.cut, self.error, self.wrong];
            if let Some(first) = faults.iter().position(is_due) {
                outcomes[[0, 1, 1, 2, 3][first]] += 1;
            }
        }
        outcomes
    }
}

/// One run against one server, whose script begins after so many stores.
fn run(seed: u64, stores: &str, every: Every, serve: &[&str], flags: &[&str]) -> Measured {
    let script = every.flags();
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let server = Server::reference(&[&["--script-after", stores], &script[..], serve].concat());
    let base = [
        "--warmup",
        "0s",
        "--keys",
        "1000",
        "--timeout",
        "300ms",
        "--set",
        "drain=1s",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
    ];
    // A server that drips writes each byte by itself.
    let base = [&base[..], &["--value-size", "40"]].concat();
    let seed = seed.to_string();
    let measured = Measured::run(&server.address, &[&base[..], &["--seed", &seed], flags].concat());
    let text = &measured.text;
    measured.check_request_counts();
    measured.check_connections();
    assert_eq!(measured.exit, 0, "{text}");
    // Nothing but what the script made wrong: values that it changed.
    let (status, message) = measured.check("BROKEN");
    let is_wrong = every.wrong > 0 && message.contains(" values read are not those that were stored");
    assert!(status == "ok" || is_wrong && !message.contains("; "), "{message}\n{text}");
    measured.check_faults();
    measured
}

/// With one request at a time on each connection nothing is lost but what is hit, and that is known by its number.
#[test]
fn injected_faults_are_the_only_failures() {
    let _beside = beside_others();
    let table: [(Every, &[&str], &[&str]); 6] = [
        (Every { reset: 100, ..Every::NONE }, &[], &["-n", "2000", "-c", "4"]),
        (Every { cut: 100, ..Every::NONE }, &[], &["-n", "2000", "-c", "4", "-T", "2"]),
        (Every { error: 70, wrong: 30, ..Every::NONE }, &["--drip", "1:0"], &["-n", "2000", "-c", "16"]),
        (Every { drop: 900, ..Every::NONE }, &["--drip", "3:20"], &["-n", "2000", "-c", "4"]),
        (
            Every { error: 90, ..Every::NONE },
            &["--stall", "100ms:150ms"],
            &["-r", "8k", "-n", "2000", "-c", "4"],
        ),
        (
            Every { drop: 900, reset: 150, cut: 250, error: 70, wrong: 30 },
            &[],
            &["-r", "8k", "-n", "2000", "-c", "16"],
        ),
    ];
    for (seed, (every, serve, flags)) in (1..).zip(table) {
        let flags = [&["--mix", "get"], flags].concat();
        // Some are asked before the load.
        let over_phases = |measured: &Measured, keys: [&str; 4]| {
            keys.map(|key| measured.over_phases(&format!("requests.{key}")))
        };
        let failed_of = |measured: &Measured| over_phases(measured, ["timeout", "lost", "error", "mismatch"]);
        let gets_of = |measured: &Measured| measured.over_phases("ops.get");
        let mut measured = run(seed, "1000", every, serve, &flags);
        for _ in 1..ATTEMPTS {
            // A client that is kept from a processor for longer than a time-out makes more of them.
            let has_more = failed_of(&measured)[0] > every.outcomes(gets_of(&measured))[0];
            if !(has_more && measured.is_disturbed()) {
                break;
            }
            measured = run(seed, "1000", every, serve, &flags);
        }
        let failed = failed_of(&measured);
        let gets = gets_of(&measured);
        assert_eq!(failed, every.outcomes(gets), "{seed}: {flags:?}\n{}", measured.text);
        let completed = measured.over_phases("requests.completed") - 1_000;
        assert_eq!(completed, gets - failed.iter().sum::<u64>(), "{seed}");
        assert_eq!(
            measured.count("client.connections.lost"),
            failed[0] + failed[1],
            "{seed}\n{}",
            measured.text
        );
    }
}

/// In pipelines, with operations of every kind, with ends by plan between those by accident: only the request counts are known.
#[test]
fn counts_are_exact_under_any_fault() {
    let _beside = beside_others();
    let mixed = "get=4,gets=1,mget=2,set=2,add=1,append=1,cas=1,incr=1,delete=1,touch=1";
    let table: [(Every, &[&str], &[&str]); 4] = [
        (
            Every { reset: 150, wrong: 40, ..Every::NONE },
            &["--drip", "1:0"],
            &["-n", "3000", "-c", "4", "--depth", "16", "-T", "2", "--calls-per-connection", "50"],
        ),
        (
            Every { cut: 200, ..Every::NONE },
            &["--outage", "100ms:100ms", "--stall", "300ms:50ms"],
            &["-r", "6k", "-t", "600ms", "-c", "8", "--depth", "8", "--on-miss", "set", "--noreply"],
        ),
        (
            Every { drop: 800, error: 60, ..Every::NONE },
            &["--drip", "3:20", "--outage", "200ms:50ms", "--outage-forgets"],
            &["-t", "600ms", "-c", "8", "--depth", "4", "--on-miss", "set", "--reconnect-every", "30ms"],
        ),
        (
            Every { reset: 90, cut: 70, wrong: 11, ..Every::NONE },
            &["--stall", "50ms:120ms"],
            &["-r", "6k", "-t", "600ms", "-c", "1", "--depth", "64", "--noreply"],
        ),
    ];
    for (seed, (every, serve, flags)) in (1..).zip(table) {
        // A key and a counter of each id.
        let measured = run(seed, "2000", every, serve, &[&["--mix", mixed], flags].concat());
        assert!(measured.count("counts.requests.lost") > 0, "{seed}\n{}", measured.text);
        assert!(measured.count("counts.requests.completed") > 500, "{seed}\n{}", measured.text);
    }
}
