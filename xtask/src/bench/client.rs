//! What is compared: shapes of load, under each the kernel interfaces and policies of brunt and of the floor, and the clients: how each is
//! given the same load, and where it tells what it did.
//!
//! Not a ranking of features: what each does beside sending gets is its own affair. Invariants: a client gets one thread,
//! one CPU, the shape's connections and depth, and keys that are all there; one that cannot be given a load has no row in it; every policy
//! of a shape is asked of the floor too, so that each row of brunt's has one to be divided by.

use crate::process::{ALLOW, KEY_BYTES, KEYS, Protocol};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How a client asks the kernel, and when it asks for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// `epoll` or `uring`, as both programs call them.
    pub(crate) io: &'static str,
    /// `eager` or `batch`.
    pub(crate) refill: &'static str,
    /// Completions per wait.
    pub(crate) gather: u32,
}

const fn policy(io: &'static str, refill: &'static str, gather: u32) -> Policy {
    Policy { io, refill, gather }
}

pub(crate) const EPOLL: Policy = policy("epoll", "eager", 1);
pub(crate) const URING: Policy = policy("uring", "eager", 1);
/// What `--peak` is compared with.
pub(crate) const PEAK: Policy = policy("uring", "batch", 8);

impl std::fmt::Display for Policy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}", self.io, self.refill)?;
        if self.gather > 1 {
            write!(formatter, ", gather {}", self.gather)?;
        }
        Ok(())
    }
}

/// One shape of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) connections: u32,
    pub(crate) depth: u32,
    pub(crate) policies: &'static [Policy],
    /// What brunt's CPU per request may be, divided by the floor's.
    pub(crate) target: f64,
    /// The one policy that the target is for, and then against the best floor of all; without one: all, each against
    /// its own.
    pub(crate) target_policy: Option<Policy>,
}

const fn shape(connections: u32, depth: u32, target: f64) -> Shape {
    Shape { connections, depth, policies: &[EPOLL, URING], target, target_policy: None }
}

/// All shapes, and their names.
pub(crate) const SHAPE_NAMES: [&str; 5] = ["1x1", "16x1", "64x1", "16x16", "64x32"];
pub(crate) const SHAPES: [Shape; 5] = [
    shape(1, 1, 1.10),
    shape(16, 1, 1.10),
    shape(64, 1, 1.10),
    shape(16, 16, 1.15),
    Shape {
        policies: &[EPOLL, policy("epoll", "batch", 1), URING, policy("uring", "batch", 1), PEAK],
        target_policy: Some(PEAK),
        ..shape(64, 32, 1.3)
    },
];

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}x{}", self.connections, self.depth)
    }
}

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Floor,
    Brunt,
    Peer,
}

/// One row: a program under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) tool: &'static Tool,
    pub(crate) program: PathBuf,
    /// Of a peer: that of the floor which its system calls are nearest to.
    pub(crate) policy: Policy,
    /// Of brunt: options beside those of every load.
    pub(crate) options: String,
}

/// A load generator, or the floor.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    nearest: Policy,
    has_pipelines: bool,
    /// Its command line; [`Load::fill`] replaces what is in braces.
    arguments: &'static str,
    /// The text of the file that `{conf}` stands for.
    configuration: &'static str,
    /// A command line to be run once, before the first run.
    pub(crate) preparation: Option<&'static str>,
    /// It takes a number of requests and no time.
    pub(crate) takes_requests: bool,
    /// Its report, out of what it printed and what it wrote to the file `{out}`.
    pub(crate) report: fn(&str, &str) -> Report,
}

impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Tool {}

/// What a client reports of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Requests with a reply, in all phases.
    pub(crate) requests: Option<u64>,
    /// Requests made before, which the server counts, too.
    pub(crate) before: u64,
    /// System calls of all requests.
    pub(crate) syscalls: Option<f64>,
    /// CPU time of the measured window.
    pub(crate) window_cpu_us: Option<f64>,
}

const fn tool(name: &'static str, arguments: &'static str, report: fn(&str, &str) -> Report) -> Tool {
    Tool {
        kind: Kind::Peer,
        name,
        protocol: Protocol::Memcached,
        nearest: EPOLL,
        has_pipelines: true,
        arguments,
        configuration: "",
        preparation: None,
        takes_requests: false,
        report,
    }
}

static FLOOR: Tool = Tool {
    kind: Kind::Floor,
    ..tool(
        "floor",
        "floor --server 127.0.0.1:{port} --connections {connections} --depth {depth} --io {io} --refill {refill} \
         --gather {gather} --keys {keys} --time-ms {milliseconds}",
        floor,
    )
};

static BRUNT: Tool = Tool {
    kind: Kind::Brunt,
    ..tool(
        "brunt",
        "run -s 127.0.0.1:{port} -T 1 -c {connections} --depth {depth} {options} -t {seconds}s --mix get --keys {keys} --prefix= \
         --no-preload --quiet {allow} -o json:-",
        brunt,
    )
};

/// The others, which can be asked.
pub(crate) static PEERS: [Tool; 5] = [
    // It does not pad numbers: it asks for the upper half of the padded keys.
    tool(
        "memtier_benchmark",
        "--server=127.0.0.1 --port={port} --protocol=memcache_text --threads=1 --clients={connections} \
         --pipeline={depth} --test-time={seconds} --ratio=0:1 --key-prefix={zeros} --key-minimum={keys} \
         --key-maximum={last} --key-pattern=R:R --hide-histogram --json-out-file={out}",
        memtier,
    ),
    Tool {
        preparation: Some("-s 127.0.0.1:{port} -K 30 -V 200 -r {keys} --loadonly"),
        ..tool(
            "mutilate",
            "-s 127.0.0.1:{port} -T 1 -c {connections} -d {depth} -t {seconds} -K 30 -V 200 -r {keys} -u 0 --noload",
            mutilate,
        )
    },
    // memaslap as Debian names it. It stores what it requests itself, in every run.
    Tool {
        has_pipelines: false,
        // Without a line for sets it makes sets only.
        configuration: "key\n30 30 1\nvalue\n200 200 1\ncmd\n0 0\n1 1\n",
        ..tool(
            "memcaslap",
            "-s 127.0.0.1:{port} -T 1 -c {connections} -t {seconds}s -S {seconds}s -w 1k -F {conf}",
            memaslap,
        )
    },
    Tool {
        nearest: URING,
        // It stores its keys itself, in every run.
        configuration: "[general]\nduration = \"{seconds}s\"\nwarmup = \"0s\"\nthreads = 1\n\
                        [target]\nendpoints = [\"127.0.0.1:{port}\"]\nprotocol = \"memcache\"\n\
                        [connection]\nconnections = {connections}\npipeline_depth = {depth}\n\
                        [workload]\nprefill = true\n[workload.keyspace]\nlength = 30\ncount = {keys}\n\
                        [workload.commands]\nget = 100\nset = 0\n[workload.values]\nlength = 200\n\
                        [admin]\nformat = \"json\"\n",
        ..tool("cachecannon", "{conf}", cachecannon)
    },
    // Its own test of gets takes keys of 16 bytes; a command of ours has the digits that it draws filled up to 30.
    Tool {
        protocol: Protocol::Redis,
        takes_requests: true,
        ..tool(
            "redis-benchmark",
            "-h 127.0.0.1 -p {port} -c {connections} -P {depth} -n {requests} -r {keys} -q \
             GET 000000000000000000__rand_int__",
            // It prints a rate, and no count.
            |_, _| Report::default(),
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
    /// Of the files that a client reads and writes.
    pub(crate) directory: &'a Path,
}

impl Load<'_> {
    pub(crate) fn configuration_path(&self) -> PathBuf {
        self.directory.join("client.conf")
    }

    pub(crate) fn output_path(&self) -> PathBuf {
        self.directory.join("client.out")
    }

    /// Replaces what is in braces.
    pub(crate) fn fill(&self, text: &str) -> String {
        [
            ("{connections}", self.shape.connections.to_string()),
            ("{depth}", self.shape.depth.to_string()),
            ("{port}", self.port.to_string()),
            ("{seconds}", self.seconds.to_string()),
            ("{milliseconds}", (self.seconds * 1000).to_string()),
            ("{requests}", self.requests.to_string()),
            ("{keys}", KEYS.to_string()),
            ("{last}", (2 * KEYS - 1).to_string()),
            ("{zeros}", "0".repeat(KEY_BYTES - KEYS.to_string().len())),
            ("{conf}", self.configuration_path().display().to_string()),
            ("{out}", self.output_path().display().to_string()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

impl Client {
    pub(crate) fn floor(program: &Path, policy: Policy) -> Self {
        Self { policy, ..Self::of(&FLOOR, program) }
    }

    /// brunt under a policy, with these options beside those of every load.
    pub(crate) fn brunt(program: &Path, policy: Policy, options: &str) -> Self {
        Self { policy, options: options.to_owned(), ..Self::of(&BRUNT, program) }
    }

    pub(crate) fn of(tool: &'static Tool, program: &Path) -> Self {
        Self { tool, program: program.to_path_buf(), policy: tool.nearest, options: String::new() }
    }

    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.tool.kind == kind
    }

    /// What the row calls the policy of the client.
    pub(crate) fn policy_text(&self) -> String {
        match self.tool.kind {
            Kind::Brunt if self.policy == PEAK => "uring, --peak".to_owned(),
            Kind::Floor | Kind::Brunt => self.policy.to_string(),
            Kind::Peer => String::new(),
        }
    }

    /// Can it be given this many requests in flight on a connection?
    pub(crate) fn takes_depth(&self, depth: u32) -> bool {
        self.tool.has_pipelines || depth == 1
    }

    /// Its command line, the program left out.
    pub(crate) fn arguments(&self, load: &Load<'_>) -> String {
        self.fill(self.tool.arguments, load)
    }

    /// The text of its configuration; empty for those that have none.
    pub(crate) fn configuration(&self, load: &Load<'_>) -> String {
        self.fill(self.tool.configuration, load)
    }

    fn fill(&self, text: &str, load: &Load<'_>) -> String {
        let Policy { io, refill, gather } = self.policy;
        let text = text.replace("{options}", &self.options).replace("{allow}", ALLOW);
        load.fill(
            &text.replace("{io}", io).replace("{refill}", refill).replace("{gather}", &gather.to_string()),
        )
    }
}

fn cpu_us(json: &Value) -> Option<f64> {
    Some((json["cpu_user_ns"].as_f64()? + json["cpu_system_ns"].as_f64()?) / 1e3)
}

fn floor(printed: &str, _: &str) -> Report {
    let json: Value = serde_json::from_str(printed).unwrap_or_default();
    Report {
        requests: json["requests"].as_u64(),
        before: json["tried"].as_u64().unwrap_or_default(),
        syscalls: json["syscalls"].as_f64(),
        window_cpu_us: cpu_us(&json),
    }
}

fn brunt(printed: &str, _: &str) -> Report {
    let json: Value = serde_json::from_str(printed).unwrap_or_default();
    let phases = json["counts"]["phases"].as_object().map(|phases| phases.values());
    let requests =
        phases.map(|phases| phases.filter_map(|phase| phase["requests"]["completed"].as_u64()).sum());
    // Per request of the measured window, and shown per request.
    let syscalls = json["client"]["syscalls_per_request"].as_f64().zip(requests);
    Report {
        requests,
        before: 0,
        syscalls: syscalls.map(|(each, count): (f64, u64)| each * count as f64),
        window_cpu_us: cpu_us(&json["client"]),
    }
}

fn memtier(_: &str, written: &str) -> Report {
    let json: Value = serde_json::from_str(written).unwrap_or_default();
    Report { requests: json["ALL STATS"]["Totals"]["Count"].as_u64(), ..Report::default() }
}

/// `Total QPS = 28848.4 (28849 / 1.0s)`.
fn mutilate(printed: &str, _: &str) -> Report {
    let count = |row: &str| row.split_once('(')?.1.split_once(" /")?.0.parse().ok();
    Report { requests: after(printed, "Total QPS").and_then(count), ..Report::default() }
}

/// `Run time: 1.0s Ops: 72526 TPS: 72520 Net_rate: 81.1M/s`, the last of several.
fn memaslap(printed: &str, _: &str) -> Report {
    let word = |text: &str| text.split_whitespace().next()?.parse().ok();
    let run = printed.rsplit_once("Run time:").map(|(_, run)| run);
    Report { requests: run.and_then(|run| word(after(run, "Ops: ")?)), ..Report::default() }
}

/// A line of JSON for the result, among others.
fn cachecannon(printed: &str, _: &str) -> Report {
    let mut lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = lines.rfind(|line| line["type"] == "result").unwrap_or_default();
    Report { requests: result["responses"].as_u64(), ..Report::default() }
}

fn after<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    text.split_once(head).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load<'static> {
        Load { shape: SHAPES[4], port: 7, seconds: 3, requests: 99, directory: Path::new("/d") }
    }

    fn peers() -> impl Iterator<Item = Client> {
        PEERS.iter().map(|peer| Client::of(peer, Path::new("")))
    }

    #[test]
    fn client_command_lines_follow_the_shape() {
        let load = load();
        let floor = Client::floor(Path::new(""), PEAK).arguments(&load);
        assert_eq!(
            floor,
            "floor --server 127.0.0.1:7 --connections 64 --depth 32 --io uring --refill batch --gather 8 --keys 10000 \
             --time-ms 3000"
        );
        let brunt = Client::brunt(Path::new(""), PEAK, "--io uring --wait sleep");
        let line = brunt.arguments(&load);
        let expected = "run -s 127.0.0.1:7 -T 1 -c 64 --depth 32 --io uring --wait sleep -t 3s";
        assert!(line.starts_with(expected), "{line}");
        for client in peers() {
            let line = client.arguments(&load) + &client.configuration(&load);
            assert!(!line.contains('{'), "{line}");
            assert!(line.contains('7') && line.contains("64"), "{line}");
        }
    }

    #[test]
    fn keys_of_memtier_are_padded_ones() {
        let prefix = load().fill("{zeros}");
        for id in [KEYS, 2 * KEYS - 1] {
            assert_eq!(format!("{prefix}{id}"), format!("{id:0KEY_BYTES$}"));
        }
    }

    #[test]
    fn reports_of_peers_are_read() {
        let table = [
            ("mutilate", "a\nread 37.4 9.0\n\nTotal QPS = 28848.4 (28849 / 1.0s)\n", "", 28_849),
            ("memtier_benchmark", "", r#"{"ALL STATS": {"Totals": {"Count": 5}}}"#, 5),
            (
                "memcaslap",
                "Get Statistics (67309 events)\n\nRun time: 1.0s Ops: 72526 TPS: 72520 Net_rate: 81.1M/s\n",
                "",
                72_526,
            ),
            (
                "cachecannon",
                "{\"type\":\"sample\",\"req_s\":1}\nnoise\n\
                 {\"type\":\"result\",\"responses\":8,\"get\":{\"count\":9}}\n",
                "",
                8,
            ),
        ];
        for (name, printed, written, requests) in table {
            let peer = peers().find(|peer| peer.tool.name == name).unwrap();
            assert_eq!((peer.tool.report)(printed, written).requests, Some(requests), "{name}");
            assert_eq!((peer.tool.report)("no output", "none"), Report::default(), "{name}");
        }
    }

    #[test]
    fn reports_of_brunt_and_the_floor_are_read() {
        let printed = r#"{"counts": {"requests": {"completed": 90},
                "phases": {"warmup": {"requests": {"completed": 10}}, "measure": {"requests": {"completed": 90}}}},
                "client": {"cpu_user_ns": 1000, "cpu_system_ns": 2000, "syscalls_per_request": 0.5}}"#;
        let expected =
            Report { requests: Some(100), before: 0, syscalls: Some(50.0), window_cpu_us: Some(3.0) };
        assert_eq!(brunt(printed, ""), expected);
        assert_eq!(brunt("nothing", ""), Report::default());
        let printed =
            r#"{"requests": 4, "cpu_user_ns": 1000, "cpu_system_ns": 2000, "syscalls": 12, "tried": 3}"#;
        let expected =
            Report { requests: Some(4), before: 3, syscalls: Some(12.0), window_cpu_us: Some(3.0) };
        assert_eq!(floor(printed, ""), expected);
    }

    #[test]
    fn shapes_have_their_names_and_policies() {
        assert_eq!(SHAPES.map(|shape| shape.to_string()), SHAPE_NAMES);
        assert_eq!(PEAK.to_string(), "uring, batch, gather 8");
        assert!(
            SHAPES
                .iter()
                .all(|shape| shape.target_policy.is_none_or(|policy| shape.policies.contains(&policy)))
        );
    }
}
