//! Redis's protocol, both versions, against a real redis-server: what we count is what it counts, to the last request. And
//! against a small server of our own, which does what a real one seldom does.

use crate::measured::Measured;
use crate::operations::mixed;
use crate::server::{Directory, Server, ended_run, listening, silent};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

const VERSIONS: [&str; 2] = ["resp2", "resp3"];

/// Every kind there is, and four commands of our own whose replies are a number, a row, a string and a map.
const EVERY_KIND: &str =
    "get=20,mget=4,set=8,add=4,replace=4,append=2,incr=4,decr=4,delete=3,touch=4,raw=3+1+1+1";
const COMMANDS: &str = "--command 'RPUSH l:{key} {value}' --command 'LRANGE l:{key} 0 3' --command 'GET {key}' --command 'HGETALL h:{key}'";

/// A hundred thousand of them: each command was called as often as we say it was sent, and nothing was misunderstood.
#[test]
fn mixed_operations_are_counted_alike() {
    // With a time to live a touch is another command, and so is a store.
    for (version, ttl, touch) in [("resp2", "0", "touch"), ("resp3", "1h", "expire")] {
        let Some(server) = Server::redis("") else { return };
        let own = format!("--mix {EVERY_KIND} --ttl {ttl} --set client-name=brunt --set database=3");
        let measured = mixed(&server, version, 50_000, &format!("{own} {COMMANDS}"));
        let sent = |op: &str| measured.over_phases(&format!("ops.{op}"));
        let calls = server.redis_counts("commandstats");
        let call = |name: &str| calls.get(&format!("cmdstat_{name}")).copied().unwrap_or(0);
        // And that of the question what the server says of itself.
        let connections = measured.connections("established") + 1;
        let greeting = if version == "resp3" { "hello" } else { "client|setname" };
        let table = [
            ("set", ["set", "add", "replace"].map(sent).iter().sum::<u64>()),
            ("mget", sent("mget")),
            ("append", sent("append")),
            ("incr", sent("incr")),
            ("decr", sent("decr")),
            ("del", sent("delete")),
            (touch, sent("touch")),
            ("get", sent("get") + sent("GET")),
            ("rpush", sent("RPUSH")),
            ("lrange", sent("LRANGE")),
            ("hgetall", sent("HGETALL")),
            ("select", connections),
            (greeting, connections),
        ];
        for (name, ours) in table {
            assert!(ours > 0 && call(name) == ours, "{version} {name}: {} {ours}", call(name));
        }
        let of_commands = ["RPUSH", "LRANGE", "GET", "HGETALL"].map(sent);
        let all: u64 = of_commands.iter().sum();
        // Three of six, and one of six for each of the others: four standard deviations.
        for (count, share) in of_commands.into_iter().zip([3.0, 1.0, 1.0, 1.0]) {
            let expected = all as f64 * share / 6.0;
            assert!((count as f64 - expected).abs() < 4.0 * expected.sqrt(), "{count} of {all}: {expected}");
        }
        for (op, replies) in [("add", "not_stored"), ("replace", "not_stored"), ("delete", "not_found")] {
            assert!(measured.count_or_0(&format!("ops.{op}.counts.requests.replies.{replies}")) > 0, "{op}");
        }
    }
}

/// Hits and misses are those of the server, key by key.
#[test]
fn hits_and_misses_match_the_server() {
    for version in VERSIONS {
        let Some(server) = Server::redis("") else { return };
        let flags = format!("--protocol {version} --no-preload --warmup 0s --keys 3000 -n 30000");
        let mix = "--mix get=6,mget=2,set=1,delete=1 --multiget 7 --depth 4";
        let measured = Measured::run(&server, &format!("{flags} {mix}"));
        let counts = server.redis_counts("stats");
        let (hit, miss) = (measured.over_phases("keys.hit"), measured.over_phases("keys.miss"));
        assert_eq!((counts["keyspace_hits"], counts["keyspace_misses"]), (hit, miss));
        assert!(hit > 0 && miss > 0 && measured.count("events.values_foreign") == 0);
        assert_eq!(measured.requests("mismatch"), 0);
    }
}

/// Errors are counted by their first word, as the server counts them.
#[test]
fn errors_are_counted_by_their_first_word() {
    for version in VERSIONS {
        let Some(server) = Server::redis("--maxmemory 8mb") else { return };
        let flags =
            format!("--protocol {version} -n 20000 --warmup 0s --keys 1000 --depth 4 --value-size 4000");
        let commands = "--command 'LPUSH {key} x' --command 'NOSUCH {key}' --command 'SET big:{key} {value}'";
        let measured = Measured::run(&server, &format!("{flags} --mix get=4,raw=2+1+1 {commands}"));
        let words = measured.json["events"]["error_replies"].as_object().unwrap();
        let counts = server.redis_counts("errorstats");
        let theirs = |word: &str| counts.get(&format!("errorstat_{word}")).copied();
        assert!(words.len() >= 2 && words.contains_key("OOM"));
        for (word, count) in words {
            assert_eq!(count.as_u64(), theirs(word), "{version} {word}");
        }
        assert_eq!(words.len(), counts.len(), "{counts:?}");
        let sum = words.values().map(|count| count.as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum, measured.over_phases("requests.error"));
        assert!(measured.text.contains(" OOM"));
        // A command that the server does not know has no row that means anything.
        assert_eq!(measured.exit, 5);
    }
}

/// A refusal is one message, with the server's own words, and exit code 5; a client that is let in notices nothing.
#[test]
fn credentials_are_checked() {
    let Some(server) = Server::redis("--requirepass topsecret --databases 4") else { return };
    server.redis_says("AUTH topsecret\r\nACL SETUSER reader on >s3cret ~* +@all");
    let directory = Directory::new();
    let file = directory.with("password", "s3cret\n");
    let at_file = format!("@{file}");
    let refused: [(&str, &[&str; 2]); 5] = [
        ("--password wrong", &["WRONGPASS"; 2]),
        ("--set user=nobody --password s3cret", &["WRONGPASS"; 2]),
        ("--set user=reader --password topsecret", &["WRONGPASS"; 2]),
        ("--password topsecret --set database=4", &["SELECT refused: ERR DB index"; 2]),
        ("", &["NOAUTH Authentication required", "HELLO refused: NOAUTH"]),
    ];
    for (index, version) in VERSIONS.into_iter().enumerate() {
        let own = format!("--protocol {version} -s {server}");
        for (flags, messages) in &refused {
            let output = ended_run(&format!("{own} {flags}"));
            output.is(5, &[messages[index]]);
            assert_eq!((output.said.lines().count(), &*output.out), (1, ""), "{version} {flags}");
        }
        let admitted = [
            "--password topsecret",
            "--set user=reader --password s3cret --set client-name=brunt",
            &*format!("--set user=reader --password '{at_file}' --set database=3"),
        ];
        for flags in admitted {
            let output = ended_run(&format!("{own} {flags} -o json:-"));
            assert!(matches!(output.exit, 0 | 3), "{version} {flags}");
            for text in [&output.out, &output.said] {
                assert!(!text.contains("s3cret") && !text.contains("topsecret"), "{version} {flags}");
            }
        }
        let output = ended_run(&format!("{own} --password s3cret --print-plan"));
        let printed = &output.out;
        assert!(printed.contains("password = \"(secret)\"") && !printed.contains("s3cret"));
    }
    std::fs::remove_file(&file).unwrap();
    ended_run(&format!("--protocol resp2 -s a --password '{at_file}'")).is(2, &["--password", &file]);
}

/// A memcached is told from a Redis before anything is measured.
#[test]
fn memcached_is_not_mistaken_for_redis() {
    let Some(server) = Server::memcached("") else { return };
    for version in VERSIONS {
        let output = ended_run(&format!("--protocol {version} -s {server}"));
        output.is_line(5, &["ERROR"]);
    }
}

/// What a small server does that a real one seldom does.
#[derive(Clone, Copy, Debug, Default)]
struct ServerBehaviour {
    /// Each reply comes byte by byte, with a message in front of it that was not asked for.
    pushes: bool,
    /// A multi-get is answered with a value more than it asked for.
    surplus: bool,
    /// From this connection on none is let in.
    full_from: Option<usize>,
}

/// A server of GET, MGET, SET and HELLO, in a thread that lives as long as the test program.
fn small_redis(oddities: ServerBehaviour) -> String {
    let store = Mutex::default();
    listening(move |stream, number| {
        let is_full = oddities.full_from.is_some_and(|from| number >= from);
        serve(stream, oddities, is_full, &store);
    })
}

fn serve(
    mut stream: TcpStream,
    oddities: ServerBehaviour,
    is_full: bool,
    store: &Mutex<HashMap<Vec<u8>, Vec<u8>>>,
) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(words) = command(&mut reader) {
        let bulk = |value: Option<&Vec<u8>>| match value {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"_\r\n".to_vec(),
        };
        let mut held = store.lock().unwrap();
        let mut reply =
            if oddities.pushes { b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n".to_vec() } else { Vec::new() };
        match words[0].as_slice() {
            _ if is_full => reply.extend_from_slice(b"-ERR max number of clients reached\r\n"),
            b"HELLO" => reply.extend_from_slice(b"%1\r\n$5\r\nproto\r\n:3\r\n"),
            b"SET" => {
                held.insert(words[1].clone(), words[2].clone());
                reply.extend_from_slice(b"+OK\r\n");
            }
            b"GET" => reply.extend_from_slice(&bulk(held.get(&words[1]))),
            b"MGET" => {
                let count = words.len() - 1 + usize::from(oddities.surplus);
                reply.extend_from_slice(format!("*{count}\r\n").as_bytes());
                words[1..].iter().for_each(|key| reply.extend_from_slice(&bulk(held.get(key))));
                reply.extend_from_slice(if oddities.surplus { b"$1\r\nx\r\n" } else { b"" });
            }
            other => panic!("{}", other.escape_ascii()),
        }
        drop(held);
        let piece = if oddities.pushes { 1 } else { reply.len() };
        if reply.chunks(piece).any(|piece| stream.write_all(piece).is_err()) {
            return;
        }
    }
}

/// The words of the next command; `None` when there is none.
fn command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let number = |reader: &mut dyn BufRead| {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        line.trim_end().get(1..)?.parse::<usize>().ok()
    };
    let words = number(reader)?;
    let mut command = Vec::new();
    for _ in 0..words {
        let mut word = vec![0; number(reader)? + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        command.push(word);
    }
    Some(command)
}

const SMALL: &str = "--protocol resp3 --keys 50 --warmup 0s -c 3 --set server-stats=false";

#[test]
fn unsolicited_messages_are_counted() {
    for io in ["epoll", "auto"] {
        let address = small_redis(ServerBehaviour { pushes: true, ..ServerBehaviour::default() });
        let flags = format!("-n 1200 --mix get=3,mget=1,set=1 --depth 2 --io {io}");
        let measured = Measured::run(&address, &format!("{SMALL} {flags}"));
        measured.check_exit();
        let replies = measured.over_phases("requests.completed") + measured.connections("established");
        assert_eq!(measured.count("events.pushes"), replies);
        assert_eq!(measured.count("counts.keys.hit"), measured.count("counts.keys.requested"));
        assert!(measured.text.contains("messages pushed by the server"));
    }
}

/// Who takes a connection and says nothing, or ends it, is no server.
#[test]
fn unanswered_connection_setup_ends_the_run() {
    for (is_ended, message) in [(false, "to HELLO within 200ms"), (true, "to HELLO: connection closed")] {
        let address = match is_ended {
            true => listening(|mut stream, _| _ = stream.read(&mut [0; 64])),
            false => silent(),
        };
        for io in ["epoll", "auto"] {
            let output = ended_run(&format!("--protocol resp3 -s {address} --timeout 200ms --io {io}"));
            output.is_line(5, &[message]);
        }
    }
}

#[test]
fn surplus_values_are_malformed() {
    let address = small_redis(ServerBehaviour { surplus: true, ..ServerBehaviour::default() });
    let measured = Measured::run(&address, &format!("{SMALL} -n 30 -t 5s --mix mget=1"));
    assert_eq!(measured.requests("error"), 30);
    assert!(!measured.json["events"]["first_malformed"].is_null());
}

/// A server that lets no client in any more while the run goes on is no end of it, but a fault that is counted.
#[test]
fn later_setup_rejections_are_faults() {
    let address = small_redis(ServerBehaviour { full_from: Some(6), ..ServerBehaviour::default() });
    let flags = "-t 1s --calls-per-connection 60 --set drain=100ms";
    let measured = Measured::run(&address, &format!("{SMALL} {flags}"));
    let count = measured.faults(Some("setup_rejected"));
    assert!(count > 0 && count == measured.connections("failed"));
    assert_eq!(measured.at("events.first_error"), "ERR max number of clients reached");
}
