//! Sandboxes that refuse single system calls, as containers and hardened hosts do: a run works without the call, or ends with a
//! sentence.

use crate::server::{Ended, Server, brunt, side_by_side};
use libc::*;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// What becomes of a run.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// It has a result, whatever its status.
    Result,
    /// It ends with this exit code and a message with these words.
    Error(i32, &'static str),
}
use Expected::{Error, Result};

const REFUSED: [i32; 2] = [EPERM, ENOSYS];

/// Runs a command line whose kernel refuses these calls with this errno.
fn in_sandbox(calls: &[i64], errno: i32, arguments: &str) -> Ended {
    std::thread::scope(|scope| {
        let of_child = scope.spawn(|| {
            let filter = SeccompFilter::new(
                calls.iter().map(|call| (*call, Vec::new())).collect(),
                SeccompAction::Allow,
                SeccompAction::Errno(errno as u32),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            let program: BpfProgram = filter.unwrap().try_into().unwrap();
            let mut command = brunt(arguments);
            // Of this thread, and of what it starts.
            seccompiler::apply_filter(&program).unwrap();
            Ended::from(&mut command)
        });
        of_child.join().unwrap()
    })
}

#[test]
fn refused_system_calls_end_in_a_result_or_a_sentence() {
    let neither = [SYS_io_uring_setup, SYS_epoll_pwait2];
    // Calls, options of the run → what becomes of it.
    let table: [(&[i64], &str, Expected); 26] = [
        (&[SYS_io_uring_setup], "--io auto", Result),
        (&[SYS_io_uring_setup], "--io uring", Error(2, "error: io_uring unavailable: ")),
        (&[SYS_io_uring_register], "--io auto", Result),
        (&[SYS_io_uring_register], "--io uring", Error(2, "error: io_uring unavailable: ")),
        (&[SYS_io_uring_enter], "--io auto", Result),
        (&[SYS_io_uring_enter], "--io uring", Error(2, "error: io_uring unavailable: ")),
        (&[SYS_epoll_create1], "--io epoll", Error(2, "error: epoll unavailable: epoll_create1: ")),
        (&[SYS_epoll_ctl], "--io epoll", Error(2, "error: epoll unavailable: epoll_ctl: ")),
        (&[SYS_epoll_pwait2], "--io epoll", Error(2, "error: epoll unavailable: epoll_pwait2: ")),
        (&neither, "--io auto", Error(1, "error: no kernel interface works here: io_uring: ")),
        (&[SYS_sched_setaffinity], "--io auto", Result),
        (&[SYS_sched_setaffinity], "--cpus 0", Error(1, "cannot pin a worker to CPU 0 (--cpus): ")),
        (&[SYS_sched_getaffinity], "--io auto", Result),
        (&[SYS_prctl], "--io auto", Result),
        (&[SYS_clock_nanosleep], "--io epoll", Result),
        (&[SYS_nanosleep], "--io epoll", Result),
        (&[SYS_getrusage], "--io auto", Result),
        (&[SYS_prlimit64], "--io auto", Result),
        (&[SYS_setpriority, SYS_perf_event_open, SYS_getcpu], "--io auto", Result),
        (&[SYS_sendmsg, SYS_recvmsg], "--io epoll", Result),
        (&[SYS_sendmsg, SYS_recvmsg], "--set timestamps=kernel", Error(2, "error: timestamps kernel: ")),
        (&[SYS_setsockopt], "--io auto", Error(1, "error: cannot set options of a socket: setsockopt: ")),
        (&[SYS_setsockopt], "--io epoll", Error(1, "error: cannot set options of a socket: setsockopt: ")),
        (&[SYS_getsockopt], "--io epoll", Error(1, "error: cannot read the state of a socket: getsockopt: ")),
        (&[SYS_sendto], "--io epoll", Error(5, "error: preload failed: 0 of 100 keys confirmed on ")),
        (&[SYS_socketpair], "--io auto", Error(1, "error: cannot handle signals: ")),
    ];
    let server = Server::reference("");
    let rows = REFUSED.into_iter().flat_map(|errno| table.iter().map(move |row| (errno, row)));
    side_by_side(rows, |(errno, (calls, options, expected))| {
        check(calls, errno, &server.address, options, *expected);
    });
}

fn check(calls: &[i64], errno: i32, server: &str, options: &str, expected: Expected) {
    let short = "-q -n 1000 --keys 100 --warmup 0s -T 1 -c 1 --protocol memcached-text --allow=BROKEN,LOAD,CLIENT,DATA";
    let output = in_sandbox(calls, errno, &format!("run -s {server} {short} {options}"));
    let said = &output.said;
    let (exit, words) = match expected {
        Result => (0, ""),
        Error(exit, words) => (exit, words),
    };
    let case = format!("{calls:?} refused with {errno}, {options}");
    assert_eq!(output.exit, exit, "{case}");
    assert!(said.contains(words) && !said.contains("panicked") && said.lines().count() <= 1, "{case}");
}
