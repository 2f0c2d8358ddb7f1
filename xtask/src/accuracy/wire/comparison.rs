//! What a client says of a run beside what the packets of the same requests show.
//!
//! The wire's time of a request is from the packet with its last byte to the packet with the last byte of its reply. It is
//! compared with what the client prints as latency; for brunt that begins at the intended time. Invariant: a run of which
//! more than one request in a thousand is missing is refused: that many move a p99 to p98.9 or p99.1 at most.
//!
//! The tables: a line per client of each load, medians over the rounds, and a line per interface and wait mode of all. Differences are taken
//! within a run, or between runs of the same round, before their median is taken: a host that is busy for a while disturbs a whole round.

use super::capture::Pairing;
use super::{brunt_name, brunts};
use crate::bench::client::{Client, Latency, Report};
use crate::bench::table::{Spread, grid};

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
        let cpu_us = window.map_or(whole_cpu_us / found as f64, |([user, system], requests)| {
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

// --- Tables ---

/// A client with what came of its rounds under one load.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) client: Client,
    /// One for each round; the reason why a run does not count.
    pub(super) runs: Vec<Result<Comparison, String>>,
}

/// The rows of one load.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Requests per second; without one, a closed loop.
    pub(super) rate: Option<u64>,
    pub(super) rows: Vec<Row>,
}

const HEADINGS: [&str; 7] =
    ["client", "prints p50, p99", "wire p50, p99", "above the wire", "`client <=`", "KS", "CPU/request"];

const TOTAL_HEADINGS: [&str; 4] =
    ["client", "runs", "wire within `client <=`, p50, p90, p99", "farthest outside, p50, p90, p99"];

impl Row {
    fn counted(&self) -> impl Iterator<Item = &Comparison> {
        self.runs.iter().flatten()
    }

    /// Medians over the runs that count.
    fn medians(&self, of: impl Fn(&Comparison) -> [Option<f64>; 3]) -> [Option<f64>; 3] {
        let all: Vec<_> = self.counted().map(of).collect();
        [0, 1, 2].map(|index| median(all.iter().filter_map(|values| values[index])))
    }

    fn median(&self, of: impl Fn(&Comparison) -> Option<f64>) -> Option<f64> {
        median(self.counted().filter_map(of))
    }
}

impl Table {
    pub(super) fn name(&self) -> String {
        self.rate.map_or_else(|| "Closed loop".to_owned(), |rate| format!("{rate}/s"))
    }

    /// The table, with what must be said of its rows.
    pub(super) fn text(&self) -> String {
        let mut cells = vec![HEADINGS.map(str::to_owned)];
        cells.extend(self.rows.iter().filter(|row| row.counted().next().is_some()).map(|row| self.line(row)));
        let mut text = format!("### {}\n\n{}", self.name(), grid(&cells));
        for row in &self.rows {
            if let Some(run) = row.counted().max_by_key(|run| run.missing).filter(|run| run.missing > 0) {
                text.push_str(&format!(
                    "\n{}: up to {} of {} requests are not in the capture.\n",
                    row.client.name, run.missing, run.requests
                ));
            }
            let refused: Vec<&String> = row.runs.iter().filter_map(|run| run.as_ref().err()).collect();
            if let Some(reason) = refused.last() {
                text.push_str(&format!(
                    "\n{}: {} of {} runs do not count: {reason}.\n",
                    row.client.name,
                    refused.len(),
                    row.runs.len()
                ));
            }
        }
        text
    }

    fn line(&self, row: &Row) -> [String; HEADINGS.len()] {
        [
            row.client.name.clone(),
            times_or_mean(
                row.medians(|run| percentiles(&run.report.latency)),
                row.median(|run| run.report.latency.mean),
            ),
            p50_and_p99(row.medians(|run| percentiles(&run.wire))),
            times_or_mean(
                row.medians(Comparison::above_wire),
                row.median(|run| Some(run.report.latency.mean? - run.wire.mean?)),
            ),
            p50_and_p99(row.medians(|run| percentiles(&run.report.client_error))),
            row.median(|run| run.gap_distance).map_or_else(dash, |distance| format!("{distance:.3}")),
            time(row.median(|run| Some(run.cpu_us))),
        ]
    }
}

/// Where the wire lies, of every run of brunt under any load.
pub(super) fn total(tables: &[Table]) -> String {
    let mut cells = vec![TOTAL_HEADINGS.map(str::to_owned)];
    for name in brunts().map(|(io, wait)| brunt_name(io, wait)) {
        let rows = tables.iter().flat_map(|table| &table.rows).filter(|row| row.client.name == name);
        let outside: Vec<[Option<f64>; 3]> =
            rows.flat_map(Row::counted).map(Comparison::outside).filter(|run| run[0].is_some()).collect();
        let of = |index: usize| outside.iter().filter_map(move |run| run[index]);
        let within = [0, 1, 2].map(|index| of(index).filter(|outside| *outside <= 0.0).count().to_string());
        let farthest = [0, 1, 2].map(|index| Spread::of(of(index)).map(|spread| spread.high));
        cells.push([name, outside.len().to_string(), within.join(", "), times(farthest)]);
    }
    format!("### All loads\n\n{}", grid(&cells))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// Percentiles; of a client that prints no median, the mean instead of it.
fn times_or_mean(percentiles: [Option<f64>; 3], mean: Option<f64>) -> String {
    let [p50, _, p99] = percentiles;
    match (p50, mean) {
        (None, Some(_)) => format!("{} (mean), {}", time(mean), time(p99)),
        _ => p50_and_p99(percentiles),
    }
}

fn p50_and_p99([p50, _, p99]: [Option<f64>; 3]) -> String {
    times([p50, p99])
}

fn times<const COUNT: usize>(times: [Option<f64>; COUNT]) -> String {
    if times == [None; COUNT] { dash() } else { times.map(time).join(", ") }
}

/// Three digits, or a tenth of a microsecond.
fn time(us: Option<f64>) -> String {
    match us {
        None => dash(),
        Some(us) if us.abs() >= 99.95 => format!("{us:.0}"),
        Some(us) => format!("{us:.1}"),
    }
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::capture::Exchange;
    use super::*;
    use crate::bench::client::{Latency, PEERS, Report};
    use std::path::Path;

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
            let comparison = run(printed, [20.0, 40.0, 80.0], client_error, 0.0).unwrap();
            assert_eq!(comparison.outside(), outside.map(Some));
        }
        let report = Report { latency: latency(1.0, 2.0, 3.0, 4.0), ..Report::default() };
        let comparison = Comparison::of(report, 0.0, &pairing(1000), None).unwrap();
        assert_eq!(comparison.outside(), [None; 3]);
    }

    fn of_percentiles(us: [f64; 3]) -> Latency {
        Latency { mean: None, p50: Some(us[0]), p90: Some(us[1]), p99: Some(us[2]) }
    }

    fn run(
        report: [f64; 3],
        wire: [f64; 3],
        client_error: [f64; 3],
        cpu_us: f64,
    ) -> Result<Comparison, String> {
        let report = Report {
            latency: of_percentiles(report),
            client_error: of_percentiles(client_error),
            ..Report::default()
        };
        let gap_distance = Some(0.0461);
        Ok(Comparison {
            report,
            cpu_us,
            wire: of_percentiles(wire),
            requests: 5000,
            missing: 0,
            gap_distance,
        })
    }

    #[test]
    fn tables_have_their_layout() {
        let wire = [22.0, 30.0, 70.0];
        let brunt =
            |wait, runs| Row { client: Client::brunt(Path::new(""), brunt_name("epoll", wait), ""), runs };
        let spin = vec![
            run([30.0, 40.0, 98.0], wire, [9.0, 11.0, 20.0], 201.0),
            run([28.0, 39.0, 97.0], wire, [9.0, 11.0, 30.0], 199.0)
                .map(|run| Comparison { missing: 2, ..run }),
        ];
        let sleep = vec![
            run([75.0, 90.0, 138.0], wire, [2.0, 60.0, 80.0], 42.0),
            Err("9 of 5000 requests are not in the capture".to_owned()),
        ];
        let mean =
            Report { latency: Latency { mean: Some(37.25), ..Latency::default() }, ..Report::default() };
        let peer = Comparison {
            report: mean,
            wire: Latency { mean: Some(25.0), ..of_percentiles(wire) },
            gap_distance: None,
            ..run(wire, wire, wire, 33.0).unwrap()
        };
        let peer = Row { client: Client::of(&PEERS[1], Path::new("")), runs: vec![Ok(peer)] };
        let table = Table { rate: Some(5000), rows: vec![brunt("spin", spin), brunt("sleep", sleep), peer] };
        let expected = "\
### 5000/s

| client              | prints p50, p99 | wire p50, p99 | above the wire | `client <=` | KS    | CPU/request |
|---------------------|-----------------|---------------|----------------|-------------|-------|-------------|
| brunt, spin, epoll  | 29.0, 97.5      | 22.0, 70.0    | 7.0, 27.5      | 9.0, 25.0   | 0.046 | 200         |
| brunt, sleep, epoll | 75.0, 138       | 22.0, 70.0    | 53.0, 68.0     | 2.0, 80.0   | 0.046 | 42.0        |
| mutilate            | 37.2 (mean), –  | 22.0, 70.0    | 12.2 (mean), – | –           | –     | 33.0        |

brunt, spin, epoll: up to 2 of 5000 requests are not in the capture.

brunt, sleep, epoll: 1 of 2 runs do not count: 9 of 5000 requests are not in the capture.
";
        assert_eq!(table.text(), expected);
        let total = total(&[table.clone(), table]);
        let lines: Vec<&str> = total.lines().filter(|line| line.contains("epoll")).collect();
        assert_eq!(
            lines,
            [
                "| brunt, spin, epoll   | 4    | 4, 4, 2                                | 0.0, 0.0, 8.0                   |",
                "| brunt, hybrid, epoll | 0    | 0, 0, 0                                | –                               |",
                "| brunt, sleep, epoll  | 2    | 0, 2, 2                                | 51.0, 0.0, 0.0                  |",
            ]
        );
    }
}
