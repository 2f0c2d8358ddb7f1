//! How the response times of each operation are distributed, one below the other on one axis.

use super::frame::{self, Frame, Size, Values};
use super::heat;
use super::markup::Markup;
use crate::grid::{Column, TimeTable, Value};
use crate::layout::Style;
use crate::quantity;
use crate::run_document::latency::rows;
use brunt_picture::{Anchor, Fill, Ink, Point, Shape, Stroke};
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::Histogram;
use brunt_stats::summary::Summary;

/// Operations that are shown; the table has all.
const OPS_MAX: usize = 8;
const ROW_HEIGHT: f64 = 64.0;
/// Steps to a factor of ten.
const PER_DECADE: f64 = 24.0;
const AREA: Fill = Fill::faint(Ink::Series(0), 0.45);
const P50: Stroke = Stroke::solid(Ink::Text, 2.0);
const P99: Stroke = Stroke { ink: Ink::Series(1), width: 2.0, dash: &[6.0, 3.0] };

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    let mut lines: Vec<(String, &Histogram)> = Vec::new();
    for row in rows(summary).into_iter().skip(1).filter(|row| !row.is_of_class()) {
        lines.push((row.name('.'), row.summary.latency.response.histogram.as_ref()));
    }
    lines.retain(|(_, histogram)| histogram.count() > 0);
    lines.sort_by_key(|(_, histogram)| std::cmp::Reverse(histogram.count()));
    lines.truncate(OPS_MAX);
    if lines.len() < 2 {
        return;
    }
    markup.raw("<section id=\"operations\">\n<h2>Response times by operation</h2>\n<figure>");
    let facts = lines.iter().map(|(name, histogram)| {
        let p50 = quantity::time_or_dash(histogram.quantile(Quantile::P50));
        format!("{name}: p50 {p50}")
    });
    markup.element(
        "figcaption",
        &(facts.collect::<Vec<_>>().join(", ") + ". Every area has the same size; p99 is the dashed tick."),
    );
    frame::chart(markup, &chart(&lines));
    markup.raw("<details><summary>Numbers of this chart</summary>\n");
    let time = |histogram: &Histogram, quantile: Quantile| {
        quantile.is_supported_by(histogram.count()).then(|| histogram.quantile(quantile)).flatten()
    };
    let mut columns = vec![Column::of_words("operation", 0).with_unit(", ")];
    columns.extend(Column::all_of_numbers(["requests", "p50", "p99"]));
    let mut table = TimeTable::new(columns);
    for (name, histogram) in &lines {
        let times_ns = [Quantile::P50, Quantile::P99].map(|quantile| time(histogram, quantile));
        let head = [name.clone(), histogram.count().to_string()].map(Value::Text);
        table.push(Style::Plain, head.into_iter().chain(times_ns.map(Value::Time)).collect());
    }
    markup.grid("Response times by operation", &table.grid(None), None);
    markup.raw("</details>\n</figure>\n</section>\n");
}

fn chart(lines: &[(String, &Histogram)]) -> Frame {
    let sparse: Vec<_> = lines.iter().map(|(_, histogram)| histogram.to_sparse()).collect();
    let edges = heat::edges(sparse.iter());
    let (low, high) = (edges[0], edges[edges.len() - 1]);
    let height = ROW_HEIGHT * lines.len() as f64;
    let title = "Distribution of response times by operation";
    let mut frame = Frame::new(
        title,
        Size::page(height),
        (Values::Latency(low, high), "response time"),
        (Values::None, "share"),
    );
    let shapes: Vec<Vec<f64>> = lines.iter().map(|(_, histogram)| density(histogram, low, high)).collect();
    let most = shapes.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (index, ((name, histogram), density)) in lines.iter().zip(&shapes).enumerate() {
        let bottom = frame.plot.y + ROW_HEIGHT * (index + 1) as f64;
        let top = |part: f64| bottom - part / most * (ROW_HEIGHT - 14.0);
        let width = frame.plot.width / density.len() as f64;
        let mut points = vec![Point { x: frame.plot.x, y: bottom }];
        for (step, part) in density.iter().enumerate() {
            let x = frame.plot.x + width * step as f64;
            points.extend([Point { x, y: top(*part) }, Point { x: x + width, y: top(*part) }]);
        }
        points.push(Point { x: frame.plot.right(), y: bottom });
        frame.picture.push(Shape::Polygon { points, fill: AREA });
        for (quantile, stroke) in [(Quantile::P50, P50), (Quantile::P99, P99)] {
            let ns =
                quantile.is_supported_by(histogram.count()).then(|| histogram.quantile(quantile)).flatten();
            if let Some(ns) = ns {
                let x = frame.x.pixel(ns as f64);
                frame.picture.line(
                    Point { x, y: bottom - ROW_HEIGHT + 14.0 },
                    Point { x, y: bottom },
                    stroke,
                );
            }
        }
        let base = Stroke::solid(Ink::Axis, 1.0);
        let y = bottom.floor() + 0.5;
        frame.picture.line(Point { x: frame.plot.x, y }, Point { x: frame.plot.right(), y }, base);
        let at = Point { x: frame.plot.x - 8.0, y: bottom - 6.0 };
        let short: String = name.chars().take(8).collect();
        frame.note(at, Anchor::End, Ink::Text, short);
    }
    frame
}

/// The share of requests in steps of equal ratio.
fn density(histogram: &Histogram, low: f64, high: f64) -> Vec<f64> {
    let steps = ((high / low).log10() * PER_DECADE).ceil().max(1.0);
    let mut shares = vec![0.0; steps as usize];
    for count in heat::of_histogram(histogram) {
        let place = ((count.low * count.high).sqrt() / low).log10() / (high / low).log10() * steps;
        shares[(place.max(0.0) as usize).min(steps as usize - 1)] += count.count as f64;
    }
    let total = histogram.count().max(1) as f64;
    shares.iter().map(|share| share / total).collect()
}
