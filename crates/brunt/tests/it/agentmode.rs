//! `brunt mutilate -A` and the masters that lead it: who sends how much, what the report holds, and which of them is lost.

use crate::fleet::AuthFolder;
use crate::server::{
    Ended, PROGRAM, Process, Server, begin, brunt, ended, in_namespace, listening, temporary,
};
use rustix::process::{Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ChildStderr;
use std::time::{Duration, Instant};

/// Who is gone is named within this time: what is promised, and as much again for a host that others use.
const NAMED: Duration = Duration::from_secs(10);
/// How a peer begins that speaks ZeroMQ: the signature of its protocol (ZMTP), of version 2 or later.
const ZEROMQ: [u8; 10] = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F];

/// An agent that waits on a port of its own.
struct Agent {
    process: Process,
    port: String,
    said: BufReader<ChildStderr>,
}

impl Agent {
    /// It sleeps where nothing is due, for other tests run beside this one.
    fn wait(flags: &str) -> Self {
        let mut child = begin(brunt(&format!("mutilate -A -p 0 -B {flags}")));
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
            if line.starts_with("note: agent: listening on ")
                && let Some((_, port)) = line.trim().rsplit_once(':')
            {
                break port.to_owned();
            }
        };
        Self { process: Process(child), port, said }
    }

    fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn flag(agent: &&Self) -> String {
        format!(" -a {}", agent.name())
    }

    /// The first line from now on that holds this.
    fn await_line(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it never said '{part}'");
            if line.contains(part) {
                return line;
            }
        }
    }
}

/// A master of these agents, at its end. With evenly spaced requests their number is known beforehand.
fn master(server: &Server, agents: &[&Agent], options: &str) -> Ended {
    let agents: String = agents.iter().map(Agent::flag).collect();
    ended(&format!("mutilate -s {server}{agents} -B -i fixed -t 1 -r 100 {options}"))
}

/// The same that comes to a report.
fn led(server: &Server, agents: &[&Agent], options: &str) -> Ended {
    let ended = master(server, agents, options);
    assert_eq!(ended.exit, 0);
    ended
}

/// The master sends its part and the agents theirs, by weight; every key is stored once; the counters are everyone's and the rows the
/// master's.
#[test]
fn masters_and_agents_add_up() {
    let server = Server::reference("");
    let (light, heavy) = (Agent::wait("-T 2"), Agent::wait("-l 3"));
    let path = temporary("samples");
    let led = led(&server, &[&light, &heavy], &format!("-q 2000 -Q 200 -C 3 -D 2 -c 2 -v --save {path}"));
    let (shown, said) = (&led.out, &led.said);
    let saved = path.text();
    let statistics = server.statistics();
    assert_eq!(["cmd_get", "cmd_set", "get_misses"].map(|name| statistics[name]), [2_000, 100, 0]);
    // Single requests are the master's, and so is the row, which 200 of them do not bear to the 99th percentile.
    assert_eq!(saved.lines().count(), 200);
    assert!(said.contains("of read and what lies above it rest on fewer than 10 of "));
    let total = shown.lines().find_map(|line| line.strip_prefix("Total QPS = ")).unwrap_or_default();
    let count: f64 = total.split(['(', ' ']).nth(2).unwrap_or_default().parse().unwrap_or_default();
    // Whatever this host had time for within the window: more than the master's own.
    assert!((201.0..=2_000.0).contains(&count));
    assert!(said.contains(": 2 threads of weight 1") && said.contains(": 1 threads of weight 3"));
    assert_eq!(said.matches(": clock known to ").count(), 2);
}

/// Without threads of its own a master has rows all the same, if it asks for those of its agents.
#[test]
fn rows_of_agents_are_added_up() {
    let server = Server::reference("");
    let (one, two) = (Agent::wait("-T 2"), Agent::wait(""));
    let row = |led: &Ended| -> f64 {
        let row = led.out.lines().find_map(|line| line.strip_prefix("read")).unwrap_or_default();
        row.split_whitespace().nth(2).and_then(|least| least.parse().ok()).unwrap_or_default()
    };
    let sampled = led(&server, &[&one, &two], "-q 1500 -T 0 --agent-sampling");
    assert!(row(&sampled) > 0.0 && !sampled.said.contains("fewer than 10 of"));
    assert_eq!(server.statistics()["cmd_get"], 1_500);
    let bare = led(&server, &[&one, &two], "-q 500 -T 0 --noload");
    assert!(row(&bare) == 0.0 && bare.said.contains("warning: --threads: with 0 no row has a latency"));
    assert_eq!(server.statistics()["cmd_get"], 2_000);
}

/// A row for each rate; the slow one is the master's alone, and the agent waits for the next.
#[test]
fn masters_lead_scans() {
    let server = Server::reference("");
    let agent = Agent::wait("");
    let led = led(&server, &[&agent], "-Q 500 -C 2 --scan 400:1200:400");
    let rows: Vec<&str> = led.out.lines().filter(|line| line.starts_with("read")).collect();
    assert!(rows.len() == 3 && rows[2].ends_with("     1200"));
    let statistics = server.statistics();
    assert_eq!((statistics["cmd_get"], statistics["cmd_set"]), (2_400, 100));
}

/// An agent that dies is named, and one whose master dies, or loses another agent, waits for the next.
#[test]
fn dead_agents_are_named_and_dead_masters_abandoned() {
    let server = Server::reference("");
    let (lasting, dying) = (Agent::wait(""), Agent::wait(""));
    let long = |agents: &[&Agent]| {
        let agents: String = agents.iter().map(Agent::flag).collect();
        begin(brunt(&format!("mutilate -s {server}{agents} -B -t 60 -q 500")))
    };
    let run = long(&[&lasting, &dying]);
    server.await_gets(1);
    kill_process(dying.process.pid(), Signal::KILL).unwrap();
    let since = Instant::now();
    let output = Ended::from(run);
    assert!(since.elapsed() < NAMED, "{:?}", since.elapsed());
    output.is(255, &[&format!("mutilate: agent {} ", dying.name())]);
    assert_eq!(output.out, "");
    let mut run = long(&[&lasting]);
    let before = server.statistics()["cmd_get"];
    server.await_gets(before + 50);
    run.kill().unwrap();
    run.wait().unwrap();
    let before = server.statistics()["cmd_get"];
    led(&server, &[&lasting], "-q 500 --noload");
    assert!(server.statistics()["cmd_get"] >= before + 500);
}

/// Only who has the folder leads, and only who speaks our protocol.
#[test]
fn foreign_peers_are_recognized() {
    let server = Server::reference("");
    let folder = AuthFolder::new();
    let other_token = folder.with_other_token();
    let [right, wrong] = [&folder, &other_token].map(AuthFolder::path);
    let mut agent = Agent::wait(&format!("--auth {right}"));
    let name = agent.name();
    for (options, reason) in [
        (format!("-q 100 --auth {wrong}"), "rejected this controller: wrong token"),
        ("-q 100".to_owned(), "sent no handshake; if it has --auth, set --auth here too"),
    ] {
        let output = master(&server, &[&agent], &options);
        assert_eq!(output.said.trim(), format!("mutilate: agent {name} {reason}"));
        assert_eq!(output.exit, 255);
    }
    // A master of mutilate itself.
    let mut stranger = TcpStream::connect(&name).unwrap();
    stranger.write_all(&ZEROMQ).unwrap();
    let said = agent.await_line("ZeroMQ");
    assert!(said.starts_with("note: agent: ") && said.contains("agents of brunt work with brunt alone"));
    led(&server, &[&agent], &format!("-q 100 --auth {right}"));
    // An agent of mutilate itself, which would wait for an answer for ever.
    let foreign = listening(|mut socket, _| {
        socket.write_all(&ZEROMQ).unwrap();
        // Until the master has had enough.
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let port = foreign.rsplit_once(':').unwrap().1;
    let output = ended(&format!("mutilate -s {server} -a 127.0.0.1 -p {port}"));
    assert!(output.said.starts_with(&format!("mutilate: agent 127.0.0.1:{port} speaks ZeroMQ")));
    assert_eq!(output.exit, 255);
}

/// An agent that any host may lead says so, also where it is to be quiet; what the master decides has no effect there; nothing is written
/// to standard output.
#[test]
fn open_agents_warn() {
    let mut child = begin(brunt("mutilate -A -p 0 -t 3"));
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = || said.next().unwrap().unwrap();
    assert_eq!(next(), "warning: --time: without effect on an agent; the master decides");
    let warning = next();
    assert!(
        warning.starts_with("warning: unauthenticated agent: any host that reaches ")
            && warning.contains("can direct its load")
    );
    child.kill().unwrap();
    assert_eq!(Ended::from(child).out, "");
    let output = ended("mutilate -A -p 0 --quiet --auth /nowhere");
    assert!(output.said.starts_with("mutilate: --auth: '/nowhere/token' cannot be read"));
    assert_eq!(output.exit, 255);
}

/// The largest example of mutilate's own documentation: eight hosts, each a network of its own with a name, led by this one. `$1` is the
/// program, `$2` where samples go, and what follows the options behind those of the example. While it runs connections are counted by the
/// host that holds them, and what was seen most often of all of them counts: agents that find no memory for rings connect twice, and
/// those that are behind have connections when the master has none any more.
const EIGHT_HOSTS: &str = r#"
set -e
mount -t tmpfs none /run && mkdir -p /run/netns
ip link set lo up && ip link add br0 type bridge && ip addr add 10.99.0.1/24 dev br0 && ip link set br0 up
if [ $# = 1 ]; then exec "$@"; fi
program=$1; samples=$2; shift 2
echo '10.99.0.1 memcached_server' > /run/hosts
for n in 1 2 3 4 5 6 7 8; do echo "10.99.0.1$n agent$n"; done >> /run/hosts
mount --bind /run/hosts /etc/hosts
trap 'kill $started; wait' EXIT
for n in 1 2 3 4 5 6 7 8; do
    ip netns add agent$n && ip link add v$n type veth peer name eth0 netns agent$n
    ip link set v$n master br0 up && ip -n agent$n link set lo up
    ip -n agent$n addr add 10.99.0.1$n/24 dev eth0 && ip -n agent$n link set eth0 up
    ip netns exec agent$n "$program" mutilate -T 16 -A 2> /run/agent$n.log &
    started="$started $!"
done
"$program" serve --listen 10.99.0.1:11211 > /run/server.log &
started="$started $!"
for try in $(seq 400); do if grep -q listening /run/server.log; then break; fi; sleep 0.05; done
"$program" mutilate -s memcached_server --loadonly
"$program" mutilate -s memcached_server --noload -B -T 16 -Q 1000 -D 4 -C 4 \
    -a agent1 -a agent2 -a agent3 -a agent4 -a agent5 -a agent6 -a agent7 -a agent8 -c 4 --save "$samples" "$@" &
master=$!
while kill -0 $master 2> /dev/null; do
    ss -Htn state established '( sport = :11211 )' | sed 's/:[0-9]* *$//; s/.* //' | sort | uniq -c | tr -s ' \n' ' ' >> /run/seen
    echo >> /run/seen
    sleep 0.1
done
wait $master
sort /run/seen | uniq -c | awk '{ print NF, $1, $0 }' | sort -n -k 1,1 -k 2,2 | tail -1 | sed 's/^[0-9]* [0-9]* *[0-9]*/connections/'
python3 -c '
import socket
server = socket.create_connection(("10.99.0.1", 11211))
server.sendall(b"stats\r\n")
for line in server.makefile():
    if "cmd_get" in line: print(line.strip())
    if "END" in line: break
'
"#;

#[test]
fn eight_hosts_with_sixteen_threads_each() {
    let Some(mut command) = in_namespace("-n -m", EIGHT_HOSTS) else { return };
    let path = temporary("samples");
    command.args([PROGRAM, &path]);
    // As printed, where the machine is ours; else so few requests that their number is known beforehand.
    let is_full = std::env::var_os("BRUNT_ACCURACY").is_some_and(|length| length == "full");
    let options = if is_full { "-q 200000 -t 5" } else { "-q 5000 -t 2 -i fixed" };
    let output = Ended::from(command.args(options.split(' ')));
    let (shown, said) = (&output.out, &output.said);
    assert_eq!(output.exit, 0);
    let saved = path.text();
    eprintln!("{shown}{said}");
    let held = shown.lines().find_map(|line| line.strip_prefix("connections ")).unwrap_or_default();
    let words: Vec<&str> = held.split_whitespace().collect();
    let of = |host: &str| words.chunks(2).find(|pair| pair[1] == host).map_or("0", |pair| pair[0]);
    for host in 1..=8 {
        assert_eq!(of(&format!("10.99.0.1{host}")), "64");
    }
    // The master's own, beside one that asks for statistics.
    assert!(["64", "65"].contains(&of("10.99.0.1")));
    assert!(shown.contains("\nMisses = 0 (0.0%)\n"));
    if !is_full {
        // The master's own, and what everyone sent.
        assert_eq!(saved.lines().count(), 2_000);
        assert!(shown.contains("\nSTAT cmd_get 10000\n"));
    }
}
