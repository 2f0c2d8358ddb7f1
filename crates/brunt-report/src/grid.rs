//! A table: cells without blanks, aligned, no wider than it may be.
//!
//! Invariants: a column is as wide as its widest cell at least, so numbers stay whole; the first column alone gives way, by its names; cells
//! are missing at the end of a row only; no line is wider than [`TABLE_WIDTH`], for columns that may be lost are, where nothing else helps.

use crate::layout::{Layout, Line, Span, Style, TABLE_WIDTH, painted};

/// The shortest that a name is cut to.
const NAME_MIN: usize = 11;

/// A column by its heading.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) heading: String,
    /// As wide as it is where there is room, with the gap in front of it.
    usual: usize,
    is_left: bool,
    /// Two blanks stand before its widest cell, where there is room.
    is_spaced: bool,
    /// Which column a narrow terminal loses first: the lowest.
    lost: Option<u8>,
}

impl Column {
    /// A column of numbers.
    pub(crate) fn of_numbers(heading: impl Into<String>, usual: usize) -> Self {
        Self { heading: heading.into(), usual, is_left: false, is_spaced: false, lost: None }
    }

    /// The same, apart from the column before it even where its cells are wide.
    pub(crate) fn spaced(heading: impl Into<String>, usual: usize) -> Self {
        Self { is_spaced: true, ..Self::of_numbers(heading, usual) }
    }

    /// A column of names or words.
    pub(crate) fn of_words(heading: impl Into<String>, usual: usize) -> Self {
        Self { is_left: true, ..Self::of_numbers(heading, usual) }
    }

    /// Lets a narrow terminal leave the column out; columns with the lowest number go first.
    pub(crate) fn lost_as(self, lost: u8) -> Self {
        Self { lost: Some(lost), ..self }
    }

    /// Width of the space before the column.
    fn gap(&self, index: usize) -> usize {
        match (index, self.is_left) {
            (0, _) => 0,
            (_, true) => 2,
            (_, false) => 1,
        }
    }
}

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// Cells in one style.
pub(crate) fn cells(texts: impl IntoIterator<Item = String>, style: Style) -> Vec<Cell> {
    texts.into_iter().map(|text| Cell::new(text, style)).collect()
}

/// Columns and rows.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// A row in one style.
    pub(crate) fn push_texts(&mut self, texts: impl IntoIterator<Item = String>, style: Style) {
        self.push(cells(texts, style));
    }

    /// The headings, each with whether its column is of words.
    pub(crate) fn headings(&self) -> Vec<(String, bool)> {
        self.columns.iter().map(|column| (column.heading.clone(), column.is_left)).collect()
    }

    /// The cells of each row, some of which may be missing at its end.
    pub(crate) fn texts(&self) -> Vec<Vec<String>> {
        let texts = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.clone()).collect();
        self.rows.iter().map(texts).collect()
    }

    /// Is there nothing below the heading?
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the lines.
    pub(crate) fn write(&self, out: &mut String, layout: &Layout) {
        self.lines(layout).iter().for_each(|line| out.push_str(&(painted(line, layout.is_coloured) + "\n")));
    }

    /// The lines, that of the headings first.
    pub(crate) fn lines(&self, layout: &Layout) -> Vec<Line> {
        let mut grid = self.clone();
        while grid.widths().iter().sum::<usize>() > layout.table_width() && grid.lose_one() {}
        let widths = grid.widths();
        let heading: Vec<Cell> =
            grid.columns.iter().map(|column| Cell::new(column.heading.clone(), Style::Dim)).collect();
        std::iter::once(&heading).chain(&grid.rows).map(|row| grid.line(row, &widths, layout)).collect()
    }

    /// The least that a column can do with, its gap included.
    fn needed(&self, index: usize) -> usize {
        let column = &self.columns[index];
        let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| length(&cell.text));
        let widest = cells.chain([length(&column.heading)]).max().unwrap_or(0);
        widest + column.gap(index)
    }

    /// Usual widths, as far as there is room; then what is needed; then shorter names.
    fn widths(&self) -> Vec<usize> {
        let needed: Vec<usize> = (0..self.columns.len()).map(|index| self.needed(index)).collect();
        let usual =
            |(column, needed): (&Column, &usize)| column.usual.max(needed + usize::from(column.is_spaced));
        let mut widths: Vec<usize> = self.columns.iter().zip(&needed).map(usual).collect();
        let mut excess = widths.iter().sum::<usize>().saturating_sub(TABLE_WIDTH);
        while excess > 0 {
            // The one with the most room to give, of equals the first.
            let slack = |index: &usize| widths[*index] - needed[*index];
            let Some(index) = (0..widths.len()).rev().max_by_key(slack).filter(|index| slack(index) > 0)
            else {
                break;
            };
            widths[index] -= 1;
            excess -= 1;
        }
        if let (Some(first), Some(column)) = (widths.first_mut(), self.columns.first()) {
            *first = (*first - excess.min(*first)).max(length(&column.heading).max(NAME_MIN)).min(*first);
        }
        widths
    }

    fn lose_one(&mut self) -> bool {
        let lost = self.columns.iter().enumerate().filter_map(|(index, column)| Some((column.lost?, index)));
        let Some((_, index)) = lost.min() else { return false };
        self.columns.remove(index);
        self.rows.iter_mut().filter(|row| row.len() > index).for_each(|row| {
            row.remove(index);
        });
        true
    }

    fn line(&self, row: &[Cell], widths: &[usize], layout: &Layout) -> Line {
        let mut line = Line::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            let column = &self.columns[index];
            let room = width - column.gap(index).min(*width);
            let text = layout.in_characters(&cell.text);
            let text = if index == 0 { shortened(&text, room) } else { text };
            let blanks = " ".repeat(width.saturating_sub(column.gap(index) + length(&text)));
            let gap = " ".repeat(column.gap(index));
            let cell = Span::new(text, cell.style);
            line.extend(match column.is_left {
                true => [Span::plain(gap), cell, Span::plain(blanks)],
                false => [Span::plain(gap), Span::plain(blanks), cell],
            });
        }
        line
    }
}

/// A name cut to the given number of characters; `~` stands for the rest of it.
pub(crate) fn shortened(name: &str, room: usize) -> String {
    if length(name) <= room {
        return name.to_owned();
    }
    name.chars().take(room.saturating_sub(1)).chain(['~']).collect()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(name: &str) -> Grid {
        let numbers = |heading: &str, usual| Column::of_numbers(heading, usual);
        let mut grid = Grid::new(vec![
            Column::of_words("server", 19),
            numbers("start/s", 20).lost_as(1),
            numbers("down/s", 8).lost_as(0),
            Column::of_words("kinds", 7),
        ]);
        grid.push_texts([name, "+4.00", "0.613", "refused,reset"].map(str::to_owned), Style::Plain);
        grid.push_texts(["b".to_owned()], Style::Plain);
        grid
    }

    fn lines(grid: &Grid, layout: &Layout) -> Vec<String> {
        let mut out = String::new();
        grid.write(&mut out, layout);
        out.lines().map(str::to_owned).collect()
    }

    #[test]
    fn cells_stand_below_their_headings() {
        let expected = [
            "server                          start/s  down/s  kinds",
            "10.0.0.5:11211                    +4.00   0.613  refused,reset",
            "b",
        ];
        assert_eq!(lines(&grid("10.0.0.5:11211"), &Layout::default()), expected);
    }

    #[test]
    fn names_give_way_and_numbers_do_not() {
        let wide = lines(&grid(&"n".repeat(70)), &Layout::default());
        assert_eq!(wide[1], format!("{}~   +4.00  0.613  refused,reset", "n".repeat(47)));
        assert!(wide.iter().all(|line| line.chars().count() <= TABLE_WIDTH), "{wide:?}");
        let narrow = Layout { columns: Some(60), ..Layout::default() };
        assert_eq!(
            lines(&grid("10.0.0.5:11211"), &narrow)[1],
            "10.0.0.5:11211                    +4.00  refused,reset"
        );
    }

    #[test]
    fn colour_adds_nothing_but_colour() {
        let mut coloured = grid("a");
        coloured.push(vec![Cell::new("c", Style::Bad), Cell::new("1", Style::Doubt)]);
        let plain = lines(&coloured, &Layout::default());
        let painted = lines(&coloured, &Layout { is_coloured: true, ..Layout::default() });
        assert!(painted[3].contains("\x1b[31mc\x1b[0m"), "{painted:?}");
        let stripped = ["\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[33m"];
        let stripped =
            |line: &String| stripped.iter().fold(line.clone(), |line, code| line.replace(code, ""));
        assert_eq!(painted.iter().map(stripped).collect::<Vec<_>>(), plain);
    }
}
