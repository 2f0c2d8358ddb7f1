//! What is behind options of other tools, and the names in it that are theirs.
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
    /// Digits with a fraction, from 0 to 1.
    Part,
    /// Digits with a fraction, from 0 to 100.
    Percent,
    /// Two numbers with a colon between them.
    Pair,
    /// Two numbers with a dash between them.
    Range,
    /// `MIN:MAX:STEP`.
    Steps,
    /// Sizes with weights, as memtier_benchmark writes them.
    Sizes,
    /// How many requests, or `allkeys`.
    Requests,
    /// One of memtier_benchmark's letters of how keys are chosen.
    Pattern,
    /// Two of them, of SETs and of GETs.
    Patterns,
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
        // How many numbers there are, if there is nothing else.
        let numbers = |text: &str, gap: char| text.split(gap).all(is_number).then(|| text.split(gap).count());
        let is_pattern = |text: &str| ["R", "G", "S", "P", "Z"].contains(&text);
        match (self, value) {
            (Self::Nothing, None) => true,
            (Self::Nothing, Some(_)) | (_, None) => false,
            (Self::Number, Some(text)) => is_number(text),
            (Self::Decimal, Some(text)) => text.parse::<f64>().is_ok(),
            (Self::Part, Some(text)) => text.parse().is_ok_and(|part| (0.0..=1.0).contains(&part)),
            (Self::Percent, Some(text)) => text.parse().is_ok_and(|part| (0.0..=100.0).contains(&part)),
            (Self::Pair, Some(text)) => numbers(text, ':') == Some(2),
            (Self::Range, Some(text)) => numbers(text, '-') == Some(2),
            (Self::Steps, Some(text)) => numbers(text, ':') == Some(3),
            (Self::Sizes, Some(text)) => text.split(',').all(|size| numbers(size, ':') == Some(2)),
            (Self::Requests, Some(text)) => text == "allkeys" || is_number(text),
            (Self::Pattern, Some(text)) => is_pattern(text),
            (Self::Patterns, Some(text)) => {
                text.split_once(':').is_some_and(|(set, get)| is_pattern(set) && is_pattern(get))
            }
            (Self::Host, Some(text)) => !text.contains('/') && !is_number(text),
            (Self::Path, Some(text)) => text.contains('/'),
            (Self::Uri, Some(text)) => text.contains("://"),
            (Self::Protocol, Some(text)) => protocol_of(text).is_some(),
            (Self::Tests, Some(text)) => text.split(',').all(|name| test(name).is_some()),
            (Self::Secret | Self::Text, Some(_)) => true,
        }
    }

    /// What a tool takes there, beside a value that it does not take.
    pub(super) fn wanted(self, value: Option<&str>) -> String {
        let wanted = match self {
            Self::Nothing => "no value",
            Self::Number => "a whole number",
            Self::Decimal => "a number",
            Self::Part => "a number from 0 to 1",
            Self::Percent => "a number from 0 to 100",
            Self::Pair => "two whole numbers such as 1:10",
            Self::Range => "two whole numbers such as 100-4000",
            Self::Steps => "MIN:MAX:STEP in whole numbers",
            Self::Sizes => "SIZE:WEIGHT,SIZE:WEIGHT,... in whole numbers",
            Self::Requests => "a whole number or allkeys",
            Self::Pattern => "a letter out of R G S P Z",
            Self::Patterns => "two letters out of R G S P Z such as S:R",
            Self::Host => "a host",
            Self::Path => "a path",
            Self::Uri => "a URL",
            Self::Protocol => "redis, resp2, resp3, memcache_text or memcache_binary",
            Self::Tests => {
                let unknown: Vec<&str> =
                    value.unwrap_or_default().split(',').filter(|name| test(name).is_none()).collect();
                return format!("names of its tests, and has none called '{}'", unknown.join("', '"));
            }
            Self::Secret | Self::Text => "a value",
        };
        wanted.to_owned()
    }

    /// Does a value that fits tell the tool from others with the same letter?
    pub(super) const fn is_telling(self) -> bool {
        matches!(self, Self::Pair | Self::Range | Self::Steps | Self::Protocol | Self::Tests)
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
