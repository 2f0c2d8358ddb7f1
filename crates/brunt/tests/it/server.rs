//! Servers as child processes on free loopback ports, ended when the test is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Ends a short run with these flags, which is to end for what it says.
pub(crate) fn ended(flags: &[&str]) -> Output {
    let short = ["run", "-q", "-n", "1000", "--keys", "100", "--warmup", "0s"];
    brunt(&short).args(flags).output().unwrap()
}

/// A command line of the binary under test, which shows all that it knows.
pub(crate) fn brunt(arguments: &[&str]) -> Command {
    plain(&with_details(arguments))
}

/// The same, with the details of commands that have some, unless the brief line is asked for.
fn with_details<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let have_details = ["run", "scan", "search", "compare", "report", "doctor"];
    match arguments.split_first() {
        Some((name, options)) if have_details.contains(name) && !options.contains(&"--report=brief") => {
            [&[*name, "--report=full"], options].concat()
        }
        _ => arguments.to_vec(),
    }
}

/// A command line as a user types it.
pub(crate) fn plain(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brunt"));
    command.args(arguments).stdin(Stdio::null()).env("XDG_STATE_HOME", no_state());
    command
}

/// A directory without state: no test looks at what was calibrated on this host. No test makes it, so none has to
/// take it away.
pub(crate) fn no_state() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("brunt-no-state-{}", std::process::id()))
}

/// The same, ahead of whatever else wants a processor, where that is allowed (`nice` goes on without).
pub(crate) fn undisturbed(arguments: &[&str]) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "-20", env!("CARGO_BIN_EXE_brunt")]).args(with_details(arguments));
    command.stdin(Stdio::null()).env("XDG_STATE_HOME", no_state());
    command
}

/// Within this time a load begins that has been started, on whatever host.
const LOAD_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// Where a real server leaves its port, gone with it.
    directory: Option<Directory>,
}

impl Server {
    /// The reference server with these further flags.
    pub(crate) fn reference(flags: &[&str]) -> Self {
        Self::announced(brunt(&["serve", "--port", "0", "--die-with-parent"]).args(flags))
    }

    /// The same at this address.
    pub(crate) fn reference_at(address: &str, flags: &[&str]) -> Self {
        Self::announced(brunt(&["serve", "--listen", address, "--die-with-parent"]).args(flags))
    }

    /// The same, never sleeping, so that its part of a latency is exact.
    pub(crate) fn reference_undisturbed(flags: &[&str]) -> Self {
        Self::announced(
            undisturbed(&["serve", "--port", "0", "--busy-poll", "--die-with-parent"]).args(flags),
        )
    }

    /// The same, ahead of others, but asleep between requests.
    pub(crate) fn reference_first(flags: &[&str]) -> Self {
        Self::announced(undisturbed(&["serve", "--port", "0", "--die-with-parent"]).args(flags))
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
        Self::memcached_at("127.0.0.1", -1, flags)
    }

    /// The same at this address; -1 is a free port. Once this returns, it listens.
    pub(crate) fn memcached_at(host: &str, port: i32, flags: &[&str]) -> Option<Self> {
        Self::memcached_by(&mut Command::new("memcached"), host, port, flags)
    }

    /// The same, ahead of whatever else wants a processor, where that is allowed.
    pub(crate) fn memcached_undisturbed_at(host: &str, port: i32, flags: &[&str]) -> Option<Self> {
        Self::memcached_by(Command::new("nice").args(["-n", "-20", "memcached"]), host, port, flags)
    }

    /// A real memcached that asks who comes; the directory says where its SASL library finds whom it knows.
    pub(crate) fn memcached_with_users(directory: &std::path::Path) -> Option<Self> {
        let mut command = Command::new("memcached");
        Self::memcached_by(command.env("SASL_CONF_PATH", directory), "127.0.0.1", -1, &["-S"])
    }

    fn memcached_by(command: &mut Command, host: &str, port: i32, flags: &[&str]) -> Option<Self> {
        if !is_installed("memcached", "-V") {
            return None;
        }
        let directory = Directory::new();
        let port_file = directory.join("port");
        let mut child = command
            .args(["-l", host, "-p", &port.to_string()])
            .args(["-U", "0", "-t", "1", "-u", "root", "-m", "256"])
            .args(flags)
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .spawn()
            .unwrap();
        // It writes the file under another name and renames it when it listens.
        let port = loop {
            match std::fs::read_to_string(&port_file) {
                Ok(text) => {
                    let port = text.lines().find_map(|line| line.strip_prefix("TCP INET"));
                    break port.unwrap().trim_start_matches('6').trim_start_matches(": ").to_owned();
                }
                Err(_) => assert!(child.try_wait().unwrap().is_none(), "memcached ended early"),
            }
            std::thread::yield_now();
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Some(Self { child, address: format!("{host}:{port}"), directory: Some(directory) })
    }

    /// The same behind a Unix socket alone. Once this returns, it listens.
    pub(crate) fn memcached_at_path(flags: &[&str]) -> Option<Self> {
        if !is_installed("memcached", "-V") {
            return None;
        }
        let directory = Directory::new();
        let path = directory.join("socket");
        let child = Command::new("memcached")
            .arg("-s")
            .arg(&path)
            .args(["-t", "1", "-u", "root", "-m", "256"])
            .args(flags)
            .spawn()
            .unwrap();
        let address = format!("unix:{}", path.display());
        Some(Self { child, address, directory: Some(directory) }.once_it_listens())
    }

    /// A real memcached that speaks TLS at this address, with these files, and plainly at its own.
    pub(crate) fn memcached_by_tls(address: &str, files: &str) -> Option<Self> {
        if !is_installed("memcached", "-V") {
            return None;
        }
        let help = Command::new("memcached").arg("-h").output().unwrap();
        if !String::from_utf8_lossy(&help.stdout).contains("--enable-ssl") {
            eprintln!("SKIPPED: memcached was built without TLS");
            return None;
        }
        let own = format!("127.0.0.1:{}", lasting_port());
        let child = Command::new("memcached")
            .args(["-Z", "-o", files, "-l", address, "-l", &format!("notls:{own}")])
            .args(["-U", "0", "-t", "1", "-u", "root", "-m", "256"])
            .spawn()
            .unwrap();
        Some(Self { child, address: own, directory: None }.once_it_listens())
    }

    /// A real redis-server that keeps nothing on disk; `None` (and a word on stderr) where it is not installed and that was
    /// allowed. Once this returns, it listens.
    pub(crate) fn redis(flags: &[&str]) -> Option<Self> {
        Self::redis_by(&mut Command::new("redis-server"), flags)
    }

    /// The same whose TLS is configured by this file of OpenSSL's.
    pub(crate) fn redis_with_openssl(file: &str, flags: &[&str]) -> Option<Self> {
        Self::redis_by(Command::new("redis-server").env("OPENSSL_CONF", file), flags)
    }

    fn redis_by(command: &mut Command, flags: &[&str]) -> Option<Self> {
        if !is_installed("redis-server", "--version") {
            return None;
        }
        let port = lasting_port().to_string();
        let child = command
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"])
            .args(flags)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { child, address: format!("127.0.0.1:{port}"), directory: None }.once_it_listens())
    }

    /// A real redis-server that is ready to be a node of a cluster: it speaks to the others at this port.
    pub(crate) fn redis_node(bus_port: &str) -> Option<Self> {
        let directory = Directory::new();
        let place = directory.display().to_string();
        let flags = ["--dir", &place, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
        let network = ["--cluster-port", bus_port, "--cluster-announce-ip", "127.0.0.1"];
        let trouble = ["--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"];
        let mut node = Self::redis(&[&flags[..], &network, &trouble].concat())?;
        node.directory = Some(directory);
        Some(node)
    }

    fn once_it_listens(mut self) -> Self {
        while connect(&self.address).is_err() {
            assert!(self.child.try_wait().unwrap().is_none(), "the server ended early");
            std::thread::yield_now();
        }
        self
    }

    /// What a Redis answers to these commands, a line each with blanks between their words.
    pub(crate) fn redis_says(&self, commands: &str) -> String {
        let mut stream = connect(&self.address).unwrap();
        stream.write_all(format!("{commands}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The counts of a section of what a Redis says of itself, such as `calls=` of `commandstats`; of a line that is a plain
    /// number, that number.
    pub(crate) fn redis_counts(&self, section: &str) -> BTreeMap<String, u64> {
        let answer = self.redis_says(&format!("INFO {section}"));
        let count = |line: &str| {
            let (name, value) = line.trim().split_once(':')?;
            let first = value.split(',').next()?;
            let number = first.split_once('=').map_or(first, |(_, number)| number);
            Some((name.to_owned(), number.parse().ok()?))
        };
        answer.lines().filter_map(count).collect()
    }

    /// What a memcached answers to this, up to an answer that ends so.
    pub(crate) fn says(&self, request: &str, end: &str) -> String {
        let mut stream = connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let (mut reply, mut piece) = (Vec::new(), [0; 4096]);
        while !reply.ends_with(end.as_bytes()) {
            let len = stream.read(&mut piece).unwrap();
            assert!(len > 0, "{}", String::from_utf8_lossy(&reply));
            reply.extend_from_slice(&piece[..len]);
        }
        String::from_utf8_lossy(&reply).into_owned()
    }

    /// Returns when it has been asked for so many keys.
    pub(crate) fn await_gets(&self, count: u64) {
        let since = std::time::Instant::now();
        while self.statistics()["cmd_get"] < count {
            assert!(since.elapsed() < LOAD_MAX, "no client asks the server for anything");
            std::thread::yield_now();
        }
    }

    /// Kills it, and sees it gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its process.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// What the server says of itself.
    pub(crate) fn statistics(&self) -> BTreeMap<String, u64> {
        self.statistics_and_len().0
    }

    /// The same, and in how many bytes it says so.
    pub(crate) fn statistics_and_len(&self) -> (BTreeMap<String, u64>, u64) {
        let mut stream = connect(&self.address).unwrap();
        stream.write_all(b"stats\r\n").unwrap();
        let (mut statistics, mut len) = (BTreeMap::new(), 0);
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            len += line.len() as u64 + 2;
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
        (statistics, len)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both ways of a connection.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

fn connect(address: &str) -> std::io::Result<Box<dyn Stream>> {
    Ok(match address.strip_prefix("unix:") {
        Some(path) => Box::new(UnixStream::connect(path)?),
        None => Box::new(TcpStream::connect(address)?),
    })
}

/// Is there such a program? Where there is none, and that was allowed, a word on stderr says so.
pub(crate) fn is_installed(program: &str, flag: &str) -> bool {
    let tried = Command::new(program).arg(flag).stdout(Stdio::null()).status();
    if let Err(error) = &tried {
        let is_allowed = std::env::var_os("BRUNT_TEST_WITHOUT_SERVERS").is_some();
        assert!(is_allowed, "{program} must be installed (cargo xtask test does that): {error}");
        eprintln!("SKIPPED: {program} is not installed");
    }
    tried.is_ok()
}

/// A directory of a test, gone with it.
pub(crate) struct Directory(tempfile::TempDir);

impl Directory {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.join(name).to_str().unwrap().to_owned()
    }

    /// What a file in it says.
    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.join(name)).unwrap()
    }

    /// The names in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl std::ops::Deref for Directory {
    type Target = std::path::Path;

    fn deref(&self) -> &std::path::Path {
        self.0.path()
    }
}

impl AsRef<std::path::Path> for Directory {
    fn as_ref(&self) -> &std::path::Path {
        self
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

/// A file with this text, in the temporary directory, which `cargo xtask test` removes.
pub(crate) fn file(name: &str, text: &str) -> String {
    let path = temporary(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Where a test may put a file.
pub(crate) fn temporary(ending: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("brunt-{}-{}.{ending}", std::process::id(), unique()))
}

/// A command of a shell script in namespaces of its own, of these kinds (flags of `unshare`), as root in them; `None` (and
/// a word on stderr) where that is not allowed. What is appended to the command is `"$@"` in the script.
pub(crate) fn in_namespace(kinds: &[&str], script: &str) -> Option<Command> {
    let command = || {
        let mut command = Command::new("unshare");
        command.arg("-r").args(kinds).args(["sh", "-c", script, "sh"]).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", no_state());
        command
    };
    let is_allowed = command().arg("true").status().is_ok_and(|status| status.success());
    if !is_allowed {
        eprintln!("SKIPPED: namespaces cannot be made here");
    }
    is_allowed.then(command)
}

/// A port that is free, and stays so while its server is gone: the kernel takes none of these for a connection of its
/// own.
pub(crate) fn lasting_port() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u64 = range.split_whitespace().next().unwrap().parse().unwrap();
    let (least, count) = (1_024, first - 1_024);
    let begin = u64::from(std::process::id()) * 7_919;
    (0..count)
        .map(|_| (least + (begin + unique()) % count) as u16)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
