//! A blocking connection, for polls and commands beside the load.
//!
//! Invariant: no call blocks beyond the time limit that was set last, however many system calls it takes; then it fails with
//! `TimedOut`, after one read of what has come by then: a process that was stopped finds its reply there.

use super::socket::{self, Peer};
use crate::clock::Clock;
use crate::transport::{Address, Endpoint};
use brunt_plan::outcome::ReplyKind;
use brunt_proto::reply_buffer::ReplyError;
use brunt_proto::resp::RespCodec;
use brunt_proto::resp::reply::WholeReply;
use brunt_proto::{Codec, Event};
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;
use thiserror::Error;

/// A blocking connection, plain or over TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(DeadlineSocket),
    Tls(Box<StreamOwned<ClientConnection, DeadlineSocket>>),
}

/// A way for bytes in both directions.
trait Channel: Read + Write {}

impl<T: Read + Write> Channel for T {}

impl Stream {
    /// Connects to the first address of a server that accepts, within this time. A TLS handshake is made with the first write.
    pub(crate) fn connect(endpoint: &Endpoint, clock: Clock, limit: Duration) -> io::Result<Self> {
        let deadline_ns = clock.now_ns() + limit.as_nanos() as u64;
        let mut last = ErrorKind::AddrNotAvailable.into();
        for address in &endpoint.addresses {
            match DeadlineSocket::connect(address, clock, limit, deadline_ns) {
                Ok(socket) => match &endpoint.tls {
                    None => return Ok(Self::Plain(socket)),
                    Some(client) => {
                        let connection = client.connection().map_err(io::Error::other)?;
                        return Ok(Self::Tls(Box::new(StreamOwned::new(connection, socket))));
                    }
                },
                Err(error) => last = error,
            }
        }
        Err(name_timeout(last, limit))
    }

    /// Makes the connection setup of the load's connections.
    pub(crate) fn set_up(&mut self, codec: &RespCodec) -> Result<(), QueryError> {
        let setup = codec.connection_setup();
        if setup.replies == 0 {
            return Ok(());
        }
        let (mut decoder, mut received, mut replies) = (codec.clone(), Vec::new(), 0);
        self.exchange(setup.bytes, |bytes| {
            received.extend_from_slice(bytes);
            let mut used = 0;
            while replies < setup.replies {
                let (step, event) = decoder.decode(&received[used..]);
                match event {
                    None => break,
                    Some(Event::End { reply: ReplyKind::Ok, .. }) => replies += 1,
                    Some(Event::End { reply, text, .. }) => {
                        return Err(QueryError::Declined(codec.setup_error(replies, reply, text)));
                    }
                    Some(Event::Found(_) | Event::Bad(_)) => {
                        return Err(QueryError::Invalid("invalid reply to connection setup".to_owned()));
                    }
                    Some(_) => {}
                }
                used += step;
            }
            received.drain(..used);
            Ok(replies == setup.replies)
        })
    }

    /// Writes a request and reads its reply; `take` returns whether the reply is complete.
    pub(crate) fn exchange(
        &mut self,
        request: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<bool, QueryError>,
    ) -> Result<(), QueryError> {
        let limit = self.socket().limit;
        let channel: &mut dyn Channel = match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream,
        };
        let lost = |error| QueryError::Lost(name_timeout(error, limit));
        channel.write_all(request).and_then(|()| channel.flush()).map_err(lost)?;
        let mut bytes = [0; 16 << 10];
        loop {
            let len = match channel.read(&mut bytes) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "connection closed").into()),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(lost(error)),
            };
            if take(&bytes[..len])? {
                return Ok(());
            }
        }
    }

    /// As `exchange`, of a command of Redis.
    pub(crate) fn query(&mut self, request: &[u8]) -> Result<WholeReply, QueryError> {
        let mut reply = WholeReply::default();
        self.exchange(request, |bytes| Ok(reply.take(bytes)?))?;
        Ok(reply)
    }

    /// Begins the time limit of reads and writes again.
    pub(crate) fn restart(&mut self) {
        let socket = self.socket();
        socket.has_read_late = false;
        socket.deadline_ns = socket.clock.now_ns() + socket.limit.as_nanos() as u64;
    }

    fn socket(&mut self) -> &mut DeadlineSocket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.sock,
        }
    }
}

/// Why a query failed.
#[derive(Debug, Error)]
pub(crate) enum QueryError {
    /// The connection was lost, or timed out.
    #[error("{0}")]
    Lost(#[from] io::Error),
    /// The server declined it: its message, for a user.
    #[error("{0}")]
    Declined(String),
    /// The reply is another one than such a query has.
    #[error("{0}")]
    Invalid(String),
}

impl From<ReplyError> for QueryError {
    fn from(error: ReplyError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Time limit of a query, connecting included.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(1);

/// Gives an error its text if it is a timeout.
fn name_timeout(error: io::Error, limit: Duration) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, format!("no reply within {} s", limit.as_secs()))
        }
        _ => error,
    }
}

/// A socket whose calls block until the deadline at most: a TLS handshake, or a record that comes byte by byte,
/// takes many calls.
#[derive(Debug)]
pub(crate) struct DeadlineSocket {
    socket: Socket,
    clock: Clock,
    limit: Duration,
    deadline_ns: u64,
    /// It has read once after the deadline; a server that sends byte by byte gets no further.
    has_read_late: bool,
}

impl DeadlineSocket {
    fn connect(address: &Address, clock: Clock, limit: Duration, deadline_ns: u64) -> io::Result<Self> {
        let to = address.to_socket_address()?;
        let socket = Socket::new(to.domain(), Type::STREAM, None)?;
        let socket = Self { socket, clock, limit, deadline_ns, has_read_late: false };
        socket.socket.connect_timeout(&to, socket.left()?)?;
        if to.domain() != Domain::UNIX {
            // Without a listener, an attempt to a local port may connect to itself.
            if socket::peer(&socket.socket) == Peer::Itself {
                return Err(ErrorKind::ConnectionRefused.into());
            }
            socket.socket.set_tcp_nodelay(true)?;
        }
        Ok(socket)
    }

    /// Time left; an error if it is over.
    fn left(&self) -> io::Result<Duration> {
        match self.deadline_ns.saturating_sub(self.clock.now_ns()) {
            0 => Err(ErrorKind::TimedOut.into()),
            left_ns => Ok(Duration::from_nanos(left_ns)),
        }
    }

    /// Reads without waiting.
    fn read_now(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_nonblocking(true)?;
        let result = self.socket.read(bytes);
        self.socket.set_nonblocking(false)?;
        result.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl Read for DeadlineSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = match self.left() {
            Err(_) if !std::mem::replace(&mut self.has_read_late, true) => return self.read_now(bytes),
            left => left?,
        };
        self.socket.set_read_timeout(Some(left))?;
        self.socket.read(bytes)
    }
}

impl Write for DeadlineSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    /// The deadline passed between two calls, as for a process that was stopped there.
    #[test]
    fn what_came_before_a_late_read_is_read_once() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (socket, clock) = (Socket::from(OwnedFd::from(near)), Clock::start());
        let mut socket =
            DeadlineSocket { socket, clock, limit: Duration::ZERO, deadline_ns: 0, has_read_late: false };
        let mut bytes = [0; 2];
        far.write_all(b"reply").unwrap();
        assert_eq!(socket.read(&mut bytes).unwrap(), 2);
        assert_eq!(socket.read(&mut bytes).unwrap_err().kind(), ErrorKind::TimedOut);
        let mut stream = Stream::Plain(socket);
        stream.restart();
        let Stream::Plain(socket) = &mut stream else { unreachable!("as made") };
        assert_eq!(socket.read(&mut [0; 9]).unwrap(), 3);
        // Nothing is there: it does not wait.
        stream.restart();
        let Stream::Plain(socket) = &mut stream else { unreachable!("as made") };
        assert_eq!(socket.read(&mut bytes).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
