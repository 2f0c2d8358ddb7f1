//! Checks of the load: was it there, was it whole, was it sent, and did the server keep up with it?
//!
//! Not of latencies. What the plan asked for is compared with what happened, in counts.

use super::cause::{Cause, CauseKind, OpenChecks};
use super::host::{STEAL, denied_ns, worst};
use super::lateness::{has_time, is_limit, server_busy};
use super::{Evidence, LastHalf, OpenLoop, RequestTarget, SAMPLES_MIN, outage};
use crate::check::{Check, CheckStatus, Limits};
use crate::number_text::{percent, rounded, share};
use crate::steady::Series;
use std::borrow::Cow;

/// Of what a saturated server answered, this fraction is advised to be offered.
const OFFERED: f64 = 0.8;
/// Share of scheduled requests that may remain unsent.
const RATE: Limits = Limits { caution: 0.001, not_trusted: 0.01 };
/// By which share completions may fall short of the offered rate in the last half of the window.
const SATURATION: Limits = Limits { caution: 0.01, not_trusted: 0.05 };
/// A shortfall within this many standard deviations of a Poisson count is chance.
const SATURATION_DEVIATIONS: f64 = 4.0;

/// Were enough requests measured for any number of the run?
pub(super) fn samples(evidence: &Evidence<'_>) -> Check {
    let Evidence { completed, unacknowledged, sent, .. } = *evidence;
    let counted = completed + unacknowledged;
    let (status, message) = match (completed, unacknowledged) {
        (0, 0) => {
            let due = format!(
                "none of the requests that were due in the window was completed, of which {} were sent",
                sent
            );
            (CheckStatus::NotTrusted, due)
        }
        (0, _) => {
            (CheckStatus::Ok, format!("{unacknowledged} requests sent, none of which asked for a reply"))
        }
        _ => (CheckStatus::Ok, format!("{} requests completed", completed)),
    };
    let is_few = counted < SAMPLES_MIN;
    let needed = is_few.then(|| format!("at least {SAMPLES_MIN} are needed"));
    let status = if is_few { CheckStatus::NotTrusted } else { status };
    let fix = match counted {
        0 => "see the errors, the connection faults and what was answered in the window",
        _ => "run longer, or at a higher rate",
    };
    Check::judged("SAMPLES", status, message, fix, counted as f64, SAMPLES_MIN as f64).with(needed)
}

/// Was everything issued that the plan asks for by number?
pub(super) fn short(evidence: &Evidence<'_>) -> Check {
    let Some(RequestTarget { requests, issued, is_time_up, connections_end }) = evidence.asked else {
        let message = "no number of requests to reach: none is asked for, or the run was interrupted";
        return Check::skipped("SHORT", message, 0.0);
    };
    let missing = requests.saturating_sub(issued);
    let status = if missing == 0 || is_time_up { CheckStatus::Ok } else { CheckStatus::NotTrusted };
    let reason = match (missing, is_time_up, connections_end) {
        (0, ..) => "",
        (_, true, _) => ": the time was up first, as the plan has it",
        (_, _, true) => ": the last connection that the plan allows had ended",
        _ => ": the run ended early, because no connection could be had any more",
    };
    let message = format!("asked for {} requests, {} were issued{reason}", requests, issued);
    let fix = if connections_end {
        "ask for fewer --requests, or allow more with --connections-total and --calls-per-connection"
    } else {
        "run again when the server stays, or raise --timeout"
    };
    Check::judged("SHORT", status, message, fix, missing as f64, 0.0)
}

/// Was everything sent that the schedule wanted?
pub(super) fn rate(evidence: &Evidence<'_>) -> Check {
    let Some(OpenLoop { scheduled, unsent, abandoned }) = evidence.open_loop else {
        return Check::skipped("RATE", "closed loop: nothing is due at a fixed time", RATE.caution);
    };
    let value = share(unsent, scheduled);
    let message =
        format!("{} of {} scheduled requests were never sent ({})", unsent, scheduled, percent(value));
    let of_outages = (abandoned > 0).then(|| {
        let why = match outage::unsent_for(&evidence.down_servers) {
            none if none.is_empty() => "their servers did not answer".to_owned(),
            why => why,
        };
        format!("{abandoned} of them because {why}")
    });
    let is_explained = outage::is_unsent_of_it(evidence);
    let fix = match is_explained {
        true => "an outage did this and not the rate: read ERR, the outages and the rows of the servers",
        false => "lower the rate, or give it more --connections, --depth or --drain",
    };
    // What an outage kept from being sent is a fact about the server, and of the run.
    let most = if is_explained && !evidence.judgement.is_strict {
        CheckStatus::Caution
    } else {
        CheckStatus::NotTrusted
    };
    Check::judged("RATE", RATE.judge(value).min(most), message, fix, value, RATE.caution).with(of_outages)
}

/// Is it the server that did not keep up, and what follows from that? Behind a server that falls behind every queue is full, up to the
/// schedule: what waits there is booked as the client's lateness.
pub(super) fn cause(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let check = open.get("SAT").filter(|_| !is_limit(evidence, open))?;
    let LastHalf { offered, answered, seconds } = evidence.last_half?;
    // One that waits for something else than a processor is not known to be saturated.
    let what = if has_time(evidence) { "the server did not keep up" } else { "saturated server" };
    let mut sentence = format!(
        "{what}: {} of {} requests/s answered in the last half of the window",
        rounded(answered / seconds),
        rounded(offered / seconds)
    );
    if let Some(servers) = server_busy(evidence) {
        sentence += &format!(", the server worked for {}", percent(servers));
    }
    if let Some((_, busy)) = worst(evidence, |worker| worker.busy_ns) {
        sentence += &format!(", the busiest worker worked for {}", percent(busy));
    }
    if let Some((_, delayed)) =
        worst(evidence, |worker| denied_ns(worker, evidence)).filter(|(_, delayed)| *delayed > STEAL.caution)
    {
        sentence += &format!(" and waited for a CPU for up to {}", percent(delayed));
    }
    let latency = [Series::P50, Series::P99, Series::Throughput];
    let moved = |id: &str| latency.into_iter().any(|series| evidence.steady.fires(id, series));
    Some(Cause {
        kind: CauseKind::SaturatedServer,
        sentence,
        fix: Cow::Owned(format!(
            "--rate {} (80 % of what it answered), or let brunt search find the highest rate that it keeps up with",
            rounded(OFFERED * answered / seconds)
        )),
        checks: vec![check.id],
        follows: open.those(&[
            ("SAMPLES", true),
            ("RATE", true),
            ("LAG", true),
            ("CI-THIN", true),
            ("UNTIL", true),
            ("WARM", moved("WARM")),
            ("DRIFT", moved("DRIFT")),
            ("SHIFT", moved("SHIFT")),
            ("ERR", evidence.errors == 0),
        ]),
        sets_load: false,
    })
}

/// Did the server keep up with the offered rate?
pub(super) fn saturation(evidence: &Evidence<'_>) -> Check {
    let Some(LastHalf { offered, answered, seconds }) = evidence.last_half.filter(|half| half.offered > 0.0)
    else {
        return Check::skipped("SAT", "closed loop: the server's pace is the rate", SATURATION.caution);
    };
    let missing = offered - answered;
    let value = missing / offered;
    let is_chance = missing <= SATURATION_DEVIATIONS * offered.sqrt();
    let status = if is_chance { CheckStatus::Ok } else { SATURATION.judge(value) };
    let (answered_rate, offered_rate) = (answered / seconds, offered / seconds);
    let message = format!(
        "{} requests/s answered of {}/s offered in the last half of the window",
        rounded(answered_rate),
        rounded(offered_rate)
    );
    let why = outage::gone_late(&evidence.down_servers, seconds);
    if status > CheckStatus::Ok && !why.is_empty() {
        let status = if evidence.judgement.is_strict { status } else { CheckStatus::Caution };
        let fix = "measure without an outage whether the servers keep up with this rate";
        let why = format!("{why}, which explains the shortfall or a part of it");
        return Check::judged("SAT", status, message, fix, value, SATURATION.caution).with([why]);
    }
    let growth = (status > CheckStatus::Ok).then(|| {
        let growth = rounded(missing / seconds);
        format!("the backlog grows by {growth} requests/s, and percentiles with the length of the run")
    });
    let fix = "offer less than the server can answer: lower the rate";
    Check::judged("SAT", status, message, fix, value, SATURATION.caution).with(growth)
}
