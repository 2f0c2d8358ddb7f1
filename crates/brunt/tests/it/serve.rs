//! `brunt serve` as a process: where it listens, whom it lets in, and how it ends.

use crate::server::{Directory, Process, brunt};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Starts it and waits for its announcement.
fn start(flags: &str) -> (Process, String) {
    Process::listening(brunt(&format!("serve --die-with-parent {flags}")))
}

/// A signal ends it in good order: with 0, with its log whole, and without its socket file.
#[test]
fn socket_files_are_removed_on_exit() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let scratch = Directory::new();
        let (path, log) = (scratch.join("socket"), scratch.path("log"));
        let (mut process, address) = start(&format!("--listen=unix:{} --log={log}", path.display()));
        assert_eq!(address, format!("unix:{}", path.display()));
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"get a\r\n").unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        rustix::process::kill_process(process.pid(), signal).unwrap();
        assert_eq!(process.0.wait().unwrap().code(), Some(0));
        assert!(!path.exists());
        let records = crate::server_log::read(&std::fs::read(&log).unwrap()).unwrap();
        assert_eq!(records.len(), 1);
    }
}

/// Every dialect at one port, and no client without the password.
#[test]
fn passwords_are_checked() {
    let (_process, address) = start("--port 0 --user reader --password secret");
    let table: [(&[u8], &[u8]); 3] = [
        (
            b"*1\r\n$4\r\nPING\r\n*3\r\n$4\r\nAUTH\r\n$6\r\nreader\r\n$6\r\nsecret\r\n*1\r\n$4\r\nPING\r\n",
            b"-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n",
        ),
        (
            b"get a\r\nset a 0 0 13\r\nreader secret\r\nget a\r\nmn\r\n",
            b"CLIENT_ERROR unauthenticated\r\nSTORED\r\nEND\r\nMN\r\n",
        ),
        (
            b"\x80\x21\0\x05\0\0\0\0\0\0\0\x13\0\0\0\x01\0\0\0\0\0\0\0\0PLAIN\0reader\0secret",
            b"\x81\x21\0\0\0\0\0\0\0\0\0\x0d\0\0\0\x01\0\0\0\0\0\0\0\0Authenticated",
        ),
    ];
    for (sent, answered) in table {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(sent).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.escape_ascii().to_string(), answered.escape_ascii().to_string());
    }
}

/// What the server counts under a name.
fn counted(stream: &mut BufReader<TcpStream>, name: &str) -> u64 {
    stream.get_mut().write_all(b"stats\r\n").unwrap();
    let lines = stream.by_ref().lines().map(Result::unwrap).take_while(|line| line != "END");
    let held =
        lines.filter_map(|line| Some(line.strip_prefix(&format!("STAT {name} "))?.parse().unwrap())).last();
    held.unwrap_or_else(|| panic!("no {name}"))
}

/// Clients that never read their replies are disconnected before they take more memory than they may, and hold no other up.
#[test]
fn clients_that_do_not_read_are_bounded_in_all() {
    const MIB: usize = 1 << 20;
    let (process, address) = start("--port 0 --output-buffer-limit 4MiB");
    let stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    for set in [format!("set k 0 0 {MIB}\r\n{}\r\n", "x".repeat(MIB)), "set s 0 0 1\r\ny\r\n".to_owned()] {
        reader.get_mut().write_all(set.as_bytes()).unwrap();
        reader.read_line(&mut line).unwrap();
    }
    assert_eq!(line, "STORED\r\nSTORED\r\n");
    let connect = |_| TcpStream::connect(&address).unwrap();
    let mut silent: Vec<TcpStream> = (0..50).map(connect).collect();
    let mut closed = 0;
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    // Every one of them asks for 20 MiB.
    silent.iter_mut().for_each(|stream| stream.write_all(&b"get k\r\n".repeat(20)).unwrap());
    while closed == 0 {
        let asked = Instant::now();
        reader.get_mut().write_all(b"get s\r\n").unwrap();
        reader.read_exact(&mut [0; "VALUE s 0 1\r\ny\r\nEND\r\n".len()]).unwrap();
        longest = longest.max(asked.elapsed());
        closed = counted(&mut reader, "client_output_buffer_limit_disconnections");
        assert!(begun.elapsed() < Duration::from_secs(60), "no client was disconnected");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let most_kib: usize = most.strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(most_kib < (4 << 10) + (48 << 10), "{most}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    // No other client was disconnected.
    let [accepted, open, closed] =
        ["total_connections", "curr_connections", "client_output_buffer_limit_disconnections"]
            .map(|name| counted(&mut reader, name));
    assert!(open + closed >= accepted, "{accepted} accepted, {open} open, {closed} disconnected");
}
