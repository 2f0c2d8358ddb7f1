//! The result of one run with its source, as comparisons take it: just measured, or read from a file.
//!
//! Not a summary, of which a comparison of a hundred runs could not keep the histograms. Invariant: of a file it is what it was of the run.

use crate::campaign;
use crate::json::row::Distribution;
use crate::json::{self, ResultTree, Row};
use crate::stored::StoredResult;
use crate::text::make_printable;
use brunt_plan::objective::{Metric, Statistic, Subject};
use brunt_plan::op::OpName;
use brunt_plan::quantile::Quantile;
use brunt_stats::bound::Bounds;
use brunt_stats::op_summary::LAG_SHARE_MAX;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of campaign that holds several runs of one plan.
const REPEAT: &str = "repeat";

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Where it comes from, for a reader: a file, or a run by number.
    pub source: String,
    /// Its numbers: a result without `intervals` and `record`.
    #[schemars(schema_with = "json::reference")]
    pub result: ResultTree,
}

impl RunResult {
    /// Reads the numbers from a summary.
    ///
    /// # Errors
    /// The plan cannot be written as JSON; for a user.
    pub fn of(summary: &Summary, source: &str) -> Result<Self, String> {
        let printable = || {
            let mut value = serde_json::to_value(ResultTree::without_record(summary)?)?;
            make_printable(&mut value);
            serde_json::from_value(value)
        };
        let result = printable().map_err(|error: serde_json::Error| error.to_string())?;
        Ok(Self { source: source.to_owned(), result })
    }

    /// Its status.
    pub fn status(&self) -> Status {
        self.result.status.status.status
    }

    /// The checks that call for care or are invalid, by name, the worst first.
    pub fn findings(&self) -> Vec<&'static str> {
        self.result.status.status.findings().into_iter().map(|check| check.id.name()).collect()
    }

    /// A number of the run; `None` where it does not give it.
    pub fn number(&self, subject: &Subject) -> Option<f64> {
        let Row { counts, latency, .. } = self.row(subject.op)?;
        let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let requests = &counts.requests;
        match subject.metric {
            Metric::Response(statistic) => latency.response_ns.statistic(statistic),
            Metric::Service(statistic) => latency.service_ns.statistic(statistic),
            Metric::Client(quantile) => {
                latency.response_ns.client.get(&quantile.to_string()).copied().flatten().map(|ns| ns as f64)
            }
            Metric::Rate => Some(counts.rate.completed),
            Metric::Hit => part(counts.keys.hit, counts.keys.requested),
            Metric::Errors => {
                part(requests.failed() + requests.abandoned, requests.sent + requests.abandoned)
            }
            Metric::Unsent => part(requests.unsent, requests.scheduled),
        }
    }

    /// Between these a number lies, whatever the client did, and wherever requests without an answer belong: above all others. As
    /// `brunt_stats::bound` has them, but without the confidence interval, because the samples of a comparison are whole runs.
    pub fn bounds(&self, subject: &Subject) -> Option<Bounds> {
        let measured = self.number(subject)?;
        let row = self.row(subject.op)?;
        let (low, high) = match subject.metric {
            Metric::Response(_) | Metric::Service(_) if row.latency.lag_fraction > LAG_SHARE_MAX => {
                return Some(Bounds::UNKNOWN);
            }
            Metric::Response(statistic) => {
                let with_failures = row.latency.including_failures_ns.statistic(statistic);
                let high = row.most(statistic, with_failures.unwrap_or(measured).max(measured));
                (self.least_response(row, statistic, measured), high)
            }
            Metric::Service(statistic) => {
                let low = row.client_share(statistic).map(|share| measured - share);
                (low, row.most(statistic, measured))
            }
            Metric::Client(_) | Metric::Rate | Metric::Hit | Metric::Errors | Metric::Unsent => {
                (Some(measured), measured)
            }
        };
        Some(Bounds { low: low.unwrap_or(0.0).clamp(0.0, measured), high })
    }

    /// A percentile of the response times of all requests in nanoseconds.
    pub(crate) fn response(&self, quantile: Quantile) -> Option<f64> {
        self.result.row.latency.response_ns.statistic(Statistic::Percentile(quantile))
    }

    /// Did requests of this kind have no answer?
    pub fn has_unanswered(&self, op: Option<OpName>) -> bool {
        self.row(op).is_some_and(|row| row.unanswered() > 0)
    }

    /// What a statistic of the response time is at the least; `None` where nothing is known.
    fn least_response(&self, row: &Row, statistic: Statistic, measured: f64) -> Option<f64> {
        // Other hosts sent to the same servers, and how late they were in a busy period is not known.
        let elsewhere = if self.result.client.agents.is_empty() { None } else { row.latency.send_lag_ns.max };
        Some(measured - row.busy_share(statistic)? - elsewhere.unwrap_or(0) as f64)
    }

    /// The share of the requests due that was answered; `None` where none was due.
    pub(crate) fn answered(&self) -> Option<f64> {
        let row = &self.result.row;
        let scheduled = row.counts.requests.scheduled;
        (scheduled > 0).then(|| 1.0 - row.unanswered() as f64 / scheduled as f64)
    }

    fn row(&self, op: Option<OpName>) -> Option<&Row> {
        match op {
            None => Some(&self.result.row),
            Some(op) => self.result.row.ops.get(op.as_str()),
        }
    }

    /// The operations that it has rows of.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &str> {
        self.result.row.ops.keys().map(String::as_str)
    }

    /// Is it the same measurement as another, from whichever file?
    pub fn is_same_run(&self, other: &Self) -> bool {
        let is_same = |key: &str| self.result.plan.get(key) == other.result.plan.get(key);
        is_same("seed")
            && self.result.host.server == other.result.host.server
            && self.result.row == other.result.row
    }
}

impl Row {
    /// Requests without an answer: sent ones that failed, and what was never sent or still in flight at the end.
    fn unanswered(&self) -> u64 {
        self.counts.requests.failed() + self.counts.requests.unsent + self.counts.requests.in_flight
    }

    /// A statistic of the answered requests, or no bound where those that had no answer, which are above all others, decide it.
    fn most(&self, statistic: Statistic, of_answered: f64) -> f64 {
        let above = match statistic {
            Statistic::Percentile(quantile) => quantile.share_above() * self.counts.requests.scheduled as f64,
            Statistic::Mean | Statistic::Max => 0.0,
        };
        if self.unanswered() as f64 > above { f64::INFINITY } else { of_answered }
    }

    /// The most that the client may have added to a statistic of the response time, and so of the service time. Only percentiles
    /// have one of their own; with the queues of late requests it is no less.
    fn client_share(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Percentile(quantile) => {
                let error_ns = self.latency.response_ns.client.get(&quantile.to_string());
                error_ns.copied().flatten().map(|ns| ns as f64)
            }
            Statistic::Mean | Statistic::Max => self.busy_share(statistic),
        }
    }

    /// What the client may have added to a statistic, including queues that late requests have built. Both distributions are of the same
    /// requests, as that of completed ones alone and the least times are not.
    fn busy_share(&self, statistic: Statistic) -> Option<f64> {
        let of = |times: &Distribution| times.statistic(statistic);
        Some((of(&self.latency.including_failures_ns)? - of(&self.latency.least_ns)?).max(0.0))
    }
}

/// Every run of a file: one of `brunt run -o json`, several of `brunt run --repeat`.
///
/// # Errors
/// The text is no JSON, of another schema, or damaged; for a user, with the source.
pub fn read(text: &str, source: &str) -> Result<Vec<RunResult>, String> {
    let result = StoredResult::parse(text, source)?;
    let accepted = format!(
        "accepted: '{}' of brunt run -o json, or '{}' of brunt run --repeat",
        json::SCHEMA,
        campaign::SCHEMA
    );
    match (result.schema(), result.kind()) {
        (Some(json::SCHEMA), _) => Ok(vec![RunResult::of(&result.summary()?, source)?]),
        (Some(campaign::SCHEMA), Some(REPEAT)) => {
            let runs = result.runs();
            if runs.is_empty() {
                return Err(format!("{source}: runs: there is none; {accepted}"));
            }
            runs.iter().map(|run| RunResult::of(&run.summary()?, run.source())).collect()
        }
        (Some(campaign::SCHEMA), kind) => {
            Err(format!("{source}: kind: '{}' was found; {accepted}", kind.unwrap_or("nothing")))
        }
        (found, _) => {
            Err(format!("{source}: schema: '{}' was found; {accepted}", found.unwrap_or("nothing")))
        }
    }
}
