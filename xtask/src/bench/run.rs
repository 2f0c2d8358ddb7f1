//! One run of one client: on a CPU of its own, its CPU time taken by the kernel, its requests counted by itself and by the server.
//!
//! Invariant: what a client reports and what the server saw are beside each other; where they differ, the row tells so.

use super::client::{Client, Kind, Load, Shape};
use crate::process::Server;
use anyhow::{Context, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A run may take this much longer than it should.
const GRACE_S: u64 = 30;
/// What a client reports and what the server saw may differ by this part: what was in flight at the end, and what the server
/// answered beside the load.
const DISAGREEMENT_MAX: f64 = 0.01;

/// Where and for how long.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) seconds: u64,
    /// As `taskset -c` takes them.
    pub(crate) client_cpus: String,
    /// For configurations and what clients write.
    pub(crate) directory: PathBuf,
}

/// What came of a run, per request where its name tells so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) cpu_us: f64,
    pub(crate) syscalls: Option<f64>,
    pub(crate) requests_per_s: f64,
    /// Of brunt: the part of its CPU time that lies outside the measured window.
    pub(crate) outside: Option<f64>,
    /// What a reader must know.
    pub(crate) note: Option<String>,
}

/// CPU time, of the user and the system, of all processes that were waited for.
fn children_cpu_us() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64)
}

impl Bench {
    /// A load of a shape on the server with this port.
    pub(crate) fn load(&self, shape: Shape, port: u16) -> Load<'_> {
        Load { shape, port, seconds: self.seconds, requests: 0, directory: &self.directory }
    }

    /// Lets a client store its keys if it writes them in its own way. Returns what went wrong.
    pub(crate) fn prepare(&self, client: &Client, load: &Load<'_>) -> Option<String> {
        let arguments = load.fill(client.tool.preparation?);
        let stored = self.output(&client.program, &arguments);
        stored.err().map(|error| format!("{} cannot store its keys: {error:#}.", client.tool.name))
    }

    /// What a program prints with these arguments, parted by blanks.
    fn output(&self, program: &Path, arguments: &str) -> anyhow::Result<String> {
        let mut command = Command::new("timeout");
        command.arg((self.seconds + GRACE_S).to_string()).args(["taskset", "-c", &self.client_cpus]);
        command.arg(program).args(arguments.split_whitespace());
        let output = command.stdin(Stdio::null()).output().context("cannot run timeout")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
            bail!("{} ended with {}: {line}", program.display(), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a client once against a server, and compares what both count.
    ///
    /// # Errors
    /// It cannot be started, does not end, fails, or reports nothing; or the server saw no request.
    pub(crate) fn measure(
        &self,
        client: &Client,
        load: &Load<'_>,
        server: &Server,
    ) -> anyhow::Result<Measured> {
        std::fs::write(load.configuration_path(), client.configuration(load))?;
        std::fs::write(load.output_path(), "")?;
        let before = server.hits_and_misses()?;
        let (start, before_us) = (Instant::now(), children_cpu_us()?);
        let printed = self.output(&client.program, &client.arguments(load))?;
        let (wall_s, cpu_us) = (start.elapsed().as_secs_f64(), children_cpu_us()? - before_us);
        let after = server.hits_and_misses()?;
        let written = std::fs::read_to_string(load.output_path()).unwrap_or_default();
        let report = (client.tool.report)(&printed, &written);
        let is_read = client.is(Kind::Peer) || report.requests.is_some();
        ensure!(is_read, "{} printed no result: {printed}", client.tool.name);
        let [hits, misses] = [0, 1].map(|index| after[index] - before[index]);
        ensure!(hits + misses > 0, "the server saw no request");
        let requests = report.requests.unwrap_or(hits + misses) as f64;
        // The floor tries its keys out first, which is no part of it: without that it is lower.
        let own_us = match client.tool.kind {
            Kind::Floor => report.window_cpu_us.context("the floor reports no time")?,
            Kind::Brunt | Kind::Peer => cpu_us,
        };
        let window = report.window_cpu_us.filter(|_| client.is(Kind::Brunt));
        Ok(Measured {
            cpu_us: own_us / requests,
            syscalls: report.syscalls.map(|syscalls| syscalls / requests),
            requests_per_s: requests / wall_s,
            outside: window.map(|window| 1.0 - window / cpu_us),
            note: note(requests + report.before as f64, hits, misses),
        })
    }

    /// How many requests a client that takes no time must be given, by a short trial.
    pub(crate) fn requests_for(
        &self,
        client: &Client,
        load: &Load<'_>,
        server: &Server,
    ) -> anyhow::Result<u64> {
        const TRIAL: u64 = 20_000;
        if !client.tool.takes_requests {
            return Ok(0);
        }
        let trial = self.measure(client, &Load { requests: TRIAL, ..*load }, server)?;
        Ok((trial.requests_per_s * self.seconds as f64) as u64)
    }
}

/// Tells if a client's count is not the server's, or not everything was a hit.
fn note(reported: f64, hits: u64, misses: u64) -> Option<String> {
    let seen = (hits + misses) as f64;
    if misses > 0 {
        return Some(format!("{:.1} % misses", 100.0 * misses as f64 / seen));
    }
    ((reported - seen).abs() > DISAGREEMENT_MAX * seen)
        .then(|| format!("reports {reported:.0} requests, the server saw {seen:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_disagreements() {
        assert_eq!(note(1000.0, 1005, 0), None);
        assert_eq!(note(1000.0, 1020, 0).unwrap(), "reports 1000 requests, the server saw 1020");
        assert_eq!(note(1000.0, 900, 100).unwrap(), "10.0 % misses");
    }

    #[test]
    fn cpu_time_of_a_run_is_that_of_its_processes() {
        let (client_cpus, directory) = ("0".to_owned(), tempfile::tempdir().unwrap());
        let bench = Bench { seconds: 5, client_cpus, directory: directory.path().to_path_buf() };
        let script = |name: &str, text: &str| {
            let path = bench.directory.join(name);
            std::fs::write(&path, text).unwrap();
            bench.output(Path::new("sh"), path.to_str().unwrap())
        };
        let before = children_cpu_us().unwrap();
        let printed = script("busy", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done").unwrap();
        let after = children_cpu_us().unwrap();
        assert_eq!(printed, "done\n");
        // Some 100 ms; the kernel counts in steps of a few.
        assert!(after - before > 10e3, "{before:?} {after:?}");
        assert!(script("failing", "echo no >&2; exit 3").is_err());
    }
}
