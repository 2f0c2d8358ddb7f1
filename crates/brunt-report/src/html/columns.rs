//! A run over time as a page draws it: columns of response times, rates, and operations in the system.
//!
//! Invariants: columns that are wider than slices add their histograms, so that a percentile stays one and the largest response time
//! stays; there are at most [`COLUMNS_MAX`] in the window, or as many as `--interval` asks for up to [`ROWS_MAX`].

use crate::quantity;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::Quantile;
use brunt_stats::histogram::{Histogram, SparseHistogram};
use brunt_stats::interval::Activity;
use brunt_stats::summary::{PhaseSummary, Summary};
use brunt_stats::timeline::Slice;
use brunt_stats::usage::ClientTime;

/// As many as a chart has room for.
pub(super) const COLUMNS_MAX: u64 = 300;
/// Where the user says how long they are, and wants to look closely.
const ROWS_MAX: u64 = 3_000;

/// A piece of time.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Seconds from the beginning of the measured window.
    pub(super) start_s: f64,
    /// Of the same.
    pub(super) end_s: f64,
    /// Response times of operations that completed in it: those of the window, or of the warm-up where these are recorded.
    pub(super) response: SparseHistogram,
    /// What went on, but for the preload.
    pub(super) activity: Activity,
    /// Operations that were due and had not ended when it ended; `None` where that is not known.
    pub(super) in_system: Option<u64>,
    /// What workers and their CPUs did.
    pub(super) client: ClientTime,
}

impl Column {
    /// A percentile in nanoseconds, if there are enough requests.
    pub(super) fn percentile_ns(&self, quantile: Quantile) -> Option<u64> {
        let is_supported = quantile.is_supported_by(self.response.count());
        is_supported.then(|| self.response.quantile(quantile)).flatten()
    }

    /// The longest response time in nanoseconds.
    pub(super) fn max_ns(&self) -> Option<u64> {
        self.response.max()
    }

    /// A count as a rate.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.end_s - self.start_s)
    }
}

/// Columns to a piece of [`Tail`].
const PIECES: [usize; 5] = [1, 2, 5, 10, 20];

/// A high percentile over time.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    quantile: Quantile,
    /// To a piece.
    columns: usize,
    width_s: f64,
    /// From, to, both in seconds, and its value in nanoseconds where there are enough requests.
    pub(super) pieces: Vec<(f64, f64, Option<u64>)>,
}

impl Tail {
    /// The percentile, with the length of pieces where they are longer than columns.
    pub(super) fn name(&self) -> String {
        match self.columns {
            1 => self.quantile.to_string(),
            _ => format!("{} of {}", self.quantile, quantity::time((self.width_s * 1e9).round() as u64)),
        }
    }
}

/// The columns of a run in the order of time, from the beginning of the schedule until the last operation had ended.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Before the window.
    pub(super) warmup: Vec<Column>,
    /// From its beginning on, all equally wide.
    pub(super) window: Vec<Column>,
}

impl Columns {
    /// How many the page of a run has at most.
    pub(super) fn max_of(summary: &Summary) -> u64 {
        if summary.record.plan.interval.is_some() { ROWS_MAX } else { COLUMNS_MAX }
    }

    /// At most so many in the window.
    pub(super) fn of(summary: &Summary, columns_max: u64) -> Self {
        let (timeline, window) = (summary.timeline(), &summary.window);
        let measure_ns = window.measure_ns;
        let least_ns = window.duration_ns().div_ceil(columns_max);
        let width_ns = timeline.row_ns(measure_ns, least_ns).max(1);
        let width_ns = width_ns * least_ns.div_ceil(width_ns).max(1);
        // What is left of a long drain has a last column of its own.
        let end_ns = window.drained_ns.min(window.end_ns + window.duration_ns());
        let count = end_ns.saturating_sub(measure_ns).div_ceil(width_ns).min(2 * columns_max).max(1);
        let lead_ns = window.start_ns.min(measure_ns);
        let lead_width_ns = timeline.row_ns(lead_ns, width_ns).max(width_ns);
        let lead_count = (measure_ns - lead_ns).div_ceil(lead_width_ns);
        let seconds = |from_ns: u64| (from_ns as f64 - measure_ns as f64) / 1e9;
        let lead_start_ns = |index: u64| measure_ns.saturating_sub((lead_count - index) * lead_width_ns);
        let mut warmup: Vec<Sums<'_>> = (0..lead_count)
            .map(|index| {
                Sums::between(seconds(lead_start_ns(index).max(lead_ns)), seconds(lead_start_ns(index + 1)))
            })
            .collect();
        let mut measured: Vec<Sums<'_>> = (0..count)
            .map(|index| {
                Sums::between(
                    seconds(measure_ns + index * width_ns),
                    seconds(measure_ns + (index + 1) * width_ns),
                )
            })
            .collect();
        for slice in timeline.slices() {
            let middle_ns = slice.start_ns + (slice.end_ns - slice.start_ns) / 2;
            if middle_ns >= measure_ns {
                let index = ((middle_ns - measure_ns) / width_ns).min(count - 1);
                measured[index as usize].add(slice);
            } else if middle_ns >= lead_ns && lead_count > 0 {
                let from_end = (measure_ns - middle_ns).div_ceil(lead_width_ns).clamp(1, lead_count);
                warmup[(lead_count - from_end) as usize].add(slice);
            }
        }
        let mut backlog = Backlog::of(summary);
        let mut sum = Histogram::new();
        let mut column = |sums: Sums<'_>| sums.column(&mut sum, &mut backlog);
        Self {
            warmup: warmup.into_iter().map(&mut column).collect(),
            window: measured.into_iter().map(&mut column).collect(),
        }
    }

    /// The columns of warm-up and window.
    pub(super) fn all(&self) -> impl Iterator<Item = &Column> + Clone + '_ {
        self.warmup.iter().chain(&self.window)
    }

    /// From the first to the last, in seconds.
    pub(super) fn span_s(&self) -> (f64, f64) {
        let start_s = self.all().next().map_or(0.0, |column| column.start_s);
        (start_s, self.window.last().map_or(1.0, |column| column.end_s))
    }

    /// A high percentile over time: of pieces of so many columns that most of them have requests enough for it.
    pub(super) fn tail(&self) -> Tail {
        let quantiles = [Quantile::P99, Quantile::P95, Quantile::P90];
        let choices = quantiles.into_iter().flat_map(|quantile| PIECES.map(|columns| (quantile, columns)));
        let mut tails = choices.map(|(quantile, columns)| self.tail_of(quantile, columns));
        let is_given = |tail: &Tail| {
            let given = tail.pieces.iter().filter(|piece| piece.2.is_some()).count();
            3 * given * tail.columns >= 2 * self.window.len()
        };
        tails.find(is_given).unwrap_or_else(|| self.tail_of(Quantile::P90, 1))
    }

    fn tail_of(&self, quantile: Quantile, columns: usize) -> Tail {
        let mut sum = Histogram::new();
        let mut piece = |held: &[Column]| {
            let response = SparseHistogram::merge_all(held.iter().map(|column| &column.response), &mut sum);
            let is_supported = quantile.is_supported_by(response.count());
            let ns = is_supported.then(|| response.quantile(quantile)).flatten();
            (held[0].start_s, held[held.len() - 1].end_s, ns)
        };
        let parts = self.warmup.chunks(columns).chain(self.window.chunks(columns));
        let pieces = parts.map(&mut piece).collect();
        Tail { quantile, columns, width_s: self.width_s() * columns as f64, pieces }
    }

    /// How long one of the window is, in seconds.
    pub(super) fn width_s(&self) -> f64 {
        self.window.first().map_or(1.0, |column| column.end_s - column.start_s)
    }
}

/// What the slices of a column add up to.
struct Sums<'a> {
    start_s: f64,
    end_s: f64,
    slices: Vec<&'a Slice>,
}

impl<'a> Sums<'a> {
    const fn between(start_s: f64, end_s: f64) -> Self {
        Self { start_s, end_s, slices: Vec::new() }
    }

    fn add(&mut self, slice: &'a Slice) {
        self.slices.push(slice);
    }

    fn column(self, sum: &mut Histogram, backlog: &mut Backlog) -> Column {
        let (mut activity, mut client) = (Activity::default(), ClientTime::default());
        for slice in &self.slices {
            client.merge(&slice.client);
            let (all, preload) = (&slice.activity, &slice.preload);
            activity.merge(&Activity {
                scheduled: all.scheduled - preload.scheduled,
                sent: all.sent - preload.sent,
                completed: all.completed - preload.completed,
                failed: all.failed - preload.failed,
            });
        }
        let rows = self.slices.iter().flat_map(|slice| slice.rows.iter().map(|row| &row.response));
        let warmup = self.slices.iter().map(|slice| &slice.warmup_response);
        let response = SparseHistogram::merge_all(rows.chain(warmup), sum).into_owned();
        let unsent = self.slices.iter().flat_map(|slice| &slice.servers).map(|server| server.unsent).sum();
        let in_system = backlog.after(&activity, unsent);
        Column { start_s: self.start_s, end_s: self.end_s, response, activity, in_system, client }
    }
}

/// How many operations were due and had not ended, from one column to the next.
struct Backlog {
    count: i64,
    /// Not in a closed loop, where an operation is counted as due when it ends, nor where no replies are asked for.
    is_known: bool,
}

impl Backlog {
    fn of(summary: &Summary) -> Self {
        let is_answered =
            |phase: &PhaseSummary| phase.counts.requests.outcome(OutcomeClass::Unacknowledged) == 0;
        let is_known = summary.record.plan.has_open_loop() && summary.phases.iter().all(is_answered);
        Self { count: 0, is_known }
    }

    fn after(&mut self, activity: &Activity, unsent: u64) -> Option<u64> {
        self.count += activity.scheduled as i64 - (activity.completed + activity.failed + unsent) as i64;
        // Workers end their intervals a little apart.
        self.is_known.then_some(self.count.max(0) as u64)
    }
}
