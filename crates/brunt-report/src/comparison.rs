//! Two sets of runs side by side: which numbers differ, by how much, and what was not the same to begin with.
//!
//! Not the statistics (those are `brunt_stats::change`): here results become its samples, and what it finds becomes words.
//! Invariants: no run is counted twice, whatever differs between the two plans is said, and text, page, JSON and Markdown have the same
//! sentences.

mod assertion;
pub(crate) mod document;
pub(crate) mod html;
pub(crate) mod json;

#[cfg(test)]
pub(crate) use json::ComparisonTree;
pub use json::SCHEMA;

pub(crate) use assertion::AssertionRow;

use crate::result::RunResult;
use crate::stored::{Difference, key_differences};
use brunt_plan::objective::{Metric, Requirement, Statistic, Subject};
use brunt_plan::quantile::Quantile;
use brunt_plan::quantity::each_once;
use brunt_stats::bound::{Bounds, Decision};
use brunt_stats::change::{Change, ChangeScale, Design, Finding, RUNS_MAX, RunValue, Samples};
use brunt_stats::status::Status;
use serde_json::{Map, Value};

/// A number that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// One that can be asserted.
    Of(Subject),
    /// Of an open loop, the share of the offered load that was answered.
    Answered,
    /// Processor time of the client per request.
    ClientCpu,
    /// Processor time of the server per request, by its own account.
    ServerCpu,
}

/// The middle and the tail, which decide with the throughput whether A and B differ.
const LATENCIES: [Quantity; 2] = [
    of(Metric::Response(Statistic::Percentile(Quantile::P50))),
    of(Metric::Response(Statistic::Percentile(Quantile::P99))),
];
const RATE: Quantity = of(Metric::Rate);
/// What is shown beside these whether or not it is asked for.
const OTHERS: [Quantity; 6] = [
    of(Metric::Response(Statistic::Percentile(Quantile::P999))),
    of(Metric::Response(Statistic::Mean)),
    RATE,
    of(Metric::Hit),
    Quantity::ClientCpu,
    Quantity::ServerCpu,
];

const fn of(metric: Metric) -> Quantity {
    Quantity::Of(Subject { op: None, metric })
}

impl Quantity {
    /// The name in reports: `get.p99`, `done/s`.
    fn name(self) -> String {
        match self {
            Self::Of(subject) => subject.to_string().replace("rate", "done/s"),
            Self::Answered => "answered".to_owned(),
            Self::ClientCpu => "client-CPU".to_owned(),
            Self::ServerCpu => "server-CPU".to_owned(),
        }
    }

    /// The name as a JSON key.
    fn key(self) -> String {
        match self {
            Self::Of(subject) => subject.to_string(),
            Self::Answered => "answered".to_owned(),
            Self::ClientCpu => "client_cpu_ns_per_request".to_owned(),
            Self::ServerCpu => "server_cpu_ns_per_request".to_owned(),
        }
    }

    fn of_run(self, run: &RunResult) -> Option<f64> {
        match self {
            Self::Of(subject) => run.number(&subject),
            Self::Answered => run.answered(),
            Self::ClientCpu => run.result.client_cpu_ns(),
            Self::ServerCpu => run.result.server_cpu_ns(),
        }
    }

    /// What it is at the least and at the most, whatever the client did; of what is no latency both are the number.
    fn bounds_of_run(self, run: &RunResult) -> Option<Bounds> {
        match self {
            Self::Of(subject) => run.bounds(&subject),
            _ => self.of_run(run).map(Bounds::exact),
        }
    }

    /// Is it the latency of requests?
    fn is_latency(self) -> bool {
        matches!(self, Self::Of(Subject { metric: Metric::Response(_) | Metric::Service(_), .. }))
    }

    /// Is it in nanoseconds?
    fn is_time(self) -> bool {
        let is_of_client = matches!(self, Self::Of(Subject { metric: Metric::Client(_), .. }));
        self.is_latency() || is_of_client || matches!(self, Self::ClientCpu | Self::ServerCpu)
    }

    fn scale(self) -> ChangeScale {
        match self {
            Self::Of(Subject { metric: Metric::Hit | Metric::Errors | Metric::Unsent, .. }) => {
                ChangeScale::Difference
            }
            _ => ChangeScale::Ratio,
        }
    }

    fn samples(self, a: &[RunResult], b: &[RunResult]) -> Samples {
        let of_run = |run| Some(RunValue { value: self.of_run(run)?, least: self.bounds_of_run(run)?.low });
        let [a, b] = [a, b].map(|side| side.iter().map(of_run).collect());
        Samples { scale: self.scale(), is_slower_above: self.is_latency(), a, b }
    }
}

/// A number of both sides.
#[derive(Clone, Debug)]
struct ComparedRow {
    quantity: Quantity,
    change: Change,
}

impl ComparedRow {
    fn has(&self, finding: Finding) -> bool {
        self.change.finding == Some(finding)
    }
}

/// Why not all of the runs were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// The user ended them.
    Interrupted,
    /// They could not go on, for this reason.
    Failed(String),
}

/// Two sets of runs side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    a: Vec<RunResult>,
    b: Vec<RunResult>,
    /// In which keys the plans differ, servers and seeds apart.
    plan: Vec<Difference>,
    /// What of the hosts and the tool differs.
    environment: Vec<Difference>,
    design: Design,
    /// Those that decide, then the others.
    compared: Vec<ComparedRow>,
    pub(crate) asserted: Vec<AssertionRow>,
    early_end: Option<EarlyEnd>,
}

impl Comparison {
    /// Compares the runs, and what they came to with what is required. Each side has a run. Of pairs, what has no partner is left out.
    ///
    /// # Errors
    /// A side has none or too many, or a run is given twice; for a user.
    pub fn of(
        design: Design,
        mut a: Vec<RunResult>,
        mut b: Vec<RunResult>,
        required: &[Requirement],
    ) -> Result<Self, String> {
        if design == Design::Pairs {
            let pairs = a.len().min(b.len());
            a.truncate(pairs);
            b.truncate(pairs);
        }
        let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else {
            return Err("a side has no run; accepted: at least one result each".to_owned());
        };
        let (plan, environment) = (plan_differences(first_a, first_b), environment(first_a, first_b));
        for (name, runs) in [("A", &a), ("B", &b)] {
            if runs.len() > RUNS_MAX {
                return Err(format!("{name} has {} runs; accepted: up to {RUNS_MAX}", runs.len()));
            }
        }
        check_runs_differ(&a, &b)?;
        required.iter().try_for_each(|requirement| check_is_there(requirement, [&a, &b]))?;
        let throughput = if first_a.result.window.is_open_loop { Quantity::Answered } else { RATE };
        let deciding = [LATENCIES[0], LATENCIES[1], throughput];
        let samples = deciding.map(|quantity| quantity.samples(&a, &b));
        let decided = Change::decided(design, samples.each_ref());
        let mut compared: Vec<ComparedRow> = deciding
            .into_iter()
            .zip(decided)
            .map(|(quantity, change)| ComparedRow { quantity, change })
            .collect();
        let asked = required.iter().map(|requirement| Quantity::Of(requirement.subject()));
        for quantity in OTHERS.into_iter().chain(asked) {
            if !compared.iter().any(|held| held.quantity == quantity) {
                let change = Change::shown(design, &quantity.samples(&a, &b));
                compared.push(ComparedRow { quantity, change });
            }
        }
        let mut comparison =
            Self { a, b, plan, environment, design, compared, asserted: Vec::new(), early_end: None };
        comparison.asserted =
            required.iter().map(|requirement| AssertionRow::of(*requirement, &comparison)).collect();
        Ok(comparison)
    }

    /// Marks the comparison as ended before all its runs were made.
    pub fn ended_early(mut self, by: EarlyEnd) -> Self {
        self.early_end = Some(by);
        self
    }

    /// Runs that are INVALID.
    fn invalid_runs(&self) -> usize {
        self.runs().filter(|(_, run)| run.status() == Status::Invalid).count()
    }

    /// Is anything concluded? Not where more than a third of the runs are INVALID.
    pub fn has_conclusion(&self) -> bool {
        3 * self.invalid_runs() <= self.runs().count()
    }

    /// Was it ended before all runs were made?
    pub const fn is_interrupted(&self) -> bool {
        self.early_end.is_some()
    }

    /// Does something that was asserted fail?
    pub fn is_missed(&self) -> bool {
        self.asserted.iter().any(|asserted| asserted.decision == Decision::Fails)
    }

    /// Is something that was asserted left open?
    pub fn is_undecided(&self) -> bool {
        self.asserted.iter().any(|asserted| asserted.decision == Decision::Undecided)
    }

    /// Every run with the name of its side.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&'static str, &RunResult)> {
        let named = |name, runs| std::iter::repeat(name).zip::<&[RunResult]>(runs);
        named("A", &self.a).chain(named("B", &self.b))
    }
}

/// An operation that no run has is a mistake in writing: no further run would decide it.
fn check_is_there(requirement: &Requirement, sides: [&[RunResult]; 2]) -> Result<(), String> {
    let names = each_once(sides.into_iter().flatten().flat_map(RunResult::operations));
    match requirement.subject().op {
        Some(op) if !names.contains(&op.as_str()) => Err(format!(
            "--assert '{requirement}': no run has the operation '{op}'; accepted: {}, or no operation for all of them",
            names.join(", ")
        )),
        _ => Ok(()),
    }
}

/// No run counts twice: it does not differ from itself, which would be taken for agreement.
fn check_runs_differ(a: &[RunResult], b: &[RunResult]) -> Result<(), String> {
    let all: Vec<&RunResult> = a.iter().chain(b).collect();
    for (index, run) in all.iter().enumerate() {
        if let Some(same) = all[..index].iter().find(|earlier| earlier.is_same_run(run)) {
            return Err(format!(
                "'{}' and '{}' hold the same run; accepted: each run once, for it does not differ from itself",
                same.source, run.source
            ));
        }
    }
    Ok(())
}

/// The keys in which two plans differ, but for seeds and servers.
pub fn plan_differences(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    key_differences(&a.result.plan, &b.result.plan, &["seed", "server"])
}

/// The keys in which two runs of one side differ: there, the server counts, too.
pub fn side_differences(one: &RunResult, other: &RunResult) -> Vec<Difference> {
    key_differences(&one.result.plan, &other.result.plan, &["seed"])
}

/// What of the hosts and the tool differs.
fn environment(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let brunt = "brunt".to_owned();
    let with_version = |run: &RunResult| {
        let facts = run.result.host.facts.iter().chain([(&brunt, &run.result.version)]);
        facts.map(|(name, fact)| (name.clone(), Value::from(fact.as_str()))).collect::<Map<_, _>>()
    };
    key_differences(&with_version(a), &with_version(b), &[])
}
