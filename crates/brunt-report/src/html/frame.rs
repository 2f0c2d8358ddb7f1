//! The frame of a chart: its size, axes with their labels, and the elements that hold it.
//!
//! Not what is drawn in it.

use super::markup::Markup;
use crate::quantity::round_time;
use brunt_picture::axis::{Axis, Side, Tick, number_label, time_label};
use brunt_picture::{Anchor, Area, Ink, Picture, Point, Scale, Shape, Stroke, Text};

/// Charts of a page are as wide in their own pixels; a browser scales them.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// Where the axis below has no title.
const BOTTOM_UNTITLED: f64 = 24.0;
/// Of a narrow chart, in which tick marks lie closer.
const X_TICKS_MIN: usize = 5;
/// A lower chart stands below one whose tick marks it repeats, and has half as many.
const STRIP_HEIGHT_MAX: f64 = 100.0;
/// Size of notes inside a chart.
pub(crate) const NOTE_SIZE: f64 = 12.0;

/// How wide a chart is, and how high the plot between its axes, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Size {
    /// On a page.
    pub(crate) const fn page(height: f64) -> Self {
        Self { width: WIDTH, height }
    }
}

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
    /// Numbers from 1, by ratio.
    Ratio(f64),
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
    pub(crate) fn new(title: &str, size: Size, x: (Values, &str), y: (Values, &str)) -> Self {
        let Size { width, height } = size;
        let plot = Area { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height };
        let (x_values, x_title) = x;
        let bottom = if x_title.is_empty() { BOTTOM_UNTITLED } else { BOTTOM };
        let mut picture = Picture::new(width as u32, (TOP + height + bottom) as u32, Ink::Page, title);
        let (y_values, y_title) = y;
        let x = x_values.scale((plot.x, plot.right()));
        let y = y_values.scale((plot.bottom(), plot.y));
        let axis = |side, values: Values, scale: Scale, ticks, title: &str| Axis {
            side,
            scale,
            ticks: values.ticks(&scale, ticks),
            title: title.to_owned(),
        };
        let x_tick_width = if height < STRIP_HEIGHT_MAX { 158.0 } else { 79.0 };
        let (x_ticks, y_ticks) =
            (((plot.width / x_tick_width) as usize).max(X_TICKS_MIN), (height / 34.0) as usize);
        picture.group("y", |picture| axis(Side::Left, y_values, y, y_ticks, y_title).draw(plot, picture));
        picture.group("x", |picture| axis(Side::Bottom, x_values, x, x_ticks, x_title).draw(plot, picture));
        Self { plot, x, y, picture }
    }

    pub(crate) fn at(&self, x: f64, y: f64) -> Point {
        Point { x: self.x.pixel(x), y: self.y.pixel(y) }
    }

    /// Draws between the axes.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Picture, &Self)) {
        let mut picture = std::mem::replace(&mut self.picture, Picture::new(1, 1, Ink::Page, ""));
        picture.plot(self.plot, |picture| draw(picture, self));
        self.picture = picture;
    }

    /// What a chart is higher than its plot.
    pub(crate) const fn margin(has_x_title: bool) -> f64 {
        TOP + if has_x_title { BOTTOM } else { BOTTOM_UNTITLED }
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
            Self::Ratio(high) => Scale::logarithmic((1.0, high), pixels),
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
            Self::Latency(..) => named(scale.ticks(most.max(3)), &|ns| round_time(ns.round() as u64)),
            Self::None => Vec::new(),
            Self::Change(_) => named(scale.ticks(most), &|share| match number_label(share * 100.0) {
                label if share > 1e-9 => format!("+{label} %"),
                label => format!("{label} %"),
            }),
            Self::Number(_) | Self::Ratio(_) => named(scale.ticks(most.max(3)), &number_label),
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
                // A narrow axis has no room for names between those of the decades, which come first.
                let is_named = |tick: &Tick| most > X_TICKS_MIN || !["p75", "p95"].contains(&&*tick.label);
                ticks.filter(|tick| tick.value <= high && is_named(tick)).collect()
            }
        }
    }
}

/// An entry of a legend: what a line looks like, its name, and the class of the group that shows it.
pub(crate) struct Key {
    pub(crate) name: String,
    /// The group of the chart that a click hides; empty if none is.
    pub(crate) class: &'static str,
    pub(crate) sample: Shape,
}

/// How many results a chart tells apart.
pub(crate) const RESULTS_MAX: usize = 6;
/// The groups of their lines.
pub(crate) const RESULT_CLASSES: [&str; RESULTS_MAX] =
    ["result-0", "result-1", "result-2", "result-3", "result-4", "result-5"];

/// The line of one of several results, which its dashes tell from the others without colour, too.
pub(crate) fn result_stroke(index: usize) -> Stroke {
    const DASHES: [&[f32]; RESULTS_MAX] =
        [&[], &[6.0, 3.0], &[2.0, 2.0], &[8.0, 3.0, 2.0, 3.0], &[1.0, 3.0], &[12.0, 4.0]];
    Stroke { ink: Ink::Series(index), width: 2.0, dash: DASHES[index % RESULTS_MAX] }
}

/// Size of a sample in a legend.
pub(crate) const SAMPLE: Point = Point { x: 26.0, y: 14.0 };

impl Key {
    /// The picture of its sample.
    pub(crate) fn picture(sample: Shape) -> Picture {
        let mut picture = Picture::new(SAMPLE.x as u32, SAMPLE.y as u32, Ink::Page, "");
        picture.push(sample);
        picture
    }
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
    legend(markup, keys);
}

/// A legend: of a figure, or of several charts.
pub(crate) fn legend(markup: &mut Markup, keys: Vec<Key>) {
    markup.raw("<ul class=\"legend\">");
    for Key { name, class, sample } in keys {
        let group = [("data-group", class)];
        // What is no group of the chart is no switch.
        markup.open("li", if class.is_empty() { &[] } else { &group });
        markup.picture(&Key::picture(sample));
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
