//! What those who watch a run are told of it while it goes on, and when it is over; and its periods, exact counts and whole histograms of a few
//! seconds, for those that print a table or a line of them.
//!
//! Not how a run is made: that is the engine's and the binary's. An observer may print, draw or send; it is told on the control
//! thread, between two looks at the workers, and no worker knows of it. Invariants: of every run an observer is told [`Event::Run`] first,
//! but for notes, and [`Event::Ended`] last, whatever becomes of it; [`Event::Concluded`] comes behind the last run. Every interval is in
//! exactly one period, so that all periods together hold what the run does, and a period lies in one phase of the schedule.

use crate::interval::Interval;
use crate::live_run::LiveRun;
use crate::recorder::Layout;
use crate::store::IntervalStore;
use crate::summary::Summary;
use crate::timeline::TimelinePoint;
use crate::window::RunTimes;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where a run is among those of its command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPosition {
    /// How many runs there were before it.
    pub before: u64,
    /// How many runs there are, where that is known beforehand.
    pub of: Option<u64>,
    /// What tells it from the others, for a person; empty where it is the only one.
    pub label: String,
}

/// What an observer is told.
pub enum Event<'a> {
    /// Something that a user should know of the run to come, or of the one that goes on, in one line.
    Note(&'a str),
    /// A run begins to connect, and then to store its data set.
    Run {
        /// What will run.
        plan: &'a Plan,
        /// Which run of its command it is.
        place: &'a RunPosition,
    },
    /// Every connection is established and every key is confirmed: the schedule begins. The window's end is `u64::MAX` where time is no bound,
    /// and when the run will be drained is not known. Comes a second time where the plan leaves open when the window begins.
    Started(RunTimes),
    /// A worker handed over what it recorded in 100 ms.
    Interval(&'a Interval),
    /// A period is over, of the length that the observer asks for.
    Period(&'a Period),
    /// What there is to see of the run: once when it begins, and after every tick. Comes to those that watch it live.
    Live {
        /// Nanoseconds on the run's clock.
        now_ns: u64,
        /// The run.
        run: &'a LiveRun,
        /// What was recorded up to now.
        recorded: &'a IntervalStore,
        /// The end of a second that is complete now.
        second_ns: Option<u64>,
    },
    /// Time has passed: comes after every look at the workers, at least every 110 ms.
    Tick {
        /// Nanoseconds on the run's clock.
        now_ns: u64,
    },
    /// The run is over.
    Ended {
        /// What it came to; nothing where it failed.
        summary: Option<&'a Summary>,
    },
    /// All runs of a command that makes several are over. What they come to together is written for those that show it.
    Concluded {
        /// As `-o html` writes it.
        html: &'a dyn Fn() -> Vec<u8>,
        /// As `-o json` writes it.
        json: &'a dyn Fn() -> Vec<u8>,
    },
}

/// One that watches the runs of a command.
pub trait Observer {
    /// How long the periods are that it wants to be told of, if any.
    fn period(&self) -> Option<DurationNs> {
        None
    }

    /// Does it want [`Event::Live`]? Asked before each run.
    fn is_live(&self) -> bool {
        false
    }

    /// Is told of something.
    fn observe(&mut self, event: &Event<'_>);
}

/// How long after the end of a period what was recorded in it is waited for: an interval more than the control thread needs at its
/// usual pace, for workers that the host stopped and for agents. What comes still later counts in the next period.
const SETTLE_NS: u64 = 100_000_000;

/// A stretch of a run and what was recorded in it.
#[derive(Clone, Debug)]
pub struct Period {
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// In which phase it lies, by the times that the run began with. Requests in its counts have the phase in which they were due.
    pub phase: Phase,
    /// What its intervals hold, together.
    pub recorded: IntervalStore,
}

impl Period {
    /// It as a line of a table over time.
    pub fn point(&self) -> TimelinePoint {
        // A store that knows no window keeps all that it holds in one slice, the first of all time.
        let timeline = self.recorded.timeline();
        let point = timeline.points(0..1, timeline.slice_ns()).remove(0);
        TimelinePoint { start_ns: self.start_ns, end_ns: self.end_ns, ..point }
    }

    /// How long it took, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }
}

/// The periods of one run: intervals in, periods out. All before the schedule begins is one period, and so is all behind the measured
/// window. Warm-up and window are divided from their beginnings on; the last period of either may be shorter.
#[derive(Debug)]
pub struct Periods {
    layout: Layout,
    every_ns: u64,
    /// When the phases begin, as far as that is known.
    window: Option<RunTimes>,
    /// By the beginning of each.
    open: BTreeMap<u64, IntervalStore>,
    /// From when on what is recorded can still be counted where it belongs.
    from_ns: u64,
    /// When the first interval began, and when the last one ended.
    seen: Option<Range<u64>>,
}

impl Periods {
    /// Of the intervals of recorders of this layout; `every_ns` is the length of a period.
    pub fn new(layout: Layout, every_ns: u64) -> Self {
        assert!(every_ns > 0, "periods without a length");
        Self { layout, every_ns, window: None, open: BTreeMap::new(), from_ns: 0, seen: None }
    }

    /// The schedule has its times. They may be told again, where the window begins earlier than was foreseen.
    pub fn start(&mut self, window: RunTimes) {
        self.window = Some(window);
    }

    /// Adds an interval of any worker. It belongs to the period in which its middle lies.
    pub fn push(&mut self, interval: &Interval) {
        let middle_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
        let (start_ns, ..) = self.period_at(middle_ns.max(self.from_ns));
        let store = self.open.entry(start_ns).or_insert_with(|| IntervalStore::new(&self.layout));
        store.push(interval);
        let seen = self.seen.get_or_insert(interval.start_ns..interval.end_ns);
        *seen = seen.start.min(interval.start_ns)..seen.end.max(interval.end_ns);
    }

    /// The first period that is over at this instant and was not taken before.
    pub fn take(&mut self, now_ns: u64) -> Option<Period> {
        let (start_ns, _) = self.open.first_key_value()?;
        let (.., end_ns) = self.period_at(*start_ns);
        (end_ns.saturating_add(SETTLE_NS) <= now_ns).then(|| self.take_first()).flatten()
    }

    /// The first period that was not taken before, though it may not be over: the run is.
    pub fn take_first(&mut self) -> Option<Period> {
        let (start_ns, recorded) = self.open.pop_first()?;
        let (_, phase, end_ns) = self.period_at(start_ns);
        self.from_ns = end_ns;
        let seen = self.seen.clone().unwrap_or_default();
        // Nothing was recorded before the first interval began or after the last one had ended.
        Some(Period { start_ns: start_ns.max(seen.start), end_ns: end_ns.min(seen.end), phase, recorded })
    }

    /// The period around an instant: its beginning, its phase and its end.
    fn period_at(&self, at_ns: u64) -> (u64, Phase, u64) {
        let Some(window) = self.window else { return (0, Phase::Preload, u64::MAX) };
        let (phase, span) = window.phase_at(at_ns);
        if matches!(phase, Phase::Warmup | Phase::Measure) {
            let begun_ns = span.start + (at_ns - span.start) / self.every_ns * self.every_ns;
            (begun_ns, phase, begun_ns.saturating_add(self.every_ns).min(span.end))
        } else {
            (span.start, phase, span.end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::RecorderSet;
    use crate::sample::Sample;
    use crate::simulated_run::{answered, times};
    use brunt_plan::op::{KeyRef, Op, OpKind};
    use brunt_plan::outcome::ReplyKind;
    use brunt_plan::plan::MeterKind;

    const MS: u64 = 1_000_000;
    const WINDOW: RunTimes = RunTimes {
        start_ns: 1_050 * MS,
        measure_ns: 1_800 * MS,
        end_ns: 4_300 * MS,
        drained_ns: 0,
        ..RunTimes::NONE
    };

    fn layout() -> Layout {
        Layout {
            ops: vec![vec![OpKind::Get.into()], vec![OpKind::Get.into(), OpKind::Set.into()]],
            meters: vec![MeterKind::ConnectTime],
            meters_asked: 1,
            servers: 2,
            ..Layout::default()
        }
    }

    fn phase_at(at_ns: u64) -> Phase {
        match at_ns {
            _ if at_ns < WINDOW.start_ns => Phase::Preload,
            _ if at_ns < WINDOW.measure_ns => Phase::Warmup,
            _ if at_ns < WINDOW.end_ns => Phase::Measure,
            _ => Phase::Drain,
        }
    }

    /// What a worker recorded from one instant to another: requests that each took another time.
    fn interval(set: &mut RecorderSet, worker: u32, start_ns: u64, end_ns: u64) -> Interval {
        let phase = phase_at(start_ns);
        for nth in 0..(start_ns / MS + u64::from(worker) * 7) % 40 {
            let (class, kind) = [(0, OpKind::Get), (1, OpKind::Get), (1, OpKind::Set)][(nth % 3) as usize];
            let reply = if kind == OpKind::Get { ReplyKind::Value } else { ReplyKind::Stored };
            let op = Op { class, ..Op::of(kind, KeyRef::Id(nth)) };
            set.scheduled(phase, &op);
            set.sent(phase, &op, 1, 0);
            let done_ns = 10_000 + (start_ns / MS * 7_919 + nth * 104_729) % 5_000_000;
            let sample = Sample { class, ..answered(kind, reply, times(0, 0, done_ns)) };
            set.record(phase, &sample, 1, 1);
            set.transmitted(phase, 20 + nth);
            set.server((nth % 2) as u16).answered += 1;
            set.meter(MeterKind::ConnectTime, done_ns);
        }
        set.take_interval(worker, start_ns, end_ns)
    }

    /// Two workers from 0 to 4.7 s, of which the second hands its intervals over 60 ms late, and once a whole second late.
    fn intervals() -> Vec<(u64, Interval)> {
        let mut set = RecorderSet::new(&layout());
        let mut handed_over = Vec::new();
        let mut start_ns = 0;
        while start_ns < 4_700 * MS {
            let end_ns = if start_ns < WINDOW.start_ns {
                (start_ns + 100 * MS).min(WINDOW.start_ns)
            } else {
                start_ns + 100 * MS
            };
            for worker in 0..2 {
                let late_ms =
                    if worker == 1 && start_ns == 2_350 * MS { 1_000 } else { u64::from(worker) * 60 };
                handed_over.push((end_ns + late_ms * MS, interval(&mut set, worker, start_ns, end_ns)));
            }
            start_ns = end_ns;
        }
        handed_over.sort_by_key(|(at_ns, _)| *at_ns);
        handed_over
    }

    /// What an observer of periods is handed, looking every 10 ms.
    fn taken(every_ns: u64, handed_over: &[(u64, Interval)]) -> Vec<(u64, Period)> {
        let mut periods = Periods::new(layout(), every_ns);
        let mut taken = Vec::new();
        let mut rest = handed_over.iter().peekable();
        for now_ns in (0..5_000).map(|tick| tick * 10 * MS).take_while(|now_ns| *now_ns <= 4_900 * MS) {
            if now_ns == 1_050 * MS {
                // Foreseen: a longer warm-up.
                periods.start(RunTimes { measure_ns: 2_500 * MS, end_ns: 5_000 * MS, ..WINDOW });
            }
            if now_ns == 1_700 * MS {
                periods.start(WINDOW);
            }
            while let Some((_, interval)) = rest.next_if(|(at_ns, _)| *at_ns <= now_ns) {
                periods.push(interval);
            }
            taken.extend(std::iter::from_fn(|| periods.take(now_ns)).map(|period| (now_ns, period)));
        }
        taken.extend(std::iter::from_fn(|| periods.take_first()).map(|period| (4_900 * MS, period)));
        taken
    }

    #[test]
    fn periods_lie_in_one_phase_each() {
        let handed_over = intervals();
        let found: Vec<_> = taken(1_000 * MS, &handed_over)
            .iter()
            .map(|(at_ns, period)| {
                let Period { start_ns, end_ns, phase, .. } = period;
                (phase.name(), start_ns / MS, end_ns / MS, at_ns / MS)
            })
            .collect();
        // (phase, from, to, handed out at)
        let expected = [
            ("preload", 0, 1_050, 1_150),
            ("warmup", 1_050, 1_800, 1_900),
            ("measure", 1_800, 2_800, 2_900),
            ("measure", 2_800, 3_800, 3_900),
            ("measure", 3_800, 4_300, 4_400),
            ("drain", 4_300, 4_750, 4_900),
        ];
        assert_eq!(found, expected);
    }

    /// Whatever their length, the periods together are the run: every count, and every histogram with its percentiles.
    #[test]
    fn all_periods_together_are_the_run() {
        let handed_over = intervals();
        let mut whole = IntervalStore::new(&layout());
        whole.align(WINDOW.measure_ns);
        handed_over.iter().for_each(|(_, interval)| whole.push(interval));
        for every_ns in [100 * MS, 250 * MS, 1_000 * MS, 60_000 * MS] {
            let (mut sum, mut periods) = (IntervalStore::new(&layout()), 0);
            for (_, mut period) in taken(every_ns, &handed_over) {
                // Slices of a period are on a grid of their own.
                period.recorded.totals.timeline = sum.timeline().clone();
                sum.merge(&period.recorded).unwrap();
                periods += 1;
            }
            assert!(periods >= 4, "{periods} periods");
            assert!(sum.request_counts().entries().eq(whole.request_counts().entries()), "{every_ns}");
            assert!(sum.rows().eq(whole.rows()), "{every_ns}");
            assert!(sum.rows().all(|(.., row)| row.latencies.response.count() > 100));
            for phase in [Phase::Preload, Phase::Warmup, Phase::Measure, Phase::Drain] {
                assert_eq!(sum.bytes_in(phase), whole.bytes_in(phase));
                assert!(sum.bytes_in(phase).tx > 0, "{}", phase.name());
            }
            assert_eq!(sum.servers(), whole.servers());
            assert_eq!(sum.meters(), whole.meters());
        }
    }

    #[test]
    fn late_intervals_count_in_the_next_period() {
        let handed_over = intervals();
        let taken = taken(100 * MS, &handed_over);
        let of = |start_ms: u64| {
            let (_, period) = taken.iter().find(|(_, period)| period.start_ns == start_ms * MS).unwrap();
            let entries = period.recorded.request_counts().entries();
            entries.map(|entry| entry.counts.requests.completed()).sum::<u64>()
        };
        let counts = |start_ms: u64, worker: u64| (start_ms + worker * 7) % 40;
        // The middles of intervals from 2 350 ms on lie in the period that begins with 2 400 ms.
        assert_eq!(of(2_400), counts(2_350, 0));
        // The one that came a second later, at 3 450 ms, counts in the first that was open then.
        assert_eq!(of(3_300), counts(3_250, 0) + counts(3_250, 1) + counts(2_350, 1));
        assert_eq!(of(3_400), counts(3_350, 0) + counts(3_350, 1));
    }
}
