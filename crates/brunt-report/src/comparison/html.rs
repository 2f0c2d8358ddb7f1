//! The page of a comparison: what differs, as a forest of intervals around no change, and as a table.
//!
//! Invariant: it says what the text says; a change that is not decided is hollow.

use super::change_text::change_interval;
use super::details::{answer_facts, early_end, plan_facts, shown, side_facts, untrusted_runs};
use super::text::{self, finding};
use super::{ComparedRow, Comparison, json};
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Frame, Key, Values};
use crate::html::markup::{Heading, Markup};
use crate::html::packed;
use crate::layout::Layout;
use brunt_picture::{Anchor, Area, Fill, Ink, Point, Shape, Stroke};
use brunt_stats::rank_test::MARGIN;
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
    let mut title: Vec<String> = early_end(comparison).into_iter().collect();
    title.extend(answer_facts(comparison));
    let title = title.join(" · ");
    let standing = if comparison.has_untrusted() { Standing::Distrusted } else { Standing::Neutral };
    let mut facts =
        vec![("A".to_owned(), side_facts(&comparison.a)), ("B".to_owned(), side_facts(&comparison.b))];
    facts.extend(plan_facts(comparison).into_iter().map(|(label, facts)| (label.to_owned(), facts)));
    facts.extend(
        untrusted_runs(comparison)
            .into_iter()
            .map(|(status, text)| (status.name().to_lowercase(), vec![text])),
    );
    document::header(&mut markup, standing, &title, &facts);
    markup.raw("<section>\n<h2>What changes from A to B</h2>\n");
    let rows: Vec<&ComparedRow> =
        shown(comparison).filter(|held| held.test.change.is_some_and(f64::is_finite)).collect();
    if !rows.is_empty() {
        forest(&mut markup, &rows);
    }
    table(&mut markup, comparison);
    assertions(&mut markup, comparison);
    markup.raw("</section>\n");
    let result = packed::packed(&serde_json::to_string(&json::value(comparison)?)?);
    document::write(&title, &markup.into_text(), &result, out)
}

fn is_decided(held: &ComparedRow) -> bool {
    held.decided_change().is_some()
}

fn forest(markup: &mut Markup, rows: &[&ComparedRow]) {
    let ends = rows.iter().flat_map(|held| {
        [
            held.test.interval.map_or(0.0, |ends| ends[0]),
            held.test.interval.map_or(0.0, |ends| ends[1]),
            held.test.change.unwrap_or(0.0),
        ]
    });
    let most =
        ends.filter(|end| end.is_finite()).map(f64::abs).fold(2.0 * MARGIN, f64::max).min(CHANGE_MAX) * 1.1;
    let height = ROW_HEIGHT * rows.len() as f64;
    let title = "Change of each quantity from A to B, with its interval";
    let mut frame =
        Frame::new(title, height, (Values::Change(most), "change from A to B"), (Values::None, ""));
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
        let y = plot.y + ROW_HEIGHT * (index as f64 + 0.62);
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
        let name = Point { x: plot.x + 6.0, y: plot.y + ROW_HEIGHT * index as f64 + 14.0 };
        frame.note(name, Anchor::Start, Ink::Text, label(held));
    }
    let key = |name: &str, sample| Key { name: name.to_owned(), class: "", sample };
    let keys = vec![
        key("interval of the change", frame::line_sample(INTERVAL)),
        key("changes that matter little", frame::area_sample(ZONE)),
    ];
    let finding =
        "A quantity differs where its interval lies on one side of no change. A hollow dot is not decided.";
    frame::open_figure(markup, None, finding, keys);
    frame::chart(markup, &frame);
    markup.close("figure");
}

/// The quantity, what was found of it, and the interval, which may be longer than the axis.
fn label(held: &ComparedRow) -> String {
    let interval = held.test.interval.map(|ends| change_interval(held.quantity.scale(), ends));
    let interval = interval.map_or(String::new(), |interval| format!(" {interval}"));
    format!("{}: {}{interval}", held.quantity.name(), finding(held).0)
}

fn table(markup: &mut Markup, comparison: &Comparison) {
    let layout = Layout::default();
    let row = |held: &ComparedRow| [&text::row(held, &layout)[..], &[finding(held).0.to_owned()]].concat();
    let rows: Vec<Vec<String>> = shown(comparison).map(row).collect();
    let numbers = ["A", "B", "change%", "low", "high", "p"].map(Heading::Number);
    let headings =
        [&[Heading::Words("quantity"), Heading::Words("unit")][..], &numbers, &[Heading::Words("finding")]]
            .concat();
    markup.table("Medians of the runs of each side, and the change with its interval", &headings, &rows);
}

fn assertions(markup: &mut Markup, comparison: &Comparison) {
    let row = |held: &super::AssertionRow| {
        let measured = held.measured_text().unwrap_or_else(|| "not measured".to_owned());
        vec![held.requirement.to_string(), measured, held.outcome()]
    };
    let rows: Vec<Vec<String>> = comparison.asserted.iter().map(row).collect();
    let headings = ["assertion", "measured", "outcome"].map(Heading::Words);
    markup.table("Assertions", &headings, &rows);
}
