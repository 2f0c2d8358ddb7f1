//! epoll behind [`Io`](super::Io): readiness turned into completions.
//!
//! One edge-triggered registration per connection, one read per event into one buffer that all connections share,
//! nanosecond timeouts through epoll_pwait2. A read that fills the buffer, or is followed by the end of the
//! connection, leaves the rest to the next iteration, which does not sleep then. With kernel timestamps, reads
//! carry them, and an error event may mean an entry of the error queue. One call reads many datagrams, which are
//! reported one by one; TLS connections go through their tunnels. Invariant: nothing is read before all completions
//! of the last read were returned.

use super::kernel_stamps::{self, Control};
use super::sockets::{Backend, Poll, Sockets, State, has_slept, offered};
use super::tls::Wire;
use super::{
    Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, ConnectionKind, SendResult, Until,
};
use crate::clock::Clock;
use crate::transport::socket::{self, Datagrams};
use brunt_plan::gather::Gather;
use brunt_plan::sockets::SocketOptions;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{Timespec, epoll::Event};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::Socket;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// One read takes at most this much: large enough for a full pipeline of replies, small enough to stay in the cache.
const RECEIVE_BYTES: usize = 64 << 10;

/// The most readiness events taken in one poll.
const EVENTS_MAX: usize = 1024;

/// Polling period while several completions are awaited.
const GATHER_STEP_NS: u64 = 50_000;

/// One call for all of it.
#[inline(always)]
fn send(socket: &Socket, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
    match parts {
        [only] => rustix::net::send(socket, only, SendFlags::NOSIGNAL),
        parts => {
            rustix::net::sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
        }
    }
}

/// Why a call is refused, for a user.
fn refusal(errno: Errno) -> String {
    match errno {
        Errno::NOSYS => "requires Linux 5.11, or hidden by a sandbox".to_owned(),
        Errno::PERM | Errno::ACCESS => "not permitted (a sandbox)".to_owned(),
        errno => errno.to_string(),
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// What a connection is registered for, from beginning to end.
const INTEREST: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);
/// No further event will come.
const ENDED: EventFlags = EventFlags::ERR.union(EventFlags::HUP).union(EventFlags::RDHUP);

/// A socket that is to be read again.
#[derive(Clone, Copy, Debug)]
struct Unread {
    index: ConnectionIndex,
    /// The kernel has reported its end.
    is_ended: bool,
    /// It was read again.
    is_read: bool,
}

impl Unread {
    fn new(index: ConnectionIndex, is_ended: bool) -> Self {
        Self { index, is_ended, is_read: false }
    }
}

/// Polls that filled their array. The kernel returns ready sockets in turn: each that was ready when the first of these polls
/// began was returned when there have been as many events as connections.
#[derive(Clone, Copy, Debug)]
struct FullPolls {
    begin_ns: u64,
    /// Events since then.
    events: usize,
    /// Beginning of the last turn that is over.
    seen_ns: u64,
}

impl FullPolls {
    #[cold]
    fn note(&mut self, begin_ns: u64, events: usize, connections: usize) {
        if self.events == 0 {
            self.begin_ns = begin_ns;
        }
        self.events += events;
        if self.events >= connections {
            (self.seen_ns, self.events) = (self.begin_ns, 0);
        }
    }
}

/// The epoll backend of one worker.
pub(crate) struct Epoll {
    sockets: Sockets,
    epoll: OwnedFd,
    events: Vec<Event>,
    /// The next event to handle.
    cursor: usize,
    /// Sockets to read again: in the next iteration, and in this one.
    unread: Vec<Unread>,
    to_read: Vec<Unread>,
    receive: Vec<u8>,
    /// Polls in a row, or with others between, that filled the array.
    full_polls: FullPolls,
    /// Control messages of the last read.
    control: Control,
    /// Datagrams of the last read that were not reported, and the completion that each gets.
    datagrams_read: Datagrams,
    datagram_completion: Completion,
    datagram_generation: u32,
}

impl Epoll {
    /// A backend for this many connections.
    pub(crate) fn new(
        connections: usize,
        options: SocketOptions,
        gather: Gather,
        clock: Clock,
    ) -> Result<Self, Errno> {
        let now_ns = clock.now_ns();
        Ok(Self {
            sockets: Sockets::new(connections, options, gather, clock),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(connections.clamp(16, EVENTS_MAX)),
            cursor: 0,
            unread: Vec::with_capacity(2 * connections),
            to_read: Vec::with_capacity(2 * connections),
            receive: vec![0; RECEIVE_BYTES],
            full_polls: FullPolls { begin_ns: now_ns, events: 0, seen_ns: now_ns },
            control: Control::EMPTY,
            datagrams_read: Datagrams::NOTHING,
            datagram_completion: Completion {
                index: 0,
                at_ns: now_ns,
                polled_ns: now_ns,
                kind: CompletionKind::Writable,
            },
            datagram_generation: 0,
        })
    }

    fn data(&self, index: ConnectionIndex) -> EventData {
        EventData::new_u64(
            u64::from(self.sockets.entries[index as usize].generation) << 32 | u64::from(index),
        )
    }

    fn completion(&self, index: ConnectionIndex, at_ns: u64, kind: CompletionKind) -> Completion {
        Completion { index, at_ns, polled_ns: self.sockets.polls.polled_ns, kind }
    }

    /// As `finish_connecting`, of an event; what else that says is kept for a read.
    fn take_connect_event(&mut self, index: ConnectionIndex, flags: EventFlags) -> Completion {
        let completion = self.finish_connecting(index);
        let is_connected = matches!(completion.kind, CompletionKind::Connected);
        if is_connected && flags.intersects(EventFlags::IN | ENDED) {
            self.unread.push(Unread::new(index, flags.intersects(ENDED)));
        }
        completion
    }

    /// Registers for OUT events of a UDP socket, or not: such a socket has room again after every send.
    #[cold]
    fn set_writable_interest(&mut self, index: ConnectionIndex, is_wanted: bool) {
        let interest = if is_wanted { INTEREST } else { INTEREST.difference(EventFlags::OUT) };
        let Some(socket) = self.sockets.entries[index as usize].socket() else { return };
        self.sockets.syscalls += 1;
        let modified = epoll::modify(&self.epoll, socket, self.data(index), interest);
        debug_assert!(modified.is_ok(), "the socket is in the set: {modified:?}");
    }

    /// An open socket of UDP became readable: one call for as many datagrams as there is room for.
    fn read_datagrams(&mut self, index: ConnectionIndex, is_ended: bool) -> Option<Completion> {
        let socket = self.sockets.entries[index as usize].socket()?;
        self.sockets.syscalls += 1;
        let received = socket::receive_datagrams(socket, &mut self.receive);
        let at_ns = self.sockets.clock.now_ns();
        let entry = &mut self.sockets.entries[index as usize];
        let polled_ns = entry.polled_ns(self.sockets.polls.polled_ns);
        entry.unread_since_ns = 0;
        self.datagram_completion = Completion { index, at_ns, polled_ns, kind: CompletionKind::Closed(None) };
        match received {
            Ok(datagrams_read) => {
                if datagrams_read.is_full() {
                    entry.unread_since_ns = polled_ns;
                }
                if datagrams_read.is_full() || is_ended {
                    self.unread.push(Unread::new(index, is_ended));
                }
                (self.datagrams_read, self.datagram_generation) =
                    (datagrams_read, self.sockets.entries[index as usize].generation);
                self.next_datagram()
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(errno) => {
                self.hang_up(index, CloseMode::Orderly);
                Some(Completion {
                    kind: CompletionKind::Closed(Some(errno.raw_os_error())),
                    ..self.datagram_completion
                })
            }
        }
    }

    /// The next datagram of the last read, if its connection is still there.
    fn next_datagram(&mut self) -> Option<Completion> {
        if self.sockets.entries[self.datagram_completion.index as usize].generation
            != self.datagram_generation
        {
            self.datagrams_read = Datagrams::NOTHING;
        }
        let (start, len) = self.datagrams_read.next()?;
        Some(Completion { kind: CompletionKind::Received(Chunk { start, len }), ..self.datagram_completion })
    }

    /// A stream became readable: one read. `is_ended`: no further event comes.
    #[inline(always)]
    fn read(&mut self, index: ConnectionIndex, is_ended: bool) -> Option<Completion> {
        let (State::Stream(socket) | State::Other(socket)) = &self.sockets.entries[index as usize].state
        else {
            return None;
        };
        let received = rustix::net::recv(socket, &mut self.receive[..], RecvFlags::DONTWAIT);
        self.take_read(index, is_ended, received.map(|(len, _)| len))
    }

    /// As `read`, with kernel timestamps.
    fn read_stamped(&mut self, index: ConnectionIndex, is_ended: bool) -> Option<Completion> {
        if !self.sockets.stamps[index as usize].is_awaited() {
            return self.read(index, is_ended);
        }
        let socket = self.sockets.entries[index as usize].socket()?;
        let received = kernel_stamps::receive(socket, &mut self.receive, &mut self.control);
        let completion = self.take_read(index, is_ended, received)?;
        let kind = match completion.kind {
            CompletionKind::Received(chunk) => CompletionKind::Stamped(chunk),
            kind => kind,
        };
        Some(Completion { kind, ..completion })
    }

    /// Turns the result of a read into a completion.
    #[inline(always)]
    fn take_read(
        &mut self,
        index: ConnectionIndex,
        is_ended: bool,
        read: Result<usize, Errno>,
    ) -> Option<Completion> {
        self.sockets.syscalls += 1;
        let at_ns = self.sockets.clock.now_ns();
        let kind = match read {
            Ok(0) => CompletionKind::Closed(None),
            Ok(len) => CompletionKind::Received(Chunk { start: 0, len }),
            Err(Errno::AGAIN | Errno::INTR) => {
                // The last read filled its buffer, and that was all.
                self.sockets.entries[index as usize].unread_since_ns = 0;
                return None;
            }
            Err(errno) => CompletionKind::Closed(Some(errno.raw_os_error())),
        };
        if let CompletionKind::Closed(_) = kind {
            self.hang_up(index, CloseMode::Orderly);
        }
        let entry = &mut self.sockets.entries[index as usize];
        let polled_ns = entry.polled_ns(self.sockets.polls.polled_ns);
        let is_full = matches!(kind, CompletionKind::Received(chunk) if chunk.len == RECEIVE_BYTES);
        entry.unread_since_ns = if is_full { polled_ns } else { 0 };
        if is_full || is_ended && matches!(kind, CompletionKind::Received(_)) {
            self.unread.push(Unread::new(index, is_ended));
        }
        Some(Completion { index, at_ns, polled_ns, kind })
    }

    /// One read of an open connection of any kind.
    fn read_any(&mut self, index: ConnectionIndex, is_ended: bool) -> Option<Completion> {
        let entry = &self.sockets.entries[index as usize];
        match entry.kind {
            _ if !entry.is_open() => None,
            ConnectionKind::Stream | ConnectionKind::Tls => self.read(index, is_ended),
            ConnectionKind::Stamped => self.read_stamped(index, is_ended),
            ConnectionKind::Datagrams => self.read_datagrams(index, is_ended),
        }
    }

    /// Handles the first event of a connection that is not an open plain stream. The event stays first until all of
    /// its completions were returned.
    #[inline(never)]
    fn handle_other_event(&mut self, index: ConnectionIndex, generation: u32) -> Option<Completion> {
        if let Some(completion) = self.next_kept() {
            return Some(completion);
        }
        let event = &mut self.events[self.cursor];
        let entry = &mut self.sockets.entries[index as usize];
        let mut flags = event.flags;
        if flags.is_empty() || entry.generation != generation {
            self.cursor += 1;
            return None;
        }
        let is_room = flags.contains(EventFlags::OUT) && std::mem::take(&mut entry.awaits_room);
        // Room is reported first; the event is kept for its readable half.
        event.flags = if is_room { flags.difference(EventFlags::OUT) } else { EventFlags::empty() };
        let completion = match entry.kind {
            _ if !entry.is_open() => self.take_connect_event(index, flags),
            kind if is_room => {
                if kind == ConnectionKind::Datagrams {
                    self.set_writable_interest(index, false);
                }
                let at_ns = self.sockets.clock.now_ns();
                self.completion(index, at_ns, CompletionKind::Writable)
            }
            kind => {
                let has_error = kind == ConnectionKind::Stamped && flags.contains(EventFlags::ERR);
                if has_error && self.sockets.drain_error_queue(index) {
                    // A timestamp. An error of the connection also ends it, which is reported.
                    flags.remove(EventFlags::ERR);
                }
                if !flags.intersects(EventFlags::IN.union(ENDED)) {
                    return None;
                }
                self.read_any(index, flags.intersects(ENDED))?
            }
        };
        self.pass(completion)
    }

    /// Reads what the last turn has left unread, behind the events, so that what has nothing more to give is not asked twice.
    #[inline(never)]
    fn next_unread(&mut self) -> Option<Completion> {
        loop {
            if let Some(completion) = self.next_kept() {
                return Some(completion);
            }
            let unread = self.to_read.last_mut()?;
            let Unread { index, is_ended, is_read } = *unread;
            unread.is_read = true;
            if is_read {
                self.to_read.pop();
            } else if let Some(completion) = self.read_any(index, is_ended)
                && let Some(completion) = self.pass(completion)
            {
                return Some(completion);
            }
        }
    }

    /// Completions of the last read that were not returned.
    fn next_kept(&mut self) -> Option<Completion> {
        self.next_datagram().or_else(|| self.sockets.tunnels.next_queued())
    }

    /// Passes a socket's completion through the tunnel of a TLS connection.
    fn pass(&mut self, completion: Completion) -> Option<Completion> {
        if self.sockets.entries[completion.index as usize].kind != ConnectionKind::Tls {
            return Some(completion);
        }
        self.with_tunnels(|tunnels| tunnels.take(completion));
        self.sockets.tunnels.next_queued()
    }

    /// Tries each call of the backend once; an error names the one that fails, and why.
    pub(crate) fn probe() -> Result<(), String> {
        let refused = |call: &'static str| move |errno: Errno| format!("{call}: {}", refusal(errno));
        let (end, _peer) = UnixStream::pair().map_err(|error| error.to_string())?;
        let mut epoll = Self::new(1, SocketOptions::default(), Gather::NOTHING, Clock::start())
            .map_err(refused("epoll_create1"))?;
        epoll::add(&epoll.epoll, &end, epoll.data(0), INTEREST).map_err(refused("epoll_ctl"))?;
        let timeout = timespec(0);
        epoll::wait(&epoll.epoll, rustix::buffer::spare_capacity(&mut epoll.events), Some(&timeout))
            .map_err(refused("epoll_pwait2"))?;
        Ok(())
    }

    /// One poll, whose events come behind those that are there.
    fn poll(&mut self, timeout_ns: u64) -> Result<(), Errno> {
        let timeout = timespec(timeout_ns);
        self.sockets.syscalls += 1;
        let waited =
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout));
        debug_assert!(
            matches!(waited, Ok(_) | Err(Errno::INTR)),
            "the set and the buffer are ours: {waited:?}"
        );
        waited.map(drop)
    }

    /// Polls until enough events are there or the time is over. epoll cannot wait for several sockets, so the
    /// client sleeps between polls.
    fn gather_until(&mut self, until_ns: u64, want: usize) -> Result<(), Errno> {
        let end_ns = until_ns.min(self.sockets.clock.now_ns().saturating_add(self.sockets.gather.most.0));
        loop {
            let left_ns = end_ns.saturating_sub(self.sockets.clock.now_ns());
            let is_full = self.events.len() == self.events.capacity();
            if left_ns == 0 || is_full || self.events.len() >= want {
                return Ok(());
            }
            self.sockets.syscalls += 1;
            // Cut short by a signal it is only shorter.
            let _ = rustix::thread::nanosleep(&timespec(left_ns.min(GATHER_STEP_NS)));
            self.poll(0)?;
        }
    }
}

impl Backend for Epoll {
    const DEFERS_SENDS: bool = false;

    fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    fn sockets_mut(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    /// Closing the only descriptor of a socket takes it out of the set.
    fn register(&mut self, index: ConnectionIndex) -> Result<(), i32> {
        let Some(socket) = self.sockets.entries[index as usize].socket() else { return Err(libc::EBADF) };
        epoll::add(&self.epoll, socket, self.data(index), INTEREST).map_err(Errno::raw_os_error)
    }

    fn begin_receiving(&mut self, index: ConnectionIndex) {
        if self.sockets.entries[index as usize].kind == ConnectionKind::Datagrams {
            self.set_writable_interest(index, false);
        }
    }

    fn await_room(&mut self, index: ConnectionIndex) {
        let entry = &mut self.sockets.entries[index as usize];
        entry.awaits_room = true;
        if entry.kind == ConnectionKind::Datagrams {
            self.set_writable_interest(index, true);
        }
    }

    #[inline]
    #[expect(unsafe_code, reason = "a contract for the caller, which nothing here relies on")]
    unsafe fn send_on_socket(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        let Sockets { entries, syscalls, .. } = &mut self.sockets;
        let Some(socket) = entries[index as usize].socket() else { return Some(self.not_connected()) };
        *syscalls += 1;
        let sent = send(socket, parts);
        Some(self.send_result(index, offered(parts), sent))
    }

    fn wait_for_events(&mut self, enter_ns: u64, until: Until) -> u64 {
        let timeout_ns = match until {
            Until::Now => 0,
            Until::Instant(at_ns) => at_ns.saturating_sub(enter_ns),
        };
        self.events.clear();
        self.cursor = 0;
        std::mem::swap(&mut self.unread, &mut self.to_read);
        let timeout_ns = if self.to_read.is_empty() { timeout_ns } else { 0 };
        let mut waited = self.poll(timeout_ns);
        let want = self.sockets.gather.completions.min(self.sockets.open) as usize;
        let gathers = timeout_ns > 0 && self.sockets.gather.completions > 1;
        if gathers && (1..want).contains(&self.events.len()) {
            waited = self.gather_until(enter_ns.saturating_add(timeout_ns), want);
        }
        let end_ns = self.sockets.clock.now_ns();
        let is_full = self.events.len() == self.events.capacity();
        self.sockets.polls.note(Poll {
            enter_ns,
            end_ns,
            timeout_ns,
            has_slept: has_slept(end_ns - enter_ns, self.events.len()),
            is_whole: waited.is_ok(),
            gathers,
            returns_all: !is_full,
        });
        if is_full {
            self.full_polls.note(enter_ns, self.events.len(), self.sockets.entries.len());
        }
        end_ns
    }

    #[inline]
    fn next_completion(&mut self) -> Option<Completion> {
        while let Some(event) = self.events.get(self.cursor) {
            let (data, flags) = (event.data.u64(), event.flags);
            let (index, generation) = (data as u32, (data >> 32) as u32);
            let entry = &mut self.sockets.entries[index as usize];
            if entry.generation != generation || !matches!(entry.state, State::Stream(_)) {
                match self.handle_other_event(index, generation) {
                    None => continue,
                    completion => return completion,
                }
            }
            if flags.contains(EventFlags::OUT) && std::mem::take(&mut entry.awaits_room) {
                // Reported first, with the event kept for its readable half.
                self.events[self.cursor].flags = flags.difference(EventFlags::OUT);
                let at_ns = self.sockets.clock.now_ns();
                return Some(self.completion(index, at_ns, CompletionKind::Writable));
            }
            self.cursor += 1;
            if flags.intersects(EventFlags::IN | ENDED)
                && let Some(completion) = self.read(index, flags.intersects(ENDED))
            {
                return Some(completion);
            }
        }
        if self.to_read.is_empty() { None } else { self.next_unread() }
    }

    fn returned_all_ns(&self, index: ConnectionIndex) -> u64 {
        let seen_ns = self.sockets.polls.poll_end_ns.max(self.full_polls.seen_ns);
        // A read may have left some.
        match self.sockets.entries[index as usize].unread_since_ns {
            0 => seen_ns,
            since_ns => since_ns.min(seen_ns),
        }
    }

    fn received(&self, chunk: Chunk) -> Option<&[u8]> {
        self.receive.get(chunk.start..chunk.start + chunk.len)
    }

    fn received_wall_ns(&self) -> Option<u64> {
        self.control.received_ns()
    }
}
