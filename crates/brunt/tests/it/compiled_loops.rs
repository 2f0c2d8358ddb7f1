//! How often the loop is compiled: once for each codec and each interface of the kernel, whatever the transports.

use crate::server::Ended;
use std::process::Command;

/// The function around every copy of the loop, as the names of its symbols have it.
const LOOP: &str = "brunt_engine3run14control_thread5drive17h";
/// Five codecs of streams and two of datagrams, over epoll and over io_uring.
const COPIES: usize = 7 * 2;

#[test]
fn transports_compile_no_loops() {
    // Of the same package as the linker.
    let listed = Ended::from(Command::new("nm").arg(env!("CARGO_BIN_EXE_brunt")));
    assert_eq!(listed.out.lines().filter(|line| line.contains(LOOP)).count(), COPIES);
}
