//! Checks of the servers' own account: do they count what we did, and was the cache in a steady state?
//!
//! Not of latencies, and not of what only we have seen. Where servers say nothing, these checks are skipped with the reason.

use super::Evidence;
use super::cause::{Cause, CauseKind, OpenChecks};
use super::{CacheEvidence, ServerEvidence};
use crate::check::{Check, CheckStatus};
use crate::number_text::{percent, rounded};
use crate::server_stats::{CounterReset, Growth, StatComparison};
use crate::steady::Series;
use std::borrow::Cow;

/// A stock that grows by no more than this part of itself over the window is not filling.
const GROWTH_MAX: f64 = 0.05;
/// A stock that rises in fewer of the steps through the window comes and goes.
const RISES_MIN: f64 = 0.9;
/// Differences that are named; the rest is in the JSON.
const DIFFERENCES_TOLD: usize = 3;

/// Had the servers to prove who they are?
pub(super) fn identity(evidence: &Evidence<'_>) -> Check {
    let (status, message) = match evidence.is_peer_verified {
        None => return Check::skipped("PEER", "without TLS no server proves who it is", 0.0),
        Some(true) => {
            (CheckStatus::Ok, "every server has shown a certificate for its name by an issuer we trust")
        }
        Some(false) => (CheckStatus::Caution, "certificates not verified (--tls-insecure)"),
    };
    let fix = "--tls-ca FILE in place of --tls-insecure";
    let value = if status == CheckStatus::Ok { 0.0 } else { 1.0 };
    Check::judged("PEER", status, message.to_owned(), fix, value, 0.0)
}

/// Do the servers count what we did?
pub(super) fn agreement(evidence: &Evidence<'_>) -> Check {
    let ServerEvidence { silence, comparisons, open_requests, counter_resets, same, .. } = &evidence.servers;
    if !silence.is_empty() {
        return Check::skipped("SERVER", silence, 0.0);
    }
    if evidence.lost_agent.is_some() {
        let message = "an agent was lost, and servers counted requests of which it did not report any more";
        return Check::skipped("SERVER", message, 0.0);
    }
    if let Some((server, reset)) = counter_resets.first() {
        let what = match reset {
            CounterReset::Restarted => "was restarted during the run",
            CounterReset::Reset => "reset its counters during the run",
        };
        let fix = "keep the server running, and its counters, for the length of a run";
        let message = format!("{server} {what}");
        let consequence = "its counts cannot be compared with ours".to_owned();
        return Check::judged("SERVER", CheckStatus::Caution, message, fix, counter_resets.len() as f64, 0.0)
            .with([consequence]);
    }
    if let Some((one, other)) = same {
        let message = format!("{one} and {other} are the same server: one process, one age, the same counts");
        let consequence =
            "whatever is summed over servers has it twice, and its load is that of two".to_owned();
        return Check::judged("SERVER", CheckStatus::Caution, message, "name each server once", 1.0, 0.0)
            .with([consequence]);
    }
    let met = comparisons.iter().filter(|one| one.most > 0 || one.counted > 0).count();
    if met == 0 {
        return Check::skipped("SERVER", "the servers' statistics have none of the counts that we have", 0.0);
    }
    let mut wrong: Vec<&StatComparison> = comparisons.iter().filter(|one| one.difference() != 0).collect();
    wrong.sort_by_key(|one| std::cmp::Reverse(one.difference().unsigned_abs()));
    let fix = "see that no one else uses the server and nothing between answers for it (--no-server-stats leaves this out)";
    let value = wrong.first().map_or(0, |one| one.difference().unsigned_abs());
    let (status, message) = match wrong.as_slice() {
        [] if *open_requests == 0 => {
            (CheckStatus::Ok, format!("{met} counts of the servers are ours, exactly"))
        }
        [] => (
            CheckStatus::Ok,
            format!(
                "{met} counts of the servers are ours, but for {} requests that have no answer",
                *open_requests
            ),
        ),
        wrong => (CheckStatus::Caution, differences(wrong)),
    };
    Check::judged("SERVER", status, message, fix, value as f64, 0.0)
}

/// The largest differences, and who may have made them.
fn differences(wrong: &[&StatComparison]) -> String {
    let told: Vec<String> = wrong.iter().take(DIFFERENCES_TOLD).map(|one| difference(one)).collect();
    let more = match wrong.len().saturating_sub(DIFFERENCES_TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is_more = wrong.iter().any(|one| one.difference() > 0);
    let is_less = wrong.iter().any(|one| one.difference() < 0);
    let reason = match (is_more, is_less) {
        (true, false) => "others use this server, too",
        (false, true) => "something between us answers for the server, or its counters were reset",
        _ => "others use this server, or what answers is not what counts",
    };
    format!("{}{more}: {reason}", told.join(", "))
}

fn difference(one: &StatComparison) -> String {
    let StatComparison { statistic, least, most, counted } = one;
    let ours = if least == most { most.to_string() } else { format!("{} to {}", *least, *most) };
    let difference = one.difference();
    let word = if difference > 0 { "more" } else { "fewer" };
    let by = difference.unsigned_abs();
    format!("{} is {} and ours {ours} ({by} {word})", statistic.name(), *counted)
}

/// Did the cache keep what was stored, and was its stock steady?
pub(super) fn cache(evidence: &Evidence<'_>) -> Check {
    let ServerEvidence { silence, cache, .. } = &evidence.servers;
    let Some(cache) = cache else {
        let reason = if silence.is_empty() { "no statistics of the cache over the window" } else { silence };
        return Check::skipped("CACHE", reason, 0.0);
    };
    let more_memory =
        "give the server more memory (memcached -m, Redis maxmemory), or use fewer --keys or smaller values";
    if let Some((stored, present)) = cache.preload.filter(|(stored, present)| present < stored) {
        let gone = stored - present;
        let message = format!(
            "preload is incomplete: of {} keys that were stored, {} were gone again when it was over ({})",
            stored,
            gone,
            percent(gone as f64 / stored as f64)
        );
        return Check::judged("CACHE", CheckStatus::NotTrusted, message, more_memory, gone as f64, 0.0);
    }
    if let Some(evictions @ 1..) = cache.window.evictions {
        let message = format!(
            "{} items were evicted in the measured window ({}/s): the hit ratio is that of a full cache",
            evictions,
            rounded(cache.window.per_second(evictions))
        );
        return Check::judged("CACHE", CheckStatus::Caution, message, more_memory, evictions as f64, 0.0);
    }
    if let Some(growth) = filling(cache) {
        let Growth { of, from, to, .. } = growth;
        let message = format!(
            "the cache is still filling: {} rose from {} to {} through the window, at a hit ratio of {}",
            of.name(),
            *from,
            *to,
            percent(cache.window.hit_ratio().unwrap_or(0.0))
        );
        let fix = filling_fix(evidence);
        return Check::judged("CACHE", CheckStatus::Caution, message, fix, growth.share(), GROWTH_MAX);
    }
    let hits = match cache.window.hit_ratio() {
        Some(ratio) => format!(", a hit ratio of {}", percent(ratio)),
        None => String::new(),
    };
    match cache.window.evictions {
        Some(_) => Check::judged("CACHE", CheckStatus::Ok, format!("no evictions{hits}"), "", 0.0, 0.0),
        None => Check::skipped("CACHE", "the servers do not tell how many items they evict", 0.0),
    }
}

/// Did the cache change while it was measured, and what follows from that?
pub(super) fn cause(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let check = open.get("CACHE");
    let state = evidence.servers.cache.as_ref().filter(|_| check.is_some());
    let moved = |id: &str| evidence.steady.fires(id, Series::HitRatio);
    let is_moving = ["WARM", "DRIFT", "SHIFT"].into_iter().any(|id| open.has(id) && moved(id));
    let growth = state.and_then(filling);
    let evictions = state.and_then(|cache| cache.window.evictions).filter(|evictions| *evictions > 0);
    let sentence = match (growth, evictions, state) {
        (_, Some(evictions), Some(cache)) => format!(
            "full cache: {} items evicted in the window ({}/s)",
            evictions,
            rounded(cache.window.per_second(evictions))
        ),
        (Some(Growth { of, from, to, .. }), ..) => {
            format!("filling cache: {} rose from {} to {}", of.name(), *from, *to)
        }
        _ if is_moving => {
            let change = evidence.steady.change(Series::HitRatio);
            format!("hit ratio in motion: it changed by {change:+.3} within the window")
        }
        _ => return None,
    };
    let is_changing = evictions.is_some() || growth.is_some();
    let fix = check.map_or(Cow::Borrowed(filling_fix(evidence)), |check| check.fix.clone());
    // Where CACHE finds nothing, it is the motion that shows it.
    let shown = |id: &str| check.is_none() && moved(id);
    Some(Cause {
        kind: CauseKind::Cache,
        sentence,
        fix,
        checks: open.those(&[
            ("CACHE", true),
            ("WARM", shown("WARM")),
            ("DRIFT", shown("DRIFT")),
            ("SHIFT", shown("SHIFT")),
        ]),
        follows: open.those(&[
            ("WARM", check.is_some() && (growth.is_some() || moved("WARM"))),
            ("DRIFT", check.is_some() && (is_changing || moved("DRIFT"))),
            ("SHIFT", check.is_some() && (is_changing || moved("SHIFT"))),
        ]),
        sets_load: false,
    })
}

/// Preload stores what own commands may not be able to read.
const fn filling_fix(evidence: &Evidence<'_>) -> &'static str {
    match evidence.has_own_commands_only {
        true => "use a longer --warmup, or fill the cache first by the same commands",
        false => "fill the cache first (preload), or use a longer --warmup",
    }
}

/// A stock that rises all through the window while keys are missed. A cache that has every key may grow as it likes: then
/// values do.
fn filling(cache: &CacheEvidence) -> Option<&Growth> {
    let misses = cache.window.misses.unwrap_or(0);
    let rises = |growth: &&Growth| {
        growth.share() > GROWTH_MAX && growth.rises as f64 >= RISES_MIN * growth.steps as f64
    };
    (misses > 0).then(|| cache.growth.iter().find(rises)).flatten()
}
