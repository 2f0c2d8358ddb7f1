//! A server of another kind than the one that was asked for is recognized by what it says, and the option for it is named.

use crate::cluster::Cluster;
use crate::server::{Server, beside_others, brunt, plain};
use std::time::{Duration, Instant};

/// Exit code and standard error of a short run.
fn ended(address: &str, flags: &[&str]) -> (i32, String) {
    let short = [
        "run",
        "--progress=none",
        "-s",
        address,
        "-n",
        "100",
        "-t",
        "5s",
        "--keys",
        "100",
        "--warmup",
        "0s",
        "-c",
        "10",
    ];
    let output = brunt(&short).args(flags).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn servers_of_another_kind_are_recognized() {
    let _beside = beside_others();
    let (Some(redis), Some(memcached)) = (Server::redis(&[]), Server::memcached(&[])) else { return };
    let Some(text_only) = Server::memcached(&["-B", "ascii"]) else { return };
    let (redis, memcached, text_only) = (&redis.address, &memcached.address, &text_only.address);
    let is_redis = format!("; this looks like Redis: use redis://{redis} or --protocol resp3");
    let is_memcached =
        format!("; this looks like memcached: use memcached://{memcached} or --protocol memcached-text");
    let is_text = format!(
        "; this looks like memcached's text protocol: use memcached://{text_only} or --protocol memcached-text"
    );
    let table: [(&str, &[&str], &str); 11] = [
        (redis, &["--protocol", "memcached-text"], &is_redis),
        (redis, &["--protocol", "memcached-text", "--no-preload"], &is_redis),
        (redis, &["--protocol", "memcached-meta"], &is_redis),
        (redis, &["--protocol", "memcached-meta", "--no-preload"], &is_redis),
        (redis, &["--protocol", "memcached-binary"], &is_redis),
        (redis, &["--protocol", "memcached-binary", "--no-preload"], &is_redis),
        (text_only, &["--protocol", "memcached-binary"], &is_text),
        (memcached, &["--protocol", "resp2"], &is_memcached),
        (memcached, &["--protocol", "resp2", "--no-preload"], &is_memcached),
        (memcached, &["--protocol", "resp3"], &is_memcached),
        (memcached, &["--protocol", "ping"], &is_memcached),
    ];
    for (address, flags, hint) in table {
        let begun = Instant::now();
        let (exit, message) = ended(address, flags);
        assert_eq!(exit, 5, "{flags:?}: {message}");
        // The limit of a server without a reply is 8 s.
        assert!(begun.elapsed() < Duration::from_secs(6), "{flags:?}: {message}");
        let last = message.lines().last().unwrap();
        assert!(last.starts_with("error: ") && last.contains(address), "{flags:?}: {message}");
        assert!(last.ends_with(hint), "{flags:?}: {message}");
    }
    // What is right is not doubted.
    let binary = &["--protocol", "memcached-binary"][..];
    for (address, flags) in [(redis, &["--protocol", "resp3"][..]), (memcached, &[]), (memcached, binary)] {
        let (exit, message) = ended(address, &[flags, &["--allow=BROKEN,LOAD,CLIENT,DATA"]].concat());
        assert_eq!((exit, message.contains("looks like")), (0, false), "{message}");
    }
}

/// A preload that fails names the servers it was meant for.
#[test]
fn a_failed_preload_names_its_servers() {
    let _beside = beside_others();
    let servers: Vec<Server> = (0..5).map(|_| Server::reference(&[])).collect();
    let too_large = ["--value-size", "2MiB"];
    let names: Vec<&str> = servers.iter().map(|server| server.address.as_str()).collect();
    let (exit, message) = ended(names[0], &too_large);
    assert_eq!(exit, 5, "{message}");
    assert!(
        message
            .contains(&format!("preload failed: 0 of 100 keys stored on {}; the server rejects ", names[0])),
        "{message}"
    );
    let more: Vec<&str> = names[1..].iter().flat_map(|name| ["-s", *name]).chain(too_large).collect();
    let (exit, message) = ended(names[0], &more);
    assert_eq!(exit, 5, "{message}");
    let told = format!("preload failed: 0 of 100 keys stored on {} and 2 more", names[..3].join(", "));
    assert!(message.contains(&told), "{message}");
}

/// A command that the server does not know is quoted in one form, whatever else was sent and whether it was.
#[test]
fn unknown_commands_have_one_message() {
    let _beside = beside_others();
    let Some(redis) = Server::redis(&[]) else { return };
    let address = &redis.address;
    let expected = format!(
        "error: {address} gave no valid reply to HGETT (it said: ERR unknown command 'HGETT', with args beginning with: "
    );
    let command = ["--protocol", "resp3", "--command", "HGETT {key} f"];
    let table: [&[&str]; 4] =
        [&[], &["--no-preload"], &["--mix", "get=1,raw=1"], &["--mix", "get=1,raw=1", "--no-preload"]];
    for flags in table {
        let (exit, message) = ended(address, &[&command[..], flags].concat());
        assert_eq!(exit, 5, "{flags:?}: {message}");
        assert!(message.lines().last().unwrap().starts_with(&expected), "{flags:?}: {message}");
    }
}

/// Redirections without `--cluster`, and a password that is missing.
#[test]
fn redis_requirements_are_named() {
    let _beside = beside_others();
    let Some(cluster) = Cluster::start() else { return };
    let node = &cluster.nodes[0].address;
    let (exit, message) = ended(node, &["--protocol", "resp2"]);
    assert_eq!(exit, 5, "{message}");
    assert!(
        message.contains("MOVED ") && message.ends_with("; this is a cluster node: use --cluster\n"),
        "{message}"
    );
    let output =
        brunt(&["run", "--progress=none", "-s", node, "--protocol", "resp2", "--no-preload", "-n", "1000"])
            .args(["--warmup", "0s", "-c", "10"])
            .output()
            .unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    // Lines are broken between words.
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the servers are nodes of a cluster: use --cluster"), "{report}");
    let Some(locked) = Server::redis(&["--requirepass", "hunter2"]) else { return };
    for protocol in ["resp2", "resp3"] {
        let (exit, message) = ended(&locked.address, &["--protocol", protocol]);
        assert_eq!(exit, 5, "{message}");
        assert!(message.ends_with("; the server requires a password: use --password @FILE\n"), "{message}");
    }
}

/// What is typed in a form that another option or command takes is answered with that one.
#[test]
fn misplaced_values_are_answered_with_what_takes_them() {
    let _beside = beside_others();
    let table = [
        (
            "run 127.0.0.1:28111",
            "cannot read the plan 127.0.0.1:28111 (a server is given by --server 127.0.0.1:28111)",
        ),
        ("load redis://h", "cannot read the plan redis://h (a server is given by --server redis://h)"),
        ("run redis://me:hunter2@h", "(a server is given by --server URL)"),
        ("run plan.toml", "cannot read the plan plan.toml: "),
        ("run -r 5k..80k", "; for several: brunt scan --over rate=5k..80k:18750"),
        ("run -r 1k,2k", "; for several: brunt scan --over rate=1k,2k"),
        ("run -c 8..1", "; for several: brunt scan --over connections=10,20,40"),
        (
            "compare --live redis://a memcached://b",
            "not 'redis://a:6379' and 'memcached://b:11211'; servers that differ in more are compared by results: brunt run -o FILE.json for \
             each, then brunt compare --allow-different-plans A.json B.json",
        ),
    ];
    for (line, expected) in table {
        let words: Vec<&str> = line.split(' ').collect();
        let output = plain(&words).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.contains(expected) && !message.contains("hunter2"), "{line}: {message}");
        // A scan that is offered is one that is taken.
        if let Some((_, over)) = message.trim_end().split_once("brunt scan --over ") {
            let output = plain(&["scan", "--over", over, "--print-plan"]).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{line}: {over}");
        }
    }
}
