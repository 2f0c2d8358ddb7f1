//! What a terminal shows, as a page that a browser can take a picture of: characters with the colours that `tmux capture-pane -e` writes.
//!
//! It knows the attributes that `--tui` sets: bold, dim, reversed, three colours of the terminal, and those of the palette of 256.

/// Text and ground of a dark terminal.
const TEXT: &str = "#e8ecf0";
const GROUND: &str = "#13171c";
const STYLE: &str =
    "display:inline-block;margin:0;padding:14px 18px;font:15px/1.25 'DejaVu Sans Mono',monospace";
/// Red, green and yellow.
const COLORS: [&str; 3] = ["#ee6a86", "#7bd88f", "#f7d23e"];

/// How characters look.
#[derive(Clone, Default)]
struct Look {
    text: Option<String>,
    ground: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_reversed: bool,
}

impl Look {
    /// Takes the numbers of one sequence `ESC [ ... m`.
    fn change(&mut self, numbers: &str) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                7 => self.is_reversed = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                27 => self.is_reversed = false,
                31..=33 => self.text = Some(COLORS[number - 31].to_owned()),
                // Then a 5 and the colour.
                38 => self.text = numbers.nth(1).map(color_of_256),
                39 => self.text = None,
                48 => self.ground = numbers.nth(1).map(color_of_256),
                49 => self.ground = None,
                _ => {}
            }
        }
    }

    fn style(&self) -> String {
        let mut colors = [self.text.as_deref().unwrap_or(TEXT), self.ground.as_deref().unwrap_or(GROUND)];
        if self.is_reversed {
            colors.reverse();
        }
        let (weight, opacity) = (if self.is_bold { 700 } else { 400 }, if self.is_dim { 0.6 } else { 1.0 });
        format!("color:{};background:{};font-weight:{weight};opacity:{opacity}", colors[0], colors[1])
    }
}

/// A colour of the palette of 256 behind the 16 of the terminal: a cube of six steps a side, and greys.
fn color_of_256(index: usize) -> String {
    let level = |step: usize| if step == 0 { 0 } else { 55 + 40 * step };
    let cube = index.saturating_sub(16);
    let [red, green, blue] = match index {
        ..232 => [cube / 36, cube / 6 % 6, cube % 6].map(level),
        _ => [8 + 10 * (index - 232); 3],
    };
    format!("rgb({red},{green},{blue})")
}

/// The page of what a terminal showed.
pub(crate) fn page(screen: &str) -> String {
    let (mut spans, mut look) = (String::new(), Look::default());
    for piece in format!("[0m{}", screen.trim_end()).split('\u{1b}') {
        let Some((numbers, text)) = piece.strip_prefix('[').and_then(|piece| piece.split_once('m')) else {
            continue;
        };
        look.change(numbers);
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        spans.push_str(&format!("<span style=\"{}\">{text}</span>", look.style()));
    }
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body style=\"margin:0;background:{GROUND}\"><pre style=\"{STYLE}\">{spans}</pre>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_weights_become_spans() {
        let span = |text: &str, ground: &str, rest: &str, character: &str| {
            format!("<span style=\"color:{text};background:{ground};{rest}\">{character}</span>")
        };
        let plain = |character: &str| span(TEXT, GROUND, "font-weight:400;opacity:1", character);
        let table = [
            ("1", span(TEXT, GROUND, "font-weight:700;opacity:1", "x")),
            ("2;31", span("#ee6a86", GROUND, "font-weight:400;opacity:0.6", "x")),
            ("38;5;196", span("rgb(255,0,0)", GROUND, "font-weight:400;opacity:1", "x")),
            ("38;5;16;48;5;232", span("rgb(0,0,0)", "rgb(8,8,8)", "font-weight:400;opacity:1", "x")),
            ("7", span(GROUND, TEXT, "font-weight:400;opacity:1", "x")),
            ("31;0", plain("x")),
        ];
        for (numbers, expected) in table {
            let page = page(&format!("a<\u{1b}[{numbers}mx\u{1b}[0my\n"));
            let (_, spans) = page.split_once("<pre").unwrap();
            let (_, spans) = spans.split_once('>').unwrap();
            assert_eq!(spans, format!("{}{expected}{}</pre>\n", plain("a&lt;"), plain("y")), "{numbers}");
        }
    }
}
