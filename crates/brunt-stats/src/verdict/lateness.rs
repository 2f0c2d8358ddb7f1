//! Why the client was late: a worker without time left, a processor that the server or others had, a stop, or wake-ups.
//!
//! Not how late it was (that is LAG's). Invariant: more threads are advised only to a worker that is busy, and only where a processor is
//! free for them.

use super::cause::{Cause, CauseKind, OpenChecks};
use super::host::{CPU, LOOKS_MIN, STEAL, denied_ns, run_delay, stolen, worst};
use super::{Evidence, lag};
use crate::check::CheckStatus;
use crate::latency::ClientError;
use crate::number_text::{percent, share, significant, time};
use crate::usage::{BUSY, StallCounts, WorkerUsage};
use brunt_plan::plan::Wait;
use brunt_plan::quantile::Quantile;

/// A disturbance moves a percentile when it takes nearly as much of the time as of all requests lie above that: behind it others wait.
const MOVES: f64 = 0.8;
/// What took at least this part of something explains it.
const MOST: f64 = 0.5;
/// In a closed loop whose worker lacked its processor for more than this share of the window it is not known how long replies lay unread,
/// and the load is what the host left of it.
const SETS_LOAD: f64 = 0.05;
/// Of a delay that hits every request, this part of the client error explains it.
const PART_MIN: f64 = 0.25;
/// A reply wakes a worker, and so may the timer before it: a client error of up to this number of wake-ups is theirs.
const WAKE_UPS_MAX: f64 = 4.0;
/// An error of more than this number is more than a wake-up.
const WAKE_UP_ONE: f64 = 2.0;
/// A thread wants this much of a processor to be free.
const FREE_MIN: f64 = 0.5;
/// A worker that lacked its processor for this share of the window says that others had the processors.
const DENIED_MIN: f64 = 0.25;
/// No scheduler keeps a worker from its processor for so long at a time that this would be by its delays.
const LONG_STOP_NS: u64 = 100_000_000;
/// Where a worker lacked its processor for this share of the window, requests that were never sent are no surprise.
const UNSENT_MIN: f64 = 0.05;

const SHARED_FIX: &str =
    "put them on different processors: --cpus for the client, taskset (brunt serve: --cpus) for the server";
const NEIGHBOUR_FIX: &str = "stop what else runs on these processors, or pin the workers to others (--cpus)";

/// Is a backlog the client's? It is that of whichever had less time left: the worker, which worked or waited for a CPU, or the server's
/// thread. A worker that idled for a fifth of the window waited for replies then, whatever the server's processor did. Of a server that does
/// not report its processor time, a worker needs [`BUSY`] to be ahead. A server that hardly worked, beside a worker that lacked its processor,
/// had no time either.
pub(super) fn is_limit(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> bool {
    let servers = server_busy(evidence).unwrap_or(BUSY).max(CPU.caution);
    let denied = worst(evidence, |worker| denied_ns(worker, evidence)).map_or(0.0, |(_, denied)| denied);
    let is_hosts = has_time(evidence) && denied >= DENIED_MIN && (open.has("COLO") || open.has("STEAL"));
    open.has("SAT") && (is_hosts || open.get("CPU").is_some_and(|check| check.value >= servers))
}

/// Did the server report that it worked for less than half of the window?
pub(super) fn has_time(evidence: &Evidence<'_>) -> bool {
    server_busy(evidence).is_some_and(|busy| busy < MOST)
}

/// For which fraction of the window the busiest server worked: a thread of it, or its part of this host's CPUs where that is more.
pub(super) fn server_busy(evidence: &Evidence<'_>) -> Option<f64> {
    let span = evidence.servers.cache.as_ref()?.window;
    let wall_ns = span.end_ns.checked_sub(span.start_ns).filter(|ns| *ns > 0)?;
    let cpus = evidence.run.host.cpus.max(1);
    let of_host = span.cpu_ns.filter(|_| is_server_here(evidence)).unwrap_or(0) / cpus;
    // Snapshots are not taken at the very instants that the counters stand for.
    Some(share(span.thread_ns?.max(of_host), wall_ns).min(1.0))
}

/// Does a disturbance of this share of the window move this percentile?
pub(super) fn moves(disturbed: f64, quantile: Quantile) -> bool {
    disturbed >= MOVES * quantile.share_above()
}

/// The worker that worked most, and for which share of the window.
fn busiest<'a>(evidence: &'a Evidence<'_>) -> Option<(&'a WorkerUsage, f64)> {
    worst(evidence, |worker| worker.busy_ns)
}

fn is_busy(evidence: &Evidence<'_>) -> bool {
    busiest(evidence).is_some_and(|(_, busy)| busy > CPU.caution)
}

/// Is a processor left for another thread?
fn has_free_processor(evidence: &Evidence<'_>) -> bool {
    let host = &evidence.run.host;
    let workers = evidence.run.usage.workers.len() as u64;
    let idle = host.busy_ns.filter(|_| host.wall_ns > 0).map(|busy_ns| {
        host.cpus as f64 - (busy_ns + host.stolen_ns.unwrap_or(0)) as f64 / host.wall_ns as f64
    });
    let taken = workers + u64::from(is_server_here(evidence));
    host.cpus > workers && idle.map_or(host.cpus > taken, |idle| idle >= FREE_MIN)
}

/// May a server of this host run on the workers' processors? One that was often looked for there and never found does not.
fn is_server_here(evidence: &Evidence<'_>) -> bool {
    let workers = &evidence.run.usage.workers;
    let sum = |of: fn(&WorkerUsage) -> u64| workers.iter().map(of).sum::<u64>();
    let (looks, found) = (sum(|worker| worker.colocation.looks), sum(|worker| worker.colocation.shared));
    let is_elsewhere = looks >= LOOKS_MIN && found == 0;
    evidence.is_by_unix_socket || evidence.run.host.listen_drops.is_some() && !is_elsewhere
}

/// Time of the workers' CPUs that neither brunt nor a server used; `None` where that cannot be told apart.
fn others_ns(evidence: &Evidence<'_>) -> Option<u64> {
    let usage = &evidence.run.usage;
    let of_servers = || evidence.servers.cache.as_ref()?.window.cpu_ns;
    let servers_ns = if is_server_here(evidence) { of_servers()? } else { 0 };
    let ours_ns = usage.cpu_user_ns + usage.cpu_system_ns + servers_ns;
    evidence.run.host.busy_ns.filter(|_| !evidence.is_fleet).map(|busy_ns| busy_ns.saturating_sub(ours_ns))
}

fn wake_up_ns(evidence: &Evidence<'_>) -> f64 {
    evidence.run.wake_up_ns(evidence.open_loop.is_some()) as f64
}

/// Did a closed loop reach the load that this left?
fn sets_load(evidence: &Evidence<'_>, delayed: f64) -> bool {
    evidence.open_loop.is_none() && delayed > SETS_LOAD
}

/// What follows where workers lacked their processors for this share of the window; `lag`: LAG does.
fn of_delay(evidence: &Evidence<'_>, open: &OpenChecks<'_>, delayed: f64, lag: bool) -> Vec<&'static str> {
    let is_limit = is_limit(evidence, open);
    let stalls = StallCounts::of_all(&evidence.run.usage.workers);
    let delayed_ns: u64 =
        evidence.run.usage.workers.iter().map(|worker| denied_ns(worker, evidence)).sum::<u64>()
            + evidence.run.host.stolen_ns.unwrap_or(0);
    let is_thin = moves(delayed, Quantile::P99);
    open.those(&[
        ("RATE", is_limit || delayed >= UNSENT_MIN),
        ("SAT", is_limit),
        ("LAG", lag || is_limit),
        ("STALL", delayed_ns as f64 >= MOST * stalls.total_ns as f64),
        ("CPU", !is_busy(evidence)),
        ("CI-THIN", is_thin),
        ("UNTIL", is_thin || lag),
    ])
}

/// More workers than processors: they take them from each other.
pub(super) fn too_many_threads(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let (workers, cpus) = (evidence.run.usage.workers.len() as u64, evidence.run.host.cpus);
    let (worker, delayed) = worst(evidence, |worker| worker.run_delay_ns.unwrap_or(0))?;
    // A worker waits for another only while that one works.
    let others_ns: u64 =
        evidence.run.usage.workers.iter().map(|worker| worker.busy_ns).sum::<u64>() - worker.busy_ns;
    let is_ours = others_ns as f64 >= MOST * worker.run_delay_ns.unwrap_or(0) as f64;
    if evidence.is_fleet || cpus == 0 || workers <= cpus || delayed <= STEAL.caution || !is_ours {
        return None;
    }
    let lag = lag::worst_found(evidence).is_some_and(|worst| moves(delayed, worst.quantile));
    let (word, number) =
        if cpus == 1 { ("processor", "one".to_owned()) } else { ("processors", cpus.to_string()) };
    let cause = Cause {
        kind: CauseKind::TooManyThreads,
        sentence: format!(
            "{} workers on {number} {word}: worker {} waited for one for {} of the window",
            workers,
            worker.worker,
            percent(delayed)
        ),
        fix: "use no more --threads than there are processors".into(),
        checks: open.those(&[("STEAL", stolen(evidence).is_none_or(|arm| arm.status <= CheckStatus::Ok))]),
        follows: of_delay(evidence, open, delayed, lag),
        sets_load: sets_load(evidence, delayed),
    };
    cause.explaining()
}

/// A worker that could hardly do more.
pub(super) fn busy_client(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let (worker, busy) = busiest(evidence).filter(|_| is_busy(evidence))?;
    let is_limit = is_limit(evidence, open);
    let fix = match has_free_processor(evidence) {
        true => "processors are free: use more --threads, or offer less (--rate, --connections, --depth)",
        false => {
            "no processor is free for another thread: offer less (--rate, --connections, --depth), or use a larger or a second client \
             host"
        }
    };
    let mut sentence =
        format!("busy client: worker {} worked for {} of the window", worker.worker, percent(busy));
    if let Some(servers) = server_busy(evidence).filter(|_| is_limit) {
        sentence += &format!(", the server for {}", percent(servers));
    }
    let cause = Cause {
        kind: CauseKind::BusyClient,
        sentence,
        fix: fix.into(),
        checks: open.those(&[("CPU", true)]),
        follows: open.those(&[
            ("RATE", is_limit || open.has("LAG")),
            ("SAT", is_limit),
            ("LAG", true),
            ("HEADROOM", true),
            ("UNTIL", open.has("LAG")),
        ]),
        sets_load: false,
    };
    // It says more than CPU does, whatever follows.
    (!cause.checks.is_empty() || !cause.follows.is_empty()).then_some(cause)
}

/// Client and server want the same processor: the socket says so, or time was lost that no other process had.
pub(super) fn shared_processor(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let delay = run_delay(evidence);
    let (worker, delayed) = worst(evidence, |worker| worker.run_delay_ns.unwrap_or(0))?;
    let is_seen = open.has("COLO");
    let is_servers = delay.as_ref().is_some_and(|arm| arm.value > STEAL.caution)
        && is_server_here(evidence)
        && others_ns(evidence).is_some_and(|ns| (ns as f64) < MOST * denied_ns(worker, evidence) as f64);
    if !is_seen && !is_servers {
        return None;
    }
    let of_request = |worst: &ClientError| {
        let requests = evidence.sent as f64 / evidence.run.usage.workers.len() as f64;
        denied_ns(worker, evidence) as f64 >= PART_MIN * worst.error_ns as f64 * requests.max(1.0)
    };
    let lag = lag::worst_found(evidence).is_some_and(|worst| {
        is_seen || delay.is_none() || moves(delayed, worst.quantile) || of_request(worst)
    });
    let cpus = evidence.run.host.cpus;
    let sentence = match is_seen.then(|| super::host::most_shared(evidence)).flatten() {
        Some((worker, looks)) => format!(
            "client and server on one processor, that of worker {}, in {} of {} samples",
            worker.worker,
            percent(looks),
            worker.colocation.looks
        ),
        None if cpus == 1 => {
            format!(
                "client and server on one processor: worker {} waited for it for {} of the window",
                worker.worker,
                percent(delayed)
            )
        }
        None => format!(
            "client and server share {} processors: worker {} waited for one for {} of the window",
            cpus,
            worker.worker,
            percent(delayed)
        ),
    };
    // Of the two arms of STEAL this is the one that its message begins with.
    let by_guests = stolen(evidence).filter(|arm| arm.status > CheckStatus::Ok);
    let is_delay_most =
        by_guests.is_none_or(|arm| delay.as_ref().is_some_and(|delay| delay.value > arm.value));
    // Where no other process is known to have had it, the server had the time that the worker lacked.
    let is_steal = is_delay_most && (is_seen || is_servers || others_ns(evidence).is_none());
    let cause = Cause {
        kind: CauseKind::SharedProcessor,
        sentence,
        fix: SHARED_FIX.into(),
        checks: open.those(&[("COLO", true), ("STEAL", is_steal)]),
        follows: of_delay(evidence, open, delayed, lag),
        sets_load: sets_load(evidence, delayed),
    };
    cause.explaining()
}

/// Others had the processors: the hypervisor's other guests, or other threads of this host.
pub(super) fn neighbour(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let found = open.has("STEAL");
    let by_guests = stolen(evidence).filter(|arm| found && arm.status > CheckStatus::Ok);
    let (worker, delayed) = worst(evidence, |worker| denied_ns(worker, evidence))?;
    let is_delayed = delayed > STEAL.caution;
    let taken = by_guests.as_ref().map_or(0.0, |arm| arm.value).max(delayed);
    let late = lag::worst_found(evidence).filter(|worst| moves(taken, worst.quantile));
    // How late sleeps end is measured before the schedule: beside others that lasts as long as they keep the CPU.
    let is_more_than_waking = late
        .is_some_and(|worst| delayed > MOST || worst.error_ns as f64 > WAKE_UP_ONE * wake_up_ns(evidence));
    if !found && !is_more_than_waking {
        return None;
    }
    let throttled_ns = evidence.run.host.throttled_ns.unwrap_or(0);
    let is_quota = is_delayed && throttled_ns as f64 >= MOST * denied_ns(worker, evidence) as f64;
    let kind = if is_quota { CauseKind::CpuQuota } else { CauseKind::BusyNeighbour };
    let (sentence, fix) = match by_guests {
        _ if is_quota => {
            let sentence = format!(
                "cpu quota: that of the client's control group was used up for {}",
                time(throttled_ns)
            );
            (
                sentence,
                "give its control group a larger cpu quota, or offer less (--rate, --connections, --depth)",
            )
        }
        Some(arm) if arm.value >= delayed || !is_delayed => {
            let cpus = evidence.run.host.cpus;
            (
                format!(
                    "busy neighbour: the hypervisor gave {} of {cpus} processors to others",
                    percent(arm.value)
                ),
                arm.fix,
            )
        }
        _ => {
            let name = if is_delayed { "busy neighbour" } else { "preemption" };
            let mut sentence = format!(
                "{name}: worker {} waited for its processor for {} of the window",
                worker.worker,
                percent(delayed)
            );
            let wall_ns = evidence.run.host.wall_ns;
            if let Some(others) = others_ns(evidence).filter(|_| wall_ns > 0 && is_delayed) {
                sentence +=
                    &format!(", others used {} processors", significant(others as f64 / wall_ns as f64));
            }
            (sentence, NEIGHBOUR_FIX)
        }
    };
    let sets_load = sets_load(evidence, taken);
    let follows = of_delay(evidence, open, taken, is_more_than_waking || sets_load);
    let checks = open.those(&[("STEAL", true)]);
    Cause { kind, sentence, fix: fix.into(), checks, follows, sets_load }.explaining()
}

/// The client was stopped for longer than what others took of its time explains. In a closed loop that explains nothing of it: the client
/// sent nothing meanwhile, and no percentile shows that. In an open loop the stop reaches down to every percentile that LAG objects to, or it
/// took more of the window than others did.
pub(super) fn long_stop(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let check = open.get("STALL")?;
    let workers = &evidence.run.usage.workers;
    let (worker, stopped) = worst(evidence, |worker| worker.stalls.longest_stop_ns())?;
    let is_open = evidence.open_loop.is_some();
    let late = lag::found_between(evidence).filter(|_| is_open);
    let taken = worst(evidence, |worker| denied_ns(worker, evidence))
        .map_or(0.0, |(_, delayed)| delayed)
        .max(stolen(evidence).map_or(0.0, |arm| arm.value));
    let is_most = late.is_none_or(|(lowest, _)| moves(stopped, lowest) || stopped > taken);
    if worker.stalls.longest_stop_ns() < LONG_STOP_NS || !is_most {
        return None;
    }
    let is_late = late.is_some_and(|(_, highest)| moves(stopped, highest));
    let is_thin = is_open && moves(stopped, Quantile::P99);
    Some(Cause {
        kind: CauseKind::ClientStop,
        sentence: stop_sentence(&worker.stalls, workers),
        fix: check.fix.clone(),
        checks: vec![check.id],
        follows: open.those(&[
            ("RATE", is_open && stopped >= UNSENT_MIN),
            ("LAG", is_late),
            ("CI-THIN", is_thin),
            ("UNTIL", is_thin || is_late),
        ]),
        sets_load: !is_open,
    })
}

fn stop_sentence(longest: &StallCounts, workers: &[WorkerUsage]) -> String {
    let all = StallCounts::of_all(workers);
    let more = match all.count {
        1 => String::new(),
        times => format!(", the longest of {} ({} in all)", times, time(all.total_ns)),
    };
    let (longest, at) = (time(longest.longest_ns), time(longest.longest_at_ns));
    format!("the client was stopped for {longest} at +{at}{more}")
}

/// The client stood still, and nothing says who had its processor.
pub(super) fn stop(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let check = open.get("STALL")?;
    let workers = &evidence.run.usage.workers;
    let (longest, all) = (StallCounts::longest_of(workers)?, StallCounts::of_all(workers));
    let stood = share(all.total_ns, workers.iter().map(|worker| worker.wall_ns).sum());
    let late = lag::worst_found(evidence).is_some_and(|worst| moves(stood, worst.quantile));
    let is_thin = moves(stood, Quantile::P99);
    let cause = Cause {
        kind: CauseKind::ClientStop,
        sentence: stop_sentence(&longest.stalls, workers),
        fix: check.fix.clone(),
        checks: vec![check.id],
        follows: open.those(&[("LAG", late), ("CI-THIN", is_thin), ("UNTIL", is_thin || late)]),
        sets_load: false,
    };
    cause.explaining()
}

/// A worker with time to spare sleeps until something comes, and wakes late.
pub(super) fn wake_ups(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let check = open.get("LAG")?;
    let (worker, busy) = busiest(evidence)?;
    let wake_up_ns = wake_up_ns(evidence);
    let error_ns = lag::worst_found(evidence)?.error_ns as f64;
    if is_busy(evidence) || wake_up_ns == 0.0 || error_ns > WAKE_UPS_MAX * wake_up_ns {
        return None;
    }
    let is_open = evidence.open_loop.is_some();
    let sleeps = evidence.run.usage.wait == Wait::Sleep.name();
    let fix = match has_free_processor(evidence) {
        true if is_open => "a worker that does not sleep need not be woken: --wait spin",
        true if sleeps => "let workers poll where replies are expected: --wait hybrid",
        _ if !is_open => {
            "use an idle client host, with a processor free beside those of the workers: there --wait hybrid polls for replies"
        }
        _ if evidence.run.usage.workers.len() > 1 => {
            "use fewer --threads, so that --wait spin has a processor for each, or a client host of its own"
        }
        _ => "use a client host of its own: no processor is free here for --wait spin",
    };
    Some(Cause {
        kind: CauseKind::WakeUps,
        sentence: format!(
            "wake-ups: {}, worker {} was busy for {} only, and a sleep ends up to {} late here",
            check.message,
            worker.worker,
            percent(busy),
            time(wake_up_ns as u64),
        ),
        fix: fix.into(),
        checks: vec![check.id],
        follows: open.those(&[("UNTIL", true)]),
        sets_load: false,
    })
}
