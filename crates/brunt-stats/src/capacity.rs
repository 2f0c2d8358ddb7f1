//! What a search for a capacity came to. How it is searched for is in `capacity_search.rs`.

use serde::{Deserialize, Serialize};

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// A rate that holds, and one above it that does not.
    Between {
        /// The rate that holds.
        passed: f64,
        /// The rate that does not.
        failed: f64,
        /// The runs of both in turns agree.
        is_confirmed: bool,
    },
    /// The highest rate that may be tried holds.
    AtLeast {
        /// The rate, in requests per second.
        passed: f64,
    },
    /// Even the lowest rate was too much.
    Below {
        /// The rate, in requests per second.
        failed: f64,
    },
    /// The lowest rate neither held nor failed.
    Undecided {
        /// The rate, in requests per second.
        at: f64,
    },
    /// The client is the limit.
    ByClient {
        /// The rate at which the search ended.
        at: f64,
        /// The highest rate that held before.
        passed: Option<f64>,
    },
    /// What a step measured is wrong.
    Invalid {
        /// The rate at which the search ended.
        at: f64,
        /// The highest rate that held before.
        passed: Option<f64>,
    },
}

impl Capacity {
    /// The word in JSON and in lines for scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Between { is_confirmed: true, .. } => "confirmed",
            Self::Between { .. } => "unconfirmed",
            Self::AtLeast { .. } => "at_least",
            Self::Below { .. } => "below",
            Self::Undecided { .. } => "undecided",
            Self::ByClient { .. } => "client",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// Is it known of some rate whether it holds?
    pub const fn is_decided(&self) -> bool {
        matches!(self, Self::Between { .. } | Self::AtLeast { .. } | Self::Below { .. })
    }

    /// The highest rate that held.
    pub const fn passed(&self) -> Option<f64> {
        match *self {
            Self::Between { passed, .. } | Self::AtLeast { passed } => Some(passed),
            Self::ByClient { passed, .. } | Self::Invalid { passed, .. } => passed,
            Self::Below { .. } | Self::Undecided { .. } => None,
        }
    }

    /// The lowest rate that did not hold.
    pub const fn not_passed(&self) -> Option<f64> {
        match *self {
            Self::Between { failed: rate, .. }
            | Self::Below { failed: rate }
            | Self::Undecided { at: rate }
            | Self::ByClient { at: rate, .. }
            | Self::Invalid { at: rate, .. } => Some(rate),
            Self::AtLeast { .. } => None,
        }
    }
}
