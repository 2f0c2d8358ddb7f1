//! What the client error of a result rests on, and how reports name it for that.
//!
//! Not the error. Invariant: an estimate is nowhere called a bound, nor is an incomplete bound called one without a word.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

brunt_plan::named! {
    /// What the client error rests on; of several, the largest is the weakest.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ClientBasis {
        /// Clock readings, which hold wake-ups: an upper bound.
        Clock = "clock": "upper bound of the client's part",
        /// Clock readings, and kernel timestamps of a sample of the requests: an estimate.
        Timestamps = "timestamps": "estimated part of the client",
        /// Clock readings and the cost of a wake-up, as too few requests have the timestamps that were to be taken.
        Incomplete = "incomplete": "incomplete bound of the client's part",
    }
}

impl ClientBasis {
    /// Stands between `client` and the error in texts.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Clock => "<=",
            Self::Timestamps => "<~",
            Self::Incomplete => "<=?",
        }
    }

    /// Stands before the error on pages.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Clock => "≤",
            Self::Timestamps => "≲",
            Self::Incomplete => "≤?",
        }
    }

    /// A row or a column of client errors, without blanks: `client<=`.
    pub fn label(self) -> String {
        format!("client{}", self.sign())
    }
}
