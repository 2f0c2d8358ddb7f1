//! What the checks of the servers' own account look at, gathered from their records and our counts.
//!
//! Where a server did not report all of it, the evidence says which and why instead.

use crate::measured_window::MeasuredWindow;
use crate::request_counts::CountEntry;
use crate::run_record::RunRecord;
use crate::server_stats::{
    CounterReset, Growth, ServerRecord, ServerSpan, StatComparison, agreement, open_requests,
};
use brunt_plan::op::OpKind;
use brunt_plan::plan::Plan;

/// Differences of counts that a sentence has; the rest is in the JSON.
const DIFFERENCES_TOLD: usize = 3;

/// What the servers said of themselves, for the checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerEvidence {
    /// Why nothing can be compared; empty where it can.
    pub silence: String,
    /// Our counts and the servers'.
    pub comparisons: Vec<StatComparison>,
    /// Requests of ours of which only the server knows whether it counted them.
    pub open_requests: u64,
    /// Servers whose counters began anew.
    pub counter_resets: Vec<(String, CounterReset)>,
    /// Two names of one server.
    pub same: Option<(String, String)>,
    /// The state of the cache; `None` where a server does not tell it.
    pub cache: Option<CacheEvidence>,
}

impl ServerEvidence {
    /// What the servers counted fewer of than we have answers of, as a sentence, with the largest difference.
    pub(crate) fn fewer_than_ours(&self) -> Option<(String, u64)> {
        let (differences, most) = self.differences(false)?;
        Some((format!("a server did not count what we had answers of: {differences}"), most))
    }

    /// What they counted more of than we sent, as a sentence: others use them.
    pub(crate) fn more_than_ours(&self) -> Option<String> {
        let (differences, _) = self.differences(true)?;
        Some(format!("others use the server, too: {differences}"))
    }

    /// The largest differences of one sign; the rest is in the JSON.
    fn differences(&self, is_more: bool) -> Option<(String, u64)> {
        let is_so = |one: &&StatComparison| one.difference() != 0 && (one.difference() > 0) == is_more;
        let mut wrong: Vec<&StatComparison> = self.comparisons.iter().filter(is_so).collect();
        wrong.sort_by_key(|one| std::cmp::Reverse(one.difference().unsigned_abs()));
        let most = wrong.first()?.difference().unsigned_abs();
        let mut texts: Vec<String> = wrong.iter().take(DIFFERENCES_TOLD).map(|one| difference(one)).collect();
        if let Some(more @ 1..) = wrong.len().checked_sub(DIFFERENCES_TOLD) {
            texts.push(format!("{more} more"));
        }
        Some((texts.join(", "), most))
    }

    /// Expects the servers to have counted `missed` requests fewer: those that replicas of changed keys may never have been sent.
    fn without_replicas(mut self, missed: u64) -> Self {
        self.comparisons.iter_mut().for_each(|one| one.least = one.least.saturating_sub(missed));
        self
    }
}

/// The state of the cache, all servers together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CacheEvidence {
    /// What went on in the measured window.
    pub window: ServerSpan,
    /// Keys that preload stored and that nothing but an eviction or another client could have removed by the end of the
    /// preload, and how many items there were then.
    pub preload: Option<(u64, u64)>,
    /// How the number of items and their bytes went through the window.
    pub growth: Vec<Growth>,
}

/// What the servers said, beside what we did.
pub(crate) fn server_evidence(record: &RunRecord, window: &MeasuredWindow) -> ServerEvidence {
    let RunRecord { plan, run, .. } = record;
    let books: Vec<CountEntry> = run.intervals.books.entries().collect();
    let is_earlier = record.preload.is_some_and(|preload| preload.is_earlier);
    evidence_of(plan, is_earlier, &books, &run.server_records, window)
        .without_replicas(run.counts.replicas_missed)
}

/// `is_earlier`: an earlier run stored the data sets, and had its load after that.
pub(crate) fn evidence_of(
    plan: &Plan,
    is_earlier: bool,
    books: &[CountEntry],
    records: &[ServerRecord],
    window: &MeasuredWindow,
) -> ServerEvidence {
    let mut evidence =
        ServerEvidence { cache: cache(plan, is_earlier, records, window), ..ServerEvidence::default() };
    let name = |index: usize| plan.polled_server_name(index).unwrap_or_else(|| "the server".to_owned());
    let silent = records.iter().enumerate().find(|(_, record)| !record.is_complete);
    if records.is_empty() {
        evidence.silence = "the servers' statistics were not asked for".to_owned();
    } else if let Some((index, record)) = silent {
        let trouble = record.trouble.as_deref().unwrap_or("it was not asked at the end");
        evidence.silence = format!("no statistics of {} from beginning to end: {trouble}", name(index));
    } else {
        let counter_resets = records.iter().enumerate();
        evidence.counter_resets = counter_resets
            .filter_map(|(index, record)| Some((name(index), record.counter_reset()?)))
            .collect();
        evidence.open_requests = open_requests(books);
        evidence.same = same(records).map(|(one, other)| (name(one), name(other)));
        if evidence.counter_resets.is_empty() {
            evidence.comparisons = agreement(plan, books, records);
        }
    }
    evidence
}

fn difference(one: &StatComparison) -> String {
    let StatComparison { statistic, least, most, counted } = one;
    let ours = if least == most { most.to_string() } else { format!("{least} to {most}") };
    format!("{} is {counted} and ours {ours}", statistic.name())
}

/// Two places in the plan that are one server.
fn same(records: &[ServerRecord]) -> Option<(usize, usize)> {
    (1..records.len()).find_map(|index| {
        let held = records[..index].iter().position(|record| record.is_same_server(&records[index]))?;
        Some((held, index))
    })
}

/// The state of the cache over the window.
fn cache(
    plan: &Plan,
    is_earlier: bool,
    records: &[ServerRecord],
    window: &MeasuredWindow,
) -> Option<CacheEvidence> {
    let (start_ns, end_ns) = (window.measure_ns, window.end_ns);
    let span = ServerSpan::sum(records.iter().map(|record| record.span_of_window(window)))?;
    Some(CacheEvidence {
        window: span,
        preload: kept_of_preload(plan, is_earlier, records),
        growth: Growth::of_stocks(records, &(start_ns..end_ns)),
    })
}

/// Keys that preload must have left at least, and the items that there were when it was over. Nothing is known where
/// keys expire by themselves, or where the load of an earlier run has deleted some. Data sets may share keys, so only
/// the largest counts.
fn kept_of_preload(plan: &Plan, is_earlier: bool, records: &[ServerRecord]) -> Option<(u64, u64)> {
    let sets = plan.data_sets();
    let deletes = plan.classes.iter().any(|class| class.mix.contains(OpKind::Delete));
    if !plan.preload || (is_earlier && deletes) || sets.iter().any(|set| set.ttl_s > 0) {
        return None;
    }
    let stored = sets
        .iter()
        .map(|set| set.ids_preloaded().saturating_mul(set.copies * u64::from(set.replicas)))
        .max()?;
    let present = |record: &ServerRecord| record.prepared.as_ref()?.items();
    Some((stored, records.iter().map(present).sum::<Option<u64>>()?))
}
