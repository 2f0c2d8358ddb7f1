//! What is counted in a window, and the response times of what was answered.
//!
//! Not its line in the log. A request belongs to the window in which it ends; what is open or in flight is counted from the start of the
//! run. Invariant: what was sent was answered, failed, or is in flight.

use super::slices::{Slice, Slices};
use brunt_plan::outcome::{OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::connection::FaultKind;
use brunt_stats::histogram::Histogram;
use brunt_stats::histogram::bucket_values;
use brunt_stats::live_run::SECOND_NS;
use brunt_stats::observer::Period;
use brunt_stats::store::IntervalStore;
use brunt_stats::window::RunTimes;

/// A window, or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// What happened in it.
    pub counts: Counts,
    /// Response times of what was answered, in nanoseconds from when it was due.
    pub response: Histogram,
    /// Response times of hits, where they are metered.
    pub hit: Histogram,
    /// Those of replies that say that there is no such key, where they are metered.
    pub miss: Histogram,
    /// How long attempts to connect took that succeeded, in nanoseconds.
    pub connect: Histogram,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts to connect.
    pub begun: u64,
    /// Those that succeeded.
    pub established: u64,
    /// Those that failed.
    pub connect_errors: u64,
    /// Those that took too long.
    pub connect_timeouts: u64,
    /// Sockets that were closed.
    pub closed: u64,
    /// Connections that went away.
    pub lost: u64,
    /// Connections that are open at the end of the window.
    pub open: u64,
    /// Requests that were due.
    pub scheduled: u64,
    /// Requests that were written.
    pub sent: u64,
    /// Those that have a reply, of whatever kind.
    pub replied: u64,
    /// Those whose reply is no error.
    pub ok: u64,
    /// Those whose reply is an error, or whose connection was lost.
    pub errors: u64,
    /// Those whose reply did not come in time.
    pub timeouts: u64,
    /// Those whose reply is still to come at the end of the window.
    pub in_flight: u64,
    /// Retrievals that found something.
    pub hits: u64,
    /// Retrievals that did not.
    pub misses: u64,
}

impl Window {
    /// Adds what was recorded in a part of it. `retrieves` says of each workload whether its replies count as hits and misses.
    pub fn add(&mut self, seconds: f64, recorded: &IntervalStore, retrieves: &[bool]) {
        self.seconds += seconds;
        self.counts.add(recorded, retrieves);
        recorded.rows().for_each(|(.., row)| self.response.merge(&row.latencies.response));
        for meter in recorded.meters() {
            let times = match meter.kind {
                MeterKind::HitTime => &mut self.hit,
                MeterKind::MissTime => &mut self.miss,
                MeterKind::ConnectTime => &mut self.connect,
                _ => continue,
            };
            times.merge_sparse(&meter.histogram);
        }
    }

    /// The beginning of the next window: nothing has happened in it, and what is open or in flight still is.
    pub fn next(&self) -> Self {
        let Counts { open, in_flight, .. } = self.counts;
        let counts = Counts { open, in_flight, ..Counts::default() };
        Self { counts, ..Self::default() }
    }

    /// Answers per second.
    pub fn rate(&self) -> f64 {
        let answered = self.counts.ok + self.counts.errors;
        if self.seconds > 0.0 { answered as f64 / self.seconds } else { 0.0 }
    }

    /// Successful requests in per cent of those that have ended.
    pub fn success(&self) -> f64 {
        let Counts { ok, errors, timeouts, .. } = self.counts;
        percent(ok, ok + errors + timeouts)
    }

    /// Hits in per cent of hits and misses.
    pub fn hit_rate(&self) -> f64 {
        percent(self.counts.hits, self.counts.hits + self.counts.misses)
    }

    /// The least, five percentiles and the most; 0 where nothing was answered.
    pub fn percentiles_ns(&self) -> [u64; 7] {
        let quantiles = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999, Quantile::P9999];
        let [p50, p90, p99, p999, p9999] =
            quantiles.map(|quantile| self.response.quantile(quantile).unwrap_or(0));
        let (min, max) = (self.response.min().unwrap_or(0), self.response.max().unwrap_or(0));
        [min, p50, p90, p99, p999, p9999, max]
    }
}

impl Counts {
    /// Adds what was recorded, as [`Window::add`] does.
    pub fn add(&mut self, recorded: &IntervalStore, retrieves: &[bool]) {
        let timeouts_before = self.timeouts;
        for entry in recorded.request_counts().entries() {
            let counts = &entry.counts.requests;
            let failed = [OutcomeClass::Error, OutcomeClass::Mismatch, OutcomeClass::Lost]
                .map(|class| counts.outcome(class));
            self.scheduled += counts.scheduled;
            self.sent += counts.sent;
            self.replied += counts.ended() - counts.reply(ReplyKind::None);
            self.ok += counts.completed() + counts.outcome(OutcomeClass::Unacknowledged);
            self.errors += failed.iter().sum::<u64>();
            self.timeouts += counts.outcome(OutcomeClass::Timeout);
            // What ends in it may have been sent before.
            self.in_flight = (self.in_flight + counts.sent).saturating_sub(counts.ended());
            if retrieves.get(usize::from(entry.class)) == Some(&true) {
                self.hits += counts.reply(ReplyKind::Value);
                self.misses += counts.reply(ReplyKind::NotFound);
            }
        }
        let (mut failed, mut established, mut gone) = (0, 0, 0);
        for counts in recorded.connections() {
            self.begun += counts.begun;
            self.lost += counts.lost;
            established += counts.established;
            failed += counts.failed;
            gone += counts.lost + counts.retired;
        }
        // A request that times out ends its connection, and its fault is no failed attempt to connect.
        let late = recorded.faults().count_of(FaultKind::TimedOut);
        let late = late.saturating_sub(self.timeouts - timeouts_before).min(failed);
        self.established += established;
        self.connect_timeouts += late;
        self.connect_errors += failed - late;
        self.closed += failed + gone;
        self.open = (self.open + established).saturating_sub(gone);
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// The windows and slices of a run. All windows have the length that was asked for, counted from the start of the schedule; the first of
/// them is the warm-up. What is recorded after the end of the last window belongs to the last window.
#[derive(Clone, Debug, Default)]
pub struct WindowHistory {
    duration_s: u64,
    /// How many windows there are, the warm-up included; `None` where they go on until a signal.
    windows: Option<u64>,
    /// For each workload: do its replies count as hits and misses?
    retrieves: Vec<bool>,
    start_ns: u64,
    /// Everything until now.
    total: Counts,
    /// The window that is not over yet, and its number; the warm-up is 0.
    present: Window,
    number: u64,
    /// The slices since the files were last written; the first is this second of the run.
    slices: Option<Slices>,
    first_second: u64,
}

/// A window that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedWindow {
    /// The warm-up is 0.
    pub number: u64,
    /// What happened in it.
    pub window: Window,
    /// What happened until its end, from the start of the run.
    pub total: Counts,
}

impl WindowHistory {
    /// A run with windows of this length, in seconds.
    pub fn new(duration_s: u64, windows: Option<u64>, retrieves: Vec<bool>, has_slices: bool) -> Self {
        let slices = has_slices.then(|| Slices { warm_up: duration_s as usize, ..Slices::default() });
        Self { duration_s, windows, retrieves, slices, ..Self::default() }
    }

    /// Says when the schedule begins.
    pub fn start(&mut self, window: RunTimes) {
        self.start_ns = window.start_ns;
        self.slices.iter_mut().for_each(|slices| slices.start_ns = window.start_ns);
    }

    /// Adds a period: a second of the schedule, or what was before or behind it. Returns the windows that end with it, in order.
    pub fn add(&mut self, period: &Period) -> Vec<EndedWindow> {
        let is_timed = matches!(period.phase, Phase::Warmup | Phase::Measure);
        let mut ended = Vec::new();
        if is_timed {
            let second = period.start_ns.saturating_sub(self.start_ns) / SECOND_NS;
            // A host that stood still may have left whole windows without anything.
            while self.number < self.last(second / self.duration_s) {
                ended.push(self.end_present());
            }
            self.count(period.seconds(), period);
            self.add_slice(second, period);
            let end_ns = self.start_ns + (self.number + 1) * self.duration_s * SECOND_NS;
            if period.end_ns >= end_ns && Some(self.number + 1) != self.windows {
                ended.push(self.end_present());
            }
        } else {
            self.count(0.0, period);
            let last = self.slices.as_ref().map_or(0, |slices| slices.slices.len() as u64);
            self.add_slice(self.first_second + last.saturating_sub(1), period);
        }
        ended
    }

    fn count(&mut self, seconds: f64, period: &Period) {
        self.present.add(seconds, &period.recorded, &self.retrieves);
        self.total.add(&period.recorded, &self.retrieves);
    }

    /// Ends the run. Returns its last window, unless the run was interrupted in it.
    pub fn end(&mut self) -> Option<EndedWindow> {
        let is_whole = self.present.seconds >= self.duration_s as f64 * 0.999;
        is_whole.then(|| self.end_present())
    }

    /// The number of a window, at most that of the last.
    fn last(&self, number: u64) -> u64 {
        self.windows.map_or(number, |windows| number.min(windows - 1))
    }

    fn end_present(&mut self) -> EndedWindow {
        let next = self.present.next();
        let window = std::mem::replace(&mut self.present, next);
        let ended = EndedWindow { number: self.number, window, total: self.total };
        self.number += 1;
        ended
    }

    fn add_slice(&mut self, second: u64, period: &Period) {
        let Some(slices) = &mut self.slices else { return };
        let Some(place) = second.checked_sub(self.first_second) else { return };
        let mut response = Histogram::default();
        period.recorded.rows().for_each(|(.., row)| response.merge(&row.latencies.response));
        if response.count() == 0 && period.phase != Phase::Warmup && period.phase != Phase::Measure {
            return;
        }
        slices.slices.resize(slices.slices.len().max(place as usize + 1), Slice::default());
        let ranges = response.buckets().map(|(bucket, count)| (bucket_values(bucket), count));
        slices.slices[place as usize].merge(&Slice::of(ranges));
    }

    /// What happened so far in the window that is not over yet.
    pub fn present(&self) -> Counts {
        self.present.counts
    }

    /// What the files are written from.
    pub fn slices(&self) -> Option<&Slices> {
        self.slices.as_ref()
    }

    /// Begins anew, after the files of a run that goes on have been written.
    pub fn clear_slices(&mut self) {
        let Some(slices) = &mut self.slices else { return };
        self.first_second += slices.slices.len() as u64;
        let start_ns = self.start_ns + self.first_second * SECOND_NS;
        *slices = Slices { start_ns, ..Slices::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{KeyRef, Op, OpKind};
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_stats::connection::ConnectionEvent;
    use brunt_stats::connection::FaultKind;
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::sample::{Sample, Times};
    use brunt_stats::store::IntervalStore;

    fn layout() -> Layout {
        Layout { ops: vec![vec![OpKind::Raw.into()]; 2], servers: 1, ..Layout::default() }
    }

    /// What is in one period: requests of the first workload with their replies, and what happened to connections.
    #[derive(Clone, Default)]
    struct Happened {
        replies: Vec<(u16, OutcomeClass, ReplyKind)>,
        sent_besides: u64,
        connections: Vec<ConnectionEvent>,
        faults: Vec<FaultKind>,
    }

    fn period(phase: Phase, from_s: u64, to_s: u64, happened: &Happened) -> Period {
        let mut set = RecorderSet::new(&layout());
        let counted_phase = if phase == Phase::Drain { Phase::Measure } else { phase };
        for (class, outcome, reply) in &happened.replies {
            let op = Op { class: *class, ..Op::of(OpKind::Raw, KeyRef::Id(0)) };
            set.scheduled(counted_phase, &op);
            set.sent(counted_phase, &op, 1, 0);
            let times = Times { done_ns: 5_000, first_byte_ns: 5_000, ..Times::default() };
            let outcome = Outcome { class: *outcome, reply: *reply };
            set.record(
                counted_phase,
                &Sample { op: OpKind::Raw.into(), class: *class, outcome, busy_lag_ns: None, times },
                1,
                1,
            );
        }
        for _ in 0..happened.sent_besides {
            let op = Op::of(OpKind::Raw, KeyRef::Id(0));
            set.scheduled(counted_phase, &op);
            set.sent(counted_phase, &op, 1, 0);
        }
        happened.connections.iter().for_each(|event| set.connection(phase, *event));
        happened.faults.iter().for_each(|kind| set.fault(phase, *kind, 0));
        let (start_ns, end_ns) = (from_s * SECOND_NS, to_s * SECOND_NS);
        let mut recorded = IntervalStore::new(&layout());
        recorded.push(&set.take_interval(0, start_ns, end_ns));
        Period { start_ns, end_ns, phase, recorded }
    }

    const OK: (u16, OutcomeClass, ReplyKind) = (1, OutcomeClass::Done, ReplyKind::Stored);
    const HIT: (u16, OutcomeClass, ReplyKind) = (0, OutcomeClass::Done, ReplyKind::Value);
    const MISS: (u16, OutcomeClass, ReplyKind) = (0, OutcomeClass::Done, ReplyKind::NotFound);
    const ERROR: (u16, OutcomeClass, ReplyKind) = (1, OutcomeClass::Error, ReplyKind::ServerError);
    const TIMEOUT: (u16, OutcomeClass, ReplyKind) = (0, OutcomeClass::Timeout, ReplyKind::None);
    const LOST: (u16, OutcomeClass, ReplyKind) = (0, OutcomeClass::Lost, ReplyKind::None);

    fn replies(list: &[(u16, OutcomeClass, ReplyKind)]) -> Happened {
        Happened { replies: list.to_vec(), ..Happened::default() }
    }

    fn started(course: &mut WindowHistory, measure_s: u64, end_s: u64) {
        course.start(RunTimes {
            start_ns: 10 * SECOND_NS,
            measure_ns: measure_s * SECOND_NS,
            end_ns: end_s * SECOND_NS,
            drained_ns: 0,
            ..RunTimes::NONE
        });
    }

    #[test]
    fn periods_become_windows() {
        let mut course = WindowHistory::new(2, Some(3), vec![true, false], false);
        let mut ended = Vec::new();
        use ConnectionEvent::{Begun, Established, Failed, Lost};
        let before = Happened {
            connections: vec![Begun, Begun, Begun, Established, Established, Failed],
            faults: vec![FaultKind::Refused],
            ..Happened::default()
        };
        ended.extend(course.add(&period(Phase::Preload, 0, 10, &before)));
        started(&mut course, 12, 16);
        ended.extend(course.add(&period(Phase::Warmup, 10, 11, &replies(&[HIT, OK]))));
        ended.extend(course.add(&period(
            Phase::Warmup,
            11,
            12,
            &Happened { sent_besides: 3, ..replies(&[MISS]) },
        )));
        assert_eq!(ended.len(), 1);
        let trouble = Happened {
            connections: vec![Lost, Lost, Begun, Failed, Begun],
            faults: vec![FaultKind::TimedOut, FaultKind::TimedOut, FaultKind::Reset],
            ..replies(&[HIT, HIT, MISS, OK, ERROR, TIMEOUT, super::tests::LOST])
        };
        ended.extend(course.add(&period(Phase::Measure, 12, 13, &trouble)));
        assert_eq!(ended.len(), 1);
        ended.extend(course.add(&period(Phase::Measure, 13, 14, &replies(&[OK]))));
        assert_eq!(ended.len(), 2);
        ended.extend(course.add(&period(Phase::Measure, 14, 15, &replies(&[OK]))));
        ended.extend(course.add(&period(Phase::Measure, 15, 16, &replies(&[]))));
        // What ends behind the last window belongs to it.
        assert_eq!(ended.len(), 2);
        ended.extend(course.add(&period(Phase::Drain, 16, 17, &replies(&[HIT, HIT]))));
        ended.extend(course.end());
        let numbers: Vec<u64> = ended.iter().map(|ended| ended.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let of = |index: usize| &ended[index].window;
        assert_eq!((of(0).counts.in_flight, of(0).counts.open, of(0).counts.begun), (3, 2, 3));
        let window = of(1);
        let counts = window.counts;
        assert_eq!((counts.scheduled, counts.sent, counts.replied), (8, 8, 6));
        assert_eq!((counts.ok, counts.errors, counts.timeouts, counts.in_flight), (5, 2, 1, 3));
        assert_eq!((counts.hits, counts.misses, window.response.count()), (2, 1, 5));
        assert_eq!((counts.begun, counts.established, counts.connect_errors), (2, 0, 0));
        // One of the two that came too late was a reply.
        assert_eq!((counts.connect_timeouts, counts.closed, counts.lost, counts.open), (1, 3, 2, 0));
        assert_eq!((window.seconds, window.rate()), (2.0, 3.5));
        assert_eq!((window.success(), window.hit_rate()), (62.5, 200.0 / 3.0));
        assert_eq!((of(2).counts.ok, of(2).seconds), (3, 2.0));
        let totals: Vec<_> =
            ended.iter().map(|EndedWindow { total, .. }| (total.ok, total.hits, total.begun)).collect();
        assert_eq!(totals, [(3, 1, 3), (8, 3, 5), (11, 5, 5)]);
    }

    #[test]
    fn empty_windows_are_reported() {
        let mut course = WindowHistory::new(1, Some(4), vec![true], false);
        started(&mut course, 11, 14);
        let nothing = Happened::default();
        assert_eq!(course.add(&period(Phase::Warmup, 10, 11, &nothing)).len(), 1);
        // The host stood still for a second.
        let ended = course.add(&period(Phase::Measure, 12, 13, &replies(&[OK])));
        assert_eq!(
            ended.iter().map(|ended| (ended.number, ended.window.counts.ok)).collect::<Vec<_>>(),
            [(1, 0), (2, 1)]
        );
        assert_eq!(ended[0].window.percentiles_ns(), [0; 7]);
        assert_eq!(
            (ended[0].window.rate(), ended[0].window.success(), ended[0].window.hit_rate()),
            (0.0, 0.0, 0.0)
        );
        // One that was interrupted is none.
        assert!(course.add(&period(Phase::Drain, 13, 14, &nothing)).is_empty());
        assert_eq!(course.end(), None);
    }

    #[test]
    fn seconds_become_slices() {
        let mut course = WindowHistory::new(2, None, vec![true, false], true);
        started(&mut course, 10, 1_000);
        for (second, count) in [(10, 1), (11, 2), (13, 3)] {
            course.add(&period(Phase::Measure, second, second + 1, &replies(&vec![OK; count])));
        }
        let counts = |course: &WindowHistory| {
            let slices = course.slices().unwrap();
            let counts = slices.slices.iter().map(|slice| slice.counts().map(|(_, count)| count).sum());
            (slices.start_ns / SECOND_NS, slices.warm_up, counts.collect::<Vec<u64>>())
        };
        assert_eq!(counts(&course), (10, 2, vec![1, 2, 0, 3]));
        course.clear_slices();
        course.add(&period(Phase::Measure, 14, 15, &replies(&[OK])));
        course.add(&period(Phase::Drain, 15, 16, &replies(&[OK, OK])));
        assert_eq!(counts(&course), (14, 0, vec![3]));
        assert!(WindowHistory::new(1, None, Vec::new(), false).slices().is_none());
    }
}
