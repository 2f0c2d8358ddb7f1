//! Checks of the host: had the workers the processors they needed, were the clocks sound, did packets get lost?
//!
//! Why a client was late, where LAG says that it was. A worker that lacked processor time is convicted only together with
//! LAG: time that was taken from it while it had nothing to do does no harm. One that could do nothing else any more
//! (CPU) is convicted when LAG calls for care; one that lost slices of its time (STEAL) when LAG itself convicts, for on a
//! host that is shared all of them do, and LAG bounds what it cost.

use super::{Evidence, lag};
use crate::check::{Check, CheckStatus, Limits};
use crate::host::{ClockEvidence, is_fast_clocksource};
use crate::number_text::{percent, rounded, share, time};
use crate::usage::WorkerUsage;
use brunt_plan::phase::Phase;

/// Share of the window in which a worker worked or was kept from it.
pub const CPU: Limits = Limits { caution: 0.80, not_trusted: 0.95 };
/// Share of the processors' time that others took: by the hypervisor, or from a worker that was ready to run.
pub const STEAL: Limits = Limits { caution: 0.005, not_trusted: 0.02 };
/// Stolen time is counted in ticks of 10 ms: up to two of them may be one event, told coarsely.
const STOLEN_MIN_NS: u64 = 20_000_000;
/// By how much CLOCK_MONOTONIC may run off. NTP steers by up to 500 ppm, and that much is 0.05 % of a latency: half of what
/// our buckets round by. Beyond it the clock is slewed hard.
const DRIFT_PPM: f64 = 500.0;
/// A server that may go anywhere meets the worker's processor by chance, on two processors every second time; one that is
/// bound to it always does. Three quarters of [`LOOKS_MIN`] looks or more are 2.2 standard deviations above one half, and
/// those of a run of a second, 50, are 3.5.
const SHARED: Limits = Limits { caution: 0.75, not_trusted: f64::INFINITY };
pub(super) const LOOKS_MIN: u64 = 20;
/// Packets that were lost, as a share of requests.
const LOSSES: Limits = Limits { caution: 0.0, not_trusted: 0.001 };

/// Convicts only where the lateness of an open loop is as bad as this. A closed loop that is late asks for less instead.
fn with_lag(status: CheckStatus, least: CheckStatus, evidence: &Evidence<'_>) -> CheckStatus {
    match status {
        CheckStatus::NotTrusted if lag::open_loop_status(evidence) < least => CheckStatus::Caution,
        status => status,
    }
}

/// How long a worker was ready to run and did not. Where the kernel keeps no account of it, what the control group's
/// quota took from all of us is the most that is known.
pub(super) fn denied_ns(worker: &WorkerUsage, evidence: &Evidence<'_>) -> u64 {
    let throttled_ns = evidence.run.host.throttled_ns.unwrap_or(0).min(worker.wall_ns);
    worker.run_delay_ns.unwrap_or(throttled_ns)
}

/// The worker for which this is most.
pub(super) fn worst<'a>(
    evidence: &'a Evidence<'_>,
    of: impl Fn(&WorkerUsage) -> u64,
) -> Option<(&'a WorkerUsage, f64)> {
    let workers = evidence.run.usage.workers.iter().filter(|worker| worker.wall_ns > 0);
    let with_share = workers.map(|worker| (worker, share(of(worker), worker.wall_ns)));
    with_share.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Had every worker the processor time it needed?
pub(super) fn cpu(evidence: &Evidence<'_>) -> Check {
    let denied = |worker: &WorkerUsage| denied_ns(worker, evidence);
    let Some((worker, value)) = worst(evidence, |worker| worker.busy_ns + denied(worker)) else {
        return Check::skipped("CPU", "the window was too short to observe the workers", CPU.caution);
    };
    let message = format!(
        "worker {} worked for {} of the window and was kept from its processor for {}",
        worker.worker,
        percent(share(worker.busy_ns, worker.wall_ns)),
        percent(share(denied(worker), worker.wall_ns)),
    );
    let throttled_ns = evidence.run.host.throttled_ns.filter(|ns| *ns > 0);
    let quota = throttled_ns.map(|ns| format!("the quota of its control group was used up for {}", time(ns)));
    let fix = "give the client processors of its own (--cpus, a larger cpu quota), or lower the rate";
    // A worker that is starved waits in between, and so does not come to 95 %: where LAG convicts, 80 % are the reason.
    let status = match (CPU.judge(value), lag::open_loop_status(evidence)) {
        (CheckStatus::Caution, CheckStatus::NotTrusted) => CheckStatus::NotTrusted,
        (status, _) => with_lag(status, CheckStatus::Caution, evidence),
    };
    Check::judged("CPU", status, message, fix, value, CPU.caution).with(quota)
}

/// One way in which processor time is taken away.
pub(super) struct StealSource {
    pub status: CheckStatus,
    pub value: f64,
    message: String,
    pub fix: &'static str,
}

/// Did others take processor time away? Of its two arms those are told that found something, the worse one first, and
/// its number is the one that counts; both where neither did.
pub(super) fn steal(evidence: &Evidence<'_>) -> Check {
    let mut arms: Vec<StealSource> = [stolen(evidence), run_delay(evidence)].into_iter().flatten().collect();
    // Of equals the first stays first.
    arms.sort_by(|one, other| other.status.cmp(&one.status).then(other.value.total_cmp(&one.value)));
    if arms.first().is_some_and(|worst| worst.status > CheckStatus::Ok) {
        arms.retain(|arm| arm.status > CheckStatus::Ok);
    }
    let Some(worst) = arms.first() else {
        return Check::skipped("STEAL", "the host does not say who took processor time", STEAL.caution);
    };
    let fix = match arms.as_slice() {
        [one] => one.fix,
        _ => {
            "use a host of one's own: what the hypervisor takes, no pinning (--cpus) and no quieter guest give back"
        }
    };
    let others = arms.iter().skip(1).map(|arm| arm.message.clone());
    Check::judged("STEAL", worst.status, worst.message.clone(), fix, worst.value, STEAL.caution).with(others)
}

/// What the hypervisor gave to other guests. A tick or two are not judged, and so count as nothing.
pub(super) fn stolen(evidence: &Evidence<'_>) -> Option<StealSource> {
    let (ns, share) = evidence.run.host.stolen_ns.zip(evidence.run.host.stolen_share())?;
    let value = if ns <= STOLEN_MIN_NS { 0.0 } else { share };
    let message = format!(
        "the hypervisor took {} of the time of {} processors (stolen time, /proc/stat)",
        percent(share),
        evidence.run.host.cpus
    );
    let fix = "nothing in this guest helps: use a host of one's own, or processors that are not shared";
    Some(StealSource { status: STEAL.judge(value), value, message, fix })
}

/// What other threads of this host took from the worst worker.
pub(super) fn run_delay(evidence: &Evidence<'_>) -> Option<StealSource> {
    let (worker, value) = worst(evidence, |worker| worker.run_delay_ns.unwrap_or(0))
        .filter(|(worker, _)| worker.run_delay_ns.is_some())?;
    let switches = worker.involuntary_switches as f64 / (worker.wall_ns as f64 / 1e9);
    let message = format!(
        "worker {} waited for a CPU for {} of the window (run delay, {} involuntary switches/s)",
        worker.worker,
        percent(value),
        rounded(switches),
    );
    let fix = "take away what else runs on these processors, or pin the workers to others (--cpus)";
    let status = with_lag(STEAL.judge(value), CheckStatus::NotTrusted, evidence);
    Some(StealSource { status, value, message, fix })
}

/// Were the clocks sound?
pub(super) fn clock(evidence: &Evidence<'_>) -> Check {
    let ClockEvidence { source, drift_ppm, realtime_step_ns, backwards } = &evidence.run.host.clock;
    if source.is_none() && drift_ppm.is_none() {
        return Check::skipped("CLOCK", "the host says nothing of its clocks", 0.0);
    }
    let mut found = Vec::new();
    if *backwards > 0 {
        found.push(format!("CLOCK_MONOTONIC went backwards {} times", *backwards));
    }
    if let Some(source) = source.as_ref().filter(|source| !is_fast_clocksource(source)) {
        found.push(format!("clock source {source} is slow or coarse to read"));
    }
    if let Some(ppm) = drift_ppm.filter(|ppm| ppm.abs() > DRIFT_PPM) {
        found.push(format!("CLOCK_MONOTONIC is slewed by {ppm:.0} ppm, and every latency with it"));
    }
    if *realtime_step_ns > 0 {
        found.push(format!("the time of day was stepped by {}", time(*realtime_step_ns)));
    }
    let status = match (*backwards, found.is_empty()) {
        (0, true) => CheckStatus::Ok,
        (0, false) => CheckStatus::Caution,
        _ => CheckStatus::NotTrusted,
    };
    let value = found.len() as f64;
    if found.is_empty() {
        let drift = drift_ppm.map_or("not known".to_owned(), |ppm| format!("{ppm:.1} ppm"));
        let source = source.as_deref().unwrap_or("not known");
        found.push(format!("clock source {source}, drift {drift}, no step"));
    }
    let message = found.remove(0);
    let fix = "use the clock source tsc (brunt doctor), and run again when the host's time has settled";
    Check::judged("CLOCK", status, message, fix, value, 0.0).with(found)
}

/// The worker that most often found a server on its processor, and in which share of its looks.
pub(super) fn most_shared<'a>(evidence: &'a Evidence<'_>) -> Option<(&'a WorkerUsage, f64)> {
    let looked = evidence.run.usage.workers.iter().filter(|worker| worker.colocation.looks >= LOOKS_MIN);
    let shares = looked.map(|worker| (worker, share(worker.colocation.shared, worker.colocation.looks)));
    shares.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Is a server on the same processor in more looks than by chance, this many of them left out in which it was?
pub(super) fn is_shared_beside(evidence: &Evidence<'_>, left_out: u64) -> bool {
    evidence.run.usage.workers.iter().any(|worker| {
        let looks = worker.colocation.looks.saturating_sub(left_out);
        let shared = worker.colocation.shared.saturating_sub(left_out);
        looks >= LOOKS_MIN && SHARED.judge(share(shared, looks)) > CheckStatus::Ok
    })
}

/// Does a server share a processor with a worker?
pub(super) fn colocation(evidence: &Evidence<'_>) -> Check {
    if evidence.is_by_unix_socket {
        let message = "a server behind a Unix socket is on this host, and the kernel does not say from which processor it \
                       sends";
        return Check::skipped("COLO", message, SHARED.caution);
    }
    let Some((worker, value)) = most_shared(evidence) else {
        return Check::skipped(
            "COLO",
            "no server was seen on this host, or not for long enough",
            SHARED.caution,
        );
    };
    let message = format!(
        "{} of {} times a server had last sent from the processor of worker {} ({})",
        worker.colocation.shared,
        worker.colocation.looks,
        worker.worker,
        percent(value)
    );
    let fix = "keep them apart: --cpus for the workers, taskset (or brunt serve --cpus) for the server";
    Check::judged("COLO", SHARED.judge(value), message, fix, value, SHARED.caution)
}

/// Did packets get lost, or attempts to connect?
pub(super) fn network(evidence: &Evidence<'_>) -> Check {
    if evidence.is_by_unix_socket {
        return Check::skipped("NET", "Unix sockets lose nothing: there is no network", LOSSES.caution);
    }
    if evidence.is_by_udp {
        let message = "UDP sends nothing again: what was lost is among the time-outs";
        return Check::skipped("NET", message, LOSSES.caution);
    }
    let of_schedule = evidence.books.iter().filter(|entry| entry.phase != Phase::Preload);
    let sent: u64 = of_schedule.map(|entry| entry.counts.requests.sent).sum();
    // Other servers of this host count into the same number: it concerns a run that connects.
    let turned_away = evidence.run.host.listen_drops.filter(|_| evidence.connects_in_schedule).unwrap_or(0);
    let retransmits = evidence.run.host.retransmits;
    let value = share(retransmits + turned_away, sent);
    let message = format!(
        "{} segments sent again, {} of {} requests",
        retransmits,
        percent(share(retransmits, sent)),
        sent
    );
    let turned_away = (turned_away > 0)
        .then(|| format!("{turned_away} attempts to connect turned away by servers of this host"));
    let fix = "see ip -s link and nstat -az for where packets are dropped, and give the server a longer listen queue";
    Check::judged("NET", LOSSES.judge(value), message, fix, value, LOSSES.caution).with(turned_away)
}
