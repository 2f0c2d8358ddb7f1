//! `cargo xtask accuracy wire`: what brunt and other load generators print, beside packet captures of the same requests.
//!
//! Not a test: it judges nothing beyond counting how often the wire lies where brunt says that it does. Invariant: every
//! client that takes a load runs once in every round, next to the others, and each run has a capture of its own.

mod capture;
mod client;
mod comparison;
mod message;
mod pairing;
mod segment;
mod stream;
mod table;

use crate::bench::client::{Load, Peer, peer_client};
use crate::bench::run::Bench;
use crate::bench::server::{Protocol, Server};
use crate::bench::shape::{SHAPES, Shape};
use crate::{bench, recorded_text};
use anyhow::{Context, bail, ensure};
use capture::{Capture, Start};
use client::{Client, brunts};
use comparison::Comparison;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use table::{Row, Table};

/// Of the server and of the client, where there are two.
const SERVER_PROCESSOR: usize = 0;
/// Requests per second; the last one is a closed loop.
const LOADS: [Option<u64>; 5] = [Some(1_000), Some(5_000), Some(20_000), Some(50_000), None];
/// Requests of a run at least, so that it has a p99.
const REQUESTS_MIN: u64 = 2000;

pub(crate) const USAGE: &str = "\
usage: cargo xtask accuracy wire [--rounds N] [--quick] [--time SECONDS] [--loads LIST] [--depth N] [--busy N]
                                 [--brunt PATH] [--peer NAME=PATH]... [--record]

  --rounds  how often every client runs under every load [9]
  --quick   one round
  --time    seconds of each run; at 1000/s at least two [1]
  --loads   some of 1000,5000,20000,50000,closed [all]
  --depth   requests in flight on each of 16 connections; with 64, none waits for a connection [1]
  --busy    so many processes that take what they get of the processors of client and server [0]
  --brunt   measure this program, which has brunt-bench beside it, instead of building one
  --peer    where a peer lies that is not on the PATH
  --record  write the tables to docs/accuracy.md instead of standard output, those with --busy to a place of their own";

/// Options of the command.
#[derive(Debug, PartialEq)]
struct Options {
    rounds: usize,
    seconds: u64,
    loads: Vec<Option<u64>>,
    depth: u32,
    busy: usize,
    brunt: Option<PathBuf>,
    peers: Vec<(&'static Peer, PathBuf)>,
    record: bool,
}

impl Options {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self {
            rounds: 9,
            seconds: 1,
            loads: LOADS.to_vec(),
            depth: 1,
            busy: 0,
            brunt: None,
            peers: Vec::new(),
            record: false,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} has no value\n\n{USAGE}"));
            match word {
                "--rounds" => options.rounds = bench::number(word, value()?)? as usize,
                "--quick" => options.rounds = 1,
                "--time" => options.seconds = bench::number(word, value()?)?,
                "--loads" => options.loads = loads(value()?)?,
                "--depth" => options.depth = bench::number(word, value()?)? as u32,
                "--busy" => options.busy = bench::number(word, value()?)? as usize,
                "--brunt" => options.brunt = Some(PathBuf::from(value()?)),
                "--peer" => options.peers.push(bench::named_peer(value()?)?),
                "--record" => options.record = true,
                _ => bail!("'{word}' is no option\n\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

fn loads(text: &str) -> anyhow::Result<Vec<Option<u64>>> {
    let name = |load: Option<u64>| load.map_or_else(|| "closed".to_owned(), |rate| rate.to_string());
    let known = |given: &str| LOADS.into_iter().find(|load| name(*load) == given);
    let invalid = |given| {
        format!("invalid value '{given}' for --loads: expected some of {}", LOADS.map(name).join(","))
    };
    text.split(',').map(|given| known(given).with_context(|| invalid(given))).collect()
}

/// Measures everything that was asked for; says so and does nothing where packets cannot be captured.
///
/// # Errors
/// An option is wrong, brunt does not build, the server does not start, or brunt fails. A run that does not count, and a
/// peer that fails, have a line in the report.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let options = Options::parse(words)?;
    let directory = std::env::temp_dir().join(format!("brunt-accuracy-wire-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let measured = measure(&options, &directory);
    // It holds nothing but what runs left.
    let _ = std::fs::remove_dir_all(&directory);
    let Some(text) = measured? else { return Ok(()) };
    if options.record {
        let command = if options.busy > 0 { "accuracy wire --busy" } else { "accuracy wire" };
        recorded_text::record("docs/accuracy.md", command, &text)
    } else {
        println!("\n{text}");
        Ok(())
    }
}

/// The text of all tables; nothing where packets cannot be captured.
fn measure(options: &Options, directory: &Path) -> anyhow::Result<Option<String>> {
    let server = Server::start(Protocol::Memcached, "memcached", SERVER_PROCESSOR)?;
    let processors = std::thread::available_parallelism()?.get();
    let path = directory.join("packets.pcap");
    // 16 connections, one request in flight on each.
    let shape = Shape { depth: options.depth, ..SHAPES[1] };
    match Capture::start(server.port, shape.depth, SERVER_PROCESSOR, path.clone())? {
        Start::Running(capture) => drop(capture),
        Start::Impossible(reason) => {
            println!("SKIPPED: packets cannot be captured here: {reason}");
            return Ok(None);
        }
    }
    let (brunt, stopwatch) = programs(options.brunt.as_deref())?;
    let peers = bench::find_peers(&options.peers);
    let memcached_peers =
        peers.iter().filter(|(peer, _)| peer.protocol == Protocol::Memcached).cloned().collect::<Vec<_>>();
    let here = memcached_peers.iter().filter_map(|(peer, path)| Some(peer_client(peer, path.clone()?)));
    let clients: Vec<Client> = brunts().chain(here.map(Client::Peer)).collect();
    let mut experiment = Experiment {
        brunt,
        server,
        shape,
        processor: processors.min(2) - 1,
        // Where there is a third processor, captures disturb neither end.
        capture_processor: if processors > 2 { 2 } else { SERVER_PROCESSOR },
        path,
        bench: Bench {
            stopwatch,
            processors: (processors.min(2) - 1).to_string(),
            seconds: options.seconds,
            directory: directory.to_path_buf(),
        },
    };
    let mut remarks = bench::missing(&memcached_peers);
    let peers = clients.iter().filter_map(Client::peer);
    remarks.extend(peers.filter_map(|peer| bench::prepare(&experiment.bench, peer, &experiment.server)));
    let _busy = Busy::start(options.busy, experiment.processor)?;
    let mut tables: Vec<Table> = options.loads.iter().map(|&rate| table_of(rate, shape, &clients)).collect();
    for round in 0..options.rounds {
        for table in &mut tables {
            eprintln!("round {} of {}, {}", round + 1, options.rounds, table.name());
            experiment.bench.seconds =
                table.rate.map_or(options.seconds, |rate| options.seconds.max(REQUESTS_MIN.div_ceil(rate)));
            let count = table.rows.len();
            for turn in 0..count {
                // Each round begins with another client, so that none always runs behind the same one.
                let row = &mut table.rows[(turn + round) % count];
                row.runs.push(experiment.run(&row.client, table.rate)?);
            }
        }
    }
    Ok(Some(text(options, &tables, &remarks)?))
}

fn table_of(rate: Option<u64>, shape: Shape, clients: &[Client]) -> Table {
    let takers = clients.iter().filter(|client| client.takes(rate, shape));
    Table { rate, rows: takers.map(|client| Row { client: client.clone(), runs: Vec::new() }).collect() }
}

fn text(options: &Options, tables: &[Table], remarks: &[String]) -> anyhow::Result<String> {
    let busy = match options.busy {
        0 => String::new(),
        busy => format!(" {busy} other processes took what they could get of the same processors."),
    };
    let program = options.brunt.as_ref().map_or_else(String::new, |brunt| {
        format!(" The brunt of these tables is {}, not of this commit.", brunt.display())
    });
    let mut text = format!(
        "{} 16 connections x {}. Medians of {} rounds of runs of {} s, at 1000/s of {} s, times in microseconds.{busy}{program}\n",
        bench::machine()?,
        options.depth,
        options.rounds,
        options.seconds,
        options.seconds.max(REQUESTS_MIN / 1000)
    );
    for table in tables {
        text.push_str(&format!("\n{}", table.text()));
    }
    text.push_str(&format!("\n{}", table::total(tables)));
    for remark in remarks {
        text.push_str(&format!("\n{remark}\n"));
    }
    Ok(text)
}

/// Paths of brunt and brunt-bench.
fn programs(given: Option<&Path>) -> anyhow::Result<(PathBuf, PathBuf)> {
    let Some(brunt) = given else { return bench::build() };
    let stopwatch = brunt.with_file_name("brunt-bench");
    for path in [brunt, &stopwatch] {
        ensure!(path.is_file(), "--brunt: there is no file '{}'", path.display());
    }
    Ok((std::path::absolute(brunt)?, std::path::absolute(stopwatch)?))
}

/// Where and by what runs are made.
struct Experiment {
    brunt: PathBuf,
    server: Server,
    shape: Shape,
    processor: usize,
    capture_processor: usize,
    path: PathBuf,
    bench: Bench,
}

impl Experiment {
    /// One run; the inner error is why it does not count.
    fn run(&mut self, client: &Client, rate: Option<u64>) -> anyhow::Result<Result<Comparison, String>> {
        let path = |name: &str| self.bench.directory.join(name);
        let (conf, out, cost) = (path("client.conf"), path("client.out"), path("cost.json"));
        let load = Load {
            shape: self.shape,
            port: self.server.port,
            seconds: self.bench.seconds,
            requests: 0,
            rate,
            conf: &conf.display().to_string(),
            out: &out.display().to_string(),
        };
        std::fs::write(&conf, client.configuration(&load))?;
        std::fs::write(&out, "")?;
        let arguments = client.arguments(&load, self.processor);
        // brunt pins its worker itself: under `taskset` it would take the host for one with a single processor.
        let (program, processors) = match client {
            Client::Brunt { .. } => (&self.brunt, format!("{},{}", SERVER_PROCESSOR, self.processor)),
            Client::Peer(peer) => (&peer.program, self.processor.to_string()),
        };
        self.bench.processors = processors;
        let (port, depth) = (self.server.port, self.shape.depth);
        let capture = match Capture::start(port, depth, self.capture_processor, self.path.clone())? {
            Start::Running(capture) => capture,
            Start::Impossible(reason) => bail!("packets cannot be captured any more: {reason}"),
        };
        let printed = match (self.bench.take_cost(program, &arguments, &cost), client) {
            (Ok(printed), _) => printed,
            (Err(error), Client::Peer(_)) => return Ok(Err(format!("{error:#}"))),
            (Err(error), Client::Brunt { .. }) => return Err(error.context(client.name())),
        };
        let captured = capture.end()?;
        let pairing = pairing::pair(&segment::segments(&captured.file, self.server.port)?);
        let mut report = client.report(&printed, &std::fs::read_to_string(&out).unwrap_or_default())?;
        if report.cpu_us.is_none() {
            report.cpu_us = Some(cpu_us(&cost)? / pairing.answered as f64);
        }
        let dropped = |reason| match captured.dropped {
            0 => reason,
            dropped => format!("{reason}, the kernel dropped {dropped} packets"),
        };
        Ok(Comparison::of(report, &pairing, rate).map_err(dropped))
    }
}

/// Processor time of a whole client.
fn cpu_us(cost: &Path) -> anyhow::Result<f64> {
    let cost: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(cost)?)?;
    let number = |key: &str| cost[key].as_f64().with_context(|| format!("no {key} among the costs"));
    Ok((number("cpu_user_ns")? + number("cpu_system_ns")?) / 1e3)
}

/// Processes that are always ready to run; dropping it ends them.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize, processor: usize) -> anyhow::Result<Self> {
        // They end by themselves if this process is killed.
        let script = format!(
            "while kill -0 {}; do i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; done",
            std::process::id()
        );
        let processors = format!("{},{processor}", SERVER_PROCESSOR);
        let mut busy = Self(Vec::new());
        for _ in 0..count {
            let child = Command::new("taskset")
                .args(["-c", &processors, "sh", "-c", &script])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context("cannot run taskset")?;
            busy.0.push(child);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended already; then there is nothing to end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let words = [
            "--quick",
            "--time",
            "2",
            "--loads",
            "5000,closed",
            "--depth",
            "64",
            "--busy",
            "1",
            "--peer",
            "mutilate=/bin/sh",
        ];
        let options = Options::parse(&words).unwrap();
        let expected = Options {
            rounds: 1,
            seconds: 2,
            loads: vec![Some(5000), None],
            depth: 64,
            busy: 1,
            brunt: None,
            peers: vec![bench::named_peer("mutilate=/bin/sh").unwrap()],
            record: false,
        };
        assert_eq!(options, expected);
        let table: [(&[&str], &str); 4] = [
            (&["--rounds"], "--rounds has no value"),
            (
                &["--loads", "5000,7"],
                "invalid value '7' for --loads: expected some of 1000,5000,20000,50000,closed",
            ),
            (&["--busy", "0"], "a whole number from 1"),
            (&["fast"], "'fast' is no option"),
        ];
        for (words, part) in table {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
        assert!(programs(Some(Path::new("/no/such/brunt"))).unwrap_err().to_string().contains("no file"));
    }
}
