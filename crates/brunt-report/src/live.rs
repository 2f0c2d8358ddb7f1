//! A run while it goes on, as reports have it: how far it is, and what it has come to. [`crate::metrics`] writes that for scrapers, [`write_json`]
//! for programs (`brunt.live.v1`; docs/live.schema.json has every key), [`crate::html::Page::live`] for browsers.
//!
//! Invariant: page, metrics and JSON are functions of one [`State`]. Page and JSON of a run that has ended are those of its result, and not
//! made here.

use crate::json::row::{Distribution, Requests};
use crate::json::write_indented;
use brunt_plan::phase::Phase;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::observer::RunPosition;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::summary::{PhaseSummary, Summary};
use serde_json::{Value, json};
use std::io::{self, Write};

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum State<'a> {
    /// No run has begun.
    Starting,
    /// It goes on.
    Running(&'a RunSoFar),
    /// It failed.
    Failed(&'a RunSoFar),
    /// It has ended.
    Ended(&'a Summary),
}

impl<'a> State<'a> {
    /// Every name.
    pub(crate) const NAMES: [&'static str; Phase::COUNT + 3] = [
        "starting",
        Phase::Connect.name(),
        Phase::Preload.name(),
        Phase::Warmup.name(),
        Phase::Measure.name(),
        Phase::Drain.name(),
        "failed",
        "ended",
    ];

    /// As a value in JSON and in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running(so_far) => so_far.phase.name(),
            Self::Failed(_) => "failed",
            Self::Ended(_) => "ended",
        }
    }

    /// The run at the end of its last second, unless it has ended.
    pub(crate) const fn so_far(self) -> Option<&'a RunSoFar> {
        match self {
            Self::Running(so_far) | Self::Failed(so_far) => Some(so_far),
            Self::Starting | Self::Ended(_) => None,
        }
    }

    /// What it came to, or has come to so far.
    pub(crate) fn summary(self) -> Option<&'a Summary> {
        match self {
            Self::Ended(summary) => Some(summary),
            _ => self.so_far().map(RunSoFar::summary),
        }
    }
}

/// The name of the schema.
pub const SCHEMA: &str = "brunt.live.v1";

/// Writes the run, or that none has begun, as one indented JSON object, and a line end. `place` is the run's among those of its command.
///
/// # Errors
/// What `out` returns.
pub fn write_json(state: State<'_>, place: &RunPosition, out: &mut dyn Write) -> io::Result<()> {
    let mut value = json!({ "schema": SCHEMA, "state": state.name() });
    if let (Some(so_far), Value::Object(keys)) = (state.so_far(), &mut value)
        && let Value::Object(numbers) = numbers(so_far, place)?
    {
        keys.extend(numbers);
    }
    write_indented(value, out)
}

fn numbers(so_far: &RunSoFar, place: &RunPosition) -> serde_json::Result<Value> {
    let (summary, record) = (so_far.summary(), &so_far.summary().record);
    let latency = &summary.total.latency;
    let end_ns = so_far.window.map(|window| window.end_ns).filter(|end_ns| *end_ns != u64::MAX);
    let mut connections = json!(summary.connections);
    connections["pending"] = json!(summary.connections.pending());
    connections["open"] = json!(summary.connections.open());
    let phase = |held: &PhaseSummary| {
        let counts = &held.counts;
        let value = json!({ "requests": requests_so_far(&counts.requests), "keys": counts.keys, "bytes": held.bytes });
        (held.phase.name().to_owned(), value)
    };
    Ok(json!({
        "version": record.environment.brunt_version,
        "run": { "number": place.before + 1, "of": place.of, "label": place.label },
        "seed": record.plan.seed,
        "data_seed": record.plan.data_seed,
        "server": record.server,
        "plan": serde_json::to_value(&record.plan.spec)?,
        "elapsed_ns": so_far.at_ns,
        "duration_ns": summary.window.duration_ns(),
        "to_go_ns": end_ns.map(|end_ns| end_ns.saturating_sub(so_far.at_ns)),
        "requests": requests_so_far(&summary.total.requests),
        "keys": summary.total.keys,
        "rate": summary.total.rate,
        "bytes": summary.bytes(),
        "phases": summary.phases.iter().map(phase).collect::<Value>(),
        "latency": {
            "response_ns": Distribution::from(&latency.response.summary),
            "service_ns": Distribution::from(&latency.service.summary),
        },
        "connections": connections,
    }))
}

/// The counts add up while a run goes on, too: what was sent and has not ended is in flight.
fn requests_so_far(counts: &RequestCounts) -> Requests {
    Requests::from(&RequestCounts { in_flight: counts.sent.saturating_sub(counts.ended()), ..*counts })
}
