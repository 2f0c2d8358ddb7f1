//! What holds of the report of every made-up run, and these reports as snapshots.

use super::text::{PIPE, check_lines, keys, ordinary, report_of, text_of};
use super::{all_runs, asserted, campaign, comparison, output, run};
use crate::document::{Content, Level};
use crate::grid::Grid;
use crate::layout::{Layout, TimeUnit, painted};
use crate::run_document::latency::is_unbounded;
use crate::run_document::{OpRows, document};
use crate::subject::Subject;
use brunt_stats::bound::Decision;
use brunt_stats::check::Judgement;
use brunt_stats::summary::Summary;
use run::Run;

fn runs() -> Vec<(String, Run)> {
    let ordinary = ordinary().into_iter().map(|(name, run)| (format!("ordinary {name}"), run));
    let others = all_runs().into_iter().map(|(name, run)| (name.to_owned(), run));
    let mut runs: Vec<(String, Run)> = ordinary.chain(others).collect();
    runs.extend(asserted().into_iter().enumerate().map(|(index, run)| (format!("asserted {index}"), run)));
    runs.push(("many".to_owned(), run::ordinary::many()));
    runs.push(("stopped".to_owned(), run::stopped(Judgement::default())));
    runs.push(("few".to_owned(), run::ordinary::few()));
    runs
}

fn brief_of(summary: &Summary) -> String {
    output(|out| Subject::Run(summary).write_brief(&PIPE, out))
}

#[test]
fn short_reports() {
    for (name, run) in runs() {
        let text = text_of(&run.summary, &PIPE);
        insta::assert_snapshot!(format!("run_{}", name.replace(' ', "_")), text + &brief_of(&run.summary));
    }
}

/// What ends a command with 3 or 4 has its lines where no report is printed, and nothing else has.
#[test]
fn doubts_are_said_without_a_report() {
    let check = |name: &str, subject: Subject<'_>, is_doubtful: bool| {
        let said = subject.unmet();
        assert_eq!(said.is_empty(), !is_doubtful, "{name}: {said:?}");
    };
    for (name, Run { summary, .. }) in runs() {
        let is_unmet = summary.assertions.iter().any(|assertion| assertion.decision != Decision::Holds);
        check(&name, Subject::Run(&summary), is_unmet || summary.status.is_invalid());
    }
    for (name, campaign) in campaign::all() {
        let is_unmet = campaign.is_missed() || campaign.is_undecided();
        check(name, Subject::Campaign(&campaign), is_unmet || campaign.status.is_invalid());
    }
    for (name, comparison) in comparison::all() {
        let is_unmet = comparison.is_missed() || comparison.is_undecided();
        check(name, Subject::Comparison(&comparison), is_unmet || !comparison.has_conclusion());
    }
}

/// A run with everything in it, one with timestamps and a calibration, one of a cluster over TLS.
#[test]
fn long_reports() {
    for (name, run) in
        [("churn", run::churn()), ("open_loop", run::open_loop()), ("cluster", run::ordinary::cluster())]
    {
        insta::assert_snapshot!(format!("long_{name}"), report_of(&run.summary, &PIPE, Level::Long));
    }
}

/// The tables of a report.
fn grids(summary: &Summary, level: Level) -> Vec<Grid> {
    let document = document(summary, &PIPE, OpRows::default());
    let grid = |content: &Content| match content {
        Content::Table(grid) => Some(grid.clone()),
        _ => None,
    };
    document.contents(level).filter_map(grid).collect()
}

/// The table of response times.
fn table(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().skip_while(|line| !line.starts_with("response, "));
    rows.take_while(|line| !line.is_empty())
        .map(|line| {
            let (name, cells) = line.split_at(line.len().min(13));
            // A name that is longer has no blank.
            match cells.starts_with(' ') || cells.is_empty() || name.ends_with(' ') {
                true => [name.trim()].into_iter().chain(cells.split_whitespace()).collect(),
                false => line.split_whitespace().collect(),
            }
        })
        .collect()
}

fn is_qualifying(row: &[&str]) -> bool {
    ["95% low", "95% high", "client <=", "client ~"].contains(&row[0])
}

#[test]
fn lines_are_few_and_short() {
    for (name, run) in runs() {
        for level in [Level::Short, Level::Long] {
            let text = report_of(&run.summary, &PIPE, level);
            // What a user wrote is shown as it is.
            let (report, plan) = text.split_once("== plan\n").unwrap_or((&text, ""));
            check_lines(&name, &format!("{}\n", report.trim_end()));
            for line in grids(&run.summary, level).iter().flat_map(|grid| grid.lines(&PIPE)) {
                assert!(painted(&line, false).chars().count() <= 78, "{name}: {line:?} is too long");
            }
            assert_eq!(plan.is_empty(), level == Level::Short, "{name}");
        }
        let text = text_of(&run.summary, &PIPE);
        let asserted = run.summary.assertions.len();
        assert!(text.lines().count() <= if asserted > 0 { 24 + 2 * asserted } else { 24 }, "{name}: {text}");
    }
}

#[test]
fn a_field_is_one_column_in_every_row() {
    for (name, run) in runs() {
        let text = text_of(&run.summary, &PIPE);
        let table = table(&text);
        let columns = table[0].len();
        for row in &table[1..] {
            let number = |cell: &&&str| cell.trim_start_matches("<=").parse::<f64>().is_ok();
            let is_cell = |cell: &&&str| number(cell) || ["-", "open"].contains(cell);
            assert_eq!(row.iter().skip(1).filter(is_cell).count(), row.len() - 1, "{name}: {row:?}");
            match is_qualifying(row) {
                true => assert!(row.len() <= 6, "{name}: {row:?}"),
                false => assert_eq!(row.len(), columns, "{name}: {row:?}"),
            }
        }
    }
}

/// No cell holds a blank, but for the names of rows that qualify another.
#[test]
fn cells_hold_no_blanks() {
    for (name, run) in runs() {
        let grids = grids(&run.summary, Level::Long);
        for row in grids.iter().flat_map(Grid::rows).map(Iterator::collect::<Vec<&str>>) {
            let cells = row.iter().skip(usize::from(row[0].starts_with("  ")));
            assert!(cells.clone().all(|cell| !cell.is_empty() && !cell.contains(' ')), "{name}: {row:?}");
        }
    }
}

/// What is not known is `-`, and the end of an interval that is not known is `open`.
#[test]
fn cells_are_never_empty() {
    let outage = text_of(&run::ordinary::outage().summary, &PIPE);
    let rows = table(&outage);
    let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap()[1..].join(" ");
    assert_eq!(row("95% high"), "0.120 open open open");
    assert!(row("all").contains(" - "), "{outage}");
}

#[test]
fn one_operation_has_one_row() {
    for (name, run) in runs() {
        let ops: usize = run.summary.classes.iter().map(|class| class.ops.len()).sum();
        let text = text_of(&run.summary, &PIPE);
        let table = table(&text);
        let rows = table[1..].iter().filter(|row| !is_qualifying(row)).count();
        assert_eq!(ops == 1, rows == 1, "{name}: {table:?}");
        assert!(rows <= 7, "{name}: {table:?}");
    }
}

#[test]
fn overload_has_no_qualifying_rows() {
    for (name, run) in runs() {
        let text = text_of(&run.summary, &PIPE);
        let table = table(&text);
        if is_unbounded(&run.summary) {
            assert!(!table.iter().any(|row| is_qualifying(row)), "{name}: {table:?}");
        }
    }
    assert!(is_unbounded(&run::ordinary::overload().summary));
}

#[test]
fn the_status_is_last_and_assertions_stand_above_it() {
    for (name, run) in runs() {
        let text = text_of(&run.summary, &PIPE);
        let last = text.split("\n\n").last().unwrap();
        let is_status =
            |line: &str| ["OK: ", "CAUTION: ", "INVALID: "].iter().any(|word| line.starts_with(word));
        assert!(is_status(last), "{name}: {text}");
        assert_eq!(text.lines().filter(|line| is_status(line)).count(), 1, "{name}: {text}");
    }
    let [_, overload] = asserted();
    let text = text_of(&overload.summary, &PIPE);
    let words =
        ["FAILS         errors <", "FAILS         unsent <", "FAILS         service.max <", "INVALID: "];
    let at = words.map(|word| text.lines().position(|line| line.starts_with(word)).unwrap());
    assert!(at.is_sorted(), "{text}");
}

/// Sentences with what helps have it behind an arrow, at most three of them.
#[test]
fn advice_stands_behind_an_arrow() {
    for (name, run) in runs() {
        let text = text_of(&run.summary, &PIPE);
        let advice = text.lines().filter(|line| {
            line.starts_with("  ")
                && line.trim_start().starts_with(|c: char| c.is_ascii_uppercase())
                && line.len() > 14
                && !line.starts_with("   ")
        });
        assert!(advice.count() <= 3, "{name}: {text}");
    }
    let outage = text_of(&run::ordinary::overload().summary, &PIPE);
    assert!(outage.contains(" -> "), "{outage}");
}

#[test]
fn three_lines_say_what_was_run() {
    for run in [run::ordinary::closed(), run::ordinary::outage(), run::ordinary::overload()] {
        let text = text_of(&run.summary, &PIPE);
        assert_eq!(text.lines().position(str::is_empty), Some(3), "{text}");
    }
}

#[test]
fn a_unit_is_one_for_the_table_and_may_be_pinned() {
    for (run, chosen) in
        [(run::ordinary::open(), "us"), (run::ordinary::outage(), "ms"), (run::ordinary::overload(), "s")]
    {
        let text = text_of(&run.summary, &PIPE);
        assert_eq!(table(&text)[0][0], format!("response, {chosen}"), "{text}");
        for unit in TimeUnit::ALL {
            let pinned = text_of(&run.summary, &Layout { unit: Some(unit), ..PIPE });
            assert_eq!(table(&pinned)[0][0], format!("response, {unit}"));
            let p50_ns = run.summary.total.latency.response.summary.p50_ns().unwrap() as f64;
            let shown_ns = table(&pinned)[1][1].parse::<f64>().unwrap() * unit.ns();
            assert!((shown_ns / p50_ns - 1.0).abs() < 0.006, "{unit}: {shown_ns} {p50_ns}");
        }
    }
}

#[test]
fn tables_are_the_same_on_every_terminal_but_narrow_ones() {
    for (name, run) in runs() {
        let at = |columns| text_of(&run.summary, &Layout { columns, ..PIPE });
        let pipe = at(None);
        for columns in [78, 80, 100, 200] {
            assert_eq!(table(&pipe), table(&at(Some(columns))), "{name}: {columns}");
        }
        assert!(at(Some(200)).lines().all(|line| line.chars().count() <= 100), "{name}");
    }
    let run = run::ordinary::open();
    let headings = |columns| {
        let text = text_of(&run.summary, &Layout { columns: Some(columns), ..PIPE });
        table(&text)[0][1..].join(" ")
    };
    assert_eq!(headings(78), "p50 p90 p99 p99.9 p99.99 max done/s hit% failed");
    assert_eq!(headings(70), "p50 p99 p99.9 max done/s hit% failed");
    assert_eq!(headings(60), "p50 p99 p99.9 max done/s hit%");
}

/// Without its escape sequences.
fn stripped(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1)
}

#[test]
fn colour_adds_nothing_but_colour() {
    for (name, run) in runs() {
        for level in [Level::Short, Level::Long] {
            let coloured = report_of(&run.summary, &Layout { is_coloured: true, ..PIPE }, level);
            assert!(coloured.contains("\x1b[1m"), "{name}");
            assert_eq!(stripped(&coloured), report_of(&run.summary, &PIPE, level), "{name}");
        }
    }
}

#[test]
fn without_utf8_there_is_none() {
    for (name, run) in runs() {
        let ascii = report_of(&run.summary, &Layout { is_ascii: true, ..PIPE }, Level::Long);
        assert!(ascii.is_ascii(), "{name}: {ascii}");
        assert_eq!(table(&ascii), table(&text_of(&run.summary, &PIPE)), "{name}");
    }
}

#[test]
fn a_brief_line_has_the_same_keys_in_every_run() {
    for (name, run) in runs() {
        let line = brief_of(&run.summary);
        assert_eq!(line.lines().count(), 1, "{name}");
        let expected = ["status", "quote", "rate", "p50", "p99", "p99.9", "max", "hit", "failed", "limit"];
        assert_eq!(keys(&line), expected, "{name}: {line}");
    }
}

/// As many as were asked for, in one unit.
#[test]
fn percentiles_are_those_that_were_asked_for() {
    let headings = |list: &str| {
        let run = run::long(30, &format!("percentiles = '{list}'"));
        let text = text_of(&run.summary, &PIPE);
        check_lines(list, &text);
        let headings = text.lines().filter(|line| line.starts_with("response, "));
        headings.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(headings("50,75,99.9"), ["response, us p50 p75 p99.9 max done/s hit% failed"]);
    let expected = [
        "response, us p10 p20 p30 p40 p50 p60 max done/s hit% failed",
        "response, us p70 p80 p90 p95 p99 p99.9",
    ];
    assert_eq!(headings("10,20,30,40,50,60,70,80,90,95,99,99.9"), expected);
}

/// A line over time has no more bars than fit, whatever rows a table over time was asked to have.
#[test]
fn a_line_over_time_is_short() {
    for (seconds, options) in [(10, "interval = '100ms'"), (130, "interval = '100ms'"), (130, "")] {
        let run = run::long(seconds, &format!("{options}\nrate-profile = '0s=50,{seconds}s=50'"));
        let text = text_of(&run.summary, &PIPE);
        let line = text.lines().find(|line| line.contains(" by ")).unwrap_or_else(|| panic!("{text}"));
        let bars = line.chars().filter(|c| ('▁'..='█').contains(c)).count();
        assert!((5..=40).contains(&bars), "{line}");
    }
}

/// More operations than have a row each: the busiest five, and the others as one whose percentiles are those of all of them together.
#[test]
fn the_least_busy_operations_are_merged() {
    let run = run::ordinary::many();
    let text = text_of(&run.summary, &PIPE);
    let names: Vec<&str> =
        table(&text).iter().map(|row| row[0]).filter(|name| !name.contains(['%', ','])).collect();
    assert_eq!(names, ["all", "client <=", "get", "set", "add", "replace", "append", "rest-3"], "{text}");
    let rest = table(&text).into_iter().find(|row| row[0] == "rest-3").unwrap();
    // Times of 200, 300 and 400 us, equally many of each.
    assert_eq!([rest[1], rest[2], rest[6]], ["300", "400", "400"], "{text}");
}
