//! The page of a campaign: the chart of its runs, the tables of its text, and a section for each run.

use super::curve::Curve;
use super::table::{self, finding, percentile_text, setting_text};
use super::text::{findings, head_facts, headline};
use super::{Campaign, RunRow};
use crate::assertion_text::{self, AssertionText};
use crate::grid::Grid;
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Size};
use crate::html::markup::{Heading, Markup};
use crate::layout::{Layout, TimeUnit};
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
    let asserted = assertion_text::sorted(campaign.assertions.iter().map(AssertionText::of)).into_iter();
    facts.extend(
        asserted.map(|text| (text.word().to_owned(), vec![format!("{}: {}", text.subject, text.finding)])),
    );
    facts.extend(findings_of(&campaign.status));
    document::header(&mut markup, Standing::of(campaign.status.status), &heading, &facts);
    markup.raw("<section id=\"runs\">\n<h2>Latency of the runs</h2>\n");
    if let Some(curve) = Curve::of(campaign) {
        figure(&mut markup, &curve, unit(campaign));
    }
    let layout = Layout::default();
    grid(&mut markup, "What the runs come to", &table::answer(campaign, &layout).0, false);
    let has_sections = campaign.runs.len() <= SECTIONS_MAX;
    let caption = "Every run, in the order in which they were made";
    grid(&mut markup, caption, &table::runs(campaign, &layout), has_sections);
    markup.raw("</section>\n");
    if has_sections {
        sections(&mut markup, campaign);
    }
    document::write(&heading, &heading, &markup.into_text(), "", out)
}

/// A table of the text.
fn grid(markup: &mut Markup, caption: &str, grid: &Grid, has_links: bool) {
    let texts = grid.headings();
    let mut headings: Vec<Heading<'_>> = Vec::new();
    for (text, is_words) in &texts {
        headings.push(match (headings.is_empty(), is_words) {
            (true, _) if has_links => Heading::Links(text, RUN),
            (_, true) => Heading::Words(text),
            (_, false) => Heading::Number(text),
        });
    }
    markup.table(caption, &headings, &grid.texts());
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

fn figure(markup: &mut Markup, curve: &Curve<'_>, unit: TimeUnit) {
    frame::open_figure(markup, Some(("number", (0.0, curve.most))), curve.finding, curve.keys());
    frame::chart(markup, &curve.latencies(Size::page(HEIGHT)));
    if let Some(frame) = curve.cpu(Size::page(CPU_HEIGHT)) {
        frame::chart(markup, &frame);
    }
    let time = |ns: u64| quantity::significant(ns as f64 / unit.ns());
    let cpu = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| quantity::significant(ns / 1e3));
    let rows = curve.marks.iter().map(|mark| {
        vec![
            quantity::significant(mark.x),
            mark.p50_ns().map_or("-".to_owned(), time),
            time(mark.p99_ns),
            time(mark.ends_ns.0),
            time(mark.ends_ns.1),
            cpu(mark.run.cpu_ns),
            cpu(mark.run.server_cpu_ns),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let times = ["p50", "p99", "p99 low", "p99 high"].map(|name| format!("{name},{unit}"));
    let mut headings = vec![Heading::Number(curve.x_title)];
    headings.extend(times.iter().map(|name| Heading::Number(name)));
    headings.extend(["client CPU,us", "server CPU,us"].map(Heading::Number));
    frame::close_figure(markup, |markup| {
        markup.table("The runs of the chart, from left to right", &headings, &rows)
    });
}

/// What each run came to, and why, which the rows of the table lead to.
fn sections(markup: &mut Markup, campaign: &Campaign) {
    markup.raw("<section>\n<h2>Run by run</h2>\n");
    for (index, run) in campaign.runs.iter().enumerate() {
        markup.open("h3", &[("id", &format!("{RUN}-{}", index + 1))]);
        let setting = run.place.setting;
        let setting =
            setting.map_or(String::new(), |held| format!(", {} {}", held.option(), setting_text(held)));
        markup.text(&format!("Run {}{setting}: {}", index + 1, finding(campaign, index)));
        markup.close("h3");
        let mut facts = facts_of(run);
        facts.extend(findings_of(&run.status));
        markup.facts(&facts);
    }
    markup.raw("</section>\n");
}

fn facts_of(run: &RunRow) -> Vec<(String, Vec<String>)> {
    vec![
        ("status".to_owned(), vec![run.status.headline()]),
        ("response".to_owned(), run.percentiles.iter().map(percentile_text).collect()),
        (
            "run".to_owned(),
            vec![
                format!("{}/s done in {}", rate(run.completed), quantity::time(run.duration_ns)),
                format!("seed {}", run.seed),
            ],
        ),
    ]
}
