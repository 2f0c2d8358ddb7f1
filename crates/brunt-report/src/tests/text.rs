//! Short reports of campaigns and comparisons as snapshots, and their rules; what tests of reports share.

use super::{campaign, comparison, output, run};
use crate::campaign::Campaign;
use crate::document::Level;
use crate::layout::Layout;
use crate::subject::Subject;
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
    report_of(summary, layout, Level::Short)
}

pub(super) fn report_of(summary: &Summary, layout: &Layout, level: Level) -> String {
    output(|out| Subject::Run(summary).write_text(layout, level, out))
}

/// What holds of every report in a pipe.
pub(super) fn check_lines(name: &str, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{name}: {line:?} is too long");
        assert!(line == line.trim_end(), "{name}: {line:?} ends in white space");
        assert!(!line.contains(char::is_control), "{name}: {line:?} steers the terminal");
    }
    assert!(!text.contains("\n\n\n") && !text.starts_with('\n') && !text.ends_with("\n\n"), "{name}: {text}");
}

pub(super) fn keys(line: &str) -> Vec<&str> {
    line.split_whitespace().map(|pair| pair.split_once('=').unwrap().0).collect()
}

fn campaign_text(campaign: &Campaign) -> String {
    let subject = Subject::Campaign(campaign);
    output(|out| subject.write_text(&PIPE, Level::Short, out))
        + &output(|out| subject.write_brief(&PIPE, out))
}

#[test]
fn campaigns() {
    for (name, campaign) in campaign::all() {
        let text = campaign_text(&campaign);
        let (report, line) = text.trim_end().rsplit_once('\n').unwrap();
        check_lines(name, report);
        assert_eq!(keys(line)[..2], ["status", "runs"], "{name}: {line}");
        insta::assert_snapshot!(format!("short_{name}"), text);
    }
}

/// The percentiles that were requested, and the p99, on which the knee rests.
#[test]
fn tables_of_campaigns_have_the_requested_percentiles() {
    let summary = run::long(30, "percentiles = '75,90'").summary;
    let headings = |campaign: &Campaign| {
        let text = campaign_text(campaign);
        let (report, _) = text.trim_end().rsplit_once('\n').unwrap();
        assert!(report.lines().all(|line| line.chars().count() <= 80), "{text}");
        let heading = text.lines().find(|line| line.contains("done/s") && line.contains("p99,")).unwrap();
        heading.split_whitespace().filter(|word| word.starts_with('p')).collect::<Vec<_>>().join(" ")
    };
    for (name, campaign) in campaign::all().into_iter().filter(|(name, _)| !name.starts_with("search")) {
        let campaign = Campaign { first: summary.clone(), ..campaign };
        let wanted = headings(&campaign);
        assert!(wanted.starts_with("p75,") && wanted.contains(" p90,"), "{name}: {wanted}");
        assert!(wanted.contains(" p99,") && !wanted.contains("p50,"), "{name}: {wanted}");
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
        let places: Vec<String> = campaign.runs.iter().map(|run| format!("{:?}", run.place)).collect();
        for setting in campaign.runs.iter().filter_map(|run| run.place.setting) {
            let setting = setting.as_f64().to_string();
            let rows = text.lines().filter(|line| line.split_whitespace().next() == Some(&setting)).count();
            assert!(rows <= 1, "{name}: {setting} {text}");
        }
        // A repetition is another pass, and runs in pairs are made again on purpose.
        let steps: Vec<&String> =
            places.iter().filter(|place| place.contains("Some") && place.contains("Step")).collect();
        let again = steps.len() - steps.iter().collect::<std::collections::BTreeSet<_>>().len();
        let title = text.split_whitespace().take(20).collect::<Vec<_>>().join(" ");
        assert_eq!(again > 0, title.contains("discarded and made again"), "{name}: {text}");
    }
}

#[test]
fn comparisons() {
    for (name, comparison) in comparison::all() {
        let text = output(|out| Subject::Comparison(&comparison).write_text(&PIPE, Level::Short, out));
        check_lines(name, &text);
        let line = output(|out| Subject::Comparison(&comparison).write_brief(&PIPE, out));
        let expected = ["finding", "runs", "p50", "p99", "p99.9", "mean", "rate", "hit", "why"];
        assert_eq!(keys(&line), expected, "{name}: {line}");
        let is_same = line.starts_with("finding=SAME ");
        assert_eq!(line.trim_end().ends_with("why=-"), is_same, "{name}: {line}");
        insta::assert_snapshot!(format!("short_compare_{name}"), text + &line);
    }
}
