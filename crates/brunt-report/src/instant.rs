//! When things happened in a run, as reports give it: relative to the beginning of the measured window, or by the wall clock in UTC.
//!
//! Not latencies (those are differences of a sample's times). The run's own clock begins anywhere; no clock is read here.

use brunt_plan::phase::Phase;
use brunt_stats::summary::Summary;
use jiff::Timestamp;

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

/// An instant in microseconds since 1970 by RFC 3339, such as `2026-11-23T11:55:00.123456Z`; `None` beyond the year 9999.
fn rfc3339(us: u64) -> Option<String> {
    let instant = Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()?;
    Some(format!("{instant:.6}"))
}

/// Nanoseconds since 1970 of an instant by RFC 3339, such as `2027-01-31T12:00:00Z`, or in seconds since 1970.
pub fn parse(text: &str) -> Option<u64> {
    let seconds = text.parse().ok().map(Timestamp::from_second);
    let instant = seconds.unwrap_or_else(|| text.parse()).ok()?;
    u64::try_from(instant.as_nanosecond()).ok()
}

/// The day of an instant in seconds since 1970.
pub fn date(seconds: u64) -> String {
    let instant = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    instant.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%d").to_string()
}

/// When it was by the wall clock at an instant of the run; `None` where no clock of a host was read.
pub(crate) fn of_run(summary: &Summary, at_ns: u64) -> Option<String> {
    summary.record.run.times.epoch_us.and_then(|epoch_us| at(epoch_us, at_ns))
}

/// The same, of a clock that is at 0 so many microseconds after 1970.
pub(crate) fn at(epoch_us: u64, at_ns: u64) -> Option<String> {
    rfc3339(epoch_us.saturating_add(at_ns / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u` writes them.
    #[test]
    fn instants_have_their_date() {
        for (us, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_795_132_800_000_000, "2026-11-20T00:00:00.000000Z"),
            (4_102_444_799_000_000, "2099-12-31T23:59:59.000000Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        ] {
            assert_eq!(rfc3339(us).as_deref(), Some(expected));
            assert_eq!(date(us / 1_000_000), expected[..10]);
        }
        assert_eq!((rfc3339(u64::MAX), rfc3339(1 << 62)), (None, None));
    }
}
