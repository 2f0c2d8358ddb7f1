//! The connections of a worker: their timers, their planned lifetimes, and which have bytes to send or are to be closed.
//!
//! Setup requests are no operations and have no samples; their bytes count as sent. Invariant: a connection takes no
//! operation before every setup reply has come and is a success.

use crate::state::connection::{Connection, ConnectionState, Leftovers};
use crate::state::deadline_queue::DeadlineQueue;
use crate::state::lifetime::Lifetimes;
use brunt_plan::outcome::ReplyKind;
use brunt_proto::Codec;
use std::ops::{Index, IndexMut};

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
    #[inline]
    pub(crate) fn check_retired(&mut self, index: u32) {
        let connection = &self[index];
        if connection.retiring && connection.state == ConnectionState::Up && connection.outstanding() == 0 {
            self.retired.push(index);
        }
    }

    /// The next expired connection, to be closed.
    #[inline]
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
    #[inline]
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
    #[inline]
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
