//! The binary as a user runs it: whole commands against whole servers.
//!
//! One test program for everything that needs the built binary. Servers listen on free loopback ports and end with the
//! test that started them. Tests run side by side, but for those that measure time (`experiments.rs`). What takes minutes runs with
//! `BRUNT_ACCURACY=full` (`cargo xtask accuracy`); the same tests run short otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says where, and why it skips"
)]

mod accounting;
mod agentmode;
mod calibrate;
mod campaigns;
mod cluster;
mod command_line;
mod compare;
mod compiled_loops;
mod completions;
mod connection_limits;
mod defaults;
mod destinations;
mod experiments;
mod faults;
mod fleet;
mod fleet_texts;
mod help;
mod http;
mod injected_faults;
mod integration;
mod joined_fleets;
mod layouts;
mod lifetimes;
#[path = "../../../brunt-server/tests/it/m_d_1.rs"]
mod m_d_1;
mod mcperf;
mod measured;
mod memcached;
mod memcached_protocols;
mod message_protocols;
mod migrating;
mod mutilated;
mod ndjson;
mod notebook;
mod operations;
mod outages;
mod preloads;
mod process_limits;
mod recipes;
mod recognition;
mod recorded_cases;
mod redis;
mod redis_info;
mod replay;
mod replies;
mod report;
mod results;
mod rpc_perf;
mod sandboxes;
mod sasl;
mod schema;
mod screen;
mod scripted;
mod serve;
mod server;
#[path = "../../../brunt-server/tests/it/server_log.rs"]
mod server_log;
mod servers;
mod stamps;
mod statistics;
mod status;
mod stuck_agents;
mod suggestion;
mod tls;
mod trace;
mod traces;
mod transports;
mod udp;
mod whole_window;
