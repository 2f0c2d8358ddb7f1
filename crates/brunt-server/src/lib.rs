//! The reference server: a small in-memory memcached and Redis whose timing is known by construction. It is the default
//! target, the calibration peer and the test peer.
//!
//! It speaks memcached's text, meta and binary protocols and Redis's in both versions, all of them at once: what a connection
//! says first decides. Behind them is one store, one script and ONE virtual queue over all connections, first in, first
//! out: a request departs at `max(arrival, previous departure) + service time`, the service time of request n is a pure
//! function of a seed and n, and stalls and faults are scripted. So the response time that a correct client must see is a
//! known number for every single request, and the same in every protocol.
//!
//! The way through this crate: bytes → a grammar ([`text`], `meta`, `binary`, `resp`; `udp` for datagrams), chosen in
//! `request` → what that means ([`cache`], on the [`store`]) and what is answered (the grammar's `answer`) → [`core`] (who
//! departs when and how, by [`fifo`], [`service`], [`faults`] and `outbox`) → [`mod@serve`] (sockets) and
//! [`log`] (what was done). Everything but `serve` is pure: time is an argument.
//!
//! Not a production cache: it has one thread, and a client that makes it hold more than its limits is disconnected ([`mod@serve`],
//! [`core::QUEUED_BYTES_MAX`]). It shares no code with the codecs, the workload or the statistics that are
//! tested against it; a misreading of the protocol would have to be made twice to go unseen.

#![forbid(unsafe_code)]

mod binary;
pub mod cache;
mod command_context;
mod connection;
pub mod core;
pub mod faults;
pub mod fifo;
mod grammar;
mod hash;
pub mod log;
mod message;
mod meta;
mod options;
mod outbox;
mod request;
mod resp;
pub mod serve;
pub mod service;
mod sockets;
pub mod stats;
pub mod store;
pub mod text;
mod udp;

pub use crate::cache::Process;
pub use crate::connection::{Credentials, WireProtocol};
pub use crate::core::{Core, CoreOptions, End};
pub use crate::faults::{Every, Faults};
pub use crate::fifo::{Outage, Stall};
pub use crate::outbox::Drip;
pub use crate::serve::{Listen, Options, serve};
pub use crate::service::Service;
pub use crate::udp::{DatagramFaults, Division};
