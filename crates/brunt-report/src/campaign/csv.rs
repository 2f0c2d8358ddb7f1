//! A campaign as CSV, one line per run, for plots and spreadsheets.
//!
//! Not the runs over time. docs/formats.md says what every column means; what is not known is empty.

use super::{Campaign, PercentileEstimate};
use crate::csv::cell;
use brunt_plan::quantile::Quantile;
use std::io::{self, Write};

/// The columns.
const HEADING: &str = "run,repetition,option,setting,seed,duration_ns,offered_per_s,completed_per_s,p50_ns,p99_ns,p99_low_ns,\
    p99_high_ns,p999_ns,client_error_p99_ns,cpu_ns_per_request,status,limit,end";

/// Writes a heading and a line for every run.
///
/// # Errors
/// What `out` returns. A line is one small write: give it a buffered writer.
pub fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    for (index, run) in campaign.runs.iter().enumerate() {
        let value = |quantile| cell(run.percentile(quantile).map(|found: PercentileEstimate| found.value_ns));
        let interval = run.percentile(Quantile::P99).and_then(|found| found.interval_ns);
        let cells = [
            index.to_string(),
            run.repetition.to_string(),
            cell(run.setting.map(|setting| setting.option())),
            cell(run.setting.map(|setting| setting.as_f64())),
            run.seed.to_string(),
            run.duration_ns.to_string(),
            cell(run.offered),
            run.completed.to_string(),
            value(Quantile::P50),
            value(Quantile::P99),
            cell(interval.map(|(low_ns, _)| low_ns)),
            cell(interval.and_then(|(_, high_ns)| high_ns)),
            value(Quantile::P999),
            cell(run.client_error_ns),
            cell(run.cpu_ns.map(|ns| ns.round())),
            run.status.status.name().to_owned(),
            cell(run.limit.as_ref().map(|limit| limit.name())),
            cell(run.step.as_ref().map(|(end, _)| end.name())),
        ];
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}
