//! The page of a campaign: the chart of its runs, a table of all of them, and a section for each.

use super::curve::Curve;
use super::text::{findings, headline, setting_text, word};
use super::{Campaign, CampaignResult, PercentileEstimate, RunRow, head_facts};
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Size};
use crate::html::markup::{Heading, Markup};
use crate::layout::TimeUnit;
use crate::quantity;
use crate::text::conclusion;
use crate::text::latency::rate;
use brunt_plan::quantile::Quantile;
use brunt_stats::status::RunStatus;
use std::io::{self, Write};

const HEIGHT: f64 = 320.0;
const CPU_HEIGHT: f64 = 90.0;
/// Runs that have a section of their own.
const SECTIONS_MAX: usize = 100;
/// What the names of sections of runs begin with.
const RUN: &str = "run";

/// Writes the page.
///
/// # Errors
/// What `out` returns.
pub fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let heading = headline(campaign).join(" · ");
    let mut facts = head_facts(campaign);
    facts.extend(findings(campaign));
    facts.extend(findings_of(&campaign.status));
    document::header(&mut markup, Standing::of(campaign.status.status), &heading, &facts);
    let unit = unit(campaign);
    markup.raw("<section id=\"runs\">\n<h2>Latency of the runs</h2>\n");
    if let Some(curve) = Curve::of(campaign) {
        figure(&mut markup, &curve, unit);
    }
    table(&mut markup, campaign, unit);
    markup.raw("</section>\n");
    sections(&mut markup, campaign);
    document::write(&heading, &heading, &markup.into_text(), "", out)
}

/// What the checks of a run or a campaign found, with what helps.
fn findings_of(status: &RunStatus) -> Vec<(String, Vec<String>)> {
    conclusion::findings(status).into_iter().map(|(name, text)| (name.to_owned(), vec![text])).collect()
}

/// The one in which the lowest p99 is at least 1.
fn unit(campaign: &Campaign) -> TimeUnit {
    let p99s = campaign.runs.iter().filter_map(|run| run.percentile(Quantile::P99));
    TimeUnit::of_least(p99s.map(|found| found.value_ns).min().unwrap_or(1_000))
}

fn time(ns: u64, unit: TimeUnit) -> String {
    quantity::significant(ns as f64 / unit.ns())
}

fn cpu(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), |ns| quantity::significant(ns / 1e3))
}

fn figure(markup: &mut Markup, curve: &Curve<'_>, unit: TimeUnit) {
    frame::open_figure(markup, Some(("number", (0.0, curve.most))), curve.finding, curve.keys());
    frame::chart(markup, &curve.latencies(Size::page(HEIGHT)));
    if let Some(frame) = curve.cpu(Size::page(CPU_HEIGHT)) {
        frame::chart(markup, &frame);
    }
    let rows = curve.marks.iter().map(|mark| {
        vec![
            quantity::significant(mark.x),
            mark.p50_ns().map_or("-".to_owned(), |ns| time(ns, unit)),
            time(mark.p99_ns, unit),
            time(mark.ends_ns.0, unit),
            time(mark.ends_ns.1, unit),
            cpu(mark.run.cpu_ns),
            cpu(mark.run.server_cpu_ns),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let times = ["p50", "p99", "p99 low", "p99 high"].map(|name| format!("{name}/{unit}"));
    let mut headings = vec![Heading::Number(curve.x_title)];
    headings.extend(times.iter().map(|name| Heading::Number(name)));
    headings.extend(["client CPU/us", "server CPU/us"].map(Heading::Number));
    frame::close_figure(markup, |markup| {
        markup.table("The runs of the chart, from left to right", &headings, &rows)
    });
}

/// What a run is called: its setting, or its number.
fn name(run: &RunRow, index: usize) -> String {
    run.setting.map_or_else(|| (index + 1).to_string(), setting_text)
}

fn table(markup: &mut Markup, campaign: &Campaign, unit: TimeUnit) {
    let quantiles = campaign.head.quantiles();
    let row = |(index, run): (usize, &RunRow)| {
        let mut row = vec![name(run, index)];
        row.push(run.offered.map_or("-".to_owned(), rate));
        row.push(rate(run.completed));
        row.extend(quantiles.iter().map(|quantile| {
            run.percentile(*quantile).map_or("-".to_owned(), |found| time(found.value_ns, unit))
        }));
        let interval = run.percentile(Quantile::P99).and_then(|found| found.interval_ns);
        row.push(interval.map_or("-".to_owned(), |(low, high)| {
            format!("{} to {}", time(low, unit), high.map_or("open".to_owned(), |ns| time(ns, unit)))
        }));
        row.push(run.client_error_ns.map_or("-".to_owned(), |ns| time(ns, unit)));
        row.extend([run.failed.to_string(), cpu(run.cpu_ns), cpu(run.server_cpu_ns)]);
        row.push(finding(campaign, run, index));
        row
    };
    let rows: Vec<Vec<String>> = campaign.runs.iter().enumerate().map(row).collect();
    let times: Vec<String> = quantiles.iter().map(|quantile| format!("{quantile}/{unit}")).collect();
    let first = match &campaign.finding {
        CampaignResult::Scan { option, .. } => option,
        CampaignResult::Search { .. } => "rate",
        CampaignResult::Repeat { .. } => "run",
    };
    let first = if rows.len() <= SECTIONS_MAX { Heading::Links(first, RUN) } else { Heading::Words(first) };
    let mut headings = vec![first, Heading::Number("offered/s"), Heading::Number("done/s")];
    headings.extend(times.iter().map(|name| Heading::Number(name)));
    let client = RunRow::client_basis_of(&campaign.runs).label();
    let costs = ["p99 interval", &client, "failed", "CPU/us", "server CPU/us"];
    headings.extend(costs.map(Heading::Number));
    headings.push(Heading::Words("finding"));
    markup.table("Every run, in the order in which they were made", &headings, &rows);
}

/// What is said of a run in a few words.
fn finding(campaign: &Campaign, run: &RunRow, index: usize) -> String {
    let discarded = if campaign.is_discarded(index) { ", discarded" } else { "" };
    let step = run.step.as_ref().map_or(String::new(), |(end, _)| format!(", {}", end.name()));
    format!("{}{step}{discarded}", word(run).0)
}

/// What each run came to, and why, which the rows of the table lead to.
fn sections(markup: &mut Markup, campaign: &Campaign) {
    if campaign.runs.len() > SECTIONS_MAX {
        return;
    }
    markup.raw("<section>\n<h2>Run by run</h2>\n");
    for (index, run) in campaign.runs.iter().enumerate() {
        markup.open("h3", &[("id", &format!("{RUN}-{}", index + 1))]);
        let setting = run
            .setting
            .map_or(String::new(), |setting| format!(", {} {}", setting.option(), setting_text(setting)));
        markup.text(&format!("Run {}{setting}: {}", index + 1, finding(campaign, run, index)));
        markup.close("h3");
        let percentile = |(quantile, found): &(Quantile, PercentileEstimate)| {
            let interval = found.interval_ns.map(|(low, high)| {
                let high = high.map_or("open".to_owned(), quantity::time);
                format!(" ({} to {high})", quantity::time(low))
            });
            format!("{quantile} {}{}", quantity::time(found.value_ns), interval.unwrap_or_default())
        };
        let mut facts = vec![
            ("status".to_owned(), vec![run.status.headline()]),
            ("response".to_owned(), run.percentiles.iter().map(percentile).collect()),
            (
                "run".to_owned(),
                vec![
                    format!("{}/s done in {}", rate(run.completed), quantity::time(run.duration_ns)),
                    format!("seed {}", run.seed),
                ],
            ),
        ];
        facts.extend(findings_of(&run.status));
        markup.facts(&facts);
    }
    markup.raw("</section>\n");
}
