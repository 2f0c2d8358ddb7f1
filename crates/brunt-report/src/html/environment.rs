//! What the numbers rest on: the client, every check, the host, the plan that repeats the run, and how to read the page.

use super::markup::{Heading, Markup};
use crate::quantity;
use crate::text::accounting::lines;
use brunt_plan::spec::PlanSpec;
use brunt_stats::check::Check;
use brunt_stats::summary::Summary;
use brunt_stats::usage::WorkerUsage;

/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 64;
/// Servers that are named.
const SERVERS_MAX: usize = 16;
/// A plan of more bytes, such as one of a thousand servers, is cut.
const PLAN_BYTES_MAX: usize = 16_000;
/// Characters of a line of such a plan.
const PLAN_LINE_MAX: usize = 1_000;

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"client\">\n<h2>Client and checks</h2>\n");
    let client = lines(summary).into_iter().filter(|(label, ..)| *label == "client");
    let mut facts: Vec<_> = client.map(|(label, _, facts)| (label.to_owned(), facts)).collect();
    let usage = &summary.record.run.usage;
    let io = [Some(usage.io.clone()), usage.io_reason.clone(), Some(format!("wait {}", usage.wait))];
    facts.push(("setup".to_owned(), io.into_iter().flatten().filter(|fact| !fact.is_empty()).collect()));
    markup.facts(&facts);
    workers(markup, &usage.workers);
    checks(markup, summary);
    markup.raw("</section>\n<section id=\"plan\">\n<h2>Plan</h2>\n");
    plan(markup, &PlanSpec::from(&summary.record.plan).to_toml());
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

fn workers(markup: &mut Markup, workers: &[WorkerUsage]) {
    let percent = |ns: u64, worker: &WorkerUsage| format!("{:.1}", 100.0 * ns as f64 / worker.wall_ns as f64);
    let observed = workers.iter().filter(|worker| worker.wall_ns > 0).take(ROWS_MAX);
    let rows: Vec<Vec<String>> = observed
        .map(|worker| {
            vec![
                worker.worker.to_string(),
                percent(worker.busy_ns, worker),
                percent(worker.cpu_ns, worker),
                worker.run_delay_ns.map_or("-".to_owned(), |ns| percent(ns, worker)),
                worker.involuntary_switches.to_string(),
                worker.stalls.count.to_string(),
                quantity::time(worker.stalls.longest_ns),
            ]
        })
        .collect();
    let headings = ["busy%", "CPU%", "waiting for a CPU%", "preempted", "stalls", "longest stall"];
    markup.table(
        "Workers in the measured window",
        &[&[Heading::Words("worker")][..], &headings.map(Heading::Number)].concat(),
        &rows,
    );
}

/// Every check: those that found something first.
fn checks(markup: &mut Markup, summary: &Summary) {
    let mut checks: Vec<_> = summary.status.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.status));
    let row = |check: &Check| {
        vec![
            check.id.name().to_owned(),
            check.status.name().to_owned(),
            check.message.clone(),
            check.fix.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = checks.into_iter().map(row).collect();
    markup.raw("<div id=\"checks\">\n");
    let headings = ["check", "outcome", "found", "what helps"].map(Heading::Words);
    markup.table("Checks", &headings, &rows);
    markup.raw("</div>\n");
}
