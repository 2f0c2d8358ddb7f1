//! The real memcached answers every shared transcript byte for byte as this server does. Where the two differ, the
//! reference server is wrong.

use crate::transcripts::shared;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A memcached on a socket in a directory of its own; both are gone when this is dropped.
struct Memcached {
    child: Child,
    directory: PathBuf,
}

impl Memcached {
    fn start(number: usize) -> std::io::Result<Self> {
        let directory = std::env::temp_dir().join(format!("brunt-server-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let mut command = Command::new("memcached");
        // It refuses to run as root unless told which user to be; otherwise it ignores the option.
        command.args(["-u", "root", "-t", "1", "-m", "64", "-s"]).arg(directory.join("socket"));
        match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(child) => Ok(Self { child, directory }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&directory);
                Err(error)
            }
        }
    }

    /// It says nothing when it is ready, so knock until it opens.
    fn connect(&self) -> UnixStream {
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
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(Path::new(&self.directory));
    }
}

/// Sends everything and reads to the end. A server that has closed does not take the rest; what it said counts.
fn converse(stream: &mut UnixStream, sent: &[u8]) -> Vec<u8> {
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

#[test]
fn memcached_answers_alike() {
    for (number, (sent, answered)) in shared().into_iter().enumerate() {
        let memcached = match Memcached::start(number) {
            Ok(memcached) => memcached,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!(
                    "NOT TESTED: there is no memcached on the PATH to compare the reference server with"
                );
                assert!(
                    std::env::var_os("BRUNT_TEST_WITHOUT_SERVERS").is_some_and(|value| value == "1"),
                    "install memcached, or set BRUNT_TEST_WITHOUT_SERVERS=1 to do without the comparison"
                );
                return;
            }
            Err(error) => panic!("memcached does not start: {error}"),
        };
        let theirs = converse(&mut memcached.connect(), &sent);
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
        assert!(
            theirs == answered,
            "sent {:?}\nours {:?}\ntheirs {:?}",
            text(&sent),
            text(&answered),
            text(&theirs)
        );
    }
}
