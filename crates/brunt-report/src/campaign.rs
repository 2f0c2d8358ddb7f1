//! Campaigns: several measurements of one command, as text, page, JSON and CSV.
//!
//! What a campaign concludes is in `conclusion.rs` and `brunt-stats`: the knee, the capacity, the spread. A summary takes megabytes for its
//! histograms, so a campaign keeps of each what its tables show, and the finished JSON; of the first one all, for what the runs have in
//! common. Invariant: every number of a table is in the JSON of the same campaign.

mod conclusion;
pub(crate) mod document;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod table;

pub(crate) use document::{findings, head_facts, wanted};
#[cfg(test)]
pub(crate) use json::CampaignTree;
pub use json::SCHEMA;

use crate::json::ResultTree;
use brunt_plan::objective::Objective;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::assertion::Assertion;
use brunt_stats::bottleneck::{Limit, LimitFacts};
use brunt_stats::capacity::Capacity;
use brunt_stats::capacity_search::StepResult;
use brunt_stats::median::{Estimate, Spread};
use brunt_stats::op_summary::PercentileMark;
use brunt_stats::rate_scan::Knee;
use brunt_stats::stack_delay::ClientBasis;
use brunt_stats::status::RunStatus;
use brunt_stats::summary::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The percentiles of the tables, where the plan requests none.
const QUANTILES: [Quantile; 2] = [Quantile::P50, Quantile::P99];

/// A percentile of one run with its confidence interval. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileEstimate {
    /// Its value.
    pub value_ns: u64,
    /// The ends of its interval, where it has one; the upper end may be unknown.
    pub interval_ns: Option<(u64, Option<u64>)>,
}

impl PercentileEstimate {
    /// As a number of one of several runs.
    pub fn estimate(&self) -> Estimate {
        let half_width = match self.interval_ns {
            Some((low_ns, Some(high_ns))) => Some((high_ns - low_ns) as f64 / 2.0),
            _ => None,
        };
        Estimate { value: self.value_ns as f64, half_width }
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPurpose {
    /// A setting, a rate that a search tries, or a repetition.
    #[default]
    Step,
    /// One of a pair of rates that confirms the answer of a search.
    Pair,
    /// With so many connections: does the limit give way that fewer of them were said to be?
    Connections(u64),
}

/// Where a run stands in its campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlace {
    /// What is special about it, for a scan or a search.
    pub setting: Option<SweepPoint>,
    /// Which repetition it belongs to, from 1.
    pub repetition: u32,
    /// What it is for.
    pub purpose: RunPurpose,
}

/// One run of a campaign, as far as its tables go.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// Where it stands.
    pub place: RunPlace,
    /// Its seed.
    pub seed: u64,
    /// Percentiles below which the true ones may lie by more than a number that may be quoted.
    pub(crate) upper_limits: Vec<Quantile>,
    /// Who limits its load.
    pub limit: Limit,
    /// Its load was more than that.
    pub is_limited: bool,
    /// The objectives of a search, or what the user asserts.
    pub assertions: Vec<Assertion>,
    /// What they come to.
    pub step: StepResult,
    /// The whole result.
    pub(crate) result: ResultTree,
}

impl RunRow {
    /// The row of a run, from its summary.
    ///
    /// # Errors
    /// What the conversion to JSON returns; a summary has nothing that JSON lacks.
    pub fn of(summary: &Summary, place: RunPlace) -> std::io::Result<Self> {
        let total = &summary.total;
        let limit = Limit::of(&LimitFacts::of(&summary.record, &summary.window, total));
        let step = StepResult::of_run(summary, &limit);
        let is_strict = summary.status.judgement.is_strict;
        let is_upper = |quantile: &Quantile| total.mark(*quantile, is_strict) == PercentileMark::UpperLimit;
        Ok(Self {
            place,
            seed: summary.record.plan.seed,
            upper_limits: summary.record.plan.quantiles().into_iter().filter(is_upper).collect(),
            limit,
            is_limited: summary.status.bottleneck().is_some(),
            assertions: summary.assertions.clone(),
            step,
            result: ResultTree::of(summary)?,
        })
    }

    /// Its status.
    pub fn status(&self) -> &RunStatus {
        &self.result.status.status
    }

    /// What is special about it, as a number.
    pub(crate) fn setting(&self) -> Option<f64> {
        self.place.setting.map(SweepPoint::as_f64)
    }

    /// Did it meet a limit at a setting above the highest that met none?
    pub(crate) fn is_beyond(&self, free: f64) -> bool {
        self.is_limited && self.setting().is_some_and(|setting| setting > free)
    }

    /// Did the user cut it short?
    pub fn is_interrupted(&self) -> bool {
        self.result.window.interrupted
    }

    /// Requests per second completed.
    pub fn completed(&self) -> f64 {
        self.result.row.counts.rate.completed
    }

    /// Requests per second that the schedule offered; `None` in closed loop.
    pub(crate) fn offered(&self) -> Option<f64> {
        self.result.window.is_open_loop.then_some(self.result.row.counts.rate.offered)
    }

    /// Requests that failed or were abandoned, which no percentile here holds.
    pub(crate) fn failed(&self) -> u64 {
        let requests = &self.result.row.counts.requests;
        requests.failed() + requests.mismatch + requests.abandoned
    }

    /// The client error of its p99.
    pub(crate) fn client_error_ns(&self) -> Option<u64> {
        self.result.row.latency.response_ns.client.get("p99").copied().flatten()
    }

    /// One of its percentiles.
    pub fn percentile(&self, quantile: Quantile) -> Option<PercentileEstimate> {
        let response = &self.result.row.latency.response_ns;
        Some(PercentileEstimate {
            value_ns: response.percentile(quantile)?,
            interval_ns: response.interval.get(&quantile.to_string()).copied(),
        })
    }

    /// All that are given, by name.
    pub(crate) fn percentiles(&self) -> impl Iterator<Item = (&str, PercentileEstimate)> {
        let names = self.result.row.latency.response_ns.percentiles.keys();
        names.filter_map(|name| Some((name.as_str(), self.percentile(name.parse().ok()?)?)))
    }

    /// Its p99 or another percentile as a number of one of several runs.
    pub fn estimate(&self, quantile: Quantile) -> Option<Estimate> {
        self.percentile(quantile).map(|found| found.estimate())
    }

    /// What the client's parts of these runs rest on, in a column of all: the weakest.
    pub(crate) fn client_basis_of<'a>(runs: impl IntoIterator<Item = &'a Self>) -> ClientBasis {
        let bases = runs.into_iter().filter_map(|run| run.result.row.latency.client_basis);
        bases.max().unwrap_or(ClientBasis::Clock)
    }

    /// Did it come to more than the run that met this limit, or did its objectives hold?
    fn removes_limit_of(&self, limited: &Self) -> bool {
        let offered = self.offered().unwrap_or(f64::INFINITY);
        let is_carried = !self.is_limited && self.completed() >= CARRIED * offered;
        let holds = self.assertions.is_empty() || self.step == StepResult::Holds;
        is_carried && holds || self.completed() >= MORE * limited.completed()
    }
}

/// More connections carry the rate where this part of it is completed ...
const CARRIED: f64 = 0.99;
/// ... or are the limit all the same where they carry this much more than fewer of them.
const MORE: f64 = 1.2;

/// One setting of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanPoint {
    /// The setting.
    pub setting: SweepPoint,
    /// Its runs, as indices.
    pub runs: Vec<usize>,
    /// Runs that the client spoiled and that were made again, as indices. They do not count.
    pub discarded: Vec<usize>,
    /// The p99 of its runs, where they have one.
    pub p99: Option<Spread>,
}

/// What a campaign was asked, and what of its answer no run says: with the runs, all that its conclusion is drawn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CampaignQuestion {
    /// How much do runs of one plan differ?
    Repeat {
        /// What is asserted of them, as a user writes it.
        objectives: Vec<String>,
    },
    /// The row of an option.
    Scan {
        /// The option; one of [`SweepPoint::OPTIONS`].
        option: String,
        /// Is it a load, which has a knee?
        is_load: bool,
        /// The rate that a closed loop came to, where the scan found its own way.
        closed_loop: Option<f64>,
    },
    /// What is the highest rate?
    Search {
        /// What had to hold, as a user writes it.
        objectives: Vec<String>,
        /// How far the rate that fails lies above the one that holds, as a part, unless it has to be further.
        resolution: f64,
        /// What was found; `None` where the user ended it before.
        capacity: Option<Capacity>,
        /// The rate that a closed loop came to, where the search found its own beginning.
        closed_loop: Option<f64>,
    },
}

impl CampaignQuestion {
    /// The word in JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Scan { .. } => "scan",
            Self::Search { .. } => "search",
            Self::Repeat { .. } => "repeat",
        }
    }

    /// The option that its runs differ by.
    pub fn varied(&self) -> Option<&'static str> {
        match self {
            Self::Repeat { .. } => None,
            Self::Scan { option, .. } => SweepPoint::OPTIONS.into_iter().find(|known| known == option),
            Self::Search { .. } => Some("rate"),
        }
    }

    /// What its runs are held against.
    ///
    /// # Errors
    /// Which of them is none; for a user.
    pub fn objectives(&self) -> Result<Vec<Objective>, String> {
        match self {
            Self::Search { objectives, .. } | Self::Repeat { objectives } => {
                objectives.iter().map(|text| text.parse()).collect()
            }
            Self::Scan { .. } => Ok(Vec::new()),
        }
    }

    /// The rate that a closed loop came to.
    pub(crate) const fn closed_loop(&self) -> Option<f64> {
        match self {
            Self::Scan { closed_loop, .. } | Self::Search { closed_loop, .. } => *closed_loop,
            Self::Repeat { .. } => None,
        }
    }

    /// What a search found.
    pub const fn capacity(&self) -> Option<Capacity> {
        match self {
            Self::Search { capacity, .. } => *capacity,
            Self::Repeat { .. } | Self::Scan { .. } => None,
        }
    }
}

/// The record of a campaign: the question, and the place of each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CampaignRecord {
    pub question: CampaignQuestion,
    pub runs: Vec<RunPlace>,
}

/// A whole campaign with what it came to.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The first run, for what all of them have in common.
    pub first: Summary,
    /// Every run, in the order in which they were made.
    pub runs: Vec<RunRow>,
    /// What was asked.
    pub question: CampaignQuestion,
    /// The points of a scan, ascending.
    pub points: Vec<ScanPoint>,
    /// The knee of a scan, as an index of a point; `None` where the option is no load.
    pub knee: Option<Knee>,
    /// Throughput and percentiles over all repetitions.
    pub compared: Vec<(String, Spread)>,
    /// What was asserted of all repetitions together.
    pub assertions: Vec<Assertion>,
    /// Who limits it, if anyone does.
    pub limit: Option<CampaignLimit>,
    /// The worst of the runs that count, with what the campaign itself was checked for.
    pub status: RunStatus,
    /// It was ended early: by the user, or because it could not go on.
    pub interrupted: bool,
}

/// Who limits a campaign, and by which run.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignLimit {
    /// Who.
    pub limit: Limit,
    /// The run that met it, as an index.
    pub run: usize,
    /// The run with more connections, as an index, where they were said to be the limit.
    pub with_more: Option<usize>,
}

impl Campaign {
    /// Is this run, by its index, discarded: was it made again in the same pass?
    pub(crate) fn is_discarded(&self, index: usize) -> bool {
        let place = self.runs[index].place;
        let is_again = |later: &RunRow| later.place == place;
        place.purpose == RunPurpose::Step
            && place.setting.is_some()
            && self.runs[index + 1..].iter().any(is_again)
    }

    /// The percentiles of the tables, ascending. The p99 is always among them: the knee and the bars are of it.
    pub(crate) fn quantiles(&self) -> Vec<Quantile> {
        let requested = match self.first.record.plan.percentiles.as_slice() {
            [] => &QUANTILES,
            requested => requested,
        };
        let mut quantiles = [requested, &[Quantile::P99]].concat();
        quantiles.sort_unstable();
        quantiles.dedup();
        quantiles
    }

    /// What repetitions come to in one number: of `completed_per_s`, or of a percentile.
    pub(crate) fn spread(&self, name: &str) -> Option<Spread> {
        self.compared.iter().find(|(held, _)| held == name).map(|(_, spread)| *spread)
    }

    /// What was asked for cannot be had: no rate meets the objectives, or an assertion fails.
    pub fn is_missed(&self) -> bool {
        use brunt_stats::bound::Decision;
        matches!(self.question.capacity(), Some(Capacity::Below { .. }))
            || self.assertions.iter().any(|assertion| assertion.decision == Decision::Fails)
    }

    /// An assertion is undecided.
    pub fn is_undecided(&self) -> bool {
        use brunt_stats::bound::Decision;
        self.assertions.iter().any(|assertion| assertion.decision == Decision::Undecided)
    }
}
