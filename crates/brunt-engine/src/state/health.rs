//! Whether a server answers: its outages, as the worker that uses it sees them.
//!
//! One state per server, fed by every reply and failure, yields a span whenever a success ends a gap. Invariant: a
//! span begins no earlier than the last success before it.

use brunt_stats::server::{OutageKind, OutageKinds, OutageSpan};

/// Shorter failures are no outage: one connection broke, and another went on.
const OUTAGE_MIN_NS: u64 = 10_000_000;
/// A server that sends nothing for this long while a reply is due has stalled…
const STALL_MIN_NS: u64 = 100_000_000;
/// …unless its usual gap is longer than this fraction of it.
const STALL_FACTOR: u64 = 20;

/// A server as one worker sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// Its index.
    pub server: u16,
    /// Connections to it that are established.
    pub up: u32,
    /// When a connection was last up, or when the first attempt after that failed.
    pub last_up_ns: u64,
    /// The connection that probes whether it is up; `None` while one is up, or before an attempt has failed.
    pub prober: Option<u32>,
    /// It has answered since its last failure.
    pub answers: bool,
    /// The last success; 0 before there was one.
    pub last_success_ns: u64,
    /// Its last other activity: an error reply, or taking in a request without a reply.
    last_activity_ns: u64,
    /// It was down and inactive when the run ended.
    pub was_down_at_end: bool,
    /// Moving average of the gaps between replies that were due.
    usual_gap_ns: u64,
    /// Start of the current failure without a success; 0 if there is none.
    pub trouble_since_ns: u64,
    kinds: OutageKinds,
    failed: u64,
    /// Requests or replies may be lost on the network (UDP).
    pub is_lossy: bool,
    /// The last request that timed out alone, without another failure.
    unanswered: Unanswered,
}

/// An unanswered request. A single one may be a lost datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    sent_ns: u64,
    /// The last success before it.
    success_ns: u64,
}

impl Health {
    pub(crate) fn new(server: u16, is_lossy: bool) -> Self {
        Self { server, is_lossy, ..Self::default() }
    }

    /// Notes `count` replies (at least one) of one read to requests that were sent at `sent_ns`; see
    /// [`Health::success`].
    #[inline]
    pub(crate) fn successes(
        &mut self,
        sent_ns: u64,
        polled_ns: u64,
        at_ns: u64,
        count: u32,
    ) -> Option<OutageSpan> {
        let ended = self.success(sent_ns, polled_ns, at_ns);
        for _ in 1..count {
            // Replies of one read have no gap between them.
            if self.usual_gap_ns == 0 {
                break;
            }
            self.usual_gap_ns = self.usual_gap_ns * 15 / 16;
        }
        ended
    }

    /// Notes a reply to a request that was sent at `sent_ns`. `polled_ns` is the last poll without a result: time
    /// after it may be the client's delay. Returns the outage that the reply ends.
    #[inline]
    pub(crate) fn success(&mut self, sent_ns: u64, polled_ns: u64, at_ns: u64) -> Option<OutageSpan> {
        if at_ns <= self.trouble_since_ns {
            // The poll that returned it also returned the failure: the server wrote it before.
            return None;
        }
        let gap_from_ns = self.last_success_ns.max(sent_ns);
        let gap_ns = polled_ns.saturating_sub(gap_from_ns);
        let is_first = std::mem::replace(&mut self.last_success_ns, at_ns) == 0;
        self.answers = true;
        if self.trouble_since_ns == 0 && (gap_ns < STALL_MIN_NS || is_first) {
            // Moving average with weight 1/16; the first gap is taken as it is.
            self.usual_gap_ns = if is_first { gap_ns } else { (self.usual_gap_ns * 15 + gap_ns) / 16 };
            return None;
        }
        self.end(gap_from_ns, gap_ns, at_ns)
    }

    /// Ends the current gap; `silent_ns` of it a reply was due and polled for.
    fn end(&mut self, gap_from_ns: u64, silent_ns: u64, at_ns: u64) -> Option<OutageSpan> {
        let trouble_since_ns = std::mem::take(&mut self.trouble_since_ns);
        let (mut kinds, failed) = (std::mem::take(&mut self.kinds), std::mem::take(&mut self.failed));
        let (start_ns, is_outage) = if trouble_since_ns == 0 {
            kinds.insert(OutageKind::Stalled);
            let usual_ns = self.usual_gap_ns;
            self.usual_gap_ns = (usual_ns * 15 + silent_ns) / 16;
            (gap_from_ns, silent_ns >= STALL_MIN_NS.max(usual_ns.saturating_mul(STALL_FACTOR)))
        } else {
            (trouble_since_ns, at_ns.saturating_sub(trouble_since_ns) >= OUTAGE_MIN_NS)
        };
        is_outage.then_some(OutageSpan { server: self.server, start_ns, end_ns: at_ns, failed, kinds })
    }

    /// Notes a failure; `evidence_ns` is the earliest instant at which it showed.
    pub(crate) fn note_trouble(&mut self, kind: OutageKind, evidence_ns: u64) {
        if self.trouble_since_ns == 0 {
            self.trouble_since_ns = evidence_ns.max(self.last_success_ns).max(1);
        }
        // An error reply is an answer.
        self.answers &= kind == OutageKind::Error;
        self.kinds.insert(kind);
    }

    /// Notes activity that is no success.
    #[inline]
    pub(crate) fn note_activity(&mut self, at_ns: u64) {
        self.last_activity_ns = at_ns;
    }

    /// Since when the server has been inactive; `None` without a failure.
    pub(crate) fn silent_since_ns(&self) -> Option<u64> {
        (self.trouble_since_ns != 0).then(|| self.trouble_since_ns.max(self.last_activity_ns))
    }

    /// Its last activity; 0 before the first.
    pub(crate) fn last_active_ns(&self) -> u64 {
        self.last_success_ns.max(self.last_activity_ns)
    }

    /// When the first of the requests was sent that have only timed out; `None` after another failure.
    pub(crate) fn timed_out_since_ns(&self) -> Option<u64> {
        (self.kinds == OutageKinds::NONE.with(OutageKind::TimedOut)).then_some(self.trouble_since_ns)
    }

    /// Has it ever answered?
    pub(crate) fn has_answered(&self) -> bool {
        self.last_success_ns != 0
    }

    /// Notes an established connection: a connection that was just lost without a request is no outage.
    pub(crate) fn connected(&mut self, at_ns: u64) {
        if self.failed == 0 && at_ns.saturating_sub(self.trouble_since_ns) < OUTAGE_MIN_NS {
            self.trouble_since_ns = 0;
            self.kinds = OutageKinds::NONE;
        }
    }

    /// Notes a failed request that was sent at `sent_ns`.
    pub(crate) fn request_failed(&mut self, kind: OutageKind, sent_ns: u64) {
        self.note_trouble(kind, sent_ns);
        self.failed += 1;
    }

    /// Notes a request that waited for the server and was not sent.
    pub(crate) fn request_abandoned(&mut self) {
        self.failed += u64::from(self.trouble_since_ns != 0);
    }

    /// Notes a request that was sent at `sent_ns` and timed out alone. A server that has answered since then is up;
    /// where datagrams may be lost, it takes two such requests without a success between them.
    pub(crate) fn request_timed_out(&mut self, sent_ns: u64) {
        if self.trouble_since_ns == 0 {
            if sent_ns < self.last_success_ns {
                return;
            }
            let last = Unanswered { sent_ns, success_ns: self.last_success_ns };
            let first = std::mem::replace(&mut self.unanswered, last);
            if self.is_lossy {
                if first.sent_ns == 0 || first.success_ns != self.last_success_ns {
                    return;
                }
                self.request_failed(OutageKind::TimedOut, first.sent_ns);
            }
        }
        self.request_failed(OutageKind::TimedOut, sent_ns);
    }

    /// Do this many unanswered requests since its last success show that it is down?
    pub(crate) fn is_silent(&self, unanswered: usize) -> bool {
        let has_one = self.unanswered.sent_ns != 0 && self.unanswered.success_ns == self.last_success_ns;
        !self.is_lossy || self.trouble_since_ns != 0 || unanswered + usize::from(has_one) > 1
    }

    /// Ends an open gap when the run is over. `waiting_since_ns`: when the oldest unanswered request was sent.
    pub(crate) fn close(&mut self, now_ns: u64, waiting_since_ns: Option<u64>) -> Option<OutageSpan> {
        let gap_from_ns = match waiting_since_ns {
            Some(sent_ns) => sent_ns.max(self.last_success_ns),
            None if self.trouble_since_ns == 0 => return None,
            None => now_ns,
        };
        let span = self.end(gap_from_ns, now_ns.saturating_sub(gap_from_ns), now_ns)?;
        self.was_down_at_end = self.last_activity_ns <= span.start_ns;
        Some(OutageSpan { end_ns: u64::MAX, ..span })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A server that answers every millisecond from 1 000 to 1 100 ms.
    fn healthy() -> Health {
        well(Health::new(3, false))
    }

    fn well(mut health: Health) -> Health {
        for ms in 1_000..=1_100 {
            assert_eq!(health.success((ms - 1) * MS, ms * MS, ms * MS), None);
        }
        health
    }

    #[test]
    fn a_gap_with_failures_lasts_from_the_first_evidence_to_the_next_success() {
        let mut health = healthy();
        health.note_trouble(OutageKind::Reset, 1_101 * MS);
        health.request_failed(OutageKind::Reset, 1_099 * MS);
        health.note_trouble(OutageKind::Refused, 1_105 * MS);
        let span = health.success(3_100 * MS, 3_101 * MS, 3_101 * MS).unwrap();
        assert_eq!((span.server, span.start_ns, span.end_ns, span.failed), (3, 1_101 * MS, 3_101 * MS, 1));
        assert_eq!(span.kinds.iter().collect::<Vec<_>>(), [OutageKind::Refused, OutageKind::Reset]);
        assert_eq!(health.success(3_101 * MS, 3_102 * MS, 3_102 * MS), None);
    }

    #[test]
    fn replies_read_with_a_reset_precede_it() {
        let mut health = healthy();
        health.note_trouble(OutageKind::Reset, 1_101 * MS);
        health.request_failed(OutageKind::Reset, 1_099 * MS);
        assert_eq!(health.successes(1_099 * MS, 1_101 * MS, 1_101 * MS, 4), None);
        assert!(!health.answers);
        health.note_trouble(OutageKind::Refused, 1_102 * MS);
        let span = health.success(3_100 * MS, 3_101 * MS, 3_101 * MS).unwrap();
        assert_eq!((span.start_ns, span.failed), (1_101 * MS, 1));
    }

    #[test]
    fn one_broken_connection_among_many_is_no_outage() {
        let mut health = healthy();
        health.request_failed(OutageKind::Reset, 1_100 * MS);
        assert_eq!(health.success(1_100 * MS, 1_109 * MS, 1_109 * MS), None);
        health.request_failed(OutageKind::Reset, 1_109 * MS);
        assert!(health.success(1_109 * MS, 1_120 * MS, 1_120 * MS).is_some());
    }

    #[test]
    fn an_idle_connection_that_is_replaced_is_no_outage() {
        // Closed, reopened and established after this many milliseconds; requests that failed with it; an outage?
        for (after_ms, failed, is_outage) in [(1, 0, false), (9, 0, false), (10, 0, true), (1, 1, true)] {
            let mut health = healthy();
            health.note_trouble(OutageKind::ClosedByPeer, 1_200 * MS);
            (0..failed).for_each(|_| health.request_failed(OutageKind::ClosedByPeer, 1_199 * MS));
            health.connected((1_200 + after_ms) * MS);
            // The next request is due a second later.
            let ended = health.success(2_200 * MS, 2_201 * MS, 2_201 * MS);
            assert_eq!(ended.is_some(), is_outage, "{after_ms} ms, {failed} failed");
        }
    }

    #[test]
    fn silence_while_a_reply_is_due_is_a_stall_and_idleness_is_none() {
        let mut health = healthy();
        let span = health.success(1_100 * MS, 1_300 * MS, 1_300 * MS).unwrap();
        assert_eq!((span.start_ns, span.end_ns), (1_100 * MS, 1_300 * MS));
        assert_eq!(span.kinds.iter().collect::<Vec<_>>(), [OutageKind::Stalled]);
        // Nothing was asked for a second.
        assert_eq!(health.success(2_300 * MS, 2_301 * MS, 2_301 * MS), None);
        // The client did not poll.
        assert_eq!(health.success(2_400 * MS, 2_401 * MS, 2_700 * MS), None);
        // A server that takes 200 ms for everything is slow, not down.
        let mut slow = Health::new(0, false);
        let spans = (0..100)
            .filter(|n| slow.success(n * 200 * MS, (n + 1) * 200 * MS, (n + 1) * 200 * MS).is_some())
            .count();
        assert_eq!(spans, 0);
    }

    #[test]
    fn a_server_that_answered_later_requests_is_up() {
        for is_lossy in [false, true] {
            let mut health = well(Health::new(3, is_lossy));
            for ms in 0..20 {
                // The next reply comes a while later.
                health.request_timed_out((1_099 + ms * 100) * MS);
                let sent_ns = (1_150 + ms * 100) * MS;
                assert_eq!(health.success(sent_ns, sent_ns + 50 * MS, sent_ns + 50 * MS), None);
            }
        }
    }

    #[test]
    fn a_loss_is_no_outage_and_two_without_a_success_between_are_one() {
        let mut health = well(Health::new(3, true));
        for ms in 1..20 {
            // A second without a reply, as one request at a time was out; the next one is answered at once.
            health.request_timed_out((1_101 + ms * 1_001) * MS);
            let sent_ns = (2_101 + ms * 1_001) * MS;
            assert_eq!(health.success(sent_ns, sent_ns + MS, sent_ns + MS), None, "{ms}");
        }
        health.request_timed_out(30_000 * MS);
        assert!(health.answers);
        health.request_timed_out(30_900 * MS);
        assert!(!health.answers);
        health.request_timed_out(31_000 * MS);
        let span = health.success(32_000 * MS, 32_001 * MS, 32_001 * MS).unwrap();
        assert_eq!((span.start_ns, span.end_ns, span.failed), (30_000 * MS, 32_001 * MS, 3));
        assert_eq!(span.kinds.iter().collect::<Vec<_>>(), [OutageKind::TimedOut]);
        // On a stream nothing is lost.
        let mut health = healthy();
        health.request_timed_out(1_101 * MS);
        let span = health.success(2_101 * MS, 2_102 * MS, 2_102 * MS).unwrap();
        assert_eq!((span.start_ns, span.failed), (1_101 * MS, 1));
    }

    #[test]
    fn two_unanswered_requests_at_the_end_are_an_outage() {
        let mut health = well(Health::new(3, true));
        assert!(!health.is_silent(1) && health.is_silent(2));
        health.request_timed_out(1_101 * MS);
        assert!(!health.is_silent(0) && health.is_silent(1));
        assert_eq!(health.success(1_200 * MS, 1_201 * MS, 1_201 * MS), None);
        assert!(!health.is_silent(1));
        assert!(healthy().is_silent(1));
    }

    #[test]
    fn replies_of_one_read_equal_single_replies() {
        for count in [1, 2, 32, 1_000] {
            let (mut together, mut each) = (healthy(), healthy());
            // The first of them ends a stall, and the usual gap is long since then.
            for ms in [1_300, 1_390, 1_391] {
                let ended = together.successes((ms - 90) * MS, ms * MS, ms * MS, count);
                let one_by_one: Vec<_> =
                    (0..count).filter_map(|_| each.success((ms - 90) * MS, ms * MS, ms * MS)).collect();
                assert_eq!(Vec::from_iter(ended), one_by_one, "{count} at {ms} ms");
                assert_eq!(together.usual_gap_ns, each.usual_gap_ns, "{count} at {ms} ms");
            }
        }
    }

    #[test]
    fn gaps_open_at_the_end_have_no_end() {
        let mut health = healthy();
        assert_eq!(health.clone().close(1_101 * MS, None), None);
        assert_eq!(health.clone().close(5_000 * MS, Some(4_990 * MS)), None);
        assert_eq!(health.clone().close(5_000 * MS, Some(1_101 * MS)).unwrap().start_ns, 1_101 * MS);
        health.note_trouble(OutageKind::Refused, 1_200 * MS);
        let span = health.close(5_000 * MS, None).unwrap();
        assert_eq!((span.start_ns, span.end_ns), (1_200 * MS, u64::MAX));
    }
}
