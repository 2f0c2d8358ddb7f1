//! The page of a campaign: the curve of latency over throughput with its knee and limit, the steps of a search beside their objective, or
//! the runs of one plan.
//!
//! Invariant: every run is in the chart and in the table; one whose p99 is not trusted, or that did not pass as a step, is hollow, one that met a limit is crossed.

use super::text::{findings, headline, title, word};
use super::{Campaign, CampaignResult, RunRow};
use crate::html::document::{self, Standing};
use crate::html::frame::{self, Frame, Key, Values};
use crate::html::markup::{Heading, Markup};
use crate::layout::TimeUnit;
use crate::quantity;
use crate::text::conclusion::causes;
use crate::text::latency::rate;
use brunt_picture::{Anchor, Ink, Picture, Point, Shape, Stroke};
use brunt_plan::objective::{Bound, Objective};
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::StepResult;
use brunt_stats::check::CheckStatus;
use brunt_stats::knee::Knee;
use brunt_stats::verdict::Status;
use std::io::{self, Write};

const HEIGHT: f64 = 340.0;
/// Points that are named in the chart.
const NAMES_MAX: usize = 16;
const P99: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const P50: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
const DOT: Stroke = Stroke::solid(Ink::Series(0), 10.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 6.0);
const LIMIT: Stroke = Stroke::solid(Ink::Distrusted, 2.5);
const KNEE: Stroke = Stroke::solid(Ink::Caution, 22.0);
const KNEE_INSIDE: Stroke = Stroke::solid(Ink::Page, 17.0);
const OBJECTIVE: Stroke = Stroke { ink: Ink::Caution, width: 1.5, dash: &[6.0, 3.0] };

/// Writes the page.
///
/// # Errors
/// What `out` returns.
pub fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut markup = Markup::default();
    let heading = headline(campaign).join(" · ");
    let standing = match campaign.verdict.status {
        Status::Trusted => Standing::Trusted,
        Status::Caution => Standing::Caution,
        Status::NotTrusted => Standing::Distrusted,
    };
    let mut facts = vec![(campaign.finding.kind().to_owned(), title(campaign))];
    facts.extend(campaign.head.short.iter().cloned());
    facts.extend(findings(campaign));
    for cause in causes(&campaign.verdict).into_iter().take(3) {
        let fix = (!cause.fix.is_empty()).then(|| format!("→ {}", cause.fix));
        facts.push((cause.id.to_owned(), [Some(cause.text), fix].into_iter().flatten().collect()));
    }
    document::header(&mut markup, standing, &heading, &facts);
    markup.raw("<section>\n<h2>Latency of the runs</h2>\n");
    let marks = marks(campaign);
    if marks.len() > 1 {
        chart(&mut markup, campaign, &marks);
    }
    table(&mut markup, campaign);
    markup.raw("</section>\n");
    document::write(&heading, &markup.into_text(), "", out)
}

/// One run in the chart.
struct Mark<'a> {
    x: f64,
    run: &'a RunRow,
    p99_ns: u64,
    /// The ends of its interval; without an upper one the value itself.
    ends_ns: (u64, u64),
    is_knee: bool,
}

/// The runs that have a p99 and count, from left to right.
fn marks(campaign: &Campaign) -> Vec<Mark<'_>> {
    let knee_runs: &[usize] = match &campaign.finding {
        CampaignResult::Scan { points, knee: Some(Knee::At(index)), .. } => &points[*index].runs,
        _ => &[],
    };
    let runs = campaign.runs.iter().enumerate().filter(|(index, _)| !campaign.is_discarded(*index));
    let mark = runs.filter_map(|(index, run)| {
        let found = run.percentile(Quantile::P99)?;
        let x = match campaign.finding {
            CampaignResult::Scan { .. } => run.completed,
            CampaignResult::Search { .. } => run.setting.map_or(run.completed, SweepPoint::as_f64),
            CampaignResult::Repeat { .. } => index as f64 + 1.0,
        };
        let (low_ns, high_ns) = found.interval_ns.unwrap_or((found.value_ns, None));
        let ends_ns = (low_ns, high_ns.unwrap_or(found.value_ns));
        Some(Mark { x, run, p99_ns: found.value_ns, ends_ns, is_knee: knee_runs.contains(&index) })
    });
    let mut marks: Vec<Mark<'_>> = mark.collect();
    if !matches!(campaign.finding, CampaignResult::Scan { .. }) {
        marks.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    marks
}

fn objectives(campaign: &Campaign) -> Vec<(&Objective, u64)> {
    let CampaignResult::Search { objectives, .. } = &campaign.finding else { return Vec::new() };
    let time = |objective: &Objective| match objective.bound {
        Bound::Time(bound) => Some(bound.0),
        Bound::Rate(_) | Bound::Fraction(_) => None,
    };
    objectives.iter().filter_map(|objective| Some((objective, time(objective)?))).collect()
}

fn chart(markup: &mut Markup, campaign: &Campaign, marks: &[Mark<'_>]) {
    let (x_title, finding) = match campaign.finding {
        CampaignResult::Scan { .. } => {
            ("done/s", "p99 and p50 over what was done; whiskers are 95 % intervals.")
        }
        CampaignResult::Search { .. } => {
            ("offered/s", "p99 and p50 of each step over its rate; whiskers are 95 % intervals.")
        }
        CampaignResult::Repeat { .. } => {
            ("run", "p99 and p50 of each run; whiskers are 95 % intervals within it.")
        }
    };
    let p50_ns = |mark: &Mark<'_>| mark.run.percentile(Quantile::P50).map(|found| found.value_ns);
    let bounds = objectives(campaign);
    let times = marks.iter().flat_map(|mark| [Some(mark.ends_ns.0), Some(mark.ends_ns.1), p50_ns(mark)]);
    let times: Vec<u64> = times.flatten().chain(bounds.iter().map(|(_, ns)| *ns)).collect();
    let low = times.iter().min().map_or(1.0, |ns| *ns as f64 * 0.8);
    let high = times.iter().max().map_or(10.0, |ns| *ns as f64 * 2.0);
    let most = marks.iter().map(|mark| mark.x).fold(1.0, f64::max) * 1.06;
    let is_curve = !matches!(campaign.finding, CampaignResult::Repeat { .. });
    let x = if is_curve { Values::Number(most) } else { Values::Count(most) };
    let title = "p99 and p50 of every run";
    let mut frame = Frame::new(title, HEIGHT, (x, x_title), (Values::Latency(low, high), "response time"));
    for (objective, ns) in bounds {
        let y = frame.y.pixel(ns as f64).floor() + 0.5;
        let plot = frame.plot;
        frame.picture.line(Point { x: plot.x, y }, Point { x: plot.right(), y }, OBJECTIVE);
        frame.note(Point { x: plot.x + 6.0, y: y - 5.0 }, Anchor::Start, Ink::Caution, objective.to_string());
    }
    let p50: Vec<Point> =
        marks.iter().filter_map(|mark| Some(frame.at(mark.x, p50_ns(mark)? as f64))).collect();
    let p99: Vec<Point> = marks.iter().map(|mark| frame.at(mark.x, mark.p99_ns as f64)).collect();
    for (points, stroke) in [(p50, P50), (p99, P99)] {
        if is_curve && points.len() > 1 {
            frame.picture.push(Shape::Polyline { points, stroke });
        } else {
            frame.picture.push(Shape::Dots { points, stroke: Stroke { width: 7.0, ..stroke } });
        }
    }
    for mark in marks {
        let at = frame.at(mark.x, mark.p99_ns as f64);
        let [from, to] = [mark.ends_ns.0, mark.ends_ns.1].map(|ns| frame.at(mark.x, ns as f64));
        draw(&mut frame.picture, mark, at, from, to);
        if marks.len() <= NAMES_MAX
            && let Some(setting) = mark.run.setting
        {
            let at = Point { x: at.x, y: (to.y - 12.0).max(frame.plot.y + 12.0) };
            frame.note(at, Anchor::Middle, Ink::Soft, super::text::setting_text(setting));
        }
    }
    frame::open_figure(markup, None, finding, keys(marks));
    frame::chart(markup, &frame);
    markup.close("figure");
}

/// Is its dot filled: did it pass, as a step of a search, or is its p99 trusted?
fn is_filled(run: &RunRow) -> bool {
    if let Some((step, _)) = &run.step {
        return *step == StepResult::Passed;
    }
    let p99 = run.verdict.percentiles.iter().find(|trust| trust.quantile == Quantile::P99);
    p99.is_some_and(|trust| trust.status <= CheckStatus::Ok) && run.verdict.status != Status::NotTrusted
}

fn draw(picture: &mut Picture, mark: &Mark<'_>, at: Point, from: Point, to: Point) {
    if mark.is_knee {
        picture.push(Shape::Dots { points: vec![at], stroke: KNEE });
        picture.push(Shape::Dots { points: vec![at], stroke: KNEE_INSIDE });
    }
    picture.line(from, to, P99);
    if mark.run.limit.is_some() {
        for rise in [-6.0, 6.0] {
            let (start, end) =
                (Point { x: at.x - 6.0, y: at.y - rise }, Point { x: at.x + 6.0, y: at.y + rise });
            picture.line(start, end, LIMIT);
        }
        return;
    }
    picture.push(Shape::Dots { points: vec![at], stroke: DOT });
    if !is_filled(mark.run) {
        picture.push(Shape::Dots { points: vec![at], stroke: HOLLOW });
    }
}

fn keys(marks: &[Mark<'_>]) -> Vec<Key> {
    let key = |name: &str, sample| Key { name: name.to_owned(), class: "", sample };
    let middle = Point { x: 13.0, y: 7.0 };
    let mut keys = vec![key("p99", frame::line_sample(P99)), key("p50", frame::line_sample(P50))];
    let is_search = marks.iter().any(|mark| mark.run.step.is_some());
    let [filled, hollow] = match is_search {
        true => ["the step passed", "the step did not pass"],
        false => ["p99 is trusted", "p99 needs care"],
    };
    keys.push(key(filled, Shape::Dots { points: vec![middle], stroke: DOT }));
    if marks.iter().any(|mark| !is_filled(mark.run)) {
        let ring = Shape::Group {
            class: "",
            shapes: vec![
                Shape::Dots { points: vec![middle], stroke: DOT },
                Shape::Dots { points: vec![middle], stroke: HOLLOW },
            ],
        };
        keys.push(key(hollow, ring));
    }
    if marks.iter().any(|mark| mark.run.limit.is_some()) {
        let strokes = [(2.0, 12.0), (12.0, 2.0)].map(|(from, to)| Shape::Polyline {
            points: vec![Point { x: 8.0, y: from }, Point { x: 18.0, y: to }],
            stroke: LIMIT,
        });
        keys.push(key("a limit was met", Shape::Group { class: "", shapes: strokes.to_vec() }));
    }
    if marks.iter().any(|mark| mark.is_knee) {
        let ring = Shape::Group {
            class: "",
            shapes: vec![
                Shape::Dots { points: vec![middle], stroke: Stroke { width: 13.0, ..KNEE } },
                Shape::Dots { points: vec![middle], stroke: Stroke { width: 9.0, ..KNEE_INSIDE } },
            ],
        };
        keys.push(key("knee", ring));
    }
    keys
}

fn table(markup: &mut Markup, campaign: &Campaign) {
    let quantiles = campaign.head.quantiles();
    let p99s = campaign.runs.iter().filter_map(|run| run.percentile(Quantile::P99));
    let least = p99s.map(|found| found.value_ns).min().unwrap_or(1_000) as f64;
    let unit = TimeUnit::ALL.into_iter().rev().find(|unit| least >= unit.ns()).unwrap_or(TimeUnit::Ns);
    let time = |ns: u64| quantity::significant(ns as f64 / unit.ns());
    let row =
        |(index, run): (usize, &RunRow)| {
            let setting = run.setting.map(super::text::setting_text);
            let mut row = vec![setting.unwrap_or_else(|| (index + 1).to_string())];
            row.push(run.offered.map_or("-".to_owned(), rate));
            row.push(rate(run.completed));
            row.extend(quantiles.iter().map(|quantile| {
                run.percentile(*quantile).map_or("-".to_owned(), |found| time(found.value_ns))
            }));
            let interval = run.percentile(Quantile::P99).and_then(|found| found.interval_ns);
            row.push(interval.map_or("-".to_owned(), |(low, high)| {
                format!("{} to {}", time(low), high.map_or("open".to_owned(), time))
            }));
            row.push(run.client_error_ns.map_or("-".to_owned(), time));
            row.push(run.failed.to_string());
            row.push(run.cpu_ns.map_or("-".to_owned(), |ns| quantity::significant(ns / 1e3)));
            let discarded = if campaign.is_discarded(index) { ", discarded" } else { "" };
            let step = run.step.as_ref().map_or(String::new(), |(end, _)| format!(", {}", end.name()));
            row.push(format!("{}{step}{discarded}", word(run).0));
            row
        };
    let rows: Vec<Vec<String>> = campaign.runs.iter().enumerate().map(row).collect();
    let times: Vec<String> = quantiles.iter().map(|quantile| format!("{quantile}/{unit}")).collect();
    let first = match &campaign.finding {
        CampaignResult::Scan { option, .. } => option,
        CampaignResult::Search { .. } => "rate",
        CampaignResult::Repeat { .. } => "run",
    };
    let mut headings = vec![Heading::Words(first), Heading::Number("offered/s"), Heading::Number("done/s")];
    headings.extend(times.iter().map(|name| Heading::Number(name)));
    headings.extend(["p99 interval", "p99 client<=", "failed", "CPU/us"].map(Heading::Number));
    headings.push(Heading::Words("finding"));
    markup.table("Every run, in the order in which they were made", &headings, &rows);
}
