//! What a client says of a run beside what the packets of the same requests show.
//!
//! The wire's time of a request is from the packet with its last byte to the packet with the last byte of its reply. It is
//! compared with what the client prints as latency; for brunt that begins at the intended time. Invariant: a run of which
//! more than one request in a thousand is missing is refused: that many move a p99 to p98.9 or p99.1 at most.

use super::pairing::Pairing;
use crate::bench::client::{Latency, Report};

/// What of the requests may be missing.
const MISSING_MAX: f64 = 0.001;
/// Fewer have no p99.
const REQUESTS_MIN: usize = 1000;

/// A run that counts; times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) report: Report,
    /// CPU time per request.
    pub(super) cpu_us: f64,
    pub(super) wire: Latency,
    pub(super) requests: usize,
    /// Requests that have no time on the wire.
    pub(super) missing: u64,
    /// Largest distance of the gaps between requests from the exponential distribution of the same mean; open loops only.
    pub(super) gap_distance: Option<f64>,
}

/// p50, p90 and p99.
pub(super) fn percentiles(latency: &Latency) -> [Option<f64>; 3] {
    [latency.p50, latency.p90, latency.p99]
}

impl Comparison {
    /// # Errors
    /// Why the run does not count: too few requests, or too many of them missing.
    pub(super) fn of(
        report: Report,
        whole_cpu_us: f64,
        pairing: &Pairing,
        rate: Option<u64>,
    ) -> Result<Self, String> {
        let found = pairing.exchanges.len() as u64;
        let unpaired = pairing.unpaired;
        let missing = report.requests.map_or(unpaired, |requests| unpaired.max(requests.abs_diff(found)));
        if missing as f64 > found as f64 * MISSING_MAX {
            return Err(format!("{missing} of {} requests are not in the capture", found + missing));
        }
        // Nothing is due behind the window, and one thread sends in the order in which requests are due.
        let before = report.requests_of_window.map_or(0, |requests| found.saturating_sub(requests));
        let exchanges = &pairing.exchanges[before as usize..];
        let requests = exchanges.len();
        if requests < REQUESTS_MIN {
            return Err(format!("only {requests} requests"));
        }
        let mut times_us: Vec<f64> =
            exchanges.iter().map(|exchange| (exchange.reply_ns - exchange.request_ns) as f64 / 1e3).collect();
        times_us.sort_unstable_by(f64::total_cmp);
        // The value of rank ⌈pN⌉, as brunt has it.
        let percentile = |p: f64| Some(times_us[(p * requests as f64).ceil() as usize - 1]);
        let wire = Latency {
            mean: Some(times_us.iter().sum::<f64>() / requests as f64),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
        };
        // Of brunt, that of the measured window.
        let window = report.window_cpu_us.zip(report.requests_of_window);
        let cpu_us = window.map_or(whole_cpu_us / pairing.answered as f64, |([user, system], requests)| {
            (user + system) / requests as f64
        });
        let sent_ns = exchanges.iter().map(|exchange| exchange.request_ns);
        let gap_distance = rate.map(|_| distance_from_exponential(sent_ns));
        Ok(Self { report, cpu_us, wire, requests, missing, gap_distance })
    }

    /// By how much the printed p50, p90 and p99 are above the wire's.
    pub(super) fn above_wire(&self) -> [Option<f64>; 3] {
        let (report, wire) = (percentiles(&self.report.latency), percentiles(&self.wire));
        [0, 1, 2].map(|index| Some(report[index]? - wire[index]?))
    }

    /// How far the wire's p50, p90 and p99 lie outside of what is between the printed percentile less the client error and the
    /// printed percentile: 0 inside.
    pub(super) fn outside(&self) -> [Option<f64>; 3] {
        let (above, client_error) = (self.above_wire(), percentiles(&self.report.client_error));
        [0, 1, 2].map(|index| Some((above[index]? - client_error[index]?).max(-above[index]?).max(0.0)))
    }
}

/// Kolmogorov and Smirnov's distance of gaps between sorted times from the exponential distribution of the same mean.
fn distance_from_exponential(times_ns: impl Iterator<Item = u64>) -> f64 {
    let times_ns: Vec<u64> = times_ns.collect();
    let mut gaps: Vec<f64> = times_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let distance = |(index, gap): (usize, &f64)| {
        let expected = 1.0 - (-gap / mean).exp();
        (expected - index as f64 / count).abs().max((expected - (index + 1) as f64 / count).abs())
    };
    gaps.iter().enumerate().map(distance).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::pairing::Exchange;
    use super::*;

    fn latency(mean: f64, p50: f64, p90: f64, p99: f64) -> Latency {
        Latency { mean: Some(mean), p50: Some(p50), p90: Some(p90), p99: Some(p99) }
    }

    /// Requests 1 000 ns apart from time 0 on, of which the n-th takes n us.
    fn pairing(requests: u64) -> Pairing {
        let exchange = |index| {
            let request_ns = 1000 * index;
            Exchange { request_ns, reply_ns: request_ns + 1000 * (index + 1) }
        };
        Pairing { exchanges: (0..requests).map(exchange).collect(), ..Pairing::default() }
    }

    #[test]
    fn percentiles_are_those_of_the_window() {
        let report = Report { requests: Some(3001), requests_of_window: Some(1000), ..Report::default() };
        let found = Comparison::of(report, 0.0, &pairing(3000), Some(1_000_000)).unwrap();
        assert_eq!((found.requests, found.missing), (1000, 1));
        assert_eq!(found.wire, latency(2500.5, 2500.0, 2900.0, 2990.0));
        // Even gaps: all at the mean, where the distribution has 1 - 1/e.
        assert!((found.gap_distance.unwrap() - (1.0 - (-1.0_f64).exp())).abs() < 1e-9);
        assert_eq!(Comparison::of(report, 0.0, &pairing(3000), None).unwrap().gap_distance, None);
    }

    #[test]
    fn runs_with_missing_requests_are_refused() {
        let sent = |requests| Report { requests: Some(requests), ..Report::default() };
        let table = [
            (Report::default(), 3000, 3, Ok(3000)),
            (Report::default(), 3000, 4, Err("4 of 3004 requests are not in the capture")),
            (sent(3003), 3000, 0, Ok(3000)),
            (sent(3010), 3000, 4, Err("10 of 3010 requests are not in the capture")),
            (sent(999), 999, 0, Err("only 999 requests")),
            (Report { requests_of_window: Some(999), ..sent(1500) }, 1500, 0, Err("only 999 requests")),
        ];
        for (report, requests, unpaired, expected) in table {
            let pairing = Pairing { unpaired, ..pairing(requests) };
            let found = Comparison::of(report, 0.0, &pairing, None).map(|found| found.requests);
            assert_eq!(found, expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn distances_outside_of_the_client_error_are_found() {
        let table = [
            // Printed, client error, how far the wire's 20, 40 and 80 lie outside.
            ([30.0, 50.0, 90.0], [10.0, 12.0, 10.0], [0.0, 0.0, 0.0]),
            ([30.0, 50.0, 90.0], [2.0, 10.5, 0.0], [8.0, 0.0, 10.0]),
            ([20.0, 39.0, 79.5], [5.0, 5.0, 5.0], [0.0, 1.0, 0.5]),
        ];
        for (printed, client_error, outside) in table {
            let [p50, p90, p99] = printed;
            let [error50, error90, error99] = client_error;
            let comparison = Comparison {
                report: Report {
                    latency: latency(0.0, p50, p90, p99),
                    client_error: latency(0.0, error50, error90, error99),
                    ..Report::default()
                },
                cpu_us: 0.0,
                wire: latency(0.0, 20.0, 40.0, 80.0),
                requests: 1000,
                missing: 0,
                gap_distance: None,
            };
            assert_eq!(comparison.outside(), outside.map(Some));
        }
        let report = Report { latency: latency(1.0, 2.0, 3.0, 4.0), ..Report::default() };
        let comparison = Comparison::of(report, 0.0, &pairing(1000), None).unwrap();
        assert_eq!(comparison.outside(), [None; 3]);
    }
}
