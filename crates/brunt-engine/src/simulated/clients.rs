//! Clients with connections of their own and windows of objects, in the simulated world: what is checked is counted exactly.

use super::*;
use brunt_server::Every;
use brunt_server::text::DataCommand;
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::summary::Summary;
use brunt_stats::verification::{ObjectCounts, ObjectFaultKind, ObjectFaults, SHOWN_MAX};

fn windows(outcome: &Outcome) -> ObjectCounts {
    outcome.end.data.counts.windows
}

fn options() -> SimOptions {
    SimOptions::default().latency(10 * US)
}

const FORMS: [&str; 4] = [
    "",
    "value-size = 9000",
    "key-form = 'memaslap'\nkey-size = 'ranges:16-100@0.5,101-250@0.5'\nvalue-size = 'uniform:1,3000'",
    "key-form = 'memaslap-printable'\nprefix = 'p:'\nvalue-size = 300",
];

/// A client has one operation under way, whatever number of connections it has, and they take turns.
#[test]
fn a_client_has_one_operation_under_way() {
    for (connections, each, depth) in [(6, 3, 1), (6, 1, 1), (4, 4, 2), (6, 2, 3)] {
        let toml = format!(
            "connections = {connections}\nclient-connections = {each}\ndepth = {depth}\nrequests = 5000\n\
             mix = 'get=3,set=1'\nmeter = ['outstanding']"
        );
        let outcome = simulate(&toml, options());
        // As many as there are clients and slots of each, and never more on a connection than its share of them.
        let clients = connections / each;
        let mut ends: Vec<(u64, i64)> = outcome
            .samples
            .iter()
            .flat_map(|sample| [(sample.times.sent_ns, 1), (sample.times.done_ns, -1)])
            .collect();
        ends.sort_unstable();
        let mut under_way = 0;
        let most = ends.iter().map(|(_, step)| {
            under_way += step;
            under_way
        });
        assert_eq!(most.max(), Some(i64::from(clients * depth)), "{toml}");
        let most_beside = outcome.meter(MeterKind::Outstanding).histogram.max();
        let share = u64::from(u32::div_ceil(depth, each) - 1);
        assert_eq!(most_beside, Some(share), "{toml}");
        assert_eq!(outcome.samples.len(), 5_000);
    }
}

/// Every value that the server has made wrong is found, and no other, in every form of keys.
#[test]
fn every_wrong_value_is_found() {
    let by_stream = FORMS.map(|form| (form, 2, 700));
    let by_datagram = ("transport = 'udp'\nvalue-size = 1200", 1, usize::MAX);
    for (form, each, least) in by_stream.into_iter().chain([by_datagram]) {
        for (mix, piece_bytes) in [("get=9,set=1", usize::MAX), ("get=1,set=1", least)] {
            let faults = Faults { wrong_every: Every::new(100), ..Faults::default() };
            let server = CoreOptions { faults, script_after: 300, ..CoreOptions::default() };
            let toml = format!(
                "connections = 8\nclient-connections = {each}\nrequests = 12000\nmix = '{mix}'\n\
                 popularity = 'window:100,overwrite=0.3'\nverify = '100%'\n{form}"
            );
            let outcome = simulate(&toml, SimOptions { server, piece_bytes, ..options() });
            let wrong = outcome.counters[0].faults_wrong;
            assert!(wrong > 50, "{wrong}");
            let gets = outcome.measured(OpKind::Get).keys.requested;
            let expected = ObjectCounts { verify_failed: wrong, ..windows(&outcome) };
            assert_eq!(
                (windows(&outcome), outcome.count(OutcomeClass::Mismatch)),
                (expected, wrong),
                "{toml}"
            );
            let noted = |faults: &ObjectFaults| faults.rows().count() as u64 + faults.overflow;
            assert_eq!(outcome.object_faults.iter().map(noted).sum::<u64>(), wrong);
            for (fault, [key, expected, received]) in
                outcome.object_faults.iter().flat_map(ObjectFaults::rows)
            {
                let len = fault.expected_len as usize;
                assert_eq!((fault.kind, fault.received_len), (ObjectFaultKind::Value, fault.expected_len));
                assert!(!key.is_empty() && fault.from == 0);
                assert_eq!([expected, received].map(<[u8]>::len), [len.min(SHOWN_MAX); 2], "{toml}");
                // Every byte of it is another.
                assert!(expected.iter().zip(received).all(|(ours, theirs)| ours != theirs));
            }
            assert_eq!(
                (windows(&outcome).verify_misses, outcome.end.data.counts.verification.checked),
                (0, gets)
            );
        }
    }
}

/// The same of multi-gets: all values of a reply that is made wrong are.
#[test]
fn wrong_values_of_multigets_are_found() {
    for form in ["value-size = 400", "transport = 'udp'\nvalue-size = 400"] {
        let faults = Faults { wrong_every: Every::new(20), ..Faults::default() };
        let server = CoreOptions { faults, ..CoreOptions::default() };
        let toml = format!(
            "connections = 2\nclient-connections = 1\nrequests = 2000\nmix = 'mget=9,set=1'\nmultiget = 5\n\
             popularity = 'window:30'\nverify = '100%'\n{form}"
        );
        let outcome = simulate(&toml, SimOptions { server, ..options() });
        let wrong = outcome.counters[0].faults_wrong;
        assert_eq!(
            (outcome.count(OutcomeClass::Mismatch), windows(&outcome).verify_failed),
            (wrong, 5 * wrong)
        );
        let rows: Vec<_> = outcome.object_faults.iter().flat_map(ObjectFaults::rows).collect();
        assert!(rows.len() > 30, "{}", rows.len());
        for (_, [_, expected, received]) in rows {
            assert_eq!([expected, received].map(<[u8]>::len), [400; 2], "{toml}");
            assert!(expected.iter().zip(received).all(|(ours, theirs)| ours != theirs));
        }
    }
}

/// Of a value that is too long to be shown, the bytes from the first wrong one on are.
#[test]
fn long_values_are_shown_from_the_first_wrong_byte() {
    type Tamper = fn(&mut Vec<u8>);
    // (what is done to what the server sends, length received, where it goes wrong, bytes shown of the values expected and received)
    let table: [(Tamper, u32, u32, [usize; 2]); 3] = [
        (|sent| flip(sent, 6_000), 9_000, 6_000, [3_000; 2]),
        (|sent| flip(sent, 0), 9_000, 0, [SHOWN_MAX; 2]),
        (cut, 5_000, 5_000, [4_000, 0]),
    ];
    for (tamper, received_len, from, shown) in table {
        for piece_bytes in [usize::MAX, 700] {
            let outcome = simulate(
                "connections = 1\nclient-connections = 1\nrequests = 20\npopularity = 'window:4'\n\
                 verify = '100%'\nvalue-size = 9000",
                SimOptions { tamper: Some(tamper), piece_bytes, ..options() },
            );
            let rows: Vec<_> = outcome.object_faults.iter().flat_map(ObjectFaults::rows).collect();
            assert_eq!(rows.len(), 18);
            for (fault, [_, expected, received]) in rows {
                assert_eq!((fault.expected_len, fault.received_len, fault.from), (9_000, received_len, from));
                assert_eq!([expected, received].map(<[u8]>::len), shown);
                let differ = expected.iter().zip(received).filter(|(own, other)| own != other).count();
                assert_eq!(differ, received.len().min(1));
            }
        }
    }
}

/// Where the value begins, if this is the reply to a get that hits.
fn value_at(sent: &[u8]) -> Option<usize> {
    sent.starts_with(b"VALUE ").then(|| sent.iter().position(|byte| *byte == b'\n').unwrap() + 1)
}

/// Changes one byte of a value.
fn flip(sent: &mut [u8], place: usize) {
    if let Some(at) = value_at(sent) {
        sent[at + place] ^= 1;
    }
}

/// Makes a value of 9000 bytes one of 5000.
fn cut(sent: &mut Vec<u8>) {
    if let Some(at) = value_at(sent) {
        sent.drain(at + 5_000..at + 9_000);
        let line = String::from_utf8_lossy(&sent[..at]).replace(" 9000\r", " 5000\r");
        sent.splice(..at, line.into_bytes());
    }
}

/// Clients with a rate send at it and never ahead of it, whatever number of connections they have; the keys of multi-gets count one by
/// one, and one goes out when its last key is due.
#[test]
fn a_client_has_a_rate_of_its_own() {
    for (mix, keys) in
        [("'get=9,set=1'", 1), ("'mget=9,set=1'\nmultiget = 7", 7), ("'mget'\nmultiget = 30", 30)]
    {
        let outcome = simulate(
            &format!(
                "connections = 4\nclient-connections = 2\ncall-rate = 500\ndepth = 4\ntime = '2s'\n\
                 mix = {mix}\npopularity = 'window:100'\nserver = ['a', 'b']\nplacement = 'round-robin'"
            ),
            SimOptions { others: vec![CoreOptions::default()], ..options() },
        );
        assert_eq!(outcome.requests().failed(), 0);
        let mut sent: Vec<(u64, u64)> = outcome
            .samples
            .iter()
            .map(|sample| {
                let count = if sample.op.kind() == OpKind::Mget { keys } else { 1 };
                (sample.times.sent_ns - outcome.start_ns(), count)
            })
            .collect();
        sent.sort_unstable();
        let mut total = 0;
        for (at_ns, count) in sent {
            total += count;
            // Two clients at 500/s, each with the first one at once.
            let due = 2 * (at_ns / (2 * MS) + 1);
            assert!(total <= due, "{mix}: {total} of {due} after {at_ns} ns");
        }
        assert!((2_000 - 2 * keys..=2_000).contains(&total), "{mix}: {total}");
    }
}

/// A client's schedule is its own, and not that of its connections: whether they are established late, come and go, or are lost one after the
/// other, every operation is due when it was to be, as long as one can be had.
#[test]
fn connections_do_not_move_the_schedule_of_a_client() {
    for (what, server, more) in [
        ("all is well", "", "never"),
        ("comes and goes", "30", "always"),
        ("comes and goes", "30", "while-one-stands"),
        // A connection of each client is lost at last.
        ("goes", "700", "never"),
    ] {
        let faults = Faults { reset_every: server.parse().ok(), ..Faults::default() };
        let server = CoreOptions { faults, ..CoreOptions::default() };
        let outcome = simulate(
            &format!(
                "connections = 8\nclient-connections = 4\ncall-rate = 500\ntime = '2s'\n\
                 mix = 'get=9,set=1'\npopularity = 'window:100'\nreconnect = '{more}'"
            ),
            SimOptions { server, ..options() },
        );
        assert_eq!(what == "all is well", outcome.connections().lost == 0);
        // Each of the two clients has one operation every two milliseconds.
        let expected: Vec<u64> = (0..1_000).flat_map(|call| [call * 2 * MS; 2]).collect();
        assert_eq!(outcome.intended_ns(), expected, "{what} {more}");
    }
}

/// A part of the gets is checked: as many as were asked for.
#[test]
fn a_share_of_the_gets_is_checked() {
    let outcome = simulate(
        "connections = 1\nclient-connections = 1\nrequests = 10000\npopularity = 'window:50'\nverify = '20%'",
        options(),
    );
    let gets = outcome.measured(OpKind::Get).keys.hit;
    assert_eq!((gets, outcome.end.data.counts.verification.checked), (9_000, 1_800));
}

/// The number of requests counts keys, over all clients, whatever they are sent in.
#[test]
fn the_number_of_requests_is_that_of_keys() {
    for (requests, multiget) in [(1_003, 20), (5, 3), (10_001, 7)] {
        let plan = plan(&format!(
            "connections = 4\nclient-connections = 1\nrequests = {requests}\npopularity = 'window:30'\n\
             mix = 'set=1,mget=9'\nmultiget = {multiget}\nverify = '100%'"
        ));
        let outcome = simulate_plan(plan.clone(), options());
        let (keys, sets) = (outcome.measured(OpKind::Mget).keys, outcome.measured(OpKind::Set).requests);
        assert_eq!(keys.requested + sets.scheduled, requests);
        assert_eq!((keys.miss, outcome.end.data.counts.verification.checked), (0, keys.hit));
        assert_eq!((windows(&outcome).verify_failed, windows(&outcome).verify_misses), (0, 0));
        let status = Summary::build(outcome.record(plan)).status;
        let broken = status.check(CheckId::Broken).unwrap();
        assert_eq!(broken.status, CheckStatus::Ok, "{}", broken.message);
    }
}

/// Where nothing is set in the schedule, all was set before it.
#[test]
fn windows_without_sets_are_preset() {
    for form in FORMS {
        let outcome = simulate(
            &format!(
                "connections = 3\nclient-connections = 1\nrequests = 3000\npopularity = 'window:100'\n\
                 mix = 'get'\nverify = '100%'\n{form}"
            ),
            options(),
        );
        assert_eq!(outcome.op_counts(Phase::Preload).requests.outcome(OutcomeClass::Done), 300);
        assert_eq!((outcome.items[0], outcome.measured(OpKind::Get).keys.hit), (300, 3_000), "{form}");
        assert_eq!(
            (windows(&outcome).verify_failed, outcome.end.data.counts.verification.checked),
            (0, 3_000)
        );
    }
}

/// Keys and values of every object that was set, from the original's rules: the numbers of one client go up by one, as long as nothing
/// is written anew.
#[test]
fn clients_send_what_memaslap_sends() {
    let outcome = simulate(
        "connections = 1\nclient-connections = 1\nrequests = 100\npopularity = 'window:4'\n\
         key-form = 'memaslap'\nkey-size = 64\nvalue-size = 1024",
        options(),
    );
    let mut word = 0u64;
    let (mut verbs, mut suffixes) = (Vec::new(), Vec::new());
    each_command(&outcome.sent, |command| {
        let DataCommand { key, value, .. } = *command;
        verbs.push(command.verb);
        if command.verb == Verb::Set {
            word |= 0x1010_1010_1010_1010;
            assert_eq!((key.len(), value.len(), &key[..8]), (64, 1024, &word.to_le_bytes()[..]));
            assert_eq!(key[8..], value[..56], "a value begins as the suffix of its key");
            suffixes.push(key[8..].to_vec());
            word += 1;
        }
    });
    assert!(
        verbs.chunks(10).all(|ten| ten[0] == Verb::Set && ten[1..].iter().all(|verb| *verb == Verb::Get))
    );
    // The next object in a place begins a byte further.
    assert_eq!(suffixes.len(), 10);
    for (before, after) in suffixes.iter().zip(&suffixes[4..]) {
        assert_eq!(before[1..], after[..55]);
    }
}

/// Objects that live on too long, and objects that are gone too soon, are counted by the second.
#[test]
fn expiry_is_judged_to_the_second() {
    // Object 0001, which expires, is set after 200 s, and has a place of the window until the end.
    const TOML: &str = "connections = 1\nclient-connections = 1\nrequests = 599\nthink = '1s'\n\
                        mix = 'set=1,get=199'\npopularity = 'window:2,expire=1'\nttl = '60s'\nkey-size = 4\n\
                        value-size = 20\ntimeout = '5s'";
    type Tamper = fn(&mut Vec<u8>);
    let table: [(&str, Tamper); 3] = [
        ("as it should be", |_| {}),
        ("never expires", |reply| {
            if reply.as_slice() == b"END\r\n" {
                *reply = b"VALUE 0001 0 20\r\nxxxxxxxxxxxxxxxxxxxx\r\nEND\r\n".to_vec();
            }
        }),
        ("is gone at once", |reply| {
            if reply.starts_with(b"VALUE 0001 ") {
                *reply = b"END\r\n".to_vec();
            }
        }),
    ];
    for (what, tamper) in table {
        let server = CoreOptions { script_after: 0, ..CoreOptions::default() };
        let bound_ns = 10_000 * SECOND;
        let options = SimOptions { server, tamper: Some(tamper), ..options() };
        let outcome = simulate_within(plan(TOML), options, bound_ns);
        let (mut stored_ns, mut expired, mut unexpired) = (0, 0, 0);
        let mut samples = outcome.samples.iter();
        each_command(&outcome.sent, |command| {
            let times = samples.next().unwrap().times;
            match command.verb {
                Verb::Set if command.key == b"0001" => stored_ns = times.intended_ns,
                Verb::Get if command.keys().eq([&b"0001"[..]]) => {
                    let age_ns = times.done_ns - stored_ns;
                    expired += u64::from(age_ns > 65 * SECOND && what == "never expires");
                    unexpired += u64::from(age_ns < 55 * SECOND && what == "is gone at once");
                }
                _ => {}
            }
        });
        let found = windows(&outcome);
        assert_eq!((found.expired_get, found.unexpired_unget), (expired, unexpired), "{what}");
        assert_eq!(what == "as it should be", expired + unexpired == 0, "{what}");
        for (fault, [key, expected, received]) in outcome.object_faults.iter().flat_map(ObjectFaults::rows) {
            let shown: &[u8] = if what == "never expires" { &[b'x'; 20] } else { &[] };
            assert_eq!((key, expected, received), (&b"0001"[..], &[][..], shown), "{fault:?}");
        }
        assert_eq!((found.verify_failed, found.verify_misses), (0, 0));
    }
}

/// Objects of a preload that took longer than they live expire in the run, each at its time: none of them is gone too soon.
#[test]
fn objects_of_a_long_preload_expire_in_time() {
    let server = serving(300 * MS);
    let outcome = simulate(
        "connections = 1\nclient-connections = 1\ntime = '50s'\nmix = 'get'\n\
         popularity = 'window:100,expire=1'\nttl = '60s'\ntimeout = '60s'",
        SimOptions { server, ..options() },
    );
    let keys = outcome.measured(OpKind::Get).keys;
    assert!(keys.miss > 20 && keys.hit > 50, "{keys:?}");
    assert_eq!((windows(&outcome).unexpired_unget, windows(&outcome).expired_get), (0, 0));
}

/// The data commands among these bytes.
fn each_command(mut bytes: &[u8], mut tell: impl FnMut(&DataCommand<'_>)) {
    while let Parsed::Complete { used, request: command } = parse(bytes, 1 << 20) {
        if let Command::Data(command) = command {
            tell(&command);
        }
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty(), "{} stands behind the last command", bytes.escape_ascii());
}
