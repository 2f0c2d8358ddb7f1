//! A campaign as CSV, one line per run, for plots and spreadsheets.
//!
//! Not the runs over time. docs/results.md says what every column means; what is not known is empty.

use super::table::status_word;
use super::{Campaign, CampaignQuestion, PercentileEstimate, RunPurpose};
use crate::csv::cell;
use brunt_plan::quantile::Quantile;
use std::io::{self, Write};

/// The columns.
const HEADING: &str = "run,repetition,purpose,option,setting,seed,duration_ns,offered_per_s,completed_per_s,p50_ns,p99_ns,p99_low_ns,\
    p99_high_ns,p99.9_ns,client_error_p99_ns,cpu_ns_per_request,status,limit,step";

/// Writes a heading and a line for every run.
pub(crate) fn write(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    let is_search = matches!(campaign.question, CampaignQuestion::Search { .. });
    for (index, run) in campaign.runs.iter().enumerate() {
        let value = |quantile| cell(run.percentile(quantile).map(|found: PercentileEstimate| found.value_ns));
        let interval = run.percentile(Quantile::P99).and_then(|found| found.interval_ns);
        let cells = [
            index.to_string(),
            run.place.repetition.to_string(),
            purpose(run.place.purpose),
            cell(run.place.setting.map(|setting| setting.option())),
            cell(run.place.setting.map(|setting| setting.as_f64())),
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
            status_word(run).0.to_owned(),
            cell(run.is_limited.then(|| run.limit.bottleneck.name())),
            cell(is_search.then(|| run.step.name())),
        ];
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

fn purpose(purpose: RunPurpose) -> String {
    match purpose {
        RunPurpose::Step => "step".to_owned(),
        RunPurpose::Pair => "pair".to_owned(),
        RunPurpose::Connections(count) => format!("connections={count}"),
    }
}
