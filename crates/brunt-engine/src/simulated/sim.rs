//! A deterministic network, servers and clock behind [`Io`], for tests only.
//!
//! The production worker runs on it unchanged. Time moves only inside `wait`, to the next event or exactly to the
//! instant that the caller passes; the servers are the reference server's core, which shares no code with the codecs. All
//! latencies follow from the options, to the nanosecond. TCP is simplified: bytes arrive whole after the latency,
//! or wait at a server that does not read, and a connection takes no more than its buffer holds. The wall clock,
//! used for timestamps, is separate and may be set by the options.

use crate::allocations::allocations;
use crate::clock::WallReading;
use crate::io::{
    Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, Io, SendResult, Stamps, Transmitted, Until,
};
use crate::run::DataSets;
use crate::transport::Address;
use crate::transport::tls_client::TlsClient;
use brunt_server::core::ConnectionId;
use brunt_server::{Core, CoreOptions, End};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::IoSlice;
use std::num::NonZeroU64;

/// The clock of every world begins here.
pub(crate) const EPOCH_NS: u64 = 1_000_000_000;

/// How far the wall clock of every world is ahead of that.
const WALL_LEAD_NS: u64 = 1_700_000_000_000_000_000;

/// A time in which a server reads nothing: sent bytes stay in the buffers of the connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deaf {
    /// Which server.
    pub server: usize,
    /// On the clock of the world.
    pub at_ns: u64,
    pub for_ns: u64,
}

/// How an attempt to connect goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectTrouble {
    /// Reported by the call itself.
    AtOnce(i32),
    /// Reported after a round trip.
    Later(i32),
    /// Never reported.
    Silence,
}

/// Attempts to connect that go wrong: of all attempts, counted from 0, those numbered `first`, `first + every`, and so
/// on, `count` of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectFault {
    pub first: u64,
    pub every: u64,
    pub count: u64,
    pub trouble: ConnectTrouble,
}

impl ConnectFault {
    fn hits(&self, attempt: u64) -> bool {
        attempt.checked_sub(self.first).is_some_and(|since| {
            since.is_multiple_of(self.every.max(1)) && since / self.every.max(1) < self.count
        })
    }
}

/// What the simulated world is like.
#[derive(Clone, Debug)]
pub(crate) struct SimOptions {
    /// The first server: port 1.
    pub server: CoreOptions,
    /// The others: ports 2, 3 and so on.
    pub others: Vec<CoreOptions>,
    /// What of the data sets is there before the run.
    pub data: DataSets,
    /// There are more workers than CPUs, as told to this one.
    pub is_crowded: bool,
    /// From one end of the network to the other, nanoseconds.
    pub latency_ns: u64,
    /// Establishing a connection takes so much longer than a way there and back.
    pub connect_ns: u64,
    /// What one call of send costs the client.
    pub send_cost_ns: u64,
    /// Sends are handed in together, with the next wait.
    pub defers_sends: bool,
    /// Cost of a poll without sleeping, so that a spinning worker advances.
    pub look_cost_ns: u64,
    /// How much later than what ends it the client wakes from a sleep.
    pub wake_ns: u64,
    /// Every send is a datagram, and so is every reply or part of one.
    pub datagrams: bool,
    /// Replies reach the client in pieces of at most this many bytes.
    pub piece_bytes: usize,
    /// The client is stopped at the first instant for the second's length.
    pub pause: Option<(u64, u64)>,
    /// It does so again and again, this long after the last time it began; 0 is once.
    pub pause_every_ns: u64,
    /// It does so in a send, before the bytes go out, and not where it waits.
    pub pauses_in_send: bool,
    /// It does so behind a poll, which returns nothing of what comes meanwhile: a stop cuts it short.
    pub pauses_behind_poll: bool,
    /// Bytes that a connection takes before the server has read them.
    pub buffer_bytes: usize,
    /// When another client empties the first server.
    pub flush_ns: Option<u64>,
    /// When servers read nothing.
    pub deaf: Vec<Deaf>,
    /// Attempts to connect that go wrong.
    pub connect_faults: Vec<ConnectFault>,
    /// Sends between broken connections, and their errno.
    pub send_fault: Option<(NonZeroU64, i32)>,
    /// What becomes of replies on their way to the client.
    pub tamper: Option<fn(&mut Vec<u8>)>,
    /// When the wall clock is set forward, and by how much.
    pub wall_step: Option<(u64, u64)>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            server: CoreOptions::default(),
            data: DataSets::ToStore,
            is_crowded: false,
            others: Vec::new(),
            latency_ns: 0,
            connect_ns: 0,
            send_cost_ns: 0,
            defers_sends: false,
            look_cost_ns: 50,
            wake_ns: 0,
            datagrams: false,
            piece_bytes: usize::MAX,
            pause: None,
            pause_every_ns: 0,
            pauses_in_send: false,
            pauses_behind_poll: false,
            buffer_bytes: usize::MAX,
            flush_ns: None,
            deaf: Vec::new(),
            connect_faults: Vec::new(),
            send_fault: None,
            tamper: None,
            wall_step: None,
        }
    }
}

impl SimOptions {
    /// A world of one server, without latency.
    pub(crate) fn of(server: CoreOptions) -> Self {
        Self { server, ..Self::default() }
    }

    /// The same with a network.
    pub(crate) fn latency(self, latency_ns: u64) -> Self {
        Self { latency_ns, ..self }
    }
}

/// The server's number for the client that empties it: no client of the run has it.
const FLUSHER: ConnectionId = 5_000;

/// Index of a connection among all of the run.
type WireId = usize;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An attempt to connect reaches the server.
    AtDoor { wire: WireId },
    /// It is established, or refused, and the client gets to know.
    Answered { wire: WireId, errno: Option<i32> },
    /// Bytes of a client reach the server.
    AtServer { wire: WireId, bytes: Vec<u8> },
    /// Another client empties the first server.
    Flush,
    /// The end that the client made reaches the server.
    EndAtServer { wire: WireId },
    /// The client learns how many bytes the server has read.
    Read { wire: WireId, bytes: usize },
    /// Bytes of the server reach the client.
    AtClient { wire: WireId, bytes: Vec<u8> },
    /// The end that the server made reaches the client.
    EndAtClient { wire: WireId, errno: Option<i32> },
}

/// One connection from its first attempt to its end.
#[derive(Debug)]
struct Wire {
    index: ConnectionIndex,
    server: usize,
    /// The server's number for it, while it is open there.
    peer: Option<ConnectionId>,
    is_established: bool,
    /// Bytes sent that the client does not know to be read.
    unread: usize,
    /// A send was partial, and room is to be reported.
    wants_room: bool,
    /// When the last bytes arrive at the server: what follows does not overtake them.
    arrival_ns: u64,
    /// It was reset, which the client has not noticed yet.
    broken: Option<i32>,
    /// When the request left whose stamp was asked for, on the wall clock.
    transmitted: Transmitted,
}

/// Something for the client to take in.
#[derive(Debug)]
struct Ready {
    wire: WireId,
    kind: CompletionKind,
    bytes: Vec<u8>,
    /// When it came.
    came_ns: u64,
}

#[derive(Debug)]
struct Server {
    core: Core,
    /// By the server's number of the connection.
    wires: Vec<WireId>,
    free: Vec<ConnectionId>,
}

/// An attempt to connect, as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub at_ns: u64,
    pub index: ConnectionIndex,
    pub server: usize,
}

/// The simulated world as one worker sees it.
#[derive(Debug)]
pub(crate) struct Sim {
    options: SimOptions,
    /// Deferred sends, and results of submitted ones.
    deferred: Vec<(ConnectionIndex, Vec<u8>)>,
    handed_in: VecDeque<(ConnectionIndex, SendResult)>,
    now_ns: u64,
    servers: Vec<Server>,
    wires: Vec<Wire>,
    /// The current connection of each index.
    connections: Vec<Option<WireId>>,
    /// By time, then in order of their making.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
    /// What the last wait found for the client.
    ready: VecDeque<Ready>,
    /// What the next one will find, and up to when the last one has found everything.
    behind_poll: VecDeque<Ready>,
    seen_ns: u64,
    current: Vec<u8>,
    /// When the bytes of the last completion came.
    current_came_ns: u64,
    polled_ns: u64,
    calls: u64,
    /// Waits that did not sleep and brought nothing.
    looks_in_vain: u64,
    /// Time that the client slept, if it takes time to wake.
    slept_ns: u64,
    /// Time for which it was stopped.
    stood_still_ns: u64,
    wake_up_ns: u64,
    sends: u64,
    attempts: Vec<Attempt>,
    sent: Vec<u8>,
    /// Allocations that were the world's own.
    allocations: u64,
}

impl Sim {
    /// A world for this many connections; its clock begins at [`EPOCH_NS`].
    pub(crate) fn new(connections: usize, options: SimOptions) -> Self {
        let servers = std::iter::once(&options.server).chain(&options.others);
        let server = |core: &CoreOptions| Server {
            core: Core::new(core.clone()),
            wires: Vec::new(),
            free: Vec::new(),
        };
        let flushes = options.flush_ns.iter().map(|at_ns| Reverse((*at_ns, 0, Event::Flush)));
        Self {
            servers: servers.map(server).collect(),
            deferred: Vec::new(),
            handed_in: VecDeque::new(),
            now_ns: EPOCH_NS,
            wires: Vec::new(),
            connections: vec![None; connections],
            events: flushes.collect(),
            wake_up_ns: 0,
            options,
            made: 0,
            ready: VecDeque::new(),
            behind_poll: VecDeque::new(),
            seen_ns: EPOCH_NS,
            current: Vec::new(),
            current_came_ns: 0,
            polled_ns: 0,
            calls: 0,
            looks_in_vain: 0,
            slept_ns: 0,
            stood_still_ns: 0,
            sends: 0,
            attempts: Vec::new(),
            sent: Vec::new(),
            allocations: 0,
        }
    }

    /// A server's core, for its counters.
    pub(crate) fn core(&self, server: usize) -> &Core {
        &self.servers[server].core
    }

    /// Every attempt to connect, in order.
    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Every byte that was taken from the client, in the order of the calls.
    pub(crate) fn sent(&self) -> &[u8] {
        &self.sent
    }

    /// Polls without sleeping that returned nothing.
    pub(crate) fn looks_in_vain(&self) -> u64 {
        self.looks_in_vain
    }

    /// Time that the client slept, if it takes time to wake.
    pub(crate) fn slept_ns(&self) -> u64 {
        self.slept_ns
    }

    /// How often memory was allocated for the world itself, and not by the worker in it.
    pub(crate) fn allocations(&self) -> u64 {
        self.allocations
    }

    /// Lets everything that is under way arrive, without a client.
    pub(crate) fn settle(&mut self) {
        while self.next_event_ns() != u64::MAX {
            self.ready.clear();
            self.advance(u64::MAX);
        }
    }

    fn make(&mut self, at_ns: u64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((at_ns, self.made, event)));
    }

    /// Does the client still hold this connection?
    fn is_held(&self, wire: WireId) -> bool {
        self.connections[self.wires[wire].index as usize] == Some(wire)
    }

    /// When what leaves the client now is read by the server.
    fn arrival_ns(&self, wire: WireId) -> u64 {
        let Wire { server, arrival_ns, .. } = self.wires[wire];
        let mut at_ns = arrival_ns.max(self.now_ns + self.options.latency_ns);
        // Spans may follow each other in any order.
        while let Some(deaf) = self.options.deaf.iter().find(|deaf| {
            deaf.server == server && (deaf.at_ns..deaf.at_ns.saturating_add(deaf.for_ns)).contains(&at_ns)
        }) {
            at_ns = deaf.at_ns.saturating_add(deaf.for_ns);
        }
        at_ns
    }

    /// Sends what is due at `at_ns` from the servers.
    fn serve(&mut self, at_ns: u64) {
        for server in 0..self.servers.len() {
            while let Some(departure) = self.servers[server].core.pop_due(at_ns) {
                let (peer, end) = (departure.connection, departure.end);
                let arrives_ns = departure.departure_ns + self.options.latency_ns;
                let mut bytes = departure.bytes.to_vec();
                if let Some(tamper) = self.options.tamper {
                    tamper(&mut bytes);
                }
                let wire = self.servers[server].wires[peer as usize];
                for piece in bytes.chunks(self.options.piece_bytes) {
                    self.make(arrives_ns, Event::AtClient { wire, bytes: piece.to_vec() });
                }
                let errno = match end {
                    End::Stays => continue,
                    End::Closes => None,
                    End::Resets => Some(libc::ECONNRESET),
                };
                self.make(arrives_ns, Event::EndAtClient { wire, errno });
                self.disconnect(wire);
            }
        }
    }

    /// The server's side of a connection is over.
    fn disconnect(&mut self, wire: WireId) {
        if let Some(peer) = self.wires[wire].peer.take() {
            let server = &mut self.servers[self.wires[wire].server];
            server.core.disconnect(peer);
            server.free.push(peer);
        }
    }

    /// The next thing that happens anywhere.
    fn next_event_ns(&self) -> u64 {
        let network_ns = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, _, _))| *at_ns);
        let departures = self.servers.iter().filter_map(|server| server.core.next_departure_ns());
        departures.fold(network_ns, u64::min)
    }

    /// Lets everything happen up to and including `until_ns`, but not beyond the instant at which the client first has
    /// something to take in.
    fn advance(&mut self, until_ns: u64) {
        loop {
            let next_ns = self.next_event_ns();
            let is_over = next_ns > until_ns || next_ns == u64::MAX;
            if is_over || (!self.ready.is_empty() && next_ns > self.now_ns) {
                break;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.serve(next_ns);
            if self.events.peek().is_some_and(|Reverse((at_ns, _, _))| *at_ns <= next_ns)
                && let Some(Reverse((_, _, event))) = self.events.pop()
            {
                self.happen(next_ns, event);
            }
        }
        if self.ready.is_empty() && until_ns != u64::MAX {
            self.now_ns = self.now_ns.max(until_ns);
        }
    }

    fn happen(&mut self, at_ns: u64, event: Event) {
        match event {
            Event::AtDoor { wire } => self.knock(wire, at_ns),
            Event::AtServer { wire, bytes } => {
                let Wire { server, peer, .. } = self.wires[wire];
                if let Some(peer) = peer {
                    let core = &mut self.servers[server].core;
                    match self.options.datagrams {
                        true => core.receive_datagram(peer, &bytes, at_ns),
                        false => core.receive(peer, &bytes, at_ns),
                    }
                    if self.options.buffer_bytes != usize::MAX {
                        let bytes = bytes.len();
                        self.make(at_ns + self.options.latency_ns, Event::Read { wire, bytes });
                    }
                }
            }
            Event::Flush => {
                let core = &mut self.servers[0].core;
                core.connect(FLUSHER);
                core.receive(FLUSHER, b"flush_all noreply\r\n", at_ns);
                core.disconnect(FLUSHER);
            }
            Event::EndAtServer { wire } => self.disconnect(wire),
            Event::Answered { wire, .. }
            | Event::Read { wire, .. }
            | Event::AtClient { wire, .. }
            | Event::EndAtClient { wire, .. }
                if !self.is_held(wire) => {}
            Event::Answered { wire, errno } => {
                self.wires[wire].is_established = errno.is_none();
                let kind = errno.map_or(CompletionKind::Connected, CompletionKind::ConnectFailed);
                self.ready.push_back(Ready { wire, kind, bytes: Vec::new(), came_ns: at_ns });
            }
            Event::Read { wire, bytes } => {
                self.wires[wire].unread -= bytes;
                if std::mem::take(&mut self.wires[wire].wants_room) {
                    let kind = CompletionKind::Writable;
                    self.ready.push_back(Ready { wire, kind, bytes: Vec::new(), came_ns: at_ns });
                }
            }
            Event::AtClient { wire, bytes } => {
                let chunk = Chunk { start: 0, len: bytes.len() };
                self.ready.push_back(Ready {
                    wire,
                    kind: CompletionKind::Received(chunk),
                    bytes,
                    came_ns: at_ns,
                });
            }
            Event::EndAtClient { wire, errno } => {
                self.wires[wire].broken = errno;
                let kind = CompletionKind::Closed(errno);
                self.ready.push_back(Ready { wire, kind, bytes: Vec::new(), came_ns: at_ns });
            }
        }
    }

    /// An attempt to connect is at the server's door.
    fn knock(&mut self, wire: WireId, at_ns: u64) {
        let answered_ns = at_ns + self.options.latency_ns + self.options.connect_ns;
        let server = &mut self.servers[self.wires[wire].server];
        let errno = if server.core.is_gone(at_ns) {
            Some(libc::ECONNREFUSED)
        } else {
            let peer = server.free.pop().unwrap_or_else(|| {
                server.wires.push(wire);
                server.wires.len() as ConnectionId - 1
            });
            server.wires[peer as usize] = wire;
            match self.options.datagrams {
                true => server.core.connect_peer(peer),
                false => server.core.connect(peer),
            }
            self.wires[wire].peer = Some(peer);
            None
        };
        self.make(answered_ns, Event::Answered { wire, errno });
    }

    fn begin_connecting(&mut self, index: ConnectionIndex, address: &Address) -> Result<(), i32> {
        assert_eq!(self.connections[index as usize], None, "index {index} is in use");
        let server = usize::from(address.network().expect("servers have ports here").port()) - 1;
        let attempt = self.attempts.len() as u64;
        self.attempts.push(Attempt { at_ns: self.now_ns, index, server });
        let fault = self.options.connect_faults.iter().find(|fault| fault.hits(attempt));
        let trouble = fault.map(|fault| fault.trouble);
        if let Some(ConnectTrouble::AtOnce(errno)) = trouble {
            return Err(errno);
        }
        let wire = self.wires.len();
        self.wires.push(Wire {
            index,
            server,
            peer: None,
            is_established: false,
            unread: 0,
            wants_room: false,
            arrival_ns: 0,
            broken: None,
            transmitted: Transmitted::Unknown,
        });
        self.connections[index as usize] = Some(wire);
        let latency_ns = self.options.latency_ns;
        match trouble {
            None => self.make(self.now_ns + latency_ns, Event::AtDoor { wire }),
            Some(ConnectTrouble::Later(errno)) => {
                self.make(self.now_ns + 2 * latency_ns, Event::Answered { wire, errno: Some(errno) });
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn take_bytes(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> SendResult {
        self.sends += 1;
        if self.options.pauses_in_send && self.is_pause_due() {
            self.stand_still();
        }
        self.now_ns += self.options.send_cost_ns;
        let at_ns = self.now_ns;
        let Some(wire) = self.connections[index as usize].filter(|wire| self.wires[*wire].is_established)
        else {
            panic!("bytes for index {index}, which is not connected");
        };
        let scripted = self.options.send_fault.filter(|(every, _)| self.sends.is_multiple_of(every.get()));
        if let Some(errno) = self.wires[wire].broken.or(scripted.map(|(_, errno)| errno)) {
            return SendResult { taken: Err(errno), at_ns };
        }
        let room = self.options.buffer_bytes - self.wires[wire].unread;
        let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        let taken = bytes.len().min(room);
        self.wires[wire].wants_room = taken < bytes.len();
        bytes.truncate(taken);
        self.sent.extend_from_slice(&bytes);
        if taken > 0 {
            if self.options.buffer_bytes != usize::MAX {
                self.wires[wire].unread += taken;
            }
            let arrival_ns = self.arrival_ns(wire);
            self.wires[wire].arrival_ns = arrival_ns;
            self.make(arrival_ns, Event::AtServer { wire, bytes });
        }
        SendResult { taken: Ok(taken), at_ns }
    }

    fn end(&mut self, index: ConnectionIndex, mode: CloseMode) {
        if let Some(wire) = self.connections[index as usize].take() {
            // An orderly close follows the sent bytes; a reset overtakes unread ones.
            let at_ns = match mode {
                CloseMode::Orderly => self.arrival_ns(wire),
                CloseMode::Reset => self.now_ns + self.options.latency_ns,
            };
            self.make(at_ns, Event::EndAtServer { wire });
        }
    }

    fn pass_time(&mut self, until: Until) -> u64 {
        let before_ns = self.now_ns;
        if !self.behind_poll.is_empty() {
            self.ready.append(&mut self.behind_poll);
            self.polled_ns = std::mem::replace(&mut self.seen_ns, self.now_ns);
            return self.now_ns;
        }
        match until {
            Until::Now => {
                let look_ns = self.now_ns + self.options.look_cost_ns;
                self.advance(look_ns);
                self.polled_ns = before_ns;
                self.looks_in_vain += u64::from(self.ready.is_empty());
            }
            Until::Instant(at_ns) => {
                self.advance(at_ns);
                // A reply that came before is not slept for, and one that comes with the wake-up is read with it.
                if self.now_ns > before_ns && self.options.wake_ns > 0 {
                    self.go_on_until(self.now_ns + self.options.wake_ns);
                    self.slept_ns += self.now_ns - before_ns;
                }
                // Bytes that ended the sleep came a wake-up before it was over.
                let slept_ns = if self.now_ns < at_ns { self.now_ns - self.wake_up_ns } else { at_ns };
                self.polled_ns = slept_ns.max(before_ns);
            }
        }
        self.seen_ns = self.now_ns;
        if !self.options.pauses_in_send && self.is_pause_due() {
            self.polled_ns = self.now_ns;
            if self.options.pauses_behind_poll {
                let found = std::mem::take(&mut self.ready);
                self.stand_still();
                self.behind_poll = std::mem::replace(&mut self.ready, found);
            } else {
                self.stand_still();
                self.seen_ns = self.now_ns;
            }
        }
        self.now_ns
    }

    fn is_pause_due(&self) -> bool {
        self.options.pause.is_some_and(|(at_ns, _)| self.now_ns >= at_ns)
    }

    /// Stops the process: the network and the servers go on.
    fn stand_still(&mut self) {
        let Some((at_ns, for_ns)) = self.options.pause else { return };
        let every_ns = self.options.pause_every_ns;
        self.options.pause = (every_ns > 0).then(|| (at_ns + every_ns, for_ns));
        self.stood_still_ns += for_ns;
        self.go_on_until(at_ns + for_ns);
    }

    /// Lets everything happen up to an instant, whatever the client has to take in.
    fn go_on_until(&mut self, at_ns: u64) {
        while self.next_event_ns() <= at_ns {
            let ready = std::mem::take(&mut self.ready);
            self.advance(at_ns);
            let later = std::mem::replace(&mut self.ready, ready);
            self.ready.extend(later);
        }
        self.now_ns = self.now_ns.max(at_ns);
    }

    /// Takes datagrams as long as there is room for them.
    fn take_datagrams(&mut self, index: ConnectionIndex, bytes: &[u8], ends: &[u32]) -> SendResult {
        let mut taken = 0;
        for end in ends {
            let result = self.take_bytes(index, &[IoSlice::new(&bytes[taken..*end as usize])]);
            match result.taken {
                Ok(1..) => taken = *end as usize,
                Ok(0) => break,
                Err(_) if taken > 0 => break,
                Err(_) => return result,
            }
        }
        SendResult { taken: Ok(taken), at_ns: self.now_ns }
    }

    /// Takes bytes now, or with others when they are handed in.
    fn take_or_defer(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        if !self.options.defers_sends {
            return Some(self.take_bytes(index, parts));
        }
        assert!(self.deferred.iter().all(|(of, _)| *of != index), "one send at a time on index {index}");
        self.deferred.push((index, parts.iter().flat_map(|part| part.to_vec()).collect()));
        None
    }

    /// Takes all that was deferred.
    fn hand_in(&mut self) {
        let at_ns = self.now_ns;
        for (index, bytes) in std::mem::take(&mut self.deferred) {
            let result = self.take_bytes(index, &[IoSlice::new(&bytes)]);
            self.handed_in.push_back((index, SendResult { at_ns, ..result }));
        }
    }

    fn next_ready(&mut self) -> Option<Completion> {
        if let Some((index, SendResult { taken, at_ns })) = self.handed_in.pop_front() {
            return Some(Completion { index, at_ns, polled_ns: at_ns, kind: CompletionKind::Sent(taken) });
        }
        loop {
            let Ready { wire, kind, bytes, came_ns } = self.ready.pop_front()?;
            if !self.is_held(wire) {
                continue;
            }
            let index = self.wires[wire].index;
            (self.current, self.current_came_ns) = (bytes, came_ns);
            let kind = match kind {
                CompletionKind::Received(chunk) if self.wires[wire].transmitted != Transmitted::Unknown => {
                    CompletionKind::Stamped(chunk)
                }
                kind => kind,
            };
            if let CompletionKind::Closed(_) | CompletionKind::ConnectFailed(_) = kind {
                self.deferred.retain(|(of, _)| *of != index);
                self.connections[index as usize] = None;
            }
            return Some(Completion { index, at_ns: self.now_ns, polled_ns: self.polled_ns, kind });
        }
    }

    /// What the wall clock shows at an instant.
    fn wall_ns(&self, at_ns: u64) -> u64 {
        let step = self.options.wall_step.filter(|(step_ns, _)| at_ns >= *step_ns);
        at_ns + WALL_LEAD_NS + step.map_or(0, |(_, by_ns)| by_ns)
    }

    /// Sends, and notes when the last byte left.
    fn take_stamped(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> SendResult {
        let result = self.take_bytes(index, parts);
        if let (Ok(taken), Some(wire)) = (result.taken, self.connections[index as usize])
            && taken > 0
        {
            self.wires[wire].transmitted = Transmitted::At(self.wall_ns(self.now_ns));
        }
        result
    }

    fn noted(&mut self, index: ConnectionIndex) -> Stamps {
        let Some(wire) = self.connections[index as usize] else { return Stamps::default() };
        Stamps {
            transmitted: std::mem::take(&mut self.wires[wire].transmitted),
            received_ns: Some(self.wall_ns(self.current_came_ns)),
        }
    }

    /// One call of the worker's, in which memory is the world's to take.
    fn call<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = allocations();
        self.calls += 1;
        let result = act(self);
        self.allocations += allocations() - before;
        result
    }
}

impl Io for Sim {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn connect(
        &mut self,
        index: ConnectionIndex,
        address: &Address,
        _: Option<&TlsClient>,
        _: bool,
    ) -> Result<(), i32> {
        self.call(|sim| sim.begin_connecting(index, address))
    }

    #[expect(unsafe_code, reason = "a contract for the caller, which nothing here relies on")]
    unsafe fn send(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        self.call(|sim| sim.take_or_defer(index, parts))
    }

    fn send_datagrams(&mut self, index: ConnectionIndex, bytes: &[u8], ends: &[u32]) -> SendResult {
        self.call(|sim| sim.take_datagrams(index, bytes, ends))
    }

    fn submit(&mut self) {
        self.call(Self::hand_in);
    }

    fn close(&mut self, index: ConnectionIndex, mode: CloseMode) {
        self.call(|sim| {
            sim.hand_in();
            sim.handed_in.retain(|(of, _)| *of != index);
            sim.end(index, mode);
        });
    }

    fn set_wake_up(&mut self, ns: u64) {
        self.wake_up_ns = ns;
    }

    fn wait(&mut self, _now_ns: u64, until: Until) -> u64 {
        self.call(|sim| {
            sim.hand_in();
            sim.pass_time(until)
        })
    }

    fn next(&mut self) -> Option<Completion> {
        self.call(Self::next_ready)
    }

    fn seen_ns(&self, _: ConnectionIndex) -> u64 {
        self.seen_ns
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.current[chunk.start..chunk.start + chunk.len]
    }

    fn syscalls(&self) -> u64 {
        self.calls
    }

    fn retransmits(&mut self) -> u64 {
        0
    }

    fn run_delay_ns(&mut self) -> Option<u64> {
        Some(self.stood_still_ns)
    }

    fn shares_cpu(&mut self, _: ConnectionIndex) -> Option<bool> {
        None
    }

    fn send_stamped(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> SendResult {
        self.call(|sim| sim.take_stamped(index, parts))
    }

    fn stamps(&mut self, index: ConnectionIndex) -> Stamps {
        self.call(|sim| sim.noted(index))
    }

    fn wall(&mut self) -> WallReading {
        let now_ns = self.now_ns;
        WallReading { before_ns: now_ns, wall_ns: self.wall_ns(now_ns), after_ns: now_ns }
    }
}
