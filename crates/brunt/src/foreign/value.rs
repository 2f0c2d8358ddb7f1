//! What stands behind options of other tools, and the names in it that are theirs.
//!
//! Whether a value fits an option tells which tool was meant.

/// What an option is followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueShape {
    Nothing,
    /// Digits.
    Number,
    /// Digits with a fraction.
    Decimal,
    /// Two numbers, with a colon or a dash between them.
    Pair,
    /// A host without a port.
    Host,
    /// A path.
    Path,
    /// A URL.
    Uri,
    /// A protocol as memtier_benchmark names it.
    Protocol,
    /// Tests as redis-benchmark names them.
    Tests,
    /// A secret.
    Secret,
    Text,
}

impl ValueShape {
    /// Is this such a value?
    pub(super) fn fits(self, value: Option<&str>) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match (self, value) {
            (Self::Nothing, None) => true,
            (Self::Nothing, Some(_)) | (_, None) => false,
            (Self::Number, Some(text)) => is_number(text),
            (Self::Decimal, Some(text)) => text.parse::<f64>().is_ok(),
            (Self::Pair, Some(text)) => text
                .split_once([':', '-'])
                .is_some_and(|(first, second)| is_number(first) && is_number(second)),
            (Self::Host, Some(text)) => !text.contains('/') && !is_number(text),
            (Self::Path, Some(text)) => text.contains('/'),
            (Self::Uri, Some(text)) => text.contains("://"),
            (Self::Protocol, Some(text)) => protocol_of(text).is_some(),
            (Self::Tests, Some(text)) => text.split(',').all(|name| test(name).is_some()),
            (Self::Secret | Self::Text, Some(_)) => true,
        }
    }

    /// Does a value that fits tell the tool from others with the same letter?
    pub(super) const fn is_telling(self) -> bool {
        matches!(self, Self::Pair | Self::Protocol | Self::Tests)
    }
}

/// memtier_benchmark's name of a protocol: is it Redis's, and what is it called here beside the scheme of a URL?
pub(super) fn protocol_of(name: &str) -> Option<(bool, Option<&'static str>)> {
    match name {
        "redis" | "resp2" => Some((true, None)),
        "resp3" => Some((true, Some("resp3"))),
        "memcache_text" => Some((false, None)),
        "memcache_binary" => Some((false, Some("memcached-binary"))),
        _ => None,
    }
}

/// What sends one of redis-benchmark's tests.
#[derive(Clone, Copy)]
pub(super) enum Test {
    Operation(&'static str),
    Command(&'static str),
    /// Nothing of ours does.
    None,
}

/// The test of this name.
pub(super) fn test(name: &str) -> Option<Test> {
    Some(match name.to_ascii_lowercase().as_str() {
        "get" => Test::Operation("get"),
        "set" => Test::Operation("set"),
        "incr" => Test::Operation("incr"),
        "mget" => Test::Operation("mget"),
        "ping" | "ping_inline" | "ping_mbulk" => Test::Command("PING"),
        "lpush" => Test::Command("LPUSH mylist {value}"),
        "rpush" => Test::Command("RPUSH mylist {value}"),
        "lpop" => Test::Command("LPOP mylist"),
        "rpop" => Test::Command("RPOP mylist"),
        "sadd" => Test::Command("SADD myset {key}"),
        "spop" => Test::Command("SPOP myset"),
        "hset" => Test::Command("HSET myhash {key} {value}"),
        "zadd" => Test::Command("ZADD myzset 0 {key}"),
        "zpopmin" => Test::Command("ZPOPMIN myzset"),
        "lrange" | "lrange_100" => Test::Command("LRANGE mylist 0 99"),
        "lrange_300" => Test::Command("LRANGE mylist 0 299"),
        "lrange_500" => Test::Command("LRANGE mylist 0 499"),
        "lrange_600" => Test::Command("LRANGE mylist 0 599"),
        "xadd" => Test::Command("XADD mystream * myfield {value}"),
        "mset" | "function_load" | "fcall" => Test::None,
        _ => return None,
    })
}
