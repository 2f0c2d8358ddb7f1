//! The host that runs a class where a run has agents: every agent, or the controller alone.

use crate::words::words;

words! {
    /// The hosts that run a class.
    #[derive(Default)]
    pub enum HostRole {
        /// All agents, which divide the class between them.
        #[default]
        Agents = "agents",
        /// The controller alone. Its host carries no other load, so its measurements are undisturbed.
        Controller = "controller",
    }
}
