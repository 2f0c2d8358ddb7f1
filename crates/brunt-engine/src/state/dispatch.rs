//! What a worker's sessions have due, and what waits on their routes for a connection.
//!
//! Invariants: a lane is never due while one of its routes is full; every route with waiting operations is on the list of
//! backlogged ones.

use crate::state::RouteId;
use crate::state::absences::Absences;
use crate::state::deadline_queue::DeadlineQueue;
use crate::state::lane::{Lane, Lanes, Picked, Route};
use brunt_workload::session::PhaseTimes;

/// A waiting operation may be picked late by this fraction of the wait of the oldest one, which it will have to
/// wait itself: client error stays below this fraction of its response time.
const WAITED_PER_CHECK: u64 = 128;

/// The lanes and routes of a worker.
pub(crate) struct Dispatch {
    pub lanes: Vec<Lane>,
    pub routes: Vec<Route>,
    /// When each lane is due.
    pub deadlines: DeadlineQueue,
    /// Routes with waiting operations, or with such that their full queue kept in the schedule.
    pub backlogged: Vec<RouteId>,
    /// When the loop last woke, or should have woken by its timer…
    pub iteration_start_ns: u64,
    /// …and when it then began to take due operations.
    pub dispatched_ns: u64,
    pub absences: Absences,
    /// There are more workers than CPUs.
    is_crowded: bool,
}

impl Dispatch {
    /// Without lanes.
    pub(crate) fn new(is_crowded: bool) -> Self {
        Self {
            lanes: Vec::new(),
            routes: Vec::new(),
            deadlines: DeadlineQueue::new(0),
            backlogged: Vec::new(),
            iteration_start_ns: u64::MAX,
            dispatched_ns: 0,
            absences: Absences::new(),
            is_crowded,
        }
    }

    /// Replaces the lanes; [`Dispatch::begin`] makes them due.
    pub(crate) fn install(&mut self, Lanes { lanes, routes }: Lanes) {
        self.backlogged = Vec::with_capacity(routes.len());
        self.absences.stop();
        self.deadlines = DeadlineQueue::new(lanes.len() as u32);
        (self.lanes, self.routes) = (lanes, routes);
    }

    /// Makes all lanes due.
    pub(crate) fn begin(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.feed(0));
        self.set_deadlines();
    }

    fn set_deadlines(&mut self) {
        (0..).zip(&self.lanes).for_each(|(index, lane)| self.deadlines.set(index, lane.due_ns()));
    }

    /// Due operations that were not sent.
    pub(crate) fn backlog(&self) -> usize {
        self.routes.iter().map(Route::backlog).sum()
    }

    /// Does every key have several servers?
    pub(crate) fn has_replicas(&self) -> bool {
        self.lanes.iter().all(|lane| lane.replicas() > 1)
    }

    /// Have all sessions issued their number of measured operations?
    pub(crate) fn has_spent_budgets(&self) -> bool {
        self.lanes.iter().all(|lane| lane.session.has_spent_budget())
    }

    /// Is nothing due without a further event?
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.deadlines.first().is_none_or(|(_, due_ns)| due_ns == u64::MAX)
    }

    /// Moves the window to these times, which are in the future.
    pub(crate) fn begin_window(&mut self, window: PhaseTimes) {
        self.lanes.iter_mut().for_each(|lane| lane.session.set_window(window.measure_ns, window.end_ns));
        self.set_deadlines();
    }

    /// Ends the schedule: no operation with a later intended time is sent.
    pub(crate) fn end_at(&mut self, now_ns: u64) {
        self.lanes.iter_mut().for_each(|lane| lane.session.end_at(now_ns));
        self.set_deadlines();
    }

    /// The lane of a route whose next operation was kept in the schedule, that of the earliest.
    pub(crate) fn first_kept_in_schedule(&self, route: RouteId) -> Option<u32> {
        let is_kept = |lane: &u32| self.lanes[*lane as usize].is_kept_in_schedule();
        let kept = self.routes[route as usize].lanes().filter(is_kept);
        kept.min_by_key(|lane| self.lanes[*lane as usize].session.due_ns())
    }

    /// When an operation that is taken from the schedule now began to wait for a connection: now, unless a full queue
    /// kept it there.
    pub(crate) fn picked_ns(&self, lane_index: u32, intended_ns: u64, now_ns: u64) -> u64 {
        let Lane { full_routes, kept_ns: (begin_ns, end_ns), .. } = self.lanes[lane_index as usize];
        let end_ns = if full_routes > 0 { self.iteration_start_ns } else { end_ns };
        if intended_ns > end_ns {
            return now_ns;
        }
        self.absences.back_ns(intended_ns.max(begin_ns)).min(end_ns)
    }

    /// Sets when a lane is looked at again. A worker that shares its CPU looks at an open loop when the next operation is due or,
    /// behind waiting ones, after a small fraction of their wait. Otherwise many workers would preempt each other and a
    /// local server, the more the further they are behind.
    #[inline]
    pub(crate) fn set_next_look(&mut self, lane_index: u32, now_ns: u64) {
        let lane = &self.lanes[lane_index as usize];
        let mut look_ns = lane.due_ns();
        if self.is_crowded && lane.session.is_open() {
            let routes = &self.routes[lane.routes.start as usize..lane.routes.end as usize];
            let waited = |route: &Route| {
                route.waiting.front().map_or(0, |oldest| now_ns.saturating_sub(oldest.intended_ns))
            };
            let waited_ns = routes.iter().map(waited).min().unwrap_or(0);
            look_ns = look_ns.max(now_ns + waited_ns / WAITED_PER_CHECK);
        }
        self.deadlines.set(lane_index, look_ns);
    }

    /// Lets an operation wait on its route. The caller puts the route on the list of backlogged ones.
    pub(crate) fn push_waiting(&mut self, picked: Picked) {
        let route = &mut self.routes[picked.route as usize];
        let was_full = route.is_full();
        route.waiting.push_back(picked);
        self.note_length(picked.route, was_full);
    }

    /// Takes the operation that has waited longest on a route.
    pub(crate) fn pop_waiting(&mut self, route_index: RouteId) -> Option<Picked> {
        let route = &mut self.routes[route_index as usize];
        let was_full = route.is_full();
        let oldest = route.waiting.pop_front()?;
        self.note_length(route_index, was_full);
        Some(oldest)
    }

    /// Updates the lanes of a route: a lane is never due while one of its routes is full.
    #[inline]
    pub(crate) fn note_length(&mut self, route_index: RouteId, was_full: bool) {
        let route = &self.routes[route_index as usize];
        if route.is_full() == was_full {
            return;
        }
        for lane_index in route.lanes() {
            let lane = &mut self.lanes[lane_index as usize];
            if route.is_full() {
                if lane.full_routes == 0 && lane.session.due_ns() > lane.kept_ns.1 {
                    lane.kept_ns.0 = self.iteration_start_ns;
                }
                lane.full_routes += 1;
                self.absences.start();
            } else {
                lane.full_routes -= 1;
                lane.kept_ns.1 = self.iteration_start_ns;
            }
            self.deadlines.set(lane_index, lane.due_ns());
        }
    }
}
