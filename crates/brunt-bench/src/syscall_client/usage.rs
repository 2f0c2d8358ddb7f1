//! CPU time of a process, by the kernel.
//!
//! The one call of the floor, beside those of io_uring, that has no safe form.

#![allow(unsafe_code, reason = "getrusage has no safe form in the crates that we use")]

use std::ops::Sub;

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
}

/// Whose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// This process, all threads.
    Process,
    /// Its children that have ended and were waited for, with theirs.
    Children,
}

/// Up to now.
pub(crate) fn usage(who: Who) -> Usage {
    let who = match who {
        Who::Process => libc::RUSAGE_SELF,
        Who::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: `rusage` is plain numbers, for which zero is a value.
    let mut rusage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage` of our own that outlives the call.
    let outcome = unsafe { libc::getrusage(who, &raw mut rusage) };
    assert_eq!(outcome, 0, "getrusage fails for no argument but an unknown 'who'");
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Usage { user_ns: ns(rusage.ru_utime), system_ns: ns(rusage.ru_stime) }
}

impl Usage {
    /// CPU time in user space and in the kernel.
    pub(crate) const fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user_ns: self.user_ns - earlier.user_ns, system_ns: self.system_ns - earlier.system_ns }
    }
}
