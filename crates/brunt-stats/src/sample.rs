//! One op that has ended, with its six times: the only file that subtracts them. Raw samples are kept in a bounded buffer.
//!
//! Not a statistic: a sample is one observation, and what is derived here is derived from it alone. All times are
//! nanoseconds on one monotonic clock. Invariant: intended ≤ picked ≤ sent ≤ first byte ≤ done, and polled ≤ done; a
//! clock that disagrees with itself by a tick yields 0, never a huge number.

use brunt_plan::op::{ClassId, OpId};
use brunt_plan::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// By how much two readings of the clock may be out of order before a debug build calls it a fault of the engine.
const TICK_NS: u64 = 1_000;

/// When things happened to one op, in nanoseconds on the run's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// When the schedule wanted it sent; in closed loop the instant its slot became free plus the think time.
    pub intended_ns: u64,
    /// When the loop first looked at it.
    pub picked_ns: u64,
    /// After the write of its last byte (epoll), or before the submission that carried it (io_uring).
    pub sent_ns: u64,
    /// The last instant at which the client had looked for the reply and it was not there yet: the end of the last
    /// poll that could have returned this socket and did not. Where the poll that did return it had gone to sleep, the
    /// instant it woke, for until then the reply had not come.
    pub polled_ns: u64,
    /// When the read that carried the first byte of the reply returned; `done_ns` where there was no reply.
    pub first_byte_ns: u64,
    /// When the read that carried the last byte returned; without a reply, when the op was given up.
    pub done_ns: u64,
}

/// `later − earlier`, 0 where the clock disagrees with itself by a tick.
#[inline]
fn since(later_ns: u64, earlier_ns: u64) -> u64 {
    debug_assert!(
        earlier_ns <= later_ns.saturating_add(TICK_NS),
        "times out of order: {earlier_ns} ns should not be after {later_ns} ns"
    );
    later_ns.saturating_sub(earlier_ns)
}

/// How much of the time from picked to done lies between two instants.
#[inline]
pub(crate) fn overlap_ns(picked_ns: u64, done_ns: u64, begin_ns: u64, end_ns: u64) -> u64 {
    done_ns.min(end_ns).saturating_sub(picked_ns.max(begin_ns))
}

impl Times {
    /// Response time R = done − intended: what a user feels, the headline.
    #[inline]
    pub fn response_ns(&self) -> u64 {
        since(self.done_ns, self.intended_ns)
    }

    /// Service time S = done − sent.
    #[inline]
    pub fn service_ns(&self) -> u64 {
        since(self.done_ns, self.sent_ns)
    }

    /// Send lag = sent − intended = client lag + connection wait.
    #[inline]
    pub fn send_lag_ns(&self) -> u64 {
        since(self.sent_ns, self.intended_ns)
    }

    /// The client's own part of the send lag: picked − intended. Busy, descheduled, or woken late.
    #[inline]
    pub fn client_lag_ns(&self) -> u64 {
        since(self.picked_ns, self.intended_ns)
    }

    /// The wait for a connection with room: sent − picked. The server's part, or the plan's limit. Of a redirected request the client's part
    /// is in `picked`, which may lie behind its first sending: it did not wait then.
    #[inline]
    pub fn connection_wait_ns(&self) -> u64 {
        self.sent_ns.saturating_sub(self.picked_ns)
    }

    /// From sent until the first byte of the reply.
    #[inline]
    pub fn first_byte_ns(&self) -> u64 {
        since(self.first_byte_ns, self.sent_ns)
    }

    /// How long the reply may have waited for the client to read it: g = done − polled.
    #[inline]
    pub fn read_gap_ns(&self) -> u64 {
        since(self.done_ns, self.polled_ns)
    }

    /// The response time without all that the client may have held: `R_lo = R − client lag − min(g, S)`. The reply
    /// cannot have lain in the socket longer than g, nor longer than the service time; the request was held back by
    /// exactly the client lag. So for the response time R* that a client without any delay would have measured,
    /// `R_lo ≤ R* ≤ R`, sample by sample and therefore quantile by quantile.
    #[inline]
    pub fn response_without_client_ns(&self) -> u64 {
        self.least_response_ns(0)
    }

    /// What the client may have held of the response time: R − R_lo, at most the client lag and min(g, S).
    #[inline]
    pub fn client_ns(&self) -> u64 {
        self.response_ns() - self.response_without_client_ns()
    }

    /// The response time that the server needed at the least, whatever the client did to its queue: `R − M − min(g, S)`, M the
    /// largest client lag of the busy period, at least the op's own. Delaying every arrival of a busy period by at most M
    /// delays every departure by at most M (docs/method.md, "Bounds").
    #[inline]
    pub fn least_response_ns(&self, busy_lag_ns: u64) -> u64 {
        let lag_ns = self.client_lag_ns().max(busy_lag_ns);
        self.response_ns().saturating_sub(lag_ns + self.read_gap_ns().min(self.service_ns()))
    }

    /// Of an op that was never sent: did it wait longer for the client than for a connection? What the lateness of others of its busy
    /// period may have added to its wait for a connection counts as the client's.
    pub(crate) fn is_clients(&self, busy_lag_ns: u64) -> bool {
        2 * self.least_response_ns(busy_lag_ns) < self.response_ns()
    }
}

/// One op that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// What was asked.
    pub op: OpId,
    /// The class it belongs to.
    pub class: ClassId,
    /// How it ended.
    pub outcome: Outcome,
    /// The largest client lag, in nanoseconds, of any request to its server since that last had none outstanding and none waiting
    /// for a connection, with what replies that lay unread delayed those that waited; `None` in a run without an open loop, where it is
    /// not kept.
    pub busy_lag_ns: Option<u64>,
    /// When things happened to it.
    pub times: Times,
}

/// The first samples that were offered, up to a bound.
#[derive(Clone, Debug)]
pub struct SampleBuffer {
    samples: Vec<Sample>,
    capacity: usize,
    overflow: u64,
}

impl SampleBuffer {
    /// Room for this many samples (72 bytes each); 0 keeps none and counts none.
    pub fn new(capacity: usize) -> Self {
        Self { samples: Vec::with_capacity(capacity), capacity, overflow: 0 }
    }

    /// Keeps the sample if there is room; else counts it.
    #[inline]
    pub fn offer(&mut self, sample: &Sample) {
        if self.samples.len() < self.capacity {
            self.samples.push(*sample);
        } else if self.capacity > 0 {
            self.overflow += 1;
        }
    }

    /// What was kept, in the order it was offered, and how many samples there was no room for.
    pub fn end(self) -> (Vec<Sample>, u64) {
        (self.samples, self.overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Times;
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, ReplyKind};

    /// Picked and given up after it was due, lag of the busy period → is it the client's that it was never sent?
    #[test]
    fn an_unsent_op_is_of_who_kept_it_longer() {
        let table = [
            (0, 100, 0, false),
            (50, 100, 0, false),
            (51, 100, 0, true),
            (100, 100, 0, true),
            (0, 100, 50, false),
            (0, 100, 51, true),
            (0, 0, 0, false),
        ];
        for (picked_ns, at_ns, busy_lag_ns, expected) in table {
            let times = Times {
                picked_ns,
                sent_ns: at_ns,
                polled_ns: at_ns,
                first_byte_ns: at_ns,
                done_ns: at_ns,
                ..Times::default()
            };
            assert_eq!(times.is_clients(busy_lag_ns), expected, "{picked_ns} {at_ns} {busy_lag_ns}");
        }
    }

    /// intended, picked, sent, polled, done → R, S, send lag, client lag, connection wait, gap, R_lo.
    fn check(times: [u64; 5], expected: [u64; 7]) {
        let [intended_ns, picked_ns, sent_ns, polled_ns, done_ns] = times;
        let times = Times { intended_ns, picked_ns, sent_ns, polled_ns, first_byte_ns: done_ns, done_ns };
        let derived = [
            times.response_ns(),
            times.service_ns(),
            times.send_lag_ns(),
            times.client_lag_ns(),
            times.connection_wait_ns(),
            times.read_gap_ns(),
            times.response_without_client_ns(),
        ];
        assert_eq!(derived, expected, "{times:?}");
        assert_eq!(times.client_ns() + times.response_without_client_ns(), times.response_ns(), "{times:?}");
        // Where every request of the busy period was in time, its own lag counts; else the largest.
        let held_ns = times.read_gap_ns().min(times.service_ns());
        for busy_lag_ns in [0, 40, 1_000] {
            let lag_ns = busy_lag_ns.max(times.client_lag_ns());
            let least_ns = times.response_ns().saturating_sub(lag_ns + held_ns);
            assert_eq!(times.least_response_ns(busy_lag_ns), least_ns, "{times:?}");
        }
    }

    #[test]
    fn differences() {
        // A client that was in time and asleep when the reply came: nothing is its fault but the wake-up.
        check([1000, 1000, 1002, 1100, 1101], [101, 99, 2, 0, 2, 1, 100]);
        // 50 late to look, 30 of waiting for a connection, and 20 between two polls.
        check([1000, 1050, 1080, 1180, 1200], [200, 120, 80, 50, 30, 20, 130]);
        // The last poll was long before the request was even sent: the gap counts no more than the service time.
        check([1000, 1000, 1500, 900, 1600], [600, 100, 500, 0, 500, 700, 500]);
        // Stopped for 300 000 and then everything at once: all but the network is client error.
        check([0, 300_000, 300_010, 300_010, 300_030], [300_030, 20, 300_010, 300_000, 10, 20, 10]);
        // A tick out of order.
        check([1000, 999, 1001, 1003, 1002], [2, 1, 1, 0, 2, 0, 2]);
    }

    #[test]
    #[should_panic(expected = "times out of order")]
    #[cfg(debug_assertions)]
    fn times_far_out_of_order_are_a_fault() {
        let times = Times { intended_ns: 5_000_000, done_ns: 1, ..Times::default() };
        times.response_ns();
    }

    #[test]
    fn the_first_samples_are_kept_and_the_rest_counted() {
        for (capacity, kept, overflow) in [(0, 0, 0), (3, 3, 2), (9, 5, 0)] {
            let mut tap = SampleBuffer::new(capacity);
            for done_ns in 0..5 {
                tap.offer(&Sample {
                    op: OpKind::Get.into(),
                    class: 0,
                    outcome: Outcome::of_reply(OpKind::Get, ReplyKind::Value),
                    busy_lag_ns: None,
                    times: Times { done_ns, ..Times::default() },
                });
            }
            let (samples, left_out) = tap.end();
            let times: Vec<u64> = samples.iter().map(|sample| sample.times.done_ns).collect();
            assert_eq!(times, (0..kept).collect::<Vec<u64>>());
            assert_eq!(left_out, overflow);
        }
        assert!(size_of::<Sample>() <= 72);
    }
}
