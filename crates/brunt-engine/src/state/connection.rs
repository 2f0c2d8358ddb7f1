//! One connection: its state, its send queue and its operations.
//!
//! The Io has its socket. Invariant: the chain holds every operation whose bytes were queued on this connection and
//! which has not ended, oldest first.

use crate::io::tls::TLS_ERRNO;
use crate::state::in_flight::{Chain, InFlight};
use crate::state::recording::Recording;
use crate::state::{EntryId, NO_ENTRY, RouteId};
use brunt_plan::plan::MeterKind;
use brunt_proto::out::Out;
use brunt_proto::{Codec, Encoded, Request};
use brunt_stats::connection::FaultKind;
use brunt_workload::verify::Verifier;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Not connected; the next attempt is due at this time.
    Down {
        /// Nanoseconds on the worker's clock.
        retry_ns: u64,
    },
    /// An attempt began at this time. It includes the connection setup of the protocol.
    Connecting {
        /// Nanoseconds on the worker's clock.
        began_ns: u64,
    },
    /// Established.
    Up,
    /// Expired; waits to be opened again on schedule.
    Idle,
    /// Closed for good: the plan's total was reached, or it was lost and must not be replaced.
    Gone,
}

/// First pause between two attempts; it doubles with each failure.
const BACKOFF_MIN_NS: u64 = 1_000_000;
const BACKOFF_MAX_NS: u64 = 1_000_000_000;
/// Longest pause of the one connection that probes whether a server is up: the error of an outage's length.
const PROBE_MAX_NS: u64 = 20_000_000;

/// One connection of a worker.
#[derive(Debug)]
pub(crate) struct Connection<C> {
    /// Its state.
    pub state: ConnectionState,
    /// Which server it goes to.
    pub server: u16,
    /// Which class it belongs to.
    pub class: u16,
    /// The parse state.
    pub codec: C,
    /// Encoded, not yet sent.
    pub out: Out,
    /// A send was partial; it continues when the socket is writable.
    pub stuck: bool,
    /// Since when, nanoseconds on the worker's clock.
    pub stuck_ns: u64,
    /// When the attempt that established it last began, nanoseconds on the worker's clock.
    pub attempt_ns: u64,
    /// It has been established at least once.
    pub was_up: bool,
    /// When it was last lost, nanoseconds on the worker's clock.
    pub lost_ns: u64,
    /// The socket of the last attempt came up, and the connection setup was sent.
    pub has_begun_setup: bool,
    /// Successful replies to the connection setup.
    pub setup_replies: u32,
    /// It is on the list of connections with bytes to send.
    pub dirty: bool,
    /// Operations whose bytes were queued, oldest first.
    pub chain: Chain,
    /// The first of the chain whose last byte has not been handed over.
    pub unsent: EntryId,
    /// Operations without a reply whose last byte has not been handed over, oldest first.
    pub unacknowledged: Chain,
    /// The route that uses it now.
    pub route: RouteId,
    /// Requests that it may still carry before it ends by plan.
    pub calls_left: u64,
    /// When it ends by plan.
    pub retire_ns: u64,
    /// It takes no more requests, and closes as planned when the replies in flight have come.
    pub retiring: bool,
    /// Calls reserved for free slots of a closed loop, and for their operations that are not encoded.
    pub reserved_calls: u32,
    /// Slots of a closed loop that wait for the next connection.
    pub deferred_slots: u32,
    /// Slots that wait for the rest of the pipeline, by when they became free.
    pub freed: Vec<u64>,
    /// Verifies the value being received.
    pub verifier: Option<Verifier>,
    /// Bytes of the reply being read, if reply sizes are metered.
    pub reply_bytes: u64,
    /// With request ids: when the first byte of the reply being read came.
    pub begun_ns: u64,
    /// With request ids: when an operation timed out after which nothing was received, or 0.
    pub given_up_ns: u64,
    /// Bytes of an incomplete event kept in [`Leftovers`].
    pub leftover: usize,
    /// Attempts that failed in a row.
    pub failures: u32,
    /// Index of the next address to try.
    pub address: usize,
}

impl<C: Codec> Connection<C> {
    /// A connection before its first attempt, with a send queue of this size.
    pub(crate) fn new(codec: C, room: usize, class: u16, server: u16) -> Self {
        Self {
            state: ConnectionState::Down { retry_ns: 0 },
            server,
            class,
            codec,
            out: Out::with_room(room),
            stuck: false,
            stuck_ns: 0,
            attempt_ns: 0,
            was_up: false,
            lost_ns: 0,
            has_begun_setup: false,
            setup_replies: 0,
            dirty: false,
            chain: Chain::EMPTY,
            unsent: NO_ENTRY,
            unacknowledged: Chain::EMPTY,
            route: 0,
            calls_left: u64::MAX,
            retire_ns: u64::MAX,
            retiring: false,
            reserved_calls: 0,
            deferred_slots: 0,
            freed: Vec::new(),
            verifier: None,
            reply_bytes: 0,
            begun_ns: 0,
            given_up_ns: 0,
            leftover: 0,
            failures: 0,
            address: 0,
        }
    }

    /// May it take operations?
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.state == ConnectionState::Up && !self.stuck && !self.retiring
    }

    /// Queues a request behind a preamble and adds its entry to the chain. False if there is no room before the
    /// connection has sent; the entry is released then. `index` is the connection's own number.
    #[inline(always)]
    pub(crate) fn queue(
        &mut self,
        index: u32,
        preamble: &[u8],
        request: &Request<'_>,
        id: EntryId,
        in_flight: &mut InFlight<C>,
        recording: &mut Recording,
    ) -> bool {
        let (keys, value) = (&request.keys, &request.value);
        let copied = value.head.len() + Out::copied_len(value.len);
        let needed = preamble.len() + self.codec.encoded_len_max(keys.ends.len(), keys.bytes.len(), copied);
        self.queue_with(index, needed, id, in_flight, recording, |codec, out| {
            if !preamble.is_empty() {
                out.put(preamble);
            }
            codec.encode(request, out)
        })
    }

    /// As `queue`, with a request of at most `needed` bytes that `encode` appends.
    #[inline(always)]
    pub(crate) fn queue_with(
        &mut self,
        index: u32,
        needed: usize,
        id: EntryId,
        in_flight: &mut InFlight<C>,
        recording: &mut Recording,
        encode: impl FnOnce(&mut C, &mut Out) -> Encoded,
    ) -> bool {
        if !self.out.has_room(needed) {
            in_flight.release_unused(index, id);
            return false;
        }
        let queued_before = self.out.queued_total();
        let encoded = encode(&mut self.codec, &mut self.out);
        let stream_end = self.out.queued_total();
        if recording.meters_requests() && in_flight.get(id).row.is_measured() {
            recording.meter(MeterKind::Outstanding, u64::from(self.outstanding()));
            recording.meter(MeterKind::RequestSize, stream_end - queued_before);
        }
        if encoded.replied {
            in_flight.expect_reply(index, &self.chain, id);
        }
        let chain = if encoded.replied { &mut self.chain } else { &mut self.unacknowledged };
        in_flight.link(chain, id, stream_end, encoded.wire_requests);
        if encoded.replied && self.unsent == NO_ENTRY {
            self.unsent = id;
        }
        self.calls_left -= 1;
        self.retiring |= self.calls_left == 0;
        true
    }

    /// Must a freed slot wait for the next connection?
    #[inline]
    pub(crate) fn defers_slots(&self) -> bool {
        self.retiring || self.calls_left <= u64::from(self.reserved_calls)
    }

    /// Operations in flight.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.chain.len + self.unacknowledged.len
    }

    /// Resets everything of the old connection; `codec` is a fresh one. The chains must be empty.
    pub(crate) fn reset(&mut self, codec: &C, state: ConnectionState) {
        debug_assert_eq!(self.outstanding(), 0);
        self.state = state;
        self.retiring = false;
        self.retire_ns = u64::MAX;
        self.codec.clone_from(codec);
        self.out.reset();
        self.stuck = false;
        self.setup_replies = 0;
        self.unsent = NO_ENTRY;
        self.verifier = None;
        self.reply_bytes = 0;
        self.given_up_ns = 0;
        self.leftover = 0;
    }

    /// Pause before the next attempt: none after a connection that worked, then doubling.
    pub(crate) fn backoff_ns(&self, probes: bool) -> u64 {
        let most_ns = if probes { PROBE_MAX_NS } else { BACKOFF_MAX_NS };
        match self.failures {
            0 => 0,
            failures => (BACKOFF_MIN_NS << (failures - 1).min(20)).min(most_ns),
        }
    }
}

/// The fronts of incomplete events of all connections, with room for the longest in each.
///
/// One allocation: untouched parts of it cost no memory, and few replies are cut.
#[derive(Debug)]
pub(crate) struct Leftovers {
    bytes: Box<[u8]>,
    each: usize,
}

impl Leftovers {
    /// For this many connections.
    pub(crate) fn new(connections: usize, each: usize) -> Self {
        Self { bytes: vec![0; connections * each].into_boxed_slice(), each }
    }

    /// The front kept for a connection, and the room after it.
    pub(crate) fn bytes_of(&mut self, connection: u32) -> &mut [u8] {
        &mut self.bytes[connection as usize * self.each..][..self.each]
    }

    /// Lends the whole memory while other parts of the worker are borrowed; to be put back.
    pub(crate) fn lend(&mut self) -> Self {
        Self { bytes: std::mem::take(&mut self.bytes), each: self.each }
    }
}

/// The fault of an errno.
pub(crate) fn fault_of_errno(errno: i32) -> FaultKind {
    match errno {
        libc::ECONNREFUSED => FaultKind::Refused,
        libc::ECONNRESET | libc::EPIPE => FaultKind::Reset,
        libc::ETIMEDOUT => FaultKind::SocketTimedOut,
        TLS_ERRNO => FaultKind::TlsFailed,
        libc::EADDRNOTAVAIL => FaultKind::NoPort,
        libc::EMFILE => FaultKind::NoDescriptor,
        libc::ENFILE => FaultKind::NoFile,
        other => FaultKind::Other(other),
    }
}
