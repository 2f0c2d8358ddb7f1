//! The page of a campaign: what was found, the chart of its runs with the tables of its text, and a section for each run.

use super::curve::Curve;
use super::document::{answer, head_facts};
use super::table::{self, finding, setting_text};
use super::{Campaign, PercentileEstimate};
use crate::document::Document;
use crate::grid::{Column, TimeTable, Value};
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Size};
use crate::html::markup::Markup;
use crate::layout::{Layout, Style};
use crate::quantity::{self, rate};
use crate::run_document::conclusion;
use std::io::{self, Write};

const HEIGHT: f64 = 320.0;
const CPU_HEIGHT: f64 = 90.0;
/// Runs that have a section of their own.
const SECTIONS_MAX: usize = 100;
/// What the names of sections of runs begin with.
const RUN: &str = "run";

/// Writes the page.
pub(crate) fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let heading = campaign.status.headline();
    let standing = Standing::of(campaign.status.status);
    document::header(&mut markup, standing, &heading, &head_facts(campaign));
    markup.raw("<section id=\"answer\">\n<h2>What was found</h2>\n");
    markup.document(&Document::of(|document| answer(document, campaign)));
    markup.raw("</section>\n<section id=\"runs\">\n<h2>Latency of the runs</h2>\n");
    if let Some(curve) = Curve::of(campaign) {
        figure(&mut markup, &curve);
    }
    let layout = Layout::default();
    markup.grid("What the runs come to", &table::answer(campaign, &layout).0, None);
    let links = (campaign.runs.len() <= SECTIONS_MAX).then_some(RUN);
    let caption = "Every run, in the order in which they were made";
    markup.grid(caption, &table::runs(campaign, &layout), links);
    markup.raw("</section>\n");
    if links.is_some() {
        sections(&mut markup, campaign);
    }
    document::write(&heading, &heading, &markup.into_text(), "", out)
}

fn figure(markup: &mut Markup, curve: &Curve<'_>) {
    frame::open_figure(markup, Some(("number", (0.0, curve.most))), curve.finding, curve.keys());
    frame::chart(markup, &curve.latencies(Size::page(HEIGHT)));
    if let Some(frame) = curve.cpu(Size::page(CPU_HEIGHT)) {
        frame::chart(markup, &frame);
    }
    let times = Column::all_of_numbers(["p50", "p99", "p99 low", "p99 high", "client CPU", "server CPU"]);
    let times = times.into_iter().map(|column| column.with_unit(","));
    let mut table = TimeTable::new([Column::of_numbers(curve.x_title, 0)].into_iter().chain(times).collect());
    for mark in &curve.marks {
        let [client_ns, server_ns] = [mark.run.result.client_cpu_ns(), mark.run.result.server_cpu_ns()]
            .map(|ns| ns.map(|ns| ns.round() as u64));
        let (low_ns, high_ns) = mark.ends_ns;
        let times_ns = [mark.p50_ns(), Some(mark.p99_ns), Some(low_ns), Some(high_ns), client_ns, server_ns];
        let x = Value::Text(quantity::significant(mark.x));
        table.push(Style::Plain, [x].into_iter().chain(times_ns.map(Value::Time)).collect());
    }
    let caption = "The runs of the chart, from left to right";
    frame::close_figure(markup, |markup| markup.grid(caption, &table.grid(None), None));
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
        markup.document(&Document::of(|document| {
            conclusion::status(document, run.status());
            document.facts("response", run.percentiles().map(percentile_text).collect());
            let done = format!(
                "{}/s done in {}",
                rate(run.completed()),
                quantity::time(run.result.window.duration_ns)
            );
            document.facts("run", vec![done, format!("seed {}", run.seed)]);
        }));
    }
    markup.raw("</section>\n");
}

/// A percentile with its interval in words: `p99 412 us (401 us to 425 us)`.
fn percentile_text((quantile, found): (&str, PercentileEstimate)) -> String {
    let interval = found.interval_ns.map(|(low, high)| {
        let high = high.map_or("open".to_owned(), quantity::time);
        format!(" ({} to {high})", quantity::time(low))
    });
    format!("{quantile} {}{}", quantity::time(found.value_ns), interval.unwrap_or_default())
}
