//! The reference server from the outside: transcripts, the queue in virtual time, sockets, and the real memcached.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod binary;
mod differential;
mod drip;
mod faults;
mod golden;
mod in_thread;
mod loopback;
mod m_d_1;
mod memcached;
mod meta;
mod outage;
mod queue;
mod real;
mod resp;
mod server_log;
mod sockets;
mod transcripts;

use brunt_server::core::{ConnectionId, Core, CoreOptions, End};

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

/// A core with one connection.
fn connected(options: CoreOptions) -> Core {
    let mut core = Core::new(options);
    core.connect(0);
    core
}

/// What is answered on it when the bytes come in these pieces.
fn answer<'a>(core: &mut Core, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut answered = Vec::new();
    for piece in pieces {
        core.receive(0, piece, 0);
        answered.extend(drain(core, 0, 0));
    }
    answered
}

/// The front of bytes, as text.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(1000)].escape_ascii().to_string()
}

#[track_caller]
fn assert_same(answered: &[u8], expected: &[u8], sent: &[u8]) {
    let [sent, expected_text, answered_text] = [sent, expected, answered].map(shown);
    assert!(answered == expected, "sent {sent}\nexpected {expected_text}\nanswered {answered_text}");
}

/// Compares the answers of exchanges with those of a real server; none where there is no such server.
fn check_real(exchanges: Vec<(Vec<u8>, Vec<u8>)>, converse: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    let mut differences = String::new();
    for (sent, ours) in exchanges {
        let Some(theirs) = converse(&sent) else { return };
        if ours != theirs {
            let [sent, ours, theirs] = [&sent, &ours, &theirs].map(|bytes| shown(bytes));
            differences += &format!("sent {sent}\nours {ours}\ntheirs {theirs}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
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
