//! `brunt serve` for commands that measure something, on a port of its own.

use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that ends with this.
pub(crate) struct ReferenceServer {
    child: Child,
    pub(crate) address: String,
}

impl ReferenceServer {
    /// Starts this brunt's with these options.
    pub(crate) fn start(brunt: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let mut serve = Command::new(brunt);
        serve.args(["serve", "--port", "0"]).args(options).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = Self { child: serve.spawn()?, address: String::new() };
        let out = server.child.stdout.take().context("its output is a pipe")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        line.trim().rsplit(' ').next().unwrap_or_default().clone_into(&mut server.address);
        ensure!(server.address.contains(':'), "brunt serve said {line:?}");
        Ok(server)
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
