//! A server that has one reply to whatever it is asked: what is no reply to the operation is no success, however well-formed it is.
//!
//! Every pair of an operation and a reply is tried in the engine's virtual world (`brunt-engine/src/simulated/replies.rs`); here, over
//! sockets and through the binary, is what a user is told.

use crate::measured::Measured;
use crate::server::{ended, listening};
use std::io::{Read, Write};

/// Says this whenever it has heard something.
fn fixed_reply_server(says: &'static [u8]) -> String {
    listening(|mut stream, _| {
        let mut heard = [0; 4096];
        while stream.read(&mut heard).is_ok_and(|len| len > 0) && stream.write_all(says).is_ok() {}
    })
}

/// A preload of which no store is confirmed ends so, with what came in place of it.
#[test]
fn keys_are_stored_once_confirmed() {
    let table: [(&str, &[u8], &str); 8] = [
        ("memcached-text", b"VERSION 1.6\r\n", r"VERSION 1.6\r\n"),
        ("memcached-text", b"OK\r\n", r"OK\r\n"),
        ("memcached-text", b"END\r\n", r"END\r\n"),
        ("memcached-text", b"VALUE k 0 1\r\nx\r\nEND\r\n", r"VALUE k 0 1\r\nx\r\nEND\r\n"),
        ("memcached-meta", b"MN\r\n", r"MN\r\n"),
        ("resp2", b":1\r\n", r":1\r\n"),
        ("resp2", b"$2\r\nOK\r\n", r"$2\r\nOK\r\n"),
        ("resp2", b"_\r\n", r"_\r\n"),
    ];
    for (protocol, says, quoted) in table {
        let server = fixed_reply_server(says);
        for command in ["load", "run"] {
            let output = ended(&format!("{command} -s {server} --protocol {protocol} --keys 100 --quiet"));
            let said = format!("malformed reply \"{quoted}\": a reply that the operation cannot have");
            output.is(5, &["0 of 100 keys confirmed", &said]);
        }
    }
}

/// What comes in a run is garbage: each request an error, each connection lost, the first of it shown.
#[test]
fn mismatched_replies_are_malformed() {
    let table: [(&str, &str, &[u8], &str); 4] = [
        ("memcached-text", "get", b"STORED\r\n", r"STORED\r\n"),
        ("memcached-text", "delete", b"1\r\n", r"1\r\n"),
        ("memcached-text", "touch", b"OK\r\n", r"OK\r\n"),
        ("resp2", "get", b"*1\r\n$1\r\nx\r\n", r"*1\r\n$1\r\nx\r\n"),
    ];
    for (protocol, kind, says, quoted) in table {
        let flags = format!("--protocol {protocol} --mix {kind} --keys 100 -n 6 -c 2");
        let more = "--no-preload --warmup 0s --set server-stats=false --allow=BROKEN,LOAD,CLIENT,DATA";
        let measured = Measured::run(&fixed_reply_server(says), &format!("{flags} {more}"));
        assert_eq!(measured.requests("error"), 6);
        assert_eq!(measured.requests("completed"), 0);
        assert_eq!(measured.faults(Some("malformed")), 6);
        assert_eq!(measured.at("events.first_malformed.text"), quoted);
        assert_eq!(measured.at("events.first_malformed.reason"), "a reply that the operation cannot have");
    }
}
