//! Runs of `brunt mcperf` as scripts begin them: what is sent, to the byte, and what is printed of it, whatever the server does.

use crate::server::{Ended, Server, begin, brunt, listening, silent, temporary};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

/// What it printed on standard error, with these options against this address, of one that ends so.
fn mcperf(address: &str, options: &str, code: i32) -> String {
    let mut output = Ended::from(command(address, options));
    assert_eq!((output.exit, &*output.out), (code, ""));
    std::mem::take(&mut output.said)
}

fn command(address: &str, options: &str) -> Command {
    let place = match (address.strip_prefix("unix:"), address.rsplit_once(':')) {
        (None, Some((host, port))) => format!("--server={host} --port={port}"),
        (path, _) => format!("--server={}", path.unwrap_or(address)),
    };
    brunt(&format!("mcperf {place} {options}"))
}

/// The same, in which lines begin so.
#[track_caller]
fn reported(address: &str, options: &str, code: i32, lines: &[&str]) -> String {
    let text = mcperf(address, options, code);
    check_lines(&text, lines);
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
    let Some(server) = Server::memcached("") else { return };
    let options = "--linger=0 --timeout=5 --conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=u1,16";
    let text = mcperf(&server, options, 0);
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
    let text = reported(
        &server.address,
        options,
        0,
        &[
            "Total: connections 100 requests 10000 responses 10000 test-duration ",
            "Request size [B]: avg 28.0 min 28.0 max 28.0 stddev 0.00",
            "Errors: total 0 ",
        ],
    );
    assert!(text.contains(" ms/conn <= 1 concurrent connections)\n"), "{text}");
    assert_eq!(server.statistics()["cmd_set"], 20_000);
    // As many connections and calls find what was stored.
    reported(
        &server.address,
        "-m get -n 100 -N 100 -H --fine --wait sleep",
        0,
        &["Response type: num 0 deleted 0 end 0 value 10000", "Response time histogram [ms]:"],
    );
}

#[test]
fn requests_are_mcperfs_to_the_byte() {
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
        let (sender, all) = std::sync::mpsc::channel();
        let address = listening(move |stream, _| sender.send(received(stream, reply)).unwrap());
        mcperf(&address, options, 0);
        assert_eq!(all.recv().unwrap(), expected, "{options}");
    }
}

/// All that comes on a connection, where every line but that of a value is answered so.
fn received(mut stream: TcpStream, reply: &str) -> String {
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
    let Some(server) = Server::memcached("") else { return };
    mcperf(&server, "-N 3 -z d3", 0);
    // (options, what type of responses there are)
    let table = [
        ("-m incr -N 4 -z d7", "num 3 deleted 0 end 0 value 0", "not_found 1"),
        ("-m cas -N 4", "num 0 deleted 0 end 0 value 0", "exists 3 not_found 1"),
        ("-m get -N 4", "num 0 deleted 0 end 1 value 3", "not_found 0"),
        ("-m delete -N 4", "num 0 deleted 3 end 0 value 0", "not_found 1"),
        ("-m append -N 2", "num 0 deleted 0 end 0 value 0", "stored 0 not_stored 2"),
    ];
    for (options, types, more) in table {
        let text = mcperf(&server, options, 0);
        assert!(text.contains(&format!("\nResponse type: {types}\n")) && text.contains(more));
    }
    // More than a megabyte is too much.
    reported(
        &server.address,
        "-N 2 -z d1100000 -b 65536",
        0,
        &["Response type: error 0 client_error 0 server_error 2", "warning: 2 of 2 responses are errors"],
    );
}

#[test]
fn unix_sockets_are_loaded() {
    let Some(server) = Server::memcached_at_path("") else { return };
    for options in ["-N 5", "-N 5 -D --linger=0"] {
        reported(
            &server.address,
            options,
            0,
            &["Total: connections 1 requests 5 responses 5 ", "Errors: total 0 "],
        );
    }
    // No server is there: it ends, and every attempt is counted.
    reported(
        "/no/such/socket",
        "-n 3",
        1,
        &["Total: connections 3 requests 0 responses 0 ", "Errors: total 3 "],
    );
    mcperf("/no/such/socket", "-n 3 --legacy-exit", 0);
}

#[test]
fn silent_resetting_and_closing_servers_are_reported() {
    reported(
        &silent(),
        "-t 0.2 -n 3 -N 2",
        0,
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
                "note: other 2: closed by the server in good order",
            ],
        ),
    ];
    for (flag, lines) in table {
        let server = Server::reference(flag);
        let text = reported(&server, "-n 2 -N 5", 0, &["Total: connections 2 requests 6 responses 4 "]);
        check_lines(&text, lines);
    }
}

/// What is in `other` is said, whatever it is.
#[test]
fn servers_without_replies_are_reported() {
    let address = listening(|mut stream, _| {
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    reported(
        &address,
        "-n 2 -m get",
        0,
        &[
            "Total: connections 2 requests 2 responses 0 ",
            "Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 2",
            "warning: the server sent \"HTTP/1.1 400 Bad Request",
            "note: other 2: ended for bytes that are no reply",
        ],
    );
}

#[test]
fn a_report_that_cannot_be_written_is_a_failure() {
    let server = Server::reference("");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = Ended::from(command(&server, "").stderr(full));
    assert_eq!((ended.exit, &*ended.out), (1, ""));
}

#[test]
fn a_signal_ends_a_run_with_its_report() {
    let server = Server::reference("");
    let child = begin(command(&server, "-R 200 -N 1000000 --wait sleep"));
    server.await_requests(20);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::from(child);
    assert_eq!(ended.exit, 130);
    check_lines(&ended.said, &["Total: connections 1 requests ", "Response rate: ", "Net I/O: "]);
}

#[test]
fn a_log_goes_on_where_it_ends() {
    let server = Server::reference("");
    let path = temporary("log");
    mcperf(&server, &format!("-v 3 -o {path}"), 0);
    assert_eq!(path.text(), "");
    let text = mcperf(&server, &format!("-v 6 -o {path} stray"), 0);
    let first = path.text();
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
    mcperf(&server, &format!("-o {path}"), 0);
    let both = path.text();
    assert!(both.starts_with(&first) && both.len() > first.len(), "{both}");
    let text = mcperf(&server, "-o /no/such/folder/log", 1);
    assert!(text.starts_with("mcperf: invalid value '/no/such/folder/log' for --output ("), "{text}");
}
