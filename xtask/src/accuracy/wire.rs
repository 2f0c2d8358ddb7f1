//! `cargo xtask accuracy wire`: what brunt and other load generators print, beside packet captures of the same requests.
//!
//! Not a test: it judges nothing beyond counting how often the wire lies where brunt says that it does. Invariant: every
//! client runs once in every round, next to the others, and each run has a capture of its own.

mod capture;
mod comparison;

use crate::bench::client::{Client, Kind, Load, SHAPES, Shape};
use crate::bench::run::Bench;
use crate::bench::table;
use crate::bench::{self, NamedPeers, SERVER_CPU};
use crate::process::{Process, Protocol, Server};
use crate::{cargo, parallel};
use anyhow::{Context, ensure};
use capture::Capture;
use clap::{Args, value_parser};
use comparison::{Comparison, Row, Table};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Requests of a run at least, so that it has a p99.
const REQUESTS_MIN: u64 = 2000;
/// What brunt does before its measured window: polling for replies begins in it.
const WARMUP: &str = "500ms";

/// Requests per second, or a closed loop.
const RATES: [&str; 5] = ["1000", "5000", "20000", "50000", "closed"];

/// Options of the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How often every client runs under every load
    #[arg(long, default_value_t = 9, value_parser = value_parser!(u32).range(1..=3600))]
    rounds: u32,
    /// Seconds of each run; at 1000/s at least two
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=3600))]
    time: u64,
    /// Requests per second, or closed
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = RATES, default_values = RATES)]
    loads: Vec<String>,
    /// Requests in flight on each of 16 connections; with 64, none waits for a connection
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=3600))]
    depth: u32,
    /// Number of processes that take what they get of the CPUs of client and server
    #[arg(long, default_value_t = 0)]
    busy: u32,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PATH")]
    brunt: Option<PathBuf>,
    #[command(flatten)]
    named: NamedPeers,
    /// Write the tables to docs/method.md instead of standard output
    #[arg(long, conflicts_with = "busy")]
    record: bool,
}

/// Interfaces and wait modes of brunt.
fn brunts() -> impl Iterator<Item = (&'static str, &'static str)> {
    ["epoll", "uring"].into_iter().flat_map(|io| ["spin", "hybrid", "sleep"].map(|wait| (io, wait)))
}

fn brunt_name(io: &str, wait: &str) -> String {
    format!("brunt, {wait}, {io}")
}

/// Measures what the options select.
///
/// # Errors
/// Packets cannot be captured, brunt does not build, the server does not start, or brunt fails. A run that does not count, and a
/// peer that fails, have a line in the report.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let text = measure(options, directory.path())?;
    if options.record {
        return table::record("docs/method.md", "accuracy wire", &text);
    }
    println!("\n{text}");
    Ok(())
}

/// The text of all tables.
fn measure(options: &Options, directory: &Path) -> anyhow::Result<String> {
    let brunt = match &options.brunt {
        Some(brunt) => std::path::absolute(brunt)?,
        None => cargo::release_programs()?[0].clone(),
    };
    ensure!(brunt.is_file(), "invalid value '{0}' for --brunt: there is no file '{0}'", brunt.display());
    let server = Server::start(Protocol::Memcached, Some(SERVER_CPU))?;
    server.store_data_set(&brunt)?;
    let cpus = parallel::cpus();
    let mut experiment = Experiment {
        server,
        // 16 connections.
        shape: Shape { depth: options.depth, ..SHAPES[1] },
        cpu: cpus.min(2) - 1,
        // Captures on a third CPU disturb neither end.
        capture_cpu: if cpus > 2 { 2 } else { SERVER_CPU },
        bench: Bench { seconds: options.time, directory: directory.to_path_buf() },
    };
    drop(experiment.capture()?);
    let mut peers = options.named.find();
    peers.retain(|(peer, _)| peer.only_gets());
    let mut remarks = Vec::from_iter(bench::missing(&peers));
    let ours = brunts().map(|(io, wait)| {
        let options = format!(
            "--cpus {} --io {io} --wait {wait} --warmup {WARMUP} --protocol memcached-text --set server-stats=false",
            experiment.cpu
        );
        Client::brunt(&brunt, brunt_name(io, wait), &options)
    });
    let here = peers.iter().filter_map(|(peer, path)| Some(Client::of(peer, path.as_ref()?)));
    let clients: Vec<Client> = ours.chain(here).collect();
    let (bench, shape) = (&experiment.bench, experiment.shape);
    let load = bench.load(shape, experiment.server.port);
    remarks.extend(clients.iter().filter_map(|client| bench.prepare(client, &load)));
    let _busy = busy(options.busy, experiment.cpu)?;
    let table = |rate: &String| {
        let rows = clients.iter().map(|client| Row { client: client.clone(), runs: Vec::new() });
        Table { rate: rate.parse().ok(), rows: rows.collect() }
    };
    let mut tables: Vec<Table> = options.loads.iter().map(table).collect();
    for round in 0..options.rounds as usize {
        for table in &mut tables {
            eprintln!("round {} of {}, {}", round + 1, options.rounds, table.name());
            experiment.bench.seconds =
                table.rate.map_or(options.time, |rate| options.time.max(REQUESTS_MIN.div_ceil(rate)));
            let count = table.rows.len();
            for turn in 0..count {
                // Each round begins with another client, so that none always runs behind the same one.
                let row = &mut table.rows[(turn + round) % count];
                row.runs.push(experiment.run(&row.client, table.rate)?);
            }
        }
    }
    text(options, &tables, &remarks)
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
        options.time,
        options.time.max(REQUESTS_MIN / 1000)
    );
    tables.iter().for_each(|table| text.push_str(&format!("\n{}", table.text())));
    text.push_str(&format!("\n{}", comparison::total(tables)));
    remarks.iter().for_each(|remark| text.push_str(&format!("\n{remark}\n")));
    Ok(text)
}

/// Where and by what runs are made.
struct Experiment {
    server: Server,
    shape: Shape,
    cpu: usize,
    capture_cpu: usize,
    bench: Bench,
}

impl Experiment {
    fn capture(&self) -> anyhow::Result<Capture> {
        let path = self.bench.directory.join("packets.pcap");
        Capture::start(self.server.port, self.capture_cpu, path)
    }

    /// One run; the inner error is why it does not count.
    fn run(&self, client: &Client, rate: Option<u64>) -> anyhow::Result<Result<Comparison, String>> {
        let load = Load { rate, ..self.bench.load(self.shape, self.server.port) };
        // brunt pins its worker itself: under `taskset` it would take the host for one with a single CPU.
        let cpus = match client.tool.kind {
            Kind::Brunt => format!("{SERVER_CPU},{}", self.cpu),
            Kind::Peer | Kind::Floor => self.cpu.to_string(),
        };
        let capture = self.capture()?;
        let ended = match self.bench.run(client, &load, Some(&cpus)) {
            Ok(ended) => ended,
            Err(error) if client.is(Kind::Brunt) => return Err(error.context(client.name.clone())),
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let pairing = capture.end()?;
        let dropped = |reason| match pairing.dropped {
            0 => reason,
            dropped => format!("{reason}, the kernel dropped {dropped} packets"),
        };
        let [user_us, system_us] = ended.cpu_us;
        Ok(Comparison::of(ended.report, user_us + system_us, &pairing, rate).map_err(dropped))
    }
}

/// Starts processes that are always ready to run, on the CPUs of server and client.
fn busy(count: u32, cpu: usize) -> anyhow::Result<Vec<Process>> {
    let start = |_| {
        let mut command = Process::command("taskset");
        let script = "while :; do i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; done";
        command.args(["-c", &format!("{SERVER_CPU},{cpu}"), "sh", "-c", script]);
        Process::start(command.stdout(Stdio::null()).stderr(Stdio::null())).context("cannot be busy")
    };
    (0..count).map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::parsed;

    #[test]
    fn options_are_parsed() {
        let words =
            ["--rounds", "1", "--time", "2", "--loads", "5000,closed", "--depth", "64", "--busy", "1"];
        let options: Options = parsed(&words).unwrap();
        let Options { rounds, time, loads, depth, busy, .. } = options;
        assert_eq!((rounds, time, depth, busy), (1, 2, 64, 1));
        assert_eq!(loads, ["5000", "closed"]);
        assert_eq!(parsed::<Options>(&[]).unwrap().loads, RATES);
        let error = parsed::<Options>(&["--loads", "5000,7"]).unwrap_err();
        assert!(error.contains("[possible values: 1000, 5000, 20000, 50000, closed]"), "{error}");
    }
}
