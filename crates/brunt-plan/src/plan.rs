//! The plan: all that reproduces a run, as plain data, fully resolved.
//!
//! Invariants: [`Plan::spec`] has every option that was given, and the defaults that depend on the host, the protocol or another
//! option; it resolves to the other fields, and [`Plan::changed`] keeps both alike. (A calibration, which stores no plan, sets fields alone.) Everything
//! downstream may rely on the ranges stated at the fields.

use crate::arrival::{Arrival, RateProfile};
pub use crate::choice::*;
use crate::label::Label;
use crate::login::Login;
use crate::mix::{Command, Mix, name_of};
use crate::objective::{Fraction, Metric, Subject};
use crate::op::{OpId, OpKind, OpName};
use crate::popularity::{Drift, ObjectWindow, Popularity};
use crate::quantile::Quantile;
use crate::server::ServerAddress;
use crate::size::SizeDistribution;
use crate::sockets::{SocketOptions, TlsOptions};
use crate::spec::PlanSpec;
use crate::time_law::TimeLaw;
use crate::units::{DurationNs, Rate};
use crate::until::Until;
use crate::warmup::Warmup;
use std::collections::BTreeSet;

/// A file that says what is requested, record by record. Unless it is replayed a record is sent when the class's load makes a request
/// due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Where it is.
    pub file: String,
    /// How it is written; `None` where the file says it.
    pub layout: Option<TraceLayout>,
    /// What of it stays in order.
    pub order: TraceOrder,
    /// How it is sent at the times of its records.
    pub replay: Option<Replay>,
}

/// How a trace is sent at its own times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Seconds of the trace per second.
    pub speed: Rate,
    /// The part of its keys that is sent, with all of their records.
    pub sample: Fraction,
    /// How often each record is sent, with keys of its own each time; at least 1.
    pub copies: u32,
    /// What comes behind the end.
    pub repeat: TraceRepeat,
    /// Every record is sent as a get.
    pub is_all_gets: bool,
    /// In place of its requests those are sent, in closed loop, that store what it finds at its beginning.
    pub is_preload: bool,
    /// Seconds of the trace per second of the warm-up, where that has a speed of its own.
    pub warmup_speed: Option<Rate>,
}

impl Trace {
    /// The longest value: memcached's limit, less room for the key and the item header.
    pub const VALUE_BYTES_MAX: u32 = 1_000_000;

    /// The operations that it may ask for: those of Twitter's layout are all that any has.
    pub const fn kinds(&self) -> &'static [OpKind] {
        match self.layout {
            Some(layout) => layout.kinds(),
            None => TraceLayout::Twitter.kinds(),
        }
    }
}

/// memcached's own limit on the length of a key, to which every plan keeps.
pub const KEY_BYTES_MAX: u32 = 250;

/// The keys and values that a class works on. Two classes with equal keyspaces share one data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// How many keys; at least 1. Ids run from 0 to one less. Of windows, how many objects have numbers of their own.
    pub keys: u64,
    /// What every key begins with; no white space or control characters, short enough that every id fits behind it.
    pub prefix: String,
    /// What is behind it.
    pub key_form: KeyForm,
    /// The number that the key of id 0 tells; with that of the last id it is a number of the form.
    pub first_key: u64,
    /// Length of a key including the prefix; at most 250.
    pub key_size: SizeDistribution,
    /// Length of a value.
    pub value_size: SizeDistribution,
    /// What it consists of.
    pub value_form: ValueForm,
}

/// What decides when a class sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Open loop: intended times come from a clock and an arrival process, whatever the server does.
    Open {
        /// Requests per second of the whole class.
        rate: OpenRate,
        /// How arrivals are spaced.
        arrival: Arrival,
    },
    /// Closed loop: `connections × depth` slots, each asks again as soon as it has its reply and has thought.
    Closed {
        /// Time between a reply and the next request of the same slot.
        think: DurationNs,
    },
}

/// Requests per second of an open loop.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenRate {
    /// A constant rate.
    Constant(Rate),
    /// As time goes on.
    Profile(RateProfile),
    /// That of each connection, whose schedule begins with a call when the connection is established and ends with the connection.
    PerConnection(Rate),
    /// That of a trace which is replayed. The arrival says how its records are spread over a second.
    Recorded,
}

impl OpenRate {
    /// Does the plan alone say how many requests are due? Not where that depends on how many connections are established, or on a file.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::PerConnection(_) | Self::Recorded)
    }

    /// The highest rate that is ever reached, by one connection where each has its own; 0 where only a file says it.
    pub fn highest(&self) -> Rate {
        match self {
            Self::Constant(rate) | Self::PerConnection(rate) => *rate,
            Self::Profile(profile) => profile.highest(),
            Self::Recorded => Rate::per_second(0),
        }
    }
}

/// How long connections live, where they do not live for the whole run. An end by plan waits for the replies that are
/// out, and is no fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifetime {
    /// Connections begun per second of the schedule, as long as fewer than the class's number are open.
    /// Without it all begin at once, and each that ends is replaced at once.
    pub connect_rate: Option<Rate>,
    /// How they are spaced, where it is not evenly.
    pub connect_arrival: Option<Arrival>,
    /// Requests that a connection carries before it ends; at least 1.
    pub calls: Option<u64>,
    /// How long a connection lives before it ends; above 0. The first ones live a part of it, so that ends are spread.
    pub reconnect_every: Option<DurationNs>,
    /// Connections begun in all, over all workers; when the last has ended the class is over.
    pub total: Option<u64>,
}

impl Lifetime {
    /// Do connections come and go by plan?
    pub fn is_planned(&self) -> bool {
        *self != Self::default()
    }

    /// Does a connection end by plan?
    pub const fn ends(&self) -> bool {
        self.calls.is_some() || self.reconnect_every.is_some()
    }
}

/// How connections are grouped into sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScope {
    /// One session per worker owns all of the class's connections there.
    Worker,
    /// Every connection is a session with a schedule of its own.
    Connection,
    /// A session for every client: its operations take its connections in turn, and `depth` of them are in flight at a time.
    Client {
        /// How many of the class's connections each client has; they divide evenly.
        connections: u32,
    },
}

impl SessionScope {
    /// How many connections belong together, whichever worker has them.
    pub const fn connections_each(self) -> u32 {
        match self {
            Self::Worker | Self::Connection => 1,
            Self::Client { connections } => connections,
        }
    }
}

/// A server as a run talks to it. One that is spoken to in two ways is two of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Where it is; none: it is started for the run.
    pub address: Option<ServerAddress>,
    /// The protocol.
    pub protocol: Protocol,
    /// What carries it.
    pub transport: Transport,
}

/// The servers that operations of a class go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Which kinds; none: all that have no other path.
    pub ops: Vec<OpKind>,
    /// Places in [`Plan::servers`], at least one.
    pub servers: Vec<u16>,
    /// What carries them.
    pub transport: Transport,
}

/// A stream of traffic inside a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Name in reports; unique within the plan.
    pub name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// The ways of its operations: first that of whatever has no other. Each has as many connections as the class.
    pub paths: Vec<Path>,
    /// The servers of its path that each change goes to, at least 1: the one of the key and those behind it. A retrieval
    /// goes to one of them.
    pub replicas: u32,
    /// When it sends.
    pub load: Load,
    /// Its connections in all, at least one per worker.
    pub connections: u32,
    /// The class whose connections these are, if it has none of its own. That one has as many, and as deep.
    pub connections_of: Option<String>,
    /// Requests in flight on one connection at most; at least 1.
    pub depth: u32,
    /// How its connections are grouped into sessions.
    pub sessions: SessionScope,
    /// What it sends; of a trace, what that may ask for.
    pub mix: Mix,
    /// When half of the plan's requests have been issued, all keys but each one whose id is a multiple of this, from 2, are deleted:
    /// a cache that is cold all of a sudden. Deletes are no requests of the plan's number.
    pub purge: Option<u64>,
    /// Where what it sends comes from, if it is not drawn.
    pub trace: Option<Trace>,
    /// Which keys are requested how often.
    pub popularity: Popularity,
    /// The data set.
    pub keyspace: Keyspace,
    /// How the ranks of the popularity distribution move over the keys.
    pub drift: Option<Drift>,
    /// By how much incr and decr change the counter of an id.
    pub delta: SizeDistribution,
    /// Keys in a multi-get, at least 1.
    pub multiget: u16,
    /// Time to live of everything stored, in seconds; 0 means no expiry, at most 30 days (memcached takes more as a date).
    pub ttl_s: u32,
    /// Changes ask for no reply.
    pub noreply: bool,
    /// What follows a miss.
    pub on_miss: OnMiss,
    /// How long the database takes that is asked after a miss, before what follows; without one nothing is waited for.
    pub miss_delay: Option<TimeLaw>,
    /// How long its connections live.
    pub lifetime: Lifetime,
    /// What follows when one is lost.
    pub reconnect: Reconnect,
    /// The hosts that carry it out, where there are agents.
    pub host_role: HostRole,
}

impl Class {
    /// The kinds of op that it sends, in the order of its mix; a store that follows a miss and the deletes of a purge come last.
    pub fn kinds(&self) -> Vec<OpKind> {
        let mut kinds: Vec<OpKind> = self.mix.weights.iter().map(|(kind, _)| *kind).collect();
        if self.on_miss == OnMiss::Set && !kinds.contains(&OpKind::Set) {
            kinds.push(OpKind::Set);
        }
        if self.purge.is_some() && !kinds.contains(&OpKind::Delete) {
            kinds.push(OpKind::Delete);
        }
        kinds
    }

    /// What its results are by: the same, with each command by itself.
    pub fn ops(&self) -> Vec<OpId> {
        let of_kind = |kind: OpKind| match kind {
            OpKind::Raw => {
                let weighed = self.mix.commands.iter().enumerate().filter(|(_, weight)| **weight > 0);
                weighed.map(|(index, _)| OpId::of_command(index)).collect()
            }
            _ => vec![kind.into()],
        };
        self.kinds().into_iter().flat_map(of_kind).collect()
    }

    /// Has its data set a counter beside every key? Where values are numbers, keys are counters.
    pub fn has_counters(&self) -> bool {
        self.trace.is_none() && self.mix.has_counters() && self.keyspace.value_form == ValueForm::Random
    }

    /// The longest key that it asks for, in bytes.
    pub fn key_bytes_max(&self) -> u32 {
        if self.trace.is_some() { KEY_BYTES_MAX } else { self.keyspace.key_size.max() }
    }

    /// The longest value that it stores, in bytes.
    pub fn value_bytes_max(&self) -> u32 {
        let recorded = if self.trace.is_some() { Trace::VALUE_BYTES_MAX } else { 0 };
        self.keyspace.value_size.max().max(recorded)
    }

    /// Does it write values, or store what it misses?
    pub fn writes(&self) -> bool {
        self.on_miss == OnMiss::Set || self.mix.weights.iter().any(|(kind, _)| kind.carries_value())
    }

    /// Are all records of a key of its trace sent on one connection?
    pub fn keeps_key_order(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.order == TraceOrder::Keys)
    }

    /// Is it the record of its trace that says when it is due, and the session only sends it then?
    pub fn has_timed_records(&self) -> bool {
        self.keeps_key_order() && matches!(self.load, Load::Open { .. })
    }

    /// How its trace is sent at its own times, if it is.
    pub fn replay(&self) -> Option<&Replay> {
        self.trace.as_ref()?.replay.as_ref()
    }

    /// How many connections the plan has for its sake.
    pub fn own_connections(&self) -> u32 {
        if self.connections_of.is_some() { 0 } else { self.connections }
    }

    /// Does it end of itself?
    pub const fn ends(&self) -> bool {
        self.trace.is_some() || self.lifetime.total.is_some()
    }

    /// Is an attempt to connect that failed one of its connections in all, so that no other is made for it? Then none is made before the
    /// schedule begins, either.
    pub fn counts_attempts(&self) -> bool {
        self.lifetime.total.is_some() && self.reconnect == Reconnect::Never
    }

    /// Does it ask for a reply to ops of this kind?
    pub const fn requests_reply(&self, kind: OpKind) -> bool {
        !self.noreply || kind.is_retrieval()
    }
}

/// When the measured window ends: whichever comes first. At least one is set, unless every class ends of itself, with a trace or
/// the lifetimes of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Length of the measured window, at most.
    pub time: Option<DurationNs>,
    /// Requests scheduled in the measured window, over all workers; every class gets its share.
    pub requests: Option<u64>,
    /// It ends earlier when enough is known.
    pub until: Option<EarlyStop>,
}

/// A window that ends at the first interim look at which its percentiles are precise enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyStop {
    /// What is to be known.
    pub until: Until,
    /// Length of the window at the first look; at most the window's. The others lie at its doublings.
    pub first_look: DurationNs,
}

/// All that reproduces a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The options that were given and at least the defaults that depend on the host, the protocol or another option: it resolves to this plan
    /// again. Each class has a table of its own.
    pub spec: PlanSpec,
    /// Every server that the run talks to, at least one, in the order in which reports name them.
    pub servers: Vec<Server>,
    /// Other hosts that carry it out, as they are named; none: this one does it all.
    pub agents: Vec<String>,
    /// The protocol.
    pub protocol: Protocol,
    /// User, password, database and connection name; of protocols that have them.
    pub login: Login,
    /// Redis: the bytes at the end of a key, from 1, that are the field of the hash that the rest of it names; of keys that are no more than
    /// one byte longer, nothing is.
    pub hash_field: Option<u32>,
    /// memcached's text protocol: command lines but those of retrievals end with a blank, as mcperf's do.
    pub trailing_blank: bool,
    /// Commands of the user's own, in the syntax of the protocol's codec; an op's `command` is a number among them.
    pub commands: Vec<Command>,
    /// What carries it.
    pub transport: Transport,
    /// Which addresses of servers are connected to.
    pub ip_version: IpVersion,
    /// What is asked of the sockets.
    pub sockets: SocketOptions,
    /// How TLS is spoken, where it is the transport.
    pub tls: TlsOptions,
    /// Which server an op goes to, where there are several.
    pub placement: Placement,
    /// The servers are nodes of one cluster, which say which node has which key: the nodes of the target are asked for the others.
    pub is_cluster: bool,
    /// Workers, at least 1; every class has at least one connection on each, to every server.
    pub threads: u32,
    /// The CPUs that workers are pinned to, in turn; none: wherever the kernel puts them.
    pub cpus: Vec<u32>,
    /// Kernel interface requested.
    pub io: IoChoice,
    /// How workers wait.
    pub wait: Wait,
    /// When free slots of a closed loop are used again.
    pub refill: Refill,
    /// How many completions a wait is for.
    pub gather: Gather,
    /// Time-out of a request, from sent; above 0.
    pub timeout: DurationNs,
    /// Time-out of an attempt to connect, from its beginning; above 0.
    pub connect_timeout: DurationNs,
    /// How long replies (and requests that were due in the window) are awaited after the measured window.
    pub drain: DurationNs,
    /// Load before the measured window, with the same schedule.
    pub warmup: Warmup,
    /// When the measured window ends.
    pub stop: Stop,
    /// Store every key, and see it stored, before measuring.
    pub preload: bool,
    /// Stores of the preload per second, at most, over all workers.
    pub preload_rate: Option<Rate>,
    /// Which part of the keys read is checked in full, and writes have versions for it; `None` checks as much of each value as
    /// costs little.
    pub verify: Option<Fraction>,
    /// Ask the servers for their statistics, on connections beside the workers'.
    pub server_stats: bool,
    /// Drives arrivals, op order and popularity.
    pub seed: u64,
    /// Belongs to the data set: key and value bytes are functions of it.
    pub data_seed: u64,
    /// How long the rows of tables over time are, a multiple of 100 ms; `None`: 1 s, and longer in long runs.
    pub interval: Option<DurationNs>,
    /// Quantities to meter.
    pub meters: Vec<MeterKind>,
    /// The percentiles to print, ascending; empty for the usual ones.
    pub percentiles: Vec<Quantile>,
    /// What the user calls the run by, each key once.
    pub labels: Vec<Label>,
    /// Whose clock readings are taken beside our own.
    pub timestamps: Timestamps,
    /// How many raw samples to keep at most, over all workers; 0 keeps none.
    pub samples_max: u64,
    /// Before the schedule one worker asks some requests one at a time, for the service time without load. Not an option: commands whose
    /// results use it ask for it.
    pub measures_unloaded: bool,
    /// At least one.
    pub classes: Vec<Class>,
}

/// A data set of a plan: what classes share that have equal keyspaces and store at the same servers.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet<'a> {
    /// Its keys and values.
    pub keyspace: &'a Keyspace,
    /// The classes that use it, at least one, of which the first preloads it.
    pub classes: Vec<usize>,
    /// Where it is stored; nothing: at the server that is started for the run.
    pub home: Vec<Option<ServerAddress>>,
    /// How many times preload stores each key: at every server, unless the key decides where it lives.
    pub copies: u64,
    /// How many servers each of those stores goes to.
    pub replicas: u32,
    /// It has a counter beside every key: ids from `keys` to `2 · keys − 1`, for incr and decr.
    pub has_counters: bool,
    /// Values grow by append and prepend, so that only their heads can be checked.
    pub extends: bool,
    /// Time to live that preload stores it with, in seconds.
    pub ttl_s: u32,
    /// Its keys are those of windows.
    pub windows: Option<ObjectWindows>,
}

/// The windows of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectWindows {
    /// Each of them.
    pub window: ObjectWindow,
    /// How many there are: one for each client.
    pub clients: u32,
    /// They are full before the schedule begins, because nothing in it fills them.
    pub are_prefilled: bool,
}

impl ObjectWindows {
    /// How many objects they hold together.
    pub fn objects(&self) -> u64 {
        u64::from(self.window.objects) * u64::from(self.clients)
    }
}

impl DataSet<'_> {
    /// How many ids there are: keys and counters.
    pub const fn ids(&self) -> u64 {
        if self.has_counters { self.keyspace.keys * 2 } else { self.keyspace.keys }
    }

    /// Preload stores the ids below this: all of them, but of windows only those that must be full.
    pub fn ids_preloaded(&self) -> u64 {
        match &self.windows {
            None => self.ids(),
            Some(windows) if windows.are_prefilled => windows.objects(),
            Some(_) => 0,
        }
    }

    /// How many keys the servers need room for.
    pub fn ids_held(&self) -> u64 {
        // What a window has let go stays until it is evicted.
        self.windows.as_ref().map_or(self.ids(), |windows| windows.objects().saturating_mul(2))
    }
}

impl Plan {
    /// The percentiles that are given, ascending: the usual ones, and those that were requested.
    pub fn quantiles(&self) -> Vec<Quantile> {
        let mut quantiles = [&Quantile::PRINTED[..], &self.percentiles].concat();
        quantiles.sort_unstable();
        quantiles.dedup();
        quantiles
    }

    /// The percentiles of tables: those that were requested, else the usual ones.
    pub fn shown_quantiles(&self) -> Vec<Quantile> {
        match self.percentiles.as_slice() {
            [] => Quantile::SHOWN.to_vec(),
            asked => asked.to_vec(),
        }
    }

    /// The percentiles that the status of a run speaks of, ascending: those that were requested or are a goal of `until`, else p50, p90 and p99.
    pub fn asked_quantiles(&self) -> Vec<Quantile> {
        let goals = self.stop.until.iter().flat_map(|look| look.until.precisions.iter());
        let mut asked: Vec<Quantile> = goals.map(|precision| precision.quantile).collect();
        asked.extend(&self.percentiles);
        if asked.is_empty() {
            asked = Quantile::SHOWN[..3].to_vec();
        }
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// Are attempts what is counted in every class, so that one this host has no room for, or that gets no answer, is a result?
    pub fn counts_attempts(&self) -> bool {
        self.classes.iter().all(Class::counts_attempts)
    }

    /// What an op is called in results.
    pub fn op_name(&self, op: OpId) -> OpName {
        name_of(&self.commands, op)
    }

    /// What a class sends, with weights, commands by their names.
    pub fn mix_text(&self, class: &Class) -> String {
        let of_command = |(index, weight): (usize, &u32)| {
            (*weight > 0).then(|| format!("{}={weight}", self.op_name(OpId::of_command(index))))
        };
        let text = |(kind, weight): &(OpKind, u32)| match kind {
            OpKind::Raw => class.mix.commands.iter().enumerate().filter_map(of_command).collect(),
            _ => vec![format!("{kind}={weight}")],
        };
        class.mix.weights.iter().flat_map(text).collect::<Vec<_>>().join(",")
    }

    /// The names of everything that the classes send, each once.
    pub fn op_names(&self) -> BTreeSet<OpName> {
        self.classes.iter().flat_map(Class::ops).map(|op| self.op_name(op)).collect()
    }

    /// The class whose connections a class uses, most often its own.
    pub fn connection_owner(&self, class: usize) -> usize {
        let name = self.classes[class].connections_of.as_ref();
        let owner = name.and_then(|name| self.classes.iter().position(|other| other.name == *name));
        owner.unwrap_or(class)
    }

    /// Do several classes use the connections of this one?
    pub fn shares_connections(&self, class: usize) -> bool {
        let owner = self.connection_owner(class);
        (0..self.classes.len()).any(|other| other != class && self.connection_owner(other) == owner)
    }

    /// Does any class write values, or store what it misses?
    pub fn writes(&self) -> bool {
        self.classes.iter().any(Class::writes)
    }

    /// Distinct data sets in the order of the classes, for preload.
    pub fn data_sets(&self) -> Vec<DataSet<'_>> {
        let mut distinct: Vec<DataSet<'_>> = Vec::new();
        for (index, class) in self.classes.iter().enumerate() {
            // What a trace asks for is no part of the data set.
            let is_drawn = class.trace.is_none();
            let (has_counters, extends) = (class.has_counters(), is_drawn && class.mix.extends());
            let stored_at = &class.path_of(OpKind::Set).servers;
            let home: Vec<_> =
                stored_at.iter().map(|server| self.servers[usize::from(*server)].address.clone()).collect();
            // A memcached and a Redis at one address would be two servers, but for the reference server, which is both.
            let is_resp = |class: &Class| class.protocol.is_resp();
            let is_same = |held: &DataSet<'_>| {
                let is_one_store =
                    home.contains(&None) || is_resp(&self.classes[held.classes[0]]) == is_resp(class);
                *held.keyspace == class.keyspace
                    && held.home == home
                    && held.replicas == class.replicas
                    && is_one_store
            };
            match distinct.iter_mut().find(|held| is_same(held)) {
                Some(held) => {
                    held.classes.push(index);
                    held.has_counters |= has_counters;
                    held.extends |= extends;
                }
                None => distinct.push(DataSet {
                    keyspace: &class.keyspace,
                    classes: vec![index],
                    copies: self.copies_at(class, home.len()),
                    home,
                    replicas: class.replicas,
                    has_counters,
                    extends,
                    ttl_s: class.ttl_s,
                    windows: self.windows_of(class),
                }),
            }
        }
        distinct
    }

    /// The windows of a class, where it has them.
    fn windows_of(&self, class: &Class) -> Option<ObjectWindows> {
        let window = *class.popularity.window()?;
        let clients = match class.sessions {
            SessionScope::Worker => self.workers_of(class).len() as u32,
            SessionScope::Connection => class.connections,
            SessionScope::Client { connections } => class.connections / connections,
        };
        Some(ObjectWindows { window, clients, are_prefilled: !class.mix.contains(OpKind::Set) })
    }

    /// How many times preload stores each key of a class with this number of servers.
    fn copies_at(&self, class: &Class, servers: usize) -> u64 {
        match self.placement {
            _ if self.is_cluster || self.placement.is_by_key() => 1,
            Placement::ByThread => servers.min(self.workers_of(class).len()) as u64,
            _ => servers as u64,
        }
    }

    /// How many servers hold each key that a class changes, and have to be told one by one.
    pub fn copies_of(&self, class: &Class) -> u64 {
        self.copies_at(class, class.path_of(OpKind::Delete).servers.len())
    }

    /// Stores that preload makes.
    pub fn preload_stores(&self) -> u64 {
        self.data_sets()
            .iter()
            .map(|set| set.ids_preloaded().saturating_mul(set.copies))
            .fold(0, u64::saturating_add)
    }

    /// How long preload takes at least, in nanoseconds, where it has a rate: with replicas a key is several stores.
    pub fn preload_ns(&self) -> Option<f64> {
        let stores =
            |set: &DataSet<'_>| set.ids_preloaded() as f64 * set.copies as f64 * f64::from(set.replicas);
        let stores: f64 = self.data_sets().iter().map(stores).sum();
        Some(stores / self.preload_rate?.as_f64() * 1e9)
    }

    /// Does any class run open loop, so that lateness of the client is an error of the measurement?
    pub fn has_open_loop(&self) -> bool {
        self.classes.iter().any(|class| matches!(class.load, Load::Open { .. }))
    }
}

impl Plan {
    /// Checks that a run of this plan reports the number.
    ///
    /// # Errors
    /// Why it does not, and what it reports instead; for a user.
    pub fn check_subject(&self, subject: &Subject) -> Result<(), String> {
        if let Some(quantile) = subject.percentile().filter(|quantile| !self.quantiles().contains(quantile)) {
            let names: Vec<String> = self.quantiles().iter().map(Quantile::to_string).collect();
            return Err(format!(
                "{quantile} is not reported: expected {}, or another one named in --percentiles",
                names.join(", ")
            ));
        }
        let sent = |class: &Class| {
            let ops =
                class.ops().into_iter().filter(|op| subject.op.is_none_or(|name| name == self.op_name(*op)));
            ops.map(|op| (op.kind(), class.requests_reply(op.kind()))).collect::<Vec<_>>()
        };
        let sent: Vec<(OpKind, bool)> = self.classes.iter().flat_map(sent).collect();
        if let (Some(op), true) = (subject.op, sent.is_empty()) {
            let names = self.op_names().into_iter().map(|name| name.to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(format!("operation '{op}' is not sent: expected {names}, or none for all requests"));
        }
        let (has_number, reason) = match subject.metric {
            Metric::Hit => {
                (sent.iter().any(|(kind, _)| kind.is_retrieval()), "only get, gets and mget hit or miss")
            }
            Metric::Response(_) | Metric::Service(_) | Metric::Client(_) | Metric::Rate => {
                (sent.iter().any(|(_, is_answered)| *is_answered), "no reply is requested (--noreply)")
            }
            Metric::Errors | Metric::Unsent => (true, ""),
        };
        if has_number {
            Ok(())
        } else {
            Err(format!(
                "'{subject}' is not reported, {reason}: expected errors, unsent or another operation"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::objective::Objective;
    use crate::resolve::tests::resolved;

    #[test]
    fn objectives_need_a_reported_number() {
        let table = [
            ("", "p99 < 1ms", ""),
            ("", "set.errors < 1%", ""),
            ("", "p75 < 1ms", "p75 is not reported: expected p50, p90, p95, p99,"),
            ("percentiles = '75,99.5'", "service.p99.5 < 1ms", ""),
            ("percentiles = '75,99.5'", "p95 < 1ms", ""),
            ("percentiles = '75,99.5'", "p98 < 1ms", "p98 is not reported: expected p50, p75,"),
            ("", "mget.p99 < 1ms", "operation 'mget' is not sent: expected get, set, or none"),
            ("", "set.hit > 0", "'set.hit' is not reported, only get, gets and mget hit or miss: expected"),
            ("mix = 'set'", "hit > 0", "'hit' is not reported, only get, gets and mget hit or miss"),
            ("mix = 'get'", "set.p99 < 1ms", "operation 'set' is not sent: expected get, or none"),
            ("mix = 'get'\non-miss = 'set'", "set.p99 < 1ms", ""),
            (
                "noreply = true",
                "set.p99 < 1ms",
                "'set.p99' is not reported, no reply is requested (--noreply)",
            ),
            (
                "noreply = true",
                "set.rate > 1",
                "'set.rate' is not reported, no reply is requested (--noreply)",
            ),
            ("noreply = true", "p99 < 1ms", ""),
            ("noreply = true", "set.unsent <= 0", ""),
        ];
        for (plan, objective, expected) in table {
            let plan = resolved(plan).unwrap();
            let found = plan
                .check_subject(&objective.parse::<Objective>().unwrap().subject)
                .err()
                .unwrap_or_default();
            assert!(
                found.starts_with(expected) && found.is_empty() == expected.is_empty(),
                "{objective}: {found}"
            );
        }
    }
}
