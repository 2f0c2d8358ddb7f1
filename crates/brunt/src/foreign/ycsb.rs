//! YCSB's command line typed at brunt: `run redis -P workloads/workloada -p redis.host=cache -threads 16 -target 10000`.
//!
//! Apart from the other tools, since nearly all it takes are properties, `-p NAME=VALUE`. docs/migrating.md has more of them.

use super::translation::quoted;
use std::path::Path;

/// A word or two of the line, what brunt has for it, and a note.
type Row = (String, String, String);

/// The properties that need no more than their value, with what they are in brunt.
const PROPERTIES: [(&str, &str); 5] = [
    ("recordcount", "--keys {}"),
    ("operationcount", "--requests {}"),
    ("maxexecutiontime", "--time {}s"),
    ("hdrhistogram.percentiles", "--percentiles {}"),
    ("memcached.opTimeoutMillis", "--timeout {}ms"),
];

/// The mix and the popularity of a core workload; E scans ranges, which caches do not have.
fn of_workload(letter: char) -> Option<&'static str> {
    Some(match letter {
        'a' => "--mix get=1,set=1 --popularity zipf:0.99",
        'b' => "--mix get=19,set=1 --popularity zipf:0.99",
        'c' => "--mix get=1 --popularity zipf:0.99",
        'd' => "--mix get=19,add=1 --popularity latest:0.99",
        'f' => "--mix get=1,gets=1,cas=1 --popularity zipf:0.99",
        _ => return None,
    })
}

/// The line as rows, and as options of ours; `None` if it is not YCSB's. `name`: our command.
pub(super) fn read(name: &str, words: &[String]) -> Option<(Vec<Row>, Vec<String>)> {
    // The word that names the database may be missing.
    let unnamed = String::new();
    let (binding, rest) = match words.split_first()? {
        (binding, rest) if !binding.starts_with('-') => (binding, rest),
        _ => (&unnamed, words),
    };
    let is_value = |at: usize, is: fn(&str) -> bool| rest.get(at + 1).is_some_and(|value| is(value));
    let is_ycsb = rest.iter().enumerate().any(|(at, word)| match word.as_str() {
        "-P" => is_value(at, |value| value.contains("workload")),
        "-p" => is_value(at, |value| value.contains('=')),
        "-threads" | "-target" => !binding.is_empty(),
        _ => false,
    });
    if !is_ycsb || !binding.is_empty() && Path::new(binding).exists() {
        return None;
    }
    let properties =
        || rest.windows(2).filter(|pair| pair[0] == "-p").filter_map(|pair| pair[1].split_once('='));
    let property = |name: &str| properties().rfind(|(held, _)| *held == name).map(|(_, value)| value);
    let server = match (property("redis.host"), property("memcached.hosts")) {
        (_, Some(hosts)) => {
            hosts.split(',').map(|host| format!("--server {}", quoted(host))).collect::<Vec<_>>().join(" ")
        }
        (None, None) if binding.contains("memcached") => "--server 127.0.0.1:11211".to_owned(),
        (None, None) if !binding.contains("redis") => String::new(),
        (host, _) => {
            let (host, port) = (host.unwrap_or("127.0.0.1"), property("redis.port").unwrap_or("6379"));
            format!("--server {}", quoted(&format!("redis://{host}:{port}")))
        }
    };
    let mut rows = vec![(binding.clone(), server, String::new())];
    rows.retain(|(typed, ours, _)| !typed.is_empty() || !ours.is_empty());
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        // Without that word the server is named as brunt takes it.
        let is_server =
            binding.is_empty() && word == "-s" && rest.get(at + 1).is_some_and(|next| !next.starts_with('-'));
        let takes_value = is_server
            || matches!(word.as_str(), "-P" | "-p" | "-threads" | "-target" | "-cp" | "-jvm-args" | "-db");
        let value = rest.get(at + 1).filter(|_| takes_value).map_or("", String::as_str);
        rows.push(row(name, word, value));
        at += 1 + usize::from(takes_value);
    }
    let mut pieces: Vec<String> = Vec::new();
    for (_, ours, _) in rows.iter().filter(|row| !row.1.is_empty()) {
        if !pieces.contains(ours) {
            pieces.push(ours.clone());
        }
    }
    Some((rows, pieces))
}

/// One word with its value. What a load does not have is left out of it.
fn row(name: &str, word: &str, value: &str) -> Row {
    let typed = format!("{word} {value}").trim_end().to_owned();
    let is_run = name != "load";
    let none = |note: &str| (typed.clone(), String::new(), note.to_owned());
    let ours = |ours: String| (typed.clone(), ours, String::new());
    match word {
        "-s" if !value.is_empty() => ours(format!("--server {}", quoted(value))),
        "-s" => ours("--progress 10s".to_owned()),
        "-threads" if is_run => ours(format!("--connections {}", quoted(value))),
        "-target" if is_run => ours(format!("--rate {}", quoted(value))),
        "-threads" | "-target" => none("brunt load stores as fast as it can"),
        "-P" => {
            let data = "--prefix user --key-size 23 --value-size 1000";
            let letter = value.rsplit_once("workload").and_then(|(_, letter)| letter.chars().next());
            match letter.and_then(of_workload) {
                Some(traffic) if is_run => ours(format!("{data} {traffic}")),
                Some(_) => ours(data.to_owned()),
                None => none("brunt has no such workload: --mix, --popularity, --keys, --value-size"),
            }
        }
        "-p" => match value.split_once('=') {
            Some(("redis.password", _)) => {
                ("-p redis.password (secret)".to_owned(), "--password @redis.pw".to_owned(), String::new())
            }
            Some(("redis.host" | "redis.port" | "memcached.hosts", _)) => none("part of --server"),
            Some(("redis.cluster", "true")) => ours("--cluster".to_owned()),
            Some(("memcached.protocol", "binary")) => ours("--protocol memcached-binary".to_owned()),
            Some(("requestdistribution", "zipfian")) if is_run => ours("--popularity zipf:0.99".to_owned()),
            Some(("requestdistribution", "latest")) if is_run => ours("--popularity latest:0.99".to_owned()),
            Some(("requestdistribution", "uniform")) if is_run => ours("--popularity uniform".to_owned()),
            Some((property, value)) => match PROPERTIES.iter().find(|(held, _)| *held == property) {
                Some((_, text)) if is_run || property == "recordcount" => {
                    ours(text.replace("{}", &quoted(value)))
                }
                _ => none("see docs/migrating.md"),
            },
            None => none("YCSB takes NAME=VALUE"),
        },
        _ => none("see docs/migrating.md"),
    }
}
