//! The replies that wait for their departure, in its order.
//!
//! Bytes and times; `core` knows what they say, and whether their connection is still open. Invariant: departures never
//! decrease, so a plain queue keeps them in order. Those that drip leave in small pieces, with a pause between the pieces of one
//! connection, and have an order of their own: a connection's bytes keep theirs and its next reply begins when the last piece of its
//! former one has had its pause; other connections do not wait for it.

use crate::connection::{ConnectionId, End};
use brunt_plan::units::DurationNs;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;

/// The buffer is no larger than this once it is empty: a few replies of the longest values.
const BYTES_KEPT: usize = 16 << 20;

/// Replies of one connection that leave together; their bytes are the next `len` bytes of the outbox.
#[derive(Debug)]
struct Pending {
    connection: ConnectionId,
    serial: u32,
    departure_ns: u64,
    len: usize,
    end: End,
}

/// Replies that leave now. Their bytes are given by [`Outbox::bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueReply {
    pub(crate) connection: ConnectionId,
    /// Of the connection that was meant; none of what drips, which is forgotten with its connection.
    pub(crate) serial: Option<u32>,
    pub(crate) departure_ns: u64,
    pub(crate) range: Range<usize>,
    pub(crate) end: End,
}

/// The replies that wait.
#[derive(Debug)]
pub(crate) struct Outbox {
    pending: VecDeque<Pending>,
    /// The bytes of the pending replies from `begin` on.
    bytes: Vec<u8>,
    begin: usize,
    /// The replies that drip, if they are to.
    drip_queue: Option<DripQueue>,
}

impl Outbox {
    pub(crate) fn new(drip: Option<Drip>) -> Self {
        Self { pending: VecDeque::new(), bytes: Vec::new(), begin: 0, drip_queue: drip.map(DripQueue::new) }
    }

    /// Where replies are written before they are queued: everything behind its present end is theirs.
    pub(crate) fn writing(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Where the next reply begins.
    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// How long the output may become if the replies that wait, and what is noted of each, may take `queued_bytes_max` bytes.
    pub(crate) fn end_max(&self, queued_bytes_max: usize) -> usize {
        let dripping_bytes = self.drip_queue.as_ref().map_or(0, |drip_queue| drip_queue.queued_bytes);
        let noted_bytes = self.pending.len() * size_of::<Pending>();
        self.begin + queued_bytes_max.saturating_sub(dripping_bytes + noted_bytes)
    }

    /// How many bytes leave at this instant, if everything that waits does; else 0.
    pub(crate) fn due_bytes(&self, now_ns: u64) -> usize {
        let is_due = self.pending.back().is_some_and(|last| last.departure_ns <= now_ns);
        if is_due { self.bytes.len() - self.begin } else { 0 }
    }

    /// When the next reply leaves, or a piece of one.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let pending_ns = self.pending.front().map(|pending| pending.departure_ns);
        earlier(pending_ns, self.drip_queue.as_ref().and_then(DripQueue::next_ns))
    }

    /// Takes what leaves at the time that [`Outbox::next_ns`] told.
    pub(crate) fn pop(&mut self, at_ns: u64) -> Option<DueReply> {
        if self.pending.front().is_none_or(|pending| pending.departure_ns != at_ns) {
            return self.drip_queue.as_mut().and_then(DripQueue::pop);
        }
        let Pending { connection, serial, departure_ns, len, end } = self.pending.pop_front()?;
        let begin = self.begin;
        self.begin += len;
        Some(DueReply { connection, serial: Some(serial), departure_ns, range: begin..self.begin, end })
    }

    /// The bytes of what was just taken.
    pub(crate) fn bytes(&self, leaving: &DueReply) -> &[u8] {
        match (leaving.serial, &self.drip_queue) {
            (None, Some(drip_queue)) => &drip_queue.piece,
            _ => &self.bytes[leaving.range.clone()],
        }
    }

    /// Queues the output from `begin` on. Replies of one connection that leave at one instant become one departure, so that
    /// a pipelined batch is one write.
    pub(crate) fn queue(
        &mut self,
        (connection, serial): (ConnectionId, u32),
        begin: usize,
        departure_ns: u64,
        end: End,
        drips: bool,
    ) {
        let len = self.bytes.len() - begin;
        if len == 0 && end == End::Stays {
            return;
        }
        if drips && let Some(drip_queue) = &mut self.drip_queue {
            drip_queue.push(connection, departure_ns, &self.bytes[begin..], end);
            return self.bytes.truncate(begin);
        }
        match self.pending.back_mut() {
            Some(last)
                if last.serial == serial && last.departure_ns == departure_ns && last.end == End::Stays =>
            {
                last.len += len;
                last.end = end;
            }
            _ => self.pending.push_back(Pending { connection, serial, departure_ns, len, end }),
        }
    }

    /// Queues a datagram as a departure of its own.
    pub(crate) fn queue_datagram(
        &mut self,
        (connection, serial): (ConnectionId, u32),
        departure_ns: u64,
        parts: &[&[u8]],
    ) {
        let begin = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let (len, end) = (self.bytes.len() - begin, End::Stays);
        self.pending.push_back(Pending { connection, serial, departure_ns, len, end });
    }

    /// Throws away what drips to a connection.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if let Some(drip_queue) = &mut self.drip_queue {
            drip_queue.forget(connection);
        }
    }

    /// Throws away everything that does not drip.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.bytes.clear();
        self.begin = 0;
    }

    /// Gives back the room of replies that have left: for nothing if all have, else once they are half of the buffer,
    /// so that every byte is moved at most once on average.
    pub(crate) fn compact(&mut self) {
        if self.begin == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(BYTES_KEPT);
        } else if self.begin > self.bytes.len() / 2 {
            self.bytes.drain(..self.begin);
        } else {
            return;
        }
        self.begin = 0;
    }
}

/// The earlier of two times, of which none, one or both are there.
pub(crate) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// How replies are cut into pieces. Text form `BYTES:US`: bytes and microseconds, such as `1:0` or `16:200`; a pause
/// with a unit, `16:2ms`, is taken too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// The most that one piece has.
    pub piece_bytes: NonZeroUsize,
    /// From one piece of a connection to its next, in nanoseconds. With 0 all pieces leave at one instant, still one by
    /// one.
    pub pause_ns: u64,
}

impl FromStr for Drip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pause = |text: &str| {
            // A bare number counts microseconds, the natural unit of a cache server.
            let duration = format!("{text}us").parse::<DurationNs>().or_else(|_| text.parse());
            duration.ok().map(|duration| duration.0)
        };
        text.split_once(':')
            .and_then(|(bytes, time)| {
                Some(Self { piece_bytes: bytes.parse().ok()?, pause_ns: pause(time)? })
            })
            .ok_or_else(|| {
                format!("'{text}' is no drip: expected BYTES:US, bytes from 1 and microseconds, such as 1:0 or 16:200")
            })
    }
}

/// What of a reply has not left yet: its bytes from `begin` on.
#[derive(Debug)]
struct DrippingReply {
    connection: ConnectionId,
    bytes: Vec<u8>,
    begin: usize,
    end: End,
}

/// All that drips.
#[derive(Debug)]
struct DripQueue {
    drip: Drip,
    /// By the time at which their next pieces leave and by the order in which they came.
    replies: BTreeMap<(u64, u64), DrippingReply>,
    /// When the last piece of a connection has had its pause.
    free_ns: HashMap<ConnectionId, u64>,
    /// Replies so far.
    last_number: u64,
    queued_bytes: usize,
    /// The piece that was taken last.
    piece: Vec<u8>,
}

impl DripQueue {
    fn new(drip: Drip) -> Self {
        let (replies, free_ns) = (BTreeMap::new(), HashMap::new());
        Self { drip, replies, free_ns, last_number: 0, queued_bytes: 0, piece: Vec::new() }
    }

    /// Takes a reply whose first piece leaves at `departure_ns` or when its connection is free.
    fn push(&mut self, connection: ConnectionId, departure_ns: u64, bytes: &[u8], end: End) {
        let free_ns = self.free_ns.entry(connection).or_default();
        let begin_ns = departure_ns.max(*free_ns);
        let pieces = bytes.len().div_ceil(self.drip.piece_bytes.get()).max(1) as u64;
        *free_ns = begin_ns.saturating_add(self.drip.pause_ns.saturating_mul(pieces));
        self.last_number += 1;
        self.queued_bytes += bytes.len();
        let reply = DrippingReply { connection, bytes: bytes.to_vec(), begin: 0, end };
        self.replies.insert((begin_ns, self.last_number), reply);
    }

    /// When the next piece leaves.
    fn next_ns(&self) -> Option<u64> {
        self.replies.keys().next().map(|(at_ns, _)| *at_ns)
    }

    /// Takes the piece that is due at [`DripQueue::next_ns`].
    fn pop(&mut self) -> Option<DueReply> {
        let ((departure_ns, number), mut reply) = self.replies.pop_first()?;
        let end = (reply.begin + self.drip.piece_bytes.get()).min(reply.bytes.len());
        self.piece.clear();
        self.piece.extend_from_slice(&reply.bytes[reply.begin..end]);
        self.queued_bytes -= self.piece.len();
        let mut due = DueReply {
            connection: reply.connection,
            serial: None,
            departure_ns,
            range: 0..self.piece.len(),
            end: reply.end,
        };
        if end < reply.bytes.len() {
            (reply.begin, due.end) = (end, End::Stays);
            let next_ns = departure_ns.saturating_add(self.drip.pause_ns);
            self.replies.insert((next_ns, number), reply);
        }
        Some(due)
    }

    /// Throws away what a connection has queued; its next reply is free to leave.
    fn forget(&mut self, connection: ConnectionId) {
        self.free_ns.remove(&connection);
        self.replies.retain(|_, reply| reply.connection != connection);
        self.queued_bytes = self.replies.values().map(|reply| reply.bytes.len() - reply.begin).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand replies of five bytes that leave at different instants.
    #[test]
    fn what_is_noted_of_each_reply_counts() {
        let mut outbox = Outbox::new(None);
        for departure_ns in 0..1_000 {
            let begin = outbox.end();
            outbox.writing().extend_from_slice(b"+OK\r\n");
            outbox.queue((0, 0), begin, departure_ns, End::Stays, false);
        }
        let room_bytes = outbox.end_max(1 << 20) - outbox.end();
        assert_eq!((1 << 20) - room_bytes, 1_000 * (5 + size_of::<Pending>()));
        assert_eq!((outbox.due_bytes(998), outbox.due_bytes(999)), (0, 5_000));
        while outbox.pop(outbox.next_ns().unwrap_or(0)).is_some() {}
        outbox.compact();
        assert_eq!((outbox.end(), outbox.end_max(1 << 20)), (0, 1 << 20));
    }

    /// Pushes (connection, departure, bytes), then takes everything: (connection, departure, bytes).
    fn check(drip: &str, pushes: &[(u32, u64, &str)], expected: &[(u32, u64, &str)]) {
        let mut drip_queue = DripQueue::new(drip.parse().unwrap());
        for (connection, departure_ns, bytes) in pushes {
            drip_queue.push(*connection, *departure_ns, bytes.as_bytes(), End::Stays);
        }
        let mut left = Vec::new();
        while let Some(next_ns) = drip_queue.next_ns() {
            let piece = drip_queue.pop().unwrap();
            assert_eq!(piece.departure_ns, next_ns);
            let bytes = String::from_utf8(drip_queue.piece.clone()).unwrap();
            left.push((piece.connection, piece.departure_ns, bytes));
        }
        let expected: Vec<_> =
            expected.iter().map(|(id, at_ns, bytes)| (*id, *at_ns, (*bytes).to_owned())).collect();
        assert_eq!(left, expected, "{drip} {pushes:?}");
        assert_eq!(drip_queue.queued_bytes, 0);
    }

    #[test]
    fn pieces_by_hand() {
        check("2:1", &[(0, 10, "abcde")], &[(0, 10, "ab"), (0, 1010, "cd"), (0, 2010, "e")]);
        // The next reply waits for the pause of the last piece; a late one does not wait.
        check("2:1", &[(0, 10, "abc"), (0, 20, "d")], &[(0, 10, "ab"), (0, 1010, "c"), (0, 2010, "d")]);
        check("9:1", &[(0, 10, "abc"), (0, 5000, "d")], &[(0, 10, "abc"), (0, 5000, "d")]);
        // Connections do not wait for each other.
        check(
            "1:1",
            &[(0, 10, "ab"), (1, 500, "xy")],
            &[(0, 10, "a"), (1, 500, "x"), (0, 1010, "b"), (1, 1500, "y")],
        );
        // Without a pause: one by one at one instant.
        check("1:0", &[(0, 10, "abc")], &[(0, 10, "a"), (0, 10, "b"), (0, 10, "c")]);
    }

    #[test]
    fn ends_follow_the_last_piece_and_dropped_replies_have_none() {
        let mut drip_queue = DripQueue::new("2:0".parse().unwrap());
        drip_queue.push(3, 5, b"abc", End::Closes);
        drip_queue.push(1, 6, b"zzz", End::Stays);
        drip_queue.forget(1);
        drip_queue.push(1, 7, b"", End::Resets);
        let mut ends = Vec::new();
        while drip_queue.next_ns().is_some() {
            ends.extend(drip_queue.pop().map(|piece| (piece.connection, piece.range.len(), piece.end)));
        }
        assert_eq!(ends, [(3, 2, End::Stays), (3, 1, End::Closes), (1, 0, End::Resets)]);
    }

    #[test]
    fn texts() {
        let table = [
            ("1:0", Some((1, 0))),
            ("16:200", Some((16, 200_000))),
            ("16:2ms", Some((16, 2_000_000))),
            ("0:1", None),
            ("-1:1", None),
            ("1", None),
            ("1:", None),
            ("1:x", None),
            ("", None),
        ];
        for (text, expected) in table {
            let drip = text.parse::<Drip>();
            let numbers = drip.clone().ok().map(|drip| (drip.piece_bytes.get(), drip.pause_ns));
            assert_eq!(numbers, expected, "{text:?}");
            assert!(drip.err().is_none_or(|message| message.contains("BYTES:US")));
        }
    }
}
