//! What happened in a run and is no doubt about the measurement: a sentence each, where there is anything to say.
//!
//! Not the outages, connections and error replies, which have tables of their own.

use super::Facts;
use crate::check::rounded;
use crate::counts::share;
use crate::server_evidence::CacheEvidence;
use crate::server_stats::{CounterReset, Growth};
use crate::usage::{ClockEvidence, is_fast_clocksource};
use crate::verification::ValueFault;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Transport;
use brunt_plan::quantity::{percent, time};
use brunt_plan::quoted_bytes::QuotedBytes;

/// Bytes of an error reply that a sentence quotes.
const QUOTED_MAX: usize = 40;
/// A stock that grows by no more than this part of itself over the window is not filling.
const GROWTH_MAX: f64 = 0.05;
/// A stock that rises in fewer of the steps through the window comes and goes.
const RISES_MIN: f64 = 0.9;
/// Packets sent again that are told, as a share of requests.
const LOSSES_MIN: f64 = 0.001;

pub(super) fn all(facts: &Facts<'_>) -> Vec<String> {
    let groups = [servers(facts), cache(facts), values(facts), host(facts)];
    groups.into_iter().flatten().collect()
}

/// What helps against a server that has as many connections as it takes.
pub(super) const FULL: &str = "raise its limit (memcached -c, Redis maxclients), or use fewer --connections";

/// Is it what memcached or Redis says on a connection beyond its limit?
pub(super) fn is_at_its_limit(reply: &[u8]) -> bool {
    let text = String::from_utf8_lossy(reply);
    ["Too many open connections", "max number of clients"].iter().any(|words| text.contains(words))
}

/// The beginning of a reply, in quotes.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let rest = if bytes.len() > QUOTED_MAX { "..." } else { "" };
    format!("{}{rest}", QuotedBytes(&bytes[..bytes.len().min(QUOTED_MAX)]))
}

fn servers(facts: &Facts<'_>) -> Vec<String> {
    let servers = facts.servers;
    let reset = servers.counter_resets.first().map(|(server, reset)| {
        let what = match reset {
            CounterReset::Restarted => "was restarted during the run",
            CounterReset::Reset => "reset its counters during the run",
        };
        format!("{server} {what}: its counts cannot be compared with ours")
    });
    let same = servers.same.as_ref().map(|(one, other)| {
        format!(
            "{one} and {other} are the same server: sums over servers have it twice -> name each server once"
        )
    });
    // What a lost agent did not hand over is ours all the same.
    let more = servers.more_than_ours().filter(|_| !facts.is_incomplete());
    let plan = &facts.record.plan;
    let is_unverified = plan.uses_transport(Transport::Tls) && plan.tls.is_insecure;
    let unverified =
        is_unverified.then(|| "the servers' certificates were not verified (--tls-insecure)".to_owned());
    [reset, same, more, unverified].into_iter().flatten().collect()
}

fn cache(facts: &Facts<'_>) -> Vec<String> {
    let Some(cache) = &facts.servers.cache else { return Vec::new() };
    let gone = cache.preload.filter(|(stored, present)| present < stored).map(|(stored, present)| {
        format!("{} of {stored} keys that were stored were gone when the preload was over -> more memory for the server", stored - present)
    });
    let evicted = cache.window.evictions.filter(|evictions| *evictions > 0).map(|evictions| {
        let rate = rounded(cache.window.per_second(evictions));
        format!(
            "{evictions} items were evicted in the window ({rate}/s): the hit ratio is that of a full cache"
        )
    });
    let filling = filling(cache).map(|Growth { of, from, to, .. }| {
        let ratio = percent(cache.window.hit_ratio().unwrap_or(0.0));
        format!("the cache was filling: {} rose from {from} to {to} through the window, at a hit ratio of {ratio}", of.name())
    });
    [gone, evicted, filling].into_iter().flatten().collect()
}

/// A stock that rises all through the window while keys are missed. A cache that has every key may grow as it likes: then values do.
fn filling(cache: &CacheEvidence) -> Option<&Growth> {
    let misses = cache.window.misses.unwrap_or(0);
    let rises = |growth: &&Growth| {
        growth.share() > GROWTH_MAX && growth.rises as f64 >= RISES_MIN * growth.steps as f64
    };
    (misses > 0).then(|| cache.growth.iter().find(rises)).flatten()
}

fn values(facts: &Facts<'_>) -> Vec<String> {
    let (record, counts) = (facts.record, &facts.record.run.counts);
    let missing = counts.verification.count(ValueFault::Missing);
    let missing = (missing > 0)
        .then(|| format!("{missing} keys that were stored are missing: evicted, expired or lost"));
    let foreign = counts.values_foreign;
    let fix = match record.run.traces.is_empty() {
        true => "store the data set first (preload)",
        false => "store what the trace finds first (--replay --set trace-preload=true)",
    };
    let foreign = (foreign > 0)
        .then(|| format!("{foreign} values read were not written by brunt and were not checked -> {fix}"));
    let is_unchecked = record.plan.verify.is_some() && counts.verification.checked == 0;
    let skipped = record.run.traces.iter().filter_map(|trace| {
        let first = trace.lines.first_unreadable.as_ref()?;
        let (piece, file, line, why) = (record.piece_of(trace), &trace.file, first.line, &first.reason);
        let (count, all) = (trace.lines.unreadable, trace.lines.read);
        Some(format!("{count} of {all} {piece}s of {file} were skipped, first {piece} {line}: {why}"))
    });
    let unchecked = is_unchecked
        .then(|| "--verify checked no value -> have a get in the --mix, keys that are there (preload), or a longer run".to_owned());
    [missing, foreign, unchecked].into_iter().flatten().chain(skipped).collect()
}

fn host(facts: &Facts<'_>) -> Vec<String> {
    let host = &facts.record.run.host;
    let ClockEvidence { source, realtime_step_ns, .. } = &host.clock;
    let slow = source.as_ref().filter(|source| !is_fast_clocksource(source));
    let slow =
        slow.map(|source| format!("clock source {source} is slow or coarse to read -> tsc (brunt doctor)"));
    let stepped = (*realtime_step_ns > 0)
        .then(|| format!("the time of day was stepped by {}", time(*realtime_step_ns)));
    let sent = facts.sent_after_preload();
    let is_stream = !facts.record.plan.uses_transport(Transport::Udp);
    let resent = (is_stream && share(host.retransmits, sent) > LOSSES_MIN).then(|| {
        format!(
            "{} segments were sent again, {} of the requests",
            host.retransmits,
            percent(share(host.retransmits, sent))
        )
    });
    let connects = &facts.record.run.intervals.totals.connections;
    let connects =
        [Phase::Warmup, Phase::Measure, Phase::Drain].iter().any(|phase| connects[*phase as usize].begun > 0);
    // Other servers of this host count into the same number: it concerns a run that connects.
    let turned_away = host.listen_drops.filter(|drops| connects && *drops > 0);
    let turned_away =
        turned_away.map(|drops| format!("servers of this host turned away {drops} attempts to connect"));
    [slow, stepped, resent, turned_away].into_iter().flatten().collect()
}
