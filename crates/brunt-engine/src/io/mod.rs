//! The seam between the loop and the kernel: one trait, batch- and completion-shaped.
//!
//! The worker requests connections and sends, waits, and takes completions one by one. Readiness interfaces emulate
//! completions; io_uring has them; the simulator invents them. Invariant: a completion carries the instant at which
//! it was true and the last instant at which it was not known to be.

pub(crate) mod canned;
pub(crate) mod epoll;
pub(crate) mod kernel_stamps;

#[cfg(test)]
mod tests {
    mod mixed_connections;
}
mod sockets;
pub(crate) mod tls;
pub(crate) mod uring;

use crate::clock::WallReading;
use crate::io::tls::Tunnels;
use crate::transport::Address;
use crate::transport::tls_client::TlsClient;
use std::io::IoSlice;

/// Index of a connection within its worker; connections that follow each other share it.
pub(crate) type ConnectionIndex = u32;

/// How a wait may spend its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Poll once and return.
    Now,
    /// Sleep until something happens, at the latest until this instant (nanoseconds on the worker's clock).
    Instant(u64),
}

/// What a connection is, from when it is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// A plain stream: the only one that the hot path of an Io knows.
    #[default]
    Stream,
    /// A stream of which the kernel takes timestamps.
    Stamped,
    Datagrams,
    /// A stream of records.
    Tls,
}

impl ConnectionKind {
    /// By where it goes to, whether it is to speak TLS, and whether the kernel is to take timestamps of it if it can.
    fn of(address: &Address, tls: Option<&TlsClient>, is_stamped: bool) -> Self {
        match (tls, address) {
            (Some(_), _) => Self::Tls,
            (None, Address::Datagram(_)) => Self::Datagrams,
            (None, Address::Network(_)) if is_stamped => Self::Stamped,
            (None, Address::Network(_) | Address::Unix(_)) => Self::Stream,
        }
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// Let queued bytes go out, then end: what a polite client does.
    Orderly,
    /// Reset at once: no state remains on either side.
    Reset,
}

/// Bytes received, to be fetched with [`Io::bytes`] before the next call of [`Io::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Chunk {
    /// Behind every buffer that sockets are read into.
    const DECRYPTED: usize = usize::MAX / 2;

    /// What a tunnel of TLS has decrypted last: no bytes of a socket.
    pub(crate) fn decrypted(len: usize) -> Self {
        Self { start: Self::DECRYPTED, len }
    }
}

/// What happened on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CompletionKind {
    /// It is established.
    Connected,
    /// It could not be established: an errno.
    ConnectFailed(i32),
    /// Bytes came in; of a connection of datagrams, one.
    Received(Chunk),
    /// As `Received`, after [`Io::send_stamped`] and before [`Io::stamps`].
    Stamped(Chunk),
    /// Result of a deferred send: bytes taken, or the errno of a broken connection. `at_ns` is the clock just
    /// before it was submitted.
    Sent(Result<usize, i32>),
    /// It has room again after a partial send.
    Writable,
    /// The peer ended it (`None`) or it broke (an errno).
    Closed(Option<i32>),
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The connection.
    pub index: ConnectionIndex,
    /// When the call that brought it returned.
    pub at_ns: u64,
    /// The end of the last poll that could have returned this connection, and did not; after a poll that slept, the
    /// instant it woke less [`Io::set_wake_up`]. The client may have held the bytes back from this instant to `at_ns` (docs/method.md).
    pub polled_ns: u64,
    /// What happened.
    pub kind: CompletionKind,
}

/// Result of a send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendResult {
    /// Bytes taken, or the errno of a broken connection. Fewer than offered: `CompletionKind::Writable` will follow.
    pub taken: Result<usize, i32>,
    /// The clock after the call; of one that was handed in with others, before that.
    pub at_ns: u64,
}

/// Why a connection failed or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionError {
    /// For a user.
    pub words: String,
    /// The peer or this client has rejected the other: another attempt would fail alike. Otherwise it is a network
    /// failure.
    pub is_answer: bool,
}

/// Kernel timestamp of the last byte of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transmitted {
    /// Nothing (yet).
    #[default]
    Unknown,
    /// An instant, but that of another byte.
    OtherByte,
    /// This one, nanoseconds of the wall clock.
    At(u64),
}

/// Kernel timestamps of a request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// When the request was transmitted.
    pub transmitted: Transmitted,
    /// When the last byte of what was received came in, nanoseconds of the wall clock.
    pub received_ns: Option<u64>,
}

/// Operations on connections, a clock, and questions to the kernel: two of every one, three of one that takes timestamps.
/// Every implementor must keep:
/// * times are nanoseconds since the run's epoch, monotonic, from one clock;
/// * `wait` never sleeps beyond its instant by rounding (no millisecond timeouts);
/// * after `close` no completion of the old connection comes for that index;
/// * a send without a result has one as [`CompletionKind::Sent`], and that before any other completion of the wait (or the `submit`) that
///   handed it in;
/// * `close` hands in first what a send on that connection has queued;
/// * nothing allocates after the first `wait`, but for records of TLS;
/// * the kind of a connection (stream, datagrams, TLS) is set by `connect`, and connections of every kind may exist
///   at once: a plain stream pays nothing for the others.
pub(crate) trait Io {
    /// The clock.
    fn now_ns(&mut self) -> u64;
    /// Begins to connect, over TLS if there is a client of it; `Connected` or `ConnectFailed` follows, or the errno comes at once.
    /// `is_stamped`: the connection may have [`Io::send_stamped`].
    fn connect(
        &mut self,
        index: ConnectionIndex,
        address: &Address,
        tls: Option<&TlsClient>,
        is_stamped: bool,
    ) -> Result<(), i32>;
    /// Hands over bytes, in order, as many as are taken without waiting. `None`: they are handed in with the next `submit` or
    /// `wait`, and the result follows; until then there is no other send on this connection.
    ///
    /// # Safety
    /// Where the result is `None`, the bytes stay what and where they are until it has come, or until the next `wait` has returned.
    #[expect(unsafe_code, reason = "the kernel may read the bytes later")]
    unsafe fn send(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult>;
    /// Sends datagrams at once and in order; the first ends at the first of `ends`, and so on. A partial result is
    /// a number of whole datagrams.
    fn send_datagrams(&mut self, _index: ConnectionIndex, _bytes: &[u8], _ends: &[u32]) -> SendResult {
        unreachable!("datagrams are sent on datagram sockets only")
    }
    /// Hands in now what was to be handed in with the next wait. Results may follow.
    fn submit(&mut self) {}
    /// Ends a connection, established or not.
    fn close(&mut self, index: ConnectionIndex, mode: CloseMode);
    /// What a wake-up takes here at the most, but for a tenth of them: the bytes that end a sleep may have come so much
    /// before it was over.
    fn set_wake_up(&mut self, _ns: u64) {}
    /// Waits for anything to happen; `now_ns` is the clock, read just before. Returns it at its end.
    fn wait(&mut self, now_ns: u64, until: Until) -> u64;
    /// The next thing that happened; `None` when a new wait is due.
    fn next(&mut self) -> Option<Completion>;
    /// Between two waits: all that had come in on a connection by this instant was returned. A poll that a signal cut short, as one is that
    /// continues a stopped process, has seen what was there when it began, at most.
    fn seen_ns(&self, index: ConnectionIndex) -> u64;
    /// The bytes of the completion that `next` returned last.
    fn bytes(&self, chunk: Chunk) -> &[u8];
    /// System calls made so far.
    fn syscalls(&self) -> u64;
    /// Segments sent again so far, on all connections that there are and were. Asks for each of them: nothing for the
    /// measured window.
    fn retransmits(&mut self) -> u64;
    /// Was the last segment received sent from the CPU that this thread runs on? `None` for a peer on another host,
    /// and where the kernel does not report it.
    fn shares_cpu(&mut self, index: ConnectionIndex) -> Option<bool>;

    /// Its tunnels of TLS, if it can have any.
    fn tunnels(&self) -> Option<&Tunnels> {
        None
    }
    /// Time in which the calling thread was runnable without a CPU so far. `None` where the kernel does not report it.
    fn run_delay_ns(&mut self) -> Option<u64> {
        None
    }

    /// Duration of the TLS handshake of this connection.
    fn handshake_ns(&self, index: ConnectionIndex) -> Option<u64> {
        self.tunnels()?.handshake_ns(index)
    }
    /// Why the last connection with this index failed or ended, if more is known than an errno.
    fn connection_error(&self, index: ConnectionIndex) -> Option<&ConnectionError> {
        self.tunnels()?.connection_error(index)
    }

    /// As `send`, at once; the kernel is to note when it hands the last byte to the network. One request at a time.
    fn send_stamped(&mut self, _index: ConnectionIndex, _parts: &[IoSlice<'_>]) -> SendResult {
        unreachable!("timestamps are requested from an Io that takes them only")
    }
    /// What was noted of the last `send_stamped` on a connection, and of the bytes of the completion that `next` returned
    /// last, which is its.
    fn stamps(&mut self, _index: ConnectionIndex) -> Stamps {
        Stamps::default()
    }
    /// Reads the clock of the timestamps beside our own; where there are none, it is our own.
    fn wall(&mut self) -> WallReading {
        let now_ns = self.now_ns();
        WallReading { before_ns: now_ns, wall_ns: now_ns, after_ns: now_ns }
    }
}
