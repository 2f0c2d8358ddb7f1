//! A rate that changes with time: ramps and steps, as points between which the rate is a straight line.
//!
//! A description only; `brunt-workload` turns it into intended times, exactly. Time 0 is the beginning of the measured
//! window; before the first point its rate holds, behind the last point that one's.

use crate::units::{DurationNs, Rate, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// Requests per second at a point of a profile: a [`Rate`], or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PointRate {
    /// Millionths of a request per second, at most 10¹⁵.
    pub micro_per_second: u64,
}

impl PointRate {
    /// As a float, for reports.
    pub fn as_f64(self) -> f64 {
        self.micro_per_second as f64 / 1e6
    }
}

impl FromStr for PointRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "0" | "0/s" => Ok(Self { micro_per_second: 0 }),
            rate => rate.parse::<Rate>().map(|rate| Self { micro_per_second: rate.micro_per_second }),
        }
    }
}

impl fmt::Display for PointRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rate { micro_per_second: self.micro_per_second }.fmt(formatter)
    }
}

/// One point of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatePoint {
    /// Since the beginning of the measured window.
    pub at: DurationNs,
    /// Requests per second of the whole class at this instant.
    pub rate: PointRate,
}

/// Points in the order of time. Two points at the same time are a step. Text form `0s=1k,30s=50k,30s=10k`; in a file one
/// point a line will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateProfile {
    /// At least one, ascending in time; the rate of the last is above 0, so that there always is another request.
    pub points: Vec<RatePoint>,
}

impl RateProfile {
    /// The highest rate that it reaches.
    pub fn highest(&self) -> Rate {
        let highest = self.points.iter().map(|point| point.rate.micro_per_second).max().unwrap_or(0);
        assert!(highest > 0, "a profile ends with a rate above 0");
        Rate { micro_per_second: highest }
    }

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
        match points.last() {
            None => Err("expected a list of TIME=RATE such as 0s=1k,30s=50k".to_owned()),
            Some(last) if last.rate.micro_per_second == 0 => Err(format!(
                "'{}={}' is the last point; expected a rate above 0 there, which then holds",
                last.at, last.rate
            )),
            Some(_) => Ok(Self { points }),
        }
    }
}

impl fmt::Display for RateProfile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.points.iter().map(|point| format!("{}={}", point.at, point.rate));
        formatter.write_str(&points.collect::<Vec<_>>().join(","))
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
        assert_eq!(profile.highest(), Rate::per_second(300));
        // A triangle of 10 requests, a pause, and 5 a second.
        let paused: RateProfile = "0s=0,2s=10,2s=0,3s=0,3s=5".parse().unwrap();
        assert_eq!([paused.requests_between(0, 3_000_000_000), paused.rate_at(2_500_000_000)], [10.0, 0.0]);
    }

    #[test]
    fn profiles() {
        for (text, expected) in [
            ("0s=1k", "0s=1000/s"),
            ("0s=1k,30s=50k,30s=10k", "0s=1000/s,30s=50000/s,30s=10000/s"),
            ("# morning\n0s = 100\n\n10s = 200\n", "0s=100/s,10s=200/s"),
            ("0s=0,10s=0/s,20s=0.5", "0s=0/s,10s=0/s,20s=0.5/s"),
        ] {
            let profile: RateProfile = text.parse().unwrap();
            assert_eq!(profile.to_string(), expected);
            assert_eq!(expected.parse(), Ok(profile));
        }
        for (text, error) in [
            (
                "10s=1,5s=2",
                "'5s=2' lies before the point in front of it; expected points in the order of time",
            ),
            ("10s", "'10s' is no point; expected a list of TIME=RATE such as 0s=1k,30s=50k"),
            ("0s=-1", "'0s=-1' is no point; expected a list of TIME=RATE such as 0s=1k,30s=50k"),
            ("5=1k", "'5=1k' is no point; expected a list of TIME=RATE such as 0s=1k,30s=50k"),
            ("", "expected a list of TIME=RATE such as 0s=1k,30s=50k"),
            ("0s=0", "'0s=0/s' is the last point; expected a rate above 0 there, which then holds"),
            ("0s=5,1s=0", "'1s=0/s' is the last point; expected a rate above 0 there, which then holds"),
        ] {
            assert_eq!(text.parse::<RateProfile>(), Err(error.to_owned()), "{text:?}");
        }
    }
}
