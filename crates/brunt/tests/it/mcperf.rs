//! Runs of `brunt mcperf` as scripts begin them: what is sent, to the byte, and what is printed of it, whatever the server does.

use crate::server::{Server, beside_others, brunt};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Output, Stdio};

/// Its end, with these options against this address.
fn mcperf(address: &str, options: &str) -> Output {
    brunt(&["mcperf"]).args(place(address)).args(options.split_whitespace()).output().unwrap()
}

fn place(address: &str) -> Vec<String> {
    match (address.strip_prefix("unix:"), address.rsplit_once(':')) {
        (None, Some((host, port))) => vec![format!("--server={host}"), format!("--port={port}")],
        (path, _) => vec![format!("--server={}", path.unwrap_or(address))],
    }
}

/// What it printed on standard error, of one that ends so.
fn report(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{text}");
    text
}

#[track_caller]
fn check_lines(text: &str, lines: &[&str]) {
    for line in lines {
        let has = text.lines().any(|printed| printed.starts_with(line));
        assert!(has, "no line begins with: {line}\n{text}");
    }
}

/// The first numbers of the C library's `drand48` from mcperf's seed, between 0 and 1.
fn draws(client: u64) -> impl Iterator<Item = f64> {
    let words = [0x1234 ^ client, (0x5678 ^ (client << 8)) & 0xffff, (0x9abc ^ !client) & 0xffff];
    let seed = words[0] | words[1] << 16 | words[2] << 32;
    let step = |state: &u64| Some(state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) % (1 << 48));
    std::iter::successors(step(&seed), step).map(|state| state as f64 / (1u64 << 48) as f64)
}

#[test]
fn documented_command_lines_run() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let options = "--linger=0 --timeout=5 --conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=u1,16";
    let text = report(&mcperf(&server.address, options), 0);
    // A request is `set mcp:00000001 0 0 16 `, two line ends, and the value.
    let sizes: Vec<f64> = draws(0)
        .take(10_000)
        .map(|draw| (1.0 + 15.0 * draw).round_ties_even())
        .map(|size| if size < 10.0 { 27.0 + size } else { 28.0 + size })
        .collect();
    let mean = sizes.iter().sum::<f64>() / 1e4;
    let deviation = (sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / 9_999.0).sqrt();
    let request_size = format!("Request size [B]: avg {mean:.1} min 28.0 max 44.0 stddev {deviation:.2}");
    check_lines(
        &text,
        &[
            "Total: connections 1000 requests 10000 responses 10000 test-duration ",
            &request_size,
            "Response size [B]: avg 8.0 min 8.0 max 8.0 stddev 0.00",
            "Response type: stored 10000 not_stored 0 exists 0 not_found 0",
            "Errors: total 0 client-timo 0 ",
        ],
    );
    let options = "--linger=0 --call-rate=0 --num-calls=100 --conn-rate=0 --num-conns=100 --sizes=d1";
    let text = report(&mcperf(&server.address, options), 0);
    check_lines(
        &text,
        &[
            "Total: connections 100 requests 10000 responses 10000 test-duration ",
            "Request size [B]: avg 28.0 min 28.0 max 28.0 stddev 0.00",
            "Errors: total 0 ",
        ],
    );
    assert!(text.contains(" ms/conn <= 1 concurrent connections)\n"), "{text}");
    assert_eq!(server.statistics()["cmd_set"], 20_000);
    // As many connections and calls find what was stored.
    let text = report(&mcperf(&server.address, "-m get -n 100 -N 100 -H --fine --wait sleep"), 0);
    check_lines(
        &text,
        &["Response type: num 0 deleted 0 end 0 value 10000", "Response time histogram [ms]:"],
    );
}

#[test]
fn requests_are_mcperfs_to_the_byte() {
    let _beside = beside_others();
    let sizes: Vec<usize> = [19, 97, 24].into();
    let sets: String = (1..)
        .zip(&sizes)
        .map(|(id, size)| format!("set mcp:{id:08x} 0 0 {size} \r\n{:0<size$}\r\n", ""))
        .collect();
    // (options, what a reply is, what was sent)
    let table = [
        ("-c 3/8 -z u1,100 -N 3", "STORED\r\n", sets.as_str()),
        (
            "-N 2 -q -e 100 -P abc:",
            "",
            "set abc:00000001 0 100 1 noreply\r\n0\r\nset abc:00000002 0 100 1 noreply\r\n0\r\n",
        ),
        ("-m get -N 2", "END\r\n", "get mcp:00000001\r\nget mcp:00000002\r\n"),
        ("-m gets", "END\r\n", "gets mcp:00000001\r\n"),
        ("-m delete", "NOT_FOUND\r\n", "delete mcp:00000001 \r\n"),
        ("-m delete -q", "", "delete mcp:00000001 noreply\r\n"),
        ("-m cas -z d3", "EXISTS\r\n", "cas mcp:00000001 0 0 3 1 \r\n000\r\n"),
        ("-m cas -z d3 -q", "", "cas mcp:00000001 0 0 3 1 noreply\r\n000\r\n"),
        ("-m incr -z s5 -N 2", "7\r\n", "incr mcp:00000001 5 \r\nincr mcp:00000002 6 \r\n"),
        ("-m decr -z d2", "NOT_FOUND\r\n", "decr mcp:00000001 2 \r\n"),
        ("-m append -e 1900000000", "STORED\r\n", "append mcp:00000001 0 1900000000 1 \r\n0\r\n"),
        ("-m prepend -z 100", "NOT_STORED\r\n", "prepend mcp:00000001 0 0 0 \r\n\r\n"),
        ("-m add -P abcdefghijklmnop", "NOT_STORED\r\n", "add abcdefghijklmnop00000001 0 0 1 \r\n0\r\n"),
    ];
    for (options, reply, expected) in table {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = std::thread::spawn(move || received(&listener, reply));
        report(&mcperf(&address, options), 0);
        assert_eq!(received.join().unwrap(), expected, "{options}");
    }
}

/// All that comes on the first connection, where every line but that of a value is answered so.
fn received(listener: &TcpListener, reply: &str) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut all, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|len| len > 0) {
        let is_value = line.trim_end().bytes().all(|byte| byte == b'0');
        let awaits_value =
            line.split(' ').count() > 3 && !line.starts_with("incr") && !line.starts_with("decr");
        if is_value || !awaits_value {
            stream.write_all(reply.as_bytes()).unwrap();
        }
        all.push_str(&line);
        line.clear();
    }
    all
}

#[test]
fn keys_and_errors_have_their_types() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    report(&mcperf(&server.address, "-N 3 -z d3"), 0);
    // (options, what type of responses there are)
    let table = [
        ("-m incr -N 4 -z d7", "num 3 deleted 0 end 0 value 0", "not_found 1"),
        ("-m cas -N 4", "num 0 deleted 0 end 0 value 0", "exists 3 not_found 1"),
        ("-m get -N 4", "num 0 deleted 0 end 1 value 3", "not_found 0"),
        ("-m delete -N 4", "num 0 deleted 3 end 0 value 0", "not_found 1"),
        ("-m append -N 2", "num 0 deleted 0 end 0 value 0", "stored 0 not_stored 2"),
    ];
    for (options, types, more) in table {
        let text = report(&mcperf(&server.address, options), 0);
        assert!(
            text.contains(&format!("\nResponse type: {types}\n")) && text.contains(more),
            "{options}: {text}"
        );
    }
    // More than a megabyte is too much.
    let text = report(&mcperf(&server.address, "-N 2 -z d1100000 -b 65536"), 0);
    check_lines(
        &text,
        &["Response type: error 0 client_error 0 server_error 2", "warning: 2 of 2 responses are errors"],
    );
}

#[test]
fn unix_sockets_are_loaded() {
    let _beside = beside_others();
    let Some(server) = Server::memcached_at_path(&[]) else { return };
    for options in ["-N 5", "-N 5 -D --linger=0"] {
        let text = report(&mcperf(&server.address, options), 0);
        check_lines(&text, &["Total: connections 1 requests 5 responses 5 ", "Errors: total 0 "]);
    }
    // No server is there: it ends, and every attempt is counted.
    let text = report(&mcperf("/no/such/socket", "-n 3"), 1);
    check_lines(&text, &["Total: connections 3 requests 0 responses 0 ", "Errors: total 3 "]);
    report(&mcperf("/no/such/socket", "-n 3 --legacy-exit"), 0);
}

#[test]
fn silent_resetting_and_closing_servers_are_reported() {
    let _beside = beside_others();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = report(&mcperf(&mute.local_addr().unwrap().to_string(), "-t 0.2 -n 3 -N 2"), 0);
    check_lines(
        &text,
        &[
            "Total: connections 3 requests 3 responses 0 ",
            "Errors: total 3 client-timo 3 socket-timo 0 connrefused 0 connreset 0",
        ],
    );
    let table: [(&str, &[&str]); 2] = [
        ("--reset-every=3", &["Errors: total 2 client-timo 0 socket-timo 0 connrefused 0 connreset 2"]),
        (
            "--cut-every=3",
            &[
                "Errors: total 2 client-timo 0 socket-timo 0 connrefused 0 connreset 0",
                "Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 2",
                "note: of other, 2 connections were closed by the server in good order",
            ],
        ),
    ];
    for (flag, lines) in table {
        let server = Server::reference(&[flag]);
        let text = report(&mcperf(&server.address, "-n 2 -N 5"), 0);
        check_lines(&text, &["Total: connections 2 requests 6 responses 4 "]);
        check_lines(&text, lines);
    }
}

/// What is in `other` is said, whatever it is.
#[test]
fn servers_without_replies_are_reported() {
    let _beside = beside_others();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        }
    });
    let text = report(&mcperf(&address, "-n 2 -m get"), 0);
    server.join().unwrap();
    check_lines(
        &text,
        &[
            "Total: connections 2 requests 2 responses 0 ",
            "Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 2",
            "warning: the server sent \"HTTP/1.1 400 Bad Request",
            "note: of other, 2 connections were ended for bytes that are no reply",
        ],
    );
}

#[test]
fn a_report_that_cannot_be_written_is_a_failure() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = brunt(&["mcperf"]).args(place(&server.address)).stderr(full).output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(1), 0));
}

#[test]
fn a_signal_ends_a_run_with_its_report() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let options = ["-R", "200", "-N", "1000000", "--wait", "sleep"];
    let mut child =
        brunt(&["mcperf"]).args(place(&server.address)).args(options).stderr(Stdio::piped()).spawn().unwrap();
    while server.statistics()["cmd_set"] < 20 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    check_lines(&text, &["Total: connections 1 requests ", "Response rate: ", "Net I/O: "]);
}

#[test]
fn a_log_goes_on_where_it_ends() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let path = std::env::temp_dir().join(format!("brunt-mcperf-{}.log", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let log = || std::fs::read_to_string(&path).unwrap();
    report(&mcperf(&server.address, &format!("-v 3 -o {}", path.display())), 0);
    assert_eq!(log(), "");
    let text = report(&mcperf(&server.address, &format!("-v 6 -o {} stray", path.display())), 0);
    let first = log();
    assert!(first.starts_with("warning: 'stray' belongs to no option"), "{first}");
    check_lines(
        &first,
        &[
            "note: of 1 connections 1 were created, and 0 failed",
            "note: of 1 connections 1 were destroyed",
            // The status.
            "note: ",
        ],
    );
    assert!(first.lines().all(|line| text.contains(line)), "{first}{text}");
    report(&mcperf(&server.address, &format!("-o {}", path.display())), 0);
    let both = log();
    assert!(both.starts_with(&first) && both.len() > first.len(), "{both}");
    std::fs::remove_file(&path).unwrap();
    let text = report(&mcperf(&server.address, "-o /no/such/folder/log"), 1);
    assert!(text.starts_with("mcperf: invalid value '/no/such/folder/log' for --output ("), "{text}");
}
