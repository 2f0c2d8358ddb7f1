//! A session with its routes, and the operations that wait there.
//!
//! The session has the schedule. A lane has one route per server (and path, where kinds of operations have their
//! own). A due operation without a connection waits on its route, in order, with its picked time, so that a server
//! that is down delays no others. Queues are bounded; behind a full one operations stay in the schedule, and
//! wait for a connection there. The connections of a route are in one ring per number of operations in flight, so that the one with
//! the fewest is found in O(1); exactly the usable ones with room are in a ring, or none where rings are unused. Records of a trace
//! come in blocks ([`crate::run::trace_reader`]); without a block the session
//! is asked again shortly, nothing waits, and the delay counts as the client's.

use crate::state::{GroupId, NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT, RedirectStateId, RouteId, SharedSlotId};
use brunt_plan::op::{Op, OpKind};
use brunt_plan::phase::Phase;
use brunt_stats::recorder::RowHandle;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::miss_delays::MissDelays;
use brunt_workload::placement::Router;
use brunt_workload::rng::{Draw, DrawRng};
use brunt_workload::session::Session;
use brunt_workload::trace::Block;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    /// Maximum fills of a lane that wait for a database.
    pub fills_max: usize,
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
    /// Fills that wait for the database, and how many may.
    pub waiting_fills: u32,
    pub waiting_fills_max: u32,
    /// Freed slots of its closed loop are reused when nothing is in flight on their connection.
    pub refills_together: bool,
    /// Writes request no reply.
    pub noreply: bool,
    /// Values of its data set may have been extended: only their heads are known.
    pub extends: bool,
    /// Its keys are audited: see [`crate::traffic::verifying`].
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

    /// Was its next operation kept in the schedule by a full queue, which has room now? Unknown without a block of records.
    pub(crate) fn is_kept_in_schedule(&self) -> bool {
        let is_known = !self.session.needs_block();
        self.full_routes == 0 && is_known && self.session.due_ns() <= self.kept_ns.1
    }

    /// Passes trace records to the session, or schedules the next try.
    #[inline(always)]
    pub(crate) fn feed(&mut self, now_ns: u64) {
        if let Some(feed) = &mut self.feed {
            feed.serve(&mut self.session, now_ns);
        }
    }

    /// Passes trace records to the session at the end of a run. Returns whether one that was due by then may still come.
    pub(crate) fn lacks_records(&mut self, end_ns: u64) -> bool {
        let Some(feed) = self.feed.as_mut().filter(|_| self.session.has_timed_records()) else {
            return false;
        };
        if self.session.needs_block() {
            let has_all = feed.has_all_before(&self.session, end_ns);
            feed.serve(&mut self.session, end_ns);
            if self.session.needs_block() {
                return !has_all;
            }
        }
        // It takes no more, so that the reader does not wait for it.
        feed.progress.is_sated.fetch_or(self.session.due_ns() >= end_ns, Ordering::Relaxed);
        false
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
    /// How long the database of each class takes after misses; empty where none is asked.
    pub miss_delays: Vec<Option<MissDelays>>,
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
    pub progress: Arc<FeedProgress>,
}

/// How far both ends of a feed are.
#[derive(Debug, Default)]
pub(crate) struct FeedProgress {
    /// No more records are wanted: the reader must not wait for this session.
    pub is_sated: AtomicBool,
    /// Every record that is due before this, from the start of the schedule, is in the blocks.
    pub reached_ns: AtomicU64,
}

/// The feeds of a worker: by class, those of its sessions in their order.
pub(crate) type Feeds = Vec<std::vec::IntoIter<TraceFeed>>;

impl TraceFeed {
    /// Is all in the blocks that is due before then, or all that will ever be?
    fn has_all_before(&self, session: &Session, end_ns: u64) -> bool {
        let reached_ns = self.progress.reached_ns.load(Ordering::Acquire);
        self.full.is_abandoned() || session.start_ns().saturating_add(reached_ns) >= end_ns
    }

    /// Gives a block to a session that needs one. Not inlined, because most sessions have no trace.
    #[inline(never)]
    pub(crate) fn serve(&mut self, session: &mut Session, now_ns: u64) {
        if session.has_spent_budget() {
            self.progress.is_sated.store(true, Ordering::Relaxed);
            return;
        }
        while session.needs_block() {
            // Read before the look: what is due earlier is in the blocks by then.
            let reached_ns = self.progress.reached_ns.load(Ordering::Acquire);
            let Ok(block) = self.full.pop() else {
                session.retry_at(now_ns + LOOK_AGAIN_NS, reached_ns);
                return;
            };
            // More than the ring has room for are freed.
            let _ = self.spent.push(session.supply_block(block));
        }
    }
}

/// No connection.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Place {
    previous: u32,
    next: u32,
    /// Its ring, or [`NONE`].
    ring: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ring {
    first: u32,
    last: u32,
}

/// The connections of one route by operations in flight.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Number of the first connection; places are relative to it.
    base: u32,
    places: Vec<Place>,
    /// One per number of operations in flight below the depth.
    rings: Vec<Ring>,
    /// No ring below this one has a connection.
    lowest: usize,
}

impl Ready {
    /// For connections `base..base + connections`, none of them usable yet.
    pub(crate) fn new(base: u32, connections: u32, depth: u32) -> Self {
        Self {
            base,
            places: vec![Place { previous: NONE, next: NONE, ring: NONE }; connections as usize],
            rings: vec![Ring { first: NONE, last: NONE }; depth as usize],
            lowest: depth as usize,
        }
    }

    /// For routes whose connections are not chosen here; keeps nothing.
    pub(crate) fn unused() -> Self {
        Self::new(0, 0, 0)
    }

    /// Notes the operations in flight of a usable connection.
    #[inline]
    pub(crate) fn set(&mut self, connection: u32, outstanding: u32) {
        self.remove(connection);
        let ring_index = outstanding as usize;
        if ring_index >= self.rings.len() {
            return;
        }
        let place_index = connection - self.base;
        let ring = &mut self.rings[ring_index];
        let last = std::mem::replace(&mut ring.last, place_index);
        if last == NONE {
            ring.first = place_index;
        } else {
            self.places[last as usize].next = place_index;
        }
        self.places[place_index as usize] = Place { previous: last, next: NONE, ring: outstanding };
        self.lowest = self.lowest.min(ring_index);
    }

    /// Notes that a connection cannot take operations.
    #[inline]
    pub(crate) fn remove(&mut self, connection: u32) {
        let Some(place) = self.places.get_mut((connection - self.base) as usize) else { return };
        let place = std::mem::replace(place, Place { previous: NONE, next: NONE, ring: NONE });
        if place.ring == NONE {
            return;
        }
        let ring = &mut self.rings[place.ring as usize];
        if place.previous == NONE {
            ring.first = place.next;
        } else {
            self.places[place.previous as usize].next = place.next;
        }
        if place.next == NONE {
            ring.last = place.previous;
        } else {
            self.places[place.next as usize].previous = place.previous;
        }
    }

    /// The connection with the fewest operations in flight, if one has room.
    #[inline]
    pub(crate) fn least(&mut self) -> Option<u32> {
        while let Some(ring) = self.rings.get(self.lowest) {
            if ring.first != NONE {
                return Some(self.base + ring.first);
            }
            self.lowest += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference: a linear search.
    #[test]
    fn rings_match_linear_search() {
        let (base, connections, depth) = (7, 13u32, 4u32);
        let mut ready = Ready::new(base, connections, depth);
        let mut outstanding = vec![None::<u32>; connections as usize];
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let connection = (state >> 33) as u32 % connections;
            let count = (state >> 50) as u32 % (depth + 2);
            if count > depth {
                ready.remove(base + connection);
                outstanding[connection as usize] = None;
            } else {
                ready.set(base + connection, count);
                outstanding[connection as usize] = Some(count);
            }
            let least = outstanding.iter().flatten().filter(|count| **count < depth).min();
            let found = ready.least().map(|connection| outstanding[(connection - base) as usize].unwrap());
            assert_eq!(found.as_ref(), least);
        }
    }

    #[test]
    fn unused_rings_yield_no_connection() {
        let mut ready = Ready::unused();
        ready.set(3, 0);
        ready.remove(3);
        assert_eq!(ready.least(), None);
    }

    #[test]
    fn equals_take_turns() {
        let mut ready = Ready::new(0, 3, 8);
        for connection in 0..3 {
            ready.set(connection, 0);
        }
        let mut order = Vec::new();
        let mut outstanding = [0; 3];
        for _ in 0..6 {
            let connection = ready.least().unwrap();
            order.push(connection);
            outstanding[connection as usize] += 1;
            ready.set(connection, outstanding[connection as usize]);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }
}
