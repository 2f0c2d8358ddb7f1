//! Servers as a user names them: by an address, or by a URL that says more; one or a list.
//!
//! Invariant: what is printed of a server has no password in it, even if it could not be read.

use crate::choice::Transport;
use crate::login::Password;
use crate::server::{PORT_MEMCACHED, PORT_REDIS, ServerAddress};
use crate::units::text_form;
use std::fmt;

/// What is accepted.
pub(crate) const ACCEPTED: &str = "HOST[:PORT], unix:PATH, or memcached://, memcacheds://, memcached+udp://, redis:// or \
                                   rediss:// and [USER:PASSWORD@]HOST[:PORT][/DATABASE], such as 127.0.0.1:11211 or [::1]:11211";

/// What a URL begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// It is a Redis's, else a memcached's.
    pub is_redis: bool,
    /// What carries the bytes: TCP, TLS or UDP.
    pub transport: Transport,
}

/// A server with what its URL says beside its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Protocol and transport.
    pub scheme: Scheme,
    /// Host and port, which is the scheme's usual one where none is given.
    pub address: ServerAddress,
    /// The user of the login.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Password>,
    /// The number of the database; of a Redis.
    pub database: Option<u32>,
}

/// A server as a user names it. Text forms: those of [`ServerAddress`], and
/// `memcached[s|+udp]://[USER:PASSWORD@]HOST[:PORT]` or `redis[s]://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`; in user and password `%40`
/// and the like stand for bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedServer {
    /// By its address alone.
    Plain(ServerAddress),
    /// By a URL.
    Url(ServerUrl),
    /// By a text that is neither, but may hold a password, for there is an `@` in it: refused when the plan is resolved, because readers
    /// of options and files show what they refuse. The text that may be shown.
    Invalid(String),
}

impl NamedServer {
    /// Where it is, as far as that was understood.
    pub fn address(&self) -> Option<&ServerAddress> {
        match self {
            Self::Plain(address) | Self::Url(ServerUrl { address, .. }) => Some(address),
            Self::Invalid(_) => None,
        }
    }

    /// Can both be reached in the same way? Servers without a URL leave that to others.
    pub fn is_compatible_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Url(one), Self::Url(other)) => {
                ServerUrl { address: one.address.clone(), ..other.clone() } == *one
            }
            (Self::Invalid(_), _) | (_, Self::Invalid(_)) => false,
            _ => true,
        }
    }

    /// Of this and another that agree, the one that says how both are reached: a URL, if one of them is.
    pub fn more_specific<'a>(&'a self, other: &'a Self) -> &'a Self {
        match (self, other) {
            (Self::Plain(_), Self::Url(_)) => other,
            _ => self,
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with("unix:") {
            return text.parse().map(Self::Plain);
        }
        let parts = text.split_once("://");
        if let Some(url) = parts.and_then(|(scheme, rest)| url(scheme, rest)) {
            return Ok(Self::Url(url));
        }
        match (text.rsplit_once('@'), parts) {
            (Some((_, place)), Some((name, _))) if scheme(name).is_some() => {
                Ok(Self::Invalid(format!("{name}://(secret)@{place}")))
            }
            // Whatever is in front may be part of a password.
            (Some((_, place)), _) => Ok(Self::Invalid(format!("(secret)@{place}"))),
            (None, Some(_)) => Err(format!("expected {ACCEPTED}")),
            (None, None) => text.parse().map(Self::Plain),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(address) => write!(formatter, "{address}"),
            Self::Url(url) => write!(formatter, "{url}"),
            Self::Invalid(shown) => formatter.write_str(shown),
        }
    }
}

text_form!(NamedServer);

/// The scheme of this name.
fn scheme(name: &str) -> Option<Scheme> {
    let (is_redis, transport) = match name {
        "memcached" | "memcache" => (false, Transport::Tcp),
        "memcacheds" | "memcaches" => (false, Transport::Tls),
        "memcached+udp" => (false, Transport::Udp),
        "redis" | "valkey" => (true, Transport::Tcp),
        "rediss" | "valkeys" => (true, Transport::Tls),
        _ => return None,
    };
    Some(Scheme { is_redis, transport })
}

/// The URL of the scheme of this name; `None` where it is none.
fn url(name: &str, rest: &str) -> Option<ServerUrl> {
    let scheme = scheme(name)?;
    let is_redis = scheme.is_redis;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let some = |text: String| (!text.is_empty()).then_some(text);
    let address: ServerAddress = place.parse().ok().filter(|address: &ServerAddress| !address.is_unix())?;
    let database = match path {
        "" => None,
        number => Some(number.parse().ok().filter(|_| is_redis)?),
    };
    Some(ServerUrl {
        scheme,
        address: address.at_port(if is_redis { PORT_REDIS } else { PORT_MEMCACHED }),
        user: some(decoded(user)?),
        password: some(decoded(password)?).map(Password::verbatim),
        database,
    })
}

/// The text with bytes in place of their numbers (RFC 3986, section 2.1). No byte is 0: it ends names and passwords in SASL PLAIN
/// and is in none of them.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// A name as it is in a URL.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let letter =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(letter).collect()
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.scheme.is_redis { "redis" } else { "memcached" })?;
        formatter.write_str(match self.scheme.transport {
            Transport::Tls => "s://",
            Transport::Udp => "+udp://",
            Transport::Tcp | Transport::Unix => "://",
        })?;
        match (&self.user, &self.password) {
            (None, None) => {}
            (user, None) => write!(formatter, "{}@", encoded(user.as_deref().unwrap_or_default()))?,
            // A word in the place of the password, which is read as that.
            (user, Some(password)) => {
                write!(formatter, "{}:{password}@", encoded(user.as_deref().unwrap_or_default()))?;
            }
        }
        write!(formatter, "{}", self.address)?;
        self.database.map_or(Ok(()), |database| write!(formatter, "/{database}"))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_passwords_are_read_and_never_printed() {
        let table = [
            ("rediss://me:hunter2@cache/3", Some("me"), "hunter2"),
            ("redis://:hunter2@cache", None, "hunter2"),
            ("redis://me:%40file%25@cache", Some("me"), "@file%"),
            ("redis://me:a:b@c@cache", Some("me"), "a:b@c"),
        ];
        for (text, user, password) in table {
            let server: NamedServer = text.parse().unwrap();
            let NamedServer::Url(url) = &server else { panic!("{text}") };
            let read = url.password.as_ref().map(Password::secret);
            assert_eq!((url.user.as_deref(), read), (user, Some(password)), "{text}");
            assert!(!format!("{server} {server:?}").contains(password), "{server} {server:?}");
        }
        for text in [
            "redis://me:hunter2@cache:99999",
            "redis://me:hunter2@cache/x",
            "redis://a:hunter2%@b",
            "redis://me:hunter2%00@b",
            "redis://m%00e:hunter2@b",
            "me:hunter2@cache:6379",
            "hunter2@cache",
            "me:hunter2://@cache",
            "me:hunter2@redis://cache",
            "http://me:hunter2@a",
        ] {
            let flawed: NamedServer = text.parse().unwrap();
            assert!(matches!(flawed, NamedServer::Invalid(_)), "{text}");
            assert!(!format!("{flawed} {flawed:?}").contains("hunter2"), "{flawed:?}");
        }
    }

    #[test]
    fn compatible_servers_share_the_address_form() {
        let table = [
            ("a", "b", true),
            ("a", "redis://b", true),
            ("redis://x:y@a/1", "redis://x:y@b:7/1", true),
            ("redis://x:y@a/1", "redis://x:z@b/1", false),
            ("redis://a", "rediss://b", false),
            ("a", "redis://x:y@b:0", false),
        ];
        for (one, other, expected) in table {
            let [one, other] = [one, other].map(|text| text.parse::<NamedServer>().unwrap());
            assert_eq!(
                (one.is_compatible_with(&other), other.is_compatible_with(&one)),
                (expected, expected),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn a_url_is_more_specific_than_an_address() {
        let table = [
            ("a", "rediss://x:y@b", "rediss://x:(secret)@b:6379"),
            ("unix:/a", "redis://b/3", "redis://b:6379/3"),
            ("redis://a", "b", "redis://a:6379"),
            ("redis://a", "redis://b", "redis://a:6379"),
            ("a", "b", "a"),
        ];
        for (one, other, expected) in table {
            let [first, second] = [one, other].map(|text| text.parse::<NamedServer>().unwrap());
            assert_eq!(first.more_specific(&second).to_string(), expected, "{one} {other}");
        }
    }
}
