//! The runs of both sides of a comparison laid over each other: their percentiles, and their p99 in the order in which they were made.

use super::Comparison;
use crate::html::frame::{self, Frame, Key, Size, Values};
use crate::html::markup::{Heading, Markup};
use crate::html::spectrum::{axes, rarity};
use crate::layout::TimeUnit;
use crate::quantity;
use crate::result::RunResult;
use brunt_picture::{Point, Shape, Stroke};
use brunt_plan::quantile::Quantile;
use brunt_stats::median::median_of_sorted;

const HEIGHT: f64 = 260.0;
const ORDER_HEIGHT: f64 = 140.0;
/// More runs are not drawn one by one.
const LINES_MAX: usize = 24;
/// Of a dot.
const DOT: f64 = 7.0;
const SIDES: [&str; 2] = ["A", "B"];

/// Response times of a side at one percentile, in nanoseconds.
struct Level {
    quantile: Quantile,
    median: f64,
    ends: [f64; 2],
}

/// The percentiles that every run of a side has.
fn levels(runs: &[RunResult]) -> Vec<Level> {
    let level = |quantile: Quantile| {
        let mut values = runs.iter().map(|run| run.response(quantile)).collect::<Option<Vec<f64>>>()?;
        values.sort_unstable_by(f64::total_cmp);
        let ends = [*values.first()?, *values.last()?];
        Some(Level { quantile, median: median_of_sorted(&values)?, ends })
    };
    Quantile::PRINTED.into_iter().filter_map(level).collect()
}

/// The figure of the percentiles; nothing where a side has none.
pub(super) fn percentiles(markup: &mut Markup, comparison: &Comparison) {
    let sides = [&comparison.a, &comparison.b];
    let levels = sides.map(|runs| levels(runs));
    let all = || levels.iter().flatten();
    let (Some(most), false) =
        (all().map(|level| rarity(level.quantile)).reduce(f64::max), levels.iter().any(Vec::is_empty))
    else {
        return;
    };
    let (most, least) = (most + 0.2, all().map(|level| level.ends[0]).fold(f64::INFINITY, f64::min));
    let range = (least.max(1.0) * 0.8, all().map(|level| level.ends[1]).fold(1.0, f64::max) * 1.3);
    let mut chart = axes(most, range, "latency", Size::page(HEIGHT));
    chart.draw(|picture, frame| {
        for (index, runs) in sides.into_iter().enumerate() {
            let stroke = frame::result_stroke(index);
            let at = |quantile: Quantile, ns: f64| frame.at(rarity(quantile), ns);
            picture.group(frame::RESULT_CLASSES[index], |picture| {
                for run in runs.iter().take(LINES_MAX).filter(|_| runs.len() > 1) {
                    let given = Quantile::PRINTED.into_iter();
                    let points: Vec<Point> =
                        given.filter_map(|quantile| Some(at(quantile, run.response(quantile)?))).collect();
                    if points.len() > 1 {
                        picture.push(Shape::Polyline { points, stroke: Stroke { width: 0.75, ..stroke } });
                    }
                }
                let points: Vec<Point> =
                    levels[index].iter().map(|level| at(level.quantile, level.median)).collect();
                if points.len() > 1 {
                    picture.push(Shape::Polyline {
                        points: points.clone(),
                        stroke: Stroke { width: 2.5, ..stroke },
                    });
                }
                picture.push(Shape::Dots { points, stroke: Stroke { width: DOT, ..stroke } });
            });
        }
    });
    markup.raw("<section id=\"spectrum\">\n<h2>Latency by percentile</h2>\n");
    let finding = "Response times of all requests: the median of the runs of each side bold, each run thin.";
    frame::open_figure(markup, Some(("percentile", (0.0, most))), finding, keys());
    frame::chart(markup, &chart);
    frame::close_figure(markup, |markup| table(markup, &levels, least));
    markup.raw("</section>\n");
}

fn keys() -> Vec<Key> {
    let key = |index: usize| Key {
        name: SIDES[index].to_owned(),
        class: frame::RESULT_CLASSES[index],
        sample: frame::line_sample(frame::result_stroke(index)),
    };
    [0, 1].map(key).into()
}

fn table(markup: &mut Markup, levels: &[Vec<Level>; 2], least: f64) {
    let unit = TimeUnit::of_least(least as u64);
    let time = |ns: f64| quantity::significant(ns / unit.ns());
    let row = |quantile: Quantile| {
        let cells = levels.iter().flat_map(|side| {
            let level = side.iter().find(|level| level.quantile == quantile);
            let text = |of: fn(&Level) -> f64| level.map_or("-".to_owned(), |level| time(of(level)));
            [text(|level| level.median), text(|level| level.ends[0]), text(|level| level.ends[1])]
        });
        [quantile.to_string()].into_iter().chain(cells).collect::<Vec<String>>()
    };
    let is_given = |quantile: &Quantile| levels.iter().flatten().any(|level| level.quantile == *quantile);
    let rows: Vec<Vec<String>> = Quantile::PRINTED.into_iter().filter(is_given).map(row).collect();
    let names =
        SIDES.iter().flat_map(|side| ["", " least", " most"].map(|what| format!("{side}{what}/{unit}")));
    let names: Vec<String> = names.collect();
    let mut headings = vec![Heading::Words("percentile")];
    headings.extend(names.iter().map(|name| Heading::Number(name)));
    markup.table("Response time: median of the runs, the least and the most", &headings, &rows);
}

/// The figure of the p99 of every run; nothing with fewer than two runs on a side.
pub(super) fn order(markup: &mut Markup, comparison: &Comparison) {
    let sides = [&comparison.a, &comparison.b];
    let p99s = sides.map(|runs| {
        let of_run = |(number, run): (usize, &RunResult)| Some((number as f64, run.response(Quantile::P99)?));
        (1..).zip(runs).filter_map(of_run).collect::<Vec<(f64, f64)>>()
    });
    if p99s.iter().any(|side| side.len() < 2) {
        return;
    }
    let all = || p99s.iter().flatten();
    let least = all().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min).max(1.0);
    let high = all().map(|(_, ns)| *ns).fold(1.0, f64::max);
    let most = all().map(|(number, _)| *number).fold(1.0, f64::max) + 0.5;
    let y = (Values::Latency(least * 0.8, high * 1.3), "p99");
    let title = "p99 of every run in the order of the runs";
    let mut chart = Frame::new(title, Size::page(ORDER_HEIGHT), (Values::Count(most), "run of each side"), y);
    chart.draw(|picture, frame| {
        for (index, side) in p99s.iter().enumerate() {
            let stroke = frame::result_stroke(index);
            let points: Vec<Point> = side.iter().map(|(number, ns)| frame.at(*number, *ns)).collect();
            picture.group(frame::RESULT_CLASSES[index], |picture| {
                picture.push(Shape::Polyline {
                    points: points.clone(),
                    stroke: Stroke { width: 1.0, ..stroke },
                });
                picture.push(Shape::Dots { points, stroke: Stroke { width: DOT, ..stroke } });
            });
        }
    });
    markup.raw("<section id=\"order\">\n<h2>Run by run</h2>\n");
    let finding = "p99 of each run, from the first to the last: what drifts is no difference of the servers.";
    frame::open_figure(markup, Some(("number", (0.0, most))), finding, keys());
    frame::chart(markup, &chart);
    let unit = TimeUnit::of_least(least as u64);
    let runs = p99s.iter().map(Vec::len).max().unwrap_or(0);
    let row = |index: usize| {
        let number = (index + 1) as f64;
        let cells = p99s.iter().map(|side| {
            let held = side.iter().find(|(held, _)| *held == number);
            held.map_or("-".to_owned(), |(_, ns)| quantity::significant(ns / unit.ns()))
        });
        [(index + 1).to_string()].into_iter().chain(cells).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = (0..runs).map(row).collect();
    let names = SIDES.map(|side| format!("{side} p99/{unit}"));
    let headings = [Heading::Number("run"), Heading::Number(&names[0]), Heading::Number(&names[1])];
    frame::close_figure(markup, |markup| markup.table("p99 of every run", &headings, &rows));
    markup.raw("</section>\n");
}
