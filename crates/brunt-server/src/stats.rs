//! Counters of the server, and their rows in statistics, in every protocol alike.
//!
//! Only names and numbers: `cache` and `core` count, each protocol writes rows in its own form. Names are memcached's, and those of
//! [`Counters`] are its fields.

use crate::store::Store;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is counted, by memcached's names. Counts of keys where a command has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are memcached's own")]
pub struct Counters {
    pub curr_connections: u64,
    pub total_connections: u64,
    pub cmd_get: u64,
    pub cmd_set: u64,
    pub cmd_flush: u64,
    pub cmd_touch: u64,
    pub get_hits: u64,
    pub get_misses: u64,
    pub delete_misses: u64,
    pub delete_hits: u64,
    pub incr_misses: u64,
    pub incr_hits: u64,
    pub decr_misses: u64,
    pub decr_hits: u64,
    pub cas_misses: u64,
    pub cas_hits: u64,
    pub cas_badval: u64,
    pub touch_hits: u64,
    pub touch_misses: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Not memcached's: requests that were carried out and never answered.
    pub faults_dropped: u64,
    /// Not memcached's: requests that were carried out and answered with a reset.
    pub faults_reset: u64,
    /// Not memcached's: requests whose reply was cut.
    pub faults_cut: u64,
    /// Not memcached's: requests that were refused by script.
    pub faults_error: u64,
    /// Not memcached's: requests that were answered with wrong values.
    pub faults_wrong: u64,
    /// Redis's: connections that were closed because replies that no client read took too much memory.
    pub client_output_buffer_limit_disconnections: u64,
    /// Redis's: connections that were closed because requests that were not whole took too much memory.
    pub client_query_buffer_limit_disconnections: u64,
    /// Not memcached's: datagrams of replies that were lost by script.
    pub datagrams_dropped: u64,
    /// Not memcached's: datagrams of replies that were sent twice by script.
    pub datagrams_duplicated: u64,
    /// Not memcached's: datagrams of replies that changed places with the next by script.
    pub datagrams_swapped: u64,
}

impl Counters {
    /// Counts an increment or a decrement, of an item or of nothing.
    pub(crate) fn count_change(&mut self, is_increment: bool, is_hit: bool) {
        *match (is_increment, is_hit) {
            (true, true) => &mut self.incr_hits,
            (true, false) => &mut self.incr_misses,
            (false, true) => &mut self.decr_hits,
            (false, false) => &mut self.decr_misses,
        } += 1;
    }
}

/// What Redis counts beside what is counted of every protocol alike: calls of each command, and keys of commands that read. A command is
/// counted when it is carried out, whatever comes of it.
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

/// The process that serves, as its system sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number; 0 where no process serves, as in a simulation.
    pub pid: u32,
    /// CPU time in user space, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
}

/// What a server calls its version.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-brunt");

/// A moment of a server: everything that its statistics tell.
pub(crate) struct StatsSnapshot<'a> {
    pub(crate) counters: &'a Counters,
    pub(crate) store: &'a Store,
    pub(crate) process: Process,
    pub(crate) uptime_s: u64,
    /// Unix time.
    pub(crate) time_s: u64,
}

impl StatsSnapshot<'_> {
    /// Every row as (name, text), in the order in which it is told.
    pub(crate) fn rows(&self) -> Vec<(String, String)> {
        let cpu = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let mut rows: Vec<(String, String)> = Vec::new();
        let mut tell = |name: &str, told: &dyn ToString| rows.push((name.to_owned(), told.to_string()));
        tell("pid", &self.process.pid);
        tell("uptime", &self.uptime_s);
        tell("version", &VERSION);
        tell("rusage_user", &cpu(self.process.user_us));
        tell("rusage_system", &cpu(self.process.system_us));
        tell("time", &self.time_s);
        tell("pointer_size", &usize::BITS);
        tell("threads", &1);
        let counters = serde_json::to_value(self.counters).expect("names and numbers can be written");
        for (name, number) in counters.as_object().into_iter().flatten() {
            tell(name, number);
            // The last of memcached's own counters.
            if name == "bytes_written" {
                tell("limit_maxbytes", &self.store.bytes_max);
                tell("bytes", &self.store.bytes);
                tell("curr_items", &self.store.items());
                tell("total_items", &self.store.items_total);
                tell("evictions", &self.store.evictions);
            }
        }
        rows
    }
}
