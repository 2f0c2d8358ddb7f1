//! Clusters: what a plan for one may say, and the plan for the nodes that it turns out to have.
//!
//! Not who has which slot: that changes while a run goes on, and a plan does not.

use super::{ErrorContext, PlanError, SERVERS_MAX};
use crate::host_role::HostRole;
use crate::plan::{Class, Plan, Protocol, Refill, Target};
use crate::server::ServerAddress;
use crate::spec::RunSpec;
use crate::units::Count;
use crate::url::NamedServer;

/// Is the target a cluster?
pub(super) fn resolve(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    protocol: Protocol,
) -> Result<bool, PlanError> {
    if !run.cluster.unwrap_or(false) {
        return Ok(false);
    }
    let refuse = |accepted: &str| Err(context.flag_error("cluster", accepted));
    if !protocol.is_resp() {
        return refuse("--cluster together with --protocol resp2 or resp3");
    }
    let servers = run.server.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
    if servers.is_empty() {
        return refuse("--cluster together with a --server that is one of its nodes");
    }
    if let Some(path) = servers.iter().filter_map(NamedServer::address).find(|server| server.is_unix()) {
        let accepted = "hosts together with --cluster, whose nodes name each other by host and port";
        return Err(context.error("server", path, accepted));
    }
    if let Some(placement) = run.placement {
        let accepted = "no --placement together with --cluster, which says itself where keys live";
        return Err(context.error("placement", placement, accepted));
    }
    if let Some(refill @ Refill::Batch) = run.refill {
        let accepted = "eager together with --cluster, where a slot belongs to no connection whose pipeline could be awaited";
        return Err(context.error("refill", refill, accepted));
    }
    if let Some(database @ Count(1..)) = run.database {
        return Err(context.error("database", database, "0 together with --cluster, which has no other"));
    }
    Ok(true)
}

/// The plan that runs when these, at least one, turn out to be the nodes of its cluster. Workers that would not have a
/// connection of every class to every node are left out; those of agents need them for their own classes, and each agent has one.
///
/// # Errors
/// There are too few connections for a single worker, or too many nodes.
///
/// # Panics
/// If there are no nodes.
pub fn of_nodes(plan: &Plan, nodes: Vec<ServerAddress>) -> Result<Plan, PlanError> {
    assert!(!nodes.is_empty(), "somebody has answered");
    let context = ErrorContext { class: None };
    if nodes.len() > SERVERS_MAX {
        let accepted =
            format!("a cluster of up to {SERVERS_MAX} nodes that have slots; this one has {}", nodes.len());
        return Err(context.flag_error("cluster", accepted));
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
        let accepted = format!("at least {}, one for each node of the cluster{of_each}", count * workers);
        Err(context.error("connections", fewest, accepted))
    };
    let most = match plan.agents.len() as u32 {
        0 => fewest(1, None)? / count,
        agents => fewest(1, Some(false)).and_then(|_| fewest(agents, Some(true)))? / count,
    };
    Ok(Plan { target: Target::Servers(nodes), threads: plan.threads.min(most), ..plan.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;
    use super::*;

    #[test]
    fn a_cluster_is_redis_by_hosts() {
        let table = [
            (
                "server = 'a'",
                "--cluster was given; accepted: --cluster together with --protocol resp2 or resp3",
            ),
            (
                "protocol = 'resp2'",
                "--cluster was given; accepted: --cluster together with a --server that is one of its nodes",
            ),
            (
                "protocol = 'resp3'\nserver = 'unix:/a'",
                "--server: 'unix:/a' was given; accepted: hosts together with --cluster, whose nodes name each other by \
                 host and port",
            ),
            (
                "protocol = 'resp3'\nserver = ['a', 'b']\nplacement = 'ketama'",
                "--placement: 'ketama' was given; accepted: no --placement together with --cluster, which says itself where \
                 keys live",
            ),
            (
                "server = 'redis://a/3'",
                "--database: '3' was given; accepted: 0 together with --cluster, which has no other",
            ),
            (
                "protocol = 'resp3'\nserver = 'a'\nrefill = 'batch'",
                "--refill: 'batch' was given; accepted: eager together with --cluster, where a slot belongs to no connection \
                 whose pipeline could be awaited",
            ),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(&format!("cluster = true\n{toml}")).unwrap_err(), message, "{toml}");
        }
        let peak = resolved("cluster = true\nserver = 'redis://a'\nprofile = 'peak'").unwrap();
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
        let two = of_nodes(&plan, nodes(2)).unwrap();
        assert_eq!((two.threads, two.addresses()), (1, nodes(2)));
        assert_eq!(of_nodes(&plan, nodes(1)).unwrap().threads, 2);
        assert_eq!(
            of_nodes(&plan, nodes(3)).unwrap_err().to_string(),
            "--connections: '2' was given; accepted: at least 3, one for each node of the cluster"
        );
        let agents = resolved(&format!(
            "{cluster}agent = ['x', 'y']\nconnections = 9\nthreads = 4\nmeasure-connections = 3"
        ))
        .unwrap();
        assert_eq!(of_nodes(&agents, nodes(3)).unwrap().threads, 3);
        assert_eq!(
            of_nodes(&agents, nodes(4)).unwrap_err().to_string(),
            "--connections: '3' was given; accepted: at least 4, one for each node of the cluster"
        );
        let agents = resolved(&format!("{cluster}agent = ['x', 'y']\nconnections = 5\nthreads = 4")).unwrap();
        assert_eq!(of_nodes(&agents, nodes(2)).unwrap().threads, 2);
        assert_eq!(
            of_nodes(&agents, nodes(3)).unwrap_err().to_string(),
            "--connections: '5' was given; accepted: at least 6, one for each node of the cluster and agent"
        );
        assert!(of_nodes(&plan, nodes(1025)).unwrap_err().to_string().contains("up to 1024 nodes"));
    }
}
