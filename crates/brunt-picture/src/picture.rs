//! A picture as a list of shapes, in the order in which they are laid over one another.
//!
//! Invariant: a picture has at least one pixel, so that it can be written in every format.

use crate::font::text_width;
use crate::heat_map::Cells;
use crate::ink::Ink;

/// A place in a picture: pixels from its left upper corner, to the right and down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y }
    }
}

/// A rectangle along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Its left edge.
    pub x: f64,
    /// Its upper edge.
    pub y: f64,
    /// To the right.
    pub width: f64,
    /// Down.
    pub height: f64,
}

impl Area {
    /// The right edge.
    pub fn right(self) -> f64 {
        self.x + self.width
    }

    /// The lower edge.
    pub fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// How a colour covers a shape. Textures can be told apart without colour, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Texture {
    /// Everywhere.
    Plain,
    /// In parallel lines.
    Hatched,
    /// In lines that cross.
    Crossed,
}

/// What fills a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// In which colour.
    pub ink: Ink,
    /// From 0, nothing, to 1, all of it.
    pub opacity: f64,
    /// How it covers the shape.
    pub texture: Texture,
}

impl Fill {
    /// All of a colour.
    pub const fn solid(ink: Ink) -> Self {
        Self::faint(ink, 1.0)
    }

    /// A part of a colour, from 0 to 1.
    pub const fn faint(ink: Ink, opacity: f64) -> Self {
        Self { ink, opacity, texture: Texture::Plain }
    }

    /// A colour in lines.
    pub const fn textured(ink: Ink, texture: Texture) -> Self {
        Self { ink, opacity: 1.0, texture }
    }
}

/// What draws a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// In which colour.
    pub ink: Ink,
    /// In pixels.
    pub width: f64,
    /// Lengths of line and gap in turns, an even number of them; none for a line without gaps.
    pub dash: &'static [f32],
}

impl Stroke {
    /// A line without gaps.
    pub const fn solid(ink: Ink, width: f64) -> Self {
        Self { ink, width, dash: &[] }
    }
}

/// Which end of a text lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The first character begins there.
    Start,
    /// Half of it lies on either side.
    Middle,
    /// The last character ends there.
    End,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Where its base line begins, has its middle or ends.
    pub at: Point,
    /// The end of the text that lies at its point.
    pub anchor: Anchor,
    /// Height of a line in pixels; a capital letter has 0.73 of it.
    pub size: f64,
    /// In which colour.
    pub ink: Ink,
    /// A border around each character, for text that lies on data.
    pub halo: Option<Ink>,
    /// What it says.
    pub content: String,
}

impl Text {
    /// Where its first character begins.
    pub(crate) fn left(&self) -> f64 {
        let width = text_width(&self.content, self.size);
        match self.anchor {
            Anchor::Start => self.at.x,
            Anchor::Middle => self.at.x - width / 2.0,
            Anchor::End => self.at.x - width,
        }
    }

    /// What it covers, from its base line up.
    pub fn area(&self) -> Area {
        let (x, y, width) = (self.left(), self.at.y - self.size, text_width(&self.content, self.size));
        Area { x, y, width, height: self.size }
    }

    /// How wide the pen of the halo is, half of which lies outside the characters.
    pub(crate) fn halo_width(&self) -> f64 {
        self.size / 6.0
    }
}

/// What earlier texts have left free.
#[derive(Debug, Default)]
pub struct Room {
    taken: Vec<Area>,
}

impl Room {
    /// What is left free between two texts beside and above one another.
    const GAPS: (f64, f64) = (8.0, 2.0);

    /// Reserves what a text covers, if it is free.
    pub fn take(&mut self, text: &Text) -> bool {
        let area = text.area();
        let area = Area { width: area.width + Self::GAPS.0, height: area.height + Self::GAPS.1, ..area };
        let is_beside = |held: &Area| area.x >= held.right() || held.x >= area.right();
        let is_above = |held: &Area| area.y >= held.bottom() || held.y >= area.bottom();
        let is_free = self.taken.iter().all(|held| is_beside(held) || is_above(held));
        self.taken.extend(is_free.then_some(area));
        is_free
    }
}

/// Something to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A line through points.
    Polyline {
        /// At least two, in order.
        points: Vec<Point>,
        /// Colour, width and dashes of the line.
        stroke: Stroke,
    },
    /// A filled area between points.
    Polygon {
        /// At least three, around it.
        points: Vec<Point>,
        /// Colour and opacity.
        fill: Fill,
    },
    /// A grid of cells that each have a colour.
    Cells {
        /// What they fill, evenly.
        area: Area,
        /// The cells and their colours.
        cells: Cells,
    },
    /// A line of text.
    Text(Text),
    /// Dots, each around a point.
    Dots {
        /// Their middles.
        points: Vec<Point>,
        /// Their colour, and in pixels how wide they are.
        stroke: Stroke,
    },
    /// Shapes that belong together: SVG has them in a group of this class.
    Group {
        /// The name of the class.
        class: &'static str,
        /// In the order in which they are laid over one another.
        shapes: Vec<Shape>,
    },
    /// A picture with its left upper corner at a point.
    Placed {
        /// The point.
        at: Point,
        /// What the picture has.
        shapes: Vec<Shape>,
    },
    /// Shapes between axes: in SVG a drawing of its own, so that a browser can show a part of it enlarged. None lies outside.
    Plot {
        /// What lies between the axes.
        area: Area,
        /// In the order in which they are laid over one another, in pixels of the picture.
        shapes: Vec<Shape>,
    },
}

impl Shape {
    /// A filled rectangle.
    pub fn rectangle(area: Area, fill: Fill) -> Self {
        let (left, top, right, bottom) = (area.x, area.y, area.right(), area.bottom());
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        Self::Polygon { points: corners.map(Point::from).to_vec(), fill }
    }

    /// A line between two points.
    pub fn line(from: Point, to: Point, stroke: Stroke) -> Self {
        Self::Polyline { points: vec![from, to], stroke }
    }
}

/// On paper: points, of which an inch has 72, to a pixel. Names of 12 pixels are 8 points high.
pub(crate) const POINTS_PER_PIXEL: f64 = 8.0 / 12.0;
/// Of a printed PNG.
pub(crate) const DOTS_PER_INCH: f64 = 600.0;

/// Shapes on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    /// What it shows, for who cannot see it.
    pub(crate) title: String,
    /// Where it comes from; empty if that is not said.
    pub description: String,
    /// The page.
    pub(crate) background: Ink,
    pub(crate) shapes: Vec<Shape>,
}

impl Picture {
    /// An empty page; one without width or height is one pixel wide or high.
    pub fn new(width: u32, height: u32, background: Ink, title: impl Into<String>) -> Self {
        Self {
            width: width.max(1),
            height: height.max(1),
            title: title.into(),
            description: String::new(),
            background,
            shapes: Vec::new(),
        }
    }

    /// Lays another picture over what is there; its left upper corner lies at this point.
    pub fn place(&mut self, other: Self, at: Point) {
        self.push(Shape::Placed { at, shapes: other.shapes });
    }

    /// Lays a shape over those that are there.
    pub fn push(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    /// Fills a rectangle.
    pub fn rectangle(&mut self, area: Area, fill: Fill) {
        self.push(Shape::rectangle(area, fill));
    }

    /// Draws a line between two points.
    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.push(Shape::line(from, to, stroke));
    }

    /// Writes a line of text.
    pub fn text(&mut self, text: Text) {
        self.push(Shape::Text(text));
    }
}
