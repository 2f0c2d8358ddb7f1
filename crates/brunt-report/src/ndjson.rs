//! A run over time as JSON, one object on a line of its own for each second, for programs that read it while the run goes on.
//!
//! Not the `intervals` of a result, which have what the servers said, too: that is not known as soon as a second is over. Keys that both
//! have mean the same. Invariant: a line that was written while the run went on is that of its result, unless a worker handed over late what it
//! recorded, or the slices of the result have become longer than the line.

use crate::instant;
use crate::json::window::OpPiece;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::warmup::Warmup;
use brunt_stats::interval::Activity;
use brunt_stats::observer::Period;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::{Timeline, TimelinePoint};
use brunt_stats::window::RunTimes;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::Range;

/// Least length of a line, where none is asked for.
const WIDTH_NS: u64 = 1_000_000_000;

/// The lines of a run that goes on. What is not over as it was foreseen, such as the last second of a run that is bounded by a number of requests, has
/// its line when the result is there.
#[derive(Clone, Debug)]
pub struct LiveLines {
    plan: Plan,
    number: u64,
    times: RunTimes,
    /// How often the times were told: a second time where the plan leaves open when the window begins.
    told: u32,
    /// Up to when there are lines.
    written_ns: u64,
    /// The last period, which ended otherwise than was foreseen.
    last: Option<Period>,
}

impl LiveLines {
    /// Before a run begins, the first of its command having the number 1.
    pub fn new(plan: &Plan, number: u64) -> Self {
        Self { plan: plan.clone(), number, times: RunTimes::default(), told: 0, written_ns: 0, last: None }
    }

    /// How long the periods are that lines are of.
    pub fn period_ns(plan: &Plan) -> u64 {
        plan.interval.map_or(WIDTH_NS, |width| width.0)
    }

    fn write_line(&self, period: &Period, out: &mut dyn Write) -> io::Result<()> {
        let is_window_known = self.told > 1 || self.plan.warmup != Warmup::Auto;
        let facts = RunFacts { plan: &self.plan, number: self.number, times: &self.times, is_window_known };
        line(&facts, period.recorded.timeline(), 0..1, period.phase, &period.point(), out)
    }

    /// The schedule has its times; they may be told again.
    pub fn start(&mut self, times: &RunTimes) {
        self.times = *times;
        self.told += 1;
    }

    /// Writes the line of a period that is over, if it is one of warm-up or window.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_period(&mut self, period: &Period, out: &mut dyn Write) -> io::Result<()> {
        let Period { start_ns, end_ns, phase, .. } = period;
        let is_whole = end_ns - start_ns >= Self::period_ns(&self.plan)
            || [self.times.measure_ns, self.times.end_ns].contains(end_ns);
        if !matches!(phase, Phase::Warmup | Phase::Measure) {
            return Ok(());
        }
        if !is_whole {
            self.last = Some(period.clone());
            return Ok(());
        }
        self.written_ns = *end_ns;
        self.write_line(period, out)
    }

    /// Writes the lines that the result has beyond those that there are. Where it has longer ones only, the last one is that of the period.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_rest(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        let window = &summary.window;
        if summary.timeline().row_ns(window.measure_ns, WIDTH_NS) > Self::period_ns(&self.plan)
            && self.plan.interval.is_some()
        {
            return match &self.last {
                Some(last) if last.start_ns < window.end_ns => {
                    self.write_line(&Period { end_ns: last.end_ns.min(window.end_ns), ..last.clone() }, out)
                }
                _ => Ok(()),
            };
        }
        write_from(summary, self.number, self.written_ns, out)
    }
}

/// What all lines of a run have in common.
struct RunFacts<'a> {
    plan: &'a Plan,
    number: u64,
    times: &'a RunTimes,
    /// Is it known already when the window begins?
    is_window_known: bool,
}

/// Writes the lines of a run that has ended.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    write_from(summary, 1, 0, out)
}

/// Those that begin at an instant of the run's clock or later.
fn write_from(summary: &Summary, number: u64, from_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let (plan, times) = (&summary.record.plan, &summary.record.run.times);
    let facts = RunFacts { plan, number, times, is_window_known: true };
    let mut rows = summary.rows(WIDTH_NS).filter(|(.., point)| point.start_ns >= from_ns);
    rows.try_for_each(|(phase, span, point)| line(&facts, summary.timeline(), span, phase, &point, out))
}

/// A line; `span` says where in the timeline its slices lie.
fn line(
    facts: &RunFacts<'_>,
    timeline: &Timeline,
    span: Range<u64>,
    phase: Phase,
    point: &TimelinePoint,
    out: &mut dyn Write,
) -> io::Result<()> {
    let RunFacts { plan, number, times, is_window_known } = *facts;
    let Activity { scheduled, sent, completed, failed } = point.activity.without(&point.preload);
    let in_window = |at_ns: u64| is_window_known.then(|| at_ns.wrapping_sub(times.measure_ns) as i64);
    let mut value = json!({
        "time": times.epoch_us.and_then(|epoch_us| instant::at(epoch_us, point.start_ns)),
        "run": number,
        "phase": phase.name(),
        "start_ns": in_window(point.start_ns),
        "end_ns": in_window(point.end_ns),
        "scheduled": scheduled,
        "sent": sent,
        "completed": completed,
        "failed": failed,
    });
    if let (Value::Object(keys), Value::Object(latency)) = (&mut value, json!(point.latency)) {
        keys.extend(latency);
    }
    value["ops"] = json!(OpPiece::all(plan, timeline, span));
    value["client"] = json!(point.client.shares());
    serde_json::to_writer(&mut *out, &value)?;
    writeln!(out)
}
