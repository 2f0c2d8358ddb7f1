//! Completes the error of one worker with what all workers have seen.
//!
//! Invariant: an error keeps its kind.

use crate::hint::{describe_malformed, hint, tls_hint};
use crate::run::blueprint::Blueprint;
use crate::run_error::RunError;
use crate::transport::endpoint::Endpoint;
use crate::worker::WorkerEnd;
use brunt_plan::plan::Plan;
use brunt_stats::fault::{Fault, FaultKind, FirstError, FirstMalformed};
use brunt_stats::store::IntervalStore;
use std::io;

/// The most servers that a message names.
const NAMES_MAX: usize = 3;

/// Adds the first reason and a hint to an error.
pub(super) fn with_context(
    error: RunError,
    ends: Vec<io::Result<WorkerEnd>>,
    intervals: IntervalStore,
    blueprint: &Blueprint,
) -> RunError {
    let plan = &blueprint.plan;
    match error {
        RunError::NoReply { server, reason } => RunError::NoReply { server, reason: reason + tls_hint(plan) },
        RunError::SetupRejected { server, reason } => {
            let ends: Vec<WorkerEnd> = ends.into_iter().flatten().collect();
            RunError::SetupRejected { server, reason: reason + &first_hint(plan, &ends) }
        }
        RunError::PreloadFailed { confirmed, reason: cause, .. } => {
            let mut ends: Vec<WorkerEnd> = ends.into_iter().flatten().collect();
            let mut faults = intervals.faults().clone();
            for end in &mut ends {
                faults.merge(&end.last.take_interval(0).faults);
            }
            let mut reason = match first_reason(&ends, faults.rows()) {
                Some(first) if cause.is_empty() => first,
                Some(first) => format!("{cause}; {first}"),
                None if cause.is_empty() => "the server declined the others".to_owned(),
                None => cause,
            };
            let is_cut_off = |fault: &Fault| matches!(fault.kind, FaultKind::ClosedByPeer | FaultKind::Reset);
            if confirmed == 0 && !faults.rows().is_empty() && faults.rows().iter().all(is_cut_off) {
                reason += tls_hint(plan);
            }
            let hint = first_hint(plan, &ends);
            let servers = server_names(&blueprint.endpoints);
            RunError::PreloadFailed { servers, confirmed, wanted: plan.preload_stores(), reason, hint }
        }
        // The worker's own error is the reason.
        RunError::System(error) => RunError::System(ends.into_iter().find_map(Result::err).unwrap_or(error)),
        other => other,
    }
}

/// The first reason for a failed preload, if it is known.
fn first_reason(ends: &[WorkerEnd], faults: &[Fault]) -> Option<String> {
    if let Some(text) = ends.iter().find_map(|end| end.rejection.as_ref()) {
        return Some(format!("the server rejects a key: \"{text}\""));
    }
    if let Some(text) = ends.iter().find_map(|end| end.counts.first_error.as_ref()) {
        return Some(format!("first error \"{text}\""));
    }
    if let Some(garbage) = ends.iter().find_map(|end| end.counts.first_malformed.as_ref()) {
        return Some(describe_malformed(garbage));
    }
    let row = |fault: &Fault| match fault.kind {
        FaultKind::Other(errno) => {
            format!("{} × connection error: {}", fault.count, io::Error::from_raw_os_error(errno))
        }
        kind => format!("{} × connection {}", fault.count, kind.name()),
    };
    let rows: Vec<String> = faults.iter().map(row).collect();
    (!rows.is_empty()).then(|| rows.join(", "))
}

/// A hint from the first error or the first malformed bytes.
fn first_hint(plan: &Plan, ends: &[WorkerEnd]) -> String {
    let rejection = ends.iter().find_map(|end| end.rejection.as_ref());
    let error = rejection.or_else(|| ends.iter().find_map(|end| end.counts.first_error.as_ref()));
    let garbage = ends.iter().find_map(|end| end.counts.first_malformed.as_ref());
    let said = error.map(FirstError::bytes).or(garbage.map(FirstMalformed::bytes));
    said.map(|said| hint(plan, said)).unwrap_or_default()
}

/// Names of servers, the first few of many.
fn server_names(endpoints: &[Endpoint]) -> String {
    let names: Vec<String> =
        endpoints.iter().take(NAMES_MAX).map(|endpoint| endpoint.server.to_string()).collect();
    match endpoints.len().saturating_sub(NAMES_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
