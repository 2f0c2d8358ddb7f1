//! Small tables of what happened beside answering: servers side by side, outages, the p99 over time.
//!
//! Each is there only where there is something to see. No table has more than six rows; `--details` has all.

use super::latency::rate;
use crate::bar_scale::BarScale;
use crate::grid::{Column, Grid};
use crate::instant::in_window_ns;
use crate::layout::{Style, TimeUnit};
use crate::page::Page;
use crate::paragraph::printable;
use crate::quantity;
use crate::server;
use brunt_plan::plan::{Load, OpenRate};
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::outage::Outage;
use brunt_stats::server::ServerCounts;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::TimelinePoint;

/// Outages, which are told of again in the status.
const OUTAGES_MAX: usize = 4;
/// Bars of the line over time, which leaves room for its scale.
const BARS_MAX: u64 = 40;
const SECOND_NS: u64 = 1_000_000_000;
/// Fewer pieces of time show no course.
const PIECES_MIN: usize = 5;

pub(super) fn write(page: &mut Page<'_>, summary: &Summary) {
    servers(page, summary);
    outages(page, summary);
    if page.room.has_lesser_facts {
        over_time(page, summary);
    }
}

/// What one server did from the beginning of the window on.
pub(crate) struct ServerLine {
    pub(crate) name: String,
    pub(crate) counts: ServerCounts,
    pub(crate) done_per_s: f64,
    pub(crate) cpu_ns: Option<f64>,
}

/// The servers side by side, where there are several; the nodes of a cluster say how much they sent on.
fn servers(page: &mut Page<'_>, summary: &Summary) {
    if summary.servers().len() < 2 || !page.room.has_servers {
        return;
    }
    let lines = server_lines(summary, page.room.rows);
    let all: f64 = lines.iter().map(|line| line.done_per_s).sum();
    let is_cluster = summary.record.run.cluster.is_some();
    let has_cpu = lines.iter().any(|line| line.cpu_ns.is_some());
    let mut columns = vec![
        Column::of_words(if is_cluster { "node" } else { "server" }, 19),
        Column::of_numbers("share%", 7),
        Column::of_numbers("done/s", 10),
        Column::of_numbers("failed", 8),
    ];
    columns.extend(is_cluster.then(|| Column::of_numbers("moved", 8)));
    columns.extend(has_cpu.then(|| Column::of_numbers("cpu_us", 8)));
    let mut grid = Grid::new(columns);
    for line in lines {
        let share = if all > 0.0 { format!("{:.1}", 100.0 * line.done_per_s / all) } else { "-".to_owned() };
        let mut row = vec![printable(&line.name).replace(' ', "_"), share, rate(line.done_per_s)];
        row.push((line.counts.failed + line.counts.abandoned).to_string());
        row.extend(is_cluster.then(|| line.counts.redirected.to_string()));
        let cpu = line.cpu_ns.map_or("-".to_owned(), |ns| quantity::significant(ns / TimeUnit::Us.ns()));
        row.extend(has_cpu.then_some(cpu));
        grid.push_texts(
            row,
            if line.counts.failed + line.counts.abandoned > 0 { Style::Bad } else { Style::Plain },
        );
    }
    page.separate();
    page.grid(&grid);
}

/// Where there are many, those that failed most, then the busiest, in the order of the plan; the others as one.
pub(crate) fn server_lines(summary: &Summary, rows_max: usize) -> Vec<ServerLine> {
    let seconds = summary.window.seconds();
    let cpu_ns = server::cpu_ns_per_request(summary);
    let mut lines: Vec<ServerLine> = Vec::new();
    for (index, (window, counts)) in since_window(summary).into_iter().enumerate() {
        lines.push(ServerLine {
            name: server::name(summary, index),
            counts,
            done_per_s: if seconds > 0.0 { window.answered as f64 / seconds } else { 0.0 },
            cpu_ns: cpu_ns[index],
        });
    }
    if lines.len() <= rows_max {
        return lines;
    }
    let mut worst: Vec<usize> = (0..lines.len()).collect();
    let rank = |index: &usize| {
        (lines[*index].counts.failed + lines[*index].counts.abandoned, lines[*index].counts.answered)
    };
    worst.sort_by_key(|index| std::cmp::Reverse(rank(index)));
    worst.truncate(rows_max - 1);
    let count = lines.len() - worst.len();
    let mut rest = ServerLine {
        name: format!("rest-{count}"),
        counts: ServerCounts::default(),
        done_per_s: 0.0,
        cpu_ns: None,
    };
    let mut shown = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        if worst.contains(&index) {
            shown.push(line);
        } else {
            rest.counts.merge(&line.counts);
            rest.done_per_s += line.done_per_s;
        }
    }
    shown.push(rest);
    shown
}

/// Of each server: what was counted in the window, and from its beginning to the end of the run.
fn since_window(summary: &Summary) -> Vec<(ServerCounts, ServerCounts)> {
    let mut sums = vec![(ServerCounts::default(), ServerCounts::default()); summary.servers().len()];
    for slice in summary.record.run.intervals.timeline().slices() {
        let middle_ns = slice.start_ns + (slice.end_ns - slice.start_ns) / 2;
        if middle_ns < summary.window.measure_ns {
            continue;
        }
        for ((window, all), counts) in sums.iter_mut().zip(&slice.servers) {
            all.merge(counts);
            if middle_ns < summary.window.end_ns {
                window.merge(counts);
            }
        }
    }
    sums
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

/// The outages of servers, the longest where there are many, by start. `--details` has all.
fn outages(page: &mut Page<'_>, summary: &Summary) {
    let shown = longest_outages(summary.server_outages(), OUTAGES_MAX.min(page.room.rows));
    if shown.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::of_words("outage", 17),
        Column::of_numbers("start/s", 9),
        Column::of_numbers("down/s", 8),
        Column::of_numbers("to95%/s", 9),
        Column::of_numbers("failed", 8),
        Column::of_words("kinds", 7),
    ]);
    for outage in &shown {
        let seconds = |ns: u64| quantity::significant(ns as f64 / TimeUnit::S.ns());
        let start = in_window_ns(summary, outage.start_ns) as f64 / TimeUnit::S.ns();
        let recovery_ns = outage.recovered_ns.map(|at_ns| at_ns.saturating_sub(outage.start_ns));
        let row = [
            printable(&server::name(summary, usize::from(outage.server))).replace(' ', "_"),
            format!("{start:+.2}"),
            outage.length_ns().map_or("open".to_owned(), seconds),
            recovery_ns.map_or("-".to_owned(), seconds),
            outage.failed.to_string(),
            outage.kinds.names().collect::<Vec<_>>().join(","),
        ];
        grid.push_texts(row, Style::Plain);
    }
    page.separate();
    page.grid(&grid);
    let others = (summary.server_outages().count() - shown.len()) as u64 + summary.outages_overflow();
    if others > 0 {
        page.prose("", 0, &format!("+{others} more: --details"), Style::Plain);
    }
}

/// The p99 of each piece of the window as a line of bars, where it is not the same all the time.
fn over_time(page: &mut Page<'_>, summary: &Summary) {
    let is_profile = |load: &Load| matches!(load, Load::Open { rate: OpenRate::Profile(_), .. });
    let is_changing = summary.status.status_of(CheckId::Steady) > CheckStatus::Ok;
    let has_outages = summary.server_outages().next().is_some();
    let is_shown =
        has_outages || is_changing || summary.record.plan.classes.iter().any(|class| is_profile(&class.load));
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
    let bars: String = values.iter().map(|value| scale.bar(*value)).collect();
    let width_ns = points[0].end_ns - points[0].start_ns;
    let by = if width_ns == SECOND_NS { "second".to_owned() } else { quantity::time(width_ns) };
    if !has_outages {
        page.separate();
    }
    page.prose(&format!("{name} by {by}"), 19, &format!("{bars}  {scale}"), Style::Dim);
}
