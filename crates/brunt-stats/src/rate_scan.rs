//! The loads of a scan that finds its own way: up from a low one until something is the limit, then closer about the knee of the curve.
//!
//! Not a search for one number (that is [`crate::capacity`]) and nothing that measures: it says which load is next and is
//! told what became of it. Loads are requests per second. A load that the client spoils is measured once more before it is
//! believed: a stop of the host is no property of the load. Invariant: no load lies above one that was found to be too much,
//! and it ends after at most `LOADS_MAX` loads, none measured more than twice.

use crate::bottleneck::Bottleneck;

/// More loads than this never help.
const LOADS_MAX: usize = 24;
/// A curve with this number of points shows its shape; until then the neighbourhood of the knee is looked at more closely.
const LOADS_WANTED: usize = 11;
/// A tenth of what a closed loop comes to is a low load; so is the step upwards.
const STEP: f64 = 0.1;
/// Beyond what a closed loop comes to, each load is higher than the one before by this factor.
const GROWTH: f64 = 1.1;
/// When even the first load is too much, the next one is this fraction of it.
const RETREAT: f64 = 0.25;
/// Loads that differ by less than this part of the guess are the same.
const GAP_MIN: f64 = 0.02;

/// What became of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadResult {
    /// Requests completed per second.
    pub completed: f64,
    /// The latency of the curve, in nanoseconds, where there were enough requests.
    pub latency_ns: Option<f64>,
    /// The bottleneck, if there was one.
    pub limit: Option<Bottleneck>,
}

impl LoadResult {
    const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }
}

/// The way so far.
#[derive(Clone, Debug)]
pub struct RateScan {
    /// What a closed loop came to.
    guess: f64,
    /// Loads with what became of them, ascending.
    ends: Vec<(f64, LoadResult)>,
    /// The load that the client spoiled once.
    discarded: Option<f64>,
}

impl RateScan {
    /// Begins a way up; `guess` is what a closed loop comes to, in requests per second.
    pub fn new(guess: f64) -> Self {
        Self { guess, ends: Vec::new(), discarded: None }
    }

    /// The next load to measure; `None` when the curve is complete.
    pub fn next(&self) -> Option<f64> {
        if self.discarded.is_some() {
            return self.discarded;
        }
        if self.ends.len() >= LOADS_MAX {
            return None;
        }
        let passed = self.ends.iter().filter(|(_, end)| !end.is_limited()).map(|(load, _)| *load).next_back();
        let limit = self.ends.iter().find(|(_, end)| end.is_limited()).map(|(load, _)| *load);
        match (passed, limit) {
            (None, None) => Some(self.guess * STEP),
            (Some(passed), None) if passed < self.guess * 0.99 => Some(passed + self.guess * STEP),
            (Some(passed), None) => Some(passed * GROWTH),
            (None, Some(limit)) => {
                let next = limit * RETREAT;
                (next > self.guess * STEP * RETREAT.powi(4)).then_some(next)
            }
            (Some(_), Some(_)) => self.closer(),
        }
    }

    /// Tells what became of a load. What the client spoils the first time is not believed, and so not kept.
    pub fn record(&mut self, load: f64, end: LoadResult) {
        if end.limit == Some(Bottleneck::Client) && self.discarded.is_none() {
            self.discarded = Some(load);
            return;
        }
        self.discarded = None;
        self.ends.push((load, end));
        self.ends.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }

    /// The middle of the wider one of the two gaps beside the knee.
    fn closer(&self) -> Option<f64> {
        if self.ends.len() >= LOADS_WANTED {
            return None;
        }
        let curve: Vec<(f64, LoadPoint)> = self
            .ends
            .iter()
            .filter(|(_, end)| !end.is_limited())
            .filter_map(|(load, end)| {
                let latency_ns = end.latency_ns?;
                Some((*load, LoadPoint { throughput: end.completed, latency_ns }))
            })
            .collect();
        let points: Vec<LoadPoint> = curve.iter().map(|(_, point)| *point).collect();
        // Too few for a knee: below the limit is as good a place as any.
        let at = match knee(&points, true) {
            Knee::At(index) => curve[index].0,
            Knee::Beyond | Knee::Unknown => curve.last().map(|(load, _)| *load)?,
        };
        let position = self.ends.iter().position(|(load, _)| *load == at)?;
        let below = position.checked_sub(1).map_or(0.0, |below| self.ends[below].0);
        let above = self.ends.get(position + 1).map_or(at, |(load, _)| *load);
        let (from, to) = if above - at >= at - below { (at, above) } else { (below, at) };
        (to - from > self.guess * GAP_MIN).then_some((from + to) / 2.0)
    }
}

/// One load that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Requests completed per second.
    pub throughput: f64,
    /// The latency that is to stay low, in nanoseconds; above 0.
    pub latency_ns: f64,
}

impl LoadPoint {
    /// Kleinrock's power: requests per second and second of latency.
    pub fn power(&self) -> f64 {
        self.throughput / (self.latency_ns / 1e9)
    }
}

/// Where the knee is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knee {
    /// At this one of the points.
    At(usize),
    /// Power still grew at the highest load that was measured.
    Beyond,
    /// Fewer than three loads show no curve.
    Unknown,
}

/// Fewer points show no curve.
const POINTS_MIN: usize = 3;

/// The knee of a latency-throughput curve, where more load begins to cost more latency than it brings throughput: the load of greatest power.
/// On the curve of latency over throughput it is the point that a straight line from the origin touches: below it, a step of one per cent
/// in load costs less than one per cent of latency, above it more. Rejected: detectors of greatest curvature, whose answer depends on how
/// the axes are scaled and on where the measurement stopped.
///
/// The points ascend in load. `is_closed` says that a higher load was tried and found to be too much:
/// then the last point can be the knee.
pub fn knee(points: &[LoadPoint], is_closed: bool) -> Knee {
    if points.len() < POINTS_MIN {
        return Knee::Unknown;
    }
    // Of equal powers the first: the same power for less latency. `max_by` takes the last of equals, hence from behind.
    let highest = points.iter().enumerate().rev();
    let highest = highest.max_by(|(_, one), (_, other)| one.power().total_cmp(&other.power()));
    match highest {
        Some((index, _)) if index + 1 < points.len() || is_closed => Knee::At(index),
        _ => Knee::Beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks up to a server that has this capacity and the latencies of an M/M/1 queue. `is_spoiled` is told the load and
    /// how many measurements came before it, and says whether the client spoils this one.
    fn walk_spoiled(guess: f64, capacity: f64, is_spoiled: impl Fn(f64, usize) -> bool) -> Vec<f64> {
        let mut climb = RateScan::new(guess);
        let mut loads = Vec::new();
        while let Some(load) = climb.next() {
            let is_limited = load >= capacity;
            let limit = match is_spoiled(load, loads.len()) {
                true => Some(Bottleneck::Client),
                false => is_limited.then_some(Bottleneck::Server),
            };
            let latency_ns = limit.is_none().then_some(4.605e9 / (capacity - load));
            climb.record(load, LoadResult { completed: load.min(capacity), latency_ns, limit });
            loads.push(load.round());
        }
        loads
    }

    fn walk(guess: f64, capacity: f64) -> Vec<f64> {
        walk_spoiled(guess, capacity, |_, _| false)
    }

    #[test]
    fn rates_grow_to_the_limit_then_narrow_around_the_knee() {
        let loads = walk(10_000.0, 9_500.0);
        let steps: Vec<f64> = (1..=10).map(|tenth| f64::from(tenth) * 1_000.0).collect();
        assert_eq!(loads[..10], steps);
        // The knee of the law is at 4 750.
        assert_eq!(loads[10..], [5_500.0]);
    }

    #[test]
    fn a_wrong_guess_is_corrected() {
        // Four times too high: the limit comes early, and the curve below it is filled.
        let loads = walk(40_000.0, 9_500.0);
        assert_eq!(loads[..3], [4_000.0, 8_000.0, 12_000.0]);
        assert!(loads.len() >= 6 && loads.iter().skip(3).all(|load| *load < 12_000.0), "{loads:?}");
        assert!(loads.iter().any(|load| (4_001.0..7_999.0).contains(load)), "{loads:?}");
        // Too low: it goes on beyond the guess.
        let loads = walk(10_000.0, 13_000.0);
        assert_eq!(loads[10..13], [11_000.0, 12_100.0, 13_310.0]);
        assert_eq!(loads.len(), 13);
        // Far too low, or nothing is ever the limit: it ends.
        assert_eq!(walk(10.0, 1e9).len(), LOADS_MAX);
        // Far too high: even the first load is too much, and so are those below it.
        assert_eq!(walk(10_000.0, 0.0), [1_000.0, 250.0, 63.0, 16.0]);
        let loads = walk(10_000.0, 400.0);
        assert_eq!(loads[..2], [1_000.0, 250.0]);
        assert!(loads.iter().all(|load| *load <= 1_000.0) && loads.len() > 3, "{loads:?}");
    }

    /// On the way up one load meets the limit; every later one lies below it, and below whatever met the limit since.
    #[test]
    fn no_rate_exceeds_one_that_was_too_high() {
        for capacity in (1..80).map(|step| f64::from(step) * 263.0).chain([10.0, 40.0, 100.0]) {
            let loads = walk(10_000.0, capacity);
            assert!(loads.len() <= LOADS_MAX, "{capacity}: {loads:?}");
            let too_much: Vec<f64> = loads.iter().copied().filter(|load| *load >= capacity).collect();
            assert!(too_much.is_sorted_by(|one, next| one > next), "{capacity}: {loads:?}");
            let met = loads.iter().position(|load| *load >= capacity);
            let met = met.unwrap_or_else(|| panic!("{capacity}: the limit was never met: {loads:?}"));
            assert!(loads[..met].is_sorted_by(|one, next| one < next), "{capacity}: {loads:?}");
            // Where the first load is too much, the way goes down by quarters to one that is not.
            let retreat =
                if met == 0 { loads.iter().take_while(|load| **load >= capacity).count() } else { 0 };
            let quarters = [1_000.0, 250.0, 63.0, 16.0];
            assert_eq!(loads[..retreat], quarters[..retreat], "{capacity}: {loads:?}");
            // The gap beside the limit is at most a fifth of the guess, and is halved down to a fiftieth.
            assert!(too_much.len() <= retreat.max(1) + 4, "{capacity}: {loads:?}");
        }
    }

    /// The host takes the processors away once: the load is measured again, and the way goes on as if nothing had been.
    #[test]
    fn a_discarded_rate_is_measured_again() {
        let undisturbed = walk(10_000.0, 9_500.0);
        for discarded in 0..undisturbed.len() {
            let mut loads = walk_spoiled(10_000.0, 9_500.0, |_, before| before == discarded);
            assert_eq!(loads.remove(discarded), undisturbed[discarded]);
            assert_eq!(loads, undisturbed, "discarded at {discarded}");
        }
        // Every load once: twice as many measurements of the same loads.
        let twice: Vec<f64> = undisturbed.iter().flat_map(|load| [*load; 2]).collect();
        assert_eq!(walk_spoiled(10_000.0, 9_500.0, |_, before| before % 2 == 0), twice);
    }

    /// What is spoiled twice is too much for the client, and the curve is what lies below it.
    #[test]
    fn a_rate_discarded_twice_is_a_limit() {
        let loads = walk_spoiled(10_000.0, 9_500.0, |load, _| load > 4_500.0);
        assert_eq!(loads[..6], [1_000.0, 2_000.0, 3_000.0, 4_000.0, 5_000.0, 5_000.0]);
        assert!(loads[6..].iter().all(|load| *load < 5_000.0), "{loads:?}");
        // The first load is: the way goes on below it.
        let loads = walk_spoiled(10_000.0, 9_500.0, |load, _| load > 900.0);
        assert_eq!(loads[..3], [1_000.0, 1_000.0, 250.0]);
        assert!(loads[3..].iter().all(|load| *load < 1_000.0) && loads.len() > 4, "{loads:?}");
        // All are: it ends.
        let loads = walk_spoiled(10_000.0, 9_500.0, |_, _| true);
        assert_eq!(loads, [1_000.0, 1_000.0, 250.0, 250.0, 63.0, 63.0, 16.0, 16.0]);
    }

    /// M/M/1 with μ = 10 000/s: R is exponential, so its p99 is 4.605 / (μ − λ), and λ(μ − λ) is greatest at μ/2.
    #[test]
    fn knee_of_an_m_m_1_queue_matches_theory() {
        let point = |tenths: u32| {
            let throughput = f64::from(tenths) * 1_000.0;
            LoadPoint { throughput, latency_ns: 4.605e9 / (10_000.0 - throughput) }
        };
        let points: Vec<LoadPoint> = (1..=9).map(point).collect();
        assert_eq!(knee(&points, false), Knee::At(4));
        assert_eq!(knee(&points[..5], false), Knee::Beyond);
        assert_eq!(knee(&points[..5], true), Knee::At(4));
        assert_eq!(knee(&points[..2], true), Knee::Unknown);
        assert_eq!(points[4].power().round(), (5_000.0_f64 * 5_000.0 / 4.605).round());
    }

    /// Latency that does not move until the server is full: the last load before that.
    #[test]
    fn a_flat_curve_bends_at_its_end() {
        let flat = [1e3, 2e3, 4e3, 8e3].map(|throughput| LoadPoint { throughput, latency_ns: 1e5 });
        assert_eq!(knee(&flat, true), Knee::At(3));
        let full = LoadPoint { throughput: 8.1e3, latency_ns: 5e6 };
        assert_eq!(knee(&[&flat[..], &[full]].concat(), false), Knee::At(3));
    }

    /// Twice the latency for twice the load is no gain: of equal powers the lowest load. Loads that came to the same
    /// throughput, too: it is the first of the points.
    #[test]
    fn the_lowest_load_of_equal_power_is_the_knee() {
        let proportional =
            [1.0, 2.0, 4.0].map(|factor| LoadPoint { throughput: 1e3 * factor, latency_ns: 1e5 * factor });
        assert_eq!(knee(&proportional, true), Knee::At(0));
        let equal = [LoadPoint { throughput: 8e3, latency_ns: 1e5 }; 3];
        assert_eq!(knee(&equal, true), Knee::At(0));
    }
}
