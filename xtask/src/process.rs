//! Processes that commands start beside them: servers, and runs that are watched.
//!
//! Invariant: no process is left behind. The kernel kills it when the thread that started it is gone: on Ctrl-C, too, and where
//! nothing here can run any more. So it is started from a thread that lives as long as the process may.

use anyhow::{Context, ensure};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a process that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A process that dropping kills.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// A command line that is killed when the thread that starts it ends. The process keeps its id through both programs.
    pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
        command
    }

    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        command.spawn().map(Self).with_context(|| format!("cannot run {command:?}"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end until then. None: it goes on.
    pub(crate) fn await_end(&mut self, until: Instant) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            std::thread::park_timeout(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets brunt measure, whatever the status of what it measures.
pub(crate) const ALLOW: &str = "--allow=BROKEN,LOAD,CLIENT,DATA";

/// Does a brunt that ended like this have a result? 1 and 2 are the codes without.
pub(crate) fn has_result(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| code != 1 && code != 2)
}

/// Runs brunt quietly with these arguments.
///
/// # Errors
/// It ends without a result.
pub(crate) fn run_brunt(brunt: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(brunt).args(arguments).arg("--quiet").stdin(Stdio::null()).status()?;
    ensure!(has_result(status), "brunt {} ended with {status}", arguments.join(" "));
    Ok(())
}

/// `brunt serve` on a port of its own.
pub(crate) struct ReferenceServer {
    _process: Process,
    pub(crate) address: String,
}

impl ReferenceServer {
    /// Starts this brunt's with these options.
    pub(crate) fn start(brunt: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let mut serve = Process::command(brunt);
        serve.args(["serve", "--port", "0"]).args(options).stdout(Stdio::piped());
        let mut process = Process::start(&mut serve)?;
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().context("its output is a pipe")?).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        ensure!(address.contains(':'), "brunt serve said {line:?}");
        Ok(Self { _process: process, address })
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> anyhow::Result<u16> {
        let port = self.address.rsplit(':').next().and_then(|port| port.parse().ok());
        port.with_context(|| format!("'{}' has no port", self.address))
    }
}
