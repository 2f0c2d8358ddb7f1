//! The part of a run that this host carries out without a controller (`--rank R --of N --start-at TIME`).
//!
//! Not an agent: nothing is connected to but the servers, and other hosts are known by their number alone. Invariant: it is the part
//! that the agent of this rank would have of a plan with N agents.

use crate::cli::ShareFlags;
use crate::exit::Failure;
use crate::host;
use brunt_engine::coordinator::LocalPart;
use brunt_engine::process::clock_error_ns;
use brunt_fleet::rank::Rank;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::fleet::PlanSplit;
use brunt_plan::shard::share;
use brunt_plan::spec::RunSpec;
use brunt_plan::units::Count;
use brunt_plan::warmup::Warmup;
use brunt_report::instant;
use brunt_stats::usage::AgentRecord;
use std::ops::Range;

/// A start lies at most this far ahead.
const AHEAD_MAX_NS: u64 = 24 * 3_600_000_000_000;

/// Which part, and when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostShare {
    rank: Rank,
    /// Nanoseconds since 1970 by this host's clock.
    pub start_unix_ns: u64,
}

impl HostShare {
    /// What the flags say of a plan, which then has so many agents, and by default a worker on each.
    pub(crate) fn of(flags: &ShareFlags, run: &mut RunSpec) -> Result<Option<Self>, Failure> {
        let (Some(index), Some(of), Some(start)) = (flags.rank, flags.of, &flags.start_at) else {
            return Ok(None);
        };
        let rank = Rank::new(index, of, 0).map_err(|why| Failure::usage(format!("--rank, --of: {why}")))?;
        let now_ns = brunt_engine::unix_ns();
        let is_ahead = |start_ns: &u64| (now_ns..now_ns + AHEAD_MAX_NS).contains(start_ns);
        let start_unix_ns = instant::parse(start).filter(is_ahead).ok_or_else(|| {
            Failure::usage(format!(
                "invalid value '{start}' for --start-at: expected an instant within a day, such as 2027-01-31T12:00:00Z or 1801396800"
            ))
        })?;
        let is_other = run.fleet.is_some_and(|fleet| fleet.0 != u64::from(of));
        if is_other || run.agent.is_some() {
            return Err(Failure::usage(format!("--of {of}: the plan is for other agents")));
        }
        run.fleet = Some(Count(of.into()));
        run.threads.get_or_insert(Count(of.into()));
        Ok(Some(Self { rank, start_unix_ns }))
    }

    /// The whole plan, as it was resolved.
    ///
    /// # Errors
    /// It is none for agents, or takes more than each of its hosts knows alone.
    pub(crate) fn checked(resolved: Result<Plan, Failure>) -> Result<Plan, Failure> {
        let of_rank =
            |failure: Failure| Failure::usage(failure.error.to_string().replace("--fleet", "--rank"));
        let plan = resolved.map_err(of_rank)?;
        let refused = [
            (
                PlanSplit::of(&plan, 1).is_ok_and(|split| split.controller.is_some()),
                "a plan without --measure-... and runs-on = 'controller'",
            ),
            (plan.stop.until.is_some(), "--time or --requests instead of --until"),
            (plan.warmup == Warmup::Auto, "--warmup DURATION instead of auto"),
        ];
        match refused.into_iter().find_map(|(is_refused, accepted)| is_refused.then_some(accepted)) {
            Some(accepted) => Err(Failure::usage(format!("--rank requires {accepted}"))),
            None => Ok(plan),
        }
    }

    /// The workers of the whole plan that are on this host.
    pub(crate) fn workers(&self, plan: &Plan) -> Range<u32> {
        let workers = share(plan.threads.into(), self.rank.index, self.rank.of);
        workers.start as u32..workers.end as u32
    }

    /// What they carry out.
    pub(crate) fn part<'a>(&self, plan: &'a Plan) -> LocalPart<'a> {
        let workers = self.workers(plan);
        LocalPart {
            portion: LocalPart::alone(plan.threads).nth(workers.start),
            workers,
            ..LocalPart::whole(plan)
        }
    }

    /// What the result says of this host.
    pub(crate) fn record(&self, plan: &Plan) -> AgentRecord {
        let start_unix_us = Some(self.start_unix_ns / 1_000);
        AgentRecord { start_unix_us, ..record(format!("rank-{}", self.rank.index), self.workers(plan)) }
    }
}

/// What the result of these workers says of this host, whose clock was compared with no other.
pub(crate) fn record(name: String, workers: Range<u32>) -> AgentRecord {
    AgentRecord {
        name,
        host: host::host_name(),
        first_worker: workers.start,
        workers: workers.len() as u32,
        weight: 1,
        clock_error_ns: clock_error_ns(),
        ..AgentRecord::default()
    }
}
