//! Connections that come and go by plan: when one is born, when one has lived, and whether another may follow.
//!
//! Not the connections (those are the worker's) and not faults: an end by plan waits for the replies that are out. One
//! of these per class and worker. Invariant: of a bounded total, no more connections are ever established than it says.

use brunt_plan::plan::{Class, Lifetime};
use brunt_plan::shard::{ClassShard, StreamPart};
use std::ops::Range;

/// The lifetimes of a class's connections on one worker.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    plan: Lifetime,
    /// Its connections, as numbers within the worker.
    pub links: Range<u32>,
    /// This worker's births among those of all.
    part: StreamPart,
    /// Zero of the schedule; `u64::MAX` before it begins.
    start_ns: u64,
    /// Births that were due and have happened, where they have a schedule.
    born: u64,
    /// Connections that may still be begun, attempts under way not among them; `u64::MAX` where the plan has no bound.
    left: u64,
    /// Links between two lives, waiting for a birth.
    idle: Vec<u32>,
}

impl Lifetimes {
    pub(crate) fn new(class: &Class, shard: &ClassShard, links: Range<u32>, part: StreamPart) -> Self {
        Self {
            plan: class.lifetime,
            idle: Vec::with_capacity(links.len()),
            links,
            part,
            start_ns: u64::MAX,
            born: 0,
            left: shard.connections_total.unwrap_or(u64::MAX),
        }
    }

    /// Are connections born by a schedule of their own?
    pub(crate) fn has_schedule(&self) -> bool {
        self.plan.connect_rate.is_some()
    }

    /// The schedule begins: from now on lifetimes count.
    pub(crate) fn begin(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Has it begun?
    pub(crate) fn has_begun(&self) -> bool {
        self.start_ns != u64::MAX
    }

    /// When the next birth is due; never while no link is idle.
    pub(crate) fn birth_ns(&self) -> u64 {
        match self.plan.connect_rate {
            Some(rate) if self.has_begun() && !self.idle.is_empty() && self.left > 0 => {
                let slot = u64::from(self.part.index) + self.born * u64::from(self.part.of);
                self.start_ns.saturating_add(rate.slot_ns(slot))
            }
            _ => u64::MAX,
        }
    }

    /// A link that has no connection waits for its birth.
    pub(crate) fn lay_idle(&mut self, link: u32) {
        self.idle.push(link);
    }

    /// The link of the birth that is due.
    pub(crate) fn bear(&mut self) -> Option<u32> {
        let link = self.idle.pop();
        self.born += u64::from(link.is_some());
        link
    }

    /// Sets a connection of the total aside for an attempt; false when there is none left.
    pub(crate) fn reserve(&mut self) -> bool {
        match self.left {
            _ if !self.has_begun() => true,
            u64::MAX => true,
            0 => false,
            _ => {
                self.left -= 1;
                true
            }
        }
    }

    /// Sets one aside for a link that has a connection, or an attempt under way, when the schedule begins.
    pub(crate) fn reserve_first(&mut self) {
        let reserved = self.reserve();
        assert!(reserved, "the plan has at least as many connections in all as at a time");
    }

    /// An attempt failed: it does not count.
    pub(crate) fn give_back(&mut self) {
        if self.has_begun() && self.left != u64::MAX {
            self.left += 1;
        }
    }

    /// Has the last connection of the total been begun?
    pub(crate) fn is_spent(&self) -> bool {
        self.has_begun() && self.left == 0
    }

    /// How many requests a new connection may carry.
    pub(crate) fn calls(&self) -> u64 {
        if self.has_begun() { self.plan.calls.unwrap_or(u64::MAX) } else { u64::MAX }
    }

    /// When a connection that is established at `now_ns` has lived. The first ones, which begin together, live a part of
    /// that each, so that their ends are spread.
    pub(crate) fn retire_ns(&self, link: u32, now_ns: u64, is_first: bool) -> u64 {
        match self.plan.reconnect_every {
            Some(every) if self.has_begun() => {
                let nth = u64::from(link - self.links.start) + 1;
                let count = self.links.len() as u64;
                let lives_ns = if is_first { every.0 / count * nth } else { every.0 };
                now_ns.saturating_add(lives_ns.max(1))
            }
            _ => u64::MAX,
        }
    }
}
