//! The one font of pictures: outlines of the characters that they need, all equally wide.
//!
//! Not a reader of font files: the outlines of DejaVu Sans Mono lie beside this crate as text, with their licence and the
//! script that took them from the font. Readers of fonts are large, and the small ones are no longer maintained (RUSTSEC-2026-0192).

/// A character, a space, and its outline as an SVG path of M, L, Q and Z in units of the font, y upwards.
const OUTLINES: &str = include_str!("../font/dejavu-sans-mono.outlines");
/// Units of the font to the height of a line.
const UNITS: f64 = 2048.0;
/// Units from one character to the next.
const ADVANCE: f64 = 1233.0;
/// What stands for a character that is not there: an empty box.
const MISSING: &str = "M150 0L150 1493L1083 1493L1083 0ZM250 100L983 100L983 1393L250 1393Z";

/// Width in pixels of a text of a size.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * ADVANCE * scale(size)
}

/// Pixels to a unit of outlines.
pub(crate) fn scale(size: f64) -> f64 {
    size / UNITS
}

/// The outline of a character as an SVG path, y upwards; `None` where there is nothing to see.
fn outline(character: char) -> Option<&'static str> {
    if character == ' ' {
        return None;
    }
    let found = OUTLINES.lines().find_map(|line| line.strip_prefix(character));
    Some(found.map_or(MISSING, |path| path.trim_start()))
}

/// A step of an outline: M, L, Q or Z of an SVG path, and its coordinates, x and y in turns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) verb: char,
    pub(crate) at: Vec<f32>,
}

/// The steps of an outline of ours.
fn steps(path: &str) -> impl Iterator<Item = Step> + '_ {
    path.match_indices(|letter: char| letter.is_ascii_uppercase()).map(|(place, verb)| {
        let numbers = path[place + 1..].split(|letter: char| letter.is_ascii_uppercase()).next();
        let numbers = numbers.unwrap_or("").split(' ').filter_map(|number| number.parse().ok());
        Step { verb: char::from(verb.as_bytes()[0]), at: numbers.collect() }
    })
}

/// The steps of a line of text in units of the font, one character after another.
pub(crate) fn line(text: &str) -> impl Iterator<Item = Step> + '_ {
    text.chars().enumerate().flat_map(|(index, character)| {
        let left = index as f32 * ADVANCE as f32;
        outline(character).into_iter().flat_map(steps).map(move |mut step| {
            step.at.iter_mut().step_by(2).for_each(|x| *x += left);
            step
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_path() {
        let expected: [(char, &[f32]); 6] = [
            ('M', &[1.0, -2.0]),
            ('L', &[3.0, 4.0]),
            ('Q', &[5.0, 6.0, 7.0, 8.0]),
            ('Z', &[]),
            ('M', &[0.0, 0.0]),
            ('Z', &[]),
        ];
        let expected = expected.map(|(verb, at)| Step { verb, at: at.to_vec() });
        assert_eq!(steps("M1 -2L3 4Q5 6 7 8ZM0 0Z").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_outline_is_closed_and_lies_in_its_cell() {
        for line in OUTLINES.lines() {
            let character = line.chars().next().expect("a character");
            let mut is_open = false;
            for Step { verb, at } in steps(outline(character).expect("it is no space")) {
                let count = [('M', 2), ('L', 2), ('Q', 4), ('Z', 0)].into_iter().find(|held| held.0 == verb);
                assert_eq!(count, Some((verb, at.len())), "{character}");
                for at in at.chunks(2) {
                    let [x, y] = [at[0], at[1]];
                    assert!((-60.0..=1300.0).contains(&x) && (-500.0..=1950.0).contains(&y), "{character}");
                }
                assert_eq!(verb == 'M', !is_open, "{character}");
                is_open = verb != 'Z';
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
