//! Several hosts as a command line has them: one that waits to be led, and one that leads others.
//!
//! Not what they say to each other. Invariant: paths are as the user gave them.

/// A process that waits to be led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMode {
    /// Where it listens; 0 is any port that is free.
    pub port: u16,
    /// Its threads.
    pub threads: u32,
    /// How much each of them weighs.
    pub lambda_mul: u32,
    /// They are pinned.
    pub affinity: bool,
    /// They sleep, whatever the master says.
    pub blocking: bool,
    /// Nothing is said on standard error.
    pub quiet: bool,
    /// The folder of those who may lead it; without one everybody may.
    pub auth: Option<String>,
    /// What was given and is the master's to say, each without its prefix.
    pub warnings: Vec<String>,
}

/// A process that leads others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerMode {
    /// The agents, each with its port.
    pub agents: Vec<(String, u16)>,
    /// The folder of those whom it trusts.
    pub auth: Option<String>,
    /// Its own threads.
    pub threads: u32,
    /// Agents tell what is metered beside counts and histograms.
    pub meters: bool,
}

/// What an agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCapacity {
    /// Its address as the user gave it, with its port.
    pub name: String,
    /// Its host, as that calls itself.
    pub host: String,
    /// Its threads.
    pub threads: u32,
    /// How much each of them weighs.
    pub weight: u32,
}
