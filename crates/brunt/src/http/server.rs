//! The thread that serves: accepts connections, advances each of them, and writes the pages that they request.
//!
//! Pages are written on one thread, so that they take one CPU at most, and memory once. Invariants: at most [`CONNECTIONS_MAX`] connections
//! are open, and a new one takes the place of the one that is nearest to its deadline; without a connection no page is written.

use super::connection::Connection;
use super::pages::Pages;
use crate::background_thread::start_background_thread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For a request to come, and as long again for the answer to go.
pub(super) const STEP_MAX: Duration = Duration::from_secs(10);
/// Connections at once: fewer than the files that [`crate::limits`] leaves to the process.
const CONNECTIONS_MAX: usize = 16;
/// Browsers that follow at once.
const FOLLOWERS_MAX: usize = 8;
/// Pause before the next accept after the system had no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the last page may take to those who follow: they have asked already, and to write it takes far less.
const LINGER: Duration = Duration::from_secs(2);

/// What the thread holds.
struct Server {
    listener: TcpListener,
    pages: Arc<Pages>,
    step_max: Duration,
    connections: Vec<Connection>,
    /// When connections are accepted again, after the system had no room for one.
    resumes: Option<Instant>,
    /// When the thread ends, once nothing else will be published.
    ends: Option<Instant>,
}

/// Serves until those who follow have the last pages, or with the process.
pub(super) fn start(
    listener: TcpListener,
    pages: Arc<Pages>,
    step_max: Duration,
) -> io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let mut server = Server { listener, pages, step_max, connections: Vec::new(), resumes: None, ends: None };
    start_background_thread("brunt-http", move || while server.serve() {})
}

impl Server {
    /// Waits until there is something to do, and does it. Is there more to come?
    fn serve(&mut self) -> bool {
        self.wait();
        self.pages.clear_published();
        self.advance();
        self.accept();
        if self.pages.are_last() {
            self.ends.get_or_insert_with(|| Instant::now() + LINGER);
        }
        self.ends.is_none_or(|ends| Instant::now() < ends && self.followers() > 0)
    }

    fn wait(&self) {
        let events =
            |connection: &Connection| if connection.is_writing() { PollFlags::OUT } else { PollFlags::IN };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.pages.published(), PollFlags::IN),
            PollFd::new(
                &self.listener,
                if self.resumes.is_none() { PollFlags::IN } else { PollFlags::empty() },
            ),
        ];
        polled.extend(self.connections.iter().map(|held| PollFd::new(&held.stream, events(held))));
        let next =
            self.connections.iter().map(|held| held.deadline).chain(self.resumes).chain(self.ends).min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        // What is wrong with a socket its next use says.
        let _ = poll(&mut polled, timeout.as_ref());
    }

    fn advance(&mut self) {
        let mut followers = self.followers();
        self.connections.retain_mut(|connection| {
            let was_following = connection.is_following();
            let is_open = connection.advance(&self.pages, followers < FOLLOWERS_MAX);
            followers -= usize::from(was_following);
            followers += usize::from(is_open && connection.is_following());
            is_open
        });
    }

    fn followers(&self) -> usize {
        self.connections.iter().filter(|connection| connection.is_following()).count()
    }

    fn accept(&mut self) {
        if self.resumes.is_some_and(|resumes| Instant::now() < resumes) {
            return;
        }
        self.resumes = None;
        match self.listener.accept().and_then(|(stream, _)| Connection::new(stream, self.step_max)) {
            Ok(connection) => {
                if self.connections.len() == CONNECTIONS_MAX {
                    let deadline = |index: &usize| self.connections[*index].deadline;
                    let nearest = (0..CONNECTIONS_MAX).min_by_key(deadline);
                    nearest.map(|nearest| self.connections.swap_remove(nearest));
                }
                self.connections.push(connection);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                _ => self.resumes = Some(Instant::now() + PAUSE),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hosts::Hosts;
    use super::super::pages::EVENT_STREAM;
    use super::super::text;
    use super::*;
    use brunt_compat::front_end::Page;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// A server with this page.
    struct Served {
        pages: Arc<Pages>,
        address: std::net::SocketAddr,
        thread: JoinHandle<()>,
    }

    impl Served {
        fn start(content_type: &'static str, body: &'static [u8], step_max: Duration) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let page = Page { path: Some("/metrics"), content_type };
            let texts = vec![text(move || body.into())];
            let pages = Arc::new(Pages::new(vec![page], texts, Hosts::of_test()).unwrap());
            let thread = start(listener, pages.clone(), step_max).unwrap();
            Self { pages, address, thread }
        }

        fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).unwrap()
        }

        fn request(&self) -> TcpStream {
            let mut peer = self.connect();
            peer.write_all(REQUEST).unwrap();
            peer
        }
    }

    fn text_of(mut peer: &TcpStream) -> String {
        let mut text = String::new();
        peer.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn requests_are_answered_and_connections_closed() {
        let served = Served::start("text/plain", b"# EOF\n", STEP_MAX);
        let mut peer = served.connect();
        // A byte at a time, and what is said behind the request does no harm.
        REQUEST.iter().for_each(|byte| peer.write_all(&[*byte]).unwrap());
        let text = text_of(&peer);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("# EOF\n"), "{text}");
        peer.write_all(REQUEST).unwrap();
    }

    #[test]
    fn slow_requests_time_out() {
        let served = Served::start("text/plain", b"", Duration::from_millis(30));
        assert_eq!(text_of(&served.connect()), "", "one that says nothing");
        // A byte now and then puts nothing off.
        let mut peer = served.connect();
        peer.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let mut answer = [0; 512];
        let len = loop {
            peer.write_all(b"a").unwrap();
            if let Ok(len) = peer.read(&mut answer) {
                break len;
            }
        };
        assert!(answer[..len].starts_with(b"HTTP/1.1 408 Request Timeout\r\n"), "{}", answer.escape_ascii());
    }

    /// The answer to one who does not read it waits until its time is up, and no longer; others are answered meanwhile.
    #[test]
    fn slow_readers_are_disconnected() {
        // More than the sockets of a loopback hold.
        const LEN: usize = 64 << 20;
        let served = Served::start("text/plain", vec![b'a'; LEN].leak(), Duration::from_millis(30));
        let slow = served.request();
        // Answered after it, and closed after it.
        let mut silent = served.connect();
        assert_eq!(silent.read(&mut [0]).unwrap(), 0);
        let mut received = Vec::new();
        let _ = (&slow).read_to_end(&mut received);
        assert!((1..LEN).contains(&received.len()), "{}", received.len());
    }

    #[test]
    fn connections_beyond_the_limit_replace_the_oldest() {
        let served = Served::start("text/plain", b"# EOF\n", STEP_MAX);
        let silent: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| served.connect()).collect();
        assert!(text_of(&served.request()).ends_with("# EOF\n"));
        silent[..CONNECTIONS_MAX].iter().for_each(|peer| assert_eq!(text_of(peer), ""));
        let mut last = &silent[2 * CONNECTIONS_MAX - 1];
        last.write_all(REQUEST).unwrap();
        assert!(text_of(last).ends_with("# EOF\n"));
    }

    /// Who closes makes room for who asks at the same time.
    #[test]
    fn followers_that_close_are_not_counted() {
        let page = Page { path: Some("/metrics"), content_type: EVENT_STREAM };
        let pages = Arc::new(Pages::new(vec![page], vec![text(Arc::default)], Hosts::of_test()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (step_max, connections) = (STEP_MAX, Vec::new());
        let mut server = Server { listener, pages, step_max, connections, resumes: None, ends: None };
        let asks = |server: &mut Server| {
            let mut peer = TcpStream::connect(address).unwrap();
            peer.write_all(REQUEST).unwrap();
            server.accept();
            peer
        };
        let followers: Vec<TcpStream> = (0..FOLLOWERS_MAX).map(|_| asks(&mut server)).collect();
        server.advance();
        assert_eq!(server.followers(), FOLLOWERS_MAX);
        let next = asks(&mut server);
        drop(followers);
        server.advance();
        assert_eq!(server.followers(), 1);
        drop(server);
        assert!(text_of(&next).starts_with("HTTP/1.1 200 OK\r\n"));
    }

    #[test]
    fn the_last_page_is_waited_for() {
        let served = Served::start(EVENT_STREAM, b"first\n", STEP_MAX);
        let followers: Vec<TcpStream> = (0..FOLLOWERS_MAX).map(|_| served.request()).collect();
        for mut follower in &followers {
            let mut text = Vec::new();
            while !text.ends_with(b"first\n") {
                let mut byte = [0];
                follower.read_exact(&mut byte).unwrap();
                text.push(byte[0]);
            }
        }
        assert!(text_of(&served.request()).starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
        served.pages.put(vec![text(|| Arc::from(*b"last\n"))]);
        served.pages.finish();
        served.thread.join().unwrap();
        followers.iter().for_each(|follower| assert_eq!(text_of(follower), "last\n"));
    }
}
