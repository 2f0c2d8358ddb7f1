//! One virtual client: what it sends next, when, and on which connection.
//!
//! Not a connection and not a clock: the engine asks when the next op is due, takes it, and gives back what became of
//! it. Every op has its intended time from the schedule alone, however late it is taken. Nothing is issued with an
//! intended time at or after the end of the window, and exactly `budget` ops with one at or after `measure_ns`.

use crate::arrivals::Arrivals;
use crate::mix::KindChooser;
use crate::popularity::{Ids, KeyChooser};
use crate::rng::{Draw, Purpose, Rng};
use crate::schedule::{Schedule, Slots};
use brunt_plan::op::{ClassId, Expectation, KeyRef, Op, OpKind, SessionId, ValueRef};
use brunt_plan::outcome::{Outcome, OutcomeClass};
use brunt_plan::plan::{Class, Load};
use brunt_plan::shard::StreamPart;
use std::ops::Range;
use std::sync::Arc;

/// How often a preload session tries again, over all of its keys, before it gives up: enough for a server that restarts
/// or is out of memory for a moment, an end for one that never takes the keys.
pub const PRELOAD_RETRIES_MAX: u64 = 1_000;

/// The times of a run on the engine's clock, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Time 0 of the schedule.
    pub start_ns: u64,
    /// From here on ops are measured, and count against the budget.
    pub measure_ns: u64,
    /// From here on there are none; `u64::MAX` where time is no bound.
    pub end_ns: u64,
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
    /// Its place among all sessions of the class in the whole run: decides its random numbers and its share of the rate.
    pub part: StreamPart,
    /// How many connections it has; closed-loop ops name one of `0..connections`.
    pub connections: u32,
    /// How many ops it issues with an intended time at or after `window.measure_ns`.
    pub budget: Option<u64>,
    /// The run's seed.
    pub seed: u64,
    /// Which keys; of the class's popularity and keyspace, shared by all its sessions.
    pub chooser: Arc<KeyChooser>,
    /// When.
    pub window: Window,
}

/// An op to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// When it should have been sent, in ns. Open loop: by the schedule. Closed loop: when its slot became free.
    pub intended_ns: u64,
    /// What to send.
    pub op: Op,
    /// The session's connection it belongs on, where the schedule binds it (closed loop).
    pub connection: Option<u32>,
}

/// One virtual client.
#[derive(Clone, Debug)]
pub struct Session {
    class: ClassId,
    session: SessionId,
    schedule: Schedule,
    source: Source,
    window: Window,
    /// Measured ops still to be issued; `u64::MAX`, which no run exhausts, where there is no budget.
    budget: u64,
    /// The answer to [`Session::due_ns`], kept up to date by whatever may change it.
    due_ns: u64,
    /// The latest time this session has been told of: no release can be earlier from here on.
    latest_ns: u64,
}

/// Where ops come from.
#[derive(Clone, Debug)]
enum Source {
    Drawn(Drawn),
    Preload(Preload),
}

/// Ops by the class's mix and popularity.
#[derive(Clone, Debug)]
struct Drawn {
    chooser: Arc<KeyChooser>,
    kinds: KindChooser,
    rng: Rng,
    multiget: u16,
}

/// A SET for every id of a range, each until it is done.
#[derive(Clone, Debug)]
struct Preload {
    ids: Range<u64>,
    /// Ids that failed and wait for another try; never more than there are slots.
    again: Vec<u64>,
    retries: u64,
    confirmed: u64,
    failed: bool,
}

impl Session {
    /// A client of a class.
    pub fn new(spec: SessionSpec<'_>) -> Self {
        let stream = |purpose| Rng::for_stream(spec.seed, purpose, spec.class_id, spec.part.index);
        let schedule = match spec.class.load {
            Load::Open { rate, arrival } => Schedule::Open {
                arrivals: Arrivals::new(arrival, rate, spec.part, stream(Purpose::Arrivals)),
                start_ns: spec.window.start_ns,
            },
            Load::Closed { think } => {
                let depth = spec.class.depth;
                Schedule::Closed(Slots::new(spec.connections, depth, think.0, spec.window.start_ns))
            }
        };
        let drawn = Drawn {
            chooser: spec.chooser,
            kinds: KindChooser::new(&spec.class.mix),
            rng: stream(Purpose::Ops),
            multiget: spec.class.multiget,
        };
        let budget = spec.budget.unwrap_or(u64::MAX);
        Self::from_parts(spec.class_id, spec.session_id, schedule, Source::Drawn(drawn), spec.window, budget)
    }

    /// A client that stores version 0 of every id of `ids`, in closed loop from `start_ns` on, each id until the server
    /// says done; with more than [`PRELOAD_RETRIES_MAX`] failures in all it gives up and [`Session::failed`] is true.
    pub fn preload(
        class_id: ClassId,
        session_id: SessionId,
        ids: Range<u64>,
        connections: u32,
        depth: u32,
        start_ns: u64,
    ) -> Self {
        let schedule = Schedule::Closed(Slots::new(connections, depth, 0, start_ns));
        let again = Vec::with_capacity(connections as usize * depth as usize);
        let source = Source::Preload(Preload { ids, again, retries: 0, confirmed: 0, failed: false });
        let window = Window { start_ns, measure_ns: u64::MAX, end_ns: u64::MAX };
        Self::from_parts(class_id, session_id, schedule, source, window, u64::MAX)
    }

    fn from_parts(
        class: ClassId,
        session: SessionId,
        schedule: Schedule,
        source: Source,
        window: Window,
        budget: u64,
    ) -> Self {
        let (due_ns, latest_ns) = (u64::MAX, window.start_ns);
        let mut session = Self { class, session, schedule, source, window, budget, due_ns, latest_ns };
        session.update_due();
        session
    }

    /// Does a clock decide when this session sends, and not its replies?
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.schedule, Schedule::Open { .. })
    }

    /// When the next op is due, in ns; `u64::MAX` where there is none until a release, or ever.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Takes the next op. There must be one: [`Session::due_ns`] is not `u64::MAX`.
    #[inline]
    pub fn take(&mut self) -> Issue {
        let intended_ns = self.due_ns;
        assert!(intended_ns != u64::MAX, "an op was taken where none is due");
        let connection = self.schedule.take();
        let (kind, key, count) = self.source.next();
        self.account(intended_ns);
        let value = if kind.carries_value() { ValueRef::Version(0) } else { ValueRef::None };
        let op = Op {
            kind,
            class: self.class,
            session: self.session,
            key,
            count,
            value,
            ttl_s: 0,
            operand: 0,
            expectation: Expectation::Any,
            template: 0,
        };
        Issue { intended_ns, op, connection }
    }

    /// Says that an op of this session ended, at `done_ns`, in whatever way: its slot becomes free. `connection` is the
    /// session's connection that it was on; in open loop nothing depends on it.
    #[inline]
    pub fn release(&mut self, connection: u32, op: &Op, outcome: Outcome, done_ns: u64) {
        if let Schedule::Closed(slots) = &mut self.schedule {
            slots.release(connection, done_ns);
            if let Source::Preload(preload) = &mut self.source {
                preload.book(op, outcome);
            }
            self.latest_ns = self.latest_ns.max(done_ns);
            self.update_due();
        }
    }

    /// Is this session over? True when no op is due, and none will be whatever becomes of the ops in flight (provided
    /// that none of them is released with a time before those already seen). Ops may still be in flight.
    pub fn is_exhausted(&self) -> bool {
        if self.due_ns != u64::MAX {
            return false;
        }
        match &self.schedule {
            Schedule::Open { .. } => true,
            Schedule::Closed(slots) => {
                let may_free = slots.in_flight() > 0 && self.admits(slots.due_after_ns(self.latest_ns));
                // An op in flight that fails is another try for a preload, until it has given up.
                let may_have_more = match &self.source {
                    Source::Drawn(_) => true,
                    Source::Preload(preload) => !preload.failed,
                };
                !(may_free && may_have_more)
            }
        }
    }

    /// Ends the session early: nothing is issued any more with an intended time at or after `now_ns`.
    pub fn end_at(&mut self, now_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(now_ns);
        self.latest_ns = self.latest_ns.max(now_ns);
        self.update_due();
    }

    /// Passes over the ops of an open loop that were due before `at_ns` and have not been taken, and counts them: they
    /// are the unsent ones. They count against the budget as if they had been taken. In closed loop there are none.
    pub fn count_due_before(&mut self, at_ns: u64) -> u64 {
        let mut count = 0;
        if matches!(self.schedule, Schedule::Open { .. }) {
            while self.due_ns < at_ns {
                self.schedule.take();
                self.account(self.due_ns);
                count += 1;
            }
        }
        count
    }

    /// The key ids of an op of this session, in the order of the request.
    #[inline]
    pub fn ids(&self, op: &Op) -> Ids<'_> {
        match &self.source {
            Source::Drawn(drawn) => drawn.chooser.ids(op),
            Source::Preload(_) => Ids::new(op, u64::MAX, None),
        }
    }

    /// How many keys a preload has seen stored; 0 for other sessions.
    pub fn confirmed(&self) -> u64 {
        match &self.source {
            Source::Drawn(_) => 0,
            Source::Preload(preload) => preload.confirmed,
        }
    }

    /// Has a preload given up?
    pub fn failed(&self) -> bool {
        matches!(&self.source, Source::Preload(preload) if preload.failed)
    }

    /// Books an op with this intended time as issued.
    #[inline]
    fn account(&mut self, intended_ns: u64) {
        if intended_ns >= self.window.measure_ns && self.budget != u64::MAX {
            self.budget -= 1;
        }
        self.latest_ns = self.latest_ns.max(intended_ns);
        self.update_due();
    }

    /// May an op with this intended time be issued?
    #[inline]
    fn admits(&self, intended_ns: u64) -> bool {
        intended_ns < self.window.end_ns && (intended_ns < self.window.measure_ns || self.budget > 0)
    }

    #[inline]
    fn update_due(&mut self) {
        let next_ns = if self.source.has_next() { self.schedule.peek_ns() } else { u64::MAX };
        self.due_ns = if self.admits(next_ns) { next_ns } else { u64::MAX };
    }
}

impl Source {
    #[inline]
    fn has_next(&self) -> bool {
        match self {
            Self::Drawn(_) => true,
            Self::Preload(preload) => {
                !preload.failed && (!preload.again.is_empty() || !preload.ids.is_empty())
            }
        }
    }

    #[inline]
    fn next(&mut self) -> (OpKind, KeyRef, u16) {
        match self {
            Self::Drawn(drawn) => drawn.next(),
            Self::Preload(preload) => (OpKind::Set, KeyRef::Id(preload.next()), 1),
        }
    }
}

impl Drawn {
    #[inline]
    fn next(&mut self) -> (OpKind, KeyRef, u16) {
        match self.kinds.choose(&mut self.rng) {
            OpKind::Mget => (OpKind::Mget, KeyRef::Drawn(self.rng.next_u64()), self.multiget),
            kind => (kind, KeyRef::Id(self.chooser.choose(&mut self.rng)), 1),
        }
    }
}

impl Preload {
    fn next(&mut self) -> u64 {
        self.again.pop().or_else(|| self.ids.next()).expect("taken only while has_next says so")
    }

    fn book(&mut self, op: &Op, outcome: Outcome) {
        let KeyRef::Id(id) = op.key else { panic!("{:?} is no op of a preload", op.key) };
        if outcome.class == OutcomeClass::Done {
            self.confirmed += 1;
        } else if self.retries == PRELOAD_RETRIES_MAX {
            self.failed = true;
        } else {
            self.retries += 1;
            self.again.push(id);
        }
    }
}
