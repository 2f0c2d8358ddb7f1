//! The file of `--trace`: a time series of histograms as text.
//!
//! First a line of six numbers: digits of precision, memory limit (0: none), highest value, nanoseconds of a slice, number of
//! slices, start. Then a line for each bucket that is not empty: when its slice begins, its highest value, how many latencies
//! lie in it. Slices are in the order of time, buckets ascending. Layout as rpc-perf's, which ends at 1 s.

use super::buckets;
use super::slices::Slices;
use std::io::{self, Write};

const SLICE_NS: u64 = 1_000_000_000;

/// Writes a run's slices.
///
/// # Errors
/// Errors of the writer.
pub fn write(run: &Slices, out: &mut dyn Write) -> io::Result<()> {
    let (precision, value_max, slices) = (buckets::PRECISION, buckets::VALUE_MAX_NS, run.slices.len());
    writeln!(out, "{precision} 0 {value_max} {SLICE_NS} {slices} {}", run.start_ns)?;
    for (start_ns, slice) in (run.start_ns..).step_by(SLICE_NS as usize).zip(&run.slices) {
        for (bucket, count) in slice.counts() {
            writeln!(out, "{start_ns} {} {count}", buckets::highest_ns(bucket))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc_perf::slices::Slice;

    #[test]
    fn each_bucket_has_a_line() {
        let slices = vec![
            Slice::of([(18_351..=18_351, 9), (18_514..=18_514, 26), (948_000..=948_962, 1)]),
            Slice::default(),
            Slice::of([(127..=127, 1), (1_000_000_001..=1_000_000_001, 2), (u64::MAX..=u64::MAX, 3)]),
        ];
        let run = Slices { start_ns: 4_504_149_525_525, warm_up: 1, slices };
        let mut text = Vec::new();
        write(&run, &mut text).expect("a vector takes everything");
        let expected = "\
2 0 3600000000000 1000000000 3 4504149525525
4504149525525 18351 9
4504149525525 18514 26
4504149525525 948962 1
4506149525525 127 1
4506149525525 1003948606 2
4506149525525 3600000000000 3
";
        assert_eq!(String::from_utf8(text).expect("text"), expected);
    }
}
