//! Divides the plan of a run with agents into one plan for the agents and one for the controller.
//!
//! Invariant: what the plans schedule adds up to the plan, request by request.

use crate::choice::HostRole;
use crate::op::ClassId;
use crate::plan::{Class, Plan};
use crate::resolve::PlanError;
use crate::shard::share_of;
use crate::spec::{PlanSpec, RunSpec};
use crate::units::Count;

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
            run.preload = Some(false);
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
        (run.server_stats, run.until) = (Some(false), None);
        run.time = run.max_time.take().or(run.time);
        run.agent = None;
        change(run);
    })?;
    Ok(Some(SubPlan { plan: own, classes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{Host, resolve, resolve_part};
    use crate::spec::PlanSpec;
    use proptest::prelude::*;

    fn plan(toml: &str) -> Plan {
        let spec = PlanSpec::from_toml(toml).unwrap();
        resolve(&spec, &Host { allowed_cpus: vec![0, 1], random_seed: 9 }).unwrap()
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
            let host = Host { allowed_cpus: vec![0], random_seed: 1 };
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
