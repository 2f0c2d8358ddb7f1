//! A picture as SVG: text that a browser draws, scales and can be searched in.
//!
//! Invariant: whatever texts say, what comes out is well-formed XML that loads nothing from elsewhere.

use crate::cells::Cells;
use crate::ink::{Color, Ink, Theme};
use crate::picture::{Anchor, Area, Picture, Point, Shape, Stroke, Text};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// Writes a picture as an SVG document, in the colours of a theme, or where there is none in those that the reader prefers.
///
/// # Errors
/// Those of the writer.
pub fn write_svg(picture: &Picture, theme: Option<Theme>, out: &mut dyn Write) -> io::Result<()> {
    let (width, height, title) = (picture.width, picture.height, Escaped(&picture.title));
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">"#
    )?;
    writeln!(out, "<title>{title}</title>")?;
    write_style(picture, theme, out)?;
    writeln!(
        out,
        r#"<rect width="{width}" height="{height}" class="{}"/>"#,
        Class::Fill(picture.background)
    )?;
    for shape in &picture.shapes {
        write_shape(shape, out)?;
    }
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
        let (how, ink) = match self {
            Self::Fill(ink) => ("fill", ink),
            Self::Stroke(ink) => ("stroke", ink),
        };
        match ink {
            Ink::Page => write!(out, "{how}-page"),
            Ink::Text => write!(out, "{how}-text"),
            Ink::Soft => write!(out, "{how}-soft"),
            Ink::Axis => write!(out, "{how}-axis"),
            Ink::Grid => write!(out, "{how}-grid"),
            Ink::Series(index) => write!(out, "{how}-series-{index}"),
            Ink::Heat(step) => write!(out, "{how}-heat-{step}"),
            Ink::Trusted => write!(out, "{how}-trusted"),
            Ink::Caution => write!(out, "{how}-caution"),
            Ink::Distrusted => write!(out, "{how}-distrusted"),
            Ink::Fixed(color) => {
                write!(out, "{how}-{:02x}{:02x}{:02x}", color.red, color.green, color.blue)
            }
        }
    }
}

/// The colours of the classes that occur. Classes instead of variables, which few programs but browsers know.
fn write_style(picture: &Picture, theme: Option<Theme>, out: &mut dyn Write) -> io::Result<()> {
    let classes = classes(picture);
    let families = "'DejaVu Sans Mono',ui-monospace,Menlo,Consolas,monospace";
    writeln!(out, "<style>")?;
    writeln!(out, "text{{font-family:{families};white-space:pre;paint-order:stroke;stroke-linejoin:round}}")?;
    writeln!(out, "polyline{{fill:none;stroke-linejoin:round}}")?;
    write_colors(&classes, theme.unwrap_or(Theme::Light), out)?;
    if theme.is_none() {
        writeln!(out, "@media(prefers-color-scheme:dark){{")?;
        write_colors(&classes, Theme::Dark, out)?;
        writeln!(out, "}}")?;
    }
    writeln!(out, "</style>")
}

fn write_colors(classes: &BTreeSet<Class>, theme: Theme, out: &mut dyn Write) -> io::Result<()> {
    for class in classes {
        let (property, ink) = match class {
            Class::Fill(ink) => ("fill", ink),
            Class::Stroke(ink) => ("stroke", ink),
        };
        let Color { red, green, blue } = ink.color(theme);
        writeln!(out, ".{class}{{{property}:#{red:02x}{green:02x}{blue:02x}}}")?;
    }
    Ok(())
}

fn classes(picture: &Picture) -> BTreeSet<Class> {
    let mut classes = BTreeSet::from([Class::Fill(picture.background)]);
    for shape in &picture.shapes {
        match shape {
            Shape::Rectangle { fill, .. } | Shape::Polygon { fill, .. } => {
                classes.insert(Class::Fill(fill.ink));
            }
            Shape::Polyline { stroke, .. } => {
                classes.insert(Class::Stroke(stroke.ink));
            }
            Shape::Cells { cells, .. } => classes.extend(cells.inks().iter().map(|ink| Class::Fill(*ink))),
            Shape::Text(text) => {
                classes.insert(Class::Fill(text.ink));
                classes.extend(text.halo.map(Class::Stroke));
            }
        }
    }
    classes
}

fn write_shape(shape: &Shape, out: &mut dyn Write) -> io::Result<()> {
    match shape {
        Shape::Rectangle { area, fill } => {
            let Area { x, y, width, height } = *area;
            let (x, y, width, height) = (Number(x), Number(y), Number(width), Number(height));
            let (class, opacity) = (Class::Fill(fill.ink), Opacity(fill.opacity));
            writeln!(
                out,
                r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{class}"{opacity}/>"#
            )
        }
        Shape::Polygon { points, fill } => {
            let (points, class, opacity) = (Points(points), Class::Fill(fill.ink), Opacity(fill.opacity));
            writeln!(out, r#"<polygon points="{points}" class="{class}"{opacity}/>"#)
        }
        Shape::Polyline { points, stroke } => write_polyline(points, stroke, out),
        Shape::Cells { area, cells } => write_cells(*area, cells, out),
        Shape::Text(text) => write_text(text, out),
    }
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

/// A path for each colour, in units of cells: a few characters a run, however large the cells are.
fn write_cells(area: Area, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
    if cells.rows() == 0 {
        return Ok(());
    }
    let (x, y) = (Number(area.x), Number(area.y));
    let (width, height) = (area.width / cells.columns() as f64, area.height / cells.rows() as f64);
    writeln!(
        out,
        r#"<g transform="translate({x} {y}) scale({width:.6} {height:.6})" shape-rendering="crispEdges">"#
    )?;
    for (index, ink) in cells.inks().iter().enumerate() {
        let mut runs = cells.runs(index).peekable();
        if runs.peek().is_none() {
            continue;
        }
        write!(out, r#"<path class="{}" d=""#, Class::Fill(*ink))?;
        for run in runs {
            let (column, row, length) = (run.columns.start, run.row, run.columns.len());
            write!(out, "M{column} {row}h{length}v1h-{length}z")?;
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

/// The attribute of what is not opaque.
struct Opacity(f64);

impl Display for Opacity {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.0 < 1.0 { write!(out, r#" fill-opacity="{}""#, Number(self.0)) } else { Ok(()) }
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
            write_svg(&picture, None, &mut bytes).expect("a vector takes everything");
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
