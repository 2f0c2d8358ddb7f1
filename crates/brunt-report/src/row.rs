//! The rows of a report by operation, and what each is called.
//!
//! Invariant: no row repeats another; the first is that of all requests, or of the only operation.

use brunt_stats::op_summary::OpSummary;
use brunt_stats::summary::Summary;

/// The row of all requests.
pub(crate) const ALL: &str = "all";

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    /// Its class, where there are several.
    class: Option<&'a str>,
    /// Its operation; `None` for all of a class.
    op: Option<&'a str>,
    pub(crate) summary: &'a OpSummary,
}

impl Row<'_> {
    /// Its name, with this between class and operation.
    pub(crate) fn name(&self, between: char) -> String {
        match (self.class, self.op) {
            (Some(class), Some(op)) => format!("{class}{between}{op}"),
            (Some(name), None) | (None, Some(name)) => name.to_owned(),
            (None, None) => ALL.to_owned(),
        }
    }

    /// Is it that of several operations of one class?
    pub(crate) const fn is_of_class(&self) -> bool {
        self.class.is_some() && self.op.is_none()
    }
}

/// The longest name of a row. Five percentiles with their intervals and the maximum fit beside it.
const NAME_MAX: usize = 25;

/// Names no longer than a table has room for, each of them another.
pub(crate) fn cut(names: &[String]) -> Vec<String> {
    let mut cut: Vec<String> = Vec::new();
    for name in names {
        let (mut short, mut number) = (cut_at(name, NAME_MAX, ""), 1);
        while cut.contains(&short) {
            number += 1;
            short = cut_at(name, NAME_MAX, &number.to_string());
        }
        cut.push(short);
    }
    cut
}

/// The name, or as much of it as there is room for, `…` and this behind it.
fn cut_at(name: &str, room: usize, behind: &str) -> String {
    if name.chars().count() <= room && behind.is_empty() {
        return name.to_owned();
    }
    let kept = room.saturating_sub(behind.len() + 1);
    format!("{}…{behind}", name.chars().take(kept).collect::<String>())
}

/// All requests; then, where there are several, every class and every op. What would repeat a row is left out.
pub(crate) fn rows(summary: &Summary) -> Vec<Row<'_>> {
    let has_classes = summary.classes.len() > 1;
    let mut rows = Vec::new();
    for class in &summary.classes {
        let name = has_classes.then_some(class.name.as_str());
        if has_classes && class.ops.len() != 1 {
            rows.push(Row { class: name, op: None, summary: &class.total });
        }
        rows.extend(class.ops.iter().map(|op| Row {
            class: name,
            op: Some(op.name.as_str()),
            summary: &op.summary,
        }));
    }
    if rows.len() != 1 {
        rows.insert(0, Row { class: None, op: None, summary: &summary.total });
    }
    rows
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "HSET-into-a-hash-with-many-fields";
        let names = ["all", long, "HSET-into-a-hash-with-many-members", "exactly-as-long-as-is-fit"];
        let cut = super::cut(&names.map(str::to_owned));
        assert_eq!(
            cut,
            ["all", "HSET-into-a-hash-with-ma…", "HSET-into-a-hash-with-m…2", "exactly-as-long-as-is-fit"]
        );
    }
}
