//! memaslap: [`command_line`] and [`workload_file`] → [`invocation`], which has the plan; [`report`] from periods and summaries; and the
//! front end that leads from one to the other.
//!
//! Not what carries out a front end: that is the binary.

pub mod command_line;
pub mod front_end;
pub mod invocation;
pub mod report;
pub mod tally;
pub mod workload_file;

pub use front_end::read;

use crate::names::Names;
use crate::options;

/// memaslap's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: command_line::OPTIONS,
    table: &[
        ("--server", "--servers"),
        ("--connections", "connections (--concurrency × --conn_sock × --rep_write)"),
        ("--client-connections", "--conn_sock"),
        ("--multiget", "--division"),
        ("--popularity window:", "--win_size "),
        ("--popularity window", "--win_size"),
        ("invalid value 'ranges:*' for --key-size", "invalid value '*' for sizes of keys (--cfg_cmd)"),
        ("invalid value 'ranges:*' for --value-size", "invalid value '*' for sizes of values (--cfg_cmd)"),
        ("invalid value 'fixed:*' for --value-size", "invalid value '*' for --fixed_size"),
        ("--value-size ranges:", "sizes of values (--cfg_cmd) "),
        ("--value-size fixed:", "--fixed_size "),
        ("--key-size", "sizes of keys (--cfg_cmd)"),
        ("--value-size", "sizes of values (--cfg_cmd, --fixed_size)"),
        ("--call-rate", "--tps"),
        ("--requests", "--execute_number"),
        ("--replicas", "--rep_write"),
        ("--mix", "shares of set and get (--cfg_cmd)"),
        ("use --no-preload and a --mix that only reads", "sets that fill the windows are such requests, too"),
        ("--transport udp", "UDP"),
        ("--protocol memcached-text", "the text protocol"),
        ("--protocol memcached-binary", "--binary"),
    ],
};

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// Text of `--version`.
pub const VERSION: &str = "memaslap v1.0";
/// The port of a server that is named without one.
pub(crate) const PORT: u16 = 11211;

/// Text of `--help`.
pub fn help() -> String {
    options::help(
        &format!(
            "{VERSION}\n    Loads memcached servers and prints what came of it (brunt memaslap).\n\nUsage:\n    \
             memaslap -hV | -s servers [-F config_file] [-t time | -x exe_num] [...]\n"
        ),
        command_line::OPTIONS,
        "\nExamples:\n    memaslap -s 127.0.0.1:11211 -S 5s\n    \
         memaslap -s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b\n    \
         memaslap -s 127.0.0.1:11211 -F config -t 2m -w 40k -S 20s -o 0.2\n    \
         memaslap -s 127.0.0.1:11211 -F config -t 2m -T 4 -c 128 -d 20 -P 40k\n    \
         memaslap -s 127.0.0.1:11211 -F config -t 2m -d 50 -a -n 40\n    \
         memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m\n    \
         memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m -p 2\n\n",
    )
}
