//! When things happened in a run, as reports give it: relative to the beginning of the measured window.
//!
//! Not latencies (those are differences of a sample's times). The run's own clock begins anywhere.

use brunt_plan::phase::Phase;
use brunt_stats::summary::Summary;

/// Nanoseconds from the beginning of the measured window; before it, negative. Exact while a run lasts less than 292
/// years.
pub(crate) fn in_window_ns(summary: &Summary, at_ns: u64) -> i64 {
    at_ns.wrapping_sub(summary.window.measure_ns) as i64
}

/// How long a phase lasted, in nanoseconds; `None` where the run had no such phase. Preload counts from the first
/// attempt to connect, so connecting has no length of its own.
pub(crate) fn phase_duration_ns(summary: &Summary, phase: Phase) -> Option<u64> {
    let window = &summary.window;
    match phase {
        Phase::Connect => None,
        Phase::Preload => summary.record.preload.map(|preload| preload.duration_ns),
        Phase::Warmup => Some(window.measure_ns.saturating_sub(window.start_ns)),
        Phase::Measure => Some(window.duration_ns()),
        Phase::Drain => Some(window.drained_ns.saturating_sub(window.end_ns)),
    }
}
