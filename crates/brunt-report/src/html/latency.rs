//! The table of latencies: that of a long report, with a picture of the interval in each cell of a response time.

use super::markup::Markup;
use crate::grid::Grid;
use crate::layout::Layout;
use crate::run_document::latency::{Row, rows};
use crate::run_document::latency::{full_tables, is_unbounded};
use brunt_picture::{Area, Fill, Ink, Picture, Point, Scale, Shape, Stroke, Texture};
use brunt_plan::quantile::Quantile;
use brunt_stats::summary::Summary;

const WIDTH: f64 = 84.0;
const HEIGHT: f64 = 12.0;
const CLIENT: Fill = Fill::textured(Ink::Soft, Texture::Hatched);

pub(super) fn section(markup: &mut Markup, summary: &Summary) {
    markup.raw("<section id=\"latency\">\n<h2>Latency by operation</h2>\n");
    markup.raw(
        "<p>Response times count from the instant a request was due, service times from the instant it was sent; the send lag lies between them. \
         Rows below a response time: the ends of its 95 % interval, and ",
    );
    let basis = summary.client_basis();
    markup.text(&format!("with {} the {}", basis.symbol(), basis.describe()));
    markup.raw(".</p>\n");
    let quantiles = summary.record.plan.shown_quantiles();
    let (rows, mut shown) = (rows(summary), 0);
    let axis = axis(&rows, &quantiles);
    for grid in full_tables(summary, &Layout::default(), &quantiles) {
        let times = grid.headings().skip(1).take_while(|(heading, _)| heading.starts_with('p')).count();
        let quantiles = &quantiles[shown..shown + times];
        shown += times;
        table(markup, summary, &grid, &rows, quantiles, axis);
    }
    markup.raw("</section>\n");
}

/// One table, whose rows of response times are these.
fn table(
    markup: &mut Markup,
    summary: &Summary,
    grid: &Grid,
    rows: &[Row<'_>],
    quantiles: &[Quantile],
    axis: (f64, f64),
) {
    markup
        .raw("<div class=\"wide\"><table class=\"latency\" aria-label=\"Latency by operation\"><thead><tr>");
    markup.headings(grid);
    markup.raw("<tbody>\n");
    let mut rows = rows.iter();
    for cells in grid.rows() {
        let mut row = None;
        for (index, cell) in cells.enumerate() {
            if index == 0 {
                row = if cell.starts_with(' ') { None } else { rows.next() };
                markup.raw(if row.is_some() { "<tr class=response>" } else { "<tr class=below>" });
                markup.raw("<th scope=row>");
                markup.text(cell.trim_start());
                continue;
            }
            // Behind the percentiles is the maximum.
            markup.raw(if index <= quantiles.len() + 1 { "<td class=time>" } else { "<td>" });
            markup.text(cell);
            let held = row.zip(quantiles.get(index - 1)).filter(|_| !is_unbounded(summary));
            if let Some(held) = held.and_then(|(row, quantile)| Whisker::of(row, *quantile)) {
                markup.raw("<span class=whisker aria-hidden=true>");
                markup.picture(&whisker(&held, axis));
                markup.raw("</span>");
            }
        }
        markup.raw("\n");
    }
    markup.raw("</table></div>\n");
}

/// From the least of all ends of intervals to the largest, in nanoseconds.
fn axis(rows: &[Row<'_>], quantiles: &[Quantile]) -> (f64, f64) {
    let ends = rows.iter().flat_map(|row| {
        let values = quantiles
            .iter()
            .filter_map(|quantile| row.summary.latency.response.summary.percentile_ns(*quantile));
        let intervals = row.summary.intervals.iter().flat_map(|held| [Some(held.low_ns), held.high_ns]);
        values.chain(intervals.flatten())
    });
    let ends: Vec<u64> = ends.collect();
    let least = ends.iter().min().copied().unwrap_or(1).max(1);
    (least as f64, ends.iter().max().copied().unwrap_or(10) as f64)
}

/// What the small picture of a cell shows, in nanoseconds: where a percentile lies on an axis that all cells share, its interval, and its
/// client error.
struct Whisker {
    value_ns: u64,
    low_ns: u64,
    /// `None`: without end.
    high_ns: Option<u64>,
    client_ns: u64,
}

impl Whisker {
    fn of(row: &Row<'_>, quantile: Quantile) -> Option<Self> {
        let value_ns = row.summary.latency.response.summary.percentile_ns(quantile)?;
        let held = row.summary.intervals.iter().find(|held| held.quantile == quantile)?;
        let client_ns = row.summary.client_error_ns(quantile).unwrap_or(0);
        Some(Self { value_ns, low_ns: held.low_ns, high_ns: held.high_ns, client_ns })
    }
}

/// Draws it on an axis from one latency to another.
fn whisker(whisker: &Whisker, (low_ns, high_ns): (f64, f64)) -> Picture {
    let scale = Scale::logarithmic((low_ns, high_ns), (2.0, WIDTH - 2.0));
    let middle = HEIGHT / 2.0;
    let x = |ns: u64| scale.pixel(ns.max(1) as f64);
    let end = whisker.high_ns.map_or(WIDTH, x);
    let value = x(whisker.value_ns);
    let mut picture = Picture::new(WIDTH as u32, HEIGHT as u32, Ink::Page, "");
    let axis = Stroke::solid(Ink::Grid, 1.0);
    picture.line(Point { x: 0.0, y: HEIGHT - 0.5 }, Point { x: WIDTH, y: HEIGHT - 0.5 }, axis);
    let client = x(whisker.value_ns.saturating_sub(whisker.client_ns));
    let area = Area { x: client, y: 2.0, width: value - client, height: HEIGHT - 4.0 };
    if area.width > 0.5 {
        picture.push(Shape::Rectangle { area, fill: CLIENT });
    }
    let interval = Stroke {
        ink: Ink::Series(0),
        width: 2.0,
        dash: if whisker.high_ns.is_some() { &[] } else { &[3.0, 2.0] },
    };
    picture.line(Point { x: x(whisker.low_ns), y: middle }, Point { x: end, y: middle }, interval);
    picture.line(
        Point { x: value, y: 1.0 },
        Point { x: value, y: HEIGHT - 1.0 },
        Stroke::solid(Ink::Text, 2.0),
    );
    picture
}
