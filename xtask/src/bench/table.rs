//! The table of a shape: medians over the rounds with their range, and ratios taken round by round; and the places of documents that tables
//! are written to.
//!
//! A host that is busy for a while slows a whole round down; a ratio within the round hardly feels it, a ratio of two
//! medians does. Invariants: only runs of the same round are divided by one another; everything outside the marks of a document stays as it
//! is.

use super::client::{Client, Kind, Shape};
use super::run::Measured;
use crate::process::Protocol;
use crate::top;
use anyhow::Context;

/// A client with what came of its rounds.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) client: Client,
    pub(super) rounds: Vec<Measured>,
    /// Why it has no rounds.
    pub(super) failure: Option<String>,
}

/// The middle of several numbers, and their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    low: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, low, high })
    }

    fn text(self) -> String {
        format!("{:.2} ({:.2}–{:.2})", self.median, self.low, self.high)
    }
}

const HEADINGS: [&str; 6] =
    ["client", "interface, policy", "CPU µs/request", "calls/request", "÷ floor", "÷ brunt"];

/// Lines of cells, the first of which are headings, as Markdown that can also be read on a terminal.
pub(crate) fn grid<const COLUMNS: usize>(cells: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut text = String::new();
    for (index, line) in cells.iter().enumerate() {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        text.push_str(&format!("| {} |\n", padded.join(" | ")));
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            text.push_str(&format!("|-{}-|\n", rules.join("-|-")));
        }
    }
    text
}

/// The table of a shape, with what must be said of its rows.
pub(super) fn text(shape: &Shape, rows: &[Row]) -> String {
    let mut cells = vec![HEADINGS.map(str::to_owned)];
    cells.extend(rows.iter().filter(|row| !row.rounds.is_empty()).map(|row| line(shape, rows, row)));
    let of = shape.target_policy.map_or("", |_| " of --peak");
    let mut text = format!(
        "### {} × {}, target {:.2}{of}\n\n{}",
        shape.connections,
        shape.depth,
        shape.target,
        grid(&cells)
    );
    for row in rows {
        let of_round = row.rounds.iter().filter_map(|round| round.note.as_ref()).next_back();
        for remark in of_round.into_iter().chain(&row.failure) {
            let name = format!("{} {}", row.client.tool.name, row.client.policy_text());
            text.push_str(&format!("\n{}: {remark}.\n", name.trim()));
        }
    }
    text
}

fn line(shape: &Shape, rows: &[Row], row: &Row) -> [String; HEADINGS.len()] {
    let each = |of: fn(&Measured) -> f64| Spread::of(row.rounds.iter().map(of));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let is_floor = row.client.is(Kind::Floor);
    [
        row.client.tool.name.to_owned(),
        row.client.policy_text(),
        or_dash(each(|round| round.cpu_us).map(Spread::text)),
        or_dash(calls(row).map(|calls| format!("{calls:.3}"))),
        or_dash(to_floor(shape, rows, row).filter(|_| !is_floor).map(Spread::text)),
        or_dash(to_brunt(rows, row).filter(|_| !row.client.is(Kind::Brunt)).map(Spread::text)),
    ]
}

fn calls(row: &Row) -> Option<f64> {
    Spread::of(row.rounds.iter().filter_map(|round| round.syscalls)).map(|spread| spread.median)
}

/// Is the row compared with the best of all floors, not with that of its own policy?
fn faces_the_best_floor(shape: &Shape, row: &Row) -> bool {
    row.client.is(Kind::Brunt) && shape.target_policy == Some(row.client.policy)
}

/// The least that rows of a kind took in a round.
fn least<'a>(rows: impl Iterator<Item = &'a Row>, round: usize) -> Option<f64> {
    let taken = rows.filter_map(|row| row.rounds.get(round)).map(|round| round.cpu_us);
    taken.min_by(f64::total_cmp)
}

fn ratios(row: &Row, divisor: impl Fn(usize) -> Option<f64>) -> Option<Spread> {
    let rounds = row.rounds.iter().enumerate();
    Spread::of(rounds.filter_map(|(round, measured)| Some(measured.cpu_us / divisor(round)?)))
}

fn floors(rows: &[Row]) -> impl Iterator<Item = &Row> + Clone {
    rows.iter().filter(|row| row.client.is(Kind::Floor))
}

/// By the floor of the same interface and policy, or by the best one.
fn to_floor(shape: &Shape, rows: &[Row], row: &Row) -> Option<Spread> {
    if row.client.tool.protocol != Protocol::Memcached {
        return None;
    }
    let is_any = faces_the_best_floor(shape, row);
    ratios(row, |round| {
        least(floors(rows).filter(|floor| is_any || floor.client.policy == row.client.policy), round)
    })
}

/// By whatever brunt does best in this shape.
fn to_brunt(rows: &[Row], row: &Row) -> Option<Spread> {
    if row.client.tool.protocol != Protocol::Memcached {
        return None;
    }
    ratios(row, |round| least(rows.iter().filter(|row| row.client.is(Kind::Brunt)), round))
}

// --- Text of a document ---

const END: &str = "<!-- to here -->";

fn begin(command: &str) -> String {
    format!("<!-- cargo xtask {command} --record writes from here -->")
}

/// Writes `text` between the marks of `cargo xtask COMMAND` in a document below the top of the source tree.
///
/// # Errors
/// The document cannot be read or written, or lacks a mark.
pub(crate) fn record(document: &str, command: &str, text: &str) -> anyhow::Result<()> {
    let path = top().join(document);
    let before = std::fs::read_to_string(&path).with_context(|| document.to_owned())?;
    std::fs::write(&path, replaced(&before, command, text)?).with_context(|| document.to_owned())?;
    println!("recorded in {}", path.display());
    Ok(())
}

/// The document with `text` between the marks.
fn replaced(document: &str, command: &str, text: &str) -> anyhow::Result<String> {
    let begin = begin(command);
    let (before, rest) = document.split_once(&begin).with_context(|| format!("'{begin}' is missing"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("'{END}' is missing"))?;
    Ok(format!("{before}{begin}\n\n{text}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::super::client::{EPOLL, PEAK, PEERS, Policy, SHAPES, URING};
    use super::*;
    use std::path::Path;

    fn row(client: Client, cpu_us: &[f64]) -> Row {
        let measured = |&cpu_us: &f64| Measured {
            cpu_us,
            syscalls: Some(2.0 * cpu_us),
            requests_per_s: 1e6,
            outside: None,
            note: None,
        };
        Row { client, rounds: cpu_us.iter().map(measured).collect(), failure: None }
    }

    fn brunt(policy: Policy) -> Client {
        Client::brunt(Path::new(""), policy, "")
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let here = Path::new("");
        let rows = [
            row(Client::floor(here, EPOLL), &[10.0, 100.0, 20.0]),
            row(Client::floor(here, URING), &[5.0, 200.0, 10.0]),
            row(brunt(EPOLL), &[11.0, 120.0, 21.0]),
            row(brunt(PEAK), &[6.0, 130.0, 15.0]),
        ];
        let spread = |median, low, high| Some(Spread { median, low, high });
        assert_eq!(to_floor(&SHAPES[0], &rows, &rows[2]), spread(1.1, 1.05, 1.2));
        // The peak faces whichever floor was best in the round.
        assert_eq!(to_floor(&SHAPES[4], &rows, &rows[3]), spread(1.3, 1.2, 1.5));
        assert_eq!(to_brunt(&rows, &rows[0]), spread(20.0 / 15.0, 100.0 / 120.0, 10.0 / 6.0));
    }

    #[test]
    fn tables_have_their_layout() {
        let here = Path::new("");
        let peer = Client::of(&PEERS[1], here);
        let mut noted = row(Client::of(&PEERS[0], here), &[20.0, 22.0]);
        noted.rounds[1].note = Some("1.0 % misses".to_owned());
        let rows = [
            row(Client::floor(here, EPOLL), &[10.0, 10.0]),
            row(brunt(EPOLL), &[11.0, 12.0]),
            noted,
            Row { client: peer, rounds: Vec::new(), failure: Some("ended with 1".to_owned()) },
        ];
        let expected = "\
### 1 × 1, target 1.10

| client            | interface, policy | CPU µs/request      | calls/request | ÷ floor          | ÷ brunt          |
|-------------------|-------------------|---------------------|---------------|------------------|------------------|
| floor             | epoll, eager      | 10.00 (10.00–10.00) | 20.000        | –                | 0.87 (0.83–0.91) |
| brunt             | epoll, eager      | 11.50 (11.00–12.00) | 23.000        | 1.15 (1.10–1.20) | –                |
| memtier_benchmark |                   | 21.00 (20.00–22.00) | 42.000        | 2.10 (2.00–2.20) | 1.83 (1.82–1.83) |

memtier_benchmark: 1.0 % misses.

mutilate: ended with 1.
";
        assert_eq!(text(&SHAPES[0], &rows), expected);
    }

    #[test]
    fn only_text_between_the_marks_is_replaced() {
        let begin = begin("bench");
        let document = format!("a\n{begin}\nold\n{END}\nb\n");
        let expected = format!("a\n{begin}\n\nnew\n\n{END}\nb\n");
        assert_eq!(replaced(&document, "bench", "new\n").unwrap(), expected);
        assert!(replaced(&document, "other", "new").is_err());
        assert!(replaced("a", "bench", "new").is_err());
        let document = std::fs::read_to_string(top().join("docs/method.md")).unwrap();
        assert!(replaced(&document, "bench", "new").is_ok());
    }
}
