//! Every report names the client error by what it rests on.

use super::campaign::scan_of;
use super::output;
use super::run;
use super::text::{PIPE, report_of, text_of};
use crate::document::Level;
use crate::html::chart;
use crate::html::spectrum::{self, Spectrum};
use crate::subject::Subject;
use brunt_plan::plan::MeterKind;
use brunt_stats::recorder::Layout;
use brunt_stats::stack_delay::ClientBasis;
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;

fn summaries() -> [(ClientBasis, Summary); 3] {
    let clock = run::closed_loop().summary;
    let mut record = clock.record.clone();
    record.run.usage.counts_wake_ups = false;
    [
        (ClientBasis::Timestamps, run::open_loop().summary),
        (ClientBasis::Incomplete, Summary::build(record)),
        (ClientBasis::Clock, clock),
    ]
}

#[test]
fn client_errors_are_named_by_what_they_rest_on() {
    for (basis, summary) in summaries() {
        assert_eq!(summary.client_basis(), basis);
        let [row, label, symbol, words, key] = match basis {
            ClientBasis::Timestamps => {
                ["client ~", "client<~", "≲", "estimated part of the client", "timestamps"]
            }
            ClientBasis::Clock => ["client <=", "client<=", "≤", "upper bound of the client's part", "clock"],
            ClientBasis::Incomplete => {
                ["client ~", "client<=?", "≤?", "incomplete bound of the client's part", "incomplete"]
            }
        };
        let json = serde_json::to_value(crate::json::ResultTree::of(&summary).unwrap()).unwrap();
        assert_eq!(json["latency"]["client_basis"], key);
        let scan = scan_of(&summary);
        let chart = spectrum::chart(&[Spectrum::of("", &summary).unwrap()], true);
        let keys = chart::keys(&[chart]).into_iter().map(|key| key.name).collect::<Vec<_>>();
        // document, its text, what it says
        let table = [
            ("text", text_of(&summary, &PIPE), format!("\n  {row} ")),
            ("details", report_of(&summary, &PIPE, Level::Long), format!("its part      {words}")),
            (
                "page",
                output(|out| crate::html::write(&summary, out)),
                format!("{symbol} the {}.</p>", words.replace('\'', "&#39;")),
            ),
            ("keys of pages and figures", keys.join("\n"), format!("\n{words}\n")),
            (
                "scan's details",
                output(|out| Subject::Campaign(&scan).write_text(&PIPE, Level::Long, out)),
                format!(" {label},us "),
            ),
        ];
        for (name, text, expected) in table {
            assert!(text.contains(&expected), "{basis:?}, {name}: no {expected:?} in\n{text}");
        }
    }
}

/// What the label rests on, and why on no more.
#[test]
fn reports_say_why_there_are_no_timestamps() {
    let table = [
        (
            Some("only plain TCP has them"),
            true,
            "no kernel timestamps: only plain TCP has them wake-ups 52.0 us",
        ),
        (None, true, "no kernel timestamps wake-ups 52.0 us"),
        (None, false, "kernel timestamps of 0 requests, 20 needed one wake-up 52.0 us"),
    ];
    for (reason, counts_wake_ups, expected) in table {
        let mut record = run::closed_loop().summary.record;
        record.run.usage.timestamps_reason = reason.map(str::to_owned);
        record.run.usage.counts_wake_ups = counts_wake_ups;
        let summary = Summary::build(record);
        let text = report_of(&summary, &PIPE, Level::Long);
        let words = text.split_whitespace().filter(|word| *word != "·").collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "no {expected:?} in\n{text}");
    }
}

/// A quantity that rests on timestamps, without any.
#[test]
fn meters_without_timestamps_say_why() {
    let mut record = run::closed_loop().summary.record;
    record.plan.meters = vec![MeterKind::StackOut];
    record.run.usage.timestamps_reason = Some("only plain TCP has them".to_owned());
    record.run.intervals = IntervalStore::new(&Layout::of(&record.plan));
    let details = report_of(&Summary::build(record), &PIPE, Level::Long);
    let row = details.lines().find(|line| line.starts_with("meters ")).unwrap();
    assert!(row.contains("  no kernel timestamps: only plain TCP has them · "), "{row}");
}
