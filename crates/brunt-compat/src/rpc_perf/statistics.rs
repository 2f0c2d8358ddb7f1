//! What `--listen` shows, by rpc-perf's names: counters since the run began, and percentiles of the last window that is over.
//!
//! Not the server. Invariant: everything is of the end of one window, and nothing is shown before the first is over.

use super::window::EndedWindow;
use crate::front_end::Page;
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::Histogram;
use std::fmt::Write as _;

/// Lines of a name and a number; the same for Prometheus, with types; and JSON wherever else.
pub const PAGES: [Page; 3] = [
    Page { path: Some("/vars"), content_type: "text/plain; charset=utf-8" },
    Page { path: Some("/metrics"), content_type: "text/plain; version=0.0.4; charset=utf-8" },
    Page { path: None, content_type: "application/json" },
];

const PERCENTILES: [(&str, Quantile); 7] = [
    ("p50", Quantile::P50),
    ("p75", Quantile::P75),
    ("p90", Quantile::P90),
    ("p95", Quantile::P95),
    ("p99", Quantile::P99),
    ("p999", Quantile::P999),
    ("p9999", Quantile::P9999),
];

/// A number: its name, what it is to Prometheus, and its value.
type Number = (String, &'static str, u64);

/// The numbers; none before a window is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The last window that is over.
    latched: Option<EndedWindow>,
}

impl Statistics {
    /// A window is over.
    pub fn latch(&mut self, ended: EndedWindow) {
        self.latched = Some(ended);
    }

    /// The text of one of [`PAGES`].
    pub fn page(&self, page: usize) -> String {
        let numbers = self.numbers();
        let line = |(name, _, value): &Number| format!("{name} {value}\n");
        match page {
            0 => numbers.iter().map(line).collect(),
            1 => numbers.iter().map(|number| typed(number) + &line(number)).collect(),
            _ => json(&numbers),
        }
    }

    fn numbers(&self) -> Vec<Number> {
        let Some(EndedWindow { number, window: last, total }) = &self.latched else { return Vec::new() };
        let counters = [
            ("window", *number),
            ("response_ok", total.ok),
            ("response_ok_hit", total.hits),
            ("response_ok_miss", total.misses),
            ("response_error", total.errors),
            ("response_timeout", total.timeouts),
            ("request_prepared", total.scheduled),
            ("request_sent", total.sent),
            ("connect_ok", total.established),
            ("connect_error", total.connect_errors),
            ("connect_timeout", total.connect_timeouts),
            ("socket_create", total.begun),
            ("socket_close", total.closed),
            ("socket_read", total.replied),
            // A request that was not written at once is written on, and that is no second write.
            ("socket_flush", 0),
            ("socket_write", total.sent),
        ];
        let histograms = [
            ("response_ok", &last.response),
            ("response_ok_hit", &last.hit),
            ("response_ok_miss", &last.miss),
            ("connect_ok", &last.connect),
        ];
        let counters = counters.into_iter().map(|(name, count)| (format!("{name}_count"), "counter", count));
        let times = histograms.into_iter().flat_map(|(name, histogram)| {
            let named = move |(word, ns): (&str, u64)| (format!("{name}_{word}_nanoseconds"), "gauge", ns);
            percentiles(histogram).into_iter().map(named)
        });
        counters.chain(times).collect()
    }
}

/// The least, percentiles and the most; 0 where there is none.
fn percentiles(histogram: &Histogram) -> Vec<(&'static str, u64)> {
    let of = |(word, quantile): (&'static str, Quantile)| (word, histogram.quantile(quantile).unwrap_or(0));
    let least = ("min", histogram.min().unwrap_or(0));
    let most = ("max", histogram.max().unwrap_or(0));
    [least].into_iter().chain(PERCENTILES.map(of)).chain([most]).collect()
}

fn typed((name, kind, _): &Number) -> String {
    format!("# TYPE {name} {kind}\n")
}

/// An object, of names that need no escapes.
fn json(numbers: &[Number]) -> String {
    let mut text = String::from("{");
    for (index, (name, _, value)) in numbers.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Writing into a string cannot fail.
        let _ = write!(text, "{comma}\"{name}\":{value}");
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::super::window::{Counts, Window};
    use super::*;

    fn window(part: u64) -> Window {
        let mut window = Window {
            counts: Counts {
                begun: part,
                established: 2 * part,
                open: 9,
                scheduled: 30 * part,
                sent: 20 * part,
                in_flight: 9,
                ok: 10 * part,
                hits: 5 * part,
                ..Counts::default()
            },
            ..Window::default()
        };
        // As exact as a histogram is where values are small.
        (1..=100).for_each(|ns| window.response.record(ns * part));
        window.hit.record(7 * part);
        window
    }

    /// Names and values, in this order.
    fn of(statistics: &Statistics) -> Vec<(String, u64)> {
        let text = statistics.page(0);
        let number =
            |line: &str| line.split_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap()));
        text.lines().map(|line| number(line).unwrap()).collect()
    }

    #[test]
    fn every_name_has_its_value() {
        let mut statistics = Statistics::default();
        statistics.latch(EndedWindow { number: 1, window: window(1), total: window(3).counts });
        let mut expected: Vec<(String, u64)> = [
            ("window", 1),
            ("response_ok", 30),
            ("response_ok_hit", 15),
            ("response_ok_miss", 0),
            ("response_error", 0),
            ("response_timeout", 0),
            ("request_prepared", 90),
            ("request_sent", 60),
            ("connect_ok", 6),
            ("connect_error", 0),
            ("connect_timeout", 0),
            ("socket_create", 3),
            ("socket_close", 0),
            ("socket_read", 0),
            ("socket_flush", 0),
            ("socket_write", 60),
        ]
        .into_iter()
        .map(|(name, count)| (format!("{name}_count"), count))
        .collect();
        for (name, values) in [
            ("response_ok", [1, 50, 75, 90, 95, 99, 100, 100, 100]),
            ("response_ok_hit", [7; 9]),
            ("response_ok_miss", [0; 9]),
            ("connect_ok", [0; 9]),
        ] {
            let words = ["min", "p50", "p75", "p90", "p95", "p99", "p999", "p9999", "max"];
            expected.extend(
                words.into_iter().zip(values).map(|(word, ns)| (format!("{name}_{word}_nanoseconds"), ns)),
            );
        }
        assert_eq!(of(&statistics), expected);
    }

    #[test]
    fn pages_have_their_layout() {
        let mut statistics = Statistics::default();
        assert_eq!([0, 1, 2].map(|page| statistics.page(page)), ["", "", "{}\n"]);
        statistics.latch(EndedWindow { number: 0, window: window(1), total: window(1).counts });
        let [lines, metrics, json] = [0, 1, 2].map(|page| statistics.page(page));
        assert!(lines.starts_with("window_count 0\nresponse_ok_count 10\n"), "{lines}");
        assert!(
            lines.ends_with("connect_ok_max_nanoseconds 0\n") && lines.lines().count() == 16 + 4 * 9,
            "{lines}"
        );
        assert!(metrics.starts_with("# TYPE window_count counter\nwindow_count 0\n"), "{metrics}");
        assert!(
            metrics.contains("\n# TYPE response_ok_p99_nanoseconds gauge\nresponse_ok_p99_nanoseconds 99\n"),
            "{metrics}"
        );
        assert!(
            json.starts_with("{\"window_count\":0,\"response_ok_count\":10,") && json.ends_with("\":0}\n"),
            "{json}"
        );
    }
}
