//! The report of a comparison that a person reads: who is compared, what differs, and whether that shows anything.
//!
//! Not for scripts. The last line is the answer; the table above it has the numbers, the lines below the table what to do where they
//! show nothing.

use super::assertion::range;
use super::change_text::{change_interval, change_text};
use super::{AssertionRow, ComparedRow, Comparison, Difference, EarlyEnd, Quantity};
use crate::assertion_text;
use crate::details::assertion_table;
use crate::metric;
use crate::paragraph::{self, printable};
use crate::quantity;
use crate::reasons::each_once;
use crate::result::{RunInterval, RunResult, shortened};
use crate::table::Table;
use brunt_plan::objective::{Metric, Statistic, Subject};
use brunt_plan::quantile::{Quantile, SAMPLES_ABOVE_MIN};
use brunt_stats::rank_test::{LEVEL, MARGIN, RUNS_MAX, RUNS_MIN, TestResult};
use brunt_stats::status::Status;

pub(super) fn report(comparison: &Comparison) -> String {
    let mut out = String::new();
    side(&mut out, "A", &comparison.a);
    side(&mut out, "B", &comparison.b);
    plan(&mut out, comparison);
    out.push('\n');
    if comparison.is_small() {
        small_table(&mut out, comparison);
    } else {
        table(&mut out, comparison);
    }
    notes(&mut out, comparison);
    out.push('\n');
    assertion_table(&mut out, assertion_text::sorted(comparison.asserted.iter().map(AssertionRow::text)));
    invalid(&mut out, comparison);
    answer(&mut out, comparison);
    out
}

fn side(out: &mut String, name: &str, runs: &[RunResult]) {
    paragraph::facts(out, name, &side_facts(runs));
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

/// How many runs, of which servers, from which files.
pub(super) fn side_facts(runs: &[RunResult]) -> Vec<String> {
    let mut facts = vec![quantity::things(runs.len() as u64, "run")];
    let mut servers: Vec<String> = runs.iter().map(|run| printable(&run.server)).collect();
    servers.dedup();
    facts.extend(servers.drain(..1));
    if !servers.is_empty() {
        facts.push(format!("and {} others", servers.len()));
    }
    facts.extend(runs.first().zip(runs.last()).map(|(first, last)| sources(&first.source, &last.source)));
    let interrupted = runs.iter().filter(|run| run.interrupted).count();
    if interrupted > 0 {
        facts.push(format!("{interrupted} interrupted"));
    }
    facts
}

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

fn plan(out: &mut String, comparison: &Comparison) {
    for (label, facts) in plan_facts(comparison) {
        paragraph::facts(out, label, &facts);
    }
}

/// What was measured, and what was not the same.
pub(super) fn plan_facts(comparison: &Comparison) -> Vec<(&'static str, Vec<String>)> {
    let plan = &comparison.a[0].plan;
    let classes = plan.get("class").and_then(|held| held.as_array()).map(Vec::as_slice).unwrap_or_default();
    let facts = if let [class] = classes {
        let value =
            |key: &str| class.get(key).or(plan.get(key)).map(|value| format!("{key} {}", shortened(value)));
        PLAN_KEYS.iter().filter_map(|key| value(key)).collect()
    } else {
        let names = classes.iter().filter_map(|class| class.get("name")).map(shortened);
        vec![format!("{} classes: {}", classes.len(), names.collect::<Vec<_>>().join(", "))]
    };
    let mut labelled = vec![("plan", facts)];
    let listed =
        |differences: &[Difference]| differences.iter().map(Difference::to_string).collect::<Vec<_>>();
    if !comparison.plan.is_empty() {
        labelled.push(("unequal", listed(&comparison.plan)));
    }
    if !comparison.environment.is_empty() {
        labelled.push(("hosts", listed(&comparison.environment)));
    }
    labelled
}

/// What no run gives says nothing: a plan without retrievals has no hits. What only some give cannot be told, which is said.
pub(super) fn shown(comparison: &Comparison) -> impl Iterator<Item = &ComparedRow> {
    let is_given =
        |held: &&ComparedRow| comparison.runs().any(|(_, run)| held.quantity.of_run(run).is_some());
    comparison.compared.iter().filter(is_given)
}

fn table(out: &mut String, comparison: &Comparison) {
    let interval = format!("{:.0} % interval", (1.0 - LEVEL) * 100.0);
    let mut table = Table::new(&["", "A", "B", "change", &interval, "p", "finding"]).with_prose_last();
    for held in shown(comparison) {
        let ComparedRow { quantity, test } = held;
        let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| value_text(*quantity, value));
        let interval = test.interval.map(|ends| change_interval(quantity.scale(), ends));
        table.push(vec![
            quantity.name(),
            value(test.a),
            value(test.b),
            held.decided_change().map_or("-".to_owned(), |change| change_text(*quantity, change)),
            interval.unwrap_or_default(),
            test.p.map_or(String::new(), p_text),
            finding(held),
        ]);
    }
    table.write(out);
}

/// The table where nothing is claimed: what each side has, as far as it says how sure that is.
fn small_table(out: &mut String, comparison: &Comparison) {
    let mut table = Table::new(&["", "A", "B"]);
    for ComparedRow { quantity, test } in shown(comparison) {
        table.push(vec![
            quantity.name(),
            side_text(*quantity, test.a, &comparison.a),
            side_text(*quantity, test.b, &comparison.b),
        ]);
    }
    table.write(out);
}

/// What is in brackets behind a number of few runs. Nanoseconds.
enum Brackets {
    /// Of one run the interval of a percentile within it.
    Within(RunInterval),
    /// Of several the lowest and the highest, of times.
    Range([f64; 2]),
}

impl Brackets {
    /// Of a number that every one of the runs gives.
    fn of(quantity: Quantity, runs: &[RunResult]) -> Option<Self> {
        match runs {
            [run] => quantity.interval_of_run(run).map(Self::Within),
            runs => range(quantity, runs).filter(|_| quantity.is_time()).map(Self::Range),
        }
    }
}

/// A number of few runs.
fn side_text(quantity: Quantity, value: Option<f64>, runs: &[RunResult]) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let text = value_text(quantity, value);
    let (low, high, is_thin) = match Brackets::of(quantity, runs) {
        Some(Brackets::Within(own)) => (own.low_ns, own.high_ns, own.is_thin),
        Some(Brackets::Range([low, high])) => (low, Some(high), false),
        None => return text,
    };
    let whole = |ns: f64| ns.round() as u64;
    format!("{text} {}", quantity::interval(whole(value), whole(low), high.map(whole), is_thin))
}

pub(super) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

fn value_text(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Of(subject) => metric::text(subject.metric, value),
        Quantity::ClientCpu | Quantity::ServerCpu => quantity::time(value.round() as u64),
    }
}

/// What a line shows, in words.
fn finding(held: &ComparedRow) -> String {
    let (above, below) = match held.quantity {
        Quantity::Of(subject) => match subject.metric {
            Metric::Response(_) | Metric::Service(_) => ("B is slower", "B is faster"),
            Metric::Rate | Metric::Hit | Metric::Errors | Metric::Unsent => ("B is higher", "B is lower"),
        },
        Quantity::ClientCpu | Quantity::ServerCpu => ("B costs more", "B costs less"),
    };
    match held.test.finding {
        TestResult::Above => above,
        TestResult::Below => below,
        TestResult::NoneShown => "no difference shown",
        TestResult::Undecided => "undecided",
        TestResult::Client => "undecided: client's share",
        TestResult::TooFewRuns => "undecided: too few runs",
        // There is no ratio to nothing.
        TestResult::NotGiven if held.test.a.is_some() && held.test.b.is_some() => "undecided: 0 in a run",
        TestResult::NotGiven => "undecided: not in every run",
    }
    .to_owned()
}

fn notes(out: &mut String, comparison: &Comparison) {
    let mut notes = Vec::new();
    let is_any = |finding| shown(comparison).any(|held| held.test.finding == finding);
    if comparison.is_small() {
        notes.push(small_note(comparison));
    } else {
        notes.push(format!(
            "A and B are medians of runs; the change, given where it is decided, is the median over all pairs of runs, p exact by \
             ranks. Each line is wrong about equals at most once in {:.0} times",
            1.0 / LEVEL
        ));
    }
    if !comparison.plan.is_empty() {
        notes.push("the plans differ: so may what they come to, whatever the servers are".to_owned());
    }
    if is_any(TestResult::Undecided) {
        notes.push(format!(
            "undecided: no difference is shown, and one of {:.0} % is not ruled out (of shares, {} points); more runs narrow it",
            MARGIN * 100.0,
            MARGIN
        ));
    }
    if is_any(TestResult::Client) {
        let runs = comparison.a.iter().chain(&comparison.b);
        let basis = runs.filter_map(|run| run.client_error_basis).max();
        let basis = basis.map_or(String::new(), |basis| format!(" ({})", basis.describe()));
        notes.push(format!(
            "client's share: what was measured differs, but not if as much of one side's times as may be its client's own{basis} is taken \
             from them; a client with more processors, or a lower rate, has less of that"
        ));
    }
    if shown(comparison).any(is_percentile_missing) {
        notes.push(format!(
            "not in every run: a percentile is given where {SAMPLES_ABOVE_MIN} requests lie above it; longer runs, or a higher rate, \
             have them"
        ));
    }
    notes.iter().for_each(|note| paragraph::prose(out, "note", note));
}

/// What the small table shows, and what it does not.
pub(super) fn small_note(comparison: &Comparison) -> String {
    let (a, b) = (comparison.a.len(), comparison.b.len());
    let sides = |held: &ComparedRow| {
        [(held.test.a, &comparison.a), (held.test.b, &comparison.b)]
            .into_iter()
            .filter(|(value, _)| value.is_some())
            .filter_map(|(_, runs)| Brackets::of(held.quantity, runs))
            .collect::<Vec<_>>()
    };
    let brackets: Vec<Brackets> = shown(comparison).flat_map(sides).collect();
    let has_within = brackets.iter().any(|held| matches!(held, Brackets::Within(_)));
    let has_range = brackets.iter().any(|held| matches!(held, Brackets::Range(_)));
    let repeat = format!("no claim is made below {RUNS_MIN} on each side: repeat with --repeat 6");
    if (a, b) == (1, 1) {
        let within = ", and [..], the 95 % interval of a percentile within its run, does not hold it";
        let within = if has_within { within } else { "" };
        return format!("one run each: how much runs differ among themselves is unknown{within}; {repeat}");
    }
    let within = has_within.then_some("[..] of one run is the 95 % interval of a percentile within it; ");
    let range = has_range.then_some("[..] of several runs is the lowest and the highest of a time; ");
    let legend: String = within.into_iter().chain(range).collect();
    format!("{} against {b}: {legend}{repeat}", quantity::things(a as u64, "run"))
}

/// Is it a percentile that some run had too few requests for?
fn is_percentile_missing(held: &ComparedRow) -> bool {
    let is_percentile = matches!(
        held.quantity,
        Quantity::Of(Subject {
            metric: Metric::Response(Statistic::Percentile(_)) | Metric::Service(Statistic::Percentile(_)),
            ..
        })
    );
    is_percentile && (held.test.a.is_none() || held.test.b.is_none())
}

/// Names of runs in a line of those that call for care.
const NAMED_MAX: usize = 6;

/// The runs of each side that call for care, the worst last, with the checks that say so.
fn invalid(out: &mut String, comparison: &Comparison) {
    for (status, text) in invalid_runs(comparison) {
        paragraph::prose(out, status.name(), &text);
    }
}

/// By status the runs of each side that have it.
pub(super) fn invalid_runs(comparison: &Comparison) -> Vec<(Status, String)> {
    let mut lines = Vec::new();
    for status in [Status::Caution, Status::Invalid] {
        for (name, runs) in [("A", &comparison.a), ("B", &comparison.b)] {
            let found: Vec<&RunResult> = runs.iter().filter(|run| run.status == status).collect();
            if found.is_empty() {
                continue;
            }
            let mut sources: Vec<String> =
                found.iter().take(NAMED_MAX).map(|run| run.source.clone()).collect();
            if found.len() > NAMED_MAX {
                sources.push(format!("{} others", found.len() - NAMED_MAX));
            }
            let checks = each_once(found.iter().flat_map(|run| run.found.iter().map(String::as_str)));
            let which = match (found.len(), runs.len()) {
                (1, 1) => String::new(),
                (found, all) if found == all => format!("all {all} runs, "),
                (found, all) => format!("{found} of {all} runs ({}), ", sources.join("; ")),
            };
            let text = format!("{name}: {which}{}", checks.join(" "));
            lines.push((status, printable(&text)));
        }
    }
    lines
}

fn answer(out: &mut String, comparison: &Comparison) {
    if let Some(line) = early_end(comparison) {
        out.push_str(&line);
        out.push('\n');
    }
    paragraph::facts(out, "", &answer_facts(comparison));
}

/// Why not all runs were made.
pub(super) fn early_end(comparison: &Comparison) -> Option<String> {
    comparison.early_end.as_ref().map(|end| match end {
        EarlyEnd::Interrupted => "INTERRUPTED: not all of the runs were made".to_owned(),
        EarlyEnd::Failed(reason) => {
            format!("ENDED EARLY: not all of the runs were made: {}", printable(reason))
        }
    })
}

/// The last line: whether it can be believed, and what differs.
pub(super) fn answer_facts(comparison: &Comparison) -> Vec<String> {
    let all = comparison.a.len() + comparison.b.len();
    let invalid = comparison.runs().filter(|(_, run)| run.status == Status::Invalid).count();
    let mut facts = Vec::new();
    if invalid > 0 {
        facts.push(format!("INVALID: {invalid} of {}", quantity::things(all as u64, "run")));
    }
    let mut differing = comparison.compared.iter().filter(|held| held.differs()).map(|held| {
        let change = held.test.change.map(|change| change_text(held.quantity, change));
        format!("{} {}", held.quantity.name(), change.unwrap_or_default())
    });
    if let Some(first) = differing.next() {
        facts.push(format!("B DIFFERS: {first}"));
        facts.extend(differing);
    } else {
        facts.extend(without_difference(comparison));
    }
    facts
}

/// The rows that must be told for "no difference shown" to be said of a whole comparison: the middle, the tail, the throughput.
const MAIN: [Quantity; 3] = [
    super::of(Metric::Response(Statistic::Percentile(Quantile::P50))),
    super::of(Metric::Response(Statistic::Percentile(Quantile::P99))),
    super::of(Metric::Rate),
];

/// The last line where no row differs: none does as far as can be told, or it cannot be told, and what would help.
fn without_difference(comparison: &Comparison) -> Vec<String> {
    let undecided = "UNDECIDED whether A and B differ";
    let (a, b) = (comparison.a.len(), comparison.b.len());
    if (a, b) == (1, 1) {
        return vec![format!("{undecided}: one run each, spread from run to run unknown")];
    } else if comparison.is_small() {
        return vec![format!("{undecided}: fewer than {RUNS_MIN} runs on a side")];
    }
    let open: Vec<&ComparedRow> =
        shown(comparison).filter(|held| held.test.finding != TestResult::NoneShown).collect();
    let names =
        |rows: &[&ComparedRow]| rows.iter().map(|held| held.quantity.name()).collect::<Vec<_>>().join(", ");
    if !open.iter().any(|held| MAIN.contains(&held.quantity)) {
        let others = (!open.is_empty()).then(|| format!("undecided: {}", names(&open)));
        return std::iter::once("NO DIFFERENCE SHOWN".to_owned()).chain(others).collect();
    }
    let more = (2 * a.min(b)).min(RUNS_MAX);
    let is_narrowed = open.iter().any(|held| held.test.finding == TestResult::Undecided);
    let help = [
        (is_narrowed && more > a.min(b)).then(|| format!("more runs narrow it: --repeat {more}")),
        open.iter()
            .any(|held| is_percentile_missing(held))
            .then(|| "longer runs have the percentiles that are missing".to_owned()),
        open.iter().any(|held| held.test.finding == TestResult::Client).then(|| {
            "a client with more processors, or a lower rate, has less of a share in them".to_owned()
        }),
    ];
    let rows = format!("{undecided}: {}", names(&open));
    std::iter::once(rows).chain(help.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs_of_one_file_are_named_once() {
        for (first, last, expected) in [
            ("a.json, run 1", "a.json, run 6", "a.json, runs 1 to 6"),
            ("a.json, run 1", "a.json, run 1", "a.json, run 1"),
            ("a.json", "b.json", "a.json to b.json"),
            ("a.json, run 2", "b.json", "a.json, run 2 to b.json"),
        ] {
            assert_eq!(super::sources(first, last), expected);
        }
    }
}
