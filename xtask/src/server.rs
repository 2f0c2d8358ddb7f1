//! Real servers, one process and one thread each: what clients are measured against, and what they are checked against.
//!
//! Invariant: every key that a client of `cargo xtask bench` requests is stored before, and what the server counts is read
//! from the server alone.

use crate::process::Process;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Keys that clients request.
pub(crate) const KEYS: u64 = 10_000;
pub(crate) const KEY_BYTES: usize = 30;
const VALUE_BYTES: usize = 200;
/// Keys stored in one go.
const STORED_TOGETHER: usize = 100;
/// How long a server may take to begin to listen, and how long a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Memcached,
    Redis,
}

/// What a server counts, by name.
pub(crate) type Counters = BTreeMap<String, u64>;

/// A server that dropping ends.
pub(crate) struct Server {
    process: Process,
    protocol: Protocol,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server, on one CPU if that is given.
    pub(crate) fn start(protocol: Protocol, cpu: Option<usize>) -> anyhow::Result<Self> {
        // A port that was free a moment ago: not all of these servers can tell which one the kernel gave them.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let line = match protocol {
            Protocol::Memcached => {
                format!("memcached -u root -l 127.0.0.1 -p {port} -U 0 -t 1 -m 1024 -c 4096")
            }
            Protocol::Redis => format!(
                "redis-server --bind 127.0.0.1 --port {port} --appendonly no --io-threads 1 --maxclients 4096 --save ''"
            ),
        };
        let mut command = Process::command("sh");
        let pinned = cpu.map_or_else(String::new, |cpu| format!("taskset -c {cpu} "));
        command.args(["-c", &format!("exec {pinned}{line}")]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self { process: Process::start(&mut command)?, protocol, port };
        let start = Instant::now();
        while connect(&server.address()).is_err() {
            let ended = server.process.await_end(Instant::now() + Duration::from_millis(20))?;
            ensure!(ended.is_none(), "`{line}` ended before it listened");
            ensure!(start.elapsed() < PATIENCE, "`{line}` does not listen");
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Stores twice as many keys as clients request: those that cannot pad numbers request the upper half.
    pub(crate) fn store_data_set(&self) -> anyhow::Result<()> {
        let mut stream = connect(&self.address())?;
        let keys: Vec<String> = (0..2 * KEYS).map(|id| format!("{id:0KEY_BYTES$}")).collect();
        let value = "v".repeat(VALUE_BYTES);
        let reply: &[u8] = if self.protocol == Protocol::Memcached { b"STORED\r\n" } else { b"+OK\r\n" };
        for keys in keys.chunks(STORED_TOGETHER) {
            let requests: String = keys.iter().map(|key| self.store_request(key, &value)).collect();
            stream.write_all(requests.as_bytes())?;
            let mut replies = vec![0; keys.len() * reply.len()];
            stream.read_exact(&mut replies)?;
            let is_stored = replies == reply.repeat(keys.len());
            ensure!(is_stored, "cannot store the data set: {}", String::from_utf8_lossy(&replies));
        }
        Ok(())
    }

    fn store_request(&self, key: &str, value: &str) -> String {
        match self.protocol {
            Protocol::Memcached => format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()),
            Protocol::Redis => {
                format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len())
            }
        }
    }

    /// Hits and misses up to now.
    pub(crate) fn hits_and_misses(&self) -> anyhow::Result<[u64; 2]> {
        let counters = counters(&self.address(), self.protocol)?;
        let names = match self.protocol {
            Protocol::Memcached => ["get_hits", "get_misses"],
            Protocol::Redis => ["keyspace_hits", "keyspace_misses"],
        };
        let [hits, misses] = names.map(|name| counters.get(name).copied());
        hits.zip(misses).map(Into::into).context("the server does not count hits and misses")
    }
}

fn connect(address: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What the server at an address has counted up to now.
pub(crate) fn counters(address: &str, protocol: Protocol) -> anyhow::Result<Counters> {
    let mut stream = connect(address)?;
    let (request, end, head, separator) = match protocol {
        Protocol::Memcached => ("stats\r\n", "END", "STAT ", ' '),
        // An empty line follows the last line of the section.
        Protocol::Redis => ("INFO stats\r\n", "", "", ':'),
    };
    stream.write_all(request.as_bytes())?;
    let mut counters = Counters::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if line == end {
            return Ok(counters);
        }
        let row = line.strip_prefix(head).and_then(|row| row.split_once(separator));
        // Versions and the like are no counters.
        counters.extend(row.and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?))));
    }
    bail!("{address} closed the connection within its statistics")
}
