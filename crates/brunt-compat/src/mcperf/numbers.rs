//! From a summary to the numbers of mcperf's report.
//!
//! Not their layout, which is [`super::report`]'s. Invariant: without values every number is 0, never infinite.

use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::connection::FaultKind;
use brunt_stats::histogram::{Histogram, Moments, bucket_values};
use brunt_stats::summary::Summary;
use std::collections::BTreeMap;

/// Nanoseconds in the unit of all times that are printed.
const MS: f64 = 1e6;
/// mcperf's histogram has 100 000 steps of a millisecond, and what is longer is in the last.
const LONGEST_NS: u64 = 100_000_000_000;
/// Percentiles that are printed, in millionths.
const PER_MILLION: [u32; 6] = [250_000, 500_000, 750_000, 950_000, 990_000, 999_000];

/// What is known of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are the words of the lines")]
pub struct Spread {
    pub avg: f64,
    pub min: f64,
    pub max: f64,
    pub stddev: f64,
}

impl Spread {
    /// Of exact sums, divided by `unit`; the standard deviation is that of a sample (divided by n − 1).
    fn of(moments: &Moments, unit: f64) -> Self {
        let Some((mean, deviation)) = moments.mean().zip(moments.stddev()) else { return Self::default() };
        let count = moments.count as f64;
        let stddev = if count > 1.0 { deviation * (count / (count - 1.0)).sqrt() } else { 0.0 };
        Self {
            avg: mean / unit,
            min: moments.min as f64 / unit,
            max: moments.max as f64 / unit,
            stddev: stddev / unit,
        }
    }
}

/// How long it took from a call to its response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseTimes {
    /// Milliseconds.
    pub spread: Spread,
    /// p25, p50, p75, p95, p99 and p999 in milliseconds, 0.1 % too high at most.
    pub percentiles: [f64; PER_MILLION.len()],
    /// Every step of the histogram that holds any, with how many.
    pub steps: BTreeMap<u64, u64>,
    /// The step that nothing lies beyond.
    pub last_step: u64,
}

impl ResponseTimes {
    /// Of nanoseconds, in steps of this length.
    fn of(histogram: &Histogram, step_ns: u64) -> Self {
        let percentile = |per_million: u32| {
            let quantile = Quantile::from_millionths(per_million)?;
            histogram.quantile(quantile).map(|value_ns| value_ns as f64 / MS)
        };
        let last_step = LONGEST_NS / step_ns - 1;
        let mut steps = BTreeMap::new();
        for (bucket, count) in histogram.buckets() {
            let (start, end) = bucket_values(bucket).into_inner();
            let start = start.max(histogram.min().unwrap_or(0));
            let end = end.min(histogram.max().unwrap_or(u64::MAX));
            let middle = (start as f64 + end as f64) / 2.0;
            let step = (middle / step_ns as f64).round_ties_even() as u64;
            *steps.entry(step.min(last_step)).or_insert(0) += count;
        }
        Self {
            spread: Spread::of(histogram.moments(), MS),
            percentiles: PER_MILLION.map(|per_million| percentile(per_million).unwrap_or(0.0)),
            steps,
            last_step,
        }
    }
}

/// Why connections failed or were lost, in the words and the order of the report. The last is everything else, and connections
/// that the server closed in good order.
pub const ERRORS: [&str; 8] = [
    "client-timo",
    "socket-timo",
    "connrefused",
    "connreset",
    "fd-unavail",
    "ftab-full",
    "addrunavail",
    "other",
];

/// Everything that the report has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// Attempts to connect.
    pub connections: u64,
    /// Calls that were written.
    pub requests: u64,
    /// Calls that were answered, with whatever.
    pub responses: u64,
    /// From the first attempt until the last connection had ended.
    pub seconds: f64,
    /// The most connections established at a time.
    pub concurrent: u64,
    /// From an attempt until the end of its connection, milliseconds.
    pub connection_time: Spread,
    /// From an attempt until its connection stood, milliseconds.
    pub connect_time: Spread,
    /// Bytes.
    pub request_size: Spread,
    /// Bytes.
    pub response_size: Spread,
    /// Response times of calls with a valid reply.
    pub response_times: ResponseTimes,
    /// Responses by their first word; `replies[kind as usize]`.
    pub replies: [u64; ReplyKind::COUNT],
    /// How many of the replies that found nothing say so as retrievals do.
    pub ends: u64,
    /// How many connections failed or were lost, by [`ERRORS`].
    pub errors: [u64; ERRORS.len()],
    /// Processor time in user space, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub system_s: f64,
    /// Bytes of all requests and responses.
    pub bytes: u64,
}

impl Numbers {
    /// Of a run. Response times are from when a call was due, or from when it was sent; steps of the histogram have this length.
    pub fn of(summary: &Summary, from_sent: bool, step_ns: u64) -> Self {
        let meter = |kind| {
            let meter = summary.meters.iter().find(|meter| meter.kind == kind);
            meter.map_or_else(Moments::default, |meter| *meter.histogram.moments())
        };
        let (request_size, response_size) = (meter(MeterKind::RequestSize), meter(MeterKind::ResponseSize));
        let latency = &summary.total.latency;
        let times = if from_sent { &latency.service } else { &latency.response };
        let record = &summary.record.run;
        let mut numbers = Self {
            connections: summary.connections.begun,
            seconds: record.times.drained_ns.saturating_sub(record.times.start_ns) as f64 / 1e9,
            concurrent: summary.counts().connections_most,
            connection_time: Spread::of(&meter(MeterKind::ConnectionTime), MS),
            connect_time: Spread::of(&meter(MeterKind::ConnectTime), MS),
            request_size: Spread::of(&request_size, 1.0),
            response_size: Spread::of(&response_size, 1.0),
            response_times: ResponseTimes::of(&times.histogram, step_ns),
            errors: errors(summary),
            user_s: record.usage.cpu_user_ns as f64 / 1e9,
            system_s: record.usage.cpu_system_ns as f64 / 1e9,
            bytes: u64::try_from(request_size.sum + response_size.sum).unwrap_or(u64::MAX),
            ..Self::default()
        };
        for entry in summary.phases.iter().flat_map(|phase| &phase.ops) {
            numbers.requests += entry.counts.requests.sent;
            for kind in ReplyKind::ALL.into_iter().filter(|kind| *kind != ReplyKind::None) {
                let count = entry.counts.requests.reply(kind);
                numbers.responses += count;
                numbers.replies[kind as usize] += count;
                if kind == ReplyKind::NotFound && matches!(entry.op.kind(), OpKind::Get | OpKind::Gets) {
                    numbers.ends += count;
                }
            }
        }
        numbers
    }

    /// Responses of this kind.
    pub const fn reply(&self, kind: ReplyKind) -> u64 {
        self.replies[kind as usize]
    }
}

fn errors(summary: &Summary) -> [u64; ERRORS.len()] {
    let mut errors = [0; ERRORS.len()];
    for fault in summary.faults().rows() {
        let word = match fault.kind {
            FaultKind::TimedOut => "client-timo",
            FaultKind::SocketTimedOut => "socket-timo",
            FaultKind::Refused => "connrefused",
            FaultKind::Reset => "connreset",
            FaultKind::NoDescriptor => "fd-unavail",
            FaultKind::NoFile => "ftab-full",
            FaultKind::NoPort => "addrunavail",
            FaultKind::ClosedByPeer
            | FaultKind::Malformed
            | FaultKind::SetupRejected
            | FaultKind::TlsFailed
            | FaultKind::Other(_) => "other",
        };
        let place = ERRORS.iter().position(|known| *known == word);
        errors[place.unwrap_or(ERRORS.len() - 1)] += fault.count;
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(times_ns: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        times_ns.iter().for_each(|time_ns| histogram.record(*time_ns));
        histogram
    }

    #[test]
    fn spreads_are_those_of_the_values() {
        // 2 4 4 4 5 5 7 9: Σ(v − 5)² = 32, of eight.
        let spread = Spread::of(histogram(&[2, 4, 4, 4, 5, 5, 7, 9]).moments(), 1.0);
        assert_eq!((spread.avg, spread.min, spread.max), (5.0, 2.0, 9.0));
        assert!((spread.stddev - (32.0f64 / 7.0).sqrt()).abs() < 1e-12, "{spread:?}");
        let one = Spread { avg: 7.0, min: 7.0, max: 7.0, stddev: 0.0 };
        assert_eq!(Spread::of(histogram(&[7]).moments(), 1.0), one);
        assert_eq!(Spread::of(histogram(&[]).moments(), 1.0), Spread::default());
    }

    #[test]
    fn steps_are_rounded_to_the_nearest_and_percentiles_are_not() {
        let times_ns = [0, 400_000, 600_000, 1_400_000, 7_000_000, 100_000_000, 200_000_000_000];
        let times = ResponseTimes::of(&histogram(&times_ns), 1_000_000);
        let steps: Vec<_> = times.steps.into_iter().collect();
        assert_eq!(steps, [(0, 2), (1, 2), (7, 1), (100, 1), (99_999, 1)]);
        let fine = ResponseTimes::of(&histogram(&times_ns), 100_000);
        let steps: Vec<_> = fine.steps.into_iter().collect();
        assert_eq!(steps, [(0, 1), (4, 1), (6, 1), (14, 1), (70, 1), (1000, 1), (999_999, 1)]);
        // Every value of 1 ms to 1000 ms once.
        let times_ns: Vec<u64> = (1..=1000).map(|ms| ms * 1_000_000).collect();
        let found = ResponseTimes::of(&histogram(&times_ns), 1_000_000).percentiles;
        for (found, expected) in found.into_iter().zip([250.0, 500.0, 750.0, 950.0, 990.0, 999.0]) {
            assert!((expected..=expected * 1.001).contains(&found), "{found}, not {expected}");
        }
        assert_eq!(ResponseTimes::of(&histogram(&[]), 1_000_000).percentiles, [0.0; 6]);
    }
}
