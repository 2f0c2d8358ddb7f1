//! The page of a comparison: what differs, as a forest of intervals around no change, and as a table.
//!
//! Invariant: it has the sentences and the table of the text; a change that is not decided is hollow.

use super::document::{answer, finding, grid, interval_text, runs_by_status, shown};
use super::{AssertionRow, ComparedRow, Comparison, json};
use crate::document::{Document, Level};
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Frame, Key, NOTE_SIZE, Size, Values};
use crate::html::markup::Markup;
use crate::html::several;
use crate::layout::Layout;
use crate::run_document::latency::times_table;
use brunt_picture::{Anchor, Area, Fill, Ink, Point, Shape, Stroke, text_width};
use brunt_plan::quantile::Quantile;
use brunt_stats::change::{Finding, MARGIN};
use std::io::{self, Write};

const ROW_HEIGHT: f64 = 44.0;
/// The axis shows no more than this, as a share.
const CHANGE_MAX: f64 = 3.0;
const INTERVAL: Stroke = Stroke::solid(Ink::Series(0), 2.0);
const DOT: Stroke = Stroke::solid(Ink::Series(0), 11.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 7.0);
const ZONE: Fill = Fill::faint(Ink::Soft, 0.16);

const ORDER_HEIGHT: f64 = 140.0;
const ORDER_DOT: f64 = 7.0;
const SIDES: [&str; 2] = ["A", "B"];

/// Writes the page.
pub(crate) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let title = answer(comparison).join(" · ");
    let standing = if comparison.has_conclusion() { Standing::Neutral } else { Standing::Invalid };
    let mut facts = comparison.head_facts();
    let runs = runs_by_status(comparison).into_iter();
    facts.extend(runs.map(|(status, text)| (status.name().to_owned(), vec![text])));
    document::header(&mut markup, standing, &title, &facts);
    markup.raw("<section>\n<h2>What changes from A to B</h2>\n");
    if let Some(forest) = comparison.forest(Size::page(0.0).width, ROW_HEIGHT) {
        let finding =
            "A dot is filled where the change is decided: B is slower or faster, or the same within 5 %.";
        frame::open_figure(&mut markup, None, finding, Comparison::forest_keys());
        frame::chart(&mut markup, &forest);
        markup.close("figure");
    }
    let layout = Layout::default();
    let caption = "Medians of the runs of each side, and the change with its interval";
    markup.grid(caption, &grid(comparison, &layout, Level::Long), None);
    let asserted = comparison.asserted.iter().map(AssertionRow::text);
    markup.document(&Document::of(|document| document.assertions(asserted)));
    markup.raw("</section>\n");
    order(&mut markup, comparison);
    let plans = [&comparison.a, &comparison.b].map(|runs| &runs[0].result.plan);
    several::plans(&mut markup, &SIDES.map(str::to_owned), &plans);
    let result = document::packed(&serde_json::to_string(&json::ComparisonTree::of(comparison))?);
    document::write(&title, &title, &markup.into_text(), &result, out)
}

impl Comparison {
    /// The changes with their intervals around no change, as wide as this, and each row as high; `None` where there is none.
    pub(crate) fn forest(&self, width: f64, row_height: f64) -> Option<Frame> {
        let rows: Vec<_> = shown(self, Level::Long).filter(|held| held.change.change.is_some()).collect();
        (!rows.is_empty()).then(|| forest(&rows, width, row_height))
    }

    /// Its legend.
    pub(crate) fn forest_keys() -> Vec<Key> {
        let key = |name: &str, sample| Key { name: name.to_owned(), class: "", sample };
        let middle = vec![Point { x: 13.0, y: 7.0 }];
        let ring = [DOT, HOLLOW].map(|stroke| Shape::Dots { points: middle.clone(), stroke });
        vec![
            key("interval of the change", frame::line_sample(INTERVAL)),
            key("not decided", Shape::Group { class: "", shapes: ring.to_vec() }),
            key("changes that matter little", frame::area_sample(ZONE)),
        ]
    }
}

fn forest(rows: &[&ComparedRow], width: f64, row_height: f64) -> Frame {
    let ends = rows.iter().flat_map(|held| {
        let [low, high] = held.change.interval.unwrap_or_default();
        [low, high, held.change.change.unwrap_or(0.0)]
    });
    let most =
        ends.filter(|end| end.is_finite()).map(f64::abs).fold(2.0 * MARGIN, f64::max).min(CHANGE_MAX) * 1.1;
    let size = Size { width, height: row_height * rows.len() as f64 };
    let title = "Change of each quantity from A to B, with its interval";
    let mut frame = Frame::new(title, size, (Values::Change(most), "change from A to B"), (Values::None, ""));
    let plot = frame.plot;
    let (from, to) = (frame.x.pixel(-MARGIN), frame.x.pixel(MARGIN));
    let area = Area { x: from, width: to - from, ..plot };
    frame.picture.push(Shape::Rectangle { area, fill: ZONE });
    let zero = frame.x.pixel(0.0).floor() + 0.5;
    frame.picture.line(
        Point { x: zero, y: plot.y },
        Point { x: zero, y: plot.bottom() },
        Stroke::solid(Ink::Axis, 1.5),
    );
    for (index, held) in rows.iter().enumerate() {
        let top = plot.y + row_height * index as f64;
        let y = top + 14.0 + (row_height - 14.0) * 0.5;
        if let Some([low, high]) = held.change.interval {
            frame.picture.line(
                Point { x: frame.x.pixel(low), y },
                Point { x: frame.x.pixel(high), y },
                INTERVAL,
            );
        }
        let at = Point { x: frame.x.pixel(held.change.change.unwrap_or(0.0)), y };
        frame.picture.push(Shape::Dots { points: vec![at], stroke: DOT });
        if matches!(held.change.finding, Some(Finding::Undecided) | None) {
            frame.picture.push(Shape::Dots { points: vec![at], stroke: HOLLOW });
        }
        let name = format!("{}: {}", held.quantity.name(), finding(held));
        let name = name.trim_end_matches(": ").to_owned();
        let whole = format!("{name}{}", interval_text(held));
        // The interval is drawn, too.
        let label = if text_width(&whole, NOTE_SIZE) < plot.width - 6.0 { whole } else { name };
        frame.note(Point { x: plot.x + 6.0, y: top + 12.0 }, Anchor::Start, Ink::Text, label);
    }
    frame
}

/// The p99 of every run in the order in which the runs were made: what drifts is no difference of the servers. Nothing with fewer than two
/// runs on a side.
fn order(markup: &mut Markup, comparison: &Comparison) {
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
    let mut chart = Frame::new(title, Size::page(ORDER_HEIGHT), (Values::Count(most), "run of each side"), y);
    chart.draw(|picture, frame| {
        for (index, side) in p99s.iter().enumerate() {
            let stroke = Stroke { width: ORDER_DOT, ..frame::result_stroke(index) };
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
    let cell = |side: &Vec<Option<f64>>, index: usize| {
        side.get(index).copied().flatten().map(|ns| ns.round() as u64)
    };
    let row = |index: usize| ((index + 1).to_string(), p99s.iter().map(|side| cell(side, index)).collect());
    let grid = times_table("run", &SIDES, (0..runs).map(row).collect(), &Layout::default());
    frame::close_figure(markup, |markup| markup.grid("p99 of every run", &grid, None));
    markup.raw("</section>\n");
}
