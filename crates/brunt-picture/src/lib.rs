//! Pictures: what is in a chart, and two ways to write it.
//!
//! A [`Picture`] is a list of shapes in pixels, y downwards. [`svg_part`] makes a part of an HTML document of it, in the
//! colours of that document's style; [`write_png`] draws it here;
//! [`write_printed_svg`] and [`write_printed_png`] do so for paper. Scales, [`axis`] and [`heat_map`]
//! turn data into shapes. Not a report: which charts there are, and what their words say, is the business of who draws them. Pure:
//! no clock, no file, no thread; the same picture is the same bytes.

#![forbid(unsafe_code)]

pub mod axis;
mod font;
pub mod heat_map;
mod ink;
mod picture;
mod raster;
mod svg;

pub use axis::Scale;
pub use font::text_width;
pub use heat_map::Cells;
pub use ink::{Color, Ink, Theme};
pub use picture::{Anchor, Area, Fill, Picture, Point, Room, Shape, Stroke, Text, Texture};
pub use raster::{write_png, write_printed_png};
pub use svg::{Escaped, svg_part, textures, write_printed_svg};

#[cfg(test)]
mod tests;
