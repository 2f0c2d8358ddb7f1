//! The numbers of a row as JSON: what became of requests, and how long they took, in one form for every distribution.

use super::whole;
use crate::instant::phase_duration_ns;
use brunt_plan::objective::Statistic;
use brunt_plan::outcome::{OutcomeClass, ReplyKind};
use brunt_plan::phase;
use brunt_plan::quantile::Quantile;
use brunt_stats::confidence::IntervalBasis;
use brunt_stats::interval::Bytes;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::{OpSummary, Rates};
use brunt_stats::request_counts::{KeyCounts, RequestCounts};
use brunt_stats::run_record::PreloadResult;
use brunt_stats::slowest::Slowest;
use brunt_stats::stack_delay::ClientBasis;
use brunt_stats::summary::{PhaseSummary, Summary};
use brunt_stats::window;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of requests of the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// By what became of those that were due in the window.
    pub requests: Requests,
    /// Keys of retrievals that ended.
    pub keys: KeyCounts,
    /// Per second of the window.
    pub rate: Rates,
    /// What happened in the window, whenever due.
    pub in_window: InWindow,
    /// Of all requests: by phase. Operations belong to the phase of their intended time.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub phases: IndexMap<String, Phase>,
}

/// Request accounting: `scheduled = sent + unsent`; `sent` is the sum of `completed` to `in_flight`; `hit`, `miss`, `done` and `rejected`
/// add up to `completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// Due.
    pub scheduled: u64,
    /// Sent.
    pub sent: u64,
    /// Never sent. But for the next two, they waited for a connection.
    pub unsent: u64,
    /// Of `unsent`: abandoned because their server was down.
    pub abandoned: u64,
    /// Of `unsent`: those that the client had no time to send.
    pub unsent_client: u64,
    /// Answered as the protocol provides.
    pub completed: u64,
    /// Answered with an error.
    pub error: u64,
    /// Not answered in time.
    pub timeout: u64,
    /// Answered with a wrong value.
    pub mismatch: u64,
    /// Lost with their connection.
    pub lost: u64,
    /// Sent without requesting a reply.
    pub unacknowledged: u64,
    /// Not ended when the run was over.
    pub in_flight: u64,
    /// Commands on the wire, of which an operation can have several.
    pub wire_requests: u64,
    /// Retrievals that found their key.
    pub hit: u64,
    /// Retrievals that did not.
    pub miss: u64,
    /// Changes that were made.
    pub done: u64,
    /// Changes that the server rejected.
    pub rejected: u64,
    /// Of `scheduled`: fills.
    pub followup: u64,
    /// Ended requests by reply (`stored`, `not_stored`, `exists`, `not_found`, `value`, `number`, `deleted`, `touched`, `ok`, `error`,
    /// `client_error`, `server_error`, `redirect`, `none`); those that did not occur are absent.
    pub replies: IndexMap<String, u64>,
}

impl Requests {
    /// Sent requests that a server is to blame for, or the way to it.
    pub(crate) fn failed(&self) -> u64 {
        self.error + self.timeout + self.lost
    }
}

impl From<&RequestCounts> for Requests {
    fn from(counts: &RequestCounts) -> Self {
        let outcome = |class| counts.outcome(class);
        let replies = ReplyKind::ALL.into_iter().map(|reply| (reply.name().to_owned(), counts.reply(reply)));
        Self {
            scheduled: counts.scheduled,
            sent: counts.sent,
            unsent: counts.unsent,
            abandoned: counts.abandoned,
            unsent_client: counts.unsent_client,
            completed: counts.completed(),
            error: outcome(OutcomeClass::Error),
            timeout: outcome(OutcomeClass::Timeout),
            mismatch: outcome(OutcomeClass::Mismatch),
            lost: outcome(OutcomeClass::Lost),
            unacknowledged: outcome(OutcomeClass::Unacknowledged),
            in_flight: counts.in_flight,
            wire_requests: counts.wire_requests,
            hit: outcome(OutcomeClass::Hit),
            miss: outcome(OutcomeClass::Miss),
            done: outcome(OutcomeClass::Done),
            rejected: outcome(OutcomeClass::Rejected),
            followup: counts.followup,
            replies: replies.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// What happened in the window, whenever due. `in_flight_at_start + sent = completed + failed + unacknowledged + in_flight_at_end`, and
/// `waiting_at_start + requests.scheduled = sent + abandoned + waiting_at_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InWindow {
    /// Sent; `rate.sent` per second.
    pub sent: u64,
    /// Completed; `rate.completed` per second.
    pub completed: u64,
    /// Completed, or answered with an error or a wrong value, or sent without requesting a reply.
    pub answered: u64,
    /// Failed.
    pub failed: u64,
    /// Sent without requesting a reply.
    pub unacknowledged: u64,
    /// Abandoned.
    pub abandoned: u64,
    /// Due before its beginning and neither sent nor abandoned then.
    pub waiting_at_start: u64,
    /// The same of its end.
    pub waiting_at_end: u64,
    /// Sent before its beginning and not ended then.
    pub in_flight_at_start: u64,
    /// The same of its end.
    pub in_flight_at_end: u64,
}

impl From<&window::WindowCounts> for InWindow {
    fn from(counts: &window::WindowCounts) -> Self {
        Self {
            sent: counts.sent,
            completed: counts.completed(),
            answered: counts.answered(),
            failed: counts.failed(),
            unacknowledged: counts.outcome(OutcomeClass::Unacknowledged),
            abandoned: counts.abandoned,
            waiting_at_start: counts.waiting_at_start,
            waiting_at_end: counts.waiting_at_end,
            in_flight_at_start: counts.in_flight_at_start,
            in_flight_at_end: counts.in_flight_at_end,
        }
    }
}

impl Counts {
    pub(crate) fn of(summary: &OpSummary) -> Self {
        Self {
            requests: Requests::from(&summary.requests),
            keys: summary.keys,
            rate: summary.rate,
            in_window: InWindow::from(&summary.in_window),
            phases: IndexMap::new(),
        }
    }
}

/// A phase of the run: `preload`, `warmup`, `measure` or `drain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its length; `null` if the run has no such phase. Preload counts from the first attempt to connect.
    pub duration_ns: Option<u64>,
    /// By what became of those that were due in it.
    pub requests: Requests,
    /// Keys of retrievals that ended.
    pub keys: KeyCounts,
    /// Requests sent, by operation.
    pub ops: IndexMap<String, u64>,
    /// Bytes that crossed the wire in it, with TLS before encryption.
    pub bytes: Bytes,
    /// Of the preload, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<PreloadResult>,
}

impl Phase {
    pub(crate) fn all(summary: &Summary) -> IndexMap<String, Self> {
        let named = |phase: &PhaseSummary| (phase.phase.name().to_owned(), Self::of(summary, phase));
        summary.phases.iter().map(named).collect()
    }

    fn of(summary: &Summary, phase: &PhaseSummary) -> Self {
        // Classes that share an op add up.
        let mut ops = IndexMap::new();
        for entry in &phase.ops {
            let name = summary.record.plan.op_name(entry.op).to_string();
            *ops.entry(name).or_default() += entry.counts.requests.sent;
        }
        Self {
            duration_ns: phase_duration_ns(summary, phase.phase),
            requests: Requests::from(&phase.counts.requests),
            keys: phase.counts.keys,
            ops,
            bytes: phase.bytes,
            stored: summary.record.preload.filter(|_| phase.phase == phase::Phase::Preload),
        }
    }
}

/// How long requests of the window took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Response times of completed requests, from when they were due.
    pub response_ns: Distribution,
    /// Service times of completed requests, from when they were sent.
    pub service_ns: Distribution,
    /// How much later than due they were sent.
    pub send_lag_ns: Distribution,
    /// Lower bounds of the response times, failed requests included (docs/method.md, Bounds).
    pub least_ns: Distribution,
    /// Response times of completed, failed and abandoned requests.
    pub including_failures_ns: Distribution,
    /// Closed loop: client lag of its requests as a fraction of the slots' time (0 in an open loop).
    pub lag_fraction: f64,
    /// Of all requests, where 1000 of them completed: where the slowest 1 % spent their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// Of all requests: what all client errors rest on. `"timestamps"` (`client ~`, an estimate), `"clock"` (`client <=`, upper bounds) or
    /// `"incomplete"` (`client <=?`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_basis: Option<ClientBasis>,
}

/// A distribution of times. Those of `p50`, `p90`, `p95`, `p99`, `p99.9`, `p99.99` and of `--percentiles` are `null` where fewer than ten
/// requests lie above.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Exact mean, to the nanosecond.
    pub mean: Option<u64>,
    /// Exact standard deviation, to the nanosecond.
    pub stddev: Option<u64>,
    /// Exact minimum.
    pub min: Option<u64>,
    /// The percentiles.
    #[serde(flatten)]
    pub percentiles: IndexMap<String, Option<u64>>,
    /// Exact maximum.
    pub max: Option<u64>,
    /// Of `response_ns`: 95 % confidence intervals `[low, high]` by percentile; `high` is `null` without an upper end. Absent for percentiles
    /// that are not given, and in a window of less than 1 s.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub interval: IndexMap<String, (u64, Option<u64>)>,
    /// What each of these rests on.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub interval_basis: IndexMap<String, IntervalBasis>,
    /// Of `response_ns`: client error in each percentile.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub client: IndexMap<String, Option<u64>>,
}

impl From<&LatencySummary> for Distribution {
    fn from(summary: &LatencySummary) -> Self {
        let named = summary.percentiles.iter().map(|held| (held.quantile.to_string(), held.value_ns));
        Self {
            count: summary.count,
            mean: whole(summary.mean_ns),
            stddev: whole(summary.stddev_ns),
            min: summary.min_ns,
            max: summary.max_ns,
            percentiles: named.collect(),
            ..Self::default()
        }
    }
}

impl Distribution {
    /// A number of it.
    pub(crate) fn statistic(&self, statistic: Statistic) -> Option<f64> {
        let ns = match statistic {
            Statistic::Mean => self.mean,
            Statistic::Max => self.max,
            Statistic::Percentile(quantile) => self.percentile(quantile),
        };
        ns.map(|ns| ns as f64)
    }

    pub(crate) fn percentile(&self, quantile: Quantile) -> Option<u64> {
        self.percentiles.get(&quantile.to_string()).copied().flatten()
    }
}

impl Latency {
    pub(crate) fn of(summary: &OpSummary) -> Self {
        let latency = &summary.latency;
        let intervals = || summary.intervals.iter().map(|held| (held.quantile.to_string(), held));
        let quantiles = latency.response.summary.percentiles.iter().map(|held| held.quantile);
        let response_ns = Distribution {
            interval: intervals().map(|(name, held)| (name, (held.low_ns, held.high_ns))).collect(),
            interval_basis: intervals().map(|(name, held)| (name, held.basis)).collect(),
            client: quantiles.map(|held| (held.to_string(), summary.client_error_ns(held))).collect(),
            ..Distribution::from(&latency.response.summary)
        };
        Self {
            response_ns,
            service_ns: Distribution::from(&latency.service.summary),
            send_lag_ns: Distribution::from(&latency.send_lag.summary),
            least_ns: Distribution::from(&latency.least.summary),
            including_failures_ns: Distribution::from(&summary.including_failures()),
            lag_fraction: summary.lag_fraction,
            slowest: None,
            client_basis: None,
        }
    }
}
