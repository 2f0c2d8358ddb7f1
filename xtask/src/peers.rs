//! `cargo xtask peers`: one known truth, asked of brunt and of every other load generator that is installed here.
//!
//! Not a benchmark and not a test: what others print is theirs. The truth is a server that freezes for one second of ten
//! while 1 000 requests/s are wanted of it: the p99 is 0.9 s (docs/accuracy.md). A tool without a rate is asked for what
//! it can: as many requests as it gets answered in about ten seconds. Nothing is built or downloaded but brunt.

use crate::{programs, release_build};
use anyhow::Context;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A run is ended when it takes longer than this, in seconds: it should take ten.
const PATIENCE_S: &str = "60";
/// Where programs are looked for beside the PATH.
const DIRECTORY: &str = "BRUNT_PEERS";

/// How long, of ten seconds at 1 000/s, each hundredth slowest request takes: 1 s − 1 % of 10 s.
const TRUTH: &str = "900 ms";

/// A tool that can be asked.
struct Peer {
    command: &'static str,
    /// `PORT` stands for the server's.
    arguments: &'static str,
    /// Its p99 in milliseconds out of what it prints.
    p99_ms: fn(&str) -> Option<f64>,
}

const PEERS: [Peer; 2] = [
    Peer {
        command: "mutilate",
        arguments: "-s 127.0.0.1:PORT -q 1000 -c 4 -T 1 -t 10 -r 1000 -u 0.1",
        p99_ms: mutilate_p99_ms,
    },
    Peer {
        command: "memtier_benchmark",
        arguments: "--server=127.0.0.1 --port=PORT --protocol=memcache_text --threads=1 --clients=4 --rate-limiting=250 \
                    --test-time=10 --ratio=1:9 --key-maximum=1000 --hide-histogram",
        p99_ms: memtier_p99_ms,
    },
];

/// brunt by the same measure.
const OURS: &str = "run --server=127.0.0.1:PORT -r 1000 --arrival uniform -c 4 -t 10s --warmup 0s --keys 1000 \
                    --allow=BROKEN,LOAD,CLIENT,DATA --quiet --json=-";

/// Asks everyone and prints a table.
///
/// # Errors
/// brunt does not build, or a program that was found cannot be started, does not end or prints something else.
pub(crate) fn run() -> anyhow::Result<()> {
    let target = release_build::target_folder()?;
    release_build::build(&target, &["--package", "brunt"], &[])?;
    let brunt = target.join("release/brunt");
    println!("| tool | its p99 | truth | command |\n|---|---|---|---|");
    row(&brunt, &brunt, OURS, brunt_p99_ms)?;
    for peer in &PEERS {
        match find(peer.command) {
            Some(path) => row(&brunt, &path, peer.arguments, peer.p99_ms)?,
            None => println!("| {} | not installed | {TRUTH} | `{}` |", peer.command, peer.arguments),
        }
    }
    Ok(())
}

/// Lets one tool load a server of its own that freezes, and prints its row.
fn row(brunt: &Path, tool: &Path, arguments: &str, p99_ms: fn(&str) -> Option<f64>) -> anyhow::Result<()> {
    let name = tool.file_name().unwrap_or_default().to_string_lossy();
    let server = Server::start(brunt)?;
    let arguments = arguments.replace("PORT", &server.port.to_string());
    let printed = output(tool, &arguments).with_context(|| name.to_string())?;
    let p99_ms = p99_ms(&printed).with_context(|| format!("{name} printed no p99:\n{printed}"))?;
    println!("| {name} | {p99_ms:.2} ms | {TRUTH} | `{arguments}` |");
    Ok(())
}

fn find(command: &str) -> Option<PathBuf> {
    let named = std::env::var_os(DIRECTORY).map(|directory| PathBuf::from(directory).join(command));
    named.filter(|path| path.is_file()).or_else(|| programs::on_path(command))
}

/// What a program prints, all of it; ended when it takes too long.
fn output(program: &Path, arguments: &str) -> anyhow::Result<String> {
    let output = Command::new("timeout")
        .arg(PATIENCE_S)
        .arg(program)
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .context("cannot be started")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The reference server, frozen for the fifth second after its first request; dropping it ends it.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(brunt: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(brunt)
            .args(["serve", "--port", "0", "--stall", "4s:1s", "--die-with-parent"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the reference server")?;
        let mut announcement = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut announcement)?;
        }
        let port = announcement.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let mut server = Self { child, port: 0 };
        server.port = port.with_context(|| format!("the reference server said '{}'", announcement.trim()))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first p99 among the response times of all requests, in nanoseconds.
fn brunt_p99_ms(printed: &str) -> Option<f64> {
    let (_, response) = printed.split_once("\"response_ns\"")?;
    let (_, p99) = response.split_once("\"p99\":")?;
    let digits: String = p99.trim_start().chars().take_while(char::is_ascii_digit).collect();
    Some(digits.parse::<f64>().ok()? / 1e6)
}

/// The ninth word of the row `read`, in microseconds.
fn mutilate_p99_ms(printed: &str) -> Option<f64> {
    let row = printed.lines().find(|line| line.starts_with("read "))?;
    Some(row.split_whitespace().nth(8)?.parse::<f64>().ok()? / 1e3)
}

/// The column `p99 Latency` of the row `Totals`, in milliseconds.
fn memtier_p99_ms(printed: &str) -> Option<f64> {
    let heading = printed.lines().find(|line| line.contains("p99 Latency"))?;
    // Two words a heading where it is a latency, one where it is not.
    let before = heading.split("p99 Latency").next()?;
    let column = before.replace(" Latency", "").split_whitespace().count();
    let row = printed.lines().find(|line| line.starts_with("Totals"))?;
    row.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_output_is_parsed() {
        let brunt = r#"{"latency": {"response_ns": {"mean": 1.5, "p50": 50000, "p99": 902800000}, "service_ns": {"p99": 1}}}"#;
        assert_eq!(brunt_p99_ms(brunt), Some(902.8));
        let mutilate = "#type       avg     std     min     5th    10th    90th    95th    99th\n\
                        read      222.4  1001.0    80.1    95.0   101.2   210.0   230.5   270.4\n";
        assert_eq!(mutilate_p99_ms(mutilate), Some(0.2704));
        let memtier = "Type  Ops/sec  Hits/sec  Misses/sec  Avg. Latency  p50 Latency  p99 Latency  p99.9 Latency  KB/sec\n\
                       ----\nTotals  1000.1  900.0  0.0  0.31  0.20  0.46  1003.5  100.2\n";
        assert_eq!(memtier_p99_ms(memtier), Some(0.46));
        assert_eq!(memtier_p99_ms("connection refused"), None);
    }
}
