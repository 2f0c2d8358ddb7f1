//! The page that a short report is written on: paragraphs beside labels, tables, in the layout of its reader.
//!
//! Not what it says. Invariants: prose is no wider than the layout has it, and what comes from a server or a user steers no terminal.

use crate::grid::Grid;
use crate::layout::{Layout, Style};
use crate::paragraph::{wrapped, wrapped_prose};

/// Where the text begins behind a label.
const LABEL_WIDTH: usize = 13;

/// A page.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) layout: &'a Layout,
    text: String,
}

impl<'a> Page<'a> {
    pub(crate) const fn new(layout: &'a Layout) -> Self {
        Self { layout, text: String::new() }
    }

    /// Facts beside a label; a line ends between two of them where it can.
    pub(crate) fn facts(&mut self, label: &str, facts: &[String]) {
        let lines = wrapped(facts, self.layout.prose_width() - LABEL_WIDTH);
        self.beside(label, LABEL_WIDTH, &lines, Style::Dim);
    }

    /// A sentence beside a word of this style.
    pub(crate) fn finding(&mut self, word: &str, text: &str, style: Style) {
        self.prose(word, LABEL_WIDTH, text, style);
    }

    /// Text beside a label that begins at this column.
    pub(crate) fn prose(&mut self, label: &str, indent: usize, text: &str, style: Style) {
        let lines = wrapped_prose(text, self.layout.prose_width() - indent);
        self.beside(label, indent, &lines, style);
    }

    /// Facts from the margin on, painted word by word.
    pub(crate) fn headline(&mut self, facts: &[String], paint: impl Fn(&str) -> Style) {
        for line in wrapped(facts, self.layout.prose_width()) {
            let text = self.layout.in_characters(&line);
            let painted: Vec<String> =
                text.split(' ').map(|word| paint(word).paint(word, self.layout.is_coloured)).collect();
            self.text.push_str(&painted.join(" "));
            self.text.push('\n');
        }
    }

    fn beside(&mut self, label: &str, indent: usize, lines: &[String], style: Style) {
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let blanks = " ".repeat(indent.saturating_sub(label.chars().count()));
            self.text.push_str(&style.paint(label, self.layout.is_coloured));
            self.text.push_str(&blanks);
            self.text.push_str(&self.layout.in_characters(line));
            self.text.push('\n');
        }
    }

    /// A table.
    pub(crate) fn grid(&mut self, grid: &Grid) {
        grid.write(&mut self.text, self.layout);
    }

    /// Ends a page that has text with one empty line.
    pub(crate) fn separate(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let layout = Layout::default();
        let mut page = Page::new(&layout);
        page.facts("server", &["\u{1b}[2J".to_owned()]);
        assert_eq!(page.into_text(), "server       \\u{1b}[2J\n");
    }
}
