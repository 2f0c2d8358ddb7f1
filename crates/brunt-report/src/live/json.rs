//! The schema `brunt.live.v1`: a run that goes on, as JSON for programs.
//!
//! Not a result, which is [`crate::json`]'s and has far more. What both have is called the same and means the same, so far as the run has
//! come. docs/live.schema.json has every key.

use super::{LiveRun, State};
use crate::indented;
use crate::json::{distribution, object, requests};
use brunt_plan::phase::Phase;
use brunt_stats::request_counts::{OpCounts, RequestCounts};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The name of the schema.
pub const SCHEMA: &str = "brunt.live.v1";

/// Writes the run, or that none has begun, as one indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write(run: Option<&LiveRun>, out: &mut dyn Write) -> io::Result<()> {
    let value = match run {
        Some(run) => value(run)?,
        None => json!({ "schema": SCHEMA, "state": State::Starting.name() }),
    };
    indented::write(value, out)
}

pub(crate) fn value(run: &LiveRun) -> serde_json::Result<Value> {
    let header = &run.header;
    let (measured, crossed) = &run.phases[Phase::Measure as usize];
    let window = run.window.filter(|window| run.at_ns >= window.measure_ns);
    let measured_ns = window.map_or(0, |window| run.at_ns.min(window.end_ns) - window.measure_ns);
    let open_end = |end_ns: &u64| *end_ns != u64::MAX;
    let end_ns = run.window.map(|window| window.end_ns).filter(open_end);
    let mut connections = json!(run.connections);
    connections["pending"] = json!(run.connections.pending());
    connections["open"] = json!(run.connections.open());
    Ok(json!({
        "schema": SCHEMA,
        "state": run.state.name(),
        "version": header.version,
        "run": { "number": header.place.before + 1, "of": header.place.of, "label": header.place.label },
        "seed": header.plan.seed,
        "data_seed": header.plan.data_seed,
        "server": header.server,
        "plan": serde_json::to_value(&header.plan.spec)?,
        "elapsed_ns": run.at_ns,
        "duration_ns": measured_ns,
        "to_go_ns": end_ns.map(|end_ns| end_ns.saturating_sub(run.at_ns)),
        "requests": requests_so_far(&measured.requests),
        "keys": measured.keys,
        "rate": rate(measured, &run.phases[Phase::Warmup as usize].0, measured_ns),
        "bytes": crossed,
        "phases": phases(run),
        "latency": { "response_ns": distribution(&run.response), "service_ns": distribution(&run.service) },
        "connections": connections,
    }))
}

/// The books balance while a run goes on, too: what was sent and has not ended is in flight.
fn requests_so_far(book: &RequestCounts) -> Value {
    requests(&RequestCounts { in_flight: book.sent.saturating_sub(book.ended()), ..*book })
}

/// Per second of the window so far: what was due in it, what was sent and completed in it whenever it was due.
fn rate(measured: &OpCounts, warmup: &OpCounts, measured_ns: u64) -> Value {
    let per_second = |count: u64| match measured_ns {
        0 => 0.0,
        ns => count as f64 * 1e9 / ns as f64,
    };
    let (ours, theirs) = (&measured.in_window, &warmup.in_window);
    json!({
        "offered": per_second(measured.requests.offered()),
        "sent": per_second(ours.sent + theirs.sent),
        "completed": per_second(ours.completed() + theirs.completed()),
    })
}

fn phases(run: &LiveRun) -> Value {
    let of = |phase: &Phase| {
        let (book, crossed) = &run.phases[*phase as usize];
        let value =
            json!({ "requests": requests_so_far(&book.requests), "keys": book.keys, "bytes": crossed });
        (phase.name().to_owned(), value)
    };
    object(&[Phase::Preload, Phase::Warmup, Phase::Measure, Phase::Drain], of)
}
