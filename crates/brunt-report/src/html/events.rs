//! What happened beside answering: outages, faults of connections, replies that were errors. Absent where nothing did.

use super::markup::{Heading, Markup};
use crate::instant::in_window_ns;
use crate::quantity;
use crate::server;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_stats::summary::Summary;

/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 100;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    let (outages, faults, replies) = (outages(summary), faults(summary), replies(summary));
    if outages.is_empty() && faults.is_empty() && replies.is_empty() {
        return;
    }
    let (words, number) = (Heading::Words, Heading::Number);
    markup.raw("<section id=\"events\">\n<h2>Outages and errors</h2>\n");
    let headings = [
        words("server"),
        number("start/s"),
        number("down/s"),
        number("to 95 % rate/s"),
        number("failed"),
        words("kinds"),
    ];
    markup.table("Outages, from the beginning of the window", &headings, &outages);
    let headings = [words("fault"), words("phase"), number("count"), number("first at/s")];
    markup.table("Faults of connections", &headings, &faults);
    markup.table(
        "Replies that are errors, by their first word",
        &[words("reply"), number("count")],
        &replies,
    );
    let counts = summary.counts();
    let mut quoted = Vec::new();
    quoted
        .extend(counts.first_error.as_ref().map(|error| ("first error".to_owned(), vec![error.to_string()])));
    quoted.extend(counts.first_malformed.as_ref().map(|held| {
        ("no valid reply".to_owned(), vec![held.reason.to_string(), QuotedBytes(held.bytes()).to_string()])
    }));
    if !quoted.is_empty() {
        markup.facts(&quoted);
    }
    let others = summary.outages.len().saturating_sub(ROWS_MAX) as u64 + summary.outages_overflow();
    if others > 0 {
        markup.element("p", &format!("{others} more outages"));
    }
    markup.raw("</section>\n");
}

fn seconds(ns: i64) -> String {
    format!("{:+.3}", ns as f64 / 1e9)
}

fn outages(summary: &Summary) -> Vec<Vec<String>> {
    let length = |ns: u64| quantity::significant(ns as f64 / 1e9);
    let shown = summary.outages.iter().take(ROWS_MAX);
    let row = shown.map(|outage| {
        let recovery_ns = outage.recovered_ns.map(|at_ns| at_ns.saturating_sub(outage.start_ns));
        vec![
            server::name(summary, usize::from(outage.server)),
            seconds(in_window_ns(summary, outage.start_ns)),
            outage.length_ns().map_or("open".to_owned(), length),
            recovery_ns.map_or("-".to_owned(), length),
            outage.failed.to_string(),
            outage.kinds.names().collect::<Vec<_>>().join(", "),
        ]
    });
    row.collect()
}

fn faults(summary: &Summary) -> Vec<Vec<String>> {
    let rows = summary.faults().rows().iter().take(ROWS_MAX);
    let row = rows.map(|fault| {
        vec![
            fault.kind.name().replace('_', " "),
            fault.phase.name().to_owned(),
            fault.count.to_string(),
            seconds(in_window_ns(summary, fault.first_ns)),
        ]
    });
    row.collect()
}

fn replies(summary: &Summary) -> Vec<Vec<String>> {
    let rows = summary.counts().error_replies.rows();
    rows.into_iter().take(ROWS_MAX).map(|(word, count)| vec![word.to_owned(), count.to_string()]).collect()
}
