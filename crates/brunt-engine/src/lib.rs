//! The engine: one event loop that turns a plan into traffic and traffic into recorded intervals.
//!
//! [`run::run`] starts threads through `run/launch.rs` and drives them through the phases. Each thread iterates one
//! `worker`, which owns its `traffic`, the `state` below that, and one `io`. The folders are the layers: run,
//! worker, traffic, state, io, transport; imports point downwards.

mod c_library;
mod clock;
mod codecs;
mod hint;
pub mod input_file;
mod io;
pub mod memory;
pub mod run;
mod run_error;
mod state;
pub mod system_error;
mod traffic;
mod transport;
mod worker;

pub use c_library::{standard_output_was_closed, utc_offset_s};
pub use clock::monotonic_ns;
pub use codecs::check_commands;
pub use hint::hint;
pub use run::flush::flush;
pub use run::kernel_interface::timestamps_work;
pub use run::launch::allowed_cpus;
pub use run::trace_reader::check_traces;
pub use run::{cluster, coordinator, host, in_process_run, kernel_interface};
pub use run_error::TraceError;
pub use transport::endpoint::Address;
pub use transport::tls_client::{TlsClient, TlsSettings};

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod loopback;
#[cfg(test)]
mod simulated;
