//! mutilate's report, to the column: rows of latency, rates, misses, bytes; the rows of a scan; the file of samples.
//!
//! Same columns, our numbers: latency from the intended time, exact moments, a minimum that was measured. Invariant: what scripts cut
//! out is where they look for it; whatever else there is to say is a remark for standard error.

use super::command_line::Generation;
use crate::front_end::{findings, late_remark, measured_seconds};
use brunt_plan::choice::HostRole;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{MeterKind, Trace};
use brunt_plan::quantile::Quantile;
use brunt_plan::trace_record::TraceRecord;
use brunt_stats::histogram::{Histogram, Moments};
use brunt_stats::op_summary::{ClassSummary, OpRow};
use brunt_stats::sample::Sample;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
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
    /// Where there are agents, rows of what the master itself measured.
    pub masters_rows: bool,
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

/// What is in the row `read`. All but gets and sets are asked for by traces alone.
const READS: [OpKind; 2] = [OpKind::Get, OpKind::Gets];
/// What is in the row `update`. Deletes come last: those of a purge are in no row.
const UPDATES: [OpKind; 9] = [
    OpKind::Set,
    OpKind::Add,
    OpKind::Replace,
    OpKind::Append,
    OpKind::Prepend,
    OpKind::Cas,
    OpKind::Incr,
    OpKind::Decr,
    OpKind::Delete,
];

const MEGABYTE: f64 = 1_048_576.0;
/// Nanoseconds in the unit of latencies.
const US: f64 = 1e3;

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

    /// A row of values that are parts of `unit`, all larger by `more`; zeros where there are none.
    fn row(
        &self,
        moments: &Moments,
        quantile: impl Fn(Quantile) -> Option<u64>,
        unit: f64,
        more: f64,
    ) -> Row {
        let shown = |value: f64| value / unit + more;
        let percentile = |at| quantile(at).map_or(0.0, |value| shown(value as f64));
        Row {
            count: moments.count,
            mean: moments.mean().map_or(0.0, shown),
            stddev: moments.stddev().unwrap_or(0.0) / unit,
            min: moments.mean().map_or(0.0, |_| shown(moments.min as f64)),
            percentiles: self.quantiles().map(percentile).collect(),
        }
    }

    /// Latencies of these kinds.
    fn latency(&self, summary: &Summary, kinds: &[OpKind]) -> Row {
        self.latency_row(&self.histogram(summary, kinds))
    }

    fn latency_row(&self, histogram: &Histogram) -> Row {
        self.row(histogram.moments(), |at| histogram.quantile(at), US, 0.0)
    }

    /// Operations of these kinds, of those whose latencies are shown.
    fn shown<'a>(&self, summary: &'a Summary, kinds: &'a [OpKind]) -> Vec<&'a OpRow> {
        // Where the master was alone it had no agents.
        if !self.masters_rows || summary.record.plan.agents.is_empty() {
            return of(summary, kinds).collect();
        }
        let masters = carried_by(summary, HostRole::Controller);
        masters.flat_map(|class| &class.ops).filter(|row| kinds.contains(&row.op.kind())).collect()
    }

    fn histogram(&self, summary: &Summary, kinds: &[OpKind]) -> Histogram {
        let mut histogram = Histogram::new();
        if self.successful {
            for sample in successes(summary).filter(|sample| kinds.contains(&sample.op.kind())) {
                histogram.record(self.latency_ns(sample));
            }
            return histogram;
        }
        for held in self.shown(summary, kinds).into_iter().map(|row| &row.summary.latency) {
            histogram.merge(if self.legacy_latency {
                &held.service.histogram
            } else {
                &held.response.histogram
            });
        }
        histogram
    }

    fn latency_ns(&self, sample: &Sample) -> u64 {
        if self.legacy_latency { sample.times.service_ns() } else { sample.times.response_ns() }
    }

    /// Requests on a connection, each time one was sent, that one included.
    fn queue(&self, summary: &Summary) -> Row {
        let meter = summary.meters.iter().find(|meter| meter.kind == MeterKind::Outstanding);
        let moments = meter.map_or_else(Moments::default, |meter| *meter.histogram.moments());
        self.row(&moments, |at| meter?.histogram.quantile(at), 1.0, 1.0)
    }

    /// Requests that count, and how many of them there were in a second.
    fn total(&self, summary: &Summary) -> u64 {
        // A run that purges ends after a number of requests; its deletes do not count.
        let deleted = if purges(summary) {
            of(summary, &[OpKind::Delete]).map(|row| row.summary.requests.completed()).sum()
        } else {
            0
        };
        let is_over = |sample: &&Sample| sample.times.done_ns < summary.window.end_ns;
        match self.successful {
            true => {
                let counts = |sample: &&Sample| !purges(summary) || sample.op.kind() != OpKind::Delete;
                let own = successes(summary).filter(is_over).filter(counts).count() as u64;
                // Single requests of agents stay with them.
                own + successes_of_agents(summary)
            }
            // A run that ends after a number of requests ends with the last of them.
            false if summary.record.plan.stop.time.is_none() => summary.total.requests.completed() - deleted,
            false => summary.total.in_window.completed(),
        }
    }
}

/// Samples of the measured window that were hits or stores.
fn successes(summary: &Summary) -> impl Iterator<Item = &Sample> {
    let window = summary.window.measure_ns..summary.window.end_ns;
    let is_success = |class: OutcomeClass| matches!(class, OutcomeClass::Hit | OutcomeClass::Done);
    summary
        .record
        .run
        .samples
        .iter()
        .filter(move |sample| window.contains(&sample.times.intended_ns) && is_success(sample.outcome.class))
}

/// Were most keys deleted in the middle of the run?
fn purges(summary: &Summary) -> bool {
    summary.record.plan.classes.iter().any(|class| class.purge.is_some())
}

fn updates(summary: &Summary) -> &'static [OpKind] {
    if purges(summary) { &UPDATES[..UPDATES.len() - 1] } else { &UPDATES }
}

/// Deletes of a purge that were carried out, and how many there were.
fn purged(summary: &Summary) -> Option<(u64, u64)> {
    let deletes = of(summary, &[OpKind::Delete]).next().filter(|_| purges(summary))?;
    let counts = &deletes.summary.requests;
    Some((counts.outcome(OutcomeClass::Done), counts.scheduled))
}

fn of<'a>(summary: &'a Summary, kinds: &'a [OpKind]) -> impl Iterator<Item = &'a OpRow> {
    summary.ops.iter().filter(|row| kinds.contains(&row.op.kind()))
}

/// The classes of one host_role.
fn carried_by(summary: &Summary, host_role: HostRole) -> impl Iterator<Item = &ClassSummary> {
    let of_it = move |class: &&ClassSummary| {
        summary.record.plan.classes[usize::from(class.class)].host_role == host_role
    };
    summary.classes.iter().filter(of_it)
}

/// Hits and stores of agents, where there are any.
fn successes_of_agents(summary: &Summary) -> u64 {
    if summary.record.plan.agents.is_empty() {
        return 0;
    }
    let of_class = |class: &ClassSummary| {
        let requests = &class.total.requests;
        requests.outcome(OutcomeClass::Hit) + requests.outcome(OutcomeClass::Done)
    };
    carried_by(summary, HostRole::Agents).map(of_class).sum()
}

/// Reads that found nothing, and all of them, of those that count.
fn misses(summary: &Summary) -> (u64, u64) {
    let of_row = |row: &OpRow| match summary.record.plan.stop.time {
        None => (row.summary.keys.miss, row.summary.requests.completed()),
        Some(_) => (row.summary.in_window.missed, row.summary.in_window.completed()),
    };
    of(summary, &READS)
        .map(of_row)
        .fold((0, 0), |(misses, reads), (missed, completed)| (misses + missed, reads + completed))
}

/// Requests per second.
pub fn rate(summary: &Summary, layout: Layout) -> f64 {
    let seconds = measured_seconds(summary);
    if seconds > 0.0 { layout.total(summary) as f64 / seconds } else { 0.0 }
}

/// A percentile of reads, in microseconds; `None` where nothing was read.
pub fn read_percentile_us(summary: &Summary, layout: Layout, percentile: f64) -> Option<f64> {
    // A search judges all reads.
    percentile_us(summary, Layout { successful: false, ..layout }, percentile)
}

/// A percentile of the operations in the row `read`, in microseconds.
fn percentile_us(summary: &Summary, layout: Layout, percentile: f64) -> Option<f64> {
    let held = layout.histogram(summary, &READS);
    let quantile = Quantile::from_millionths((percentile * 1e4).round() as u32)?;
    held.quantile(quantile).map(|value_ns| value_ns as f64 / 1e3)
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
/// Errors of writing to `out`.
pub fn write_report(
    out: &mut dyn Write,
    summary: &Summary,
    layout: Layout,
    peak_qps: Option<f64>,
) -> io::Result<()> {
    let names = layout.percentiles().iter().map(|(name, _)| *name);
    writeln!(out, "{}", head(["avg", "std", "min"].into_iter().chain(names)))?;
    for (tag, kinds) in [("read", &READS[..]), ("update", updates(summary))] {
        writeln!(out, "{}", line(tag, &layout.latency(summary, kinds)))?;
    }
    writeln!(out, "{}", line("op_q", &layout.queue(summary)))?;
    let (total, seconds) = (layout.total(summary), measured_seconds(summary));
    writeln!(out, "\nTotal QPS = {:.1} ({total} / {seconds:.1}s)", rate(summary, layout))?;
    if let Some(peak) = peak_qps {
        writeln!(out, "Peak QPS  = {peak:.1}")?;
    }
    let (misses, reads) = misses(summary);
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

/// What is over the rows of a scan.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_scan_head(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} {:>8} {:>8}", head(SCAN_COLUMNS), "QPS", "target")?;
    out.flush()
}

/// A row of a scan.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_scan_row(
    out: &mut dyn Write,
    summary: &Summary,
    layout: Layout,
    target_qps: u64,
) -> io::Result<()> {
    let row = line("read", &layout.latency(summary, &READS));
    writeln!(out, "{row} {:>8.1} {target_qps:>8}", rate(summary, layout))?;
    out.flush()
}

/// One line for each read: when it was due, in seconds from the start of the program, and its latency in microseconds.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_samples(
    out: &mut dyn Write,
    summary: &Summary,
    layout: Layout,
    measured_after_s: f64,
) -> io::Result<()> {
    let window = summary.window.measure_ns..summary.window.end_ns;
    let is_read = |sample: &&Sample| {
        READS.contains(&sample.op.kind())
            && sample.outcome.class.is_completed()
            && window.contains(&sample.times.intended_ns)
            && (!layout.successful || sample.outcome.class == OutcomeClass::Hit)
    };
    for sample in summary.record.run.samples.iter().filter(is_read) {
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
            && (READS.contains(&sample.op.kind()) || !follows)
    };
    let mut samples: Vec<&Sample> = summary.record.run.samples.iter().filter(is_request).collect();
    samples.sort_by_key(|sample| sample.times.done_ns);
    let seen = samples
        .iter()
        .map(|sample| (READS.contains(&sample.op.kind()), sample.outcome.class == OutcomeClass::Miss));
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

/// What the columns have no place for, each as its kind (`warning` or `note`) and a sentence, for standard error.
pub fn remarks(summary: &Summary, layout: Layout) -> Vec<(&'static str, String)> {
    let warnings = warnings(summary).into_iter().map(|text| ("warning", text));
    warnings.chain(notes(summary, layout).into_iter().map(|text| ("note", text))).collect()
}

/// Why the numbers of a run may not be relied on, or are not of all that was requested.
fn warnings(summary: &Summary) -> Vec<String> {
    let mut warnings = Vec::new();
    let status = &summary.status;
    if status.status > Status::Ok {
        warnings.extend(findings(status));
    }
    let counts = &summary.total.requests;
    let failed = counts.failed() + counts.in_flight;
    if failed > 0 {
        let first = summary.counts().first_error.as_ref();
        let said = first.map_or(String::new(), |text| format!(" (the server said: {text})"));
        let of = counts.scheduled;
        warnings.push(format!("{failed} of {of} requests have no valid reply and stand in no row{said}"));
    }
    if counts.unsent > 0 {
        warnings.push(format!("{} of {} requests were due and never sent", counts.unsent, counts.scheduled));
    }
    warnings.extend(summary.record.run.traces.iter().flat_map(trace_warnings));
    if summary.counts().samples_overflow > 0 {
        warnings.push(format!("{} samples there was no room for", summary.counts().samples_overflow));
    }
    warnings
}

/// What the numbers of a run mean beside others.
fn notes(summary: &Summary, layout: Layout) -> Vec<String> {
    let mut notes = Vec::new();
    let p99 = |legacy_latency| percentile_us(summary, Layout { legacy_latency, ..layout }, 99.0);
    notes.extend(late_remark("99th of read", [p99(false), p99(true)]));
    if let Some((done, all)) = purged(summary) {
        notes.push(format!(
            "delete90: {done} keys were deleted by {all} requests, which stand in no row and are none of --queries"
        ));
    }
    let count = layout.latency(summary, &READS).count;
    let mut columns = layout.percentiles().iter().zip(layout.quantiles());
    let thin = columns.find(|(_, quantile)| count > 0 && !quantile.is_supported_by(count));
    notes.extend(thin.map(|((name, _), _)| {
        format!("{name} of read and what lies above it rest on fewer than 10 of {count} samples")
    }));
    notes
}

/// What is to be said of a file that was replayed.
fn trace_warnings(record: &TraceRecord) -> Vec<String> {
    let file = &record.file;
    let mut said = Vec::new();
    if let Some(first) = &record.lines.first_unreadable {
        said.push(format!(
            "--read_file: {} of {} lines of '{file}' were passed over; the first is line {}, '{}': {}",
            record.lines.unreadable,
            record.lines.read,
            first.line,
            first.text.escape_debug(),
            first.reason
        ));
    }
    if record.cut > 0 {
        said.push(format!(
            "--read_file: {} values of '{file}' were cut to {} bytes",
            record.cut,
            Trace::VALUE_BYTES_MAX
        ));
    }
    if record.substituted > 0 {
        said.push(format!(
            "--read_file: {} records of '{file}' name operations that the protocol lacks; others were sent for them",
            record.substituted
        ));
    }
    said
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
        let of =
            |generation| Layout { generation, successful: false, legacy_latency: false, masters_rows: false };
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
        let layout = Layout {
            generation: Generation::Second,
            successful: false,
            legacy_latency: false,
            masters_rows: false,
        };
        let row = layout.latency_row(&histogram);
        assert_eq!((row.count, row.mean, row.min), (1_000, 500.5, 1.0));
        for (found, expected) in row.percentiles.iter().zip([50.0, 100.0, 500.0, 900.0, 950.0, 990.0, 999.0])
        {
            assert!((expected..expected * 1.001).contains(found), "{found}, not {expected}");
        }
        let none = layout.latency_row(&Histogram::new());
        assert_eq!(line("update", &none), format!("update {}", "     0.0".repeat(10)));
    }

    #[test]
    fn misses_are_counted_by_window() {
        let (hit, miss, set) = ((true, false), (true, true), (false, false));
        let seen = [hit, miss, set, miss, set, set, hit, hit, miss, hit];
        assert_eq!(windows_of(seen.into_iter(), 3), [(3, 0.5), (6, 1.0), (9, 1.0 / 3.0)]);
        // A window without reads goes on.
        assert_eq!(windows_of([set, set, miss, hit].into_iter(), 2), [(4, 0.5)]);
    }
}
