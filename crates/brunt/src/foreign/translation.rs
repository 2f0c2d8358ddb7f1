//! Values of other tools' options in brunt's words, where more than one option decides or the form differs.
//!
//! Functions of the value and the whole line, which `table.rs` has beside the options. Invariant: every piece is one of our options with its
//! value, ready for a shell, and a server's password is in none.

use super::line::{Answer, Line, Tool, TypedOption};
use super::value::{Test, protocol_of, test};

fn piece(text: impl Into<String>) -> Answer {
    pieces([text.into()])
}

fn pieces(list: impl IntoIterator<Item = String>) -> Answer {
    Answer { pieces: list.into_iter().collect(), note: String::new() }
}

fn nothing(why: impl Into<String>) -> Answer {
    Answer { pieces: Vec::new(), note: why.into() }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+:,./@%[]".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The threads of memtier_benchmark and its connections in each, where the line does not give them.
const MEMTIER_THREADS: u64 = 4;
const MEMTIER_CLIENTS: u64 = 50;
/// Its last key.
const MEMTIER_KEY_LAST: u64 = 10_000_000;
/// The files that answers name for passwords, which are never in them.
pub(super) const PASSWORD_FILES: [&str; 2] = ["@redis.pw", "@cache.pw"];
/// The ports that the tools take where the line gives none.
const REDIS_PORT: &str = "6379";
const MEMCACHED_PORT: &str = "11211";

/// The server of redis-benchmark and memtier_benchmark, which several options name together.
pub(super) fn server(_: &str, line: &Line) -> Answer {
    let named = line.value("-P").filter(|_| line.tool == Tool::Memtier).and_then(protocol_of);
    let (is_redis, beside) = named.unwrap_or((true, None));
    let beside = beside.or(line.has("-3").then_some("resp3")).map(|name| format!("--protocol {name}"));
    if let Some(uri) = line.value("-u") {
        return pieces(of_uri(uri).into_iter().chain(beside));
    }
    let socket = if line.tool == Tool::Memtier { line.value("-S") } else { line.value("-s") };
    if let Some(path) = socket {
        let protocol = beside.or((is_redis).then(|| "--protocol resp2".to_owned()));
        return pieces([format!("--server {}", quoted(&format!("unix:{path}")))].into_iter().chain(protocol));
    }
    let host = line.value("-h").unwrap_or("127.0.0.1");
    let has_port =
        host.rsplit_once(':').is_some_and(|(host, port)| !host.contains(':') && port.parse::<u16>().is_ok());
    let is_of_redis = line.has("--cluster-mode") || line.has("--command");
    // Written as brunt takes it: with nothing else that tells the protocol it stays.
    if has_port && named.is_none() && !is_of_redis && !line.has("--tls") && line.value("-p").is_none() {
        return pieces([format!("--server {}", quoted(host))].into_iter().chain(beside));
    }
    let scheme = match (is_redis, line.has("--tls")) {
        (true, false) => "redis",
        (true, true) => "rediss",
        (false, false) => "memcached",
        (false, true) => "memcacheds",
    };
    let host = if host.contains(':') && !has_port { format!("[{host}]") } else { host.to_owned() };
    let usual = if is_redis { REDIS_PORT } else { MEMCACHED_PORT };
    let port = if has_port { String::new() } else { format!(":{}", line.value("-p").unwrap_or(usual)) };
    pieces([format!("--server {}", quoted(&format!("{scheme}://{host}{port}")))].into_iter().chain(beside))
}

/// A URL without its password, which is in a file then.
fn of_uri(uri: &str) -> Vec<String> {
    let (scheme, rest) = uri.split_once("://").unwrap_or(("redis", uri));
    let scheme = scheme.replace("valkey", "redis");
    let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    let url = format!("--server {}", quoted(&format!("{scheme}://{user}{place}")));
    let password = (!password.is_empty()).then(|| "--password @redis.pw".to_owned());
    std::iter::once(url).chain(password).collect()
}

/// An option of ours that holds a password, with that in a file.
pub(super) fn without_password(given: &TypedOption) -> Vec<String> {
    match given.value.as_deref() {
        Some(url) if url.contains("://") => of_uri(url),
        _ => vec!["--password @redis.pw".to_owned()],
    }
}

/// `USER:PASSWORD` or a password.
pub(super) fn credentials(value: &str, _: &Line) -> Answer {
    let user = value.split_once(':').map(|(user, _)| format!("--user {}", quoted(user)));
    pieces(user.into_iter().chain(["--password @redis.pw".to_owned()]))
}

/// `-k`: 0 connects anew for each request.
pub(super) fn keep_alive(value: &str, _: &Line) -> Answer {
    if value == "0" { piece("--calls-per-connection 1") } else { nothing("connections are kept") }
}

/// Keys as redis-benchmark writes them: `key:` and twelve digits in its tests, the digits alone in a command.
pub(super) fn redis_keys(value: &str, line: &Line) -> Answer {
    let keys = format!("--keys {value}");
    if line.command.is_empty() {
        pieces([keys, "--prefix key:".to_owned(), "--key-size 16".to_owned()])
    } else {
        Answer {
            note: "{key} is as its __rand_int__, twelve digits".to_owned(),
            ..pieces([keys, "--key-size 12".to_owned()])
        }
    }
}

/// A list of tests as a mix.
pub(super) fn tests(value: &str, line: &Line) -> Answer {
    if !line.command.is_empty() {
        return nothing("not used beside a command");
    }
    let tests: Vec<(&str, Test)> = value.split(',').filter_map(|name| Some((name, test(name)?))).collect();
    let (mut mix, mut commands): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (_, test) in &tests {
        match test {
            Test::Operation(name) => mix.push(format!("{name}=1")),
            Test::Command(template) => commands.push(format!("--command {}", quoted(template))),
            Test::None => {}
        }
    }
    // The three tests with a ping send one command.
    commands.dedup();
    if !commands.is_empty() {
        mix.push(format!("raw={}", vec!["1"; commands.len()].join("+")));
    }
    let missing: Vec<&str> =
        tests.iter().filter(|(_, test)| matches!(test, Test::None)).map(|(name, _)| *name).collect();
    let note = if missing.is_empty() { String::new() } else { format!("without {}", missing.join(", ")) };
    if mix.is_empty() {
        return nothing(note);
    }
    Answer { note, ..pieces([format!("--mix {}", mix.join(","))].into_iter().chain(commands)) }
}

/// The command that is behind redis-benchmark's options.
pub(super) fn command(line: &Line) -> Answer {
    // `-x` reads one more argument from standard input.
    let last = line.has("-x").then(|| "{value}".to_owned());
    let template: Vec<String> = line.command.iter().map(|word| template_word(word)).chain(last).collect();
    pieces([format!("--command {}", quoted(&template.join(" "))), "--mix raw=1".to_owned()])
}

/// A word of a command line as one of a template.
fn template_word(word: &str) -> String {
    let is_plain = !word.is_empty() && !word.contains([' ', '"', '\'', '\\', '{', '\n']);
    let text = if is_plain {
        word.to_owned()
    } else {
        let escaped =
            word.replace('\\', "\\\\").replace('"', "\\\"").replace('{', "\\{").replace('\n', "\\n");
        format!("\"{escaped}\"")
    };
    placeholders(&text)
}

/// Placeholders of other tools as ours.
fn placeholders(text: &str) -> String {
    text.replace("__rand_int__", "{key}").replace("__key__", "{key}").replace("__data__", "{value}")
}

/// One `--command` of memtier_benchmark, and the weights of all of them.
pub(super) fn template(value: &str, line: &Line) -> Answer {
    let template = quoted(&placeholders(value));
    pieces([format!("--command {template}"), format!("--mix raw={}", command_weights(line))])
}

/// The weight that is behind each command, else 1.
fn command_weights(line: &Line) -> String {
    let mut weights: Vec<&str> = Vec::new();
    for given in &line.given {
        match (given.name.as_str(), given.value.as_deref(), weights.last_mut()) {
            ("--command", ..) => weights.push("1"),
            ("--command-ratio", Some(value), Some(weight)) => *weight = value,
            _ => {}
        }
    }
    weights.join("+")
}

/// SET:GET, or the weights of commands.
pub(super) fn mix(_: &str, line: &Line) -> Answer {
    if line.has("--command") {
        let note = if line.has("--ratio") { "--ratio is not used beside --command" } else { "" };
        return Answer { note: note.to_owned(), ..piece(format!("--mix raw={}", command_weights(line))) };
    }
    let (set, get) = line.value("--ratio").and_then(|ratio| ratio.split_once(':')).unwrap_or(("1", "10"));
    let get_name = if line.number("--multi-key-get", 0) > 0 { "mget" } else { "get" };
    let parts = [("set", set), (get_name, get)];
    let mix: Vec<String> = parts
        .iter()
        .filter(|(_, weight)| weight.parse() != Ok(0_u64))
        .map(|(op, weight)| format!("{op}={weight}"))
        .collect();
    if mix.is_empty() { nothing("a mix of nothing") } else { piece(format!("--mix {}", mix.join(","))) }
}

/// GETs of several keys.
pub(super) fn multi_get(value: &str, line: &Line) -> Answer {
    let mut answer = mix("", line);
    if value != "0" {
        answer.pieces.push(format!("--multiget {value}"));
    }
    answer
}

/// Connections of each thread, and where mutilate has several servers to each of these.
fn connection_count(line: &Line) -> (u64, String) {
    let (threads, each, servers) = match line.tool {
        Tool::Mutilate => {
            (line.number("-T", 1), line.number("-c", 1), named_servers(line).len().max(1) as u64)
        }
        _ => (line.number("-t", MEMTIER_THREADS), line.number("-c", MEMTIER_CLIENTS), 1),
    };
    let usual = if line.tool == Tool::Memtier && !line.has("-t") { ", its default" } else { "" };
    let note = match (threads, servers) {
        (1, 1) => String::new(),
        (1, _) => format!("{each} for each of {servers} servers"),
        (_, 1) => format!("{each} for each of {threads} threads{usual}"),
        _ => format!("{each} for each of {threads} threads and {servers} servers"),
    };
    (threads.saturating_mul(each).saturating_mul(servers), note)
}

pub(super) fn connections(_: &str, line: &Line) -> Answer {
    let (count, note) = connection_count(line);
    Answer { note, ..piece(format!("--connections {count}")) }
}

/// Requests of each client.
pub(super) fn requests(value: &str, line: &Line) -> Answer {
    let Ok(each) = value.parse::<u64>() else {
        return nothing("brunt load stores every key once; --popularity sequential goes over all");
    };
    let (clients, _) = connection_count(line);
    let note = format!("{each} for each of {clients} connections");
    let number = format!("--requests {}", each.saturating_mul(clients));
    Answer { note, ..pieces([number].into_iter().chain(untyped_connections(line))) }
}

/// The number of connections, for what counts by connection in a line that has no option for them.
fn untyped_connections(line: &Line) -> Option<String> {
    let (clients, _) = connection_count(line);
    (!line.has("-c")).then(|| format!("--connections {clients}"))
}

/// Requests a second of each connection.
pub(super) fn rate_of_connections(value: &str, line: &Line) -> Answer {
    let (clients, _) = connection_count(line);
    let rate = value.parse::<u64>().unwrap_or(0).saturating_mul(clients);
    if rate == 0 {
        return nothing("closed loop without --rate");
    }
    pieces([format!("--rate {rate}")].into_iter().chain(untyped_connections(line)))
}

pub(super) fn miss_rate(value: &str, _: &Line) -> Answer {
    let hit = 100.0 - value.parse().unwrap_or(0.0_f64);
    Answer { note: "exit code 4 where it fails".to_owned(), ..piece(format!("--assert 'hit >= {hit}%'")) }
}

/// The numbers of a range.
fn range(value: &str) -> Option<(u64, u64)> {
    let (first, last) = value.split_once(['-', ':'])?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

pub(super) fn size_range(value: &str, _: &Line) -> Answer {
    let Some((least, most)) = range(value) else { return nothing("--value-size uniform:MIN,MAX") };
    piece(format!("--value-size uniform:{least},{most}"))
}

pub(super) fn size_list(value: &str, _: &Line) -> Answer {
    piece(format!("--value-size {}", quoted(&format!("discrete:{}", value.replace(':', "=")))))
}

pub(super) fn expiry(value: &str, _: &Line) -> Answer {
    range(value).map_or_else(|| nothing("--ttl DURATION"), |(_, most)| piece(format!("--ttl {most}s")))
}

fn key_count(line: &Line) -> u64 {
    let last = line.number("--key-maximum", MEMTIER_KEY_LAST);
    last.saturating_sub(line.number("--key-minimum", 0)).saturating_add(1)
}

pub(super) fn keys(_: &str, line: &Line) -> Answer {
    let first =
        line.value("--key-minimum").filter(|first| *first != "0").map(|first| format!("--first-key {first}"));
    pieces([format!("--keys {}", key_count(line))].into_iter().chain(first))
}

/// The pattern of GETs, which is behind the colon.
pub(super) fn popularity(_: &str, line: &Line) -> Answer {
    let pattern = line.value("--key-pattern").or_else(|| line.value("--command-key-pattern"));
    let letters = pattern.unwrap_or(if line.has("--key-zipf-exp") { "Z" } else { "G" });
    let letter = letters.rsplit(':').next().unwrap_or_default();
    let law = match letter {
        "G" => match line.value("--key-stddev").and_then(|deviation| deviation.parse::<f64>().ok()) {
            // Keys are whole numbers, so that more digits say nothing.
            Some(deviation) => {
                let share = format!("{:.6}", (deviation / key_count(line) as f64).min(1.0));
                format!("gaussian:{}", share.trim_end_matches('0').trim_end_matches('.'))
            }
            None => "gaussian".to_owned(),
        },
        "Z" => format!("zipf:{}", line.value("--key-zipf-exp").unwrap_or("1")),
        "S" | "P" => "sequential".to_owned(),
        // R is all that is left: a wrong letter never comes here.
        _ => "uniform".to_owned(),
    };
    let is_mixed = letters.split_once(':').is_some_and(|(set, get)| set != get);
    let note = if is_mixed { "one law for all operations" } else { "" };
    // The deviation is a share of the keys, of which brunt has another number where none is given.
    let has_keys = ["--key-maximum", "--key-minimum"].iter().any(|name| line.has(name));
    let keys = (letter == "G" && line.has("--key-stddev") && !has_keys)
        .then(|| format!("--keys {}", key_count(line)));
    Answer { note: note.to_owned(), ..pieces([format!("--popularity {law}")].into_iter().chain(keys)) }
}

/// The servers of mutilate, which may be in one word.
fn named_servers(line: &Line) -> Vec<&str> {
    line.values("-s").flat_map(|list| list.split(',')).collect()
}

pub(super) fn servers(_: &str, line: &Line) -> Answer {
    let of = |name: &str| {
        let url = match (line.has("--unix_socket"), line.has("--redis")) {
            (true, _) => format!("unix:{name}"),
            (false, true) if name.contains(':') => format!("redis://{name}"),
            // Its port for a Redis, too.
            (false, true) => format!("redis://{name}:{MEMCACHED_PORT}"),
            (false, false) => name.to_owned(),
        };
        format!("--server {}", quoted(&url))
    };
    let protocol = line.has("--unix_socket") && line.has("--redis");
    let protocol = protocol.then(|| "--protocol resp2".to_owned());
    pieces(named_servers(line).into_iter().map(of).chain(protocol))
}

pub(super) fn qps(value: &str, line: &Line) -> Answer {
    if line.has("--scan") || line.has("--search") {
        return nothing("a scan or a search chooses the rate");
    }
    if value == "0" { nothing("closed loop without --rate") } else { piece(format!("--rate {value}")) }
}

/// The part of SETs.
pub(super) fn update(value: &str, _: &Line) -> Answer {
    const PARTS: u64 = 1_000;
    let set = (value.parse::<f64>().unwrap_or(0.0).clamp(0.0, 1.0) * PARTS as f64).round() as u64;
    let get = PARTS - set;
    let divisor = greatest_common_divisor(get, set);
    match (get / divisor, set / divisor) {
        (get, 0) => piece(format!("--mix get={get}")),
        (0, set) => piece(format!("--mix set={set}")),
        (get, set) => piece(format!("--mix get={get},set={set}")),
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

pub(super) fn affinity(_: &str, line: &Line) -> Answer {
    let last = line.number("-T", 1).saturating_sub(1);
    piece(if last == 0 { "--cpus 0".to_owned() } else { format!("--cpus 0-{last}") })
}

pub(super) fn agent_port(value: &str, line: &Line) -> Answer {
    match line.has("--agentmode") {
        true => piece(format!("--listen 0.0.0.0:{value}")),
        false => nothing("--agent HOST:PORT"),
    }
}

/// Of an agent of mutilate's: everything else it is told by its controller.
pub(super) fn is_of_agent(given: &TypedOption) -> bool {
    ["--agentmode", "-p", "-T", "--affinity"].iter().any(|name| given.is_of(name))
}

/// What a tool takes where the line says nothing, and brunt takes something else.
pub(super) fn defaults(line: &Line) -> Vec<String> {
    let (connections, _) = connection_count(line);
    let has = |names: &[&str]| names.iter().any(|name| line.has(name));
    let connections = format!("--connections {connections}");
    let usual: &[(&[&str], &str)] = match line.tool {
        Tool::Redis | Tool::Valkey => &[
            (&["-c"], "--connections 50"),
            (&["-n", "-l", "--duration"], "--requests 100000"),
            (&["-d"], "--value-size 3"),
            (&["-r"], "--keys 1"),
        ],
        Tool::Memtier => &[
            (&["-c", "-n", "--rate-limiting"], &connections),
            (&["-t"], "--threads 4"),
            (&["--ratio", "--command", "--multi-key-get"], "--mix set=1,get=10"),
            (&["-d", "--data-size-range", "--data-size-list"], "--value-size 32"),
            (&["--key-maximum", "--key-minimum"], "--keys 10000001"),
        ],
        Tool::Mutilate => &[
            (&["-c"], &connections),
            (&["-T"], "--threads 1"),
            (&["-t", "-N"], "--time 5s"),
            (&["-r"], "--keys 10000"),
            (&["-K"], "--key-size 30"),
            (&["-V"], "--value-size 200"),
        ],
    };
    usual.iter().filter(|(names, _)| !has(names)).map(|(_, piece)| (*piece).to_owned()).collect()
}

pub(super) fn arrival(value: &str, line: &Line) -> Answer {
    let is_open = line.number("-q", 0) > 0 || line.has("--scan") || line.has("--search");
    if !is_open {
        return nothing("gaps between requests need a rate, --qps there and --rate here");
    }
    let name = value.split(':').next().unwrap_or_default();
    piece(match name {
        "exponential" => "--arrival poisson".to_owned(),
        "fixed" => "--arrival uniform".to_owned(),
        _ => format!("--arrival {}", quoted(value)),
    })
}

/// `N:X`, the percentile and its bound in microseconds.
pub(super) fn search(value: &str, _: &Line) -> Answer {
    let Some((percentile, micros)) = range(value) else { return nothing("brunt search --slo 'p99 < 1ms'") };
    // Other percentiles than these are reported where they are asked for.
    let is_reported = [50, 90, 95, 99].contains(&percentile);
    let percentiles = if is_reported { String::new() } else { format!(" --percentiles {percentile}") };
    let ours = format!("--slo 'p{percentile} < {micros}us'{percentiles}");
    Answer { note: "of brunt search".to_owned(), ..piece(ours) }
}

/// `MIN:MAX:STEP`.
pub(super) fn scan(value: &str, _: &Line) -> Answer {
    let parts: Vec<&str> = value.split(':').collect();
    let [least, most, step] = parts[..] else { return nothing("brunt scan --over rate=10k..100k:10k") };
    Answer { note: "of brunt scan".to_owned(), ..piece(format!("--over rate={least}..{most}:{step}")) }
}
