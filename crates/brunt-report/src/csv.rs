//! A run over time as CSV, one line per second or as much longer as its slices are, for plots and spreadsheets.
//!
//! Not the raw samples (those are [`crate::samples`]) and not totals. The lines of the measured window are the
//! `intervals` of the JSON; before them come those of the warm-up. docs/results.md says what every column means.

use crate::live;
use crate::server;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::warmup::Warmup;
use brunt_stats::client_time::ClientShares;
use brunt_stats::interval::Activity;
use brunt_stats::period::Period;
use brunt_stats::run_times::RunTimes;
use brunt_stats::server_stats::{ServerRecord, ServerSpan, Snapshot};
use brunt_stats::summary::Summary;
use brunt_stats::timeline::TimelinePoint;
use std::fmt::Display;
use std::io::{self, Write};

/// The columns.
const HEADING: &str = "start_ns,end_ns,phase,scheduled,sent,completed,failed,completed_per_s,p50_ns,p99_ns,max_ns,\
     server_requests,server_hit_ratio,server_evictions,server_items,server_bytes,server_cpu_ns,server_count,\
     client_busy,client_busiest,client_run_delay,client_most_delayed,client_stolen";

/// Least length of the pieces, where none is asked for.
const WIDTH_NS: u64 = 1_000_000_000;

/// Writes a heading and a line for every piece of the schedule, warm-up first. Pieces are counted from the beginning of the
/// measured window, so that the first line of the warm-up and the last of the window may cover less.
///
/// # Errors
/// What `out` returns. A line is one small write: give it a buffered writer.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    let (measure_ns, servers) = (summary.window.measure_ns, &summary.record.run.server_records);
    for point in warmup(summary) {
        line(measure_ns, Phase::Warmup, &point, server_span(summary, servers, &point), out)?;
    }
    for point in summary.intervals(WIDTH_NS) {
        line(measure_ns, Phase::Measure, &point, server_span(summary, servers, &point), out)?;
    }
    Ok(())
}

fn server_span(
    summary: &Summary,
    servers: &[ServerRecord],
    point: &TimelinePoint,
) -> Option<(ServerSpan, usize)> {
    let width_ns = summary.timeline().row_ns(point.start_ns, WIDTH_NS);
    server::piece(servers, width_ns, point.start_ns, point.end_ns)
}

/// The lines of a run with a length that was asked for, written while it goes on, so that each of them has its own however long the run
/// is. Pieces of the warm-up are counted from its beginning. A line waits for the next one: what servers say of its end comes later, and
/// how far off the window is may not be known before it begins.
#[derive(Debug)]
pub struct LiveLines {
    plan: Plan,
    width_ns: u64,
    times: RunTimes,
    is_window_known: bool,
    servers: Vec<ServerRecord>,
    waiting: Vec<(Phase, TimelinePoint)>,
    has_heading: bool,
}

impl LiveLines {
    /// Before a run with lines of this length begins.
    pub fn new(plan: &Plan, width_ns: u64) -> Self {
        Self {
            plan: plan.clone(),
            width_ns,
            times: RunTimes::default(),
            is_window_known: false,
            servers: Vec::new(),
            waiting: Vec::new(),
            has_heading: false,
        }
    }

    /// The lines of all that waits, up to the end of the window.
    fn write_waiting(&mut self, end_ns: u64, out: &mut dyn Write) -> io::Result<()> {
        if !self.has_heading {
            writeln!(out, "{HEADING}")?;
            self.has_heading = true;
        }
        for (phase, point) in std::mem::take(&mut self.waiting) {
            let point = TimelinePoint { end_ns: point.end_ns.min(end_ns), ..point };
            if point.start_ns < point.end_ns {
                let span = server::piece(&self.servers, self.width_ns, point.start_ns, point.end_ns);
                line(self.times.measure_ns, phase, &point, span, out)?;
            }
            let passed_ns = point.start_ns;
            self.servers.iter_mut().for_each(|record| record.forget_before(passed_ns));
        }
        Ok(())
    }
}

impl live::Lines for LiveLines {
    fn start(&mut self, times: &RunTimes) {
        self.is_window_known = self.plan.warmup != Warmup::Auto || self.times != RunTimes::default();
        self.times = *times;
    }

    fn push_stats(&mut self, server: usize, snapshot: &Snapshot) {
        let count = self.servers.len().max(server + 1);
        self.servers.resize_with(count, ServerRecord::default);
        self.servers[server].push(snapshot.clone());
    }

    /// The lines of those before it.
    fn write_period(&mut self, period: &Period, out: &mut dyn Write) -> io::Result<()> {
        if !matches!(period.phase, Phase::Warmup | Phase::Measure) {
            return Ok(());
        }
        self.is_window_known |= period.phase == Phase::Measure;
        if self.is_window_known {
            self.write_waiting(u64::MAX, out)?;
        }
        self.waiting.push((period.phase, period.point()));
        Ok(())
    }

    fn write_rest(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        self.times.measure_ns = summary.window.measure_ns;
        for (server, record) in summary.record.run.server_records.iter().enumerate() {
            // The last one comes with the result.
            record.snapshots().last().iter().for_each(|last| self.push_stats(server, last));
        }
        self.write_waiting(summary.window.end_ns, out)
    }
}

/// The warm-up in pieces that end at whole pieces before the window.
fn warmup(summary: &Summary) -> Vec<TimelinePoint> {
    let window = &summary.window;
    let (start_ns, end_ns) = (window.start_ns, window.measure_ns);
    // Slices of time lie on a grid that the window begins on: the one that the schedule begins in is looked up by its
    // own beginning.
    let timeline = summary.timeline();
    let width_ns = timeline.row_ns(start_ns, WIDTH_NS);
    let first_end_ns = start_ns + end_ns.saturating_sub(start_ns) % width_ns;
    let mut points = Vec::new();
    if first_end_ns > start_ns {
        points = timeline.points(timeline.cell_of(start_ns)..first_end_ns, width_ns);
    }
    points.extend(timeline.points(first_end_ns..end_ns, width_ns));
    points
        .into_iter()
        .map(|point| TimelinePoint { start_ns: point.start_ns.max(start_ns), ..point })
        .collect()
}

fn line(
    measure_ns: u64,
    phase: Phase,
    point: &TimelinePoint,
    servers: Option<(ServerSpan, usize)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Activity { scheduled, sent, completed, failed } = without_preload(point);
    let [start_ns, end_ns] =
        [point.start_ns, point.end_ns].map(|at_ns| at_ns.wrapping_sub(measure_ns) as i64);
    let per_s = completed as f64 * 1e9 / (point.end_ns - point.start_ns).max(1) as f64;
    write!(out, "{start_ns},{end_ns},{},{scheduled},{sent},{completed},{failed},{per_s:.3}", phase.name())?;
    let [p50, p99, max] = [point.latency.p50_ns, point.latency.p99_ns, point.latency.max_ns].map(cell);
    write!(out, ",{p50},{p99},{max}")?;
    server_cells(servers, out)?;
    let ClientShares { busy, busiest, run_delay, most_delayed, stolen } =
        point.client.shares().unwrap_or_default();
    for share in [busy, busiest, run_delay, most_delayed, stolen] {
        write!(out, ",{}", cell(share.map(|share| format!("{share:.3}"))))?;
    }
    writeln!(out)
}

/// What is not known is empty.
pub(crate) fn cell(value: Option<impl Display>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// What the servers say of the same time, all of them together that were there, and how many those were; empty where none does.
fn server_cells(found: Option<(ServerSpan, usize)>, out: &mut dyn Write) -> io::Result<()> {
    let servers = cell(found.map(|(_, servers)| servers));
    let span = found.map(|(span, _)| span).unwrap_or_default();
    let ratio = span.hit_ratio().map_or(String::new(), |ratio| format!("{ratio:.6}"));
    let [requests, evictions, items, bytes, cpu_ns] =
        [span.requests, span.evictions, span.items, span.bytes, span.cpu_ns].map(cell);
    write!(out, ",{requests},{ratio},{evictions},{items},{bytes},{cpu_ns},{servers}")
}

/// A slice of time may reach from the end of the preload into the schedule.
pub(crate) fn without_preload(point: &TimelinePoint) -> Activity {
    let (all, preload) = (point.activity, point.preload);
    Activity {
        scheduled: all.scheduled - preload.scheduled,
        sent: all.sent - preload.sent,
        completed: all.completed - preload.completed,
        failed: all.failed - preload.failed,
    }
}
