//! The report of a comparison in about twenty lines.
//!
//! The last line is the answer, the table above it has the numbers. Invariants: a cell holds no blank, a row has one unit for both sides, and a
//! change is printed where it is decided, or shown to be none, alone.

use super::change_text::bare_change;
use super::details::{answer_facts, early_end, invalid_runs, p_text, plan_facts, shown, side_facts};
use super::{AssertionRow, ComparedRow, Comparison, Quantity};
use crate::figure::{Figures, unit_of};
use crate::grid::{Cell, Column, Grid, cells};
use crate::layout::{Layout, Style};
use crate::page::Page;
use crate::reasons::each_once;
use crate::text::conclusion;
use crate::text::latency::rate;
use brunt_plan::objective::{Metric, Subject};
use brunt_stats::rank_test::{RUNS_MIN, TestResult};
use brunt_stats::status::Status;

/// Quantities in the table.
const ROWS_MAX: usize = 12;

pub(super) fn report(comparison: &Comparison, layout: &Layout) -> String {
    let mut page = Page::new(layout);
    page.facts("A", &side_facts(&comparison.a));
    page.facts("B", &side_facts(&comparison.b));
    for (label, mut facts) in plan_facts(comparison) {
        // How hosts and plans differ takes a line each; all of it is in the details.
        if label != "plan" && facts.len() > 3 {
            let others = facts.len() - 3;
            facts.truncate(3);
            facts.push(format!("+{others} more: --details"));
        }
        page.facts(label, &facts);
    }
    page.separate();
    table(&mut page, comparison);
    conclusion::assertions(&mut page, comparison.asserted.iter().map(AssertionRow::text));
    page.separate();
    for (status, text) in invalid_runs(comparison) {
        page.facts(&status.name().to_lowercase(), &[text]);
    }
    write_answer(&mut page, comparison);
    page.into_text()
}

fn table(page: &mut Page<'_>, comparison: &Comparison) {
    let mut grid = Grid::new(vec![
        Column::of_words("quantity", 13),
        Column::of_words("unit", 6),
        Column::of_numbers("A", 8),
        Column::of_numbers("B", 8),
        Column::of_numbers("change%", 9),
        Column::of_numbers("low", 8).lost_as(0),
        Column::of_numbers("high", 8).lost_as(1),
        Column::of_numbers("p", 8).lost_as(2),
        Column::of_words("finding", 9),
    ]);
    let rows: Vec<&ComparedRow> = shown(comparison).collect();
    for held in rows.iter().take(ROWS_MAX) {
        let (word, style) = finding(held);
        let mut row = cells(row(held, page.layout).map(|text| text.replace(' ', "_")), Style::Plain);
        row.push(Cell::new(word, style));
        grid.push(row);
    }
    page.grid(&grid);
    if rows.len() > ROWS_MAX {
        page.prose("", 0, &format!("+{} more: --details", rows.len() - ROWS_MAX), Style::Plain);
    }
}

/// What a row of the table says, but for its finding.
pub(super) fn row(held: &ComparedRow, layout: &Layout) -> [String; 8] {
    let ComparedRow { quantity, test } = held;
    let (unit, [a, b]) = sides(*quantity, [test.a, test.b], layout);
    let change =
        |value: Option<f64>| value.filter(|value| value.is_finite()).map_or("-".to_owned(), bare_change);
    let [low, high] = test.interval.map_or([None; 2], |ends| ends.map(Some));
    let p = test.p.map_or("-".to_owned(), p_text);
    [quantity.name(), unit, a, b, change(held.decided_change()), change(low), change(high), p]
}

/// Both sides in one unit.
fn sides(quantity: Quantity, values: [Option<f64>; 2], layout: &Layout) -> (String, [String; 2]) {
    if quantity.is_time() {
        let figures = Figures::of_times(values.map(|value| value.map(|ns| ns.round() as u64)));
        let unit = layout.unit.unwrap_or_else(|| unit_of(std::slice::from_ref(&figures)));
        let times = figures.texts(unit).times;
        return (unit.to_string(), [times[0].clone(), times[1].clone()]);
    }
    let text = |value: Option<f64>, text: fn(f64) -> String| value.map_or("-".to_owned(), text);
    match quantity {
        Quantity::Of(Subject { metric: Metric::Rate, .. }) => {
            ("/s".to_owned(), values.map(|value| text(value, rate)))
        }
        _ => ("%".to_owned(), values.map(|value| text(value, |share| format!("{:.2}", share * 100.0)))),
    }
}

/// What a row shows, in a word; why it is undecided is in the details.
pub(super) fn finding(held: &ComparedRow) -> (&'static str, Style) {
    let (above, below) = match held.quantity {
        Quantity::Of(subject) => match subject.metric {
            Metric::Response(_) | Metric::Service(_) => ("slower", "faster"),
            Metric::Rate | Metric::Hit | Metric::Errors | Metric::Unsent => ("higher", "lower"),
        },
        Quantity::ClientCpu | Quantity::ServerCpu => ("costlier", "cheaper"),
    };
    match held.test.finding {
        TestResult::Above => (above, Style::Bold),
        TestResult::Below => (below, Style::Bold),
        TestResult::NoneShown => ("same", Style::Plain),
        TestResult::Undecided | TestResult::TooFewRuns => ("undecided", Style::Doubt),
        TestResult::Client => ("client", Style::Doubt),
        TestResult::NotGiven => ("undecided", Style::Doubt),
    }
}

/// What the comparison comes to.
pub(super) fn answer(comparison: &Comparison) -> Vec<String> {
    let mut facts: Vec<String> = early_end(comparison).into_iter().collect();
    facts.extend(answer_facts(comparison));
    let runs = [comparison.a.len(), comparison.b.len()];
    if runs[0] == runs[1] && runs[0] >= RUNS_MIN {
        facts.push(format!("{} runs each", runs[0]));
    } else if let Some(last) = facts.last_mut().filter(|_| comparison.is_small()) {
        last.push_str(&format!(" -> --repeat 6 (at least {RUNS_MIN} runs each)"));
    }
    facts
}

fn write_answer(page: &mut Page<'_>, comparison: &Comparison) {
    let worst = comparison.runs().map(|(_, run)| run.status).max();
    page.headline(&answer(comparison), |word| match word.trim_end_matches(':') {
        "INVALID" if worst == Some(Status::Invalid) => Style::Bad,
        _ => Style::Bold,
    });
}

/// The keys of `--brief`.
pub(crate) fn brief(comparison: &Comparison) -> String {
    let differs = comparison.compared.iter().any(ComparedRow::differs);
    let is_open = answer_facts(comparison).iter().any(|fact| fact.starts_with("UNDECIDED"));
    let status = match (comparison.has_invalid(), differs, is_open) {
        (true, ..) => "INVALID",
        (_, true, _) => "DIFFERS",
        (_, _, true) => "UNDECIDED",
        _ => "SAME",
    };
    let mut keys =
        vec![format!("status={status}"), format!("runs={},{}", comparison.a.len(), comparison.b.len())];
    for name in ["p50", "p99", "p99.9", "mean", "rate", "hit"] {
        let held = comparison.compared.iter().find(|held| held.quantity.name() == name);
        let change = held.and_then(ComparedRow::decided_change).map(bare_change);
        keys.push(format!("{name}={}", change.map_or("-".to_owned(), |change| change + "%")));
    }
    let names = |is_it: fn(&ComparedRow) -> bool| {
        let rows = shown(comparison).filter(|held| is_it(held));
        rows.map(|held| held.quantity.name().replace(' ', "_")).collect::<Vec<_>>()
    };
    let reasons = match status {
        "INVALID" => invalid_checks(comparison),
        "DIFFERS" => names(ComparedRow::differs),
        "UNDECIDED" if comparison.is_small() => vec!["few-runs".to_owned()],
        "UNDECIDED" => names(|held| held.test.finding != TestResult::NoneShown),
        _ => Vec::new(),
    };
    keys.push(format!("why={}", if reasons.is_empty() { "-".to_owned() } else { reasons.join(",") }));
    keys.join(" ")
}

/// The checks that found something in runs that are INVALID.
fn invalid_checks(comparison: &Comparison) -> Vec<String> {
    let invalid = comparison.runs().filter(|(_, run)| run.status == Status::Invalid);
    let checks = each_once(invalid.flat_map(|(_, run)| run.found.iter().map(String::as_str)));
    checks.into_iter().map(str::to_owned).collect()
}
