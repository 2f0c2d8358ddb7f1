//! A bounded buffer of raw samples, for output of every observation.
//!
//! Not what statistics are made from. All memory is taken at the start; what does not fit is counted, never silently
//! dropped.

use crate::sample::Sample;

/// The first samples that were offered, up to a bound.
#[derive(Clone, Debug)]
pub struct SampleBuffer {
    samples: Vec<Sample>,
    capacity: usize,
    overflow: u64,
}

impl SampleBuffer {
    /// Room for this many samples (72 bytes each); 0 keeps none and counts none.
    pub fn new(capacity: usize) -> Self {
        Self { samples: Vec::with_capacity(capacity), capacity, overflow: 0 }
    }

    /// Keeps the sample if there is room; else counts it.
    #[inline]
    pub fn offer(&mut self, sample: &Sample) {
        if self.samples.len() < self.capacity {
            self.samples.push(*sample);
        } else if self.capacity > 0 {
            self.overflow += 1;
        }
    }

    /// What was kept, in the order it was offered, and how many samples there was no room for.
    pub fn end(self) -> (Vec<Sample>, u64) {
        (self.samples, self.overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Times;
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, ReplyKind};

    #[test]
    fn the_first_samples_are_kept_and_the_rest_counted() {
        for (capacity, kept, overflow) in [(0, 0, 0), (3, 3, 2), (9, 5, 0)] {
            let mut tap = SampleBuffer::new(capacity);
            for done_ns in 0..5 {
                tap.offer(&Sample {
                    op: OpKind::Get.into(),
                    class: 0,
                    outcome: Outcome::of_reply(OpKind::Get, ReplyKind::Value),
                    busy_lag_ns: None,
                    times: Times { done_ns, ..Times::default() },
                });
            }
            let (samples, left_out) = tap.end();
            let times: Vec<u64> = samples.iter().map(|sample| sample.times.done_ns).collect();
            assert_eq!(times, (0..kept).collect::<Vec<u64>>());
            assert_eq!(left_out, overflow);
        }
        assert!(size_of::<Sample>() <= 72);
    }
}
