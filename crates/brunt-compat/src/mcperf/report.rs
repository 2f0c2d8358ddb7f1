//! mcperf's report of a run's summary, to the column.
//!
//! Invariant: what scripts cut out is where they look for it, and blocks about what did not happen are left out, as there. Without values
//! every number is 0, never infinite.

use super::command_line::CommandLine;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::connection::FaultKind;
use brunt_stats::histogram::{Histogram, Moments};
use brunt_stats::summary::Summary;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The steps of a histogram, and how times are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Precision {
    /// A step of the histogram.
    step_ns: u64,
    /// Decimals of what a step begins with, in milliseconds.
    step_decimals: usize,
    /// Decimals of means, extremes and percentiles of times, in milliseconds.
    time_decimals: usize,
    /// Decimals of their standard deviations.
    stddev_decimals: usize,
}

impl Precision {
    /// mcperf's.
    const USUAL: Self = Self { step_ns: 1_000_000, step_decimals: 1, time_decimals: 1, stddev_decimals: 2 };
    /// The layout of `--fine`.
    const FINE: Self = Self { step_ns: 100_000, step_decimals: 2, time_decimals: 3, stddev_decimals: 3 };
}

/// The report of a run.
pub fn text(summary: &Summary, line: &CommandLine) -> String {
    let precision = if line.fine { Precision::FINE } else { Precision::USUAL };
    let (connections, requests, responses) =
        (summary.connections.begun, requests(summary), responses(summary));
    let run_times = &summary.record.run.times;
    // From the first attempt until the last connection had ended.
    let seconds = run_times.drained_ns.saturating_sub(run_times.start_ns) as f64 / 1e9;
    let mut text = format!(
        "\nTotal: connections {connections} requests {requests} responses {responses} test-duration {seconds:.3} s\n\n"
    );
    if connections > 0 {
        let (rate, each) = rate(connections, seconds);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "Connection rate: {rate:.1} conn/s ({each:.1} ms/conn <= {} concurrent connections)",
            summary.counts().connections_most
        );
        text.push_str(&times("Connection", &metered(summary, MeterKind::ConnectionTime), precision));
        text.push_str(&times("Connect", &metered(summary, MeterKind::ConnectTime), precision));
        text.push('\n');
    }
    if requests > 0 {
        let (rate, each) = rate(requests, seconds);
        let _ = writeln!(text, "Request rate: {rate:.1} req/s ({each:.1} ms/req)");
        text.push_str(&sizes("Request", &metered(summary, MeterKind::RequestSize)));
        text.push('\n');
    }
    if responses > 0 {
        let (rate, each) = rate(responses, seconds);
        let _ = writeln!(text, "Response rate: {rate:.1} rsp/s ({each:.1} ms/rsp)");
        text.push_str(&responses_block(summary, line, precision));
    }
    text.push_str(&errors(summary));
    text.push_str(&cost(summary, seconds, requests + responses > 0));
    text.push('\n');
    text
}

/// Calls that were written.
pub fn requests(summary: &Summary) -> u64 {
    summary.phases.iter().flat_map(|phase| &phase.ops).map(|entry| entry.counts.requests.sent).sum()
}

/// Calls that were answered, with whatever.
pub fn responses(summary: &Summary) -> u64 {
    let answers = ReplyKind::ALL.into_iter().filter(|kind| *kind != ReplyKind::None);
    answers.map(|kind| replies(summary, kind)).sum()
}

/// Responses of this kind.
pub fn replies(summary: &Summary, kind: ReplyKind) -> u64 {
    replies_to(summary, kind, |_| true)
}

fn replies_to(summary: &Summary, reply: ReplyKind, is_counted: fn(OpKind) -> bool) -> u64 {
    let entries = summary.phases.iter().flat_map(|phase| &phase.ops);
    let entries = entries.filter(|entry| is_counted(entry.op.kind()));
    entries.map(|entry| entry.counts.requests.reply(reply)).sum()
}

/// The exact sums of a metered quantity.
fn metered(summary: &Summary, kind: MeterKind) -> Moments {
    let meter = summary.meters.iter().find(|meter| meter.kind == kind);
    meter.map_or_else(Moments::default, |meter| *meter.histogram.moments())
}

/// Per second, and how many milliseconds each; 0 of a run without length.
fn rate(count: u64, seconds: f64) -> (f64, f64) {
    if seconds > 0.0 { (count as f64 / seconds, 1e3 * seconds / count as f64) } else { (0.0, 0.0) }
}

fn times(name: &str, moments: &Moments, precision: Precision) -> String {
    let Spread { avg, min, max, stddev } = Spread::of(moments, MS);
    let (decimals, of_stddev) = (precision.time_decimals, precision.stddev_decimals);
    format!(
        "{name} time [ms]: avg {avg:.decimals$} min {min:.decimals$} max {max:.decimals$} stddev {stddev:.of_stddev$}\n"
    )
}

fn sizes(name: &str, moments: &Moments) -> String {
    let Spread { avg, min, max, stddev } = Spread::of(moments, 1.0);
    format!("{name} size [B]: avg {avg:.1} min {min:.1} max {max:.1} stddev {stddev:.2}\n")
}

/// Response times are from when a call was due, or from when it was sent; percentiles are 0.1 % too high at most.
fn responses_block(summary: &Summary, line: &CommandLine, precision: Precision) -> String {
    let latency = &summary.total.latency;
    let latency = if line.legacy_latency { &latency.service } else { &latency.response };
    let mut text = sizes("Response", &metered(summary, MeterKind::ResponseSize));
    text.push_str(&times("Response", latency.histogram.moments(), precision));
    if line.print_histogram {
        text.push_str(&histogram(&latency.histogram, precision));
    }
    let decimals = precision.time_decimals;
    for row in PERCENTILES {
        let percentile = |(name, per_million): (&str, u32)| {
            let quantile = Quantile::from_millionths(per_million);
            let value_ns = quantile.and_then(|quantile| latency.histogram.quantile(quantile)).unwrap_or(0);
            format!(" {name} {:.decimals$}", value_ns as f64 / MS)
        };
        let _ = writeln!(text, "Response time [ms]:{}", row.map(percentile).concat());
    }
    let of = |kind| replies(summary, kind);
    // Of the replies that found nothing, those that say so as retrievals do.
    let is_get = |kind| matches!(kind, OpKind::Get | OpKind::Gets);
    let ends = replies_to(summary, ReplyKind::NotFound, is_get);
    let types = [
        ("stored", of(ReplyKind::Stored)),
        ("not_stored", of(ReplyKind::NotStored)),
        ("exists", of(ReplyKind::Exists)),
        ("not_found", of(ReplyKind::NotFound) - ends),
        ("num", of(ReplyKind::Number)),
        ("deleted", of(ReplyKind::Deleted)),
        ("end", ends),
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
fn histogram(times: &Histogram, precision: Precision) -> String {
    const GAP: &str = "             :\n";
    let mut text = "Response time histogram [ms]:\n".to_owned();
    let mut next = 0;
    for (step, count) in steps(times, precision.step_ns) {
        if step > next {
            text.push_str(GAP);
        }
        let begin_ms = step as f64 * precision.step_ns as f64 / 1e6;
        let decimals = precision.step_decimals;
        let _ = writeln!(text, "{begin_ms:>16.decimals$} {count}");
        next = step + 1;
    }
    if next < LONGEST_NS / precision.step_ns {
        text.push_str(GAP);
    }
    text
}

/// Every step of the histogram that holds any, with how many. What is longer than the last is in it.
fn steps(histogram: &Histogram, step_ns: u64) -> BTreeMap<u64, u64> {
    let last_step = LONGEST_NS / step_ns - 1;
    let mut steps = BTreeMap::new();
    for (values, count) in histogram.ranges() {
        let middle = (*values.start() as f64 + *values.end() as f64) / 2.0;
        let step = (middle / step_ns as f64).round_ties_even() as u64;
        *steps.entry(step.min(last_step)).or_insert(0) += count;
    }
    steps
}

fn errors(summary: &Summary) -> String {
    let mut errors = [0; ERRORS.len()];
    for fault in summary.faults().rows() {
        errors[error_place(fault.kind)] += fault.count;
    }
    let total: u64 = errors.iter().sum();
    let cells: Vec<String> =
        ERRORS.iter().zip(errors).map(|(word, count)| format!(" {word} {count}")).collect();
    let (first, second) = cells.split_at(4);
    format!("Errors: total {total}{}\nErrors:{}\n\n", first.concat(), second.concat())
}

/// Processor time and bytes.
fn cost(summary: &Summary, seconds: f64, has_traffic: bool) -> String {
    let usage = &summary.record.run.usage;
    let [user_s, system_s] = [usage.cpu_user_ns, usage.cpu_system_ns].map(|cpu_ns| cpu_ns as f64 / 1e9);
    let percent = |time_s: f64| if seconds > 0.0 { 100.0 * time_s / seconds } else { 0.0 };
    let mut text = format!(
        "CPU time [s]: user {user_s:.2} system {system_s:.2} (user {:.1}% system {:.1}% total {:.1}%)\n",
        percent(user_s),
        percent(system_s),
        percent(user_s + system_s)
    );
    if has_traffic {
        let bytes = [MeterKind::RequestSize, MeterKind::ResponseSize].map(|kind| metered(summary, kind).sum);
        text.push_str(&net_io(bytes.iter().sum::<u128>() as f64, seconds));
    }
    text
}

/// Bytes of all requests and responses.
fn net_io(bytes: f64, seconds: f64) -> String {
    const KIBIBYTE: f64 = 1024.0;
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let units = ["B", "KB", "MB", "GB"];
    // The largest of them that the number is above 1 in.
    let power = (1..units.len()).rfind(|power| bytes > KIBIBYTE.powi(*power as i32)).unwrap_or(0);
    format!(
        "Net I/O: bytes {:.1} {} rate {:.1} KB/s ({:.1}*10^6 bps)\n",
        bytes / KIBIBYTE.powi(power as i32),
        units[power],
        per_second(bytes) / KIBIBYTE,
        per_second(bytes * 8.0) / 1e6
    )
}

/// Nanoseconds in the unit of all times that are printed.
const MS: f64 = 1e6;
/// mcperf's histogram has 100 000 steps of a millisecond, and what is longer is in the last.
const LONGEST_NS: u64 = 100_000_000_000;
/// Percentiles of each line, in millionths.
const PERCENTILES: [[(&str, u32); 3]; 2] = [
    [("p25", 250_000), ("p50", 500_000), ("p75", 750_000)],
    [("p95", 950_000), ("p99", 990_000), ("p999", 999_000)],
];

/// What is known of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spread {
    avg: f64,
    min: f64,
    max: f64,
    stddev: f64,
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

/// Why connections failed or were lost, in the words and the order of the report. The last is everything else, and connections
/// that the server closed in good order.
const ERRORS: [&str; 8] = [
    "client-timo",
    "socket-timo",
    "connrefused",
    "connreset",
    "fd-unavail",
    "ftab-full",
    "addrunavail",
    "other",
];

/// What the report calls a fault.
pub(super) const fn error_word(fault: FaultKind) -> &'static str {
    ERRORS[error_place(fault)]
}

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

#[cfg(test)]
mod tests {
    use super::super::invocation::tests::invocation;
    use super::*;
    use crate::front_end::tests::{MS as MILLISECOND, START_NS, summary};
    use brunt_plan::op::{KeyRef, Op};
    use brunt_plan::outcome::{Outcome, OutcomeClass};
    use brunt_plan::phase::Phase;
    use brunt_stats::connection::ConnectionEvent;
    use brunt_stats::recorder::RecorderSet;
    use brunt_stats::run_record::RunData;
    use brunt_stats::sample::{Sample, Times};
    use brunt_stats::worker_counts::WorkerCounts;

    /// The summary of a run of 1.25 s in which this happened, and its command line.
    fn run(line: &str, record: impl FnOnce(&mut RecorderSet)) -> (Summary, CommandLine) {
        let invocation = invocation(line).unwrap();
        let counts = WorkerCounts { connections_most: 12, ..WorkerCounts::default() };
        let mut run = RunData { counts, ..RunData::default() };
        (run.usage.cpu_user_ns, run.usage.cpu_system_ns) = (1_000_000, 176_000_000);
        (summary(&invocation.spec, record, run), invocation.line)
    }

    fn report(line: &str, record: impl FnOnce(&mut RecorderSet)) -> String {
        let (summary, line) = run(line, record);
        text(&summary, &line)
    }

    fn connect(set: &mut RecorderSet, count: u32) {
        (0..count).for_each(|_| set.connection(Phase::Measure, ConnectionEvent::Begun));
    }

    /// Calls that are sent.
    fn call(set: &mut RecorderSet, kind: OpKind, count: u32) -> Op {
        let op = Op::of(kind, KeyRef::Id(0));
        for _ in 0..count {
            set.scheduled(Phase::Measure, &op);
            set.sent(Phase::Measure, &op, 1, START_NS);
        }
        op
    }

    /// Calls that are answered so after this time.
    fn answer(set: &mut RecorderSet, kind: OpKind, reply: ReplyKind, response_ns: u64, count: u32) {
        let op = call(set, kind, count);
        let is_error = matches!(reply, ReplyKind::Error | ReplyKind::ClientError | ReplyKind::ServerError);
        let class = if is_error { OutcomeClass::Error } else { OutcomeClass::Done };
        let begin =
            Times { intended_ns: START_NS, picked_ns: START_NS, sent_ns: START_NS, ..Times::default() };
        let end_ns = START_NS + response_ns;
        let times = Times { polled_ns: end_ns, first_byte_ns: end_ns, done_ns: end_ns, ..begin };
        let outcome = Outcome { class, reply };
        let sample = Sample { op: op.id(), class: 0, outcome, busy_lag_ns: None, times };
        (0..count).for_each(|_| set.record(Phase::Measure, &sample, 1, 0));
    }

    fn meter(set: &mut RecorderSet, kind: MeterKind, values: &[(u64, u32)]) {
        for (value, count) in values {
            (0..*count).for_each(|_| set.meter(kind, *value));
        }
    }

    /// Like the run of mcperf's documentation.
    fn documented(set: &mut RecorderSet) {
        connect(set, 200);
        for (response_ns, count) in [(200_000, 1849), (1_000_000, 113), (3_000_000, 37), (4_000_000, 1)] {
            answer(set, OpKind::Set, ReplyKind::Stored, response_ns, count);
        }
        meter(set, MeterKind::ConnectionTime, &[(10_000_000, 150), (13_200_000, 50)]);
        meter(set, MeterKind::ConnectTime, &[(100_000, 100), (500_000, 100)]);
        meter(set, MeterKind::RequestSize, &[(28, 1000), (44, 1000)]);
        meter(set, MeterKind::ResponseSize, &[(8, 2000)]);
    }

    #[test]
    fn report_has_mcperfs_layout() {
        let expected = "
Total: connections 200 requests 2000 responses 2000 test-duration 1.250 s

Connection rate: 160.0 conn/s (6.2 ms/conn <= 12 concurrent connections)
Connection time [ms]: avg 10.8 min 10.0 max 13.2 stddev 1.39
Connect time [ms]: avg 0.3 min 0.1 max 0.5 stddev 0.20

Request rate: 1600.0 req/s (0.6 ms/req)
Request size [B]: avg 36.0 min 28.0 max 44.0 stddev 8.00

Response rate: 1600.0 rsp/s (0.6 ms/rsp)
Response size [B]: avg 8.0 min 8.0 max 8.0 stddev 0.00
Response time [ms]: avg 0.3 min 0.2 max 4.0 stddev 0.42
Response time histogram [ms]:
             0.0 1849
             1.0 113
             :
             3.0 37
             4.0 1
             :
Response time [ms]: p25 0.2 p50 0.2 p75 0.2
Response time [ms]: p95 1.0 p99 3.0 p999 3.0
Response type: stored 2000 not_stored 0 exists 0 not_found 0
Response type: num 0 deleted 0 end 0 value 0
Response type: error 0 client_error 0 server_error 0

Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 0

CPU time [s]: user 0.00 system 0.18 (user 0.1% system 14.1% total 14.2%)
Net I/O: bytes 85.9 KB rate 68.8 KB/s (0.6*10^6 bps)

";
        assert_eq!(report("-s h -H", documented), expected);
        assert!(!report("-s h", documented).contains("histogram"));
    }

    #[test]
    fn fine_times_have_more_decimals() {
        let text = report("-s h -H --fine", |set| {
            documented(set);
            answer(set, OpKind::Set, ReplyKind::Stored, 200_000_000_000, 1);
        });
        for lines in [
            "\nConnect time [ms]: avg 0.300 min 0.100 max 0.500 stddev 0.201\n",
            "\nRequest size [B]: avg 36.0 min 28.0 max 44.0 stddev 8.00\n",
            "[ms]:\n             :\n            0.20 1849\n             :\n            1.00 113\n",
            "            4.00 1\n             :\n        99999.90 1\nResponse",
            "\nResponse time [ms]: p25 0.200 p50 0.200 p75 0.200\nResponse time [ms]: p95 1.000 p99 3.000 p999 3.000\n",
        ] {
            assert!(text.contains(lines), "{lines}{text}");
        }
    }

    #[test]
    fn blocks_without_events_are_left_out() {
        type Recorded = fn(&mut RecorderSet);
        let table: [(Recorded, &str); 4] = [
            (|_| {}, "Total: Errors: CPU"),
            (|set| connect(set, 3), "Total: Connection Errors: CPU"),
            (
                |set| {
                    connect(set, 3);
                    call(set, OpKind::Set, 2);
                },
                "Total: Connection Request Errors: CPU",
            ),
            (documented, "Total: Connection Request Response Errors: CPU"),
        ];
        for (record, blocks) in table {
            let text = report("-s h -H", record);
            assert!(
                text.starts_with("\nTotal: ") && text.ends_with("\n\n") && !text.contains("\n\n\n"),
                "{text}"
            );
            let words: Vec<&str> =
                text.split("\n\n").filter_map(|block| block.split_whitespace().next()).collect();
            assert_eq!(words.join(" "), blocks);
            assert_eq!(text.contains("\nNet I/O: "), blocks.contains("Request"), "{text}");
        }
    }

    #[test]
    fn nothing_is_infinite() {
        let (mut summary, line) = run("-s h -H", |set| connect(set, 3));
        summary.record.run.times.drained_ns = summary.record.run.times.start_ns;
        let text = text(&summary, &line);
        let row = "\nConnection rate: 0.0 conn/s (0.0 ms/conn <= 12 concurrent connections)\n";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("inf") && !text.contains("nan") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn faults_have_the_words_of_mcperf() {
        let text = report("-s h", |set| {
            let faults = [
                FaultKind::TimedOut,
                FaultKind::SocketTimedOut,
                FaultKind::Refused,
                FaultKind::Reset,
                FaultKind::NoDescriptor,
                FaultKind::NoFile,
                FaultKind::NoPort,
                FaultKind::ClosedByPeer,
                FaultKind::Other(113),
            ];
            for (power, fault) in faults.into_iter().enumerate() {
                (0..1 << power).for_each(|_| set.fault(Phase::Measure, fault, 0));
            }
        });
        let lines = "\nErrors: total 511 client-timo 1 socket-timo 2 connrefused 4 connreset 8\n\
                     Errors: fd-unavail 16 ftab-full 32 addrunavail 64 other 384\n\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn bytes_have_the_unit_that_fits() {
        for (bytes, expected) in [
            (36_u64, "36.0 B"),
            (1024, "1024.0 B"),
            (1025, "1.0 KB"),
            (1 << 20, "1024.0 KB"),
            ((1 << 20) + 1, "1.0 MB"),
            (3 << 30, "3.0 GB"),
            (5 << 40, "5120.0 GB"),
        ] {
            let expected = format!("Net I/O: bytes {expected} rate 0.0 KB/s (0.0*10^6 bps)\n");
            assert_eq!(net_io(bytes as f64, 0.0), expected);
        }
    }

    #[test]
    fn replies_are_named_by_kind() {
        for (line, kind, [not_found, end]) in
            [("-m get", OpKind::Get, [0, 13]), ("-m set", OpKind::Set, [13, 0])]
        {
            let text = report(&format!("-s h {line}"), |set| {
                for reply in ReplyKind::ALL.into_iter().filter(|reply| *reply != ReplyKind::None) {
                    answer(set, kind, reply, MILLISECOND, 10 + reply as u32);
                }
            });
            let lines = format!(
                "\nResponse type: stored 10 not_stored 11 exists 12 not_found {not_found}\n\
                 Response type: num 15 deleted 16 end {end} value 14\n\
                 Response type: error 19 client_error 20 server_error 21\n"
            );
            assert!(text.contains(&lines), "{text}");
        }
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
        let found: Vec<_> = steps(&histogram(&times_ns), 1_000_000).into_iter().collect();
        assert_eq!(found, [(0, 2), (1, 2), (7, 1), (100, 1), (99_999, 1)]);
        let found: Vec<_> = steps(&histogram(&times_ns), 100_000).into_iter().collect();
        assert_eq!(found, [(0, 1), (4, 1), (6, 1), (14, 1), (70, 1), (1000, 1), (999_999, 1)]);
        // Every value of 1 ms to 1000 ms once.
        let text = report("-s h --fine", |set| {
            (1..=1000).for_each(|ms| answer(set, OpKind::Set, ReplyKind::Stored, ms * MILLISECOND, 1));
        });
        let rows = text.lines().filter_map(|line| line.strip_prefix("Response time [ms]: p"));
        let numbers = rows.flat_map(|row| row.split_whitespace().skip(1).step_by(2));
        let found: Vec<f64> = numbers.map(|word| word.parse().unwrap()).collect();
        assert_eq!(found.len(), 6, "{text}");
        for (found, expected) in found.into_iter().zip([250.0, 500.0, 750.0, 950.0, 990.0, 999.0]) {
            assert!((expected..=expected * 1.001).contains(&found), "{found}, not {expected}");
        }
    }
}
