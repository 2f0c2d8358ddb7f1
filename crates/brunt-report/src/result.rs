//! What a comparison needs of a run: a few numbers of its summary, whether that was just made or is in a file.
//!
//! Not a summary, of which a comparison of a hundred runs could not keep the histograms. What there were too few samples for is `None`.
//! Invariant: of a file it is what it was of the run.

use crate::campaign;
use crate::cost::RequestCost;
use crate::json;
use crate::paragraph::{beginning, printable};
use crate::server;
use crate::stored::StoredResult;
use brunt_plan::objective::{Metric, Statistic, Subject};
use brunt_plan::op_name::OpName;
use brunt_plan::quantile::Quantile;
use brunt_stats::bound::Bounds;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::{LAG_SHARE_MAX, OpSummary};
use brunt_stats::run_record::RunRecord;
use brunt_stats::status::{RunStatus, Status};
use brunt_stats::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The kind of campaign that holds several runs of one plan.
const REPEAT: &str = "repeat";

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Where it comes from, for a reader: a file, or a run by number.
    pub source: String,
    /// The version of brunt that measured it.
    pub version: String,
    /// Its seed.
    pub seed: u64,
    /// The server, in a line.
    pub server: String,
    /// Length of its measured window, in nanoseconds.
    pub duration_ns: u64,
    /// Was it cut short?
    pub interrupted: bool,
    /// Its status.
    pub status: Status,
    /// The checks that call for care or are invalid, by name.
    pub found: Vec<String>,
    /// The plan, with the keys of a plan file.
    pub plan: Map<String, Value>,
    /// Facts about the client's host.
    pub environment: Map<String, Value>,
    /// Processor time of the client per request, in nanoseconds.
    pub client_cpu_ns: Option<f64>,
    /// Processor time of the servers per request, in nanoseconds.
    pub server_cpu_ns: Option<f64>,
    /// Other hosts sent to the same servers, and how late they were in a busy period is not known.
    has_others: bool,
    /// Does any class send by a schedule?
    pub(crate) is_open_loop: bool,
    total: Row,
    ops: Vec<(OpName, Row)>,
}

/// The numbers of all requests, or of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    response: Latency,
    service: Latency,
    /// Of all requests that ended the response times, failures included, and the same without what the client may have added, the
    /// queues of its late requests included.
    all_and_least: [Latency; 2],
    /// The client's own part at most, of every percentile.
    client_error: [Option<f64>; Quantile::PRINTED.len()],
    /// The most that a request was sent late.
    send_lag_max: Option<f64>,
    /// Of a closed loop, the share of the slots' time in which requests were late.
    lag_fraction: f64,
    completed_per_s: f64,
    requested: u64,
    hit: u64,
    scheduled: u64,
    unsent: u64,
    /// Sent, or given up before that.
    judged: u64,
    /// Requests of `judged` that failed, as ERR counts them.
    failed: u64,
    /// Sent ones that failed, and what was never sent or still in flight at the end.
    unanswered: u64,
}

/// Nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Latency {
    mean: Option<f64>,
    max: Option<f64>,
    percentiles: [Option<f64>; Quantile::PRINTED.len()],
}

impl RunResult {
    /// Reads these numbers from a summary.
    ///
    /// # Errors
    /// The plan cannot be written as JSON; for a user.
    pub fn of(summary: &Summary, source: &str) -> Result<Self, String> {
        let RunRecord { plan, run, environment, server, agents, .. } = &summary.record;
        let value = serde_json::to_value(&plan.spec).map_err(|error| error.to_string())?;
        let Value::Object(options) = value else { return Err("a plan that is no table".to_owned()) };
        let facts = environment.facts.iter().map(|(name, fact)| (name.clone(), json!(fact)));
        let server_cpu_ns =
            server::window(summary).and_then(|span| span.cpu_ns_per_request()).map(f64::round);
        Ok(Self {
            source: source.to_owned(),
            version: environment.brunt_version.clone(),
            seed: plan.seed,
            server: server.clone(),
            duration_ns: summary.window.duration_ns(),
            interrupted: run.interrupted,
            status: summary.status.status,
            found: found(&summary.status),
            plan: options,
            environment: facts.collect(),
            client_cpu_ns: RequestCost::of(summary).map(|cost| cost.cpu_working_ns().round()),
            server_cpu_ns,
            has_others: !agents.is_empty(),
            is_open_loop: plan.has_open_loop(),
            total: Row::of(&summary.total),
            ops: summary.ops.iter().map(|row| (row.name, Row::of(&row.summary))).collect(),
        })
    }

    /// A number of the run; `None` where it does not give it.
    pub fn number(&self, subject: &Subject) -> Option<f64> {
        let row = self.row(subject.op)?;
        let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        match subject.metric {
            Metric::Response(statistic) => row.response.statistic(statistic),
            Metric::Service(statistic) => row.service.statistic(statistic),
            Metric::Rate => Some(row.completed_per_s),
            Metric::Hit => part(row.hit, row.requested),
            Metric::Errors => part(row.failed, row.judged),
            Metric::Unsent => part(row.unsent, row.scheduled),
        }
    }

    /// Between these a number lies, whatever the client did, and wherever requests without an answer belong: above all others. As
    /// `brunt_stats::bound` has them, but without the confidence interval, because the samples of a comparison are whole runs.
    pub fn bounds(&self, subject: &Subject) -> Option<Bounds> {
        let measured = self.number(subject)?;
        let row = self.row(subject.op)?;
        let (low, high) = match subject.metric {
            Metric::Response(_) | Metric::Service(_) if row.lag_fraction > LAG_SHARE_MAX => {
                return Some(Bounds::UNKNOWN);
            }
            Metric::Response(statistic) => {
                let with_failures = row.all_and_least[0].statistic(statistic);
                let high = row.most(statistic, with_failures.unwrap_or(measured).max(measured));
                (self.least_response(row, statistic, measured), high)
            }
            Metric::Service(statistic) => {
                let low = row.client_share(statistic).map(|share| measured - share);
                (low, row.most(statistic, measured))
            }
            Metric::Rate | Metric::Hit | Metric::Errors | Metric::Unsent => (Some(measured), measured),
        };
        Some(Bounds { low: low.unwrap_or(0.0).clamp(0.0, measured), high })
    }

    /// A percentile of the response times of all requests in nanoseconds.
    pub(crate) fn response(&self, quantile: Quantile) -> Option<f64> {
        self.total.response.statistic(Statistic::Percentile(quantile))
    }

    /// Did requests of this kind have no answer?
    pub fn has_unanswered(&self, op: Option<OpName>) -> bool {
        self.row(op).is_some_and(|row| row.unanswered > 0)
    }

    /// What a statistic of the response time is at the least; `None` where nothing is known.
    fn least_response(&self, row: &Row, statistic: Statistic, measured: f64) -> Option<f64> {
        let elsewhere = if self.has_others { row.send_lag_max.unwrap_or(0.0) } else { 0.0 };
        Some(measured - row.busy_share(statistic)? - elsewhere)
    }

    /// The share of the requests due that was answered; `None` where none was due.
    pub(crate) fn answered(&self) -> Option<f64> {
        let Row { scheduled, unanswered, .. } = self.total;
        (scheduled > 0).then(|| 1.0 - unanswered as f64 / scheduled as f64)
    }

    fn row(&self, op: Option<OpName>) -> Option<&Row> {
        match op {
            None => Some(&self.total),
            Some(op) => self.ops.iter().find(|(held, _)| *held == op).map(|(_, row)| row),
        }
    }

    /// The operations that it has rows of.
    pub(crate) fn operations(&self) -> impl Iterator<Item = OpName> {
        self.ops.iter().map(|(name, _)| *name)
    }

    /// Is it the same measurement as another, from whichever file?
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.seed == other.seed && self.server == other.server && self.total == other.total
    }
}

impl Latency {
    fn of(summary: &LatencySummary) -> Self {
        Self {
            // To the nanosecond, as it is printed.
            mean: summary.mean_ns.map(f64::round),
            max: whole(summary.max_ns),
            percentiles: Quantile::PRINTED.map(|quantile| whole(summary.percentile_ns(quantile))),
        }
    }

    fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Max => self.max,
            Statistic::Percentile(quantile) => self.percentiles[index_of(quantile)?],
        }
    }
}

impl Row {
    fn of(summary: &OpSummary) -> Self {
        let OpSummary { requests, keys, latency, .. } = summary;
        let (failed, judged) = requests.faulty();
        Self {
            response: Latency::of(&latency.response.summary),
            service: Latency::of(&latency.service.summary),
            all_and_least: [Latency::of(&summary.including_failures()), Latency::of(&latency.least.summary)],
            client_error: Quantile::PRINTED.map(|quantile| whole(summary.client_error_ns(quantile))),
            send_lag_max: whole(latency.send_lag.summary.max_ns),
            lag_fraction: summary.lag_fraction,
            completed_per_s: summary.rate.completed,
            requested: keys.requested,
            hit: keys.hit,
            scheduled: requests.scheduled,
            unsent: requests.unsent,
            judged,
            failed,
            // What was given up was never sent.
            unanswered: failed - requests.abandoned + requests.unsent + requests.in_flight,
        }
    }

    /// A statistic of the answered requests, or no bound where those that had no answer, which are above all others, decide it.
    fn most(&self, statistic: Statistic, of_answered: f64) -> f64 {
        let above = match statistic {
            Statistic::Percentile(quantile) => quantile.share_above() * self.scheduled as f64,
            Statistic::Mean | Statistic::Max => 0.0,
        };
        if self.unanswered as f64 > above { f64::INFINITY } else { of_answered }
    }

    /// The most that the client may have added to a statistic of the response time, and so of the service time. Only percentiles
    /// have one of their own; with the queues of late requests it is no less.
    fn client_share(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Percentile(quantile) => self.client_error[index_of(quantile)?],
            Statistic::Mean | Statistic::Max => self.busy_share(statistic),
        }
    }

    /// What the client may have added to a statistic, including queues that late requests have built. Both distributions are of the same requests, as that of completed
    /// ones alone and the least times are not.
    fn busy_share(&self, statistic: Statistic) -> Option<f64> {
        let [all, least] = &self.all_and_least;
        Some((all.statistic(statistic)? - least.statistic(statistic)?).max(0.0))
    }
}

fn whole(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64)
}

/// Where a percentile is among those that a result has.
fn index_of(quantile: Quantile) -> Option<usize> {
    Quantile::PRINTED.iter().position(|held| *held == quantile)
}

/// The checks that call for care or are invalid.
fn found(status: &RunStatus) -> Vec<String> {
    status.findings().into_iter().map(|check| check.id.name().to_owned()).collect()
}

/// Every run of a file: one of `brunt run --json`, several of `brunt run --repeat`.
///
/// # Errors
/// The text is no JSON, of another schema, or damaged; for a user, with the source.
pub fn read(text: &str, source: &str) -> Result<Vec<RunResult>, String> {
    let result = StoredResult::parse(text, source)?;
    let accepted = format!(
        "accepted: '{}' of brunt run --json, or '{}' of brunt run --repeat",
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

/// A value of another file, shortened for a message.
pub(crate) fn shortened(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    beginning(&printable(&text), 60)
}

#[cfg(test)]
pub(crate) mod from_keys;
