//! What a worker's sessions have due, what waits on their routes for a connection, and when the loop was away meanwhile: from its
//! schedule while that waited behind a full queue, and from its sockets, so that this time does not count as a server's silence.
//!
//! An operation that cannot be taken because a queue is full waits for a connection from when the loop would have
//! taken it, had there been room: at once while it sleeps, else at the end of the iteration in which it became due.
//! Invariants: a lane is never due while one of its routes is full; every route with waiting operations is on the list of
//! backlogged ones; the longest iterations are kept with their times, and no other is longer than `others_max_ns`, so what
//! counts as the client's is never too little; a wait for a server is never shorter than asked for, and of more than
//! [`STOPS_MAX`] stops within one wait only the latest lengthen it.

use crate::state::RouteId;
use crate::state::delayed_fills::DelayedFills;
use crate::state::lane::{Lane, Lanes, Picked, Route};
use brunt_stats::usage::STALL_MIN_NS;
use brunt_workload::session::PhaseTimes;
use std::ops::Range;

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
    /// Fills that are not due yet, which have the deadline behind those of the lanes.
    pub fills: Option<Box<DelayedFills>>,
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
            fills: None,
            iteration_start_ns: u64::MAX,
            dispatched_ns: 0,
            absences: Absences::new(),
            is_crowded,
        }
    }

    /// Replaces the lanes; [`Dispatch::begin`] makes them due.
    pub(crate) fn install(&mut self, Lanes { lanes, routes, miss_delays }: Lanes) {
        self.backlogged = Vec::with_capacity(routes.len());
        self.absences.stop();
        let fills_max = lanes.iter().map(|lane| lane.waiting_fills_max as usize).sum();
        let has_fills = !miss_delays.is_empty();
        self.fills = has_fills.then(|| Box::new(DelayedFills::new(miss_delays, fills_max)));
        self.deadlines = DeadlineQueue::new(lanes.len() as u32 + u32::from(has_fills));
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

    /// Due operations that were not sent, and fills that will be due.
    pub(crate) fn backlog(&self) -> usize {
        let fills = self.fills.as_ref().map_or(0, |fills| fills.len());
        self.routes.iter().map(Route::backlog).sum::<usize>() + fills
    }

    /// Are there fills that are due?
    #[inline]
    pub(crate) fn has_due_fills(&self, now_ns: u64) -> bool {
        self.fills.as_ref().is_some_and(|fills| fills.due_ns() <= now_ns)
    }

    /// Lets a fill wait for the database of its class. False if its lane has no room.
    pub(crate) fn defer_fill(&mut self, fill: &Picked) -> bool {
        let lane = &mut self.lanes[fill.op.session as usize];
        let Some(fills) = self.fills.as_mut().filter(|_| lane.waiting_fills < lane.waiting_fills_max) else {
            return false;
        };
        lane.waiting_fills += 1;
        fills.push(fill);
        self.deadlines.set(self.lanes.len() as u32, fills.due_ns());
        true
    }

    /// Takes a fill that is due.
    pub(crate) fn take_due_fill(&mut self, now_ns: u64) -> Option<Picked> {
        let fills = self.fills.as_mut()?;
        let fill = fills.pop_due(now_ns);
        self.deadlines.set(self.lanes.len() as u32, fills.due_ns());
        self.lanes[fill.as_ref()?.op.session as usize].waiting_fills -= 1;
        fill
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

    /// Sets when a lane is looked at again.
    #[inline(always)]
    pub(crate) fn set_next_look(&mut self, lane_index: u32, now_ns: u64) {
        let lane = &self.lanes[lane_index as usize];
        let due_ns = lane.due_ns();
        let look_ns = match self.is_crowded && lane.session.is_open() {
            true => due_ns.max(self.next_shared_look_ns(lane_index, now_ns)),
            false => due_ns,
        };
        self.deadlines.set(lane_index, look_ns);
    }

    /// A worker that shares its CPU looks at an open loop when the next operation is due or, behind waiting ones, after a small
    /// fraction of their wait. Otherwise many workers would preempt each other and a local server, the more the further they are behind.
    #[inline(never)]
    fn next_shared_look_ns(&self, lane_index: u32, now_ns: u64) -> u64 {
        let routes = self.lanes[lane_index as usize].routes.clone();
        let waited = |route: &Route| {
            route.waiting.front().map_or(0, |oldest| now_ns.saturating_sub(oldest.intended_ns))
        };
        let routes = &self.routes[routes.start as usize..routes.end as usize];
        now_ns + routes.iter().map(waited).min().unwrap_or(0) / WAITED_PER_CHECK
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

/// Sessions by when they are due; `u64::MAX` is never.
#[derive(Debug)]
pub(crate) struct DeadlineQueue {
    due_ns: Vec<u64>,
    /// A binary heap of session numbers by their time.
    heap: Vec<u32>,
    /// Position of each session in the heap.
    place: Vec<u32>,
}

impl DeadlineQueue {
    /// For sessions `0..sessions`, none of them due ever.
    pub(crate) fn new(sessions: u32) -> Self {
        Self {
            due_ns: vec![u64::MAX; sessions as usize],
            heap: (0..sessions).collect(),
            place: (0..sessions).collect(),
        }
    }

    /// The session that is due first, and when.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u32, u64)> {
        self.heap.first().map(|session| (*session, self.due_ns[*session as usize]))
    }

    /// Sets when a session is due.
    #[inline(always)]
    pub(crate) fn set(&mut self, session: u32, due_ns: u64) {
        let before = std::mem::replace(&mut self.due_ns[session as usize], due_ns);
        // Most workers have one session, which is first whatever it is set to.
        if self.heap.len() > 1 {
            self.sift(session, due_ns, before);
        }
    }

    /// Restores the heap after the time of a session changed from `before`.
    #[inline(never)]
    fn sift(&mut self, session: u32, due_ns: u64, before: u64) {
        let mut at = self.place[session as usize] as usize;
        if due_ns < before {
            while at > 0 && due_ns < self.time_at((at - 1) / 2) {
                self.swap(at, (at - 1) / 2);
                at = (at - 1) / 2;
            }
        } else {
            loop {
                let child = 2 * at + 1;
                if child >= self.heap.len() {
                    break;
                }
                let earlier_right =
                    child + 1 < self.heap.len() && self.time_at(child + 1) < self.time_at(child);
                let child = child + usize::from(earlier_right);
                if self.time_at(child) >= due_ns {
                    break;
                }
                self.swap(at, child);
                at = child;
            }
        }
    }

    fn time_at(&self, at: usize) -> u64 {
        self.due_ns[self.heap[at] as usize]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = a as u32;
        self.place[self.heap[b] as usize] = b as u32;
    }
}

/// Kept absences: more than a run has stops of a size that matters, and few enough to go through for each operation.
const KEPT_MAX: usize = 16;

/// The absences since a queue became full.
#[derive(Debug)]
pub(crate) struct Absences {
    longest: Vec<Range<u64>>,
    others_max_ns: u64,
    is_on: bool,
    /// Iterations up to this long are of no interest.
    pub ignored_ns: u64,
}

impl Absences {
    /// While no queue is full.
    pub(crate) fn new() -> Self {
        Self {
            longest: Vec::with_capacity(KEPT_MAX),
            others_max_ns: 0,
            is_on: false,
            ignored_ns: STALL_MIN_NS,
        }
    }

    /// Notes absences from now on, if it does not already.
    pub(crate) fn start(&mut self) {
        self.is_on = true;
        self.ignored_ns = self.others_max_ns.min(STALL_MIN_NS);
    }

    /// Forgets them: no operation waits behind a full queue any more.
    pub(crate) fn stop(&mut self) {
        self.longest.clear();
        (self.others_max_ns, self.is_on, self.ignored_ns) = (0, false, STALL_MIN_NS);
    }

    /// Notes an iteration that was longer than `ignored_ns`.
    pub(crate) fn note(&mut self, away: Range<u64>) {
        if !self.is_on {
            return;
        }
        self.longest.push(away);
        if self.longest.len() == KEPT_MAX {
            let lengths = self.longest.iter().map(|away| away.end - away.start);
            let shortest = lengths.enumerate().min_by_key(|(_, length_ns)| *length_ns);
            if let Some((at, length_ns)) = shortest {
                self.longest.swap_remove(at);
                self.others_max_ns = self.others_max_ns.max(length_ns);
            }
        }
        self.start();
    }

    /// When the loop would have taken an operation that it could have taken from `at_ns` on, at the latest.
    pub(crate) fn back_ns(&self, at_ns: u64) -> u64 {
        let within = self.longest.iter().find(|away| away.contains(&at_ns));
        within.map_or(at_ns + self.others_max_ns, |away| away.end)
    }
}

/// Kept stops: a wait that has more of them is on a host that tells nothing of a server anyway.
const STOPS_MAX: usize = 64;

/// The latest stops, ascending.
#[derive(Debug)]
pub(crate) struct Stops(Vec<Range<u64>>);

impl Stops {
    /// Without any.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(STOPS_MAX))
    }

    /// Notes a stop.
    pub(crate) fn note(&mut self, stop: Range<u64>) {
        if self.0.len() == STOPS_MAX {
            self.0.remove(0);
        }
        self.0.push(stop);
    }

    /// The end of a wait that began at `since_ns` and lasts for `wait_ns` without stops.
    pub(crate) fn end_of_wait_ns(&self, since_ns: u64, wait_ns: u64) -> u64 {
        self.0.iter().fold(since_ns.saturating_add(wait_ns), |end_ns, stop| match stop.start < end_ns {
            true => end_ns.saturating_add(stop.end.saturating_sub(stop.start.max(since_ns))),
            false => end_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_matches_linear_search() {
        for sessions in [1u32, 2, 3, 17] {
            let mut deadlines = DeadlineQueue::new(sessions);
            let mut due = vec![u64::MAX; sessions as usize];
            let mut state = u64::from(sessions);
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let session = (state >> 33) as u32 % sessions;
                let time = if state.is_multiple_of(7) { u64::MAX } else { state >> 40 };
                deadlines.set(session, time);
                due[session as usize] = time;
                let (first, time) = deadlines.first().unwrap();
                assert_eq!(time, *due.iter().min().unwrap());
                assert_eq!(due[first as usize], time);
            }
        }
    }

    #[test]
    fn the_longest_absences_are_kept_whole() {
        let mut absences = Absences::new();
        // Not asked for yet.
        absences.note(0..50);
        absences.start();
        assert_eq!((absences.back_ns(20), absences.ignored_ns), (20, 0));
        // One of 500 and one of 300 among many of 1 to 5.
        for number in 0..100 {
            let start_ns = 1_000 * (number + 1);
            let length_ns = match number {
                30 => 500,
                60 => 300,
                _ => number % 5 + 1,
            };
            absences.note(start_ns..start_ns + length_ns);
        }
        let table = [(31_000, 31_500), (31_499, 31_500), (31_500, 31_505), (61_100, 61_300), (900, 905)];
        for (at_ns, expected_ns) in table {
            assert_eq!(absences.back_ns(at_ns), expected_ns, "{at_ns}");
        }
        assert_eq!(absences.ignored_ns, 5);
        absences.stop();
        assert_eq!((absences.back_ns(31_000), absences.ignored_ns), (31_000, STALL_MIN_NS));
    }

    #[test]
    fn stops_within_a_wait_lengthen_it() {
        let mut stops = Stops::new();
        [100..150, 200..300, 400..1_000].into_iter().for_each(|stop| stops.note(stop));
        // (begin, length, end)
        let table = [
            (0, 100, 100),
            (0, 101, 151),
            (120, 20, 170),
            (120, 50, 200),
            (150, 100, 350),
            // What lengthens it reaches the next.
            (100, 200, 1_050),
            (400, 1, 1_001),
            (1_000, 10, 1_010),
            (0, u64::MAX, u64::MAX),
        ];
        for (since_ns, wait_ns, end_ns) in table {
            assert_eq!(stops.end_of_wait_ns(since_ns, wait_ns), end_ns, "{since_ns} {wait_ns}");
        }
        (0..STOPS_MAX as u64).for_each(|number| stops.note(2_000 + 10 * number..2_001 + 10 * number));
        assert_eq!((stops.end_of_wait_ns(0, 101), stops.0.capacity()), (101, STOPS_MAX));
    }
}
