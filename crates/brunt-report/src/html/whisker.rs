//! The small picture in a cell of the latency table: where a percentile lies on an axis that all cells share, its interval, and its
//! client error.

use brunt_picture::{Area, Fill, Ink, Picture, Point, Scale, Shape, Stroke, Texture};

const WIDTH: f64 = 84.0;
const HEIGHT: f64 = 12.0;
const CLIENT: Fill = Fill::textured(Ink::Soft, Texture::Hatched);

/// What a cell shows, in nanoseconds.
pub(super) struct Whisker {
    pub(super) value_ns: u64,
    pub(super) low_ns: u64,
    /// `None`: without end.
    pub(super) high_ns: Option<u64>,
    pub(super) client_ns: u64,
}

/// Draws it on an axis from one latency to another.
pub(super) fn picture(whisker: &Whisker, (low_ns, high_ns): (f64, f64)) -> Picture {
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
