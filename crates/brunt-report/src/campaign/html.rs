//! The page of a campaign: what was found, the chart of its runs with the tables of its text, and a section for each run. The chart is
//! latency over throughput with knee and limit, the steps of a search beside their objectives, or the runs of one plan; below it lies what a
//! request costs.
//!
//! Invariant: every run that counts and has a p99 is in the chart; one that is INVALID, or whose objectives do not hold, is hollow;
//! one that met a limit beyond all that met none is crossed; one that met a limit below them is not joined to the others.

use super::conclusion::highest_free;
use super::document::{answer, head_facts};
use super::table::{self, finding, setting_text};
use super::{Campaign, CampaignQuestion, PercentileEstimate, RunPurpose, RunRow};
use crate::document::Document;
use crate::grid::{Column, Grid, TimeTable, Value};
use crate::html::chart::{Chart, Figure, MOST, Mark, Note, Place, Series, Values};
use crate::html::page::{self, Markup, Page};
use crate::layout::{Layout, Style};
use crate::quantity::{self, rate};
use crate::run_document::conclusion;
use brunt_picture::{Anchor, Fill, Ink, Stroke};
use brunt_plan::objective::{Bound, Metric, Objective};
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::Capacity;
use brunt_stats::capacity_search::StepResult;
use brunt_stats::median::median_of_sorted;
use brunt_stats::rate_scan::Knee;
use std::io::{self, Write};

/// Runs that have a section of their own.
const SECTIONS_MAX: usize = 100;
/// What the names of sections of runs begin with.
const RUN: &str = "run";

/// Writes the page.
pub(crate) fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let title = campaign.status.headline();
    page::header(&mut markup, Some(campaign.status.status), &title, &head_facts(campaign));
    markup.section("answer", "What was found", |markup| {
        markup.document(&Document::of(|document| answer(document, campaign)));
    });
    let links = (campaign.runs.len() <= SECTIONS_MAX).then_some(RUN);
    markup.section("runs", "Latency of the runs", |markup| {
        if let Some(Curve { finding, most, charts, table }) = Curve::of(campaign) {
            let table = Some(("The runs of the chart, from left to right".to_owned(), table));
            let (finding, cursor) = (finding.to_owned(), Some(("number", (0.0, most))));
            Figure { finding, cursor, charts, table, remarks: Vec::new() }.write(markup);
        }
        let layout = Layout::default();
        markup.grid("What the runs come to", &table::answer(campaign, &layout).0, None);
        let caption = "Every run, in the order in which they were made";
        markup.grid(caption, &table::runs(campaign, &layout), links);
    });
    if links.is_some() {
        markup.section("each", "Run by run", |markup| each_run(markup, campaign));
    }
    Page { foot: title.clone(), title, sections: markup.into_text(), ..Page::default() }.write(out)
}

/// What each run came to, and why, which the rows of the table lead to.
fn each_run(markup: &mut Markup, campaign: &Campaign) {
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
}

/// A percentile with its interval in words: `p99 412 us (401 us to 425 us)`.
fn percentile_text((quantile, found): (&str, PercentileEstimate)) -> String {
    let interval = found.interval_ns.map(|(low, high)| {
        let high = high.map_or("open".to_owned(), quantity::time);
        format!(" ({} to {high})", quantity::time(low))
    });
    format!("{quantile} {}{}", quantity::time(found.value_ns), interval.unwrap_or_default())
}

// ---- the chart ------------------------------------------------------------------------------------------------------------

const HEIGHT: f64 = 320.0;
const CPU_HEIGHT: f64 = 90.0;
const P99: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const P50: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
const CLIENT: Stroke = Stroke { ink: Ink::Series(4), width: 1.5, dash: &[1.0, 3.0] };
const DOT: Stroke = Stroke::solid(Ink::Series(0), 10.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 6.0);
const LIMIT: Fill = Fill::solid(Ink::Invalid);
/// Around the run that met it.
const CROSS: [f64; 24] = [
    0.0, -1.8, 5.2, -7.0, 7.0, -5.2, 1.8, 0.0, 7.0, 5.2, 5.2, 7.0, 0.0, 1.8, -5.2, 7.0, -7.0, 5.2, -1.8, 0.0,
    -7.0, -5.2, -5.2, -7.0,
];
const KNEE: Stroke = Stroke::solid(Ink::Caution, 22.0);
/// The line from the origin on which the knee lies.
const TANGENT: Stroke = Stroke { ink: Ink::Caution, width: 1.0, dash: &[2.0, 3.0] };
const TANGENT_POINTS: u32 = 60;
const KNEE_INSIDE: Stroke = Stroke::solid(Ink::Page, 17.0);
const BRACKET: Fill = Fill::faint(Ink::Caution, 0.16);
const CLIENT_CPU: Stroke = Stroke::solid(Ink::Series(3), 1.5);
const SERVER_CPU: Stroke = Stroke { ink: Ink::Series(2), width: 1.5, dash: &[2.0, 2.0] };

/// One run in the chart. Times in nanoseconds.
struct RunMark<'a> {
    x: f64,
    run: &'a RunRow,
    p50: Option<f64>,
    p99: f64,
    /// The ends of its interval; without an upper one the value itself.
    ends: [f64; 2],
    is_knee: bool,
    /// A trouble that came and went: it is no point of the curve.
    is_passing: bool,
}

/// The runs of a campaign over what they differ by.
pub(crate) struct Curve {
    /// What the charts show, in words.
    finding: &'static str,
    /// The end of the x axis.
    most: f64,
    /// Latency; and what a request costs, where that is known.
    pub(crate) charts: Vec<Chart>,
    table: Grid,
}

impl Curve {
    /// `None` where fewer than two runs count.
    pub(crate) fn of(campaign: &Campaign) -> Option<Self> {
        let mut marks = run_marks(campaign);
        marks.sort_by(|one, other| one.x.total_cmp(&other.x));
        let most = marks.iter().map(|mark| mark.x).fold(1.0, f64::max) * 1.06;
        let (x, finding) = match campaign.question {
            CampaignQuestion::Scan { .. } => (
                (Values::Number(most), "done/s"),
                "p99 and p50 over what was done; whiskers are 95 % intervals.",
            ),
            CampaignQuestion::Search { .. } => (
                (Values::Number(most), "offered/s"),
                "p99 and p50 of each step over its rate; whiskers are 95 % intervals.",
            ),
            CampaignQuestion::Repeat { .. } => (
                (Values::Count(most), "run"),
                "p99 and p50 of each run; whiskers are 95 % intervals within it.",
            ),
        };
        let table = table_of(&marks, x.1);
        let charts = [latencies(campaign, &marks, x, most)].into_iter().chain(cost(campaign, &marks, x));
        (marks.len() > 1).then(|| Self { finding, most, charts: charts.collect(), table })
    }
}

/// Is there an x axis on which lines join the runs?
fn is_curve(campaign: &Campaign) -> bool {
    !matches!(campaign.question, CampaignQuestion::Repeat { .. })
}

/// A value of the runs, joined in their order: of a scan as they were set, since throughput may fall again.
fn join<'a>(
    campaign: &Campaign,
    marks: &'a [RunMark<'a>],
    value: impl Fn(&RunMark<'a>) -> Option<f64>,
    stroke: Stroke,
) -> Mark {
    let mut marks: Vec<&RunMark<'_>> = marks.iter().filter(|mark| !mark.is_passing).collect();
    let setting = |mark: &RunMark<'_>| mark.run.place.setting.map_or(mark.x, SweepPoint::as_f64);
    if is_curve(campaign) {
        marks.sort_by(|one, other| setting(one).total_cmp(&setting(other)));
    }
    let places: Vec<Place> = marks.into_iter().filter_map(|mark| Some((mark.x, value(mark)?))).collect();
    match is_curve(campaign) && places.len() > 1 {
        true => Mark::Line(places, stroke),
        false => Mark::Dots(places, Stroke { width: 7.0, ..stroke }),
    }
}

/// p99 with its interval, and p50.
fn latencies(campaign: &Campaign, marks: &[RunMark<'_>], x: (Values, &'static str), most: f64) -> Chart {
    let bounds = objectives(campaign);
    let times = marks.iter().flat_map(|mark| mark.ends.into_iter().chain(mark.p50));
    let client = |mark: &RunMark<'_>| mark.run.client_error_ns().map(|ns| ns as f64);
    let is_of_client = |(held, _): &(Objective, f64)| matches!(held.subject.metric, Metric::Client(_));
    let shows_client = bounds.iter().any(is_of_client);
    let parts = marks.iter().filter(|_| shows_client).filter_map(client);
    let times = times.chain(parts).chain(bounds.iter().map(|(_, ns)| *ns));
    let (least, largest) =
        times.fold((f64::INFINITY, 5.0), |(least, most), ns| (ns.min(least), ns.max(most)));
    let low = least * 0.8;
    let y = (Values::Latency(low, largest * 2.0), "response time");
    let mut chart = Chart::new("p99 and p50 of every run", x, y, HEIGHT);
    let bracket = match campaign.question.capacity() {
        Some(Capacity::Between { passed, failed, .. }) => vec![Mark::Bar(passed, failed, MOST, BRACKET)],
        _ => Vec::new(),
    };
    let knee = knee(marks);
    let tangent = knee.map(|knee| Mark::Line(tangent(knee, low, most), TANGENT));
    chart.background = vec![
        Series::new("bracket", "the capacity lies here", bracket),
        Series::new("tangent", "throughput / p99 of the knee", tangent.into_iter().collect()),
    ];
    let places = |is_shown: &dyn Fn(&RunMark<'_>) -> bool| {
        marks.iter().filter(|mark| is_shown(mark)).map(|mark| (mark.x, mark.p99)).collect::<Vec<Place>>()
    };
    let dots = |is_shown: &dyn Fn(&RunMark<'_>) -> bool, strokes: &[Stroke]| match places(is_shown) {
        places if places.is_empty() => Vec::new(),
        places => strokes.iter().map(|stroke| Mark::Dots(places.clone(), *stroke)).collect(),
    };
    let [filled, hollow] = match campaign.question {
        CampaignQuestion::Search { .. } => ["the objectives hold", "they do not hold"],
        _ => ["OK or CAUTION", "INVALID"],
    };
    let whisker = |mark: &RunMark<'_>| Mark::Line(mark.ends.map(|ns| (mark.x, ns)).to_vec(), P99);
    let p99 =
        [join(campaign, marks, |mark| Some(mark.p99), P99)].into_iter().chain(marks.iter().map(whisker));
    let is_at_limit = |mark: &RunMark<'_>| mark.run.is_limited && !mark.is_passing;
    let limits = places(&is_at_limit).into_iter().map(|at| Mark::Symbol(at, &CROSS, LIMIT));
    chart.push("knee", "knee", dots(&|mark| mark.is_knee, &[KNEE, KNEE_INSIDE]));
    chart.push("p99", "p99", p99.collect());
    chart.push("p50", "p50", vec![join(campaign, marks, |mark| mark.p50, P50)]);
    if shows_client {
        chart.push("client", "client's part of the p99", vec![join(campaign, marks, client, CLIENT)]);
    }
    chart.push("run", filled, dots(&|mark| !is_at_limit(mark) && is_filled(mark.run), &[DOT]));
    chart.push("hollow", hollow, dots(&|mark| !is_at_limit(mark) && !is_filled(mark.run), &[DOT, HOLLOW]));
    chart.push("limit", "a limit was met", limits.collect());
    for (objective, ns) in bounds {
        chart.objective((0.0, most), ns, objective.to_string());
    }
    let setting = |mark: &RunMark<'_>| {
        let text = setting_text(mark.run.place.setting?);
        Some(Note::new((mark.x, mark.ends[1]), (0.0, -12.0), Anchor::Middle, Ink::Soft, text))
    };
    chart.notes.extend(marks.iter().filter_map(setting));
    chart
}

/// Throughput and p99 of the knee, as it was found: the medians of its runs.
fn knee(marks: &[RunMark<'_>]) -> Option<Place> {
    let marks = marks.iter().filter(|mark| mark.is_knee);
    let (x, mut p99): (Vec<f64>, Vec<f64>) = marks.map(|mark| (mark.x, mark.p99)).unzip();
    p99.sort_unstable_by(f64::total_cmp);
    Some((median_of_sorted(&x)?, median_of_sorted(&p99)?))
}

/// Where latency is to throughput as at the knee: a line from the origin, which is bent where latency is logarithmic. From where it is at `low`.
fn tangent((x, p99): Place, low: f64, most: f64) -> Vec<Place> {
    let from = x * low / p99;
    let steps = (0..=TANGENT_POINTS).map(|step| f64::from(step) / f64::from(TANGENT_POINTS));
    steps.map(|part| from + (most - from) * part).map(|at| (at, at * p99 / x)).collect()
}

/// Processor time of client and servers per request, where it is known.
fn cost(campaign: &Campaign, marks: &[RunMark<'_>], x: (Values, &'static str)) -> Option<Chart> {
    let client = |mark: &RunMark<'_>| mark.run.result.client_cpu_ns().map(|ns| ns / 1e3);
    let server = |mark: &RunMark<'_>| mark.run.result.server_cpu_ns().map(|ns| ns / 1e3);
    let known = marks.iter().filter(|mark| !mark.is_passing);
    let most = known.flat_map(|mark| [client(mark), server(mark)]).flatten().reduce(f64::max)?;
    let y = (Values::Number(most * 1.1), "CPU us/request");
    let mut chart = Chart::new("Processor time per request of client and servers", x, y, CPU_HEIGHT);
    let mut push = |class, name, value: &dyn Fn(&RunMark<'_>) -> Option<f64>, stroke| {
        let line = join(campaign, marks, value, stroke);
        let (Mark::Line(places, _) | Mark::Dots(places, _)) = &line else { return };
        if !places.is_empty() {
            let dots = Mark::Dots(places.clone(), Stroke { width: 6.0, ..stroke });
            chart.push(class, name, vec![line, dots]);
        }
    };
    push("client-cpu", "client CPU/request", &client, CLIENT_CPU);
    push("server-cpu", "server CPU/request", &server, SERVER_CPU);
    Some(chart)
}

fn table_of(marks: &[RunMark<'_>], x_title: &str) -> Grid {
    let times = Column::all_of_numbers(["p50", "p99", "p99 low", "p99 high", "client CPU", "server CPU"]);
    let times = times.into_iter().map(|column| column.with_unit(","));
    let mut table = TimeTable::new([Column::of_numbers(x_title, 0)].into_iter().chain(times).collect());
    for RunMark { x, run, p50, p99, ends, .. } in marks {
        let times = [
            *p50,
            Some(*p99),
            Some(ends[0]),
            Some(ends[1]),
            run.result.client_cpu_ns(),
            run.result.server_cpu_ns(),
        ];
        let times = times.map(|ns| Value::Time(ns.map(|ns| ns.round() as u64)));
        let x = Value::Text(quantity::significant(*x));
        table.push(Style::Plain, [x].into_iter().chain(times).collect());
    }
    table.grid(None)
}

/// The runs that have a p99 and count.
fn run_marks(campaign: &Campaign) -> Vec<RunMark<'_>> {
    let is_scan = matches!(campaign.question, CampaignQuestion::Scan { .. });
    let knee_runs: &[usize] = match campaign.knee {
        Some(Knee::At(index)) => &campaign.points[index].runs,
        _ => &[],
    };
    let free = highest_free(&campaign.runs);
    let runs = campaign.runs.iter().enumerate().filter(|(index, run)| {
        !campaign.is_discarded(*index) && !matches!(run.place.purpose, RunPurpose::Connections(_))
    });
    let mark = runs.filter_map(|(index, run)| {
        let found = run.percentile(Quantile::P99)?;
        let x = match campaign.question {
            CampaignQuestion::Scan { .. } => run.completed(),
            CampaignQuestion::Search { .. } => run.place.setting.map_or(run.completed(), SweepPoint::as_f64),
            CampaignQuestion::Repeat { .. } => index as f64 + 1.0,
        };
        let (low_ns, high_ns) = found.interval_ns.unwrap_or((found.value_ns, None));
        let ends = [low_ns, high_ns.unwrap_or(found.value_ns)].map(|ns| ns as f64);
        let is_passing = is_scan && run.is_limited && !run.is_beyond(free);
        let is_knee = knee_runs.contains(&index);
        let p50 = run.percentile(Quantile::P50).map(|found| found.value_ns as f64);
        Some(RunMark { x, run, p50, p99: found.value_ns as f64, ends, is_knee, is_passing })
    });
    mark.collect()
}

/// The objectives of a search that bound times, in nanoseconds.
fn objectives(campaign: &Campaign) -> Vec<(Objective, f64)> {
    if !matches!(campaign.question, CampaignQuestion::Search { .. }) {
        return Vec::new();
    }
    let time = |objective: Objective| match objective.bound {
        Bound::Time(bound) => Some((objective, bound.0 as f64)),
        Bound::Rate(_) | Bound::Fraction(_) => None,
    };
    campaign.question.objectives().unwrap_or_default().into_iter().filter_map(time).collect()
}

/// Is its dot filled: did its objectives hold, as a step of a search, or is it not INVALID?
fn is_filled(run: &RunRow) -> bool {
    match run.assertions.is_empty() {
        false => run.step == StepResult::Holds,
        true => !run.status().is_invalid(),
    }
}
