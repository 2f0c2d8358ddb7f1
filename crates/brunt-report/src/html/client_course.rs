//! What workers and CPUs of the client did over time, in two strips: how busy workers were, and what others took from workers and CPUs.
//!
//! The first strip has a line where a worker has no time left ([`BUSY`]). That is judged by the whole window, so that a piece of it above the
//! line decides nothing. Invariant: where nothing is known a line has a gap, not a value.

use super::columns::{Column, Columns};
use super::course::{Course, draw, frame};
use super::frame::{self as chart, Frame, Key, Size, Values};
use brunt_picture::{Ink, Point, Shape, Stroke};
use brunt_stats::usage::{BUSY, ClientShares, ClientTime};

const HEIGHT: f64 = 64.0;
/// Pieces of the window; neighbouring columns are added where there are more.
const PIECES_MAX: usize = 75;
const ALL: Stroke = Stroke::solid(Ink::Series(0), 1.5);
const WORST: Stroke = Stroke { ink: Ink::Series(1), width: 1.0, dash: &[4.0, 2.0] };
const THRESHOLD: Stroke = Stroke { ink: Ink::Invalid, width: 1.0, dash: &[2.0, 3.0] };

/// What a line shows: a class, a stroke, and its value in percent.
struct Line {
    class: &'static str,
    stroke: Stroke,
    percent: fn(&ClientShares) -> Option<f64>,
}

/// A strip: two lines on one axis.
struct Strip {
    title: &'static str,
    name: &'static str,
    /// Shares at which a line is drawn across, if any.
    thresholds: &'static [f64],
    lines: [Line; 2],
}

const STRIPS: [Strip; 2] = [
    Strip {
        title: "Share of time in which workers were busy, over time",
        name: "workers busy %",
        thresholds: &[BUSY],
        lines: [
            Line { class: "worst-worker", stroke: WORST, percent: |shares| percent(shares.busiest) },
            Line { class: "client", stroke: ALL, percent: |shares| percent(shares.busy) },
        ],
    },
    Strip {
        title: "Share of time that others took from workers and CPUs, over time",
        name: "run delay, stolen %",
        thresholds: &[],
        lines: [
            Line { class: "worst-worker", stroke: WORST, percent: |shares| percent(shares.most_delayed) },
            Line { class: "client", stroke: ALL, percent: |shares| percent(shares.stolen) },
        ],
    },
];

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| share * 100.0)
}

impl Strip {
    /// The upper end of its axis, above which there is no value and no threshold.
    fn most(&self, pieces: &[Piece]) -> f64 {
        let values =
            pieces.iter().flat_map(|piece| self.lines.iter().map(|line| (line.percent)(&piece.shares)));
        let most =
            values.flatten().fold(self.thresholds.iter().fold(2.0, |_, share| share * 100.0), f64::max);
        (most * 1.1).min(100.0)
    }
}

/// A piece of time, in seconds from the beginning of the window.
struct Piece {
    start_s: f64,
    end_s: f64,
    shares: ClientShares,
}

/// Through the middles of the pieces that have a value, from the beginning of the first to the end of the last.
fn points(frame: &Frame, pieces: &[Piece], of: impl Fn(&ClientShares) -> Option<f64>) -> Vec<Point> {
    let known = || pieces.iter().filter_map(|piece| Some((piece, of(&piece.shares)?)));
    let first = known().next().map(|(piece, value)| frame.at(piece.start_s, value));
    let middles = known().map(|(piece, value)| frame.at(f64::midpoint(piece.start_s, piece.end_s), value));
    let last = known().last().map(|(piece, value)| frame.at(piece.end_s, value));
    first.into_iter().chain(middles).chain(last).collect()
}

/// The client over time.
pub(super) struct ClientCourse(Vec<Piece>);

impl ClientCourse {
    pub(super) fn of(course: &Course<'_>) -> Self {
        let Columns { warmup, window } = &course.columns;
        let columns = window.len().div_ceil(PIECES_MAX).max(1);
        let piece = |held: &[Column]| {
            let mut sum = ClientTime::default();
            held.iter().for_each(|column| sum.merge(&column.client));
            Piece {
                start_s: held[0].start_s,
                end_s: held[held.len() - 1].end_s,
                shares: sum.shares().unwrap_or_default(),
            }
        };
        Self(warmup.chunks(columns).chain(window.chunks(columns)).map(piece).collect())
    }

    /// Why there is no strip.
    pub(super) fn reason(&self) -> Option<&'static str> {
        let is_known = self.0.iter().any(|piece| piece.shares != ClientShares::default());
        (!is_known).then_some("How busy the client was over time is not in this result.")
    }

    /// A chart for each strip.
    pub(super) fn strips(&self, course: &Course<'_>) -> Vec<Frame> {
        let strips = STRIPS.iter().filter(|_| self.reason().is_none());
        strips.map(|strip| self.strip(course, strip)).collect()
    }

    fn strip(&self, course: &Course<'_>, strip: &Strip) -> Frame {
        let values = (Values::Number(strip.most(&self.0)), strip.name);
        draw(course, frame(course, strip.title, Size::page(HEIGHT), values), |picture, frame| {
            picture.group("threshold", |picture| {
                for share in strip.thresholds {
                    let y = frame.y.pixel(share * 100.0);
                    picture.line(Point { x: frame.plot.x, y }, Point { x: frame.plot.right(), y }, THRESHOLD);
                }
            });
            for Line { class, stroke, percent } in &strip.lines {
                picture.group(class, |picture| {
                    // A gap is a worker that stood still, or what the host does not tell.
                    let is_known = |piece: &Piece| percent(&piece.shares).is_some();
                    for pieces in self.0.chunk_by(|one, next| is_known(one) == is_known(next)) {
                        let points = points(frame, pieces, percent);
                        if !points.is_empty() {
                            picture.push(Shape::Polyline { points, stroke: *stroke });
                        }
                    }
                });
            }
        })
    }

    /// The legend of the strips.
    pub(super) fn keys(&self) -> Vec<Key> {
        if self.reason().is_some() {
            return Vec::new();
        }
        let key = |name: &str, class, stroke| Key {
            name: name.to_owned(),
            class,
            sample: chart::line_sample(stroke),
        };
        vec![
            key("all workers busy, stolen from all CPUs", "client", ALL),
            key("worst worker in 100 ms: busy or delayed, delayed", "worst-worker", WORST),
            key("no time left", "threshold", THRESHOLD),
        ]
    }

    /// The columns of the table.
    pub(super) fn headings(&self) -> impl Iterator<Item = &'static str> + '_ {
        ["busy %", "run delay %", "stolen %"].into_iter().filter(|_| self.reason().is_none())
    }

    /// Their cells.
    pub(super) fn cells(&self, column: &Column) -> impl Iterator<Item = String> + '_ {
        let ClientShares { busy, run_delay, stolen, .. } = column.client.shares().unwrap_or_default();
        let cells = [busy, run_delay, stolen]
            .map(|share| percent(share).map_or("-".to_owned(), |percent| format!("{percent:.1}")));
        cells.into_iter().filter(|_| self.reason().is_none())
    }
}
