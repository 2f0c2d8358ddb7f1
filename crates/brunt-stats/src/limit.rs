//! What kept a run from going higher: the server, the client, something else, or nothing yet.
//!
//! Not a verdict (that says whether the numbers may be believed): a reading of one, for campaigns that look for a limit and
//! must not take the generator's for the server's. Invariant: a client that was convicted of lacking processor time never
//! accuses the server.

use crate::usage::BUSY;
use crate::verdict::{Check, CheckStatus, Verdict};

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// It could not keep up with the load, or answered with errors.
    Server,
    /// It could not offer the load as planned, or held replies for too long.
    Client,
    /// The numbers are not trusted for a reason that has nothing to do with the load.
    Neither,
}

impl Party {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Neither => "neither",
        }
    }
}

/// A limit that a run met, and the checks that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whose.
    pub party: Party,
    /// The ids of the checks, in the order of the verdict.
    pub checks: Vec<&'static str>,
}

/// Convicted of these, the client was late for most of what it measured or cannot tell the time, or the host kept it from its processor.
const LATE: [&str; 4] = ["LAG", "CLOCK", "CPU", "STEAL"];
/// A server that answers more than this share of requests with errors, or loses them, has met its limit.
const ERRORS: f64 = 0.01;

impl Limit {
    /// Reads a verdict; `None` where nothing was the limit.
    ///
    /// SAT counts from CAUTION on, for a backlog that grows is a limit, and it is the client's where a worker had no time left. Beside
    /// SAT, LAG says nothing: a server that falls behind fills every queue up to the schedule, and what waits there is booked as the
    /// client's lateness.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        let found = |select: &dyn Fn(&Check) -> bool| -> Vec<&'static str> {
            verdict.checks.iter().filter(|check| select(check)).map(|check| check.id).collect()
        };
        let convicts =
            |check: &Check| check.status == CheckStatus::NotTrusted && !verdict.judgement.allows(check.id);
        let is_saturated = |check: &Check| check.id == "SAT" && check.status >= CheckStatus::Caution;
        let is_behind = !found(&is_saturated).is_empty();
        let is_busy = |check: &Check| check.id == "CPU" && is_behind && check.value >= BUSY;
        let by =
            |party: Party, checks: Vec<&'static str>| (!checks.is_empty()).then_some(Self { party, checks });
        by(Party::Client, found(&is_busy))
            .or_else(|| by(Party::Server, found(&is_saturated)))
            .or_else(|| {
                let is_late = verdict.checks.iter().any(|check| LATE.contains(&check.id) && convicts(check));
                // With it, what a late client did not send.
                let is_its_own = |check: &Check| LATE.contains(&check.id) || check.id == "RATE";
                by(Party::Client, found(&|check| is_late && is_its_own(check) && convicts(check)))
            })
            .or_else(|| {
                let fails = |check: &Check| {
                    check.id == "RATE" && convicts(check) || check.id == "ERR" && check.value > ERRORS
                };
                by(Party::Server, found(&fails))
            })
            // Too few requests are no property of the load.
            .or_else(|| by(Party::Neither, found(&|check| check.id != "SAMPLES" && convicts(check))))
    }

    /// The checks in a row: `SAT`, `CPU STEAL`.
    pub fn names(&self) -> String {
        self.checks.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Judgement, Status};
    use CheckStatus::{Caution, NotTrusted, Ok};

    /// Id, status and number of a check.
    type Found = (&'static str, CheckStatus, f64);
    /// Whose limit it is, and the checks that say so.
    type Expected = Option<(Party, &'static str)>;

    #[test]
    fn who_is_the_limit() {
        let table: [(&[Found], Expected); 13] = [
            (&[("SAT", Ok, 0.0), ("LAG", Caution, 1.0), ("CPU", Caution, 0.99)], None),
            (&[("SAT", Caution, 0.02)], Some((Party::Server, "SAT"))),
            (&[("SAT", NotTrusted, 0.5), ("LAG", NotTrusted, 1.0)], Some((Party::Server, "SAT"))),
            (&[("LAG", NotTrusted, 1.0)], Some((Party::Client, "LAG"))),
            (&[("RATE", NotTrusted, 0.1), ("LAG", NotTrusted, 1.0)], Some((Party::Client, "RATE LAG"))),
            // No lateness to be seen in a percentile, and yet nothing left.
            (&[("SAT", NotTrusted, 0.5), ("CPU", Caution, 0.96)], Some((Party::Client, "CPU"))),
            (&[("SAT", NotTrusted, 0.5), ("CPU", Caution, 0.85)], Some((Party::Server, "SAT"))),
            // What others took from the host is no limit of its own.
            (&[("STEAL", Caution, 0.1), ("HEADROOM", Caution, 2.0)], None),
            (&[("SAT", NotTrusted, 0.5), ("STEAL", Caution, 0.1)], Some((Party::Server, "SAT"))),
            (&[("RATE", NotTrusted, 0.1), ("ERR", Caution, 0.1)], Some((Party::Server, "RATE ERR"))),
            (&[("VERIFY", NotTrusted, 1.0), ("ERR", Caution, 0.001)], Some((Party::Neither, "VERIFY"))),
            (&[("ERR", Caution, 0.01), ("RATE", Caution, 1.0)], None),
            (&[("SAMPLES", NotTrusted, 10.0)], None),
        ];
        for (checks, expected) in table {
            let check = |&(id, status, value): &Found| Check {
                id,
                status,
                message: String::new(),
                fix: "",
                value,
                threshold: 0.0,
            };
            let mut verdict = Verdict {
                status: Status::Caution,
                percentiles: Vec::new(),
                checks: checks.iter().map(check).collect(),
                judgement: Judgement::default(),
                causes: Vec::new(),
            };
            let limit = Limit::of(&verdict);
            let got = limit.as_ref().map(|limit| (limit.party, limit.names()));
            assert_eq!(got, expected.map(|(party, ids)| (party, ids.to_owned())), "{checks:?}");
            // What the user accepts is no limit; a backlog and failed requests are the server's all the same.
            verdict.judgement.allowed = ["VERIFY", "LAG", "RATE"].map(str::to_owned).into();
            let is_measured =
                |limit: &Limit| limit.checks.iter().all(|id| ["SAT", "CPU", "ERR"].contains(id));
            assert!(Limit::of(&verdict).as_ref().is_none_or(is_measured), "{checks:?}");
        }
    }
}
