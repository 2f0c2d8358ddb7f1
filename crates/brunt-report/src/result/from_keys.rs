//! Runs for tests of comparisons, from the keys of a result, which say a number more shortly than a run that comes to it.
//!
//! Not how results are read: files have a record.

use super::{Latency, Row, RunInterval, RunResult, shortened};
use brunt_plan::plan::Wait;
use brunt_plan::quantile::Quantile;
use brunt_stats::verdict::Status;
use serde_json::{Map, Value};

/// The run that keys say there was.
pub(crate) fn run(value: &Value, source: &str) -> Result<RunResult, String> {
    let result = ValueAt { value, path: String::new() };
    let read = || -> Result<RunResult, String> {
        let ops = result.get("ops")?.object()?.keys().map(|name| {
            let at = result.get("ops")?.get(name)?;
            let op = name.parse().map_err(|error: String| format!("{}: {error}", at.path))?;
            Ok((op, row(&at)?))
        });
        let (status, found) = verdict(&result.get("verdict")?)?;
        // Runs that did not ask the servers have no such key.
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

fn verdict(at: &ValueAt<'_>) -> Result<(Status, Vec<String>), String> {
    let status = at.get("status")?;
    let name = status.text()?;
    let all = [Status::Trusted, Status::Caution, Status::NotTrusted];
    let known = all.into_iter().find(|known| known.name() == name);
    let known = known.ok_or_else(|| format!("{}: '{name}' is no status", status.path))?;
    let mut found = Vec::new();
    for (index, check) in at.get("checks")?.list()?.iter().enumerate() {
        let check = ValueAt { value: check, path: format!("verdict.checks[{index}]") };
        // Older results say it in two keys, or not at all.
        let is_so = |key: &str| check.value[key].as_bool();
        let counts =
            is_so("counts").unwrap_or(is_so("cause") != Some(true) && is_so("allowed") != Some(true));
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

fn row(at: &ValueAt<'_>) -> Result<Row, String> {
    let abandoned = at.get("requests")?.get("abandoned")?.count()?;
    let (requests, keys, latency) = (at.get("requests")?, at.get("keys")?, at.get("latency")?);
    let all_and_least =
        [read_latency(&latency.get("including_failures_ns")?)?, read_latency(&latency.get("least_ns")?)?];
    let failed = requests.get("error")?.count()?
        + requests.get("timeout")?.count()?
        + requests.get("lost")?.count()?
        + abandoned;
    let unsent = requests.get("unsent")?.count()?;
    Ok(Row {
        response: read_latency(&latency.get("response_ns")?)?,
        intervals: read_intervals(&latency)?,
        service: read_latency(&latency.get("service_ns")?)?,
        all_and_least,
        client_error: read_percentiles(&latency.get("client_error_ns")?)?,
        send_lag_max: latency.get("send_lag_ns")?.get("max")?.number_or_null()?,
        lag_fraction: latency.value["lag_fraction"].as_f64().unwrap_or(0.0),
        completed_per_s: at.get("rate")?.get("completed")?.number()?,
        requested: keys.get("requested")?.count()?,
        hit: keys.get("hit")?.count()?,
        scheduled: requests.get("scheduled")?.count()?,
        unsent,
        judged: requests.get("sent")?.count()? + abandoned,
        failed,
        // What was given up was never sent.
        unanswered: failed - abandoned + unsent + requests.get("in_flight")?.count()?,
    })
}

fn read_latency(at: &ValueAt<'_>) -> Result<Latency, String> {
    let (mean, max) = (at.get("mean")?.number_or_null()?, at.get("max")?.number_or_null()?);
    Ok(Latency { mean, max, percentiles: read_percentiles(at)? })
}

fn read_percentiles(at: &ValueAt<'_>) -> Result<[Option<f64>; Quantile::PRINTED.len()], String> {
    let mut percentiles = [None; Quantile::PRINTED.len()];
    for (held, quantile) in percentiles.iter_mut().zip(Quantile::PRINTED) {
        *held = at.get(&quantile.key())?.number_or_null()?;
    }
    Ok(percentiles)
}

/// Only percentiles that are given have one, and those of a long enough window.
fn read_intervals(at: &ValueAt<'_>) -> Result<[Option<RunInterval>; Quantile::PRINTED.len()], String> {
    let (ends, basis) = (at.get("interval_ns")?, at.get("interval_basis")?);
    let mut intervals = [None; Quantile::PRINTED.len()];
    for (held, quantile) in intervals.iter_mut().zip(Quantile::PRINTED) {
        let key = quantile.key();
        if !ends.object()?.contains_key(&key) {
            continue;
        }
        let at = ends.get(&key)?;
        let [low, high] = at.list()? else { return Err(at.is_no("interval")) };
        let end = |value| ValueAt { value, path: at.path.clone() };
        *held = Some(RunInterval {
            low_ns: end(low).number()?,
            high_ns: end(high).number_or_null()?,
            is_thin: basis.get(&key)?.get("thin")?.flag()?,
        });
    }
    Ok(intervals)
}

/// A value with the way to it, for errors.
struct ValueAt<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> ValueAt<'a> {
    fn get(&self, key: &str) -> Result<ValueAt<'a>, String> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let found = self.value.get(key).ok_or_else(|| format!("{path}: missing"));
        found.map(|value| ValueAt { value, path })
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
