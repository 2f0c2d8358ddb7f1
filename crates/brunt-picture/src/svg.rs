//! A picture as SVG: text that a browser draws, scales and can be searched in.
//!
//! Invariant: whatever texts say, what comes out is well-formed XML that loads nothing from elsewhere.

use crate::cells::Cells;
use crate::font::{self, Step};
use crate::ink::{Ink, Theme};
use crate::picture::{Anchor, Area, Fill, Paper, Picture, Point, Shape, Stroke, Text, Texture};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// Writes a picture as an SVG document for print: of a size in points, in the colours of one theme, its letters as outlines, so that it looks
/// alike wherever it is set, with the description of the picture.
///
/// # Errors
/// Errors of the writer.
pub fn write_printed_svg(
    picture: &Picture,
    theme: Theme,
    paper: Paper,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Picture { width, height, .. } = *picture;
    let title = Escaped(&picture.title);
    let [across, down] = [width, height].map(|side| Number(f64::from(side) * paper.points_per_pixel));
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{across}pt" height="{down}pt" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">"#
    )?;
    writeln!(out, "<title>{title}</title>")?;
    if !picture.description.is_empty() {
        writeln!(out, "<desc>{}</desc>", Escaped(&picture.description))?;
    }
    let classes = Classes::of(picture);
    write_style(&classes.colors, theme, out)?;
    write_definitions(&classes.textures, out)?;
    writeln!(
        out,
        r#"<rect width="{width}" height="{height}" class="{}"/>"#,
        Class::Fill(picture.background)
    )?;
    write_shapes(&picture.shapes, Lettering::Outlines, out)?;
    writeln!(out, "</svg>")
}

/// How letters are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lettering {
    /// As text, which a browser sets and can search.
    Text,
    /// As their outlines.
    Outlines,
}

/// Writes a picture as a part of an HTML document: as wide as there is room, on the page's background. The document has a style for the
/// classes `fill-INK` and `stroke-INK`, and the textures of [`write_textures`].
///
/// # Errors
/// Errors of the writer.
pub fn write_svg_part(picture: &Picture, out: &mut dyn Write) -> io::Result<()> {
    let (width, height, title) = (picture.width, picture.height, Escaped(&picture.title));
    writeln!(out, r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">"#)?;
    write_shapes(&picture.shapes, Lettering::Text, out)?;
    writeln!(out, "</svg>")
}

/// Writes the textures of these colours as an SVG part that shows nothing, for all pictures of a document.
///
/// # Errors
/// Errors of the writer.
pub fn write_textures(inks: &[Ink], out: &mut dyn Write) -> io::Result<()> {
    let textures = [Texture::Hatched, Texture::Crossed];
    let all = inks.iter().flat_map(|ink| textures.map(|texture| (*ink, texture))).collect();
    writeln!(out, r#"<svg width="0" height="0" aria-hidden="true">"#)?;
    write_definitions(&all, out)?;
    writeln!(out, "</svg>")
}

/// A class of the style sheet: a colour, and what it is laid on with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Fill(Ink),
    Stroke(Ink),
}

impl Display for Class {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fill(ink) => write!(out, "fill-{ink}"),
            Self::Stroke(ink) => write!(out, "stroke-{ink}"),
        }
    }
}

/// The colours of the classes that occur. Classes instead of variables, which few programs but browsers know.
fn write_style(classes: &BTreeSet<Class>, theme: Theme, out: &mut dyn Write) -> io::Result<()> {
    let families = "'DejaVu Sans Mono',ui-monospace,Menlo,Consolas,monospace";
    writeln!(out, "<style>")?;
    writeln!(out, "text{{font-family:{families};white-space:pre;paint-order:stroke;stroke-linejoin:round}}")?;
    writeln!(out, "polyline{{fill:none;stroke-linejoin:round}}")?;
    for class in classes {
        let (property, ink) = match class {
            Class::Fill(ink) => ("fill", ink),
            Class::Stroke(ink) => ("stroke", ink),
        };
        writeln!(out, ".{class}{{{property}:{}}}", ink.color(theme))?;
    }
    writeln!(out, "</style>")
}

/// What occurs in a picture, and has to be defined outside its shapes.
#[derive(Default)]
struct Classes {
    colors: BTreeSet<Class>,
    textures: BTreeSet<(Ink, Texture)>,
}

impl Classes {
    fn of(picture: &Picture) -> Self {
        let mut classes = Self::default();
        classes.colors.insert(Class::Fill(picture.background));
        picture.shapes.iter().for_each(|shape| classes.add(shape));
        classes
    }

    fn add(&mut self, shape: &Shape) {
        match shape {
            Shape::Rectangle { fill, .. } | Shape::Polygon { fill, .. } if fill.texture == Texture::Plain => {
                self.colors.insert(Class::Fill(fill.ink));
            }
            Shape::Rectangle { fill, .. } | Shape::Polygon { fill, .. } => {
                self.colors.insert(Class::Stroke(fill.ink));
                self.textures.insert((fill.ink, fill.texture));
            }
            Shape::Polyline { stroke, .. } | Shape::Dots { stroke, .. } => {
                self.colors.insert(Class::Stroke(stroke.ink));
            }
            Shape::Cells { cells, .. } => {
                self.colors.extend(cells.inks().iter().map(|ink| Class::Stroke(*ink)));
            }
            Shape::Text(text) => {
                self.colors.insert(Class::Fill(text.ink));
                self.colors.extend(text.halo.map(Class::Stroke));
            }
            Shape::Group { shapes, .. } | Shape::Plot { shapes, .. } => {
                shapes.iter().for_each(|shape| self.add(shape));
            }
        }
    }
}

/// The name of a texture in a colour, which fills refer to.
struct TextureName(Ink, Texture);

impl Display for TextureName {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let name = if self.1 == Texture::Crossed { "crossed" } else { "hatched" };
        write!(out, "{name}-{}", self.0)
    }
}

/// Lines of 45 degrees, a pixel wide, every six.
fn write_definitions(textures: &BTreeSet<(Ink, Texture)>, out: &mut dyn Write) -> io::Result<()> {
    if textures.is_empty() {
        return Ok(());
    }
    writeln!(out, "<defs>")?;
    for (ink, texture) in textures {
        let (name, class) = (TextureName(*ink, *texture), Class::Stroke(*ink));
        let lines = if *texture == Texture::Crossed { "M0 6L6 0M0 0L6 6" } else { "M0 6L6 0" };
        writeln!(
            out,
            r#"<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{lines}" class="{class}"/></pattern>"#
        )?;
    }
    writeln!(out, "</defs>")
}

fn write_shapes(shapes: &[Shape], lettering: Lettering, out: &mut dyn Write) -> io::Result<()> {
    shapes.iter().try_for_each(|shape| write_shape(shape, lettering, out))
}

fn write_shape(shape: &Shape, lettering: Lettering, out: &mut dyn Write) -> io::Result<()> {
    match shape {
        Shape::Rectangle { area, fill } => {
            let Area { x, y, width, height } = *area;
            let (x, y, width, height) = (Number(x), Number(y), Number(width), Number(height));
            writeln!(out, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}"{}/>"#, Filled(fill))
        }
        Shape::Polygon { points, fill } => {
            writeln!(out, r#"<polygon points="{}"{}/>"#, Points(points), Filled(fill))
        }
        Shape::Polyline { points, stroke } => write_polyline(points, stroke, out),
        Shape::Cells { area, cells } => write_cells(*area, cells, out),
        Shape::Text(text) => match lettering {
            Lettering::Text => write_text(text, out),
            Lettering::Outlines => write_outlines(text, out),
        },
        Shape::Dots { points, stroke } => write_dots(points, stroke, out),
        Shape::Group { class, shapes } => {
            writeln!(out, r#"<g class="{class}">"#)?;
            write_shapes(shapes, lettering, out)?;
            writeln!(out, "</g>")
        }
        Shape::Plot { area, shapes } => {
            let Area { x, y, width, height } = *area;
            let (x, y, width, height) = (Number(x), Number(y), Number(width), Number(height));
            writeln!(
                out,
                r#"<svg class="plot" x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}" preserveAspectRatio="none">"#
            )?;
            write_shapes(shapes, lettering, out)?;
            writeln!(out, "</svg>")
        }
    }
}

/// Lines without length with round ends, which stay round where a browser stretches what they lie in.
fn write_dots(points: &[Point], stroke: &Stroke, out: &mut dyn Write) -> io::Result<()> {
    let (class, width) = (Class::Stroke(stroke.ink), Number(stroke.width));
    write!(out, r#"<path class="{class}" stroke-width="{width}" stroke-linecap="round" d=""#)?;
    for point in points {
        write!(out, "M{} {}h0", Number(point.x), Number(point.y))?;
    }
    writeln!(out, r#""/>"#)
}

fn write_polyline(points: &[Point], stroke: &Stroke, out: &mut dyn Write) -> io::Result<()> {
    let (points, class, width) = (Points(points), Class::Stroke(stroke.ink), Number(stroke.width));
    write!(out, r#"<polyline points="{points}" class="{class}" stroke-width="{width}""#)?;
    if !stroke.dash.is_empty() {
        let lengths: Vec<String> = stroke.dash.iter().map(f32::to_string).collect();
        write!(out, r#" stroke-dasharray="{}""#, lengths.join(" "))?;
    }
    writeln!(out, "/>")
}

/// A path for each colour, in units of cells: a line down each run, as wide as a cell. Few characters, however large cells are.
fn write_cells(area: Area, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
    if cells.rows() == 0 {
        return Ok(());
    }
    // The lines run through the middles of columns.
    let (width, height) = (area.width / cells.columns() as f64, area.height / cells.rows() as f64);
    let (x, y) = (Number(area.x + width / 2.0), Number(area.y));
    writeln!(
        out,
        r#"<g class="cells" transform="translate({x} {y}) scale({width:.6} {height:.6})" shape-rendering="crispEdges">"#
    )?;
    for (index, ink) in cells.inks().iter().enumerate() {
        let mut runs = cells.runs(index).peekable();
        if runs.peek().is_none() {
            continue;
        }
        write!(out, r#"<path class="{}" d=""#, Class::Stroke(*ink))?;
        for run in runs {
            write!(out, "M{} {}v{}", run.column, run.rows.start, run.rows.len())?;
        }
        writeln!(out, r#""/>"#)?;
    }
    writeln!(out, "</g>")
}

fn write_text(text: &Text, out: &mut dyn Write) -> io::Result<()> {
    let (x, y, size) = (Number(text.at.x), Number(text.at.y), Number(text.size));
    write!(out, r#"<text x="{x}" y="{y}" font-size="{size}" class="{}"#, Class::Fill(text.ink))?;
    match text.halo {
        Some(ink) => write!(out, r#" {}" stroke-width="{}""#, Class::Stroke(ink), Number(text.halo_width()))?,
        None => write!(out, "\"")?,
    }
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => write!(out, r#" text-anchor="middle""#)?,
        Anchor::End => write!(out, r#" text-anchor="end""#)?,
    }
    writeln!(out, ">{}</text>", Escaped(&text.content))
}

/// The letters of a text as one path in units of the font; a halo is the path below them, since few programs but browsers draw a stroke
/// before its fill.
fn write_outlines(text: &Text, out: &mut dyn Write) -> io::Result<()> {
    let scale = font::scale(text.size);
    let mut path = String::new();
    let mut left = 0.0;
    for character in text.content.chars() {
        for step in font::outline(character).into_iter().flat_map(font::steps) {
            path.push_str(&match step {
                Step::Move(x, y) => format!("M{} {y}", x + left),
                Step::Line(x, y) => format!("L{} {y}", x + left),
                Step::Curve(control_x, control_y, x, y) => {
                    format!("Q{} {control_y} {} {y}", control_x + left, x + left)
                }
                Step::Close => "Z".to_owned(),
            });
        }
        left += font::ADVANCE as f32;
    }
    if path.is_empty() {
        return Ok(());
    }
    let (x, y) = (Number(text.left()), Number(text.at.y));
    writeln!(out, r#"<g transform="translate({x} {y}) scale({scale:.6} -{scale:.6})">"#)?;
    if let Some(ink) = text.halo {
        let (class, width) = (Class::Stroke(ink), Number(text.halo_width() / scale));
        writeln!(
            out,
            r#"<path fill="none" stroke-linejoin="round" stroke-width="{width}" class="{class}" d="{path}"/>"#
        )?;
    }
    writeln!(out, r#"<path class="{}" d="{path}"/></g>"#, Class::Fill(text.ink))
}

/// A coordinate with at most two digits after its point: finer than a pixel of any screen.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 * 100.0).round();
        // Not −0: adding 0 makes it positive.
        write!(out, "{}", hundredths / 100.0 + 0.0)
    }
}

struct Points<'a>(&'a [Point]);

impl Display for Points<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (index, point) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(out, "{gap}{},{}", Number(point.x), Number(point.y))?;
        }
        Ok(())
    }
}

/// The attributes of a filled shape.
struct Filled<'a>(&'a Fill);

impl Display for Filled<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Fill { ink, opacity, texture } = *self.0;
        match texture {
            Texture::Plain => write!(out, r#" class="{}""#, Class::Fill(ink))?,
            _ => write!(out, r#" fill="url(#{})""#, TextureName(ink, texture))?,
        }
        if opacity < 1.0 { write!(out, r#" fill-opacity="{}""#, Number(opacity)) } else { Ok(()) }
    }
}

/// Text between tags and in attributes. Characters that XML has no way to hold become U+FFFD.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                '\t' | '\n' | '\r' => write!(out, "&#{};", u32::from(character))?,
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.write_str("\u{fffd}")?,
                _ => write!(out, "{character}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.001, "0"),
            (1.5, "1.5"),
            (1.0 / 3.0, "0.33"),
            (-2.675, "-2.68"),
            (1e5, "100000"),
        ];
        for (value, expected) in cases {
            assert_eq!(Number(value).to_string(), expected, "{value}");
        }
    }

    #[test]
    fn whatever_a_text_says_comes_back_from_an_xml_parser() {
        let cases = [
            ("a < b & c > d", "a < b & c > d"),
            ("]]> <!-- \"'", "]]> <!-- \"'"),
            ("</text><script>alert(1)</script>", "</text><script>alert(1)</script>"),
            ("two\nlines\tand\rmore", "two\nlines\tand\rmore"),
            ("bell \u{7} nul \0 end", "bell \u{fffd} nul \u{fffd} end"),
            ("µ ± ≤ 漢 🙂", "µ ± ≤ 漢 🙂"),
        ];
        for (content, expected) in cases {
            let mut picture = Picture::new(10, 10, Ink::Page, content);
            picture.text(Text {
                at: Point { x: 1.0, y: 2.0 },
                anchor: Anchor::Start,
                size: 12.0,
                ink: Ink::Text,
                halo: None,
                content: content.to_owned(),
            });
            let mut bytes = Vec::new();
            write_svg_part(&picture, &mut bytes).expect("a vector takes everything");
            let text = String::from_utf8(bytes).expect("text");
            let document =
                roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let read =
                document.descendants().find(|node| node.has_tag_name("text")).and_then(|node| node.text());
            assert_eq!(read, Some(expected));
            assert_eq!(document.root_element().attribute("aria-label"), Some(expected));
            assert!(document.descendants().all(|node| !node.has_tag_name("script")));
        }
    }
}
