//! Causes before consequences: what the checks found, sorted by what explains it.
//!
//! Not a check: no cause changes a status. Each file that knows a kind of trouble says what of the findings it explains, by the numbers
//! of the run; here they take their turns. Invariant: every check that calls for care or convicts is in exactly one cause, either as
//! what shows it or as what follows from it.

use super::{Evidence, Judgement};
use crate::check::{Check, CheckStatus};
use std::borrow::Cow;

brunt_plan::named! {
    /// What kind of trouble it is.
    pub enum CauseKind {
        /// An agent of the run was lost.
        LostAgent = "lost_agent",
        /// A server answered no request for a while.
        Outage = "outage",
        /// One did for so short a time that no percentile shows it.
        ShortOutage = "short_outage",
        /// Bytes came that are no reply.
        Malformed = "malformed",
        /// Requests were answered with errors.
        ErrorReplies = "error_replies",
        /// The server did not keep up.
        SaturatedServer = "saturated_server",
        /// More workers than processors.
        TooManyThreads = "too_many_threads",
        /// A worker had little time left.
        BusyClient = "busy_client",
        /// Client and server wanted the same processor.
        SharedProcessor = "shared_processor",
        /// Other programs or other guests took processor time.
        BusyNeighbour = "busy_neighbour",
        /// The quota of the client's control group was used up.
        CpuQuota = "cpu_quota",
        /// The client stood still.
        ClientStop = "client_stop",
        /// The cache was not in a steady state.
        Cache = "cache",
        /// Workers sleep, and wake late.
        WakeUps = "wake_ups",
        /// What one check found, and nothing in the record explains.
        Finding = "finding",
    }
}

impl CauseKind {
    /// What it is and what helps, for a user who reads of it.
    pub const fn explanation(self) -> [&'static str; 2] {
        match self {
            Self::LostAgent => [
                "An agent ended, hung or could not be reached while it measured. The run ended then, and what the agent counted last is missing: whether counts add up and agree with the servers' is not judged.",
                "the output of the agent and its host; then another run",
            ],
            Self::Outage => [
                "A server answered no request for a while: it stood still, was away, or had no time. The table of outages has each with its length and what was wrong.",
                "the server's log and its host at that time",
            ],
            Self::ShortOutage => [
                "A server answered no request for so short a time that no printed percentile shows it.",
                "the server's log at that time, if the longest response times matter",
            ],
            Self::Malformed => [
                "Bytes came that are no reply of the protocol: something else answers, or another protocol is spoken.",
                "the right --protocol, port and --transport",
            ],
            Self::ErrorReplies => [
                "Most of the requests that failed were answered with an error. The first one is quoted: an unknown command, a wrong type, a key of another cluster node, no memory.",
                "the command, the option that the error speaks of, or the server's memory",
            ],
            Self::SaturatedServer => [
                "The server answered fewer requests than were offered, while the client had time left. The backlog grows as long as the run lasts.",
                "a lower --rate; brunt search finds the highest one that the server keeps up with",
            ],
            Self::TooManyThreads => [
                "There are more workers than processors, so that they wait for each other.",
                "as many --threads as there are processors, or fewer",
            ],
            Self::BusyClient => [
                "A worker had little time left, so that requests waited in the client.",
                "more --threads where processors are free, another host, or less load",
            ],
            Self::SharedProcessor => [
                "Client and server ran on the same processor and waited for each other.",
                "different processors: --cpus for brunt, taskset for the server, or another host for one of the two",
            ],
            Self::BusyNeighbour => [
                "Other programs on this host, or other guests of its hypervisor, used the workers' processors.",
                "an idle or dedicated host, or --cpus with processors that nothing else uses",
            ],
            Self::CpuQuota => [
                "The control group of the client had used up its processor time, and its workers stood still for the rest of each period.",
                "a higher quota (cpu.max or cpu.cfs_quota_us), or fewer --threads",
            ],
            Self::ClientStop => [
                "A worker stood still though no other program had its processor: it was stopped, or a system call did not return.",
                "nothing that stops or traces brunt, and enough memory that it is not swapped",
            ],
            Self::Cache => [
                "The cache filled or evicted items while it was measured, so that hits and misses are mixed in another way from second to second.",
                "a preload, a longer --warmup, or more memory for the server",
            ],
            Self::WakeUps => [
                "Workers sleep between requests, and each wake-up adds to the latency.",
                "--wait spin in an open loop, --wait hybrid in a closed one, on a host with a processor for each worker and one for the server",
            ],
            Self::Finding => [
                "What a check found and no cause explains. Its name is that of the check: brunt help LAG.",
                "what is said of the check",
            ],
        }
    }
}

/// One thing that was found, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it is.
    pub kind: CauseKind,
    /// What happened, with its number: `outage of 1.57 s at 127.0.0.1:17112`.
    pub sentence: String,
    /// What to do about it, in one line; empty where there is nothing to do.
    pub fix: Cow<'static, str>,
    /// The checks that show it, in the order of the verdict; none of an outage or an agent, which have tables of their own.
    pub checks: Vec<&'static str>,
    /// The checks that found only what it led to, in the order of the verdict.
    pub follows: Vec<&'static str>,
    /// It left a closed loop the load that was reached.
    pub sets_load: bool,
}

impl Cause {
    /// All checks that it accounts for.
    pub fn ids(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.checks.iter().chain(&self.follows).copied()
    }

    /// Is there anything that it explains?
    pub(super) fn explaining(self) -> Option<Self> {
        (!self.follows.is_empty() || self.sets_load).then_some(self)
    }
}

/// The checks that found something which no cause accounts for so far.
pub(super) struct OpenChecks<'a>(Vec<&'a Check>);

impl OpenChecks<'_> {
    pub(super) fn get(&self, id: &str) -> Option<&Check> {
        self.0.iter().find(|check| check.id == id).copied()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.get(id).is_some()
    }

    /// Those of these that are open and for which the evidence speaks, in the order of the verdict.
    pub(super) fn those(&self, claims: &[(&'static str, bool)]) -> Vec<&'static str> {
        let is_claimed = |id: &str| claims.iter().any(|(claimed, holds)| *claimed == id && *holds);
        self.0.iter().map(|check| check.id).filter(|id| is_claimed(id)).collect()
    }
}

/// One kind of trouble: is it there, and what of the open findings does it account for?
pub(super) type Candidate = fn(&Evidence<'_>, &OpenChecks<'_>) -> Option<Cause>;

/// The causes of what the checks found, the one that explains most first. Candidates are asked in their order; what one of them
/// accounts for is not the next one's.
pub(super) fn all(evidence: &Evidence<'_>, checks: &[Check], candidates: &[Candidate]) -> Vec<Cause> {
    let mut open = OpenChecks(checks.iter().filter(|check| check.status > CheckStatus::Ok).collect());
    let mut causes = Vec::new();
    for candidate in candidates {
        let Some(cause) = candidate(evidence, &open) else { continue };
        open.0.retain(|check| !cause.ids().any(|id| id == check.id));
        causes.push(cause);
    }
    causes.extend(open.0.into_iter().map(finding));
    let judgement = &evidence.judgement;
    causes.sort_by_key(|cause| std::cmp::Reverse(rank(cause, checks, judgement)));
    causes
}

fn finding(check: &Check) -> Cause {
    let sentence = check.message.clone();
    let (kind, checks, follows) = (CauseKind::Finding, vec![check.id], Vec::new());
    Cause { kind, sentence, fix: check.fix.clone(), checks, follows, sets_load: false }
}

/// A lost agent is first, an outage unless SAT convicts the run (SAT does not where an outage explains it), and a stop of the client that left a
/// closed loop its load. Then counts how bad the worst is
/// that a cause accounts for, and how much that is; the load of a closed loop is a finding, too. Of equally bad ones those are first that
/// do not depend on the client: answers that are none, and then a cache that changes, or a stop of the client beside shares of its time. What the host did without consequence and what the
/// user accepts are last.
fn rank(cause: &Cause, checks: &[Check], judgement: &Judgement) -> (bool, CheckStatus, u8, usize) {
    let counts = |check: &&Check| judgement.counts(check.id);
    let own = cause.ids().filter_map(|id| checks.iter().find(|check| check.id == id)).filter(counts);
    let is_load = cause.sets_load && cause.checks.iter().any(|id| !judgement.allows(id));
    let load = is_load.then_some(CheckStatus::Caution);
    let found: Vec<CheckStatus> = own.map(|check| check.status).chain(load).collect();
    let worst = found.iter().copied().max().unwrap_or(CheckStatus::Skipped);
    let is_saturated = |check: &Check| {
        check.id == "SAT" && check.status == CheckStatus::NotTrusted && judgement.counts(check.id)
    };
    let is_first = match cause.kind {
        CauseKind::LostAgent => true,
        CauseKind::Outage => !checks.iter().any(is_saturated),
        CauseKind::ClientStop => is_load,
        _ => false,
    };
    let weight = match cause.kind {
        CauseKind::Malformed | CauseKind::ErrorReplies => 2,
        CauseKind::Cache | CauseKind::ClientStop => 1,
        _ => 0,
    };
    (is_first, worst, weight, found.len())
}
