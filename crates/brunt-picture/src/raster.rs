//! A picture as PNG: its pixels, drawn here.
//!
//! Not for pictures of any size: all pixels are in memory at once, four bytes each.

use crate::cells::Cells;
use crate::font::{self, Step};
use crate::ink::{Ink, Theme};
use crate::picture::{Area, Fill, Paper, Picture, Point, Shape, Stroke, Text, Texture};
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
const TILE: f32 = 6.0;
const METERS_PER_INCH: f64 = 0.0254;

/// Writes a picture as a PNG of 8-bit RGB, in the colours of a theme.
///
/// # Errors
/// Those of the writer, and that the picture is too large to be drawn: from 2 GB of pixels.
pub fn write_png(picture: &Picture, theme: Theme, out: &mut dyn Write) -> io::Result<()> {
    encode(picture, theme, 1.0, None, out)
}

/// Writes a picture as a PNG for print, which says its resolution and holds the description of the picture.
///
/// # Errors
/// As [`write_png`].
pub fn write_printed_png(
    picture: &Picture,
    theme: Theme,
    paper: Paper,
    out: &mut dyn Write,
) -> io::Result<()> {
    encode(picture, theme, paper.dots_per_pixel(), Some(paper), out)
}

fn encode(
    picture: &Picture,
    theme: Theme,
    scale: f64,
    paper: Option<Paper>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let [width, height] =
        [picture.width, picture.height].map(|side| (f64::from(side) * scale).round() as u32);
    let is_small = u64::from(width) * u64::from(height) <= PIXELS_MAX;
    let pixmap = is_small.then(|| Pixmap::new(width.max(SIDE_MIN), height.max(SIDE_MIN))).flatten();
    let pixmap = pixmap.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a picture of {width} x {height} pixels is too large"),
        )
    })?;
    let mut canvas = Canvas { theme, scale: scale as f32, pixmap };
    canvas.pixmap.fill(color(picture.background, 1.0, theme));
    picture.shapes.iter().for_each(|shape| canvas.draw(shape));

    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    if let Some(paper) = paper {
        let dots = (paper.dots_per_inch / METERS_PER_INCH).round() as u32;
        let unit = png::Unit::Meter;
        encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: dots, yppu: dots, unit }));
        encoder.add_itxt_chunk("Description".to_owned(), picture.description.clone())?;
    }
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut bytes = Vec::with_capacity(width as usize * 3);
    let rows = canvas.pixmap.pixels().chunks(canvas.pixmap.width() as usize);
    for row in rows.take(height as usize) {
        bytes.clear();
        let pixels = &row[..width as usize];
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
    /// Pixels of the PNG to one of the picture.
    scale: f32,
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
        let tile = tile(fill.texture, color, self.scale);
        match &tile {
            None => paint.set_color(color),
            Some(tile) => {
                let (repeat, nearest) = (SpreadMode::Repeat, FilterQuality::Nearest);
                // A shader is transformed with its path, and its lines are as thick as the pixels of the PNG already.
                let back = Transform::from_scale(1.0 / self.scale, 1.0 / self.scale);
                paint.shader = Pattern::new(tile.as_ref(), repeat, nearest, 1.0, back);
            }
        }
        self.pixmap.fill_path(path, &paint, FillRule::Winding, self.transform(), None);
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
        self.pixmap.stroke_path(path, &paint, &pen, self.transform(), None);
    }

    fn transform(&self) -> Transform {
        Transform::from_scale(self.scale, self.scale)
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
        let scale = f64::from(self.scale);
        let area = Area {
            x: area.x * scale,
            y: area.y * scale,
            width: area.width * scale,
            height: area.height * scale,
        };
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
fn tile(texture: Texture, color: tiny_skia::Color, scale: f32) -> Option<Pixmap> {
    if texture == Texture::Plain {
        return None;
    }
    let side = (TILE * scale).round().max(2.0) as u32;
    let line = (scale.round() as u32).max(1);
    let mut tile = Pixmap::new(side, side)?;
    let color = color.premultiply().to_color_u8();
    for (place, pixel) in (0..).zip(tile.pixels_mut()) {
        let (x, y) = (place % side, place / side);
        let is_rising = (x + y + 1) % side < line;
        let is_falling = (x + side - y) % side < line;
        if is_rising || (texture == Texture::Crossed && is_falling) {
            *pixel = color;
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
    let left = text.left();
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
