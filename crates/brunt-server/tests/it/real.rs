//! Real servers to compare the reference server with, each on a socket in a directory of its own; both are gone at the end.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A running server.
pub(crate) struct Real {
    child: Child,
    directory: PathBuf,
}

impl Real {
    /// A memcached, or none where the caller has said that there need not be one.
    pub(crate) fn memcached(flags: &[&str]) -> Option<Self> {
        // It refuses to run as root unless told which user to be; otherwise it ignores the option. Its background threads
        // hold items at times of their own, and an incr of an item that is held writes a new one.
        let quiet = ["-o", "no_lru_maintainer,no_lru_crawler", "-u", "root", "-t", "1", "-m", "64"];
        Self::start("memcached", &[&quiet, flags].concat(), "-s")
    }

    /// A redis-server that keeps nothing on disk, or none in the same case.
    pub(crate) fn redis() -> Option<Self> {
        let quiet = ["--port", "0", "--save", "", "--appendonly", "no"];
        Self::start("redis-server", &quiet, "--unixsocket")
    }

    #[allow(clippy::print_stderr, reason = "a comparison that is left out must be seen")]
    fn start(program: &str, flags: &[&str], socket_flag: &str) -> Option<Self> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("brunt-server-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = Command::new(program);
        command.args(flags).arg(socket_flag).arg(directory.join("socket")).current_dir(&directory);
        match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(child) => Some(Self { child, directory }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let _ = std::fs::remove_dir_all(&directory);
                eprintln!(
                    "NOT TESTED: there is no {program} on the PATH to compare the reference server with"
                );
                assert!(
                    std::env::var_os("BRUNT_TEST_WITHOUT_SERVERS").is_some_and(|value| value == "1"),
                    "install {program}, or set BRUNT_TEST_WITHOUT_SERVERS=1 to do without the comparison"
                );
                None
            }
            Err(error) => panic!("{program} does not start: {error}"),
        }
    }

    /// It says nothing when it is ready, so knock until it opens.
    pub(crate) fn connect(&self) -> UnixStream {
        let (path, begin) = (self.directory.join("socket"), Instant::now());
        loop {
            match UnixStream::connect(&path) {
                Ok(stream) => return stream,
                Err(error) => {
                    assert!(begin.elapsed() < Duration::from_secs(10), "{}: {error}", path.display())
                }
            }
            std::thread::yield_now();
        }
    }

    /// Sends everything on a connection of its own and reads to the end.
    pub(crate) fn converse(&self, sent: &[u8]) -> Vec<u8> {
        converse(&mut self.connect(), sent)
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Sends everything and reads to the end. A server that has closed does not take the rest; what it said counts.
pub(crate) fn converse(stream: &mut UnixStream, sent: &[u8]) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    if let Err(error) = stream.write_all(sent) {
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answered = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answered) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    answered
}
