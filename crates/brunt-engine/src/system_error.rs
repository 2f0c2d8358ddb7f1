//! What the kernel refused, in words: the action and its object before the error, and a thread that is started by name.
//!
//! Invariant: an error of the system that leaves this crate says what failed.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Puts in front of an error what could not be done. Its kind stays.
pub fn cannot(action: &str) -> impl Fn(io::Error) -> io::Error + use<> {
    let action = action.to_owned();
    move |error| io::Error::new(error.kind(), format!("cannot {action}: {error}"))
}

/// Starts a thread of this name.
///
/// # Errors
/// The kernel refuses it; with its name, and the limit that most likely refused it.
pub fn start_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|error| thread_refused(name, error))
}

/// Why a thread of this name could not be started.
pub fn thread_refused(name: &str, error: io::Error) -> io::Error {
    let limit = match error.kind() {
        io::ErrorKind::WouldBlock => "; see the limits of processes and of memory, ulimit -u and ulimit -v",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot start the thread {name}: {error}{limit}"))
}
