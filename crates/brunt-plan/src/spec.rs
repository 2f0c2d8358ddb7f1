//! The options of a run as given on the command line or in a plan file, without defaults, and the flag of each.
//!
//! Flags and file use the same names and value types; [`PlanSpec::overlay`] lets flags win. Defaults and checks between
//! options are in [`crate::resolve`], which adds to the specification in the plan the defaults that depend
//! on the host, the protocol or another option.

use crate::arrival::{Arrival, RateProfile};
use crate::choice::{
    Gather, HostRole, IoChoice, IpVersion, KeyForm, MeterKind, OnMiss, Placement, Protocol, Reconnect,
    Refill, Timestamps, TraceLayout, TraceOrder, TraceRepeat, Transport, ValueForm, Wait,
};
use crate::cpus::CpuList;
use crate::label::Label;
use crate::login::Password;
use crate::mix::{CommandSpec, Mix};
use crate::objective::Fraction;
use crate::op::OpKind;
use crate::popularity::{Drift, Popularity};
use crate::quantile::Percentiles;
use crate::server::ServerAddress;
use crate::size::SizeDistribution;
use crate::time_law::TimeLaw;
use crate::trace_identity::TraceIdentity;
use crate::units::{Count, DurationNs, Rate};
use crate::until::Until;
use crate::url::ServerList;
use crate::warmup::Warmup;
use serde::{Deserialize, Deserializer, Serialize, de};
use toml::{Table, Value};

/// Every worker keeps histograms, and every one may be a host.
pub(crate) const WORKERS_MAX: u32 = 1024;

/// Declares each option once: key, type and flag. From that come the two tables with their overlay, the shape of a plan
/// file, in which both are at the top level, and [`OPTIONS`]. (`#[serde(flatten)]` would be shorter, but it cannot be
/// combined with `deny_unknown_fields`, and it loses the position of an error.)
macro_rules! options {
    (
        files $files:literal class { $($filed:ident: $filed_type:ty = $filed_key:expr),+ $(,)? }
        $(flags $heading:literal
            run { $($run:ident: $run_type:ty = $run_flag:expr),* $(,)? }
            class { $($class:ident: $class_type:ty = $class_flag:expr),* $(,)? })+
        only_class { $($own:ident: $own_type:ty),+ $(,)? }
    ) => {
        options!(@table
            "The options that belong to the run as a whole." RunSpec { $($($run: $run_type,)*)+ });
        options!(@table
            "The options that belong to a class of traffic. At the top level of a plan file those that the run has none of are the defaults of every class."
            ClassSpec { $($filed: $filed_type,)+ $($($class: $class_type,)*)+ $($own: $own_type,)+ });

        /// The options that are flags or keys, in the order of the help.
        pub static OPTIONS: &[PlanOption] = &[
            $($(PlanOption { field: stringify!($run), heading: $heading, ..$run_flag },)*
            $(PlanOption { field: stringify!($class), heading: $heading, ..$class_flag },)*)+
            $(PlanOption { field: stringify!($filed), heading: $files, ..$filed_key.only_key() },)+
        ];

        /// The shape of a plan file.
        #[derive(Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        struct PlanFile {
            $($(#[serde(skip_serializing_if = "Option::is_none")] $run: Option<$run_type>,)*)+
            $(#[serde(skip_serializing_if = "Option::is_none")] $filed: Option<$filed_type>,)+
            $($(#[serde(skip_serializing_if = "Option::is_none")] $class: Option<$class_type>,)*)+
            #[serde(rename = "class", skip_serializing_if = "Vec::is_empty")]
            classes: Vec<ClassSpec>,
        }

        impl From<PlanFile> for PlanSpec {
            fn from(file: PlanFile) -> Self {
                Self {
                    run: RunSpec { $($($run: file.$run,)*)+ },
                    base: ClassSpec {
                        $($filed: file.$filed,)+
                        $($($class: file.$class,)*)+
                        ..ClassSpec::default()
                    },
                    classes: file.classes,
                }
            }
        }

        impl From<PlanSpec> for PlanFile {
            fn from(spec: PlanSpec) -> Self {
                Self {
                    $($($run: spec.run.$run,)*)+
                    $($filed: spec.base.$filed,)+
                    $($($class: spec.base.$class,)*)+
                    classes: spec.classes,
                }
            }
        }
    };
    (@table $doc:literal $name:ident { $($field:ident: $type:ty,)+ }) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        #[allow(missing_docs, reason = "the fields are the flags of the same names, documented in the help")]
        pub struct $name {
            $(#[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)+
        }

        impl $name {
            /// The names of all options, as flags have them.
            pub fn names() -> Vec<String> {
                vec![$(stringify!($field).replace('_', "-")),+]
            }
            /// Lets every option that `over` gives replace ours.
            pub fn overlay(&mut self, over: Self) {
                $(if over.$field.is_some() { self.$field = over.$field; })+
            }
            /// The names of the options that are given.
            pub fn given(&self) -> Vec<String> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push(stringify!($field).replace('_', "-")); })+
                names
            }

            /// Moves what is given of these options, separated by commas, into a specification of its own.
            pub fn take(&mut self, options: &str) -> Self {
                let mut taken = Self::default();
                for option in options.split(", ") {
                    match option.replace('-', "_").as_str() {
                        $(stringify!($field) => taken.$field = self.$field.take(),)+
                        _ => {}
                    }
                }
                taken
            }
        }
    };
}

options! {
    files "Class" class {
        name: String = text("NAME", "Name of the class in reports, e.g. reads [default: main; of several class-1, class-2 ...]"),
        purge: Count = text("N", "After half of --requests delete all keys but those whose number is a multiple of this, e.g. 10 [default: none]"),
        trace: String = text("FILE", "Send the requests of this file, plain, .zst or .gz, e.g. trace.csv; the load says when; agents have it by brunt agent --trace [default: none]"),
        trace_layout: TraceLayout = text("LAYOUT", "How a trace is written, e.g. twitter [default: what the file says of itself, which meta and monitor do]").words(&TraceLayout::NAMES),
        trace_order: TraceOrder = text("ORDER", "What of a trace stays in order: keys (all records of a key on one connection) or lines (the next free connection takes the next line) [default: keys]").words(&TraceOrder::NAMES),
        trace_speed: Rate = text("SPEED", "With --replay: seconds of the trace per second, e.g. 10 or 0.5 [default: 1]"),
        trace_sample: Fraction = text("FRACTION", "With --replay: the part of the keys that is sent, by their hash, e.g. 10% [default: 100%]"),
        trace_copies: Count = text("N", "With --replay: send each record as often, each time with another key, e.g. 4 [default: 1]"),
        trace_repeat: TraceRepeat = text("HOW", "With --replay: what follows the end of the trace: once (nothing), same-keys or new-keys (the trace again); requires --time or --requests [default: once]").words(&TraceRepeat::NAMES),
        trace_gets: bool = switch("With --replay: send every record as a get, as simulators of caches do"),
        trace_warmup_speed: Rate = text("SPEED", "With --replay: seconds of the trace per second of --warmup, e.g. 100 [default: trace-speed]"),
        trace_preload: bool = switch("With --replay: instead of it store what it finds at its beginning, as fast as connections allow: each key whose first record is a retrieval that tells the length of its value"),
        runs_on: HostRole = text("HOST", "With --agent: who runs the class, agents or controller [default: agents]").words(&HostRole::NAMES),
    }
    flags "Target" run {
        server: ServerList = list("ADDRESS", "Server (repeatable): HOST[:PORT], unix:PATH or URL, e.g. cache:11211, unix:/run/cache.sock, rediss://me:pw@cache/1; without a scheme and --protocol the server is asked what it speaks [default: a reference server started for the run]").short('s'),
        protocol: Protocol = text("PROTOCOL", "memcached-text, memcached-meta, memcached-binary, resp2, resp3, resp-inline, echo, ping or thrift [default: from --server, or as the server answers]").words(&Protocol::NAMES),
        cluster: bool = switch("Redis, Valkey: servers are nodes of one cluster; use its slot map"),
        placement: Placement = text("RULE", "Several servers: how an operation's server is chosen: modulo, ketama, ketama-weighted (by key), round-robin, random or by-thread [default: modulo]").words(&Placement::NAMES),
    } class {
        replicas: Count = text("N", "Several servers: number of servers that store each key, e.g. 2; a retrieval asks one of them [default: 1]"),
    }
    flags "Target" run {
        password: Password = text("PASSWORD|@FILE", "Password, or @FILE for a file's first line, e.g. @redis.pw; arguments are visible in ps [default: none]"),
        tls_ca: String = text("FILE", "TLS: trusted CA certificates (PEM), e.g. ca.pem [default: system CAs]"),
        tls_cert: String = text("FILE", "TLS: client certificate chain (PEM), e.g. client.pem [default: none]"),
        tls_key: String = text("FILE", "TLS: private key of --tls-cert (PEM), e.g. client.key"),
        tls_server_name: String = text("NAME", "TLS: name for SNI and verification, e.g. cache.example [default: host of --server]"),
        tls_insecure: bool = switch("TLS: do not verify server certificates"),
        user: String = text("NAME", "User name (Redis; memcached-binary: SASL), e.g. reader, as in -s redis://reader@HOST; requires --password [default: server's default user]").only_key(),
        database: Count = text("N", "Redis: database number, e.g. 3 [default: 0]").only_key(),
        transport: Transport = text("TRANSPORT", "tcp, unix, tls or udp [default: from --server]").words(&Transport::NAMES).only_key(),
        ip_version: IpVersion = text("VERSION", "IP version to connect with: 4, 6 or any [default: any]").words(&IpVersion::NAMES).only_key(),
        client_name: String = text("NAME", "Redis: name in CLIENT LIST, e.g. brunt [default: none]").only_key(),
        hash_field: Count = text("BYTES", "Redis: HGET, HSET, HDEL; the last BYTES of a key, e.g. 4, are the field, the rest the hash [default: off]").only_key(),
        trailing_blank: bool = switch("memcached-text: end command lines except retrievals with a blank, as mcperf does; cas needs no gets, and sends the unique 1").only_key(),
        nodelay: bool = switch_off("TCP, TLS: leave Nagle's algorithm on").only_key(),
        linger: DurationNs = text("DURATION", "TCP, TLS: longest wait for acknowledgements when a connection is closed, in whole seconds, e.g. 5s; 0s resets it (SO_LINGER) [default: no wait]").only_key(),
        send_buffer: Count = text("BYTES", "Send buffer of a connection, e.g. 4096 (SO_SNDBUF) [default: the host's]").only_key(),
        receive_buffer: Count = text("BYTES", "Receive buffer of a connection, e.g. 16384 (SO_RCVBUF) [default: the host's]").only_key(),
        connect_timeout: DurationNs = text("DURATION", "Time limit of connecting, e.g. 500ms [default: as --timeout]").only_key(),
    } class {}
    flags "Load" run {} class {
        connections: Count = text("N", "Connections in all [default: 16]").short('c'),
        depth: Count = text("N", "Requests in flight on one connection at most [default: 1]"),
        rate: Rate = text("RATE", "Open loop: requests per second in all, e.g. 200k [default: none, closed loop]").short('r'),
        replay: bool = switch("Open loop: send a trace (--set trace=FILE) at the times of its records"),
    }
    flags "Load" run {
        time: DurationNs = text("DURATION", "Length of the measured window; with --until, the minimum [default: 10s; no limit with --requests or connections-total]").short('t'),
        requests: Count = text("N", "Requests to measure, all connections together, e.g. 100k [default: no limit]").short('n'),
        threads: Count = text("N", "Worker threads, e.g. 4 [default: the CPUs allowed, or one less, at least 1, if the server is on this host]").short('T'),
        cpus: CpuList = text("LIST", "CPUs to pin the workers to, e.g. 0-3,5 [default: not pinned]"),
        warmup: Warmup = text("DURATION|auto", "Load before the measured window, e.g. 5s; auto: until latency is level, 1 s to 60 s, ended by failures [default: 1s; 0s with connections-total]").words(&["auto"]),
    } class {
        think: DurationNs = text("DURATION", "Closed loop: pause between a reply and the next request, e.g. 5ms [default: 0s]"),
        arrival: Arrival = text("ARRIVAL", "Open loop: arrival process: poisson, uniform, another distribution, or @FILE [default: poisson]").or_file(),
        rate_profile: RateProfile = PlanOption { excludes: Some("rate"), ..text("POINTS", "Open loop: rate over time, or @FILE; 0s=1k,30s=50k,30s=10k is a ramp over 30 s and a step down").or_file() },
    }
    flags "Load" run {
        timeout: DurationNs = text("DURATION", "Time limit of a reply [default: 10s; UDP 1s]"),
        until: Until = text("LIST", "Run until half a confidence interval is at most this fraction of its percentile, e.g. p99=2% or p50=1%,get.p99.9=5%,max=30m; checked at --time, 2x, 4x, ... up to max [default: max=10m]; in a search max alone, of each step [default: max=30s]"),
        seed: Count = text("N", "Seed of arrivals, operations and key choice, e.g. 42; the same seed repeats a run [default: random, printed]"),
    } class {
        client_connections: Count = text("N", "Connections of one client, e.g. 4: it has --depth requests in flight, on its connections in turn [default: no clients, all connections are alike]").only_key(),
    }
    flags "Load" run {
        drain: DurationNs = text("DURATION", "Wait for replies after the window, e.g. 500ms [default: as --timeout]").only_key(),
    } class {}
    flags "Data" run {} class {
        mix: Mix = text("OP=WEIGHT,...", "Operations by weight: get gets mget set add replace append prepend cas incr decr delete touch raw; get=9,raw=3+1 weights two --command [default: get=9,set=1]"),
    }
    flags "Data" run {
        command: Vec<CommandSpec> = list("[NAME@WEIGHT=]TEMPLATE", "Custom command (repeatable), e.g. 'HSET h:{key} f {value}', thrift: 'add 1:i32={random}'; weighted by raw in --mix, or named and weighted: 'HGET@7=HGET h {key}'"),
    } class {
        keys: Count = text("N", "Number of keys [default: 100000]"),
        key_size: SizeDistribution = text("SIZES", "Bytes of a key with its prefix: 30, uniform:20,40, another distribution, or @FILE [default: 30; more as needed]").or_file(),
        value_size: SizeDistribution = text("SIZES", "Bytes of a value: 200, 4KiB, uniform:10,1KiB, another distribution, or @FILE [default: 200]").or_file(),
        popularity: Popularity = text("LAW", "Key popularity: zipf:0.99, window:10k,overwrite=0.2, or another distribution [default: uniform]"),
        prefix: String = text("TEXT", "First bytes of every key, e.g. user:, or none by --prefix= [default: brunt:; none with a trace or where the shortest key has no room]"),
        multiget: Count = text("N", "Keys in each mget [default: 10]"),
        ttl: DurationNs = PlanOption { allows_hyphen: true, ..text("DURATION", "Time to live of stored values, in whole seconds, e.g. 60s; 0: no expiry [default: 0]") },
        on_miss: OnMiss = text("ACTION", "After a miss: ignore or set [default: ignore]").words(&OnMiss::NAMES),
        miss_delay: TimeLaw = text("TIME", "With --on-miss set: time from a miss to its set, as of a database, e.g. 5ms, uniform:1ms,9ms or exp:5ms (mean); misses of keys whose set is outstanding are counted [default: none]").only_key(),
        noreply: bool = switch("Send writes without requesting a reply"),
    }
    flags "Data" run {
        verify: Fraction = PlanOption { alone: Some("100%"), ..text("FRACTION", "Check every byte, staleness, expiry and loss of all keys read, or of a fraction, e.g. --verify=10%") },
        preload: bool = switch_off("Do not store the data set first; only values that brunt wrote are then checked"),
    } class {
        drift: Drift = PlanOption { allows_hyphen: true, ..text("DRIFT", "Shift of the hot keys: KEYS/DURATION, e.g. 1000/10s [default: none]") },
        delta: SizeDistribution = text("SIZES", "Change by incr and decr, e.g. 5, uniform:1,9, another distribution, or @FILE [default: 1]").or_file().only_key(),
        key_form: KeyForm = text("FORM", "Rest of a key: decimal (its number, zero-padded), hex8 (eight hexadecimal digits) or random (letters and digits); with windows memaslap or memaslap-printable [default: decimal]").words(&KeyForm::NAMES).only_key(),
        first_key: Count = text("N", "Number of the first key, e.g. 1 [default: 0]").only_key(),
        value_form: ValueForm = text("FORM", "Bytes in values: random (derived from the key) or zeros, which are numbers for incr and decr [default: random]").words(&ValueForm::NAMES).only_key(),
    }
    flags "Data" run {
        data_seed: Count = text("N", "Seed of key and value contents, e.g. 7 [default: 1]").only_key(),
        preload_rate: Rate = text("RATE", "Stores per second of the preload, e.g. 100k [default: 20k of a run whose server is not on this host, else no limit]").only_key(),
    } class {}
    flags "Connections" run {} class {
        calls_per_connection: Count = text("N", "Requests on a connection before it is closed and replaced, e.g. 100 [default: no limit]"),
        connect_rate: Rate = text("RATE", "Rate of opening connections, e.g. 100/s, while fewer than --connections are open [default: all at once]"),
        reconnect_every: DurationNs = text("DURATION", "Age at which a connection is closed and replaced, e.g. 30s [default: never]"),
        connect_arrival: Arrival = text("ARRIVAL", "Arrival process of --connect-rate, e.g. poisson, another distribution, or @FILE [default: uniform]").or_file().only_key(),
        call_rate: Rate = text("RATE", "Open loop of each connection: its requests per second from when it is open, e.g. 1k [default: none]").only_key(),
        call_arrival: Arrival = text("ARRIVAL", "Arrival process of call-rate, e.g. poisson, another distribution, or @FILE [default: uniform]").or_file().only_key(),
        connections_total: Count = text("N", "Connections opened in all, e.g. 10k; the run ends with the last [default: no limit]").only_key(),
        reconnect: Reconnect = text("WHEN", "Replacement of a lost connection: always, while-one-stands or never; with connections-total never counts attempts, failed ones too [default: always]").words(&Reconnect::NAMES).only_key(),
    }
    flags "Engine" run {
        peak: bool = switch("Most requests per CPU: send and receive in batches (refill=batch, gather=8) instead of each request at once"),
        io: IoChoice = text("IO", "Kernel interface: auto, epoll or uring [default: auto]").words(&IoChoice::NAMES),
        wait: Wait = text("WAIT", "How to wait: hybrid (sleep, but poll before sends and while replies are expected), spin (poll, a CPU per worker) or sleep (least CPU; wake-ups are in the latencies) [default: hybrid]").words(&Wait::NAMES),
        refill: Refill = text("REFILL", "Closed loop: refill slots eager (each at once) or batch (whole pipeline) [default: eager; with --peak batch]").words(&Refill::NAMES).only_key(),
        gather: Gather = text("N|DURATION", "Completions or time to wait for, or both, e.g. 8, 50us or 8,50us; due requests are not delayed [default: 1; with --peak 8]").only_key(),
        timestamps: Timestamps = text("SOURCE", "Kernel timestamps on sampled requests, by which the client's part of latencies is estimated (client ~): auto (some connections, where the kernel takes them), off (an upper bound by clock readings, client <=) or kernel (all connections) [default: auto]").words(&Timestamps::NAMES).only_key(),
    } class {}
    flags "Several hosts" run {
        agent: Vec<String> = list("HOST[:PORT]", "Agent host (repeatable), e.g. load1 or load1:5556; this host then only controls, unless --measure-* is given"),
        fleet: Count = text("N", "Load from N agents that dial this host at --listen (brunt agent --join), e.g. 8, each with a rank of Slurm, Kubernetes or another engine"),
        tolerate_lost: Count = text("K", "Judge a run without INVALID for up to K agents lost after its start, whose load is missing from then on, e.g. 1 [default: 0]"),
        measure_rate: Rate = text("RATE", "Requests per second measured from this host beside the agents' load, e.g. 1k [default: closed loop]"),
        measure_connections: Count = text("N", "Connections measured from this host beside the agents' load, e.g. 4 [default: 1]").only_key(),
        measure_depth: Count = text("N", "Requests in flight on each of these connections, e.g. 8 [default: 1]").only_key(),
    } class {}
    flags "Results" run {
        percentiles: Percentiles = text("LIST", "Percentiles to report, with intervals and for assertions, e.g. 50,75,90,99.9 [default: 50,90,99,99.9,99.99]"),
        label: Vec<Label> = list("KEY=VALUE", "Label of the run in its results (repeatable), e.g. commit=3f2a"),
        interval: DurationNs = text("DURATION", "Length of the rows over time (-o x.csv, x.json), a multiple of 100ms, e.g. 500ms; longer where they were more than 3000, but in -o x.ndjson [default: 1s; longer in runs of more than 2 min]"),
        meter: Vec<MeterKind> = list("QUANTITY", "Extra histogram, e.g. connect-time, or a list, as ['hit-time', 'miss-time']: outstanding, request-size, response-size, value-received, connect-time, connection-time, first-byte, hit-time, miss-time, oversleep, send-cost; tls: handshake-time; with kernel timestamps: stack-out, wire-and-server, stack-in, without-client").words(&MeterKind::NAMES).only_key(),
        samples_max: Count = text("N", "Raw samples kept at most for -o samples, e.g. 100000 [default: 1000000 with -o samples]").only_key(),
        server_stats: bool = switch_off("Do not poll server stats, which are reported and compared with brunt's counts").only_key(),
    } class {}
    only_class {
        server: ServerList,
        protocol: Protocol,
        transport: Transport,
        command: Vec<CommandSpec>,
        route: Vec<RouteSpec>,
        connections_of: String,
    }
}

impl RunSpec {
    /// Do other hosts carry the run out?
    pub fn has_agents(&self) -> bool {
        self.fleet.is_some() || self.agent.as_ref().is_some_and(|agents| !agents.is_empty())
    }

    /// The other hosts as they are named: those that dial in, by their ranks.
    pub fn agents(&self) -> Vec<String> {
        // One more than there may be is refused.
        let ranks = 0..self.fleet.map_or(0, |fleet| fleet.0.min(u64::from(WORKERS_MAX) + 1));
        self.agent.iter().flatten().cloned().chain(ranks.map(|rank| format!("rank-{rank}"))).collect()
    }
}

/// A way of its own for some kinds of operations of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RouteSpec {
    /// Which kinds.
    pub ops: Vec<OpKind>,
    /// To which servers; none: the class's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerList>,
    /// By what; none: what carries the class's other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
}

/// A whole plan as the user gave it, before defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(into = "PlanFile")]
pub struct PlanSpec {
    /// Options of the run.
    pub run: RunSpec,
    /// Class options at the top level: defaults of every class.
    pub base: ClassSpec,
    /// `[[class]]` tables; empty means one class made of `base` alone.
    pub classes: Vec<ClassSpec>,
}

/// By way of a table, so that the reader of all keys is compiled once, not for every format.
impl<'de> Deserialize<'de> for PlanSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let file = PlanFile::deserialize(Table::deserialize(deserializer)?);
        file.map(Self::from).map_err(de::Error::custom)
    }
}

impl PlanSpec {
    /// Reads a plan file. The error is ready for a user: it shows the line and column, and what is accepted there; the line
    /// itself only where no password can be in it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str::<PlanFile>(text).map(Self::from).map_err(|error| explain(&error, text))
    }

    /// Writes a plan file that reads back as this.
    pub fn to_toml(&self) -> String {
        // Serialising into a string fails on types that TOML lacks only, and this shape has none of them.
        toml::to_string(&PlanFile::from(self.clone())).unwrap_or_else(|error| format!("# {error}\n"))
    }

    /// Its lists of servers, each with its option.
    pub fn server_lists(&self) -> impl Iterator<Item = (&'static str, &ServerList)> {
        let classes = || self.classes.iter().chain([&self.base]);
        let of_classes = classes().filter_map(|class| class.server.as_ref());
        let routes = classes().filter_map(|class| class.route.as_ref()).flatten();
        let servers = self.run.server.iter().chain(of_classes).map(|list| ("server", list));
        servers.chain(routes.filter_map(|route| Some(("route", route.server.as_ref()?))))
    }

    /// The first option that names a file, which an agent would open; a trace that tells its contents names none.
    pub fn first_file(&self) -> Option<&'static str> {
        let RunSpec { password, tls_ca, tls_cert, tls_key, .. } = &self.run;
        let mut classes = self.classes.iter().chain([&self.base]);
        let is_path = |trace: &String| trace.parse::<TraceIdentity>().is_err();
        let named = [
            ("tls-ca", tls_ca.is_some()),
            ("tls-cert", tls_cert.is_some()),
            ("tls-key", tls_key.is_some()),
            ("password", password.as_ref().is_some_and(|password| password.unread().is_some())),
            ("trace", classes.any(|class| class.trace.as_ref().is_some_and(is_path))),
        ];
        let has_socket = |list: &ServerList| list.addresses().any(ServerAddress::is_unix);
        let sockets = self.server_lists().map(|(option, list)| (option, has_socket(list)));
        named.into_iter().chain(sockets).find_map(|(option, is_file)| is_file.then_some(option))
    }

    /// Lets the flags win over a plan file. Class options on the command line change the only class there is; with
    /// several `[[class]]` tables they would be ambiguous. Those of a class that is named change that one.
    ///
    /// # Errors
    /// For a user: which options are ambiguous, or which class there is not.
    pub fn overlay(&mut self, flags: Self) -> Result<(), String> {
        let class = flags.base;
        if flags.run.preload == Some(false) {
            // A printed plan has the rate of its preload.
            self.run.preload_rate = None;
        }
        self.run.overlay(flags.run);
        match self.classes.as_mut_slice() {
            [] => self.base.overlay(class),
            [only] => only.overlay(class),
            _ if class.given().is_empty() => {}
            _ => {
                let given: Vec<String> = class.given().iter().map(|option| flag(option)).collect();
                return Err(format!(
                    "{}: the plan has several classes: set the same key inside the [[class]] it is meant for, or by --set class.NAME.KEY=VALUE",
                    given.join(" ")
                ));
            }
        }
        for named in flags.classes {
            let Some(class) = self.classes.iter_mut().find(|class| class.name == named.name) else {
                let name = named.name.unwrap_or_default();
                let names = self.classes.iter().filter_map(|class| class.name.as_deref());
                let names = names.chain(self.classes.is_empty().then_some("--set KEY=VALUE"));
                let accepted = names.collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "--set class.{name}: the plan has no [[class]] of this name: expected {accepted}"
                ));
            };
            class.overlay(named);
        }
        Ok(())
    }
}

impl PlanOption {
    /// Checks a value.
    ///
    /// # Errors
    /// What is accepted.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let text = Value::from(text);
        let value = if self.form == OptionForm::List { Value::Array(vec![text]) } else { text };
        let plan = Table::from_iter([(self.key(), value)]);
        plan.try_into::<PlanSpec>().map(drop).map_err(|error| error.message().to_owned())
    }
}

/// What a line may hold that gives a password, its name misspelt or not, in lower case. Too much hidden is a pity, too little a
/// password in a log.
const SECRET_MARKS: [&str; 8] = ["@", "pas", "pss", "psw", "pw", "word", "wrd", "secret"];

/// What is wrong with a plan file, for a user: with the line, unless that may hold a password.
fn explain(error: &toml::de::Error, text: &str) -> String {
    let begin = error.span().map_or(0, |span| text.floor_char_boundary(span.start));
    let (before, behind) = text.split_at(begin);
    let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
    // A value of several lines is named in its first.
    let named = before[..line_begin].rfind('=').filter(|_| !line_of(text, line_begin).contains('='));
    let shown_begin = named.map_or(line_begin, |equals| text[..equals].rfind('\n').map_or(0, |end| end + 1));
    let end = behind.find('\n').map_or(text.len(), |len| begin + len);
    let shown = &text[shown_begin..end];
    let lower = shown.to_lowercase();
    if !SECRET_MARKS.iter().any(|mark| lower.contains(mark)) {
        return error.to_string();
    }
    let message = error.message();
    // The expectation is last and is brunt's text; the part before it quotes the user, but for the name of an option.
    let kept = match message.rfind("expected ") {
        _ if message.starts_with("unknown field `") && !message.contains('@') => message,
        Some(at) if !shown.contains(message[at..].trim_start_matches("expected ")) => &message[at..],
        _ => "not understood",
    };
    let (line, column) = (before.matches('\n').count() + 1, text[line_begin..begin].chars().count() + 1);
    format!("at line {line}, column {column}, which is not shown because a password may be in it: {kept}\n")
}

/// The line that begins here.
fn line_of(text: &str, begin: usize) -> &str {
    text[begin..].lines().next().unwrap_or_default()
}

/// How often a flag is given, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// Once, with a value.
    Text,
    /// Repeatedly, with a value each.
    List,
    /// Without a value: sets the option to this. `--no-...` if false.
    Switch(bool),
}

/// An option of plans and its flag.
#[derive(Clone, Copy, Debug)]
pub struct PlanOption {
    /// The field of the specification.
    pub field: &'static str,
    /// The section of the help.
    pub heading: &'static str,
    /// Does it have a flag, rather than a key alone?
    pub has_flag: bool,
    /// The flag of one letter.
    pub short: Option<char>,
    /// How often, and with what.
    pub form: OptionForm,
    /// The placeholder of the value.
    pub value_name: &'static str,
    /// The words that its value is one of, for shells to complete; its type decides whether it accepts other texts, too.
    pub words: &'static [&'static str],
    /// The value of the flag without one.
    pub alone: Option<&'static str>,
    /// Is `@FILE` accepted?
    pub is_or_file: bool,
    /// May a value begin with a hyphen?
    pub allows_hyphen: bool,
    /// The option that it cannot be used with.
    pub excludes: Option<&'static str>,
    /// What it sets, its format, an example, its default.
    pub help: &'static str,
}

/// An option with one value.
pub(crate) const fn text(value_name: &'static str, help: &'static str) -> PlanOption {
    PlanOption {
        field: "",
        heading: "",
        has_flag: true,
        short: None,
        form: OptionForm::Text,
        value_name,
        words: &[],
        alone: None,
        is_or_file: false,
        allows_hyphen: false,
        excludes: None,
        help,
    }
}

/// An option with a list of values, one for each time that its flag is given.
pub(crate) const fn list(value_name: &'static str, help: &'static str) -> PlanOption {
    PlanOption { form: OptionForm::List, ..text(value_name, help) }
}

/// An option that its flag switches on.
pub(crate) const fn switch(help: &'static str) -> PlanOption {
    PlanOption { form: OptionForm::Switch(true), ..text("", help) }
}

/// An option that its flag, `--no-...`, switches off.
pub(crate) const fn switch_off(help: &'static str) -> PlanOption {
    PlanOption { form: OptionForm::Switch(false), ..text("", help) }
}

impl PlanOption {
    pub(crate) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    pub(crate) const fn words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    pub(crate) const fn or_file(self) -> Self {
        Self { is_or_file: true, ..self }
    }

    /// It is set in plan files, or by `--set`, alone.
    pub(crate) const fn only_key(self) -> Self {
        Self { has_flag: false, ..self }
    }

    /// The key in a plan file.
    pub fn key(&self) -> String {
        self.field.replace('_', "-")
    }

    /// The flag, without dashes in front.
    pub fn flag(&self) -> String {
        let no = if self.form == OptionForm::Switch(false) { "no-" } else { "" };
        format!("{no}{}", self.key())
    }
}

/// The option as a flag, or as a key where it has no flag.
pub(crate) fn flag(option: &str) -> String {
    let key = option.split(' ').next().unwrap_or(option);
    let is_flag = |known: &PlanOption| known.has_flag && (known.flag() == key || known.key() == key);
    if OPTIONS.iter().any(is_flag) { format!("--{option}") } else { option.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever option takes the path of a file: none that is read escapes [`PlanSpec::first_file`]. What is a free text has no file.
    #[test]
    fn options_that_name_files_are_known() {
        let texts = [
            "agent",
            "client-name",
            "command",
            "connections-of",
            "label",
            "name",
            "password",
            "prefix",
            "server",
            "tls-server-name",
            "user",
        ];
        let mut keys = RunSpec::names();
        keys.extend(ClassSpec::names());
        let mut found = Vec::new();
        for key in keys {
            for place in ["", "[[class]]\n"] {
                for value in [
                    "'/proc/kmsg'",
                    "'@/proc/kmsg'",
                    "'unix:/proc/kmsg'",
                    "['/proc/kmsg']",
                    "['unix:/proc/kmsg']",
                ] {
                    let Ok(spec) = PlanSpec::from_toml(&format!("{place}{key} = {value}")) else { continue };
                    match spec.first_file() {
                        Some(option) => found.push(option),
                        None => assert!(texts.contains(&key.as_str()), "{key} = {value}"),
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, ["password", "server", "tls-ca", "tls-cert", "tls-key", "trace"]);
        let route = "[[class]]\nroute = [{ ops = ['get'], server = 'unix:/run/x' }]";
        assert_eq!(PlanSpec::from_toml(route).unwrap().first_file(), Some("route"));
    }

    #[test]
    fn plan_file_errors_hide_passwords() {
        // (plan, where, what else is said)
        let table = [
            ("password = [12345]", "line 1, column 12", ""),
            ("\npasword = 'hunter2'", "line 2, column 1", "unknown field `pasword`"),
            ("password = 'hunter2", "line 1", ""),
            ("password = '''\nhunter2", "line ", ""),
            ("keys = 1\nserver = ['redis://me:hunter2@a', 'x y']", "line 2, column ", "expected HOST[:PORT]"),
            ("server = 'me:hunter2@a' 1", "line 1", ""),
        ];
        for (toml, place, said) in table {
            let error = PlanSpec::from_toml(toml).unwrap_err();
            assert!(!error.contains("hunter2") && !error.contains("12345"), "{toml}: {error}");
            assert!(error.contains(place) && error.contains(said), "{toml}: {error}");
        }
        let error = PlanSpec::from_toml("rate = 5\nkeyz = 7").unwrap_err();
        assert!(error.contains("2 | keyz = 7"), "{error}");
    }
}
