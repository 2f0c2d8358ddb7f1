//! May the numbers of a run be quoted? OK, CAUTION or INVALID, and one sentence that names percentiles.
//!
//! Not an assertion of the user's (that compares a result with a wish). Six checks decide ([`crate::check::RULES`]), one file each; what
//! happened without being a doubt about the measurement is a fact. Invariants: every number that a check judges is in the record of the
//! run; the status is the worst of its checks.

mod broken;
mod client;
mod data;
mod facts;
mod load;
mod message;

use crate::backlog::Backlog;
use crate::bottleneck::{Bottleneck, Limit};
use crate::change_point;
use crate::change_point::Steadiness;
use crate::check::{Check, CheckId, CheckStatus, Judgement};
use crate::convergence::UntilResult;
use crate::median::{DISAGREEMENT_MIN, Spread};
use crate::op_summary::{ClassSummary, OpSummary, PercentileMark};
use crate::outage::Outage;
use crate::run_record::RunRecord;
use crate::server_evidence::ServerEvidence;
use crate::usage::AgentRecord;
use crate::window::RunTimes;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_plan::quantity::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

brunt_plan::named! { serialized
    /// What the checks come to, from best to worst.
    pub enum Status {
        /// No check found anything.
        Ok = "OK",
        /// At least one calls for care.
        Caution = "CAUTION",
        /// At least one says that the numbers do not show what they claim to.
        Invalid = "INVALID",
    }
}

impl From<CheckStatus> for Status {
    fn from(status: CheckStatus) -> Self {
        match status {
            CheckStatus::Skipped | CheckStatus::Ok => Self::Ok,
            CheckStatus::Caution => Self::Caution,
            CheckStatus::Invalid => Self::Invalid,
        }
    }
}

/// What the checks read.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub record: &'a RunRecord,
    pub window: &'a RunTimes,
    /// All measured requests.
    pub total: &'a OpSummary,
    pub classes: &'a [ClassSummary],
    pub steady: &'a Steadiness,
    /// Outages of servers that reached into the window, by start.
    pub outages: &'a [&'a Outage],
    pub servers: &'a ServerEvidence,
    pub until: Option<&'a UntilResult>,
    /// Of every class with an open loop.
    pub backlogs: Vec<Backlog>,
    /// The percentiles that the checks speak of, ascending.
    pub asked: Vec<Quantile>,
    /// Who limits the load.
    pub limit: Option<Limit>,
    /// The run has ended, so that what workers, hosts and servers tell at the end is known.
    pub is_over: bool,
}

impl Facts<'_> {
    fn judgement(&self) -> &Judgement {
        &self.record.judgement
    }

    fn is_open_loop(&self) -> bool {
        self.record.plan.has_open_loop()
    }

    /// Requests that were sent, warm-up included.
    fn sent_after_preload(&self) -> u64 {
        let entries = self.record.run.intervals.request_counts.entries();
        entries.filter(|entry| entry.phase != Phase::Preload).map(|entry| entry.counts.requests.sent).sum()
    }

    /// Does a backlog grow?
    fn is_overload(&self) -> bool {
        Backlog::is_overload(&self.backlogs)
    }

    /// Are counts missing that an agent, which was lost, or the run had not handed over yet?
    fn is_incomplete(&self) -> bool {
        self.record.is_cut || self.record.agents.iter().any(|agent| agent.lost.is_some())
    }

    /// The agents that were lost before they were to end, each with why.
    fn agents_lost(&self) -> impl Iterator<Item = (&AgentRecord, &str)> {
        let agents = self.record.agents.iter().filter(|agent| !agent.lost_after_interruption);
        agents.filter_map(|agent| Some((agent, agent.lost.as_deref()?)))
    }

    /// How a percentile of all requests is shown.
    fn mark(&self, quantile: Quantile) -> PercentileMark {
        self.total.mark(quantile, self.judgement().is_strict)
    }

    /// The outages in which a server gave no answer at all.
    fn silences(&self) -> impl Iterator<Item = &Outage> {
        self.outages.iter().copied().filter(|outage| !outage.kinds.are_errors_alone())
    }

    /// The longest of them.
    fn longest_silence(&self) -> Option<&Outage> {
        self.silences().max_by_key(|outage| (self.silence_ns(outage), std::cmp::Reverse(outage.start_ns)))
    }

    /// How long one lasted.
    fn silence_ns(&self, outage: &Outage) -> u64 {
        let span = outage.span(self.window);
        span.end - span.start
    }

    /// The server of an outage.
    fn server_name(&self, outage: &Outage) -> String {
        let name = self.record.plan.server_name(usize::from(outage.server));
        name.unwrap_or_else(|| "the server".to_owned())
    }
}

/// What a run or a campaign comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStatus {
    /// The worst of the checks.
    #[serde(rename = "value")]
    pub status: Status,
    /// One sentence without its full stop: which percentiles may be quoted, or why none.
    pub message: String,
    /// The highest percentile up to which all that are shown may be quoted; `None` where none may, and of a campaign.
    #[serde(skip)]
    pub quote: Option<Quantile>,
    /// Every check, in the order of docs/method.md; of a campaign REPEAT alone.
    pub checks: Vec<Check>,
    /// What happened and is no doubt about the measurement, a sentence each.
    pub facts: Vec<String>,
    /// Who limits the load that was reached; `None` where nothing does.
    pub limit: Option<Limit>,
    /// How it was judged.
    pub judgement: Judgement,
}

impl RunStatus {
    /// Of a run.
    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        let checks = [
            broken::check(facts),
            load::check(facts),
            client::check(facts),
            data::check(facts),
            steady_beside_load(facts),
            Check::skipped(CheckId::Repeat, "one run"),
        ];
        let judgement = facts.judgement().clone();
        let checks: Vec<Check> = checks.map(|check| judgement.weigh(check)).into();
        let status = worst(&checks);
        let message = message::message(facts, status, &checks);
        let facts_told = if facts.is_over { facts::all(facts) } else { Vec::new() };
        Self {
            status,
            message,
            quote: message::quote(facts, &checks),
            checks,
            facts: facts_told,
            limit: facts.limit.clone(),
            judgement,
        }
    }

    /// Of a campaign whose runs have these statuses; `spreads` are those of percentiles by their names, where its runs repeat each other.
    pub fn of_runs(
        runs: impl IntoIterator<Item = Status>,
        spreads: &[(String, Spread)],
        judgement: &Judgement,
    ) -> Self {
        let runs: Vec<Status> = runs.into_iter().collect();
        let checks = vec![judgement.weigh(repeat(spreads))];
        let status = runs.iter().copied().chain([worst(&checks)]).max().unwrap_or(Status::Ok);
        let (judgement, message) = (judgement.clone(), campaign_message(&runs, &checks[0]));
        Self { status, message, quote: None, checks, facts: Vec::new(), limit: None, judgement }
    }

    /// What a check found; `None` in a campaign, which has REPEAT alone.
    pub fn check(&self, id: CheckId) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == id)
    }

    /// How a check came out; skipped in a campaign, which has REPEAT alone.
    pub fn status_of(&self, id: CheckId) -> CheckStatus {
        self.check(id).map_or(CheckStatus::Skipped, |check| check.status)
    }

    /// Who kept the run from its load: the client where it had no time for it, else the limit of an overload.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        if self.status_of(CheckId::Client) == CheckStatus::Invalid {
            return Some(Bottleneck::Client);
        }
        self.limit
            .as_ref()
            .filter(|_| self.status_of(CheckId::Load) > CheckStatus::Ok)
            .map(|limit| limit.bottleneck)
    }

    /// The checks that call for care or are invalid, the worst first.
    pub fn findings(&self) -> Vec<&Check> {
        let mut found: Vec<&Check> =
            self.checks.iter().filter(|check| check.status > CheckStatus::Ok).collect();
        found.sort_by_key(|check| std::cmp::Reverse(check.status));
        found
    }

    /// Is it as good as nothing? The exit code is 3 then.
    pub fn is_invalid(&self) -> bool {
        self.status == Status::Invalid
    }

    /// The status and its sentence.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.status.name(), self.message)
    }
}

/// In an overload the median grows with the backlog, which LOAD says.
fn steady_beside_load(facts: &Facts<'_>) -> Check {
    match facts.is_overload() {
        true => Check::skipped(CheckId::Steady, "the backlog grew, and response times with it"),
        false => change_point::check(facts.steady),
    }
}

fn worst(checks: &[Check]) -> Status {
    checks.iter().map(|check| check.status.into()).max().unwrap_or(Status::Ok)
}

/// REPEAT: do the runs of one plan agree?
fn repeat(spreads: &[(String, Spread)]) -> Check {
    let compared = spreads.iter().filter(|(_, spread)| spread.runs > 1);
    let order = |spread: &Spread| (spread.disagrees, spread.relative_range());
    let worst = compared.max_by(|(_, one), (_, other)| {
        let ((one_found, one), (other_found, other)) = (order(one), order(other));
        one_found.cmp(&other_found).then(one.total_cmp(&other))
    });
    let Some((name, spread)) = worst else { return Check::skipped(CheckId::Repeat, "one run") };
    let range = percent(spread.relative_range());
    let check = if spread.disagrees {
        let message = format!("the runs disagree: {name} spreads over {range} of its median");
        Check::found(CheckId::Repeat, CheckStatus::Caution, message)
            .with_fix("quote the range, and find what differs from run to run: a restart, memory layout, another program")
    } else {
        Check::ok(
            CheckId::Repeat,
            format!("{} runs agree: {name} spreads over {range} of its median", spread.runs),
        )
    };
    check.with_value(spread.relative_range(), DISAGREEMENT_MIN)
}

/// The sentence of a campaign.
fn campaign_message(runs: &[Status], repeat: &Check) -> String {
    let count = |status: Status| runs.iter().filter(|run| **run == status).count();
    let (invalid, cautious) = (count(Status::Invalid), count(Status::Caution));
    let of = |number: usize, status: Status| {
        (number > 0).then(|| format!("{number} of {} runs {}", runs.len(), status.name()))
    };
    let mut parts: Vec<String> =
        [of(invalid, Status::Invalid), of(cautious, Status::Caution)].into_iter().flatten().collect();
    if repeat.status > CheckStatus::Ok {
        parts.push(repeat.message.clone());
    }
    if parts.is_empty() { format!("all {} runs are OK", runs.len()) } else { parts.join("; ") }
}

#[cfg(test)]
mod tests;
