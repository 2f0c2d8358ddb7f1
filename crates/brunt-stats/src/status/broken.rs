//! BROKEN: do the accounting, the clock, the replies and the server's own counters allow for any number of the run?
//!
//! Exact integers, apart from Little's law, which says how far off it is. Whatever is found makes the run INVALID, but for as many lost
//! agents as the user tolerates.

use super::Facts;
use super::facts::{FULL, is_at_its_limit, quoted};
use crate::check::{Check, CheckId, CheckStatus};
use crate::connection::{ConnectionCounts, FaultKind};
use crate::counts::share;
use crate::little;
use crate::op_summary::{ClassSummary, OpRow};
use crate::request_counts::{CountEntry, KeyCounts, RequestCounts};
use crate::usage::AgentRecord;
use crate::verification::ValueFault;
use crate::window::RunTimes;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::quantity::{percent, time};

/// A sentence, what to do, and how often.
type Finding = (String, &'static str, u64);

const REPORT: &str = "please report this defect of the tool, with the plan and the seed";

type Find = fn(&Facts<'_>) -> Option<Finding>;

/// What is looked for, in the order of sentences, and whether only the end of a run shows it.
const DEFECTS: [(Find, bool); 10] = [
    (cut_journal, true),
    (lost_agents, true),
    (unended_agent, true),
    (malformed, false),
    (wrong_values, false),
    (clock, false),
    (accounting, true),
    (little, true),
    (fewer_counted, true),
    (requests_missing, true),
];

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let known = DEFECTS.iter().filter(|(_, is_at_end)| facts.is_over || !is_at_end);
    let found: Vec<Finding> = known.filter_map(|(find, _)| find(facts)).collect();
    let Some((_, fix, count)) = found.first() else {
        return Check::ok(CheckId::Broken, "accounting, clock and replies are as they must be");
    };
    let texts: Vec<&str> = found.iter().map(|(text, ..)| text.as_str()).collect();
    let tolerated = facts.record.plan.spec.run.tolerate_lost.map_or(0, |count| count.0);
    let is_tolerated = found.len() == 1 && (1..=tolerated).contains(&(facts.agents_lost().count() as u64));
    let (status, fix) = match is_tolerated {
        true => (CheckStatus::Caution, "see what ended it (its log, its host)"),
        false => (CheckStatus::Invalid, *fix),
    };
    Check::found(CheckId::Broken, status, texts.join("; ")).with_fix(fix).with_value(*count as f64, 0.0)
}

/// Is it what a journal holds whose run never ended?
fn cut_journal(facts: &Facts<'_>) -> Option<Finding> {
    let until = time(facts.window.duration_ns());
    let text =
        format!("the journal ends before its run: this is what was received up to {until} of the window");
    let fix = "see what ended brunt (its log, its host), and run again";
    facts.record.is_cut.then_some((text, fix, 1))
}

/// Lost agents that are named.
const NAMED_MAX: usize = 3;

/// Were agents lost, so that their load is missing from then on?
fn lost_agents(facts: &Facts<'_>) -> Option<Finding> {
    let weight = |agent: &AgentRecord| u64::from(agent.workers) * u64::from(agent.weight);
    let all: u64 = facts.record.agents.iter().map(weight).sum();
    let lost: Vec<(&AgentRecord, &str)> = facts.agents_lost().collect();
    let text = |(agent, reason): &(&AgentRecord, &str)| {
        let share = percent(share(weight(agent), all));
        let missing = missing_time(facts.window, agent.lost_after_ns.unwrap_or(0));
        format!("agent {} was lost ({reason}): {share} of the agents' load is missing {missing}", agent.name)
    };
    let mut texts: Vec<String> = lost.iter().take(NAMED_MAX).map(text).collect();
    if lost.len() > NAMED_MAX {
        texts.push(format!("{} more agents were lost", lost.len() - NAMED_MAX));
    }
    let fix =
        "see what ended it (its log, its host), and run again, or take the run as it is with --tolerate-lost";
    (!lost.is_empty()).then(|| (texts.join("; "), fix, lost.len() as u64))
}

/// From when to when the load is missing of an agent whose last interval ended so long after the schedule began.
fn missing_time(window: &RunTimes, after_ns: u64) -> String {
    let from_ns = (window.start_ns + after_ns).saturating_sub(window.measure_ns);
    let end_ns = window.duration_ns();
    match from_ns {
        0 => format!("for the whole window of {}", time(end_ns)),
        _ if from_ns < end_ns => format!("from {} to {} of the window", time(from_ns), time(end_ns)),
        _ => "after the window".to_owned(),
    }
}

/// Was the run interrupted, and did an agent not send the end of its part?
fn unended_agent(facts: &Facts<'_>) -> Option<Finding> {
    let agent = facts.record.agents.iter().find(|agent| agent.lost_after_interruption)?;
    let (name, reason) = (&agent.name, agent.lost.as_ref()?);
    let text =
        format!("the run was interrupted, and agent {name} did not send the end of its part ({reason})");
    Some((text, "see why it did not end (its log, its host); the parts of the others are whole", 1))
}

/// Did bytes come that are no reply?
fn malformed(facts: &Facts<'_>) -> Option<Finding> {
    let run = &facts.record.run;
    let of_schedule = |phase| matches!(phase, Phase::Warmup | Phase::Measure | Phase::Drain);
    let rows = run.intervals.totals.faults.rows().iter();
    let of_connections = rows.filter(|fault| fault.kind == FaultKind::Malformed && of_schedule(fault.phase));
    let count = of_connections.map(|fault| fault.count).sum::<u64>() + run.counts.datagrams.malformed;
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let first = run.counts.first_malformed.as_ref();
    if first.is_some_and(|first| is_at_its_limit(first.bytes())) {
        let text = format!(
            "the server is full: it closed new connections, {times}, with {}",
            quoted(first?.bytes())
        );
        return Some((text, FULL, count));
    }
    let reason = first.map_or(String::new(), |first| format!(": {}", first.reason));
    let fix =
        "see which protocol is spoken at this address (--protocol, transport, the port), and what is between";
    (count > 0).then(|| (format!("bytes came that are no reply, {times}{reason}"), fix, count))
}

/// Were values read that are not those that were stored?
fn wrong_values(facts: &Facts<'_>) -> Option<Finding> {
    let run = &facts.record.run;
    let counted: u64 = run
        .intervals
        .request_counts
        .entries()
        .map(|entry| entry.counts.requests.outcome(OutcomeClass::Mismatch))
        .sum();
    // An operation that failed in another way as well is counted as that.
    let wrong = run.counts.verification.rows().filter(|(fault, ..)| *fault != ValueFault::Missing);
    let rows: Vec<(ValueFault, u64)> = wrong.map(|(fault, count, _)| (fault, count)).collect();
    let count = counted.max(rows.iter().map(|(_, count)| count).sum());
    let kinds: Vec<String> =
        rows.iter().map(|(fault, count)| format!("{count} {}", fault.describe())).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let fix =
        "see what else writes these keys: use a --prefix of your own, or find what is wrong with the server";
    (count > 0).then(|| (format!("{count} values read are not those that were stored{kinds}"), fix, count))
}

fn clock(facts: &Facts<'_>) -> Option<Finding> {
    let count = facts.record.run.host.clock.backwards;
    let fix = "use the clock source tsc (brunt doctor), or another host";
    (count > 0).then(|| (format!("CLOCK_MONOTONIC went backwards {count} times"), fix, count))
}

/// Is every request, key and connection accounted for? Those of a lost agent up to its last interval.
fn accounting(facts: &Facts<'_>) -> Option<Finding> {
    let store = &facts.record.run.intervals;
    let connections = store.all_connections();
    if !connections.adds_up() {
        let ConnectionCounts { begun, established, failed, retired, lost } = connections;
        let text = format!(
            "the accounting of connections does not balance: {begun} begun, {established} established, {failed} failed, {retired} \
             retired, {lost} lost"
        );
        return Some((text, REPORT, 1));
    }
    let entries: Vec<CountEntry> = store.request_counts.entries().collect();
    let by_due = |entry: &&CountEntry| !entry.counts.adds_up();
    let by_instant = |entry: &&CountEntry| !entry.adds_up_in_window();
    let broken = entries.iter().filter(|entry| by_due(entry) || by_instant(entry)).count() as u64;
    let first = match (entries.iter().find(by_due), entries.iter().find(by_instant)) {
        (Some(entry), _) => unbalanced(entry),
        (None, Some(entry)) => unbalanced_in_window(entry),
        (None, None) => return None,
    };
    Some((format!("the accounting of requests does not balance, of {broken} kinds: {first}"), REPORT, broken))
}

/// An account that does not balance.
fn unbalanced(entry: &CountEntry) -> String {
    let CountEntry { phase, class, op, counts } = entry;
    let RequestCounts { scheduled, sent, unsent, in_flight, .. } = counts.requests;
    let KeyCounts { requested, hit, miss, failed } = counts.keys;
    format!(
        "{op} of class {class} in {} has {scheduled} scheduled, {sent} sent, {unsent} unsent, {} ended, {in_flight} in flight, \
         {requested} keys asked, {hit} hit, {miss} missed, {failed} failed",
        phase.name(),
        counts.requests.ended(),
    )
}

/// One that balances by when its requests were due, and not by what happened inside the window.
fn unbalanced_in_window(entry: &CountEntry) -> String {
    let (CountEntry { phase, class, op, .. }, counts) = (entry, entry.in_window());
    format!(
        "{op} of class {class} in {} has {} waiting at the start of the window, {} sent in it, {} given up, {} waiting at its end, {} in \
         flight at its start, {} ended in it, {} in flight at its end",
        phase.name(),
        counts.waiting_at_start,
        counts.sent,
        counts.abandoned,
        counts.waiting_at_end,
        counts.in_flight_at_start,
        counts.ended(),
        counts.in_flight_at_end,
    )
}

fn little(facts: &Facts<'_>) -> Option<Finding> {
    let of_agent = facts.is_incomplete();
    let violation = little::violation(facts.record, facts.window).filter(|_| !of_agent)?;
    Some((format!("Little's law does not hold: {violation}"), REPORT, 1))
}

/// Did a server count fewer operations than we have answers of it?
fn fewer_counted(facts: &Facts<'_>) -> Option<Finding> {
    let (text, missing) = facts.servers.fewer_than_ours()?;
    let fix =
        "see what answers in place of the server: a proxy, a cache before it, or counters that were reset";
    (!facts.is_incomplete()).then_some((text, fix, missing))
}

/// Were fewer requests issued than the plan asks for by number?
fn requests_missing(facts: &Facts<'_>) -> Option<Finding> {
    let record = facts.record;
    let (stop, window) = (&record.plan.stop, facts.window);
    let asked = stop.requests.filter(|_| !record.run.interrupted)?;
    let is_time_up = stop.time.is_some_and(|time| window.duration_ns() >= time.0);
    let issued = facts.total.requests.offered() + keys_beside(&record.plan, facts.classes);
    let missing = asked.saturating_sub(issued);
    let (reason, fix) = match record.plan.classes.iter().any(|class| class.lifetime.total.is_some()) {
        true => (
            "the last connection that the plan allows had ended",
            "ask for fewer --requests, or allow more with connections-total and --calls-per-connection",
        ),
        false => (
            "the run ended early, because no connection could be had any more",
            "run again when the server stays, or raise --timeout",
        ),
    };
    // Those of a lost agent are said already.
    (missing > 0 && !is_time_up && !facts.is_incomplete())
        .then(|| (format!("of {asked} requests asked for {issued} were issued: {reason}"), fix, missing))
}

/// Of multi-gets of windows each key is one of the requests that a plan asks for: how many there were beside the first ones, of those that
/// have ended.
fn keys_beside(plan: &Plan, classes: &[ClassSummary]) -> u64 {
    let has_window =
        |class: &&ClassSummary| plan.classes[usize::from(class.class)].popularity.window().is_some();
    let multigets = classes.iter().filter(has_window).flat_map(|class| &class.ops);
    let beside = |row: &OpRow| {
        let RequestCounts { scheduled, unsent, in_flight, .. } = row.summary.requests;
        row.summary.keys.requested.saturating_sub(scheduled.saturating_sub(unsent + in_flight))
    };
    multigets.filter(|row| row.op.kind() == OpKind::Mget).map(beside).sum()
}
