//! rpc-perf of 2017: [`command_line`] and [`config`] → [`invocation`], which has the plan, with what [`request`] makes of workloads; the
//! [`history`] of a run, by windows and second by second, becomes lines of its [`log`] and two files, [`slices`] as text and
//! [`waterfall`] as a picture, both in the layout of [`buckets`]; and [`statistics`], which are looked at meanwhile.
//!
//! Not what carries out a front end: that is the binary.

pub mod command_line;
pub mod config;
pub mod front_end;
pub mod invocation;
pub mod log;
pub mod request;
pub mod slices;
pub mod statistics;
pub mod waterfall;
pub mod window;

pub use front_end::read;

use crate::names::Names;
use crate::options;

/// rpc-perf's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: command_line::OPTIONS,
    table: &[
        ("--timeout", "--request-timeout"),
        ("--ip-version", "--ipv4 or --ipv6"),
        ("--command", "the method with its parameters (--config)"),
        ("--rate", "rate (--config)"),
        ("--keys", "num (--config)"),
        ("--key-size", "size of the parameter with num (--config)"),
        ("--time", "--duration × --windows"),
        ("--transport", "the kind of --server"),
        ("--nodelay", "--tcp-nodelay"),
        ("--no-nodelay", "no --tcp-nodelay"),
    ],
};

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// Text of `--version`.
pub const VERSION: &str = "rpc-perf 2.1.0-pre";

/// Text of `--help` for this name of the program.
pub fn help(program: &str) -> String {
    options::help(&format!("Usage: {program} [options]\n"), command_line::OPTIONS, "")
}
