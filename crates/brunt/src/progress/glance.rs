//! What a run looks like at one instant: the numbers of a progress line.
//!
//! Invariant: a function of the run, what was recorded and the instant; it does not depend on how often anyone looked.

use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_stats::live_run::{LiveRun, Second};
use brunt_stats::store::IntervalStore;

/// Seconds whose slow end is shown.
const COURSE_MAX: usize = 8;

/// The slow end of the response times of a second by its name, in nanoseconds: the 99th percentile, or the largest where a hundredth part
/// would be a handful of requests.
type Tail = Option<(&'static str, u64)>;

fn tail(second: &Second) -> Tail {
    let p99 = second.quantile(Quantile::P99).map(|ns| ("p99", ns));
    p99.or_else(|| Some(("max", second.response.max()?)))
}

/// What a run looks like at one instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Glance {
    /// What the run is doing.
    pub phase: Phase,
    /// Since the phase began.
    pub elapsed_ns: u64,
    /// How long the phase lasts, where that is known.
    pub total_ns: Option<u64>,
    /// How many of how many, and of what (nothing: requests).
    pub done: Option<(u64, u64, &'static str)>,
    /// Requests per second that ended well in the last second.
    pub rate: Option<f64>,
    /// How slow the last second was; `None` where nothing is measured.
    pub tail: Tail,
    /// The slow end of each of the last whole seconds of the window, in nanoseconds; `None` of one without replies.
    pub course: Vec<Option<u64>>,
    /// Requests that failed since the beginning.
    pub failed: u64,
    /// Until the end of preload, or of the measured window.
    pub to_go_ns: Option<u64>,
}

impl Glance {
    /// A run at an instant.
    pub(crate) fn of(run: &LiveRun, recorded: &IntervalStore, now_ns: u64) -> Self {
        let (mut stored, mut scheduled, mut failed) = (0, 0, 0);
        for entry in recorded.books().entries() {
            let requests = &entry.counts.requests;
            failed += requests.failed();
            match entry.phase {
                Phase::Preload => stored += requests.completed(),
                Phase::Measure => scheduled += requests.offered(),
                _ => {}
            }
        }
        let (phase, plan) = (run.phase(now_ns, recorded), run.plan());
        let window = run.window().unwrap_or_default();
        let end_ns = Some(window.end_ns).filter(|end_ns| ![0, u64::MAX].contains(end_ns));
        let (from_ns, until_ns) = match phase {
            Phase::Connect | Phase::Preload => (run.began_ns().unwrap_or(now_ns), None),
            Phase::Warmup => (window.start_ns, Some(window.measure_ns)),
            Phase::Measure => (window.measure_ns, end_ns),
            Phase::Drain => (window.end_ns, Some(window.end_ns.saturating_add(plan.drain.0))),
        };
        let done = match phase {
            Phase::Preload => Some((stored, plan.preload_stores(), " keys")),
            Phase::Measure => plan.stop.requests.map(|wanted| (scheduled, wanted, "")),
            _ => None,
        };
        let rate = run.last_second(0).rate().filter(|_| phase != Phase::Connect);
        let by_count = done.and_then(|(done, wanted, _)| time_for(wanted.saturating_sub(done), rate?));
        let by_time = end_ns.and_then(|end_ns| end_ns.checked_sub(now_ns)).filter(|ns| *ns > 0);
        let is_measured = matches!(phase, Phase::Measure | Phase::Drain);
        let in_window = |second: &&Second| {
            is_measured && second.start_ns >= window.measure_ns && second.end_ns <= window.end_ns
        };
        let course = run.seconds().rev().filter(in_window).take(COURSE_MAX);
        let mut course: Vec<_> = course.map(|second| Some(tail(second)?.1)).collect();
        course.reverse();
        Self {
            phase,
            elapsed_ns: now_ns.saturating_sub(from_ns),
            total_ns: until_ns.map(|until_ns| until_ns - from_ns),
            done,
            rate,
            tail: is_measured.then(|| tail(run.last_second(window.measure_ns))).flatten(),
            course,
            failed,
            to_go_ns: by_count.into_iter().chain(by_time).min(),
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
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::run_record::{RunData, RunRecord};
    use brunt_stats::sample::{Sample, Times};
    use brunt_stats::window::RunTimes;

    const MS: u64 = 1_000_000;

    /// What an interval of a worker holds.
    struct Recorded {
        phase: Phase,
        completed: u64,
        failed: u64,
        response_ns: u64,
    }

    /// A run, its store, and its only worker.
    struct Watched {
        run: LiveRun,
        store: IntervalStore,
        set: Box<RecorderSet>,
    }

    impl Watched {
        fn new(spec: &str) -> Self {
            let spec = PlanSpec::from_toml(&format!("server = [\"h\"]\n{spec}")).unwrap();
            let plan = resolve(&spec, &Host { allowed_cpus: vec![0], random_seed: 1 }).unwrap();
            let layout = Layout::of(&plan);
            let run = LiveRun::new(RunRecord::of(plan));
            Self { run, store: IntervalStore::new(&layout), set: RecorderSet::new(&layout) }
        }

        fn start(&mut self, start_ms: u64, measure_ms: u64, end_ns: u64) {
            let times = RunTimes {
                start_ns: start_ms * MS,
                measure_ns: measure_ms * MS,
                end_ns,
                ..RunTimes::default()
            };
            self.run.start(&RunData { times, ..RunData::default() });
        }

        fn interval(&mut self, start_ms: u64, recorded: &Recorded) {
            let op = Op::of(OpKind::Get, KeyRef::Id(0));
            let good = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
            let bad = Outcome::without_reply(OutcomeClass::Lost);
            for (count, outcome) in [(recorded.completed, good), (recorded.failed, bad)] {
                for _ in 0..count {
                    self.set.scheduled(recorded.phase, &op);
                    self.set.sent(recorded.phase, &op, 1, 0);
                    let times = Times {
                        polled_ns: recorded.response_ns,
                        first_byte_ns: recorded.response_ns,
                        done_ns: recorded.response_ns,
                        ..Times::default()
                    };
                    let sample =
                        Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times };
                    self.set.record(recorded.phase, &sample, 1, 1);
                }
            }
            let interval = self.set.take_interval(0, start_ms * MS, (start_ms + 100) * MS);
            self.store.push(&interval);
            self.run.push(&interval);
        }

        /// Intervals of 100 ms from one instant to another, in which the same happens.
        fn pass(&mut self, ms: std::ops::Range<u64>, recorded: &Recorded) {
            for start_ms in ms.step_by(100) {
                self.interval(start_ms, recorded);
                self.run.tick((start_ms + 110) * MS);
            }
        }

        fn glance(&self, now_ms: u64) -> Glance {
            Glance::of(&self.run, &self.store, now_ms * MS)
        }
    }

    #[test]
    fn preload_counts_keys() {
        let mut watched = Watched::new("keys = 100000");
        watched.run.tick(1_000 * MS);
        let glance = watched.glance(1_500);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.done, glance.rate),
            (Phase::Connect, 500 * MS, None, None)
        );
        let stores = Recorded { phase: Phase::Preload, completed: 1_000, failed: 1, response_ns: MS };
        watched.pass(1_500..3_000, &stores);
        let glance = watched.glance(3_120);
        assert_eq!(glance.phase, Phase::Preload);
        assert_eq!(glance.done, Some((15_000, 100_000, " keys")));
        assert_eq!((glance.rate, glance.failed, glance.tail), (Some(10_000.0), 15, None));
        // 85 000 keys at 10 000 a second.
        assert_eq!(glance.to_go_ns, Some(8_500 * MS));
    }

    #[test]
    fn preload_without_success_is_shown() {
        let mut watched = Watched::new("keys = 100");
        watched.run.tick(1_000 * MS);
        let refused = Recorded { phase: Phase::Preload, completed: 0, failed: 1, response_ns: MS };
        watched.pass(1_500..1_600, &refused);
        let glance = watched.glance(2_000);
        assert_eq!((glance.phase, glance.done, glance.failed), (Phase::Preload, Some((0, 100, " keys")), 1));
    }

    #[test]
    fn schedule_shows_phase_rate_and_tail() {
        let mut watched = Watched::new("drain = \"10s\"");
        watched.run.tick(1_000 * MS);
        watched.start(2_000, 3_000, 13_000 * MS);
        let warm = Recorded { phase: Phase::Warmup, completed: 50, failed: 0, response_ns: MS };
        watched.pass(2_000..2_500, &warm);
        let glance = watched.glance(2_620);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.total_ns),
            (Phase::Warmup, 620 * MS, Some(1_000 * MS))
        );
        assert_eq!((glance.tail, glance.to_go_ns), (None, Some(10_380 * MS)));
        assert_eq!(glance.rate, Some(500.0), "50 in 100 ms");
        watched.pass(2_500..3_000, &warm);

        let measured = Recorded { phase: Phase::Measure, completed: 200, failed: 3, response_ns: 400_000 };
        watched.pass(3_000..3_500, &measured);
        let glance = watched.glance(3_600);
        assert_eq!(
            (glance.rate, glance.tail),
            (Some(500.0), Some(("p99", 400_000))),
            "the last whole second"
        );
        watched.pass(3_500..5_000, &measured);
        let glance = watched.glance(5_120);
        assert_eq!((glance.phase, glance.rate, glance.failed), (Phase::Measure, Some(2_000.0), 60));
        assert_eq!((glance.elapsed_ns, glance.to_go_ns), (2_120 * MS, Some(7_880 * MS)));
        // All values are in one bucket, of which the largest is known exactly.
        assert_eq!(glance.tail, Some(("p99", 400_000)));

        // The server stalls: nothing ends any more, and a second later nothing is known of response times.
        let nothing = Recorded { phase: Phase::Measure, completed: 0, failed: 0, response_ns: 0 };
        watched.pass(5_000..6_000, &nothing);
        let glance = watched.glance(6_120);
        assert_eq!((glance.rate, glance.tail), (Some(0.0), None));
        let slow = Recorded { phase: Phase::Measure, completed: 5, failed: 0, response_ns: 1_500 * MS };
        watched.pass(6_000..7_000, &Recorded { completed: 0, ..slow });
        watched.interval(7_000, &slow);
        watched.pass(7_100..8_000, &nothing);
        assert_eq!(
            watched.glance(8_120).tail,
            Some(("max", 1_500 * MS)),
            "five say nothing of a hundredth part"
        );

        // By second of the window, whoever looks: two without stalls, two without replies, one with slow ones.
        let course = [Some(400_000), Some(400_000), None, None, Some(1_500 * MS)];
        assert_eq!(watched.glance(8_120).course, course);
        watched.pass(8_000..13_200, &nothing);
        let glance = watched.glance(13_250);
        assert_eq!(glance.course.len(), 8, "no more are kept");
        assert_eq!(glance.course[..3], [None, None, Some(1_500 * MS)]);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.total_ns),
            (Phase::Drain, 250 * MS, Some(10_000 * MS))
        );
        assert_eq!(glance.to_go_ns, None);
    }

    #[test]
    fn request_goals_set_the_end() {
        let mut watched = Watched::new("requests = 10000");
        watched.run.tick(1_000 * MS);
        watched.start(1_000, 1_000, u64::MAX);
        let measured = Recorded { phase: Phase::Measure, completed: 100, failed: 0, response_ns: MS };
        watched.pass(1_000..3_000, &measured);
        let glance = watched.glance(3_120);
        assert_eq!((glance.total_ns, glance.done), (None, Some((2_000, 10_000, ""))));
        assert_eq!(glance.to_go_ns, Some(8_000 * MS), "8 000 at 1 000 a second");
    }
}
