//! Signals: the first that asks for an end lets the run end, drain and report; a second Ctrl-C, some time later, ends the process.
//!
//! SIGINT and SIGTERM are sent by people and supervisors, SIGHUP by a terminal or a connection that is gone. Invariant: a signal that
//! would end the process without a report never does so the first time.

use crate::host::ignored_signals;
use brunt_engine::process::{cannot, start_thread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Signals that come so soon after the first are the same one: timeout(1) sends its signal to the command, and then to the group that the
/// command is in.
const SAME_SIGNAL: Duration = Duration::from_millis(200);

/// A flag that SIGINT, SIGTERM and SIGHUP set. A further SIGINT or SIGTERM, [`SAME_SIGNAL`] later, ends the process at once with
/// 130. A further SIGHUP does not: when a connection is gone, the kernel and the shell send one each.
///
/// # Errors
/// They cannot be handled; it says so.
pub(crate) fn flag() -> io::Result<Arc<AtomicBool>> {
    handled().map_err(cannot("handle signals"))
}

fn handled() -> io::Result<Arc<AtomicBool>> {
    let (flag, next_ends) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, next_ends.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    if !is_hangup_ignored() {
        signal_hook::flag::register(SIGHUP, flag.clone())?;
    }
    let mut first = File::from(pair()?);
    start_thread("signals", move || {
        // Where nothing can be read no signal ends the process at once.
        if first.read_exact(&mut [0]).is_ok() {
            #[expect(clippy::disallowed_methods, reason = "a thread beside the load that times a signal")]
            thread::sleep(SAME_SIGNAL);
            next_ends.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(flag)
}

/// A descriptor that can be read from once SIGINT, SIGTERM or SIGHUP has come, for a loop that waits for descriptors.
pub(crate) fn descriptor() -> io::Result<OwnedFd> {
    pair().map_err(cannot("handle signals"))
}

/// Readable once a signal has come after [`end_waits_for_readers`].
static SIGNALLED: OnceLock<OwnedFd> = OnceLock::new();

/// The next signal ends every wait for a reader that takes nothing of a result, where [`reader_wait`] is polled.
pub(crate) fn end_waits_for_readers() {
    // Where it cannot be had, a second signal ends the process.
    if let Ok(signalled) = pair() {
        let _ = SIGNALLED.set(signalled);
    }
}

/// What ends a wait for a reader when it can be read from.
pub(crate) fn reader_wait() -> Option<&'static OwnedFd> {
    SIGNALLED.get()
}

fn pair() -> io::Result<OwnedFd> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    if !is_hangup_ignored() {
        signal_hook::low_level::pipe::register(SIGHUP, write)?;
    }
    Ok(read.into())
}

/// A write beyond the limit of a file's size (`ulimit -f`) fails, and does not end the process. Commands that we start have the signal
/// as usual, for a handler does not survive their start.
pub(crate) fn outlive_file_size_limit() {
    // Where it cannot be had the process ends as it would have, and no file is cut, for results are renamed when they are whole.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Were we started by `nohup`, or by a shell that leaves us running when it ends?
fn is_hangup_ignored() -> bool {
    ignored_signals() >> (SIGHUP - 1) & 1 == 1
}
