//! How strictly a user wants a run to be judged: what `--strict` and `--allow` make of a check.
//!
//! Not the checks. Invariant: what is allowed is never invalid.

use crate::check::{Check, CheckId, CheckStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
