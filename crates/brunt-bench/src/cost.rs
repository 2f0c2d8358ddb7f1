//! `brunt-bench cost`: runs a command and writes its CPU time to a file.
//!
//! The kernel's accounting of the child and its children, from start to end, alike for every program compared
//! (`cargo xtask bench`).

use crate::syscall_client::usage::{Who, usage};
use clap::Args;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct Cost {
    /// The file that is written
    #[arg(long, value_name = "FILE")]
    to: String,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl Cost {
    /// Runs the command; its output is inherited.
    ///
    /// # Errors
    /// It cannot be started, or the file cannot be written.
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let start = Instant::now();
        let status = Command::new(&self.command[0])
            .args(&self.command[1..])
            .status()
            .map_err(|error| format!("cannot run {}: {error}", self.command[0]))?;
        let wall = start.elapsed();
        // It is our only child.
        let cpu = usage(Who::Children);
        let text = format!(
            "{{\"wall_ns\": {}, \"cpu_user_ns\": {}, \"cpu_system_ns\": {}}}\n",
            wall.as_nanos(),
            cpu.user_ns,
            cpu.system_ns
        );
        std::fs::write(&self.to, text).map_err(|error| format!("cannot write {}: {error}", self.to))?;
        Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;

    #[test]
    fn command_lines() {
        let cost = Cost { to: "f".to_owned(), command: vec!["true".to_owned(), "--to".to_owned()] };
        assert_eq!(parsed("--to f -- true --to"), Ok(cost));
        assert!(parsed::<Cost>("--to f --").is_err());
        assert!(parsed::<Cost>("true").is_err());
    }
}
