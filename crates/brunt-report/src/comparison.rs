//! Two sets of runs side by side: which numbers differ, by how much, and what was not the same to begin with.
//!
//! Not the statistics (those are `brunt_stats::rank_test`): here results become its samples, and what it finds becomes words.
//! Invariant: no run is counted twice, and whatever differs between the two plans is said.

mod assertion;
mod change_text;
mod details;
mod difference;
mod html;
mod json;
mod overlay;
mod record;
pub(crate) mod text;

pub use difference::{Difference, plan_differences, side_differences};
pub use json::SCHEMA;

pub(crate) use assertion::AssertionRow;

use crate::indented;
use crate::layout::Layout;
use crate::result::{RunInterval, RunResult};
use brunt_plan::objective::{Metric, Statistic, Subject};
use brunt_plan::quantile::Quantile;
use brunt_plan::tolerance::Requirement;
use brunt_stats::bound::{Bounds, Decision};
use brunt_stats::rank_test::{ChangeScale, RUNS_MAX, RUNS_MIN, RankTest, RunValue, TestResult};
use brunt_stats::status::Status;
use std::io::{self, Write};

/// A number that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// One that can be asserted.
    Of(Subject),
    /// Processor time of the client per request.
    ClientCpu,
    /// Processor time of the server per request, by its own account.
    ServerCpu,
}

/// What is compared whether or not it is asked for.
const ALWAYS: [Quantity; 8] = [
    of(Metric::Response(Statistic::Percentile(Quantile::P50))),
    of(Metric::Response(Statistic::Percentile(Quantile::P99))),
    of(Metric::Response(Statistic::Percentile(Quantile::P999))),
    of(Metric::Response(Statistic::Mean)),
    of(Metric::Rate),
    of(Metric::Hit),
    Quantity::ClientCpu,
    Quantity::ServerCpu,
];

const fn of(metric: Metric) -> Quantity {
    Quantity::Of(Subject { op: None, metric })
}

impl Quantity {
    fn name(self) -> String {
        match self {
            Self::Of(subject) => subject.to_string(),
            Self::ClientCpu => "client CPU".to_owned(),
            Self::ServerCpu => "server CPU".to_owned(),
        }
    }

    /// The name as a JSON key.
    fn key(self) -> String {
        match self {
            Self::Of(subject) => subject.to_string(),
            Self::ClientCpu => "client_cpu_ns_per_request".to_owned(),
            Self::ServerCpu => "server_cpu_ns_per_request".to_owned(),
        }
    }

    fn of_run(self, run: &RunResult) -> Option<f64> {
        match self {
            Self::Of(subject) => run.number(&subject),
            Self::ClientCpu => run.client_cpu_ns,
            Self::ServerCpu => run.server_cpu_ns,
        }
    }

    /// What it is at the least and at the most, whatever the client did; of what is no latency both are the number.
    fn bounds_of_run(self, run: &RunResult) -> Option<Bounds> {
        match self {
            Self::Of(subject) => run.bounds(&subject),
            Self::ClientCpu | Self::ServerCpu => self.of_run(run).map(Bounds::exact),
        }
    }

    /// The interval within a run, of what has one.
    fn interval_of_run(self, run: &RunResult) -> Option<RunInterval> {
        match self {
            Self::Of(subject) => run.interval(&subject),
            Self::ClientCpu | Self::ServerCpu => None,
        }
    }

    /// Is it the latency of requests?
    fn is_latency(self) -> bool {
        matches!(self, Self::Of(Subject { metric: Metric::Response(_) | Metric::Service(_), .. }))
    }

    /// Is it in nanoseconds?
    fn is_time(self) -> bool {
        self.is_latency() || matches!(self, Self::ClientCpu | Self::ServerCpu)
    }

    fn scale(self) -> ChangeScale {
        match self {
            Self::Of(Subject { metric: Metric::Hit | Metric::Errors | Metric::Unsent, .. }) => {
                ChangeScale::Difference
            }
            _ => ChangeScale::Ratio,
        }
    }
}

/// A number of both sides.
#[derive(Clone, Debug)]
struct ComparedRow {
    quantity: Quantity,
    test: RankTest,
}

impl ComparedRow {
    /// Is B shown to be above or below A?
    fn differs(&self) -> bool {
        matches!(self.test.finding, TestResult::Above | TestResult::Below)
    }

    /// The change, where it is decided or shown to be none.
    fn decided_change(&self) -> Option<f64> {
        self.test.change.filter(|_| self.differs() || self.test.finding == TestResult::NoneShown)
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
    compared: Vec<ComparedRow>,
    pub(crate) asserted: Vec<AssertionRow>,
    early_end: Option<EarlyEnd>,
}

impl Comparison {
    /// Compares the runs, and what they came to with what is required. Each side has a run.
    ///
    /// # Errors
    /// A side has none or too many, or a run is given twice; for a user.
    pub fn of(a: Vec<RunResult>, b: Vec<RunResult>, required: &[Requirement]) -> Result<Self, String> {
        let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else {
            return Err("a side has no run; accepted: at least one result each".to_owned());
        };
        let (plan, environment) =
            (plan_differences(first_a, first_b), difference::environment(first_a, first_b));
        for (name, runs) in [("A", &a), ("B", &b)] {
            if runs.len() > RUNS_MAX {
                return Err(format!("{name} has {} runs; accepted: up to {RUNS_MAX}", runs.len()));
            }
        }
        check_runs_differ(&a, &b)?;
        required.iter().try_for_each(|requirement| check_is_there(requirement, [&a, &b]))?;
        let asked = required.iter().map(|requirement| Quantity::Of(requirement.subject()));
        let mut quantities = ALWAYS.to_vec();
        asked.for_each(|quantity| {
            if !quantities.contains(&quantity) {
                quantities.push(quantity);
            }
        });
        let test = |quantity: Quantity| {
            let measured = |side: &[RunResult]| -> Vec<_> {
                let of_run = |run| {
                    Some(RunValue { value: quantity.of_run(run)?, bounds: quantity.bounds_of_run(run)? })
                };
                side.iter().map(of_run).collect()
            };
            ComparedRow { quantity, test: RankTest::of(quantity.scale(), &measured(&a), &measured(&b)) }
        };
        let compared: Vec<ComparedRow> = quantities.into_iter().map(test).collect();
        let asserted =
            required.iter().map(|requirement| AssertionRow::of(*requirement, &compared, &b)).collect();
        Ok(Self { a, b, plan, environment, compared, asserted, early_end: None })
    }

    /// Marks the comparison as ended before all its runs were made.
    pub fn ended_early(mut self, by: EarlyEnd) -> Self {
        self.early_end = Some(by);
        self
    }

    /// Is any run INVALID?
    pub fn has_invalid(&self) -> bool {
        self.a.iter().chain(&self.b).any(|run| run.status == Status::Invalid)
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

    /// Writes the short report.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_text(&self, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(text::report(self, layout).as_bytes())
    }

    /// What it comes to, in parts.
    pub(crate) fn answer(&self) -> Vec<String> {
        text::answer(self)
    }

    /// The runs that are not to be believed without care, in words.
    pub(crate) fn invalid_runs(&self) -> Vec<(Status, String)> {
        details::invalid_runs(self)
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_details(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(details::report(self).as_bytes())
    }

    /// Writes the page.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        html::write(self, out)
    }

    /// Writes the schema `brunt.compare.v1`.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        indented::write(json::value(self)?, out)
    }

    /// Every run with the name of its side.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&'static str, &RunResult)> {
        let named = |name, runs| std::iter::repeat(name).zip::<&[RunResult]>(runs);
        named("A", &self.a).chain(named("B", &self.b))
    }

    /// Has a side too few runs for any claim?
    fn is_small(&self) -> bool {
        self.a.len().min(self.b.len()) < RUNS_MIN
    }
}

/// An operation that no run has is a mistake in writing: no further run would decide it.
fn check_is_there(requirement: &Requirement, sides: [&[RunResult]; 2]) -> Result<(), String> {
    let mut names: Vec<String> = Vec::new();
    for name in sides.into_iter().flatten().flat_map(RunResult::operations).map(|op| op.to_string()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match requirement.subject().op {
        Some(op) if !names.contains(&op.to_string()) => Err(format!(
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
