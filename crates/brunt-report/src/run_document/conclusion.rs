//! The end of the report, which is what a terminal shows above its prompt: what was asserted, and the status with at most three sentences.
//!
//! Each sentence has its number and, behind an arrow, what helps. Assertions are never left out.

use crate::document::{Content, Document};
use crate::grid::{Column, Rows};
use crate::layout::Style;
use crate::quantity;
use brunt_stats::change_point::{LevelSeries, Steadiness};
use brunt_stats::check::{Check, CheckId, CheckStatus};
use brunt_stats::status::{RunStatus, Status};
use brunt_stats::summary::Summary;

/// Sentences that are listed.
const SENTENCES_MAX: usize = 3;
/// Where there is no room they are left out by these ranks, the last first.
const RANKS: [u8; SENTENCES_MAX] = [1, 5, 9];

/// The status, and what the checks found.
pub(crate) fn status(document: &mut Document, status: &RunStatus) {
    document.gap();
    let text = format!("{}.", status.headline());
    document.push(0, Content::Status { text, style: style(status.status) });
    for (index, (name, text)) in findings(status).into_iter().enumerate() {
        let rank = RANKS.get(index).copied().unwrap_or(u8::MAX);
        document.push(rank, Content::Advice { name, text });
    }
}

/// The colour of a status.
pub(crate) const fn style(status: Status) -> Style {
    match status {
        Status::Ok => Style::Good,
        Status::Caution => Style::Doubt,
        Status::Invalid => Style::Bad,
    }
}

/// What the checks found and what happened, each with its name. What limits a closed loop is told, though it is no doubt.
pub(crate) fn findings(status: &RunStatus) -> Vec<(&'static str, String)> {
    let found = status.findings().into_iter().map(|check| (check.id.name(), check.text()));
    let load =
        status.check(CheckId::Load).filter(|check| check.status == CheckStatus::Ok && status.limit.is_some());
    let load = load.map(|check| (check.id.name(), check.text()));
    let facts = status.facts.iter().map(|fact| ("note", fact.clone()));
    found.chain(load).chain(facts).collect()
}

// ---- the part of a long report ----------------------------------------------------------------------------------------

/// The likeliest change point of each series, and how likely chance makes one as clear.
pub(super) fn steady(document: &mut Document, summary: &Summary) {
    document.heading("steady");
    match &summary.steady {
        Steadiness::Unjudged(reason) => document.facts("not judged", vec![(*reason).to_owned()]),
        Steadiness::Judged(judged) => judged.iter().for_each(|change| {
            let value = |value: f64| match change.series {
                LevelSeries::Median => quantity::time(value.round() as u64),
                LevelSeries::HitRatio => format!("{} %", quantity::significant(value * 100.0)),
            };
            let found = if change.is_found() { "a change" } else { "no change" };
            let at = quantity::time(change.at_ns);
            document.facts(
                change.series.name(),
                vec![
                    found.to_owned(),
                    format!("{} before +{at}, {} after", value(change.before), value(change.after)),
                    format!("p {}", quantity::significant(change.p)),
                ],
            );
        }),
    }
}

/// Every check with its number, its threshold and what helps.
pub(crate) fn checks(document: &mut Document, summary: &Summary) {
    document.heading("checks");
    let style = |check: &&Check| match check.status {
        CheckStatus::Skipped => Style::Dim,
        CheckStatus::Ok => Style::Plain,
        CheckStatus::Caution => Style::Doubt,
        CheckStatus::Invalid => Style::Bad,
    };
    let table = Rows::of(&summary.status.checks, style)
        .texts(Column::of_words("check", 10), |check| check.id.name())
        .texts(Column::of_words("status", 9), |check| check.status.name())
        .texts(Column::spaced("value", 12), |check| quantity::significant(check.value))
        .texts(Column::spaced("threshold", 12), |check| quantity::significant(check.threshold));
    document.table(table.grid(None));
    for check in &summary.status.checks {
        let (label, text) = (check.id.name().to_owned(), check.text());
        document.push(0, Content::Sentence { label, text, style: Style::Dim });
    }
}
