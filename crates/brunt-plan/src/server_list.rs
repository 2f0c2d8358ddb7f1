//! Servers as a plan file or a flag lists them.

use crate::server::ServerAddress;
use crate::url::NamedServer;
use std::fmt;

/// One or several servers. In a plan file a list, or a single text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerList(pub Vec<NamedServer>);

impl ServerList {
    /// Servers by their addresses, if there are any.
    pub fn of(addresses: &[ServerAddress]) -> Option<Self> {
        (!addresses.is_empty()).then(|| Self(addresses.iter().cloned().map(NamedServer::Plain).collect()))
    }

    /// The addresses, as far as they could be read.
    pub fn addresses(&self) -> impl Iterator<Item = &ServerAddress> + Clone {
        self.0.iter().filter_map(NamedServer::address)
    }
}

/// The servers, for messages.
impl fmt::Display for ServerList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&names.join(", "))
    }
}

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
