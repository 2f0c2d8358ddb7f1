//! The replies that wait for their departure, in its order.
//!
//! Bytes and times; `core` knows what they say, and whether their connection is still open. Invariant: departures never
//! decrease, so a plain queue keeps them in order; those that drip have an order of their own.

use crate::connection::{ConnectionId, End};
use crate::drip::{Drip, DripQueue};
use std::collections::VecDeque;
use std::ops::Range;

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
        let dripping_bytes = self.drip_queue.as_ref().map_or(0, DripQueue::queued_bytes);
        let noted_bytes = self.pending.len() * size_of::<Pending>();
        self.begin + queued_bytes_max.saturating_sub(dripping_bytes + noted_bytes)
    }

    /// How many bytes leave at this instant, if everything that waits does; else 0.
    pub(crate) fn due_bytes(&self, now_ns: u64) -> usize {
        let is_due = self.pending.back().is_some_and(|last| last.departure_ns <= now_ns);
        if is_due { self.bytes.len() - self.begin } else { 0 }
    }

    /// When the next reply leaves, or a piece of one; not before.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let pending_ns = self.pending.front().map(|pending| pending.departure_ns);
        earlier(pending_ns, self.drip_queue.as_ref().and_then(DripQueue::next_ns))
    }

    /// Takes what leaves at the time that [`Outbox::next_ns`] told. None: it was nothing after all.
    pub(crate) fn pop(&mut self, at_ns: u64) -> Option<DueReply> {
        if self.pending.front().is_none_or(|pending| pending.departure_ns != at_ns) {
            let piece = self.drip_queue.as_mut().and_then(DripQueue::pop)?;
            let (connection, departure_ns, end) = (piece.connection, piece.departure_ns, piece.end);
            return Some(DueReply { connection, serial: None, departure_ns, range: piece.range, end });
        }
        let Pending { connection, serial, departure_ns, len, end } = self.pending.pop_front()?;
        let begin = self.begin;
        self.begin += len;
        Some(DueReply { connection, serial: Some(serial), departure_ns, range: begin..self.begin, end })
    }

    /// The bytes of what was just taken.
    pub(crate) fn bytes(&self, leaving: &DueReply) -> &[u8] {
        match (leaving.serial, &self.drip_queue) {
            (None, Some(drip_queue)) => &drip_queue.bytes(leaving.connection)[leaving.range.clone()],
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
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
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
}
