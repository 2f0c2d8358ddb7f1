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

/// Neighbours of a column that have the same colour.
pub(crate) struct Run {
    pub(crate) column: usize,
    pub(crate) rows: std::ops::Range<usize>,
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

    /// The place of a cell's colour among those it may get, if it has one: of a heat map the step of heat.
    pub fn ink_at(&self, column: usize, row: usize) -> Option<usize> {
        usize::from(self.levels[row * self.columns + column]).checked_sub(1)
    }

    /// The runs of one colour, from the left and from the top.
    pub(crate) fn runs(&self, ink: usize) -> impl Iterator<Item = Run> + '_ {
        let rows = self.rows();
        (0..self.columns).flat_map(move |column| {
            let is_of = move |row: &usize| self.ink_at(column, *row) == Some(ink);
            let mut from = 0;
            std::iter::from_fn(move || {
                let start = (from..rows).find(is_of)?;
                let end = (start..rows).find(|row| !is_of(row)).unwrap_or(rows);
                from = end;
                Some(Run { column, rows: start..end })
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
        let runs =
            |ink| cells.runs(ink).map(|run| (run.column, run.rows.start, run.rows.end)).collect::<Vec<_>>();
        assert_eq!(runs(0), [(0, 0, 1), (0, 2, 3), (1, 0, 1), (1, 2, 3), (2, 2, 3), (3, 1, 3)]);
        assert_eq!(runs(1), [(1, 1, 2), (2, 0, 2)]);
        assert_eq!((cells.columns(), cells.rows()), (4, 4));
        assert_eq!((cells.ink_at(2, 0), cells.ink_at(3, 0)), (Some(1), None));
    }
}
