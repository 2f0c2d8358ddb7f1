//! The plan for the nodes of a cluster that are discovered.

use super::{PlanError, RUN, SERVERS_MAX};
use crate::choice::HostRole;
use crate::plan::{Class, Plan};
use crate::server::ServerAddress;
use crate::server_list::ServerList;
use crate::units::Count;

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
    use super::super::tests::resolved;
    use super::*;
    use crate::plan::Refill;

    #[test]
    fn a_cluster_is_redis_by_hosts() {
        let table = [
            ("server = 'a'", "--cluster requires --protocol resp2 or resp3"),
            ("protocol = 'resp2'", "--cluster requires --server, naming at least one node"),
            (
                "protocol = 'resp3'\nserver = 'unix:/a'",
                "--server unix:/a cannot be used with --cluster, whose nodes name each other by host and port",
            ),
            (
                "protocol = 'resp3'\nserver = ['a', 'b']\nplacement = 'ketama'",
                "--placement cannot be used with --cluster, which assigns keys to nodes itself",
            ),
            ("server = 'redis://a/3'", "--database cannot be used with --cluster, which has database 0 only"),
            (
                "protocol = 'resp3'\nserver = 'a'\nrefill = 'batch'",
                "--refill batch cannot be used with --cluster, where slots belong to no connection",
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
