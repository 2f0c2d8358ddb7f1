//! Times that measured ones are counted up to, the same in every run, so that histograms of many runs can be added.
//!
//! Not the histograms that results are made of, which have a thousand times as many buckets. Invariants: bounds ascend; what is counted up to
//! a bound is what a percentile would be printed for that is no larger.

use brunt_plan::objective::{Bound, Objective};
use brunt_stats::histogram::{Moments, bucket_of};

/// In every decade from 10 us on.
const STEPS: [u64; 5] = [10, 16, 25, 40, 63];
const FIRST_NS: u64 = 10_000;
const LAST_NS: u64 = 10_000_000_000;
/// Largest number of bounds from objectives.
const OF_OBJECTIVES_MAX: usize = 64;

/// The bounds of a run's histograms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Nanoseconds, ascending.
    bounds_ns: Vec<u64>,
    /// Of each bound the first bucket of a histogram that holds anything above it.
    ends: Vec<usize>,
}

impl Bounds {
    /// Those of every run, and those of these objectives.
    pub fn of<'a>(objectives: impl IntoIterator<Item = &'a Objective>) -> Self {
        let decades =
            (0..).map(|power| FIRST_NS / 10 * 10u64.pow(power)).take_while(|first| first * 10 < LAST_NS);
        let fixed = decades.flat_map(|first| STEPS.map(|step| first * step));
        let time = |objective: &Objective| match objective.bound {
            Bound::Time(time) => Some(time.0),
            Bound::Rate(_) | Bound::Fraction(_) => None,
        };
        let own = objectives.into_iter().filter_map(time).take(OF_OBJECTIVES_MAX);
        let mut bounds_ns: Vec<u64> = fixed.chain([LAST_NS]).chain(own).collect();
        bounds_ns.sort_unstable();
        bounds_ns.dedup();
        let ends = bounds_ns.iter().map(|bound_ns| bucket_of(bound_ns.saturating_add(1))).collect();
        Self { bounds_ns, ends }
    }

    /// In nanoseconds, ascending.
    pub fn iter_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.bounds_ns.iter().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.bounds_ns.len()
    }
}

/// How many values lie up to each bound, and what all come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Buckets {
    /// Of each bound those up to it, smaller bounds' among them.
    pub cumulative: Vec<u64>,
    /// All, larger ones too.
    pub count: u64,
    /// Σ in nanoseconds, exact.
    pub sum_ns: u128,
}

impl Buckets {
    /// Of a histogram's buckets, ascending.
    pub(super) fn of(
        buckets: impl Iterator<Item = (usize, u64)>,
        moments: &Moments,
        bounds: &Bounds,
    ) -> Self {
        let mut buckets = buckets.peekable();
        let mut below = 0;
        let up_to = |(bound_ns, end): (&u64, &usize)| {
            while let Some((_, count)) = buckets.next_if(|(bucket, _)| bucket < end) {
                below += count;
            }
            // No percentile is above the largest value, whatever else its bucket stands for.
            if moments.max <= *bound_ns { moments.count } else { below }
        };
        let cumulative = bounds.bounds_ns.iter().zip(&bounds.ends).map(up_to).collect();
        Self { cumulative, count: moments.count, sum_ns: moments.sum }
    }

    /// Adds others, of the same bounds.
    pub(super) fn merge(&mut self, other: &Self) {
        self.cumulative.iter_mut().zip(&other.cumulative).for_each(|(ours, theirs)| *ours += theirs);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}
