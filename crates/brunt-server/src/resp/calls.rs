//! Redis's own counters: calls of each command, and keys of commands that read.
//!
//! Only names and numbers; what is counted of every protocol alike is in `statistics`. Invariant: a command is counted when it is
//! carried out, whatever comes of it; one that is refused before, by script or for its arguments, is not.

use std::collections::BTreeMap;

/// The counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    by_command: BTreeMap<&'static str, u64>,
    /// Keys that a `TOUCH` found: it reads, and changes nothing.
    pub(crate) touch_hits: u64,
    /// Keys that it did not find.
    pub(crate) touch_misses: u64,
}

impl Calls {
    pub(crate) fn count(&mut self, name: &'static str) {
        *self.by_command.entry(name).or_default() += 1;
    }

    /// Commands of every kind.
    pub(crate) fn total(&self) -> u64 {
        self.by_command.values().sum()
    }

    /// Redis's rows, each with its name.
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> {
        self.by_command.iter().map(|(name, calls)| format!("cmdstat_{name}:calls={calls}"))
    }
}
