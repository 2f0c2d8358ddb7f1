//! What happened beside answering: outages, the p99 over time, faults of connections.
//!
//! Each is there only where there is something to see. A short report has the longest outages, a long one all, as far as a table has room.

use crate::document::{Content, Document};
use crate::grid::{Column, Grid, Rows, Value};
use crate::instant::in_window_ns;
use crate::layout::BarScale;
use crate::layout::{Layout, Style, TimeUnit};
use crate::quantity::{self, rate};
use crate::server;
use brunt_plan::plan::{Load, OpenRate};
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::connection::FaultKind;
use brunt_stats::live_run::SECOND_NS;
use brunt_stats::outage::Outage;
use brunt_stats::server::OutageKind;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::TimelinePoint;

/// Outages of a short report.
const OUTAGES_MAX: usize = 4;
/// Outages of a long one; JSON has all.
const OUTAGES_LONG_MAX: usize = 20;
/// Bars of the line over time, which leaves room for its scale.
const BARS_MAX: u64 = 40;
/// Rows of the table over time.
const SECONDS_MAX: u64 = 60;
/// Fewer pieces of time show no course.
const PIECES_MIN: usize = 5;

pub(super) fn write(document: &mut Document, summary: &Summary) {
    document.gap();
    let outages: Vec<&Outage> = summary.server_outages().collect();
    let shown = longest_outages(outages.iter().copied(), OUTAGES_MAX);
    document.push(1, Content::Table(outage_table(summary, &shown)));
    let others = (outages.len() - shown.len()) as u64 + summary.outages_overflow();
    let more = (others > 0).then(|| format!("{others} more outages: --report full"));
    document.push(8, Content::Facts { label: String::new(), facts: more.into_iter().collect() });
}

/// All outages, and faults of connections.
pub(crate) fn part(document: &mut Document, summary: &Summary) {
    document.heading("outages");
    let shown = longest_outages(&summary.outages, OUTAGES_LONG_MAX);
    document.table(outage_table(summary, &shown));
    let others = [
        ("none of them longer", (summary.outages.len() - shown.len()) as u64),
        ("dropped", summary.outages_overflow()),
    ];
    let others = others.into_iter().filter(|(_, count)| *count > 0);
    document.facts("more", others.map(|(what, count)| format!("{count} {what}")).collect());
    document.heading("faults");
    document.table(faults(summary));
    let remedies = [FaultKind::NoPort, FaultKind::NoDescriptor, FaultKind::NoFile].into_iter();
    for kind in remedies.filter(|kind| summary.faults().count_of(*kind) > 0) {
        let (label, text) = (fault_name(kind), kind.remedy().unwrap_or_default().to_owned());
        document.push(0, Content::Sentence { label, text, style: Style::Dim });
    }
}

/// As many of them, the longest, by start.
pub(crate) fn longest_outages<'a>(
    outages: impl IntoIterator<Item = &'a Outage>,
    most: usize,
) -> Vec<&'a Outage> {
    let mut shown: Vec<&Outage> = outages.into_iter().collect();
    // Stable: of those that are as long, the first.
    shown.sort_by_key(|outage| std::cmp::Reverse(outage.length_ns().unwrap_or(u64::MAX)));
    shown.truncate(most);
    shown.sort_by_key(|outage| (outage.start_ns, outage.server));
    shown
}

fn in_seconds(ns: u64) -> String {
    quantity::significant(ns as f64 / TimeUnit::S.ns())
}

fn outage_table(summary: &Summary, outages: &[&Outage]) -> Grid {
    let recovery_ns = |outage: &Outage| Some(outage.recovered_ns?.saturating_sub(outage.start_ns));
    Rows::of(outages, |_| Style::Plain)
        .texts(Column::of_words("outage, s", 17), |outage| {
            server::cell(&server::name(summary, outage.server.into()))
        })
        .texts(Column::spaced("start", 9), |outage| in_run(summary, outage.start_ns))
        .texts(Column::spaced("down", 7), |outage| outage.length_ns().map_or("open".to_owned(), in_seconds))
        .texts(Column::spaced("back to 95 %", 0).lost_as(0), |outage| {
            recovery_ns(outage).map_or("-".to_owned(), in_seconds)
        })
        .texts(Column::spaced("failed", 8), |outage| outage.failed)
        .texts(Column::of_words("kind", 0), |outage| {
            outage.kinds.names().map(kind_name).collect::<Vec<_>>().join(",")
        })
        .grid(None)
}

/// Seconds from the beginning of the window.
fn in_run(summary: &Summary, at_ns: u64) -> String {
    format!("{:+.2}", in_window_ns(summary, at_ns) as f64 / TimeUnit::S.ns())
}

/// A kind of outage without blanks: `no-replies`.
fn kind_name(name: &str) -> String {
    if name == OutageKind::Stalled.name() { "no-replies".to_owned() } else { name.replace('_', "-") }
}

fn fault_name(kind: FaultKind) -> String {
    match kind {
        FaultKind::Other(errno) => format!("errno-{errno}"),
        kind => kind.name().replace('_', "-"),
    }
}

fn faults(summary: &Summary) -> Grid {
    Rows::of(summary.faults().rows(), |_| Style::Plain)
        .texts(Column::of_words("fault", 17), |fault| fault_name(fault.kind))
        .texts(Column::of_words("phase", 9), |fault| fault.phase.name())
        .texts(Column::spaced("count", 8), |fault| fault.count)
        .texts(Column::spaced("first, s", 8), |fault| in_run(summary, fault.first_ns))
        .grid(None)
}

/// The p99 of each piece of the window as a line of bars, where it is not the same all the time.
pub(super) fn over_time(document: &mut Document, summary: &Summary) {
    let is_profile =
        |load: &Load| matches!(load, Load::Open { rate: OpenRate::Profile(_) | OpenRate::Recorded, .. });
    let has_outages = summary.server_outages().next().is_some();
    let is_shown = has_outages
        || summary.status.status_of(CheckId::Steady) > CheckStatus::Ok
        || summary.record.plan.classes.iter().any(|class| is_profile(&class.load));
    // Whatever --interval asks for: rows of a table are not bars.
    let (timeline, window) = (summary.record.run.intervals.timeline(), &summary.window);
    let least_ns = window.duration_ns().div_ceil(BARS_MAX).div_ceil(SECOND_NS).max(1) * SECOND_NS;
    let piece_ns = least_ns.div_ceil(timeline.slice_ns()) * timeline.slice_ns();
    let points = timeline.points(window.measure_ns..window.end_ns, piece_ns);
    if !is_shown || points.len() < PIECES_MIN {
        return;
    }
    // A piece that has too few requests for a p99 shows its largest; where most have, all do.
    let p99s = points.iter().filter(|point| point.latency.p99_ns.is_some()).count();
    let (name, value): (_, fn(&TimelinePoint) -> Option<u64>) = if 2 * p99s >= points.len() {
        ("p99", |point| point.latency.p99_ns.or(point.latency.max_ns))
    } else {
        ("max", |point| point.latency.max_ns)
    };
    let values: Vec<Option<u64>> = points.iter().map(value).collect();
    let Some(scale) = BarScale::of(&values) else { return };
    let width_ns = points[0].end_ns - points[0].start_ns;
    let by = if width_ns == SECOND_NS { "second".to_owned() } else { quantity::time(width_ns) };
    document.push(11, Content::Chart { label: format!("{name} by {by}"), times_ns: values, scale });
}

/// The run over time in a long report: at most sixty rows, each the sum of its slices.
pub(super) fn seconds(document: &mut Document, summary: &Summary, layout: &Layout) {
    document.heading("seconds");
    let (timeline, window) = (summary.record.run.intervals.timeline(), &summary.window);
    let least_ns = window.duration_ns().div_ceil(SECONDS_MAX).max(SECOND_NS);
    let piece_ns = least_ns.div_ceil(timeline.slice_ns()) * timeline.slice_ns();
    let points = timeline.points(window.measure_ns..window.end_ns, piece_ns);
    let failed = |point: &&TimelinePoint| if point.activity.failed > 0 { Style::Bad } else { Style::Plain };
    let seconds = |point: &TimelinePoint| (point.end_ns - point.start_ns) as f64 / 1e9;
    let per_s = |point: &TimelinePoint, count: u64| rate(count as f64 / seconds(point));
    let start_s = |point: &TimelinePoint| in_window_ns(summary, point.start_ns) as f64 / 1e9;
    let table = Rows::of(&points, failed)
        .texts(Column::of_words("second", 13).with_unit(", "), |point| format!("{:.1}", start_s(point)))
        .texts(Column::spaced("due/s", 8), |point| per_s(point, point.activity.scheduled))
        .texts(Column::spaced("done/s", 8), |point| per_s(point, point.activity.completed))
        .texts(Column::spaced("failed", 8), |point| point.activity.failed)
        .values(Column::spaced("p50", 8), |point| Value::Time(point.latency.p50_ns))
        .values(Column::spaced("p99", 8), |point| Value::Time(point.latency.p99_ns))
        .values(Column::spaced("max", 8), |point| Value::Time(point.latency.max_ns));
    document.table(table.grid(layout.unit));
}
