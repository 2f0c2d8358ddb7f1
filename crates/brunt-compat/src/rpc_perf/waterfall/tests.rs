//! The picture, pixel by pixel where nothing is written over it.

use super::*;
use crate::rpc_perf::slices::Slice;
use brunt_picture::{Theme, write_png};

/// A picture as its width, its height and a function from a place to a colour.
fn pixels(run: &Slices) -> (usize, usize, impl Fn(usize, usize) -> [u8; 3] + use<>) {
    let mut bytes = Vec::new();
    write_png(&picture(run), Theme::Light, &mut bytes).expect("a vector takes everything");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a header");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    let width = info.width as usize;
    let at = move |x: usize, y: usize| {
        let start = (y * width + x) * 3;
        [pixels[start], pixels[start + 1], pixels[start + 2]]
    };
    (width, info.height as usize, at)
}

fn run(rows: usize, warm_up: usize, slice: impl Fn(usize) -> Slice) -> Slices {
    Slices { start_ns: 0, warm_up, slices: (0..rows).map(slice).collect() }
}

/// So many requests of a latency.
fn at(ns: u64, count: u64) -> (std::ops::RangeInclusive<u64>, u64) {
    (ns..=ns, count)
}

const DARK_BLUE: [u8; 3] = [0, 8, 128];

#[test]
fn colours_follow_the_fraction_of_requests() {
    let cases = [
        (0.0, (0, 8, 128)),
        (0.05, (0, 13, 191)),
        (0.1, (0, 17, 255)),
        // Hue 131.1, 65.6, 16.4.
        (0.5, (0, 255, 47)),
        (0.75, (231, 255, 0)),
        (0.9375, (255, 70, 0)),
        (1.0, (255, 0, 0)),
    ];
    for (share, (red, green, blue)) in cases {
        assert_eq!(color(share), Color { red, green, blue }, "{share}");
    }
}

/// The rules of HSL as style sheets have them, from the two mixtures of lightness and saturation.
#[test]
fn hues_are_those_of_style_sheets() {
    for step in 0..=1000 {
        let hue = f64::from(step) * 0.236;
        for lightness in [0.25, 0.3, 0.5] {
            let (high, low) = (lightness * 2.0, 0.0);
            let channel = |turn: f64| {
                let turn = turn.rem_euclid(1.0);
                let value = match turn * 6.0 {
                    part if part < 1.0 => low + (high - low) * part,
                    part if part < 3.0 => high,
                    part if part < 4.0 => low + (high - low) * (4.0 - part),
                    _ => low,
                };
                value * 255.0
            };
            let turn = hue / 360.0;
            let expected = [channel(turn + 1.0 / 3.0), channel(turn), channel(turn - 1.0 / 3.0)];
            let Color { red, green, blue } = of_hue(hue, lightness);
            for (found, expected) in [red, green, blue].iter().zip(expected) {
                assert!((f64::from(*found) - expected).abs() <= 0.5 + 1e-9, "{hue} {lightness}");
            }
        }
    }
}

#[test]
fn names_stand_at_the_first_bucket_that_reaches_them() {
    let places: Vec<_> = latencies().iter().map(|(ns, _)| bucket_of(*ns)).collect();
    // As they were found in a picture of rpc-perf's.
    let expected = [
        184, 323, 424, 524, 651, 751, 851, 981, 1081, 1181, 1319, 1419, 1519, 1648, 1748, 1848, 1978, 2078,
        2178, 2315,
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_pixel_is_the_density_of_a_bucket() {
    // Widths of buckets: 1 ns at 101, 164 ns at 18351, 5 ms at 600 ms.
    let slice = |row| match row {
        31 => Slice::of([at(101, 10)]),
        32 => Slice::of([at(101, 1), at(18_351, 820), at(600_000_000, 1_073_742)]),
        _ => Slice::default(),
    };
    let (width, height, pixel) = pixels(&run(50, 0, slice));
    assert_eq!((width, height), (2416 + 4 + 64, 50 + 8 + 25));
    let cases = [
        (100, 31, color(1.0)),
        (100, 32, color(0.1)),
        (840, 32, color(0.5)),
        (bucket_of(600_000_000), 32, color(0.02)),
        (99, 32, color(0.0)),
        (2415, 49, color(0.0)),
    ];
    for (x, y, Color { red, green, blue }) in cases {
        assert_eq!(pixel(x, y), [red, green, blue], "{x} {y}");
    }
}

#[test]
fn requests_above_the_scale_have_their_own_column() {
    let slice = |row| match row {
        30 => Slice::of([at(50_000, 1_000_000), at(1_010_000_000, 1)]),
        31 => Slice::of([at(2_000_000_000, 600), at(u64::MAX, 400)]),
        32 => Slice::of([at(1_000_000_000, 5)]),
        _ => Slice::default(),
    };
    let (_, _, pixel) = pixels(&run(40, 0, slice));
    // From row 30 to 32: one of a thousand is bright, all of them are red, exactly 1 s is no longer than that.
    for x in [2420, 2450, 2483] {
        assert_eq!([pixel(x, 30), pixel(x, 31), pixel(x, 32)], [[0, 18, 255], [255, 0, 0], DARK_BLUE], "{x}");
    }
    assert_eq!([pixel(2416, 30), pixel(2419, 31)], [[0, 0, 0]; 2]);
    assert_eq!([pixel(2415, 30), pixel(2415, 31)], [DARK_BLUE; 2]);
}

#[test]
fn grid_and_warm_up_lines_are_drawn() {
    let (_, _, pixel) = pixels(&run(150, 90, |_| Slice::default()));
    for x in [100, 1500, 2400] {
        for y in [30, 59, 61, 119, 121, 149] {
            assert_eq!(pixel(x, y), DARK_BLUE, "{x} {y}");
        }
        assert_eq!([pixel(x, 60), pixel(x, 120)], [[0, 0, 0]; 2], "{x}");
    }
    assert_eq!([pixel(184, 40), pixel(2315, 149), pixel(185, 40)], [[0, 0, 0], [0, 0, 0], DARK_BLUE]);
    // Eight pixels of line, eight of gap, along the row of the first second of the first window.
    assert_eq!(
        [pixel(1600, 90), pixel(1607, 90), pixel(1608, 90), pixel(1615, 90)],
        [[255; 3], [255; 3], DARK_BLUE, DARK_BLUE]
    );
    assert_eq!([pixel(1600, 89), pixel(1600, 91)], [DARK_BLUE; 2]);
}

#[test]
fn minutes_begin_again_after_an_hour() {
    let picture = picture(&run(3690, 0, |_| Slice::default()));
    let svg = brunt_picture::svg_part(&picture);
    let count = |text: &str| svg.matches(&format!(">{text}<")).count();
    assert_eq!(["00:00", "00:59", "01:00", "01:01", "00:60", "01:60"].map(count), [1, 1, 1, 1, 0, 0]);
}

#[test]
fn a_run_of_any_length_makes_a_picture() {
    for rows in [0, 1, 2, 61] {
        let (width, height, _) = pixels(&run(rows, rows, |_| Slice::default()));
        assert_eq!((width, height), (2484, rows.max(25) + 33), "{rows}");
    }
}
