//! Was standard output closed when the process began?
//!
//! Before `main` the standard library opens /dev/null for standard streams that are closed
//! (`sanitize_standard_fds`), so a result for standard output would be lost without an error. An open /dev/null
//! proves nothing: a caller may pass it on purpose. Invariant: the check runs before the standard library does.

#![allow(unsafe_code, reason = "only functions of .init_array run before the standard library")]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Was standard output closed when the process began?
pub fn standard_output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the C library calls the entries of this section once, before `main`, on the only thread. It passes argc,
// argv and envp, which a function without parameters may ignore in every C ABI of Linux. `look` uses nothing of the
// standard library that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no pointer, and a number that is no descriptor is answered with EBADF.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}
