//! A process that ends with this one, however this one ends.
//!
//! Invariant: no process is left behind. The kernel ends it when the thread that started it is gone: on Ctrl-C, too, and where nothing
//! here can run any more. So it is started from the main thread.

use anyhow::Context;
use std::ffi::OsStr;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Dropping it ends it.
pub(super) struct TiedProcess(Child);

impl TiedProcess {
    /// A command line that is killed when this process ends. The process keeps its id through both programs.
    pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    }

    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        command.spawn().map(Self).with_context(|| format!("cannot run {command:?}"))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end until then. None: it goes on.
    pub(super) fn await_end(&mut self, until: Instant) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            std::thread::park_timeout(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

impl Drop for TiedProcess {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
