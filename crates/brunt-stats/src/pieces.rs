//! Latencies over time, coarsely: what it takes to leave the beginning of a window out of the numbers.
//!
//! Not the timeline, which has response times by 100 ms for ever. Here every latency of every (class, op) is kept, in
//! pieces of 500 ms; when there would be more than [`PIECES_MAX`], neighbours are merged and pieces are twice as long
//! from then on, so that memory has a bound however long the run lasts. A piece is put together once, when the run has
//! gone on to the one after the next: until then it is the list of what came, because adding to what is there takes as
//! long as it is large. Invariants: an op is in the piece in which it completed (with the accuracy of an interval), the
//! pieces add up to the run, and the order of arrival leaves no trace in what they hold.

use crate::histogram::{Histogram, SparseHistogram};
use crate::interval::{Interval, IntervalRow, Latencies, SLICE_NS};

/// Length of the first pieces: a group of MSER-5.
const PIECE_NS: u64 = 5 * SLICE_NS;
/// A cut is at most a 32nd of the window too long, since doubling leaves at least half as many.
const PIECES_MAX: u64 = 64;

/// What lies in a list at most, with many workers or late ones: beyond that it is put together at once.
const PARTS_MAX: usize = 16;

type Row = Latencies<SparseHistogram>;

/// By row of the layout what came of it, in parts; without the rows behind the last that was used.
type Piece = Vec<Vec<Row>>;

/// The latencies of a run in pieces of time.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    origin_ns: u64,
    width_ns: u64,
    /// By time.
    pieces: Vec<Piece>,
    /// Memory to put them together in.
    sum: Histogram,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { origin_ns: 0, width_ns: PIECE_NS, pieces: Vec::new(), sum: Histogram::new() }
    }
}

impl Pieces {
    /// Says when the measured window begins, before any of its ops has completed.
    pub(crate) fn align(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    /// Adds the latencies of an interval. `row_of` is the place of a row in the layout.
    pub(crate) fn push(&mut self, interval: &Interval, row_of: impl Fn(&IntervalRow) -> usize) {
        if interval.rows.is_empty() {
            return;
        }
        let middle_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
        // A worker that ends its intervals a little late ends in the window what it began before it.
        let offset_ns = middle_ns.saturating_sub(self.origin_ns);
        while offset_ns / self.width_ns >= PIECES_MAX {
            self.double();
        }
        let index = (offset_ns / self.width_ns) as usize;
        let before = self.pieces.len();
        if before <= index {
            // Workers end their intervals within a few milliseconds of each other: the newest but one may get more.
            let settled = before.saturating_sub(2)..index.saturating_sub(1).min(before);
            self.pieces[settled].iter_mut().for_each(|piece| settle(piece, &mut self.sum));
            self.pieces.resize(index + 1, Vec::new());
        }
        for row in &interval.rows {
            add(&mut self.pieces[index], row_of(row), row.latencies.clone(), &mut self.sum);
        }
    }

    fn double(&mut self) {
        self.width_ns *= 2;
        let pieces = std::mem::take(&mut self.pieces);
        let mut pieces = pieces.into_iter();
        while let Some(mut piece) = pieces.next() {
            for (row, parts) in pieces.next().into_iter().flatten().enumerate() {
                parts.into_iter().for_each(|part| add(&mut piece, row, part, &mut self.sum));
            }
            settle(&mut piece, &mut self.sum);
            self.pieces.push(piece);
        }
    }

    /// The first end of a piece that is not before `offset_ns`; both from the beginning of the window.
    pub(crate) fn end_ns(&self, offset_ns: u64) -> u64 {
        offset_ns.div_ceil(self.width_ns) * self.width_ns
    }

    /// The latencies of a row in the pieces that begin at `offset_ns` or later.
    pub(crate) fn latencies_from(&self, offset_ns: u64, row: usize) -> Latencies<Histogram> {
        let mut sum = Latencies::<Histogram>::default();
        let first = offset_ns.div_ceil(self.width_ns) as usize;
        let parts = self.pieces.iter().skip(first).filter_map(|piece| piece.get(row)).flatten();
        parts.for_each(|latencies| sum.merge_sparse(latencies));
        sum
    }

    /// Bytes of memory that the pieces take, about.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_row = |row: &Row| {
            [&row.response, &row.service, &row.send_lag, &row.without_client, &row.failed]
                .map(SparseHistogram::memory_bytes)
                .iter()
                .sum::<usize>()
        };
        self.pieces.iter().flatten().flatten().map(of_row).sum()
    }
}

fn add(piece: &mut Piece, row: usize, part: Row, sum: &mut Histogram) {
    if piece.len() <= row {
        piece.resize(row + 1, Vec::new());
    }
    let parts = &mut piece[row];
    if parts.len() == PARTS_MAX {
        put_together(parts, sum);
    }
    parts.push(part);
}

/// Puts every row of a piece together.
fn settle(piece: &mut Piece, sum: &mut Histogram) {
    piece.iter_mut().for_each(|parts| put_together(parts, sum));
}

fn put_together(parts: &mut Vec<Row>, sum: &mut Histogram) {
    if parts.len() > 1 {
        *parts = vec![Row::together(parts, sum)];
    }
}

/// The same latencies at the same times, in however many parts.
#[cfg(test)]
impl PartialEq for Pieces {
    fn eq(&self, other: &Self) -> bool {
        let settled = |pieces: &Self| {
            let mut pieces = pieces.pieces.clone();
            pieces.iter_mut().for_each(|piece| settle(piece, &mut Histogram::new()));
            pieces
        };
        (self.origin_ns, self.width_ns) == (other.origin_ns, other.width_ns)
            && settled(self) == settled(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Layout, RecorderSet};
    use crate::sample::{Sample, Times};
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_plan::phase::Phase;

    const MS: u64 = 1_000_000;
    const ORIGIN_NS: u64 = 3_057 * MS;

    /// Intervals of 100 ms that end 3 ms late. The get of number n is done in interval n and took n + 1 us; every third
    /// has a set beside it, which fails.
    fn intervals(count: u64) -> Vec<Interval> {
        let kinds = vec![vec![OpKind::Get, OpKind::Set]];
        let mut set = RecorderSet::new(&Layout { kinds, meters: Vec::new(), meters_asked: 0, servers: 1 });
        let mut interval = |number: u64| {
            let done_ns = ORIGIN_NS + number * 100 * MS + 50 * MS;
            let times = |took_ns: u64| Times {
                intended_ns: done_ns - took_ns,
                picked_ns: done_ns - took_ns,
                sent_ns: done_ns - took_ns,
                polled_ns: done_ns,
                first_byte_ns: done_ns,
                done_ns,
            };
            let hit = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
            let get = Sample {
                op: OpKind::Get,
                class: 0,
                outcome: hit,
                busy_lag_ns: None,
                times: times((number + 1) * 1_000),
            };
            set.record(Phase::Measure, &get, 1, 1);
            if number.is_multiple_of(3) {
                let lost = Outcome::without_reply(OutcomeClass::Lost);
                let failed = Sample {
                    op: OpKind::Set,
                    class: 0,
                    outcome: lost,
                    busy_lag_ns: None,
                    times: times(5_000),
                };
                set.record(Phase::Measure, &failed, 0, 0);
            }
            let start_ns = ORIGIN_NS + number * 100 * MS + 3 * MS;
            set.take_interval(0, start_ns, start_ns + 100 * MS)
        };
        (0..count).map(&mut interval).collect()
    }

    fn pieces<'a>(intervals: impl IntoIterator<Item = &'a Interval>) -> Pieces {
        let mut pieces = Pieces::default();
        pieces.align(ORIGIN_NS);
        for interval in intervals {
            pieces.push(interval, |row| usize::from(row.op == OpKind::Set));
        }
        pieces
    }

    #[test]
    fn what_a_cut_leaves_is_exact_to_a_piece_however_long_the_run() {
        // Intervals → length of a piece; asked to cut 1.3 s.
        for (count, width_ms, cut_ms) in
            [(20, 500, 1_500), (320, 500, 1_500), (321, 1_000, 2_000), (1_281, 4_000, 4_000)]
        {
            let held = pieces(&intervals(count));
            assert_eq!(held.width_ns, width_ms * MS, "{count}");
            let cut_ns = held.end_ns(1_300 * MS);
            assert_eq!(cut_ns, cut_ms * MS, "{count}");
            let (gets, sets) = (held.latencies_from(cut_ns, 0), held.latencies_from(cut_ns, 1));
            let first = cut_ms / 100;
            let moments = gets.response.moments();
            assert_eq!(
                (moments.count, moments.min, moments.max),
                (count - first, (first + 1) * 1_000, count * 1_000)
            );
            for same in [&gets.service, &gets.without_client] {
                assert_eq!(same.count(), moments.count);
            }
            assert_eq!(gets.send_lag.max(), Some(0));
            let failed = (first..count).filter(|number| number.is_multiple_of(3)).count() as u64;
            assert_eq!((sets.failed.count(), sets.response.count(), gets.failed.count()), (failed, 0, 0));
            // Nothing cut is everything.
            assert_eq!(held.latencies_from(held.end_ns(0), 0).response.count(), count);
        }
    }

    #[test]
    fn the_order_of_arrival_leaves_no_trace() {
        let intervals = intervals(700);
        assert_eq!(pieces(&intervals), pieces(intervals.iter().rev()));
    }

    #[test]
    fn the_number_of_pieces_has_a_bound() {
        for count in [1, 320, 321, 5_000] {
            assert!(pieces(&intervals(count)).pieces.len() <= PIECES_MAX as usize, "{count}");
        }
    }
}
