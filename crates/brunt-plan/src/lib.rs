//! Vocabulary and plan: the words that every other crate of brunt shares, and the plain data that says what a run does.
//!
//! The way through this crate: text in a [`units`] or [`distribution`] mini-language → [`spec::PlanSpec`] (what was
//! asked) → [`resolve::resolve`] (the only place with defaults) → [`plan::Plan`] → [`shard::shards`] (a slice per
//! worker). Nothing here reads a clock, a file or a socket, and nothing here knows another crate of ours.

#![forbid(unsafe_code)]

// Words: what has a text form on the command line, in plan files and in results.
pub mod choice;
pub mod label;
pub mod mix;
pub mod objective;
pub mod op;
pub mod outcome;
pub mod phase;
pub mod quantile;
pub mod quantity;
pub mod quoted_bytes;
pub mod units;
mod words;

// Load and data.
pub mod arrival;
pub mod distribution;
pub mod popularity;
pub mod preset;
pub mod recorded_request;
pub mod size;
pub mod split_mix;
pub mod sweep;
pub mod time_law;
pub mod trace_identity;
pub mod trace_record;
pub mod until;
pub mod warmup;

// Servers, connections and hosts.
pub mod cpus;
pub mod destination;
pub mod login;
pub mod server;
pub mod sockets;
pub mod url;

// From what was asked to what each worker does.
pub mod plan;
mod removal;
pub mod resolve;
pub mod shard;
pub mod spec;

// Tests.
#[cfg(test)]
mod texts;
