//! The engine: one event loop that turns a plan into traffic and traffic into recorded intervals.
//!
//! The way through this crate: [`run::run`] starts threads through `launch` and leads them through the phases; each
//! thread turns one `worker`, which owns its `traffic` (sessions, connections, operations in flight, recording) and one
//! `Io`. The engine knows neither who asked nor what is printed.

#![deny(unsafe_code)]

mod audit;
mod busy_period;
mod clock;
mod closed_stream;
pub mod cluster;
mod codecs;
mod connection;
pub mod coordinator;
mod deadline_queue;
mod flush;
mod group;
mod hash_slots;
mod health;
mod hint;
pub mod host;
mod in_flight;
pub mod in_process_run;
pub mod input_file;
mod io;
pub mod kernel_interface;
mod lane;
mod launch;
mod lifetime;
mod local_time;
mod pace;
mod ready;
mod recording;
mod redirect_state;
pub mod run;
mod run_error;
mod shared_slot;
mod stamper;
mod stats_poller;
mod timestamp_probe;
mod tokens;
mod trace_feed;
mod trace_reader;
mod traffic;
mod transport;
mod usage;
mod window_start;
mod worker;

pub use clock::monotonic_ns;
pub use closed_stream::standard_output_was_closed;
pub use codecs::check_commands;
pub use flush::flush;
pub use hint::hint;
pub use launch::allowed_cpus;
pub use local_time::utc_offset_s;
pub use timestamp_probe::timestamps_work;
pub use trace_reader::{TraceError, check_traces};
pub use transport::address::Address;
pub use transport::tls::client::{TlsClient, TlsSettings};

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod loopback;
#[cfg(test)]
mod simulated;
