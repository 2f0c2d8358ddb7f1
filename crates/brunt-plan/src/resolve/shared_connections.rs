//! Classes that use the connections of another class.
//!
//! Invariant: a class that shares has as many connections as their owner, as deep, to the same servers, and options of
//! connections belong to the owner alone.

use super::{ErrorContext, Resolved};
use crate::plan::{Class, SessionScope};
use crate::spec::{ClassSpec, PlanSpec, RunSpec};

const OPTION: &str = "connections-of";

/// Gives classes that share connections what their owners have.
pub(super) fn assign_owners(run: &RunSpec, spec: &PlanSpec, classes: &mut [Class]) -> Resolved {
    let connection_owner = |class: &ClassSpec| class.connections_of.clone();
    let names: Vec<Option<String>> = spec.classes.iter().map(connection_owner).collect();
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let own_name = classes[index].name.clone();
        let context = ErrorContext { class: Some(&own_name), route: None };
        let conflict = |other: String| Err(context.conflicts(OPTION, other));
        let is_it = |(at, class): &(usize, &Class)| class.name == *name && *at != index;
        let Some((at, owner)) = classes.iter().enumerate().find(is_it) else {
            return Err(context.invalid(OPTION, name, "the name of another class"));
        };
        if names[at].is_some() {
            return Err(context.invalid(OPTION, name, "a class with its own connections"));
        }
        if let Some(option) = spec.classes[index].first_given(&OF_CONNECTIONS) {
            return conflict(format!("{option}: connections are those of class '{name}'"));
        }
        if let Some(obstacle) = obstacle(run, owner) {
            return conflict(format!("{obstacle} of class '{name}'"));
        }
        if classes[index].replicas > 1 || classes[index].sessions != SessionScope::Worker {
            return conflict("replicas, call-rate or client-connections".to_owned());
        }
        let owner = owner.clone();
        let class = &mut classes[index];
        class.connections_of = Some(owner.name);
        (class.connections, class.depth, class.own_destination) =
            (owner.connections, owner.depth, owner.own_destination);
        (class.reconnect, class.host_role) = (owner.reconnect, owner.host_role);
        class.lifetime = owner.lifetime;
    }
    Ok(())
}

/// The options of connections, which belong to their owner.
const OF_CONNECTIONS: [&str; 13] = [
    "connections",
    "depth",
    "server",
    "protocol",
    "transport",
    "route",
    "reconnect",
    "runs-on",
    "connect-rate",
    "connect-arrival",
    "calls-per-connection",
    "connections-total",
    "reconnect-every",
];

/// Why the connections of a class cannot be shared.
fn obstacle(run: &RunSpec, owner: &Class) -> Option<&'static str> {
    let obstacles = [
        ("call-rate or client-connections", owner.sessions != SessionScope::Worker),
        ("replicas", owner.replicas > 1),
        ("routes", !owner.routes.is_empty()),
        (
            "connect-rate, calls-per-connection, connections-total or reconnect-every",
            owner.lifetime.is_planned(),
        ),
        ("a cluster", run.cluster == Some(true)),
    ];
    obstacles.into_iter().find(|(_, is_so)| *is_so).map(|(obstacle, _)| obstacle)
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;

    const OWNER: &str = "[[class]]\nname = 'one'\nconnections = 6\ndepth = 3\n";

    #[test]
    fn classes_can_share_connections() {
        let toml = format!(
            "server = ['a', 'b']\n[[class]]\nname = 'two'\nrate = 10\nconnections-of = 'one'\n{OWNER}"
        );
        let plan = resolved(&toml).unwrap();
        let [two, one] = &plan.classes[..] else { panic!("two classes") };
        assert_eq!((two.connections, two.depth, two.own_connections()), (6, 3, 0));
        assert_eq!((one.own_connections(), plan.connection_owner(0), plan.connection_owner(1)), (6, 1, 1));
        assert!(plan.shares_connections(0) && plan.shares_connections(1));
        assert!(!resolved(OWNER).unwrap().shares_connections(0));
        // What is printed as a plan file is the same plan.
        let again = crate::spec::PlanSpec::from(&plan).to_toml();
        assert_eq!(resolved(&again), Ok(plan));
    }

    #[test]
    fn unshareable_connections_are_refused() {
        let two = "[[class]]\nname = 'two'\nconnections-of = ";
        let table = [
            (
                "",
                "'three'",
                "invalid value 'three' for connections-of (class 'two'): expected the name of another class",
            ),
            (
                "",
                "'two'",
                "invalid value 'two' for connections-of (class 'two'): expected the name of another class",
            ),
            (
                "",
                "'one'\nconnections = 3",
                "connections-of (class 'two') cannot be used with connections: connections are those of class 'one'",
            ),
            (
                "",
                "'one'\ncall-rate = 3",
                "connections-of (class 'two') cannot be used with replicas, call-rate or client-connections",
            ),
            (
                "calls-per-connection = 9\n",
                "'one'",
                "connections-of (class 'two') cannot be used with connect-rate, calls-per-connection, connections-total or reconnect-every of class 'one'",
            ),
            (
                "call-rate = 9\n",
                "'one'",
                "connections-of (class 'two') cannot be used with call-rate or client-connections of class 'one'",
            ),
            (
                "[[class]]\nname = 'three'\nconnections-of = 'one'\n",
                "'three'",
                "invalid value 'three' for connections-of (class 'two'): expected a class with its own connections",
            ),
        ];
        for (more, name, expected) in table {
            let message = resolved(&format!("{OWNER}{more}{two}{name}")).unwrap_err();
            assert_eq!(message, expected);
        }
    }
}
