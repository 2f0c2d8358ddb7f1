//! The client: what a request cost it, how busy its workers were, where the slowest requests spent their time; in a long report what its part of
//! latencies rests on, its stops, its settings, what it metered, and what is known of it on this host.

use super::latency::times_table;
use crate::document::Document;
use crate::grid::{Column, Grid, Rows};
use crate::instant::date;
use crate::json::client::{RequestCost, busiest, send_cost_ns, unit_of};
use crate::layout::{Layout, Style};
use crate::quantity;
use brunt_plan::plan::{MeterKind, Refill};
use brunt_plan::quantile::Quantile;
use brunt_stats::calibration::{Calibration, CalibrationMatch, Lookup};
use brunt_stats::capacity::Capacity;
use brunt_stats::meter::Meter;
use brunt_stats::stack_delay::ClientBasis;
use brunt_stats::stack_delay::SAMPLES_MIN;
use brunt_stats::summary::Summary;
use brunt_stats::usage::{STALL_MIN_NS, StallCounts, WorkerUsage};
use brunt_stats::worker_counts::{StampCounts, StampLoss};

/// What a request cost the client, without what went into waiting for the next one, and how busy that kept it.
pub(super) fn client(summary: &Summary) -> Vec<String> {
    let cost = RequestCost::of(summary)
        .map(|cost| format!("{} CPU/request", quantity::time(cost.cpu_working_ns().round() as u64)));
    let busiest = busiest(&summary.record.run.usage.workers).map(|most| {
        let percent = percent_of(most.busy_ns, most.wall_ns);
        format!("worker {} busy for {percent} % of the window", most.worker)
    });
    cost.into_iter().chain(busiest).collect()
}

fn percent_of(part: u64, whole: u64) -> String {
    quantity::significant(100.0 * part as f64 / whole as f64)
}

/// Where the slowest 1 % of the requests spent their time, as parts by name with their shares of it.
pub(super) fn slowest(parts: Option<[(&str, f64); 3]>) -> Vec<String> {
    parts.into_iter().flatten().map(|(name, share)| format!("{name} {:.0} %", share * 100.0)).collect()
}

/// What the client's part rests on beside clock readings, and why not on more.
pub(crate) fn client_basis(summary: &Summary) -> Vec<String> {
    let run = &summary.record.run;
    let wake_up = |name: &str| format!("{name} {}", quantity::time(run.host.wake_up_ns));
    match summary.client_basis() {
        ClientBasis::Timestamps => {
            vec![format!("{} kernel timestamps", summary.total.stack_delay.samples())]
        }
        ClientBasis::Clock => {
            let reason = run.usage.timestamps_reason.as_ref().map(|reason| format!(": {reason}"));
            vec![format!("no kernel timestamps{}", reason.unwrap_or_default()), wake_up("wake-ups")]
        }
        ClientBasis::Incomplete => {
            let stamped = quantity::things(summary.counts().stamps.matched, "request");
            let is_in = run.unread_ns(summary.record.plan.has_open_loop()) > 0;
            let facts = [format!("kernel timestamps of {stamped}, {SAMPLES_MIN} needed")];
            facts.into_iter().chain(is_in.then(|| wake_up("one wake-up"))).collect()
        }
    }
}

// ---- the part of a long report ----------------------------------------------------------------------------------------

pub(crate) fn part(document: &mut Document, summary: &Summary, layout: &Layout) {
    let usage = &summary.record.run.usage;
    document.heading("client");
    document.table(workers(&usage.workers));
    document.facts("cost", RequestCost::of(summary).map(|cost| cost_facts(&cost)).unwrap_or_default());
    let basis = summary.client_basis().describe().to_owned();
    document.facts("its part", [vec![basis], client_basis(summary)].concat());
    document.facts("stops", stops(&usage.workers));
    document.facts("setup", setup(summary));
    document.facts("floor", floor(&summary.record.calibration, summary.total.rate.busiest()));
    let (kept, overflow) = (summary.counts().samples_kept, summary.counts().samples_overflow);
    document.facts("samples", quantity::counted([("kept", kept), ("dropped", overflow)]).collect());
    document.gap();
    stamps(document, summary, layout);
    document.gap();
    document.table(meters(summary));
    let asks_timestamps =
        summary.record.plan.meters.iter().any(|kind| MeterKind::OF_TIMESTAMPS.contains(kind));
    let has_none = summary.total.stack_delay.samples() == 0 && asks_timestamps;
    document.facts("meters", if has_none { client_basis(summary) } else { Vec::new() });
}

fn workers(workers: &[WorkerUsage]) -> Grid {
    let percent = |ns: u64, worker: &WorkerUsage| percent_of(ns, worker.wall_ns);
    Rows::of(workers.iter().filter(|worker| worker.wall_ns > 0), |_| Style::Plain)
        .texts(Column::of_words("worker", 13), |worker| worker.worker)
        .texts(Column::spaced("busy%", 8), |worker| percent(worker.busy_ns, worker))
        .texts(Column::spaced("CPU%", 8), |worker| percent(worker.cpu_ns, worker))
        .texts(Column::spaced("delay%", 8), |worker| {
            worker.run_delay_ns.map_or("-".to_owned(), |ns| percent(ns, worker))
        })
        .texts(Column::spaced("preempted", 8), |worker| worker.involuntary_switches)
        .texts(Column::spaced("stops", 8), |worker| worker.stalls.count)
        .texts(Column::spaced("longest,ms", 8), |worker| {
            quantity::significant(worker.stalls.longest_ns as f64 / 1e6)
        })
        .grid(None)
}

fn cost_facts(cost: &RequestCost) -> Vec<String> {
    let time = |ns: f64| quantity::time(ns.round() as u64);
    let (user, system) = (time(cost.cpu_user_ns), time(cost.cpu_system_ns));
    // A worker that spins burns what it does not need, the more of it the fewer requests there are.
    let waiting = match cost.cpu_waiting_ns {
        Some(ns) => format!("{} spent waiting", time(ns)),
        None => "waiting included".to_owned(),
    };
    vec![
        format!("{} of CPU per request ({user} user, {system} system), {waiting}", time(cost.cpu_ns())),
        format!("{} system calls per request", quantity::significant(cost.syscalls)),
    ]
}

/// When the client stood still, if it did.
fn stops(workers: &[WorkerUsage]) -> Vec<String> {
    let Some(WorkerUsage { worker, stalls, .. }) = StallCounts::longest_of(workers) else {
        return Vec::new();
    };
    let all = StallCounts::of_all(workers);
    let [least, total, longest, at] =
        [STALL_MIN_NS, all.total_ns, stalls.longest_ns, stalls.longest_at_ns.unwrap_or(0)]
            .map(quantity::time);
    vec![
        format!("{} of more than {least}, {total} in all", quantity::things(all.count, "stop")),
        format!("longest {longest} at +{at} (worker {worker})"),
    ]
}

fn setup(summary: &Summary) -> Vec<String> {
    let (usage, plan) = (&summary.record.run.usage, &summary.record.plan);
    let reason = usage.io_reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    let mut facts = vec![
        format!("{}{reason}", usage.io),
        format!("wait {}", usage.wait),
        quantity::things(usage.workers.len() as u64, "thread"),
    ];
    if plan.refill != Refill::Eager || plan.gather.is_on() {
        facts.push(format!("refill {}, gather {}", plan.refill, plan.gather));
    }
    let send_cost = send_cost_ns(summary, Quantile::P50);
    facts.extend(send_cost.map(|ns| format!("send cost p50 {}", quantity::time(ns))));
    facts
}

/// What is known of this client on this host.
fn floor(lookup: &Lookup, rate: f64) -> Vec<String> {
    let CalibrationMatch { calibration, differences } = match lookup {
        Lookup::Absent => return Vec::new(),
        Lookup::Unfit(reason) => return vec![format!("not known: {reason}")],
        Lookup::Fit(fit) => fit.as_ref(),
    };
    let [p50, p99] = [calibration.loopback.p50_ns, calibration.loopback.p99_ns].map(quantity::time);
    let facts = [
        format!("of this client over loopback: p50 {p50}, p99 {p99}"),
        headroom(calibration, rate),
        format!("calibrated {}", date(calibration.made_at_s)),
    ];
    facts.into_iter().chain(differences.iter().cloned()).collect()
}

/// How many times the rate of the run the client is known to be capable of.
fn headroom(calibration: &Calibration, rate: f64) -> String {
    let times = |bound: f64| match rate {
        0.0 => format!("{}/s", quantity::rate(bound)),
        rate => format!("{} times this rate", quantity::significant(bound / rate)),
    };
    let is_of_client = !calibration.is_limited;
    match calibration.headroom {
        Capacity::Between { passed, .. } if is_of_client => format!("capable of {}", times(passed)),
        Capacity::Below { failed } if is_of_client => format!("not capable of {}/s", quantity::rate(failed)),
        held => held.passed().map_or("capacity not known".to_owned(), |passed| {
            format!("capable of at least {}", times(passed))
        }),
    }
}

/// Where the time of a request goes, by the kernel's own timestamps of some of them.
fn stamps(document: &mut Document, summary: &Summary, layout: &Layout) {
    let Some(spans) = summary.spans() else { return };
    let counts = &summary.counts().stamps;
    let name = |kind| match kind {
        MeterKind::StackOut => "client-stack-out",
        MeterKind::StackIn => "client-stack-in",
        _ => "wire-and-server",
    };
    let row = |(kind, span): (MeterKind, brunt_stats::latency::LatencySummary)| {
        let mean_ns = span.mean_ns.map(|ns| ns.round() as u64);
        (name(kind).to_owned(), vec![span.min_ns, span.p50_ns(), mean_ns, span.p99_ns(), span.max_ns])
    };
    if counts.matched > 0 {
        let rows = spans.into_iter().map(row).collect();
        document.table(times_table("kernel", &["min", "p50", "mean", "p99", "max"], rows, layout));
    }
    document.facts("timestamps", stamp_facts(counts));
}

/// What became of the requests that the kernel was to stamp, and why some do not count.
fn stamp_facts(counts: &StampCounts) -> Vec<String> {
    let asked = quantity::things(counts.requested, "request");
    let mut facts = vec![match counts.requested.saturating_sub(counts.matched) {
        _ if counts.requested == 0 => "no request had its connection to itself".to_owned(),
        0 => format!("of {asked}, none discarded"),
        _ if counts.matched == 0 => format!("of {asked}, all discarded: no time is known"),
        lost => format!("of {asked}, {lost} discarded"),
    }];
    let losses = StampLoss::ALL.into_iter().filter(|loss| counts.discarded(*loss) > 0);
    facts.extend(losses.map(|loss| format!("{} {}", counts.discarded(loss), loss.describe())));
    facts
}

/// The quantities that the plan asks for. Others that were metered anyway are in JSON.
fn meters(summary: &Summary) -> Grid {
    let is_asked = |meter: &&Meter| summary.record.plan.meters.contains(&meter.kind);
    let meters = summary.meters.iter().filter(is_asked);
    let scale = |kind: MeterKind| match unit_of(kind) {
        "ns" => (1e3, "us"),
        other => (1.0, other),
    };
    let cell = |meter: &Meter, value: Option<f64>| {
        value.map_or("-".to_owned(), |value| quantity::significant(value / scale(meter.kind).0))
    };
    let whole = |meter: &Meter, value: Option<u64>| cell(meter, value.map(|value| value as f64));
    let percentile = |meter: &Meter, quantile| whole(meter, meter.histogram.percentile(quantile));
    Rows::of(meters, |_| Style::Plain)
        .texts(Column::of_words("meter", 13), |meter| meter.kind.name())
        .texts(Column::of_words("unit", 0), |meter| scale(meter.kind).1)
        .texts(Column::spaced("count", 8), |meter| meter.histogram.count())
        .texts(Column::spaced("mean", 8), |meter| cell(meter, meter.histogram.moments().mean()))
        .texts(Column::spaced("min", 8), |meter| whole(meter, meter.histogram.min()))
        .texts(Column::spaced("p50", 8), |meter| percentile(meter, Quantile::P50))
        .texts(Column::spaced("p99", 8), |meter| percentile(meter, Quantile::P99))
        .texts(Column::spaced("max", 8), |meter| whole(meter, meter.histogram.max()))
        .grid(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_discarded_timestamps() {
        let lost = |number: u64| {
            let mut counts =
                StampCounts { requested: 1_458, matched: 1_458 - number, ..StampCounts::default() };
            (0..number).for_each(|_| counts.discard(StampLoss::NoReceiveStamp));
            stamp_facts(&counts).join(" · ")
        };
        assert_eq!(lost(0), "of 1458 requests, none discarded");
        assert_eq!(lost(2), "of 1458 requests, 2 discarded · 2 without a stamp of receiving");
        assert_eq!(
            lost(1_458),
            "of 1458 requests, all discarded: no time is known · 1458 without a stamp of receiving"
        );
    }

    #[test]
    fn the_slowest_spent_their_time_somewhere() {
        let parts = [("client", 0.14), ("waiting for a connection", 0.0), ("wire and server", 0.86)];
        assert_eq!(
            slowest(Some(parts)).join(" · "),
            "client 14 % · waiting for a connection 0 % · wire and server 86 %"
        );
        assert_eq!(slowest(None), [""; 0]);
    }
}
