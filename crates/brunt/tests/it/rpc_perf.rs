//! Runs of `brunt rpc-perf` against whole servers: what its log says is what the servers did. Recorded runs of rpc-perf itself are in
//! `legacy.rs`.

use crate::server::{Directory, Ended, Server, begin, brunt, listening, silent, undisturbed, unserved};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};

/// With these options against this server.
fn command(server: &str, options: &str) -> Command {
    brunt(&format!("rpc-perf -s {server} {options}"))
}

/// A file with this text, in a directory of its own that goes with it.
struct File(Directory);

impl File {
    fn of(text: &str) -> Self {
        let directory = Directory::new();
        directory.with("a.toml", text);
        Self(directory)
    }

    fn path(&self) -> String {
        self.0.path("a.toml")
    }

    /// One of this file that ends so: its log is on standard output.
    fn run(&self, server: &str, options: &str, code: i32) -> Ended {
        let ended = Ended::from(command(server, &format!("--config {} {options}", self.path())));
        assert_eq!(ended.exit, code);
        ended
    }
}

impl Ended {
    /// The numbers of a line of each window.
    fn windows(&self, line: &str, word: &str) -> Vec<f64> {
        of_windows(&self.out, line, word)
    }

    /// The sum over the windows of what the line of responses, or another, says.
    fn sum(&self, line: &str, word: &str) -> f64 {
        self.windows(line, word).iter().sum()
    }
}

fn sample(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(name).display().to_string()
}

/// The numbers of a line of each window: those behind this word and a colon, in the lines that begin so.
fn of_windows(text: &str, line: &str, word: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|held| held.split_once("[rpc-perf] ")?.1.strip_prefix(line));
    let number = |held: &str| {
        let behind = held.split_once(&format!(" {word}: "))?.1;
        behind.split(' ').next()?.parse().ok()
    };
    lines.filter_map(number).collect()
}

/// A server that keeps every line it is sent, and answers each by this function; its address, and the lines with the numbers of their
/// connections.
fn recorder(answer: fn(&str) -> &'static str) -> (String, Receiver<(usize, String)>) {
    let (sender, lines) = mpsc::channel();
    let address = listening(move |stream, number| {
        let mut to = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let written = to.write_all(answer(&line).as_bytes());
            if sender.send((number, line)).is_err() || written.is_err() {
                return;
            }
        }
    });
    (address, lines)
}

/// Each sample file runs as it is, against what it is meant for. Those whose requests have no time-out run side by side.
#[test]
fn every_sample_runs() {
    let memcached = || Server::memcached("-I 4m");
    let (Some(hot), Some(large), Some(hot_redis), Some(other), Some(redis)) =
        (memcached(), memcached(), Server::redis(""), memcached(), Server::redis(""))
    else {
        return;
    };
    let calculator = Server::reference("--protocol thrift");
    let together = [
        ("default.toml", &other, ""),
        ("default.toml", &redis, "--protocol redis"),
        ("hotkey_hit.toml", &hot, ""),
        ("hotkey_hit.toml", &hot_redis, "--protocol redis"),
        ("large_payload.toml", &large, ""),
        ("sized_dataset.toml", &other, ""),
        ("thrift_calc.toml", &calculator, ""),
    ];
    let alone =
        [("mixed_workload.toml", &other, ""), ("mixed_workload.toml", &redis, "--protocol redis-inline")];
    for rows in [&together[..], &alone[..1], &alone[1..]] {
        let runs = rows.iter().map(|(name, server, options)| {
            (name, begin(command(server, &format!("--config {} -d 1 -w 1 {options}", sample(name)))))
        });
        for (name, run) in runs.collect::<Vec<_>>() {
            let run = Ended::from(run);
            assert_eq!(run.exit, 0);
            assert_eq!(run.windows("Rate:", "Success"), [100.0], "{name}");
            assert!(run.sum("Responses:", "Ok") > 0.0, "{name}");
            let failed = ["Error", "Timeout"].map(|word| run.sum("Responses:", word));
            assert_eq!(failed, [0.0; 2], "{name}");
        }
    }
    let kept = large.says("get 0\r\n", "END\r\n");
    assert!(kept.starts_with("VALUE 0 0 262144\r\n"), "{}", &kept[..30]);
    let value = kept.lines().nth(1).unwrap();
    assert!(value.len() == 262_144 && value.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert!(hot.says("get 0\r\n", "END\r\n").starts_with("VALUE 0 0 128\r\n"));
    let kept = hot_redis.redis_says("STRLEN 0");
    assert!(kept.starts_with(":128\r\n"), "{kept}");
}

/// What is on the wire is what rpc-perf sends, and every style of parameters is what it says.
#[test]
fn requests_are_those_of_rpc_perf() {
    let (address, lines) = recorder(|line| match line {
        line if line.starts_with("get") => "END\r\n",
        line if line.starts_with("touch") => "TOUCHED\r\n",
        line if line.starts_with("incr") => "NOT_FOUND\r\n",
        line if line.starts_with("version") => "VERSION 1\r\n",
        line if line.starts_with("set") || line.starts_with("cas") => "",
        _ => "STORED\r\n",
    });
    let parameter = |table: &str| format!("[[workload.parameter]]\n{table}\n");
    let workload = |method: &str, parameters: &[&str]| {
        let parameters: String = parameters.iter().map(|table| parameter(table)).collect();
        format!("[[workload]]\nmethod = '{method}'\nrate = 100\n{parameters}")
    };
    let key = "style = 'random'\nsize = 3\nregenerate = true";
    let file = File::of(&format!(
        "{} {} {} {} {} {}",
        workload("get", &[key]),
        workload("set", &[&key.replace("3", "6\nnum = 50"), "style = 'random'\nsize = 9"]),
        workload("cas", &["seed = 12345\nsize = 3", &key.replace('3', "4"), "seed = 17\nsize = 2"]),
        workload("touch", &["", "seed = 60\nsize = 2"]),
        workload("incr", &["size = 8\nseed = 7", "seed = 3"]),
        workload("version", &[])
    ));
    let run = file.run(&address, "-d 1 -w 1 --request-timeout 500 --seed 7", 0);
    assert_eq!(run.windows("Rate:", "Success"), [100.0]);
    // Only gets are hits or misses.
    let misses = run.sum("Responses:", "Miss");
    assert!(run.sum("Responses:", "Hit") == 0.0 && (60.0..=140.0).contains(&misses));
    let lines: Vec<String> = lines.try_iter().map(|(_, line)| line).collect();
    let of =
        |command: &str| -> Vec<&String> { lines.iter().filter(|line| line.starts_with(command)).collect() };
    let distinct = |lines: &[&String]| lines.iter().collect::<std::collections::BTreeSet<_>>().len();
    let gets = of("get ");
    assert!(
        gets.iter().all(|line| line.len() == 7 && line.as_bytes()[4..].iter().all(u8::is_ascii_alphanumeric))
    );
    assert!((195..=205).contains(&gets.len()) && distinct(&gets) > 190, "{} gets", gets.len());
    let sets = of("set ");
    let numbers: Vec<u32> = sets.iter().map(|line| line[4..10].parse().unwrap()).collect();
    assert!(sets.iter().all(|line| line.ends_with(" 0 0 9") && line.len() == 16));
    assert!(numbers.iter().all(|number| *number < 50) && distinct(&sets) > 35, "{numbers:?}");
    assert!(of("cas ").iter().all(|line| *line == "cas 123 0 0 4 17"), "{:?}", of("cas "));
    assert_eq!((distinct(&of("touch ")), of("touch ")[0].as_str()), (1, "touch 0 60"));
    assert_eq!((distinct(&of("incr ")), of("incr ")[0].as_str()), (1, "incr 00000007 3"));
    assert!(of("version").len() > 190);
    // Values: one that was drawn once, and one for each request.
    let value = |len: usize| -> Vec<&String> {
        lines.iter().filter(|line| line.len() == len && !line.contains(' ')).collect()
    };
    assert_eq!(distinct(&value(9)), 1);
    assert!(distinct(&value(4)) > 190);
}

/// Everything is deleted on every server before the first request, or there is no run.
#[test]
fn a_flush_is_confirmed() {
    let (Some(one), Some(other)) = (Server::memcached(""), Server::memcached("")) else { return };
    let file = File::of("[general]\nflush = true\n[[workload]]\nrate = 50\nparameter = [{}]");
    for server in [&one, &other] {
        server.says("set 0 0 0 1\r\n1\r\n", "STORED\r\n");
    }
    let run = file.run(&one, &format!("-d 1 -w 1 -s {other}"), 0);
    let misses = run.sum("Responses:", "Miss");
    assert!(run.sum("Responses:", "Hit") == 0.0 && (30.0..=70.0).contains(&misses));
    for server in [&one, &other] {
        let counts = server.statistics();
        assert_eq!((counts["cmd_flush"], counts["curr_items"]), (1, 0));
        assert!(counts["cmd_get"] >= 45, "{}", counts["cmd_get"]);
    }
    if let Some(redis) = Server::redis("") {
        redis.redis_says("SET 0 1\r\nSELECT 3\r\nSET 0 1");
        file.run(&redis, "-d 1 -w 1 --protocol redis --database 3", 0);
        assert_eq!(redis.redis_counts("commandstats")["cmdstat_flushall"], 1);
        assert!(redis.redis_says("DBSIZE").starts_with(":0\r\n"));
    }
    let (address, lines) = recorder(|_| "SERVER_ERROR not here\r\n");
    let run = file.run(&address, "-d 1 -w 1", 1);
    let expected = format!("rpc-perf: cannot flush {address}: reply 'SERVER_ERROR not here'\n");
    assert!(run.said.ends_with(&expected) && !run.out.contains("Window: "));
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), [(0, "flush_all".to_owned())]);
}

#[test]
fn rates_are_exact_and_each_workload_has_its_own() {
    let Some(server) = Server::memcached("") else { return };
    let file = File::of(
        "[[workload]]\nrate = 300\nparameter = [{}]\n[[workload]]\nmethod = 'set'\nrate = 70\nparameter = [{}, {}]",
    );
    let run = file.run(&server, "-d 1 -w 2 -t 2 -c 3", 0);
    // A host that stands still for a moment moves what was due then to the next window.
    for sent in run.windows("Requests:", "Sent") {
        assert!((300.0..=440.0).contains(&sent));
    }
    let counts = server.statistics();
    // memcached counts the socket on which it listens, too, and the connection that asks it.
    assert_eq!((counts["cmd_get"], counts["cmd_set"], counts["total_connections"] - 2), (900, 210, 6));
    assert_eq!(run.windows("Connections:", "Open"), [6.0, 6.0]);
}

/// All connections of all threads take their share of a rate that one could carry, and with the same seed they send the same requests.
#[test]
fn threads_share_the_work_and_a_seed_repeats_it() {
    let file =
        File::of("[[workload]]\nrate = 200\nparameter = [{style = 'random', size = 8, regenerate = true}]");
    let requests = |seed: u64| {
        let (address, lines) = recorder(|_| "END\r\n");
        let run = file.run(&address, &format!("-d 1 -w 1 -t 2 -c 2 --seed {seed}"), 0);
        assert!(run.said.contains(&format!("note: --seed {seed} makes the same choices again\n")));
        let mut of_connections = BTreeMap::new();
        let mut requests = Vec::new();
        for (connection, line) in lines.try_iter() {
            *of_connections.entry(connection).or_default() += 1;
            requests.push(line);
        }
        let counts: Vec<u32> = of_connections.into_values().collect();
        assert!(counts.len() == 4 && counts.iter().all(|count| *count >= 20), "{counts:?}");
        requests.sort();
        requests
    };
    let first = requests(7);
    assert_eq!(first.len(), 400);
    assert_eq!(requests(7), first);
    assert!(requests(8).iter().filter(|request| first.contains(request)).count() < 5);
}

/// The exit code is 0 where every window had requests that succeeded.
#[test]
fn runs_without_replies_fail() {
    let file = File::of("[[workload]]\nrate = 20\nparameter = [{}]");
    let nowhere = unserved();
    let run = file.run(nowhere, "-d 1 -w 1", 1);
    assert!(run.said.contains("rpc-perf: ") && run.said.contains(nowhere) && !run.out.contains("Window: "));
    // One that never answers.
    let mute = silent();
    let run = file.run(&mute, "-d 1 -w 1 --request-timeout 100", 1);
    assert!(run.said.contains("\nrpc-perf: window 1: no request succeeded\n"));
    assert_eq!(run.windows("Rate:", "Success"), [0.0]);
    let timeouts = run.sum("Responses:", "Timeout");
    assert!((3.0..=11.0).contains(&timeouts), "{timeouts}");
    let run = file.run(&mute, "-d 1 -w 1 --request-timeout 100 --legacy-exit --quiet", 0);
    assert!(run.out.contains("Window: 1"));
    // A server whose name has no address of the version that is asked for.
    let run = file.run("127.0.0.1:11211", "-d 1 -w 1 --ipv6", 1);
    assert!(run.said.contains("the name has no address of IPv6, which --ipv4 or --ipv6 asks for"));
}

/// What was sent was answered, failed, or is in flight, whatever the server does.
#[test]
fn faults_are_counted() {
    let server = Server::reference("--error-every 10 --drop-every 50:5");
    let file = File::of("[[workload]]\nrate = 200\nparameter = [{}]");
    let run = file.run(&server, "-d 1 -w 2 -c 4 --request-timeout 100 -v", 0);
    let of = |line: &str, word: &str| run.sum(line, word);
    let (errors, timeouts) = (of("Responses:", "Error"), of("Responses:", "Timeout"));
    assert!((36.0..=44.0).contains(&errors) && (6.0..=10.0).contains(&timeouts));
    let ended = of("Responses:", "Ok") + errors + timeouts;
    assert!((of("Requests:", "Sent") - ended).abs() <= 4.0);
    // Each time-out is a connection that is made anew.
    let (created, closed) = (of("Sockets:", "Create"), of("Sockets:", "Close"));
    assert!((created - timeouts).abs() <= 1.0 && (closed - timeouts).abs() <= 1.0);
    assert!(run.out.contains(" DEBUG [rpc-perf] fault: timed_out: "));
    assert!(run.said.contains("\nwarning: the server sent an error: injected fault\n"));
}

/// The other protocols, each against the reference server.
#[test]
fn echo_ping_and_thrift_are_measured() {
    let echo = "[[workload]]\nrate = 100\nparameter = [{style = 'random', size = 1000, regenerate = true}]";
    let table = [("echo", "--wrong-every 10", echo, 90.0), ("ping", "", "[[workload]]\nrate = 100", 100.0)];
    for (protocol, flags, workload, success) in table {
        let server = Server::reference(&format!("--protocol {protocol} {flags}"));
        let file = File::of(workload);
        let run = file.run(&server, &format!("-p {protocol} -d 1 -w 1"), 0);
        let found = run.windows("Rate:", "Success");
        assert!((found[0] - success).abs() <= 2.0);
        assert!(run.out.contains(&format!(" Protocol: {protocol}\n")));
    }
    let Some(redis) = Server::redis("") else { return };
    let table = "parameter = [{seed = 1, size = 2}, {seed = 2}";
    let file = File::of(&format!(
        "[[workload]]\nmethod = 'hset'\nrate = 100\n{table}, {{style = 'random', size = 5}}]\n[[workload]]\nmethod = 'hget'\nrate = 100\n{table}]\n\
         [[workload]]\nmethod = 'hget'\nrate = 100\nparameter = [{{seed = 5}}, {{}}]\n[[workload]]\nmethod = 'expire'\nrate = 10\nparameter = [{{seed = 1, size = 2}}, {{seed = 60, size = 2}}]"
    ));
    for protocol in ["redis", "redis-inline"] {
        redis.redis_says("HSET 01 2 x");
        let run = file.run(&redis, &format!("-p {protocol} -d 1 -w 1"), 0);
        let of = |word: &str| run.sum("Responses:", word);
        assert!((of("Hit") - 100.0).abs() <= 40.0 && (of("Miss") - 100.0).abs() <= 40.0);
        assert_eq!(of("Error"), 0.0);
    }
    assert!(
        redis.redis_says("TTL 01").starts_with(":60\r\n") || redis.redis_says("TTL 01").starts_with(":5")
    );
}

/// The numbers of each line of a trace.
fn numbers_of(trace: &str) -> Vec<Vec<u64>> {
    trace.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect()
}

/// The responses of a second of a trace that took as long as this.
fn in_second(lines: &[Vec<u64>], second: u64, from_ns: u64) -> u64 {
    let start_ns = lines[0][5] + second * 1_000_000_000;
    lines[1..].iter().filter(|line| line[0] == start_ns && line[1] >= from_ns).map(|line| line[2]).sum()
}

/// Both files hold every second of warm-up and windows, and every response.
#[test]
fn files_hold_every_second() {
    let Some(server) = Server::memcached("") else { return };
    let file = File::of("[[workload]]\nrate = 100\nparameter = [{}]");
    let directory = file.0.parent().unwrap();
    let (trace, waterfall) = (directory.join("t.txt"), directory.join("w.png"));
    file.run(
        &server.address,
        &format!("-d 1 -w 2 --trace {} --waterfall {}", trace.display(), waterfall.display()),
        0,
    );
    let text = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<Vec<u64>> =
        text.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
    assert_eq!(lines[0][..5], [2, 0, 3_600_000_000_000, 1_000_000_000, 3]);
    let counts = [0, 1, 2].map(|second| in_second(&lines, second, 0));
    assert_eq!(counts.iter().sum::<u64>(), 300, "{counts:?}");
    assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
    assert_eq!(std::fs::read(&waterfall).unwrap()[..4], *b"\x89PNG");
}

/// One that goes on until a signal comes writes its files after every run of windows.
#[test]
fn service_mode_runs_until_a_signal() {
    let Some(server) = Server::memcached("") else { return };
    let file = File::of(
        "[[workload]]\nrate = 50\nparameter = [{}]\n[general]\nservice = true\nwindows = 1\nduration = 1",
    );
    let options = format!("--config {} --trace {}", file.path(), file.0.path("t.txt"));
    let mut child = begin(command(&server, &options));
    let mut headers = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        // The file of a run of windows is before the next window is printed.
        if line.ends_with("Window: 2") || line.ends_with("Window: 3") {
            headers.push(file.0.text("t.txt").lines().next().unwrap().to_owned());
        }
        if line.ends_with("Window: 3") {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let slices: Vec<&str> = headers.iter().map(|header| header.split(' ').nth(4).unwrap()).collect();
    // The warm-up is in the first alone.
    assert_eq!(slices, ["2", "1"], "{headers:?}");
}

/// A run that shows its numbers by HTTP.
struct Shown {
    child: Child,
    address: String,
}

impl Shown {
    fn start(server: &Server, options: &str) -> Self {
        let mut child = begin(command(server, &format!("--listen 0 {options}")));
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = said
            .filter_map(|line| line.strip_prefix("note: http://")?.split('/').next().map(str::to_owned))
            .next();
        Self { child, address: address.unwrap() }
    }

    /// The body of a page.
    fn body(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        body.to_owned()
    }

    /// The numbers of this window as soon as it is over, the same on each page.
    fn numbers_of(&self, window: f64) -> BTreeMap<String, f64> {
        loop {
            let [lines, typed, json] = ["/vars", "/metrics", "/json"].map(|path| self.body(path));
            let json: BTreeMap<String, f64> = serde_json::from_str(&json).unwrap();
            if numbers(&lines).get("window_count") == Some(&window) && lines == self.body("/vars") {
                assert!(numbers(&lines) == json && numbers(&typed) == json, "{lines}{typed}{json:?}");
                return json;
            }
            std::thread::yield_now();
        }
    }
}

/// What a page says, by names.
fn numbers(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// The numbers of each window are those of the log, and all together are what the server counted; clients that are slow, stop half-way
/// or send garbage disturb neither.
#[test]
fn numbers_are_shown_by_http() {
    let Some(server) = Server::memcached("") else { return };
    server.says("set 0 0 0 1\r\n1\r\n", "STORED\r\n");
    let file = File::of(
        "[[workload]]\nrate = 200\nparameter = [{}]\n[[workload]]\nrate = 90\nparameter = [{seed = 1}]",
    );
    let mut run = Shown::start(&server, &format!("--config {} -d 1 -w 3 -c 2 --quiet", file.path()));
    assert_eq!(["/vars", "/metrics", "/", "/any.json"].map(|path| run.body(path)), ["", "", "{}\n", "{}\n"]);
    let disturbing: Vec<TcpStream> = (0..20)
        .map(|nth| {
            let mut stream = TcpStream::connect(&run.address).unwrap();
            stream.write_all(["", "GET /va", "get 0\r\n", "\u{0}\r\n\r\n"][nth % 4].as_bytes()).unwrap();
            stream
        })
        .collect();
    let (mut text, mut windows) = (String::new(), Vec::new());
    for line in BufReader::new(run.child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        text.extend([&line, "\n"]);
        // The last window is shown while the process ends.
        if line.ends_with("Warmup complete") || line.ends_with("Window: 1") || line.ends_with("Window: 2") {
            windows.push(run.numbers_of(windows.len() as f64));
        }
    }
    drop(disturbing);
    assert_eq!(run.child.wait().unwrap().code(), Some(0));
    for window in 1..3 {
        let of = |name: &str| windows[window][name];
        let since = |name: &str| of(&format!("{name}_count")) - windows[window - 1][&format!("{name}_count")];
        for (line, word, name) in [
            ("Responses:", "Ok", "response_ok"),
            ("Responses:", "Hit", "response_ok_hit"),
            ("Responses:", "Miss", "response_ok_miss"),
            ("Requests:", "Sent", "request_sent"),
            ("Requests:", "Prepared", "request_prepared"),
            ("Sockets:", "Read", "socket_read"),
        ] {
            let printed = of_windows(&text, line, word)[window - 1];
            assert!(printed > 0.0 && printed == since(name), "{name}{windows:?}");
        }
        for word in ["min", "p50", "p90", "p99", "p999", "p9999", "max"] {
            let printed_us = of_windows(&text, "Percentiles: Response OK (us):", word)[window - 1];
            assert_eq!((of(&format!("response_ok_{word}_nanoseconds")) / 1e3).floor(), printed_us, "{word}");
        }
        let each = |word: &str| {
            ["response_ok", "response_ok_hit", "response_ok_miss"]
                .map(|name| of(&format!("{name}_{word}_nanoseconds")))
        };
        let ([least, least_hit, least_miss], [most, most_hit, most_miss]) = (each("min"), each("max"));
        assert!(least > 0.0 && least == least_hit.min(least_miss) && most == most_hit.max(most_miss));
    }
    let counts = server.statistics();
    for (name, word, count) in
        [("response_ok_hit_count", "Hit", "get_hits"), ("response_ok_miss_count", "Miss", "get_misses")]
    {
        let last = of_windows(&text, "Responses:", word)[2];
        assert_eq!(windows[2][name] + last, counts[count] as f64, "{name}");
    }
    // Connections are made before the warm-up alone.
    assert_eq!([0, 1].map(|window| windows[window]["connect_ok_count"]), [2.0, 2.0]);
    assert!(
        windows[0]["connect_ok_min_nanoseconds"] > 0.0 && windows[1]["connect_ok_max_nanoseconds"] == 0.0
    );
}

#[test]
fn listen_errors_are_reported() {
    let file = File::of("[[workload]]\nparameter = [{}]");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (given, expected) in [
        ("host:80", ": expected a port of this host alone, such as 9090"),
        (&address, " (Address already in use (os error 98)): expected "),
    ] {
        let expected = format!("invalid value '{given}' for --listen{expected}");
        let run = file.run("127.0.0.1", &format!("--listen {given}"), 1);
        assert!(run.said.contains(&format!("rpc-perf: {expected}")) && !run.out.contains("Connecting"));
    }
}

/// A server that stands still for a second: what was due meanwhile has waited for it, and is seen in the second and in the window in which
/// the server went on.
#[test]
fn stalls_appear_in_their_window() {
    let server = Server::reference_first("--stall 2300ms:1s");
    let file = File::of("[[workload]]\nrate = 1000\nparameter = [{}]");
    let options = format!("--config {} -d 1 -w 4 -c 10 --trace {}", file.path(), file.0.path("t.txt"));
    let run = Ended::from(undisturbed(&format!("rpc-perf -s {server} {options}")));
    let (text, said) = (&run.out, &run.said);
    assert_eq!(run.exit, 0);
    // Due every millisecond from 2.3 s to 3.3 s, answered from 3.3 s on: of the 1700 of that second 17 have waited longer than 983 ms. From
    // when they were sent ten alone took so long, for a connection has one at a time.
    let p99_us = of_windows(text, "Percentiles: Response OK (us):", "p99");
    for (window, p99_us) in p99_us.iter().enumerate() {
        let expected_us = if window == 2 { 950_000.0..1_200_000.0 } else { 0.0..500_000.0 };
        assert!(expected_us.contains(p99_us));
    }
    let of_run = said.lines().find_map(|line| line.strip_prefix("note: p99 of all windows: "));
    assert!(of_run.is_some_and(|note| note.ends_with(" us from when it was sent")));
    let lines = numbers_of(&file.0.text("t.txt"));
    let slow: Vec<u64> = (0..5).map(|second| in_second(&lines, second, 500_000_000)).collect();
    assert!((450..=900).contains(&slow[3]) && slow.iter().sum::<u64>() == slow[3], "{slow:?}");
    let all: Vec<u64> = (0..5).map(|second| in_second(&lines, second, 0)).collect();
    let before: u64 = all[..3].iter().sum();
    assert!(all[..3].iter().all(|count| *count > 0), "{all:?}");
    assert!(all.iter().sum::<u64>() == 5_000 && before < 2_450 && all[3] > 1_550, "{all:?}");
}
