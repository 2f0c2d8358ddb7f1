//! A run as it goes on: intervals in, a [`Glance`] at any instant out.
//!
//! For watching only: it forgets intervals older than two seconds. Time is an argument. Invariant: the glance of an instant depends on what was seen before it, not on how often anyone looked.

use super::status_line::{Glance, Tail};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::{Histogram, SparseHistogram};
use brunt_stats::interval::Interval;
use brunt_stats::latency::LatencySummary;
use brunt_stats::measured_window::MeasuredWindow;
use std::collections::VecDeque;

/// What the rate and the tail are taken over.
const RECENT_NS: u64 = 1_000_000_000;
/// An interval is 100 ms long and takes a look of the control thread (10 ms) to arrive: what is younger is not complete.
const LAG_NS: u64 = 120_000_000;
/// A rate over less than an interval says nothing.
const RATE_SPAN_MIN_NS: u64 = 100_000_000;
/// Seconds of which the slow end is kept.
const COURSE_MAX: usize = 8;

/// What is known of the run before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Keys that preload stores, if there is one.
    pub preload: Option<u64>,
    /// Requests of the measured window, where their number is its end.
    pub requests: Option<u64>,
    /// How long replies are awaited after the window.
    pub drain_ns: u64,
}

impl Expected {
    /// What a plan says.
    pub(crate) fn of(plan: &Plan) -> Self {
        let preload = plan.preload.then(|| plan.preload_stores());
        Self { preload, requests: plan.stop.requests, drain_ns: plan.drain.0 }
    }
}

/// What one interval adds to the last second.
#[derive(Debug)]
struct Slice {
    start_ns: u64,
    end_ns: u64,
    /// Requests that ended well.
    ended: u64,
    response: Vec<SparseHistogram>,
}

impl Slice {
    /// How much of it lies in a span, from 0 to 1.
    fn part_within(&self, from_ns: u64, until_ns: u64) -> f64 {
        let overlap_ns = self.end_ns.min(until_ns).saturating_sub(self.start_ns.max(from_ns));
        match self.end_ns - self.start_ns {
            0 => 0.0,
            length_ns => overlap_ns as f64 / length_ns as f64,
        }
    }
}

/// The run so far.
#[derive(Debug)]
pub(crate) struct Tracker {
    expected: Expected,
    /// When we first looked.
    origin_ns: Option<u64>,
    window: Option<MeasuredWindow>,
    slices: VecDeque<Slice>,
    /// Preload has sent requests.
    has_preloaded: bool,
    /// Keys that preload has stored.
    stored: u64,
    /// Requests due in the measured window, without those that follow others.
    scheduled: u64,
    failed: u64,
    /// The slow end of the last whole seconds of the window.
    course: VecDeque<Option<u64>>,
    /// Where the next second of these begins.
    second_ns: u64,
    /// Kept, because it takes a hundred KiB.
    recent: Histogram,
}

impl Tracker {
    pub(crate) fn new(expected: Expected) -> Self {
        Self {
            expected,
            origin_ns: None,
            window: None,
            slices: VecDeque::new(),
            has_preloaded: false,
            stored: 0,
            scheduled: 0,
            failed: 0,
            course: VecDeque::new(),
            second_ns: u64::MAX,
            recent: Histogram::new(),
        }
    }

    /// The schedule has its times.
    pub(crate) fn start(&mut self, window: MeasuredWindow) {
        self.window = Some(window);
        self.second_ns = window.measure_ns;
    }

    /// A worker handed over what it recorded.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let mut ended = 0;
        for entry in &interval.books {
            let requests = &entry.counts.requests;
            ended += requests.completed() + requests.outcome(OutcomeClass::Unacknowledged);
            self.failed += requests.failed();
            match entry.phase {
                Phase::Preload => {
                    self.has_preloaded |= requests.sent > 0;
                    self.stored += requests.completed();
                }
                Phase::Measure => self.scheduled += requests.scheduled.saturating_sub(requests.followup),
                _ => {}
            }
        }
        let response = interval.rows.iter().map(|row| row.latencies.response.clone()).collect();
        let (start_ns, end_ns) = (interval.start_ns, interval.end_ns);
        self.slices.push_back(Slice { start_ns, end_ns, ended, response });
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now_ns: u64) {
        self.origin_ns.get_or_insert(now_ns);
        let end_ns = self.window.map_or(0, |window| window.end_ns);
        while self.second_ns.saturating_add(RECENT_NS) <= now_ns.saturating_sub(LAG_NS).min(end_ns) {
            let tail_ns = match self.tail(self.second_ns, self.second_ns + RECENT_NS) {
                Tail::P99(ns) | Tail::Max(ns) => Some(ns),
                Tail::Nothing => None,
            };
            if self.course.len() == COURSE_MAX {
                self.course.pop_front();
            }
            self.course.push_back(tail_ns);
            self.second_ns += RECENT_NS;
        }
        self.slices.retain(|slice| slice.end_ns + 2 * RECENT_NS > now_ns);
    }

    /// What there is to see.
    pub(crate) fn glance(&mut self, now_ns: u64) -> Glance {
        let origin_ns = self.origin_ns.unwrap_or(now_ns);
        match self.window {
            Some(window) if now_ns >= window.start_ns => self.glance_at_schedule(now_ns, window),
            _ => self.glance_at_preparation(now_ns, origin_ns),
        }
    }

    fn glance_at_preparation(&mut self, now_ns: u64, origin_ns: u64) -> Glance {
        let wanted = self.expected.preload.filter(|_| self.has_preloaded);
        let rate = self.rate(now_ns, origin_ns);
        let to_go = |wanted: u64| time_for(wanted.saturating_sub(self.stored), rate?);
        Glance {
            phase: if wanted.is_some() { Phase::Preload } else { Phase::Connect },
            elapsed_ns: now_ns.saturating_sub(origin_ns),
            total_ns: None,
            done: wanted.map(|wanted| (self.stored, wanted, " keys")),
            rate: rate.filter(|_| wanted.is_some()),
            tail: Tail::Nothing,
            course: Vec::new(),
            failed: self.failed,
            to_go_ns: wanted.and_then(to_go),
        }
    }

    fn glance_at_schedule(&mut self, now_ns: u64, window: MeasuredWindow) -> Glance {
        let is_warm = now_ns >= window.measure_ns;
        let known_end_ns = Some(window.end_ns).filter(|end_ns| *end_ns != u64::MAX);
        let (phase, from_ns, until_ns) = if !is_warm {
            (Phase::Warmup, window.start_ns, Some(window.measure_ns))
        } else if now_ns < window.end_ns {
            (Phase::Measure, window.measure_ns, known_end_ns)
        } else {
            (Phase::Drain, window.end_ns, Some(window.end_ns.saturating_add(self.expected.drain_ns)))
        };
        let rate = self.rate(now_ns, window.start_ns);
        let wanted = self.expected.requests.filter(|_| is_warm && now_ns < window.end_ns);
        let by_requests = wanted.and_then(|wanted| time_for(wanted.saturating_sub(self.scheduled), rate?));
        let by_time = known_end_ns.and_then(|end_ns| end_ns.checked_sub(now_ns)).filter(|ns| *ns > 0);
        Glance {
            phase,
            elapsed_ns: now_ns - from_ns,
            total_ns: until_ns.map(|until_ns| until_ns - from_ns),
            done: wanted.map(|wanted| (self.scheduled, wanted, "")),
            rate,
            tail: match is_warm {
                true => self.tail(now_ns.saturating_sub(LAG_NS + RECENT_NS), u64::MAX),
                false => Tail::Nothing,
            },
            course: self.course.iter().copied().collect(),
            failed: self.failed,
            to_go_ns: by_requests.into_iter().chain(by_time).min(),
        }
    }

    /// Response times of the last second of which everything is known.
    pub(crate) fn last_second(&mut self, now_ns: u64) -> LatencySummary {
        self.tail(now_ns.saturating_sub(LAG_NS + RECENT_NS), u64::MAX);
        LatencySummary::of(&self.recent)
    }

    /// Requests per second over the last second of which everything is known, as far as it lies behind `from_ns`.
    fn rate(&self, now_ns: u64, from_ns: u64) -> Option<f64> {
        let until_ns = now_ns.saturating_sub(LAG_NS);
        let from_ns = from_ns.max(until_ns.saturating_sub(RECENT_NS));
        let span_ns = until_ns.checked_sub(from_ns).filter(|span_ns| *span_ns >= RATE_SPAN_MIN_NS)?;
        let ended = |slice: &Slice| slice.part_within(from_ns, until_ns) * slice.ended as f64;
        Some(self.slices.iter().map(ended).sum::<f64>() * 1e9 / span_ns as f64)
    }

    /// How slow the intervals were that ended between these times, all classes and ops together.
    fn tail(&mut self, after_ns: u64, until_ns: u64) -> Tail {
        self.recent.clear();
        let is_between = |slice: &&Slice| slice.end_ns > after_ns && slice.end_ns <= until_ns;
        for slice in self.slices.iter().filter(is_between) {
            slice.response.iter().for_each(|response| self.recent.merge_sparse(response));
        }
        let p99_ns = self.recent.quantile(Quantile::P99);
        match (p99_ns, self.recent.max()) {
            (Some(p99_ns), _) if Quantile::P99.is_supported_by(self.recent.count()) => Tail::P99(p99_ns),
            (_, Some(max_ns)) => Tail::Max(max_ns),
            _ => Tail::Nothing,
        }
    }
}

/// How long `count` requests take at a rate; `None` where that is for ever.
fn time_for(count: u64, rate: f64) -> Option<u64> {
    (rate > 0.0).then(|| (count as f64 / rate * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{KeyRef, Op, OpKind};
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::sample::{Sample, Times};

    const MS: u64 = 1_000_000;

    /// What an interval of a worker holds.
    struct Recorded {
        phase: Phase,
        completed: u64,
        failed: u64,
        response_ns: u64,
    }

    fn interval(start_ms: u64, end_ms: u64, recorded: &Recorded) -> Interval {
        let plan = brunt_plan::resolve::resolve(
            &brunt_plan::spec::PlanSpec::default(),
            &brunt_plan::resolve::Host { allowed_cpus: vec![0], random_seed: 1 },
        );
        let mut set = RecorderSet::new(&Layout::of(&plan.unwrap()));
        let op = Op::of(OpKind::Get, KeyRef::Id(0));
        let good = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
        let bad = Outcome::without_reply(OutcomeClass::Lost);
        for (count, outcome) in [(recorded.completed, good), (recorded.failed, bad)] {
            for _ in 0..count {
                set.scheduled(recorded.phase, &op);
                set.sent(recorded.phase, &op, 1, 0);
                let times = Times {
                    polled_ns: recorded.response_ns,
                    first_byte_ns: recorded.response_ns,
                    done_ns: recorded.response_ns,
                    ..Times::default()
                };
                set.record(
                    recorded.phase,
                    &Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times },
                    1,
                    1,
                );
            }
        }
        set.take_interval(0, start_ms * MS, end_ms * MS)
    }

    fn watch(preload: Option<u64>, requests: Option<u64>) -> Tracker {
        Tracker::new(Expected { preload, requests, drain_ns: 10_000 * MS })
    }

    /// Intervals of 100 ms from one instant to another, in which the same happens.
    fn pass(watch: &mut Tracker, ms: std::ops::Range<u64>, recorded: &Recorded) {
        for start_ms in ms.step_by(100) {
            watch.add(&interval(start_ms, start_ms + 100, recorded));
            watch.tick((start_ms + 110) * MS);
        }
    }

    #[test]
    fn preload_counts_keys() {
        let mut watch = watch(Some(100_000), None);
        watch.tick(1_000 * MS);
        let glance = watch.glance(1_500 * MS);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.done, glance.rate),
            (Phase::Connect, 500 * MS, None, None)
        );
        let stores = Recorded { phase: Phase::Preload, completed: 1_000, failed: 1, response_ns: MS };
        pass(&mut watch, 1_500..3_000, &stores);
        let glance = watch.glance(3_120 * MS);
        assert_eq!(glance.phase, Phase::Preload);
        assert_eq!(glance.done, Some((15_000, 100_000, " keys")));
        assert_eq!((glance.rate, glance.failed, glance.tail), (Some(10_000.0), 15, Tail::Nothing));
        // 85 000 keys at 10 000 a second.
        assert_eq!(glance.to_go_ns, Some(8_500 * MS));
    }

    #[test]
    fn preload_without_success_is_shown() {
        let mut watch = watch(Some(100), None);
        watch.tick(1_000 * MS);
        let refused = Recorded { phase: Phase::Preload, completed: 0, failed: 1, response_ns: MS };
        pass(&mut watch, 1_500..1_600, &refused);
        let glance = watch.glance(2_000 * MS);
        assert_eq!((glance.phase, glance.done, glance.failed), (Phase::Preload, Some((0, 100, " keys")), 1));
    }

    #[test]
    fn schedule_shows_phase_rate_and_tail() {
        let mut watch = watch(None, None);
        watch.tick(1_000 * MS);
        let (start_ns, measure_ns, end_ns) = (2_000 * MS, 3_000 * MS, 13_000 * MS);
        watch.start(MeasuredWindow { start_ns, measure_ns, end_ns, ..MeasuredWindow::default() });
        let warm = Recorded { phase: Phase::Warmup, completed: 50, failed: 0, response_ns: MS };
        pass(&mut watch, 2_000..3_000, &warm);
        let glance = watch.glance(2_620 * MS);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.total_ns),
            (Phase::Warmup, 620 * MS, Some(1_000 * MS))
        );
        assert_eq!((glance.tail, glance.to_go_ns), (Tail::Nothing, Some(10_380 * MS)));
        assert_eq!(glance.rate, Some(500.0), "half a second of 50 in 100 ms");

        let measured = Recorded { phase: Phase::Measure, completed: 200, failed: 3, response_ns: 400_000 };
        pass(&mut watch, 3_000..5_000, &measured);
        let glance = watch.glance(5_120 * MS);
        assert_eq!((glance.phase, glance.rate, glance.failed), (Phase::Measure, Some(2_000.0), 60));
        assert_eq!((glance.elapsed_ns, glance.to_go_ns), (2_120 * MS, Some(7_880 * MS)));
        // All values are in one bucket, of which the largest is known exactly.
        assert_eq!(glance.tail, Tail::P99(400_000));

        // The server stalls: nothing ends any more, and a second later nothing is known of response times.
        let nothing = Recorded { phase: Phase::Measure, completed: 0, failed: 0, response_ns: 0 };
        pass(&mut watch, 5_000..5_500, &nothing);
        assert_eq!(watch.glance(5_620 * MS).rate, Some(1_000.0));
        pass(&mut watch, 5_500..6_500, &nothing);
        let glance = watch.glance(6_620 * MS);
        assert_eq!((glance.rate, glance.tail), (Some(0.0), Tail::Nothing));
        let slow = Recorded { phase: Phase::Measure, completed: 5, failed: 0, response_ns: 1_500 * MS };
        pass(&mut watch, 6_500..6_600, &slow);
        assert_eq!(
            watch.glance(6_720 * MS).tail,
            Tail::Max(1_500 * MS),
            "five say nothing of a hundredth part"
        );

        // By second of the window, whoever looks: two without stalls, one of half, one with slow replies.
        watch.tick(6_720 * MS);
        assert_eq!(watch.glance(6_720 * MS).course, [Some(400_000), Some(400_000), None]);
        for second in 7..=12 {
            watch.tick(second * 1_000 * MS + 200 * MS);
        }
        let glance = watch.glance(13_250 * MS);
        assert_eq!(glance.course.len(), 8, "no more are kept");
        assert_eq!(glance.course[1..4], [None, Some(1_500 * MS), None]);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.total_ns),
            (Phase::Drain, 250 * MS, Some(10_000 * MS))
        );
        assert_eq!(glance.to_go_ns, None);
    }

    #[test]
    fn request_goals_set_the_end() {
        let mut watch = watch(None, Some(10_000));
        watch.tick(1_000 * MS);
        let (start_ns, measure_ns) = (1_000 * MS, 1_000 * MS);
        watch.start(MeasuredWindow { start_ns, measure_ns, end_ns: u64::MAX, ..MeasuredWindow::default() });
        let measured = Recorded { phase: Phase::Measure, completed: 100, failed: 0, response_ns: MS };
        pass(&mut watch, 1_000..3_000, &measured);
        let glance = watch.glance(3_120 * MS);
        assert_eq!((glance.total_ns, glance.done), (None, Some((2_000, 10_000, ""))));
        assert_eq!(glance.to_go_ns, Some(8_000 * MS), "8 000 at 1 000 a second");
    }
}
