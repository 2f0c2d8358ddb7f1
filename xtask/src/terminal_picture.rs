//! What a terminal shows, as a page that a browser can take a picture of: characters with the colours that `tmux capture-pane -e` writes.

use std::fmt::Write as _;

/// Text and ground, as a dark terminal has them.
const STYLE: &str = "body{margin:0;background:#13171c;color:#e8ecf0}pre{margin:0;padding:14px 18px;display:inline-block;\
                     font:15px/1.25 'DejaVu Sans Mono',monospace}.bold{font-weight:700}.dim{opacity:.6}";
/// The first eight of a terminal, then the bright ones.
const COLORS: [&str; 16] = [
    "#1d232a", "#ee6a86", "#7bd88f", "#f7d23e", "#7ab8ff", "#c792ea", "#5fe0ea", "#d5dbe1", "#6b7683",
    "#ff8ba0", "#9df0ad", "#ffe47a", "#a6d0ff", "#ddb3ff", "#97f2f8", "#ffffff",
];

/// How characters look.
#[derive(Clone, Default, PartialEq)]
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
                30..=37 => self.text = Some(COLORS[number - 30].to_owned()),
                90..=97 => self.text = Some(COLORS[number - 82].to_owned()),
                40..=47 => self.ground = Some(COLORS[number - 40].to_owned()),
                100..=107 => self.ground = Some(COLORS[number - 92].to_owned()),
                39 => self.text = None,
                49 => self.ground = None,
                38 | 48 => {
                    let color = match numbers.next() {
                        Some(5) => numbers.next().map(color_of_256),
                        Some(2) => {
                            let mut channel = || numbers.next().unwrap_or(0);
                            Some(format!("rgb({},{},{})", channel(), channel(), channel()))
                        }
                        _ => None,
                    };
                    if number == 38 { self.text = color } else { self.ground = color }
                }
                _ => {}
            }
        }
    }

    fn open(&self) -> String {
        let (mut text, mut ground) = (self.text.clone(), self.ground.clone());
        if self.is_reversed {
            text = Some(self.ground.clone().unwrap_or_else(|| "#13171c".to_owned()));
            ground = Some(self.text.clone().unwrap_or_else(|| "#e8ecf0".to_owned()));
        }
        let classes = [(self.is_bold, "bold"), (self.is_dim, "dim")];
        let classes: Vec<&str> =
            classes.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
        let colors = [("color", text), ("background", ground)];
        let colors: String =
            colors.into_iter().filter_map(|(key, color)| Some(format!("{key}:{};", color?))).collect();
        format!("<span class=\"{}\" style=\"{colors}\">", classes.join(" "))
    }
}

/// A colour of the palette of 256: 16 of the terminal, a cube of six steps a side, and greys.
fn color_of_256(index: usize) -> String {
    let level = |step: usize| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..=15 => COLORS[index].to_owned(),
        16..=231 => {
            let cube = index - 16;
            format!("rgb({},{},{})", level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => {
            let grey = 8 + 10 * (index.min(255) - 232);
            format!("rgb({grey},{grey},{grey})")
        }
    }
}

/// The page of what a terminal showed.
pub(crate) fn page(screen: &str) -> String {
    let mut page = format!("<!DOCTYPE html><meta charset=\"utf-8\"><style>{STYLE}</style><pre>");
    let mut look = Look::default();
    page.push_str(&look.open());
    let mut pieces = screen.trim_end().split('\u{1b}');
    let write = |page: &mut String, text: &str| {
        page.push_str(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    };
    write(&mut page, pieces.next().unwrap_or_default());
    for piece in pieces {
        let Some((numbers, text)) = piece.strip_prefix('[').and_then(|piece| piece.split_once('m')) else {
            continue;
        };
        look.change(numbers);
        let _ = write!(page, "</span>{}", look.open());
        write(&mut page, text);
    }
    page + "</span></pre>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_weights_become_spans() {
        let body = |screen: &str| page(screen).split_once("<pre>").unwrap().1.to_owned();
        let plain = "<span class=\"\" style=\"\">";
        assert_eq!(body("a<b"), format!("{plain}a&lt;b</span></pre>\n"));
        let table = [
            ("1", "<span class=\"bold\" style=\"\">"),
            ("2;31", "<span class=\"dim\" style=\"color:#ee6a86;\">"),
            ("38;5;196", "<span class=\"\" style=\"color:rgb(255,0,0);\">"),
            ("48;5;232", "<span class=\"\" style=\"background:rgb(8,8,8);\">"),
            ("38;2;1;2;3;97", "<span class=\"\" style=\"color:#ffffff;\">"),
            ("7", "<span class=\"\" style=\"color:#13171c;background:#e8ecf0;\">"),
            ("31;0", plain),
        ];
        for (numbers, span) in table {
            let screen = format!("\u{1b}[{numbers}mx\u{1b}[0m");
            assert_eq!(
                body(&screen),
                format!("{plain}</span>{span}x</span>{plain}</span></pre>\n"),
                "{numbers}"
            );
        }
    }
}
