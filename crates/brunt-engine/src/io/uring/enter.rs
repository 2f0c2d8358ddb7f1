//! io_uring_enter: submits entries and waits for completions.
//!
//! The pace decides how long to wait. Invariant: where the kernel supports it, a wait ends at an absolute instant
//! of CLOCK_MONOTONIC, so that submitting does not extend it.

#![expect(unsafe_code, reason = "the raw call: its newer arguments have no safe wrapper")]

use io_uring::{EnterFlags, IoUring};
use std::io;

/// `IORING_ENTER_ABS_TIMER`, Linux 6.12: the time-out is an instant.
const ABSOLUTE_TIMER: u32 = 1 << 5;

/// Kernel features of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Absolute time-outs, and waits for several completions that end with fewer after a while (Linux 6.12 has both).
    pub absolute: bool,
}

/// `struct io_uring_getevents_arg` of linux/io_uring.h.
#[repr(C)]
struct Argument {
    sigmask: u64,
    sigmask_bytes: u32,
    min_wait_us: u32,
    timespec: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// How to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Completions that end the wait.
    pub want: u32,
    /// After this long one completion is enough; at most as long as the wait.
    pub gather_ns: u64,
    /// The wait ends after this long,
    pub timeout_ns: u64,
    /// which is this instant of CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
}

impl Abilities {
    pub(super) fn of(ring: &IoUring) -> Self {
        Self { absolute: ring.params().is_feature_min_timeout() }
    }

    /// Submits everything queued, runs deferred work of the kernel, and waits on request.
    pub(super) fn enter(self, ring: &mut IoUring, waiting: Option<Waiting>) -> io::Result<()> {
        let to_submit = ring.submission().len() as u32;
        let submitter = ring.submitter();
        let Some(waiting) = waiting else {
            // SAFETY: no argument, and every queued entry was pushed with memory that lives until it has been handed in.
            unsafe { submitter.enter::<libc::sigset_t>(to_submit, 0, EnterFlags::GETEVENTS.bits(), None)? };
            return Ok(());
        };
        // Where one completion cannot be enough after a while, the wait itself is that short.
        let is_cut = !self.absolute && waiting.want > 1;
        let timeout_ns = match (self.absolute, is_cut) {
            (true, _) => waiting.monotonic_ns,
            (false, true) => waiting.timeout_ns.min(waiting.gather_ns),
            (false, false) => waiting.timeout_ns,
        };
        let timespec = Timespec {
            seconds: (timeout_ns / 1_000_000_000) as i64,
            nanoseconds: (timeout_ns % 1_000_000_000) as i64,
        };
        let gathers = self.absolute && waiting.want > 1;
        let argument = Argument {
            sigmask: 0,
            sigmask_bytes: 0,
            min_wait_us: if gathers {
                (waiting.gather_ns / 1_000).min(u64::from(u32::MAX)) as u32
            } else {
                0
            },
            timespec: (&raw const timespec) as u64,
        };
        let flags = (EnterFlags::GETEVENTS | EnterFlags::EXT_ARG).bits();
        let flags = if self.absolute { flags | ABSOLUTE_TIMER } else { flags };
        // SAFETY: argument and time are valid for the call, which reads them and keeps neither; for the entries see above.
        match unsafe { submitter.enter(to_submit, waiting.want, flags, Some(&argument)) } {
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
            entered => entered.map(drop),
        }
    }
}
