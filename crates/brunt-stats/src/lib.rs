//! The numbers: from one sample to a summary with its status.
//!
//! The way through this crate: a [`sample::Sample`] goes into a worker's [`recorder::RecorderSet`]; every 100 ms the
//! set becomes an [`interval::Interval`]; the control thread collects intervals in a [`store::IntervalStore`]; at the
//! end that becomes a [`summary::Summary`], which the reports print and whose [`status::RunStatus`] says whether they
//! may be quoted. Pure: times are arguments, nothing here reads a clock, prints, sleeps or does I/O. Recording
//! allocates nothing; everything after it may.

#![forbid(unsafe_code)]

pub mod assertion;
pub mod backlog;
pub mod bottleneck;
pub mod bound;
pub mod calibration;
pub mod capacity;
pub mod capacity_search;
pub mod change;
pub mod change_point;
pub mod check;
pub mod client_budget;
pub mod confidence;
pub mod connection;
pub mod convergence;
mod counts;
pub mod histogram;
pub mod interval;
pub mod latency;
pub mod little;
pub mod live_run;
pub mod median;
pub mod meter;
pub mod observer;
pub mod occupancy;
pub mod op_summary;
pub mod outage;
pub mod rate_scan;
pub mod recorder;
pub mod request_counts;
pub mod run_record;
pub mod sample;
pub mod server;
pub mod server_evidence;
pub mod server_stats;
#[cfg(test)]
mod simulated_run;
pub mod slowest;
pub mod stack_delay;
pub mod status;
pub mod store;
pub mod summary;
pub mod timeline;
pub mod usage;
pub mod verification;
pub mod warmup;
pub mod window;
pub mod worker_counts;
