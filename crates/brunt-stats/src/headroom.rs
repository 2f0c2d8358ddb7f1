//! The headroom of a client: the rate up to which the client error of the p99 stays small, searched for by measuring.
//!
//! The caller measures: the search is given a function that measures one rate. Rates are doubled until the client error
//! crosses its limit, then the span between the last rate under it and the first one over it is halved (in ratio) until it
//! is narrow. Whatever else runs on a host only ever adds to the client error, so one measurement within the limit is
//! believed, and one beyond it is repeated: the median of up to three decides. Invariant: the rate that is reported was
//! measured, and found within the limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The client error of the p99 that counts as small: what LAG never holds against a run.
pub const ERROR_LIMIT_NS: u64 = 10_000;

/// No rate above this is tried: no single host sends more.
const RATE_MAX: u64 = 10_000_000;
/// The search ends when the rate over the limit is at most this many times the rate under it.
const RATIO: f64 = 1.05;

/// One measurement at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Requests per second that were offered.
    pub rate: u64,
    /// The 99th percentile of the response time; `None` where too few requests completed.
    pub p99_ns: Option<u64>,
    /// Client error of `p99_ns`; `None` where that is.
    pub error_ns: Option<u64>,
    /// The server did not keep up.
    pub is_saturated: bool,
}

/// What a rate comes to, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The client error is within the limit.
    Within,
    /// The client error is within the limit, but the server did not keep up, so that it says nothing.
    Saturated,
    /// The client error is beyond the limit.
    Beyond,
}

impl Probe {
    /// What this measurement alone says.
    pub fn grade(&self) -> Grade {
        match self.error_ns {
            Some(error_ns) if error_ns > ERROR_LIMIT_NS => Grade::Beyond,
            Some(_) if !self.is_saturated => Grade::Within,
            // Hardly any of thousands of requests completed: that is no fault of the client.
            _ => Grade::Saturated,
        }
    }
}

brunt_plan::named! { serialized
    /// What ended a search.
    pub enum HeadroomLimit {
        /// The client error crossed its limit: the headroom is known.
        Client = "client",
        /// The server did not keep up before that: the headroom is at least what was reached.
        Server = "server",
        /// No rate that was allowed was too much: likewise.
        Search = "search",
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Headroom {
    /// The highest rate at which the client error was within its limit; `None` where it was at no rate that was tried.
    pub rate: Option<u64>,
    /// What ended the search.
    pub limit: HeadroomLimit,
    /// The lowest rate at which it did; `None` where nothing higher was tried.
    pub limit_rate: Option<u64>,
}

/// Searches for the rate at which the client error crosses [`ERROR_LIMIT_NS`], from the lowest rate up, which is above 0. Beside what it found:
/// every measurement, in the order in which they were made. No rate is begun after `measurements_max`; the last one may still be repeated twice.
///
/// # Errors
/// The first one of `measure`.
pub fn search<E>(
    lowest: u64,
    measurements_max: usize,
    mut measure: impl FnMut(u64) -> Result<Probe, E>,
) -> Result<(Headroom, Vec<Probe>), E> {
    let mut probes: Vec<Probe> = Vec::new();
    let (mut under, mut over) = (None, None);
    let mut rate = lowest;
    while probes.len() < measurements_max {
        let first = probes.len();
        let grade = loop {
            probes.push(measure(rate)?);
            let mut grades: Vec<Grade> = probes[first..].iter().map(Probe::grade).collect();
            grades.sort_unstable();
            match grades[..] {
                [grade @ Grade::Within] | [_, grade, _] => break grade,
                [one, other] if one == other => break one,
                _ => {}
            }
        };
        match grade {
            Grade::Within => under = Some(rate),
            grade => over = Some((rate, grade)),
        }
        rate = match (under, over) {
            (None, _) => break,
            (Some(low), None) if low >= RATE_MAX => break,
            (Some(low), None) => (low * 2).min(RATE_MAX),
            (Some(low), Some((high, _))) => {
                let middle = rounded((low as f64 * high as f64).sqrt());
                if high as f64 <= low as f64 * RATIO || middle <= low || middle >= high {
                    break;
                }
                middle
            }
        };
    }
    let limit = match over {
        None => HeadroomLimit::Search,
        Some((_, Grade::Beyond)) => HeadroomLimit::Client,
        Some(_) => HeadroomLimit::Server,
    };
    Ok((Headroom { rate: under, limit, limit_rate: over.map(|(rate, _)| rate) }, probes))
}

/// To three significant digits: no rate is known better.
fn rounded(rate: f64) -> u64 {
    let scale = 10f64.powf((rate.log10().floor() - 2.0).max(0.0));
    ((rate / scale).round() * scale) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    const LOWEST: u64 = 2_000;
    const MOST: usize = 28;

    /// A client whose error bar grows with the rate and is 10 us at `crossing`.
    fn straight(crossing: u64) -> impl Fn(u64) -> Probe {
        move |rate| probe(rate, rate * ERROR_LIMIT_NS / crossing)
    }

    fn probe(rate: u64, error_ns: u64) -> Probe {
        Probe { rate, p99_ns: Some(50_000 + error_ns), error_ns: Some(error_ns), is_saturated: false }
    }

    fn found(measurements_max: usize, measure: impl Fn(u64) -> Probe) -> (Headroom, Vec<Probe>) {
        search(LOWEST, measurements_max, |rate| Ok::<_, Infallible>(measure(rate))).unwrap()
    }

    #[test]
    fn a_crossing_is_found_to_five_per_cent() {
        for crossing in [2_001, 3_000, 17_321, 84_000, 1_234_567, 9_000_000] {
            let (headroom, probes) = found(MOST, straight(crossing));
            let (rate, over) = (headroom.rate.unwrap(), headroom.limit_rate.unwrap());
            assert_eq!(headroom.limit, HeadroomLimit::Client);
            // An error of exactly 10 us is within the limit, and division rounds down.
            assert!(rate <= crossing + crossing / 10_000 && crossing < over, "{crossing}: {headroom:?}");
            assert!(over as f64 <= rate as f64 * 1.05, "{crossing}: {headroom:?}");
            assert!(probes.len() <= 28 + 2, "{crossing}: {}", probes.len());
        }
    }

    /// Every `nth` measurement is spoiled by something else on the host.
    #[test]
    fn noise_costs_measurements_and_not_the_result() {
        for nth in [3, 4, 7] {
            let count = Cell::new(0);
            let quiet = straight(50_000);
            let (headroom, _) = found(MOST, |rate| {
                count.set(count.get() + 1);
                if count.get() % nth == 0 { probe(rate, 300_000) } else { quiet(rate) }
            });
            let rate = headroom.rate.unwrap();
            assert!((46_000..=50_000).contains(&rate), "every {nth}th: {headroom:?}");
        }
    }

    #[test]
    fn a_saturated_server_ends_the_search() {
        let (headroom, probes) = found(MOST, |rate| Probe {
            is_saturated: rate > 30_000,
            error_ns: (rate <= 60_000).then_some(3_000),
            ..probe(rate, 3_000)
        });
        assert_eq!(headroom.limit, HeadroomLimit::Server);
        let (rate, saturated) = (headroom.rate.unwrap(), headroom.limit_rate.unwrap());
        assert!(
            rate <= 30_000 && saturated > 30_000 && saturated as f64 <= rate as f64 * 1.05,
            "{headroom:?}"
        );
        assert!(probes.iter().all(|probe| probe.rate <= 32_000), "{probes:?}");
        // Where the client error is beyond its limit as well, that is the nearer bound.
        let both = found(MOST, |rate| Probe { is_saturated: rate > 30_000, ..straight(40_000)(rate) });
        assert_eq!(both.0.limit, HeadroomLimit::Server);
        let both = found(MOST, |rate| Probe { is_saturated: rate > 40_000, ..straight(30_000)(rate) });
        assert_eq!(both.0.limit, HeadroomLimit::Client);
    }

    #[test]
    fn a_search_without_a_crossing_yields_a_lower_bound() {
        let (headroom, probes) = found(MOST, |rate| probe(rate, 500));
        let expected = Headroom { rate: Some(10_000_000), limit: HeadroomLimit::Search, limit_rate: None };
        assert_eq!((headroom, probes.len()), (expected, 14));
        let few = found(3, |rate| probe(rate, 500));
        assert_eq!(few.0, Headroom { rate: Some(8_000), ..expected });
        let none = found(0, |rate| probe(rate, 500));
        assert_eq!(none.0, Headroom { rate: None, ..expected });
    }

    #[test]
    fn headroom_is_unknown_when_every_rate_is_beyond_the_limit() {
        let (headroom, probes) = found(MOST, |rate| probe(rate, 10_001));
        let expected = Headroom { rate: None, limit: HeadroomLimit::Client, limit_rate: Some(2_000) };
        assert_eq!((headroom, probes.len()), (expected, 2));
        let silent = found(MOST, |rate| Probe { p99_ns: None, error_ns: None, ..probe(rate, 0) });
        assert_eq!(silent.0, Headroom { limit: HeadroomLimit::Server, ..expected });
    }

    #[test]
    fn a_bounded_search_reports_its_best_rate() {
        let (headroom, probes) = found(6, straight(9_000));
        // 2k, 4k and 8k are within; 16k is measured twice, 11.3k once more than the bound foresees.
        assert_eq!(
            headroom,
            Headroom { rate: Some(8_000), limit: HeadroomLimit::Client, limit_rate: Some(11_300) }
        );
        assert_eq!(probes.len(), 7);
    }

    #[test]
    fn a_measurement_error_ends_the_search() {
        let failed = search(LOWEST, MOST, |rate| if rate < 8_000 { Ok(probe(rate, 1)) } else { Err("gone") });
        assert_eq!(failed, Err("gone"));
    }

    #[test]
    fn rates_have_three_digits() {
        let table = [(2_828.4, 2_830), (999.6, 1_000), (12.0, 12), (1_234_567.0, 1_230_000)];
        for (rate, expected) in table {
            assert_eq!(rounded(rate), expected);
        }
    }
}
