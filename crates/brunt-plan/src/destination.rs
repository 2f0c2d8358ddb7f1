//! Destinations of operations: the servers of a plan with protocol and transport, the paths of its classes, and their
//! workers.
//!
//! Invariant: every server in a [`Path`] is a place in [`Plan::servers`], by which reports, counts and the engine refer
//! to it.

use crate::op::OpKind;
use crate::plan::{Class, Path, Placement, Plan, Protocol, Server, SessionScope, Transport};
use crate::server::ServerAddress;
use crate::spec::ClassSpec;
use std::collections::HashSet;
use std::ops::Range;

/// Workers that carry out classes of one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerGroup {
    /// What they speak.
    pub protocol: Protocol,
    /// Their numbers, at least one.
    pub workers: Range<u32>,
}

impl Class {
    /// Which of its paths operations of a kind take.
    pub fn path_index(&self, kind: OpKind) -> usize {
        self.paths.iter().position(|path| path.ops.contains(&kind)).unwrap_or(0)
    }

    /// The path that operations of a kind take.
    pub fn path_of(&self, kind: OpKind) -> &Path {
        &self.paths[self.path_index(kind)]
    }

    /// Does anything of it go by this transport?
    pub fn uses_transport(&self, transport: Transport) -> bool {
        self.paths.iter().any(|path| path.transport == transport)
    }
}

impl ClassSpec {
    /// Is anything said of its servers that is not said of all?
    pub fn has_destination(&self) -> bool {
        self.server.is_some() || self.protocol.is_some() || self.transport.is_some() || self.route.is_some()
    }
}

impl Plan {
    /// Is anything said of a class's servers that is not said of all?
    pub fn has_destinations(&self) -> bool {
        self.spec.classes.iter().any(ClassSpec::has_destination)
    }

    /// Where these are, as far as the plan names them.
    pub fn addresses(&self) -> Vec<ServerAddress> {
        self.servers.iter().filter_map(|server| server.address.clone()).collect()
    }

    /// How many these are.
    pub fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Is there anything to choose between servers?
    pub fn has_placement(&self) -> bool {
        self.classes.iter().flat_map(|class| &class.paths).any(|path| path.servers.len() > 1)
    }

    /// The name of a server in reports: its address; with what carries it or what it speaks, or both, where others have the same address.
    /// `None` where the plan does not name it.
    pub fn server_name(&self, index: usize) -> Option<String> {
        name_among(&self.servers, self.servers.get(index)?)
    }

    /// The names of all.
    pub fn server_names(&self) -> Vec<Option<String>> {
        self.servers.iter().map(|server| name_among(&self.servers, server)).collect()
    }

    /// The servers whose statistics are polled: each address once, by whatever transport it is reached.
    pub fn polled_servers(&self) -> Vec<usize> {
        let mut known = HashSet::new();
        (0..self.servers.len()).filter(|index| known.insert(&self.servers[*index].address)).collect()
    }

    /// The addresses of these.
    pub fn polled_server_names(&self) -> Vec<Option<String>> {
        let name = |index: usize| self.servers[index].address.as_ref().map(ToString::to_string);
        self.polled_servers().into_iter().map(name).collect()
    }

    /// Is one address spoken to as a memcached and as a Redis? Then its counts cannot be divided between the two.
    pub fn has_server_with_two_protocols(&self) -> bool {
        self.servers.iter().any(|one| {
            self.servers.iter().any(|other| {
                one.address == other.address && one.protocol.is_resp() != other.protocol.is_resp()
            })
        })
    }

    /// Does anything go by this transport?
    pub fn uses_transport(&self, transport: Transport) -> bool {
        self.servers.iter().any(|server| server.transport == transport)
    }

    /// Does a class talk to a server that is started for the run?
    pub fn needs_embedded(&self) -> bool {
        self.servers.iter().any(|server| server.address.is_none())
    }

    /// The protocols of the classes, in their order.
    pub fn protocols(&self) -> Vec<Protocol> {
        let mut protocols = Vec::new();
        for protocol in self.classes.iter().map(|class| class.protocol) {
            if !protocols.contains(&protocol) {
                protocols.push(protocol);
            }
        }
        protocols
    }

    /// Which workers carry out which protocol: they are divided evenly among the protocols, of each of which at least one is there.
    pub fn worker_groups(&self) -> Vec<WorkerGroup> {
        let protocols = self.protocols();
        let of = protocols.len() as u32;
        let group = |(index, protocol): (u32, Protocol)| {
            let workers = crate::shard::share(u64::from(self.threads), index, of);
            WorkerGroup { protocol, workers: workers.start as u32..workers.end as u32 }
        };
        (0..).zip(protocols).map(group).collect()
    }

    /// How many operations of a class are in flight at a time in closed loop: in each worker one for every place on its connections, or for
    /// as many of these as a change to all its replicas takes; or as many for each client.
    pub fn in_flight_slots(&self, class: &Class) -> u64 {
        if let SessionScope::Client { connections } = class.sessions {
            return u64::from(class.connections / connections) * u64::from(class.depth);
        }
        let workers = self.workers_of(class);
        let of = workers.len() as u32;
        let connections = |part| crate::shard::share_of(u64::from(class.connections), part, of);
        let replicas = u64::from(class.replicas);
        (0..of).map(|part| connections(part) / replicas * u64::from(class.depth)).sum()
    }

    /// Of the servers those that no operation goes to, because workers take servers in turn and there are fewer of them.
    pub fn idle_servers(&self) -> Vec<usize> {
        let mut is_idle = vec![self.placement == Placement::ByThread; self.server_count()];
        for class in &self.classes {
            for path in &class.paths {
                let count = path.servers.len() as u32;
                let own = (0..self.workers_of(class).len() as u32)
                    .filter_map(|worker| self.placement.of_worker(worker, count));
                own.for_each(|server| is_idle[usize::from(path.servers[server as usize])] = false);
            }
        }
        (0..is_idle.len()).filter(|server| is_idle[*server]).collect()
    }

    /// By thread, the largest part of a class's workers that one server has.
    pub fn largest_server_fraction(&self, class: &Class) -> f64 {
        let workers = self.workers_of(class).len() as u32;
        let of_path = |path: &Path| {
            let count = path.servers.len() as u32;
            let mut turns = vec![0_u32; self.server_count()];
            let own = (0..workers).filter_map(|worker| self.placement.of_worker(worker, count));
            own.for_each(|server| turns[usize::from(path.servers[server as usize])] += 1);
            turns.into_iter().max().unwrap_or(0)
        };
        let most = class.paths.iter().map(of_path).max().unwrap_or(0);
        f64::from(most) / f64::from(workers)
    }

    /// The workers that carry out a class.
    pub fn workers_of(&self, class: &Class) -> Range<u32> {
        let group = self.worker_groups().into_iter().find(|group| group.protocol == class.protocol);
        group.map_or(0..self.threads, |group| group.workers)
    }
}

/// The name of one of these servers.
fn name_among(servers: &[Server], server: &Server) -> Option<String> {
    let address = server.address.as_ref().map(ToString::to_string);
    let same = || servers.iter().filter(|other| other.address == server.address && *other != server);
    if same().next().is_none() {
        return address;
    }
    let (protocol, transport) = (server.protocol.name(), server.transport.name());
    let has_own_transport = same().all(|other| other.transport != server.transport);
    let has_own_protocol = same().all(|other| other.protocol != server.protocol);
    let way = match (has_own_transport, has_own_protocol) {
        (true, _) => transport.to_owned(),
        (false, true) => protocol.to_owned(),
        (false, false) => format!("{protocol} over {transport}"),
    };
    Some(format!("{} ({way})", address.unwrap_or("embedded".to_owned())))
}
