//! Where a server is: the address as a user writes it, taken apart but not resolved.
//!
//! Resolving a name is work for the network and happens later, never on a worker; here a name stays a name.

use crate::units::serde_as_text;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// The port of memcached when none is given.
pub(crate) const PORT_MEMCACHED: u16 = 11211;
/// That of Redis.
pub(crate) const PORT_REDIS: u16 = 6379;

/// One server as named in the plan. Text form `HOST[:PORT]` or `memcached://HOST[:PORT]`; an IPv6 literal stands in
/// brackets when a port follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port; 0 is the usual one of the plan's protocol, which a resolved plan has filled in.
    pub port: u16,
}

impl ServerAddress {
    /// The same, at this port where none is given.
    pub fn at_port(&self, usual: u16) -> Self {
        Self { host: self.host.clone(), port: if self.port == 0 { usual } else { self.port } }
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = || {
            "expected HOST[:PORT] or memcached://HOST[:PORT], such as 127.0.0.1:11211 or [::1]:11211"
                .to_owned()
        };
        let (place, usual) = match text.trim().split_once("://") {
            Some(("memcached", place)) => (place, PORT_MEMCACHED),
            Some(_) => return Err(accepted()),
            None => (text.trim(), 0),
        };
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
            None => usual,
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(accepted());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.host.contains(':'), self.port) {
            (true, 0) => write!(formatter, "[{}]", self.host),
            (true, port) => write!(formatter, "[{}]:{port}", self.host),
            (false, 0) => formatter.write_str(&self.host),
            (false, port) => write!(formatter, "{}:{port}", self.host),
        }
    }
}
serde_as_text!(ServerAddress);

/// One or several servers. In a plan file a list, or a single text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerList(pub Vec<ServerAddress>);

impl serde::Serialize for ServerList {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for ServerList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;
        impl<'de> serde::de::Visitor<'de> for OneOrSeveral {
            type Value = ServerList;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a server such as \"cache:11211\", or a list of them")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ServerList, E> {
                text.parse().map(|server| ServerList(vec![server])).map_err(E::custom)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<ServerList, A::Error> {
                let mut servers = Vec::new();
                while let Some(server) = list.next_element()? {
                    servers.push(server);
                }
                Ok(ServerList(servers))
            }
        }
        deserializer.deserialize_any(OneOrSeveral)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::check_texts;

    #[test]
    fn addresses() {
        check_texts::<ServerAddress>(&[
            ("127.0.0.1:11311", Some("127.0.0.1:11311")),
            ("cache-1.example", Some("cache-1.example")),
            ("memcached://cache:5000", Some("cache:5000")),
            ("memcached://cache", Some("cache:11211")),
            ("[::1]:6000", Some("[::1]:6000")),
            ("::1", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("http://cache", None),
            ("cache:", None),
            ("cache:0", None),
            ("cache:70000", None),
            (":11211", None),
            ("a b", None),
            ("[::1]x", None),
            ("", None),
        ]);
    }
}
