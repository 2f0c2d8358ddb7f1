//! The rules between options: which require each other, which conflict, and what a value is held against.
//!
//! Plain rules are rows of tables; what has to be computed is in functions. Invariant: rules only refuse a plan and set
//! nothing in it, and its own options printed and read again pass them.

use super::error::{ErrorContext, Resolved};
use super::{Host, IN_FLIGHT_MAX, RUN, WORKERS_MAX, class, commands, destination, fleet, protocol};
use crate::arrival::Arrival;
use crate::choice::HostRole;
use crate::cpus::CpuList;
use crate::label::Label;
use crate::op::{OpKind, Version};
use crate::plan::{
    Class, Load, OnMiss, OpenRate, Placement, Plan, Protocol, Reconnect, SessionScope, Timestamps, Transport,
    ValueForm,
};
use crate::popularity::Popularity;
use crate::sockets::SocketOptions;
use crate::spec::flag;
use crate::spec::{ClassSpec, RunSpec};
use crate::units::{Count, DurationNs};
use Relation::{Conflicts, Requires};
use toml::{Table, Value};

/// A field of a hash is shorter than the longest key.
pub(super) const HASH_FIELD_MAX: u64 = 249;
/// memcached takes a longer time to live for a Unix time.
const TTL_MAX: DurationNs = DurationNs::from_secs(30 * 24 * 3600);
/// The earliest Unix time, in 2001: longer than any sensible span.
const TTL_UNIX_MIN: DurationNs = DurationNs::from_secs(1_000_000_000);
/// Protocols have 32 bits for it.
const TTL_UNIX_MAX: DurationNs = DurationNs::from_secs(u32::MAX as u64);
/// Tolerance of an expiry check, on both sides.
const TTL_TOLERANCE_S: u32 = 5;
/// How often workers hand over what they recorded.
const INTERVAL_UNIT: DurationNs = DurationNs::from_millis(100);

/// How an option and something else belong together.
#[derive(Clone, Copy)]
enum Relation {
    Requires,
    Conflicts,
}

/// What a rule looks for beside its options.
enum Other {
    /// Other options, of which one is required, or with each of which there is a conflict.
    Options(&'static str),
    /// What must hold, or must not.
    Fact(fn(&Case<'_>) -> bool),
}

/// Options, separated by commas, that require something else or conflict with it. An option that has a word behind it is meant with that
/// value only; a switch, if it is on. What is behind ` with ` is for the message alone.
struct Rule {
    options: &'static str,
    relation: Relation,
    other: Other,
    /// The reason, behind the other option; of a fact the whole text.
    text: &'static str,
}

const fn pair(options: &'static str, relation: Relation, other: &'static str, text: &'static str) -> Rule {
    Rule { options, relation, other: Other::Options(other), text }
}

const fn requires(options: &'static str, text: &'static str, fact: fn(&Case<'_>) -> bool) -> Rule {
    Rule { options, relation: Requires, other: Other::Fact(fact), text }
}

const fn conflicts(options: &'static str, text: &'static str, fact: fn(&Case<'_>) -> bool) -> Rule {
    Rule { options, relation: Conflicts, other: Other::Fact(fact), text }
}

/// Rules for each class with the options of its run.
static RULES: &[Rule] = &[
    pair("agent, fleet", Requires, "server", ": the reference server of a run listens on this host only"),
    pair("user", Requires, "password", ""),
    pair("hash-field", Conflicts, "cluster", ", which places keys by all of their bytes"),
    pair("tls-cert", Requires, "tls-key", ""),
    pair("tls-key", Requires, "tls-cert", ""),
    pair("tls-ca", Conflicts, "tls-insecure", ""),
    pair("cluster", Requires, "server", ", naming at least one node"),
    pair("placement", Conflicts, "cluster", ", which assigns keys to nodes itself"),
    pair("refill batch", Conflicts, "cluster", ", where slots belong to no connection"),
    pair("warmup auto", Conflicts, "agent", ": all hosts begin the window at a time agreed in advance"),
    pair("requests", Conflicts, "until", ", which ends by time"),
    pair("server-stats", Conflicts, "hash-field", ": Redis counts hashes, brunt counts keys"),
    pair("mix, multiget, drift, delta, first-key, value-form", Conflicts, "trace", NAMES_OPERATIONS),
    pair("popularity window", Conflicts, "trace", NAMES_OPERATIONS),
    pair("popularity window", Conflicts, "keys", ": objects are numbered without end"),
    pair("popularity window", Conflicts, "first-key", ": objects are numbered from 0"),
    pair("popularity window", Conflicts, "value-form zeros", ": values hold their versions"),
    pair("popularity window", Conflicts, "drift, purge, agent, hash-field", ""),
    pair("popularity window", Conflicts, "noreply", ": the objects of a window depend on the replies"),
    pair("miss-delay", Requires, "on-miss set", ""),
    pair("popularity window", Conflicts, "on-miss set", ": a window stores its objects itself"),
    pair("client-connections", Conflicts, OF_LIFETIME, ""),
    pair("client-connections", Conflicts, "trace, purge", ""),
    pair("client-connections", Conflicts, "rate, rate-profile", "; use call-rate, the rate of each client"),
    pair("call-arrival", Requires, "call-rate", ""),
    pair("rate, rate-profile, arrival, think, reconnect-every", Conflicts, "call-rate", OWN_SCHEDULE),
    pair("on-miss set, purge, trace", Conflicts, "call-rate", OWN_SCHEDULE),
    pair("rate-profile", Conflicts, "rate", ""),
    pair("think", Conflicts, "rate, rate-profile", ": an open loop does not wait for replies"),
    pair("arrival", Requires, "rate, rate-profile, replay", ": a closed loop has no arrivals"),
    pair("replay", Requires, "trace", ", by --set trace=FILE"),
    pair("replay", Conflicts, "rate, rate-profile, call-rate, think", ": the trace has the times"),
    pair("replay", Conflicts, "trace-order lines, warmup auto", ""),
    pair("trace-order", Requires, "trace", ""),
    pair(OF_REPLAY, Requires, "replay", ""),
    pair("trace-preload", Conflicts, "trace-repeat, trace-gets, trace-warmup-speed", ""),
    pair("trace-repeat same-keys, trace-repeat new-keys", Requires, "time, requests", ""),
    pair("connect-arrival", Requires, "connect-rate", ""),
    pair("connections-total", Requires, "calls-per-connection, reconnect-every", ""),
    pair("route", Conflicts, OF_LIFETIME, ""),
    pair("purge", Requires, "requests", ", after half of which it begins"),
    pair("purge", Conflicts, "verify", ", which would miss the deleted keys"),
    pair("purge", Conflicts, "placement random", ": keys are deleted on one server after another"),
    pair("purge", Conflicts, "trace", ", whose keys are not known in advance"),
    pair("purge", Conflicts, "ttl", ""),
    pair("trace", Conflicts, "cluster", ""),
    pair("trace", Conflicts, "verify", ", which checks the keys of a data set"),
    pair("replicas", Conflicts, "noreply", ": a write ends when every replica has replied"),
    pair("replicas", Conflicts, "cluster", ", whose nodes replicate by themselves"),
    pair("replicas", Conflicts, "on-miss set, agent, trace", ""),
    pair("placement by-thread", Conflicts, "agent, purge", ""),
    pair("warmup auto", Conflicts, "connections-total", ": the run may end before it is warm"),
    pair("warmup auto", Conflicts, "rate-profile", ": its times count from the beginning of the window"),
    pair(OF_TIMESTAMPS, Conflicts, "timestamps off", ""),
    conflicts(
        "popularity window",
        "mget and --rate; use a closed loop or call-rate, the rate of each client",
        |case| {
            case.sends(OpKind::Mget) && matches!(&case.class.load, Load::Open { rate, .. } if rate.is_known())
        },
    ),
    requires("popularity window", "a --prefix that no other class has", |case| {
        let has_prefix = |other: &&Class| other.keyspace.prefix == case.class.keyspace.prefix;
        case.plan.classes.iter().filter(has_prefix).count() == 1
    }),
    requires("popularity window with expire", "--ttl above 5s, e.g. 60s", |case| {
        !case.has_expiring_window() || case.class.ttl_s > TTL_TOLERANCE_S
    }),
    requires("popularity window with expire", IN_ORDER, |case| {
        !case.has_expiring_window() || is_in_order(case.class)
    }),
    requires("multiget", "mget in --mix, e.g. mget=9,set=1", |case| case.sends(OpKind::Mget)),
    requires("drift", "--popularity zipf, hotspot, latest or gaussian", |case| {
        !matches!(case.class.popularity, Popularity::Uniform | Popularity::Sequential)
    }),
    // mcperf's cas has a fixed unique.
    requires("mix with cas", "gets, which reads its cas unique, or trailing-blank", |case| {
        !case.sends(OpKind::Cas) || case.sends(OpKind::Gets) || case.plan.trailing_blank
    }),
    requires("on-miss set", "a retrieval in --mix, e.g. get=9,set=1", |case| {
        case.sends_any(OpKind::is_retrieval) || case.class.replay().is_some_and(|replay| replay.is_preload)
    }),
    requires("delta", "incr or decr in --mix, e.g. get=9,incr=1", |case| case.class.mix.has_counters()),
    requires("noreply", "writes in --mix, e.g. get=9,set=1", |case| {
        case.sends_any(|kind| !kind.is_retrieval())
    }),
    conflicts("purge", "mget in --mix", |case| case.sends(OpKind::Mget)),
    conflicts("trace", "runs-on controller and --measure-..., which would send all of it again", |case| {
        case.class.host_role == HostRole::Controller
    }),
    requires(
        "reconnect never",
        "--no-preload: every connection counts, and preload would open the first ones",
        |case| !case.class.counts_attempts() || case.plan.is_cluster || !case.plan.preload,
    ),
    requires("trace-warmup-speed", "--warmup above 0s: the head of the trace", |case| {
        case.plan.warmup.longest().0 > 0
    }),
    conflicts("replay", "a trace-layout whose times have no unit", |case| {
        case.class.trace.as_ref().and_then(|trace| trace.layout).is_some_and(|layout| !layout.has_times())
    }),
    requires("replay with --arrival", "uniform or poisson, for the records of a second", |case| {
        let is_spread = |arrival: &Arrival| matches!(arrival, Arrival::Uniform | Arrival::Poisson);
        case.spec.arrival.as_ref().is_none_or(is_spread)
    }),
    requires(
        "trace",
        "a multiple of the number of servers for --connections, or trace-order = 'lines'",
        |case| case.class.connections.is_multiple_of(case.class.sessions.connections_each()),
    ),
    conflicts("connections-of", "trace, unless trace-order is lines", |case| case.class.keeps_key_order()),
    conflicts("trace", "transport udp: requests must fit into datagrams", |case| {
        let is_udp = |kind| case.class.path_of(kind).transport == Transport::Udp;
        case.class.kinds().into_iter().any(is_udp)
    }),
    conflicts("cluster, agent", "server, protocol, transport or route in a [[class]] table", |case| {
        case.spec.has_destination()
    }),
    requires("replicas", "--placement by key", |case| case.plan.placement.is_by_key()),
    conflicts("replicas", "cas in --mix", |case| case.sends(OpKind::Cas)),
    conflicts("replicas", "raw in --mix", |case| case.sends(OpKind::Raw)),
    // A client with a window does not read what it is writing.
    conflicts("replicas", "--verify: replicas may differ while a write is in flight", |case| {
        case.run.verify.is_some() && case.class.popularity.window().is_none()
    }),
];

const NAMES_OPERATIONS: &str = ", which names the operations";
const OF_LIFETIME: &str = "connect-rate, calls-per-connection, connections-total, reconnect-every";
const OF_REPLAY: &str =
    "trace-speed, trace-sample, trace-copies, trace-repeat, trace-gets, trace-warmup-speed, trace-preload";
/// Those of `MeterKind::OF_TIMESTAMPS`.
const OF_TIMESTAMPS: &str = "meter stack-out, meter wire-and-server, meter stack-in, meter without-client";
const OWN_SCHEDULE: &str = ", which gives each connection its own schedule";
/// The options with which a client knows what it has written.
const IN_ORDER: &str = "client-connections and --depth 1, so that a client knows its own writes";
const OF_USERS: &str = "--protocol memcached-binary, resp2 or resp3, e.g. by -s redis://USER@HOST";
const OF_REDIS: &str = "--protocol resp2 or resp3";

/// Rules for a run whose classes go together each by itself.
static RUN_RULES: &[Rule] = &[
    conflicts("fleet", "--agent: agents dial in, or are dialled", |case| case.run.agent.is_some()),
    requires("tolerate-lost", "--agent or --fleet", |case| case.run.has_agents()),
    requires("agent, fleet", "a class without runs-on = 'controller'", |case| {
        case.plan.classes.iter().any(|class| class.host_role == HostRole::Agents)
    }),
    conflicts("agent, fleet", "unix: servers: no agent opens a file that a plan names", |case| {
        case.plan.uses_transport(Transport::Unix)
    }),
    conflicts("agent, fleet", "--verify and writes: agents do not know each other's writes", |case| {
        let writes = |class: &Class| class.kinds().into_iter().any(|kind| !kind.is_retrieval());
        case.run.verify.is_some() && case.plan.classes.iter().any(writes)
    }),
    requires("user, password", OF_USERS, |case| case.speaks(Protocol::has_users)),
    requires("database, client-name, hash-field", OF_REDIS, |case| case.speaks(Protocol::is_resp)),
    requires("cluster", OF_REDIS, |case| case.plan.protocol.is_resp()),
    conflicts("database", "--cluster, which has database 0 only", |case| {
        case.plan.login.database > 0 && case.plan.is_cluster
    }),
    requires("password", "--server: the reference server of a run needs no login", |case| {
        !case.plan.needs_embedded()
    }),
    requires("password", "user", |case| {
        case.run.user.is_some() || !case.speaks(|protocol| protocol == Protocol::MemcachedBinary)
    }),
    conflicts("hash-field", "--protocol resp-inline; use --command 'HGET {key} f'", |case| {
        case.speaks(|protocol| protocol == Protocol::RespInline)
    }),
    requires("trailing-blank", "--protocol memcached-text", |case| {
        case.speaks(|protocol| protocol == Protocol::MemcachedText)
    }),
    requires("linger", "transport tcp or tls", |case| {
        case.plan.servers.iter().any(|server| server.transport.is_tcp())
    }),
    requires("verify with --popularity window", IN_ORDER, |case| {
        case.plan.classes.iter().all(|class| class.popularity.window().is_none() || is_in_order(class))
    }),
    requires(
        "verify",
        "--placement by key or by-thread: with any other a key may have been written on any server",
        |case| {
            let placement = case.plan.placement;
            !case.plan.has_placement() || placement.is_by_key() || placement == Placement::ByThread
        },
    ),
    requires("placement", "at least two --server", |case| case.plan.has_placement()),
    conflicts(
        "server-stats",
        "--password and memcached: statistics are read in the text protocol, which has no login",
        |case| hides_stats(case.run, &case.plan.protocols()),
    ),
    conflicts("server-stats", "--protocol echo, ping or thrift, whose servers have no statistics", |case| {
        case.speaks(Protocol::is_stateless)
    }),
    requires(
        "tls-ca, tls-cert, tls-key, tls-server-name, tls-insecure, meter handshake-time",
        "transport tls, by -s rediss://HOST or memcacheds://HOST",
        |case| case.plan.uses_transport(Transport::Tls),
    ),
];

/// Options, which texts of their values are accepted, and what is expected.
type ValueRule = (&'static str, fn(&str) -> bool, &'static str);

// The limits that texts of the table name.
const _: () =
    assert!(SocketOptions::LINGER_SECONDS_MAX == 65_535 && SocketOptions::BUFFER_BYTES_MAX == 1_073_741_823);

static VALUES: &[ValueRule] = &[
    (
        "time, timeout, connect-timeout, reconnect-every",
        |text| text != "0s",
        "a duration above 0, e.g. 10s or 500ms",
    ),
    ("calls-per-connection", |text| text != "0", "an integer above 0"),
    (
        "purge",
        |text| !matches!(text, "0" | "1"),
        "an integer from 2, multiples of which are the numbers of the keys that stay",
    ),
    ("client-name", |text| !text.is_empty() && is_graphic(text), "printable ASCII without spaces"),
    ("prefix", is_graphic, "printable ASCII without spaces"),
    ("linger", is_linger, "whole seconds up to 65535"),
    ("send-buffer, receive-buffer", is_buffer, "1 to 1073741823 bytes"),
    ("interval", is_interval, "a multiple of 100ms, e.g. 500ms or 10s"),
    ("verify", |text| text != "0%", "a fraction above 0, e.g. 10%"),
];

fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_linger(text: &str) -> bool {
    const SECOND: u64 = DurationNs::from_secs(1).0;
    let is_possible = |time: DurationNs| {
        time.0.is_multiple_of(SECOND) && time.0 / SECOND <= SocketOptions::LINGER_SECONDS_MAX
    };
    text.parse().is_ok_and(is_possible)
}

fn is_buffer(text: &str) -> bool {
    text.parse().is_ok_and(|bytes| (1..=SocketOptions::BUFFER_BYTES_MAX).contains(&bytes))
}

fn is_interval(text: &str) -> bool {
    text.parse().is_ok_and(|DurationNs(width)| width > 0 && width.is_multiple_of(INTERVAL_UNIT.0))
}

/// A class of a plan, as rules look at it.
struct Case<'a> {
    plan: &'a Plan,
    run: &'a RunSpec,
    class: &'a Class,
    spec: &'a ClassSpec,
    /// The options of both, as a plan file gives them.
    options: [&'a Table; 2],
    /// The class, in messages.
    context: ErrorContext<'a>,
}

impl<'a> Case<'a> {
    fn sends(&self, kind: OpKind) -> bool {
        self.class.mix.contains(kind)
    }

    fn sends_any(&self, is_meant: fn(OpKind) -> bool) -> bool {
        self.class.mix.weights.iter().any(|(kind, _)| is_meant(*kind))
    }

    /// Is it the protocol of a class of the plan?
    fn speaks(&self, is_meant: fn(Protocol) -> bool) -> bool {
        self.plan.protocols().into_iter().any(is_meant)
    }

    fn has_expiring_window(&self) -> bool {
        self.class.popularity.window().is_some_and(|window| window.expire > 0.0)
    }

    /// The value of an option, which the class may have in place of the run's.
    fn value(&self, key: &str) -> Option<&'a Value> {
        self.options.into_iter().find_map(|options| options.get(key))
    }

    /// The first of these options, separated by commas, that is given: with the word behind it, if there is one.
    fn first(&self, options: &'static str) -> Option<&'static str> {
        options.split(", ").find(|option| {
            let meant = option.split(" with ").next().unwrap_or(option);
            let (key, word) = meant.split_once(' ').map_or((meant, None), |(key, word)| (key, Some(word)));
            match (self.value(key), word) {
                (None, _) => false,
                (Some(Value::Boolean(is_on)), _) => *is_on,
                (Some(Value::Array(values)), None) => !values.is_empty(),
                (Some(Value::Array(values)), Some(word)) => {
                    values.iter().any(|value| value.as_str() == Some(word))
                }
                (Some(Value::String(text)), Some(word)) => text.split(':').next() == Some(word),
                (Some(_), word) => word.is_none(),
            }
        })
    }

    /// What an option belongs to, in messages.
    fn context_of(&self, option: &str) -> &ErrorContext<'a> {
        let key = option.split(' ').next().unwrap_or(option);
        if RunSpec::names().iter().any(|name| name == key) { &RUN } else { &self.context }
    }

    /// Checks these rules; facts are of what `of_facts` names.
    fn check_rules(&self, rules: &[Rule], of_facts: &ErrorContext<'_>) -> Resolved {
        for Rule { options, relation, other, text } in rules {
            let Some(option) = self.first(options) else { continue };
            let there = match other {
                Other::Fact(fact) => fact(self).then_some(""),
                Other::Options(others) => self.first(others),
            };
            if there.is_some() == matches!(relation, Requires) {
                continue;
            }
            let (context, text) = match other {
                Other::Fact(_) => (of_facts, (*text).to_owned()),
                Other::Options(others) => {
                    let named: Vec<String> = there.unwrap_or(others).split(", ").map(flag).collect();
                    (self.context_of(option), format!("{}{text}", named.join(" or ")))
                }
            };
            return Err(match relation {
                Requires => context.requires(option, text),
                Conflicts => context.conflicts(option, text),
            });
        }
        Ok(())
    }

    fn check_values(&self) -> Resolved {
        for (options, is_accepted, expected) in VALUES {
            for option in options.split(", ") {
                let Some(value) = self.value(option) else { continue };
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if !is_accepted(&text) {
                    return Err(self.context_of(option).invalid(option, text, expected));
                }
            }
        }
        Ok(())
    }
}

/// Does a client know what it has written, because nothing of it overtakes anything else?
fn is_in_order(class: &Class) -> bool {
    class.sessions != SessionScope::Worker && class.depth == 1
}

/// A memcached is polled in its text protocol, which one with users does not speak.
pub(super) fn hides_stats(run: &RunSpec, protocols: &[Protocol]) -> bool {
    run.password.is_some() && protocols.contains(&Protocol::MemcachedBinary)
}

/// Do the options of a plan go together?
pub(super) fn check(plan: &Plan, host: &Host) -> Resolved {
    check_part(plan, host)?;
    // A part of a plan has every command of it, by whose number results are, but not every class; and of a few requests it may have none.
    if plan.spec.run.requests == Some(Count(0)) {
        return Err(RUN.invalid("requests", 0, "an integer above 0, e.g. 1000 or 100k"));
    }
    commands::check_weights(plan)
}

/// Do the options of a plan, or of a part of one, go together?
pub(super) fn check_part(plan: &Plan, host: &Host) -> Resolved {
    const IS_TOML: &str =
        "an option's value is a boolean, a number below 2^63, a text, or a list or table of them";
    let run = &plan.spec.run;
    let of_run = Table::try_from(run).expect(IS_TOML);
    let of_classes: Vec<Table> =
        plan.spec.classes.iter().map(|class| Table::try_from(class).expect(IS_TOML)).collect();
    let case = |index: usize| Case {
        plan,
        run,
        class: &plan.classes[index],
        spec: &plan.spec.classes[index],
        options: [&of_classes[index], &of_run],
        context: ErrorContext::of_class(&plan.classes[index], &plan.classes),
    };
    for index in 0..plan.classes.len() {
        let case = case(index);
        case.check_rules(RULES, &case.context)?;
        class::check_shared(plan, index)?;
        check_window_mix(&case)?;
        case.check_values()?;
        check_class(&case)?;
        check_calls(&case)?;
        destination::check_counts(&case.context, plan, case.class)?;
    }
    protocol::check(plan)?;
    check_threads(plan)?;
    protocol::check_datagrams(plan)?;
    case(0).check_rules(RUN_RULES, &RUN)?;
    check_servers(plan)?;
    check_host(plan, host)?;
    check_stop(plan)?;
    check_verify(plan)?;
    check_records(plan)
}

/// A schedule of a connection's own says nothing of where a key lives: its calls go where that connection goes.
fn check_calls(case: &Case<'_>) -> Resolved {
    let Case { plan, class, context, .. } = case;
    if class.sessions != SessionScope::Connection {
        return Ok(());
    }
    let has_several = class.paths[0].servers.len() > 1;
    let others = [
        ("--placement by key on several servers", plan.placement.is_by_key() && has_several),
        ("--cluster", plan.is_cluster),
        ("--replicas", class.replicas > 1),
        ("route", class.paths.len() > 1),
    ];
    let reason = ": calls are sent on the connection they belong to";
    context.excludes("call-rate", &others.map(|(other, is_there)| (format!("{other}{reason}"), is_there)))
}

/// Does the class of a window send nothing that a window cannot do?
fn check_window_mix(case: &Case<'_>) -> Resolved {
    let is_supported = |kind: OpKind| matches!(kind, OpKind::Get | OpKind::Set | OpKind::Mget);
    let is_unfit = case.class.mix.weights.iter().any(|(kind, _)| !is_supported(*kind))
        || case.sends(OpKind::Get) && case.sends(OpKind::Mget);
    if case.class.popularity.window().is_some() && is_unfit {
        let accepted = "set with get or mget for --popularity window, e.g. get=9,set=1";
        return Err(case.context.invalid("mix", &case.class.mix, accepted));
    }
    Ok(())
}

/// The values of a class that depend on others.
fn check_class(case: &Case<'_>) -> Resolved {
    let Case { class, spec, context, .. } = case;
    check_ttl(case)?;
    let slots = u64::from(class.connections) * u64::from(class.depth);
    // Every key of every multi-get in flight may have to be stored.
    let keys_each = if case.sends(OpKind::Mget) { u64::from(class.multiget) } else { 1 };
    if class.on_miss == OnMiss::Set && slots * keys_each > IN_FLIGHT_MAX {
        let reason = format!("at most {} connections times depth", IN_FLIGHT_MAX / keys_each);
        return Err(context.requires("on-miss set", reason));
    }
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

fn check_ttl(case: &Case<'_>) -> Resolved {
    let ttl = case.spec.ttl.unwrap_or_default();
    let is_unix_time = (TTL_UNIX_MIN..=TTL_UNIX_MAX).contains(&ttl);
    if !(ttl <= TTL_MAX || is_unix_time) || !ttl.0.is_multiple_of(1_000_000_000) {
        let accepted = "whole seconds up to 720h, e.g. 60s, a Unix time for memcached, e.g. 1900000000s, or 0 for no expiry";
        return Err(case.context.invalid("ttl", ttl, accepted));
    }
    // Expiry is checked from the time of the store.
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
    let of_lifetime = || case.first(OF_LIFETIME);
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
        let servers = class.paths.iter().map(|path| path.servers.len()).max();
        let servers = if has_one { 1 } else { servers.unwrap_or(1) as u32 };
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
pub fn threads_max(plan: &Plan) -> u32 {
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
        let reason = format!("each worker needs a connection of every class{each}");
        return Err(match plan.agents.len() {
            agents if agents > most as usize => {
                RUN.invalid("connections", connections, format!("enough for {agents} agents: {reason}"))
            }
            _ => RUN.invalid("threads", plan.threads, format!("1 to {most}: {reason}")),
        });
    }
    Ok(())
}

/// The options of servers and connections.
fn check_servers(plan: &Plan) -> Resolved {
    let agents = plan.agents.len() as u64;
    if let Some(Count(lost)) = plan.spec.run.tolerate_lost.filter(|lost| (1..=lost.0).contains(&agents)) {
        return Err(RUN.invalid("tolerate-lost", lost, format!("fewer than the {agents} agents")));
    }
    if let Some(unfit) = plan.agents.iter().find(|agent| fleet::split(agent).is_none()) {
        return Err(RUN.invalid("agent", unfit, "HOST or HOST:PORT, an IPv6 address in brackets"));
    }
    if let Some(hidden) = plan.login.password.as_ref().filter(|password| password.is_hidden()) {
        let accepted = "the password, which printed plans leave out, or @FILE";
        return Err(RUN.invalid("password", hidden, accepted));
    }
    if let Some(path) = plan.addresses().iter().find(|server| plan.is_cluster && server.is_unix()) {
        let reason = "--cluster, whose nodes name each other by host and port";
        return Err(RUN.conflicts(&format!("server {path}"), reason));
    }
    // Fields of hashes have few commands, and do not expire.
    let of_hashes = |class: &&Class| plan.hash_field.is_some() && class.protocol.is_resp();
    for class in plan.classes.iter().filter(of_hashes) {
        RUN.excludes("hash-field", &[("--ttl: hashes expire as a whole", class.ttl_s > 0)])?;
        if !class.mix.weights.iter().all(|(kind, _)| kind.has_field_command()) {
            let accepted = "get, set and delete only with hash-field";
            return Err(RUN.invalid("mix", &class.mix, accepted));
        }
    }
    let servers = &plan.servers;
    if !plan.sockets.nodelay && !servers.iter().any(|server| server.transport.is_tcp()) {
        let reason = format!("transport {}: the option is TCP's", servers[0].transport);
        return Err(RUN.conflicts("nodelay=false", reason));
    }
    let other = servers.iter().find(|server| server.transport != Transport::Tcp);
    if let (Timestamps::Kernel, Some(other)) = (plan.timestamps, other) {
        return Err(RUN.conflicts("timestamps kernel", format!("transport {}", other.transport)));
    }
    if plan.preload_rate.is_some() && !plan.preload {
        return Err(RUN.requires("preload-rate", "a data set that is stored first"));
    }
    let stateless = plan.protocols().into_iter().find(|protocol| protocol.is_stateless());
    match stateless.filter(|_| plan.preload) {
        Some(protocol) => {
            Err(RUN.conflicts("preload", format!("--protocol {protocol}, whose servers store nothing")))
        }
        None => Ok(()),
    }
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
    let (Some(until), Some(max)) = (&plan.stop.until, plan.stop.time) else { return Ok(()) };
    if until.until.precisions.is_empty() {
        return Err(RUN.invalid("until", &until.until, "a percentile beside max, such as p99=2%,max=1m"));
    }
    if max < until.first_look {
        let accepted =
            format!("a max of at least --time ({}), the time of the first check", until.first_look);
        return Err(RUN.invalid("until", &until.until, accepted));
    }
    let ops = plan.op_names();
    for precision in &until.until.precisions {
        if let Some(op) = precision.op.filter(|op| !ops.contains(op)) {
            return Err(RUN.invalid("until", precision, format!("operations in --mix, without {op}")));
        }
    }
    Ok(())
}

/// What is recorded and reported.
fn check_records(plan: &Plan) -> Resolved {
    let mut meters = plan.meters.iter().enumerate();
    if let Some((_, meter)) = meters.find(|(index, meter)| plan.meters[..*index].contains(meter)) {
        return Err(RUN.invalid("meter", meter, "each quantity once"));
    }
    let labels = &plan.labels;
    let is_repeated =
        |(index, label): &(usize, &Label)| labels[..*index].iter().any(|earlier| earlier.key == label.key);
    match labels.iter().enumerate().find(is_repeated) {
        Some((_, label)) => Err(RUN.invalid("label", label, "each key once")),
        None => Ok(()),
    }
}

/// What [`Plan::verify`] may take, and what a key takes of it: see `brunt-workload/src/version_tracker.rs`.
const BYTES_MAX: u64 = 8 << 30;
const BYTES_PER_KEY: u64 = 40;
/// The head of a value: `brunt-workload/src/payload.rs`.
const VALUE_BYTES_MIN: u32 = 16;

/// Do values name their keys and versions, and is there memory for what is known of every key?
fn check_verify(plan: &Plan) -> Resolved {
    if plan.verify.is_none() {
        return Ok(());
    }
    // What a window has written, it knows itself.
    let tracked = || plan.classes.iter().filter(|class| class.popularity.window().is_none());
    let requires = |other: String| Err(RUN.requires("verify", other));
    if let Some(class) = tracked().find(|class| class.keyspace.value_size.min() < VALUE_BYTES_MIN) {
        return requires(format!(
            "--value-size of at least {VALUE_BYTES_MIN} bytes, which hold key and version; class '{}' has {}",
            class.name, class.keyspace.value_size
        ));
    }
    if let Some(class) = tracked().find(|class| class.keyspace.value_form != ValueForm::Random) {
        return requires(format!(
            "value-form random, whose values name their keys; class '{}' has {}",
            class.name, class.keyspace.value_form
        ));
    }
    if let Some(class) = plan.classes.iter().find(|class| class.mix.extends()) {
        let reason =
            format!("append and prepend, whose values grow; class '{}' has --mix {}", class.name, class.mix);
        return Err(RUN.conflicts("verify", reason));
    }
    let threads = u64::from(plan.threads);
    let writers_max = u64::from(Version::WRITERS_MAX);
    if threads * plan.classes.len() as u64 > writers_max {
        return requires(format!(
            "at most {writers_max} threads times classes, each of which numbers its writes"
        ));
    }
    let keys = tracked().fold(0_u64, |sum, class| sum.saturating_add(class.keyspace.keys));
    let keys_max = BYTES_MAX / BYTES_PER_KEY / threads;
    if keys > keys_max {
        return requires(format!("at most {keys_max} --keys with {threads} threads, for memory"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
