//! Runs of `brunt rpc-perf` against whole servers: what its log says is what the servers did. Recorded runs of rpc-perf itself are in
//! `legacy.rs`.

use crate::server::{Server, beside_others, brunt, own_directory};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::mpsc::{self, Receiver};

/// Its end, with these options against this server.
fn rpc_perf(server: &str, options: &str) -> Output {
    let words: Vec<&str> = options.split_whitespace().collect();
    brunt(&["rpc-perf", "-s", server]).args(words).output().unwrap()
}

/// Its log and what it said beside it, of one that ends so.
fn ended(output: &Output, code: i32) -> (String, String) {
    let [text, said] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(code), "{text}{said}");
    (text, said)
}

/// A file with this text, in a directory of its own that goes with it.
struct File(PathBuf);

impl File {
    fn of(text: &str) -> Self {
        let path = own_directory().join("a.toml");
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> std::path::Display<'_> {
        self.0.display()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
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

/// The sum over the windows of what the line of responses, or another, says.
fn sum(text: &str, line: &str, word: &str) -> f64 {
    of_windows(text, line, word).iter().sum()
}

/// A server that keeps every line it is sent, and answers each by this function; its address, and the lines.
fn recorder(answer: fn(&str) -> &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, lines) = mpsc::channel();
    let serve = move |stream: TcpStream, sender: mpsc::Sender<String>| {
        let mut to = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let written = to.write_all(answer(&line).as_bytes());
            if sender.send(line).is_err() || written.is_err() {
                return;
            }
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream, sender));
        }
    });
    (address, lines)
}

/// Each sample file runs as it is, against what it is meant for.
#[test]
fn every_sample_runs() {
    let _beside = beside_others();
    let (Some(memcached), Some(redis)) = (Server::memcached(&["-I", "4m"]), Server::redis(&[])) else {
        return;
    };
    let calculator = Server::reference(&["--protocol", "thrift"]);
    let table = [
        ("default.toml", &memcached, ""),
        ("default.toml", &redis, "--protocol redis"),
        ("hotkey_hit.toml", &memcached, ""),
        ("hotkey_hit.toml", &redis, "--protocol redis"),
        ("large_payload.toml", &memcached, ""),
        ("mixed_workload.toml", &memcached, ""),
        ("mixed_workload.toml", &redis, "--protocol redis-inline"),
        ("sized_dataset.toml", &memcached, ""),
        ("thrift_calc.toml", &calculator, ""),
    ];
    for (name, server, options) in table {
        let options = format!("--config {} -d 1 -w 1 {options}", sample(name));
        let (text, said) = ended(&rpc_perf(&server.address, &options), 0);
        assert_eq!(of_windows(&text, "Rate:", "Success"), [100.0], "{name}: {text}{said}");
        assert!(sum(&text, "Responses:", "Ok") > 0.0, "{name}: {text}");
        assert_eq!(
            sum(&text, "Responses:", "Error") + sum(&text, "Responses:", "Timeout"),
            0.0,
            "{name}: {text}"
        );
    }
    let kept = memcached.says("get 0\r\n", "END\r\n");
    assert!(kept.starts_with("VALUE 0 0 262144\r\n"), "{}", &kept[..30]);
    let value = kept.lines().nth(1).unwrap();
    assert!(value.len() == 262_144 && value.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let kept = redis.redis_says("STRLEN 0");
    assert!(kept.starts_with(":128\r\n"), "{kept}");
}

/// What is on the wire is what rpc-perf sends, and every style of parameters is what it says.
#[test]
fn requests_are_those_of_rpc_perf() {
    let _beside = beside_others();
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
    let file = File::of(
        &[
            workload("get", &[key]),
            workload(
                "set",
                &["style = 'random'\nsize = 6\nnum = 50\nregenerate = true", "style = 'random'\nsize = 9"],
            ),
            workload(
                "cas",
                &[
                    "seed = 12345\nsize = 3",
                    "style = 'random'\nsize = 4\nregenerate = true",
                    "seed = 17\nsize = 2",
                ],
            ),
            workload("touch", &["", "seed = 60\nsize = 2"]),
            workload("incr", &["size = 8\nseed = 7", "seed = 3"]),
            workload("version", &[]),
        ]
        .concat(),
    );
    let options = format!("--config {} -d 1 -w 1 --request-timeout 500 --seed 7", file.path());
    let (text, _) = ended(&rpc_perf(&address, &options), 0);
    assert_eq!(of_windows(&text, "Rate:", "Success"), [100.0], "{text}");
    // Only gets are hits or misses.
    let misses = sum(&text, "Responses:", "Miss");
    assert!(sum(&text, "Responses:", "Hit") == 0.0 && (60.0..=140.0).contains(&misses), "{text}");
    let lines: Vec<String> = lines.try_iter().collect();
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
    let _beside = beside_others();
    let (Some(one), Some(other)) = (Server::memcached(&[]), Server::memcached(&[])) else { return };
    let file = File::of("[general]\nflush = true\n[[workload]]\nrate = 50\nparameter = [{}]");
    for server in [&one, &other] {
        server.says("set 0 0 0 1\r\n1\r\n", "STORED\r\n");
    }
    let options = format!("--config {} -d 1 -w 1 -s {}", file.path(), other.address);
    let (text, _) = ended(&rpc_perf(&one.address, &options), 0);
    let misses = sum(&text, "Responses:", "Miss");
    assert!(sum(&text, "Responses:", "Hit") == 0.0 && (30.0..=70.0).contains(&misses), "{text}");
    for server in [&one, &other] {
        let counts = server.statistics();
        assert_eq!((counts["cmd_flush"], counts["curr_items"]), (1, 0));
        assert!(counts["cmd_get"] >= 45, "{}", counts["cmd_get"]);
    }
    if let Some(redis) = Server::redis(&[]) {
        redis.redis_says("SET 0 1\r\nSELECT 3\r\nSET 0 1");
        let options = format!("--config {} -d 1 -w 1 --protocol redis --database 3", file.path());
        ended(&rpc_perf(&redis.address, &options), 0);
        assert_eq!(redis.redis_counts("commandstats")["cmdstat_flushall"], 1);
        assert!(redis.redis_says("DBSIZE").starts_with(":0\r\n"));
    }
    let (address, lines) = recorder(|_| "SERVER_ERROR not here\r\n");
    let (text, said) = ended(&rpc_perf(&address, &format!("--config {} -d 1 -w 1", file.path())), 1);
    let expected = format!("rpc-perf: cannot delete what {address} holds: it says 'SERVER_ERROR not here'\n");
    assert!(said.ends_with(&expected) && !text.contains("Window: "), "{text}{said}");
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["flush_all"]);
}

#[test]
fn rates_are_exact_and_each_workload_has_its_own() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let file = File::of(
        "[[workload]]\nrate = 300\nparameter = [{}]\n[[workload]]\nmethod = 'set'\nrate = 70\nparameter = [{}, {}]",
    );
    let options = format!("--config {} -d 1 -w 2 -t 2 -c 3", file.path());
    let (text, said) = ended(&rpc_perf(&server.address, &options), 0);
    // A host that stands still for a moment moves what was due then to the next window.
    for sent in of_windows(&text, "Requests:", "Sent") {
        assert!((300.0..=440.0).contains(&sent), "{text}{said}");
    }
    let counts = server.statistics();
    // memcached counts the socket on which it listens, too, and the connection that asks it.
    assert_eq!(
        (counts["cmd_get"], counts["cmd_set"], counts["total_connections"] - 2),
        (900, 210, 6),
        "{text}"
    );
    assert_eq!(of_windows(&text, "Connections:", "Open"), [6.0, 6.0], "{text}");
}

/// The exit code is 0 where every window had requests that succeeded.
#[test]
fn what_comes_to_nothing_is_a_failure() {
    let _beside = beside_others();
    let file = File::of("[[workload]]\nrate = 20\nparameter = [{}]");
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let (text, said) = ended(&rpc_perf(&nobody, &format!("--config {} -d 1 -w 1", file.path())), 1);
    assert!(
        said.contains("rpc-perf: ") && said.contains(&nobody) && !text.contains("Window: "),
        "{text}{said}"
    );
    // One that never answers.
    let mute = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mute = mute.local_addr().map(|address| (mute, address.to_string())).unwrap();
    let options = format!("--config {} -d 1 -w 1 --request-timeout 100", file.path());
    let (text, said) = ended(&rpc_perf(&mute.1, &options), 1);
    assert!(said.contains("\nrpc-perf: window 1: no request succeeded\n"), "{text}{said}");
    assert_eq!(of_windows(&text, "Rate:", "Success"), [0.0], "{text}");
    let timeouts = sum(&text, "Responses:", "Timeout");
    assert!((8.0..=11.0).contains(&timeouts), "{text}");
    let (text, _) = ended(&rpc_perf(&mute.1, &format!("{options} --legacy-exit --quiet")), 0);
    assert!(text.contains("Window: 1"), "{text}");
    // A server whose name has no address of the version that is asked for.
    let options = format!("--config {} -d 1 -w 1 --ipv6", file.path());
    let (_, said) = ended(&rpc_perf("127.0.0.1:11211", &options), 1);
    assert!(said.contains("the name has no address of IPv6, which --ipv4 or --ipv6 asks for"), "{said}");
}

/// What was sent was answered, failed, or is in flight, whatever the server does.
#[test]
fn trouble_is_counted() {
    let _beside = beside_others();
    let server = Server::reference(&["--error-every", "10", "--drop-every", "50:5"]);
    let file = File::of("[[workload]]\nrate = 200\nparameter = [{}]");
    let options = format!("--config {} -d 1 -w 2 -c 4 --request-timeout 100 -v", file.path());
    let (text, said) = ended(&rpc_perf(&server.address, &options), 0);
    let of = |line: &str, word: &str| sum(&text, line, word);
    let (errors, timeouts) = (of("Responses:", "Error"), of("Responses:", "Timeout"));
    assert!((36.0..=44.0).contains(&errors) && (6.0..=10.0).contains(&timeouts), "{text}{said}");
    let ended = of("Responses:", "Ok") + errors + timeouts;
    assert!((of("Requests:", "Sent") - ended).abs() <= 4.0, "{text}");
    // Each time-out is a connection that is made anew.
    let (created, closed) = (of("Sockets:", "Create"), of("Sockets:", "Close"));
    assert!((created - timeouts).abs() <= 1.0 && (closed - timeouts).abs() <= 1.0, "{text}");
    assert!(text.contains(" DEBUG [rpc-perf] fault: timed_out: "), "{text}");
}

/// The other protocols, each against the reference server.
#[test]
fn protocols_without_a_store() {
    let _beside = beside_others();
    let echo = "[[workload]]\nrate = 100\nparameter = [{style = 'random', size = 1000, regenerate = true}]";
    let table = [("echo", "--wrong-every 10", echo, 90.0), ("ping", "", "[[workload]]\nrate = 100", 100.0)];
    for (protocol, flags, workload, success) in table {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let server = Server::reference(&[&["--protocol", protocol][..], &flags].concat());
        let file = File::of(workload);
        let options = format!("--config {} -p {protocol} -d 1 -w 1", file.path());
        let (text, said) = ended(&rpc_perf(&server.address, &options), 0);
        let found = of_windows(&text, "Rate:", "Success");
        assert!((found[0] - success).abs() <= 2.0, "{text}{said}");
        assert!(text.contains(&format!(" Protocol: {protocol}\n")), "{text}");
    }
    let Some(redis) = Server::redis(&[]) else { return };
    let table = "parameter = [{seed = 1, size = 2}, {seed = 2}";
    let file = File::of(&format!(
        "[[workload]]\nmethod = 'hset'\nrate = 100\n{table}, {{style = 'random', size = 5}}]\n[[workload]]\nmethod = 'hget'\nrate = 100\n{table}]\n\
         [[workload]]\nmethod = 'hget'\nrate = 100\nparameter = [{{seed = 5}}, {{}}]\n[[workload]]\nmethod = 'expire'\nrate = 10\nparameter = [{{seed = 1, size = 2}}, {{seed = 60, size = 2}}]"
    ));
    for protocol in ["redis", "redis-inline"] {
        redis.redis_says("HSET 01 2 x");
        let options = format!("--config {} -p {protocol} -d 1 -w 1", file.path());
        let (text, said) = ended(&rpc_perf(&redis.address, &options), 0);
        let of = |word: &str| sum(&text, "Responses:", word);
        assert!((of("Hit") - 100.0).abs() <= 40.0 && (of("Miss") - 100.0).abs() <= 40.0, "{text}{said}");
        assert_eq!(of("Error"), 0.0, "{text}");
    }
    assert!(
        redis.redis_says("TTL 01").starts_with(":60\r\n") || redis.redis_says("TTL 01").starts_with(":5")
    );
}

/// Both files hold every second of warm-up and windows, and every response.
#[test]
fn files_hold_every_second() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let file = File::of("[[workload]]\nrate = 100\nparameter = [{}]");
    let directory = file.0.parent().unwrap();
    let (trace, waterfall) = (directory.join("t.txt"), directory.join("w.png"));
    let options = format!(
        "--config {} -d 1 -w 2 --trace {} --waterfall {}",
        file.path(),
        trace.display(),
        waterfall.display()
    );
    ended(&rpc_perf(&server.address, &options), 0);
    let text = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<Vec<u64>> =
        text.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
    assert_eq!(lines[0][..5], [2, 0, 3_600_000_000_000, 1_000_000_000, 3]);
    let counts: Vec<u64> = (0..3)
        .map(|second| {
            let start_ns = lines[0][5] + second * 1_000_000_000;
            lines[1..].iter().filter(|line| line[0] == start_ns).map(|line| line[2]).sum()
        })
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 300, "{counts:?}");
    assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
    assert_eq!(std::fs::read(&waterfall).unwrap()[..4], *b"\x89PNG");
}

/// One that goes on until a signal comes writes its files after every run of windows.
#[test]
fn a_service_goes_on() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let file = File::of(
        "[[workload]]\nrate = 50\nparameter = [{}]\n[general]\nservice = true\nwindows = 1\nduration = 1",
    );
    let trace = file.0.parent().unwrap().join("t.txt");
    let options =
        ["--config", &file.path().to_string(), "--trace", &trace.display().to_string()].map(str::to_owned);
    let mut child = brunt(&["rpc-perf", "-s", &server.address])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut headers = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        // The file of a run of windows stands before the next window is printed.
        if line.ends_with("Window: 2") || line.ends_with("Window: 3") {
            let text = std::fs::read_to_string(&trace).unwrap();
            headers.push(text.lines().next().unwrap().to_owned());
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
