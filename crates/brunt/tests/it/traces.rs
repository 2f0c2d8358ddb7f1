//! Files that are replayed, against real servers: what they hold then is what the lines say, and what the lines say is counted.

use crate::measured::Measured;
use crate::mutilated::{mutilate, report};
use crate::server::{Server, ended, file};
use std::collections::BTreeMap;

/// How many bytes a memcached holds under a key; `None` where there is no such key.
fn len_of(server: &Server, key: &str) -> Option<u64> {
    let reply = server.says(&format!("get {key}\r\n"), "END\r\n");
    reply.strip_prefix(&format!("VALUE {key} 0 "))?.lines().next()?.parse().ok()
}

/// Twitter's lines in order over one connection: every operation is sent as itself, and a miss is followed by a store.
#[test]
fn traces_are_replayed_in_order() {
    let Some(server) = Server::memcached("") else { return };
    server.says("set n 0 0 2\r\n40\r\n", "STORED\r\n");
    let path = file(
        "all.csv",
        "timestamp,key,key_size,value_size,client,op,ttl\n\
         1,missed,6,70,1,get,0\n1,missed,6,70,1,get,0\n2,a,1,20,1,set,60\n2,a,1,30,1,add,0\n2,b,1,10,1,add,0\n\
         3,a,1,50,1,replace,0\n3,a,1,5,1,append,0\n4,a,1,6,1,prepend,0\n4,c,1,25,1,set,0\n4,c,1,9,1,gets,0\n\
         4,c,1,33,1,cas,0\n5,c,1,34,1,cas,0\n5,n,1,0,1,incr,0\n5,n,1,0,1,incr,0\n5,n,1,0,1,decr,0\n6,d,1,1,1,set,0\n\
         6,d,1,0,1,delete,0\n",
    );
    let run = report(&server, &format!("--getsetorset --read_file {path} --twitter_trace=1 --noload"));
    let (text, said) = (&run.out, &run.said);
    // Seventeen lines, and a store that followed.
    assert!(text.contains(" (18 / ") && text.contains("\nMisses = 1 (33.3%)\n"));
    assert!(said.contains("warning: --read_file: 1 of 18 lines of"));
    let lens: Vec<Option<u64>> = ["missed", "a", "b", "c", "d", "n"].map(|key| len_of(&server, key)).into();
    // The second cas has no number of its own any more, and changes nothing.
    assert_eq!(lens, [Some(70), Some(61), Some(10), Some(33), None, Some(2)]);
    assert!(server.says("get n\r\n", "END\r\n").contains("\r\n41\r\n"));
    let counts = server.statistics();
    assert_eq!((counts["cas_hits"], counts["cas_badval"] + counts["cas_misses"]), (1, 1));
    assert_eq!((counts["incr_hits"], counts["decr_hits"], counts["delete_hits"]), (2, 1, 1));
}

/// What a load has stored is read by its lines, and what lines have stored by those who count keys: neither is a failure.
#[test]
fn traces_and_data_sets_may_have_the_same_keys() {
    let Some(server) = Server::memcached("") else { return };
    let lines: String = (0..500).map(|id| format!("0,1,read,{:030},200\n", id % 400)).collect();
    let path = file("loaded.csv", &lines);
    let run = report(&server, &format!("-r 400 --read_file {path}"));
    let text = &run.out;
    assert!(text.contains(" (500 / ") && text.contains("\nMisses = 0 (0.0%)\n"));
    std::fs::write(&*path, lines.replace("read", "write")).unwrap();
    report(&server, &format!("--noload --getsetorset --read_file {path}"));
    let run = report(&server, "-r 400 --noload -N 500");
    let text = &run.out;
    assert!(text.contains(" (500 / ") && text.contains("\nMisses = 0 (0.0%)\n"));
}

/// Many lines over several threads and connections: each is sent once, and the counts are the server's.
#[test]
fn every_line_is_sent_once() {
    let Some(server) = Server::memcached("") else { return };
    // More than all blocks of the workers hold.
    let count = 40_000;
    let lines: String = (0..count)
        .map(|id| {
            format!("{id},1,{},k{},{}\n", if id % 4 == 0 { "write" } else { "read" }, id % 500, id % 90)
        })
        .collect();
    let path = file("many.csv", &lines);
    let plan = file(
        "plan.toml",
        &format!(
            "trace = '{path}'\ntrace-layout = 'mutilate-read-write'\nprefix = 'p:'\nthreads = 2\nconnections = 4\ndepth = 8\n\
             preload = false\nwarmup = 0\non-miss = 'set'"
        ),
    );
    let measured = Measured::run(&server, &format!("{plan} --allow=BROKEN,LOAD,CLIENT,DATA"));
    assert_eq!(measured.exit, 0);
    let [gets, sets] =
        ["get", "set"].map(|op| measured.count(&format!("ops.{op}.counts.requests.completed")));
    let misses = measured.count("counts.keys.miss");
    assert_eq!((gets, sets), (30_000, 10_000 + misses));
    let counts = server.statistics();
    assert_eq!((counts["cmd_get"], counts["cmd_set"], counts["get_misses"]), (gets, sets, misses));
    assert_eq!(counts["curr_items"], 500);
    let record: BTreeMap<String, serde_json::Value> =
        serde_json::from_value(measured.at("client.traces")[0].clone()).unwrap();
    assert_eq!(
        (&record["lines"]["read"], &record["lines"]["unreadable"], &record["is_whole"]),
        (&count.into(), &0.into(), &true.into())
    );
    assert!(measured.text.contains("lines read to its end"));
    assert_eq!(measured.count_or_0("events.value_faults.0.count"), 0);
}

#[test]
fn a_trace_ends_with_its_number_of_queries_or_its_last_line() {
    let Some(server) = Server::memcached("") else { return };
    let lines: String = (0..3_001).map(|id| format!("{id},1,1,k{},40\n", id % 100)).collect();
    let path = file("queries.csv", &lines);
    let of = |options: &str| {
        let options = format!("--getset --read_file {path} --noload --prefix x: {options}");
        std::mem::take(&mut report(&server, &options).out)
    };
    let text = of("-N 1500 -T 2 -c 2");
    assert!(text.contains("\nMisses = ") && server.statistics()["cmd_get"] == 1_500);
    assert_eq!(len_of(&server, "x:k7"), Some(40));
    // Shorter than what is asked for; at a rate, and with the windows of misses.
    let before = server.statistics()["cmd_get"];
    let options = "--noload --prefix x: -N 9000 -q 20000 -c 4 -m 1000 --successful";
    let run = report(&server, &format!("--getset --read_file {path} {options}"));
    let (text, said) = (&run.out, &run.said);
    assert!(text.contains(" (3001 / ") && text.contains("\nMisses = 0 (0.0%)\n"));
    assert_eq!(server.statistics()["cmd_get"] - before, 3_001);
    let windows: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("note: misswindow ")).collect();
    assert_eq!(windows, ["1000,0.0000", "2000,0.0000", "3000,0.0000"]);
}

/// The layout with numbers, in binary; and the operations that a Redis lacks.
#[test]
fn other_layouts_and_protocols() {
    let Some(server) = Server::memcached("") else { return };
    let path = file("numbers.csv", "0,1,2,a,30\n1,1,1,a,30\n2,1,1,b,31\n3,1,3,b,31\n");
    let run = report(&server, &format!("--binary --read_file {path} --twitter_trace=2 --noload"));
    let (text, said) = (&run.out, &run.said);
    assert!(text.contains(" (3 / ") && text.contains("\nMisses = 1 (50.0%)\n"));
    assert!(said.contains("1 of 4 lines"));
    assert_eq!((len_of(&server, "a"), len_of(&server, "b")), (Some(30), None));
    let Some(redis) = Server::redis("") else { return };
    let twitter =
        file("redis.csv", "0,a,1,30,1,set,0\n0,a,1,30,1,gets,0\n0,a,1,9,1,prepend,0\n0,c,1,8,1,cas,0\n");
    let run = report(&redis, &format!("--redis --read_file {twitter} --twitter_trace=1 --noload"));
    let (text, said) = (&run.out, &run.said);
    assert!(text.contains(" (4 / ") && text.contains("\nMisses = 0 (0.0%)\n"));
    assert!(said.contains("3 records of"));
    assert_eq!(redis.says("STRLEN a\r\n", "\r\n"), ":39\r\n");
    assert_eq!(redis.says("STRLEN c\r\n", "\r\n"), ":8\r\n");
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let server = Server::reference("");
    let no_zstd = file("plain.zst", "0,1,1,a,5\n");
    for (path, reason) in [
        ("/no/such/trace", "--read_file: cannot read '/no/such/trace' (No such file"),
        ("/tmp", "--read_file: cannot read '/tmp' ("),
        (&no_zstd, "not a zstd file"),
    ] {
        let output = mutilate(&server, &format!("--read_file {path}"));
        assert!(output.exit == 255 && output.said.contains(reason), "{path}");
        assert!(output.out.is_empty());
    }
    // Of brunt's own command the layout is an option.
    let trace = file("twitter", "0,q,1,213,4,get,0\n");
    let run = format!("run -s {server} -t 300ms --no-preload --set trace={trace} --set trace-layout=");
    let reason = format!(
        "error: cannot read trace '{trace}': no line up to line 1 has the layout mutilate-read-write"
    );
    ended(&format!("{run}mutilate-read-write")).is(2, &[&reason]);
    assert_eq!(server.statistics()["cmd_set"], 0, "before anything is loaded");
    // Sent before the window, which is no fault of the server.
    let early = ended(&format!("{run}twitter"));
    early.is(0, &[]);
    assert!(early.out.contains("-> a longer trace, or a shorter"));
    // Not read before the end, which is no fault of the server either.
    let many = file("many", &"0,q,1,1,4,get,0\n".repeat(1_000_000));
    let run = format!("run -s {server} -t 1ms --replay --set trace={many} --set trace-layout=twitter");
    let unread = ended(&run);
    assert!(!unread.said.contains("no valid reply"), "{}", unread.said);
    assert!(unread.out.contains("the run ended before the first record of its trace"), "{}", unread.out);
}

/// Keys that are a hash and a field: what is loaded is found, field by field.
#[test]
fn keys_may_be_fields_of_hashes() {
    let Some(redis) = Server::redis("") else { return };
    let run = report(&redis, "--redis --assoc=2 -K 6 -V 40 -r 300 -N 900 -u 0.3 -d 4");
    let text = &run.out;
    assert!(text.contains(" (900 / ") && text.contains("\nMisses = 0 (0.0%)\n"));
    assert_eq!(redis.says("DBSIZE\r\n", "\r\n"), ":3\r\n");
    assert_eq!(redis.says("HLEN 0001\r\n", "\r\n"), ":100\r\n");
    assert_eq!(redis.says("HSTRLEN 0002 99\r\n", "\r\n"), ":40\r\n");
}

/// After half of the queries nine of ten keys are deleted, on each server.
#[test]
fn traces_can_delete_most_keys() {
    let Some(server) = Server::memcached("") else { return };
    let run = report(&server, "--getset --delete90 -N 401 -r 1000 -T 2 -c 2");
    let (text, said) = (&run.out, &run.said);
    let counts = server.statistics();
    assert_eq!((counts["delete_hits"], counts["delete_misses"], counts["cmd_get"]), (900, 0, 401));
    let misses = counts["get_misses"];
    // The second half asks for 200 keys of which nine tenths are gone, but for those that it has stored again.
    assert!((120..=200).contains(&misses), "{misses}");
    assert!(text.contains(&format!(" ({} / ", 401 + misses)), "{misses}");
    assert!(said.contains("note: delete90: 900 keys were deleted by 900 requests"));
}
