//! The interval log of HdrHistogram, read back by a reader that is not ours.

use super::run;
use super::{Run, all_runs, output};
use crate::hdr_histogram;
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::Histogram as OurHistogram;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::collections::BTreeMap;

fn log_of(run: &Run) -> String {
    output(|out| hdr_histogram::write(&run.summary, out))
}

/// An interval of a log: from when on and how long in milliseconds, its maximum in milliseconds, and its histogram.
struct Read {
    start_ms: u64,
    length_ms: u64,
    max_ms: f64,
    histogram: Histogram<u64>,
}

/// The intervals of a log by tag, and its start in seconds since 1970.
fn read(log: &str) -> (BTreeMap<String, Vec<Read>>, Option<f64>) {
    let (mut by_tag, mut start_s) = (BTreeMap::<String, Vec<Read>>::new(), None);
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        match entry.unwrap_or_else(|error| panic!("{error:?}\n{log}")) {
            LogEntry::StartTime(since_epoch) => start_s = Some(since_epoch.as_secs_f64()),
            LogEntry::BaseTime(_) => panic!("timestamps count from the start"),
            LogEntry::Interval(line) => {
                let encoded = base64_decoded(line.encoded_histogram());
                let histogram = Deserializer::new().deserialize(&mut encoded.as_slice()).unwrap();
                by_tag
                    .entry(line.tag().map_or(String::new(), |tag| tag.as_str().to_owned()))
                    .or_default()
                    .push(Read {
                        start_ms: line.start_timestamp().as_millis() as u64,
                        length_ms: line.duration().as_millis() as u64,
                        max_ms: line.max(),
                        histogram,
                    });
            }
        }
    }
    (by_tag, start_s)
}

fn base64_decoded(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let decoded = |group: &[u8]| {
        let digits = group.iter().filter(|byte| **byte != b'=');
        let (count, bits) =
            digits.fold((0, 0_u32), |(count, bits), byte| (count + 1, bits << 6 | u32::from(value(*byte))));
        (bits << (6 * (4 - count)) << 8).to_be_bytes()[..count - 1].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(decoded).collect()
}

fn check_histogram(name: &str, read: &[Read], ours: &OurHistogram) {
    let mut sum = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).unwrap();
    read.iter().for_each(|interval| sum.add(&interval.histogram).unwrap());
    assert_eq!(sum.len(), ours.count(), "{name}");
    for quantile in Quantile::PRINTED {
        // A reader does not know the largest value, but its bucket.
        let found = sum.value_at_quantile(1.0 - quantile.share_above()).min(ours.max().unwrap_or(0));
        assert_eq!(found, ours.quantile(quantile).unwrap_or(0), "{name} {quantile}");
    }
    let largest = read.iter().map(|interval| interval.max_ms).fold(0.0, f64::max);
    assert_eq!((largest * 1e6).round() as u64, ours.max().unwrap_or(0), "{name}");
}

#[test]
fn percentiles_are_those_of_the_result() {
    for (name, run) in all_runs() {
        let log = log_of(&run);
        let (mut by_tag, start_s) = read(&log);
        let Run { summary, .. } = &run;
        let intervals = by_tag.remove("").unwrap_or_default();
        check_histogram(name, &intervals, &summary.total.latency.response.histogram);
        let ops: Vec<_> =
            summary.ops.iter().filter(|row| row.summary.latency.response.histogram.count() > 0).collect();
        assert_eq!(by_tag.len(), if ops.len() > 1 { ops.len() } else { 0 }, "{name}");
        for row in ops.iter().filter(|_| ops.len() > 1) {
            let of_op = &by_tag[row.name.as_str()];
            check_histogram(name, of_op, &row.summary.latency.response.histogram);
            assert_eq!(of_op.len(), intervals.len(), "{name}");
        }
        // None is left out, also where nothing was answered.
        let starts: Vec<u64> = intervals.iter().map(|interval| interval.start_ms).collect();
        assert!(intervals.iter().all(|interval| interval.length_ms == 1_000), "{name}");
        assert_eq!(
            starts,
            (0..intervals.len() as u64).map(|index| index * 1_000).collect::<Vec<_>>(),
            "{name}"
        );
        assert!(starts.len() as f64 >= summary.window.seconds(), "{name}");
        let times = &summary.record.run.times;
        let expected = times.epoch_us.map(|epoch_us| (epoch_us + times.measure_ns / 1_000) as f64 / 1e6);
        assert_eq!(start_s.is_some(), expected.is_some(), "{name}");
        assert!((start_s.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 0.001, "{name}");
    }
}

/// Its encoding of a few known values: 1 us, twice 3 us, and 2 s.
#[test]
fn an_interval_is_encoded_as_its_version_says() {
    let mut histogram = OurHistogram::new();
    [(1_000, 1), (3_000, 2), (2_000_000_000, 300)]
        .iter()
        .for_each(|(value, count)| histogram.record_many(*value, *count));
    let deflated = hdr_histogram::deflated(&histogram.to_sparse());
    assert_eq!(deflated[..4], [0x1c, 0x84, 0x93, 0x14]);
    assert_eq!(deflated[4..8], ((deflated.len() - 8) as u32).to_be_bytes());
    let encoded = miniz_oxide::inflate::decompress_to_vec_zlib(&deflated[8..]).unwrap();
    assert_eq!(encoded[..4], [0x1c, 0x84, 0x93, 0x13]);
    let counts = &encoded[40..];
    assert_eq!(encoded[4..8], (counts.len() as u32).to_be_bytes());
    assert_eq!(encoded[8..16], [0, 0, 0, 0, 0, 0, 0, 3]);
    // 1 000 empty; 1; 3 000 is bucket 1 024 + 1 500, so that 1 523 more are empty; 2; 18 999 more; 300.
    let bucket = (20 << 10) + (2_000_000_000_u64 >> 20);
    assert_eq!(bucket - 2_525, 19_862);
    assert_eq!(counts, [0xcf, 0x0f, 2, 0xe5, 0x17, 4, 0xab, 0xb6, 0x02, 0xd8, 0x04]);
}

#[test]
fn intervals_are_as_long_as_the_lines_of_csv() {
    for (seconds, options, length_ms, count) in
        [(60, "", 1_000, 60), (250, "", 1_600, 157), (61, "interval = '300ms'", 300, 204)]
    {
        let run = run::long(seconds, options);
        let (by_tag, _) = read(&log_of(&run));
        let lengths: Vec<u64> = by_tag[""].iter().map(|interval| interval.length_ms).collect();
        assert_eq!(lengths, vec![length_ms; count], "{seconds} {options}");
        check_histogram("long", &by_tag[""], &run.summary.total.latency.response.histogram);
    }
}
