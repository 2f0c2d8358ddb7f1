//! Vocabulary and plan: the words that every other crate of brunt shares, and the plain data that says what a run does.
//!
//! The way through this crate: text in a [`units`] or [`distribution`] mini-language → [`spec::PlanSpec`] (what was
//! asked) → [`resolve::resolve`] (the only place with defaults) → [`plan::Plan`] → [`shard::shards`] (a slice per
//! worker). Nothing here reads a clock, a file or a socket, and nothing here knows another crate of ours.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod choice;
pub mod command;
pub mod cpus;
pub mod destination;
pub mod distribution;
pub mod gather;
pub mod label;
pub mod login;
pub mod mcperf_draw;
pub mod mix;
pub mod objective;
pub mod op;
pub mod op_name;
pub mod outcome;
pub mod phase;
pub mod plan;
pub mod plan_option;
pub mod plan_split;
pub mod popularity;
pub mod quantile;
pub mod quantity;
pub mod quoted_bytes;
pub mod rate_profile;
pub mod resolve;
pub mod server;
pub mod server_list;
pub mod shard;
pub mod size;
pub mod sockets;
pub mod spec;
pub mod split_mix;
mod subject_check;
pub mod sweep;
pub mod tls;
pub mod tolerance;
pub mod units;
pub mod until;
pub mod url;
pub mod version;
pub mod warmup;
mod words;
