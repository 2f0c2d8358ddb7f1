//! How long a run warms up before its measured window begins: a duration, or `auto`.
//!
//! With `auto` the window begins when the warm-up is level, never later than after [`Warmup::LONGEST`].

use crate::units::{DurationNs, text_form};
use std::fmt;

/// Load before the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// A fixed time.
    For(DurationNs),
    /// Until it is level.
    Auto,
}

impl Warmup {
    /// The least that `auto` takes.
    pub const SHORTEST: DurationNs = DurationNs::from_secs(1);
    /// The most that `auto` takes, level or not.
    pub const LONGEST: DurationNs = DurationNs::from_secs(60);
    /// No warm-up.
    pub const NONE: Self = Self::For(DurationNs(0));

    /// The most that it can take.
    pub const fn longest(self) -> DurationNs {
        match self {
            Self::For(length) => length,
            Self::Auto => Self::LONGEST,
        }
    }

    /// The warm-up limited to `most`, which replaces `auto`.
    pub fn at_most(self, most: DurationNs) -> Self {
        Self::For(self.longest().min(most))
    }

    fn of_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            text => text.parse().map(Self::For).map_err(|reason: String| format!("{reason}, or auto")),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(length) => write!(formatter, "{length}"),
            Self::Auto => formatter.write_str("auto"),
        }
    }
}

text_form!(Warmup);
