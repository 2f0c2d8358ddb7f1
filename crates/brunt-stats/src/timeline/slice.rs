//! What was recorded of a run in a piece of its time, as sums and histograms, all workers together.
//!
//! Not a row of a table (that has percentiles) and no judge of its own length: the grid says which intervals belong to it.
//! Invariant: every field is a sum, a least or a greatest, so that slices add up to longer ones exactly and in any order.

use crate::histogram::SparseHistogram;
use crate::interval::{Activity, Interval};
use crate::request_counts::{CountEntry, KeyCounts};
use crate::server::{self, ServerCounts};
use crate::usage::ClientTime;
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a slice keeps of one op kind of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceRow {
    /// The class.
    pub class: ClassId,
    /// The kind of op.
    pub op: OpId,
    /// Ops completed in the slice and inside the measured window, whenever they were due.
    pub completed: u64,
    /// Ops that failed in it as the errors of [`crate::request_counts::RequestCounts::faulty`] do: error, time-out, lost, given up.
    pub faulty: u64,
    /// Keys that ops completed in it asked for and that were not there.
    pub missed: u64,
    /// Ops of the window that became due in it, less ops that ended or were given up in it and inside the window: by how many more wait or
    /// are in flight at its end than at its beginning.
    pub backlog: i64,
    /// Response times of measured ops that completed in the slice, in nanoseconds.
    pub response: SparseHistogram,
}

/// A piece of a run, all workers together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// When the first of its intervals began.
    pub start_ns: u64,
    /// When the last of its intervals ended.
    pub end_ns: u64,
    /// What went on, whatever its phase.
    pub activity: Activity,
    /// The part of `activity` in the preload.
    pub preload: Activity,
    /// The lengths of its intervals together: the time it covers, times the workers.
    pub recorded_ns: u64,
    /// Keys of measured retrievals that ended in the slice.
    pub keys: KeyCounts,
    /// Keys of those of the warm-up.
    pub warmup_keys: KeyCounts,
    /// Response times of ops of the warm-up that completed in the slice, where they are recorded.
    pub warmup_response: SparseHistogram,
    /// What each server did, in the order of the plan.
    #[serde(serialize_with = "server::write_lists")]
    pub servers: Vec<ServerCounts>,
    /// Ops by class and op, ascending; only those that there were.
    pub rows: Vec<SliceRow>,
    /// What workers and their CPUs did.
    pub client: ClientTime,
}

impl SliceRow {
    fn empty(class: ClassId, op: OpId) -> Self {
        Self {
            class,
            op,
            completed: 0,
            faulty: 0,
            missed: 0,
            backlog: 0,
            response: SparseHistogram::default(),
        }
    }

    fn merge(&mut self, other: &Self, bucket_bits: u32) {
        self.completed += other.completed;
        self.faulty += other.faulty;
        self.missed += other.missed;
        self.backlog += other.backlog;
        self.response = self.response.merged(&other.response).coarser(bucket_bits);
    }
}

impl Slice {
    /// Bytes of its histograms.
    pub(super) fn encoded_bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.response.encoded_bytes());
        rows.sum::<usize>() + self.warmup_response.encoded_bytes()
    }

    /// Makes buckets hold 2 to the power of `bits` of the narrowest.
    pub(super) fn join_buckets(&mut self, bits: u32) {
        let rows = self.rows.iter_mut().map(|row| &mut row.response);
        rows.chain([&mut self.warmup_response]).for_each(|held| *held = std::mem::take(held).coarser(bits));
    }

    /// As long as an interval, and without anything that it holds.
    pub(super) fn empty(interval: &Interval) -> Self {
        Self {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            servers: vec![ServerCounts::default(); interval.servers.len()],
            ..Self::default()
        }
    }

    /// Adds another slice. What it comes to is as if the intervals of both had been added to one.
    pub(super) fn merge(&mut self, other: &Self, bucket_bits: u32) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.activity.merge(&other.activity);
        self.preload.merge(&other.preload);
        self.recorded_ns += other.recorded_ns;
        self.keys.merge(&other.keys);
        self.warmup_keys.merge(&other.warmup_keys);
        self.warmup_response = self.warmup_response.merged(&other.warmup_response).coarser(bucket_bits);
        server::merge_all(&mut self.servers, &other.servers);
        self.client.merge(&other.client);
        for row in &other.rows {
            self.row_mut(row.class, row.op).merge(row, bucket_bits);
        }
    }

    /// Adds an interval of a worker.
    pub(super) fn add(&mut self, interval: &Interval, bucket_bits: u32) {
        self.start_ns = self.start_ns.min(interval.start_ns);
        self.end_ns = self.end_ns.max(interval.end_ns);
        self.activity.merge(&interval.activity());
        self.preload.merge(&interval.activity_in(|phase| phase == Phase::Preload));
        self.recorded_ns += interval.end_ns - interval.start_ns;
        let measured = interval.request_counts.iter().filter(|entry| entry.phase == Phase::Measure);
        measured.for_each(|entry| self.keys.merge(&entry.counts.keys));
        let warming = interval.request_counts.iter().filter(|entry| entry.phase == Phase::Warmup);
        warming.for_each(|entry| self.warmup_keys.merge(&entry.counts.keys));
        if interval.warmup.count() > 0 {
            self.warmup_response = self.warmup_response.merged(&interval.warmup).coarser(bucket_bits);
        }
        server::merge_all(&mut self.servers, &interval.servers);
        self.client.merge(&ClientTime::of(interval));
        for row in &interval.rows {
            let held = self.row_mut(row.class, row.op);
            held.response = held.response.merged(&row.latencies.response).coarser(bucket_bits);
        }
        interval.request_counts.iter().for_each(|entry| self.merge_counts(entry));
    }

    fn merge_counts(&mut self, entry: &CountEntry) {
        let counts = entry.in_window();
        let due = entry.due_in_window();
        if counts.ended() + counts.abandoned + due > 0 {
            let held = self.row_mut(entry.class, entry.op);
            held.completed += counts.completed();
            held.faulty += counts.failed() - counts.outcome(OutcomeClass::Mismatch) + counts.abandoned;
            held.missed += counts.missed;
            held.backlog += due as i64 - (counts.ended() + counts.abandoned) as i64;
        }
    }

    /// The row of a (class, op), which is added if there is none.
    fn row_mut(&mut self, class: ClassId, op: OpId) -> &mut SliceRow {
        let place = self.rows.binary_search_by_key(&(class, op), |held| (held.class, held.op));
        let index = place.unwrap_or_else(|index| {
            self.rows.insert(index, SliceRow::empty(class, op));
            index
        });
        &mut self.rows[index]
    }

    /// How much of the slice lies in a span of time, from 0 to 1, when what lies beyond `cut_ns` is not looked at.
    pub(crate) fn part_within(&self, span: &Range<u64>, cut_ns: u64) -> f64 {
        let end_ns = self.end_ns.min(cut_ns);
        let overlap_ns = end_ns.min(span.end).saturating_sub(self.start_ns.max(span.start));
        match end_ns.saturating_sub(self.start_ns) {
            0 => 0.0,
            length_ns => overlap_ns as f64 / length_ns as f64,
        }
    }
}
