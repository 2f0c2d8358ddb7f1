//! A table: cells without blanks, aligned, no wider than it may be.
//!
//! Invariants: a column is as wide as its widest cell at least, so numbers stay whole; the first column alone gives way, by its names; cells
//! are missing at the end of a row only; no line is wider than [`TABLE_WIDTH`], for columns that may be lost are, where nothing else helps.

use crate::figure::{Figures, unit_of};
use crate::layout::{Layout, Line, Span, Style, TABLE_WIDTH, TimeUnit};
use std::fmt::Display;

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
    /// What stands between the heading and the unit of the table's times, which follows it.
    before_unit: Option<&'static str>,
    /// Its times have the decimals of the column before it, as ends of intervals have.
    shares_decimals: bool,
}

impl Column {
    /// A column of numbers.
    pub(crate) fn of_numbers(heading: impl Into<String>, usual: usize) -> Self {
        let heading = heading.into();
        let (lost, before_unit) = (None, None);
        Self { heading, usual, is_left: false, is_spaced: false, lost, before_unit, shares_decimals: false }
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

    /// Ends the heading with the unit of the table's times, behind this.
    pub(crate) fn with_unit(self, before_unit: &'static str) -> Self {
        Self { before_unit: Some(before_unit), ..self }
    }

    /// Gives its times the decimals of the column before it.
    pub(crate) fn sharing_decimals(self) -> Self {
        Self { shares_decimals: true, ..self }
    }

    /// Columns of numbers with these headings, as wide as they must be.
    pub(crate) fn all_of_numbers<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Vec<Self> {
        headings.into_iter().map(|heading| Self::of_numbers(heading, 0)).collect()
    }

    /// The same of words.
    pub(crate) fn all_of_words<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Vec<Self> {
        headings.into_iter().map(|heading| Self::of_words(heading, 0)).collect()
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

/// A value of a row before its table has a unit.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Words, or a number that is no time.
    Text(String),
    /// The same in a style of its own.
    Styled(String, Style),
    /// A time in nanoseconds; `-` where it is not known.
    Time(Option<u64>),
    /// A time that is no more than this: `<=148`.
    UpperLimit(u64),
    /// The end of an interval that has none.
    Open,
}

/// Rows of values, whose times have one unit in the end.
#[derive(Clone, Debug)]
pub(crate) struct TimeTable {
    columns: Vec<Column>,
    rows: Vec<(Style, Vec<Value>)>,
}

impl TimeTable {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// A row in one style.
    pub(crate) fn push(&mut self, style: Style, row: Vec<Value>) {
        self.rows.push((style, row));
    }

    /// The table in this unit, or in the one that makes it narrowest.
    pub(crate) fn grid(self, unit: Option<TimeUnit>) -> Grid {
        let time_ns = |value: Option<&Value>| match value {
            Some(Value::Time(ns)) => *ns,
            Some(Value::UpperLimit(ns)) => Some(*ns),
            _ => None,
        };
        let times_of = |index: usize| self.rows.iter().map(move |(_, row)| time_ns(row.get(index)));
        let mut indices = 0..self.columns.len();
        let groups = self.columns.chunk_by(|_, next| next.shares_decimals);
        let figures: Vec<Figures> = groups
            .map(|group| Figures::of_times(indices.by_ref().take(group.len()).flat_map(times_of)))
            .collect();
        let unit = unit.unwrap_or_else(|| unit_of(&figures));
        // Column by column.
        let times: Vec<String> = figures.iter().flat_map(|group| group.texts(unit).times).collect();
        let rows = self.rows.len();
        let mut grid = Grid { columns: self.columns, rows: Vec::new() };
        for column in &mut grid.columns {
            if let Some(before_unit) = column.before_unit {
                column.heading += &format!("{before_unit}{unit}");
            }
        }
        for (index, (style, row)) in self.rows.into_iter().enumerate() {
            let cell = |(column, value): (usize, Value)| match value {
                Value::Text(text) => Cell::new(text, style),
                Value::Styled(text, style) => Cell::new(text, style),
                Value::Time(_) => Cell::new(times[column * rows + index].clone(), style),
                Value::UpperLimit(_) => Cell::new(format!("<={}", times[column * rows + index]), style),
                Value::Open => Cell::new("open", style),
            };
            grid.push(row.into_iter().enumerate().map(cell).collect());
        }
        grid
    }
}

/// A table that is made column by column: each has its heading, and what stands in it of an item.
pub(crate) struct Rows<T> {
    items: Vec<T>,
    table: TimeTable,
}

impl<T> Rows<T> {
    /// A row for each item, in its style.
    pub(crate) fn of(items: impl IntoIterator<Item = T>, style: impl Fn(&T) -> Style) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        let rows = items.iter().map(|item| (style(item), Vec::new())).collect();
        Self { items, table: TimeTable { columns: Vec::new(), rows } }
    }

    /// A column of values.
    pub(crate) fn values(mut self, column: Column, value: impl Fn(&T) -> Value) -> Self {
        self.table.columns.push(column);
        self.table.rows.iter_mut().zip(&self.items).for_each(|((_, row), item)| row.push(value(item)));
        self
    }

    /// A column of words, or of numbers that are no times.
    pub(crate) fn texts<D: Display>(self, column: Column, text: impl Fn(&T) -> D) -> Self {
        self.values(column, |item| Value::Text(text(item).to_string()))
    }

    /// The same where it is wanted.
    pub(crate) fn texts_if<D: Display>(
        self,
        is_wanted: bool,
        column: Column,
        text: impl Fn(&T) -> D,
    ) -> Self {
        if is_wanted { self.texts(column, text) } else { self }
    }

    /// The table in this unit, or in the one that makes it narrowest.
    pub(crate) fn grid(self, unit: Option<TimeUnit>) -> Grid {
        self.table.grid(unit)
    }
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
    pub(crate) fn headings(&self) -> impl Iterator<Item = (&str, bool)> {
        self.columns.iter().map(|column| (column.heading.as_str(), column.is_left))
    }

    /// The cells of each row, some of which may be missing at its end.
    pub(crate) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()))
    }

    /// Is there nothing below the heading?
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
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
        grid.lines(layout).iter().map(|line| crate::layout::painted(line, layout.is_coloured)).collect()
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
    fn times_of_a_table_have_one_unit() {
        let columns = vec![Column::of_words("run", 5).with_unit(", "), Column::of_numbers("p99", 8)];
        let mut table = TimeTable::new(columns);
        let rows =
            [("a", Value::Time(Some(999_600))), ("b", Value::UpperLimit(1_240_000)), ("c", Value::Open)];
        for (name, value) in rows {
            table.push(Style::Plain, vec![Value::Text(name.to_owned()), value]);
        }
        let expected = ["run, ms     p99", "a          1.00", "b        <=1.24", "c          open"];
        assert_eq!(lines(&table.grid(None), &Layout::default()), expected);
    }

    #[test]
    fn ends_of_intervals_have_the_decimals_of_their_column() {
        let ends = Column::all_of_numbers(["low", "high"]).into_iter().map(Column::sharing_decimals);
        let p99 = Column::of_numbers("p99", 0).with_unit(",");
        let mut table = TimeTable::new([p99].into_iter().chain(ends).collect());
        for ns in [[512_000, 501_000, 522_000], [4_605_000, 4_513_000, 4_697_000], [5_120_000; 3]] {
            table.push(Style::Plain, ns.map(|ns| Value::Time(Some(ns))).into());
        }
        let expected =
            ["p99,ms   low  high", " 0.512 0.501 0.522", "  4.61  4.51  4.70", "  5.12  5.12  5.12"];
        assert_eq!(lines(&table.grid(Some(TimeUnit::Ms)), &Layout::default()), expected);
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
