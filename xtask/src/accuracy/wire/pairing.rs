//! Pairs each get of a capture with its reply, per connection and by their places in the streams.
//!
//! Invariant: the n-th request that wants a reply goes with the n-th reply of its connection. A get without one, because
//! a packet is missing, is counted and never guessed.

use super::message::{Kind, replies, requests};
use super::segment::{Segment, Side};
use super::stream::Stream;
use std::collections::BTreeMap;

/// A get and its reply: when the last byte of each was first seen.
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

/// Both directions of a connection.
#[derive(Debug, Default)]
struct Connection<'a> {
    requests: Option<Stream<'a>>,
    replies: Option<Stream<'a>>,
}

impl<'a> Connection<'a> {
    fn stream(&mut self, from: Side) -> &mut Option<Stream<'a>> {
        match from {
            Side::Client => &mut self.requests,
            Side::Server => &mut self.replies,
        }
    }

    fn add(&mut self, segment: &Segment<'a>) {
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let stream = self.stream(segment.from).get_or_insert_with(|| Stream::new(first));
        stream.add(first, segment.length, segment.time_ns, segment.bytes);
    }

    /// Does the segment open another connection from the same port?
    fn is_followed_by(&mut self, segment: &Segment<'_>) -> bool {
        let opened = segment.sequence.wrapping_add(1);
        let is_opened = segment.is_syn && segment.from == Side::Client;
        is_opened && self.requests.as_ref().is_some_and(|requests| requests.base() != opened)
    }

    fn pair(&self, pairing: &mut Pairing) {
        let requests = self.requests.iter().flat_map(|stream| requests(stream.contiguous()));
        let replies = self.replies.iter().flat_map(|stream| replies(stream.contiguous()));
        let mut replies = replies.collect::<Vec<u64>>().into_iter();
        for request in requests.filter(|request| request.kind != Kind::Unanswered) {
            let reply_ns = replies.next();
            let request_ns = request.time_ns;
            pairing.answered += u64::from(reply_ns.is_some());
            match reply_ns.filter(|reply_ns| *reply_ns >= request_ns) {
                _ if request.kind != Kind::Get => {}
                Some(reply_ns) => pairing.exchanges.push(Exchange { request_ns, reply_ns }),
                None => pairing.unpaired += 1,
            }
        }
    }
}

/// Pairs what the segments hold, in the order in which they were captured.
pub(super) fn pair(segments: &[Segment<'_>]) -> Pairing {
    let mut connections: BTreeMap<u16, Connection<'_>> = BTreeMap::new();
    let mut pairing = Pairing::default();
    for segment in segments {
        let connection = connections.entry(segment.client_port).or_default();
        if connection.is_followed_by(segment) {
            connection.pair(&mut pairing);
            *connection = Connection::default();
        }
        connection.add(segment);
    }
    for connection in connections.values() {
        connection.pair(&mut pairing);
    }
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
    fn segments_out_of_order_are_put_in_order() {
        check(
            &[(1, C, 0, GET), (1, S, 0, b""), (1, S, 14, b"hi\r\nEND\r\n"), (1, S, 1, b"VALUE a 0 2\r\n")],
            &[[0, 3]],
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
