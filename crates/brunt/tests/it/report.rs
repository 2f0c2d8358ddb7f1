//! Results reported again: what a live run printed, from the file that it wrote.
//!
//! Not what is printed. Every kind of run is made once, and its text, its tables, its JSON and its exit code are compared to the byte.

use crate::cluster::Cluster;
use crate::compare::{COUNTED, measured, of_service};
use crate::fleet::Agent;
use crate::schema::check_result;
use crate::server::{Directory, Ended, Server, begin, brunt, ended, rows};
use crate::tls::{Certificates, redis_over_tls};
use brunt_report::json::{packed, unpacked};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Command;

/// Every kind of result of a run that `brunt report` writes again, by the ending of its file.
const RESULTS: [&str; 7] = ["json", "html", "csv", "xml", "hgrm", "hlog", "md"];

/// Options that write results with these endings into files of this name.
fn results(files: &Directory, name: &str, endings: &[&str]) -> String {
    endings.iter().map(|ending| format!(" -o {}", files.path(&format!("{name}.{ending}")))).collect()
}

/// Ends a command in this way, reports its result, and compares everything; how many runs the result has, and the files.
fn check_again(
    name: &str,
    words: &str,
    endings: &[&str],
    carry_out: impl FnOnce(Command) -> Ended,
) -> (usize, Directory) {
    let files = Directory::new();
    let run = carry_out(brunt(&format!("{words} --progress=none{}", results(&files, "run", endings))));
    assert!(!run.out.is_empty(), "{name}");
    let again = ended(&format!("report {}{}", files.path("run.json"), results(&files, "again", endings)));
    assert_eq!((&again.out, again.exit), (&run.out, run.exit), "{name}");
    for ending in endings {
        let (first, second) = (files.text(&format!("run.{ending}")), files.text(&format!("again.{ending}")));
        assert!(first == second, "{name}: run.{ending} and again.{ending} differ");
    }
    (check_result(name, &files.text("run.json")), files)
}

/// Ends a command with a signal when something has happened.
fn interrupted(command: Command, await_something: impl FnOnce()) -> Ended {
    let child = begin(command);
    await_something();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Ended::from(child)
}

/// Runs this, reports its result, and compares everything.
fn check(name: &str, words: &str) {
    check_run(name, words, Ended::from);
}

/// The same of a run that ends in this way.
fn check_run(name: &str, words: &str, carry_out: impl FnOnce(Command) -> Ended) {
    let (runs, files) = check_again(name, words, &RESULTS, carry_out);
    assert!(files.text("run.json").len() < 2_000_000, "{name}");
    assert_eq!(runs, 1, "{name}");
}

#[test]
fn reports_of_runs_match_snapshots() {
    let server = Server::reference("");
    let base = format!("run -s {server} --keys 500 -t 600ms --warmup 200ms -c 4");
    // A report is as long whatever the rate.
    let with = |more: &str| format!("{base} --wait sleep {more}");
    check("closed loop", &with("--think 1ms"));
    check("open loop", &with("-r 5k --mix get=8,set=1,mget=1 --allow=BROKEN,LOAD,CLIENT,DATA"));
    check("asserted", &with("-r 3k --assert 'p99 < 1s' --assert 'get.p50 < 1ns' --allow CLIENT"));
    let strict = "--think 1ms --strict --verify --set samples-max=0";
    check("strict", &format!("{} --set timestamps=kernel --assert 'p50 < 1ns'", with(strict)));
    let plan = Directory::new();
    let text = "keys = 500\nwait = 'sleep'\n[[class]]\nname = 'open'\nrate = '2k'\nmix = 'get=8,set=1,mget=1'\n\
                [[class]]\nname = 'closed'\nthink = '2ms'\n";
    let classes = plan.with("classes.toml", text);
    let words = format!("run {classes} -s {server} -t 600ms --warmup 200ms");
    check("several classes", &format!("{words} --allow=BROKEN,LOAD,CLIENT,DATA"));
    check("until", &with("-r 3k --until p50=20%,max=2s"));
    check("misses", &with("--think 1ms --no-preload --on-miss set"));
    check(
        "its own server",
        "run -n 2000 --keys 500 --think 2ms --warmup auto --set meter=request-size --allow=BROKEN,LOAD,CLIENT,DATA",
    );
}

#[test]
fn reports_of_other_transports_and_ends_match_snapshots() {
    let datagrams = Server::reference("--udp --udp-drop-every=50");
    let words = "--set transport=udp --timeout 20ms --keys 200 -n 3000 --allow=BROKEN,LOAD,CLIENT,DATA";
    check("datagrams", &format!("run -s {datagrams} --no-preload --warmup 0s {words}"));
    // One server that is spoken to in two ways is asked for its statistics once.
    let plan = Directory::new();
    let address = &datagrams.address;
    let text = format!(
        "server = '{address}'\nkeys = 200\nrequests = 3000\nwarmup = '0s'\ntimeout = '20ms'\n[[class]]\n[[class.route]]\nops = ['get']\n\
         transport = 'udp'\n"
    );
    let path = plan.with("routes.toml", &text);
    check("routes", &format!("run {path} --allow=BROKEN,LOAD,CLIENT,DATA"));
    let faulty = Server::reference("--reset-every=500 --script-after=1000");
    let words = "--keys 100 -n 5000 -c 3 --warmup 0s --allow=BROKEN,LOAD,CLIENT,DATA";
    check("resets", &format!("run -s {faulty} {words}"));
    let server = Server::reference("");
    let words = format!("run -s {server} -t 60s --keys 100 --warmup 0s");
    check_run("interrupted", &words, |run| interrupted(run, || server.await_gets(3_000)));
}

#[test]
fn reports_of_tls_runs_match_snapshots() {
    let Some(papers) = Certificates::issue() else { return };
    let Some((_server, address)) = redis_over_tls(&papers, "--tls-auth-clients no") else { return };
    let (url, ca) = (format!("rediss://{address}"), papers.path("ca.pem"));
    let load = "--keys 200 -n 3000 -c 3 --warmup 0s --allow=BROKEN,LOAD,CLIENT,DATA";
    check("verified", &format!("run -s {url} --tls-ca {ca} {load}"));
    check("insecure", &format!("run -s {url} --tls-insecure {load}"));
}

#[test]
fn reports_of_cluster_runs_match_snapshots() {
    let Some(cluster) = Cluster::start() else { return };
    let load = "--protocol resp3 -t 60s --warmup 0s -c 9 --depth 4 --wait sleep";
    let keys = "--keys 6000 --mix get=6,set=2,mget=2 --multiget 4";
    let words = format!("run --cluster -s {} {load} {keys}", cluster.nodes[1].address);
    let move_slots = || {
        cluster.await_keys(6_000);
        cluster.move_slots(&(0..200).collect::<Vec<_>>(), 0, 1);
    };
    check_run("slots that move", &words, |run| interrupted(run, move_slots));
}

#[test]
fn reports_of_agent_runs_match_snapshots() {
    let server = Server::reference("");
    let (one, two) = (Agent::wait("-T 2"), Agent::wait("-T 1"));
    let led = format!("run -s {server} --agent {one} --agent {two}");
    let load = "-t 1s -c 9 --keys 600 --warmup 200ms --wait sleep --allow=BROKEN,LOAD,CLIENT,DATA";
    check("closed loop", &format!("{led} {load}"));
    let open = "-r 4k --mix get=8,set=1,mget=1 --measure-rate 200 --set measure-connections=3";
    check("beside the controller", &format!("{led} {load} {open}"));
}

#[test]
fn reports_of_campaigns_match_snapshots() {
    let server = Server::reference("");
    // With the number of runs; a search may make more or fewer, where the host keeps the client from its rate.
    let table = [
        ("scan", "--over rate=2k,4k,3.5k", 3),
        ("scan", "--over connections=1,2 --repeat 2 --think 1ms", 4),
        ("search", "--assert 'p99 < 1s' --from 1k --to 4k", 2),
        ("run", "--repeat 3 --think 1ms --allow CLIENT", 3),
    ];
    for (command, flags, runs) in table {
        let words = format!("{command} -s {server} --keys 200 -t 300ms --warmup 100ms --wait sleep {flags}");
        let (found, _) = check_again(command, &words, &["json", "html", "csv"], Ended::from);
        assert!(found == runs || command == "search" && found > 0, "{command} {flags:?}: {found}");
    }
}

/// The same result with other values in its record.
fn with(result: &str, values: &[(&str, serde_json::Value)]) -> String {
    let mut result: serde_json::Value = serde_json::from_str(result).unwrap();
    change_record(&mut result, values);
    result.to_string()
}

/// Puts values in these places of a result's record.
pub(crate) fn change_record(result: &mut serde_json::Value, values: &[(&str, serde_json::Value)]) {
    let mut record = unpacked(result["record"].as_str().unwrap()).unwrap();
    for (place, value) in values {
        *record.pointer_mut(place).unwrap() = value.clone();
    }
    result["record"] = packed(&record).unwrap().into();
}

#[test]
fn reports_of_comparisons_match_snapshots() {
    let files = Directory::new();
    let (fast, slow) = (of_service("100"), of_service("1000"));
    let [a, b] = [("a", &fast), ("b", &slow)].map(|(side, server)| {
        [0, 1, 2, 3].map(|run| measured(&files, &format!("{side}{run}.json"), server, COUNTED, ""))
    });
    let assertions = "--assert 'p99 <= +5%' --assert 'p50 < 1ns'";
    check_comparison("files", &format!("--a {} --b {} {assertions}", a.join(" "), b.join(" ")), Ended::from);
    check_comparison("one each", &format!("{} {}", a[0], b[0]), Ended::from);
    let live = format!("--repeat 2 --allow=BROKEN,LOAD,CLIENT,DATA --live {fast} {slow}");
    check_comparison("live", &format!("{live} {COUNTED}"), Ended::from);
    // Ended in the second run of B, which had 150 gets in its first.
    let slower = of_service("1000");
    let live = format!("--repeat 20 --allow=BROKEN,LOAD,CLIENT,DATA --live {fast} {slower}");
    let files = check_comparison("interrupted", &format!("{live} {COUNTED}"), |compare| {
        interrupted(compare, || slower.await_gets(200))
    });
    let of_several = "is of a run, or repeated runs, or a scan or search, not of a comparison";
    let table = format!(
        "--assert 'p99 < 1s' => --assert: it is of one run
         -o again.csv => for -o csv: csv {of_several}
         -o again.ndjson => for -o ndjson: ndjson {of_several}"
    );
    for [option, expected] in rows(&table) {
        ended(&format!("report {} {option}", files.path("run.json"))).is(2, &[expected]);
    }
}

/// Compares, reports the result, and compares everything; the files.
fn check_comparison(name: &str, words: &str, carry_out: impl FnOnce(Command) -> Ended) -> Directory {
    check_again(name, &format!("compare {words}"), &["json", "html", "xml"], carry_out).1
}

#[test]
fn invalid_result_files_are_rejected() {
    let files = Directory::new();
    let json = files.path("run.json");
    ended(&format!("run -n 200 --warmup 0s --allow=BROKEN,LOAD,CLIENT,DATA -o {json}")).is(0, &[]);
    let whole = files.text("run.json");
    // Text, with what begins the sentence behind the name of the file.
    let table = [
        (String::new(), "no JSON: EOF"),
        (whole[..whole.len() / 2].to_owned(), "no JSON: EOF"),
        ("[1]".to_owned(), "schema: 'nothing' was found; accepted"),
        (r#"{"schema": "memtier.v2"}"#.to_owned(), "schema: 'memtier.v2' was found; accepted"),
        (whole.replacen("\"record\"", "\"recorder\"", 1), "record: missing"),
        (whole.replacen("\"record\": \"eJ", "\"record\": \"eK", 1), "record: damaged"),
        (with(&whole, &[("/values_checked", 7.into())]), "record: invalid type"),
        (
            with(&whole, &[("/run/host/clock/backwards", 99_999_999_999_999_999_u64.into())]),
            "record: 99999999999999999",
        ),
        (
            with(
                &whole,
                &[
                    ("/run/times/end_ns", (1_u64 << 55).into()),
                    ("/run/times/drained_ns", (1_u64 << 55).into()),
                ],
            ),
            "record: a run that is longer than its slices of time",
        ),
        (
            with(&whole, &[("/run/server_records/0/snapshots/0/at_ns", (1_u64 << 55).into())]),
            "record: statistics of a server that are in no order",
        ),
        (
            with(&whole, &[("/intervals/totals/rows/0/latencies/response/1", [1].into())]),
            "record: a histogram",
        ),
        (
            with(&whole, &[("/intervals/request_counts/0/class", 9.into())]),
            "record: counts of a class or a command that does not exist",
        ),
        (whole.replacen("\"threads\": 1", "\"threads\": 0", 1), "plan: "),
    ];
    let path = files.path("other.json");
    for (text, expected) in table {
        fs::write(&path, &text).unwrap();
        let output = ended(&format!("report {path}"));
        let said = &output.said;
        let sentence = said.strip_prefix(&format!("error: {path}: "));
        assert!(sentence.is_some_and(|sentence| sentence.starts_with(expected)), "{expected}");
        assert_eq!((said.lines().count(), output.exit), (1, 2));
    }
    // A dash is standard input.
    let from_file = ended(&format!("report {json}"));
    let from_stdin = Ended::from(brunt("report -").stdin(fs::File::open(&json).unwrap()));
    assert!(!from_file.out.is_empty() && from_stdin.out == from_file.out);
    let several = ended(&format!("report {json} {json}"));
    assert!(several.said.contains("2 results given: expected one"));
}

#[test]
fn several_results_lie_side_by_side_and_figures_are_drawn() {
    let files = Directory::new();
    let (one, two) = (files.path("one.json"), files.path("two.json"));
    for json in [&one, &two] {
        ended(&format!("run -n 3000 --warmup 0s --allow=BROKEN,LOAD,CLIENT,DATA -o {json}")).is(0, &[]);
    }
    let report = |words: &str| ended(&format!("report {words}"));
    let (page, figure) = (files.path("both.html"), files.path("both.svg"));
    let both = report(&format!("{one} {two} -o {page} -o {figure}"));
    let lines: Vec<&str> = both.out.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("one: status=") && lines[1].starts_with("two: "));
    assert_eq!(files.text("both.html").matches("class=\"heat\"").count(), 2);
    let drawn = files.text("both.svg");
    assert!(drawn.contains("<desc>one: brunt ") && drawn.ends_with("</svg>\n"), "{drawn}");
    let (svg, png) = (format!("timeline:{}", files.path("one.svg")), files.path("one.png"));
    // Nothing is printed again.
    let drawn_alone = report(&format!("{one} -o {svg} -o {png}"));
    assert_eq!((drawn_alone.exit, drawn_alone.out.as_str()), (0, ""));
    assert!(fs::read(files.path("one.png")).unwrap().starts_with(b"\x89PNG"));
    let first = files.text("one.svg");
    for (width, is_same) in [("column", true), ("page", false)] {
        assert_eq!(report(&format!("{one} -o {svg} --figure-width {width}")).exit, 0);
        assert_eq!(files.text("one.svg") == first, is_same, "{width}");
    }

    let curve = format!("curve:{}", files.path("curve.svg"));
    let table = format!(
        "{one} -o {curve} => for -o curve: curve is of a scan or search, not of a run
         {one} -o spectrum => invalid value 'spectrum' for --output: 'spectrum' has no known ending
         {one} -o a.pdf => expected [TYPE:]PATH, such as result.json, json:- or spectrum:p99.svg
         {one} -o {svg} -o {svg} => -o timeline, -o timeline: 
         {one} {two} => 2 results given: expected one; with -o PATH.html or .svg up to 6, side by side
         {one} {two} -o {page} -o csv:- => for -o csv: csv is of a run, or repeated runs, or a scan or search, not of several results"
    );
    for [words, expected] in rows(&table) {
        report(words).is(2, &[expected]);
    }
    assert!(!fs::exists(files.path("curve.svg")).unwrap());
}
