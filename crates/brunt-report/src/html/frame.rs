//! The frame of a chart: its size, axes with their labels, and the elements that hold it.
//!
//! Not what is drawn in it.

use super::markup::Markup;
use brunt_picture::axis::{Axis, Side, Tick, latency_label, number_label, time_label};
use brunt_picture::{Anchor, Area, Ink, Picture, Point, Scale, Shape, Stroke, Text};

/// Every chart is as wide in its own pixels; a browser scales it.
pub(crate) const WIDTH: f64 = 960.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// Where the axis below has no title.
const BOTTOM_UNTITLED: f64 = 24.0;
/// Size of notes inside a chart.
pub(crate) const NOTE_SIZE: f64 = 12.0;

/// A chart with its scales.
pub(crate) struct Frame {
    pub(crate) plot: Area,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    pub(crate) picture: Picture,
}

/// How an axis spreads and names its values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// Nanoseconds, by ratio.
    Latency(f64, f64),
    /// Numbers from 0.
    Number(f64),
    /// Whole numbers from 0.
    Count(f64),
    /// Seconds from the beginning of the window.
    Time(f64, f64),
    /// Nothing that has values.
    None,
    /// Shares of change, as far to either side.
    Change(f64),
    /// Percentiles by how rare what lies above them is: the decimal logarithm of 1/(1 - p).
    Percentile(f64),
}

impl Frame {
    /// Axes around a plot of this height.
    pub(crate) fn new(title: &str, height: f64, x: (Values, &str), y: (Values, &str)) -> Self {
        let plot = Area { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height };
        let (x_values, x_title) = x;
        let bottom = if x_title.is_empty() { BOTTOM_UNTITLED } else { BOTTOM };
        let mut picture = Picture::new(WIDTH as u32, (TOP + height + bottom) as u32, Ink::Page, title);
        let (y_values, y_title) = y;
        let x = x_values.scale((plot.x, plot.right()));
        let y = y_values.scale((plot.bottom(), plot.y));
        let axis = |side, values: Values, scale: Scale, ticks, title: &str| Axis {
            side,
            scale,
            ticks: values.ticks(&scale, ticks),
            title: title.to_owned(),
        };
        let y_ticks = (height / 34.0) as usize;
        picture.group("y", |picture| axis(Side::Left, y_values, y, y_ticks, y_title).draw(plot, picture));
        picture.group("x", |picture| axis(Side::Bottom, x_values, x, 11, x_title).draw(plot, picture));
        Self { plot, x, y, picture }
    }

    pub(crate) fn at(&self, x: f64, y: f64) -> Point {
        Point { x: self.x.pixel(x), y: self.y.pixel(y) }
    }

    /// A text inside the chart.
    pub(crate) fn note(&mut self, at: Point, anchor: Anchor, ink: Ink, content: String) {
        self.picture.group("note", |picture| {
            picture.text(Text { at, anchor, size: NOTE_SIZE, ink, halo: Some(Ink::Page), content });
        });
    }
}

impl Values {
    fn scale(self, pixels: (f64, f64)) -> Scale {
        match self {
            Self::Latency(low, high) => Scale::logarithmic((low, high), pixels),
            Self::Number(high) | Self::Count(high) => Scale::linear((0.0, high), pixels),
            Self::Time(low, high) => Scale::linear((low, high), pixels),
            Self::Percentile(high) => Scale::linear((0.0, high), pixels),
            Self::None => Scale::linear((0.0, 1.0), pixels),
            Self::Change(most) => Scale::linear((-most, most), pixels),
        }
    }

    fn ticks(self, scale: &Scale, most: usize) -> Vec<Tick> {
        let named = |values: Vec<f64>, label: &dyn Fn(f64) -> String| {
            values.into_iter().map(|value| Tick { value, label: label(value) }).collect()
        };
        match self {
            Self::Latency(..) => named(scale.ticks(most.max(3)), &latency_label),
            Self::None => Vec::new(),
            Self::Change(_) => named(scale.ticks(most), &|share| match number_label(share * 100.0) {
                label if share > 1e-9 => format!("+{label} %"),
                label => format!("{label} %"),
            }),
            Self::Number(_) => named(scale.ticks(most.max(2)), &number_label),
            Self::Count(_) => {
                let whole = scale.ticks(most).into_iter().filter(|value| value.fract() == 0.0);
                named(whole.collect(), &number_label)
            }
            Self::Time(low, high) if high - low < 10.0 => {
                named(scale.ticks(most), &|seconds| format!("{} s", number_label(seconds)))
            }
            Self::Time(_, high) if high <= 120.0 => {
                named(scale.time_ticks(most), &|seconds| format!("{seconds:.0} s"))
            }
            Self::Time(..) => named(scale.time_ticks(most), &time_label),
            Self::Percentile(high) => {
                let names = [
                    (2.0, "p50"),
                    (4.0, "p75"),
                    (10.0, "p90"),
                    (20.0, "p95"),
                    (100.0, "p99"),
                    (1e3, "p99.9"),
                    (1e4, "p99.99"),
                    (1e5, "p99.999"),
                    (1e6, "p99.9999"),
                ];
                let ticks = names
                    .iter()
                    .map(|(rarity, name)| Tick { value: f64::log10(*rarity), label: (*name).to_owned() });
                ticks.filter(|tick| tick.value <= high).collect()
            }
        }
    }
}

/// An entry of a legend: what a line looks like, its name, and the class of the group that shows it.
pub(crate) struct Key {
    pub(crate) name: String,
    /// The group of the chart that a click hides.
    pub(crate) class: &'static str,
    pub(crate) sample: Shape,
}

/// The sample of a line.
pub(crate) fn line_sample(stroke: Stroke) -> Shape {
    Shape::Polyline { points: vec![Point { x: 1.0, y: 7.0 }, Point { x: 25.0, y: 7.0 }], stroke }
}

/// The sample of an area.
pub(crate) fn area_sample(fill: brunt_picture::Fill) -> Shape {
    Shape::Rectangle { area: Area { x: 1.0, y: 1.0, width: 24.0, height: 12.0 }, fill }
}

/// Begins a figure, with what it shows in words, and its legend. Where its charts share a cursor, `cursor` says to the script what lies along
/// their x axis, and from where to where.
pub(crate) fn open_figure(
    markup: &mut Markup,
    cursor: Option<(&'static str, (f64, f64))>,
    finding: &str,
    keys: Vec<Key>,
) {
    match cursor {
        None => markup.raw("<figure>"),
        Some((kind, (low, high))) => {
            markup.open("figure", &[("data-kind", kind), ("data-range", &format!("{low} {high}"))]);
        }
    }
    markup.element("figcaption", finding);
    markup.raw("<ul class=\"legend\">");
    for Key { name, class, sample } in keys {
        let mut picture = Picture::new(26, 14, Ink::Page, "");
        picture.push(sample);
        markup.open("li", &[("data-group", class)]);
        markup.picture(&picture);
        markup.text(&name);
        markup.close("li");
    }
    markup.raw("</ul>\n");
}

/// A chart of the figure.
pub(crate) fn chart(markup: &mut Markup, frame: &Frame) {
    markup.raw("<div class=\"chart\">");
    markup.picture(&frame.picture);
    markup.raw("</div>\n");
}

/// Ends a figure with the numbers of its charts.
pub(crate) fn close_figure(markup: &mut Markup, table: impl FnOnce(&mut Markup)) {
    markup.raw(
        "<p class=\"readout\" aria-live=\"polite\"></p>\n<details><summary>Numbers of this chart</summary>\n",
    );
    table(markup);
    markup.raw("</details>\n");
    markup.close("figure");
}
