//! Every operation against a real memcached, in each of its dialects: what each came to is what the server counted.

use crate::experiments::is_full;
use crate::measured::Measured;
use crate::server::{Server, ended};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

pub(crate) const DIALECTS: [&str; 3] = ["memcached-text", "memcached-meta", "memcached-binary"];

/// All thirteen kinds, so weighted that every outcome of every kind is met.
const EVERY_KIND: &str =
    "get=20,gets=8,mget=4,set=8,add=4,replace=4,append=2,prepend=2,cas=6,incr=4,decr=4,delete=3,touch=4";

/// So many operations of a mix that meets every outcome; each was answered, and no reply was misunderstood.
pub(crate) fn mixed(server: &Server, protocol: &str, requests: u64, flags: &str) -> Measured {
    let count = requests.to_string();
    let shape = format!("--protocol {protocol} -n {count} --warmup 0s -c 16 -T 2 --depth 8");
    let data = "--popularity zipf:0.99 --keys 20000 --value-size uniform:20,400 --seed 42";
    let measured = Measured::run(server, &format!("{shape} {data} {flags}"));
    measured.check_exit();
    let ended = ["scheduled", "completed"].map(|key| measured.requests(key));
    assert_eq!(ended, [requests; 2]);
    let events = ["unmatched_replies", "pushes"].map(|key| measured.count(&format!("events.{key}")));
    assert_eq!(events, [0; 2]);
    for wrong in ["first_malformed", "first_error"] {
        assert!(measured.json["events"][wrong].is_null());
    }
    assert_eq!(measured.json["events"]["error_replies"], json!({}));
    measured
}

/// As many as it takes to meet every outcome, or a million: hits, misses and refusals of every kind equal the server's own statistics,
/// and so do all bytes.
///
/// memcached counts a store, of whatever kind, once it has taken in the value, stored or not; a retrieval by its keys.
#[test]
fn mixed_operations_are_counted_alike() {
    for dialect in DIALECTS {
        let Some(server) = Server::memcached("-m 512") else { return };
        let (before, told_bytes) = server.statistics_and_len();
        let requests = if is_full() { 1_000_000 } else { 50_000 };
        // The bytes of a question for the statistics would be among those that are compared.
        let flags = format!("--mix {EVERY_KIND} --set server-stats=false");
        let measured = mixed(&server, dialect, requests, &flags);
        let after = server.statistics();
        let reply =
            |op: &str, reply: &str| measured.count_or_0(&format!("ops.{op}.counts.requests.replies.{reply}"));
        let sent = |op: &str| measured.over_phases(&format!("ops.{op}"));
        let stores = ["set", "add", "replace", "append", "prepend", "cas"].map(sent).iter().sum();
        // A touch of the meta protocol is a retrieval as long as it finds nothing.
        let (touched, untouched) = (reply("touch", "touched"), reply("touch", "not_found"));
        let (as_touch, as_get) = if dialect == "memcached-meta" { (0, untouched) } else { (untouched, 0) };
        // Each connection begins with a NOOP, 24 bytes like its reply, before the first phase.
        let noop_bytes = if dialect == "memcached-binary" { 24 } else { 0 };
        let setup_bytes = noop_bytes * measured.connections("established");
        // What the server counts → what we say.
        let table = [
            ("cmd_get", measured.over_phases("keys.requested") + as_get),
            ("get_hits", measured.over_phases("keys.hit")),
            ("get_misses", measured.over_phases("keys.miss") + as_get),
            ("cmd_set", stores),
            ("cas_hits", reply("cas", "stored")),
            ("cas_badval", reply("cas", "exists")),
            ("cas_misses", reply("cas", "not_found")),
            ("incr_hits", reply("incr", "number")),
            ("incr_misses", reply("incr", "not_found")),
            ("decr_hits", reply("decr", "number")),
            ("decr_misses", reply("decr", "not_found")),
            ("delete_hits", reply("delete", "deleted")),
            ("delete_misses", reply("delete", "not_found")),
            ("cmd_touch", touched + as_touch),
            ("touch_hits", touched),
            ("touch_misses", as_touch),
            // Each question for the statistics is 7 bytes, and the first answer went out behind what it says.
            ("bytes_read", measured.over_phases("bytes.tx") + setup_bytes + 7),
            ("bytes_written", measured.over_phases("bytes.rx") + setup_bytes + told_bytes),
        ];
        for (name, ours) in table {
            assert_eq!(after[name] - before[name], ours, "{dialect} {name}");
        }
        // Nothing above holds because nothing happened. Only counters are never missing: no operation deletes them.
        let of_meta = dialect == "memcached-meta";
        let unmet = |name: &str| name == "touch_misses" && of_meta || name.ends_with("cr_misses");
        table.iter().for_each(|(name, ours)| assert_eq!(*ours == 0, unmet(name), "{dialect} {name}"));
        for op in ["add", "replace", "append"] {
            assert!(reply(op, "not_stored") > 0 && reply(op, "stored") > 0, "{dialect} {op}");
        }
        assert!(untouched > 0 && touched + untouched == sent("touch"), "{dialect}");
    }
}

/// Flags of a closed loop over 3 000 keys, without a preload.
const COLD: &str = "--no-preload --warmup 0s --keys 3000 -c 4 --depth 4";

/// What was missed is stored, key by key, as an operation of its own that is no part of `-n`: one key of a multi-get like an only one.
#[test]
fn missed_keys_are_stored() {
    let of_memcached = DIALECTS
        .iter()
        .flat_map(|dialect| [("get", 1), ("gets", 1), ("mget", 10)].map(|mix| (*dialect, mix)));
    let of_redis = [("resp2", ("get", 1)), ("resp2", ("mget", 10)), ("resp3", ("mget", 10))];
    for (protocol, (mix, keys_of_each)) in of_memcached.chain(of_redis) {
        let is_redis = protocol.starts_with("resp");
        let Some(server) = (if is_redis { Server::redis("") } else { Server::memcached("") }) else {
            return;
        };
        let flags = format!("--protocol {protocol} --popularity sequential --on-miss set --mix {mix}");
        let run = |requests: u64| Measured::run(&server, &format!("{COLD} {flags} -n {requests}"));
        // Once round: every key is missed once and stored once.
        let first = run(3_000_u64.div_ceil(keys_of_each));
        let missed = first.count("counts.keys.miss");
        assert_eq!(first.requests("followup"), missed, "{protocol} {mix}");
        assert_eq!(first.count("ops.set.counts.requests.replies.stored"), missed, "{protocol} {mix}");
        if is_redis {
            assert_eq!(server.redis_says("DBSIZE"), ":3000\r\n+OK\r\n", "{protocol} {mix}");
        } else {
            let counted = server.statistics();
            let counted = ["get_misses", "cmd_set", "curr_items"].map(|name| counted[name]);
            assert_eq!(counted, [missed, missed, 3_000], "{protocol} {mix}");
        }
        let asked = first.count(&format!("ops.{mix}.counts.requests.scheduled"));
        assert_eq!(first.requests("scheduled"), asked + missed, "{protocol} {mix}");
        // Once more: everything is there, and nothing follows.
        let second = run(3_000);
        assert_eq!((second.requests("scheduled"), second.requests("followup")), (3_000, 0));
        assert_eq!(second.count("counts.keys.hit"), 3_000 * keys_of_each, "{protocol} {mix}");
    }
}

/// Changes without a reply end when they are sent, and the server gets every one of them. But for touch, which has such a form only in
/// text; what the other dialects' server says of failures is no operation's.
#[test]
fn noreply_changes_arrive() {
    for dialect in DIALECTS {
        let is_text = dialect == "memcached-text";
        let Some(server) = Server::memcached("") else { return };
        let mix = "--noreply --mix get=2,set=3,add=1,delete=1,touch=1,incr=1,append=1 -n 30000";
        let flags = format!("--protocol {dialect} --keys 3000 --warmup 0s --depth 4");
        let measured = Measured::run(&server, &format!("{mix} {flags}"));
        measured.check_exit();
        let sent = |op: &str| measured.over_phases(&format!("ops.{op}"));
        let stores: u64 = ["set", "add", "append"].map(sent).iter().sum();
        // The last of them may still be on their way when the run is over.
        let statistics = loop {
            let statistics = server.statistics();
            let deleted = statistics["delete_hits"] + statistics["delete_misses"];
            if statistics["cmd_set"] == stores
                && deleted == sent("delete")
                && statistics["incr_hits"] == sent("incr")
                && (!is_text || statistics["cmd_touch"] == sent("touch"))
            {
                break statistics;
            }
            assert!(statistics["cmd_set"] <= stores && deleted <= sent("delete"), "{dialect}");
        };
        measured.check_server_counts();
        let requests = |key| measured.requests(key);
        let sent_in_window = |op: &str| measured.count(&format!("ops.{op}.counts.requests.sent"));
        let unacknowledged: u64 = ["set", "add", "delete", "incr", "append"].map(sent_in_window).iter().sum();
        let strays = measured.count("events.unmatched_replies");
        if is_text {
            assert_eq!(measured.count("counts.keys.requested"), statistics["cmd_get"]);
            assert_eq!((requests("unacknowledged"), strays), (unacknowledged + sent_in_window("touch"), 0));
        } else {
            let touch = |key: &str| measured.count(&format!("ops.touch.counts.requests.{key}"));
            assert_eq!(statistics["touch_hits"], touch("replies.touched"), "{dialect}");
            assert_eq!(touch("completed"), sent("touch"), "{dialect}");
            assert_eq!(requests("unacknowledged"), unacknowledged, "{dialect}");
            // Most keys that are to be added are there.
            assert!(strays > sent("add") / 2 && strays < 3 * sent("add"), "{dialect} {strays}");
        }
        assert_eq!(measured.text.contains("unmatched replies"), !is_text, "{dialect}");
        assert_eq!(requests("mismatch") + requests("error"), 0, "{dialect}");
    }
}

/// A time to live is the server's: what is stored or touched with a short one is soon gone, with a long one it stays.
#[test]
fn values_with_a_ttl_of_a_second_expire() {
    let Some(server) = Server::memcached("") else { return };
    let read = format!("{COLD} --mix get --popularity sequential -n 3000");
    let hits = || Measured::run(&server, &read).count("counts.keys.hit");
    let expire = || while hits() > 0 {};
    load(&server, "--ttl 1s");
    expire();
    load(&server, "--ttl 1h");
    assert_eq!(hits(), 3_000);
    let touch = "--mix touch --popularity sequential -n 3000 --ttl 1s";
    let touched = Measured::run(&server, &format!("{COLD} {touch}"));
    assert_eq!(touched.count("counts.requests.replies.touched"), 3_000);
    expire();
}

/// Reads every key in its turn, without having stored any: what values turn out to be.
fn check_values(server: &Server, mismatch: u64, foreign: u64, broken: &str) {
    let flags = format!("--mix get --popularity sequential -n 3000 --value-size {SIZES}");
    let measured = Measured::run(server, &format!("{COLD} {flags}"));
    assert_eq!((measured.count("counts.keys.miss"), measured.requests("mismatch")), (0, mismatch));
    assert_eq!(measured.count("events.values_foreign"), foreign);
    let (status, message) = measured.check("BROKEN");
    assert_eq!(status, broken);
    if mismatch > 0 {
        let counted = format!("{mismatch} values read are not those that were stored");
        assert!(measured.exit == 3 && message.starts_with(&counted), "{message}");
    } else {
        measured.check_exit();
    }
    let expected = format!("{foreign} values read were not written by brunt and were not checked");
    assert_eq!(measured.fact(&expected).is_some(), foreign > 0);
}

/// Long enough for every value to name its key.
const SIZES: &str = "uniform:16,400";

fn load(server: &Server, flags: &str) {
    ended(&format!("load --server {server} --keys 3000 --quiet --value-size {SIZES} {flags}")).is(0, &[]);
}

/// Without a preload the store may hold anything: what is ours is compared, and what is not is not held against it.
#[test]
fn foreign_values_are_detected() {
    let Some(server) = Server::memcached("") else { return };
    load(&server, "");
    check_values(&server, 0, 0, "ok");
    // Grown by a run of which this one knows nothing.
    let grow = format!("--mix get=2,append=1,prepend=1 -n 12000 --value-size {SIZES}");
    let grown = Measured::run(&server, &format!("{COLD} {grow}"));
    grown.check_exit();
    assert_eq!(grown.requests("mismatch"), 0);
    check_values(&server, 0, 0, "ok");
    // One value of another key, and one with a wrong byte at its end.
    load(&server, "");
    let (id, mut value) = (7, value_of(&server, 7));
    assert_eq!(store(&server, id + 1, &value), "STORED\r\n");
    check_values(&server, 1, 0, "invalid");
    *value.last_mut().unwrap() ^= 1;
    assert_eq!(store(&server, id, &value), "STORED\r\n");
    check_values(&server, 2, 0, "invalid");
    // Another data set under the same keys, and one value of no data set.
    load(&server, "--set data-seed=7");
    check_values(&server, 0, 3_000, "ok");
    load(&server, "");
    assert_eq!(store(&server, id, b"what another client has stored"), "STORED\r\n");
    check_values(&server, 0, 1, "ok");
}

/// A server that keeps what it is given is called right in full, and one that scrambles values as often as it does.
#[test]
fn every_key_can_be_checked_in_full() {
    let flags = "--warmup 0s --keys 3000 -c 4 --depth 8 -T 2 -n 20000 --verify";
    let run = |server: &Server, mix: &str, sizes: &str| {
        Measured::run(server, &format!("{flags} --mix {mix} --value-size {sizes}"))
    };
    if let Some(server) = Server::memcached("-m 256") {
        let measured = run(&server, "get=3,mget=1,set=1", "uniform:16,9000");
        measured.check_exit();
        assert_eq!(measured.at("events.value_faults"), &json!([]));
        assert_eq!(measured.count("events.values_checked"), measured.count("counts.keys.hit"));
        assert_eq!(measured.count("events.misses_checked"), 0);
        assert_eq!(measured.count("counts.keys.miss"), 0);
        assert!(measured.text.contains("checked in full · nothing wrong"));
    }
    let server = Server::reference("--wrong-every 50 --script-after 3000");
    let measured = run(&server, "get=3,set=1", "uniform:20,9000");
    let faults = measured.at("events.value_faults").as_array().unwrap();
    let [fault] = &faults[..] else { panic!("{}", measured.text) };
    let told = (fault["kind"].as_str(), fault["count"].as_u64(), measured.exit);
    let wrong = server.statistics()["faults_wrong"];
    assert_eq!(told, (Some("torn"), Some(wrong), 3));
    assert_eq!(measured.over_phases("requests.mismatch"), wrong);
    assert!(wrong > 200 && fault["first"]["version"].is_null(), "{fault}");
}

/// Stores a value under the key with this id, and yields what the server says.
pub(crate) fn store(server: &Server, id: u64, value: &[u8]) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!("set brunt:{id:024} 0 0 {}\r\n", value.len());
    stream.write_all(&[head.as_bytes(), value, b"\r\n"].concat()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

/// The value under the key with this id.
pub(crate) fn value_of(server: &Server, id: u64) -> Vec<u8> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(format!("get brunt:{id:024}\r\n").as_bytes()).unwrap();
    let (mut reader, mut line) = (BufReader::new(stream), String::new());
    reader.read_line(&mut line).unwrap();
    let len = line.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
    let mut value = vec![0; len];
    reader.read_exact(&mut value).unwrap();
    value
}
