//! Agents, and the class that the controller measures with.
//!
//! Invariant: `--measure-…` is another way to write a class that the controller carries out, and no other code depends
//! on it.

use super::{RUN, Resolved};
use crate::choice::HostRole;
use crate::spec::{ClassSpec, PlanSpec};
use crate::units::Count;

/// What the controller's own class is called.
const MEASURE: &str = "measure";

/// Adds the class that `--measure-…` stands for.
pub(super) fn add_measuring_class(spec: &mut PlanSpec) -> Resolved {
    let of_class = ["measure-rate", "measure-connections", "measure-depth"];
    let Some(option) = spec.run.first_given(&of_class) else { return Ok(()) };
    if !spec.run.has_agents() {
        return Err(RUN.requires(option, "--agent"));
    }
    if spec.classes.is_empty() {
        let name = spec.base.name.take().unwrap_or_else(|| "main".to_owned());
        spec.classes.push(ClassSpec { name: Some(name), ..ClassSpec::default() });
    }
    // What the measuring class must not have of the others' is in no table that it shares with them.
    let of_load = spec.base.take(OF_LOAD);
    for class in &mut spec.classes {
        let mut merged = of_load.clone();
        merged.overlay(std::mem::take(class));
        *class = merged;
    }
    let run = &mut spec.run;
    let mut measuring = spec.classes[0].clone();
    let rate = run.measure_rate.take();
    let arrival = measuring.take(OF_LOAD).arrival.filter(|_| rate.is_some());
    measuring.overlay(ClassSpec {
        name: Some(MEASURE.to_owned()),
        connections: run.measure_connections.take().or(Some(Count(1))),
        depth: run.measure_depth.take().or(Some(Count(1))),
        runs_on: Some(HostRole::Controller),
        rate,
        arrival,
        ..ClassSpec::default()
    });
    spec.classes.push(measuring);
    Ok(())
}

/// The options that say when a class sends.
const OF_LOAD: &str = "rate, rate-profile, arrival, think, call-rate, call-arrival";

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
