//! The reference server from the outside: transcripts, the queue in virtual time, sockets, and the real memcached.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod binary;
mod differential;
mod drip;
mod faults;
mod golden;
mod loopback;
mod memcached;
mod meta;
mod outage;
mod queue;
mod real;
mod resp;
mod sockets;
mod transcripts;

use brunt_server::core::{ConnectionId, Core, End};

/// Rows of text, whose fields ` => ` separates; a field may stand on a line of its own. Control characters, and a blank at
/// the beginning, are written as escapes, a field of nothing as `''`.
fn cases<const N: usize>(text: &str) -> Vec<[String; N]> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let rows = lines.collect::<Vec<_>>().join("\u{1}").replace("\u{1}=>", " =>");
    let control =
        [(r"\n", "\n"), (r"\r", "\r"), (r"\t", "\t"), (r"\0", "\0"), (r"\x20", " "), (r"\x7f", "\u{7f}")];
    let text = control.iter().fold(rows, |text, (escape, character)| text.replace(escape, character));
    let fields = |row: &str| {
        row.split(" => ")
            .map(|field| if field == "''" { String::new() } else { field.to_owned() })
            .collect::<Vec<_>>()
    };
    text.split('\u{1}').map(|row| fields(row).try_into().expect("as many fields as all rows have")).collect()
}

/// Takes everything that leaves by `now_ns` and gives the bytes of one connection.
fn drain(core: &mut Core, connection: ConnectionId, now_ns: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(departure) = core.pop_due(now_ns) {
        if departure.connection == connection {
            bytes.extend_from_slice(departure.bytes);
        }
    }
    bytes
}

/// The same of a sender of datagrams, one by one.
fn datagrams(core: &mut Core, peer: ConnectionId, now_ns: u64) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(departure) = core.pop_due(now_ns) {
        if departure.connection == peer {
            all.push(departure.bytes.to_vec());
        }
    }
    all
}

/// Takes everything there is, as (connection, departure, bytes, end).
fn departures(core: &mut Core) -> Vec<(ConnectionId, u64, String, End)> {
    departures_until(core, u64::MAX)
}

/// The same, of what leaves by `now_ns`.
fn departures_until(core: &mut Core, now_ns: u64) -> Vec<(ConnectionId, u64, String, End)> {
    let mut all = Vec::new();
    while let Some(due) = core.pop_due(now_ns) {
        let text = String::from_utf8(due.bytes.to_vec()).unwrap();
        all.push((due.connection, due.departure_ns, text, due.end));
    }
    all
}

/// `next() / 2⁶⁴` is uniform; a generator of the tests' own (Marsaglia's xorshift64*), so that no test draws from what
/// it tests.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -(((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64).ln() * mean
    }
}
