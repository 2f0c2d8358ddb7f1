//! A picture as PNG: its shapes, textures and outlines of letters, which tiny-skia fills.
//!
//! Not for pictures of any size: all pixels are in memory at once, four bytes each.

use crate::font::{self, Step};
use crate::heat_map::Cells;
use crate::ink::{Ink, Theme};
use crate::picture::{
    Area, DOTS_PER_INCH, Fill, POINTS_PER_PIXEL, Picture, Point, Shape, Stroke, Text, Texture,
};
use std::io::{self, Write};
use tiny_skia::{
    FillRule, FilterQuality, LineJoin, Paint, Path, PathBuilder, Pattern, Pixmap, PixmapPaint, SpreadMode,
    StrokeDash, Transform,
};

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
    let pixmap = drawn(picture, theme, 1.0)?;
    write_pixels(png::Encoder::new(out, pixmap.width(), pixmap.height()), &pixmap)
}

/// Writes a picture as a PNG for print, which says its resolution and holds the description of the picture.
///
/// # Errors
/// As [`write_png`].
pub fn write_printed_png(picture: &Picture, theme: Theme, out: &mut dyn Write) -> io::Result<()> {
    let pixmap = drawn(picture, theme, POINTS_PER_PIXEL / 72.0 * DOTS_PER_INCH)?;
    let mut encoder = png::Encoder::new(out, pixmap.width(), pixmap.height());
    let dots = (DOTS_PER_INCH / METERS_PER_INCH).round() as u32;
    let dimensions = png::PixelDimensions { xppu: dots, yppu: dots, unit: png::Unit::Meter };
    encoder.set_pixel_dims(Some(dimensions));
    encoder.add_itxt_chunk("Description".to_owned(), picture.description.clone())?;
    write_pixels(encoder, &pixmap)
}

fn write_pixels(mut encoder: png::Encoder<'_, &mut dyn Write>, pixmap: &Pixmap) -> io::Result<()> {
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    for row in pixmap.pixels().chunks(pixmap.width() as usize) {
        let bytes = row.iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]);
        stream.write_all(&bytes.collect::<Vec<u8>>())?;
    }
    stream.finish()?;
    Ok(writer.finish()?)
}

/// The pixels of a picture, so many to one of it.
fn drawn(picture: &Picture, theme: Theme, scale: f64) -> io::Result<Pixmap> {
    let [width, height] =
        [picture.width, picture.height].map(|side| (f64::from(side) * scale).round() as u32);
    let is_small = u64::from(width) * u64::from(height) <= PIXELS_MAX;
    let pixmap = is_small.then(|| Pixmap::new(width, height)).flatten();
    let too_large = || io::Error::other(format!("a picture of {width} x {height} pixels is too large"));
    let pixmap = pixmap.ok_or_else(too_large)?;
    let scale = scale as f32;
    let mut canvas = Canvas { theme, scale, transform: Transform::from_scale(scale, scale), pixmap };
    canvas.pixmap.fill(color(picture.background, 1.0, theme));
    canvas.draw(&picture.shapes);
    Ok(canvas.pixmap)
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
    /// From what is drawn to pixels of the PNG.
    transform: Transform,
    pixmap: Pixmap,
}

impl Canvas {
    fn draw(&mut self, shapes: &[Shape]) {
        for shape in shapes {
            match shape {
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
                    let circle = |at: &Point| {
                        PathBuilder::from_circle(at.x as f32, at.y as f32, stroke.width as f32 / 2.0)
                    };
                    for path in points.iter().filter_map(circle) {
                        self.fill(&path, &Fill::solid(stroke.ink));
                    }
                }
                Shape::Group { shapes, .. } | Shape::Plot { shapes, .. } => self.draw(shapes),
                Shape::Placed { at, shapes } => {
                    let outside = self.transform;
                    self.transform = outside.pre_translate(at.x as f32, at.y as f32);
                    self.draw(shapes);
                    self.transform = outside;
                }
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
        self.pixmap.fill_path(path, &paint, FillRule::Winding, self.transform, None);
    }

    fn stroke(&mut self, path: &Path, stroke: &Stroke) {
        let pen = tiny_skia::Stroke {
            width: stroke.width as f32,
            dash: StrokeDash::new(stroke.dash.to_vec(), 0.0),
            line_join: LineJoin::Round,
            ..tiny_skia::Stroke::default()
        };
        let mut paint = Paint::default();
        paint.set_color(color(stroke.ink, 1.0, self.theme));
        self.pixmap.stroke_path(path, &paint, &pen, self.transform, None);
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
        let Some(mut pixmap) = Pixmap::new(cells.columns() as u32, cells.rows() as u32) else { return };
        for (place, pixel) in pixmap.pixels_mut().iter_mut().enumerate() {
            if let Some(ink) = cells.ink_at(place % cells.columns(), place / cells.columns()) {
                *pixel = color(cells.inks()[ink], 1.0, self.theme).premultiply().to_color_u8();
            }
        }
        let [width, height] =
            [area.width / f64::from(pixmap.width()), area.height / f64::from(pixmap.height())];
        let transform = self.transform.pre_translate(area.x as f32, area.y as f32);
        let transform = transform.pre_scale(width as f32, height as f32);
        self.pixmap.draw_pixmap(0, 0, pixmap.as_ref(), &PixmapPaint::default(), transform, None);
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
    let mut path = PathBuilder::new();
    for Step { verb, at } in font::line(&text.content) {
        match (verb, at.as_slice()) {
            ('M', [x, y]) => path.move_to(*x, *y),
            ('L', [x, y]) => path.line_to(*x, *y),
            ('Q', [control_x, control_y, x, y]) => path.quad_to(*control_x, *control_y, *x, *y),
            _ => path.close(),
        }
    }
    let scale = font::scale(text.size) as f32;
    // The font counts upwards.
    let to_place = Transform::from_row(scale, 0.0, 0.0, -scale, text.left() as f32, text.at.y as f32);
    path.finish()?.transform(to_place)
}

#[cfg(test)]
mod tests;
