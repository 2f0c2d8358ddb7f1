//! A session together with what the engine keeps for it: the routes to its servers, and operations that wait there.
//!
//! Not the schedule: that is inside the session and never changed from here. A lane has one route per server (one per server and
//! path, where kinds of operations have paths of their own); an
//! operation that is due and finds no connection with room waits on its route, in order, with the instant at which the
//! loop first looked at it, so that a server that is gone holds up nobody else's operations. Queues are bounded; when
//! one is full the rest simply stays in the schedule, late but not lost.

use crate::state::ids::{GroupId, NO_GROUP, NO_SHARED_SLOT, RedirectStateId, RouteId, SharedSlotId};
use crate::state::ready::Ready;
use crate::state::trace_feed::TraceFeed;
use brunt_plan::op::{Op, OpKind};
use brunt_plan::phase::Phase;
use brunt_stats::recorder::RowHandle;
use brunt_workload::keys::KeyGenerator;
use brunt_workload::placement::Router;
use brunt_workload::rng::{Draw, DrawRng};
use brunt_workload::session::Session;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// An operation that is due and has no bytes yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    /// What is asked; of a part of a multi-get that was split, with the number of keys of the part.
    pub op: Op,
    /// The phase of its intended time.
    pub phase: Phase,
    /// Where it is booked.
    pub account: RowHandle,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the loop first looked at it.
    pub picked_ns: u64,
    /// The connection it must go to (closed loop), or any of its route.
    pub connection: Option<u32>,
    /// Where it goes.
    pub route: RouteId,
    /// The multi-get that it is a part of, if any.
    pub group: GroupId,
    /// The slot that it shares with the operation it follows, if any.
    pub shared_slot: SharedSlotId,
    /// What it brings along where another node has sent it on.
    pub redirect_state: RedirectStateId,
}

/// Which of a lane's routes an operation takes.
#[derive(Clone, Debug)]
pub(crate) enum Routing {
    /// There is only one.
    Only,
    /// The one where its key lives.
    ByKey(Arc<Router>),
    /// To the node of a cluster that has the slot of its key; one of a node is as good as any where no key decides.
    BySlot,
    /// One after the other; the next one.
    InTurn(u32),
    /// Any.
    AtRandom(DrawRng),
    /// What its kind says; or whatever its kind is, to several at a time.
    ByKind(Box<KindRouting>),
}

/// Which routes of a lane operations of each kind take.
#[derive(Clone, Debug)]
pub(crate) struct KindRouting {
    /// Which of the branches; `kind as usize` is the index.
    pub of_kind: [u8; OpKind::COUNT],
    /// At least one.
    pub branches: Vec<Branch>,
    /// How many servers have each key, at least 1.
    pub replicas: u32,
    /// Which of them the next retrieval asks, counted from the one where the key lives; that one only where there is no other.
    pub turn: u32,
}

/// Routes of a lane among which some kinds of operations choose.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// As numbers within the worker.
    pub routes: Range<RouteId>,
    /// Which of them; not by kind again.
    pub routing: Routing,
}

impl KindRouting {
    /// That of operations of this kind.
    pub(crate) fn branch(&self, kind: OpKind) -> &Branch {
        &self.branches[usize::from(self.of_kind[kind as usize])]
    }

    /// Which of a key's servers a retrieval asks. A change is written first where the key lives: there it would be found whether or not it has
    /// reached the replicas.
    pub(crate) fn take_turn(&mut self) -> u32 {
        let turn = self.turn;
        self.turn = self.behind(turn, 1);
        turn
    }

    /// The turn so many behind this one, among those that are not the first.
    pub(crate) fn behind(&self, turn: u32, by: u32) -> u32 {
        match self.replicas - 1 {
            0 => 0,
            others => (turn - 1 + by) % others + 1,
        }
    }
}

/// Routes among which the key decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedRoutes<'a> {
    router: &'a Router,
    first: RouteId,
    count: u32,
}

impl KeyedRoutes<'_> {
    /// The first of the routes.
    pub(crate) fn first(&self) -> RouteId {
        self.first
    }

    /// How many they are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The route so many behind that where a key lives.
    #[inline]
    pub(crate) fn route(&self, key: &[u8], behind: u32) -> RouteId {
        let at = self.router.route(key) + behind;
        self.first + if at < self.count { at } else { at - self.count }
    }
}

impl Routing {
    /// The route, counted from the lane's first, of an operation that any server can serve.
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
    /// The lane it belongs to; the first of them where connections are shared.
    pub lane: u32,
    /// The other lanes whose operations take its connections.
    pub others: Vec<u32>,
    /// Its connections, as numbers within the worker.
    pub connections: Range<u32>,
    /// The same by how many operations each has outstanding; not kept where operations are bound to connections.
    pub ready: Ready,
    /// Due, in order.
    pub waiting: VecDeque<Picked>,
    /// Due, for a connection that cannot take them now.
    pub parked: Vec<Picked>,
    /// How many operations of the schedule may wait.
    waiting_max: usize,
    /// It stands on the worker's list of routes with waiting operations.
    pub backlogged: bool,
}

/// How much a route must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRoom {
    /// Operations in flight on one connection at most.
    pub depth: u32,
    /// Operations of the schedule that may wait.
    pub waiting_max: usize,
    /// Operations that may wait beside those, because they cannot stay in the schedule: follow-ups, and those that come back
    /// from a connection that is lost.
    pub extra: usize,
    /// Operations may be bound to a connection, and then have to be kept while it is gone.
    pub parks: bool,
}

impl Route {
    /// A route whose connections are not yet usable.
    pub(crate) fn new(lane: u32, connections: Range<u32>, room: RouteRoom) -> Self {
        let held = room.waiting_max + room.extra;
        let ready = match room.parks {
            true => Ready::unused(),
            false => Ready::new(connections.start, connections.len() as u32, room.depth),
        };
        Self {
            lane,
            others: Vec::new(),
            ready,
            connections,
            waiting: VecDeque::with_capacity(held),
            parked: Vec::with_capacity(if room.parks { held } else { 0 }),
            waiting_max: room.waiting_max,
            backlogged: false,
        }
    }

    /// Lets the operations of another lane take its connections, too. Those of none are bound to one.
    fn join(&mut self, lane: u32, room: RouteRoom) {
        self.others.push(lane);
        self.waiting.reserve_exact(self.waiting.capacity() + room.waiting_max + room.extra);
        self.waiting_max += room.waiting_max;
    }

    /// All lanes whose operations take its connections.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.lane).chain(self.others.iter().copied())
    }

    /// May no further operation of the schedule wait?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.waiting_max
    }

    /// Operations that are due and have not been sent.
    pub(crate) fn backlog(&self) -> usize {
        self.waiting.len() + self.parked.len()
    }
}

/// How values read are compared with those stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checking {
    /// The data set is ours, every value in it was stored by us.
    Ours,
    /// Others may have stored values: those that name themselves as ours are compared, the others counted.
    Named,
    /// They are not.
    Nothing,
}

/// A session and its place in the engine.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The virtual client.
    pub session: Session,
    /// Where its keys come from.
    pub keyspace: Arc<KeyGenerator>,
    /// Its operations belong to preload, whatever the clock says.
    pub is_preload: bool,
    /// Its routes, as numbers within the worker.
    pub routes: Range<RouteId>,
    /// Which of them an operation takes.
    pub routing: Routing,
    /// Operations of its closed loop stay on the connection whose slot they fill.
    pub binds_slots: bool,
    /// Slots of each of its connections, where it binds_slots.
    pub depth: u32,
    /// They are free only when the connection is born.
    pub begins_taken: bool,
    /// Missing keys are stored.
    pub fills_misses: bool,
    /// Slots of its closed loop that have become free are used again when nothing is out on their connection any more.
    pub refills_together: bool,
    /// Changes ask for no reply.
    pub noreply: bool,
    /// Values of its data set may have grown, so that only their heads are known.
    pub extends: bool,
    /// Its keys are checked in full: see [`crate::state::audit`].
    pub is_audited: bool,
    /// Its keys are those of a window, which knows what is to be checked of a reply.
    pub is_windowed: bool,
    /// Values that it writes consist of anything but a head and noise.
    pub has_laid_values: bool,
    /// Something depends on which keys a retrieval misses: what follows, or what is checked of the reply.
    pub tracks_misses: bool,
    /// How other values that it reads are compared with those stored.
    pub checking: Checking,
    /// How many of its routes are full.
    pub full_routes: u32,
    /// Where the records of its session come from, if they do.
    pub feed: Option<TraceFeed>,
}

impl Lane {
    /// When it wants to be looked at: when its next operation is due, unless so many wait that it must not take more.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        if self.full_routes > 0 { u64::MAX } else { self.session.due_ns() }
    }

    /// Lets the session have what it needs of its trace, or be asked again when there may be some.
    #[inline(always)]
    pub(crate) fn feed(&mut self, now_ns: u64) {
        if let Some(feed) = &mut self.feed {
            feed.serve(&mut self.session, now_ns);
        }
    }

    /// Slots of each of its connections when it begins: those that are free, and those that wait for a birth.
    pub(crate) fn slots(&self) -> (u32, u32) {
        match (self.binds_slots, self.begins_taken) {
            (false, _) => (0, 0),
            (true, false) => (self.depth, 0),
            (true, true) => (0, self.depth),
        }
    }

    /// Does an operation stand for itself: a get in one piece, of one key, that nothing can follow? What `Codec::FOUND` says of a reply is
    /// what it means to a get.
    #[inline]
    pub(crate) fn is_simple(&self, picked: &Picked) -> bool {
        picked.op.kind == OpKind::Get
            && picked.op.count == 1
            && picked.group == NO_GROUP
            && picked.shared_slot == NO_SHARED_SLOT
            && !self.tracks_misses
    }

    /// How many servers have each of its keys.
    pub(crate) fn replicas(&self) -> u32 {
        if let Routing::ByKind(kinds) = &self.routing { kinds.replicas } else { 1 }
    }

    /// May an operation go to several servers: because its keys live there, or each of them has its key?
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

    /// The routes of operations of this kind, where the key decides among them.
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

/// All that is exchanged when one phase's sessions make room for the next one's.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub lanes: Vec<Lane>,
    pub routes: Vec<Route>,
}

impl Lanes {
    /// Adds a lane's routes, one for each of these ranges of connections; or lets it take those that are there. Yields their numbers.
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

    /// Connects the lanes of classes that have a trace with it.
    pub(crate) fn connect_feeds(&mut self, feeds: &mut [Option<TraceFeed>]) {
        for lane in &mut self.lanes {
            lane.feed = feeds.get_mut(usize::from(lane.session.class())).and_then(Option::take);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}
