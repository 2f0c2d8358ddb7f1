//! The tools whose command lines we take: a row for each name, which is a subcommand, and a link of that name is the tool.
//!
//! Not what a command line means: each tool has a folder. Invariant: no two rows have one name.

use crate::front_end::{Asked, Caller};
use crate::memaslap::front_end as memaslap;
use crate::mutilate::{Generation, front_end as mutilate};

/// A name that a tool is called by.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a function has nothing to show")]
pub struct Tool {
    /// The name.
    pub name: &'static str,
    /// What `brunt --help` says of it.
    pub about: &'static str,
    /// Reads a command line, without the program's name.
    pub read: fn(&[String], &Caller<'_>) -> Asked,
}

/// Every name.
pub const TOOLS: [Tool; 4] = [
    Tool {
        name: "mutilate",
        about: "Take mutilate's command line and print its report; a link named mutilate does the same",
        read: |arguments, caller| mutilate::read(arguments, Generation::First, caller),
    },
    Tool {
        name: "mutilate-g2",
        about: "The same with the columns of its second generation",
        read: |arguments, caller| mutilate::read(arguments, Generation::Second, caller),
    },
    Tool {
        name: "memaslap",
        about: "Take memaslap's command line and print its report; a link named memaslap does the same",
        read: memaslap::read,
    },
    Tool { name: "memcaslap", about: "The same by Debian's name of it", read: memaslap::read },
];

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
