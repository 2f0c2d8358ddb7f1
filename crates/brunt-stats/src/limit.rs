//! What kept a run from going higher: the server, the client, something else, or nothing yet.
//!
//! Not a verdict (that says whether the numbers may be believed): a reading of one, for campaigns that look for a limit and
//! must not take the client's limit for the server's. Invariant: a client that was convicted of lacking CPU time never
//! accuses the server.

use crate::check::{Check, CheckStatus};
use crate::verdict::{CauseKind, Verdict};

brunt_plan::named! {
    /// Whose limit it is.
    pub enum Bottleneck {
        /// It could not keep up with the load, or answered with errors.
        Server = "server",
        /// It could not offer the load as planned, or held replies for too long.
        Client = "client",
        /// The numbers are not trusted for a reason that has nothing to do with the load.
        Neither = "neither",
    }
}

impl Bottleneck {
    /// Whom a check means: the bottleneck of what explains it, else that of its own kind.
    fn of(verdict: &Verdict, id: &str) -> Self {
        match verdict.cause_of(id).map(|cause| cause.kind) {
            Some(
                CauseKind::Outage
                | CauseKind::ShortOutage
                | CauseKind::ErrorReplies
                | CauseKind::SaturatedServer,
            ) => Self::Server,
            Some(
                CauseKind::TooManyThreads
                | CauseKind::BusyClient
                | CauseKind::SharedProcessor
                | CauseKind::BusyNeighbour
                | CauseKind::CpuQuota
                | CauseKind::ClientStop
                | CauseKind::WakeUps,
            ) => Self::Client,
            Some(CauseKind::LostAgent | CauseKind::Malformed | CauseKind::Cache | CauseKind::Finding)
            | None => match id {
                id if SERVERS.contains(&id) => Self::Server,
                id if LATE.contains(&id) => Self::Client,
                _ => Self::Neither,
            },
        }
    }
}

/// A limit that a run met, and the checks that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whose.
    pub bottleneck: Bottleneck,
    /// The ids of the checks, in the order of the verdict.
    pub checks: Vec<&'static str>,
}

/// By themselves these mean the server: a backlog that grows, and requests that were never sent or failed.
const SERVERS: [&str; 3] = ["SAT", "RATE", "ERR"];
/// Convicted of these, the client was late for most of what it measured or cannot tell the time, or the host kept it from its processor.
const LATE: [&str; 4] = ["LAG", "CLOCK", "CPU", "STEAL"];
/// A server that answers more than this share of requests with errors, or loses them, has met its limit.
const ERRORS: f64 = 0.01;

/// Which checks are meant.
type Selection<'a> = &'a dyn Fn(&Check) -> bool;

impl Limit {
    /// Reads a verdict; `None` where nothing was the limit.
    ///
    /// A check means whom the cause that accounts for it means. SAT counts from CAUTION on, for a backlog that grows is a limit. Beside
    /// SAT, LAG says nothing: whose the backlog is, the time that workers had left says.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        let convicts =
            |check: &Check| check.status == CheckStatus::NotTrusted && !verdict.judgement.allows(check.id);
        let is_saturated = |check: &Check| check.id == "SAT" && check.status >= CheckStatus::Caution;
        let is_late = |check: &Check| LATE.contains(&check.id) && convicts(check);
        let is_unsent = |check: &Check| check.id == "RATE" && convicts(check);
        let is_failing = |check: &Check| is_unsent(check) || check.id == "ERR" && check.value > ERRORS;
        let is_of_load = |check: &Check| is_saturated(check) || is_late(check) || is_failing(check);
        // Too few requests are no property of the load.
        let is_worthless = |check: &Check| check.id != "SAMPLES" && convicts(check);
        // With a late client, what it did not send.
        let is_late_or_unsent = |check: &Check| is_late(check) || is_unsent(check);
        let kinds: [(Selection<'_>, Selection<'_>); 4] = [
            (&is_saturated, &is_saturated),
            (&is_late, &is_late_or_unsent),
            (&is_failing, &is_failing),
            (&is_worthless, &is_worthless),
        ];
        kinds.into_iter().find_map(|(decides, belongs)| {
            let decisive = verdict.checks.iter().find(|check| decides(check))?;
            let bottleneck = match is_of_load(decisive) {
                true => Bottleneck::of(verdict, decisive.id),
                false => Bottleneck::Neither,
            };
            let shown = verdict.cause_of(decisive.id).filter(|cause| !cause.checks.is_empty());
            let checks = match shown.filter(|_| bottleneck == Bottleneck::Client && decisive.id == "SAT") {
                Some(cause) => cause.checks.clone(),
                None => verdict.checks.iter().filter(|check| belongs(check)).map(|check| check.id).collect(),
            };
            Some(Self { bottleneck, checks })
        })
    }

    /// The checks in a row: `SAT`, `CPU STEAL`.
    pub fn names(&self) -> String {
        self.checks.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Cause, Judgement, Status};
    use CheckStatus::{Caution, NotTrusted, Ok};

    /// Id, status and number of a check.
    type Found = (&'static str, CheckStatus, f64);
    /// Whose limit it is, and the checks that say so.
    type Expected = Option<(Bottleneck, &'static str)>;

    /// A verdict in which these checks found something, with this cause.
    fn verdict(checks: &[Found], cause: Option<Cause>) -> Verdict {
        let check = |&(id, status, value): &Found| Check {
            id,
            status,
            message: String::new(),
            details: Vec::new(),
            fix: "".into(),
            value,
            threshold: 0.0,
        };
        Verdict {
            status: Status::Caution,
            percentiles: Vec::new(),
            rows: Vec::new(),
            checks: checks.iter().map(check).collect(),
            judgement: Judgement::default(),
            causes: cause.into_iter().collect(),
        }
    }

    #[test]
    fn limit_is_that_of_the_cause() {
        let by = |kind: CauseKind, checks: &[&'static str], follows: &[&'static str]| {
            let (checks, follows) = (checks.to_vec(), follows.to_vec());
            Cause { kind, sentence: String::new(), fix: "".into(), checks, follows, sets_load: false }
        };
        let table: [(&[Found], Option<Cause>, Expected); 17] = [
            (&[("SAT", Ok, 0.0), ("LAG", Caution, 1.0), ("CPU", Caution, 0.99)], None, None),
            (&[("SAT", Caution, 0.02)], None, Some((Bottleneck::Server, "SAT"))),
            (&[("SAT", NotTrusted, 0.5), ("LAG", NotTrusted, 1.0)], None, Some((Bottleneck::Server, "SAT"))),
            (&[("LAG", NotTrusted, 1.0)], None, Some((Bottleneck::Client, "LAG"))),
            (
                &[("RATE", NotTrusted, 0.1), ("LAG", NotTrusted, 1.0)],
                None,
                Some((Bottleneck::Client, "RATE LAG")),
            ),
            // No lateness to be seen in a percentile, and yet nothing left.
            (
                &[("SAT", NotTrusted, 0.5), ("CPU", Caution, 0.96)],
                Some(by(CauseKind::BusyClient, &["CPU"], &["SAT"])),
                Some((Bottleneck::Client, "CPU")),
            ),
            (
                &[("SAT", NotTrusted, 0.5), ("CPU", Caution, 0.85)],
                Some(by(CauseKind::SaturatedServer, &["SAT"], &[])),
                Some((Bottleneck::Server, "SAT")),
            ),
            // What the host did to the client accuses no server, whether a check shows it or not.
            (
                &[("SAT", NotTrusted, 0.5), ("STEAL", Caution, 0.3)],
                Some(by(CauseKind::BusyNeighbour, &["STEAL"], &["SAT"])),
                Some((Bottleneck::Client, "STEAL")),
            ),
            (
                &[("SAT", NotTrusted, 0.5)],
                Some(by(CauseKind::SharedProcessor, &[], &["SAT"])),
                Some((Bottleneck::Client, "SAT")),
            ),
            // A server that is down makes the client late.
            (
                &[("LAG", NotTrusted, 1.0)],
                Some(by(CauseKind::Outage, &[], &["LAG"])),
                Some((Bottleneck::Server, "LAG")),
            ),
            // What others took from the host is no limit of its own.
            (&[("STEAL", Caution, 0.1), ("HEADROOM", Caution, 2.0)], None, None),
            (&[("SAT", NotTrusted, 0.5), ("STEAL", Caution, 0.1)], None, Some((Bottleneck::Server, "SAT"))),
            (
                &[("RATE", NotTrusted, 0.1), ("ERR", Caution, 0.1)],
                None,
                Some((Bottleneck::Server, "RATE ERR")),
            ),
            (
                &[("VERIFY", NotTrusted, 1.0), ("ERR", Caution, 0.001)],
                None,
                Some((Bottleneck::Neither, "VERIFY")),
            ),
            // A thin interval is no limit, whatever made it thin.
            (
                &[("CI-THIN", NotTrusted, 1.0)],
                Some(by(CauseKind::BusyNeighbour, &["STEAL"], &["CI-THIN"])),
                Some((Bottleneck::Neither, "CI-THIN")),
            ),
            (&[("ERR", Caution, 0.01), ("RATE", Caution, 1.0)], None, None),
            (&[("SAMPLES", NotTrusted, 10.0)], None, None),
        ];
        for (checks, cause, expected) in table {
            let mut verdict = verdict(checks, cause);
            let limit = Limit::of(&verdict);
            let got = limit.as_ref().map(|limit| (limit.bottleneck, limit.names()));
            assert_eq!(got, expected.map(|(bottleneck, ids)| (bottleneck, ids.to_owned())), "{checks:?}");
            // What the user accepts is no limit; a backlog and failed requests are one all the same.
            verdict.judgement.allowed = ["VERIFY", "LAG", "RATE", "CI-THIN"].map(str::to_owned).into();
            let is_measured =
                |limit: &Limit| limit.checks.iter().all(|id| ["SAT", "CPU", "STEAL", "ERR"].contains(id));
            assert!(Limit::of(&verdict).as_ref().is_none_or(is_measured), "{checks:?}");
        }
    }
}
