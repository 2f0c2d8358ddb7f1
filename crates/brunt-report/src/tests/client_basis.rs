//! Every report names the client error by what it rests on.

use super::campaign::scan_of;
use super::run;
use super::text::{PIPE, text_of};
use crate::html::spectrum::Spectrum;
use brunt_stats::client_basis::ClientBasis;
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

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn client_errors_are_named_by_what_they_rest_on() {
    for (basis, summary) in summaries() {
        assert_eq!(summary.client_basis(), basis);
        let [label, sign, symbol, words, key] = match basis {
            ClientBasis::Timestamps => ["client<~", "<~", "≲", "estimated part of the client", "timestamps"],
            ClientBasis::Clock => ["client<=", "<=", "≤", "upper bound of the client's part", "clock"],
            ClientBasis::Incomplete => {
                ["client<=?", "<=?", "≤?", "incomplete bound of the client's part", "incomplete"]
            }
        };
        let json = crate::json::value(&summary).unwrap();
        assert_eq!(json["client_error_basis"], key);
        let scan = scan_of(&summary);
        let keys = Spectrum::of(&summary).unwrap().keys().into_iter().map(|key| key.name).collect::<Vec<_>>();
        // document, its text, what it says
        let table = [
            ("text", text_of(&summary, &PIPE), format!("\n  {label} ")),
            (
                "details",
                written(|out| crate::details::write(&summary, out).unwrap()),
                format!("  client error {sign} "),
            ),
            (
                "page",
                written(|out| crate::html::write(&summary, out).unwrap()),
                format!("{symbol} the {}.</p>", words.replace('\'', "&#39;")),
            ),
            ("keys of pages and figures", keys.join("\n"), format!("\n{words}\n")),
            (
                "scan",
                written(|out| crate::campaign::write_text(&scan, &PIPE, out).unwrap()),
                format!(" {label} "),
            ),
            (
                "scan's details",
                written(|out| crate::campaign::write_details(&scan, out).unwrap()),
                format!(" client error {sign} "),
            ),
        ];
        for (name, text, expected) in table {
            assert!(text.contains(&expected), "{basis:?}, {name}: no {expected:?} in\n{text}");
        }
    }
}
