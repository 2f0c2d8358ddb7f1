//! Axes: a line, names along it, and a grid behind the plot.
//!
//! Invariant: names never overlap: one that has no room is left away, its line of the grid stays.

use crate::font::text_width;
use crate::ink::Ink;
use crate::picture::{Anchor, Area, Picture, Point, Stroke, Text};
use crate::scale::Scale;

/// Height of names in pixels.
pub const LABEL_SIZE: f64 = 12.0;
/// Pixels between an axis and its names.
const GAP: f64 = 6.0;
/// What is left free between two names beside and above one another.
const LABEL_DISTANCE: f64 = 8.0;
const LABEL_LEADING: f64 = 2.0;

/// On which side of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Names to the left, values upwards.
    Left,
    /// Names below, values to the right.
    Bottom,
}

/// A value with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value, in the unit of the axis.
    pub value: f64,
    /// What is written there.
    pub label: String,
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    /// On which side.
    pub side: Side,
    /// From values to pixels of the picture.
    pub scale: Scale,
    /// Ascending.
    pub ticks: Vec<Tick>,
    /// What the values are, and in which unit: above an axis on the left, to the right below one at the bottom.
    pub title: String,
}

impl Axis {
    /// Draws the axis and its grid into a picture.
    pub fn draw(&self, plot: Area, picture: &mut Picture) {
        let grid = Stroke::solid(Ink::Grid, 1.0);
        let mut free = LabelRoom::default();
        for tick in &self.ticks {
            // Through the middle of a pixel, so that a line of one pixel is one.
            let at = self.scale.pixel(tick.value).floor() + 0.5;
            match self.side {
                Side::Left => {
                    picture.line(Point { x: plot.x, y: at }, Point { x: plot.right(), y: at }, grid);
                    if free.take(at, LABEL_SIZE + LABEL_LEADING) {
                        let at = Point { x: plot.x - GAP, y: at + LABEL_SIZE * 0.36 };
                        picture.text(label(at, Anchor::End, Ink::Soft, &tick.label));
                    }
                }
                Side::Bottom => {
                    picture.line(Point { x: at, y: plot.y }, Point { x: at, y: plot.bottom() }, grid);
                    if free.take(at, text_width(&tick.label, LABEL_SIZE) + LABEL_DISTANCE) {
                        let at = Point { x: at, y: plot.bottom() + GAP + LABEL_SIZE };
                        picture.text(label(at, Anchor::Middle, Ink::Soft, &tick.label));
                    }
                }
            }
        }
        self.draw_line(plot, picture);
    }

    fn draw_line(&self, plot: Area, picture: &mut Picture) {
        let (left, bottom) = (plot.x.floor() + 0.5, plot.bottom().floor() + 0.5);
        let corner = Point { x: left, y: bottom };
        let (end, title) = match self.side {
            Side::Left => {
                let at = Point { x: plot.x, y: plot.y - GAP - 4.0 };
                (Point { x: left, y: plot.y }, label(at, Anchor::Start, Ink::Text, &self.title))
            }
            Side::Bottom => {
                let at = Point { x: plot.right(), y: plot.bottom() + GAP + LABEL_SIZE * 2.4 };
                (Point { x: plot.right(), y: bottom }, label(at, Anchor::End, Ink::Text, &self.title))
            }
        };
        picture.line(corner, end, Stroke::solid(Ink::Axis, 1.0));
        picture.text(title);
    }
}

fn label(at: Point, anchor: Anchor, ink: Ink, content: &str) -> Text {
    Text { at, anchor, size: LABEL_SIZE, ink, halo: None, content: content.to_owned() }
}

/// What earlier names have left free; they may run either way in pixels.
#[derive(Default)]
struct LabelRoom {
    taken: Vec<(f64, f64)>,
}

impl LabelRoom {
    /// Reserves this length around a place, if it is free.
    fn take(&mut self, middle: f64, length: f64) -> bool {
        let (from, to) = (middle - length / 2.0, middle + length / 2.0);
        let is_free = self.taken.iter().all(|(start, end)| to <= *start || from >= *end);
        if is_free {
            self.taken.push((from, to));
        }
        is_free
    }
}

/// The name of a number: `500`, `20k`, `1.5M`, `0.2`.
pub fn number_label(value: f64) -> String {
    let (unit, suffix) = match value.abs() {
        value if value >= 1e9 => (1e9, "G"),
        value if value >= 1e6 => (1e6, "M"),
        value if value >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{suffix}", short(value / unit))
}

/// The name of a time since the start: `0:05`, `12:30`, `1:00:00`.
pub fn time_label(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// At most six digits after the point, and no noughts at their end.
fn short(value: f64) -> String {
    // Not −0: adding 0 makes it positive.
    format!("{}", (value * 1e6).round() / 1e6 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let numbers = [
            (0.0, "0"),
            (0.6000000000000001, "0.6"),
            (999.0, "999"),
            (20_000.0, "20k"),
            (1.5e6, "1.5M"),
            (-2e9, "-2G"),
        ];
        for (value, expected) in numbers {
            assert_eq!(number_label(value), expected);
        }
        for (seconds, expected) in
            [(0.0, "0:00"), (65.0, "1:05"), (3600.0, "1:00:00"), (90_061.0, "25:01:01")]
        {
            assert_eq!(time_label(seconds), expected);
        }
    }

    #[test]
    fn labels_without_room_are_omitted() {
        let plot = Area { x: 0.0, y: 0.0, width: 100.0, height: 50.0 };
        let ticks = [0.0, 10.0, 50.0, 100.0].map(|value| Tick { value, label: "abcd".to_owned() });
        let axis = Axis {
            side: Side::Bottom,
            scale: Scale::linear((0.0, 100.0), (0.0, 100.0)),
            ticks: ticks.to_vec(),
            title: "title".to_owned(),
        };
        let mut picture = Picture::new(100, 80, Ink::Page, "a test");
        axis.draw(plot, &mut picture);
        let names = picture.shapes.iter().filter_map(|shape| match shape {
            crate::picture::Shape::Text(text) => Some((text.content.as_str(), text.at.x)),
            _ => None,
        });
        assert_eq!(
            names.collect::<Vec<_>>(),
            [("abcd", 0.5), ("abcd", 50.5), ("abcd", 100.5), ("title", 100.0)]
        );
    }
}
