//! The one font of pictures: outlines of the characters that they need, all equally wide.
//!
//! Not a reader of font files: the outlines of DejaVu Sans Mono lie beside this crate as text, with their licence and the
//! script that took them from the font. Readers of fonts are large, and the small ones are no longer maintained (RUSTSEC-2026-0192).

/// A character, a space, and its outline as an SVG path of M, L, Q and Z in units of the font, y upwards.
const OUTLINES: &str = include_str!("../font/dejavu-sans-mono.outlines");
/// Units of the font to the height of a line.
const UNITS: f64 = 2048.0;
/// Units from one character to the next.
pub(crate) const ADVANCE: f64 = 1233.0;
/// What stands for a character that is not there: an empty box.
const MISSING: &str = "M150 0L150 1493L1083 1493L1083 0ZM250 100L983 100L983 1393L250 1393Z";

/// Width in pixels of a text of a size.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * advance(size)
}

/// Pixels from one character to the next.
pub(crate) fn advance(size: f64) -> f64 {
    ADVANCE / UNITS * size
}

/// Pixels to a unit of outlines.
pub(crate) fn scale(size: f64) -> f64 {
    size / UNITS
}

/// The outline of a character as an SVG path, y upwards; `None` where there is nothing to see.
pub(crate) fn outline(character: char) -> Option<&'static str> {
    if character == ' ' {
        return None;
    }
    let found = OUTLINES.lines().find_map(|line| line.strip_prefix(character));
    Some(found.map_or(MISSING, |path| path.trim_start()))
}

/// A step of an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Move(f32, f32),
    Line(f32, f32),
    /// A quadratic curve: its control point, and where it ends.
    Curve(f32, f32, f32, f32),
    Close,
}

/// The steps of an outline of ours.
pub(crate) fn steps(path: &str) -> impl Iterator<Item = Step> + '_ {
    let verbs = path.match_indices(|letter: char| letter.is_ascii_uppercase());
    verbs.map(|(at, verb)| {
        let rest = &path[at + 1..];
        let end = rest.find(|letter: char| letter.is_ascii_uppercase()).unwrap_or(rest.len());
        let mut numbers = rest[..end].split(' ').filter_map(|number| number.parse::<f32>().ok());
        // Each path is a constant of ours, and a test reads them all.
        let mut next = || numbers.next().expect("a coordinate after the verb");
        match verb {
            "M" => Step::Move(next(), next()),
            "L" => Step::Line(next(), next()),
            "Q" => Step::Curve(next(), next(), next(), next()),
            _ => Step::Close,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_path() {
        let expected = [
            Step::Move(1.0, -2.0),
            Step::Line(3.0, 4.0),
            Step::Curve(5.0, 6.0, 7.0, 8.0),
            Step::Close,
            Step::Move(0.0, 0.0),
            Step::Close,
        ];
        assert_eq!(steps("M1 -2L3 4Q5 6 7 8ZM0 0Z").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_outline_is_closed_and_lies_in_its_cell() {
        for line in OUTLINES.lines() {
            let character = line.chars().next().expect("a character");
            let mut is_open = false;
            for step in steps(outline(character).expect("it is no space")) {
                let (x, y) = match step {
                    Step::Move(x, y) | Step::Line(x, y) | Step::Curve(_, _, x, y) => (x, y),
                    Step::Close => (0.0, 0.0),
                };
                assert!((-60.0..=1300.0).contains(&x) && (-500.0..=1950.0).contains(&y), "{character}");
                assert_eq!(matches!(step, Step::Move(..)), !is_open, "{character}");
                is_open = step != Step::Close;
            }
            assert!(!is_open, "{character}");
        }
    }

    #[test]
    fn ascii_has_outlines_and_the_rest_is_a_box() {
        for character in '!'..='~' {
            assert_ne!(outline(character), Some(MISSING), "{character}");
        }
        assert_eq!(outline('漢'), Some(MISSING));
        assert_eq!(outline(' '), None);
    }
}
