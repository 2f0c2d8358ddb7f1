//! The report of a campaign: what was run, a table with a row for each setting, rate or repetition, what was found, and a status.
//!
//! Not the reports of its runs (JSON has every one); the details have a row for each. Invariant: what is said of a campaign is said in the
//! same words in text, page, annotations and figures.

use super::table::{self, setting_text};
use super::{Campaign, CampaignQuestion, RunRow};
use crate::assertion_text::AssertionText;
use crate::figure::{Bound, Figures, unit_of};
use crate::layout::{Layout, Style};
use crate::page::Page;
use crate::quantity;
use crate::text::conclusion::{self, assertions};
use crate::text::head::{self, Labelled};
use crate::text::latency::rate;
use brunt_plan::quantile::Quantile;
use brunt_plan::sweep::SweepPoint;
use brunt_stats::capacity::Capacity;
use brunt_stats::knee::Knee;
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write(campaign: &Campaign, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(campaign, layout, false).as_bytes())
}

/// Writes the report with every run.
///
/// # Errors
/// What `out` returns.
pub fn write_details(campaign: &Campaign, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(report(campaign, layout, true).as_bytes())
}

fn report(campaign: &Campaign, layout: &Layout, has_runs: bool) -> String {
    let mut page = Page::new(layout);
    head_facts(campaign).iter().for_each(|(label, facts)| page.facts(label, facts));
    page.separate();
    let (grid, left_out) = table::answer(campaign, layout);
    page.grid(&grid);
    if left_out > 0 {
        page.prose("", 0, &format!("+{left_out} rows between these: --details"), Style::Plain);
    }
    if has_runs {
        page.separate();
        page.prose("", 0, "== runs", Style::Bold);
        page.grid(&table::runs(campaign, layout));
        page.separate();
        run_findings(campaign).iter().for_each(|(label, facts)| page.facts(label, facts));
    }
    let findings = findings(campaign);
    // The rows of a search lead up to what it found.
    if has_runs || !matches!(campaign.question, CampaignQuestion::Search { .. }) {
        page.separate();
    }
    findings.iter().for_each(|(label, facts)| page.prose(label, 13, &facts.join(" · "), Style::Dim));
    if campaign.interrupted {
        page.facts("interrupted", &["partial results: not all runs were made".to_owned()]);
    }
    assertions(&mut page, campaign.assertions.iter().map(AssertionText::of));
    conclusion::status(&mut page, &campaign.status);
    page.into_text()
}

/// What the checks of each run found.
fn run_findings(campaign: &Campaign) -> Vec<Labelled> {
    let of_run = |(number, run): (usize, &RunRow)| {
        let found =
            conclusion::findings(&run.status).into_iter().map(|(name, text)| format!("{name}: {text}"));
        (format!("run {number}"), found.collect())
    };
    (1..).zip(&campaign.runs).map(of_run).filter(|(_, found): &Labelled| !found.is_empty()).collect()
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
    let capacity = campaign.question.capacity().map(|found| capacity_text(&found, &wanted(campaign)));
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
        Some(SweepPoint::Rate(_)) | None => format!("{}/s", rate(run.completed)),
        Some(SweepPoint::Connections(count)) => quantity::things(count.0, "connection"),
        Some(setting) => format!("{} {}", setting.option(), setting_text(setting)),
    };
    // That a lower rate is kept up with is what a scan or a search shows.
    let fix = Some(&met.limit.fix).filter(|fix| !fix.is_empty() && !fix.starts_with("--rate"));
    let fix = fix.map_or(String::new(), |fix| format!(" -> {fix}"));
    Some(format!("{}, at {at}: {}{fix}", met.limit.subject, met.limit.reason))
}

fn capacity_text(capacity: &Capacity, wanted: &str) -> String {
    match *capacity {
        Capacity::Between { passed, failed, is_confirmed } => {
            let about = if is_confirmed { "" } else { "about " };
            format!("{about}{}/s meets {wanted}, {}/s does not", rate(passed), rate(failed))
        }
        Capacity::AtLeast { passed } => {
            format!("at least {}/s: the highest rate tried meets {wanted} -> raise --to", rate(passed))
        }
        Capacity::Below { failed } => {
            format!("below {}/s: the lowest rate tried does not meet {wanted} -> lower --from", rate(failed))
        }
        Capacity::Undecided { at } => {
            format!("undecided: {}/s, the lowest rate, takes longer steps -> --max-time", rate(at))
        }
        Capacity::ByClient { at, passed: Some(passed) } => {
            format!("at least {}/s meets {wanted}: the client is the limit at {}/s", rate(passed), rate(at))
        }
        Capacity::ByClient { at, passed: None } => {
            format!("undecided: the client is the limit at {}/s", rate(at))
        }
        Capacity::Invalid { at, .. } => format!("undecided: the step at {}/s is INVALID", rate(at)),
    }
}

/// By how much the numbers of repetitions differ, and how much the least and the largest say.
fn range_text(campaign: &Campaign) -> Option<String> {
    let first = campaign.compared.first().filter(|first| first.spread.runs > 1)?;
    let quantiles = campaign.quantiles();
    let name = |key: &str| match key {
        "completed_per_s" => Some("done/s".to_owned()),
        key => quantiles.iter().find(|quantile| quantile.key() == key).map(ToString::to_string),
    };
    let ranges = campaign.compared.iter().filter_map(|held| {
        Some(format!(
            "{} {} %",
            name(&held.name)?,
            quantity::significant(100.0 * held.spread.relative_range())
        ))
    });
    let covered = quantity::significant(100.0 * first.spread.coverage());
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    Some(format!("{ranges}; min and max bracket the median with {covered} %"))
}

/// What the campaign as a whole comes to: its status, and why.
pub(crate) fn headline(campaign: &Campaign) -> Vec<String> {
    vec![campaign.status.headline()]
}

/// The keys of `--brief`, behind the status.
pub(crate) fn brief(campaign: &Campaign, layout: &Layout) -> String {
    match &campaign.question {
        CampaignQuestion::Scan { .. } => brief_of_scan(campaign),
        CampaignQuestion::Search { capacity, .. } => brief_of_search(campaign, *capacity),
        CampaignQuestion::Repeat { .. } => brief_of_repetitions(campaign, layout),
    }
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
    let spread_of =
        |name: &str| campaign.compared.iter().find(|held| held.name == name).map(|held| held.spread);
    let columns = [Quantile::P50, Quantile::P99, Quantile::P999].map(|quantile| {
        let spread = spread_of(&quantile.key());
        let whole = |value: f64| value.round() as u64;
        Figures {
            times_ns: vec![spread.map(|spread| whole(spread.median))],
            bounds: vec![vec![spread.map_or(Bound::Unknown, |spread| {
                Bound::Within(whole((spread.max - spread.median).max(spread.median - spread.min)))
            })]],
        }
    });
    let unit = layout.unit.unwrap_or_else(|| unit_of(&columns));
    let done =
        spread_of("completed_per_s").map_or("-".to_owned(), |spread| format!("{}/s", rate(spread.median)));
    let failed: u64 = campaign.runs.iter().map(|run| run.failed).sum();
    let [p50, p99, p999] = [0, 1, 2].map(|index| columns[index].first_text(unit));
    format!("rate={done} p50={p50} p99={p99} p99.9={p999} failed={failed}")
}
