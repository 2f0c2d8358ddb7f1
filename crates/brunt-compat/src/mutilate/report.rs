//! mutilate's report, to the column: rows of latency, rates, misses, bytes; the rows of a scan; the file of samples.
//!
//! Same columns, our numbers: latency from the intended time, exact moments, a minimum that was measured. Invariant: what scripts cut
//! out stands where they look for it; whatever else there is to say is a remark for standard error.

use super::Generation;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::Histogram;
use brunt_stats::sample::Sample;
use brunt_stats::summary::{OpRow, Summary};
use brunt_stats::verdict::{CheckStatus, Status};
use std::fmt::Write as _;
use std::io::{self, Write};

/// How a report is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which columns.
    pub generation: Generation,
    /// Only what succeeded: hits and stores.
    pub successful: bool,
    /// Latencies from when a request was sent.
    pub legacy_latency: bool,
}

/// The percentiles of a row, with their millionths.
const FIRST: [(&str, u32); 5] =
    [("5th", 50_000), ("10th", 100_000), ("90th", 900_000), ("95th", 950_000), ("99th", 990_000)];
const SECOND: [(&str, u32); 7] = [
    ("5th", 50_000),
    ("10th", 100_000),
    ("50th", 500_000),
    ("90th", 900_000),
    ("95th", 950_000),
    ("99th", 990_000),
    ("99.9th", 999_000),
];
/// Over the rows of a scan. The third and fourth name what older versions had there, and parsers know them.
const SCAN_COLUMNS: [&str; 8] = ["avg", "min", "1st", "5th", "10th", "90th", "95th", "99th"];

const MEGABYTE: f64 = 1_048_576.0;

/// The numbers of a row, in its unit.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    count: u64,
    mean: f64,
    stddev: f64,
    min: f64,
    percentiles: Vec<f64>,
}

impl Layout {
    const fn percentiles(&self) -> &'static [(&'static str, u32)] {
        match self.generation {
            Generation::First => &FIRST,
            Generation::Second => &SECOND,
        }
    }

    fn quantiles(&self) -> impl Iterator<Item = Quantile> {
        self.percentiles().iter().filter_map(|(_, millionths)| Quantile::from_millionths(*millionths))
    }

    /// Of nanoseconds, in microseconds.
    fn row(&self, histogram: &Histogram) -> Row {
        const US: f64 = 1e3;
        let ranks = histogram.ranks();
        let percentile = |quantile| ranks.quantile(quantile).map_or(0.0, |value| value as f64 / US);
        Row {
            count: histogram.count(),
            mean: histogram.moments().mean().unwrap_or(0.0) / US,
            stddev: histogram.moments().stddev().unwrap_or(0.0) / US,
            min: histogram.min().unwrap_or(0) as f64 / US,
            percentiles: self.quantiles().map(percentile).collect(),
        }
    }

    /// Latencies of a kind.
    fn latency(&self, summary: &Summary, kind: OpKind) -> Row {
        if self.successful {
            return self.row(&self.of_samples(summary, kind));
        }
        let found = op(summary, kind).map(|row| &row.summary.latency);
        let none = Histogram::new();
        self.row(match (found, self.legacy_latency) {
            (Some(latency), false) => &latency.response.histogram,
            (Some(latency), true) => &latency.service.histogram,
            (None, _) => &none,
        })
    }

    /// Latencies of what succeeded of a kind.
    fn of_samples(&self, summary: &Summary, kind: OpKind) -> Histogram {
        let mut histogram = Histogram::new();
        for sample in successes(summary).filter(|sample| sample.op == kind) {
            histogram.record(self.latency_ns(sample));
        }
        histogram
    }

    fn latency_ns(&self, sample: &Sample) -> u64 {
        if self.legacy_latency { sample.times.service_ns() } else { sample.times.response_ns() }
    }

    /// Requests on a connection, each time one was sent, that one included.
    fn queue(&self, summary: &Summary) -> Row {
        let none = || Row { percentiles: vec![0.0; self.percentiles().len()], ..Row::default() };
        let meter = summary.meters.iter().find(|meter| meter.kind == MeterKind::Outstanding);
        let Some(histogram) = meter.map(|meter| &meter.histogram).filter(|held| held.count() > 0) else {
            return none();
        };
        let moments = histogram.moments();
        let included = |value: u64| value as f64 + 1.0;
        Row {
            count: moments.count,
            mean: moments.mean().unwrap_or(0.0) + 1.0,
            stddev: moments.stddev().unwrap_or(0.0),
            min: included(moments.min),
            percentiles: self.quantiles().map(|at| included(histogram.quantile(at).unwrap_or(0))).collect(),
        }
    }

    /// Requests that count, and how many of them there were in a second.
    fn total(&self, summary: &Summary) -> u64 {
        let is_over = |sample: &&Sample| sample.times.done_ns < summary.window.end_ns;
        match self.successful {
            true => successes(summary).filter(is_over).count() as u64,
            // A run that ends after so many requests ends with the last of them.
            false if summary.plan.stop.time.is_none() => summary.total.requests.completed(),
            false => summary.total.in_window.completed,
        }
    }
}

/// Samples of the measured window that were hits or stores.
fn successes(summary: &Summary) -> impl Iterator<Item = &Sample> {
    let window = summary.window.measure_ns..summary.window.end_ns;
    let is_success = |class: OutcomeClass| matches!(class, OutcomeClass::Hit | OutcomeClass::Done);
    summary
        .samples
        .iter()
        .filter(move |sample| window.contains(&sample.times.intended_ns) && is_success(sample.outcome.class))
}

fn op(summary: &Summary, kind: OpKind) -> Option<&OpRow> {
    summary.ops.iter().find(|row| row.op == kind)
}

/// From the beginning of the window to its end; of a run that ends after so many requests, to when the last had its reply.
fn seconds(summary: &Summary) -> f64 {
    let window = &summary.window;
    let end_ns = if summary.plan.stop.time.is_none() { window.drained_ns } else { window.end_ns };
    end_ns.saturating_sub(window.measure_ns) as f64 / 1e9
}

/// Requests per second.
pub fn rate(summary: &Summary, layout: Layout) -> f64 {
    let seconds = seconds(summary);
    if seconds > 0.0 { layout.total(summary) as f64 / seconds } else { 0.0 }
}

/// A percentile of reads, in microseconds; `None` where nothing was read.
pub fn read_percentile_us(summary: &Summary, layout: Layout, percentile: f64) -> Option<f64> {
    let latency = &op(summary, OpKind::Get)?.summary.latency;
    let held = if layout.legacy_latency { &latency.service } else { &latency.response };
    let quantile = Quantile::from_millionths((percentile * 1e4).round() as u32)?;
    held.histogram.quantile(quantile).map(|value_ns| value_ns as f64 / 1e3)
}

fn head(columns: impl IntoIterator<Item = &'static str>) -> String {
    columns.into_iter().fold(format!("{:<7}", "#type"), |mut line, column| {
        // Writing into a string cannot fail.
        let _ = write!(line, " {column:>7}");
        line
    })
}

fn line(tag: &str, row: &Row) -> String {
    let numbers = [row.mean, row.stddev, row.min];
    numbers.iter().chain(&row.percentiles).fold(format!("{tag:<7}"), |mut line, number| {
        let _ = write!(line, " {number:>7.1}");
        line
    })
}

/// The report of a run; with the rate of the first run, of a search.
///
/// # Errors
/// Those of `out`.
pub fn write_report(
    out: &mut dyn Write,
    summary: &Summary,
    layout: Layout,
    peak_qps: Option<f64>,
) -> io::Result<()> {
    let names = layout.percentiles().iter().map(|(name, _)| *name);
    writeln!(out, "{}", head(["avg", "std", "min"].into_iter().chain(names)))?;
    for (tag, kind) in [("read", OpKind::Get), ("update", OpKind::Set)] {
        writeln!(out, "{}", line(tag, &layout.latency(summary, kind)))?;
    }
    writeln!(out, "{}", line("op_q", &layout.queue(summary)))?;
    let (total, seconds) = (layout.total(summary), seconds(summary));
    writeln!(out, "\nTotal QPS = {:.1} ({total} / {seconds:.1}s)", rate(summary, layout))?;
    if let Some(peak) = peak_qps {
        writeln!(out, "Peak QPS  = {peak:.1}")?;
    }
    let gets = op(summary, OpKind::Get).map(|row| &row.summary);
    let misses = gets.map_or(0, |gets| gets.keys.miss);
    let reads = gets.map_or(0, |gets| gets.requests.completed());
    // Written as C does where nothing was read.
    let share =
        if reads == 0 { "-nan".to_owned() } else { format!("{:.1}", misses as f64 / reads as f64 * 100.0) };
    writeln!(out, "\nMisses = {misses} ({share}%)")?;
    writeln!(out, "Skipped TXs = 0 (0.0%)\n")?;
    let bytes = summary.phases.iter().find(|phase| phase.phase == Phase::Measure).map(|phase| phase.bytes);
    let bytes = bytes.unwrap_or_default();
    for (tag, count) in [("RX", bytes.rx), ("TX", bytes.tx)] {
        let per_second = if seconds > 0.0 { count as f64 / MEGABYTE / seconds } else { 0.0 };
        writeln!(out, "{tag} {count:>10} bytes : {per_second:>6.1} MB/s")?;
    }
    out.flush()
}

/// What stands over the rows of a scan.
///
/// # Errors
/// Those of `out`.
pub fn write_scan_head(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} {:>8} {:>8}", head(SCAN_COLUMNS), "QPS", "target")?;
    out.flush()
}

/// A row of a scan.
///
/// # Errors
/// Those of `out`.
pub fn write_scan_row(
    out: &mut dyn Write,
    summary: &Summary,
    layout: Layout,
    target_qps: u64,
) -> io::Result<()> {
    let row = line("read", &layout.latency(summary, OpKind::Get));
    writeln!(out, "{row} {:>8.1} {target_qps:>8}", rate(summary, layout))?;
    out.flush()
}

/// One line for each read: when it was due, in seconds from the start of the program, and its latency in microseconds.
///
/// # Errors
/// Those of `out`.
pub fn write_samples(
    out: &mut dyn Write,
    summary: &Summary,
    layout: Layout,
    measured_after_s: f64,
) -> io::Result<()> {
    let window = summary.window.measure_ns..summary.window.end_ns;
    let is_read = |sample: &&Sample| {
        sample.op == OpKind::Get
            && sample.outcome.class.is_completed()
            && window.contains(&sample.times.intended_ns)
            && (!layout.successful || sample.outcome.class == OutcomeClass::Hit)
    };
    for sample in summary.samples.iter().filter(is_read) {
        let begin_ns = if layout.legacy_latency { sample.times.sent_ns } else { sample.times.intended_ns };
        let at_s = measured_after_s + begin_ns.saturating_sub(summary.window.measure_ns) as f64 / 1e9;
        writeln!(out, "{at_s:.6} {:.6}", layout.latency_ns(sample) as f64 / 1e3)?;
    }
    out.flush()
}

/// The part of reads that missed in every `window` requests of the measured window, in the order of their replies: how many
/// requests there were by then, and the part. Sets that follow misses are no requests.
pub fn miss_windows(summary: &Summary, window: u64, follows: bool) -> Vec<(u64, f64)> {
    let measured = summary.window.measure_ns..summary.window.end_ns;
    let is_request = |sample: &&Sample| {
        measured.contains(&sample.times.intended_ns)
            && sample.outcome.class.is_completed()
            && (sample.op == OpKind::Get || !follows)
    };
    let mut samples: Vec<&Sample> = summary.samples.iter().filter(is_request).collect();
    samples.sort_by_key(|sample| sample.times.done_ns);
    let seen =
        samples.iter().map(|sample| (sample.op == OpKind::Get, sample.outcome.class == OutcomeClass::Miss));
    windows_of(seen, window)
}

/// Of requests, each with whether it read and whether it missed.
fn windows_of(seen: impl Iterator<Item = (bool, bool)>, window: u64) -> Vec<(u64, f64)> {
    let (mut requests, mut reads, mut misses, mut windows) = (0_u64, 0_u64, 0_u64, Vec::new());
    for (is_read, is_miss) in seen {
        requests += 1;
        reads += u64::from(is_read);
        misses += u64::from(is_miss);
        if requests.is_multiple_of(window) && reads > 0 {
            windows.push((requests, misses as f64 / reads as f64));
            (reads, misses) = (0, 0);
        }
    }
    windows
}

/// What the columns have no place for, each in a sentence behind its prefix, for standard error.
pub fn remarks(summary: &Summary, layout: Layout) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut warn = |text: String| remarks.push(format!("warning: {text}"));
    if summary.verdict.status == Status::NotTrusted {
        for check in summary.verdict.checks.iter().filter(|check| check.status == CheckStatus::NotTrusted) {
            warn(format!("NOT TRUSTED, {}: {}", check.id, check.message));
        }
    }
    let book = &summary.total.requests;
    if book.failed() + book.in_flight > 0 {
        let failed = book.failed() + book.in_flight;
        let said =
            summary.first_error.as_ref().map_or(String::new(), |text| format!(" (the server said: {text})"));
        warn(format!(
            "{failed} of {} requests have no valid reply and stand in no row{said}",
            book.scheduled
        ));
    }
    if book.unsent > 0 {
        warn(format!("{} of {} requests were due and never sent", book.unsent, book.scheduled));
    }
    if summary.samples_overflow > 0 {
        warn(format!("{} samples there was no room for", summary.samples_overflow));
    }
    if summary.steady.cut_ns > 0 && !layout.successful {
        let cut_ms = summary.steady.cut_ns as f64 / 1e6;
        remarks.push(format!(
            "note: the rows leave out the first {cut_ms:.0} ms, in which latency had not settled; a longer --warmup covers that"
        ));
    }
    if let Some(reads) = op(summary, OpKind::Get).map(|row| &row.summary.latency) {
        let p99 = |held: &Histogram| held.quantile(Quantile::P99).map(|value_ns| value_ns as f64 / 1e3);
        if let (Some(due), Some(sent)) = (p99(&reads.response.histogram), p99(&reads.service.histogram))
            && due > sent * 1.1
        {
            remarks.push(format!(
                "note: 99th of read: {due:.1} us from when a request was due, {sent:.1} us from when it was sent"
            ));
        }
    }
    let row = layout.latency(summary, OpKind::Get);
    let thin = layout.percentiles().iter().zip(layout.quantiles());
    let thin = thin.filter(|(_, quantile)| row.count > 0 && !quantile.is_supported_by(row.count));
    if let Some(((name, _), _)) = thin.into_iter().next() {
        remarks.push(format!(
            "note: {name} of read and what lies above it rest on fewer than 10 of {} samples",
            row.count
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_mutilates_columns() {
        let row =
            Row { count: 5, mean: 41.34, stddev: 36.4, min: 1_234_567.25, percentiles: vec![29.2, 72.6] };
        assert_eq!(line("read", &row), "read       41.3    36.4 1234567.2    29.2    72.6");
        let names = |layout: &Layout| layout.percentiles().iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let of = |generation| Layout { generation, successful: false, legacy_latency: false };
        let head_of = |generation| head(["avg", "std", "min"].into_iter().chain(names(&of(generation))));
        assert_eq!(
            head_of(Generation::First),
            "#type       avg     std     min     5th    10th    90th    95th    99th"
        );
        assert_eq!(
            head_of(Generation::Second),
            "#type       avg     std     min     5th    10th    50th    90th    95th    99th  99.9th"
        );
        assert_eq!(
            head(SCAN_COLUMNS),
            "#type       avg     min     1st     5th    10th    90th    95th    99th"
        );
    }

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|us| histogram.record(us * 1_000));
        let layout = Layout { generation: Generation::Second, successful: false, legacy_latency: false };
        let row = layout.row(&histogram);
        assert_eq!((row.count, row.mean, row.min), (1_000, 500.5, 1.0));
        for (found, expected) in row.percentiles.iter().zip([50.0, 100.0, 500.0, 900.0, 950.0, 990.0, 999.0])
        {
            assert!((expected..expected * 1.001).contains(found), "{found}, not {expected}");
        }
        let none = layout.row(&Histogram::new());
        assert_eq!(line("update", &none), format!("update {}", "     0.0".repeat(10)));
    }

    #[test]
    fn windows_of_misses() {
        let (hit, miss, set) = ((true, false), (true, true), (false, false));
        let seen = [hit, miss, set, miss, set, set, hit, hit, miss, hit];
        assert_eq!(windows_of(seen.into_iter(), 3), [(3, 0.5), (6, 1.0), (9, 1.0 / 3.0)]);
        // A window without reads goes on.
        assert_eq!(windows_of([set, set, miss, hit].into_iter(), 2), [(4, 0.5)]);
    }
}
