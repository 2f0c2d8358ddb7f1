//! A run over time, in charts that share one axis: response times as a heat map with their percentiles, rates, operations in the system, what
//! servers said of themselves, and what workers and CPUs of the client did.
//!
//! Invariants: columns that are wider than slices add their histograms, so that a percentile is that of all their requests and the longest
//! response time of each is there; there are at most [`COLUMNS_MAX`] in the window, or as many as `--interval` asks for up to [`ROWS_MAX`];
//! where nothing is known a line has a gap, not a value. A client's line that a worker without time left reaches ([`BUSY`]) decides nothing:
//! the whole window is judged.

use super::chart::{Chart, Figure, LEAST, MOST, Mark, Note, RESULT_CLASSES, Series, Values, result_stroke};
use super::page::Markup;
use crate::grid::{self, Grid, TimeTable, Value};
use crate::instant::in_window_ns;
use crate::layout::Style;
use crate::quantity::{self, rate};
use crate::server;
use brunt_picture::heat_map::{ColumnCount, heat_map, logarithmic_edges};
use brunt_picture::{Anchor, Cells, Fill, Ink, Stroke, Texture};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::quantile::Quantile;
use brunt_stats::change_point::LevelSeries;
use brunt_stats::histogram::{Histogram, SparseHistogram, bucket_values};
use brunt_stats::interval::Activity;
use brunt_stats::outage::Outage;
use brunt_stats::server_stats::{ServerRecord, ServerSpan};
use brunt_stats::summary::PhaseSummary;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::Slice;
use brunt_stats::usage::BUSY;
use brunt_stats::usage::{ClientShares, ClientTime};

const HEAT_HEIGHT: f64 = 260.0;
const RATE_HEIGHT: f64 = 120.0;
const SYSTEM_HEIGHT: f64 = 90.0;
const STRIP_HEIGHT: f64 = 64.0;
/// A backlog so many times the median would leave of that nothing on a linear axis.
const SYSTEM_RATIO: f64 = 100.0;

const P50: Stroke = Stroke::solid(Ink::Series(4), 1.5);
const P99: Stroke = Stroke { ink: Ink::Series(1), width: 1.5, dash: &[6.0, 3.0] };
const MAX: Stroke = Stroke::solid(Ink::Text, 3.0);
const OFFERED: Stroke = Stroke { ink: Ink::Soft, width: 1.5, dash: &[6.0, 3.0] };
const DONE: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const SENT: Stroke = Stroke { ink: Ink::Series(4), width: 1.5, dash: &[2.0, 2.0] };
const OTHER_PHASE: Fill = Fill::faint(Ink::Soft, 0.14);
const OUTAGE: Fill = Fill { opacity: 0.7, ..Fill::textured(Ink::Caution, Texture::Hatched) };
const OUTAGE_EDGE: Stroke = Stroke::solid(Ink::Caution, 1.5);
const SILENT: Fill = Fill { opacity: 0.35, ..Fill::textured(Ink::Soft, Texture::Crossed) };
const FAILED: Fill = Fill::solid(Ink::Invalid);
const BACKLOG: Fill = Fill::faint(Ink::Series(3), 0.55);
const CHANGE: Stroke = Stroke { ink: Ink::Caution, width: 1.5, dash: &[8.0, 3.0, 2.0, 3.0] };

/// The section of a run over time.
pub(super) fn section(markup: &mut Markup, summary: &Summary, columns_max: u64) {
    let Some(course) = Course::of(summary, columns_max) else { return };
    let (servers, client) = (Servers::of(summary), course.client());
    let mut charts = Vec::new();
    charts.extend(course.has_replies().then(|| course.latencies(true)));
    charts.push(course.rates());
    charts.extend(course.in_system());
    charts.extend(servers.quantities().map(|quantity| course.server_strip(&servers, quantity)));
    let strips = client.iter().flat_map(|pieces| STRIPS.iter().map(move |strip| (pieces, strip)));
    charts.extend(strips.map(|(pieces, strip)| course.client_strip(pieces, strip)));
    let no_client = "How busy the client was over time is not in this result.".to_owned();
    let no_client = client.is_none().then_some(no_client);
    let figure = Figure {
        finding: format!("Time counts from the beginning of the window; {}", course.finding()),
        cursor: Some(("time", course.span_s)),
        charts,
        table: Some(course.table(&servers, no_client.is_none())),
        remarks: servers.reason(summary).into_iter().chain(no_client).collect(),
    };
    markup.section("time", "Over time", |markup| figure.write(markup));
}

/// A run over time, and the axes that its charts share.
pub(crate) struct Course<'a> {
    summary: &'a Summary,
    columns: Columns,
    /// In seconds from the beginning of the window.
    span_s: (f64, f64),
    /// Of the cells of the heat map, in nanoseconds.
    edges: Vec<f64>,
}

impl<'a> Course<'a> {
    /// In at most so many columns; `None` of a run that sent nothing.
    pub(crate) fn of(summary: &'a Summary, columns_max: u64) -> Option<Self> {
        let columns = Columns::of(summary, columns_max);
        let is_any = columns.all().iter().any(|column| column.activity.sent > 0);
        let edges = edges(columns.all().iter().map(|column| &column.response));
        is_any.then(|| Self { summary, span_s: columns.span_s(), columns, edges })
    }

    /// Gives several runs the same axes.
    pub(super) fn align(courses: &mut [Self]) {
        let columns = courses.iter().flat_map(|course| course.columns.all());
        let edges = edges(columns.map(|column| &column.response));
        let ends = courses.iter().map(|course| course.span_s);
        let span_s = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or((0.0, 1.0));
        for course in courses {
            (course.edges, course.span_s) = (edges.clone(), span_s);
        }
    }

    /// Does it have a response time?
    pub(crate) fn has_replies(&self) -> bool {
        self.columns.all().iter().any(|column| column.response.count() > 0)
    }

    /// What the charts show, in words: where the worst was, and what happened.
    pub(super) fn finding(&self) -> String {
        let (summary, columns) = (self.summary, &self.columns);
        let worst = columns.window().iter().max_by_key(|column| column.response.max());
        let mut facts = vec![format!("{} done/s on average", rate(summary.total.rate.completed))];
        facts.extend(worst.and_then(|column| {
            let max = quantity::time(column.response.max()?);
            Some(format!(
                "the longest response time, {max}, ended in the {} that begin at {:+.1} s",
                quantity::time((columns.width_s() * 1e9) as u64),
                column.start_s
            ))
        }));
        for outage in summary.outages.iter().take(3) {
            let name = server::name(summary, usize::from(outage.server));
            let length = outage
                .length_ns()
                .map_or("until the end".to_owned(), |ns| format!("for {}", quantity::time(ns)));
            facts.push(format!("{name} was down {length} from {:+.2} s on", self.seconds(outage.start_ns)));
        }
        facts.join("; ") + "."
    }

    /// An instant of the run, from the beginning of the window.
    fn seconds(&self, at_ns: u64) -> f64 {
        in_window_ns(self.summary, at_ns) as f64 / 1e9
    }

    /// A chart with what all have in common: warm-up and drain are grey, outages and columns in which nothing was done lie behind its own data,
    /// the edges of outages and a change of level before it.
    fn chart(
        &self,
        title: impl Into<String>,
        y: (Values, &'static str),
        height: f64,
        own: Vec<Series>,
    ) -> Chart {
        let summary = self.summary;
        let (low, high) = self.span_s;
        let mut chart = Chart::new(title, (Values::Time(low, high), ""), y, height);
        let phases = self.phases().into_iter().map(|(_, from, to)| Mark::Bar(from, to, MOST, OTHER_PHASE));
        let (mut outages, mut edges) = (Vec::new(), Vec::new());
        for Outage { start_ns, end_ns, .. } in &summary.outages {
            let [from, to] =
                [*start_ns, end_ns.unwrap_or(summary.window.drained_ns)].map(|ns| self.seconds(ns));
            let corners = [(from, LEAST), (from, MOST), (to, MOST), (to, LEAST), (from, LEAST)];
            outages.push(Mark::Bar(from, to, MOST, OUTAGE));
            edges.push(Mark::Line(corners.to_vec(), OUTAGE_EDGE));
        }
        let is_silent = |column: &&Column| {
            column.start_s < summary.window.seconds() - 1e-9 && column.activity.completed == 0
        };
        let silent: Vec<&Column> = self.columns.window().iter().filter(is_silent).collect();
        let silent = silent.chunk_by(|one, next| (next.start_s - one.end_s).abs() < 1e-6);
        let silent = silent.map(|run| Mark::Bar(run[0].start_s, run[run.len() - 1].end_s, MOST, SILENT));
        chart.background = vec![
            Series::new("", "", phases.collect()),
            Series::new("outage", "outage", outages),
            Series::new("silent", "nothing done", silent.collect()),
        ];
        chart.series = own;
        chart.push("outage", "", edges);
        let change = self.change().map(|(_, at)| Mark::Line(vec![(at, LEAST), (at, MOST)], CHANGE));
        chart.push("", "", change.into_iter().collect());
        chart
    }

    /// What the columns have before and behind the window, and from when to when.
    fn phases(&self) -> Vec<(&'static str, f64, f64)> {
        let ((start_s, end_s), window_s) = (self.columns.span_s(), self.summary.window.seconds());
        let phases = [("warm-up", start_s, 0.0), ("drain", window_s, end_s)];
        phases.into_iter().filter(|(_, from_s, to_s)| to_s > from_s).collect()
    }

    /// The change of level that was found, by the series that shows it.
    fn change(&self) -> Option<(&'static str, f64)> {
        let change = self.summary.steady.change_point()?;
        let name = match change.series {
            LevelSeries::Median => "p50 changes",
            LevelSeries::HitRatio => "hit ratio changes",
        };
        Some((name, change.at_ns as f64 / 1e9))
    }

    /// Response times: the heat map, if it is wanted, with p50, p99 and maximum.
    pub(crate) fn latencies(&self, has_heat: bool) -> Chart {
        let columns = &self.columns;
        let mut own = Vec::new();
        if has_heat {
            let map = |part: &[Column]| {
                Mark::Cells(part[0].start_s, part[part.len() - 1].end_s, cells(part, &self.edges))
            };
            let name = "share of a column's requests, light to dark";
            own.push(Series::new("heat", name, columns.chunks(usize::MAX).map(map).collect()));
        }
        let p50 = columns.pieces(|column| column.response.percentile(Quantile::P50).map(|ns| ns as f64));
        own.push(Series::new("p50", "p50", Mark::steps(p50, P50, has_heat)));
        let (name, tail) = columns.tail();
        own.push(Series::new("p99", name, Mark::steps(tail.into_iter(), P99, has_heat)));
        let max = columns.all().iter();
        let max = max.filter_map(|column| Some((column.middle_s(), column.response.max()? as f64)));
        own.push(Series::new("max", "maximum", vec![Mark::Dots(max.collect(), MAX)]));
        let y = (Values::Latency(self.edges[0], self.edges[self.edges.len() - 1]), "response time");
        let title = "Response times over time: median, 99th percentile and maximum";
        let mut chart = self.chart(title, y, HEAT_HEIGHT, own);
        let offset = (3.0, 15.0);
        chart.notes.extend(
            self.change()
                .map(|(name, at)| Note::new((at, MOST), (6.0, offset.1), Anchor::Start, Ink::Caution, name)),
        );
        chart.notes.extend(self.phases().into_iter().map(|(name, from, end)| Note {
            end,
            ..Note::new((from, MOST), offset, Anchor::Start, Ink::Soft, name)
        }));
        chart
    }

    /// What was offered, sent, done and failed per second.
    pub(crate) fn rates(&self) -> Chart {
        let columns = &self.columns;
        let line = |class, name: &str, of: fn(&Column) -> u64, stroke| {
            let pieces = columns.pieces(move |column| Some(column.per_second(of(column))));
            Series::new(class, name, Mark::steps(pieces, stroke, false))
        };
        let mut own = Vec::new();
        if self.summary.record.plan.has_open_loop() {
            own.push(line("offered", "offered/s", |column| column.activity.scheduled, OFFERED));
            own.push(line("sent", "sent/s", |column| column.activity.sent, SENT));
        }
        own.push(line("done", "done/s", |column| column.activity.completed, DONE));
        let failed = columns.all().iter().filter(|column| column.activity.failed > 0);
        let bar = |column: &Column| {
            Mark::Bar(column.start_s, column.end_s, column.per_second(column.activity.failed), FAILED)
        };
        own.push(Series::new("failed", "failed/s", failed.map(bar).collect()));
        let most = largest(&own).max(1.0) * 1.05;
        let title = "Operations per second over time: offered, sent, done and failed";
        self.chart(title, (Values::Number(most), "operations/s"), RATE_HEIGHT, own)
    }

    /// Operations that were due and had not ended, where that is known.
    fn in_system(&self) -> Option<Chart> {
        let columns = self.columns.all();
        let counts: Vec<u64> = columns.iter().map(|column| column.in_system).collect::<Option<_>>()?;
        let (start_s, end_s) = self.columns.span_s();
        let steps = columns
            .iter()
            .zip(&counts)
            .flat_map(|(column, count)| [column.start_s, column.end_s].map(|second| (second, *count as f64)));
        let places = [(start_s, LEAST)].into_iter().chain(steps).chain([(end_s, LEAST)]).collect();
        let own = Series::new("system", "in the system", vec![Mark::Area(places, BACKLOG)]);
        let title = "Operations that were due and had not ended, over time";
        Some(self.chart(title, system_axis(counts), SYSTEM_HEIGHT, vec![own]))
    }

    fn server_strip(&self, servers: &Servers, quantity: &Quantity) -> Chart {
        let (start_s, end_s) = self.span_s;
        let line = |(index, (name, pieces)): (usize, (String, Vec<ServerPiece>))| {
            let visible = || pieces.iter().filter(|piece| piece.1 > start_s && piece.0 < end_s);
            let value = |piece: &ServerPiece| (piece.0, piece.1, piece.2.as_ref().and_then(quantity.value));
            let stroke = Stroke { width: 1.5, ..result_stroke(index) };
            let mut marks = Mark::steps(visible().map(value), stroke, false);
            let silent = visible().filter(|piece| piece.2.is_none());
            marks.extend(silent.map(|piece| Mark::Bar(piece.0, piece.1, MOST, SILENT_SERVER)));
            Series::new(RESULT_CLASSES[index], name, marks)
        };
        let own: Vec<Series> = servers.lines().into_iter().enumerate().map(line).collect();
        let most = quantity.most.unwrap_or_else(|| largest(&own) * 1.1);
        let title = format!("{} over time, by the servers' own account", quantity.name);
        self.chart(title, (Values::Number(most), quantity.name), STRIP_HEIGHT, own)
    }

    /// What the client did, in pieces; `None` where nothing is known of it.
    fn client(&self) -> Option<Vec<ClientPiece>> {
        let piece = |held: &[Column]| {
            let mut sum = ClientTime::default();
            held.iter().for_each(|column| sum.merge(&column.client));
            (held[0].start_s, held[held.len() - 1].end_s, sum.shares().unwrap_or_default())
        };
        let columns = self.columns.window().len().div_ceil(CLIENT_PIECES_MAX).max(1);
        let pieces: Vec<ClientPiece> = self.columns.chunks(columns).map(piece).collect();
        pieces.iter().any(|piece| piece.2 != ClientShares::default()).then_some(pieces)
    }

    fn client_strip(&self, pieces: &[ClientPiece], strip: &ClientStrip) -> Chart {
        let (start_s, end_s) = self.span_s;
        let line = |share: fn(&ClientShares) -> Option<f64>, stroke| {
            let value = |piece: &ClientPiece| (piece.0, piece.1, share(&piece.2).map(|share| share * 100.0));
            Mark::steps(pieces.iter().map(value), stroke, false)
        };
        let across =
            |share: f64| Mark::Line([start_s, end_s].map(|x| (x, share * 100.0)).to_vec(), THRESHOLD);
        let worst = "worst worker in 100 ms: busy or delayed, delayed";
        let own = vec![
            Series::new("worst-worker", worst, line(strip.worst, WORST)),
            Series::new("client", "all workers busy, stolen from all CPUs", line(strip.all, ALL)),
            Series::new("threshold", "no time left", strip.threshold.map(across).into_iter().collect()),
        ];
        let most = (largest(&own).max(2.0) * 1.1).min(100.0);
        self.chart(strip.title, (Values::Number(most), strip.name), STRIP_HEIGHT, own)
    }

    /// The numbers of the charts, a row for each column.
    fn table(&self, servers: &Servers, has_client: bool) -> (String, Grid) {
        let client: &[&str] = if has_client { &["busy %", "run delay %", "stolen %"] } else { &[] };
        let mut headings = grid::Column::all_of_numbers(["from/s"]);
        let times = grid::Column::all_of_numbers(["p50", "p99", "p99.9", "max"]);
        headings.extend(times.into_iter().map(|column| column.with_unit(",")));
        headings.extend(grid::Column::all_of_numbers([
            "offered/s",
            "sent/s",
            "done/s",
            "failed",
            "in system",
        ]));
        headings.extend(servers.quantities().map(|quantity| grid::Column::of_numbers(quantity.name, 0)));
        headings.extend(grid::Column::all_of_numbers(client.iter().copied()));
        let decimals = if self.columns.width_s() < 0.95 { 1 } else { 0 };
        let or_dash = |text: Option<String>| text.unwrap_or("-".to_owned());
        let mut table = TimeTable::new(headings);
        for column in self.columns.all() {
            let activity = &column.activity;
            let times_ns = [Quantile::P50, Quantile::P99, Quantile::P999]
                .map(|quantile| column.response.percentile(quantile));
            let counts = [activity.scheduled, activity.sent, activity.completed];
            let mut row = vec![Value::Text(format!("{:.decimals$}", column.start_s + 0.0))];
            row.extend(times_ns.into_iter().chain([column.response.max()]).map(Value::Time));
            row.extend(counts.map(|count| Value::Text(rate(column.per_second(count)))));
            row.push(Value::Text(activity.failed.to_string()));
            row.push(Value::Text(or_dash(column.in_system.map(|count| count.to_string()))));
            let span = servers.together(column.middle_s());
            row.extend(servers.quantities().map(|quantity| {
                let value = span.as_ref().and_then(quantity.value);
                Value::Text(or_dash(value.map(quantity.text)))
            }));
            let ClientShares { busy, run_delay, stolen, .. } = column.client.shares().unwrap_or_default();
            let shares = client.iter().zip([busy, run_delay, stolen]);
            row.extend(
                shares.map(|(_, share)| {
                    Value::Text(or_dash(share.map(|share| format!("{:.1}", share * 100.0))))
                }),
            );
            table.push(Style::Plain, row);
        }
        let width = quantity::time((self.columns.width_s() * 1e9).round() as u64);
        let caption =
            format!("Pieces of {width} from the beginning of the window; those before it are warm-up");
        (caption, table.grid(None))
    }
}

/// The largest value of lines, and of bars that end below the top.
fn largest(series: &[Series]) -> f64 {
    let values = series.iter().flat_map(|series| &series.marks).flat_map(|mark| match mark {
        Mark::Line(places, _) => places.iter().map(|place| place.1).collect(),
        Mark::Bar(.., value, _) => vec![*value],
        _ => Vec::new(),
    });
    values.filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// How many there are in each column decides how the axis spreads them.
fn system_axis(mut counts: Vec<u64>) -> (Values, &'static str) {
    counts.sort_unstable();
    let [median, most] = [counts.len() / 2, counts.len().saturating_sub(1)]
        .map(|place| counts.get(place).map_or(1.0, |count| (*count).max(1) as f64));
    match most > SYSTEM_RATIO * median {
        true => (Values::Ratio(most * 1.5), "in the system, log"),
        false => (Values::Number(most * 1.05), "in the system"),
    }
}

// ---- servers --------------------------------------------------------------------------------------------------------------

/// More servers have one line together.
const LINES_MAX: usize = 4;
const SILENT_SERVER: Fill = Fill { opacity: 0.5, ..Fill::textured(Ink::Soft, Texture::Hatched) };
/// An answer that comes so many times later than is usual ends a silence. Servers are asked once a second; of a long run fewer answers are
/// kept, evenly spread.
const SILENCE: f64 = 2.5;
/// Pieces of one server; counts of neighbours are added where there are more.
const SERVER_PIECES_MAX: usize = 300;

/// What a strip of servers shows.
struct Quantity {
    name: &'static str,
    value: fn(&ServerSpan) -> Option<f64>,
    text: fn(f64) -> String,
    /// The end of its axis, where that does not depend on values.
    most: Option<f64>,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity {
        name: "server CPU us/request",
        value: |span| span.cpu_ns_per_request().map(|ns| ns / 1e3),
        text: quantity::significant,
        most: None,
    },
    Quantity {
        name: "server hit %",
        value: |span| span.hit_ratio().map(|share| share * 100.0),
        text: |percent| format!("{percent:.1}"),
        most: Some(100.0),
    },
    Quantity {
        name: "evictions/s",
        value: |span| span.evictions.map(|count| span.per_second(count)),
        text: rate,
        most: None,
    },
];

/// From one answer of a server to another, both in seconds from the beginning of the window; `None` where it gave none, or its counters began
/// anew.
type ServerPiece = (f64, f64, Option<ServerSpan>);

/// Servers by name, each with its pieces in the order of time.
struct Servers(Vec<(String, Vec<ServerPiece>)>);

impl Servers {
    fn of(summary: &Summary) -> Self {
        let records = server::polled_server_names(summary).zip(&summary.record.run.server_records);
        Self(records.map(|(name, record)| (name, server_pieces(summary, record))).collect())
    }

    fn spans(&self) -> impl Iterator<Item = &ServerSpan> {
        self.0.iter().flat_map(|(_, pieces)| pieces).filter_map(|piece| piece.2.as_ref())
    }

    /// Why there is no strip.
    fn reason(&self, summary: &Summary) -> Option<String> {
        let trouble = server::troubles(summary).next().map(|(_, _, why)| format!(": {why}"));
        let reason = format!("No statistics of servers over time{}.", trouble.unwrap_or_default());
        self.spans().next().is_none().then_some(reason)
    }

    /// All servers together at an instant, of those that told of it.
    fn together(&self, at_s: f64) -> Option<ServerSpan> {
        let of_server = |(_, pieces): &(String, Vec<ServerPiece>)| {
            let piece = pieces.get(pieces.partition_point(|piece| piece.1 <= at_s))?;
            piece.2.filter(|_| piece.0 <= at_s)
        };
        ServerSpan::sum(self.0.iter().filter_map(of_server).map(Some))
    }

    /// What is drawn: that of which any server told, and evictions only where there were any.
    fn quantities(&self) -> impl Iterator<Item = &'static Quantity> {
        QUANTITIES.iter().filter(|quantity| self.spans().filter_map(quantity.value).any(|value| value > 0.0))
    }

    /// What has a line, with its name.
    fn lines(&self) -> Vec<(String, Vec<ServerPiece>)> {
        match self.0.as_slice() {
            [(_, pieces)] => vec![("by the server's own account".to_owned(), pieces.clone())],
            // Servers are asked at the same time.
            [(_, first), ..] if self.0.len() > LINES_MAX => {
                let together =
                    |(from, to, _): &ServerPiece| (*from, *to, self.together(f64::midpoint(*from, *to)));
                vec![(format!("{} servers together", self.0.len()), first.iter().map(together).collect())]
            }
            several => several.to_vec(),
        }
    }
}

/// The pieces of one server, in the order of time.
fn server_pieces(summary: &Summary, record: &ServerRecord) -> Vec<ServerPiece> {
    let spans: Vec<ServerSpan> = record.spans().collect();
    let mut lengths: Vec<u64> = spans.iter().map(|span| span.end_ns - span.start_ns).collect();
    lengths.sort_unstable();
    let usual_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let is_long = |span: &ServerSpan| (span.end_ns - span.start_ns) as f64 > SILENCE * usual_ns as f64;
    let seconds = |ns: u64| in_window_ns(summary, ns) as f64 / 1e9;
    let piece = |held: &[ServerSpan]| {
        // Restarts and gaps make it unknown.
        let sum = ServerSpan::sum(held.iter().map(|span| Some(*span)))?;
        let span = Some(sum).filter(|sum| sum.requests.is_some() && !held.iter().any(is_long));
        Some((seconds(sum.start_ns), seconds(sum.end_ns), span))
    };
    spans.chunks(spans.len().div_ceil(SERVER_PIECES_MAX).max(1)).filter_map(piece).collect()
}

// ---- the client -----------------------------------------------------------------------------------------------------------

/// Pieces of the window; neighbouring columns are added where there are more.
const CLIENT_PIECES_MAX: usize = 75;
const ALL: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const WORST: Stroke = Stroke { ink: Ink::Series(1), width: 1.0, dash: &[4.0, 2.0] };
const THRESHOLD: Stroke = Stroke { ink: Ink::Invalid, width: 1.0, dash: &[2.0, 3.0] };

/// From, to, both in seconds from the beginning of the window, and what the client did.
type ClientPiece = (f64, f64, ClientShares);

/// A strip of the client: what one worker and all of them did, and a share at which a line is drawn across.
struct ClientStrip {
    title: &'static str,
    name: &'static str,
    threshold: Option<f64>,
    worst: fn(&ClientShares) -> Option<f64>,
    all: fn(&ClientShares) -> Option<f64>,
}

const STRIPS: [ClientStrip; 2] = [
    ClientStrip {
        title: "Share of time in which workers were busy, over time",
        name: "workers busy %",
        threshold: Some(BUSY),
        worst: |shares| shares.busiest,
        all: |shares| shares.busy,
    },
    ClientStrip {
        title: "Share of time that others took from workers and CPUs, over time",
        name: "run delay, stolen %",
        threshold: None,
        worst: |shares| shares.most_delayed,
        all: |shares| shares.stolen,
    },
];

// ---- columns and cells --------------------------------------------------------------------------------------------------

/// As many as a chart has room for.
const COLUMNS_MAX: u64 = 300;
/// Where the user says how long they are, and wants to look closely.
const ROWS_MAX: u64 = 3_000;
/// Cells of a heat map to a factor of ten.
const PER_DECADE: u32 = 12;
/// Columns to a piece of a high percentile.
const TAIL_COLUMNS: [usize; 5] = [1, 2, 5, 10, 20];

/// From, to, both in seconds from the beginning of the measured window, and a value, if there is one.
type Piece = (f64, f64, Option<f64>);

/// A piece of time.
#[derive(Clone, Debug)]
struct Column {
    /// Seconds from the beginning of the measured window.
    start_s: f64,
    /// Of the same.
    end_s: f64,
    /// Response times of operations that completed in it: those of the window, or of the warm-up where these are recorded.
    response: SparseHistogram,
    /// What went on, but for the preload.
    activity: Activity,
    /// Operations that were due and had not ended when it ended; `None` where that is not known.
    in_system: Option<u64>,
    /// What workers and their CPUs did.
    client: ClientTime,
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
            activity.merge(&slice.activity.without(&slice.preload));
        }
        let rows = slices.iter().flat_map(|slice| slice.rows.iter().map(|row| &row.response));
        let warmup = slices.iter().map(|slice| &slice.warmup_response);
        let response = SparseHistogram::merge_all(rows.chain(warmup), sum).into_owned();
        let unsent = slices.iter().flat_map(|slice| &slice.servers).map(|server| server.unsent).sum();
        let in_system = backlog.after(&activity, unsent);
        Self { start_s, end_s, response, activity, in_system, client }
    }

    /// A count as a rate.
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.end_s - self.start_s)
    }

    fn middle_s(&self) -> f64 {
        f64::midpoint(self.start_s, self.end_s)
    }
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
    fn of(summary: &Summary, columns_max: u64) -> Self {
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
    fn all(&self) -> &[Column] {
        &self.all
    }

    /// Those of the window.
    fn window(&self) -> &[Column] {
        &self.all[self.lead..]
    }

    /// Pieces of so many columns, none of which lies in warm-up and window.
    fn chunks(&self, columns: usize) -> impl Iterator<Item = &[Column]> {
        let (warmup, window) = self.all.split_at(self.lead);
        warmup.chunks(columns).chain(window.chunks(columns))
    }

    /// A value of each column.
    fn pieces<'a>(&'a self, value: impl Fn(&Column) -> Option<f64> + 'a) -> impl Iterator<Item = Piece> + 'a {
        self.all.iter().map(move |column| (column.start_s, column.end_s, value(column)))
    }

    /// From the first to the last, in seconds.
    fn span_s(&self) -> (f64, f64) {
        (self.all[0].start_s, self.all[self.all.len() - 1].end_s)
    }

    /// A high percentile over time, in nanoseconds, of pieces of so many columns that most of them have requests enough for it; and its name
    /// with the length of pieces where they are longer than columns.
    fn tail(&self) -> (String, Vec<Piece>) {
        let mut sum = Histogram::new();
        let mut pieces_of = |quantile: Quantile, columns: usize| {
            let piece = |held: &[Column]| {
                let response =
                    SparseHistogram::merge_all(held.iter().map(|column| &column.response), &mut sum);
                let ns = response.percentile(quantile).map(|ns| ns as f64);
                (held[0].start_s, held[held.len() - 1].end_s, ns)
            };
            self.chunks(columns).map(piece).collect::<Vec<Piece>>()
        };
        let quantiles = [Quantile::P99, Quantile::P95, Quantile::P90];
        let choices =
            quantiles.into_iter().flat_map(|quantile| TAIL_COLUMNS.map(|columns| (quantile, columns)));
        for (quantile, columns) in choices {
            let pieces = pieces_of(quantile, columns);
            let given = pieces.iter().filter(|piece| piece.2.is_some()).count();
            if 3 * given * columns >= 2 * self.window().len() {
                let width_ns = (self.width_s() * columns as f64 * 1e9).round() as u64;
                let of =
                    if columns > 1 { format!(" of {}", quantity::time(width_ns)) } else { String::new() };
                return (format!("{quantile}{of}"), pieces);
            }
        }
        (Quantile::P90.to_string(), pieces_of(Quantile::P90, 1))
    }

    /// How long one of the window is, in seconds.
    fn width_s(&self) -> f64 {
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
pub fn column_counts(buckets: impl Iterator<Item = (usize, u64)>) -> Vec<ColumnCount> {
    let count = |(bucket, count)| {
        let values = bucket_values(bucket);
        let [low, high] = [values.start(), values.end()].map(|ns| (*ns).max(1) as f64);
        ColumnCount { low, high, count }
    };
    buckets.map(count).collect()
}

/// The heat map of columns that lie side by side.
fn cells(columns: &[Column], edges: &[f64]) -> Cells {
    heat_map(
        &columns.iter().map(|column| column_counts(column.response.buckets())).collect::<Vec<_>>(),
        edges,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_leaves_the_usual_count_visible() {
        let table = [
            (vec![], "in the system"),
            (vec![0, 0, 0], "in the system"),
            (vec![3, 4, 400], "in the system"),
            (vec![3, 4, 401], "in the system, log"),
            (vec![0, 0, 0, 1_200], "in the system, log"),
            (vec![1_000, 2_000, 3_000], "in the system"),
        ];
        for (counts, expected) in table {
            assert_eq!(system_axis(counts.clone()).1, expected, "{counts:?}");
        }
    }
}
