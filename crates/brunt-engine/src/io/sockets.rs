//! The sockets of a worker, and what epoll and io_uring have in common: an [`Io`] for every [`Backend`].
//!
//! A backend has the calls that wait, send and receive. Invariant: the generation of an entry changes with every connect and
//! every close, so that an event of an earlier connection with the same index is recognised as stale.

use super::kernel_stamps::{self, ConnectionStamps};
use super::poll_time::PollTimes;
use super::tls::{Over, Tunnels, Wire};
use super::{
    Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, ConnectionKind, Io, SendResult, Stamps,
    Until,
};
use crate::clock::{Clock, WallReading};
use crate::transport::datagrams;
use crate::transport::endpoint::Address;
use crate::transport::socket::{self, Established};
use crate::transport::tls_client::TlsClient;
use crate::worker::usage::{RUN_DELAY_SYSCALLS, read_run_delay_ns};
use brunt_plan::gather::Gather;
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
    #[inline]
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
        let Established { is_local } = self.socket().map_or(Err(libc::EBADF), socket::established)?;
        self.is_local = is_local;
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
        self.syscalls += Established::SYSCALLS;
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
    #[inline]
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
        // Queued sends go out first.
        self.hand_in_sends();
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
    #[inline]
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

    #[inline]
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
        let sent = datagrams::send(socket, bytes, ends, syscalls);
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

    #[inline]
    fn wait(&mut self, now_ns: u64, until: Until) -> u64 {
        self.wait_for_events(now_ns, until)
    }

    #[inline]
    fn next(&mut self) -> Option<Completion> {
        self.next_completion()
    }

    fn seen_ns(&self, index: ConnectionIndex) -> u64 {
        self.returned_all_ns(index)
    }

    #[inline]
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
