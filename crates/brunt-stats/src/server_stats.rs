//! What servers say of themselves: their statistics at instants of a run, and what went on between two instants.
//!
//! Not what we counted (that is request accounting) and not a judgement. What a server does not say
//! is `None`, and so is everything that follows from it. Invariants: times are of the run's clock; a counter that went
//! back (the server restarted, or its counters were reset) makes no difference but `None`; what is read back from a file is what was
//! written.

use crate::window::RunTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// What kind of number a statistic is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StatKind {
    /// A value that goes up and down: its state at one instant.
    State,
    /// Counts from the start of the server, so that the difference of two is what happened between them.
    Counter,
    /// Counts requests, or keys of a retrieval; each is in one of these.
    Request,
    /// Counts calls of one of Redis's commands.
    Call,
    /// Counts time, which is kept in nanoseconds.
    Time,
    /// Counts what a poll adds to, so that two polls of one server find two numbers.
    Polled,
}

/// Declares the statistics that are kept, with the servers' own names for them.
macro_rules! statistics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $kind:ident;)+) => {
        brunt_plan::named! { serialized
            /// A statistic, by the server's name for it.
            pub enum ServerStat { $($(#[$doc])* $variant = $name),+ }
        }

        impl ServerStat {
            const fn kind(self) -> StatKind {
                match self { $(Self::$variant => StatKind::$kind),+ }
            }
        }
    };
}

statistics! {
    /// Keys asked for.
    CmdGet = "cmd_get", Request;
    /// Keys found.
    GetHits = "get_hits", Counter;
    /// Keys not found.
    GetMisses = "get_misses", Counter;
    /// Stores of every kind.
    CmdSet = "cmd_set", Request;
    /// A cas that stored.
    CasHits = "cas_hits", Counter;
    /// A cas whose unique was no longer current.
    CasBadval = "cas_badval", Counter;
    /// A cas of a key that is not there.
    CasMisses = "cas_misses", Counter;
    /// Increments.
    IncrHits = "incr_hits", Request;
    /// Increments of a key that is not there.
    IncrMisses = "incr_misses", Request;
    /// Decrements.
    DecrHits = "decr_hits", Request;
    /// Decrements of a key that is not there.
    DecrMisses = "decr_misses", Request;
    /// Keys deleted.
    DeleteHits = "delete_hits", Request;
    /// Deletes of a key that is not there.
    DeleteMisses = "delete_misses", Request;
    /// Touches.
    CmdTouch = "cmd_touch", Request;
    /// Touches of a key that is there.
    TouchHits = "touch_hits", Counter;
    /// Touches of a key that is not there.
    TouchMisses = "touch_misses", Counter;
    /// Items removed before their time, to make room.
    Evictions = "evictions", Counter;
    /// Items ever stored.
    TotalItems = "total_items", Counter;
    /// Connections ever accepted.
    TotalConnections = "total_connections", Polled;
    /// How often the server stopped accepting connections.
    ListenDisabledNum = "listen_disabled_num", Counter;
    /// Processor time in user space, in nanoseconds here.
    RusageUser = "rusage_user", Time;
    /// Processor time in the kernel, in nanoseconds here.
    RusageSystem = "rusage_system", Time;
    /// Items held.
    CurrItems = "curr_items", State;
    /// Bytes that they take.
    Bytes = "bytes", State;
    /// How many they may take.
    LimitMaxbytes = "limit_maxbytes", State;
    /// Connections open, ours for the statistics among them.
    CurrConnections = "curr_connections", State;
    /// Threads.
    Threads = "threads", State;
    /// Seconds since the server was started.
    Uptime = "uptime", State;
    /// Its process.
    Pid = "pid", State;
    /// Redis: keys found by commands that read, `TOUCH` among them.
    KeyspaceHits = "keyspace_hits", Counter;
    /// Redis: keys not found by them.
    KeyspaceMisses = "keyspace_misses", Counter;
    /// Redis: calls of `GET`, as all calls without those that were refused before they were carried out.
    CallsGet = "cmdstat_get", Call;
    /// Redis: calls of `MGET`, whatever the number of keys.
    CallsMget = "cmdstat_mget", Call;
    /// Redis: calls of `SET`, whatever its options.
    CallsSet = "cmdstat_set", Call;
    /// Redis: calls of `APPEND`.
    CallsAppend = "cmdstat_append", Call;
    /// Redis: calls of `INCR`.
    CallsIncr = "cmdstat_incr", Call;
    /// Redis: calls of `DECR`.
    CallsDecr = "cmdstat_decr", Call;
    /// Redis: calls of `DEL`.
    CallsDel = "cmdstat_del", Call;
    /// Redis: calls of `TOUCH`.
    CallsTouch = "cmdstat_touch", Call;
    /// Redis: calls of `EXPIRE`.
    CallsExpire = "cmdstat_expire", Call;
    /// Redis: commands of every kind, those of a greeting and our question among them.
    CommandsProcessed = "total_commands_processed", Polled;
    /// Redis: connections ever accepted.
    ConnectionsReceived = "total_connections_received", Polled;
    /// Redis: connections turned away because there were too many.
    RejectedConnections = "rejected_connections", Polled;
    /// Redis: keys removed before their time, to make room.
    EvictedKeys = "evicted_keys", Counter;
    /// Redis: keys removed because their time was over.
    ExpiredKeys = "expired_keys", Counter;
    /// Redis: processor time in user space of all its threads, in nanoseconds here.
    UsedCpuUser = "used_cpu_user", Time;
    /// Redis: the same in the kernel.
    UsedCpuSys = "used_cpu_sys", Time;
    /// Redis: processor time in user space of the thread that carries out commands, in nanoseconds here.
    UsedCpuUserMain = "used_cpu_user_main_thread", Time;
    /// Redis: the same in the kernel.
    UsedCpuSysMain = "used_cpu_sys_main_thread", Time;
    /// Redis: keys held, in all databases together.
    Keys = "keys", State;
    /// Redis: bytes that it has taken from the system's memory, whatever for.
    UsedMemory = "used_memory", State;
    /// Redis: how many it may take; 0 is any number.
    MaxMemory = "maxmemory", State;
    /// Redis: connections open, ours for the statistics among them.
    ConnectedClients = "connected_clients", State;
    /// Redis: seconds since it was started.
    UptimeInSeconds = "uptime_in_seconds", State;
    /// Redis: its process.
    ProcessId = "process_id", State;
}

impl ServerStat {
    fn of_kind(kind: StatKind) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |statistic| statistic.kind() == kind)
    }

    /// Does it count, so that the difference of two is what happened between them? Else it is a state.
    pub fn is_counter(self) -> bool {
        self.kind() != StatKind::State
    }

    /// Is it a time, which is kept in nanoseconds?
    pub fn is_time(self) -> bool {
        self.kind() == StatKind::Time
    }

    /// The number in a server's text.
    fn read(self, text: &str) -> Option<u64> {
        if self.kind() == StatKind::Call {
            return field(text, "calls");
        }
        if !self.is_time() {
            return text.parse().ok();
        }
        // Seconds, with any number of decimals.
        let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
        let decimals: String = decimals.chars().chain(std::iter::repeat('0')).take(9).collect();
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(decimals.parse().ok()?)
    }
}

/// The number under a name in one of Redis's rows: `NAME=NUMBER,NAME=NUMBER…`.
fn field(row: &str, name: &str) -> Option<u64> {
    let mut fields = row.split(',').filter_map(|field| field.split_once('='));
    fields.find(|(held, _)| *held == name)?.1.parse().ok()
}

/// One server's statistics at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When the question was sent, on the run's clock.
    pub asked_ns: u64,
    /// When the answer was there: the instant that the snapshot stands for.
    pub at_ns: u64,
    /// The server's version; of a fork of Redis the fork's name and version.
    pub version: Option<String>,
    values: BTreeMap<ServerStat, u64>,
}

impl Snapshot {
    /// From the names and values that a server gave; what is unknown or no number is left out.
    pub fn new<'a>(asked_ns: u64, at_ns: u64, rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut snapshot = Self { asked_ns, at_ns, version: None, values: BTreeMap::new() };
        let mut own_name = None;
        for (name, value) in rows {
            match ServerStat::ALL.iter().find(|statistic| statistic.name() == name) {
                Some(statistic) => {
                    snapshot.values.extend(statistic.read(value).map(|value| (*statistic, value)))
                }
                None => match name {
                    "version" | "redis_version" | "valkey_version" => {
                        snapshot.version = Some(value.to_owned())
                    }
                    "server_name" => own_name = Some(value),
                    // What has never been called, and a database without a key, have no row.
                    "# Commandstats" => {
                        ServerStat::of_kind(StatKind::Call).for_each(|calls| snapshot.set(calls, 0))
                    }
                    "# Keyspace" => snapshot.set(ServerStat::Keys, 0),
                    _ => snapshot.count_keys(name, value),
                },
            }
        }
        if let (Some(name), Some(version)) = (own_name, &snapshot.version) {
            snapshot.version = Some(format!("{name} {version}"));
        }
        snapshot
    }

    fn set(&mut self, statistic: ServerStat, value: u64) {
        self.values.insert(statistic, value);
    }

    /// Adds the keys of a database, if the row tells of one.
    fn count_keys(&mut self, name: &str, value: &str) {
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        if name.strip_prefix("db").is_some_and(is_number)
            && let Some(keys) = field(value, "keys")
        {
            self.set(ServerStat::Keys, self.get(ServerStat::Keys).unwrap_or(0) + keys);
        }
    }

    /// One of its numbers.
    pub fn get(&self, statistic: ServerStat) -> Option<u64> {
        self.values.get(&statistic).copied()
    }

    /// Everything that it holds.
    pub fn values(&self) -> impl Iterator<Item = (ServerStat, u64)> + '_ {
        self.values.iter().map(|(statistic, value)| (*statistic, *value))
    }

    /// A number that memcached and Redis report under different names: whichever the server sent.
    fn first_known(&self, memcached: ServerStat, redis: ServerStat) -> Option<u64> {
        self.get(memcached).or_else(|| self.get(redis))
    }

    /// Processor time, user and system, in nanoseconds.
    pub fn cpu_ns(&self) -> Option<u64> {
        let user = self.first_known(ServerStat::RusageUser, ServerStat::UsedCpuUser)?;
        Some(user + self.first_known(ServerStat::RusageSystem, ServerStat::UsedCpuSys)?)
    }

    /// Processor time of the thread that carries out commands, in nanoseconds; of several threads their mean.
    fn thread_ns(&self) -> Option<u64> {
        let main = self.get(ServerStat::UsedCpuUserMain).zip(self.get(ServerStat::UsedCpuSysMain));
        let mean = || Some(self.cpu_ns()? / self.get(ServerStat::Threads).unwrap_or(1).max(1));
        main.map(|(user, system)| user + system).or_else(mean)
    }

    /// Requests that the server counted: of memcached a retrieval by its keys, of Redis all commands. Commands that memcached
    /// does not count at all are in none of its statistics.
    pub fn requests(&self) -> Option<u64> {
        let rest = ServerStat::of_kind(StatKind::Request).filter_map(|statistic| self.get(statistic)).sum();
        let by_kind = self.get(ServerStat::CmdGet).and(self.get(ServerStat::CmdSet)).map(|_| rest);
        by_kind.or_else(|| self.get(ServerStat::CommandsProcessed))
    }

    /// Keys found.
    pub fn hits(&self) -> Option<u64> {
        self.first_known(ServerStat::GetHits, ServerStat::KeyspaceHits)
    }

    /// Keys not found.
    pub fn misses(&self) -> Option<u64> {
        self.first_known(ServerStat::GetMisses, ServerStat::KeyspaceMisses)
    }

    /// What was removed before its time, to make room.
    pub fn evictions(&self) -> Option<u64> {
        self.first_known(ServerStat::Evictions, ServerStat::EvictedKeys)
    }

    /// Items held.
    pub fn items(&self) -> Option<u64> {
        self.first_known(ServerStat::CurrItems, ServerStat::Keys)
    }

    /// Bytes that they take, of Redis with everything else that it needs.
    pub fn bytes(&self) -> Option<u64> {
        self.first_known(ServerStat::Bytes, ServerStat::UsedMemory)
    }

    /// How many they may take; `None` where there is no bound.
    pub fn bytes_max(&self) -> Option<u64> {
        let redis = || self.get(ServerStat::MaxMemory).filter(|bytes| *bytes > 0);
        self.get(ServerStat::LimitMaxbytes).or_else(redis)
    }

    /// Its process.
    fn pid(&self) -> Option<u64> {
        self.first_known(ServerStat::Pid, ServerStat::ProcessId)
    }

    /// Seconds since it was started.
    fn uptime_s(&self) -> Option<u64> {
        self.first_known(ServerStat::Uptime, ServerStat::UptimeInSeconds)
    }
}

/// What became of a server between two snapshots that makes its counters begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterReset {
    /// It is another process, or has been up for less time than before.
    Restarted,
    /// The process is the one from before, with smaller counters.
    Reset,
}

impl CounterReset {
    fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let both = |statistic| before.get(statistic).zip(after.get(statistic));
        let went_back = |statistic| both(statistic).is_some_and(|(before, after)| after < before);
        let is_other = before.pid().zip(after.pid()).is_some_and(|(before, after)| before != after);
        let is_younger =
            before.uptime_s().zip(after.uptime_s()).is_some_and(|(before, after)| after < before);
        if is_other || is_younger {
            return Some(Self::Restarted);
        }
        // Times are not reset; a server that divides them by samples may be off by one the next time.
        let is_reset_with = |statistic: &&ServerStat| statistic.is_counter() && !statistic.is_time();
        let mut counters = ServerStat::ALL.iter().filter(is_reset_with);
        counters.any(|statistic| went_back(*statistic)).then_some(Self::Reset)
    }
}

/// Servers are asked this often at first.
const STEP_NS: u64 = 1_000_000_000;
/// A snapshot stands for an edge of a piece of time up to so far from it: no snapshot is nearer to two edges than that.
const NEAR_NS: u64 = STEP_NS / 2;

/// Bytes that the statistics of all servers take in a file, if every server's share has room for three snapshots: of one memcached ten
/// minutes at one a second.
const BYTES_MAX: usize = 550_000;
/// What a file has of a snapshot, packed, and, where it is told, of what went on since the one before.
const SNAPSHOT_BYTES: usize = 300;
const SPAN_BYTES: usize = 500;
/// What more servers than this said from time to time is in the record alone: it would take more room than all else of a result.
const SERVERS_TOLD_MAX: usize = 64;

/// How much of a result a server's statistics may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeShare {
    /// What a snapshot takes, about.
    pub(crate) snapshot_bytes: usize,
    /// At least the first, the last and one between them.
    snapshots_max: usize,
    /// Is what it said told to scripts, beside the record?
    pub is_told: bool,
}

impl SizeShare {
    /// The budget of one of `servers` servers.
    pub fn of(servers: usize) -> Self {
        let is_told = servers <= SERVERS_TOLD_MAX;
        let snapshot_bytes = SNAPSHOT_BYTES + if is_told { SPAN_BYTES } else { 0 };
        let snapshots_max = (BYTES_MAX / snapshot_bytes / servers.max(1)).max(3);
        Self { snapshot_bytes, snapshots_max, is_told }
    }
}

/// A server that counts fewer requests in a second has no CPU per request: what it does for itself (timers, asked for statistics, commands
/// that it refuses and does not count) takes up to a few milliseconds of each second, which would be tens of microseconds of every
/// request.
const REQUESTS_PER_S_MIN: f64 = 100.0;

/// Everything that one server said of itself during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    snapshots: Vec<Snapshot>,
    /// The one that was taken when preload was over and the schedule had not begun, so that nothing was going on.
    pub prepared: Option<Snapshot>,
    /// Why there is none, or why there was no further one.
    pub trouble: Option<String>,
    /// The last snapshot was taken after everything had ended.
    pub is_complete: bool,
}

impl ServerRecord {
    /// Adds a snapshot, which is younger than all others.
    pub fn push(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    /// Makes it take no more of a result than its share, as far as there are snapshots to leave out: the first, the last and one
    /// between them stay. The others are those nearest to where rows over time begin, of every row, every second, every fourth… Rows
    /// are so long, and one of them begins at `measure_ns`. `stride` is what came of it before, from 0, which leaves all; it is
    /// kept, so that the snapshots of a run that goes on are evenly spread.
    pub fn fit(&mut self, measure_ns: u64, row_ns: u64, stride: u64, share: SizeShare) -> u64 {
        let mut stride = stride;
        loop {
            if stride > 0 {
                self.thin(measure_ns, row_ns.saturating_mul(stride));
            }
            if self.snapshots.len() <= share.snapshots_max {
                return stride;
            }
            stride = (2 * stride).max(1);
        }
    }

    /// Keeps the snapshots nearest to whole periods from an instant, before it and behind it, and the first and the last one.
    fn thin(&mut self, from_ns: u64, period_ns: u64) {
        let period = i128::from(period_ns);
        let nearest = |snapshot: &Snapshot| {
            let offset = i128::from(snapshot.at_ns) - i128::from(from_ns);
            let number = (offset + period / 2).div_euclid(period);
            (number, offset.abs_diff(number * period))
        };
        let mut all = std::mem::take(&mut self.snapshots).into_iter();
        let (first, last) = (all.next(), all.next_back());
        let mut kept: Vec<Snapshot> = Vec::new();
        for snapshot in all {
            let ((number, distance_ns), held) = (nearest(&snapshot), kept.last().map(nearest));
            match held.filter(|(held, _)| *held == number) {
                None => kept.push(snapshot),
                Some((_, held_ns)) if distance_ns < held_ns => {
                    kept.pop();
                    kept.push(snapshot);
                }
                Some(_) => {}
            }
        }
        self.snapshots = first.into_iter().chain(kept).chain(last).collect();
    }

    /// In the order of time. The first one was taken before the run's first request.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// Did its counters begin anew at some time?
    pub fn counter_reset(&self) -> Option<CounterReset> {
        self.snapshots.windows(2).find_map(|pair| CounterReset::between(&pair[0], &pair[1]))
    }

    /// The snapshot nearest to an instant, if it is no further from it than this.
    pub fn nearest(&self, at_ns: u64, within_ns: u64) -> Option<&Snapshot> {
        let distance = |snapshot: &&Snapshot| snapshot.at_ns.abs_diff(at_ns);
        self.snapshots.iter().min_by_key(distance).filter(|snapshot| distance(snapshot) <= within_ns)
    }

    /// What went on from each snapshot to the next.
    pub fn spans(&self) -> impl Iterator<Item = ServerSpan> {
        self.snapshots.windows(2).map(|pair| ServerSpan::between(&pair[0], &pair[1]))
    }

    /// What went on from the first snapshot to the last; `None` with fewer than two.
    pub fn span_of_run(&self) -> Option<ServerSpan> {
        match self.snapshots.as_slice() {
            [first, .., last] => Some(ServerSpan::between(first, last)),
            _ => None,
        }
    }

    /// What went on in the measured window: between the snapshots that are nearest to its ends, however far they are,
    /// because there is only one window and the span says its own times. Of a window so short that both are the same
    /// one, between that and the next snapshot on the other side of the window; `None` where there is none.
    pub fn span_of_window(&self, window: &RunTimes) -> Option<ServerSpan> {
        self.span(window.measure_ns, window.end_ns, u64::MAX).or_else(|| {
            let one = self.nearest(window.measure_ns, u64::MAX)?;
            let is_before = one.at_ns <= window.measure_ns;
            let mut pairs = self.snapshots.windows(2);
            let pair = pairs.find(|pair| pair[usize::from(!is_before)].at_ns == one.at_ns)?;
            Some(ServerSpan::between(&pair[0], &pair[1]))
        })
    }

    /// What went on in a piece of time, one of several in a row; `None` where no snapshot is near one of its edges, so
    /// that no piece tells what belongs to another.
    pub fn span_of_piece(&self, start_ns: u64, end_ns: u64) -> Option<ServerSpan> {
        self.span(start_ns, end_ns, NEAR_NS)
    }

    /// What went on between the two snapshots that are nearest to these instants; `None` where that is one and the same.
    fn span(&self, start_ns: u64, end_ns: u64, within_ns: u64) -> Option<ServerSpan> {
        let (from, to) = (self.nearest(start_ns, within_ns)?, self.nearest(end_ns, within_ns)?);
        (from.at_ns < to.at_ns).then(|| ServerSpan::between(from, to))
    }

    /// Is this the same server under another name? Then it tells of itself twice, and what is summed over servers is
    /// doubled. In containers every server may be process 1 and as old as the others, so the counters at the end, when
    /// no client sends any more, must be the same, too.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let Some((one, other)) = self.snapshots.last().zip(other.snapshots.last()) else { return false };
        let both = |statistic| one.get(statistic).zip(other.get(statistic));
        let is_same_process = one.pid().zip(other.pid()).is_some_and(|(one, other)| one == other)
            // They are asked one after the other.
            && one.uptime_s().zip(other.uptime_s()).is_some_and(|(one, other)| one.abs_diff(other) <= 1);
        let is_ours = |statistic: &&ServerStat| {
            statistic.is_counter() && !statistic.is_time() && statistic.kind() != StatKind::Polled
        };
        let counts = || ServerStat::ALL.iter().filter(is_ours).filter_map(|statistic| both(*statistic));
        is_same_process && counts().all(|(one, other)| one == other) && counts().any(|(one, _)| one > 0)
    }
}

/// What went on at a server, or at several together, from one instant to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerSpan {
    /// When the first snapshot was taken.
    #[serde(skip)]
    pub start_ns: u64,
    /// When the last one was.
    #[serde(skip)]
    pub end_ns: u64,
    /// Requests as the server counts them (memcached a retrieval by its keys, Redis commands of every kind).
    pub requests: Option<u64>,
    /// Keys found.
    pub hits: Option<u64>,
    /// Keys not found.
    pub misses: Option<u64>,
    /// Items removed to make room.
    pub evictions: Option<u64>,
    /// CPU time of the server.
    pub cpu_ns: Option<u64>,
    /// That of the thread that carries out commands, of several threads their mean; of several servers the most.
    #[serde(skip)]
    pub thread_ns: Option<u64>,
    /// Items at the end.
    pub items: Option<u64>,
    /// Bytes that they take at the end.
    pub bytes: Option<u64>,
    /// Bytes that they may take.
    pub bytes_max: Option<u64>,
}

impl ServerSpan {
    fn between(from: &Snapshot, to: &Snapshot) -> Self {
        // Of another process, even a greater number is no sum.
        let is_same = CounterReset::between(from, to) != Some(CounterReset::Restarted);
        let difference = |from: Option<u64>, to: Option<u64>| to.filter(|_| is_same)?.checked_sub(from?);
        Self {
            start_ns: from.at_ns,
            end_ns: to.at_ns,
            requests: difference(from.requests(), to.requests()),
            hits: difference(from.hits(), to.hits()),
            misses: difference(from.misses(), to.misses()),
            evictions: difference(from.evictions(), to.evictions()),
            cpu_ns: difference(from.cpu_ns(), to.cpu_ns()),
            thread_ns: difference(from.thread_ns(), to.thread_ns()),
            items: to.items(),
            bytes: to.bytes(),
            bytes_max: to.bytes_max(),
        }
    }

    /// The spans of several servers as one; `None` unless every server has one.
    pub fn sum(spans: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        spans.into_iter().reduce(|sum, span| Some(sum?.with(&span?))).flatten()
    }

    fn with(&self, other: &Self) -> Self {
        let add = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Self {
            start_ns: self.start_ns.min(other.start_ns),
            end_ns: self.end_ns.max(other.end_ns),
            requests: add(self.requests, other.requests),
            hits: add(self.hits, other.hits),
            misses: add(self.misses, other.misses),
            evictions: add(self.evictions, other.evictions),
            cpu_ns: add(self.cpu_ns, other.cpu_ns),
            thread_ns: self.thread_ns.zip(other.thread_ns).map(|(one, other)| one.max(other)),
            items: add(self.items, other.items),
            bytes: add(self.bytes, other.bytes),
            bytes_max: add(self.bytes_max, other.bytes_max),
        }
    }

    /// Keys found of keys asked for; `None` where none was asked for.
    pub fn hit_ratio(&self) -> Option<f64> {
        let (hits, misses) = (self.hits?, self.misses?);
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }

    /// Processor time per request that the server counted, in nanoseconds; `None` where it counted so few that the quotient would tell of
    /// what the server does for itself: of one that is idle, or of a node that only sends others elsewhere.
    pub fn cpu_ns_per_request(&self) -> Option<f64> {
        let is_busy = |requests: &u64| self.per_second(*requests) >= REQUESTS_PER_S_MIN;
        let requests = self.requests.filter(is_busy)?;
        Some(self.cpu_ns? as f64 / requests as f64)
    }

    /// `count` per second of the span.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / (self.end_ns - self.start_ns).max(1) as f64
    }
}

/// How a stock went from the first point of the window to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The statistic that grew: items or bytes.
    pub of: ServerStat,
    /// At the first point.
    pub from: u64,
    /// At the last.
    pub to: u64,
    /// From how many points to the next it rose.
    pub rises: u64,
    /// Number of steps.
    pub steps: u64,
}

/// What servers have as a stock, of items and of bytes.
const STOCKS: [ServerStat; 4] =
    [ServerStat::CurrItems, ServerStat::Keys, ServerStat::Bytes, ServerStat::UsedMemory];

impl Growth {
    /// The growth of every stock that all servers tell of.
    pub fn of_stocks(records: &[ServerRecord], window: &Range<u64>) -> Vec<Self> {
        STOCKS.into_iter().filter_map(|stock| Self::of(stock, records, window.clone())).collect()
    }

    /// The growth of a stock within the window; `None` with fewer than two points at which all servers tell of it.
    pub fn of(statistic: ServerStat, records: &[ServerRecord], window: Range<u64>) -> Option<Self> {
        let at = |at_ns: u64| -> Option<u64> {
            let of = |record: &ServerRecord| record.nearest(at_ns, NEAR_NS)?.get(statistic);
            (!records.is_empty()).then(|| records.iter().map(of).sum()).flatten()
        };
        let starts = (0..).map(|index| window.start + index * STEP_NS);
        let mut instants: Vec<u64> = starts.take_while(|at_ns| *at_ns < window.end).collect();
        // A last piece that is short has its snapshots in common with the one before it.
        if instants.last().is_some_and(|last_ns| window.end - last_ns < STEP_NS && instants.len() > 1) {
            instants.pop();
        }
        instants.push(window.end);
        let points: Vec<u64> = instants.into_iter().filter_map(at).collect();
        let (from, to) = (*points.first()?, *points.last()?);
        let rises = points.windows(2).filter(|pair| pair[1] > pair[0]).count() as u64;
        let steps = points.len() as u64 - 1;
        (steps > 0).then_some(Self { of: statistic, from, to, rises, steps })
    }

    /// By which part of what it came to it grew; negative, shrank.
    pub fn share(&self) -> f64 {
        if self.to == 0 { 0.0 } else { (self.to as f64 - self.from as f64) / self.to as f64 }
    }
}

#[cfg(test)]
mod tests;
