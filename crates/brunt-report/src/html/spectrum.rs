//! The latency by percentile: how long the slowest half, tenth, hundredth of the requests took, and how well that is known.
//!
//! Invariant: the line ends with the last percentile that ten requests lie above; beyond it is only the maximum.

use super::frame::{self, Frame, Key, NOTE_SIZE, Size, Values};
use super::heat;
use super::markup::Markup;
use crate::grid::{Column, TimeTable, Value};
use crate::layout::Style;
use crate::quantity;
use crate::run_document::latency::rows;
use crate::run_document::latency::{is_unacknowledged, is_unbounded};
use brunt_picture::{Anchor, Fill, Ink, Point, Shape, Stroke, Texture, text_width};
use brunt_plan::objective::{Metric, Statistic};
use brunt_plan::quantile::Quantile;
use brunt_stats::batch::batches;
use brunt_stats::confidence::{PercentileInterval, intervals};
use brunt_stats::histogram::Histogram;
use brunt_stats::percentile_mark::PercentileMark;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;

pub(super) const HEIGHT: f64 = 330.0;
/// Points to a factor of ten of rarity.
const PER_DECADE: u32 = 12;
/// Operations that have a line of their own.
const OPS_MAX: usize = 4;
/// Fewer requests are no distribution.
const REQUESTS_MIN: u64 = 20;
/// Fewer are single requests more than a line.
const LINE_MIN: u64 = 100;

const RESPONSE: Stroke = Stroke::solid(Ink::Series(0), 2.0);
pub(super) const SERVICE: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
/// A note that takes more of the width, which one in a narrow figure would, is left out.
const NOTE_PART: f64 = 0.6;
/// Of a dot.
const DOT: f64 = 5.0;
const OP_DASHES: [&[f32]; OPS_MAX] = [&[2.0, 2.0], &[8.0, 3.0, 2.0, 3.0], &[1.0, 3.0], &[10.0, 4.0]];
const BAND: Fill = Fill::faint(Ink::Series(0), 0.18);
const CLIENT: Fill = Fill::textured(Ink::Soft, Texture::Hatched);

/// One percentile of all requests. Times in nanoseconds.
pub(super) struct Level {
    pub(super) quantile: Quantile,
    pub(super) response_ns: u64,
    pub(super) service_ns: Option<u64>,
    without_client_ns: Option<u64>,
    pub(super) interval: Option<PercentileInterval>,
}

/// The percentiles of a run.
pub(crate) struct Spectrum<'a> {
    pub(super) summary: &'a Summary,
    pub(super) levels: Vec<Level>,
    /// Where the axis ends: one request of all.
    pub(super) most: f64,
}

impl<'a> Spectrum<'a> {
    /// `None` of a run with too few replies for a distribution.
    pub(crate) fn of(summary: &'a Summary) -> Option<Self> {
        let count = summary.total.latency.response.summary.count;
        let is_known = count >= REQUESTS_MIN && !is_unacknowledged(&summary.total);
        is_known.then(|| Self { summary, levels: levels(summary), most: (count as f64).log10() })
    }

    /// Response and service time with interval and client error, and the operations.
    pub(crate) fn chart(&self, size: Size) -> Frame {
        frame(self, true, size)
    }

    /// The same without the service time.
    pub(crate) fn response(&self, size: Size) -> Frame {
        frame(self, false, size)
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        keys(self.summary)
    }
}

/// How rare what lies above a percentile is, as a decimal logarithm.
pub(crate) fn rarity(quantile: Quantile) -> f64 {
    -quantile.share_above().log10()
}

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    let Some(spectrum) = Spectrum::of(summary) else { return };
    markup.raw("<section id=\"spectrum\">\n<h2>Latency by percentile</h2>\n");
    let cursor = Some(("percentile", (0.0, spectrum.most)));
    frame::open_figure(markup, cursor, &finding(summary), spectrum.keys());
    frame::chart(markup, &spectrum.chart(Size::page(HEIGHT)));
    frame::close_figure(markup, |markup| table(markup, summary, &spectrum.levels));
    markup.raw("</section>\n");
}

/// The percentiles of the line.
fn levels(summary: &Summary) -> Vec<Level> {
    let latency = &summary.total.latency;
    let count = latency.response.summary.count;
    let mut quantiles: Vec<Quantile> = (0..=6 * PER_DECADE)
        .filter_map(|step| {
            let share_above = 10f64.powf(-f64::from(step) / f64::from(PER_DECADE));
            Quantile::from_millionths(1_000_000 - (share_above * 1e6).round() as u32)
        })
        .chain(summary.record.plan.quantiles())
        .filter(|quantile| quantile.is_supported_by(count))
        .collect();
    quantiles.sort_unstable();
    quantiles.dedup();
    let timeline = summary.record.run.intervals.timeline();
    let window = &summary.window;
    let batches = batches(timeline, window, window.measure_ns, |_, _| true);
    let known = if is_unbounded(summary) { Vec::new() } else { intervals(&batches, &quantiles) };
    let histograms = [&latency.response, &latency.service, &latency.without_client];
    let [response, service, without] = histograms.map(|held| held.histogram.ranks());
    let delay_ns = |quantile| summary.total.stack_delay.ns(Statistic::Percentile(quantile));
    quantiles
        .into_iter()
        .filter_map(|quantile| {
            Some(Level {
                quantile,
                response_ns: response.quantile(quantile)?,
                service_ns: service.quantile(quantile),
                without_client_ns: without.quantile(quantile).map(|ns| ns.saturating_sub(delay_ns(quantile))),
                interval: known.iter().find(|interval| interval.quantile == quantile).copied(),
            })
        })
        .collect()
}

/// What the chart shows, in words.
fn finding(summary: &Summary) -> String {
    let total = &summary.total;
    let response = &total.latency.response.summary;
    let strict = summary.status.judgement.is_strict;
    let mut shown = summary.record.plan.shown_quantiles().into_iter();
    let shown = shown.rfind(|quantile| total.mark(*quantile, strict) == PercentileMark::Quoted);
    let quantile = shown.unwrap_or(Quantile::P50);
    let mut facts = Vec::new();
    if let Some(value_ns) = response.percentile_ns(quantile) {
        let interval = total.intervals.iter().find(|held| held.quantile == quantile);
        let ends =
            interval.and_then(|held| Some((held.low_ns, held.high_ns?))).filter(|_| !is_unbounded(summary));
        let within = ends.map_or(String::new(), |(low_ns, high_ns)| {
            format!(" (95 % interval {} to {})", quantity::time(low_ns), quantity::time(high_ns))
        });
        facts.push(format!("Response time {quantile} {}{within}", quantity::time(value_ns)));
        let error = total.client_error.iter().find(|error| error.quantile == quantile);
        let basis = summary.client_basis().describe();
        facts.extend(error.map(|error| format!("{basis} {}", quantity::time(error.error_ns))));
    }
    facts.extend(response.max_ns.map(|ns| format!("maximum {}", quantity::time(ns))));
    facts.extend(needed(summary));
    facts.join(", ") + "."
}

/// What the first percentile that is not given lacks: `p99.99 needs 90000 more requests, 90.0 s at this rate`.
fn needed(summary: &Summary) -> Option<String> {
    let percentiles = &summary.total.latency.response.summary.percentiles;
    let next = percentiles.iter().find(|held| held.value_ns.is_none())?;
    let needed = format!("{} needs {} more requests", next.quantile, next.needs_more);
    let completed = summary.total.rate.completed;
    let ns = (next.needs_more as f64 / completed * 1e9) as u64;
    Some(if completed > 0.0 { format!("{needed}, {} at this rate", quantity::time(ns)) } else { needed })
}

fn keys(summary: &Summary) -> Vec<Key> {
    let key = |name: &str, class, sample| Key { name: name.to_owned(), class, sample };
    let mut keys = vec![
        key("response time", "response", frame::line_sample(RESPONSE)),
        key("95 % interval", "band", frame::area_sample(BAND)),
        key(summary.client_basis().describe(), "client", frame::area_sample(CLIENT)),
        key("service time", "service", frame::line_sample(SERVICE)),
    ];
    for (index, (name, _)) in op_lines(summary).into_iter().enumerate() {
        keys.push(Key { name, class: OP_CLASSES[index], sample: frame::line_sample(op_stroke(index)) });
    }
    keys
}

const OP_CLASSES: [&str; OPS_MAX] = ["op-0", "op-1", "op-2", "op-3"];

fn op_stroke(index: usize) -> Stroke {
    Stroke { ink: Ink::Series(2 + index % 3), width: 1.5, dash: OP_DASHES[index] }
}

/// The rows of single operations, where there are a few.
fn op_lines(summary: &Summary) -> Vec<(String, &Histogram)> {
    let rows: Vec<_> = rows(summary).into_iter().skip(1).filter(|row| !row.is_of_class()).collect();
    if rows.len() > OPS_MAX {
        return Vec::new();
    }
    rows.iter().map(|row| (row.name('.'), row.summary.latency.response.histogram.as_ref())).collect()
}

fn frame(spectrum: &Spectrum<'_>, has_service: bool, size: Size) -> Frame {
    let Spectrum { summary, levels, most } = spectrum;
    let most = *most;
    let latency = &summary.total.latency;
    let histograms = [&latency.response, &latency.service].map(|held| held.histogram.to_sparse());
    let edges = heat::edges(histograms.iter());
    let (low, high) = (edges[0], edges[edges.len() - 1]);
    let mut frame = axes(most, (low, high), if has_service { "latency" } else { "response time" }, size);
    let lines = op_lines(summary);
    let join = if latency.response.summary.count < LINE_MIN { dots } else { polyline };
    frame.draw(|picture, frame| {
        let at = |level: &Level, ns: u64| frame.at(rarity(level.quantile), ns as f64);
        invalid(picture, frame, summary);
        picture.group("band", |picture| band(picture, levels, &at, high, BAND));
        picture.group("client", |picture| {
            let upper = levels.iter().map(|level| at(level, level.response_ns));
            let lower = levels.iter().rev();
            let lower = lower.map(|level| at(level, level.without_client_ns.unwrap_or(level.response_ns)));
            let points: Vec<Point> = upper.chain(lower).collect();
            if points.len() > 2 {
                picture.push(Shape::Polygon { points, fill: CLIENT });
            }
        });
        for (index, (_, histogram)) in lines.iter().enumerate() {
            picture.group(OP_CLASSES[index], |picture| {
                let ranks = histogram.ranks();
                let given = levels.iter().filter(|level| level.quantile.is_supported_by(histogram.count()));
                let points = given.filter_map(|level| Some(at(level, ranks.quantile(level.quantile)?)));
                polyline(picture, points.collect(), op_stroke(index));
            });
        }
        picture.group("service", |picture| {
            let shown = levels.iter().filter(|_| has_service);
            let points = shown.filter_map(|level| Some(at(level, level.service_ns?))).collect();
            join(picture, points, SERVICE);
        });
        picture.group("response", |picture| {
            let points = levels.iter().map(|level| at(level, level.response_ns)).collect();
            join(picture, points, RESPONSE);
            maximum(picture, frame, summary, levels, most, RESPONSE.ink);
        });
    });
    notes(&mut frame, summary, most);
    frame
}

/// Axes for latencies in nanoseconds by percentile.
pub(crate) fn axes(most: f64, (low, high): (f64, f64), y_title: &str, size: Size) -> Frame {
    let title = "Latency by percentile, both axes logarithmic";
    let is_narrow = size.width < Size::page(0.0).width;
    let x_title = if is_narrow { "percentile" } else { "slowest requests towards the right" };
    let x = (Values::Percentile(most), x_title);
    Frame::new(title, size, x, (Values::Latency(low, high), y_title))
}

pub(super) fn polyline(picture: &mut brunt_picture::Picture, points: Vec<Point>, stroke: Stroke) {
    if points.len() > 1 {
        picture.push(Shape::Polyline { points, stroke });
    }
}

fn dots(picture: &mut brunt_picture::Picture, points: Vec<Point>, stroke: Stroke) {
    picture.push(Shape::Dots { points, stroke: Stroke { width: DOT, ..stroke } });
}

/// Around the line the interval of each percentile; without an upper end it reaches the top, and fades.
pub(super) fn band(
    picture: &mut brunt_picture::Picture,
    levels: &[Level],
    at: &dyn Fn(&Level, u64) -> Point,
    high: f64,
    closed: Fill,
) {
    let with: Vec<(&Level, &PercentileInterval)> =
        levels.iter().filter_map(|level| Some((level, level.interval.as_ref()?))).collect();
    let kind = |held: &PercentileInterval| held.high_ns.is_some();
    let mut before: Option<(&Level, &PercentileInterval)> = None;
    for alike in with.chunk_by(|one, next| kind(one.1) == kind(next.1)) {
        // Joined to the part before.
        let part: Vec<_> = before.into_iter().chain(alike.iter().copied()).collect();
        let upper = part.iter().map(|(level, held)| at(level, held.high_ns.unwrap_or(high as u64)));
        let lower = part.iter().map(|(level, held)| at(level, held.low_ns));
        let (upper, lower): (Vec<Point>, Vec<Point>) = (upper.collect(), lower.collect());
        let points: Vec<Point> = upper.iter().chain(lower.iter().rev()).copied().collect();
        let is_closed = kind(alike[0].1);
        if points.len() > 2 {
            let fill = if is_closed { closed } else { Fill { opacity: closed.opacity * 0.4, ..closed } };
            picture.push(Shape::Polygon { points, fill });
        }
        before = part.last().copied();
    }
}

/// The largest, at the right end, and the way to it from the last percentile.
pub(super) fn maximum(
    picture: &mut brunt_picture::Picture,
    frame: &Frame,
    summary: &Summary,
    levels: &[Level],
    most: f64,
    ink: Ink,
) {
    let Some(max_ns) = summary.total.latency.response.summary.max_ns else { return };
    let end = frame.at(most, max_ns as f64);
    if let Some(last) = levels.last() {
        let from = frame.at(rarity(last.quantile), last.response_ns as f64);
        picture.line(from, end, Stroke { ink, width: 1.0, dash: &[1.0, 3.0] });
    }
    let around = [(-7.0, 0.0), (0.0, -7.0), (7.0, 0.0), (0.0, 7.0)];
    let points = around.map(|(x, y)| Point { x: end.x - 7.0 + x, y: end.y + y });
    picture.push(Shape::Polygon { points: points.to_vec(), fill: Fill::solid(ink) });
}

/// Crosses out the whole chart of a run that is INVALID.
fn invalid(picture: &mut brunt_picture::Picture, frame: &Frame, summary: &Summary) {
    if summary.status.is_invalid() {
        picture.push(Shape::Rectangle {
            area: frame.plot,
            fill: Fill { opacity: 0.3, ..Fill::textured(Ink::Invalid, Texture::Crossed) },
        });
    }
}

fn notes(frame: &mut Frame, summary: &Summary, most: f64) {
    let plot = frame.plot;
    if let Some(max_ns) = summary.total.latency.response.summary.max_ns {
        let at = frame.at(most, max_ns as f64);
        let at = Point { x: at.x - 20.0, y: (at.y + 4.0).max(plot.y + 12.0) };
        frame.note(at, Anchor::End, Ink::Text, format!("max {}", quantity::time(max_ns)));
    }
    if summary.status.is_invalid() {
        let content = Status::Invalid.name().to_owned();
        let at = Point { x: plot.right() - 8.0, y: plot.bottom() - 10.0 };
        frame.note(at, Anchor::End, Ink::Invalid, content);
    } else if let Some(needed) =
        needed(summary).filter(|text| text_width(text, NOTE_SIZE) < plot.width * NOTE_PART)
    {
        let at = Point { x: plot.right() - 8.0, y: plot.bottom() - 10.0 };
        frame.note(at, Anchor::End, Ink::Soft, needed);
    }
    for assertion in &summary.assertions {
        let Metric::Response(Statistic::Percentile(quantile)) = assertion.objective.subject.metric else {
            continue;
        };
        let brunt_plan::objective::Bound::Time(bound) = assertion.objective.bound else { continue };
        let y = frame.y.pixel(bound.0 as f64).floor() + 0.5;
        let stroke = Stroke { ink: Ink::Caution, width: 1.0, dash: &[6.0, 3.0] };
        let x = frame.x.pixel(rarity(quantile));
        let reach = |x: f64| x.clamp(plot.x, plot.right());
        frame.picture.line(Point { x: reach(x - 60.0), y }, Point { x: reach(x + 60.0), y }, stroke);
        let at = Point { x: reach(x - 60.0), y: y - 5.0 };
        frame.note(at, Anchor::Start, Ink::Caution, assertion.objective.to_string());
    }
}

fn table(markup: &mut Markup, summary: &Summary, levels: &[Level]) {
    let times = Column::all_of_numbers(["response", "low", "high", "without client", "service"]);
    let first = Column::of_words("percentile", 0).with_unit(", ");
    let mut table = TimeTable::new([first].into_iter().chain(times).collect());
    for level in levels {
        let interval = level.interval.as_ref();
        let high = match interval {
            Some(PercentileInterval { high_ns: None, .. }) => Value::Open,
            held => Value::Time(held.and_then(|held| held.high_ns)),
        };
        let row = vec![
            Value::Text(level.quantile.to_string()),
            Value::Time(Some(level.response_ns)),
            Value::Time(interval.map(|held| held.low_ns)),
            high,
            Value::Time(level.without_client_ns),
            Value::Time(level.service_ns),
        ];
        table.push(Style::Plain, row);
    }
    let latency = &summary.total.latency;
    let most = [&latency.response, &latency.without_client, &latency.service].map(|held| held.summary.max_ns);
    let [response, without_client, service] = most.map(Value::Time);
    let (low, high) = (Value::Time(None), Value::Time(None));
    table.push(
        Style::Plain,
        vec![Value::Text("max".to_owned()), response, low, high, without_client, service],
    );
    let caption = "Latency of all requests by percentile, with 95 % intervals of the response time";
    markup.grid(caption, &table.grid(None), None);
}
