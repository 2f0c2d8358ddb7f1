//! A document as lines of text: tables as they are, prose as wide as the layout has it.
//!
//! Invariants: what comes from a server or a user steers no terminal; a short report has at most [`LINES_MAX`] lines, as far as its ranks
//! allow.

use super::{Content, Document, Level};
use crate::grid::shortened;
use crate::layout::{Layout, Line, Span, Style, painted};
use crate::paragraph::{printable, wrapped, wrapped_prose};

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
            lines.push(vec![Span::plain(format!("  {} more: --details", self.left_out))]);
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
        Content::Sentence { label, text, style } => beside(label, *style, &wrapped_prose(text, room), layout),
        Content::Advice { name, text } => {
            beside(&format!("  {name}"), Style::Plain, &wrapped_prose(text, room), layout)
        }
        Content::Assertion(text) => {
            let sentence = wrapped_prose(&format!("{}: {}", text.subject, text.finding), room);
            beside(text.word(), text.style(), &sentence, layout)
        }
        Content::Status { text, style } => {
            let text = wrapped_prose(text, layout.prose_width());
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
