//! Processes that commands start beside them: servers, one process and one thread each, and runs that are watched.
//!
//! Invariants: no process is left behind: the kernel kills it when the thread that started it is gone, on Ctrl-C, too, and where nothing here
//! can run any more, so that it is started from a thread that lives as long as the process may; every key that a client of `cargo xtask
//! bench` requests is stored before; what a server counts is read from the server alone.

use anyhow::{Context, bail, ensure};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Keys that clients request.
pub(crate) const KEYS: u64 = 10_000;
pub(crate) const KEY_BYTES: usize = 30;
pub(crate) const VALUE_BYTES: usize = 200;
/// How long a server may take to begin to listen, and how long a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Memcached,
    Redis,
}

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
    pub(crate) fn store_data_set(&self, brunt: &Path) -> anyhow::Result<()> {
        let scheme = if self.protocol == Protocol::Memcached { "memcached" } else { "redis" };
        let url = format!("{scheme}://{}", self.address());
        let sizes =
            format!("--keys={} --key-size={KEY_BYTES} --value-size={VALUE_BYTES} --prefix=", 2 * KEYS);
        let words: Vec<&str> = ["load", "-s", &url].into_iter().chain(sizes.split(' ')).collect();
        run_brunt(brunt, &words)
    }

    /// Hits and misses up to now.
    pub(crate) fn hits_and_misses(&self) -> anyhow::Result<[u64; 2]> {
        let (request, heads) = match self.protocol {
            Protocol::Memcached => ("stats\r\n", ["STAT get_hits ", "STAT get_misses "]),
            Protocol::Redis => ("INFO stats\r\n", ["keyspace_hits:", "keyspace_misses:"]),
        };
        let mut stream = connect(&self.address())?;
        stream.write_all(request.as_bytes())?;
        let mut counts = [None; 2];
        for line in BufReader::new(stream).lines() {
            let line = line?;
            for (count, head) in counts.iter_mut().zip(heads) {
                *count = count.or(line.strip_prefix(head).and_then(|text| text.parse().ok()));
            }
            if let [Some(hits), Some(misses)] = counts {
                return Ok([hits, misses]);
            }
        }
        bail!("the server does not count hits and misses")
    }
}

fn connect(address: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

// --- Any process ---

/// How often a process that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A process that dropping kills.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// A command line that is killed when the thread that starts it ends. The process keeps its id through both programs.
    pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
        command
    }

    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        command.spawn().map(Self).with_context(|| format!("cannot run {command:?}"))
    }

    /// Waits for its end until then. None: it goes on.
    pub(crate) fn await_end(&mut self, until: Instant) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            std::thread::park_timeout(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets brunt measure, whatever the status of what it measures.
pub(crate) const ALLOW: &str = "--allow=BROKEN,LOAD,CLIENT,DATA";

/// Does a brunt that ended like this have a result? 1 and 2 are the codes without.
pub(crate) fn has_result(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| code != 1 && code != 2)
}

/// Runs brunt quietly with these arguments.
///
/// # Errors
/// It ends without a result.
pub(crate) fn run_brunt(brunt: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(brunt).args(arguments).arg("--quiet").stdin(Stdio::null()).status()?;
    ensure!(has_result(status), "brunt {} ended with {status}", arguments.join(" "));
    Ok(())
}

/// `brunt serve` on a port of its own.
pub(crate) struct ReferenceServer {
    _process: Process,
    pub(crate) address: String,
}

impl ReferenceServer {
    /// Starts this brunt's with these options.
    pub(crate) fn start(brunt: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let mut serve = Process::command(brunt);
        serve.args(["serve", "--port", "0"]).args(options).stdout(Stdio::piped());
        let mut process = Process::start(&mut serve)?;
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().context("its output is a pipe")?).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        ensure!(address.contains(':'), "brunt serve said {line:?}");
        Ok(Self { _process: process, address })
    }
}
