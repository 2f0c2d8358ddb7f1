//! Does io_uring work here, with all that the backend takes for granted?
//!
//! Kernel versions do not tell: kernels are patched, and sandboxes forbid calls. The backend itself tries each
//! feature over a pair of Unix sockets. Invariant: it ends within a second and takes no port.

use super::{Shape, Uring};
use crate::clock::Clock;
use crate::io::{Completion, CompletionKind, ConnectionKind, Io, Until};
use brunt_plan::gather::Gather;
use brunt_plan::sockets::SocketOptions;
use socket2::Socket;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Everything happens in this process, at once.
const PATIENCE_NS: u64 = 200_000_000;
/// The send buffer of the socket, and much more than that.
const SEND_BUFFER_BYTES: usize = 16 << 10;
const FLOOD_BYTES: usize = 1 << 20;

/// Runs the probe; an error names what does not work.
pub(crate) fn probe_io_uring() -> Result<(), String> {
    let shape = Shape {
        connections: 1,
        reply_bytes: 1,
        datagrams: 0,
        sockets: SocketOptions::default(),
        gather: Gather::NOTHING,
    };
    let uring = Uring::new(shape, Clock::start()).map_err(|error| refusal(&error))?;
    Probe { uring }.run().map_err(|failure| format!("probe failed: {failure}"))
}

/// Creates rings of these shapes at the same time, as the workers of a run need them; an error gives the reason.
pub(crate) fn make_all(shapes: &[Shape]) -> Result<(), String> {
    let clock = Clock::start();
    let rings = shapes.iter().map(|shape| Uring::new(*shape, clock));
    rings.collect::<io::Result<Vec<_>>>().map(drop).map_err(|error| refusal(&error))
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

struct Probe {
    uring: Uring,
}

impl Probe {
    fn run(mut self) -> Result<(), String> {
        let plain = |error: io::Error| format!("a pair of sockets: {error}");
        let (own, mut peer) = UnixStream::pair().map_err(plain)?;
        own.set_nonblocking(true).map_err(plain)?;
        peer.set_read_timeout(Some(Duration::from_millis(200))).map_err(plain)?;
        let own = Socket::from(OwnedFd::from(own));
        own.set_send_buffer_size(SEND_BUFFER_BYTES).map_err(plain)?;
        self.uring.adopt(0, own, ConnectionKind::Stream).map_err(plain)?;
        // A send that is taken whole ends no wait; what comes in by itself does.
        self.send(b"ping");
        let mut ping = [0; 4];
        self.expect("a send had no result", |kind| matches!(kind, CompletionKind::Sent(Ok(4))))?;
        peer.read_exact(&mut ping).and_then(|()| peer.write_all(b"pong")).map_err(plain)?;
        self.expect(
            "nothing was received",
            |kind| matches!(kind, CompletionKind::Received(chunk) if chunk.len == 4),
        )?;
        // A send that does not fit is taken in part, and the rest has room later.
        let flood = vec![0; FLOOD_BYTES];
        self.send(&flood);
        let mut taken = 0;
        self.expect("a send that does not fit was not cut", |kind| match kind {
            CompletionKind::Sent(Ok(bytes)) if bytes < FLOOD_BYTES => {
                taken = bytes;
                true
            }
            _ => false,
        })?;
        io::copy(&mut (&peer).take(taken as u64), &mut io::sink()).map_err(plain)?;
        self.expect("no room was reported", |kind| matches!(kind, CompletionKind::Writable))?;
        drop(peer);
        self.expect("an end was not reported", |kind| matches!(kind, CompletionKind::Closed(None)))
    }

    #[expect(unsafe_code, reason = "the trait's")]
    fn send(&mut self, bytes: &[u8]) {
        // SAFETY: the caller holds the bytes until the result has come.
        let result = unsafe { self.uring.send(0, &[IoSlice::new(bytes)]) };
        debug_assert!(result.is_none(), "an open connection queues");
        self.uring.submit();
    }

    /// Waits for one thing to happen; nothing else may.
    fn expect(&mut self, failure: &str, mut is_it: impl FnMut(CompletionKind) -> bool) -> Result<(), String> {
        let until_ns = self.uring.now_ns() + PATIENCE_NS;
        loop {
            match self.uring.next() {
                Some(Completion { kind, .. }) if is_it(kind) => return Ok(()),
                Some(other) => return Err(format!("{failure}: {:?}", other.kind)),
                None if self.uring.now_ns() >= until_ns => return Err(failure.to_owned()),
                None => {
                    let now_ns = self.uring.now_ns();
                    self.uring.wait(now_ns, Until::Instant(until_ns));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Where the kernel offers a ring at all, the backend gets through all of it.
    #[test]
    fn the_backend_works_or_reports_why_not() {
        match probe_io_uring() {
            Ok(()) => {}
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                assert!(!why.starts_with("tried here"), "{why}");
            }
        }
    }
}
