//! Sandboxes that refuse single system calls, as containers and hardened hosts do: a run works without the call, or ends with a
//! sentence.

use crate::server::{Server, beside_others, brunt};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::process::Output;

/// What becomes of a run.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// It has a result, whatever its status.
    Result,
    /// It ends with this exit code and a message with these words.
    Error(i32, &'static str),
}
use Expected::{Error, Result};

const REFUSED: [i32; 2] = [libc::EPERM, libc::ENOSYS];

/// Runs a command line whose kernel refuses these calls with this errno.
fn in_sandbox(calls: &[i64], errno: i32, arguments: &[&str]) -> Output {
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
            command.output().unwrap()
        });
        of_child.join().unwrap()
    })
}

#[test]
fn refused_system_calls_end_in_a_result_or_a_sentence() {
    let _beside = beside_others();
    let neither = [libc::SYS_io_uring_setup, libc::SYS_epoll_pwait2];
    // Calls, options of the run → what becomes of it.
    let table: [(&[i64], &str, Expected); 26] = [
        (&[libc::SYS_io_uring_setup], "--io auto", Result),
        (&[libc::SYS_io_uring_setup], "--io uring", Error(2, "error: io_uring unavailable: ")),
        (&[libc::SYS_io_uring_register], "--io auto", Result),
        (&[libc::SYS_io_uring_register], "--io uring", Error(2, "error: io_uring unavailable: ")),
        (&[libc::SYS_io_uring_enter], "--io auto", Result),
        (&[libc::SYS_io_uring_enter], "--io uring", Error(2, "error: io_uring unavailable: ")),
        (&[libc::SYS_epoll_create1], "--io epoll", Error(2, "error: epoll unavailable: epoll_create1: ")),
        (&[libc::SYS_epoll_ctl], "--io epoll", Error(2, "error: epoll unavailable: epoll_ctl: ")),
        (&[libc::SYS_epoll_pwait2], "--io epoll", Error(2, "error: epoll unavailable: epoll_pwait2: ")),
        (&neither, "--io auto", Error(1, "error: no kernel interface works here: io_uring: ")),
        (&[libc::SYS_sched_setaffinity], "--io auto", Result),
        (&[libc::SYS_sched_setaffinity], "--cpus 0", Error(1, "cannot pin a worker to CPU 0 (--cpus): ")),
        (&[libc::SYS_sched_getaffinity], "--io auto", Result),
        (&[libc::SYS_prctl], "--io auto", Result),
        (&[libc::SYS_clock_nanosleep], "--io epoll", Result),
        (&[libc::SYS_nanosleep], "--io epoll", Result),
        (&[libc::SYS_getrusage], "--io auto", Result),
        (&[libc::SYS_prlimit64], "--io auto", Result),
        (&[libc::SYS_setpriority, libc::SYS_perf_event_open, libc::SYS_getcpu], "--io auto", Result),
        (&[libc::SYS_sendmsg, libc::SYS_recvmsg], "--io epoll", Result),
        (
            &[libc::SYS_sendmsg, libc::SYS_recvmsg],
            "--set timestamps=kernel",
            Error(2, "error: timestamps kernel: "),
        ),
        (
            &[libc::SYS_setsockopt],
            "--io auto",
            Error(1, "error: cannot set options of a socket: setsockopt: "),
        ),
        (
            &[libc::SYS_setsockopt],
            "--io epoll",
            Error(1, "error: cannot set options of a socket: setsockopt: "),
        ),
        (
            &[libc::SYS_getsockopt],
            "--io epoll",
            Error(1, "error: cannot read the state of a socket: getsockopt: "),
        ),
        (&[libc::SYS_sendto], "--io epoll", Error(5, "error: preload failed: 0 of 100 keys stored on ")),
        (&[libc::SYS_socketpair], "--io auto", Error(1, "error: cannot handle signals: ")),
    ];
    let server = Server::reference(&[]);
    std::thread::scope(|scope| {
        for errno in REFUSED {
            for (calls, options, expected) in &table {
                let server = &server.address;
                scope.spawn(move || check(calls, errno, server, options, *expected));
            }
        }
    });
}

fn check(calls: &[i64], errno: i32, server: &str, options: &str, expected: Expected) {
    let short = "-q -n 1000 --keys 100 --warmup 0s -T 1 -c 1 --protocol memcached-text --allow=BROKEN,LOAD,CLIENT,DATA";
    let arguments: Vec<&str> =
        ["run", "-s", server].into_iter().chain(short.split(' ')).chain(options.split(' ')).collect();
    let output = in_sandbox(calls, errno, &arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    let (exit, words) = match expected {
        Result => (0, ""),
        Error(exit, words) => (exit, words),
    };
    let case = format!("{calls:?} refused with {errno}, {options}: {said}");
    assert_eq!(output.status.code(), Some(exit), "{case}");
    assert!(said.contains(words) && !said.contains("panicked") && said.lines().count() <= 1, "{case}");
}
