//! Is too much of a percentile the client's own part?
//!
//! Not whether it may be quoted (`percentile_mark.rs`), and not why. Invariant: what a wake-up costs is never too much.

use crate::check::CheckStatus;
use crate::latency::ClientError;
use crate::op_summary::OpSummary;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;

/// The client's part up to this is below what a kernel's wake-up costs.
const PART_FLOOR_NS: u64 = 10_000;
/// More than this share of a percentile may not be the client's.
pub(crate) const PART_MAX: f64 = 0.5;
/// How the client's part of all requests comes out while a run goes on.
pub(crate) fn status_of_part(plan: &Plan, total: &OpSummary) -> CheckStatus {
    let asked = plan.asked_quantiles();
    let errors = || judged(total, &asked);
    match (errors().any(is_most), errors().all(is_most)) {
        _ if errors().next().is_none() => CheckStatus::Skipped,
        (true, true) if plan.has_open_loop() => CheckStatus::Invalid,
        (true, _) => CheckStatus::Caution,
        (false, _) => CheckStatus::Ok,
    }
}

/// The client's part of each of these percentiles that a row has.
pub(crate) fn judged<'a>(row: &'a OpSummary, asked: &'a [Quantile]) -> impl Iterator<Item = &'a ClientError> {
    row.client_error.iter().filter(|error| asked.contains(&error.quantile))
}

/// Is more than half of it the client's?
pub(crate) fn is_most(error: &ClientError) -> bool {
    error.error_ns > PART_FLOOR_NS && error.error_ns as f64 > PART_MAX * error.response_ns as f64
}
