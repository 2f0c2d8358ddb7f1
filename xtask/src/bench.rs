//! `cargo xtask bench`: brunt, the floor and every other load generator that is found, side by side on this machine.
//!
//! Not a test: what it finds depends on the machine, and it passes no judgement beyond stating the targets beside what was
//! measured (docs/method.md). It builds brunt and the floor, and nothing else. Invariant: every client of a shape runs
//! once in every round, so that what disturbs the host disturbs them alike.

pub(crate) mod client;
pub(crate) mod run;
pub(crate) mod table;

use crate::process::{Protocol, Server};
use crate::{cargo, parallel, programs};
use clap::Args;
use client::{Client, Kind, PEAK, PEERS, Policy, SHAPE_NAMES, SHAPES, Shape, Tool};
use run::Bench;
use std::path::{Path, PathBuf};
use table::Row;

/// Of brunt's CPU time, what may lie outside the measured window before the report tells so.
const OUTSIDE_MAX: f64 = 0.01;
/// The CPU of the server.
pub(crate) const SERVER_CPU: usize = 0;

/// Options of the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How often every client runs
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=3600))]
    rounds: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    time: u64,
    /// Which shapes of load
    #[arg(long, value_name = "SHAPE,...", value_delimiter = ',', value_parser = SHAPE_NAMES, default_values = SHAPE_NAMES)]
    shapes: Vec<String>,
    /// Where a peer lies that is not on the PATH (repeatable)
    #[arg(long = "peer", value_name = "NAME=PATH", value_parser = named_peer)]
    peers: Vec<NamedPeer>,
    /// Write the tables to docs/method.md instead of standard output
    #[arg(long)]
    record: bool,
}

/// A peer with its path.
type NamedPeer = (&'static Tool, PathBuf);

fn named_peer(given: &str) -> Result<NamedPeer, String> {
    let names =
        || format!("expected NAME=PATH with one of {}", PEERS.each_ref().map(|peer| peer.name).join(", "));
    let (name, path) = given.split_once('=').ok_or_else(names)?;
    let peer = PEERS.iter().find(|peer| peer.name == name).ok_or_else(names)?;
    let path = Path::new(path);
    path.is_file()
        .then(|| (peer, path.to_path_buf()))
        .ok_or_else(|| format!("there is no file '{}'", path.display()))
}

/// The peers that are here, and the names of those that are not.
fn find(named: &[NamedPeer]) -> (Vec<Client>, Vec<&'static str>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for peer in &PEERS {
        let path = named.iter().find(|(named, _)| *named == peer).map(|(_, path)| path.clone());
        match path.or_else(|| programs::on_path(peer.name)) {
            Some(path) => found.push(Client::of(peer, &path)),
            None => missing.push(peer.name),
        }
    }
    (found, missing)
}

/// Measures what the options select.
///
/// # Errors
/// brunt does not build, a server does not start, or brunt or the floor fails. A peer that fails has a line in the report.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    programs::ensure_servers()?;
    let shapes: Vec<Shape> = options
        .shapes
        .iter()
        .filter_map(|name| SHAPES.into_iter().find(|shape| shape.to_string() == *name))
        .collect();
    let [brunt, floor] = cargo::release_programs()?;
    let directory = tempfile::tempdir()?;
    let cpus = parallel::cpus();
    let (peers, missing) = find(&options.peers);
    let mut remarks = Vec::new();
    if !missing.is_empty() {
        remarks.push(format!("Not found here: {}.", missing.join(", ")));
    }
    if cpus < 2 {
        remarks.push("One CPU only: server and client share it.".to_owned());
    }
    let policies = policies(&shapes);
    let mut clients: Vec<Client> = policies.iter().map(|policy| Client::floor(&floor, *policy)).collect();
    clients.extend(policies.iter().map(|policy| brunt_under(*policy, &brunt)));
    clients.extend(peers);
    let bench = Bench {
        seconds: options.time,
        client_cpus: (cpus.min(2) - 1).to_string(),
        directory: directory.path().to_path_buf(),
    };
    let host = Host { bench, servers: Servers::start(&clients, &brunt)? };
    for client in &clients {
        let load = host.bench.load(SHAPES[0], host.servers.server_for(client).port);
        remarks.extend(host.bench.prepare(client, &load));
    }
    let mut text = format!("{} {} rounds of {} s.\n", machine()?, options.rounds, options.time);
    let mut shares = Vec::new();
    for shape in &shapes {
        let rows = host.measure_shape(*shape, options.rounds, &clients)?;
        shares.extend(outside(shape, &rows));
        text.push_str(&format!("\n{}", table::text(shape, &rows)));
    }
    if !shares.is_empty() {
        let shares = shares.join(", ");
        remarks
            .push(format!("Of brunt's CPU time its start, control thread and report take up to {shares}."));
    }
    remarks.iter().for_each(|remark| text.push_str(&format!("\n{remark}\n")));
    if options.record {
        return table::record("docs/method.md", "bench", &text);
    }
    println!("\n{text}");
    Ok(())
}

/// The policies of all shapes, each once.
fn policies(shapes: &[Shape]) -> Vec<Policy> {
    let mut policies: Vec<Policy> = Vec::new();
    for policy in shapes.iter().flat_map(|shape| shape.policies) {
        if !policies.contains(policy) {
            policies.push(*policy);
        }
    }
    policies
}

/// brunt under a policy.
fn brunt_under(policy: Policy, brunt: &Path) -> Client {
    let Policy { io, refill, gather } = policy;
    let options = if policy == PEAK {
        format!("--io {io} --peak --warmup 0s")
    } else {
        format!("--io {io} --set refill={refill} --set gather={gather} --warmup 0s")
    };
    Client::brunt(brunt, policy, &options)
}

/// The servers that the clients need.
struct Servers {
    memcached: Server,
    redis: Option<Server>,
}

impl Servers {
    fn start(clients: &[Client], brunt: &Path) -> anyhow::Result<Self> {
        let start = |protocol| {
            let server = Server::start(protocol, Some(SERVER_CPU))?;
            server.store_data_set(brunt).map(|()| server)
        };
        let needs_redis = clients.iter().any(|client| client.tool.protocol == Protocol::Redis);
        let redis = needs_redis.then(|| start(Protocol::Redis)).transpose()?;
        Ok(Self { memcached: start(Protocol::Memcached)?, redis })
    }

    fn server_for(&self, client: &Client) -> &Server {
        match (client.tool.protocol, &self.redis) {
            (Protocol::Redis, Some(redis)) => redis,
            _ => &self.memcached,
        }
    }
}

/// Where runs are made.
struct Host {
    bench: Bench,
    servers: Servers,
}

impl Host {
    /// All rounds of one shape.
    fn measure_shape(&self, shape: Shape, rounds: u32, clients: &[Client]) -> anyhow::Result<Vec<Row>> {
        let is_taker = |client: &&Client| match client.tool.kind {
            Kind::Peer => client.takes_depth(shape.depth),
            Kind::Floor | Kind::Brunt => shape.policies.contains(&client.policy),
        };
        let row = |client: &Client| Row { client: client.clone(), rounds: Vec::new(), failure: None };
        let mut rows: Vec<Row> = clients.iter().filter(is_taker).map(row).collect();
        let mut requests = vec![0; rows.len()];
        for round in 0..rounds as usize {
            eprintln!("{shape}, round {} of {rounds}", round + 1);
            for turn in 0..rows.len() {
                // Each round begins with another client, so that none always runs behind the same one.
                let index = (turn + round) % rows.len();
                let row = &mut rows[index];
                if row.failure.is_some() {
                    continue;
                }
                match (self.measure(&row.client, shape, &mut requests[index]), row.client.tool.kind) {
                    (Ok(measured), _) => row.rounds.push(measured),
                    // Rounds of the others must stay together, so it has none at all.
                    (Err(error), Kind::Peer) => {
                        row.rounds.clear();
                        row.failure = Some(format!("{error:#}"));
                    }
                    (Err(error), _) => return Err(error.context(format!("{shape}: {}", row.client.policy))),
                }
            }
        }
        Ok(rows)
    }

    fn measure(&self, client: &Client, shape: Shape, requests: &mut u64) -> anyhow::Result<run::Measured> {
        let server = self.servers.server_for(client);
        let mut load = self.bench.load(shape, server.port);
        if *requests == 0 {
            *requests = self.bench.requests_for(client, &load, server)?;
        }
        load.requests = *requests;
        self.bench.measure(client, &load, server)
    }
}

/// What of brunt's CPU time is start-up, the control thread and the report: it is counted, and stated if it shows.
fn outside(shape: &Shape, rows: &[Row]) -> Option<String> {
    let parts = rows.iter().flat_map(|row| &row.rounds).filter_map(|round| round.outside);
    let most = parts.max_by(f64::total_cmp).filter(|most| *most > OUTSIDE_MAX)?;
    Some(format!("{:.1} % ({shape})", 100.0 * most))
}

/// Date, CPUs, versions and load of this machine, in two sentences.
pub(crate) fn machine() -> anyhow::Result<String> {
    let line = |program: &str, arguments: &[&str]| programs::first_line(program, arguments);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Ok(format!(
        "{}, {} processors ({}), Linux {}, {}, {}, commit {}. One-minute load of the host before: {}.",
        line("date", &["--utc", "+%F"])?,
        parallel::cpus(),
        programs::cpu_model(),
        read("/proc/sys/kernel/osrelease").trim(),
        line("memcached", &["-V"])?,
        line("rustc", &["--version"])?,
        line("git", &["describe", "--always", "--dirty"])?,
        read("/proc/loadavg").split(' ').next().unwrap_or("unknown"),
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::Command;

    /// Options out of words; the error as a user sees it.
    pub(crate) fn parsed<T: Args>(words: &[&str]) -> Result<T, String> {
        let command = T::augment_args(Command::new("verb").no_binary_name(true));
        let matches = command.try_get_matches_from(words);
        matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_parsed() {
        let words = ["--rounds", "2", "--shapes", "1x1,64x32", "--peer", "mutilate=/bin/sh", "--record"];
        let options: Options = parsed(&words).unwrap();
        assert_eq!((options.rounds, options.time, options.record), (2, 5, true));
        assert_eq!(options.shapes, ["1x1", "64x32"]);
        let (peer, path) = &options.peers[0];
        assert_eq!((peer.name, path.as_path()), ("mutilate", Path::new("/bin/sh")));
        assert_eq!(parsed::<Options>(&[]).unwrap().shapes, SHAPE_NAMES);
        let table: [(&[&str], &str); 5] = [
            (&["--time", "0"], "0 is not in 1..=3600"),
            (&["--shapes", "3x3"], "[possible values: 1x1"),
            (&["--peer", "ab=/usr/bin/ab"], "one of memtier_benchmark, mutilate"),
            (&["--peer", "mutilate=/no/such/file"], "there is no file '/no/such/file'"),
            (&["fast"], "unexpected argument 'fast'"),
        ];
        for (words, part) in table {
            let error = parsed::<Options>(words).unwrap_err();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
