//! The client as JSON: what a run cost it, its connections, and what it measured of itself.
//!
//! Costs are quotients of the client's use during the measured window, and of the requests that were sent in it. At either edge a request may be
//! sent on one side and answered on the other, so they are off by at most the requests in flight at one instant.

use super::row::Distribution;
use super::{Row, whole};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_plan::trace_record::TraceRecord;
use brunt_stats::calibration::Lookup;
use brunt_stats::capacity::Capacity;
use brunt_stats::connection::ConnectionCounts;
use brunt_stats::meter::Meter;
use brunt_stats::op_summary::ClassSummary;
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;
use brunt_stats::usage::HostEvidence;
use brunt_stats::usage::{ClientUsage, WorkerUsage};
use brunt_stats::worker_counts::StampLoss;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Resources of the client in the window, and what it counted of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientTree {
    /// Resources of all workers.
    #[serde(flatten)]
    pub usage: ClientUsage,
    /// CPU time divided by `in_window.sent`, without turns of the loop that only waited; `null` below 100 requests.
    pub cpu_ns_per_request: Option<u64>,
    /// System calls divided by `in_window.sent`; `null` below 100 requests.
    pub syscalls_per_request: Option<f64>,
    /// Time in a call that sends: `p50`, `p99`.
    pub send_cost_ns: IndexMap<String, Option<u64>>,
    /// Requests in the system on average over the window.
    pub in_system: InSystem,
    /// What the hosts did to the run.
    pub host: HostEvidence,
    /// Connections over the whole run.
    pub connections: Connections,
    /// By name of the metered quantity, over all phases (docs/results.md).
    pub meters: IndexMap<String, MeterRow>,
    /// Kernel timestamps; `null` if none were taken.
    pub timestamps: Option<Timestamps>,
    /// The calibration of a client like this one; `null` without one.
    pub calibration: Option<Calibration>,
    /// Replayed files. A run that ends before its file has read somewhat more than it has sent.
    pub traces: Vec<TraceRecord>,
    /// Raw samples.
    pub samples: Samples,
    /// Hosts that generated the load for a controller.
    pub agents: Vec<AgentRecord>,
    /// By class of the plan: its requests, and those of each operation.
    pub classes: IndexMap<String, Row>,
}

/// The mean number of requests in the system, counted in two ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InSystem {
    /// By the clock of the loop.
    pub by_clock: Option<f64>,
    /// By the times of the requests.
    pub by_samples: Option<f64>,
}

/// Connections: `begun = established + failed + pending`, `established = retired + lost + open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// What became of them.
    #[serde(flatten)]
    pub counts: ConnectionCounts,
    /// Neither established nor failed at the end.
    pub pending: u64,
    /// Open at the end.
    pub open: u64,
    /// Most open at one time since the start of the schedule; exact for one worker, the sum of maxima over several.
    pub most: u64,
    /// By phase of the event, `connect` among them; there no such sum holds.
    pub phases: IndexMap<String, ConnectionCounts>,
    /// Time from beginning a connection until it was established (connection setup and TLS handshake included).
    pub connect_ns: Distribution,
    /// The part of the TLS handshake in it; empty without TLS.
    pub handshake_ns: Distribution,
}

/// A metered quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeterRow {
    /// `"requests"`, `"bytes"` or `"ns"`.
    pub unit: String,
    /// How many values.
    pub count: u64,
    /// Their sum, exact in 64 bits, beyond them as near as a float comes.
    pub sum: Number,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Geometric mean of the values above 0.
    pub geometric_mean: Option<f64>,
    /// Minimum.
    pub min: Option<u64>,
    /// The percentiles.
    #[serde(flatten)]
    pub percentiles: IndexMap<String, Option<u64>>,
    /// Maximum.
    pub max: Option<u64>,
}

/// Kernel timestamps of requests of the window: `requested = matched +` all of `discarded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timestamps {
    /// Requests for which timestamps were requested.
    pub requested: u64,
    /// Those that have their spans.
    pub matched: u64,
    /// The others by reason: `sent_in_pieces`, `shared_read` (its reply was read together with others), `no_transmit_stamp` and
    /// `no_receive_stamp` (the kernel gave none), `other_byte` (it gave one of another byte), `clock_step` (the wall clock was set),
    /// `out_of_order` (the timestamps contradict brunt's clock), `unanswered`.
    pub discarded: IndexMap<String, u64>,
    /// `stack_out_ns`, `wire_and_server_ns`, `stack_in_ns`.
    #[serde(flatten)]
    pub spans: IndexMap<String, Distribution>,
}

/// A calibration, or why it does not apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Why an existing calibration does not apply; then nothing else is given.
    pub ignored: Option<String>,
    /// When it was made, in seconds since 1970.
    pub made_at_s: Option<u64>,
    /// Version of brunt then.
    pub version: Option<String>,
    /// What was different then, in words that follow "calibrated".
    pub differences: Vec<String>,
    /// Response times against the reference server over loopback.
    pub loopback_ns: Option<IndexMap<String, u64>>,
    /// The highest rate at which the client's part of the p99 was at most 10 us.
    pub headroom: Option<CapacityTree>,
}

/// The capacity that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityTree {
    /// `"confirmed"`, `"unconfirmed"` (runs in turns do not agree), `"at_least"`, `"below"`, `"undecided"`, `"client"` or `"invalid"`.
    pub result: String,
    /// The highest rate that holds.
    pub passed_per_s: Option<f64>,
    /// The rate above it that does not, or that ended the search.
    pub not_passed_per_s: Option<f64>,
}

/// Raw samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// Kept.
    pub kept: u64,
    /// Dropped for want of room.
    pub overflow: u64,
}

impl ClientTree {
    pub(crate) fn of(summary: &Summary) -> Self {
        let (run, counts, cost) = (&summary.record.run, summary.counts(), RequestCost::of(summary));
        let send_cost = |quantile: Quantile| (quantile.to_string(), send_cost_ns(summary, quantile));
        let meter = |meter: &Meter| (meter.kind.name().to_owned(), MeterRow::of(meter));
        let class = |class: &ClassSummary| (class.name.clone(), Row::of(&class.total, &class.ops));
        Self {
            usage: run.usage.clone(),
            cpu_ns_per_request: whole(cost.map(|cost| cost.cpu_working_ns())),
            syscalls_per_request: cost.map(|cost| cost.syscalls),
            send_cost_ns: [Quantile::P50, Quantile::P99].map(send_cost).into(),
            in_system: InSystem::of(summary),
            host: run.host.clone(),
            connections: Connections::of(summary),
            meters: summary.meters.iter().map(meter).collect(),
            timestamps: Timestamps::of(summary),
            calibration: Calibration::of(&summary.record.calibration),
            traces: run.traces.clone(),
            samples: Samples { kept: counts.samples_kept, overflow: counts.samples_overflow },
            agents: summary.record.agents.clone(),
            classes: summary.classes.iter().map(class).collect(),
        }
    }
}

impl InSystem {
    fn of(summary: &Summary) -> Self {
        let (window_ns, occupancy) = (summary.window.duration_ns(), &summary.counts().occupancy);
        let mean = |sum: u128| (window_ns > 0).then(|| sum as f64 / window_ns as f64);
        Self { by_clock: mean(occupancy.integral), by_samples: mean(occupancy.sum) }
    }
}

impl Connections {
    fn of(summary: &Summary) -> Self {
        let counts = summary.connections;
        let of_phase =
            |phase: Phase| (phase.name().to_owned(), summary.connections_by_phase()[phase as usize]);
        Self {
            counts,
            pending: counts.pending(),
            open: counts.open(),
            most: summary.counts().connections_most,
            phases: Phase::ALL.into_iter().map(of_phase).collect(),
            connect_ns: Distribution::from(&summary.connect_time),
            handshake_ns: Distribution::from(&summary.handshake_time),
        }
    }
}

impl MeterRow {
    fn of(meter: &Meter) -> Self {
        let (values, moments) = (&meter.histogram, meter.histogram.moments());
        let float = || Number::from_f64(moments.sum as f64).unwrap_or_else(|| Number::from(u64::MAX));
        let percentile = |quantile: Quantile| (quantile.to_string(), values.percentile(quantile));
        Self {
            unit: unit_of(meter.kind).to_owned(),
            count: moments.count,
            sum: u64::try_from(moments.sum).map_or_else(|_| float(), Number::from),
            mean: moments.mean(),
            stddev: moments.stddev(),
            geometric_mean: meter.geometric_mean(),
            min: values.min(),
            percentiles: Quantile::PRINTED.into_iter().map(percentile).collect(),
            max: values.max(),
        }
    }
}

impl Timestamps {
    fn of(summary: &Summary) -> Option<Self> {
        let counts = &summary.counts().stamps;
        Some(Self {
            spans: summary
                .spans()?
                .iter()
                .map(|(kind, span)| (format!("{}_ns", kind.name().replace('-', "_")), span.into()))
                .collect(),
            requested: counts.requested,
            matched: counts.matched,
            discarded: StampLoss::ALL
                .into_iter()
                .map(|loss| (loss.name().to_owned(), counts.discarded(loss)))
                .collect(),
        })
    }
}

impl Calibration {
    fn of(lookup: &Lookup) -> Option<Self> {
        let (ignored, fit) = match lookup {
            Lookup::Absent => return None,
            Lookup::Unfit(reason) => (Some(reason.clone()), None),
            Lookup::Fit(fit) => (None, Some(fit)),
        };
        let calibration = fit.map(|fit| &fit.calibration);
        Some(Self {
            ignored,
            made_at_s: calibration.map(|held| held.made_at_s),
            version: calibration.map(|held| held.brunt_version.clone()),
            differences: fit.map(|fit| fit.differences.clone()).unwrap_or_default(),
            loopback_ns: calibration.map(|held| {
                [("p50".to_owned(), held.loopback.p50_ns), ("p99".to_owned(), held.loopback.p99_ns)].into()
            }),
            headroom: calibration.map(|held| CapacityTree::of(held.headroom)),
        })
    }
}

impl CapacityTree {
    pub(crate) fn of(capacity: Capacity) -> Self {
        Self {
            result: capacity.name().to_owned(),
            passed_per_s: capacity.passed(),
            not_passed_per_s: capacity.not_passed(),
        }
    }
}

/// Fewer requests do not show what one costs: the loop's own turns would be most of it.
const REQUESTS_MIN: u64 = 100;

/// Per request; `None` where hardly any was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestCost {
    /// Processor time in user space, in nanoseconds.
    pub cpu_user_ns: f64,
    /// Processor time in the kernel, in nanoseconds.
    pub cpu_system_ns: f64,
    /// Of both, what went into turns of the loop that only waited, so that it is no cost of the request; `None` where
    /// no worker was observed.
    pub cpu_waiting_ns: Option<f64>,
    /// System calls.
    pub syscalls: f64,
}

impl RequestCost {
    /// The cost of a run's requests.
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let requests = summary.total.in_window.sent;
        let per_request = |total: u64| total as f64 / requests as f64;
        let workers = summary.record.run.usage.workers.iter().filter(|worker| worker.wall_ns > 0);
        let waiting_ns = workers.map(|worker| worker.cpu_ns.saturating_sub(worker.busy_ns));
        (requests >= REQUESTS_MIN).then(|| Self {
            cpu_waiting_ns: waiting_ns.reduce(|one, other| one + other).map(per_request),
            cpu_user_ns: per_request(summary.record.run.usage.cpu_user_ns),
            cpu_system_ns: per_request(summary.record.run.usage.cpu_system_ns),
            syscalls: per_request(summary.record.run.usage.syscalls),
        })
    }

    /// Processor time without what went into waiting, in nanoseconds: what the next request would cost, too.
    pub(crate) fn cpu_working_ns(&self) -> f64 {
        (self.cpu_ns() - self.cpu_waiting_ns.unwrap_or(0.0)).max(0.0)
    }

    /// Processor time, user and system, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu_user_ns + self.cpu_system_ns
    }
}

/// The worker that worked most of the window, or was kept from it.
pub(crate) fn busiest(workers: &[WorkerUsage]) -> Option<&WorkerUsage> {
    let taken_ns = |worker: &WorkerUsage| worker.busy_ns + worker.run_delay_ns.unwrap_or(0);
    let share = |worker: &WorkerUsage| taken_ns(worker) as f64 / worker.wall_ns as f64;
    let observed = workers.iter().filter(|worker| worker.wall_ns > 0);
    observed.max_by(|one, other| share(one).total_cmp(&share(other)))
}

/// What a metered number counts, as the word in JSON.
pub(crate) const fn unit_of(kind: MeterKind) -> &'static str {
    match kind {
        MeterKind::Outstanding => "requests",
        MeterKind::RequestSize | MeterKind::ResponseSize | MeterKind::ValueReceived => "bytes",
        // All others are times.
        _ => "ns",
    }
}

/// A percentile of what one send cost, in nanoseconds: metered in every run, asked for or not.
pub(crate) fn send_cost_ns(summary: &Summary, quantile: Quantile) -> Option<u64> {
    let meter = summary.meters.iter().find(|meter| meter.kind == MeterKind::SendCost)?;
    meter.histogram.percentile(quantile)
}
