//! The picture of `--waterfall`: latency to the right, time downwards, and colour for how many.
//!
//! As rpc-perf draws it: a column for each bucket up to 1 s, a row for each second, the same colours, lines and names. Beside
//! it a column for what took longer, which rpc-perf leaves out, a dashed line where the warm-up ends, and below it a legend.
//! Invariant: a pixel of the plot that no line and no letter covers has the colour that rpc-perf gives it, but for those of
//! the last column.

use super::slices::{OF_ONE_SECOND, Slices, bucket_of, width_ns};
use brunt_picture::{Anchor, Area, Cells, Color, Fill, Ink, Picture, Point, Shape, Text, text_width};
use std::collections::BTreeMap;

const BLACK: Ink = Ink::Fixed(Color::BLACK);
const WHITE: Ink = Ink::Fixed(Color::WHITE);

/// Hue of few requests, in degrees, and the share up to which there is no other.
const HUE_BLUE: f64 = 236.0;
const BLUE_UP_TO: f64 = 0.1;
/// Pixels of the line at the end of the warm-up, and of the gaps in it.
const DASH: usize = 8;

/// One for each bucket up to 1 s. The last reaches to 1.004 s, where rpc-perf cuts it at 1 s.
const COLUMNS: usize = OF_ONE_SECOND + 1;
/// The column of what took longer, in pixels, and what is left free before it.
const SLOWER: f64 = 64.0;
const SLOWER_GAP: f64 = 4.0;
/// rpc-perf's names are 12.5 pixels a character, in a line of 25; this size makes ours as wide.
const TEXT_SIZE: f64 = 21.0;
const LINE: usize = 25;
const BASE_LINE: f64 = 21.0;
/// What is left free above the legend, and how many colours it shows.
const LEGEND_GAP: usize = 8;
const LEGEND_COLORS: usize = 256;
/// Rows between two lines of the time grid.
const GRID_ROWS: usize = 60;
/// Draws a run's slices.
pub fn picture(run: &Slices) -> Picture {
    let rows = run.slices.len();
    let plot = Area { x: 0.0, y: 0.0, width: COLUMNS as f64, height: rows as f64 };
    let slower = Area { x: plot.right() + SLOWER_GAP, width: SLOWER, ..plot };
    // The names need more room than the rows of a run of a few seconds.
    let legend_top = rows.max(LINE) + LEGEND_GAP;
    let title = "Latency to the right, time downwards, requests as colour";
    let mut picture = Picture::new(slower.right() as u32, (legend_top + LINE) as u32, BLACK, title);
    draw_cells(&mut picture, plot, COLUMNS, &densities(run));
    draw_cells(&mut picture, slower, 1, &slower_counts(run));
    draw_grid(&mut picture, plot, run.warm_up);
    draw_names(&mut picture, plot, slower);
    draw_legend(&mut picture, legend_top as f64, run.warm_up > 0);
    picture
}

/// Where the lines of the latency grid are, and what they are called there: 200 ns, 500 ns, 1 us and so on up to 500 ms.
fn latencies() -> Vec<(u64, String)> {
    let powers = (2..9).map(|power| 10_u64.pow(power));
    let marks = powers.flat_map(|power| [1, 2, 5].map(|digit| digit * power)).skip(1);
    let name = |ns: u64| match ns {
        ..1_000 => format!("{ns}nS"),
        1_000..1_000_000 => format!("{}uS", ns / 1_000),
        _ => format!("{}mS", ns / 1_000_000),
    };
    marks.map(|ns| (ns, name(ns))).collect()
}

/// A cell's column, its row, and what is in it as a share of the fullest one.
struct Share {
    column: usize,
    row: usize,
    share: f64,
}

/// Requests per nanosecond of latency.
fn densities(run: &Slices) -> Vec<Share> {
    let mut cells = Vec::new();
    for (row, slice) in run.slices.iter().enumerate() {
        for (column, count) in slice.counts().filter(|(bucket, _)| *bucket < COLUMNS) {
            cells.push(Share { column, row, share: count as f64 / width_ns(column) as f64 });
        }
    }
    let most = most_of(&cells);
    cells.iter_mut().for_each(|cell| cell.share /= most);
    cells
}

/// Requests beyond the last column, of each second that has any. The least is bright blue: one of them matters.
fn slower_counts(run: &Slices) -> Vec<Share> {
    let mut cells = Vec::new();
    for (row, slice) in run.slices.iter().enumerate() {
        let slower = slice.counts().filter(|(bucket, _)| *bucket >= COLUMNS);
        let count: u64 = slower.map(|(_, count)| count).sum();
        if count > 0 {
            cells.push(Share { column: 0, row, share: count as f64 });
        }
    }
    let most = most_of(&cells);
    cells.iter_mut().for_each(|cell| cell.share = BLUE_UP_TO + (1.0 - BLUE_UP_TO) * cell.share / most);
    cells
}

fn most_of(cells: &[Share]) -> f64 {
    cells.iter().map(|cell| cell.share).fold(f64::MIN_POSITIVE, f64::max)
}

fn draw_cells(picture: &mut Picture, area: Area, columns: usize, shares: &[Share]) {
    picture.rectangle(area, Fill::solid(Ink::Fixed(color(0.0))));
    // There are about 1200 colours, whatever the number of cells.
    let mut places: BTreeMap<Color, usize> = shares.iter().map(|cell| (color(cell.share), 0)).collect();
    places.values_mut().enumerate().for_each(|(place, of_color)| *of_color = place);
    let inks = places.keys().map(|color| Ink::Fixed(*color)).collect();
    let mut cells = Cells::new(columns, area.height as usize, inks);
    for cell in shares {
        cells.paint(cell.column, cell.row, places[&color(cell.share)]);
    }
    picture.push(Shape::Cells { area, cells });
}

fn draw_grid(picture: &mut Picture, plot: Area, warm_up: usize) {
    for row in (0..plot.height as usize).step_by(GRID_ROWS) {
        picture.rectangle(Area { y: row as f64, height: 1.0, ..plot }, Fill::solid(BLACK));
    }
    for (ns, _) in latencies() {
        picture.rectangle(Area { x: bucket_of(ns) as f64, width: 1.0, ..plot }, Fill::solid(BLACK));
    }
    if (1..plot.height as usize).contains(&warm_up) {
        draw_dashes(picture, Area { y: warm_up as f64, ..plot });
    }
}

fn draw_names(picture: &mut Picture, plot: Area, slower: Area) {
    for (ns, name) in latencies() {
        write_line(picture, bucket_of(ns) as f64, 0.0, &name);
    }
    write_line(picture, slower.x, 0.0, ">1S");
    for row in (0..plot.height as usize).step_by(GRID_ROWS) {
        // One that would be cut off is left away.
        if row == 0 || row + LINE <= plot.height as usize {
            let (hour, minute) = (row / 3600, row / 60 % 60);
            write_line(picture, 0.0, row as f64, &format!("{hour:02}:{minute:02}"));
        }
    }
}

fn draw_legend(picture: &mut Picture, top: f64, has_warm_up: bool) {
    let width = LEGEND_COLORS as f64;
    let bar = |index: usize| Area { x: index as f64, y: top, width: 1.0, height: LINE as f64 };
    for index in 0..LEGEND_COLORS {
        let share = index as f64 / (width - 1.0);
        picture.rectangle(bar(index), Fill::solid(Ink::Fixed(color(share))));
    }
    let text = "Colour: 0 to 100 % of the fullest bucket (requests per ns of latency); for >1S, of its fullest second. A row is 1 s.";
    write_line(picture, width + 12.0, top, text);
    if has_warm_up {
        let (x, y) = ((width + 36.0 + text_width(text, TEXT_SIZE)).round(), top + (LINE / 2) as f64);
        draw_dashes(picture, Area { x, y, width: 72.0, height: 1.0 });
        write_line(picture, x + 84.0, top, "end of the warm-up");
    }
}

/// Dashes of one pixel along the upper edge of an area, over the first row of the measured windows.
fn draw_dashes(picture: &mut Picture, area: Area) {
    for offset in (0..area.width as usize).step_by(2 * DASH) {
        let x = area.x + offset as f64;
        picture.rectangle(Area { x, y: area.y, width: DASH as f64, height: 1.0 }, Fill::solid(WHITE));
    }
}

/// Writes into a line that begins at a place.
fn write_line(picture: &mut Picture, left: f64, top: f64, content: &str) {
    let at = Point { x: left + 1.0, y: top + BASE_LINE };
    let content = content.to_owned();
    picture.text(Text { at, anchor: Anchor::Start, size: TEXT_SIZE, ink: WHITE, halo: Some(BLACK), content });
}

/// The colour of a share: from dark blue to blue, from there through the hues to red.
fn color(share: f64) -> Color {
    if share < BLUE_UP_TO {
        of_hue(HUE_BLUE, 0.25 + 0.25 * share / BLUE_UP_TO)
    } else {
        of_hue(HUE_BLUE * (1.0 - (share - BLUE_UP_TO) / (1.0 - BLUE_UP_TO)), 0.5)
    }
}

/// A fully saturated colour of HSL, its hue in degrees. A channel is full within 60 degrees of its own hue, and absent from
/// 120 degrees on; the lightness is half of what the fullest and the least channel have together.
fn of_hue(hue: f64, lightness: f64) -> Color {
    let most = (2.0 * lightness).min(1.0);
    let least = 2.0 * lightness - most;
    let channel = |own_hue: f64| {
        let away = (hue - own_hue).rem_euclid(360.0);
        let fullness = (2.0 - away.min(360.0 - away) / 60.0).clamp(0.0, 1.0);
        ((least + (most - least) * fullness) * 255.0).round() as u8
    };
    Color { red: channel(0.0), green: channel(120.0), blue: channel(240.0) }
}

#[cfg(test)]
mod tests;
