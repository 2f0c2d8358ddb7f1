//! Response times for HdrHistogram's own tools: of a run over time as its interval log, in version 2 of its encoding, and of all requests as the
//! percentiles that its plotters read.
//!
//! Values of the log are nanoseconds and maxima milliseconds, percentiles are in microseconds, as those tools expect them. The buckets of a
//! histogram with three significant digits are ours, one for one. Invariants: the lines without a tag hold every measured response time once, and
//! so do those with the tag of an operation for that operation; every percentile is that of the histogram's buckets, and the last line is the
//! maximum.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::op::OpId;
use brunt_stats::histogram::{Histogram, SparseHistogram, VALUE_BITS};
use brunt_stats::summary::Summary;
use brunt_stats::timeline::SliceRow;
use brunt_stats::window::RunTimes;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Least length of an interval, where none is asked for.
const WIDTH_NS: u64 = 1_000_000_000;
const SECOND: f64 = 1e9;
const MS: f64 = 1e6;

/// Version 2 of the encoding, with counts of one to nine bytes; and the same, deflated.
const COOKIE: u32 = 0x1c84_9313;
const DEFLATED_COOKIE: u32 = 0x1c84_9314;
const SIGNIFICANT_DIGITS: u32 = 3;
/// Compression of zlib's usual effort.
const LEVEL: u8 = 6;

const HEADING: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";

/// Writes the log.
///
/// # Errors
/// What `out` returns.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    heading(&summary.record.environment.brunt_version, &summary.record.run.times, out)?;
    let timeline = summary.timeline();
    let ops: BTreeSet<OpId> =
        timeline.slices().flat_map(|slice| &slice.rows).filter(has_responses).map(|row| row.op).collect();
    let RunTimes { measure_ns, end_ns, .. } = summary.window;
    // The last measured request may have been answered in the drain.
    let last = timeline
        .slices_by_cell()
        .filter(|(_, slice)| slice.rows.iter().any(|row| has_responses(&row)))
        .last();
    let until_ns = last.map_or(end_ns, |(cell_ns, _)| end_ns.max(cell_ns + 1));
    let width_ns = timeline.row_ns(measure_ns, WIDTH_NS);
    let mut sum = Histogram::new();
    for start_ns in (measure_ns..until_ns).step_by(width_ns as usize) {
        // The first one also has what a worker that was late in ending its slice put before the window.
        let from_ns = if start_ns == measure_ns { 0 } else { start_ns };
        let mut line = |tag: &str, of: &dyn Fn(&SliceRow) -> bool| {
            let slices = timeline.slices_in(from_ns..start_ns + width_ns);
            let rows = slices.flat_map(|slice| &slice.rows).filter(|row| of(row));
            let response = SparseHistogram::merge_all(rows.map(|row| &row.response), &mut sum);
            write_line(tag, start_ns - measure_ns, width_ns, &response, out)
        };
        line("", &|_| true)?;
        if ops.len() > 1 {
            for op in &ops {
                line(&format!("Tag={},", summary.record.plan.op_name(*op)), &|row| row.op == *op)?;
            }
        }
    }
    Ok(())
}

fn has_responses(row: &&SliceRow) -> bool {
    row.response.count() > 0
}

fn write_line(
    tag: &str,
    start_ns: u64,
    length_ns: u64,
    response: &SparseHistogram,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (start_s, length_s) = (start_ns as f64 / SECOND, length_ns as f64 / SECOND);
    let max_ms = response.max().unwrap_or(0) as f64 / MS;
    writeln!(out, "{tag}{start_s:.3},{length_s:.3},{max_ms:.6},{}", STANDARD.encode(deflated(response)))
}

fn heading(version: &str, times: &RunTimes, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "#[Logged by brunt {version}: response times in ns, Interval_Max in ms]")?;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    if let Some(epoch_us) = times.epoch_us {
        let start_ms = epoch_us.saturating_add(times.measure_ns / 1_000) / 1_000;
        writeln!(out, "#[StartTime: {}.{:03} (seconds since epoch)]", start_ms / 1_000, start_ms % 1_000)?;
    }
    writeln!(out, "{HEADING}")
}

/// A histogram as HdrHistogram encodes it: a head, then the counts of all buckets up to that of the largest value, deflated.
pub(crate) fn deflated(response: &SparseHistogram) -> Vec<u8> {
    let counts = counts(response);
    let mut encoded = Vec::with_capacity(40 + counts.len());
    encoded.extend(COOKIE.to_be_bytes());
    encoded.extend((counts.len() as u32).to_be_bytes());
    let normalizing_index_offset = 0_u32;
    encoded.extend(normalizing_index_offset.to_be_bytes());
    encoded.extend(SIGNIFICANT_DIGITS.to_be_bytes());
    let (lowest_discernible, highest_trackable) = (1_u64, (1_u64 << VALUE_BITS) - 1);
    encoded.extend(lowest_discernible.to_be_bytes());
    encoded.extend(highest_trackable.to_be_bytes());
    let integer_to_double_ratio = 1.0_f64;
    encoded.extend(integer_to_double_ratio.to_be_bytes());
    encoded.extend(counts);
    let deflated = miniz_oxide::deflate::compress_to_vec_zlib(&encoded, LEVEL);
    let head = [DEFLATED_COOKIE.to_be_bytes(), (deflated.len() as u32).to_be_bytes()].concat();
    [head, deflated].concat()
}

/// Counts in the order of buckets; a negative number stands for as many empty ones.
fn counts(response: &SparseHistogram) -> Vec<u8> {
    let (mut encoded, mut next) = (Vec::new(), 0);
    for (bucket, count) in response.buckets() {
        match bucket - next {
            0 => {}
            empty => push_zigzag(&mut encoded, -(empty as i64)),
        }
        push_zigzag(&mut encoded, count as i64);
        next = bucket + 1;
    }
    encoded
}

/// A number with its sign in the lowest bit, seven bits a byte, lowest first; the ninth byte has eight.
fn push_zigzag(encoded: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        encoded.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    encoded.push(rest as u8);
}

/// Lines for each halving of the distance to 100 %.
const TICKS_PER_HALVING: u32 = 5;
const US: f64 = 1e3;

/// Writes the ladder of percentiles.
///
/// # Errors
/// What `out` returns.
pub fn write_percentiles(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    ladder(&summary.total.latency.response.histogram, out)
}

fn ladder(histogram: &Histogram, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let count = histogram.count();
    let (mut steps, mut up_to) = (0, 0);
    for (values, held) in histogram.ranges() {
        up_to += held;
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
