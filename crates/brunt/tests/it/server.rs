//! Servers as child processes on free loopback ports, ended when the test is.

use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// The words of a command line: blanks part them, but within quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut word) = (Vec::new(), None, None::<String>);
    for character in line.chars().chain([' ']) {
        match (quote, character) {
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == character => quote = None,
            (None, ' ' | '\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words
}

/// A command line of the binary under test, which shows all that it knows.
pub(crate) fn brunt(line: &str) -> Command {
    plain(&with_details(line))
}

/// The same, with the details of commands that have some, unless the brief line is asked for.
fn with_details(line: &str) -> String {
    let (name, options) = line.split_once(' ').unwrap_or((line, ""));
    let has_details = ["run", "scan", "search", "compare", "report", "doctor"].contains(&name);
    let details = if has_details && !options.contains("--report=brief") { "--report=full" } else { "" };
    format!("{name} {details} {options}")
}

/// A command line as a user types it.
pub(crate) fn plain(line: &str) -> Command {
    command(PROGRAM, line)
}

/// The same, ahead of whatever else wants a processor, where that is allowed (`nice` goes on without).
pub(crate) fn undisturbed(line: &str) -> Command {
    command("nice", &format!("-n -20 {PROGRAM} {}", with_details(line)))
}

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_brunt");

/// A command line of the binary under test as `"$@"` of a shell script.
pub(crate) fn by_shell(script: &str, line: &str) -> Command {
    let mut command = command("sh", "-c");
    command.args([script, "sh", PROGRAM]).args(words(line));
    command
}

/// A command of any program, without input, in a directory without state: no test looks at what was calibrated on this host. A test that
/// fails shows it.
fn command(program: &str, line: &str) -> Command {
    beside_others();
    eprintln!("{program} {line}");
    let mut command = Command::new(program);
    command.args(words(line)).stdin(Stdio::null()).env("XDG_STATE_HOME", no_state());
    command
}

/// A directory without state. No test makes it, so none has to take it away.
pub(crate) fn no_state() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("brunt-no-state-{}", std::process::id()))
}

/// Begins this, of which both outputs are taken in at its end.
pub(crate) fn begin(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How a command ended, and what it wrote. A test that fails shows it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: i32,
    pub(crate) out: String,
    pub(crate) said: String,
}

impl Ended {
    /// It has this exit code, and standard error holds these words.
    #[track_caller]
    pub(crate) fn is(&self, exit: i32, said: &[&str]) -> &Self {
        assert_eq!(self.exit, exit);
        said.iter().for_each(|part| assert!(self.said.contains(part), "{part:?} is not said"));
        self
    }

    /// The same, and that in one line.
    #[track_caller]
    pub(crate) fn is_line(&self, exit: i32, said: &[&str]) {
        assert_eq!(self.is(exit, said).said.lines().count(), 1);
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("exit code {}\n{}\n{}", self.exit, self.out, self.said);
        }
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let exit = output.status.code().unwrap_or(-1);
        Self { exit, out: text(output.stdout), said: text(output.stderr) }
    }
}

impl From<&mut Command> for Ended {
    fn from(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }
}

impl From<Command> for Ended {
    fn from(mut command: Command) -> Self {
        Self::from(&mut command)
    }
}

impl From<Child> for Ended {
    fn from(child: Child) -> Self {
        child.wait_with_output().unwrap().into()
    }
}

/// A command line of the binary under test, at its end.
pub(crate) fn ended(line: &str) -> Ended {
    brunt(line).into()
}

/// A short run with these flags, at its end, which is to end for what it says.
pub(crate) fn ended_run(flags: &str) -> Ended {
    ended(&format!("run -q -n 1000 --keys 100 --warmup 0s {flags}"))
}

/// Within this time a load begins that has been started, on whatever host.
const LOAD_MAX: Duration = Duration::from_secs(60);

/// A process that ends with what it is for; one that was stopped is not killed by less.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// One that says where it listens, and that address.
    pub(crate) fn listening(mut command: Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced = line.trim().strip_prefix("listening on ");
        (Self(child), announced.expect("the first line is the announcement").to_owned())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server.
pub(crate) struct Server {
    process: Process,
    pub(crate) address: String,
    /// Where a real server leaves its port, gone with it.
    directory: Option<Directory>,
}

impl std::ops::Deref for Server {
    type Target = str;

    /// Its address.
    fn deref(&self) -> &str {
        &self.address
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.address)
    }
}

impl Server {
    /// The reference server with these further flags.
    pub(crate) fn reference(flags: &str) -> Self {
        Self::announced(brunt(&format!("serve --port 0 --die-with-parent {flags}")))
    }

    /// The same at this address.
    pub(crate) fn reference_at(address: &str, flags: &str) -> Self {
        Self::announced(brunt(&format!("serve --listen {address} --die-with-parent {flags}")))
    }

    /// The same, never sleeping, so that its part of a latency is exact.
    pub(crate) fn reference_undisturbed(flags: &str) -> Self {
        Self::reference_first(&format!("--busy-poll {flags}"))
    }

    /// The same, ahead of others, but asleep between requests.
    pub(crate) fn reference_first(flags: &str) -> Self {
        Self::announced(undisturbed(&format!("serve --port 0 --die-with-parent {flags}")))
    }

    fn announced(command: Command) -> Self {
        let (process, address) = Process::listening(command);
        Self { process, address, directory: None }
    }

    /// A real memcached with one thread; `None` (and a word on stderr) where it is not installed and that was allowed.
    pub(crate) fn memcached(flags: &str) -> Option<Self> {
        Self::memcached_at("127.0.0.1", -1, flags)
    }

    /// The same at this address; -1 is a free port. Once this returns, it listens.
    pub(crate) fn memcached_at(host: &str, port: i32, flags: &str) -> Option<Self> {
        Self::memcached_by(&mut Command::new("memcached"), host, port, flags)
    }

    /// The same, ahead of whatever else wants a processor, where that is allowed.
    pub(crate) fn memcached_undisturbed_at(host: &str, port: i32, flags: &str) -> Option<Self> {
        Self::memcached_by(Command::new("nice").args(["-n", "-20", "memcached"]), host, port, flags)
    }

    /// A real memcached that asks who comes; the directory says where its SASL library finds whom it knows.
    pub(crate) fn memcached_with_users(directory: &std::path::Path) -> Option<Self> {
        let mut command = Command::new("memcached");
        Self::memcached_by(command.env("SASL_CONF_PATH", directory), "127.0.0.1", -1, "-S")
    }

    fn memcached_by(command: &mut Command, host: &str, port: i32, flags: &str) -> Option<Self> {
        beside_others();
        if !is_installed("memcached", "-V") {
            return None;
        }
        let directory = Directory::new();
        let port_file = directory.join("port");
        let mut child = command
            .args(words(&format!("-l {host} -p {port} -U 0 -t 1 -u root -m 256 {flags}")))
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
        Some(Self { process: Process(child), address: format!("{host}:{port}"), directory: Some(directory) })
    }

    /// The same behind a Unix socket alone. Once this returns, it listens.
    pub(crate) fn memcached_at_path(flags: &str) -> Option<Self> {
        if !is_installed("memcached", "-V") {
            return None;
        }
        let directory = Directory::new();
        let path = directory.path("socket");
        let line = format!("-s {path} -t 1 -u root -m 256 {flags}");
        let mut server = Self::started(&mut Command::new("memcached"), &line, format!("unix:{path}"));
        server.directory = Some(directory);
        Some(server)
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
        let line = format!("-Z -o {files} -l {address} -l notls:{own} -U 0 -t 1 -u root -m 256");
        Some(Self::started(&mut Command::new("memcached"), &line, own))
    }

    /// A real redis-server that keeps nothing on disk; `None` (and a word on stderr) where it is not installed and that was
    /// allowed. Once this returns, it listens.
    pub(crate) fn redis(flags: &str) -> Option<Self> {
        Self::redis_by(&mut Command::new("redis-server"), flags)
    }

    /// The same whose TLS is configured by this file of OpenSSL's.
    pub(crate) fn redis_with_openssl(file: &str, flags: &str) -> Option<Self> {
        Self::redis_by(Command::new("redis-server").env("OPENSSL_CONF", file), flags)
    }

    fn redis_by(command: &mut Command, flags: &str) -> Option<Self> {
        if !is_installed("redis-server", "--version") {
            return None;
        }
        let port = lasting_port();
        let line = format!("--bind 127.0.0.1 --port {port} --save '' --appendonly no {flags}");
        Some(Self::started(command, &line, format!("127.0.0.1:{port}")))
    }

    /// A real redis-server that is ready to be a node of a cluster: it speaks to the others at this port.
    pub(crate) fn redis_node(bus_port: &str) -> Option<Self> {
        let directory = Directory::new();
        let mut node = Self::redis(&format!(
            "--dir {} --cluster-enabled yes --cluster-config-file nodes.conf --cluster-port {bus_port} \
             --cluster-announce-ip 127.0.0.1 --cluster-node-timeout 2000 --cluster-require-full-coverage no",
            directory.display()
        ))?;
        node.directory = Some(directory);
        Some(node)
    }

    /// One of this program that listens at this address, once it does.
    fn started(command: &mut Command, line: &str, address: String) -> Self {
        beside_others();
        let mut child = command.args(words(line)).stdout(Stdio::null()).spawn().unwrap();
        while connect(&address).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "the server ended early");
            std::thread::yield_now();
        }
        Self { process: Process(child), address, directory: None }
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
        let since = Instant::now();
        while self.statistics()["cmd_get"] < count {
            assert!(since.elapsed() < LOAD_MAX, "no client asks the server for anything");
            std::thread::yield_now();
        }
    }

    /// Returns when it has had so many gets and sets.
    pub(crate) fn await_requests(&self, count: u64) {
        let since = Instant::now();
        loop {
            let statistics = self.statistics();
            if statistics["cmd_get"] + statistics["cmd_set"] >= count {
                return;
            }
            assert!(since.elapsed() < LOAD_MAX, "no client asks the server for anything");
            wait(Duration::from_millis(5));
        }
    }

    /// Kills it, and sees it gone.
    pub(crate) fn kill(self) {
        drop(self.process);
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
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

/// Both ways of a connection.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

fn connect(address: &str) -> std::io::Result<Box<dyn Stream>> {
    Ok(match address.strip_prefix("unix:") {
        Some(path) => Box::new(UnixStream::connect(path)?),
        None => Box::new(TcpStream::connect(address)?),
    })
}

/// A server of the test's own, for as long as the test program lives: each connection, with its number, has a thread. Its address.
pub(crate) fn listening(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream, number));
        }
    });
    address
}

/// One that takes every connection and says nothing.
pub(crate) fn silent() -> String {
    listening(|_stream, _| {
        loop {
            std::thread::park();
        }
    })
}

/// An address at which no server listens: tests are given no port as low as this.
pub(crate) fn unserved() -> &'static str {
    "127.0.0.1:1"
}

/// Goes on after so long.
pub(crate) fn wait(length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
    }
}

/// Stops a process for so long; says how long it really was.
pub(crate) fn stop_for(pid: Pid, length: Duration) -> Duration {
    let began = Instant::now();
    kill_process(pid, Signal::STOP).unwrap();
    wait(length);
    kill_process(pid, Signal::CONT).unwrap();
    began.elapsed()
}

/// Does this for each of them at once.
pub(crate) fn side_by_side<T: Send>(rows: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    let each = &each;
    std::thread::scope(|scope| {
        rows.into_iter().for_each(|row| _ = scope.spawn(move || each(row)));
    });
}

/// The rows of a table, a line each, whose columns are parted by `=>`.
pub(crate) fn rows<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let lines = table.trim().lines();
    lines.map(|row| row.trim_start().split(" => ").collect::<Vec<_>>().try_into().unwrap()).collect()
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

    /// The path of a new file in it that says this.
    pub(crate) fn with(&self, name: &str, text: &str) -> String {
        std::fs::write(self.join(name), text).unwrap();
        self.path(name)
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

/// How a test has the machine, up to its end.
enum Machine {
    BesideOthers { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

thread_local! {
    /// Of the test's own thread. One that it spawns would wait for another test that waits for this one.
    static HELD: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

/// A process may be started beside others, unless the test has the machine already.
fn beside_others() {
    // The harness names the threads of tests.
    if std::thread::current().name().is_some() {
        HELD.with_borrow_mut(|held| {
            // A test that failed while it held the machine leaves nothing behind.
            let read = || MACHINE.read().unwrap_or_else(PoisonError::into_inner);
            held.get_or_insert_with(|| Machine::BesideOthers { _guard: read() });
        });
    }
}

/// A test that measures time begins with this: nothing of this program runs beside it.
pub(crate) fn alone() {
    HELD.take();
    let write = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    HELD.set(Some(Machine::Alone { _guard: write }));
}

/// A number no other call gets.
pub(crate) fn unique() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// The path of a file in a directory of its own, gone with it.
pub(crate) struct TempFile {
    directory: Directory,
    path: String,
}

impl TempFile {
    /// What it says.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// A file beside it with this text.
    pub(crate) fn beside(&self, name: &str, text: &str) -> String {
        self.directory.with(name, text)
    }
}

impl std::ops::Deref for TempFile {
    type Target = str;

    fn deref(&self) -> &str {
        &self.path
    }
}

impl std::fmt::Display for TempFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.path)
    }
}

/// A file with this text.
pub(crate) fn file(name: &str, text: &str) -> TempFile {
    let file = temporary(name);
    file.beside(name, text);
    file
}

/// Where a test may put a file.
pub(crate) fn temporary(name: &str) -> TempFile {
    let directory = Directory::new();
    TempFile { path: directory.path(name), directory }
}

/// A command of a shell script in namespaces of its own, of these kinds (flags of `unshare`), as root in them; `None` (and
/// a word on stderr) where that is not allowed. What is appended to the command is `"$@"` in the script.
pub(crate) fn in_namespace(kinds: &str, script: &str) -> Option<Command> {
    let command = || {
        let mut command = command("unshare", &format!("-r {kinds} sh -c"));
        command.args([script, "sh"]);
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
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
