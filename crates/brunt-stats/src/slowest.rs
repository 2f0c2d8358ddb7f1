//! Where the slowest 1 % of the completed requests spent their time.
//!
//! Not a sample of them: sums over all. Invariant: the three parts add up to 1. What kernel timestamps would add to the client's part is not
//! known of each request, and left out.

use crate::histogram::{GROUP_BITS, Histogram, PartSum, PartSums, bucket_of, bucket_values};
use crate::timeline::Timeline;
use brunt_plan::quantile::Quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// With fewer completed requests, the slowest 1 % are fewer than ten.
const COMPLETED_MIN: u64 = 1_000;

/// The parts of the response times of the slowest requests, as shares of their sum, and what else is known of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowest {
    /// Their share of the completed requests: those as slow as the group of buckets that the 99th percentile lies in.
    pub covered: f64,
    /// Held back or left unread by the client.
    pub client: f64,
    /// Waited for a connection.
    pub connection_wait: f64,
    /// The rest.
    pub wire_and_server: f64,
    /// How many of them were due in times of trouble, as a share: an estimate from slices of time.
    pub in_outage: f64,
}

impl Slowest {
    /// Of all completed requests. `troubles`: outages, and the longest stop of the client.
    pub(crate) fn of(
        response: &Histogram,
        part_sums: &PartSums,
        timeline: &Timeline,
        mut troubles: Vec<Range<u64>>,
    ) -> Option<Self> {
        if response.count() < COMPLETED_MIN {
            return None;
        }
        let group = bucket_of(response.quantile(Quantile::P99)?) >> GROUP_BITS;
        let slow: u64 = slow_buckets(response.buckets(), group).map(|(_, count)| count).sum();
        let PartSum(response_ns, client_ns, connection_wait_ns) = part_sums.from_group(group);
        if response_ns == 0 {
            return None;
        }
        // Clock readings may be out of order by a tick.
        let client = (client_ns as f64 / response_ns as f64).min(1.0);
        let connection_wait = (connection_wait_ns as f64 / response_ns as f64).min(1.0 - client);
        troubles.sort_by_key(|trouble| trouble.start);
        Some(Self {
            covered: slow as f64 / response.count() as f64,
            client,
            connection_wait,
            wire_and_server: 1.0 - client - connection_wait,
            in_outage: share_due_in(&troubles, timeline, group),
        })
    }

    /// The parts in the order of time, each with what a report calls it.
    pub fn parts(&self) -> [(&'static str, f64); 3] {
        [
            ("client", self.client),
            ("waiting for a connection", self.connection_wait),
            ("wire and server", self.wire_and_server),
        ]
    }
}

/// The buckets of this group and of all slower ones.
fn slow_buckets(
    buckets: impl Iterator<Item = (usize, u64)>,
    group: usize,
) -> impl Iterator<Item = (usize, u64)> {
    buckets.skip_while(move |(bucket, _)| bucket >> GROUP_BITS < group)
}

/// The share of the slow requests of all slices that were due in one of these spans, which ascend by their starts.
fn share_due_in(troubles: &[Range<u64>], timeline: &Timeline, group: usize) -> f64 {
    let (mut slow, mut in_trouble) = (0, 0.0);
    for slice in timeline.slices() {
        let done = completing(slice.start_ns..slice.end_ns, troubles);
        for row in &slice.rows {
            for (bucket, count) in slow_buckets(row.response.buckets(), group) {
                let response_ns = *bucket_values(bucket).start();
                let due = done.start.saturating_sub(response_ns)..done.end.saturating_sub(response_ns);
                slow += count;
                in_trouble += count as f64 * share_within(&due, troubles);
            }
        }
    }
    if slow == 0 { 0.0 } else { in_trouble / slow as f64 }
}

/// When the slow requests of a slice were completed: at any instant of it alike, but for times of trouble, in which nothing is completed,
/// and what comes before one that is over.
fn completing(mut slice: Range<u64>, troubles: &[Range<u64>]) -> Range<u64> {
    for trouble in troubles {
        if slice.contains(&trouble.end) {
            slice.start = trouble.end;
        } else if slice.contains(&trouble.start) && trouble.start > slice.start {
            slice.end = trouble.start;
        }
    }
    slice
}

/// How much of a span lies in others, which ascend by their starts and may overlap.
fn share_within(span: &Range<u64>, others: &[Range<u64>]) -> f64 {
    let (mut from_ns, mut within_ns) = (span.start, 0);
    for other in others {
        let (start_ns, end_ns) = (other.start.max(from_ns), other.end.min(span.end));
        within_ns += end_ns.saturating_sub(start_ns);
        from_ns = from_ns.max(end_ns);
    }
    within_ns as f64 / (span.end - span.start).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_count_once() {
        type Spans = &'static [Range<u64>];
        let table: [(Spans, f64); 6] = [
            (&[], 0.0),
            (&[0..100, 200..300], 0.0),
            (&[0..120, 0..150], 0.5),
            (&[0..120, 110..130, 115..125], 0.3),
            (&[0..300, 120..130], 1.0),
            (&[110..120, 190..900], 0.2),
        ];
        for (others, expected) in table {
            assert_eq!(share_within(&(100..200), others), expected, "{others:?}");
        }
        assert_eq!(share_within(&(100..100), &[0..50, 60..300]), 0.0);
    }

    #[test]
    fn requests_are_completed_outside_trouble() {
        type Spans = &'static [Range<u64>];
        let table: [(Spans, Range<u64>); 6] = [
            (&[0..50, 200..300], 100..200),
            (&[0..50, 60..130], 130..200),
            (&[0..50, 170..300], 100..170),
            (&[120..130, 170..300], 130..170),
            (&[100..130, 120..140], 140..200),
            (&[0..300, 300..400], 100..200),
        ];
        for (troubles, expected) in table {
            assert_eq!(completing(100..200, troubles), expected, "{troubles:?}");
        }
    }
}
