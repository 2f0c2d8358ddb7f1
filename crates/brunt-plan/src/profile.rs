//! A rate that changes with time: ramps and steps, as points between which the rate is a straight line.
//!
//! A description only; `brunt-workload` turns it into intended times, exactly. Time 0 is the beginning of the measured
//! window; before the first point its rate holds, behind the last point that one's.

use crate::units::{DurationNs, Rate, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// One point of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatePoint {
    /// Since the beginning of the measured window.
    pub at: DurationNs,
    /// Requests per second of the whole class at this instant; may be 0 nowhere.
    pub rate: Rate,
}

/// Points in the order of time. Two points at the same time are a step. Text form `0s=1k,30s=50k,30s=10k`; in a file one
/// point a line will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateProfile {
    /// At least one, ascending in time.
    pub points: Vec<RatePoint>,
}

impl RateProfile {
    /// Requests per second at an instant.
    pub fn rate_at(&self, at_ns: u64) -> f64 {
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        // The last point at or before the instant: of a step, the side that goes on.
        match self.points.iter().rposition(|point| point.at.0 <= at_ns) {
            None => first.rate.as_f64(),
            Some(index) => match self.points.get(index + 1) {
                None => last.rate.as_f64(),
                Some(next) => {
                    let (from, part) = (self.points[index], (at_ns - self.points[index].at.0) as f64);
                    let length = (next.at.0 - from.at.0) as f64;
                    from.rate.as_f64() + (next.rate.as_f64() - from.rate.as_f64()) * part / length
                }
            },
        }
    }

    /// How many requests are due in a span, on average: the integral of the rate.
    pub fn requests_between(&self, from_ns: u64, to_ns: u64) -> f64 {
        let bends =
            self.points.iter().map(|point| point.at.0).filter(|at_ns| (from_ns..to_ns).contains(at_ns));
        let mut edges: Vec<u64> = [from_ns, to_ns].into_iter().chain(bends).collect();
        edges.sort_unstable();
        edges.dedup();
        // Between two neighbouring edges the rate is a straight line, so that its middle is its mean; half a nanosecond
        // of a step is lost to rounding.
        let area = |span: &[u64]| {
            let middle_ns = span[0] + (span[1] - span[0]) / 2;
            self.rate_at(middle_ns) * (span[1] - span[0]) as f64 / 1e9
        };
        edges.windows(2).map(area).sum()
    }
}

impl FromStr for RateProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut points: Vec<RatePoint> = Vec::new();
        let items =
            text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty() && !item.starts_with('#'));
        for item in items {
            let parsed = item.split_once('=').and_then(|(at, rate)| {
                Some(RatePoint { at: at.trim().parse().ok()?, rate: rate.trim().parse().ok()? })
            });
            match parsed {
                Some(point) if points.last().is_some_and(|last| last.at > point.at) => {
                    return Err(format!(
                        "'{item}' lies before the point in front of it; expected points in the order of time"
                    ));
                }
                Some(point) => points.push(point),
                None => {
                    return Err(format!(
                        "'{item}' is no point; expected a list of TIME=RATE such as 0s=1k,30s=50k"
                    ));
                }
            }
        }
        if points.is_empty() {
            return Err("expected a list of TIME=RATE such as 0s=1k,30s=50k".to_owned());
        }
        Ok(Self { points })
    }
}

impl fmt::Display for RateProfile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, point) in self.points.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{}={}", point.at, point.rate)?;
        }
        Ok(())
    }
}
serde_as_text!(RateProfile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_their_integrals() {
        let profile: RateProfile = "1s=100,3s=300,3s=50,4s=50".parse().unwrap();
        let at = |ms: u64| profile.rate_at(ms * 1_000_000);
        assert_eq!([at(0), at(1_000), at(2_000), at(3_000), at(9_000)], [100.0, 100.0, 200.0, 50.0, 50.0]);
        let between = |from: u64, to: u64| profile.requests_between(from * 1_000_000_000, to * 1_000_000_000);
        // 100, then a ramp with the mean 200 over two seconds, then 50 a second.
        assert!((between(0, 5) - (100.0 + 400.0 + 100.0)).abs() < 1e-3, "{}", between(0, 5));
        assert!((between(2, 3) - 250.0).abs() < 1e-3);
        assert_eq!(between(3, 3), 0.0);
    }

    #[test]
    fn profiles() {
        let table = [
            ("0s=1k", Some("0s=1000/s")),
            ("0s=1k,30s=50k,30s=10k", Some("0s=1000/s,30s=50000/s,30s=10000/s")),
            ("# morning\n0s = 100\n\n10s = 200\n", Some("0s=100/s,10s=200/s")),
            ("10s=1,5s=2", None),
            ("10s", None),
            ("", None),
            ("0s=0", None),
        ];
        for (text, expected) in table {
            let printed = text.parse::<RateProfile>().ok().map(|profile| profile.to_string());
            assert_eq!(printed.as_deref(), expected, "{text:?}");
        }
    }
}
