//! The page of a comparison: what differs, as a forest of intervals around no change, and as a table.
//!
//! Invariant: it has the sentences and the table of the text; a change that is not decided is hollow.

use super::document::{CHANGE, answer, finding, grid, interval_text, runs_by_status, shown};
use super::{AssertionRow, ComparedRow, Comparison, json};
use crate::document::{Document, Level};
use crate::html::chart::{
    Chart, Figure, LEAST, MOST, Mark, Note, Place, RESULT_CLASSES, Series, Values, result_stroke,
};
use crate::html::page::{self, Markup, Page};
use crate::html::several;
use crate::layout::Layout;
use crate::run_document::latency::times_table;
use brunt_picture::{Anchor, Fill, Ink, Stroke};
use brunt_plan::quantile::Quantile;
use brunt_stats::change::{Finding, MARGIN};
use brunt_stats::status::Status;
use std::io::{self, Write};

const ROW_HEIGHT: f64 = 44.0;
/// Where in its row an interval lies, from the top; its name stands above it.
const ROW_MIDDLE: f64 = 0.68;
/// The axis shows no more than this, as a share.
const CHANGE_MAX: f64 = 3.0;
const INTERVAL: Stroke = Stroke::solid(Ink::Series(0), 2.0);
const DOT: Stroke = Stroke::solid(Ink::Series(0), 11.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 7.0);
const ZONE: Fill = Fill::faint(Ink::Soft, 0.16);
const NO_CHANGE: Stroke = Stroke::solid(Ink::Axis, 1.5);

const ORDER_HEIGHT: f64 = 140.0;
const ORDER_DOT: f64 = 7.0;
const SIDES: [&str; 2] = ["A", "B"];

/// Writes the page.
pub(crate) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let title = answer(comparison).join(" · ");
    let status = (!comparison.has_conclusion()).then_some(Status::Invalid);
    let mut facts = comparison.head_facts();
    let runs = runs_by_status(comparison).into_iter();
    facts.extend(runs.map(|(status, text)| (status.name().to_owned(), vec![text])));
    page::header(&mut markup, status, &title, &facts);
    markup.section("changes", "What changes from A to B", |markup| {
        if let Some(forest) = comparison.forest() {
            let finding =
                "A dot is filled where the change is decided: B is slower or faster, or the same within 5 %.";
            Figure::of(finding, forest).write(markup);
        }
        markup.grid(&format!("change%: {CHANGE}"), &grid(comparison, &Layout::default(), Level::Long), None);
        let asserted = comparison.asserted.iter().map(AssertionRow::text);
        markup.document(&Document::of(|document| document.assertions(asserted)));
    });
    order(&mut markup, comparison);
    let sides = SIDES.iter().zip([&comparison.a, &comparison.b]);
    let plans = sides.map(|(name, runs)| ((*name).to_owned(), runs[0].result.plan.clone()));
    several::plans(&mut markup, &plans.collect::<Vec<_>>());
    let result = page::packed(&json::ComparisonTree::of(comparison))?;
    let (foot, sections) = (title.clone(), markup.into_text());
    Page { title, foot, sections, result, is_live: false }.write(out)
}

impl Comparison {
    /// The changes with their intervals around no change; `None` where there is none.
    pub(crate) fn forest(&self) -> Option<Chart> {
        let rows: Vec<_> = shown(self, Level::Long).filter(|held| held.change.change.is_some()).collect();
        (!rows.is_empty()).then(|| forest(&rows))
    }
}

fn forest(rows: &[&ComparedRow]) -> Chart {
    let value = |held: &ComparedRow| held.change.change.unwrap_or(0.0);
    let ends = rows.iter().flat_map(|held| {
        let [low, high] = held.change.interval.unwrap_or_default();
        [low, high, value(held)]
    });
    let most =
        ends.filter(|end| end.is_finite()).map(f64::abs).fold(2.0 * MARGIN, f64::max).min(CHANGE_MAX) * 1.1;
    let title = "Change of each quantity from A to B, with its interval";
    let (x, y) = ((Values::Change(most), "change from A to B"), (Values::Rows(rows.len()), ""));
    let mut chart = Chart::new(title, x, y, ROW_HEIGHT * rows.len() as f64);
    let zone = vec![Mark::Bar(-MARGIN, MARGIN, MOST, ZONE)];
    chart.background = vec![Series::new("", "changes that matter little", zone)];
    chart.push("", "", vec![Mark::Line(vec![(0.0, LEAST), (0.0, MOST)], NO_CHANGE)]);
    let (mut intervals, mut decided, mut undecided) = (Vec::new(), Vec::new(), Vec::new());
    for (index, held) in rows.iter().enumerate() {
        let top = (rows.len() - index) as f64;
        let y = top - ROW_MIDDLE;
        let interval = held.change.interval.map(|ends| ends.map(|end| (end, y)).to_vec());
        intervals.extend(interval.map(|ends| Mark::Line(ends, INTERVAL)));
        let is_open = matches!(held.change.finding, Some(Finding::Undecided) | None);
        if is_open { &mut undecided } else { &mut decided }.push((value(held), y));
        let name = format!("{}: {}", held.quantity.name(), finding(held));
        let name = name.trim_end_matches(": ").to_owned();
        // The interval is drawn, too.
        let texts = vec![format!("{name}{}", interval_text(held)), name];
        chart
            .notes
            .push(Note { texts, ..Note::new((LEAST, top), (6.0, 12.0), Anchor::Start, Ink::Text, "") });
    }
    chart.push("", "interval of the change", intervals);
    chart.push("", "", vec![Mark::Dots(decided, DOT)]);
    if !undecided.is_empty() {
        chart.push(
            "",
            "not decided",
            vec![Mark::Dots(undecided.clone(), DOT), Mark::Dots(undecided, HOLLOW)],
        );
    }
    chart
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
    let (x, y) =
        ((Values::Count(most), "run of each side"), (Values::Latency(least * 0.8, high * 1.3), "p99"));
    let mut chart = Chart::new("p99 of every run in the order of the runs", x, y, ORDER_HEIGHT);
    for (index, (name, side)) in SIDES.iter().zip(&p99s).enumerate() {
        let numbered = (1..).map(f64::from).zip(side);
        let places = numbered.filter_map(|(number, ns)| Some((number, (*ns)?))).collect::<Vec<Place>>();
        let stroke = Stroke { width: ORDER_DOT, ..result_stroke(index) };
        chart.push(RESULT_CLASSES[index], *name, vec![Mark::Dots(places, stroke)]);
    }
    let cell = |side: &Vec<Option<f64>>, index: usize| {
        side.get(index).copied().flatten().map(|ns| ns.round() as u64)
    };
    let row = |index: usize| ((index + 1).to_string(), p99s.iter().map(|side| cell(side, index)).collect());
    let grid = times_table("run", &SIDES, (0..runs).map(row).collect(), &Layout::default());
    let finding = "p99 of each run, from the first to the last: what drifts is no difference of the servers.";
    let (cursor, table) = (Some(("number", (0.0, most))), Some(("p99 of every run".to_owned(), grid)));
    let figure = Figure { cursor, table, ..Figure::of(finding, chart) };
    markup.section("order", "Run by run", |markup| figure.write(markup));
}
