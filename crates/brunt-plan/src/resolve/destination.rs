//! The servers, protocol and transport of each class, its routes by kind of operation, and the nodes of a cluster that are discovered.
//!
//! Invariant: what a class says is read as the run's is, and a class that says what the run does is one that says
//! nothing. URLs of servers fill in options that are not given, and must agree with those that are.

use super::{ErrorContext, PlanError, RUN, Resolved, SERVERS_MAX, addresses_of};
use crate::choice::HostRole;
use crate::op::OpKind;
use crate::plan::{Class, Path, Placement, Plan, Protocol, Server, SessionScope, Transport};
use crate::server::ServerAddress;
use crate::spec::{ClassSpec, PlanSpec, RouteSpec, RunSpec};
use crate::units::Count;
use crate::url::{ACCEPTED, NamedServer, ServerList, ServerUrl};
use std::collections::HashMap;
use std::fmt::Display;

/// Servers, and how they are spoken to.
#[derive(Clone, PartialEq)]
pub(super) struct Destination {
    /// None: the reference server is started for the run.
    pub servers: Vec<ServerAddress>,
    pub protocol: Protocol,
    pub transport: Transport,
}

/// Where operations of a class go: first whatever has no other way, then kinds of operations that go elsewhere, or otherwise.
pub(super) type Ways = Vec<(Vec<OpKind>, Destination)>;

/// What classes use that say nothing of it.
pub(super) fn of_run(spec: &PlanSpec) -> Resolved<Destination> {
    let run = &spec.run;
    let protocol = run.protocol.unwrap_or(Protocol::MemcachedText);
    let all_have_own = spec.classes.iter().all(|class| class.server.is_some());
    let transport = match (&run.server, run.transport) {
        // It is looked at with the servers of each class.
        (None, Some(given)) if all_have_own => given,
        (servers, given) => transport(&RUN, servers.as_ref(), given)?,
    };
    Ok(Destination {
        servers: addresses_of(&RUN, run.server.as_ref(), protocol, run.placement)?,
        protocol,
        transport,
    })
}

/// The transport: as given, else as the servers are named.
fn transport(
    context: &ErrorContext<'_>,
    servers: Option<&ServerList>,
    given: Option<Transport>,
) -> Resolved<Transport> {
    let mut places = servers.into_iter().flat_map(ServerList::addresses);
    let has_hosts = places.clone().any(|server| !server.is_unix());
    let path = places.find(|server| server.is_unix());
    match (given, path) {
        (_, Some(path)) if has_hosts => {
            let accepted = "only paths or only hosts: all servers share one transport";
            Err(context.invalid("server", path, accepted))
        }
        (Some(Transport::Unix), None) => Err(context.requires("transport unix", "--server unix:PATH")),
        (None | Some(Transport::Unix), Some(_)) => Ok(Transport::Unix),
        (Some(given), Some(path)) => {
            Err(context.invalid("transport", given, format!("unix with --server {path}")))
        }
        (Some(Transport::Tls), None) if !has_hosts => {
            Err(context.requires("transport tls", "--server: the reference server has no TLS"))
        }
        (given, None) => Ok(given.unwrap_or(Transport::Tcp)),
    }
}

/// What each class says of its servers, which is left in its table where it is not said of all.
pub(super) fn ways(spec: &mut PlanSpec, default: &Destination, classes: &[Class]) -> Resolved<Vec<Ways>> {
    let PlanSpec { run, classes: specs, .. } = spec;
    let of_class =
        |(class, own)| ways_of_class(&ErrorContext::of_class(class, classes), run, default, own, class);
    classes.iter().zip(specs).map(of_class).collect()
}

fn ways_of_class(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    default: &Destination,
    spec: &mut ClassSpec,
    class: &Class,
) -> Resolved<Ways> {
    let own =
        resolve_destination(context, run, default, spec.server.as_ref(), spec.protocol, spec.transport)?;
    let (mut ways, mut routes) = (vec![(Vec::new(), own.clone())], Vec::new());
    for route in spec.route.iter().flatten() {
        check_ops(context, run, route, class, &ways)?;
        let of_route = ErrorContext { route: Some(&route.ops), ..*context };
        let way = resolve_destination(&of_route, run, &own, route.server.as_ref(), None, route.transport)?;
        if let (true, Some(named)) = (way.protocol != own.protocol, &route.server) {
            let accepted = format!("servers that speak {}, the protocol of the class", own.protocol);
            return Err(of_route.invalid("server", named, accepted));
        }
        let server = ServerList::of(&way.servers).filter(|_| way.servers != own.servers);
        routes.push(RouteSpec { ops: route.ops.clone(), server, transport: Some(way.transport) });
        ways.push((route.ops.clone(), way));
    }
    if !routes.is_empty() && kinds_of(run, class).iter().all(|kind| has_way(&ways, *kind)) {
        let accepted = "at least one kind of operation without a route";
        return Err(context.invalid("ops", &class.mix, accepted));
    }
    if spec.connections_of.is_none() {
        spec.server = ServerList::of(&own.servers).filter(|_| own.servers != default.servers);
        spec.protocol = Some(own.protocol).filter(|protocol| *protocol != default.protocol);
        spec.transport = Some(own.transport).filter(|transport| *transport != default.transport);
        spec.route = (!routes.is_empty()).then_some(routes);
    }
    Ok(ways)
}

fn has_way(ways: &Ways, kind: OpKind) -> bool {
    ways.iter().any(|(ops, _)| ops.contains(&kind))
}

/// Gives each class the paths of its ways. Returns all servers of these, of which there may be a thousand.
pub(super) fn settle(ways: Vec<Ways>, classes: &mut [Class]) -> Vec<Server> {
    let (mut servers, mut places) = (Vec::new(), HashMap::new());
    let mut place = |server: Server| {
        *places.entry(server.clone()).or_insert_with(|| {
            servers.push(server);
            (servers.len() - 1) as u16
        })
    };
    for (class, ways) in classes.iter_mut().zip(ways) {
        class.protocol = ways[0].1.protocol;
        for (ops, Destination { servers, protocol, transport }) in ways {
            // Without any that are named, it is the one that is started for the run.
            let embedded = servers.is_empty().then_some(None);
            let addresses = servers.into_iter().map(Some).chain(embedded);
            let servers = addresses.map(|address| place(Server { address, protocol, transport })).collect();
            class.paths.push(Path { ops, servers, transport });
        }
    }
    servers
}

/// What was said of servers, over what holds where nothing was.
fn resolve_destination(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    base: &Destination,
    server: Option<&ServerList>,
    protocol: Option<Protocol>,
    given: Option<Transport>,
) -> Resolved<Destination> {
    let Some(named) = server.filter(|list| !list.0.is_empty()) else {
        let servers = ServerList::of(&base.servers);
        let transport = transport(context, servers.as_ref(), Some(given.unwrap_or(base.transport)))?;
        let protocol = protocol.unwrap_or(base.protocol);
        return Ok(Destination { servers: base.servers.clone(), protocol, transport });
    };
    let mut said = RunSpec {
        server: server.cloned(),
        protocol,
        transport: given,
        user: run.user.clone(),
        password: run.password.clone(),
        database: run.database,
        ..RunSpec::default()
    };
    apply_urls(context, &mut said)?;
    check_login(context, run, &said, named)?;
    if said.transport.is_none()
        && !named.addresses().any(ServerAddress::is_unix)
        && base.transport != Transport::Unix
    {
        said.transport = Some(base.transport);
    }
    let transport = transport(context, server, said.transport)?;
    // Which version of a protocol is spoken no URL says.
    let is_of_base =
        protocol.is_none() && said.protocol.is_none_or(|said| base.protocol.is_of_scheme(said.is_resp()));
    let protocol = said.protocol.filter(|_| !is_of_base).unwrap_or(base.protocol);
    Ok(Destination { servers: addresses_of(context, server, protocol, run.placement)?, protocol, transport })
}

/// Users, passwords and databases apply to the whole run: those in the URL of one class would reach the servers of all others.
fn check_login(context: &ErrorContext<'_>, run: &RunSpec, said: &RunSpec, named: &ServerList) -> Resolved {
    let option = match () {
        () if said.user != run.user => "user",
        () if said.password != run.password => "password",
        () if said.database != run.database => "database",
        () => return Ok(()),
    };
    let accepted = format!("URLs with the {option} of the run, which all classes share");
    Err(context.invalid("server", named, accepted))
}

/// Are the kinds of a route the class's, and of no other route?
fn check_ops(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    route: &RouteSpec,
    class: &Class,
    earlier: &Ways,
) -> Resolved {
    let kinds = kinds_of(run, class);
    if route.ops.is_empty() {
        return Err(context.invalid("ops", "", format!("at least one of {}", list(&kinds))));
    }
    for (index, kind) in route.ops.iter().enumerate() {
        if !kinds.contains(kind) {
            return Err(context.invalid("ops", kind, format!("operations of the class ({})", list(&kinds))));
        }
        if has_way(earlier, *kind) || route.ops[..index].contains(kind) {
            return Err(context.invalid("ops", kind, "each kind of operation in one route"));
        }
    }
    if route.server.is_none() && route.transport.is_none() {
        return Err(context.requires("route", "a transport or a server"));
    }
    Ok(())
}

/// The kinds of operations of a class, that of its preload among them.
fn kinds_of(run: &RunSpec, class: &Class) -> Vec<OpKind> {
    let mut kinds = class.kinds();
    if run.preload != Some(false) && !kinds.contains(&OpKind::Set) {
        kinds.push(OpKind::Set);
    }
    kinds
}

fn list(kinds: &[OpKind]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" ")
}

/// Has each path as many servers as a change needs, and each client connections to all of them, unless its thread has one server?
pub(super) fn check_counts(context: &ErrorContext<'_>, plan: &Plan, class: &Class) -> Resolved {
    let counts: Vec<usize> = class.paths.iter().map(|path| path.servers.len()).collect();
    let fewest = counts.iter().copied().min().unwrap_or(1);
    if fewest < class.replicas as usize {
        let of = if fewest < counts[0] { "a route of the class" } else { "the class" };
        return Err(context.exceeds(
            "replicas",
            class.replicas,
            format!("{fewest}, the number of servers of {of}"),
        ));
    }
    let SessionScope::Client { connections } = class.sessions else { return Ok(()) };
    let unfit = counts.into_iter().find(|servers| !connections.is_multiple_of(*servers as u32));
    match unfit.filter(|_| plan.placement != Placement::ByThread) {
        Some(servers) => {
            let accepted =
                format!("a multiple of the number of servers, {servers}, or --placement by-thread");
            Err(context.invalid("client-connections", connections, accepted))
        }
        None => Ok(()),
    }
}

/// Fills in what the servers of a run say of themselves.
pub(super) fn apply_urls(context: &ErrorContext<'_>, run: &mut RunSpec) -> Resolved {
    let given = run.clone();
    for server in given.server.iter().flat_map(|list| &list.0) {
        match server {
            NamedServer::Plain(_) => {}
            NamedServer::Url(url) => apply_url(context, run, &given, url)?,
            NamedServer::Invalid(shown) => return Err(context.invalid("server", shown, ACCEPTED)),
        }
    }
    Ok(())
}

/// Fills in what this URL says, or finds that another option says something else.
fn apply_url(context: &ErrorContext<'_>, run: &mut RunSpec, given: &RunSpec, url: &ServerUrl) -> Resolved {
    // Which version of Redis's protocol is spoken no URL says, and of memcached's there are several.
    let protocol = match run.protocol {
        Some(protocol) if protocol.is_of_scheme(url.scheme.is_redis) => None,
        _ if url.scheme.is_redis => Some(Protocol::Resp2),
        _ => Some(Protocol::MemcachedText),
    };
    let database = url.database.map(|number| Count(number.into()));
    let merge = UrlOptions { context, url };
    merge.option("protocol", &given.protocol, &mut run.protocol, protocol)?;
    merge.option("transport", &given.transport, &mut run.transport, Some(url.scheme.transport))?;
    merge.option("user", &given.user, &mut run.user, url.user.clone())?;
    merge.option("password", &given.password, &mut run.password, url.password.clone())?;
    merge.option("database", &given.database, &mut run.database, database)
}

/// What a URL says, for messages.
struct UrlOptions<'a> {
    context: &'a ErrorContext<'a>,
    url: &'a ServerUrl,
}

impl UrlOptions<'_> {
    /// Sets an option that has no value to the URL's. A value that another option (`given`) or an earlier URL has set must be equal.
    fn option<T: PartialEq + Display>(
        &self,
        option: &str,
        given: &Option<T>,
        current: &mut Option<T>,
        of_url: Option<T>,
    ) -> Resolved {
        let Self { context, url } = self;
        match (&current, of_url) {
            (_, None) => Ok(()),
            (Some(current), Some(of_url)) if *current == of_url => Ok(()),
            (None, of_url) => {
                *current = of_url;
                Ok(())
            }
            (Some(_), Some(_)) => Err(match given {
                Some(given) => context.invalid(option, given, format!("the value of --server {url}")),
                None => context.invalid("server", url, format!("URLs with the same {option}")),
            }),
        }
    }
}

/// The plan that runs when these, at least one, turn out to be the nodes of its cluster. Workers that would not have a
/// connection of every class to every node are left out; those of agents need them for their own classes, and each agent has one.
///
/// # Errors
/// There are too few connections for a single worker, or too many nodes.
///
/// # Panics
/// If there are no nodes.
pub fn of_nodes(plan: &Plan, nodes: &[ServerAddress]) -> Result<Plan, PlanError> {
    assert!(!nodes.is_empty(), "a node has answered");
    if nodes.len() > SERVERS_MAX {
        return Err(RUN.exceeds("cluster", format!("of {} nodes", nodes.len()), SERVERS_MAX));
    }
    let count = nodes.len() as u32;
    let fewest = |workers: u32, of_agents: Option<bool>| {
        let is_such =
            |class: &&Class| of_agents.is_none_or(|are| are == (class.host_role == HostRole::Agents));
        let fewest = plan.classes.iter().filter(is_such).map(|class| class.connections).min();
        let fewest = fewest.unwrap_or(count * workers);
        if fewest >= count * workers {
            return Ok(fewest);
        }
        let of_each = if workers > 1 { " and agent" } else { "" };
        let accepted = format!("at least {}, one per node of the cluster{of_each}", count * workers);
        Err(RUN.invalid("connections", fewest, accepted))
    };
    let most = match plan.agents.len() as u32 {
        0 => fewest(1, None)? / count,
        agents => fewest(1, Some(false)).and_then(|_| fewest(agents, Some(true)))? / count,
    };
    plan.changed(|spec| {
        spec.run.server = ServerList::of(nodes);
        spec.run.threads = Some(Count(plan.threads.min(most).into()));
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cases, resolved};
    use super::*;
    use crate::login::{Login, Password};
    use crate::op::OpKind;
    use crate::plan::{Plan, Protocol, Refill, Transport};

    #[test]
    fn transport_follows_from_the_servers() {
        let table = [
            ("", Transport::Tcp),
            ("server = 'a'", Transport::Tcp),
            ("server = 'unix:/a'", Transport::Unix),
            ("server = ['unix:/a', 'unix:/b']\ntransport = 'unix'", Transport::Unix),
            ("server = 'unix:/a'\nprotocol = 'resp3'", Transport::Unix),
            (
                "server = 'a'\ntransport = 'tls'\ntls-ca = 'ca'\ntls-cert = 'c'\ntls-key = 'k'\ntls-server-name = 'n'",
                Transport::Tls,
            ),
            (
                "server = 'a'\ntransport = 'tls'\ntls-insecure = true\nmeter = ['handshake-time']",
                Transport::Tls,
            ),
        ];
        for (toml, expected) in table {
            let plan = resolved(toml).unwrap();
            assert_eq!(plan.transport, expected, "{toml}");
            let again = resolved(&plan.spec.to_toml()).unwrap();
            assert_eq!(again, plan, "{toml}");
        }
    }

    /// Every server with how it is spoken to, and the servers of each class's paths.
    fn shown(plan: &Plan) -> String {
        let name =
            |address: Option<_>| address.map_or("embedded".to_owned(), |address: &_| format!("{address}"));
        let servers = plan.servers.iter().map(|server| {
            format!("{} {} {}", name(server.address.as_ref()), server.protocol, server.transport)
        });
        let path = |path: &Path| {
            let ops: Vec<&str> = path.ops.iter().map(|kind| kind.name()).collect();
            format!("{}{:?}", ops.join("+"), path.servers)
        };
        let class = |class: &crate::plan::Class| {
            let paths: Vec<String> = class.paths.iter().map(path).collect();
            format!("{}: {}", class.name, paths.join(" "))
        };
        let classes: Vec<String> = plan.classes.iter().map(class).collect();
        let workers: Vec<String> = plan
            .worker_groups()
            .iter()
            .map(|group| format!("{} {:?}", group.protocol, group.workers))
            .collect();
        format!(
            "{} | {} | {}",
            servers.collect::<Vec<_>>().join(", "),
            classes.join("; "),
            workers.join(", ")
        )
    }

    #[test]
    fn class_urls_may_repeat_the_login() {
        let plan = resolved(
            "user = 'u'\npassword = 'p'\ndatabase = 4\n[[class]]\nname = 'x'\nserver = 'a'\n[[class]]\nname = 'y'\n\
             server = 'redis://u:p@b/4'",
        );
        let plan = plan.unwrap();
        assert_eq!(plan.protocols(), [Protocol::MemcachedText, Protocol::Resp2]);
        assert_eq!((plan.login.user.as_deref(), plan.login.database), (Some("u"), 4));
    }

    /// By the definition: whole groups of as many connections as there are replicas, in each worker.
    #[test]
    fn a_closed_loop_has_slots_for_whole_changes() {
        let table = [
            ("depth = 3", 3 * 16),
            ("replicas = 2\nthreads = 1", 8),
            ("replicas = 2\nthreads = 2\ndepth = 5", 5 * 8),
            // 6, 5 and 5 connections.
            ("replicas = 2\nthreads = 3", 3 + 2 + 2),
        ];
        for (more, expected) in table {
            let plan = resolved(&format!("server = ['a', 'b']\nconnections = 16\n{more}")).unwrap();
            assert_eq!(plan.in_flight_slots(&plan.classes[0]), expected, "{more}");
        }
    }

    #[test]
    fn classes_have_servers_of_their_own() {
        let table = cases(
            r"
            // By thread a server has as many turns as it has names.
            server = ['a', 'a', 'b']\nplacement = 'by-thread'
                => a:11211 memcached-text tcp, b:11211 memcached-text tcp | main: [0, 0, 1] | memcached-text 0..3
            // What preload stores goes where the class goes.
            server = 'a'\nmix = 'mget'\n[[class]]\n[[class.route]]\nops = ['mget']\ntransport = 'udp'
                => a:11211 memcached-text tcp, a:11211 memcached-text udp | main: [0] mget[1] | memcached-text 0..3
            '' => embedded memcached-text tcp | main: [0] | memcached-text 0..3
            server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nserver = ['redis://b', 'c']
                => a:11211 memcached-text tcp, b:6379 resp2 tcp, c:6379 resp2 tcp | x: [0]; y: [1, 2] | memcached-text 0..2, resp2 2..3
            server = 'redis://a'\nprotocol = 'resp3'\n[[class]]\nname = 'x'\nserver = 'redis://b'\n[[class]]\nname = 'y'\nserver = 'memcached://c'
                => b:6379 resp3 tcp, c:11211 memcached-text tcp | x: [0]; y: [1] | resp3 0..2, memcached-text 2..3
            threads = 1\n[[class]]\nname = 'x'\nserver = 'a'\n[[class]]\nname = 'y'\nserver = 'b'\nprotocol = 'resp3'
                => a:11211 memcached-text tcp, b:6379 resp3 tcp | x: [0]; y: [1] | memcached-text 0..1, resp3 1..2
            server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'udp'
                => a:11211 memcached-text tcp, a:11211 memcached-text udp | x: [0]; y: [1] | memcached-text 0..3
            [[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'udp'\n[[class]]\nname = 'z'\nprotocol = 'resp2'
                => embedded memcached-text tcp, embedded memcached-text udp, embedded resp2 tcp | x: [0]; y: [1]; z: [2] | memcached-text 0..2, resp2 2..3
            transport = 'udp'\n[[class]]\nname = 'x'\nserver = 'memcached://a'\n[[class]]\nname = 'y'\nserver = 'b'\n[[class]]\nname = 'z'\nserver = 'unix:/c'
                => a:11211 memcached-text tcp, b:11211 memcached-text udp, unix:/c memcached-text unix | x: [0]; y: [1]; z: [2] | memcached-text 0..3
            server = ['a', 'b']\n[[class]]\n[[class.route]]\nops = ['get']\ntransport = 'udp'\nserver = 'a'
                => a:11211 memcached-text tcp, b:11211 memcached-text tcp, a:11211 memcached-text udp | main: [0, 1] get[2] | memcached-text 0..3
            server = ['a', 'b']\nreplicas = 2
                => a:11211 memcached-text tcp, b:11211 memcached-text tcp | main: [0, 1] | memcached-text 0..3
        ",
        );
        for [toml, expected] in table {
            let plan = resolved(toml).unwrap();
            assert_eq!(shown(&plan), expected, "{toml}");
            let printed = plan.spec.to_toml();
            assert_eq!(resolved(&printed).unwrap(), plan, "{printed}");
        }
    }

    /// What is preloaded goes where the sets of its class go, and once to each place.
    #[test]
    fn data_sets_are_stored_at_the_servers_of_sets() {
        let plan = resolved(
            "server = 'a'\n[[class]]\nname = 'tcp'\n[[class]]\nname = 'udp'\ntransport = 'udp'\n[[class]]\nname = 'redis'\n\
             server = 'redis://b'\n[[class]]\nname = 'keys'\nkeys = 7\nserver = ['a', 'b', 'c']\nreplicas = 2",
        )
        .unwrap();
        let sets: Vec<_> =
            plan.data_sets().iter().map(|set| (set.classes.clone(), set.home.len(), set.replicas)).collect();
        assert_eq!(sets, [(vec![0, 1], 1, 1), (vec![2], 1, 1), (vec![3], 3, 2)]);
        assert_eq!(plan.preload_stores(), 200_007);
        assert_eq!(plan.classes[2].path_of(OpKind::Set).servers, [2]);
    }

    /// Where one address is spoken to in two ways, its names say which, and it is asked once.
    #[test]
    fn server_names_are_distinct() {
        let plan = resolved(
            "server = ['a', 'b']\n[[class]]\n[[class.route]]\nops = ['get']\ntransport = 'udp'\nserver = 'a'",
        )
        .unwrap();
        let names: Vec<_> = (0..4).map(|index| plan.server_name(index)).collect();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(names, [named("a:11211 (tcp)"), named("b:11211"), named("a:11211 (udp)"), None]);
        assert_eq!(plan.polled_servers(), [0, 1]);
        assert_eq!(resolved("").unwrap().server_name(0), None);
        let plan = resolved(
            "server = 'a'\n[[class]]\nname = 'w'\n[[class]]\nname = 'x'\ntransport = 'udp'\n[[class]]\nname = 'y'\n\
             protocol = 'memcached-meta'\n[[class]]\nname = 'z'\nprotocol = 'memcached-meta'\ntransport = 'udp'",
        )
        .unwrap();
        let names: Vec<_> = (0..4).filter_map(|index| plan.server_name(index)).collect();
        let ways = ["memcached-text over tcp", "memcached-text over udp", "memcached-meta over tcp"];
        assert_eq!(names[..3], ways.map(|way| format!("a:11211 ({way})")));
        assert_eq!(names[3], "a:11211 (memcached-meta over udp)");
    }

    #[test]
    fn urls_fill_in_what_is_not_given() {
        // (plan) → protocol, transport, user, password and database, servers
        let table = cases(
            r"
            server = 'memcached://a' => memcached-text tcp - - 0 => a:11211
            server = 'memcacheds://a:5' => memcached-text tls - - 0 => a:5
            server = ['memcached+udp://a', 'b']\nprotocol = 'memcached-meta' => memcached-meta udp - - 0 => a:11211 b:11211
            server = 'redis://a' => resp2 tcp - - 0 => a:6379
            server = 'redis://a'\nprotocol = 'resp3' => resp3 tcp - - 0 => a:6379
            server = ['rediss://u:p@a/4', 'b'] => resp2 tls u p 4 => a:6379 b:6379
            server = ['a:6379', 'b:7379'] => memcached-text tcp - - 0 => a:6379 b:7379
            server = 'a:6379'\nprotocol = 'memcached-text' => memcached-text tcp - - 0 => a:6379
            server = 'memcached://a:6379' => memcached-text tcp - - 0 => a:6379
            server = 'redis://u:p@a/4'\nuser = 'u'\npassword = 'p'\ndatabase = 4\ntransport = 'tcp' => resp2 tcp u p 4 => a:6379
        ",
        );
        for [toml, way, servers] in table {
            let plan = resolved(toml).unwrap();
            let Login { user, password, database, .. } = &plan.login;
            let secret = password.as_ref().map_or("-", Password::secret);
            let (protocol, transport) = (plan.protocol.name(), plan.transport.name());
            let shown =
                format!("{protocol} {transport} {} {secret} {database}", user.as_deref().unwrap_or("-"));
            assert_eq!(shown, way, "{toml}");
            let names: Vec<String> = plan.addresses().iter().map(ToString::to_string).collect();
            assert_eq!(names.join(" "), servers, "{toml}");
        }
    }

    #[test]
    fn urls_that_cannot_be_read_show_no_password() {
        let flawed = resolved("server = 'redis://u:hunter2@a:99999'").unwrap_err();
        assert!(
            flawed.starts_with("invalid value 'redis://(secret)@a:99999' for --server: expected HOST[:PORT]"),
            "{flawed}"
        );
    }

    #[test]
    fn a_cluster_is_redis_by_hosts() {
        let peak = resolved("cluster = true\nserver = 'redis://a'\npeak = true").unwrap();
        assert_eq!(peak.refill, Refill::Eager);
        assert!(!resolved("cluster = false").unwrap().is_cluster);
        assert!(resolved("cluster = true\nserver = 'rediss://a/0'").unwrap().is_cluster);
    }

    /// Seeds may be fewer or more than the nodes; connections are counted against the nodes alone.
    #[test]
    fn discovered_nodes_replace_seed_servers() {
        let nodes =
            |count: u16| (0..count).map(|port| ServerAddress::network("n", 7_000 + port)).collect::<Vec<_>>();
        let cluster = "cluster = true\nprotocol = 'resp3'\nserver = ['a', 'b', 'c']\n";
        let plan = resolved(&format!("{cluster}connections = 2\nthreads = 2")).unwrap();
        assert_eq!((plan.threads, plan.copies_of(&plan.classes[0])), (2, 1));
        let two = of_nodes(&plan, &nodes(2)).unwrap();
        assert_eq!((two.threads, two.addresses()), (1, nodes(2)));
        assert_eq!(of_nodes(&plan, &nodes(1)).unwrap().threads, 2);
        assert_eq!(
            of_nodes(&plan, &nodes(3)).unwrap_err().to_string(),
            "invalid value '2' for --connections: expected at least 3, one per node of the cluster"
        );
        let agents = resolved(&format!(
            "{cluster}agent = ['x', 'y']\nconnections = 9\nthreads = 4\nmeasure-connections = 3"
        ))
        .unwrap();
        assert_eq!(of_nodes(&agents, &nodes(3)).unwrap().threads, 3);
        assert_eq!(
            of_nodes(&agents, &nodes(4)).unwrap_err().to_string(),
            "invalid value '3' for --connections: expected at least 4, one per node of the cluster"
        );
        let agents = resolved(&format!("{cluster}agent = ['x', 'y']\nconnections = 5\nthreads = 4")).unwrap();
        assert_eq!(of_nodes(&agents, &nodes(2)).unwrap().threads, 2);
        assert_eq!(
            of_nodes(&agents, &nodes(3)).unwrap_err().to_string(),
            "invalid value '5' for --connections: expected at least 6, one per node of the cluster and agent"
        );
        assert!(of_nodes(&plan, &nodes(1025)).unwrap_err().to_string().contains("1025 nodes exceeds 1024"));
    }
}
