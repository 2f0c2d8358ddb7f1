//! The tables: a line per client of each load, medians over the rounds, and a line per interface and wait mode of all.
//!
//! Differences are taken within a run, before their median is taken: a host that is busy for a while disturbs all of it.

use super::comparison::{Comparison, percentiles};
use super::{brunt_name, brunts};
use crate::bench::client::Client;
use crate::bench::table::{Spread, grid};

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
    use super::*;
    use crate::bench::client::{Latency, PEERS, Report};
    use std::path::Path;

    fn latency(us: [f64; 3]) -> Latency {
        Latency { mean: None, p50: Some(us[0]), p90: Some(us[1]), p99: Some(us[2]) }
    }

    fn run(
        report: [f64; 3],
        wire: [f64; 3],
        client_error: [f64; 3],
        cpu_us: f64,
    ) -> Result<Comparison, String> {
        let report =
            Report { latency: latency(report), client_error: latency(client_error), ..Report::default() };
        let gap_distance = Some(0.0461);
        Ok(Comparison { report, cpu_us, wire: latency(wire), requests: 5000, missing: 0, gap_distance })
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
            cpu_us: 33.0,
            wire: Latency { mean: Some(25.0), ..latency(wire) },
            requests: 5000,
            missing: 0,
            gap_distance: None,
        };
        let peer = Row { client: Client::peer(&PEERS[1], Path::new("")), runs: vec![Ok(peer)] };
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
