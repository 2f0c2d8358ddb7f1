//! Half widths of the 95 % intervals of means, rates and ratios: quantities that are quotients of sums.
//!
//! Percentiles have intervals of their own ([`crate::confidence`]).

use crate::batch::Batch;
use crate::confidence::half_width_of_quotient;
use crate::measured_window::MeasuredWindow;
use crate::request_counts::OpCounts;

/// Half of the 95 % interval of each quantity that is a quotient of sums, from batches; `None` where there are too few of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HalfWidths {
    /// Half-width of the mean response time, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Half-width of the requests completed per second.
    pub rate: Option<f64>,
    /// Half-width of the fraction of keys found.
    pub hit: Option<f64>,
    /// Half-width of the fraction of requests that failed.
    pub errors: Option<f64>,
}

impl HalfWidths {
    /// Half of the 95 % interval of each quantity that is a quotient of sums over batches. In a window that is too short for batches a rate is
    /// known as well as a Poisson count is, within four of its standard deviations.
    pub(crate) fn of(batches: &[Batch], counts: &OpCounts, window: &MeasuredWindow) -> Self {
        let moments = |batch: &Batch| {
            let moments = batch.response.moments();
            (moments.sum as f64, moments.count as f64)
        };
        let per_second =
            |batch: &Batch| (batch.completed as f64, (batch.end_ns - batch.start_ns) as f64 / 1e9);
        let completed = counts.in_window.completed() as f64;
        let counted = (window.duration_ns() > 0).then(|| 4.0 * completed.sqrt() / window.seconds());
        let faulty = |batch: &Batch| (batch.faulty as f64, (batch.completed + batch.faulty) as f64);
        // Keys asked for are not kept over time; a request asks for as many of them at all times.
        let keys_per_request = counts.keys.requested as f64 / counts.requests.completed().max(1) as f64;
        let missed = |batch: &Batch| (batch.missed as f64, batch.completed as f64 * keys_per_request);
        Self {
            mean_ns: half_width_of_quotient(batches.iter().map(moments)),
            rate: half_width_of_quotient(batches.iter().map(per_second)).or(counted),
            hit: half_width_of_quotient(batches.iter().map(missed)),
            errors: half_width_of_quotient(batches.iter().map(faulty)),
        }
    }
}
