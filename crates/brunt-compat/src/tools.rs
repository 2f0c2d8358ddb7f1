//! The tools whose command lines we take: a row for each name, which is a subcommand, and a link of that name is the tool.
//!
//! Not what a command line means: each tool has a folder. Invariant: no two rows have one name.

use crate::front_end::{Answer, Caller, Outcome};
use crate::mutilate::Generation;
use crate::names::Names;
use crate::{mcperf, memaslap, mutilate, rpc_perf};

/// A name that a tool is called by.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a function has nothing to show")]
pub struct Tool {
    /// The name.
    pub name: &'static str,
    /// Whose command line it takes, and what else is to be said of it.
    of: &'static str,
    remark: &'static str,
    /// Its options, and which of them are meant where our messages name ours.
    pub names: &'static Names,
    reader: fn(&[String], &Caller<'_>) -> Outcome,
}

impl Tool {
    /// What `brunt --help` says of it.
    pub fn about(&self) -> String {
        format!("Take {}'s command line and print its report{}", self.of, self.remark)
    }

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

const fn tool(
    [name, of, remark]: [&'static str; 3],
    names: &'static Names,
    reader: fn(&[String], &Caller<'_>) -> Outcome,
) -> Tool {
    Tool { name, of, remark, names, reader }
}

const LINK: &str = "; a link of this name does the same";
const SECOND: &str = " with the columns of its second generation";
const DEBIAN: &str = ", under the name that Debian gives it";

/// Every name.
pub static TOOLS: [Tool; 6] = [
    tool(["mutilate", "mutilate", LINK], &mutilate::NAMES, |arguments, caller| {
        mutilate::read(arguments, Generation::First, caller)
    }),
    tool(["mutilate-g2", "mutilate", SECOND], &mutilate::NAMES, |arguments, caller| {
        mutilate::read(arguments, Generation::Second, caller)
    }),
    tool(["memaslap", "memaslap", LINK], &memaslap::NAMES, memaslap::read),
    tool(["memcaslap", "memaslap", DEBIAN], &memaslap::NAMES, memaslap::read),
    tool(["mcperf", "mcperf", LINK], &mcperf::NAMES, mcperf::read),
    tool(["rpc-perf", "rpc-perf", LINK], &rpc_perf::NAMES, rpc_perf::read),
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
