//! Front ends that look like other load generators: their command line becomes plans, a summary becomes their report.
//!
//! Not an engine: everything runs as any other plan does, and the numbers are ours. Each tool has a folder, and there its own
//! defaults; what several tools share of reading options is in [`options`], how our messages name a tool's options in [`names`], what they
//! all are to the program that carries them out in [`front_end`], and their names are in [`tools`]. Invariants: an option is honoured, repaired or
//! refused, never ignored in silence; docs/compat.md says which.

#![forbid(unsafe_code)]

pub mod front_end;
pub mod mcperf;
pub mod memaslap;
pub mod mutilate;
pub mod names;
pub mod options;
pub mod rpc_perf;
pub mod tools;
