//! What outages explain: requests that were never sent, answers that are missing, and numbers that changed, because a server answered no
//! request.
//!
//! Not a check of its own. The checks that miss those requests say so, instead of advice that suits a server which is there.

use super::cause::{Cause, CauseKind, OpenChecks};
use super::host::is_shared_beside;
use super::lateness::moves;
use super::{Evidence, SAMPLES_MIN, fault, lag};
use crate::measured_window::MeasuredWindow;
use crate::number_text::{share, time};
use crate::outage::Outage;
use crate::outage_span::{OutageKind, OutageKinds};
use crate::server::ServerCounts;
use crate::steady::{Series, Steadiness};
use crate::usage::WorkerUsage;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use std::collections::BTreeSet;
use std::ops::Range;

/// Servers that are named; the rest is counted.
const NAMED_MAX: usize = 3;
/// An outage of less than this share of the last half of the window explains nothing that is missing in it.
const LATE_SHARE_MIN: f64 = 0.01;

/// An outage of at most this share of the window is short: beside the others no one looks for it where no percentile shows it.
const SHORT_MAX: f64 = 0.01;
/// When an outage took at least this share of what failed or was not sent, it explains it.
const EXPLAINED: f64 = 0.9;
/// A worker that stood still for this share of a silence explains the silence.
const OWN_MIN: f64 = 0.5;
/// A worker that waited for a CPU for this share of the window explains why all of several servers are silent at once.
const STARVED_MIN: f64 = 0.5;
/// A connection sends a segment again at most this often.
const RESENT_NS: u64 = 200_000_000;
/// A look at where a server runs is taken so often.
const LOOK_NS: u64 = 20_000_000;

/// An outage that reached into what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredOutage {
    /// The server's name in the plan.
    pub server: String,
    /// From its start to its end, or to that of the run.
    pub length_ns: u64,
    /// Did the server answer again?
    pub is_over: bool,
    /// When it began, in nanoseconds on the run's clock, and when it ended.
    pub at: Range<u64>,
    /// From its start until the server answered as fast as before, as far as that lies in the measured window; on the run's clock.
    pub disturbed: Range<u64>,
    /// Kinds of trouble in it.
    pub kinds: OutageKinds,
    /// Requests to the server that failed in it.
    pub failed: u64,
    /// The share of all requests that were for its server.
    pub weight: f64,
}

impl MeasuredOutage {
    /// Those of a run by start. `workers` stood still at times: what was silent because of that is none.
    pub(crate) fn all(
        plan: &Plan,
        outages: &[Outage],
        counts: &[ServerCounts],
        window: &MeasuredWindow,
        workers: &[WorkerUsage],
    ) -> Vec<Self> {
        let requests = |counts: &ServerCounts| counts.answered + counts.failed + counts.unsent;
        let all: u64 = counts.iter().map(requests).sum();
        let of_outage = |outage: &Outage| {
            let index = usize::from(outage.server);
            let end_ns = outage.end_ns.unwrap_or(window.drained_ns).max(outage.start_ns);
            let recovered_ns = outage.recovered_ns.unwrap_or(end_ns).max(end_ns);
            let within = |ns: u64| ns.clamp(window.measure_ns, window.end_ns.max(window.measure_ns));
            Self {
                server: plan.server_name(index).unwrap_or_else(|| "the server".to_owned()),
                length_ns: end_ns - outage.start_ns,
                is_over: outage.end_ns.is_some(),
                at: outage.start_ns..end_ns,
                disturbed: within(outage.start_ns)..within(recovered_ns),
                kinds: outage.kinds,
                failed: outage.failed,
                weight: counts.get(index).map_or(1.0, |counts| share(requests(counts), all)),
            }
        };
        of_servers(outages, counts.len(), window, workers).map(of_outage).collect()
    }

    /// The time in which its effects are to be looked for: what was due in it is answered up to a batch later.
    pub(crate) const fn effects(&self, batch_ns: u64) -> Range<u64> {
        self.disturbed.start..self.disturbed.end + batch_ns
    }
}

/// Those that are one of so many servers' own: they reach into the measured window, and the client's host did not make them.
pub(crate) fn of_servers<'a>(
    outages: &'a [Outage],
    servers: usize,
    window: &MeasuredWindow,
    workers: &[WorkerUsage],
) -> impl Iterator<Item = &'a Outage> {
    let at =
        |outage: &Outage| outage.start_ns..outage.end_ns.unwrap_or(window.drained_ns).max(outage.start_ns);
    let is_measured =
        move |outage: &&Outage| at(outage).end > window.measure_ns && outage.start_ns < window.end_ns;
    let starved =
        |worker: &WorkerUsage| share(worker.run_delay_ns.unwrap_or(0), worker.wall_ns) >= STARVED_MIN;
    let is_starved = servers > 1 && workers.iter().any(starved);
    let is_silence = |outage: &Outage| outage.kinds == OutageKinds::NONE.with(OutageKind::Stalled);
    let silent_with = move |outage: &Outage| {
        let alike = outages.iter().filter(|other| is_silence(other) && is_most(&at(other), &at(outage)));
        alike.map(|other| other.server).collect::<BTreeSet<u16>>().len()
    };
    let stood = move |outage: &Outage| {
        let stop = |worker: &WorkerUsage| {
            let start_ns = window.measure_ns + worker.stalls.longest_at_ns;
            start_ns..start_ns + worker.stalls.longest_ns
        };
        workers.iter().any(|worker| is_most(&stop(worker), &at(outage)))
    };
    let is_hosts = move |outage: &Outage| {
        is_silence(outage) && (stood(outage) || is_starved && silent_with(outage) == servers)
    };
    outages.iter().filter(move |outage| is_measured(outage) && !is_hosts(outage))
}

/// Does this lie in most of a span of time?
fn is_most(this: &Range<u64>, span: &Range<u64>) -> bool {
    let common_ns = this.end.min(span.end).saturating_sub(this.start.max(span.start));
    common_ns > 0 && common_ns as f64 >= OWN_MIN * (span.end - span.start) as f64
}

/// How long any of them lasted; by start.
fn union_ns(outages: &[&MeasuredOutage]) -> u64 {
    let add = |(sum_ns, end_ns): (u64, u64), outage: &&MeasuredOutage| {
        let added_ns = outage.at.end.saturating_sub(end_ns.max(outage.at.start));
        (sum_ns + added_ns, end_ns.max(outage.at.end))
    };
    outages.iter().fold((0, 0), add).0
}

/// Did a server answer no request for a while, and what follows from that?
pub(super) fn cause(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let garbage = fault::is_garbage(evidence);
    // A server that answers with errors is there: ERR says with which.
    let is_other = |outage: &MeasuredOutage| {
        outage.kinds.are_errors_alone() || garbage && outage.kinds.contains(OutageKind::Malformed)
    };
    let is_own = |outage: &&MeasuredOutage| !is_other(outage);
    let outages: Vec<&MeasuredOutage> = evidence.outages.iter().filter(is_own).collect();
    let longest =
        outages.iter().max_by_key(|outage| (outage.length_ns, std::cmp::Reverse(outage.at.start)))?;
    let mut sentence = format!("outage of {} at {}", time(longest.length_ns), longest.server);
    if !longest.is_over {
        sentence += ", not over";
    }
    if outages.len() > 1 {
        let all = time(union_ns(&outages));
        sentence += &format!(", the longest of {} ({all} in all)", outages.len());
    }
    let is_short = outages.iter().all(|outage| outage.is_over)
        && longest.length_ns as f64 <= SHORT_MAX * evidence.window_ns as f64;
    let effects = Effects { evidence, outages };
    let is_seen = !is_short || effects.reach(Quantile::P999);
    let kind = if is_seen { CauseKind::Outage } else { CauseKind::ShortOutage };
    let follows = open.those(&[
        ("SAMPLES", effects.left_too_few()),
        ("SHORT", effects.outages.iter().any(|outage| !outage.is_over)),
        ("RATE", is_unsent_of_it(evidence)),
        ("SAT", is_shortfall_of_it(evidence)),
        ("LAG", lag::worst_found(evidence).is_some_and(|worst| effects.reach(worst.quantile))),
        ("COLO", effects.kept_the_processor()),
        ("NET", effects.sent_again()),
        ("CI-THIN", effects.reach(Quantile::P99)),
        ("UNTIL", effects.reach(Quantile::P99)),
        ("WARM", evidence.steady.beginning.as_ref().is_some_and(|held| held.trouble_ns.is_some())),
        ("DRIFT", effects.moved("DRIFT")),
        ("SHIFT", effects.moved("SHIFT")),
        ("ERR", effects.took_the_failures()),
        ("FAULT", effects.broke_the_connections()),
        ("SERVER", effects.restarted()),
        ("CACHE", effects.restarted()),
    ]);
    let fix = "see what the server did then (its log, its host)";
    let cause = Cause { kind, sentence, fix: fix.into(), checks: Vec::new(), follows, sets_load: false };
    if is_seen { Some(cause) } else { cause.explaining() }
}

/// What outages did to the numbers.
struct Effects<'a> {
    evidence: &'a Evidence<'a>,
    outages: Vec<&'a MeasuredOutage>,
}

impl Effects<'_> {
    /// The share of the window's requests that fell due in an outage or while its server caught up, were all as frequent at all times.
    fn disturbed(&self) -> f64 {
        let window_ns = self.evidence.window_ns.max(1) as f64;
        let of = |outage: &&MeasuredOutage| {
            outage.weight * (outage.disturbed.end - outage.disturbed.start) as f64 / window_ns
        };
        self.outages.iter().map(of).sum::<f64>().min(1.0)
    }

    /// Does this percentile lie among the requests that an outage held up?
    fn reach(&self, quantile: Quantile) -> bool {
        moves(self.disturbed(), quantile)
    }

    /// Would there have been enough requests without them?
    fn left_too_few(&self) -> bool {
        let counted = (self.evidence.completed + self.evidence.unacknowledged) as f64;
        counted / (1.0 - self.disturbed()).max(f64::EPSILON) >= SAMPLES_MIN as f64
    }

    /// A server that stands still was last seen where it stood.
    fn kept_the_processor(&self) -> bool {
        let of =
            |outage: &&MeasuredOutage| outage.weight * (outage.disturbed.end - outage.disturbed.start) as f64;
        let looks = self.outages.iter().map(of).sum::<f64>() / LOOK_NS as f64;
        !is_shared_beside(self.evidence, looks.ceil() as u64)
    }

    /// What a server does not acknowledge is sent again.
    fn sent_again(&self) -> bool {
        let down_ns: u64 = self.outages.iter().map(|outage| outage.length_ns).sum();
        let most = self.evidence.connections.established.saturating_mul(down_ns / RESENT_NS + 1);
        let host = &self.evidence.run.host;
        host.retransmits <= most && host.listen_drops.unwrap_or(0) <= most
    }

    /// Is nothing found by this check without their time, or did the level change with them?
    fn moved(&self, check: &str) -> bool {
        let fires = |steady: &Steadiness, series: Series| steady.fires(check, series);
        let all = Series::ALL.into_iter().filter(|series| fires(&self.evidence.steady, *series));
        let beside = &self.evidence.steady_beside;
        let mut open = all.filter(|series| fires(beside, *series) && !self.changed_level(*series));
        open.next().is_none()
    }

    /// A server that comes back with an empty cache answers otherwise than before.
    fn changed_level(&self, series: Series) -> bool {
        let Some(shift) = self.evidence.steady.shift_of(series).filter(|shift| shift.fires) else {
            return false;
        };
        let at_ns = self.evidence.measure_ns + shift.at_ns;
        let batch_ns = self.evidence.batch_ns();
        let is_near = |outage: &&MeasuredOutage| {
            let effects = outage.effects(batch_ns);
            (effects.start.saturating_sub(batch_ns)..=effects.end).contains(&at_ns)
        };
        self.outages.iter().any(is_near)
    }

    fn took_the_failures(&self) -> bool {
        let Evidence { errors, timeouts, lost, abandoned, .. } = *self.evidence;
        let taken = abandoned + self.outages.iter().map(|outage| outage.failed).sum::<u64>();
        taken as f64 >= EXPLAINED * (errors + timeouts + lost + abandoned) as f64
    }

    /// Every fault came in an outage that has it among its kinds.
    fn broke_the_connections(&self) -> bool {
        self.evidence.faults.rows().all(|fault| {
            let is_of = |outage: &&MeasuredOutage| {
                let near = outage.at.start.saturating_sub(RESENT_NS)..=outage.at.end + RESENT_NS;
                outage.kinds.contains(fault.kind.into()) && near.contains(&fault.first_ns)
            };
            self.outages.iter().any(is_of)
        })
    }

    /// A server that was started again has new counters and, of a cache, nothing in it.
    fn restarted(&self) -> bool {
        let counter_resets = &self.evidence.servers.counter_resets;
        let is_gone = |name: &str| self.outages.iter().any(|outage| outage.server == name);
        !counter_resets.is_empty() && counter_resets.iter().all(|(name, _)| is_gone(name))
    }
}

/// Were nearly all of the requests that were never sent given up because their server was gone?
pub(super) fn is_unsent_of_it(evidence: &Evidence<'_>) -> bool {
    evidence.open_loop.is_some_and(|open| open.abandoned as f64 >= EXPLAINED * open.unsent as f64)
}

/// Was a server gone in the last half of the window for long enough to be why answers are missing in it?
fn is_shortfall_of_it(evidence: &Evidence<'_>) -> bool {
    evidence.last_half.is_some_and(|half| !gone_late(&evidence.down_servers, half.seconds).is_empty())
}

/// A server that was down for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownServer {
    /// As the plan has it.
    pub name: String,
    /// For how long, from the start of the schedule to the end of the drain.
    pub down_ns: u64,
    /// How much of that lies in the last half of the window.
    pub late_ns: u64,
    /// Requests to it that were given up before they were sent.
    pub abandoned: u64,
}

impl DownServer {
    /// Those of a run, in the order of the plan.
    pub(crate) fn all(
        plan: &Plan,
        outages: &[Outage],
        counts: &[ServerCounts],
        window: &MeasuredWindow,
    ) -> Vec<Self> {
        let half_ns = window.measure_ns + window.duration_ns() / 2;
        let of_server = |(index, counts): (usize, &ServerCounts)| {
            let own = outages.iter().filter(|outage| usize::from(outage.server) == index);
            let within = |span: Range<u64>| -> u64 {
                own.clone().map(|outage| overlap_ns(outage, &span, window.drained_ns)).sum()
            };
            Self {
                name: plan.server_name(index).unwrap_or_else(|| "the server".to_owned()),
                down_ns: within(window.start_ns..window.drained_ns),
                late_ns: within(half_ns..window.end_ns),
                abandoned: counts.abandoned,
            }
        };
        let all = counts.iter().enumerate().map(of_server);
        all.filter(|server| server.down_ns > 0).collect()
    }
}

/// How much of an outage lies in a span of time; one that was not over ended with the run.
fn overlap_ns(outage: &Outage, span: &Range<u64>, drained_ns: u64) -> u64 {
    let end_ns = outage.end_ns.unwrap_or(drained_ns).min(span.end);
    end_ns.saturating_sub(outage.start_ns.max(span.start))
}

/// Which servers' requests were given up before they were sent, and for how long each server was gone; empty where none was.
pub(super) fn unsent_for(servers: &[DownServer]) -> String {
    let missed: Vec<&DownServer> = servers.iter().filter(|server| server.abandoned > 0).collect();
    told(&missed, |server| format!("{} was down for {}", server.name, time(server.down_ns)))
}

/// Which servers were gone in the last half of the window, which lasted `half_seconds`; empty where none of them was.
pub(super) fn gone_late(servers: &[DownServer], half_seconds: f64) -> String {
    let least_ns = LATE_SHARE_MIN * half_seconds * 1e9;
    let late: Vec<&DownServer> =
        servers.iter().filter(|server| server.late_ns > 0 && server.late_ns as f64 >= least_ns).collect();
    told(&late, |server| format!("{} was down for {} of it", server.name, time(server.late_ns)))
}

fn told(servers: &[&DownServer], say: impl Fn(&DownServer) -> String) -> String {
    let mut parts: Vec<String> = servers.iter().take(NAMED_MAX).map(|server| say(server)).collect();
    if servers.len() > NAMED_MAX {
        parts.push(format!("{} other servers were down, too", servers.len() - NAMED_MAX));
    }
    parts.join(", ")
}
