//! The sockets of a worker, and what epoll and io_uring have in common: an [`Io`] for every [`Backend`].
//!
//! A backend has the calls that wait, send and receive; the times of its polls bound when bytes arrived. Invariants: the generation of an
//! entry changes with every connect and
//! every close, so that an event of an earlier connection with the same index is recognised as stale; in doubt a poll has seen less, so
//! that the delay by the client is never underestimated.

use super::kernel_stamps::{self, ConnectionStamps};
use super::tls::{Over, Tunnels, Wire};
use super::{
    Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, ConnectionKind, Io, SendResult, Stamps,
    Until,
};
use crate::clock::{Clock, WallReading};
use crate::process::{RUN_DELAY_SYSCALLS, read_run_delay_ns};
use crate::transport::Address;
use crate::transport::socket::{self, Peer};
use crate::transport::tls_client::TlsClient;
use brunt_plan::choice::Gather;
use brunt_plan::sockets::SocketOptions;
use rustix::io::Errno;
use socket2::Socket;
use std::io::IoSlice;

/// Bits of a generation: as many as an entry of io_uring has room for beside index and kind.
pub(super) const GENERATION_BITS: u32 = 24;

/// State of a connection.
#[derive(Debug, Default)]
pub(super) enum State {
    #[default]
    Closed,
    Connecting(Socket),
    /// An open plain stream: the only state that the hot path checks.
    Stream(Socket),
    /// Open, and anything else.
    Other(Socket),
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct SocketEntry {
    pub state: State,
    pub kind: ConnectionKind,
    /// Tells events of this connection from those of an earlier one with the same index.
    pub generation: u32,
    /// Its peer is on this host, so that the kernel reports the sender's CPU.
    is_local: bool,
    /// Since when bytes have been left unread in the socket; 0 if none are.
    pub unread_since_ns: u64,
    /// Its last send was partial: epoll reports the next room.
    pub awaits_room: bool,
    /// Its send without a reported result, as io_uring numbers them.
    pub pending_send: Option<u32>,
}

impl SocketEntry {
    pub(super) fn socket(&self) -> Option<&Socket> {
        match &self.state {
            State::Closed => None,
            State::Connecting(socket) | State::Stream(socket) | State::Other(socket) => Some(socket),
        }
    }

    /// Is it established?
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Stream(_) | State::Other(_))
    }

    /// When the bytes that are read now were not there: at `polled_ns`, unless a read has left some.
    pub(super) fn polled_ns(&self, polled_ns: u64) -> u64 {
        if self.unread_since_ns == 0 { polled_ns } else { self.unread_since_ns }
    }

    /// Begins a connection.
    pub(super) fn begin(&mut self, socket: Socket, kind: ConnectionKind) {
        self.generation = (self.generation + 1) % (1 << GENERATION_BITS);
        (self.state, self.kind) = (State::Connecting(socket), kind);
    }

    /// Marks a connection as established, if it is; otherwise returns the errno.
    fn establish(&mut self) -> Result<(), i32> {
        let peer = self.socket().map_or(Err(libc::EBADF), socket::established)?;
        // The kernel reports the sender's CPU.
        self.is_local = peer == Peer::SameHost;
        self.state = match (std::mem::take(&mut self.state), self.kind) {
            (State::Connecting(socket), ConnectionKind::Stream) => State::Stream(socket),
            (State::Connecting(socket), _) => State::Other(socket),
            (state, _) => state,
        };
        Ok(())
    }

    /// Closes a connection. Returns its socket and whether it was established.
    fn close(&mut self) -> Option<(Socket, bool)> {
        let was_open = self.is_open();
        let generation = (self.generation + 1) % (1 << GENERATION_BITS);
        let closed = Self { generation, kind: self.kind, ..Self::default() };
        match std::mem::replace(self, closed).state {
            State::Closed => None,
            State::Connecting(socket) | State::Stream(socket) | State::Other(socket) => {
                Some((socket, was_open))
            }
        }
    }
}

/// The sockets of a worker, and what is counted of them.
pub(super) struct Sockets {
    pub clock: Clock,
    pub gather: Gather,
    options: SocketOptions,
    /// By connection.
    pub entries: Vec<SocketEntry>,
    /// Established connections.
    pub open: u32,
    pub polls: PollTimes,
    pub syscalls: u64,
    /// Segments sent again on connections that are closed.
    retransmits_closed: u64,
    /// By connection, once there is one with kernel timestamps.
    pub stamps: Vec<ConnectionStamps>,
    pub tunnels: Tunnels,
}

impl Sockets {
    /// For this many connections.
    pub(super) fn new(connections: usize, options: SocketOptions, gather: Gather, clock: Clock) -> Self {
        Self {
            clock,
            gather,
            options,
            entries: (0..connections).map(|_| SocketEntry::default()).collect(),
            open: 0,
            polls: PollTimes::new(clock.now_ns()),
            syscalls: 0,
            retransmits_closed: 0,
            stamps: Vec::new(),
            tunnels: Tunnels::default(),
        }
    }

    /// Notes that a connecting socket is established, if it is; otherwise returns the errno.
    pub(super) fn establish(&mut self, index: ConnectionIndex) -> Result<(), i32> {
        self.syscalls += socket::ESTABLISHED_SYSCALLS;
        let entry = &mut self.entries[index as usize];
        entry.establish()?;
        self.open += 1;
        if let (ConnectionKind::Stamped, Some(socket)) = (entry.kind, entry.socket()) {
            self.syscalls += 1;
            self.stamps[index as usize] = ConnectionStamps::default();
            // Bytes are counted from here, before any was sent. Where it fails, no timestamp comes, which is counted.
            let _ = kernel_stamps::switch_on(socket);
        }
        Ok(())
    }

    /// Empties the error queue of a connection. Returns whether there was anything in it.
    pub(super) fn drain_error_queue(&mut self, index: ConnectionIndex) -> bool {
        let Some(socket) = self.entries[index as usize].socket() else { return false };
        self.stamps[index as usize].drain_error_queue(socket, &mut self.syscalls)
    }
}

/// Bytes of a send.
pub(super) fn offered(parts: &[IoSlice<'_>]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// An interface to the kernel that waits for sockets.
pub(super) trait Backend: Sized {
    /// Sends are handed in with a wait, so that their time is the clock before it.
    const DEFERS_SENDS: bool;
    fn sockets(&self) -> &Sockets;
    fn sockets_mut(&mut self) -> &mut Sockets;
    /// Registers the socket of a connection that is being established. An errno if the kernel refuses it.
    fn register(&mut self, index: ConnectionIndex) -> Result<(), i32>;
    /// Takes back the registration of a connection whose socket is about to be closed.
    fn unregister(&mut self, _index: ConnectionIndex) {}
    /// Receives from now on on an established connection.
    fn begin_receiving(&mut self, index: ConnectionIndex);
    /// After a partial send: reports when there is room.
    fn await_room(&mut self, index: ConnectionIndex);
    /// As [`Io::send`], on the socket of a connection, whatever is established above it.
    ///
    /// # Safety
    /// As of [`Io::send`].
    #[expect(unsafe_code, reason = "the kernel may read the bytes later")]
    unsafe fn send_on_socket(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult>;
    /// Hands in what is queued.
    fn hand_in_sends(&mut self) {}
    /// See [`Io::wait`].
    fn wait_for_events(&mut self, now_ns: u64, until: Until) -> u64;
    /// See [`Io::next`].
    fn next_completion(&mut self) -> Option<Completion>;
    /// See [`Io::seen_ns`].
    fn returned_all_ns(&self, index: ConnectionIndex) -> u64;
    /// Bytes that were read last, if they are of a socket.
    fn received(&self, chunk: Chunk) -> Option<&[u8]>;
    /// The kernel's timestamp of the bytes that were read last.
    fn received_wall_ns(&self) -> Option<u64>;

    /// A connecting socket became ready: established or failed.
    fn finish_connecting(&mut self, index: ConnectionIndex) -> Completion {
        let established = self.sockets_mut().establish(index);
        let at_ns = self.sockets().clock.now_ns();
        let kind = match established {
            Ok(()) => {
                self.begin_receiving(index);
                CompletionKind::Connected
            }
            Err(errno) => {
                // Closed at once: a connection to itself would keep the port from the server.
                self.hang_up(index, CloseMode::Reset);
                CompletionKind::ConnectFailed(errno)
            }
        };
        Completion { index, at_ns, polled_ns: self.sockets().polls.polled_ns, kind }
    }

    /// Turns the result of a system call that sends into a [`SendResult`]; a partial send waits for room.
    fn send_result(
        &mut self,
        index: ConnectionIndex,
        offered: usize,
        sent: Result<usize, Errno>,
    ) -> SendResult {
        let at_ns = self.sockets().clock.now_ns();
        let taken = match sent {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => sent.map_err(Errno::raw_os_error),
        };
        if matches!(taken, Ok(taken) if taken < offered) {
            self.await_room(index);
        }
        SendResult { taken, at_ns }
    }

    /// As [`Io::send`], on a connection that is no plain stream.
    ///
    /// # Safety
    /// As of [`Io::send`].
    #[inline(never)]
    #[expect(unsafe_code, reason = "the kernel may read the bytes later")]
    unsafe fn send_on_other(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        if self.sockets().entries[index as usize].kind == ConnectionKind::Tls {
            return self.with_tunnels(|tunnels| tunnels.send(index, parts));
        }
        // SAFETY: the caller's promise.
        let result = unsafe { self.send_on_socket(index, parts) };
        self.count_stamped(index, result.as_ref());
        result
    }

    /// Counts what a connection with timestamps has sent, as the kernel does.
    fn count_stamped(&mut self, index: ConnectionIndex, sent: Option<&SendResult>) {
        let is_stamped = self.sockets().entries[index as usize].kind == ConnectionKind::Stamped;
        if let (true, Some(Ok(taken))) = (is_stamped, sent.map(|sent| sent.taken)) {
            self.sockets_mut().stamps[index as usize].add_sent(taken);
        }
    }

    fn with_tunnels<T>(&mut self, act: impl FnOnce(&mut Over<'_, Self>) -> T) -> T {
        let mut tunnels = std::mem::take(&mut self.sockets_mut().tunnels);
        let result = act(&mut tunnels.over(self));
        self.sockets_mut().tunnels = tunnels;
        result
    }
}

impl<B: Backend> Wire for B {
    fn clock_ns(&self) -> u64 {
        self.sockets().clock.now_ns()
    }

    #[expect(unsafe_code, reason = "the trait's")]
    unsafe fn hand_over(&mut self, index: ConnectionIndex, records: &[u8]) -> Option<SendResult> {
        // SAFETY: the caller's promise.
        unsafe { self.send_on_socket(index, &[IoSlice::new(records)]) }
    }

    fn hang_up(&mut self, index: ConnectionIndex, mode: CloseMode) {
        let Some((socket, was_open)) = self.sockets_mut().entries[index as usize].close() else { return };
        self.unregister(index);
        let sockets = self.sockets_mut();
        sockets.open -= u32::from(was_open);
        sockets.retransmits_closed += socket::retransmits(&socket);
        // The last one closes the socket.
        sockets.syscalls += 2;
        if mode == CloseMode::Reset {
            sockets.syscalls += 1;
            socket::reset_on_close(&socket);
        }
    }

    fn records(&self, chunk: Chunk) -> &[u8] {
        self.received(chunk).unwrap_or_default()
    }
}

impl<B: Backend> Io for B {
    fn now_ns(&mut self) -> u64 {
        self.sockets().clock.now_ns()
    }

    fn connect(
        &mut self,
        index: ConnectionIndex,
        address: &Address,
        tls: Option<&TlsClient>,
        is_stamped: bool,
    ) -> Result<(), i32> {
        let sockets = self.sockets_mut();
        let entry = &mut sockets.entries[index as usize];
        debug_assert!(entry.socket().is_none(), "{index} is closed");
        sockets.tunnels.begin(index, tls);
        // With that of `register`.
        sockets.syscalls += 5;
        let socket = socket::connect(address, &sockets.options)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        entry.begin(socket, ConnectionKind::of(address, tls, is_stamped));
        if is_stamped {
            sockets.stamps.resize(sockets.entries.len(), ConnectionStamps::default());
        }
        let registered = self.register(index);
        if registered.is_err() {
            self.sockets_mut().entries[index as usize].close();
        }
        registered
    }

    #[expect(unsafe_code, reason = "the trait's")]
    unsafe fn send(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        if matches!(self.sockets().entries[index as usize].state, State::Stream(_)) {
            // SAFETY: the caller's promise.
            return unsafe { self.send_on_socket(index, parts) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.send_on_other(index, parts) }
    }

    /// By system calls of its own, which report how many were taken: of several ring entries one may fail and the next succeed.
    fn send_datagrams(&mut self, index: ConnectionIndex, bytes: &[u8], ends: &[u32]) -> SendResult {
        let Sockets { entries, syscalls, .. } = self.sockets_mut();
        let Some(socket) = entries[index as usize].socket() else { return self.not_connected() };
        let sent = socket::send_datagrams(socket, bytes, ends, syscalls);
        self.send_result(index, bytes.len(), sent)
    }

    fn submit(&mut self) {
        self.hand_in_sends();
    }

    fn close(&mut self, index: ConnectionIndex, mode: CloseMode) {
        match self.sockets().entries[index as usize].kind {
            ConnectionKind::Tls => self.with_tunnels(|tunnels| tunnels.close(index, mode)),
            _ => self.hang_up(index, mode),
        }
    }

    fn set_wake_up(&mut self, ns: u64) {
        self.sockets_mut().polls.wake_up_ns = ns;
    }

    fn wait(&mut self, now_ns: u64, until: Until) -> u64 {
        self.wait_for_events(now_ns, until)
    }

    fn next(&mut self) -> Option<Completion> {
        self.next_completion()
    }

    fn seen_ns(&self, index: ConnectionIndex) -> u64 {
        self.returned_all_ns(index)
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        self.received(chunk).unwrap_or_else(|| self.sockets().tunnels.plain(chunk))
    }

    fn syscalls(&self) -> u64 {
        self.sockets().syscalls
    }

    #[cold]
    fn retransmits(&mut self) -> u64 {
        let open = self.sockets().entries.iter().filter_map(SocketEntry::socket);
        self.sockets().retransmits_closed + open.map(socket::retransmits).sum::<u64>()
    }

    #[cold]
    fn run_delay_ns(&mut self) -> Option<u64> {
        self.sockets_mut().syscalls += RUN_DELAY_SYSCALLS;
        read_run_delay_ns()
    }

    #[cold]
    fn shares_cpu(&mut self, index: ConnectionIndex) -> Option<bool> {
        let Sockets { entries, syscalls, .. } = self.sockets_mut();
        let entry = &entries[index as usize];
        let socket = entry.socket().filter(|_| entry.is_open() && entry.is_local)?;
        *syscalls += 1;
        socket::shares_cpu(socket)
    }

    fn tunnels(&self) -> Option<&Tunnels> {
        Some(&self.sockets().tunnels)
    }

    /// By a system call of its own, behind the sends that were queued before it, as it would leave with them.
    fn send_stamped(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> SendResult {
        let before_ns = self.sockets().clock.now_ns();
        self.hand_in_sends();
        let Sockets { entries, syscalls, .. } = self.sockets_mut();
        let Some(socket) = entries[index as usize].socket() else { return self.not_connected() };
        *syscalls += 1;
        let sent = kernel_stamps::send(socket, parts);
        let result = self.send_result(index, offered(parts), sent);
        self.count_stamped(index, Some(&result));
        if matches!(result.taken, Ok(1..)) {
            self.sockets_mut().stamps[index as usize].await_last();
            if Self::DEFERS_SENDS {
                // Where the timestamp is there already: what lies in the error queue ends a wait.
                self.sockets_mut().drain_error_queue(index);
            }
        }
        SendResult { at_ns: if Self::DEFERS_SENDS { before_ns } else { result.at_ns }, ..result }
    }

    fn stamps(&mut self, index: ConnectionIndex) -> Stamps {
        let received_wall_ns = self.received_wall_ns();
        let Sockets { entries, stamps, syscalls, .. } = self.sockets_mut();
        let entry = &entries[index as usize];
        // A read that has left bytes behind: they may lie in the packet whose stamp it brought.
        let received_ns = received_wall_ns.filter(|_| entry.unread_since_ns == 0);
        stamps[index as usize].take(entry.socket(), received_ns, syscalls)
    }

    fn wall(&mut self) -> WallReading {
        self.sockets().clock.wall()
    }
}

/// A poll that took longer than this has slept: a system call that finds events returns within 1 to 2 microseconds,
/// a sleep with its wake-up takes longer.
const SLEPT_NS: u64 = 4_000;
/// Time added for each further event: the kernel polls each socket again (or copies its bytes), uncached when there
/// are thousands. A sleep ends with the first event, so a poll with many events has hardly slept; an error here
/// counts against the client.
const EVENT_NS: u64 = 1_000;

/// A poll that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll {
    pub enter_ns: u64,
    pub end_ns: u64,
    pub timeout_ns: u64,
    /// See [`has_slept`].
    pub has_slept: bool,
    /// No signal, as that which continues a stopped process, cut it short.
    pub is_whole: bool,
    /// It waited for several events, so that the first may have lain all the time.
    pub gathers: bool,
    /// It returned all that it saw.
    pub returns_all: bool,
}

/// What the polls of a backend tell of the arrival of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollTimes {
    /// The last instant at which what is returned now was not there.
    pub polled_ns: u64,
    /// End of the last poll that returned all that it saw.
    pub poll_end_ns: u64,
    /// See [`super::Io::set_wake_up`].
    pub wake_up_ns: u64,
}

impl PollTimes {
    /// Before the first poll.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { polled_ns: now_ns, poll_end_ns: now_ns, wake_up_ns: 0 }
    }

    /// Notes a poll. One that slept had nothing to return when it began. Otherwise what it returns may have been there since the
    /// end of the last poll; and one that left others out keeps the gap running.
    pub(super) fn note(&mut self, poll: Poll) {
        let Poll { enter_ns, timeout_ns, .. } = poll;
        let seen_ns = match poll.is_whole {
            true => seen_until_ns(enter_ns, poll.end_ns, timeout_ns, poll.has_slept),
            false => enter_ns,
        };
        self.polled_ns = match timeout_ns > 0 && poll.has_slept && !poll.gathers {
            true => slept_until_ns(enter_ns, seen_ns, timeout_ns, self.wake_up_ns),
            false => self.poll_end_ns,
        };
        if poll.returns_all {
            self.poll_end_ns = seen_ns;
        }
    }
}

/// Has a poll of this duration and this many events slept?
pub(super) fn has_slept(took_ns: u64, events: usize) -> bool {
    took_ns > SLEPT_NS + EVENT_NS * (events as u64).saturating_sub(1)
}

/// The instant up to which a poll has seen all events that it returns. A timed poll would have returned events from
/// before its end; a long poll without timeout has polled when it began, and was stopped or preempted for the rest.
fn seen_until_ns(enter_ns: u64, end_ns: u64, timeout_ns: u64, is_long: bool) -> u64 {
    match timeout_ns {
        0 if is_long => enter_ns,
        0 => end_ns,
        _ => end_ns.min(enter_ns.saturating_add(timeout_ns)),
    }
}

/// The last instant at which what a poll returns was not there, if the poll slept and has seen all up to `seen_ns`:
/// unless its timer ended it, it was over a wake-up before. Nothing was there when it began.
fn slept_until_ns(enter_ns: u64, seen_ns: u64, timeout_ns: u64, wake_up_ns: u64) -> u64 {
    let is_timed = seen_ns - enter_ns >= timeout_ns;
    if is_timed { seen_ns } else { seen_ns.saturating_sub(wake_up_ns).max(enter_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_see_no_later_than_their_timeout() {
        // (took, timeout, long) → seen_until_ns, from the instant at which it began
        let table = [
            (900, 0, false, 900),
            // Stopped within a poll that was to return at once.
            (300_000_000, 0, true, 0),
            (60_000, 500_000, true, 60_000),
            (500_000, 500_000, true, 500_000),
            // Stopped within one that was to wait, or woken late.
            (300_000_000, 500_000, true, 500_000),
            (60_000, u64::MAX, true, 60_000),
        ];
        for (took_ns, timeout_ns, is_long, expected_ns) in table {
            let poll_seen_ns = seen_until_ns(7, 7 + took_ns, timeout_ns, is_long) - 7;
            assert_eq!(poll_seen_ns, expected_ns, "{took_ns} ns of {timeout_ns} ns");
        }
    }

    #[test]
    fn sleeps_are_over_a_wake_up_before_they_end() {
        // (seen, timeout, wake-up) → the end of the sleep, from the instant at which it began
        let table = [
            (60_000, 500_000, 0, 60_000),
            (60_000, 500_000, 40_000, 20_000),
            (60_000, 500_000, 70_000, 0),
            (60_000, u64::MAX, 40_000, 20_000),
            // The timer ended it, and would have seen what came before.
            (500_000, 500_000, 40_000, 500_000),
        ];
        for (seen_ns, timeout_ns, wake_up_ns, expected_ns) in table {
            let slept_ns = slept_until_ns(7, 7 + seen_ns, timeout_ns, wake_up_ns) - 7;
            assert_eq!(slept_ns, expected_ns, "{seen_ns} ns of {timeout_ns} ns, {wake_up_ns} ns to wake");
        }
    }

    #[test]
    fn polls_with_many_events_have_hardly_slept() {
        // (took, events) → slept
        let table = [
            (1_500, 1, false),
            (4_000, 1, false),
            (4_001, 1, true),
            (60_000, 0, true),
            (60_000, 3, true),
            (60_000, 100, false),
            (250_000, 1_024, false),
        ];
        for (took_ns, events, slept) in table {
            assert_eq!(has_slept(took_ns, events), slept, "{took_ns} ns, {events} events");
        }
    }
}
