//! Classes that use the connections of another class.
//!
//! Invariant: a class that shares has as many connections as their owner, as deep, to the same servers, and options of
//! connections belong to the owner alone.

use super::class::OF_CONNECTIONS;
use super::{ErrorContext, Resolved};
use crate::plan::{Class, Plan, SessionScope};
use crate::spec::PlanSpec;

const OPTION: &str = "connections-of";

/// Gives classes that share connections what their owners have.
pub(super) fn assign_owners(spec: &PlanSpec, classes: &mut [Class]) -> Resolved {
    for (index, own) in spec.classes.iter().enumerate() {
        let Some(name) = &own.connections_of else { continue };
        let is_it = |(at, class): &(usize, &Class)| class.name == *name && *at != index;
        let accepted = match classes.iter().enumerate().find(is_it) {
            None => "the name of another class",
            Some((at, _)) if spec.classes[at].connections_of.is_some() => "a class with its own connections",
            Some((_, owner)) => {
                let owner = owner.clone();
                let class = &mut classes[index];
                class.connections_of = Some(owner.name);
                (class.connections, class.depth, class.own_destination) =
                    (owner.connections, owner.depth, owner.own_destination);
                (class.reconnect, class.host_role) = (owner.reconnect, owner.host_role);
                class.lifetime = owner.lifetime;
                continue;
            }
        };
        let context = ErrorContext { class: Some(&classes[index].name), route: None };
        return Err(context.invalid(OPTION, name, accepted));
    }
    Ok(())
}

/// Can this class use the connections of another?
pub(super) fn check(plan: &Plan, index: usize) -> Resolved {
    let class = &plan.classes[index];
    let Some(name) = &class.connections_of else { return Ok(()) };
    let owner = &plan.classes[plan.connection_owner(index)];
    let context = ErrorContext { class: Some(&class.name), route: None };
    let given = plan.spec.classes[index].given();
    if let Some(option) = OF_CONNECTIONS.split(", ").find(|option| given.iter().any(|name| name == option)) {
        return Err(context.conflicts(OPTION, format!("{option}: connections are those of class '{name}'")));
    }
    let obstacles = [
        ("call-rate or client-connections", owner.sessions != SessionScope::Worker),
        ("replicas", owner.replicas > 1),
        ("routes", !owner.routes.is_empty()),
        (
            "connect-rate, calls-per-connection, connections-total or reconnect-every",
            owner.lifetime.is_planned(),
        ),
        ("a cluster", plan.is_cluster),
    ];
    let of_owner = obstacles.map(|(obstacle, is_there)| (format!("{obstacle} of class '{name}'"), is_there));
    context.excludes(OPTION, &of_owner)?;
    let has_own = class.replicas > 1 || class.sessions != SessionScope::Worker;
    context.excludes(OPTION, &[("replicas, call-rate or client-connections", has_own)])
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
        let again = plan.spec.to_toml();
        assert_eq!(resolved(&again), Ok(plan));
    }

    /// Each connection of the owner has a window of its own.
    #[test]
    fn windows_are_counted_by_connections_of_the_owner() {
        let owner = "[[class]]\nname = 'one'\nconnections = 10000\n";
        let two =
            "[[class]]\nname = 'two'\nprefix = 'w'\nconnections-of = 'one'\npopularity = 'window:16M'\n";
        let expected = "--popularity window:16000000 (class 'two') exceeds 214748 objects in each of 10000 windows, for memory";
        for toml in [format!("{owner}{two}"), format!("{two}{owner}")] {
            assert_eq!(resolved(&toml).unwrap_err(), expected);
        }
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
