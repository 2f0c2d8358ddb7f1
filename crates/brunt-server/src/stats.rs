//! Counters of the server, and their rows in statistics, in every protocol alike.
//!
//! Only names and numbers: `cache` and `core` count, each protocol writes rows in its own form. Names are memcached's.

use crate::store::Store;

/// What is counted, by memcached's names. Counts of keys where a command has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let cpu = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let mut rows = vec![
            ("pid", self.process.pid.to_string()),
            ("uptime", self.uptime_s.to_string()),
            ("version", VERSION.to_owned()),
            ("rusage_user", cpu(self.process.user_us)),
            ("rusage_system", cpu(self.process.system_us)),
        ];
        rows.extend(self.numbers().map(|(name, number)| (name, number.to_string())));
        rows
    }

    fn numbers(&self) -> [(&'static str, u64); 39] {
        let Self { counters, store, .. } = self;
        [
            ("time", self.time_s),
            ("pointer_size", u64::from(usize::BITS)),
            ("threads", 1),
            ("curr_connections", counters.curr_connections),
            ("total_connections", counters.total_connections),
            ("cmd_get", counters.cmd_get),
            ("cmd_set", counters.cmd_set),
            ("cmd_flush", counters.cmd_flush),
            ("cmd_touch", counters.cmd_touch),
            ("get_hits", counters.get_hits),
            ("get_misses", counters.get_misses),
            ("delete_misses", counters.delete_misses),
            ("delete_hits", counters.delete_hits),
            ("incr_misses", counters.incr_misses),
            ("incr_hits", counters.incr_hits),
            ("decr_misses", counters.decr_misses),
            ("decr_hits", counters.decr_hits),
            ("cas_misses", counters.cas_misses),
            ("cas_hits", counters.cas_hits),
            ("cas_badval", counters.cas_badval),
            ("touch_hits", counters.touch_hits),
            ("touch_misses", counters.touch_misses),
            ("bytes_read", counters.bytes_read),
            ("bytes_written", counters.bytes_written),
            ("limit_maxbytes", store.bytes_max),
            ("bytes", store.bytes),
            ("curr_items", store.items as u64),
            ("total_items", store.items_total),
            ("evictions", store.evictions),
            ("faults_dropped", counters.faults_dropped),
            ("faults_reset", counters.faults_reset),
            ("faults_cut", counters.faults_cut),
            ("faults_error", counters.faults_error),
            ("faults_wrong", counters.faults_wrong),
            ("client_output_buffer_limit_disconnections", counters.client_output_buffer_limit_disconnections),
            ("client_query_buffer_limit_disconnections", counters.client_query_buffer_limit_disconnections),
            ("datagrams_dropped", counters.datagrams_dropped),
            ("datagrams_duplicated", counters.datagrams_duplicated),
            ("datagrams_swapped", counters.datagrams_swapped),
        ]
    }
}
