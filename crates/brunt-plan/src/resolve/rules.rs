//! The rules between options: which require each other, which conflict, and what a value is held against.
//!
//! Plain rules are rows of tables; what has to be computed is in functions. Invariant: rules only refuse a plan, which is complete
//! without them, and its own options printed and read again pass them.

use super::case::{Case, Given};
use super::error::{ErrorContext, Resolved, flag};
use super::{
    Host, IN_FLIGHT_MAX, RUN, WORKERS_MAX, commands, datagrams, destination, fleet, object_window, protocol,
};
use super::{shared_connections, verify};
use crate::arrival::Arrival;
use crate::choice::HostRole;
use crate::command::name_of;
use crate::cpus::CpuList;
use crate::label::Label;
use crate::op::OpKind;
use crate::op_name::OpName;
use crate::plan::{
    Class, Load, MeterKind, OnMiss, OpenRate, Placement, Plan, Protocol, Reconnect, SessionScope, Timestamps,
    Transport,
};
use crate::popularity::Popularity;
use crate::sockets::SocketOptions;
use crate::spec::RunSpec;
use crate::units::{Count, DurationNs};
use Relation::{Conflicts, Requires};

/// A field of a hash is shorter than the longest key.
pub(super) const HASH_FIELD_MAX: u64 = 249;
/// memcached takes a longer time to live for a Unix time.
const TTL_MAX: DurationNs = DurationNs::from_secs(30 * 24 * 3600);
/// The earliest Unix time, in 2001: longer than any sensible span.
const TTL_UNIX_MIN: DurationNs = DurationNs::from_secs(1_000_000_000);
/// Protocols have 32 bits for it.
const TTL_UNIX_MAX: DurationNs = DurationNs::from_secs(u32::MAX as u64);
/// How often workers hand over what they recorded.
const INTERVAL_UNIT: DurationNs = DurationNs::from_millis(100);
const ABOVE_ZERO: &str = "a duration above 0, e.g. 10s or 500ms";

/// How two options belong together.
#[derive(Clone, Copy)]
enum Relation {
    Requires,
    Conflicts,
}

/// Options, separated by commas, each of which requires one of others or conflicts with all of them, and why. An option that has a word
/// behind it is meant with that value only; a switch, if it is on.
type Pair = (&'static str, Relation, &'static str, &'static str);

/// Between options of the run.
const RUN_PAIRS: &[Pair] = &[
    ("agent", Requires, "server", ": the reference server of a run listens on this host only"),
    ("user", Requires, "password", ""),
    ("hash-field", Conflicts, "cluster", ", which places keys by all of their bytes"),
    ("tls-cert", Requires, "tls-key", ""),
    ("tls-key", Requires, "tls-cert", ""),
    ("tls-ca", Conflicts, "tls-insecure", ""),
    ("cluster", Requires, "server", ", naming at least one node"),
    ("placement", Conflicts, "cluster", ", which assigns keys to nodes itself"),
    ("refill batch", Conflicts, "cluster", ", where slots belong to no connection"),
    ("warmup auto", Conflicts, "agent", ": all hosts begin the window at a time agreed in advance"),
    ("max-time", Requires, "until", "; without it use --time"),
    ("requests", Conflicts, "until", ", which ends by time"),
    ("server-stats", Conflicts, "hash-field", ": Redis counts hashes, brunt counts keys"),
];

/// Between an option of a class and another one.
const CLASS_PAIRS: &[Pair] = &[
    (
        "mix, multiget, drift, delta, first-key, value-form",
        Conflicts,
        "trace",
        ", which names the operations",
    ),
    ("popularity window", Conflicts, "trace", ", which names the operations"),
    ("popularity window", Conflicts, "keys", ": objects are numbered without end"),
    ("popularity window", Conflicts, "first-key", ": objects are numbered from 0"),
    ("popularity window", Conflicts, "value-form zeros", ": values hold their versions"),
    ("popularity window", Conflicts, "drift, purge, agent, hash-field", ""),
    ("popularity window", Conflicts, "noreply", ": the objects of a window depend on the replies"),
    ("popularity window", Conflicts, "on-miss set", ": a window stores its objects itself"),
    ("client-connections", Conflicts, OF_LIFETIME, ""),
    ("client-connections", Conflicts, "trace, purge", ""),
    ("client-connections", Conflicts, "rate, rate-profile", "; use --call-rate, the rate of each client"),
    ("call-arrival", Requires, "call-rate", ""),
    ("rate, rate-profile, arrival, think, reconnect-every", Conflicts, "call-rate", OWN_SCHEDULE),
    ("on-miss set, purge, trace", Conflicts, "call-rate", OWN_SCHEDULE),
    ("rate-profile", Conflicts, "rate", ""),
    ("think", Conflicts, "rate, rate-profile", ": an open loop does not wait for replies"),
    ("arrival", Requires, "rate, rate-profile", ": a closed loop has no arrivals"),
    ("connect-arrival", Requires, "connect-rate", ""),
    ("connections-total", Requires, "calls-per-connection, reconnect-every", ""),
    ("route", Conflicts, OF_LIFETIME, ""),
    ("purge", Requires, "requests", ", after half of which it begins"),
    ("purge", Conflicts, "verify", ", which would miss the deleted keys"),
    ("purge", Conflicts, "placement random", ": keys are deleted on one server after another"),
    ("purge", Conflicts, "trace", ", whose keys are not known in advance"),
    ("purge", Conflicts, "ttl", ""),
    ("trace", Conflicts, "cluster", ""),
    ("trace", Conflicts, "verify", ", which checks the keys of a data set"),
    ("trace", Conflicts, "agent", ": the file is on this host"),
    ("replicas", Conflicts, "noreply", ": a write ends when every replica has replied"),
    ("replicas", Conflicts, "cluster", ", whose nodes replicate by themselves"),
    ("replicas", Conflicts, "on-miss set, agent, trace", ""),
    ("placement by-thread", Conflicts, "agent, purge", ""),
    ("warmup auto", Conflicts, "connections-total", ": the run ends with its last connection, warm or not"),
    ("warmup auto", Conflicts, "rate-profile", ": its times count from the beginning of the window"),
];

const OF_LIFETIME: &str = "connect-rate, calls-per-connection, connections-total, reconnect-every";
const OWN_SCHEDULE: &str = ", which gives each connection its own schedule";

/// What an option requires or conflicts with, and when that is violated: a function of what the rule looks at.
struct Rule<F> {
    option: &'static str,
    relation: Relation,
    other: &'static str,
    is_broken: F,
}

type ClassRule = Rule<fn(&Case<'_>) -> bool>;
type RunRule = Rule<fn(&Plan) -> bool>;

const fn requires<F>(option: &'static str, other: &'static str, is_broken: F) -> Rule<F> {
    Rule { option, relation: Requires, other, is_broken }
}

const fn conflicts<F>(option: &'static str, other: &'static str, is_broken: F) -> Rule<F> {
    Rule { option, relation: Conflicts, other, is_broken }
}

static CLASS_RULES: &[ClassRule] = &[
    requires("multiget", "mget in --mix, e.g. mget=9,set=1", |case| {
        case.spec.multiget.is_some() && !case.sends(OpKind::Mget)
    }),
    requires("drift", "--popularity zipf, hotspot, latest or gaussian", |case| {
        let is_flat = matches!(case.class.popularity, Popularity::Uniform | Popularity::Sequential);
        case.class.drift.is_some() && is_flat
    }),
    // mcperf's cas has a fixed unique.
    requires("mix with cas", "gets, which reads its cas unique, or --trailing-blank", |case| {
        case.sends(OpKind::Cas) && !case.sends(OpKind::Gets) && !case.plan.trailing_blank
    }),
    requires("on-miss set", "a retrieval in --mix, e.g. get=9,set=1", |case| {
        case.class.on_miss == OnMiss::Set && !case.sends_any(OpKind::is_retrieval)
    }),
    requires("delta", "incr or decr in --mix, e.g. get=9,incr=1", |case| {
        case.spec.delta.is_some() && !case.class.mix.has_counters()
    }),
    requires("noreply", "writes in --mix, e.g. get=9,set=1", |case| {
        case.class.noreply && !case.sends_any(|kind| !kind.is_retrieval())
    }),
    conflicts("purge", "mget in --mix", |case| case.class.purge.is_some() && case.sends(OpKind::Mget)),
    requires(
        "reconnect never",
        "--no-preload: every connection counts, and preload would open the first ones",
        |case| case.class.counts_attempts() && !case.plan.is_cluster && case.plan.preload,
    ),
    conflicts("trace", "--transport udp: requests must fit into datagrams", |case| {
        let is_udp = |kind| case.class.transport_of(kind, case.plan.transport) == Transport::Udp;
        case.class.trace.is_some() && case.class.kinds().into_iter().any(is_udp)
    }),
    conflicts("cluster", OWN_SERVERS, |case| case.plan.is_cluster && case.has_own_servers()),
    conflicts("agent", OWN_SERVERS, |case| case.run.has_agents() && case.has_own_servers()),
    requires("replicas", "--placement by key", |case| {
        case.class.replicas > 1 && !case.plan.placement.is_by_key()
    }),
    conflicts("replicas", "cas in --mix", |case| case.class.replicas > 1 && case.sends(OpKind::Cas)),
    conflicts("replicas", "raw in --mix", |case| case.class.replicas > 1 && case.sends(OpKind::Raw)),
    // A client with a window does not read what it is writing.
    conflicts("replicas", "--verify: replicas may differ while a write is in flight", |case| {
        case.class.replicas > 1 && case.run.verify.is_some() && case.class.popularity.window().is_none()
    }),
];

const OWN_SERVERS: &str = "server, protocol, transport or route in a [[class]] table";
const OF_USERS: &str = "--protocol memcached-binary, resp2 or resp3";
const OF_REDIS: &str = "--protocol resp2 or resp3";

static RUN_RULES: &[RunRule] = &[
    requires("agent", "a class without runs-on = 'controller'", |plan| {
        plan.spec.run.has_agents() && !has_class(plan, |class| class.host_role == HostRole::Agents)
    }),
    conflicts("agent", "unix: servers: no agent opens a file that a plan names", |plan| {
        plan.spec.run.has_agents() && plan.uses_transport(Transport::Unix)
    }),
    conflicts("agent", "--verify and writes: agents do not know each other's writes", |plan| {
        let writes = |class: &Class| class.kinds().into_iter().any(|kind| !kind.is_retrieval());
        plan.spec.run.has_agents() && plan.spec.run.verify.is_some() && has_class(plan, writes)
    }),
    requires("user", OF_USERS, |plan| plan.spec.run.user.is_some() && !speaks(plan, Protocol::has_users)),
    requires("password", OF_USERS, |plan| {
        plan.spec.run.password.is_some() && !speaks(plan, Protocol::has_users)
    }),
    requires("database", OF_REDIS, |plan| {
        plan.spec.run.database.is_some() && !speaks(plan, Protocol::is_resp)
    }),
    requires("client-name", OF_REDIS, |plan| {
        plan.spec.run.client_name.is_some() && !speaks(plan, Protocol::is_resp)
    }),
    requires("hash-field", OF_REDIS, |plan| {
        plan.spec.run.hash_field.is_some() && !speaks(plan, Protocol::is_resp)
    }),
    requires("cluster", OF_REDIS, |plan| plan.is_cluster && !plan.protocol.is_resp()),
    conflicts("database", "--cluster, which has database 0 only", |plan| {
        plan.login.database > 0 && plan.is_cluster
    }),
    requires("password", "--server: the reference server of a run needs no login", |plan| {
        plan.spec.run.password.is_some() && plan.needs_embedded()
    }),
    requires("password", "--user", |plan| {
        let is_binary = speaks(plan, |protocol| protocol == Protocol::MemcachedBinary);
        plan.spec.run.password.is_some() && plan.spec.run.user.is_none() && is_binary
    }),
    conflicts("hash-field", "--protocol resp-inline; use --command 'HGET {key} f'", |plan| {
        plan.spec.run.hash_field.is_some() && speaks(plan, |protocol| protocol == Protocol::RespInline)
    }),
    requires("trailing-blank", "--protocol memcached-text", |plan| {
        plan.trailing_blank && !speaks(plan, |protocol| protocol == Protocol::MemcachedText)
    }),
    requires("linger", "--transport tcp or tls", |plan| {
        plan.spec.run.linger.is_some() && !plan.servers().iter().any(|server| server.transport.is_tcp())
    }),
    requires("placement", "at least two --server", |plan| {
        plan.spec.run.placement.is_some() && !plan.has_placement()
    }),
    conflicts(
        "server-stats",
        "--password and memcached: statistics are read in the text protocol, which has no login",
        |plan| plan.spec.run.server_stats == Some(true) && hides_stats(&plan.spec.run, &plan.protocols()),
    ),
    conflicts("server-stats", "--protocol echo, ping or thrift, whose servers have no statistics", |plan| {
        plan.spec.run.server_stats == Some(true) && speaks(plan, Protocol::is_stateless)
    }),
];

fn has_class(plan: &Plan, is_meant: fn(&Class) -> bool) -> bool {
    plan.classes.iter().any(is_meant)
}

fn speaks(plan: &Plan, is_meant: fn(Protocol) -> bool) -> bool {
    plan.protocols().into_iter().any(is_meant)
}

/// A memcached is polled in its text protocol, which one with users does not speak.
pub(super) fn hides_stats(run: &RunSpec, protocols: &[Protocol]) -> bool {
    run.password.is_some() && protocols.contains(&Protocol::MemcachedBinary)
}

/// Do the options of a plan go together?
pub(super) fn check(plan: &Plan, host: &Host) -> Resolved {
    check_part(plan, host)?;
    check_whole(plan)
}

/// The rules that a part of a plan need not meet: it has every command of the plan, by whose number results are, but not every class;
/// and of a few requests it may have none.
fn check_whole(plan: &Plan) -> Resolved {
    if plan.spec.run.requests == Some(Count(0)) {
        return Err(RUN.invalid("requests", 0, "an integer above 0, e.g. 1000 or 100k"));
    }
    commands::check_weights(plan)
}

/// Do the options of a plan, or of a part of one, go together?
pub(super) fn check_part(plan: &Plan, host: &Host) -> Resolved {
    let of_run = Given::of_run(&plan.spec.run);
    check_pairs(&of_run, &RUN, RUN_PAIRS)?;
    for index in 0..plan.classes.len() {
        let case = Case {
            plan,
            run: &plan.spec.run,
            class: &plan.classes[index],
            spec: &plan.spec.classes[index],
            given: of_run.with_class(&plan.spec.classes[index]),
            context: ErrorContext::of_class(&plan.classes[index], &plan.classes),
        };
        check_pairs(&case.given, &case.context, CLASS_PAIRS)?;
        shared_connections::check(plan, index)?;
        object_window::check(&case)?;
        check_class(&case)?;
        check_rules(&case.context, CLASS_RULES, |is_broken| is_broken(&case))?;
        check_calls(&case)?;
        destination::check_counts(&case.context, plan, case.class)?;
    }
    protocol::check(plan)?;
    check_threads(plan)?;
    datagrams::check(plan)?;
    check_rules(&RUN, RUN_RULES, |is_broken| is_broken(plan))?;
    check_servers(plan, &of_run)?;
    check_host(plan, host)?;
    check_stop(plan)?;
    verify::check(plan)?;
    check_records(plan)
}

fn check_pairs(given: &Given<'_>, context: &ErrorContext<'_>, pairs: &[Pair]) -> Resolved {
    for (options, relation, others, reason) in pairs {
        let Some(option) = given.first(options) else { continue };
        let context = if RunSpec::names().iter().any(|name| name == option) { &RUN } else { context };
        match (relation, given.first(others)) {
            (Requires, None) => {
                let others: Vec<String> = others.split(", ").map(flag).collect();
                return Err(context.requires(option, format!("{}{reason}", others.join(" or "))));
            }
            (Conflicts, Some(other)) => {
                return Err(context.conflicts(option, format!("{}{reason}", flag(other))));
            }
            (Requires, Some(_)) | (Conflicts, None) => {}
        }
    }
    Ok(())
}

fn check_rules<F>(context: &ErrorContext<'_>, rules: &[Rule<F>], is_broken: impl Fn(&F) -> bool) -> Resolved {
    match rules.iter().find(|rule| is_broken(&rule.is_broken)) {
        None => Ok(()),
        Some(Rule { option, relation: Requires, other, .. }) => Err(context.requires(option, other)),
        Some(Rule { option, relation: Conflicts, other, .. }) => Err(context.conflicts(option, other)),
    }
}

/// A schedule of a connection's own says nothing of where a key lives: its calls go where that connection goes.
fn check_calls(case: &Case<'_>) -> Resolved {
    let Case { plan, class, context, .. } = case;
    if class.sessions != SessionScope::Connection {
        return Ok(());
    }
    let has_several = plan.destinations(class)[0].1.servers.len() > 1;
    let others = [
        ("--placement by key on several servers", plan.placement.is_by_key() && has_several),
        ("--cluster", plan.is_cluster),
        ("--replicas", class.replicas > 1),
        ("route", !class.routes.is_empty()),
    ];
    let reason = ": calls are sent on the connection they belong to";
    context.excludes("call-rate", &others.map(|(other, is_there)| (format!("{other}{reason}"), is_there)))
}

/// The values of a class.
fn check_class(case: &Case<'_>) -> Resolved {
    let Case { class, spec, context, .. } = case;
    if let Some(keep_every @ 0..2) = class.purge {
        let expected = "an integer from 2, multiples of which are the numbers of the keys that stay";
        return Err(context.invalid("purge", keep_every, expected));
    }
    check_ttl(case)?;
    let slots = u64::from(class.connections) * u64::from(class.depth);
    // Every key of every multi-get in flight may have to be stored.
    let keys_each = if case.sends(OpKind::Mget) { u64::from(class.multiget) } else { 1 };
    if class.on_miss == OnMiss::Set && slots * keys_each > IN_FLIGHT_MAX {
        let reason = format!("at most {} connections times depth", IN_FLIGHT_MAX / keys_each);
        return Err(context.requires("on-miss set", reason));
    }
    if class.lifetime.calls == Some(0) {
        return Err(context.invalid("calls-per-connection", 0, "an integer above 0"));
    }
    check_positive(context, "reconnect-every", class.lifetime.reconnect_every)?;
    if let Some(total) = class.lifetime.total.filter(|total| *total < class.connections.into()) {
        let accepted = format!("at least the number of --connections, {}", class.connections);
        return Err(context.invalid("connections-total", total, accepted));
    }
    check_reconnect(case)?;
    if let Load::Open { rate, arrival } = &class.load {
        let option = if rate.is_known() { "arrival" } else { "call-arrival" };
        check_bursts(context, option, rate, arrival)?;
    }
    match (&spec.connect_arrival, spec.connect_rate) {
        (Some(arrival), Some(rate)) => {
            check_bursts(context, "connect-arrival", &OpenRate::Constant(rate), arrival)
        }
        _ => Ok(()),
    }
}

fn check_positive(context: &ErrorContext<'_>, option: &str, given: Option<DurationNs>) -> Resolved {
    match given {
        Some(DurationNs(0)) => Err(context.invalid(option, "0s", ABOVE_ZERO)),
        _ => Ok(()),
    }
}

fn check_ttl(case: &Case<'_>) -> Resolved {
    let ttl = case.spec.ttl.unwrap_or_default();
    let is_unix_time = (TTL_UNIX_MIN..=TTL_UNIX_MAX).contains(&ttl);
    if !(ttl <= TTL_MAX || is_unix_time) || !ttl.0.is_multiple_of(1_000_000_000) {
        let accepted = "whole seconds up to 720h, e.g. 60s, a Unix time for memcached, e.g. 1900000000s, or 0 for no expiry";
        return Err(case.context.invalid("ttl", ttl, accepted));
    }
    // Who judges when an object is gone counts from when it was stored.
    if is_unix_time && (case.run.verify.is_some() || case.class.popularity.window().is_some()) {
        let limit = "720h: --verify and --popularity window count from the time of the store";
        return Err(case.context.exceeds("ttl", ttl, limit));
    }
    Ok(())
}

/// Connections that come and go by plan are followed by others, unless attempts are what is counted; and in a cluster a node that is gone is
/// another one's replica.
fn check_reconnect(case: &Case<'_>) -> Resolved {
    let Case { plan, class, context, .. } = case;
    let counts_attempts = class.counts_attempts() && !plan.is_cluster;
    if class.connections_of.is_some() || class.reconnect == Reconnect::Always || counts_attempts {
        return Ok(());
    }
    let of_lifetime = || case.given.first(OF_LIFETIME);
    match plan.is_cluster.then_some("cluster").or_else(of_lifetime) {
        Some(option) => {
            Err(context.conflicts(&format!("reconnect {}", class.reconnect), format!("--{option}")))
        }
        None => Ok(()),
    }
}

/// Bursts in which hardly ever a request falls are Poisson arrivals, and the way to the next request leads through any
/// number of them.
fn check_bursts(context: &ErrorContext<'_>, option: &str, rate: &OpenRate, arrival: &Arrival) -> Resolved {
    const IDC_MIN: f64 = 1.001;
    let Arrival::Mmpp(mmpp) = arrival else { return Ok(()) };
    let idc = mmpp.idc(rate.highest());
    if idc >= IDC_MIN {
        return Ok(());
    }
    let accepted = format!(
        "an index of dispersion of at least {IDC_MIN} at this rate; its {idc:.6} is as good as poisson"
    );
    Err(context.invalid(option, arrival, accepted))
}

/// What limits the number of workers: the connections of the class with the fewest for each server.
struct Room {
    /// Workers of a protocol that it has room for.
    workers: u32,
    connections: u32,
    servers: u32,
}

/// Every class has a connection to every server on every worker that carries it out, so that rates split evenly.
fn room(plan: &Plan) -> Room {
    // The servers of a cluster are not the nodes that it will turn out to have, and by thread a worker has one.
    let has_one = plan.is_cluster || plan.placement == Placement::ByThread;
    let of_class = |class: &Class| {
        let servers = plan.destinations(class).iter().map(|(_, way)| way.servers.len()).max();
        let servers = if has_one { 1 } else { servers.unwrap_or(1).max(1) as u32 };
        // Clients stay in one piece, with a connection to every server.
        let each = class.sessions.connections_each().max(servers);
        (class.connections / each, class.connections, servers)
    };
    // Where there are agents, threads are theirs, and so are not all classes.
    let on_them = |class: &&Class| plan.agents.is_empty() || class.host_role == HostRole::Agents;
    let least = plan.classes.iter().filter(on_them).map(of_class).min();
    let (workers, connections, servers) = least.unwrap_or((1, 1, 1));
    Room { workers, connections, servers }
}

/// The most workers that a plan has room for. Workers speak one protocol each.
pub(super) fn threads_max(plan: &Plan) -> u32 {
    room(plan).workers.saturating_mul(plan.protocols().len() as u32).min(WORKERS_MAX)
}

fn check_threads(plan: &Plan) -> Resolved {
    let Room { workers, connections, servers } = room(plan);
    if workers == 0 {
        let accepted = format!("at least {servers}, one per server");
        return Err(RUN.invalid("connections", connections, accepted));
    }
    let most = threads_max(plan);
    if plan.threads > most {
        let each = if servers > 1 { " to every server" } else { "" };
        let accepted = format!("1 to {most}: each worker needs a connection of every class{each}");
        return Err(RUN.invalid("threads", plan.threads, accepted));
    }
    Ok(())
}

/// The options of servers and connections.
fn check_servers(plan: &Plan, given: &Given<'_>) -> Resolved {
    let run = &plan.spec.run;
    if let Some(unfit) = plan.agents.iter().find(|agent| fleet::split(agent).is_none()) {
        return Err(RUN.invalid("agent", unfit, "HOST or HOST:PORT, an IPv6 address in brackets"));
    }
    if let Some(hidden) = run.password.as_ref().filter(|password| password.is_hidden()) {
        let accepted = "the password, which printed plans leave out, or @FILE";
        return Err(RUN.invalid("password", hidden, accepted));
    }
    let is_plain = |name: &&String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(name) = run.client_name.as_ref().filter(|name| !is_plain(name)) {
        return Err(RUN.invalid("client-name", name, "printable ASCII without spaces"));
    }
    if let Some(path) = plan.named_servers.iter().find(|server| plan.is_cluster && server.is_unix()) {
        let reason = "--cluster, whose nodes name each other by host and port";
        return Err(RUN.conflicts(&format!("server {path}"), reason));
    }
    if run.hash_field.is_some() {
        check_hash_fields(plan)?;
    }
    let tls = given.first("tls-ca, tls-cert, tls-key, tls-server-name, tls-insecure");
    if let (Some(option), false) = (tls, plan.uses_transport(Transport::Tls)) {
        return Err(RUN.requires(option, "--transport tls"));
    }
    check_sockets(plan)?;
    let stateless = plan.protocols().into_iter().find(|protocol| protocol.is_stateless());
    match stateless.filter(|_| plan.preload) {
        Some(protocol) => {
            Err(RUN.conflicts("preload", format!("--protocol {protocol}, whose servers store nothing")))
        }
        None => Ok(()),
    }
}

/// Fields of hashes have few commands, and do not expire.
fn check_hash_fields(plan: &Plan) -> Resolved {
    for class in plan.classes.iter().filter(|class| plan.protocol_of(class).is_resp()) {
        RUN.excludes("hash-field", &[("--ttl: hashes expire as a whole", class.ttl_s > 0)])?;
        if !class.mix.weights.iter().all(|(kind, _)| kind.has_field_command()) {
            let accepted = "get, set and delete only with --hash-field";
            return Err(RUN.invalid("mix", &class.mix, accepted));
        }
    }
    Ok(())
}

fn check_sockets(plan: &Plan) -> Resolved {
    let run = &plan.spec.run;
    let servers = plan.servers();
    if !plan.sockets.nodelay && !servers.iter().any(|server| server.transport.is_tcp()) {
        let reason = format!("--transport {}: the option is TCP's", servers[0].transport);
        return Err(RUN.conflicts("no-nodelay", reason));
    }
    let other = servers.iter().find(|server| server.transport != Transport::Tcp);
    if let (Timestamps::Kernel, Some(other)) = (plan.timestamps, other) {
        return Err(RUN.conflicts("timestamps kernel", format!("--transport {}", other.transport)));
    }
    let is_unfit = |linger: &DurationNs| {
        let seconds = linger.0 / DurationNs::from_secs(1).0;
        *linger != DurationNs::from_secs(seconds) || seconds > SocketOptions::LINGER_SECONDS_MAX
    };
    if let Some(linger) = run.linger.filter(is_unfit) {
        let accepted = format!("whole seconds up to {}", SocketOptions::LINGER_SECONDS_MAX);
        return Err(RUN.invalid("linger", linger, accepted));
    }
    for (option, given) in [("send-buffer", run.send_buffer), ("receive-buffer", run.receive_buffer)] {
        let is_possible = |bytes: &Count| (1..=SocketOptions::BUFFER_BYTES_MAX.into()).contains(&bytes.0);
        if let Some(bytes) = given.filter(|bytes| !is_possible(bytes)) {
            let accepted = format!("1 to {} bytes", SocketOptions::BUFFER_BYTES_MAX);
            return Err(RUN.invalid(option, bytes.0, accepted));
        }
    }
    Ok(())
}

fn check_host(plan: &Plan, host: &Host) -> Resolved {
    if plan.cpus.iter().all(|cpu| host.allowed_cpus.contains(cpu)) {
        return Ok(());
    }
    let accepted = format!("CPUs out of {}", CpuList(host.allowed_cpus.clone()));
    Err(RUN.invalid("cpus", CpuList(plan.cpus.clone()), accepted))
}

/// The times of the run.
fn check_stop(plan: &Plan) -> Resolved {
    let run = &plan.spec.run;
    check_positive(&RUN, "time", run.time)?;
    check_positive(&RUN, "timeout", run.timeout)?;
    check_positive(&RUN, "connect-timeout", run.connect_timeout)?;
    let (Some(until), Some(max_time)) = (&plan.stop.until, plan.stop.time) else { return Ok(()) };
    if max_time < until.first_look {
        let accepted = format!("at least --time ({}), the time of the first check", until.first_look);
        return Err(RUN.invalid("max-time", max_time, accepted));
    }
    let ops: Vec<OpName> =
        plan.classes.iter().flat_map(Class::ops).map(|op| name_of(&plan.commands, op)).collect();
    let precisions = until.until.precisions.iter();
    match precisions.filter_map(|precision| precision.op).find(|op| !ops.contains(op)) {
        Some(op) => Err(RUN.invalid("until", &until.until, format!("operations in --mix, without {op}"))),
        None => Ok(()),
    }
}

/// What is recorded and reported.
fn check_records(plan: &Plan) -> Resolved {
    if let Some(width) =
        plan.interval.filter(|width| width.0 == 0 || !width.0.is_multiple_of(INTERVAL_UNIT.0))
    {
        return Err(RUN.invalid("interval", width, "a multiple of 100ms, e.g. 500ms or 10s"));
    }
    for (index, meter) in plan.meters.iter().enumerate() {
        let name = format!("meter {meter}");
        if plan.meters[..index].contains(meter) {
            return Err(RUN.invalid("meter", meter, "each quantity once"));
        }
        if MeterKind::OF_TIMESTAMPS.contains(meter) && plan.timestamps == Timestamps::Off {
            return Err(RUN.conflicts(&name, "--timestamps off"));
        }
        if *meter == MeterKind::HandshakeTime && !plan.uses_transport(Transport::Tls) {
            return Err(RUN.requires(&name, "--transport tls"));
        }
    }
    let labels = &plan.labels;
    let is_repeated =
        |(index, label): &(usize, &Label)| labels[..*index].iter().any(|earlier| earlier.key == label.key);
    match labels.iter().enumerate().find(is_repeated) {
        Some((_, label)) => Err(RUN.invalid("label", label, "each key once")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::resolved;

    #[test]
    fn contradictions_are_refused() {
        let table = [
            (
                "server = ['a', 'unix:/b']",
                "invalid value 'unix:/b' for --server: expected only paths or only hosts: all servers share one transport",
            ),
            ("transport = 'unix'", "--transport unix requires --server unix:PATH"),
            (
                "transport = 'tcp'\nserver = 'unix:/b'",
                "invalid value 'tcp' for --transport: expected unix with --server unix:/b",
            ),
            (
                "timestamps = 'kernel'\nserver = 'unix:/b'",
                "--timestamps kernel cannot be used with --transport unix",
            ),
            (
                "timestamps = 'kernel'\nserver = 'a'\ntransport = 'tls'",
                "--timestamps kernel cannot be used with --transport tls",
            ),
            ("transport = 'tls'", "--transport tls requires --server: the reference server has no TLS"),
            (
                "server = 'unix:/a'\ntransport = 'tls'",
                "invalid value 'tls' for --transport: expected unix with --server unix:/a",
            ),
            ("server = 'unix:/b'\nlinger = '0s'", "--linger requires --transport tcp or tls"),
            ("linger = '1500ms'", "invalid value '1500ms' for --linger: expected whole seconds up to 65535"),
            ("linger = '70000s'", "invalid value '70000s' for --linger: expected whole seconds up to 65535"),
            ("send-buffer = 0", "invalid value '0' for --send-buffer: expected 1 to 1073741823 bytes"),
            (
                "receive-buffer = '2G'",
                "invalid value '2000000000' for --receive-buffer: expected 1 to 1073741823 bytes",
            ),
            ("server = 'a'\ntls-insecure = true", "--tls-insecure requires --transport tls"),
            ("server = 'a'\ntls-server-name = 'b'", "--tls-server-name requires --transport tls"),
            (
                "server = 'a'\ntransport = 'tls'\ntls-ca = 'f'\ntls-insecure = true",
                "--tls-ca cannot be used with --tls-insecure",
            ),
            ("server = 'a'\ntransport = 'tls'\ntls-cert = 'f'", "--tls-cert requires --tls-key"),
            ("server = 'a'\ntransport = 'tls'\ntls-key = 'f'", "--tls-key requires --tls-cert"),
            ("server = 'a'\nmeter = ['handshake-time']", "--meter handshake-time requires --transport tls"),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
    }

    #[test]
    fn switches_that_are_off_require_nothing() {
        for toml in ["tls-insecure = false", "cluster = false", "trailing-blank = false", "noreply = false"] {
            assert!(resolved(&format!("server = 'a'\n{toml}")).is_ok(), "{toml}");
        }
    }

    #[test]
    fn hash_fields_require_redis() {
        let plan = resolved("protocol = 'resp2'\nserver = 'a'\nhash-field = 4").unwrap();
        assert_eq!((plan.hash_field, plan.server_stats), (Some(4), false));
        let of_redis = "protocol = 'resp3'\nserver = 'a'\nhash-field = ";
        for (toml, message) in [
            ("hash-field = 4".to_owned(), "--hash-field requires --protocol resp2 or resp3"),
            (format!("{of_redis}0"), "invalid value '0' for --hash-field: expected an integer from 1 to 249"),
            (
                format!("{of_redis}4\ncluster = true"),
                "--hash-field cannot be used with --cluster, which places keys by all of their bytes",
            ),
            (
                format!("{of_redis}4\nttl = '5s'"),
                "--hash-field cannot be used with --ttl: hashes expire as a whole",
            ),
            (
                format!("{of_redis}4\nmix = 'get,incr'"),
                "invalid value 'get=1,incr=1' for --mix: expected get, set and delete only with --hash-field",
            ),
            (
                format!("{of_redis}4\nserver-stats = true"),
                "--server-stats cannot be used with --hash-field: Redis counts hashes, brunt counts keys",
            ),
        ] {
            let error = resolved(&toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }
}
