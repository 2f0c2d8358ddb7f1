//! The sockets that the server has by itself: the listening socket, of the network or of the file system, and the one for datagrams.
//!
//! Not the connections. During an outage the listening socket is shut: the kernel refuses connections. A second socket that is bound to
//! the same address and never listens keeps the port meanwhile. (Without it the port could go to another process: a client
//! that keeps on connecting to a free port of its own range is now and then given that very port, and is connected to
//! itself.) Invariants: a socket file is gone when its listener is, unless the process is killed; one that a killed process has
//! left is taken over; every sender of datagrams that is known has one connection id of the core's (when there are too many they are
//! all forgotten, and come back as new ones with their next datagram).

use crate::connection::ConnectionId;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Connections that the kernel holds until they are accepted; a client opens thousands at once.
const BACKLOG: i32 = 4096;
/// How often a free port is looked for that is free for datagrams, too.
const PORT_ATTEMPTS: u32 = 16;

/// Where to listen. Text form `ADDRESS:PORT`, such as `127.0.0.1:11211` or `[::]:0`, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address of this host; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A path in the file system, where a socket is made.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let listen = match text.strip_prefix("unix:") {
            Some(path) => Some(Self::Unix(PathBuf::from(path))).filter(|_| !path.is_empty()),
            None => text.parse().ok().map(Self::Tcp),
        };
        listen.ok_or_else(|| {
            format!(
                "'{text}' is no place to listen: expected ADDRESS:PORT or unix:PATH, such as 0.0.0.0:11211 or [::1]:0"
            )
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// The listening socket.
#[derive(Debug)]
pub(crate) struct PausableListener {
    /// With its port filled in.
    pub(crate) place: Listen,
    /// None while it is shut.
    pub(crate) socket: Option<OwnedFd>,
    /// Keeps the port while it is shut, if it ever will be.
    _keeper: Option<OwnedFd>,
    /// What the events of the listening socket bear.
    event_data: u64,
}

impl PausableListener {
    /// Opens it. `is_to_shut` says whether it ever will be.
    pub(crate) fn open(
        place: &Listen,
        is_to_shut: bool,
        epoll: &OwnedFd,
        event_data: u64,
    ) -> io::Result<Self> {
        let refused = |error| cannot_listen(place, error);
        let (bound, place) = bind(place).map_err(refused)?;
        // To be bound before the other one listens: of two sockets that share an address only the last may.
        let keeper = match &place {
            Listen::Tcp(_) if is_to_shut => Some(bind(&place).map_err(refused)?.0),
            _ => None,
        };
        let listener = Some(listen(bound, epoll, event_data).map_err(refused)?);
        Ok(Self { place, socket: listener, _keeper: keeper, event_data })
    }

    /// Opens it with a socket for datagrams at the same address and port.
    pub(crate) fn open_with_datagrams(
        place: &Listen,
        is_to_shut: bool,
        epoll: &OwnedFd,
        event_data: u64,
    ) -> io::Result<(Self, UdpSocket)> {
        let mut attempts =
            if matches!(place, Listen::Tcp(address) if address.port() == 0) { PORT_ATTEMPTS } else { 1 };
        loop {
            let listener = Self::open(place, is_to_shut, epoll, event_data)?;
            let Listen::Tcp(address) = listener.place else {
                let why = io::Error::new(io::ErrorKind::InvalidInput, "datagrams need an address and a port");
                return Err(cannot_listen(place, why));
            };
            match UdpSocket::bind(address) {
                Ok(socket) => {
                    socket.set_nonblocking(true)?;
                    return Ok((listener, socket));
                }
                Err(error) if attempts > 1 && error.kind() == io::ErrorKind::AddrInUse => attempts -= 1,
                Err(error) => return Err(cannot_listen(place, error)),
            }
        }
    }

    /// Opens it again at the same place.
    pub(crate) fn reopen(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        // The file is there still, and a socket that is bound must be new.
        self.remove_file();
        let listener = bind(&self.place).and_then(|(socket, _)| listen(socket, epoll, self.event_data));
        self.socket = Some(listener.map_err(|error| cannot_listen(&self.place, error))?);
        Ok(())
    }

    fn remove_file(&self) {
        if let Listen::Unix(path) = &self.place {
            // A file that is gone already needs no removal.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for PausableListener {
    fn drop(&mut self) {
        self.remove_file();
    }
}

fn cannot_listen(place: &Listen, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {place}: {error}"))
}

/// A socket bound to a place, and the place with its port filled in.
fn bind(place: &Listen) -> io::Result<(OwnedFd, Listen)> {
    let family = match place {
        Listen::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
        Listen::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        Listen::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    match place {
        Listen::Tcp(address) => {
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, address)?;
            let bound = SocketAddr::try_from(net::getsockname(&socket)?)?;
            Ok((socket, Listen::Tcp(bound)))
        }
        Listen::Unix(path) => {
            bind_file(&socket, path)?;
            Ok((socket, place.clone()))
        }
    }
}

/// Binds to a path. A socket file without a listener is taken over.
fn bind_file(socket: &OwnedFd, path: &Path) -> io::Result<()> {
    let address = SocketAddrUnix::new(path)?;
    match net::bind(socket, &address) {
        Err(Errno::ADDRINUSE) => {
            let knocking = std::os::unix::net::UnixStream::connect(path);
            if knocking.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                std::fs::remove_file(path)?;
                net::bind(socket, &address)?;
                return Ok(());
            }
            Err(Errno::ADDRINUSE.into())
        }
        bound => Ok(bound?),
    }
}

/// Opens the listener: the socket listens and its knocks are events.
fn listen(socket: OwnedFd, epoll: &OwnedFd, event_data: u64) -> io::Result<OwnedFd> {
    net::listen(&socket, BACKLOG)?;
    epoll::add(epoll, &socket, epoll::EventData::new_u64(event_data), epoll::EventFlags::IN)?;
    Ok(socket)
}

/// Senders that are known at most: more than there are ports of one address that a client may use at once.
pub(crate) const SENDERS_MAX: usize = 1 << 17;
/// The longest datagram there is.
const DATAGRAM_BYTES: usize = 1 << 16;

/// The socket and the addresses.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    socket: UdpSocket,
    senders: HashMap<SocketAddr, ConnectionId>,
    addresses: HashMap<ConnectionId, SocketAddr>,
    buffer: Vec<u8>,
}

impl DatagramSocket {
    pub(crate) fn new(socket: UdpSocket) -> Self {
        Self { socket, senders: HashMap::new(), addresses: HashMap::new(), buffer: vec![0; DATAGRAM_BYTES] }
    }

    /// The address of the next datagram's sender and its length; `None` if there is none.
    pub(crate) fn receive(&mut self) -> Option<(SocketAddr, usize)> {
        loop {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((bytes, sender)) => return Some((sender, bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // An undeliverable reply shows here, or a signal came.
                Err(_) => {}
            }
        }
    }

    /// The last datagram, of this length.
    pub(crate) fn datagram(&self, bytes: usize) -> &[u8] {
        &self.buffer[..bytes]
    }

    /// Who sends from there, if that is known.
    pub(crate) fn sender(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.senders.get(&address).copied()
    }

    /// Gets to know a sender.
    pub(crate) fn know(&mut self, address: SocketAddr, id: ConnectionId) {
        self.senders.insert(address, id);
        self.addresses.insert(id, address);
    }

    /// Forgets all senders if there are too many. Returns their ids.
    pub(crate) fn clear_if_full(&mut self) -> Vec<ConnectionId> {
        if self.senders.len() < SENDERS_MAX {
            return Vec::new();
        }
        self.senders.clear();
        self.addresses.drain().map(|(id, _)| id).collect()
    }

    /// Sends a datagram. One that the kernel does not take is lost, as it may be anywhere on its way.
    pub(crate) fn send(&self, id: ConnectionId, datagram: &[u8]) {
        if let Some(address) = self.addresses.get(&id) {
            let _ = self.socket.send_to(datagram, address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let table = [
            ("127.0.0.1:11211", Some("127.0.0.1:11211")),
            ("[::1]:0", Some("[::1]:0")),
            ("unix:/tmp/socket", Some("unix:/tmp/socket")),
            ("unix:", None),
            ("11211", None),
            ("localhost:11211", None),
            ("", None),
        ];
        for (text, expected) in table {
            let listen = text.parse::<Listen>();
            assert_eq!(listen.clone().ok().map(|listen| listen.to_string()).as_deref(), expected, "{text:?}");
            assert!(listen.err().is_none_or(|message| message.contains("unix:PATH")));
        }
    }
}
