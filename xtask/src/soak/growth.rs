//! Whether memory grows: the slope of the samples behind the head of a run, and how much of it is allowed.
//!
//! Invariant: neither noise, nor a saw's teeth, nor one step is growth, however large; only what goes on is.

/// What resident memory may grow by, in bytes per second: 2 MB an hour.
const GROWTH_MAX: f64 = 2e6 / 3600.0;
/// Buffers reach their size and pages are touched for the first time in this part of a run, which is not judged: 5 minutes where the run
/// has 8, and no more where it is longer.
const HEAD_PART: f64 = 5.0 / 8.0;
const HEAD_S_MAX: f64 = 300.0;
/// What allocator and kernel move to and fro. It is what [`GROWTH_MAX`] comes to in the 3 minutes that a run of 8 judges: where less is
/// judged, it is this much over all of it that is allowed.
const NOISE_BYTES: f64 = 100e3;
/// Fewer say nothing.
const SAMPLES_MIN: usize = 6;

/// Resident memory at a time of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) at_s: f64,
    pub(super) rss_bytes: f64,
}

/// What was found, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    pub(super) head_s: f64,
    pub(super) slope: f64,
    pub(super) slope_max: f64,
}

impl Growth {
    /// Of a run of this length; none where too few samples lie behind its head.
    pub(super) fn of(samples: &[Sample], run_s: f64) -> Option<Self> {
        let head_s = (run_s * HEAD_PART).min(HEAD_S_MAX);
        let judged = &samples[samples.partition_point(|sample| sample.at_s < head_s)..];
        if judged.len() < SAMPLES_MIN {
            return None;
        }
        let span_s = judged[judged.len() - 1].at_s - judged[0].at_s;
        // One step, wherever it is, lies in one half at most; what goes on goes on in both.
        let (first, second) = judged.split_at(judged.len() / 2);
        let slope = [judged, first, second].map(theil_sen).into_iter().fold(f64::INFINITY, f64::min);
        Some(Self { head_s, slope, slope_max: GROWTH_MAX.max(NOISE_BYTES / span_s) })
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.slope <= self.slope_max
    }
}

/// The median of the slopes between all pairs of samples (Theil 1950, Sen 1968): up to 29 % of the samples may be anything.
fn theil_sen(samples: &[Sample]) -> f64 {
    let pairs = samples.iter().enumerate().flat_map(|(at, a)| samples[at + 1..].iter().map(move |b| (a, b)));
    let mut slopes: Vec<f64> = pairs.map(|(a, b)| (b.rss_bytes - a.rss_bytes) / (b.at_s - a.at_s)).collect();
    slopes.sort_by(f64::total_cmp);
    let middle = slopes.len() / 2;
    if slopes.len() % 2 == 1 { slopes[middle] } else { f64::midpoint(slopes[middle - 1], slopes[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples every 10 s of a run, in bytes above 30 MB.
    fn samples(run_s: u32, bytes_at: impl Fn(f64) -> f64) -> Vec<Sample> {
        let at = |at_s| Sample { at_s, rss_bytes: 30e6 + bytes_at(at_s) };
        (1..run_s / 10).map(|number| at(f64::from(number) * 10.0)).collect()
    }

    /// A page more or less or none, of no order.
    fn noise(at_s: f64) -> f64 {
        4096.0 * ((at_s / 10.0 * 7.0) % 5.0 - 2.0)
    }

    #[test]
    fn the_slope_of_a_line_is_its_own_and_outliers_do_not_move_it() {
        let table: [(&[(f64, f64)], f64); 4] = [
            (&[(0.0, 1.0), (1.0, 3.0)], 2.0),
            (&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.0)], 0.0),
            (&[(0.0, 0.0), (1.0, 1.0), (2.0, 900.0), (3.0, 3.0), (4.0, 4.0), (5.0, 5.0)], 1.0),
            (&[(0.0, 4.0), (2.0, 3.0), (4.0, 2.0)], -0.5),
        ];
        for (points, slope) in table {
            let samples: Vec<_> =
                points.iter().map(|&(at_s, rss_bytes)| Sample { at_s, rss_bytes }).collect();
            assert_eq!(theil_sen(&samples), slope, "{points:?}");
        }
    }

    /// (what, length of the run in s, bytes at a time, is it allowed?)
    #[test]
    fn only_what_goes_on_is_growth() {
        type Case = (&'static str, u32, fn(f64) -> f64, bool);
        let table: [Case; 18] = [
            ("flat", 600, |_| 0.0, true),
            ("flat with noise", 600, noise, true),
            ("flat with noise", 3600, noise, true),
            ("a head that grows", 600, |at_s| 1e5 * at_s.min(290.0), true),
            ("a step in the middle", 600, |at_s| if at_s < 445.0 { 0.0 } else { 5e6 }, true),
            ("a step early", 600, |at_s| if at_s < 340.0 { 0.0 } else { 5e6 } + noise(at_s), true),
            ("a step late", 3600, |at_s| if at_s < 3000.0 { 0.0 } else { 5e6 } + noise(at_s), true),
            ("a saw", 3600, |at_s| 1e6 * (at_s / 120.0).fract(), true),
            ("it shrinks", 600, |at_s| -100.0 * at_s, true),
            ("1.9 MB an hour", 3600, |at_s| 1.9e6 * at_s / 3600.0 + noise(at_s), true),
            ("2.1 MB an hour", 3600, |at_s| 2.1e6 * at_s / 3600.0 + noise(at_s), false),
            ("1.9 MB an hour", 600, |at_s| 1.9e6 * at_s / 3600.0, true),
            ("2.1 MB an hour", 600, |at_s| 2.1e6 * at_s / 3600.0, false),
            ("stairs", 3600, |at_s| 5e5 * (at_s / 300.0).floor(), false),
            ("a saw that climbs", 3600, |at_s| 1e6 * (at_s / 120.0).fract() + 1e3 * at_s, false),
            ("three minutes flat", 180, noise, true),
            // 60 s are judged, and 50 s lie between their first sample and their last.
            ("three minutes, 95 kB over what is judged", 180, |at_s| 95e3 / 50.0 * at_s, true),
            ("three minutes, 105 kB over what is judged", 180, |at_s| 105e3 / 50.0 * at_s, false),
        ];
        for (what, run_s, bytes_at, is_allowed) in table {
            let growth = Growth::of(&samples(run_s, bytes_at), f64::from(run_s)).unwrap();
            assert_eq!(growth.is_allowed(), is_allowed, "{what}, {run_s} s: {growth:?}");
        }
    }

    #[test]
    fn heads_are_five_minutes_or_less_and_few_samples_are_not_judged() {
        for (run_s, head_s) in [(3600, 300.0), (600, 300.0), (480, 300.0), (240, 150.0)] {
            assert_eq!(Growth::of(&samples(run_s, noise), f64::from(run_s)).unwrap().head_s, head_s);
        }
        assert_eq!(Growth::of(&samples(100, noise), 100.0), None);
        assert_eq!(Growth::of(&[], 600.0), None);
    }
}
