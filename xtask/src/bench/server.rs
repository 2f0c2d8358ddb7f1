//! The servers that all clients are measured against: one process, one thread, one processor, everything stored before.
//!
//! Not the reference server: what is measured is how cheap a client is against the real thing. Invariant: every key that a
//! client asks for is there, and what the server counts is asked for before and after each run.

use super::{KEY_BYTES, KEYS, VALUE_BYTES};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to begin to listen.
const START_MAX: Duration = Duration::from_secs(10);
/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Keys stored in one go.
const STORED_TOGETHER: usize = 100;

/// What a key begins with for clients that write its number behind it without zeros.
pub(crate) const UNPADDED_PREFIX: &str = "brunt-bench-unpadded-keys:";

/// The dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Memcached,
    Redis,
}

/// A server of ours; dropping it ends it.
pub(crate) struct Server {
    child: Child,
    protocol: Protocol,
    pub(crate) port: u16,
}

/// What a server has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

impl Server {
    /// Starts `program` on one processor and stores the data set.
    pub(crate) fn start(protocol: Protocol, program: &str, processor: usize) -> anyhow::Result<Self> {
        let port = free_port()?;
        let arguments = match protocol {
            Protocol::Memcached => format!("-u root -l 127.0.0.1 -p {port} -U 0 -t 1 -m 256 -c 4096"),
            Protocol::Redis => {
                format!("--bind 127.0.0.1 --port {port} --appendonly no --io-threads 1 --maxclients 4096")
            }
        };
        let mut command = Command::new("taskset");
        command.args(["-c", &processor.to_string(), program]).args(arguments.split(' '));
        if protocol == Protocol::Redis {
            command.args(["--save", ""]);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let mut server = Self { child, protocol, port };
        server.await_listening().with_context(|| program.to_owned())?;
        server.store().with_context(|| format!("{program}: cannot store the data set"))?;
        Ok(server)
    }

    fn await_listening(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.connect().is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("ended with {status} before it listened");
            }
            ensure!(start.elapsed() < START_MAX, "does not listen after {} s", START_MAX.as_secs());
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Ok(())
    }

    fn connect(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Stores every key that any of the clients asks for, under the names that they give it.
    fn store(&self) -> anyhow::Result<()> {
        let mut stream = self.connect()?;
        // Twice as many as are asked for: clients that cannot pad numbers ask for the upper half.
        let padded = (0..2 * KEYS).map(|id| format!("{id:0KEY_BYTES$}"));
        let unpadded = (0..=KEYS).map(|id| format!("{UNPADDED_PREFIX}{id}"));
        let keys: Vec<String> = padded.chain(unpadded).collect();
        let value = "v".repeat(VALUE_BYTES);
        let reply: &[u8] = match self.protocol {
            Protocol::Memcached => b"STORED\r\n",
            Protocol::Redis => b"+OK\r\n",
        };
        for keys in keys.chunks(STORED_TOGETHER) {
            let requests: String = keys.iter().map(|key| self.stores(key, &value)).collect();
            stream.write_all(requests.as_bytes())?;
            let mut replies = vec![0; keys.len() * reply.len()];
            stream.read_exact(&mut replies)?;
            ensure!(replies == reply.repeat(keys.len()), "{}", String::from_utf8_lossy(&replies));
        }
        Ok(())
    }

    fn stores(&self, key: &str, value: &str) -> String {
        match self.protocol {
            Protocol::Memcached => format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()),
            Protocol::Redis => {
                format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len())
            }
        }
    }

    /// What it has counted up to now.
    pub(crate) fn counted(&self) -> anyhow::Result<Counted> {
        let mut stream = self.connect()?;
        let (request, end, hits, misses) = match self.protocol {
            Protocol::Memcached => ("stats\r\n", "END", "STAT get_hits ", "STAT get_misses "),
            // An empty line follows the last line of the section.
            Protocol::Redis => ("INFO stats\r\n", "", "keyspace_hits:", "keyspace_misses:"),
        };
        stream.write_all(request.as_bytes())?;
        let mut lines = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line?;
            if line == end {
                break;
            }
            lines.push(line);
        }
        let number = |prefix: &str| -> anyhow::Result<u64> {
            let found = lines.iter().find_map(|line| line.strip_prefix(prefix));
            Ok(found.with_context(|| format!("the server does not say {prefix}"))?.parse()?)
        };
        Ok(Counted { hits: number(hits)?, misses: number(misses)? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago: these servers cannot say which one the kernel gave them.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
