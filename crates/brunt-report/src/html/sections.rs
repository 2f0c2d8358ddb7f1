//! The sections of a run's page that have no chart: the head, what may be quoted, what happened beside answering, what became of requests,
//! and what the numbers rest on.
//!
//! Invariant: their blocks are those of the report, whichever of its lengths has them.

use super::document::{self, Standing};
use super::markup::Markup;
use crate::assertion_text::AssertionText;
use crate::document::{Document, Level};
use crate::instant;
use crate::layout::Layout;
use crate::run_document::{
    accounting as counts, client, conclusion, events as incidents, fact_lines, head as run_head, servers,
};
use brunt_plan::outcome::OutcomeClass;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::summary::Summary;

/// Rows of the table of servers; JSON has all.
const ROWS_MAX: usize = 32;
/// Servers that are named.
const SERVERS_MAX: usize = 16;
/// A plan of more bytes, such as one of a thousand servers, is cut.
const PLAN_BYTES_MAX: usize = 16_000;
/// Characters of a line of such a plan.
const PLAN_LINE_MAX: usize = 1_000;

/// The status and the run.
pub(super) fn head(markup: &mut Markup, summary: &Summary) {
    let mut lines = run_head::lines(summary);
    let labels = &summary.record.plan.labels;
    lines.extend(instant::of_run(summary, summary.window.measure_ns).map(|instant| {
        // To the second.
        let second = instant.split_once('.').map_or(instant.clone(), |(second, _)| format!("{second}Z"));
        ("date".to_owned(), vec![second.replace('T', " ").replace('Z', " UTC")])
    }));
    lines.push((
        "labels".to_owned(),
        labels.iter().map(|label| format!("{}={}", label.key, label.value)).collect(),
    ));
    document::header(markup, Standing::of(summary.status.status), &summary.status.headline(), &lines);
}

/// Leads from the status to all checks, on a page that has [`environment`].
pub(super) const LINK_TO_CHECKS: &str = "<p><a href=\"#checks\">All checks</a></p>\n";

/// The sentences of the status, a link to what they rest on or nothing, what was asserted, and where the slowest spent their time.
pub(super) fn answer(markup: &mut Markup, summary: &Summary, link: &'static str) {
    markup.raw("<section id=\"answer\">\n<h2>What may be quoted</h2>\n");
    markup.document(&Document::of(|document| conclusion::status(document, &summary.status)));
    markup.raw(link);
    let asserted = summary.assertions.iter().map(AssertionText::of);
    markup.document(&Document::of(|document| document.assertions(asserted)));
    markup.raw("</section>\n");
}

/// Outages, faults of connections, replies that were errors. Absent where nothing happened.
pub(super) fn events(markup: &mut Markup, summary: &Summary) {
    let document = Document::of(|document| {
        incidents::part(document, summary);
        counts::replies(document, summary);
    });
    if document.is_empty(Level::Long) {
        return;
    }
    markup.raw("<section id=\"events\">\n<h2>Outages and errors</h2>\n");
    markup.document(&document);
    markup.raw("</section>\n");
}

/// What became of every request and key, server by server, and what the servers counted beside what brunt did.
pub(super) fn accounting(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"accounting\">\n<h2>Request accounting</h2>\n");
    equations(markup, summary);
    markup.document(&Document::of(|document| {
        for (label, _, facts) in fact_lines(summary) {
            if !["requests", "client"].contains(&label) {
                document.facts(label, facts);
            }
        }
        if summary.servers().len() > 1 {
            document.table(servers::server_table(summary, ROWS_MAX));
        }
        document.table(servers::agreement(summary));
    }));
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
    let otherwise = counts::outcomes(requests).into_iter().filter(|(name, _)| *name != "never sent");
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

/// What the numbers rest on: the client, every check, the host, the plan that repeats the run, and how to read the page.
pub(super) fn environment(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"client\">\n<h2>Client and checks</h2>\n");
    markup.document(&Document::of(|document| client::part(document, summary, &Layout::default())));
    markup.raw("<div id=\"checks\">\n");
    markup.document(&Document::of(|document| conclusion::checks(document, summary)));
    markup.raw("</div>\n");
    markup.raw("</section>\n<section id=\"plan\">\n<h2>Plan</h2>\n");
    plan(markup, &summary.record.plan.spec.to_toml());
    markup.raw("</section>\n<section id=\"host\">\n<h2>Environment</h2>\n");
    let environment = &summary.record.environment;
    let mut facts = vec![
        ("brunt".to_owned(), vec![environment.brunt_version.clone()]),
        ("host".to_owned(), vec![environment.host.clone()]),
        ("server".to_owned(), vec![server(summary)]),
    ];
    facts.extend(environment.facts.iter().map(|(name, fact)| (name.clone(), vec![fact.clone()])));
    facts.retain(|(_, facts)| facts.iter().any(|fact| !fact.is_empty()));
    markup.facts(&facts);
    markup.raw(include_str!("reading.html"));
    markup.raw("</section>\n");
}

fn plan(markup: &mut Markup, toml: &str) {
    if toml.len() <= PLAN_BYTES_MAX {
        markup.raw(
            "<p>Save as plan.toml; <code>brunt run plan.toml</code> repeats the run.</p>\n<pre id=\"toml\">",
        );
        markup.lines(toml);
    } else {
        markup.raw("<p>The plan is too long for a page. The JSON result has all of it.</p>\n<pre>");
        markup.lines(&cut(toml));
    }
    markup.raw("</pre>\n");
}

/// The beginning of each line, and no more lines than there is room for.
fn cut(toml: &str) -> String {
    let line = |line: &str| match line.char_indices().nth(PLAN_LINE_MAX) {
        None => format!("{line}\n"),
        Some((end, _)) => {
            let count = line[end..].chars().count();
            format!("{}… and {count} more characters, all in the JSON\n", &line[..end])
        }
    };
    let mut room = PLAN_BYTES_MAX;
    let fits = |line: &String| {
        room = room.saturating_sub(line.len());
        room > 0
    };
    let mut lines: Vec<String> = toml.lines().map(line).take_while(fits).collect();
    let others = toml.lines().count() - lines.len();
    lines.extend((others > 0).then(|| format!("… and {others} more lines, all in the JSON\n")));
    lines.concat()
}

/// The name of the server; of many, how many there are, as the plan names them.
fn server(summary: &Summary) -> String {
    match summary.servers().len() {
        count if count > SERVERS_MAX => format!("{count} servers, named in the plan"),
        _ => summary.record.server.clone(),
    }
}
