//! `--search N:X`: mutilate's own bisection for the highest rate at which the N-th percentile of reads stays below X.
//!
//! Not a campaign: what became of a run is fed in, which run comes next is told. Differs from mutilate in one thing: it knows
//! which run was the best, where mutilate prints the last.

/// What comes after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The run is the best so far that met the bound, or the first one, or no run has met it and this is the last.
    pub is_best: bool,
    /// The rate of the next run; `None` when the search is over.
    pub next_qps: Option<u64>,
}

/// How far a search has come.
#[derive(Clone, Debug)]
pub(super) struct Search {
    bound_us: f64,
    stage: Stage,
    peak: f64,
    high: u64,
    low: u64,
    current: u64,
    /// The rate achieved by the best run that met the bound.
    best: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    First,
    Bisecting,
    BackingOff,
}

impl Search {
    /// For this bound of the percentile, in microseconds. The first run is at the user's own rate.
    pub(super) fn new(bound_us: f64) -> Self {
        Self { bound_us, stage: Stage::First, peak: 0.0, high: 0, low: 1, current: 0, best: None }
    }

    /// Has any run met the bound?
    pub(super) fn has_met(&self) -> bool {
        self.best.is_some()
    }

    /// A run achieved this rate, with this percentile in microseconds.
    pub(super) fn decide(&mut self, achieved_qps: f64, nth_us: f64) -> Decision {
        let is_met = nth_us <= self.bound_us;
        let is_best = match self.best {
            _ if !is_met => self.best.is_none(),
            None => true,
            Some(best) => achieved_qps > best,
        };
        if is_met && is_best {
            self.best = Some(achieved_qps);
        }
        Decision { is_best, next_qps: self.next(achieved_qps, is_met) }
    }

    fn next(&mut self, achieved_qps: f64, is_met: bool) -> Option<u64> {
        match self.stage {
            Stage::First if is_met => return None,
            Stage::First => {
                self.peak = achieved_qps;
                self.high = achieved_qps as u64;
                self.current = self.high;
                self.stage = Stage::Bisecting;
            }
            Stage::Bisecting if is_met => self.low = self.current,
            Stage::Bisecting => self.high = self.current,
            Stage::BackingOff => {}
        }
        let is_worthwhile = self.current as f64 > 0.1 * self.peak;
        if self.stage == Stage::Bisecting {
            let middle = (self.high + self.low) / 2;
            // Of low rates 2 % are less than one request per second, and there is nothing between.
            if self.high as f64 > self.low as f64 * 1.02 && middle > self.low && is_worthwhile {
                self.current = middle;
                return Some(self.current);
            }
            self.stage = Stage::BackingOff;
        }
        if is_met || !is_worthwhile || self.current as f64 <= 0.9 * self.low as f64 {
            return None;
        }
        self.current = self.current * 98 / 100;
        Some(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a server of which this is the percentile at a rate; its peak is 100 000/s. Returns the rates tried, and which
    /// of them was best.
    fn searched(nth_us: impl Fn(u64) -> f64, bound_us: f64) -> (Vec<u64>, u64) {
        searched_from(100_000, nth_us, bound_us)
    }

    /// The rates tried and the best of them, for a server with this peak.
    fn searched_from(peak: u64, nth_us: impl Fn(u64) -> f64, bound_us: f64) -> (Vec<u64>, u64) {
        let mut search = Search::new(bound_us);
        let (mut tried, mut best, mut next) = (Vec::new(), 0, Some(peak));
        while let Some(qps) = next {
            tried.push(qps);
            let decision = search.decide(qps as f64, nth_us(qps));
            best = if decision.is_best { qps } else { best };
            next = decision.next_qps;
            assert!(tried.len() < 100, "{tried:?}");
        }
        (tried, best)
    }

    #[test]
    fn a_first_run_within_the_bound_ends_the_search() {
        assert_eq!(searched(|_| 10.0, 20.0), (vec![100_000], 100_000));
    }

    #[test]
    fn the_best_run_that_met_the_bound_is_found() {
        // Met below 70 000/s: bisection ends within 2 % of that.
        let (tried, best) = searched(|qps| if qps < 70_000 { 10.0 } else { 30.0 }, 20.0);
        assert_eq!(tried[..4], [100_000, 50_000, 75_000, 62_500]);
        assert!((68_600..70_000).contains(&best), "{best} of {tried:?}");
    }

    /// Neighbouring whole rates may be further apart than 2 %: then there is nothing between.
    #[test]
    fn slow_servers_are_searched_to_the_end() {
        for peak in 100..400 {
            for limit in peak / 8..peak {
                let (tried, best) = searched_from(peak, |qps| if qps <= limit { 10.0 } else { 30.0 }, 20.0);
                // Below a tenth of the peak nothing is sought.
                let is_found = best <= limit && best + 1 >= limit * 98 / 100;
                assert!(is_found || best <= peak / 4, "{best} of {tried:?} for {limit}");
            }
        }
    }

    #[test]
    fn rates_below_a_tenth_of_the_peak_end_the_search() {
        let (tried, best) = searched(|_| 30.0, 20.0);
        assert_eq!(tried, [100_000, 50_000, 25_000, 12_500, 6_250]);
        assert_eq!(best, 6_250);
    }

    #[test]
    fn a_failed_last_run_lowers_the_rate() {
        // The bound is met at 50 000 once and not again.
        let mut search = Search::new(20.0);
        let mut qps = search.decide(100_000.0, 30.0).next_qps;
        assert_eq!(qps, Some(50_000));
        qps = search.decide(50_000.0, 10.0).next_qps;
        let mut tried = Vec::new();
        while let Some(rate) = qps {
            tried.push(rate);
            qps = search.decide(rate as f64, 30.0).next_qps;
        }
        let last_of_bisection = tried.iter().rposition(|rate| *rate > 50_000).unwrap();
        assert_eq!(tried[last_of_bisection + 1..].len(), 6, "{tried:?}");
        assert!(search.has_met());
    }
}
