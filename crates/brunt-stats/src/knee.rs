//! The knee of a latency-throughput curve: where more load begins to cost more latency than it brings throughput.
//!
//! Not a limit (that is where the server or the client can do no more). Kleinrock's power of a load is throughput divided
//! by latency; the knee is the load of greatest power. Seen on the curve of latency over throughput it is the point that a
//! straight line from the origin touches: below it, a step of one per cent in load costs less than one per cent of latency,
//! above it more. Rejected: detectors of greatest curvature, whose answer depends on how the axes are scaled and on where
//! the measurement stopped.

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

/// The knee of a curve whose points ascend in load. `is_closed` says that a higher load was tried and found to be too much:
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
