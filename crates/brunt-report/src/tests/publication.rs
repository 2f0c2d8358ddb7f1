//! Figures of made-up results: which result has which, how large they are, and what they say of where they come from.

use super::run::ordinary;
use crate::file_type::{FigureStyle, FigureWidth, FileRequest};
use crate::subject::Subject;
use brunt_stats::summary::Summary;

fn runs(names: &[&str]) -> Vec<(String, Summary)> {
    let run = |name: &&str| match *name {
        "open" => ordinary::open(),
        "outage" => ordinary::outage(),
        "overload" => ordinary::overload(),
        _ => ordinary::closed(),
    };
    names.iter().map(|name| ((*name).to_owned(), run(name).summary)).collect()
}

/// What is asked for by `text`, or why there is none.
fn drawn(source: Subject<'_>, text: &str, style: FigureStyle) -> Result<Vec<u8>, String> {
    let mut form = text.parse::<FileRequest>().unwrap().form;
    form.style = style;
    form.check(source.kind())?;
    let mut bytes = Vec::new();
    source.write(form, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn bytes(source: Subject<'_>, text: &str, style: FigureStyle) -> Vec<u8> {
    drawn(source, text, style).unwrap()
}

#[test]
fn results_have_the_figures_that_they_have_data_for() {
    assert_eq!("wide".parse::<FigureWidth>().unwrap_err(), "expected column (3.33 in) or page (7 in)");
    let (one, two) = (runs(&["open"]), runs(&["open", "closed"]));
    let five = runs(&["open", "closed", "open", "closed", "open"]);
    let campaigns = super::campaign::all();
    let comparisons = super::comparison::all();
    let campaign =
        |name: &str| Subject::Campaign(&campaigns.iter().find(|(held, _)| *held == name).unwrap().1);
    let (scan, repeat) = (campaign("scan_to_the_server"), campaign("repeat_agrees"));
    let comparison = Subject::Comparison(&comparisons[0].1);
    let run = Subject::Run(&one[0].1);
    let cases = [
        (run, "spectrum:a.svg", Ok(())),
        (run, "timeline:a.svg", Ok(())),
        (Subject::Runs(&two), "spectrum:a.svg", Ok(())),
        (scan, "curve:a.svg", Ok(())),
        (scan, "a.svg", Ok(())),
        (comparison, "changes:a.svg", Ok(())),
        (run, "curve:a.svg", Err("curve is of a scan or search, not of a run")),
        (Subject::Runs(&two), "timeline:a.svg", Err("timeline is of a run, not of several results")),
        (Subject::Runs(&five), "a.svg", Err("5 results given: expected up to 4")),
        (repeat, "curve:a.svg", Err("curve is of a scan or search, not of repeated runs")),
        (comparison, "timeline:a.svg", Err("timeline is of a run, not of a comparison")),
        (campaign("search_undecided"), "curve:a.svg", Err("fewer than two runs of the result have a p99")),
    ];
    for (source, text, expected) in cases {
        let drawn = drawn(source, text, FigureStyle::default()).map(drop);
        assert_eq!(drawn, expected.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn figures_have_their_size_outlines_and_source() {
    let one = runs(&["outage"]);
    let campaigns = super::campaign::all();
    let comparisons = super::comparison::all();
    let sources = [
        (Subject::Run(&one[0].1), "spectrum", 158, 187),
        (Subject::Run(&one[0].1), "timeline", 172, 216),
        (Subject::Campaign(&campaigns[0].1), "curve", 158, 187),
        (Subject::Comparison(&comparisons[0].1), "changes", 0, 0),
    ];
    for (source, name, column, page) in sources {
        for (width, across, down) in [(FigureWidth::Column, 240, column), (FigureWidth::Page, 504, page)] {
            for is_coloured in [false, true] {
                let style = FigureStyle { width, is_coloured };
                let svg = String::from_utf8(bytes(source, &format!("{name}:a.svg"), style)).unwrap();
                let drawing =
                    roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
                let root = drawing.root_element();
                assert_eq!(root.attribute("width").unwrap(), format!("{across}pt"), "{name}");
                let points: f64 = root.attribute("height").unwrap().trim_end_matches("pt").parse().unwrap();
                assert!(down == 0 || (points - f64::from(down)).abs() < 1.0, "{name}: {points}");
                assert!(!drawing.descendants().any(|node| node.has_tag_name("text")), "{name}");
                let source = drawing.descendants().find(|node| node.has_tag_name("desc")).unwrap();
                assert!(source.text().unwrap().contains("brunt 0."), "{name}");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
                // Greys alone, or colours.
                let style =
                    drawing.descendants().find(|node| node.has_tag_name("style")).unwrap().text().unwrap();
                let colors = style.match_indices('#').map(|(at, _)| &style[at + 1..at + 7]);
                let is_grey = |color: &str| color[..2] == color[2..4] && color[2..4] == color[4..];
                assert_eq!(colors.into_iter().all(is_grey), !is_coloured, "{name}");
            }
        }
    }
}

/// On a page service times stand beside response times, in a column below them in one chart; and the latency of a scan has its knee's tangent.
#[test]
fn figures_have_their_parts() {
    let (one, two) = (runs(&["open"]), runs(&["open", "closed"]));
    let campaigns = super::campaign::all();
    let scan = &campaigns.iter().find(|(name, _)| *name == "scan_to_the_server").unwrap().1;
    let wide = FigureStyle { width: FigureWidth::Page, is_coloured: false };
    let plots = |source, name: &str, style| {
        let svg = String::from_utf8(bytes(source, &format!("{name}:a.svg"), style)).unwrap();
        (svg.matches("class=\"plot\"").count(), svg.contains("class=\"tangent\""))
    };
    // Each part of what may not be quoted is crossed out and says so.
    let overload = &runs(&["overload"])[0].1;
    let svg = String::from_utf8(bytes(Subject::Run(overload), "spectrum:a.svg", wide)).unwrap();
    assert_eq!(svg.matches("class=\"note\"").count(), 3, "{svg}");
    for (source, name, style, expected) in [
        (Subject::Run(&one[0].1), "spectrum", FigureStyle::default(), (1, false)),
        (Subject::Run(&one[0].1), "spectrum", wide, (2, false)),
        (Subject::Runs(&two), "spectrum", wide, (2, false)),
        (Subject::Campaign(scan), "curve", FigureStyle::default(), (1, true)),
    ] {
        assert_eq!(plots(source, name, style), expected, "{name} {style:?}");
    }
}

#[test]
fn pixels_have_the_resolution_of_print() {
    let campaigns = super::campaign::all();
    let png = bytes(Subject::Campaign(&campaigns[0].1), "curve:a.png", FigureStyle::default());
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let density = png.windows(4).position(|name| name == b"pHYs").unwrap() + 4;
    // 600 to the inch.
    assert_eq!((number(16), number(density)), (2_000, 23_622));
}
