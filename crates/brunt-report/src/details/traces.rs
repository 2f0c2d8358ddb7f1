//! What became of the files that were replayed, in a paragraph each.
//!
//! Not their requests: those are among all others.

use crate::paragraph::{self, printable};
use crate::quantity;
use brunt_stats::summary::Summary;

pub(super) fn write(out: &mut String, summary: &Summary) {
    for record in &summary.record.run.traces {
        let end = if record.is_whole { "to its end" } else { "and not to its end" };
        let mut facts = vec![
            printable(&record.file),
            format!("{} read {end}", quantity::things(record.lines, "line")),
            quantity::things(record.records, "record"),
        ];
        if let Some(first) = &record.first_unreadable {
            facts.push(printable(&format!(
                "{} skipped (first: line {}, \"{}\": {})",
                record.unreadable, first.line, first.text, first.reason
            )));
        }
        if record.cut > 0 {
            facts.push(format!("{} cut to 1000000 B", quantity::things(record.cut, "value")));
        }
        if record.substituted > 0 {
            facts.push(format!(
                "{} sent as another operation",
                quantity::things(record.substituted, "record")
            ));
        }
        if let Some(error) = &record.error {
            facts.push(printable(&format!("it cannot be read any further: {error}")));
        }
        paragraph::facts(out, "trace", &facts);
    }
}
