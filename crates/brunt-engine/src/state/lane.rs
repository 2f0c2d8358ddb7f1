//! A session with its routes, and the operations that wait there.
//!
//! The session has the schedule. A lane has one route per server (and path, where kinds of operations have their
//! own). A due operation without a connection waits on its route, in order, with its picked time, so that a server
//! that is down delays no others. Queues are bounded; behind a full one operations stay in the schedule, and
//! wait for a connection there. Records of a trace come in blocks ([`crate::run::trace_reader`]); without a block the session
//! is asked again shortly, nothing waits, and the delay counts as the client's.

use crate::state::ready::Ready;
use crate::state::{GroupId, NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RedirectStateId, RouteId, SharedSlotId};
use brunt_plan::op::{Op, OpKind};
use brunt_plan::phase::Phase;
use brunt_stats::recorder::RowHandle;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::placement::Router;
use brunt_workload::rng::{Draw, DrawRng};
use brunt_workload::session::Session;
use brunt_workload::trace::Block;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A due operation that is not encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    /// The operation; of a part of a multi-get, with the number of its keys.
    pub op: Op,
    /// The phase of its intended time.
    pub phase: Phase,
    /// Its row in the counts.
    pub row: RowHandle,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the event loop picked it.
    pub picked_ns: u64,
    /// The connection that it is bound to (closed loop), or any of its route.
    pub connection: Option<u32>,
    /// Its route.
    pub route: RouteId,
    /// The operation that it is a part of, if any.
    pub group: GroupId,
    /// The slot that it shares with the operation before it, if any.
    pub shared_slot: SharedSlotId,
    /// Its redirect state, if a node redirected it.
    pub redirect_state: RedirectStateId,
}

impl Picked {
    /// A whole operation that any connection of a route may take.
    #[inline(always)]
    pub(crate) fn new(
        op: Op,
        phase: Phase,
        row: RowHandle,
        intended_ns: u64,
        picked_ns: u64,
        route: RouteId,
    ) -> Self {
        Self {
            op,
            phase,
            row,
            intended_ns,
            picked_ns,
            connection: None,
            route,
            group: NO_GROUP,
            shared_slot: NO_SHARED_SLOT,
            redirect_state: NO_REDIRECT,
        }
    }
}

/// How an operation chooses among a lane's routes.
#[derive(Clone, Debug)]
pub(crate) enum Routing {
    /// There is only one.
    Only,
    /// By key.
    ByKey(Arc<Router>),
    /// By hash slot, to its node in the cluster; any node if no key decides.
    BySlot,
    /// In turn; the next route.
    InTurn(u32),
    /// Any.
    AtRandom(DrawRng),
    /// By kind, or to several replicas.
    ByKind(Box<KindRouting>),
}

/// The routes of each kind of operation.
#[derive(Clone, Debug)]
pub(crate) struct KindRouting {
    /// Index of the branch, by `kind as usize`.
    pub of_kind: [u8; OpKind::COUNT],
    /// At least one.
    pub branches: Vec<Branch>,
    /// Servers that hold each key, at least 1.
    pub replicas: u32,
    /// The next replica for a retrieval, counted from the home of the key; the home only if there is no other.
    pub turn: u32,
}

/// Routes of some kinds of operations.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// Numbered within the worker.
    pub routes: Range<RouteId>,
    /// How they choose; never by kind again.
    pub routing: Routing,
}

impl KindRouting {
    /// The branch of this kind.
    pub(crate) fn branch(&self, kind: OpKind) -> &Branch {
        &self.branches[usize::from(self.of_kind[kind as usize])]
    }

    /// The replica for the next retrieval. Writes go to the home of the key first, so reading there would not show
    /// whether replicas have them.
    pub(crate) fn take_turn(&mut self) -> u32 {
        let turn = self.turn;
        self.turn = self.behind(turn, 1);
        turn
    }

    /// The replica `by` steps after this one, among those that are not the home.
    pub(crate) fn behind(&self, turn: u32, by: u32) -> u32 {
        match self.replicas - 1 {
            0 => 0,
            others => (turn - 1 + by) % others + 1,
        }
    }
}

/// Routes chosen by key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedRoutes<'a> {
    router: &'a Router,
    /// The first of the routes, and their number.
    pub first: RouteId,
    pub count: u32,
}

impl KeyedRoutes<'_> {
    /// The route `behind` steps after the home of a key.
    #[inline]
    pub(crate) fn route(&self, key: &[u8], behind: u32) -> RouteId {
        let at = self.router.route(key) + behind;
        self.first + if at < self.count { at } else { at - self.count }
    }
}

impl Routing {
    /// The route of an operation that any server can serve, counted from the lane's first.
    pub(crate) fn any(&mut self, routes: u32) -> u32 {
        match self {
            Self::Only => 0,
            Self::ByKey(_) | Self::BySlot | Self::ByKind(_) => {
                unreachable!("the key or the kind decides, and the caller has it")
            }
            Self::InTurn(next) => {
                let route = *next;
                *next = (route + 1) % routes;
                route
            }
            Self::AtRandom(rng) => rng.below(u64::from(routes)) as u32,
        }
    }
}

/// The connections of a lane to one server, and what waits for them.
#[derive(Debug)]
pub(crate) struct Route {
    /// Its lane; the first one if connections are shared.
    pub lane: u32,
    /// Other lanes that share its connections.
    pub others: Vec<u32>,
    /// Its connections, numbered within the worker.
    pub connections: Range<u32>,
    /// Its connections by operations in flight; unused where operations are bound to connections.
    pub ready: Ready,
    /// Due operations, in order.
    pub waiting: VecDeque<Picked>,
    /// Due operations bound to a connection that takes none now.
    pub parked: Vec<Picked>,
    /// Limit of waiting operations of the schedule.
    waiting_max: usize,
    /// It is on the worker's list of routes with waiting operations.
    pub backlogged: bool,
}

/// Capacities of a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRoom {
    /// Maximum operations in flight on a connection.
    pub depth: u32,
    /// Maximum waiting operations of the schedule.
    pub waiting_max: usize,
    /// Maximum other waiting operations: fills, and those that return from a lost connection.
    pub extra: usize,
    /// Operations are bound to connections, and are kept while theirs is down.
    pub parks: bool,
}

impl Route {
    /// A route whose connections are not yet usable.
    pub(crate) fn new(lane: u32, connections: Range<u32>, room: RouteRoom) -> Self {
        let capacity = room.waiting_max + room.extra;
        let ready = match room.parks {
            true => Ready::unused(),
            false => Ready::new(connections.start, connections.len() as u32, room.depth),
        };
        Self {
            lane,
            others: Vec::new(),
            ready,
            connections,
            waiting: VecDeque::with_capacity(capacity),
            parked: Vec::with_capacity(if room.parks { capacity } else { 0 }),
            waiting_max: room.waiting_max,
            backlogged: false,
        }
    }

    /// Shares its connections with another lane whose operations are bound to none.
    fn join(&mut self, lane: u32, room: RouteRoom) {
        self.others.push(lane);
        self.waiting.reserve_exact(self.waiting.capacity() + room.waiting_max + room.extra);
        self.waiting_max += room.waiting_max;
    }

    /// All lanes that share its connections.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.lane).chain(self.others.iter().copied())
    }

    /// Is the queue full for the schedule?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.waiting_max
    }

    /// Due operations that were not sent.
    pub(crate) fn backlog(&self) -> usize {
        self.waiting.len() + self.parked.len()
    }
}

/// How values are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checking {
    /// The run stored every value of the data set.
    Ours,
    /// Foreign values are possible: values that name themselves as brunt's are verified, others counted.
    Named,
    /// Not at all.
    Nothing,
}

/// A session in the engine.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The virtual client.
    pub session: Session,
    /// Where its keys come from.
    pub keyspace: Arc<KeyGenerator>,
    /// Its operations belong to the preload.
    pub is_preload: bool,
    /// Its routes, numbered within the worker.
    pub routes: Range<RouteId>,
    /// How operations choose among them.
    pub routing: Routing,
    /// Operations of its closed loop are bound to the connection of their slot.
    pub binds_slots: bool,
    /// Its first connection; if slots are bound, it has one route, and the session counts connections from this one.
    pub first_connection: u32,
    /// Slots per connection, if slots are bound.
    pub depth: u32,
    /// Slots are free only once their connection opens.
    pub begins_taken: bool,
    /// Missed keys are filled.
    pub fills_misses: bool,
    /// Freed slots of its closed loop are reused when nothing is in flight on their connection.
    pub refills_together: bool,
    /// Writes request no reply.
    pub noreply: bool,
    /// Values of its data set may have been extended: only their heads are known.
    pub extends: bool,
    /// Its keys are audited: see [`crate::state::audit`].
    pub is_audited: bool,
    /// Its keys are those of a window, which knows what to check.
    pub is_windowed: bool,
    /// Its values have a layout other than a head and noise.
    pub has_laid_values: bool,
    /// Misses matter: for fills, or for checks.
    pub tracks_misses: bool,
    /// How other values that it reads are verified.
    pub checking: Checking,
    /// Number of full routes.
    pub full_routes: u32,
    /// When a full queue began to keep its operations in the schedule, and when it last did: those due by then.
    pub kept_ns: (u64, u64),
    /// The trace of its session, if any.
    pub feed: Option<TraceFeed>,
}

impl Lane {
    /// When its next operation is due; never while a route is full.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        if self.full_routes > 0 { u64::MAX } else { self.session.due_ns() }
    }

    /// Was its next operation kept in the schedule by a full queue, which has room now?
    pub(crate) fn is_kept_in_schedule(&self) -> bool {
        self.full_routes == 0 && self.session.due_ns() <= self.kept_ns.1
    }

    /// Passes trace records to the session, or schedules the next try.
    #[inline(always)]
    pub(crate) fn feed(&mut self, now_ns: u64) {
        if let Some(feed) = &mut self.feed {
            feed.serve(&mut self.session, now_ns);
        }
    }

    /// The place of a connection in its session.
    #[inline]
    pub(crate) fn place_of(&self, connection: u32) -> u32 {
        if self.binds_slots { connection - self.first_connection } else { 0 }
    }

    /// Slots of each connection at the start: free ones, and those that wait for it to open.
    pub(crate) fn slots(&self) -> (u32, u32) {
        match (self.binds_slots, self.begins_taken) {
            (false, _) => (0, 0),
            (true, false) => (self.depth, 0),
            (true, true) => (0, self.depth),
        }
    }

    /// Is this a simple get: one key, one piece, no fill or check after a miss? What `Codec::FOUND` says of a reply
    /// holds for a get.
    #[inline]
    pub(crate) fn is_simple(&self, picked: &Picked) -> bool {
        picked.op.kind == OpKind::Get
            && picked.op.count == 1
            && picked.group == NO_GROUP
            && picked.shared_slot == NO_SHARED_SLOT
            && !self.tracks_misses
    }

    /// Servers that hold each key.
    pub(crate) fn replicas(&self) -> u32 {
        if let Routing::ByKind(kinds) = &self.routing { kinds.replicas } else { 1 }
    }

    /// May an operation go to several servers: by its keys, or to replicas?
    #[inline]
    pub(crate) fn splits(&self, op: &Op) -> bool {
        match &self.routing {
            Routing::ByKey(_) | Routing::BySlot => op.kind == OpKind::Mget,
            Routing::ByKind(kinds) => {
                let changes = !op.kind.is_retrieval() && kinds.replicas > 1;
                changes || op.kind == OpKind::Mget && self.spread(op.kind).is_some()
            }
            Routing::Only | Routing::InTurn(_) | Routing::AtRandom(_) => false,
        }
    }

    /// The routes of this kind, if the key decides.
    #[inline]
    pub(crate) fn spread(&self, kind: OpKind) -> Option<KeyedRoutes<'_>> {
        let (routes, routing) = match &self.routing {
            Routing::ByKind(kinds) => {
                let branch = kinds.branch(kind);
                (&branch.routes, &branch.routing)
            }
            routing => (&self.routes, routing),
        };
        match routing {
            Routing::ByKey(router) => {
                Some(KeyedRoutes { router, first: routes.start, count: routes.len() as u32 })
            }
            _ => None,
        }
    }
}

/// The lanes and routes of one phase.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub lanes: Vec<Lane>,
    pub routes: Vec<Route>,
}

impl Lanes {
    /// Adds a lane's routes, one per range of connections, or shares existing ones. Returns their numbers.
    pub(crate) fn add_routes(&mut self, lane: u32, ranges: &[Range<u32>], room: RouteRoom) -> Range<RouteId> {
        let is_first = |route: &Route| ranges.first() == Some(&route.connections);
        let start = self.routes.iter().position(is_first).unwrap_or(self.routes.len());
        let count = ranges.len();
        if start < self.routes.len() {
            self.routes[start..start + count].iter_mut().for_each(|route| route.join(lane, room));
        } else {
            self.routes.extend(ranges.iter().map(|range| Route::new(lane, range.clone(), room)));
        }
        start as RouteId..(start + count) as RouteId
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

/// Pause until a session without records tries again: a block holds a millisecond of records at the highest rates,
/// and a try costs a hundred nanoseconds.
const LOOK_AGAIN_NS: u64 = 50_000;

/// A worker's end of its trace.
#[derive(Debug)]
pub(crate) struct TraceFeed {
    pub full: rtrb::Consumer<Block>,
    pub spent: rtrb::Producer<Block>,
    /// No more records are wanted: the reader must not wait for this worker.
    pub is_sated: Arc<AtomicBool>,
}

/// The feeds of a worker, one per class with a trace.
pub(crate) type Feeds = Vec<Option<TraceFeed>>;

impl TraceFeed {
    /// Gives a block to a session that needs one. Not inlined, because most sessions have no trace.
    #[inline(never)]
    pub(crate) fn serve(&mut self, session: &mut Session, now_ns: u64) {
        if session.has_spent_budget() {
            self.is_sated.store(true, Ordering::Relaxed);
            return;
        }
        while session.needs_block() {
            let Ok(block) = self.full.pop() else {
                session.retry_at(now_ns + LOOK_AGAIN_NS);
                return;
            };
            // The ring has room for all blocks.
            let _ = self.spent.push(session.supply_block(block));
        }
    }
}
