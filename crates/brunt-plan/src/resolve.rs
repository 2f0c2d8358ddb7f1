//! Turns a specification into a plan: the only place with defaults, and the checks between options.
//!
//! Two steps: `build` computes the plan and fills defaults into its specification: at least those that depend on the host, the
//! protocol or another option. `rules` holds the options against each other. A plan whose options have passed before, e.g. that of a stored result, is built again without rules.
//! Pure: what depends on the host comes in as [`Host`]. Every error names the option and what is expected; no given option is ignored.

mod class;
mod commands;
mod destination;
mod error;
pub mod fleet;
mod keyspace;
mod protocol;
mod rules;

use crate::login::Login;
use crate::mix::CommandSpec;
use crate::plan::{
    Class, EarlyStop, Gather, IoChoice, Placement, Plan, Protocol, Refill, Server, Stop, Timestamps,
    Transport, Wait,
};
use crate::server::ServerAddress;
use crate::sockets::{Identity, SocketOptions, TlsOptions};
use crate::spec::{PlanSpec, RunSpec, WORKERS_MAX};
use crate::units::{Count, DurationNs, Rate};
use crate::url::ServerList;
use crate::warmup::Warmup;
pub(crate) use class::DEFAULT_CONNECTIONS;
use destination::Destination;
pub use destination::of_nodes;
pub use error::PlanError;
use error::{ErrorContext, Resolved};
pub(crate) use keyspace::DEFAULT_KEY_SIZE;
pub use rules::threads_max;

/// What the defaults need to know of the machine and the moment.
#[derive(Clone, Debug)]
pub struct Host {
    /// CPUs that this process may run on, by number; at least one.
    pub allowed_cpus: Vec<u32>,
    /// The seed to use when none is given.
    pub random_seed: u64,
    /// All servers run on this host, and nowhere else is load generated: they need a CPU, too.
    pub server_is_here: bool,
}

impl Host {
    /// One with these CPUs and this seed, on which the servers run, too.
    pub const fn of(allowed_cpus: Vec<u32>, random_seed: u64) -> Self {
        Self { allowed_cpus, random_seed, server_is_here: true }
    }
}

/// The run, in messages.
const RUN: ErrorContext<'_> = ErrorContext::RUN;

/// Slots for requests in flight per plan; each takes about 128 bytes.
const IN_FLIGHT_MAX: u64 = 16 << 20;
/// Every worker has a queue and a connection for each.
const SERVERS_MAX: usize = 1024;
/// Every worker keeps histograms of each class, and reports have rows of each.
const CLASSES_MAX: usize = 64;

const DEFAULT_TIME: DurationNs = DurationNs::from_secs(10);
const DEFAULT_MAX_TIME: DurationNs = DurationNs::from_secs(600);
const DEFAULT_WARMUP: DurationNs = DurationNs::from_secs(1);
const DEFAULT_TIMEOUT: DurationNs = DurationNs::from_secs(10);
/// A request or its reply that is lost shows by nothing but the time: ten seconds, as on a stream, would be a slot out of use for as
/// long as most runs measure. A server that is there answers in a fraction of this one.
const DEFAULT_DATAGRAM_TIMEOUT: DurationNs = DurationNs::from_secs(1);
pub(crate) const DEFAULT_DATA_SEED: Count = Count(1);
/// A server that others may use is not filled as fast as it can be.
const REMOTE_PRELOAD_RATE: Rate = Rate::per_second(20_000);

/// Resolves a specification into the plan that will run.
pub fn resolve(spec: &PlanSpec, host: &Host) -> Result<Plan, PlanError> {
    let plan = with_host(spec, host)?;
    rules::check(&plan, host)?;
    Ok(plan)
}

/// Resolves a part of a plan as [`crate::resolve::fleet`] makes them, which another host hands in: by every rule that does not need the
/// whole plan.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_part(spec: &PlanSpec, host: &Host) -> Result<Plan, PlanError> {
    let plan = with_host(spec, host)?;
    rules::check_part(&plan, host)?;
    Ok(plan)
}

/// The plan with its defaults, those that depend on the host included.
fn with_host(spec: &PlanSpec, host: &Host) -> Resolved<Plan> {
    let mut spec = spec.clone();
    spec.run.seed.get_or_insert(Count(host.random_seed));
    let mut plan = build(spec)?;
    if plan.spec.run.threads.is_none() {
        // A server on this host has a CPU to itself; those that were named are all for workers.
        let default = match plan.cpus.len() {
            0 => host.allowed_cpus.len().saturating_sub(usize::from(host.server_is_here)),
            named => named,
        };
        plan.threads = (default as u32).min(rules::threads_max(&plan)).max(plan.threads);
    }
    plan.spec.run.threads = Some(Count(u64::from(plan.threads)));
    if plan.preload && !host.server_is_here {
        plan.preload_rate = Some(*plan.spec.run.preload_rate.get_or_insert(REMOTE_PRELOAD_RATE));
    }
    Ok(plan)
}

impl Plan {
    /// The plan of options that were resolved before, whatever the rules between them are now.
    ///
    /// # Errors
    /// An option has no possible value.
    pub fn restored(spec: PlanSpec) -> Result<Self, PlanError> {
        build(spec)
    }

    /// The plan with some of its options changed, e.g. for a part of a campaign. Rules for options of users do not apply.
    ///
    /// # Errors
    /// As [`Plan::restored`].
    pub fn changed(&self, change: impl FnOnce(&mut PlanSpec)) -> Result<Self, PlanError> {
        let mut spec = self.spec.clone();
        change(&mut spec);
        Ok(Self { measures_unloaded: self.measures_unloaded, ..build(spec)? })
    }
}

/// Fills in what is not given, and computes the plan. Without a number of threads it has a worker for each protocol.
fn build(mut spec: PlanSpec) -> Resolved<Plan> {
    if spec.classes.len() > CLASSES_MAX {
        let given = format!("{} tables", spec.classes.len());
        return Err(RUN.invalid("[[class]]", given, format!("at most {CLASSES_MAX}")));
    }
    fleet::add_measuring_class(&mut spec)?;
    add_default_command(&mut spec);
    destination::apply_urls(&RUN, &mut spec.run)?;
    let mut classes = class::resolve(&mut spec)?;
    commands::merge(&mut spec, &mut classes)?;
    let default_destination = destination::of_run(&spec)?;
    let mut ways = destination::ways(&mut spec, &default_destination, &classes)?;
    class::assign_owners(&spec, &mut classes, &mut ways)?;
    let servers = destination::settle(ways, &mut classes);
    class::limit_mixes(&spec.run, &mut classes);
    class::order_keys(spec.run.placement.unwrap_or(Placement::Modulo), &mut classes);
    let plan = plan_of(spec, default_destination, servers, classes)?;
    Ok(with_placement(plan))
}

/// Adds the default command of a protocol that has nothing else to send.
fn add_default_command(spec: &mut PlanSpec) {
    let has_own = !spec.classes.is_empty() && spec.classes.iter().all(|class| class.command.is_some());
    if let (Some(command), false) = (spec.run.protocol.and_then(Protocol::default_command), has_own) {
        spec.run.command.get_or_insert_with(|| vec![CommandSpec::of(command)]);
    }
}

/// The plan of options whose classes are settled.
fn plan_of(
    mut spec: PlanSpec,
    default_destination: Destination,
    servers: Vec<Server>,
    classes: Vec<Class>,
) -> Resolved<Plan> {
    let Destination { servers: named, protocol, transport } = default_destination;
    let protocols: Vec<Protocol> = classes.iter().map(|class| class.protocol).collect();
    let groups =
        protocols.iter().enumerate().filter(|(index, own)| !protocols[..*index].contains(own)).count();
    let is_stateless = protocols.iter().any(|protocol| protocol.is_stateless());
    let is_udp = classes.iter().any(|class| class.uses_transport(Transport::Udp));
    let run = &mut spec.run;
    run.server = ServerList::of(&named);
    (run.protocol, run.transport) = (Some(protocol), Some(transport));
    let reads_data_set = commands::read_data_set(run.command.as_deref().unwrap_or_default(), &classes);
    let preload = *run.preload.get_or_insert(!is_stateless && reads_data_set);
    let commands = commands::with_names(run, preload, &classes);
    if !has_server_stats(run, &protocols) {
        run.server_stats.get_or_insert(false);
    }
    RUN.count("fleet", run.fleet, 1, 1, fleet::FLEET_MAX.into())?;
    let is_peak = run.peak == Some(true);
    let is_cluster = run.cluster == Some(true);
    // In a cluster slots belong to no connection, whose pipeline could be awaited.
    let refill = if is_peak && !is_cluster { Refill::Batch } else { Refill::Eager };
    // A lost datagram shows by its time-out alone.
    let default_timeout = if is_udp { DEFAULT_DATAGRAM_TIMEOUT } else { DEFAULT_TIMEOUT };
    let timeout = *run.timeout.get_or_insert(default_timeout);
    Ok(Plan {
        threads: RUN.count("threads", run.threads, 1, 1, WORKERS_MAX.into())?.max(groups as u64) as u32,
        servers,
        agents: run.agents(),
        protocol,
        login: login(run)?,
        hash_field: match run.hash_field {
            None => None,
            given => Some(RUN.count("hash-field", given, 0, 1, rules::HASH_FIELD_MAX)? as u32),
        },
        trailing_blank: run.trailing_blank == Some(true),
        commands,
        transport,
        ip_version: run.ip_version.unwrap_or_default(),
        sockets: sockets(run),
        tls: tls(run),
        placement: run.placement.unwrap_or(Placement::Modulo),
        is_cluster,
        cpus: run.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
        io: *run.io.get_or_insert(IoChoice::Auto),
        wait: *run.wait.get_or_insert(Wait::Hybrid),
        refill: run.refill.unwrap_or(refill),
        gather: run.gather.unwrap_or(if is_peak { Gather::PEAK } else { Gather::NOTHING }),
        timeout,
        connect_timeout: run.connect_timeout.unwrap_or(timeout),
        drain: *run.drain.get_or_insert(timeout),
        warmup: *run.warmup.get_or_insert(default_warmup(&classes)),
        stop: stop(run, &classes),
        preload,
        preload_rate: run.preload_rate,
        verify: run.verify,
        server_stats: run.server_stats != Some(false),
        seed: run.seed.map_or(0, |seed| seed.0),
        data_seed: run.data_seed.get_or_insert(DEFAULT_DATA_SEED).0,
        interval: run.interval,
        meters: run.meter.clone().unwrap_or_default(),
        percentiles: run.percentiles.clone().unwrap_or_default().0,
        labels: run.label.clone().unwrap_or_default(),
        timestamps: run.timestamps.unwrap_or(Timestamps::Auto),
        measures_unloaded: false,
        samples_max: RUN.count("samples-max", run.samples_max, 0, 0, 100_000_000)?,
        classes,
        spec,
    })
}

/// Where there is something to choose between servers, the specification says by what.
fn with_placement(mut plan: Plan) -> Plan {
    if plan.has_placement() && !plan.is_cluster {
        plan.spec.run.placement.get_or_insert(plan.placement);
    }
    plan
}

/// Connections that are counted would be used up by a warm-up, and what a trace begins with is a part of it.
fn default_warmup(classes: &[Class]) -> Warmup {
    let is_counted = classes.iter().any(|class| class.lifetime.total.is_some() || class.replay().is_some());
    if is_counted { Warmup::NONE } else { Warmup::For(DEFAULT_WARMUP) }
}

fn login(run: &RunSpec) -> Resolved<Login> {
    Ok(Login {
        user: run.user.clone(),
        password: run.password.clone(),
        database: RUN.count("database", run.database, 0, 0, u64::from(u32::MAX))? as u32,
        client_name: run.client_name.clone(),
    })
}

/// How TLS is spoken, where it is the transport.
pub fn tls(run: &RunSpec) -> TlsOptions {
    let files = run.tls_cert.clone().zip(run.tls_key.clone());
    TlsOptions {
        ca: run.tls_ca.clone(),
        identity: files.map(|(certificate, key)| Identity { certificate, key }),
        server_name: run.tls_server_name.clone(),
        is_insecure: run.tls_insecure == Some(true),
    }
}

fn sockets(run: &RunSpec) -> SocketOptions {
    SocketOptions {
        nodelay: run.nodelay.unwrap_or(true),
        linger: run.linger,
        send_buffer: run.send_buffer.map(|bytes| bytes.0 as u32),
        receive_buffer: run.receive_buffer.map(|bytes| bytes.0 as u32),
    }
}

/// Servers say something of themselves that can be compared with what was sent.
fn has_server_stats(run: &RunSpec, protocols: &[Protocol]) -> bool {
    run.hash_field.is_none()
        && !protocols.iter().any(|protocol| protocol.is_stateless())
        && !rules::hides_stats(run, protocols)
}

/// Servers by their addresses, at the usual port of the protocol where none is given. By thread one may be given several times, which
/// gives it so many of the workers' turns.
fn addresses_of(
    context: &ErrorContext<'_>,
    given: Option<&ServerList>,
    protocol: Protocol,
    placement: Option<Placement>,
) -> Resolved<Vec<ServerAddress>> {
    let servers = given.into_iter().flat_map(ServerList::addresses);
    let servers: Vec<_> = servers.map(|server| server.at_port(protocol.default_port())).collect();
    if servers.len() > SERVERS_MAX {
        return Err(context.exceeds("server", format!("{} servers", servers.len()), SERVERS_MAX));
    }
    let is_repeated = |(index, server): &(usize, &ServerAddress)| servers[..*index].contains(server);
    match servers.iter().enumerate().find(is_repeated) {
        Some((_, server)) if placement != Some(Placement::ByThread) => {
            Err(context.invalid("server", server, "each server once, unless --placement is by-thread"))
        }
        _ => Ok(servers),
    }
}

fn stop(run: &mut RunSpec, classes: &[Class]) -> Stop {
    let requests = run.requests.map(|count| count.0);
    if let Some(mut until) = run.until.clone() {
        let first_look = *run.time.get_or_insert(DEFAULT_TIME);
        let max_time = until.max.unwrap_or(DEFAULT_MAX_TIME.max(first_look));
        until.max = Some(max_time);
        run.until = Some(until.clone());
        return Stop { time: Some(max_time), requests, until: Some(EarlyStop { until, first_look }) };
    }
    // Else the last request is the end, the last connection, or the last line of a trace.
    if requests.is_none() && !classes.iter().all(Class::ends) {
        run.time.get_or_insert(DEFAULT_TIME);
    }
    Stop { time: run.time, requests, until: None }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::op::OpKind;

    fn host() -> Host {
        Host::of(vec![0, 1, 2, 5], 77)
    }

    pub(crate) fn resolved(toml: &str) -> Result<Plan, String> {
        let spec = PlanSpec::from_toml(toml)?;
        resolve(&spec, &host()).map_err(|error| error.to_string())
    }

    /// Rows of text, whose fields ` => ` separates; a field may stand on a line of its own. A new line of a field
    /// is `\n`, a field of nothing `''`.
    pub(crate) fn cases<const N: usize>(text: &str) -> Vec<[&'static str; N]> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let text = lines.collect::<Vec<_>>().join("\r").replace("\r=>", " =>").replace(r"\n", "\n");
        let field = |field| if field == "''" { "" } else { field };
        let fields = |row: &'static str| Vec::from_iter(row.split(" => ").map(field));
        text.leak().split('\r').map(|row| fields(row).try_into().expect(row)).collect()
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
            plan.spec.to_toml(),
            "protocol = \"memcached-text\"\ntransport = \"tcp\"\ntime = \"10s\"\nthreads = 3\nwarmup = \"1s\"\n\
             timeout = \"10s\"\nseed = 77\ndrain = \"10s\"\npreload = true\ndata-seed = 1\nio = \"auto\"\n\
             wait = \"hybrid\"\n\n[[class]]\nname = \"main\"\nconnections = 16\ndepth = 1\nthink = \"0s\"\n\
             mix = \"get=9,set=1\"\nkeys = 100000\nkey-size = \"fixed:30\"\nvalue-size = \"fixed:200\"\n\
             popularity = \"uniform\"\nprefix = \"brunt:\"\n"
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
            "until = 'p99=2%,get.p50=0.01,max=1m'\ntime = '2s'\ninterval = '1.5s'",
            "until = 'set.p99=2%'\nmix = 'get'\non-miss = 'set'\nmiss-delay = 'exp:5ms'",
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
            "protocol = 'resp3'\nserver = ['a', 'b']\ncluster = true\nconnections = 1\npeak = true",
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
            "trace = 't'\nreplay = true\ntrace-speed = 0.5\ntrace-sample = '1.5625%'\ntrace-copies = 3\ntrace-repeat = 'same-keys'\ntime = '5s'\n\
             trace-gets = true\non-miss = 'set'\narrival = 'poisson'",
            "trace = 't'\nreplay = true\nwarmup = '5s'\ntrace-warmup-speed = 100\non-miss = 'set'\nmiss-delay = 'exp:1ms'",
            "trace = 't'\nreplay = true\ntrace-preload = true\non-miss = 'set'",
            "trace = 't'\ntrace-order = 'lines'\nserver = ['a', 'b']\nconnections = 5",
        ];
        for text in texts {
            let plan = resolved(text).unwrap();
            let printed = plan.spec.to_toml();
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
    fn a_server_on_this_host_has_a_cpu() {
        for (toml, server_is_here, threads) in
            [("", true, 3), ("", false, 4), ("cpus = '0-1'", true, 2), ("connections = 2", false, 2)]
        {
            let host = Host { server_is_here, ..host() };
            let plan = resolve(&PlanSpec::from_toml(toml).unwrap(), &host).unwrap();
            assert_eq!(plan.threads, threads, "{toml} {server_is_here}");
            assert_eq!(plan.preload_rate, (!server_is_here).then_some(REMOTE_PRELOAD_RATE), "{toml}");
            let printed = plan.spec.to_toml();
            assert_eq!(resolved(&printed).unwrap(), plan, "{printed}");
            let mut kept = PlanSpec::from_toml(&printed).unwrap();
            kept.overlay(PlanSpec::from_toml("preload = false").unwrap()).unwrap();
            assert!(!resolve(&kept, &host).unwrap().preload, "{printed}");
        }
    }

    #[test]
    fn keys_get_a_prefix_where_there_is_room() {
        for (toml, prefix) in [
            ("", "brunt:"),
            ("key-size = 11", "brunt:"),
            ("key-size = 10", ""),
            ("key-size = 'uniform:10,40'", ""),
            ("prefix = ''", ""),
            ("prefix = 'x'", "x"),
            ("popularity = 'window:10'", "brunt:"),
            ("popularity = 'window:10'\nkey-size = 8", ""),
            ("trace = 't'\ntrace-layout = 'mutilate-read-write'", ""),
        ] {
            let keyspace = &resolved(toml).unwrap().classes[0].keyspace;
            assert_eq!(keyspace.prefix, prefix, "{toml}");
            assert!(keyspace.key_size.max() <= 40, "{toml}");
        }
    }

    #[test]
    fn key_sizes_are_truncated_to_what_fits() {
        for (toml, expected) in [
            ("key-size = 'fb_key'", "fb_key@11..250"),
            ("key-size = 'fb_key'\nprefix = ''", "fb_key@5..250"),
            ("key-size = 'fb_key'\nprefix = 'user:'", "fb_key@10..250"),
            ("key-size = 'fb_key@1..40'", "fb_key@11..40"),
            ("key-size = 'discrete:20=1,30=2'", "discrete:20=1,30=2"),
            ("key-form = 'random'", "fixed:30"),
            ("key-form = 'random'\nkeys = 238328\nkey-size = 3", "fixed:3"),
            ("key-form = 'random'\nkey-size = 'fb_key'", "fb_key@9..250"),
            ("key-form = 'hex8'", "fixed:14"),
            ("key-form = 'hex8'\nprefix = 'mcp:'", "fixed:12"),
            ("key-form = 'hex8'\nkey-size = 'fb_key'", "fb_key@14..250"),
        ] {
            assert_eq!(resolved(toml).unwrap().classes[0].keyspace.key_size.to_string(), expected);
        }
    }

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
            let servers = &plan.servers;
            assert_eq!(servers[0].address.as_ref().map(ToString::to_string), Some(format!("a:{port}")));
        }
    }

    #[test]
    fn connect_timeout_defaults_to_timeout() {
        for (toml, expected_ms, printed) in [
            ("timeout = '2s'", 2_000, false),
            ("timeout = '2s'\nconnect-timeout = '2s'", 2_000, true),
            ("timeout = '2s'\nconnect-timeout = '5s'", 5_000, true),
        ] {
            let plan = resolved(toml).unwrap();
            assert_eq!(plan.connect_timeout, DurationNs::from_millis(expected_ms), "{toml}");
            assert_eq!(plan.spec.to_toml().contains("connect-timeout"), printed, "{toml}");
        }
    }

    /// Messages name the option, its value, and what is expected.
    #[test]
    fn impossible_plans_are_refused() {
        let table = cases(include_str!("resolve/refused.txt"));
        assert_eq!(table.len(), 211);
        for [toml, message] in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
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
        let rate = PlanSpec::from_toml("rate = 5").unwrap();
        spec.overlay(rate.clone()).unwrap();
        assert_eq!(spec.base.rate, rate.base.rate);
        let mut two = PlanSpec::from_toml("[[class]]\nname='a'\n[[class]]\nname='b'").unwrap();
        let error = two.overlay(rate).unwrap_err();
        assert!(
            error.starts_with("--rate: the plan has several classes: set the same key inside"),
            "{error}"
        );
        let of_class =
            |name: &str| PlanSpec::from_toml(&format!("[[class]]\nname = '{name}'\ndepth = 4")).unwrap();
        assert_eq!(two.clone().overlay(of_class("b")), Ok(()));
        let error = two.overlay(of_class("c")).unwrap_err();
        assert_eq!(error, "--set class.c: the plan has no [[class]] of this name: expected a, b");
    }
}
