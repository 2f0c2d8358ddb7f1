//! Servers as child processes on free loopback ports, ended when the test is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A command line of the binary under test.
pub(crate) fn brunt(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brunt"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The same, ahead of whatever else wants a processor, where that is allowed (`nice` goes on without).
pub(crate) fn undisturbed(arguments: &[&str]) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "-20", env!("CARGO_BIN_EXE_brunt")]).args(arguments).stdin(Stdio::null());
    command
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// Where a real server leaves its port, to be removed with it.
    directory: Option<std::path::PathBuf>,
}

impl Server {
    /// The reference server with these further flags.
    pub(crate) fn reference(flags: &[&str]) -> Self {
        Self::announced(brunt(&["serve", "--port", "0", "--die-with-parent"]).args(flags))
    }

    /// The same, never sleeping, so that its part of a latency is exact.
    pub(crate) fn reference_undisturbed(flags: &[&str]) -> Self {
        Self::announced(
            undisturbed(&["serve", "--port", "0", "--busy-poll", "--die-with-parent"]).args(flags),
        )
    }

    fn announced(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced = line.trim().strip_prefix("listening on ");
        let address = announced.expect("the first line is the announcement").to_owned();
        Self { child, address, directory: None }
    }

    /// A real memcached with one thread; `None` (and a word on stderr) where it is not installed and that was allowed.
    pub(crate) fn memcached(flags: &[&str]) -> Option<Self> {
        let directory =
            std::env::temp_dir().join(format!("brunt-memcached-{}-{}", std::process::id(), unique()));
        std::fs::create_dir_all(&directory).unwrap();
        let port_file = directory.join("port");
        let spawned = Command::new("memcached")
            .args(["-l", "127.0.0.1", "-p", "-1", "-U", "0", "-t", "1", "-u", "root", "-m", "256"])
            .args(flags)
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(_) if std::env::var_os("BRUNT_TEST_WITHOUT_SERVERS").is_some() => {
                eprintln!("SKIPPED: memcached is not installed");
                return None;
            }
            Err(error) => panic!("memcached must be installed (cargo xtask test does that): {error}"),
        };
        // It writes the file under another name and renames it when it listens.
        let port = loop {
            match std::fs::read_to_string(&port_file) {
                Ok(text) => {
                    break text.lines().find_map(|line| line.strip_prefix("TCP INET: ")).unwrap().to_owned();
                }
                Err(_) => assert!(child.try_wait().unwrap().is_none(), "memcached ended early"),
            }
            std::thread::yield_now();
        };
        Some(Self { child, address: format!("127.0.0.1:{port}"), directory: Some(directory) })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// What the server says of itself.
    pub(crate) fn statistics(&self) -> BTreeMap<String, u64> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"stats\r\n").unwrap();
        let mut statistics = BTreeMap::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), Some(value)) => {
                    if let Ok(value) = value.parse() {
                        statistics.insert(name.to_owned(), value);
                    }
                }
                _ => break,
            }
        }
        statistics
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

static MACHINE: RwLock<()> = RwLock::new(());

/// Held by a test that may run beside others.
pub(crate) fn beside_others() -> RwLockReadGuard<'static, ()> {
    // A test that failed while it held the machine leaves nothing behind.
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test that measures time: nothing of this program runs beside it.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// A number no other call gets.
pub(crate) fn unique() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
