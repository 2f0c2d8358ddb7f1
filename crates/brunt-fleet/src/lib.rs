//! Several hosts as one load generator: a controller leads agents, each of which carries out its share of one plan.
//!
//! Not a second engine: an agent runs [`brunt_engine::run::run_part`] on the workers that are its own, and the controller the same
//! on its own, if it has any; what they say to each other is an implementation of [`brunt_engine::company::Company`] on either
//! side. Invariant: what agents recorded is added up exactly, as if one host had all the workers.
//!
//! `greeting` → `frame` → `message` is what travels, `link` how; `agent` and `controller` are the two ends.

#![forbid(unsafe_code)]

mod agent;
mod controller;
pub mod frame;
pub mod greeting;
mod link;
pub mod message;
pub mod offset;
mod trust;

pub use agent::{Agent, Opened};
pub use controller::{Fleet, FleetError, Patience};

pub use trust::{AgentTrust, ControllerTrust, TrustFiles};

/// The port of agents, unless another is named: mutilate's.
pub const PORT: u16 = 5556;
