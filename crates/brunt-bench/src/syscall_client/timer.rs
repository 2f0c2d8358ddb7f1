//! The end of a run as a descriptor that becomes readable, so that no iteration reads a clock.
//!
//! Invariant: it rings at most twice, first when nothing new is to be asked for, then when replies have been awaited
//! long enough.

use super::load::Load;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How long replies are awaited when nothing more is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a ring means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// Go on until every reply has come.
    Stop,
    /// The server has stopped answering.
    GiveUp,
}

/// Rings once after a time, and once more after [`PATIENCE`].
pub(super) struct Timer {
    fd: OwnedFd,
    after: Duration,
    has_rung: bool,
}

impl Timer {
    /// A timer that rings first `after` it was started.
    pub(super) fn new(after: Duration) -> Result<Self, Errno> {
        let fd = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { fd, after, has_rung: false })
    }

    pub(super) fn start(&self) -> Result<(), Errno> {
        self.arm(self.after)
    }

    fn arm(&self, after: Duration) -> Result<(), Errno> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: after.as_secs() as i64, tv_nsec: i64::from(after.subsec_nanos()) };
        let spec = Itimerspec { it_interval: never, it_value: value };
        rustix::time::timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec).map(|_| ())
    }

    /// It became readable.
    pub(super) fn ring(&mut self, load: &mut Load<'_>) -> Result<Ring, Errno> {
        if self.has_rung {
            return Ok(Ring::GiveUp);
        }
        self.has_rung = true;
        load.stop();
        // Setting it anew also makes it unreadable.
        self.arm(PATIENCE)?;
        Ok(Ring::Stop)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
