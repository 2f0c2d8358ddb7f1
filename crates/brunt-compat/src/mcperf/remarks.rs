//! What mcperf's report has no place for: notes and warnings that follow it.
//!
//! Not the report. Invariant: each line begins with its level.

use super::numbers::Numbers;
use brunt_plan::outcome::ReplyKind;
use brunt_stats::connection::FaultKind;
use brunt_stats::summary::Summary;
use std::io;

/// The levels of mcperf's log that ours have a place among.
const WARNING: u64 = 4;
const NOTE: u64 = 5;
const DETAIL: u64 = 6;

/// Is this line one for those who ask for this level?
pub fn is_shown(line: &str, verbosity: u64) -> bool {
    verbosity >= if line.starts_with("warning: ") { WARNING } else { NOTE }
}

/// The remarks of a run. At the highest levels there are more.
pub fn of(summary: &Summary, numbers: &Numbers, verbosity: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    let connections = &summary.connections;
    if verbosity >= DETAIL {
        let all = summary.record.plan.classes.iter().filter_map(|class| class.lifetime.total).sum::<u64>();
        let ended = connections.retired + connections.lost;
        let (failed, established) = (connections.failed, connections.established);
        remarks.push(format!("note: of {all} connections {established} were created, and {failed} failed"));
        remarks.push(format!("note: of {all} connections {ended} were destroyed"));
    }
    let errors = [ReplyKind::Error, ReplyKind::ClientError, ReplyKind::ServerError];
    let refused: u64 = errors.into_iter().map(|kind| numbers.reply(kind)).sum();
    if refused > 0 {
        let of = numbers.responses;
        remarks.push(format!(
            "warning: {refused} of {of} responses are errors, which are in none of the response times"
        ));
    }
    remarks.extend(crate::remarks::said(summary).map(|said| format!("warning: the server sent {said}")));
    remarks.extend(crate::remarks::unsent(summary, "calls"));
    remarks.extend(faults(summary));
    remarks.extend(crate::remarks::status(summary));
    remarks
}

/// What is in the lines of errors, where that wants an explanation.
fn faults(summary: &Summary) -> Vec<String> {
    let count = |kind: FaultKind| {
        let rows = summary.faults().rows().iter().filter(|row| row.kind == kind);
        rows.map(|row| row.count).sum::<u64>()
    };
    let mut remarks = Vec::new();
    for (kind, why) in [
        (FaultKind::ClosedByPeer, "closed by the server in good order"),
        (FaultKind::Malformed, "ended for bytes that are no reply"),
    ] {
        let count = count(kind);
        if count > 0 {
            remarks.push(format!("note: of other, {count} connections were {why}"));
        }
    }
    for fault in summary.faults().rows() {
        if let FaultKind::Other(number) = fault.kind {
            let reason = io::Error::from_raw_os_error(number);
            remarks.push(format!("note: of other, {}: {reason}", fault.count));
        }
    }
    for (kind, word) in [
        (FaultKind::NoPort, "addrunavail"),
        (FaultKind::NoDescriptor, "fd-unavail"),
        (FaultKind::NoFile, "ftab-full"),
    ] {
        let (count, remedy) = (count(kind), kind.remedy().unwrap_or_default());
        if count > 0 {
            remarks.push(format!("note: {word} {count}: {remedy}"));
        }
    }
    remarks
}
