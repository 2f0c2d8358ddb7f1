//! Ctrl-C: the first one asks the run to end, drain and report; the second one ends the process.

use std::io;
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
