//! A picture as SVG: text that a browser draws, scales and can be searched in.
//!
//! Invariant: whatever texts say, what comes out is well-formed XML that loads nothing from elsewhere.

use crate::font;
use crate::heat_map::{Cells, Run};
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
    let [across, down] = [width, height].map(|side| number(f64::from(side) * POINTS_PER_PIXEL));
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
    writeln!(out, "</style>\n{}", definitions())?;
    writeln!(out, r#"<rect width="{width}" height="{height}" class="fill-{background}"/>"#)?;
    writeln!(out, "{}</svg>", drawn(&picture.shapes, true))
}

/// A picture as a part of an HTML document: as wide as there is room, on the page's background. The document has a style for the classes
/// `fill-INK` and `stroke-INK`, and the [`textures`].
pub fn svg_part(picture: &Picture) -> String {
    let (width, height, title) = (picture.width, picture.height, Escaped(&picture.title));
    let shapes = drawn(&picture.shapes, false);
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n{shapes}</svg>\n")
}

/// The textures as an SVG part that shows nothing, for all pictures of a document.
pub fn textures() -> String {
    format!("<svg width=\"0\" height=\"0\" aria-hidden=\"true\">\n{}\n</svg>\n", definitions())
}

/// Lines of 45 degrees, a pixel wide, every six.
fn definitions() -> String {
    let pattern = |ink, name, lines| {
        format!(
            r#"<pattern id="{name}-{ink}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{lines}" class="stroke-{ink}"/></pattern>"#
        )
    };
    let of_ink = |ink| {
        let (hatched, crossed) = ("M0 6L6 0", "M0 6L6 0M0 0L6 6");
        format!("{}\n{}\n", pattern(ink, "hatched", hatched), pattern(ink, "crossed", crossed))
    };
    format!("<defs>\n{}</defs>", TEXTURED.map(of_ink).concat())
}

/// The shapes, a line for each. Letters are text, which a browser sets and can search, or outlines.
fn drawn(shapes: &[Shape], has_outlines: bool) -> String {
    let drawn_shape = |shape: &Shape| match shape {
        Shape::Polygon { points, fill } => {
            format!(r#"<polygon points="{}"{}/>"#, through(points), filled(fill))
        }
        Shape::Polyline { points, stroke } => polyline(points, stroke),
        Shape::Cells { area, cells } => drawn_cells(*area, cells),
        Shape::Text(text) if has_outlines => outlines(text),
        Shape::Text(text) => drawn_text(text),
        Shape::Dots { points, stroke } => dots(points, stroke),
        Shape::Group { class, shapes } => {
            format!("<g class=\"{class}\">\n{}</g>", drawn(shapes, has_outlines))
        }
        Shape::Placed { at, shapes } => {
            let (x, y) = (number(at.x), number(at.y));
            format!("<g transform=\"translate({x} {y})\">\n{}</g>", drawn(shapes, has_outlines))
        }
        Shape::Plot { area, shapes } => {
            let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(number);
            let shapes = drawn(shapes, has_outlines);
            format!(
                "<svg class=\"plot\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" viewBox=\"{x} {y} {width} {height}\" \
                 preserveAspectRatio=\"none\">\n{shapes}</svg>"
            )
        }
    };
    shapes.iter().map(|shape| drawn_shape(shape) + "\n").collect()
}

/// Lines without length with round ends, which stay round where a browser stretches what they lie in.
fn dots(points: &[Point], stroke: &Stroke) -> String {
    let (ink, width) = (stroke.ink, number(stroke.width));
    let dot = |point: &Point| format!("M{} {}h0", number(point.x), number(point.y));
    let path: String = points.iter().map(dot).collect();
    format!(r#"<path class="stroke-{ink}" stroke-width="{width}" stroke-linecap="round" d="{path}"/>"#)
}

fn polyline(points: &[Point], stroke: &Stroke) -> String {
    let (points, ink, width) = (through(points), stroke.ink, number(stroke.width));
    let lengths: Vec<String> = stroke.dash.iter().map(f32::to_string).collect();
    let dash = format!(r#" stroke-dasharray="{}""#, lengths.join(" "));
    let dash = if lengths.is_empty() { "" } else { &dash };
    format!(r#"<polyline points="{points}" class="stroke-{ink}" stroke-width="{width}"{dash}/>"#)
}

/// A path for each colour, in units of cells: a line down each run, as wide as a cell. Few characters, however large cells are.
fn drawn_cells(area: Area, cells: &Cells) -> String {
    let size = |length: f64, count: usize| length / count.max(1) as f64;
    let (width, height) = (size(area.width, cells.columns()), size(area.height, cells.rows()));
    // The lines run through the middles of columns.
    let (x, y) = (number(area.x + width / 2.0), number(area.y));
    let path = |(index, ink): (usize, &Ink)| {
        let run = |run: Run| format!("M{} {}v{}", run.column, run.rows.start, run.rows.len());
        let runs: String = cells.runs(index).map(run).collect();
        if runs.is_empty() { runs } else { format!("<path class=\"stroke-{ink}\" d=\"{runs}\"/>\n") }
    };
    let paths: String = cells.inks().iter().enumerate().map(path).collect();
    format!(
        "<g class=\"cells\" transform=\"translate({x} {y}) scale({width:.6} {height:.6})\" shape-rendering=\"crispEdges\">\n{paths}</g>"
    )
}

fn drawn_text(text: &Text) -> String {
    let (x, y, size) = (number(text.at.x), number(text.at.y), number(text.size));
    let halo = text.halo.map(|ink| format!(r#" stroke-{ink}" stroke-width="{}"#, number(text.halo_width())));
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => r#" text-anchor="middle""#,
        Anchor::End => r#" text-anchor="end""#,
    };
    let (ink, halo, content) = (text.ink, halo.unwrap_or_default(), Escaped(&text.content));
    format!(r#"<text x="{x}" y="{y}" font-size="{size}" class="fill-{ink}{halo}"{anchor}>{content}</text>"#)
}

/// The letters of a text as one path in units of the font; a halo is the path below them, since few programs but browsers draw a stroke
/// before its fill.
fn outlines(text: &Text) -> String {
    let scale = font::scale(text.size);
    let step = |step: font::Step| {
        let at: Vec<String> = step.at.iter().map(f32::to_string).collect();
        format!("{}{}", step.verb, at.join(" "))
    };
    let path: String = font::line(&text.content).map(step).collect();
    let (x, y, ink) = (number(text.left()), number(text.at.y), text.ink);
    let width = number(text.halo_width() / scale);
    let halo = text.halo.map(|ink| {
        format!(
            "<path fill=\"none\" stroke-linejoin=\"round\" stroke-width=\"{width}\" class=\"stroke-{ink}\" d=\"{path}\"/>\n"
        )
    });
    let halo = halo.unwrap_or_default();
    format!(
        "<g transform=\"translate({x} {y}) scale({scale:.6} -{scale:.6})\">\n{halo}<path class=\"fill-{ink}\" d=\"{path}\"/></g>"
    )
}

/// A coordinate with at most two digits after its point: finer than a pixel of any screen.
fn number(value: f64) -> f64 {
    // Not −0: adding 0 makes it positive.
    (value * 100.0).round() / 100.0 + 0.0
}

fn through(points: &[Point]) -> String {
    let points = points.iter().map(|point| format!("{},{}", number(point.x), number(point.y)));
    points.collect::<Vec<String>>().join(" ")
}

/// The attributes of a filled shape.
fn filled(Fill { ink, opacity, texture }: &Fill) -> String {
    let paint = match texture {
        Texture::Plain => format!(r#" class="fill-{ink}""#),
        Texture::Hatched => format!(r#" fill="url(#hatched-{ink})""#),
        Texture::Crossed => format!(r#" fill="url(#crossed-{ink})""#),
    };
    if *opacity < 1.0 { format!(r#"{paint} fill-opacity="{}""#, number(*opacity)) } else { paint }
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
            assert_eq!(number(value).to_string(), expected, "{value}");
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
            let text = svg_part(&picture);
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
