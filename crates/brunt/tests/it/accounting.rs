//! T7, accounting truth: a server that wrongs its clients by number, one request at a time, and every request is
//! recorded as what became of it.
//!
//! Short in the usual test run; a million requests with `BRUNT_ACCURACY=full` (`cargo xtask accuracy`).

use crate::experiments::is_full;
use crate::measured::Measured;
use crate::server::{Server, side_by_side};
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::shard::{Portion, StreamPart};
use brunt_plan::spec::PlanSpec;
use brunt_workload::session::{Choices, PhaseTimes, Session, SessionSpec};

/// A fault of every `period`-th request from `first` on, so chosen that no two meet.
struct Fault {
    period: u64,
    first: u64,
}

impl Fault {
    fn flag(&self, name: &str) -> String {
        format!("--{name}-every={}:{}", self.period, self.first)
    }

    fn hits(&self, number: u64) -> bool {
        number >= self.first && (number - self.first).is_multiple_of(self.period)
    }
}

/// What `requests` gets come to by definition: (misses, errors, timeouts, mismatches).
///
/// Where replies carry tokens a time-out is no end of a connection, until nothing comes for another: what was sent meanwhile to one that
/// the server is deaf on times out as well, and never has a number.
fn expected(plan: &Plan, requests: u64, [error, drop, wrong]: [&Fault; 3], with_tokens: bool) -> [u64; 4] {
    let (mut counts, mut number, mut is_deaf) = ([0; 4], 0, false);
    for id in key_stream(plan, requests) {
        if std::mem::take(&mut is_deaf) {
            counts[2] += 1;
            continue;
        }
        number += 1;
        is_deaf = with_tokens && drop.hits(number);
        let is_miss = id.is_multiple_of(10);
        // A key that is not there has no value to be wrong.
        let ends = [
            is_miss && !error.hits(number) && !drop.hits(number),
            error.hits(number),
            drop.hits(number),
            wrong.hits(number) && !is_miss,
        ];
        assert!(ends.iter().filter(|ends| **ends).count() <= 1);
        counts.iter_mut().zip(ends).for_each(|(count, ends)| *count += u64::from(ends));
    }
    counts
}

/// The keys of a plan with one connection, one after the other, drawn again from the plan alone.
fn key_stream(plan: &Plan, requests: u64) -> Vec<u64> {
    let class = &plan.classes[0];
    let part = StreamPart { index: 0, of: 1 };
    let mut session = Session::new(SessionSpec {
        class_id: 0,
        session_id: 0,
        class,
        part,
        portion: Portion { first: 0, width: 1, of: 1 },
        connections: 1,
        budget: Some(requests),
        records: 0,
        seed: plan.seed,
        verify: 0.0,
        choices: Choices::of_session(class, part, plan.data_seed),
        copies: 1,
        begins_taken: false,
        window: PhaseTimes { start_ns: 0, measure_ns: 0, end_ns: u64::MAX },
    });
    let mut ids = Vec::new();
    while session.due_ns() != u64::MAX {
        let issue = session.take();
        ids.extend(session.ids(&issue.op));
        session.record_outcome(issue.op.key, Outcome::of_reply(issue.op.kind, ReplyKind::Value));
        session.release(0, issue.intended_ns + 1);
    }
    assert_eq!(ids.len() as u64, requests);
    ids
}

#[test]
fn every_request_is_counted_by_its_outcome() {
    // Most of it is waiting for time-outs.
    let protocols = ["memcached-text", "memcached-meta", "memcached-binary", "resp2", "resp3"];
    side_by_side(protocols, |protocol| match protocol.starts_with("resp") {
        true => check_outcomes(protocol, "ERR injected fault"),
        false => check_outcomes(protocol, "injected fault"),
    });
}

/// A scripted server of its own, which refuses in these words.
fn check_outcomes(protocol: &str, refusal: &str) {
    let is_text = protocol == "memcached-text";
    // An error every 1 000th, no reply every 10 000th, a wrong value every 50 000th. A host that is busy with other
    // things stops a server for tenths of a second: a short run has few time-outs, and long ones.
    let (requests, periods, timeout_ms) = if is_full() && is_text {
        (1_000_000, [1_000, 10_000, 50_000], 500)
    } else {
        (20_000, [100, 10_000, 1_000], 2_000)
    };
    let error = Fault { period: periods[0], first: 37 };
    let drop = Fault { period: periods[1], first: 541 };
    let wrong = Fault { period: periods[2], first: 203 };
    let dropped = requests / drop.period;
    let with_tokens = matches!(protocol, "memcached-meta" | "memcached-binary");
    let unheard = if with_tokens { dropped } else { 0 };
    let timeout = format!("{timeout_ms}ms");
    let keys = 10_000;
    let server = Server::reference(&format!(
        "--miss-ids=10 {} {} {} --script-after={keys}",
        error.flag("error"),
        drop.flag("drop"),
        wrong.flag("wrong")
    ));
    let (keys, number) = (keys.to_string(), requests.to_string());
    let flags = format!("--protocol {protocol} -c 1 -T 1 --mix get --warmup 0s --seed");
    let more = format!("7 --timeout {timeout} --keys {keys} -n {number} --allow=BROKEN,LOAD,CLIENT,DATA");
    let measured = Measured::run(&server, &format!("{flags} {more}"));
    assert_eq!(measured.exit, 0);

    let spec: PlanSpec = serde_json::from_value(measured.at("plan").clone()).unwrap();
    let plan = resolve(&spec, &Host::of(vec![0], 0)).unwrap();
    let expected = expected(&plan, requests, [&error, &drop, &wrong], with_tokens);
    let counts = ["miss", "error", "timeout", "mismatch"].map(|key| measured.requests(key));
    eprintln!(
        "T7: {requests} gets by {protocol}: misses, errors, timeouts, mismatches {counts:?}, expected {expected:?}"
    );
    assert_eq!(counts, expected);
    assert_eq!(counts[1..3], [requests / error.period, dropped + unheard]);
    // A tenth of the keys, drawn alike: three standard deviations of a binomial.
    let share = counts[0] as f64 / requests as f64;
    assert!((share - 0.1).abs() <= 0.0011 + 3.0 * (0.09 / requests as f64).sqrt(), "{share}");
    let statistics = server.statistics();
    let told = ["get_misses", "faults_error", "faults_dropped", "faults_wrong"].map(|name| statistics[name]);
    // A request that is never answered was carried out: if its key is not there, the server has a miss that no reply tells of.
    assert!(told[0] >= counts[0] && told[0] <= counts[0] + counts[2], "{told:?}");
    assert_eq!(told[1..], [counts[1], dropped, counts[3]]);
    let heard = [requests - unheard, keys.parse().unwrap()];
    assert_eq!([statistics["cmd_get"], statistics["cmd_set"]], heard);
    let failed: u64 = counts[1..].iter().sum();
    if is_text {
        let agreement = measured.at("events.server_stats.agreement").as_array().unwrap();
        let gets = agreement.iter().find(|row| row["statistic"] == "cmd_get").unwrap();
        let bounds = [requests - failed, requests, requests];
        assert_eq!([&gets["least"], &gets["most"], &gets["counted"]], bounds, "{gets}");
    }
    assert!(measured.at("events.first_error") == refusal);

    // Failures have a place in one line, and in no other: time-outs with the time until they were given up.
    let latency = |path: &str| measured.count(&format!("latency.{path}"));
    assert_eq!(latency("response_ns.count"), requests - failed);
    assert_eq!(latency("including_failures_ns.count"), requests);
    assert!(latency("including_failures_ns.max") >= timeout_ms * 1_000_000);
    assert_eq!(measured.connections("lost"), dropped);
}
