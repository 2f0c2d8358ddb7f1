//! Turns a specification into a plan: the only place with defaults, and the checks between options.
//!
//! Pure: what depends on the host comes in as [`Host`]. Every error names the option and what is expected; no given
//! option is ignored.

mod cluster;
mod commands;
mod datagrams;
mod destination;
mod error;
pub mod fleet;
mod hash;
mod server_usage;
mod shared_connections;
mod trace;
mod transport;
mod url;
mod window;

use crate::arrival::Arrival;
use crate::command::{Command, CommandSpec, name_of};
use crate::cpus::CpuList;
use crate::host_role::HostRole;
use crate::label::Label;
use crate::login::Login;
use crate::mix::Mix;
use crate::objective::Fraction;
use crate::op::OpKind;
use crate::op_name::OpName;
use crate::plan::{
    Class, Destination, EarlyStop, INLINE_VALUE_BYTES_MAX, IoChoice, KeyForm, Keyspace, Lifetime, Load,
    MeterKind, OnMiss, OpenRate, Placement, Plan, Profile, Protocol, Reconnect, Refill, Stop, Target,
    Timestamps, Transport, ValueForm, Wait,
};
use crate::popularity::Popularity;
use crate::server::ServerAddress;
use crate::server_list::ServerList;
use crate::size::SizeDistribution;
use crate::spec::{ClassSpec, PlanSpec, RunSpec};
use crate::units::{Count, DurationNs, Rate};
use crate::until::Until;
use crate::url::NamedServer;
use crate::version::Version;
use crate::warmup::Warmup;
pub use cluster::of_nodes;
pub use error::PlanError;
use error::{ErrorContext, Resolved};
use server_usage::ServerUsage;
use std::borrow::Cow;

/// What the defaults need to know of the machine and the moment.
#[derive(Clone, Debug)]
pub struct Host {
    /// CPUs that this process may run on, by number; at least one.
    pub allowed_cpus: Vec<u32>,
    /// The seed to use when none is given.
    pub random_seed: u64,
}

/// The run, in messages.
const RUN: ErrorContext<'_> = ErrorContext::RUN;

/// The most bytes of keys in one inline command, so that Redis's bound of 64 KiB on the line leaves room for all else.
const INLINE_KEYS_BYTES_MAX: u64 = 60_000;
/// memcached's own limit on the length of a key.
const KEY_SIZE_MAX: u32 = crate::plan::KEY_BYTES_MAX;
/// The largest value we send: the block that values are cut from is this long, and memcached takes 1 MiB by default.
const VALUE_SIZE_MAX: u32 = 128 << 20;
/// Slots for requests in flight per plan; each takes about 128 bytes.
const IN_FLIGHT_MAX: u64 = 16 << 20;

/// Every worker has a queue and a connection for each.
const SERVERS_MAX: usize = 1024;
const WORKERS_MAX: u32 = 1024;
/// memcached takes a longer time to live for a Unix time.
const TTL_MAX: DurationNs = DurationNs::from_secs(30 * 24 * 3600);
/// The earliest Unix time, in 2001: longer than any sensible span.
const TTL_UNIX_MIN: DurationNs = DurationNs::from_secs(1_000_000_000);
/// Protocols have 32 bits for it.
const TTL_UNIX_MAX: DurationNs = DurationNs::from_secs(u32::MAX as u64);

/// Slots where replies carry tokens: the bits that are left tell 4096 uses of a slot apart, so that a late reply meets no other.
const TOKENS_MAX: u64 = 1 << 20;
/// What [`Plan::verify`] may take, and what a key takes of it.
const VERIFY_BYTES_MAX: u64 = 8 << 30;
const VERIFY_BYTES_PER_KEY: u64 = 40;
/// The head of a value: `brunt-workload/src/payload.rs`.
const VERIFY_VALUE_MIN: u32 = 16;
const DEFAULT_CONNECTIONS: u64 = 16;
const DEFAULT_DEPTH: u64 = 1;
const DEFAULT_CALLS_DEPTH: u64 = 128;
const DEFAULT_KEYS: u64 = 100_000;
const DEFAULT_KEY_SIZE: u32 = 30;
const DEFAULT_VALUE_SIZE: u32 = 200;
const DEFAULT_MULTIGET: u64 = 10;
const DEFAULT_TIME: DurationNs = DurationNs::from_secs(10);
const DEFAULT_MAX_TIME: DurationNs = DurationNs::from_secs(600);
const DEFAULT_WARMUP: DurationNs = DurationNs::from_secs(1);
const DEFAULT_TIMEOUT: DurationNs = DurationNs::from_secs(10);
const DEFAULT_DATA_SEED: u64 = 1;
/// Every worker keeps histograms of each class, and reports have rows of each.
const CLASSES_MAX: usize = 64;
/// How often workers hand over what they recorded.
const INTERVAL_UNIT: DurationNs = DurationNs::from_millis(100);

/// Resolves a specification into the plan that will run.
pub fn resolve(spec: &PlanSpec, host: &Host) -> Result<Plan, PlanError> {
    if spec.classes.len() > CLASSES_MAX {
        let given = format!("{} tables", spec.classes.len());
        return Err(PlanError::invalid_table("[[class]]", given, format!("at most {CLASSES_MAX}")));
    }
    let spec = &*fleet::with_measuring_class(spec)?;
    let spec = &*with_default_command(spec);
    let mut run = url::apply_urls(&RUN, &spec.run)?;
    run.protocol = run.protocol.or(run.server.as_ref().and_then(url::protocol_by_port));
    let run = &run;
    let mut classes = resolve_classes(spec)?;
    let commands = commands::merge(spec, &mut classes);
    let default_destination = destination::of_run(run, &spec.classes)?;
    destination::assign(run, &default_destination, spec, &mut classes)?;
    shared_connections::assign_owners(run, spec, &mut classes)?;
    trace::limit_mixes(run, &default_destination, &mut classes)?;
    window::check(run, &classes)?;
    check_protocol(&commands, &default_destination, &classes)?;
    let used = ServerUsage::of(&default_destination, &classes);
    let threads = resolve_threads(run, &used, &classes, host)?;
    let reads_data_set = commands::read_data_set(&commands, &classes);
    let preload = resolve_preload(run, &used, reads_data_set)?;
    let commands = commands::with_names(&commands, preload, &classes);
    if used.uses_transport(Transport::Udp) {
        datagrams::check(&default_destination, preload, &classes)?;
    }
    let servers = used.servers_max();
    let timeout = positive("timeout", run.timeout, default_timeout(&used))?;
    let profile = run.profile.unwrap_or(Profile::Latency);
    Ok(Plan {
        agents: fleet::resolve(run, &classes)?,
        protocol: default_destination.protocol,
        login: resolve_login(run, &used)?,
        hash_field: hash::resolve(run, &default_destination, &classes)?,
        trailing_blank: resolve_trailing_blank(run, &used)?,
        transport: default_destination.transport,
        ip_version: run.ip_version.unwrap_or_default(),
        sockets: transport::resolve_sockets(run, &used)?,
        tls: transport::resolve_tls(run, &used)?,
        placement: resolve_placement(run, servers, &classes)?,
        is_cluster: cluster::resolve(run, default_destination.protocol)?,
        threads,
        cpus: resolve_cpus(run, host)?,
        io: run.io.unwrap_or(IoChoice::Auto),
        wait: run.wait.unwrap_or(Wait::Hybrid),
        profile,
        refill: resolve_refill(run, profile),
        gather: run.gather.unwrap_or(profile.gather()),
        timeout,
        connect_timeout: positive("connect-timeout", run.connect_timeout, timeout)?,
        drain: run.drain.unwrap_or(timeout),
        warmup: resolve_warmup(run, &classes)?,
        stop: resolve_stop(run, &classes, &commands)?,
        commands,
        preload,
        verify: resolve_verify(run, &classes, threads, servers)?,
        server_stats: resolve_server_stats(run, &used)?,
        seed: run.seed.map_or(host.random_seed, |seed| seed.0),
        data_seed: run.data_seed.map_or(DEFAULT_DATA_SEED, |seed| seed.0),
        interval: resolve_interval(run)?,
        meters: resolve_meters(run, &used)?,
        labels: resolve_labels(run)?,
        percentiles: run.percentiles.clone().unwrap_or_default().0,
        timestamps: transport::resolve_timestamps(run, &used)?,
        measures_unloaded: false,
        samples_max: RUN.count("samples-max", run.samples_max, 0, 0, 100_000_000)?,
        target: if default_destination.servers.is_empty() {
            Target::Embedded
        } else {
            Target::Servers(default_destination.servers)
        },
        classes,
    })
}

/// In a cluster slots belong to no connection, whose pipeline could be awaited.
fn resolve_refill(run: &RunSpec, profile: Profile) -> Refill {
    let default = if run.cluster == Some(true) { Refill::Eager } else { profile.refill() };
    run.refill.unwrap_or(default)
}

/// A lost datagram shows by its time-out alone, so that UDP has a shorter one.
fn default_timeout(used: &ServerUsage) -> DurationNs {
    if used.uses_transport(Transport::Udp) { datagrams::DEFAULT_TIMEOUT } else { DEFAULT_TIMEOUT }
}

/// Adds the default command of a protocol that has nothing else to send.
fn with_default_command(spec: &PlanSpec) -> Cow<'_, PlanSpec> {
    let has_own = !spec.classes.is_empty() && spec.classes.iter().all(|class| class.command.is_some());
    match spec.run.protocol.and_then(Protocol::default_command) {
        Some(command) if spec.run.command.is_none() && !has_own => {
            let mut spec = spec.clone();
            spec.run.command = Some(vec![CommandSpec::of(command)]);
            Cow::Owned(spec)
        }
        _ => Cow::Borrowed(spec),
    }
}

/// Nothing is stored on servers that store nothing, nor for commands that read nothing of it.
fn resolve_preload(run: &RunSpec, used: &ServerUsage, reads_data_set: bool) -> Resolved<bool> {
    let stateless = used.protocols.iter().find(|protocol| protocol.is_stateless());
    match (run.preload, stateless) {
        (Some(true), Some(protocol)) => {
            let reason = format!("--protocol {protocol}, whose servers store nothing");
            Err(RUN.conflicts("preload", reason))
        }
        (given, stateless) => Ok(given.unwrap_or(stateless.is_none() && reads_data_set)),
    }
}

/// `--warmup auto` is refused where the beginning of the window is fixed before, where the run may end before it, and where the load depends
/// on when it is.
fn resolve_warmup(run: &RunSpec, classes: &[Class]) -> Resolved<Warmup> {
    let is_counted = classes.iter().any(|class| class.lifetime.total.is_some());
    // Connections that are counted would be used up by it.
    let default = if is_counted { Warmup::NONE } else { Warmup::For(DEFAULT_WARMUP) };
    let warmup = run.warmup.unwrap_or(default);
    let has_profile = |class: &Class| matches!(&class.load, Load::Open { rate: OpenRate::Profile(_), .. });
    let obstacle = if run.has_agents() {
        Some("--agent: all hosts begin the window at a time agreed in advance")
    } else if is_counted {
        Some("--connections-total: the run ends with its last connection, warm or not")
    } else if classes.iter().any(has_profile) {
        Some("--rate-profile: its times count from the beginning of the window")
    } else {
        None
    };
    match (warmup, obstacle) {
        (Warmup::Auto, Some(obstacle)) => Err(RUN.conflicts("warmup auto", obstacle)),
        _ => Ok(warmup),
    }
}

/// Workers hand over what they recorded every so often.
fn resolve_interval(run: &RunSpec) -> Resolved<Option<DurationNs>> {
    match run.interval {
        Some(width) if width.0 == 0 || !width.0.is_multiple_of(INTERVAL_UNIT.0) => {
            Err(RUN.invalid("interval", width, "a multiple of 100ms, e.g. 500ms or 10s"))
        }
        width => Ok(width),
    }
}

/// What is known of every key takes memory, in each worker and for each class: see `brunt-workload/src/version_tracker.rs`.
fn resolve_verify(
    run: &RunSpec,
    classes: &[Class],
    threads: u32,
    servers: usize,
) -> Resolved<Option<Fraction>> {
    let Some(share) = run.verify else { return Ok(None) };
    if share.per_billion == 0 {
        return Err(RUN.invalid("verify", share, "a fraction above 0, e.g. 10%"));
    }
    window::check_verify(classes)?;
    // What a window has written, it knows itself.
    let by_ledger = || classes.iter().filter(|class| class.popularity.window().is_none());
    if let Some(class) = by_ledger().find(|class| class.keyspace.value_size.min() < VERIFY_VALUE_MIN) {
        let reason = format!(
            "--value-size of at least {VERIFY_VALUE_MIN} bytes, which hold key and version; class '{}' has {}",
            class.name, class.keyspace.value_size
        );
        return Err(RUN.requires("verify", reason));
    }
    if let Some(class) = by_ledger().find(|class| class.keyspace.value_form != ValueForm::Random) {
        let reason = format!(
            "--value-form random, whose values name their keys; class '{}' has {}",
            class.name, class.keyspace.value_form
        );
        return Err(RUN.requires("verify", reason));
    }
    let is_sure = |placement: Placement| placement.is_by_key() || placement == Placement::ByThread;
    if servers > 1 && run.placement.is_some_and(|placement| !is_sure(placement)) {
        let reason =
            "--placement by key or by-thread: with any other a key may have been written on any server";
        return Err(RUN.requires("verify", reason));
    }
    if let Some(class) = classes.iter().find(|class| class.mix.extends()) {
        let reason =
            format!("append and prepend, whose values grow; class '{}' has --mix {}", class.name, class.mix);
        return Err(RUN.conflicts("verify", reason));
    }
    let threads = u64::from(threads);
    let writers_max = u64::from(Version::WRITERS_MAX);
    if threads * classes.len() as u64 > writers_max {
        let reason = format!("at most {writers_max} threads times classes, each of which numbers its writes");
        return Err(RUN.requires("verify", reason));
    }
    let keys = by_ledger().fold(0_u64, |sum, class| sum.saturating_add(class.keyspace.keys));
    let bytes = keys.saturating_mul(threads).saturating_mul(VERIFY_BYTES_PER_KEY);
    if bytes > VERIFY_BYTES_MAX {
        let keys_max = VERIFY_BYTES_MAX / VERIFY_BYTES_PER_KEY / threads;
        let reason = format!("at most {keys_max} --keys with {threads} threads, for memory");
        return Err(RUN.requires("verify", reason));
    }
    Ok(Some(share))
}

fn resolve_trailing_blank(run: &RunSpec, used: &ServerUsage) -> Resolved<bool> {
    let is_asked = run.trailing_blank == Some(true);
    if is_asked && !used.supports(|protocol| protocol == Protocol::MemcachedText) {
        return Err(RUN.requires("trailing-blank", "--protocol memcached-text"));
    }
    Ok(is_asked)
}

fn positive(option: &str, given: Option<DurationNs>, default: DurationNs) -> Resolved<DurationNs> {
    match given {
        Some(DurationNs(0)) => Err(RUN.invalid(option, "0s", "a duration above 0, e.g. 10s or 500ms")),
        given => Ok(given.unwrap_or(default)),
    }
}

/// Is everything that the classes send in the protocol, and every command of the user's in a mix?
fn check_protocol(
    commands: &[CommandSpec],
    default_destination: &Destination,
    classes: &[Class],
) -> Resolved {
    check_stateless(commands, default_destination, classes)?;
    let takes_commands =
        ServerUsage::of(default_destination, classes).supports(|protocol| protocol.supports(OpKind::Raw));
    commands::check(commands, takes_commands, classes)?;
    for class in classes {
        let protocol = class.own_destination.as_ref().unwrap_or(default_destination).protocol;
        let context = ErrorContext::of_class(class, classes);
        if protocol == Protocol::RespInline {
            check_inline(&context, class)?;
        }
        check_kinds(&context, protocol, class)?;
        let slots = u64::from(class.connections) * u64::from(class.depth);
        if protocol.has_tokens() && slots > TOKENS_MAX {
            let most = TOKENS_MAX / u64::from(class.connections);
            let limit = format!("{most}: --protocol {protocol} with {} connections", class.connections);
            return Err(context.exceeds("depth", class.depth, limit));
        }
        if class.noreply && !protocol.is_memcached() {
            let reason = format!("--protocol {protocol}, where every command has a reply");
            return Err(context.conflicts("noreply", reason));
        }
        if class.mix.contains(OpKind::Raw) && class.mix.commands.is_empty() {
            return Err(context.requires("mix with raw", "--command"));
        }
    }
    Ok(())
}

/// Where servers store nothing, commands are all there is to send.
fn check_stateless(
    commands: &[CommandSpec],
    default_destination: &Destination,
    classes: &[Class],
) -> Resolved {
    let protocol_of = |class: &Class| class.own_destination.as_ref().unwrap_or(default_destination).protocol;
    for class in classes.iter().filter(|class| protocol_of(class).is_stateless()) {
        let protocol = protocol_of(class);
        let context = ErrorContext::of_class(class, classes);
        if commands.is_empty() || class.trace.is_some() {
            let option = format!("protocol {protocol}");
            return Err(context.requires(&option, "--command, and no trace"));
        }
        check_kinds(&context, protocol, class)?;
    }
    Ok(())
}

/// Has the protocol a request for each kind of the class's operations?
fn check_kinds(context: &ErrorContext<'_>, protocol: Protocol, class: &Class) -> Resolved {
    let Some((kind, _)) = class.mix.weights.iter().find(|(kind, _)| !protocol.supports(*kind)) else {
        return Ok(());
    };
    let names = OpKind::ALL.into_iter().filter(|kind| protocol.supports(*kind)).map(OpKind::name);
    let names = names.collect::<Vec<_>>().join(" ");
    let accepted = format!("operations of {protocol} ({names}), without {kind}");
    Err(context.invalid("mix", &class.mix, accepted))
}

/// Has an inline command room for everything that the class sends? Redis reads lines of at most 64 KiB.
fn check_inline(context: &ErrorContext<'_>, class: &Class) -> Resolved {
    let keyspace = &class.keyspace;
    if keyspace.value_size.max() > INLINE_VALUE_BYTES_MAX {
        let limit = format!("{INLINE_VALUE_BYTES_MAX} bytes: --protocol resp-inline");
        return Err(context.exceeds("value-size", &keyspace.value_size, limit));
    }
    let most = INLINE_KEYS_BYTES_MAX / (u64::from(keyspace.key_size.max()) + 1);
    if class.mix.contains(OpKind::Mget) && u64::from(class.multiget) > most {
        let limit = format!("{most}: --protocol resp-inline with keys of this size");
        return Err(context.exceeds("multiget", class.multiget, limit));
    }
    Ok(())
}

fn resolve_login(run: &RunSpec, used: &ServerUsage) -> Resolved<Login> {
    let (has_users, is_resp) = (used.supports(Protocol::has_users), used.supports(Protocol::is_resp));

    let (of_users, of_resp) = ("memcached-binary, resp2 or resp3", "resp2 or resp3");
    let given = [
        ("user", run.user.is_some(), has_users, of_users),
        ("password", run.password.is_some(), has_users, of_users),
        ("database", run.database.is_some(), is_resp, of_resp),
        ("client-name", run.client_name.is_some(), is_resp, of_resp),
    ];
    for (option, is_given, is_supported, protocols) in given {
        if is_given && !is_supported {
            return Err(RUN.requires(option, format!("--protocol {protocols}")));
        }
    }
    if run.user.is_some() && run.password.is_none() {
        return Err(RUN.requires("user", "--password"));
    }
    let is_binary = used.supports(|protocol| protocol == Protocol::MemcachedBinary);
    if run.user.is_none() && run.password.is_some() && is_binary {
        return Err(RUN.requires("password", "--user"));
    }
    if let Some(hidden) = run.password.as_ref().filter(|password| password.is_hidden()) {
        let accepted = "the password, which printed plans leave out, or @FILE";
        return Err(RUN.invalid("password", hidden, accepted));
    }
    if used.embedded && run.password.is_some() {
        return Err(RUN.requires("password", "--server: the reference server of a run needs no login"));
    }
    let is_plain = |name: &&String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(name) = run.client_name.as_ref().filter(|name| !is_plain(name)) {
        return Err(RUN.invalid("client-name", name, "printable ASCII without spaces"));
    }
    Ok(Login {
        user: run.user.clone(),
        password: run.password.clone(),
        database: RUN.count("database", run.database, 0, 0, u64::from(u32::MAX))? as u32,
        client_name: run.client_name.clone(),
    })
}

fn resolve_server_stats(run: &RunSpec, used: &ServerUsage) -> Resolved<bool> {
    // A memcached is polled in its text protocol, which one with users does not speak.
    let is_mute = run.password.is_some() && used.supports(|protocol| protocol == Protocol::MemcachedBinary);
    match run.server_stats {
        Some(true) if run.hash_field.is_some() => {
            Err(RUN.conflicts("server-stats", "--hash-field: Redis counts hashes, brunt counts keys"))
        }
        Some(true) if is_mute => Err(RUN.conflicts(
            "server-stats",
            "--password and memcached: statistics are read in the text protocol, which has no login",
        )),
        Some(true) if used.supports(Protocol::is_stateless) => Err(RUN
            .conflicts("server-stats", "--protocol echo, ping or thrift, whose servers have no statistics")),
        given => {
            let is_available = !is_mute && run.hash_field.is_none() && !used.supports(Protocol::is_stateless);
            Ok(given.unwrap_or(is_available))
        }
    }
}

/// Servers by their addresses, at the usual port of the protocol where none is given. By thread one may be given several times, which
/// gives it so many of the workers' turns.
fn resolve_servers(
    context: &ErrorContext<'_>,
    given: Option<&ServerList>,
    protocol: Protocol,
    placement: Option<Placement>,
) -> Resolved<Vec<ServerAddress>> {
    let given = given.map(|list| list.0.as_slice()).unwrap_or_default();
    let servers: Vec<ServerAddress> = given
        .iter()
        .filter_map(NamedServer::address)
        .map(|server| server.at_port(protocol.default_port()))
        .collect();
    if servers.len() > SERVERS_MAX {
        return Err(context.exceeds("server", format!("{} servers", servers.len()), SERVERS_MAX));
    }
    for (index, server) in servers.iter().enumerate() {
        if servers[..index].contains(server) && placement != Some(Placement::ByThread) {
            return Err(context.invalid(
                "server",
                server,
                "each server once, unless --placement is by-thread",
            ));
        }
    }
    Ok(servers)
}

fn resolve_placement(run: &RunSpec, servers: usize, classes: &[Class]) -> Resolved<Placement> {
    let is_led = run.has_agents();
    let purges = classes.iter().any(|class| class.purge.is_some());
    match run.placement {
        Some(Placement::ByThread) if is_led || purges => {
            let other = if is_led { "--agent" } else { "purge" };
            Err(RUN.conflicts("placement by-thread", other))
        }
        Some(_) if servers == 1 => Err(RUN.requires("placement", "at least two --server")),
        given => Ok(given.unwrap_or(Placement::Modulo)),
    }
}

fn resolve_cpus(run: &RunSpec, host: &Host) -> Resolved<Vec<u32>> {
    let Some(list) = &run.cpus else { return Ok(Vec::new()) };
    if list.0.iter().all(|cpu| host.allowed_cpus.contains(cpu)) {
        return Ok(list.0.clone());
    }
    let accepted = format!("CPUs out of {}", CpuList(host.allowed_cpus.clone()));
    Err(RUN.invalid("cpus", list, accepted))
}

fn resolve_stop(run: &RunSpec, classes: &[Class], commands: &[Command]) -> Resolved<Stop> {
    let requests = match run.requests {
        Some(Count(0)) => {
            return Err(RUN.invalid("requests", 0, "an integer above 0, e.g. 1000 or 100k"));
        }
        given => given.map(|count| count.0),
    };
    if let Some(until) = &run.until {
        return resolve_until(run, until, classes, commands);
    }
    if run.max_time.is_some() {
        return Err(RUN.requires("max-time", "--until; without it use --time"));
    }
    let time = match (run.time, requests) {
        (None, Some(_)) => None,
        // The last connection is the end, or the last line of a trace.
        (None, None) if classes.iter().all(Class::ends) => None,
        (given, _) => Some(positive("time", given, DEFAULT_TIME)?),
    };
    Ok(Stop { time, requests, until: None })
}

fn resolve_until(run: &RunSpec, until: &Until, classes: &[Class], commands: &[Command]) -> Resolved<Stop> {
    if run.requests.is_some() {
        return Err(RUN.conflicts("requests", "--until, which ends by time"));
    }
    let first_look = positive("time", run.time, DEFAULT_TIME)?;
    let max_time = run.max_time.unwrap_or(DEFAULT_MAX_TIME.max(first_look));
    if max_time < first_look {
        let accepted = format!("at least --time ({first_look}), the time of the first check");
        return Err(RUN.invalid("max-time", max_time, accepted));
    }
    let ops: Vec<OpName> = classes.iter().flat_map(Class::ops).map(|op| name_of(commands, op)).collect();
    if let Some(op) =
        until.precisions.iter().filter_map(|precision| precision.op).find(|op| !ops.contains(op))
    {
        return Err(RUN.invalid("until", until, format!("operations in --mix, without {op}")));
    }
    let until = EarlyStop { until: until.clone(), first_look };
    Ok(Stop { time: Some(max_time), requests: None, until: Some(until) })
}

fn resolve_labels(run: &RunSpec) -> Resolved<Vec<Label>> {
    let mut labels: Vec<Label> = Vec::new();
    for label in run.label.iter().flatten() {
        if labels.iter().any(|held| held.key == label.key) {
            return Err(RUN.invalid("label", label, "each key once"));
        }
        labels.push(label.clone());
    }
    Ok(labels)
}

fn resolve_meters(run: &RunSpec, used: &ServerUsage) -> Resolved<Vec<MeterKind>> {
    let mut meters = Vec::new();
    for meter in run.meter.iter().flatten() {
        if meters.contains(meter) {
            return Err(RUN.invalid("meter", meter, "each quantity once"));
        }
        if MeterKind::OF_TIMESTAMPS.contains(meter) && run.timestamps == Some(Timestamps::Off) {
            return Err(RUN.conflicts(&format!("meter {meter}"), "--timestamps off"));
        }
        if *meter == MeterKind::HandshakeTime && !used.uses_transport(Transport::Tls) {
            return Err(RUN.requires(&format!("meter {meter}"), "--transport tls"));
        }
        meters.push(*meter);
    }
    Ok(meters)
}

/// Every class has a connection to every server on every worker that carries it out, so that rates split evenly. Workers speak one
/// protocol each.
fn resolve_threads(run: &RunSpec, used: &ServerUsage, classes: &[Class], host: &Host) -> Resolved<u32> {
    // Where there are agents, threads are theirs, and so are not all classes.
    let is_split = run.has_agents();
    let on_them = |class: &Class| !is_split || class.host_role == HostRole::Agents;
    // The servers of a cluster are not the nodes that it will turn out to have, and by thread a worker has one.
    let has_one = run.cluster == Some(true) || run.placement == Some(Placement::ByThread);
    let known = |servers: usize| if has_one { 1 } else { servers as u32 };
    let rooms = classes.iter().zip(&used.servers).filter(|(class, _)| on_them(class));
    // Clients stay in one piece, with a connection to every server.
    let rooms = rooms.map(|(class, servers)| {
        let known = known(*servers);
        let each = class.sessions.connections_each().max(known);
        (class.connections / each, class.connections, known)
    });
    let (least, fewest, servers) = rooms.min().unwrap_or((1, 1, 1));
    if least == 0 {
        let accepted = format!("at least {servers}, one per server");
        return Err(RUN.invalid("connections", fewest, accepted));
    }
    let groups = used.protocols.len() as u32;
    let most = least.saturating_mul(groups).min(WORKERS_MAX);
    // One CPU is left to the server or the kernel; those that were named are all for workers.
    let default = match &run.cpus {
        Some(list) => list.0.len() as u32,
        None => host.allowed_cpus.len().saturating_sub(1) as u32,
    };
    let threads = run.threads.map_or(u64::from(default.clamp(1, most)), |count| count.0);
    if threads == 0 || threads > u64::from(most) {
        let each = if servers > 1 { " to every server" } else { "" };
        let accepted = format!("1 to {most}: each worker needs a connection of every class{each}");
        return Err(RUN.invalid("threads", threads, accepted));
    }
    Ok((threads as u32).max(groups))
}

fn resolve_classes(spec: &PlanSpec) -> Resolved<Vec<Class>> {
    if let (Some(name), false) = (&spec.base.name, spec.classes.is_empty()) {
        return Err(RUN.invalid("name", name, "names in the [[class]] tables"));
    }
    if spec.classes.is_empty() {
        return Ok(vec![resolve_class(&RUN, spec, &spec.base, "main")?]);
    }
    let mut classes: Vec<Class> = Vec::new();
    for (index, class) in spec.classes.iter().enumerate() {
        let mut merged = spec.base.clone();
        merged.overlay(class.clone());
        let default_name =
            if spec.classes.len() == 1 { "main".to_owned() } else { format!("class-{}", index + 1) };
        let name = merged.name.clone().unwrap_or(default_name);
        let context = ErrorContext { class: (spec.classes.len() > 1).then_some(name.as_str()), route: None };
        let class = resolve_class(&context, spec, &merged, &name)?;
        if classes.iter().any(|earlier| earlier.name == class.name) {
            return Err(context.invalid("name", &class.name, "a unique name for every class"));
        }
        classes.push(class);
    }
    Ok(classes)
}

fn resolve_class(
    context: &ErrorContext<'_>,
    plan: &PlanSpec,
    spec: &ClassSpec,
    default_name: &str,
) -> Resolved<Class> {
    let name = spec.name.clone().unwrap_or_else(|| default_name.to_owned());
    let named_plainly = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(named_plainly) {
        return Err(context.invalid("name", name, "up to 64 letters, digits, '-' and '_'"));
    }
    let connections = context.count("connections", spec.connections, DEFAULT_CONNECTIONS, 1, 1_000_000)?;
    let depth = context.count("depth", spec.depth, default_depth(spec, connections), 1, IN_FLIGHT_MAX)?;
    if connections * depth > IN_FLIGHT_MAX {
        let limit = format!("{}: {connections} connections", IN_FLIGHT_MAX / connections);
        return Err(context.exceeds("depth", depth, limit));
    }
    let trace = trace::resolve(context, spec)?;
    let mix = match &trace {
        Some(trace) => trace::mix(trace),
        None => commands::mix(context, spec.mix.as_ref(), commands::of_class(plan, spec))?,
    };
    let multiget = context.count("multiget", spec.multiget, DEFAULT_MULTIGET, 1, 1024)?;
    let popularity = spec.popularity.clone().unwrap_or(Popularity::Uniform);
    check_operations(context, plan, spec, &mix, &popularity)?;
    let sessions = window::resolve_sessions(context, spec, connections)?;
    Ok(Class {
        name,
        load: match spec.call_rate {
            Some(rate) => resolve_calls(context, spec, rate)?,
            None => resolve_load(context, spec)?,
        },
        connections: connections as u32,
        connections_of: None,
        depth: depth as u32,
        sessions,
        drift: spec.drift,
        keyspace: match &popularity {
            Popularity::Window(window) => {
                let windows = connections / u64::from(sessions.connections_each());
                window::resolve_keyspace(context, spec, window, windows)?
            }
            _ => resolve_keyspace(context, spec, trace.is_none() && mix.has_counters())?,
        },
        delta: resolve_delta(context, spec, &mix)?,
        popularity,
        multiget: multiget as u16,
        ttl_s: resolve_ttl(context, plan, spec)?,
        noreply: resolve_noreply(context, spec, &mix)?,
        on_miss: resolve_on_miss(context, spec, &mix, connections * depth)?,
        lifetime: resolve_lifetime(context, spec, connections)?,
        reconnect: resolve_reconnect(context, plan, spec)?,
        host_role: spec.runs_on.unwrap_or_default(),
        replicas: context.count("replicas", spec.replicas, 1, 1, SERVERS_MAX as u64)? as u32,
        // Where its operations go is settled when the classes are known.
        own_destination: None,
        routes: Vec::new(),
        purge: resolve_purge(context, plan, spec, &mix)?,
        trace,
        mix,
    })
}

/// Checks that the mix and the popularity of a class go with its other options.
fn check_operations(
    context: &ErrorContext<'_>,
    plan: &PlanSpec,
    spec: &ClassSpec,
    mix: &Mix,
    popularity: &Popularity,
) -> Resolved {
    if spec.multiget.is_some() && !mix.contains(OpKind::Mget) {
        return Err(context.requires("multiget", "mget in --mix, e.g. mget=9,set=1"));
    }
    if spec.drift.is_some() && matches!(popularity, Popularity::Uniform | Popularity::Sequential) {
        return Err(context.requires("drift", "--popularity zipf, hotspot, latest or gaussian"));
    }
    if let Popularity::Window(window) = popularity {
        window::check_class(context, spec, mix, window)?;
    }
    // mcperf's cas has a fixed unique.
    let has_uniques = mix.contains(OpKind::Gets) || plan.run.trailing_blank == Some(true);
    if mix.contains(OpKind::Cas) && !has_uniques {
        return Err(context.requires("mix with cas", "gets, which reads its cas unique, or --trailing-blank"));
    }
    Ok(())
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

fn resolve_delta(context: &ErrorContext<'_>, spec: &ClassSpec, mix: &Mix) -> Resolved<SizeDistribution> {
    let Some(delta) = &spec.delta else { return Ok(SizeDistribution::Fixed(1)) };
    if !mix.has_counters() {
        return Err(context.requires("delta", "incr or decr in --mix, e.g. get=9,incr=1"));
    }
    Ok(delta.clone())
}

fn resolve_ttl(context: &ErrorContext<'_>, plan: &PlanSpec, spec: &ClassSpec) -> Resolved<u32> {
    let ttl = spec.ttl.unwrap_or_default();
    let is_unix_time = (TTL_UNIX_MIN..=TTL_UNIX_MAX).contains(&ttl);
    if !(ttl <= TTL_MAX || is_unix_time) || !ttl.0.is_multiple_of(1_000_000_000) {
        let accepted = "whole seconds up to 720h, e.g. 60s, a Unix time for memcached, e.g. 1900000000s, or 0 for no expiry";
        return Err(context.invalid("ttl", ttl, accepted));
    }
    // Who judges when an object is gone counts from when it was stored.
    let is_judged = plan.run.verify.is_some() || matches!(spec.popularity, Some(Popularity::Window(_)));
    if is_unix_time && is_judged {
        let limit = "720h: --verify and --popularity window count from the time of the store";
        return Err(context.exceeds("ttl", ttl, limit));
    }
    Ok((ttl.0 / 1_000_000_000) as u32)
}

fn resolve_noreply(context: &ErrorContext<'_>, spec: &ClassSpec, mix: &Mix) -> Resolved<bool> {
    let noreply = spec.noreply.unwrap_or(false);
    if noreply && mix.weights.iter().all(|(kind, _)| kind.is_retrieval()) {
        return Err(context.requires("noreply", "writes in --mix, e.g. get=9,set=1"));
    }
    Ok(noreply)
}

fn resolve_on_miss(context: &ErrorContext<'_>, spec: &ClassSpec, mix: &Mix, slots: u64) -> Resolved<OnMiss> {
    let on_miss = spec.on_miss.unwrap_or(OnMiss::Ignore);
    if on_miss == OnMiss::Set {
        if !mix.weights.iter().any(|(kind, _)| kind.is_retrieval()) {
            return Err(context.requires("on-miss set", "a retrieval in --mix, e.g. get=9,set=1"));
        }
        // Every key of every multi-get in flight may have to be stored.
        let multiget = if mix.contains(OpKind::Mget) {
            spec.multiget.map_or(DEFAULT_MULTIGET, |count| count.0)
        } else {
            1
        };
        if slots * multiget > IN_FLIGHT_MAX {
            let reason = format!("at most {} connections times depth", IN_FLIGHT_MAX / multiget);
            return Err(context.requires("on-miss set", reason));
        }
    }
    Ok(on_miss)
}

fn resolve_purge(
    context: &ErrorContext<'_>,
    plan: &PlanSpec,
    spec: &ClassSpec,
    mix: &Mix,
) -> Resolved<Option<u64>> {
    let Some(Count(keep_every)) = spec.purge else { return Ok(None) };
    let conflict = |other: &str| Err(context.conflicts("purge", other));
    match &plan.run {
        _ if keep_every < 2 => {
            let expected = "an integer from 2, multiples of which are the numbers of the keys that stay";
            Err(context.invalid("purge", keep_every, expected))
        }
        run if run.requests.is_none() => {
            Err(context.requires("purge", "--requests, after half of which it begins"))
        }
        run if run.verify.is_some() => conflict("--verify, which would miss the deleted keys"),
        run if run.placement == Some(Placement::Random) => {
            conflict("--placement random: keys are deleted on one server after another")
        }
        _ if spec.trace.is_some() => conflict("trace, whose keys are not known in advance"),
        _ if spec.ttl.is_some() => conflict("--ttl"),
        _ if mix.contains(OpKind::Mget) => conflict("mget in --mix"),
        _ => Ok(Some(keep_every)),
    }
}

fn resolve_lifetime(context: &ErrorContext<'_>, spec: &ClassSpec, connections: u64) -> Resolved<Lifetime> {
    let lifetime = Lifetime {
        connect_rate: spec.connect_rate,
        connect_arrival: resolve_connect_arrival(context, spec)?,
        calls: spec.calls_per_connection.map(|count| count.0),
        reconnect_every: spec.reconnect_every,
        total: spec.connections_total.map(|count| count.0),
    };
    if lifetime.calls == Some(0) {
        return Err(context.invalid("calls-per-connection", 0, "an integer above 0"));
    }
    if lifetime.reconnect_every == Some(DurationNs(0)) {
        return Err(context.invalid("reconnect-every", "0s", "a duration above 0, e.g. 10s or 500ms"));
    }
    match lifetime.total {
        Some(_) if !lifetime.ends() => {
            Err(context.requires("connections-total", "--calls-per-connection or --reconnect-every"))
        }
        Some(total) if total < connections => Err(context.invalid(
            "connections-total",
            total,
            format!("at least the number of --connections, {connections}"),
        )),
        _ => Ok(lifetime),
    }
}

/// Connections that come and go by plan are followed by others, unless attempts are what is counted; and in a cluster a node that is gone is
/// another one's replica.
fn resolve_reconnect(context: &ErrorContext<'_>, plan: &PlanSpec, spec: &ClassSpec) -> Resolved<Reconnect> {
    let given = spec.reconnect.unwrap_or_default();
    if given == Reconnect::Always {
        return Ok(given);
    }
    let is_cluster = plan.run.cluster == Some(true);
    if given == Reconnect::Never && spec.connections_total.is_some() && !is_cluster {
        return match plan.run.preload {
            Some(false) => Ok(given),
            _ => {
                let reason = "--no-preload: every connection counts, and preload would open the first ones";
                Err(context.requires("reconnect never", reason))
            }
        };
    }
    let of_lifetime = ["connect-rate", "calls-per-connection", "connections-total", "reconnect-every"];
    match is_cluster.then_some("cluster").or_else(|| spec.first_given(&of_lifetime)) {
        Some(option) => Err(context.conflicts(&format!("reconnect {given}"), format!("--{option}"))),
        None => Ok(given),
    }
}

/// How connections are spaced that are begun at a rate, where it is not evenly.
fn resolve_connect_arrival(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<Option<Arrival>> {
    match (&spec.connect_arrival, spec.connect_rate) {
        (None | Some(Arrival::Uniform), Some(_)) | (None, None) => Ok(None),
        (Some(arrival), Some(rate)) => {
            resolve_bursts(context, "connect-arrival", &OpenRate::Constant(rate), arrival)?;
            Ok(Some(arrival.clone()))
        }
        (Some(_), None) => Err(context.requires("connect-arrival", "--connect-rate")),
    }
}

fn resolve_load(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<Load> {
    if spec.call_arrival.is_some() {
        return Err(context.requires("call-arrival", "--call-rate"));
    }
    let rate = match (spec.rate, &spec.rate_profile) {
        (Some(_), Some(_)) => return Err(context.conflicts("rate-profile", "--rate")),
        (Some(rate), None) => Some(OpenRate::Constant(rate)),
        (None, Some(profile)) => Some(OpenRate::Profile(profile.clone())),
        (None, None) => None,
    };
    match (rate, spec.arrival.clone(), spec.think) {
        (Some(_), _, Some(_)) => {
            Err(context.conflicts("think", "--rate: an open loop does not wait for replies"))
        }
        (Some(rate), arrival, None) => {
            let arrival = arrival.unwrap_or(Arrival::Poisson);
            resolve_bursts(context, "arrival", &rate, &arrival)?;
            Ok(Load::Open { rate, arrival })
        }
        (None, Some(_), _) => Err(context.requires("arrival", "--rate: a closed loop has no arrivals")),
        (None, None, think) => Ok(Load::Closed { think: think.unwrap_or_default() }),
    }
}

/// The calls of each connection by a schedule of its own.
fn resolve_calls(context: &ErrorContext<'_>, spec: &ClassSpec, rate: Rate) -> Resolved<Load> {
    let other = spec
        .first_given(&["rate", "rate-profile", "arrival", "think", "reconnect-every"])
        .or((spec.on_miss == Some(OnMiss::Set)).then_some("on-miss set"))
        .or_else(|| spec.first_given(&["purge", "trace"]));
    if let Some(option) = other {
        return Err(context.conflicts(option, "--call-rate, which gives each connection its own schedule"));
    }
    let arrival = spec.call_arrival.clone().unwrap_or(Arrival::Uniform);
    let rate = OpenRate::PerConnection(rate);
    resolve_bursts(context, "call-arrival", &rate, &arrival)?;
    Ok(Load::Open { rate, arrival })
}

/// Bursts in which hardly ever a request falls are Poisson arrivals, and the way to the next request leads through any
/// number of them.
fn resolve_bursts(context: &ErrorContext<'_>, option: &str, rate: &OpenRate, arrival: &Arrival) -> Resolved {
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

fn resolve_keyspace(context: &ErrorContext<'_>, spec: &ClassSpec, has_counters: bool) -> Resolved<Keyspace> {
    let value_form = spec.value_form.unwrap_or_default();
    let has_counters = has_counters && value_form == ValueForm::Random;
    let most = if has_counters { u64::MAX / 2 } else { u64::MAX };
    let keys = context.count("keys", spec.keys, DEFAULT_KEYS, 1, most)?;
    let ids = if has_counters { keys * 2 } else { keys };
    let prefix = resolve_prefix(context, spec)?;
    let key_form = spec.key_form.unwrap_or_default();
    if key_form.is_memaslap() {
        return Err(context.requires(&format!("key-form {key_form}"), "--popularity window:OBJECTS"));
    }
    if ids > key_form.ids_max() {
        let reason = format!("at most {} keys and counters", key_form.ids_max());
        return Err(context.requires(&format!("key-form {key_form}"), reason));
    }
    let first_key = resolve_first_key(context, spec, ids, key_form)?;
    let digits = key_form.bytes_needed(if key_form == KeyForm::Hex8 { ids } else { first_key + ids });
    let needed = prefix.len() as u64 + u64::from(digits);
    let key_size = resolve_key_size(context, spec, key_form, needed, || {
        let things = if has_counters { "keys and counters" } else { "keys" };
        let number = match key_form {
            KeyForm::Decimal => format!("the {digits} digits of the last of {ids} {things}"),
            KeyForm::Hex8 => format!("{digits} hexadecimal digits"),
            KeyForm::Random => format!("{digits} letters and digits, enough for {ids} {things}"),
            KeyForm::Memaslap | KeyForm::MemaslapPrintable => format!("{digits} bytes of the number"),
        };
        format!("prefix and {number}")
    })?;
    let value_size = resolve_value_size(context, spec)?;
    Ok(Keyspace { keys, prefix, key_form, first_key, key_size, value_size, value_form })
}

/// Sizes of keys that have room for `needed` bytes, which `contents` describes.
fn resolve_key_size(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    key_form: KeyForm,
    needed: u64,
    contents: impl Fn() -> String,
) -> Resolved<SizeDistribution> {
    let default_len = if key_form == KeyForm::Hex8 { 0 } else { DEFAULT_KEY_SIZE };
    let default_size = SizeDistribution::Fixed(default_len.max(needed.min(u64::from(KEY_SIZE_MAX)) as u32));
    let least = u32::try_from(needed).unwrap_or(u32::MAX);
    let given = spec.key_size.clone().unwrap_or(default_size);
    let key_size = given.clone().cut_to(least, KEY_SIZE_MAX.max(least));
    if u64::from(key_size.min()) < needed || key_size.max() > KEY_SIZE_MAX {
        let accepted = format!("sizes from {needed} ({}) to {KEY_SIZE_MAX}", contents());
        return Err(context.invalid("key-size", given, accepted));
    }
    Ok(key_size)
}

fn resolve_prefix(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<String> {
    let prefix = spec.prefix.clone().unwrap_or_default();
    if !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(context.invalid("prefix", prefix, "printable ASCII without spaces"));
    }
    Ok(prefix)
}

/// The number of the first key: this and the following `ids` numbers must fit the form.
fn resolve_first_key(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    ids: u64,
    key_form: KeyForm,
) -> Resolved<u64> {
    let first = spec.first_key.map_or(0, |count| count.0);
    // Eight hexadecimal digits begin anew behind the last number.
    let most = if key_form == KeyForm::Hex8 { key_form.ids_max() - 1 } else { key_form.ids_max() - ids };
    if first > most {
        let accepted = format!("an integer from 0 to {most} with {ids} keys and counters");
        return Err(context.invalid("first-key", first, accepted));
    }
    Ok(first)
}

fn resolve_value_size(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<SizeDistribution> {
    let value_size = spec.value_size.clone().unwrap_or(SizeDistribution::Fixed(DEFAULT_VALUE_SIZE));
    if value_size.max() > VALUE_SIZE_MAX {
        return Err(context.exceeds("value-size", value_size, "128MiB"));
    }
    Ok(value_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host { allowed_cpus: vec![0, 1, 2, 5], random_seed: 77 }
    }

    pub(super) fn resolved(toml: &str) -> Result<Plan, String> {
        let spec = PlanSpec::from_toml(toml)?;
        resolve(&spec, &host()).map_err(|error| error.to_string())
    }

    #[test]
    fn large_numbers_of_things_are_refused_at_once() {
        let classes = |count: usize| "[[class]]\n".repeat(count);
        let servers = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("'cache-{number}'")).collect();
            format!("server = [{}]", names.join(","))
        };
        assert_eq!(resolved(&classes(64)).unwrap().classes.len(), 64);
        let table = [
            (classes(65), "invalid value '65 tables' for [[class]]: expected at most 64"),
            (classes(100_000), "invalid value '100000 tables' for [[class]]: expected at most 64"),
            (servers(100_000), "--server 100000 servers exceeds 1024"),
        ];
        for (toml, expected) in table {
            assert_eq!(resolved(&toml).unwrap_err(), expected);
        }
    }

    #[test]
    fn defaults() {
        let plan = resolved("").unwrap();
        assert_eq!(
            PlanSpec::from(&plan).to_toml(),
            "protocol = \"memcached-text\"\ntransport = \"tcp\"\nthreads = 3\ntimeout = \"10s\"\nio = \"auto\"\n\
             seed = 77\ndata-seed = 1\ntime = \"10s\"\nwarmup = \"1s\"\ndrain = \"10s\"\npreload = true\n\
             wait = \"hybrid\"\n\n[[class]]\nname = \"main\"\nconnections = 16\ndepth = 1\nthink = \"0s\"\n\
             mix = \"get=9,set=1\"\npopularity = \"uniform\"\nkeys = 100000\nprefix = \"\"\n\
             key-size = \"fixed:30\"\nvalue-size = \"fixed:200\"\n"
        );
    }

    #[test]
    fn a_printed_plan_resolves_to_itself() {
        let texts = [
            "",
            "rate = '200k'\narrival = 'uniform'\nrequests = '1M'\nserver = ['[::1]:5000']\nseed = 5\nmeter = ['oversleep']",
            "threads = 2\n[[class]]\nname='load'\nrate=1000\nconnections=8\n[[class]]\nname='probe'\nrate=50.5\n\
             connections=2\nmix='mget'\nmultiget=5",
            "server = ['a', 'b:5']\nverify = '12.5%'\nplacement = 'ketama'\ncpus = '0,2'\nttl = '60s'\nnoreply = true\non-miss = 'set'\n\
             rate-profile = '0s=1k,5s=2k'\npopularity = 'zipf'\ndrift = '10/1s'",
            "server = 'a'\nmix = 'gets,cas,incr,decr'\nconnect-rate = 100\ncalls-per-connection = 5\n\
             connections-total = 1000\nreconnect-every = '10s'",
            "call-rate = 1000\ncall-arrival = 'poisson'\ncalls-per-connection = 10\nconnect-rate = 100",
            "call-rate = 5\nserver = ['a', 'b']\nplacement = 'round-robin'\ndepth = 4",
            "call-rate = 5\nserver = ['a', 'b']\nplacement = 'by-thread'\nreconnect = 'never'",
            "server = ['a', 'b', 'c']\nplacement = 'by-thread'\nconnections = 2\nthreads = 2\nverify = 1",
            "connect-rate = 100\nconnect-arrival = 'mmpp:4,100ms,0.1'\ncalls-per-connection = 5",
            "key-size = 'fb_key'\nvalue-size = 'fb_value@0..64KiB'\nrate = '1k'\narrival = 'mmpp:4,100ms,0.1'",
            "key-size = 'discrete:20=1,30=2'\nrate-profile = '0s=0,5s=2k'\narrival = 'fb_ia'",
            "until = 'p99=2%,get.p50=0.01'\ntime = '2s'\nmax-time = '1m'\ninterval = '1.5s'",
            "until = 'set.p99=2%'\nmix = 'get'\non-miss = 'set'",
            "timestamps = 'kernel'\nmeter = ['stack-in']",
            "meter = ['stack-out', 'without-client']",
            "protocol = 'resp2'\nserver = 'a'\ndatabase = 3\nclient-name = 'b'\nuser = 'u'\npassword = '@f'",
            "protocol = 'memcached-meta'\nserver = 'a'\nmix = 'gets,cas,touch'\nnoreply = true",
            "trailing-blank = true\nmix = 'cas'\nfirst-key = 1\nkey-form = 'hex8'\nkeys = '4294967296'\nprefix = 'mcp:'\n\
             value-form = 'zeros'\nvalue-size = 'mcperf:u1,16@3'\nconnect-rate = 500\nconnect-arrival = 'mcperf:u0.001,0.003'",
            "mix = 'incr'\ndelta = 'mcperf:e50'\nfirst-key = 100",
            "protocol = 'memcached-binary'\nserver = 'a:5'\nuser = 'u'\npassword = '@f'",
            "protocol = 'resp3'\nserver = 'a'\nmix = 'get=9,raw=2+0+1'\ncommand = ['A', 'B', 'C']\n[[class]]\n\
             [[class]]\nmix = 'raw=0+1+0'\nname='b'",
            "protocol = 'resp3'\nserver = ['a', 'b']\ncluster = true\nconnections = 1\nprofile = 'peak'",
            "protocol = 'resp2'\nserver = 'a'\nhash-field = 4\nnodelay = false",
            "linger = '0s'\nsend-buffer = 4096\nreceive-buffer = 16384\nmeter = ['first-byte']",
            "preload = false\nreconnect = 'never'\nconnect-rate = 5\ncalls-per-connection = 3\nconnections-total = 20\n\
             meter = ['connection-time', 'response-size']\nlabel = ['commit=3f2a', 'run=a b']\npercentiles = '50,75,99.9'",
            "purge = 10\nrequests = 100\nmix = 'get'\non-miss = 'set'",
            "popularity = 'window:10k,overwrite=0.2'\nclient-connections = 2",
            "popularity = 'window:1k,expire=0.05'\nclient-connections = 1\nmix = 'mget,set'\nmultiget = 20\nverify = '5%'\n\
             ttl = '60s'\nkey-form = 'memaslap-printable'\nkey-size = 'ranges:16-100@0.2,101-250@0.8'\ncall-rate = 40\ndepth = 1",
            "trace = 't.csv'\ntrace-layout = 'twitter'\non-miss = 'set'\nrate = 500\nttl = '5s'",
            "protocol = 'resp2'\nserver = 'a'\ntrace = 't.zst'\ntrace-layout = 'twitter'\nrequests = 7\nhash-field = 2",
        ];
        for text in texts {
            let plan = resolved(text).unwrap();
            let printed = PlanSpec::from(&plan).to_toml();
            assert_eq!(resolved(&printed).unwrap(), plan, "{printed}");
        }
    }

    #[test]
    fn commands_alone_are_sent_alike() {
        let plan = resolved("protocol = 'resp2'\nserver = 'a'\ncommand = ['A', 'B']").unwrap();
        assert_eq!(plan.classes[0].mix.to_string(), "raw=1+1");
        assert_eq!(plan.addresses()[0].to_string(), "a:6379");
        assert!(plan.server_stats, "a Redis says enough of itself");
    }

    #[test]
    fn until_lasts_ten_minutes_at_most() {
        for (toml, first_s, max_s) in [("", 10, 600), ("time = '2s'", 2, 600), ("time = '20m'", 1_200, 1_200)]
        {
            let stop = resolved(&format!("until = 'p99=2%'\n{toml}")).unwrap().stop;
            let first_look = stop.until.unwrap().first_look;
            let expected = (Some(DurationNs::from_secs(max_s)), DurationNs::from_secs(first_s));
            assert_eq!((stop.time, first_look), expected, "{toml}");
        }
    }

    #[test]
    fn key_sizes_are_truncated_to_what_fits() {
        for (toml, expected) in [
            ("key-size = 'fb_key'", "fb_key@5..250"),
            ("key-size = 'fb_key'\nprefix = 'user:'", "fb_key@10..250"),
            ("key-size = 'fb_key@1..40'", "fb_key@5..40"),
            ("key-size = 'discrete:20=1,30=2'", "discrete:20=1,30=2"),
            ("key-form = 'random'", "fixed:30"),
            ("key-form = 'random'\nkeys = 238328\nkey-size = 3", "fixed:3"),
            ("key-form = 'random'\nkey-size = 'fb_key'", "fb_key@3..250"),
            ("key-form = 'hex8'", "fixed:8"),
            ("key-form = 'hex8'\nprefix = 'mcp:'", "fixed:12"),
            ("key-form = 'hex8'\nkey-size = 'fb_key'", "fb_key@8..250"),
        ] {
            assert_eq!(resolved(toml).unwrap().classes[0].keyspace.key_size.to_string(), expected);
        }
    }

    /// A plan, and the message about it.
    const MISTAKES: &[(&str, &str)] = &[
        ("call-arrival = 'poisson'", "--call-arrival requires --call-rate"),
        (
            "call-rate = 10\nrate = 5",
            "--rate cannot be used with --call-rate, which gives each connection its own schedule",
        ),
        (
            "trailing-blank = true\nprotocol = 'memcached-meta'\nserver = 'a'",
            "--trailing-blank requires --protocol memcached-text",
        ),
        ("delta = 5", "--delta requires incr or decr in --mix, e.g. get=9,incr=1"),
        (
            "first-key = 1\ntrace = 't'\ntrace-layout = 'reads'",
            "--first-key cannot be used with trace, which names the operations",
        ),
        (
            "first-key = '4294967296'\nkey-form = 'hex8'",
            "invalid value '4294967296' for --first-key: expected an integer from 0 to 4294967295 with 100000 keys and counters",
        ),
        (
            "first-key = '18446744073709451616'\nkeys = 100000",
            "invalid value '18446744073709451616' for --first-key: expected an integer from 0 to 18446744073709451615 with 100000 keys and counters",
        ),
        (
            "first-key = 999\nkeys = 9002\nkey-size = 4",
            "invalid value 'fixed:4' for --key-size: expected sizes from 5 (prefix and the 5 digits of the last of 9002 keys) to 250",
        ),
        (
            "first-key = 5\npopularity = 'window:10'",
            "--popularity window cannot be used with --first-key: objects are numbered from 0",
        ),
        (
            "value-form = 'zeros'\npopularity = 'window:10'",
            "--popularity window cannot be used with --value-form zeros: values hold their versions",
        ),
        (
            "value-form = 'zeros'\nverify = '10%'",
            "--verify requires --value-form random, whose values name their keys; class 'main' has zeros",
        ),
        (
            "call-rate = 10\nthink = '1ms'",
            "--think cannot be used with --call-rate, which gives each connection its own schedule",
        ),
        (
            "call-rate = 10\non-miss = 'set'",
            "--on-miss set cannot be used with --call-rate, which gives each connection its own schedule",
        ),
        (
            "call-rate = 10\nreconnect-every = '5s'",
            "--reconnect-every cannot be used with --call-rate, which gives each connection its own schedule",
        ),
        (
            "call-rate = 10\nserver = ['a', 'b']",
            "--call-rate cannot be used with --placement by key on several servers: calls are sent on the connection they belong to",
        ),
        (
            "call-rate = 1\ncall-arrival = 'mmpp:1.01,1ms,0.5'",
            "invalid value 'mmpp:1.01,1ms,0.5' for --call-arrival: expected an index of dispersion of at least 1.001 at this rate; its 1.000000 is as good as poisson",
        ),
        ("connect-arrival = 'poisson'", "--connect-arrival requires --connect-rate"),
        (
            "connect-rate = 1\nconnect-arrival = 'mmpp:1.01,1ms,0.5'",
            "invalid value 'mmpp:1.01,1ms,0.5' for --connect-arrival: expected an index of dispersion of at least 1.001 at this rate; its 1.000000 is as good as poisson",
        ),
        ("connections = 0", "invalid value '0' for --connections: expected an integer from 1 to 1000000"),
        (
            "threads = 20",
            "invalid value '20' for --threads: expected 1 to 16: each worker needs a connection of every class",
        ),
        ("requests = 0", "invalid value '0' for --requests: expected an integer above 0, e.g. 1000 or 100k"),
        (
            "warmup = 'auto'\nrate-profile = '0s=1k,2s=3k'",
            "--warmup auto cannot be used with --rate-profile: its times count from the beginning of the window",
        ),
        (
            "warmup = 'auto'\nconnections-total = 100\ncalls-per-connection = 5",
            "--warmup auto cannot be used with --connections-total: the run ends with its last connection, warm or not",
        ),
        (
            "warmup = 'auto'\nagent = ['a']\nserver = ['b']",
            "--warmup auto cannot be used with --agent: all hosts begin the window at a time agreed in advance",
        ),
        ("time = '0s'", "invalid value '0s' for --time: expected a duration above 0, e.g. 10s or 500ms"),
        ("max-time = '1m'", "--max-time requires --until; without it use --time"),
        (
            "until = 'p99=2%'\nmax-time = '5s'",
            "invalid value '5s' for --max-time: expected at least --time (10s), the time of the first check",
        ),
        ("until = 'p99=2%'\nrequests = 1000", "--requests cannot be used with --until, which ends by time"),
        (
            "until = 'incr.p99=2%'",
            "invalid value 'incr.p99=2%' for --until: expected operations in --mix, without incr",
        ),
        (
            "rate = 5\nthink = '1ms'",
            "--think cannot be used with --rate: an open loop does not wait for replies",
        ),
        ("arrival = 'uniform'", "--arrival requires --rate: a closed loop has no arrivals"),
        (
            "keys = 100000\nkey-size = 4",
            "invalid value 'fixed:4' for --key-size: expected sizes from 5 (prefix and the 5 digits of the last of 100000 keys) to 250",
        ),
        ("multiget = 5", "--multiget requires mget in --mix, e.g. mget=9,set=1"),
        ("label = ['a=1', 'b=2', 'a=3']", "invalid value 'a=3' for --label: expected each key once"),
        (
            "meter = ['stack-out']\ntimestamps = 'off'",
            "--meter stack-out cannot be used with --timestamps off",
        ),
        (
            "server = ['a', 'b', 'a']",
            "invalid value 'a:11211' for --server: expected each server once, unless --placement is by-thread",
        ),
        ("server = 'a'\nplacement = 'ketama'", "--placement requires at least two --server"),
        (
            "server = ['a', 'b', 'c']\nconnections = 2",
            "invalid value '2' for --connections: expected at least 3, one per server",
        ),
        (
            "server = ['a', 'b']\nthreads = 9",
            "invalid value '9' for --threads: expected 1 to 8: each worker needs a connection of every class to every server",
        ),
        ("cpus = '1-3'", "invalid value '1-3' for --cpus: expected CPUs out of 0-2,5"),
        ("mix = 'cas'", "--mix with cas requires gets, which reads its cas unique, or --trailing-blank"),
        ("verify = '0%'", "invalid value '0%' for --verify: expected a fraction above 0, e.g. 10%"),
        (
            "verify = '100%'\nmix = 'get,append'",
            "--verify cannot be used with append and prepend, whose values grow; class 'main' has --mix get=1,append=1",
        ),
        (
            "verify = '100%'\nvalue-size = 'uniform:15,40'",
            "--verify requires --value-size of at least 16 bytes, which hold key and version; class 'main' has uniform:15,40",
        ),
        (
            "verify = '100%'\nserver = ['a', 'b']\nplacement = 'random'",
            "--verify requires --placement by key or by-thread: with any other a key may have been written on any server",
        ),
        (
            "verify = '50%'\nkeys = '1G'\nthreads = 2",
            "--verify requires at most 107374182 --keys with 2 threads, for memory",
        ),
        (
            "ttl = '1500ms'",
            "invalid value '1500ms' for --ttl: expected whole seconds up to 720h, e.g. 60s, a Unix time for memcached, e.g. 1900000000s, or 0 for no expiry",
        ),
        (
            "ttl = '1900000000s'\nverify = '100%'",
            "--ttl 1900000000s exceeds 720h: --verify and --popularity window count from the time of the store",
        ),
        (
            "ttl = '721h'",
            "invalid value '721h' for --ttl: expected whole seconds up to 720h, e.g. 60s, a Unix time for memcached, e.g. 1900000000s, or 0 for no expiry",
        ),
        ("noreply = true\nmix = 'get,mget'", "--noreply requires writes in --mix, e.g. get=9,set=1"),
        ("drift = '10/1s'", "--drift requires --popularity zipf, hotspot, latest or gaussian"),
        ("on-miss = 'set'\nmix = 'set'", "--on-miss set requires a retrieval in --mix, e.g. get=9,set=1"),
        ("rate = 5\nrate-profile = '0s=1,5s=9'", "--rate-profile cannot be used with --rate"),
        (
            "calls-per-connection = 0",
            "invalid value '0' for --calls-per-connection: expected an integer above 0",
        ),
        (
            "reconnect = 'never'\ncalls-per-connection = 5",
            "--reconnect never cannot be used with --calls-per-connection",
        ),
        (
            "reconnect = 'never'\ncalls-per-connection = 5\nconnections-total = 16",
            "--reconnect never requires --no-preload: every connection counts, and preload would open the first ones",
        ),
        (
            "reconnect = 'while-one-stands'\ncluster = true\nserver = 'redis://a'",
            "--reconnect while-one-stands cannot be used with --cluster",
        ),
        (
            "server = ['a', 'b']\nplacement = 'by-thread'\nagent = ['x']",
            "--placement by-thread cannot be used with --agent",
        ),
        (
            "server = ['a', 'b']\nplacement = 'by-thread'\nthreads = 40",
            "invalid value '40' for --threads: expected 1 to 16: each worker needs a connection of every class",
        ),
        (
            "reconnect-every = '0s'",
            "invalid value '0s' for --reconnect-every: expected a duration above 0, e.g. 10s or 500ms",
        ),
        (
            "connections-total = 100",
            "--connections-total requires --calls-per-connection or --reconnect-every",
        ),
        (
            "connections-total = 10\ncalls-per-connection = 1",
            "invalid value '10' for --connections-total: expected at least the number of --connections, 16",
        ),
        (
            "key-size = 'pareto:300,10,0.1'",
            "invalid value 'pareto:300,10,0.1' for --key-size: expected sizes from 5 (prefix and the 5 digits of the last of 100000 keys) to 250",
        ),
        (
            "key-size = 'discrete:4=1,30=1'",
            "invalid value 'discrete:4=1,30=1' for --key-size: expected sizes from 5 (prefix and the 5 digits of the last of 100000 keys) to 250",
        ),
        ("value-size = 'discrete:1=1,256MiB=1'", "--value-size discrete:1=1,268435456=1 exceeds 128MiB"),
        (
            "rate = 1\narrival = 'mmpp:2,100us,0.1'",
            "invalid value 'mmpp:2,100us,0.1' for --arrival: expected an index of dispersion of at least 1.001 at this rate; its 1.000020 is as good as poisson",
        ),
        (
            "keys = 238329\nkey-size = 'uniform:4,9'\nprefix = 'k'\nkey-form = 'random'",
            "invalid value 'uniform:4,9' for --key-size: expected sizes from 5 (prefix and 4 letters and digits, enough for 238329 keys) to 250",
        ),
        (
            "prefix = 'mcp:'\nkey-size = 10\nkey-form = 'hex8'",
            "invalid value 'fixed:10' for --key-size: expected sizes from 12 (prefix and 8 hexadecimal digits) to 250",
        ),
        (
            "keys = '3G'\nkey-form = 'hex8'\nmix = 'incr'",
            "--key-form hex8 requires at most 4294967296 keys and counters",
        ),
        (
            "keys = 6\nkey-size = 1\nmix = 'incr'",
            "invalid value 'fixed:1' for --key-size: expected sizes from 2 (prefix and the 2 digits of the last of 12 keys and counters) to 250",
        ),
        (
            "[[class]]\nname='a'\n[[class]]\nname='a'",
            "invalid value 'a' for name (class 'a'): expected a unique name for every class",
        ),
        (
            "protocol = 'resp2'\npassword = 'x'",
            "--password requires --server: the reference server of a run needs no login",
        ),
        (
            "protocol = 'resp3'\nserver = 'a'\nmix = 'gets,cas'",
            "invalid value 'gets=1,cas=1' for --mix: expected operations of resp3 (get mget set add replace append incr decr delete touch raw), without gets",
        ),
        (
            "protocol = 'resp2'\nserver = 'a'\n[[class]]\nname='x'\n[[class]]\nname='y'\nmix='prepend'",
            "invalid value 'prepend=1' for --mix (class 'y'): expected operations of resp2 (get mget set add replace append incr decr delete touch raw), without prepend",
        ),
        (
            "protocol = 'resp3'\nserver = 'a'\nnoreply = true",
            "--noreply cannot be used with --protocol resp3, where every command has a reply",
        ),
        ("mix = 'raw'", "--mix with raw requires --command"),
        (
            "protocol = 'memcached-meta'\ncommand = ['GET {key}']",
            "--command requires --protocol memcached-text, resp2, resp3, resp-inline, echo, ping, thrift",
        ),
        ("protocol = 'thrift'", "--protocol thrift requires --command, and no trace"),
        (
            "protocol = 'echo'\ntrace = 'f'\ntrace-layout = 'twitter'",
            "--protocol echo requires --command, and no trace",
        ),
        (
            "protocol = 'ping'\nmix = 'get'",
            "invalid value 'get=1' for --mix: expected operations of ping (raw), without get",
        ),
        (
            "protocol = 'ping'\npreload = true",
            "--preload cannot be used with --protocol ping, whose servers store nothing",
        ),
        (
            "protocol = 'echo'\nserver-stats = true",
            "--server-stats cannot be used with --protocol echo, ping or thrift, whose servers have no statistics",
        ),
        (
            "protocol = 'echo'\nnoreply = true",
            "--noreply cannot be used with --protocol echo, where every command has a reply",
        ),
        (
            "protocol = 'echo'\nserver = 'memcached://a'",
            "invalid value 'echo' for --protocol: expected the value of --server memcached://a:11211",
        ),
        (
            "protocol = 'resp-inline'\nvalue-size = 4001",
            "--value-size fixed:4001 exceeds 4000 bytes: --protocol resp-inline",
        ),
        (
            "protocol = 'resp-inline'\nmix = 'mget'\nmultiget = 1000\nkey-size = 100",
            "--multiget 1000 exceeds 594: --protocol resp-inline with keys of this size",
        ),
        (
            "transport = 'udp'\ncommand = ['version']",
            "--mix with raw cannot be used with --transport udp, where every request must fit into a datagram",
        ),
        ("protocol = 'resp2'\nserver = 'a'\nmix = 'raw'", "--mix with raw requires --command"),
        (
            "protocol = 'resp2'\nserver = 'a'\nmix = 'get,raw=2'\ncommand = ['A', 'B']",
            "invalid value 'get=1,raw=2' for --mix: expected one weight per --command, e.g. raw=1+1",
        ),
        (
            "protocol = 'resp2'\nserver = 'a'\nmix = 'get'\ncommand = ['A']",
            "invalid value 'A' for --command: expected a command with a weight, in --mix (get=9,raw=1) or in --command (NAME@WEIGHT=COMMAND)",
        ),
        (
            "protocol = 'resp2'\nserver = 'a'\nmix = 'raw=1+0'\ncommand = ['A', 'B']",
            "invalid value 'B' for --command: expected a command with a weight, in --mix (get=9,raw=1) or in --command (NAME@WEIGHT=COMMAND)",
        ),
        ("client-name = 'x'", "--client-name requires --protocol resp2 or resp3"),
        ("password = 'x'", "--password requires --protocol memcached-binary, resp2 or resp3"),
        (
            "protocol = 'memcached-meta'\nserver = 'a'\nuser = 'x'\npassword = '@f'",
            "--user requires --protocol memcached-binary, resp2 or resp3",
        ),
        (
            "protocol = 'memcached-binary'\nserver = 'a'\nuser = 'x'\npassword = '@f'\nclient-name = 'b'",
            "--client-name requires --protocol resp2 or resp3",
        ),
        ("protocol = 'memcached-binary'\nserver = 'a'\npassword = '@f'", "--password requires --user"),
        (
            "protocol = 'memcached-binary'\nserver = 'a'\nuser = 'x'\npassword = '@f'\nserver-stats = true",
            "--server-stats cannot be used with --password and memcached: statistics are read in the text protocol, which has no login",
        ),
        (
            "protocol = 'memcached-meta'\nconnections = 1000\ndepth = 2000",
            "--depth 2000 exceeds 1048: --protocol memcached-meta with 1000 connections",
        ),
        (
            "protocol = 'memcached-meta'\nserver = 'a'\nmix = 'raw'",
            "invalid value 'raw=1' for --mix: expected operations of memcached-meta (get gets mget set add replace append prepend cas incr decr delete touch), without raw",
        ),
        ("protocol = 'resp2'\nserver = 'a'\nuser = 'x'", "--user requires --password"),
        (
            "protocol = 'resp2'\nserver = 'a'\npassword = '(secret)'",
            "invalid value '(secret)' for --password: expected the password, which printed plans leave out, or @FILE",
        ),
        (
            "protocol = 'resp2'\nserver = 'a'\nclient-name = 'a b'",
            "invalid value 'a b' for --client-name: expected printable ASCII without spaces",
        ),
        (
            "protocol = 'resp2'\nserver = 'a'\ndatabase = '5G'",
            "invalid value '5000000000' for --database: expected an integer from 0 to 4294967295",
        ),
        (
            "interval = '150ms'",
            "invalid value '150ms' for --interval: expected a multiple of 100ms, e.g. 500ms or 10s",
        ),
        (
            "server = 'unix:/s'\nnodelay = false",
            "--no-nodelay cannot be used with --transport unix: the option is TCP's",
        ),
        ("purge = 10", "purge requires --requests, after half of which it begins"),
        (
            "connect-timeout = '0s'",
            "invalid value '0s' for --connect-timeout: expected a duration above 0, e.g. 10s or 500ms",
        ),
        (
            "purge = 1\nrequests = 5",
            "invalid value '1' for purge: expected an integer from 2, multiples of which are the numbers of the keys that stay",
        ),
        ("depth = 1000000\nconnections = 100", "--depth 1000000 exceeds 167772: 100 connections"),
    ];

    /// What a server without data can be sent follows from its protocol.
    #[test]
    fn stateless_protocols_send_commands() {
        for (toml, commands, port) in [
            ("protocol = 'ping'\nserver = 'a'", &["PING"][..], 12321),
            ("protocol = 'echo'\nserver = 'a'", &["{value}"], 7),
            ("protocol = 'thrift'\nserver = 'a'\ncommand = ['f', 'g']\nmix = 'raw=2+1'", &["f", "g"], 9090),
        ] {
            let plan = resolved(toml).unwrap();
            let templates: Vec<&str> =
                plan.commands.iter().map(|command| command.template.as_str()).collect();
            assert_eq!(templates, commands, "{toml}");
            assert_eq!((plan.preload, plan.server_stats), (false, false), "{toml}");
            assert!(plan.classes[0].mix.weights.iter().all(|(kind, _)| *kind == OpKind::Raw), "{toml}");
            let servers = plan.servers();
            assert_eq!(servers[0].address.as_ref().map(ToString::to_string), Some(format!("a:{port}")));
        }
    }

    #[test]
    fn connect_timeout_defaults_to_timeout() {
        for (toml, expected_ms, printed) in [
            ("timeout = '2s'", 2_000, false),
            ("timeout = '2s'\nconnect-timeout = '2s'", 2_000, false),
            ("timeout = '2s'\nconnect-timeout = '5s'", 5_000, true),
        ] {
            let plan = resolved(toml).unwrap();
            assert_eq!(plan.connect_timeout, DurationNs::from_millis(expected_ms), "{toml}");
            assert_eq!(PlanSpec::from(&plan).to_toml().contains("connect-timeout"), printed, "{toml}");
        }
    }

    #[test]
    fn messages_name_option_value_and_expected_format() {
        for (toml, expected) in MISTAKES {
            assert_eq!(resolved(toml).unwrap_err(), *expected);
        }
    }

    #[test]
    fn mistakes_in_a_file_have_line_and_column() {
        for (toml, place, word) in [
            ("rate = 1000\nrat = 5\n", "line 2, column 1", "unknown field `rat`"),
            ("threads = 1\nrate = 'fast'\n", "line 2, column 8", "expected a number per second above 0"),
            ("[[class]]\nname = 'a'\nkeyz = 5\n", "line 3, column 1", "unknown field `keyz`"),
            ("[[class]]\nthreads = 5\n", "line 2, column 1", "unknown field `threads`"),
            ("value-size = 'big'", "line 1, column 14", "expected a size"),
        ] {
            let error = resolved(toml).unwrap_err();
            assert!(error.contains(place) && error.contains(word), "{error}");
        }
    }

    #[test]
    fn flags_override_the_file_and_must_be_unambiguous() {
        let mut spec = PlanSpec::from_toml("rate = 1000\nthreads = 1").unwrap();
        let rate = ClassSpec { rate: Some(crate::units::Rate::per_second(5)), ..ClassSpec::default() };
        spec.overlay(RunSpec::default(), rate.clone()).unwrap();
        assert_eq!(spec.base.rate, rate.rate);
        let mut two = PlanSpec::from_toml("[[class]]\nname='a'\n[[class]]\nname='b'").unwrap();
        assert_eq!(two.overlay(RunSpec::default(), rate), Err(vec!["rate".to_owned()]));
    }
}
