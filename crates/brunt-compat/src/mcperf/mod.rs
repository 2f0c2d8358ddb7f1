//! mcperf: [`command_line`] with its [`distribution`]s → [`invocation`], which has the plan; [`numbers`] of a summary → [`report`], which
//! has the text; and the front end that leads from one to the other.
//!
//! Not what carries out a front end: that is the binary.

pub mod command_line;
pub mod distribution;
pub mod front_end;
pub mod help;
pub mod invocation;
pub mod numbers;
pub mod remarks;
pub mod report;

use crate::names::Names;

/// mcperf's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: command_line::OPTIONS,
    table: &[
        ("--connections", "--num-conns"),
        ("--connections-total", "--num-conns"),
        ("--calls-per-connection", "--num-calls"),
        ("--connect-rate", "--conn-rate"),
        ("--connect-arrival", "--conn-rate"),
        ("--call-arrival", "--call-rate"),
        ("--value-size", "--sizes"),
        ("--delta", "--sizes"),
        ("--key-size", "--prefix"),
        ("--ttl", "--expiry"),
        ("--mix", "--method"),
        ("--noreply", "--use-noreply"),
        ("--receive-buffer", "--recv-buffer"),
        ("--no-nodelay", "--disable-nodelay"),
        ("--linger 0s", "--linger=0"),
        ("--wait sleep", "--wait=sleep"),
    ],
};

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// Exit code behind the report of a run that a signal has ended.
pub const EXIT_INTERRUPTED: u8 = 130;
/// Text of `--version`.
pub const VERSION: &str = "This is mcperf-0.1.1";
