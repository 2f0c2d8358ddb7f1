//! The report of a campaign: what was run, a table with a row for each setting, rate or repetition, what was found, and a status.
//!
//! The reports of its runs are in JSON; a long report has a row for each. Invariant: what is said of a campaign is said in the same words in
//! text, page, annotations and figures.

use super::conclusion::held_of;
use super::table::{self, setting_text};
use super::{Campaign, CampaignQuestion};
use crate::assertion_text::AssertionText;
use crate::document::{Document, Level};
use crate::figure::{Bound, Figures, unit_of};
use crate::layout::Layout;
use crate::quantity::{self, rate};
use crate::run_document::conclusion;
use crate::run_document::head::{self, Labelled};
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::Capacity;
use brunt_stats::rate_scan::Knee;

/// The whole document; its tables have the unit of the layout.
pub(crate) fn document(campaign: &Campaign, layout: &Layout) -> Document {
    Document::of(|document| {
        head_facts(campaign).into_iter().for_each(|(label, facts)| document.facts(label, facts));
        document.gap();
        let (grid, left_out) = table::answer(campaign, layout);
        document.table(grid);
        let note = (left_out > 0).then(|| format!("+{left_out} rows between these: --report full"));
        document.facts("", note.into_iter().collect());
        document.begin(Level::Long);
        document.heading("runs");
        document.table(table::runs(campaign, layout));
        document.gap();
        for (number, run) in (1..).zip(&campaign.runs) {
            let found = conclusion::findings(run.status()).into_iter();
            let found = found.map(|(name, text)| format!("{name}: {text}")).collect();
            document.facts(format!("run {number}"), found);
        }
        document.gap();
        document.begin(Level::Short);
        // The rows of a search lead up to what it found.
        if !matches!(campaign.question, CampaignQuestion::Search { .. }) {
            document.gap();
        }
        answer(document, campaign);
    })
}

/// What was found and asserted, and the status.
pub(super) fn answer(document: &mut Document, campaign: &Campaign) {
    findings(campaign).into_iter().for_each(|(label, facts)| document.facts(label, facts));
    if campaign.interrupted {
        document.facts("interrupted", vec!["partial results: not all runs were made".to_owned()]);
    }
    document.assertions(campaign.assertions.iter().map(AssertionText::of));
    conclusion::status(document, &campaign.status);
}

/// What was run, by label.
pub(crate) fn head_facts(campaign: &Campaign) -> Vec<Labelled> {
    let mut facts = vec![(campaign.question.kind().to_owned(), title(campaign))];
    facts.extend(head::of_campaign(&campaign.first, campaign.question.varied()));
    facts
}

fn title(campaign: &Campaign) -> Vec<String> {
    let runs = quantity::things(campaign.runs.len() as u64, "run");
    let mut facts = match &campaign.question {
        CampaignQuestion::Scan { option, .. } => {
            let settings = quantity::things(campaign.points.len() as u64, "setting");
            vec![format!("over {option}, {settings}"), runs]
        }
        CampaignQuestion::Search { .. } => {
            vec![format!("for the highest rate with {}", wanted(campaign)), runs]
        }
        CampaignQuestion::Repeat { .. } => vec![format!("{runs} of one plan")],
    };
    let discarded = (0..campaign.runs.len()).filter(|index| campaign.is_discarded(*index)).count();
    facts.extend((discarded > 0).then(|| format!("{discarded} discarded and made again")));
    let maximum = campaign.question.closed_loop();
    facts.extend(maximum.map(|found| format!("closed-loop maximum {}/s", rate(found))));
    facts
}

/// What a search was held against, in a sentence.
pub(crate) fn wanted(campaign: &Campaign) -> String {
    match &campaign.question {
        CampaignQuestion::Search { objectives, .. } => objectives.join(" and "),
        CampaignQuestion::Repeat { .. } | CampaignQuestion::Scan { .. } => String::new(),
    }
}

/// What was found: labels and facts.
pub(crate) fn findings(campaign: &Campaign) -> Vec<Labelled> {
    let knee = campaign.knee.and_then(|knee| match knee {
        // Its row is marked.
        Knee::At(_) => None,
        Knee::Beyond => Some("beyond the highest load: throughput still grew faster than latency".to_owned()),
        Knee::Unknown => Some("unknown: a curve takes three settings below the limit".to_owned()),
    });
    let capacity = campaign.question.capacity().map(|found| capacity_text(campaign, &found));
    let range = range_text(campaign);
    let found = [("knee", knee), ("capacity", capacity), ("range", range), ("limit", limit_text(campaign))];
    found.into_iter().filter_map(|(label, fact)| Some((label.to_owned(), vec![fact?]))).collect()
}

fn limit_text(campaign: &Campaign) -> Option<String> {
    let Some(met) = &campaign.limit else {
        let is_scan = matches!(campaign.question, CampaignQuestion::Scan { .. });
        let so_far = if campaign.interrupted { " so far" } else { "" };
        return is_scan.then(|| format!("none met{so_far}"));
    };
    let run = &campaign.runs[met.run];
    let at = match run.place.setting {
        Some(SweepPoint::Rate(_)) | None => format!("{}/s", rate(run.completed())),
        Some(SweepPoint::Connections(count)) => quantity::things(count.0, "connection"),
        Some(setting) => format!("{} {}", setting.option(), setting_text(setting)),
    };
    // That a lower rate is kept up with is what a scan or a search shows.
    let fix = Some(&met.limit.fix).filter(|fix| !fix.is_empty() && !fix.starts_with("--rate"));
    let fix = fix.map_or(String::new(), |fix| format!(" -> {fix}"));
    Some(format!("{}, at {at}: {}{fix}", met.limit.subject, met.limit.reason))
}

fn capacity_text(campaign: &Campaign, capacity: &Capacity) -> String {
    let wanted = wanted(campaign);
    match *capacity {
        Capacity::Between { passed, failed, is_confirmed: true } => {
            format!("{}/s meets {wanted}, {}/s does not", rate(passed), rate(failed))
        }
        Capacity::Between { passed, failed, is_confirmed: false } => {
            let runs = |of: f64| {
                let [held, all] = held_of(&campaign.runs, of);
                format!("{}/s in {held} of {}", rate(of), quantity::things(all as u64, "run"))
            };
            format!("about {}/s: {wanted} held at {}, at {}", rate(passed), runs(passed), runs(failed))
        }
        Capacity::AtLeast { passed } => {
            format!("at least {}/s: the highest rate tried meets {wanted} -> raise --to", rate(passed))
        }
        Capacity::Below { failed } => {
            format!("below {}/s: the lowest rate tried does not meet {wanted} -> lower --from", rate(failed))
        }
        Capacity::Undecided { at } => {
            format!("undecided: {}/s, the lowest rate, takes longer steps -> --until max=DURATION", rate(at))
        }
        Capacity::ByClient { at, passed: Some(passed) } => {
            format!(
                "at least {}/s meets {wanted}; at {}/s the client's part is too large to tell",
                rate(passed),
                rate(at)
            )
        }
        Capacity::ByClient { at, passed: None } => {
            format!("undecided: at {}/s the client's part is too large to tell -> brunt doctor", rate(at))
        }
        Capacity::Invalid { at, .. } => format!("undecided: the step at {}/s is INVALID", rate(at)),
    }
}

/// By how much the numbers of repetitions differ, and how much the least and the largest say.
fn range_text(campaign: &Campaign) -> Option<String> {
    let (_, first) = campaign.compared.first().filter(|(_, spread)| spread.runs > 1)?;
    let quantiles = campaign.quantiles();
    let name = |key: &str| match key {
        "completed_per_s" => Some("done/s".to_owned()),
        key => quantiles.iter().map(ToString::to_string).find(|name| name == key),
    };
    let ranges = campaign.compared.iter().filter_map(|(key, spread)| {
        Some(format!("{} {} %", name(key)?, quantity::significant(100.0 * spread.relative_range())))
    });
    let covered = quantity::significant(100.0 * first.coverage);
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    Some(format!("{ranges}; min and max bracket the median with {covered} %"))
}

/// The keys of `--report brief`.
pub(crate) fn brief(campaign: &Campaign, layout: &Layout) -> String {
    let finding = match &campaign.question {
        CampaignQuestion::Scan { .. } => brief_of_scan(campaign),
        CampaignQuestion::Search { capacity, .. } => brief_of_search(campaign, *capacity),
        CampaignQuestion::Repeat { .. } => brief_of_repetitions(campaign, layout),
    };
    format!("status={} runs={} {finding}", campaign.status.status.name(), campaign.runs.len())
}

fn limit_word(campaign: &Campaign) -> &'static str {
    campaign.limit.as_ref().map_or("none", |met| met.limit.bottleneck.name())
}

fn brief_of_scan(campaign: &Campaign) -> String {
    let knee = match campaign.knee {
        Some(Knee::At(index)) => setting_text(campaign.points[index].setting),
        _ => "-".to_owned(),
    };
    let at = campaign.limit.as_ref().and_then(|met| campaign.runs[met.run].place.setting);
    format!("knee={knee} at={} limit={}", at.map_or("-".to_owned(), setting_text), limit_word(campaign))
}

fn brief_of_search(campaign: &Campaign, capacity: Option<Capacity>) -> String {
    let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{}/s", rate(value)));
    let meets = text(capacity.and_then(|found| found.passed()));
    let fails = text(capacity.and_then(|found| found.not_passed()));
    let result = capacity.map_or("-", |found| found.name());
    format!("capacity={meets} fails={fails} result={result} limit={}", limit_word(campaign))
}

/// Medians with the farther end of the range.
fn brief_of_repetitions(campaign: &Campaign, layout: &Layout) -> String {
    let columns = [Quantile::P50, Quantile::P99, Quantile::P999].map(|quantile| {
        let spread = campaign.spread(&quantile.to_string());
        let whole = |value: f64| value.round() as u64;
        Figures {
            times_ns: vec![spread.map(|spread| whole(spread.median))],
            bounds: vec![vec![spread.map_or(Bound::Unknown, |spread| {
                Bound::Within(whole((spread.max - spread.median).max(spread.median - spread.min)))
            })]],
        }
    });
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let done = campaign
        .spread("completed_per_s")
        .map_or("-".to_owned(), |spread| format!("{}/s", rate(spread.median)));
    let failed: u64 = campaign.runs.iter().map(|run| run.failed()).sum();
    let [p50, p99, p999] = [0, 1, 2].map(|index| columns[index].first_text(unit));
    format!("rate={done} p50={p50} p99={p99} p99.9={p999} failed={failed}")
}
