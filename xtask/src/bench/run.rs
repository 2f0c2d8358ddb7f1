//! One run of one client: on a processor of its own, its processor time taken by the kernel, its requests counted by itself
//! and by the server.
//!
//! Invariant: what a client says and what the server saw are beside each other; where they differ, the row says so.

use super::client::{Client, Kind, Load};
use super::server::Server;
use super::shape::Shape;
use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run may take this much longer than it should.
const GRACE_S: u64 = 30;
/// What a client says and what the server saw may differ by this part: what was in flight at the end, and what the server
/// was asked beside the load.
const DISAGREEMENT_MAX: f64 = 0.01;

/// Where and for how long.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Of brunt-bench, which takes the processor time of the others.
    pub(crate) stopwatch: PathBuf,
    /// Processors that clients may use, as `taskset -c` takes them.
    pub(crate) processors: String,
    pub(crate) seconds: u64,
    /// For configurations and what clients write.
    pub(crate) directory: PathBuf,
}

/// What came of a run, per request where it says so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    pub(crate) syscalls: Option<f64>,
    pub(crate) requests_per_s: f64,
    /// Of brunt: the part of its processor time that lies outside the measured window.
    pub(crate) outside: Option<f64>,
    /// What a reader must know.
    pub(crate) note: Option<String>,
}

impl Measured {
    pub(crate) fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

impl Bench {
    /// Runs a client once against a server.
    ///
    /// # Errors
    /// It cannot be started, does not end, fails, or nothing was asked of the server.
    pub(crate) fn measure(
        &self,
        client: &Client,
        shape: Shape,
        server: &Server,
        requests: u64,
    ) -> anyhow::Result<Measured> {
        let path = |name: &str| self.directory.join(name);
        let (conf, out, cost) = (path("client.conf"), path("client.out"), path("cost.json"));
        let load = Load {
            shape,
            port: server.port,
            seconds: self.seconds,
            requests,
            rate: None,
            conf: &conf.display().to_string(),
            out: &out.display().to_string(),
        };
        std::fs::write(&conf, client.configuration(&load))?;
        std::fs::write(&out, "")?;
        let before = server.counted()?;
        let printed = self.take_cost(&client.program, &client.arguments(&load), &cost)?;
        let after = server.counted()?;
        let said = client.said(&printed, &std::fs::read_to_string(&out).unwrap_or_default());
        let [hits, misses] = [after.hits - before.hits, after.misses - before.misses];
        ensure!(hits + misses > 0, "nothing was asked of the server");
        let requests = said.requests.unwrap_or(hits + misses) as f64;
        let cost: Value = serde_json::from_str(&std::fs::read_to_string(&cost)?)?;
        let number = |key: &str| cost[key].as_f64().with_context(|| format!("no {key} among the costs"));
        let whole = [number("cpu_user_ns")?, number("cpu_system_ns")?];
        let window = said.window_cpu_ns.map(|window| window.map(|ns| ns as f64));
        // The floor tries its keys out first, which is no part of it: without that it is lower.
        let [user, system] =
            if client.kind == Kind::Floor { window.context("the floor says no time")? } else { whole };
        let sum = |times: [f64; 2]| times[0] + times[1];
        Ok(Measured {
            user_us: user / 1e3 / requests,
            system_us: system / 1e3 / requests,
            syscalls: said.syscalls.map(|syscalls| syscalls / requests),
            requests_per_s: requests / (number("wall_ns")? / 1e9),
            outside: window
                .filter(|_| client.kind == Kind::Brunt)
                .map(|window| 1.0 - sum(window) / sum(whole)),
            note: note(requests + said.before as f64, hits, misses),
        })
    }

    /// How many requests a client that takes no time must be asked for, by a short trial.
    pub(crate) fn requests_for(&self, client: &Client, shape: Shape, server: &Server) -> anyhow::Result<u64> {
        const TRIAL: u64 = 20_000;
        let Kind::Peer(peer) = client.kind else { return Ok(0) };
        if !peer.takes_requests {
            return Ok(0);
        }
        let trial = self.measure(client, shape, server, TRIAL)?;
        Ok((trial.requests_per_s * self.seconds as f64) as u64)
    }

    /// Runs a program on the clients' processors and has the kernel's account of it written to `to`. Returns what it printed.
    pub(crate) fn take_cost(
        &self,
        program: &Path,
        arguments: &[String],
        to: &Path,
    ) -> anyhow::Result<String> {
        let output = Command::new("taskset")
            .args(["-c", &self.processors, "timeout", &(self.seconds + GRACE_S).to_string()])
            .arg(&self.stopwatch)
            .args(["cost", "--to"])
            .arg(to)
            .arg("--")
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("cannot run taskset")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("and said nothing");
            bail!("{} ended with {}: {line}", program.display(), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Says where a client's count is not the server's, or not everything was a hit.
fn note(said: f64, hits: u64, misses: u64) -> Option<String> {
    let seen = (hits + misses) as f64;
    if misses > 0 {
        return Some(format!("{:.1} % misses", 100.0 * misses as f64 / seen));
    }
    ((said - seen).abs() > DISAGREEMENT_MAX * seen)
        .then(|| format!("says {said:.0} requests, the server saw {seen:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_disagreements() {
        assert_eq!(note(1000.0, 1005, 0), None);
        assert_eq!(note(1000.0, 1020, 0).unwrap(), "says 1000 requests, the server saw 1020");
        assert_eq!(note(1000.0, 900, 100).unwrap(), "10.0 % misses");
    }
}
