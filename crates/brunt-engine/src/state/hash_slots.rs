//! The hash slots of a cluster: a worker's table, and the map that all workers share.
//!
//! Sends nothing. A worker's table learns from redirects, and copies the shared map between two iterations when
//! that is new. Invariants: every slot has a node to send to; without a known owner any node serves, and redirects. From its
//! first hop until it is recorded, a redirected operation has one state, which remembers its first send.

use crate::state::Slab;
use crate::state::lane::Picked;
use brunt_proto::resp::error::Redirect;
use brunt_proto::resp::slot::{NodeAddress, NodeHost, SLOTS, SlotMap, slot_of};
use brunt_proto::template::Template;
use brunt_stats::run_record::SlotCounts;
use brunt_stats::worker_counts::RedirectionCounts;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

/// No node owns the slot.
const UNSERVED: u16 = u16::MAX;
/// A node owns it that was not known when the run began.
const ELSEWHERE: u16 = u16::MAX - 1;
/// Pause before a TRYAGAIN is retried. Most keys migrate faster.
pub(crate) const TRY_AGAIN_NS: u64 = 10_000_000;
/// The longest name of a node that is kept.
const NODE_NAME_MAX: usize = 300;

/// The slot map shared by all workers and the thread that polls it.
#[derive(Debug)]
pub(crate) struct SharedSlotMap {
    /// The nodes when the run begins; the plan's servers, in their order.
    pub nodes: Vec<NodeAddress>,
    /// Index of each slot's node. One thread writes while workers read: a copy may mix two maps until the new
    /// edition is published.
    table: Box<[AtomicU16]>,
    /// Number of the published map.
    edition: AtomicU64,
    /// A worker has seen a redirect since the last poll.
    pub is_outdated: AtomicBool,
}

impl SharedSlotMap {
    /// A shared map of these nodes with this assignment.
    pub(crate) fn new(nodes: Vec<NodeAddress>, map: &SlotMap) -> Self {
        let shared = Self {
            nodes,
            table: (0..SLOTS).map(|_| AtomicU16::new(UNSERVED)).collect(),
            edition: AtomicU64::new(0),
            is_outdated: AtomicBool::new(false),
        };
        shared.publish(map);
        shared
    }

    /// Publishes a map.
    pub(crate) fn publish(&self, map: &SlotMap) {
        let known = self.places(map);
        for slot in 0..SLOTS {
            let node = map.node_of(slot).map_or(UNSERVED, |node| known[usize::from(node)]);
            self.table[usize::from(slot)].store(node, Ordering::Relaxed);
        }
        self.edition.fetch_add(1, Ordering::Release);
    }

    /// Indices of a map's nodes among the known nodes.
    fn places(&self, map: &SlotMap) -> Vec<u16> {
        let place = |node: &NodeAddress| {
            self.nodes.iter().position(|known| known == node).map_or(ELSEWHERE, |place| place as u16)
        };
        map.nodes().iter().map(place).collect()
    }

    /// Slots per node in the published map.
    pub(crate) fn counts(&self) -> SlotCounts {
        let mut counts = SlotCounts { of_servers: vec![0; self.nodes.len()], ..SlotCounts::default() };
        for slot in &self.table {
            match slot.load(Ordering::Relaxed) {
                UNSERVED => counts.unserved += 1,
                ELSEWHERE => counts.elsewhere += 1,
                node => counts.of_servers[usize::from(node)] += 1,
            }
        }
        counts
    }
}

/// Capacities of a worker's slot table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotTableCapacity {
    /// Operations at a time, on connections and waiting.
    pub operations: usize,
    /// Keys of a multi-get.
    pub keys: usize,
    /// Maximum bytes of the argument that routes a user-defined command.
    pub routed_bytes: usize,
}

/// A worker's slot table, and its operations that are neither on a connection nor on a route.
#[derive(Debug)]
pub(crate) struct SlotTable {
    shared: Arc<SharedSlotMap>,
    /// Edition of the shared map that was copied last.
    edition: u64,
    table: Box<[u16]>,
    /// The next node for operations that any node can serve.
    any: u32,
    templates: Arc<[Template]>,
    routing_key: Vec<u8>,
    /// Slots of the keys of the current multi-get.
    pub of_keys: Vec<u16>,
    pub redirects: Slab<RedirectState>,
    /// Operations to retry and their times; in order, because all pause equally.
    pub paused: VecDeque<(u64, Picked)>,
    pub counts: RedirectionCounts,
    unknown_node: String,
}

impl SlotTable {
    /// A copy of the shared map with these capacities; `first` is the node for the first operation that any node
    /// can serve.
    pub(crate) fn new(
        shared: Arc<SharedSlotMap>,
        templates: Arc<[Template]>,
        room: SlotTableCapacity,
        first: u32,
    ) -> Self {
        let mut slots = Self {
            table: vec![UNSERVED; usize::from(SLOTS)].into_boxed_slice(),
            edition: 0,
            any: first % shared.nodes.len() as u32,
            templates,
            routing_key: Vec::with_capacity(room.routed_bytes),
            of_keys: Vec::with_capacity(room.keys),
            redirects: Slab::with_capacity(room.operations),
            paused: VecDeque::with_capacity(room.operations),
            counts: RedirectionCounts::default(),
            unknown_node: String::with_capacity(NODE_NAME_MAX),
            shared,
        };
        slots.refresh();
        slots
    }

    /// Copies the shared map if it is new.
    pub(crate) fn refresh(&mut self) {
        let edition = self.shared.edition.load(Ordering::Acquire);
        if edition != self.edition {
            self.edition = edition;
            self.table
                .iter_mut()
                .zip(&self.shared.table)
                .for_each(|(own, shared)| *own = shared.load(Ordering::Relaxed));
        }
    }

    /// The node of a slot; without a slot or an owner, the nodes in turn.
    pub(crate) fn node_of(&mut self, slot: Option<u16>) -> u32 {
        let known = slot.map_or(UNSERVED, |slot| self.table[usize::from(slot)]);
        if known < ELSEWHERE {
            return u32::from(known);
        }
        let node = self.any;
        self.any = (node + 1) % self.shared.nodes.len() as u32;
        node
    }

    /// The slot of a user-defined command with this key; `None` if no argument of it is a known key.
    pub(crate) fn slot_of_command(&mut self, command: u16, key: &[u8]) -> Option<u16> {
        self.routing_key.clear();
        let command = &self.templates[usize::from(command) - 1];
        command.write_routing_key(key, &mut self.routing_key).then(|| slot_of(&self.routing_key))
    }

    /// The target of a redirect by this node; `None` if it is unknown.
    pub(crate) fn target_of(&self, redirect: &Redirect<'_>, from: u16) -> Option<u16> {
        let nodes = &self.shared.nodes;
        let host = match redirect.host {
            NodeHost::Named(host) => Some(host),
            NodeHost::Asked => Some(nodes[usize::from(from)].host.as_str()),
            NodeHost::Unknown => None,
        };
        let is_it =
            |node: &NodeAddress| node.port == redirect.port && host.is_none_or(|host| node.host == host);
        // A node without a name is identified by its port, if only one node has it.
        let mut found = nodes.iter().enumerate().filter(|(_, node)| is_it(node));
        match (found.next(), found.next()) {
            (Some((place, _)), None) => Some(place as u16),
            _ => None,
        }
    }

    /// Assigns a moved slot to a node, and requests a new map, as others may have moved.
    pub(crate) fn learn(&mut self, slot: u16, node: u16) {
        self.table[usize::from(slot)] = node;
        self.request_map();
    }

    /// Requests a poll of the slot map.
    pub(crate) fn request_map(&self) {
        self.shared.is_outdated.store(true, Ordering::Relaxed);
    }

    /// Counts a redirect to an unknown node.
    #[cold]
    pub(crate) fn note_unknown_node(&mut self, redirect: &Redirect<'_>) {
        self.counts.unknown += 1;
        self.request_map();
        let (NodeHost::Named(host), true) = (redirect.host, self.unknown_node.is_empty()) else { return };
        // Host names have at most 255 bytes, and ports 5.
        if host.len() + 8 <= NODE_NAME_MAX {
            // Within its capacity, a string takes what is written without allocating.
            let _ = write!(self.unknown_node, "{host}:{}", redirect.port);
        }
    }

    /// The redirect counts.
    pub(crate) fn end(self) -> RedirectionCounts {
        let unknown_node = (!self.unknown_node.is_empty()).then_some(self.unknown_node);
        RedirectionCounts { unknown_node, ..self.counts }
    }
}

/// The redirects of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedirectState {
    /// When its last byte was handed over for the first time.
    pub first_sent_ns: u64,
    /// When it last began to wait for another node.
    pub waiting_since_ns: u64,
    /// Redirects so far.
    pub hops: u8,
    /// Its next request goes behind an `ASKING`.
    pub needs_asking: bool,
    /// The reply to that `ASKING` has not come.
    pub awaits_asking: bool,
}

impl RedirectState {
    /// Of an operation that was first sent at this time.
    pub(crate) fn new(first_sent_ns: u64) -> Self {
        let waiting_since_ns = first_sent_ns;
        Self { first_sent_ns, waiting_since_ns, hops: 0, needs_asking: false, awaits_asking: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_proto::resp::error::RedirectKind;
    use brunt_proto::resp::reply::WholeReply;

    /// The map of nodes 127.0.0.1:7001 and so on, each with the slots from one of these up to the next.
    fn map(ranges: &[(u16, u16, u16)]) -> SlotMap {
        let mut reply = format!("*{}\r\n", ranges.len());
        for (first, last, port) in ranges {
            reply += &format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n");
        }
        let mut whole = WholeReply::default();
        assert!(whole.take(reply.as_bytes()).unwrap());
        SlotMap::of_slots(&whole.value().unwrap(), "asked").unwrap()
    }

    fn slots(shared: &Arc<SharedSlotMap>) -> SlotTable {
        let room = SlotTableCapacity { operations: 4, keys: 1, routed_bytes: 0 };
        SlotTable::new(shared.clone(), Arc::new([]), room, 2)
    }

    #[test]
    fn every_slot_has_a_node() {
        let first = map(&[(0, 99, 7001), (200, 16383, 7002)]);
        let shared = Arc::new(SharedSlotMap::new(first.nodes().to_vec(), &first));
        let mut slots = slots(&shared);
        let mut nodes =
            |wanted: &[Option<u16>]| wanted.iter().map(|slot| slots.node_of(*slot)).collect::<Vec<_>>();
        assert_eq!(nodes(&[Some(0), Some(99), Some(200), Some(16_383)]), [0, 0, 1, 1]);
        assert_eq!(nodes(&[Some(100), None, Some(199), None]), [0, 1, 0, 1], "any, in turn");
        assert_eq!(
            shared.counts(),
            SlotCounts { of_servers: vec![100, 16_184], elsewhere: 0, unserved: 100 }
        );
        // The shared map has something new: a slot of a node that was none before.
        slots.learn(7, 1);
        assert!(shared.is_outdated.load(Ordering::Relaxed));
        assert_eq!(slots.node_of(Some(7)), 1);
        shared.publish(&map(&[(0, 99, 7002), (100, 200, 7003), (201, 16_383, 7001)]));
        assert_eq!(slots.node_of(Some(300)), 1, "not before it is looked at");
        slots.refresh();
        assert_eq!([7, 300].map(|slot| slots.node_of(Some(slot))), [1, 0]);
        assert_eq!(
            shared.counts(),
            SlotCounts { of_servers: vec![16_183, 100], elsewhere: 101, unserved: 0 }
        );
    }

    #[test]
    fn redirections_name_a_known_node_or_are_noted() {
        let all = map(&[(0, 99, 7001), (100, 16_383, 7002)]);
        let shared = Arc::new(SharedSlotMap::new(all.nodes().to_vec(), &all));
        let mut slots = slots(&shared);
        let table = [
            ("MOVED 5 127.0.0.1:7002", Some(1)),
            ("ASK 5 127.0.0.1:7001", Some(0)),
            ("MOVED 5 :7002", Some(1)),
            ("MOVED 5 ?:7002", Some(1)),
            ("MOVED 5 127.0.0.1:7003", None),
            ("MOVED 5 10.0.0.1:7001", None),
            ("MOVED 5 ?:7003", None),
        ];
        for (text, expected) in table {
            let redirect = Redirect::of(text.as_bytes()).unwrap();
            assert_eq!(slots.target_of(&redirect, 0), expected, "{text}");
            if expected.is_none() {
                slots.note_unknown_node(&redirect);
            }
        }
        let ends = slots.end();
        assert_eq!((ends.unknown, ends.unknown_node.as_deref()), (3, Some("127.0.0.1:7003")));
        assert_eq!(Redirect::of(b"ASK 5 a:1").unwrap().kind, RedirectKind::Ask);
    }
}
