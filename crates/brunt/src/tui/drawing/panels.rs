//! The right side of a large screen: percentiles as a curve, and servers, workers and checks one below the other.
//!
//! Not the tables' lines, which are those of [`brunt_report::run_document::so_far`]. Invariant: lines that a panel does not need are the next one's.

use super::{Screen, short};
use brunt_plan::quantile::Quantile;
use brunt_report::layout::Layout;
use brunt_report::run_document::so_far;
use brunt_stats::histogram::Histogram;
use brunt_stats::live_run::{RunSoFar, Second};
use ratatui::style::{Modifier, Style};

/// A smaller screen has none.
const SCREEN_WIDTH_MIN: u16 = 118;
const SCREEN_HEIGHT_MIN: u16 = 36;
/// With the gap to the left side.
pub(super) const WIDTH: u16 = 40;
pub(super) const GAP: u16 = 2;
/// Lines of each, with an empty one below; checks have the rest.
const SPECTRUM_LINES: usize = 14;
const TABLE_LINES: usize = 8;
/// Columns left of the curve, for its times.
const SCALE_WIDTH: usize = 7;
/// Rows are no closer than the two digits of their names tell apart.
const ROW_FACTOR_MIN: f64 = 1.25;
/// Percentiles that are named below the curve; the first and the last are its ends.
const NAMED: [Quantile; 5] = Quantile::SHOWN;

/// Is there room for panels?
pub(super) fn fit(width: u16, height: u16) -> bool {
    width >= SCREEN_WIDTH_MIN && height >= SCREEN_HEIGHT_MIN
}

/// Draws all of them on a screen that is theirs.
pub(super) fn draw(screen: &mut Screen<'_>, so_far: &RunSoFar, layout: &Layout) {
    let summary = so_far.summary();
    let done_per_s = so_far.last_second().map(Second::answered_per_s).unwrap_or_default();
    let workers = so_far.last_second().map(|second| second.workers.as_slice()).unwrap_or_default();
    let (columns, lines) = (usize::from(screen.area.width), usize::from(screen.area.height));
    let layout = Layout { columns: Some(columns), ..*layout };
    spectrum(screen, &summary.total.latency.response.histogram);
    screen.at = SPECTRUM_LINES;
    let table_lines = TABLE_LINES - 1;
    screen.lines(&panels::servers(summary, &done_per_s, &layout, table_lines), layout.is_coloured);
    screen.at += 1;
    screen.lines(&panels::workers(workers, &layout, table_lines), layout.is_coloured);
    screen.at += 1;
    screen.lines(&panels::checks(summary, &layout, lines - screen.at), layout.is_coloured);
}

/// The response times of all requests of the run by percentile, as far as there are enough of them; both axes are logarithmic.
fn spectrum(screen: &mut Screen<'_>, histogram: &Histogram) {
    let dim = Style::new().add_modifier(Modifier::DIM);
    let columns = usize::from(screen.area.width) - SCALE_WIDTH;
    // A title above, names and an empty line below.
    let rows = SPECTRUM_LINES - 3;
    let ranks = histogram.ranks();
    let given = |quantile: &Quantile| quantile.is_supported_by(histogram.count());
    let value = |column| ranks.quantile(quantile_at(column, columns).filter(given)?).map(|ns| ns as f64);
    let values: Vec<f64> = (0..columns).map_while(value).collect();
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return screen.put(0, 0, "response time by percentile: none yet", dim);
    };
    screen.put(0, 0, "response time by percentile so far", dim);
    let least = least.max(1.0);
    let factor = (most / least).powf(1.0 / rows as f64).max(ROW_FACTOR_MIN);
    for row in 0..rows {
        let low_ns = least * factor.powi((rows - 1 - row) as i32);
        screen.put(0, 1 + row, &format!("{:>6}", short(low_ns)), dim);
    }
    for (column, value) in values.iter().enumerate() {
        // What is below becomes 0.
        let step = ((value / least).ln() / factor.ln()) as usize;
        screen.put(SCALE_WIDTH + column, rows - step.min(rows - 1), "*", Style::new());
    }
    for quantile in NAMED {
        let name = quantile.to_string();
        let name = name.trim_start_matches('p');
        let middle = (position(quantile) * (columns - 1) as f64).round() as usize;
        let x = middle.saturating_sub(name.len() / 2).min(columns - name.len());
        screen.put(SCALE_WIDTH + x, 1 + rows, name, dim);
    }
}

/// How rare what lies above a percentile is: the logarithm of 1/(1 - p).
fn rarity(quantile: Quantile) -> f64 {
    -quantile.share_above().log10()
}

/// Where a percentile is between the ends of the curve, from 0 to 1.
fn position(quantile: Quantile) -> f64 {
    let [first, .., last] = NAMED.map(rarity);
    (rarity(quantile) - first) / (last - first)
}

/// The percentile of a column.
fn quantile_at(column: usize, columns: usize) -> Option<Quantile> {
    let [first, .., last] = NAMED.map(rarity);
    let rarity = first + (last - first) * column as f64 / (columns - 1) as f64;
    Quantile::from_millionths(((1.0 - 10f64.powf(-rarity)) * 1e6).round() as u32)
}
