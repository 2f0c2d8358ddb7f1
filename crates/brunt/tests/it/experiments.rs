//! The live timing experiments: known stalls, known queues, the spacing on the wire and a long run, measured over loopback.
//!
//! Not what holds on whatever host: that is in the files beside this one, and runs side by side. Each of these tests has the machine
//! to itself. In `cargo xtask test`, which makes this module last, an experiment is a smoke test: one short run of it, whose
//! tolerance leaves room for a busy machine, tells a wrong number from a right one, and what the run itself says the host did to it
//! is not judged. `BRUNT_ACCURACY=full` (`cargo xtask accuracy`) makes each at full length with the tolerances of docs/method.md,
//! and there a host that disturbs a run makes it fail.

mod accuracy;
mod assertions;
mod client;
mod comparison;
mod endurance;
mod wire;

use crate::server::ended;

/// Are experiments made at full length?
pub(crate) fn is_full() -> bool {
    std::env::var("BRUNT_ACCURACY").is_ok_and(|value| value == "full")
}

/// The interface to the kernel to try something on: the one that was asked for (`cargo xtask accuracy --io`), or one by turns,
/// so that both are tried and none takes twice the time.
fn interface(turn: usize) -> String {
    if let Ok(io) = std::env::var("BRUNT_ACCURACY_IO") {
        return io;
    }
    match io_uring_works() {
        Ok(()) => ["epoll", "uring"][turn % 2].to_owned(),
        Err(why) => {
            eprintln!("SKIPPED: io_uring: {why}");
            "epoll".to_owned()
        }
    }
}

fn io_uring_works() -> Result<(), String> {
    let output = ended("doctor");
    let line = output.out.lines().find(|line| line.contains("io_uring")).unwrap();
    if line.starts_with("ok") { Ok(()) } else { Err(line.to_owned()) }
}
