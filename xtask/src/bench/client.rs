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
pub(crate) enum Kind {
    Floor,
    Brunt,
    Peer(&'static Peer),
}

/// One row: a program under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) kind: Kind,
    pub(crate) program: PathBuf,
    /// Of a peer: that of the floor which its system calls are nearest to.
    pub(crate) policy: Policy,
    /// Of brunt: the options that ask for the policy.
    pub(crate) options: String,
}

/// Another load generator.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    nearest: Policy,
    has_pipelines: bool,
    /// Its command line; [`Load::fill`] replaces what is in braces.
    arguments: &'static str,
    /// What `{paced}` in its command line or configuration stands for if it is asked for a rate; empty if it keeps none.
    paced: &'static str,
    /// The text of the file that `{conf}` stands for.
    configuration: &'static str,
    /// A command line to be run once, before the first run.
    pub(crate) preparation: Option<&'static str>,
    /// It takes a number of requests and no time.
    pub(crate) takes_requests: bool,
    /// Requests it says it made, out of what it printed and what it wrote to the file `{out}`.
    says: fn(&str, &str) -> Option<u64>,
    /// Latencies of its gets, out of the same.
    latency: fn(&str, &str) -> Option<Latency>,
}

/// What a client says of the latencies of its gets, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Latency {
    pub(crate) mean: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p90: Option<f64>,
    pub(crate) p99: Option<f64>,
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
        paced: "",
        configuration: "",
        preparation: None,
        takes_requests: false,
        says,
        latency: |_, _| None,
    }
}

/// Those that can be asked.
pub(crate) static PEERS: [Peer; 5] = [
    Peer {
        paced: "--rate-limiting={connection_rate}",
        latency: memtier_latency,
        // It does not pad numbers: it asks for the upper half of the padded keys.
        ..peer(
            "memtier_benchmark",
            "--server=127.0.0.1 --port={port} --protocol=memcache_text --threads=1 --clients={connections} \
             --pipeline={depth} --test-time={seconds} --ratio=0:1 --key-prefix={zeros} --key-minimum={keys} \
             --key-maximum={last} --key-pattern=R:R --hide-histogram --print-percentiles=50,90,99 \
             --json-out-file={out} {paced}",
            memtier,
        )
    },
    Peer {
        preparation: Some("-s 127.0.0.1:{port} -K 30 -V 200 -r {keys} --loadonly"),
        paced: "-q {rate}",
        latency: mutilate_latency,
        ..peer(
            "mutilate",
            "-s 127.0.0.1:{port} -T 1 -c {connections} -d {depth} -t {seconds} -K 30 -V 200 -r {keys} -u 0 --noload {paced}",
            mutilate,
        )
    },
    // memaslap as Debian names it. It stores what it requests itself, in every run; it keeps no rate.
    Peer {
        has_pipelines: false,
        // Without a line for sets it makes sets only.
        configuration: "key\n30 30 1\nvalue\n200 200 1\ncmd\n0 0\n1 1\n",
        latency: memaslap_latency,
        ..peer(
            "memcaslap",
            "-s 127.0.0.1:{port} -T 1 -c {connections} -t {seconds}s -S {seconds}s -w 1k -F {conf}",
            memaslap,
        )
    },
    Peer {
        nearest: URING,
        paced: "rate_limit = {rate}\n",
        latency: cachecannon_latency,
        // It stores its keys itself, in every run.
        configuration: "[general]\nduration = \"{seconds}s\"\nwarmup = \"0s\"\nthreads = 1\n\
                        [target]\nendpoints = [\"127.0.0.1:{port}\"]\nprotocol = \"memcache\"\n\
                        [connection]\nconnections = {connections}\npipeline_depth = {depth}\n\
                        [workload]\n{paced}prefill = true\n[workload.keyspace]\nlength = 30\ncount = {keys}\n\
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
pub(crate) struct Load<'a> {
    pub(crate) shape: Shape,
    pub(crate) port: u16,
    pub(crate) seconds: u64,
    /// For those that take no time.
    pub(crate) requests: u64,
    /// Requests per second; without one, as many as there are replies.
    pub(crate) rate: Option<u64>,
    /// Paths of the files that a client reads and writes.
    pub(crate) conf: &'a str,
    pub(crate) out: &'a str,
}

impl Load<'_> {
    /// Replaces what is in braces.
    pub(crate) fn fill(&self, text: &str) -> String {
        let padding = "0".repeat(KEY_BYTES - KEYS.to_string().len());
        let rate = self.rate.unwrap_or_default();
        [
            ("{connections}", self.shape.connections.to_string()),
            ("{depth}", self.shape.depth.to_string()),
            ("{port}", self.port.to_string()),
            ("{seconds}", self.seconds.to_string()),
            ("{milliseconds}", (self.seconds * 1000).to_string()),
            ("{requests}", self.requests.to_string()),
            ("{rate}", rate.to_string()),
            ("{connection_rate}", rate.div_ceil(u64::from(self.shape.connections)).to_string()),
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
pub(crate) struct ClientReport {
    pub(crate) requests: Option<u64>,
    pub(crate) syscalls: Option<f64>,
    /// User and system time of the window it measured.
    pub(crate) window_cpu_ns: Option<[u64; 2]>,
    /// Requests made before those, which the server counts too.
    pub(crate) before: u64,
}

impl Client {
    pub(crate) fn protocol(&self) -> Protocol {
        match self.kind {
            Kind::Peer(peer) => peer.protocol,
            Kind::Floor | Kind::Brunt => Protocol::Memcached,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Floor => "floor",
            Kind::Brunt => "brunt",
            Kind::Peer(peer) => peer.name,
        }
    }

    /// How the row calls what the client does.
    pub(crate) fn policy_text(&self) -> String {
        match self.kind {
            Kind::Brunt if self.policy == PEAK => "uring, --profile peak".to_owned(),
            Kind::Floor | Kind::Brunt => self.policy.to_string(),
            Kind::Peer(_) => String::new(),
        }
    }

    /// Can it be asked for this shape?
    pub(crate) fn takes(&self, shape: &Shape) -> bool {
        match self.kind {
            Kind::Peer(peer) => peer.has_pipelines || shape.depth == 1,
            Kind::Floor | Kind::Brunt => shape.policies.contains(&self.policy),
        }
    }

    /// Its command line, the program left out.
    pub(crate) fn arguments(&self, load: &Load<'_>) -> Vec<String> {
        let text = match self.kind {
            Kind::Floor => format!(
                "floor --server 127.0.0.1:{{port}} --connections {{connections}} --depth {{depth}} --io {} --refill {} \
                 --gather {} --keys {{keys}} --time-ms {{milliseconds}}",
                self.policy.io, self.policy.refill, self.policy.gather
            ),
            Kind::Brunt => format!(
                "run -s 127.0.0.1:{{port}} -T 1 -c {{connections}} -d {{depth}} {} -t {{seconds}}s --warmup 0s \
                 --mix get --keys {{keys}} --no-preload --quiet --allow=BROKEN,LOAD,CLIENT,DATA --json -",
                self.options
            ),
            Kind::Peer(peer) => peer.paced(peer.arguments, load),
        };
        load.fill(&text).split_whitespace().map(str::to_owned).collect()
    }

    /// The text of its configuration; empty for those that have none.
    pub(crate) fn configuration(&self, load: &Load<'_>) -> String {
        match self.kind {
            Kind::Peer(peer) => load.fill(&peer.paced(peer.configuration, load)),
            Kind::Floor | Kind::Brunt => String::new(),
        }
    }

    /// What it says it did.
    pub(crate) fn said(&self, printed: &str, written: &str) -> ClientReport {
        match self.kind {
            Kind::Floor => floor(printed),
            Kind::Brunt => brunt(printed),
            Kind::Peer(peer) => {
                ClientReport { requests: (peer.says)(printed, written), ..ClientReport::default() }
            }
        }
    }
}

impl Peer {
    pub(crate) fn keeps_a_rate(&self) -> bool {
        !self.paced.is_empty()
    }

    fn paced(&self, text: &str, load: &Load<'_>) -> String {
        text.replace("{paced}", if load.rate.is_some() { self.paced } else { "" })
    }

    /// What it says of the latencies of its gets.
    pub(crate) fn reported_latency(&self, printed: &str, written: &str) -> Option<Latency> {
        (self.latency)(printed, written)
    }
}

/// The row of a peer.
pub(crate) fn peer_client(peer: &'static Peer, program: PathBuf) -> Client {
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

/// In milliseconds.
fn memtier_latency(_: &str, written: &str) -> Option<Latency> {
    let json: Value = serde_json::from_str(written).ok()?;
    let gets = &json["ALL STATS"]["Gets"];
    let us = |value: &Value| value.as_f64().map(|ms| ms * 1e3);
    let percentile = |key: &str| us(&gets["Percentile Latencies"][key]);
    Some(Latency {
        mean: us(&gets["Average Latency"]).or_else(|| us(&gets["Latency"])),
        p50: percentile("p50.00"),
        p90: percentile("p90.00"),
        p99: percentile("p99.00"),
    })
}

/// The row `read` of its table: average, deviation, minimum, 5th, 10th, 90th, 95th and 99th percentile.
fn mutilate_latency(printed: &str, _: &str) -> Option<Latency> {
    let row = printed.lines().find(|line| line.starts_with("read "))?;
    let column = |index: usize| row.split_whitespace().nth(index)?.parse().ok();
    Some(Latency { mean: column(1), p50: None, p90: column(6), p99: column(8) })
}

/// Of gets it gives an average.
fn memaslap_latency(printed: &str, _: &str) -> Option<Latency> {
    let (_, gets) = printed.split_once("Get Statistics (")?;
    let (_, average) = gets.split_once("Avg:")?;
    let mean = average.split_whitespace().next()?.parse().ok()?;
    Some(Latency { mean: Some(mean), ..Latency::default() })
}

fn cachecannon_latency(printed: &str, _: &str) -> Option<Latency> {
    let result = cachecannon_result(printed)?;
    let percentile = |key: &str| result["get"][key].as_f64();
    Some(Latency {
        mean: None,
        p50: percentile("p50_us"),
        p90: percentile("p90_us"),
        p99: percentile("p99_us"),
    })
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
fn cachecannon_result(printed: &str) -> Option<Value> {
    let mut lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.rfind(|line| line["type"] == "result")
}

fn cachecannon(printed: &str, _: &str) -> Option<u64> {
    cachecannon_result(printed)?["responses"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::super::shape::SHAPES;
    use super::*;

    const LOAD: Load<'_> =
        Load { shape: SHAPES[4], port: 7, seconds: 3, requests: 99, rate: None, conf: "/c", out: "/o" };

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
            let paced = Load { rate: Some(5000), ..LOAD };
            let line = client.arguments(&paced).join(" ") + &client.configuration(&paced);
            let names_a_rate = line.contains("5000") || line.contains("--rate-limiting=79");
            assert!(!line.contains('{') && names_a_rate == peer.keeps_a_rate(), "{line}");
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
    fn latencies_of_gets_are_parsed() {
        let table = [
            (
                "mutilate",
                "#type avg std min 5th 10th 90th 95th 99th\nread 37.4 9.0 20.1 25.0 28.2 51.0 60.5 98.4\n",
                "",
                (Some(37.4), None, Some(51.0), Some(98.4)),
            ),
            (
                "memtier_benchmark",
                "",
                r#"{"ALL STATS": {"Gets": {"Average Latency": 0.18, "Percentile Latencies":
                    {"p50.00": 0.167, "p90.00": 0.2, "p99.00": 0.519}}}}"#,
                (Some(180.0), Some(167.0), Some(200.0), Some(519.0)),
            ),
            (
                "memcaslap",
                "Get Statistics (67309 events)\n   Min:  27\n   Max:  9362\n   Avg:   470\n   Geo:    254.89\n",
                "",
                (Some(470.0), None, None, None),
            ),
            (
                "cachecannon",
                "{\"type\":\"result\",\"get\":{\"count\":9,\"p50_us\":90,\"p90_us\":120,\"p99_us\":999}}\n",
                "",
                (None, Some(90.0), Some(120.0), Some(999.0)),
            ),
        ];
        for (name, printed, written, (mean, p50, p90, p99)) in table {
            let peer = PEERS.iter().find(|peer| peer.name == name).unwrap();
            let said = peer.reported_latency(printed, written).unwrap();
            let rounded = |us: Option<f64>| us.map(|us| (us * 10.0).round() / 10.0);
            let said = [said.mean, said.p50, said.p90, said.p99].map(rounded);
            assert_eq!(said, [mean, p50, p90, p99], "{name}");
            assert_eq!(peer.reported_latency("no output", "none"), None, "{name}");
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
