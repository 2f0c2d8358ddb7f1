//! The rules between options: plans that they refuse, each with its message, and plans that they accept.

use crate::plan::{MeterKind, SessionScope};
use crate::resolve::tests::{cases, check_refused, resolved};
use crate::shard::shards;

#[test]
fn contradictions_are_refused() {
    check_refused(
        r"
        server = ['a', 'unix:/b']
            => invalid value 'unix:/b' for --server: expected only paths or only hosts: all servers share one transport
        transport = 'unix' => transport unix requires --server unix:PATH
        transport = 'tcp'\nserver = 'unix:/b' => invalid value 'tcp' for transport: expected unix with --server unix:/b
        timestamps = 'kernel'\nserver = 'unix:/b' => timestamps kernel cannot be used with transport unix
        timestamps = 'kernel'\nserver = 'a'\ntransport = 'tls' => timestamps kernel cannot be used with transport tls
        transport = 'tls' => transport tls requires --server: the reference server has no TLS
        server = 'unix:/a'\ntransport = 'tls' => invalid value 'tls' for transport: expected unix with --server unix:/a
        server = 'unix:/b'\nlinger = '0s' => linger requires transport tcp or tls
        linger = '1500ms' => invalid value '1500ms' for linger: expected whole seconds up to 65535
        linger = '70000s' => invalid value '70000s' for linger: expected whole seconds up to 65535
        send-buffer = 0 => invalid value '0' for send-buffer: expected 1 to 1073741823 bytes
        receive-buffer = '2G' => invalid value '2000000000' for receive-buffer: expected 1 to 1073741823 bytes
        server = 'a'\ntls-insecure = true => --tls-insecure requires transport tls
        server = 'a'\ntls-server-name = 'b' => --tls-server-name requires transport tls
        server = 'a'\ntransport = 'tls'\ntls-ca = 'f'\ntls-insecure = true => --tls-ca cannot be used with --tls-insecure
        server = 'a'\ntransport = 'tls'\ntls-cert = 'f' => --tls-cert requires --tls-key
        server = 'a'\ntransport = 'tls'\ntls-key = 'f' => --tls-key requires --tls-cert
        server = 'a'\nmeter = ['handshake-time'] => meter handshake-time requires transport tls
    ",
    );
}

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
    let of_redis = "protocol = 'resp3'\nserver = 'a'\nhash-field = ";
    for (toml, message) in [
        ("hash-field = 4".to_owned(), "hash-field requires --protocol resp2 or resp3"),
        (format!("{of_redis}0"), "invalid value '0' for hash-field: expected an integer from 1 to 249"),
        (
            format!("{of_redis}4\ncluster = true"),
            "hash-field cannot be used with --cluster, which places keys by all of their bytes",
        ),
        (
            format!("{of_redis}4\nttl = '5s'"),
            "hash-field cannot be used with --ttl: hashes expire as a whole",
        ),
        (
            format!("{of_redis}4\nmix = 'get,incr'"),
            "invalid value 'get=1,incr=1' for --mix: expected get, set and delete only with hash-field",
        ),
        (
            format!("{of_redis}4\nserver-stats = true"),
            "server-stats cannot be used with hash-field: Redis counts hashes, brunt counts keys",
        ),
    ] {
        let error = resolved(&toml).unwrap_err();
        assert!(error.starts_with(message), "{toml}: {error}");
    }
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

#[test]
fn options_that_conflict_with_windows_are_refused() {
    for [toml, message] in cases(
        r"
        mix = 'get,delete'
            => invalid value 'get=1,delete=1' for --mix: expected set with get or mget for --popularity window, e.g. get=9,set=1
        mix = 'get,mget'
            => invalid value 'get=1,mget=1' for --mix: expected set with get or mget for --popularity window, e.g. get=9,set=1
        keys = 5 => --popularity window cannot be used with --keys: objects are numbered without end
        drift = '5/1s' => --popularity window cannot be used with --drift
        noreply = true => --popularity window cannot be used with --noreply: the objects of a window depend on the replies
        on-miss = 'set' => --popularity window cannot be used with --on-miss set: a window stores its objects itself
        trace = 't'\ntrace-layout = 'words' => --popularity window cannot be used with trace, which names the operations
        verify = '5%'
            => --verify with --popularity window requires client-connections and --depth 1, so that a client knows its own writes
        key-size = 1
            => invalid value 'fixed:1' for --key-size: expected sizes from 3 (the prefix and the numbers of 320 objects) to 250
        key-form = 'memaslap'\nkey-size = 'fb_key'
            => invalid value 'fb_key@14..250' for --key-size: expected a size, uniform:MIN,MAX or ranges:MIN-MAX@SHARE,... with key-form memaslap
        key-form = 'memaslap'\nvalue-size = '2MiB' => --value-size fixed:2097152 exceeds 1MiB: key-form memaslap
        mix = 'set,mget'\nrate = 5
            => --popularity window cannot be used with mget and --rate; use a closed loop or call-rate, the rate of each client
        client-connections = 3 => invalid value '3' for client-connections: expected a divisor of --connections, 16
        client-connections = 0 => invalid value '0' for client-connections: expected a divisor of --connections, 16
        client-connections = 4\nrate = 5 => client-connections cannot be used with --rate; use call-rate, the rate of each client
        client-connections = 4\nreconnect-every = '5s' => client-connections cannot be used with --reconnect-every
        client-connections = 4\nthreads = 5
            => invalid value '5' for --threads: expected 1 to 4: each worker needs a connection of every class
        [[class]]\n[[class]] => --popularity window (class 'class-1') requires a --prefix that no other class has
    ",
    ) {
        let error = resolved(&format!("popularity = 'window:10'\n{toml}")).unwrap_err();
        assert!(error.starts_with(message), "{toml}: {error}");
    }
    for [toml, message] in cases(
        r"
        popularity = 'window:10,expire=0.1'\nttl = '5s' => --popularity window with expire requires --ttl above 5s, e.g. 60s
        popularity = 'window:16M'\nconnections = 10000
            => --popularity window:16000000 exceeds 214748 objects in each of 10000 windows, for memory
        popularity = 'window:16M'\nconnections = 10000\nclient-connections = 50
            => --popularity window:16000000 exceeds 10737418 objects in each of 200 windows, for memory
        key-form = 'memaslap' => key-form memaslap requires --popularity window:OBJECTS
    ",
    ) {
        let error = resolved(toml).unwrap_err();
        assert!(error.starts_with(message), "{toml}: {error}");
    }
}
