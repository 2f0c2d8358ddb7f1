//! The load generator against servers with users of their own and with ill manners: what was sent is what the server counts, and what is no
//! reply breaks the run.
//!
//! Not requests that a server wrongs by their number (`accounting.rs`).

use crate::measured::Measured;
use crate::server::{Server, listening};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every operation that Redis has too: what was sent is what the server counts, by kind and by outcome.
#[test]
fn client_and_server_counts_agree() {
    let server = Server::reference("--user writer --password secret");
    let flags = "--protocol resp3 --set user=writer --password secret --keys 500 -c 4";
    let more = "-n 20000 --warmup 0s --set drain=5s --allow=BROKEN,LOAD,CLIENT,DATA";
    let mix = "--mix get=4,mget=1,set=2,add=1,replace=1,append=1,delete=1,touch=1 --ttl 1h";
    let measured = Measured::run(&server, &format!("{flags} {more} {mix}"));
    assert_eq!(measured.exit, 0);
    assert_eq!(measured.over_phases("requests.error") + measured.over_phases("requests.timeout"), 0);
    // It speaks memcached's text to a client that asks for statistics, once that client has authenticated.
    let counts = counts(&server.address);
    let count = |name: &str| -> u64 {
        let line = counts.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap().parse().unwrap()
    };
    assert_eq!(count("cmd_get"), measured.over_phases("keys.requested"));
    assert_eq!(count("get_hits"), measured.over_phases("keys.hit"));
    let sent = |op: &str| measured.count_or_0(&format!("ops.{op}.counts.requests.sent"));
    assert_eq!(count("cmd_touch"), sent("touch"));
    assert_eq!(count("delete_hits") + count("delete_misses"), sent("delete"));
    let stores: u64 = ["set", "add", "replace", "append"].map(sent).iter().sum();
    assert_eq!(count("cmd_set"), stores + 500);
}

fn counts(address: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"set x 0 0 13\r\nwriter secret\r\nstats\r\nquit\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// What a server of a test's own does with a get, which finds nothing.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Bytes that are no reply are behind the reply, in one piece with it.
    GarbageBehind,
    /// They are there behind every thousandth.
    SomeGarbageBehind,
    /// The connection is closed when the reply is sent.
    Closes,
}

/// A server that serves gets in this manner.
fn ill_mannered(manner: Manner) -> String {
    let served = AtomicU64::new(0);
    listening(move |stream, _| serve_ill(&stream, manner, &served))
}

fn serve_ill(mut stream: &TcpStream, manner: Manner, served: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let number = served.fetch_add(u64::from(line.starts_with("get ")), Ordering::Relaxed) + 1;
        let is_garbled = match manner {
            Manner::GarbageBehind => true,
            Manner::SomeGarbageBehind => number.is_multiple_of(1_000),
            Manner::Closes => false,
        };
        let reply: &[u8] = if is_garbled { b"END\r\n\x00\xff hello\r\n" } else { b"END\r\n" };
        if stream.write_all(reply).is_err() || matches!(manner, Manner::Closes) {
            return;
        }
    }
}

/// Every request is answered and none is lost, and yet something is wrong. Bytes that are no reply make any number of the run
/// worthless, and one such reply is enough; connections that are closed between requests are counted, and are no doubt about the numbers.
#[test]
fn bytes_that_are_no_reply_break_the_run() {
    let table = [
        (Manner::GarbageBehind, "invalid", "malformed"),
        (Manner::SomeGarbageBehind, "invalid", "malformed"),
        (Manner::Closes, "ok", "closed_by_peer"),
    ];
    for (manner, status, kind) in table {
        let address = ill_mannered(manner);
        let flags = "--mix get --no-preload -c 2 -n 4000 --warmup 0s --set server-stats=false";
        let measured = Measured::run(&address, &format!("{flags} --timeout 5s -T 1 --strict"));
        let count = measured.faults(None);
        assert!(count >= 4 && measured.faults(Some(kind)) > 0, "{manner:?}");
        let (found, message) = measured.check("BROKEN");
        assert_eq!(found, status, "{manner:?}");
        if !matches!(manner, Manner::Closes) {
            let counted = format!("bytes came that are no reply, {count} times: ");
            assert!(message.starts_with(&counted), "{message}");
            // A request may be on its way to one that closes.
            assert_eq!((measured.requests("completed"), measured.exit), (4_000, 3));
        }
    }
}
