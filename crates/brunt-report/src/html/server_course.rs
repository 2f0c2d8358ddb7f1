//! What servers said of themselves over time: CPU time per request, keys found, evictions, each in a strip of its own.
//!
//! Invariant: a piece of time lies between two answers of a server; where it gave none, or its counters began anew, there is no line.

use super::course::{Course, draw, frame, steps, strip};
use super::frame::{self as chart, Frame, Key, Size, Values};
use crate::instant::in_window_ns;
use crate::quantity;
use crate::quantity::rate;
use crate::server;
use brunt_picture::{Fill, Ink, Shape, Stroke, Texture};
use brunt_stats::server_stats::{ServerRecord, ServerSpan};
use brunt_stats::summary::Summary;

const HEIGHT: f64 = 64.0;
/// More servers have one line together.
const LINES_MAX: usize = 4;
const SILENT: Fill = Fill { opacity: 0.5, ..Fill::textured(Ink::Soft, Texture::Hatched) };
/// An answer that comes so many times later than is usual ends a silence. Servers are asked once a second; of a long run fewer answers are
/// kept, evenly spread.
const SILENCE: f64 = 2.5;
/// Pieces of one server; counts of neighbours are added where there are more.
const PIECES_MAX: usize = 300;

/// A piece of time between two answers, in seconds from the beginning of the window.
struct Piece {
    start_s: f64,
    end_s: f64,
    span: ServerSpan,
    is_silent: bool,
}

/// The pieces of one server, in the order of time.
fn pieces(summary: &Summary, record: &ServerRecord) -> Vec<Piece> {
    let spans: Vec<ServerSpan> = record.spans().collect();
    let mut lengths: Vec<u64> = spans.iter().map(|span| span.end_ns - span.start_ns).collect();
    lengths.sort_unstable();
    let usual_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let is_long = |span: &ServerSpan| (span.end_ns - span.start_ns) as f64 > SILENCE * usual_ns as f64;
    let seconds = |ns: u64| in_window_ns(summary, ns) as f64 / 1e9;
    let piece = |held: &[ServerSpan]| {
        // Restarts and gaps make it unknown.
        let span = ServerSpan::sum(held.iter().map(|span| Some(*span)))?;
        let is_silent = span.requests.is_none() || held.iter().any(is_long);
        Some(Piece { start_s: seconds(span.start_ns), end_s: seconds(span.end_ns), span, is_silent })
    };
    spans.chunks(spans.len().div_ceil(PIECES_MAX).max(1)).filter_map(piece).collect()
}

/// The servers of a run over time.
pub(super) struct ServerCourse {
    /// By server: its name and its pieces, in the order of time.
    servers: Vec<(String, Vec<Piece>)>,
    /// Why there is nothing to draw.
    reason: Option<String>,
}

/// A step of a line.
#[derive(Clone, Copy)]
struct Step {
    start_s: f64,
    end_s: f64,
    value: Option<f64>,
    is_silent: bool,
}

/// What a strip shows.
#[derive(Clone, Copy)]
enum Quantity {
    Cpu,
    Hits,
    Evictions,
}

impl Quantity {
    const ALL: [Self; 3] = [Self::Cpu, Self::Hits, Self::Evictions];

    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "server CPU us/request",
            Self::Hits => "server hit %",
            Self::Evictions => "evictions/s",
        }
    }

    fn value(self, span: &ServerSpan) -> Option<f64> {
        match self {
            Self::Cpu => span.cpu_ns_per_request().map(|ns| ns / 1e3),
            Self::Hits => span.hit_ratio().map(|share| share * 100.0),
            Self::Evictions => span.evictions.map(|count| span.per_second(count)),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Cpu => quantity::significant(value),
            Self::Hits => format!("{value:.1}"),
            Self::Evictions => rate(value),
        }
    }
}

impl ServerCourse {
    pub(super) fn of(summary: &Summary) -> Self {
        let records = &summary.record.run.server_records;
        let servers = records
            .iter()
            .enumerate()
            .map(|(index, record)| (server::polled_server_name(summary, index), pieces(summary, record)));
        let servers: Vec<(String, Vec<Piece>)> = servers.collect();
        let is_any = servers.iter().any(|(_, pieces)| pieces.iter().any(|piece| !piece.is_silent));
        let reason = (!is_any).then(|| {
            let trouble = server::troubles(summary).next().map(|(_, _, why)| format!(": {why}"));
            format!("No statistics of servers over time{}.", trouble.unwrap_or_default())
        });
        Self { servers, reason }
    }

    /// Why there is no strip.
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.clone()
    }

    fn is_together(&self) -> bool {
        self.servers.len() > LINES_MAX
    }

    /// All servers together at an instant, of those that told of it.
    fn together(&self, at_s: f64) -> Option<ServerSpan> {
        let of_server = |(_, pieces): &(String, Vec<Piece>)| {
            let after = pieces.partition_point(|piece| piece.end_s <= at_s);
            let piece = pieces.get(after).filter(|piece| piece.start_s <= at_s);
            piece.filter(|piece| !piece.is_silent).map(|piece| piece.span)
        };
        ServerSpan::sum(self.servers.iter().filter_map(of_server).map(Some))
    }

    /// What is drawn: those of which any server told, and of evictions only where there were any.
    fn quantities(&self) -> impl Iterator<Item = Quantity> + '_ {
        Quantity::ALL.into_iter().filter(|quantity| self.most(*quantity).is_some_and(|most| most > 0.0))
    }

    fn spans(&self) -> impl Iterator<Item = &ServerSpan> {
        let pieces = self.servers.iter().flat_map(|(_, pieces)| pieces);
        pieces.filter(|piece| !piece.is_silent).map(|piece| &piece.span)
    }

    fn most(&self, quantity: Quantity) -> Option<f64> {
        self.spans().filter_map(|span| quantity.value(span)).reduce(f64::max)
    }

    /// The lines of a quantity.
    fn lines(&self, quantity: Quantity) -> Vec<Vec<Step>> {
        let step = |piece: &Piece, span: Option<&ServerSpan>| Step {
            start_s: piece.start_s,
            end_s: piece.end_s,
            value: span.and_then(|span| quantity.value(span)),
            is_silent: span.is_none(),
        };
        let value = |piece: &Piece| step(piece, Some(&piece.span).filter(|_| !piece.is_silent));
        if !self.is_together() {
            return self.servers.iter().map(|(_, pieces)| pieces.iter().map(value).collect()).collect();
        }
        let whole = |piece: &Piece| {
            let at_s = f64::midpoint(piece.start_s, piece.end_s);
            step(piece, self.together(at_s).as_ref())
        };
        // Servers are asked at the same time.
        self.servers.first().map(|(_, pieces)| pieces.iter().map(whole).collect()).into_iter().collect()
    }

    /// A chart for each quantity.
    pub(super) fn strips(&self, course: &Course<'_>) -> Vec<Frame> {
        let strips = self.quantities().map(|quantity| {
            let most = match quantity {
                Quantity::Hits => 100.0,
                _ => self.most(quantity).unwrap_or(1.0) * 1.1,
            };
            let title = format!("{} over time, by the servers' own account", quantity.name());
            let axes = frame(course, &title, Size::page(HEIGHT), (Values::Number(most), quantity.name()));
            draw(course, axes, |picture, frame| {
                for (index, line) in self.lines(quantity).into_iter().enumerate() {
                    let (start_s, end_s) = course.span_s;
                    let visible =
                        line.into_iter().filter(|step| step.end_s > start_s && step.start_s < end_s);
                    let (from, to) =
                        (|step: &Step| step.start_s.max(start_s), |step: &Step| step.end_s.min(end_s));
                    let visible: Vec<Step> = visible.collect();
                    picture.group(chart::RESULT_CLASSES[index], |picture| {
                        for step in visible.iter().filter(|step| step.is_silent) {
                            let area = strip(frame, from(step), to(step));
                            picture.push(Shape::Rectangle { area, fill: SILENT });
                        }
                        let pieces = visible.iter().map(|step| (from(step), to(step), step.value));
                        steps(picture, frame, pieces, stroke(index), false);
                    });
                }
            })
        });
        strips.collect()
    }

    /// The legend of the strips.
    pub(super) fn keys(&self) -> Vec<Key> {
        if self.reason.is_some() {
            return Vec::new();
        }
        let key = |name: String, index: usize| Key {
            name,
            class: chart::RESULT_CLASSES[index],
            sample: chart::line_sample(stroke(index)),
        };
        match self.servers.as_slice() {
            [_] => vec![key("by the server's own account".to_owned(), 0)],
            several if self.is_together() => vec![key(format!("{} servers together", several.len()), 0)],
            several => (0..).zip(several).map(|(index, (name, _))| key(name.clone(), index)).collect(),
        }
    }

    /// The columns of the table.
    pub(super) fn headings(&self) -> impl Iterator<Item = &'static str> {
        self.quantities().map(Quantity::name)
    }

    /// Their cells at an instant.
    pub(super) fn cells(&self, at_s: f64) -> impl Iterator<Item = String> {
        let span = self.together(at_s);
        self.quantities().map(move |quantity| {
            let value = span.as_ref().and_then(|span| quantity.value(span));
            value.map_or("-".to_owned(), |value| quantity.text(value))
        })
    }
}

fn stroke(index: usize) -> Stroke {
    Stroke { width: 1.5, ..chart::result_stroke(index) }
}
