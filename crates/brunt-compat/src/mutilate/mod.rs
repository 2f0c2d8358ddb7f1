//! mutilate, both generations: [`command_line`] → [`invocation`], which has the plans; [`report`] from a summary; and the front end
//! that leads from one to the other.
//!
//! Not what carries out a front end: that is the binary.

pub mod agents;
pub mod command_line;
pub mod front_end;
pub mod generator;
pub mod invocation;
pub mod report;
mod search;

pub use front_end::read;

use crate::names::Names;
use crate::options;

/// mutilate's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: command_line::OPTIONS,
    table: &[
        ("--rate", "--qps"),
        ("--requests", "--queries"),
        ("--keys", "--records"),
        ("--key-size", "--keysize"),
        ("--value-size", "--valuesize"),
        ("--mix", "--update"),
        ("--arrival", "--iadist"),
        ("--think", "--moderate"),
        ("trace", "--read_file"),
        ("--samples", "--save"),
        ("purge", "--delete90"),
        ("--hash-field", "--assoc"),
        ("--user", "--username"),
        ("--no-preload", "--noload"),
        ("--no-nodelay", "--no_nodelay"),
        ("--wait sleep", "--blocking"),
        ("--protocol memcached-binary", "--binary"),
        ("--protocol resp2", "--redis"),
        ("--transport unix", "--unix_socket"),
        ("--measure-rate", "--measure_qps"),
        ("--measure-connections", "--measure_connections"),
        ("--measure-depth", "--measure_depth"),
    ],
};

/// Exit code where the command line cannot be read.
pub const EXIT_SYNTAX: u8 = 1;
/// Exit code of everything else that is wrong, the servers included.
pub const EXIT_REFUSED: u8 = 255;
/// Text of `--version`.
pub const VERSION: &str = "mutilate 0.1";

/// Which of the two tools: they differ in the columns of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Eight columns.
    First,
    /// Ten: with the 50th and the 99.9th percentile.
    Second,
}

/// Text of `--help`.
pub fn help() -> String {
    options::help(
        "brunt mutilate: takes the command line of mutilate, both generations, and prints its report\n\n\
         Usage: mutilate -s HOST[:PORT] [options]\n",
        command_line::OPTIONS,
        "\nA DISTRIBUTION is a number, fixed:N, uniform:MAX, normal:MEAN,SD, exponential:LAMBDA, pareto:LOC,SCALE,SHAPE,\n\
         gev:LOC,SCALE,SHAPE, or one of Facebook's: fb_key, fb_value, fb_ia.\n",
    )
}
