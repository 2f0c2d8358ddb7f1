//! Where libmemcached itself looks for keys: its answers, recorded, for [`super::Router`] to agree with.
//!
//! Made with libmemcached 1.1.4 (libmemcached-dev 1.1.4-1) on x86-64: a C program creates a `memcached_st`, sets nothing,
//! `MEMCACHED_BEHAVIOR_KETAMA` or `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` to 1, adds the servers in order with
//! `memcached_server_add` (IPv6 literals without brackets), and prints `memcached_generate_hash` of every key. An answer is
//! a letter for each key, `a` for the first server.

use brunt_plan::plan::Placement;

/// How many keys there are to every row.
pub(super) const KEYS: usize = 300;

/// The key of this number: native ones, dotted with user names, padded to 250 bytes, outside of ASCII.
pub(super) fn key(number: usize) -> String {
    match (number % 50, number % 3) {
        (49, _) => format!("schlüssel-{number}"),
        (_, 0) => format!("{:030}", number * number * 37),
        (_, 1) => format!("user:{number}:profile"),
        (_, _) => format!("{number:x<width$}", width = number * 5 / 6),
    }
}

/// Names and addresses, with the default port and with others.
const MIXED: [&str; 7] = [
    "cache-1.example",
    "cache-2.example:11212",
    "10.0.0.3",
    "10.0.0.4:5000",
    "[2001:db8::5]",
    "[2001:db8::6]:65535",
    "localhost",
];

/// One host, neighbouring ports.
const LOCAL: [&str; 7] = [
    "127.0.0.1:11311",
    "127.0.0.1:11312",
    "127.0.0.1:11313",
    "127.0.0.1:11314",
    "127.0.0.1:11315",
    "127.0.0.1:11316",
    "127.0.0.1:11317",
];

/// As many servers as it takes for single precision to show.
const MANY: [&str; 25] = [
    "cache-0", "cache-1", "cache-2", "cache-3", "cache-4", "cache-5", "cache-6", "cache-7", "cache-8",
    "cache-9", "cache-10", "cache-11", "cache-12", "cache-13", "cache-14", "cache-15", "cache-16",
    "cache-17", "cache-18", "cache-19", "cache-20", "cache-21", "cache-22", "cache-23", "cache-24",
];

/// The answers of this name: the server of every key with the fewest servers, behind a blank line with one more, and so on.
pub(super) fn recorded(name: &str) -> impl Iterator<Item = String> {
    let sections = include_str!("libmemcached.txt").split("\n== ");
    let section = sections.filter_map(|section| section.split_once('\n')).find(|(title, _)| *title == name);
    let (_, answers) = section.expect("the recording has it");
    answers.split("\n\n").map(|rows| rows.split_whitespace().collect())
}

/// Placement, servers, the fewest of them, and the name of the answers.
pub(super) const ANSWERS: [(Placement, &[&str], usize, &str); 7] = [
    (Placement::Modulo, &MIXED, 2, "modulo"),
    (Placement::Modulo, &LOCAL, 2, "modulo"),
    (Placement::Ketama, &MIXED, 2, "ketama, mixed"),
    (Placement::Ketama, &LOCAL, 2, "ketama, local"),
    (Placement::KetamaWeighted, &MIXED, 2, "ketama-weighted, mixed"),
    (Placement::KetamaWeighted, &LOCAL, 2, "ketama-weighted, local"),
    (Placement::KetamaWeighted, &MANY, 25, "ketama-weighted, many"),
];
