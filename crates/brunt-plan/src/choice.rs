//! The choices of a plan: enums whose variants have the names that flags, plan files and results use, with what follows from
//! each variant alone.
//!
//! Invariant: nothing here depends on another option.

use crate::op::OpKind;
use crate::popularity::ObjectWindow;
use crate::server::{PORT_MEMCACHED, PORT_REDIS, ServerAddress};
use crate::units::{Count, DurationNs, text_form};
use crate::words::words;
use std::fmt;

words! {
    /// The protocol on the wire.
    pub enum Protocol {
        /// memcached's classic text protocol.
        MemcachedText = "memcached-text",
        /// Its meta commands.
        MemcachedMeta = "memcached-meta",
        /// Its binary protocol, with SASL PLAIN where a password is given.
        MemcachedBinary = "memcached-binary",
        /// Redis's protocol, version 2: what every Redis and Valkey speaks.
        Resp2 = "resp2",
        /// Version 3 of Redis's protocol, since Redis 6.
        Resp3 = "resp3",
        /// Version 2 with inline commands: a line each.
        RespInline = "resp-inline",
        /// Payloads with their CRC-32, which come back as they are.
        Echo = "echo",
        /// `PING`, answered with `PONG`.
        Ping = "ping",
        /// Framed calls in Thrift's binary protocol.
        Thrift = "thrift",
    }
}

/// The longest value in an inline command of Redis, in bytes.
pub const INLINE_VALUE_BYTES_MAX: u32 = 4000;

impl Protocol {
    /// Do replies carry the tokens of their requests?
    pub const fn has_tokens(self) -> bool {
        matches!(self, Self::MemcachedMeta | Self::MemcachedBinary)
    }

    /// Is it one of memcached's?
    pub const fn is_memcached(self) -> bool {
        matches!(self, Self::MemcachedText | Self::MemcachedMeta | Self::MemcachedBinary)
    }

    /// Is it a version of Redis's, in which there are users and databases?
    pub const fn is_resp(self) -> bool {
        matches!(self, Self::Resp2 | Self::Resp3 | Self::RespInline)
    }

    /// Is it one whose servers store nothing and keep no statistics, so that commands of the user's are all there is to send?
    pub const fn is_stateless(self) -> bool {
        !self.is_memcached() && !self.is_resp()
    }

    /// Is it spoken by the servers of such URLs, Redis's or memcached's?
    pub const fn is_of_scheme(self, is_redis: bool) -> bool {
        if is_redis { self.is_resp() } else { self.is_memcached() }
    }

    /// The command that is sent where none is given.
    pub const fn default_command(self) -> Option<&'static str> {
        match self {
            Self::Echo => Some("{value}"),
            Self::Ping => Some("PING"),
            _ => None,
        }
    }

    /// The port of its servers where none is given.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::MemcachedText | Self::MemcachedMeta | Self::MemcachedBinary => PORT_MEMCACHED,
            Self::Resp2 | Self::Resp3 | Self::RespInline => PORT_REDIS,
            // IANA's for echo; those of Pelikan's ping server and of Thrift's tutorial.
            Self::Echo => 7,
            Self::Ping => 12321,
            Self::Thrift => 9090,
        }
    }

    /// Has it a login with a user?
    pub const fn has_users(self) -> bool {
        self.is_resp() || matches!(self, Self::MemcachedBinary)
    }

    /// Has it a request for this kind of op?
    pub const fn supports(self, kind: OpKind) -> bool {
        match self {
            Self::MemcachedText => true,
            Self::MemcachedMeta | Self::MemcachedBinary => !matches!(kind, OpKind::Raw),
            Self::Resp2 | Self::Resp3 | Self::RespInline => {
                !matches!(kind, OpKind::Gets | OpKind::Cas | OpKind::Prepend)
            }
            Self::Echo | Self::Ping | Self::Thrift => matches!(kind, OpKind::Raw),
        }
    }
}

words! {
    /// What carries the bytes.
    pub enum Transport {
        /// TCP, with TCP_NODELAY.
        Tcp = "tcp",
        /// Stream sockets of this host, by path.
        Unix = "unix",
        /// TLS over TCP.
        Tls = "tls",
        /// UDP: a datagram for every request, with memcached's header.
        Udp = "udp",
    }
}

impl Transport {
    /// The transport to this server: a path has a Unix socket, and a host has not.
    pub const fn for_server(self, server: &ServerAddress) -> Self {
        match (server.is_unix(), self) {
            (true, _) => Self::Unix,
            (false, Self::Unix) => Self::Tcp,
            (false, given) => given,
        }
    }

    /// Do options of TCP apply to its connections?
    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Tls)
    }
}

words! {
    /// Which of a name's addresses are connected to.
    #[derive(Default)]
    pub enum IpVersion {
        /// IPv4 and IPv6 addresses, in the order of the name service.
        #[default]
        Any = "any",
        /// IPv4 addresses.
        V4 = "4",
        /// IPv6 addresses.
        V6 = "6",
    }
}

words! {
    /// Which interface to the kernel a plan asks for.
    pub enum IoChoice {
        /// The best one that works here; the report says which.
        Auto = "auto",
        /// epoll with one read per readiness.
        Epoll = "epoll",
        /// io_uring with one enter per turn.
        Uring = "uring",
    }
}

words! {
    /// When a slot of a closed loop that has become free is used again.
    pub enum Refill {
        /// At once.
        Eager = "eager",
        /// When all of the connection's are free: the whole pipeline goes out together.
        Batch = "batch",
    }
}

words! {
    /// How a worker waits for the next intended time.
    pub enum Wait {
        /// Sleep until shortly before, then poll without sleeping; only where a worker has a CPU to itself.
        Hybrid = "hybrid",
        /// Never sleep while a schedule is running.
        Spin = "spin",
        /// Always sleep; late by the kernel's wake-up time.
        Sleep = "sleep",
    }
}

words! {
    /// Whose clock readings a run takes beside its own.
    pub enum Timestamps {
        /// None.
        Off = "off",
        /// The kernel's, for a sample of the requests of some connections, where it takes them.
        Auto = "auto",
        /// The kernel's, for a sample of requests and their replies: when it handed them to the network, and when they came in.
        Kernel = "kernel",
    }
}

words! {
    /// Which of several servers an op goes to.
    pub enum Placement {
        /// By the key: the hash of libmemcached's default (one at a time), modulo the number of servers.
        Modulo = "modulo",
        /// By the key: consistent hashing as libmemcached's `MEMCACHED_BEHAVIOR_KETAMA` does it.
        Ketama = "ketama",
        /// By the key: as `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` does it with equal weights.
        KetamaWeighted = "ketama-weighted",
        /// Each op to the next server; every server holds the whole data set.
        RoundRobin = "round-robin",
        /// Each op to any server; every server holds the whole data set.
        Random = "random",
        /// Workers take servers in turn, and all connections of a worker go to its own; every server that a worker has holds the whole
        /// data set.
        ByThread = "by-thread",
    }
}

impl Placement {
    /// Does the key decide, so that every key lives on one server?
    pub const fn is_by_key(self) -> bool {
        matches!(self, Self::Modulo | Self::Ketama | Self::KetamaWeighted)
    }

    /// The server of a worker, of `servers`, where workers take them round-robin.
    pub fn of_worker(self, worker: u32, servers: u32) -> Option<u32> {
        (self == Self::ByThread && servers > 0).then(|| worker % servers)
    }
}

words! {
    /// What follows the loss of a connection, once the schedule has begun.
    #[derive(Default)]
    pub enum Reconnect {
        /// Another attempt, and another, for as long as the run lasts.
        #[default]
        Always = "always",
        /// Another attempt while another connection of the class is open on its worker; when the last one is lost, none is begun any more.
        WhileOneStands = "while-one-stands",
        /// Nothing: it stays away, and its slots of a closed loop with it.
        Never = "never",
    }
}

words! {
    /// What follows a retrieval that missed.
    pub enum OnMiss {
        /// A miss is counted only.
        Ignore = "ignore",
        /// Every missing key is stored: what a cache-aside client does.
        Set = "set",
    }
}

words! {
    /// In which order the records of a trace are sent.
    pub enum TraceOrder {
        /// Those of a key one behind the other, on one connection.
        Keys = "keys",
        /// One after the other: the next by whichever connection is free.
        Lines = "lines",
    }
}

words! {
    /// What follows the last record of a trace.
    pub enum TraceRepeat {
        /// Nothing.
        Once = "once",
        /// The trace again, with its keys: what it has stored is there.
        SameKeys = "same-keys",
        /// The trace again, with other keys.
        NewKeys = "new-keys",
    }
}

words! {
    /// How a trace is written: lines, or records of a fixed length.
    pub enum TraceLayout {
        /// Twitter's cache-trace.
        Twitter = "twitter",
        /// Meta's kvcache: a head names the columns.
        Meta = "meta",
        /// libCacheSim's oracleGeneral: records of 24 bytes, all gets.
        Oracle = "oracle",
        /// The same as text.
        OracleText = "oracle-text",
        /// What `MONITOR` of Redis and Valkey prints.
        Monitor = "monitor",
        /// mutilate's `--getset`: every line is a get, whatever its third column says.
        MutilateAllGets = "mutilate-all-gets",
        /// mutilate's, with `read` or `write` in the third column.
        MutilateReadWrite = "mutilate-read-write",
        /// mutilate's, with 1 (get) or 2 (set) in the third column.
        MutilateOneTwo = "mutilate-1-2",
    }
}

impl TraceLayout {
    /// The operations that lines may name.
    pub const fn kinds(self) -> &'static [OpKind] {
        use OpKind::{Add, Append, Cas, Decr, Delete, Get, Gets, Incr, Prepend, Replace, Set};
        match self {
            Self::Oracle | Self::OracleText | Self::MutilateAllGets => &[Get],
            Self::MutilateReadWrite | Self::MutilateOneTwo => &[Get, Set],
            Self::Meta => &[Get, Set, Delete],
            Self::Monitor => &[Get, Set, Add, Replace, Append, Incr, Decr, Delete],
            Self::Twitter => &[Get, Gets, Set, Add, Replace, Append, Prepend, Cas, Incr, Decr, Delete],
        }
    }

    /// Have its records times of a known unit?
    pub const fn has_times(self) -> bool {
        !matches!(self, Self::MutilateAllGets | Self::MutilateReadWrite | Self::MutilateOneTwo)
    }

    /// How exact these are.
    pub const fn unit_ns(self) -> u64 {
        if matches!(self, Self::Monitor) { 1_000 } else { 1_000_000_000 }
    }

    /// The layouts that a file tells by itself.
    pub const TOLD_BY_FILES: [Self; 2] = [Self::Meta, Self::Monitor];

    /// What a file of it consists of.
    pub const fn piece(self) -> &'static str {
        if matches!(self, Self::Oracle) { "record" } else { "line" }
    }

    /// Whose it is and what it says; below that a line of it, with the head that it needs, and a record in hexadecimal digits.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Twitter => {
                "Twitter's cache-trace: TIME,KEY,KEYBYTES,BYTES,CLIENT,OPERATION[,TTL]\n0,q:a:1:8WTfjZU,13,213,4,get,0"
            }
            Self::Meta => {
                "Meta's kvcache: the first line names the columns\nop_time,key,key_size,op,op_count,size,ttl\n1000,00000000deadbeef,48,SET,3,87,60"
            }
            Self::Oracle => {
                "libCacheSim's oracleGeneral, all gets: u32 time, u64 object, u32 size, i64 next, little endian\n0a000000 0700000000000000 64000000 0300000000000000"
            }
            Self::OracleText => "the same as text: TIME, OBJECT, BYTES, NEXT\n10, 7, 100, 3",
            Self::Monitor => {
                "MONITOR of Redis and Valkey\n1700000000.000250 [0 127.0.0.1:51706] \"set\" \"k:1\" \"value\" \"EX\" \"60\""
            }
            Self::MutilateAllGets => "mutilate --getset: TIME,APP,ANY,KEY,BYTES, all gets\n0,app,req,key,213",
            Self::MutilateReadWrite => {
                "mutilate's with read or write in the third column\n0,app,read,key,213"
            }
            Self::MutilateOneTwo => "mutilate's with 1 (get) or 2 (set) in the third column\n0,app,1,key,213",
        }
    }
}

words! {
    /// A named quantity that a plan may ask to have metered beside latency.
    pub enum MeterKind {
        /// Operations in flight on the chosen connection when an op is sent on it, that op not counted.
        Outstanding = "outstanding",
        /// Bytes of each request.
        RequestSize = "request-size",
        /// Bytes of each reply that was read whole.
        ResponseSize = "response-size",
        /// Bytes of each value received.
        ValueReceived = "value-received",
        /// Nanoseconds from starting a connection until it is established.
        ConnectTime = "connect-time",
        /// Nanoseconds from starting a connection until it is closed or lost, of those that were established.
        ConnectionTime = "connection-time",
        /// Nanoseconds from when a request was sent until the first byte of its reply was read.
        FirstByte = "first-byte",
        /// Response time in nanoseconds of completed requests whose reply has a value.
        HitTime = "hit-time",
        /// Response time in nanoseconds of completed requests whose reply says that there is no such key.
        MissTime = "miss-time",
        /// Nanoseconds from when the TCP connection is established until its TLS handshake is over.
        HandshakeTime = "handshake-time",
        /// Nanoseconds a timed sleep ended late.
        Oversleep = "oversleep",
        /// Nanoseconds in the call that sends a request (or several, when they are written together).
        SendCost = "send-cost",
        /// Nanoseconds from before the call that sends a request until the kernel hands its last byte to the network.
        StackOut = "stack-out",
        /// Nanoseconds from then until the last byte of the reply is in the kernel.
        WireAndServer = "wire-and-server",
        /// Nanoseconds from then until the read that brings it has returned.
        StackIn = "stack-in",
        /// Nanoseconds from queueing such a request until its reply is read, less what the worker's clock readings say that it may
        /// have held of them.
        WithoutClient = "without-client",
    }
}

impl MeterKind {
    /// The spans that kernel timestamps yield, in the order of time.
    pub const SPANS: [Self; 3] = [Self::StackOut, Self::WireAndServer, Self::StackIn];
    /// All that a request with kernel timestamps yields.
    pub const OF_TIMESTAMPS: [Self; 4] =
        [Self::StackOut, Self::WireAndServer, Self::StackIn, Self::WithoutClient];
}

words! {
    /// How a key tells its id, behind the prefix. Distinct ids have distinct keys in every form.
    #[derive(Default)]
    pub enum KeyForm {
        /// The id in decimal, with as many zeros before it as the size has room for.
        #[default]
        Decimal = "decimal",
        /// The id in eight hexadecimal digits; what is longer goes on with letters and digits that belong to the data seed.
        Hex8 = "hex8",
        /// Letters and digits that belong to the data seed.
        Random = "random",
        /// memaslap's: the number of an object in eight bytes, most of them not printable, then characters of its table.
        Memaslap = "memaslap",
        /// As `memaslap`, with a number of eight printable characters.
        MemaslapPrintable = "memaslap-printable",
    }
}

impl KeyForm {
    /// The most letters and digits of an id: 62¹⁰ is the last power below 2⁶⁴.
    pub const CODE_BYTES_MAX: u32 = 10;

    /// How many ids can be told apart at most.
    pub const fn ids_max(self) -> u64 {
        match self {
            Self::Decimal => u64::MAX,
            Self::Hex8 => 1 << 32,
            Self::Random => 62u64.pow(Self::CODE_BYTES_MAX),
            Self::Memaslap | Self::MemaslapPrintable => ObjectWindow::NUMBERS_MAX,
        }
    }

    /// The number of ids, at least 1, that this many bytes behind the prefix distinguish.
    pub fn ids_in(self, bytes: u32) -> u64 {
        match self {
            Self::Decimal => 10u64.checked_pow(bytes).unwrap_or(u64::MAX),
            Self::Random => 62u64.pow(bytes.min(Self::CODE_BYTES_MAX)),
            Self::Hex8 | Self::Memaslap | Self::MemaslapPrintable => self.ids_max(),
        }
    }

    /// Are keys and values laid out as memaslap does it?
    pub const fn is_memaslap(self) -> bool {
        matches!(self, Self::Memaslap | Self::MemaslapPrintable)
    }

    /// The bytes behind the prefix that distinguish `ids` ids, from 1 to [`KeyForm::ids_max`].
    pub fn bytes_needed(self, ids: u64) -> u32 {
        match self {
            Self::Decimal => (ids - 1).checked_ilog10().unwrap_or(0) + 1,
            Self::Hex8 | Self::Memaslap | Self::MemaslapPrintable => 8,
            Self::Random => (ids - 1).checked_ilog(62).unwrap_or(0) + 1,
        }
    }
}

words! {
    /// What values consist of.
    #[derive(Default)]
    pub enum ValueForm {
        /// A head that names key and version, then noise.
        #[default]
        Random = "random",
        /// The digit 0 throughout: every value is a number, and keys are counters themselves.
        Zeros = "zeros",
    }
}

words! {
    /// The hosts that run a class.
    #[derive(Default)]
    pub enum HostRole {
        /// All agents, which divide the class between them.
        #[default]
        Agents = "agents",
        /// The controller alone. Its host carries no other load, so its measurements are undisturbed.
        Controller = "controller",
    }
}

/// How long a number of completions is waited for where nothing else is said: what a server takes for some hundred requests.
const MOST: DurationNs = DurationNs(1_000_000);
/// Replies may not lie for longer.
const MOST_MAX: DurationNs = DurationNs(1_000_000_000);

/// When a wait that has completions returns: with enough of them, or after a time. It delays no request: a wait never lasts longer than
/// until the next request is due. Completions that wait for others are read late, and that time is part of the measured latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// This many completions, at least 1; `u32::MAX`: as many as there can be.
    pub completions: u32,
    /// Or this time, after which one is enough; 0 where one is in any case.
    pub most: DurationNs,
}

impl Gather {
    /// The first completion ends a wait.
    pub const NOTHING: Self = Self { completions: 1, most: DurationNs(0) };
    /// What halves the cost of a request on io_uring with deep pipelines; more gains little.
    pub const PEAK: Self = Self { completions: 8, most: MOST };

    /// Is anything waited for but the first?
    pub fn is_on(self) -> bool {
        self.completions > 1
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let count = text.parse::<Count>().ok()?.0;
            u32::try_from(count).ok().filter(|count| (1..u32::MAX).contains(count))
        };
        let duration = |text: &str| {
            text.parse::<DurationNs>().ok().filter(|most| (1_000..=MOST_MAX.0).contains(&most.0))
        };
        let parsed = match text.split_once(',') {
            Some((count, most)) => number(count).zip(duration(most)),
            None => number(text).map(|count| (count, MOST)).or(duration(text).map(|most| (u32::MAX, most))),
        };
        match parsed {
            Some((1, _)) => Ok(Self::NOTHING),
            Some((completions, most)) => Ok(Self { completions, most }),
            None => Err("expected a number of completions from 1, a duration from 1us to 1s, or both: 8, 50us, 8,50us"
                .to_owned()),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { completions: 1, .. } => formatter.write_str("1"),
            Self { completions: u32::MAX, most } => write!(formatter, "{most}"),
            Self { completions, most: MOST } => write!(formatter, "{completions}"),
            Self { completions, most } => write!(formatter, "{completions},{most}"),
        }
    }
}

text_form!(Gather);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        let table = [
            ("1", Some((1, 0)), "1"),
            ("8", Some((8, 1_000_000)), "8"),
            ("8,1ms", Some((8, 1_000_000)), "8"),
            ("8,50us", Some((8, 50_000)), "8,50us"),
            ("50us", Some((u32::MAX, 50_000)), "50us"),
            ("1,50us", Some((1, 0)), "1"),
            ("0", None, ""),
            ("8,", None, ""),
            ("8,2s", None, ""),
            ("100ns", None, ""),
            ("many", None, ""),
        ];
        for (text, expected, printed) in table {
            let parsed = text.parse::<Gather>().ok();
            assert_eq!(parsed.map(|gather| (gather.completions, gather.most.0)), expected, "{text}");
            if let Some(gather) = parsed {
                assert_eq!((gather.to_string().as_str(), gather.to_string().parse()), (printed, Ok(gather)));
            }
        }
    }
}
