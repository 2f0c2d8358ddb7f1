//! A result as one HTML page: everything that the report has, as tables and as charts that a browser draws.
//!
//! Complete without script, in print, and without a network: the page asks for nothing. Its script adds a cursor, zooming, and switches;
//! whatever it shows is in the tables of the page. Invariants: the same summary always gives the same bytes; a page has a bounded size,
//! however long the run; nothing that a user or a server wrote reaches the page but as escaped text.

pub(crate) mod chart;
pub(crate) mod over_time;
pub(crate) mod page;
pub(crate) mod several;
pub(crate) mod spectrum;

use crate::assertion_text::AssertionText;
use crate::document::{Document, Level};
use crate::grid::Grid;
use crate::instant;
use crate::json::ResultTree;
use crate::layout::Layout;
use crate::live::State;
use crate::quantity::counted;
use crate::run_document::latency::Row;
use crate::run_document::latency::rows;
use crate::run_document::latency::{full_tables, is_unbounded};
use crate::run_document::{
    accounting as counts, client, conclusion, events as incidents, fact_lines, head as run_head,
    hosts as host_rows, servers,
};
use brunt_picture::{Area, Fill, Ink, Picture, Scale, Stroke, Texture};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_stats::agent_requests::AgentRequests;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::request_counts::RequestCounts;
use brunt_stats::summary::Summary;
use over_time::Columns;
pub use over_time::column_counts;
use page::Markup;
pub use page::Page;
pub use several::RESULTS_MAX;
use std::io::{self, Write};

/// Sections and result together, where rows are not as many as the user wants: with style and script they are the page.
const CONTENT_BYTES_MAX: usize = 219_000;
/// Columns over time of a run that goes on: fewer than a result has, as they are sent once a second.
const LIVE_COLUMNS_MAX: u64 = 100;
/// Leads from the status to all checks.
const LINK_TO_CHECKS: &str = "<p><a href=\"#checks\">All checks</a></p>\n";

/// Writes the page of a run.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    head(&mut markup, summary);
    answer(&mut markup, summary, LINK_TO_CHECKS);
    latency(&mut markup, summary);
    spectrum::section(&mut markup, &[("", summary)]);
    over_time::section(&mut markup, summary, Columns::max_of(summary));
    spectrum::by_op(&mut markup, summary);
    events(&mut markup, summary);
    accounting(&mut markup, summary);
    hosts(&mut markup, summary);
    environment(&mut markup, summary);
    let mut result = page::packed(&ResultTree::with_intervals(summary)?)?;
    let sections = markup.into_text();
    let is_long = summary.record.plan.interval.is_none() && sections.len() + result.len() > CONTENT_BYTES_MAX;
    if is_long {
        result.clear();
    }
    let title = summary.status.headline();
    let foot = format!("{title} · seed {}", summary.record.plan.seed);
    Page { title, foot, sections, result, is_live: false }.write(out)
}

impl Page {
    /// That of a run while it goes on, or that none has begun: the sections of its result's page that can be drawn already, made by the same
    /// code. The result's page takes its place in the end; what is said of the run so far is called so. The label says which run of its command
    /// it is; it may be empty.
    pub fn live(state: State<'_>, label: &str) -> Self {
        let (title, summary) = (live_title(state, label), state.summary());
        let mut markup = Markup::default();
        let facts = summary.map(run_head::load_lines).unwrap_or_default();
        page::header(&mut markup, None, &title, &facts);
        if let Some(summary) = summary {
            if summary.total.latency.response.summary.count > 0 {
                answer(&mut markup, summary, "");
                latency(&mut markup, summary);
                spectrum::section(&mut markup, &[("", summary)]);
            }
            if summary.window.drained_ns > summary.window.start_ns {
                over_time::section(&mut markup, summary, LIVE_COLUMNS_MAX);
            }
            spectrum::by_op(&mut markup, summary);
            events(&mut markup, summary);
        }
        let (foot, sections) = (title.clone(), markup.into_text());
        Self { title, foot, sections, result: String::new(), is_live: true }
    }
}

/// `running: measure, 34 of 60 s, so far OK: p50 to p99 may be quoted.`.
fn live_title(state: State<'_>, label: &str) -> String {
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    match state {
        State::Starting => "no run has begun".to_owned(),
        State::Failed(_) => format!("{label}no result: the run failed"),
        State::Ended(summary) => format!("{label}{}", summary.status.headline()),
        State::Running(so_far) => {
            let is_measured = |summary: &&Summary| summary.total.latency.response.summary.count > 0;
            let measured = Some(so_far.summary()).filter(is_measured);
            let status = measured.map(|summary| format!(", so far {}", summary.status.headline()));
            let (phase, times, status) = (so_far.phase.name(), times(so_far), status.unwrap_or_default());
            format!("{label}running: {phase}{times}{status}")
        }
    }
}

/// How long warm-up or window have lasted, of how long where that is known.
fn times(so_far: &RunSoFar) -> String {
    let Some(window) = so_far.window else { return String::new() };
    let (from_ns, end_ns) = match so_far.phase {
        Phase::Warmup => (window.start_ns, window.measure_ns),
        Phase::Measure => (window.measure_ns, window.end_ns),
        _ => return String::new(),
    };
    let seconds = |ns: u64| format!("{:.0}", ns as f64 / 1e9);
    let elapsed = seconds(so_far.at_ns.saturating_sub(from_ns));
    match end_ns {
        u64::MAX => format!(", {elapsed} s"),
        end_ns => format!(", {elapsed} of {} s", seconds(end_ns - from_ns)),
    }
}

// ---- sections that are no charts ----------------------------------------------------------------------------------------

/// Rows of the table of servers; JSON has all.
const ROWS_MAX: usize = 32;
/// Servers that are named.
const SERVERS_MAX: usize = 16;
/// Bytes of a plan that is shown, and characters of a line of a longer one, such as that of a thousand servers.
const PLAN_MAX: usize = 16_000;
const PLAN_LINE_MAX: usize = 1_000;

/// The status and the run.
fn head(markup: &mut Markup, summary: &Summary) {
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
    page::header(markup, Some(summary.status.status), &summary.status.headline(), &lines);
}

/// The sentences of the status, a link to what they rest on or nothing, and what was asserted.
fn answer(markup: &mut Markup, summary: &Summary, link: &'static str) {
    markup.section("answer", "What may be quoted", |markup| {
        markup.document(&Document::of(|document| conclusion::status(document, &summary.status)));
        markup.raw(link);
        let asserted = summary.assertions.iter().map(AssertionText::of);
        markup.document(&Document::of(|document| document.assertions(asserted)));
    });
}

/// Outages, faults of connections, replies that were errors. Absent where nothing happened.
fn events(markup: &mut Markup, summary: &Summary) {
    let document = Document::of(|document| {
        incidents::part(document, summary);
        counts::replies(document, summary);
    });
    if !document.is_empty(Level::Long) {
        markup.section("events", "Outages and errors", |markup| markup.document(&document));
    }
}

/// What became of every request and key, server by server, and what the servers counted beside what brunt did.
fn accounting(markup: &mut Markup, summary: &Summary) {
    let document = Document::of(|document| {
        equations(document, summary);
        // A list of its own.
        document.gap();
        for (label, _, facts) in fact_lines(summary) {
            if !["requests", "client"].contains(&label) {
                document.facts(label, facts);
            }
        }
        if summary.servers().len() > 1 {
            document.table(servers::server_table(summary, ROWS_MAX));
        }
        document.table(servers::agreement(summary));
    });
    markup.section("accounting", "Request accounting", |markup| markup.document(&document));
}

/// Hosts of a run that has several, the worst first: a row each, in which a strip has their p50 to their maximum and a tick at the p99.
fn hosts(markup: &mut Markup, summary: &Summary) {
    let hosts = summary.hosts();
    if hosts.is_empty() {
        return;
    }
    let strips: Vec<Option<Whisker>> = hosts.iter().map(|row| Whisker::of_host(&row.requests)).collect();
    let (axis_ns, (grid, more)) =
        (axis_of(strips.iter().flatten()), host_rows::table(&hosts, &Layout::default()));
    markup.section("hosts", "Hosts", |markup| {
        markup.raw("<p>The worst first. Strips go from the p50 to the longest response, on one axis; the tick is the p99.</p>\n");
        markup.raw("<div class=\"wide\"><table aria-label=Hosts>");
        markup.rows(&grid, |markup, row, index, cell, is_words| {
            markup.raw(if index == 0 { "<tr><th scope=row>" } else if is_words { "<td class=words>" } else { "<td>" });
            markup.text(cell);
            if let (0, Some(strip)) = (index, &strips[row]) {
                draw_whisker(markup, strip, axis_ns);
            }
        });
        markup.raw("</table></div>\n");
        more.iter().for_each(|more| markup.element("p", more));
    });
}

/// Every due request is in exactly one outcome.
fn equations(document: &mut Document, summary: &Summary) {
    let requests = &summary.total.requests;
    let outcome = |class| requests.outcome(class);
    let RequestCounts { scheduled, sent, unsent, abandoned, .. } = requests;
    let mut sum = |whole: &str, number: u64, parts: &[(&str, u64)]| {
        let parts: Vec<String> = counted(parts.iter().copied()).collect();
        let parts = if parts.is_empty() { "0".to_owned() } else { parts.join(" + ") };
        document.facts(whole, vec![format!("{number} = {parts}")]);
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
    sum("due in the window", *scheduled, &never);
    sum("sent", *sent, &ended);
    if keys.requested > 0 {
        let parts = [("hit", keys.hit), ("missed", keys.miss), ("failed", keys.failed)];
        sum("keys requested", keys.requested, &parts);
    }
}

/// What the numbers rest on: the client, every check, the host, the plan that repeats the run, and how to read the page.
fn environment(markup: &mut Markup, summary: &Summary) {
    markup.section("client", "Client and checks", |markup| {
        markup.document(&Document::of(|document| client::part(document, summary, &Layout::default())));
        markup.raw("<div id=\"checks\">\n");
        markup.document(&Document::of(|document| conclusion::checks(document, summary)));
        markup.raw("</div>\n");
    });
    markup.section("plan", "Plan", |markup| plan(markup, &summary.record.plan.spec.to_toml()));
    markup.section("host", "Environment", |markup| {
        let environment = &summary.record.environment;
        let own = [
            ("brunt", environment.brunt_version.clone()),
            ("host", environment.host.clone()),
            ("server", server(summary)),
        ];
        let own = own.map(|(name, fact)| (name.to_owned(), fact));
        let facts = own.into_iter().chain(environment.facts.iter().cloned());
        let facts = facts.filter(|(_, fact)| !fact.is_empty()).map(|(name, fact)| (name, vec![fact]));
        markup.facts(&facts.collect::<Vec<_>>());
        markup.raw(include_str!("html/reading.html"));
    });
}

fn plan(markup: &mut Markup, toml: &str) {
    if toml.len() <= PLAN_MAX {
        markup.raw(
            "<p>Save as plan.toml; <code>brunt run plan.toml</code> repeats the run.</p>\n<pre id=\"toml\">",
        );
        markup.lines(toml);
    } else {
        markup.raw("<p>The plan is too long for a page. The JSON result has all of it.</p>\n<pre>");
        let mut shown = String::new();
        for (index, line) in toml.lines().enumerate() {
            let line = match line.chars().count().saturating_sub(PLAN_LINE_MAX) {
                0 => format!("{line}\n"),
                more => {
                    let kept: String = line.chars().take(PLAN_LINE_MAX).collect();
                    format!("{kept}… and {more} more characters, all in the JSON\n")
                }
            };
            if shown.len() + line.len() > PLAN_MAX {
                shown += &format!("… and {} more lines, all in the JSON\n", toml.lines().count() - index);
                break;
            }
            shown += &line;
        }
        markup.lines(&shown);
    }
    markup.raw("</pre>\n");
}

/// The name of the server; of many, how many there are, as the plan names them.
fn server(summary: &Summary) -> String {
    match summary.servers().len() {
        count if count > SERVERS_MAX => format!("{count} servers, named in the plan"),
        _ => summary.record.server.clone(),
    }
}

// ---- the table of latencies ---------------------------------------------------------------------------------------------

const WIDTH: f64 = 84.0;
const HEIGHT: f64 = 12.0;
const CLIENT: Fill = Fill::textured(Ink::Soft, Texture::Hatched);

/// The table of latencies.
fn latency(markup: &mut Markup, summary: &Summary) {
    let basis = summary.client_basis();
    let quantiles = summary.record.plan.shown_quantiles();
    let of_row = |row: &Row<'_>| {
        quantiles.iter().map(|quantile| Whisker::of(summary, row, *quantile)).collect::<Vec<_>>()
    };
    let whiskers: Vec<Vec<Option<Whisker>>> = rows(summary).iter().map(of_row).collect();
    markup.section("latency", "Latency by operation", |markup| {
        markup.raw(
            "<p>Response times count from the instant a request was due, service times from the instant it was sent; the send lag lies between them. \
             Rows below a response time: the ends of its 95 % interval, and ",
        );
        markup.text(&format!("with {} the {}", basis.symbol(), basis.describe()));
        markup.raw(".</p>\n");
        let mut shown = 0;
        for grid in full_tables(summary, &Layout::default(), &quantiles) {
            shown += table(markup, &grid, &whiskers, shown);
        }
    });
}

/// One table, whose percentiles are those from a place on. Returns how many these are.
fn table(markup: &mut Markup, grid: &Grid, whiskers: &[Vec<Option<Whisker>>], shown: usize) -> usize {
    let times = grid.headings().skip(1).take_while(|(heading, _)| heading.starts_with('p')).count();
    let axis_ns = axis_of(whiskers.iter().flatten().flatten());
    let mut rows = whiskers.iter();
    let mut of_row: &[Option<Whisker>] = &[];
    markup.raw("<div class=\"wide\"><table class=\"latency\" aria-label=\"Latency by operation\">");
    markup.rows(grid, |markup, _, index, cell, _| {
        if index == 0 {
            let is_below = cell.starts_with(' ');
            of_row = if is_below { &[] } else { rows.next().map_or(&[], |row| &row[shown..shown + times]) };
            markup.raw(if is_below { "<tr class=below>" } else { "<tr class=response>" });
            markup.raw("<th scope=row>");
            return markup.text(cell.trim_start());
        }
        // Behind the percentiles is the maximum.
        markup.raw(if index <= times + 1 { "<td class=time>" } else { "<td>" });
        markup.text(cell);
        if let Some(Some(held)) = of_row.get(index - 1) {
            draw_whisker(markup, held, axis_ns);
        }
    });
    markup.raw("</table></div>\n");
    times
}

/// What the small picture of a cell shows, in nanoseconds: where a percentile lies on an axis that all cells share, its interval, and its
/// client error.
struct Whisker {
    value_ns: u64,
    low_ns: u64,
    /// `None`: without end.
    high_ns: Option<u64>,
    client_ns: u64,
}

impl Whisker {
    fn of(summary: &Summary, row: &Row<'_>, quantile: Quantile) -> Option<Self> {
        let value_ns = row.summary.latency.response.summary.percentile_ns(quantile)?;
        let held = row.summary.interval(quantile).filter(|_| !is_unbounded(summary))?;
        let client_ns = row.summary.client_error_ns(quantile).unwrap_or(0);
        Some(Self { value_ns, low_ns: held.low_ns, high_ns: held.high_ns, client_ns })
    }

    /// Of a host: from its p50 to its maximum.
    fn of_host(AgentRequests { p50_ns, p99_ns, max_ns, .. }: &AgentRequests) -> Option<Self> {
        Some(Self { value_ns: (*p99_ns)?, low_ns: (*p50_ns)?, high_ns: *max_ns, client_ns: 0 })
    }
}

/// The ends of an axis that all of these share.
fn axis_of<'a>(whiskers: impl Iterator<Item = &'a Whisker>) -> (f64, f64) {
    let ends = whiskers.flat_map(|held| [held.low_ns, held.value_ns, held.high_ns.unwrap_or(held.value_ns)]);
    let (low_ns, high_ns) = ends.fold((u64::MAX, 1), |(low, high), ns| (ns.clamp(1, low), ns.max(high)));
    (low_ns as f64, high_ns as f64)
}

/// Puts it below the text of a cell.
fn draw_whisker(markup: &mut Markup, held: &Whisker, axis_ns: (f64, f64)) {
    markup.raw("<span class=whisker aria-hidden=true>");
    markup.picture(&whisker(held, axis_ns));
    markup.raw("</span>");
}

/// Draws it on an axis from one latency to another.
fn whisker(whisker: &Whisker, (low_ns, high_ns): (f64, f64)) -> Picture {
    let scale = Scale::logarithmic((low_ns, high_ns), (2.0, WIDTH - 2.0));
    let x = |ns: u64| scale.pixel(ns.max(1) as f64);
    let end = whisker.high_ns.map_or(WIDTH, x);
    let value = x(whisker.value_ns);
    let mut picture = Picture::new(WIDTH as u32, HEIGHT as u32, Ink::Page, "");
    let (axis, middle) = (HEIGHT - 0.5, HEIGHT / 2.0);
    picture.line((0.0, axis).into(), (WIDTH, axis).into(), Stroke::solid(Ink::Grid, 1.0));
    let client = x(whisker.value_ns.saturating_sub(whisker.client_ns));
    if value - client > 0.5 {
        let area = Area { x: client, y: 2.0, width: value - client, height: HEIGHT - 4.0 };
        picture.rectangle(area, CLIENT);
    }
    let dash: &[f32] = if whisker.high_ns.is_some() { &[] } else { &[3.0, 2.0] };
    let interval = Stroke { ink: Ink::Series(0), width: 2.0, dash };
    picture.line((x(whisker.low_ns), middle).into(), (end, middle).into(), interval);
    picture.line((value, 1.0).into(), (value, HEIGHT - 1.0).into(), Stroke::solid(Ink::Text, 2.0));
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_plan_ends_with_a_whole_line() {
        let line = |index: u32| format!("key-{index} = 'é'\n");
        let mut markup = Markup::default();
        plan(&mut markup, &(0..2_000).map(line).collect::<String>());
        let text = markup.into_text();
        let shown: Vec<&str> =
            text.split("<pre>").nth(1).unwrap().split("</pre>").next().unwrap().lines().collect();
        let (last, lines) = shown.split_last().unwrap();
        assert_eq!(*last, format!("… and {} more lines, all in the JSON", 2_000 - lines.len()));
        assert!(lines.iter().all(|line| line.ends_with("&#39;é&#39;")), "{:?}", lines.last());
        let bytes: usize = (0..lines.len() as u32).map(|index| line(index).len()).sum();
        assert!((PLAN_MAX - 20..=PLAN_MAX).contains(&bytes), "{bytes} bytes");
    }
}
