//! Made-up intervals against a timeline that merges nothing, over up to a day of a run.
//!
//! Not what statistics make of slices.

use super::*;
use crate::confidence::batches;
use crate::connection::{ConnectionCounts, FaultTable};
use crate::histogram::PartSums;
use crate::interval::{Bytes, CpuTime, IntervalRow, Latencies, SLICE_NS, WorkerTime};
use crate::request_counts::{CountEntry, OpCounts};
use crate::server::{OutageSpans, ServerCounts};
use crate::simulated_run::Random;
use crate::store::HISTOGRAM_BYTES_MAX;
use crate::window::RunTimes;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// No whole number of slices from the beginning of time.
const MEASURE: u64 = 7_057 * MS;

/// Of one worker, with one completed get per value and what belongs to it.
fn interval(start_ns: u64, end_ns: u64, op: OpKind, values: &[u64]) -> Interval {
    let mut response = Histogram::new();
    values.iter().for_each(|value| response.record(*value));
    let count = values.len() as u64;
    let mut counts = OpCounts::default();
    (counts.requests.scheduled, counts.requests.sent) = (count, count);
    counts.requests.outcomes[OutcomeClass::Hit as usize] = count;
    (counts.keys.requested, counts.keys.hit) = (count, count);
    counts.in_window.sent = count;
    counts.in_window.outcomes[OutcomeClass::Hit as usize] = count;
    let latencies = Latencies { response: response.to_sparse(), ..Latencies::default() };
    Interval {
        worker: 0,
        start_ns,
        end_ns,
        request_counts: vec![CountEntry { phase: Phase::Measure, class: 0, op: op.into(), counts }],
        rows: vec![IntervalRow { class: 0, op: op.into(), latencies, client_lag_ns: 0 }],
        part_sums: PartSums::default(),
        warmup: SparseHistogram::default(),
        bytes: [Bytes::default(); Phase::COUNT],
        connections: [ConnectionCounts::default(); Phase::COUNT],
        faults: FaultTable::default(),
        servers: vec![ServerCounts { answered: count, ..ServerCounts::default() }],
        server_responses: Vec::new(),
        outages: OutageSpans::default(),
        meters: Vec::new(),
        object_faults: crate::verification::ObjectFaults::default(),
        worker_time: Some(WorkerTime { busy_ns: count * 3_000_000, run_delay_ns: Some(start_ns % 999_999) }),
        cpu_time: Some(CpuTime { total_ns: end_ns - start_ns, stolen_ns: count * 1_000 }),
    }
}

/// A get of a microsecond, in 100 ms that begin then.
fn tick(start_ns: u64) -> Interval {
    interval(start_ns, start_ns + SLICE_NS, OpKind::Get, &[1_000])
}

fn timeline(width_ns: Option<u64>, intervals: impl IntoIterator<Item = Interval>) -> Timeline {
    let mut timeline = Timeline::new(width_ns);
    timeline.align(MEASURE);
    intervals.into_iter().for_each(|interval| timeline.push(&interval));
    timeline
}

/// One whose slices of 100 ms are never merged.
fn unbounded(intervals: impl IntoIterator<Item = Interval>) -> Timeline {
    let mut timeline = timeline(Some(SLICE_NS), []);
    for interval in intervals {
        push_unmerged(&mut timeline, &interval);
    }
    timeline
}

fn push_unmerged(timeline: &mut Timeline, interval: &Interval) {
    let middle_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
    let slice = timeline.slices.entry(timeline.grid.cell_of(middle_ns));
    Arc::make_mut(slice.or_insert_with(|| Arc::new(Slice::empty(interval)))).add(interval, 0);
}

/// How many slices lie before the window, how many from its beginning on, and how long these are, in slices of 100 ms.
fn shape(timeline: &Timeline) -> (usize, usize, u64) {
    let before = timeline.slices_by_cell().filter(|(cell_ns, _)| *cell_ns < MEASURE).count();
    (before, timeline.slices().count() - before, timeline.slice_ns() / SLICE_NS)
}

#[test]
fn slices_are_merged_at_600_and_no_fewer_than_300_remain() {
    let table = [
        (1, 1, 1),
        (599, 599, 1),
        (600, 600, 1),
        (601, 301, 2),
        (1_200, 600, 2),
        (1_201, 301, 4),
        (6_000, 375, 16),
        (100_000, 391, 256),
    ];
    for (count, slices, width) in table {
        let held = timeline(None, (0..count).map(|index| tick(MEASURE + index * SLICE_NS)));
        assert_eq!(shape(&held), (0, slices, width), "{count}");
        let sums: Vec<u64> = held.slices().map(|slice| slice.activity.completed).collect();
        assert!(sums[..slices - 1].iter().all(|sum| *sum == width), "{count}: {sums:?}");
        assert_eq!(sums.iter().sum::<u64>(), count);
        assert!(held.slices_by_cell().all(|(cell_ns, slice)| cell_ns == slice.start_ns));
    }
}

#[test]
fn an_asked_width_is_kept_up_to_3_000_slices() {
    // Asked for, in slices; slices recorded → slices and their length, and how many rows they make.
    let table = [
        (1, 3_000, 3_000, 1, 3_000),
        (1, 3_001, 1_501, 2, 1_501),
        (1, 10_000, 2_500, 4, 2_500),
        (5, 60, 60, 1, 12),
        (5, 1_500, 1_500, 1, 300),
        (5, 1_501, 301, 5, 301),
        (5, 9_000, 1_800, 5, 1_800),
        (10, 600, 600, 1, 60),
        (10, 601, 301, 2, 61),
        (10, 3_001, 301, 10, 301),
        (10, 30_000, 3_000, 10, 3_000),
        (10, 30_001, 1_501, 20, 1_501),
        (10, 864_000, 2_700, 320, 2_700),
    ];
    for (asked, count, slices, width, rows) in table {
        let ticks = (0..count).map(|index| tick(MEASURE + index * SLICE_NS));
        let held = timeline(Some(asked * SLICE_NS), ticks);
        assert_eq!(shape(&held), (0, slices, width), "{asked} {count}");
        let row = asked.max(width);
        assert_eq!(held.row_ns(MEASURE, S), row * SLICE_NS);
        let points = held.points(MEASURE..MEASURE + count * SLICE_NS, row * SLICE_NS);
        assert_eq!(points.len(), rows, "{asked} {count}");
        assert_eq!(points.iter().map(|point| point.activity.completed).sum::<u64>(), count);
    }
}

#[test]
fn each_side_of_the_window_has_a_width_of_its_own() {
    // An hour of preload, 61 s of warm-up, 10 s of window, and as long a drain as time-outs allow.
    let mut held = Timeline::new(None);
    let measure_ns = 3_700 * S;
    for index in 0..36_000 {
        held.push(&tick(index * SLICE_NS));
    }
    assert_eq!(held.slices().count(), 1);
    held.align(measure_ns);
    held.set_schedule(measure_ns - 61 * S..measure_ns + 10 * S);
    for index in 0..1_200 {
        held.push(&tick(measure_ns - 61 * S - 50 * SLICE_NS + index * SLICE_NS));
    }
    let cells = |held: &Timeline, from_ns, to_ns| held.slices.range(from_ns..to_ns).count();
    let warmup_ns = measure_ns - 61 * S;
    assert_eq!(held.slices[&0].activity.completed, 36_050, "what comes late belongs to the preload");
    assert_eq!((cells(&held, warmup_ns, measure_ns), cells(&held, measure_ns, u64::MAX)), (305, 540));
    assert_eq!((held.grid.lead_ns, held.slice_ns()), (2 * SLICE_NS, SLICE_NS));
    assert_eq!(held.row_ns(warmup_ns, S), S);
    for index in 540..1_200 {
        held.push(&tick(measure_ns + index * SLICE_NS));
    }
    assert_eq!(held.slice_ns(), SLICE_NS, "100 slices of the window, and 1100 behind it");
    held.push(&tick(measure_ns + 1_200 * SLICE_NS));
    assert_eq!(held.slice_ns(), 2 * SLICE_NS);
}

/// The window may turn out to begin earlier, by whole slices.
#[test]
fn a_window_that_begins_early_moves_no_slice() {
    let mut held = Timeline::new(None);
    held.align(MEASURE + 56 * S);
    let ticks: Vec<Interval> = (0..40).map(|index| tick(MEASURE - 4 * S + index * SLICE_NS)).collect();
    ticks.iter().for_each(|tick| held.push(tick));
    held.align(MEASURE);
    assert_eq!(held, timeline(None, ticks));
    assert_eq!(held.cells(MEASURE - 4 * S..MEASURE).iter().flatten().count(), 40);
}

#[test]
fn rows_are_as_wide_as_slices_let_them_be() {
    let table =
        [(60, 1_000), (61, 1_000), (121, 1_200), (241, 1_600), (481, 1_600), (961, 3_200), (86_400, 204_800)];
    for (seconds, expected_ms) in table {
        assert_eq!(row_ns_after(seconds * S - 1, S) / MS, expected_ms, "{seconds} s");
    }
}

/// What slices of 100 ms hold of a cell of a wider grid, added up one by one.
fn sum_of<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<Slice> {
    slices.cloned().reduce(|mut sum, slice| {
        sum.merge(&slice, 0);
        sum
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Any intervals in any order: the same slices, of which each is the sum of the narrow ones in its place.
    #[test]
    fn the_order_of_arrival_leaves_no_trace(
        mut starts in proptest::collection::vec((0..250_000u64, 1..300u64, 0..3usize, 100..5_000_000u64), 1..80),
        turn in 0..80usize,
        asked in proptest::sample::select(vec![None, Some(SLICE_NS), Some(3 * SLICE_NS), Some(10 * SLICE_NS)]),
    ) {
        let kinds = [OpKind::Get, OpKind::Set, OpKind::Mget];
        let make = |(start_ms, length_ms, kind, value): &(u64, u64, usize, u64)| {
            interval(start_ms * MS, (start_ms + length_ms) * MS, kinds[*kind], &[*value, value * 3])
        };
        let forwards = timeline(asked, starts.iter().map(make));
        let unbounded = unbounded(starts.iter().map(make));
        starts.reverse();
        prop_assert_eq!(&timeline(asked, starts.iter().map(make)), &forwards);
        let places = starts.len();
        starts.rotate_left(turn % places);
        prop_assert_eq!(&timeline(asked, starts.iter().map(make)), &forwards);

        for (cell_ns, slice) in forwards.slices_by_cell() {
            let cell_end_ns = match forwards.grid.width_ns(cell_ns) {
                // The first cell is short.
                width_ns if cell_ns < MEASURE => MEASURE - (MEASURE - cell_ns - 1) / width_ns * width_ns,
                width_ns => cell_ns + width_ns,
            };
            let narrow = unbounded.slices.range(cell_ns..cell_end_ns).map(|(_, slice)| slice.as_ref());
            prop_assert_eq!(sum_of(narrow), Some(slice.clone()));
        }
        let count = |held: &Timeline| held.slices().map(|slice| slice.activity.completed).sum::<u64>();
        prop_assert_eq!(count(&forwards), 2 * places as u64);
        let carried = SerializedTimeline::from(forwards.clone());
        prop_assert_eq!(Timeline::try_from(carried), Ok(forwards));
    }
}

/// A copy costs as much as the slices that change after it, however many there are.
#[test]
fn copies_share_the_slices_that_are_over() {
    for count in [10, 600] {
        let mut held = timeline(None, (0..count).map(|index| tick(MEASURE + index * SLICE_NS)));
        let copy = held.clone();
        held.push(&tick(MEASURE + (count - 1) * SLICE_NS));
        let pairs = held.slices.values().zip(copy.slices.values());
        let apart = pairs.filter(|(ours, theirs)| !Arc::ptr_eq(ours, theirs)).count();
        assert_eq!((apart, copy.slices().count() as u64), (1, count));
        assert_eq!(copy.slices().last().unwrap().activity.completed, 1);
    }
}

#[test]
fn slices_off_the_grid_are_rejected() {
    let held = timeline(None, (0..3).map(|index| tick(MEASURE + index * SLICE_NS)));
    let refusal = |change: fn(&mut Timeline)| {
        let mut changed = held.clone();
        change(&mut changed);
        Timeline::try_from(SerializedTimeline::from(changed)).err()
    };
    assert_eq!(refusal(|_| ()), None);
    let length = Some("slices of a length that there is not");
    assert_eq!(refusal(|held| held.grid.slice_ns = 3 * SLICE_NS), length);
    assert_eq!(refusal(|held| held.grid.slice_ns = 0), length);
    assert_eq!(refusal(|held| held.grid.asked_ns = Some(MS)), length);
    let off = Some("a slice that is not on the grid of slices");
    assert_eq!(refusal(|held| held.grid.slice_ns = 2 * SLICE_NS), off);
    type Change = fn(&mut Slice);
    let table: [(Change, &str); 6] = [
        (
            |slice| {
                let worker_time = Some(WorkerTime { busy_ns: u64::MAX, run_delay_ns: None });
                slice.client = ClientTime::of(&Interval { worker_time, ..tick(MEASURE) });
            },
            "a slice with more than a run can hold",
        ),
        (|slice| slice.end_ns = 0, "a slice that ends before it begins"),
        (|slice| slice.preload.sent = 2, "a slice with more of the preload than there is"),
        (|slice| slice.activity.sent = 1 << 50, "a slice with more than a run can hold"),
        (|slice| slice.rows.push(slice.rows[0].clone()), "a slice whose rows are in no order"),
        (|slice| slice.servers.clear(), "slices of different numbers of servers"),
    ];
    for (change, expected) in table {
        let mut changed = held.clone();
        changed.slices.values_mut().take(1).map(Arc::make_mut).for_each(change);
        assert_eq!(Timeline::try_from(SerializedTimeline::from(changed)).err(), Some(expected));
    }
}

const KINDS: [OpKind; 7] =
    [OpKind::Get, OpKind::Gets, OpKind::Mget, OpKind::Set, OpKind::Incr, OpKind::Delete, OpKind::Touch];

/// 100 ms of a worker, 10 000 requests a second: of seven kinds, with a heavy tail from 50 us on.
fn of_seven_kinds(number: u64) -> Interval {
    let value = |turn: u64| {
        let share = (turn * 618_034 % 1_000_000) as f64 / 1e6;
        (50_000.0 * (1.0 - share).powf(-0.7)) as u64
    };
    let mut sum: Option<Interval> = None;
    for (kind, op) in (0..).zip(KINDS) {
        let values: Vec<u64> = (0..143).map(|turn| value(number * 1_001 + kind * 143 + turn)).collect();
        let own = interval(0, SLICE_NS, op, &values);
        match &mut sum {
            None => sum = Some(own),
            Some(sum) => add(sum, &own),
        }
    }
    sum.unwrap()
}

/// What both hold, as one interval as long as both.
fn add(sum: &mut Interval, other: &Interval) {
    for entry in &other.request_counts {
        match sum.request_counts.iter_mut().find(|held| held.op == entry.op) {
            None => sum.request_counts.push(*entry),
            Some(held) => held.counts.merge(&entry.counts),
        }
    }
    for row in &other.rows {
        match sum.rows.iter_mut().find(|held| held.op == row.op) {
            None => sum.rows.push(row.clone()),
            Some(held) => {
                held.latencies.response = held.latencies.response.merged(&row.latencies.response);
            }
        }
    }
    sum.servers[0].answered += other.servers[0].answered;
}

/// Two workers that hand over again and again what is prepared, in intervals as long as a slice is.
struct Load {
    prepared: Vec<Interval>,
    length_ns: u64,
    until_ns: u64,
}

impl Load {
    fn new() -> Self {
        Self { prepared: (0..32).map(of_seven_kinds).collect(), length_ns: SLICE_NS, until_ns: MEASURE }
    }

    fn go_on(&mut self, held: &mut Timeline, until_ns: u64) {
        while self.until_ns < MEASURE + until_ns {
            while 2 * self.length_ns <= held.slice_ns()
                && (self.until_ns - MEASURE).is_multiple_of(2 * self.length_ns)
            {
                self.length_ns *= 2;
                let twice = |pair: &Interval, other: &Interval| {
                    let mut sum = pair.clone();
                    add(&mut sum, other);
                    sum
                };
                let turned = self.prepared[1..].iter().chain(&self.prepared[..1]);
                self.prepared =
                    self.prepared.iter().zip(turned).map(|(one, next)| twice(one, next)).collect();
            }
            for worker in 0..2 {
                let place = (self.until_ns / self.length_ns * 2 + worker) as usize % self.prepared.len();
                let interval = &mut self.prepared[place];
                (interval.start_ns, interval.end_ns) = (self.until_ns, self.until_ns + self.length_ns);
                held.push(interval);
            }
            self.until_ns += self.length_ns;
        }
    }
}

/// Bytes of memory that a slice takes, about.
fn memory_bytes(slice: &Slice) -> usize {
    size_of::<Slice>()
        + slice.rows.capacity() * size_of::<SliceRow>()
        + slice.servers.capacity() * size_of::<ServerCounts>()
        + slice.encoded_bytes()
}

/// A map keeps slices in nodes that are at least half full, and two thirds on average.
fn map_bytes(held: &Timeline) -> usize {
    held.slices().map(|slice| memory_bytes(slice) + size_of::<(u64, Slice)>() / 2 + 8).sum()
}

/// After so many seconds: how many slices there are, what they take at least after the second of them, and what counts take beside histograms.
#[test]
fn a_day_takes_little_memory() {
    const DAY: u64 = 86_400;
    for (asked, ends, slices, least, beside) in [
        (None, [60, 600, 3_600, 21_600, DAY], SLICES_MIN..=2 * SLICES_MIN, 2 << 20, 1_000_000),
        (Some(S), [2_000, 3_000, 10_000, 21_600, DAY], 1_500..=3_000, 4 << 20, 5_000_000),
    ] {
        let (mut load, mut held) = (Load::new(), timeline(asked, []));
        let mut bytes = Vec::new();
        for seconds in ends {
            load.go_on(&mut held, seconds * S);
            let count = held.slices().count() as u64;
            assert!(slices.contains(&count), "{count} slices after {seconds} s");
            bytes.push(map_bytes(&held));
        }
        assert!(bytes[1] >= least, "{bytes:?}: the slices do not hold what they should");
        assert!(bytes.iter().all(|bytes| *bytes <= 2 * ENCODED_BYTES_MAX + beside), "{bytes:?}");

        let completed: u64 = held.slices().map(|slice| slice.activity.completed).sum();
        assert_eq!(completed, (load.until_ns - MEASURE) / SLICE_NS * 2 * 7 * 143);
        for op in KINDS {
            let rows = || held.slices().flat_map(|slice| &slice.rows).filter(|row| row.op == op.into());
            assert_eq!(rows().map(|row| row.response.count()).sum::<u64>(), completed / 7);
            assert_eq!(rows().map(|row| row.completed).sum::<u64>(), completed / 7);
        }
    }
}

/// A worker that hands over again and again what is prepared: seven kinds, 20 000 operations per second in all, with latencies around 80 us.
struct WideLoad {
    prepared: Vec<Interval>,
    ticks: u64,
}

impl WideLoad {
    fn new() -> Self {
        // A log-logistic distribution, as wide as the log-normal one with a deviation of 1.
        let quantile =
            |share: f64| 80_000.0 * (share / (1.0 - share)).powf(3.0_f64.sqrt() / std::f64::consts::PI);
        let mut random = Random(1);
        let mut value = || quantile(random.unit()) as u64;
        let mut prepare = || {
            let mut sum = interval(0, SLICE_NS, OpKind::Get, &[]);
            for (op, count) in KINDS.into_iter().zip([1_100, 100, 200, 300, 120, 80, 100]) {
                let values: Vec<u64> = (0..count).map(|_| value()).collect();
                add(&mut sum, &interval(0, SLICE_NS, op, &values));
            }
            sum
        };
        Self { prepared: (0..64).map(|_| prepare()).collect(), ticks: 0 }
    }

    /// The next 100 ms.
    fn next(&mut self) -> &Interval {
        let interval = &mut self.prepared[self.ticks as usize % 64];
        interval.start_ns = MEASURE + self.ticks * SLICE_NS;
        interval.end_ns = interval.start_ns + SLICE_NS;
        self.ticks += 1;
        interval
    }
}

/// Bytes of the histograms of both, of those that they share once.
fn encoded_bytes_of_both(one: &Timeline, other: &Timeline) -> usize {
    let slices: BTreeMap<_, _> =
        one.slices.values().chain(other.slices.values()).map(|slice| (Arc::as_ptr(slice), slice)).collect();
    slices.values().map(|slice| slice.encoded_bytes()).sum()
}

/// With a reader that holds the copy of a second until the next one: the most that is held at a time is reached within five minutes.
#[test]
fn seventeen_minutes_of_wide_latencies_take_no_more_memory_than_five() {
    let (mut load, mut held) = (WideLoad::new(), timeline(None, []));
    let mut copy = held.clone();
    let mut most_by_minute = Vec::new();
    for second in 0..17 * 60 {
        (0..10).for_each(|_| held.push(load.next()));
        let bytes = encoded_bytes_of_both(&held, &copy);
        copy = held.clone();
        if second % 60 == 0 {
            most_by_minute.push(0);
        }
        let most: &mut usize = most_by_minute.last_mut().unwrap();
        *most = bytes.max(*most);
    }
    let (first, rest) = most_by_minute.split_at(5);
    assert!(rest.iter().max() <= first.iter().max(), "{most_by_minute:?}");
    assert!(first.iter().max() <= Some(&(3 * ENCODED_BYTES_MAX)), "{most_by_minute:?}");
    let counted = held.slices().flat_map(|slice| &slice.rows).map(|row| row.response.count()).sum::<u64>();
    assert_eq!(counted, 17 * 60 * 20_000);
}

#[test]
fn buckets_joined_in_memory_are_no_wider_than_a_result_has_them() {
    let (mut load, mut bounded, mut unbounded) = (WideLoad::new(), timeline(None, []), unbounded([]));
    for ticks in [1_201, 2_400, 2_401] {
        while load.ticks < ticks {
            let next = load.next();
            bounded.push(next);
            push_unmerged(&mut unbounded, next);
        }
        let (mut short, mut long) = (bounded.clone(), unbounded.clone());
        long.grid = short.grid.clone();
        long.merge_cells();
        short.fit(HISTOGRAM_BYTES_MAX);
        long.fit(HISTOGRAM_BYTES_MAX);
        assert!(short.bucket_bits > bounded.bucket_bits, "{ticks}");
        assert_eq!(short, long, "{ticks}");
    }
    assert!(bounded.bucket_bits > 0);
}

/// A quarter of an hour against slices of 100 ms that were never merged.
#[test]
fn totals_and_rows_are_those_of_an_unbounded_timeline() {
    let (mut bounded, mut unbounded) = (timeline(None, []), unbounded([]));
    let intervals: Vec<Interval> = (0..2).map(of_seven_kinds).collect();
    for index in 0..9_000 {
        let mut interval = intervals[index as usize % 2].clone();
        (interval.start_ns, interval.end_ns) = (MEASURE + index * SLICE_NS, MEASURE + (index + 1) * SLICE_NS);
        interval.worker_time = Some(WorkerTime { busy_ns: index * 1_000, run_delay_ns: Some(0) });
        bounded.push(&interval);
        push_unmerged(&mut unbounded, &interval);
    }
    assert_eq!((bounded.slices().count(), unbounded.slices().count()), (563, 9_000));
    let span = MEASURE..MEASURE + 900 * S;
    for least_ns in [1, 60 * S, 900 * S] {
        let width_ns = bounded.row_ns(MEASURE, least_ns);
        let points = bounded.points(span.clone(), width_ns);
        assert_eq!(points, unbounded.points(span.clone(), width_ns));
        let mut client = ClientTime::default();
        points.iter().for_each(|point| client.merge(&point.client));
        assert_eq!(bounded.client_time(span.clone()), client);
        assert!(client.shares().is_some_and(|shares| shares.busy > Some(0.04)));
    }
    let ops = bounded.ops(span.clone());
    assert_eq!(ops, unbounded.ops(span.clone()));
    assert_eq!(ops.iter().map(|point| point.op.kind()).collect::<Vec<_>>(), KINDS);
    for point in &ops {
        // Each interval was pushed 4 500 times.
        let mut sum = Histogram::new();
        let rows = intervals.iter().flat_map(|interval| &interval.rows).filter(|row| row.op == point.op);
        rows.for_each(|row| sum.merge_sparse(&row.latencies.response));
        let quantile = |quantile| sum.quantile(quantile);
        assert_eq!((point.completed, point.failed), (sum.count() * 4_500, 0));
        assert_eq!(
            (point.latency.p50_ns, point.latency.p90_ns, point.latency.max_ns),
            (quantile(Quantile::P50), quantile(Quantile::P90), sum.max())
        );
    }
}

/// Latencies whose level wanders, so that neighbours resemble each other: a first-order process with a time constant of two seconds, of
/// which bursts of half a second stand out.
fn wandering(slices: u64) -> Vec<Interval> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut unit = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((state >> 33) as f64 + 0.5) / (1_u64 << 31) as f64
    };
    let (mut level, mut burst) = (0.0, 0);
    let slice = |index: u64| {
        level += -level / 20.0 + (unit() - 0.5) * 0.2;
        burst = if unit() < 0.005 { 5 } else { i32::max(burst - 1, 0) };
        let scale = 100_000.0 * f64::exp(level) * if burst > 0 { 4.0 } else { 1.0 };
        let values: Vec<u64> = (0..50).map(|_| (scale * (0.2 - unit().ln())) as u64).collect();
        let start_ns = MEASURE + index * SLICE_NS;
        interval(start_ns, start_ns + SLICE_NS, OpKind::Get, &values)
    };
    (0..slices).map(slice).collect()
}

/// Edges of batches lie up to a slice from where narrow ones have them, of ten and more in a batch. So half the interval of a percentile
/// from wide slices is within a tenth of that from slices of 100 ms, and of most windows within a few hundredths.
#[test]
fn confidence_intervals_from_wide_slices_are_those_from_narrow_ones() {
    let intervals = wandering(36_000);
    let quantiles = [Quantile::P50, Quantile::P90, Quantile::P99];
    let (mut closed, mut pushed) = (0, 0);
    let (mut wide, mut narrow) = (timeline(None, []), unbounded([]));
    for tenths in [601, 777, 1_199, 1_200, 1_999, 3_333, 6_000, 9_601, 19_199, 36_000] {
        let end_ns = MEASURE + tenths * SLICE_NS;
        let window =
            RunTimes { start_ns: 0, measure_ns: MEASURE, end_ns, drained_ns: end_ns, ..RunTimes::NONE };
        for interval in &intervals[pushed..tenths as usize] {
            wide.push(interval);
            push_unmerged(&mut narrow, interval);
        }
        pushed = tenths as usize;
        let found = |held: &Timeline| {
            crate::confidence::intervals(&batches(held, &window, MEASURE, |_, _| true), &quantiles)
        };
        let (wide, narrow) = (found(&wide), found(&narrow));
        assert_eq!((wide.len(), narrow.len()), (3, 3));
        for (one, other) in wide.iter().zip(&narrow) {
            assert_eq!(
                (one.quantile, one.value_ns, one.basis.batches),
                (other.quantile, other.value_ns, other.basis.batches)
            );
            let half_widths = one.relative_half_width().zip(other.relative_half_width());
            let Some((one, other)) = half_widths else { continue };
            assert!((one / other - 1.0).abs() < 0.1, "{tenths}: {one} {other}");
            closed += 1;
        }
    }
    assert!(closed >= 15, "{closed} of 30 intervals have an upper end");
}
