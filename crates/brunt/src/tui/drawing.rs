//! The screen as a function of what there is to see: a [`View`] in, cells out.
//!
//! Not the terminal and not the thread that draws. Invariants: the same view always gives the same cells; whatever the size, nothing is drawn
//! outside of it; tables and sentences are those of the report.

mod panels;

use super::heat::HeatHistory;
use super::last_second::LastSecond;
use crate::progress::{Glance, status_line};
use brunt_report::layout::{Layout, Line, Span, Style as Face, TimeUnit};
use brunt_report::quantity;
use brunt_report::run_document::{SoFarText, so_far};
use brunt_stats::latency::LatencySummary;
use brunt_stats::summary::Summary;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// A smaller screen shows the progress line alone.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 16;
/// Rows of a heat map that are worth their place.
const HEAT_ROWS_MIN: usize = 3;
/// Columns left of the heat map, for its times.
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
/// Seconds between the labels of a heat map.
const LABEL_S: i64 = 10;

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
    /// Response times of the last second.
    pub last_second: LatencySummary,
    /// Workers and servers in it.
    pub second: LastSecond,
    pub heat: HeatHistory,
}

/// Draws a view, and the summary of the last whole second, if there is one.
pub(crate) fn draw(
    view: &View,
    summary: Option<&Summary>,
    switches: &Switches,
    layout: &Layout,
    area: Rect,
    buffer: &mut Buffer,
) {
    if !panels::fit(area.width, area.height) {
        return draw_run(view, summary, switches, layout, area, buffer);
    }
    let width = area.width - panels::WIDTH;
    draw_run(view, summary, switches, layout, Rect { width, ..area }, buffer);
    if let Some(summary) = summary {
        let (x, width) = (area.x + width + panels::GAP, panels::WIDTH - panels::GAP);
        let mut screen = Screen { area: Rect { x, width, ..area }, buffer, at: 0 };
        panels::draw(&mut screen, view, summary, layout);
    }
}

/// All of it but the panels.
fn draw_run(
    view: &View,
    summary: Option<&Summary>,
    switches: &Switches,
    layout: &Layout,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut screen = Screen { area, buffer, at: 0 };
    screen.line(&status_line::line(&view.label, &view.glance, width), layout.is_coloured);
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        return;
    }
    let layout = Layout { columns: Some(width), ..*layout };
    let rows = if switches.op > 0 { OPS_MAX } else { height / 6 };
    let text_in = |unit| {
        let layout = Layout { unit, ..layout };
        summary.map_or_else(SoFarText::default, |summary| so_far(summary, &layout, rows))
    };
    let mut text = text_in(switches.unit.or(layout.unit));
    if text.latency.iter().any(|line| plain(line).chars().count() > width) {
        // A number without its end reads as another one.
        text = text_in(None);
    }
    lift_op(&mut text.latency, switches.op);
    screen.line(&vec![unstyled(last_second(view))], layout.is_coloured);
    let keys = if switches.has_help { HELP } else { KEYS };
    let room = Room::of(&text, height - screen.at - keys.len(), !switches.is_without_heat);
    if switches.op > 0 {
        keep_op(&mut text.latency, room.latency);
    }
    screen.lines(&text.head[..room.head], layout.is_coloured);
    screen.lines(&text.latency[..room.latency], layout.is_coloured);
    screen.heat(view, room.heat, &layout);
    screen.lines(&text.requests[..room.requests], layout.is_coloured);
    screen.lines(&text.events[..room.events], layout.is_coloured);
    screen.lines(&text.conclusion[..room.conclusion], layout.is_coloured);
    screen.at = height - keys.len();
    keys.iter().for_each(|line| screen.line(&vec![unstyled((*line).to_owned())], layout.is_coloured));
    if switches.is_frozen {
        let word = "frozen: f goes on";
        screen.put(width - word.len(), height - 1, word, Style::new().add_modifier(Modifier::REVERSED));
    }
}

/// A line without its styles.
fn plain(line: &Line) -> String {
    line.iter().map(|span| span.text.as_str()).collect::<String>().trim_end().to_owned()
}

/// The rows of operations: neither the heading nor the row of all, nor what stands below a row.
fn ops(table: &[Line]) -> Vec<usize> {
    let is_op = |line: &Line| {
        let plain = plain(line);
        !plain.starts_with(' ') && !plain.starts_with("all ") && !plain.starts_with("response, ")
    };
    (0..table.len()).filter(|index| is_op(&table[*index])).collect()
}

/// Puts the row of an operation, counted from 1 on and around, before the other operations, where there are several.
fn lift_op(table: &mut Vec<Line>, op: usize) {
    let ops = ops(table);
    if op > 0 && !ops.is_empty() {
        let line = table.remove(ops[(op - 1) % ops.len()]);
        table.insert(ops[0], line);
    }
}

/// Leaves out what stands below the row of all, if so few lines have no room for the first operation.
fn keep_op(table: &mut Vec<Line>, lines: usize) {
    if let Some(&first) = ops(table).first()
        && first >= lines
    {
        table.drain(2..first);
    }
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
    let times = &view.last_second;
    let known = [("p50", times.p50_ns()), ("p99", times.p99_ns()), ("max", times.max_ns)];
    let mut facts: Vec<String> =
        known.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", quantity::time(ns?)))).collect();
    facts.extend(view.glance.rate.map(|rate| format!("{rate:.0}/s")));
    if facts.is_empty() {
        facts.push("no replies".to_owned());
    }
    format!("last 1 s     {}", facts.join(", "))
}

/// Lines for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    head: usize,
    latency: usize,
    heat: usize,
    requests: usize,
    events: usize,
    conclusion: usize,
}

impl Room {
    /// Shares lines out: each part gets its most important lines first, and the heat map what is left.
    fn of(text: &SoFarText, lines: usize, has_heat: bool) -> Self {
        let heat_min = if has_heat { (lines / 3).max(HEAT_ROWS_MIN + 2) } else { 0 };
        let mut left = lines;
        let mut take = |wanted: usize, most: usize| {
            let taken = wanted.min(most).min(left);
            left -= taken;
            taken
        };
        let latency = take(text.latency.len(), 4);
        let conclusion = take(text.conclusion.len(), 1);
        let requests = take(text.requests.len(), 1);
        let kept = take(heat_min, heat_min);
        // A heading alone says nothing.
        let events = match take(text.events.len(), 2) {
            1 => 0,
            events => events,
        };
        let head = take(text.head.len(), 1);
        // A second time, for what is left where the screen is higher.
        let mut more = |taken: usize, wanted: usize, most: usize| taken + take(wanted - taken, most);
        let requests = more(requests, text.requests.len(), 1);
        let events = if events > 0 { more(events, text.events.len(), 4) } else { 0 };
        let head = more(head, text.head.len(), 3);
        let conclusion = more(conclusion, text.conclusion.len(), 3);
        let latency = more(latency, text.latency.len(), lines / 3);
        let requests = more(requests, text.requests.len(), 4);
        let heat = if has_heat && kept == heat_min { kept + left } else { 0 };
        Self { head, latency, heat, requests, events, conclusion }
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

    /// A heat map in so many lines, with its title and its axis.
    fn heat(&mut self, view: &View, lines: usize, layout: &Layout) {
        let columns_max = usize::from(self.area.width) - SCALE_WIDTH;
        let Some(rows) = lines.checked_sub(2).filter(|rows| *rows >= HEAT_ROWS_MIN) else { return };
        let top = self.at;
        self.at += lines;
        let dim = Style::new().add_modifier(Modifier::DIM);
        let Some(held) = view.heat.cells(columns_max, rows) else {
            return self.put(0, top, "response times by second: none yet", dim);
        };
        self.put(0, top, "response times by second: # most requests, . least", dim);
        let columns = held.cells.columns();
        for row in 0..rows {
            self.put(0, top + 1 + row, &format!("{:>6}", short(held.low_ns[row])), dim);
            for column in 0..columns {
                if let Some(step) = held.cells.ink_at(column, row) {
                    let (character, ground) = STEPS[step.min(STEPS.len() - 1)];
                    let ink = if step < LIGHT_FROM { WHITE } else { BLACK };
                    let painted = Style::new().fg(ink).bg(Color::Indexed(ground));
                    let style = if layout.is_coloured { painted } else { Style::new() };
                    self.put(SCALE_WIDTH + column, top + 1 + row, character.encode_utf8(&mut [0; 4]), style);
                }
            }
        }
        let first_s = held.last_s - columns as i64 + 1;
        for second in (first_s..=held.last_s).filter(|second| *second >= 0 && second % LABEL_S == 0) {
            let label = format!("|{second}s");
            let x = SCALE_WIDTH + (second - first_s) as usize;
            if x + label.len() <= usize::from(self.area.width) {
                self.put(x, top + 1 + rows, &label, dim);
            }
        }
    }
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
