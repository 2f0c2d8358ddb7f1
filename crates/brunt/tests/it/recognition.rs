//! A server of another kind than the one that was asked for is recognized by what it says, and the option for it is named.

use crate::cluster::Cluster;
use crate::server::{Ended, Server, ended};
use std::time::{Duration, Instant};

/// A short run.
fn run(address: &str, flags: &str) -> Ended {
    let short = "-n 100 -t 5s --keys 100 --warmup 0s -c 10";
    ended(&format!("run --progress=none -s {address} {short} {flags}"))
}

#[test]
fn servers_of_another_kind_are_recognized() {
    let (Some(redis), Some(memcached)) = (Server::redis(""), Server::memcached("")) else { return };
    let Some(text_only) = Server::memcached("-B ascii") else { return };
    let (redis, memcached, text_only) = (&redis.address, &memcached.address, &text_only.address);
    let is_redis = format!("; this looks like Redis: use redis://{redis} or --protocol resp3");
    let is_memcached =
        format!("; this looks like memcached: use memcached://{memcached} or --protocol memcached-text");
    let is_text = format!(
        "; this looks like memcached's text protocol: use memcached://{text_only} or --protocol memcached-text"
    );
    let table = [
        (redis, "--protocol memcached-text", &is_redis),
        (redis, "--protocol memcached-text --no-preload", &is_redis),
        (redis, "--protocol memcached-meta", &is_redis),
        (redis, "--protocol memcached-meta --no-preload", &is_redis),
        (redis, "--protocol memcached-binary", &is_redis),
        (redis, "--protocol memcached-binary --no-preload", &is_redis),
        (text_only, "--protocol memcached-binary", &is_text),
        (memcached, "--protocol resp2", &is_memcached),
        (memcached, "--protocol resp2 --no-preload", &is_memcached),
        (memcached, "--protocol resp3", &is_memcached),
        (memcached, "--protocol ping", &is_memcached),
    ];
    for (address, flags, hint) in table {
        let begun = Instant::now();
        let output = run(address, flags);
        assert_eq!(output.exit, 5, "{flags}");
        // The limit of a server without a reply is 8 s.
        assert!(begun.elapsed() < Duration::from_secs(6), "{flags}");
        let last = output.said.lines().last().unwrap();
        assert!(last.starts_with("error: ") && last.contains(address) && last.ends_with(hint), "{flags}");
    }
    // What is right is not doubted.
    let binary = "--protocol memcached-binary";
    for (address, flags) in [(redis, "--protocol resp3"), (memcached, ""), (memcached, binary)] {
        let output = run(address, &format!("{flags} --allow=BROKEN,LOAD,CLIENT,DATA"));
        assert_eq!((output.exit, output.said.contains("looks like")), (0, false));
    }
}

/// A preload that fails names the servers it was meant for.
#[test]
fn a_failed_preload_names_its_servers() {
    let servers: Vec<Server> = (0..5).map(|_| Server::reference("")).collect();
    let too_large = "--value-size 2MiB";
    let names: Vec<&str> = servers.iter().map(|server| server.address.as_str()).collect();
    let failed = "preload failed: 0 of 100 keys confirmed on ";
    run(names[0], too_large).is(5, &[&format!("{failed}{}; the server rejects ", names[0])]);
    let all = format!("-s {} {too_large}", names[1..].join(" -s "));
    run(names[0], &all).is(5, &[&format!("{failed}{} and 2 more", names[..3].join(", "))]);
}

/// A command that the server does not know is quoted in one form, whatever else was sent and whether it was.
#[test]
fn unknown_commands_have_one_message() {
    let Some(redis) = Server::redis("") else { return };
    let address = &redis.address;
    let expected = format!(
        "error: {address} gave no valid reply to HGETT (it said: ERR unknown command 'HGETT', with args beginning with: "
    );
    for flags in ["", "--no-preload", "--mix get=1,raw=1", "--mix get=1,raw=1 --no-preload"] {
        let output = run(address, &format!("--protocol resp3 --command 'HGETT {{key}} f' {flags}"));
        assert_eq!(output.exit, 5, "{flags}");
        assert!(output.said.lines().last().unwrap().starts_with(&expected), "{flags}");
    }
}

/// Redirections without `--cluster`, and a password that is missing.
#[test]
fn redis_requirements_are_named() {
    let Some(cluster) = Cluster::start() else { return };
    let node = &cluster.nodes[0].address;
    let output = run(node, "--protocol resp2");
    output.is(5, &["MOVED "]);
    assert!(output.said.ends_with("; this is a cluster node: use --cluster\n"));
    let plain = format!("-s {node} --protocol resp2 --no-preload -n 1000 --warmup 0s -c 10");
    let output = ended(&format!("run --progress=none {plain}"));
    // Lines are broken between words.
    let words = output.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the servers are nodes of a cluster: use --cluster"));
    let Some(locked) = Server::redis("--requirepass hunter2") else { return };
    for protocol in ["resp2", "resp3"] {
        let output = run(&locked.address, &format!("--protocol {protocol}"));
        assert_eq!(output.exit, 5);
        assert!(output.said.ends_with("; the server requires a password: use --password @FILE\n"));
    }
}
