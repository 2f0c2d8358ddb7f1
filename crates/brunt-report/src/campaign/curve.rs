//! The chart of a campaign: latency over throughput with knee and limit, the steps of a search beside their objectives, or the runs of one
//! plan; below it what a request costs.
//!
//! Invariant: every run that counts and has a p99 is in the chart; one that is INVALID, or whose objectives do not hold, is hollow;
//! one that met a limit is crossed, and joined to the others only if it lies beyond all that met none.

use super::table::setting_text;
use super::{Campaign, CampaignQuestion, RunPurpose, RunRow};
use crate::html::frame::{self, Frame, Key, Size, Values};
use brunt_picture::{Anchor, Area, Fill, Ink, Picture, Point, Shape, Stroke};
use brunt_plan::objective::{Bound, Objective};
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::{Capacity, StepResult};
use brunt_stats::knee::Knee;
use brunt_stats::median::median_of_sorted;

/// A setting is named beside its point where it has so many pixels.
const NAME_ROOM: f64 = 54.0;
const P99: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const P50: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
const DOT: Stroke = Stroke::solid(Ink::Series(0), 10.0);
const HOLLOW: Stroke = Stroke::solid(Ink::Page, 6.0);
const LIMIT: Stroke = Stroke::solid(Ink::Invalid, 2.5);
const KNEE: Stroke = Stroke::solid(Ink::Caution, 22.0);
/// The line from the origin on which the knee lies.
const TANGENT: Stroke = Stroke { ink: Ink::Caution, width: 1.0, dash: &[2.0, 3.0] };
const TANGENT_POINTS: u32 = 60;
const KNEE_INSIDE: Stroke = Stroke::solid(Ink::Page, 17.0);
const OBJECTIVE: Stroke = Stroke { ink: Ink::Caution, width: 1.5, dash: &[6.0, 3.0] };
const BRACKET: Fill = Fill::faint(Ink::Caution, 0.16);
const CLIENT_CPU: Stroke = Stroke::solid(Ink::Series(3), 1.5);
const SERVER_CPU: Stroke = Stroke { ink: Ink::Series(2), width: 1.5, dash: &[2.0, 2.0] };

/// One run in the chart.
pub(crate) struct Mark<'a> {
    pub(super) x: f64,
    pub(super) run: &'a RunRow,
    pub(super) p99_ns: u64,
    /// The ends of its interval; without an upper one the value itself.
    pub(super) ends_ns: (u64, u64),
    is_knee: bool,
    /// A trouble that came and went: it is no point of the curve.
    is_passing: bool,
}

impl Mark<'_> {
    pub(super) fn p50_ns(&self) -> Option<u64> {
        self.run.percentile(Quantile::P50).map(|found| found.value_ns)
    }
}

/// The runs of a campaign over what they differ by.
pub(crate) struct Curve<'a> {
    campaign: &'a Campaign,
    /// By what lies along the x axis.
    pub(super) marks: Vec<Mark<'a>>,
    /// The end of the x axis.
    pub(super) most: f64,
    pub(super) x_title: &'static str,
    /// What the chart shows, in words.
    pub(super) finding: &'static str,
}

impl<'a> Curve<'a> {
    /// `None` where fewer than two runs count.
    pub(crate) fn of(campaign: &'a Campaign) -> Option<Self> {
        let mut marks = marks(campaign);
        marks.sort_by(|one, other| one.x.total_cmp(&other.x));
        let (x_title, finding) = match campaign.question {
            CampaignQuestion::Scan { .. } => {
                ("done/s", "p99 and p50 over what was done; whiskers are 95 % intervals.")
            }
            CampaignQuestion::Search { .. } => {
                ("offered/s", "p99 and p50 of each step over its rate; whiskers are 95 % intervals.")
            }
            CampaignQuestion::Repeat { .. } => {
                ("run", "p99 and p50 of each run; whiskers are 95 % intervals within it.")
            }
        };
        let most = marks.iter().map(|mark| mark.x).fold(1.0, f64::max) * 1.06;
        (marks.len() > 1).then_some(Self { campaign, marks, most, x_title, finding })
    }

    /// Is there an x axis on which lines join the runs?
    fn is_curve(&self) -> bool {
        !matches!(self.campaign.question, CampaignQuestion::Repeat { .. })
    }

    fn x(&self) -> Values {
        if self.is_curve() { Values::Number(self.most) } else { Values::Count(self.most) }
    }

    /// The runs that lines join, in their order: of a scan as they were set, since throughput may fall again.
    fn in_order(&self) -> Vec<&Mark<'a>> {
        let mut marks: Vec<&Mark<'a>> = self.marks.iter().filter(|mark| !mark.is_passing).collect();
        let setting = |mark: &Mark<'_>| mark.run.place.setting.map_or(mark.x, SweepPoint::as_f64);
        if self.is_curve() {
            marks.sort_by(|one, other| setting(one).total_cmp(&setting(other)));
        }
        marks
    }

    /// p99 with its interval, and p50.
    pub(crate) fn latencies(&self, size: Size) -> Frame {
        let bounds = objectives(self.campaign);
        let times =
            self.marks.iter().flat_map(|mark| [Some(mark.ends_ns.0), Some(mark.ends_ns.1), mark.p50_ns()]);
        let times: Vec<u64> = times.flatten().chain(bounds.iter().map(|(_, ns)| *ns)).collect();
        let low = times.iter().min().map_or(1.0, |ns| *ns as f64 * 0.8);
        let high = times.iter().max().map_or(10.0, |ns| *ns as f64 * 2.0);
        let y = (Values::Latency(low, high), "response time");
        let mut frame = Frame::new("p99 and p50 of every run", size, (self.x(), self.x_title), y);
        let plot = frame.plot;
        frame.draw(|picture, frame| {
            if let CampaignQuestion::Search {
                capacity: Some(Capacity::Between { passed, failed, .. }), ..
            } = self.campaign.question
            {
                let (from, to) = (frame.x.pixel(passed), frame.x.pixel(failed));
                let area = Area { x: from, width: (to - from).max(1.0), ..plot };
                picture.group("bracket", |picture| {
                    picture.push(Shape::Rectangle { area, fill: BRACKET });
                });
            }
            for (_, ns) in &bounds {
                let y = frame.y.pixel(*ns as f64).floor() + 0.5;
                picture.line(Point { x: plot.x, y }, Point { x: plot.right(), y }, OBJECTIVE);
            }
            if let Some(knee) = self.knee() {
                picture.group("tangent", |picture| {
                    picture.push(Shape::Polyline { points: self.tangent(frame, knee, low), stroke: TANGENT });
                });
            }
            let marks = self.in_order();
            let p50 = marks.iter().filter_map(|mark| Some(frame.at(mark.x, mark.p50_ns()? as f64))).collect();
            let p99 = marks.iter().map(|mark| frame.at(mark.x, mark.p99_ns as f64)).collect();
            picture.group("p50", |picture| self.join(picture, p50, P50));
            picture.group("p99", |picture| {
                self.join(picture, p99, P99);
                self.marks.iter().for_each(|mark| draw(picture, frame, mark));
            });
        });
        for (objective, ns) in bounds {
            let at = Point { x: plot.x + 6.0, y: frame.y.pixel(ns as f64) - 5.0 };
            frame.note(at, Anchor::Start, Ink::Caution, objective.to_string());
        }
        self.names(&mut frame);
        frame
    }

    /// Throughput and p99 of the knee, as it was found: the medians of its runs.
    fn knee(&self) -> Option<(f64, f64)> {
        let marks = self.marks.iter().filter(|mark| mark.is_knee);
        let (x, mut p99_ns): (Vec<f64>, Vec<f64>) = marks.map(|mark| (mark.x, mark.p99_ns as f64)).unzip();
        p99_ns.sort_unstable_by(f64::total_cmp);
        Some((median_of_sorted(&x)?, median_of_sorted(&p99_ns)?))
    }

    /// Where latency is to throughput as at the knee: a line from the origin, which is bent where latency is logarithmic. From where it is at
    /// `low`.
    fn tangent(&self, frame: &Frame, (x, p99_ns): (f64, f64), low: f64) -> Vec<Point> {
        let from = x * low / p99_ns;
        let steps = (0..=TANGENT_POINTS).map(|step| f64::from(step) / f64::from(TANGENT_POINTS));
        let at = |part: f64| from + (self.most - from) * part;
        steps.map(|part| frame.at(at(part), at(part) * p99_ns / x)).collect()
    }

    /// The settings beside their points, where there is room.
    fn names(&self, frame: &mut Frame) {
        let mut end = f64::NEG_INFINITY;
        for mark in &self.marks {
            let (Some(setting), to) = (mark.run.place.setting, frame.at(mark.x, mark.ends_ns.1 as f64))
            else {
                continue;
            };
            if to.x - end < NAME_ROOM {
                continue;
            }
            end = to.x;
            let at = Point { x: to.x, y: (to.y - 12.0).max(frame.plot.y + 12.0) };
            frame.note(at, Anchor::Middle, Ink::Soft, setting_text(setting));
        }
    }

    /// Processor time of client and servers per request, where it is known.
    pub(crate) fn cpu(&self, size: Size) -> Option<Frame> {
        let costs = [CLIENT_CPU, SERVER_CPU].map(|stroke| {
            let marks = self.in_order();
            let us = marks.into_iter().filter_map(|mark| Some((mark.x, cpu_us(mark.run, stroke)?)));
            (stroke, us.collect::<Vec<(f64, f64)>>())
        });
        let most = costs.iter().flat_map(|(_, us)| us).map(|(_, us)| *us).reduce(f64::max)?;
        let title = "Processor time per request of client and servers";
        let y = (Values::Number(most * 1.1), "CPU us/request");
        let mut frame = Frame::new(title, size, (self.x(), self.x_title), y);
        frame.draw(|picture, frame| {
            for (class, (stroke, us)) in ["client-cpu", "server-cpu"].into_iter().zip(costs) {
                let points: Vec<Point> = us.into_iter().map(|(x, us)| frame.at(x, us)).collect();
                picture.group(class, |picture| {
                    self.join(picture, points.clone(), stroke);
                    picture.push(Shape::Dots { points, stroke: Stroke { width: 6.0, ..stroke } });
                });
            }
        });
        Some(frame)
    }

    fn join(&self, picture: &mut Picture, points: Vec<Point>, stroke: Stroke) {
        if self.is_curve() && points.len() > 1 {
            picture.push(Shape::Polyline { points, stroke });
        } else {
            picture.push(Shape::Dots { points, stroke: Stroke { width: 7.0, ..stroke } });
        }
    }

    /// The legend of both charts.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let marks = &self.marks;
        let key = |name: &str, class, sample| Key { name: name.to_owned(), class, sample };
        let middle = Point { x: 13.0, y: 7.0 };
        let dot = |stroke| Shape::Dots { points: vec![middle], stroke };
        let ring = |outside, inside| Shape::Group { class: "", shapes: vec![dot(outside), dot(inside)] };
        let mut keys =
            vec![key("p99", "p99", frame::line_sample(P99)), key("p50", "p50", frame::line_sample(P50))];
        let is_search = matches!(self.campaign.question, CampaignQuestion::Search { .. });
        let [filled, hollow] = match is_search {
            true => ["the objectives hold", "they do not hold"],
            false => ["OK or CAUTION", "INVALID"],
        };
        keys.push(key(filled, "", dot(DOT)));
        if marks.iter().any(|mark| !is_filled(mark.run)) {
            keys.push(key(hollow, "", ring(DOT, HOLLOW)));
        }
        if marks.iter().any(|mark| mark.run.is_limited) {
            let strokes = [(2.0, 12.0), (12.0, 2.0)].map(|(from, to)| Shape::Polyline {
                points: vec![Point { x: 8.0, y: from }, Point { x: 18.0, y: to }],
                stroke: LIMIT,
            });
            keys.push(key("a limit was met", "", Shape::Group { class: "", shapes: strokes.to_vec() }));
        }
        if marks.iter().any(|mark| mark.is_knee) {
            let (outside, inside) = (Stroke { width: 13.0, ..KNEE }, Stroke { width: 9.0, ..KNEE_INSIDE });
            keys.push(key("knee", "", ring(outside, inside)));
            keys.push(key("throughput / p99 of the knee", "tangent", frame::line_sample(TANGENT)));
        }
        if matches!(
            self.campaign.question,
            CampaignQuestion::Search { capacity: Some(Capacity::Between { .. }), .. }
        ) {
            keys.push(key("the capacity lies here", "bracket", frame::area_sample(BRACKET)));
        }
        let costs = [
            ("client CPU/request", "client-cpu", CLIENT_CPU),
            ("server CPU/request", "server-cpu", SERVER_CPU),
        ];
        for (name, class, stroke) in costs {
            if marks.iter().any(|mark| cpu_us(mark.run, stroke).is_some()) {
                keys.push(key(name, class, frame::line_sample(stroke)));
            }
        }
        keys
    }
}

/// In microseconds, of the side that is drawn like this.
fn cpu_us(run: &RunRow, stroke: Stroke) -> Option<f64> {
    let ns = if stroke == CLIENT_CPU { run.result.client_cpu_ns() } else { run.result.server_cpu_ns() };
    ns.map(|ns| ns / 1e3)
}

/// The runs that have a p99 and count.
fn marks(campaign: &Campaign) -> Vec<Mark<'_>> {
    let is_scan = matches!(campaign.question, CampaignQuestion::Scan { .. });
    let knee_runs: &[usize] = match campaign.knee {
        Some(Knee::At(index)) => &campaign.points[index].runs,
        _ => &[],
    };
    // A limit below a setting that met none was a trouble that came and went.
    let setting = |run: &RunRow| run.place.setting.map_or(0.0, SweepPoint::as_f64);
    let free = campaign.runs.iter().filter(|run| !run.is_limited).map(setting).fold(0.0, f64::max);
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
        let ends_ns = (low_ns, high_ns.unwrap_or(found.value_ns));
        let is_passing = is_scan && run.is_limited && setting(run) < free;
        let is_knee = knee_runs.contains(&index);
        Some(Mark { x, run, p99_ns: found.value_ns, ends_ns, is_knee, is_passing })
    });
    mark.collect()
}

/// The objectives of a search that bound times, in nanoseconds.
fn objectives(campaign: &Campaign) -> Vec<(Objective, u64)> {
    if !matches!(campaign.question, CampaignQuestion::Search { .. }) {
        return Vec::new();
    }
    let time = |objective: Objective| match objective.bound {
        Bound::Time(bound) => Some((objective, bound.0)),
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

fn draw(picture: &mut Picture, frame: &Frame, mark: &Mark<'_>) {
    let at = frame.at(mark.x, mark.p99_ns as f64);
    let [from, to] = [mark.ends_ns.0, mark.ends_ns.1].map(|ns| frame.at(mark.x, ns as f64));
    if mark.is_knee {
        picture.push(Shape::Dots { points: vec![at], stroke: KNEE });
        picture.push(Shape::Dots { points: vec![at], stroke: KNEE_INSIDE });
    }
    picture.line(from, to, P99);
    if mark.run.is_limited {
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
