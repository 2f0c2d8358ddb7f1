//! The page of a comparison: what differs, as a forest of intervals around no change, and as a table.
//!
//! Invariant: it says what the text says; a change that is not decided is hollow.

use super::change_text::change_interval;
use super::details::{answer_facts, early_end, invalid_runs, plan_facts, shown, side_facts};
use super::text::{self, finding};
use super::{ComparedRow, Comparison, json, overlay};
use crate::html::conclusion::assertion_table;
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Frame, Key, NOTE_SIZE, Size, Values};
use crate::html::markup::{Heading, Markup};
use crate::html::{packed, plans};
use crate::layout::Layout;
use crate::text::head::Labelled;
use brunt_picture::{Anchor, Area, Fill, Ink, Point, Shape, Stroke, text_width};
use brunt_stats::rank_test::MARGIN;
use std::io::{self, Write};

const ROW_HEIGHT: f64 = 44.0;
/// Where the table has the change.
const CHANGE_COLUMN: usize = 4;
/// The axis shows no more than this, as a share.
const CHANGE_MAX: f64 = 3.0;
const INTERVAL: Stroke = Stroke::solid(Ink::Series(0), 2.0);
const DOT: Stroke = Stroke::solid(Ink::Series(0), 11.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 7.0);
const ZONE: Fill = Fill::faint(Ink::Soft, 0.16);

/// Writes the page.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let mut title: Vec<String> = early_end(comparison).into_iter().collect();
    title.extend(answer_facts(comparison));
    let title = title.join(" · ");
    let standing = if comparison.has_invalid() { Standing::Invalid } else { Standing::Neutral };
    let mut facts = comparison.head_facts();
    facts.extend(
        invalid_runs(comparison).into_iter().map(|(status, text)| (status.name().to_lowercase(), vec![text])),
    );
    document::header(&mut markup, standing, &title, &facts);
    markup.raw("<section>\n<h2>What changes from A to B</h2>\n");
    if let Some(forest) = comparison.forest(Size::page(0.0).width, ROW_HEIGHT) {
        let finding = "A quantity differs where its interval lies on one side of no change. A hollow dot is not decided.";
        frame::open_figure(&mut markup, None, finding, Comparison::forest_keys());
        frame::chart(&mut markup, &forest);
        markup.close("figure");
    }
    table(&mut markup, comparison);
    assertion_table(&mut markup, comparison.asserted.iter().map(super::AssertionRow::text));
    markup.raw("</section>\n");
    overlay::percentiles(&mut markup, comparison);
    overlay::order(&mut markup, comparison);
    let plans = [&comparison.a, &comparison.b].map(|runs| &runs[0].plan);
    plans::section(&mut markup, &["A".to_owned(), "B".to_owned()], &plans);
    let result = packed::packed(&serde_json::to_string(&json::value(comparison)?)?);
    document::write(&title, &title, &markup.into_text(), &result, out)
}

fn is_decided(held: &ComparedRow) -> bool {
    held.decided_change().is_some()
}

/// The rows that the forest shows.
fn forest_rows(comparison: &Comparison) -> Vec<&ComparedRow> {
    shown(comparison).filter(|held| held.test.change.is_some_and(f64::is_finite)).collect()
}

impl Comparison {
    /// The changes with their intervals around no change, as wide as this, and each row as high; `None` where there is none.
    pub(crate) fn forest(&self, width: f64, row_height: f64) -> Option<Frame> {
        let rows = forest_rows(self);
        (!rows.is_empty()).then(|| forest(&rows, width, row_height))
    }

    /// Who is compared, and what was not the same.
    pub(crate) fn head_facts(&self) -> Vec<Labelled> {
        let mut facts = vec![("A".to_owned(), side_facts(&self.a)), ("B".to_owned(), side_facts(&self.b))];
        facts.extend(plan_facts(self).into_iter().map(|(label, facts)| (label.to_owned(), facts)));
        facts
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
        let [low, high] = held.test.interval.unwrap_or_default();
        [low, high, held.test.change.unwrap_or(0.0)]
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
        if let Some([low, high]) = held.test.interval {
            frame.picture.line(
                Point { x: frame.x.pixel(low), y },
                Point { x: frame.x.pixel(high), y },
                INTERVAL,
            );
        }
        let at = Point { x: frame.x.pixel(held.test.change.unwrap_or(0.0)), y };
        frame.picture.push(Shape::Dots { points: vec![at], stroke: DOT });
        if !is_decided(held) {
            frame.picture.push(Shape::Dots { points: vec![at], stroke: HOLLOW });
        }
        let (name, interval) = label(held);
        let whole = format!("{name}{interval}");
        // The interval is drawn, too.
        let label = if text_width(&whole, NOTE_SIZE) < plot.width - 6.0 { whole } else { name };
        frame.note(Point { x: plot.x + 6.0, y: top + 12.0 }, Anchor::Start, Ink::Text, label);
    }
    frame
}

/// The quantity and what was found of it, and the interval, which may be longer than the axis.
fn label(held: &ComparedRow) -> (String, String) {
    let interval = held.test.interval.map(|ends| change_interval(held.quantity.scale(), ends));
    let interval = interval.map_or(String::new(), |interval| format!(" {interval}"));
    (format!("{}: {}", held.quantity.name(), finding(held).0), interval)
}

fn table(markup: &mut Markup, comparison: &Comparison) {
    let layout = Layout::default();
    let row = |held: &ComparedRow| {
        let mut row = text::row(held, &layout).to_vec();
        row.insert(CHANGE_COLUMN + 1, above(comparison, held));
        row.push(finding(held).0.to_owned());
        row
    };
    let rows: Vec<Vec<String>> = shown(comparison).map(row).collect();
    let numbers = ["A", "B", "change%", "B above A", "low", "high", "p"].map(Heading::Number);
    let headings =
        [&[Heading::Words("quantity"), Heading::Words("unit")][..], &numbers, &[Heading::Words("finding")]]
            .concat();
    markup.table("Medians of the runs of each side, and the change with its interval", &headings, &rows);
    markup.element(
        "p",
        "change%: the median over all pairs of runs, where it is decided or shown to be none. B above A: the share of these pairs in which B has \
         the larger number; half of it if they are equal.",
    );
}

/// In how many of all pairs of runs B is above A: an effect size that knows nothing of how far apart they are.
fn above(comparison: &Comparison, held: &ComparedRow) -> String {
    let values = [&comparison.a, &comparison.b]
        .map(|runs| runs.iter().filter_map(|run| held.quantity.of_run(run)).collect::<Vec<f64>>());
    let [a, b] = &values;
    let pairs = (a.len() * b.len()) as f64;
    if pairs < 2.0 {
        return "-".to_owned();
    }
    let wins = a.iter().flat_map(|a| {
        b.iter().map(move |b| {
            if b > a {
                1.0
            } else if b == a {
                0.5
            } else {
                0.0
            }
        })
    });
    format!("{:.0} %", wins.sum::<f64>() / pairs * 100.0)
}
