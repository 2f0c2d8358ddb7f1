//! The numbers: from one sample to a summary with its status.
//!
//! The way through this crate: a [`sample::Sample`] goes into a worker's [`recorder::RecorderSet`]; every 100 ms the
//! set becomes an [`interval::Interval`]; the control thread collects intervals in a [`store::IntervalStore`]; at the
//! end that becomes a [`summary::Summary`], which the reports print and whose [`status::RunStatus`] says whether they
//! may be quoted. Pure: times are arguments, nothing here reads a clock, prints, sleeps or does I/O. Recording
//! allocates nothing; everything after it may.

#![forbid(unsafe_code)]

pub mod agent;
pub mod assertion;
pub mod backlog;
pub mod batch;
pub mod bottleneck;
pub mod bound;
pub mod calibration;
pub mod capacity;
pub mod change;
pub mod change_point;
pub mod check;
pub mod client_basis;
pub mod client_budget;
mod client_part;
pub mod client_time;
pub mod cluster;
pub mod complete_seconds;
pub mod confidence;
pub mod connection;
pub mod convergence;
mod counts;
pub mod datagrams;
pub mod error_replies;
pub mod fault;
pub mod goal;
pub mod headroom;
pub mod histogram;
pub mod host;
pub mod interval;
pub mod judgement;
pub mod knee;
pub mod latency;
pub mod little;
pub mod live_run;
pub mod measured_outage;
pub mod measured_window;
pub mod median;
pub mod meter;
mod number_text;
pub mod object_fault;
pub mod observer;
pub mod occupancy;
pub mod op_summary;
pub mod outage;
pub mod outage_span;
pub mod part_sums;
pub mod percentile_mark;
pub mod period;
pub mod rate_scan;
pub mod recache;
pub mod recorder;
pub mod repeat;
pub mod request_counts;
mod row_sums;
pub mod run_data;
pub mod run_record;
pub mod run_times;
pub mod sample;
pub mod sample_buffer;
pub mod server;
pub mod server_evidence;
pub mod server_stats;
#[cfg(test)]
mod simulated_run;
pub mod slowest;
pub mod stack_delay;
pub mod stamps;
pub mod status;
mod steady;
pub mod store;
pub mod summary;
pub mod timeline;
pub mod trace;
pub mod usage;
pub mod verification;
pub mod warmup;
mod wide_number;
pub mod window;
pub mod window_counts;
pub mod worker_counts;
