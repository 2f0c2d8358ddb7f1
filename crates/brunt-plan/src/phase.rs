//! The phases of a run, in order.

use serde::{Deserialize, Serialize};

crate::named! {
    /// What a worker is doing. An op belongs to the phase that its intended time lies in, whenever its reply comes.
    #[derive(Serialize, Deserialize)]
    #[repr(u8)]
    pub enum Phase {
        /// Connections are being established.
        Connect = "connect",
        /// Every key is being stored, and seen stored.
        Preload = "preload",
        /// The schedule runs, nothing is measured yet.
        Warmup = "warmup",
        /// The measured window.
        Measure = "measure",
        /// The window is over; replies are awaited, and follow-up ops are sent.
        Drain = "drain",
    }
}
