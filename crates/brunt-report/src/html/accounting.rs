//! What became of every request and key, server by server, and what the servers counted beside what brunt did.

use super::markup::{Heading, Markup};
use crate::quantity;
use crate::text::accounting::lines;
use crate::text::events::server_lines;
use crate::text::latency::rate;
use brunt_plan::outcome::OutcomeClass;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::summary::Summary;

/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 32;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"accounting\">\n<h2>Request accounting</h2>\n");
    equations(markup, summary);
    let facts = lines(summary).into_iter().filter(|(label, ..)| !["books", "client"].contains(label));
    let facts: Vec<_> = facts.map(|(label, _, facts)| (label.to_owned(), facts)).collect();
    markup.facts(&facts);
    servers(markup, summary);
    agreement(markup, summary);
    markup.raw("</section>\n");
}

/// Every due request is in exactly one outcome.
fn equations(markup: &mut Markup, summary: &Summary) {
    let requests = &summary.total.requests;
    let outcome = |class| requests.outcome(class);
    let RequestCounts { scheduled, sent, unsent, abandoned, in_flight, .. } = requests;
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
        ("rejected", outcome(OutcomeClass::Rejected)),
        ("error replies", outcome(OutcomeClass::Error)),
        ("timed out", outcome(OutcomeClass::Timeout)),
        ("wrong values", outcome(OutcomeClass::Mismatch)),
        ("lost with their connection", outcome(OutcomeClass::Lost)),
        ("without a reply asked for", outcome(OutcomeClass::Unacknowledged)),
        ("in flight at the end", *in_flight),
    ];
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

fn servers(markup: &mut Markup, summary: &Summary) {
    if summary.servers().len() < 2 {
        return;
    }
    let lines = server_lines(summary, ROWS_MAX);
    let all: f64 = lines.iter().map(|line| line.done_per_s).sum();
    let rows: Vec<Vec<String>> = lines
        .into_iter()
        .map(|line| {
            let share =
                if all > 0.0 { format!("{:.1}", 100.0 * line.done_per_s / all) } else { "-".to_owned() };
            vec![
                line.name,
                share,
                rate(line.done_per_s),
                (line.counts.failed + line.counts.abandoned).to_string(),
                line.counts.redirected.to_string(),
                line.cpu_ns.map_or("-".to_owned(), |ns| quantity::significant(ns / 1e3)),
            ]
        })
        .collect();
    let headings = ["share%", "done/s", "failed", "redirected", "CPU us/request"].map(Heading::Number);
    let count = summary.servers().len();
    let caption = match count.checked_sub(rows.len()) {
        // The last row is of all that have none.
        Some(others) if others > 0 => format!("Servers, and {} more together, all in the JSON", others + 1),
        _ => "Servers".to_owned(),
    };
    markup.table(&caption, &[&[Heading::Words("server")][..], &headings].concat(), &rows);
}

/// Where the servers counted something else, first.
fn agreement(markup: &mut Markup, summary: &Summary) {
    let mut held: Vec<_> = summary.agreement.iter().filter(|held| held.most + held.counted > 0).collect();
    held.sort_by_key(|held| held.difference() == 0);
    let rows: Vec<Vec<String>> = held
        .into_iter()
        .map(|held| {
            let ours = match held.least == held.most {
                true => held.most.to_string(),
                false => format!("{} to {}", held.least, held.most),
            };
            vec![
                held.statistic.name().to_owned(),
                ours,
                held.counted.to_string(),
                held.difference().to_string(),
            ]
        })
        .collect();
    let headings = ["brunt counted", "servers counted", "difference"].map(Heading::Number);
    markup.table("Counters of the servers", &[&[Heading::Words("statistic")][..], &headings].concat(), &rows);
}
