//! The numbers: from one sample to a summary with its status.
//!
//! The way through this crate: a [`sample::Sample`] goes into a worker's [`recorder::RecorderSet`]; every 100 ms the
//! set becomes an [`interval::Interval`]; the control thread collects intervals in a [`store::IntervalStore`]; at the
//! end that becomes a [`summary::Summary`], which the reports print and whose [`status::RunStatus`] says whether they
//! may be quoted. Pure: times are arguments, nothing here reads a clock, prints, sleeps or does I/O. Recording
//! allocates nothing; everything after it may.

#![forbid(unsafe_code)]

// What a worker records.
pub mod connection;
mod counts;
pub mod histogram;
pub mod hosts;
pub mod meter;
pub mod recorder;
pub mod request_counts;
pub mod sample;
pub mod server;
pub mod verification;
pub mod worker_counts;

// What its run becomes: slices of time, and the record of it all.
pub mod interval;
pub mod run_record;
pub mod server_stats;
pub mod store;
pub mod timeline;
pub mod usage;
pub mod window;

// Those who watch a run.
pub mod live_run;
pub mod observer;

// The summary, from the record alone.
pub mod backlog;
pub mod latency;
pub mod little;
pub mod occupancy;
pub mod op_summary;
pub mod outage;
pub mod slowest;
pub mod stack_delay;
pub mod summary;

// What files of others hold.
pub mod trace_profile;

// Statistics.
pub mod bound;
pub mod change;
pub mod change_point;
pub mod confidence;
pub mod convergence;
pub mod median;
pub mod warmup;

// May the numbers be quoted?
pub mod bottleneck;
pub mod check;
pub mod client_budget;
pub mod server_evidence;
pub mod status;

// What is decided by several runs, or about a user's objectives.
pub mod agent_requests;
pub mod assertion;
pub mod calibration;
pub mod capacity;
pub mod capacity_search;
pub mod rate_scan;

// Tests.
#[cfg(test)]
mod simulated_run;
