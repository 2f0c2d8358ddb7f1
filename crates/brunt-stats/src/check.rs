//! The six checks of a run: one table of what each measures and from where on it calls for care, what one of them found, and how strictly a
//! user wants it judged.
//!
//! Not how they decide ([`crate::status`]). Invariants: help and documentation are printed from [`RULES`]; what is allowed is never invalid.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

brunt_plan::named! { serialized
    /// A check, by the name that reports and `--allow` have for it.
    pub enum CheckId {
        /// The counts, the clock or the replies are wrong.
        Broken = "BROKEN",
        /// The load grew beyond what was answered.
        Load = "LOAD",
        /// The client's part of the latencies.
        Client = "CLIENT",
        /// Too few requests, or too many that failed.
        Data = "DATA",
        /// The run changed while it was measured.
        Steady = "STEADY",
        /// Runs of one plan disagree.
        Repeat = "REPEAT",
    }
}

brunt_plan::named! { serialized
    /// How one check came out, from best to worst.
    pub enum CheckStatus {
        /// The run cannot have it.
        Skipped = "skipped",
        /// Nothing found.
        Ok = "ok",
        /// Read the numbers with care.
        Caution = "caution",
        /// The numbers do not show what they claim to.
        Invalid = "invalid",
    }
}

/// What a check is, for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub id: CheckId,
    /// What it measures.
    pub measures: &'static str,
    /// From where on it calls for care.
    pub caution: &'static str,
    /// From where on the run is INVALID.
    pub invalid: &'static str,
    /// What that means for the numbers.
    pub means: &'static str,
    /// What helps.
    pub fix: &'static str,
}

/// Every check, in the order of reports.
pub const RULES: [Rule; CheckId::ALL.len()] = [
    Rule {
        id: CheckId::Broken,
        measures: "The accounting of requests, keys and connections, Little's law, wrong values, a CLOCK_MONOTONIC that goes backwards, \
                   bytes that are no reply, a load that is incomplete (an agent lost, --requests not reached), and operations that the \
                   server did not count although we had their answers.",
        caution: "no more agents lost than --tolerate-lost, and nothing else",
        invalid: "any of these",
        means: "Something is wrong with the tool, the clock, the server or what answers in its place. No number of the run stands.",
        fix: "What the sentence names: the protocol and the address, a --prefix of its own for --verify, the lost agent. Please report an \
              accounting that does not balance, with the plan and the seed.",
    },
    Rule {
        id: CheckId::Load,
        measures: "The backlog of an open loop: by how much the number of requests that wait or are in flight grew over the window, by \
                   class. A closed loop is ok; what limits it is named.",
        caution: "more than 1 % of the requests due, and at least 20; or at least 100 whose wait exceeds half the p99",
        invalid: "more than 5 %, and at least 20; or caution, and the last quarter's median is above twice the first's",
        means: "Requests come faster than they are answered, so that latencies grow with the length of the run: none may be quoted. The \
                throughput stands. The limit is the connections, the client or the server.",
        fix: "More connections (-c, computed from the unloaded service time) if these are the limit; else a lower rate. brunt search finds \
              the highest rate within a bound.",
    },
    Rule {
        id: CheckId::Client,
        measures: "The client's part of each percentile that is asked for (by default p50, p90 and p99), stops of the client, and requests \
                   that it had no time to send.",
        caution: "more than half of one of the percentiles; a stop longer than the p99; in a closed loop stops of 1 % of the window",
        invalid: "in an open loop: more than 1 % of the requests due were never sent for lack of its time, or more than half of every \
                  percentile is its part",
        means: "brunt or its host held the requests or their replies for that long. True latencies lie between the printed ones and these \
                less the client's part.",
        fix: "What the sentence names: more --threads where processors are free, --cpus apart from the server's, a host without other \
              programs, a larger CPU quota.",
    },
    Rule {
        id: CheckId::Data,
        measures: "Percentiles that are asked for and have too few requests (-) or no end of their interval (open), and failed requests.",
        caution: "any; or more requests failed or were never sent than may lie above one of the percentiles; or an outage of more than a \
                  tenth of the window",
        invalid: "more than half of the requests failed",
        means: "Latencies are those of the requests that were answered, and too few requests make a percentile a matter of chance.",
        fix: "A longer --time, or what made requests fail: the first error reply, the table of outages, the server's log.",
    },
    Rule {
        id: CheckId::Steady,
        measures: "One change of the median response time, or of the hit ratio, over 30 batches of the window without outages (an exact \
                   rank test). Not with rate profiles or MMPP arrivals.",
        caution: "a change of more than 10 % that chance makes in less than 1 % of runs",
        invalid: "-",
        means: "The window has two states, and its numbers mix them.",
        fix: "A longer --warmup where the change is near the beginning, a preload where the cache fills; else what happened to the server \
              at that time.",
    },
    Rule {
        id: CheckId::Repeat,
        measures: "With --repeat: the range of p50, p99, p99.9 and each percentile that is asked for, over its median.",
        caution: "more than 10 %, and the intervals of two runs do not meet; without intervals more than 50 %",
        invalid: "-",
        means: "No run speaks for the others. Quote the range.",
        fix: "What differs from run to run: a restart, memory layout, another program on the host.",
    },
];

impl CheckId {
    /// What it is, for readers.
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Which.
    pub id: CheckId,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found, as one sentence without its full stop.
    pub message: String,
    /// What to do about it; empty where there is nothing to do.
    pub fix: Cow<'static, str>,
    /// The number that was judged: a count for BROKEN, a share for the others.
    pub value: f64,
    /// From where on it calls for care (or is invalid, where there is no caution), in the unit of the value.
    pub threshold: f64,
}

impl Check {
    pub(crate) fn skipped(id: CheckId, message: impl Into<String>) -> Self {
        let (status, message) = (CheckStatus::Skipped, message.into());
        Self { id, status, message, fix: Cow::Borrowed(""), value: 0.0, threshold: 0.0 }
    }

    pub(crate) fn ok(id: CheckId, message: impl Into<String>) -> Self {
        Self { status: CheckStatus::Ok, ..Self::skipped(id, message) }
    }

    pub(crate) fn with_value(self, value: f64, threshold: f64) -> Self {
        Self { value, threshold, ..self }
    }

    pub(crate) fn with_fix(self, fix: impl Into<Cow<'static, str>>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    pub(crate) fn found(id: CheckId, status: CheckStatus, message: impl Into<String>) -> Self {
        Self { status, ..Self::skipped(id, message) }
    }

    /// The sentence, and behind an arrow what to do.
    pub fn text(&self) -> String {
        match self.fix.as_ref() {
            "" => self.message.clone(),
            fix => format!("{} -> {fix}", self.message),
        }
    }
}

/// These are invalid instead of cautious in a strict judgement.
const STRICT: [CheckId; 4] = [CheckId::Load, CheckId::Client, CheckId::Steady, CheckId::Repeat];

/// How strictly a user wants a run to be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// As for a publication: cautions of LOAD, CLIENT, STEADY and REPEAT are invalid, and the client's part of a number may be 5 %.
    pub is_strict: bool,
    /// What would be INVALID for these is a CAUTION.
    pub allowed: Vec<CheckId>,
}

impl Judgement {
    pub(crate) fn weigh(&self, check: Check) -> Check {
        let is_caution = check.status == CheckStatus::Caution;
        let status = if self.is_strict && is_caution && STRICT.contains(&check.id) {
            CheckStatus::Invalid
        } else {
            check.status
        };
        let most = if self.allowed.contains(&check.id) { CheckStatus::Caution } else { CheckStatus::Invalid };
        Check { status: status.min(most), ..check }
    }
}

/// An estimate of a count, such as a rate: a whole number.
pub(crate) fn rounded(number: f64) -> String {
    format!("{:.0}", number.round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_its_rule() {
        assert_eq!(RULES.map(|rule| rule.id).as_slice(), CheckId::ALL.as_slice());
    }

    /// On a mismatch the text that belongs between the marks is printed.
    #[test]
    fn documentation_has_the_table() {
        let document = include_str!("../../../docs/method.md");
        let mut table =
            "| check | measures | CAUTION | INVALID | means | helps |\n|---|---|---|---|---|---|\n"
                .to_owned();
        for Rule { id, measures, caution, invalid, means, fix } in RULES {
            table += &format!("| {} | {measures} | {caution} | {invalid} | {means} | {fix} |\n", id.name());
        }
        let (_, rest) = document.split_once("<!-- checks -->\n").unwrap();
        let (held, _) = rest.split_once("<!-- end of checks -->\n").unwrap();
        assert!(held == table, "docs/method.md: the table of checks is\n{table}");
    }
}
