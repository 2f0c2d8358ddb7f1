//! Choice of the kernel interface: what the plan requires, or the best that works here; and whether kernel timestamps work.
//!
//! Each is tried before any thread starts, timestamps over sockets within this process: kernel versions do not tell, since kernels are
//! patched, and sandboxes refuse single calls. Invariants: a plan that names an interface gets it or an error; a probe ends within a second.

use crate::clock::Clock;
use crate::io::epoll::Epoll;
use crate::io::kernel_stamps::{self, Control};
use crate::io::uring::{Shape, Uring, refusal};
use crate::run_error::RunError;
use brunt_plan::plan::{IoChoice, Plan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// An interface to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelInterface {
    /// epoll.
    Epoll,
    /// io_uring.
    Uring,
}

impl KernelInterface {
    /// The word of `--io`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoll => IoChoice::Epoll.name(),
            Self::Uring => IoChoice::Uring.name(),
        }
    }
}

/// The chosen interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The interface.
    pub interface: KernelInterface,
    /// Why not a better one, which the plan would have allowed.
    pub reason: Option<String>,
}

/// Did memory run out?
pub(crate) fn is_out_of_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// The fallback if rings could be created before, and cannot be later.
pub(crate) fn without_io_uring(error: &io::Error) -> Chosen {
    let reason = format!("io_uring: {} when workers started", refusal(error));
    Chosen { interface: KernelInterface::Epoll, reason: Some(reason) }
}

/// Chooses for a plan whose workers need these rings; an error if the interface that it names, or any, is unavailable.
pub(crate) fn choose(plan: &Plan, rings: &[Shape]) -> Result<Chosen, RunError> {
    choose_by(plan, || make_all(rings), Epoll::probe)
}

fn choose_by(
    plan: &Plan,
    io_uring: impl Fn() -> Result<(), String>,
    epoll: impl Fn() -> Result<(), String>,
) -> Result<Chosen, RunError> {
    let uring = Chosen { interface: KernelInterface::Uring, reason: None };
    let with_epoll = |reason| Chosen { interface: KernelInterface::Epoll, reason };
    match plan.io {
        IoChoice::Epoll => epoll()
            .map(|()| with_epoll(None))
            .map_err(|reason| RunError::IoUnavailable { name: "epoll", reason }),
        IoChoice::Uring => {
            io_uring().map(|()| uring).map_err(|reason| RunError::IoUnavailable { name: "io_uring", reason })
        }
        IoChoice::Auto => match io_uring() {
            Ok(()) => Ok(uring),
            Err(io_uring) => match epoll() {
                Ok(()) => Ok(with_epoll(Some(format!("io_uring: {io_uring}")))),
                Err(epoll) => Err(RunError::NoIo { io_uring, epoll }),
            },
        },
    }
}

/// The kernel begins to stamp received packets some time after the first socket asked for it.
const ROUNDS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Nothing on loopback takes longer, however busy the host.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Do timestamps of both directions come over loopback? Tried once in a process; the error names what is missing.
pub fn timestamps_work() -> Result<(), &'static str> {
    static RESULT: OnceLock<Result<(), String>> = OnceLock::new();
    let result = RESULT.get_or_init(|| probe_timestamps().map_err(|error| error.to_string()));
    result.as_ref().copied().map_err(String::as_str)
}

/// Sends bytes over loopback and reads the timestamps of both directions.
fn probe_timestamps() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    kernel_stamps::switch_on(&client).map_err(|errno| unsupported(format!("SO_TIMESTAMPING: {errno}")))?;
    for round in 0..ROUNDS {
        if is_stamped(&mut client, &mut server, round)? {
            return Ok(());
        }
        std::thread::park_timeout(PAUSE);
    }
    Err(unsupported("no timestamps of received packets"))
}

/// Sends one byte each way and checks both timestamps. Sends must be stamped from the first byte on.
fn is_stamped(client: &mut TcpStream, server: &mut TcpStream, round: u32) -> io::Result<bool> {
    kernel_stamps::send(&*client, &[IoSlice::new(b"?")])?;
    await_events(client, PollFlags::ERR)?;
    let transmission = match kernel_stamps::take_transmission(&*client) {
        Ok(Some(transmission)) => transmission,
        Ok(None) | Err(Errno::AGAIN) => return Err(unsupported("no timestamps of sent packets")),
        Err(errno) => return Err(unsupported(format!("the error queue: {errno}"))),
    };
    if transmission.byte != round {
        let reason = format!("timestamp of byte {} for byte {round}", transmission.byte);
        return Err(unsupported(reason));
    }
    server.write_all(b"!")?;
    await_events(client, PollFlags::IN)?;
    let mut control = Control::EMPTY;
    let received = kernel_stamps::receive(&*client, &mut [0; 16], &mut control)?;
    Ok(received > 0 && control.received_ns().is_some_and(|received_ns| received_ns >= transmission.at_ns))
}

/// Waits for one of these events, up to a second.
fn await_events(socket: &impl AsFd, events: PollFlags) -> io::Result<()> {
    poll(&mut [PollFd::new(socket, events)], Some(&PATIENCE))?;
    Ok(())
}

fn unsupported(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason.into())
}

/// Does the kernel offer what rings of brunt need? The error says why not. A kernel that sets up such a ring has all of the operations, and
/// nothing can refuse single ones of a ring that can be entered.
pub fn io_uring_works() -> Result<(), String> {
    make_all(&[Shape::of_one(0)])
}

/// Creates rings of these shapes at the same time, as the workers of a run need them; an error gives the reason.
fn make_all(shapes: &[Shape]) -> Result<(), String> {
    let clock = Clock::start();
    let rings = shapes.iter().map(|shape| Uring::new(*shape, clock));
    rings.collect::<io::Result<Vec<_>>>().map(drop).map_err(|error| refusal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Completion, CompletionKind, ConnectionKind, Io, Until};
    use crate::loopback::plan as planned;
    use socket2::Socket;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn auto_takes_the_best_working_interface() {
        // plan, do io_uring and epoll work → interface and reason, or error
        let table = [
            ("", true, false, Ok(("uring", ""))),
            ("", false, true, Ok(("epoll", "io_uring: broken"))),
            ("", false, false, Err("no kernel interface works here: io_uring: broken; epoll: broken")),
            ("io = 'epoll'", true, true, Ok(("epoll", ""))),
            ("io = 'epoll'", true, false, Err("epoll unavailable: broken; use --io auto")),
            ("io = 'uring'", true, false, Ok(("uring", ""))),
            ("io = 'uring'", false, true, Err("io_uring unavailable: broken; use --io auto")),
        ];
        for (toml, has_uring, has_epoll, expected) in table {
            let plan = planned(toml);
            let probe = |works| move || if works { Ok(()) } else { Err("broken".to_owned()) };
            let chosen = choose_by(&plan, probe(has_uring), probe(has_epoll));
            let chosen = chosen.map(|chosen| (chosen.interface.name(), chosen.reason.unwrap_or_default()));
            let expected = expected.map(|(name, reason)| (name, reason.to_owned()));
            assert_eq!(chosen.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{toml}");
        }
    }

    /// Kernels of the tests have timestamps; if one has none, this test says so first.
    #[test]
    fn stamps_are_taken_on_loopback() {
        super::timestamps_work().unwrap();
    }

    /// Where the kernel offers a ring at all, the backend gets through all of it.
    #[test]
    fn the_backend_works_where_a_ring_can_be_made() {
        match Uring::new(Shape::of_one(0), Clock::start()) {
            Ok(uring) => Probe { uring }.run().unwrap(),
            Err(error) => eprintln!("SKIPPED: {}", refusal(&error)),
        }
    }

    /// Everything happens in this process, at once.
    const PROBE_NS: u64 = 200_000_000;
    /// The send buffer of the socket, and much more than that.
    const SEND_BUFFER_BYTES: usize = 16 << 10;
    const FLOOD_BYTES: usize = 1 << 20;

    struct Probe {
        uring: Uring,
    }

    impl Probe {
        /// Receives and sends of every length.
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
        fn expect(
            &mut self,
            failure: &str,
            mut is_it: impl FnMut(CompletionKind) -> bool,
        ) -> Result<(), String> {
            let until_ns = self.uring.now_ns() + PROBE_NS;
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
}
