//! The engine: one event loop that turns a plan into traffic and traffic into recorded intervals.
//!
//! [`run::run`] starts threads through `run/control_thread.rs` and drives them through the phases. Each thread iterates one
//! `worker`, which owns its `traffic`, the `state` below that, and one `io`. The folders are the layers: run,
//! worker, traffic, state, io, transport; imports point downwards.

mod clock;
mod codecs;
pub mod input_file;
mod io;
pub mod memory;
pub mod process;
pub mod run;
mod run_error;
mod state;
mod trace_file;
mod traffic;
mod transport;
mod worker;

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod loopback;
#[cfg(test)]
mod simulated;

pub use clock::{monotonic_ns, unix_ns};
pub use codecs::check_commands;
pub use run::asking::ask_protocol;
pub use run::control_thread::allowed_cpus;
pub use run::kernel_interface::{self, timestamps_work};
pub use run::trace_reader::check_traces;
pub use run::{cluster, coordinator, flush, host, in_process_run};
pub use run_error::{RunError, ServerFailure, TraceError, hint};
pub use trace_file::TraceFile;
pub use transport::Address;
pub use transport::tls_client::{TlsClient, TlsSettings};
