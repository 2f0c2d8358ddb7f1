//! TLS as a state of connections: plain bytes for the worker, records for the sockets of an Io.
//!
//! Makes no system call. An Io keeps the tunnels of its connections here, passes them the completions of their
//! sockets, and returns the completions that they queue; connections without a tunnel never come here. `Connected`
//! is queued after the handshake, a send counts as taken as far as its records were, and received bytes are
//! reported when their record is whole. Times are those of the sockets: encryption precedes `sent`, decryption
//! follows the read. The TLS library allocates per record; nothing else allocates after the largest send and read
//! of a connection. Invariant: one `Writable` follows each partial send, and a deferred send has one result.

mod tunnel;

use crate::io::{Chunk, CloseMode, Completion, CompletionKind, ConnectionError, ConnectionIndex, SendResult};
use crate::transport::tls_client::TlsClient;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use tunnel::Tunnel;
pub(crate) use tunnel::{PLAIN_HINT, explain};

/// The errno of a tunnel that could not be made or went wrong. No stream socket has it of itself; [`Tunnels::connection_error`] has the words.
pub(crate) const TLS_ERRNO: i32 = libc::EPROTO;

/// The sockets beneath the tunnels.
pub(crate) trait Wire {
    /// The clock.
    fn clock_ns(&self) -> u64;
    /// As [`crate::io::Io::send`], of records.
    ///
    /// # Safety
    /// As [`crate::io::Io::send`].
    #[expect(unsafe_code, reason = "the kernel may read the bytes later")]
    unsafe fn hand_over(&mut self, index: ConnectionIndex, records: &[u8]) -> Option<SendResult>;
    /// Closes the socket of a connection, after submitting its queued sends.
    fn hang_up(&mut self, index: ConnectionIndex, mode: CloseMode);
    /// What was read last.
    fn records(&self, chunk: Chunk) -> &[u8];
    /// The result of a send on a connection that is not open.
    fn not_connected(&self) -> SendResult {
        SendResult { taken: Err(libc::ENOTCONN), at_ns: self.clock_ns() }
    }
}

/// What the worker waits for on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Nothing,
    /// The result of its last send.
    Result,
    /// That there is room.
    Room,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection, or none yet.
    Down,
    /// Since this time; whether the peer has sent anything.
    Handshaking {
        since_ns: u64,
        is_heard: bool,
    },
    Open,
}

struct Connection {
    client: TlsClient,
    tunnel: Option<Tunnel>,
    state: State,
    owed: Owed,
    /// How long the last handshake took.
    handshake_ns: Option<u64>,
    /// Why the last connection failed.
    error: Option<ConnectionError>,
}

/// A rejection by this client or by the peer.
fn answer(error: &rustls::Error) -> ConnectionError {
    ConnectionError { words: explain(error), is_answer: true }
}

/// Result of passing records to the socket.
#[derive(Clone, Copy, Debug)]
enum HandOver {
    /// There was nothing to hand over, or the sockets are at it.
    Nothing,
    /// They have answered.
    Now(SendResult),
    /// They will.
    Later,
}

/// The tunnels of an Io.
#[derive(Default)]
pub(crate) struct Tunnels {
    /// By connection; `None` without a tunnel.
    connections: Vec<Option<Box<Connection>>>,
    /// Bytes of the completion that was returned last.
    plain: Vec<u8>,
    /// Completions to return before the tunnels do anything else.
    queued: VecDeque<Completion>,
}

impl Tunnels {
    /// A connection is begun, which is to have a tunnel if there is a client for it; nothing is left of the one before.
    pub(crate) fn begin(&mut self, index: ConnectionIndex, client: Option<&TlsClient>) {
        let at = index as usize;
        if client.is_some() && self.connections.len() <= at {
            self.connections.resize_with(at + 1, || None);
            // Of one completion of a socket come three at most: established, bytes, the end.
            self.queued.reserve(4);
        }
        let begun = client.map(|client| {
            Box::new(Connection {
                client: client.clone(),
                tunnel: None,
                state: State::Down,
                owed: Owed::Nothing,
                handshake_ns: None,
                error: None,
            })
        });
        if let Some(entry) = self.connections.get_mut(at) {
            *entry = begun;
        }
    }

    fn connection(&mut self, index: ConnectionIndex) -> &mut Connection {
        self.connections[index as usize].as_mut().expect("begun with a client of TLS")
    }

    /// Together with the sockets beneath them.
    pub(crate) fn over<'a, W: Wire>(&'a mut self, wire: &'a mut W) -> Over<'a, W> {
        Over { tunnels: self, wire }
    }

    /// The next thing that the worker is to be queued.
    pub(crate) fn next_queued(&mut self) -> Option<Completion> {
        self.queued.pop_front()
    }

    /// The bytes of the completion that was returned last.
    pub(crate) fn plain(&self, chunk: Chunk) -> &[u8] {
        debug_assert_eq!(chunk.len, self.plain.len());
        &self.plain
    }

    fn at(&self, index: ConnectionIndex) -> Option<&Connection> {
        self.connections.get(index as usize)?.as_deref()
    }

    /// See [`crate::io::Io::handshake_ns`].
    pub(crate) fn handshake_ns(&self, index: ConnectionIndex) -> Option<u64> {
        self.at(index)?.handshake_ns
    }

    /// See [`crate::io::Io::connection_error`].
    pub(crate) fn connection_error(&self, index: ConnectionIndex) -> Option<&ConnectionError> {
        self.at(index)?.error.as_ref()
    }
}

/// Tunnels, and the sockets beneath them.
pub(crate) struct Over<'a, W: Wire> {
    tunnels: &'a mut Tunnels,
    wire: &'a mut W,
}

impl<W: Wire> Over<'_, W> {
    /// Gives the sockets what there is to be sent, unless they are at it.
    #[expect(unsafe_code, reason = "a promise to the sockets that the bytes stay")]
    fn hand_over(&mut self, index: ConnectionIndex) -> HandOver {
        let Some(tunnel) = &mut self.tunnels.connection(index).tunnel else { return HandOver::Nothing };
        let records = tunnel.take_off();
        if records.is_empty() {
            return HandOver::Nothing;
        }
        // SAFETY: a tunnel leaves these bytes what and where they are until it is told that they were sent; and it is dropped only
        // with its connection, which `Wire::hang_up` ends after handing in what was queued on it, or after the sockets.
        let result = unsafe { self.wire.hand_over(index, records) };
        match result {
            None => HandOver::Later,
            Some(result) => {
                tunnel.sent(result.taken.unwrap_or(0));
                HandOver::Now(result)
            }
        }
    }

    /// Sends records of the library itself, for which no result is reported.
    fn hand_over_own(&mut self, index: ConnectionIndex) {
        if let HandOver::Now(SendResult { taken: Err(errno), at_ns }) = self.hand_over(index) {
            self.fail(index, at_ns, errno);
        }
    }

    fn tell(&mut self, index: ConnectionIndex, at_ns: u64, kind: CompletionKind) {
        self.tunnels.queued.push_back(Completion { index, at_ns, polled_ns: at_ns, kind });
    }

    /// Ends a connection, established or not, and closes its socket.
    fn end(&mut self, index: ConnectionIndex, at_ns: u64, errno: Option<i32>) {
        self.wire.hang_up(index, CloseMode::Orderly);
        let kind = match self.tunnels.connection(index).state {
            State::Open => CompletionKind::Closed(errno),
            State::Down | State::Handshaking { .. } => {
                CompletionKind::ConnectFailed(errno.unwrap_or(TLS_ERRNO))
            }
        };
        self.reset(index);
        self.tell(index, at_ns, kind);
    }

    fn fail(&mut self, index: ConnectionIndex, at_ns: u64, errno: i32) {
        self.end(index, at_ns, Some(errno));
    }

    fn reset(&mut self, index: ConnectionIndex) {
        let entry = self.tunnels.connection(index);
        (entry.tunnel, entry.state, entry.owed) = (None, State::Down, Owed::Nothing);
    }

    /// Begins the handshake.
    fn begin_handshake(&mut self, index: ConnectionIndex, at_ns: u64) {
        let entry = self.tunnels.connection(index);
        entry.state = State::Handshaking { since_ns: at_ns, is_heard: false };
        match Tunnel::begin(&entry.client) {
            Ok(tunnel) => {
                entry.tunnel = Some(tunnel);
                self.hand_over_own(index);
            }
            Err(error) => {
                entry.error = Some(answer(&error));
                self.fail(index, at_ns, TLS_ERRNO);
            }
        }
    }

    /// Records came in, or parts of some.
    fn receive(&mut self, completion: Completion, chunk: Chunk) {
        let Completion { index, at_ns, polled_ns, .. } = completion;
        let Tunnels { connections, plain, .. } = &mut *self.tunnels;
        let Some(entry) = &mut connections[index as usize] else { return };
        let Some(tunnel) = &mut entry.tunnel else { return };
        if let State::Handshaking { is_heard, .. } = &mut entry.state {
            *is_heard = true;
        }
        plain.clear();
        let received = tunnel.receive(self.wire.records(chunk), plain);
        let has_own = tunnel.has_waiting();
        let speaks = !plain.is_empty();
        if speaks {
            self.note_handshake(index, at_ns, speaks);
        }
        if !self.tunnels.plain.is_empty() && self.tunnels.connection(index).state == State::Open {
            let chunk = Chunk::decrypted(self.tunnels.plain.len());
            self.tunnels.queued.push_back(Completion {
                index,
                at_ns,
                polled_ns,
                kind: CompletionKind::Received(chunk),
            });
        }
        // Sends what the handshake, a key update or an alert requires. Only now, because it may fail, and the bytes
        // received came before.
        let handed = if has_own { self.hand_over(index) } else { HandOver::Nothing };
        let failed = match handed {
            HandOver::Now(SendResult { taken: Err(errno), at_ns }) => Some((errno, at_ns)),
            HandOver::Now(_) | HandOver::Later | HandOver::Nothing => None,
        };
        if failed.is_none() {
            self.note_handshake(index, at_ns, speaks);
        }
        match (received, failed) {
            (Ok(false), None) => {}
            (Ok(false), Some((errno, at_ns))) => self.fail(index, at_ns, errno),
            // The reason is known; that the peer took no answer adds nothing.
            (Ok(true), _) => self.handle_peer_end(index, at_ns, None),
            (Err(error), _) => {
                self.tunnels.connection(index).error = Some(answer(&error));
                self.fail(index, at_ns, TLS_ERRNO);
            }
        }
    }

    /// Queues `Connected` once the handshake is over and its last message was taken, which data from the peer
    /// proves.
    fn note_handshake(&mut self, index: ConnectionIndex, at_ns: u64, speaks: bool) {
        let entry = self.tunnels.connection(index);
        if let (State::Handshaking { since_ns, .. }, Some(tunnel)) = (entry.state, &entry.tunnel)
            && !tunnel.is_handshaking()
            && (speaks || tunnel.is_all_accepted())
        {
            entry.state = State::Open;
            entry.handshake_ns = Some(at_ns.saturating_sub(since_ns));
            self.tell(index, at_ns, CompletionKind::Connected);
        }
    }

    /// The peer has ended a connection. A missing close_notify is no failure: replies carry their length, so a
    /// truncation is noticed.
    fn handle_peer_end(&mut self, index: ConnectionIndex, at_ns: u64, errno: Option<i32>) {
        let entry = self.tunnels.connection(index);
        if entry.state != State::Open {
            let how =
                errno.map_or(String::new(), |errno| format!(" ({})", io::Error::from_raw_os_error(errno)));
            let words = format!("connection closed during the handshake{how}{PLAIN_HINT}");
            entry.error = Some(ConnectionError { words, is_answer: false });
        }
        self.end(index, at_ns, errno);
    }

    /// How much of what the worker offered counts as taken. If it is not all, there will be room.
    fn accept_sent(&mut self, index: ConnectionIndex) -> usize {
        let entry = self.tunnels.connection(index);
        let Some(tunnel) = &mut entry.tunnel else { return 0 };
        let plain = tunnel.take_accepted();
        entry.owed = if tunnel.is_ahead() { Owed::Room } else { Owed::Nothing };
        plain
    }

    /// The sockets have answered to what they were given.
    fn sent(&mut self, index: ConnectionIndex, at_ns: u64, taken: Result<usize, i32>) {
        let entry = self.tunnels.connection(index);
        let Some(tunnel) = &mut entry.tunnel else { return };
        tunnel.sent(taken.unwrap_or(0));
        match (taken, entry.owed) {
            (Err(errno), Owed::Result) => self.tell(index, at_ns, CompletionKind::Sent(Err(errno))),
            (Err(errno), _) => self.fail(index, at_ns, errno),
            (Ok(_), Owed::Result) => {
                let plain = self.accept_sent(index);
                self.tell(index, at_ns, CompletionKind::Sent(Ok(plain)));
                if self.tunnels.connection(index).owed == Owed::Nothing {
                    self.go_on(index);
                }
            }
            // Otherwise the socket reports it.
            (Ok(_), Owed::Room) if tunnel.is_all_accepted() => self.make_room(index, at_ns),
            (Ok(_), Owed::Room) => {}
            (Ok(_), Owed::Nothing) => {
                self.go_on(index);
                self.note_handshake(index, at_ns, false);
            }
        }
    }

    /// Sends records that were made meanwhile, unless the socket is full and will report room.
    fn go_on(&mut self, index: ConnectionIndex) {
        if self.tunnels.connection(index).tunnel.as_ref().is_some_and(Tunnel::is_all_accepted) {
            self.hand_over_own(index);
        }
    }

    fn make_room(&mut self, index: ConnectionIndex, at_ns: u64) {
        self.tunnels.connection(index).owed = Owed::Nothing;
        self.tell(index, at_ns, CompletionKind::Writable);
    }

    /// A socket has room for more.
    fn writable(&mut self, index: ConnectionIndex, at_ns: u64) {
        match self.tunnels.connection(index).owed {
            // The worker offers what it had offered.
            Owed::Room => self.make_room(index, at_ns),
            Owed::Nothing | Owed::Result => {
                self.hand_over_own(index);
                self.note_handshake(index, at_ns, false);
            }
        }
    }

    /// Handles a completion of a socket; [`Tunnels::next_queued`] returns what it means for the worker.
    pub(crate) fn take(&mut self, completion: Completion) {
        let Completion { index, at_ns, kind, .. } = completion;
        match kind {
            CompletionKind::Received(chunk) | CompletionKind::Stamped(chunk) => {
                self.receive(completion, chunk)
            }
            CompletionKind::Sent(taken) => self.sent(index, at_ns, taken),
            CompletionKind::Writable => self.writable(index, at_ns),
            CompletionKind::Connected => self.begin_handshake(index, at_ns),
            CompletionKind::Closed(errno) => self.handle_peer_end(index, at_ns, errno),
            CompletionKind::ConnectFailed(_) => {
                self.reset(index);
                self.tunnels.queued.push_back(completion);
            }
        }
    }

    /// As [`crate::io::Io::send`]; the bytes are encrypted at once.
    pub(crate) fn send(&mut self, index: ConnectionIndex, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        let entry = self.tunnels.connection(index);
        let Some(tunnel) = entry.tunnel.as_mut().filter(|_| entry.state == State::Open) else {
            return Some(SendResult { taken: Err(libc::ENOTCONN), at_ns: self.wire.clock_ns() });
        };
        if tunnel.encrypt(parts).is_err() {
            // Of what was offered nothing counts as taken, so that nothing of it may be handed over any more: its connection
            // ends without a word.
            entry.state = State::Down;
            return Some(SendResult { taken: Err(TLS_ERRNO), at_ns: self.wire.clock_ns() });
        }
        if tunnel.is_sending {
            // Something of the library's own is under way: when it has accepted there is room.
            entry.owed = Owed::Room;
            return Some(SendResult { taken: Ok(0), at_ns: self.wire.clock_ns() });
        }
        match self.hand_over(index) {
            HandOver::Later => {
                self.tunnels.connection(index).owed = Owed::Result;
                None
            }
            HandOver::Now(SendResult { taken: Ok(_), at_ns }) => {
                Some(SendResult { taken: Ok(self.accept_sent(index)), at_ns })
            }
            HandOver::Now(broken) => Some(broken),
            // It was offered again, and has accepted meanwhile.
            HandOver::Nothing => {
                let taken = self.accept_sent(index);
                Some(SendResult { taken: Ok(taken), at_ns: self.wire.clock_ns() })
            }
        }
    }

    /// As [`crate::io::Io::close`].
    pub(crate) fn close(&mut self, index: ConnectionIndex, mode: CloseMode) {
        let entry = self.tunnels.connection(index);
        if let State::Handshaking { is_heard, .. } = entry.state {
            // The worker has waited long enough.
            let step = if is_heard { "finish the handshake in time" } else { "answer the handshake in time" };
            let words = format!("the peer did not {step}{PLAIN_HINT}");
            entry.error = Some(ConnectionError { words, is_answer: false });
        }
        if let (Some(tunnel), State::Open, CloseMode::Orderly) = (&mut entry.tunnel, entry.state, mode) {
            tunnel.send_close_notify();
            // As good as it goes: where it is not taken, the end comes without a word.
            let _ = self.hand_over(index);
        }
        self.wire.hang_up(index, mode);
        self.reset(index);
        self.tunnels.queued.retain(|completion| completion.index != index);
    }
}

/// One tunnel driven as by an Io, over a peer in memory; the iterator yields the completions of its socket.
#[cfg(test)]
struct Driven<W> {
    tunnels: Tunnels,
    wire: W,
}

#[cfg(test)]
impl<W: Wire + Iterator<Item = Completion>> Driven<W> {
    fn new(wire: W, client: &TlsClient) -> Self {
        let mut tunnels = Tunnels::default();
        tunnels.begin(0, Some(client));
        Self { tunnels, wire }
    }

    fn next(&mut self) -> Option<Completion> {
        loop {
            if let Some(completion) = self.tunnels.next_queued() {
                return Some(completion);
            }
            let completion = self.wire.next()?;
            self.tunnels.over(&mut self.wire).take(completion);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod pair;

    use super::*;
    use crate::transport::tls_client::TlsSettings;
    use brunt_plan::sockets::TlsOptions;

    /// A peer that takes the first send, sends malformed bytes and is gone.
    struct Rude {
        sends: u32,
        coming: VecDeque<Completion>,
    }

    const SAID: &[u8] = b"-ERR this is no TLS\r\n";

    impl Wire for Rude {
        fn clock_ns(&self) -> u64 {
            7
        }

        #[expect(unsafe_code, reason = "the seam has it; nothing is read here")]
        unsafe fn hand_over(&mut self, _index: ConnectionIndex, records: &[u8]) -> Option<SendResult> {
            self.sends += 1;
            let taken = if self.sends == 1 { Ok(records.len()) } else { Err(libc::EPIPE) };
            Some(SendResult { taken, at_ns: 7 })
        }

        fn hang_up(&mut self, _index: ConnectionIndex, _mode: CloseMode) {}

        fn records(&self, _chunk: Chunk) -> &[u8] {
            SAID
        }
    }

    impl Iterator for Rude {
        type Item = Completion;

        fn next(&mut self) -> Option<Completion> {
            self.coming.pop_front()
        }
    }

    #[test]
    fn the_reason_outlives_an_unsent_alert() {
        let options = TlsOptions { is_insecure: true, ..TlsOptions::default() };
        let client = TlsSettings::read(&options).unwrap().toward("cache").unwrap();
        let came = |kind| Completion { index: 0, at_ns: 7, polled_ns: 7, kind };
        let said = Chunk { start: 0, len: SAID.len() };
        let coming = [came(CompletionKind::Connected), came(CompletionKind::Received(said))].into();
        let mut tls = Driven::new(Rude { sends: 0, coming }, &client);
        let told = tls.next().map(|completion| completion.kind);
        assert!(matches!(told, Some(CompletionKind::ConnectFailed(TLS_ERRNO))), "{told:?}");
        let error = ConnectionError {
            words:
                "the reply is not TLS; without TLS use --set transport=tcp, in a URL redis:// or memcached://"
                    .to_owned(),
            is_answer: true,
        };
        assert_eq!(tls.tunnels.connection_error(0), Some(&error));
        assert_eq!(tls.wire.sends, 2, "an alert was offered");
    }
}
