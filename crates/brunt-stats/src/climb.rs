//! The loads of a scan that finds its own way: up from a low one until something is the limit, then closer about the knee.
//!
//! Not a search for one number (that is [`crate::capacity`]) and nothing that measures: it says which load is next and is
//! told what became of it. Loads are requests per second. Invariant: no load lies above one that was found to be too much,
//! and it ends after at most [`LOADS_MAX`] loads.

use crate::knee::{Knee, LoadPoint, knee};

/// More loads than this never help.
pub const LOADS_MAX: usize = 24;
/// A curve with so many points shows its shape; until then the neighbourhood of the knee is looked at more closely.
const LOADS_WANTED: usize = 11;
/// A tenth of what a closed loop comes to is a low load; so is the step upwards.
const STEP: f64 = 0.1;
/// Beyond what a closed loop comes to, each load is so much higher than the one before.
const GROWTH: f64 = 1.1;
/// When even the first load is too much, the next one is so much lower.
const RETREAT: f64 = 0.25;
/// Loads that differ by less than this part of the guess are the same.
const GAP_MIN: f64 = 0.02;

/// What became of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadEnd {
    /// Requests completed per second.
    pub completed: f64,
    /// The latency of the curve, in nanoseconds, where there were enough requests.
    pub latency_ns: Option<f64>,
    /// Server or client could do no more.
    pub is_limited: bool,
}

/// The way so far.
#[derive(Clone, Debug)]
pub struct Climb {
    /// What a closed loop came to.
    guess: f64,
    /// Loads with what became of them, ascending.
    ends: Vec<(f64, LoadEnd)>,
}

impl Climb {
    /// Begins a way up; `guess` is what a closed loop comes to, in requests per second.
    pub fn new(guess: f64) -> Self {
        Self { guess, ends: Vec::new() }
    }

    /// The next load to measure; `None` when the curve is complete.
    pub fn next(&self) -> Option<f64> {
        if self.ends.len() >= LOADS_MAX {
            return None;
        }
        let passed = self.ends.iter().filter(|(_, end)| !end.is_limited).map(|(load, _)| *load).next_back();
        let limit = self.ends.iter().find(|(_, end)| end.is_limited).map(|(load, _)| *load);
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

    /// Tells what became of a load.
    pub fn record(&mut self, load: f64, end: LoadEnd) {
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
            .filter(|(_, end)| !end.is_limited)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks up to a server that has this capacity and the latencies of an M/M/1 queue.
    fn walk(guess: f64, capacity: f64) -> Vec<f64> {
        let mut climb = Climb::new(guess);
        let mut loads = Vec::new();
        while let Some(load) = climb.next() {
            let is_limited = load >= capacity;
            let latency_ns = (!is_limited).then_some(4.605e9 / (capacity - load));
            climb.record(load, LoadEnd { completed: load.min(capacity), latency_ns, is_limited });
            loads.push(load.round());
        }
        loads
    }

    #[test]
    fn up_to_the_limit_and_then_closer_about_the_knee() {
        let loads = walk(10_000.0, 9_500.0);
        let steps: Vec<f64> = (1..=10).map(|tenth| f64::from(tenth) * 1_000.0).collect();
        assert_eq!(loads[..10], steps);
        // The knee of the law is at 4 750.
        assert_eq!(loads[10..], [5_500.0]);
    }

    #[test]
    fn a_guess_that_is_far_off() {
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

    #[test]
    fn no_load_lies_above_the_limit_but_the_one_that_met_it() {
        for capacity in (1..40).map(|step| f64::from(step) * 531.0) {
            let loads = walk(10_000.0, capacity);
            let above = loads.iter().filter(|load| **load >= capacity.ceil()).count();
            assert!(above <= 6 && loads.len() <= LOADS_MAX, "{capacity}: {loads:?}");
        }
    }
}
