//! Several hosts as one load generator: a controller leads agents, each of which carries out its share of one plan.
//!
//! Not a second engine: an agent runs [`brunt_engine::run::run_part`] on the workers that are its own, and the controller the same
//! on its own, if it has any; what they say to each other is an implementation of [`brunt_engine::coordinator::Coordinator`] on either
//! side. Invariant: what agents recorded is added up exactly, as if one host had all the workers.
//!
//! `agent_handshake` → `frame` → `message` is what travels, `message_channel` how; `credentials` is who may; `door` and `newcomer` let agents in,
//! whichever side dialled; `agent_traces` finds the files of a plan that names none; `agent` and `controller` are the two ends.

#![forbid(unsafe_code)]

mod agent;
pub mod agent_handshake;
pub mod agent_traces;
pub mod clock_offset;
mod controller;
pub mod credentials;
mod door;
pub mod frame;
pub mod message;
mod message_channel;
mod newcomer;
mod phase_limits;
pub mod rank;

pub use agent::{Agent, Endpoints, Keep, Open, TargetFiles};
pub use controller::{Fleet, STARTING_MAX};

pub use credentials::{AgentCredentials, ControllerCredentials};

/// The port of agents, unless another is named: mutilate's.
pub const PORT: u16 = 5556;
