//! Divides the plan of a run with agents into one plan for the agents and one for the controller.
//!
//! Invariant: what the plans schedule adds up to the plan, request by request.

use crate::host_role::HostRole;
use crate::op::ClassId;
use crate::plan::{Class, Plan};
use crate::shard::share_of;

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
    pub fn of(plan: &Plan, controller_threads: u32) -> Result<Self, String> {
        let agents = sub_plan(plan, HostRole::Agents)
            .ok_or_else(|| "--agent requires a class without runs-on = 'controller'".to_owned())?;
        let mut controller = sub_plan(plan, HostRole::Controller);
        if let Some(SubPlan { plan: own, .. }) = &mut controller {
            let connections = own.classes.iter().map(|class| class.connections).min().unwrap_or(1);
            let servers = own.server_count().max(1) as u32;
            own.threads = controller_threads.min(connections / servers).max(1);
            own.preload = false;
            // Its random numbers differ from those of every agent. Seeds have 53 bits.
            own.seed = (own.seed + 1) & ((1 << 53) - 1);
        }
        Ok(Self { agents, controller })
    }

    /// Single requests stay with the agents, and what is metered, too, unless that `is_metered`: only counts and histograms travel.
    pub fn without_samples_of_agents(mut self, is_metered: bool) -> Self {
        self.agents.plan.samples_max = 0;
        if !is_metered {
            self.agents.plan.meters = Vec::new();
        }
        self
    }
}

/// The classes of one host role as a plan, if there are any.
fn sub_plan(plan: &Plan, host_role: HostRole) -> Option<SubPlan> {
    let of_it = |class: &&Class| class.host_role == host_role;
    let classes: Vec<ClassId> =
        (0..).zip(&plan.classes).filter(|(_, class)| of_it(class)).map(|(id, _)| id).collect();
    if classes.is_empty() {
        return None;
    }
    let count = plan.classes.len() as u32;
    let mut own = plan.clone();
    own.classes = plan.classes.iter().filter(of_it).cloned().collect();
    own.stop.requests =
        plan.stop.requests.map(|total| classes.iter().map(|id| share_of(total, u32::from(*id), count)).sum());
    // The controller polls the servers and decides when the precision is reached.
    (own.server_stats, own.stop.until) = (false, None);
    if host_role == HostRole::Agents {
        // Agents pin their workers themselves.
        own.cpus = Vec::new();
    }
    own.agents = Vec::new();
    Some(SubPlan { plan: own, classes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{Host, resolve};
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
        assert_eq!(agents(&shares.clone().without_samples_of_agents(true)), (0, 1));
        let shares = shares.without_samples_of_agents(false);
        assert_eq!((agents(&shares), shares.controller.unwrap().plan.samples_max), ((0, 0), 5));
    }
}
