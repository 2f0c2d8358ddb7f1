//! The layout of rpc-perf's histograms: two digits of precision, in nanoseconds.
//!
//! Up to 129 every value has a bucket of its own; from 128 every power of two is cut into a hundred. A bucket is known by its
//! highest value. rpc-perf ends at 1 s, which is bucket [`OF_ONE_SECOND`]; here the same layout goes on to [`VALUE_MAX_NS`].

/// The digits that the layout keeps.
pub const PRECISION: u32 = 2;
/// The highest value that is told from others, an hour; higher ones share its bucket. Not just below a power of two: there
/// programs that read rpc-perf's files have a bucket too few.
pub const VALUE_MAX_NS: u64 = 3_600_000_000_000;
/// The bucket of 1 s.
pub const OF_ONE_SECOND: usize = 2415;

/// Values with a bucket each.
const EXACT: u64 = 129;
/// The power of two from which on values share buckets.
const FIRST_POWER: u32 = 7;
/// Into how many buckets a power of two is cut.
const PER_POWER: u64 = 100;
/// The bucket of the first power of two: 2⁷ + 1 represents 2⁷, which has its own one below.
const FIRST_SHARED: u64 = 128;

/// The bucket of a value; 0 counts as 1.
pub fn bucket_of(value_ns: u64) -> usize {
    let value = value_ns.clamp(1, VALUE_MAX_NS);
    if value <= EXACT {
        return value as usize - 1;
    }
    // The least i for which 2ᵖ · (100 + i) / 100, rounded up, is not below the value.
    let power = value.ilog2();
    let within = ((PER_POWER * (value - 1)) >> power) + 1 - PER_POWER;
    (FIRST_SHARED + u64::from(power - FIRST_POWER) * PER_POWER + within) as usize
}

/// The highest value of a bucket.
pub fn highest_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket + 1;
    }
    let (power, within) = ((bucket - FIRST_SHARED) / PER_POWER, (bucket - FIRST_SHARED) % PER_POWER);
    let start = 1 << (u64::from(FIRST_POWER) + power);
    u64::div_ceil(start * (PER_POWER + within), PER_POWER).min(VALUE_MAX_NS)
}

/// How many values share a bucket.
pub fn width_ns(bucket: usize) -> u64 {
    highest_ns(bucket) - bucket.checked_sub(1).map_or(0, highest_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets as rpc-perf prints them: number, highest value, width.
    #[test]
    fn buckets_are_those_of_rpc_perf() {
        let cases = [
            (0, 1, 1),
            (126, 127, 1),
            (127, 128, 1),
            (128, 129, 1),
            (129, 130, 1),
            (131, 132, 1),
            (132, 134, 2),
            (133, 135, 1),
            (136, 139, 2),
            (184, 200, 1),
            (228, 256, 1),
            (229, 259, 3),
            (840, 18_351, 164),
            (841, 18_514, 163),
            (2413, 993_211_188, 5_368_709),
            (2414, 998_579_897, 5_368_709),
        ];
        for (bucket, highest, width) in cases {
            assert_eq!((highest_ns(bucket), width_ns(bucket)), (highest, width), "{bucket}");
        }
        assert_eq!(bucket_of(1_000_000_000), OF_ONE_SECOND);
    }

    /// In floating point, which is exact enough for an hour, and by looking for the bucket from the lowest.
    #[test]
    fn every_boundary_is_a_hundredth_of_its_power() {
        let mut bucket = 129;
        for power in 7..42 {
            for within in u32::from(power == 7)..100 {
                let exact = 2f64.powi(power) * f64::from(100 + within);
                let highest = (exact / 100.0).ceil() as u64;
                if highest > VALUE_MAX_NS {
                    break;
                }
                assert_eq!(highest_ns(bucket), highest, "{bucket}");
                let neighbours = [highest - 1, highest, highest + 1].map(bucket_of);
                assert_eq!(neighbours[1..], [bucket, bucket + 1], "{highest}");
                assert!(neighbours[0] == bucket || width_ns(bucket) == 1, "{highest}");
                bucket += 1;
            }
        }
        assert_eq!(
            (highest_ns(bucket), bucket_of(u64::MAX), bucket_of(VALUE_MAX_NS)),
            (VALUE_MAX_NS, bucket, bucket)
        );
    }

    #[test]
    fn small_values_have_buckets_of_their_own() {
        assert_eq!((0..=129).map(bucket_of).collect::<Vec<_>>()[..2], [0, 0]);
        for value in 1..=129 {
            assert_eq!(highest_ns(bucket_of(value)), value);
        }
    }
}
