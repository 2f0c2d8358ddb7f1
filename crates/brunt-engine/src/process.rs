//! This process and the system: what the kernel refused, in words; threads that are started by name, and how long one waited for a CPU;
//! whether standard output was closed when the process began, and its time zone.
//!
//! Before `main` the standard library opens /dev/null for standard streams that are closed
//! (`sanitize_standard_fds`), so a result for standard output would be lost without an error. An open /dev/null
//! proves nothing: a caller may pass it on purpose. Invariants: that check runs before the standard library does; an error of the system
//! that leaves this crate says what failed.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// Puts in front of an error what could not be done. Its kind stays.
pub fn cannot(action: &str) -> impl Fn(io::Error) -> io::Error + use<> {
    let action = action.to_owned();
    move |error| io::Error::new(error.kind(), format!("cannot {action}: {error}"))
}

/// Starts a thread of this name.
///
/// # Errors
/// The kernel refuses it; with its name, and the limit that most likely refused it.
pub fn start_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|error| {
        let limit = match error.kind() {
            io::ErrorKind::WouldBlock => {
                "; see the limits of processes and of memory, ulimit -u and ulimit -v"
            }
            _ => "",
        };
        io::Error::new(error.kind(), format!("cannot start the thread {name}: {error}{limit}"))
    })
}

/// The result of a thread. If it has panicked, its message is printed already, and this thread must not seem a success.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// System calls of [`read_run_delay_ns`].
pub(crate) const RUN_DELAY_SYSCALLS: u64 = 3;

/// The scheduler's statistics of the calling thread. The file is opened for each reading.
pub(crate) fn read_run_delay_ns() -> Option<u64> {
    run_delay_in(&open_schedstat()?)
}

/// The file stays that of the thread that opened it.
pub(crate) fn open_schedstat() -> Option<OwnedFd> {
    openat(CWD, c"/proc/thread-self/schedstat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Reads the file from its beginning, where it has its newest numbers.
pub(crate) fn run_delay_in(schedstat: &OwnedFd) -> Option<u64> {
    // Three numbers of up to 20 digits.
    let mut text = [0; 64];
    let len = rustix::io::pread(schedstat, &mut text[..], 0).ok()?;
    run_delay_ns(std::str::from_utf8(&text[..len]).ok()?)
}

/// The second number: time in which the thread was runnable without a CPU, throttling included.
fn run_delay_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Was standard output closed when the process began?
pub fn standard_output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the C library calls the entries of this section once, before `main`, on the only thread. It passes argc,
// argv and envp, which a function without parameters may ignore in every C ABI of Linux. `note_closed` uses nothing of the
// standard library that is set up later.
#[used]
#[expect(unsafe_code, reason = "a function of .init_array")]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

#[expect(unsafe_code, reason = "the standard library takes descriptors for open")]
extern "C" fn note_closed() {
    // SAFETY: F_GETFD takes no pointer, and a number that is no descriptor is answered with EBADF.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Seconds that local time is ahead of UTC at this instant, in seconds since 1970; 0 where the C library does not know.
#[expect(unsafe_code, reason = "no safe wrapper of localtime_r is among our dependencies")]
pub fn utc_offset_s(unix_s: i64) -> i64 {
    let mut local = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: localtime_r reads one time_t and writes one tm, both valid for that; it fails where a year does not fit, and an
    // all-zero tm, which is then left as it is, is a valid value: integers and a pointer that may be null and is not followed.
    let local = unsafe {
        libc::localtime_r(&unix_s, local.as_mut_ptr());
        local.assume_init()
    };
    local.tm_gmtoff
}

/// How far CLOCK_REALTIME may be from UTC by the kernel's account, in nanoseconds: what its synchronisation keeps, and 16 s where nothing
/// synchronises it.
#[expect(unsafe_code, reason = "no safe wrapper of adjtimex is among our dependencies")]
pub fn clock_error_ns() -> u64 {
    let mut clock = std::mem::MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: adjtimex reads and writes one timex; modes of 0 change no clock, and an all-zero timex is a valid value: integers.
    let clock = unsafe {
        libc::adjtimex(clock.as_mut_ptr());
        clock.assume_init()
    };
    clock.maxerror.unsigned_abs() * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_delay_is_parsed() {
        let table = [
            ("0 0 1\n", Some(0)),
            ("418871989 1581549870 115\n", Some(1_581_549_870)),
            ("7", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(run_delay_ns(text), expected, "{text:?}");
        }
    }

    /// Offsets are whole quarters of an hour in our century, from -12 h to +14 h.
    #[test]
    fn offsets_are_those_of_zones() {
        for unix_s in [1_700_000_000, 1_750_000_000] {
            let offset_s = utc_offset_s(unix_s);
            assert!((-12 * 3_600..=14 * 3_600).contains(&offset_s) && offset_s % 900 == 0, "{offset_s}");
        }
    }
}
