//! Grids of cells, each in one of few colours or in none, and heat maps: histograms side by side, each a column whose cells say how much of it
//! lies there.
//!
//! Invariants: every row has the same number of cells; a cell of a heat map depends on its own column only, so that a quiet second reads as
//! well as a busy one, and has a colour if there is anything in it.

use crate::ink::Ink;

/// The number of a column's values between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnCount {
    /// The least they may be, above 0.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// How many.
    pub count: u64,
}

/// Shares of a column at which the next step of heat begins: about three to a factor of ten.
const SHARES: [f64; Ink::HEAT_STEPS - 1] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3];

/// Cells of equal ratio, `per_decade` to a factor of ten, from `low` to at least `high`: the edges between them.
pub fn logarithmic_edges(low: f64, high: f64, per_decade: u32) -> Vec<f64> {
    let decades = (high / low).log10().max(0.0);
    let cells = (decades * f64::from(per_decade) - 1e-9).ceil().max(1.0) as u32;
    (0..=cells).map(|edge| low * 10f64.powf(f64::from(edge) / f64::from(per_decade))).collect()
}

/// The cells of columns between ascending edges, the highest values at the top. A count lies in the cell of its
/// geometric middle, and outside the edges in the nearest one.
pub fn heat_map(columns: &[Vec<ColumnCount>], edges: &[f64]) -> Cells {
    let rows = edges.len().saturating_sub(1);
    let inks = (0..Ink::HEAT_STEPS).map(Ink::Heat).collect();
    let mut cells = Cells::new(columns.len(), rows, inks);
    if rows == 0 {
        return cells;
    }
    for (column, counts) in columns.iter().enumerate() {
        let mut sums = vec![0; rows];
        for count in counts {
            let middle = (count.low * count.high).sqrt();
            let above = edges.partition_point(|edge| *edge <= middle);
            sums[above.clamp(1, rows) - 1] += count.count;
        }
        let total = sums.iter().sum::<u64>() as f64;
        for (row, sum) in sums.iter().rev().enumerate().filter(|(_, sum)| **sum > 0) {
            cells.paint(column, row, step(*sum as f64 / total));
        }
    }
    cells
}

fn step(share: f64) -> usize {
    SHARES.iter().take_while(|from| share >= **from).count()
}

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

    #[test]
    fn steps_begin_at_their_shares() {
        for (share, expected) in [
            (1e-9, 0),
            (0.000_99, 0),
            (0.001, 1),
            (0.003, 2),
            (0.029, 3),
            (0.1, 5),
            (0.299, 5),
            (0.3, 6),
            (1.0, 6),
        ] {
            assert_eq!(step(share), expected, "{share}");
        }
    }

    #[test]
    fn edges_have_equal_ratios() {
        assert_eq!(logarithmic_edges(1.0, 100.0, 1), [1.0, 10.0, 100.0]);
        assert_eq!(logarithmic_edges(1.0, 101.0, 1), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(logarithmic_edges(5.0, 5.0, 12).len(), 2);
    }

    #[test]
    fn a_cell_has_the_share_of_its_column() {
        let count = |low: f64, high: f64, count| ColumnCount { low, high, count };
        let columns = [
            vec![count(1.0, 2.0, 999), count(20.0, 30.0, 1)],
            vec![],
            vec![count(0.1, 0.2, 1), count(5000.0, 6000.0, 1)],
        ];
        let cells = heat_map(&columns, &[1.0, 10.0, 100.0]);
        let column = |column| [cells.ink_at(column, 0), cells.ink_at(column, 1)];
        assert_eq!(column(0), [Some(1), Some(6)]);
        assert_eq!(column(1), [None, None]);
        assert_eq!(column(2), [Some(6), Some(6)]);
    }
}
