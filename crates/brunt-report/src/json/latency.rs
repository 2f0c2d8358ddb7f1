//! Latencies as JSON: one form for every distribution, with its percentiles by name.

use super::whole;
use brunt_plan::objective::Statistic;
use brunt_plan::quantile::Quantile;
use brunt_stats::client_basis::ClientBasis;
use brunt_stats::confidence::PercentileInterval;
use brunt_stats::latency::LatencySummary;
use brunt_stats::op_summary::OpSummary;
use brunt_stats::slowest::Slowest;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Of all requests: what all client errors rest on. `"timestamps"` (an estimate), `"clock"` (upper bounds) or `"incomplete"` (an estimate
    /// without enough timestamps).
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

/// What an interval rests on (docs/method.md, Confidence intervals).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalBasis {
    /// Batches of the window.
    pub batches: u32,
    /// Variance of the rank over that of independent requests.
    pub design_effect: f64,
    /// So many independent requests would have told as much.
    pub effective_count: f64,
    /// Half a bucket; the ends contain theirs.
    pub quantisation_ns: u64,
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
        let basis = |interval: &PercentileInterval| IntervalBasis {
            batches: interval.batches,
            design_effect: interval.design_effect,
            effective_count: interval.effective_count,
            quantisation_ns: interval.quantisation_ns,
        };
        let intervals = || summary.intervals.iter().map(|held| (held.quantile.to_string(), held));
        let quantiles = latency.response.summary.percentiles.iter().map(|held| held.quantile);
        let response_ns = Distribution {
            interval: intervals().map(|(name, held)| (name, (held.low_ns, held.high_ns))).collect(),
            interval_basis: intervals().map(|(name, held)| (name, basis(held))).collect(),
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
