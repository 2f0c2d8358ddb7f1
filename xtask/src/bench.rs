//! `cargo xtask bench`: brunt, the floor and every other load generator that is there, side by side on this machine.
//!
//! Not a test: what it finds depends on the machine, and it passes no judgement beyond stating the targets beside what was
//! measured (docs/performance.md). It builds brunt and the floor, and nothing else. Invariant: every client of a shape runs
//! once in every round, so that what disturbs the host disturbs them alike.

pub(crate) mod client;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod shape;
pub(crate) mod table;

use crate::{programs, recorded_text, release_build};
use anyhow::{Context, bail, ensure};
use client::{Client, Kind, PEERS, Peer, peer_client};
use run::Bench;
use server::{Protocol, Server};
use shape::{PEAK, Policy, Shape};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use table::Row;

/// Keys that are asked for.
pub(crate) const KEYS: u64 = 10_000;
const KEY_BYTES: usize = 30;
const VALUE_BYTES: usize = 200;
/// Of brunt's processor time, what may lie outside the measured window before the report says so.
const OUTSIDE_MAX: f64 = 0.01;

pub(crate) const USAGE: &str = "\
usage: cargo xtask bench [--rounds N] [--time SECONDS] [--shapes LIST] [--peer NAME=PATH]... [--record]

  --rounds  how often every client runs [9]
  --time    seconds of each run [5]
  --shapes  some of 1x1,16x1,64x1,16x16,64x32 [all]
  --peer    where a peer lies that is not on the PATH
  --record  write the tables to docs/performance.md instead of standard output";

/// Options of the command.
#[derive(Debug, PartialEq)]
struct Options {
    rounds: usize,
    seconds: u64,
    shapes: Vec<Shape>,
    /// Name and path.
    peers: Vec<(&'static Peer, PathBuf)>,
    record: bool,
}

impl Options {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options =
            Self { rounds: 9, seconds: 5, shapes: shape::SHAPES.to_vec(), peers: Vec::new(), record: false };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} has no value\n\n{USAGE}"));
            match word {
                "--rounds" => options.rounds = number(word, value()?)? as usize,
                "--time" => options.seconds = number(word, value()?)?,
                "--shapes" => options.shapes = shape::parse(value()?)?,
                "--peer" => options.peers.push(named_peer(value()?)?),
                "--record" => options.record = true,
                _ => bail!("'{word}' is no option\n\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

pub(crate) fn number(option: &str, given: &str) -> anyhow::Result<u64> {
    let accepted = || format!("invalid value '{given}' for {option}: expected a whole number from 1 to 3600");
    given.parse().ok().filter(|number| (1..=3600).contains(number)).with_context(accepted)
}

pub(crate) fn named_peer(given: &str) -> anyhow::Result<(&'static Peer, PathBuf)> {
    let names = PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ");
    let accepted = || format!("invalid value '{given}' for --peer: expected NAME=PATH with one of {names}");
    let (name, path) = given.split_once('=').with_context(accepted)?;
    let peer = PEERS.iter().find(|peer| peer.name == name).with_context(accepted)?;
    ensure!(Path::new(path).is_file(), "invalid value '{given}' for --peer: there is no file '{path}'");
    Ok((peer, PathBuf::from(path)))
}

/// Measures everything that was asked for.
///
/// # Errors
/// An option is wrong, brunt does not build, a server does not start, or brunt or the floor fails. A peer that fails has a
/// line in the report.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let options = Options::parse(words)?;
    programs::ensure()?;
    let (brunt, floor) = build()?;
    let directory = floor.with_file_name("bench");
    std::fs::create_dir_all(&directory)?;
    let processors = std::thread::available_parallelism()?.get();
    let bench = Bench {
        stopwatch: floor.clone(),
        processors: (processors.min(2) - 1).to_string(),
        seconds: options.seconds,
        directory,
    };
    let peers = find_peers(&options.peers);
    let mut remarks = missing(&peers);
    if processors < 2 {
        remarks.push("One processor only: server and client share it.".to_owned());
    }
    let mut clients = floors(&options.shapes, &floor);
    clients.extend(brunts(&options.shapes, &brunt, &mut remarks)?);
    clients.extend(peers.iter().filter_map(|(peer, path)| Some(peer_client(peer, path.clone()?))));
    let servers = Servers::start(&clients)?;
    remarks.extend(clients.iter().filter_map(|client| prepare(&bench, client, servers.server_for(client))));
    let mut text = heading(&options)?;
    for shape in &options.shapes {
        let rows = measure_shape(&bench, &options, *shape, &clients, &servers)?;
        remarks.extend(outside(shape, &rows));
        text.push_str(&format!("\n{}", table::text(shape, &rows)));
    }
    for remark in remarks {
        text.push_str(&format!("\n{remark}\n"));
    }
    if options.record {
        recorded_text::record("docs/performance.md", "bench", &text)
    } else {
        println!("\n{text}");
        Ok(())
    }
}

/// Builds brunt and brunt-bench as released.
pub(crate) fn build() -> anyhow::Result<(PathBuf, PathBuf)> {
    let target = release_build::target_folder()?;
    release_build::build(&target, &["--package", "brunt", "--package", "brunt-bench"], &[])?;
    Ok((target.join("release/brunt"), target.join("release/brunt-bench")))
}

/// Every peer, with its path where there is one.
pub(crate) fn find_peers(named: &[(&'static Peer, PathBuf)]) -> Vec<(&'static Peer, Option<PathBuf>)> {
    let find = |peer: &'static Peer| {
        let given = named.iter().find(|(named, _)| named.name == peer.name).map(|(_, path)| path.clone());
        given.or_else(|| programs::on_path(peer.name))
    };
    PEERS.iter().map(|peer| (peer, find(peer))).collect()
}

pub(crate) fn missing(peers: &[(&'static Peer, Option<PathBuf>)]) -> Vec<String> {
    let names: Vec<&str> =
        peers.iter().filter(|(_, path)| path.is_none()).map(|(peer, _)| peer.name).collect();
    if names.is_empty() { Vec::new() } else { vec![format!("Not found here: {}.", names.join(", "))] }
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

fn floors(shapes: &[Shape], floor: &Path) -> Vec<Client> {
    let client =
        |policy| Client { kind: Kind::Floor, program: floor.to_path_buf(), policy, options: String::new() };
    policies(shapes).into_iter().map(client).collect()
}

/// brunt under every policy that it takes; which it does not, the report says.
fn brunts(shapes: &[Shape], brunt: &Path, remarks: &mut Vec<String>) -> anyhow::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for policy in policies(shapes) {
        let Policy { io, refill, gather } = policy;
        let asked = if policy == PEAK {
            format!("--io {io} --profile peak")
        } else {
            format!("--io {io} --refill {refill} --gather {gather}")
        };
        if takes(brunt, &asked)? {
            clients.push(Client { kind: Kind::Brunt, program: brunt.to_path_buf(), policy, options: asked });
        } else {
            remarks.push(format!("This brunt does not take `{asked}`."));
        }
    }
    ensure!(!clients.is_empty(), "brunt takes none of the policies");
    Ok(clients)
}

/// Would brunt run with these options?
fn takes(brunt: &Path, options: &str) -> anyhow::Result<bool> {
    let status = Command::new(brunt)
        .args(["run", "--print-plan"])
        .args(options.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run brunt")?;
    Ok(status.success())
}

/// The servers that the clients need.
struct Servers {
    memcached: Server,
    redis: Option<Server>,
}

impl Servers {
    fn start(clients: &[Client]) -> anyhow::Result<Self> {
        let memcached = Server::start(Protocol::Memcached, "memcached", 0)?;
        let needs_redis = clients.iter().any(|client| client.protocol() == Protocol::Redis);
        let redis = if needs_redis { Some(Server::start(Protocol::Redis, "redis-server", 0)?) } else { None };
        Ok(Self { memcached, redis })
    }

    fn server_for(&self, client: &Client) -> &Server {
        match (client.protocol(), &self.redis) {
            (Protocol::Redis, Some(redis)) => redis,
            _ => &self.memcached,
        }
    }
}

/// Lets a client store its keys if it writes them in its own way. Returns what went wrong.
pub(crate) fn prepare(bench: &Bench, client: &Client, server: &Server) -> Option<String> {
    let Kind::Peer(Peer { preparation: Some(line), .. }) = client.kind else { return None };
    let load = client::Load {
        shape: shape::SHAPES[0],
        port: server.port,
        seconds: bench.seconds,
        requests: 0,
        rate: None,
        conf: "",
        out: "",
    };
    let arguments: Vec<String> = load.fill(line).split_whitespace().map(str::to_owned).collect();
    let stored = bench.take_cost(&client.program, &arguments, &bench.directory.join("cost.json"));
    stored.err().map(|error| format!("{} cannot store its keys: {error:#}.", client.name()))
}

/// All rounds of one shape.
fn measure_shape(
    bench: &Bench,
    options: &Options,
    shape: Shape,
    clients: &[Client],
    servers: &Servers,
) -> anyhow::Result<Vec<Row>> {
    let takers = clients.iter().filter(|client| client.takes(&shape));
    let mut rows: Vec<Row> =
        takers.map(|client| Row { client: client.clone(), rounds: Vec::new(), failure: None }).collect();
    let mut requests = vec![0; rows.len()];
    for round in 0..options.rounds {
        eprintln!("{shape}, round {} of {}", round + 1, options.rounds);
        for turn in 0..rows.len() {
            // Each round begins with another client, so that none always runs behind the same one.
            let index = (turn + round) % rows.len();
            let row = &mut rows[index];
            if row.failure.is_some() {
                continue;
            }
            let server = servers.server_for(&row.client);
            let measured = (|| {
                if requests[index] == 0 {
                    requests[index] = bench.requests_for(&row.client, shape, server)?;
                }
                bench.measure(&row.client, shape, server, requests[index])
            })();
            match (measured, row.client.kind) {
                (Ok(measured), _) => row.rounds.push(measured),
                // Rounds of the others must stay together, so it has none at all.
                (Err(error), Kind::Peer(_)) => {
                    row.rounds.clear();
                    row.failure = Some(format!("{error:#}"));
                }
                (Err(error), _) => return Err(error.context(format!("{shape}: {}", row.client.policy))),
            }
        }
    }
    Ok(rows)
}

/// What of brunt's processor time is start-up, the control thread and the report: it is counted, and stated when it shows.
fn outside(shape: &Shape, rows: &[Row]) -> Option<String> {
    let parts = rows.iter().flat_map(|row| &row.rounds).filter_map(|round| round.outside);
    let most = parts.max_by(f64::total_cmp).filter(|most| *most > OUTSIDE_MAX)?;
    Some(format!(
        "{shape}: of brunt's processor time up to {:.1} % is its start, its control thread and its report, and is counted; \
         --time makes it less.",
        100.0 * most
    ))
}

/// Machine, versions and date.
fn heading(options: &Options) -> anyhow::Result<String> {
    Ok(format!("{} {} rounds of {} s.\n", machine()?, options.rounds, options.seconds))
}

/// Date, processor, versions and load of this machine, in two sentences.
pub(crate) fn machine() -> anyhow::Result<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let line = |program: &str, arguments: &[&str]| crate::instructions::first_line(program, arguments);
    let load = read("/proc/loadavg");
    Ok(format!(
        "{}, {} processors ({}), Linux {}, {}, {}, commit {}. One-minute load of the host before: {}.",
        line("date", &["--utc", "+%F"])?,
        std::thread::available_parallelism()?,
        model.trim_start_matches([' ', '\t', ':']).trim(),
        read("/proc/sys/kernel/osrelease").trim(),
        line("memcached", &["-V"])?,
        line("rustc", &["--version"])?,
        line("git", &["describe", "--always", "--dirty"])?,
        load.split(' ').next().unwrap_or("unknown"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let options =
            Options::parse(&["--rounds", "2", "--shapes", "1x1", "--peer", "mutilate=/bin/sh", "--record"])
                .unwrap();
        assert_eq!((options.rounds, options.seconds, options.record), (2, 5, true));
        assert_eq!(options.shapes, [shape::SHAPES[0]]);
        assert_eq!(
            (options.peers[0].0.name, options.peers[0].1.as_path()),
            ("mutilate", Path::new("/bin/sh"))
        );
        let table: [(&[&str], &str); 6] = [
            (&["--rounds"], "--rounds has no value"),
            (&["--time", "0"], "a whole number from 1"),
            (&["--shapes", "3x3"], "expected some of 1x1"),
            (&["--peer", "ab=/usr/bin/ab"], "one of memtier_benchmark, mutilate"),
            (&["--peer", "mutilate=/no/such/file"], "there is no file '/no/such/file'"),
            (&["fast"], "'fast' is no option"),
        ];
        for (words, part) in table {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
