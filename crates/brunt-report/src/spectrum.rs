//! The response times of all requests as HdrHistogram prints percentiles, for its plotters and for tools that read its output.
//!
//! Not a table for people. Columns, ticks and footer are HdrHistogram's; values are microseconds. Invariant: every percentile is that of the
//! histogram's buckets, and the last line is the maximum.

use brunt_stats::histogram::Histogram;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Lines for each halving of the distance to 100 %.
const TICKS_PER_HALVING: u32 = 5;
const US: f64 = 1e3;

/// Writes the ladder of percentiles.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    ladder(&summary.total.latency.response.histogram, out)
}

fn ladder(histogram: &Histogram, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let count = histogram.count();
    let mut steps = 0;
    for (values, up_to) in histogram.ranks().iter() {
        let value = *values.end() as f64 / US;
        // Several levels may lie in one bucket.
        while up_to < count && up_to as f64 >= level(steps) * count as f64 {
            let level = level(steps);
            writeln!(out, "{value:12.3} {level:14.12} {up_to:10} {:14.2}", 1.0 / (1.0 - level))?;
            steps += 1;
        }
        if up_to == count {
            writeln!(out, "{value:12.3} {:14.12} {up_to:10}", 1.0)?;
        }
    }
    let moments = histogram.moments();
    let us = |ns: Option<f64>| ns.unwrap_or(0.0) / US;
    let (mean, deviation) = (us(moments.mean()), us(moments.stddev()));
    // Readers pass over lines that begin so.
    writeln!(out, "#[Unit    = {:>12}]", "us")?;
    writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]")?;
    let max = us(histogram.max().map(|ns| ns as f64));
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {count:12}]")
}

/// The percentile of a line, as a share: [`TICKS_PER_HALVING`] lines halve the distance to 1, evenly.
fn level(steps: u32) -> f64 {
    let (halvings, tick) = (steps / TICKS_PER_HALVING, steps % TICKS_PER_HALVING);
    let distance = f64::from(halvings).exp2().recip();
    1.0 - distance + distance / 2.0 * f64::from(tick) / f64::from(TICKS_PER_HALVING)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 us to 8 us once each, so that every rank is known.
    #[test]
    fn a_ladder_of_eight() {
        let mut histogram = Histogram::new();
        (1..=8).for_each(|value| histogram.record(value * 1_000));
        let mut text = Vec::new();
        ladder(&histogram, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        // (percentile, rank)
        let expected = [
            (0.0, 1),
            (0.1, 1),
            (0.2, 2),
            (0.3, 3),
            (0.4, 4),
            (0.5, 4),
            (0.55, 5),
            (0.6, 5),
            (0.65, 6),
            (0.7, 6),
            (0.75, 6),
            (0.775, 7),
            (0.8, 7),
            (0.825, 7),
            (0.85, 7),
            (0.875, 7),
            (1.0, 8),
        ];
        assert_eq!(rows.len(), expected.len(), "{text}");
        for (row, (percentile, rank)) in rows.iter().zip(expected) {
            let number = |place: usize| row[place].parse::<f64>().unwrap();
            assert!((number(1) - percentile).abs() < 1e-9, "{row:?}");
            assert_eq!(number(2), f64::from(rank), "{row:?}");
            // To a bucket.
            assert!((number(0) / f64::from(rank) - 1.0).abs() <= 0.001, "{row:?}");
            match row.get(3) {
                Some(inverse) => {
                    let exact = 1.0 / (1.0 - percentile);
                    assert!((inverse.parse::<f64>().unwrap() - exact).abs() < 0.01, "{row:?}");
                }
                None => assert_eq!(percentile, 1.0),
            }
        }
        assert!(
            text.contains(
                "#[Unit    =           us]\n#[Mean    =        4.500, StdDeviation   =        2.291]"
            ),
            "{text}"
        );
        assert!(text.ends_with("#[Max     =        8.000, Total count    =            8]\n"), "{text}");
    }

    #[test]
    fn an_empty_histogram_has_no_steps() {
        let mut text = Vec::new();
        ladder(&Histogram::new(), &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap().lines().count(), 5);
    }
}
