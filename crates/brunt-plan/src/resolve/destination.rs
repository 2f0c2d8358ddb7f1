//! The servers, protocol and transport of each class, and its routes by kind of operation.
//!
//! Invariant: what a class says is checked as the run's is, and a class that says what the run does is one that says
//! nothing.

use super::{ErrorContext, Resolved, resolve_servers, transport, url};
use crate::op::OpKind;
use crate::plan::{
    Class, Destination, Load, OnMiss, OpRoute, OpenRate, Placement, Protocol, SessionScope, Transport,
};
use crate::server::ServerAddress;
use crate::server_list::ServerList;
use crate::spec::{ClassSpec, PlanSpec, RouteSpec, RunSpec};
use crate::url::NamedServer;

/// What classes use that say nothing of it.
pub(super) fn of_run(run: &RunSpec, classes: &[ClassSpec]) -> Resolved<Destination> {
    let context = ErrorContext::RUN;
    let protocol = run.protocol.unwrap_or(Protocol::MemcachedText);
    let all_have_own = !classes.is_empty() && classes.iter().all(|class| class.server.is_some());
    let transport = match (&run.server, run.transport) {
        // It is looked at with the servers of each class.
        (None, Some(given)) if all_have_own => given,
        _ => transport::resolve(&context, run)?,
    };
    Ok(Destination {
        servers: resolve_servers(&context, run.server.as_ref(), protocol, run.placement)?,
        protocol,
        transport,
    })
}

/// Gives each class what it says of its servers.
pub(super) fn assign(
    run: &RunSpec,
    default_destination: &Destination,
    spec: &PlanSpec,
    classes: &mut [Class],
) -> Resolved {
    let several = classes.len() > 1;
    let silent = ClassSpec::default();
    for (index, class) in classes.iter_mut().enumerate() {
        let name = class.name.clone();
        let context = ErrorContext { class: several.then_some(name.as_str()), route: None };
        resolve_class(&context, run, default_destination, spec.classes.get(index).unwrap_or(&silent), class)?;
        if class.own_destination.is_some() || !class.routes.is_empty() {
            check_no_own_servers(&context, run)?;
        }
    }
    Ok(())
}

/// A cluster and agents are of one kind of server.
fn check_no_own_servers(context: &ErrorContext<'_>, run: &RunSpec) -> Resolved {
    let has_agents = run.has_agents();
    let options = [("cluster", run.cluster == Some(true)), ("agent", has_agents)];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(context.conflicts(option, "server, protocol, transport or route in a [[class]] table"))
        }
        None => Ok(()),
    }
}

fn resolve_class(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    default_destination: &Destination,
    given: &ClassSpec,
    class: &mut Class,
) -> Resolved {
    let protocol_by_port =
        given.server.as_ref().filter(|_| run.protocol.is_none()).and_then(url::protocol_by_port);
    let protocol = given.protocol.or(protocol_by_port);
    let own = resolve_destination(
        context,
        run,
        default_destination,
        given.server.as_ref(),
        protocol,
        given.transport,
    )?;
    for route in given.route.iter().flatten() {
        check_ops(context, run, route, class)?;
        let of_route = ErrorContext { route: Some(&route.ops), ..*context };
        let way = resolve_destination(&of_route, run, &own, route.server.as_ref(), None, route.transport)?;
        if way.protocol != own.protocol {
            let accepted = format!("servers that speak {}, the protocol of the class", own.protocol);
            let named: Vec<String> =
                route.server.iter().flat_map(|list| &list.0).map(ToString::to_string).collect();
            return Err(of_route.invalid("server", named.join(", "), accepted));
        }
        let servers = if way.servers == own.servers { Vec::new() } else { way.servers };
        class.routes.push(OpRoute { ops: route.ops.clone(), servers, transport: way.transport });
    }
    let is_taken = |kind: &OpKind| class.routes.iter().any(|route| route.ops.contains(kind));
    if !class.routes.is_empty() && kinds_of(run, class).iter().all(is_taken) {
        let accepted = "at least one kind of operation without a route";
        return Err(context.invalid("ops", &class.mix, accepted));
    }
    if !class.routes.is_empty() && class.lifetime.is_planned() {
        let others = "--connect-rate, --calls-per-connection, --reconnect-every or --connections-total";
        return Err(context.conflicts("route", others));
    }
    check_calls(context, run, &own, class)?;
    check_replicas(context, run, &own, class)?;
    check_clients(context, run, &own, class)?;
    class.own_destination = (own != *default_destination).then(|| {
        let servers =
            if own.servers == default_destination.servers { Vec::new() } else { own.servers.clone() };
        Destination { servers, ..own }
    });
    Ok(())
}

/// What was said of servers, over what holds where nothing was.
fn resolve_destination(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    base: &Destination,
    server: Option<&ServerList>,
    protocol: Option<Protocol>,
    transport: Option<Transport>,
) -> Resolved<Destination> {
    let mut said = RunSpec {
        server: server.cloned(),
        protocol,
        transport,
        user: run.user.clone(),
        password: run.password.clone(),
        database: run.database,
        ..RunSpec::default()
    };
    let Some(named) = server else {
        let plain = |address: &ServerAddress| NamedServer::Plain(address.clone());
        let listed = ServerList(base.servers.iter().map(plain).collect());
        said.server = (!base.servers.is_empty()).then_some(listed);
        said.transport = Some(transport.unwrap_or(base.transport));
        let transport = transport::resolve(context, &said)?;
        let protocol = protocol.unwrap_or(base.protocol);
        return Ok(Destination { servers: base.servers.clone(), protocol, transport });
    };
    // Which version of a protocol is spoken no URL says.
    let is_of_base = |server: &NamedServer| matches!(server, NamedServer::Url(url) if base.protocol.is_of_scheme(url.scheme.is_redis));
    if protocol.is_none() && named.0.iter().any(is_of_base) {
        said.protocol = Some(base.protocol);
    }
    let mut said = url::apply_urls(context, &said)?;
    check_login(context, run, &said, named)?;
    let has_path = named.0.iter().filter_map(NamedServer::address).any(ServerAddress::is_unix);
    if said.transport.is_none() && !has_path && base.transport != Transport::Unix {
        said.transport = Some(base.transport);
    }
    let transport = transport::resolve(context, &said)?;
    let protocol = said.protocol.unwrap_or(base.protocol);
    let servers = resolve_servers(context, server, protocol, run.placement)?;
    Ok(Destination { servers, protocol, transport })
}

/// Users, passwords and databases apply to the whole run: those in the URL of one class would reach the servers of all others.
fn check_login(context: &ErrorContext<'_>, run: &RunSpec, said: &RunSpec, named: &ServerList) -> Resolved {
    let option = match () {
        () if said.user != run.user => "user",
        () if said.password != run.password => "password",
        () if said.database != run.database => "database",
        () => return Ok(()),
    };
    let servers: Vec<String> = named.0.iter().map(ToString::to_string).collect();
    let accepted = format!("URLs with the --{option} of the run, which all classes share");
    Err(context.invalid("server", servers.join(", "), accepted))
}

/// Are the kinds of a route the class's, and of no other route?
fn check_ops(context: &ErrorContext<'_>, run: &RunSpec, route: &RouteSpec, class: &Class) -> Resolved {
    let kinds = kinds_of(run, class);
    if route.ops.is_empty() {
        return Err(context.invalid("ops", "", format!("at least one of {}", list(&kinds))));
    }
    for (index, kind) in route.ops.iter().enumerate() {
        if !kinds.contains(kind) {
            return Err(context.invalid("ops", kind, format!("operations of the class ({})", list(&kinds))));
        }
        let is_taken = class.routes.iter().any(|earlier| earlier.ops.contains(kind));
        if is_taken || route.ops[..index].contains(kind) {
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

/// A schedule of a connection's own says nothing of where a key lives: its calls go where that connection goes.
fn check_calls(context: &ErrorContext<'_>, run: &RunSpec, own: &Destination, class: &Class) -> Resolved {
    let Load::Open { rate: OpenRate::PerConnection(_), .. } = &class.load else { return Ok(()) };
    // A client's calls are no connection's.
    if matches!(class.sessions, SessionScope::Client { .. }) {
        return Ok(());
    }
    let is_by_key = run.placement.is_none_or(|placement| placement.is_by_key());
    let others = [
        ("--placement by key on several servers", own.servers.len() > 1 && is_by_key),
        ("--cluster", run.cluster == Some(true)),
        ("--replicas", class.replicas > 1),
        ("route", !class.routes.is_empty()),
    ];
    match others.into_iter().find(|(_, is_there)| *is_there) {
        Some((other, _)) => {
            let reason = format!("{other}: calls are sent on the connection they belong to");
            Err(context.conflicts("call-rate", reason))
        }
        None => Ok(()),
    }
}

/// Replicas are servers of each path, and what is not known of all of them is not requested.
fn check_replicas(context: &ErrorContext<'_>, run: &RunSpec, own: &Destination, class: &Class) -> Resolved {
    let replicas = class.replicas;
    if replicas == 1 {
        return Ok(());
    }
    let of_route =
        |route: &OpRoute| if route.servers.is_empty() { own.servers.len() } else { route.servers.len() };
    let fewest = class.routes.iter().map(of_route).fold(own.servers.len(), usize::min);
    if fewest < replicas as usize {
        let of = if fewest < own.servers.len() { "a route of the class" } else { "the class" };
        let limit = format!("{}, the number of servers of {of}", fewest.max(1));
        return Err(context.exceeds("replicas", replicas, limit));
    }
    if run.placement.is_some_and(|placement: Placement| !placement.is_by_key()) {
        return Err(context.requires("replicas", "--placement by key"));
    }
    if let Some(kind) = [OpKind::Cas, OpKind::Raw].into_iter().find(|kind| class.mix.contains(*kind)) {
        return Err(context.conflicts("replicas", format!("{kind} in --mix")));
    }
    // A client does not read what it is writing.
    let reads_others = run.verify.is_some() && class.popularity.window().is_none();
    let others = [
        ("--on-miss set", class.on_miss == OnMiss::Set),
        ("--noreply: a write ends when every replica has replied", class.noreply),
        ("--verify: replicas may differ while a write is in flight", reads_others),
        ("--cluster, whose nodes replicate by themselves", run.cluster == Some(true)),
        ("--agent or trace", run.has_agents() || class.trace.is_some()),
    ];
    context.excludes("replicas", &others)
}

/// A client has connections to every server of each path, unless its thread has one server.
fn check_clients(context: &ErrorContext<'_>, run: &RunSpec, own: &Destination, class: &Class) -> Resolved {
    let SessionScope::Client { connections } = class.sessions else { return Ok(()) };
    if run.placement == Some(Placement::ByThread) {
        return Ok(());
    }
    let of_routes = class.routes.iter().map(|route| route.servers.len()).filter(|servers| *servers > 0);
    let of_paths = of_routes.chain([own.servers.len().max(1)]);
    match of_paths.map(|servers| servers as u32).find(|servers| !connections.is_multiple_of(*servers)) {
        Some(servers) => {
            let accepted =
                format!("a multiple of the number of servers, {servers}, or --placement by-thread");
            Err(context.invalid("client-connections", connections, accepted))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::op::OpKind;
    use crate::plan::{Plan, Protocol};
    use crate::resolve::tests::resolved;
    use crate::spec::PlanSpec;

    /// Every server with how it is spoken to, and the servers of each class's paths.
    fn shown(plan: &Plan) -> String {
        let name =
            |address: Option<_>| address.map_or("embedded".to_owned(), |address: &_| format!("{address}"));
        let servers = plan.servers();
        let servers = servers.iter();
        let servers = servers.map(|server| {
            format!("{} {} {}", name(server.address.as_ref()), server.protocol, server.transport)
        });
        let path = |path: &crate::destination::Path| {
            let ops: Vec<&str> = path.ops.iter().map(|kind| kind.name()).collect();
            format!("{}{:?}", ops.join("+"), path.servers)
        };
        let class = |class: &crate::plan::Class| {
            let paths: Vec<String> = plan.paths(class).iter().map(path).collect();
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
        let table = [
            // By thread a server has as many turns as it has names.
            (
                "server = ['a', 'a', 'b']\nplacement = 'by-thread'",
                "a:11211 memcached-text tcp, b:11211 memcached-text tcp | main: [0, 0, 1] | memcached-text 0..3",
            ),
            // What preload stores goes where the class goes.
            (
                "server = 'a'\nmix = 'mget'\n[[class]]\n[[class.route]]\nops = ['mget']\ntransport = 'udp'",
                "a:11211 memcached-text tcp, a:11211 memcached-text udp | main: [0] mget[1] | memcached-text 0..3",
            ),
            ("", "embedded memcached-text tcp | main: [0] | memcached-text 0..3"),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nserver = ['redis://b', 'c']",
                "a:11211 memcached-text tcp, b:6379 resp2 tcp, c:6379 resp2 tcp | x: [0]; y: [1, 2] | memcached-text 0..2, \
                 resp2 2..3",
            ),
            (
                "threads = 1\n[[class]]\nname = 'x'\nserver = 'a'\n[[class]]\nname = 'y'\nserver = 'b'\nprotocol = 'resp3'",
                "a:11211 memcached-text tcp, b:6379 resp3 tcp | x: [0]; y: [1] | memcached-text 0..1, resp3 1..2",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'udp'",
                "a:11211 memcached-text tcp, a:11211 memcached-text udp | x: [0]; y: [1] | memcached-text 0..3",
            ),
            (
                "[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'udp'\n[[class]]\nname = 'z'\nprotocol = 'resp2'",
                "embedded memcached-text tcp, embedded memcached-text udp, embedded resp2 tcp | x: [0]; y: [1]; z: [2] | \
                 memcached-text 0..2, resp2 2..3",
            ),
            (
                "transport = 'udp'\n[[class]]\nname = 'x'\nserver = 'memcached://a'\n[[class]]\nname = 'y'\nserver = 'b'\n\
                 [[class]]\nname = 'z'\nserver = 'unix:/c'",
                "a:11211 memcached-text tcp, b:11211 memcached-text udp, unix:/c memcached-text unix | x: [0]; y: [1]; z: [2] | \
                 memcached-text 0..3",
            ),
            (
                "server = ['a', 'b']\n[[class]]\n[[class.route]]\nops = ['get']\ntransport = 'udp'\nserver = 'a'",
                "a:11211 memcached-text tcp, b:11211 memcached-text tcp, a:11211 memcached-text udp | main: [0, 1] get[2] | \
                 memcached-text 0..3",
            ),
            (
                "server = ['a', 'b']\nreplicas = 2",
                "a:11211 memcached-text tcp, b:11211 memcached-text tcp | main: [0, 1] | memcached-text 0..3",
            ),
        ];
        for (toml, expected) in table {
            let plan = resolved(toml).unwrap();
            assert_eq!(shown(&plan), expected, "{toml}");
            let printed = PlanSpec::from(&plan).to_toml();
            assert_eq!(resolved(&printed).unwrap(), plan, "{printed}");
        }
    }

    /// What a class's server speaks whose URL has no scheme, at Redis's port.
    #[test]
    fn classes_at_the_port_of_redis_speak_its_protocol() {
        let class = "[[class]]\nname = 'x'\nserver = 'a'\n[[class]]\nname = 'y'\nserver = 'b:6379'\n";
        let table = [
            (class.to_owned(), Protocol::Resp2),
            (format!("{class}protocol = 'resp3'"), Protocol::Resp3),
            (format!("protocol = 'memcached-meta'\n{class}"), Protocol::MemcachedMeta),
            (class.replace("6379", "7379"), Protocol::MemcachedText),
        ];
        for (toml, expected) in table {
            assert_eq!(resolved(&toml).unwrap().servers()[1].protocol, expected, "{toml}");
        }
        // A route goes where the class speaks.
        let route = "[[class]]\nserver = 'a'\n[[class.route]]\nops = ['get']\nserver = 'b:6379'";
        assert_eq!(resolved(route).unwrap().servers()[1].protocol, Protocol::MemcachedText);
    }

    #[test]
    fn class_servers_are_checked_as_the_plan_is() {
        let table = [
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nprotocol = 'resp2'\nmix = 'cas,gets'",
                "invalid value 'cas=1,gets=1' for --mix (class 'y'): expected operations of resp2 (get mget set add replace append incr decr delete touch raw), without cas",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nserver = ['b', 'b:11211']",
                "invalid value 'b:11211' for --server (class 'y'): expected each server once, unless --placement is by-thread",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'unix'",
                "--transport unix (class 'y') requires --server unix:PATH",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'udp'\nvalue-size = 5000",
                "--value-size fixed:5000 (class 'y') exceeds 1258 bytes: --transport udp, keys of 30 bytes, one datagram of 1400 per request; use --no-preload and a --mix that only reads",
            ),
            (
                "[[class]]\nname = 'x'\nserver = 'redis://a'\n[[class]]\nname = 'y'\nserver = 'redis://me:hunter2@b'",
                "invalid value 'redis://me:(secret)@b:6379' for --server (class 'y'): expected URLs with the --user of the run, which all classes share",
            ),
            (
                "[[class]]\nname = 'x'\nserver = 'redis://a'\n[[class]]\nname = 'y'\nserver = 'redis://b/4'",
                "invalid value 'redis://b:6379/4' for --server (class 'y'): expected URLs with the --database of the run, which all classes share",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['incr']\ntransport = 'udp'",
                "invalid value 'incr' for ops: expected operations of the class (get set)",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = []\ntransport = 'udp'",
                "invalid value '' for ops: expected at least one of get set",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get', 'get']\ntransport = 'udp'",
                "invalid value 'get' for ops: expected each kind of operation in one route",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get']",
                "route requires a transport or a server",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get', 'set']\ntransport = 'udp'",
                "invalid value 'get=9,set=1' for ops: expected at least one kind of operation without a route",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get']\nserver = 'redis://b'",
                "invalid value 'redis://b:6379' for server (route of get): expected servers that speak memcached-text, the protocol of the class",
            ),
            (
                "server = 'a'\ncalls-per-connection = 5\n[[class]]\n[[class.route]]\nops = ['get']\ntransport = 'udp'",
                "route cannot be used with --connect-rate, --calls-per-connection, --reconnect-every or --connections-total",
            ),
            (
                "server = 'a'\nagent = ['x']\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nserver = 'b'",
                "--agent (class 'y') cannot be used with server, protocol, transport or route in a [[class]] table",
            ),
            (
                "threads = 20\nserver = 'a'\n[[class]]\nname = 'x'\nconnections = 4\n[[class]]\nname = 'y'\nserver = 'redis://b'",
                "invalid value '20' for --threads: expected 1 to 8: each worker needs a connection of every class",
            ),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
    }

    #[test]
    fn replicas_and_clients_fit_the_servers() {
        let table = [
            ("server = 'a'\nreplicas = 2", "--replicas 2 exceeds 1, the number of servers of the class"),
            (
                "server = ['a', 'b']\nreplicas = 2\n[[class]]\n[[class.route]]\nops = ['get']\nserver = 'a'",
                "--replicas 2 exceeds 1, the number of servers of a route of the class",
            ),
            (
                "server = ['a', 'b']\nreplicas = 2\nplacement = 'random'",
                "--replicas requires --placement by key",
            ),
            (
                "server = ['a', 'b']\nreplicas = 2\nnoreply = true",
                "--replicas cannot be used with --noreply: a write ends when every replica has replied",
            ),
            (
                "server = ['a', 'b']\nconnections = 6\nclient-connections = 3",
                "invalid value '3' for --client-connections: expected a multiple of the number of servers, 2, or --placement by-thread",
            ),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
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
        assert_eq!(plan.path_of(&plan.classes[2], OpKind::Set).servers, [2]);
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
}
