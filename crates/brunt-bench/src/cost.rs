//! `brunt-bench cost`: runs a command and writes its CPU time to a file.
//!
//! The kernel's accounting of the child and its children, from start to end, alike for every program compared
//! (`cargo xtask bench`).

use crate::syscall_client::usage::{Who, usage};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The file that is written.
    to: String,
    command: Vec<String>,
}

impl Cost {
    /// Parses the arguments.
    ///
    /// # Errors
    /// It is not `--to FILE -- COMMAND...`.
    pub(crate) fn parse(options: &[&str]) -> Result<Self, String> {
        match options {
            ["--to", to, "--", command @ ..] if !command.is_empty() => Ok(Self {
                to: (*to).to_owned(),
                command: command.iter().map(|word| (*word).to_owned()).collect(),
            }),
            _ => Err("cost: accepted: --to FILE -- COMMAND...".to_owned()),
        }
    }

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

    #[test]
    fn command_lines() {
        let cost = Cost { to: "f".to_owned(), command: vec!["true".to_owned(), "--to".to_owned()] };
        assert_eq!(Cost::parse(&["--to", "f", "--", "true", "--to"]), Ok(cost));
        assert!(Cost::parse(&["--to", "f", "--"]).is_err());
        assert!(Cost::parse(&["true"]).is_err());
    }
}
