//! Vocabulary and plan: the words that every other crate of brunt shares, and the plain data that says what a run does.
//!
//! The way through this crate: text in a [`units`] or [`distribution`] mini-language → [`spec::PlanSpec`] (what was
//! asked) → [`resolve::resolve`] (the only place with defaults) → [`plan::Plan`] → [`shard::shards`] (a slice per
//! worker). Nothing here reads a clock, a file or a socket, and nothing here knows another crate of ours.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod choice;
pub mod cpus;
pub mod destination;
pub mod distribution;
pub mod label;
pub mod login;
pub mod mix;
pub mod objective;
pub mod op;
pub mod outcome;
pub mod phase;
pub mod plan;
pub mod popularity;
pub mod quantile;
pub mod quantity;
pub mod quoted_bytes;
mod removal;
pub mod resolve;
pub mod server;
pub mod shard;
pub mod size;
pub mod sockets;
pub mod spec;
pub mod split_mix;
pub mod sweep;
#[cfg(test)]
mod texts;
pub mod units;
pub mod until;
pub mod url;
pub mod warmup;
mod words;
