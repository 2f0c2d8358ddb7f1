//! A step of a calibration: how long it is, and how many keys it reads.

use brunt_plan::units::DurationNs;

/// Its default length.
pub(crate) const STEP: DurationNs = DurationNs(1_000_000_000);
/// Half of a step's requests may be missing before its p99 is. Of 100 ms some time slices of the scheduler are half,
/// and a busy neighbour takes that many in a row.
pub(crate) const STEP_MIN: DurationNs = DurationNs(250_000_000);
/// The median of more than ten times as many requests as a p99 needs is not worth a host that stays idle for hours.
pub(crate) const STEP_MAX: DurationNs = DurationNs(60_000_000_000);
/// Few, so that a step begins soon; the reference server's time does not depend on them.
pub(crate) const KEYS: u64 = 1_000;
