//! The loop that serves: one thread, one `poll` over the listening socket and a bounded number of connections.
//!
//! Not the protocol ([`request`](super::request)) and not the pages. Invariants: at most [`CONNECTIONS_MAX`] connections are open, and a new one takes the place of
//! the one that is nearest to its deadline; without a connection nothing happens at all.

use super::connection::{Connection, Next};
use super::pages::Pages;
use brunt_engine::system_error::start_thread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections at once: fewer than the files that [`crate::limits`] leaves to the process.
const CONNECTIONS_MAX: usize = 16;
/// Pause before the next accept after the system had no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Workers come first.
const NICE: i32 = 10;

/// Serves on a thread that ends with the process.
pub(super) fn start(listener: TcpListener, board: Arc<Pages>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut server = Server { listener, connections: Vec::new(), accepts_from: Instant::now(), board };
    start_thread("brunt-http", move || {
        // Where it is refused, it only comes no later than others.
        let _ = setpriority_process(Some(gettid()), NICE);
        loop {
            server.turn();
        }
    })?;
    Ok(())
}

struct Server {
    listener: TcpListener,
    connections: Vec<Connection>,
    accepts_from: Instant,
    board: Arc<Pages>,
}

impl Server {
    /// Waits, and does what there is to do.
    fn turn(&mut self) {
        let (can_accept, has_news, ready) = self.wait();
        let now = Instant::now();
        let board = &self.board;
        let mut ready = ready.into_iter();
        self.connections.retain_mut(|connection| {
            let is_ready = ready.next().unwrap_or(false);
            let next = if is_ready {
                connection.advance(now, board)
            } else if now >= connection.deadline {
                connection.expire(now, board)
            } else {
                Next::Stay
            };
            let next = if next == Next::Stay && has_news { connection.send_news(now, board) } else { next };
            next == Next::Stay
        });
        if can_accept {
            self.accept(now);
        }
    }

    /// Is there a new connection, was something put up, and which connections have events?
    fn wait(&self) -> (bool, bool, Vec<bool>) {
        let now = Instant::now();
        let accepts = if now >= self.accepts_from { PollFlags::IN } else { PollFlags::empty() };
        let news = self.board.news();
        let mut descriptors = vec![PollFd::new(&self.listener, accepts), PollFd::new(&news, PollFlags::IN)];
        for connection in &self.connections {
            let (stream, flags) = connection.wants();
            descriptors.push(PollFd::new(stream, flags));
        }
        let pause = accepts.is_empty().then_some(self.accepts_from);
        let wakes = self.connections.iter().map(|connection| connection.deadline).chain(pause).min();
        let timeout = wakes.map(|at| timespec(at.saturating_duration_since(now)));
        // A signal is handled elsewhere, and memory for so few descriptors is there.
        let _ = poll(&mut descriptors, timeout.as_ref());
        let mut happened = descriptors.iter().map(|descriptor| !descriptor.revents().is_empty());
        let (can_accept, has_news) = (happened.next().unwrap_or(false), happened.next().unwrap_or(false));
        if has_news {
            self.board.read_news();
        }
        (can_accept, has_news, happened.collect())
    }

    fn accept(&mut self, now: Instant) {
        match self.listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_err() {
                    return;
                }
                if self.connections.len() == CONNECTIONS_MAX {
                    let nearest = (0..CONNECTIONS_MAX).min_by_key(|index| self.connections[*index].deadline);
                    nearest.map(|index| self.connections.swap_remove(index));
                }
                self.connections.push(Connection::new(stream, now));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            Err(_) => self.accepts_from = now + PAUSE,
        }
    }
}

/// Rounded up, so that what it is waited for has come.
fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
