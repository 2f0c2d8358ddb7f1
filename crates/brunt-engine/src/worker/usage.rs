//! CPU usage of a thread: CPU time and context switches by getrusage, run delay by the scheduler, system calls and
//! waiting time by the loop.
//!
//! Two readings, at both ends of the measured window, and a shorter one with each interval. Nothing is allocated.

use crate::process::{open_schedstat, read_run_delay_ns, run_delay_in};
use brunt_stats::interval::WorkerTime;
use brunt_stats::usage::{ClientUsage, WorkerUsage};
use std::os::fd::OwnedFd;

/// Maximum duration of an iteration that counts as waiting: a poll without events returns within 2 microseconds, so
/// a longer one was preempted. That time is in the run delay; counting it as waiting would hide it.
const WAITING_TURN_MAX_NS: u64 = 5_000;

/// Maximum lateness of the first reading: after it, usage counts from the start of the schedule, so that no
/// preemption is left out.
const BEGIN_LATE_MAX_NS: u64 = 50_000_000;

/// Counters of the calling thread.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    user_ns: u64,
    system_ns: u64,
    involuntary_switches: u64,
    voluntary_switches: u64,
    run_delay_ns: Option<u64>,
}

impl Counters {
    #[expect(unsafe_code, reason = "no safe wrapper of getrusage for one thread exists in what we depend on")]
    fn read() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage writes a whole rusage to the pointer, which is valid for one; an all-zero rusage is a valid
        // value in case it fails, which for RUSAGE_THREAD and a valid pointer it does not.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            involuntary_switches: usage.ru_nivcsw as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            run_delay_ns: read_run_delay_ns(),
        }
    }
}

/// CPU time of the calling thread until now; getrusage and the scheduler's statistics are a tick behind.
#[expect(
    unsafe_code,
    reason = "valgrind ends programs in which rustix looks for the vDSO, and instructions are counted in it"
)]
fn read_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes a timespec to the pointer, which is valid for one.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Counters of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoopCounters {
    /// System calls.
    pub syscalls: u64,
    /// Time of iterations that only polled; see [`Waiting`].
    pub waited_ns: u64,
}

/// Sums the iterations that only waited: polled without sleeping, nothing came, nothing was due.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    entered_ns: u64,
    only_waited: bool,
    pub total_ns: u64,
}

impl Waiting {
    /// Begins an iteration and ends the one before.
    pub(crate) fn enter(&mut self, now_ns: u64, may_only_wait: bool) {
        if self.only_waited {
            let took_ns = now_ns - self.entered_ns;
            self.total_ns += if took_ns <= WAITING_TURN_MAX_NS { took_ns } else { 0 };
        }
        self.entered_ns = now_ns;
        self.only_waited = may_only_wait;
    }

    /// Notes that the iteration did more than wait.
    pub(crate) fn came_in(&mut self) {
        self.only_waited = false;
    }
}

/// CPU time and run delay of a thread from one interval to the next. Two system calls per reading, so 20 a second.
#[derive(Debug, Default)]
pub(crate) struct TimeMeter {
    schedstat: Option<OwnedFd>,
    before: Option<TimeReading>,
    /// The run delay when it was last asked for by itself.
    asked_delay_ns: u64,
}

/// Times of the thread since it began.
#[derive(Clone, Copy, Debug)]
struct TimeReading {
    cpu_ns: u64,
    waited_ns: u64,
    run_delay_ns: Option<u64>,
}

impl TimeMeter {
    /// Run delay since the last reading of either kind. Called on the thread itself; `None` where the kernel does not say.
    pub(crate) fn run_delay_ns(&mut self) -> Option<u64> {
        let now_ns = self.schedstat.as_ref().and_then(run_delay_in)?;
        let before_ns = self.before?.run_delay_ns?.max(std::mem::replace(&mut self.asked_delay_ns, now_ns));
        Some(now_ns.saturating_sub(before_ns))
    }

    /// The time since the last call, of which `waited_ns` counts what the loop waited. Called on the thread itself; `None` the first time.
    pub(crate) fn take(&mut self, waited_ns: u64) -> Option<WorkerTime> {
        if self.before.is_none() {
            self.schedstat = open_schedstat();
        }
        let now = TimeReading {
            cpu_ns: read_cpu_ns(),
            waited_ns,
            run_delay_ns: self.schedstat.as_ref().and_then(run_delay_in),
        };
        self.before.replace(now).map(|before| now.since(&before))
    }
}

impl TimeReading {
    fn since(&self, before: &Self) -> WorkerTime {
        let cpu_ns = self.cpu_ns.saturating_sub(before.cpu_ns);
        let delays = self.run_delay_ns.zip(before.run_delay_ns);
        WorkerTime {
            busy_ns: cpu_ns.saturating_sub(self.waited_ns - before.waited_ns),
            run_delay_ns: delays.map(|(now_ns, before_ns)| now_ns.saturating_sub(before_ns)),
        }
    }
}

/// One reading of all counters.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    now_ns: u64,
    of_loop: LoopCounters,
    of_thread: Counters,
}

/// CPU usage of one thread over the measured window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    /// Start of the window.
    pub begin_ns: u64,
    /// At the start of the schedule.
    start: Option<Reading>,
    begin: Option<Reading>,
    end: Option<Reading>,
}

impl ThreadUsage {
    /// Called before the schedule starts, on the thread itself; the window begins at `begin_ns`.
    pub(crate) fn start(&mut self, now_ns: u64, begin_ns: u64, of_loop: LoopCounters) {
        self.begin_ns = begin_ns;
        self.start = Some(Reading { now_ns, of_loop, of_thread: Counters::read() });
    }

    /// When [`ThreadUsage::read_if_due`] must be called, besides the end of the window.
    pub(crate) fn next_ns(&self) -> u64 {
        if self.begin.is_some() { u64::MAX } else { self.begin_ns }
    }

    /// Takes each of the two readings when it is due. Called on the thread itself.
    pub(crate) fn read_if_due(&mut self, now_ns: u64, end_ns: u64, of_loop: LoopCounters) {
        let is_due = match (&self.begin, &self.end) {
            (None, _) => now_ns >= self.begin_ns,
            (Some(_), None) => now_ns >= end_ns,
            (Some(_), Some(_)) => false,
        };
        if is_due {
            let reading = Reading { now_ns, of_loop, of_thread: Counters::read() };
            if self.begin.is_some() {
                self.end = Some(reading);
            } else {
                let is_late = now_ns > self.begin_ns + BEGIN_LATE_MAX_NS;
                self.begin = self.start.filter(|_| is_late).or(Some(reading));
            }
        }
    }

    /// The difference of the two readings, of a worker without a number; zeros if the window did not begin.
    pub(crate) fn total(&self) -> ClientUsage {
        let (begin, end) = self.begin.zip(self.end).unwrap_or_default();
        let (was, is) = (begin.of_thread, end.of_thread);
        let (user_ns, system_ns) = (is.user_ns - was.user_ns, is.system_ns - was.system_ns);
        let cpu_ns = user_ns + system_ns;
        let delays = is.run_delay_ns.zip(was.run_delay_ns);
        let worker = WorkerUsage {
            wall_ns: end.now_ns - begin.now_ns,
            busy_ns: cpu_ns.saturating_sub(end.of_loop.waited_ns - begin.of_loop.waited_ns),
            cpu_ns,
            run_delay_ns: delays.map(|(end_ns, begin_ns)| end_ns.saturating_sub(begin_ns)),
            involuntary_switches: is.involuntary_switches - was.involuntary_switches,
            voluntary_switches: is.voluntary_switches - was.voluntary_switches,
            ..WorkerUsage::default()
        };
        ClientUsage {
            cpu_user_ns: user_ns,
            cpu_system_ns: system_ns,
            syscalls: end.of_loop.syscalls - begin.of_loop.syscalls,
            workers: vec![worker],
            ..ClientUsage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that works, waits in its loop, and sleeps.
    #[test]
    fn the_time_of_an_interval_is_that_since_the_last() {
        let reading = |cpu_ns, waited_ns, run_delay_ns| TimeReading { cpu_ns, waited_ns, run_delay_ns };
        let table = [
            (reading(900, 300, Some(40)), 400, Some(30)),
            (reading(900, 300, None), 400, None),
            // The loop read its clock after the thread's.
            (reading(300, 210, Some(10)), 0, Some(0)),
        ];
        for (now, busy_ns, run_delay_ns) in table {
            let time = now.since(&reading(300, 100, Some(10)));
            assert_eq!(time, WorkerTime { busy_ns, run_delay_ns }, "{now:?}");
        }
        let mut meter = TimeMeter::default();
        assert_eq!(meter.take(0), None);
        let mut busy_ns = 0;
        while busy_ns < 1_000_000 {
            busy_ns += meter.take(0).unwrap().busy_ns;
        }
    }

    /// (begin, may only wait, something came in) of each turn, and the sum.
    #[test]
    fn waiting_iterations_are_summed() {
        let check = |turns: &[(u64, bool, bool)], expected_ns: u64| {
            let mut waiting = Waiting::default();
            for (at_ns, may_only_wait, came_in) in turns {
                waiting.enter(*at_ns, *may_only_wait);
                if *came_in {
                    waiting.came_in();
                }
            }
            assert_eq!(waiting.total_ns, expected_ns, "{turns:?}");
        };
        check(&[(0, true, false), (700, true, false), (1_500, false, false), (9_000, false, false)], 1_500);
        check(&[(0, true, true), (700, true, false), (1_500, false, true)], 800);
        // Preempted for 8 ms in a poll.
        check(&[(0, true, false), (8_000_000, true, false), (8_005_000, false, false)], 5_000);
    }

    #[test]
    fn usage_is_the_difference_of_two_readings() {
        let counters = |syscalls, waited_ns| LoopCounters { syscalls, waited_ns };
        let mut usage = ThreadUsage::default();
        usage.start(10, 1_000, counters(0, 0));
        usage.read_if_due(999, 9_000, counters(1, 0));
        assert_eq!(usage.next_ns(), 1_000);
        usage.read_if_due(1_001, 9_000, counters(5, 10));
        assert_eq!((usage.next_ns(), usage.total().workers[0].wall_ns), (u64::MAX, 0));
        usage.read_if_due(8_999, 9_000, counters(70, 0));
        usage.read_if_due(9_500, 9_000, counters(105, 10));
        usage.read_if_due(99_500, 9_000, counters(9_999, 10));
        let total = usage.total();
        let [worker] = &total.workers[..] else { panic!("one worker") };
        assert_eq!((total.syscalls, worker.wall_ns), (100, 8_499));
        assert_eq!(worker.busy_ns, worker.cpu_ns);
    }

    #[test]
    fn late_threads_are_observed_from_the_schedule_start() {
        let counters = |syscalls| LoopCounters { syscalls, waited_ns: 0 };
        let mut usage = ThreadUsage::default();
        usage.start(10, 1_000, counters(1));
        usage.read_if_due(1_001 + BEGIN_LATE_MAX_NS, 9_000, counters(5));
        usage.read_if_due(1_002 + BEGIN_LATE_MAX_NS, 9_000, counters(7));
        let total = usage.total();
        assert_eq!((total.syscalls, total.workers[0].wall_ns), (6, 992 + BEGIN_LATE_MAX_NS));
    }
}
