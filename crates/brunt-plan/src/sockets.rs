//! Socket options of the connections of a plan, and its TLS settings: paths and names, for the engine to read and check.
//!
//! Invariant: the default is what the kernel does of itself, but for TCP_NODELAY.

use crate::units::DurationNs;
use std::fmt;

/// Options of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// TCP: each request goes out at once (TCP_NODELAY); else the kernel may keep a small one back until what was sent before it is
    /// acknowledged (Nagle's algorithm).
    pub nodelay: bool,
    /// TCP: the longest time, in whole seconds, that a close waits for the peer to acknowledge everything (SO_LINGER); 0: it resets the
    /// connection.
    pub linger: Option<DurationNs>,
    /// Bytes of the buffer of what is sent (SO_SNDBUF).
    pub send_buffer: Option<u32>,
    /// Bytes of the buffer of what has come (SO_RCVBUF).
    pub receive_buffer: Option<u32>,
}

impl SocketOptions {
    /// The kernel doubles it, for its own overhead, in an integer of C.
    pub const BUFFER_BYTES_MAX: u32 = i32::MAX as u32 / 2;
    /// The kernel counts them in an unsigned short.
    pub const LINGER_SECONDS_MAX: u64 = u16::MAX as u64;
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self { nodelay: true, linger: None, send_buffer: None, receive_buffer: None }
    }
}

/// What differs from the default, each behind a comma.
impl fmt::Display for SocketOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.nodelay {
            write!(formatter, ", without TCP_NODELAY")?;
        }
        if let Some(linger) = self.linger {
            write!(formatter, ", SO_LINGER {linger}")?;
        }
        if let Some(bytes) = self.send_buffer {
            write!(formatter, ", SO_SNDBUF {bytes}")?;
        }
        if let Some(bytes) = self.receive_buffer {
            write!(formatter, ", SO_RCVBUF {bytes}")?;
        }
        Ok(())
    }
}

/// TLS settings of all connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file of certificates (PEM): the server's must have been issued by one of these. None: by those that this host trusts.
    pub ca: Option<String>,
    /// Files of our own certificate, with those that issued it behind it, and of its key (both PEM); none: we show none.
    pub identity: Option<Identity>,
    /// The name that the client sends (SNI) and that the server's certificate must bear; none: the host of each server.
    pub server_name: Option<String>,
    /// Server certificates are not verified.
    pub is_insecure: bool,
}

/// The client's certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The path of a certificate chain.
    pub certificate: String,
    /// The path of its key.
    pub key: String,
}
