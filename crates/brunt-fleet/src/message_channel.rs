//! The way between a controller and an agent: messages over TCP, in the clear or by TLS.
//!
//! Its owner waits on it; it has no thread. Invariants: nothing here blocks
//! longer than its caller allows; a channel on which neither a message nor [`PROGRESS_BYTES`] of one came for a while
//! ([`AGENT_SILENCE_MAX`], [`CONTROLLER_SILENCE_MAX`]) is lost, for each side sends a message every [`HEARTBEAT`].

use crate::agent_handshake::{ZEROMQ_BYTES, is_zeromq};
use crate::frame::{self, FRAME_BYTES_MAX, FrameReader};
use crate::message::{decode, encode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Interval of heartbeats on a channel without other messages.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(500);
/// An agent without a heartbeat for this time is lost. With the time to notice it stays under five seconds.
pub(crate) const AGENT_SILENCE_MAX: Duration = Duration::from_secs(4);
/// A controller without a heartbeat for this time is lost. One that dies is seen at once; one whose host is busy with starting workers beside many agents is given time.
pub(crate) const CONTROLLER_SILENCE_MAX: Duration = Duration::from_secs(10);
/// What waits to be sent; more than this and the other side does not read.
const QUEUED_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;
/// So much of a long message counts as a sign of life, as a whole message does: 16 KiB/s keep a channel, a byte now and then does not.
const PROGRESS_BYTES: usize = 64 << 10;
/// Time limit of connecting to one address.
const CONNECT_MAX: Duration = Duration::from_secs(4);
/// What is read at a time.
const READ_BYTES: usize = 64 << 10;

/// A connection, as bytes.
pub(crate) struct Wire {
    socket: TcpStream,
    tls: Option<Box<Connection>>,
}

impl Wire {
    /// Over a connected socket; the handshake happens with the first bytes.
    pub(crate) fn new(socket: TcpStream, tls: Option<Connection>) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, tls: tls.map(Box::new) })
    }

    /// That there is something to read, or room for what is to be written.
    fn awaited(&self, wants_to_write: bool) -> PollFd<'_> {
        let writes = wants_to_write || self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        PollFd::new(&self.socket, if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN })
    }

    fn wait(&self, wants_to_write: bool, wait: Duration) -> io::Result<()> {
        wait_for_any(&mut [self.awaited(wants_to_write)], wait)
    }

    /// Reads what there is; 0 is the end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&self.socket).read(into) };
        // TLS would call it malformed.
        let mut begin = [0; ZEROMQ_BYTES];
        if tls.is_handshaking() && self.socket.peek(&mut begin).is_ok_and(|len| is_zeromq(&begin[..len])) {
            return Err(ErrorKind::Unsupported.into());
        }
        // The peer answers only after the handshake has begun.
        Self::write_records(tls, &self.socket)?;
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                ended => return ended,
            }
            if tls.read_tls(&mut &self.socket)? == 0 {
                return Ok(0);
            }
            let processed = tls.process_new_packets();
            // The alert, which says why, is sent before the error is returned.
            let sent = Self::write_records(tls, &self.socket);
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            sent?;
        }
    }

    /// Writes as much as there is room for.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&self.socket).write(bytes) };
        Self::write_records(tls, &self.socket)?;
        let taken = tls.writer().write(bytes)?;
        Self::write_records(tls, &self.socket)?;
        if taken == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn write_records(tls: &mut Connection, mut socket: &TcpStream) -> io::Result<()> {
        while tls.wants_write() {
            match tls.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads all of these bytes by the deadline. A ZeroMQ peer sends fewer when it speaks first.
    pub(crate) fn read_exact(&mut self, into: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read(&mut into[filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => filled += len,
                Err(error) if would_block(&error) => self.wait(false, time_left(deadline)?)?,
                Err(error) => return Err(error),
            }
            if is_zeromq(&into[..filled]) {
                return Err(ErrorKind::Unsupported.into());
            }
        }
        Ok(())
    }

    /// Reads what has come of a record of fixed length, which is returned when all of it has. The error follows the peer's name.
    pub(crate) fn read_record<const LEN: usize>(
        &mut self,
        received: &mut Vec<u8>,
    ) -> Result<Option<[u8; LEN]>, String> {
        let mut rest = [0; LEN];
        let read = self.read(&mut rest[received.len()..]);
        match read {
            Ok(0) => return Err(connection_error(&ErrorKind::UnexpectedEof.into())),
            Ok(len) => {
                let begin = received.len();
                received.extend_from_slice(&rest[begin..begin + len]);
            }
            Err(error) if would_block(&error) => return Ok(None),
            Err(error) => return Err(connection_error(&error)),
        }
        if is_zeromq(received) {
            return Err(connection_error(&ErrorKind::Unsupported.into()));
        }
        let record = received.as_slice().try_into().ok();
        if record.is_some() {
            received.clear();
        }
        Ok(record)
    }

    /// The socket, to wait for what comes on it.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Writes all of these bytes, in good time.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write()) {
            match self.write(bytes) {
                Ok(len) => bytes = &bytes[len..],
                Err(error) if would_block(&error) => self.wait(true, time_left(deadline)?)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Connects to the first address of a host that accepts. An IPv6 address may be in brackets, which are no part of it.
pub(crate) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (host.trim_matches(['[', ']']), port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Waits for one of these events, at most so long. A signal may end the wait, which does no harm.
pub(crate) fn wait_for_any(sockets: &mut [PollFd<'_>], wait: Duration) -> io::Result<()> {
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    match poll(sockets, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a socket may have something to read, at most so long.
pub(crate) fn wait_for_bytes(socket: &impl AsFd, wait: Duration) {
    // What is wrong with the socket is seen when it is read.
    let _ = wait_for_any(&mut [PollFd::new(socket, PollFlags::IN)], wait);
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Messages over a wire.
pub(crate) struct MessageChannel {
    wire: Wire,
    incoming: FrameReader,
    outgoing: Vec<u8>,
    /// When the other side last gave a sign of life.
    last_received: Instant,
    /// What has come since.
    bytes_since: usize,
    last_sent: Instant,
    silence_max: Duration,
    /// All that had come when it was last read was taken.
    is_drained: bool,
}

impl MessageChannel {
    /// Over a wire on which both sides have been let in.
    pub(crate) fn new(wire: Wire, silence_max: Duration) -> Self {
        let now = Instant::now();
        Self {
            wire,
            incoming: FrameReader::new(FRAME_BYTES_MAX),
            outgoing: Vec::new(),
            last_received: now,
            bytes_since: 0,
            last_sent: now,
            silence_max,
            is_drained: true,
        }
    }

    /// Longer messages are refused from now on.
    pub(crate) fn limit_messages(&mut self, bytes_max: usize) {
        self.incoming.bytes_max = bytes_max;
    }

    /// Sends this as soon as there is room. An error is why the connection is lost, for a user.
    pub(crate) fn send_message<M: Serialize>(&mut self, message: &M) -> Result<(), String> {
        frame::push(&mut self.outgoing, &encode(message)?)?;
        self.last_sent = Instant::now();
        self.flush()?;
        match self.outgoing.len() <= QUEUED_BYTES_MAX {
            true => Ok(()),
            false => Err("does not read its messages".to_owned()),
        }
    }

    /// Sends a heartbeat if nothing was sent for a while.
    pub(crate) fn send_heartbeat<M: Serialize>(&mut self, alive: &M) -> Result<(), String> {
        if self.last_sent.elapsed() >= HEARTBEAT { self.send_message(alive) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), String> {
        let mut sent = 0;
        let ended = loop {
            if sent == self.outgoing.len() {
                break Ok(());
            }
            match self.wire.write(&self.outgoing[sent..]) {
                Ok(len) => sent += len,
                Err(error) if would_block(&error) => break Ok(()),
                Err(error) => break Err(connection_error(&error)),
            }
        };
        self.outgoing.drain(..sent);
        ended
    }

    /// The next message, awaited for at most `wait`. An error is why the connection is lost, for a user.
    pub(crate) fn next_message<M: DeserializeOwned>(&mut self, wait: Duration) -> Result<Option<M>, String> {
        let until = Instant::now() + wait;
        loop {
            if let Some(frame) = self.incoming.take()? {
                (self.last_received, self.bytes_since) = (Instant::now(), 0);
                return decode(frame).map(Some);
            }
            let mut bytes = [0; READ_BYTES];
            match self.wire.read(&mut bytes) {
                Ok(0) => return Err("closed the connection".to_owned()),
                Ok(len) => {
                    self.is_drained = false;
                    self.incoming.push(&bytes[..len]);
                    self.bytes_since += len;
                    if self.bytes_since >= PROGRESS_BYTES {
                        (self.last_received, self.bytes_since) = (Instant::now(), 0);
                    }
                    if Instant::now() < until || self.incoming.has_frame() {
                        continue;
                    }
                }
                Err(error) if would_block(&error) => self.is_drained = true,
                Err(error) => return Err(connection_error(&error)),
            }
            // Behind what has come: a peer that has said all may be gone.
            self.flush()?;
            self.check_silence()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.wire.wait(!self.outgoing.is_empty(), left).map_err(|error| connection_error(&error))?;
        }
    }

    /// Was there a sign of life of late? An error is why the connection is lost, for a user.
    pub(crate) fn check_silence(&self) -> Result<(), String> {
        match self.last_received.elapsed() < self.silence_max {
            true => Ok(()),
            false => Err(format!("sent no heartbeat for {} s", self.silence_max.as_secs())),
        }
    }

    /// The socket, to wait for what comes on it.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.wire.socket()
    }

    /// What to wait for; `None` if there is something to take already.
    pub(crate) fn awaited(&self) -> Option<PollFd<'_>> {
        self.is_drained.then(|| self.wire.awaited(!self.outgoing.is_empty()))
    }

    /// Sends what is still to be sent, in good time.
    pub(crate) fn drain(&mut self, deadline: Instant) {
        let outgoing = std::mem::take(&mut self.outgoing);
        // A lost peer needs no message.
        let _ = self.wire.write_all(&outgoing, deadline);
    }
}

/// What became of a connection, after "agent NAME".
pub(crate) fn connection_error(error: &io::Error) -> String {
    if let Some(why) = error.get_ref().and_then(|inner| inner.downcast_ref()).and_then(tls_mismatch) {
        return why.to_owned();
    }
    match error.kind() {
        ErrorKind::UnexpectedEof => "closed the connection".to_owned(),
        ErrorKind::TimedOut => "did not answer in time".to_owned(),
        ErrorKind::Unsupported => {
            "speaks ZeroMQ, as mutilate does: agents of brunt work with brunt alone".to_owned()
        }
        _ => format!("lost its connection: {error}"),
    }
}

/// What the two sides do not agree on.
fn tls_mismatch(error: &rustls::Error) -> Option<&'static str> {
    use rustls::AlertDescription::{BadCertificate, CertificateUnknown, DecryptError, UnknownCA};
    match error {
        rustls::Error::InvalidMessage(_) => Some("does not use TLS: start it with --auth"),
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::AlertReceived(BadCertificate | CertificateUnknown | DecryptError | UnknownCA) => {
            Some("has another --auth folder")
        }
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// A link, and the other end of its connection.
    pub(crate) fn pair() -> (MessageChannel, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, _) = listener.accept().unwrap();
        (MessageChannel::new(Wire::new(near, None).unwrap(), AGENT_SILENCE_MAX), far)
    }

    #[test]
    fn messages_survive_any_fragmentation() {
        let (mut link, mut far) = pair();
        let mut frames = Vec::new();
        frame::push(&mut frames, &encode(&7_u32).unwrap()).unwrap();
        frame::push(&mut frames, &encode(&8_u32).unwrap()).unwrap();
        far.write_all(&frames[..6]).unwrap();
        assert_eq!(link.next_message::<u32>(Duration::from_secs(5)), Ok(Some(7)));
        assert_eq!(link.next_message::<u32>(Duration::from_millis(1)), Ok(None));
        far.write_all(&frames[6..]).unwrap();
        assert_eq!(link.next_message::<u32>(Duration::from_secs(5)), Ok(Some(8)));
        drop(far);
        assert_eq!(link.next_message::<u32>(Duration::from_secs(5)), Err("closed the connection".to_owned()));
    }

    /// A message that arrives byte by byte is silence, however often a byte comes.
    #[test]
    fn trickling_peers_are_lost() {
        let (link, mut far) = pair();
        let silence_max = Duration::from_millis(300);
        let mut link = MessageChannel { silence_max, ..link };
        far.write_all(&(FRAME_BYTES_MAX as u32).to_le_bytes()).unwrap();
        let (since, mut lost) = (Instant::now(), None);
        while lost.is_none() && since.elapsed() < silence_max * 20 {
            let _ = far.write_all(b"x");
            lost = link.next_message::<u32>(Duration::from_millis(20)).err();
        }
        assert_eq!(lost.as_deref(), Some("sent no heartbeat for 0 s"));
        // One that comes fast enough is awaited.
        let (link, mut far) = pair();
        let mut link = MessageChannel { silence_max, ..link };
        let mut frame = Vec::new();
        frame::push(&mut frame, &encode(&vec![5_u8; 1 << 20]).unwrap()).unwrap();
        let since = Instant::now();
        let message = frame.chunks(PROGRESS_BYTES).find_map(|chunk| {
            far.write_all(chunk).unwrap();
            link.next_message::<Vec<u8>>(Duration::from_millis(40)).unwrap()
        });
        assert_eq!(message.map(|message| message.len()), Some(1 << 20));
        assert!(since.elapsed() > silence_max, "{:?}", since.elapsed());
    }

    /// What finds no room at once goes out later, whole.
    #[test]
    fn unsent_bytes_are_queued() {
        let (mut link, mut far) = pair();
        let message = vec![5_u8; 16 << 20];
        link.send_message(&message).unwrap();
        let reader = std::thread::spawn(move || {
            let mut reader = FrameReader::new(FRAME_BYTES_MAX);
            let mut bytes = vec![0; 1 << 20];
            loop {
                let len = far.read(&mut bytes).unwrap();
                reader.push(&bytes[..len]);
                if let Some(frame) = reader.take().unwrap() {
                    return decode::<Vec<u8>>(frame).unwrap();
                }
            }
        });
        while !link.outgoing.is_empty() {
            let _ = link.next_message::<u32>(Duration::from_millis(5));
        }
        assert_eq!(reader.join().unwrap(), message);
    }
}
