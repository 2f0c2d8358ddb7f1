//! Planned lifetimes of connections: when one opens, when one expires, and whether another may follow.
//!
//! One per class and worker. A connection that expires waits for replies in flight, and is no fault. Invariant: no
//! more connections are established than the plan's total.

use brunt_plan::arrival::Arrival;
use brunt_plan::op::ClassId;
use brunt_plan::plan::{Class, Lifetime, Reconnect};
use brunt_plan::shard::{ClassShard, Portion};
use brunt_workload::arrivals::Arrivals;
use std::collections::VecDeque;
use std::ops::Range;

/// The lifetimes of a class's connections on one worker.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    plan: Lifetime,
    reconnect: Reconnect,
    /// Failed attempts and lost connections count towards the total, without a replacement.
    pub counts_attempts: bool,
    /// Its connections, numbered within the worker.
    pub connections: Range<u32>,
    /// This worker's open_schedule among those of all, where they have a schedule.
    open_schedule: Option<Arrivals>,
    /// Ordinal within the class of the next established connection, and the step to the one after it.
    next_ordinal: u64,
    ordinal_step: u64,
    /// Zero of the schedule; `u64::MAX` before it begins.
    start_ns: u64,
    /// Connections that may still be opened, without attempts in progress; `u64::MAX` without a total.
    left: u64,
    /// Connections waiting to be opened, by server, longest wait first.
    idle: Vec<VecDeque<u32>>,
    /// The server of the next opening, if it has an idle connection.
    turn: usize,
    /// Connections that are established.
    pub up: u32,
}

impl Lifetimes {
    /// `by_server`: the class's connections to each server of the run; they are adjacent.
    pub(crate) fn new(
        (id, class): (ClassId, &Class),
        shard: &ClassShard,
        seed: u64,
        by_server: &[Range<u32>],
    ) -> Self {
        let own = by_server.iter().filter(|range| !range.is_empty());
        let connections = own.clone().map(|range| range.start).min().unwrap_or(0)
            ..own.map(|range| range.end).max().unwrap_or(0);
        let arrival = class.lifetime.connect_arrival.as_ref().unwrap_or(&Arrival::Uniform);
        let open_schedule = |rate| Arrivals::of_connects(arrival, rate, Portion::even(shard.part), seed, id);
        Self {
            open_schedule: class.lifetime.connect_rate.map(open_schedule),
            plan: class.lifetime.clone(),
            reconnect: class.reconnect,
            counts_attempts: class.counts_attempts(),
            idle: by_server.iter().map(|range| VecDeque::with_capacity(range.len())).collect(),
            turn: 0,
            up: 0,
            connections,
            next_ordinal: u64::from(shard.part.index),
            ordinal_step: u64::from(shard.part.of),
            start_ns: u64::MAX,
            left: shard.connections_total.unwrap_or(u64::MAX),
        }
    }

    /// Do connections open on a schedule of their own?
    pub(crate) fn has_schedule(&self) -> bool {
        self.open_schedule.is_some()
    }

    /// Begins the schedule: lifetimes count from now on.
    pub(crate) fn begin(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Has it begun?
    pub(crate) fn has_begun(&self) -> bool {
        self.start_ns != u64::MAX
    }

    /// Do connections open on schedule from now on?
    pub(crate) fn opens_by_schedule(&self) -> bool {
        self.has_schedule() && self.has_begun()
    }

    /// When the next opening is due; never while no connection is idle.
    pub(crate) fn next_open_ns(&self) -> u64 {
        match &self.open_schedule {
            Some(open_schedule) if self.has_begun() && self.left > 0 && self.has_idle() => {
                self.start_ns.saturating_add(open_schedule.peek_ns())
            }
            _ => u64::MAX,
        }
    }

    fn has_idle(&self) -> bool {
        self.idle.iter().any(|of_server| !of_server.is_empty())
    }

    /// Adds a connection that waits to be opened.
    pub(crate) fn add_idle(&mut self, index: u32, server: u16) {
        self.idle[usize::from(server)].push_back(index);
    }

    /// The idle connection to open next; servers take turns.
    pub(crate) fn open_next(&mut self) -> Option<u32> {
        let servers = self.idle.len();
        let server =
            (0..servers).map(|nth| (self.turn + nth) % servers).find(|at| !self.idle[*at].is_empty())?;
        self.turn = (server + 1) % servers;
        if let Some(open_schedule) = &mut self.open_schedule {
            open_schedule.advance();
        }
        self.idle[server].pop_front()
    }

    /// Reserves a connection of the total for an attempt; false if none is left.
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

    /// Reserves one for a connection or attempt that exists when the schedule begins.
    pub(crate) fn reserve_first(&mut self) {
        let reserved = self.reserve();
        assert!(reserved, "the plan has at least as many connections in all as at a time");
    }

    /// Returns the reservation of a failed attempt, unless attempts count.
    pub(crate) fn give_back(&mut self) {
        if !self.counts_attempts && self.has_begun() && self.left != u64::MAX {
            self.left += 1;
        }
    }

    /// May a lost connection be replaced? `others_up`: another one of the class is established. Always before the
    /// schedule begins.
    pub(crate) fn reconnects(&self, others_up: bool) -> bool {
        match self.reconnect {
            _ if !self.has_begun() => true,
            // The next one of the total is no replacement.
            _ if self.counts_attempts => true,
            Reconnect::Always => true,
            Reconnect::WhileOneStands => others_up,
            Reconnect::Never => false,
        }
    }

    /// Was the last connection of the total opened?
    pub(crate) fn is_spent(&self) -> bool {
        self.has_begun() && self.left == 0
    }

    /// Takes the ordinal of an established connection.
    pub(crate) fn take_ordinal(&mut self) -> u64 {
        let ordinal = self.next_ordinal;
        self.next_ordinal += self.ordinal_step;
        ordinal
    }

    /// Maximum requests of a new connection.
    pub(crate) fn calls(&self) -> u64 {
        if self.has_begun() { self.plan.calls.unwrap_or(u64::MAX) } else { u64::MAX }
    }

    /// When a connection established at `now_ns` expires. The first ones, which begin together, get a fraction
    /// each, so that their ends are spread.
    pub(crate) fn retire_ns(&self, index: u32, now_ns: u64, is_first: bool) -> u64 {
        match self.plan.reconnect_every {
            Some(every) if self.has_begun() => {
                let nth = u64::from(index - self.connections.start) + 1;
                let count = self.connections.len() as u64;
                let lives_ns = if is_first { every.0 / count * nth } else { every.0 };
                now_ns.saturating_add(lives_ns.max(1))
            }
            _ => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

    /// Connections that expire before the next opening: connections and servers take turns.
    #[test]
    fn connections_open_to_servers_in_turn() {
        let spec =
            PlanSpec::from_toml("server = ['a', 'b', 'c']\nconnect-rate = 10\nreconnect-every = '1ms'")
                .unwrap();
        let plan = resolve(&spec, &Host { allowed_cpus: vec![0, 1], random_seed: 1 }).unwrap();
        let shard = brunt_plan::shard::shards(&plan).remove(0);
        let by_server = [0..6, 6..11, 11..16];
        let server_of = |index: u32| by_server.iter().position(|range| range.contains(&index)).unwrap();
        let mut lifetimes = Lifetimes::new((0, &plan.classes[0]), &shard.classes[0], plan.seed, &by_server);
        lifetimes.begin(0);
        (0..16).for_each(|index| lifetimes.add_idle(index, server_of(index) as u16));
        let mut open_schedule = vec![0; 16];
        for birth in 0..480 {
            assert_eq!(lifetimes.next_open_ns(), birth * 100_000_000);
            let index = lifetimes.open_next().unwrap();
            assert_eq!(server_of(index), birth as usize % 3);
            open_schedule[index as usize] += 1;
            lifetimes.add_idle(index, server_of(index) as u16);
        }
        assert!(open_schedule.iter().all(|count| (26..=32).contains(count)), "{open_schedule:?}");
    }
}
