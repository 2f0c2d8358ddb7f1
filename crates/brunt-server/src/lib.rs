//! The reference server: a small in-memory memcached server (classic text protocol) whose timing is known by
//! construction. It is the default target, the calibration peer and the test peer.
//!
//! All connections share ONE virtual queue, first in, first out: a request departs at
//! `max(arrival, previous departure) + service time`, the service time of request n is a pure function of a seed and
//! n, and stalls and faults are scripted. So the response time that a correct client must see is a known number for
//! every single request.
//!
//! The way through this crate: bytes → [`text`] (parser) → [`cache`] (what a command does to the [`store`]) → [`core`]
//! (who departs when and how, by [`fifo`], [`service`], [`faults`], [`outage`] and [`drip`]) → [`mod@serve`] (sockets)
//! and [`log`] (what was done); [`law`] says what all that comes to. Everything but `serve` is pure: time is an argument.
//! [`beside`] serves in a thread, for tests.
//!
//! Not a production cache: it trusts its clients, it has one thread, and requests that wait in its queue are bounded
//! only by [`core::QUEUED_BYTES_MAX`]. It shares no code with the codecs, the workload or the statistics that are
//! tested against it; a misreading of the protocol would have to be made twice to go unseen.

#![forbid(unsafe_code)]

pub mod beside;
pub mod cache;
pub mod core;
pub mod drip;
pub mod faults;
pub mod fifo;
pub mod law;
pub mod log;
pub mod outage;
pub mod serve;
pub mod service;
mod span;
pub mod store;
pub mod text;

pub use crate::beside::serve_beside;
pub use crate::cache::Process;
pub use crate::core::{Core, CoreOptions, End};
pub use crate::drip::Drip;
pub use crate::faults::{Every, Faults};
pub use crate::fifo::Stall;
pub use crate::outage::Outage;
pub use crate::serve::{Options, serve};
pub use crate::service::Service;
