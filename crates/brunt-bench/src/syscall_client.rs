//! `brunt-bench floor`: a client that makes the system calls of a closed loop of gets and does nothing else.
//!
//! It draws no keys, keeps no times and no counts, parses no reply and reads no clock. Its cost is the kernel's
//! share of a request under an interface and a policy: the minimum of any client with the same calls
//! (docs/method.md). Invariant: every request counted was answered, and every reply had the length of a hit.

mod epoll;
mod load;
mod requests;
#[cfg(test)]
mod tests;
mod uring;

use clap::{Args, ValueEnum, value_parser};
use load::{Load, Refill, Timer};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use requests::{Requests, TRIES};
use std::net::TcpStream;
use std::time::Duration;

/// A pipeline of requests must fit into the smallest buffer of a socket, 4.6 KB, so that a send takes it whole.
const DEPTH_MAX: i64 = 128;
/// As many buffers, twice over, as a ring of them can have.
const CONNECTIONS_MAX: i64 = 4096;
/// Time limit of a run by number of requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    Epoll,
    Uring,
}

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct SyscallClient {
    /// A memcached that holds the keys, zero-padded to 30 bytes, with values of one length
    #[arg(long, value_name = "HOST:PORT")]
    server: String,
    /// How many
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..=CONNECTIONS_MAX))]
    connections: u32,
    /// Requests in flight on each
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=DEPTH_MAX))]
    depth: u32,
    /// The kernel's interface
    #[arg(long, value_enum, default_value_t = Engine::Epoll)]
    io: Engine,
    /// A request for every reply that came, or a whole pipeline for a whole one
    #[arg(long, value_enum, default_value_t = Refill::Eager)]
    refill: Refill,
    /// Completions that a wait brings at least, with uring
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    gather: u32,
    /// How many keys there are
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=1 << 53))]
    keys: u64,
    /// For how long
    #[arg(long, default_value_t = 3_000, value_parser = value_parser!(u64).range(1..=3_600_000))]
    time_ms: u64,
    /// How many instead
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    requests: Option<u64>,
}

impl SyscallClient {
    fn check(&self) -> Result<(), String> {
        if self.gather > 1 && self.io == Engine::Epoll {
            return Err("--gather requires --io uring: epoll cannot wait for more than one".to_owned());
        }
        // Each connection has at least one completion to come, so that a wait for as many as there are always ends.
        if self.gather > self.connections {
            let most = self.connections;
            return Err(format!("--gather exceeds --connections: expected at most {most}"));
        }
        Ok(())
    }

    /// Runs, and returns the result.
    ///
    /// # Errors
    /// In words: keys that are not there, a server that goes away or falls silent, a kernel that lacks something.
    pub(crate) fn run(&self) -> Result<Measurement, String> {
        self.check()?;
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
        let (left, after) = match self.requests {
            None => (u64::MAX, Duration::from_millis(self.time_ms)),
            Some(count) => (count, PATIENCE),
        };
        let mut load = Load::new(&requests, streams.len(), self.depth, self.refill, left);
        let mut timer = Timer::new(after).map_err(|errno| words(errno.into()))?;
        // A connection never has more than this to take in.
        let reply_bytes = self.depth as usize * requests.reply_len() as usize;
        let before = cpu_ns();
        let syscalls = match self.io {
            Engine::Epoll => epoll::run(&streams, &mut load, &mut timer, reply_bytes).map_err(Into::into),
            Engine::Uring => uring::run(&streams, &mut load, &mut timer, reply_bytes, self.gather as usize),
        };
        let after = cpu_ns();
        let syscalls = syscalls.map_err(words)?;
        let cpu_ns = [0, 1].map(|index| after[index] - before[index]);
        Ok(Measurement { requests: load.finish()?, cpu_ns, syscalls })
    }
}

/// What a run did and took, from its first request to its last reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) requests: u64,
    /// In user space and in the kernel.
    cpu_ns: [i64; 2],
    pub(crate) syscalls: u64,
}

/// CPU time of this process up to now, in user space and in the kernel.
fn cpu_ns() -> [i64; 2] {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may read its own usage");
    [usage.user_time(), usage.system_time()].map(|time| time.num_nanoseconds())
}

impl Measurement {
    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        let Self { requests, cpu_ns: [user_ns, system_ns], syscalls } = self;
        format!(
            "{{\"requests\": {requests}, \"tried\": {TRIES}, \"cpu_user_ns\": {user_ns}, \"cpu_system_ns\": {system_ns}, \
             \"syscalls\": {syscalls}}}"
        )
    }
}
