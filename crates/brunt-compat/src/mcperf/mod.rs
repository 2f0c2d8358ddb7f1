//! mcperf: [`command_line`] → [`invocation`], which has the plan; [`numbers`] of a summary → [`report`], which
//! has the text; and the front end that leads from one to the other.
//!
//! Not what carries out a front end: that is the binary.

pub mod command_line;
pub mod front_end;
pub mod invocation;
pub mod report;

pub use front_end::read;

use crate::names::Names;
use crate::options;
use brunt_plan::op::OpKind;

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

/// Text of `--help` behind the version, and what follows a mistake.
pub fn help() -> String {
    let methods = command_line::METHODS.map(OpKind::name).join(", ");
    let text = options::help(
        "Usage: mcperf [options]\n",
        command_line::OPTIONS,
        &format!(
            "\nWhere:\n  N is a whole number, X a real one, S a text\n  M is one of {methods}\n  R says what is drawn:\n    \
             dR1      always R1\n    uR1,R2   evenly from R1 to R2\n    eR1      exponentially, with mean R1\n    \
             sR1      R1, R1+1, R1+2 and so on\n    \
             R1       a rate: always 1/R1 (of sizes, too); 0: each when the one before has ended\n  \
             seconds between connections or calls, and bytes of sizes\n"
        ),
    );
    // Lines end so on a terminal of mcperf's, and scripts that cut them know it.
    text.replace('\n', "\r\n")
}
