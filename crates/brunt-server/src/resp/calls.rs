//! What Redis counts in its own way: calls of each command, and keys of commands that read.
//!
//! Only names and numbers; what is counted of every dialect alike is in `statistics`. Invariant: a command is counted when it is
//! carried out, whatever comes of it; one that is refused before, by script or for its arguments, is not.

use super::What;
use std::collections::BTreeMap;

/// The counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    by_command: BTreeMap<What, u64>,
    /// Keys that a `TOUCH` found: it reads, and changes nothing.
    pub(crate) touch_hits: u64,
    /// Keys that it did not find.
    pub(crate) touch_misses: u64,
}

impl Calls {
    pub(crate) fn count(&mut self, what: What) {
        *self.by_command.entry(what).or_default() += 1;
    }

    /// Commands of every kind.
    pub(crate) fn total(&self) -> u64 {
        self.by_command.values().sum()
    }

    /// Redis's rows, each with its name.
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> {
        let row = |(what, calls): (&What, &u64)| format!("cmdstat_{}:calls={calls}", name(*what));
        self.by_command.iter().map(row)
    }
}

/// What Redis calls a command here; the two that remove are one, and so are the two that empty.
const fn name(what: What) -> &'static str {
    match what {
        What::Get => "get",
        What::Mget => "mget",
        What::Set => "set",
        What::SetEx { unit_ms: 1 } => "psetex",
        What::SetEx { .. } => "setex",
        What::Incr { is_increment: true, has_amount: false } => "incr",
        What::Incr { is_increment: true, has_amount: true } => "incrby",
        What::Incr { is_increment: false, has_amount: false } => "decr",
        What::Incr { is_increment: false, has_amount: true } => "decrby",
        What::Append => "append",
        What::Delete => "del",
        What::Touch => "touch",
        What::Expire { unit_ms: 1 } => "pexpire",
        What::Expire { .. } => "expire",
        What::Ttl => "ttl",
        What::Exists => "exists",
        What::StringLength => "strlen",
        What::HashSet => "hset",
        What::HashGet => "hget",
        What::HashGetAll => "hgetall",
        What::Hello => "hello",
        What::Auth => "auth",
        What::Select => "select",
        What::Client => "client",
        What::Ping => "ping",
        What::Echo => "echo",
        What::Info => "info",
        What::DatabaseSize => "dbsize",
        What::FlushAll => "flushall",
        What::CommandList => "command",
        What::Quit => "quit",
    }
}
