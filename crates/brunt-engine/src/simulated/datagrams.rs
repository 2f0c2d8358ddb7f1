//! Datagrams: lost, twice, in another order, late, and to nobody, each of them counted to the last.
//!
//! The servers are the reference server's core, whose framing shares no code with ours.

use super::*;
use brunt_server::{DatagramFaults, Division, Every, Faults, Stall};
use brunt_stats::worker_counts::DatagramCounts;

const DIALECTS: [Protocol; 2] = [Protocol::MemcachedText, Protocol::MemcachedMeta];
/// Stores of the preload, which the script leaves alone.
const KEYS: u64 = 200;

/// A thousand requests, one each millisecond, in a world of these faults.
fn lossy(protocol: Protocol, toml: &str, core: CoreOptions, latency_ns: u64) -> Outcome {
    let toml = format!(
        "transport = 'udp'\nprotocol = '{protocol}'\nrate = 1000\narrival = 'uniform'\ntime = '1s'\n\
         keys = {KEYS}\nconnections = 4\ndepth = 64\ntimeout = '20ms'\n{toml}"
    );
    let server = CoreOptions { script_after: KEYS, ..core };
    let outcome = simulate(&toml, SimOptions::of(server).latency(latency_ns));
    let preload = outcome.op_counts(Phase::Preload).requests;
    assert_eq!(preload.outcome(OutcomeClass::Done), preload.sent);
    let connections = outcome.connections();
    assert_eq!((connections.established, connections.lost), (4, 0), "a datagram takes no connection with it");
    assert_eq!((outcome.end.data.counts.unmatched_replies, outcome.store.faults().total()), (0, 0));
    outcome
}

fn counts(outcome: &Outcome) -> DatagramCounts {
    outcome.end.data.counts.datagrams
}

fn faults(drop: u64, duplicate: u64, swap: u64) -> DatagramFaults {
    let [drop_every, duplicate_every, swap_every] = [drop, duplicate, swap].map(Every::new);
    DatagramFaults { drop_every, duplicate_every, swap_every }
}

#[test]
fn datagrams_without_faults_yield_exact_samples() {
    for protocol in DIALECTS {
        for mix in ["get=2,set=1,incr=1,delete=1", "gets=2,cas=1,mget=1", "touch=1,append=1"] {
            let outcome = lossy(protocol, &format!("mix = '{mix}'"), CoreOptions::default(), 50 * US);
            let requests = outcome.requests();
            assert_eq!((requests.sent, requests.completed()), (1_000, 1_000), "{protocol} {mix}");
            assert_eq!(counts(&outcome), DatagramCounts::default(), "{protocol} {mix}");
            for sample in &outcome.samples {
                assert_eq!(sample.times.service_ns(), 100 * US);
            }
        }
    }
}

/// What is lost is a time-out of its own, at the time-out's value, and nothing else is touched.
#[test]
fn lost_datagrams_time_out_alone() {
    for protocol in DIALECTS {
        let core = CoreOptions { datagram_faults: faults(10, 0, 0), ..CoreOptions::default() };
        let outcome = lossy(protocol, "mix = 'get=3,set=1'", core, 50 * US);
        assert_eq!((outcome.count(OutcomeClass::Timeout), outcome.counters[0].datagrams_dropped), (100, 100));
        assert_eq!(outcome.requests().completed(), 900);
        for (number, sample) in outcome.samples.iter().enumerate() {
            let expected_ns = if number % 10 == 9 { 20 * MS } else { 100 * US };
            assert_eq!(sample.times.service_ns(), expected_ns, "{protocol} {number}");
        }
        assert_eq!(counts(&outcome), DatagramCounts { udp_timeout: 100, ..DatagramCounts::default() });
    }
}

/// Replies of four datagrams and more, all of them in one train, of which some are lost, swapped and copied: what is missing of each reply
/// that was begun is known to the last datagram.
#[test]
fn missing_reply_datagrams_are_counted() {
    for protocol in DIALECTS {
        for (drop, duplicate, swap) in [(10, 0, 0), (9, 0, 2), (11, 7, 3)] {
            let core =
                CoreOptions { datagram_faults: faults(drop, duplicate, swap), ..CoreOptions::default() };
            let outcome = lossy(protocol, "mix = 'mget=1'\nmultiget = 12\nvalue-size = 400", core, 50 * US);
            let (counts, server) = (counts(&outcome), outcome.counters[0]);
            let timeouts = outcome.count(OutcomeClass::Timeout);
            assert!(server.datagrams_dropped > 300 && timeouts > 300, "{protocol} {drop}");
            assert_eq!(counts.udp_timeout, timeouts, "{protocol} {drop}");
            // A reply loses one at the most, and its others have come.
            assert_eq!(
                (counts.packet_drop, timeouts),
                (server.datagrams_dropped, counts.packet_drop),
                "{protocol} {drop}"
            );
            let op_counts = outcome.op_counts(Phase::Measure);
            assert_eq!(
                (op_counts.requests.completed(), op_counts.keys.miss),
                (1_000 - timeouts, 0),
                "{protocol} {drop}"
            );
            if (duplicate, swap) == (0, 0) {
                // Those behind the one that is lost are held for it.
                let behind = counts.packet_disorder;
                assert!((timeouts..4 * timeouts).contains(&behind), "{protocol} {behind} of {timeouts}");
            }
        }
    }
}

/// A loss is no outage, however long nothing else is asked; a server of whose replies none arrives is out.
#[test]
fn a_loss_is_no_outage() {
    for protocol in DIALECTS {
        for (rate, connections) in [(1000, 4), (25, 1), (25, 4)] {
            let core = CoreOptions { datagram_faults: faults(10, 0, 0), ..CoreOptions::default() };
            let toml = format!(
                "transport = 'udp'\nprotocol = '{protocol}'\nrate = {rate}\narrival = 'uniform'\n\
                 time = '10s'\nkeys = {KEYS}\nconnections = {connections}\ntimeout = '30ms'\nmix = 'get'"
            );
            let server = CoreOptions { script_after: KEYS, ..core };
            let outcome = simulate(&toml, SimOptions::of(server).latency(50 * US));
            assert_eq!(outcome.count(OutcomeClass::Timeout), rate, "{protocol}");
            assert_eq!(outcome.outages(), [], "{protocol} {rate} {connections}");
        }
        let all = CoreOptions { datagram_faults: faults(1, 0, 0), ..CoreOptions::default() };
        let outcome = lossy(protocol, "mix = 'get'", all, 50 * US);
        let outages = outcome.outages();
        assert_eq!((outages.len(), outages[0].end_ns, outages[0].failed), (1, None, 1_000), "{outages:?}");
        assert_eq!(outages[0].start_ns, outcome.samples[0].times.sent_ns);
    }
}

/// One that stands still for longer than the time-out is out for as long.
#[test]
fn frozen_servers_are_outages() {
    for protocol in DIALECTS {
        let stalls = vec![Stall { at_ns: 100 * MS, for_ns: 60 * MS }];
        let outcome =
            lossy(protocol, "mix = 'get'", CoreOptions { stalls, ..CoreOptions::default() }, 50 * US);
        let outages = outcome.outages();
        let [outage] = outages[..] else { panic!("{protocol} {outages:?}") };
        assert!(outage.length_ns().unwrap().abs_diff(60 * MS) <= 2 * MS, "{protocol} {outage:?}");
    }
}

#[test]
fn duplicate_datagrams_are_counted_and_harmless() {
    for protocol in DIALECTS {
        for division in [Division::Reply, Division::Key] {
            for mix in ["mix = 'get=3,set=1'", "mix = 'mget=1'\nmultiget = 12"] {
                let core =
                    CoreOptions { datagram_faults: faults(0, 3, 0), division, ..CoreOptions::default() };
                let toml = format!("{mix}\nvalue-size = 400");
                let outcome = lossy(protocol, &toml, core, 50 * US);
                let requests = outcome.requests();
                assert_eq!(requests.completed(), 1_000, "{protocol} {division:?} {mix} {requests:?}");
                let keys = outcome.op_counts(Phase::Measure).keys;
                assert_eq!((keys.hit, keys.miss), (keys.requested, 0), "{protocol} {division:?} {mix}");
                let duplicate = outcome.counters[0].datagrams_duplicated;
                assert!(duplicate >= 333);
                let expected =
                    DatagramCounts { duplicate, packet_disorder: duplicate, ..DatagramCounts::default() };
                assert_eq!(counts(&outcome), expected, "{protocol} {division:?} {mix}");
            }
        }
    }
}

/// Replies of several datagrams, whatever the order; and with that, copies.
#[test]
fn reordered_datagrams_are_put_in_order() {
    for protocol in DIALECTS {
        for (swap, duplicate) in [(1, 0), (2, 0), (3, 2)] {
            let core = CoreOptions { datagram_faults: faults(0, duplicate, swap), ..CoreOptions::default() };
            let toml = "mix = 'mget=1'\nmultiget = 12\nvalue-size = 'uniform:16,1200'\nverify = 1";
            let outcome = lossy(protocol, toml, core, 50 * US);
            let requests = outcome.requests();
            assert_eq!(requests.outcome(OutcomeClass::Hit), 1_000, "{protocol} {swap} {requests:?}");
            let keys = outcome.op_counts(Phase::Measure).keys;
            assert_eq!((keys.requested, keys.hit), (12_000, 12_000));
            assert!(outcome.counters[0].datagrams_swapped > 1_000);
            let Counters { datagrams_duplicated: duplicate, datagrams_swapped: swapped, .. } =
                outcome.counters[0];
            let expected = DatagramCounts {
                duplicate,
                packet_disorder: duplicate + swapped,
                ..DatagramCounts::default()
            };
            assert_eq!(counts(&outcome), expected, "{protocol} {swap}");
            assert_eq!(outcome.end.data.counts.verification.checked, 12_000);
            assert_eq!(outcome.end.data.counts.verification.rows().count(), 0);
        }
    }
}

/// Every key's train on its own, and each changes places with the next: the keys are told apart by their names. The last train of a
/// reply is behind the others, or the keys behind it count as missing.
#[test]
fn trains_may_change_places() {
    let core =
        CoreOptions { datagram_faults: faults(0, 0, 1), division: Division::Key, ..CoreOptions::default() };
    let outcome = lossy(Protocol::MemcachedText, "mix = 'mget=1'\nmultiget = 5\nverify = 1", core, 50 * US);
    let op_counts = outcome.op_counts(Phase::Measure);
    assert_eq!((op_counts.requests.completed(), op_counts.keys.requested), (1_000, 5_000));
    assert_eq!(op_counts.keys.hit + op_counts.keys.miss, 5_000);
    // What came behind the end has found the request answered.
    let duplicate = op_counts.keys.miss;
    let expected = DatagramCounts { duplicate, packet_disorder: duplicate, ..DatagramCounts::default() };
    assert_eq!(counts(&outcome), expected);
    assert_eq!(outcome.end.data.counts.verification.rows().count(), 0);
}

/// A server that stands still for longer than the time-out answers all the same.
#[test]
fn late_datagrams_are_counted() {
    for protocol in DIALECTS {
        // Counted from the first scripted request.
        let stalls = vec![Stall { at_ns: 100 * MS, for_ns: 60 * MS }];
        let core = CoreOptions { stalls, ..CoreOptions::default() };
        let outcome = lossy(protocol, "mix = 'get'", core, 50 * US);
        let (timeouts, late) = (outcome.count(OutcomeClass::Timeout), counts(&outcome).late);
        assert!((39..=41).contains(&timeouts), "{timeouts}");
        let expected = DatagramCounts {
            late: timeouts,
            packet_disorder: timeouts,
            udp_timeout: timeouts,
            ..DatagramCounts::default()
        };
        assert_eq!(counts(&outcome), expected);
        assert_eq!(outcome.requests().completed(), 1_000 - late);
    }
}

/// Half of a reply is none: it times out. A refusal is an error, and takes nothing with it.
#[test]
fn server_errors_over_datagrams_are_counted() {
    for protocol in DIALECTS {
        let faults = Faults {
            drop_every: "50:1".parse().ok(),
            cut_every: "50:11".parse().ok(),
            error_every: "50:21".parse().ok(),
            wrong_every: "50:31".parse().ok(),
            ..Faults::default()
        };
        let outcome =
            lossy(protocol, "mix = 'get'", CoreOptions { faults, ..CoreOptions::default() }, 50 * US);
        let classes = [OutcomeClass::Timeout, OutcomeClass::Error, OutcomeClass::Mismatch, OutcomeClass::Hit];
        assert_eq!(classes.map(|class| outcome.count(class)), [40, 20, 20, 920], "{protocol}");
        let expected = DatagramCounts { udp_timeout: 40, ..DatagramCounts::default() };
        assert_eq!(counts(&outcome), expected, "{protocol}");
    }
}

/// Changes that ask for no reply end when they were sent; what a server says of them all the same is a stray.
#[test]
fn changes_without_a_reply() {
    for protocol in DIALECTS {
        let outcome = lossy(protocol, "mix = 'get=1,set=1'\nnoreply = true", CoreOptions::default(), 50 * US);
        let silent = outcome.count(OutcomeClass::Unacknowledged);
        assert_eq!(outcome.count(OutcomeClass::Hit) + silent, 1_000);
        assert!(silent > 400 && counts(&outcome) == DatagramCounts::default(), "{silent}");
        assert_eq!(outcome.counters[0].cmd_set, KEYS + silent);
    }
}

/// A preload goes on until every key is confirmed.
#[test]
fn a_preload_is_confirmed_in_spite_of_losses() {
    let server = CoreOptions { datagram_faults: faults(4, 0, 0), ..CoreOptions::default() };
    let outcome = simulate(
        "transport = 'udp'\nmix = 'get'\ntime = '100ms'\nrate = 1000\nkeys = 300\ntimeout = '5ms'",
        SimOptions::of(server).latency(50 * US),
    );
    let preload = outcome.op_counts(Phase::Preload).requests;
    assert_eq!(preload.outcome(OutcomeClass::Done), 300);
    assert_eq!(preload.outcome(OutcomeClass::Timeout), preload.sent - 300);
    assert!(preload.sent > 390, "{preload:?}");
    assert_eq!(outcome.items[0], 300);
}

/// Datagrams that no server sends change nothing.
#[test]
fn malformed_datagrams_are_counted_and_skipped() {
    for protocol in DIALECTS {
        let toml = format!(
            "transport = 'udp'\nprotocol = '{protocol}'\nrate = 1000\narrival = 'uniform'\ntime = '1s'\n\
             keys = {KEYS}\nconnections = 1\ndepth = 64\ntimeout = '20ms'\nmix = 'get'\npreload = false"
        );
        let short: fn(&mut Vec<u8>) = |datagram| datagram.truncate(5);
        let foreign: fn(&mut Vec<u8>) = |datagram| datagram[0] ^= 0x80;
        let nonsense: fn(&mut Vec<u8>) = |datagram| datagram[8..].fill(b'?');
        for tamper in [short, foreign, nonsense] {
            let outcome = simulate(&toml, SimOptions { tamper: Some(tamper), ..SimOptions::default() });
            assert_eq!(outcome.count(OutcomeClass::Timeout), 1_000, "{protocol}");
            let counts = counts(&outcome);
            assert_eq!(counts.malformed + counts.unmatched + counts.late, 1_000, "{protocol} {counts:?}");
            assert_eq!(outcome.connections().lost, 0);
        }
    }
}
