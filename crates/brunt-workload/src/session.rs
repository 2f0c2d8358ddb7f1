//! A session: a virtual client that yields its next operation, when it is due, and its connection.
//!
//! Every op has its intended time from the schedule alone, however late it is taken. Nothing is issued with an intended
//! time at or after the end of the window, and exactly `budget` ops with one at or after `measure_ns`.

use crate::arrivals::Arrivals;
pub use crate::client_window::Check;
use crate::popularity::Ids;
use crate::rng::{Purpose, Rng};
use crate::schedule::{Calls, ClosedLoopSlots, Schedule};
pub use crate::source::{Choices, PreloadSpec};
use crate::source::{Preload, Purge, Recorded, Source};
use crate::trace::{Block, TraceCursor};
use brunt_plan::op::{ClassId, KeyRef, Op, OpKind, SessionId, ValueRef};
use brunt_plan::outcome::{ErrorPersistence, Outcome};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, OpenRate, SessionScope};
use brunt_plan::shard::{Portion, StreamPart};

/// When the phases of a run begin, on the engine's clock in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Time 0 of the schedule: the warm-up.
    pub start_ns: u64,
    /// The measured window: from here on ops are measured, and count against the budget.
    pub measure_ns: u64,
    /// The drain: from here on there are no ops; `u64::MAX` where time is no bound, or unknown.
    pub end_ns: u64,
}

impl PhaseTimes {
    /// Before the times are set.
    pub const UNKNOWN: Self = Self { start_ns: u64::MAX, measure_ns: u64::MAX, end_ns: u64::MAX };

    /// The phase of an op with this intended time.
    #[inline]
    pub fn phase_of(&self, intended_ns: u64) -> Phase {
        if self.is_measured(intended_ns) {
            Phase::Measure
        } else if intended_ns < self.measure_ns {
            Phase::Warmup
        } else {
            Phase::Drain
        }
    }

    /// Does this time lie in the measured window?
    #[inline]
    pub fn is_measured(&self, at_ns: u64) -> bool {
        self.measure_ns <= at_ns && at_ns < self.end_ns
    }
}

/// What a session is made from.
#[derive(Clone, Debug)]
pub struct SessionSpec<'a> {
    /// Goes into its ops.
    pub class_id: ClassId,
    /// Goes into its ops.
    pub session_id: SessionId,
    /// What it does.
    pub class: &'a Class,
    /// Its place among all sessions of the class in the whole run: decides its random numbers and its turn among the keys.
    pub part: StreamPart,
    /// What of the class's arrivals is its own, in open loop.
    pub portion: Portion,
    /// How many connections it has; closed-loop ops name one of `0..connections`.
    pub connections: u32,
    /// How many ops it issues with an intended time at or after `window.measure_ns`.
    pub budget: Option<u64>,
    /// The run's seed.
    pub seed: u64,
    /// How many records of a trace may be in flight or wait.
    pub records: usize,
    /// The share of reads of a window that are checked.
    pub verify: f64,
    /// Which keys, and by how much counters change.
    pub choices: Choices,
    /// How many servers hold each key, which is deleted on one after the other where the class purges.
    pub copies: u32,
    /// The slots of a closed loop begin taken, each to be released when its connection is established.
    pub begins_taken: bool,
    /// The times of the run.
    pub window: PhaseTimes,
}

/// An op to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueOp {
    /// When it should have been sent, in ns. Open loop: by the schedule. Closed loop: when its slot became free.
    pub intended_ns: u64,
    /// What to send.
    pub op: Op,
    /// The session's connection it belongs on, where the schedule binds it (closed loop).
    pub connection: Option<u32>,
}

/// An op to be sent, the usual one told apart.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// A get of one key, [`Session::get`].
    Get {
        /// As in [`DueOp`].
        intended_ns: u64,
        /// The key.
        id: u64,
        /// As in [`DueOp`].
        connection: Option<u32>,
    },
    /// Any other.
    Other(DueOp),
}

/// Multi-gets of an open loop whose keys a window holds: those in flight and those that wait. Behind them the schedule is the queue.
const WAITING_MULTIGETS: usize = 64;

/// One virtual client.
#[derive(Clone, Debug)]
pub struct Session {
    class: ClassId,
    session: SessionId,
    schedule: Schedule,
    source: Source,
    window: PhaseTimes,
    /// What comes when the budget is spent for the first time, and what for the second.
    purge: Option<PurgeState>,
    /// Measured ops still to be issued; from `u64::MAX` down, which no run exhausts, where there is no budget.
    budget: u64,
    /// Ops with an intended time before this may be issued: [`Session::update_bound`].
    bound_ns: u64,
    /// The answer to [`Session::due_ns`], kept up to date by whatever may change it.
    due_ns: u64,
    /// When to be asked again while the next record of a trace is not at hand; else `u64::MAX`.
    idle_ns: u64,
    /// When it was ended early; the start where it was not. No release can be earlier from then on.
    ended_ns: u64,
}

/// A purge that is to come, in flight, or over.
#[derive(Clone, Debug)]
struct PurgeState {
    purge: Option<Purge>,
    /// The usual source, while it is in flight.
    paused_source: Option<Source>,
    /// Measured ops behind it.
    rest: u64,
}

impl Session {
    /// A client of a class.
    pub fn new(spec: SessionSpec<'_>) -> Self {
        let schedule = match &spec.class.load {
            Load::Open { rate: OpenRate::PerConnection(rate), arrival } => {
                // Each key of a window's multi-get is an op of the schedule.
                let is_grouped =
                    spec.class.popularity.window().is_some() && spec.class.mix.contains(OpKind::Mget);
                let calls = Calls::of_connections(arrival, *rate, spec.seed, spec.class_id)
                    .in_groups(if is_grouped { spec.class.multiget } else { 1 });
                Schedule::Open(Box::new(match spec.class.sessions {
                    SessionScope::Client { .. } => calls.of_client(spec.part.index, spec.window.start_ns),
                    SessionScope::Worker | SessionScope::Connection => calls,
                }))
            }
            Load::Open { .. } if spec.class.has_timed_records() => Schedule::Recorded(u64::MAX),
            Load::Open { rate, arrival } => {
                let lead_ns = spec.window.measure_ns.saturating_sub(spec.window.start_ns);
                let arrivals = Arrivals::new(arrival, rate, spec.portion, spec.seed, spec.class_id, lead_ns);
                Schedule::Open(Box::new(Calls::of_all(arrivals, spec.window.start_ns)))
            }
            Load::Closed { think } => {
                let depth = spec.class.depth;
                let mut slots = ClosedLoopSlots::new(spec.connections, depth, think.0, spec.window.start_ns);
                if spec.begins_taken {
                    slots.take_all();
                }
                Schedule::Closed(slots)
            }
        };
        let budget = spec.budget.unwrap_or(u64::MAX);
        let slots = spec.connections as usize * spec.class.depth as usize;
        let slots =
            if matches!(schedule, Schedule::Closed(_)) { slots } else { slots.max(WAITING_MULTIGETS) };
        let rng = Rng::for_stream(spec.seed, Purpose::Ops, spec.class_id, spec.part.index);
        let room = (slots, spec.records);
        let source = Source::of_class(spec.class, spec.part, spec.choices, rng, room, spec.verify);
        let mut session =
            Self::from_parts(spec.class_id, spec.session_id, schedule, source, spec.window, budget);
        // A session that is to send nothing begins with its deletes, which have no place in a warm-up.
        let is_warmed_up = spec.window.measure_ns > spec.window.start_ns;
        if let (Some(keep_every), Some(budget)) = (spec.class.purge, spec.budget)
            && (budget > 0 || !is_warmed_up)
        {
            let purge = Purge::new(spec.class.keyspace.keys, keep_every, spec.part, spec.copies);
            session.purge = Some(PurgeState { purge: Some(purge), paused_source: None, rest: budget / 2 });
            session.budget = budget - budget / 2;
            session.begin_next_budget();
        }
        session
    }

    /// A client that stores version 0 of every id, or deletes it, in closed loop from `start_ns` on, each id until the server
    /// confirms it; with more than `PRELOAD_RETRIES_MAX` failures in all, or an error that holds, it gives up and [`Session::failed`] is true.
    pub fn preload(
        class_id: ClassId,
        session_id: SessionId,
        connections: u32,
        depth: u32,
        start_ns: u64,
        spec: PreloadSpec,
    ) -> Self {
        let schedule = Schedule::Closed(ClosedLoopSlots::new(connections, depth, 0, start_ns));
        let slots = connections as usize * depth as usize;
        let source = Source::Preload(Preload::new(spec, slots));
        let window = PhaseTimes { start_ns, measure_ns: u64::MAX, end_ns: u64::MAX };
        Self::from_parts(class_id, session_id, schedule, source, window, u64::MAX)
    }

    fn from_parts(
        class: ClassId,
        session: SessionId,
        schedule: Schedule,
        source: Source,
        window: PhaseTimes,
        budget: u64,
    ) -> Self {
        let (bound_ns, due_ns, ended_ns) = (0, u64::MAX, window.start_ns);
        let idle_ns = u64::MAX;
        let mut session = Self {
            class,
            session,
            schedule,
            source,
            window,
            purge: None,
            budget,
            bound_ns,
            due_ns,
            idle_ns,
            ended_ns,
        };
        session.update_bound();
        session
    }

    /// The class that it belongs to.
    pub fn class(&self) -> ClassId {
        self.class
    }

    /// Does a clock decide when this session sends, and not its replies?
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.schedule, Schedule::Open(_) | Schedule::Recorded(_))
    }

    /// Does its schedule begin anew with every connection?
    #[inline]
    pub fn follows_connection(&self) -> bool {
        matches!(&self.schedule, Schedule::Open(calls) if calls.follow_connection())
    }

    /// Its connection, of this ordinal within the class, is open from `at_ns` on, and is to carry `calls` calls. Where the schedule
    /// does not follow the connection, nothing depends on it.
    pub fn begin_calls(&mut self, connection: u64, at_ns: u64, calls: u64) {
        if let Schedule::Open(schedule) = &mut self.schedule {
            schedule.begin(connection, at_ns, calls);
            self.update_bound();
        }
    }

    /// Its connection is gone: what it still was to carry will not be issued.
    pub fn end_calls(&mut self) {
        if let Schedule::Open(schedule) = &mut self.schedule {
            schedule.end();
            self.update_bound();
        }
    }

    /// When the next op is due, in ns; `u64::MAX` where there is none until a release, or ever.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Takes the next op. There must be one: [`Session::due_ns`] is not `u64::MAX`.
    #[inline]
    pub fn take(&mut self) -> DueOp {
        match self.take_next() {
            Next::Get { intended_ns, id, connection } => DueOp { intended_ns, op: self.get(id), connection },
            Next::Other(issue) => issue,
        }
    }

    /// Takes the next op, a get apart. Inlined, so that a get never is an [`Op`] in memory: putting one together there, field by field, and copying
    /// it in blocks makes the CPU wait for each block.
    #[inline(always)]
    pub fn take_next(&mut self) -> Next {
        let intended_ns = self.due_ns;
        assert!(intended_ns != u64::MAX, "an op was taken where none is due");
        let (connection, next_ns) = self.schedule.take();
        let since_ns = intended_ns - self.window.start_ns;
        let next = match &mut self.source {
            Source::Drawn(drawn) => match drawn.next_kind() {
                OpKind::Get => Next::Get { intended_ns, id: drawn.next_id(since_ns), connection },
                kind => {
                    let op = drawn.next_of_kind(kind, since_ns);
                    Next::Other(DueOp { intended_ns, op: self.with_ids(op), connection })
                }
            },
            _ => {
                return Next::Other(DueOp {
                    intended_ns,
                    op: self.next_of_other(intended_ns, next_ns),
                    connection,
                });
            }
        };
        self.count_issued(intended_ns, next_ns);
        next
    }

    /// The next op of a window, counted as issued: each of its keys is an op of the schedule and of the budget.
    fn next_of_window(&mut self, intended_ns: u64) -> Op {
        let Source::Window(window) = &mut self.source else { unreachable!("the caller has looked") };
        let is_measured = intended_ns >= self.window.measure_ns;
        let keys_max = if is_measured { self.budget } else { u64::MAX };
        let op = window.next_of(intended_ns - self.window.start_ns, keys_max);
        let others = u64::from(op.count) - 1;
        if self.is_open() {
            (0..others).for_each(|_| _ = self.schedule.take());
        }
        self.budget -= if is_measured { others } else { 0 };
        self.count_issued(intended_ns, self.schedule.peek_ns());
        self.update_bound();
        self.with_ids(op)
    }

    /// What is to be checked of the reply for this key to a get with an expectation: see [`Check`]. Each is yielded once.
    pub fn take_check(&mut self, key: KeyRef, id: u64) -> Option<Check> {
        match &mut self.source {
            Source::Window(window) => window.take_check(key, id),
            _ => None,
        }
    }

    /// Time to live of what it stores, in seconds.
    pub fn ttl_s(&self) -> u32 {
        self.source.operations().ttl_s()
    }

    /// How many milliseconds from the start of the schedule this is.
    pub fn since_start_ms(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.window.start_ns) / 1_000_000
    }

    /// The next op of another source than the usual one, counted as issued; `next_ns`: when the one after it is due.
    #[inline(never)]
    fn next_of_other(&mut self, intended_ns: u64, next_ns: u64) -> Op {
        if matches!(self.source, Source::Window(_)) {
            return self.next_of_window(intended_ns);
        }
        let operations = self.source.operations_mut();
        let op = operations.next(intended_ns - self.window.start_ns);
        if !operations.has_next() {
            self.update_bound();
        }
        let next_ns = self.next_recorded_ns().unwrap_or(next_ns);
        self.count_issued(intended_ns, next_ns);
        self.with_ids(op)
    }

    /// Brings the schedule of a replay up to date: when the record at hand is due.
    fn next_recorded_ns(&mut self) -> Option<u64> {
        match (&mut self.schedule, &self.source) {
            (Schedule::Recorded(next_ns), Source::Recorded(recorded)) => {
                *next_ns = self.window.start_ns.saturating_add(recorded.cursor.next_due_ns());
                Some(*next_ns)
            }
            _ => None,
        }
    }

    /// The op that gets the key `id`.
    #[inline]
    pub fn get(&self, id: u64) -> Op {
        self.with_ids(Op::of(OpKind::Get, KeyRef::Id(id)))
    }

    /// The op with the ids of this session and its class.
    #[inline(always)]
    fn with_ids(&self, op: Op) -> Op {
        Op { class: self.class, session: self.session, ..op }
    }

    /// Says what became of an op of this session with this key: the source may have more, or other ops for it.
    #[inline(always)]
    pub fn record_outcome(&mut self, key: KeyRef, outcome: Outcome) {
        if !matches!(self.source, Source::Drawn(_)) {
            self.record_other_outcome(key, outcome);
        }
    }

    #[inline(never)]
    fn record_other_outcome(&mut self, key: KeyRef, outcome: Outcome) {
        self.source.operations_mut().record_outcome(key, outcome);
        self.update_bound();
    }

    /// Says that the slot of an op became free at `done_ns`: the op, and all that followed it there, has ended; or its
    /// connection was just established. `connection` is the session's connection that it is on; in open loop nothing depends on it.
    #[inline(always)]
    pub fn release(&mut self, connection: u32, done_ns: u64) {
        if let Schedule::Closed(slots) = &mut self.schedule {
            let next_ns = slots.release(connection, done_ns);
            self.set_next_due(next_ns);
        }
    }

    /// A gets of this session has read a key with this unique; a later cas may use it.
    #[inline]
    pub fn record_unique(&mut self, id: u64, unique: u64) {
        self.source.operations_mut().record_unique(id, unique);
    }

    /// The op that stores a key which a retrieval of this session missed. It counts against no budget.
    pub fn fill(&self, id: u64) -> Op {
        let ttl_s = self.source.operations().ttl_s();
        self.with_ids(Op { value: ValueRef::Version(0), ttl_s, ..Op::of(OpKind::Set, KeyRef::Id(id)) })
    }

    /// The op that stores what a retrieval by the record in this place missed, if it is known how long that is. It counts against no
    /// budget, and the place is held until it has ended, too.
    pub fn fill_from_record(&mut self, place: u32) -> Option<Op> {
        let op = self.recorded_mut().store_of(place)?;
        Some(self.with_ids(op))
    }

    /// The records of its trace. Only a session that has one issues ops whose keys lie in places.
    #[inline]
    pub fn records(&self) -> &TraceCursor {
        match &self.source {
            Source::Recorded(recorded) => &recorded.cursor,
            _ => unreachable!("a key in a place is that of a trace"),
        }
    }

    fn recorded_mut(&mut self) -> &mut Recorded {
        match &mut self.source {
            Source::Recorded(recorded) => recorded,
            _ => unreachable!("a key in a place is that of a trace"),
        }
    }

    /// Does it need more of its trace to go on? Then [`Session::due_ns`] says when to look for it again.
    #[inline]
    pub fn needs_block(&self) -> bool {
        matches!(&self.source, Source::Recorded(recorded) if recorded.cursor.needs_block())
    }

    /// Goes on with this block of its trace, which it needs. Yields the one before.
    pub fn supply_block(&mut self, block: Block) -> Block {
        let spent = self.recorded_mut().cursor.supply_block(block);
        self.next_recorded_ns();
        self.update_bound();
        spent
    }

    /// Do its records say when they are due?
    pub fn has_timed_records(&self) -> bool {
        matches!(self.schedule, Schedule::Recorded(_))
    }

    /// Time 0 of its schedule.
    pub const fn start_ns(&self) -> u64 {
        self.window.start_ns
    }

    /// There is no block at hand: it is to be asked again at `at_ns`, and not before `none_due_ns` from the start of the schedule. What is due
    /// keeps its intended time.
    pub fn retry_at(&mut self, at_ns: u64, none_due_ns: u64) {
        self.idle_ns = at_ns.max(self.window.start_ns.saturating_add(none_due_ns));
        self.update_bound();
    }

    /// Is this session over? True when no op is due, and none will be whatever becomes of the ops in flight (provided
    /// that none of them is released with a time before those already seen). Ops may still be in flight.
    pub fn is_exhausted(&self) -> bool {
        if self.due_ns != u64::MAX || self.source.operations().is_paused() {
            return false;
        }
        match &self.schedule {
            Schedule::Recorded(_) => true,
            // Another connection may follow.
            Schedule::Open(calls) => {
                // A window that waits for its writes goes on when one has ended.
                let waits = matches!(self.source, Source::Window(_)) && !self.source.operations().has_next();
                let may_go_on = calls.follow_connection() || waits;
                !may_go_on || self.budget == 0 || self.ended_ns >= self.window.end_ns
            }
            Schedule::Closed(slots) => {
                let passed_ns = self.ended_ns.max(slots.passed_ns());
                let may_free = slots.in_flight() > 0 && self.admits(slots.due_after_ns(passed_ns));
                // An op in flight that fails is retried by a preload until it gives up.
                let may_have_more = self.source.operations().may_have_more();
                !(may_free && may_have_more)
            }
        }
    }

    /// Has it issued as many measured ops as it was to, or all of its trace? Never so without either.
    pub fn has_spent_budget(&self) -> bool {
        let is_over = |recorded: &Recorded| recorded.cursor.is_over();
        self.budget == 0 || matches!(&self.source, Source::Recorded(recorded) if is_over(recorded))
    }

    /// Gives the measured window other times, none of which has come to pass: no op with an intended time from `measure_ns` on
    /// has been taken.
    pub fn set_window(&mut self, measure_ns: u64, end_ns: u64) {
        (self.window.measure_ns, self.window.end_ns) = (measure_ns, end_ns);
        self.update_bound();
    }

    /// Ends the session early: nothing is issued any more with an intended time at or after `now_ns`.
    pub fn end_at(&mut self, now_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(now_ns);
        self.ended_ns = self.ended_ns.max(now_ns);
        self.update_bound();
    }

    /// The key ids of an op of this session, in the order of the request.
    #[inline]
    pub fn ids(&self, op: &Op) -> Ids<'_> {
        match &self.source {
            Source::Drawn(drawn) => drawn.ids(op),
            Source::Window(window) if let KeyRef::Drawn(place) = op.key => Ids::held(window.ids(place)),
            _ => Ids::new(op, u64::MAX, None),
        }
    }

    /// How many keys of a preload are confirmed: stored, or deleted; 0 for other sessions.
    pub fn confirmed(&self) -> u64 {
        match &self.source {
            Source::Preload(preload) => preload.confirmed,
            _ => 0,
        }
    }

    /// An op of a preload has this error, which is recorded as its outcome next. Returns whether the preload has failed with it.
    pub fn refuse_store(&mut self, persistence: ErrorPersistence, at_ns: u64) -> bool {
        let Source::Preload(preload) = &mut self.source else { return false };
        let has_failed = preload.refuse(persistence, at_ns);
        self.update_bound();
        has_failed
    }

    /// Goes on with a preload that has paused after an error, or for its rate. Returns whether it does now.
    pub fn resume_preload(&mut self, now_ns: u64) -> bool {
        let Source::Preload(preload) = &mut self.source else { return false };
        let goes_on = preload.resume(now_ns);
        self.update_bound();
        goes_on
    }

    /// Does a preload wait for its rate, and for nothing else?
    pub fn awaits_pace(&self) -> bool {
        matches!(&self.source, Source::Preload(preload) if preload.awaits_pace())
    }

    /// Has a preload given up?
    pub fn failed(&self) -> bool {
        matches!(&self.source, Source::Preload(preload) if preload.failed)
    }

    /// Counts an op with this intended time as issued; `next_ns` is the one after it.
    #[inline]
    fn count_issued(&mut self, intended_ns: u64, next_ns: u64) {
        if intended_ns >= self.window.measure_ns {
            self.budget -= 1;
            if self.budget == 0 {
                self.begin_next_budget();
            }
        }
        self.set_next_due(next_ns);
    }

    /// A budget has been spent: the next one, where there is one, is that of a purge or of what comes behind it.
    #[cold]
    fn begin_next_budget(&mut self) {
        while self.budget == 0
            && let Some(purging) = &mut self.purge
        {
            match (purging.purge.take(), purging.paused_source.take()) {
                (Some(purge), _) => {
                    self.budget = purge.count();
                    purging.paused_source = Some(std::mem::replace(&mut self.source, Source::Purge(purge)));
                }
                (None, Some(source)) => (self.source, self.budget) = (source, purging.rest),
                (None, None) => self.purge = None,
            }
        }
        self.update_bound();
    }

    /// May an op with this intended time be issued?
    #[inline]
    fn admits(&self, intended_ns: u64) -> bool {
        intended_ns < self.window.end_ns && (intended_ns < self.window.measure_ns || self.budget > 0)
    }

    /// Brings `bound_ns` up to date, and what depends on it: after every change of the window's end, of a budget to 0, and
    /// of whether the source has anything.
    fn update_bound(&mut self) {
        let PhaseTimes { measure_ns, end_ns, .. } = self.window;
        self.bound_ns = match (self.source.operations().has_next(), self.budget) {
            (false, _) => 0,
            (true, 0) => measure_ns.min(end_ns),
            (true, _) => end_ns,
        };
        if !self.needs_block() || !self.admits(self.idle_ns) {
            self.idle_ns = u64::MAX;
        }
        self.set_next_due(self.schedule.peek_ns());
    }

    #[inline]
    fn set_next_due(&mut self, next_ns: u64) {
        self.due_ns = if next_ns < self.bound_ns { next_ns } else { self.idle_ns };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::PRELOAD_RETRIES_MAX;
    use brunt_plan::arrival::Arrival;
    use brunt_plan::op::Expectation;
    use brunt_plan::outcome::{OutcomeClass, ReplyKind};
    use brunt_plan::plan::{OpenRate, ValueForm};
    use brunt_plan::popularity::Popularity;
    use brunt_plan::units::{DurationNs, Rate};
    use proptest::prelude::{any, proptest};
    use std::collections::VecDeque;
    use std::ops::Range;

    const STORED: Outcome = Outcome { class: OutcomeClass::Done, reply: ReplyKind::Stored };
    const LOST: Outcome = Outcome::without_reply(OutcomeClass::Lost);
    const FOR_EVER: PhaseTimes = PhaseTimes { start_ns: 0, measure_ns: 0, end_ns: u64::MAX };

    const UNIFORM_1K: Load =
        Load::Open { rate: OpenRate::Constant(Rate::per_second(1_000)), arrival: Arrival::Uniform };
    const POISSON_1K: Load =
        Load::Open { rate: OpenRate::Constant(Rate::per_second(1_000)), arrival: Arrival::Poisson };

    fn closed(think_ns: u64) -> Load {
        Load::Closed { think: DurationNs(think_ns) }
    }

    fn class(load: Load, depth: u32, mix: &str) -> Class {
        let toml = "connections = 1\npopularity = 'zipf:0.99'\nkeys = 1000\nprefix = ''\n";
        Class { load, ..crate::tests::class(&format!("{toml}depth = {depth}\nmix = '{mix}'")) }
    }

    /// Of values that are numbers the keys are counters; else each key has one beside it.
    #[test]
    fn counters_change_by_the_delta_of_their_key() {
        for (value_form, first_id) in [(ValueForm::Random, 1_000), (ValueForm::Zeros, 0)] {
            let mut class = class(closed(0), 1, "incr");
            class.popularity = Popularity::Sequential;
            class.keyspace.value_form = value_form;
            class.delta = "mcperf:u1,100".parse().unwrap();
            let mut session = session(&class, (0, 1), 5, None, FOR_EVER);
            let ops: Vec<Op> = (0..5).map(|_| session.take().op).collect();
            assert!(ops.iter().map(|op| op.operand).eq([81, 28, 10, 44, 64]), "{ops:?}");
            assert!(ops.iter().map(|op| op.key).eq((first_id..first_id + 5).map(KeyRef::Id)), "{ops:?}");
        }
    }

    /// Where uniques are read one is waited for; where none is, it is mcperf's.
    #[test]
    fn a_cas_without_a_unique_says_so() {
        for (mix, expected) in [("gets=1,cas=1000000", 0), ("cas", 1)] {
            let mut session = session(&class(closed(0), 1, mix), (0, 1), 1, None, FOR_EVER);
            assert_eq!(session.take().op.operand, expected, "{mix}");
        }
    }

    /// Session `index` of `of` of this class with this many connections.
    fn session(
        class: &Class,
        part: (u32, u32),
        connections: u32,
        budget: Option<u64>,
        window: PhaseTimes,
    ) -> Session {
        Session::new(SessionSpec {
            class_id: 3,
            session_id: 5,
            class,
            part: StreamPart { index: part.0, of: part.1 },
            portion: Portion { first: part.0, width: 1, of: part.1 },
            connections,
            budget,
            seed: 1,
            records: 8,
            verify: 0.0,
            choices: Choices::of_session(class, StreamPart { index: part.0, of: part.1 }, 1),
            copies: 1,
            begins_taken: false,
            window,
        })
    }

    /// Takes everything that is due before `until_ns`.
    fn taken(session: &mut Session, until_ns: u64) -> Vec<DueOp> {
        let mut issues = Vec::new();
        while session.due_ns() < until_ns {
            issues.push(session.take());
        }
        issues
    }

    /// One server for all connections that serves in order, `service_ns` each; yields (intended, done) of every op until
    /// the session is exhausted or `issues_max` are through.
    fn served(session: &mut Session, service_ns: u64, issues_max: usize) -> Vec<(u64, u64)> {
        let mut in_service: VecDeque<(u64, DueOp)> = VecDeque::new();
        let (mut samples, mut idle_from_ns, mut issued) = (Vec::new(), 0, 0);
        loop {
            let next_done_ns = in_service.front().map_or(u64::MAX, |(done_ns, _)| *done_ns);
            if issued < issues_max && session.due_ns() <= next_done_ns && session.due_ns() != u64::MAX {
                let issue = session.take();
                idle_from_ns = issue.intended_ns.max(idle_from_ns) + service_ns;
                in_service.push_back((idle_from_ns, issue));
                issued += 1;
            } else if let Some((done_ns, issue)) = in_service.pop_front() {
                samples.push((issue.intended_ns, done_ns));
                session.record_outcome(issue.op.key, STORED);
                session.release(issue.connection.unwrap_or(0), done_ns);
            } else {
                return samples;
            }
        }
    }

    #[test]
    fn an_open_loop_issues_by_the_clock_alone() {
        let window = PhaseTimes { start_ns: 500, measure_ns: 500, end_ns: 500 + 10_000_000 };
        let mut session = session(&class(UNIFORM_1K, 1, "get"), (1, 2), 4, None, window);
        let issues = taken(&mut session, u64::MAX);
        let intended: Vec<u64> = issues.iter().map(|issue| issue.intended_ns).collect();
        assert_eq!(intended, [1_000_500, 3_000_500, 5_000_500, 7_000_500, 9_000_500]);
        assert!(issues.iter().all(|issue| issue.connection.is_none()));
        assert!(session.is_exhausted());
        session.record_outcome(issues[0].op.key, LOST);
        session.release(0, 4_000_000);
        assert!(session.is_exhausted() && session.due_ns() == u64::MAX);
    }

    #[test]
    fn arrivals_do_not_depend_on_operations() {
        let intended = |mix| {
            let mut session = session(&class(POISSON_1K, 1, mix), (0, 1), 1, Some(1_000), FOR_EVER);
            taken(&mut session, u64::MAX).iter().map(|issue| issue.intended_ns).collect::<Vec<_>>()
        };
        assert_eq!(intended("get"), intended("get=9,set=1,mget=3"));
    }

    #[test]
    fn ops_are_built_by_kind() {
        let mut session =
            session(&class(UNIFORM_1K, 1, "get=1,set=1,mget=1"), (0, 1), 1, Some(3_000), FOR_EVER);
        let ops: Vec<Op> = taken(&mut session, u64::MAX).iter().map(|issue| issue.op).collect();
        for op in &ops {
            assert_eq!((op.class, op.session, op.ttl_s, op.expectation), (3, 5, 0, Expectation::Any));
            let expected = match op.kind {
                OpKind::Mget => (false, 10, ValueRef::None),
                OpKind::Set => (true, 1, ValueRef::Version(0)),
                _ => (true, 1, ValueRef::None),
            };
            assert_eq!((matches!(op.key, KeyRef::Id(_)), op.count, op.value), expected, "{op:?}");
            let ids: Vec<u64> = session.ids(op).collect();
            assert_eq!(ids.len(), usize::from(op.count));
            assert!(ids.iter().all(|id| *id < 1_000) && ids == session.ids(op).collect::<Vec<_>>());
        }
        for kind in [OpKind::Get, OpKind::Set, OpKind::Mget] {
            let count = ops.iter().filter(|op| op.kind == kind).count();
            assert!(count.abs_diff(1_000) < 104, "{kind}: {count}, four standard deviations are 103");
        }
    }

    #[test]
    fn sessions_with_the_same_seed_are_the_same_and_with_another_part_are_not() {
        let issues = |index| {
            let mut session =
                session(&class(POISSON_1K, 1, "get=9,set=1"), (index, 2), 1, Some(100), FOR_EVER);
            taken(&mut session, u64::MAX)
        };
        assert_eq!(issues(0), issues(0));
        assert_ne!(issues(0), issues(1));
    }

    #[test]
    fn a_closed_loop_waits_for_its_slots() {
        // Two connections of depth 2, think time 100: (released connection, done) one by one, then what is due.
        let mut session = session(&class(closed(100), 2, "get"), (0, 1), 2, None, FOR_EVER);
        let first = taken(&mut session, 1);
        assert_eq!(
            first.iter().map(|issue| issue.connection).collect::<Vec<_>>(),
            [Some(0), Some(1), Some(0), Some(1)]
        );
        assert!(session.due_ns() == u64::MAX && !session.is_exhausted());
        for (connection, done_ns, due_ns) in [(1, 50, 150), (0, 60, 150), (1, 40, 140)] {
            session.record_outcome(first[0].op.key, STORED);
            session.release(connection, done_ns);
            assert_eq!(session.due_ns(), due_ns);
        }
        let again: Vec<_> =
            taken(&mut session, 1_000).iter().map(|issue| (issue.intended_ns, issue.connection)).collect();
        assert_eq!(again, [(140, Some(1)), (150, Some(1)), (160, Some(0))]);
    }

    #[test]
    fn closed_loops_have_the_throughput_of_queueing_theory() {
        // N slots, think time Z, service time s = 100 us: X = min(1/s, N/(Z + s)), R = max(s, N·s − Z), once settled.
        for (slots, think_ns, service_ns, cycle_ns, response_ns) in [
            (10, 0, 100_000, 1_000_000, 1_000_000),
            (10, 1_000_000, 100_000, 1_100_000, 100_000),
            (20, 1_000_000, 100_000, 2_000_000, 1_000_000),
        ] {
            let mut session = session(&class(closed(think_ns), 1, "get"), (0, 1), slots, None, FOR_EVER);
            let samples = served(&mut session, service_ns, 2_000);
            let settled = &samples[100..];
            assert!(
                settled.iter().all(|(intended, done)| done - intended == response_ns),
                "N = {slots}, Z = {think_ns}"
            );
            let per_cycle = slots as usize;
            assert!(settled.windows(per_cycle + 1).all(|cycle| cycle[per_cycle].1 - cycle[0].1 == cycle_ns));
        }
    }

    proptest! {
        #[test]
        fn budgets_are_met_exactly(
            budgets in proptest::collection::vec(0..60u64, 1..6), load_index in 0..4usize, warmup in 0..20u64, depth in 1..4u32,
        ) {
            let load = [UNIFORM_1K, POISSON_1K, closed(0), closed(700_000)][load_index].clone();
            let class = class(load, depth, "get");
            let window = PhaseTimes { start_ns: 7, measure_ns: 7 + warmup * 1_000_000, end_ns: u64::MAX };
            let of = budgets.len() as u32;
            let mut measured = 0;
            for (index, budget) in (0..).zip(&budgets) {
                let mut session = session(&class, (index, of), 2, Some(*budget), window);
                let samples = served(&mut session, 300_000, usize::MAX);
                let own = samples.iter().filter(|(intended, _)| *intended >= window.measure_ns).count() as u64;
                assert_eq!(own, *budget);
                assert!(session.is_exhausted());
                measured += own;
            }
            assert_eq!(measured, budgets.iter().sum::<u64>());
        }

        #[test]
        fn nothing_is_due_at_or_after_the_end(end_ns in 0..50_000_000u64, load_index in 0..3usize, early in any::<bool>()) {
            let load = [UNIFORM_1K, POISSON_1K, closed(0)][load_index].clone();
            let window = PhaseTimes { end_ns: if early { u64::MAX } else { end_ns }, ..FOR_EVER };
            let mut session = session(&class(load, 1, "get"), (0, 1), 3, None, window);
            if early {
                session.end_at(end_ns);
            }
            let samples = served(&mut session, 300_000, usize::MAX);
            assert!(samples.iter().all(|(intended, _)| *intended < end_ns));
            assert!(session.is_exhausted());
            if load_index == 0 {
                assert_eq!(samples.len() as u64, end_ns.div_ceil(1_000_000));
            }
        }
    }

    #[test]
    fn a_closed_loop_is_exhausted_when_no_release_can_change_that() {
        let window = PhaseTimes { start_ns: 0, measure_ns: 1_000, end_ns: 2_000 };
        // (budget, done of the one slot, exhausted while it is in flight, due after its release)
        for (budget, think_ns, done_ns, in_flight_exhausted, due_ns) in [
            (None, 0, 1_500, false, 1_500),
            (None, 0, 2_000, false, u64::MAX),
            (None, 2_000, 100, true, u64::MAX),
            (Some(0), 0, 500, false, 500),
            (Some(0), 0, 1_000, false, u64::MAX),
            (Some(0), 1_000, 0, true, u64::MAX),
            (Some(1), 1_000, 0, false, 1_000),
        ] {
            let mut session = session(&class(closed(think_ns), 1, "get"), (0, 1), 1, budget, window);
            assert!(!session.is_exhausted());
            let issue = session.take();
            assert_eq!(session.is_exhausted(), in_flight_exhausted, "{budget:?} {think_ns} {done_ns}");
            session.record_outcome(issue.op.key, STORED);
            session.release(0, done_ns);
            assert_eq!((session.due_ns(), session.is_exhausted()), (due_ns, due_ns == u64::MAX));
        }
    }

    fn keys(ids: Range<u64>) -> PreloadSpec {
        PreloadSpec { ids, ttl_s: 0, window: None, gap_ns: None, deletes: false }
    }

    /// A preload with this many connections and slots on each.
    fn preload(ids: Range<u64>, (connections, depth): (u32, u32)) -> Session {
        Session::preload(3, 5, connections, depth, 0, keys(ids))
    }

    /// One of so many keys, a key per millisecond.
    fn paced(ids: u64) -> Session {
        Session::preload(0, 0, 4, 1, 0, PreloadSpec { gap_ns: Some(1e6), ..keys(0..ids) })
    }

    #[test]
    fn preload_retries_until_every_id_is_stored() {
        // Every third try fails; ids must all be confirmed once, in as many tries as that takes.
        let mut session = preload(10..40, (2, 3));
        assert_eq!(session.due_ns(), 0);
        let (mut confirmed, mut tries) = (Vec::new(), 0);
        while !session.is_exhausted() {
            let batch = taken(&mut session, u64::MAX);
            assert!(batch.len() <= 6);
            for issue in batch {
                let (op, ids) = (issue.op, session.ids(&issue.op).collect::<Vec<_>>());
                assert_eq!((op.kind, op.count, op.value), (OpKind::Set, 1, ValueRef::Version(0)));
                assert_eq!((op.class, op.session), (3, 5));
                tries += 1;
                let outcome = if tries % 3 == 0 { LOST } else { STORED };
                if outcome == STORED {
                    confirmed.extend(ids);
                }
                assert!(!session.is_exhausted(), "an op in flight may fail and be tried again");
                session.record_outcome(op.key, outcome);
                session.release(issue.connection.unwrap(), tries);
            }
        }
        confirmed.sort_unstable();
        assert_eq!(confirmed, (10..40).collect::<Vec<_>>());
        assert_eq!((session.confirmed(), session.failed(), tries), (30, false, 44));
    }

    #[test]
    fn preload_gives_up_after_its_retries() {
        // A server that stores the first five and then nothing: 5 + 1 + 1000 tries, and one for each other slot.
        for slots in [1, 4] {
            let mut session = preload(0..100, (slots, 1));
            let mut tries = 0;
            while !session.is_exhausted() {
                for issue in taken(&mut session, u64::MAX) {
                    tries += 1;
                    let outcome = if tries <= 5 {
                        STORED
                    } else {
                        Outcome::of_reply(OpKind::Set, ReplyKind::ServerError)
                    };
                    session.record_outcome(issue.op.key, outcome);
                    session.release(issue.connection.unwrap(), tries);
                }
            }
            assert_eq!((session.confirmed(), session.failed(), session.due_ns()), (5, true, u64::MAX));
            let least = 5 + 1 + PRELOAD_RETRIES_MAX;
            assert!((least..least + u64::from(slots)).contains(&tries), "{tries} tries with {slots} slots");
        }
    }

    /// A preload of 100 ids in four slots, whose stores all have this error from the sixth on: how many were sent until it gave up, and when;
    /// `None`: it went on for ten seconds.
    fn sent_in_vain(persistence: ErrorPersistence) -> (u32, Option<u64>) {
        let mut session = preload(0..100, (4, 1));
        let mut tries = 0;
        for now_ms in 0..10_000 {
            session.resume_preload(now_ms * 1_000_000);
            for issue in taken(&mut session, u64::MAX) {
                tries += 1;
                let outcome = if tries <= 5 {
                    STORED
                } else {
                    session.refuse_store(persistence, now_ms * 1_000_000);
                    Outcome::of_reply(OpKind::Set, ReplyKind::ServerError)
                };
                session.record_outcome(issue.op.key, outcome);
                session.release(issue.connection.unwrap(), now_ms * 1_000_000);
                assert!(session.failed() || !session.is_exhausted(), "{persistence:?} after {tries} tries");
            }
            if session.failed() {
                return (tries, Some(now_ms));
            }
        }
        (tries, None)
    }

    #[test]
    fn preload_sends_little_to_a_server_with_errors() {
        // Of the second four at once one is stored; from then on it is one key at a time, and the last of the four counts as the first.
        assert_eq!(sent_in_vain(ErrorPersistence::Permanent), (8, Some(1)));
        assert_eq!(sent_in_vain(ErrorPersistence::OutOfMemory), (12, Some(301)));
        assert_eq!(sent_in_vain(ErrorPersistence::Transient), (22, None));
    }

    #[test]
    fn preload_goes_on_after_a_transient_error() {
        let mut session = preload(0..10, (2, 1));
        let mut stored = 0;
        for now_ms in 0..100 {
            session.resume_preload(now_ms * 1_000_000);
            for issue in taken(&mut session, u64::MAX) {
                let is_loading = now_ms < 20;
                if is_loading {
                    session.refuse_store(ErrorPersistence::Transient, now_ms * 1_000_000);
                }
                let reply = if is_loading { ReplyKind::ServerError } else { ReplyKind::Stored };
                stored += u32::from(!is_loading);
                session.record_outcome(issue.op.key, Outcome::of_reply(OpKind::Set, reply));
                session.release(issue.connection.unwrap(), now_ms * 1_000_000);
            }
        }
        assert_eq!(
            (stored, session.confirmed(), session.is_exhausted(), session.failed()),
            (10, 10, true, false)
        );
    }

    #[test]
    fn a_preload_keeps_its_rate() {
        let mut session = paced(10);
        let mut sent = Vec::new();
        for now_ns in (0..12_000_000).step_by(500_000) {
            session.resume_preload(now_ns);
            assert!(!session.is_exhausted());
            while session.due_ns() <= now_ns {
                let issue = session.take();
                session.record_outcome(issue.op.key, STORED);
                session.release(issue.connection.unwrap(), now_ns);
                sent.push(now_ns / 1_000_000);
            }
            if session.is_exhausted() {
                break;
            }
        }
        assert_eq!(sent, (0..10).collect::<Vec<_>>());
        assert_eq!(session.confirmed(), 10);
    }

    /// What was not sent while the client or the server stood still is not caught up with, but for the last ten milliseconds.
    #[test]
    fn a_stalled_preload_sends_no_burst() {
        let mut session = paced(1_000);
        let mut sent_at = |now_ms: u64| {
            session.resume_preload(now_ms * 1_000_000);
            assert_eq!(session.awaits_pace(), session.due_ns() == u64::MAX);
            let mut sent = 0;
            while session.due_ns() != u64::MAX {
                let issue = session.take();
                session.record_outcome(issue.op.key, STORED);
                session.release(issue.connection.unwrap(), now_ms * 1_000_000);
                sent += 1;
            }
            assert!(session.awaits_pace());
            sent
        };
        let looks = [(0, 1), (1, 1), (4, 3), (504, 11), (505, 1), (505, 0), (507, 2)];
        assert_eq!(looks.map(|(now_ms, _)| sent_at(now_ms)), looks.map(|(_, sent)| sent));
    }

    #[test]
    fn deleted_and_absent_keys_are_confirmed() {
        let mut session = Session::preload(0, 0, 1, 1, 0, PreloadSpec { deletes: true, ..keys(0..2) });
        let replies = [
            LOST,
            Outcome { class: OutcomeClass::Done, reply: ReplyKind::Deleted },
            Outcome { class: OutcomeClass::Rejected, reply: ReplyKind::NotFound },
        ];
        for (reply, id) in replies.into_iter().zip([0, 0, 1]) {
            let issue = session.take();
            assert_eq!((issue.op.kind, issue.op.key), (OpKind::Delete, KeyRef::Id(id)));
            session.record_outcome(issue.op.key, reply);
            session.release(0, 5);
        }
        assert!(session.is_exhausted() && !session.failed());
        assert_eq!(session.confirmed(), 2);
    }

    #[test]
    fn empty_and_interrupted_preloads_are_over() {
        assert!(preload(7..7, (1, 1)).is_exhausted());
        let mut session = preload(0..10, (1, 1));
        let issue = session.take();
        session.end_at(50);
        assert!(session.is_exhausted());
        session.record_outcome(issue.op.key, STORED);
        session.release(0, 60);
        assert_eq!((session.is_exhausted(), session.confirmed(), session.failed()), (true, 1, false));
    }

    fn recorded_class(load: Load) -> Class {
        let trace = brunt_plan::plan::Trace {
            file: "t".to_owned(),
            layout: None,
            order: brunt_plan::plan::TraceOrder::Lines,
            replay: None,
        };
        Class { trace: Some(trace), ..class(load, 1, "get,gets,set,cas,incr") }
    }

    fn block(records: &[(OpKind, &[u8])], is_last: bool) -> Block {
        let mut block = Block::new(8);
        block.is_last = is_last;
        for (kind, key) in records {
            assert!(block.push(b"", &crate::trace::Record::of(*kind, key, 5)));
        }
        block
    }

    #[test]
    fn a_closed_loop_goes_through_a_trace_and_waits_for_its_blocks() {
        let mut session = session(&recorded_class(closed(0)), (0, 1), 2, None, FOR_EVER);
        assert!(session.needs_block() && session.due_ns() == u64::MAX);
        session.retry_at(30, 0);
        assert_eq!(session.due_ns(), 30, "to be asked again, for two slots are free");
        session
            .supply_block(block(&[(OpKind::Gets, b"a"), (OpKind::Cas, b"a"), (OpKind::Incr, b"b")], false));
        assert_eq!(session.due_ns(), 0, "due is due, however late its record comes");
        let gets = session.take().op;
        assert_eq!((gets.kind, gets.key, gets.value), (OpKind::Gets, KeyRef::Offset(0), ValueRef::None));
        session.record_unique(session.records().value(0).0, 77);
        let cas = session.take().op;
        assert_eq!((cas.kind, cas.operand, cas.value), (OpKind::Cas, 77, ValueRef::Offset(1)));
        assert_eq!((session.records().key(1), session.due_ns()), (&b"a"[..], u64::MAX));
        // A store follows the gets, and its record stays until that has ended.
        let store = session.fill_from_record(0).unwrap();
        assert_eq!((store.kind, store.key, store.value), (OpKind::Set, gets.key, ValueRef::Offset(0)));
        session.record_outcome(gets.key, STORED);
        session.release(0, 50);
        let incr = session.take();
        assert_eq!((incr.intended_ns, incr.op.key, incr.op.operand), (50, KeyRef::Offset(2), 1));
        assert!(session.needs_block() && !session.is_exhausted());
        session.retry_at(60, 0);
        assert_eq!(session.due_ns(), 60);
        session.record_outcome(incr.op.key, LOST);
        session.release(1, 55);
        assert_eq!(session.due_ns(), 60, "no release makes a record");
        assert_eq!(session.supply_block(block(&[], true)).len(), 3);
        assert_eq!(
            (session.due_ns(), session.needs_block(), session.is_exhausted()),
            (u64::MAX, false, true)
        );
    }

    #[test]
    fn an_open_loop_ends_with_its_trace_or_its_budget() {
        let records = [(OpKind::Get, &b"k"[..]); 5];
        for (budget, count) in [(None, 5), (Some(4), 4), (Some(2), 2)] {
            let mut session = session(&recorded_class(UNIFORM_1K), (0, 1), 1, budget, FOR_EVER);
            session.supply_block(block(&records, true));
            let issues = taken(&mut session, u64::MAX);
            let at: Vec<u64> = issues.iter().map(|issue| issue.intended_ns).collect();
            assert_eq!(at, [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000][..count], "{budget:?}");
            assert!(session.is_exhausted());
        }
    }

    #[test]
    fn ended_sessions_need_no_more_blocks() {
        let mut session = session(&recorded_class(UNIFORM_1K), (0, 1), 1, None, FOR_EVER);
        session.retry_at(5, 0);
        session.end_at(5);
        assert!(session.is_exhausted() && session.due_ns() == u64::MAX);
    }

    #[test]
    fn a_purge_comes_at_half_of_the_budget() {
        for (budget, before, behind) in [(20, 10, 10), (7, 4, 3), (1, 1, 0), (0, 0, 0)] {
            let class = Class { purge: Some(10), ..class(closed(0), 1, "get") };
            let mut session = session(&class, (1, 2), 1, Some(budget), FOR_EVER);
            let mut kinds = Vec::new();
            let mut deleted = Vec::new();
            while session.due_ns() != u64::MAX {
                let DueOp { op, .. } = session.take();
                kinds.push(op.kind);
                if op.kind == OpKind::Delete {
                    deleted.extend(session.ids(&op));
                }
                session.record_outcome(op.key, STORED);
                session.release(0, 5);
            }
            // The second half of 1 000 keys but for every tenth.
            let expected: Vec<u64> = (500..1_000).filter(|id| id % 10 != 0).collect();
            assert_eq!(deleted, expected, "{budget}");
            let runs: Vec<(bool, usize)> = kinds
                .chunk_by(|left, right| (*left == OpKind::Delete) == (*right == OpKind::Delete))
                .map(|run| (run[0] == OpKind::Delete, run.len()))
                .collect();
            let all = [(false, before), (true, 450), (false, behind)];
            assert_eq!(runs, all.into_iter().filter(|(_, len)| *len > 0).collect::<Vec<_>>(), "{budget}");
            assert!(session.is_exhausted() && session.has_spent_budget());
        }
    }
}
