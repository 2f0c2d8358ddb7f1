//! The classes of a plan from their tables: each with the options of the top level that it does not give itself.
//!
//! Where operations go is settled when all classes are known ([`super::destination`]). Invariant: after it every class has one table in
//! the specification, with the options that apply to it and the defaults that depend on others, and the top level has no options of classes.
//! After [`assign_owners`] a class that shares connections has as many as their owner, of the same depth, to the same servers.

use super::destination::Ways;
use super::{ErrorContext, IN_FLIGHT_MAX, RUN, Resolved, SERVERS_MAX, commands, keyspace};
use crate::arrival::Arrival;
use crate::mix::Mix;
use crate::objective::Fraction;
use crate::op::OpKind;
use crate::plan::{
    Class, Lifetime, Load, OnMiss, OpenRate, Placement, Plan, Protocol, Replay, SessionScope, Trace,
    TraceOrder, TraceRepeat,
};
use crate::popularity::Popularity;
use crate::size::SizeDistribution;
use crate::spec::{ClassSpec, PlanSpec, RunSpec};
use crate::units::{Count, DurationNs, Rate};

/// Options of connections, which a class does not have that uses those of another.
const OF_CONNECTIONS: &str = "connections, depth, server, protocol, transport, route, reconnect, runs-on, connect-rate, \
     connect-arrival, calls-per-connection, connections-total, reconnect-every";

pub(crate) const DEFAULT_CONNECTIONS: u64 = 16;
const DEFAULT_DEPTH: u64 = 1;
const DEFAULT_CALLS_DEPTH: u64 = 128;
const DEFAULT_MULTIGET: u64 = 10;
/// Records times copies stay below what counts hold.
const COPIES_MAX: u64 = 10_000;

/// The classes, at least one.
pub(super) fn resolve(spec: &mut PlanSpec) -> Resolved<Vec<Class>> {
    merge_tables(spec)?;
    let PlanSpec { run, classes: specs, .. } = spec;
    let has_several = specs.len() > 1;
    let mut classes: Vec<Class> = Vec::new();
    for index in 0..specs.len() {
        let connections = connections(specs, index)?;
        let spec = &mut specs[index];
        let name = spec.name.clone().unwrap_or_default();
        let context = ErrorContext { class: has_several.then_some(name.as_str()), route: None };
        let class = resolve_class(&context, run, spec, connections)?;
        if classes.iter().any(|earlier| earlier.name == class.name) {
            return Err(context.invalid("name", &class.name, "a unique name for every class"));
        }
        classes.push(class);
    }
    Ok(classes)
}

/// Lays each table over the options of the top level, and names it.
fn merge_tables(spec: &mut PlanSpec) -> Resolved {
    let base = std::mem::take(&mut spec.base);
    match base.name {
        Some(name) if !spec.classes.is_empty() => {
            return Err(RUN.invalid("name", name, "names in the [[class]] tables"));
        }
        _ if spec.classes.is_empty() => spec.classes.push(ClassSpec::default()),
        _ => {}
    }
    let has_several = spec.classes.len() > 1;
    for (index, own) in spec.classes.iter_mut().enumerate() {
        let mut merged = base.clone();
        if own.connections_of.is_some() {
            merged.take(OF_CONNECTIONS);
        }
        merged.overlay(std::mem::take(own));
        merged.name.get_or_insert(if has_several {
            format!("class-{}", index + 1)
        } else {
            "main".to_owned()
        });
        *own = merged;
    }
    Ok(())
}

/// How many connections a class uses: those of another class, if it names one.
fn connections(specs: &[ClassSpec], index: usize) -> Resolved<u64> {
    let own = &specs[index];
    let is_owner = |other: &&ClassSpec| own.connections_of.is_some() && other.name == own.connections_of;
    let owner = specs.iter().find(is_owner).unwrap_or(own);
    let class = owner.name.as_deref().filter(|_| specs.len() > 1);
    let context = ErrorContext { class, route: None };
    context.count("connections", owner.connections, DEFAULT_CONNECTIONS, 1, 1_000_000)
}

fn resolve_class(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    spec: &mut ClassSpec,
    connections: u64,
) -> Resolved<Class> {
    let name = spec.name.clone().unwrap_or_default();
    let named_plainly = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(named_plainly) {
        return Err(context.invalid("name", name, "up to 64 letters, digits, '-' and '_'"));
    }
    let depth = context.count("depth", spec.depth, default_depth(spec, connections), 1, IN_FLIGHT_MAX)?;
    if connections * depth > IN_FLIGHT_MAX {
        let limit = format!("{}: {connections} connections", IN_FLIGHT_MAX / connections);
        return Err(context.exceeds("depth", depth, limit));
    }
    if spec.connections_of.is_none() {
        (spec.connections, spec.depth) = (Some(Count(connections)), Some(Count(depth)));
    }
    let trace = resolve_trace(context, spec)?;
    let mix = match &trace {
        Some(trace) => mix_of_trace(trace),
        None => commands::mix(context, spec.mix.as_ref(), commands::of_class(run, spec))?,
    };
    let multiget = context.count("multiget", spec.multiget, DEFAULT_MULTIGET, 1, 1024)?;
    if mix.contains(OpKind::Mget) {
        spec.multiget = Some(Count(multiget));
    }
    let replicas = context.count("replicas", spec.replicas, 1, 1, SERVERS_MAX as u64)?;
    spec.replicas = spec.replicas.filter(|_| replicas > 1);
    let sessions = sessions(context, spec, connections)?;
    Ok(Class {
        name,
        load: resolve_load(spec),
        connections: connections as u32,
        connections_of: None,
        depth: depth as u32,
        sessions,
        drift: spec.drift,
        keyspace: keyspace::resolve(
            context,
            spec,
            &mix,
            connections / u64::from(sessions.connections_each()),
        )?,
        delta: spec.delta.clone().unwrap_or(SizeDistribution::Fixed(1)),
        popularity: spec.popularity.get_or_insert(Popularity::Uniform).clone(),
        multiget: multiget as u16,
        ttl_s: (spec.ttl.unwrap_or_default().0 / DurationNs::from_secs(1).0) as u32,
        noreply: spec.noreply == Some(true),
        // A preload misses nothing.
        on_miss: spec.on_miss.filter(|_| spec.trace_preload != Some(true)).unwrap_or(OnMiss::Ignore),
        miss_delay: spec.miss_delay.filter(|_| spec.trace_preload != Some(true)),
        lifetime: Lifetime {
            connect_rate: spec.connect_rate,
            connect_arrival: spec.connect_arrival.clone().filter(|arrival| *arrival != Arrival::Uniform),
            calls: spec.calls_per_connection.map(|count| count.0),
            reconnect_every: spec.reconnect_every,
            total: spec.connections_total.map(|count| count.0),
        },
        reconnect: spec.reconnect.unwrap_or_default(),
        host_role: spec.runs_on.unwrap_or_default(),
        replicas: replicas as u32,
        protocol: Protocol::MemcachedText,
        paths: Vec::new(),
        purge: spec.purge.map(|count| count.0),
        trace,
        mix,
    })
}

/// Calls by a schedule are pipelined however many replies are out: as many as a connection is likely to need.
fn default_depth(spec: &ClassSpec, connections: u64) -> u64 {
    match spec.call_rate {
        Some(_) => {
            let calls = spec.calls_per_connection.map_or(u64::MAX, |count| count.0);
            calls.min(DEFAULT_CALLS_DEPTH).min(IN_FLIGHT_MAX / connections).max(1)
        }
        None => DEFAULT_DEPTH,
    }
}

fn resolve_load(spec: &mut ClassSpec) -> Load {
    let rate = match (spec.call_rate, spec.rate, &spec.rate_profile) {
        (Some(rate), ..) => {
            let arrival = spec.call_arrival.get_or_insert(Arrival::Uniform).clone();
            return Load::Open { rate: OpenRate::PerConnection(rate), arrival };
        }
        _ if spec.trace_preload == Some(true) => return Load::Closed { think: DurationNs::default() },
        _ if spec.replay == Some(true) => {
            let arrival = spec.arrival.get_or_insert(Arrival::Uniform).clone();
            return Load::Open { rate: OpenRate::Recorded, arrival };
        }
        (None, Some(rate), _) => OpenRate::Constant(rate),
        (None, None, Some(profile)) => OpenRate::Profile(profile.clone()),
        (None, None, None) => return Load::Closed { think: *spec.think.get_or_insert_default() },
    };
    Load::Open { rate, arrival: spec.arrival.get_or_insert(Arrival::Poisson).clone() }
}

/// How a class's connections are grouped into sessions.
fn sessions(context: &ErrorContext<'_>, spec: &ClassSpec, connections: u64) -> Resolved<SessionScope> {
    match spec.client_connections {
        None if spec.call_rate.is_some() => Ok(SessionScope::Connection),
        None => Ok(SessionScope::Worker),
        Some(Count(each)) if each == 0 || !connections.is_multiple_of(each) => {
            let accepted = format!("a divisor of --connections, {connections}");
            Err(context.invalid("client-connections", each, accepted))
        }
        Some(Count(each)) => Ok(SessionScope::Client { connections: each as u32 }),
    }
}

/// The trace of a class, if it has one.
fn resolve_trace(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<Option<Trace>> {
    match (&spec.trace, spec.trace_layout) {
        (None, None) => Ok(None),
        (Some(file), layout) if !file.is_empty() => Ok(Some(Trace {
            file: file.clone(),
            layout,
            order: spec.trace_order.unwrap_or(TraceOrder::Keys),
            replay: (spec.replay == Some(true)).then(|| resolve_replay(context, spec)).transpose()?,
        })),
        (Some(file), _) => Err(context.invalid("trace", file, "the path of a file")),
        (None, Some(_)) => Err(context.requires("trace-layout", "trace")),
    }
}

fn resolve_replay(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<Replay> {
    Ok(Replay {
        speed: spec.trace_speed.unwrap_or(Rate::per_second(1)),
        sample: spec.trace_sample.unwrap_or(Fraction { per_billion: 1_000_000_000 }),
        copies: context.count("trace-copies", spec.trace_copies, 1, 1, COPIES_MAX)? as u32,
        repeat: spec.trace_repeat.unwrap_or(TraceRepeat::Once),
        is_all_gets: spec.trace_gets == Some(true),
        is_preload: spec.trace_preload == Some(true),
        warmup_speed: spec.trace_warmup_speed,
    })
}

/// Makes a session of each connection, or of one to each server, where the records of a key are to stay in order.
pub(super) fn order_keys(placement: Placement, classes: &mut [Class]) {
    for class in classes.iter_mut() {
        let servers = class.paths.iter().map(|path| path.servers.len() as u32).max();
        if class.keeps_key_order() {
            let connections = servers.filter(|_| placement != Placement::ByThread).unwrap_or(1);
            class.sessions = SessionScope::Client { connections };
        }
    }
}

/// What a trace may ask for, before the protocol is known.
fn mix_of_trace(trace: &Trace) -> Mix {
    if trace.replay.as_ref().is_some_and(|replay| replay.is_preload) {
        return Mix::of([(OpKind::Set, 1)]);
    }
    if trace.replay.as_ref().is_some_and(|replay| replay.is_all_gets) {
        return Mix::of([(OpKind::Get, 1)]);
    }
    Mix::of(trace.kinds().iter().map(|kind| (*kind, 1)))
}

/// Removes kinds that the protocol lacks from the mixes: the trace reader substitutes them.
pub(super) fn limit_mixes(run: &RunSpec, classes: &mut [Class]) {
    for class in classes.iter_mut().filter(|class| class.trace.is_some()) {
        let protocol = class.protocol;
        let is_stored = |kind: OpKind| run.hash_field.is_none() || kind.has_field_command();
        class.mix.weights.retain(|(kind, _)| protocol.supports(*kind) && is_stored(*kind));
    }
}

/// Gives classes that share connections what their owners have.
pub(super) fn assign_owners(spec: &PlanSpec, classes: &mut [Class], ways: &mut [Ways]) -> Resolved {
    for (index, own) in spec.classes.iter().enumerate() {
        let Some(name) = &own.connections_of else { continue };
        let is_it = |(at, class): &(usize, &Class)| class.name == *name && *at != index;
        let accepted = match classes.iter().enumerate().find(is_it) {
            None => "the name of another class",
            Some((at, _)) if spec.classes[at].connections_of.is_some() => "a class with its own connections",
            Some((at, owner)) => {
                let owner = owner.clone();
                let class = &mut classes[index];
                class.connections_of = Some(owner.name);
                ways[index] = ways[at].clone();
                (class.connections, class.depth) = (owner.connections, owner.depth);
                (class.reconnect, class.host_role) = (owner.reconnect, owner.host_role);
                class.lifetime = owner.lifetime;
                continue;
            }
        };
        let context = ErrorContext { class: Some(&classes[index].name), route: None };
        return Err(context.invalid("connections-of", name, accepted));
    }
    Ok(())
}

/// Can this class use the connections of another?
pub(super) fn check_shared(plan: &Plan, index: usize) -> Resolved {
    let class = &plan.classes[index];
    let Some(name) = &class.connections_of else { return Ok(()) };
    let owner = &plan.classes[plan.connection_owner(index)];
    let context = ErrorContext { class: Some(&class.name), route: None };
    let given = plan.spec.classes[index].given();
    if let Some(option) = OF_CONNECTIONS.split(", ").find(|option| given.iter().any(|name| name == option)) {
        return Err(
            context.conflicts("connections-of", format!("{option}: connections are those of class '{name}'"))
        );
    }
    let obstacles = [
        ("call-rate, client-connections or a trace", owner.sessions != SessionScope::Worker),
        ("replicas", owner.replicas > 1),
        ("routes", owner.paths.len() > 1),
        (
            "connect-rate, calls-per-connection, connections-total or reconnect-every",
            owner.lifetime.is_planned(),
        ),
        ("a cluster", plan.is_cluster),
    ];
    let of_owner = obstacles.map(|(obstacle, is_there)| (format!("{obstacle} of class '{name}'"), is_there));
    context.excludes("connections-of", &of_owner)?;
    let has_own = class.replicas > 1 || class.sessions != SessionScope::Worker;
    context.excludes("connections-of", &[("replicas, call-rate or client-connections", has_own)])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cases, resolved};

    #[test]
    fn trace_options_resolve() {
        let of_trace = "trace = 't.csv'\ntrace-layout = 'twitter'\n";
        let mix = |toml: &str| resolved(&format!("{of_trace}{toml}")).unwrap().classes[0].mix.to_string();
        let memcached = "get=1,gets=1,set=1,add=1,replace=1,append=1,prepend=1,cas=1,incr=1,decr=1,delete=1";
        assert_eq!(mix(""), memcached);
        assert_eq!(
            mix("protocol = 'resp2'\nserver = 'a'"),
            "get=1,set=1,add=1,replace=1,append=1,incr=1,decr=1,delete=1"
        );
        assert_eq!(mix("protocol = 'resp2'\nserver = 'a'\nhash-field = 1"), "get=1,set=1,delete=1");
        let plan = resolved(of_trace).unwrap();
        assert_eq!((plan.stop.time, plan.stop.requests), (None, None), "it ends with its last line");
        assert!(!plan.data_sets()[0].has_counters && !plan.data_sets()[0].extends);
    }

    #[test]
    fn options_that_conflict_with_a_trace_are_refused() {
        let of_trace = "trace = 't.csv'\ntrace-layout = 'mutilate-read-write'\n";
        for (toml, message) in [
            ("trace = ''".to_owned(), "invalid value '' for trace: expected the path of a file"),
            ("trace-layout = 'mutilate-all-gets'".to_owned(), "trace-layout requires trace"),
            (format!("{of_trace}mix = 'get'"), "--mix cannot be used with trace, which names the operations"),
            (
                format!("{of_trace}transport = 'udp'"),
                "trace cannot be used with transport udp: requests must fit into datagrams",
            ),
            (
                format!("{of_trace}verify = '5%'"),
                "trace cannot be used with --verify, which checks the keys of a data set",
            ),
            ("replay = true".to_owned(), "--replay requires trace, by --set trace=FILE"),
            (
                format!("{of_trace}replay = true"),
                "--replay cannot be used with a trace-layout whose times have no unit",
            ),
            (format!("{of_trace}trace-speed = 2"), "trace-speed requires --replay"),
            (
                "trace = 't'\nreplay = true\ntrace-repeat = 'new-keys'".to_owned(),
                "trace-repeat new-keys requires --time or --requests",
            ),
            (
                "trace = 't'\nreplay = true\narrival = 'fb_ia'".to_owned(),
                "--replay with --arrival requires uniform or poisson, for the records of a second",
            ),
            (
                "trace = 't'\nreplay = true\nrate = 5".to_owned(),
                "--replay cannot be used with --rate: the trace has the times",
            ),
            (
                "trace = 't'\nserver = ['a', 'b']\nconnections = 5".to_owned(),
                "trace requires a multiple of the number of servers for --connections, or trace-order = 'lines'",
            ),
        ] {
            let error = resolved(&toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }

    const OWNER: &str = "[[class]]\nname = 'one'\nconnections = 6\ndepth = 3\n";

    #[test]
    fn classes_can_share_connections() {
        let toml = format!(
            "server = ['a', 'b']\n[[class]]\nname = 'two'\nrate = 10\nconnections-of = 'one'\n{OWNER}"
        );
        let plan = resolved(&toml).unwrap();
        let [two, one] = &plan.classes[..] else { panic!("two classes") };
        assert_eq!((two.connections, two.depth, two.own_connections()), (6, 3, 0));
        assert_eq!((one.own_connections(), plan.connection_owner(0), plan.connection_owner(1)), (6, 1, 1));
        assert!(plan.shares_connections(0) && plan.shares_connections(1));
        assert!(!resolved(OWNER).unwrap().shares_connections(0));
        // What is printed as a plan file is the same plan.
        let again = plan.spec.to_toml();
        assert_eq!(resolved(&again), Ok(plan));
    }

    /// Each connection of the owner has a window of its own.
    #[test]
    fn windows_are_counted_by_connections_of_the_owner() {
        let owner = "[[class]]\nname = 'one'\nconnections = 10000\n";
        let two =
            "[[class]]\nname = 'two'\nprefix = 'w'\nconnections-of = 'one'\npopularity = 'window:16M'\n";
        let expected = "--popularity window:16000000 (class 'two') exceeds 214748 objects in each of 10000 windows, for memory";
        for toml in [format!("{owner}{two}"), format!("{two}{owner}")] {
            assert_eq!(resolved(&toml).unwrap_err(), expected);
        }
    }

    #[test]
    fn unshareable_connections_are_refused() {
        let two = "[[class]]\nname = 'two'\nconnections-of = ";
        let table = cases(
            r"
            '' => 'three' => invalid value 'three' for connections-of (class 'two'): expected the name of another class
            '' => 'two' => invalid value 'two' for connections-of (class 'two'): expected the name of another class
            ''
                => 'one'\nconnections = 3 => connections-of (class 'two') cannot be used with connections: connections are those of class 'one'
            ''
                => 'one'\ncall-rate = 3 => connections-of (class 'two') cannot be used with replicas, call-rate or client-connections
            calls-per-connection = 9\n
                => 'one' => connections-of (class 'two') cannot be used with connect-rate, calls-per-connection, connections-total or reconnect-every of class 'one'
            call-rate = 9\n
                => 'one' => connections-of (class 'two') cannot be used with call-rate, client-connections or a trace of class 'one'
            [[class]]\nname = 'three'\nconnections-of = 'one'\n
                => 'three' => invalid value 'three' for connections-of (class 'two'): expected a class with its own connections
        ",
        );
        for [more, name, expected] in table {
            let message = resolved(&format!("{OWNER}{more}{two}{name}")).unwrap_err();
            assert_eq!(message, expected);
        }
    }
}
