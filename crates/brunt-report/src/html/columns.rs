//! A run over time as a page draws it: columns of response times, rates, and operations in the system, and the cells of heat maps.
//!
//! Invariants: columns that are wider than slices add their histograms, so that a percentile stays one and the largest response time
//! stays; there are at most [`COLUMNS_MAX`] in the window, or as many as `--interval` asks for up to [`ROWS_MAX`].

use crate::quantity;
use brunt_picture::Cells;
use brunt_picture::heat_map::{ColumnCount, heat_map, logarithmic_edges};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::Quantile;
use brunt_stats::client_time::ClientTime;
use brunt_stats::histogram::{Histogram, SparseHistogram, bucket_values};
use brunt_stats::interval::Activity;
use brunt_stats::summary::{PhaseSummary, Summary};
use brunt_stats::timeline::Slice;

/// As many as a chart has room for.
const COLUMNS_MAX: u64 = 300;
/// Where the user says how long they are, and wants to look closely.
const ROWS_MAX: u64 = 3_000;
/// Cells of a heat map to a factor of ten.
const PER_DECADE: u32 = 12;
/// Columns to a piece of a high percentile.
const TAIL_COLUMNS: [usize; 5] = [1, 2, 5, 10, 20];

/// From, to, both in seconds from the beginning of the measured window, and a value, if there is one.
pub(super) type Piece = (f64, f64, Option<f64>);

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
    fn of(
        (start_s, end_s): (f64, f64),
        slices: &[&Slice],
        sum: &mut Histogram,
        backlog: &mut Backlog,
    ) -> Self {
        let (mut activity, mut client) = (Activity::default(), ClientTime::default());
        for slice in slices {
            client.merge(&slice.client);
            let (all, preload) = (&slice.activity, &slice.preload);
            activity.merge(&Activity {
                scheduled: all.scheduled - preload.scheduled,
                sent: all.sent - preload.sent,
                completed: all.completed - preload.completed,
                failed: all.failed - preload.failed,
            });
        }
        let rows = slices.iter().flat_map(|slice| slice.rows.iter().map(|row| &row.response));
        let warmup = slices.iter().map(|slice| &slice.warmup_response);
        let response = SparseHistogram::merge_all(rows.chain(warmup), sum).into_owned();
        let unsent = slices.iter().flat_map(|slice| &slice.servers).map(|server| server.unsent).sum();
        let in_system = backlog.after(&activity, unsent);
        Self { start_s, end_s, response, activity, in_system, client }
    }

    /// A percentile in nanoseconds, if there are enough requests.
    pub(super) fn percentile_ns(&self, quantile: Quantile) -> Option<u64> {
        percentile_ns(&self.response, quantile)
    }

    /// A count as a rate.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.end_s - self.start_s)
    }

    pub(super) fn middle_s(&self) -> f64 {
        f64::midpoint(self.start_s, self.end_s)
    }
}

/// A percentile, if there are enough requests.
fn percentile_ns(response: &SparseHistogram, quantile: Quantile) -> Option<u64> {
    response.quantile(quantile).filter(|_| quantile.is_supported_by(response.count()))
}

/// The columns of a run in the order of time, from the beginning of the schedule until the last operation had ended.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    all: Vec<Column>,
    /// How many lie before the window; those from its beginning on are equally wide.
    lead: usize,
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
        let lead = (measure_ns - lead_ns).div_ceil(lead_width_ns);
        let edge_ns = |index: u64| match index.checked_sub(lead) {
            Some(behind) => measure_ns + behind * width_ns,
            None => measure_ns.saturating_sub((lead - index) * lead_width_ns).max(lead_ns),
        };
        let mut slices: Vec<Vec<&Slice>> = vec![Vec::new(); (lead + count) as usize];
        for slice in timeline.slices() {
            let middle_ns = slice.start_ns + (slice.end_ns - slice.start_ns) / 2;
            let index = match middle_ns.checked_sub(measure_ns) {
                Some(behind_ns) => lead + (behind_ns / width_ns).min(count - 1),
                None if middle_ns >= lead_ns => {
                    lead - (measure_ns - middle_ns).div_ceil(lead_width_ns).clamp(1, lead)
                }
                None => continue,
            };
            slices[index as usize].push(slice);
        }
        let seconds = |index: u64| (edge_ns(index) as f64 - measure_ns as f64) / 1e9;
        let (mut sum, mut backlog) = (Histogram::new(), Backlog::of(summary));
        let spans = (0..).map(|index| (seconds(index), seconds(index + 1)));
        let all = spans.zip(&slices).map(|(span_s, held)| Column::of(span_s, held, &mut sum, &mut backlog));
        Self { all: all.collect(), lead: lead as usize }
    }

    /// The columns of warm-up and window.
    pub(super) fn all(&self) -> &[Column] {
        &self.all
    }

    /// Those of the window.
    pub(super) fn window(&self) -> &[Column] {
        &self.all[self.lead..]
    }

    /// Pieces of so many columns, none of which lies in warm-up and window.
    pub(super) fn chunks(&self, columns: usize) -> impl Iterator<Item = &[Column]> {
        let (warmup, window) = self.all.split_at(self.lead);
        warmup.chunks(columns).chain(window.chunks(columns))
    }

    /// A value of each column.
    pub(super) fn pieces<'a>(
        &'a self,
        value: impl Fn(&Column) -> Option<f64> + 'a,
    ) -> impl Iterator<Item = Piece> + 'a {
        self.all.iter().map(move |column| (column.start_s, column.end_s, value(column)))
    }

    /// From the first to the last, in seconds.
    pub(super) fn span_s(&self) -> (f64, f64) {
        (self.all[0].start_s, self.all[self.all.len() - 1].end_s)
    }

    /// A high percentile over time, in nanoseconds, of pieces of so many columns that most of them have requests enough for it; and its name
    /// with the length of pieces where they are longer than columns.
    pub(super) fn tail(&self) -> (String, Vec<Piece>) {
        let quantiles = [Quantile::P99, Quantile::P95, Quantile::P90];
        let choices =
            quantiles.into_iter().flat_map(|quantile| TAIL_COLUMNS.map(|columns| (quantile, columns)));
        let mut tails =
            choices.map(|(quantile, columns)| (quantile, columns, self.tail_of(quantile, columns)));
        let is_given = |(_, columns, pieces): &(Quantile, usize, Vec<Piece>)| {
            let given = pieces.iter().filter(|piece| piece.2.is_some()).count();
            3 * given * columns >= 2 * self.window().len()
        };
        let found = tails.find(is_given);
        let (quantile, columns, pieces) =
            found.unwrap_or_else(|| (Quantile::P90, 1, self.tail_of(Quantile::P90, 1)));
        let width_ns = (self.width_s() * columns as f64 * 1e9).round() as u64;
        let name = if columns > 1 {
            format!("{quantile} of {}", quantity::time(width_ns))
        } else {
            quantile.to_string()
        };
        (name, pieces)
    }

    fn tail_of(&self, quantile: Quantile, columns: usize) -> Vec<Piece> {
        let mut sum = Histogram::new();
        let piece = |held: &[Column]| {
            let response = SparseHistogram::merge_all(held.iter().map(|column| &column.response), &mut sum);
            let ns = percentile_ns(&response, quantile).map(|ns| ns as f64);
            (held[0].start_s, held[held.len() - 1].end_s, ns)
        };
        self.chunks(columns).map(piece).collect()
    }

    /// How long one of the window is, in seconds.
    pub(super) fn width_s(&self) -> f64 {
        let first = &self.window()[0];
        first.end_s - first.start_s
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

/// The edges of cells that hold all of these response times, and begin at whole twelfths of a decade.
pub(super) fn edges<'a>(responses: impl IntoIterator<Item = &'a SparseHistogram>) -> Vec<f64> {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for response in responses.into_iter().filter(|response| response.count() > 0) {
        let moments = response.moments();
        least = least.min(moments.min.max(1) as f64);
        most = most.max(moments.max as f64);
    }
    if most == 0.0 {
        return logarithmic_edges(1e3, 1e6, PER_DECADE);
    }
    let step = f64::from(PER_DECADE);
    let low = 10f64.powf((least.log10() * step).floor() / step);
    // A row of their own lies above the largest, so that it stands apart from the edge of the chart.
    let high = (most * 1.2).max(low * 4.0);
    logarithmic_edges(low, high, PER_DECADE)
}

/// The numbers of values between the bounds of a histogram's buckets.
pub(super) fn counts(buckets: impl Iterator<Item = (usize, u64)>) -> Vec<ColumnCount> {
    let count = |(bucket, count)| {
        let values = bucket_values(bucket);
        let [low, high] = [values.start(), values.end()].map(|ns| (*ns).max(1) as f64);
        ColumnCount { low, high, count }
    };
    buckets.map(count).collect()
}

/// The heat map of columns that lie side by side.
pub(super) fn cells(columns: &[Column], edges: &[f64]) -> Cells {
    heat_map(&columns.iter().map(|column| counts(column.response.buckets())).collect::<Vec<_>>(), edges)
}
