//! The page of a comparison: what differs, as a forest of intervals around no change, and as a table.
//!
//! Invariant: it has the sentences and the table of the text; a change that is not decided is hollow.

use super::text::{answer, finding, grid, interval_text, runs_by_status, shown};
use super::{ComparedRow, Comparison, json, order};
use crate::html::conclusion::assertion_table;
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Frame, Key, NOTE_SIZE, Size, Values};
use crate::html::markup::{Heading, Markup};
use crate::html::{packed, plans};
use crate::layout::Layout;
use brunt_picture::{Anchor, Area, Fill, Ink, Point, Shape, Stroke, text_width};
use brunt_stats::change::{Finding, MARGIN};
use std::io::{self, Write};

const ROW_HEIGHT: f64 = 44.0;
/// The axis shows no more than this, as a share.
const CHANGE_MAX: f64 = 3.0;
const INTERVAL: Stroke = Stroke::solid(Ink::Series(0), 2.0);
const DOT: Stroke = Stroke::solid(Ink::Series(0), 11.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 7.0);
const ZONE: Fill = Fill::faint(Ink::Soft, 0.16);

/// Writes the page.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
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
    table(&mut markup, comparison);
    assertion_table(&mut markup, comparison.asserted.iter().map(super::AssertionRow::text));
    markup.raw("</section>\n");
    order::section(&mut markup, comparison);
    let plans = [&comparison.a, &comparison.b].map(|runs| &runs[0].plan);
    plans::section(&mut markup, &["A".to_owned(), "B".to_owned()], &plans);
    let result = packed::packed(&serde_json::to_string(&json::value(comparison)?)?);
    document::write(&title, &title, &markup.into_text(), &result, out)
}

impl Comparison {
    /// The changes with their intervals around no change, as wide as this, and each row as high; `None` where there is none.
    pub(crate) fn forest(&self, width: f64, row_height: f64) -> Option<Frame> {
        let rows: Vec<_> = shown(self, true).filter(|held| held.change.change.is_some()).collect();
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

fn table(markup: &mut Markup, comparison: &Comparison) {
    let grid = grid(comparison, &Layout::default(), true);
    let names = grid.headings();
    let headings: Vec<Heading<'_>> = names
        .iter()
        .map(|(name, is_left)| if *is_left { Heading::Words(name) } else { Heading::Number(name) })
        .collect();
    markup.table(
        "Medians of the runs of each side, and the change with its interval",
        &headings,
        &grid.texts(),
    );
}
