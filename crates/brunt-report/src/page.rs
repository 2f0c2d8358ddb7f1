//! The page that a short report is written on: paragraphs beside labels, tables, in the layout of its reader.
//!
//! Not what it says. Invariants: prose is no wider than the layout has it, and what comes from a server or a user steers no terminal.

use crate::grid::Grid;
use crate::layout::{Layout, Style};
use crate::paragraph::{wrapped, wrapped_prose};

/// Where the text begins behind a label.
const LABEL_WIDTH: usize = 13;

/// Lines of a report that every terminal shows at once.
pub(crate) const LINES_MAX: usize = 30;

/// How much a report shows of what there may be much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Rows of a table below its first.
    pub(crate) rows: usize,
    /// Facts that no verdict rests on: values, connections, transports, the client's cost.
    pub(crate) has_lesser_facts: bool,
    /// What bounds and marks every row of the table of response times, not the first alone.
    pub(crate) has_bounds_by_row: bool,
    /// The servers side by side, where there are several.
    pub(crate) has_servers: bool,
    /// All causes that a report lists, even where it becomes too long.
    pub(crate) has_all_causes: bool,
}

impl Room {
    /// From the usual one to the least.
    pub(crate) const STEPS: [Self; 7] = [
        Self::ALL,
        Self { has_lesser_facts: false, ..Self::ALL },
        Self::OF_FIRST_ROW,
        Self { rows: 4, has_all_causes: true, has_servers: true, ..Self::LEAST },
        Self { rows: 4, ..Self::LEAST },
        Self { rows: 2, ..Self::LEAST },
        Self::LEAST,
    ];
    /// All of it, but for what bounds and marks rows other than the first.
    pub(crate) const OF_FIRST_ROW: Self = Self { has_bounds_by_row: false, ..Self::ALL };
    const ALL: Self = Self {
        rows: 6,
        has_lesser_facts: true,
        has_bounds_by_row: true,
        has_servers: true,
        has_all_causes: true,
    };
    const LEAST: Self = Self {
        rows: 1,
        has_lesser_facts: false,
        has_bounds_by_row: false,
        has_servers: false,
        has_all_causes: false,
    };
}

/// A page.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) room: Room,
    text: String,
}

impl<'a> Page<'a> {
    pub(crate) const fn new(layout: &'a Layout) -> Self {
        let room = Room { has_all_causes: false, ..Room::ALL };
        Self { layout, room, text: String::new() }
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

    /// Lines so far.
    pub(crate) fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// How many lines such a text would take.
    pub(crate) fn lines_of(&self, indent: usize, text: &str) -> usize {
        wrapped_prose(text, self.layout.prose_width() - indent).len()
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
