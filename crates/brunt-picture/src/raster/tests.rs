//! Pixels that are written come back from a decoder.

use super::*;
use crate::ink::Color;
use crate::picture::Anchor;

const RED: Color = Color { red: 200, green: 10, blue: 20 };

/// The pixels of a picture as `png` reads them, row after row.
fn pixels_of(picture: &Picture) -> Vec<[u8; 3]> {
    let mut bytes = Vec::new();
    write_png(picture, Theme::Light, &mut bytes).expect("a vector takes everything");
    let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().expect("a header");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    assert_eq!((info.width, info.height), (picture.width, picture.height));
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    pixels.chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
}

/// One character a pixel: which colour it is.
fn drawn(picture: &Picture) -> Vec<String> {
    let letter = |pixel: &[u8; 3]| match pixel {
        [255, 255, 255] => '.',
        [0, 0, 0] => '#',
        [200, 10, 20] => 'r',
        _ => '?',
    };
    let pixels = pixels_of(picture);
    pixels.chunks(picture.width as usize).map(|row| row.iter().map(letter).collect()).collect()
}

/// Of at least eight pixels a side.
fn page(width: u32, height: u32) -> Picture {
    Picture::new(width, height, Ink::Page, "a test")
}

#[test]
fn whole_pixels_are_drawn_as_given() {
    let mut picture = page(8, 8);
    picture.rectangle(Area { x: 1.0, y: 1.0, width: 3.0, height: 2.0 }, Fill::solid(Ink::Fixed(RED)));
    picture.line(
        Point { x: 0.0, y: 3.5 },
        Point { x: 6.0, y: 3.5 },
        Stroke::solid(Ink::Fixed(Color::BLACK), 1.0),
    );
    picture.line(Point { x: 5.5, y: 0.0 }, Point { x: 5.5, y: 2.0 }, Stroke::solid(Ink::Fixed(RED), 1.0));
    assert_eq!(drawn(&picture)[..5], [".....r..", ".rrr.r..", ".rrr....", "######..", "........"]);
}

#[test]
fn dashes_are_drawn_with_their_gaps() {
    let mut picture = page(8, 8);
    let stroke = Stroke { ink: Ink::Fixed(RED), width: 1.0, dash: &[2.0, 1.0] };
    picture.line(Point { x: 0.0, y: 0.5 }, Point { x: 8.0, y: 0.5 }, stroke);
    assert_eq!(drawn(&picture)[..2], ["rr.rr.rr", "........"]);
}

#[test]
fn a_cell_may_be_several_pixels_or_none() {
    let mut cells = Cells::new(2, 2, vec![Ink::Fixed(RED), Ink::Fixed(Color::BLACK)]);
    cells.paint(0, 0, 0);
    cells.paint(1, 1, 1);
    let mut picture = page(8, 8);
    picture
        .push(Shape::Cells { area: Area { x: 1.0, y: 0.0, width: 4.0, height: 4.0 }, cells: cells.clone() });
    assert_eq!(drawn(&picture)[..5], [".rr.....", ".rr.....", "...##...", "...##...", "........"]);
    let mut picture = page(8, 8);
    picture.push(Shape::Cells { area: Area { x: 0.0, y: 0.0, width: 1.0, height: 1.0 }, cells });
    assert_eq!(drawn(&picture)[..2], ["#.......", "........"]);
    let mut picture = page(8, 8);
    let none = Cells::new(2, 0, Vec::new());
    picture.push(Shape::Cells { area: Area { x: 0.0, y: 0.0, width: 2.0, height: 1.0 }, cells: none });
    assert_eq!(drawn(&picture), ["........"; 8]);
}

#[test]
fn opacity_mixes_with_what_lies_below() {
    let mut picture = page(8, 8);
    let area = Area { x: 0.0, y: 0.0, width: 1.0, height: 1.0 };
    picture.rectangle(area, Fill::faint(Ink::Fixed(Color::BLACK), 0.2));
    assert_eq!(pixels_of(&picture)[..2], [[204, 204, 204], [255, 255, 255]]);
}

#[test]
fn textures_are_lines_that_repeat() {
    let fill = |texture| {
        let mut picture = page(12, 8);
        let area = Area { x: 0.0, y: 0.0, width: 12.0, height: 8.0 };
        let fill = Fill::textured(Ink::Fixed(Color::BLACK), texture);
        picture.rectangle(area, fill);
        drawn(&picture)[..3].to_vec()
    };
    assert_eq!(fill(Texture::Hatched), [".....#.....#", "....#.....#.", "...#.....#.."]);
    assert_eq!(fill(Texture::Crossed), ["#....##....#", ".#..#..#..#.", "..##....##.."]);
}

#[test]
fn text_stands_on_its_base_line_and_keeps_to_its_anchor() {
    let extent = |anchor| {
        let mut picture = page(60, 40);
        picture.text(Text {
            at: Point { x: 30.0, y: 35.0 },
            anchor,
            size: 32.0,
            ink: Ink::Fixed(Color::BLACK),
            halo: None,
            content: "H".to_owned(),
        });
        let rows = drawn(&picture);
        let inked: Vec<(usize, usize)> = rows
            .iter()
            .enumerate()
            .flat_map(|(y, row)| {
                row.char_indices().filter(|(_, letter)| *letter != '.').map(move |(x, _)| (x, y))
            })
            .collect();
        let range = |values: Vec<usize>| (values.iter().copied().min(), values.iter().copied().max());
        (range(inked.iter().map(|(x, _)| *x).collect()), range(inked.iter().map(|(_, y)| *y).collect()))
    };
    // H is 1493 units high (23.3 pixels) and reaches from 137 to 1096 units (2.1 to 17.1 pixels) of its 1233 (19.3).
    let rows = (Some(11), Some(34));
    assert_eq!(extent(Anchor::Start), ((Some(32), Some(47)), rows));
    assert_eq!(extent(Anchor::Middle), ((Some(22), Some(37)), rows));
    assert_eq!(extent(Anchor::End), ((Some(13), Some(27)), rows));
}

#[test]
fn a_picture_too_large_is_an_error() {
    let error = write_png(&page(100_000, 100_000), Theme::Light, &mut io::sink()).expect_err("40 GB");
    assert_eq!(error.to_string(), "a picture of 100000 x 100000 pixels is too large");
}
