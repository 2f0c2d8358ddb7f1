//! Runs of `brunt mutilate`: how tests begin them, and what they printed.

use crate::server::{Ended, Server, ended};

/// Its end, with these options against this server.
pub(crate) fn mutilate(server: &Server, options: &str) -> Ended {
    ended(&format!("mutilate -s {server} {options}"))
}

/// The same of one that succeeds.
pub(crate) fn report(server: &Server, options: &str) -> Ended {
    let ended = mutilate(server, options);
    assert_eq!(ended.exit, 0);
    ended
}
