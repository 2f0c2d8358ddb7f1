//! Ctrl-C: the first one asks the run to end, drain and report; the second one ends the process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that SIGINT and SIGTERM set. A second signal, while the flag is set, ends the process at once with 130.
pub(crate) fn flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the conditional one sees the flag as it was before this signal.
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(flag)
}

/// A descriptor that can be read from once SIGINT or SIGTERM has come, for a loop that waits for descriptors.
pub(crate) fn descriptor() -> io::Result<OwnedFd> {
    let (read, write) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read.into())
}
