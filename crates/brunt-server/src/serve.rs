//! The socket loop: one thread, one epoll, non-blocking sockets, the monotonic clock.
//!
//! It decides nothing about requests; it stamps bytes with the time at which their read returned, hands them to the
//! core, and writes what the core says is due. Without service times a reply is written in the turn that read its
//! request, one write for everything a connection is owed.
//!
//! Where a departure is near, the loop spins on the poll instead of sleeping: a sleeping thread wakes tens of
//! microseconds late, and a reply must not be late by more than the client's own floor.

use crate::cache::Process;
use crate::core::{ConnectionId, Core, CoreOptions, End};
use crate::log::Log;
use crate::options::Epoch;
use crate::outbox::earlier;
pub use crate::sockets::Listen;
use crate::sockets::{DatagramSocket, PausableListener};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags, Shutdown, SocketFlags, sockopt};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Events taken in one turn.
const EVENTS_PER_ITERATION: usize = 1024;
/// The most that one read takes; a whole pipeline of sets fits.
const READ_BYTES: usize = 256 << 10;
/// A client that leaves this much unread, or a quarter of the limit if that is less, is neither read from nor served until it
/// has caught up. So one that reads stays below the limit: what it has left, as much as becomes due at once, and a reply.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Output buffers above this size are given back once they are empty; ten thousand connections stay below 700 MB.
const OUT_BYTES_KEPT: usize = 64 << 10;
/// From this long before a departure the loop spins. Wake-ups with the default timer slack of 50 µs and a busy host stay
/// below it.
const SPIN_NS: u64 = 100_000;
/// What the log holds back is written when the server has been idle for this long.
const LOG_IDLE_NS: u64 = 10_000_000;
/// Datagrams taken in one turn.
const DATAGRAMS_PER_ITERATION: usize = 256;
/// The event data of the listening socket; no connection has this id, nor one of the next two.
const LISTENER: u64 = u64::MAX;
/// Event data of the socket for datagrams.
const DATAGRAMS: u64 = u64::MAX - 1;
/// Event data of the stop descriptor.
const STOP: u64 = u64::MAX - 2;

/// What a server is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, which the announcement names.
    pub listen: Listen,
    /// Take datagrams at the same address and port, too.
    pub datagrams: bool,
    /// What it does. `record` follows from `log`, and `epoch` is set at the start.
    pub core: CoreOptions,
    /// Write the binary log here.
    pub log: Option<PathBuf>,
    /// End when the thread that started this process ends. (The kernel watches the thread, not the process: start the
    /// server from a thread that lives as long as it should.)
    pub die_with_parent: bool,
    /// How many bytes of replies that were due the clients may leave unread together, beside what their sockets hold. Beyond, the
    /// one that leaves most is disconnected. A reply that is longer than half of it is refused.
    pub output_buffer_limit: usize,
    /// Never sleep. Costs a core and makes arrival stamps as exact as they can be.
    pub busy_poll: bool,
}

/// Serves until `stop` can be read from; without one until a signal ends the process. When connections are accepted, `announce` is
/// called with the place, its port filled in.
///
/// # Errors
/// The address cannot be bound, the log cannot be written, or the process is out of descriptors at the start; the
/// message names which.
pub fn serve(
    options: Options,
    stop: Option<OwnedFd>,
    announce: impl FnOnce(&Listen) -> io::Result<()>,
) -> io::Result<()> {
    if options.die_with_parent {
        watch_parent()?;
    }
    let mut server = Server::start(options)?;
    if let Some(stop) = &stop {
        epoll::add(&server.epoll, stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
    }
    announce(&server.listener.place)?;
    while !server.run_once()? {}
    server.write_log(true)
}

/// A parent that died before the kernel was asked to watch it would never be noticed, so look once more.
fn watch_parent() -> io::Result<()> {
    let parent = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    if rustix::process::getppid() == parent {
        Ok(())
    } else {
        Err(io::Error::other("the process that started this server is gone"))
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the clock that clients on the same host stamp with.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// This process.
fn process() -> Process {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may read its own usage");
    let [user_us, system_us] =
        [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds() as u64);
    Process { pid: std::process::id(), user_us, system_us }
}

/// Names what failed; the kernel's own words follow.
fn context(what: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// One accepted connection.
struct Peer {
    socket: OwnedFd,
    /// Due and not yet taken by the kernel, from `out_begin` on.
    out: Vec<u8>,
    out_begin: usize,
    /// In the list of those with something to write.
    dirty: bool,
    /// The client has said that it sends nothing more.
    ended: bool,
    /// Close when everything is written.
    closing: bool,
    /// Everything is written and the client has been told that nothing more comes. What it still sends is read and thrown
    /// away until it closes, because the kernel resets a connection that is closed with unread bytes.
    is_shut_down: bool,
    /// Events that epoll was last told to report.
    interest: epoll::EventFlags,
}

impl Peer {
    fn unsent_bytes(&self) -> usize {
        self.out.len() - self.out_begin
    }
}

struct Server {
    listener: PausableListener,
    /// Where datagrams are taken, if they are.
    datagram_socket: Option<DatagramSocket>,
    /// False while the process is out of descriptors.
    listening: bool,
    epoll: OwnedFd,
    core: Core,
    log: Option<Log<File>>,
    busy_poll: bool,
    /// Every departure is a write of its own, or pieces that leave together would be put together again.
    drips: bool,
    /// By connection id.
    peers: Vec<Option<Peer>>,
    free: Vec<ConnectionId>,
    /// Connections that got output in this turn.
    dirty: Vec<ConnectionId>,
    /// Connections with requests that are served in the next turn; some may be there twice.
    held: Vec<ConnectionId>,
    /// Bytes of all connections that are due and not taken by the kernel.
    unsent_bytes: usize,
    /// Of one that is served.
    unsent_bytes_max: usize,
    output_buffer_limit: usize,
    /// Bytes that all connections may have of requests that are not whole: as many as the store, for most of which they are.
    input_bytes_max: usize,
    events: Vec<epoll::Event>,
    read_buffer: Vec<u8>,
}

impl Server {
    fn start(options: Options) -> io::Result<Self> {
        let Options {
            listen, datagrams, core: mut core_options, log, busy_poll, output_buffer_limit, ..
        } = options;
        let log = log.map(|path| {
            let begun = File::create(&path)
                .and_then(|file| Log::begin(file, core_options.script_after, core_options.seed));
            begun.map_err(|error| context(&format!("cannot write the log {}", path.display()), error))
        });
        let log = log.transpose()?;
        core_options.record = log.is_some();
        let unsent_bytes_max = UNSENT_BYTES_MAX.min(output_buffer_limit / 4);
        core_options.due_bytes_max = unsent_bytes_max;
        core_options.reply_bytes_max = output_buffer_limit / 2;
        let input_bytes_max = usize::try_from(core_options.memory_bytes).unwrap_or(usize::MAX);
        core_options.epoch = Epoch {
            start_ns: monotonic_ns(),
            start_unix_s: u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0),
        };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| context("cannot create an epoll instance", error))?;
        let is_to_shut = !core_options.outages.is_empty();
        let (listener, datagram_socket) = if datagrams {
            let (listener, socket) =
                PausableListener::open_with_datagrams(&listen, is_to_shut, &epoll, LISTENER)?;
            epoll::add(&epoll, &socket, epoll::EventData::new_u64(DATAGRAMS), epoll::EventFlags::IN)?;
            (listener, Some(DatagramSocket::new(socket)))
        } else {
            (PausableListener::open(&listen, is_to_shut, &epoll, LISTENER)?, None)
        };
        let drips = core_options.drip.is_some();
        let mut core = Core::new(core_options);
        core.set_process(process);
        Ok(Self {
            listener,
            datagram_socket,
            listening: true,
            epoll,
            drips,
            core,
            log,
            busy_poll,
            peers: Vec::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            held: Vec::new(),
            unsent_bytes: 0,
            unsent_bytes_max,
            output_buffer_limit,
            input_bytes_max,
            events: Vec::with_capacity(EVENTS_PER_ITERATION),
            read_buffer: vec![0; READ_BYTES],
        })
    }

    /// Waits for something to do and does it. True: the server is to end.
    fn run_once(&mut self) -> io::Result<bool> {
        let idle = self.wait()?;
        let mut events = std::mem::take(&mut self.events);
        let (mut knocked, mut stopped) = (false, false);
        for event in events.drain(..) {
            match { event.data }.u64() {
                LISTENER => knocked = true,
                DATAGRAMS => self.take_datagrams(),
                STOP => stopped = true,
                id => self.react(id as ConnectionId, event.flags),
            }
        }
        self.events = events;
        let mut held = std::mem::take(&mut self.held);
        // An event of this turn may have added a connection that the turn before had added.
        held.sort_unstable();
        held.dedup();
        for id in held {
            self.receive(id, 0);
        }
        let now_ns = monotonic_ns();
        self.release(now_ns);
        self.reopen(now_ns)?;
        // New connections come last, so that an id freed in this turn has no event of its former owner before it.
        if knocked {
            self.accept();
        }
        self.write_log(idle)?;
        Ok(stopped)
    }

    /// Waits for events until shortly before the next departure. True: nothing came for the idle time of the log.
    fn wait(&mut self) -> io::Result<bool> {
        let now_ns = monotonic_ns();
        let next_ns = earlier(self.core.next_departure_ns(), self.core.next_outage_ns(now_ns));
        let wait_ns = match next_ns {
            _ if self.busy_poll || !self.held.is_empty() => Some(0),
            // The end of an outage that passed since the listener was last looked at.
            _ if self.listener.socket.is_none() && !self.core.is_gone(now_ns) => Some(0),
            Some(next_ns) => Some(next_ns.saturating_sub(now_ns).saturating_sub(SPIN_NS)),
            None if self.log.as_ref().is_some_and(Log::is_behind) => Some(LOG_IDLE_NS),
            None => None,
        };
        let timeout = wait_ns.map(|wait_ns| Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(self.events.is_empty() && wait_ns == Some(LOG_IDLE_NS)),
            Err(error) => Err(context("waiting for events", error)),
        }
    }

    fn react(&mut self, id: ConnectionId, flags: epoll::EventFlags) {
        let Some(peer) = self.peers[id as usize].as_mut() else { return };
        if flags.contains(epoll::EventFlags::OUT) {
            self.write(id);
            self.hold(id);
        } else if peer.interest.contains(epoll::EventFlags::IN) {
            self.read(id);
        } else {
            // Only a hang-up or an error is reported unrequested; the client is gone.
            self.close(id);
        }
    }

    fn read(&mut self, id: ConnectionId) {
        let unsent_bytes_max = self.unsent_bytes_max();
        let Some(peer) = self.peers[id as usize].as_mut() else { return };
        if peer.unsent_bytes() > unsent_bytes_max {
            return self.watch(id);
        }
        match rustix::io::read(&peer.socket, &mut self.read_buffer[..]) {
            Ok(0) if peer.is_shut_down => self.close(id),
            Ok(_) if peer.is_shut_down => {}
            Ok(0) => {
                peer.ended = true;
                self.core.receive_end(id, monotonic_ns());
                self.watch(id);
                self.release(monotonic_ns());
            }
            Ok(bytes) => self.receive(id, bytes),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(id),
        }
    }

    /// Serves what was read, or what is held of it, as far as the client reads its replies.
    fn receive(&mut self, id: ConnectionId, bytes: usize) {
        if bytes == 0 && !self.is_ready(id) {
            return;
        }
        let now_ns = monotonic_ns();
        self.core.receive(id, &self.read_buffer[..bytes], now_ns);
        self.release(now_ns);
        while self.core.input_bytes() > self.input_bytes_max
            && let Some(id) = self.core.largest_input()
        {
            self.core.counters_mut().client_query_buffer_limit_disconnections += 1;
            self.reset(id);
        }
        self.hold(id);
        self.watch(id);
    }

    /// Has a connection requests that can be served now?
    fn is_ready(&self, id: ConnectionId) -> bool {
        let peer = self.peers[id as usize].as_ref();
        peer.is_some_and(|peer| peer.unsent_bytes() <= self.unsent_bytes_max()) && self.core.is_held(id)
    }

    /// Comes back in the next turn to a connection that has requests left, so that none keeps the others waiting.
    fn hold(&mut self, id: ConnectionId) {
        if self.is_ready(id) {
            self.held.push(id);
        }
    }

    /// How much a client may leave unread and be served: nothing while all of them leave half of what they may, so that
    /// those that read are not disconnected for those that do not.
    fn unsent_bytes_max(&self) -> usize {
        if self.unsent_bytes > self.output_buffer_limit / 2 { 0 } else { self.unsent_bytes_max }
    }

    /// A free id, with its place.
    fn free_id(&mut self) -> ConnectionId {
        self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() as ConnectionId - 1
        })
    }

    /// Takes a limited number of datagrams; the rest shows again in the next iteration.
    fn take_datagrams(&mut self) {
        for _ in 0..DATAGRAMS_PER_ITERATION {
            let Some((address, bytes)) = self.datagram_socket.as_mut().and_then(DatagramSocket::receive)
            else {
                return;
            };
            let now_ns = monotonic_ns();
            let id = self.sender(address);
            if let Some(datagram_socket) = &self.datagram_socket {
                self.core.receive_datagram(id, datagram_socket.datagram(bytes), now_ns);
            }
            self.release(now_ns);
        }
    }

    /// The id of the sender of datagrams at this address.
    fn sender(&mut self, address: SocketAddr) -> ConnectionId {
        if let Some(id) =
            self.datagram_socket.as_ref().and_then(|datagram_socket| datagram_socket.sender(address))
        {
            return id;
        }
        for id in self.datagram_socket.as_mut().map(DatagramSocket::clear_if_full).unwrap_or_default() {
            self.core.disconnect(id);
            self.free.push(id);
        }
        let id = self.free_id();
        self.core.connect_peer(id);
        if let Some(datagram_socket) = &mut self.datagram_socket {
            datagram_socket.know(address, id);
        }
        id
    }

    /// Hands everything that is due to its connections and writes it: one write for each of them.
    fn release(&mut self, now_ns: u64) {
        // Before the resets go out: a reset client must not connect again.
        if self.core.is_gone(now_ns) {
            self.listener.socket = None;
        }
        while let Some(departure) = self.core.pop_due(now_ns) {
            let (id, end) = (departure.connection, departure.end);
            let Some(peer) = self.peers[id as usize].as_mut() else {
                let datagram_socket = self.datagram_socket.as_ref();
                datagram_socket
                    .expect("the core speaks to connected peers and known senders only")
                    .send(id, departure.bytes);
                continue;
            };
            peer.out.extend_from_slice(departure.bytes);
            self.unsent_bytes += departure.bytes.len();
            peer.closing |= end == End::Closes;
            if end == End::Resets {
                self.reset(id);
            } else if self.drips {
                self.write(id);
            } else if !peer.dirty {
                peer.dirty = true;
                self.dirty.push(id);
            }
            if self.unsent_bytes > self.output_buffer_limit {
                self.write_dirty();
                self.disconnect_slowest();
            }
        }
        self.write_dirty();
    }

    fn write_dirty(&mut self) {
        while let Some(id) = self.dirty.pop() {
            self.write(id);
        }
    }

    /// Disconnects those that leave most unread until the limit holds. A reset frees what the kernel holds for them, too.
    fn disconnect_slowest(&mut self) {
        let unsent = |(id, peer): (usize, &Option<Peer>)| {
            peer.as_ref().map(|peer| (peer.unsent_bytes(), id as ConnectionId))
        };
        while self.unsent_bytes > self.output_buffer_limit
            && let Some((_, id)) = self.peers.iter().enumerate().filter_map(unsent).max()
        {
            self.core.counters_mut().client_output_buffer_limit_disconnections += 1;
            self.reset(id);
        }
    }

    fn write(&mut self, id: ConnectionId) {
        let Some(peer) = self.peers[id as usize].as_mut() else { return };
        peer.dirty = false;
        while peer.out_begin < peer.out.len() {
            match net::send(&peer.socket, &peer.out[peer.out_begin..], SendFlags::NOSIGNAL) {
                Ok(bytes) => {
                    peer.out_begin += bytes;
                    self.unsent_bytes -= bytes;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return self.close(id),
            }
        }
        if peer.out_begin == peer.out.len() {
            if peer.closing && !peer.is_shut_down {
                // A client that has ended sends nothing more.
                if peer.ended || net::shutdown(&peer.socket, Shutdown::Write).is_err() {
                    return self.close(id);
                }
                peer.is_shut_down = true;
            }
            peer.out.clear();
            peer.out_begin = 0;
            if peer.out.capacity() > OUT_BYTES_KEPT {
                peer.out = Vec::new();
            }
        } else if peer.out_begin > peer.out.len() / 2 {
            peer.out.drain(..peer.out_begin);
            peer.out_begin = 0;
            peer.out.shrink_to(OUT_BYTES_KEPT);
        }
        self.watch(id);
    }

    /// Asks epoll for what matters now: room to write while something is unsent, input unless the client has ended or
    /// does not read its replies.
    fn watch(&mut self, id: ConnectionId) {
        let unsent_bytes_max = self.unsent_bytes_max();
        let Some(peer) = self.peers[id as usize].as_mut() else { return };
        let unsent_bytes = peer.unsent_bytes();
        let may_read = unsent_bytes <= unsent_bytes_max && !self.core.is_held(id);
        let mut interest = epoll::EventFlags::empty();
        interest.set(epoll::EventFlags::OUT, unsent_bytes > 0);
        interest.set(epoll::EventFlags::IN, !peer.ended && may_read);
        if interest != peer.interest {
            peer.interest = interest;
            epoll::modify(&self.epoll, &peer.socket, epoll::EventData::new_u64(u64::from(id)), interest)
                .expect("an open socket is in the epoll set");
        }
    }

    /// Opens the listener when an outage ends.
    fn reopen(&mut self, now_ns: u64) -> io::Result<()> {
        if self.listener.socket.is_none() && !self.core.is_gone(now_ns) {
            self.listener.reopen(&self.epoll)?;
            self.listening = true;
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Some(listener) = &self.listener.socket {
            match net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.admit(socket),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Out of descriptors or memory: a level-triggered listener would turn the loop into a spin, so look
                // away until a connection closes. Connections wait in the backlog meanwhile.
                Err(_) => return self.listen(false),
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd) {
        // Replies must not wait for acknowledgements. A peer that is gone already shows at its first read.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        let id = self.free_id();
        let interest = epoll::EventFlags::IN;
        if epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(u64::from(id)), interest).is_err() {
            self.free.push(id);
            return;
        }
        let out = Vec::new();
        self.peers[id as usize] = Some(Peer {
            socket,
            out,
            out_begin: 0,
            dirty: false,
            ended: false,
            closing: false,
            is_shut_down: false,
            interest,
        });
        self.core.connect(id);
    }

    /// Writes what is owed as far as the kernel takes it, then closes with a lingering of 0, which is a reset.
    fn reset(&mut self, id: ConnectionId) {
        self.write(id);
        if let Some(peer) = &self.peers[id as usize] {
            sockopt::set_socket_linger(&peer.socket, Some(Duration::ZERO))
                .expect("every stream socket can be told how to linger");
            self.close(id);
        }
    }

    /// Closing the descriptor also takes it out of the epoll set.
    fn close(&mut self, id: ConnectionId) {
        let Some(peer) = self.peers[id as usize].take() else { return };
        self.unsent_bytes -= peer.unsent_bytes();
        self.core.disconnect(id);
        self.free.push(id);
        if let Some(log) = &mut self.log {
            for record in self.core.take_records() {
                // A full disk shows again, and is reported, at the end of the turn.
                let _ = log.push(&record);
            }
            let _ = log.flush();
        }
        if !self.listening {
            self.listen(true);
        }
    }

    fn listen(&mut self, listening: bool) {
        let interest = if listening { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        let Some(listener) = &self.listener.socket else { return };
        epoll::modify(&self.epoll, listener, epoll::EventData::new_u64(LISTENER), interest)
            .expect("the listener is in the epoll set");
        self.listening = listening;
    }

    fn write_log(&mut self, idle: bool) -> io::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let written = self.core.take_records().try_for_each(|record| log.push(&record));
        let written = if idle { written.and_then(|()| log.flush()) } else { written };
        written.map_err(|error| context("cannot write the log", error))
    }
}
