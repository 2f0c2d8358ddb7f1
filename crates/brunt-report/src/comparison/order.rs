//! The p99 of every run of a comparison in the order in which the runs were made: what drifts is no difference of the servers.

use super::Comparison;
use crate::html::frame::{self, Frame, Key, Size, Values};
use crate::html::markup::{Heading, Markup};
use crate::layout::TimeUnit;
use crate::quantity;
use brunt_picture::{Point, Shape, Stroke};
use brunt_plan::quantile::Quantile;

const HEIGHT: f64 = 140.0;
/// Of a dot.
const DOT: f64 = 7.0;
const SIDES: [&str; 2] = ["A", "B"];

/// The section; nothing with fewer than two runs on a side.
pub(super) fn section(markup: &mut Markup, comparison: &Comparison) {
    // In nanoseconds.
    let p99s = [&comparison.a, &comparison.b]
        .map(|runs| runs.iter().map(|run| run.response(Quantile::P99)).collect::<Vec<Option<f64>>>());
    let all = || p99s.iter().flatten().flatten().copied();
    if p99s.iter().any(|side| side.iter().flatten().count() < 2) {
        return;
    }
    let (least, high) = (all().fold(f64::INFINITY, f64::min).max(1.0), all().fold(1.0, f64::max));
    let runs = p99s.iter().map(Vec::len).max().unwrap_or(0);
    let most = runs as f64 + 0.5;
    let y = (Values::Latency(least * 0.8, high * 1.3), "p99");
    let title = "p99 of every run in the order of the runs";
    let mut chart = Frame::new(title, Size::page(HEIGHT), (Values::Count(most), "run of each side"), y);
    chart.draw(|picture, frame| {
        for (index, side) in p99s.iter().enumerate() {
            let stroke = Stroke { width: DOT, ..frame::result_stroke(index) };
            let numbered = (1..).zip(side);
            let points = numbered
                .filter_map(|(number, ns)| Some(frame.at(f64::from(number), (*ns)?)))
                .collect::<Vec<Point>>();
            picture
                .group(frame::RESULT_CLASSES[index], |picture| picture.push(Shape::Dots { points, stroke }));
        }
    });
    markup.raw("<section id=\"order\">\n<h2>Run by run</h2>\n");
    let finding = "p99 of each run, from the first to the last: what drifts is no difference of the servers.";
    let key = |index: usize| Key {
        name: SIDES[index].to_owned(),
        class: frame::RESULT_CLASSES[index],
        sample: frame::line_sample(frame::result_stroke(index)),
    };
    frame::open_figure(markup, Some(("number", (0.0, most))), finding, [0, 1].map(key).into());
    frame::chart(markup, &chart);
    let unit = TimeUnit::of_least(least as u64);
    let row = |index: usize| {
        let time = |ns: f64| quantity::significant(ns / unit.ns());
        let cell = |side: &Vec<Option<f64>>| side.get(index).copied().flatten().map_or("-".to_owned(), time);
        [(index + 1).to_string()].into_iter().chain(p99s.iter().map(cell)).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = (0..runs).map(row).collect();
    let names = SIDES.map(|side| format!("{side} p99,{unit}"));
    let headings = [Heading::Number("run"), Heading::Number(&names[0]), Heading::Number(&names[1])];
    frame::close_figure(markup, |markup| markup.table("p99 of every run", &headings, &rows));
    markup.raw("</section>\n");
}
