//! The rules between options: plans that they refuse, each with its message, and plans that they accept.

use crate::plan::{MeterKind, SessionScope};
use crate::resolve::tests::resolved;
use crate::shard::shards;

#[test]
fn switches_that_are_off_require_nothing() {
    for toml in ["tls-insecure = false", "cluster = false", "trailing-blank = false", "noreply = false"] {
        assert!(resolved(&format!("server = 'a'\n{toml}")).is_ok(), "{toml}");
    }
}

#[test]
fn meters_of_timestamps_require_timestamps() {
    for name in MeterKind::OF_TIMESTAMPS.map(MeterKind::name) {
        let error = resolved(&format!("timestamps = 'off'\nmeter = ['{name}']")).unwrap_err();
        assert_eq!(error, format!("meter {name} cannot be used with timestamps off"));
    }
}

#[test]
fn hash_fields_require_redis() {
    let plan = resolved("protocol = 'resp2'\nserver = 'a'\nhash-field = 4").unwrap();
    assert_eq!((plan.hash_field, plan.server_stats), (Some(4), false));
}

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
    let parts: Vec<_> = shards(&plan).into_iter().map(|shard| shard.classes[0].connections.clone()).collect();
    assert_eq!(parts, [0..12, 12..24, 24..30]);
    assert_eq!(plan.in_flight_slots(&plan.classes[0]), 5);
}
