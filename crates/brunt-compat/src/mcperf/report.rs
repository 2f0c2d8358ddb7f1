//! mcperf's report: its numbers, from the summary of a run, and its text, to the column.
//!
//! Invariant: what scripts cut out is where they look for it, and blocks about what did not happen are left out, as there. Without values
//! every number is 0, never infinite.

use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::connection::FaultKind;
use brunt_stats::histogram::{Histogram, Moments, bucket_values};
use brunt_stats::summary::Summary;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The steps of a histogram, and how times are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// A step of the histogram.
    pub step_ns: u64,
    /// Decimals of what a step begins with, in milliseconds.
    step_decimals: usize,
    /// Decimals of means, extremes and percentiles of times, in milliseconds.
    time_decimals: usize,
    /// Decimals of their standard deviations.
    stddev_decimals: usize,
}

impl Precision {
    /// mcperf's.
    pub const USUAL: Self =
        Self { step_ns: 1_000_000, step_decimals: 1, time_decimals: 1, stddev_decimals: 2 };
    /// The layout of `--fine`.
    pub const FINE: Self = Self { step_ns: 100_000, step_decimals: 2, time_decimals: 3, stddev_decimals: 3 };
}

/// The report of a run.
pub fn text(numbers: &Numbers, precision: Precision, prints_histogram: bool) -> String {
    let Numbers { connections, requests, responses, seconds, .. } = *numbers;
    let mut text = format!(
        "\nTotal: connections {connections} requests {requests} responses {responses} test-duration {seconds:.3} s\n\n"
    );
    if connections > 0 {
        let (rate, each) = rate(connections, seconds);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "Connection rate: {rate:.1} conn/s ({each:.1} ms/conn <= {} concurrent connections)",
            numbers.concurrent
        );
        text.push_str(&times("Connection", &numbers.connection_time, precision));
        text.push_str(&times("Connect", &numbers.connect_time, precision));
        text.push('\n');
    }
    if requests > 0 {
        let (rate, each) = rate(requests, seconds);
        let _ = writeln!(text, "Request rate: {rate:.1} req/s ({each:.1} ms/req)");
        text.push_str(&sizes("Request", &numbers.request_size));
        text.push('\n');
    }
    if responses > 0 {
        text.push_str(&responses_block(numbers, precision, prints_histogram));
    }
    text.push_str(&errors(numbers));
    text.push_str(&cost(numbers));
    text.push('\n');
    text
}

/// Per second, and how many milliseconds each; 0 of a run without length.
fn rate(count: u64, seconds: f64) -> (f64, f64) {
    if seconds > 0.0 { (count as f64 / seconds, 1e3 * seconds / count as f64) } else { (0.0, 0.0) }
}

fn times(name: &str, spread: &Spread, precision: Precision) -> String {
    let Spread { avg, min, max, stddev } = spread;
    let (decimals, of_stddev) = (precision.time_decimals, precision.stddev_decimals);
    format!(
        "{name} time [ms]: avg {avg:.decimals$} min {min:.decimals$} max {max:.decimals$} stddev {stddev:.of_stddev$}\n"
    )
}

fn sizes(name: &str, spread: &Spread) -> String {
    let Spread { avg, min, max, stddev } = spread;
    format!("{name} size [B]: avg {avg:.1} min {min:.1} max {max:.1} stddev {stddev:.2}\n")
}

fn responses_block(numbers: &Numbers, precision: Precision, prints_histogram: bool) -> String {
    let (rate, each) = rate(numbers.responses, numbers.seconds);
    let mut text = format!("Response rate: {rate:.1} rsp/s ({each:.1} ms/rsp)\n");
    text.push_str(&sizes("Response", &numbers.response_size));
    text.push_str(&times("Response", &numbers.response_times.spread, precision));
    if prints_histogram {
        text.push_str(&histogram(&numbers.response_times, precision));
    }
    let [p25, p50, p75, p95, p99, p999] = numbers.response_times.percentiles;
    let decimals = precision.time_decimals;
    let _ =
        writeln!(text, "Response time [ms]: p25 {p25:.decimals$} p50 {p50:.decimals$} p75 {p75:.decimals$}");
    let _ = writeln!(
        text,
        "Response time [ms]: p95 {p95:.decimals$} p99 {p99:.decimals$} p999 {p999:.decimals$}"
    );
    let of = |kind| numbers.reply(kind);
    let types = [
        ("stored", of(ReplyKind::Stored)),
        ("not_stored", of(ReplyKind::NotStored)),
        ("exists", of(ReplyKind::Exists)),
        ("not_found", of(ReplyKind::NotFound) - numbers.ends),
        ("num", of(ReplyKind::Number)),
        ("deleted", of(ReplyKind::Deleted)),
        ("end", numbers.ends),
        ("value", of(ReplyKind::Value)),
        ("error", of(ReplyKind::Error)),
        ("client_error", of(ReplyKind::ClientError)),
        ("server_error", of(ReplyKind::ServerError)),
    ];
    for types in types.chunks(4) {
        let cells: String = types.iter().map(|(word, count)| format!(" {word} {count}")).collect();
        let _ = writeln!(text, "Response type:{cells}");
    }
    text.push('\n');
    text
}

/// Steps that hold any, and a colon for a gap before one and for the end of what there is.
fn histogram(times: &ResponseTimes, precision: Precision) -> String {
    const GAP: &str = "             :\n";
    let mut text = "Response time histogram [ms]:\n".to_owned();
    let mut next = 0;
    for (step, count) in &times.steps {
        if *step > next {
            text.push_str(GAP);
        }
        let begin_ms = *step as f64 * precision.step_ns as f64 / 1e6;
        let decimals = precision.step_decimals;
        let _ = writeln!(text, "{begin_ms:>16.decimals$} {count}");
        next = step + 1;
    }
    if next <= times.last_step {
        text.push_str(GAP);
    }
    text
}

fn errors(numbers: &Numbers) -> String {
    let total: u64 = numbers.errors.iter().sum();
    let cells: Vec<String> =
        ERRORS.iter().zip(numbers.errors).map(|(word, count)| format!(" {word} {count}")).collect();
    let (first, second) = cells.split_at(4);
    format!("Errors: total {total}{}\nErrors:{}\n\n", first.concat(), second.concat())
}

/// Processor time and bytes.
fn cost(numbers: &Numbers) -> String {
    const KIBIBYTE: f64 = 1024.0;
    let Numbers { seconds, user_s, system_s, bytes, .. } = *numbers;
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let percent = |time_s: f64| 100.0 * per_second(time_s);
    let mut text = format!(
        "CPU time [s]: user {user_s:.2} system {system_s:.2} (user {:.1}% system {:.1}% total {:.1}%)\n",
        percent(user_s),
        percent(system_s),
        percent(user_s + system_s)
    );
    if numbers.requests + numbers.responses > 0 {
        let units = ["B", "KB", "MB", "GB"];
        // The largest of them that the number is above 1 in.
        let power = (1..units.len()).rfind(|power| bytes > 1 << (10 * power)).unwrap_or(0);
        let bytes = bytes as f64;
        let _ = writeln!(
            text,
            "Net I/O: bytes {:.1} {} rate {:.1} KB/s ({:.1}*10^6 bps)",
            bytes / KIBIBYTE.powi(power as i32),
            units[power],
            per_second(bytes) / KIBIBYTE,
            per_second(bytes * 8.0) / 1e6
        );
    }
    text
}

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

/// The place of a fault in [`ERRORS`].
const fn error_place(fault: FaultKind) -> usize {
    match fault {
        FaultKind::TimedOut => 0,
        FaultKind::SocketTimedOut => 1,
        FaultKind::Refused => 2,
        FaultKind::Reset => 3,
        FaultKind::NoDescriptor => 4,
        FaultKind::NoFile => 5,
        FaultKind::NoPort => 6,
        FaultKind::ClosedByPeer
        | FaultKind::Malformed
        | FaultKind::SetupRejected
        | FaultKind::TlsFailed
        | FaultKind::Other(_) => 7,
    }
}

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
            errors: count_errors(summary),
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

fn count_errors(summary: &Summary) -> [u64; ERRORS.len()] {
    let mut errors = [0; ERRORS.len()];
    for fault in summary.faults().rows() {
        errors[error_place(fault.kind)] += fault.count;
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(avg: f64, min: f64, max: f64, stddev: f64) -> Spread {
        Spread { avg, min, max, stddev }
    }

    /// The run of mcperf's documentation, made longer.
    fn numbers() -> Numbers {
        let mut numbers = Numbers {
            connections: 200,
            requests: 2000,
            responses: 2000,
            seconds: 0.209,
            concurrent: 12,
            connection_time: spread(10.4, 10.0, 13.2, 0.42),
            connect_time: spread(0.3, 0.1, 0.6, 0.07),
            request_size: spread(35.8, 28.0, 44.0, 4.77),
            response_size: spread(8.0, 8.0, 8.0, 0.0),
            response_times: ResponseTimes {
                spread: spread(0.2061, 0.0, 3.0, 0.3456),
                percentiles: [0.15, 0.2, 0.251, 0.5, 1.25, 2.5],
                steps: [(0, 1849), (1, 113), (3, 37), (4, 1)].into(),
                last_step: 99_999,
            },
            user_s: 0.001,
            system_s: 0.176,
            bytes: 87_552,
            ..Numbers::default()
        };
        numbers.replies[ReplyKind::Stored as usize] = 2000;
        numbers
    }

    #[test]
    fn report_has_mcperfs_layout() {
        let expected = "
Total: connections 200 requests 2000 responses 2000 test-duration 0.209 s

Connection rate: 956.9 conn/s (1.0 ms/conn <= 12 concurrent connections)
Connection time [ms]: avg 10.4 min 10.0 max 13.2 stddev 0.42
Connect time [ms]: avg 0.3 min 0.1 max 0.6 stddev 0.07

Request rate: 9569.4 req/s (0.1 ms/req)
Request size [B]: avg 35.8 min 28.0 max 44.0 stddev 4.77

Response rate: 9569.4 rsp/s (0.1 ms/rsp)
Response size [B]: avg 8.0 min 8.0 max 8.0 stddev 0.00
Response time [ms]: avg 0.2 min 0.0 max 3.0 stddev 0.35
Response time histogram [ms]:
             0.0 1849
             1.0 113
             :
             3.0 37
             4.0 1
             :
Response time [ms]: p25 0.1 p50 0.2 p75 0.3
Response time [ms]: p95 0.5 p99 1.2 p999 2.5
Response type: stored 2000 not_stored 0 exists 0 not_found 0
Response type: num 0 deleted 0 end 0 value 0
Response type: error 0 client_error 0 server_error 0

Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 0

CPU time [s]: user 0.00 system 0.18 (user 0.5% system 84.2% total 84.7%)
Net I/O: bytes 85.5 KB rate 409.1 KB/s (3.4*10^6 bps)

";
        assert_eq!(text(&numbers(), Precision::USUAL, true), expected);
    }

    #[test]
    fn fine_times_have_more_decimals() {
        let mut numbers = numbers();
        numbers.response_times.steps = [(2, 5), (14, 1), (999_999, 1)].into();
        numbers.response_times.last_step = 999_999;
        let text = text(&numbers, Precision::FINE, true);
        for lines in [
            "\nConnect time [ms]: avg 0.300 min 0.100 max 0.600 stddev 0.070\n",
            "\nRequest size [B]: avg 35.8 min 28.0 max 44.0 stddev 4.77\n",
            "\nResponse time [ms]: avg 0.206 min 0.000 max 3.000 stddev 0.346\n",
            "[ms]:\n             :\n            0.20 5\n             :\n            1.40 1\n             :\n        99999.90 1\nResponse",
            "\nResponse time [ms]: p25 0.150 p50 0.200 p75 0.251\nResponse time [ms]: p95 0.500 p99 1.250 p999 2.500\n",
        ] {
            assert!(text.contains(lines), "{lines}{text}");
        }
    }

    #[test]
    fn blocks_without_events_are_left_out() {
        let blocks = |numbers: &Numbers| {
            let text = text(numbers, Precision::USUAL, true);
            assert!(
                text.starts_with("\nTotal: ") && text.ends_with("\n\n") && !text.contains("\n\n\n"),
                "{text}"
            );
            let words = text.split("\n\n").filter_map(|block| block.split_whitespace().next());
            words.collect::<Vec<_>>().join(" ")
        };
        let mut numbers = numbers();
        assert_eq!(blocks(&numbers), "Total: Connection Request Response Errors: CPU");
        // Without replies.
        numbers.responses = 0;
        assert_eq!(blocks(&numbers), "Total: Connection Request Errors: CPU");
        assert!(text(&numbers, Precision::USUAL, false).contains("\nNet I/O: "));
        // Refused.
        numbers.requests = 0;
        assert_eq!(blocks(&numbers), "Total: Connection Errors: CPU");
        assert!(!text(&numbers, Precision::USUAL, false).contains("Net I/O"));
        assert_eq!(blocks(&Numbers::default()), "Total: Errors: CPU");
    }

    #[test]
    fn nothing_is_infinite() {
        let numbers = Numbers { connections: 3, ..Numbers::default() };
        let text = text(&numbers, Precision::USUAL, true);
        assert!(
            text.contains("\nConnection rate: 0.0 conn/s (0.0 ms/conn <= 0 concurrent connections)\n"),
            "{text}"
        );
        assert!(!text.contains("inf") && !text.contains("nan") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn faults_have_the_words_of_mcperf() {
        for (fault, word) in [
            (FaultKind::TimedOut, "client-timo"),
            (FaultKind::SocketTimedOut, "socket-timo"),
            (FaultKind::Refused, "connrefused"),
            (FaultKind::Reset, "connreset"),
            (FaultKind::NoDescriptor, "fd-unavail"),
            (FaultKind::NoFile, "ftab-full"),
            (FaultKind::NoPort, "addrunavail"),
            (FaultKind::ClosedByPeer, "other"),
            (FaultKind::Other(113), "other"),
        ] {
            assert_eq!(ERRORS[error_place(fault)], word);
        }
    }

    #[test]
    fn errors_add_up() {
        let errors = [1, 2, 4, 8, 16, 32, 64, 128];
        let text = text(&Numbers { errors, ..Numbers::default() }, Precision::USUAL, false);
        let lines = "\nErrors: total 255 client-timo 1 socket-timo 2 connrefused 4 connreset 8\n\
                     Errors: fd-unavail 16 ftab-full 32 addrunavail 64 other 128\n\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn bytes_have_the_unit_that_fits() {
        for (bytes, expected) in [
            (36, "36.0 B"),
            (1024, "1024.0 B"),
            (1025, "1.0 KB"),
            (1 << 20, "1024.0 KB"),
            ((1 << 20) + 1, "1.0 MB"),
            (3 << 30, "3.0 GB"),
            (5 << 40, "5120.0 GB"),
        ] {
            let text = text(&Numbers { bytes, requests: 1, ..Numbers::default() }, Precision::USUAL, false);
            assert!(
                text.contains(&format!("\nNet I/O: bytes {expected} rate 0.0 KB/s (0.0*10^6 bps)\n")),
                "{text}"
            );
        }
    }

    #[test]
    fn replies_are_named_by_kind() {
        let mut numbers = Numbers { responses: 1, ends: 5, ..Numbers::default() };
        numbers.replies = std::array::from_fn(|kind| 10 + kind as u64);
        let text = text(&numbers, Precision::USUAL, false);
        let lines = "\nResponse type: stored 10 not_stored 11 exists 12 not_found 8\n\
                     Response type: num 15 deleted 16 end 5 value 14\n\
                     Response type: error 19 client_error 20 server_error 21\n";
        assert!(text.contains(lines), "{text}");
    }

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
