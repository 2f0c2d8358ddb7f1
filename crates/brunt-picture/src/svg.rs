//! A picture as SVG: text that a browser draws, scales and can be searched in.
//!
//! Invariant: whatever texts say, what comes out is well-formed XML that loads nothing from elsewhere.

use crate::font;
use crate::heat_map::Cells;
use crate::ink::{Ink, Theme};
use crate::picture::{Anchor, Area, Fill, POINTS_PER_PIXEL, Picture, Point, Shape, Stroke, Text, Texture};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// Colours that textures are drawn in.
const TEXTURED: [Ink; 4] = [Ink::Soft, Ink::Caution, Ink::Invalid, Ink::Series(0)];

/// Writes a picture as an SVG document for print: of a size in points, in the colours of one theme, its letters as outlines, so that it looks
/// alike wherever it is set, with the description of the picture.
///
/// # Errors
/// Errors of the writer.
pub fn write_printed_svg(picture: &Picture, theme: Theme, out: &mut dyn Write) -> io::Result<()> {
    let Picture { width, height, background, .. } = *picture;
    let title = Escaped(&picture.title);
    let [across, down] = [width, height].map(|side| Number(f64::from(side) * POINTS_PER_PIXEL));
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{across}pt" height="{down}pt" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">"#
    )?;
    writeln!(out, "<title>{title}</title>")?;
    if !picture.description.is_empty() {
        writeln!(out, "<desc>{}</desc>", Escaped(&picture.description))?;
    }
    // Classes instead of variables, which few programs but browsers know.
    writeln!(out, "<style>\npolyline{{fill:none;stroke-linejoin:round}}")?;
    for ink in Ink::all() {
        let color = ink.color(theme);
        writeln!(out, ".fill-{ink}{{fill:{color}}}.stroke-{ink}{{stroke:{color}}}")?;
    }
    writeln!(out, "</style>")?;
    write_definitions(out)?;
    writeln!(out, r#"<rect width="{width}" height="{height}" class="fill-{background}"/>"#)?;
    write_shapes(&picture.shapes, true, out)?;
    writeln!(out, "</svg>")
}

/// Writes a picture as a part of an HTML document: as wide as there is room, on the page's background. The document has a style for the
/// classes `fill-INK` and `stroke-INK`, and the textures of [`write_textures`].
///
/// # Errors
/// Errors of the writer.
pub fn write_svg_part(picture: &Picture, out: &mut dyn Write) -> io::Result<()> {
    let (width, height, title) = (picture.width, picture.height, Escaped(&picture.title));
    writeln!(out, r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">"#)?;
    write_shapes(&picture.shapes, false, out)?;
    writeln!(out, "</svg>")
}

/// Writes the textures as an SVG part that shows nothing, for all pictures of a document.
///
/// # Errors
/// Errors of the writer.
pub fn write_textures(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, r#"<svg width="0" height="0" aria-hidden="true">"#)?;
    write_definitions(out)?;
    writeln!(out, "</svg>")
}

/// Lines of 45 degrees, a pixel wide, every six.
fn write_definitions(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<defs>")?;
    for ink in TEXTURED {
        for (name, lines) in [("hatched", "M0 6L6 0"), ("crossed", "M0 6L6 0M0 0L6 6")] {
            writeln!(
                out,
                r#"<pattern id="{name}-{ink}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{lines}" class="stroke-{ink}"/></pattern>"#
            )?;
        }
    }
    writeln!(out, "</defs>")
}

/// Letters are text, which a browser sets and can search, or outlines.
fn write_shapes(shapes: &[Shape], has_outlines: bool, out: &mut dyn Write) -> io::Result<()> {
    shapes.iter().try_for_each(|shape| write_shape(shape, has_outlines, out))
}

fn write_shape(shape: &Shape, has_outlines: bool, out: &mut dyn Write) -> io::Result<()> {
    match shape {
        Shape::Polygon { points, fill } => {
            writeln!(out, r#"<polygon points="{}"{}/>"#, Points(points), Filled(fill))
        }
        Shape::Polyline { points, stroke } => write_polyline(points, stroke, out),
        Shape::Cells { area, cells } => write_cells(*area, cells, out),
        Shape::Text(text) if has_outlines => write_outlines(text, out),
        Shape::Text(text) => write_text(text, out),
        Shape::Dots { points, stroke } => write_dots(points, stroke, out),
        Shape::Group { class, shapes } => {
            writeln!(out, r#"<g class="{class}">"#)?;
            write_shapes(shapes, has_outlines, out)?;
            writeln!(out, "</g>")
        }
        Shape::Placed { at, shapes } => {
            writeln!(out, r#"<g transform="translate({} {})">"#, Number(at.x), Number(at.y))?;
            write_shapes(shapes, has_outlines, out)?;
            writeln!(out, "</g>")
        }
        Shape::Plot { area, shapes } => {
            let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(Number);
            writeln!(
                out,
                r#"<svg class="plot" x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}" preserveAspectRatio="none">"#
            )?;
            write_shapes(shapes, has_outlines, out)?;
            writeln!(out, "</svg>")
        }
    }
}

/// Lines without length with round ends, which stay round where a browser stretches what they lie in.
fn write_dots(points: &[Point], stroke: &Stroke, out: &mut dyn Write) -> io::Result<()> {
    let (ink, width) = (stroke.ink, Number(stroke.width));
    write!(out, r#"<path class="stroke-{ink}" stroke-width="{width}" stroke-linecap="round" d=""#)?;
    for point in points {
        write!(out, "M{} {}h0", Number(point.x), Number(point.y))?;
    }
    writeln!(out, r#""/>"#)
}

fn write_polyline(points: &[Point], stroke: &Stroke, out: &mut dyn Write) -> io::Result<()> {
    let (points, ink, width) = (Points(points), stroke.ink, Number(stroke.width));
    write!(out, r#"<polyline points="{points}" class="stroke-{ink}" stroke-width="{width}""#)?;
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
        write!(out, r#"<path class="stroke-{ink}" d=""#)?;
        for run in runs {
            write!(out, "M{} {}v{}", run.column, run.rows.start, run.rows.len())?;
        }
        writeln!(out, r#""/>"#)?;
    }
    writeln!(out, "</g>")
}

fn write_text(text: &Text, out: &mut dyn Write) -> io::Result<()> {
    let (x, y, size) = (Number(text.at.x), Number(text.at.y), Number(text.size));
    let halo = text.halo.map(|ink| format!(r#" stroke-{ink}" stroke-width="{}"#, Number(text.halo_width())));
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => r#" text-anchor="middle""#,
        Anchor::End => r#" text-anchor="end""#,
    };
    let (ink, halo, content) = (text.ink, halo.unwrap_or_default(), Escaped(&text.content));
    writeln!(
        out,
        r#"<text x="{x}" y="{y}" font-size="{size}" class="fill-{ink}{halo}"{anchor}>{content}</text>"#
    )
}

/// The letters of a text as one path in units of the font; a halo is the path below them, since few programs but browsers draw a stroke
/// before its fill.
fn write_outlines(text: &Text, out: &mut dyn Write) -> io::Result<()> {
    let scale = font::scale(text.size);
    let step = |step: font::Step| {
        let at: Vec<String> = step.at.iter().map(f32::to_string).collect();
        format!("{}{}", step.verb, at.join(" "))
    };
    let path: String = font::line(&text.content).map(step).collect();
    let (x, y, ink) = (Number(text.left()), Number(text.at.y), text.ink);
    writeln!(out, r#"<g transform="translate({x} {y}) scale({scale:.6} -{scale:.6})">"#)?;
    if let Some(ink) = text.halo {
        let width = Number(text.halo_width() / scale);
        writeln!(
            out,
            r#"<path fill="none" stroke-linejoin="round" stroke-width="{width}" class="stroke-{ink}" d="{path}"/>"#
        )?;
    }
    writeln!(out, r#"<path class="fill-{ink}" d="{path}"/></g>"#)
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
            Texture::Plain => write!(out, r#" class="fill-{ink}""#)?,
            Texture::Hatched => write!(out, r#" fill="url(#hatched-{ink})""#)?,
            Texture::Crossed => write!(out, r#" fill="url(#crossed-{ink})""#)?,
        }
        if opacity < 1.0 { write!(out, r#" fill-opacity="{}""#, Number(opacity)) } else { Ok(()) }
    }
}

/// Text between tags and in attributes of XML and HTML. Characters that XML has no way to hold become U+FFFD.
#[derive(Debug)]
pub struct Escaped<'a>(pub &'a str);

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
