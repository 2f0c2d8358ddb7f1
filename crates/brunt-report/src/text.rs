//! A document as lines of text: tables as they are, facts and prose broken where a line gets too long.
//!
//! Invariants: a short report has at most [`LINES_MAX`] lines, as far as its ranks allow.
//! What comes from a server or a user passes through [`printable`], so that nothing it holds can steer a terminal.

use crate::document::{Content, Document, Level};
use crate::grid::shortened;
use crate::layout::{Layout, Line, Span, Style, painted};
use serde_json::Value;

/// Facts in lines, with dots between those on one line; one that is longer than a line is broken between words.
pub(crate) fn wrapped(facts: &[String], width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for fact in facts {
        let fact = printable(fact);
        let words = if fact.chars().count() <= width { vec![fact] } else { words(&fact, width) };
        for (index, word) in words.iter().enumerate() {
            let between = match (line.is_empty(), index) {
                (true, _) => "",
                (false, 0) => " · ",
                (false, _) => " ",
            };
            if line.chars().count() + between.chars().count() + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push_str(between);
            }
            line.push_str(word);
        }
    }
    lines.push(line);
    lines
}

/// The words of a text; those that are longer than a line in pieces.
fn words(text: &str, width: usize) -> Vec<String> {
    text.split(' ').flat_map(|word| cut(word, width)).map(str::to_owned).collect()
}

/// Splits a piece into lines of at most `width` characters.
fn cut(piece: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = piece;
    while let Some((at, _)) = rest.char_indices().nth(width) {
        let (line, behind) = rest.split_at(at);
        lines.push(line);
        rest = behind;
    }
    lines.push(rest);
    lines
}

/// As many characters of a text as there is room for, and `...` for the rest.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Does a terminal or a browser do something else with it than to show it: is it a control character, the end of a line or paragraph,
/// or does it change the direction of what follows (Unicode Standard Annex 9)?
pub(crate) fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every character written out that [`steers`].
pub(crate) fn printable(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Writes out what steers a terminal, in all texts and keys.
pub(crate) fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(steers) => *text = printable(text),
        Value::Array(list) => list.iter_mut().for_each(make_printable),
        Value::Object(map) => {
            if map.keys().any(|key| key.contains(steers)) {
                let held = std::mem::take(map).into_iter();
                *map = held.map(|(key, inner)| (printable(&key), inner)).collect();
            }
            map.values_mut().for_each(make_printable);
        }
        _ => {}
    }
}

/// Lines of a short report.
pub(crate) const LINES_MAX: usize = 24;
/// Where the text begins behind a label.
const LABEL_WIDTH: usize = 14;

impl Document {
    /// The lines of a report of this length.
    pub(crate) fn lines(&self, layout: &Layout, level: Level) -> Vec<Line> {
        let mut document = self.clone();
        loop {
            let lines = document.all_lines(layout, level);
            if level > Level::Short || lines.len() <= LINES_MAX || !document.leave_one_out() {
                return lines;
            }
        }
    }

    /// The lines as one text.
    pub(crate) fn text(&self, layout: &Layout, level: Level) -> String {
        let lines = self.lines(layout, level);
        lines.iter().map(|line| painted(line, layout.is_coloured) + "\n").collect()
    }

    fn all_lines(&self, layout: &Layout, level: Level) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut is_apart = false;
        for content in self.contents(level) {
            if matches!(content, Content::Gap) {
                is_apart = !lines.is_empty();
                continue;
            }
            lines.extend(std::mem::take(&mut is_apart).then(Vec::new));
            lines.extend(content_lines(content, layout));
        }
        if self.left_out > 0 {
            lines.push(vec![Span::plain(format!("  {} more: --report full", self.left_out))]);
        }
        lines
    }
}

fn content_lines(content: &Content, layout: &Layout) -> Vec<Line> {
    let room = layout.prose_width() - LABEL_WIDTH;
    match content {
        Content::Gap => Vec::new(),
        Content::Heading(name) => vec![vec![Span::new(format!("== {name}"), Style::Bold)]],
        Content::Facts { label, facts } => beside(label, Style::Dim, &wrapped(facts, room), layout),
        Content::Sentence { label, text, style } => {
            beside(label, *style, &wrapped(std::slice::from_ref(text), room), layout)
        }
        Content::Advice { name, text } => {
            beside(&format!("  {name}"), Style::Plain, &wrapped(std::slice::from_ref(text), room), layout)
        }
        Content::Assertion(text) => {
            let sentence = wrapped(&[format!("{}: {}", text.subject, text.finding)], room);
            beside(text.word(), text.style(), &sentence, layout)
        }
        Content::Status { text, style } => {
            let text = wrapped(std::slice::from_ref(text), layout.prose_width());
            let line = |line: &String| vec![Span::new(layout.in_characters(line), Style::Bold)];
            let mut lines: Vec<Line> = text.iter().map(line).collect();
            if let Some((word, _)) = text[0].split_once(':') {
                let rest = Span::new(layout.in_characters(&text[0][word.len()..]), Style::Bold);
                lines[0] = vec![Span::new(word, *style), rest];
            }
            lines
        }
        Content::Table(grid) => grid.lines(layout),
        Content::Chart { label, times_ns, scale } => {
            let bars: String = times_ns.iter().map(|ns| scale.bar(*ns)).collect();
            beside(label, Style::Dim, &[format!("{bars}  {scale}")], layout)
        }
        Content::Verbatim(text) => {
            text.lines().map(|line| vec![Span::plain(layout.in_characters(&printable(line)))]).collect()
        }
    }
}

fn beside(label: &str, style: Style, texts: &[String], layout: &Layout) -> Vec<Line> {
    let label = shortened(&layout.in_characters(&printable(label)), LABEL_WIDTH - 1);
    let line = |(index, text): (usize, &String)| {
        let label = if index == 0 { label.as_str() } else { "" };
        let blanks = " ".repeat(LABEL_WIDTH - label.chars().count());
        vec![Span::new(label, style), Span::plain(blanks + &layout.in_characters(text))]
    };
    texts.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_broken_between_them_where_that_can_be() {
        let facts = ["closed loop", "16 connections", "a fact that is longer than a line has room", "end"];
        let lines = wrapped(&facts.map(str::to_owned), 28);
        assert_eq!(
            lines,
            ["closed loop · 16 connections", "a fact that is longer than a", "line has room · end"]
        );
        assert_eq!(wrapped(&["one two three".to_owned()], 7), ["one two", "three"]);
        assert_eq!(wrapped(&["x".repeat(9)], 4), ["xxxx", "xxxx", "x"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("SERVER_ERROR \u{1b}[2J\r\n größer"), "SERVER_ERROR \\u{1b}[2J\\r\\n größer");
        assert_eq!(printable("\u{202e}a\u{2069}\u{9b}"), "\\u{202e}a\\u{2069}\\u{9b}");
    }
}
