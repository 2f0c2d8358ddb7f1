//! A cluster of three real nodes: keys live where its map says, redirections are followed while slots move, and a node that
//! is gone is the trouble of its own slots alone.

use crate::fleet::Agent;
use crate::measured::Measured;
use crate::server::{Server, begin, brunt, ended, ended_run, lasting_port};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};

/// Whatever is waited for comes sooner, or never.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first slot of each node, and where the last one's end.
const BOUNDS: [u16; 4] = [0, 5_461, 10_923, 16_384];

/// Three nodes that know each other, each with a third of the slots, and maybe one behind them without any.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
    /// What each calls itself.
    ids: Vec<String>,
}

impl Cluster {
    /// `None` (and a word on stderr) where there is no redis-server, and that was allowed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_beside(0)
    }

    /// The same beside so many nodes without slots.
    fn start_beside(idle: usize) -> Option<Self> {
        let mut nodes = Vec::new();
        let mut buses = Vec::new();
        for _ in 0..BOUNDS.len() - 1 + idle {
            let bus = lasting_port().to_string();
            nodes.push(Server::redis_node(&bus)?);
            buses.push(bus);
        }
        let asked = |node: &Server, question: &str| say(node, &[question]).remove(0);
        for (place, node) in nodes.iter().enumerate() {
            // Who has been configured first gives way; without numbers of their own they would have to agree on that.
            let configured = format!("CLUSTER SET-CONFIG-EPOCH {}", place + 1);
            let (host, port) = nodes[0].address.split_once(':').unwrap();
            let met = format!("CLUSTER MEET {host} {port} {}", buses[0]);
            let owned = BOUNDS.get(place + 1).map(|end| {
                let (first, last) = (BOUNDS[place], end - 1);
                format!("CLUSTER ADDSLOTSRANGE {first} {last}")
            });
            for command in [Some(configured), owned, Some(met)].into_iter().flatten() {
                assert_eq!(asked(node, &command), "OK", "{command}");
            }
        }
        let ids = nodes.iter().map(|node| asked(node, "CLUSTER MYID")).collect();
        let cluster = Self { nodes, ids };
        let knows_all = |node: &Server| {
            let info = say(node, &["CLUSTER INFO"]).remove(0);
            let known = format!("cluster_known_nodes:{}", 3 + idle);
            ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_size:3", &known]
                .iter()
                .all(|line| info.contains(line))
        };
        wait_until("the nodes know each other", || cluster.nodes.iter().all(knows_all));
        Some(cluster)
    }

    /// A run against it, by way of its second node.
    pub(crate) fn run(&self, flags: &str) -> Child {
        let place = &self.nodes[1].address;
        begin(brunt(&format!("run --cluster --progress=none -o json:- -s {place} {flags}")))
    }

    /// Waits until a run has stored its keys.
    pub(crate) fn await_keys(&self, keys: usize) {
        let held = |node: &Server| say(node, &["DBSIZE"])[0].parse::<usize>().unwrap();
        wait_until("every key is stored", || self.nodes.iter().map(held).sum::<usize>() == keys);
    }

    /// One count over all nodes, of a command: `calls` or `rejected_calls`.
    fn count(&self, command: &str, what: &str) -> u64 {
        self.nodes.iter().map(|node| command_counts(node, command).get(what).copied().unwrap_or(0)).sum()
    }

    /// Moves these slots from one node to another, keys and all, while a run goes on; between the keys and the slots, and
    /// behind the slots, it waits until the run has noticed.
    pub(crate) fn move_slots(&self, slots: &[u16], from: usize, to: usize) {
        let each = |node: usize, command: &dyn Fn(u16) -> String| {
            let commands: Vec<String> = slots.iter().map(|slot| command(*slot)).collect();
            let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
            say(&self.nodes[node], &commands)
        };
        let all_ok = |replies: Vec<String>| assert!(replies.iter().all(|reply| reply == "OK"), "{replies:?}");
        all_ok(each(to, &|slot| format!("CLUSTER SETSLOT {slot} IMPORTING {}", self.ids[from])));
        all_ok(each(from, &|slot| format!("CLUSTER SETSLOT {slot} MIGRATING {}", self.ids[to])));
        let (host, port) = self.nodes[to].address.split_once(':').unwrap();
        for keys in each(from, &|slot| format!("CLUSTER GETKEYSINSLOT {slot} 1000")) {
            let keys = keys.split_whitespace().collect::<Vec<_>>();
            for batch in keys.chunks(10) {
                let command = format!("MIGRATE {host} {port} \"\" 0 5000 KEYS {}", batch.join(" "));
                assert_eq!(say(&self.nodes[from], &[&command]), ["OK"]);
            }
        }
        let asked = self.count("asking", "calls");
        wait_until("keys are asked for that are on their way", || self.count("asking", "calls") > asked + 5);
        let moved = || {
            let errors = say(&self.nodes[from], &["INFO errorstats"]).remove(0);
            let line = errors.lines().find_map(|line| line.strip_prefix("errorstat_MOVED:count="));
            line.map_or(0, |count| count.trim().parse::<u64>().unwrap())
        };
        // A map that an earlier move had it ask for may come now, and then it asks in no wrong place.
        let maps = || self.count("cluster|shards", "calls");
        let (before, maps_before) = (moved(), maps());
        let others = (0..self.nodes.len()).filter(|node| ![to, from].contains(node));
        for node in [to, from].into_iter().chain(others) {
            all_ok(each(node, &|slot| format!("CLUSTER SETSLOT {slot} NODE {}", self.ids[to])));
        }
        wait_until("keys are asked for where they were", || moved() > before || maps() > maps_before);
    }
}

/// What a node answers to each of these commands; an array is its elements with blanks between them.
fn say(node: &Server, commands: &[&str]) -> Vec<String> {
    let mut stream = TcpStream::connect(&node.address).unwrap();
    stream.write_all(format!("{}\r\nQUIT\r\n", commands.join("\r\n")).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut rest = text.as_str();
    commands.iter().map(|_| one_reply(&mut rest)).collect()
}

fn one_reply(rest: &mut &str) -> String {
    let (head, behind) = rest.split_once("\r\n").unwrap();
    *rest = behind;
    let (kind, body) = head.split_at(1);
    match kind {
        "$" => {
            let (value, behind) = rest.split_at(body.parse().unwrap());
            *rest = &behind[2..];
            value.to_owned()
        }
        "*" => (0..body.parse::<usize>().unwrap()).map(|_| one_reply(rest)).collect::<Vec<_>>().join(" "),
        _ => body.to_owned(),
    }
}

/// The counts of a command by a node's own account.
fn command_counts(node: &Server, command: &str) -> BTreeMap<String, u64> {
    let info = say(node, &["INFO commandstats"]).remove(0);
    let head = format!("cmdstat_{command}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_default();
    let pair = |pair: &str| {
        let (name, count) = pair.split_once('=')?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    };
    line.split(',').filter_map(pair).collect()
}

/// Waits until this is so; fails after [`PATIENCE`].
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Ends a run now, while which slots have moved: every redirect was followed, nothing was lost, nothing failed, every key was found; and
/// what we say was sent is what the nodes say they got.
fn finish(cluster: &Cluster, run: Child) -> Measured {
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let measured = Measured::of(run);
    for bad in ["error", "timeout", "mismatch", "lost"] {
        assert_eq!(measured.over_phases(&format!("requests.{bad}")), 0, "{bad}");
    }
    assert_eq!(["keys.miss", "keys.failed"].map(|bad| measured.over_phases(bad)), [0; 2]);
    let redirected = |key: &str| measured.count(&format!("events.cluster.redirections.{key}"));
    let [moved, ask, again] = ["moved", "ask", "try_again"].map(redirected);
    let hops = moved + ask + again;
    assert!(moved > 0 && ask > 0);
    let servers = measured.at("servers").as_array().unwrap();
    let sum = |key: &str| servers.iter().map(|server| server[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("redirected"), sum("slots"), sum("failed")), (hops, 16_384, 0));

    // Each command was carried out once for each part of each operation, and turned away once for each hop.
    let ops = [("get", "get"), ("set", "set"), ("mget", "mget"), ("STRLEN", "strlen"), ("PING", "ping")];
    let (mut sent, mut rejected) = (0, 0);
    for (op, command) in ops {
        let [calls, turned_away] = ["calls", "rejected_calls"].map(|what| cluster.count(command, what));
        let of_phase = |path: &str| measured.count_or_0(&format!("counts.phases.{path}"));
        // The preload stores, and some are asked before the load, when no slot has moved.
        let before = match op {
            "set" => of_phase("preload.requests.wire_requests"),
            "get" => of_phase("warmup.ops.get"),
            "mget" => of_phase("warmup.requests.wire_requests") - of_phase("warmup.ops.get"),
            _ => 0,
        };
        let ours = before + measured.count_or_0(&format!("ops.{op}.counts.requests.wire_requests"));
        assert_eq!(calls + turned_away, ours, "{op}");
        sent += ours;
        rejected += turned_away;
    }
    assert_eq!((sent, rejected), (measured.over_phases("requests.wire_requests"), hops));
    let asking = cluster.count("asking", "calls");
    assert!(ask <= asking && asking <= ask + again, "{asking} of {ask}");
    measured
}

/// To other nodes, and to one that had none.
#[test]
fn moving_slots_loses_no_request() {
    for (version, mix) in [("resp2", "get=6,set=2,mget=2"), ("resp3", "get=6,set=1,mget=1,raw=1+1")] {
        let Some(cluster) = Cluster::start_beside(1) else { return };
        let flags = format!("--protocol {version} -t 60s --warmup 0s -c 8 --depth 4 -T 1");
        let keys = format!("--keys 20000 --mix {mix} --multiget 4 --verify --value-size 60");
        let commands = "--command 'STRLEN {key}' --command PING";
        let commands = if mix.contains("raw") { commands } else { "" };
        let run = cluster.run(&format!("{flags} {keys} {commands}"));
        cluster.await_keys(20_000);
        // From the first node to the second, from the third to the first, and to the one that had none.
        for (first, from, to) in [(0, 0, 1), (200, 0, 1), (16_000, 2, 0), (6_000, 1, 3)] {
            cluster.move_slots(&(first..first + 200).collect::<Vec<_>>(), from, to);
        }
        let measured = finish(&cluster, run);
        assert_eq!(measured.json["events"]["error_replies"], serde_json::json!({}));
        assert_eq!(measured.json["events"]["value_faults"], serde_json::json!([]));
        let unfollowed = ["too_many", "unknown"].map(|key| format!("events.cluster.redirections.{key}"));
        assert_eq!(unfollowed.map(|path| measured.count(&path)), [0; 2]);
        let late = &cluster.nodes[3].address;
        let servers = measured.at("servers").as_array().unwrap();
        let row = servers.iter().find(|server| server["server"] == late.as_str()).unwrap();
        assert!(row["slots"] == 200 && row["answered"].as_u64() > Some(5), "{row}");
        let note = format!("note: {late} own no hash slots;");
        assert!([" slots", "redirections  moved ", &note].iter().all(|part| measured.text.contains(part)));
    }
}

/// Agents learn the map, each by itself.
#[test]
fn agents_load_a_cluster() {
    let Some(cluster) = Cluster::start() else { return };
    let (one, two) = (Agent::wait("-T 2"), Agent::wait("-T 1"));
    let agents = format!("--agent {one} --agent {two} --measure-rate 200");
    let load = "--protocol resp3 -t 60s --warmup 0s -c 9 --depth 4 --wait sleep";
    let keys = "--keys 6000 --mix get=6,set=2,mget=2 --multiget 4 --set measure-connections=3";
    let run = cluster.run(&format!("{agents} {load} {keys}"));
    cluster.await_keys(6_000);
    cluster.move_slots(&(0..200).collect::<Vec<_>>(), 0, 1);
    let measured = finish(&cluster, run);
    assert!(measured.count("client.classes.measure.counts.requests.completed") > 0);
    let workers = |path: &str| measured.at(path).as_array().unwrap().len();
    // The controller's own worker beside those of the agents.
    assert_eq!((workers("client.agents"), workers("client.workers")), (2, 4));
}

/// One node stands still: what lives there fails, and the others notice nothing.
#[test]
fn failed_nodes_do_not_affect_others() {
    let Some(cluster) = Cluster::start() else { return };
    let flags = "--protocol resp3 -t 3s --warmup 0s -c 6 --depth 4 -T 1 -r 2000";
    let run =
        cluster.run(&format!("{flags} --keys 5000 --mix get --wait sleep --timeout 400ms --set drain=1s"));
    cluster.await_keys(5_000);
    let gets = |node: &Server| command_counts(node, "get").get("calls").copied().unwrap_or(0);
    let gone = &cluster.nodes[2];
    wait_until("every node is asked", || cluster.nodes.iter().all(|node| gets(node) > 50));
    kill_process(gone.pid(), Signal::STOP).unwrap();
    let measured = Measured::of(run);
    kill_process(gone.pid(), Signal::CONT).unwrap();
    let servers = measured.at("servers").as_array().unwrap();
    assert_eq!(servers.len(), 3);
    for server in servers {
        let is_gone = server["server"] == gone.address.as_str();
        assert_eq!(server["failed"].as_u64().unwrap() > 0, is_gone, "{server}");
        assert!(server["answered"].as_u64().unwrap() > 1_000, "{server}");
    }
    // What failed was sent to that node, or still waits for it.
    let [timeout, lost, unsent] = ["timeout", "lost", "unsent"].map(|key| measured.requests(key));
    assert!(timeout > 0 && unsent > 0);
    let failed: u64 = servers.iter().map(|server| server["failed"].as_u64().unwrap()).sum();
    assert_eq!((timeout + lost, measured.requests("error")), (failed, 0));
    let outages = measured.at("events.outages").as_array().unwrap();
    assert!(!outages.is_empty() && outages.iter().any(|outage| outage["server"] == gone.address.as_str()));
    // The others have a third of the requests each, and all of them are answered.
    let third = measured.requests("scheduled") as f64 / 3.0;
    let completed = measured.requests("completed") as f64;
    assert!(completed > 2.0 * third * 0.95, "{completed} of {third} each");
}

/// A server that is no node of a cluster, or is not there, is named in one line; what only a single server has is refused.
#[test]
fn servers_without_cluster_mode_are_named() {
    let Some(server) = Server::redis("") else { return };
    let unserved = format!("127.0.0.1:{}", lasting_port());
    let no_cluster = format!(
        "{server} returned no cluster slot map: it answers \"ERR This instance has cluster support disabled\""
    );
    let refused = format!(
        "cannot connect to {unserved}: Connection refused (os error 111); start it, or give its port (brunt run without -s starts a server of its own)"
    );
    let table: [(&str, i32, &str); 4] = [
        (&format!("-s {server}"), 5, &no_cluster),
        (&format!("-s {unserved}"), 5, &refused),
        // Who has something to say says more than who is not there.
        (&format!("-s {unserved} -s {server}"), 5, &no_cluster),
        (
            &format!("-s {server} --set database=3"),
            2,
            "database cannot be used with --cluster, which has database 0 only",
        ),
    ];
    for version in ["resp2", "resp3"] {
        for (flags, exit, message) in table {
            let output = ended_run(&format!("--cluster --protocol {version} {flags}"));
            output.is_line(exit, &[message]);
        }
    }
}

/// Slots without a node fail by what the nodes say of them, and are counted by its name.
#[test]
fn unassigned_slots_fail_by_name() {
    let Some(cluster) = Cluster::start() else { return };
    for (place, node) in cluster.nodes.iter().enumerate() {
        // A slot is forgotten by each for itself; the last of every node's here.
        for end in &BOUNDS[1..] {
            let range = format!("CLUSTER DELSLOTSRANGE {} {}", end - 500, end - 1);
            assert_eq!(say(node, &[&range]), ["OK"], "{place}");
        }
    }
    let flags = "--protocol resp3 -n 5000 --warmup 0s --keys 5000 --mix get --no-preload";
    let measured = Measured::of(cluster.run(flags));
    assert!(measured.text.contains("note: 1500 of the 16384 hash slots are unassigned"));
    let errors = measured.requests("error");
    assert!(errors > 0);
    assert_eq!(measured.json["events"]["error_replies"], serde_json::json!({ "CLUSTERDOWN": errors }));
    assert_eq!(measured.count("events.cluster.slots.unserved"), 1_500);
    assert_eq!(measured.requests("completed") + errors, 5_000);
}

/// Nodes that say nothing are asked one after another: of a thousand no more than thirty, however many a plan names.
#[test]
fn few_silent_nodes_are_asked() {
    // Every address of this network is here.
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (asked, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            // The test may have ended.
            let _ = asked.send(socket.unwrap().local_addr().unwrap());
        }
    });
    let servers: Vec<String> = (1..=40).map(|host| format!("-s 127.0.0.{host}:{port}")).collect();
    let output = ended(&format!("run --cluster --protocol resp2 -c 40 {}", servers.join(" ")));
    assert_eq!(output.exit, 5);
    let asked: BTreeSet<_> = found.try_iter().collect();
    assert_eq!(asked.len(), 30);
}
