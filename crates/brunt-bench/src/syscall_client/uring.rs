//! The floor on io_uring: one system call per turn, which hands in all sends of the turn and waits for what comes next.
//!
//! Multishot receives into provided buffers, fixed files, deferred task work, sends that complete only on failure.
//! Nothing is probed: a kernel without any of it rejects it, and the client reports that. Invariant: a buffer
//! returns to the kernel in the iteration that brought it.

#![allow(unsafe_code, reason = "entries of io_uring carry addresses that the kernel reads and writes")]

use super::load::{Load, Timer};
use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU16, Ordering};

/// The group of the provided buffers.
const GROUP: u16 = 0;
/// In an entry's user data, above the connection: what it is.
const RECEIVE: u64 = 0;
const SEND: u64 = 1 << 32;
const TIMER: u64 = 2 << 32;

/// Makes the load's requests until all are answered, waiting for `gather` completions at a time. Returns the system
/// calls it took.
///
/// # Errors
/// The kernel refuses a call, or a server ends a connection.
pub(super) fn run(
    streams: &[TcpStream],
    load: &mut Load<'_>,
    timer: &mut Timer,
    reply_bytes: usize,
    gather: usize,
) -> io::Result<u64> {
    // A turn submits a send and at worst a new receive for each connection, and the timer.
    let entries = (2 * streams.len() as u32 + 2).next_power_of_two();
    // Before the ring, so that it is freed after it.
    let mut buffers = Buffers::new(2 * streams.len(), reply_bytes)?;
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_no_sqarray()
        .setup_cqsize(4 * entries)
        .build(entries)?;
    let (mut submitter, mut submissions, mut completions) = ring.split();
    let descriptors: Vec<i32> = streams.iter().map(AsRawFd::as_raw_fd).collect();
    submitter.register_files(&descriptors)?;
    // Saves the kernel the descriptor lookup; a thread has sixteen such entries.
    submitter.register_ring_fd()?;
    buffers.register(&submitter)?;
    timer.start()?;
    watch(&mut submissions, timer);
    for connection in 0..streams.len() as u32 {
        receive(&mut submissions, connection);
        send(&mut submissions, connection, load.begin(connection));
    }
    let mut turns = 0;
    let mut is_given_up = false;
    while !load.is_over() && !is_given_up {
        turns += 1;
        // At the end fewer may come than are gathered.
        let want = if load.is_stopping() { 1 } else { gather };
        enter(&submitter, &mut submissions, want)?;
        completions.sync();
        for completion in &mut completions {
            match completion.user_data() & !u64::from(u32::MAX) {
                RECEIVE => received(&completion, load, &mut buffers, &mut submissions)?,
                TIMER if timer.ring(load)? => watch(&mut submissions, timer),
                TIMER => is_given_up = true,
                _ => return Err(failure(completion.result())),
            }
        }
        // The kernel must see that these are taken, or it thinks that the next wait has been served.
        completions.sync();
        buffers.publish();
        while let Some((connection, bytes)) = load.next() {
            send(&mut submissions, connection, bytes);
        }
    }
    submitter.unregister_ring_fd()?;
    Ok(turns)
}

/// The one system call of a turn: hands in what was pushed, and waits for `want` completions.
#[inline]
fn enter(submitter: &Submitter<'_>, submissions: &mut SubmissionQueue<'_>, want: usize) -> io::Result<()> {
    // Before, to publish what was pushed; after, to see what was taken.
    submissions.sync();
    let entered = submitter.submit_and_wait(want);
    submissions.sync();
    match entered {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Handles a receive completion, and restarts it if the kernel ended it.
#[inline]
fn received(
    completion: &cqueue::Entry,
    load: &mut Load<'_>,
    buffers: &mut Buffers,
    submissions: &mut SubmissionQueue<'_>,
) -> io::Result<()> {
    let connection = completion.user_data() as u32;
    if let Some(id) = cqueue::buffer_select(completion.flags()) {
        buffers.give_back(id);
    }
    match completion.result() {
        len @ 1.. => load.arrived(connection, len as u32),
        // No buffer was left; those of this turn are given back before the next.
        result if result == -libc::ENOBUFS => {}
        result => return Err(failure(result)),
    }
    if !cqueue::more(completion.flags()) {
        receive(submissions, connection);
    }
    Ok(())
}

/// A receive that ended the connection, or a send that failed or was cut short.
fn failure(result: i32) -> io::Error {
    if result >= 0 { io::ErrorKind::ConnectionReset.into() } else { io::Error::from_raw_os_error(-result) }
}

fn watch(submissions: &mut SubmissionQueue<'_>, timer: &Timer) {
    let fd = io_uring::types::Fd(timer.as_fd().as_raw_fd());
    push(submissions, &opcode::PollAdd::new(fd, libc::POLLIN as u32).build().user_data(TIMER));
}

fn receive(submissions: &mut SubmissionQueue<'_>, connection: u32) {
    let entry = opcode::RecvMulti::new(Fixed(connection), GROUP).build();
    push(submissions, &entry.user_data(RECEIVE | u64::from(connection)));
}

#[inline]
fn send(submissions: &mut SubmissionQueue<'_>, connection: u32, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let entry = opcode::Send::new(Fixed(connection), bytes.as_ptr(), bytes.len() as u32)
        // All of it or a failure: so that a success needs no completion.
        .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS);
    push(submissions, &entry.user_data(SEND | u64::from(connection)));
}

#[inline]
fn push(submissions: &mut SubmissionQueue<'_>, entry: &squeue::Entry) {
    // SAFETY: bytes to send are prebuilt requests, which outlive the ring, as do the provided buffers that receives name;
    // descriptors are open until the ring is gone.
    let pushed = unsafe { submissions.push(entry) };
    pushed.expect("the queue holds what all connections can ask for in one turn");
}

/// A page of the ring of buffers: the kernel wants its start on a page.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Buffers that the kernel receives into, and the ring through which they are given to it.
struct Buffers {
    /// `count` entries of [`BufRingEntry`]; the tail lies in a field of the first that an entry does not use.
    ring: Vec<Page>,
    bytes: Vec<u8>,
    /// Length of one buffer.
    len: usize,
    count: u16,
    /// Where the next buffer goes, modulo 2¹⁶.
    tail: u16,
}

impl Buffers {
    /// At least `count` buffers of `len` bytes.
    fn new(count: usize, len: usize) -> io::Result<Self> {
        let count = u16::try_from(count.max(16).next_power_of_two()).map_err(io::Error::other)?;
        let ring_bytes = usize::from(count) * size_of::<BufRingEntry>();
        let pages = ring_bytes.div_ceil(size_of::<Page>());
        let ring = (0..pages).map(|_| Page([0; 4096])).collect();
        Ok(Self { ring, bytes: vec![0; usize::from(count) * len], len, count, tail: 0 })
    }

    fn register(&mut self, submitter: &Submitter<'_>) -> io::Result<()> {
        for id in 0..self.count {
            self.give_back(id);
        }
        self.publish();
        // SAFETY: the ring begins on a page and has room for `count` entries; it and the buffers are freed after the
        // io_uring, and are never moved: the vectors keep their length. What the kernel writes there is not read.
        unsafe { submitter.register_buf_ring_with_flags(self.ring.as_ptr() as u64, self.count, GROUP, 0) }
    }

    /// Puts a buffer into the ring; [`Self::publish`] lets the kernel see it.
    #[inline]
    fn give_back(&mut self, id: u16) {
        let at = usize::from(self.tail & (self.count - 1));
        // SAFETY: `at` is below `count`, for which the ring has room; any bytes make an entry; the kernel reads entries
        // only up to the tail, which lies before this one.
        let entry = unsafe { &mut *self.ring.as_mut_ptr().cast::<BufRingEntry>().add(at) };
        entry.set_addr(self.bytes[usize::from(id) * self.len..].as_mut_ptr() as u64);
        entry.set_len(self.len as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    fn publish(&mut self) {
        let first = self.ring.as_mut_ptr().cast::<BufRingEntry>();
        // SAFETY: the first entry is inside the ring, its tail is two aligned bytes that we alone write, and the kernel
        // reads them with acquire.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}
