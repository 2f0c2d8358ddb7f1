//! The last lines: may the numbers be quoted, and every check with what it found.

use crate::paragraph::{self, printable};
use brunt_stats::status::RunStatus;

pub(super) fn write(out: &mut String, status: &RunStatus) {
    paragraph::facts(out, "", &[printable(&status.headline())]);
    for check in &status.checks {
        let text = printable(&format!("{}: {}", check.status.name(), check.text()));
        paragraph::prose(out, &format!("  {}", check.id.name()), &text);
    }
    for fact in &status.facts {
        paragraph::prose(out, "  note", &printable(fact));
    }
}
