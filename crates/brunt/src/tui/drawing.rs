//! The screen as a function of what there is to see: a [`View`] in, cells out.
//!
//! Not the terminal and not the thread that draws. Invariants: the same view always gives the same cells; whatever the size, nothing is drawn
//! outside of it; tables and sentences are those of the report.

use crate::progress::{Glance, status_line};
use brunt_picture::Cells;
use brunt_picture::heat_map::heat_map;
use brunt_plan::quantile::Quantile;
use brunt_report::html::column_counts;
use brunt_report::layout::{Layout, Line, Span, Style as Face, TimeUnit};
use brunt_report::quantity;
use brunt_report::run_document::{OpRows, Part, SoFarText, so_far};
use brunt_stats::histogram::Histogram;
use brunt_stats::live_run::SECOND_NS;
use brunt_stats::live_run::{RunSoFar, Second};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use std::sync::Arc;

/// A smaller screen shows the progress line alone.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 16;
/// Rows of a heat map that are worth their place.
const HEAT_ROWS_MIN: usize = 3;
/// Columns left of the heat map and of the curve, for their times.
const SCALE_WIDTH: usize = 7;
/// A step of heat as a character, and in colours of terminals that have 256.
const STEPS: [(char, u8); 7] =
    [('.', 18), (':', 24), ('-', 31), ('=', 74), ('+', 117), ('*', 153), ('#', 231)];
/// From this step on the ground is light.
const LIGHT_FROM: usize = 3;
const BLACK: Color = Color::Indexed(16);
const WHITE: Color = Color::Indexed(231);
/// More operations than a plan has.
const OPS_MAX: usize = 1_000;
/// The heading, the row of all with its bounds, and an operation.
const QUALIFIED_ROWS: usize = 6;
/// Seconds between the labels of a heat map.
const LABEL_S: u64 = 10;

/// A smaller screen has no panels.
const PANELS_SCREEN_MIN: (u16, u16) = (118, 36);
/// Of the panels, with the gap to the left side.
const PANELS_WIDTH: u16 = 40;
const PANELS_GAP: u16 = 2;
/// Lines of each, with an empty one below; checks have the rest.
const SPECTRUM_LINES: usize = 14;
const TABLE_LINES: usize = 8;
/// Rows are no closer than the two digits of their names tell apart.
const ROW_FACTOR_MIN: f64 = 1.25;
/// Percentiles that are named below the curve; the first and the last are its ends.
const NAMED: [Quantile; 5] = Quantile::SHOWN;
/// Edges of rows of a heat map to a factor of ten, as on an HTML page, so that rows stay where they are while the extremes change a little.
const PER_DECADE: f64 = 12.0;

/// What was switched by keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    pub has_help: bool,
    pub is_without_heat: bool,
    pub is_frozen: bool,
    /// In place of the report's.
    pub unit: Option<TimeUnit>,
    /// Which operation stands below all of them, from 1 on; 0: none by itself.
    pub op: usize,
}

/// What there is to see of a run at an instant.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Which run of its command it is; may be empty.
    pub label: String,
    pub glance: Glance,
    /// The run at the end of the last second, if there is one.
    pub so_far: Option<Arc<RunSoFar>>,
}

/// Draws a view.
pub(crate) fn draw(view: &View, switches: &Switches, layout: &Layout, area: Rect, buffer: &mut Buffer) {
    let (width_min, height_min) = PANELS_SCREEN_MIN;
    if area.width < width_min || area.height < height_min {
        return draw_run(view, switches, layout, area, buffer);
    }
    let width = area.width - PANELS_WIDTH;
    draw_run(view, switches, layout, Rect { width, ..area }, buffer);
    if let Some(so_far) = &view.so_far {
        let (x, width) = (area.x + width + PANELS_GAP, PANELS_WIDTH - PANELS_GAP);
        let mut screen = Screen { area: Rect { x, width, ..area }, buffer, at: 0 };
        draw_panels(&mut screen, so_far, layout);
    }
}

/// All of it but the panels.
fn draw_run(view: &View, switches: &Switches, layout: &Layout, area: Rect, buffer: &mut Buffer) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut screen = Screen { area, buffer, at: 0 };
    screen.line(&status_line(&view.label, &view.glance, width), layout.is_coloured);
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        return;
    }
    let layout = Layout { columns: Some(width), ..*layout };
    let rows_max = if switches.op > 0 { OPS_MAX } else { height / 6 };
    let text_of = |unit, has_bounds| {
        let (layout, rows) = (Layout { unit, ..layout }, OpRows { rows_max, first: switches.op, has_bounds });
        let so_far_text = |view: &Arc<RunSoFar>| so_far(view.summary(), &layout, rows);
        view.so_far.as_ref().map_or_else(SoFarText::default, so_far_text)
    };
    let mut unit = switches.unit.or(layout.unit);
    let mut text = text_of(unit, true);
    if text[Part::Latency as usize].iter().any(|line| width_of(line) > width) {
        // A number without its end reads as another one.
        unit = None;
        text = text_of(unit, true);
    }
    screen.line(&vec![unstyled(last_second(view))], layout.is_coloured);
    let keys = if switches.has_help { HELP } else { KEYS };
    let room = Room::of(&text, height - screen.at - keys.len(), !switches.is_without_heat);
    if switches.op > 0 && room.parts[Part::Latency as usize] < QUALIFIED_ROWS {
        text = text_of(unit, false);
    }
    for part in Part::ALL {
        if part == Part::Requests {
            screen.heat(view, room.heat, &layout);
        }
        let (lines, count) = (&text[part as usize], room.parts[part as usize]);
        screen.lines(&lines[..count.min(lines.len())], layout.is_coloured);
    }
    screen.at = height - keys.len();
    keys.iter().for_each(|line| screen.line(&vec![unstyled((*line).to_owned())], layout.is_coloured));
    if switches.is_frozen {
        let word = "frozen: f goes on";
        screen.put(width - word.len(), height - 1, word, Style::new().add_modifier(Modifier::REVERSED));
    }
}

/// Columns of a line.
fn width_of(line: &Line) -> usize {
    line.iter().map(|span| span.text.chars().count()).sum()
}

const KEYS: &[&str] = &["? help  o operation  h heat map  u unit  f freeze  q end"];
const HELP: &[&str] = &[
    "q, Ctrl-C  end the run; the report follows",
    "h, o       heat map on or off; next operation below all",
    "u          times of the table in another unit",
    "f          freeze the screen; the run goes on",
    "?          hide this help",
];

fn last_second(view: &View) -> String {
    let second = view.so_far.as_ref().and_then(|so_far| so_far.last_second());
    let times = second.map(|second| {
        let [p50_ns, p99_ns] =
            [Quantile::P50, Quantile::P99].map(|quantile| second.response.percentile(quantile));
        [("p50", p50_ns), ("p99", p99_ns), ("max", second.response.max())]
    });
    let known = times.into_iter().flatten();
    let mut facts: Vec<String> =
        known.filter_map(|(name, ns)| Some(format!("{name} {}", quantity::time(ns?)))).collect();
    facts.extend(second.and_then(Second::rate).map(|rate| format!("{rate:.0}/s")));
    if facts.is_empty() {
        facts.push("no replies".to_owned());
    }
    format!("last 1 s     {}", facts.join(", "))
}

/// Lines for each part of the text, and for the heat map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    parts: [usize; Part::COUNT],
    heat: usize,
}

impl Room {
    /// Shares lines out: each part gets its most important lines first, and the heat map what is left.
    fn of(text: &SoFarText, lines: usize, has_heat: bool) -> Self {
        let heat_min = if has_heat { (lines / 3).max(HEAT_ROWS_MIN + 2) } else { 0 };
        let (mut parts, mut heat, mut left) = ([0; Part::COUNT], 0, lines);
        // Up to how many lines, in turn; the heat map is no part of the text.
        let steps = [
            (Some(Part::Latency), 4),
            (Some(Part::Conclusion), 1),
            (Some(Part::Requests), 1),
            (None, heat_min),
            (Some(Part::Events), 2),
            (Some(Part::Head), 1),
            // For what is left where the screen is higher.
            (Some(Part::Requests), 2),
            (Some(Part::Events), 6),
            (Some(Part::Head), 4),
            (Some(Part::Conclusion), 4),
            (Some(Part::Latency), 4 + lines / 3),
            (Some(Part::Requests), 6),
        ];
        for (part, most) in steps {
            let Some(part) = part else {
                heat = most.min(left);
                left -= heat;
                continue;
            };
            let held = &mut parts[part as usize];
            let given = text[part as usize].len().min(most).saturating_sub(*held).min(left);
            // A heading alone says nothing.
            if part != Part::Events || *held + given != 1 {
                *held += given;
                left -= given;
            }
        }
        Self { parts, heat: if has_heat && heat == heat_min { heat + left } else { 0 } }
    }
}

/// Cells, and the line that is written next.
struct Screen<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
    at: usize,
}

impl Screen<'_> {
    fn lines(&mut self, lines: &[Line], is_coloured: bool) {
        lines.iter().for_each(|line| self.line(line, is_coloured));
    }

    fn line(&mut self, line: &Line, is_coloured: bool) {
        let mut x = 0;
        for span in line {
            self.put(x, self.at, &span.text, if is_coloured { style_of(span.style) } else { Style::new() });
            x += span.text.chars().count();
        }
        self.at += 1;
    }

    fn put(&mut self, x: usize, y: usize, text: &str, style: Style) {
        let (width, height) = (usize::from(self.area.width), usize::from(self.area.height));
        if x < width && y < height {
            let (left, top) = (self.area.x + x as u16, self.area.y + y as u16);
            self.buffer.set_stringn(left, top, text, width - x, style);
        }
    }

    /// A heat map of `lines` lines, with its title and its axis.
    fn heat(&mut self, view: &View, lines: usize, layout: &Layout) {
        let columns_max = usize::from(self.area.width) - SCALE_WIDTH;
        let Some(rows) = lines.checked_sub(2).filter(|rows| *rows >= HEAT_ROWS_MIN) else { return };
        let top = self.at;
        self.at += lines;
        let dim = Style::new().add_modifier(Modifier::DIM);
        let so_far = view.so_far.as_ref();
        let Some(held) = so_far.and_then(|so_far| HeatMap::of(&so_far.seconds, columns_max, rows)) else {
            return self.put(0, top, "response times by second: none yet", dim);
        };
        self.put(0, top, "response times by second: # most requests, . least", dim);
        for row in 0..rows {
            self.put(0, top + 1 + row, &format!("{:>6}", short(held.low_ns[row])), dim);
            for column in 0..held.seconds.len() {
                if let Some(step) = held.cells.ink_at(column, row) {
                    let (character, ground) = STEPS[step.min(STEPS.len() - 1)];
                    let ink = if step < LIGHT_FROM { WHITE } else { BLACK };
                    let painted = Style::new().fg(ink).bg(Color::Indexed(ground));
                    let style = if layout.is_coloured { painted } else { Style::new() };
                    self.put(SCALE_WIDTH + column, top + 1 + row, character.encode_utf8(&mut [0; 4]), style);
                }
            }
        }
        let measure_ns = so_far.and_then(|so_far| so_far.window).map_or(u64::MAX, |window| window.measure_ns);
        for (column, second) in held.seconds.iter().enumerate() {
            let Some(since_ns) = second.start_ns.checked_sub(measure_ns) else { continue };
            let (since_s, x) = ((since_ns + SECOND_NS / 2) / SECOND_NS, SCALE_WIDTH + column);
            let label = format!("|{since_s}s");
            if since_s % LABEL_S == 0 && x + label.len() <= usize::from(self.area.width) {
                self.put(x, top + 1 + rows, &label, dim);
            }
        }
    }
}

/// The heat map of the last seconds of a run: a column for each, with every operation that ended in it, a row for each range of response times,
/// the slowest at the top.
#[derive(Clone, Debug)]
struct HeatMap<'a> {
    cells: Cells,
    /// The second of each column.
    seconds: &'a [Arc<Second>],
    /// The least response time of each row from the top, in nanoseconds.
    low_ns: Vec<f64>,
}

impl<'a> HeatMap<'a> {
    /// The last seconds in at most `columns` columns, the last one at the right, and `rows` rows; `None` before anything was answered.
    fn of(seconds: &'a [Arc<Second>], columns: usize, rows: usize) -> Option<Self> {
        let seconds = &seconds[seconds.len().saturating_sub(columns)..];
        let moments = seconds.iter().map(|second| second.response.moments()).filter(|held| held.count > 0);
        let (min_ns, max_ns) =
            (moments.clone().map(|held| held.min).min()?, moments.map(|held| held.max).max()?);
        let step = |ns: u64| ((ns.max(1) as f64).log10() * PER_DECADE) as usize;
        let (least, most) = (step(min_ns), step(max_ns));
        // Rows are equally high, and one lies above the slowest where there is room.
        let per_row = (most - least + 2).div_ceil(rows).max(1);
        let edge = |row: usize| 10f64.powf((least + row * per_row) as f64 / PER_DECADE);
        let edges: Vec<f64> = (0..=rows).map(edge).collect();
        let counts: Vec<_> = seconds.iter().map(|second| column_counts(second.response.buckets())).collect();
        let low_ns = edges[..rows].iter().rev().copied().collect();
        Some(Self { cells: heat_map(&counts, &edges), seconds, low_ns })
    }
}

/// Draws the right side of a large screen, which is theirs: percentiles as a curve, and servers, workers and checks one below the other. Lines
/// that a panel does not need are the next one's.
fn draw_panels(screen: &mut Screen<'_>, so_far: &RunSoFar, layout: &Layout) {
    let summary = so_far.summary();
    let done_per_s = so_far.last_second().map(Second::answered_per_s).unwrap_or_default();
    let workers = so_far.last_second().map(|second| second.workers.as_slice()).unwrap_or_default();
    let (columns, lines) = (usize::from(screen.area.width), usize::from(screen.area.height));
    let layout = Layout { columns: Some(columns), ..*layout };
    spectrum(screen, &summary.total.latency.response.histogram);
    screen.at = SPECTRUM_LINES;
    let table_lines = TABLE_LINES - 1;
    screen.lines(&so_far::servers(summary, &done_per_s, &layout, table_lines), layout.is_coloured);
    screen.at += 1;
    screen.lines(&so_far::workers(workers, &layout, table_lines), layout.is_coloured);
    screen.at += 1;
    screen.lines(&so_far::checks(summary, &layout, lines - screen.at), layout.is_coloured);
}

/// The response times of all requests of the run by percentile, as far as there are enough of them; both axes are logarithmic.
fn spectrum(screen: &mut Screen<'_>, histogram: &Histogram) {
    let dim = Style::new().add_modifier(Modifier::DIM);
    let columns = usize::from(screen.area.width) - SCALE_WIDTH;
    // A title above, names and an empty line below.
    let rows = SPECTRUM_LINES - 3;
    let given = |quantile: &Quantile| quantile.is_supported_by(histogram.count());
    let value = |column| histogram.quantile(quantile_at(column, columns).filter(given)?).map(|ns| ns as f64);
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

/// A time without a blank: `100us`, `1.20ms`.
fn short(ns: f64) -> String {
    quantity::time(ns.round() as u64).replace(' ', "")
}

fn unstyled(text: String) -> Span {
    Span { text, style: Face::Plain }
}

fn style_of(face: Face) -> Style {
    match face {
        Face::Plain => Style::new(),
        Face::Bold => Style::new().add_modifier(Modifier::BOLD),
        Face::Dim => Style::new().add_modifier(Modifier::DIM),
        Face::Good => Style::new().fg(Color::Green),
        Face::Doubt => Style::new().fg(Color::Yellow),
        Face::Bad => Style::new().fg(Color::Red),
    }
}

#[cfg(test)]
mod tests;
