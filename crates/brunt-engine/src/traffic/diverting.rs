//! Diverting: connections that are lost for good, and where operations go that waited for them.
//!
//! Not losing (that is [`super::losing`]), and nothing of a connection that another attempt may follow: what waits for that waits on.
//! Invariant: nothing waits for a connection that will never stand; it goes to another server where the key decides nothing, else
//! it is given up.

use super::Traffic;
use crate::connection::Link;
use crate::lane::{Picked, RouteId, Routing};
use brunt_proto::Codec;

impl<C: Codec> Traffic<C> {
    /// Will another attempt follow when this connection is lost now?
    pub(super) fn reconnects(&self, index: u32) -> bool {
        let connection = &self.connections[index as usize];
        let lifetimes = &self.lifetimes[usize::from(connection.class)];
        let others = lifetimes.up - u32::from(connection.link == Link::Up);
        lifetimes.reconnects(others > 0)
    }

    /// Has this worker lost all of its connections, and may begin none any more?
    pub(crate) fn has_no_client(&self) -> bool {
        self.recording.counts.connections_abandoned as usize == self.connections.len()
    }

    /// A connection is lost, and none is to follow. With the last one of its class those go that were to be tried again.
    pub(super) fn abandon(&mut self, index: u32, at_ns: u64) {
        let class = self.connections[index as usize].class;
        self.abandon_one(index);
        if self.lifetimes[usize::from(class)].up == 0 {
            for other in 0..self.connections.len() as u32 {
                let connection = &self.connections[other as usize];
                if connection.class == class && matches!(connection.link, Link::Down { .. }) {
                    self.abandon_one(other);
                    self.divert_waiting(self.connections[other as usize].route, at_ns);
                }
            }
        }
        self.divert_waiting(self.connections[index as usize].route, at_ns);
        self.end_lane(self.lane_of(index), at_ns);
    }

    fn abandon_one(&mut self, index: u32) {
        self.lay(index, Link::Gone);
        let connection = &mut self.connections[index as usize];
        // Its slots stay with it.
        connection.calls_left = 0;
        let server = &mut self.servers[usize::from(connection.server)];
        server.prober = server.prober.filter(|prober| *prober != index);
        self.recording.counts.connections_abandoned += 1;
    }

    /// A closed loop that has no connection any more is over. An open loop's schedule goes on, and nothing of it is sent.
    fn end_lane(&mut self, lane_index: u32, at_ns: u64) {
        let lane = &mut self.lanes[lane_index as usize];
        let routes = lane.routes.clone();
        if !lane.session.is_open() && routes.clone().all(|route| self.is_route_over(route)) {
            let lane = &mut self.lanes[lane_index as usize];
            lane.session.end_at(at_ns);
            self.agenda.set(lane_index, lane.due_ns());
        }
    }

    /// Will no connection of a route ever stand again?
    pub(super) fn is_route_over(&self, route: RouteId) -> bool {
        let links = self.routes[route as usize].connections.clone();
        links.map(|link| &self.connections[link as usize]).all(|connection| connection.link == Link::Gone)
    }

    /// Has an operation nothing to wait for?
    fn waits_for_nothing(&self, picked: &Picked) -> bool {
        match picked.connection {
            Some(pinned) => self.connections[pinned as usize].link == Link::Gone,
            None => self.is_route_over(picked.route),
        }
    }

    /// Whatever waits on a route for nothing goes elsewhere.
    fn divert_waiting(&mut self, route_index: RouteId, at_ns: u64) {
        let mut parked = std::mem::take(&mut self.routes[route_index as usize].parked);
        parked.retain(|picked| {
            let stays = !self.waits_for_nothing(picked);
            if !stays {
                self.divert(*picked, at_ns);
            }
            stays
        });
        self.routes[route_index as usize].parked = parked;
        for _ in 0..self.routes[route_index as usize].waiting.len() {
            let Some(picked) = self.routes[route_index as usize].waiting.front().copied() else { break };
            let stays = !self.waits_for_nothing(&picked);
            let route = &mut self.routes[route_index as usize];
            let was_full = route.is_full();
            route.waiting.pop_front();
            if stays {
                route.waiting.push_back(picked);
            } else {
                self.note_length(route_index, was_full);
                self.divert(picked, at_ns);
            }
        }
    }

    /// An operation has nothing to wait for where it is.
    fn divert(&mut self, picked: Picked, at_ns: u64) {
        match self.elsewhere(&picked) {
            Some(route) => self.enqueue(Picked { route, ..picked }),
            None => self.give_up(&picked, at_ns),
        }
    }

    /// No connection can take an operation that was just picked. Yields what it is to wait for, if there is anything.
    #[cold]
    pub(super) fn divert_picked(&mut self, picked: Picked) -> Option<Picked> {
        if !self.waits_for_nothing(&picked) {
            return Some(picked);
        }
        let route = self.elsewhere(&picked);
        if route.is_none() {
            self.give_up(&picked, picked.picked_ns);
        }
        route.map(|route| Picked { route, ..picked })
    }

    /// Another route for an operation of which any will do.
    fn elsewhere(&self, picked: &Picked) -> Option<RouteId> {
        let lane = &self.lanes[self.routes[picked.route as usize].lane as usize];
        let (routes, routing) = match &lane.routing {
            Routing::ByKind(kinds) => {
                let branch = kinds.branches.iter().find(|branch| branch.routes.contains(&picked.route))?;
                (branch.routes.clone(), &branch.routing)
            }
            routing => (lane.routes.clone(), routing),
        };
        let is_any = matches!(routing, Routing::InTurn(_) | Routing::AtRandom(_));
        let (behind, before) = (picked.route + 1..routes.end, routes.start..picked.route);
        behind.chain(before).find(|route| is_any && !self.is_route_over(*route))
    }
}
