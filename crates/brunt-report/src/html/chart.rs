//! A chart as data: axes, series of marks at values of these axes, and notes. It is drawn in any size; a figure is charts with a legend, what
//! they show in words, and their numbers.
//!
//! Invariants: a series has one group of the drawing and one entry of the legend; values outside an axis lie at its nearer end; no note covers
//! another, and none reaches beyond the right end of the plot.

use super::page::Markup;
use crate::grid::Grid;
use crate::quantity::round_time;
use brunt_picture::axis::{Side, axis, number_label, time_label};
use brunt_picture::{Anchor, Area, Cells, Fill, Ink, Picture, Point, Room, Scale, Shape, Stroke, Text};
use brunt_plan::quantile::Quantile;

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
const NOTE_SIZE: f64 = 12.0;
/// Size of a sample in a legend, and how wide its dots are at most.
pub(crate) const SAMPLE: Point = Point { x: 26.0, y: 14.0 };
const SAMPLE_DOT: f64 = 13.0;

const OBJECTIVE: Stroke = Stroke { ink: Ink::Caution, width: 1.5, dash: &[6.0, 3.0] };

/// Values of both axes.
pub(crate) type Place = (f64, f64);
pub(crate) const LEAST: f64 = f64::NEG_INFINITY;
pub(crate) const MOST: f64 = f64::INFINITY;

/// One request of so many lies above a percentile that has a name on an axis: p50, p90, p99 and so on, and at the end p75 and p95.
const RARITIES: [u32; 9] = [2, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 4, 20];

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
    /// So many rows, from the bottom, without names.
    Rows(usize),
    /// Shares of change, as far to either side.
    Change(f64),
    /// Percentiles by how rare what lies above them is: the decimal logarithm of 1/(1 - p).
    Percentile(f64),
}

impl Values {
    fn scale(self, pixels: (f64, f64)) -> Scale {
        let linear = |low, high| Scale::linear((low, high), pixels);
        match self {
            Self::Latency(low, high) => Scale::logarithmic((low, high), pixels),
            Self::Ratio(high) => Scale::logarithmic((1.0, high), pixels),
            Self::Number(high) | Self::Count(high) | Self::Percentile(high) => linear(0.0, high),
            Self::Time(low, high) => linear(low, high),
            Self::Rows(count) => linear(0.0, count as f64),
            Self::Change(most) => linear(-most, most),
        }
    }

    fn ticks(self, scale: &Scale, most: usize) -> Vec<(f64, String)> {
        let named = |values: Vec<f64>, label: &dyn Fn(f64) -> String| {
            values.into_iter().map(|value| (value, label(value))).collect()
        };
        match self {
            Self::Latency(..) => named(scale.ticks(most.max(3)), &|ns| round_time(ns.round() as u64)),
            Self::Rows(_) => Vec::new(),
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
                // A narrow axis has no room for names between those of the decades, which come first.
                let shown = if most > X_TICKS_MIN { RARITIES.len() } else { RARITIES.len() - 2 };
                let tick = |rarity: &u32| {
                    let quantile = Quantile::from_millionths(1_000_000 - 1_000_000 / rarity)?;
                    Some((f64::from(*rarity).log10(), quantile.to_string()))
                };
                RARITIES[..shown].iter().filter_map(tick).filter(|(value, _)| *value <= high).collect()
            }
        }
    }
}

/// Something between the axes.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    Line(Vec<Place>, Stroke),
    Area(Vec<Place>, Fill),
    Dots(Vec<Place>, Stroke),
    /// From one value of x to another, and from the bottom to a value of y; one pixel wide and two high at least.
    Bar(f64, f64, f64, Fill),
    /// As wide, from the bottom to the top.
    Cells(f64, f64, Cells),
    /// An outline in pixels around a place, x and y in turns.
    Symbol(Place, &'static [f64], Fill),
}

impl Mark {
    /// Lines at the values of pieces of x, from and to; interrupted where there is none. Cased ones stand out from what lies below.
    pub(crate) fn steps(
        pieces: impl Iterator<Item = (f64, f64, Option<f64>)>,
        stroke: Stroke,
        is_cased: bool,
    ) -> Vec<Self> {
        let pieces: Vec<_> = pieces.collect();
        let mut lines = Vec::new();
        for run in pieces.chunk_by(|one, next| one.2.is_some() == next.2.is_some()) {
            let ends =
                run.iter().filter_map(|(from, to, value)| Some([(*from, (*value)?), (*to, (*value)?)]));
            let places: Vec<Place> = ends.flatten().collect();
            if !places.is_empty() {
                let casing = Stroke::solid(Ink::Page, stroke.width + 2.0);
                lines.extend(is_cased.then(|| Self::Line(places.clone(), casing)));
                lines.push(Self::Line(places, stroke));
            }
        }
        lines
    }

    /// Draws it at pixels; `None` where there is too little of it.
    fn draw(&self, plot: Area, at: &dyn Fn(&Place) -> Point) -> Option<Shape> {
        let span = |from: f64, to: f64| {
            let [from, to] = [from, to].map(|x| at(&(x, LEAST)).x);
            Area { x: from, width: (to - from).max(1.0), ..plot }
        };
        match self {
            Self::Line(places, stroke) => {
                let points = through(places.iter().map(at));
                (points.len() > 1).then_some(Shape::Polyline { points, stroke: *stroke })
            }
            Self::Area(places, fill) => {
                let points = through(places.iter().map(at));
                (points.len() > 2).then_some(Shape::Polygon { points, fill: *fill })
            }
            Self::Dots(places, stroke) => {
                Some(Shape::Dots { points: places.iter().map(at).collect(), stroke: *stroke })
            }
            Self::Bar(from, to, top, fill) => {
                let y = at(&(*from, *top)).y.min(plot.bottom() - 2.0);
                let area = Area { y, height: plot.bottom() - y, ..span(*from, *to) };
                Some(Shape::rectangle(area, *fill))
            }
            Self::Cells(from, to, cells) => {
                Some(Shape::Cells { area: span(*from, *to), cells: cells.clone() })
            }
            Self::Symbol(place, outline, fill) => {
                Some(Shape::Polygon { points: around(at(place), outline), fill: *fill })
            }
        }
    }

    /// What it looks like in a legend, its dots smaller by this factor.
    fn sample(&self, shrink: f64) -> Shape {
        let middle = Point { x: SAMPLE.x / 2.0, y: SAMPLE.y / 2.0 };
        let area = |fill| Shape::rectangle(Area { x: 1.0, y: 1.0, width: 24.0, height: 12.0 }, fill);
        match self {
            Self::Line(_, stroke) => {
                let ends = [1.0, 25.0].map(|x| Point { x, ..middle });
                Shape::Polyline { points: ends.to_vec(), stroke: *stroke }
            }
            Self::Area(_, fill) | Self::Bar(.., fill) => area(*fill),
            Self::Cells(..) => area(Fill::solid(Ink::Heat(4))),
            Self::Dots(_, stroke) => {
                let stroke = Stroke { width: stroke.width * shrink, ..*stroke };
                Shape::Dots { points: vec![middle], stroke }
            }
            Self::Symbol(_, outline, fill) => Shape::Polygon { points: around(middle, outline), fill: *fill },
        }
    }
}

fn around(at: Point, outline: &[f64]) -> Vec<Point> {
    outline.chunks(2).map(|by| Point { x: at.x + by[0], y: at.y + by[1] }).collect()
}

/// Marks that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The group of the drawing, which a click on the legend hides; what has none cannot be hidden.
    pub(crate) class: &'static str,
    /// In the legend; what has none is not there.
    pub(crate) name: String,
    pub(crate) marks: Vec<Mark>,
}

impl Series {
    pub(crate) fn new(class: &'static str, name: impl Into<String>, marks: Vec<Mark>) -> Self {
        Self { class, name: name.into(), marks }
    }
}

/// A text inside a chart.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) at: Place,
    /// In pixels, to the right and down.
    pub(crate) offset: Place,
    pub(crate) anchor: Anchor,
    pub(crate) ink: Ink,
    /// The first that has room is written.
    pub(crate) texts: Vec<String>,
    /// It must end before this value of x; without one it is shifted to end within the plot.
    pub(crate) end: f64,
}

impl Note {
    pub(crate) fn new(at: Place, offset: Place, anchor: Anchor, ink: Ink, text: impl Into<String>) -> Self {
        Self { at, offset, anchor, ink, texts: vec![text.into()], end: MOST }
    }

    /// The first of its texts that has room beside those before, if one has.
    fn text(&self, plot: Area, at: &dyn Fn(&Place) -> Point, room: &mut Room) -> Option<Text> {
        let Self { offset, anchor, ink, .. } = *self;
        let (place, end) = (at(&self.at), at(&(self.end, LEAST)).x);
        let place = Point { x: place.x + offset.0, y: (place.y + offset.1).max(plot.y + NOTE_SIZE) };
        let halo = Some(Ink::Page);
        let text = |content: &String| {
            let content = content.clone();
            let mut text = Text { at: place, anchor, size: NOTE_SIZE, ink, halo, content };
            if self.end == MOST {
                text.at.x -= (text.area().right() - plot.right()).max(0.0);
            }
            text
        };
        let fits = |area: Area| area.width < plot.width && area.right() <= end.max(place.x);
        self.texts.iter().map(text).find(|text| fits(text.area()) && room.take(text))
    }
}

/// How wide a drawing is, and how high the plot between its axes, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Axes with their titles, and what lies between them, the uppermost last.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// For who cannot see it.
    pub(crate) title: String,
    pub(crate) x: (Values, &'static str),
    pub(crate) y: (Values, &'static str),
    /// Of the plot on a page.
    pub(crate) height: f64,
    /// Below the others, and last in the legend.
    pub(crate) background: Vec<Series>,
    pub(crate) series: Vec<Series>,
    /// The most important first.
    pub(crate) notes: Vec<Note>,
}

impl Chart {
    pub(crate) fn new(
        title: impl Into<String>,
        x: (Values, &'static str),
        y: (Values, &'static str),
        height: f64,
    ) -> Self {
        let (background, series, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { title: title.into(), x, y, height, background, series, notes }
    }

    pub(crate) fn push(&mut self, class: &'static str, name: impl Into<String>, marks: Vec<Mark>) {
        self.series.push(Series::new(class, name, marks));
    }

    /// A line at an objective of latency, from one value of x to another, with its words.
    pub(crate) fn objective(&mut self, (from, to): (f64, f64), ns: f64, text: impl Into<String>) {
        self.push("", "", vec![Mark::Line(vec![(from, ns), (to, ns)], OBJECTIVE)]);
        self.notes.push(Note::new((from, ns), (4.0, -5.0), Anchor::Start, Ink::Caution, text));
    }

    /// What a drawing is higher than its plot.
    pub(crate) const fn margin(&self) -> f64 {
        TOP + if self.x.1.is_empty() { BOTTOM_UNTITLED } else { BOTTOM }
    }

    /// Draws it as a page has it.
    pub(crate) fn page(&self) -> Picture {
        self.draw(Size { width: WIDTH, height: self.height })
    }

    pub(crate) fn draw(&self, Size { width, height }: Size) -> Picture {
        let plot = Area { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height };
        let mut picture =
            Picture::new(width as u32, (height + self.margin()) as u32, Ink::Page, self.title.as_str());
        let x = self.x.0.scale((plot.x, plot.right()));
        let y = self.y.0.scale((plot.bottom(), plot.y));
        let tick_width = if height < STRIP_HEIGHT_MAX { 158.0 } else { 79.0 };
        let x_ticks = self.x.0.ticks(&x, ((plot.width / tick_width) as usize).max(X_TICKS_MIN));
        let y_ticks = self.y.0.ticks(&y, (height / 34.0) as usize);
        for (class, side, scale, ticks, title) in
            [("y", Side::Left, &y, y_ticks, self.y.1), ("x", Side::Bottom, &x, x_ticks, self.x.1)]
        {
            picture.push(Shape::Group { class, shapes: axis(plot, side, scale, &ticks, title) });
        }
        let at = |place: &Place| Point { x: x.pixel(place.0), y: y.pixel(place.1) };
        let group = |Series { class, marks, .. }: &Series| {
            let shapes = marks.iter().filter_map(|mark| mark.draw(plot, &at)).collect();
            Shape::Group { class, shapes }
        };
        let shapes = self.background.iter().chain(&self.series).map(group).collect();
        picture.push(Shape::Plot { area: plot, shapes });
        let mut room = Room::default();
        for text in self.notes.iter().filter_map(|note| note.text(plot, &at, &mut room)) {
            picture.push(Shape::Group { class: "note", shapes: vec![Shape::Text(text)] });
        }
        picture
    }
}

/// The points, without those inside of a horizontal line.
fn through(all: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for point in all {
        match points.as_mut_slice() {
            [.., before, last]
                if (before.y - last.y).abs() < 0.005
                    && (last.y - point.y).abs() < 0.005
                    && (last.x - before.x) * (point.x - last.x) >= 0.0 =>
            {
                *last = point;
            }
            _ => points.push(point),
        }
    }
    points
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

/// An entry of a legend: its name, the group of the chart that it hides, if any, and what that looks like.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) sample: Picture,
}

/// The legend of several charts: a series is there once, by its first mark and those of its kind, and one without marks is not.
pub(crate) fn keys(charts: &[Chart]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    let backgrounds = charts.iter().flat_map(|chart| &chart.background);
    for series in charts.iter().flat_map(|chart| &chart.series).chain(backgrounds) {
        let Series { class, name, marks } = series;
        let is_there = keys.iter().any(|key| key.name == *name);
        let Some(first) = marks.first().filter(|_| !name.is_empty() && !is_there) else { continue };
        let dot = |mark: &Mark| if let Mark::Dots(_, stroke) = mark { stroke.width } else { 0.0 };
        let shrink = (SAMPLE_DOT / marks.iter().map(dot).fold(SAMPLE_DOT, f64::max)).min(1.0);
        let is_like_it = |mark: &&Mark| std::mem::discriminant(*mark) == std::mem::discriminant(first);
        let mut sample = Picture::new(SAMPLE.x as u32, SAMPLE.y as u32, Ink::Page, "");
        let mut shapes: Vec<Shape> = Vec::new();
        for shape in marks.iter().filter(is_like_it).map(|mark| mark.sample(shrink)) {
            if !shapes.contains(&shape) {
                sample.push(shape.clone());
                shapes.push(shape);
            }
        }
        keys.push(Key { name: name.clone(), class, sample });
    }
    keys
}

/// Charts with what they show in words, a legend, and a table of their numbers with its caption.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) finding: String,
    /// Where its charts share a cursor: what lies along their x axis, and from where to where.
    pub(crate) cursor: Option<(&'static str, Place)>,
    pub(crate) charts: Vec<Chart>,
    /// Why there are not more of them.
    pub(crate) remarks: Vec<String>,
    pub(crate) table: Option<(String, Grid)>,
}

impl Figure {
    /// Of one chart.
    pub(crate) fn of(finding: impl Into<String>, chart: Chart) -> Self {
        let (charts, remarks) = (vec![chart], Vec::new());
        Self { finding: finding.into(), cursor: None, charts, remarks, table: None }
    }

    pub(crate) fn write(&self, markup: &mut Markup) {
        self.write_with(&keys(&self.charts), markup);
    }

    /// Writes it with this legend.
    pub(crate) fn write_with(&self, keys: &[Key], markup: &mut Markup) {
        match self.cursor {
            None => markup.raw("<figure>"),
            Some((kind, (low, high))) => {
                markup.open("figure", &[("data-kind", kind), ("data-range", &format!("{low} {high}"))]);
            }
        }
        markup.element("figcaption", &self.finding);
        legend(markup, keys);
        for chart in &self.charts {
            markup.raw("<div class=\"chart\">");
            markup.picture(&chart.page());
            markup.raw("</div>\n");
        }
        self.remarks.iter().for_each(|remark| markup.element("p", remark));
        if self.cursor.is_some() {
            markup.raw("<p class=\"readout\" aria-live=\"polite\"></p>\n");
        }
        if let Some((caption, grid)) = &self.table {
            markup.raw("<details><summary>Numbers of this chart</summary>\n");
            markup.grid(caption, grid, None);
            markup.raw("</details>\n");
        }
        markup.close("figure");
    }
}

/// A legend: of a figure, or of several.
pub(crate) fn legend(markup: &mut Markup, keys: &[Key]) {
    if keys.is_empty() {
        return;
    }
    markup.raw("<ul class=\"legend\">");
    for Key { name, class, sample } in keys {
        let group = [("data-group", *class)];
        markup.open("li", if class.is_empty() { &[] } else { &group });
        markup.picture(sample);
        markup.text(name);
        markup.close("li");
    }
    markup.raw("</ul>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that must end before a value is left out instead.
    #[test]
    fn a_note_at_the_right_edge_is_shifted() {
        let plot = Area { x: LEFT, y: TOP, width: 500.0, height: 100.0 };
        let at = |place: &Place| Point { x: LEFT + place.0.clamp(0.0, 1.0) * plot.width, y: TOP };
        let note = |x, text| Note::new((x, 0.0), (6.0, 0.0), Anchor::Start, Ink::Text, text);
        let right = |note: Note| {
            let text = note.text(plot, &at, &mut Room::default());
            text.map(|text| text.area().right())
        };
        assert_eq!(right(note(0.99, "p50 changes")), Some(plot.right()));
        assert!(right(note(0.1, "p50 changes")).is_some_and(|right| right < LEFT + 200.0));
        assert_eq!(right(Note { end: 0.8, ..note(0.79, "drain") }), None);
    }
}
