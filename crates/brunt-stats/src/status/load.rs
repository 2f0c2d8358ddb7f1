//! LOAD: did the requests that came due leave the system as fast as they came?
//!
//! Whose limit that is says [`crate::bottleneck`]. Invariant: a backlog that an outage, a stop of the client or the plan's own bursts
//! explain is at most a caution.

use super::{Facts, message};
use crate::backlog::{Backlog, BacklogLevel, is_uneven};
use crate::bottleneck::Limit;
use crate::check::{Check, CheckId, CheckStatus};
use crate::usage::StallCounts;
use brunt_plan::quantity::{percent, time};

/// Growth of the backlog that calls for care, as a share of the requests due.
const GROWTH: f64 = 0.01;

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let limit = facts.limit.as_ref();
    let Some(worst) = Backlog::worst(&facts.backlogs) else {
        let check = Check::ok(CheckId::Load, "closed loop: each request waits for the one before");
        return limit.map_or(check, of_closed_loop);
    };
    let status = match worst.level {
        BacklogLevel::Ok => {
            let message = format!("the backlog grew by {}", growth_text(worst));
            return Check::ok(CheckId::Load, message).with_value(worst.share, GROWTH);
        }
        BacklogLevel::Caution => CheckStatus::Caution,
        BacklogLevel::Invalid => CheckStatus::Invalid,
    };
    let (status, message, fix) = match explained(facts, worst) {
        Some((message, fix)) => (CheckStatus::Caution, message, fix),
        None => {
            let message = match limit {
                Some(limit) => format!("{}; {}", limit.sentence(), growth(facts, worst)),
                None => growth(facts, worst),
            };
            (status, message, limit.map_or(String::new(), |limit| limit.fix.clone()))
        }
    };
    Check::found(CheckId::Load, status, message).with_fix(fix).with_value(worst.share, GROWTH)
}

fn of_closed_loop(limit: &Limit) -> Check {
    Check::ok(CheckId::Load, limit.sentence()).with_fix(limit.fix.clone())
}

fn growth(facts: &Facts<'_>, backlog: &Backlog) -> String {
    let whose = match &backlog.agent {
        Some(agent) => format!(" of agent {agent}"),
        None if facts.record.plan.classes.len() == 1 => String::new(),
        None => format!(" of class '{}'", backlog.class),
    };
    format!("the backlog{whose} grew by {}", growth_text(backlog))
}

fn growth_text(backlog: &Backlog) -> String {
    format!("{} requests, {} of those due", backlog.growth.max(0), percent(backlog.share))
}

/// What made a backlog that no lack of capacity made, and what to do about it.
fn explained(facts: &Facts<'_>, backlog: &Backlog) -> Option<(String, String)> {
    let seconds = facts.window.seconds();
    let rate = backlog.due as f64 / seconds.max(f64::MIN_POSITIVE);
    let explains = |ns: u64| backlog.growth as f64 <= rate * ns as f64 / 1e9;
    let stop = StallCounts::longest_of(&facts.record.run.usage.workers);
    let stop_ns = stop.map_or(0, |worker| worker.stalls.longest_ns);
    if let Some(outage) = facts.longest_silence().filter(|outage| explains(facts.silence_ns(outage))) {
        let start = message::since_start(facts, outage.start_ns);
        let over =
            if outage.end_ns.is_some() { "had not drained at the end" } else { "was not over at the end" };
        let text = format!(
            "the backlog of the outage of {} at {} {over}",
            time(facts.silence_ns(outage)),
            facts.server_name(outage)
        );
        return Some((text, format!("see what the server did at {start} (its log, its host)")));
    }
    if explains(stop_ns) {
        let text =
            format!("the backlog of a stop of the client for {} had not drained at the end", time(stop_ns));
        return Some((text, "see what stopped it, and measure again".to_owned()));
    }
    let class = facts.record.plan.classes.iter().find(|class| class.name == backlog.class);
    class.is_some_and(is_uneven).then(|| {
        let (peak, at) = (backlog.peak, time(backlog.peak_at_ns));
        let text = format!("the plan offers more at some times than at others: the backlog was largest at +{at}, {peak} requests");
        (text, String::new())
    })
}
