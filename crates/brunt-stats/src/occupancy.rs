//! Operations in the system over time, from picked to ended, counted in two ways that must agree.
//!
//! Not a latency. One way integrates the number of operations over the loop's own time, as it sees them come and go; the
//! other adds up what the sample of each says. By Little's law both are (mean number in the system) × (length of the
//! window). Invariant: both cover the measured window and nothing else.

use crate::sample::overlap_ns;
use serde::{Deserialize, Serialize};

/// The occupancy of one worker.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    begin_ns: u64,
    end_ns: u64,
    last_ns: u64,
    /// Operations in the system.
    count: u64,
    total: OccupancyTotal,
}

/// What both ways came to, in operations × nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccupancyTotal {
    /// The integral over time of the number in the system.
    #[serde(with = "crate::counts::wide")]
    pub integral: u128,
    /// The sum over operations of their time in the system.
    #[serde(with = "crate::counts::wide")]
    pub sum: u128,
}

impl OccupancyTotal {
    /// Adds the occupancy of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.integral += other.integral;
        self.sum += other.sum;
    }
}

impl Default for Occupancy {
    /// Before the window is known: operations are counted, time is not.
    fn default() -> Self {
        Self {
            begin_ns: u64::MAX,
            end_ns: u64::MAX,
            last_ns: u64::MAX,
            count: 0,
            total: OccupancyTotal::default(),
        }
    }
}

impl Occupancy {
    /// The window is known; the end is `u64::MAX` where time is no bound.
    pub fn set_window(&mut self, begin_ns: u64, end_ns: u64) {
        (self.begin_ns, self.end_ns, self.last_ns) = (begin_ns, end_ns, begin_ns);
    }

    /// The window ends now.
    pub fn end_at(&mut self, now_ns: u64) {
        self.end_ns = self.end_ns.min(now_ns);
    }

    #[inline]
    fn advance(&mut self, now_ns: u64) {
        let now_ns = now_ns.min(self.end_ns);
        if now_ns > self.last_ns {
            self.total.integral += u128::from(self.count) * u128::from(now_ns - self.last_ns);
            self.last_ns = now_ns;
        }
    }

    /// Operations entered the system.
    #[inline]
    pub fn enter(&mut self, now_ns: u64, count: u32) {
        self.advance(now_ns);
        self.count += u64::from(count);
    }

    /// An operation that enters next was in the system from this time on, which may be over.
    pub fn enter_before(&mut self, picked_ns: u64) {
        self.total.integral += u128::from(overlap_ns(picked_ns, self.last_ns, self.begin_ns, self.end_ns));
    }

    /// Operations that were picked at this time have ended.
    #[inline]
    pub fn leave(&mut self, picked_ns: u64, done_ns: u64, count: u32) {
        self.advance(done_ns);
        self.count -= u64::from(count);
        let each_ns = overlap_ns(picked_ns, done_ns, self.begin_ns, self.end_ns);
        self.total.sum += u128::from(each_ns) * u128::from(count);
    }

    /// An operation in the system counts as picked later than it was.
    pub fn repick(&mut self, before_ns: u64, picked_ns: u64) {
        self.total.sum += u128::from(overlap_ns(before_ns, picked_ns, self.begin_ns, self.end_ns));
    }

    /// What it came to, when every operation has left.
    pub fn total(&self) -> OccupancyTotal {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (at, Some(picked) of one that leaves or `None` of one that comes) → integral and sum.
    fn check(events: &[(u64, Option<u64>)], expected: (u128, u128)) {
        let mut occupancy = Occupancy::default();
        for (at_ns, picked_ns) in events {
            if *at_ns >= 900 && occupancy.begin_ns == u64::MAX {
                occupancy.set_window(1_000, 2_000);
            }
            match picked_ns {
                None => occupancy.enter(*at_ns, 1),
                Some(picked_ns) => occupancy.leave(*picked_ns, *at_ns, 1),
            }
        }
        let OccupancyTotal { integral, sum } = occupancy.total();
        assert_eq!((integral, sum), expected, "{events:?}");
    }

    #[test]
    fn integral_and_sum_agree_inside_the_window() {
        check(&[(1_100, None), (1_150, None), (1_200, Some(1_100)), (1_400, Some(1_150))], (350, 350));
        // Over both edges, and wholly before and behind.
        check(&[(950, None), (1_100, Some(950)), (1_900, None), (2_500, Some(1_900))], (200, 200));
        check(&[(100, None), (200, Some(100)), (2_100, None), (2_200, Some(2_100))], (0, 0));
    }

    #[test]
    fn wrong_or_repeated_ends_make_the_totals_differ() {
        // It says that it was picked 40 earlier than it was.
        check(&[(1_100, None), (1_200, Some(1_060))], (100, 140));
        // The clock says 1300 when it comes and 1200 when it goes.
        check(&[(1_300, None), (1_200, Some(1_300))], (0, 0));
        check(&[(1_000, None), (1_300, None), (1_200, Some(1_000)), (1_400, Some(1_300))], (400, 300));
    }

    #[test]
    fn a_window_can_end_early() {
        let mut occupancy = Occupancy::default();
        occupancy.set_window(1_000, u64::MAX);
        occupancy.enter(1_100, 1);
        occupancy.end_at(1_500);
        occupancy.leave(1_100, 9_000, 1);
        assert_eq!(occupancy.total(), OccupancyTotal { integral: 400, sum: 400 });
    }

    #[test]
    fn picks_can_move() {
        let mut occupancy = Occupancy::default();
        occupancy.set_window(1_000, 2_000);
        occupancy.enter(900, 1);
        occupancy.repick(900, 950);
        occupancy.repick(950, 1_100);
        occupancy.leave(1_100, 1_400, 1);
        assert_eq!(occupancy.total(), OccupancyTotal { integral: 400, sum: 400 });
    }

    #[test]
    fn operations_can_enter_late() {
        let mut occupancy = Occupancy::default();
        occupancy.set_window(1_000, 2_000);
        occupancy.enter(1_200, 1);
        for picked_ns in [900, 1_050, 1_250] {
            occupancy.enter_before(picked_ns);
            occupancy.enter(picked_ns, 1);
        }
        [1_200, 900, 1_050, 1_250].into_iter().for_each(|picked_ns| occupancy.leave(picked_ns, 1_400, 1));
        assert_eq!(occupancy.total(), OccupancyTotal { integral: 1_100, sum: 1_100 });
    }

    #[test]
    fn batches_equal_single_operations() {
        let (mut together, mut each) = (Occupancy::default(), Occupancy::default());
        for occupancy in [&mut together, &mut each] {
            occupancy.set_window(1_000, 2_000);
        }
        together.enter(1_100, 3);
        (0..3).for_each(|_| each.enter(1_100, 1));
        together.leave(1_100, 1_500, 2);
        (0..2).for_each(|_| each.leave(1_100, 1_500, 1));
        together.leave(1_100, 2_500, 1);
        each.leave(1_100, 2_500, 1);
        assert_eq!(together.total(), OccupancyTotal { integral: 3 * 400 + 500, sum: 2 * 400 + 900 });
        assert_eq!(together.total(), each.total());
    }
}
