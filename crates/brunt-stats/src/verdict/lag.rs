//! The check of the client's own share in the response times.
//!
//! Not why the client was late (that is the host's to say): how much of each percentile it may have held. Which percentiles that concerns
//! is told of each of them (`trust.rs`); the whole run is worthless only where most of its median is client error.

use super::{Evidence, LagRow};
use crate::check::{Check, CheckStatus, Limits};
use crate::latency::ClientError;
use crate::number_text::{percent, share, time};
use brunt_plan::quantile::Quantile;

/// Client errors up to this are below what a kernel's wake-up costs, and never held against a run.
const LAG_FLOOR_NS: f64 = 10_000.0;
/// Client error as a fraction of a percentile.
const LAG: Limits = Limits { caution: 0.20, not_trusted: f64::INFINITY };
/// Client error as a fraction of the median of all requests.
const LAG_OF_MEDIAN: Limits = Limits { caution: 0.20, not_trusted: 0.50 };
/// Client error as a fraction of a percentile, in a publication.
const LAG_STRICT: Limits = Limits { caution: 0.05, not_trusted: 0.20 };

/// The client error of one percentile against its threshold.
pub(super) struct Lag<'a> {
    row: &'a LagRow,
    error: &'a ClientError,
    pub status: CheckStatus,
    threshold_ns: f64,
}

impl<'a> Lag<'a> {
    /// `is_total`: the row is that of all requests.
    pub(super) fn of(row: &'a LagRow, error: &'a ClientError, is_total: bool, is_strict: bool) -> Self {
        let of_median = is_total && error.quantile == Quantile::P50;
        let limits = match (is_strict, of_median) {
            (true, _) => LAG_STRICT,
            (false, true) => LAG_OF_MEDIAN,
            (false, false) => LAG,
        };
        let limit_ns = |share: f64| LAG_FLOOR_NS.max(share * error.response_ns as f64);
        let limits = Limits { caution: limit_ns(limits.caution), not_trusted: limit_ns(limits.not_trusted) };
        let is_most = of_median
            && error.error_ns as f64 > LAG_FLOOR_NS.max(LAG_OF_MEDIAN.not_trusted * error.response_ns as f64);
        let status = match limits.judge(error.error_ns as f64) {
            // In closed loop a late client lowers the load, and the latency is that at the load that was reached.
            CheckStatus::NotTrusted if row.is_closed_loop && is_strict && !is_most => CheckStatus::Caution,
            status => status,
        };
        Self { row, error, status, threshold_ns: limits.caution }
    }

    fn excess(&self) -> f64 {
        self.error.error_ns as f64 / self.threshold_ns
    }
}

/// Every percentile that is judged. p99.99 is printed with its client error but rests on too few requests to convict a run.
fn judged<'a>(evidence: &'a Evidence<'_>, is_strict: bool) -> impl Iterator<Item = Lag<'a>> {
    let rows = evidence.lag_rows.iter().enumerate();
    let all = rows.flat_map(move |(index, row)| {
        row.errors.iter().map(move |error| Lag::of(row, error, index == 0, is_strict))
    });
    all.filter(|lag| lag.error.quantile <= Quantile::P999)
}

/// The worst of the rows whose load is open loop throughout, by the strict thresholds: how late the client was, and not what it did to the
/// run.
pub(super) fn open_loop_status(evidence: &Evidence<'_>) -> CheckStatus {
    let open = judged(evidence, true).filter(|lag| !lag.row.is_closed_loop);
    open.map(|lag| lag.status).max().unwrap_or(CheckStatus::Skipped)
}

/// The percentile with the worst status and, among those, the largest excess over its limit.
fn worst<'a>(evidence: &'a Evidence<'_>) -> Option<Lag<'a>> {
    judged(evidence, evidence.judgement.is_strict)
        .max_by(|one, other| one.status.cmp(&other.status).then(one.excess().total_cmp(&other.excess())))
}

/// The client error of [`worst`], where LAG objects to it.
pub(super) fn worst_found<'a>(evidence: &'a Evidence<'_>) -> Option<&'a ClientError> {
    worst(evidence).filter(|worst| worst.status > CheckStatus::Ok).map(|worst| worst.error)
}

/// The lowest and the highest percentile that LAG objects to.
pub(super) fn found_between(evidence: &Evidence<'_>) -> Option<(Quantile, Quantile)> {
    let found = judged(evidence, evidence.judgement.is_strict).filter(|lag| lag.status > CheckStatus::Ok);
    let quantiles: Vec<Quantile> = found.map(|lag| lag.error.quantile).collect();
    quantiles.iter().copied().min().zip(quantiles.iter().copied().max())
}

/// How much of the response times may be the client's own?
pub(super) fn lag(evidence: &Evidence<'_>) -> Check {
    let Some(worst) = worst(evidence) else {
        return Check::skipped("LAG", "too few samples for any percentile", LAG_FLOOR_NS);
    };
    let ClientError { quantile, response_ns, error_ns } = *worst.error;
    let name = &worst.row.name;
    let part = percent(share(error_ns, response_ns));
    let message = if worst.row.is_closed_loop {
        format!(
            "latency at this concurrency, client share <= {part}: {} of {} of the {quantile} of {name}",
            time(error_ns),
            time(response_ns)
        )
    } else {
        format!(
            "up to {} of the {quantile} of {name}, {}, may be the client's own ({part})",
            time(error_ns),
            time(response_ns)
        )
    };
    let fix = "what made the client late is not in the record: pin it to processors of its own (--cpus), and see what brunt doctor finds";
    Check::judged("LAG", worst.status, message, fix, error_ns as f64, worst.threshold_ns)
}
