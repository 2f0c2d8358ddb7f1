//! Where the operations of each class go: whom it talks to and how where that is its own, and routes by kind of operation.
//!
//! Not the defaults of all classes (those are the run's). Invariant: what a class says is checked as the run's is, and a class that
//! says what the run does is one that says nothing.

use super::{ErrorContext, PlanError, resolve_servers, transport, url};
use crate::op::OpKind;
use crate::plan::{
    Class, Destination, Load, OnMiss, OpRoute, OpenRate, Placement, Protocol, SessionScope, Transport,
};
use crate::server::ServerAddress;
use crate::server_list::ServerList;
use crate::spec::{ClassSpec, PlanSpec, RouteSpec, RunSpec};
use crate::url::NamedServer;

/// What classes use that say nothing of it.
pub(super) fn of_run(run: &RunSpec, classes: &[ClassSpec]) -> Result<Destination, PlanError> {
    let context = ErrorContext { class: None };
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
) -> Result<(), PlanError> {
    let several = classes.len() > 1;
    let silent = ClassSpec::default();
    for (index, class) in classes.iter_mut().enumerate() {
        let name = class.name.clone();
        let context = ErrorContext { class: several.then_some(name.as_str()) };
        resolve_class(&context, run, default_destination, spec.classes.get(index).unwrap_or(&silent), class)?;
        if class.own_destination.is_some() || !class.routes.is_empty() {
            check_no_own_servers(&context, run)?;
        }
    }
    Ok(())
}

/// A cluster and agents are of one kind of server.
fn check_no_own_servers(context: &ErrorContext<'_>, run: &RunSpec) -> Result<(), PlanError> {
    if run.cluster == Some(true) {
        let accepted = "--cluster where no class has a server, a protocol, a transport or a route of its own";
        return Err(context.flag_error("cluster", accepted));
    }
    match run.agent.as_ref().and_then(|agents| agents.first()) {
        Some(first) => {
            let accepted =
                "--agent where no class has a server, a protocol, a transport or a route of its own";
            Err(context.error("agent", first, accepted))
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
) -> Result<(), PlanError> {
    let by_port = given.server.as_ref().filter(|_| run.protocol.is_none()).and_then(url::by_port);
    let protocol = given.protocol.or(by_port);
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
        let way = resolve_destination(context, run, &own, route.server.as_ref(), None, route.transport)
            .map_err(|error| of_route(route, error))?;
        if way.protocol != own.protocol {
            let accepted = format!("servers that speak {}, as the class does", own.protocol);
            let named: Vec<String> =
                route.server.iter().flat_map(|list| &list.0).map(ToString::to_string).collect();
            return Err(of_route(route, context.error("server", named.join(", "), accepted)));
        }
        let servers = if way.servers == own.servers { Vec::new() } else { way.servers };
        class.routes.push(OpRoute { ops: route.ops.clone(), servers, transport: way.transport });
    }
    let is_taken = |kind: &OpKind| class.routes.iter().any(|route| route.ops.contains(kind));
    if !class.routes.is_empty() && kinds_of(run, class).iter().all(is_taken) {
        let accepted = "routes that leave a kind of operation to the class itself, whose server and transport are then those of all";
        return Err(context.error("ops", &class.mix, accepted));
    }
    if !class.routes.is_empty() && class.lifetime.is_planned() {
        let accepted = "no route beside --connect-rate, --calls-per-connection, --reconnect-every and --connections-total";
        return Err(context.error("route", list(&class.routes[0].ops), accepted));
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

/// An error about what a route says, which has no flag.
fn of_route(route: &RouteSpec, error: PlanError) -> PlanError {
    let option = error.option.trim_start_matches('-');
    PlanError { option: format!("route of {}: {option}", list(&route.ops)), ..error }
}

/// What was said of servers, over what holds where nothing was.
fn resolve_destination(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    base: &Destination,
    server: Option<&ServerList>,
    protocol: Option<Protocol>,
    transport: Option<Transport>,
) -> Result<Destination, PlanError> {
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

/// Users, passwords and databases are the run's: what the URL of one class says of them would reach the servers of all others.
fn check_login(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    said: &RunSpec,
    named: &ServerList,
) -> Result<(), PlanError> {
    let option = match () {
        () if said.user != run.user => "user",
        () if said.password != run.password => "password",
        () if said.database != run.database => "database",
        () => return Ok(()),
    };
    let servers: Vec<String> = named.0.iter().map(ToString::to_string).collect();
    let accepted = format!(
        "URLs that say no more of --{option} than the run, whose users, passwords and databases are those of all classes"
    );
    Err(context.error("server", servers.join(", "), accepted))
}

/// Are the kinds of a route the class's, and of no other route?
fn check_ops(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    route: &RouteSpec,
    class: &Class,
) -> Result<(), PlanError> {
    let kinds = kinds_of(run, class);
    if route.ops.is_empty() {
        return Err(context.error("ops", "", format!("one or several of: {}", list(&kinds))));
    }
    for (index, kind) in route.ops.iter().enumerate() {
        if !kinds.contains(kind) {
            return Err(context.error("ops", kind, format!("operations of the class: {}", list(&kinds))));
        }
        let is_taken = class.routes.iter().any(|earlier| earlier.ops.contains(kind));
        if is_taken || route.ops[..index].contains(kind) {
            return Err(context.error("ops", kind, "each kind of operation in one route"));
        }
    }
    if route.server.is_none() && route.transport.is_none() {
        let accepted = "a route with a transport or a server of its own";
        return Err(context.error("route", list(&route.ops), accepted));
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
fn check_calls(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    own: &Destination,
    class: &Class,
) -> Result<(), PlanError> {
    let Load::Open { rate: OpenRate::PerConnection(rate), .. } = &class.load else { return Ok(()) };
    // A client's calls are no connection's.
    if matches!(class.sessions, SessionScope::Client { .. }) {
        return Ok(());
    }
    let refuse = |accepted: &str| Err(context.error("call-rate", rate, accepted));
    let is_by_key = run.placement.is_none_or(|placement| placement.is_by_key());
    if own.servers.len() > 1 && is_by_key {
        return refuse(
            "one server, or --placement round-robin, random or by-thread: calls go where their connection goes",
        );
    }
    if run.cluster == Some(true) {
        return refuse("no --cluster together with --call-rate: calls go where their connection goes");
    }
    if class.replicas > 1 {
        return refuse("no --replicas together with --call-rate: calls go where their connection goes");
    }
    if !class.routes.is_empty() {
        return refuse("no route together with --call-rate: calls go where their connection goes");
    }
    Ok(())
}

/// Replicas are servers of each path, and what is not known of all of them is not asked for.
fn check_replicas(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    own: &Destination,
    class: &Class,
) -> Result<(), PlanError> {
    let replicas = class.replicas;
    if replicas == 1 {
        return Ok(());
    }
    let refuse = |accepted: &str| Err(context.error("replicas", replicas, accepted));
    let of_route =
        |route: &OpRoute| if route.servers.is_empty() { own.servers.len() } else { route.servers.len() };
    let fewest = class.routes.iter().map(of_route).fold(own.servers.len(), usize::min);
    if fewest < replicas as usize {
        let of = if fewest < own.servers.len() { "a route of the class" } else { "the class" };
        return refuse(&format!("at most {}, the number of servers of {of}", fewest.max(1)));
    }
    if run.placement.is_some_and(|placement: Placement| !placement.is_by_key()) {
        return refuse("a --placement by key together with --replicas: else every server has every key");
    }
    if let Some(kind) = [OpKind::Cas, OpKind::Raw].into_iter().find(|kind| class.mix.contains(*kind)) {
        return refuse(&format!("a --mix without {kind} together with --replicas"));
    }
    if class.on_miss == OnMiss::Set {
        return refuse("no --on-miss set together with --replicas");
    }
    if class.noreply {
        return refuse(
            "no --noreply together with --replicas, where a change has ended when every replica has answered",
        );
    }
    // A client does not read what it is writing.
    if run.verify.is_some() && class.popularity.window().is_none() {
        return refuse(
            "no --verify together with --replicas, which may hold different versions while one is written",
        );
    }
    if run.cluster == Some(true) {
        return refuse("no --cluster together with --replicas: its nodes replicate by themselves");
    }
    if run.agent.as_ref().is_some_and(|agents| !agents.is_empty()) || class.trace.is_some() {
        return refuse("neither --agent nor a trace together with --replicas");
    }
    Ok(())
}

/// A client has connections to every server of each path, unless its thread has one server.
fn check_clients(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    own: &Destination,
    class: &Class,
) -> Result<(), PlanError> {
    let SessionScope::Client { connections } = class.sessions else { return Ok(()) };
    if run.placement == Some(Placement::ByThread) {
        return Ok(());
    }
    let of_routes = class.routes.iter().map(|route| route.servers.len()).filter(|servers| *servers > 0);
    let of_paths = of_routes.chain([own.servers.len().max(1)]);
    match of_paths.map(|servers| servers as u32).find(|servers| !connections.is_multiple_of(*servers)) {
        Some(servers) => {
            let accepted = format!(
                "a multiple of {servers}, as many as the servers are, to each of which a client has connections; or --placement by-thread"
            );
            Err(context.error("client-connections", connections, accepted))
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
                "--mix (class 'y'): 'cas=1,gets=1' was given; accepted: operations that resp2 has: get mget set add replace \
                 append incr decr delete touch raw; it has no cas",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nserver = ['b', 'b:11211']",
                "--server (class 'y'): 'b:11211' was given; accepted: each server once, but with --placement by-thread",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'unix'",
                "--transport (class 'y'): 'unix' was given; accepted: --transport unix together with --server unix:PATH",
            ),
            (
                "server = 'a'\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\ntransport = 'udp'\nvalue-size = 5000",
                "--value-size (class 'y'): 'fixed:5000' was given; accepted: values of at most 1258 bytes with --transport udp and \
                 keys of 30 bytes: a request is one datagram of 1400; or --no-preload and a --mix that only reads",
            ),
            (
                "[[class]]\nname = 'x'\nserver = 'redis://a'\n[[class]]\nname = 'y'\nserver = 'redis://me:hunter2@b'",
                "--server (class 'y'): 'redis://me:(secret)@b:6379' was given; accepted: URLs that say no more of --user than the \
                 run, whose users, passwords and databases are those of all classes",
            ),
            (
                "[[class]]\nname = 'x'\nserver = 'redis://a'\n[[class]]\nname = 'y'\nserver = 'redis://b/4'",
                "--server (class 'y'): 'redis://b:6379/4' was given; accepted: URLs that say no more of --database than the run, \
                 whose users, passwords and databases are those of all classes",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['incr']\ntransport = 'udp'",
                "ops: 'incr' was given; accepted: operations of the class: get set",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = []\ntransport = 'udp'",
                "ops: '' was given; accepted: one or several of: get set",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get', 'get']\ntransport = 'udp'",
                "ops: 'get' was given; accepted: each kind of operation in one route",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get']",
                "route: 'get' was given; accepted: a route with a transport or a server of its own",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get', 'set']\ntransport = 'udp'",
                "ops: 'get=9,set=1' was given; accepted: routes that leave a kind of operation to the class itself, whose server and \
                 transport are then those of all",
            ),
            (
                "server = 'a'\n[[class]]\n[[class.route]]\nops = ['get']\nserver = 'redis://b'",
                "route of get: server: 'redis://b:6379' was given; accepted: servers that speak memcached-text, as the class does",
            ),
            (
                "server = 'a'\ncalls-per-connection = 5\n[[class]]\n[[class.route]]\nops = ['get']\ntransport = 'udp'",
                "route: 'get' was given; accepted: no route beside --connect-rate, --calls-per-connection, --reconnect-every and \
                 --connections-total",
            ),
            (
                "server = 'a'\nagent = ['x']\n[[class]]\nname = 'x'\n[[class]]\nname = 'y'\nserver = 'b'",
                "--agent (class 'y'): 'x' was given; accepted: --agent where no class has a server, a protocol, a transport or a \
                 route of its own",
            ),
            (
                "threads = 20\nserver = 'a'\n[[class]]\nname = 'x'\nconnections = 4\n[[class]]\nname = 'y'\nserver = 'redis://b'",
                "--threads: '20' was given; accepted: from 1 to 8: every worker needs at least one connection of every class",
            ),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
    }

    #[test]
    fn replicas_and_clients_fit_the_servers() {
        let table = [
            (
                "server = 'a'\nreplicas = 2",
                "--replicas: '2' was given; accepted: at most 1, the number of servers of the class",
            ),
            (
                "server = ['a', 'b']\nreplicas = 2\n[[class]]\n[[class.route]]\nops = ['get']\nserver = 'a'",
                "--replicas: '2' was given; accepted: at most 1, the number of servers of a route of the class",
            ),
            (
                "server = ['a', 'b']\nreplicas = 2\nplacement = 'random'",
                "--replicas: '2' was given; accepted: a --placement by key together with --replicas: else every server has every key",
            ),
            (
                "server = ['a', 'b']\nreplicas = 2\nnoreply = true",
                "--replicas: '2' was given; accepted: no --noreply together with --replicas, where a change has ended when every \
                 replica has answered",
            ),
            (
                "server = ['a', 'b']\nconnections = 6\nclient-connections = 3",
                "--client-connections: '3' was given; accepted: a multiple of 2, as many as the servers are, to each of which a client \
                 has connections; or --placement by-thread",
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
