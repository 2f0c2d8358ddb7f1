//! One connection: where it stands, what it still has to send, what it is waiting for.
//!
//! Not a socket (that belongs to the Io) and not a protocol (that is the codec in it). Invariant: the chain holds every
//! operation whose bytes were queued on this connection and which has not ended, oldest first.

use crate::io::tls::TLS_ERRNO;
use crate::state::ids::{EntryId, NO_ENTRY, RouteId};
use crate::state::in_flight::{Chain, InFlight};
use crate::state::recording::Recording;
use brunt_plan::plan::MeterKind;
use brunt_proto::out::Out;
use brunt_proto::{Codec, Encoded, Request};
use brunt_stats::fault::FaultKind;
use brunt_workload::verify::Verifier;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Not connected; the next attempt is due at this time.
    Down {
        /// Nanoseconds on the worker's clock.
        retry_ns: u64,
    },
    /// An attempt began at this time. With a protocol that greets it lasts until the greeting is answered.
    Connecting {
        /// Nanoseconds on the worker's clock.
        began_ns: u64,
    },
    /// Established.
    Up,
    /// Between two lives: waits for a birth by schedule.
    Idle,
    /// Never again: as many connections as the plan has were begun, or it was lost and the plan has none follow.
    Gone,
}

/// The first pause before another attempt; doubled after each failure.
const BACKOFF_MIN_NS: u64 = 1_000_000;
const BACKOFF_MAX_NS: u64 = 1_000_000_000;
/// The one connection that looks whether a server is back does so at least this often: what we say of the length of an
/// outage is late by this much.
const PROBE_MAX_NS: u64 = 20_000_000;

/// One connection of a worker.
#[derive(Debug)]
pub(crate) struct Connection<C> {
    /// Where it stands.
    pub state: ConnectionState,
    /// Which server it goes to.
    pub server: u16,
    /// Which class it belongs to.
    pub class: u16,
    /// The parse state.
    pub codec: C,
    /// Encoded, not yet sent.
    pub out: Out,
    /// A send took fewer bytes than offered; it goes on when the socket is writable again.
    pub stuck: bool,
    /// Since when, nanoseconds on the worker's clock.
    pub stuck_ns: u64,
    /// When the attempt that established it last began, nanoseconds on the worker's clock.
    pub attempt_ns: u64,
    /// It has been established at least once.
    pub was_up: bool,
    /// When it was last lost, nanoseconds on the worker's clock.
    pub lost_ns: u64,
    /// In the attempt that was begun last, the socket came up and the greeting was said.
    pub has_begun_setup: bool,
    /// Replies to the greeting that have come, each of them the right one.
    pub setup_replies: u32,
    /// It stands on the list of connections with something to send.
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
    /// It ends by plan as soon as the replies that are out have come, and takes nothing more.
    pub retiring: bool,
    /// Calls that are spoken for: slots of a closed loop that are free, and their operations that have no bytes yet.
    pub reserved_calls: u32,
    /// Slots of a closed loop that wait for the next connection.
    pub deferred_slots: u32,
    /// Those that wait for the rest of the pipeline, by when they became free.
    pub freed: Vec<u64>,
    /// Compares the value that is coming in with what was stored.
    pub verifier: Option<Verifier>,
    /// Bytes so far of the reply that is being read, where replies have their sizes metered.
    pub reply_bytes: u64,
    /// With tokens: when the first byte came of the reply that is being read.
    pub begun_ns: u64,
    /// With tokens: when an operation was given up after which nothing has come in, or 0.
    pub given_up_ns: u64,
    /// How many bytes of an event that was cut by the end of a read are kept in [`Leftovers`].
    pub leftover: usize,
    /// Attempts that failed in a row.
    pub failures: u32,
    /// Which of the server's addresses the next attempt takes.
    pub address: usize,
}

impl<C: Codec> Connection<C> {
    /// A connection that was never tried, with room for this many bytes to send.
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

    /// Queues the bytes of a request behind those of a preamble, whose operation has been written down, and puts that on the chain. False if there is
    /// no room before the connection has sent: then the operation is written down no more. `index` is the connection's own
    /// number.
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

    /// The same with a request that `encode` appends, and that takes as many bytes as `needed` at most.
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
        if recording.meters_requests() && in_flight.get(id).account.is_measured() {
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

    /// Must a slot that has become free wait for the next connection?
    #[inline]
    pub(crate) fn defers_slots(&self) -> bool {
        self.retiring || self.calls_left <= u64::from(self.reserved_calls)
    }

    /// Operations that it has not finished with.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.chain.len + self.unacknowledged.len
    }

    /// Forgets everything that belonged to the old connection; `codec` is that of one on which nothing was sent. The chains must have
    /// been emptied.
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

    /// How long to pause before the next attempt: none after a connection that worked, then doubling.
    pub(crate) fn backoff_ns(&self, probes: bool) -> u64 {
        let most_ns = if probes { PROBE_MAX_NS } else { BACKOFF_MAX_NS };
        match self.failures {
            0 => 0,
            failures => (BACKOFF_MIN_NS << (failures - 1).min(20)).min(most_ns),
        }
    }
}

/// The fronts of events that were cut by the end of a read, of all connections: as much room for each as the longest takes.
///
/// In one piece, so that what no connection has needed yet is no memory: few replies are cut, and each on few connections.
#[derive(Debug)]
pub(crate) struct Leftovers {
    bytes: Box<[u8]>,
    each: usize,
}

impl Leftovers {
    /// For so many connections.
    pub(crate) fn new(connections: usize, each: usize) -> Self {
        Self { bytes: vec![0; connections * each].into_boxed_slice(), each }
    }

    /// The room of a connection.
    pub(crate) fn of(&mut self, connection: u32) -> &mut [u8] {
        &mut self.bytes[connection as usize * self.each..][..self.each]
    }

    /// All of it, for as long as the worker's other parts are needed beside it; to be put back.
    pub(crate) fn lend(&mut self) -> Self {
        Self { bytes: std::mem::take(&mut self.bytes), each: self.each }
    }
}

/// The row of the fault table that an errno belongs to.
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
