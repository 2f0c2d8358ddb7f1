//! The threads that serve: each accepts a connection, reads a request on it, and writes the page that it asks for. A connection
//! that follows a page gets every later text of it, too; all others are closed when they have their answer: a client that scrapes once a second
//! loses nothing by it, and none keeps a connection. Bodies of requests are not read.
//!
//! Invariants: at most [`CONNECTIONS_MAX`] connections are open, and a new one takes the place of the one that is nearest to its deadline; without a
//! connection no page is written, and each on one thread at a time; each step of a connection has a deadline that the peer cannot put off; what
//! comes in is bounded by [`HEAD_MAX`], what goes out is shared with all who request it; whatever the bytes are, there is an answer as soon as no
//! further byte can make a request of them.

use super::pages::{Content, EVENT_STREAM, News, Pages};
use crate::background_thread::start_background_thread;
use brunt_plan::quantity::listed;
use httparse::{EMPTY_HEADER, Error, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// For a request to come, and as long again for the answer to go.
pub(super) const STEP_MAX: Duration = Duration::from_secs(10);
/// Connections at once: fewer than the files that [`crate::host`] leaves to the process.
const CONNECTIONS_MAX: usize = 16;
/// Pause before the next accept after the system had no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// One who follows may have nothing to do for as long as a run connects and stores its data set.
const FOLLOW: Duration = Duration::from_secs(365 * 24 * 3_600);
/// How often those who follow look for something newer.
const NEWS_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// For the peer to close its end when it has the answer. Who closes with bytes unread resets the connection, and the answer may be lost.
const LEAVE: Duration = Duration::from_secs(1);

/// The event that nothing else comes.
const END: &str = "event: end\ndata:\n\n";

/// What the threads share.
struct Server {
    listener: TcpListener,
    pages: Arc<Pages>,
    step_max: Duration,
    /// The open connections, each with the end of its step.
    open: Mutex<Vec<(Arc<TcpStream>, Instant)>>,
}

/// Serves until the process ends. `step_max` is for a request to come, and as long again for the answer to go.
pub(super) fn start(listener: TcpListener, pages: Arc<Pages>, step_max: Duration) -> io::Result<()> {
    let server = Arc::new(Server { listener, pages, step_max, open: Mutex::default() });
    // One more, which accepts the connection that takes another one's place.
    (0..=CONNECTIONS_MAX).try_for_each(|_| {
        let server = server.clone();
        start_background_thread("brunt-http", move || {
            loop {
                server.serve_next();
            }
        })
        .map(drop)
    })
}

impl Server {
    fn open(&self) -> MutexGuard<'_, Vec<(Arc<TcpStream>, Instant)>> {
        // Nothing that can panic happens while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve_next(self: &Arc<Self>) {
        match self.listener.accept() {
            // An error is the peer's: it is gone, or its time is up.
            Ok((stream, _)) => drop(self.admit(Arc::new(stream)).serve()),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            #[expect(clippy::disallowed_methods, reason = "a thread beside the load that waits for room")]
            Err(_) => thread::sleep(PAUSE),
        }
    }

    /// One more than there may be takes the place of the one that is nearest to its deadline, which ends.
    fn admit(self: &Arc<Self>, stream: Arc<TcpStream>) -> Connection {
        let deadline = Instant::now() + self.step_max;
        let mut open = self.open();
        if open.len() == CONNECTIONS_MAX {
            let nearest = (0..CONNECTIONS_MAX).min_by_key(|index| open[*index].1);
            nearest.map(|nearest| open.swap_remove(nearest).0.shutdown(Shutdown::Both));
        }
        open.push((stream.clone(), deadline));
        Connection { server: self.clone(), stream, deadline }
    }
}

/// A connection.
struct Connection {
    server: Arc<Server>,
    stream: Arc<TcpStream>,
    /// When the step ends, whatever the peer does.
    deadline: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.open().retain(|(stream, _)| !Arc::ptr_eq(stream, &self.stream));
    }
}

impl Connection {
    fn serve(&mut self) -> io::Result<()> {
        match self.request()? {
            Head::Page { page, is_head_only } => self.answer(page, is_head_only)?,
            Head::Refused { refusal, is_head_only } => self.refuse(refusal, is_head_only)?,
            Head::Unfinished => {}
        }
        self.stream.shutdown(Shutdown::Write)?;
        self.begin_step(LEAVE);
        // Until the peer closes, too.
        loop {
            self.read(&mut [0; HEAD_MAX])?;
        }
    }

    fn begin_step(&mut self, longest: Duration) {
        self.deadline = Instant::now() + longest;
        let mut open = self.server.open();
        let own = open.iter_mut().filter(|(stream, _)| Arc::ptr_eq(stream, &self.stream));
        own.for_each(|(_, deadline)| *deadline = self.deadline);
    }

    /// What is left of the step.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }

    /// At least one byte.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(self.left()?)?;
            match (&*self.stream).read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                read => return read,
            }
        }
    }

    /// The whole head of a request, or what is wrong with it.
    fn request(&mut self) -> io::Result<Head> {
        let (mut head, mut bytes) = (Vec::new(), [0; HEAD_MAX]);
        loop {
            match self.read(&mut bytes[..HEAD_MAX - head.len()]) {
                Ok(len) => head.extend_from_slice(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::TimedOut && !head.is_empty() => {
                    return Ok(Head::Refused { refusal: RequestError::TooSlow, is_head_only: false });
                }
                Err(error) => return Err(error),
            }
            match read_head(&head, &self.server.pages) {
                Head::Unfinished => {}
                known => return Ok(known),
            }
        }
    }

    fn answer(&mut self, page: usize, is_head_only: bool) -> io::Result<()> {
        let pages = self.server.pages.clone();
        let Content { text, content_type, version } = pages.content(page);
        let is_followed = content_type == EVENT_STREAM && !is_head_only;
        let place = is_followed.then(|| pages.place());
        if matches!(place, Some(None)) {
            return self.refuse(RequestError::TooMany, false);
        }
        let length = if is_followed { String::new() } else { format!("Content-Length: {}\r\n", text.len()) };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{length}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        );
        self.send(&head, if is_head_only { &[] } else { &text })?;
        if is_followed { self.follow(page, version, &pages) } else { Ok(()) }
    }

    /// Sends every later text of a page, up to the last one.
    fn follow(&mut self, page: usize, mut version: u64, pages: &Pages) -> io::Result<()> {
        self.begin_step(FOLLOW);
        loop {
            match pages.news(version) {
                News::Newer => {
                    let content = pages.content(page);
                    version = content.version;
                    self.send("", &content.text)?;
                    self.begin_step(FOLLOW);
                }
                News::Over => return self.send(END, &[]),
                News::Nothing => {
                    let mut polled = [PollFd::new(&*self.stream, PollFlags::IN)];
                    match poll(&mut polled, Some(&NEWS_POLL)) {
                        Ok(0) | Err(Errno::INTR) => {}
                        // It has nothing more to say: whatever comes, it is gone.
                        _ => return Err(ErrorKind::UnexpectedEof.into()),
                    }
                }
            }
        }
    }

    fn refuse(&mut self, refusal: RequestError, is_head_only: bool) -> io::Result<()> {
        let allow = if refusal == RequestError::NoMethod { "Allow: GET, HEAD\r\n" } else { "" };
        let (status, text) = refusal.response(&self.server.pages);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            text.len()
        );
        self.send(&head, if is_head_only { &[] } else { text.as_bytes() })
    }

    fn send(&mut self, head: &str, text: &[u8]) -> io::Result<()> {
        self.begin_step(self.server.step_max);
        let mut written = 0;
        while written < head.len() + text.len() {
            self.stream.set_write_timeout(self.left()?)?;
            let left =
                [&head.as_bytes()[head.len().min(written)..], &text[written.saturating_sub(head.len())..]];
            match (&*self.stream).write_vectored(&left.map(IoSlice::new)) {
                Ok(len) => written += len,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A head is no longer: what browsers send takes a tenth of it.
const HEAD_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

/// What became of the bytes of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Head {
    /// There is more to come.
    Unfinished,
    /// The page of this number is asked for.
    Page { page: usize, is_head_only: bool },
    /// There is none.
    Refused { refusal: RequestError, is_head_only: bool },
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestError {
    /// These bytes are no request.
    NoRequest,
    /// It does not say which host it is for, or says it twice.
    NoHost,
    /// It is for a host of another name.
    OtherHost,
    /// Nothing lies there.
    NoPage,
    /// Pages can be read only.
    NoMethod,
    /// As many follow as may.
    TooMany,
    /// It did not come in time.
    TooSlow,
    /// It is longer, or has more header fields, than any that asks for a page.
    TooLong,
}

impl RequestError {
    /// The status line's number and words, and a text for who asked.
    fn response(self, pages: &Pages) -> (&'static str, String) {
        let (status, text) = match self {
            Self::NoRequest => ("400 Bad Request", "this is no HTTP request"),
            Self::NoHost => ("400 Bad Request", "the request must have one Host"),
            Self::NoPage => {
                let paths: Vec<_> = pages.paths().collect();
                return ("404 Not Found", format!("nothing is here; there are {}\n", listed(&paths)));
            }
            Self::NoMethod => ("405 Method Not Allowed", "pages can only be read: GET or HEAD"),
            Self::TooSlow => ("408 Request Timeout", "the request did not come in time"),
            Self::OtherHost => (
                "421 Misdirected Request",
                "this host answers to localhost and to the address where it listens, not to the name that was asked for",
            ),
            Self::TooLong => {
                let text = format!(
                    "the request is longer than {HEAD_MAX} bytes or has more than {HEADERS_MAX} header fields\n"
                );
                return ("431 Request Header Fields Too Large", text);
            }
            Self::TooMany => ("503 Service Unavailable", "as many browsers follow the run as may"),
        };
        (status, format!("{text}\n"))
    }
}

/// Reads what has come of a head.
fn read_head(bytes: &[u8], pages: &Pages) -> Head {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(bytes);
    let is_head_only = request.method == Some("HEAD");
    let refused = |refusal| Head::Refused { refusal, is_head_only };
    match parsed {
        Ok(Status::Partial) if bytes.len() < HEAD_MAX => Head::Unfinished,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => refused(RequestError::TooLong),
        Err(_) => refused(RequestError::NoRequest),
        Ok(Status::Complete(_)) => match (request.method, request.path) {
            (_, Some(target)) if let Err(refusal) = check_host(&request, target, pages) => refused(refusal),
            (Some("GET" | "HEAD"), Some(target)) => match path_of(target).and_then(|path| pages.find(path)) {
                Some(page) => Head::Page { page, is_head_only },
                None => refused(RequestError::NoPage),
            },
            _ => refused(RequestError::NoMethod),
        },
    }
}

/// Is the request for this host? What a target names counts in place of the header; before HTTP/1.1 neither is needed.
fn check_host(request: &httparse::Request<'_, '_>, target: &str, pages: &Pages) -> Result<(), RequestError> {
    let mut named = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("Host"));
    let host = match (named.next(), named.next()) {
        (None, _) if request.version == Some(0) => None,
        (Some(header), None) => Some(str::from_utf8(header.value).map_err(|_| RequestError::NoHost)?.trim()),
        _ => return Err(RequestError::NoHost),
    };
    let in_target =
        target.strip_prefix("http://").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    match in_target.or(host).is_none_or(|host| pages.are_of(host)) {
        true => Ok(()),
        false => Err(RequestError::OtherHost),
    }
}

/// The path of a target, which may have a query, and in front of the path the host, as who asks a proxy writes it.
fn path_of(target: &str) -> Option<&str> {
    let path = match target.strip_prefix("http://") {
        Some(rest) => &rest[rest.find('/')?..],
        None => target,
    };
    path.split(['?', '#']).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::http::pages::{FOLLOWERS_MAX, Hosts, text};
    use brunt_compat::front_end::Page;
    use brunt_plan::split_mix::output;

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// A server with this page.
    struct Served {
        pages: Arc<Pages>,
        address: std::net::SocketAddr,
    }

    impl Served {
        fn start(content_type: &'static str, body: &'static [u8], step_max: Duration) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let page = Page { path: Some("/metrics"), content_type };
            let texts = vec![text(move || body.into())];
            let pages = Arc::new(Pages::new(vec![page], texts, Hosts::of_test()));
            start(listener, pages.clone(), step_max).unwrap();
            Self { pages, address }
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

    /// Reads until this has come.
    fn expect(mut peer: &TcpStream, last: &[u8]) {
        let mut text = Vec::new();
        while !text.ends_with(last) {
            let mut byte = [0];
            peer.read_exact(&mut byte).unwrap();
            text.push(byte[0]);
        }
    }

    /// Who closes makes room for who asks at the same time.
    #[test]
    fn followers_that_close_are_not_counted() {
        let served = Served::start(EVENT_STREAM, b"first\n", STEP_MAX);
        let followers: Vec<TcpStream> = (0..FOLLOWERS_MAX).map(|_| served.request()).collect();
        followers.iter().for_each(|follower| expect(follower, b"first\n"));
        drop(followers);
        expect(&served.request(), b"first\n");
    }

    #[test]
    fn the_last_page_is_waited_for() {
        let served = Served::start(EVENT_STREAM, b"first\n", STEP_MAX);
        let followers: Vec<TcpStream> = (0..FOLLOWERS_MAX).map(|_| served.request()).collect();
        followers.iter().for_each(|follower| expect(follower, b"first\n"));
        assert!(text_of(&served.request()).starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
        served.pages.put(vec![text(|| Arc::from(*b"last\n"))]);
        served.pages.finish();
        followers.iter().for_each(|follower| assert_eq!(text_of(follower), format!("last\n{END}")));
    }

    fn pages(paths: &[Option<&'static str>]) -> Pages {
        let page = |path: &Option<&'static str>| Page { path: *path, content_type: "text/plain" };
        let texts = paths.iter().map(|_| text(Arc::default)).collect();
        Pages::new(paths.iter().map(page).collect(), texts, Hosts::of_test())
    }

    fn read(bytes: &[u8]) -> Head {
        read_head(bytes, &pages(&[Some("/metrics"), Some("/summary.json")]))
    }

    #[test]
    fn request_heads_are_parsed() {
        let table = r"
GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n | Page { page: 0, is_head_only: false }
GET /metrics HTTP/1.0\r\n\r\n | Page { page: 0, is_head_only: false }
GET /metrics HTTP/1.1\nHost: 127.0.0.1:9090\n\n | Page { page: 0, is_head_only: false }
GET /summary.json?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n | Page { page: 1, is_head_only: false }
GET http://127.0.0.1:9090/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n | Page { page: 0, is_head_only: false }
GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /more | Page { page: 0, is_head_only: false }
HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n | Page { page: 0, is_head_only: true }
HEAD /other HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoPage, is_head_only: true }
 | Unfinished
G | Unfinished
GET /metrics HTTP/1.1\r\nHost: localhost\r\n | Unfinished
GET / HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoPage, is_head_only: false }
GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoPage, is_head_only: false }
GET /METRICS HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoPage, is_head_only: false }
GET /../metrics HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoPage, is_head_only: false }
GET http://127.0.0.1 HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoPage, is_head_only: false }
POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc | Refused { refusal: NoMethod, is_head_only: false }
OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: NoMethod, is_head_only: false }
GET /metrics HTTP/1.1\r\n\r\n | Refused { refusal: NoHost, is_head_only: false }
GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n | Refused { refusal: NoHost, is_head_only: false }
GET /metrics HTTP/1.1\r\nHost: evil.example:9090\r\n\r\n | Refused { refusal: OtherHost, is_head_only: false }
GET /other HTTP/1.0\r\nHost: evil.example\r\n\r\n | Refused { refusal: OtherHost, is_head_only: false }
GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n | Refused { refusal: OtherHost, is_head_only: false }
get stats\r\n | Refused { refusal: NoRequest, is_head_only: false }
GET /metrics\r\n\r\n | Refused { refusal: NoRequest, is_head_only: false }
CONTROLS | Refused { refusal: NoRequest, is_head_only: false }
GET /metrics HTTP/1.1\r\nno header\r\n\r\n | Refused { refusal: NoRequest, is_head_only: false }
GET /metrics HTTP/1.1\r\nLONG | Refused { refusal: TooLong, is_head_only: false }
GET /metrics HTTP/1.1\r\nMANY\r\n | Refused { refusal: TooLong, is_head_only: false }";
        let (long, many) = (format!("A: {}", "a".repeat(HEAD_MAX)), "A: b\r\n".repeat(HEADERS_MAX + 1));
        for [head, expected] in cases(table) {
            let whole = head
                .replace("LONG", &long)
                .replace("MANY", &many)
                .replace("CONTROLS", "\u{16}\u{3}\u{1}\u{2}");
            assert_eq!(format!("{:?}", read(whole.as_bytes())), expected, "{head:?}");
        }
    }

    #[test]
    fn both_limits_of_a_head_are_named() {
        let (_, text) = RequestError::TooLong.response(&pages(&[]));
        assert_eq!(text, "the request is longer than 8192 bytes or has more than 64 header fields\n");
    }

    /// Wherever a request is cut, nothing is decided before its last byte.
    #[test]
    fn fragmented_heads_are_parsed() {
        let whole = b"GET /summary.json HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), Head::Unfinished, "{len}");
        }
    }

    #[test]
    fn a_page_without_path_matches_all_paths() {
        let pages = pages(&[Some("/metrics"), None]);
        for (target, page) in
            [("/metrics", 0), ("/", 1), ("/metrics/", 1), ("/a?b", 1), ("http://localhost/metrics", 0)]
        {
            let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!(
                read_head(head.as_bytes(), &pages),
                Head::Page { page, is_head_only: false },
                "{target}"
            );
        }
    }

    /// Arbitrary bytes: what is decided once stays, whatever follows, and at the longest head everything is.
    #[test]
    fn decisions_are_final() {
        let whole =
            b"HEAD http://a:1/metrics?b#c HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        for number in 0..300 {
            let below = |draw, bound: usize| (output(number, draw) % bound as u64) as usize;
            let mut bytes = whole.to_vec();
            for change in 0..=below(0, 4) as u64 {
                let [at, to] = [1, 2].map(|draw| below(4 * change + draw, bytes.len()));
                match below(4 * change + 3, 4) {
                    0 => bytes[at] = to as u8 * 3,
                    1 => bytes[at] = b"\r\n\0 :/\xff"[to % 7],
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[to]),
                }
            }
            let heads: Vec<Head> = (0..=bytes.len()).map(|len| read(&bytes[..len])).collect();
            let is_final = |pair: &[Head]| pair[0] == Head::Unfinished || pair[0] == pair[1];
            assert!(heads.windows(2).all(is_final), "{number}: {}", bytes.escape_ascii());
            bytes.resize(HEAD_MAX, b'a');
            assert_ne!(read(&bytes), Head::Unfinished, "{number}: {}", bytes.escape_ascii());
        }
    }
}
