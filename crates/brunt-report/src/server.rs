//! Servers by name, as reports call them.
//!
//! Not what they did. The plan names servers in an order, and everything else refers to them by their place in it.

use brunt_stats::summary::Summary;

/// The name of a server of the plan; the plan does not name the one that is started for it.
pub(crate) fn name(summary: &Summary, index: usize) -> String {
    summary.plan.servers().get(index).map_or_else(|| "embedded".to_owned(), ToString::to_string)
}
