//! `brunt serve` as a process: where it listens, whom it lets in, and how it ends.

use crate::server::{brunt, unique};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Starts it and waits for its announcement.
fn start(flags: &[&str]) -> (Child, String) {
    let mut command = brunt(&["serve", "--die-with-parent"]);
    let mut child = command.args(flags).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim_end().to_owned())
}

/// A signal ends it in good order: with 0, with its log whole, and without its socket file.
#[test]
fn socket_files_are_removed_on_exit() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let scratch = std::env::temp_dir().join(format!("brunt-serve-{}-{}", std::process::id(), unique()));
        let (path, log) = (scratch.with_extension("socket"), scratch.with_extension("log"));
        let (listen, log_flag) =
            (format!("--listen=unix:{}", path.display()), format!("--log={}", log.display()));
        let (mut child, announced) = start(&[&listen, &log_flag]);
        assert_eq!(announced, format!("listening on unix:{}", path.display()));
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"get a\r\n").unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(!path.exists());
        let (_, records) = brunt_server::log::read(&std::fs::read(&log).unwrap()).unwrap();
        assert_eq!(records.len(), 1);
        std::fs::remove_file(&log).unwrap();
    }
}

/// Every dialect at one port, and no client without the password.
#[test]
fn passwords_are_checked() {
    let (mut child, announced) = start(&["--port", "0", "--user", "reader", "--password", "secret"]);
    let address = announced.strip_prefix("listening on ").unwrap();
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
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(sent).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.escape_ascii().to_string(), answered.escape_ascii().to_string());
    }
    child.kill().unwrap();
    child.wait().unwrap();
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
    let limit = ["--port", "0", "--output-buffer-limit", "4MiB"];
    let (mut child, announced) = start(&limit);
    let address = announced.strip_prefix("listening on ").unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    for set in
        [[b"set k 0 0 1048576\r\n", &vec![b'x'; MIB][..], b"\r\n"].concat(), b"set s 0 0 1\r\ny\r\n".to_vec()]
    {
        reader.get_mut().write_all(&set).unwrap();
        reader.read_line(&mut line).unwrap();
    }
    assert_eq!(line, "STORED\r\nSTORED\r\n");
    let connect = |_| TcpStream::connect(address).unwrap();
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
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let most_kib: usize = most.strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(most_kib < (4 << 10) + (48 << 10), "{most}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    // No other client was disconnected.
    let [accepted, open, closed] =
        ["total_connections", "curr_connections", "client_output_buffer_limit_disconnections"]
            .map(|name| counted(&mut reader, name));
    assert!(open + closed >= accepted, "{accepted} accepted, {open} open, {closed} disconnected");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn usage_errors_are_named() {
    let table: [(&[&str], [&str; 2]); 11] = [
        (&["--listen", "localhost:1"], ["--listen", "unix:PATH"]),
        (&["--listen", "unix:"], ["'unix:'", "ADDRESS:PORT"]),
        (&["--listen", "127.0.0.1:0", "--port", "5"], ["--listen", "--port"]),
        (&["--user", "reader"], ["--password", "required"]),
        (&["--output-buffer-limit", "much"], ["--output-buffer-limit", "'much'"]),
        (&["--output-buffer-limit", "0"], ["'0' for --output-buffer-limit", "from 64KiB to 64GiB"]),
        (&["--output-buffer-limit", "65535"], ["'65535'", "from 64KiB to 64GiB"]),
        (&["--output-buffer-limit", "1TiB"], ["'1TiB'", "from 64KiB to 64GiB"]),
        (&["--udp-drop-every", "5"], ["--udp", "required"]),
        (&["--udp", "--udp-trains", "keys"], ["--udp-trains", "reply or key"]),
        (&["--udp", "--udp-swap-every", "0"], ["--udp-swap-every", "above 0"]),
    ];
    for (flags, parts) in table {
        let output = brunt(&[&["serve"], flags].concat()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{flags:?}: {text}");
    }
}
