//! Address that `--http` listens at: a port of the loopback interface, or an address with its port.
//!
//! Host names are rejected, as a name can have several addresses. Invariant: other hosts can connect only if an address is given
//! explicitly.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// An address to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpAddress(pub(super) SocketAddr);

impl HttpAddress {
    /// The syntax that error messages name.
    pub(crate) const ACCEPTED: &str = "a port of this host alone, such as 9090 (0 for any that is free), or an address with a port, such as 0.0.0.0:9090";

    /// Does the option name the port? Otherwise the kernel chooses one, which must be printed.
    pub(crate) fn has_fixed_port(self) -> bool {
        self.0.port() != 0
    }
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| {
            text.strip_prefix("localhost").unwrap_or(text).strip_prefix(':').unwrap_or(text).parse()
        };
        let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let address = port(text).map(loopback).or_else(|_| text.parse().map_err(|_| ()));
        address.map(Self).map_err(|()| format!("expected {}", Self::ACCEPTED))
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_need_an_explicit_address() {
        let table = [
            ("9090", Some("127.0.0.1:9090")),
            (":9090", Some("127.0.0.1:9090")),
            ("localhost:9090", Some("127.0.0.1:9090")),
            ("0", Some("127.0.0.1:0")),
            ("127.0.0.2:80", Some("127.0.0.2:80")),
            ("0.0.0.0:9090", Some("0.0.0.0:9090")),
            ("[::1]:9090", Some("[::1]:9090")),
            ("[::]:0", Some("[::]:0")),
            ("", None),
            (":", None),
            ("65536", None),
            ("-1", None),
            ("0.0.0.0", None),
            ("::1", None),
            ("localhost", None),
            ("localhost9090", None),
            ("example.com:9090", None),
            ("http://127.0.0.1:9090", None),
        ];
        for (text, expected) in table {
            let found = text.parse::<HttpAddress>().ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
