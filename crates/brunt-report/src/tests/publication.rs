//! Figures of made-up results: which result has which, how large they are, and what they say of where they come from.

use super::run::ordinary;
use crate::publication::{FigureRequest, FigureStyle, FigureWidth};
use crate::subject::Subject;
use brunt_stats::summary::Summary;

fn request(text: &str) -> FigureRequest {
    text.parse().unwrap()
}

fn runs(names: &[&str]) -> Vec<(String, Summary)> {
    let run = |name: &&str| match *name {
        "open" => ordinary::open(),
        "outage" => ordinary::outage(),
        "overload" => ordinary::overload(),
        _ => ordinary::closed(),
    };
    names.iter().map(|name| ((*name).to_owned(), run(name).summary)).collect()
}

fn bytes(source: Subject<'_>, text: &str, style: FigureStyle) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.figure(&request(text), style).unwrap().write(&mut bytes).unwrap();
    bytes
}

#[test]
fn requests_are_read_or_refused() {
    for text in ["curve=a.svg", "spectrum=x/y.PNG", "timeline=a=b.svg", "changes=-.png"] {
        assert!(text.parse::<FigureRequest>().is_ok(), "{text}");
    }
    let names = "curve, spectrum, timeline, changes";
    let refused = [
        ("spectrum", format!("expected TYPE=PATH, e.g. spectrum=p99.svg; TYPE is one of {names}")),
        ("spectrm=a.svg", format!("'spectrm' is no figure: expected one of {names}")),
        ("curve=a.pdf", "'a.pdf' has no known ending: expected a path that ends in .svg or .png".to_owned()),
        ("curve=.svg", "'.svg' has no known ending: expected a path that ends in .svg or .png".to_owned()),
        ("curve=", "'' has no known ending: expected a path that ends in .svg or .png".to_owned()),
    ];
    for (text, message) in refused {
        assert_eq!(text.parse::<FigureRequest>().unwrap_err(), message);
    }
    assert_eq!("wide".parse::<FigureWidth>().unwrap_err(), "expected column (3.33 in) or page (7 in)");
}

#[test]
fn results_have_the_figures_that_they_have_data_for() {
    let (one, two) = (runs(&["open"]), runs(&["open", "closed"]));
    let five = runs(&["open", "closed", "open", "closed", "open"]);
    let campaigns = super::campaign::all();
    let comparisons = super::comparison::all();
    let campaign = |name: &str| &campaigns.iter().find(|(held, _)| *held == name).unwrap().1;
    let (scan, repeat) =
        (Subject::Campaign(campaign("scan_to_the_server")), Subject::Campaign(campaign("repeat_agrees")));
    let comparison = Subject::Comparison(&comparisons[0].1);
    let cases = [
        (Subject::Runs(&one), "spectrum", Ok(())),
        (Subject::Runs(&one), "timeline", Ok(())),
        (Subject::Runs(&two), "spectrum", Ok(())),
        (scan, "curve", Ok(())),
        (comparison, "changes", Ok(())),
        (
            Subject::Runs(&one),
            "curve",
            Err("the result of a single run given: curve takes a result of brunt scan or brunt search"),
        ),
        (
            Subject::Runs(&two),
            "timeline",
            Err("2 results of single runs given: timeline takes the result of a single run"),
        ),
        (Subject::Runs(&five), "spectrum", Err("5 results given: expected up to 4")),
        (
            repeat,
            "curve",
            Err("a result of kind repeat given: curve takes a result of brunt scan or brunt search"),
        ),
        (scan, "spectrum", Err("a result of kind scan given: spectrum takes results of single runs")),
        (
            comparison,
            "timeline",
            Err("a result of brunt compare given: timeline takes the result of a single run"),
        ),
        (
            Subject::Campaign(campaign("search_undecided")),
            "curve",
            Err("fewer than two runs of the result have a p99"),
        ),
    ];
    for (source, name, expected) in cases {
        let figure = source.figure(&request(&format!("{name}=a.svg")), FigureStyle::default());
        let message = |reason| format!("invalid value '{name}=a.svg' for --figure: {reason}");
        assert_eq!(figure.map(drop), expected.map_err(message), "{name}");
    }
}

#[test]
fn figures_have_their_size_outlines_and_source() {
    let one = runs(&["outage"]);
    let campaigns = super::campaign::all();
    let comparisons = super::comparison::all();
    let sources = [
        (Subject::Runs(&one), "spectrum", 158, 187),
        (Subject::Runs(&one), "timeline", 172, 216),
        (Subject::Campaign(&campaigns[0].1), "curve", 158, 187),
        (Subject::Comparison(&comparisons[0].1), "changes", 0, 0),
    ];
    for (source, name, column, page) in sources {
        for (width, across, down) in [(FigureWidth::Column, 240, column), (FigureWidth::Page, 504, page)] {
            for is_coloured in [false, true] {
                let style = FigureStyle { width, is_coloured };
                let svg = String::from_utf8(bytes(source, &format!("{name}=a.svg"), style)).unwrap();
                let drawing =
                    roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
                let root = drawing.root_element();
                assert_eq!(root.attribute("width").unwrap(), format!("{across}pt"), "{name}");
                let points: f64 = root.attribute("height").unwrap().trim_end_matches("pt").parse().unwrap();
                assert!(down == 0 || (points - f64::from(down)).abs() < 1.0, "{name}: {points}");
                assert!(!drawing.descendants().any(|node| node.has_tag_name("text")), "{name}");
                let source = drawing.descendants().find(|node| node.has_tag_name("desc")).unwrap();
                assert!(source.text().unwrap().contains(env!("CARGO_PKG_VERSION")), "{name}");
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
        let svg = String::from_utf8(bytes(source, &format!("{name}=a.svg"), style)).unwrap();
        (svg.matches("class=\"plot\"").count(), svg.contains("class=\"tangent\""))
    };
    for (source, name, style, expected) in [
        (Subject::Runs(&one), "spectrum", FigureStyle::default(), (1, false)),
        (Subject::Runs(&one), "spectrum", wide, (2, false)),
        (Subject::Runs(&two), "spectrum", wide, (2, false)),
        (Subject::Campaign(scan), "curve", FigureStyle::default(), (1, true)),
    ] {
        assert_eq!(plots(source, name, style), expected, "{name} {style:?}");
    }
}

#[test]
fn pixels_have_the_resolution_of_print() {
    let campaigns = super::campaign::all();
    let png = bytes(Subject::Campaign(&campaigns[0].1), "curve=a.png", FigureStyle::default());
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let density = png.windows(4).position(|name| name == b"pHYs").unwrap() + 4;
    // 600 to the inch.
    assert_eq!((number(16), number(density)), (2_000, 23_622));
}
