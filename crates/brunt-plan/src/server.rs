//! Where a server is: the address as a user writes it, taken apart but not resolved.
//!
//! Resolving a name is work for the network and happens later, never on a worker; here a name stays a name.

use crate::units::text_form;
use std::fmt;
use std::net::Ipv6Addr;

/// The port of memcached when none is given.
pub(crate) const PORT_MEMCACHED: u16 = 11211;
/// Default port of Redis.
pub(crate) const PORT_REDIS: u16 = 6379;

/// The longest path of a Unix socket, in bytes: `sockaddr_un` has room for 108 with the zero behind it (unix(7)).
const PATH_MAX_BYTES: usize = 107;

/// One server as named in the plan. Text form `HOST[:PORT]`, in which an IPv6 literal is in
/// brackets when a port follows; or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// By TCP.
    Network {
        /// Name or address, without brackets.
        host: String,
        /// TCP port; 0 is the usual one of the plan's protocol, which a resolved plan has filled in.
        port: u16,
    },
    /// A stream socket of this host.
    Unix {
        /// Its path, at most 107 bytes.
        path: String,
    },
}

impl ServerAddress {
    /// A host, by name or address without brackets, and its port.
    pub fn network(host: impl Into<String>, port: u16) -> Self {
        Self::Network { host: host.into(), port }
    }

    /// The address with this port, if it is a host without one.
    pub fn at_port(&self, usual: u16) -> Self {
        match self {
            Self::Network { host, port: 0 } => Self::network(host, usual),
            given => given.clone(),
        }
    }

    /// Is it the path of a socket?
    pub const fn is_unix(&self) -> bool {
        matches!(self, Self::Unix { .. })
    }

    /// The path of a socket.
    fn unix(path: &str) -> Result<Self, String> {
        match path.len() {
            1..=PATH_MAX_BYTES if !path.contains('\0') => Ok(Self::Unix { path: path.to_owned() }),
            len => Err(format!(
                "expected unix: and a path of 1 to {PATH_MAX_BYTES} bytes, such as unix:/run/cache.sock; this one has {len}"
            )),
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let accepted =
            || "expected HOST[:PORT] or unix:PATH, such as 127.0.0.1:11211 or [::1]:11211".to_owned();
        if let Some(path) = text.trim().strip_prefix("unix:") {
            return Self::unix(path);
        }
        let place = text.trim();
        let (host, port) = if let Some(bracketed) = place.strip_prefix('[') {
            let (host, rest) = bracketed.split_once(']').ok_or_else(accepted)?;
            host.parse::<Ipv6Addr>().map_err(|_| accepted())?;
            match rest {
                "" => (host, None),
                rest => (host, Some(rest.strip_prefix(':').ok_or_else(accepted)?)),
            }
        } else if place.parse::<Ipv6Addr>().is_ok() {
            (place, None)
        } else {
            match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            }
        };
        let port = match port {
            Some(port) => port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(accepted)?,
            None => 0,
        };
        let is_host_letter = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || !host.chars().all(is_host_letter) {
            return Err(accepted());
        }
        Ok(Self::network(host, port))
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = match self {
            Self::Network { host, port } => (host, *port),
            Self::Unix { path } => return write!(formatter, "unix:{path}"),
        };
        match (host.contains(':'), port) {
            (true, 0) => write!(formatter, "[{host}]"),
            (true, port) => write!(formatter, "[{host}]:{port}"),
            (false, 0) => formatter.write_str(host),
            (false, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

text_form!(ServerAddress);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_socket_paths_are_refused() {
        let path = |bytes: usize| format!("unix:/{}", "é".repeat((bytes - 1) / 2));
        assert!(path(107).parse::<ServerAddress>().is_ok_and(|server| server.is_unix()));
        let refused = path(109).parse::<ServerAddress>().unwrap_err();
        assert!(refused.contains("1 to 107 bytes") && refused.ends_with("this one has 109"), "{refused}");
        assert!("unix:/a\0b".parse::<ServerAddress>().is_err());
    }
}
