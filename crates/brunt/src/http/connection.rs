//! One connection: a request comes in, an answer goes out, and it is closed; one that follows a page gets every later text of it, too.
//!
//! Not the sockets together ([`super::server`]). One request each: a client that scrapes once a second loses nothing by it, and none keeps a
//! connection. Invariants: nothing here blocks; each step has a deadline that the peer cannot put off; what comes in is bounded by
//! [`HEAD_MAX`], what goes out is shared with all who request it.

use super::pages::{EVENT_STREAM, News, Pages};
use super::request::{HEAD_MAX, Head, RequestError, read};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One who follows may have nothing to do for as long as a run connects and stores its data set.
const FOLLOW: Duration = Duration::from_secs(365 * 24 * 3_600);
/// For the peer to close its end when it has the answer. Who closes with bytes unread resets the connection, and the answer may be lost.
const LEAVE: Duration = Duration::from_secs(1);

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub stream: TcpStream,
    step: Step,
    /// When the step ends, whatever the peer does.
    pub deadline: Instant,
    /// For the request to come, and as long again for the answer to go.
    step_max: Duration,
}

#[derive(Debug)]
enum Step {
    /// So much of the request's head is there.
    Read(Vec<u8>),
    /// This goes out, and then the page is followed from this version on.
    Write { head: String, text: Arc<[u8]>, written: usize, followed: Option<Followed> },
    /// Waits for a text that is newer.
    Follow(Followed),
    /// Reads and discards until the peer closes too.
    Leave,
}

/// A page, and the version that the client has of it.
#[derive(Clone, Copy, Debug)]
struct Followed {
    page: usize,
    version: u64,
}

impl Connection {
    /// Of a client that was accepted. `step_max` is for its request to come, and as long again for the answer to go.
    pub(super) fn new(stream: TcpStream, step_max: Duration) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, step: Step::Read(Vec::new()), deadline: Instant::now() + step_max, step_max })
    }

    /// Is something to be written, rather than read?
    pub(super) fn is_writing(&self) -> bool {
        matches!(self.step, Step::Write { .. })
    }

    /// Does it follow a page?
    pub(super) fn is_following(&self) -> bool {
        matches!(self.step, Step::Follow(_) | Step::Write { followed: Some(_), .. })
    }

    /// Goes on as far as that is possible now. Is it still open?
    pub(super) fn advance(&mut self, pages: &Pages, may_follow: bool) -> bool {
        loop {
            match self.take_step(pages, may_follow) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
            }
        }
    }

    /// Is there more to do at once?
    fn take_step(&mut self, pages: &Pages, may_follow: bool) -> io::Result<bool> {
        if Instant::now() >= self.deadline {
            return match &self.step {
                Step::Read(head) if !head.is_empty() => self.refuse(RequestError::TooSlow, pages, false),
                _ => Err(ErrorKind::TimedOut.into()),
            };
        }
        match &mut self.step {
            Step::Read(head) => {
                let mut bytes = [0; HEAD_MAX];
                let len = at_least_one(self.stream.read(&mut bytes[..HEAD_MAX - head.len()])?)?;
                head.extend_from_slice(&bytes[..len]);
                match read(head, pages) {
                    Head::Unfinished => Ok(false),
                    Head::Page { page, is_head_only } => self.answer(page, is_head_only, pages, may_follow),
                    Head::Refused { refusal, is_head_only } => self.refuse(refusal, pages, is_head_only),
                }
            }
            Step::Write { head, text, written, followed } => {
                let left = [
                    &head.as_bytes()[head.len().min(*written)..],
                    &text[written.saturating_sub(head.len())..],
                ];
                *written += self.stream.write_vectored(&left.map(IoSlice::new))?;
                if *written < head.len() + text.len() {
                    return Ok(false);
                }
                let Some(followed) = *followed else { return self.leave() };
                (self.step, self.deadline) = (Step::Follow(followed), Instant::now() + FOLLOW);
                Ok(true)
            }
            Step::Follow(Followed { page, version }) => {
                let page = *page;
                match pages.news(*version) {
                    News::Newer => {
                        let content = pages.content(page);
                        let followed = Some(Followed { page, version: content.version });
                        Ok(self.send(String::new(), content.text, followed))
                    }
                    News::Over => self.leave(),
                    News::Nothing => {
                        // It has nothing more to say: whatever comes, it is gone.
                        let _ = self.stream.read(&mut [0; 1])?;
                        Err(ErrorKind::UnexpectedEof.into())
                    }
                }
            }
            Step::Leave => at_least_one(self.stream.read(&mut [0; HEAD_MAX])?).map(|_| false),
        }
    }

    fn answer(
        &mut self,
        page: usize,
        is_head_only: bool,
        pages: &Pages,
        may_follow: bool,
    ) -> io::Result<bool> {
        let content = pages.content(page);
        let (text, content_type) = (content.text, content.content_type);
        let is_followed = content_type == EVENT_STREAM && !is_head_only;
        if is_followed && !may_follow {
            return self.refuse(RequestError::TooMany, pages, false);
        }
        let length = if is_followed { String::new() } else { format!("Content-Length: {}\r\n", text.len()) };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{length}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        );
        let followed = is_followed.then_some(Followed { page, version: content.version });
        Ok(self.send(head, if is_head_only { Arc::default() } else { text }, followed))
    }

    fn refuse(&mut self, refusal: RequestError, pages: &Pages, is_head_only: bool) -> io::Result<bool> {
        let allow = if refusal == RequestError::NoMethod { "Allow: GET, HEAD\r\n" } else { "" };
        let (status, text) = refusal.response(pages);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            text.len()
        );
        Ok(self.send(head, if is_head_only { Arc::default() } else { text.into_bytes().into() }, None))
    }

    fn send(&mut self, head: String, text: Arc<[u8]>, followed: Option<Followed>) -> bool {
        self.step = Step::Write { head, text, written: 0, followed };
        self.deadline = Instant::now() + self.step_max;
        true
    }

    fn leave(&mut self) -> io::Result<bool> {
        self.stream.shutdown(Shutdown::Write)?;
        (self.step, self.deadline) = (Step::Leave, Instant::now() + LEAVE);
        Ok(true)
    }
}

/// A peer that sends nothing more has closed its end.
fn at_least_one(len: usize) -> io::Result<usize> {
    if len == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(len) }
}
