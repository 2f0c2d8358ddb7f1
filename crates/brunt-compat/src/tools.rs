//! The tools whose command lines we take: a row for each name, which is a subcommand, and a link of that name is the tool.
//!
//! Not what a command line means: each tool has a folder. Invariant: no two rows have one name.

use crate::front_end::{Answer, Caller, Outcome};
use crate::mutilate::command_line::Generation;
use crate::names::Names;
use crate::{mcperf, memaslap, mutilate, rpc_perf};

/// A name that a tool is called by.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a function has nothing to show")]
pub struct Tool {
    /// The name.
    pub name: &'static str,
    /// What `brunt --help` says of it.
    pub about: &'static str,
    /// Its options, and which of them are meant where our messages name ours.
    pub names: &'static Names,
    reader: fn(&[String], &Caller<'_>) -> Outcome,
}

impl Tool {
    /// Reads a command line, without the program's name.
    pub fn read(&self, arguments: &[String], caller: &Caller<'_>) -> Outcome {
        match (self.reader)(arguments, caller) {
            Outcome::Answer(answer) => {
                Outcome::Answer(Answer { err: self.names.translate(&answer.err), ..answer })
            }
            asked @ Outcome::FrontEnd(_) => asked,
        }
    }
}

/// Every name.
pub static TOOLS: [Tool; 6] = [
    Tool {
        name: "mutilate",
        about: "Take mutilate's command line and print its report; a link of this name does the same",
        names: &mutilate::command_line::NAMES,
        reader: |arguments, caller| mutilate::read(arguments, Generation::First, caller),
    },
    Tool {
        name: "mutilate-g2",
        about: "Take mutilate's command line and print its report with the columns of its second generation",
        names: &mutilate::command_line::NAMES,
        reader: |arguments, caller| mutilate::read(arguments, Generation::Second, caller),
    },
    Tool {
        name: "memaslap",
        about: "Take memaslap's command line and print its report; a link of this name does the same",
        names: &memaslap::command_line::NAMES,
        reader: memaslap::read,
    },
    Tool {
        name: "memcaslap",
        about: "Take memaslap's command line and print its report, under the name that Debian gives it",
        names: &memaslap::command_line::NAMES,
        reader: memaslap::read,
    },
    Tool {
        name: "mcperf",
        about: "Take mcperf's command line and print its report; a link of this name does the same",
        names: &mcperf::command_line::NAMES,
        reader: mcperf::read,
    },
    Tool {
        name: "rpc-perf",
        about: "Take rpc-perf's command line and file and print its log; a link of this name does the same",
        names: &rpc_perf::command_line::NAMES,
        reader: rpc_perf::read,
    },
];

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else the tool's own messages would be translated.
    #[test]
    fn tools_agree_on_options_added_by_brunt() {
        for Tool { name, names, .. } in &TOOLS {
            for (ours, _) in names.table {
                let is_own = names.options.iter().any(|option| ours.strip_prefix("--") == Some(option.long));
                assert!(!is_own, "{name}: {ours}");
            }
        }
    }
}
