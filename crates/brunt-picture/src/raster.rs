//! A picture as PNG: its pixels, drawn here.
//!
//! Not for pictures of any size: all pixels are in memory at once, four bytes each.

use crate::cells::Cells;
use crate::font::{self, Step};
use crate::ink::{Ink, Theme};
use crate::picture::{Anchor, Area, Fill, Picture, Point, Shape, Stroke, Text, Texture};
use std::io::{self, Write};
use tiny_skia::{
    FillRule, FilterQuality, LineJoin, Paint, Path, PathBuilder, Pattern, Pixmap, PremultipliedColorU8, Rect,
    SpreadMode, StrokeDash, Transform,
};

/// No drawing is smaller: in two rows or columns tiny-skia 0.12 leaves lines away.
const SIDE_MIN: u32 = 8;
/// Four bytes for each of them are 2 GB.
const PIXELS_MAX: u64 = 1 << 29;

/// Pixels from one line of a texture to the next.
const TILE: u32 = 6;

/// Writes a picture as a PNG of 8-bit RGB, in the colours of a theme.
///
/// # Errors
/// Those of the writer, and that the picture is too large to be drawn: from 2 GB of pixels.
pub fn write_png(picture: &Picture, theme: Theme, out: &mut dyn Write) -> io::Result<()> {
    let (width, height) = (picture.width.max(SIDE_MIN), picture.height.max(SIDE_MIN));
    let is_small = u64::from(width) * u64::from(height) <= PIXELS_MAX;
    let pixmap = is_small.then(|| Pixmap::new(width, height)).flatten().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a picture of {width} x {height} pixels is too large"),
        )
    })?;
    let mut canvas = Canvas { theme, pixmap };
    canvas.pixmap.fill(color(picture.background, 1.0, theme));
    picture.shapes.iter().for_each(|shape| canvas.draw(shape));

    let mut encoder = png::Encoder::new(out, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut bytes = Vec::with_capacity(picture.width as usize * 3);
    let rows = canvas.pixmap.pixels().chunks(canvas.pixmap.width() as usize);
    for row in rows.take(picture.height as usize) {
        bytes.clear();
        let pixels = &row[..picture.width as usize];
        bytes.extend(pixels.iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]));
        stream.write_all(&bytes)?;
    }
    stream.finish()?;
    writer.finish()?;
    Ok(())
}

fn color(ink: Ink, opacity: f64, theme: Theme) -> tiny_skia::Color {
    let color = ink.color(theme);
    let alpha = (opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    tiny_skia::Color::from_rgba8(color.red, color.green, color.blue, alpha)
}

struct Canvas {
    theme: Theme,
    pixmap: Pixmap,
}

impl Canvas {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rectangle { area, fill } => {
                let Area { x, y, width, height } = *area;
                if let Some(rect) = Rect::from_xywh(x as f32, y as f32, width as f32, height as f32) {
                    self.fill(&PathBuilder::from_rect(rect), fill);
                }
            }
            Shape::Polygon { points, fill } => {
                if let Some(path) = path_through(points, true) {
                    self.fill(&path, fill);
                }
            }
            Shape::Polyline { points, stroke } => {
                if let Some(path) = path_through(points, false) {
                    self.stroke(&path, stroke);
                }
            }
            Shape::Cells { area, cells } => self.draw_cells(*area, cells),
            Shape::Text(text) => self.draw_text(text),
            Shape::Dots { points, stroke } => {
                for point in points {
                    let radius = stroke.width as f32 / 2.0;
                    if let Some(path) = PathBuilder::from_circle(point.x as f32, point.y as f32, radius) {
                        self.fill(&path, &Fill::solid(stroke.ink));
                    }
                }
            }
            Shape::Group { shapes, .. } | Shape::Plot { shapes, .. } => {
                shapes.iter().for_each(|shape| self.draw(shape));
            }
        }
    }

    fn fill(&mut self, path: &Path, fill: &Fill) {
        let mut paint = Paint::default();
        let color = color(fill.ink, fill.opacity, self.theme);
        let tile = tile(fill.texture, color);
        match &tile {
            None => paint.set_color(color),
            Some(tile) => {
                let (repeat, nearest) = (SpreadMode::Repeat, FilterQuality::Nearest);
                paint.shader = Pattern::new(tile.as_ref(), repeat, nearest, 1.0, Transform::identity());
            }
        }
        self.pixmap.fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    fn stroke(&mut self, path: &Path, stroke: &Stroke) {
        let dash = StrokeDash::new(stroke.dash.to_vec(), 0.0);
        let pen = tiny_skia::Stroke {
            width: stroke.width as f32,
            dash,
            line_join: LineJoin::Round,
            ..tiny_skia::Stroke::default()
        };
        let mut paint = Paint::default();
        paint.set_color(color(stroke.ink, 1.0, self.theme));
        self.pixmap.stroke_path(path, &paint, &pen, Transform::identity(), None);
    }

    fn draw_text(&mut self, text: &Text) {
        let Some(path) = path_of(text) else { return };
        if let Some(ink) = text.halo {
            self.stroke(&path, &Stroke::solid(ink, text.halo_width()));
        }
        self.fill(&path, &Fill::solid(text.ink));
    }

    /// Every pixel takes the colour of the cell in which its middle lies: edges of cells stay sharp.
    fn draw_cells(&mut self, area: Area, cells: &Cells) {
        let opaque = |ink: &Ink| color(*ink, 1.0, self.theme).premultiply().to_color_u8();
        let colors: Vec<PremultipliedColorU8> = cells.inks().iter().map(opaque).collect();
        let width = self.pixmap.width();
        let columns: Vec<Option<usize>> =
            (0..width).map(|x| cell_at(x, area.x, area.width, cells.columns())).collect();
        for (y, row) in (0..).zip(self.pixmap.pixels_mut().chunks_mut(width as usize)) {
            let Some(cell_row) = cell_at(y, area.y, area.height, cells.rows()) else { continue };
            for (pixel, column) in row.iter_mut().zip(&columns) {
                if let Some(ink) = column.and_then(|column| cells.ink_at(column, cell_row)) {
                    *pixel = colors[ink];
                }
            }
        }
    }
}

/// What a texture repeats; `None` of a plain one.
fn tile(texture: Texture, color: tiny_skia::Color) -> Option<Pixmap> {
    if texture == Texture::Plain {
        return None;
    }
    let mut tile = Pixmap::new(TILE, TILE)?;
    let color = color.premultiply().to_color_u8();
    for step in 0..TILE {
        let rising = ((TILE - 1 - step) * TILE + step) as usize;
        let falling = (step * TILE + step) as usize;
        tile.pixels_mut()[rising] = color;
        if texture == Texture::Crossed {
            tile.pixels_mut()[falling] = color;
        }
    }
    Some(tile)
}

/// The cell that holds the middle of a pixel, of cells spread evenly from `start` over `length`.
fn cell_at(pixel: u32, start: f64, length: f64, cells: usize) -> Option<usize> {
    let part = (f64::from(pixel) + 0.5 - start) / length;
    (0.0..1.0).contains(&part).then_some((part * cells as f64) as usize).filter(|cell| *cell < cells)
}

fn path_through(points: &[Point], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.x as f32, first.y as f32);
    rest.iter().for_each(|point| path.line_to(point.x as f32, point.y as f32));
    if is_closed {
        path.close();
    }
    path.finish()
}

/// The outlines of a text at its place; `None` where there is nothing to see.
fn path_of(text: &Text) -> Option<Path> {
    let width = font::text_width(&text.content, text.size);
    let left = match text.anchor {
        Anchor::Start => text.at.x,
        Anchor::Middle => text.at.x - width / 2.0,
        Anchor::End => text.at.x - width,
    };
    let mut path = PathBuilder::new();
    let scale = font::scale(text.size) as f32;
    for (index, character) in text.content.chars().enumerate() {
        let x_start = (left + index as f64 * font::advance(text.size)) as f32;
        let x = |units: f32| x_start + units * scale;
        // The font counts upwards.
        let y = |units: f32| text.at.y as f32 - units * scale;
        for step in font::outline(character).into_iter().flat_map(font::steps) {
            match step {
                Step::Move(to_x, to_y) => path.move_to(x(to_x), y(to_y)),
                Step::Line(to_x, to_y) => path.line_to(x(to_x), y(to_y)),
                Step::Curve(control_x, control_y, to_x, to_y) => {
                    path.quad_to(x(control_x), y(control_y), x(to_x), y(to_y));
                }
                Step::Close => path.close(),
            }
        }
    }
    path.finish()
}

#[cfg(test)]
mod tests;
