//! How long an agent may take for each phase of a plan before it counts as lost.
//!
//! Pure. A phase whose length follows from the plan has that length; in one that has none, an agent must get on: within the limit it
//! stores a key, opens a connection or ends a request. Invariant: an agent that carries out the plan meets every limit, however slow the
//! servers are.

use brunt_plan::plan::{Class, Load, OpenRate, Plan};
use std::time::Duration;

/// For a host that is busy, in every phase.
const SLACK: Duration = Duration::from_secs(4);
/// Time limit of name resolution: twice that of a resolver that asks two name servers in vain.
pub(crate) const LOOKUP_MAX: Duration = Duration::from_secs(40);
/// For how long a worker waits for a server that is down before it says so.
const SERVER_DOWN: Duration = Duration::from_secs(10);
/// Mean gaps between two requests of a worker, at most: a random gap is longer once in e^64 times.
const GAPS_MAX: f64 = 64.0;
/// Connections that a host opens per second at least, with handshakes of TLS. None is reported before all are open.
const CONNECTS_PER_SECOND: u64 = 100;
/// Bytes of a raw sample in a message, at most.
const SAMPLE_BYTES: u64 = 128;
/// Bytes per second in which results arrive at least.
const RESULT_RATE: u64 = 1 << 20;

/// The limits of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseLimits {
    /// From the assignment to the first progress, or until it is ready.
    pub preparation: Duration,
    /// From one progress to the next, or to the end of the phase.
    pub progress: Duration,
    /// From the start of the schedule until its result is there; `None` where the plan ends with its requests.
    pub run: Option<Duration>,
    /// From the order to stop until its result is there.
    pub stop: Duration,
}

impl PhaseLimits {
    /// Of the agents' part of a plan, which is divided among `agents`.
    pub(crate) fn of(plan: &Plan, agents: usize) -> Self {
        let [timeout, connect, drain] =
            [plan.timeout, plan.connect_timeout, plan.drain].map(|limit| Duration::from_nanos(limit.0));
        let result = Duration::from_secs(plan.samples_max.saturating_mul(SAMPLE_BYTES) / RESULT_RATE);
        let stop = drain.saturating_add(result).saturating_add(SLACK);
        let gaps = plan.classes.iter().map(|class| longest_gap(class, agents));
        let gap = gaps.chain([longest_preload_gap(plan)]).max().unwrap_or_default();
        let reply = timeout.max(connect).max(SERVER_DOWN);
        let progress = reply.saturating_add(gap).saturating_add(stop);
        let connections: u64 = plan.classes.iter().map(|class| u64::from(class.connections)).sum();
        let connecting = Duration::from_secs(connections / CONNECTS_PER_SECOND);
        let window = plan.stop.time.map(|time| Duration::from_nanos(time.0));
        let warmup = Duration::from_nanos(plan.warmup.longest().0);
        Self {
            preparation: LOOKUP_MAX.saturating_add(connecting).saturating_add(progress),
            progress,
            run: window.map(|window| warmup.saturating_add(window).saturating_add(stop)),
            stop,
        }
    }
}

/// The longest time in which an agent whose preload has a rate stores nothing: a worker spreads its keys of a data set over the whole
/// preload.
fn longest_preload_gap(plan: &Plan) -> Duration {
    let fewest = plan.data_sets().iter().map(|set| set.ids_preloaded() / u64::from(plan.threads)).min();
    let gap_ns = plan.preload_ns().unwrap_or_default() / fewest.unwrap_or(1).max(1) as f64;
    Duration::try_from_secs_f64(gap_ns / 1e9).unwrap_or(Duration::MAX)
}

/// The longest time in which an agent that works has nothing to do for a class.
fn longest_gap(class: &Class, agents: usize) -> Duration {
    let gaps = |per_second: f64| {
        Duration::try_from_secs_f64(GAPS_MAX * agents.max(1) as f64 / per_second).unwrap_or(Duration::MAX)
    };
    let of_load = match &class.load {
        Load::Closed { think } => Duration::from_nanos(think.0),
        Load::Open { rate: OpenRate::Constant(rate) | OpenRate::PerConnection(rate), .. } => {
            gaps(rate.as_f64())
        }
        Load::Open { rate: OpenRate::Recorded, .. } => Duration::MAX,
        Load::Open { rate: OpenRate::Profile(profile), .. } => {
            let last = profile.points.last().map_or(Duration::ZERO, |last| Duration::from_nanos(last.at.0));
            let rates = profile.points.iter().map(|point| point.rate.as_f64()).filter(|rate| *rate > 0.0);
            last.saturating_add(rates.map(gaps).max().unwrap_or_default())
        }
    };
    of_load.max(class.lifetime.connect_rate.map_or(Duration::ZERO, |rate| gaps(rate.as_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

    #[test]
    fn limits_follow_from_the_plan() {
        // (plan, seconds to the first progress, between two, of the run, after a stop)
        let table = [
            ("", 40 + 24, 24, Some(1 + 10 + 14), 14),
            ("connections = 1000", 10 + 40 + 24, 24, Some(1 + 10 + 14), 14),
            ("time = '5s'\nwarmup = '0s'\ndrain = '1s'", 40 + 15, 15, Some(5 + 5), 5),
            ("time = '1s'\nuntil = 'p99=2%,max=60s'\ndrain = '0s'", 40 + 14, 14, Some(1 + 60 + 4), 4),
            ("requests = 100\ndrain = '0s'\nthink = '1m'", 40 + 74, 74, None, 4),
            // 64 gaps of two agents, of one second each.
            ("requests = 100\ndrain = '0s'\nrate = 1", 40 + 142, 142, None, 4),
            ("requests = 100\ndrain = '0s'\nrate-profile = '0s=0,30s=64'", 40 + 46, 46, None, 4),
            // Ten keys for two workers at one per ten seconds.
            ("keys = 10\nthreads = 2\npreload-rate = 0.1\ndrain = '0s'", 40 + 34, 34, Some(1 + 10 + 4), 4),
            ("timeout = '30s'\ndrain = '0s'\nsamples-max = 81920", 40 + 44, 44, Some(1 + 10 + 14), 14),
        ];
        for (toml, preparation, progress, run, stop) in table {
            let host = Host::of(vec![0], 1);
            let plan = resolve(&PlanSpec::from_toml(toml).unwrap(), &host).unwrap();
            let seconds = Duration::from_secs;
            let (preparation, progress, stop) = (seconds(preparation), seconds(progress), seconds(stop));
            let expected = PhaseLimits { preparation, progress, run: run.map(seconds), stop };
            assert_eq!(PhaseLimits::of(&plan, 2), expected, "{toml}");
        }
    }
}
