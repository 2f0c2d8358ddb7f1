//! Redis's own counters: calls of each command, and keys of commands that read.
//!
//! Only names and numbers; what is counted of every protocol alike is in `statistics`. Invariant: a command is counted when it is
//! carried out, whatever comes of it; one that is refused before, by script or for its arguments, is not.

use super::CommandKind;
use std::collections::BTreeMap;

/// The counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    by_command: BTreeMap<CommandKind, u64>,
    /// Keys that a `TOUCH` found: it reads, and changes nothing.
    pub(crate) touch_hits: u64,
    /// Keys that it did not find.
    pub(crate) touch_misses: u64,
}

impl Calls {
    pub(crate) fn count(&mut self, what: CommandKind) {
        *self.by_command.entry(what).or_default() += 1;
    }

    /// Commands of every kind.
    pub(crate) fn total(&self) -> u64 {
        self.by_command.values().sum()
    }

    /// Redis's rows, each with its name.
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> {
        let row = |(what, calls): (&CommandKind, &u64)| format!("cmdstat_{}:calls={calls}", name(*what));
        self.by_command.iter().map(row)
    }
}

/// What Redis calls a command here; the two that remove are one, and so are the two that empty.
const fn name(what: CommandKind) -> &'static str {
    match what {
        CommandKind::Get => "get",
        CommandKind::Mget => "mget",
        CommandKind::Set => "set",
        CommandKind::SetEx { unit_ms: 1 } => "psetex",
        CommandKind::SetEx { .. } => "setex",
        CommandKind::Incr { is_increment: true, has_amount: false } => "incr",
        CommandKind::Incr { is_increment: true, has_amount: true } => "incrby",
        CommandKind::Incr { is_increment: false, has_amount: false } => "decr",
        CommandKind::Incr { is_increment: false, has_amount: true } => "decrby",
        CommandKind::Append => "append",
        CommandKind::Delete => "del",
        CommandKind::Touch => "touch",
        CommandKind::Expire { unit_ms: 1 } => "pexpire",
        CommandKind::Expire { .. } => "expire",
        CommandKind::Ttl => "ttl",
        CommandKind::Exists => "exists",
        CommandKind::StringLength => "strlen",
        CommandKind::HashSet => "hset",
        CommandKind::HashGet => "hget",
        CommandKind::HashGetAll => "hgetall",
        CommandKind::Hello => "hello",
        CommandKind::Auth => "auth",
        CommandKind::Select => "select",
        CommandKind::Client => "client",
        CommandKind::Ping => "ping",
        CommandKind::Echo => "echo",
        CommandKind::Info => "info",
        CommandKind::DatabaseSize => "dbsize",
        CommandKind::FlushAll => "flushall",
        CommandKind::CommandList => "command",
        CommandKind::Quit => "quit",
    }
}
