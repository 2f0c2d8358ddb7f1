//! The engine: one event loop that turns a plan into traffic and traffic into recorded intervals.
//!
//! The way through this crate: [`run::run`] starts threads through `launch` and leads them through the phases; each
//! thread turns one `worker`, which owns its `traffic` (sessions, connections, operations in flight, recording) and one
//! `Io`. The engine knows neither who asked nor what is printed.

#![deny(unsafe_code)]

mod agenda;
mod audit;
mod busy;
mod clock;
mod closed_stream;
pub mod cluster;
pub mod company;
mod connection;
mod detour;
mod dialect;
mod flush;
mod group;
mod health;
mod hint;
pub mod host;
mod in_flight;
pub mod input_file;
mod io;
pub mod kernel_interface;
mod lane;
mod launch;
mod lease;
mod lifetime;
mod local_time;
mod opening;
mod pace;
mod ready;
mod recording;
pub mod rehearsal;
pub mod run;
mod run_error;
mod slots;
mod stamp_trial;
mod stamper;
mod tokens;
mod trace_feed;
mod trace_reader;
mod traffic;
mod transport;
mod usage;
mod witness;
mod worker;

pub use clock::monotonic_ns;
pub use closed_stream::standard_output_was_closed;
pub use dialect::check_commands;
pub use flush::flush;
pub use hint::hint;
pub use launch::allowed_cpus;
pub use local_time::utc_offset_s;
pub use stamp_trial::timestamps_work;
pub use trace_reader::{NoTrace, check_traces};
pub use transport::address::Address;
pub use transport::tls::client::{TlsClient, TlsSettings};

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod loopback;
#[cfg(test)]
mod simulated;
