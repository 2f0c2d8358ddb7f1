//! What a Redis says in its own words, and our counts beside its counters.

use super::*;

/// Rows as INFO has them: a line each, `NAME:VALUE`, or the head of a section.
fn said(at_ns: u64, text: &str) -> Snapshot {
    let rows = text.lines().map(|line| line.trim().split_once(':').unwrap_or((line.trim(), "")));
    snapshot(at_ns, &rows.collect::<Vec<_>>())
}

const BEFORE: &str = "redis_version:7.0.15
    process_id:4711
    uptime_in_seconds:10
    used_memory:1000
    maxmemory:0
    keyspace_hits:100
    keyspace_misses:10
    total_commands_processed:500
    evicted_keys:3
    used_cpu_sys:0.5
    used_cpu_user:1.25
    # Commandstats
    cmdstat_get:calls=90,usec=8,usec_per_call=8.00,rejected_calls=7,failed_calls=1
    cmdstat_client|setname:calls=5,usec=8
    # Keyspace
    db0:keys=7,expires=2,avg_ttl=0
    db12:keys=5,expires=0,avg_ttl=0";

#[test]
fn rows_of_info_are_parsed() {
    let snapshot = said(S, BEFORE);
    let of = |statistic| snapshot.get(statistic);
    assert_eq!(
        [of(ServerStat::CallsGet), of(ServerStat::CallsMget)],
        [Some(90), Some(0)],
        "never called is 0"
    );
    assert_eq!(of(ServerStat::Keys), Some(12), "of all databases");
    assert_eq!((snapshot.version.as_deref(), snapshot.cpu_ns()), (Some("7.0.15"), Some(1_750_000_000)));
    assert_eq!((snapshot.hits(), snapshot.misses(), snapshot.requests()), (Some(100), Some(10), Some(500)));
    assert_eq!((snapshot.items(), snapshot.bytes(), snapshot.evictions()), (Some(12), Some(1_000), Some(3)));
    assert_eq!(snapshot.bytes_max(), None, "0 is no bound");
    assert_eq!(said(S, "maxmemory:5").bytes_max(), Some(5));
    // Without the section nothing is known, and with it an empty server has none.
    let silent = said(S, "keyspace_hits:1");
    assert_eq!((silent.get(ServerStat::CallsGet), silent.items()), (None, None));
    assert_eq!(said(S, "# Keyspace").items(), Some(0));
    for row in ["db:keys=5", "dbx:keys=5", "db0:expires=5", "db0:keys=x"] {
        assert_eq!(said(S, row).items(), None, "{row}");
    }
    let valkey = "redis_version:7.2.4\nserver_name:valkey\nvalkey_version:8.0.1";
    assert_eq!(said(S, valkey).version.as_deref(), Some("valkey 8.0.1"));
}

#[test]
fn spans_and_restarts_are_recognized() {
    let later = BEFORE
        .replace("hits:100", "hits:190")
        .replace("misses:10", "misses:20")
        .replace("processed:500", "processed:600")
        .replace("user:1.25", "user:1.5");
    let mut record = ServerRecord::default();
    record.push(said(S, BEFORE));
    record.push(said(2 * S, &later));
    let span = record.spans().next().unwrap();
    assert_eq!((span.requests, span.hit_ratio(), span.evictions), (Some(100), Some(0.9), Some(0)));
    assert_eq!(span.cpu_ns_per_request(), Some(2_500_000.0));
    assert_eq!((span.items, span.bytes, span.bytes_max), (Some(12), Some(1_000), None));
    for (from, to, expected) in [
        ("process_id:4711", "process_id:4712", Some(CounterReset::Restarted)),
        ("seconds:10", "seconds:9", Some(CounterReset::Restarted)),
        ("hits:190", "hits:99", Some(CounterReset::Reset)),
        ("calls=90", "calls=89", Some(CounterReset::Reset)),
        ("keys=7", "keys=1", None),
        ("user:1.5", "user:1.0", None),
    ] {
        let mut record = ServerRecord::default();
        record.push(said(S, BEFORE));
        record.push(said(2 * S, &later.replace(from, to)));
        assert_eq!(record.counter_reset(), expected, "{to}");
    }
    // Two who ask one server count each other's questions.
    let at_end = |text: &str| {
        let mut record = ServerRecord::default();
        record.push(said(S, text));
        record
    };
    let asked_later = later.replace("processed:600", "processed:601").replace("seconds:10", "seconds:11");
    assert!(at_end(&later).is_same_server(&at_end(&asked_later)));
    assert!(!at_end(&later).is_same_server(&at_end(&asked_later.replace("calls=90", "calls=91"))));
}

const REDIS: &str = "protocol = 'resp3'\nserver = 'a'";

fn request_counts() -> [CountEntry; 8] {
    use OutcomeClass::{Done, Hit, Miss, Rejected};
    let mut mget = entry(OpKind::Mget, &[(Hit, ReplyKind::Value, 3)], [10, 4]);
    mget.counts.requests.wire_requests = 3;
    [
        entry(OpKind::Get, &[(Hit, ReplyKind::Value, 7), (Miss, ReplyKind::NotFound, 0)], [1, 1]),
        entry(OpKind::Get, &[(Miss, ReplyKind::NotFound, 2)], [1, 0]),
        mget,
        entry(OpKind::Set, &[(Done, ReplyKind::Stored, 5)], [1, 0]),
        entry(OpKind::Add, &[(Rejected, ReplyKind::NotStored, 6)], [1, 0]),
        entry(OpKind::Incr, &[(Done, ReplyKind::Number, 4)], [1, 0]),
        entry(OpKind::Delete, &[(Done, ReplyKind::Deleted, 8), (Rejected, ReplyKind::NotFound, 9)], [1, 0]),
        entry(OpKind::Touch, &[(Done, ReplyKind::Touched, 3), (Rejected, ReplyKind::NotFound, 4)], [1, 0]),
    ]
}

#[test]
fn calls_and_keys_match_the_client() {
    let expected = "keyspace_hits 22-22, keyspace_misses 24-24, cmdstat_get 9-9, cmdstat_mget 3-3, cmdstat_set 11-11, \
                    cmdstat_incr 4-4, cmdstat_del 17-17, cmdstat_touch 7-7";
    assert_eq!(ranges(REDIS, &request_counts()), expected);
    // With a time to live a touch is another command, which reads nothing.
    let with_ttl = expected
        .replace("hits 22-22", "hits 19-19")
        .replace("misses 24-24", "misses 20-20")
        .replace("touch", "expire");
    assert_eq!(ranges(&format!("{REDIS}\nttl = '1h'"), &request_counts()), with_ttl);
}

/// What a user's own commands are counted as is not ours to compare.
#[test]
fn custom_commands_are_not_compared() {
    let ranges = |command: &str| {
        ranges(&format!("{REDIS}\nmix = 'get=1,raw=1'\ncommand = ['{command}']"), &request_counts())
    };
    let rest = "cmdstat_get 9-9, cmdstat_mget 3-3, cmdstat_set 11-11, cmdstat_incr 4-4, cmdstat_del 17-17, cmdstat_touch 7-7";
    assert_eq!(ranges("HSET {key} f {value}"), rest);
    assert_eq!(ranges(r#""Get" {key}"#), rest.replace("cmdstat_get 9-9, ", ""));
    for script in ["EVALSHA abc 1 {key}", "fcall f 1 {key}"] {
        assert_eq!(ranges(script), "");
    }
}

#[test]
fn unanswered_requests_make_a_range() {
    use OutcomeClass::{Error, Hit, Lost};
    let mut mget = entry(OpKind::Mget, &[(Hit, ReplyKind::Value, 2), (Lost, ReplyKind::None, 1)], [4, 4]);
    mget.counts.requests.wire_requests = 5;
    let get = entry(OpKind::Get, &[(Hit, ReplyKind::Value, 7), (Error, ReplyKind::ServerError, 2)], [1, 1]);
    let expected = "keyspace_hits 15-21, keyspace_misses 0-6, cmdstat_get 7-9, cmdstat_mget 2-5";
    assert_eq!(ranges(&format!("{REDIS}\nmix = 'mget'\nmultiget = 4"), &[mget, get]), expected);
    // One that was never sent whole may have reached one of two servers.
    mget.counts.requests.unsent = 1;
    let two = "protocol = 'resp2'\nserver = ['a', 'b']\nmix = 'mget'\nmultiget = 4";
    assert_eq!(ranges(two, &[mget]), "keyspace_hits 8-16, keyspace_misses 0-8, cmdstat_mget 2-9");
}
