//! The short report of made-up runs as snapshots, and its rules: width, cells, unit, order, colour, the keys of `--brief`.

use super::{asserted, campaign, comparison, run};
use crate::campaign::{Campaign, CampaignHeader};
use crate::layout::{Layout, TimeUnit};
use crate::{brief, text};
use brunt_stats::summary::Summary;
use run::Run;

pub(super) const PIPE: Layout = Layout { unit: None, columns: None, is_coloured: false, is_ascii: false };

pub(super) fn ordinary() -> [(&'static str, Run); 6] {
    [
        ("closed", run::ordinary::closed()),
        ("open", run::ordinary::open()),
        ("outage", run::ordinary::outage()),
        ("overload", run::ordinary::overload()),
        ("commands", run::ordinary::commands()),
        ("cluster", run::ordinary::cluster()),
    ]
}

pub(super) fn text_of(summary: &Summary, layout: &Layout) -> String {
    let mut out = Vec::new();
    text::write(summary, layout, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn brief_of(summary: &Summary) -> String {
    let mut out = Vec::new();
    brief::write(summary, &PIPE, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What holds of every report in a pipe.
fn check_lines(name: &str, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{name}: {line:?} is too long");
        assert!(line == line.trim_end(), "{name}: {line:?} ends in white space");
        assert!(!line.contains(char::is_control), "{name}: {line:?} steers the terminal");
    }
    assert!(text.lines().count() <= 30, "{name} has {} lines", text.lines().count());
    assert!(!text.contains("\n\n\n") && !text.starts_with('\n') && !text.ends_with("\n\n"), "{name}: {text}");
}

#[test]
fn ordinary_runs() {
    for (name, run) in ordinary() {
        let text = text_of(&run.summary, &PIPE);
        check_lines(name, &text);
        insta::assert_snapshot!(format!("ordinary_{name}"), text + &brief_of(&run.summary));
    }
}

/// Those whose long text is a snapshot, too.
#[test]
fn other_runs() {
    for (name, run) in super::all_runs() {
        let text = text_of(&run.summary, &PIPE);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line:?} is too long");
        }
        assert!(text.lines().count() <= 30, "{name}: {text}");
        insta::assert_snapshot!(format!("short_{name}"), text + &brief_of(&run.summary));
    }
}

#[test]
fn assertions_stand_above_the_verdict() {
    let [_, overload] = asserted();
    let text = text_of(&overload.summary, &PIPE);
    let words =
        ["FAILS        errors <", "FAILS        unsent <", "FAILS        service.max <", "NOT TRUSTED"];
    let at = words.map(|word| text.lines().position(|line| line.contains(word)).unwrap());
    assert!(at.is_sorted(), "{text}");
}

/// The lines of the table: from its heading to the empty line below it.
fn table(text: &str) -> Vec<Vec<&str>> {
    let from = text.lines().skip_while(|line| !line.starts_with("response/"));
    from.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_field_is_one_column_in_every_row() {
    for (name, run) in ordinary().into_iter().chain(super::all_runs()) {
        let text = text_of(&run.summary, &PIPE);
        let from = text.lines().skip_while(|line| !line.starts_with("response/"));
        let mut lines = from.take_while(|line| !line.is_empty());
        assert!(lines.all(|line| line.chars().count() <= 78), "{name}: {text}");
        let table = table(&text);
        let columns = table[0].len();
        let has_hits = table[0].contains(&"hit%");
        assert_eq!(columns, if has_hits { 10 } else { 9 }, "{name}: {text}");
        for row in &table[1..] {
            match row[0] {
                "±95%CI" | "client<=" | "client<~" | "client<=?" | "trust" => {
                    assert!(row.len() <= 6, "{name}: {row:?}")
                }
                _ => assert_eq!(row.len(), columns, "{name}: {row:?}"),
            }
            let is_number = |cell: &&&str| cell.parse::<f64>().is_ok() || ["-", "open"].contains(cell);
            let numbers = row.iter().skip(1).filter(is_number).count();
            assert!(row[0] == "trust" || numbers == row.len() - 1, "{name}: {row:?}");
        }
    }
}

/// Below each row its intervals, and where something of it is marked, its marks.
#[test]
fn every_row_has_its_bounds_and_marks() {
    let below = |run: &Run, name: &str| {
        let text = text_of(&run.summary, &PIPE);
        let rows = table(&text).into_iter().map(|row| row.join(" "));
        let rows: Vec<String> =
            rows.skip_while(|row| !row.starts_with(&format!("{name} "))).skip(1).collect();
        let is_bound =
            |row: &&String| ["±95%CI", "client<=", "trust"].iter().any(|name| row.starts_with(name));
        rows.iter().take_while(is_bound).cloned().collect::<Vec<_>>()
    };
    let [all, set] = ["all", "set"].map(|name| below(&run::ordinary::closed(), name));
    assert_eq!(all, ["±95%CI 1 1 1 1", "client<= 2 2 2 2", "trust ok ok ok ok"]);
    assert_eq!(set, ["±95%CI 1 2 1"]);
    let outage = run::ordinary::outage();
    assert_eq!(below(&outage, "get"), ["±95%CI 0.008 open open open", "trust ok thin? thin? thin?"]);
    assert_eq!(below(&outage, "set"), ["±95%CI 0.008 open open", "trust ok thin? thin?"]);
    assert_eq!(below(&run::ordinary::overload(), "get"), [""; 0], "there is nothing to bound");
    // Where there is no room, the first row alone has them.
    assert_eq!(below(&run::ordinary::many(), "get"), [""; 0]);
}

/// A run that is NOT TRUSTED says why, however much else happened.
#[test]
fn what_convicts_a_run_is_listed() {
    for (name, run) in ordinary().into_iter().chain(super::all_runs()) {
        let text = text_of(&run.summary, &PIPE);
        let Some(line) = text.lines().find(|line| line.contains("NOT TRUSTED: ")) else { continue };
        let (_, behind) = line.split_once("NOT TRUSTED: ").unwrap();
        let causes: Vec<&str> = text.lines().skip_while(|held| *held != line).skip(1).collect();
        for id in behind.split(" · ").next().unwrap().split(' ') {
            let leading = run.summary.verdict.leading_cause();
            let is_leading = leading.is_some_and(|cause| cause.ids().any(|held| held == id));
            assert!(is_leading || causes.iter().any(|held| held.contains(id)), "{name}: {id} in {text}");
        }
    }
}

#[test]
fn two_lines_say_what_was_run() {
    for run in [run::ordinary::closed(), run::ordinary::outage(), run::ordinary::overload()] {
        let text = text_of(&run.summary, &PIPE);
        assert_eq!(text.lines().position(str::is_empty), Some(2), "{text}");
    }
}

#[test]
fn a_unit_is_one_for_the_table_and_may_be_pinned() {
    for (run, chosen) in
        [(run::ordinary::open(), "us"), (run::ordinary::outage(), "ms"), (run::ordinary::overload(), "s")]
    {
        let text = text_of(&run.summary, &PIPE);
        assert_eq!(table(&text)[0][0], format!("response/{chosen}"), "{text}");
        for unit in TimeUnit::ALL {
            let pinned = text_of(&run.summary, &Layout { unit: Some(unit), ..PIPE });
            assert_eq!(table(&pinned)[0][0], format!("response/{unit}"));
            let p50_ns = run.summary.total.latency.response.summary.p50_ns().unwrap() as f64;
            let shown_ns = table(&pinned)[1][1].parse::<f64>().unwrap() * unit.ns();
            assert!((shown_ns / p50_ns - 1.0).abs() < 0.006, "{unit}: {shown_ns} {p50_ns}");
        }
    }
}

#[test]
fn tables_are_the_same_on_every_terminal_but_narrow_ones() {
    for (name, run) in ordinary() {
        let at = |columns| text_of(&run.summary, &Layout { columns, ..PIPE });
        let (pipe, wide) = (at(None), at(Some(200)));
        assert_eq!(table(&pipe), table(&wide), "{name}");
        assert_eq!(table(&pipe), table(&at(Some(78))), "{name}");
        assert!(wide.lines().all(|line| line.chars().count() <= 100), "{name}: {wide}");
        let headings = |columns| table(&at(Some(columns)))[0][1..].join(" ");
        let widest = headings(78);
        assert_eq!(headings(77), widest.replace("hit% ", "").replace("p90 ", ""), "{name}");
        assert_eq!(headings(20), "p50 p99 p99.9 max done/s", "{name}");
    }
}

/// Without its escape sequences.
fn stripped(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1)
}

#[test]
fn colour_adds_nothing_but_colour() {
    for (name, run) in ordinary().into_iter().chain(super::all_runs()) {
        let coloured = text_of(&run.summary, &Layout { is_coloured: true, ..PIPE });
        assert!(coloured.contains("\x1b[1m"), "{name}");
        assert_eq!(stripped(&coloured), text_of(&run.summary, &PIPE), "{name}");
    }
}

#[test]
fn without_utf8_there_is_none() {
    for (name, run) in ordinary() {
        let ascii = text_of(&run.summary, &Layout { is_ascii: true, ..PIPE });
        assert!(ascii.is_ascii(), "{name}: {ascii}");
        let utf8 = text_of(&run.summary, &PIPE);
        let values = |text: &str| table(text)[1][1..].join(" ");
        assert_eq!(values(&ascii), values(&utf8), "{name}");
    }
}

fn keys(line: &str) -> Vec<&str> {
    line.split_whitespace().map(|pair| pair.split_once('=').unwrap().0).collect()
}

#[test]
fn a_brief_line_has_the_same_keys_in_every_run() {
    for (name, run) in ordinary().into_iter().chain(super::all_runs()) {
        let line = brief_of(&run.summary);
        assert_eq!(line.lines().count(), 1, "{name}");
        let expected = ["verdict", "rate", "p50", "p99", "p99.9", "max", "hit", "failed", "why"];
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
        let headings = text.lines().filter(|line| line.starts_with("response/"));
        headings.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(headings("50,75,99.9"), ["response/us p50 p75 p99.9 max done/s hit% failed"]);
    let expected = [
        "response/us p10 p20 p30 p40 p50 p60 max done/s hit% failed",
        "response/us p70 p80 p90 p95 p99 p99.9",
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
    let names: Vec<&str> = table(&text).iter().map(|row| row[0]).collect();
    let expected = ["get", "set", "add", "replace", "append", "rest-3"];
    assert_eq!(names.iter().filter(|name| expected.contains(name)).count(), 6, "{text}");
    let rest = table(&text).into_iter().find(|row| row[0] == "rest-3").unwrap();
    // Times of 200, 300 and 400 us, equally many of each.
    assert_eq!([rest[1], rest[2], rest[6]], ["300", "400", "400"], "{text}");
}

fn campaign_text(campaign: &Campaign) -> String {
    let mut out = Vec::new();
    crate::campaign::write_text(campaign, &PIPE, &mut out).unwrap();
    brief::write_campaign(campaign, &PIPE, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn campaigns() {
    for (name, campaign) in campaign::all() {
        let text = campaign_text(&campaign);
        let (report, line) = text.trim_end().rsplit_once('\n').unwrap();
        check_lines(name, report);
        assert_eq!(keys(line)[..2], ["verdict", "runs"], "{name}: {line}");
        insta::assert_snapshot!(format!("short_{name}"), text);
    }
}

/// The percentiles that were requested, and the p99, on which the knee rests.
#[test]
fn tables_of_campaigns_have_the_requested_percentiles() {
    let summary = run::long(30, "percentiles = '75,90'").summary;
    let headings = |campaign: &Campaign| {
        let text = campaign_text(campaign);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let heading = text.lines().find(|line| line.contains("done/s") && line.contains("p99/")).unwrap();
        heading.split_whitespace().filter(|word| word.starts_with('p')).collect::<Vec<_>>().join(" ")
    };
    for (name, campaign) in campaign::all().into_iter().filter(|(name, _)| !name.starts_with("search")) {
        let head = CampaignHeader::of(&summary, None);
        let campaign = Campaign { head, ..campaign };
        let wanted = headings(&campaign);
        assert!(wanted.starts_with("p75/") && wanted.contains(" p90/"), "{name}: {wanted}");
        assert!(wanted.contains(" p99/") && !wanted.contains("p50/"), "{name}: {wanted}");
    }
}

/// A setting that was measured again is in the table once, and the title says how many runs that makes.
#[test]
fn settings_and_runs_are_told_apart() {
    for (name, mut campaign) in campaign::all() {
        if name.starts_with("search") {
            campaign.runs.insert(0, campaign.runs[0].clone());
        }
        let text = campaign_text(&campaign);
        let settings: Vec<String> = campaign
            .runs
            .iter()
            .filter_map(|run| run.setting)
            .map(|setting| setting.as_f64().to_string())
            .collect();
        for setting in &settings {
            let rows = text.lines().filter(|line| line.split_whitespace().next() == Some(setting)).count();
            assert!(rows <= 1, "{name}: {setting} {text}");
        }
        let again = settings.len() - settings.iter().collect::<std::collections::BTreeSet<_>>().len();
        let title = text.split_whitespace().take(20).collect::<Vec<_>>().join(" ");
        assert_eq!(again > 0, title.contains("discarded and made again"), "{name}: {text}");
    }
}

#[test]
fn comparisons() {
    for (name, comparison) in comparison::all() {
        let mut out = Vec::new();
        comparison.write_text(&PIPE, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        check_lines(name, &text);
        let mut line = Vec::new();
        brief::write_comparison(&comparison, &PIPE, &mut line).unwrap();
        let line = String::from_utf8(line).unwrap();
        let expected = ["finding", "runs", "p50", "p99", "p99.9", "mean", "rate", "hit", "why"];
        assert_eq!(keys(&line), expected, "{name}: {line}");
        let is_same = line.starts_with("finding=SAME ");
        assert_eq!(line.trim_end().ends_with("why=-"), is_same, "{name}: {line}");
        insta::assert_snapshot!(format!("short_compare_{name}"), text + &line);
    }
}
