//! Spacing of open-loop arrivals, in the mini-language `name:a,b`, and a rate that changes with time.
//!
//! Descriptions only: `brunt-workload` draws from them.

use crate::distribution::{self, Distribution, MCPERF, McperfDraw};
use crate::units::{DurationNs, Rate, joined, name_and_arguments, text_form};
use std::fmt;

/// How open-loop arrivals are spaced; the mean always follows from the rate.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Independent arrivals: exponential gaps. Text form `poisson`.
    Poisson,
    /// Evenly spaced. Text form `uniform`.
    Uniform,
    /// Poisson arrivals whose rate alternates between bursts and calm. Text form `mmpp:PEAK,BURST,DUTY`.
    Mmpp(Mmpp),
    /// Independent gaps of this distribution, scaled so that their mean fits the rate: the distribution's own unit does not matter. What
    /// lies below 0 counts as 0. Text form: any distribution, such as `fb_ia`.
    Parametric(Distribution),
    /// Gaps that are in proportion to the numbers mcperf draws, with the mean that fits the rate; of a sequence, which has no
    /// mean, the numbers count gaps of the rate. The first arrival is at time 0. The connections of a class share one sequence of numbers,
    /// each going on where the one before it, which has as many calls, comes to its end. Text form `mcperf:u1,16@3`.
    Mcperf(McperfDraw),
}

/// A Markov-modulated Poisson process with two states, described by what a user can picture. Bursts and the calm between
/// them have exponential lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmpp {
    /// The rate during a burst over the mean rate; at least 1, at most 1/duty.
    pub peak: f64,
    /// Mean length of a burst, at least [`BURST_MIN`].
    pub burst: DurationNs,
    /// The part of time that bursts take; above 0 and below 1.
    pub duty: f64,
}

/// Shorter bursts cannot be told from Poisson arrivals by a client of which a request takes some microseconds.
pub const BURST_MIN: DurationNs = DurationNs(100_000);

impl Mmpp {
    /// The rate between bursts over the mean rate; 0 where bursts carry everything.
    pub fn low(&self) -> f64 {
        // Both parts of time together have the mean rate: duty · peak + (1 − duty) · low = 1.
        (1.0 - self.duty * self.peak) / (1.0 - self.duty)
    }

    /// Mean time between bursts in nanoseconds.
    pub fn calm_ns(&self) -> f64 {
        self.burst.0 as f64 * (1.0 - self.duty) / self.duty
    }

    /// The index of dispersion for counts: variance over mean of the number of requests in a long time, which is 1 for
    /// Poisson arrivals. `mean` is the mean rate.
    ///
    /// 1 + 2 s₁ s₂ (l₁ − l₂)² / ((s₁ + s₂)² (l₁ s₂ + l₂ s₁)) with rates l and rates s of leaving a state (Fischer and
    /// Meier-Hellstern, "The Markov-modulated Poisson process cookbook", 1993).
    pub fn idc(&self, mean: Rate) -> f64 {
        let (l1, l2) = (self.peak * mean.as_f64(), self.low() * mean.as_f64());
        let (s1, s2) = (1e9 / self.burst.0 as f64, 1e9 / self.calm_ns());
        1.0 + 2.0 * s1 * s2 * (l1 - l2).powi(2) / ((s1 + s2).powi(2) * (l1 * s2 + l2 * s1))
    }

    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let [peak, burst, duty] = arguments else {
            return Err("expected PEAK,BURST,DUTY, such as 4,100ms,0.1: 4 times the mean rate during bursts of 100 ms, \
                        which take a tenth of the time"
                .to_owned());
        };
        let number = |name: &str, text: &str| {
            distribution::plain_number(text).ok_or_else(|| format!("{name} '{text}' is no number"))
        };
        let mmpp = Self {
            peak: number("PEAK", peak)?,
            burst: burst.parse().map_err(|accepted| format!("BURST '{burst}': {accepted}"))?,
            duty: number("DUTY", duty)?,
        };
        mmpp.check()?;
        Ok(mmpp)
    }

    /// Are the parameters in range? If not, what is wrong with them.
    pub fn check(&self) -> Result<(), String> {
        let Self { peak, burst, duty } = self;
        if *burst < BURST_MIN {
            Err(format!("BURST {burst} is below {BURST_MIN}"))
        } else if !(*duty >= 1e-9 && *duty < 1.0) {
            Err(format!("DUTY {duty} is no fraction above 0 (at least 1e-9) and below 1"))
        } else if *peak < 1.0 {
            Err(format!("PEAK {peak} is below 1: it counts in mean rates"))
        } else if peak * duty > 1.0 {
            Err(format!("PEAK times DUTY is {}: bursts alone would exceed the mean rate", peak * duty))
        } else {
            Ok(())
        }
    }
}

/// May gaps be drawn from this distribution? If not, why.
fn check_gaps(distribution: &Distribution) -> Result<(), String> {
    /// Above it more than a fifth of the mean lies in gaps rarer than one in a million (Φ(σ − 4.75)): no run would have
    /// the rate that was requested.
    const SIGMA_MAX: f64 = 4.0;
    match distribution {
        Distribution::Pareto(distribution) | Distribution::Gev(distribution) if distribution.shape >= 1.0 => {
            Err(format!("SHAPE {} makes the mean infinite; gaps need one below 1", distribution.shape))
        }
        Distribution::Lognormal { sigma, .. } if *sigma > SIGMA_MAX => Err(format!(
            "SIGMA {sigma} puts the mean into gaps that no run sees; gaps need one up to {SIGMA_MAX}"
        )),
        // Else requests would come in heaps of thousands at the same instant, or all at once.
        distribution if !is_often_positive(distribution) => {
            Err("fewer than one gap in a thousand would be above 0".to_owned())
        }
        _ => Ok(()),
    }
}

/// Is the 99.9 % quantile above 0? Closed forms, of which only the sign counts.
fn is_often_positive(distribution: &Distribution) -> bool {
    const LEVEL: f64 = 0.999;
    let power = |exceedance: f64, shape: f64| {
        if shape == 0.0 { -exceedance.ln() } else { (exceedance.powf(-shape) - 1.0) / shape }
    };
    match distribution {
        Distribution::Fixed { value } => *value > 0.0,
        Distribution::Uniform { min, max } => min + LEVEL * (max - min) > 0.0,
        Distribution::Normal { mean, sd } => mean + 3.090_232 * sd > 0.0,
        Distribution::Pareto(distribution) => {
            distribution.location + distribution.scale * power(1.0 - LEVEL, distribution.shape) > 0.0
        }
        Distribution::Gev(distribution) => {
            distribution.location + distribution.scale * power(-LEVEL.ln(), distribution.shape) > 0.0
        }
        Distribution::Discrete(table) => {
            let weight = |above: f64| -> f64 {
                table.iter().filter(|(value, _)| *value > above).map(|(_, weight)| weight).sum()
            };
            weight(0.0) > (1.0 - LEVEL) * weight(f64::NEG_INFINITY)
        }
        Distribution::Exponential { .. } | Distribution::Lognormal { .. } | Distribution::FbValue => true,
    }
}

impl Arrival {
    fn of_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let named = |fault: String| format!("{text}: {fault}");
        match name_and_arguments(text) {
            ("poisson", arguments) if arguments.is_empty() => Ok(Self::Poisson),
            ("uniform", arguments) if arguments.is_empty() => Ok(Self::Uniform),
            _ if text.starts_with(MCPERF) => McperfDraw::parse(text).map(Self::Mcperf),
            ("mmpp", arguments) => Mmpp::parse(&arguments).map(Self::Mmpp).map_err(named),
            (name, arguments)
                if arguments.is_empty()
                    && !distribution::is_distribution_name(name)
                    && !name.starts_with("fb_") =>
            {
                Err(format!(
                    "{text}: no arrival; expected poisson, uniform, mmpp:PEAK,BURST,DUTY, or a distribution of the gaps: {}",
                    distribution::FORMS
                ))
            }
            _ => {
                let distribution: Distribution = text.parse()?;
                check_gaps(&distribution).map_err(named)?;
                Ok(Self::Parametric(distribution))
            }
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson => formatter.write_str("poisson"),
            Self::Uniform => formatter.write_str("uniform"),
            Self::Mmpp(Mmpp { peak, burst, duty }) => write!(formatter, "mmpp:{peak},{burst},{duty}"),
            Self::Parametric(distribution) => write!(formatter, "{distribution}"),
            Self::Mcperf(draw) => write!(formatter, "{draw}"),
        }
    }
}
text_form!(Arrival);

/// One point of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatePoint {
    /// Since the beginning of the measured window.
    pub at: DurationNs,
    /// Requests per second of the whole class at this instant. It may be 0, unlike any other [`Rate`], but not in the last point.
    pub rate: Rate,
}

/// A rate that changes linearly from one point to the next; two points at the same time are a step. Time 0 is the beginning of the
/// measured window. Before the first point the rate is that of the first, after the last point that of the last. Text form
/// `0s=1k,30s=50k,30s=10k`; a file may have one point per line.
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

    fn of_text(text: &str) -> Result<Self, String> {
        let mut points: Vec<RatePoint> = Vec::new();
        let items =
            text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty() && !item.starts_with('#'));
        for item in items {
            let parsed = item.split_once('=').and_then(|(at, rate)| {
                let rate = match rate.trim() {
                    "0" | "0/s" => Rate { micro_per_second: 0 },
                    rate => rate.parse().ok()?,
                };
                Some(RatePoint { at: at.trim().parse().ok()?, rate })
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

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.points.iter().map(|point| format!("{}={}", point.at, point.rate));
        formatter.write_str(&joined(points))
    }
}

text_form!(RateProfile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dispersion_of_bursts() {
        // The same in terms of the text form: 1 + 2 · rate · burst · duty · (peak − 1)².
        for (peak, burst_ms, duty, rate) in
            [(4.0, 100, 0.1, 1_000), (1.5, 20, 0.5, 50), (1.0, 1, 0.3, 9), (2.0, 1, 0.5, 9)]
        {
            let mmpp = Mmpp { peak, burst: DurationNs::from_millis(burst_ms), duty };
            let expected = 1.0 + 2.0 * rate as f64 * burst_ms as f64 / 1e3 * duty * (peak - 1.0).powi(2);
            let idc = mmpp.idc(Rate::per_second(rate));
            assert!((idc / expected - 1.0).abs() < 1e-12, "{idc} against {expected}");
            assert!((duty * peak + (1.0 - duty) * mmpp.low() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_highest_rate_of_a_profile_is_that_of_a_point() {
        let profile: RateProfile = "1s=100,3s=300,3s=50,4s=50".parse().unwrap();
        assert_eq!(profile.highest(), Rate::per_second(300));
    }
}
