//! Request accounting: what became of every request and of every requested key, as exact integers.
//!
//! Counts go by when an op was due: what happened in the window, whatever was due, is counted beside it
//! ([`crate::window`]). Invariant, once a run has drained: `scheduled = sent + unsent`, `sent` = the sum of all outcomes plus
//! what is still in flight, and `asked = hit + miss + failed`, for every (phase, class, op) by itself. While a run is
//! going on the differences are what is queued and in flight.

use crate::counts::counts;
pub use crate::window::is_failed;
use crate::window::{WindowCounts, count_of_classes};
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use serde::{Deserialize, Serialize};

counts! {
    /// What became of requests.
    pub struct RequestCounts {
        /// Ops that the schedule made due, follow-up ops included.
        pub scheduled: u64,
        /// Ops whose last byte was written.
        pub sent: u64,
        /// Ops that were due and never sent.
        pub unsent: u64,
        /// How many of `unsent` were given up because their server did not answer.
        pub abandoned: u64,
        /// How many of `unsent` the client had no time to send; the rest waited for a connection.
        pub unsent_client: u64,
        /// Ended ops by [`OutcomeClass`].
        pub outcomes: [u64; OutcomeClass::COUNT],
        /// Ended ops by [`ReplyKind`].
        pub replies: [u64; ReplyKind::COUNT],
        /// Sent and not ended when the run was over; 0 before.
        pub in_flight: u64,
        /// Commands on the wire: several per op where a protocol needs that.
        pub wire_requests: u64,
        /// How many of `scheduled` were follow-ups of another op (a set after a miss), which `--requests` does not count.
        pub followup: u64,
    }
}

impl RequestCounts {
    /// Ops that ended in this class.
    pub const fn outcome(&self, class: OutcomeClass) -> u64 {
        self.outcomes[class as usize]
    }

    /// Ops that the server answered so.
    pub const fn reply(&self, reply: ReplyKind) -> u64 {
        self.replies[reply as usize]
    }

    /// Ops that the schedule offered: those scheduled, but for follow-ups.
    pub const fn offered(&self) -> u64 {
        self.scheduled.saturating_sub(self.followup)
    }

    /// Ops that were never sent because every connection that could take them was taken or not established.
    pub const fn unsent_connection(&self) -> u64 {
        self.unsent.saturating_sub(self.abandoned + self.unsent_client)
    }

    /// Ops that the server answered as the protocol provides: hit + miss + done + refused.
    pub fn completed(&self) -> u64 {
        count_of_classes(&self.outcomes, OutcomeClass::is_completed)
    }

    /// Ops that failed: error + timeout + mismatch + lost.
    pub fn failed(&self) -> u64 {
        count_of_classes(&self.outcomes, is_failed)
    }

    /// Ops that a server is to blame for, or the way to it: errors, time-outs, lost ones, and those that were given up before
    /// they were sent. Beside it the ops that these are part of: all that were sent or would have been.
    pub fn faulty(&self) -> (u64, u64) {
        let ended = self.failed() - self.outcome(OutcomeClass::Mismatch);
        (ended + self.abandoned, self.sent + self.abandoned)
    }

    /// Ops that ended, in whatever way.
    pub fn ended(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Do the numbers add up exactly? To be asked when the run has drained and `in_flight` is set.
    pub fn adds_up(&self) -> bool {
        self.scheduled == self.sent + self.unsent
            && self.abandoned + self.unsent_client <= self.unsent
            && self.sent == self.ended() + self.in_flight
            && self.ended() == self.replies.iter().sum::<u64>()
    }
}

counts! {
    /// What became of the keys that retrievals asked for. All four are counted when a retrieval ends, so the keys of
    /// retrievals in flight (and of those never sent) are in none of them and the identity holds at any time.
    pub struct KeyCounts {
        /// Keys of all retrievals that have ended.
        pub requested: u64,
        /// Keys that completed retrievals found.
        pub hit: u64,
        /// Keys that completed retrievals did not find.
        pub miss: u64,
        /// Keys of retrievals that did not complete, whatever part of the reply had come.
        pub failed: u64,
    }
}

impl KeyCounts {
    /// `asked = hit + miss + failed`?
    pub const fn adds_up(&self) -> bool {
        self.requested == self.hit + self.miss + self.failed
    }
}

counts! {
    /// Both levels, and what of it happened inside the measured window.
    pub struct OpCounts {
        /// What became of the requests.
        pub requests: RequestCounts,
        /// What became of the keys.
        pub keys: KeyCounts,
        /// What happened to these requests inside the measured window.
        pub in_window: WindowCounts,
    }
}

impl OpCounts {
    /// Counts several ops that have ended alike. `requested` is how many keys one asked for and `hits` how many were found; both matter for
    /// retrievals only.
    #[inline(always)]
    pub fn record_many(&mut self, op: OpId, outcome: Outcome, requested: u32, hits: u32, times: u32) {
        let times = u64::from(times);
        self.requests.outcomes[outcome.class as usize] += times;
        self.requests.replies[outcome.reply as usize] += times;
        if op.is_retrieval() {
            debug_assert!(hits <= requested, "{hits} hits of {requested} keys");
            self.keys.requested += u64::from(requested) * times;
            if outcome.class.is_completed() {
                self.keys.hit += u64::from(hits) * times;
                self.keys.miss += u64::from(requested.saturating_sub(hits)) * times;
            } else {
                self.keys.failed += u64::from(requested) * times;
            }
        }
    }

    /// Do both levels add up?
    pub fn adds_up(&self) -> bool {
        self.requests.adds_up() && self.keys.adds_up()
    }

    /// Has nothing been counted?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The counts of one (phase, class, op).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountEntry {
    /// The phase that the intended times lie in.
    pub phase: Phase,
    /// The class.
    pub class: ClassId,
    /// The op.
    pub op: OpId,
    /// The counts.
    pub counts: OpCounts,
}

impl CountEntry {
    /// What happened to its ops inside the measured window. Nothing did to those of other phases than the warm-up and the
    /// window: what is due later counts as later, also in the very nanosecond in which an interrupted window ends.
    pub fn in_window(&self) -> WindowCounts {
        match self.phase {
            Phase::Warmup | Phase::Measure => self.counts.in_window,
            _ => WindowCounts::default(),
        }
    }

    /// Its ops that were due in the measured window.
    pub const fn due_in_window(&self) -> u64 {
        match self.phase {
            Phase::Measure => self.counts.requests.scheduled,
            _ => 0,
        }
    }

    /// Do these numbers add up? To be asked when the run has drained.
    pub fn adds_up_in_window(&self) -> bool {
        self.in_window().adds_up(self.due_in_window())
    }
}

/// Counts for every (phase, class, op), all of them preallocated: preload and follow-ups count kinds that are in no mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTable {
    /// By class, then phase, then op.
    counts: Vec<OpCounts>,
    /// How many ops a plan with these commands can have.
    ops: usize,
}

impl CountTable {
    /// Empty counts for this many classes and commands of the user's own.
    pub fn new(classes: usize, commands: usize) -> Self {
        let ops = OpId::count(commands);
        Self { counts: vec![OpCounts::default(); classes * Phase::COUNT * ops], ops }
    }

    /// The place of the counts of a (phase, class, op) among all of them.
    #[inline]
    pub(crate) fn index(&self, phase: Phase, class: ClassId, op: OpId) -> usize {
        (usize::from(class) * Phase::COUNT + phase as usize) * self.ops + op.index()
    }

    /// The phase of the counts whose [`CountTable::index`] is this.
    pub(crate) fn phase_of(&self, index: u32) -> Phase {
        Phase::ALL[index as usize / self.ops % Phase::COUNT]
    }

    /// The counts of one place, to write in.
    #[inline]
    pub fn get_mut(&mut self, phase: Phase, class: ClassId, op: OpId) -> &mut OpCounts {
        let index = self.index(phase, class, op);
        &mut self.counts[index]
    }

    /// The counts whose [`CountTable::index`] is this, to write in.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> &mut OpCounts {
        &mut self.counts[index as usize]
    }

    /// Takes what has neither ended nor failed for in flight, and what was never sent for unsent: workers that would have counted both at
    /// their end were lost with their host.
    pub(crate) fn end_lost(&mut self) {
        for entry in self.entries().collect::<Vec<_>>() {
            let due = entry.due_in_window();
            let OpCounts { requests, in_window, .. } = self.get_mut(entry.phase, entry.class, entry.op);
            requests.in_flight = requests.sent.saturating_sub(requests.ended());
            let unsent = requests.scheduled.saturating_sub(requests.sent);
            requests.unsent_client += unsent.saturating_sub(requests.unsent);
            requests.unsent = unsent;
            let (begun, ended) = (in_window.in_flight_at_start + in_window.sent, in_window.ended());
            in_window.in_flight_at_end = begun.saturating_sub(ended);
            let (waited, left) = (in_window.waiting_at_start + due, in_window.sent + in_window.abandoned);
            in_window.waiting_at_end = waited.saturating_sub(left);
        }
    }

    /// Adds one entry.
    pub fn add(&mut self, entry: &CountEntry) {
        self.get_mut(entry.phase, entry.class, entry.op).merge(&entry.counts);
    }

    /// The counts that are not all 0, in the order class, phase, op.
    pub fn entries(&self) -> impl Iterator<Item = CountEntry> + '_ {
        let place = |index: usize| {
            let (rest, op) = (index / self.ops, index % self.ops);
            (Phase::ALL[rest % Phase::COUNT], (rest / Phase::COUNT) as ClassId, OpId::at(op))
        };
        self.counts.iter().enumerate().filter(|(_, counts)| !counts.is_empty()).map(move |(index, counts)| {
            let (phase, class, op) = place(index);
            CountEntry { phase, class, op, counts: *counts }
        })
    }

    /// Yields the entries and leaves every count 0.
    pub fn take(&mut self) -> Vec<CountEntry> {
        let entries = self.entries().collect();
        self.counts.fill(OpCounts::default());
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::OpKind;

    fn outcome(class: OutcomeClass, reply: ReplyKind) -> Outcome {
        Outcome { class, reply }
    }

    /// Ten requests were due, eight sent and seven ended when the last interval of a lost worker was taken.
    #[test]
    fn lost_workers_leave_requests_in_flight() {
        let mut table = CountTable::new(1, 0);
        let counts = table.get_mut(Phase::Measure, 0, OpKind::Get.into());
        (counts.requests.scheduled, counts.requests.sent, counts.in_window.sent) = (10, 8, 8);
        for _ in 0..7 {
            counts.record_many(OpKind::Get.into(), outcome(OutcomeClass::Hit, ReplyKind::Value), 1, 1, 1);
            counts.in_window.outcomes[OutcomeClass::Hit as usize] += 1;
        }
        assert!(!counts.requests.adds_up() && !counts.in_window.adds_up(10));
        table.end_lost();
        let counts = *table.get_mut(Phase::Measure, 0, OpKind::Get.into());
        assert!(counts.requests.adds_up() && counts.in_window.adds_up(10), "{counts:?}");
        assert_eq!((counts.requests.in_flight, counts.requests.unsent), (1, 2));
        assert_eq!((counts.requests.unsent_client, counts.requests.unsent_connection()), (2, 0));
        assert_eq!((counts.in_window.in_flight_at_end, counts.in_window.waiting_at_end), (1, 2));
    }

    #[test]
    fn keys_of_every_ended_retrieval_are_hit_missed_or_failed() {
        let mut counts = OpCounts::default();
        let ended = [
            (OpKind::Mget, OutcomeClass::Hit, ReplyKind::Value, 10, 7),
            (OpKind::Get, OutcomeClass::Miss, ReplyKind::NotFound, 1, 0),
            (OpKind::Mget, OutcomeClass::Lost, ReplyKind::None, 10, 4),
            (OpKind::Mget, OutcomeClass::Mismatch, ReplyKind::Value, 10, 10),
            (OpKind::Set, OutcomeClass::Done, ReplyKind::Stored, 1, 0),
            (OpKind::Set, OutcomeClass::Unacknowledged, ReplyKind::None, 1, 0),
        ];
        for (kind, class, reply, requested, hits) in ended {
            counts.record_many(kind.into(), outcome(class, reply), requested, hits, 1);
        }
        assert_eq!(counts.keys, KeyCounts { requested: 31, hit: 7, miss: 4, failed: 20 });
        assert!(counts.keys.adds_up());
        assert_eq!(
            (counts.requests.completed(), counts.requests.failed(), counts.requests.ended()),
            (3, 2, 6)
        );
        assert_eq!(counts.requests.reply(ReplyKind::Value), 2);
    }

    #[test]
    fn every_inconsistent_count_is_noticed() {
        let mut counts = RequestCounts {
            scheduled: 10,
            sent: 7,
            unsent: 3,
            abandoned: 1,
            unsent_client: 1,
            outcomes: [3, 1, 1, 0, 1, 0, 0, 0, 0],
            in_flight: 1,
            ..RequestCounts::default()
        };
        counts.replies[ReplyKind::Value as usize] = 6;
        assert!(counts.adds_up());
        let wrong: [fn(&mut RequestCounts); 8] = [
            |counts| counts.scheduled += 1,
            |counts| counts.sent += 1,
            |counts| counts.unsent -= 1,
            |counts| counts.abandoned += 2,
            |counts| counts.unsent_client += 2,
            |counts| counts.outcomes[8] += 1,
            |counts| counts.replies[0] += 1,
            |counts| counts.in_flight -= 1,
        ];
        for (index, change) in wrong.into_iter().enumerate() {
            let mut changed = counts;
            change(&mut changed);
            assert!(!changed.adds_up(), "change {index}");
        }
        assert_eq!(counts.faulty(), (counts.failed() - counts.outcome(OutcomeClass::Mismatch) + 1, 7 + 1));
        let mut doubled = counts;
        doubled.merge(&counts);
        assert!(doubled.adds_up());
        assert_eq!((doubled.scheduled, doubled.completed(), doubled.in_flight), (20, 10, 2));
    }

    #[test]
    fn entries_are_counted_apart() {
        let mut request_counts = CountTable::new(3, 2);
        let mut expected = Vec::new();
        for class in 0..3 {
            for phase in Phase::ALL {
                for op in (0..OpId::count(2)).map(OpId::at) {
                    request_counts.get_mut(phase, class, op).requests.scheduled += expected.len() as u64 + 1;
                    expected.push((phase, class, op, expected.len() as u64 + 1));
                }
            }
        }
        let entries: Vec<_> = request_counts
            .take()
            .iter()
            .map(|entry| (entry.phase, entry.class, entry.op, entry.counts.requests.scheduled))
            .collect();
        assert_eq!(entries, expected);
        assert_eq!(request_counts.take(), []);
    }
}
