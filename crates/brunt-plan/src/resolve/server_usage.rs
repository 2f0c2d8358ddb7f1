//! The protocols, transports and servers that the classes of a plan use, for checks of options of the run.
//!
//! Invariant: what no class uses is not in it, whatever the run says.

use crate::plan::{Class, Destination, Protocol, Transport};

/// What the classes of a plan speak, and with whom.
pub(super) struct ServerUsage {
    /// Each protocol once, in the order of the classes.
    pub protocols: Vec<Protocol>,
    /// Each transport once.
    pub transports: Vec<Transport>,
    /// A class talks to the server that is started for the run.
    pub embedded: bool,
    /// For each class the most servers of a path.
    pub servers: Vec<usize>,
}

impl ServerUsage {
    /// By these classes, of which those that say nothing of it use `plans`.
    pub(super) fn of(default_destination: &Destination, classes: &[Class]) -> Self {
        let mut used =
            Self { protocols: Vec::new(), transports: Vec::new(), embedded: false, servers: Vec::new() };
        for class in classes {
            let own = class.own_destination.as_ref().unwrap_or(default_destination);
            let servers = if own.servers.is_empty() { &default_destination.servers } else { &own.servers };
            let routes = class.routes.iter().map(|route| (&route.servers, route.transport));
            let routes = routes.map(|(own, by)| (if own.is_empty() { servers } else { own }, by));
            let mut servers_max = 1;
            for (servers, transport) in std::iter::once((servers, own.transport)).chain(routes) {
                servers_max = servers_max.max(servers.len());
                used.embedded |= servers.is_empty();
                insert(&mut used.transports, transport);
            }
            insert(&mut used.protocols, own.protocol);
            used.servers.push(servers_max);
        }
        used
    }

    /// Is any class in such a protocol?
    pub(super) fn supports(&self, is_meant: impl Fn(Protocol) -> bool) -> bool {
        self.protocols.iter().any(|protocol| is_meant(*protocol))
    }

    /// Does anything go by this transport?
    pub(super) fn uses_transport(&self, transport: Transport) -> bool {
        self.transports.contains(&transport)
    }

    /// The most servers that an operation may be placed on.
    pub(super) fn servers_max(&self) -> usize {
        self.servers.iter().copied().max().unwrap_or(1)
    }
}

fn insert<T: PartialEq>(held: &mut Vec<T>, one: T) {
    if !held.contains(&one) {
        held.push(one);
    }
}
