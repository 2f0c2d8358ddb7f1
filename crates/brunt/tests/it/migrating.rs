//! docs/migrating.md: each command sends what the tool before it sends, by a server that records what arrives; the options in its tables are
//! accepted.
//!
//! Runs are shortened to so many requests. redis-benchmark itself is recorded, too; for the others the traffic stands here, as their
//! documentation and sources have it.

use crate::server::{Directory, Ended, is_installed, listening, plain, side_by_side, words};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Mutex};

const DOCUMENT: &str = include_str!("../../../../docs/migrating.md");

/// Requests of each run.
const REQUESTS: u64 = 4_000;

/// Of each command of the document, in its order: operations with their shares in per cent, keys with every digit as `0`, lengths of values.
const TRAFFIC: [&str; 13] = [
    "get 90.9 memtier-00000000, set 9.1 memtier-00000000 32",
    "get 90.9 memtier-00000000, set 9.1 memtier-00000000 32",
    "set 100 key:000000000000 3",
    "get 100 key:000000000000",
    "get 50 key:000000000000, set 50 key:000000000000 3",
    "get 80 0000000000000000, set 20 0000000000000000 64",
    "get 80 00000000000000000000000000000000, set 20 00000000000000000000000000000000 128",
    "get 97 *, set 3 * *",
    "get 50 user0000000000000000000, set 50 user0000000000000000000 1000",
    "get 95 user0000000000000000000, set 5 user0000000000000000000 1000",
    "get 100 user0000000000000000000",
    "get 95 user0000000000000000000, set 5 user0000000000000000000 1000",
    "get 66.7 user0000000000000000000, set 33.3 user0000000000000000000 1000",
];

/// How often each operation came, by its key's form and its value's length.
type Traffic = BTreeMap<(String, String, Option<usize>), u64>;

/// A server of memcached's text and of RESP that has nothing, takes everything, and records it; its port.
fn recorder() -> (String, Arc<Mutex<Traffic>>) {
    let traffic = Arc::new(Mutex::new(Traffic::new()));
    let seen = traffic.clone();
    let address = listening(move |stream, _| _ = record(&stream, &traffic));
    (address.rsplit_once(':').unwrap().1.to_owned(), seen)
}

fn record(mut stream: &TcpStream, traffic: &Mutex<Traffic>) -> Option<()> {
    let mut input = BufReader::new(stream);
    loop {
        let line = line_of(&mut input)?;
        let (words, is_resp) = match line.strip_prefix('*') {
            Some(count) => {
                let words: Option<Vec<String>> =
                    (0..count.parse().ok()?).map(|_| bulk_of(&mut input)).collect();
                (words?, true)
            }
            None => (line.split(' ').map(str::to_owned).collect(), false),
        };
        let op = words[0].to_ascii_lowercase();
        let is_store = matches!(op.as_str(), "set" | "add" | "cas");
        let value = match (is_store, is_resp) {
            (true, true) => Some(words[2].chars().count()),
            (true, false) => {
                let len: usize = words[4].parse().ok()?;
                input.read_exact(&mut vec![0; len + 2]).ok()?;
                Some(len)
            }
            (false, _) => None,
        };
        if is_store || matches!(op.as_str(), "get" | "gets") {
            let key = words[1].replace("__rand_int__", &"0".repeat(12));
            let form = key.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
            *traffic.lock().unwrap().entry((op.clone(), form, value)).or_default() += 1;
        }
        let reply = match (is_resp, op.as_str()) {
            (true, "get") => "$-1",
            (true, "set") => "+OK",
            (true, _) => "-ERR unknown command",
            // What was read with `gets` is there, so that `cas` follows.
            (false, "gets") => &format!("VALUE {} 0 1 7\r\nx\r\nEND", words[1]),
            (false, "get") => "END",
            (false, _) if is_store => "STORED",
            (false, _) => "ERROR",
        };
        stream.write_all(format!("{reply}\r\n").as_bytes()).ok()?;
    }
}

fn line_of(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (input.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

/// One word of a command in RESP.
fn bulk_of(input: &mut impl BufRead) -> Option<String> {
    let mut bytes = vec![0; line_of(input)?.strip_prefix('$')?.parse::<usize>().ok()? + 2];
    input.read_exact(&mut bytes).ok()?;
    bytes.truncate(bytes.len() - 2);
    // A letter for each byte.
    Some(bytes.into_iter().map(char::from).collect())
}

/// Are these the operations, keys and values, with their shares within the chance of so many requests?
fn check(what: &str, traffic: &Traffic, expected: &str) {
    let total: u64 = traffic.values().sum();
    assert!(total >= REQUESTS / 2, "{what}: {traffic:?}");
    let mut explained = 0;
    for expected in expected.split(", ") {
        let [op, share, rest @ ..] = &expected.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{expected}")
        };
        let fits = |form: &str, text: &str| form == "*" || form == text;
        let value = |len: &Option<usize>| len.map_or(String::new(), |len| len.to_string());
        let is_it = |(held, key, len): &&(String, String, Option<usize>)| {
            held == op && fits(rest[0], key) && fits(rest.get(1).unwrap_or(&""), &value(len))
        };
        let count: u64 = traffic.keys().filter(is_it).map(|held| traffic[held]).sum();
        let seen = 100.0 * count as f64 / total as f64;
        let share: f64 = share.parse().unwrap();
        assert!((seen - share).abs() < 4.0, "{what}: {op} {seen} %, expected {share} %: {traffic:?}");
        explained += count;
    }
    assert_eq!(explained, total, "{what}: {traffic:?}");
}

/// Command lines in the blocks of a document that are marked `sh`, without the program's name.
fn command_lines(document: &'static str) -> impl Iterator<Item = &'static str> {
    let blocks = document.split("```sh\n").skip(1).map(|behind| behind.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(|line| line.strip_prefix("brunt ").expect(line))
}

/// The same command against the recorder, for so many requests without a preload. As many keys as the session may have in the order of versions.
fn shortened(line: &str, port: &str) -> String {
    let mut short = words(line);
    for index in 1..short.len() {
        let word = match short[index - 1].as_str() {
            "--server" => match short[index].split_once("://") {
                Some((scheme, _)) => format!("{scheme}://127.0.0.1:{port}"),
                None => format!("memcached://127.0.0.1:{port}"),
            },
            "--requests" => REQUESTS.to_string(),
            "--time" => "20s".to_owned(),
            "--warmup" => "0s".to_owned(),
            "--connections" => short[index].parse::<u64>().unwrap().min(20).to_string(),
            "--rate" => "10k".to_owned(),
            _ => continue,
        };
        short[index] = word;
    }
    let more = [
        ("--requests", format!("--requests={REQUESTS}")),
        ("--warmup", "--warmup=0s".to_owned()),
        ("--no-preload", "--no-preload".to_owned()),
        ("--progress", "--progress=none".to_owned()),
        ("--set", "--set=server-stats=false".to_owned()),
        ("--allow", "--allow=BROKEN,LOAD,CLIENT,DATA".to_owned()),
    ];
    for (option, given) in more {
        if !short.iter().any(|word| word == option) {
            short.push(given);
        }
    }
    short.iter().map(|word| format!("'{word}' ")).collect()
}

#[test]
fn commands_send_what_the_other_tool_sends() {
    let directory = Directory::new();
    let lines: Vec<&str> = command_lines(DOCUMENT).filter(|line| line.starts_with("run ")).collect();
    assert_eq!(lines.len(), TRAFFIC.len());
    side_by_side(lines.into_iter().zip(TRAFFIC), |(line, expected)| {
        let (port, traffic) = recorder();
        Ended::from(plain(&shortened(line, &port)).current_dir(&directory)).is(0, &[]);
        check(line, &traffic.lock().unwrap(), expected);
    });
}

#[test]
fn redis_benchmark_sends_what_the_document_says() {
    if !is_installed("redis-benchmark", "--version") {
        return;
    }
    let table =
        [("-t set", TRAFFIC[2]), ("-t get", TRAFFIC[3]), ("-t set,get -r 100000 -P 16 -c 50", TRAFFIC[4])];
    for (options, expected) in table {
        let (port, traffic) = recorder();
        let line = format!("-p {port} -n {REQUESTS} {options}");
        Ended::from(Command::new("redis-benchmark").args(words(&line))).is(0, &[]);
        check(options, &traffic.lock().unwrap(), expected);
    }
}

/// The options of brunt in the rows of the tables.
fn options() -> impl Iterator<Item = &'static str> {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.trim_matches('|').split('|').map(str::trim).nth(1));
    cells.filter(|cell| !cell.is_empty()).map(|cell| {
        let code = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
        code.filter(|code| !code.contains('`')).unwrap_or_else(|| panic!("{cell}: no options alone"))
    })
}

#[test]
fn options_in_the_tables_are_accepted() {
    let directory = Directory::new();
    directory.with("redis.pw", "x\n");
    for ours in options() {
        let has = |part: &str| ours.contains(part);
        let server = match (has("--server"), has("--tls-"), has("--protocol")) {
            (true, ..) => "",
            (false, true, _) => "--server rediss://h",
            (false, false, true) => "--server h",
            (false, false, false) => "--server redis://h",
        };
        Ended::from(plain(&format!("run {ours} --print-plan {server}")).current_dir(&directory)).is(0, &[]);
    }
}
