//! What the commands mean: a command applied to the store, its reply appended to the output, its counters counted.
//!
//! Bytes and times in, bytes out; nothing here knows a connection, a queue or a fault's number. Replies and counters
//! are memcached's, word for word.

use crate::store::{End, NEVER_NS, Store};
use crate::text::{BAD_CHUNK, Command, DataCommand, ERROR, Verb, push_decimal, unsigned};
use std::num::NonZeroU64;

/// Expiry times above this many seconds (30 days) are Unix time; the protocol says so.
const EXPTIME_RELATIVE_MAX_S: i64 = 60 * 60 * 24 * 30;

const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache\r\n";
const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";
const OUT_OF_MEMORY_READING: &[u8] = b"SERVER_ERROR out of memory writing get response\r\n";
const NOT_A_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";

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
}

/// How the time that is given relates to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The given clock when the server started, in nanoseconds.
    pub start_ns: u64,
    /// Unix time when the server started, in seconds; absolute expiry times are read with it.
    pub start_unix_s: u64,
}

/// The process that serves, as its system sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number; 0 where no process serves, as in a simulation.
    pub pid: u32,
    /// Processor time in user space, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
}

/// Are the values of a reply as stored?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Yes.
    Right,
    /// Every byte of every value differs; lengths stay.
    Wrong,
}

/// The store with its commands.
#[derive(Debug)]
pub struct Cache {
    /// What is counted; connections and bytes are counted by whoever has them.
    pub counters: Counters,
    store: Store,
    value_bytes_max: u64,
    miss_ids: Option<NonZeroU64>,
    epoch: Epoch,
    /// Asked for statistics only.
    process: fn() -> Process,
    /// A flush_all with a delay that is still to come.
    flush_at_ns: Option<u64>,
}

impl Cache {
    /// An empty cache of at most `memory_bytes`, for values of at most `value_bytes_max`.
    pub fn new(memory_bytes: u64, value_bytes_max: u64, epoch: Epoch) -> Self {
        let store = Store::new(memory_bytes);
        Self {
            counters: Counters::default(),
            store,
            value_bytes_max,
            miss_ids: None,
            epoch,
            process: Process::default,
            flush_at_ns: None,
        }
    }

    /// Lets retrievals of keys that end in a multiple of this number find nothing, whatever was stored.
    pub fn set_miss_ids(&mut self, miss_ids: Option<NonZeroU64>) {
        self.miss_ids = miss_ids;
    }

    /// Says who knows of the process. (Whoever has the sockets does; nothing here asks the system.)
    pub fn set_process(&mut self, process: fn() -> Process) {
        self.process = process;
    }

    /// Read access to the store, for its sizes.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Forgets all items, and a flush_all that is still to come, as a server that is started anew. What was counted
    /// stays: the counters are the instrument's books, and an experiment with an outage still has to balance them.
    pub fn forget(&mut self) {
        self.store.clear();
        self.flush_at_ns = None;
    }

    /// Counts a data command that was refused by script, as memcached counts commands that fail: asked, but neither
    /// hit nor miss. So what a client sent and what the counters say agree to the last request.
    pub fn count_refused(&mut self, command: &DataCommand<'_>) {
        match command.verb {
            Verb::Get | Verb::Gets => self.counters.cmd_get += command.keys().count() as u64,
            Verb::Touch => self.counters.cmd_touch += 1,
            Verb::Incr | Verb::Decr | Verb::Delete => {}
            _ => self.counters.cmd_set += 1,
        }
    }

    /// Carries out a data command and appends its reply to `out`, which may grow to `out_bytes_max` before retrievals
    /// are refused. Returns how many bytes of values the reply holds.
    pub fn execute(
        &mut self,
        command: &DataCommand<'_>,
        truth: Truth,
        now_ns: u64,
        out: &mut Vec<u8>,
        out_bytes_max: usize,
    ) -> usize {
        self.flush_if_due(now_ns);
        let reply_begin = out.len();
        match command.verb {
            Verb::Get | Verb::Gets => return self.retrieve(command, truth, now_ns, out, out_bytes_max),
            Verb::Incr | Verb::Decr => self.delta(command, now_ns, out),
            Verb::Delete => out.extend_from_slice(self.delete(command.key, now_ns)),
            Verb::Touch => out.extend_from_slice(self.touch(command, now_ns)),
            _ => out.extend_from_slice(self.write(command, now_ns)),
        }
        if command.noreply {
            out.truncate(reply_begin);
        }
        0
    }

    /// Carries out any other command. True: the connection is to be closed.
    pub fn control(&mut self, command: &Command<'_>, now_ns: u64, out: &mut Vec<u8>) -> bool {
        self.flush_if_due(now_ns);
        match *command {
            Command::Data(_) => unreachable!("data commands go through `execute`"),
            Command::TooLarge { verb, key, noreply, .. } => {
                // A set that failed must not leave the old value to be read as the new one.
                if verb == Verb::Set {
                    self.store.remove(key, now_ns);
                }
                out.extend_from_slice(if noreply { b"" } else { TOO_LARGE });
            }
            Command::BadChunk { noreply } => {
                self.counters.cmd_set += 1;
                out.extend_from_slice(if noreply { b"" } else { BAD_CHUNK });
            }
            Command::FlushAll { delay_s, noreply } => {
                self.counters.cmd_flush += 1;
                let flush_at_ns = if delay_s > 0 { self.expires_ns(delay_s, now_ns) } else { now_ns };
                // memcached tells items from before and after a flush of the same second by a unique of its own.
                if flush_at_ns <= now_ns {
                    self.store.skip_unique();
                }
                self.flush_at_ns = Some(flush_at_ns);
                self.flush_if_due(now_ns);
                out.extend_from_slice(if noreply { b"" } else { b"OK\r\n" });
            }
            Command::Verbosity { noreply } => out.extend_from_slice(if noreply { b"" } else { b"OK\r\n" }),
            Command::Version => {
                out.extend_from_slice(
                    concat!("VERSION ", env!("CARGO_PKG_VERSION"), "-brunt\r\n").as_bytes(),
                );
            }
            Command::Stats(what) => self.stats(what, now_ns, out),
            Command::Quit => return true,
            Command::Refused(reply) => out.extend_from_slice(reply),
        }
        false
    }

    fn retrieve(
        &mut self,
        command: &DataCommand<'_>,
        truth: Truth,
        now_ns: u64,
        out: &mut Vec<u8>,
        out_bytes_max: usize,
    ) -> usize {
        let reply_begin = out.len();
        let mut value_bytes = 0;
        for key in command.keys() {
            self.counters.cmd_get += 1;
            let is_hidden = self
                .miss_ids
                .is_some_and(|of| trailing_number(key).is_some_and(|id| id.is_multiple_of(of.get())));
            let Some(item) = (if is_hidden { None } else { self.store.get(key, now_ns) }) else {
                self.counters.get_misses += 1;
                continue;
            };
            self.counters.get_hits += 1;
            out.extend_from_slice(b"VALUE ");
            out.extend_from_slice(key);
            out.push(b' ');
            push_decimal(out, u64::from(item.flags));
            out.push(b' ');
            push_decimal(out, item.value.len() as u64);
            if command.verb == Verb::Gets {
                out.push(b' ');
                push_decimal(out, item.unique);
            }
            out.extend_from_slice(b"\r\n");
            let value_begin = out.len();
            out.extend_from_slice(item.value);
            value_bytes += item.value.len();
            if truth == Truth::Wrong {
                out[value_begin..].iter_mut().for_each(|byte| *byte ^= 1);
            }
            out.extend_from_slice(b"\r\n");
            if out.len() > out_bytes_max {
                out.truncate(reply_begin);
                out.extend_from_slice(OUT_OF_MEMORY_READING);
                return 0;
            }
        }
        out.extend_from_slice(b"END\r\n");
        value_bytes
    }

    fn write(&mut self, command: &DataCommand<'_>, now_ns: u64) -> &'static [u8] {
        self.counters.cmd_set += 1;
        let &DataCommand { verb, key, value, flags, .. } = command;
        let end = match verb {
            Verb::Append => Some(End::Back),
            Verb::Prepend => Some(End::Front),
            _ => None,
        };
        if let Some(end) = end {
            // memcached says NOT_STORED also where the sum is too long for it.
            let old_len = self.store.get(key, now_ns).map_or(0, |item| item.value.len());
            if (old_len + value.len()) as u64 > self.value_bytes_max {
                return b"NOT_STORED\r\n";
            }
            return match self.store.extend(key, value, end, now_ns) {
                Ok(true) => b"STORED\r\n",
                Ok(false) | Err(_) => b"NOT_STORED\r\n",
            };
        }
        // A plain set need not look: what was there does not matter.
        let unique =
            (verb != Verb::Set).then(|| self.store.get(key, now_ns)).flatten().map(|item| item.unique);
        match (verb, unique) {
            (Verb::Add, Some(_)) | (Verb::Replace, None) => return b"NOT_STORED\r\n",
            (Verb::Cas, None) => {
                self.counters.cas_misses += 1;
                return b"NOT_FOUND\r\n";
            }
            (Verb::Cas, Some(unique)) if unique != command.operand => {
                self.counters.cas_badval += 1;
                return b"EXISTS\r\n";
            }
            _ => self.counters.cas_hits += u64::from(verb == Verb::Cas),
        }
        let expires_ns = self.expires_ns(command.exptime_s, now_ns);
        match self.store.set(key, value, flags, expires_ns, now_ns) {
            Ok(()) => b"STORED\r\n",
            Err(_) => OUT_OF_MEMORY,
        }
    }

    fn delta(&mut self, command: &DataCommand<'_>, now_ns: u64, out: &mut Vec<u8>) {
        let increment = command.verb == Verb::Incr;
        let Some(item) = self.store.get(command.key, now_ns) else {
            let misses =
                if increment { &mut self.counters.incr_misses } else { &mut self.counters.decr_misses };
            *misses += 1;
            return out.extend_from_slice(b"NOT_FOUND\r\n");
        };
        let old_len = item.value.len();
        let Some(old) = unsigned(item.value) else {
            return out.extend_from_slice(NOT_A_NUMBER);
        };
        // The protocol wraps upwards and stops at 0 downwards.
        let (new, hits) = if increment {
            (old.wrapping_add(command.operand), &mut self.counters.incr_hits)
        } else {
            (old.saturating_sub(command.operand), &mut self.counters.decr_hits)
        };
        *hits += 1;
        let reply_begin = out.len();
        push_decimal(out, new);
        // A number that has become shorter keeps its length, with blanks behind it; the protocol says so for decr and
        // memcached does it for both.
        let digits_end = out.len();
        out.resize(digits_end.max(reply_begin + old_len), b' ');
        self.store.rewrite(command.key, &out[reply_begin..], now_ns);
        out.truncate(digits_end);
        out.extend_from_slice(b"\r\n");
    }

    fn delete(&mut self, key: &[u8], now_ns: u64) -> &'static [u8] {
        if self.store.remove(key, now_ns) {
            self.counters.delete_hits += 1;
            b"DELETED\r\n"
        } else {
            self.counters.delete_misses += 1;
            b"NOT_FOUND\r\n"
        }
    }

    fn touch(&mut self, command: &DataCommand<'_>, now_ns: u64) -> &'static [u8] {
        self.counters.cmd_touch += 1;
        let expires_ns = self.expires_ns(command.exptime_s, now_ns);
        if self.store.touch(command.key, expires_ns, now_ns) {
            self.counters.touch_hits += 1;
            b"TOUCHED\r\n"
        } else {
            self.counters.touch_misses += 1;
            b"NOT_FOUND\r\n"
        }
    }

    /// The protocol's expiry as a time of the given clock. memcached counts whole seconds of a coarse clock, so its
    /// items live up to a second less; ours live exactly as long as asked.
    fn expires_ns(&self, exptime_s: i64, now_ns: u64) -> u64 {
        let after = |base_ns: u64, seconds: i64| {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            base_ns.saturating_add(seconds.saturating_mul(1_000_000_000))
        };
        match exptime_s {
            0 => NEVER_NS,
            ..0 => now_ns,
            1..=EXPTIME_RELATIVE_MAX_S => after(now_ns, exptime_s),
            _ => {
                let start_unix_s = i64::try_from(self.epoch.start_unix_s).unwrap_or(i64::MAX);
                after(self.epoch.start_ns, exptime_s.saturating_sub(start_unix_s))
            }
        }
    }

    fn flush_if_due(&mut self, now_ns: u64) {
        if self.flush_at_ns.is_some_and(|flush_at_ns| flush_at_ns <= now_ns) {
            self.flush_at_ns = None;
            self.store.clear();
        }
    }

    fn stats(&mut self, what: &[u8], now_ns: u64, out: &mut Vec<u8>) {
        match what {
            b"" => self.stats_general(now_ns, out),
            b"reset" => {
                let Counters { curr_connections, total_connections, .. } = self.counters;
                self.counters = Counters { curr_connections, total_connections, ..Counters::default() };
                out.extend_from_slice(b"RESET\r\n");
            }
            // Nothing to tell about slabs and settings, but the question is a good one.
            b"items" | b"slabs" | b"sizes" | b"settings" | b"conns" => out.extend_from_slice(b"END\r\n"),
            _ => out.extend_from_slice(ERROR),
        }
    }

    fn stats_general(&self, now_ns: u64, out: &mut Vec<u8>) {
        let uptime_s = now_ns.saturating_sub(self.epoch.start_ns) / 1_000_000_000;
        let (counters, store) = (&self.counters, &self.store);
        let process = (self.process)();
        let rows: [(&str, u64); 34] = [
            ("time", self.epoch.start_unix_s + uptime_s),
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
            ("limit_maxbytes", store.bytes_max()),
            ("bytes", store.bytes()),
            ("curr_items", store.items() as u64),
            ("total_items", store.items_total()),
            ("evictions", store.evictions()),
            ("faults_dropped", counters.faults_dropped),
            ("faults_reset", counters.faults_reset),
            ("faults_cut", counters.faults_cut),
            ("faults_error", counters.faults_error),
            ("faults_wrong", counters.faults_wrong),
        ];
        let row = |out: &mut Vec<u8>, name: &str, text: &str| {
            out.extend_from_slice(format!("STAT {name} {text}\r\n").as_bytes());
        };
        row(out, "pid", &process.pid.to_string());
        row(out, "uptime", &uptime_s.to_string());
        row(out, "version", concat!(env!("CARGO_PKG_VERSION"), "-brunt"));
        for (name, us) in [("rusage_user", process.user_us), ("rusage_system", process.system_us)] {
            row(out, name, &format!("{}.{:06}", us / 1_000_000, us % 1_000_000));
        }
        for (name, number) in rows {
            row(out, name, &number.to_string());
        }
        out.extend_from_slice(b"END\r\n");
    }
}

/// The number in the digits that a key ends in; `None` where there are none, or too many.
fn trailing_number(key: &[u8]) -> Option<u64> {
    let digits = key.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    unsigned(&key[key.len() - digits..])
}
