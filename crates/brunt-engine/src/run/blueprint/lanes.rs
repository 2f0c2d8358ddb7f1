//! The lanes of a worker: sessions of the preload and of the schedule, with their routes.
//!
//! Invariant: the connections of a worker's class are divided among its sessions without rest.

use super::{Blueprint, ClassConnections, DataSet, WAITING_MAX, WAITING_MIN, WorkerPart, keys_max};
use crate::state::lane::{Branch, Checking, KindRouting, Lane, Lanes, RouteRoom, Routing};
use crate::worker::unloaded::{REQUESTS, THINK_NS};
use brunt_plan::mix::Mix;
use brunt_plan::op::{ClassId, OpKind};
use brunt_plan::plan::{Class, Load, OnMiss, Placement, Refill, SessionScope};
use brunt_plan::popularity::Popularity;
use brunt_plan::shard::{ClassShard, Portion, StreamPart, share, share_of};
use brunt_plan::units::DurationNs;
use brunt_workload::miss_delays::MissDelays;
use brunt_workload::placement::Router;
use brunt_workload::popularity::Cursor;
use brunt_workload::rng::{DrawRng, Purpose, Rng};
use brunt_workload::session::{Choices, PhaseTimes, PreloadSpec, Session, SessionSpec};
use std::ops::Range;
use std::sync::Arc;

/// A worker's connections to the servers of a path, and how operations choose among them.
struct RoutedSpan {
    ranges: Vec<Range<u32>>,
    routing: Routing,
}

/// What a session has of a class on a worker.
struct SessionPart {
    /// Its connections, by path and server.
    paths: ClassConnections,
    part: StreamPart,
    portion: Portion,
    budget: Option<u64>,
    cursor: Cursor,
}

/// What all sessions of a phase have in common.
struct SessionPhase {
    window: PhaseTimes,
    /// Routes of all lanes of the worker.
    routes: usize,
    /// Requests are asked one at a time, before the schedule.
    is_unloaded: bool,
}

impl Blueprint {
    /// Lanes of the preload: one per data set, or per data set and server if every server holds all keys.
    pub(super) fn preload_lanes(&self, worker: &WorkerPart, depth: u32) -> Lanes {
        let mut lanes = Lanes::default();
        if !self.is_to_store {
            return lanes;
        }
        let preload_ns = self.plan.preload_ns();
        for (set, ids) in self.data_sets.iter().zip(&worker.shard.preload) {
            let Some(of_path) = worker.connections[set.class].get(set.path) else { continue };
            let router = &self.routers[set.class][set.path];
            let spans: Vec<&[Range<u32>]> = match router.is_some() || self.slot_map.is_some() {
                true => vec![of_path.as_slice()],
                // By thread, only one has connections.
                false => of_path.chunks(1).filter(|span| !span[0].is_empty()).collect(),
            };
            let class = &self.plan.classes[set.class];
            let replicas = class.replicas;
            let spec = PreloadSpec {
                ids: ids.clone(),
                ttl_s: set.ttl_s,
                window: class.popularity.window().copied(),
                // Each has its share of the rate by its share of the keys, so that all end at the same time.
                gap_ns: preload_ns.map(|whole_ns| whole_ns / (ids.end - ids.start) as f64),
                deletes: self.is_to_delete,
            };
            for span in spans {
                let count = span.iter().map(|range| range.len() as u32).sum::<u32>() / replicas;
                let lane = lanes.lanes.len() as u32;
                let session = Session::preload(set.class as u16, lane, count, depth, 0, spec.clone());
                let slots = count as usize * depth as usize;
                let room = RouteRoom { depth, fills_max: 0, waiting_max: slots, extra: slots, parks: false };
                let routing = match router {
                    Some(router) if span.len() > 1 => Routing::ByKey(router.clone()),
                    _ => Routing::Only,
                };
                let lane = self.lane(session, set, true);
                self.add_lane(
                    &mut lanes,
                    lane,
                    &[RoutedSpan { ranges: span.to_vec(), routing }],
                    replicas,
                    None,
                    room,
                );
            }
        }
        lanes
    }

    /// A lane without routes.
    fn lane(&self, session: Session, set: &DataSet, is_preload: bool) -> Lane {
        Lane {
            session,
            keyspace: set.keys.clone(),
            is_preload,
            routes: 0..0,
            routing: Routing::Only,
            binds_slots: false,
            first_connection: 0,
            depth: 0,
            begins_taken: false,
            fills_misses: false,
            waiting_fills: 0,
            waiting_fills_max: 0,
            noreply: false,
            refills_together: false,
            extends: set.extends,
            is_audited: false,
            is_windowed: self.plan.classes[set.class].popularity.window().is_some(),
            has_laid_values: set.keys.has_laid_values(),
            tracks_misses: false,
            checking: match self.plan.preload {
                // Such values name no key, and counters change.
                _ if set.keys.has_zeros() => Checking::Nothing,
                true => Checking::Ours,
                false => Checking::Named,
            },
            full_routes: 0,
            kept_ns: (0, 0),
            feed: None,
        }
    }

    /// Adds a lane with a route per server of these paths. `of_class`: paths that kinds of operations have of their
    /// own.
    fn add_lane(
        &self,
        lanes: &mut Lanes,
        mut lane: Lane,
        paths: &[RoutedSpan],
        replicas: u32,
        of_class: Option<&Class>,
        room: RouteRoom,
    ) {
        let index = lanes.lanes.len() as u32;
        let mut branches = Vec::new();
        for path in paths {
            let routes = lanes.add_routes(index, &path.ranges, room);
            branches.push(Branch { routes, routing: path.routing.clone() });
        }
        let of_branch = |branch: &Branch| branch.routes.clone();
        let (first, last) = (branches.first().map(of_branch), branches.last().map(of_branch));
        lane.routes = first.map_or(0, |routes| routes.start)..last.map_or(0, |routes| routes.end);
        lane.first_connection = paths[0].ranges.first().map_or(0, |range| range.start);
        let of_kind = |kind| of_class.map_or(0, |class| class.path_index(kind)) as u8;
        lane.routing = match branches.pop() {
            _ if self.slot_map.is_some() => Routing::BySlot,
            Some(only) if branches.is_empty() && replicas == 1 => only.routing,
            last => {
                branches.extend(last);
                Routing::ByKind(Box::new(KindRouting {
                    of_kind: OpKind::ALL.map(of_kind),
                    branches,
                    replicas,
                    turn: u32::from(replicas > 1),
                }))
            }
        };
        lanes.lanes.push(lane);
    }

    /// Lanes of the schedule: a session per worker and class, per connection or per client.
    pub(super) fn schedule_lanes(&self, worker: &WorkerPart, window: PhaseTimes) -> Lanes {
        let mut lanes = Lanes::default();
        let phase = SessionPhase { window, routes: worker.routes, is_unloaded: false };
        for (index, connections) in worker.classes() {
            let (class, shard) = (&self.plan.classes[index], &worker.shard.classes[index]);
            // All sessions of the class share one walk through the keys.
            let walk = Cursor::new(shard.part);
            let is_walk = class.popularity == Popularity::Sequential;
            for part in self.parts(class, shard, connections.clone()) {
                let cursor = if is_walk { walk.clone() } else { part.cursor };
                self.add_session(&mut lanes, (index, class), SessionPart { cursor, ..part }, &phase);
            }
        }
        if self.plan.classes.iter().any(|class| class.miss_delay.is_some()) {
            let delays = |(id, class): (ClassId, &Class)| {
                let law = class.miss_delay.as_ref()?;
                Some(MissDelays::new(law, self.plan.seed, id, worker.shard.part.index))
            };
            lanes.miss_delays = (0..).zip(&self.plan.classes).map(delays).collect();
        }
        lanes
    }

    /// Lanes that ask requests one at a time before the schedule: reads of the first class that needs no more than that, or sets where it
    /// reads nothing. The other classes have lanes that send nothing, so that every connection has its route.
    pub(super) fn unloaded_lanes(&self, worker: &WorkerPart, start_ns: u64) -> Lanes {
        let mut lanes = Lanes::default();
        let window = PhaseTimes { start_ns, measure_ns: start_ns, end_ns: u64::MAX };
        let phase = SessionPhase { window, routes: worker.routes, is_unloaded: true };
        let chosen = self.unloaded_class(worker);
        for (index, connections) in worker.classes() {
            let is_chosen = chosen.as_ref().is_some_and(|(class, _)| *class == index);
            let mix = chosen.as_ref().filter(|_| is_chosen).map_or_else(Mix::usual, |(_, mix)| mix.clone());
            let part = worker.shard.classes[index].part;
            let class = Class {
                load: Load::Closed { think: DurationNs(THINK_NS) },
                depth: 1,
                sessions: SessionScope::Worker,
                on_miss: OnMiss::Ignore,
                miss_delay: None,
                purge: None,
                trace: None,
                mix,
                ..self.plan.classes[index].clone()
            };
            let part = SessionPart {
                paths: connections.clone(),
                part,
                portion: Portion::even(part),
                budget: Some(if is_chosen { REQUESTS } else { 0 }),
                cursor: Cursor::new(part),
            };
            self.add_session(&mut lanes, (index, &class), part, &phase);
        }
        lanes
    }

    /// The class whose requests are asked one at a time, and which of them; `None` where this worker is not to.
    pub(super) fn unloaded_class(&self, worker: &WorkerPart) -> Option<(usize, Mix)> {
        let is_asked = self.plan.measures_unloaded && worker.shard.part.index == 0;
        let is_plain = |class: &Class| {
            class.trace.is_none()
                && class.popularity.window().is_none()
                && !class.lifetime.is_planned()
                && !class.counts_attempts()
                && !class.noreply
        };
        let of_kinds = |class: &Class, kinds: &[OpKind]| {
            let weights: Vec<_> =
                class.mix.weights.iter().filter(|(kind, _)| kinds.contains(kind)).copied().collect();
            (!weights.is_empty()).then_some(Mix { weights, commands: Vec::new() })
        };
        let classes = worker.classes().map(|(index, _)| (index, &self.plan.classes[index]));
        let mut classes = classes.filter(|(_, class)| is_asked && is_plain(class));
        classes.find_map(|(index, class)| {
            let reads = of_kinds(class, &[OpKind::Get, OpKind::Mget]);
            let sets = || of_kinds(class, &[OpKind::Set]).filter(|_| self.plan.verify.is_none());
            Some((index, reads.or_else(sets)?))
        })
    }

    /// Groups a class's connections on a worker into sessions.
    fn parts(
        &self,
        class: &Class,
        shard: &ClassShard,
        mut class_connections: ClassConnections,
    ) -> Vec<SessionPart> {
        let &ClassShard { part, portion, .. } = shard;
        if self.plan.placement == Placement::ByThread {
            // Only one server of each path has connections.
            class_connections
                .iter_mut()
                .for_each(|path| path.retain(|class_connections| !class_connections.is_empty()));
        }
        match class.sessions {
            SessionScope::Worker => {
                let cursor = Cursor::new(part);
                vec![SessionPart { paths: class_connections, part, portion, budget: shard.requests, cursor }]
            }
            SessionScope::Connection => {
                let count = shard.connections.len() as u32;
                let of_connection = |(nth, index): (u32, u32)| {
                    let part = StreamPart { index: shard.connections.start + nth, of: class.connections };
                    SessionPart {
                        paths: vec![std::iter::once(index..index + 1).collect()],
                        part,
                        // All connections have equal fractions.
                        portion: Portion::even(part),
                        budget: shard.requests.map(|total| share_of(total, nth, count)),
                        cursor: Cursor::new(part),
                    }
                };
                (0..).zip(class_connections[0].iter().flat_map(Range::clone)).map(of_connection).collect()
            }
            SessionScope::Client { connections } => {
                clients(shard, &class_connections, class.connections, connections)
            }
        }
    }

    /// Adds a session of a class with its lane.
    fn add_session(
        &self,
        lanes: &mut Lanes,
        (class_index, class): (usize, &Class),
        part: SessionPart,
        phase: &SessionPhase,
    ) {
        // Paths have equally many connections, and a write to several replicas takes one of each.
        let count: u32 = part.paths[0].iter().map(|range| range.len() as u32).sum::<u32>() / class.replicas;
        let is_client = matches!(class.sessions, SessionScope::Client { .. });
        // A client's slots are those of one connection.
        let connections = if is_client || phase.is_unloaded { 1 } else { count };
        let is_shared = self.plan.shares_connections(class_index);
        // A slot is bound to a connection if its operations can go nowhere else. In a cluster they may be split or
        // redirected.
        let has_one_route = part.paths.len() == 1
            && part.paths[0].len() == 1
            && self.slot_map.is_none()
            && (!is_client || count == 1)
            && !is_shared
            && !phase.is_unloaded;
        let lifetime = &class.lifetime;
        // Slots beyond a connection's number of calls must not be due, either.
        let lacks_calls = lifetime.calls.is_some_and(|calls| calls < u64::from(class.depth));
        let awaits_connection = lifetime.connect_rate.is_some() || class.counts_attempts();
        let begins_taken = has_one_route && (awaits_connection || lacks_calls);
        let verify = self.plan.verify.filter(|_| !phase.is_unloaded);
        let spans = self.spans(class_index, &part);
        let is_open = matches!(class.load, Load::Open { .. });
        let room = self.route_room(class, connections, is_open, has_one_route, phase.routes);
        // All that may be in flight, and wait.
        let routes: usize = spans.iter().map(|span| span.ranges.len()).sum();
        let slots = count as usize * class.depth as usize;
        let records = slots + routes * room.waiting_max + room.fills_max;
        let session = Session::new(SessionSpec {
            class_id: class_index as u16,
            session_id: lanes.lanes.len() as u32,
            class,
            part: part.part,
            portion: part.portion,
            connections,
            budget: part.budget,
            records,
            verify: verify.map_or(0.0, |share| share.as_f64()),
            seed: self.plan.seed,
            choices: Choices {
                chooser: self.choosers[class_index].clone(),
                cursor: part.cursor,
                deltas: self.deltas[class_index].clone(),
            },
            copies: self.plan.copies_of(class) as u32,
            begins_taken,
            window: phase.window,
        });
        let mut lane = self.lane(session, &self.data_sets[self.data_set_of_class[class_index]], false);
        lane.binds_slots = room.parks;
        lane.depth = class.depth;
        lane.begins_taken = begins_taken;
        lane.refills_together = !is_open && self.plan.refill == Refill::Batch && !is_shared;
        lane.fills_misses = class.on_miss == OnMiss::Set;
        lane.waiting_fills_max = room.fills_max as u32;
        // Of the trace, if there is one.
        lane.extends |= class.trace.is_some() && class.mix.extends();
        lane.noreply = class.noreply;
        lane.is_audited = verify.is_some() && !lane.is_windowed;
        lane.tracks_misses = lane.fills_misses || lane.is_audited;
        if let Some(window) = class.popularity.window() {
            lane.tracks_misses |= verify.is_some() || window.expire > 0.0;
            lane.checking = Checking::Nothing;
        }
        self.add_lane(lanes, lane, &spans, class.replicas, Some(class), room);
    }

    /// A session's connections by path, and how its operations choose among them.
    fn spans(&self, class_index: usize, part: &SessionPart) -> Vec<RoutedSpan> {
        let paths = part.paths.iter().zip(&self.routers[class_index]);
        let span = |(ranges, router): (&Vec<Range<u32>>, &Option<Arc<Router>>)| RoutedSpan {
            ranges: ranges.clone(),
            routing: self.routing(class_index, part, ranges.len(), router.as_ref()),
        };
        paths.map(span).collect()
    }

    /// Capacities of each route of a session with this many connections.
    fn route_room(
        &self,
        class: &Class,
        connections: u32,
        is_open: bool,
        has_one_route: bool,
        routes: usize,
    ) -> RouteRoom {
        let slots = connections as usize * class.depth as usize;
        let waiting_max = match (is_open, &self.slot_map) {
            (true, _) => (WAITING_MAX / routes).max(WAITING_MIN),
            (false, None) => slots,
            // A multi-get may have a part per slot, all of which may wait for one node.
            (false, Some(_)) => slots * keys_max(class),
        };
        let fills = if class.on_miss == OnMiss::Set { slots * keys_max(class) } else { 0 };
        // In closed loop no more can wait than have slots; all that wait may be due at one time.
        let fills_max = match class.miss_delay {
            None => 0,
            Some(_) if is_open => waiting_max,
            Some(_) => fills,
        };
        RouteRoom {
            depth: class.depth,
            fills_max,
            waiting_max,
            // A multi-get has a part per server with keys of it; where servers are down, one may get as many as
            // there are replicas.
            extra: slots * class.replicas as usize
                + fills
                + fills_max
                + self.redirected_max(class, slots, if is_open { waiting_max } else { 0 }),
            parks: !is_open && has_one_route,
        }
    }

    /// Operations that may wait on a route beyond the schedule's: redirected ones, those of other routes among
    /// them, and parts. Untouched memory costs nothing.
    fn redirected_max(&self, class: &Class, slots: usize, waiting_max: usize) -> usize {
        match self.slot_map {
            Some(_) => slots * keys_max(class) + waiting_max * self.endpoints.len(),
            None => 0,
        }
    }

    /// How operations choose among the servers of a path.
    fn routing(
        &self,
        class_index: usize,
        part: &SessionPart,
        servers: usize,
        router: Option<&Arc<Router>>,
    ) -> Routing {
        match (router, self.plan.placement) {
            _ if servers == 1 => Routing::Only,
            (Some(router), _) => Routing::ByKey(router.clone()),
            (None, Placement::Random) => {
                let mut rng =
                    Rng::for_stream(self.plan.seed, Purpose::Ops, class_index as u16, part.part.index);
                let seed = brunt_workload::rng::Draw::next_u64(&mut rng);
                Routing::AtRandom(DrawRng::from_draw(seed))
            }
            // Workers begin with different servers.
            (None, _) => Routing::InTurn(part.part.index % servers as u32),
        }
    }
}

/// The clients of a worker with `each` connections; `all` counts the connections of the class.
fn clients(
    shard: &ClassShard,
    class_connections: &ClassConnections,
    all: u32,
    each: u32,
) -> Vec<SessionPart> {
    let (first, count) = (shard.connections.start / each, shard.connections.len() as u32 / each);
    let of_client = |nth: u32| {
        // This client's connections to each server.
        let own_of = |range: &Range<u32>| {
            let cut = |nth| range.start + share(range.len() as u64, nth, count).start as u32;
            cut(nth)..cut(nth + 1)
        };
        let part = StreamPart { index: first + nth, of: all / each };
        SessionPart {
            paths: class_connections.iter().map(|of_path| of_path.iter().map(own_of).collect()).collect(),
            part,
            portion: Portion::even(part),
            budget: shard.requests.map(|total| share_of(total, nth, count)),
            cursor: Cursor::new(part),
        }
    };
    (0..count).map(of_client).collect()
}
