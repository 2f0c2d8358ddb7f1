//! The phases of a run, in order.

use serde::{Deserialize, Serialize};

/// What a worker is doing. An op belongs to the phase that its intended time lies in, whenever its reply comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Phase {
    /// Connections are being established.
    Connect,
    /// Every key is being stored, and seen stored.
    Preload,
    /// The schedule runs, nothing is measured yet.
    Warmup,
    /// The measured window.
    Measure,
    /// The window is over; replies are awaited, and follow-up ops are sent.
    Drain,
}

impl Phase {
    /// How many phases there are.
    pub const COUNT: usize = 5;

    /// All phases, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Connect, Self::Preload, Self::Warmup, Self::Measure, Self::Drain];

    /// The word in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Preload => "preload",
            Self::Warmup => "warmup",
            Self::Measure => "measure",
            Self::Drain => "drain",
        }
    }
}
