//! One check of a run: its name, what it found and how that counts.
//!
//! [`crate::verdict`] has every check.

use std::borrow::Cow;

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its name; docs/measurement.md has all of them.
    pub id: &'static str,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found, with the numbers that decided: one clause.
    pub message: String,
    /// Further facts, a clause each, in the order in which they are printed. The short report leaves them out.
    pub details: Vec<String>,
    /// What to do about it: one clause; empty where there is nothing to do.
    pub fix: Cow<'static, str>,
    /// The number that was judged: nanoseconds for LAG and STALL, a count for SAMPLES, SHORT, CLOCK, FAULT, CONSERVE and VERIFY, a share for
    /// the others.
    pub value: f64,
    /// From where on it calls for care (or convicts, where there is no caution), in the unit of the value.
    pub threshold: f64,
}

impl Check {
    pub(crate) fn skipped(id: &'static str, message: &str, threshold: f64) -> Self {
        let (status, message) = (CheckStatus::Skipped, message.to_owned());
        Self { id, status, message, details: Vec::new(), fix: Cow::Borrowed(""), value: 0.0, threshold }
    }

    /// `fix` stays only where there is something to fix.
    pub(crate) fn judged(
        id: &'static str,
        status: CheckStatus,
        message: String,
        fix: &'static str,
        value: f64,
        threshold: f64,
    ) -> Self {
        let fix = Cow::Borrowed(if status > CheckStatus::Ok { fix } else { "" });
        Self { id, status, message, details: Vec::new(), fix, value, threshold }
    }

    pub(crate) fn with(self, details: impl IntoIterator<Item = String>) -> Self {
        Self { details: details.into_iter().collect(), ..self }
    }

    /// The message and the details in one line.
    pub fn text(&self) -> String {
        std::iter::once(self.message.as_str())
            .chain(self.details.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

brunt_plan::named! {
    /// How one check came out, from best to worst.
    pub enum CheckStatus {
        /// It does not apply to this run.
        Skipped = "skipped",
        /// Nothing found.
        Ok = "ok",
        /// Read the numbers with care.
        Caution = "caution",
        /// The numbers do not show what they claim to.
        NotTrusted = "not_trusted",
    }
}

/// A number above `caution` or `not_trusted` costs that status.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From which on a run needs care.
    pub caution: f64,
    /// From which on it is not trusted.
    pub not_trusted: f64,
}

impl Limits {
    pub(crate) fn judge(self, value: f64) -> CheckStatus {
        if value > self.not_trusted {
            CheckStatus::NotTrusted
        } else if value > self.caution {
            CheckStatus::Caution
        } else {
            CheckStatus::Ok
        }
    }
}

/// The checks whose names a user may give, in the order of the report.
pub const CHECKS: [&str; 26] = [
    "SAMPLES", "SHORT", "RATE", "SAT", "LAG", "STALL", "CPU", "STEAL", "CLOCK", "COLO", "NET", "CI-THIN",
    "UNTIL", "WARM", "DRIFT", "SHIFT", "HEADROOM", "ERR", "FAULT", "CONSERVE", "LITTLE", "VERIFY", "PEER",
    "SERVER", "CACHE", "REPEAT",
];

/// Names of checks in a file.
pub(crate) mod check_ids {
    use super::CHECKS;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(ids: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
        ids.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<&'static str>, D::Error> {
        let known = |id: &String| CHECKS.into_iter().find(|known| known == id);
        let ids = Vec::<String>::deserialize(deserializer)?;
        ids.iter().map(|id| known(id).ok_or_else(|| D::Error::custom("a check that there is not"))).collect()
    }
}
