//! Campaigns: several measurements of one command, as text, JSON and CSV.
//!
//! What a campaign concludes is in `brunt-stats`: the knee, the capacity, the spread. A summary takes megabytes for its histograms, so a campaign keeps of each what its tables
//! show, and the finished JSON. Invariant: every number of a table is in the JSON of the same campaign.

mod csv;
pub(crate) mod curve;
mod details;
mod html;
mod json;
pub(crate) mod text;

pub use csv::write as write_csv;
pub use details::write as write_details;
pub use html::write as write_html;
pub use json::{SCHEMA, write as write_json};
pub use text::write as write_text;
pub(crate) use text::{findings, headline};

use crate::cost::RequestCost;
use crate::quantity;
use crate::server;
use brunt_plan::objective::{Ceiling, Objective};
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::bottleneck::Bottleneck;
use brunt_stats::capacity::{Capacity, StepResult};
use brunt_stats::check::{Check, CheckId, CheckStatus};
use brunt_stats::client_basis::ClientBasis;
use brunt_stats::knee::Knee;
use brunt_stats::op_summary::OpSummary;
use brunt_stats::repeat::{Estimate, Spread};
use brunt_stats::status::RunStatus;
use brunt_stats::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The percentiles of the tables, where the plan requests none.
pub const QUANTILES: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];

/// A percentile of one run with its confidence interval. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileEstimate {
    /// Its value.
    pub value_ns: u64,
    /// The ends of its interval, where it has one; the upper end may be unknown.
    pub interval_ns: Option<(u64, Option<u64>)>,
    /// The interval rests on too few batches.
    pub is_thin: bool,
}

impl PercentileEstimate {
    fn of(summary: &OpSummary, quantile: Quantile) -> Option<Self> {
        let value_ns = summary.latency.response.summary.percentile_ns(quantile)?;
        let interval = summary.interval(quantile);
        let interval_ns = interval.map(|interval| (interval.low_ns, interval.high_ns));
        Some(Self { value_ns, interval_ns, is_thin: interval.is_some_and(|interval| interval.is_thin()) })
    }

    /// As a number of one of several runs. A thin interval is none here: it may be too narrow, and then what it leaves
    /// unexplained is taken for a difference of the runs.
    pub fn estimate(&self) -> Estimate {
        let half_width = match self.interval_ns {
            Some((low_ns, Some(high_ns))) if !self.is_thin => Some((high_ns - low_ns) as f64 / 2.0),
            _ => None,
        };
        Estimate { value: self.value_ns as f64, half_width }
    }
}

/// One run of a campaign, as far as its tables go.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// What is special about it, for a scan or a search.
    pub setting: Option<SweepPoint>,
    /// Which repetition it belongs to, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: u64,
    /// Length of its measured window, in nanoseconds.
    pub duration_ns: u64,
    /// Requests per second that the schedule offered; `None` in closed loop.
    pub offered: Option<f64>,
    /// Requests per second completed.
    pub completed: f64,
    /// Requests that failed or were given up, which no percentile here holds.
    pub failed: u64,
    /// The percentiles of its plan, of all requests; those for which there were enough.
    pub percentiles: Vec<(Quantile, PercentileEstimate)>,
    /// Client error of the p99 in nanoseconds.
    pub client_error_ns: Option<u64>,
    /// What that rests on.
    pub client_basis: ClientBasis,
    /// Processor time of the client per request, in nanoseconds.
    pub cpu_ns: Option<f64>,
    /// The same of the servers, by their own account.
    pub server_cpu_ns: Option<f64>,
    /// Its status.
    pub status: RunStatus,
    /// Whose limit it met.
    pub limit: Option<Bottleneck>,
    /// The user cut it short.
    pub interrupted: bool,
    /// What it means for a search, and the percentiles that the objectives bound.
    pub step: Option<(StepResult, Vec<Option<PercentileEstimate>>)>,
    /// The whole summary.
    pub json: Value,
}

impl RunRow {
    /// What the client errors of these runs rest on, in a column of all: the weakest.
    pub(crate) fn client_basis_of<'a>(runs: impl IntoIterator<Item = &'a Self>) -> ClientBasis {
        runs.into_iter().map(|run| run.client_basis).max().unwrap_or(ClientBasis::Clock)
    }

    /// The row of a run, from its summary.
    ///
    /// # Errors
    /// What the conversion to JSON returns; a summary has nothing that JSON lacks.
    pub fn of(summary: &Summary, setting: Option<SweepPoint>, repetition: u32) -> std::io::Result<Self> {
        let total = &summary.total;
        Ok(Self {
            setting,
            repetition,
            seed: summary.record.plan.seed,
            duration_ns: summary.window.duration_ns(),
            offered: summary.record.plan.has_open_loop().then_some(total.rate.offered),
            completed: total.rate.completed,
            failed: total.requests.failed() + total.requests.abandoned,
            percentiles: summary
                .record
                .plan
                .quantiles()
                .into_iter()
                .filter_map(|quantile| Some((quantile, PercentileEstimate::of(total, quantile)?)))
                .collect(),
            client_error_ns: total.client_error_ns(Quantile::P99),
            client_basis: summary.client_basis(),
            cpu_ns: RequestCost::of(summary).map(|cost| cost.cpu_working_ns()),
            server_cpu_ns: server::window(summary).and_then(|span| span.cpu_ns_per_request()),
            status: summary.status.clone(),
            limit: summary.status.bottleneck(),
            interrupted: summary.record.run.interrupted,
            step: None,
            json: crate::json::value(summary)?,
        })
    }

    /// Adds how the run compares with the objectives of a search.
    pub fn with_step(mut self, summary: &Summary, ceilings: &[Ceiling]) -> Self {
        let found: Vec<Option<PercentileEstimate>> = ceilings
            .iter()
            .map(|ceiling| PercentileEstimate::of(summary.row(ceiling.op)?, ceiling.quantile))
            .collect();
        self.step = Some((StepResult::of_step(summary, ceilings), found));
        self
    }

    /// The step of a search that the capacity is the rate of: of those that passed, the one with the highest rate.
    pub fn of_capacity(runs: &[Self]) -> Option<&Self> {
        let passed = runs.iter().filter(|run| matches!(run.step, Some((StepResult::Passed, _))));
        passed.max_by(|one, other| one.offered.unwrap_or(0.0).total_cmp(&other.offered.unwrap_or(0.0)))
    }

    /// One of its percentiles.
    pub fn percentile(&self, quantile: Quantile) -> Option<PercentileEstimate> {
        self.percentiles.iter().find(|(held, _)| *held == quantile).map(|(_, found)| *found)
    }
}

/// A number of every run, and what they come to.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadRow {
    /// `completed_per_s`, or a percentile as JSON has it: `p99`.
    pub name: String,
    /// Times in nanoseconds, rates per second.
    pub spread: Spread,
}

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

impl ScanPoint {
    /// The first of its runs that met a limit.
    pub fn limited_run<'a>(&self, runs: &'a [RunRow]) -> Option<&'a RunRow> {
        self.whole_runs(runs).find(|run| run.limit.is_some())
    }

    /// Did it meet no limit? A run that was cut short does not know.
    pub fn is_free(&self, runs: &[RunRow]) -> bool {
        self.whole_runs(runs).next().is_some() && self.limited_run(runs).is_none()
    }

    fn whole_runs<'a>(&self, runs: &'a [RunRow]) -> impl Iterator<Item = &'a RunRow> {
        self.runs.iter().map(|index| &runs[*index]).filter(|run| !run.interrupted)
    }
}

/// The checks of a run that call for care or are invalid.
pub(crate) fn checks_of(run: &RunRow) -> Vec<&'static str> {
    run.status.findings().into_iter().map(|check| check.id.name()).collect()
}

/// Whose limit a run met, and what shows it; `None` where it met none.
pub(crate) fn limit_sentence(run: &RunRow) -> Option<String> {
    let id = match run.limit? {
        Bottleneck::Client if run.status.status_of(CheckId::Client) == CheckStatus::Invalid => {
            CheckId::Client
        }
        _ => CheckId::Load,
    };
    run.status.check(id).map(Check::text)
}

/// A point with its first run that met a limit.
pub type LimitedPoint<'a> = (&'a ScanPoint, &'a RunRow);

/// The limit of a curve: the lowest point that met one, above every point that met none. A limit below those was a trouble
/// that came and went.
pub fn limit_met<'a>(runs: &'a [RunRow], points: &'a [ScanPoint]) -> Option<LimitedPoint<'a>> {
    limited(runs, &points[free_end(runs, points)..]).next()
}

/// The troubles that came and went: points that met a limit, below one that met none.
pub fn limits_passed<'a>(runs: &'a [RunRow], points: &'a [ScanPoint]) -> Vec<LimitedPoint<'a>> {
    limited(runs, &points[..free_end(runs, points)]).collect()
}

/// Where the points begin that lie above every one that met no limit.
fn free_end(runs: &[RunRow], points: &[ScanPoint]) -> usize {
    points.iter().rposition(|point| point.is_free(runs)).map_or(0, |last| last + 1)
}

fn limited<'a>(runs: &'a [RunRow], points: &'a [ScanPoint]) -> impl Iterator<Item = LimitedPoint<'a>> {
    points.iter().filter_map(|point| Some((point, point.limited_run(runs)?)))
}

/// What a campaign was asked, and what of its answer no run says: with the runs, all that its conclusion is drawn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CampaignQuestion {
    /// How much do runs of one plan differ?
    Repeat,
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
        /// How close the bracket had to be, as a part.
        resolution: f64,
        /// What was found; `None` where the user ended it before.
        capacity: Option<Capacity>,
        /// The rate that a closed loop came to, where the search found its own beginning.
        closed_loop: Option<f64>,
    },
}

impl CampaignQuestion {
    /// The option that its runs differ by.
    pub fn varied(&self) -> Option<&'static str> {
        match self {
            Self::Repeat => None,
            Self::Scan { option, .. } => SweepPoint::OPTIONS.into_iter().find(|known| known == option),
            Self::Search { .. } => Some("rate"),
        }
    }

    /// What a search was held against.
    ///
    /// # Errors
    /// Which of them is none; for a user.
    pub fn objectives(&self) -> Result<Vec<Objective>, String> {
        match self {
            Self::Search { objectives, .. } => objectives.iter().map(|text| text.parse()).collect(),
            Self::Repeat | Self::Scan { .. } => Ok(Vec::new()),
        }
    }
}

/// The record of a campaign: the question, and the place of each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CampaignRecord {
    pub question: CampaignQuestion,
    /// By run: the setting, and the repetition.
    pub runs: Vec<(Option<SweepPoint>, u32)>,
}

/// What a campaign came to.
#[derive(Clone, Debug)]
pub enum CampaignResult {
    /// A curve.
    Scan {
        /// The option that was swept.
        option: &'static str,
        /// Its points, ascending.
        points: Vec<ScanPoint>,
        /// The knee, as an index of a point; `None` where the option is no load.
        knee: Option<Knee>,
        /// The rate that a closed loop came to, where the scan found its own way.
        closed_loop: Option<f64>,
    },
    /// The highest rate.
    Search {
        /// What had to hold.
        objectives: Vec<Objective>,
        /// How close the bracket had to be, as a part.
        resolution: f64,
        /// What was found; `None` where the user ended it before.
        capacity: Option<Capacity>,
        /// The rate that a closed loop came to, where the search found its own beginning.
        closed_loop: Option<f64>,
    },
    /// Runs of one plan, repeated.
    Repeat {
        /// Throughput and percentiles over all runs.
        compared: Vec<SpreadRow>,
    },
}

impl CampaignResult {
    /// The word in JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Scan { .. } => "scan",
            Self::Search { .. } => "search",
            Self::Repeat { .. } => "repeat",
        }
    }
}

/// A whole campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What all runs have in common.
    pub head: CampaignHeader,
    /// Every run, in the order in which they were made.
    pub runs: Vec<RunRow>,
    /// What was asked.
    pub question: CampaignQuestion,
    /// What they came to.
    pub finding: CampaignResult,
    /// The worst of the runs, with what the campaign itself was checked for.
    pub status: RunStatus,
    /// It was ended early: by the user, or because it could not go on.
    pub interrupted: bool,
}

impl Campaign {
    /// Is this run, by its index, discarded: was it made again in the same pass?
    fn is_discarded(&self, index: usize) -> bool {
        let run = &self.runs[index];
        let is_again = |later: &RunRow| later.setting == run.setting && later.repetition == run.repetition;
        run.setting.is_some() && self.runs[index + 1..].iter().any(is_again)
    }

    /// How many settings and runs there are: `10 settings, 12 runs (2 discarded and made again)`.
    fn counts(&self) -> String {
        let runs = quantity::things(self.runs.len() as u64, "run");
        let thing = match &self.finding {
            CampaignResult::Repeat { .. } => return runs,
            CampaignResult::Scan { .. } => "setting",
            CampaignResult::Search { .. } => "rate",
        };
        let is_first = |(index, run): &(usize, &RunRow)| {
            !self.runs[..*index].iter().any(|earlier| earlier.setting == run.setting)
        };
        let settings = self.runs.iter().enumerate().filter(is_first).count();
        let discarded = (0..self.runs.len()).filter(|index| self.is_discarded(*index)).count();
        let again = match discarded {
            0 => String::new(),
            count => format!(" ({count} discarded and made again)"),
        };
        format!("{}, {runs}{again}", quantity::things(settings as u64, thing))
    }

    /// Why a curve has no knee, in words.
    fn no_curve_text(&self, points: &[ScanPoint]) -> String {
        let free = points.iter().filter(|point| point.is_free(&self.runs) && point.p99.is_some()).count();
        let limited = points.len() - free;
        format!(
            "unknown: {limited} of {} settings met a limit, and a curve takes three that did not",
            points.len()
        )
    }

    /// The last step of a search at this rate.
    fn step_at(&self, rate: f64) -> Option<&RunRow> {
        let is_it = |run: &&RunRow| run.setting.is_some_and(|setting| setting.as_f64() == rate);
        self.runs.iter().rfind(is_it)
    }
}

/// What was run, by label.
pub(crate) fn head_facts(campaign: &Campaign) -> Vec<crate::text::head::Labelled> {
    let mut facts = vec![(campaign.finding.kind().to_owned(), text::title(campaign))];
    facts.extend(campaign.head.short.iter().cloned());
    facts
}

/// What a search was held against, in a sentence.
pub(crate) fn wanted(objectives: &[Objective]) -> String {
    objectives.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// What all runs of a campaign have in common, from the first.
#[derive(Clone, Debug, Default)]
pub struct CampaignHeader {
    /// Of the load, without the option that the runs differ by.
    load: Vec<String>,
    /// The lines below that in the details.
    lines: String,
    /// The lines of the short report: labels and facts.
    short: Vec<crate::text::head::Labelled>,
    /// The percentiles that the plan requests; none for the usual ones.
    requested: Vec<Quantile>,
}

impl CampaignHeader {
    /// Of the first run, without the option that the runs differ by.
    pub fn of(summary: &Summary, varied: Option<&str>) -> Self {
        let (load, lines) = crate::details::header::of_campaign(summary, varied);
        let short = crate::text::head::of_campaign(summary, varied);
        Self { load, lines, short, requested: summary.record.plan.percentiles.clone() }
    }

    /// The percentiles of the tables, ascending. The p99 is always among them: the knee and the bars are of it.
    pub fn quantiles(&self) -> Vec<Quantile> {
        if self.requested.is_empty() {
            return QUANTILES.to_vec();
        }
        let mut quantiles = [self.requested.as_slice(), &[Quantile::P99]].concat();
        quantiles.sort_unstable();
        quantiles.dedup();
        quantiles
    }
}
