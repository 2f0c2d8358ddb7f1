//! No printed latency leaves a part of the window out: p99 and max of text, JSON, CSV, JUnit and assertions against the raw
//! samples of the same run, with a server that is killed, stopped, reset, flushed or evicting in the first half of it.
//!
//! Not about how long a server was gone (`outages.rs`), and no time of the host's is judged: whatever the samples hold must
//! be printed.

use crate::measured::{ALL, Measured};
use crate::server::{Directory, Ended, Server, begin, brunt, ended, lasting_port, stop_for, wait};
use std::thread::scope;
use std::time::Duration;

/// Long enough for a change in it to be looked for.
const SECONDS: u64 = 4;
const RATE: u64 = 1_000;
/// How long a server is gone, or stands still.
const GONE: Duration = Duration::from_millis(300);

/// A load of which everything is kept. `disturb` is called a quarter into its window, when the server has been asked as often.
fn disturbed(what: &str, server: Server, flags: &str, disturb: impl FnOnce(Server) -> Server) {
    let directory = Directory::new();
    let load = format!("-r {RATE} --arrival uniform -c 8 --depth 64 --warmup 0s --no-preload -t {SECONDS}s");
    let asserted = "--wait sleep --assert 'p99 < 1ns' --assert 'max < 1ns' --set samples-max=100k";
    let kept =
        ["run.json", "run.csv", "run.xml"].map(|name| format!("-o {} ", directory.path(name))).concat();
    let kept = format!("--allow={ALL} {kept} -o samples:{}", directory.path("samples"));
    let run = begin(brunt(&format!("run --server {server} {load} {asserted} {kept} {flags}")));
    server.await_requests(SECONDS * RATE / 4);
    let server = disturb(server);
    let ended = Ended::from(run);
    // Where the client's own part may be the whole of a latency, as on a busy host, an assertion is undecided and not failed.
    assert!(matches!(ended.exit, 3 | 4), "{what}");
    let text = format!("{}{}", ended.out, ended.said);
    let measured = Measured::of(Ended { exit: ended.exit, out: directory.text("run.json"), said: text });
    let read = |name: &str| directory.text(name);
    check(what, &measured, &read("run.csv"), &read("run.xml"), &read("samples"));
    drop(server);
}

/// The cells of a CSV below these headings, of every line.
pub(crate) fn columns<const N: usize>(csv: &str, names: [&str; N]) -> Vec<[String; N]> {
    let mut lines = csv.lines().filter(|line| !line.starts_with('#'));
    let headings: Vec<&str> = lines.next().unwrap().split(',').collect();
    let places = names.map(|name| headings.iter().position(|heading| *heading == name).unwrap());
    let of_line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        places.map(|place| cells[place].to_owned())
    };
    lines.map(of_line).collect()
}

/// As it is printed for people, in nanoseconds.
fn nanoseconds(number: &str, unit: &str) -> f64 {
    let scale =
        [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)].into_iter().find(|(name, _)| *name == unit);
    number.parse::<f64>().unwrap() * scale.unwrap_or_else(|| panic!("{number} {unit}")).1
}

/// A time of the row of all requests, from the text.
fn printed(text: &str, column: &str) -> f64 {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("response, "));
    let mut headings = lines.next().unwrap_or_else(|| panic!("{text}")).split_whitespace().skip(1);
    let unit = headings.next().unwrap();
    let place = headings.position(|heading| heading == column).unwrap();
    let row = lines.find(|line| line.starts_with("all ")).unwrap();
    let cell = row.split_whitespace().nth(place + 1).unwrap();
    nanoseconds(cell.trim_start_matches("<="), unit)
}

fn check(what: &str, measured: &Measured, csv: &str, junit: &str, samples: &str) {
    let text = &measured.text;
    let completed = ["hit", "miss", "done", "rejected"];
    let rows = columns(samples, ["outcome", "intended_ns", "done_ns"]);
    let times =
        |[_, intended, done]: &[String; 3]| (intended.parse::<i64>().unwrap(), done.parse::<i64>().unwrap());
    let of_completed = rows.iter().filter(|row| completed.contains(&row[0].as_str())).map(times);
    let mut response: Vec<i64> = of_completed.clone().map(|(intended, done)| done - intended).collect();
    response.sort_unstable();
    let max_ns = *response.last().unwrap() as f64;
    let p99_ns = response[(response.len() * 99).div_ceil(100) - 1] as f64;
    // Every request of the window is there, but those that had no reply.
    let scheduled = measured.requests("scheduled");
    assert_eq!((scheduled, rows.len() as u64), (SECONDS * RATE, scheduled - measured.requests("unsent")));
    assert_eq!(measured.count("latency.response_ns.count"), response.len() as u64, "{what}");
    let all = measured.count("latency.including_failures_ns.count");
    assert_eq!(all, rows.len() as u64 + measured.requests("abandoned"), "{what}");
    let is = |name: &str, found: f64, truth: f64, tolerance: f64| {
        assert!((found / truth - 1.0).abs() <= tolerance, "{what}, {name}: {found} for {truth}");
    };
    is("max in JSON", measured.count("latency.response_ns.max") as f64, max_ns, 0.0);
    is("p99 in JSON", measured.count("latency.response_ns.p99") as f64, p99_ns, 0.001);
    // Three digits.
    is("p99 in text", printed(text, "p99"), p99_ns, 0.006);
    is("max in text", printed(text, "max"), max_ns, 0.006);
    for (index, truth) in [p99_ns, max_ns].into_iter().enumerate() {
        let assertion = &measured.at("status.assertions")[index];
        assert_ne!(assertion["outcome"], "holds", "{what}");
        is("asserted", assertion["value"].as_f64().unwrap(), truth, 0.001);
    }
    for (name, truth) in [("p99", p99_ns), ("max", max_ns)] {
        let case = junit.lines().skip_while(|line| !line.contains(&format!("name=\"{name} &lt; 1ns\"")));
        let said: String = case.take(3).collect();
        let said = said.split_once("message=\"").unwrap_or_else(|| panic!("{junit}")).1;
        let (number, rest) = said.split_once(' ').unwrap();
        let unit: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        is("JUnit", nanoseconds(number, &unit), truth, 0.006);
    }
    // A line has what ended in it. Workers end theirs a little late, so the last may hold what ended behind the window.
    let lines = columns(csv, ["phase", "max_ns"]);
    let of_window = lines.iter().filter(|[phase, max_ns]| phase == "measure" && !max_ns.is_empty());
    let most_ns = of_window.map(|[_, max_ns]| max_ns.parse::<f64>().unwrap()).fold(0.0, f64::max);
    let ended = |until_ns: i64| {
        let ended = of_completed.clone().filter(move |(_, done)| *done < until_ns);
        ended.map(|(intended, done)| done - intended).max().unwrap() as f64
    };
    let window_ns = (SECONDS * 1_000_000_000) as i64;
    assert!((ended(window_ns)..=max_ns).contains(&most_ns), "{what}, CSV: {most_ns}, {max_ns}\n{csv}");
}

#[test]
fn server_outages_are_in_every_latency() {
    let small = "--mix get=19,set=1 --keys 1000";
    scope(|scope| {
        scope.spawn(|| {
            let port = i32::from(lasting_port());
            let Some(server) = Server::memcached_at("127.0.0.1", port, "") else { return };
            disturbed("killed", server, small, |server| {
                server.kill();
                wait(GONE);
                Server::memcached_at("127.0.0.1", port, "").unwrap()
            });
        });
        scope.spawn(|| {
            let Some(server) = Server::memcached("") else { return };
            disturbed("stopped", server, small, |server| {
                stop_for(server.pid(), GONE);
                server
            });
        });
        scope.spawn(|| {
            let server = Server::reference("--reset-every 200:1000");
            disturbed("reset", server, small, |server| server);
        });
        scope.spawn(|| {
            let Some(server) = Server::memcached("") else { return };
            disturbed("flushed", server, "--mix get=19,set=1 --keys 1000 --on-miss ignore", |server| {
                server.says("flush_all\r\n", "OK\r\n");
                server
            });
        });
        scope.spawn(|| {
            let Some(server) = Server::memcached("-m 8") else { return };
            let flags = "--mix get=1,set=1 --keys 2000 --value-size 10000";
            disturbed("evicting", server, flags, |server| server);
        });
    });
}

/// What `--warmup auto` came to is told, and what was asked for is in the plan.
#[test]
fn automatic_warm_up_begins_the_window() {
    let plan = ended("run --warmup auto --print-plan");
    assert!(plan.out.contains("warmup = \"auto\""));
    let flags = "--warmup auto -r 2k -c 4 --keys 1000 -T 2 --wait sleep";
    let server = Server::reference("");
    let measured = Measured::run(&server, &format!("{flags} -t 300ms --allow=BROKEN,LOAD,CLIENT,DATA"));
    assert_eq!((measured.exit, measured.at("plan.warmup")), (0, &"auto".into()));
    // A host that takes processors away makes latencies rise, and fall; whole slices they are in any case.
    let warmup_ns = measured.count("counts.phases.warmup.duration_ns");
    assert!((100_000_000..=60_000_000_000).contains(&warmup_ns), "{warmup_ns}");
    assert_eq!((warmup_ns % 100_000_000, measured.count("window.duration_ns")), (0, 300_000_000));
    let end = measured.at("window.warmup_end").as_str().unwrap();
    // Silence of 100 ms may be the host's.
    assert!(["level", "trouble"].contains(&end), "{end}");
    assert!(end != "level" || warmup_ns >= 1_100_000_000, "{warmup_ns}");
    assert!(measured.text.contains(" warm-up, which ended "));
}

/// A server that is killed while a warm-up goes on is not waited for: the window begins, and has it.
#[test]
fn servers_killed_in_warm_up_are_measured() {
    let server = Server::reference("--outage 500ms:1s --script-after 1000");
    let flags =
        "--warmup auto -r 1k -c 4 --depth 64 --keys 1000 -t 2s --wait sleep --allow=BROKEN,LOAD,CLIENT,DATA";
    let measured = Measured::run(&server, flags);
    assert_eq!(measured.at("window.warmup_end"), "trouble");
    // 100 ms until it is seen, 100 ms ahead, and what the host adds.
    let warmup_ms = measured.ms("counts.phases.warmup.duration_ns");
    assert!((100.0..1_400.0).contains(&warmup_ms), "{warmup_ms}");
    if warmup_ms <= 800.0 {
        assert!(measured.ms("latency.response_ns.max") >= 600.0);
    }
}
