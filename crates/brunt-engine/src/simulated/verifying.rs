//! `--verify` in the simulated world: what is wrong is found and told apart, and what is right is never called wrong.

use super::operations::{Tamper, rewrite, value};
use super::*;
use brunt_plan::op::Version;
use brunt_server::Every;
use brunt_stats::verification::{FaultExample, ValueFault, Verification};

fn found(outcome: &Outcome) -> &Verification {
    &outcome.end.data.counts.verification
}

fn rows(outcome: &Outcome) -> Vec<(ValueFault, u64, FaultExample)> {
    found(outcome).rows().collect()
}

/// Keys that were read and found, and those that were not, in all phases of the schedule.
fn keys_told(outcome: &Outcome) -> (u64, u64) {
    let keys = [Phase::Warmup, Phase::Measure, Phase::Drain].map(|phase| outcome.op_counts(phase).keys);
    (keys.iter().map(|keys| keys.hit).sum(), keys.iter().map(|keys| keys.miss).sum())
}

/// Writes, deletions, lives that end, misses that are stored, replies that never come: nothing is wrong with any of it.
#[test]
fn right_values_pass() {
    let faults = Faults { drop_every: Every::new(97), reset_every: Every::new(501), ..Faults::default() };
    let all = "get=4,mget=2,gets=1,set=2,add=1,replace=1,cas=1,delete=1,touch=1";
    for (plan, faults, is_whole) in [
        ("connections = 4\ndepth = 4\nmix = 'get=3,set=1'\nrequests = 20000", Faults::default(), true),
        (
            "connections = 4\ndepth = 4\nmix = 'get=3,set=1'\nrequests = 5000\npreload = false",
            Faults::default(),
            true,
        ),
        (
            "rate = 20000\nconnections = 3\ndepth = 8\nmix = 'mget=3,set=1'\nmultiget = 3\ntime = '1s'",
            Faults::default(),
            true,
        ),
        (&format!("connections = 4\ndepth = 2\nmix = '{all}'\nrequests = 20000"), Faults::default(), true),
        (
            "connections = 2\nmix = 'get=3,set=1'\non-miss = 'set'\nttl = '1s'\nrate = 2000\ntime = '9s'",
            Faults::default(),
            true,
        ),
        (
            "connections = 4\ndepth = 4\nmix = 'get=3,set=1'\ntimeout = '5ms'\nrate = 5000\ntime = '4s'",
            faults,
            false,
        ),
        ("connections = 2\nmix = 'get=3,set=1'\nnoreply = true\nrequests = 5000", Faults::default(), true),
    ] {
        let options = SimOptions::of(CoreOptions {
            faults,
            script_after: 30,
            service: Service::Exponential(20_000),
            ..CoreOptions::default()
        })
        .latency(10 * US);
        let outcome =
            simulate(&format!("{plan}\nverify = '100%'\nkeys = 30\nvalue-size = 'uniform:16,3000'"), options);
        assert_eq!((rows(&outcome), outcome.count(OutcomeClass::Mismatch)), (vec![], 0), "{plan}");
        let (checked, told) = ((found(&outcome).checked, found(&outcome).misses), keys_told(&outcome));
        assert!(
            checked.0 + checked.1 > 1_000 && (checked == told || !is_whole),
            "{plan}: {checked:?} of {told:?}"
        );
    }
}

/// Every kind of wrong value, as often as it was made, with its example.
#[test]
fn wrong_values_are_classified() {
    use ValueFault::{NeverWritten, Overlong, Torn, Truncated, WrongKey};
    // The first writer's fifth write.
    const FIFTH: u32 = Version::of(1, 5).0;
    let table: [(ValueFault, Option<u32>, Tamper); 7] = [
        (WrongKey, None, |reply| rewrite(reply, |id| (id ^ 1, value(id ^ 1, 0)))),
        (WrongKey, None, |reply| rewrite(reply, |id| (id, value(id ^ 1, 0)))),
        (Torn, Some(0), |reply| {
            rewrite(reply, |id| (id, [&value(id, 0)[..20], &value(id ^ 1, 0)[20..]].concat()));
        }),
        (Torn, None, |reply| rewrite(reply, |id| (id, vec![b'x'; 40]))),
        (Truncated, Some(0), |reply| rewrite(reply, |id| (id, value(id, 0)[..39].to_vec()))),
        (Overlong, Some(0), |reply| rewrite(reply, |id| (id, [value(id, 0), vec![0]].concat()))),
        (NeverWritten, Some(FIFTH), |reply| rewrite(reply, |id| (id, value(id, FIFTH)))),
    ];
    for (fault, held, tamper) in table {
        for piece_bytes in [usize::MAX, 7] {
            let outcome = simulate(
                "connections = 1\nrequests = 100\nkeys = 2\nvalue-size = 40\nverify = '100%'\n\
                 popularity = 'sequential'\nmix = 'get'",
                SimOptions { tamper: Some(tamper), piece_bytes, ..SimOptions::default().latency(10 * US) },
            );
            let rows = rows(&outcome);
            let [(kind, count, first)] = rows[..] else { panic!("{fault:?}: {rows:?}") };
            let other_key = (fault == WrongKey).then_some(1);
            assert_eq!(
                (kind, count, first.key, first.other_key),
                (fault, 100, 0, other_key),
                "{piece_bytes}"
            );
            assert_eq!(first.version, held.map(Version), "{piece_bytes}");
            assert_eq!(outcome.count(OutcomeClass::Mismatch), 100);
        }
    }
}

/// A server that has forgotten a write it acknowledged: from the first one on every get of the key is stale.
#[test]
fn overwritten_values_are_stale() {
    let outcome = simulate(
        "connections = 1\nrequests = 1000\nkeys = 1\nvalue-size = 40\nverify = '100%'\nmix = 'get=3,set=1'",
        SimOptions {
            tamper: Some(|reply| rewrite(reply, |id| (id, value(id, 0)))),
            ..SimOptions::default().latency(10 * US)
        },
    );
    let is_set = |sample: &&Sample| sample.op.kind() == OpKind::Set;
    let first_set_ns = outcome.samples.iter().find(is_set).unwrap().times.done_ns;
    let is_late =
        |sample: &&Sample| sample.op.kind() == OpKind::Get && sample.times.intended_ns >= first_set_ns;
    let stale = outcome.samples.iter().filter(is_late).count() as u64;
    let rows = rows(&outcome);
    let [(ValueFault::Stale, count, first)] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((count, first.version, first.wanted), (stale, Some(Version(0)), Some(Version::of(1, 1))));
    assert!(stale > 500);
    assert_eq!(outcome.count(OutcomeClass::Mismatch), stale);
}

/// A key that is gone though nothing deletes it is missing as long as it was to live, and one that stays longer has
/// expired, give or take the two seconds that servers may be wrong.
#[test]
fn expiry_is_checked() {
    const S: u64 = 1_000_000_000;
    let run = |tamper: Tamper, ttl: &str| {
        simulate(
            &format!(
                "rate = 10\narrival = 'uniform'\nconnections = 1\ntime = '30s'\nkeys = 1\nvalue-size = 40\n\
                 verify = '100%'\nmix = 'get'\n{ttl}"
            ),
            SimOptions { tamper: Some(tamper), ..SimOptions::default().latency(10 * US) },
        )
    };
    let lose: Tamper = |reply| {
        if reply.starts_with(b"VALUE ") {
            *reply = b"END\r\n".to_vec();
        }
    };
    let keep: Tamper = |reply| {
        if reply == b"END\r\n" {
            *reply = [format!("VALUE {:030} 0 40\r\n", 0).as_bytes(), &value(0, 0), b"\r\nEND\r\n"].concat();
        }
    };
    let missing = run(lose, "");
    assert_eq!(found(&missing).count(ValueFault::Missing), 300);
    assert_eq!(missing.count(OutcomeClass::Miss), 300, "a miss stays a miss");
    let missing = run(lose, "ttl = '10s'");
    // The clock of the run is at 0 before the world begins.
    let young = missing.samples.iter().filter(|sample| sample.times.done_ns + 2 * S < 10 * S).count() as u64;
    assert_eq!(found(&missing).count(ValueFault::Missing), young);
    assert!((60..80).contains(&young), "{young}");
    let kept = run(keep, "ttl = '10s'");
    let over_ns = kept.start_ns() + 12 * S;
    let old = kept.samples.iter().filter(|sample| sample.times.picked_ns > over_ns).count() as u64;
    assert_eq!(
        rows(&kept).iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
        [(ValueFault::Expired, old)]
    );
    assert!((170..190).contains(&old), "{old}");
}

/// A part of the keys: as many as that within four standard deviations of a binomial, and the others are not looked at.
#[test]
fn a_fraction_of_reads_is_checked() {
    let outcome = simulate(
        "connections = 1\nrequests = 10000\nkeys = 2\nvalue-size = 40\nverify = '25%'\nmix = 'get'",
        SimOptions {
            tamper: Some(|reply| rewrite(reply, |id| (id, vec![b'x'; 40]))),
            ..SimOptions::default().latency(10 * US)
        },
    );
    let checked = found(&outcome).checked;
    assert!(checked.abs_diff(2_500) < 4 * 44, "{checked}");
    assert_eq!(found(&outcome).count(ValueFault::Torn), checked);
    assert_eq!(outcome.count(OutcomeClass::Mismatch), checked);
}
