//! A grid of cells, each in one of few colours or in none.
//!
//! Invariant: every row has the same number of cells.

use crate::ink::Ink;

/// Row after row of cells, the topmost first.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    columns: usize,
    /// For each cell 0, or one more than the place of its colour. Two bytes: a picture has tens of millions of cells.
    levels: Vec<u16>,
    /// The colours that occur, each once.
    inks: Vec<Ink>,
}

/// Neighbours of a row that have the same colour.
pub(crate) struct Run {
    pub(crate) row: usize,
    pub(crate) columns: std::ops::Range<usize>,
}

impl Cells {
    /// Cells that have no colour yet, and the colours they may get.
    pub fn new(columns: usize, rows: usize, inks: Vec<Ink>) -> Self {
        assert!(inks.len() < usize::from(u16::MAX), "more colours than numbers for them");
        Self { columns, levels: vec![0; columns * rows], inks }
    }

    /// Gives a cell the colour at a place of those it may get.
    pub fn paint(&mut self, column: usize, row: usize, ink: usize) {
        assert!(column < self.columns && ink < self.inks.len(), "no such cell or colour");
        self.levels[row * self.columns + column] = ink as u16 + 1;
    }

    /// How many cells a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.levels.len().checked_div(self.columns).unwrap_or(0)
    }

    /// The colours that cells may have.
    pub(crate) fn inks(&self) -> &[Ink] {
        &self.inks
    }

    /// The place of a cell's colour among [`Self::inks`], if it has one.
    pub(crate) fn ink_at(&self, column: usize, row: usize) -> Option<usize> {
        usize::from(self.levels[row * self.columns + column]).checked_sub(1)
    }

    /// The runs of one colour, from the top and from the left.
    pub(crate) fn runs(&self, ink: usize) -> impl Iterator<Item = Run> + '_ {
        let level = ink as u16 + 1;
        let rows = self.levels.chunks(self.columns.max(1)).enumerate();
        rows.flat_map(move |(row, levels)| {
            let mut from = 0;
            std::iter::from_fn(move || {
                let start = from + levels[from..].iter().position(|other| *other == level)?;
                let rest = &levels[start..];
                let end = start + rest.iter().position(|other| *other != level).unwrap_or(rest.len());
                from = end;
                Some(Run { row, columns: start..end })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_the_cells_of_a_colour_and_no_others() {
        let picture = ["aab.", ".bba", "aaaa", "...."];
        let mut cells = Cells::new(4, 4, vec![Ink::Text, Ink::Soft]);
        for (row, line) in picture.iter().enumerate() {
            for (column, letter) in line.chars().enumerate().filter(|(_, letter)| *letter != '.') {
                cells.paint(column, row, usize::from(letter == 'b'));
            }
        }
        let runs = |ink| {
            cells.runs(ink).map(|run| (run.row, run.columns.start, run.columns.end)).collect::<Vec<_>>()
        };
        assert_eq!(runs(0), [(0, 0, 2), (1, 3, 4), (2, 0, 4)]);
        assert_eq!(runs(1), [(0, 2, 3), (1, 1, 3)]);
        assert_eq!((cells.columns(), cells.rows()), (4, 4));
        assert_eq!((cells.ink_at(2, 0), cells.ink_at(3, 0)), (Some(1), None));
    }
}
