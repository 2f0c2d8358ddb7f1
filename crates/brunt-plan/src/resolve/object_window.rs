//! Windows of objects and the clients that have them: the options that a class with a window can have.

use super::case::Case;
use super::{RUN, Resolved};
use crate::op::OpKind;
use crate::plan::{Class, Load, Plan, SessionScope};

/// Tolerance of an expiry check, on both sides.
const TTL_TOLERANCE_S: u32 = 5;
/// The option in messages.
const OPTION: &str = "popularity window";
const WITH_EXPIRE: &str = "popularity window with expire";
/// The options with which a client knows what it has written.
const IN_ORDER: &str = "--client-connections and --depth 1, so that a client knows its own writes";

/// Is there anything in the class, or beside it, that a window cannot do?
pub(super) fn check(case: &Case<'_>) -> Resolved {
    let Case { plan, class, context, .. } = case;
    let Some(window) = class.popularity.window() else { return Ok(()) };
    let is_supported = |kind: OpKind| matches!(kind, OpKind::Get | OpKind::Set | OpKind::Mget);
    let has_mget = class.mix.contains(OpKind::Mget);
    if !class.mix.weights.iter().all(|(kind, _)| is_supported(*kind))
        || class.mix.contains(OpKind::Get) && has_mget
    {
        let accepted = "set with get or mget for --popularity window, e.g. get=9,set=1";
        return Err(context.invalid("mix", &class.mix, accepted));
    }
    let has_whole_rate = matches!(&class.load, Load::Open { rate, .. } if rate.is_known());
    if has_mget && has_whole_rate {
        let other = "mget and --rate; use a closed loop or --call-rate, the rate of each client";
        return Err(context.conflicts(OPTION, other));
    }
    let has_prefix = |other: &&Class| other.keyspace.prefix == class.keyspace.prefix;
    if plan.classes.iter().filter(has_prefix).count() > 1 {
        return Err(context.requires(OPTION, "a --prefix that no other class has"));
    }
    if window.expire > 0.0 && class.ttl_s <= TTL_TOLERANCE_S {
        return Err(context.requires(WITH_EXPIRE, "--ttl above 5s, e.g. 60s"));
    }
    if window.expire > 0.0 && !is_in_order(class) {
        return Err(context.requires(WITH_EXPIRE, IN_ORDER));
    }
    Ok(())
}

/// Does a client know what it has written, because nothing of it overtakes anything else?
fn is_in_order(class: &Class) -> bool {
    class.sessions != SessionScope::Worker && class.depth == 1
}

/// Are gets checked only where that can be?
pub(super) fn check_verify(plan: &Plan) -> Resolved {
    let is_out_of_order = |class: &Class| class.popularity.window().is_some() && !is_in_order(class);
    match plan.classes.iter().any(is_out_of_order) {
        true => Err(RUN.requires("verify with --popularity window", IN_ORDER)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;
    use crate::plan::SessionScope;
    use crate::shard::shards;

    #[test]
    fn a_window_has_clients_keys_and_a_preset() {
        // (plan, clients, numbers, ids that preload stores)
        for (toml, clients, keys, preloaded) in [
            ("popularity = 'window:10k'\nthreads = 2", 2, 1 << 40, 0),
            ("popularity = 'window:10k'\nclient-connections = 4\nmix = 'get'", 4, 1 << 40, 40_000),
            ("popularity = 'window:10k'\nkey-form = 'hex8'\nclient-connections = 1", 16, 1 << 32, 0),
            ("popularity = 'window:10'\nprefix = 'w'\nkey-size = 8\nmix = 'set'", 3, 10_000_000, 0),
            (
                "popularity = 'window:1k'\nkey-form = 'memaslap'\nkey-size = 'ranges:16-90@0.5,91-250@0.5'",
                3,
                1 << 40,
                0,
            ),
        ] {
            let plan = resolved(toml).unwrap();
            let set = &plan.data_sets()[0];
            assert_eq!(set.windows.unwrap().clients, clients, "{toml}");
            assert_eq!((set.keyspace.keys, set.ids_preloaded()), (keys, preloaded), "{toml}");
        }
    }

    #[test]
    fn clients_are_not_split_between_workers() {
        let plan = resolved("connections = 30\nclient-connections = 6\nthreads = 3").unwrap();
        assert_eq!(plan.classes[0].sessions, SessionScope::Client { connections: 6 });
        let parts: Vec<_> =
            shards(&plan).into_iter().map(|shard| shard.classes[0].connections.clone()).collect();
        assert_eq!(parts, [0..12, 12..24, 24..30]);
        assert_eq!(plan.in_flight_slots(&plan.classes[0]), 5);
    }

    #[test]
    fn options_that_conflict_with_windows_are_refused() {
        for (toml, message) in [
            (
                "mix = 'get,delete'",
                "invalid value 'get=1,delete=1' for --mix: expected set with get or mget for --popularity window, e.g. get=9,set=1",
            ),
            (
                "mix = 'get,mget'",
                "invalid value 'get=1,mget=1' for --mix: expected set with get or mget for --popularity window, e.g. get=9,set=1",
            ),
            ("keys = 5", "--popularity window cannot be used with --keys: objects are numbered without end"),
            ("drift = '5/1s'", "--popularity window cannot be used with --drift"),
            (
                "noreply = true",
                "--popularity window cannot be used with --noreply: the objects of a window depend on the replies",
            ),
            (
                "on-miss = 'set'",
                "--popularity window cannot be used with --on-miss set: a window stores its objects itself",
            ),
            (
                "trace = 't'\ntrace-layout = 'words'",
                "--popularity window cannot be used with trace, which names the operations",
            ),
            (
                "verify = '5%'",
                "--verify with --popularity window requires --client-connections and --depth 1, so that a client knows its own writes",
            ),
            (
                "key-size = 1",
                "invalid value 'fixed:1' for --key-size: expected sizes from 3 (the prefix and the numbers of 320 objects) to 250",
            ),
            (
                "key-form = 'memaslap'\nkey-size = 'fb_key'",
                "invalid value 'fb_key@8..250' for --key-size: expected a size, uniform:MIN,MAX or ranges:MIN-MAX@SHARE,... with --key-form memaslap",
            ),
            (
                "key-form = 'memaslap'\nvalue-size = '2MiB'",
                "--value-size fixed:2097152 exceeds 1MiB: --key-form memaslap",
            ),
            (
                "mix = 'set,mget'\nrate = 5",
                "--popularity window cannot be used with mget and --rate; use a closed loop or --call-rate, the rate of each client",
            ),
            (
                "client-connections = 3",
                "invalid value '3' for --client-connections: expected a divisor of --connections, 16",
            ),
            (
                "client-connections = 0",
                "invalid value '0' for --client-connections: expected a divisor of --connections, 16",
            ),
            (
                "client-connections = 4\nrate = 5",
                "--client-connections cannot be used with --rate; use --call-rate, the rate of each client",
            ),
            (
                "client-connections = 4\nreconnect-every = '5s'",
                "--client-connections cannot be used with --reconnect-every",
            ),
            (
                "client-connections = 4\nthreads = 5",
                "invalid value '5' for --threads: expected 1 to 4: each worker needs a connection of every class",
            ),
            (
                "[[class]]\n[[class]]",
                "--popularity window (class 'class-1') requires a --prefix that no other class has",
            ),
        ] {
            let error = resolved(&format!("popularity = 'window:10'\n{toml}")).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
        for (toml, message) in [
            (
                "popularity = 'window:10,expire=0.1'\nttl = '5s'",
                "--popularity window with expire requires --ttl above 5s, e.g. 60s",
            ),
            (
                "popularity = 'window:16M'\nconnections = 10000",
                "--popularity window:16000000 exceeds 214748 objects in each of 10000 windows, for memory",
            ),
            (
                "popularity = 'window:16M'\nconnections = 10000\nclient-connections = 50",
                "--popularity window:16000000 exceeds 10737418 objects in each of 200 windows, for memory",
            ),
            ("key-form = 'memaslap'", "--key-form memaslap requires --popularity window:OBJECTS"),
        ] {
            let error = resolved(toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }
}
