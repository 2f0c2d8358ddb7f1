//! The printed rows of response times, for the check of the client's lag.

use crate::confidence::PercentileInterval;
use crate::latency::ClientError;
use crate::op_summary::{ClassSummary, OpSummary};
use brunt_plan::op::ClassId;
use brunt_plan::plan::{Load, Plan};

/// One printed row of response times, for the client's share in it.
#[derive(Clone, Debug, PartialEq)]
pub struct LagRow {
    /// Its name in the report.
    pub name: String,
    /// Its load is closed loop at least in part: a late client lowers the load instead of falsifying the latency, so
    /// its share calls for care but does not convict.
    pub is_closed_loop: bool,
    /// The client error of every percentile that is printed.
    pub errors: Vec<ClientError>,
    /// The confidence interval of each of them; none where the window is too short.
    pub intervals: Vec<PercentileInterval>,
    /// The share of its requests that were not answered as the protocol provides.
    pub unanswered: f64,
}

impl LagRow {
    /// Every row that a report prints: the total, and where there are several the classes and their ops.
    pub(crate) fn all(plan: &Plan, total: &OpSummary, classes: &[ClassSummary]) -> Vec<Self> {
        let is_open = |class: ClassId| matches!(plan.classes[usize::from(class)].load, Load::Open { .. });
        let row = |name: String, is_closed_loop: bool, summary: &OpSummary| Self {
            name,
            is_closed_loop,
            errors: summary.client_error.clone(),
            intervals: summary.intervals.clone(),
            unanswered: summary.unanswered() as f64 / summary.requests.scheduled.max(1) as f64,
        };
        let any_closed = classes.iter().any(|class| !is_open(class.class));
        let mut rows = vec![row("all requests".to_owned(), any_closed, total)];
        for class in classes {
            let is_closed = !is_open(class.class);
            let within =
                if classes.len() > 1 { format!(" of class '{}'", class.name) } else { String::new() };
            if classes.len() > 1 {
                rows.push(row(format!("all requests{within}"), is_closed, &class.total));
            }
            rows.extend(
                class.ops.iter().map(|op| row(format!("{}{within}", op.name), is_closed, &op.summary)),
            );
        }
        rows
    }
}
