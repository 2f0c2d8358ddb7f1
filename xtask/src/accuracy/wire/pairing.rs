//! Pairs each get of a capture with its reply, per connection and by their places in the streams.
//!
//! Not a codec: it finds where messages of memcached's text protocol end and which requests are gets. Loopback keeps the order of
//! a connection's segments: what is sent again is passed over, and behind a missing packet nothing of that direction is read.
//! Invariant: the n-th request that wants a reply goes with the n-th reply of its connection, each at the time of its last byte.
//! A get without a reply is counted and never guessed.

use super::capture::{Segment, Side};
use std::collections::BTreeMap;

/// A get and its reply: when the last byte of each was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) request_ns: u64,
    pub(super) reply_ns: u64,
}

/// All of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairing {
    /// By the time of the request.
    pub(super) exchanges: Vec<Exchange>,
    /// Gets whose reply was not found.
    pub(super) unpaired: u64,
    /// Requests of any kind with a reply.
    pub(super) answered: u64,
}

/// What a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Get,
    /// A request without a reply.
    Unanswered,
    #[default]
    Other,
}

/// What a line tells: the kind of the message, how many bytes of data follow, and whether it ends with them.
type Line = (Kind, u64, bool);

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// The sequence numbers of the first byte and of the next one.
    numbers: Option<(u32, u32)>,
    /// A byte that must be read is missing.
    is_cut: bool,
    line: Vec<u8>,
    /// What the last line told, with the bytes of data that are left.
    last: Line,
    /// Whole messages: time and kind.
    messages: Vec<(u64, Kind)>,
}

impl Direction {
    fn add(&mut self, segment: &Segment<'_>) {
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let (_, next) = self.numbers.get_or_insert((first, first));
        // Sequence numbers wrap around at 2^32.
        let seen = next.wrapping_sub(first) as i32;
        self.is_cut |= seen < 0;
        let seen = seen.max(0) as usize;
        if !self.is_cut && segment.length > seen {
            *next = first.wrapping_add(segment.length as u32);
            let captured = segment.bytes.get(seen..).unwrap_or_default();
            let line = if segment.from == Side::Client { request_line } else { reply_line };
            self.read(captured, segment.length - seen, segment.time_ns, line);
        }
    }

    /// Reads `length` bytes, of which the first are captured. Data need not be, a line must.
    fn read(&mut self, captured: &[u8], length: usize, time_ns: u64, line: fn(&[u8]) -> Line) {
        let mut at = 0;
        while at < length {
            if self.last.1 > 0 {
                let skipped = self.last.1.min((length - at) as u64);
                self.last.1 -= skipped;
                at += skipped as usize;
            } else {
                let Some(&byte) = captured.get(at) else {
                    self.is_cut = true;
                    return;
                };
                at += 1;
                self.line.push(byte);
                if byte != b'\n' {
                    continue;
                }
                self.last = line(self.line.trim_ascii_end());
                self.line.clear();
            }
            if let (kind, 0, true) = self.last {
                self.messages.push((time_ns, kind));
                self.last = Line::default();
            }
        }
    }
}

fn request_line(line: &[u8]) -> Line {
    let mut words = line.split(|byte| *byte == b' ');
    let verb = words.next().unwrap_or_default();
    let kind = match verb {
        b"get" | b"gets" => Kind::Get,
        b"quit" => Kind::Unanswered,
        _ if line.ends_with(b" noreply") => Kind::Unanswered,
        _ => Kind::Other,
    };
    let has_data = matches!(verb, b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas");
    // verb key flags exptime bytes
    (kind, if has_data { data_bytes(words.nth(3)) } else { 0 }, true)
}

fn reply_line(line: &[u8]) -> Line {
    let mut words = line.split(|byte| *byte == b' ');
    match words.next().unwrap_or_default() {
        // VALUE key flags bytes
        b"VALUE" => (Kind::Other, data_bytes(words.nth(2)), false),
        b"STAT" => (Kind::Other, 0, false),
        _ => (Kind::Other, 0, true),
    }
}

/// Of data of as many bytes as a word tells, with its line end.
fn data_bytes(word: Option<&[u8]>) -> u64 {
    let bytes = word.and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
    bytes.map_or(0, |bytes| bytes + 2)
}

/// Requests and replies of a connection.
type Connection = [Direction; 2];

fn pair_connection([requests, replies]: &Connection, pairing: &mut Pairing) {
    let mut replies = replies.messages.iter().map(|(reply_ns, _)| *reply_ns);
    for &(request_ns, kind) in requests.messages.iter().filter(|(_, kind)| *kind != Kind::Unanswered) {
        let reply_ns = replies.next();
        pairing.answered += u64::from(reply_ns.is_some());
        match reply_ns.filter(|reply_ns| *reply_ns >= request_ns) {
            _ if kind != Kind::Get => {}
            Some(reply_ns) => pairing.exchanges.push(Exchange { request_ns, reply_ns }),
            None => pairing.unpaired += 1,
        }
    }
}

/// Pairs what the segments hold, in the order in which they were captured.
pub(super) fn pair(segments: &[Segment<'_>]) -> Pairing {
    let mut connections: BTreeMap<u16, Connection> = BTreeMap::new();
    let mut pairing = Pairing::default();
    for segment in segments {
        let connection = connections.entry(segment.client_port).or_default();
        let opened = segment.sequence.wrapping_add(1);
        let is_opened = segment.is_syn && segment.from == Side::Client;
        // Another connection from the same port.
        if is_opened && connection[0].numbers.is_some_and(|(first, _)| first != opened) {
            pair_connection(&std::mem::take(connection), &mut pairing);
        }
        connection[usize::from(segment.from == Side::Server)].add(segment);
    }
    connections.values().for_each(|connection| pair_connection(connection, &mut pairing));
    pairing.exchanges.sort_unstable_by_key(|exchange| exchange.request_ns);
    pairing
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"get a\r\n";
    const HIT: &[u8] = b"VALUE a 0 2\r\nhi\r\nEND\r\n";

    /// Port, end, sequence number, data; the time is the index in the capture.
    type Sent = (u16, Side, u32, &'static [u8]);

    fn paired(sent: &[Sent]) -> Pairing {
        let segment = |(time_ns, &(client_port, from, sequence, bytes)): (usize, &Sent)| Segment {
            time_ns: time_ns as u64,
            client_port,
            from,
            sequence,
            is_syn: bytes.is_empty(),
            length: bytes.len(),
            bytes,
        };
        pair(&sent.iter().enumerate().map(segment).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(sent: &[Sent], exchanges: &[[u64; 2]], unpaired: u64) {
        let found = paired(sent);
        let times: Vec<_> =
            found.exchanges.iter().map(|exchange| [exchange.request_ns, exchange.reply_ns]).collect();
        assert_eq!((times.as_slice(), found.unpaired), (exchanges, unpaired));
    }

    use Side::{Client as C, Server as S};

    #[test]
    fn exchanges_follow_each_other() {
        check(&[(1, C, 0, GET), (1, S, 0, HIT), (1, C, 7, GET), (1, S, 22, HIT)], &[[0, 1], [2, 3]], 0);
        // Connections side by side.
        check(&[(1, C, 0, GET), (2, C, 0, GET), (2, S, 0, HIT), (1, S, 0, HIT)], &[[0, 3], [1, 2]], 0);
        // From the connection's beginning: each end's first number is no data.
        check(&[(1, C, 9, b""), (1, S, 4, b""), (1, C, 10, GET), (1, S, 5, HIT)], &[[2, 3]], 0);
    }

    #[test]
    fn pipelined_requests_have_their_own_replies() {
        check(
            &[
                (1, C, 0, b"get a\r\nget b\r\n"),
                (1, C, 14, GET),
                (1, S, 0, b"END\r\n"),
                (1, S, 5, b"END\r\nEND\r\n"),
            ],
            &[[0, 2], [0, 3], [1, 3]],
            0,
        );
        // A store between them, and one that wants no reply.
        check(
            &[
                (1, C, 0, b"set a 0 0 2\r\nhi\r\nget a\r\nset a 0 0 1 noreply\r\nh\r\nget a\r\n"),
                (1, S, 0, b"STORED\r\nEND\r\n"),
                (1, S, 13, b"END\r\n"),
            ],
            &[[0, 1], [0, 2]],
            0,
        );
    }

    #[test]
    fn the_last_segment_of_a_message_counts() {
        check(
            &[
                (1, C, 0, b"get"),
                (1, C, 3, b" a\r\n"),
                (1, S, 0, b"VALUE a 0 2\r\n"),
                (1, S, 13, b"hi\r\nEN"),
                (1, S, 19, b"D\r\n"),
            ],
            &[[1, 4]],
            0,
        );
    }

    #[test]
    fn what_is_sent_again_changes_nothing() {
        check(
            &[
                (1, C, 0, GET),
                (1, C, 0, GET),
                (1, S, 0, HIT),
                (1, S, 0, HIT),
                (1, C, 7, GET),
                (1, C, 0, b"get a\r\nget a\r\n"),
                (1, S, 22, HIT),
            ],
            &[[0, 2], [4, 6]],
            0,
        );
    }

    #[test]
    fn gets_without_a_reply_are_counted() {
        // The reply to the second, and what follows it on this connection; the other one goes on.
        check(
            &[
                (1, C, 0, GET),
                (1, S, 0, HIT),
                (1, C, 7, GET),
                (1, C, 14, GET),
                (1, S, 44, HIT),
                (2, C, 0, GET),
                (2, S, 0, HIT),
            ],
            &[[0, 1], [5, 6]],
            2,
        );
        // A request that is missing: those behind it cannot be found, and none is paired with another's reply.
        check(&[(1, C, 0, GET), (1, S, 0, HIT), (1, C, 14, GET), (1, S, 22, HIT)], &[[0, 1]], 0);
        // The capture began between a request and its reply.
        check(&[(1, S, 0, HIT), (1, C, 7, GET), (1, S, 22, HIT)], &[], 1);
    }

    #[test]
    fn data_need_not_be_captured_and_lines_must() {
        // Data, the first bytes of it that were captured, and the messages that are found: time and kind.
        type Sent<'a> = (&'a [u8], usize);
        type Row<'a> = (Side, &'a [Sent<'a>], &'a [(u64, Kind)]);
        let table: [Row<'_>; 6] = [
            (C, &[(b"set a 0 0 5\r\nhello\r\n", 14), (b"get a\r\n", 7)], &[(0, Kind::Other), (1, Kind::Get)]),
            (C, &[(b"get a\r\n", 7), (b"gets b c\r\n", 3), (b"get c\r\n", 7)], &[(0, Kind::Get)]),
            (C, &[(b"set a 0 0 2 noreply\r\nhi\r\nquit\r\n", 31)], &[(0, Kind::Unanswered); 2]),
            (S, &[(b"VALUE a 0 5\r\nhello\r\n", 15), (b"END\r\n", 5), (b"END\r\n", 4)], &[(1, Kind::Other)]),
            // Two values, one of which contains what looks like an end.
            (S, &[(b"VALUE a 0 5\r\nEND\r\n\r\nVALUE b 0 0\r\n\r\nEND\r\n", 40)], &[(0, Kind::Other)]),
            (S, &[(b"STAT pid 1\r\nSTAT uptime 2\r\nEND\r\nERROR\r\n", 39)], &[(0, Kind::Other); 2]),
        ];
        for (from, sent, expected) in table {
            let (mut direction, mut sequence) = (Direction::default(), u32::MAX);
            for (time_ns, (data, captured)) in sent.iter().enumerate() {
                let (time_ns, length, bytes) = (time_ns as u64, data.len(), &data[..*captured]);
                let segment =
                    Segment { time_ns, client_port: 1, from, sequence, is_syn: false, length, bytes };
                direction.add(&segment);
                sequence = sequence.wrapping_add(length as u32);
            }
            assert_eq!(direction.messages, expected, "{sent:?}");
        }
    }

    #[test]
    fn a_port_may_be_used_again() {
        check(
            &[
                (1, C, 9, b""),
                (1, C, 9, b""),
                (1, C, 10, GET),
                (1, S, 0, HIT),
                (1, C, 500, b""),
                (1, S, 900, b""),
                (1, C, 501, GET),
                (1, S, 901, HIT),
            ],
            &[[2, 3], [6, 7]],
            0,
        );
    }
}
