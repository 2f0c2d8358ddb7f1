//! Where the time of a request goes, by the kernel's own timestamps of some of them.
//!
//! Not the headline: a sample, and of requests that had their connection to themselves. It is there when the plan asks for it,
//! and when some were taken.

use crate::paragraph;
use crate::quantity::{self, time_or_dash};
use crate::table::Table;
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::stamps::{StampCounts, StampLoss};
use brunt_stats::summary::Summary;

pub(super) fn write(out: &mut String, summary: &Summary) {
    let Some(spans) = summary.spans() else { return };
    let counts = &summary.counts().stamps;
    out.push('\n');
    if counts.requested == 0 {
        paragraph::facts(out, "", &["kernel timestamps: no request had its connection to itself".to_owned()]);
        return;
    }
    let mut table = Table::new(&["kernel timestamps", "samples", "mean", "min", "p50", "p99", "max"]);
    for (kind, span) in spans {
        table.push(vec![
            name(kind).to_owned(),
            span.count.to_string(),
            time_or_dash(span.mean_ns.map(|ns| ns.round() as u64)),
            time_or_dash(span.min_ns),
            time_or_dash(span.percentile_ns(Quantile::P50)),
            time_or_dash(span.percentile_ns(Quantile::P99)),
            time_or_dash(span.max_ns),
        ]);
    }
    if counts.matched > 0 {
        table.write(out);
    }
    paragraph::facts(out, "", &facts(counts));
}

const fn name(kind: MeterKind) -> &'static str {
    match kind {
        MeterKind::StackOut => "client stack out",
        MeterKind::StackIn => "client stack in",
        _ => "wire and server",
    }
}

/// What became of the requests that the kernel was to stamp, and why some do not count.
fn facts(counts: &StampCounts) -> Vec<String> {
    let asked = quantity::things(counts.requested, "request");
    let mut facts = vec![match counts.requested.saturating_sub(counts.matched) {
        0 => format!("kernel timestamps of {asked}, none discarded"),
        _ if counts.matched == 0 => {
            format!("kernel timestamps of {asked}, all discarded: no time is known")
        }
        lost => format!("kernel timestamps of {asked}, {lost} discarded"),
    }];
    for loss in StampLoss::ALL.into_iter().filter(|loss| counts.discarded(*loss) > 0) {
        facts.push(format!("{} {}", counts.discarded(loss), loss.describe()));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_discarded_timestamps() {
        let lost = |number: u64| {
            let mut counts =
                StampCounts { requested: 1_458, matched: 1_458 - number, ..StampCounts::default() };
            (0..number).for_each(|_| counts.discard(StampLoss::NoReceiveStamp));
            facts(&counts).join(" · ")
        };
        assert_eq!(lost(0), "kernel timestamps of 1458 requests, none discarded");
        assert_eq!(
            lost(2),
            "kernel timestamps of 1458 requests, 2 discarded · 2 without a stamp of receiving"
        );
        assert_eq!(
            lost(1_458),
            "kernel timestamps of 1458 requests, all discarded: no time is known · \
             1458 without a stamp of receiving"
        );
    }
}
