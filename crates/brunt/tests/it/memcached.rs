//! Against a real memcached: what we count is what it counts, to the last request.

use crate::measured::Measured;
use crate::server::{Server, ended};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// Ours and the server's counts agree, summed over all phases.
fn check_counts(flags: &str) {
    let Some(server) = Server::memcached("") else { return };
    let before = server.statistics();
    let measured = Measured::run(&server, flags);
    let after = server.statistics();
    let delta = |name: &str| after[name] - before[name];
    measured.check_exit();
    assert_eq!(measured.requests("error") + measured.requests("lost"), 0);
    assert_eq!(measured.over_phases("keys.requested"), delta("cmd_get"), "{flags:?}");
    assert_eq!(measured.over_phases("keys.hit"), delta("get_hits"), "{flags:?}");
    assert_eq!(measured.over_phases("ops.set"), delta("cmd_set"), "{flags:?}");
    assert!(measured.requests("completed") > 0);
}

#[test]
fn client_and_server_counts_agree() {
    let table = [
        "-c 16 -t 1s --think 1ms --warmup 200ms --keys 10000",
        "-r 2k -t 1s --warmup 200ms --depth 8 --popularity zipf:0.99 --keys 10000 --wait sleep",
        "-n 8000 --warmup 200ms --mix mget=3,set=1,get=1 --multiget 7 --depth 4 --keys 5000",
        "-n 20000 --warmup 200ms --no-preload --mix get=9,set=1 --keys 20000 --value-size uniform:0,3000",
        "-T 2 -c 7 --depth 3 -n 30001 --keys 1234 --warmup 200ms",
    ];
    for flags in table {
        check_counts(flags);
    }
}

/// What `load` stored, a later run finds, every key of it.
#[test]
fn runs_find_keys_stored_by_load() {
    let Some(server) = Server::memcached("") else { return };
    let flags = "--keys 3000 --prefix user: --key-size uniform:12,40 --value-size uniform:1,500";
    let loaded = ended(&format!("load --server {server} {flags}"));
    assert_eq!(loaded.exit, 0);
    assert!(loaded.out.starts_with("stored       3000 of 3000 keys in "));
    assert_eq!(server.statistics()["curr_items"], 3000);
    let measured = Measured::run(&server, &format!("{flags} --no-preload --mix get -n 9000 --warmup 0s"));
    assert_eq!((measured.count("counts.keys.requested"), measured.count("counts.keys.hit")), (9000, 9000));
}

/// A server that has no room for the data set confirms every key, and evicts most of them.
#[test]
fn load_reports_evictions() {
    for (memory, has_room) in [("8", false), ("256", true)] {
        let Some(server) = Server::memcached(&format!("-m {memory}")) else { return };
        let load = |keys: &str, form: &str| {
            let mut loaded = ended(&format!("load --server {server} --keys {keys} --value-size 4000 {form}"));
            assert_eq!(loaded.exit, 0);
            std::mem::take(&mut loaded.out)
        };
        let text = load("20000", "--progress=none");
        assert!(text.starts_with("stored       20000 of 20000 keys in "), "{text}");
        let statistics = server.statistics();
        let evicted = format!(
            "evicted      {} items meanwhile, {} are held ->",
            statistics["evictions"], statistics["curr_items"]
        );
        assert_eq!(text.contains(&evicted), !has_room, "{text} {evicted}");
        assert_eq!(statistics["evictions"] > 0, !has_room);
        // Of this load alone.
        let brief = load("1", "--report=brief");
        let (_, evicted) = brief.trim_end().rsplit_once(" evicted=").expect(&brief);
        assert!(evicted.parse::<u64>().unwrap() <= if has_room { 0 } else { 100 }, "{brief}");
    }
}

/// Keys are in the form that was asked for, for others to read, and every value is found under its own.
#[test]
fn keys_have_the_requested_form() {
    for (form, key) in
        [("decimal", "k:00000000000299"), ("hex8", "k:0000012bYop41h"), ("random", "k:5G9QN4G6KTYop4")]
    {
        let Some(server) = Server::memcached("") else { return };
        let flags = format!("--set key-form={form} --prefix k: --key-size 16 --keys 300");
        let loaded = ended(&format!("load --server {server} {flags}"));
        assert_eq!(loaded.exit, 0, "{}", loaded.said);
        let mut connection = TcpStream::connect(&server.address).unwrap();
        connection.write_all(format!("mg {key} s\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        BufReader::new(connection).read_line(&mut reply).unwrap();
        assert_eq!(reply, "HD s200\r\n", "{form}");
        let checked = "--no-preload --warmup=0s --verify=100% --mix get=2,mget=1,set=1 -n 3000";
        let measured = Measured::run(&server, &format!("{flags} {checked}"));
        measured.check_exit();
        assert_eq!(measured.count("counts.keys.requested"), measured.count("counts.keys.hit"), "{form}");
        assert_eq!(server.statistics()["curr_items"], 300, "{form}");
        assert_eq!(measured.text.contains(&format!("key form {form}")), form != "decimal");
    }
}

/// A server without room for the data set: evictions are misses, and the run says so in its counts.
#[test]
fn a_value_too_large_ends_the_preload() {
    let Some(server) = Server::memcached("") else { return };
    ended(&format!("run -s {server} --keys 100 --value-size 2MiB")).is(
        5,
        &[
            "0 of 100 keys confirmed on",
            "the server rejects a key: \"object too large for cache\"; use a smaller --value-size",
        ],
    );
}
