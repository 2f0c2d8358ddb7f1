//! The latency by percentile: how long the slowest half, tenth, hundredth of the requests took, and how well that is known, of one result or
//! of several; and how response times of each operation are distributed.
//!
//! Invariant: a line ends with the last percentile that ten requests lie above; beyond it is only the maximum.

use super::chart::{
    Chart, Figure, LEAST, MOST, Mark, Note, Place, RESULT_CLASSES, Series, Values, result_stroke,
};
use super::over_time::{column_counts, edges};
use super::page::Markup;
use crate::grid::{Column, Grid, TimeTable, Value};
use crate::layout::{Layout, Style};
use crate::quantity;
use crate::run_document::latency::rows;
use crate::run_document::latency::{is_unacknowledged, is_unbounded, times_table};
use brunt_picture::{Anchor, Fill, Ink, Stroke, Texture};
use brunt_plan::objective::{Bound, Metric, Statistic};
use brunt_plan::quantile::Quantile;
use brunt_stats::confidence::batches;
use brunt_stats::confidence::{PercentileInterval, intervals};
use brunt_stats::histogram::{Histogram, SparseHistogram};
use brunt_stats::op_summary::PercentileMark;
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;

const HEIGHT: f64 = 330.0;
/// Points to a factor of ten of rarity.
const PER_DECADE: u32 = 12;
/// Fewer requests are no distribution.
const REQUESTS_MIN: u64 = 20;
/// Fewer are single requests more than a line.
const LINE_MIN: u64 = 100;
/// How far an objective reaches to either side of its percentile, as a part of the axis.
const OBJECTIVE_REACH: f64 = 0.07;

const SERVICE: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
/// Of a dot.
const DOT: f64 = 5.0;
const CLIENT: Fill = Fill::textured(Ink::Soft, Texture::Hatched);
const CROSSED_OUT: Fill = Fill { opacity: 0.3, ..Fill::textured(Ink::Invalid, Texture::Crossed) };
/// To the left of a place at the right end.
const RHOMBUS: [f64; 8] = [-14.0, 0.0, -7.0, -7.0, 0.0, 0.0, -7.0, 7.0];
/// Operations that have a line of their own.
const OPS_MAX: usize = 4;
const OP_CLASSES: [&str; OPS_MAX] = ["op-0", "op-1", "op-2", "op-3"];
const OP_DASHES: [&[f32]; OPS_MAX] = [&[2.0, 2.0], &[8.0, 3.0, 2.0, 3.0], &[1.0, 3.0], &[10.0, 4.0]];

/// One percentile of all requests. Times in nanoseconds.
struct Level {
    quantile: Quantile,
    response_ns: u64,
    service_ns: Option<u64>,
    without_client_ns: Option<u64>,
    interval: Option<PercentileInterval>,
}

impl Level {
    /// Where a time of this percentile lies.
    fn place(&self, ns: u64) -> Place {
        (rarity(self.quantile), ns as f64)
    }
}

/// The percentiles of a run.
pub(crate) struct Spectrum<'a> {
    /// Empty where it has a chart to itself.
    name: &'a str,
    summary: &'a Summary,
    levels: Vec<Level>,
    /// Where the axis ends: one request of all.
    most: f64,
}

/// How rare what lies above a percentile is, as a decimal logarithm.
fn rarity(quantile: Quantile) -> f64 {
    -quantile.share_above().log10()
}

impl<'a> Spectrum<'a> {
    /// `None` of a run with too few replies for a distribution.
    pub(crate) fn of(name: &'a str, summary: &'a Summary) -> Option<Self> {
        let count = summary.total.latency.response.summary.count;
        let is_known = count >= REQUESTS_MIN && !is_unacknowledged(&summary.total);
        is_known.then(|| Self { name, summary, levels: levels(summary), most: (count as f64).log10() })
    }

    fn max_ns(&self) -> Option<u64> {
        self.summary.total.latency.response.summary.max_ns
    }

    /// Few requests are dots, which nothing joins.
    fn join(&self, places: impl Iterator<Item = Place>, stroke: Stroke) -> Mark {
        match self.summary.total.latency.response.summary.count < LINE_MIN {
            true => Mark::Dots(places.collect(), Stroke { width: DOT, ..stroke }),
            false => Mark::Line(places.collect(), stroke),
        }
    }

    /// Around the line the interval of each percentile; without an upper end it reaches the top, and fades.
    fn band(&self, opacity: f64, ink: Ink) -> Vec<Mark> {
        let with: Vec<(&Level, &PercentileInterval)> =
            self.levels.iter().filter_map(|level| Some((level, level.interval.as_ref()?))).collect();
        let kind = |held: &PercentileInterval| held.high_ns.is_some();
        let (mut before, mut marks) = (None, Vec::new());
        for alike in with.chunk_by(|one, next| kind(one.1) == kind(next.1)) {
            // Joined to the part before.
            let part: Vec<_> = before.into_iter().chain(alike.iter().copied()).collect();
            let upper = part.iter().map(|(level, held)| match held.high_ns {
                Some(high_ns) => level.place(high_ns),
                None => (rarity(level.quantile), MOST),
            });
            let lower = part.iter().rev().map(|(level, held)| level.place(held.low_ns));
            let opacity = if kind(alike[0].1) { opacity } else { opacity * 0.4 };
            if part.len() > 1 {
                marks.push(Mark::Area(upper.chain(lower).collect(), Fill::faint(ink, opacity)));
            }
            before = part.last().copied();
        }
        marks
    }

    /// The response times, then the largest, at the right end, and the way to it from the last percentile.
    fn response(&self, stroke: Stroke) -> Vec<Mark> {
        let mut marks =
            vec![self.join(self.levels.iter().map(|level| level.place(level.response_ns)), stroke)];
        let end = self.max_ns().map(|max_ns| (self.most, max_ns as f64));
        marks.extend(end.zip(self.levels.last()).map(|(end, last)| {
            Mark::Line(
                vec![last.place(last.response_ns), end],
                Stroke { width: 1.0, dash: &[1.0, 3.0], ..stroke },
            )
        }));
        marks.extend(end.map(|end| Mark::Symbol(end, &RHOMBUS, Fill::solid(stroke.ink))));
        marks
    }

    fn service(&self, stroke: Stroke) -> Vec<Mark> {
        let places = self.levels.iter().filter_map(|level| Some(level.place(level.service_ns?)));
        vec![self.join(places, stroke)]
    }

    /// What lies below the lines in the chart of a single run.
    fn background(&self) -> Vec<Series> {
        let (summary, levels) = (self.summary, &self.levels);
        let upper = levels.iter().map(|level| level.place(level.response_ns));
        let lower = levels.iter().rev();
        let lower = lower.map(|level| level.place(level.without_client_ns.unwrap_or(level.response_ns)));
        let client = vec![Mark::Area(upper.chain(lower).collect(), CLIENT)];
        let mut background = vec![
            self.crossed_out(),
            Series::new("band", "95 % interval", self.band(0.18, Ink::Series(0))),
            Series::new("client", summary.client_basis().describe(), client),
        ];
        let ops = ops(summary);
        // Only where there are a few.
        let shown = if ops.len() > OPS_MAX { 0 } else { ops.len() };
        for (index, (name, histogram)) in ops.into_iter().take(shown).enumerate() {
            let given = levels.iter().filter(|level| level.quantile.is_supported_by(histogram.count()));
            let places = given.filter_map(|level| Some(level.place(histogram.quantile(level.quantile)?)));
            let stroke = Stroke { ink: Ink::Series(2 + index % 3), width: 1.5, dash: OP_DASHES[index] };
            background.push(Series::new(OP_CLASSES[index], name, vec![Mark::Line(places.collect(), stroke)]));
        }
        background
    }

    /// Over the whole chart of a run of which nothing may be quoted.
    fn crossed_out(&self) -> Series {
        let mark = self.summary.status.is_invalid().then_some(Mark::Bar(0.0, MOST, MOST, CROSSED_OUT));
        Series::new("", "", mark.into_iter().collect())
    }

    /// In the lower right corner that it is so, or else this.
    fn corner(&self, otherwise: Option<String>) -> Option<Note> {
        let (ink, text) = match self.summary.status.is_invalid() {
            true => (Ink::Invalid, Status::Invalid.name().to_owned()),
            false => (Ink::Soft, otherwise?),
        };
        Some(Note::new((MOST, LEAST), (-8.0, -10.0), Anchor::End, ink, text))
    }

    fn notes(&self) -> Vec<Note> {
        let max = self.max_ns().map(|max_ns| {
            let text = format!("max {}", quantity::time(max_ns));
            Note::new((self.most, max_ns as f64), (-20.0, 4.0), Anchor::End, Ink::Text, text)
        });
        max.into_iter().chain(self.corner(needed(self.summary))).collect()
    }
}

/// The one that has a chart to itself; one whose neighbours have too few replies keeps its name.
fn alone<'s, 'a>(spectra: &'s [Spectrum<'a>]) -> Option<&'s Spectrum<'a>> {
    spectra.first().filter(|first| first.name.is_empty())
}

/// Assertions about response times, each a line around its percentile.
fn objectives(chart: &mut Chart, spectrum: &Spectrum<'_>) {
    let reach = spectrum.most * OBJECTIVE_REACH;
    for objective in spectrum.summary.assertions.iter().map(|assertion| assertion.objective) {
        if let (Metric::Response(Statistic::Percentile(quantile)), Bound::Time(bound)) =
            (objective.subject.metric, objective.bound)
        {
            let ends = [-reach, reach].map(|reach| (rarity(quantile) + reach).clamp(0.0, spectrum.most));
            chart.objective(ends.into(), bound.0 as f64, objective.to_string());
        }
    }
}

/// Draws the response times of each with its interval; of one also the client error, its operations, and its service times, unless these have a
/// chart of their own.
pub(crate) fn chart(spectra: &[Spectrum<'_>], has_service: bool) -> Chart {
    let alone = alone(spectra);
    let y_title = if has_service && alone.is_some() { "latency" } else { "response time" };
    let mut chart = axes(spectra, y_title);
    if let Some(one) = alone {
        chart.background = one.background();
        chart.push("service", "service time", if has_service { one.service(SERVICE) } else { Vec::new() });
        chart.push("response", "response time", one.response(result_stroke(0)));
        chart.notes = one.notes();
        objectives(&mut chart, one);
        return chart;
    }
    for (index, spectrum) in spectra.iter().enumerate() {
        let stroke = result_stroke(index);
        let class = RESULT_CLASSES[index];
        chart.background.push(Series::new(class, "", spectrum.band(0.14, stroke.ink)));
        chart.push(class, spectrum.name, spectrum.response(stroke));
    }
    let sample = Mark::Area(Vec::new(), Fill::faint(Ink::Series(0), 0.14));
    chart.background.push(Series::new("", "95 % interval", vec![sample]));
    chart
}

/// Draws the service times of each, on axes like those of the response times.
pub(crate) fn service_chart(spectra: &[Spectrum<'_>]) -> Chart {
    let mut chart = axes(spectra, "service time");
    if let Some(one) = alone(spectra) {
        chart.background = vec![one.crossed_out()];
        chart.notes = one.corner(None).into_iter().collect();
    }
    for (index, spectrum) in spectra.iter().enumerate() {
        let stroke = if alone(spectra).is_some() { SERVICE } else { result_stroke(index) };
        chart.push("service", "", spectrum.service(stroke));
    }
    chart
}

/// Axes for latencies in nanoseconds by percentile.
fn axes(spectra: &[Spectrum<'_>], y_title: &'static str) -> Chart {
    let latencies = spectra.iter().map(|held| &held.summary.total.latency);
    let histograms = latencies.flat_map(|latency| [&latency.response, &latency.service]);
    let histograms: Vec<_> = histograms.map(|held| held.histogram.to_sparse()).collect();
    let edges = edges(&histograms);
    let x = (Values::Percentile(most(spectra)), "slowest requests towards the right");
    let y = (Values::Latency(edges[0], edges[edges.len() - 1]), y_title);
    Chart::new("Latency by percentile, both axes logarithmic", x, y, HEIGHT)
}

/// The end of an axis for all of them.
fn most(spectra: &[Spectrum<'_>]) -> f64 {
    spectra.iter().map(|held| held.most).fold(1.0, f64::max)
}

/// The section of one or several runs; nothing of runs with too few replies.
pub(super) fn section(markup: &mut Markup, runs: &[(&str, &Summary)]) {
    let spectra: Vec<Spectrum<'_>> = runs.iter().filter_map(|(name, run)| Spectrum::of(name, run)).collect();
    if spectra.is_empty() {
        return;
    }
    let (finding, table) = match alone(&spectra) {
        Some(one) => (finding(one.summary), table(one)),
        None => {
            let finding = "Response time of all requests; the band of each is its 95 % interval, its rhombus the maximum.";
            (finding.to_owned(), table_of_several(&spectra))
        }
    };
    let cursor = Some(("percentile", (0.0, most(&spectra))));
    let figure = Figure { cursor, table: Some(table), ..Figure::of(finding, chart(&spectra, true)) };
    markup.section("spectrum", "Latency by percentile", |markup| figure.write(markup));
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
    let [response, service, without] = histograms.map(|held| &held.histogram);
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

/// Every operation by its name.
fn ops(summary: &Summary) -> Vec<(String, &Histogram)> {
    let rows = rows(summary).into_iter().skip(1).filter(|row| !row.is_of_class());
    rows.map(|row| (row.name('.'), row.summary.latency.response.histogram.as_ref())).collect()
}

fn table(Spectrum { summary, levels, .. }: &Spectrum<'_>) -> (String, Grid) {
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
    (caption.to_owned(), table.grid(None))
}

/// A column for each result.
fn table_of_several(spectra: &[Spectrum<'_>]) -> (String, Grid) {
    let levels = spectra.iter().flat_map(|held| &held.levels);
    let mut quantiles: Vec<Quantile> = levels.map(|level| level.quantile).collect();
    quantiles.sort_unstable();
    quantiles.dedup();
    let value = |held: &Spectrum<'_>, quantile: Quantile| {
        held.levels.iter().find(|level| level.quantile == quantile).map(|level| level.response_ns)
    };
    let row = |quantile: &Quantile| {
        (quantile.to_string(), spectra.iter().map(|held| value(held, *quantile)).collect())
    };
    let names: Vec<&str> = spectra.iter().map(|held| held.name).collect();
    let grid = times_table("percentile", &names, quantiles.iter().map(row).collect(), &Layout::default());
    ("Response time by percentile".to_owned(), grid)
}

// ---- response times by operation -----------------------------------------------------------------------------------------

/// Operations whose distributions are shown; the table has all.
const DISTRIBUTIONS_MAX: usize = 8;
const ROW_HEIGHT: f64 = 64.0;
/// Of a row, what its shape takes.
const SHAPE: f64 = 0.78;
/// Steps to a factor of ten.
const STEPS_PER_DECADE: f64 = 24.0;
const AREA: Fill = Fill::faint(Ink::Series(0), 0.45);
const P50: Stroke = Stroke::solid(Ink::Text, 2.0);
const P99: Stroke = Stroke { ink: Ink::Series(1), width: 2.0, dash: &[6.0, 3.0] };
const BASE: Stroke = Stroke::solid(Ink::Axis, 1.0);

/// The distributions of response times, one below the other on one axis, where there are several operations.
pub(super) fn by_op(markup: &mut Markup, summary: &Summary) {
    let lines = ops(summary).into_iter().map(|(name, histogram)| (name, histogram.to_sparse()));
    let mut lines: Vec<(String, SparseHistogram)> = lines.collect();
    lines.retain(|(_, histogram)| histogram.count() > 0);
    lines.sort_by_key(|(_, histogram)| std::cmp::Reverse(histogram.count()));
    lines.truncate(DISTRIBUTIONS_MAX);
    if lines.len() < 2 {
        return;
    }
    let fact = |(name, histogram): &(String, SparseHistogram)| {
        format!("{name}: p50 {}", quantity::time_or_dash(histogram.quantile(Quantile::P50)))
    };
    let facts = lines.iter().map(fact).collect::<Vec<_>>().join(", ");
    let mut columns = vec![Column::of_words("operation", 0).with_unit(", ")];
    columns.extend(Column::all_of_numbers(["requests", "p50", "p99"]));
    let mut table = TimeTable::new(columns);
    for (name, histogram) in &lines {
        let times_ns = [Quantile::P50, Quantile::P99].map(|quantile| histogram.percentile(quantile));
        let head = [name.clone(), histogram.count().to_string()].map(Value::Text);
        table.push(Style::Plain, head.into_iter().chain(times_ns.map(Value::Time)).collect());
    }
    let finding = format!("{facts}. Every area has the same size; p99 is the dashed tick.");
    let table = Some(("Response times by operation".to_owned(), table.grid(None)));
    let figure = Figure { table, ..Figure::of(finding, distributions(&lines)) };
    markup.section("operations", "Response times by operation", |markup| figure.write(markup));
}

fn distributions(lines: &[(String, SparseHistogram)]) -> Chart {
    let edges = edges(lines.iter().map(|(_, histogram)| histogram));
    let (low, high) = (edges[0], edges[edges.len() - 1]);
    let title = "Distribution of response times by operation";
    let x = (Values::Latency(low, high), "response time");
    let height = ROW_HEIGHT * lines.len() as f64;
    let mut chart = Chart::new(title, x, (Values::Rows(lines.len()), "share"), height);
    let shapes: Vec<Vec<f64>> = lines.iter().map(|(_, histogram)| density(histogram, low, high)).collect();
    let most = shapes.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (index, ((name, histogram), density)) in lines.iter().zip(&shapes).enumerate() {
        let bottom = (lines.len() - 1 - index) as f64;
        let edge = |step: usize| low * (high / low).powf(step as f64 / density.len() as f64);
        let tops = density
            .iter()
            .enumerate()
            .flat_map(|(step, part)| [step, step + 1].map(|step| (edge(step), bottom + part / most * SHAPE)));
        let ends = [(low, bottom), (high, bottom)];
        let mut marks = vec![Mark::Area([ends[0]].into_iter().chain(tops).chain([ends[1]]).collect(), AREA)];
        for (quantile, stroke) in [(Quantile::P50, P50), (Quantile::P99, P99)] {
            let ns = histogram.percentile(quantile).map(|ns| ns as f64);
            marks.extend(ns.map(|ns| Mark::Line(vec![(ns, bottom + SHAPE), (ns, bottom)], stroke)));
        }
        marks.push(Mark::Line(ends.to_vec(), BASE));
        chart.push("", "", marks);
        let short: String = name.chars().take(8).collect();
        chart.notes.push(Note::new((LEAST, bottom), (-8.0, -6.0), Anchor::End, Ink::Text, short));
    }
    chart
}

/// The share of requests in steps of equal ratio.
fn density(histogram: &SparseHistogram, low: f64, high: f64) -> Vec<f64> {
    let steps = ((high / low).log10() * STEPS_PER_DECADE).ceil().max(1.0);
    let mut shares = vec![0.0; steps as usize];
    for count in column_counts(histogram.buckets()) {
        let place = ((count.low * count.high).sqrt() / low).log10() / (high / low).log10() * steps;
        shares[(place.max(0.0) as usize).min(steps as usize - 1)] += count.count as f64;
    }
    let total = histogram.count().max(1) as f64;
    shares.iter().map(|share| share / total).collect()
}
