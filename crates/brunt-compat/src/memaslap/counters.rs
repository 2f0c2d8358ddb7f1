//! From a summary to memaslap's counters, and to what they have no place for.
//!
//! Not their layout, which is [`super::report`]'s. Invariant: the counters are of all commands, as there, those that filled the windows
//! beforehand among them; the last line is of the measured window alone.

use super::invocation::Invocation;
use super::report::Counters;
use super::tally::GETS;
use brunt_plan::op::OpKind;
use brunt_plan::phase::Phase;
use brunt_plan::quotation::Quotation;
use brunt_stats::summary::Summary;
use brunt_stats::verdict::{CheckStatus, Status};

/// What is counted of a run.
pub fn of(summary: &Summary, invocation: &Invocation) -> Counters {
    let mut counters = Counters::default();
    for phase in &summary.phases {
        counters.written_bytes += phase.bytes.tx;
        counters.read_bytes += phase.bytes.rx;
        if matches!(phase.phase, Phase::Measure | Phase::Drain) {
            counters.window_bytes += phase.bytes.tx + phase.bytes.rx;
        }
        for entry in &phase.ops {
            let (requests, keys) = (&entry.book.requests, &entry.book.keys);
            let commands = if entry.op == OpKind::Mget { keys.asked } else { requests.sent };
            counters.get_misses += keys.miss;
            if GETS.contains(&entry.op) {
                counters.cmd_get += commands;
            } else {
                counters.cmd_set += commands;
            }
            if phase.phase == Phase::Measure {
                counters.ops += commands;
            }
        }
    }
    let counts = summary.counts();
    let windows = &counts.windows;
    counters.verified = invocation.verifies.then_some([windows.verify_misses, windows.verify_failed]);
    counters.expired = invocation.expires.then_some([windows.expired_get, windows.unexpired_unget]);
    counters.object_bytes = windows.object_bytes;
    let datagrams = &counts.datagrams;
    counters.datagrams = invocation.has_datagrams.then_some([
        datagrams.packet_disorder,
        datagrams.packet_drop,
        datagrams.udp_timeout,
    ]);
    counters.seconds = seconds(summary);
    counters
}

/// From the beginning of the window to its end; of a run that ends after so many operations, to when the last had its reply.
fn seconds(summary: &Summary) -> f64 {
    let window = &summary.window;
    let end_ns = if summary.record.plan.stop.time.is_none() { window.drained_ns } else { window.end_ns };
    end_ns.saturating_sub(window.measure_ns) as f64 / 1e9
}

/// What the counters have no place for, each line with what it is: the verdict, failures, and what they were.
pub fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    let book = &summary.total.requests;
    if book.failed() + book.in_flight > 0 {
        let failed = book.failed() + book.in_flight;
        let of = book.scheduled;
        remarks.push(format!("warning: {failed} of {of} operations have no valid reply"));
    }
    if book.unsent > 0 {
        remarks.push(format!(
            "warning: {} of {} operations were due and never sent",
            book.unsent, book.scheduled
        ));
    }
    let counts = summary.counts();
    for (count, what) in [
        (counts.connections_abandoned, "connections were lost and stayed away"),
        (counts.replicas_missed, "parts of sets went to no replica, because it was gone"),
    ] {
        if count > 0 {
            remarks.push(format!("warning: {count} {what}"));
        }
    }
    if summary.total.requests.completed() > 0 {
        remarks.extend(said(summary).map(|said| format!("warning: a server sent {said}")));
    }
    let verdict = &summary.verdict;
    let decisive = |status: &CheckStatus| match verdict.status {
        Status::Trusted => false,
        Status::Caution => *status == CheckStatus::Caution,
        Status::NotTrusted => *status == CheckStatus::NotTrusted,
    };
    remarks.push(format!("note: verdict {}", verdict.status.name()));
    for check in verdict.checks.iter().filter(|check| decisive(&check.status)) {
        remarks.push(format!("note: {}: {}", check.id, check.message));
    }
    remarks
}

/// Why nothing was done.
pub fn nothing_done(summary: &Summary) -> String {
    if summary.total.requests.scheduled == 0 {
        return "nothing was asked for".to_owned();
    }
    let said = said(summary).map_or(String::new(), |said| format!("; it sent {said}"));
    format!("{} gave no valid reply to any operation{said}", summary.record.server)
}

/// The first error that a server replied; else the first bytes that are no reply, as when it closes a connection with a line for all.
fn said(summary: &Summary) -> Option<String> {
    let garbage = summary.counts().first_garbage.as_ref();
    let garbage = || garbage.map(|sent| format!("\"{}\": {}", Quotation(sent.bytes()), sent.reason));
    summary.counts().first_error.as_ref().map(|text| format!("an error: {text}")).or_else(garbage)
}
