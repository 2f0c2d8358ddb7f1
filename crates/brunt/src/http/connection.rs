//! One connection: a request comes in, an answer goes out, and it is closed; one that follows gets every later text of its page, too.
//!
//! Not the loop. One request each: a client that scrapes once a second loses nothing by it, and none keeps a connection. Invariants: each step ends by
//! its deadline whatever the peer does; what comes in is bounded by [`HEAD_MAX`], what goes out is shared with all who ask for it.

use super::pages::{EVENT_STREAM, Follower, Pages};
use super::request::{HEAD_MAX, Head, RequestError, read};
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For the request to come, and as long again for the answer to go.
const STEP: Duration = Duration::from_secs(10);
/// One who follows may have nothing to do for as long as a run connects and stores its data set.
const FOLLOW: Duration = Duration::from_secs(365 * 24 * 3_600);
/// For the peer to close its end when it has the answer. Who closes with bytes unread resets the connection, and the answer may be lost.
const LEAVE: Duration = Duration::from_secs(1);

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    state: State,
    /// When the state ends, whatever the peer does.
    pub deadline: Instant,
}

#[derive(Debug)]
enum State {
    /// What has come of the request.
    Asking(Vec<u8>),
    /// Head and body of the answer, and how many bytes of both are gone.
    Answering { head: Vec<u8>, body: Arc<[u8]>, sent: usize },
    /// Everything of this version of the page is gone but the rest of `body`; then a newer one follows.
    Following { page: usize, version: u64, body: Arc<[u8]>, sent: usize, _place: Follower },
    /// Everything is sent.
    Leaving,
}

/// What is to become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Close,
}

impl Connection {
    /// One that was just accepted.
    pub(super) fn new(stream: TcpStream, now: Instant) -> Self {
        Self { stream, state: State::Asking(Vec::new()), deadline: now + STEP }
    }

    /// The socket, and what of it is waited for.
    pub(super) fn wants(&self) -> (&TcpStream, PollFlags) {
        let flags = match &self.state {
            State::Asking(_) | State::Leaving => PollFlags::IN,
            State::Answering { .. } => PollFlags::OUT,
            State::Following { body, sent, .. } if *sent < body.len() => PollFlags::OUT,
            State::Following { .. } => PollFlags::IN,
        };
        (&self.stream, flags)
    }

    /// Something has happened on the socket.
    pub(super) fn advance(&mut self, now: Instant, board: &Arc<Pages>) -> Next {
        match &self.state {
            State::Asking(_) => self.take_in(now, board),
            State::Answering { .. } => self.send(now),
            State::Following { body, sent, .. } if *sent < body.len() => self.send_news(now, board),
            // A client that follows a page sends nothing more, and closes the connection to end.
            State::Following { .. } => self.leave(),
            State::Leaving => self.leave(),
        }
    }

    /// Something was put up, or never will be again.
    pub(super) fn send_news(&mut self, now: Instant, board: &Arc<Pages>) -> Next {
        let State::Following { page, version, body, sent, .. } = &mut self.state else { return Next::Stay };
        loop {
            while *sent < body.len() {
                match self.stream.write(&body[*sent..]) {
                    Ok(len) => *sent += len,
                    Err(error) => return after(&error),
                }
            }
            self.deadline = now + FOLLOW;
            match board.is_newer(*version) {
                (true, _) => {
                    let content = board.page(*page);
                    (*body, *version, *sent) = (content.text, content.version, 0);
                    self.deadline = now + STEP;
                }
                (false, true) => return Next::Stay,
                (false, false) => break,
            }
        }
        self.end(now)
    }

    /// Its time is up.
    pub(super) fn expire(&mut self, now: Instant, board: &Pages) -> Next {
        match &self.state {
            State::Asking(head) if !head.is_empty() => self.refuse(RequestError::TooSlow, false, board, now),
            _ => Next::Close,
        }
    }

    fn take_in(&mut self, now: Instant, board: &Arc<Pages>) -> Next {
        let State::Asking(head) = &mut self.state else { return Next::Stay };
        let mut bytes = [0; HEAD_MAX];
        let room = HEAD_MAX - head.len();
        match self.stream.read(&mut bytes[..room]) {
            Ok(0) => return Next::Close,
            Ok(len) => head.extend_from_slice(&bytes[..len]),
            Err(error) => return after(&error),
        }
        match read(head, board) {
            Head::Unfinished => Next::Stay,
            Head::Refused { refusal, is_head_only } => self.refuse(refusal, is_head_only, board, now),
            Head::Page { page, is_head_only } => {
                let content = board.page(page);
                if content.content_type == EVENT_STREAM && !is_head_only {
                    return self.follow(page, now, board);
                }
                let head = |len| head_of("200 OK", content.content_type, "Cache-Control: no-store\r\n", len);
                self.answer(head, content.text, is_head_only, now)
            }
        }
    }

    /// Has the head for its first body, and of no version yet.
    fn follow(&mut self, page: usize, now: Instant, board: &Arc<Pages>) -> Next {
        let Some(place) = board.follow() else {
            return self.refuse(RequestError::TooMany, false, board, now);
        };
        let content = board.page(page);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {EVENT_STREAM}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        );
        let body = [head.as_bytes(), &content.text].concat().into();
        self.state = State::Following { page, version: content.version, body, sent: 0, _place: place };
        self.deadline = now + STEP;
        self.send_news(now, board)
    }

    fn refuse(&mut self, refusal: RequestError, is_head_only: bool, board: &Pages, now: Instant) -> Next {
        let allow = if refusal == RequestError::NoMethod { "Allow: GET, HEAD\r\n" } else { "" };
        let head = |len| head_of(refusal.status(), "text/plain; charset=utf-8", allow, len);
        self.answer(head, refusal.text(board).into_bytes().into(), is_head_only, now)
    }

    fn answer(
        &mut self,
        head_of_len: impl Fn(usize) -> Vec<u8>,
        body: Arc<[u8]>,
        is_head_only: bool,
        now: Instant,
    ) -> Next {
        let head = head_of_len(body.len());
        let body = if is_head_only { Arc::default() } else { body };
        self.state = State::Answering { head, body, sent: 0 };
        self.deadline = now + STEP;
        self.send(now)
    }

    fn send(&mut self, now: Instant) -> Next {
        let State::Answering { head, body, sent } = &mut self.state else { return Next::Stay };
        while *sent < head.len() + body.len() {
            let rest = match sent.checked_sub(head.len()) {
                None => &head[*sent..],
                Some(sent) => &body[sent..],
            };
            match self.stream.write(rest) {
                Ok(len) => *sent += len,
                Err(error) => return after(&error),
            }
        }
        self.end(now)
    }

    /// Everything is sent.
    fn end(&mut self, now: Instant) -> Next {
        if self.stream.shutdown(Shutdown::Write).is_err() {
            return Next::Close;
        }
        (self.state, self.deadline) = (State::Leaving, now + LEAVE);
        self.leave()
    }

    /// Reads and discards until the peer closes too.
    fn leave(&mut self) -> Next {
        let mut bytes = [0; 4 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => Next::Close,
            Ok(_) => Next::Stay,
            Err(error) => after(&error),
        }
    }
}

fn after(error: &std::io::Error) -> Next {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Next::Stay,
        _ => Next::Close,
    }
}

fn head_of(status: &str, content_type: &str, more: &str, len: usize) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len}\r\n{more}Connection: close\r\n\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::hosts::Hosts;
    use super::super::pages::Text;
    use super::*;
    use brunt_compat::front_end::Page;
    use std::net::TcpListener;

    /// A connection as it was accepted, and its peer.
    fn connected(now: Instant) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (Connection::new(stream, now), peer)
    }

    fn board() -> Arc<Pages> {
        let page = Page { path: Some("/metrics"), content_type: "text/plain" };
        Arc::new(
            Pages::new(vec![page], vec![Text::new(Box::new(|| Arc::from(*b"# EOF\n")))], Hosts::of_test())
                .unwrap(),
        )
    }

    /// Advances until this has become of it; what is on its way through the loopback comes at some time.
    fn advance_until(connection: &mut Connection, now: Instant, is_so: impl Fn(&State) -> bool) {
        while !is_so(&connection.state) {
            assert_eq!(connection.advance(now, &board()), Next::Stay);
            std::thread::yield_now();
        }
    }

    fn text_of(mut peer: TcpStream) -> String {
        let mut text = String::new();
        peer.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn requests_are_answered_and_connections_closed() {
        let now = Instant::now();
        let (mut connection, mut peer) = connected(now);
        peer.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        advance_until(&mut connection, now, |state| matches!(state, State::Leaving));
        assert_eq!(connection.deadline, now + LEAVE);
        let text = text_of(peer.try_clone().unwrap());
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("# EOF\n"), "{text}");
        // What is said behind it does no harm, and the peer's end is ours.
        peer.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        drop(peer);
        while connection.advance(now, &board()) == Next::Stay {
            std::thread::yield_now();
        }
    }

    #[test]
    fn slow_requests_time_out() {
        let now = Instant::now();
        let (mut silent, _peer) = connected(now);
        assert_eq!(silent.deadline, now + STEP);
        assert_eq!(silent.expire(now + STEP, &board()), Next::Close);

        let (mut slow, mut peer) = connected(now);
        peer.write_all(b"GET /me").unwrap();
        advance_until(&mut slow, now, |state| matches!(state, State::Asking(head) if head.len() == 7));
        // A byte now and then puts nothing off.
        peer.write_all(b"t").unwrap();
        advance_until(
            &mut slow,
            now + STEP / 2,
            |state| matches!(state, State::Asking(head) if head.len() == 8),
        );
        assert_eq!(slow.deadline, now + STEP);
        assert_eq!(slow.expire(now + STEP, &board()), Next::Stay);
        assert_eq!(slow.deadline, now + STEP + LEAVE);
        let text = text_of(peer);
        assert!(text.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{text}");
        assert_eq!(slow.expire(now + STEP + LEAVE, &board()), Next::Close);
    }

    /// The answer to one who does not read it waits until its time is up, and no longer.
    #[test]
    fn slow_readers_are_disconnected() {
        let now = Instant::now();
        let (mut connection, _peer) = connected(now);
        // More than the sockets of a loopback hold.
        let body: Arc<[u8]> = vec![b'a'; 64 << 20].into();
        assert_eq!(
            connection.answer(|len| head_of("200 OK", "text/plain", "", len), body, false, now),
            Next::Stay
        );
        assert!(matches!(connection.state, State::Answering { sent, .. } if sent > 0));
        assert_eq!(connection.deadline, now + STEP);
        assert_eq!(connection.expire(now + STEP, &board()), Next::Close);
    }
}
