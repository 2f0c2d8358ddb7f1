//! A chart with every kind of shape: as a whole SVG, and as the picture of other tests.

use crate::axis::{Side, axis, number_label, time_label};
use crate::heat_map::{ColumnCount, heat_map, logarithmic_edges};
use crate::{
    Anchor, Area, Fill, Ink, Picture, Point, Scale, Shape, Stroke, Text, Texture, svg_part, textures,
};

/// Latencies over a minute: a heat map, the median with a band, and what lies on it.
pub(crate) fn chart() -> Picture {
    let plot = Area { x: 64.0, y: 34.0, width: 420.0, height: 160.0 };
    let x = Scale::linear((0.0, 60.0), (plot.x, plot.right()));
    let y = Scale::logarithmic((1e4, 1e7), (plot.bottom(), plot.y));
    let ticks = |values: Vec<f64>, label: fn(f64) -> String| {
        values.into_iter().map(|value| (value, label(value))).collect::<Vec<_>>()
    };
    let mut picture = Picture::new(508, 246, Ink::Page, "Response times < 10 ms over a minute");
    let median = |second: f64| 6e4 * (1.0 + 0.5 * (second / 6.0).sin());
    let columns: Vec<Vec<ColumnCount>> = (0..20)
        .map(|column| {
            let middle = median(f64::from(column) * 3.0);
            let counts = [(0.6, 40), (0.9, 500), (1.2, 400), (2.0, 50), (4.0, 8), (30.0, 1)];
            counts
                .iter()
                .map(|(part, count)| ColumnCount { low: middle * part, high: middle * part, count: *count })
                .collect()
        })
        .collect();
    let cells = heat_map(&columns, &logarithmic_edges(1e4, 1e7, 12));
    let names = ticks(y.ticks(10), |ns| number_label(ns / 1e3));
    axis(plot, Side::Left, &y, &names, "response, us").into_iter().for_each(|shape| picture.push(shape));
    let names = ticks(x.time_ticks(7), time_label);
    axis(plot, Side::Bottom, &x, &names, "time, min:s").into_iter().for_each(|shape| picture.push(shape));
    picture.push(Shape::Cells { area: plot, cells });
    let curve = |factor: f64| {
        (0..=20).map(move |step| f64::from(step) * 3.0).map(move |second| (second, median(second) * factor))
    };
    let at = |(second, ns): (f64, f64)| Point { x: x.pixel(second), y: y.pixel(ns) };
    let band: Vec<Point> =
        curve(1.3).map(at).chain(curve(0.8).map(at).collect::<Vec<_>>().into_iter().rev()).collect();
    picture.push(Shape::Polygon { points: band, fill: Fill::faint(Ink::Series(1), 0.18) });
    let stroke = Stroke::solid(Ink::Series(1), 2.0);
    picture.push(Shape::Polyline { points: curve(1.0).map(at).collect(), stroke });
    let objective = Stroke { ink: Ink::Caution, width: 1.0, dash: &[6.0, 3.0] };
    let level = y.pixel(1e6).floor() + 0.5;
    picture.line(Point { x: plot.x, y: level }, Point { x: plot.right(), y: level }, objective);
    picture.text(Text {
        at: Point { x: plot.right() - 4.0, y: level - 5.0 },
        anchor: Anchor::End,
        size: 12.0,
        ink: Ink::Caution,
        halo: Some(Ink::Page),
        content: "p99 < 1 ms".to_owned(),
    });
    let hatched = Fill::textured(Ink::Caution, Texture::Hatched);
    let crossed = Fill::textured(Ink::Invalid, Texture::Crossed);
    let strip = |x: f64| Area { x: plot.x + x, y: plot.y, width: 20.0, height: 30.0 };
    let points = vec![at((9.0, 3e6)), at((12.0, 4e6))];
    let dots = Shape::Dots { points, stroke: Stroke::solid(Ink::Text, 3.0) };
    let shapes = vec![
        Shape::rectangle(strip(10.0), hatched),
        Shape::rectangle(strip(40.0), crossed),
        Shape::Group { class: "max", shapes: vec![dots] },
    ];
    picture.push(Shape::Plot { area: plot, shapes });
    picture
}

#[test]
fn a_whole_chart() {
    let parts = [textures(), svg_part(&chart())];
    parts.iter().for_each(|part| assert!(roxmltree::Document::parse(part).is_ok(), "{part}"));
    insta::assert_snapshot!(parts.concat());
}
