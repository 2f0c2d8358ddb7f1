//! Agents, and the class that the controller measures with.
//!
//! Invariant: `--measure-…` is another way to write a class that the controller carries out, and no other code depends
//! on it.

use super::{RUN, Resolved};
use crate::host_role::HostRole;
use crate::plan::Class;
use crate::server::ServerAddress;
use crate::spec::{ClassSpec, PlanSpec, RunSpec};
use crate::units::Count;
use crate::url::NamedServer;
use std::borrow::Cow;

/// What the controller's own class is called.
const MEASURE: &str = "measure";

/// The specification with the class that `--measure-…` stands for.
pub(super) fn with_measuring_class(spec: &PlanSpec) -> Resolved<Cow<'_, PlanSpec>> {
    let of_class = ["measure-rate", "measure-connections", "measure-depth"];
    let Some(option) = spec.run.first_given(&of_class) else {
        return Ok(Cow::Borrowed(spec));
    };
    if spec.run.agent.as_ref().is_none_or(Vec::is_empty) {
        return Err(RUN.requires(option, "--agent"));
    }
    let mut spec = spec.clone();
    if spec.classes.is_empty() {
        let name = spec.base.name.take().unwrap_or_else(|| "main".to_owned());
        spec.classes.push(ClassSpec { name: Some(name), ..ClassSpec::default() });
    }
    let run = &mut spec.run;
    let (rate, connections, depth) =
        (run.measure_rate.take(), run.measure_connections.take(), run.measure_depth.take());
    // What the measuring class must not have of the others' is in no table that it shares with them.
    let mut shared = std::mem::take(&mut spec.base);
    let of_load = ClassSpec {
        rate: shared.rate.take(),
        rate_profile: shared.rate_profile.take(),
        arrival: shared.arrival.take(),
        think: shared.think.take(),
        call_rate: shared.call_rate.take(),
        call_arrival: shared.call_arrival.take(),
        ..ClassSpec::default()
    };
    for class in &mut spec.classes {
        let mut merged = of_load.clone();
        merged.overlay(class.clone());
        *class = merged;
    }
    let mut measuring = spec.classes[0].clone();
    measuring.overlay(ClassSpec {
        name: Some(MEASURE.to_owned()),
        connections: connections.or(Some(Count(1))),
        depth: depth.or(Some(Count(1))),
        runs_on: Some(HostRole::Controller),
        ..ClassSpec::default()
    });
    (measuring.rate, measuring.rate_profile, measuring.think) = (rate, None, None);
    (measuring.call_rate, measuring.call_arrival) = (None, None);
    measuring.arrival = measuring.arrival.filter(|_| rate.is_some());
    spec.base = shared;
    spec.classes.push(measuring);
    Ok(Cow::Owned(spec))
}

/// The agents, as they are named.
pub(super) fn resolve(run: &RunSpec, classes: &[Class]) -> Resolved<Vec<String>> {
    let agents = run.agent.clone().unwrap_or_default();
    if agents.is_empty() {
        return Ok(agents);
    }

    if let Some(unfit) = agents.iter().find(|agent| split(agent).is_none()) {
        return Err(RUN.invalid("agent", unfit, "HOST or HOST:PORT, an IPv6 address in brackets"));
    }
    if run.server.is_none() {
        return Err(
            RUN.requires("agent", "--server: the reference server of a run listens on this host only")
        );
    }
    if classes.iter().all(|class| class.host_role == HostRole::Controller) {
        return Err(RUN.requires("agent", "a class without runs-on = 'controller'"));
    }
    let servers = run.server.iter().flat_map(|list| &list.0).filter_map(NamedServer::address);
    if servers.into_iter().any(ServerAddress::is_unix) {
        return Err(RUN.conflicts("agent", "unix: servers: no agent opens a file that a plan names"));
    }
    let writes = |class: &Class| class.mix.weights.iter().any(|(kind, _)| !kind.is_retrieval());
    if run.verify.is_some()
        && classes.iter().any(|class| writes(class) || class.on_miss != crate::plan::OnMiss::Ignore)
    {
        return Err(RUN.conflicts("agent", "--verify and writes: agents do not know each other's writes"));
    }
    Ok(agents)
}

/// Host and port of an agent; the port where one is named.
pub fn split(agent: &str) -> Option<(&str, Option<u16>)> {
    let named = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
    if let Some(rest) = agent.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = match port.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if port.is_empty() => None,
            None => return None,
        };
        return named(host).then_some((host, port));
    }
    match agent.split_once(':') {
        None => named(agent).then_some((agent, None)),
        // An IPv6 address without brackets: whose colon is it?
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => named(host).then_some((host, Some(port.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OpenRate;
    use crate::resolve::tests::resolved;

    #[test]
    fn agents_are_hosts_with_or_without_a_port() {
        let table = [
            ("load1", Some(("load1", None))),
            ("load1:7", Some(("load1", Some(7)))),
            ("[::1]", Some(("::1", None))),
            ("[::1]:7", Some(("::1", Some(7)))),
            ("::1", None),
            ("load1:", None),
            ("load1:99999", None),
            (":7", None),
            ("[::1]7", None),
            ("a b", None),
        ];
        for (agent, expected) in table {
            assert_eq!(split(agent), expected, "{agent}");
        }
    }

    #[test]
    fn measure_options_add_a_controller_class() {
        let plan = resolved(
            "server = 'a'\nagent = ['x', 'y:1']\nrate = 9000\narrival = 'uniform'\nconnections = 8\nthreads = 8\nmix = 'get'\n\
             measure-rate = 100",
        )
        .unwrap();
        let rows: Vec<_> = plan
            .classes
            .iter()
            .map(|class| {
                (class.name.as_str(), class.host_role, class.connections, class.depth, class.load.clone())
            })
            .collect();
        let same = resolved(
            "server = 'a'\nagent = ['x', 'y:1']\nthreads = 8\nmix = 'get'\n[[class]]\nname = 'main'\nrate = 9000\n\
             arrival = 'uniform'\nconnections = 8\n[[class]]\nname = 'measure'\nrate = 100\narrival = 'uniform'\n\
             connections = 1\ndepth = 1\nruns-on = 'controller'",
        );
        assert_eq!(Ok(&plan), same.as_ref(), "{rows:?}");
        let closed =
            resolved("server = 'a'\nagent = ['x']\nrate = 9000\nmeasure-connections = 3\nmeasure-depth = 2")
                .unwrap();
        assert!(matches!(closed.classes[1].load, crate::plan::Load::Closed { .. }));
        assert_eq!((closed.classes[1].connections, closed.classes[1].depth), (3, 2));
        let beside_calls = resolved(
            "server = 'a'\nagent = ['x']\ncall-rate = 50\ncall-arrival = 'poisson'\nmeasure-rate = 100",
        )
        .unwrap();
        let rates: Vec<_> = beside_calls.classes.iter().map(|class| class.load.clone()).collect();
        let open = |rate| crate::plan::Load::Open { rate, arrival: crate::arrival::Arrival::Poisson };
        let per_second = crate::units::Rate::per_second;
        let (own, whole) = (OpenRate::PerConnection(per_second(50)), OpenRate::Constant(per_second(100)));
        assert_eq!(rates, [open(own), open(whole)]);
    }

    #[test]
    fn options_that_agents_lack_are_refused() {
        let table = [
            (
                "agent = ['a']",
                "--agent requires --server: the reference server of a run listens on this host only",
            ),
            (
                "server = 'a'\nagent = ['::1']",
                "invalid value '::1' for --agent: expected HOST or HOST:PORT, an IPv6 address in brackets",
            ),
            (
                "server = 'a'\nagent = ['b']\nruns-on = 'controller'",
                "--agent requires a class without runs-on = 'controller'",
            ),
            (
                "server = 'a'\nagent = ['b']\nverify = '100%'",
                "--agent cannot be used with --verify and writes: agents do not know each other's writes",
            ),
            (
                "server = 'unix:/run/a.sock'\nagent = ['b']",
                "--agent cannot be used with unix: servers: no agent opens a file that a plan names",
            ),
            ("server = 'a'\nmeasure-depth = 2", "--measure-depth requires --agent"),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message);
        }
    }
}
