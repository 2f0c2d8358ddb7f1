//! A table: columns of text, aligned.
//!
//! Not a layout engine: a column is as wide as its widest cell, and nothing is ever cut, so numbers stay whole. The
//! first column is aligned left, the others right, as numbers should; the last one can be facts or words, which are aligned left, too,
//! and go on below themselves where they are too long for a line.

/// Between two columns.
const GAP: &str = "  ";
/// Lines end here; facts of a column that begins far to the right may go on for [`PROSE_MIN`] characters.
const LINE_MAX: usize = 110;
const PROSE_MIN: usize = 30;

/// Rows of cells. Missing cells at the end of a row are empty.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    last: Last,
}

/// What the last column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// A number, as the others.
    Number,
    /// Facts with dots between them; a line ends only between two of them.
    Facts,
}

impl Table {
    /// A table with its first row.
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()], last: Last::Number }
    }

    /// Aligns the last column left.
    pub(crate) fn with_prose_last(mut self) -> Self {
        self.last = Last::Facts;
        self
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Appends the lines, without white space at their ends.
    pub(crate) fn write(&self, out: &mut String) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width_of(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { GAP };
                line.push_str(gap);
                if self.last != Last::Number && column + 1 == columns {
                    let start = width_of(&line);
                    line.push_str(&folded(cell, start));
                } else if column == 0 {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("{cell:>width$}"));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Prose that begins at this column, broken between its facts where a line would be too long.
fn folded(prose: &str, start: usize) -> String {
    let separator = " · ";
    let room = LINE_MAX.saturating_sub(start).max(PROSE_MIN);
    let (mut text, mut used) = (String::new(), 0);
    for fact in prose.split(separator) {
        let width = width_of(fact);
        if used > 0 && used + width_of(separator) + width > room {
            text.push_str(&format!(" ·\n{}", " ".repeat(start)));
            used = 0;
        } else if used > 0 {
            text.push_str(separator);
            used += width_of(separator);
        }
        text.push_str(fact);
        used += width;
    }
    text
}

/// Width in characters: what we print is ASCII but for `·` and `×`, which take one column each.
fn width_of(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut table = Table::new(&["time", "p50", "p99", "why"]).with_prose_last();
        table.push(["get", "88.1 us", "1.21 ms", "fine"].map(str::to_owned).into());
        table.push(["  client <=".to_owned(), "3 us".to_owned()].into());
        let mut text = String::new();
        table.write(&mut text);
        let expected = "\
time             p50      p99  why
get          88.1 us  1.21 ms  fine
  client <=     3 us
";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_prose_goes_on_below_itself() {
        let mut table = Table::new(&["phase", "ops"]).with_prose_last();
        let facts: Vec<String> = (0..20).map(|fact| format!("fact {fact:02}")).collect();
        table.push(vec!["one".to_owned(), facts.join(" · ")]);
        let mut text = String::new();
        table.write(&mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("one    fact 00 · ") && lines[1].ends_with("fact 09 ·"), "{text}");
        assert_eq!(lines[2], format!("       {}", facts[10..].join(" · ")), "{text}");
        assert!(lines.iter().all(|line| width_of(line) <= LINE_MAX), "{text}");
    }
}
