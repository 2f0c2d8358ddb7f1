//! Changes that ask for no reply: they end when their last byte is handed over.

use super::*;
use crate::simulated::sim::Deaf;

/// In closed loop the slot is free as soon as the request is out.
#[test]
fn a_slot_is_free_when_its_request_is_out() {
    let outcome = simulate(
        "connections = 1\nrequests = 1000\nkeys = 20\nmix = 'set,delete,incr'\nnoreply = true",
        SimOptions { send_cost_ns: 3 * US, ..SimOptions::default().latency(50 * US) },
    );
    assert_eq!(outcome.count(OutcomeClass::Unacknowledged), 1_000);
    let mut free_ns = outcome.start_ns();
    for sample in &outcome.samples {
        let times = &sample.times;
        assert_eq!((times.intended_ns, times.done_ns), (free_ns, times.sent_ns));
        free_ns = times.sent_ns;
    }
    // Preload wants replies: it confirms.
    let (silent, answered): (Vec<_>, Vec<_>) =
        commands(&outcome.sent).into_iter().partition(|(_, noreply)| *noreply);
    assert_eq!((silent.len(), answered.len()), (1_000, 40));
    let counters = &outcome.counters[0];
    assert_eq!(
        counters.cmd_set - 40 + counters.incr_hits + counters.delete_hits + counters.delete_misses,
        1_000
    );
}

/// In a pipeline with requests that have replies, each reply still ends the request it belongs to.
#[test]
fn replies_find_their_requests_between_silent_ones() {
    for (load, depth) in [("", 1), ("", 6), ("rate = 20000", 6), ("rate = 20000\narrival = 'uniform'", 1)] {
        let outcome = simulate(
            &format!(
                "{load}\nconnections = 3\ndepth = {depth}\nrequests = 3000\nwarmup = '5ms'\nkeys = 20\n\
                 mix = 'get=2,mget=1,set=2,incr=1,touch=1'\nmultiget = 3\nnoreply = true"
            ),
            SimOptions::default().latency(50 * US),
        );
        let requests = outcome.requests();
        assert_eq!(requests.offered(), 3_000);
        assert_eq!(
            requests.outcome(OutcomeClass::Hit) + requests.outcome(OutcomeClass::Unacknowledged),
            3_000,
            "{load} at depth {depth}: {requests:?}"
        );
        for sample in &outcome.samples {
            let service_ns = if sample.op.is_retrieval() { 100 * US } else { 0 };
            assert_eq!(sample.times.service_ns(), service_ns, "{sample:?}");
        }
        let all = outcome.sum(|_, _| true);
        assert_eq!(all.requests.wire_requests, commands(&outcome.sent).len() as u64);
        assert_eq!(outcome.counters[0].get_hits, all.keys.hit);
    }
}

/// A server that reads nothing for a while: what waits behind a full buffer ends when the buffer has taken it.
#[test]
fn silent_requests_wait_behind_a_full_buffer() {
    // Sets of about 270 bytes; the server reads nothing from 100 ms to 400 ms.
    let outcome = simulate(
        "rate = 1000\narrival = 'uniform'\nconnections = 1\ndepth = 8\ntime = '1s'\nkeys = 20\nmix = 'set'\n\
         noreply = true\npreload = false",
        SimOptions {
            buffer_bytes: 1_000,
            deaf: vec![Deaf { server: 0, at_ns: EPOCH_NS + 100 * MS + MS / 2, for_ns: 300 * MS }],
            ..SimOptions::default()
        },
    );
    assert_eq!((outcome.samples.len(), outcome.count(OutcomeClass::Unacknowledged)), (1_000, 1_000));
    assert_eq!(outcome.counters[0].cmd_set, 1_000);
    let end_ns = EPOCH_NS + 400 * MS + MS / 2;
    let late = outcome.samples.iter().filter(|sample| sample.times.response_ns() > 0);
    // The buffer took three of those that came meanwhile, at once; the others had to wait.
    assert!(late.clone().count().abs_diff(297) <= 1, "{}", late.clone().count());
    for sample in late {
        assert!(sample.times.sent_ns.abs_diff(end_ns) <= 10 * US, "{sample:?}");
    }
}

/// A request with a reply behind a silent one that is stuck gets its reply all the same.
#[test]
fn stuck_pipelines_go_on_where_they_stopped() {
    for depth in [1, 3, 8] {
        let outcome = simulate(
            &format!(
                "connections = 2\ndepth = {depth}\nrequests = 500\nkeys = 20\nmix = 'get,set'\n\
                 noreply = true\nvalue-size = 'uniform:0,9000'"
            ),
            SimOptions {
                buffer_bytes: 700,
                deaf: vec![Deaf { server: 0, at_ns: EPOCH_NS + 50 * MS, for_ns: 100 * MS }],
                ..SimOptions::default().latency(20 * US)
            },
        );
        let requests = outcome.requests();
        assert_eq!((requests.offered(), requests.failed(), requests.unsent), (500, 0, 0), "{requests:?}");
        assert_eq!(outcome.counters[0].cmd_set, requests.outcome(OutcomeClass::Unacknowledged) + 20);
    }
}
