//! What became of every request and key, server by server, and what the servers counted beside what brunt did.

use super::markup::Markup;
use crate::document::Document;
use crate::run_document::{accounting, fact_lines, servers};
use brunt_plan::outcome::OutcomeClass;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::summary::Summary;

/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 32;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"accounting\">\n<h2>Request accounting</h2>\n");
    equations(markup, summary);
    let mut document = Document::default();
    for (label, _, facts) in fact_lines(summary) {
        if !["requests", "client"].contains(&label) {
            document.facts(label, facts);
        }
    }
    if summary.servers().len() > 1 {
        document.table(servers::server_table(summary, ROWS_MAX));
    }
    document.table(servers::agreement(summary));
    markup.document(&document);
    markup.raw("</section>\n");
}

/// Every due request is in exactly one outcome.
fn equations(markup: &mut Markup, summary: &Summary) {
    let requests = &summary.total.requests;
    let outcome = |class| requests.outcome(class);
    let RequestCounts { scheduled, sent, unsent, abandoned, .. } = requests;
    let sum = |whole: &str, number: u64, parts: &[(&str, u64)]| {
        let parts = parts.iter().filter(|(_, number)| *number > 0);
        let parts: Vec<String> = parts.map(|(name, number)| format!("{number} {name}")).collect();
        let parts = if parts.is_empty() { "0".to_owned() } else { parts.join(" + ") };
        (whole.to_owned(), vec![format!("{number} = {parts}")])
    };
    let ended = [
        ("hit", outcome(OutcomeClass::Hit)),
        ("missed", outcome(OutcomeClass::Miss)),
        ("done", outcome(OutcomeClass::Done)),
    ];
    let otherwise = accounting::outcomes(requests).into_iter().filter(|(name, _)| *name != "never sent");
    let ended: Vec<(&str, u64)> = ended.into_iter().chain(otherwise).collect();
    let keys = &summary.total.keys;
    let never = [
        ("sent", *sent),
        ("abandoned while a server was down", *abandoned),
        ("never sent", unsent - abandoned),
    ];
    let mut rows = vec![sum("due in the window", *scheduled, &never), sum("sent", *sent, &ended)];
    if keys.requested > 0 {
        let parts = [("hit", keys.hit), ("missed", keys.miss), ("failed", keys.failed)];
        rows.push(sum("keys requested", keys.requested, &parts));
    }
    markup.facts(&rows);
}
