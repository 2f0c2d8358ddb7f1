//! The classes of a plan from their tables: each with the options of the top level that it does not give itself.
//!
//! Where operations go is settled when all classes are known ([`super::destination`]). Invariant: after it every class has one table in
//! the specification, with its defaults, and the top level has no options of classes.

use super::{ErrorContext, IN_FLIGHT_MAX, RUN, Resolved, SERVERS_MAX, commands, keyspace, trace};
use crate::arrival::Arrival;
use crate::op::OpKind;
use crate::plan::{Class, Lifetime, Load, OnMiss, OpenRate, SessionScope};
use crate::popularity::Popularity;
use crate::size::SizeDistribution;
use crate::spec::{ClassSpec, PlanSpec, RunSpec};
use crate::units::{Count, DurationNs};

/// Options of connections, which a class does not have that uses those of another.
pub(super) const OF_CONNECTIONS: &str = "connections, depth, server, protocol, transport, route, reconnect, runs-on, connect-rate, \
     connect-arrival, calls-per-connection, connections-total, reconnect-every";

const DEFAULT_CONNECTIONS: u64 = 16;
const DEFAULT_DEPTH: u64 = 1;
const DEFAULT_CALLS_DEPTH: u64 = 128;
const DEFAULT_MULTIGET: u64 = 10;

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
    let trace = trace::resolve(context, spec)?;
    let mix = match &trace {
        Some(trace) => trace::mix(trace),
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
        on_miss: spec.on_miss.unwrap_or(OnMiss::Ignore),
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
        own_destination: None,
        routes: Vec::new(),
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
