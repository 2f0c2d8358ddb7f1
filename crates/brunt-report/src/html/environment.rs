//! What the numbers rest on: the client, every check, the host, the plan that repeats the run, and how to read the page.

use super::markup::Markup;
use crate::document::Document;
use crate::layout::Layout;
use crate::run_document::{client, conclusion};
use brunt_stats::summary::Summary;

/// Servers that are named.
const SERVERS_MAX: usize = 16;
/// A plan of more bytes, such as one of a thousand servers, is cut.
const PLAN_BYTES_MAX: usize = 16_000;
/// Characters of a line of such a plan.
const PLAN_LINE_MAX: usize = 1_000;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"client\">\n<h2>Client and checks</h2>\n");
    let mut document = Document::default();
    client::part(&mut document, summary, &Layout::default());
    markup.document(&document);
    markup.raw("<div id=\"checks\">\n");
    let mut document = Document::default();
    conclusion::checks(&mut document, summary);
    markup.document(&document);
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
