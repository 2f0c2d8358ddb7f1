//! A result read back: what a comparison needs of a `brunt.summary.v1`, typed.
//!
//! Not all of it, and not a summary, which has histograms. Only keys that every result of the schema has are relied upon; what
//! there were too few samples for is `None`, as it is `null` there. Invariant: a result that is read is whole, and an error names the
//! key that is not.

use crate::campaign;
use crate::json;
use brunt_plan::objective::{Metric, Statistic, Subject};
use brunt_plan::op::OpKind;
use brunt_plan::plan::Wait;
use brunt_plan::quantile::Quantile;
use brunt_stats::bound::Bounds;
use brunt_stats::summary::{LAG_SHARE_MAX, Summary};
use brunt_stats::verdict::Status;
use serde_json::{Map, Value};

/// The kind of campaign that holds several runs of one plan.
const REPEAT: &str = "repeat";

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
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
    /// Its verdict.
    pub status: Status,
    /// The checks that call for care or convict, of the run or of a percentile, by name.
    pub found: Vec<String>,
    /// The plan, with the keys of a plan file.
    pub plan: Map<String, Value>,
    /// Facts about the client's host.
    pub environment: Map<String, Value>,
    /// Processor time of the client per request, in nanoseconds.
    pub client_cpu_ns: Option<f64>,
    /// Processor time of the servers per request, in nanoseconds.
    pub server_cpu_ns: Option<f64>,
    /// What a wake-up after a sleep costs on the client's host, in nanoseconds; 0 where no worker sleeps.
    wake_up_ns: f64,
    /// Other hosts sent to the same servers, and how late they were in a busy period is not known.
    has_others: bool,
    total: Row,
    ops: Vec<(OpKind, Row)>,
}

/// The numbers of all requests, or of one kind.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    response: Latency,
    intervals: [Option<RunInterval>; Quantile::PRINTED.len()],
    service: Latency,
    /// Of all requests that ended the response times, failures included, and the same without what the client may have added, the
    /// queues of its late requests included; older results have none.
    all_and_least: Option<[Latency; 2]>,
    /// The client's own part at most, of every percentile.
    client_error: [Option<f64>; Quantile::PRINTED.len()],
    /// The most that a request was sent late.
    send_lag_max: Option<f64>,
    /// Of a closed loop, the share of the slots' time in which requests were late; 0 in older results.
    lag_share: f64,
    completed_per_s: f64,
    asked: u64,
    hit: u64,
    scheduled: u64,
    unsent: u64,
    /// Sent, or given up before that.
    judged: u64,
    /// Those of them that failed, as ERR has it.
    failed: u64,
    /// Sent ones that failed, and what was never sent or still in flight at the end.
    unanswered: u64,
}

/// Nanoseconds.
#[derive(Clone, Debug, PartialEq)]
struct Latency {
    mean: Option<f64>,
    max: Option<f64>,
    percentiles: [Option<f64>; Quantile::PRINTED.len()],
}

/// The 95 % confidence interval of a percentile within one run. What differs from run to run is not in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunInterval {
    /// The lower end in nanoseconds.
    pub low_ns: f64,
    /// The upper end; `None` where none was seen.
    pub high_ns: Option<f64>,
    /// Does it rest on too little?
    pub is_thin: bool,
}

impl RunResult {
    /// The result of a run that has just been made: what its JSON says.
    ///
    /// # Errors
    /// The plan cannot be written as JSON; for a user.
    pub fn of(summary: &Summary, source: &str) -> Result<Self, String> {
        let value = json::value(summary).map_err(|error| error.to_string())?;
        read_run(&value, source)
    }

    /// A number of the run; `None` where it does not give it.
    pub fn number(&self, subject: &Subject) -> Option<f64> {
        let row = self.row(subject.op)?;
        let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        match subject.metric {
            Metric::Response(statistic) => row.response.statistic(statistic),
            Metric::Service(statistic) => row.service.statistic(statistic),
            Metric::Rate => Some(row.completed_per_s),
            Metric::Hit => part(row.hit, row.asked),
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
            Metric::Response(_) | Metric::Service(_) if row.lag_share > LAG_SHARE_MAX => {
                return Some(Bounds::UNKNOWN);
            }
            Metric::Response(statistic) => {
                let with_failures = row.all_and_least.as_ref().and_then(|[all, _]| all.statistic(statistic));
                let high = row.most(statistic, with_failures.unwrap_or(measured).max(measured));
                (self.least_response(row, statistic, measured), high)
            }
            Metric::Service(statistic) => {
                let low = row.client_share(statistic).map(|share| measured - share - self.wake_up_ns);
                (low, row.most(statistic, measured))
            }
            Metric::Rate | Metric::Hit | Metric::Errors | Metric::Unsent => (Some(measured), measured),
        };
        Some(Bounds { low: low.unwrap_or(0.0).clamp(0.0, measured), high })
    }

    /// Did requests of this kind have no answer?
    pub fn has_unanswered(&self, op: Option<OpKind>) -> bool {
        self.row(op).is_some_and(|row| row.unanswered > 0)
    }

    /// What a statistic of the response time is at the least; `None` where nothing is known.
    fn least_response(&self, row: &Row, statistic: Statistic, measured: f64) -> Option<f64> {
        if row.all_and_least.is_none() {
            return row.client_share(statistic).map(|share| measured - share);
        }
        let elsewhere = if self.has_others { row.send_lag_max.unwrap_or(0.0) } else { 0.0 };
        Some(measured - row.busy_share(statistic)? - self.wake_up_ns - elsewhere)
    }

    /// The interval of a percentile of the response time, where the run has it.
    pub fn interval(&self, subject: &Subject) -> Option<RunInterval> {
        match subject.metric {
            Metric::Response(Statistic::Percentile(quantile)) => {
                self.row(subject.op)?.intervals[index_of(quantile)?]
            }
            _ => None,
        }
    }

    fn row(&self, op: Option<OpKind>) -> Option<&Row> {
        match op {
            None => Some(&self.total),
            Some(op) => self.ops.iter().find(|(held, _)| *held == op).map(|(_, row)| row),
        }
    }

    /// Is it the same measurement as another, from whichever file?
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.seed == other.seed && self.server == other.server && self.total == other.total
    }
}

impl Latency {
    fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Max => self.max,
            Statistic::Percentile(quantile) => self.percentiles[index_of(quantile)?],
        }
    }
}

impl Row {
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

    /// The same with the queues that late requests have built. Both distributions are of the same requests, as that of completed
    /// ones alone and the least times are not.
    fn busy_share(&self, statistic: Statistic) -> Option<f64> {
        let [all, least] = self.all_and_least.as_ref()?;
        Some((all.statistic(statistic)? - least.statistic(statistic)?).max(0.0))
    }
}

/// Where a percentile stands among those that a result has.
fn index_of(quantile: Quantile) -> Option<usize> {
    Quantile::PRINTED.iter().position(|held| *held == quantile)
}

/// Every run of a file: one of `brunt run --json`, several of `brunt run --repeat`.
///
/// # Errors
/// The text is no JSON, of another schema, or lacks a key; for a user, with the source and the key.
pub fn read(text: &str, source: &str) -> Result<Vec<RunResult>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{source}: no JSON: {error}"))?;
    let accepted = format!(
        "accepted: '{}' of brunt run --json, or '{}' of brunt run --repeat",
        json::SCHEMA,
        campaign::SCHEMA
    );
    match value["schema"].as_str() {
        Some(json::SCHEMA) => Ok(vec![read_run(&value, source)?]),
        Some(campaign::SCHEMA) => match (value["kind"].as_str(), value["runs"].as_array()) {
            (Some(REPEAT), Some(runs)) if !runs.is_empty() => {
                let numbered = runs.iter().enumerate();
                numbered.map(|(index, run)| read_run(run, &format!("{source}, run {}", index + 1))).collect()
            }
            (Some(REPEAT), _) => Err(format!("{source}: runs: there is none; {accepted}")),
            (kind, _) => {
                Err(format!("{source}: kind: '{}' was found; {accepted}", kind.unwrap_or("nothing")))
            }
        },
        found => Err(format!("{source}: schema: '{}' was found; {accepted}", found.unwrap_or("nothing"))),
    }
}

fn read_run(value: &Value, source: &str) -> Result<RunResult, String> {
    let result = At { value, path: String::new() };
    let read = || -> Result<RunResult, String> {
        match result.get("schema")?.text()?.as_str() {
            json::SCHEMA => {}
            other => return Err(format!("schema: '{other}' was found; accepted: '{}'", json::SCHEMA)),
        }
        let ops = result.get("ops")?.object()?.keys().map(|name| {
            let at = result.get("ops")?.get(name)?;
            let op = name.parse().map_err(|error: String| format!("{}: {error}", at.path))?;
            Ok((op, row(&at)?))
        });
        let (status, found) = verdict(&result.get("verdict")?)?;
        // Older results, and runs that did not ask the servers, have no such key.
        let server_cpu_ns = value.pointer("/server_stats/window/cpu_ns_per_request").and_then(Value::as_f64);
        let is_spinning = value.pointer("/client/wait").and_then(Value::as_str) == Some(Wait::Spin.name());
        let wake_up_ns = value.pointer("/client/host/wake_up_ns").and_then(Value::as_f64).unwrap_or(0.0);
        let has_others = value["agents"].as_array().is_some_and(|agents| !agents.is_empty());
        Ok(RunResult {
            source: source.to_owned(),
            version: result.get("version")?.text()?,
            seed: result.get("seed")?.count()?,
            server: result.get("server")?.text()?,
            duration_ns: result.get("duration_ns")?.count()?,
            interrupted: result.get("interrupted")?.flag()?,
            status,
            found,
            plan: result.get("plan")?.object()?.clone(),
            environment: result.get("environment")?.object()?.clone(),
            client_cpu_ns: result.get("client")?.get("cpu_ns_per_request")?.number_or_null()?,
            server_cpu_ns,
            wake_up_ns: if is_spinning { 0.0 } else { wake_up_ns },
            has_others,
            total: row(&result)?,
            ops: ops.collect::<Result<_, String>>()?,
        })
    };
    read().map_err(|error| format!("{source}: {error}"))
}

fn verdict(at: &At<'_>) -> Result<(Status, Vec<String>), String> {
    let status = at.get("status")?;
    let name = status.text()?;
    let all = [Status::Trusted, Status::Caution, Status::NotTrusted];
    let known = all.into_iter().find(|known| known.name() == name);
    let known = known.ok_or_else(|| format!("{}: '{name}' is no status", status.path))?;
    let mut found = Vec::new();
    for (index, check) in at.get("checks")?.list()?.iter().enumerate() {
        let check = At { value: check, path: format!("verdict.checks[{index}]") };
        // Older results know of neither.
        let is_so = |key: &str| check.value[key].as_bool() == Some(true);
        let counts = !is_so("cause") && !is_so("allowed");
        if counts && matches!(check.get("status")?.text()?.as_str(), "caution" | "not_trusted") {
            found.push(check.get("id")?.text()?);
        }
    }
    // A percentile may be in doubt by a check that the run has passed. Older results have none of these.
    let percentiles = at.value["percentiles"].as_object().into_iter().flat_map(Map::values);
    for trust in
        percentiles.filter(|trust| matches!(trust["status"].as_str(), Some("caution" | "not_trusted")))
    {
        let check = trust["check"].as_str().unwrap_or_default();
        if !check.is_empty() && !found.iter().any(|held| held == check) {
            found.push(check.to_owned());
        }
    }
    Ok((known, found))
}

fn row(at: &At<'_>) -> Result<Row, String> {
    // Older results have no such key, and nothing was given up.
    let given_up = at.value.pointer("/requests/given_up").and_then(Value::as_u64).unwrap_or(0);
    let (requests, keys, latency) = (at.get("requests")?, at.get("keys")?, at.get("latency")?);
    let all_and_least = || -> Result<_, String> {
        Ok([read_latency(&latency.get("including_failures_ns")?)?, read_latency(&latency.get("least_ns")?)?])
    };
    let has_least = latency.value.get("least_ns").is_some();
    let failed = requests.get("error")?.count()?
        + requests.get("timeout")?.count()?
        + requests.get("lost")?.count()?
        + given_up;
    let unsent = requests.get("unsent")?.count()?;
    Ok(Row {
        response: read_latency(&latency.get("response_ns")?)?,
        intervals: read_intervals(&latency)?,
        service: read_latency(&latency.get("service_ns")?)?,
        all_and_least: has_least.then(all_and_least).transpose()?,
        client_error: read_percentiles(&latency.get("client_error_ns")?)?,
        send_lag_max: latency.get("send_lag_ns")?.get("max")?.number_or_null()?,
        lag_share: latency.value["lag_share"].as_f64().unwrap_or(0.0),
        completed_per_s: at.get("rate")?.get("completed")?.number()?,
        asked: keys.get("asked")?.count()?,
        hit: keys.get("hit")?.count()?,
        scheduled: requests.get("scheduled")?.count()?,
        unsent,
        judged: requests.get("sent")?.count()? + given_up,
        failed,
        // What was given up was never sent.
        unanswered: failed - given_up + unsent + requests.get("in_flight")?.count()?,
    })
}

fn read_latency(at: &At<'_>) -> Result<Latency, String> {
    let (mean, max) = (at.get("mean")?.number_or_null()?, at.get("max")?.number_or_null()?);
    Ok(Latency { mean, max, percentiles: read_percentiles(at)? })
}

fn read_percentiles(at: &At<'_>) -> Result<[Option<f64>; Quantile::PRINTED.len()], String> {
    let mut percentiles = [None; Quantile::PRINTED.len()];
    for (held, quantile) in percentiles.iter_mut().zip(Quantile::PRINTED) {
        *held = at.get(&quantile.key())?.number_or_null()?;
    }
    Ok(percentiles)
}

/// Only percentiles that are given have one, and those of a long enough window.
fn read_intervals(at: &At<'_>) -> Result<[Option<RunInterval>; Quantile::PRINTED.len()], String> {
    let (ends, basis) = (at.get("interval_ns")?, at.get("interval_basis")?);
    let mut intervals = [None; Quantile::PRINTED.len()];
    for (held, quantile) in intervals.iter_mut().zip(Quantile::PRINTED) {
        let key = quantile.key();
        if !ends.object()?.contains_key(&key) {
            continue;
        }
        let at = ends.get(&key)?;
        let [low, high] = at.list()? else { return Err(at.is_no("interval")) };
        let end = |value| At { value, path: at.path.clone() };
        *held = Some(RunInterval {
            low_ns: end(low).number()?,
            high_ns: end(high).number_or_null()?,
            is_thin: basis.get(&key)?.get("thin")?.flag()?,
        });
    }
    Ok(intervals)
}

/// A value with the way to it, for errors.
struct At<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    fn get(&self, key: &str) -> Result<At<'a>, String> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let found = self.value.get(key).ok_or_else(|| format!("{path}: missing"));
        found.map(|value| At { value, path })
    }

    fn is_no(&self, what: &str) -> String {
        format!("{}: {} is no {what}", self.path, shortened(self.value))
    }

    fn text(&self) -> Result<String, String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.is_no("text"))
    }

    fn flag(&self) -> Result<bool, String> {
        self.value.as_bool().ok_or_else(|| self.is_no("true or false"))
    }

    fn count(&self) -> Result<u64, String> {
        self.value.as_u64().ok_or_else(|| self.is_no("count"))
    }

    fn number(&self) -> Result<f64, String> {
        let number = self.value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.is_no("number from 0 on"))
    }

    fn number_or_null(&self) -> Result<Option<f64>, String> {
        if self.value.is_null() { Ok(None) } else { self.number().map(Some) }
    }

    fn object(&self) -> Result<&'a Map<String, Value>, String> {
        self.value.as_object().ok_or_else(|| self.is_no("object"))
    }

    fn list(&self) -> Result<&'a [Value], String> {
        self.value.as_array().map(Vec::as_slice).ok_or_else(|| self.is_no("list"))
    }
}

/// A value of somebody else's for a message.
pub(crate) fn shortened(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = crate::paragraph::printable(&text);
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
