//! Threads that draw, write or serve beside a run. Workers come first: such a thread has a lower priority.

use brunt_engine::process::start_thread;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::io;
use std::thread::JoinHandle;

const NICE: i32 = 10;

/// Starts one. Where a sandbox refuses the priority, the thread competes with workers for the CPU.
pub(crate) fn start_background_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    start_thread(name, move || {
        let _ = setpriority_process(Some(gettid()), NICE);
        work()
    })
}
