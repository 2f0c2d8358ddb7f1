//! A session together with what the engine keeps for it: its connections, and operations that wait for one.
//!
//! Not the schedule: that is inside the session and never changed from here. Operations that are due and find no
//! connection with room wait here in order, with the instant at which the loop first looked at them; the queue is
//! bounded, and when it is full the rest simply stays in the schedule, late but not lost.

use crate::ready::Ready;
use brunt_plan::op::Op;
use brunt_plan::phase::Phase;
use brunt_workload::keys::KeySpace;
use brunt_workload::session::Session;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// An operation that is due and has no bytes yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    /// What is asked.
    pub op: Op,
    /// The phase of its intended time.
    pub phase: Phase,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the loop first looked at it.
    pub picked_ns: u64,
    /// The connection it must go to (closed loop), or any.
    pub connection: Option<u32>,
}

/// A session and its place in the engine.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The virtual client.
    pub session: Session,
    /// Where its keys come from.
    pub keyspace: Arc<KeySpace>,
    /// Its operations belong to preload, whatever the clock says.
    pub is_preload: bool,
    /// Its connections, as numbers within the worker.
    pub connections: Range<u32>,
    /// The same by how many operations each has outstanding.
    pub ready: Ready,
    /// Due, in order, for any connection.
    pub waiting: VecDeque<Picked>,
    /// Due, for a connection that cannot take them now.
    pub parked: Vec<Picked>,
    /// How many operations may wait.
    waiting_max: usize,
    /// It stands on the worker's list of lanes with waiting operations.
    pub listed: bool,
}

impl Lane {
    /// A lane whose connections are not yet usable. `depth`: operations in flight on one connection at most;
    /// `waiting_max`: operations of an open loop that may wait for a connection.
    pub(crate) fn new(
        session: Session,
        keyspace: Arc<KeySpace>,
        is_preload: bool,
        connections: Range<u32>,
        depth: u32,
        waiting_max: usize,
    ) -> Self {
        let count = connections.len() as u32;
        let (waiting, parked) = match session.is_open() {
            true => (waiting_max, 0),
            // In closed loop at most every slot waits; only a connection that is gone parks.
            false => (count as usize * depth as usize, count as usize * depth as usize),
        };
        Self {
            session,
            keyspace,
            is_preload,
            ready: Ready::new(connections.start, count, depth),
            connections,
            waiting: VecDeque::with_capacity(waiting),
            parked: Vec::with_capacity(parked),
            waiting_max: waiting,
            listed: false,
        }
    }

    /// When it wants to be looked at: when its next operation is due, unless so many wait that it must not take more.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        if self.is_full() { u64::MAX } else { self.session.due_ns() }
    }

    /// May no further operation wait?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.waiting_max
    }

    /// Operations that are due and have not been sent.
    pub(crate) fn backlog(&self) -> usize {
        self.waiting.len() + self.parked.len()
    }
}
