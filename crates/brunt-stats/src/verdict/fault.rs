//! The check of connections: was one lost, or could none be had, while the schedule ran, and did bytes come that are no reply?
//!
//! Not of requests (ERR says how many failed): a connection may be lost while nothing is out on it, and garbage may follow
//! a good reply. Requests then wait for another connection, or for none, and a server that says what was not asked for is
//! not known to be right in what it says else.

use super::cause::{Cause, CauseKind, OpenChecks};
use super::{Evidence, LostAgent};
use crate::check::{Check, CheckStatus, Limits};
use crate::fault::{Fault, FaultKind, FaultTable};
use crate::number_text::{percent, share, time};
use crate::steady::Series;
use brunt_plan::phase::Phase;

/// Share of requests for which bytes may come that are no reply: what ERR allows of failures, which they are.
const GARBAGE: Limits = Limits { caution: 0.0, not_trusted: 0.01 };

/// What the check looks at: warm-up, window and drain, for before them a fault ends the run or costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultEvidence {
    /// Faults of connections, in any phase.
    pub table: FaultTable,
    /// When the measured window began.
    pub measure_ns: u64,
    /// Requests sent, over the phases of the schedule.
    pub sent: u64,
}

impl FaultEvidence {
    /// The faults of the schedule.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Fault> {
        let of_schedule = |fault: &&Fault| {
            matches!(fault.phase, Phase::Warmup | Phase::Measure | Phase::Drain) && fault.count > 0
        };
        self.table.rows().iter().filter(of_schedule)
    }

    /// Faults of the schedule, one row for each kind.
    fn by_kind(&self) -> Vec<Fault> {
        let mut kinds: Vec<Fault> = Vec::new();
        for fault in self.rows() {
            match kinds.iter_mut().find(|held| held.kind == fault.kind) {
                Some(held) => {
                    held.count += fault.count;
                    held.first_ns = held.first_ns.min(fault.first_ns);
                }
                None => kinds.push(*fault),
            }
        }
        kinds.sort_by_key(|fault| fault.first_ns);
        kinds
    }

    /// A kind, how often, and when first, counted from the beginning of the window.
    fn told(&self, fault: &Fault) -> String {
        let kind = match fault.kind {
            FaultKind::Other(errno) => format!("error number {errno}"),
            kind => kind.name().replace('_', " "),
        };
        let sign = if fault.first_ns < self.measure_ns { '-' } else { '+' };
        let first = time(fault.first_ns.abs_diff(self.measure_ns));
        format!("{} {kind} (first at {sign}{first})", fault.count)
    }
}

/// Requests for which malformed bytes came.
fn garbage(evidence: &Evidence<'_>) -> u64 {
    let of_connections = evidence.faults.rows().filter(|fault| fault.kind == FaultKind::Malformed);
    of_connections.map(|fault| fault.count).sum::<u64>() + evidence.run.counts.datagrams.malformed
}

/// Are these too many for the run to say anything?
pub(super) fn is_garbage(evidence: &Evidence<'_>) -> bool {
    GARBAGE.judge(share(garbage(evidence), evidence.faults.sent)) == CheckStatus::NotTrusted
}

/// Was an agent lost, with what it had not handed over yet?
pub(super) fn lost_agent(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let LostAgent { name, reason, after_ns, after_interruption } = evidence.lost_agent.as_ref()?;
    // The window ends with the last that was recorded; what the agent recorded then, if anything, was not handed over.
    let when = match after_ns {
        Some(0) => "before the window".to_owned(),
        Some(after_ns) if *after_ns > evidence.window_ns => {
            format!("after {} of the window, noticed at {}", time(evidence.window_ns), time(*after_ns))
        }
        Some(after_ns) => format!("after {} of the window", time(*after_ns)),
        None => "while it measured".to_owned(),
    };
    let (sentence, fix) = match after_interruption {
        true => (
            format!("the run was interrupted, and agent {name} did not send the end of its part ({reason})"),
            "see why it did not end (its log, its host); the parts of the others are whole",
        ),
        false => (
            format!("agent {name} was lost {when} ({reason})"),
            "see what ended it (its log, its host), and run again",
        ),
    };
    Some(Cause {
        kind: CauseKind::LostAgent,
        sentence,
        fix: fix.into(),
        checks: Vec::new(),
        follows: open.those(&[
            ("SAMPLES", true),
            ("SHORT", true),
            ("RATE", true),
            ("SAT", true),
            ("UNTIL", true),
            ("DRIFT", evidence.steady.fires("DRIFT", Series::Throughput)),
            ("SHIFT", evidence.steady.fires("SHIFT", Series::Throughput)),
            ("LITTLE", true),
        ]),
        sets_load: false,
    })
}

/// Did the server, or whatever is at its address, send what is no reply?
pub(super) fn cause(evidence: &Evidence<'_>, open: &OpenChecks<'_>) -> Option<Cause> {
    let check = open.get("FAULT").filter(|_| is_garbage(evidence))?;
    let sent = evidence.faults.sent;
    Some(Cause {
        kind: CauseKind::Malformed,
        sentence: format!(
            "malformed bytes for {} of {} requests sent",
            percent(share(garbage(evidence), sent).min(1.0)),
            sent
        ),
        fix: check.fix.clone(),
        checks: vec![check.id],
        follows: open.those(&[("SAMPLES", true), ("RATE", true), ("ERR", true)]),
        sets_load: false,
    })
}

/// Were connections lost or refused, and did garbage come?
pub(super) fn faults(evidence: &Evidence<'_>) -> Check {
    let found = &evidence.faults;
    let malformed = evidence.run.counts.datagrams.malformed;
    let kinds = found.by_kind();
    let total: u64 = kinds.iter().map(|fault| fault.count).sum();
    let garbage = garbage(evidence);
    if total + malformed == 0 {
        let message = "no connection was lost or refused, and all that came was a reply".to_owned();
        return Check::judged("FAULT", CheckStatus::Ok, message, "", 0.0, 0.0);
    }
    let mut told: Vec<String> = kinds.iter().map(|fault| found.told(fault)).collect();
    match malformed {
        0 => {}
        1 => told.push("1 datagram that is no reply".to_owned()),
        some => told.push(format!("{} datagrams that are no reply", some)),
    }
    let message = format!("connections from warm-up to drain: {}", told.join(", "));
    let value = share(garbage, found.sent);
    let bytes = (garbage > 0).then(|| {
        format!("bytes that are no reply for {} of {} requests sent", percent(value.min(1.0)), found.sent)
    });
    let fix = match garbage {
        0 => {
            "read the rows of connection faults, and the server's log: requests wait while a connection is made anew"
        }
        _ => {
            "see the bytes beside \"no valid reply\": another protocol is spoken at this address (--protocol, --transport, the URL), or something between answers"
        }
    };
    let status = GARBAGE.judge(value).max(CheckStatus::Caution);
    Check::judged("FAULT", status, message, fix, (total + malformed) as f64, 0.0).with(bytes)
}
