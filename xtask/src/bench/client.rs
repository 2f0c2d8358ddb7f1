//! The clients that are compared: how each is asked for the same load, and where it says how many requests it made.
//!
//! Not a ranking of features: what each does beside sending gets is its own affair. Invariant: a client gets one thread,
//! one processor, the shape's connections and depth, and keys that are all there; one that cannot be asked for a shape has
//! no row in it.

use super::server::{Protocol, UNPADDED_PREFIX};
use super::shape::{EPOLL, PEAK, Policy, Shape, URING};
use super::{KEY_BYTES, KEYS};
use serde_json::Value;
use std::path::PathBuf;

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Floor,
    Brunt,
    Peer(&'static Peer),
}

/// One row: a program under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) kind: Kind,
    pub(super) program: PathBuf,
    /// Of a peer: that of the floor which its system calls are nearest to.
    pub(super) policy: Policy,
    /// Of brunt: the options that ask for the policy.
    pub(super) options: String,
}

/// Another load generator.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) protocol: Protocol,
    nearest: Policy,
    has_pipelines: bool,
    /// Its command line; [`Load::fill`] replaces what stands in braces.
    arguments: &'static str,
    /// The text of the file that `{conf}` stands for.
    configuration: &'static str,
    /// A command line to be run once, before the first run.
    pub(super) preparation: Option<&'static str>,
    /// It takes a number of requests and no time.
    pub(super) takes_requests: bool,
    /// Requests it says it made, out of what it printed and what it wrote to the file `{out}`.
    says: fn(&str, &str) -> Option<u64>,
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Peer {}

const fn peer(name: &'static str, arguments: &'static str, says: fn(&str, &str) -> Option<u64>) -> Peer {
    Peer {
        name,
        protocol: Protocol::Memcached,
        nearest: EPOLL,
        has_pipelines: true,
        arguments,
        configuration: "",
        preparation: None,
        takes_requests: false,
        says,
    }
}

/// Those that can be asked.
pub(super) static PEERS: [Peer; 5] = [
    // It does not pad numbers: it asks for the upper half of the padded keys.
    peer(
        "memtier_benchmark",
        "--server=127.0.0.1 --port={port} --protocol=memcache_text --threads=1 --clients={connections} \
         --pipeline={depth} --test-time={seconds} --ratio=0:1 --key-prefix={zeros} --key-minimum={keys} \
         --key-maximum={last} --key-pattern=R:R --hide-histogram --json-out-file={out}",
        memtier,
    ),
    Peer {
        preparation: Some("-s 127.0.0.1:{port} -K 30 -V 200 -r {keys} --loadonly"),
        ..peer(
            "mutilate",
            "-s 127.0.0.1:{port} -T 1 -c {connections} -d {depth} -t {seconds} -K 30 -V 200 -r {keys} -u 0 --noload",
            mutilate,
        )
    },
    // memaslap as Debian names it. It stores what it requests itself, in every run.
    Peer {
        has_pipelines: false,
        // Without a line for sets it makes sets only.
        configuration: "key\n30 30 1\nvalue\n200 200 1\ncmd\n0 0\n1 1\n",
        ..peer(
            "memcaslap",
            "-s 127.0.0.1:{port} -T 1 -c {connections} -t {seconds}s -w 1k -F {conf}",
            memaslap,
        )
    },
    Peer {
        nearest: URING,
        // It stores its keys itself, in every run.
        configuration: "[general]\nduration = \"{seconds}s\"\nwarmup = \"0s\"\nthreads = 1\n\
                        [target]\nendpoints = [\"127.0.0.1:{port}\"]\nprotocol = \"memcache\"\n\
                        [connection]\nconnections = {connections}\npipeline_depth = {depth}\n\
                        [workload]\nprefill = true\n[workload.keyspace]\nlength = 30\ncount = {keys}\n\
                        [workload.commands]\nget = 100\nset = 0\n[workload.values]\nlength = 200\n\
                        [admin]\nformat = \"json\"\n",
        ..peer("cachecannon", "{conf}", cachecannon)
    },
    // Its own test of gets takes keys of 16 bytes; a command of ours has the digits that it draws filled up to 30.
    Peer {
        protocol: Protocol::Redis,
        takes_requests: true,
        ..peer(
            "redis-benchmark",
            "-h 127.0.0.1 -p {port} -c {connections} -P {depth} -n {requests} -r {keys} -q \
             GET 000000000000000000__rand_int__",
            // It prints a rate, and no count.
            |_, _| None,
        )
    },
];

/// What a command line or a configuration is filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    pub(super) shape: Shape,
    pub(super) port: u16,
    pub(super) seconds: u64,
    /// For those that take no time.
    pub(super) requests: u64,
    /// Paths of the files that a client reads and writes.
    pub(super) conf: &'a str,
    pub(super) out: &'a str,
}

impl Load<'_> {
    /// Replaces what stands in braces.
    pub(super) fn fill(&self, text: &str) -> String {
        let padding = "0".repeat(KEY_BYTES - KEYS.to_string().len());
        [
            ("{connections}", self.shape.connections.to_string()),
            ("{depth}", self.shape.depth.to_string()),
            ("{port}", self.port.to_string()),
            ("{seconds}", self.seconds.to_string()),
            ("{milliseconds}", (self.seconds * 1000).to_string()),
            ("{requests}", self.requests.to_string()),
            ("{keys}", KEYS.to_string()),
            ("{last}", (2 * KEYS - 1).to_string()),
            ("{zeros}", padding),
            ("{prefix}", UNPADDED_PREFIX.to_owned()),
            ("{conf}", self.conf.to_owned()),
            ("{out}", self.out.to_owned()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

/// What a client says of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClientReport {
    pub(super) requests: Option<u64>,
    pub(super) syscalls: Option<f64>,
    /// User and system time of the window it measured.
    pub(super) window_cpu_ns: Option<[u64; 2]>,
    /// Requests made before those, which the server counts too.
    pub(super) before: u64,
}

impl Client {
    pub(super) fn protocol(&self) -> Protocol {
        match self.kind {
            Kind::Peer(peer) => peer.protocol,
            Kind::Floor | Kind::Brunt => Protocol::Memcached,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Floor => "floor",
            Kind::Brunt => "brunt",
            Kind::Peer(peer) => peer.name,
        }
    }

    /// How the row calls what the client does.
    pub(super) fn policy_text(&self) -> String {
        match self.kind {
            Kind::Brunt if self.policy == PEAK => "uring, --profile peak".to_owned(),
            Kind::Floor | Kind::Brunt => self.policy.to_string(),
            Kind::Peer(_) => String::new(),
        }
    }

    /// Can it be asked for this shape?
    pub(super) fn takes(&self, shape: &Shape) -> bool {
        match self.kind {
            Kind::Peer(peer) => peer.has_pipelines || shape.depth == 1,
            Kind::Floor | Kind::Brunt => shape.policies.contains(&self.policy),
        }
    }

    /// Its command line, the program left out.
    pub(super) fn arguments(&self, load: &Load<'_>) -> Vec<String> {
        let text = match self.kind {
            Kind::Floor => format!(
                "floor --server 127.0.0.1:{{port}} --connections {{connections}} --depth {{depth}} --io {} --refill {} \
                 --gather {} --keys {{keys}} --time-ms {{milliseconds}}",
                self.policy.io, self.policy.refill, self.policy.gather
            ),
            Kind::Brunt => format!(
                "run -s 127.0.0.1:{{port}} -T 1 -c {{connections}} -d {{depth}} {} -t {{seconds}}s --warmup 0s \
                 --mix get --keys {{keys}} --no-preload --quiet --allow-untrusted --json -",
                self.options
            ),
            Kind::Peer(peer) => peer.arguments.to_owned(),
        };
        load.fill(&text).split_whitespace().map(str::to_owned).collect()
    }

    /// The text of its configuration; empty for those that have none.
    pub(super) fn configuration(&self, load: &Load<'_>) -> String {
        match self.kind {
            Kind::Peer(peer) => load.fill(peer.configuration),
            Kind::Floor | Kind::Brunt => String::new(),
        }
    }

    /// What it says it did.
    pub(super) fn said(&self, printed: &str, written: &str) -> ClientReport {
        match self.kind {
            Kind::Floor => floor(printed),
            Kind::Brunt => brunt(printed),
            Kind::Peer(peer) => {
                ClientReport { requests: (peer.says)(printed, written), ..ClientReport::default() }
            }
        }
    }
}

/// The row of a peer.
pub(super) fn peer_client(peer: &'static Peer, program: PathBuf) -> Client {
    Client { kind: Kind::Peer(peer), program, policy: peer.nearest, options: String::new() }
}

fn floor(printed: &str) -> ClientReport {
    let json: Value = serde_json::from_str(printed).unwrap_or_default();
    let number = |key: &str| json[key].as_u64();
    ClientReport {
        requests: number("requests"),
        syscalls: number("syscalls").map(|syscalls| syscalls as f64),
        window_cpu_ns: number("cpu_user_ns").zip(number("cpu_system_ns")).map(Into::into),
        before: number("tried").unwrap_or_default(),
    }
}

/// Every request answered in any phase: the processor time is that of all phases, too.
fn brunt(printed: &str) -> ClientReport {
    let json: Value = serde_json::from_str(printed).unwrap_or_default();
    let client = &json["client"];
    let phases = json["phases"].as_object();
    let completed = phases
        .map(|phases| phases.values().filter_map(|phase| phase["requests"]["completed"].as_u64()).sum());
    ClientReport {
        requests: completed,
        // Per request of the measured window, and shown per request.
        syscalls: client["syscalls_per_request"]
            .as_f64()
            .zip(completed)
            .map(|(each, count): (f64, u64)| each * count as f64),
        window_cpu_ns: client["cpu_user_ns"].as_u64().zip(client["cpu_system_ns"].as_u64()).map(Into::into),
        before: 0,
    }
}

fn memtier(_: &str, written: &str) -> Option<u64> {
    let json: Value = serde_json::from_str(written).ok()?;
    json["ALL STATS"]["Totals"]["Count"].as_u64()
}

/// `Total QPS = 28848.4 (28849 / 1.0s)`.
fn mutilate(printed: &str, _: &str) -> Option<u64> {
    let row = printed.lines().find(|line| line.starts_with("Total QPS"))?;
    row.split_once('(')?.1.split_once(" /")?.0.parse().ok()
}

/// `Run time: 1.0s Ops: 72526 TPS: 72520 Net_rate: 81.1M/s`.
fn memaslap(printed: &str, _: &str) -> Option<u64> {
    let row = printed.lines().rfind(|line| line.starts_with("Run time:"))?;
    row.split_once("Ops: ")?.1.split_whitespace().next()?.parse().ok()
}

/// A line of JSON for the result, among others.
fn cachecannon(printed: &str, _: &str) -> Option<u64> {
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut results = lines.filter(|line| line["type"] == "result");
    results.next_back()?["responses"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::super::shape::SHAPES;
    use super::*;

    const LOAD: Load<'_> =
        Load { shape: SHAPES[4], port: 7, seconds: 3, requests: 99, conf: "/c", out: "/o" };

    fn client(kind: Kind, policy: Policy, options: &str) -> Client {
        Client { kind, program: PathBuf::new(), policy, options: options.to_owned() }
    }

    #[test]
    fn client_command_lines_follow_the_shape() {
        let floor = client(Kind::Floor, PEAK, "").arguments(&LOAD).join(" ");
        assert_eq!(
            floor,
            "floor --server 127.0.0.1:7 --connections 64 --depth 32 --io uring --refill batch --gather 8 --keys 10000 \
             --time-ms 3000"
        );
        let brunt = client(Kind::Brunt, EPOLL, "--io epoll").arguments(&LOAD).join(" ");
        assert!(brunt.starts_with("run -s 127.0.0.1:7 -T 1 -c 64 -d 32 --io epoll -t 3s"), "{brunt}");
        for peer in &PEERS {
            let client = peer_client(peer, PathBuf::new());
            let line = client.arguments(&LOAD).join(" ") + &client.configuration(&LOAD);
            assert!(!line.contains('{'), "{line}");
            assert!(line.contains('7') && line.contains("64"), "{line}");
        }
    }

    #[test]
    fn keys_of_memtier_are_padded_ones() {
        let prefix = LOAD.fill("{zeros}");
        for id in [KEYS, 2 * KEYS - 1] {
            assert_eq!(format!("{prefix}{id}"), format!("{id:0KEY_BYTES$}"));
        }
    }

    #[test]
    fn client_output_is_parsed() {
        let says = |name: &str, printed: &str, written: &str| {
            let peer = PEERS.iter().find(|peer| peer.name == name).unwrap();
            peer_client(peer, PathBuf::new()).said(printed, written).requests
        };
        assert_eq!(says("mutilate", "a\nTotal QPS = 28848.4 (28849 / 1.0s)\n", ""), Some(28_849));
        assert_eq!(
            says("memcaslap", "\nRun time: 1.0s Ops: 72526 TPS: 72520 Net_rate: 81.1M/s\n", ""),
            Some(72_526)
        );
        assert_eq!(says("memtier_benchmark", "", r#"{"ALL STATS": {"Totals": {"Count": 5}}}"#), Some(5));
        assert_eq!(says("memtier_benchmark", "", "no JSON"), None);
        let lines = "{\"type\":\"sample\",\"req_s\":1}\nnoise\n{\"type\":\"result\",\"responses\":8}\n";
        assert_eq!(says("cachecannon", lines, ""), Some(8));
        let brunt = r#"{"requests": {"completed": 90}, "phases": {"warmup": {"requests": {"completed": 10}},
            "measure": {"requests": {"completed": 90}}},
            "client": {"cpu_user_ns": 1, "cpu_system_ns": 2, "syscalls_per_request": 0.5}}"#;
        let said = client(Kind::Brunt, EPOLL, "").said(brunt, "");
        let expected = ClientReport {
            requests: Some(100),
            syscalls: Some(50.0),
            window_cpu_ns: Some([1, 2]),
            before: 0,
        };
        assert_eq!(said, expected);
        let floor = r#"{"requests": 4, "cpu_user_ns": 1, "cpu_system_ns": 2, "syscalls": 12, "tried": 3}"#;
        let said = client(Kind::Floor, EPOLL, "").said(floor, "");
        assert_eq!(
            said,
            ClientReport { requests: Some(4), syscalls: Some(12.0), window_cpu_ns: Some([1, 2]), before: 3 }
        );
    }
}
