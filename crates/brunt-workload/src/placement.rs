//! Which of several servers a key lives on: the rules of the client libraries, so that keys lie where theirs do.
//!
//! Only the rules by key, as functions of the key's bytes; placement in turn or at random is a matter of the session.
//! Nothing is allocated or changed after construction: the set of servers is the plan's, and one that is down keeps its
//! keys.

use brunt_plan::plan::Placement;
use brunt_plan::server::ServerAddress;

/// Maps keys to servers.
#[derive(Clone, Debug)]
pub struct Router {
    servers: u32,
}

impl Router {
    /// The rule for these servers, at least one. `placement` is one by key.
    pub fn new(placement: Placement, servers: &[ServerAddress]) -> Self {
        assert!(placement == Placement::Modulo, "{placement} has no rule yet");
        assert!(!servers.is_empty(), "no servers to place keys on");
        Self { servers: servers.len() as u32 }
    }

    /// The index of the server that this key lives on.
    #[inline]
    pub fn route(&self, key: &[u8]) -> u32 {
        one_at_a_time(key) % self.servers
    }
}

/// Jenkins's hash of this name (Dr. Dobb's Journal, 1997); libmemcached adds bytes as signed ones.
#[inline]
fn one_at_a_time(key: &[u8]) -> u32 {
    let mixed = key.iter().fold(0u32, |hash, byte| {
        let hash = hash.wrapping_add(*byte as i8 as u32);
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    let hash = mixed.wrapping_add(mixed << 3);
    let hash = hash ^ (hash >> 11);
    hash.wrapping_add(hash << 15)
}
