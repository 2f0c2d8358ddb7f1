//! What a thread costs: processor time by getrusage, system calls by our own count.
//!
//! Not a profile: two readings, at the beginning of the measured window and at the end of the drain.

/// Processor time of the calling thread so far: user and system, in nanoseconds.
#[expect(unsafe_code, reason = "no safe wrapper of getrusage for one thread exists in what we depend on")]
fn thread_times_ns() -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes a whole rusage to the pointer, which is valid for one; an all-zero rusage is a valid
    // value in case it fails, which for RUSAGE_THREAD and a valid pointer it does not.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// The use of one thread between two points of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    begin_ns: u64,
    has_begun: bool,
    has_ended: bool,
    begin: Reading,
    /// Processor time in user space.
    pub cpu_user_ns: u64,
    /// Processor time in the kernel.
    pub cpu_system_ns: u64,
    /// System calls.
    pub syscalls: u64,
    /// Time in its loop that it was not allowed to sleep.
    pub busy_ns: u64,
}

/// What is known at one point of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    now_ns: u64,
    slept_ns: u64,
    syscalls: u64,
    user_ns: u64,
    system_ns: u64,
}

impl Reading {
    fn take(now_ns: u64, slept_ns: u64, syscalls: u64) -> Self {
        let (user_ns, system_ns) = thread_times_ns();
        Self { now_ns, slept_ns, syscalls, user_ns, system_ns }
    }
}

impl ThreadUsage {
    /// Begin at this time.
    pub(crate) fn begin_at(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// When [`ThreadUsage::look`] wants to be called.
    pub(crate) fn next_ns(&self) -> u64 {
        if self.has_begun { u64::MAX } else { self.begin_ns }
    }

    /// Takes the first reading once its time has come. To be called on the thread itself.
    pub(crate) fn look(&mut self, now_ns: u64, slept_ns: u64, syscalls: u64) {
        if !self.has_begun && now_ns >= self.begin_ns {
            self.begin = Reading::take(now_ns, slept_ns, syscalls);
            self.has_begun = true;
        }
    }

    /// Takes the second reading.
    pub(crate) fn end(&mut self, now_ns: u64, slept_ns: u64, syscalls: u64) {
        if self.has_begun && !self.has_ended {
            let (begin, end) = (self.begin, Reading::take(now_ns, slept_ns, syscalls));
            self.cpu_user_ns = end.user_ns - begin.user_ns;
            self.cpu_system_ns = end.system_ns - begin.system_ns;
            self.syscalls = end.syscalls - begin.syscalls;
            self.busy_ns = (end.now_ns - begin.now_ns).saturating_sub(end.slept_ns - begin.slept_ns);
            self.has_ended = true;
        }
    }
}
