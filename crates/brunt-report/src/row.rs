//! The rows of a report by operation, and what each is called.
//!
//! Not how a row is printed. Invariant: no row repeats another; the first is that of all requests, or of the only operation.

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
