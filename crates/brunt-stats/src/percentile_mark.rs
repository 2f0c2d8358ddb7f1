//! How a percentile is shown: as a number to quote, as an upper limit, or not at all.
//!
//! Not its interval, which has its own gate. Invariant: the client's part alone makes a number an upper limit, and the number of requests alone
//! keeps it back.

use crate::op_summary::OpSummary;
use brunt_plan::quantile::Quantile;

/// The client's part up to this is below what a kernel's wake-up costs.
const PART_FLOOR_NS: u64 = 10_000;
/// More than this share of a number is too much to quote it,
const PART_MAX: f64 = 0.20;
/// in a strict judgement more than this.
const PART_MAX_STRICT: f64 = 0.05;

brunt_plan::named! {
    /// How a percentile is shown.
    pub enum PercentileMark {
        /// A number.
        Quoted = "quoted": "may be quoted",
        /// `<=` and the number: the true one lies between it less the client's part and it.
        UpperLimit = "upper_limit": "an upper limit, as much of it may be the client's",
        /// `-`: fewer than ten requests lie above it.
        TooFew = "too_few": "too few requests",
    }
}

impl PercentileMark {
    /// Of a percentile of so many requests with this value, of which so much may be the client's part.
    pub fn of(count: u64, quantile: Quantile, value_ns: u64, client_part_ns: u64, is_strict: bool) -> Self {
        let most = if is_strict { PART_MAX_STRICT } else { PART_MAX };
        if !quantile.is_supported_by(count) {
            Self::TooFew
        } else if client_part_ns > PART_FLOOR_NS && client_part_ns as f64 > most * value_ns as f64 {
            Self::UpperLimit
        } else {
            Self::Quoted
        }
    }
}

impl OpSummary {
    /// How a percentile of its response time is shown.
    pub fn mark(&self, quantile: Quantile, is_strict: bool) -> PercentileMark {
        let response = &self.latency.response.summary;
        let value_ns = response.percentile_ns(quantile).unwrap_or(0);
        let part_ns = self.client_error_ns(quantile).unwrap_or(0);
        PercentileMark::of(response.count, quantile, value_ns, part_ns, is_strict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PercentileMark::{Quoted, TooFew, UpperLimit};

    #[test]
    fn marks_at_their_limits() {
        const US: u64 = 1_000;
        // Requests, percentile, value, client's part; the mark, and that of a strict judgement.
        let table = [
            (999, Quantile::P99, 100 * US, 0, TooFew, TooFew),
            (1_000, Quantile::P99, 100 * US, 0, Quoted, Quoted),
            (1_000, Quantile::P99, 100 * US, 20 * US, Quoted, UpperLimit),
            (1_000, Quantile::P99, 100 * US, 20 * US + 1, UpperLimit, UpperLimit),
            // What a wake-up costs is never held against a number.
            (1_000, Quantile::P99, 10 * US, 10 * US, Quoted, Quoted),
            (1_000, Quantile::P99, 10 * US, 10 * US + 1, UpperLimit, UpperLimit),
            (1_000, Quantile::P99, 1_000 * US, 50 * US, Quoted, Quoted),
            (1_000, Quantile::P99, 1_000 * US, 50 * US + 1, Quoted, UpperLimit),
        ];
        for (count, quantile, value_ns, part_ns, mark, strict) in table {
            let of = |is_strict| PercentileMark::of(count, quantile, value_ns, part_ns, is_strict);
            assert_eq!([of(false), of(true)], [mark, strict], "{count} {value_ns} {part_ns}");
        }
    }
}
