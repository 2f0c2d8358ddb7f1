//! `brunt-bench floor`: a client that makes the system calls of a closed loop of gets and does nothing else.
//!
//! It draws no keys, keeps no times and no counts, parses no reply and reads no clock. Its cost is the kernel's
//! share of a request under an interface and a policy: the minimum of any client with the same calls
//! (docs/performance.md). Invariant: every request counted was answered, and every reply had the length of a hit.

mod epoll;
mod load;
mod requests;
#[cfg(test)]
mod tests;
mod timer;
mod uring;
pub(crate) mod usage;

use crate::{number, unknown};
use load::{Load, Refill};
use requests::{Requests, TRIES};
use std::net::TcpStream;
use std::str::FromStr;
use std::time::{Duration, Instant};
use timer::Timer;
use usage::{Usage, Who, usage};

/// A pipeline of requests must fit into the smallest buffer of a socket, 4.6 KB, so that a send takes it whole.
const DEPTH_MAX: u32 = 128;
/// As many buffers, twice over, as a ring of them can have.
const CONNECTIONS_MAX: usize = 4096;
/// Time limit of a run by number of requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Epoll,
    Uring,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "epoll" => Ok(Self::Epoll),
            "uring" => Ok(Self::Uring),
            _ => Err(format!("--io: '{text}' was given; accepted: epoll, uring")),
        }
    }
}

/// When no more is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    After(Duration),
    Requests(u64),
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyscallClient {
    server: String,
    connections: usize,
    depth: u32,
    engine: Engine,
    refill: Refill,
    /// Completions that a wait brings at least.
    gather: usize,
    keys: u64,
    end: End,
}

impl SyscallClient {
    /// Parses the arguments.
    pub(crate) fn parse(options: &[&str]) -> Result<Self, String> {
        let mut floor = Self {
            server: String::new(),
            connections: 16,
            depth: 1,
            engine: Engine::Epoll,
            refill: Refill::Eager,
            gather: 1,
            keys: 10_000,
            end: End::After(Duration::from_secs(3)),
        };
        for pair in options.chunks(2) {
            match pair {
                ["--server", given] => floor.server = (*given).to_owned(),
                ["--connections", given] => {
                    floor.connections = number("--connections", given, CONNECTIONS_MAX as u64)? as usize;
                }
                ["--depth", given] => floor.depth = number("--depth", given, u64::from(DEPTH_MAX))? as u32,
                ["--io", given] => floor.engine = given.parse()?,
                ["--refill", given] => floor.refill = given.parse()?,
                ["--gather", given] => floor.gather = number("--gather", given, u64::MAX)? as usize,
                ["--keys", given] => floor.keys = number("--keys", given, 1 << 53)?,
                ["--time-ms", given] => {
                    floor.end = End::After(Duration::from_millis(number("--time-ms", given, 3_600_000)?));
                }
                ["--requests", given] => floor.end = End::Requests(number("--requests", given, u64::MAX)?),
                [option, ..] => return Err(unknown(option)),
                [] => {}
            }
        }
        floor.check()
    }

    fn check(self) -> Result<Self, String> {
        if self.server.is_empty() {
            return Err("--server is missing".to_owned());
        }
        if self.gather > 1 && self.engine == Engine::Epoll {
            return Err(format!(
                "--gather: '{}' was given; epoll cannot wait for more than one; accepted with --io uring",
                self.gather
            ));
        }
        // Each connection has at least one completion to come, so that a wait for as many as there are always ends.
        if self.gather > self.connections {
            return Err(format!(
                "--gather: '{}' was given; accepted: at most as many as --connections, {}",
                self.gather, self.connections
            ));
        }
        Ok(self)
    }

    /// Runs, and returns the result.
    ///
    /// # Errors
    /// In words: keys that are not there, a server that goes away or falls silent, a kernel that lacks something.
    pub(crate) fn run(&self) -> Result<Measurement, String> {
        let words = |error: std::io::Error| format!("{}: {error}", self.server);
        let mut streams = (0..self.connections)
            .map(|_| {
                let stream = TcpStream::connect(&self.server)?;
                stream.set_nodelay(true)?;
                Ok(stream)
            })
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(words)?;
        let mut requests = Requests::new(self.keys);
        requests.try_out(&mut streams[0]).map_err(words)?;
        let (left, after) = match self.end {
            End::After(time) => (u64::MAX, time),
            End::Requests(count) => (count, PATIENCE),
        };
        let mut load = Load::new(&requests, self.connections, self.depth, self.refill, left);
        let mut timer = Timer::new(after).map_err(|errno| words(errno.into()))?;
        // A connection never has more than this to take in.
        let reply_bytes = self.depth as usize * requests.reply_len() as usize;
        let (before, start) = (usage(Who::Process), Instant::now());
        let syscalls = match self.engine {
            Engine::Epoll => epoll::run(&streams, &mut load, &mut timer, reply_bytes).map_err(Into::into),
            Engine::Uring => uring::run(&streams, &mut load, &mut timer, reply_bytes, self.gather),
        };
        let (wall, cpu) = (start.elapsed(), usage(Who::Process) - before);
        let syscalls = syscalls.map_err(words)?;
        Ok(Measurement { requests: load.finish()?, wall_ns: wall.as_nanos() as u64, cpu, syscalls })
    }
}

/// What a run did and took, from its first request to its last reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) requests: u64,
    wall_ns: u64,
    cpu: Usage,
    pub(crate) syscalls: u64,
}

impl Measurement {
    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        format!(
            "{{\"requests\": {}, \"tried\": {TRIES}, \"wall_ns\": {}, \"cpu_user_ns\": {}, \"cpu_system_ns\": {}, \"syscalls\": {}, \
             \"cpu_us_per_request\": {:.3}, \"syscalls_per_request\": {:.4}}}",
            self.requests,
            self.wall_ns,
            self.cpu.user_ns,
            self.cpu.system_ns,
            self.syscalls,
            self.cpu.total_ns() as f64 / 1e3 / self.requests.max(1) as f64,
            self.syscalls as f64 / self.requests.max(1) as f64,
        )
    }
}
