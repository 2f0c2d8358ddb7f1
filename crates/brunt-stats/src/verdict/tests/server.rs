//! The checks of the servers' own account at their thresholds.

use super::*;
use crate::server_stats::{CounterReset, Growth, ServerSpan, ServerStat, StatComparison};

fn comparison(statistic: ServerStat, ours: u64, counted: u64) -> StatComparison {
    StatComparison { statistic, least: ours, most: ours, counted }
}

/// The check in question for such evidence.
fn found(id: &str, servers: ServerEvidence) -> Check {
    check(id, |evidence| evidence.servers = servers.clone())
}

fn agreement_of(comparisons: &[StatComparison]) -> Check {
    found("SERVER", ServerEvidence { comparisons: comparisons.to_vec(), ..ServerEvidence::default() })
}

#[test]
fn counts_that_agree() {
    let agreeing = [
        comparison(ServerStat::CmdGet, 900, 900),
        comparison(ServerStat::CmdSet, 100, 100),
        comparison(ServerStat::CmdTouch, 0, 0),
    ];
    let check = agreement_of(&agreeing);
    assert_eq!((check.status, check.text().as_str()), (Ok, "2 counts of the servers are ours, exactly"));
    let within = StatComparison { least: 90, most: 100, ..comparison(ServerStat::CmdGet, 0, 93) };
    let servers =
        ServerEvidence { comparisons: vec![within], open_requests: 10, ..ServerEvidence::default() };
    let check = found("SERVER", servers);
    let message = "1 counts of the servers are ours, but for 10 requests that have no answer";
    assert_eq!((check.status, check.text().as_str()), (Ok, message));
}

#[test]
fn one_server_under_two_names() {
    let same = Some(("localhost:11211".to_owned(), "127.0.0.1:11211".to_owned()));
    let comparisons = vec![comparison(ServerStat::CmdGet, 900, 1_800)];
    let check = found("SERVER", ServerEvidence { same, comparisons, ..ServerEvidence::default() });
    assert_eq!((check.status, check.fix.as_ref()), (Caution, "name each server once"));
    let message = "localhost:11211 and 127.0.0.1:11211 are the same server: one process, one age, the same counts; whatever is \
                   summed over servers has it twice, and its load is that of two";
    assert_eq!(check.text(), message);
}

#[test]
fn counts_that_differ() {
    let get = |counted| comparison(ServerStat::CmdGet, 20_000, counted);
    let others = "cmd_get is 20001 and ours 20000 (1 more): others use this server, too";
    let lost = "cmd_get is 19999 and ours 20000 (1 fewer): something between us answers for the server, or its counters were \
                reset";
    for (counted, message) in [(20_001, others), (19_999, lost)] {
        let check = agreement_of(&[get(counted)]);
        assert_eq!((check.status, check.text().as_str(), check.value), (Caution, message, 1.0));
    }
    let many = [
        get(20_100),
        comparison(ServerStat::GetHits, 5, 3),
        StatComparison { least: 1, ..comparison(ServerStat::GetMisses, 3, 103) },
        comparison(ServerStat::CmdSet, 7, 8),
        comparison(ServerStat::CmdTouch, 7, 7),
    ];
    assert_eq!(
        agreement_of(&many).text(),
        "cmd_get is 20100 and ours 20000 (100 more), get_misses is 103 and ours 1 to 3 (100 more), get_hits is 3 and ours 5 \
         (2 fewer) and 1 more: others use this server, or what answers is not what counts"
    );
}

#[test]
fn restarted_or_silent_servers() {
    let reset = |reset| ServerEvidence {
        counter_resets: vec![("cache-1:11211".to_owned(), reset)],
        ..ServerEvidence::default()
    };
    let check = found("SERVER", reset(CounterReset::Restarted));
    assert_eq!(check.status, Caution);
    assert!(check.text().starts_with("cache-1:11211 was restarted during the run"), "{}", check.text());
    assert!(found("SERVER", reset(CounterReset::Reset)).text().contains("reset its counters"));
    let silent = ServerEvidence { silence: "it answers \"ERROR\"".to_owned(), ..ServerEvidence::default() };
    for id in ["SERVER", "CACHE"] {
        let check = found(id, silent.clone());
        assert_eq!((check.status, check.text().as_str()), (Skipped, "it answers \"ERROR\""));
    }
    assert_eq!(agreement_of(&[]).status, Skipped);
    assert_eq!(agreement_of(&[comparison(ServerStat::CmdGet, 0, 0)]).status, Skipped);
    assert_eq!(agreement_of(&[comparison(ServerStat::CmdGet, 0, 1)]).status, Caution);
}

/// A window of 10 s in which 900 of 1 000 keys were found.
fn quiet() -> CacheEvidence {
    let window = ServerSpan {
        start_ns: 1_000_000_000,
        end_ns: 11_000_000_000,
        hits: Some(900),
        misses: Some(100),
        evictions: Some(0),
        ..ServerSpan::default()
    };
    CacheEvidence { window, ..CacheEvidence::default() }
}

fn cache_of(change: impl Fn(&mut CacheEvidence)) -> Check {
    let mut cache = quiet();
    change(&mut cache);
    found("CACHE", ServerEvidence { cache: Some(cache), ..ServerEvidence::default() })
}

#[test]
fn a_quiet_cache() {
    let check = cache_of(|_| {});
    assert_eq!((check.status, check.text().as_str()), (Ok, "no evictions, a hit ratio of 90.0 %"));
    let check = cache_of(|cache| (cache.window.hits, cache.window.misses) = (Some(0), Some(0)));
    assert_eq!((check.status, check.text().as_str()), (Ok, "no evictions"));
    assert_eq!(cache_of(|cache| cache.window.evictions = None).status, Skipped);
}

#[test]
fn evictions_in_the_window() {
    let check = cache_of(|cache| cache.window.evictions = Some(1));
    assert_eq!(check.status, Caution);
    let check = cache_of(|cache| cache.window.evictions = Some(1_234));
    let message =
        "1234 items were evicted in the measured window (123/s): the hit ratio is that of a full cache";
    assert_eq!((check.text().as_str(), check.value), (message, 1_234.0));
}

#[test]
fn preloaded_keys_that_are_gone() {
    for (present, expected) in [(1_001, Ok), (1_000, Ok), (999, NotTrusted), (0, NotTrusted)] {
        assert_eq!(cache_of(|cache| cache.preload = Some((1_000, present))).status, expected, "{present}");
    }
    // Worse than what else is wrong.
    let check = cache_of(|cache| {
        cache.preload = Some((1_000, 750));
        cache.window.evictions = Some(5);
    });
    let message =
        "preload is incomplete: of 1000 keys that were stored, 250 were gone again when it was over (25.0 %)";
    assert_eq!((check.status, check.text().as_str(), check.value), (NotTrusted, message, 250.0));
}

#[test]
fn a_cache_that_is_still_filling() {
    let growth = |from, to, rises| Growth { of: ServerStat::CurrItems, from, to, rises, steps: 10 };
    let table = [
        (growth(100, 100, 0), Ok),
        (growth(95, 100, 10), Ok),
        (growth(94, 100, 10), Caution),
        (growth(94, 100, 9), Caution),
        (growth(50, 100, 8), Ok),
        (growth(100, 50, 10), Ok),
        (growth(0, 0, 0), Ok),
    ];
    for (growth, expected) in table {
        let check = cache_of(|cache| cache.growth = vec![growth]);
        assert_eq!(check.status, expected, "{growth:?}");
        // Where nothing is missed, values grow, and that is the load.
        let check = cache_of(|cache| (cache.growth, cache.window.misses) = (vec![growth], Some(0)));
        assert_eq!(check.status, Ok);
    }
    let check = cache_of(|cache| {
        cache.growth = vec![growth(100, 100, 0), Growth { of: ServerStat::Bytes, ..growth(400, 1_000, 10) }];
    });
    let message = "the cache is still filling: bytes rose from 400 to 1000 through the window, at a hit ratio of 90.0 %";
    assert_eq!((check.text().as_str(), check.value), (message, 0.6));
}
