//! Closed loop by counting bytes: what each connection awaits, what came, and which prebuilt requests go out next.
//!
//! It touches no socket and reads no clock. Every reply has the same length, so bytes count replies. Invariant: a
//! connection awaits one reply per request; further bytes, or an end within a reply, are an error. The timer rings at most twice, first
//! when nothing new is to be asked for, then when replies have been awaited long enough.

use super::requests::Requests;
use clap::ValueEnum;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// When a connection gets new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Refill {
    /// As many as replies came in a turn, in one send.
    Eager,
    /// A whole pipeline, when all of the last one has come back.
    Batch,
}

/// One connection, in bytes of replies.
#[derive(Clone, Copy, Debug, Default)]
struct Pipeline {
    /// Asked for and not yet answered by new requests.
    awaited: u32,
    /// Bytes of `awaited` that were received.
    received: u32,
    /// It is among the touched.
    is_touched: bool,
}

/// What all connections have to do.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    requests: &'a Requests,
    refill: Refill,
    depth: u32,
    pipelines: Vec<Pipeline>,
    /// Connections with bytes since the last pass.
    touched: Vec<u32>,
    /// Requests that may still be handed out.
    left: u64,
    /// Requests handed out.
    handed_out: u64,
    /// Replies come in full.
    replies: u64,
    /// The connection that received unrequested bytes.
    excess: Option<u32>,
}

impl<'a> Load<'a> {
    /// A load that ends after `left` requests, or when it is stopped.
    pub(crate) fn new(
        requests: &'a Requests,
        connections: usize,
        depth: u32,
        refill: Refill,
        left: u64,
    ) -> Self {
        Self {
            requests,
            refill,
            depth,
            pipelines: vec![Pipeline::default(); connections],
            touched: Vec::with_capacity(connections),
            left,
            handed_out: 0,
            replies: 0,
            excess: None,
        }
    }

    /// The first requests of a connection.
    pub(crate) fn begin(&mut self, connection: u32) -> &'a [u8] {
        self.hand_out(connection, self.depth)
    }

    /// Takes note of `len` bytes.
    #[inline]
    pub(crate) fn arrived(&mut self, connection: u32, len: u32) {
        let pipeline = &mut self.pipelines[connection as usize];
        pipeline.received += len;
        if !pipeline.is_touched {
            pipeline.is_touched = true;
            self.touched.push(connection);
        }
    }

    /// The next connection with received bytes, and the bytes to send there; none if the policy waits.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(u32, &'a [u8])> {
        let connection = self.touched.pop()?;
        let pipeline = &mut self.pipelines[connection as usize];
        pipeline.is_touched = false;
        if pipeline.received > pipeline.awaited {
            self.excess = Some(connection);
            return None;
        }
        let reply_len = self.requests.reply_len();
        let is_due = match self.refill {
            Refill::Eager => pipeline.received >= reply_len,
            Refill::Batch => pipeline.received == pipeline.awaited,
        };
        if !is_due {
            return Some((connection, &[]));
        }
        let replies = pipeline.received / reply_len;
        pipeline.received -= replies * reply_len;
        pipeline.awaited -= replies * reply_len;
        self.replies += u64::from(replies);
        Some((connection, self.hand_out(connection, replies)))
    }

    #[inline]
    fn hand_out(&mut self, connection: u32, count: u32) -> &'a [u8] {
        let count = u64::from(count).min(self.left) as u32;
        self.left -= u64::from(count);
        self.handed_out += u64::from(count);
        self.pipelines[connection as usize].awaited += count * self.requests.reply_len();
        // The number of requests sent is the position in the prebuilt row.
        self.requests.slice(self.handed_out, count)
    }

    /// From now on nothing new is handed out.
    pub(crate) fn stop(&mut self) {
        self.left = 0;
    }

    /// Nothing new is to be handed out.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.left == 0
    }

    /// Everything that was asked has been answered, or something came that was not asked for.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        (self.left == 0 && self.replies == self.handed_out) || self.excess.is_some()
    }

    /// The number of requests, all of them answered.
    ///
    /// # Errors
    /// Requests were unanswered, or bytes were unrequested.
    pub(crate) fn finish(self) -> Result<u64, String> {
        if let Some(connection) = self.excess {
            return Err(format!("connection {connection}: more bytes came than were asked for"));
        }
        if self.replies != self.handed_out {
            return Err(format!(
                "{} of {} replies never came",
                self.handed_out - self.replies,
                self.handed_out
            ));
        }
        Ok(self.replies)
    }
}

// --- The end of a run as a descriptor that becomes readable, so that no iteration reads a clock ---

/// How long replies are awaited when nothing more is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Rings once after a time, and once more after [`PATIENCE`].
pub(super) struct Timer {
    fd: OwnedFd,
    after: Duration,
    has_rung: bool,
}

impl Timer {
    /// A timer that rings first `after` it was started.
    pub(super) fn new(after: Duration) -> Result<Self, Errno> {
        let fd = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { fd, after, has_rung: false })
    }

    pub(super) fn start(&self) -> Result<(), Errno> {
        self.arm(self.after)
    }

    fn arm(&self, after: Duration) -> Result<(), Errno> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: after.as_secs() as i64, tv_nsec: i64::from(after.subsec_nanos()) };
        let spec = Itimerspec { it_interval: never, it_value: value };
        rustix::time::timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec).map(|_| ())
    }

    /// It became readable. Does the run go on until every reply has come, and not end as the server has stopped answering?
    pub(super) fn ring(&mut self, load: &mut Load<'_>) -> Result<bool, Errno> {
        if self.has_rung {
            return Ok(false);
        }
        self.has_rung = true;
        load.stop();
        // Setting it anew also makes it unreadable.
        self.arm(PATIENCE)?;
        Ok(true)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a load answers when bytes arrive, as the number of requests; replies have 10 bytes.
    fn check(
        refill: Refill,
        left: u64,
        arrivals: &[(u32, u32)],
        expected: &[(u32, usize)],
    ) -> Result<u64, String> {
        let requests = Requests::of_equal_length(10);
        let mut load = Load::new(&requests, 2, 4, refill, left);
        let count = |bytes: &[u8]| bytes.len() / requests.request_len();
        for connection in 0..2 {
            assert_eq!(count(load.begin(connection)), 4);
        }
        let mut sent = Vec::new();
        for &(connection, len) in arrivals {
            load.arrived(connection, len);
            while let Some((connection, bytes)) = load.next() {
                sent.push((connection, count(bytes)));
            }
        }
        assert_eq!(sent, expected);
        assert_eq!(load.is_over(), load.is_stopping());
        load.finish()
    }

    #[test]
    fn eager_answers_every_reply_with_a_request() {
        let arrivals = [(0, 10), (0, 5), (0, 25), (1, 40), (0, 20), (0, 20), (1, 20), (1, 20)];
        let sent = [(0, 1), (0, 0), (0, 3), (1, 4), (0, 0), (0, 0), (1, 0), (1, 0)];
        assert_eq!(check(Refill::Eager, 16, &arrivals, &sent), Ok(16));
    }

    #[test]
    fn batch_awaits_the_whole_pipeline() {
        let arrivals = [(0, 10), (0, 29), (0, 1), (1, 40), (0, 30), (1, 20)];
        let sent = [(0, 0), (0, 0), (0, 4), (1, 2), (0, 0), (1, 0)];
        // The last pipelines are not full, and the run ends with the reply to the last request.
        let arrivals = [&arrivals[..], &[(0, 10)]].concat();
        let sent = [&sent[..], &[(0, 0)]].concat();
        assert_eq!(check(Refill::Batch, 14, &arrivals, &sent), Ok(14));
    }

    #[test]
    fn unrequested_bytes_are_an_error() {
        let outcome = check(Refill::Eager, 8, &[(1, 41)], &[]);
        assert_eq!(outcome, Err("connection 1: more bytes came than were asked for".to_owned()));
    }
}
