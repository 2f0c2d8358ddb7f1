//! The check of the client's own share in the response times.
//!
//! Not why the client was late (that is the host's to say): how much of each percentile it may have held.

use super::{Check, CheckStatus, Evidence, LagRow, Limits, percent, share, time};
use crate::latency::ClientError;
use brunt_plan::quantile::Quantile;

/// Client errors up to this are below what a kernel's wake-up costs, and never held against a run.
const LAG_FLOOR_NS: f64 = 10_000.0;
/// Share of a percentile that may be the client's.
const LAG: Limits = Limits { caution: 0.05, not_trusted: 0.20 };

/// The client error of one percentile against its threshold.
struct Lag<'a> {
    row: &'a LagRow,
    error: &'a ClientError,
    status: CheckStatus,
    threshold_ns: f64,
}

impl<'a> Lag<'a> {
    fn of(row: &'a LagRow, error: &'a ClientError) -> Self {
        let limit_ns = |share: f64| LAG_FLOOR_NS.max(share * error.response_ns as f64);
        let limits = Limits { caution: limit_ns(LAG.caution), not_trusted: limit_ns(LAG.not_trusted) };
        let status = match limits.judge(error.error_ns as f64) {
            CheckStatus::NotTrusted if row.is_closed_loop => CheckStatus::Caution,
            status => status,
        };
        Self { row, error, status, threshold_ns: limits.caution }
    }

    fn excess(&self) -> f64 {
        self.error.error_ns as f64 / self.threshold_ns
    }
}

/// Every percentile that is judged. p99.99 is printed with its client error but rests on too few requests to convict a run.
fn judged(evidence: &Evidence) -> impl Iterator<Item = Lag<'_>> {
    let all =
        evidence.lag_rows.iter().flat_map(|row| row.errors.iter().map(move |error| Lag::of(row, error)));
    all.filter(|lag| lag.error.quantile <= Quantile::P999)
}

/// The worst of the rows whose load is open loop throughout.
pub(super) fn open_loop_status(evidence: &Evidence) -> CheckStatus {
    let open = judged(evidence).filter(|lag| !lag.row.is_closed_loop);
    open.map(|lag| lag.status).max().unwrap_or(CheckStatus::Skipped)
}

/// How much of the response times may be the client's own?
pub(super) fn lag(evidence: &Evidence) -> Check {
    let worst = judged(evidence)
        .max_by(|one, other| one.status.cmp(&other.status).then(one.excess().total_cmp(&other.excess())));
    let Some(worst) = worst else {
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
    let fix = if worst.row.is_closed_loop {
        "give the client more processors (--threads), or use fewer --connections or less --depth"
    } else {
        "give the client more processors (--threads), or lower the rate"
    };
    Check::judged("LAG", worst.status, message, fix, error_ns as f64, worst.threshold_ns)
}
