//! The connections of a worker: their timers, their planned lifetimes, and which have bytes to send or are to be closed.
//!
//! Setup requests are no operations and have no samples; their bytes count as sent. Lifetimes are of a class: when a connection
//! opens, when it expires, and whether another may follow; one that expires waits for replies in flight, and is no fault. Invariants: a
//! connection takes no operation before every setup reply has come and is a success; no more connections are established than the plan's
//! total.

use crate::state::connection::{Connection, ConnectionState, Leftovers};
use crate::state::dispatch::DeadlineQueue;
use brunt_plan::arrival::Arrival;
use brunt_plan::op::ClassId;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::{Class, Lifetime, Reconnect};
use brunt_plan::shard::{ClassShard, Portion};
use brunt_proto::Codec;
use brunt_workload::arrivals::Arrivals;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut, Range};

/// Class, server and kind of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionPlan {
    /// Its class.
    pub class: u16,
    /// Its server.
    pub server: u16,
    /// It is a datagram socket.
    pub by_datagram: bool,
}

/// State of a connection setup.
#[derive(Debug)]
pub(crate) enum SetupStatus {
    /// Replies are pending.
    Pending,
    /// It succeeded.
    Accepted,
    /// It was rejected; the reason, for a user, is empty if the run has begun and goes on.
    Rejected(String),
}

/// The connections of a worker.
pub(crate) struct Connections<C: Codec> {
    pub all: Vec<Connection<C>>,
    /// When each is opened, times out or expires.
    pub timers: DeadlineQueue,
    /// By class.
    pub lifetimes: Vec<Lifetimes>,
    /// Those with bytes to send.
    pub dirty: Vec<u32>,
    /// When the last bytes to send were queued.
    pub queued_ns: u64,
    /// Expired ones without operations in flight.
    retired: Vec<u32>,
    pub leftovers: Leftovers,
    pub codec: C,
    /// The codec of streams, if connections may be datagram sockets.
    stream_codec: C,
    /// Why a setup was rejected, until that is reported.
    setup_rejected: Option<String>,
    /// Errno of a failed setup send that was not reported yet.
    pub setup_send_error: Option<i32>,
}

impl<C: Codec> Connections<C> {
    /// Each before its first attempt, with a send queue of this size.
    pub(crate) fn new(codec: C, plans: &[ConnectionPlan], room: usize, lifetimes: Vec<Lifetimes>) -> Self {
        let count = plans.len();
        let stream_codec = codec.stream_codec();
        let connection = |plan: &ConnectionPlan| {
            let codec = if plan.by_datagram { &codec } else { &stream_codec };
            Connection::new(codec.clone(), room, plan.class, plan.server)
        };
        let mut all: Vec<_> = plans.iter().map(connection).collect();
        let mut timers = DeadlineQueue::new(count as u32);
        (0..count as u32).for_each(|index| timers.set(index, 0));
        let counted = lifetimes.iter().filter(|lifetimes| lifetimes.counts_attempts);
        for index in counted.flat_map(|lifetimes| lifetimes.connections.clone()) {
            all[index as usize].state = ConnectionState::Idle;
            timers.set(index, u64::MAX);
        }
        let has_streams = !plans.iter().all(|plan| plan.by_datagram);
        Self {
            all,
            timers,
            lifetimes,
            dirty: Vec::with_capacity(count),
            queued_ns: 0,
            retired: Vec::with_capacity(count),
            leftovers: Leftovers::new(if has_streams { count } else { 0 }, C::UNIT_BYTES_MAX),
            codec,
            stream_codec,
            setup_rejected: None,
            setup_send_error: None,
        }
    }

    /// Is this connection a datagram socket?
    #[inline(always)]
    pub(crate) fn is_by_datagram(&self, index: u32) -> bool {
        C::DATAGRAMS && self[index].codec.is_by_datagram()
    }

    /// The lifetimes of a connection's class.
    pub(crate) fn lifetimes_of(&self, index: u32) -> &Lifetimes {
        &self.lifetimes[usize::from(self[index].class)]
    }

    /// As `lifetimes_of`.
    pub(crate) fn lifetimes_of_mut(&mut self, index: u32) -> &mut Lifetimes {
        let class = self[index].class;
        &mut self.lifetimes[usize::from(class)]
    }

    /// Resets a closed connection to this state.
    pub(crate) fn reset(&mut self, index: u32, state: ConnectionState) {
        let fresh =
            if C::DATAGRAMS && !self.is_by_datagram(index) { &self.stream_codec } else { &self.codec };
        self.all[index as usize].reset(fresh, state);
        let retry_ns = if let ConnectionState::Down { retry_ns } = state { retry_ns } else { u64::MAX };
        self.timers.set(index, retry_ns);
    }

    /// Makes scheduled openings due. Returns when the next one is.
    pub(crate) fn open_due(&mut self, now_ns: u64) -> u64 {
        let mut next_ns = u64::MAX;
        for lifetimes in &mut self.lifetimes {
            while lifetimes.next_open_ns() <= now_ns {
                let Some(index) = lifetimes.open_next() else { break };
                self.all[index as usize].state = ConnectionState::Down { retry_ns: now_ns };
                self.timers.set(index, now_ns);
            }
            next_ns = next_ns.min(lifetimes.next_open_ns());
        }
        next_ns
    }

    /// Will this connection be replaced when it is lost now?
    pub(crate) fn reconnects(&self, index: u32) -> bool {
        let lifetimes = self.lifetimes_of(index);
        let others = lifetimes.up - u32::from(self[index].state == ConnectionState::Up);
        lifetimes.reconnects(others > 0)
    }

    /// Will a connection never open again?
    pub(crate) fn is_over(&self, index: u32) -> bool {
        match self[index].state {
            ConnectionState::Gone => true,
            ConnectionState::Idle => self.lifetimes_of(index).is_spent(),
            ConnectionState::Down { .. } | ConnectionState::Connecting { .. } | ConnectionState::Up => false,
        }
    }

    /// Has the last connection of every class expired, so that no operation can be sent?
    pub(crate) fn are_over(&self) -> bool {
        self.lifetimes.iter().all(|lifetimes| {
            lifetimes.is_spent() && lifetimes.connections.clone().all(|index| self.is_over(index))
        })
    }

    /// Adds a retiring connection to the expired ones once nothing is in flight.
    pub(crate) fn check_retired(&mut self, index: u32) {
        let connection = &self[index];
        if connection.retiring && connection.state == ConnectionState::Up && connection.outstanding() == 0 {
            self.retired.push(index);
        }
    }

    /// The next expired connection, to be closed.
    pub(crate) fn take_retired(&mut self) -> Option<u32> {
        while let Some(index) = self.retired.pop() {
            // The peer may have ended it first.
            let connection = &self[index];
            if connection.retiring && connection.state == ConnectionState::Up {
                return Some(index);
            }
        }
        None
    }

    /// Is a connection in setup?
    pub(crate) fn is_in_setup(&self, index: u32) -> bool {
        C::HAS_SETUP && matches!(self[index].state, ConnectionState::Connecting { .. })
    }

    /// Queues the setup requests of a connected socket. False if there are none.
    pub(crate) fn queue_setup(&mut self, index: u32) -> bool {
        let setup = self.codec.connection_setup();
        if !C::HAS_SETUP || setup.replies == 0 {
            return false;
        }
        let connection = &mut self.all[index as usize];
        // An attempt at another address may have got this far.
        connection.reset(&self.codec, connection.state);
        connection.has_begun_setup = true;
        connection.out.put(setup.bytes);
        true
    }

    /// Notes a setup reply. False if it rejects the setup.
    pub(crate) fn accept_setup_reply(&mut self, index: u32, reply: ReplyKind, text: &[u8]) -> bool {
        let connection = &mut self.all[index as usize];
        let number = connection.setup_replies;
        connection.setup_replies += 1;
        if self.codec.accepts_setup_reply(reply) {
            return true;
        }
        if self.setup_rejected.is_none() {
            let is_told = !connection.was_up;
            let reason = if is_told { self.codec.setup_error(number, reply, text) } else { String::new() };
            self.setup_rejected = Some(reason);
        }
        false
    }

    /// The state of a setup after something was received.
    pub(crate) fn take_setup_status(&mut self, index: u32) -> SetupStatus {
        match self.setup_rejected.take() {
            Some(reason) => SetupStatus::Rejected(reason),
            None if self[index].setup_replies < self.codec.connection_setup().replies => SetupStatus::Pending,
            None => SetupStatus::Accepted,
        }
    }

    /// The unanswered setup request of a failed attempt; `None` if the socket never connected.
    pub(crate) fn unanswered_setup_step(&self, index: u32) -> Option<&'static str> {
        let connection = &self[index];
        connection.has_begun_setup.then(|| self.codec.setup_step(connection.setup_replies))
    }

    /// The errno of the last setup send, if it failed.
    pub(crate) fn take_setup_send_error(&mut self) -> Option<i32> {
        if C::HAS_SETUP { self.setup_send_error.take() } else { None }
    }
}

impl<C: Codec> Index<u32> for Connections<C> {
    type Output = Connection<C>;

    #[inline(always)]
    fn index(&self, index: u32) -> &Connection<C> {
        &self.all[index as usize]
    }
}

impl<C: Codec> IndexMut<u32> for Connections<C> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut Connection<C> {
        &mut self.all[index as usize]
    }
}

/// The lifetimes of a class's connections on one worker.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    plan: Lifetime,
    reconnect: Reconnect,
    /// Failed attempts and lost connections count towards the total, without a replacement.
    pub counts_attempts: bool,
    /// Its connections, numbered within the worker.
    pub connections: Range<u32>,
    /// This worker's openings among those of all, where they have a schedule.
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
    use crate::loopback::plan as planned;

    /// Connections that expire before the next opening: connections and servers take turns.
    #[test]
    fn connections_open_to_servers_in_turn() {
        let plan = planned("server = ['a', 'b', 'c']\nconnect-rate = 10\nreconnect-every = '1ms'");
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
