//! Charts of a run over time: response times as a heat map with their percentiles, rates, and the operations in the system.
//!
//! Invariants: the charts share one axis of time; a percentile of a column is that of all its requests, and the longest response time of
//! every column is there.

use super::columns::{Column, Columns};
use super::frame::{self, Frame, Key, NOTE_SIZE, Size, Values};
use super::heat;
use crate::instant::in_window_ns;
use crate::quantity;
use crate::quantity::rate;
use crate::server;
use brunt_picture::{Anchor, Area, Fill, Ink, Picture, Point, Shape, Stroke, Texture, text_width};
use brunt_plan::quantile::Quantile;
use brunt_stats::change_point::LevelSeries;
use brunt_stats::outage::Outage;
use brunt_stats::summary::Summary;

pub(super) const HEAT_HEIGHT: f64 = 260.0;
const SYSTEM_HEIGHT: f64 = 90.0;
/// A backlog so many times the median would leave of that nothing on a linear axis.
const SYSTEM_RATIO: f64 = 100.0;

const P50: Stroke = Stroke::solid(Ink::Series(4), 1.5);
const P99: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
const MAX: Stroke = Stroke::solid(Ink::Text, 3.0);
const OFFERED: Stroke = Stroke { ink: Ink::Soft, width: 1.5, dash: &[6.0, 3.0] };
const DONE: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const SENT: Stroke = Stroke { ink: Ink::Series(4), width: 1.5, dash: &[2.0, 2.0] };
const OTHER_PHASE: Fill = Fill::faint(Ink::Soft, 0.14);
const OUTAGE: Fill = Fill { opacity: 0.7, ..Fill::textured(Ink::Caution, Texture::Hatched) };
const SILENT: Fill = Fill { opacity: 0.35, ..Fill::textured(Ink::Soft, Texture::Crossed) };
const FAILED: Fill = Fill::solid(Ink::Invalid);
const BACKLOG: Fill = Fill::faint(Ink::Series(3), 0.55);
const CHANGE: Stroke = Stroke { ink: Ink::Caution, width: 1.5, dash: &[8.0, 3.0, 2.0, 3.0] };

/// A run over time, and the axes that its charts share.
pub(crate) struct Course<'a> {
    summary: &'a Summary,
    pub(super) columns: Columns,
    /// In seconds from the beginning of the window.
    pub(super) span_s: (f64, f64),
    /// Of the cells of the heat map, in nanoseconds.
    edges: Vec<f64>,
}

impl<'a> Course<'a> {
    /// In at most so many columns; `None` of a run that sent nothing.
    pub(crate) fn of(summary: &'a Summary, columns_max: u64) -> Option<Self> {
        let columns = Columns::of(summary, columns_max);
        let is_any = columns.all().any(|column| column.activity.sent > 0);
        let edges = heat::edges(columns.all().map(|column| &column.response));
        is_any.then(|| Self { summary, span_s: columns.span_s(), columns, edges })
    }

    /// Gives several runs the same axes.
    pub(crate) fn align(courses: &mut [Self]) {
        let all = courses.iter().flat_map(|course| course.columns.all().map(|column| &column.response));
        let edges = heat::edges(all);
        let ends = courses.iter().map(|course| course.span_s);
        let span_s = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or((0.0, 1.0));
        for course in courses {
            (course.edges, course.span_s) = (edges.clone(), span_s);
        }
    }

    /// Does it have a response time?
    pub(crate) fn has_replies(&self) -> bool {
        self.columns.all().any(|column| column.response.count() > 0)
    }

    /// What the charts show, in words.
    pub(super) fn finding(&self) -> String {
        finding(self.summary, &self.columns)
    }

    /// Response times: the heat map, if it is wanted, with p50, p99 and maximum.
    pub(crate) fn latencies(&self, size: Size, has_heat: bool) -> Frame {
        latencies(self, size, has_heat)
    }

    /// What was offered, sent, done and failed per second.
    pub(crate) fn rates(&self, size: Size) -> Frame {
        rates(self, size)
    }

    /// Operations that were due and had not ended, where that is known.
    pub(super) fn in_system(&self) -> Option<Frame> {
        self.columns.all().all(|column| column.in_system.is_some()).then(|| in_system(self))
    }

    /// The legend of all three.
    pub(super) fn all_keys(&self) -> Vec<Key> {
        keys(self)
    }

    /// The legend of the first two.
    pub(crate) fn keys(&self, has_heat: bool) -> Vec<Key> {
        let mut keys = self.all_keys();
        keys.retain(|key| key.class != "system" && (has_heat || key.class != "heat"));
        keys
    }
}

/// What the charts show, in words: where the worst was, and what happened.
fn finding(summary: &Summary, columns: &Columns) -> String {
    let worst = columns.window.iter().filter(|column| column.max_ns().is_some());
    let worst = worst.max_by_key(|column| column.max_ns());
    let mut facts = vec![format!("{} done/s on average", rate(summary.total.rate.completed))];
    facts.extend(worst.and_then(|column| {
        let max = quantity::time(column.max_ns()?);
        Some(format!(
            "the longest response time, {max}, ended in the {} that begin at {:+.1} s",
            quantity::time((columns.width_s() * 1e9) as u64),
            column.start_s
        ))
    }));
    for outage in summary.outages.iter().take(3) {
        let name = server::name(summary, usize::from(outage.server));
        let length =
            outage.length_ns().map_or("until the end".to_owned(), |ns| format!("for {}", quantity::time(ns)));
        facts.push(format!(
            "{name} was down {length} from {:+.2} s on",
            in_window_ns(summary, outage.start_ns) as f64 / 1e9
        ));
    }
    facts.join("; ") + "."
}

fn keys(course: &Course<'_>) -> Vec<Key> {
    let (summary, columns) = (course.summary, &course.columns);
    let key = |name: &str, class, sample| Key { name: name.to_owned(), class, sample };
    let mut keys = Vec::new();
    if course.has_replies() {
        keys.extend([
            key(
                "share of a column's requests, light to dark",
                "heat",
                frame::area_sample(Fill::solid(Ink::Heat(4))),
            ),
            key("p50", "p50", frame::line_sample(P50)),
            key(&columns.tail().name(), "p99", frame::line_sample(P99)),
            key("maximum", "max", Shape::Dots { points: vec![Point { x: 13.0, y: 7.0 }], stroke: MAX }),
        ]);
    }
    if summary.record.plan.has_open_loop() {
        keys.push(key("offered/s", "offered", frame::line_sample(OFFERED)));
        keys.push(key("sent/s", "sent", frame::line_sample(SENT)));
    }
    keys.push(key("done/s", "done", frame::line_sample(DONE)));
    if columns.all().any(|column| column.activity.failed > 0) {
        keys.push(key("failed/s", "failed", frame::area_sample(FAILED)));
    }
    if columns.all().all(|column| column.in_system.is_some()) {
        keys.push(key("in the system", "system", frame::area_sample(BACKLOG)));
    }
    if !summary.outages.is_empty() {
        keys.push(key("outage", "outage", frame::area_sample(OUTAGE)));
    }
    if columns.window.iter().any(|column| is_silent(summary, column)) {
        keys.push(key("nothing done", "silent", frame::area_sample(SILENT)));
    }
    keys
}

/// Did nothing complete in a piece of the window?
fn is_silent(summary: &Summary, column: &Column) -> bool {
    column.start_s < summary.window.seconds() - 1e-9 && column.activity.completed == 0
}

pub(super) fn frame(course: &Course<'_>, title: &str, size: Size, y: (Values, &str)) -> Frame {
    let (low, high) = course.span_s;
    Frame::new(title, size, (Values::Time(low, high), ""), y)
}

/// Draws between the axes of a chart: what all have in common below, then its own.
pub(super) fn draw(course: &Course<'_>, mut frame: Frame, own: impl FnOnce(&mut Picture, &Frame)) -> Frame {
    let (summary, columns) = (course.summary, &course.columns);
    frame.draw(|picture, frame| {
        phases(picture, frame, summary, columns);
        own(picture, frame);
        events(picture, frame, summary);
    });
    frame
}

/// What lies between two instants, from the bottom to the top.
pub(super) fn strip(frame: &Frame, from_s: f64, to_s: f64) -> Area {
    let (from, to) = (frame.x.pixel(from_s), frame.x.pixel(to_s));
    Area { x: from, width: (to - from).max(1.0), ..frame.plot }
}

/// Warm-up and drain are grey; outages and silence lie behind the data.
fn phases(picture: &mut Picture, frame: &Frame, summary: &Summary, columns: &Columns) {
    let ((start_s, end_s), window_s) = (columns.span_s(), summary.window.seconds());
    for (from_s, to_s) in [(start_s, 0.0), (window_s, end_s)] {
        if to_s > from_s {
            picture.push(Shape::Rectangle { area: strip(frame, from_s, to_s), fill: OTHER_PHASE });
        }
    }
    picture.group("outage", |picture| {
        for area in outages(frame, summary) {
            picture.push(Shape::Rectangle { area, fill: OUTAGE });
        }
    });
    picture.group("silent", |picture| {
        let silent: Vec<&Column> =
            columns.window.iter().filter(|column| is_silent(summary, column)).collect();
        for run in silent.chunk_by(|one, next| (next.start_s - one.end_s).abs() < 1e-6) {
            let area = strip(frame, run[0].start_s, run[run.len() - 1].end_s);
            picture.push(Shape::Rectangle { area, fill: SILENT });
        }
    });
}

/// Where a server was down.
fn outages(frame: &Frame, summary: &Summary) -> Vec<Area> {
    let at = |ns: u64| in_window_ns(summary, ns) as f64 / 1e9;
    let end_ns = |outage: &Outage| outage.end_ns.unwrap_or(summary.window.drained_ns);
    let outages = summary.outages.iter();
    outages.map(|outage| strip(frame, at(outage.start_ns), at(end_ns(outage)))).collect()
}

/// The edges of outages, and where a level changed.
fn events(picture: &mut Picture, frame: &Frame, summary: &Summary) {
    picture.group("outage", |picture| {
        for area in outages(frame, summary) {
            let (left, right, top, bottom) = (area.x, area.right(), area.y, area.bottom());
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
            let points = corners.map(|(x, y)| Point { x, y }).to_vec();
            picture.push(Shape::Polyline { points, stroke: Stroke::solid(Ink::Caution, 1.5) });
        }
    });
    if let Some((_, at_s)) = change(summary) {
        let x = frame.x.pixel(at_s);
        picture.line(Point { x, y: frame.plot.y }, Point { x, y: frame.plot.bottom() }, CHANGE);
    }
}

/// The change of level that was found, with the series that shows it.
fn change(summary: &Summary) -> Option<(&'static str, f64)> {
    let change = summary.steady.change_point()?;
    let name = match change.series {
        LevelSeries::Median => "p50 changes",
        LevelSeries::HitRatio => "hit ratio changes",
    };
    Some((name, change.at_ns as f64 / 1e9))
}

/// Steps at the values of pieces of time; interrupted where there is none.
pub(super) fn steps(
    picture: &mut Picture,
    frame: &Frame,
    pieces: impl Iterator<Item = (f64, f64, Option<f64>)>,
    stroke: Stroke,
    is_cased: bool,
) {
    let pieces: Vec<(f64, f64, Option<f64>)> = pieces.collect();
    for run in pieces.chunk_by(|one, next| one.2.is_some() == next.2.is_some()) {
        let mut points: Vec<Point> = Vec::new();
        for (start_s, end_s, value) in run {
            let Some(value) = value else { continue };
            let (from, to) = (frame.at(*start_s, *value), frame.at(*end_s, *value));
            // Equal neighbours are one step.
            match points.last_mut() {
                Some(last) if (last.y - from.y).abs() < 0.005 => last.x = to.x,
                _ => points.extend([from, to]),
            }
        }
        if points.len() > 1 {
            if is_cased {
                let casing = Stroke::solid(Ink::Page, stroke.width + 2.0);
                picture.push(Shape::Polyline { points: points.clone(), stroke: casing });
            }
            picture.push(Shape::Polyline { points, stroke });
        }
    }
}

fn latencies(course: &Course<'_>, size: Size, has_heat: bool) -> Frame {
    let Course { summary, columns, edges, .. } = course;
    let range = (edges[0], edges[edges.len() - 1]);
    let title = "Response times over time: median, 99th percentile and maximum";
    let frame = frame(course, title, size, (Values::Latency(range.0, range.1), "response time"));
    let mut frame = draw(course, frame, |picture, frame| {
        picture.group("heat", |picture| {
            for part in [&columns.warmup, &columns.window].into_iter().filter(|_| has_heat) {
                if let (Some(first), Some(last)) = (part.first(), part.last()) {
                    picture.push(heat::shape(part, edges, strip(frame, first.start_s, last.end_s)));
                }
            }
        });
        picture.group("p50", |picture| {
            let value = |column: &Column| column.percentile_ns(Quantile::P50).map(|ns| ns as f64);
            let pieces = columns.all().map(|column| (column.start_s, column.end_s, value(column)));
            steps(picture, frame, pieces, P50, has_heat);
        });
        picture.group("p99", |picture| {
            let pieces = columns.tail().pieces.into_iter();
            let pieces = pieces.map(|(start_s, end_s, ns)| (start_s, end_s, ns.map(|ns| ns as f64)));
            steps(picture, frame, pieces, P99, has_heat);
        });
        picture.group("max", |picture| {
            let middle = |column: &Column| f64::midpoint(column.start_s, column.end_s);
            let points =
                columns.all().filter_map(|column| Some(frame.at(middle(column), column.max_ns()? as f64)));
            picture.push(Shape::Dots { points: points.collect(), stroke: MAX });
        });
    });
    notes(&mut frame, summary, columns);
    frame
}

/// The names of phases and of changes.
fn notes(frame: &mut Frame, summary: &Summary, columns: &Columns) {
    let top = frame.plot.y + NOTE_SIZE + 3.0;
    let ((start_s, end_s), window_s) = (columns.span_s(), summary.window.seconds());
    for (name, from_s, to_s) in [("warm-up", start_s, 0.0), ("drain", window_s, end_s)] {
        let (from, to) = (frame.x.pixel(from_s), frame.x.pixel(to_s));
        if to - from > text_width(name, NOTE_SIZE) + 6.0 {
            frame.note(Point { x: from + 3.0, y: top }, Anchor::Start, Ink::Soft, name.to_owned());
        }
    }
    for (index, (name, at_s)) in change(summary).into_iter().enumerate() {
        let at = Point { x: frame.x.pixel(at_s) + 6.0, y: top + 16.0 * index as f64 };
        frame.note(at, Anchor::Start, Ink::Caution, name.to_owned());
    }
}

fn rates(course: &Course<'_>, size: Size) -> Frame {
    let (summary, columns) = (course.summary, &course.columns);
    let is_open = summary.record.plan.has_open_loop();
    let most = columns.all().map(|column| {
        let activity = &column.activity;
        let offered = if is_open { activity.scheduled } else { 0 };
        column.per_second(activity.completed.max(activity.sent).max(offered))
    });
    let most = most.fold(1.0, f64::max) * 1.05;
    let title = "Operations per second over time: offered, sent, done and failed";
    let frame = frame(course, title, size, (Values::Number(most), "operations/s"));
    draw(course, frame, |picture, frame| {
        let mut line = |class, of: fn(&Column) -> u64, stroke| {
            picture.group(class, |picture| {
                let value = |column: &Column| Some(column.per_second(of(column)));
                let pieces = columns.all().map(|column| (column.start_s, column.end_s, value(column)));
                steps(picture, frame, pieces, stroke, false);
            });
        };
        if is_open {
            line("offered", |column| column.activity.scheduled, OFFERED);
            line("sent", |column| column.activity.sent, SENT);
        }
        line("done", |column| column.activity.completed, DONE);
        picture.group("failed", |picture| {
            for column in columns.all().filter(|column| column.activity.failed > 0) {
                let top =
                    frame.y.pixel(column.per_second(column.activity.failed)).min(frame.plot.bottom() - 2.0);
                let area = strip(frame, column.start_s, column.end_s);
                let area = Area { y: top, height: frame.plot.bottom() - top, ..area };
                picture.push(Shape::Rectangle { area, fill: FAILED });
            }
        });
    })
}

fn in_system(course: &Course<'_>) -> Frame {
    let columns = &course.columns;
    let y = system_axis(columns.all().filter_map(|column| column.in_system).collect());
    let title = "Operations that were due and had not ended, over time";
    let size = Size::page(SYSTEM_HEIGHT);
    let frame = frame(course, title, size, y);
    draw(course, frame, |picture, frame| {
        picture.group("system", |picture| {
            let mut points = vec![frame.at(columns.span_s().0, 0.0)];
            for column in columns.all() {
                let count = column.in_system.unwrap_or(0) as f64;
                let top = [frame.at(column.start_s, count), frame.at(column.end_s, count)];
                match points.last_mut() {
                    Some(last) if (last.y - top[0].y).abs() < 0.005 => last.x = top[1].x,
                    _ => points.extend(top),
                }
            }
            points.push(frame.at(columns.span_s().1, 0.0));
            picture.push(Shape::Polygon { points, fill: BACKLOG });
        });
    })
}

/// How many there are in each column decides how the axis spreads them.
fn system_axis(mut counts: Vec<u64>) -> (Values, &'static str) {
    counts.sort_unstable();
    let [median, most] = [counts.len() / 2, counts.len().saturating_sub(1)]
        .map(|place| counts.get(place).map_or(1.0, |count| (*count).max(1) as f64));
    match most > SYSTEM_RATIO * median {
        true => (Values::Ratio(most * 1.5), "in the system, log"),
        false => (Values::Number(most * 1.05), "in the system"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_leaves_the_usual_count_visible() {
        let table = [
            (vec![], "in the system"),
            (vec![0, 0, 0], "in the system"),
            (vec![3, 4, 400], "in the system"),
            (vec![3, 4, 401], "in the system, log"),
            (vec![0, 0, 0, 1_200], "in the system, log"),
            (vec![1_000, 2_000, 3_000], "in the system"),
        ];
        for (counts, expected) in table {
            assert_eq!(system_axis(counts.clone()).1, expected, "{counts:?}");
        }
    }
}
