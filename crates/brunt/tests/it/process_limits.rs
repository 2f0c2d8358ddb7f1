//! Limits of the process (setrlimit(2)): what they refuse is named, and nothing is aborted.

use crate::measured::ALL;
use crate::server::{Ended, Server, by_shell, rows};

/// A run of nothing much under a limit, in the words of prlimit(1): its end.
fn limited(limit: &str, server: &str, options: &str) -> Ended {
    // Root has as many processes as it wants.
    let other = match limit.starts_with("--nproc") && rustix::process::getuid().is_root() {
        true => "setpriv --reuid=65534 --regid=65534 --clear-groups",
        false => "",
    };
    let run = format!("run -s {server} -n 100 --no-preload --warmup 0s -q --allow={ALL} {options}");
    by_shell(&format!("exec {other} prlimit {limit} \"$@\""), &run).into()
}

/// Options that size memory, under a limit of address space that they exceed alone, or with what every run takes.
#[test]
fn memory_that_cannot_be_had_is_named() {
    let server = Server::reference("");
    let samples = "-o samples:/dev/null --set samples-max=100M";
    let table = format!(
        "--as=400000000 => -c 1000 --depth 16000
         --as=200000000 => --keys 10M --verify --popularity zipf:0.99 -c 2 -T 2
         --as=400000000 => {samples}
         --as=100000000 => --value-size 128MiB
         --as=100000000 => -c 19000
         --as=130000000 => -c 1000 --depth 100 --mix mget --multiget 1024"
    );
    for [limit, options] in rows(&table) {
        let ended = limited(limit, &server.address, options);
        ended.is(1, &["error: out of memory: cannot allocate ", "see which option asks for much"]);
        assert!(ended.said.starts_with("error: ") && ended.said.lines().count() == 1, "{limit} {options}");
    }
}

/// io_uring is tried like anything else, with no more memory than a run takes.
#[test]
fn a_run_fits_into_100_mib_of_address_space() {
    let server = Server::reference("");
    for io in ["auto", "epoll"] {
        let ended = limited("--as=104857600", &server.address, &format!("--io {io} -T 1 -c 1"));
        assert_eq!((ended.exit, &*ended.said), (0, ""), "{io}");
    }
}

/// No bare text of an error number: what failed stands before it.
#[test]
fn refused_threads_and_files_are_named() {
    let server = Server::reference("");
    let thread = "Resource temporarily unavailable (os error 11); see the limits of processes and of memory, ulimit -u and ulimit -v";
    let plan = "--value-size @/etc/hostname";
    let table = [
        ("--nproc=1", "", format!("error: cannot handle signals: cannot start the thread signals: {thread}")),
        ("--nproc=1", "-o ndjson:-", format!("error: cannot start the thread brunt-lines: {thread}")),
        ("--nproc=1", plan, format!("cannot start the thread brunt-input: {thread}")),
        ("--nofile=5", "", "error: cannot handle signals: Too many open files (os error 24)".to_owned()),
    ];
    for (limit, options, expected) in table {
        let ended = limited(limit, &server.address, options);
        assert!(matches!(ended.exit, 1 | 2) && ended.said.contains(&expected), "{limit} {options}");
    }
}
