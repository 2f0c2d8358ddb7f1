//! What a campaign comes to, from its runs and its question alone: a file of it is concluded again as the command did.

use super::{Campaign, CampaignLimit, CampaignQuestion, RunPurpose, RunRow, ScanPoint};
use crate::quantity;
use brunt_plan::objective::Objective;
use brunt_plan::quantile::Quantile;
use brunt_stats::assertion::Assertion;
use brunt_stats::bottleneck::{Bottleneck, Limit};
use brunt_stats::capacity::Capacity;
use brunt_stats::capacity_search::StepResult;
use brunt_stats::check::{CheckId, CheckStatus, Judgement};
use brunt_stats::median::{Estimate, Spread};
use brunt_stats::rate_scan::{Knee, LoadPoint, knee};
use brunt_stats::status::{RunStatus, Status};
use brunt_stats::summary::Summary;

/// Percentiles of which repetitions are compared, with those that the plan requests.
const COMPARED: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];

impl Campaign {
    /// Concludes a campaign of these runs.
    ///
    /// # Errors
    /// What is wrong with its question; for a user.
    pub fn of(
        first: Summary,
        runs: Vec<RunRow>,
        question: CampaignQuestion,
        interrupted: bool,
    ) -> Result<Self, String> {
        let objectives = question.objectives()?;
        let is_scan = matches!(question, CampaignQuestion::Scan { .. });
        let points = if is_scan { points(&runs) } else { Vec::new() };
        let limit = CampaignLimit::of(&runs, &question);
        let is_load = matches!(question, CampaignQuestion::Scan { is_load: true, .. });
        let knee = is_load.then(|| knee_of(&runs, &points));
        let is_repeat = matches!(question, CampaignQuestion::Repeat { .. });
        let compared = if is_repeat { compared(&runs, &first.record.plan.percentiles) } else { Vec::new() };
        let assertions = if is_repeat { together(&runs, &objectives) } else { Vec::new() };
        let status = match question {
            CampaignQuestion::Repeat { .. } => of_repetitions(&runs, &compared),
            CampaignQuestion::Scan { .. } => of_scan(&runs, &points),
            CampaignQuestion::Search { .. } => of_search(&runs, question.capacity()),
        };
        Ok(Self { first, runs, question, points, knee, compared, assertions, limit, status, interrupted })
    }
}

/// How strictly the runs were judged.
fn judgement_of(runs: &[RunRow]) -> Judgement {
    runs.first().map(|run| run.status().judgement.clone()).unwrap_or_default()
}

fn of_repetitions(runs: &[RunRow], compared: &[(String, Spread)]) -> RunStatus {
    RunStatus::of_runs(runs.iter().map(|run| run.status().status), compared, &judgement_of(runs))
}

/// Where a load is too much the numbers say so: that is what a scan goes up for, and no fault of the scan.
fn of_scan(runs: &[RunRow], points: &[ScanPoint]) -> RunStatus {
    let free = highest_free(runs);
    let counted = points.iter().flat_map(|point| &point.runs).map(|index| &runs[*index]);
    let counted = counted.filter(|run| !run.is_beyond(free));
    let counted: Vec<Status> = counted.map(|run| run.status().status).collect();
    let worst = counted.iter().copied().max();
    let worse = counted.iter().filter(|status| Some(**status) == worst).count();
    let message = match worst {
        None => "no setting lies below the limit".to_owned(),
        Some(Status::Ok) => format!("{} below the limit", quantity::things(counted.len() as u64, "run")),
        Some(_) => format!("{worse} of {} runs below the limit", counted.len()),
    };
    told(worst.unwrap_or(Status::Invalid), message, runs)
}

/// This status, for this reason.
fn told(status: Status, message: String, runs: &[RunRow]) -> RunStatus {
    RunStatus { message, ..RunStatus::of_runs([status], &[], &judgement_of(runs)) }
}

fn of_search(runs: &[RunRow], capacity: Option<Capacity>) -> RunStatus {
    let (status, message) = match capacity {
        Some(Capacity::Between { is_confirmed: true, passed, failed }) => {
            let ([held, of_held], [not_held, of_missed]) = (held_of(runs, passed), held_of(runs, failed));
            let missed = of_missed - not_held;
            let message = format!(
                "the lower rate held in {held} of {of_held} runs, the upper one failed in {missed} of {of_missed}"
            );
            (Status::Ok, message)
        }
        Some(Capacity::Between { .. }) => (
            Status::Caution,
            "the runs that were to confirm the two rates do not agree: the capacity is known no better -> a longer --time, or a host that does nothing else".to_owned(),
        ),
        Some(Capacity::AtLeast { passed }) => {
            (Status::Ok, format!("the capacity is at least {}/s, where every objective holds", quantity::rate(passed)))
        }
        Some(Capacity::Below { failed }) => {
            (Status::Ok, format!("the capacity is below {}/s, where an objective fails", quantity::rate(failed)))
        }
        Some(Capacity::ByClient { .. }) => {
            (Status::Invalid, "the client's part is too large, so that nothing is known of the server".to_owned())
        }
        Some(Capacity::Invalid { .. }) => {
            (Status::Invalid, "a step measured what cannot be right".to_owned())
        }
        Some(Capacity::Undecided { .. }) => {
            (Status::Invalid, "the lowest rate was not decided in the time that a step has".to_owned())
        }
        None => (Status::Invalid, "it was ended before it found anything".to_owned()),
    };
    told(status, message, runs)
}

/// In how many of the runs of a pair that had this rate the objectives held, and how many these were.
pub(super) fn held_of(runs: &[RunRow], rate: f64) -> [usize; 2] {
    let pair = runs.iter().filter(|run| run.place.purpose == RunPurpose::Pair && is_at(run, rate));
    let (held, others): (Vec<&RunRow>, Vec<&RunRow>) = pair.partition(|run| run.step == StepResult::Holds);
    [held.len(), held.len() + others.len()]
}

/// The highest setting that met no limit: a limit below it was a trouble that came and went.
pub(super) fn highest_free(runs: &[RunRow]) -> f64 {
    let counts =
        |run: &&RunRow| !matches!(run.place.purpose, RunPurpose::Connections(_)) && !run.is_interrupted();
    runs.iter().filter(counts).filter(|run| !run.is_limited).filter_map(RunRow::setting).fold(0.0, f64::max)
}

fn is_at(run: &RunRow, rate: f64) -> bool {
    run.setting() == Some(rate)
}

impl CampaignLimit {
    /// Who limits the campaign: in a scan at the lowest setting above every one that met no limit, in a search at the rate that does not hold.
    pub fn of(runs: &[RunRow], question: &CampaignQuestion) -> Option<Self> {
        let mut steps = runs.iter().enumerate().filter(|(_, run)| {
            !run.is_interrupted() && !matches!(run.place.purpose, RunPurpose::Connections(_))
        });
        let (index, run) = match question {
            CampaignQuestion::Repeat { .. } => return None,
            CampaignQuestion::Scan { .. } => {
                let free = highest_free(runs);
                let above = steps.filter(|(_, run)| run.is_beyond(free));
                above.min_by(|(_, one), (_, other)| {
                    one.setting().partial_cmp(&other.setting()).unwrap_or(std::cmp::Ordering::Equal)
                })?
            }
            CampaignQuestion::Search { capacity, .. } => {
                let failed = (*capacity)?.not_passed()?;
                let limits = |run: &RunRow| {
                    // Who limits a run is not known where the client had no time for it.
                    let is_of_client = run.status().status_of(CheckId::Client) == CheckStatus::Invalid;
                    let is_known = run.is_limited && run.step != StepResult::Client && !is_of_client;
                    run.step != StepResult::Holds && (is_known || run.limit.bottleneck != Bottleneck::Server)
                };
                steps.rfind(|(_, run)| is_at(run, failed) && limits(run))?
            }
        };
        let with_more = runs.iter().position(|more| {
            matches!(more.place.purpose, RunPurpose::Connections(_))
                && more.place.setting == run.place.setting
        });
        let mut limit = run.limit.clone();
        if let Some(more) = with_more.map(|index| &runs[index])
            && let RunPurpose::Connections(count) = more.place.purpose
        {
            let done = quantity::rate(more.completed());
            limit = match more.removes_limit_of(run) {
                true => Limit { reason: format!("{}; {count} did {done}/s", limit.reason), ..limit },
                false => Limit {
                    bottleneck: Bottleneck::Server,
                    subject: "the server, or what lies behind it".into(),
                    reason: format!("{count} connections did no more than {done}/s"),
                    fix: String::new(),
                    connections_needed: None,
                },
            };
        }
        Some(Self { limit, run: index, with_more })
    }
}

/// Runs of one setting together, ascending. Of two runs of one setting in one pass the first was spoiled.
fn points(runs: &[RunRow]) -> Vec<ScanPoint> {
    let mut points: Vec<ScanPoint> = Vec::new();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| run.place.purpose == RunPurpose::Step) {
        let Some(setting) = run.place.setting else { continue };
        match points.iter_mut().find(|point| point.setting == setting) {
            Some(point) => {
                let is_again = |earlier: &usize| runs[*earlier].place.repetition == run.place.repetition;
                point.discarded.extend(point.runs.pop_if(|earlier| is_again(earlier)));
                point.runs.push(index);
            }
            None => points.push(ScanPoint { setting, runs: vec![index], discarded: Vec::new(), p99: None }),
        }
    }
    points.sort_by(|one, other| one.setting.as_f64().total_cmp(&other.setting.as_f64()));
    for point in &mut points {
        let whole = point.runs.iter().map(|index| &runs[*index]).filter(|run| !run.is_interrupted());
        let estimates: Vec<Estimate> = whole.filter_map(|run| run.estimate(Quantile::P99)).collect();
        point.p99 = Spread::of(&estimates);
    }
    points
}

/// The knee of the curve of the points that met no limit, as an index of a point.
fn knee_of(runs: &[RunRow], points: &[ScanPoint]) -> Knee {
    let load = |point: &ScanPoint| {
        let completed: Vec<Estimate> = point.runs.iter().map(|index| throughput(&runs[*index])).collect();
        Some(LoadPoint { throughput: Spread::of(&completed)?.median, latency_ns: point.p99?.median })
    };
    let is_free = |point: &ScanPoint| {
        point.runs.iter().all(|index| !runs[*index].is_limited && !runs[*index].is_interrupted())
    };
    let last_free = points.iter().rposition(is_free);
    let is_limit_met = points.len() > last_free.map_or(0, |last| last + 1);
    let free = points.iter().enumerate().filter(|(_, point)| is_free(point));
    let curve: Vec<(usize, LoadPoint)> =
        free.filter_map(|(index, point)| Some((index, load(point)?))).collect();
    let loads: Vec<LoadPoint> = curve.iter().map(|(_, load)| *load).collect();
    match knee(&loads, is_limit_met) {
        Knee::At(index) => Knee::At(curve[index].0),
        other => other,
    }
}

/// What the numbers of repetitions come to: throughput and percentiles.
fn compared(runs: &[RunRow], requested: &[Quantile]) -> Vec<(String, Spread)> {
    let runs = || runs.iter().filter(|run| !run.is_interrupted());
    let mut numbers = vec![("completed_per_s".to_owned(), runs().map(throughput).collect::<Vec<_>>())];
    let mut quantiles = [&COMPARED, requested].concat();
    quantiles.sort_unstable();
    quantiles.dedup();
    for quantile in quantiles {
        numbers.push((quantile.to_string(), runs().filter_map(|run| run.estimate(quantile)).collect()));
    }
    let spread = |(name, estimates): (String, Vec<Estimate>)| Some((name, Spread::of(&estimates)?));
    numbers.into_iter().filter_map(spread).collect()
}

fn throughput(run: &RunRow) -> Estimate {
    // A count over the whole window: it has no interval of its own.
    Estimate { value: run.completed(), half_width: None }
}

/// Each assertion about all runs together.
fn together(runs: &[RunRow], objectives: &[Objective]) -> Vec<Assertion> {
    (0..objectives.len()).filter_map(|place| asserted_of(runs, place)).collect()
}

/// The assertion in this place about these runs together.
pub(super) fn asserted_of<'a>(runs: impl IntoIterator<Item = &'a RunRow>, place: usize) -> Option<Assertion> {
    let of_runs = runs.into_iter().filter_map(|run| run.assertions.get(place).cloned());
    Assertion::of_runs(&of_runs.collect::<Vec<_>>())
}
