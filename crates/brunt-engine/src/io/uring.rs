//! io_uring behind [`super::Io`]: completions as the kernel has them.
//!
//! One io_uring_enter per iteration submits the sends and waits. Multishot receives fill buffers that the kernel
//! picks from a ring of addresses that both sides know. A send that is taken whole makes no completion, and the result of each send is
//! known when the enter
//! returns, because a send that would block fails instead (MSG_DONTWAIT). Connects and closes are plain system
//! calls. Invariants: no completion arrives between two enters; deferred kernel work (IORING_SETUP_DEFER_TASKRUN)
//! runs within an enter; where the kernel supports it, a wait ends at an absolute instant of CLOCK_MONOTONIC, so that submitting does not
//! extend it; a buffer is either in the ring and owned by the kernel, or lent to the worker until it is given back.

use super::sockets::{Backend, GENERATION_BITS, Poll, SocketEntry, Sockets, State, has_slept, offered};
use super::tls::Wire;
use super::{
    Chunk, CloseMode, Completion, CompletionKind, ConnectionIndex, ConnectionKind, SendResult, Until,
    kernel_stamps,
};
use crate::clock::Clock;
use brunt_plan::choice::Gather;
use brunt_plan::sockets::SocketOptions;
use brunt_proto::memcached::udp::{DATAGRAM_BYTES_MAX, DATAGRAM_ROOM};
use io_uring::types::{BufRingEntry, CancelBuilder, Fixed, RecvMsgOut, Timespec};
use io_uring::{EnterFlags, IoUring, Submitter, cqueue, opcode, squeue};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// What a send takes at most, before any was timed.
const SEND_START_NS: u64 = 10_000;
/// One in this many enters with sends does nothing else, and is timed.
const TIMED_EVERY: u32 = 128;
/// Entries of the submission ring: a turn that has more to hand in enters more than once.
const SUBMISSIONS: u32 = 256;
/// Receive buffers are at least and at most this large, and take this much memory together at most.
const BUFFER_MIN: usize = 512;
const BUFFER_MAX: usize = 64 << 10;
const BUFFERS_BYTES: usize = 4 << 20;
/// Minimum number of buffers: of one size, a small ring stays in the CPU's cache.
const BUFFERS_MIN: usize = 8;
/// Vectors of sends that were queued in pieces, until they are handed in.
const MESSAGES: usize = 32;
/// Enters after which an entry that the kernel does not take is an error.
const TRIES_MAX: u32 = 1_000;
/// What an entry of the ring is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum EntryKind {
    /// Bytes came in, or none will any more.
    Receive,
    /// A send was not taken whole.
    Send,
    /// A socket has room again, or the attempt to connect it has ended.
    Room,
    /// Records of TLS came in, or none will any more.
    Records,
    /// Bytes came in with their timestamp, or none will any more.
    Stamped,
}

/// The user data of an entry: index, kind, generation.
fn user_data(index: ConnectionIndex, kind: EntryKind, generation: u32) -> u64 {
    u64::from(index) | (kind as u64) << 32 | u64::from(generation) << (64 - GENERATION_BITS)
}

/// The bytes of the current completion.
#[derive(Clone, Copy, Debug, Default)]
enum CurrentBytes {
    #[default]
    Nothing,
    /// The bytes of a buffer.
    Buffer(u16),
    /// Bytes of a tunnel, which may have more to report.
    Decrypted,
}

/// A send without a reported result.
#[derive(Clone, Copy, Debug)]
struct PendingSend {
    index: ConnectionIndex,
    generation: u32,
    offered: usize,
    /// Bytes taken or an errno; all, unless a completion reports otherwise.
    taken: Result<usize, i32>,
    /// The clock before the enter that handed it in.
    at_ns: u64,
}

/// The vector of one send in pieces. Its pointers are valid until the send has been handed in.
struct Message {
    header: libc::msghdr,
    parts: [libc::iovec; brunt_proto::out::PARTS_MAX],
}

/// The io_uring backend of one worker.
pub(crate) struct Uring {
    ring: IoUring,
    pool: Pool,
    /// Time-outs are absolute, and waits for several completions end with fewer after a while (Linux 6.12 has both).
    is_absolute: bool,
    /// Completions of the last enter, and the next one to handle.
    arrived: Vec<cqueue::Entry>,
    cursor: usize,
    /// Sends in queueing order; the first `handed_in` were submitted, and of those the first `reported` were reported.
    sends: Vec<PendingSend>,
    handed_in: usize,
    reported: usize,
    messages: Vec<Message>,
    messages_used: usize,
    /// Connections, with their generations, for which no buffer was free.
    starved: Vec<(ConnectionIndex, u32)>,
    /// Connections whose sockets held more at the last poll than it returned.
    unread: Vec<ConnectionIndex>,
    current_bytes: CurrentBytes,
    /// The end of the last enter.
    entered_ns: u64,
    /// The slowest of the sends that were timed last.
    send_ns: u64,
    until_timed: u32,
    /// The timestamp of the bytes received last.
    received_wall_ns: Option<u64>,
    /// Behind the ring, which may have been given bytes of its tunnels.
    sockets: Sockets,
}

/// Parameters of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Number of connections.
    pub connections: usize,
    /// Bytes of replies in flight on a connection.
    pub reply_bytes: usize,
    /// Connections that are UDP sockets, where each receive completion is a datagram.
    pub datagrams: usize,
    pub sockets: SocketOptions,
    pub gather: Gather,
}

impl Shape {
    /// For one connection with short replies, of datagrams or not.
    pub(crate) fn of_one(datagrams: usize) -> Self {
        let (sockets, gather) = (SocketOptions::default(), Gather::NOTHING);
        Self { connections: 1, reply_bytes: 1, datagrams, sockets, gather }
    }

    /// How many receive buffers of which size.
    fn buffers(self) -> (u16, usize) {
        let streams = self.connections - self.datagrams;
        // A datagram has a buffer of its own, and those of a reply come together.
        let of_datagrams = self.datagrams * self.reply_bytes.div_ceil(DATAGRAM_BYTES_MAX);
        let of_stream = self.reply_bytes.clamp(BUFFER_MIN, BUFFER_MAX).next_power_of_two();
        let size = match (streams, self.datagrams) {
            (_, 0) => of_stream,
            (0, _) => DATAGRAM_ROOM,
            _ => of_stream.max(DATAGRAM_ROOM),
        };
        let count = (streams + of_datagrams).next_power_of_two();
        (count.clamp(BUFFERS_MIN, BUFFERS_BYTES / size) as u16, size)
    }
}

impl Uring {
    /// A backend for a worker; to be called on its thread, which is the only one that may use it. An error also where a ring can be set
    /// up but not entered, as some sandboxes have it.
    #[expect(unsafe_code, reason = "the kernel is given memory to write to")]
    pub(crate) fn new(shape: Shape, clock: Clock) -> io::Result<Self> {
        let completions =
            (shape.connections * 2).next_power_of_two().clamp(4 * SUBMISSIONS as usize, 1 << 16);
        let mut ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(completions as u32)
            .build(SUBMISSIONS)?;
        ring.submitter().register_files_sparse(shape.connections.max(1) as u32)?;
        let is_absolute = ring.params().is_feature_min_timeout();
        let now_ns = clock.now_ns();
        let elapsed =
            Waiting { want: 1, gather_ns: 0, timeout_ns: 0, monotonic_ns: clock.monotonic_of(now_ns) };
        enter(&mut ring, is_absolute, Some(elapsed))?;
        let (count, size) = shape.buffers();
        // SAFETY: nothing below fails, and of the fields `pool` is declared behind `ring`, so that it is dropped after it; `drop` ends
        // whatever is under way.
        let pool = unsafe { Pool::register(&ring.submitter(), count, size)? };
        Ok(Self {
            is_absolute,
            ring,
            pool,
            sockets: Sockets::new(shape.connections, shape.sockets, shape.gather, clock),
            arrived: Vec::with_capacity(completions),
            cursor: 0,
            sends: Vec::with_capacity(shape.connections),
            handed_in: 0,
            reported: 0,
            messages: (0..MESSAGES).map(|_| Message::EMPTY).collect(),
            messages_used: 0,
            starved: Vec::with_capacity(shape.connections),
            unread: Vec::with_capacity(completions),
            current_bytes: CurrentBytes::Nothing,
            entered_ns: now_ns,
            send_ns: SEND_START_NS,
            until_timed: 1,
            received_wall_ns: None,
        })
    }

    /// Adds the socket of a connection to the table of the ring.
    fn add_to_table(&mut self, index: ConnectionIndex) -> io::Result<()> {
        let socket = self.sockets.entries[index as usize].socket().map_or(-1, AsRawFd::as_raw_fd);
        self.ring.submitter().register_files_update(index, &[socket]).map(drop)
    }

    /// Takes a socket that is connected already.
    #[cfg(test)]
    pub(crate) fn adopt(
        &mut self,
        index: ConnectionIndex,
        socket: socket2::Socket,
        kind: ConnectionKind,
    ) -> io::Result<()> {
        self.sockets.entries[index as usize].begin(socket, kind);
        self.add_to_table(index)?;
        self.sockets.establish(index).map_err(io::Error::from_raw_os_error)?;
        self.receive(index);
        Ok(())
    }

    // ---- entries ------------------------------------------------------------------------------------------------------

    /// Queues an entry; enters where the ring is full.
    #[expect(unsafe_code, reason = "the kernel follows pointers in entries")]
    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: sends have pointers, and their bytes stay until they have been handed in ([`super::Io::send`]), which is with
            // the next enter: the kernel takes or refuses them there and then. The pointer of a stamped receive is to a static.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            self.hand_in();
        }
    }

    /// Starts a multishot receive.
    fn receive(&mut self, index: ConnectionIndex) {
        let entry = &self.sockets.entries[index as usize];
        let (kind, receive) = match entry.kind {
            ConnectionKind::Stamped => {
                let header = &raw const STAMPED_HEADER.0;
                (EntryKind::Stamped, opcode::RecvMsgMulti::new(Fixed(index), header, GROUP).build())
            }
            ConnectionKind::Tls => (EntryKind::Records, opcode::RecvMulti::new(Fixed(index), GROUP).build()),
            _ => (EntryKind::Receive, opcode::RecvMulti::new(Fixed(index), GROUP).build()),
        };
        let data = user_data(index, kind, entry.generation);
        self.push(&receive.user_data(data));
    }

    // ---- entering -----------------------------------------------------------------------------------------------------

    /// Enters, and takes over what has come.
    fn enter(&mut self, waiting: Option<Waiting>, enter_ns: u64) -> io::Result<()> {
        for send in &mut self.sends[self.handed_in..] {
            send.at_ns = enter_ns;
        }
        self.handed_in = self.sends.len();
        self.messages_used = 0;
        self.sockets.syscalls += 1;
        let mut entered = enter(&mut self.ring, self.is_absolute, waiting);
        self.collect();
        let mut tries = 0;
        while !self.ring.submission().is_empty() {
            // The kernel had no memory for an entry, or no room for completions: those that came have made some.
            tries += 1;
            assert!(tries < TRIES_MAX, "the kernel takes no entries: {entered:?}");
            self.sockets.syscalls += 1;
            entered = enter(&mut self.ring, self.is_absolute, None);
            self.collect();
        }
        entered
    }

    /// Submits queued entries without waiting.
    fn hand_in(&mut self) {
        let enter_ns = self.sockets.clock.now_ns();
        let sends = (self.sends.len() - self.handed_in) as u64;
        let entered = self.enter(None, enter_ns);
        debug_assert!(entered.is_ok(), "what is queued is in order: {entered:?}");
        self.entered_ns = self.sockets.clock.now_ns();
        if let Some(took_ns) = (self.entered_ns - enter_ns).checked_div(sends) {
            self.send_ns = slowest_send_ns(self.send_ns, took_ns);
        }
    }

    /// Takes completions out of the ring. Sends that were not taken whole are noted at once.
    fn collect(&mut self) {
        for entry in self.ring.completion() {
            if (entry.user_data() >> 32) as u8 == EntryKind::Send as u8 {
                let socket = &self.sockets.entries[entry.user_data() as u32 as usize];
                if let Some(send) = socket.pending_send.filter(|_| is_of(&entry, socket)) {
                    let taken = entry.result();
                    self.sends[send as usize].taken = match -taken {
                        libc::EAGAIN | libc::EINTR => Ok(0),
                        errno if taken < 0 => Err(errno),
                        _ => Ok(taken as usize),
                    };
                }
            } else {
                self.arrived.push(entry);
            }
        }
    }

    /// Would an enter submit or collect anything?
    fn is_called(&mut self) -> bool {
        let queue = self.ring.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    // ---- completions ----------------------------------------------------------------------------------------------------

    /// The buffer that was lent to the worker is the kernel's again.
    fn take_back(&mut self) {
        if let CurrentBytes::Buffer(buffer) = std::mem::take(&mut self.current_bytes) {
            self.pool.give_back(buffer);
        }
    }

    /// Reports the next result of a send.
    fn next_send(&mut self) -> Option<Completion> {
        while self.reported < self.handed_in {
            let PendingSend { index, generation, offered, taken, at_ns } = self.sends[self.reported];
            self.reported += 1;
            let is_last = self.reported == self.sends.len();
            let entry = &mut self.sockets.entries[index as usize];
            let is_current = entry.generation == generation;
            if is_current {
                entry.pending_send = None;
            }
            if is_last {
                (self.reported, self.handed_in) = (0, 0);
                self.sends.clear();
            }
            if is_current {
                if matches!(taken, Ok(taken) if taken < offered) {
                    self.await_room(index);
                }
                let sent = Completion { index, at_ns, polled_ns: at_ns, kind: CompletionKind::Sent(taken) };
                match self.sockets.entries[index as usize].kind {
                    ConnectionKind::Stream | ConnectionKind::Datagrams => return Some(sent),
                    ConnectionKind::Stamped => {
                        self.sockets.stamps[index as usize].add_sent(taken.unwrap_or(0));
                        return Some(sent);
                    }
                    ConnectionKind::Tls => {
                        if let Some(completion) = self.pass(sent) {
                            return Some(completion);
                        }
                    }
                }
            }
        }
        None
    }

    fn completion(&self, index: ConnectionIndex, kind: CompletionKind) -> Completion {
        Completion { index, at_ns: self.entered_ns, polled_ns: self.sockets.polls.polled_ns, kind }
    }

    /// Turns an entry of the current connection into a completion.
    fn take(&mut self, index: ConnectionIndex, entry: &cqueue::Entry) -> Option<Completion> {
        match entry.user_data() >> 32 & 0xff {
            kind if kind == EntryKind::Receive as u64 => self.take_received(index, entry),
            _ => self.take_other(index, entry),
        }
    }

    /// Handles entries other than received bytes.
    #[inline(never)]
    fn take_other(&mut self, index: ConnectionIndex, entry: &cqueue::Entry) -> Option<Completion> {
        let completion = match entry.user_data() >> 32 & 0xff {
            kind if kind == EntryKind::Records as u64 => self.take_received(index, entry)?,
            kind if kind == EntryKind::Stamped as u64 => self.take_received_stamped(index, entry)?,
            _ if !self.sockets.entries[index as usize].is_open() => {
                let completion = self.finish_connecting(index);
                self.entered_ns = completion.at_ns;
                completion
            }
            _ => self.completion(index, CompletionKind::Writable),
        };
        match self.sockets.entries[index as usize].kind {
            ConnectionKind::Tls => self.pass(completion),
            _ => Some(completion),
        }
    }

    /// Passes a socket's completion through the tunnel of a TLS connection.
    #[inline(never)]
    fn pass(&mut self, completion: Completion) -> Option<Completion> {
        self.with_tunnels(|tunnels| tunnels.take(completion));
        let queued = self.sockets.tunnels.next_queued();
        if queued.is_some() {
            self.take_back();
            self.current_bytes = CurrentBytes::Decrypted;
        }
        queued
    }

    /// Bytes came in, or will come no more.
    #[inline]
    fn take_received(&mut self, index: ConnectionIndex, arrived: &cqueue::Entry) -> Option<Completion> {
        let result = arrived.result();
        let is_armed = cqueue::more(arrived.flags());
        let entry = &mut self.sockets.entries[index as usize];
        let polled_ns = entry.polled_ns(self.sockets.polls.polled_ns);
        if let (1.., CurrentBytes::Buffer(buffer)) = (result, self.current_bytes) {
            entry.unread_since_ns = 0;
            if cqueue::sock_nonempty(arrived.flags()) {
                entry.unread_since_ns = polled_ns;
                self.unread.push(index);
            }
            if !is_armed {
                self.receive(index);
            }
            let chunk = Chunk { start: self.pool.start(buffer), len: result as usize };
            return Some(Completion { polled_ns, ..self.completion(index, CompletionKind::Received(chunk)) });
        }
        if result == -libc::ENOBUFS || result == -libc::EAGAIN || result == -libc::EINTR {
            // The bytes are still in the socket. Buffers return as the worker goes on, so the receive is restarted
            // with the next wait.
            entry.unread_since_ns = polled_ns;
            self.starved.push((index, entry.generation));
            self.unread.push(index);
            return None;
        }
        if entry.kind == ConnectionKind::Datagrams && result == 0 {
            // Not the end, but a datagram without a byte.
            if !is_armed {
                self.receive(index);
            }
            let kind = CompletionKind::Received(Chunk { start: 0, len: 0 });
            return Some(Completion { index, at_ns: self.entered_ns, polled_ns, kind });
        }
        self.hang_up(index, CloseMode::Orderly);
        let errno = (result < 0).then_some(-result);
        Some(Completion { index, at_ns: self.entered_ns, polled_ns, kind: CompletionKind::Closed(errno) })
    }

    /// As `take_received`, with the timestamp of the bytes in front of them.
    fn take_received_stamped(
        &mut self,
        index: ConnectionIndex,
        arrived: &cqueue::Entry,
    ) -> Option<Completion> {
        let completion = self.take_received(index, arrived)?;
        let CompletionKind::Received(whole) = completion.kind else { return Some(completion) };
        let bytes = self.pool.bytes(whole.start, whole.len).unwrap_or_default();
        let parsed = RecvMsgOut::parse(bytes, &STAMPED_HEADER.0);
        let len = parsed.as_ref().map_or(0, |message| message.payload_data().len());
        self.received_wall_ns =
            parsed.ok().and_then(|message| kernel_stamps::stamp_of(message.control_data()));
        if len == 0 {
            self.hang_up(index, CloseMode::Orderly);
            return Some(Completion { kind: CompletionKind::Closed(None), ..completion });
        }
        let chunk = Chunk { start: whole.start + whole.len - len, len };
        let kind = match self.sockets.stamps[index as usize].is_awaited() {
            true => CompletionKind::Stamped(chunk),
            false => CompletionKind::Received(chunk),
        };
        Some(Completion { kind, ..completion })
    }
}

/// What a receive with timestamps asks for, beside the bytes: room for one timestamp.
struct StampedHeader(libc::msghdr);

// SAFETY: its pointers are null, and it is never written.
#[expect(unsafe_code, reason = "a constant with null pointers")]
unsafe impl Sync for StampedHeader {}

static STAMPED_HEADER: StampedHeader =
    StampedHeader(libc::msghdr { msg_controllen: kernel_stamps::STAMP_BYTES, ..Message::EMPTY.header });

impl Message {
    const EMPTY: Self = Self {
        header: libc::msghdr {
            msg_name: std::ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: std::ptr::null_mut(),
            msg_iovlen: 0,
            msg_control: std::ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        },
        parts: [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; brunt_proto::out::PARTS_MAX],
    };
}

/// Does this entry belong to the current connection with its index?
fn is_of(entry: &cqueue::Entry, socket: &SocketEntry) -> bool {
    (entry.user_data() >> (64 - GENERATION_BITS)) as u32 == socket.generation
}

impl Backend for Uring {
    const DEFERS_SENDS: bool = true;

    fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    fn sockets_mut(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    fn register(&mut self, index: ConnectionIndex) -> Result<(), i32> {
        self.add_to_table(index).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        self.await_room(index);
        Ok(())
    }

    fn unregister(&mut self, index: ConnectionIndex) {
        // An entry that is queued would be carried out on the next socket with this index.
        if !self.ring.submission().is_empty() {
            self.hand_in();
        }
        // One under way would keep the socket open. That there is none is no error.
        let _ = self.ring.submitter().register_sync_cancel(None, CancelBuilder::fd(Fixed(index)).all());
        self.sockets.syscalls += 2;
        let emptied = self.ring.submitter().register_files_update(index, &[-1]);
        debug_assert!(emptied.is_ok(), "the table has a place for every index: {emptied:?}");
    }

    fn begin_receiving(&mut self, index: ConnectionIndex) {
        self.receive(index);
    }

    /// Polls once.
    fn await_room(&mut self, index: ConnectionIndex) {
        let data = user_data(index, EntryKind::Room, self.sockets.entries[index as usize].generation);
        self.push(&opcode::PollAdd::new(Fixed(index), libc::POLLOUT as u32).build().user_data(data));
    }

    #[inline]
    #[expect(unsafe_code, reason = "the trait's")]
    unsafe fn send_on_socket(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        match self.sockets.entries[index as usize].state {
            State::Stream(_) | State::Other(_) => {
                // SAFETY: the caller's promise.
                unsafe { self.queue(index, parts) };
                None
            }
            State::Closed | State::Connecting(_) => Some(self.not_connected()),
        }
    }

    fn hand_in_sends(&mut self) {
        if self.handed_in < self.sends.len() {
            self.hand_in();
        }
    }

    #[inline]
    fn wait_for_events(&mut self, now_ns: u64, until: Until) -> u64 {
        self.take_back();
        if self.cursor < self.arrived.len() || self.reported < self.handed_in {
            // A close has submitted what was queued and collected completions. Other queued sends must have their
            // results before more are queued.
            self.hand_in_sends();
            return self.sockets.clock.now_ns();
        }
        let mut enter_ns = now_ns;
        self.arrived.clear();
        self.cursor = 0;
        self.unread.clear();
        while let Some((index, generation)) = self.starved.pop() {
            if self.sockets.entries[index as usize].generation == generation {
                self.receive(index);
            }
        }
        let until_ns = match until {
            Until::Now => 0,
            Until::Instant(at_ns) => at_ns,
        };
        let mut timeout_ns = until_ns.saturating_sub(enter_ns);
        let mut sends = (self.sends.len() - self.handed_in) as u64;
        if sends > 0 && timeout_ns > 0 {
            self.until_timed -= 1;
            if self.until_timed == 0 {
                self.until_timed = TIMED_EVERY;
                self.hand_in();
                (enter_ns, sends) = (self.entered_ns, 0);
                // What that took is no part of the wait.
                timeout_ns = until_ns.saturating_sub(enter_ns);
            }
        }
        let want = self.sockets.gather.completions.min(self.sockets.open).max(1);
        let waiting = (timeout_ns > 0 && self.arrived.is_empty()).then(|| Waiting {
            want,
            gather_ns: self.sockets.gather.most.0.min(timeout_ns),
            timeout_ns,
            monotonic_ns: self.sockets.clock.monotonic_of(until_ns),
        });
        let mut is_whole = true;
        if waiting.is_some() || self.is_called() {
            is_whole = self.enter(waiting, enter_ns).is_ok();
        }
        self.entered_ns = self.sockets.clock.now_ns();
        self.note_poll(enter_ns, timeout_ns, sends, is_whole, waiting.is_some() && want > 1);
        self.entered_ns
    }

    #[inline]
    fn next_completion(&mut self) -> Option<Completion> {
        match std::mem::take(&mut self.current_bytes) {
            CurrentBytes::Nothing => {}
            CurrentBytes::Buffer(buffer) => self.pool.give_back(buffer),
            CurrentBytes::Decrypted => {
                if let Some(completion) = self.sockets.tunnels.next_queued() {
                    self.current_bytes = CurrentBytes::Decrypted;
                    return Some(completion);
                }
            }
        }
        if let Some(sent) = self.next_send() {
            return Some(sent);
        }
        while self.cursor < self.arrived.len() {
            let entry = self.arrived[self.cursor].clone();
            self.cursor += 1;
            self.take_back();
            self.current_bytes =
                cqueue::buffer_select(entry.flags()).map_or(CurrentBytes::Nothing, CurrentBytes::Buffer);
            let index = entry.user_data() as u32;
            if is_of(&entry, &self.sockets.entries[index as usize])
                && let Some(completion) = self.take(index, &entry)
            {
                return Some(completion);
            }
        }
        None
    }

    fn returned_all_ns(&self, index: ConnectionIndex) -> u64 {
        // A receive that found no buffer may have found no bytes either: a poll after it has been restarted returns what there is.
        match self.unread.contains(&index) {
            true => self.sockets.entries[index as usize].unread_since_ns.min(self.sockets.polls.poll_end_ns),
            false => self.sockets.polls.poll_end_ns,
        }
    }

    fn received(&self, chunk: Chunk) -> Option<&[u8]> {
        self.pool.bytes(chunk.start, chunk.len)
    }

    fn received_wall_ns(&self) -> Option<u64> {
        self.received_wall_ns
    }
}

impl Uring {
    /// Queues a send on an open connection, to be handed in with the next enter. It has no other without a result.
    ///
    /// # Safety
    /// As of [`super::Io::send`].
    #[inline(always)]
    #[expect(unsafe_code, reason = "the kernel reads the bytes later")]
    unsafe fn queue(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) {
        if self.messages_used == MESSAGES || self.ring.submission().is_full() {
            self.hand_in();
        }
        let entry = &mut self.sockets.entries[index as usize];
        // A second one would hand in the bytes of the first again.
        assert!(entry.pending_send.is_none(), "one send at a time");
        let generation = entry.generation;
        entry.pending_send = Some(self.sends.len() as u32);
        let offered = offered(parts);
        let data = user_data(index, EntryKind::Send, generation);
        // Taken whole or failing at once with the number of bytes taken; only a failure makes a completion.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let submission = match parts {
            [only] => opcode::Send::new(Fixed(index), only.as_ptr(), only.len() as u32).flags(flags).build(),
            parts => {
                let header = self.message(parts);
                opcode::SendMsg::new(Fixed(index), header).flags(flags as u32).build()
            }
        };
        self.push(&submission.user_data(data).flags(squeue::Flags::SKIP_SUCCESS));
        self.sends.push(PendingSend { index, generation, offered, taken: Ok(offered), at_ns: 0 });
    }

    /// Stores the message header of a send until it is submitted.
    fn message(&mut self, parts: &[IoSlice<'_>]) -> *const libc::msghdr {
        let message = &mut self.messages[self.messages_used];
        self.messages_used += 1;
        for (kept, part) in message.parts.iter_mut().zip(parts) {
            *kept = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        }
        message.header.msg_iov = message.parts.as_mut_ptr();
        message.header.msg_iovlen = parts.len();
        &raw const message.header
    }

    /// Notes the interval in which the client has polled.
    fn note_poll(&mut self, enter_ns: u64, timeout_ns: u64, sends: u64, is_whole: bool, gathers: bool) {
        let took_ns = self.entered_ns - enter_ns;
        // What handing in takes is no sleep; twice the slowest of those that were timed.
        let handing_in_ns = 2 * self.send_ns * sends;
        let is_long = has_slept(took_ns.saturating_sub(handing_in_ns), self.arrived.len());
        self.sockets.polls.note(Poll {
            enter_ns,
            end_ns: self.entered_ns,
            timeout_ns,
            has_slept: is_long,
            is_whole,
            gathers,
            returns_all: !self.ring.submission().cq_overflow(),
        });
    }
}

/// The slowest of the recent timed sends. It decays slowly, to hold for sends that were not timed; a send that was
/// preempted raises it only a little.
fn slowest_send_ns(slowest_ns: u64, took_ns: u64) -> u64 {
    took_ns.clamp(slowest_ns - slowest_ns / 8, 2 * slowest_ns)
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Nothing may be received into memory that is about to be freed.
        let _ = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any());
    }
}

/// Why a ring cannot be had, for a user.
pub(crate) fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "not supported by the kernel, or hidden by a sandbox".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "not permitted (kernel.io_uring_disabled, or a sandbox)".to_owned()
        }
        Some(libc::EINVAL) => "requires Linux 6.1".to_owned(),
        _ if error.kind() == io::ErrorKind::OutOfMemory => {
            "locked-memory limit too low (ulimit -l)".to_owned()
        }
        _ => error.to_string(),
    }
}

/// `IORING_ENTER_ABS_TIMER`, Linux 6.12: the time-out is an instant.
const ABSOLUTE_TIMER: u32 = 1 << 5;

/// `struct io_uring_getevents_arg` of linux/io_uring.h.
#[repr(C)]
struct Argument {
    sigmask: u64,
    sigmask_bytes: u32,
    min_wait_us: u32,
    timespec: u64,
}

/// How to wait.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Completions that end the wait.
    want: u32,
    /// After this long one completion is enough; at most as long as the wait.
    gather_ns: u64,
    /// The wait ends after this long,
    timeout_ns: u64,
    /// which is this instant of CLOCK_MONOTONIC.
    monotonic_ns: u64,
}

/// Submits everything queued, runs deferred work of the kernel, and waits on request.
#[expect(unsafe_code, reason = "the raw call: its newer arguments have no safe wrapper")]
fn enter(ring: &mut IoUring, is_absolute: bool, waiting: Option<Waiting>) -> io::Result<()> {
    let to_submit = ring.submission().len() as u32;
    let submitter = ring.submitter();
    let Some(waiting) = waiting else {
        // SAFETY: no argument, and every queued entry was pushed with memory that lives until it has been handed in.
        unsafe { submitter.enter::<libc::sigset_t>(to_submit, 0, EnterFlags::GETEVENTS.bits(), None)? };
        return Ok(());
    };
    // Where one completion cannot be enough after a while, the wait itself is that short.
    let is_cut = !is_absolute && waiting.want > 1;
    let timeout_ns = match (is_absolute, is_cut) {
        (true, _) => waiting.monotonic_ns,
        (false, true) => waiting.timeout_ns.min(waiting.gather_ns),
        (false, false) => waiting.timeout_ns,
    };
    let timespec = Timespec::from(Duration::from_nanos(timeout_ns));
    let gathers = is_absolute && waiting.want > 1;
    let argument = Argument {
        sigmask: 0,
        sigmask_bytes: 0,
        min_wait_us: if gathers { (waiting.gather_ns / 1_000).min(u64::from(u32::MAX)) as u32 } else { 0 },
        timespec: (&raw const timespec) as u64,
    };
    let flags = (EnterFlags::GETEVENTS | EnterFlags::EXT_ARG).bits();
    let flags = if is_absolute { flags | ABSOLUTE_TIMER } else { flags };
    // SAFETY: argument and time are valid for the call, which reads them and keeps neither; for the entries see above.
    match unsafe { submitter.enter(to_submit, waiting.want, flags, Some(&argument)) } {
        Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
        entered => entered.map(drop),
    }
}

/// Rings and buffers begin with a page; the kernel asks that of the ring.
const PAGE: usize = 4096;
/// The only group of buffers that a ring has.
const GROUP: u16 = 0;

/// Memory that begins with a page.
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

#[expect(unsafe_code, reason = "memory that begins with a page")]
impl Pages {
    fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes.max(1), PAGE).expect("a power of two, and far below isize::MAX");
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        Self { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

#[expect(unsafe_code, reason = "frees what it has allocated")]
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The buffers of one ring.
struct Pool {
    ring: Pages,
    memory: Pages,
    /// A power of two.
    count: u16,
    buffer_bytes: usize,
    /// Buffers given to the kernel so far, modulo 2¹⁶.
    tail: u16,
}

#[expect(unsafe_code, reason = "memory that the kernel writes to, and a ring that it reads")]
impl Pool {
    /// `count` buffers of `buffer_bytes` each, both powers of two; registered with `submitter`'s ring.
    ///
    /// # Safety
    /// The pool outlives that ring, and whatever the ring has under way.
    unsafe fn register(submitter: &Submitter<'_>, count: u16, buffer_bytes: usize) -> io::Result<Self> {
        assert!(count.is_power_of_two() && buffer_bytes.is_power_of_two(), "{count} × {buffer_bytes}");
        let mut pool = Self {
            ring: Pages::new(usize::from(count) * size_of::<BufRingEntry>()),
            memory: Pages::new(usize::from(count) * buffer_bytes),
            count,
            buffer_bytes,
            tail: 0,
        };
        // SAFETY: the address is that of a page, there is room for `count` entries, and the caller keeps the pool alive.
        unsafe { submitter.register_buf_ring_with_flags(pool.ring.start.as_ptr() as u64, count, GROUP, 0)? };
        (0..count).for_each(|id| pool.give_back(id));
        Ok(pool)
    }

    /// Where a buffer begins, counted from the first.
    fn start(&self, id: u16) -> usize {
        usize::from(id) * self.buffer_bytes
    }

    /// Bytes of a buffer that is lent out, if they lie in one.
    fn bytes(&self, start: usize, len: usize) -> Option<&[u8]> {
        if start + len > self.memory.layout.size() {
            return None;
        }
        // SAFETY: within the memory, which was zeroed and so is initialised; the kernel writes to no buffer that is lent out.
        Some(unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr().add(start), len) })
    }

    /// Gives a buffer to the kernel.
    fn give_back(&mut self, id: u16) {
        debug_assert!(id < self.count);
        let place = usize::from(self.tail & (self.count - 1));
        let ring = self.ring.start.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the ring has `count` entries and `id` names one of as many buffers. The kernel reads an entry only when the
        // tail has moved past it, which the store below does last. The tail lies in the first entry's spare field, which
        // `set_addr`, `set_len` and `set_bid` leave alone.
        unsafe {
            let entry = &mut *ring.add(place);
            entry.set_addr(self.memory.start.as_ptr().add(self.start(id)) as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(ring).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Io;
    use crate::transport::Address;
    use std::io::Write;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn refusals_name_the_cause() {
        let table = [
            (libc::ENOSYS, "not supported by the kernel, or hidden by a sandbox"),
            (libc::EPERM, "not permitted (kernel.io_uring_disabled, or a sandbox)"),
            (libc::EINVAL, "requires Linux 6.1"),
        ];
        for (errno, expected) in table {
            assert_eq!(refusal(&io::Error::from_raw_os_error(errno)), expected);
        }
    }

    /// What sends took, one after another → what they are taken to take at the most.
    #[test]
    fn preempted_sends_barely_change_the_estimate() {
        let preempted = [&[3_000_000][..], &[2_000; 8]].concat();
        let table = [
            (&[40_000; 2][..], 40_000),
            (&[3_000_000], 20_000),
            (&preempted, 6_874),
            (&[2_000; 40], 2_000),
            (&[2_000, 9_000, 2_000], 7_875),
        ];
        for (taken_ns, expected) in table {
            let slowest_ns =
                taken_ns.iter().fold(SEND_START_NS, |slowest, took| slowest_send_ns(slowest, *took));
            assert_eq!(slowest_ns, expected, "{taken_ns:?}");
        }
    }

    /// What the end of a connection leaves in the queue belongs to its socket, not to the next one with its index.
    #[test]
    fn nothing_queued_reaches_the_next_socket_of_a_connection() {
        let mut uring = match Uring::new(Shape::of_one(0), Clock::start()) {
            Ok(uring) => uring,
            Err(error) => return eprintln!("SKIPPED: {}", refusal(&error)),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Network(listener.local_addr().unwrap());
        let next = |uring: &mut Uring| {
            let deadline_ns = uring.now_ns() + 1_000_000_000;
            loop {
                if let Some(completion) = uring.next() {
                    return completion.kind;
                }
                let now_ns = uring.now_ns();
                assert!(now_ns < deadline_ns, "nothing comes");
                uring.wait(now_ns, Until::Instant(deadline_ns));
            }
        };
        for is_stamped in [false, true, true, false] {
            uring.connect(0, &address, None, is_stamped).unwrap();
            // Before anything is handed in for the new socket.
            let (mut peer, _) = listener.accept().unwrap();
            peer.write_all(b"reply").unwrap();
            assert!(matches!(next(&mut uring), CompletionKind::Connected));
            let CompletionKind::Received(chunk) = next(&mut uring) else { panic!("bytes come") };
            assert_eq!(uring.bytes(chunk), b"reply");
            drop(peer);
            assert!(matches!(next(&mut uring), CompletionKind::Closed(None)));
        }
    }

    /// As many datagrams as there are buffers leave the receive without one, and the socket empty: it holds something unread for
    /// all that is known, until the next poll.
    #[test]
    fn a_receive_without_a_buffer_counts_as_unread_for_one_poll() {
        let mut uring = match Uring::new(Shape::of_one(1), Clock::start()) {
            Ok(uring) => uring,
            Err(error) => return eprintln!("SKIPPED: {}", refusal(&error)),
        };
        let [own, peer] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        own.connect(peer.local_addr().unwrap()).unwrap();
        peer.connect(own.local_addr().unwrap()).unwrap();
        own.set_nonblocking(true).unwrap();
        uring.adopt(0, own.into(), ConnectionKind::Datagrams).unwrap();
        let poll = |uring: &mut Uring| {
            let now_ns = uring.now_ns();
            uring.wait(now_ns, Until::Now);
            std::iter::from_fn(|| uring.next()).count()
        };
        assert_eq!((poll(&mut uring), uring.seen_ns(0)), (0, uring.sockets.polls.poll_end_ns));
        let count = usize::from(Shape::of_one(1).buffers().0);
        (0..count).for_each(|_| assert_eq!(peer.send(b"x").unwrap(), 1));
        assert_eq!(poll(&mut uring), count);
        assert!(uring.seen_ns(0) < uring.sockets.polls.poll_end_ns);
        assert_eq!((poll(&mut uring), uring.seen_ns(0)), (0, uring.sockets.polls.poll_end_ns));
        // It goes on where it stopped.
        peer.send(b"x").unwrap();
        assert_eq!((poll(&mut uring), uring.seen_ns(0)), (1, uring.sockets.polls.poll_end_ns));
    }
}
