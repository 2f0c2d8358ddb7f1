//! The report that a person reads.
//!
//! Not for scripts: its layout may change, JSON's keys do not. The order is that of the questions: what was run, how
//! long did requests take and how much of that may be our own, what became of them, what did it cost, and should any of
//! it be believed. Readable without colour, at most 110 columns for all but extreme numbers.

mod cluster;
mod connectivity;
pub(crate) mod header;
mod latency;
mod latency_floor;
mod server_stats;
mod stamps;
mod status;
mod traces;
mod traffic;

use crate::assertion_text::{self, AssertionText};
use crate::cost::{self, RequestCost};
use crate::metered::{self, Unit};
use crate::paragraph;
use crate::quantity;
use crate::row;
use crate::table::Table;
use crate::text::accounting::client_basis;
use brunt_plan::plan::{MeterKind, Profile, Refill};
use brunt_plan::quantile::Quantile;
use brunt_stats::op_summary::OpSummary;
use brunt_stats::summary::Summary;
use brunt_stats::usage::{STALL_MIN_NS, StallCounts, WorkerUsage};
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(summary).as_bytes())
}

/// The table of what was asserted, of a run or of a comparison.
pub(crate) fn assertion_table(out: &mut String, texts: Vec<AssertionText>) {
    let mut table = Table::new(&["assertion", "outcome", "finding"]).with_words_last();
    for text in texts {
        table.push(vec![text.subject.clone(), text.word().to_owned(), text.finding]);
    }
    if !table.is_empty() {
        table.write(out);
        out.push('\n');
    }
}

fn report(summary: &Summary) -> String {
    let rows = rows(summary);
    let mut out = String::new();
    header::write(&mut out, summary);
    out.push('\n');
    let quantiles = summary.record.plan.shown_quantiles();
    latency::write(&mut out, &rows, summary.client_basis(), &quantiles);
    if let Some(until) = &summary.until {
        paragraph::prose(&mut out, "until", &until.to_string());
    }
    out.push('\n');
    traffic::write(&mut out, summary, &rows);
    server_stats::write(&mut out, summary);
    client(&mut out, summary);
    stamps::write(&mut out, summary);
    latency_floor::write(&mut out, summary);
    meters(&mut out, summary);
    out.push('\n');
    assertion_table(&mut out, assertion_text::sorted(summary.assertions.iter().map(AssertionText::of)));
    status::write(&mut out, &summary.status);
    out
}

/// A row of the tables by op.
struct Row<'a> {
    name: String,
    summary: &'a OpSummary,
}

fn rows(summary: &Summary) -> Vec<Row<'_>> {
    let rows = row::rows(summary);
    let names: Vec<String> = rows.iter().map(|row| row.name(' ')).collect();
    let named = row::cut(&names).into_iter().zip(&rows);
    named.map(|(name, row)| Row { name, summary: row.summary }).collect()
}

fn client(out: &mut String, summary: &Summary) {
    let usage = &summary.record.run.usage;
    if let Some(cost) = RequestCost::of(summary) {
        let time = |ns: f64| quantity::time(ns.round() as u64);
        let (user, system) = (time(cost.cpu_user_ns), time(cost.cpu_system_ns));
        // A worker that spins burns what it does not need, the more of it the fewer requests there are.
        let waiting = match cost.cpu_waiting_ns {
            Some(ns) => format!("{} spent waiting", time(ns)),
            None => "waiting included".to_owned(),
        };
        let facts = [
            format!("{} of CPU per request ({user} user, {system} system), {waiting}", time(cost.cpu_ns())),
            format!("{} system calls per request", quantity::significant(cost.syscalls)),
        ];
        let facts: Vec<String> = facts.into_iter().chain(busiest(summary)).collect();
        paragraph::facts(out, "client cost", &facts);
    }
    let basis = summary.client_basis().describe().to_owned();
    paragraph::facts(out, "client error", &[vec![basis], client_basis(summary)].concat());
    stalls(out, summary);
    let threads = quantity::things(usage.workers.len() as u64, "thread");
    let io = match &usage.io_reason {
        Some(reason) => format!("{} ({reason})", usage.io),
        None => usage.io.clone(),
    };
    let plan = &summary.record.plan;
    let mut facts = vec![io, format!("wait {}", usage.wait), threads];
    if plan.profile != Profile::Latency || plan.refill != Refill::Eager || plan.gather.is_on() {
        let policies = format!("refill {}, gather {}", plan.refill, plan.gather);
        facts.push(format!("profile {} ({policies})", plan.profile));
    }
    if let Some(p50_ns) = metered::send_cost_ns(summary, Quantile::P50) {
        facts.push(format!("send cost p50 {}", quantity::time(p50_ns)));
    }
    if !connectivity::has_connections(summary) {
        facts.extend(connectivity::connect_times(summary));
    }
    paragraph::facts(out, "client setup", &facts);
    let (kept, overflow) = (summary.counts().samples_kept, summary.counts().samples_overflow);
    if kept + overflow > 0 {
        let kept = format!("{kept} kept");
        let lost = (overflow > 0).then(|| format!("{overflow} dropped"));
        paragraph::facts(out, "samples", &std::iter::once(kept).chain(lost).collect::<Vec<_>>());
    }
}

/// When the client stood still, if it did; STALL judges it.
fn stalls(out: &mut String, summary: &Summary) {
    let workers = &summary.record.run.usage.workers;
    let Some(WorkerUsage { worker, stalls, .. }) = StallCounts::longest_of(workers) else { return };
    let all = StallCounts::of_all(workers);
    let times = if all.count == 1 { "once".to_owned() } else { format!("{} times", all.count) };
    let facts = [
        format!(
            "{times} for more than {}, {} in all",
            quantity::time(STALL_MIN_NS),
            quantity::time(all.total_ns)
        ),
        format!(
            "longest {} at +{} (worker {worker})",
            quantity::time(stalls.longest_ns),
            quantity::time(stalls.longest_at_ns)
        ),
    ];
    paragraph::facts(out, "stood still", &facts);
}

/// The share of the window in which the busiest worker worked, or was kept from it; CPU judges it.
fn busiest(summary: &Summary) -> Option<String> {
    let most = cost::busiest(&summary.record.run.usage.workers)?;
    let percent = |ns: u64| quantity::significant(ns as f64 / most.wall_ns as f64 * 100.0);
    let delay = most.run_delay_ns.map(|ns| format!(", waiting for a CPU {} %", percent(ns)));
    Some(format!("busiest worker {} %{}", percent(most.busy_ns), delay.unwrap_or_default()))
}

/// The quantities that the plan asks for; of those that rest on timestamps, why there are none. Others that were metered anyway are in JSON.
fn meters(out: &mut String, summary: &Summary) {
    let mut table = Table::new(&["meter", "count", "mean", "min", "p50", "p99", "max", ""]).with_prose_last();
    let without_timestamps = client_basis(summary).join(" · ");
    for meter in summary.meters.iter().filter(|meter| summary.record.plan.meters.contains(&meter.kind)) {
        let (unit, summary) = (Unit::of(meter.kind), meter.summary());
        let is_without = summary.count == 0 && MeterKind::OF_TIMESTAMPS.contains(&meter.kind);
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| unit.text(value));
        let whole = |value: Option<u64>| cell(value.map(|value| value as f64));
        table.push(vec![
            meter.kind.name().to_owned(),
            summary.count.to_string(),
            cell(summary.mean),
            whole(summary.min),
            whole(metered::percentile(&summary, Quantile::P50)),
            whole(metered::percentile(&summary, Quantile::P99)),
            whole(summary.max),
            if is_without { without_timestamps.clone() } else { String::new() },
        ]);
    }
    if !table.is_empty() {
        out.push('\n');
        table.write(out);
    }
}
