//! `cargo xtask soak [MINUTES]`: a long run against a real memcached: does memory stay, does every operation count, is every file whole?
//!
//! The test command makes a short one, which judges no memory. Invariant: what is judged is exact or holds on any host; a late client is
//! printed, and does not matter here.

mod accounting;
mod growth;

use crate::process::{Process, Protocol, ReferenceServer, Server, counters};
use crate::{cargo, programs};
use anyhow::{Context, bail, ensure};
use growth::{Growth, Sample};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Of the short one.
const SHORT_S: u64 = 6;
/// Connecting, a preload and what follows the measured window take no longer.
const GRACE_S: u64 = 120;
/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Samples of memory: every 10 s, and at least 48 of a run.
const PERIOD_S_MAX: f64 = 10.0;
const SAMPLES_MIN: f64 = 48.0;
/// Samples in a line of the table.
const COLUMNS: usize = 6;
/// Runs for this many minutes.
///
/// # Errors
/// A program is missing; memory grows, the accounting differs, or a file is not whole.
pub(crate) fn run(minutes: u64) -> anyhow::Result<()> {
    programs::ensure_servers()?.iter().for_each(|skipped| println!("{skipped}"));
    let [brunt, _] = cargo::release_programs()?;
    let soak = Soak { brunt, rate: "20k", run_s: minutes * 60 };
    let samples = soak.run(&cargo::target_folder()?.join("soak"))?;
    judge(&samples, soak.run_s as f64)
}

/// A short one of the brunt that the tests have built. Memory is not judged.
///
/// # Errors
/// The accounting differs, or a file is not whole.
pub(crate) fn short() -> anyhow::Result<()> {
    let soak = Soak { brunt: cargo::debug_brunt()?, rate: "2k", run_s: SHORT_S };
    soak.run(&cargo::target_folder()?.join("soak-short")).map(drop)
}

struct Soak {
    brunt: PathBuf,
    rate: &'static str,
    run_s: u64,
}

impl Soak {
    /// Runs, writing files to `folder`; what memory it took.
    fn run(&self, folder: &Path) -> anyhow::Result<Vec<Sample>> {
        // What an earlier one left behind would pass for this one's.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // A real memcached, or the reference server if a person left that out.
        let (memcached, reference);
        let address = if programs::on_path("memcached").is_some() {
            memcached = Server::start(Protocol::Memcached, None)?;
            memcached.address()
        } else {
            reference = ReferenceServer::start(&self.brunt, &[])?;
            reference.address.clone()
        };
        let (rate, run_s) = (self.rate, self.run_s);
        println!("{rate} operations per second for {run_s} s, {}, to {address}", accounting::MIX);
        let before = counters(&address, Protocol::Memcached)?;
        let notes = folder.join("soak.txt");
        let mut run = self.start(folder, &address, &notes)?;
        let samples = self.watch(&mut run, &notes)?;
        let ended = run.await_end(Instant::now() + Duration::from_secs(GRACE_S))?;
        let exit = ended.context("brunt does not end")?.code();
        let said = fs::read_to_string(&notes)?;
        check_outputs(folder).with_context(|| format!("exit code {exit:?}, {said}"))?;
        let result = serde_json::from_str(&fs::read_to_string(output_path(folder, "json"))?)?;
        accounting::check(&result, &before, &counters(&address, Protocol::Memcached)?, exit)?;
        Ok(samples)
    }

    fn start(&self, folder: &Path, server: &str, notes: &Path) -> anyhow::Result<Process> {
        let mut command = Process::command(&self.brunt);
        command.args(["run", "--server", server, "-r", self.rate, "-t", &format!("{}s", self.run_s)]);
        command.args(["--mix", accounting::MIX, "--keys", "20000", "--value-size", "uniform:20,400"]);
        // A host that is busy for 10 s is no difference in the accounting.
        command.args(["--timeout", "60s", "--quiet", "--http", "127.0.0.1:0"]);
        for (ending, _) in OUTPUTS {
            command.arg("-o").arg(output_path(folder, ending));
        }
        Process::start(command.stdout(Stdio::null()).stderr(File::create(notes)?))
    }

    /// Samples its memory and reads its pages until the window is about to end: what writing the files takes is no part of it.
    fn watch(&self, run: &mut Process, notes: &Path) -> anyhow::Result<Vec<Sample>> {
        let (start, run_s) = (Instant::now(), self.run_s as f64);
        let period_s = (run_s / SAMPLES_MIN).clamp(1.0, PERIOD_S_MAX);
        println!("resident memory in MB, every {period_s} s, {COLUMNS} in a line:");
        let mut samples = Vec::new();
        for number in 1.. {
            let at_s = f64::from(number) * period_s;
            if at_s >= run_s {
                break;
            }
            if let Some(status) = run.await_end(start + Duration::from_secs_f64(at_s))? {
                bail!("brunt ended with {status} after {at_s} s: {}", fs::read_to_string(notes)?);
            }
            let sample = Sample { at_s: start.elapsed().as_secs_f64(), rss_bytes: rss_bytes(run.id())? };
            if samples.len() % COLUMNS == 0 {
                print!("\n{:>7.0} s", sample.at_s);
            }
            print!(" {:>9.3}", sample.rss_bytes / 1e6);
            std::io::stdout().flush()?;
            samples.push(sample);
            read_pages(notes)?;
        }
        println!("\n");
        Ok(samples)
    }
}

/// Judges growth and prints it as a row of a table in Markdown.
///
/// # Errors
/// It grows.
fn judge(samples: &[Sample], run_s: f64) -> anyhow::Result<()> {
    let Some(growth) = Growth::of(samples, run_s) else {
        println!("memory is not judged: too few samples");
        return Ok(());
    };
    let per_h = |per_s: f64| per_s * 3600.0 / 1e6;
    let (found, limit) = (per_h(growth.slope), per_h(growth.slope_max));
    println!(
        "| growth behind {:.1} min | {found:+.2} MB an hour; {limit:.2} are allowed |",
        growth.head_s / 60.0
    );
    ensure!(growth.is_allowed(), "memory grows by {found:.2} MB an hour: expected {limit:.2} at most");
    Ok(())
}

fn rss_bytes(id: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).context("brunt is gone")?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    Ok(kilobytes.context("brunt has no memory")?.parse::<f64>()? * 1024.0)
}

/// Reads the pages of `--http`, whose address the run has noted.
fn read_pages(notes: &Path) -> anyhow::Result<()> {
    let said = fs::read_to_string(notes)?;
    let address = said.split_once("http://").and_then(|(_, rest)| rest.split('/').next());
    let address = address.with_context(|| format!("brunt does not say where its pages are: {said:?}"))?;
    for path in ["/metrics", "/summary.json"] {
        let mut stream = TcpStream::connect(address).with_context(|| format!("cannot read {path}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page).with_context(|| format!("cannot read {path}"))?;
        ensure!(page.starts_with("HTTP/1.1 200 "), "{path}: {:?}", page.lines().next());
    }
    Ok(())
}

// --- Files ---

/// The ending of a file that a run writes, and what reads that.
type Output = (&'static str, fn(&str) -> anyhow::Result<()>);

const OUTPUTS: [Output; 5] =
    [("json", json), ("html", html), ("csv", rows), ("ndjson", ndjson), ("hlog", hlog)];

/// Reads every file: all are there, and each reads as what it is.
fn check_outputs(folder: &Path) -> anyhow::Result<()> {
    for (ending, read) in OUTPUTS {
        let path = output_path(folder, ending);
        fs::read_to_string(&path).map_err(Into::into).and_then(|text| read(&text)).context(path)?;
    }
    Ok(())
}

/// The path of an option's file.
fn output_path(folder: &Path, ending: &str) -> String {
    folder.join(format!("soak.{ending}")).display().to_string()
}

fn json(text: &str) -> anyhow::Result<()> {
    Ok(serde_json::from_str::<Value>(text).map(drop)?)
}

fn ndjson(text: &str) -> anyhow::Result<()> {
    ensure!(!text.is_empty(), "it is empty");
    text.lines().try_for_each(json)
}

fn html(text: &str) -> anyhow::Result<()> {
    let is_whole = text.to_lowercase().starts_with("<!doctype html") && text.trim_end().ends_with("</html>");
    ensure!(is_whole, "it does not begin and end as a page");
    Ok(())
}

fn hlog(text: &str) -> anyhow::Result<()> {
    ensure!(text.starts_with("#["), "it does not begin as a log of histograms");
    rows(text)
}

/// A head below notes, then rows of as many columns, beside the tag that logs of histograms give the rows of a kind.
fn rows(text: &str) -> anyhow::Result<()> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut columns = lines.map(|line| line.split(',').filter(|cell| !cell.starts_with("Tag=")).count());
    let head = columns.next().context("it has no head")?;
    let rows: Vec<usize> = columns.collect();
    ensure!(!rows.is_empty(), "it has no row");
    ensure!(rows.iter().all(|count| *count == head), "a row has other columns than the head: {rows:?}");
    Ok(())
}
