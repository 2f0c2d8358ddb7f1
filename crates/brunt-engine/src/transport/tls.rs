//! TLS behind [`Io`], over any other: plain bytes for the worker, records for the Io beneath.
//!
//! Not a backend and not a second loop: it makes no system call, and the Io beneath knows nothing of it. `Connected` is said when
//! the handshake is over, as much of a send is taken as the records that it became are, and what has come is told when a record
//! of it is whole. The times are those of the Io beneath, so that what encrypting takes lies before `sent`, and what decrypting
//! takes behind the read. The library makes a block of memory for every record, in both directions; nothing else allocates
//! once a connection has had its largest send and its largest read. Invariant: after a send that was not taken whole comes
//! one `Writable`, and one send without a result has one result.

pub(crate) mod client;
#[cfg(test)]
mod pair;
mod tunnel;

use crate::clock::WallReading;
use crate::io::{Chunk, CloseHow, Completion, Io, LinkId, SendResult, Trouble, Until, What};
use crate::transport::address::Address;
use client::TlsClient;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use tunnel::Tunnel;
pub(crate) use tunnel::{PLAIN_HINT, explain};

/// The errno of a tunnel that could not be made or went wrong. No stream socket has it of itself; [`Io::trouble`] has the words.
pub(crate) const TLS_ERRNO: i32 = libc::EPROTO;

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
    /// Since the connection was established, at this time; and has the peer said anything?
    Handshaking {
        since_ns: u64,
        is_heard: bool,
    },
    Open,
}

struct Link {
    client: TlsClient,
    tunnel: Option<Tunnel>,
    state: State,
    owed: Owed,
    /// How long the last handshake took.
    handshake_ns: Option<u64>,
    /// Why the last connection failed.
    trouble: Option<Reason>,
}

/// Why a connection failed, see [`Trouble`].
struct Reason {
    words: String,
    is_answer: bool,
}

impl Reason {
    /// What we or the peer have to say of the other's part.
    fn answer(error: &rustls::Error) -> Self {
        Self { words: explain(error), is_answer: true }
    }
}

/// What handing over came to.
#[derive(Clone, Copy, Debug)]
enum Handed {
    /// There was nothing to hand over, or the Io is at it.
    Nothing,
    /// The Io has answered.
    Now(SendResult),
    /// It will.
    Later,
}

/// TLS over another Io.
pub(crate) struct Tls<I: Io> {
    io: I,
    links: Vec<Link>,
    /// Of the completion that was told last.
    plain: Vec<u8>,
    /// What is to be told before anything else.
    told: VecDeque<Completion>,
}

impl<I: Io> Tls<I> {
    /// Over an Io with as many links as there are clients: each has its server's.
    pub(crate) fn new(io: I, clients: impl IntoIterator<Item = TlsClient>) -> Self {
        let link = |client| Link {
            client,
            tunnel: None,
            state: State::Down,
            owed: Owed::Nothing,
            handshake_ns: None,
            trouble: None,
        };
        Self {
            io,
            links: clients.into_iter().map(link).collect(),
            plain: Vec::new(),
            // Of one completion beneath come three at most: established, bytes, the end.
            told: VecDeque::with_capacity(4),
        }
    }

    /// Gives the Io what there is to be sent, unless it is at it.
    #[inline]
    #[expect(unsafe_code, reason = "a promise to the Io beneath that the bytes stay")]
    fn hand_over(&mut self, link: LinkId) -> Handed {
        let Some(tunnel) = &mut self.links[link as usize].tunnel else { return Handed::Nothing };
        let records = tunnel.take_off();
        if records.is_empty() {
            return Handed::Nothing;
        }
        // SAFETY: a tunnel leaves these bytes what and where they are until it is told that they were sent; and it is dropped only
        // with its connection, which `Io::close` ends after handing in what was queued on it, or after the Io has.
        let result = unsafe { self.io.send(link, &[IoSlice::new(records)]) };
        match result {
            None => Handed::Later,
            Some(result) => {
                tunnel.sent(result.taken.unwrap_or(0));
                Handed::Now(result)
            }
        }
    }

    /// The same where nobody waits for it: of a handshake, or of what the library has to say of itself.
    fn hand_over_own(&mut self, link: LinkId) {
        if let Handed::Now(SendResult { taken: Err(errno), at_ns }) = self.hand_over(link) {
            self.fail(link, at_ns, errno);
        }
    }

    fn tell(&mut self, link: LinkId, at_ns: u64, what: What) {
        self.told.push_back(Completion { link, at_ns, polled_ns: at_ns, what });
    }

    /// A connection that stands, or is on the way to, is over: the Io beneath has ended it, or is told to.
    fn end(&mut self, link: LinkId, at_ns: u64, errno: Option<i32>) {
        self.io.close(link, CloseHow::Orderly);
        let what = match self.links[link as usize].state {
            State::Open => What::Closed(errno),
            State::Down | State::Handshaking { .. } => What::ConnectFailed(errno.unwrap_or(TLS_ERRNO)),
        };
        self.reset(link);
        self.tell(link, at_ns, what);
    }

    fn fail(&mut self, link: LinkId, at_ns: u64, errno: i32) {
        self.end(link, at_ns, Some(errno));
    }

    fn reset(&mut self, link: LinkId) {
        let entry = &mut self.links[link as usize];
        (entry.tunnel, entry.state, entry.owed) = (None, State::Down, Owed::Nothing);
    }

    /// The connection stands: the handshake begins.
    fn greet(&mut self, link: LinkId, at_ns: u64) {
        let entry = &mut self.links[link as usize];
        entry.state = State::Handshaking { since_ns: at_ns, is_heard: false };
        match Tunnel::begin(&entry.client) {
            Ok(tunnel) => {
                entry.tunnel = Some(tunnel);
                self.hand_over_own(link);
            }
            Err(error) => {
                entry.trouble = Some(Reason::answer(&error));
                self.fail(link, at_ns, TLS_ERRNO);
            }
        }
    }

    /// Records came in, or parts of some.
    #[inline]
    fn receive(&mut self, completion: Completion, chunk: Chunk) {
        let Completion { link, at_ns, polled_ns, .. } = completion;
        let entry = &mut self.links[link as usize];
        let Some(tunnel) = &mut entry.tunnel else { return };
        if let State::Handshaking { is_heard, .. } = &mut entry.state {
            *is_heard = true;
        }
        self.plain.clear();
        let received = tunnel.receive(self.io.bytes(chunk), &mut self.plain);
        let has_own = tunnel.has_waiting();
        let speaks = !self.plain.is_empty();
        if speaks {
            self.note_handshake(link, at_ns, speaks);
        }
        if !self.plain.is_empty() && self.links[link as usize].state == State::Open {
            let chunk = Chunk { start: 0, len: self.plain.len() };
            self.told.push_back(Completion { link, at_ns, polled_ns, what: What::Received(chunk) });
        }
        // An answer of the handshake, of a change of keys, or an alert that says what is wrong. Only now, because it may fail,
        // and what has come was there before.
        let handed = if has_own { self.hand_over(link) } else { Handed::Nothing };
        let failed = match handed {
            Handed::Now(SendResult { taken: Err(errno), at_ns }) => Some((errno, at_ns)),
            Handed::Now(_) | Handed::Later | Handed::Nothing => None,
        };
        if failed.is_none() {
            self.note_handshake(link, at_ns, speaks);
        }
        match (received, failed) {
            (Ok(false), None) => {}
            (Ok(false), Some((errno, at_ns))) => self.fail(link, at_ns, errno),
            // The peer has said why it is over, or we know: that it took no answer is no news.
            (Ok(true), _) => self.end_of_peer(link, at_ns, None),
            (Err(error), _) => {
                self.links[link as usize].trouble = Some(Reason::answer(&error));
                self.fail(link, at_ns, TLS_ERRNO);
            }
        }
    }

    /// Tells that a connection is established, if the handshake is over and our part of it has been handed over, or must have been
    /// because the peer `speaks`.
    #[inline]
    fn note_handshake(&mut self, link: LinkId, at_ns: u64, speaks: bool) {
        let entry = &mut self.links[link as usize];
        if let (State::Handshaking { since_ns, .. }, Some(tunnel)) = (entry.state, &entry.tunnel)
            && !tunnel.is_handshaking()
            && (speaks || tunnel.has_landed())
        {
            entry.state = State::Open;
            entry.handshake_ns = Some(at_ns.saturating_sub(since_ns));
            self.tell(link, at_ns, What::Connected);
        }
    }

    /// The peer has ended a connection. That it did not say so first is no fault of its own: replies say how long they are, so that
    /// nothing can be cut off unseen.
    fn end_of_peer(&mut self, link: LinkId, at_ns: u64, errno: Option<i32>) {
        let entry = &mut self.links[link as usize];
        if entry.state != State::Open {
            let how =
                errno.map_or(String::new(), |errno| format!(" ({})", io::Error::from_raw_os_error(errno)));
            let words = format!("it ended the connection during the handshake{how}{PLAIN_HINT}");
            entry.trouble = Some(Reason { words, is_answer: false });
        }
        self.end(link, at_ns, errno);
    }

    /// How much of what the worker offered counts as taken. If it is not all, there will be room.
    fn land(&mut self, link: LinkId) -> usize {
        let entry = &mut self.links[link as usize];
        let Some(tunnel) = &mut entry.tunnel else { return 0 };
        let plain = tunnel.take_landed();
        entry.owed = if tunnel.is_ahead() { Owed::Room } else { Owed::Nothing };
        plain
    }

    /// The Io has answered to what it was given.
    fn sent(&mut self, link: LinkId, at_ns: u64, taken: Result<usize, i32>) {
        let entry = &mut self.links[link as usize];
        let Some(tunnel) = &mut entry.tunnel else { return };
        tunnel.sent(taken.unwrap_or(0));
        match (taken, entry.owed) {
            (Err(errno), Owed::Result) => self.tell(link, at_ns, What::Sent(Err(errno))),
            (Err(errno), _) => self.fail(link, at_ns, errno),
            (Ok(_), Owed::Result) => {
                let plain = self.land(link);
                self.tell(link, at_ns, What::Sent(Ok(plain)));
                if self.links[link as usize].owed == Owed::Nothing {
                    self.go_on(link);
                }
            }
            // Else the Io says when there is.
            (Ok(_), Owed::Room) if tunnel.has_landed() => self.make_room(link, at_ns),
            (Ok(_), Owed::Room) => {}
            (Ok(_), Owed::Nothing) => {
                self.go_on(link);
                self.note_handshake(link, at_ns, false);
            }
        }
    }

    /// Hands over what was made meanwhile, unless the Io has no room: then it says when there is.
    fn go_on(&mut self, link: LinkId) {
        if self.links[link as usize].tunnel.as_ref().is_some_and(Tunnel::has_landed) {
            self.hand_over_own(link);
        }
    }

    fn make_room(&mut self, link: LinkId, at_ns: u64) {
        self.links[link as usize].owed = Owed::Nothing;
        self.tell(link, at_ns, What::Writable);
    }

    /// The Io has room for more.
    fn writable(&mut self, link: LinkId, at_ns: u64) {
        match self.links[link as usize].owed {
            // The worker offers what it had offered.
            Owed::Room => self.make_room(link, at_ns),
            Owed::Nothing | Owed::Result => {
                self.hand_over_own(link);
                self.note_handshake(link, at_ns, false);
            }
        }
    }

    /// What the Io beneath says, in the words of the one above.
    #[inline]
    fn take(&mut self, completion: Completion) {
        let Completion { link, at_ns, what, .. } = completion;
        match what {
            What::Received(chunk) => self.receive(completion, chunk),
            What::Sent(taken) => self.sent(link, at_ns, taken),
            What::Writable => self.writable(link, at_ns),
            What::Connected => self.greet(link, at_ns),
            What::Closed(errno) => self.end_of_peer(link, at_ns, errno),
            What::ConnectFailed(_) => {
                self.reset(link);
                self.told.push_back(completion);
            }
        }
    }
}

impl<I: Io> Io for Tls<I> {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.io.now_ns()
    }

    fn connect(&mut self, link: LinkId, address: &Address) -> Result<(), i32> {
        self.links[link as usize].trouble = None;
        self.io.connect(link, address)
    }

    #[inline]
    #[expect(
        unsafe_code,
        reason = "a promise of the caller's, which nothing here needs: the bytes are encrypted at once"
    )]
    unsafe fn send(&mut self, link: LinkId, parts: &[IoSlice<'_>]) -> Option<SendResult> {
        let entry = &mut self.links[link as usize];
        let Some(tunnel) = entry.tunnel.as_mut().filter(|_| entry.state == State::Open) else {
            return Some(SendResult { taken: Err(libc::ENOTCONN), at_ns: self.io.now_ns() });
        };
        if tunnel.encrypt(parts).is_err() {
            // Of what was offered nothing counts as taken, so that nothing of it may be handed over any more: its connection
            // ends without a word.
            entry.state = State::Down;
            return Some(SendResult { taken: Err(TLS_ERRNO), at_ns: self.io.now_ns() });
        }
        if tunnel.is_flying() {
            // Something of the library's own is under way: when it has landed there is room.
            entry.owed = Owed::Room;
            return Some(SendResult { taken: Ok(0), at_ns: self.io.now_ns() });
        }
        match self.hand_over(link) {
            Handed::Later => {
                self.links[link as usize].owed = Owed::Result;
                None
            }
            Handed::Now(SendResult { taken: Ok(_), at_ns }) => {
                Some(SendResult { taken: Ok(self.land(link)), at_ns })
            }
            Handed::Now(broken) => Some(broken),
            // It was offered again, and has landed meanwhile.
            Handed::Nothing => {
                let taken = self.land(link);
                Some(SendResult { taken: Ok(taken), at_ns: self.io.now_ns() })
            }
        }
    }

    #[inline]
    fn submit(&mut self) {
        self.io.submit();
    }

    fn close(&mut self, link: LinkId, how: CloseHow) {
        let entry = &mut self.links[link as usize];
        if let State::Handshaking { is_heard, .. } = entry.state {
            // The worker has waited long enough.
            let what = if is_heard { "finish the handshake in time" } else { "answer the handshake in time" };
            let words = format!("it did not {what}{PLAIN_HINT}");
            entry.trouble = Some(Reason { words, is_answer: false });
        }
        if let (Some(tunnel), State::Open, CloseHow::Orderly) = (&mut entry.tunnel, entry.state, how) {
            tunnel.say_end();
            // As good as it goes: where it is not taken, the end comes without a word.
            let _ = self.hand_over(link);
        }
        self.io.close(link, how);
        self.reset(link);
        self.told.retain(|completion| completion.link != link);
    }

    #[inline]
    fn wait(&mut self, now_ns: u64, until: Until) -> u64 {
        debug_assert!(self.told.is_empty(), "everything was fetched");
        self.io.wait(now_ns, until)
    }

    #[inline]
    fn next(&mut self) -> Option<Completion> {
        loop {
            if let Some(completion) = self.told.pop_front() {
                return Some(completion);
            }
            let completion = self.io.next()?;
            self.take(completion);
        }
    }

    #[inline]
    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.plain[chunk.start..chunk.start + chunk.len]
    }

    fn syscalls(&self) -> u64 {
        self.io.syscalls()
    }

    fn retransmits(&mut self) -> u64 {
        self.io.retransmits()
    }

    fn shares_cpu(&mut self, link: LinkId) -> Option<bool> {
        self.io.shares_cpu(link)
    }

    fn handshake_ns(&self, link: LinkId) -> Option<u64> {
        self.links[link as usize].handshake_ns
    }

    fn trouble(&self, link: LinkId) -> Option<Trouble<'_>> {
        let reason = self.links[link as usize].trouble.as_ref()?;
        Some(Trouble { words: &reason.words, is_answer: reason.is_answer })
    }

    fn wall(&mut self) -> WallReading {
        self.io.wall()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::tls::TlsOptions;
    use client::TlsSettings;

    /// A peer that takes the first send, says something that is no TLS, and is gone.
    struct Rude {
        sends: u32,
        coming: VecDeque<Completion>,
    }

    const SAID: &[u8] = b"-ERR this is no TLS\r\n";

    impl Io for Rude {
        fn now_ns(&mut self) -> u64 {
            7
        }

        fn connect(&mut self, _link: LinkId, _address: &Address) -> Result<(), i32> {
            Ok(())
        }

        #[expect(unsafe_code, reason = "the seam has it; nothing is read here")]
        unsafe fn send(&mut self, _link: LinkId, parts: &[IoSlice<'_>]) -> Option<SendResult> {
            self.sends += 1;
            let len = parts.iter().map(|part| part.len()).sum();
            Some(SendResult { taken: if self.sends == 1 { Ok(len) } else { Err(libc::EPIPE) }, at_ns: 7 })
        }

        fn close(&mut self, _link: LinkId, _how: CloseHow) {}

        fn wait(&mut self, now_ns: u64, _until: Until) -> u64 {
            now_ns
        }

        fn next(&mut self) -> Option<Completion> {
            self.coming.pop_front()
        }

        fn bytes(&self, _chunk: Chunk) -> &[u8] {
            SAID
        }

        fn syscalls(&self) -> u64 {
            0
        }

        fn retransmits(&mut self) -> u64 {
            0
        }

        fn shares_cpu(&mut self, _link: LinkId) -> Option<bool> {
            None
        }
    }

    #[test]
    fn the_reason_outlives_an_alert_that_nobody_takes() {
        let options = TlsOptions { is_insecure: true, ..TlsOptions::default() };
        let client = TlsSettings::read(&options).unwrap().toward("cache").unwrap();
        let came = |what| Completion { link: 0, at_ns: 7, polled_ns: 7, what };
        let said = Chunk { start: 0, len: SAID.len() };
        let coming = [came(What::Connected), came(What::Received(said))].into();
        let mut tls = Tls::new(Rude { sends: 0, coming }, [client]);
        let told = tls.next().map(|completion| completion.what);
        assert!(matches!(told, Some(What::ConnectFailed(TLS_ERRNO))), "{told:?}");
        let trouble = Trouble {
            words: "what it says is no TLS; does it speak TLS (--transport tcp is plain)?",
            is_answer: true,
        };
        assert_eq!(tls.trouble(0), Some(trouble));
        assert_eq!(tls.io.sends, 2, "an alert was offered");
    }
}
