//! Agents, the class that the controller measures with, and the plan of each side.
//!
//! Invariant: `--measure-…` is another way to write a class that the controller carries out, and no other code depends
//! on it. What the plans of both sides schedule adds up to the whole plan, request by request.

use super::{RUN, Resolved};
use crate::choice::HostRole;
use crate::op::ClassId;
use crate::plan::{Class, Plan};
use crate::resolve::PlanError;
use crate::shard::share_of;
use crate::spec::{ClassSpec, PlanSpec, RunSpec};
use crate::units::Count;
use std::net::IpAddr;

/// Agents of a fleet at most: each has a worker.
pub const FLEET_MAX: u32 = super::WORKERS_MAX;
/// What the controller's own class is called.
const MEASURE: &str = "measure";

/// Adds the class that `--measure-…` stands for.
pub(super) fn add_measuring_class(spec: &mut PlanSpec) -> Resolved {
    let given = spec.run.given();
    let Some(option) = given.iter().find(|option| option.starts_with("measure-")) else { return Ok(()) };
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

/// Both as they are given, an IPv6 address in brackets.
pub fn joined(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Does this name, or address with or without brackets, lead to the host it is used on?
pub fn is_this_host(name: &str) -> bool {
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Some classes of a plan, as a plan of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct SubPlan {
    /// The plan.
    pub plan: Plan,
    /// What its classes are in the whole.
    pub classes: Vec<ClassId>,
}

/// A plan, divided between agents and controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSplit {
    /// What the agents do, all together.
    pub agents: SubPlan,
    /// What the controller does, if anything.
    pub controller: Option<SubPlan>,
}

impl PlanSplit {
    /// Divides a plan whose workers all run on agents. `controller_threads` is how many workers the controller has at most.
    ///
    /// # Errors
    /// There is nothing for the agents to do; for a user.
    pub fn of(plan: &Plan, controller_threads: u32) -> Result<Self, PlanError> {
        let agents = sub_plan(plan, HostRole::Agents, |run| {
            // Agents pin their workers themselves.
            run.cpus = None;
        })?;
        let of_controller = plan.classes.iter().filter(|class| class.host_role == HostRole::Controller);
        let connections = of_controller.map(|class| class.connections).min();
        let servers = plan.server_count().max(1) as u32;
        let threads = controller_threads.min(connections.unwrap_or(1) / servers).max(1);
        let controller = sub_plan(plan, HostRole::Controller, |run| {
            run.threads = Some(Count(threads.into()));
            (run.preload, run.preload_rate) = (Some(false), None);
            // Its random numbers differ from those of every agent. Seeds have 53 bits.
            run.seed = Some(Count((plan.seed + 1) & ((1 << 53) - 1)));
        })?;
        let agents =
            agents.ok_or_else(|| PlanError::requires("--agent", "a class without runs-on = 'controller'"))?;
        Ok(Self { agents, controller })
    }

    /// Single requests stay with the agents, and what is metered, too, unless that `is_metered`: only counts and histograms travel.
    ///
    /// # Errors
    /// As [`Plan::changed`].
    pub fn without_samples_of_agents(mut self, is_metered: bool) -> Result<Self, PlanError> {
        self.agents.plan = self.agents.plan.changed(|spec| {
            spec.run.samples_max = None;
            spec.run.meter = spec.run.meter.take().filter(|_| is_metered);
        })?;
        Ok(self)
    }
}

/// The classes of one host role as a plan with these changes, if there are any.
fn sub_plan(
    plan: &Plan,
    host_role: HostRole,
    change: impl FnOnce(&mut RunSpec),
) -> Result<Option<SubPlan>, PlanError> {
    let is_its = |class: &Class| class.host_role == host_role;
    let classes: Vec<ClassId> =
        (0..).zip(&plan.classes).filter(|(_, class)| is_its(class)).map(|(id, _)| id).collect();
    if classes.is_empty() {
        return Ok(None);
    }
    let count = plan.classes.len() as u32;
    let share = |total| classes.iter().map(|id| share_of(total, u32::from(*id), count)).sum();
    let own = plan.changed(|PlanSpec { run, classes: specs, .. }| {
        let mut of_role = plan.classes.iter().map(is_its);
        specs.retain(|_| of_role.next() == Some(true));
        run.requests = run.requests.map(|Count(total)| Count(share(total)));
        // The controller polls the servers and decides when the precision is reached.
        run.server_stats = Some(false);
        run.time = run.until.take().and_then(|until| until.max).or(run.time);
        (run.agent, run.fleet, run.tolerate_lost) = (None, None, None);
        change(run);
    })?;
    Ok(Some(SubPlan { plan: own, classes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OpenRate;
    use crate::resolve::tests::resolved;
    use crate::resolve::{Host, resolve, resolve_part};
    use crate::spec::PlanSpec;
    use proptest::prelude::*;

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
            if let Some((host, Some(port))) = expected {
                assert_eq!(joined(host, port), agent);
            }
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

    fn plan(toml: &str) -> Plan {
        let spec = PlanSpec::from_toml(toml).unwrap();
        resolve(&spec, &Host::of(vec![0, 1], 9)).unwrap()
    }

    proptest! {
        /// However classes are divided, every request of the plan has one host.
        #[test]
        fn shares_add_up_to_the_plan(requests in 1..10_000_u64, by in proptest::collection::vec(any::<bool>(), 1..6)) {
            let mut toml = format!("requests = {requests}\nthreads = 2\nconnections = 4\nserver = 'a'\n");
            for (index, controllers) in by.iter().enumerate() {
                let by = if *controllers { "controller" } else { "agents" };
                toml += &format!("[[class]]\nname = 'c{index}'\nruns-on = '{by}'\n");
            }
            let plan = plan(&toml);
            match PlanSplit::of(&plan, 3) {
                Err(_) => prop_assert!(by.iter().all(|controllers| *controllers)),
                Ok(PlanSplit { agents, controller }) => {
                    let own = controller.as_ref().map_or(0, |own| own.plan.stop.requests.unwrap());
                    prop_assert_eq!(agents.plan.stop.requests.unwrap() + own, requests);
                    let mut all = agents.classes.clone();
                    all.extend(controller.iter().flat_map(|own| own.classes.iter()));
                    all.sort_unstable();
                    prop_assert_eq!(all, (0..by.len() as u16).collect::<Vec<_>>());
                    // Each class has its requests, on whichever host it runs.
                    for carried in [Some(&agents), controller.as_ref()].into_iter().flatten() {
                        let shards = crate::shard::shards(&carried.plan);
                        for (place, id) in carried.classes.iter().enumerate() {
                            let sum: u64 = shards.iter().filter_map(|shard| shard.classes[place].requests).sum();
                            prop_assert_eq!(sum, share_of(requests, u32::from(*id), by.len() as u32));
                        }
                    }
                }
            }
        }
    }

    /// The classes of the other part may send all of a command, or the only request.
    #[test]
    fn hosts_resolve_their_part_to_itself() {
        let agent = "server = 'a'\nagent = ['x']\nthreads = 1\n";
        let classes = "[[class]]\nname = 'load'\n[[class]]\nname = 'measure'\nruns-on = 'controller'\n";
        let command = "command = ['PING']\n";
        for toml in [
            format!("{agent}protocol = 'resp3'\n{classes}{command}"),
            format!(
                "{agent}requests = 1\n[[class]]\nname = 'measure'\nruns-on = 'controller'\n[[class]]\nname = 'load'"
            ),
        ] {
            let agents = PlanSplit::of(&plan(&toml), 1).unwrap().agents.plan;
            let host = Host::of(vec![0], 1);
            let spec = PlanSpec::from_toml(&agents.spec.to_toml()).unwrap();
            assert_eq!(resolve_part(&spec, &host).as_ref(), Ok(&agents), "{toml}");
            assert!(resolve(&spec, &host).is_err(), "a plan of its own is checked as a whole");
        }
    }

    #[test]
    fn the_controller_neither_polls_nor_preloads() {
        let plan = plan(
            "server = 'a'\nagent = ['x']\nthreads = 8\nconnections = 16\n[[class]]\nname = 'load'\n[[class]]\nname = 'measure'\n\
                         runs-on = 'controller'\nconnections = 2\n",
        );
        let shares = PlanSplit::of(&plan, 3).unwrap();
        assert_eq!((shares.agents.plan.threads, shares.agents.plan.preload), (8, true));
        let own = shares.controller.unwrap().plan;
        assert_eq!((own.threads, own.preload, own.server_stats, own.seed), (2, false, false, 10));
        assert_eq!(PlanSplit::of(&plan, 1).unwrap().controller.unwrap().plan.threads, 1);
    }

    #[test]
    fn samples_and_meters_stay_with_the_agents() {
        let plan = plan(
            "server = 'a'\nagent = ['x']\nthreads = 2\ncpus = '0-1'\nmeter = ['outstanding']\nsamples-max = 5\n[[class]]\nname = 'load'\n\
             [[class]]\nname = 'measure'\nruns-on = 'controller'\n",
        );
        let shares = PlanSplit::of(&plan, 1).unwrap();
        let agents = |shares: &PlanSplit| (shares.agents.plan.samples_max, shares.agents.plan.meters.len());
        assert_eq!(agents(&shares), (5, 1));
        assert_eq!(
            (&shares.agents.plan.cpus[..], &shares.controller.as_ref().unwrap().plan.cpus[..]),
            (&[][..], &[0, 1][..])
        );
        assert_eq!(agents(&shares.clone().without_samples_of_agents(true).unwrap()), (0, 1));
        let shares = shares.without_samples_of_agents(false).unwrap();
        assert_eq!((agents(&shares), shares.controller.unwrap().plan.samples_max), ((0, 0), 5));
    }
}
