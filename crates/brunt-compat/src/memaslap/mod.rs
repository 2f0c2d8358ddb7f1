//! memaslap: [`command_line`] and [`workload_file`] → [`invocation`], which has the plan; [`report`] from periods and summaries; and the
//! front end that leads from one to the other.
//!
//! Not what carries out a front end: that is the binary.

pub mod command_line;
pub mod counters;
pub mod failures;
pub mod front_end;
pub mod help;
pub mod invocation;
pub mod report;
pub mod server_list;
pub mod tally;
pub mod workload_file;

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// What `--version` prints.
pub const VERSION: &str = "memaslap v1.0";
/// The port of a server that is named without one.
pub(crate) const PORT: u16 = 11211;
