//! The schema `brunt.summary.v1`: a summary as JSON, for scripts.
//!
//! Not for a person (that is [`crate::run_document`]). docs/formats.md says what every key means. Invariants: keys that exist
//! keep their names, units and meaning, and new ones may be added; counts and times are exact integers (times in
//! nanoseconds), and what there are too few samples for is `null`.

mod cluster;
mod server_stats;

use crate::assertion_text::AssertionText;
use crate::calibration::{floor_value, headroom_value};
use crate::cost::RequestCost;
use crate::indented;
use crate::instant::{in_window_ns, phase_duration_ns};
use crate::metered::{self, Unit};
use crate::record;
use crate::server;
use crate::wall_clock;
use brunt_plan::outcome::{OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_plan::until::Precision;
use brunt_stats::assertion::{Assertion, Reason};
use brunt_stats::bound::Bounds;
use brunt_stats::calibration::{CalibrationMatch, Lookup};
use brunt_stats::check::Check;
use brunt_stats::confidence::PercentileInterval;
use brunt_stats::datagrams::DatagramCounts;
use brunt_stats::fault::{Fault, FaultKind, FirstMalformed};
use brunt_stats::goal::{GoalState, UntilResult};
use brunt_stats::host::{ClockEvidence, HostEvidence};
use brunt_stats::latency::{LatencySummary, Percentile};
use brunt_stats::meter::Meter;
use brunt_stats::op_summary::{ClassSummary, OpRow, OpSummary};
use brunt_stats::outage::Outage;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::server::ServerCounts;
use brunt_stats::stamps::StampLoss;
use brunt_stats::status::RunStatus;
use brunt_stats::summary::{PhaseSummary, Summary};
use brunt_stats::timeline::{Timeline, TimelinePoint};
use brunt_stats::usage::{StallCounts, WorkerUsage};
use brunt_stats::verification::{FaultExample, ValueFault};
use brunt_stats::warmup::WarmupEnd;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::ops::Range;

/// The name of the schema.
pub const SCHEMA: &str = "brunt.summary.v1";

/// Length of the pieces under `intervals`: long enough for a p99 at 1000 requests a second.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Writes the summary as one indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    indented::write(value(summary)?, out)
}

/// The summary without the record that it was built from, on one line.
pub(crate) fn without_record(summary: &Summary) -> serde_json::Result<String> {
    serde_json::to_string(&numbers(summary)?)
}

pub(crate) fn value(summary: &Summary) -> serde_json::Result<Value> {
    let mut value = numbers(summary)?;
    value[indented::COMPACT] = record::value(&summary.record)?;
    Ok(value)
}

/// Every key but the record.
fn numbers(summary: &Summary) -> serde_json::Result<Value> {
    let total = &summary.total;
    let mut value = json!({
        "schema": SCHEMA,
        "version": summary.record.environment.brunt_version,
        "seed": summary.record.plan.seed,
        "data_seed": summary.record.plan.data_seed,
        "host": summary.record.environment.host,
        "labels": object(&summary.record.plan.labels, |label| (label.key.clone(), json!(label.value))),
        "started_at": wall_clock::of_run(summary, summary.window.start_ns),
        "window_started_at": wall_clock::of_run(summary, summary.window.measure_ns),
        "server": summary.record.server,
        "agents": summary.record.agents,
        "interrupted": summary.record.run.interrupted,
        "until": summary.until.as_ref().map(until),
        "plan": serde_json::to_value(&summary.record.plan.spec)?,
        "environment": object(&summary.record.environment.facts, |(name, fact)| (name.clone(), json!(fact))),
        "status": status_of_run(summary),
        "duration_ns": summary.window.duration_ns(),
        "steady": steady(summary),
        "requests": requests(&total.requests),
        "keys": total.keys,
        "phases": object(&summary.phases, |held| (held.phase.name().to_owned(), phase(summary, held))),
        "rate": total.rate,
        "in_window": in_window(total),
        "bytes": summary.bytes(),
        "latency": latency_of_all(summary),
        "client_error_basis": summary.client_basis().name(),
        "ops": ops(&summary.ops),
        "classes": object(&summary.classes, class),
        "client": client(summary),
        "timestamps": timestamps(summary),
        "calibration": calibration(&summary.record.calibration),
        "intervals": list(&summary.intervals(INTERVAL_NS), |point| interval(summary, point)),
        "meters": object(&summary.meters, |held| (held.kind.name().to_owned(), meter(held))),
        "connections": connections(summary),
        "connect_ns": distribution(&summary.connect_time),
        "handshake_ns": distribution(&summary.handshake_time),
        "cluster": cluster::cluster(summary),
        "traces": summary.record.run.traces,
        "servers": summary.servers().iter().enumerate().map(|held| server_counts(summary, held)).collect::<Value>(),
        "server_stats": server_stats::server_stats(summary),
        "outages": list(&summary.outages, |held| outage(summary, held)),
        "outages_overflow": summary.outages_overflow(),
        "faults": list(summary.faults().rows(), |held| fault(summary, held)),
        "first_malformed": summary.counts().first_malformed.as_ref().map(|held| garbage(summary, held)),
        "first_error": summary.counts().first_error.map(|text| text.to_string()),
        "error_replies": object(&summary.counts().error_replies.rows(), |(word, count)| (word.to_string(), json!(count))),
        "datagrams": summary.datagrams().map(datagrams),
        "recache": summary.counts().recache,
        "values_foreign": summary.counts().values_foreign,
        "values_checked": summary.record.plan.verify.map(|_| summary.counts().verification.checked),
        "misses_checked": summary.record.plan.verify.map(|_| summary.counts().verification.misses),
        "windows": windows(summary),
        "value_faults": list(&summary.counts().verification.rows().collect::<Vec<_>>(), |held| value_fault(summary, held)),
        "samples": { "kept": summary.counts().samples_kept, "overflow": summary.counts().samples_overflow },
    });
    for (key, _, number) in summary.counts().rows() {
        value[key] = json!(number);
    }
    Ok(value)
}

/// What was found out about the objects of windows, where a class has them.
fn windows(summary: &Summary) -> Value {
    match summary.has_windows() {
        true => {
            object(&summary.counts().windows.rows(), |(name, _, count)| ((*name).to_owned(), json!(count)))
        }
        false => Value::Null,
    }
}

fn datagrams(counts: &DatagramCounts) -> Value {
    let rows = [&counts.rows()[..], &counts.packet_rows()].concat();
    object(&rows, |(name, number)| ((*name).to_owned(), json!(number)))
}

/// An object with an entry for every item, in their order.
pub(crate) fn object<T>(items: &[T], entry: impl Fn(&T) -> (String, Value)) -> Value {
    Value::Object(items.iter().map(entry).collect::<Map<String, Value>>())
}

fn list<T>(items: &[T], element: impl Fn(&T) -> Value) -> Value {
    items.iter().map(element).collect()
}

/// A time that is a quotient or a root, to the nanosecond.
fn whole(ns: Option<f64>) -> Option<u64> {
    ns.map(|ns| ns.round() as u64)
}

/// The status of a run or a campaign, without assertions.
pub(crate) fn status(status: &RunStatus) -> Value {
    let check = |held: &Check| {
        let Check { id, status, message, fix, value, threshold } = held;
        json!({
            "id": id,
            "status": status.name(),
            "message": message,
            "value": value,
            "threshold": threshold,
            "fix": fix,
        })
    };
    json!({
        "value": status.status.name(),
        "message": status.message,
        "checks": list(&status.checks, check),
        "facts": status.facts,
        "limit": status.limit,
        "strict": status.judgement.is_strict,
        "allowed": status.judgement.allowed,
    })
}

fn status_of_run(summary: &Summary) -> Value {
    let mut value = status(&summary.status);
    value["assertions"] = list(&summary.assertions, assertion);
    value
}

fn steady(summary: &Summary) -> Value {
    let change = summary.steady.change_point().map(|change| {
        json!({
            "series": change.series.name(),
            "at_ns": change.at_ns,
            "before": change.before,
            "after": change.after,
            "p": change.p,
        })
    });
    json!({ "change": change, "warmup_end": summary.record.run.warmup_end.map(WarmupEnd::name) })
}

/// `null` where nothing bounds it.
pub(crate) fn bounds(bounds: Bounds) -> Value {
    json!([bounds.low, Some(bounds.high).filter(|high| high.is_finite())])
}

pub(crate) fn assertion(assertion: &Assertion) -> Value {
    let (more, ns) = match assertion.reason {
        Some(Reason::Requests { more, ns }) => (more, ns),
        _ => (0, None),
    };
    json!({
        "text": assertion.objective.to_string(),
        "outcome": assertion.decision.name(),
        "value": assertion.measured,
        "bound": assertion.objective.bound.value(),
        "requests": assertion.reached.map(|reached| reached.requests),
        "reached": assertion.reached.map(|reached| reached.with_client),
        "reached_without_client": assertion.reached.map(|reached| reached.without_client),
        "allowed": assertion.reached.map(|reached| reached.allowed),
        "message": AssertionText::of(assertion).finding,
        "at_rate": assertion.at_rate,
        "needs_requests": more,
        "needs_ns": ns,
    })
}

pub(crate) fn requests(book: &RequestCounts) -> Value {
    let outcome = |class| book.outcome(class);
    let replies = ReplyKind::ALL.into_iter().filter(|reply| book.reply(*reply) > 0);
    json!({
        "scheduled": book.scheduled,
        "sent": book.sent,
        "unsent": book.unsent,
        "abandoned": book.abandoned,
        "unsent_client": book.unsent_client,
        "completed": book.completed(),
        "error": outcome(OutcomeClass::Error),
        "timeout": outcome(OutcomeClass::Timeout),
        "mismatch": outcome(OutcomeClass::Mismatch),
        "lost": outcome(OutcomeClass::Lost),
        "unacknowledged": outcome(OutcomeClass::Unacknowledged),
        "in_flight": book.in_flight,
        "wire_requests": book.wire_requests,
        "hit": outcome(OutcomeClass::Hit),
        "miss": outcome(OutcomeClass::Miss),
        "done": outcome(OutcomeClass::Done),
        "rejected": outcome(OutcomeClass::Rejected),
        "followup": book.followup,
        "replies": object(&replies.collect::<Vec<_>>(), |reply| {
            (reply.name().to_owned(), json!(book.reply(*reply)))
        }),
    })
}

fn in_window(summary: &OpSummary) -> Value {
    let counts = summary.in_window;
    json!({
        "sent": counts.sent,
        "completed": counts.completed(),
        "answered": counts.answered(),
        "failed": counts.failed(),
        "unacknowledged": counts.outcome(OutcomeClass::Unacknowledged),
        "abandoned": counts.abandoned,
        "waiting_at_start": counts.waiting_at_start,
        "waiting_at_end": counts.waiting_at_end,
        "in_flight_at_start": counts.in_flight_at_start,
        "in_flight_at_end": counts.in_flight_at_end,
    })
}

fn phase(summary: &Summary, phase: &PhaseSummary) -> Value {
    // Classes that share an op add up.
    let mut sent = Map::new();
    for entry in &phase.ops {
        let name = summary.record.plan.op_name(entry.op).to_string();
        let before = sent.get(&name).and_then(Value::as_u64).unwrap_or(0);
        sent.insert(name, json!(before + entry.counts.requests.sent));
    }
    let mut value = json!({
        "duration_ns": phase_duration_ns(summary, phase.phase),
        "requests": requests(&phase.counts.requests),
        "keys": phase.counts.keys,
        "ops": sent,
        "bytes": phase.bytes,
    });
    if phase.phase == Phase::Preload {
        value["wanted"] = json!(summary.record.preload.map(|preload| preload.wanted));
        value["confirmed"] = json!(summary.record.preload.map(|preload| preload.confirmed));
        value["earlier"] = json!(summary.record.preload.map(|preload| preload.is_earlier));
    }
    value
}

pub(crate) fn distribution(summary: &LatencySummary) -> Value {
    let mut value = json!({
        "count": summary.count,
        "mean": whole(summary.mean_ns),
        "stddev": whole(summary.stddev_ns),
        "min": summary.min_ns,
    });
    for percentile in &summary.percentiles {
        value[percentile.quantile.key()] = json!(percentile.value_ns);
    }
    value["max"] = json!(summary.max_ns);
    value
}

fn client_errors(summary: &OpSummary) -> Value {
    let error_of = |percentile: &Percentile| {
        (percentile.quantile.key(), json!(summary.client_error_ns(percentile.quantile)))
    };
    object(&summary.latency.response.summary.percentiles, error_of)
}

/// What an interval rests on.
fn interval_basis(interval: &PercentileInterval) -> (String, Value) {
    let value = json!({
        "batches": interval.batches,
        "design_effect": interval.design_effect,
        "effective_count": interval.effective_count,
        "quantisation_ns": interval.quantisation_ns,
    });
    (interval.quantile.key(), value)
}

fn until(until: &UntilResult) -> Value {
    let goal = |(goal, finding): &(Precision, GoalState)| {
        let half_width = finding.interval().and_then(PercentileInterval::relative_half_width);
        json!({
            "goal": goal.to_string(),
            "reached": finding.is_reached(),
            "half_width": half_width,
        })
    };
    json!({
        "reached": until.is_reached() && !until.is_interrupted,
        "looks": until.taken,
        "looks_max": until.looks,
        "enough_ns": until.enough_at_ns,
        "held_by": until.held_by,
        "unjudged": until.unjudged,
        "goals": list(&until.findings, goal),
    })
}

fn latency(summary: &OpSummary) -> Value {
    json!({
        "response_ns": distribution(&summary.latency.response.summary),
        "service_ns": distribution(&summary.latency.service.summary),
        "send_lag_ns": distribution(&summary.latency.send_lag.summary),
        "least_ns": distribution(&summary.latency.least.summary),
        "client_error_ns": client_errors(summary),
        "lag_fraction": summary.lag_fraction,
        "including_failures_ns": distribution(&summary.including_failures()),
        "interval_ns": object(&summary.intervals, |interval| {
            (interval.quantile.key(), json!([interval.low_ns, interval.high_ns]))
        }),
        "interval_basis": object(&summary.intervals, interval_basis),
    })
}

fn latency_of_all(summary: &Summary) -> Value {
    let mut value = latency(&summary.total);
    value["slowest"] = json!(summary.slowest());
    value
}

fn op(summary: &OpSummary) -> Value {
    json!({
        "requests": requests(&summary.requests),
        "keys": summary.keys,
        "rate": summary.rate,
        "in_window": in_window(summary),
        "latency": latency(summary),
    })
}

fn ops(rows: &[OpRow]) -> Value {
    object(rows, |row| (row.name.to_string(), op(&row.summary)))
}

fn class(class: &ClassSummary) -> (String, Value) {
    let mut value = op(&class.total);
    value["ops"] = ops(&class.ops);
    (class.name.clone(), value)
}

fn client(summary: &Summary) -> Value {
    let (usage, cost) = (&summary.record.run.usage, RequestCost::of(summary));
    let send_cost_ns = |quantile| metered::send_cost_ns(summary, quantile);
    json!({
        "cpu_user_ns": usage.cpu_user_ns,
        "cpu_system_ns": usage.cpu_system_ns,
        "cpu_ns_per_request": whole(cost.map(|cost| cost.cpu_working_ns())),
        "syscalls": usage.syscalls,
        "syscalls_per_request": cost.map(|cost| cost.syscalls),
        "io": usage.io,
        "io_reason": usage.io_reason,
        "timestamps_reason": usage.timestamps_reason,
        "wait": usage.wait,
        "threads": usage.workers.len(),
        "send_cost_ns": { "p50": send_cost_ns(Quantile::P50), "p99": send_cost_ns(Quantile::P99) },
        "workers": list(&usage.workers, worker),
        "host": host(&summary.record.run.host),
        "in_system": in_system(summary),
    })
}

fn worker(usage: &WorkerUsage) -> Value {
    let StallCounts { count, total_ns, longest_ns, longest_at_ns, longest_run_delay_ns } = usage.stalls;
    json!({
        "worker": usage.worker,
        "wall_ns": usage.wall_ns,
        "busy_ns": usage.busy_ns,
        "cpu_ns": usage.cpu_ns,
        "run_delay_ns": usage.run_delay_ns,
        "involuntary_switches": usage.involuntary_switches,
        "voluntary_switches": usage.voluntary_switches,
        "looks": usage.colocation.looks,
        "looks_shared": usage.colocation.shared,
        "stalls": {
            "count": count,
            "total_ns": total_ns,
            "longest_ns": longest_ns,
            "longest_at_ns": (count > 0).then_some(longest_at_ns),
            "longest_run_delay_ns": longest_run_delay_ns,
        },
    })
}

fn host(host: &HostEvidence) -> Value {
    let ClockEvidence { source, drift_ppm, realtime_step_ns, backwards } = &host.clock;
    json!({
        "cpus": host.cpus,
        "wake_up_ns": host.wake_up_ns,
        "stolen_ns": host.stolen_ns,
        "busy_ns": host.busy_ns,
        "throttled_ns": host.throttled_ns,
        "clocksource": source,
        "clock_drift_ppm": drift_ppm,
        "realtime_step_ns": realtime_step_ns,
        "clock_backwards": backwards,
        "retransmits": host.retransmits,
        "listen_drops": host.listen_drops,
    })
}

/// The mean number of operations in the system, counted in two ways.
fn in_system(summary: &Summary) -> Value {
    let window_ns = summary.window.duration_ns();
    let mean = |sum: u128| (window_ns > 0).then(|| sum as f64 / window_ns as f64);
    json!({ "by_clock": mean(summary.counts().occupancy.integral), "by_samples": mean(summary.counts().occupancy.sum) })
}

/// What kernel timestamps say; `null` where the plan asks for none.
fn timestamps(summary: &Summary) -> Value {
    let Some(spans) = summary.spans() else { return Value::Null };
    let counts = &summary.counts().stamps;
    let mut value = json!({
        "requested": counts.requested,
        "matched": counts.matched,
        "discarded": object(&StampLoss::ALL, |loss| {
            (loss.name().to_owned(), json!(counts.discarded(*loss)))
        }),
    });
    for (kind, span) in &spans {
        value[format!("{}_ns", kind.name().replace('-', "_"))] = distribution(span);
    }
    value
}

/// What fits is given; else why nothing does; `null` where there is nothing.
fn calibration(lookup: &Lookup) -> Value {
    match lookup {
        Lookup::Absent => Value::Null,
        Lookup::Unfit(reason) => json!({ "ignored": reason }),
        Lookup::Fit(fit) => {
            let CalibrationMatch { calibration, differences } = &**fit;
            json!({
                "ignored": null,
                "made_at_s": calibration.made_at_s,
                "version": calibration.brunt_version,
                "differences": differences,
                "loopback_ns": floor_value(calibration.loopback),
                "headroom": headroom_value(&calibration.headroom),
            })
        }
    }
}

fn interval(summary: &Summary, point: &TimelinePoint) -> Value {
    let TimelinePoint { start_ns, end_ns, activity, latency, client, .. } = point;
    let mut value = json!({
        "start_ns": in_window_ns(summary, *start_ns),
        "end_ns": in_window_ns(summary, *end_ns),
        "scheduled": activity.scheduled,
        "sent": activity.sent,
        "completed": activity.completed,
        "failed": activity.failed,
    });
    extend(&mut value, json!(latency));
    value["ops"] = ops_over_time(&summary.record.plan, summary.timeline(), *start_ns..*end_ns);
    value["server"] = json!(server_stats::interval(summary, *start_ns, *end_ns));
    value["client"] = json!(client.shares());
    value
}

/// The operations of a piece of time, by name.
pub(crate) fn ops_over_time(plan: &Plan, timeline: &Timeline, span: Range<u64>) -> Value {
    object(&timeline.ops(span), |point| {
        let mut value = json!({ "completed": point.completed, "failed": point.failed });
        extend(&mut value, json!(point.latency));
        (plan.op_name(point.op).to_string(), value)
    })
}

/// Adds the entries of an object to one.
pub(crate) fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(entries), Value::Object(more)) = (object, more) {
        entries.extend(more);
    }
}

fn meter(meter: &Meter) -> Value {
    let summary = meter.summary();
    // JSON's readers end at 64 bits; a sum beyond them is given as near as a float comes.
    let sum = u64::try_from(summary.sum).map_or(json!(summary.sum as f64), |sum| json!(sum));
    let mut value = json!({
        "unit": Unit::of(meter.kind).name(),
        "count": summary.count,
        "sum": sum,
        "mean": summary.mean,
        "stddev": summary.stddev,
        "geometric_mean": summary.geometric_mean,
        "min": summary.min,
    });
    for (quantile, number) in &summary.percentiles {
        value[quantile.key()] = json!(number);
    }
    value["max"] = json!(summary.max);
    value
}

fn connections(summary: &Summary) -> Value {
    let mut value = json!(summary.connections);
    value["pending"] = json!(summary.connections.pending());
    value["open"] = json!(summary.connections.open());
    value["most"] = json!(summary.counts().connections_most);
    value["phases"] = object(&Phase::ALL, |phase| {
        (phase.name().to_owned(), json!(summary.connections_by_phase()[*phase as usize]))
    });
    value
}

fn server_counts(summary: &Summary, (index, counts): (usize, &ServerCounts)) -> Value {
    json!({
        "server": server::name(summary, index),
        "answered": counts.answered,
        "failed": counts.failed,
        "unsent": counts.unsent,
        "abandoned": counts.abandoned,
        "redirected": counts.redirected,
        "slots": cluster::slots(summary, index),
        "response_ns": summary.server_responses.get(index).map(distribution),
    })
}

fn outage(summary: &Summary, outage: &Outage) -> Value {
    let instant = |at_ns: Option<u64>| at_ns.map(|at_ns| in_window_ns(summary, at_ns));
    json!({
        "server": server::name(summary, usize::from(outage.server)),
        "start_ns": in_window_ns(summary, outage.start_ns),
        "end_ns": instant(outage.end_ns),
        "length_ns": outage.length_ns(),
        "recovered_ns": instant(outage.recovered_ns),
        "failed": outage.failed,
        "kinds": outage.kinds.names().collect::<Vec<_>>(),
    })
}

fn fault(summary: &Summary, fault: &Fault) -> Value {
    let errno = match fault.kind {
        FaultKind::Other(errno) => Some(errno),
        _ => None,
    };
    json!({
        "phase": fault.phase.name(),
        "kind": fault.kind.name(),
        "errno": errno,
        "count": fault.count,
        "first_ns": in_window_ns(summary, fault.first_ns),
    })
}

fn value_fault(summary: &Summary, (fault, number, first): &(ValueFault, u64, FaultExample)) -> Value {
    json!({
        "kind": fault.name(),
        "count": number,
        "first": {
            "key": first.key,
            "other_key": first.other_key,
            "version": first.version.map(|version| version.to_string()),
            "wanted": first.wanted.map(|version| version.to_string()),
            "at_ns": in_window_ns(summary, first.at_ns),
        },
    })
}

fn garbage(summary: &Summary, garbage: &FirstMalformed) -> Value {
    let class = summary.classes.get(usize::from(garbage.class)).map(|class| &class.name);
    json!({
        "at_ns": in_window_ns(summary, garbage.at_ns),
        "class": class,
        "reason": garbage.reason,
        "text": QuotedBytes(garbage.bytes()).to_string(),
    })
}
