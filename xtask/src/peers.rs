//! `cargo xtask peers`: one known truth, measured by brunt and by every other load generator that is installed here.
//!
//! Not a benchmark and not a test: what others print is theirs. The truth is a server that freezes for one second of ten
//! while 1 000 requests/s are due: the p99 is 0.9 s (docs/method.md). Nothing is built or downloaded but brunt.

use crate::bench::client::{Client, Kind, Load, SHAPES, Shape};
use crate::bench::run::Bench;
use crate::bench::{self, NamedPeers};
use crate::cargo;
use crate::process::ReferenceServer;

/// How long, of ten seconds at 1 000/s, each hundredth slowest request takes: 1 s − 1 % of 10 s.
const TRUTH: &str = "900 ms";
const RATE: u64 = 1_000;
const SECONDS: u64 = 10;

/// Measures with everyone and prints a table.
///
/// # Errors
/// brunt does not build, or fails. What fails of another program stands in its row.
pub(crate) fn run(named: &NamedPeers) -> anyhow::Result<()> {
    let [brunt, _] = cargo::release_programs()?;
    let found = named.find();
    println!("| tool | its p99 | truth | command |\n|---|---|---|---|");
    let ours = Client::brunt(&brunt, "brunt".to_owned(), "--arrival uniform --warmup 0s");
    let peers = found.iter().filter_map(|(peer, path)| Some(Client::of(peer, path.as_ref()?)));
    let directory = tempfile::tempdir()?;
    let bench = Bench { directory: directory.path().to_path_buf(), seconds: SECONDS };
    for client in [ours].into_iter().chain(peers.filter(Client::keeps_a_rate)) {
        // Frozen for the fifth second after its first request.
        let server = ReferenceServer::start(&brunt, &["--stall", "4s:1s"])?;
        let shape = Shape { connections: 4, ..SHAPES[0] };
        let load = Load { rate: Some(RATE), ..bench.load(shape, server.port()?) };
        let p99 = match bench.run(&client, &load, None) {
            Ok(ended) => {
                let p99 = ended.report.latency.p99;
                p99.map_or_else(|| "not printed".to_owned(), |us| format!("{:.2} ms", us / 1e3))
            }
            Err(error) if client.is(Kind::Peer) => format!("failed: {error:#}"),
            Err(error) => return Err(error),
        };
        println!("| {} | {p99} | {TRUTH} | `{}` |", client.name, client.arguments(&load).join(" "));
    }
    bench::missing(&found).iter().for_each(|remark| println!("\n{remark}"));
    Ok(())
}
