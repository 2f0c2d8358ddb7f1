//! The report of a comparison: who is compared, one table, what was asserted, and last what it comes to.
//!
//! A long one has the rows of all quantities, which are shown without a finding. Invariants: a cell before the finding holds no blank, a row
//! has one unit for both sides, and the page has the same table.

use super::{AssertionRow, ComparedRow, Comparison, Difference, EarlyEnd, Quantity};
use crate::document::{Content, Document, Level};
use crate::figure::{Figures, unit_of};
use crate::grid::{Cell, Column, Grid, cells};
use crate::layout::{Layout, Style};
use crate::quantity::{rate, things};
use crate::result::RunResult;
use crate::stored::{classes_of, shortened};
use crate::text::printable;
use brunt_plan::objective::{Metric, Subject};
use brunt_plan::quantity::each_once;
use brunt_stats::change::{ChangeScale, Design, Finding, PAIRS, RUNS_MAX, Reason, runs_needed};
use brunt_stats::status::Status;

/// Names of runs in a line of those that call for care.
const NAMED_MAX: usize = 6;
/// Differences of plans or hosts in the short report.
const DIFFERENCES_MAX: usize = 3;
/// Why it is not the quotient of its neighbours.
pub(super) const CHANGE: &str = "the median over pairs of runs; A and B are medians of a side";
/// The keys of a plan that say most of it in a line.
const PLAN_KEYS: [&str; 10] = [
    "rate",
    "rate-profile",
    "think",
    "connections",
    "depth",
    "mix",
    "value-size",
    "popularity",
    "time",
    "requests",
];

/// The whole document; its tables have the unit of the layout.
pub(crate) fn document(comparison: &Comparison, layout: &Layout, level: Level) -> Document {
    Document::of(|document| {
        for (label, mut facts) in comparison.head_facts() {
            if level == Level::Short && label != "plan" && facts.len() > DIFFERENCES_MAX {
                let others = facts.len() - DIFFERENCES_MAX;
                facts.truncate(DIFFERENCES_MAX);
                facts.push(format!("{others} more: --report full"));
            }
            document.facts(label, facts);
        }
        document.gap();
        document.table(grid(comparison, layout, level));
        document.facts("change%", vec![CHANGE.to_owned()]);
        document.assertions(comparison.asserted.iter().map(AssertionRow::text));
        document.gap();
        for (status, text) in runs_by_status(comparison) {
            document.facts(status.name(), vec![text]);
        }
        let style = if comparison.has_conclusion() { Style::Bold } else { Style::Bad };
        answer(comparison).into_iter().for_each(|text| document.push(0, Content::Status { text, style }));
    })
}

impl Comparison {
    /// Who is compared, by what plan, and what was not the same.
    pub(crate) fn head_facts(&self) -> Vec<(String, Vec<String>)> {
        let plan = &self.a[0].result.plan;
        let classes = classes_of(plan);
        let plan_facts = if let [(_, class)] = &classes[..] {
            let value = |key: &&str| {
                class.get(*key).or(plan.get(*key)).map(|value| format!("{key} {}", shortened(value)))
            };
            PLAN_KEYS.iter().filter_map(value).collect()
        } else {
            let names = classes.iter().filter_map(|(_, class)| class.get("name")).map(shortened);
            vec![format!("{} classes: {}", classes.len(), names.collect::<Vec<_>>().join(", "))]
        };
        let listed = |differences: &[Difference]| differences.iter().map(Difference::to_string).collect();
        let facts = [
            ("A", side_facts(&self.a)),
            ("B", side_facts(&self.b)),
            ("plan", plan_facts),
            ("unequal", listed(&self.plan)),
            ("hosts", listed(&self.environment)),
        ];
        let given = facts.into_iter().filter(|(_, facts)| !facts.is_empty());
        given.map(|(label, facts)| (label.to_owned(), facts)).collect()
    }
}

/// How many runs, of which servers, from which files.
fn side_facts(runs: &[RunResult]) -> Vec<String> {
    let mut facts = vec![things(runs.len() as u64, "run")];
    let mut servers: Vec<String> = runs.iter().map(|run| printable(&run.result.host.server)).collect();
    servers.dedup();
    facts.extend(servers.drain(..1));
    if !servers.is_empty() {
        facts.push(format!("and {} others", servers.len()));
    }
    facts.extend(runs.first().zip(runs.last()).map(|(first, last)| sources(&first.source, &last.source)));
    let interrupted = runs.iter().filter(|run| run.result.window.interrupted).count();
    if interrupted > 0 {
        facts.push(format!("{interrupted} interrupted"));
    }
    facts
}

/// Where runs come from, from the first to the last: `a.json, runs 1 to 6`.
fn sources(first: &str, last: &str) -> String {
    let [(first_file, from), (last_file, to)] =
        [first, last].map(|source| source.rsplit_once(", run ").unwrap_or((source, "")));
    printable(&match (first == last, first_file == last_file) {
        (true, _) => first.to_owned(),
        (false, true) => format!("{first_file}, runs {from} to {to}"),
        (false, false) => format!("{first} to {last}"),
    })
}

/// The quantities that decide, those that are asserted, and in a long report all that some run gives: a plan without retrievals has no hits.
pub(super) fn shown(comparison: &Comparison, level: Level) -> impl Iterator<Item = &ComparedRow> {
    comparison.compared.iter().filter(move |held| {
        let is_asserted = || {
            let subjects = comparison.asserted.iter().map(|asserted| asserted.requirement.subject());
            subjects.into_iter().any(|subject| held.quantity == Quantity::Of(subject))
        };
        let is_given = || comparison.runs().any(|(_, run)| held.quantity.of_run(run).is_some());
        held.change.finding.is_some() || is_asserted() || level == Level::Long && is_given()
    })
}

/// The quantities side by side.
pub(super) fn grid(comparison: &Comparison, layout: &Layout, level: Level) -> Grid {
    let mut grid = Grid::new(vec![
        Column::of_words("quantity", 8),
        Column::of_numbers("A", 7),
        Column::of_numbers("B", 7),
        Column::of_numbers("change%", 9),
        Column::of_numbers("95%low", 8).lost_as(0),
        Column::of_numbers("95%high", 9).lost_as(1),
        Column::of_words("finding", 9),
    ]);
    for held in shown(comparison, level) {
        let (name, [a, b]) = sides(held, layout);
        let change = held.change.change.map_or("-".to_owned(), change_text);
        let [low, high] = held.change.interval.map_or(["-", "-"].map(str::to_owned), interval_texts);
        let mut row = cells([name, a, b, change, low, high].map(|text| text.replace(' ', "_")), Style::Plain);
        let style = match held.change.finding {
            Some(Finding::Slower | Finding::Faster) => Style::Bold,
            Some(Finding::Undecided) => Style::Doubt,
            Some(Finding::Same) | None => Style::Plain,
        };
        if comparison.has_conclusion() {
            row.push(Cell::new(finding(held), style));
        }
        grid.push(row);
    }
    grid
}

/// The name with its unit, and both sides in it.
fn sides(held: &ComparedRow, layout: &Layout) -> (String, [String; 2]) {
    let (name, values) = (held.quantity.name(), [held.change.a, held.change.b]);
    if held.quantity.is_time() {
        let figures = Figures::of_times(values.map(|value| value.map(|ns| ns.round() as u64)));
        let unit = layout.unit.unwrap_or_else(|| unit_of(std::slice::from_ref(&figures)));
        let times = figures.texts(unit).times;
        return (format!("{name},{unit}"), [times[0].clone(), times[1].clone()]);
    }
    let text = |value: Option<f64>, text: fn(f64) -> String| value.map_or("-".to_owned(), text);
    match held.quantity {
        Quantity::Of(Subject { metric: Metric::Rate, .. }) => (name, values.map(|value| text(value, rate))),
        _ => (format!("{name},%"), values.map(|value| text(value, |share| format!("{:.2}", share * 100.0)))),
    }
}

/// What a row shows; nothing of a quantity that is not decided.
pub(super) fn finding(held: &ComparedRow) -> String {
    let name = held.change.finding.map_or("", Finding::name);
    reason(held).map_or(name.to_owned(), |reason| format!("{name} ({reason})"))
}

/// Why a row is undecided.
fn reason(held: &ComparedRow) -> Option<String> {
    Some(match held.change.reason? {
        Reason::Spread { detectable } if detectable > 0.99 => {
            format!("would find a factor of {:.0} or more", (1.0 + detectable).ceil())
        }
        Reason::Spread { detectable } => format!("would find {:.0} % or more", (detectable * 100.0).ceil()),
        Reason::TooFewRuns => "too few runs".to_owned(),
        Reason::Client => "client's part".to_owned(),
        Reason::NotGiven if held.change.a.is_some() && held.change.b.is_some() => "0 in a run".to_owned(),
        Reason::NotGiven => "missing".to_owned(),
    })
}

/// What the comparison comes to, in sentences.
pub(crate) fn answer(comparison: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(comparison.early_end.as_ref().map(|end| match end {
        EarlyEnd::Interrupted => "INTERRUPTED: not all of the runs were made".to_owned(),
        EarlyEnd::Failed(reason) => {
            format!("ENDED EARLY: not all of the runs were made: {}", printable(reason))
        }
    }));
    let (a, b) = (comparison.a.len(), comparison.b.len());
    let runs = match comparison.design {
        Design::Pairs => format!("{a} pair{} of runs", if a == 1 { "" } else { "s" }),
        Design::Apart if a == b => format!("{} each", things(a as u64, "run")),
        Design::Apart => format!("{} of A, {b} of B", things(a as u64, "run")),
    };
    sentences.push(headline(comparison, &runs));
    sentences
}

/// Whether B is slower or faster, and behind an arrow what helps where that is open.
fn headline(comparison: &Comparison, runs: &str) -> String {
    if !comparison.has_conclusion() {
        let (invalid, all) = (comparison.invalid_runs(), comparison.runs().count());
        return format!(
            "INVALID: {invalid} of {all} runs are INVALID, so nothing is concluded -> brunt help checks"
        );
    }
    let with = |finding: Finding, text: fn(&ComparedRow) -> String| {
        let rows = comparison.compared.iter().filter(|held| held.has(finding));
        rows.map(text).collect::<Vec<_>>().join(", ")
    };
    let changed = |held: &ComparedRow| {
        let change = held.change.change.map(change_text).unwrap_or_default();
        format!("{} {change} %", held.quantity.name())
    };
    let undecided = |held: &ComparedRow| {
        let reason = reason(held).map_or(String::new(), |reason| format!(" ({reason})"));
        format!("{}{reason}", held.quantity.name())
    };
    let (slower, faster) = (with(Finding::Slower, changed), with(Finding::Faster, changed));
    let open = with(Finding::Undecided, undecided);
    match (slower.is_empty(), faster.is_empty(), open.is_empty()) {
        (false, true, _) => format!("B IS SLOWER: {slower} ({runs})"),
        (true, false, _) => format!("B IS FASTER: {faster} ({runs})"),
        (false, false, _) => format!("B IS SLOWER: {slower}; FASTER: {faster} ({runs})"),
        (true, true, true) => format!("A AND B ARE THE SAME WITHIN 5 % ({runs})"),
        (true, true, false) => format!("UNDECIDED: {open}; {runs}{}", advice(comparison)),
    }
}

/// What would decide.
fn advice(comparison: &Comparison) -> String {
    let runs = comparison.a.len().min(comparison.b.len());
    let is_any =
        |is: fn(Reason) -> bool| comparison.compared.iter().filter_map(|held| held.change.reason).any(is);
    if is_any(|reason| reason == Reason::TooFewRuns) {
        let needed = runs_needed(comparison.design);
        format!(" -> --repeat {PAIRS} (at least {needed} of each side)")
    } else if is_any(|reason| matches!(reason, Reason::Spread { .. })) && 2 * runs <= RUNS_MAX {
        format!(" -> --repeat {}", 2 * runs)
    } else if is_any(|reason| reason == Reason::NotGiven) {
        " -> longer runs (--time)".to_owned()
    } else if is_any(|reason| reason == Reason::Client) {
        " -> a lower rate, or a client with more processors".to_owned()
    } else {
        String::new()
    }
}

/// By status the runs of each side that are CAUTION or INVALID, with the checks that say so.
pub(crate) fn runs_by_status(comparison: &Comparison) -> Vec<(Status, String)> {
    let mut lines = Vec::new();
    for status in [Status::Caution, Status::Invalid] {
        for (name, runs) in [("A", &comparison.a), ("B", &comparison.b)] {
            let found: Vec<&RunResult> = runs.iter().filter(|run| run.status() == status).collect();
            let mut sources: Vec<&str> =
                found.iter().take(NAMED_MAX).map(|run| run.source.as_str()).collect();
            let others = format!("{} others", found.len().saturating_sub(NAMED_MAX));
            sources.extend((found.len() > NAMED_MAX).then_some(others.as_str()));
            let checks = each_once(found.iter().flat_map(|run| run.findings()));
            let which = match (found.len(), runs.len()) {
                (0, _) => continue,
                (1, 1) => String::new(),
                (found, all) if found == all => format!("all {all} runs, "),
                (found, all) => format!("{found} of {all} runs ({}), ", sources.join("; ")),
            };
            lines.push((status, printable(&format!("{name}: {which}{}", checks.join(" ")))));
        }
    }
    lines
}

/// The keys of `--report brief`.
pub(crate) fn brief(comparison: &Comparison) -> String {
    let decided = || comparison.compared.iter().filter(|held| held.change.finding.is_some());
    let names = |rows: Vec<&ComparedRow>| rows.iter().map(|held| held.quantity.name()).collect::<Vec<_>>();
    let has = |findings: &[Finding]| {
        names(decided().filter(|held| findings.iter().any(|finding| held.has(*finding))).collect())
    };
    let differing = has(&[Finding::Slower, Finding::Faster]);
    let (finding, why) = match (has(&[Finding::Slower]), differing, has(&[Finding::Undecided])) {
        _ if !comparison.has_conclusion() => ("INVALID", invalid_checks(comparison)),
        (slower, differing, _) if !slower.is_empty() => ("SLOWER", differing),
        (_, differing, _) if !differing.is_empty() => ("FASTER", differing),
        (_, _, undecided) if !undecided.is_empty() => ("UNDECIDED", undecided),
        _ => ("SAME", Vec::new()),
    };
    let mut keys =
        vec![format!("finding={finding}"), format!("runs={},{}", comparison.a.len(), comparison.b.len())];
    for key in ["p50", "p99", "p99.9", "mean", "rate", "hit"] {
        let held = comparison.compared.iter().find(|held| held.quantity.key() == key);
        let change = held.and_then(|held| held.change.change).map(change_text);
        keys.push(format!("{key}={}", change.map_or("-".to_owned(), |change| change + "%")));
    }
    keys.push(format!("why={}", if why.is_empty() { "-".to_owned() } else { why.join(",") }));
    keys.join(" ")
}

/// The checks that found something in runs that are INVALID.
fn invalid_checks(comparison: &Comparison) -> Vec<String> {
    let invalid = comparison.runs().filter(|(_, run)| run.status() == Status::Invalid);
    each_once(invalid.flat_map(|(_, run)| run.findings())).into_iter().map(str::to_owned).collect()
}

/// The change of a row in words, for a label: `+12.0 % [+11.1 .. +12.9]`, of shares in points.
pub(super) fn interval_text(held: &ComparedRow) -> String {
    let unit = if held.quantity.scale() == ChangeScale::Ratio { "%" } else { "points" };
    held.change.interval.map_or(String::new(), |ends| {
        let [low, high] = interval_texts(ends);
        format!(" [{low} .. {high}] {unit}")
    })
}

/// A change in hundredths.
pub(super) fn change_text(change: f64) -> String {
    tenths_text(change, f64::round)
}

/// The ends of an interval in hundredths.
pub(super) fn interval_texts([low, high]: [f64; 2]) -> [String; 2] {
    [tenths_text(low, f64::floor), tenths_text(high, f64::ceil)]
}

/// One decimal is as much as a comparison of runs can have.
fn tenths_text(change: f64, rounded: fn(f64) -> f64) -> String {
    // What the arithmetic leaves of a whole tenth is no part of it.
    let tenths = rounded((change * 1e9).round() / 1e6);
    // What rounds to nothing has no sign.
    if tenths == 0.0 { "0.0".to_owned() } else { format!("{:+.1}", tenths / 10.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_file_are_named_once() {
        for (first, last, expected) in [
            ("a.json, run 1", "a.json, run 6", "a.json, runs 1 to 6"),
            ("a.json, run 1", "a.json, run 1", "a.json, run 1"),
            ("a.json", "b.json", "a.json to b.json"),
            ("a.json, run 2", "b.json", "a.json, run 2 to b.json"),
        ] {
            assert_eq!(sources(first, last), expected);
        }
    }

    #[test]
    fn ends_of_intervals_are_rounded_outwards() {
        // 0.1 + 0.02 is a little above 0.12, and is 12 % all the same.
        let table = [
            (0.1 + 0.02, "+12.0", ["+12.0", "+12.0"]),
            (0.1204, "+12.0", ["+12.0", "+12.1"]),
            (-0.0204, "-2.0", ["-2.1", "-2.0"]),
            (0.0004, "0.0", ["0.0", "+0.1"]),
            (-0.0004, "0.0", ["-0.1", "0.0"]),
            (8.1461, "+814.6", ["+814.6", "+814.7"]),
        ];
        for (change, rounded, ends) in table {
            assert_eq!(change_text(change), rounded);
            assert_eq!(interval_texts([change; 2]), ends, "{change}");
        }
    }
}
